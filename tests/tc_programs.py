"""Random cells of every kind that the language reference allows, arguments of every layout, and the judge of both engines.

`cells` draws text, `judge` calls it on the interpreter and the CPU engine and compares both with `tests.tc_evaluator`: ranges, shapes,
values, and whether the call is refused. Programs are drawn so that most are legal; the evaluator says of each call whether it is.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from random import Random

import ml_dtypes
import numpy as np

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Options
from tc_jupyter.function import module_of
from tests.tc_evaluator import (
    UNSURE,
    Apply,
    Def,
    Dimension,
    Name,
    Number,
    Outcome,
    Parser,
    Refused,
    Rejected,
    Unary,
    Unclear,
    evaluate,
)

SIZES = ("N", "M", "K", "L")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float", "float", "double", "half", "bfloat16")
NAMES = ("i", "j", "k", "l", "m")
NUMPY = {"bfloat16": ml_dtypes.bfloat16}


REDUCERS = (
    ("reduce r0(int32 a, int32 b) = a + b + 3*a*b from 0", "int32({0})"),
    ("reduce r1(float a, float b) = min(a, b) from inf with x -> abs(x)", "float({0})"),
    (
        "reduce r2(int32 v, int64 k, int32 w, int64 l) = (max(v, w), v == w ? min(k, l) : v > w ? k : l) "
        "from (-2147483648, 9223372036854775807)",
        "(int32({0}), 3)",
    ),
    (
        "reduce r3(int32 a, int32 b, int32 c, int32 d) = (a*c - b*d, a*d + b*c) from (1, 0) with x -> (x, 1)",
        "int32({0})",
    ),
    (
        "reduce r4(uint8 a, bool b, uint8 c, bool d) = (max(a, c), b && d) from (0, true) with (x, y) -> (x, !y)",
        "(uint8({0}), 1 < 2)",
    ),
)
"""Reducers that are exact, and what a statement with one takes."""


class Maker:
    """Draws the text of one def."""

    def __init__(self, random, helpers=(), left_sides=False, points=False, reducers=None):
        self.reducers = set() if reducers is None else reducers
        self.random = random
        self.points = points
        """Conditions leave points out, and ranges differ from point to point."""
        self.helpers = helpers
        self.left_sides = left_sides
        self.typed = {}
        """Types and dimensions that results state because nothing else says how many elements they have."""
        self.parameters, self.sizes, self.scalars, self.flags = [], [], [], []
        self.tensors = {}
        """Rank of every tensor; what is known of the extents stands in `dims`."""
        self.dims, self.dtypes = {}, {}
        self.lines, self.made = [], []
        self.ranged, self.lets = set(), []
        self.constants = []

    def pick(self, *options):
        return self.random.choice(options)

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def shuffled(self, items):
        return self.random.sample(items, len(items))

    # signature

    def parameter(self, name, dtype, dims):
        self.tensors[name], self.dims[name], self.dtypes[name] = len(dims), list(dims), dtype
        self.parameters.append(f"{dtype}({', '.join(dims)}) {name}")
        self.sizes += [d for d in dims if d in SIZES and d not in self.sizes]

    def signature(self):
        usual = self.pick(*FLOATS, *INTEGERS)
        sizes = SIZES[: self.pick(1, 1, 2, 2, 3, 4)]
        for name in "ABC"[: self.pick(1, 2, 2, 3)]:
            dtype = usual if self.chance(60) else self.pick(*FLOATS, *INTEGERS)
            dims = [self.pick(*sizes, *sizes, "3", "7") for _ in range(self.pick(1, 1, 2, 2, 2, 3))]
            self.parameter(name, dtype, dims)
        if not self.sizes:
            self.parameter("D", usual, [sizes[0]])
        if self.points:
            self.parameter("Ptr", self.pick("int32", "int64", "uint8"), [self.pick(*sizes)])
        if self.left_sides or self.chance(45):
            self.parameter("Id", self.pick(*INTEGERS), [self.pick(*sizes)])
        if self.chance(15):
            self.parameter("P", self.pick("int32", "int64"), [self.pick(*sizes), self.pick(*sizes, "2")])
        if self.chance(12):
            self.parameter("Ok", "bool", [self.pick(*sizes)])
        if self.chance(30):
            self.scalar("s", self.pick("int32", "int32", "int64", "uint8", "int8"))
        if self.chance(12):
            self.scalar("x", self.pick("float", "double", "half"))
        if self.chance(8):
            self.scalar("flag", "bool")

    def scalar(self, name, dtype):
        self.parameters.append(f"{dtype} {name}")
        self.dtypes[name] = dtype
        (self.flags if dtype == "bool" else self.scalars).append(name)

    # integers

    def extent(self, name, dimension):
        """Text of an extent."""
        known = self.dims[name][dimension]
        return known if known is not None and self.chance(85) else f"{name}.{dimension}"

    def size(self):
        names = [*self.sizes, *self.sizes, *(s for s in self.scalars if s == "s")]
        return self.pick(*names)

    def index(self, indices):
        return self.pick(*indices) if indices else str(self.pick(0, 1, 2))

    def affine(self, indices):
        """A sum of indices and numbers."""
        i, c = self.index(indices), self.pick(1, 1, 2, 3)
        j = self.index(indices)
        forms = [
            i,
            i,
            i,
            i,
            f"{i} + {c}",
            f"{i} - {c}",
            f"2*{i}",
            f"2*{i} + {c}",
            f"{self.size()} - 1 - {i}",
            f"({i} + {c})/{c + 1}",
            f"{i}/2",
            self.pick(
                f"{i} >> 1",
                f"({i} << 1) + {c}",
                f"{i} & {self.pick(1, 3)}",
                f"{self.size()} + ~{i}",
                f"{i} ^^ 1",
                f"{i}^2",
            ),
        ]
        if i != j:
            forms += [f"{i} + {j}", f"{i} - {j}", f"{i} + {j} - {c}", f"2*{i} + {j}", f"{i}/2 + {j}", f"({i} - {j})/2"]
        if self.lets:
            forms.append(self.pick(*self.lets))
        return self.pick(*forms)

    def subscript(self, indices, extent, depth):
        """A subscript, and whether it surely stays inside where the extent is 1 or more."""
        kind = self.random.randint(0, 19)
        if kind < 8 or not indices:
            return self.affine(indices), False
        e = self.affine(indices)
        gather = depth and [t for t in ("Id", "P") if t in self.tensors]
        if gather and kind < 13:
            e = self.plain_read(self.pick(*gather), indices, depth - 1)
            if kind == 8:
                return f"{e} + {self.pick(*indices)} - {self.pick(0, 1)}", False
            if kind == 9:
                return e, False
        elif kind == 13:
            e = f"{self.pick('abs', 'abs', 'min', 'max')}({e}{', 3' if self.chance(50) else ''})"
            e = re.sub(r"^abs\((.*), 3\)$", r"abs(\1)", e) if e.startswith("abs") else e
            if not e.startswith("abs") and ", 3" not in e:
                e = e[:-1] + f", {self.index(indices)})"
            return e, False
        return self.pick(
            f"max(min({e}, {extent} - 1), 0)", f"min(max({e}, 0), {extent} - 1)", f"({e}) % {extent}", f"max(0, min({extent} - 1, {e}))",
        ), True  # fmt: skip

    # reads

    def plain_read(self, name, indices, depth):
        if not self.tensors[name]:
            return name
        parts = [self.subscript(indices, self.extent(name, d), depth)[0] for d in range(self.tensors[name])]
        return f"{name}({', '.join(parts)})"

    def read(self, indices, depth):
        """Text of a read and of a condition under which it stays inside, or `None` where none is needed or wanted."""
        name = self.pick(*self.readable())
        if not self.tensors[name]:
            return name, None
        parts, tests = [], []
        for d in range(self.tensors[name]):
            extent = self.extent(name, d)
            text, safe = self.subscript(indices, extent, depth)
            parts.append(text)
            if not safe and not (text in indices and self.chance(45)):
                tests.append(self.test(text, extent))
        text = f"{name}({', '.join(parts)})"
        return text, self.both(tests) if tests else None

    def readable(self):
        names = [n for n in self.tensors if n not in ("Id", "P", "Ok", "Ptr")]
        return [*names, *self.made[-2:], *(n for n in ("Id",) if n in self.tensors)]

    def test(self, e, extent):
        low = self.pick(f"0 <= {e}", f"{e} >= 0", f"{e} > -1", f"-1 < {e}")
        high = self.pick(f"{e} < {extent}", f"{extent} > {e}", f"{e} <= {extent} - 1")
        if self.chance(20):
            return f"!({self.denied(low)} || {self.denied(high)})" if self.chance(50) else f"!(!({low}) || !({high}))"
        return self.both([low, high])

    def denied(self, comparison):
        a, op, b = re.fullmatch(r"(.*?) (<=|>=|<|>) (.*)", comparison).groups()
        return f"{a} {({'<': '>=', '<=': '>', '>': '<=', '>=': '<'})[op]} {b}"

    def both(self, tests):
        tests = self.shuffled(tests)
        return " && ".join(f"({t})" if "||" in t or self.chance(20) else t for t in tests)

    # values

    def leaf(self, indices, depth):
        kind = self.random.randint(0, 15)
        if kind == 0:
            return self.constant(indices) if self.chance(20) else self.literal()
        if kind == 1:
            return self.pick(*indices, *self.sizes, *self.scalars) if indices else self.literal()
        text, test = self.read(indices, 1 if depth else 0)
        if test is None or self.chance(4):
            return text
        other = self.literal() if depth < 1 or self.chance(60) else f"({self.value(indices, depth - 1)})"
        if self.chance(25):
            return f"(!({test}) ? {other} : {text})"
        if self.chance(10):
            return f"({self.pick(f'{test} && {text} > 1', f'!({test}) || {text} < 2')} ? {other} : {self.literal()})"
        return f"({test} ? {text} : {other})"

    def literal(self):
        return (
            self.pick("0", "1", "2", "3", "0.5", "1.5", "-1", "7", "2u", "3l", "0.25f")
            if self.chance(70)
            else self.pick("1", "2")
        )

    def constant(self, indices):
        """A number or an element of a constant, which is new."""
        name = f"C{self.random.randint(0, 10**6)}"
        dtype = self.pick("int32", "uint8", "float", "double", "half")
        numbers = [
            "0",
            "3",
            "250",
            "7",
            *([] if dtype == "uint8" else ["-2"]),
            *([] if "int" in dtype else ["0.5", "-1e-1"]),
        ]
        if not indices or self.chance(25):
            self.constants.append(f"const {dtype} {name} = {self.pick(*numbers)}")
            return name
        rank = self.pick(1, 1, 2)
        rows = [f"[{', '.join(self.pick(*numbers) for _ in range(4))}]" for _ in range(2 if rank == 2 else 1)]
        listed = f"[{', '.join(rows)}]" if rank == 2 else rows[0]
        self.constants.append(f"const {dtype}({'2, ' * (rank == 2)}4) {name} = {listed}")
        parts = [f"{self.index(indices)} & 1"] * (rank == 2) + [f"{self.index(indices)} {self.pick('& 3', '% 4')}"]
        return f"{name}({', '.join(parts)})"

    def value(self, indices, depth):
        if depth <= 0:
            return self.leaf(indices, 0)
        kind = self.random.randint(0, 31)
        if kind > 27:
            return self.powers(indices, depth) if kind < 30 else self.bits(indices, depth)
        if kind < 7:
            return self.leaf(indices, depth)
        a = self.value(indices, depth - 1)
        if kind < 16:
            b = self.value(indices, depth - 1)
            return f"({a} {self.pick('+', '+', '-', '*', '*')} {b})"
        if kind == 16:
            return f"({a} {self.pick('/', '%')} {self.pick('2', '3', '-2', self.leaf(indices, 0))})"
        if kind == 17:
            return f"{self.pick('min', 'max')}({a}, {self.value(indices, depth - 1)})"
        if kind == 18:
            return f"-{a}" if not a.startswith("-") else f"({a})"
        if kind == 19:
            return f"{self.pick('abs', 'sign', 'floor', 'ceil', 'round', 'trunc')}({self.pick(*self.readable_leaf(indices))})"
        if kind == 20:
            return self.function(indices, depth)
        if kind == 21:
            return f"{self.pick('int32', 'float', 'half', 'double', 'uint8', 'int64', 'int16', 'bfloat16', 'bool', 'uint32')}({a})"
        if kind == 22 and self.lets:
            return f"({self.pick(*self.lets)} + {a})"
        return f"({self.condition(indices, depth - 1)} ? {a} : {self.value(indices, depth - 1)})"

    def powers(self, indices, depth):
        a = self.value(indices, depth - 1)
        number = self.pick("2", "2", "2", "3", "4", "5", "0", "1", "-1", "-2", "11", "(1 + 1)", self.index(indices))
        if number in ("-1", "-2", "11") or not number.isdigit():
            a = f"float({a})"
        return self.pick(f"({a})^{number}", f"-({a})^{number}", f"{self.leaf(indices, 0)}^2")

    def bits(self, indices, depth):
        """Operators on bits of integers, whatever the operands are."""
        kind = self.pick("int32", "int32", "int64", "uint8", "int8", "uint32", "int16")
        a = f"{kind}({self.value(indices, depth - 1)})"
        b = f"{self.pick(kind, kind, 'int32')}({self.leaf(indices, 0)})"
        return self.pick(
            f"({a} & {self.pick(1, 3, 7, 12, '0xFF')})", f"({a} & {b})", f"({a} | {b})", f"({a} ^^ {b})", f"~{a}", f"({a} << {self.pick(0, 1, 3, 7, 31)})",
            f"({a} >> {self.pick(1, 2, 7, 40)})", f"({a} << ({b} & 3))", f"({a} >> {b})", f"({a} >> 1 & {b} ^^ 5 | 8)", f"(1 << ({b} & 15))", f"~-{a}",
        )  # fmt: skip

    def readable_leaf(self, indices):
        return (
            [self.leaf(indices, 0) for _ in range(2)]
            if not indices
            else [f"({self.leaf(indices, 0)} + {self.pick(*indices)})"]
        )

    def function(self, indices, depth):
        x = f"({self.leaf(indices, 0)} + {self.index(indices)}*0.5)" if indices else f"({self.size()}*0.5)"
        y = f"({self.size()} + 0.5)"
        return self.pick(
            f"exp(-abs({x}))", f"sqrt(abs({x}))", f"tanh({x})", f"sin({x})", f"cos({x})", f"sigmoid({x})", f"relu({x})", f"erf({x})",
            f"log(1 + abs({x}))", f"log1p(abs({x}))", f"expm1(0.1*{x})", f"atan({x})", f"atan2({x}, {y})", f"hypot({x}, {y})", f"pow(abs({x}), 1.5)",
            f"fmod({x}, {y})", f"remainder({x}, {y})", f"fma({x}, {y}, 1)", f"fmax({x}, {y})", f"fmin({x}, {y})", f"copysign({y}, {x})",
            f"fdim({x}, {y})", f"norm3d({x}, {y}, 2)", f"rsqrt({y})", f"cbrt({x})", f"exp2({x})", f"log2({y})", f"j0({y})", f"lgamma({y})", f"tgamma({y})", f"digamma({y})", f"uniform({self.pick(1, 7)}, {self.index(indices)}, {self.size()})", f"normal({self.size()}, {self.index(indices)})", f"polygamma({self.pick(0, 1, 2, 3)}, {y})",
            f"cospi({x})", f"sinpi({x})", f"asinh({x})", f"normcdf({x})", f"erfc({x})", f"fabs({x})", f"rhypot({x}, {y})", f"fdivide({x}, {y})",
        )  # fmt: skip

    def condition(self, indices, depth):
        kind = self.random.randint(0, 15)
        if kind < 3 and indices:
            return f"{self.affine(indices)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.pick(self.affine(indices), self.size(), '2')}"
        if kind < 5 and indices:
            return f"{self.index(indices)} % {self.pick(2, 3)} {self.pick('==', '!=')} {self.pick(0, 1)}"
        if kind == 5:
            return f"{self.size()} {self.pick('<', '>', '==', '!=')} {self.pick(self.size(), '1', '3', '0')}"
        if kind == 6 and "Ok" in self.tensors and indices:
            return f"Ok({self.pick(*indices)})"
        if kind == 7 and self.flags:
            return "flag"
        if kind < 11 and depth > 0:
            a, b = self.condition(indices, depth - 1), self.condition(indices, depth - 1)
            if self.chance(30):
                return f"(({a}) {self.pick('&', '|', '^^')} ({b}))"
            return f"({a} {self.pick('&&', '||')} {b})"
        if kind == 11:
            return f"!({self.condition(indices, depth - 1)})"
        if kind == 12:
            return f"isnan({self.leaf(indices, 0)} * 1.0)"
        return f"{self.leaf(indices, 0)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.pick('1', '2', '0', self.leaf(indices, 0))}"

    # statements

    def range_(self):
        n, c = self.size(), self.pick(0, 1, 2)
        first = self.pick(*self.sizes)
        forms = [
            f"0:{first}", f"0:{first}", f"0:{first}", f"0:{first}", f"{c}:max({n}, {c})", f"1:max({first}, 2) - 1", f"0:min({first}, 7)", f"0:2*{first}",
            f"{c}:{c + 3}", f"0:{c + 2}", f"0:{first}/2 + 1", f"{first}:{first}", f"0:({first} < 3 ? {first} : 3)", f"-{c}:{first}", f"0:{first} + {c}",
        ]  # fmt: skip
        if "s" in self.scalars:
            forms += ["s:s + 3", f"min(s, {first}):{first}", "0:abs(s)"]
        owned = [t for t in self.tensors if self.tensors[t] and t not in ("Id", "P")]
        forms.append(f"0:{self.pick(*owned)}.0")
        return self.pick(*forms)

    def clauses(self, indices, value, sure):
        found = []
        for name in indices:
            alone = re.search(rf"\b[ABC]\([^()?]*\b{name}\b(?! *[-+*/%])[^()?]*\)", value)
            if sure or alone is None or self.chance(15):
                low, high = self.range_().split(":", 1)
                found.append(f"{name} = [{low}, {high}[" if self.chance(10) else f"{name} in {low}:{high}")
        return found

    def statement(self, number):
        rank, name = self.pick(0, 1, 1, 1, 2, 2, 3), f"T{number}"
        left = self.shuffled(NAMES[: rank + 1])[:rank]
        spare = [n for n in NAMES if n not in left]
        inner = spare[: self.pick(1, 1, 2)] if rank == 0 or self.chance(55) else []
        if rank == 3:
            inner = inner[:1]
        indices = [*left, *inner]
        self.lets = []
        lets = []
        if self.chance(15) and indices:
            lets.append(f"v = {self.affine(indices) if self.chance(60) else self.leaf(indices, 0)}")
        sure = self.chance(70)
        if lets and not re.search(r"[(.]", lets[0]):
            self.lets = ["v"]
        value = self.value(indices, self.pick(1, 2, 2, 3))
        if inner and self.chance(25):
            value = f"{value} * {self.leaf(indices, 0)}"
        if self.chance(20):
            value = f"{self.pick('int32', 'float', 'half', 'double', 'int64', 'uint8')}({value})"
        if lets and "v" not in re.findall(r"\w+", value):
            value = f"{value} + v"
        used = set(re.findall(r"\b[ijklm]\b", value + " ".join(lets)))
        inner = [n for n in inner if n in used]
        indices = [*left, *inner]
        op = (
            self.pick("+=!", "+=!", "+=!", "max=!", "min=!", "*=!", "+=", "max=", "min=", "*=")
            if inner
            else self.pick("=", "=", "=", "=", "+=")
        )
        before, behind = "", ""
        if inner and self.chance(8):
            self.reduction(name, rank, left, value, self.clauses(indices, value + " ".join(lets), sure) + lets)
            return
        if inner and self.chance(12):
            op = self.pick("any=!", "all=!")
            value = self.condition(indices, 2) if self.chance(50) else f"({value}) > 0"
            used = set(re.findall(r"\b[ijklm]\b", value + " ".join(lets)))
            inner = [n for n in inner if n in used]
            indices = [*left, *inner]
            op = op if inner else "="
        elif inner and self.chance(5):
            op, value = "lse=!", f"float({value})"
        elif inner and self.chance(15):
            op = self.pick("argmax=!", "argmin=!")
            if len(inner) > 1 or self.chance(20):
                behind = f" at {self.pick('', '2*', '-')}{inner[0]}{''.join(f' + 3*{n}' for n in inner[1:])}"
            if self.chance(40):
                before = f"V{number}"
        clauses = [*self.clauses(indices, value + " ".join(lets), sure), *lets]
        if self.chance(5) and left:
            clauses.append(
                f"exists {self.plain_read(self.pick(*(t for t in self.tensors if self.tensors[t])), indices, 0)}"
            )
        clauses = self.with_points(clauses, left, inner, op == "=" and not self.chance(3))
        clauses = self.shuffled(clauses) if self.chance(30) else clauses
        line = self.line(name, left, op, value + behind, clauses)
        self.lines.append(f"{before}{line[len(name) : line.index(' ' + op)]}, {line}" if before else line)
        for made in filter(None, (before, name)):
            self.tensors[made], self.dims[made] = rank, [None] * rank
            self.made.append(made)
        self.lets = []

    def reduction(self, name, rank, left, value, clauses):
        """A statement with a reducer; those of several components write as many tensors."""
        number = self.pick(*range(len(REDUCERS)))
        text, takes = REDUCERS[number]
        self.reducers.add(text)
        components = len(re.findall(r"\w+ \w+[,)]", text[: text.index("=")])) // 2
        targets = [name, *(f"{name}{letter}" for letter in "ab"[: components - 1])]
        shown = ", ".join(self.line(each, left, "", "", []).rstrip() for each in targets)
        values = takes.format(value)
        self.lines.append(f"{shown} r{number}=! {values}{' where ' + ', '.join(clauses) if clauses else ''}")
        for made in targets:
            self.tensors[made], self.dims[made] = rank, [None] * rank
            self.made.append(made)

    def whole(self, number):
        """A statement on arrays without indices, most of them of one shape."""
        arrays = [t for t in self.tensors if self.tensors[t] and t not in ("Ok", "P")]
        first = self.pick(*arrays)
        same = [t for t in arrays if self.dims[t] == self.dims[first]]
        ranked = [t for t in arrays if self.tensors[t] == self.tensors[first]]
        other = self.pick(*same) if self.chance(80) else self.pick(*ranked)
        value = self.pick(
            first, f"{first} * {other} + 1", f"max({first}, {other})", f"abs({first} - {other})", f"{first} > 1 ? {other} : -{other}",
            f"float({first})^2", f"{first} + {self.pick(*self.sizes)}", f"sqrt(abs({first} * 0.5))",
        )  # fmt: skip
        self.lines.append(f"T{number} = {value}")
        rank = self.tensors[first]
        self.tensors[f"T{number}"], self.dims[f"T{number}"] = rank, [None] * rank
        self.made.append(f"T{number}")

    def placed(self, number):
        """A statement whose left side has subscripts that are expressions, on a new tensor or on one that is there."""
        rank = self.pick(1, 1, 1, 2, 2, 3)
        name = f"T{number}"
        if self.made and self.chance(35):
            name = self.pick(*self.made)
            rank = self.tensors[name]
            if not rank:
                return self.statement(number)
        points = list(NAMES[:3])
        self.lets = []
        value = self.value(points[: self.pick(1, 2)], self.pick(0, 0, 1, 2))
        left = [self.place(name, d, points) for d in range(rank)]
        if name not in self.made and any(e is None for e in left):
            self.typed[name] = (
                self.pick("int32", "int64", "float", "double"),
                [self.pick("3", "8", self.pick(*self.sizes)) for _ in left],
            )
        left = [f"Id({self.pick(*points)})" if e is None else e for e in left]
        used = list(dict.fromkeys(re.findall(r"\b[ijklm]\b", " ".join([*left, value]))))
        op = self.pick("+=!", "+=!", "+=!", "max=!", "min=!", "*=!", "+=", "max=", "min=", "=", "=")
        clauses = self.clauses(used, value, self.chance(50))
        if op == "=" and self.chance(60):
            clauses.append("unique")
        plain = [e for e in left if e in used]
        clauses = self.with_points(
            clauses, plain, [n for n in used if n not in plain], op == "=" and name not in self.made
        )
        self.lines.append(self.line(name, left, op, value, clauses))
        if name not in self.made:
            self.tensors[name], self.dims[name] = rank, [None] * rank
            self.made.append(name)

    def with_points(self, clauses, left, inner, whole):
        """The clauses with ranges that differ from point to point, and with conditions unless the `whole` target is written."""
        if not self.points or self.chance(15):
            return clauses
        found = []
        for clause in clauses:
            index = clause.split(" ", 1)[0]
            others = [n for n in (*left, *inner[: inner.index(index)]) if n != index] if index in inner else []
            moves = others and re.match(r"\w+ (in|= \[)", clause) and self.chance(70)
            found.append(f"{index} in {self.moving_ends(others)}" if moves else clause)
        ranged = {clause.split(" ", 1)[0] for clause in clauses}
        for index in inner:
            others = [n for n in (*left, *inner[: inner.index(index)]) if n != index]
            if index not in ranged and others and self.chance(60):
                found.append(f"{index} in {self.moving_ends(others)}")
        if not whole:
            found += [self.condition([*left, *inner], self.pick(0, 0, 1)) for _ in range(self.pick(0, 1, 1, 2))]
        return found

    def moving_ends(self, others):
        i, n, c = self.pick(*others), self.size(), self.pick(1, 2)
        if self.chance(35):
            return self.pick(
                f"Ptr({i}):Ptr({i} + 1)", f"Ptr({i}):Ptr({i} + 1)", f"0:Ptr({i})", f"Ptr({i}):{n}", f"{i}:max(Ptr({i}), {i})", f"0:min(Ptr({i}), {n})"
            )  # fmt: skip
        return self.pick(
            f"0:{i} + 1", f"0:{i}", f"{i}:{n}", f"{i} + 1:{n}", f"{i}:{i} + {c}", f"max({i} - {c}, 0):min({i} + {c}, {n})", f"0:{n} - {i}",
            f"{i}/2:{i} + 1", f"0:2*{i}", f"0:min({n}, {i} + {self.pick(*others)})", f"0:{i} % 3",
        )  # fmt: skip

    def place(self, name, dimension, points):
        """One subscript of a left side; `None` for an element of any size."""
        i, j, c = self.pick(*points), self.pick(*points), self.pick(2, 3)
        n = self.pick(*self.sizes)
        kind = self.random.randint(0, 15)
        if kind < 3:
            return i
        if kind == 3:
            return None
        if kind == 4 and "Ok" in self.tensors:
            return f"Ok({i})"
        if kind == 5 and name in self.made:
            return self.pick(
                "0", f"{name}.{dimension} - 1", f"{name}.{dimension} - 1 - {i}", f"Id({i}) % {name}.{dimension}"
            )
        return self.pick(
            f"Id({i}) % {c + 2}", f"Id({i}) % {c + 2}", f"(Id({i}) + {j}) % {c}", f"min(max(Id({i}), 0), {c})", f"Id({i}) % ({n} + 1)",
            f"{c}*{i}", f"2*{i} + 1", f"{i} + {j}", f"{i} + {c}", f"{n} - 1 - {i}", f"{i}/2", f"{i}*{n} + {j}", str(c - 2),
        )  # fmt: skip

    def line(self, name, left, op, value, clauses):
        target = f"{name}({', '.join(left)})" if left else name
        return f"{target} {op} {value}{' where ' + ', '.join(clauses) if clauses else ''}"

    def update(self):
        """A later statement on a tensor, in full or in part."""
        name = self.pick(*self.made)
        left = list(NAMES[: self.tensors[name]])
        own = f"{name}({', '.join(left)})" if left else name
        kind = self.random.randint(0, 5)
        clauses = []
        if left and self.chance(40):
            index = self.pick(*left)
            clauses.append(
                f"{index} in {self.pick('0:1', '1:max(2, ' + self.pick(*self.sizes) + ') - 1', '0:min(2, ' + self.pick(*self.sizes) + ')')}"
            )
        if self.points and self.chance(60):
            clauses.append(self.condition(left, 1))
        if kind < 2:
            self.lines.append(self.line(name, left, "=", f"{own} * 2 + 1", clauses))
        elif kind == 2:
            self.lines.append(self.line(name, left, "=", f"{own} > 1 ? {own} : {self.pick('0', '1')}", clauses))
        else:
            inner = ["l"] if self.chance(50) else []
            op = self.pick("+=", "max=", "min=", "+=!", "*=")
            value = (
                self.pick("1", "2", "3")
                if not inner
                else f"(l {self.pick('<', '>', '!=')} {self.pick('1', *left, '2')} ? 1 : 2)"
            )
            self.lines.append(self.line(name, left, op, value, [*clauses, *(f"{n} in 0:3" for n in inner)]))

    def call(self):
        helper = self.pick(*self.helpers)
        args = []
        for dtype, dims, stem in helper.needs:
            if not dims:
                if stem not in self.dtypes:
                    self.scalar(stem, dtype)
                args.append(stem if self.dtypes[stem] == dtype else "")
                continue
            fitting = [
                n for n in self.dims if n in self.dtypes and self.dtypes[n] == dtype and self.dims[n] == list(dims)
            ]
            if not fitting:
                fitting = [f"G{len(self.parameters)}"]
                self.parameter(fitting[0], dtype, dims)
            args.append(self.pick(*fitting))
        if "" in args:
            return
        targets = [f"R{len(self.made)}{chr(97 + k)}" for k in range(len(helper.ranks))]
        self.lines.append(f"{', '.join(targets)} = {helper.name}({', '.join(args)})")
        for target, rank in zip(targets, helper.ranks, strict=True):
            self.tensors[target], self.dims[target] = rank, [None] * rank
            self.made.append(target)

    def definition(self, name, statements):
        self.signature()
        for number in range(statements):
            if self.left_sides and self.chance(30 if self.points else 70):
                self.placed(number)
            elif self.chance(7):
                self.whole(number)
            elif self.made and self.chance(30 if self.points else 14):
                self.update()
            elif self.helpers and self.chance(50):
                self.call()
            else:
                self.statement(number)
        if not self.made:
            self.statement(9)
        results = [t for t in self.made if t in self.typed or self.chance(40)]
        if self.made[-1] not in results:
            results.append(self.made[-1])
        self.results = results
        shown = [self.stated(t) for t in results]
        inside = self.chance(50)
        body = "\n".join(f"    {line}" for line in [*(self.constants if inside else []), *self.lines])
        self.name, self.ranks = name, [self.tensors[t] for t in results]
        outside = "".join(f"{line}\n" for line in ([] if inside else self.constants))
        return f"{outside}def {name}({', '.join(self.parameters)}) -> ({', '.join(shown)}) {{\n{body}\n}}"

    def stated(self, name):
        """A result, now and then with a type and names of its extents."""
        if name in self.typed:
            dtype, dims = self.typed[name]
            return f"{dtype}({', '.join(dims)}) {name}"
        if not self.chance(5):
            return name
        dtype = self.pick("double", "float", "int64", "int32")
        return (
            f"{dtype}({', '.join(f'{name}{d}' for d in range(self.tensors[name]))}) {name}"
            if self.tensors[name]
            else f"{dtype} {name}"
        )

    @property
    def needs(self):
        """Type, dimensions and name of every parameter."""
        found = []
        for text in self.parameters:
            dtype, dims, name = re.fullmatch(r"(\w+)(?:\((.*)\))? (\w+)", text).groups()
            found.append((dtype, dims.split(", ") if dims else [], name))
        return found


def cell(random):
    """The text of a cell whose last def is called `f`."""
    helpers, text, reducers = [], [], set()
    if random.random() < 0.13:
        for number in range(random.randint(1, 2)):
            helper = Maker(random, tuple(helpers), reducers=reducers)
            text.append(helper.definition(f"g{number}", random.randint(1, 2)))
            helpers.append(helper)
    text.append(Maker(random, tuple(helpers), reducers=reducers).definition("f", random.randint(1, 4)))
    return "\n".join([*sorted(reducers), *text])


def cell_of_left_sides(random):
    """The text of a cell with a def `f` whose statements have expressions on the left."""
    return cell_of_one(random, left_sides=True)


def cell_of_points(random):
    """The text of a cell with a def `f` whose statements leave points out."""
    return cell_of_one(random, left_sides=random.random() < 0.4, points=True)


def cell_of_one(random, **kinds):
    """The text of a cell with a def `f` of up to three statements and the reducers that it uses."""
    reducers = set()
    text = Maker(random, reducers=reducers, **kinds).definition("f", random.randint(1, 3))
    return "\n".join([*sorted(reducers), text])


def cell_sizes(random):
    """Extents of every size name: mostly small, 0 among them, and a few that fill vectors and tiles."""
    small = (0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 11, 12)
    return {name: random.randint(13, 70) if random.random() < 0.1 else random.choice(small) for name in SIZES}


def drawn(seed):
    """A cell, its sizes, and the seed of its data."""
    random = Random(seed)
    text, sizes = cell(random), cell_sizes(random)
    text = with_borders(Random(f"{seed} borders"), text)
    return with_formulas(Random(f"{seed} formulas"), text), sizes, seed


READ = re.compile(r"(?<![\w.])(?:[A-D]|T\d|Id|P)\(")


def with_borders(random, text):
    """The cell with borders at some reads: a value behind `else`, or what is read beyond the ends of a dimension."""
    if random.random() < 0.7:
        return text
    at, out = 0, ""
    while (found := READ.search(text, at)) is not None:
        end = closing(text, found.end())
        out += text[at : found.start()]
        begin = len(out)
        out += found.group()
        is_read = not re.match(
            r"(?:, T\d[ab]?\([^()]*\))*\s*(?:[+*]|min|max|argmin|argmax|any|all|lse|r\d)?=(?!=)", text[end + 1 :]
        ) and not out.endswith(f"exists {found.group()}")
        parts = split(text[found.end() : end])
        if is_read and random.random() < 0.3:
            number = random.randrange(len(parts))
            parts[number] = f"{random.choice(('clamp', 'wrap', 'reflect', 'symmetric'))}({parts[number].strip()})"
        out += ", ".join(part.strip() for part in parts) + ")"
        if is_read and random.random() < 0.3:
            out += f" else {random.choice(('0', '-1', '0.5', '(1 + 2)', '3', out[begin:]))}"
        at = end + 1
    return out + text[at:]


def closing(text, start):
    """Where the bracket closes that was opened before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return place
    raise AssertionError(text)


def split(text):
    """The parts between commas outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def with_formulas(random, text):
    """The cell with some dimensions of parameters as expressions of sizes, or as boxes; sizes are still told, or can be found."""
    if random.random() < 0.8:
        return text
    before, head, body = re.fullmatch(r"(.*)(def f\(.*?\) -> \(.*?\) )(\{.*)", text, re.DOTALL).groups()
    bare = [(m.start(), m.group()) for m in re.finditer(rf"(?<=[(,] |\w\()(?:{'|'.join(SIZES)})(?=[,)])", head)]
    names = [name for _, name in bare]
    for place, name in reversed(bare):
        other, c = random.choice([n for n in names if n != name] or ["3"]), random.choice((1, 2, 3))
        alone = names.count(name) == 1
        told = [n for n in names if n != name or not alone]
        forms = [
            f"{c}:{name}",
            f"-{c}:{name}",
            f"{name} + {c}",
            f"2*{name}",
            f"2*{name} - 1",
            f"{other} - {name} + {c}",
        ]
        forms += [] if alone else [f"{name}:2*{name}", f"{name}/2", f"max({name}, {c})", f"{name}*{other}"]
        if random.random() < 0.5 and (other in told or other == "3"):
            head = head[:place] + random.choice(forms) + head[place + len(name) :]
            names.remove(name)
    return before + head + body


STATEMENT = re.compile(r"    (T\d)\(([ijklm, ]+)\) (=|\+=!|max=!|min=!) (.*?)( where .*)?")


def with_orders(random, text):
    """The cell with orders: some first statements read what they have made."""
    lines, written = text.split("\n"), set()
    for number, line in enumerate(lines):
        found = STATEMENT.fullmatch(line)
        if found is None or found[1] in written or random.random() < 0.2:
            written |= set(re.findall(r"^    (T\d)", line))
            continue
        name, names, op, value, where = found.groups()
        written.add(name)
        left = names.split(", ")
        order = random.sample(left, random.randint(1, len(left)))
        steps = [(index, random.choice((1, 1, -1))) for index in order]
        reads = []
        for _ in range(random.choice((1, 1, 2))):
            at, first = dict.fromkeys(left, 0), random.randrange(len(steps))
            at[steps[first][0]] = -steps[first][1] * random.choice((1, 1, 2, 3))
            for other in (n for n in left if n not in [index for index, _ in steps[: first + 1]]):
                at[other] = random.choice((0, 0, 1, -1))
            place = ", ".join(f"{n} {'+' if by > 0 else '-'} {abs(by)}" if by else n for n, by in at.items())
            reads.append(f"({name}({place}) else {random.choice(('0', '1', '0', '2'))})")
        form = random.choice(
            ("{r} + {v}", "{v} + {r}", "max({r}, {v})", "min({v}, {r})", "{r} * 0.5 + {v}", "({v} > 1 ? {r} : {v})")
        )
        value = f"({value})"
        for read in reads:
            value = form.format(r=read, v=value)
        clause = " along " + ", ".join(("-" if step < 0 else "") + index for index, step in steps)
        lines[number] = f"    {name}({names}) {op} {value}{where or ''}{clause}"
    return "\n".join(lines)


def drawn_orders(seed):
    """The same for a cell whose statements have orders."""
    random = Random(f"{seed} orders")
    return with_orders(random, cell(random)), cell_sizes(random), seed


def block_of(random):
    """The text of a def with a block."""
    way, count = random.choice((1, 1, -1)), random.randint(2, 4)
    names = random.sample(("S", "V", "W", "P", "Q"), count)
    states = {name: random.choice((0, 1, 1, 2)) for name in names[: random.randint(1, count)]}
    ranks = {name: states.get(name, random.choice((0, 1, 1))) for name in names}
    order = random.sample(names, count)
    lines, made = [], []

    def place(name, at, letters):
        subscripts = [*([at] if name in states else []), *letters[: ranks[name]]]
        return name + (f"({', '.join(subscripts)})" if subscripts else "")

    def read(letters):
        name = random.choice((*names, "X", "u"))
        kinds = [random.choice((n, f"wrap({n} + 1)", f"{n} - 1")) for n in letters]
        if name == "u":
            return f"u({letters[0]})"
        if name == "X":
            return f"X(t, {letters[0]})"
        if name in made and random.random() < 0.6:
            return place(name, "t", letters)
        if name not in states:
            return "0.5"
        back = "t - 1" if way > 0 else "t + 1"
        if random.random() < 0.3:
            back = "t - 2" if way > 0 else "t + 2"
        return f"({place(name, back, kinds)} else {random.choice(('0', '1', '0.5'))})"

    for name in order:
        letters = ["i", "j"]
        target, sizes = place(name, "t", letters), [f"{n} in 0:M" for n in letters[: ranks[name]]]
        value = " + ".join(
            f"{random.choice(('0.5', '-0.25', '1', '0.125'))} * {read(letters)}" for _ in range(random.randint(1, 3))
        )
        value = random.choice(
            (value, value, f"max({value}, X(t, {letters[0]}))", f"(u({letters[0]}) > 0 ? {value} : {read(letters)})")
        )
        inner = [n for n in letters[ranks[name] :] if re.search(rf"\b{n}\b", value)]
        operator = "=" if not inner else random.choice(("+=!", "max=!"))
        clauses = ", ".join(
            [*sizes, *(f"{n} in 0:{random.choice(('M', 'M', 't' if operator == '+=!' else 'M'))}" for n in inner)]
        )
        clauses = clauses.replace("0:t", "0:min(t, M)")
        lines.append(f"        {target} {operator} {value}" + (f" where {clauses}" if clauses else ""))
        made.append(name)
    head = f"    along {'-' if way < 0 else ''}t in {random.choice(('0:N', '0:N', '0:3', '1:N'))} {{"
    kind = random.choice(("float", "double", "float", "half"))
    results = ", ".join(states)
    return "\n".join([f"def f({kind}(N, M) X, float(M) u) -> ({results}) {{", head, *lines, "    }", "}"])


def power_of(random):
    """The text of a def that applies another one again and again."""
    count = random.randint(1, 2)
    names = random.sample(("A", "B"), count)
    new = {name: f"{name}n" for name in names}
    reads = [f"{name}({at})" for name in names for at in ("i, j", "wrap(i + 1), j", "i, clamp(j - 1)")]
    reads += [f"({name}(i - 1, j + 1) else 0.5)" for name in names] + ["u(j)", "T(i, j)", "K(j)", "s"]
    lines = ["K(j) = u(j) * 0.5", f"T(i, j) = 0.5 * {random.choice(reads[:3])} - 0.25 * u(j) where i in 0:N"]
    if random.random() < 0.5:  # a sum of what the step before has made
        lines.append(f"W(i, j) {window_of(random, names[0])}")
        reads.append("W(i, j)")
    for name in names:
        value = " + ".join(f"{random.choice(('0.5', '-0.25', '0.125'))} * {random.choice(reads)}" for _ in range(3))
        lines.append(f"{new[name]}(i, j) = {value} where i in 0:N, j in 0:M")
        reads.append(f"{new[name]}(i, j)")
    if random.random() < 0.3:
        lines.append(f"{new[names[0]]}(i, j) = max({new[names[0]]}(i, j), 0.125)")
    kind = random.choice(("float", "float", "double", "half"))
    states = ", ".join(f"{kind}(N, M) {name}" for name in names)
    wanted = ", ".join(f"{kind}(N, M) {new[name]}" for name in names)
    body = "\n".join(f"    {line}" for line in lines)
    inner = f"def g({states}, {kind}(M) u, {kind} s) -> ({wanted}) {{\n{body}\n}}"
    given = "X, Z"[: 3 * count - 2]
    power = random.choice(("n", "3", "0", "n", "1"))
    call = f"    {', '.join('PQ'[:count])} = g^{power}({given}, u, s)"
    head = f"def f({kind}(N, M) X, {kind}(N, M) Z, {kind}(M) u, {kind} s, int32 n) -> ({', '.join('PQ'[:count])}, Y) {{"
    return f"{inner}\n{head}\n{call}\n    Y(i, j) = P(i, j) + X(i, j) + Z(i, j) + n\n}}"


def window_of(random, name):
    """What a sum or maximum takes of a matrix: a window that goes beyond the ends, or rows and columns."""
    borders = (f"{word}(i + a)" for word in ("wrap", "clamp", "reflect", "symmetric"))
    row = random.choice((*borders, "(i + a) % N", "max(i - a, 0)"))
    read = random.choice((f"{name}({row}, j)", f"{name}({row}, clamp(j + a))", f"({name}(i + a, j) else 1)"))
    weight = random.choice(("1", "a", "u(j)", "u(max(a, 0))"))
    window = f"0.25 * {weight} * {read} where i in 0:N, j in 0:M, a in {random.choice(('0:2', '0:3'))}"
    product = f"0.125 * {name}(i, k) * {random.choice((f'{name}(clamp(k), j)', 'u(k)'))} where i in 0:N, j in 0:M"
    whole = f"0.0625 * {name}(a, b) where i in 0:N, j in 0:M"
    return f"{random.choice(('+=!', '+=!', 'max=!'))} {random.choice((window, window, window, product, whole))}"


def drawn_powers(seed):
    """The same for a def that is applied again and again."""
    random = Random(f"{seed} powers")
    return power_of(random), cell_sizes(random), seed


def drawn_blocks(seed):
    """The same for a def with a block."""
    random = Random(f"{seed} blocks")
    return block_of(random), cell_sizes(random), seed


def drawn_left_sides(seed):
    """The same for a cell with expressions on the left."""
    random = Random(seed)
    return cell_of_left_sides(random), cell_sizes(random), seed


class ComplexMaker:
    """Draws a def on complex numbers: sums, products, quotients and functions of them, with real ones among them."""

    def __init__(self, random):
        self.random, self.tensors = random, {}

    def pick(self, *options):
        return self.random.choice(options)

    def definition(self):
        wide, other = (
            self.pick("complex64", "complex128"),
            self.pick("complex64", "complex128", "float", "double", "int32", "half"),
        )
        self.tensors = {"A": 1, "B": 2, "C": self.pick(1, 2)}
        parameters = [
            f"{wide}(N) A",
            f"{self.pick(wide, 'complex64')}(N, M) B",
            f"{other}(N{', M' * (self.tensors['C'] - 1)}) C",
        ]
        parameters += [f"{wide} z", f"{self.pick('float', 'double', 'int32')} x", "int32(N) Id"]
        lines = [self.statement(f"T{number}") for number in range(1, self.random.randint(2, 4))]
        names = [name for name in self.tensors if name.startswith("T")]
        return f"def f({', '.join(parameters)}) -> ({', '.join(names)}) {{\n  " + "\n  ".join(lines) + "\n}"

    def statement(self, name):
        rank, update = self.pick(0, 1, 1, 2), [each for each in self.tensors if each.startswith("T")]
        if update and self.random.random() < 0.35:
            name = self.pick(*update)
            rank = self.tensors[name]
        left = ["i", "j"][:rank]
        target = f"{name}({', '.join(left)})" if left else name
        ranges = [f"{index} in 0:{size}" for index, size in zip(left, "NM", strict=False)]
        if name in update:
            value = self.value(left, 1)
            if self.random.random() < 0.5:
                return (
                    f"{target} {self.pick('+=', '*=')} {value} where {', '.join(ranges)}"
                    if left
                    else f"{target} += {value}"
                )
            own = self.pick(
                f"{target} * {target}", f"{target} * {value}", f"conj({target}) + {value}", f"{value} / ({target} + z)"
            )
            return f"{target} = {own}" + (f" where {', '.join(ranges)}" if left else "")
        summed = rank == 0 or self.random.random() < 0.4
        index = "j" if rank == 1 else "k"
        size = self.pick("N", "M")
        if summed and rank == 1 and self.random.random() < 0.3:
            self.tensors[name] = 1
            return f"{name}(Id(i) % 4) +=! {self.value(['i'], 2)} where i in 0:N"
        value = self.value([*left, index] if summed else left, 2)
        self.tensors[name] = rank
        if not summed and self.random.random() < 0.3:
            before = f"{name}({', '.join(['i - 1', *left[1:]])}) else {self.pick('0', '1', 'z')}"
            return f"{target} = ({before}) {self.pick('*', '+', '-')} {value} where {', '.join(ranges)} along i"
        if not summed:
            return f"{target} = {value} where {', '.join(ranges)}"
        return f"{target} {self.pick('+=!', '+=!', '*=!')} {value} + 0*{index} where {', '.join([*ranges, f'{index} in 0:{size}'])}"

    def read(self, indices):
        name = self.pick(*self.tensors)
        rank = self.tensors[name]
        if not rank:
            return name
        parts = [
            self.pick(*indices, *indices, f"{self.pick(*indices)} - 1", "0") if indices else "0" for _ in range(rank)
        ]
        border = self.pick("clamp({})", "wrap({})", "reflect({})", "symmetric({})")
        inside = [border.format(part) for part in parts]
        if self.random.random() < 0.3:
            return f"({name}({', '.join(parts)}) else {self.pick('0', '1', 'z', '(z + 1)')})"
        return f"{name}({', '.join(inside)})"

    def real(self, indices):
        z = self.read(indices)
        return self.pick("0.5", "1", "2", "x", f"re({z})", f"im({z})", f"abs({z})", *indices)

    def value(self, indices, depth):
        if depth <= 0:
            return self.pick(
                self.read(indices), self.read(indices), "z", self.real(indices), f"complex64({self.real(indices)}, 1)"
            )
        a, b = self.value(indices, depth - 1), self.value(indices, depth - 1)
        test = self.pick(f"{a} == {b}", f"{a} != z", f"re({a}) < 1", f"isnan({a})", f"isfinite({a})", f"abs({a}) <= 2")
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} * {b})", f"({a} / {b})", f"({a} / (3 + 0.5*{b}))", f"conj({a})", f"-({a})",
            f"exp(0.125*{a})", f"sqrt({a})", f"({a})^{self.pick(2, 3, -1)}", f"({test} ? {a} : {b})", f"complex128({a})", f"({self.real(indices)} * {a})",
        )  # fmt: skip


def drawn_complex(seed):
    """The same for a cell on complex numbers."""
    random = Random(f"{seed} complex")
    return ComplexMaker(random).definition(), cell_sizes(random), seed


def drawn_points(seed):
    """The same for a cell whose statements leave points out."""
    random = Random(seed)
    return cell_of_points(random), cell_sizes(random), seed


# arguments

LAYOUTS = (
    "plain",
    "plain",
    "plain",
    "fortran",
    "steps",
    "reversed",
    "transposed",
    "repeated",
    "readonly",
    "unaligned",
    "offset",
)


def numbers(random, shape, dtype, bound):
    """Elements: small and exact in every type, in some arrays with extremes among them."""
    kind = np.dtype(NUMPY.get(dtype, dtype))
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(kind)
    if dtype.startswith("complex"):
        re, im = (np.nan_to_num(numbers(random, shape, "float64", bound), posinf=0, neginf=0) for _ in range(2))
        return (re + 1j * im).astype(kind)
    if dtype.startswith(("float", "bfloat")):
        values = random.integers(-4, 5, shape) * random.choice([1.0, 0.5, 0.25])
        if random.random() < 0.1:
            mask = random.random(shape) < 0.15
            values = np.where(mask, random.choice([np.nan, np.inf, -np.inf, 1e3], shape), values)
        if random.random() < 0.15:
            values = values + random.random(shape)
        return values.astype(kind)
    low = 0 if dtype.startswith("u") else -2
    values = random.integers(low, bound, shape)
    if random.random() < 0.12:
        info = np.iinfo(kind)
        mask = random.random(shape) < 0.2
        return np.where(mask, random.choice(np.array([info.min, info.max], kind), shape), values.astype(kind)).astype(
            kind
        )
    return values.astype(kind)


def laid_out(random, values):
    """An array of the same elements that lies in memory in another way."""
    layout = random.choice(LAYOUTS)
    if layout == "fortran":
        return np.asfortranarray(values)
    if layout == "steps" and values.ndim:
        wide = np.zeros([2 * n for n in values.shape], values.dtype)
        view = wide[tuple(slice(int(random.integers(0, 2)), None, 2) for _ in values.shape)]
        view[...] = values
        return view
    if layout == "reversed" and values.ndim:
        turned = tuple(slice(None, None, -1 if random.random() < 0.7 else 1) for _ in values.shape)
        return np.ascontiguousarray(values[turned])[turned]
    if layout == "transposed":
        return np.ascontiguousarray(values.T).T
    if layout == "repeated" and values.ndim and values.size:
        dimension = int(random.integers(0, values.ndim))
        row = np.ascontiguousarray(np.take(values, [0], dimension))
        return np.broadcast_to(row, values.shape)
    if layout == "readonly":
        values = values.copy()
        values.flags.writeable = False
        return values
    if layout == "unaligned":
        block = np.zeros(values.nbytes + 1, np.uint8)
        view = block[1:].view(values.dtype).reshape(values.shape)
        view[...] = values
        return view
    if layout == "offset":
        block = np.zeros(values.size + 3, values.dtype)
        view = block[3:].reshape(values.shape)
        view[...] = values
        return view
    return values


def extent_of(dim, sizes):
    """The extent of a dimension at these sizes; 0 where there is none."""
    if isinstance(dim, int):
        return dim
    return (
        max(0, value_of(dim.high, sizes) - value_of(dim.low, sizes))
        if isinstance(dim, Dimension)
        else sizes.get(dim, 2)
    )


def value_of(e, sizes):
    """An integer expression of sizes."""
    match e:
        case Number():
            return e.value
        case Name():
            return sizes.get(e.name, 2)  # an integer scalar is told by itself
        case Unary():
            return -value_of(e.value, sizes)
        case Apply():
            return (min if e.name == "min" else max)(value_of(a, sizes) for a in e.args)
    a, b = value_of(e.left, sizes), value_of(e.right, sizes)
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // (b or 1)}[e.op]


def arguments_of(one, sizes, data):
    """Arguments of a def: `(value, element type)` in the order of its parameters."""
    random = np.random.default_rng(data)
    found, flat = [], {}
    bound = int(random.choice([2, 3, 4, 4, 5, 8]))
    for p in one.parameters:
        if not p.dims:
            low = 0 if p.dtype.startswith("u") else -1
            value = int(random.integers(low, 5))
            if p.dtype.startswith(("float", "bfloat")):
                value = float(value) / 2
            if p.dtype.startswith("complex"):
                value = complex(value, int(random.integers(-1, 3))) / 2
            found.append((bool(value > 1) if p.dtype == "bool" else value, p.dtype))
            continue
        shape = tuple(extent_of(d, sizes) for d in p.dims)
        if p.name == "Ptr":  # mostly the beginnings of rows
            values = np.sort(random.integers(0, int(random.choice([1, 3, 6, 12])), shape))
            found.append(((values if random.random() < 0.9 else values[::-1]).astype(p.dtype), p.dtype))
            continue
        key = (p.dtype, shape)
        if key in flat and random.random() < 0.15:
            found.append((flat[key], p.dtype))  # one array for two parameters
            continue
        flat[key] = laid_out(random, numbers(random, shape, p.dtype, bound))
        found.append((flat[key], p.dtype))
    return found


def out_arrays(random, outcome):
    """Arrays for `out=`, with elements that an accumulation starts from."""
    found = {}
    for name, array in outcome.results.items():
        values = numbers(random, tuple(array.shape), array.dtype, 4)
        if values.ndim and random.random() < 0.3:
            wide = np.zeros([2 * n for n in values.shape], values.dtype)
            view = wide[tuple(slice(None, None, 2) for _ in values.shape)]
            view[...] = values
            values = view
        found[name] = values
    return found


# the judge


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def agree(found, expected, note):
    """An array of an engine, against numbers and how far they may be off."""
    assert str(found.dtype) == expected.dtype, f"type {found.dtype}, not {expected.dtype}\n{note}"
    assert list(found.shape) == expected.shape, f"shape {found.shape}, not {expected.shape}\n{note}"
    values = (
        np.asarray(found).astype("float64").reshape(-1)
        if expected.dtype == "bfloat16"
        else np.asarray(found).reshape(-1)
    )
    for place, (mine, theirs, error) in enumerate(zip(values.tolist(), expected.values, expected.errors, strict=True)):
        if error == UNSURE:
            continue
        same = mine == theirs or (mine != mine and theirs != theirs) or abs(mine - theirs) <= 1.05 * error
        assert same, f"element {place}: {mine!r}, not {theirs!r} (within {error})\n{note}"


def expected_of(text, name, arguments, given=None):
    """What the evaluator says: an outcome, or why there is none."""
    try:
        return evaluate(text, name, arguments, given)
    except (Refused, Rejected, Unclear) as reason:
        return reason


def called(function, arguments, out=None):
    """The results of an engine, or the diagnostic of its refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = [value for value, _ in arguments]
            return as_tuple(function(*values) if out is None else function(*values, out=out))
        except tc.CallError as error:
            return error.diagnostic


def leaves_nothing(refusal, one, arguments):
    """Whether an access is refused that leaves an array without elements: elements that a def computes guard none of those."""
    named = [f"leaves `{p.name}`" for p, (v, _) in zip(one.parameters, arguments, strict=True) if np.size(v) == 0]
    return any(each in refusal.message for each in named)


@lru_cache(maxsize=1)
def compiled(text):
    """A cell, and its functions for both engines: the defs of a case are judged one after the other, at several sizes each."""
    analysis = tc.analyze(text)
    targets = ("interpreter", "cpu") if analysis.ok else ()
    return analysis, {target: module_of(analysis, Options(text, target=target)) for target in targets}


def judge(text, sizes, data, name="f", on_gpu=None):
    """Check one cell on all counts; says in a few words how far it came.

    `on_gpu` gives the results of a function for the CUDA target and its arguments, or None where it cannot say.
    """
    defs = Parser(text).cell()
    one = defs[name] if isinstance(defs[name], Def) else defs[name].function
    arguments = arguments_of(one, sizes, data)
    expected = expected_of(text, name, arguments)
    analysis, modules = compiled(text)
    if not analysis.ok:
        codes = sorted({d.code.number for d in analysis.diagnostics if d.is_error})
        if (
            codes == ["TC311"]
            and len(defs) == 1
            and isinstance(expected, Outcome)
            and all(sizes.values())
            and not expected.unsure
        ):
            reached = all(high > low for _, ranges in expected.log for low, high in ranges.values())
            assert not reached, (
                f"TC311, but no access leaves: {[d.message for d in analysis.diagnostics]}\n{text}\n{sizes}"
            )
        return f"refused when compiled: {' '.join(codes)}"
    assert not isinstance(expected, Rejected), f"accepted, but {expected}\n{text}"
    if isinstance(expected, Unclear):
        return f"unclear: {expected}"
    note = f"{text}\n{sizes} data {data}"
    engines = {target: module[name] for target, module in modules.items()}
    found = {engine: called(function, arguments) for engine, function in engines.items()}
    refused = {engine: result.code.number for engine, result in found.items() if not isinstance(result, tuple)}
    if len(refused) == 1 and isinstance(expected, Refused) and expected.temporary:
        return "refused where what nothing needs is computed"
    assert len(refused) in (0, 2), f"one engine refuses: {refused}\n{note}"
    assert len(set(refused.values())) < 2, f"refused for different reasons: {refused}\n{note}"
    if isinstance(expected, Refused):
        if expected.temporary and not refused:
            return "accepted, as nothing needs the element that leaves"
        assert refused, f"accepted, but it has to be refused: {expected}\n{note}"
        return f"refused at the call: {expected}"
    if refused:
        if expected.unsure or (refused["cpu"] == "TC603" and expected.doubt):
            return "refused, perhaps rightly"
        if refused["cpu"] == "TC601" and leaves_nothing(found["cpu"], one, arguments):
            return "refused, perhaps rightly"
        raise AssertionError(f"refused, but no access leaves: {found['cpu'].message}\n{note}")
    same_ranges(analysis.functions[name], expected, sizes, arguments, one, note)
    for engine, results in found.items():
        for mine, theirs in zip(results, expected.results.values(), strict=True):
            agree(mine, theirs, f"{engine}\n{note}")
    if on_gpu is not None:
        cuda = module_of(analysis, Options(text, target="cuda"))[name]
        for mine, theirs in zip(
            on_gpu(cuda, [value for value, _ in arguments]) or (), expected.results.values(), strict=False
        ):
            agree(mine.view(ml_dtypes.bfloat16) if theirs.dtype == "bfloat16" else mine, theirs, f"on a GPU\n{note}")
    return judge_out(text, name, one, engines, arguments, expected, data, note)


def same_ranges(function, expected, sizes, arguments, one, note):
    """Ranges of all statements, evaluated at the sizes of the call."""
    known = {
        **sizes,
        **expected.sizes,
        **{p.name: int(v) for p, (v, t) in zip(one.parameters, arguments, strict=True) if not p.dims and "int" in t},
    }
    states = (f".{name}" for name in re.findall(r"\breduce (\w+)\(", function.program.source.text))
    parts = (".max", ".min", ".value", ".sum", ".first", ".re", ".im", ".product", *states)  # of what others read
    known_ranges = function.ranges.indices
    if any(s.block.endswith("#step") for s in function.program.statements):
        return  # of a def that is applied again and again: the steps are one statement, and several calls
    statements = [s for s in function.program.statements if s.name in known_ranges and not s.target.endswith(parts)]
    assert len(statements) == len(expected.log), note
    if any(s.block or "{" in one.name for s in statements) or re.search(
        r"\balong -?\w+ in\b", function.program.source.text
    ):
        statements.sort(key=lambda s: s.span.start)  # what a block computes for all steps stands before it
    for s, (_, ranges) in zip(statements, expected.log, strict=True):
        found = function.ranges.indices[s.name]
        here = {r.index: (r.lower.evaluate(known), r.upper.evaluate(known)) for r in found}
        moving = {r.index for r in found if r.ends is not None}
        for name, limits in ranges.items():
            name = s.output_indices[int(name[1:])].name if name.startswith("@") else name  # a dimension, not an index
            if name in moving or (
                name not in here
                and {f"{s.name}.re", *(f"{s.target}.{part}" for part in ("sum", "first", "product"))}
                & known_ranges.keys()
            ):
                continue  # the logarithm of a sum that other statements made, or the parts of one
            assert here[name] == limits, f"range of {name} in {s.name}: {here[name]}, not {limits}\n{note}"


def judge_out(text, name, one, engines, arguments, expected, data, note):
    """The same call with `out=`, and again the short way; arguments stay as they are."""
    random = np.random.default_rng(data + 1)
    given = out_arrays(random, expected)
    before = [np.array(value) for value, _ in arguments]
    again = expected_of(
        text, name, arguments, {key: (given[key], array.dtype) for key, array in expected.results.items()}
    )
    assert isinstance(again, Outcome | Unclear), f"out= has to be refused: {again}\n{note}"
    for engine, function in engines.items():
        out = tuple(np.copy(array) if array.base is None else relaid(array) for array in given.values())
        results = called(function, arguments, out if len(out) > 1 else out[0])
        assert isinstance(results, tuple), f"out= refused: {results}\n{note}"
        if isinstance(
            again, Unclear
        ):  # what was in the arrays decides conditions, and with what they hold now rounding does
            continue
        for mine, theirs in zip(results, again.results.values(), strict=True):
            agree(mine, theirs, f"{engine} with out=\n{note}")
    for mine, theirs in zip(called(engines["cpu"], arguments), expected.results.values(), strict=True):
        agree(mine, theirs, f"cpu, a call that was made before\n{note}")
    for (value, _), held in zip(arguments, before, strict=True):
        assert np.array(value).tobytes() == held.tobytes(), f"an argument was written\n{note}"
    return "computed" if isinstance(again, Outcome) else f"computed, unclear with out=: {again}"


def relaid(view):
    """A copy of a strided view that is strided alike."""
    wide = np.zeros([2 * n for n in view.shape], view.dtype)
    copy = wide[tuple(slice(None, None, 2) for _ in view.shape)]
    copy[...] = view
    return copy
