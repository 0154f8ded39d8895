"""Texts that are made to cost much: every construct nested deeply, repeated widely, doubled, or mutated; and a guard around them.

`constructs` builds one text of about a given length for every kind of growth; `Mutants` changes the programs of `tests/cases` and of
the suites. `measure` asks everything that an editor or a notebook asks about a text, in a process of its own with a limit on
processor time and memory, so that a busy machine changes nothing.

By hand: `python -m tests.hostile_texts --minutes 60 --log FILE` writes every text that took too long or raised.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tc_jupyter import analyze, ide
from tc_jupyter.compiler.text_form import text_form
from tc_jupyter.notebook.card import html_card
from tc_jupyter.ranges.latex import FormulaUnavailable, range_latex
from tests.literate import read_cases

HERE = Path(__file__).parent
ROOT = HERE.parent
SECONDS = {10_000: 2.0, 100_000: 10.0}
"""What one question about a text may take on a quiet core, by the length of the text."""
MEMORY = 1 << 30


# --- texts ---------------------------------------------------------------------------------------------------------------------


def _many(item: Callable[[int], str], length: int, around: str, separator: str = " ") -> str:
    """`around` with as many items in the place of `@` as the length allows."""
    items: list[str] = []
    left = length - len(around)
    while True:
        each = item(len(items))
        left -= len(each) + len(separator)
        if left < 0 and items:
            return around.replace("@", separator.join(items))
        items.append(each)


def _nested(opening: str, middle: str, closing: str, length: int, around: str) -> str:
    count = max(1, (length - len(around)) // len(opening + closing))
    return around.replace("@", opening * count + middle + closing * count)


def _repeated(item: str, length: int, around: str) -> str:
    return around.replace("@", item * max(1, (length - len(around)) // len(item)))


def _doubling(first: str, let: str, last: str, length: int, around: str) -> str:
    """`v0 = first, v1 = let of v0, ...` where every let stands in the next one."""
    lets = _many(lambda n: f"v{n + 1} = {let.replace('@', f'v{n}')}", length - len(around), "@", ", ").split(", v")
    text = ", v".join(lets)
    return around.replace("@", f"{last.replace('@', f'v{len(lets)}')} where v0 = {first}, {text}")


F = "def f(float(N,M) X, float(N) A, int32(N) Id, int32 s, int32 q) -> (Y) { Y(i) = @ }"
W = "def f(float(N,M) X, float(N) A, int32(N) Id, int32 s, int32 q) -> (Y) { Y(i) = @ where i in 0:N }"
B = "def f(float(N,M) X, float(N) A, int32 s, int32 q) -> (Y) { Y(i) = A(i) where i in 0:@ }"
R = "def f(float(N) A, int32(N) Id, float(N,M) X) -> (Y) { Y(i) +=! A(@) where i in 0:N, j in 0:M, k in 0:3 }"
I = "def f(float(N) A, int32(N) Id, float(N,M) X) -> (Y) { Y(i) +=! A(@) }"

Construct = Callable[[int], str]

_WIDE = {
    "sum": (lambda n: "A(i)", " + "),
    "different reads": (lambda n: f"A(i + {n})", " + "),
    "backward reads": (lambda n: f"A(i - {n})", " + "),
    "two-way reads": (lambda n: f"A(i + {n}) * A(N - i - {n})", " + "),
    "clamped reads": (lambda n: f"A(min(max(i - {n}, 0), N - 1))", " + "),
    "wrapped reads": (lambda n: f"A((i + {n}) % N)", " + "),
    "strided reads": (lambda n: f"A({n + 1} * i + {n})", " + "),
    "guarded reads": (lambda n: f"(i + {n} < N && 0 <= i + {n} ? A(i + {n}) : 0)", " + "),
    "data reads": (lambda n: f"A(Id(i) + {n})", " + "),
    "floor reads": (lambda n: f"A((i + {n}) / {n + 2})", " + "),
    "size reads": (lambda n: f"A(N / {n + 2} + i)", " + "),
    "min arguments": (lambda n: f"A(i - {n})", ", "),
    "conditions": (lambda n: f"i > {n}", " && "),
    "alternatives": (lambda n: f"i + {n} == N", " || "),
    "alternatives of both": (lambda n: f"(i > {n} || i + s < {n})", " && "),
    "comparisons": (lambda n: "i", " < "),
    "sizes": (lambda n: "(N + M + q)", " * "),
    "size sums": (lambda n: f"(N + M * {n + 1} + q) / {n + 2}", " + "),
    "size minima": (lambda n: f"N - {n} * M", ", "),
    "mixed minima": (lambda n: f"min(N + {n} * s, M - {n} * q)", " + "),
    "products of minima": (lambda n: f"min(N + {n} * s, M - {n} * q)", " * "),
    "products of quotients": (lambda n: f"(N / (M + {n}))", " * "),
    "products of indices": (lambda n: "(i + j + N)", " * "),
    "remainders": (lambda n: f"(N + {n}) % (M + {n + 1})", " + "),
    "choices": (lambda n: f"(N > {n} * M ? N : M)", " + "),
    "products of choices": (lambda n: f"(N > {n} * M ? N + {n} : M)", " * "),
    "unlike choices": (lambda n: f"(s > {n} && q < {n} || s == q ? {n} : s)", " + "),
    "scalars": (lambda n: "s", " * "),
    "quotients": (lambda n: "s", " / "),
    "digits": (lambda n: "9" * 900, " * "),
    "digits of sizes": (lambda n: "N * " + "9" * 18, " * "),
    "words": (lambda n: "A" * 900 + "(i)", " + "),
    "unknown words": (lambda n: f"u{n}(i)", " + "),
    "functions": (lambda n: "exp(A(i))", " + "),
    "indices of one read": (lambda n: f"i{n}", " + "),
    "scaled indices": (lambda n: f"{n + 1} * i{n}", " + "),
    "nested choices": (lambda n: f"i > {n} ? A(i - {n})", " : "),
}
_AROUND_WIDE = {
    "value": lambda text: F.replace("@", text),
    "value in a range": lambda text: W.replace("@", text),
    "min": lambda text: F.replace("@", f"min({text}, A(i))"),
    "subscript": lambda text: I.replace("@", text),
    "subscript in ranges": lambda text: R.replace("@", text),
    "subscript beside i": lambda text: I.replace("@", f"i + ({text})"),
    "min of a subscript": lambda text: I.replace("@", f"min({text}, i)"),
    "first of two": lambda text: F.replace("@", f"X({text}, i)"),
    "end": lambda text: B.replace("@", f"({text})"),
    "min of an end": lambda text: B.replace("@", f"min({text}, N)"),
    "condition": lambda text: W.replace("@", f"({text}) ? A(i) : A(i - 1)"),
    "comparison": lambda text: W.replace("@", f"(({text}) < N) ? A(i) : A(i - 1)"),
    "let": lambda text: F.replace("@", f"v * v where v = {text}"),
    "exists": lambda text: F.replace("@", f"A(i) where exists A({text})"),
}
_NESTED = {
    "parentheses": ("(", "i", ")"),
    "minus": ("-", "i", ""),
    "not": ("!", "i > 0", ""),
    "minus in parentheses": ("(-", "i", ")"),
    "reads": ("Id(", "i", ")"),
    "reads beside": ("Id(i + ", "i", ")"),
    "two reads": ("Id(Id(i) + ", "i", ")"),
    "min": ("min(i, ", "N", ")"),
    "min and max": ("max(i, min(N, ", "s", "))"),
    "min of minus": ("min(N, M - ", "s", ")"),
    "min of three": ("min(N, M - q, s + ", "s", ")"),
    "max of twice": ("max(N, 2 * ", "s", ")"),
    "then": ("i > 0 ? ", "i", " : N"),
    "then in parentheses": ("(i > s ? ", "i", " : N)"),
    "otherwise": ("i > 0 ? N : ", "i", ""),
    "condition": ("((", "i > 0", " ? i : N) > q)"),
    "quotient": ("(N + ", "i", ") / 2"),
    "quotient of a size": ("(N + ", "i", ") / M"),
    "remainder": ("(N + ", "i", ") % 7"),
    "remainder of a size": ("(N + ", "i", ") % M"),
    "square": ("(N + ", "M", ") * (N + M)"),
    "cast": ("int8(1 + ", "i", ")"),
    "abs": ("abs(N - ", "M", ")"),
    "exp": ("exp(", "A(i)", ")"),
    "fma": ("fma(A(i), A(i), ", "A(i)", ")"),
}
_LETS = {
    "doubled": ("A(i)", "@ + @"),
    "doubled index": ("i", "@ + @"),
    "doubled product": ("N + M", "@ * @"),
    "doubled quotient": ("N + M", "@ / @ + @"),
    "doubled minimum": ("i + 1", "min(@, N - @)"),
    "doubled maximum": ("s", "max(@ - N, M - @)"),
    "doubled choice": ("s", "(@ > q ? @ + 1 : @ - 1)"),
    "doubled remainder": ("s", "(@ % M + @ % N)"),
    "doubled read": ("i", "Id(@) + @"),
    "chain": ("i", "@ + 1"),
    "squares": ("3", "@ * @"),
    "large squares": ("N + 1", "@ * @"),
}
_STATEMENTS = {
    "sliced": lambda n: f"Y{n} = A[{n}:]",
    "statements": lambda n: f"T{n}(i) = A(i + {n})",
    "chained statements": lambda n: f"T{n}(i) = {'A' if n == 0 else f'T{n - 1}'}(i + 1)",
    "widening chain": lambda n: (
        f"T{n}(i) = {'A' if n == 0 else f'T{n - 1}'}(i) + {'A' if n == 0 else f'T{n - 1}'}(i+N)"
    ),
    "shrinking chain": lambda n: f"T{n}(i) = {'A' if n == 0 else f'T{n - 1}'}(2*i) + A(i + {n})",
    "clamped chain": lambda n: f"T{n}(i) = {'A' if n == 0 else f'T{n - 1}'}(min(i + {n}, M))",
    "growing extents": lambda n: f"T{n}(i) = A(0) where i in 0:{'N' if n == 0 else f'T{n - 1}.0 + T{n - 1}.0'}",
    "squared extents": lambda n: f"T{n}(i) = A(0) where i in 0:{'(N + M)' if n == 0 else f'T{n - 1}.0 * T{n - 1}.0'}",
    "halved extents": lambda n: f"T{n}(i) = A(0) where i in 0:{'N' if n == 0 else f'(T{n - 1}.0 + M) / 2'}",
    "quotients of quotients": lambda n: (
        f"T{n}(i) = {'A' if n == 0 else f'T{n - 1}'}(i / 2) where i in 0:({'N' if n == 0 else f'T{n - 1}.0'} * 3) / 2"
    ),
    "minima of extents": lambda n: (
        f"T{n}(i) = A(0) where i in 0:min({'N' if n == 0 else f'T{n - 1}.0 + M'}, N * {n + 2})"
    ),
    "updates": lambda n: f"T(i) += A(i + {n})",
    "reductions": lambda n: f"T{n}(i) +=! A(i + j) * A(j + {n})",
    "later parts": lambda n: f"T(i) = A(i) where i in {n}:{n + 1}",
    "products": lambda n: f"T{n}(i) +=! X(i, j) * X(k, l) * A(j) * A(k)",
    "broken statements": lambda n: f"T{n}(i) = = A(i",
    "unknown names": lambda n: f"T{n}(i) = Axy{n}(i)",
    "float subscripts": lambda n: f"T{n}(i) = A(A(i) + {n})",
}

_FOREIGN = (
    *(
        "[i]",
        "[i",
        "X[i] + ",
        "X[:, i] + ",
        "X[1:] - ",
        "[1:]",
        "[:, None]",
        "X(:) + ",
        "αβ·",
        "X(i, ...) + ",
        "X(*) + ",
        "X{i} + ",
        "A_{i} ",
    ),
    *(
        "{",
        "}",
        "(i",
        ")",
        "]",
        "|",
        "||",
        "|A(i)| + ",
        "|A(i) - ",
        "A(i)| + ",
        "A(i) |> ",
        "'",
        '"',
        "A' * ",
        "'i' ",
        '"""',
        "/*",
        "//",
        ";",
    ),
    *(
        "A(i) if ",
        "A(i) if s else ",
        "if (s) i else ",
        "if s then i else ",
        "else ",
        "A(i) else -",
        "(s) ? ",
        "i in range(",
        "[i for i in A] ",
    ),
    *(
        "not ",
        "s and ",
        "s or not ",
        "s xor ",
        "s mod ",
        "s div ",
        "A.T + ",
        "A.sum() + ",
        "A(i).exp()",
        ".exp()",
        "np.",
        "np.exp(A(i)) + ",
    ),
    *(
        "sum(A) + ",
        "sum(",
        "sum=! ",
        "Y(i) mean=! ",
        "A(i) as int + ",
        "(float)",
        "(float)A(i) + ",
        "static_cast<float>(A(i)) + ",
        "float16 ",
    ),
    *(
        "A(i)**2 + ",
        "A(i)**",
        "A(i)^{2} + ",
        "A(i)² + ",
        "√A(i) + ",
        "α + ",
        "Σ",
        "@",
        "A @ ",
        "\\frac{i}{s} + ",
        "\\sqrt{i} + ",
        "\\sum_i ",
    ),
    *(
        "(x := s) + ",
        "x := ",
        "let x = s in ",
        "exists i : ",
        "forall i, ",
        "over i ",
        "lambda x: ",
        "A(end) + ",
        "end ",
        "return ",
        "print(s) ",
    ),
    *(
        "A(i)++ ",
        "Y(i) -= A(i) ",
        "Y(i) = Y(i) = ",
        "Y(i), Z(i) = ",
        "Y_i = A_i ",
        "float y = s ",
        "for i in range(N): ",
        "for (int i = 0; i < N; i++) ",
    ),
    *(
        "if (s) { ",
        "while (s) ",
        "along i in 0:N { ",
        "RDom r(0, 9) ",
        "where i in 0:N ",
        "where i < N, ",
        "i = 0:N, ",
        "i from 0 to N, ",
        "i in 0:N:2, ",
    ),
    *(
        "0 <= i < N, ",
        "<> ",
        "s <> ",
        "s === ",
        "+ ",
        "=! ",
        "+=! ",
        "max= ",
        "unsigned char ",
        "numeric_limits<float>::max() + ",
        "f(A)(i) + ",
        "(A)",
    ),
    *(
        "f^s(A) + ",
        "1.5.5 ",
        "08 ",
        "1_000 + ",
        "$",
        "−",
        "\u200b",
        "None + ",
        "A(i), ",
        "i, j ",
        "A.0.1 ",
        "def ",
        "reduce r(",
        "const float ",
    ),
)
"""What other languages write, and what is left of it where something is missing."""
_FOREIGN_NESTED = {
    "square reads": ("A[", "i", "]"),
    "square reads beside": ("A[i, ", "i", "]"),
    "slices": ("A[1:", "i", "]"),
    "slices of slices": ("(", "A", ")[1:]"),
    "square groups": ("[", "i", "]"),
    "braces": ("{", "i", "}"),
    "braced reads": ("A{", "i", "}"),
    "subscripts of formulas": ("A_{", "i", "}"),
    "bars": ("|s - ", "i", "|"),
    "bars alone": ("|", "i", "|"),
    "brackets of two kinds": ("A([", "i", "])"),
    "brackets of three kinds": ("(A[{", "i", "}])"),
    "crossed brackets": ("(A[", "i", ")]"),
    "open round ones": ("A[(", "i", "]"),
    "open square ones": ("A([", "i", ")"),
    "open reads": ("A[", "i", ""),
    "closed reads": ("A", "(i)", "]"),
    "modules": ("np.exp(", "i", ")"),
    "casts": ("(float)(", "i", ")"),
    "casts of C++": ("static_cast<float>(", "i", ")"),
    "methods": ("(", "A(i)", ").exp()"),
    "roots": ("\\sqrt{", "i", "}"),
    "fractions": ("\\frac{", "i", "}{s}"),
    "named parts": ("(x := ", "s", ")"),
    "choices behind": ("(", "i", " if s else 0)"),
    "choices": ("if (s) (", "i", ") else 0"),
    "lists": ("[", "i", " for i in A]"),
    "negations": ("not (", "s", ")"),
    "sums": ("sum(", "A(i)", ")"),
    "named arguments": ("f(", "A", ", axis=0)"),
    "powers": ("(", "A(i)", ")**2"),
    "texts": ("'(", "i", ")'"),
    "calls of calls": ("f(", "A", ")(i)"),
}
_AROUND_FOREIGN: dict[str, tuple[str, str]] = {
    "value": (F, "@"),
    "read": (F, "X@"),
    "subscript": (I, "@"),
    "clause": (F, "A(i) where @"),
    "statements": (F.replace("Y(i) = @", "@"), "@"),
    "target": (F.replace("Y(i) = @", "Y@ = A(i)"), "@"),
    "parameters": ("def f(float(N) X, @) -> (Y) { Y(i) = X(i) }", "@"),
    "results": ("def f(float(N) X) -> (@) { Y(i) = X(i) }", "@"),
    "reducer": ("reduce r(float a, float b) = @ from 0", "@"),
    "text": ("@", "@"),
}


def _def(n: int, body: str) -> str:
    return f"def f{n}(float(N) X) -> (Y) {{ {body} }}"


def _after(n: int) -> str:
    return f"A{n}(i) = {f'A{n - 1}' if n else 'X'}(i)"


def constructs() -> dict[str, Construct]:
    """Texts of `%%tc` by name; each is made for a length in characters."""
    found: dict[str, Construct] = {}
    for wide, (item, separator) in _WIDE.items():
        for around, make in _AROUND_WIDE.items():
            found[f"many {wide} in {around}"] = lambda length, i=item, s=separator, m=make: m(
                _many(i, length - 120, "@", s)
            )
            if wide in ("sum", "digits", "words", "unknown words"):
                continue
            for count in (12, 60, 125):
                found[f"{count} {wide} in {around}"] = lambda length, i=item, s=separator, m=make, c=count: m(
                    s.join(i(n) for n in range(c))
                )
    for nested, (opening, middle, closing) in _NESTED.items():
        for around, make in _AROUND_WIDE.items():
            for depth in (8, 30, 60, 10_000_000):
                found[f"{nested} {depth} deep in {around}"] = (
                    lambda length, o=opening, m=middle, c=closing, a=make, d=depth: a(
                        o * (n := min(d, max(1, (length - 120) // len(o + c)))) + m + c * n
                    )
                )
    for let, (first, value) in _LETS.items():
        for last in ("@", "A(@)", "A(i + @)", "X(@, i)", "(@ > 0 ? A(i) : 0)", "min(@, @)"):
            for limit in (150, 300, 600, 10_000_000):
                found[f"{let} lets as {last} of {limit}"] = lambda length, f=first, v=value, l=last, c=limit: _doubling(
                    f, v, l, min(length, c), F
                )
    for around, (text, part) in _AROUND_FOREIGN.items():
        whole = text.replace("@", part)
        for foreign in _FOREIGN:
            found[f"foreign {foreign!r} in {around}"] = lambda length, f=foreign, w=whole: _repeated(f, length, w)
        for nested, (opening, middle, closing) in _FOREIGN_NESTED.items():
            found[f"foreign {nested} in {around}"] = lambda length, n=(opening, middle, closing), w=whole: _nested(
                *n, length, w
            )
    for name, statement in _STATEMENTS.items():
        for limit in (1000, 10_000_000):
            found[f"{name} of {limit}"] = lambda length, s=statement, c=limit: _many(
                s, min(length, c), "def f(float(N) A, float(N, M) X) -> (Y) { @ Y(i) = A(i) }"
            )
    found |= {
        "defs": lambda length: _many(lambda n: _def(n, "Y(i) = X(i)"), length, "@"),
        "chained defs": lambda length: _many(
            lambda n: _def(n, f"Y = f{n - 1}(X)" if n else "Y(i) = X(i) + X(i + 1)"), length, "@"
        ),
        "chained stencils": lambda length: _many(
            lambda n: _def(n, f"A = f{n - 1}(X) Y(i) = A(i) + A(i + 1)" if n else "Y(i) = X(i) + X(i + 1)"),
            length,
            "@",
        ),
        "calls of a long def": lambda length: _many(
            lambda n: _def(n, "Y = f0(X)" if n else _many(_after, length // 2, "@ Y(i) = A0(i)")), length, "@"
        ),
        "doubling defs": lambda length: _many(
            lambda n: _def(n, f"Z = f{n - 1}(X) Y = f{n - 1}(Z)" if n else "Y(i) = X(i) + X(i + 1)"), length, "@"
        ),
        "halving defs": lambda length: _many(
            lambda n: _def(n, f"Z = f{n - 1}(X) Y = f{n - 1}(Z)" if n else "Y(i) = X(2*i) + X(i + 1)"), length, "@"
        ),
        "defs that call themselves": lambda length: _many(lambda n: _def(n, f"Y = f{n + 1}(X)"), length, "@"),
        "parameters": lambda length: _many(
            lambda n: f"float(N{n}) A{n}", length, "def f(@) -> (Y) { Y(i) = A0(i) }", ", "
        ),
        "parameters of one size": lambda length: _many(
            lambda n: f"float(N) A{n}", length, "def f(@) -> (Y) { Y(i) = A0(i) }", ", "
        ),
        "results": lambda length: _many(lambda n: f"Y{n}", length, "def f(float(N) A) -> (@) { Y0(i) = A(i) }", ", "),
        "targets of a reducer": lambda length: _many(
            lambda n: f"Y{n}",
            length,
            "reduce r(float a, float b) = a + b from 0 def f(float(N) X) -> (Y0) { @ r=! X(i) }",
            ", ",
        ),
        "dimensions": lambda length: _many(
            lambda n: f"N{n}", length // 3, "def f(float(@) A) -> (Y) { Y(^) = A(^) }", ", "
        ).replace("^", ", ".join(f"i{n}" for n in range(length // 18))),
        "dimensions of sums": lambda length: (
            lambda c: (
                f"def f(float({', '.join(f'N{n}' for n in range(c))}) A) -> (Y) {{ Y({', '.join(f'i{n}' for n in range(c))})"
                f" = A({', '.join(f'i{n} + 1' for n in range(c))}) }}"
            )
        )(length // 24),
        "300 dimensions": lambda length: (
            lambda c: (
                f"def f(float({', '.join(f'N{n}' for n in range(c))}) A) -> (Y) {{ Y({', '.join(f'i{n}' for n in range(c))})"
                f" = A({', '.join(f'i{n}' for n in range(c))}) }}"
            )
        )(300),
        "dimensions with a border": lambda length: (
            lambda c: (
                f"def f(float({', '.join(f'N{n}' for n in range(c))}) A) -> (Y) {{ Y(i0) = A("
                f"{', '.join(f'i0 - {n}' for n in range(c))}) else 0 where i0 in 0:N0 }}"
            )
        )(min(length // 12, 400)),
        "one size in all dimensions": lambda length: (
            lambda c: (
                f"def f(float({', '.join('N' for n in range(c))}) A) -> (Y) {{ Y({', '.join(f'i{n}' for n in range(c))})"
                f" = A({', '.join(f'i{n} + i{n - 1}' if n else 'i0' for n in range(c))}) }}"
            )
        )(length // 20),
        "arguments of a call": lambda length: (
            lambda c: (
                f"def g({', '.join(f'float(N) A{n}' for n in range(c))}) -> (Z) {{ Z(i) = A0(i) }} "
                f"def f(float(N) A) -> (Y) {{ Y = g({', '.join('A' for n in range(c))}) }}"
            )
        )(length // 22),
        "where clauses": lambda length: F.replace(
            "@", _many(lambda n: f"k{n} in 0:{n}", length - 120, "A(i) where @", ", ")
        ),
        "used where clauses": lambda length: F.replace(
            "@", _many(lambda n: f"k{n} in 0:A.0 + {n}", length // 2, "A(i + ^) where @", ", ")
        ).replace("^", " + ".join(f"k{n}" for n in range(100))),
        "exists clauses": lambda length: F.replace(
            "@", _many(lambda n: f"exists A(i + {n})", length - 120, "A(i) where @", ", ")
        ),
        "long name": lambda length: f"def f(float(N) X) -> (Y) {{ Y(i) = {'X' * length}(i) }}",
        "long number": lambda length: f"def f(float(N) X) -> (Y) {{ Y(i) = X(i + {'9' * length}) }}",
        "long float": lambda length: f"def f(float(N) X) -> (Y) {{ Y(i) = X(i) * 1.{'9' * length} }}",
        "long exponent": lambda length: f"def f(float(N) X) -> (Y) {{ Y(i) = X(i) * 1e{'9' * length} }}",
        "long extent": lambda length: f"def f(float({'9' * length}) X) -> (Y) {{ Y(i) = X(i) }}",
        "long hexadecimal": lambda length: f"def f(float(N) X) -> (Y) {{ Y(i) = X(i + 0x{'F' * length}) }}",
        "long end": lambda length: f"def f(float(N) X) -> (Y) {{ Y(i) = 1.0 where i in 0:{'9' * length} }}",
        "comment": lambda length: "def f(float(N) X) -> (Y) { Y(i) = X(i) } #" + "x" * length,
        "comments": lambda length: _many(lambda n: "# allow TC321\n", length, "@", ""),
        "lines": lambda length: "\n" * length,
        "brackets": lambda length: "(" * length,
        "braces": lambda length: "{" * length,
        "unlike brackets": lambda length: "([{" * (length // 3),
        "words": lambda length: "def " * (length // 4),
        "opened defs": lambda length: "def f(" * (length // 6),
        "signs": lambda length: "\x00\ud7ff?" * (length // 3),
        "commas": lambda length: "def f(" + "," * length + ") -> (Y) { Y(i) = X(i) }",
        "assignments": lambda length: "def f(float(N) X) -> (Y) { " + "Y(i) = " * (length // 7) + " }",
        "quotes": lambda length: "def f(float(N) X) -> (Y) { Y(i) = " + "'" * length + " }",
    }
    return found


# --- texts of %%sac --------------------------------------------------------------------------------------------------------------


def _sac(n: int, body: str) -> str:
    return f"int[.] f{n}(int[.] a) {{ {body} }}"


_SAC_VALUE = "int[.] f(int[.] a, int s) { return @; }"
_SAC_NESTED = {
    "parentheses": ("(", "a", ")"),
    "minus": ("-", "a", ""),
    "calls": ("abs(", "a", ")"),
    "concatenation": ("(a ++ ", "a", ")"),
    "take": ("take([3], ", "a", ")"),
    "drop": ("drop([1], ", "a", ")"),
    "reverse": ("reverse(", "a", ")"),
    "selection": ("a[", "s", "]"),
    "selection of a vector": ("a[[", "s", "]]"),
    "vector": ("[", "s", "]"),
    "vector beside": ("[s, ", "s", "]"),
    "comprehension": ("{ [i] -> ", "a[i]", " }"),
    "comprehension with bound": ("{ [i] -> ", "s", " | [i] < shape(a) }"),
    "comprehension in bound": ("{ [i] -> a[i] | [i] < shape(", "a", ") }"),
    "choice": ("(s > 0 ? ", "a", " : a)"),
    "condition": ("(sum(", "a", ") > 0 ? a : a)"),
    "sum": ("[sum(", "a", ")]"),
    "genarray": ("genarray([s], ", "s", ")"),
    "with": ("with { ([0] <= iv < [s]) : ", "s", "; } : genarray([s], 0)"),
    "with in bound": ("with { ([0] <= iv < shape(", "a", ")) : a[iv]; } : genarray(shape(a), 0)"),
    "concatenation in bound": ("{ [i] -> a[i] | [i] < shape(a ++ ", "a", ") }"),
    "every operator": ("s == 0 || s > 0 && s == s < ([s] ++ [s])[0] + 1 * (", "s", ")"),
    "reduction": ("sum({ [i] -> ", "s", " | [i] < [s] })"),
    "mask": ("where(a > 0, ", "a", ", a)"),
    "rotation": ("rotate([1], ", "a", ")"),
    "reshape": ("reshape([s], ", "a", ")"),
}
_SAC_FOREIGN = (
    *(
        "[s]",
        "[s",
        "a[s] + ",
        "a[:, s] + ",
        "a[1:] - ",
        "[1:]",
        "a(s) + ",
        "a{s} + ",
        "{",
        "}",
        "(s",
        ")",
        "]",
        "|",
        "||",
        "|a| + ",
        "'",
        '"',
    ),
    *(
        '"a" + ',
        "/*",
        "//",
        "a if s else ",
        "if (s) a else ",
        "else ",
        "s ? ",
        "for i in a ",
        "[i for i in a] ",
        "not ",
        "s and ",
        "s xor ",
        "s mod ",
    ),
    *(
        "a.T + ",
        "a.shape + ",
        "a.sum() + ",
        ".exp()",
        "np.",
        "np.abs(a) + ",
        "sum(",
        "map(abs, ",
        "lambda x: ",
        "x -> ",
        "(float)",
        "(float)a + ",
    ),
    *(
        "a**2 + ",
        "a**",
        "a^2 + ",
        "a² + ",
        "α + ",
        "Σ",
        "@",
        "a @ ",
        "a .* ",
        "a <> ",
        "=== ",
        "+= ",
        "++ ",
        "+ ",
        "let x = s in ",
        "return ",
        "print(a); ",
    ),
    *(
        "x = ",
        "x, y = ",
        "if (s) { ",
        "while (s) ",
        "for (i = 0; i < s; i++) { ",
        "{ [i] -> ",
        "[i] -> a[i] | ",
        "with { ",
        "genarray(",
        "s : ",
        "; ",
        ", ",
    ),
    *(
        "int x = s; ",
        "def ",
        "int f(",
        "int[",
        "1.5.5 ",
        "08 ",
        "$",
        "−",
        "\u200b",
        "None + ",
        "...",
        "a[...] + ",
        "a[[s] + ",
        "a[[s]",
    ),
)
_SAC_FOREIGN_NESTED = {
    "slices": ("a[1:", "s", "]"),
    "braces": ("{", "s", "}"),
    "braced reads": ("a{", "s", "}"),
    "bars": ("|s - ", "s", "|"),
    "brackets of two kinds": ("a([", "s", "])"),
    "crossed brackets": ("(a[", "s", ")]"),
    "open round ones": ("a[(", "s", "]"),
    "open square ones": ("a([", "s", ")"),
    "open vectors": ("[[", "s", "]"),
    "modules": ("np.abs(", "a", ")"),
    "methods": ("(", "a", ").abs()"),
    "choices behind": ("(", "a", " if s else 0)"),
    "lists": ("[", "a", " for i in a]"),
    "maps": ("map(abs, ", "a", ")"),
    "powers": ("(", "a", ")**2"),
    "calls of calls": ("f(", "a", ")(s)"),
}
_AROUND_SAC_FOREIGN = {
    "value": _SAC_VALUE,
    "statements": "int[.] f(int[.] a, int s) { @ return a; }",
    "bound": _SAC_VALUE.replace("@", "{ [i] -> a[i] | [i] < @ }"),
    "parameters": "int[.] f(int[.] a, @) { return a; }",
    "text": "@",
}
_SAC_WIDE = {
    "sum": (lambda n: "a", " + "),
    "different": (lambda n: f"a * {n}", " + "),
    "product": (lambda n: "(a + s)", " * "),
    "concatenation": (lambda n: "a", " ++ "),
    "components": (lambda n: f"[s, {n}]", " + "),
    "comprehensions": (lambda n: f"{{ [i] -> a[i] + {n} }}", " + "),
    "sums": (lambda n: f"sum({{ [i] -> a[i] * {n} }})", " + "),
    "takes": (lambda n: f"take([{n}], a)", " ++ "),
}
_SAC_LETS = {
    "doubled": "x{m} + x{m}",
    "doubled concatenation": "x{m} ++ x{m}",
    "doubled comprehension": "{{ [i] -> x{m}[i] + x{m}[i] }}",
    "doubled selection": "{{ [i] -> x{m}[[i]] * x{m}[[0]] }}",
    "doubled take": "take([2], x{m}) ++ drop([1], x{m})",
    "doubled call": "abs(x{m}) + abs(x{m})",
    "chain": "x{m} + 1",
    "shape": "genarray(shape(x{m}) + shape(x{m}), 1)",
    "boxes": "{{ [i] -> x{m}[i] | [i] < shape(x{m}); [i] -> 0 | [i] < shape(x{m}) * 2 }}",
}
_SAC_BLOCKS = {
    "if (s > 0) { s = s + 1; ": " }",
    "if (s > 0) { s = 2; } else { ": " }",
    "for (i = 0; i < s; i++) { s = s + i; ": " }",
    "do { s = s - 1; ": " } while (s > 0);",
}


def sac_constructs() -> dict[str, Construct]:
    """Texts of `%%sac` by name."""
    found: dict[str, Construct] = {}
    for name, (opening, middle, closing) in _SAC_NESTED.items():
        for depth in (6, 20, 48, 95, 10_000_000):
            found[f"{name} {depth} deep"] = lambda length, o=opening, m=middle, c=closing, d=depth: _SAC_VALUE.replace(
                "@", o * (n := min(d, max(1, (length - 60) // len(o + c)))) + m + c * n
            )
    for around, whole in _AROUND_SAC_FOREIGN.items():
        for foreign in _SAC_FOREIGN:
            found[f"foreign {foreign!r} in {around}"] = lambda length, f=foreign, w=whole: _repeated(f, length, w)
        for name, (opening, middle, closing) in _SAC_FOREIGN_NESTED.items():
            found[f"foreign {name} in {around}"] = lambda length, n=(opening, middle, closing), w=whole: _nested(
                *n, length, w
            )
    for name, (item, separator) in _SAC_WIDE.items():
        for count in (20, 10_000_000):
            found[f"{count} {name}"] = lambda length, i=item, s=separator, c=count: _SAC_VALUE.replace(
                "@", s.join(i(n) for n in range(min(c, length // (len(i(10)) + len(s)))))
            )
    for name, value in _SAC_LETS.items():
        for count in (6, 12, 25, 10_000_000):
            found[f"{count} {name} variables"] = lambda length, v=value, c=count: (
                lambda k: (
                    f"int[.] f(int[.] x0) {{ {' '.join(f'x{n + 1} = {v.format(m=n)};' for n in range(k))} return x{k}; }}"
                )
            )(min(c, length // (len(v) + 12)))
    found |= {
        "functions": lambda length: _many(lambda n: _sac(n, "return a + 1;"), length, "@"),
        "chained functions": lambda length: _many(
            lambda n: _sac(n, f"return f{n - 1}(a);" if n else "return a + 1;"), length, "@"
        ),
        "doubling functions": lambda length: _many(
            lambda n: _sac(n, f"return f{n - 1}(f{n - 1}(a));" if n else "return a + 1;"), length, "@"
        ),
        "doubling comprehensions": lambda length: _many(
            lambda n: _sac(n, f"return {{ [i] -> f{n - 1}(a)[i] + f{n - 1}(a)[0] }};" if n else "return a + 1;"),
            length,
            "@",
        ),
        "chain of deep functions": lambda length: _many(
            lambda n: _sac(n, f"return {'abs(' * 40}{f'f{n - 1}(a)' if n else 'a'}{')' * 40};"), length, "@"
        ),
        "short chain of deep functions": lambda length: _many(
            lambda n: _sac(n, f"return {'abs(' * 90}{f'f{n - 1}(a)' if n else 'a'}{')' * 90};"),
            min(length, 12_000),
            "@",
        ),
        "chain of conditions": lambda length: _many(
            lambda n: f"if (s > {n}) {{ s = s + {n}; }} else {{ s = s * 2; }}",
            length - 60,
            "int f(int s) { @ return s; }",
        ),
        **{
            f"nested blocks {opening}": lambda length, o=opening, c=closing: _nested(
                o, "s = 1;", c, length, "int f(int s) { @ return s; }"
            )
            for opening, closing in _SAC_BLOCKS.items()
        },
        "results of one call": lambda length: (
            lambda n: (
                f"{', '.join(['int'] * n)} g(int a) {{ return ({', '.join(['a'] * n)}); }} "
                f"int f(int a) {{ {', '.join(f'x{k}' for k in range(n))} = g(a); return x0; }}"
            )
        )(max(1, length // 16)),
        "rounds": lambda length: "int[.] f(int[.] a) { for (i = 0; i < 250; i++) { a = a + i * a; } return a; }",
        "definitions of one name": lambda length: _many(lambda n: f"int f(int[{n}] a) {{ return a[0]; }}", length, "@"),
        "ranks": lambda length: _many(lambda n: ".", length // 2, "int[@] f(int[@] a) { return a; }", ","),
        "parameters": lambda length: _many(lambda n: f"int[.] a{n}", length, "int[.] f(@) { return a0; }", ", "),
        "long number": lambda length: f"int f(int a) {{ return a + {'9' * length}; }}",
        "long name": lambda length: f"int f(int a) {{ return {'a' * length}; }}",
        "brackets": lambda length: "(" * length,
        "braces": lambda length: "{" * length,
        "vector": lambda length: _SAC_VALUE.replace("@", _many(lambda n: f"{n}", length - 60, "[@]", ", ")),
        "matrix": lambda length: _SAC_VALUE.replace("@", _many(lambda n: f"[{n}, s]", length - 60, "[@]", ", ")),
        "partitions": lambda length: _SAC_VALUE.replace(
            "@", _many(lambda n: f"[i] -> {n} | [{n}] <= [i] < [{n + 1}]", length - 60, "{ @ }", "; ")
        ),
        "partitions of products": lambda length: _many(
            lambda n: f"[i, j] -> 1 | [n/{n + 1}, m] <= [i, j] < [n + {n}, m*{n}]",
            length - 60,
            "int[.,.] f(int n, int m) { return { @; [i, j] -> 0 | [i, j] < [n*n, m*m] }; }",
            "; ",
        ),
    }
    return found


# --- mutants -----------------------------------------------------------------------------------------------------------------------


@cache
def programs() -> tuple[tuple[str, str], ...]:
    """Language and text of every program of the cases and suites."""
    found: list[tuple[str, str]] = []
    for path in sorted((HERE / "cases").glob("*/*.md")):
        found += [(case.language, case.program) for case in read_cases(path)]
    for path in sorted((ROOT / "tc_jupyter" / "bench" / "suites").glob("*")):
        if path.suffix in (".tc", ".sac"):
            found.append((path.suffix[1:], path.read_text(encoding="utf-8")))
    return tuple(found)


_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


class Mutants:
    """Programs with parts repeated, nested, exchanged or made large."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self, length: int) -> tuple[str, str]:
        """Language and text of the next one."""
        language, text = self.random.choice(programs())
        for _ in range(self.random.randint(1, 6)):
            text = self.random.choice((self.repeat, self.nest, self.exchange, self.number, self.delete, self.join))(
                text, language, length
            )
        return language, text[:length]

    def piece(self, text: str) -> tuple[int, int]:
        """The ends of a piece whose brackets match, where one is found quickly."""
        tokens = [each.span() for each in _TOKEN.finditer(text)]
        if not tokens:
            return 0, 0
        for _ in range(10):
            first = self.random.randrange(len(tokens))
            last = min(len(tokens) - 1, first + self.random.choice((0, 1, 3, 5, 8, 13, 30)))
            part = text[tokens[first][0] : tokens[last][1]]
            if all(part.count(a) == part.count(b) for a, b in ("()", "[]", "{}")):
                break
        return tokens[first][0], tokens[last][1]

    def repeat(self, text: str, language: str, length: int) -> str:
        start, end = self.piece(text)
        part = text[start:end]
        separator = self.random.choice((" ", " + ", " * ", ", ", " && ", " / ", "; ", "\n", " % ", " < ", " ++ ", ""))
        count = self.random.choice((2, 3, 8, 30, 100, max(1, (length - len(text)) // (len(part + separator) or 1))))
        return text[:start] + separator.join([part] * max(1, count)) + text[end:]

    def nest(self, text: str, language: str, length: int) -> str:
        start, end = self.piece(text)
        kinds = [*_NESTED.values()] if language == "tc" else [*_SAC_NESTED.values()]
        opening, _, closing = self.random.choice(kinds)
        count = self.random.choice((1, 2, 5, 20, 60, 200, 1000))
        return text[:start] + opening * count + text[start:end] + closing * count + text[end:]

    def exchange(self, text: str, language: str, length: int) -> str:
        start, end = self.piece(text)
        _, other = self.random.choice([each for each in programs() if each[0] == language])
        first, last = self.piece(other)
        return text[:start] + other[first:last] + text[end:]

    def number(self, text: str, language: str, length: int) -> str:
        start, end = self.piece(text)
        large = ("0", "1", "7", "2147483648", "9223372036854775807", "9" * 40, "9" * 1000, "1e300", "N", "i", "-1")
        return text[:start] + self.random.choice(large) + text[end:]

    def delete(self, text: str, language: str, length: int) -> str:
        start, end = self.piece(text)
        return text[:start] + text[end:]

    def join(self, text: str, language: str, length: int) -> str:
        _, other = self.random.choice([each for each in programs() if each[0] == language])
        return text + "\n" + other


# --- questions -----------------------------------------------------------------------------------------------------------------------


def questions(text: str, language: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """All that an editor or a notebook asks about a text, by name."""
    analysis = analyze(text, language)
    yield "analyze", lambda: None
    yield "json", analysis.to_json
    yield "messages", analysis.render
    yield "text", lambda: text_form(analysis)
    yield "card", lambda: html_card(analysis, "cpu")

    def formulas() -> None:
        for found in analysis.functions.values():
            for index in [r for all_of in found.ranges.indices.values() for r in all_of][:5]:
                if index.lower is not None and index.upper is not None:
                    with suppress(FormulaUnavailable):
                        range_latex(index.index, index.lower, index.upper)

    yield "formulas", formulas
    yield "check", lambda: ide.check(text, language)
    lines = text.split("\n")
    places = [
        {"line": line, "character": int(len(lines[line]) * part)}
        for line in sorted({0, len(lines) // 2, len(lines) - 1})
        for part in (0.1, 0.5, 0.9, 0.999)
    ]
    for number, place in enumerate(places):
        yield f"hover {number}", lambda place=place: ide.hover(text, place, language)
        yield f"complete {number}", lambda place=place: ide.complete(text, place, language)
        yield f"signature {number}", lambda place=place: ide.signature(text, place, language)
        yield f"definition {number}", lambda place=place: ide.definition(text, place, language)
        yield f"rename {number}", lambda place=place: ide.rename(text, place, "renamed", language)
    yield "format", lambda: ide.format_text(text, language)
    yield "defines", lambda: ide.defines(text, language)
    yield (
        "cells",
        lambda: ide.inspect("cells", cells=[{"cell": "x", "version": 1, "source": text, "language": language}]),
    )


@dataclass(frozen=True)
class Outcome:
    """What became of the questions: the slowest one and its processor seconds, or what went wrong."""

    slowest: str
    seconds: float
    memory: int
    problem: str = ""


def _ask(text: str, language: str) -> Outcome:
    slowest, most = "", 0.0
    before = time.process_time()
    try:
        for name, question in questions(text, language):
            question()
            now = time.process_time()
            if now - before > most:
                slowest, most = name, now - before
            before = now
    except Exception:
        return Outcome(slowest, time.process_time() - before, 0, traceback.format_exc(limit=-6))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Outcome(slowest, most, peak)


def _size_of_process() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def measure(text: str, language: str, seconds: float) -> Outcome:
    """Ask everything in a child process that may use that many seconds of a processor, and `MEMORY` bytes more than this one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  (another process)
        os.close(reading)
        limit = max(1, int(seconds))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        most = _size_of_process() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        outcome = _ask(text, language)
        os.write(writing, repr((outcome.slowest, outcome.seconds, outcome.memory, outcome.problem[-20_000:])).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) or not said:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        what = "took too long" if number in (signal.SIGXCPU, signal.SIGKILL) else f"ended by signal {number}"
        return Outcome("", seconds, 0, what)
    slowest, took, memory, problem = eval(said.decode(), {})  # what the child wrote
    return Outcome(slowest, took, memory, problem)


def warm() -> None:
    """Import what the questions need, so that no child does."""
    for language, text in (
        ("tc", "def f(float(N) X) -> (Y) { Y(i) = X(i) + X(i / 2) }"),
        ("sac", "int f(int a) { return a; }"),
    ):
        outcome = _ask(text, language)
        assert not outcome.problem, outcome.problem


# --- by hand ---------------------------------------------------------------------------------------------------------------------------


def main() -> None:
    """All constructs, then mutants until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--length", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--language", default="")
    chosen = parser.parse_args()
    warm()
    end = time.monotonic() + 60 * chosen.minutes
    limit = SECONDS[10_000] if chosen.length <= 10_000 else SECONDS[100_000]
    count = bad = 0

    def one(name: str, language: str, text: str) -> None:
        nonlocal count, bad
        outcome = measure(text, language, chosen.seconds)
        count += 1
        if outcome.problem or outcome.seconds > limit:
            bad += 1
            with chosen.log.open("a", encoding="utf-8", errors="backslashreplace") as file:
                last = outcome.problem.strip().splitlines()[-1:] or [""]
                print(
                    f"{name!r} [{language}] {len(text)}: {outcome.slowest} {outcome.seconds:.1f} s {last[0]}", file=file
                )
                if not name.isprintable() or name.startswith("mutant"):
                    print(repr(text[:3000]), file=file)
                if outcome.problem:
                    print("    " + outcome.problem.replace("\n", "\n    ")[-1500:], file=file)

    for language, made in (("tc", constructs()), ("sac", sac_constructs())):
        if chosen.language not in ("", language):
            continue
        shuffled = random.Random(chosen.seed).sample(sorted(made), len(made))
        for name in shuffled:
            construct = made[name]
            if re.search(chosen.only, name) and time.monotonic() < end:
                one(name, language, construct(chosen.length))
    print(f"{count} constructs, {bad} bad", flush=True)
    mutants = Mutants(chosen.seed)
    while time.monotonic() < end and not chosen.only:
        language, text = mutants.draw(chosen.length)
        if chosen.language in ("", language):
            one(f"mutant {chosen.seed} {count}", language, text)
    print(f"{count} texts, {bad} bad", flush=True)


if __name__ == "__main__":
    sys.exit(main())
