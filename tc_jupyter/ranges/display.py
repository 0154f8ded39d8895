"""Size expressions and conditions as text: Python expressions over names.

Worked example: the condition `J - I - K + 1 >= 0` prints `I + K <= J + 1`; the bound `floor((X - 1)/D) + 1` prints
`(X + D - 1)//D`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias, assert_never

from tc_jupyter.program import Program

from .size_expr import (
    Atom,
    Choice,
    Condition,
    Datum,
    Extremum,
    FloorDiv,
    Mod,
    Monomial,
    Name,
    Opaque,
    Product,
    SizeExpr,
    atom_parts,
    constant,
    of_atom,
)

Term: TypeAlias = tuple[Monomial, int]
Order: TypeAlias = tuple[int, int, int, tuple[int, ...], str]

DIGIT_MARK = "ø"
"""No name of the language has this letter."""
_DIGIT_NAME = re.compile(r"(?<![\w.])\d+[A-Za-z_]\w*")
DEEP = 10  # levels that are written without further ado
KINDS = {"index": 0, "extreme": 0, "size": 1, "scalar": 1, "symbol": 1}


def to_python(e: SizeExpr) -> str:
    """The Python expression of `e`; evaluating it with integers for the names gives the value.

    The only exceptions are elements of tensors, which print as in the program (`C(i)`, in `%%sac` `C[i]`). The text is kept with
    `e`: expressions inside of expressions are asked for again by everything around them.
    """
    if e.text is None:
        if e.depth > DEEP:
            _write_inner(e)
        e.text = _text(e)
    return e.text


def _write_inner(e: SizeExpr) -> None:
    """Make the texts of the atoms inside, inner ones first, so that writing a deep expression finds them and does not recurse."""
    found: list[Atom] = []
    left = [e]
    while left:
        new = [atom for mono in left.pop().terms for atom in mono if getattr(atom, "shown", None) is None]
        found += new
        left.extend(part for atom in new for part in atom_parts(atom))
    for atom in reversed(found):
        _atom_text(atom)


def python_code(text: str) -> str:
    """A text of `to_python` to be run: names that start with a digit get a letter that no name of the language has.

    Worked example: `N - 4k` becomes `N - ø4k`.
    """
    return _DIGIT_NAME.sub(rf"{DIGIT_MARK}\g<0>", text)


def _text(e: SizeExpr) -> str:
    e = _arranged(e)
    lone = _lone_extremum(e)
    if lone is not None:
        return lone
    ceiling = _ceiling(e)
    if ceiling is not None:
        return ceiling
    shown = _shown(e)
    positive: list[str] = []
    negative: list[str] = []
    for mono, c in shown:  # a loop: a comprehension would be one more call for every level
        (positive if c > 0 else negative).append(_term_text(mono, abs(c)))
    parts = list(positive)
    offset = e.offset
    if not positive:
        if offset or not negative:
            parts.append(str(offset))
        elif negative:
            first = shown[0][0]
            if len(first) == 1 and isinstance(first[0], FloorDiv | Mod) and shown[0][1] == -1:
                negative[0] = f"({negative[0]})"  # -a//b is (-a)//b in Python
            return "-" + " - ".join(negative)
        offset = 0
    text = " + ".join(parts)
    if negative:
        text += " - " + " - ".join(negative)
    if offset:
        text += f" + {offset}" if offset > 0 else f" - {-offset}"
    return text


def _lone_extremum(e: SizeExpr) -> str | None:
    """`min(..) + 2` and `20 - min(..)` with the constant inside."""
    if len(e.terms) != 1:
        return None
    mono, c = next(iter(e.terms.items()))
    atom = mono[0]
    if len(mono) != 1 or not isinstance(atom, Extremum) or c not in (1, -1):
        return None
    kind = atom.kind if c == 1 else {"min": "max", "max": "min"}[atom.kind]
    return _call_text(kind, [argument * c + e.offset for argument in atom.arguments])


def _call_text(kind: str, arguments: list[SizeExpr]) -> str:
    ordered = sorted(arguments, key=_argument_order)
    return f"{kind}({', '.join(map(to_python, ordered))})"


def _argument_order(e: SizeExpr) -> tuple[bool, list[Order]]:
    return (not e.terms, [_term_order(mono) for mono, _ in _shown(e)])


def _ceiling(e: SizeExpr) -> str | None:
    """`(X - 1)//D + 1` with a symbolic `D` as `(X + D - 1)//D`."""
    if len(e.terms) != 1:
        return None
    mono, c = next(iter(e.terms.items()))
    atom = mono[0]
    if len(mono) != 1 or c != 1 or not isinstance(atom, FloorDiv) or atom.divisor.is_constant:
        return None
    if e.offset != 1 or atom.numerator.offset >= 0:
        return None
    if not all(k > 0 for k in (*atom.numerator.terms.values(), *atom.divisor.terms.values())):
        return None
    joined = to_python(SizeExpr(atom.numerator.terms, 0)) + " + " + to_python(atom.divisor)
    offset = atom.numerator.offset
    return f"({joined} - {-offset})//{_factor(atom.divisor)}"


def _shown(e: SizeExpr) -> list[Term]:
    """Terms in the order of the text: indices, then sizes in signature order, then composite atoms."""
    if len(e.terms) < 2:
        return list(e.terms.items())
    return sorted(e.terms.items(), key=lambda item: _term_order(item[0]))


def _arranged(e: SizeExpr) -> SizeExpr:
    """`-floor((KW - W + 1)/2)` as `floor((W - KW)/2)`: the sign for which the first name inside is positive.

    The canonical form orders by name, the text by position in the signature.
    """
    total = e
    for mono, c in e.terms.items():
        atom = mono[0]
        if len(mono) != 1 or not isinstance(atom, FloorDiv) or not atom.numerator.terms:
            continue
        n, d = atom.numerator, atom.divisor
        if d.limits[0] is None or d.limits[0] < 1 or min(n.terms.items(), key=lambda i: _term_order(i[0]))[1] > 0:
            continue
        # floor(n/d) = -floor((-n + d - 1)/d); a symbolic d leaves the floor as -1
        old = SizeExpr({mono: c}, 0)
        if d.is_constant:
            total = total - old + SizeExpr({(FloorDiv(-n + d - 1, d),): -c}, 0)
        else:
            total = total - old + SizeExpr({(FloorDiv(-n - 1, d),): -c}, -c)
    return total


def _term_order(mono: Monomial) -> Order:
    names = [atom for atom in mono if isinstance(atom, Name)]
    if len(names) < len(mono):
        inside = [a.position for atom in mono for part in atom_parts(atom) for a in part.atoms() if isinstance(a, Name)]
        return (2, min(inside, default=0), 1, (), _term_text(mono, 1))
    ordered = sorted(names, key=_name_order)
    kind = min(KINDS[name.kind] for name in names)
    first = min(name.position for name in names if KINDS[name.kind] == kind)
    return (kind, first, len(mono), tuple(name.position for name in ordered), ordered[0].name)


def _name_order(atom: Atom) -> tuple[int, int, str]:
    """Sizes before indices inside a product: `S*i`."""
    if isinstance(atom, Name):
        rank = {"size": 0, "scalar": 0, "symbol": 0, "extreme": 1, "index": 2}[atom.kind]
        return (rank, atom.position, atom.name)
    return (3, 0, "")


def _term_text(mono: Monomial, c: int) -> str:
    atoms = sorted(mono, key=_name_order)
    if c == 1 and len(atoms) == 1:
        return _atom_text(atoms[0])
    factors = [_factor(of_atom(atom)) for atom in atoms]
    return "*".join(factors if c == 1 else [str(c), *factors])


def _factor(e: SizeExpr) -> str:
    """The text of `e` where a product or divisor stands around it."""
    text = to_python(e)
    if e.is_constant:
        return text if e.offset >= 0 else f"({text})"
    mono, c = next(iter(e.terms.items()))
    if len(e.terms) == 1 and c == 1 and len(mono) == 1 and e.offset == 0:
        if isinstance(mono[0], FloorDiv | Mod):
            return f"({text})"
        return text
    if len(e.terms) == 1 and isinstance(mono[0], Extremum) and len(mono) == 1 and c in (1, -1):
        return text
    return f"({text})"


def _atom_text(atom: Atom) -> str:
    """Kept with the atom: expressions that share it, and the order of their terms, ask again."""
    known: str | None = getattr(atom, "shown", None)
    if known is not None:
        return known
    match atom:
        case Name():
            text = atom.name
        case FloorDiv():
            text = f"{_factor(atom.numerator)}//{_factor(atom.divisor)}"
        case Mod():
            text = f"{_factor(atom.numerator)}%{_factor(atom.divisor)}"
        case Extremum():
            text = _call_text(atom.kind, list(atom.arguments))
        case Product():
            text = "*".join(_factor(factor) for factor in sorted(atom.factors, key=_factor_order))
        case Datum():
            text = element_text(atom.tensor, map(to_python, atom.index), atom.brackets) if atom.index else atom.tensor
        case Choice():
            text = f"({to_python(atom.then)} if {condition_python(atom.condition)} else {to_python(atom.otherwise)})"
        case Opaque():
            text = atom.text
        case _:
            assert_never(atom)
    object.__setattr__(atom, "shown", text)
    return text


def element_text(tensor: str, subscripts: Iterable[str], brackets: str) -> str:
    """An element in the language of the text: `C(i, j)`, in `%%sac` `C[i, j]`."""
    return f"{tensor}{brackets[0]}{', '.join(subscripts)}{brackets[1]}"


def written_tensor(name: str, program: Program) -> str:
    """The tensor of the text that one is for which nobody has written: `P` for `P.max` of `P(n) argmax=! X(n, m)`."""
    target, dot, _ = name.rpartition(".")
    return target if dot and any(each.name == target for each in program.tensors) else name


def _factor_order(e: SizeExpr) -> tuple[int, list[Order]]:
    return (len(e.terms) + bool(e.offset), [_term_order(mono) for mono, _ in _shown(e)])


def condition_python(condition: Condition) -> str:
    """A condition of a `? :` as Python text."""
    match condition.op:
        case ">=":
            return condition_text(condition.arguments[0])
        case "==" | "!=":
            left, right = _sides(condition.arguments[0])
            return f"{to_python(left)} {condition.op} {to_python(right)}"
        case "and" | "or":
            return f" {condition.op} ".join(f"({condition_python(part)})" for part in condition.parts)
        case "true" | "false":
            return "True" if condition.op == "true" else "False"
        case _:
            text = str(condition.key[4])
            return text if condition.polarity else f"not {text}"


def _sides(e: SizeExpr) -> tuple[SizeExpr, SizeExpr]:
    """`(a, b)` with `a - b = e` and plus signs only."""
    e = _arranged(e)
    shown = _shown(e)
    left = SizeExpr({mono: c for mono, c in shown if c > 0}, max(e.offset, 0))
    right = SizeExpr({mono: -c for mono, c in shown if c < 0}, max(-e.offset, 0))
    return left, right


def condition_text(e: SizeExpr) -> str:
    """The text of `e >= 0` with plus signs only: `I + K <= J + 1`, `N >= 5`, `max(C) < J`."""
    larger, smaller = _sides(e)
    if not smaller.terms and larger.terms:
        if smaller.offset == 0:
            return f"0 <= {to_python(e)}"
        return f"{to_python(larger)} >= {smaller.offset}"
    if larger.is_constant and any("(" in name for name in smaller.names):
        return f"{to_python(smaller)} < {larger.offset + 1}"
    if smaller.terms and smaller.offset == 1:
        return f"{to_python(smaller - 1)} < {to_python(larger)}"
    return f"{to_python(smaller)} <= {to_python(larger)}"


def solved(e: SizeExpr) -> SizeExpr:
    """A condition `c >= 0` equivalent to `e >= 0` for positive divisors, with a single floor multiplied out.

    `(I - K)//S + 1 >= 0` becomes `I - K + S >= 0`, which prints `K <= I + S`.
    """
    floors = [(mono, c) for mono, c in e.terms.items() if any(isinstance(atom, FloorDiv) for atom in mono)]
    if len(floors) != 1:
        return e
    mono, q = floors[0]
    atom = mono[0]
    if len(mono) != 1 or not isinstance(atom, FloorDiv):
        return e
    n, d = atom.numerator, atom.divisor
    if d.limits[0] is None or d.limits[0] < 1:
        return e
    rest = SizeExpr({m: c for m, c in e.terms.items() if m != mono}, e.offset)
    if rest.is_constant:
        # q*f + r >= 0 iff f >= ceil(-r/q) (q > 0), iff f <= floor(r/-q) (q < 0)
        rest, q = (constant(rest.offset // q), 1) if q > 0 else (constant(rest.offset // -q), -1)
    if q == 1:
        return solved(n + d * rest)
    if q == -1:
        return solved(d * rest + d - 1 - n)
    return e


def range_text(name: str, lower: SizeExpr, upper: SizeExpr) -> str:
    """`2 <= i < min(N, M + 2)`."""
    return f"{to_python(lower)} <= {name} < {to_python(upper)}"
