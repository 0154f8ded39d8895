"""The meaning of `%%tc`, evaluated directly: plain Python loops over points and Python numbers.

Written from the language reference and the page about ranges; nothing of `tc_jupyter` is used. Ranges are found on numbers, by the rounds
of that page; every read looks whether it stays inside its tensor. Beside every number stands how far a correct engine may be away from
it, since sums are taken in any order and `a*b + c` may be one operation: 0 where every order gives the same.

What the pages leave open (whether a guard is seen to imply a bound) raises `Unclear`.
"""

from __future__ import annotations

import cmath
import dataclasses
import itertools
import math
import random
import re
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special


class Refused(Exception):
    """The call is wrong: an access leaves its tensor, sizes conflict, a range ends before it starts, a divisor is 0.

    `temporary` tells that it is found while a temporary is computed, of which an engine computes what results need.
    """

    temporary = False


class Rejected(Exception):
    """The def is wrong."""


class Unclear(Exception):
    """The pages do not decide it."""


# text -> tree


@dataclass(frozen=True)
class Number:
    value: object
    dtype: str
    weak: bool


@dataclass(frozen=True)
class Name:
    """An index, a size, a number, or a tensor of 0 dimensions."""

    name: str


@dataclass(frozen=True)
class Apply:
    """A read, a function or a cast."""

    name: str
    args: tuple


@dataclass(frozen=True)
class Bordered:
    """`X(i - 1) else 0`."""

    read: object
    other: object


@dataclass(frozen=True)
class Extent:
    name: str
    dimension: int


@dataclass(frozen=True)
class Unary:
    op: str
    value: object


@dataclass(frozen=True)
class Binary:
    op: str
    left: object
    right: object


@dataclass(frozen=True)
class Choice:
    condition: object
    yes: object
    no: object


@dataclass
class Statement:
    target: str
    left: list
    op: str
    fresh: bool
    value: object
    ranges: dict = field(default_factory=dict)
    lets: dict = field(default_factory=dict)
    exists: list = field(default_factory=list)
    places: dict = field(default_factory=dict)
    """Subscripts of the left side that are no indices, by the names (`@0`) that stand for them in `left`."""
    unique: bool = False
    at: object = None
    extreme: tuple | None = None
    along: list = field(default_factory=list)
    """Indices, outermost first, with 1 or -1: the order of the points."""
    targets: list = field(default_factory=list)
    """Of a reducer, all targets; `target` is the last one."""
    rest: list = field(default_factory=list)
    """Of a reducer, the values behind the first one."""
    filters: list = field(default_factory=list)
    """Conditions as clauses."""
    beside: list = field(default_factory=list)
    """Other targets, whose stated sizes are those of this one."""


@dataclass
class Block:
    """`along t in low:high { ... }`; of each block around the statements its step, 1 or -1, and the ends."""

    heads: list
    statements: list


@dataclass
class CallDef:
    targets: list
    callee: str
    args: list
    count: str | None = None
    """How often a def is applied, of `f^n(X)`."""


@dataclass
class Dimension:
    """`low:high` or, with `low` 0, an extent that is neither a size nor a number."""

    low: object
    high: object
    box: bool


@dataclass
class Tensor:
    """A declaration: element type, sizes (or none, of a result whose dimensions are not stated), name."""

    dtype: str | None
    dims: list | None
    name: str


@dataclass
class Def:
    name: str
    parameters: list
    results: list
    statements: list
    words: set = field(default_factory=set)
    """Everything that is written in it."""


@dataclass
class Constant:
    tensor: Tensor
    values: list


@dataclass
class Reducer:
    """A function of the components of two operands, what changes nothing, and what becomes of values."""

    function: Def
    identity: Def
    lifted: Def | None


TYPE_NAMES = {
    "bool": "bool", "int": "int32", "byte": "uint8", "half": "float16", "float": "float32", "double": "float64",
    "bfloat16": "bfloat16", **{f"{s}int{b}": f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)},
    "float16": "float16", "float32": "float32", "float64": "float64", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)
    |(?P<number>0x[0-9a-fA-F]*\.[0-9a-fA-F]*p[+-]?\d+|0x[0-9a-fA-F]+|0b[01]+
       |(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?f?(?!\w)|\d+[eE][+-]?\d+f?(?!\w)|\d+(?:u|l|ll|ul|ull)?(?!\w))
    |(?P<name>\w+)
    |(?P<op>->|\+=!|\*=!|min=!|max=!|\+=|\*=|<<|>>|<=|>=|==|!=|&&|\|\||\^\^|[-+*/%<>!?:=(){},.\[\]&|^~])""",
    re.VERBOSE | re.IGNORECASE,
)


def tokens(text):
    found, place = [], 0
    reducers = set(re.findall(r"\breduce (\w+)\(", text))
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise Rejected(f"character {text[place]!r}")
        place = match.end()
        kind = match.lastgroup
        if kind == "name" and match.group() in ("min", "max"):
            # `min=` and `min=!` are operators, but `min == 1` and `(min=` do not occur
            more = re.compile(r"=(?!=)!?").match(text, place)
            if more:
                place = more.end()
                found.append(("op", match.group() + more.group()))
                continue
        if (
            kind == "name"
            and match.group() in {"argmin", "argmax", "any", "all", "lse", *reducers}
            and text[place : place + 2] == "=!"
        ):
            place += 2
            found.append(("op", match.group() + "=!"))
            continue
        if kind != "blank":
            found.append((kind, match.group()))
    return [*found, ("end", "")]


POSITIONS = {"argmin": "min", "argmax": "max"}
TRUTHS = {"any": "max", "all": "min"}


class Parser:
    """Recursive descent; a statement ends where no operator follows."""

    LEVELS = (
        ("||",),
        ("&&",),
        ("==", "!="),
        ("<", "<=", ">", ">="),
        ("|",),
        ("^^",),
        ("&",),
        ("<<", ">>"),
        ("+", "-"),
        ("*", "/", "%"),
    )

    def __init__(self, text):
        self.tokens, self.at = tokens(text), 0

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def kind(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][0]

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1][1]

    def take(self, word):
        if self.peek() == word and self.kind() != "end":
            self.at += 1
            return True
        return False

    def need(self, word):
        if not self.take(word):
            raise Rejected(f"{word!r} expected at {self.peek()!r}")

    def cell(self):
        defs, constants = {}, []
        while self.peek() in ("def", "reduce", "const"):
            if self.take("const"):
                constants.append(self.constant())
                continue
            if self.next() == "reduce":
                found = self.reducer()
                defs[found.function.name] = found
                continue
            start = self.at
            one = self.definition()
            one.words = {word for _, word in self.tokens[start : self.at]}
            defs[one.name] = one
        for one in filter(lambda each: isinstance(each, Def), defs.values()):
            one.statements = [*(c for c in constants if c.tensor.name in one.words), *one.statements]
        if self.kind() != "end":
            raise Rejected(f"a def expected at {self.peek()!r}")
        return defs

    def constant(self):
        tensor = self.tensor()
        self.need("=")
        return Constant(tensor, self.values(tensor.dims, tensor.dtype))

    def values(self, dims, dtype):
        if not dims:
            sign = -1 if self.take("-") else 1
            element = self.primary()
            if not isinstance(element, Number):
                raise Rejected("a constant whose elements are calls")
            value = element.value
            return [sign * (to_float(float(value), dtype) if is_float(dtype) else value)]
        self.need("[")
        found = []
        for number in range(dims[0]):
            if number:
                self.need(",")
            found += self.values(dims[1:], dtype)
        self.need("]")
        return found

    def definition(self):
        name = self.next()
        self.need("(")
        parameters = []
        while not self.take(")"):
            parameters.append(self.tensor())
            self.take(",")
        self.need("->")
        results = []
        if self.take("("):
            while not self.take(")"):
                results.append(self.tensor())
                self.take(",")
        else:
            results.append(self.tensor())
        self.need("{")
        statements = []
        while not self.take("}"):
            statements.append(self.block() if self.begins_block() else self.statement())
        return Def(name, parameters, results, statements)

    def begins_block(self):
        return self.peek() == "along" and "in" in (self.peek(2), self.peek(3)) and self.peek(1) not in ("=", "(")

    def block(self):
        self.need("along")
        way = -1 if self.take("-") else 1
        step = self.next()
        self.need("in")
        low = self.expression()
        self.need(":")
        high, statements = self.expression(), []
        self.need("{")
        while not self.take("}"):
            statements.append(self.block() if self.begins_block() else self.statement())
        head, inner = (step, way, low, high), [each for each in statements if isinstance(each, Block)]
        if inner and len(statements) > 1:
            raise Rejected("TC501")
        return Block([head, *inner[0].heads], inner[0].statements) if inner else Block([head], statements)

    def reducer(self):
        name, parameters = self.next(), []
        self.need("(")
        while not self.take(")"):
            parameters.append(self.tensor())
            self.take(",")
        self.need("=")
        results = [Tensor(p.dtype, [], f"{p.name}_") for p in parameters[: len(parameters) // 2]]
        function = self.numbers(name, parameters, results)
        self.need("from")
        identity, lifted = self.numbers(name, [], results), None
        if self.take("with"):
            names = [self.next()] if self.peek() != "(" else self.names()
            self.need("->")
            given = [Tensor(p.dtype, [], each) for p, each in zip(parameters, names, strict=False)]
            lifted = self.numbers(name, given, results)
        return Reducer(function, identity, lifted)

    def names(self):
        found = []
        self.need("(")
        while not self.take(")"):
            found.append(self.next())
            self.take(",")
        return found

    def numbers(self, name, parameters, results):
        """The def of a function of numbers, whose values come next."""
        values = [self.expression()] if len(results) == 1 else self.in_brackets()
        made = [Statement(r.name, None, "=", True, e) for r, e in zip(results, values, strict=True)]
        return Def(name, parameters, results, made)

    def in_brackets(self):
        self.need("(")
        found = [self.expression()]
        while self.take(","):
            found.append(self.expression())
        self.need(")")
        return found

    def has_targets(self):
        """Whether names with commas are the targets of an operator, and not those of a call."""
        ahead = 1
        while self.peek(ahead) == ",":
            ahead += 2
        return self.peek(ahead).endswith("=!")

    def tensor(self):
        if self.peek() not in TYPE_NAMES:
            return Tensor(None, None, self.next())
        dtype, dims = TYPE_NAMES[self.next()], []
        if self.take("("):
            while not self.take(")"):
                dims.append(self.dimension())
                self.take(",")
        return Tensor(dtype, dims, self.next())

    def dimension(self):
        if self.peek(1) in (",", ")"):
            word = self.next()
            return int(word) if word.isdigit() else word
        first = self.expression()
        if self.take(":"):
            return Dimension(first, self.expression(), True)
        return Dimension(Number(0, "int32", True), first, False)

    def statement(self):
        if self.take("const"):
            return self.constant()
        if self.peek(1) == "," and not self.has_targets():
            targets = [self.next()]
            while self.take(","):
                targets.append(self.next())
            self.need("=")
            if self.peek(1) == "^":
                callee, _ = self.next(), self.need("^")
                count, args = self.callee()
                return CallDef(targets, callee, args, count)
            return CallDef(targets, *self.callee())
        target, left, places = self.target()
        extreme, targets = None, [target]
        while self.take(","):
            extreme, first, (target, left, places) = (target, left), places, self.target()
            if places != first:
                raise Rejected("TC223")
            targets.append(target)
        op = self.next()
        own = op.endswith("=!") and op[0].isalpha() and op[:-2] not in {"min", "max", "lse", *POSITIONS, *TRUTHS}
        value, *rest = self.in_brackets() if own and self.peek() == "(" and self.several() else [self.expression()]
        fresh = op == "=" or op.endswith("!")
        statement = Statement(
            target, left, op.rstrip("!").rstrip("=") or "=", fresh, value, places=places, extreme=extreme,
            targets=targets if own else [], rest=rest,
        )  # fmt: skip
        if statement.op in POSITIONS and self.take("at"):
            statement.at = self.expression()
        self.order(statement)
        if self.take("where"):
            self.clause(statement)
            while self.take(","):
                self.clause(statement)
        self.order(statement)
        return statement

    def order(self, statement):
        """`along i, -j`, unless `along` is the target of the next statement."""
        if self.peek() != "along" or self.peek(1) in ("=", "(", ",") or self.begins_block():
            return
        more = self.take("along")
        while more:
            step = -1 if self.take("-") else 1
            statement.along.append((self.next(), step))
            more = self.take(",")

    def several(self):
        """Whether a comma stands in the bracket that comes next, and in no other one."""
        depth, ahead = 0, 0
        while self.kind(ahead) != "end":
            depth += (self.peek(ahead) in ("(", "[")) - (self.peek(ahead) in (")", "]"))
            if depth == 0 or (depth == 1 and self.peek(ahead) == ","):
                return depth == 1
            ahead += 1
        return False

    def target(self):
        name, left, places = self.next(), None, {}
        if self.take("("):
            left = []
            while not self.take(")"):
                subscript = self.expression()
                if isinstance(subscript, Name) and subscript.name not in left:
                    left.append(subscript.name)
                else:
                    left.append(f"@{len(left)}")
                    places[left[-1]] = subscript
                self.take(",")
        return name, left, places

    def callee(self):
        name, args = self.next(), []
        self.need("(")
        while not self.take(")"):
            args.append(self.next())
            self.take(",")
        return name, args

    def clause(self, statement):
        if self.take("unique"):
            statement.unique = True
            return
        if self.take("exists"):
            statement.exists.append(self.primary())
            return
        if self.peek(1) not in ("in", "="):
            statement.filters.append(self.expression())
            return
        name = self.next()
        if self.take("in"):
            low = self.expression()
            self.need(":")
            statement.ranges[name] = (low, self.expression())
            return
        self.need("=")
        if self.take("["):
            low = self.expression()
            self.need(",")
            statement.ranges[name] = (low, self.expression())
            self.need("[")
            return
        statement.lets[name] = self.expression()

    def expression(self):
        condition = self.level(0)
        if not self.take("?"):
            return condition
        yes = self.expression()
        self.need(":")
        return Choice(condition, yes, self.expression())

    def level(self, number):
        if number == len(self.LEVELS):
            return self.unary()
        value = self.level(number + 1)
        while self.kind() == "op" and self.peek() in self.LEVELS[number]:
            value = Binary(self.next(), value, self.level(number + 1))
        return value

    def unary(self):
        if self.kind() == "op" and self.peek() in ("-", "!"):
            return Unary(self.next(), self.unary())
        value = self.inverted()
        if not self.take("^"):
            return value
        if self.peek().isdigit() and self.peek(1) == "(":
            count, (_, args) = self.peek(), self.callee()
            return Binary("^", value, Apply(count, tuple(map(Name, args))))
        return Binary("^", value, self.unary())

    def inverted(self):
        if not self.take("~"):
            return self.primary()
        if self.kind() == "op" and self.peek() in ("-", "!"):
            return Unary("~", Unary(self.next(), self.inverted()))
        return Unary("~", self.inverted())

    def primary(self):
        kind, word = self.kind(), self.next()
        if kind == "number":
            return number(word)
        if word == "(":
            value = self.expression()
            self.need(")")
            return value
        if kind != "name":
            raise Rejected(f"unexpected {word!r}")
        if word in ("true", "false"):
            return Number(word == "true", "bool", False)
        if word in ("inf", "nan"):
            return Number(float(word), "float32", True)
        if self.peek() == "." and self.kind(1) == "number":
            self.next()
            return Extent(word, int(self.next()))
        # `T.0` is a name and the number `.0`
        if self.kind() == "number" and re.fullmatch(r"\.\d+", self.peek()):
            return Extent(word, int(self.next()[1:]))
        if self.take("("):
            args = []
            while not self.take(")"):
                args.append(self.expression())
                self.take(",")
            if word == "clamp" and len(args) == 3:
                return Apply("min", (Apply("max", (args[0], args[1])), args[2]))
            read = Apply(word, tuple(args))
            return Bordered(read, self.otherwise()) if self.take("else") else read
        return Name(word)

    def otherwise(self):
        if self.take("-"):
            return Unary("-", self.primary())
        return self.primary()


def number(word):
    low = word.lower()
    if low.startswith("0x") and "p" in low:
        return Number(float.fromhex(low), "float32", True)
    if low.startswith(("0x", "0b")):
        return Number(int(low, 0), "int32", True)
    digits = low.rstrip("ulf")
    suffix = low[len(digits) :]
    if "." in digits or "e" in digits or suffix == "f":
        return Number(float(digits), "float32", suffix == "")
    dtype = {"": "int32", "u": "uint32", "l": "int64", "ll": "int64", "ul": "uint64", "ull": "uint64"}[suffix]
    value = int(digits)
    if suffix == "" and value >= 2**31:
        dtype = "int64" if value < 2**63 else "uint64"
    return Number(value, dtype, suffix == "")


# types

FLOAT_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float64": 1.8e308}
PARTS = {"complex64": "float32", "complex128": "float64"}
"""Types of complex numbers, and of their real and imaginary parts. The error of a complex number is that of its size."""
COMPARE = ("<", "<=", ">", ">=", "==", "!=")


def is_float(dtype):
    return dtype in FLOAT_BITS


def is_complex(dtype):
    return dtype in PARTS


def is_integer(dtype):
    return dtype not in FLOAT_BITS and dtype not in PARTS and dtype != "bool"


def limits(dtype):
    bits = int(dtype.strip("uint"))
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def computed(dtype):
    """The type in which numbers of a type are computed."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def meet(a, b):
    if a == b:
        return a
    if is_complex(a) or is_complex(b):
        part = meet("float32", meet(PARTS.get(a, a), PARTS.get(b, b)))
        return next(t for t in PARTS if PARTS[t] == part)
    a, b = ("int32" if t == "bool" else t for t in (a, b))
    if a == b:
        return a
    if is_float(a) and is_float(b):
        narrow = {"float16", "bfloat16"}
        if {a, b} == narrow:
            return "float32"
        return a if FLOAT_BITS[a] > FLOAT_BITS[b] else b
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    if (a[0] == "u") == (b[0] == "u"):
        return max(a, b, key=lambda t: limits(t)[1])
    lows, highs = zip(limits(a), limits(b), strict=True)
    for wide in ("int16", "int32", "int64"):
        if limits(wide)[0] <= min(lows) and max(highs) <= limits(wide)[1]:
            return wide
    return "int64"


def fits(source, target):
    """Whether every value of a type is one of another."""
    if source == target or source == "bool":
        return True
    if target == "bool":
        return False
    if is_complex(source) or is_complex(target):
        return is_complex(target) and fits(PARTS.get(source, source), PARTS[target])
    if is_float(source):
        if source == "float16" and target == "bfloat16":
            return False
        return is_float(target) and FLOAT_BITS[source] <= FLOAT_BITS[target] and target != "float16"
    low, high = limits(source)
    if is_float(target):
        return max(-low, high + 1) <= 2 ** FLOAT_BITS[target]
    return limits(target)[0] <= low and high <= limits(target)[1]


def holds(value, dtype):
    """Whether a type can hold a weak literal."""
    dtype = PARTS.get(dtype, dtype)
    if dtype == "bool":
        return False
    if is_float(dtype):
        return not math.isfinite(value) or abs(value) <= LARGEST[dtype]
    return isinstance(value, int) and limits(dtype)[0] <= value <= limits(dtype)[1]


@dataclass(frozen=True)
class Type:
    """An element type; `weak` is the value of a literal, or of arithmetic on literals, that takes the type it meets.

    `varies` tells a choice between literals, of which `weak` is the largest.
    """

    dtype: str
    weak: object = None
    varies: bool = False

    @property
    def constant(self):
        return self.weak is not None and not self.varies


def literal_type(value):
    if isinstance(value, float):
        return "float32"
    return next((t for t in ("int32", "int64", "uint64") if limits(t)[0] <= value <= limits(t)[1]), "int64")


def meet_types(*types):
    """The common type of operands, literals last."""
    strong = [t.dtype for t in types if t.weak is None]
    if not strong:
        if any(isinstance(t.weak, float) for t in types):
            return "float32"
        return meet_all(t.dtype for t in types)
    found = meet_all(strong)
    for t in types:
        if t.weak is not None and not holds(t.weak, found):
            found = meet(found, t.dtype)
    return found


def meet_all(types):
    found = None
    for t in types:
        found = t if found is None else meet(found, t)
    return found


# numbers

UNSURE = math.inf
MOST_POINTS = 6000
MOST_TRIED = 400  # numbers for a size that only a formula gives
TINY = 1e-44


def to_float(value, dtype):
    """The number of a floating type that is next to `value`."""
    if dtype == "float64" or value != value or math.isinf(value):
        return float(value)
    if dtype == "float32":
        return float(np.float32(value))
    if dtype == "float16":
        return float(np.float16(value))
    bits = int(np.float32(value).view(np.uint32))
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return float(np.uint32(bits).view(np.float32))


def wrap(value, dtype):
    low, high = limits(dtype)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


WIDEST = ("int64", "uint64")


def wraps(dtype, mode):
    """Whether integer arithmetic wraps: beside a comparison only that which has 64 bits, in a subscript none."""
    return not mode or (mode == "test" and dtype in WIDEST)


def left_of(value, dtype, mode):
    """What integer arithmetic leaves of a number."""
    if mode == "test" and not -(1 << 63) <= value < 1 << 64 and dtype not in WIDEST:
        raise Unclear("a number beside a comparison beyond 64 bits")
    return wrap(value, dtype) if wraps(dtype, mode) else value


def convert(value, error, source, target):
    """A number in another type: integers wrap, floats are cut off, and end at the ends of the integer type."""
    if is_complex(target):
        re, im = (value.real, value.imag) if is_complex(source) else (value, 0.0)
        parts = [convert(x, error, PARTS.get(source, source), PARTS[target]) for x in (re, im)]
        return joined(*parts) if is_complex(source) else (complex(parts[0][0], 0.0), parts[0][1])
    if target == "bool":
        if error and abs(value) <= error:
            return False, UNSURE
        return bool(value != 0), 0.0 if error != UNSURE else UNSURE
    if is_float(target):
        if isinstance(value, int):
            exact = value
            value = to_float(float(np.float32(exact)) if target == "float32" else float(exact), target)
            return value, error
        rounded = to_float(value, target)
        if error and error != UNSURE:
            error += abs(rounded - value) * 2 + spacing(rounded, target)
        return rounded, error
    if isinstance(value, float):
        if value != value:
            return 0, error
        low, high = limits(target)
        if error and (error == UNSURE or math.trunc(value - error) != math.trunc(value + error)):
            return 0, UNSURE
        return (low if value <= low else high if value >= high else math.trunc(value)), 0.0
    return wrap(int(value), target), error


def spacing(value, dtype):
    if not math.isfinite(value):
        return 0.0
    return max(abs(value) * 2.0 ** (1 - FLOAT_BITS[dtype]), {"float16": 6e-8, "float64": 5e-324}.get(dtype, 1.5e-45))


def shifted(op, x, y, width):
    """A shift by the width or more, or by a negative number, shifts everything out; the sign stays."""
    if op == "<<":
        return x << y if 0 <= y < width else 0
    return x >> (y if 0 <= y < width else width)


BITS = {"&": lambda x, y: x & y, "|": lambda x, y: x | y, "^^": lambda x, y: x ^ y}
SHIFTS = ("<<", ">>")
JOINED = {"&": "&&", "|": "||", "^^": "!="}


def floor_divide(a, b):
    return a // b if b else 0


def floor_remainder(a, b):
    return a % b if b else 0


class Float:
    """Arithmetic of a floating type on pairs (number, error)."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.unit = 2.0 ** -FLOAT_BITS[dtype]

    def near(self, value, error, exact):
        """The rounded result of an operation."""
        rounded = to_float(value, self.dtype)
        if not math.isfinite(rounded):
            return rounded, UNSURE if error or (math.isfinite(value) and not exact) else 0.0
        if not exact or error:
            error += 2 * self.unit * abs(rounded) + TINY
        return rounded, error

    def add(self, a, b):
        (x, ex), (y, ey) = a, b
        s = x + y
        if not math.isfinite(s):
            return s, UNSURE if ex or ey or (math.isfinite(x) and math.isfinite(y)) else 0.0
        back = s - x
        exact = (x - (s - back)) + (y - back) == 0 and to_float(s, self.dtype) == s
        return self.near(s, ex + ey, exact)

    def sub(self, a, b):
        return self.add(a, (-b[0], b[1]))

    def mul(self, a, b):
        (x, ex), (y, ey) = a, b
        if UNSURE in (ex, ey):  # 0 times what may be an infinity is no 0
            return 0.0, UNSURE
        p = x * y
        if not math.isfinite(p):
            return p, UNSURE if ex or ey or (math.isfinite(x) and math.isfinite(y)) else 0.0
        exact = to_float(p, self.dtype) == p and (self.dtype != "float64" or exact_product(x, y))
        return self.near(p, abs(x) * ey + abs(y) * ex + ex * ey, exact)

    def div(self, a, b):
        (x, ex), (y, ey) = a, b
        if y == 0 or (ey and abs(y) <= 2 * ey):
            # the sign of a zero is not told
            return (math.nan, 0.0) if x != x or y != y or (x == 0 and not ex and not ey) else (math.inf, UNSURE)
        q = x / y
        if not math.isfinite(q):
            return q, UNSURE if ex or ey or (math.isfinite(x) and math.isfinite(y)) else 0.0
        if math.isinf(y):
            return q, 0.0
        exact = to_float(q, self.dtype) == q and exact_product(q, y) and q * y == x
        return self.near(q, (ex + abs(q) * ey) / (abs(y) - ey), exact)

    def mod(self, a, b):
        (x, ex), (y, ey) = a, b
        if y == 0 and not ey:
            return math.nan, 0.0
        if not (math.isfinite(x) and math.isfinite(y)) or ex or ey or abs(x / y) > 2**20:
            return 0.0, UNSURE
        r = math.fmod(x, y)
        r = r + y if r and (r < 0) != (y < 0) else r
        if r and (abs(r) < 1e-3 * abs(y) or abs(r - y) < 1e-3 * abs(y)):
            return 0.0, UNSURE
        return self.near(r, 0.0 if float(x).is_integer() and float(y).is_integer() else abs(x) * 2 * self.unit, True)


def joined(re, im):
    """A complex number of two parts with their errors."""
    if UNSURE in (re[1], im[1]) or not (math.isfinite(re[0]) and math.isfinite(im[0])):
        return 0j, UNSURE
    return complex(re[0], im[0]), re[1] + im[1]


class Complex:
    """Arithmetic of complex numbers on pairs (number, error): by parts, but for quotients."""

    def __init__(self, dtype):
        self.ring = Float(PARTS[dtype])

    def parts(self, a):
        return (a[0].real, a[1]), (a[0].imag, a[1])

    def add(self, a, b):
        return joined(*map(self.ring.add, self.parts(a), self.parts(b)))

    def sub(self, a, b):
        return joined(*map(self.ring.sub, self.parts(a), self.parts(b)))

    def mul(self, a, b):
        (w, x), (y, z), ring = self.parts(a), self.parts(b), self.ring
        return joined(ring.sub(ring.mul(w, y), ring.mul(x, z)), ring.add(ring.mul(w, z), ring.mul(x, y)))

    def div(self, a, b):
        (x, ex), (y, ey) = a, b
        if not abs(y) > 4 * ey or not math.isfinite(abs(x)):
            return 0j, UNSURE
        q = x / y
        return self.near(q, (ex + abs(q) * ey) / (abs(y) - ey))

    def power(self, a, exponent):
        found = (1 + 0j, 0.0)
        for _ in range(abs(exponent)):
            found = self.mul(found, a)
        return found if exponent >= 0 else self.div((1 + 0j, 0.0), found)

    def near(self, value, error):
        """The result of a formula that rounds some times."""
        if not 1e-30 < abs(value) + 1e-20 < 1e30:
            return 0j, UNSURE
        return value, error + 24 * self.ring.unit * abs(value) + TINY

    def exp(self, a):
        value, error = a
        if not (abs(value.real) < 60 and abs(value.imag) < 1e4):
            return 0j, UNSURE
        found = cmath.exp(value)
        return self.near(found, abs(found) * 4 * (error + self.ring.unit * abs(value)))

    def sqrt(self, a):
        value, error = a
        if not math.isfinite(abs(value)) or (value.real <= 0 and abs(value.imag) <= error) or abs(value) <= 4 * error:
            return 0j, 0.0 if value == 0 and not error else UNSURE
        found = cmath.sqrt(value)
        return self.near(found, error / abs(found))


COMPLEX = {dtype: Complex(dtype) for dtype in PARTS}
OF_COMPLEX = ("re", "im", "conj", "abs", "exp", "sqrt")
TESTS_OF_COMPLEX = ("isnan", "isinf", "isfinite")


def exact_product(x, y):
    """Whether a product of doubles is exact."""
    p = x * y
    if not math.isfinite(p):
        return False
    a, b = x.as_integer_ratio()
    c, d = y.as_integer_ratio()
    e, f = p.as_integer_ratio()
    return a * c * f == e * b * d


FLOATS = {"float32": Float("float32"), "float64": Float("float64")}


TESTS = {
    "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
}  # fmt: skip


def extreme(name, a, b):
    """`min` and `max`; NaN if any operand is."""
    (x, ex), (y, ey) = a, b
    if x != x or y != y:
        return math.nan, max(ex if x == x else 0.0, ey if y == y else 0.0) and UNSURE
    first = x < y if name == "min" else x > y
    return (x if first else y), max(ex, ey)


# functions of floats


def half_away(x):
    return math.copysign(math.floor(abs(x) + 0.5), x) if math.isfinite(x) and abs(x) < 2**52 else x


def logb(x):
    if x == 0:
        return -math.inf
    return math.inf if math.isinf(x) else float(math.frexp(x)[1] - 1)


def fdim(x, y):
    return math.nan if x != x or y != y else max(x - y, 0.0)


def turns(function, x, quarter):
    """`sin` or `cos` of pi times `x`."""
    if not math.isfinite(x):
        return math.nan
    x = math.fmod(x, 2.0)
    if (2 * x).is_integer():
        return (0.0, 1.0, 0.0, -1.0)[(int(2 * x) + quarter) % 4]
    return function(math.pi * x)


def pow_(x, y):
    return float(np.power(np.float64(x), np.float64(y)))


ONE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "cos": np.cos, "cosh": np.cosh, "cospi": lambda x: turns(math.cos, x, 1), "sin": np.sin, "sinh": np.sinh,
    "sinpi": lambda x: turns(math.sin, x, 0), "tan": np.tan, "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2,
    "exp10": lambda x: pow_(10.0, x), "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "logb": logb, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(np.float64(x)), "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(np.float64(x)), "erf": special.erf, "erfc": special.erfc, "erfcx": special.erfcx,
    "erfinv": special.erfinv, "erfcinv": special.erfcinv, "normcdf": special.ndtr, "normcdfinv": special.ndtri,
    "lgamma": special.gammaln, "tgamma": special.gamma, "digamma": special.psi, "j0": special.j0, "j1": special.j1, "y0": special.y0, "y1": special.y1,
    "cyl_bessel_i0": special.i0, "cyl_bessel_i1": special.i1, "fabs": abs, "sigmoid": special.expit,
    "relu": lambda x: math.nan if x != x else max(x, 0.0),
}  # fmt: skip
MANY = {
    "atan2": (2, np.arctan2), "copysign": (2, np.copysign), "fdim": (2, fdim), "fdivide": (2, None), "fmax": (2, np.fmax),
    "fmin": (2, np.fmin), "fmod": (2, np.fmod), "hypot": (2, np.hypot), "nextafter": (2, np.nextafter), "pow": (2, pow_), "polygamma": (2, lambda n, x: special.polygamma(round(n), x)),
    "remainder": (2, lambda x, y: math.remainder(x, y) if math.isfinite(x) and y else math.nan),
    "rhypot": (2, lambda x, y: 1 / np.hypot(np.float64(x), np.float64(y))), "fma": (3, None),
    "norm3d": (3, lambda *x: math.hypot(*x)), "rnorm3d": (3, lambda *x: 1 / np.float64(math.hypot(*x))),
    "norm4d": (4, lambda *x: math.hypot(*x)), "rnorm4d": (4, lambda *x: 1 / np.float64(math.hypot(*x))),
}  # fmt: skip
TESTED = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}
KEPT = {
    "abs": abs, "sign": lambda x: x if x != x else float((x > 0) - (x < 0)), "ceil": np.ceil, "floor": np.floor,
    "round": half_away, "rounded": lambda x: x, "trunc": np.trunc,
}  # fmt: skip
FUNCTIONS = {*ONE, *MANY, *TESTED, *KEPT, "min", "max", "uniform", "normal", "popcount"}


def philox(seed, counter):
    """Two words of Philox4x32-10."""
    k, c, low = [seed % 2**32, seed // 2**32 % 2**32], [n % 2**32 for n in [*counter, 0, 0, 0]], 2**32 - 1
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & low, (p >> 32) ^ c[3] ^ k[1], p & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c[:2]


def drawn(name, seed, counter):
    """A random number, and how far it may be away."""
    one, two = (word >> 8 for word in philox(seed, counter))
    if name == "uniform":
        return one / 2**24, 0.0
    value = math.sqrt(-2 * math.log((one + 1) / 2**24)) * math.cos(2 * math.pi * two / 2**24)
    return to_float(value, "float32"), 4e-7 * abs(value) + 1e-7


JUMPS = {"fmod", "remainder", "nextafter", "logb", "copysign"}
SIGNS = {"copysign", "atan2", "rcbrt", "nextafter", "y0", "y1", "rsqrt", "tgamma", "lgamma", "log", "pow", "fdivide"}
"""What may tell one zero from the other, or has a pole there."""


def apply(name, function, args, dtype):
    """A function in a floating type: computed in double, with the errors of arguments carried through it."""
    values = [x for x, _ in args]
    worst = max(e for _, e in args)
    if worst == UNSURE:
        return 0.0, UNSURE
    if name == "fma":
        ring = FLOATS[dtype]
        return ring.add(ring.mul(args[0], args[1]), args[2])
    if name == "fdivide":
        return FLOATS[dtype].div(*args)
    if name in JUMPS and worst:
        return 0.0, UNSURE
    if name in SIGNS and 0.0 in values:
        return 0.0, UNSURE
    if name == "nextafter":
        kind = np.float32 if dtype == "float32" else np.float64
        return float(np.nextafter(kind(values[0]), kind(values[1]))), 0.0
    found = float(function(*values))
    if name in ("fmax", "fmin", "fabs", "relu"):
        return to_float(found, dtype), worst
    unit = 2.0 ** -FLOAT_BITS[dtype]
    if not math.isfinite(found):
        return found, UNSURE if worst or (found == found and math.isinf(found)) else 0.0
    error = 24 * unit * abs(found) + 8 * unit + TINY
    for number, (x, e) in enumerate(args):
        if not math.isfinite(x):
            continue
        for moved in (x - e - 4 * unit * abs(x), x + e + 4 * unit * abs(x)):
            other = float(function(*[moved if k == number else v for k, v in enumerate(values)]))
            if other != other or math.isinf(other):
                return 0.0, UNSURE
            error += abs(other - found)
    rounded = to_float(found, dtype)
    return rounded, error if math.isfinite(rounded) else UNSURE


def keep(name, value, error):
    """`abs`, `sign`, `ceil` ... of a float."""
    x = value
    if error == UNSURE:
        return 0.0, UNSURE
    if not math.isfinite(x):
        return float(KEPT[name](x)), 0.0
    found = float(KEPT[name](x))
    if name in ("abs", "rounded") or not error:
        return found, error
    return (found, 0.0) if KEPT[name](x - error) == found == KEPT[name](x + error) else (0.0, UNSURE)


# a tensor with its numbers


class Array:
    """Numbers and errors of a tensor; `low` is where each dimension starts."""

    def __init__(self, dtype, low, shape, values=None, errors=None):
        self.dtype, self.low, self.shape = dtype, list(low), list(shape)
        size = math.prod(self.shape)
        self.values = [0] * size if values is None else values
        self.errors = [0.0] * size if errors is None else errors
        self.steps = [math.prod(self.shape[d + 1 :]) for d in range(len(self.shape))]

    @property
    def box(self):
        return [(a, a + n) for a, n in zip(self.low, self.shape, strict=True)]

    def place(self, index):
        """Where an element lies; `None` outside."""
        place = 0
        for i, a, n, step in zip(index, self.low, self.shape, self.steps, strict=True):
            if not 0 <= i - a < n:
                return None
            place += (i - a) * step
        return place

    def moved(self):
        """The same, counted from 0, as a caller gets it."""
        return Array(self.dtype, [0] * len(self.shape), self.shape, self.values, self.errors)


def array_of(numpy_array, dtype):
    flat = [x.item() if dtype != "bfloat16" else float(x) for x in np.asarray(numpy_array).reshape(-1)]
    return Array(dtype, [0] * numpy_array.ndim, numpy_array.shape, flat)


# trees


def is_border(e):
    """Whether this is `wrap(i + 1)` or the like, as a subscript."""
    return isinstance(e, Apply) and e.name in ("clamp", "wrap", "reflect", "symmetric") and len(e.args) == 1


def children(e):
    match e:
        case Apply():
            return e.args
        case Unary():
            return (e.value,)
        case Binary():
            return (e.left, e.right)
        case Choice():
            return (e.condition, e.yes, e.no)
        case Bordered():
            return (e.read, e.other)
        case _:
            return ()


def with_tests(e):
    """Children with the condition, and its value, without which they are not computed; `None` where they always are."""
    match e:
        case Choice():
            return ((e.condition, None, True), (e.yes, e.condition, True), (e.no, e.condition, False))
        case Bordered():  # neither is computed where it does not have to be
            return ((e.read, e, True), (e.other, e, False))
        case Binary(op="&&" | "||"):
            return ((e.left, None, True), (e.right, e.left, e.op == "&&"))
        case _:
            return tuple((child, None, True) for child in children(e))


def walk(e):
    yield e
    for child in children(e):
        yield from walk(child)


def replaced(e, lets):
    """`e` with lets put in place."""
    match e:
        case Name():
            return lets.get(e.name, e)
        case Apply():
            return Apply(e.name, tuple(replaced(a, lets) for a in e.args))
        case Unary():
            return Unary(e.op, replaced(e.value, lets))
        case Binary():
            return Binary(e.op, replaced(e.left, lets), replaced(e.right, lets))
        case Choice():
            return Choice(*(replaced(c, lets) for c in children(e)))
        case Bordered():
            return Bordered(*(replaced(c, lets) for c in children(e)))
        case _:
            return e


def is_literal_integer(e):
    """Whether an expression is an integer without a type."""
    match e:
        case Number():
            return e.weak is True and e.dtype == "int32"
        case Unary(op="-"):
            return is_literal_integer(e.value)
        case _:
            return False


def put_all(e, values, settles=False):
    """`e` with values in the place of the elements of several tensors."""
    for name, value in values.items():
        e = put_for(e, name, value, settles)
    return e


def replace_in(s, change):
    """A statement with other expressions."""
    return dataclasses.replace(
        s,
        value=change(s.value),
        ranges={name: tuple(map(change, ends)) for name, ends in s.ranges.items()},
        lets={name: change(e) for name, e in s.lets.items()},
        exists=[change(e) for e in s.exists],
        places={name: change(e) for name, e in s.places.items()},
        filters=[change(e) for e in s.filters],
    )


def with_subscript(e, names, steps):
    """`e` with the steps as the first subscripts of some tensors."""
    match e:
        case Name() if e.name in names:
            return Apply(e.name, steps)
        case Extent() if e.name in names:
            return Extent(e.name, e.dimension + len(steps))
        case Apply():
            args = tuple(with_subscript(a, names, steps) for a in e.args)
            return Apply(e.name, (*steps, *args) if e.name in names else args)
        case Unary():
            return Unary(e.op, with_subscript(e.value, names, steps))
        case Binary():
            return Binary(e.op, with_subscript(e.left, names, steps), with_subscript(e.right, names, steps))
        case Choice() | Bordered():
            return type(e)(*(with_subscript(c, names, steps) for c in children(e)))
        case _:
            return e


def put_for(e, tensor, value, settles=False):
    """`e` with a value in the place of the elements of a tensor; `settles`: a choice between it and an integer is it."""
    if settles:
        match e:
            case Bordered() if e.read.name == tensor and is_literal_integer(put_for(e.other, tensor, value, True)):
                return value
            case Choice():
                found = [put_for(each, tensor, value, True) for each in (e.yes, e.no)]
                if all(map(is_literal_integer, found)):
                    return value
    match e:
        case Name() | Apply() if e.name == tensor:
            return value
        case Apply():
            return Apply(e.name, tuple(put_for(a, tensor, value, settles) for a in e.args))
        case Unary():
            return Unary(e.op, put_for(e.value, tensor, value, settles))
        case Binary():
            return Binary(e.op, put_for(e.left, tensor, value, settles), put_for(e.right, tensor, value, settles))
        case Choice():
            return Choice(*(put_for(c, tensor, value, settles) for c in children(e)))
        case Bordered():
            if e.read.name == tensor:
                return Choice(Number(True, "bool", False), value, put_for(e.other, tensor, value, settles))
            return Bordered(*(put_for(c, tensor, value, settles) for c in children(e)))
        case _:
            return e


# a bound of an access as a sum of products


class Sum:
    """A sum of products of atoms with whole factors: `terms` maps a sorted tuple of atoms to a factor."""

    def __init__(self, terms):
        self.terms = {key: c for key, c in terms.items() if c}

    def __add__(self, other):
        return Sum({k: self.terms.get(k, 0) + other.terms.get(k, 0) for k in {*self.terms, *other.terms}})

    def times(self, other):
        found = {}
        for (a, x), (b, y) in itertools.product(self.terms.items(), other.terms.items()):
            key = tuple(sorted((*a, *b), key=repr))
            found[key] = found.get(key, 0) + x * y
        return Sum(found)

    def scaled(self, c):
        return Sum({k: c * x for k, x in self.terms.items()})

    @property
    def constant(self):
        """The number, if it is one."""
        return self.terms.get((), 0) if set(self.terms) <= {()} else None


def plain(number):
    return Sum({(): number})


@dataclass(frozen=True)
class Side:
    """One bound of one access: `terms >= 0`; `guards` are the conditions around the access."""

    read: object
    dimension: int
    side: str
    subscript: object
    guards: tuple


ANY = Number(1, "int32", True)
"""What stands for an element that a statement reads of its own target while its type and its ranges are found."""


class Run:
    """One call of a def."""

    def __init__(self, defs, one, arguments):
        self.defs, self.one, self.in_block = defs, one, False
        self.sizes, self.tensors, self.scalars = {}, {}, {}
        self.adopted = {}
        """Types that literals take from the next statement on their target."""
        self.unwritten = {}
        """Places of tensors that statements with `=` have not written so far."""
        self.log = []
        """Ranges of every statement that was run, in order."""
        self.unsure = False
        """Whether it depends on rounding if an access took place."""
        self.doubt = False
        """Whether a divisor that is 0 stands behind a condition."""
        held = list(zip(one.parameters, arguments, strict=True))
        self.scalars |= {parameter.name: value for parameter, value in held if not parameter.dims}
        for parameter, value in held:
            if parameter.dims:
                self.receive(parameter, value)
        self.find_sizes([(d, n) for p, a in held for d, n in zip(p.dims or (), a.shape, strict=bool(p.dims))])
        for parameter, value in held:
            if parameter.dims:
                low = [self.end(d.low) if isinstance(d, Dimension) else 0 for d in parameter.dims]
                self.tensors[parameter.name] = Array(value.dtype, low, value.shape, value.values, value.errors)

    def receive(self, parameter, value):
        for dim, extent in zip(parameter.dims, value.shape, strict=True):
            if isinstance(dim, int):
                if dim != extent:
                    raise Refused("sizes")
            elif isinstance(dim, str) and dim not in self.scalars and self.sizes.setdefault(dim, extent) != extent:
                raise Refused("sizes")

    def find_sizes(self, dims):
        """Try numbers for a size that stands in one formula with known ones; then compare all extents."""
        formulas = [(dim, extent) for dim, extent in dims if isinstance(dim, Dimension)]
        formulas += [
            (Dimension(Number(0, "int32", True), Name(d), False), n) for d, n in dims if str(d) in self.scalars
        ]
        more = True
        while more:
            more = False
            for dim, extent in formulas:
                names = {n.name for e in (dim.low, dim.high) for n in walk(e) if isinstance(n, Name)}
                unknown = names - self.sizes.keys() - self.scalars.keys()
                if len(unknown) == 1:
                    self.sizes |= self.tried(unknown.pop(), dim, extent)
                    more = True
        for dim, extent in formulas:
            if self.length(dim) != extent:
                raise Refused("sizes")

    def tried(self, name, dim, extent):
        fits = []
        for number_ in range(MOST_TRIED):
            self.sizes[name] = number_
            if self.length(dim) == extent:
                fits.append(number_)
        if len(fits) > 1:
            raise Unclear("a size that a formula does not fix")
        if not fits:
            raise Refused("sizes")
        return {name: fits[0]}

    def end(self, e):
        self.types, self.code = {}, {}
        return self.whole(e)

    def length(self, dim):
        return self.end(dim.high) - self.end(dim.low)

    def symbols(self, dim):
        """An extent with the names of sizes in it; nothing is known of one that does not start at 0."""
        if isinstance(dim, int):
            return plain(dim)
        if isinstance(dim, str):
            return Sum({(("size", dim),): 1})
        return None if dim.box else self.sum_of(dim.high, True)

    # what a name is

    def is_index(self, name):
        return name not in self.sizes and name not in self.tensors and name not in self.scalars

    def indices_in(self, e):
        return {n.name for n in walk(e) if isinstance(n, Name) and self.is_index(n.name)}

    def is_read(self, e):
        return isinstance(e, Apply) and e.name in self.tensors

    def has_data(self, e):
        """Whether elements, or computed numbers, decide."""
        return any(self.is_read(n) or (isinstance(n, Name) and n.name in self.tensors) for n in walk(e))

    # types

    def type_of(self, e):
        key = id(e)
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = (self.typed(e), e)
        return found[0]

    def typed(self, e):
        match e:
            case Number():
                return Type(e.dtype, e.value if e.weak else None)
            case Name():
                if e.name in self.scalars:
                    return Type(self.scalars[e.name].dtype)
                if e.name in self.tensors:
                    if self.tensors[e.name].shape:
                        raise Rejected("TC202")
                    return Type(self.tensors[e.name].dtype)
                return Type("int64")
            case Extent():
                return Type("int64")
            case Unary():
                return self.typed_unary(e)
            case Binary():
                return self.typed_binary(e)
            case Bordered():
                return Type(meet_types(self.type_of(e.read), self.type_of(e.other)))
            case Choice():
                self.need_bool(e.condition)
                yes, no = self.type_of(e.yes), self.type_of(e.no)
                if yes.weak is not None and no.weak is not None and isinstance(yes.weak + no.weak, float):
                    return Type("float32", float(max(abs(yes.weak), abs(no.weak))), True)
                return Type(meet_types(yes, no))
            case Apply():
                return self.typed_apply(e)
        raise AssertionError(e)

    def need_bool(self, e):
        if self.type_of(e).dtype != "bool":
            raise Rejected("TC212")

    def typed_unary(self, e):
        if e.op == "!":
            self.need_bool(e.value)
            return Type("bool")
        inner = self.type_of(e.value)
        if e.op == "~":
            if inner.dtype == "bool" or is_float(inner.dtype):
                raise Rejected("TC212")
            return Type(inner.dtype) if inner.weak is None else Type(literal_type(~inner.weak), ~inner.weak)
        if inner.weak is not None:
            return Type(literal_type(-inner.weak), -inner.weak, inner.varies)
        return Type("int32" if inner.dtype == "bool" else inner.dtype)

    def typed_binary(self, e):
        if e.op in ("&&", "||"):
            self.need_bool(e.left)
            self.need_bool(e.right)
            return Type("bool")
        left, right = self.type_of(e.left), self.type_of(e.right)
        if is_complex(left.dtype) and e.op == "^" and isinstance(right.weak, int):
            return Type(left.dtype)
        if (is_complex(left.dtype) or is_complex(right.dtype)) and e.op not in ("+", "-", "*", "/", "==", "!="):
            raise Rejected("TC212")
        if e.op in COMPARE:
            return Type("bool")
        if e.op == "^":
            return self.typed_power(left, right)
        if e.op in (*BITS, *SHIFTS):
            if left.dtype == right.dtype == "bool" and e.op in BITS:
                return Type("bool")
            if (
                is_float(left.dtype)
                or is_float(right.dtype)
                or (e.op in SHIFTS and right.weak is not None and right.weak < 0)
            ):
                raise Rejected("TC212 or TC206")
        if left.weak is not None and right.weak is not None:
            value = weak_arithmetic(e.op, left.weak, right.weak)
            return Type(literal_type(value), value, left.varies or right.varies)
        common = meet_types(left, right)
        return Type("int32" if common == "bool" else common)

    def typed_power(self, left, right):
        """An integer has powers that are literals and not negative."""
        if is_float(right.dtype) or right.dtype == "bool":
            raise Rejected("TC212")
        if not is_float(left.dtype):
            if right.weak is None or right.weak < 0:
                raise Rejected("TC212 or TC206")
            if left.weak is None:
                return Type("int32" if left.dtype == "bool" else left.dtype)
            return Type(literal_type(left.weak**right.weak), left.weak**right.weak)
        if left.weak is None:
            return Type(left.dtype)
        if right.weak is None:
            return Type("float32")
        return Type("float32", float(left.weak) ** right.weak, left.varies)

    def typed_apply(self, e):
        if e.name in self.tensors or e.name in self.scalars:
            held = self.tensors.get(e.name) or self.scalars[e.name]
            if len(held.shape) != len(e.args):
                raise Rejected("TC202")
            return Type(held.dtype)
        if e.name in TYPE_NAMES:
            kinds = [self.type_of(a).dtype for a in e.args]
            if any(map(is_complex, kinds)) and (len(kinds) > 1 or not is_complex(TYPE_NAMES[e.name])):
                raise Rejected("TC212")
            return Type(TYPE_NAMES[e.name])
        if is_border(e):
            return Type("int64")
        if e.name not in FUNCTIONS and e.name not in OF_COMPLEX:
            raise Rejected("TC201")
        args = [self.type_of(a) for a in e.args]
        if any(is_complex(t.dtype) for t in args):
            return self.typed_complex(e, args[0].dtype)
        if e.name in OF_COMPLEX and e.name not in FUNCTIONS:
            return Type("int32" if args[0].dtype == "bool" else args[0].dtype)
        if e.name in ("uniform", "normal"):
            if not 2 <= len(args) <= 5 or any(is_float(t.dtype) or t.dtype == "bool" for t in args):
                raise Rejected("TC212 or TC213")
            return Type("float32")
        if e.name == "popcount":
            if is_float(args[0].dtype):
                raise Rejected("TC212")
            return Type("int32")
        if e.name in ("min", "max"):
            weak = [t.weak for t in args]
            if None not in weak and not any(t.varies for t in args):
                return Type(meet_types(*args), (min if e.name == "min" else max)(weak))
            return Type(meet_types(*args))
        if e.name in TESTED:
            return Type("bool")
        if e.name in KEPT:
            return Type(args[0].dtype if args[0].dtype != "bool" else "int32")
        return Type(meet_types(*(as_float(t) for t in args)))

    # ranges

    def typed_complex(self, e, dtype):
        if len(e.args) > 1 or e.name not in (*OF_COMPLEX, *TESTS_OF_COMPLEX):
            raise Rejected("TC212")
        if e.name in TESTS_OF_COMPLEX:
            return Type("bool")
        return Type(PARTS[dtype] if e.name in ("re", "im", "abs") else dtype)

    def moving(self, s):
        """The ranges of reduction indices that differ from point to point: an index or an element is in an end of them."""
        return {
            name: ends
            for name, ends in s.ranges.items()
            if name not in s.left and any(self.indices_in(e) or self.has_data(e) for e in ends)
        }

    def conditions(self, s):
        """What says which points there are: ends of ranges, those first that others need; then conditions as clauses."""
        waiting, found = dict(self.moving(s)), []
        while waiting:
            free = [
                name
                for name, ends in waiting.items()
                if not {n for e in ends for n in self.indices_in(e)} & waiting.keys()
            ]
            if not free:
                raise Rejected("TC305")
            for name in free:
                low, high = waiting.pop(name)
                found += [Binary("<=", low, Name(name)), Binary("<", Name(name), high)]
        return found, list(s.filters)

    def hull(self, ends, found):
        """The least beginning and the largest end of a range, where other indices have theirs."""
        names = sorted({n for e in ends for n in self.indices_in(e)})
        points = [dict(zip(names, at, strict=True)) for at in itertools.product(*(range(*found[n]) for n in names))]
        if not points:
            raise Unclear("a range that no point has")
        low, high = (f(self.number(e, env) for env in points) for f, e in zip((min, max), ends, strict=True))
        return low, max(low, high)

    def ranges_of(self, s):
        """The range of every index of a statement, by the rounds."""
        moving = self.moving(s)
        where = {n: tuple(self.whole(end) for end in ends) for n, ends in s.ranges.items() if n not in moving}
        plain = [name for name in s.left if name not in s.places]
        ends, filters = self.conditions(s)
        for e in filters:
            self.need_bool(e)
        value = put_for(s.value, s.target, ANY) if s.along else s.value
        inside = [*s.places.values(), value, *s.exists, *ends, *filters]
        order = list(dict.fromkeys([*plain, *(n for e in inside for n in self.in_order(e))]))
        placed = {n for e in s.places.values() for n in self.in_order(e)}
        if s.op == "=" and s.fresh and [n for n in order if n not in plain and n not in placed]:
            raise Rejected("TC204")
        if (set(where) | set(moving)) - set(order):
            raise Rejected("TC307")
        found = {name: where[name] for name in order if name in where}
        held = [(e, True) for e in (*ends, *filters)]
        around = [tuple(held)] * (len(s.places) + 1) + [tuple(held[: len(ends)])] * len(s.exists)
        around += [
            tuple(pair for pair in held[:k] if k >= len(ends) or set(self.in_order(pair[0])) <= self.needed(s, e))
            for k, (e, _) in enumerate(held)
        ]
        sides = [side for e, guards in zip(inside, around, strict=True) for side in self.sides(e, guards)]
        later = {name: e for name, e in moving.items() if not any(map(self.has_data, e))}
        self.follow(later, found)
        open_ = [name for name in order if name not in found]
        limits_, looked, aside = {}, set(), True
        while open_:
            for number, side in enumerate(sides):
                here = self.indices_in(side.subscript) & set(open_)
                if len(here) != 1 or number in looked or (aside and self.tested(side, sides)):
                    continue
                looked.add(number)
                (name,) = here
                if name in later:
                    looked.discard(number)
                    continue
                limit = self.solved(side, name, found)
                if limit is not None:
                    limits_.setdefault(name, []).append(limit)
            done = [name for name in open_ if {k for k, _ in limits_.get(name, [])} == {"lower", "upper"}]
            for name in done:
                low = max(x for k, x in limits_[name] if k == "lower")
                high = min(x for k, x in limits_[name] if k == "upper") + 1
                found[name] = (low, high)
            self.follow(later, found)
            open_ = [name for name in open_ if name not in found]
            if not done:
                if not aside:
                    break
                aside = False
        if s.target in self.tensors:
            for name, box in zip(s.left, self.tensors[s.target].box, strict=True):
                if name in open_:
                    found[name] = box
                    open_.remove(name)
        self.follow(later, found)
        open_ = [name for name in open_ if name not in found]
        for number, name in enumerate(s.left):  # an index of the first statement that indexes nothing else
            alone = name in open_ and not any(name in self.indices_in(side.subscript) for side in sides)
            if alone and (stated := self.stated_range(s, number)) is not None:
                found[name] = stated
                open_.remove(name)
        if open_ and any(isinstance(n, Bordered) for e in (s.value, *s.exists) for n in walk(e)):
            raise Unclear("a window over a border")
        if open_:
            raise Rejected("TC105 TC301 TC302 TC303 TC309 TC340")
        found |= {name: self.placed_range(s, number, found) for number, name in enumerate(s.left) if name in s.places}
        return {name: found[name] for name in [*s.left, *(n for n in order if n not in s.left)]}

    def follow(self, later, found):
        """Give ranges that follow from others theirs, as far as these are found."""
        more = True
        while more:
            known = [n for n, e in later.items() if all(i in found for end in e for i in self.indices_in(end))]
            for name in known:
                found[name] = self.hull(later.pop(name), found)
            more = bool(known)

    def points(self, s, names, ranges, env):
        """The points of some indices that take part, as `env`, behind those that are in it."""
        ends, filters = self.conditions(s)
        tests = [self.compiled(e, "") for e in ends], [self.compiled(e, "") for e in filters]
        extra = [self.compiled(e, "") for e in s.exists]
        for point in itertools.product(*(range(*ranges[name]) for name in names)):
            env.update(zip(names, point, strict=True))
            if not self.all_hold(tests[0], env):
                continue
            for e in extra:
                e(env)
            if self.all_hold(tests[1], env):
                yield point

    def all_hold(self, tests, env):
        for test in tests:
            value, error = test(env)
            if error:
                raise Unclear("a condition that depends on rounding")
            if not value:
                return False
        return True

    def needed(self, s, condition):
        """The indices that the ends of the range need which a condition is about."""
        moving = self.moving(s)
        name = condition.right.name if condition.op == "<=" else condition.left.name
        return self.needed_for(moving, moving[name])

    def needed_for(self, moving, ends):
        needed, more = set(), {n for e in ends for n in self.indices_in(e)}
        while more - needed:
            needed |= more
            more = {n for m in needed & moving.keys() for e in moving[m] for n in self.indices_in(e)}
        return needed

    def look_at_ends(self, s, ranges):
        """Ranges that elements end begin before they end, and stay inside."""
        moving = self.moving(s)
        empty = any(low >= high for low, high in ranges.values())
        for name, ends in moving.items():
            if not any(map(self.has_data, ends)):
                continue
            needed = self.needed_for(moving, ends)
            names = [n for n in ranges if n in needed]
            conditions = [e for e in self.conditions(s)[0] if set(self.in_order(e)) <= needed]
            tests, codes = [self.compiled(e, "") for e in conditions], [self.compile_subscript(e) for e in ends]
            for point in itertools.product(*(range(*ranges[n]) for n in names)):
                env = dict(zip(names, point, strict=True))
                if self.all_hold(tests, env):
                    try:
                        low, high = (code(env)[0] for code in codes)
                    except Refused as reason:
                        if empty:
                            raise Unclear(
                                "ends of ranges that are not there, where another range has no point"
                            ) from reason
                        raise
                    if not ranges[name][0] <= low <= high <= ranges[name][1]:
                        raise Refused("ends")

    def stated_range(self, s, number):
        """The range of a dimension of a result whose extent is stated."""
        names = [s.target, *s.beside]
        known = {r.name: r.dims[number] for r in self.one.results if r.name in names and r.dims}
        stated = next((known[name] for name in names if name in known), None)
        if isinstance(stated, Dimension):
            return self.end(stated.low) if stated.box else 0, self.end(stated.high)
        if isinstance(stated, int):
            return 0, stated
        if stated in self.sizes:
            return 0, self.sizes[stated]
        if stated in self.scalars:
            return 0, int(self.scalars[stated].values[0])
        return None

    def placed_range(self, s, number, found):
        """The range of a dimension whose subscript is an expression: of the target, stated, of a small type, or what indices reach."""
        if s.target in self.tensors:
            return self.tensors[s.target].box[number]
        stated = self.stated_range(s, number)
        if stated is not None:
            return stated
        e = s.places[s.left[number]]
        if self.has_data(e):
            return 0, self.most(e) + 1
        points = [dict(zip(found, at, strict=True)) for at in itertools.product(*(range(*found[n]) for n in found))]
        if not points:
            raise Unclear("what no point reaches")
        values = [self.whole_at(e, env) for env in points]
        low, high = min(values), max(values) + 1
        own = self.residue(e)
        others = [
            o for o in self.one.statements if isinstance(o, Statement) and o.target == s.target and len(o.places) > 0
        ]
        found_ = [self.residue(o.places[o.left[number]]) for o in others if o.left[number] in o.places]
        if own is not None and {r for c, r in filter(None, found_) if c == own[0]} == set(range(own[0])):
            return low - own[1], high - 1 - own[1] + own[0]
        return low, high

    def residue(self, e):
        """Factor and remainder of `2*i + 1`."""
        names = list(dict.fromkeys(self.in_order(e)))
        others = (isinstance(n, Extent) or (isinstance(n, Name) and n.name not in names) for n in walk(e))
        if len(names) != 1 or self.has_data(e) or any(others):
            return None
        zero, one, two = (self.whole_at(e, {names[0]: n}) for n in (0, 1, 2))
        factor = one - zero
        return (factor, zero % factor) if factor > 1 and two - one == factor else None

    def whole_at(self, e, env):
        """A subscript at a point, as a number that does not wrap."""
        return self.compile_left(e)(env)

    def compile_left(self, e):
        """A subscript of the left side, a whole number; truth values are 0 and 1."""
        kind = self.type_of(e).dtype
        code = self.compiled(e, "") if kind == "bool" else self.compile_subscript(e)

        def at(env):
            value, error = code(env)
            if error:
                raise Unclear("a subscript that rounding may move")
            return int(value)

        return at

    def most(self, e):
        """The largest value of a subscript whatever the data."""
        match e:
            case Apply(name="min", args=args):
                ends = [self.most(a) for a in args if self.is_limited(a)]
                if not ends:
                    raise Rejected("TC315")
                return min(ends)
            case Apply(name="max", args=args):
                return max(self.most(a) for a in args)
            case Binary(op="%", right=right) if not self.has_data(right) and not self.indices_in(right):
                return self.whole(right) - 1
            case Apply(name=name) if name in self.tensors:
                kind = self.tensors[name].dtype
                if kind not in ("uint8", "uint16", "bool"):
                    raise Rejected("TC315")
                return {"uint8": 255, "uint16": 65535, "bool": 1}[kind]
        if self.has_data(e) or self.indices_in(e):
            raise Unclear("how large a subscript can be")
        return self.whole(e)

    def is_limited(self, e):
        try:
            self.most(e)
        except Rejected:
            return False
        return True

    def in_order(self, e):
        return [n.name for n in walk(e) if isinstance(n, Name) and self.is_index(n.name)]

    def sides(self, e, guards):
        """The bounds of all reads, with the conditions around them."""
        if isinstance(e, Choice):
            yield from self.sides(e.condition, guards)
            yield from self.sides(e.yes, (*guards, (e.condition, True)))
            yield from self.sides(e.no, (*guards, (e.condition, False)))
            return
        if isinstance(e, Binary) and e.op in ("&&", "||"):
            yield from self.sides(e.left, guards)
            yield from self.sides(e.right, (*guards, (e.left, e.op == "&&")))
            return
        if isinstance(e, Bordered):  # a border says nothing about ranges, but elements in its subscripts do
            for subscript in e.read.args:
                yield from self.sides(subscript, guards)
            yield from self.sides(e.other, (*guards, (e, False)))
            return
        if self.is_read(e):
            for dimension, subscript in enumerate(e.args):
                if is_border(subscript):
                    continue
                for side in ("lower", "upper"):
                    yield Side(e, dimension, side, subscript, guards)
        for child in children(e):
            yield from self.sides(child, guards)

    def sum_of(self, e, symbolic=False):
        """A subscript as a sum; sizes are numbers unless they are to be `symbolic`."""
        match e:
            case Number():
                return plain(e.value)
            case Extent():
                known = self.dims[e.name][e.dimension]
                if symbolic and known is not None:
                    return known
                name = f"{e.name}.{e.dimension}"
                return Sum({(("size", name),): 1}) if symbolic else plain(self.extent(e.name, e.dimension))
            case Name():
                if self.is_index(e.name):
                    return Sum({(("index", e.name),): 1})
                if symbolic:
                    return Sum({(("size", e.name),): 1})
                if e.name in self.sizes:
                    return plain(self.sizes[e.name])
                return plain(self.scalars[e.name].values[0]) if e.name in self.scalars else self.atom(e)
            case Unary(op="~"):
                if self.type_of(e).dtype.startswith("u"):
                    return self.atom(e)
                return self.sum_of(e.value, symbolic).scaled(-1) + plain(-1)
            case Unary():
                return self.sum_of(e.value, symbolic).scaled(-1)
            case Binary(op="^", right=Number(value=number)) if 0 < number < 5:
                found = base = self.sum_of(e.left, symbolic)
                for _ in range(number - 1):
                    found = found.times(base)
                return found
            case Binary(op="<<", right=Number(value=number)) if number < 8:
                return self.sum_of(Binary("*", e.left, Number(2**number, "int32", True)), symbolic)
            case Binary(op=">>", right=Number(value=number)) if number < 8:
                return self.sum_of(Binary("/", e.left, Number(2**number, "int32", True)), symbolic)
            case Binary(op="&", right=Number(value=number)) if number & (number + 1) == 0 and number < 127:
                return self.sum_of(Binary("%", e.left, Number(number + 1, "int32", True)), symbolic)
            case Binary():
                left, right = self.sum_of(e.left, symbolic), self.sum_of(e.right, symbolic)
                if e.op == "+":
                    return left + right
                if e.op == "-":
                    return left + right.scaled(-1)
                if e.op == "*":
                    return left.times(right)
                if e.op == "/" and not self.indices_in(e.right) and not self.has_data(e.right):
                    return Sum({(("quotient", repr(e), e.left, e.right),): 1}) if left.terms else left
            case Apply() if e.name in TYPE_NAMES and is_integer(TYPE_NAMES[e.name]) and len(e.args) == 1:
                if TYPE_NAMES[e.name] == "int64":
                    return self.sum_of(e.args[0], symbolic)
            case Apply(name="min" | "max", args=(left, right)):
                # of two sums whose difference is a number, whatever the sizes are, one is always the smaller
                apart = (self.sum_of(left, True) + self.sum_of(right, True).scaled(-1)).constant
                if apart is not None:
                    return self.sum_of(left if (apart < 0) == (e.name == "min") else right, symbolic)
        return self.atom(e)

    def atom(self, e):
        return Sum({(("other", repr(e), e),): 1})

    def atom_indices(self, atom):
        if atom[0] == "index":
            return {atom[1]}
        return self.indices_in(Apply("", atom[2:])) if atom[0] in ("quotient", "other") else set()

    def solved(self, side, name, found):
        """The limit of one index that a bound gives, if it gives one."""
        if self.has_data(side.subscript):
            return None
        low, high = self.tensors[side.read.name].box[side.dimension]
        here = self.sum_of(side.subscript)
        return self.solve(
            here + plain(-low) if side.side == "lower" else here.scaled(-1) + plain(high - 1), name, found
        )

    def solve(self, here, name, found):
        """`here >= 0` for one index, everything else at its worst."""
        mine = [(key, c) for key, c in here.terms.items() if any(name in self.atom_indices(a) for a in key)]
        if not mine:
            return None
        if len(mine) != 1:
            if all(len(key) == 1 and key[0][0] in ("index", "quotient") for key, _ in mine):
                raise Unclear("an index in several terms")
            return None
        ((key, c),) = mine
        if len(key) != 1 or key[0][0] == "other":
            return None
        rest = self.least(Sum({k: x for k, x in here.terms.items() if k != key}), found)
        # c*A + rest >= 0
        atom = key[0]
        if c > 0:
            kind, number = "lower", -(rest // c)
        else:
            kind, number = "upper", rest // -c
        if atom[0] == "index":
            return kind, number
        divisor = self.whole(atom[3])
        if divisor == 0:
            raise Refused("divisor")
        if divisor < 0:
            raise Unclear("a negative divisor")
        inner = self.sum_of(atom[2])
        if kind == "lower":
            return self.solve(inner + plain(-number * divisor), name, found)
        return self.solve(inner.scaled(-1) + plain(number * divisor + divisor - 1), name, found)

    def least(self, here, found):
        """The smallest value over the ranges, term by term."""
        seen, total = set(), 0
        for key, c in here.terms.items():
            names = set().union(*(self.atom_indices(a) for a in key)) if key else set()
            if names & seen:
                raise Unclear("an index in several terms")
            seen |= names
            if not names:
                total += c * math.prod(self.term_value(a, {}) for a in key)
                continue
            if any(a[0] == "other" for a in key) or len(key) != 1:
                raise Unclear("a worst value that is not of one direction")
            ends = self.ends(key[0], found)
            total += c * (ends[0] if c > 0 else ends[1])
        return total

    def ends(self, atom, found):
        """The smallest and the largest value of an atom."""
        if atom[0] == "index":
            low, high = found[atom[1]]
            return low, high - 1
        divisor = self.whole(atom[3])
        if divisor == 0:
            raise Refused("divisor")
        if divisor < 0:
            raise Unclear("a negative divisor")
        inner = self.sum_of(atom[2])
        return self.least(inner, found) // divisor, -self.least(inner.scaled(-1), found) // divisor

    def term_value(self, atom, env):
        if atom[0] == "quotient":
            return self.whole(Binary("/", atom[2], atom[3]))
        return self.whole(atom[2])

    # guards

    def facts(self, condition, holds_):
        """The conditions that hold together where a condition holds, or where it does not."""
        if isinstance(condition, Unary) and condition.op == "!":
            return self.facts(condition.value, not holds_)
        if isinstance(condition, Binary) and condition.op in ("&&", "||") and (condition.op == "&&") == holds_:
            return self.facts(condition.left, holds_) + self.facts(condition.right, holds_)
        return [(condition, holds_)]

    def tested(self, side, sides):
        """Whether the conditions around an access already test a bound."""
        key = id(side)
        if key not in self.discharged:
            self.discharged[key] = (self.find_tested(side), side)
        return self.discharged[key][0]

    def find_tested(self, side):
        facts = [f for c, h in side.guards for f in self.facts(c, h) if not self.has_data(f[0])]
        if any(not any(isinstance(n, (Name, Apply)) for n in walk(c)) for c, _ in side.guards):
            raise Unclear("a condition of numbers")
        # a condition on sizes alone says nothing about an index
        facts = [f for f in facts if self.indices_in(f[0])]
        if not facts or self.has_data(side.subscript):
            return False
        seen = self.plainly_tested(side, facts)
        true = self.implied(side, facts)
        if seen != true:
            raise Unclear("whether a guard is seen to test a bound")
        return seen

    def plainly_tested(self, side, facts):
        """One condition says the bound, or more, in the same terms."""
        dim = self.dims[side.read.name][side.dimension]
        low, high = (plain(0), dim) if dim is not None else (None, None)
        if low is None:
            raise Unclear("a guard around a computed tensor")
        here = self.sum_of(side.subscript, True)
        bound = here + low.scaled(-1) if side.side == "lower" else here.scaled(-1) + high + plain(-1)
        bounds = [bound, *self.numerators(bound)]
        for condition, holds_ in facts:
            for fact in self.inequalities(condition, holds_):
                for wanted in bounds:
                    constant = (wanted + fact.scaled(-1)).constant
                    if constant is not None and constant >= 0:
                        return True
        return False

    def numerators(self, bound):
        """`q/d >= c` as a bound of `q`."""
        quotients = [(key, c) for key, c in bound.terms.items() if len(key) == 1 and key[0][0] == "quotient"]
        if len(quotients) != 1 or abs(quotients[0][1]) != 1:
            return []
        (key, c) = quotients[0]
        divisor = self.sum_of(key[0][3], True)
        rest = Sum({k: x for k, x in bound.terms.items() if k != key})
        inner = self.sum_of(key[0][2], True)
        if c == 1:
            return [inner + rest.times(divisor)]
        return [inner.scaled(-1) + rest.times(divisor) + divisor + plain(-1)]

    def inequalities(self, condition, holds_):
        if not isinstance(condition, Binary) or condition.op not in COMPARE:
            return []
        left, right = self.sum_of(condition.left, True), self.sum_of(condition.right, True)
        op = condition.op
        if not holds_:
            op = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[op]
        up, down = left + right.scaled(-1), right + left.scaled(-1)
        return {
            "<": [down + plain(-1)], "<=": [down], ">": [up + plain(-1)], ">=": [up], "==": [up, down], "!=": [],
        }[op]  # fmt: skip

    def implied(self, side, facts):
        """Whether the conditions imply the bound, as far as small numbers tell."""
        source = random.Random(1)
        names = sorted(set().union(self.indices_in(side.subscript), *(self.indices_in(c) for c, _ in facts)))
        dim = self.dims[side.read.name][side.dimension]
        satisfied = 0
        kept = dict(self.sizes), {n: Array(a.dtype, a.low, a.shape, a.values) for n, a in self.scalars.items()}
        held = self.sizes, self.scalars
        try:
            self.sizes, self.scalars = kept
            for _ in range(1500):
                for name in self.sizes:
                    self.sizes[name] = source.randint(1, 6)
                for number_ in self.scalars.values():
                    if is_integer(number_.dtype):
                        number_.values = [source.randint(-2, 6)]
                env = {name: source.randint(-4, 12) for name in names}
                try:
                    if not all(bool(self.number(c, env)) == h for c, h in facts):
                        continue
                    satisfied += 1
                    at = self.number(side.subscript, env)
                    ok = at >= 0 if side.side == "lower" else at < self.evaluated(dim)
                except Refused:
                    continue
                if not ok:
                    return False
        finally:
            self.sizes, self.scalars = held
        if satisfied < 20:
            raise Unclear("a guard that small numbers rarely fulfil")
        return True

    def evaluated(self, dim):
        if any(atom[0] != "size" for key in dim.terms for atom in key):
            raise Unclear("an extent that is no polynomial")
        return sum(c * math.prod(self.sizes.get(a[1], 0) for a in key) for key, c in dim.terms.items())

    def extent(self, name, dimension):
        known = self.dims[name][dimension]
        return self.tensors[name].shape[dimension] if known is None else self.evaluated(known)

    def number(self, e, env):
        """An integer or a truth value at a point, without elements."""
        value, error = self.compiled(e, True)(env)
        if error:
            raise Unclear("a guard that depends on rounding")
        return value

    def whole(self, e):
        """The integer of an end of a range."""
        if self.indices_in(e):
            raise Rejected("TC305")
        value, _ = self.compiled(e, True)({})
        return int(value)

    # values: `mode` is "" where integers wrap, "test" beside a comparison of integers, "index" in a subscript or an end of a range,
    # both computed on whole numbers

    def compiled(self, e, mode):
        key = (id(e), mode)
        if key not in self.code:
            mode = "index" if mode is True else mode
            code = self.compile(e, mode)
            element = isinstance(e, Name | Apply) and (e.name in self.scalars or e.name in self.tensors)
            if mode == "index" and element and self.type_of(e).dtype == "uint64":
                code = self.in_64_bits(code)
            self.code[key] = code, e
        return self.code[key][0]

    def in_64_bits(self, code):
        """A number of `uint64` in a subscript; one that `int64` does not hold is negative there, or stays in a part with its own type."""

        def known(env):
            value, error = code(env)
            if value >= 1 << 63:
                raise Unclear("a number of a subscript beyond 64 bits")
            return value, error

        return known

    def compile(self, e, mode):
        found = self.type_of(e)
        if found.constant:
            constant = (found.weak, 0.0)
            return lambda env: constant
        match e:
            case Number():
                constant = (e.value, 0.0)
                return lambda env: constant
            case Name():
                return self.compile_name(e)
            case Extent():
                return lambda env: (self.extent(e.name, e.dimension), 0.0)
            case Unary():
                return self.compile_unary(e, mode)
            case Binary():
                return self.compile_binary(e, mode)
            case Choice():
                return self.compile_choice(e, mode)
            case Bordered():
                return self.compile_bordered(e, mode)
            case Apply():
                return self.compile_apply(e, mode)
        raise AssertionError(e)

    def operand(self, e, common, mode, compared=False):
        """The value of an operand in the type in which operands meet; one of a comparison is a number."""
        code, found = self.compiled(e, mode), self.type_of(e)
        target = computed(common)
        if found.varies:
            raise_unless_exact(e)
            kind = complex if is_complex(target) else float if is_float(target) else lambda value: value
            return lambda env: (kind(code(env)[0]), code(env)[1])
        if found.constant:
            value = found.weak
            if is_complex(common):
                value = complex(to_float(value, PARTS[common]))
            if is_float(common):
                value = to_float(value, common if holds(value, common) else target)
            constant = (value, 0.0)
            return lambda env: constant
        source = computed(found.dtype)
        if source == target or (mode and not is_float(target) and (compared or not wraps(target, mode))):
            return code

        def converted(env):
            value, error = code(env)
            return convert(value, error, source, target)

        return converted

    def compile_name(self, e):
        name = e.name
        if name in self.scalars:
            return lambda env: (self.scalars[name].values[0], 0.0)
        if name in self.tensors:
            held = self.tensors[name]
            return lambda env: (held.values[0], held.errors[0])
        if name in self.sizes:
            return lambda env: (self.sizes[name], 0.0)
        return lambda env: (env[name], 0.0)

    def compile_unary(self, e, mode):
        if e.op == "!":
            inner = self.compiled(e.value, "")

            def opposite(env):
                value, error = inner(env)
                return not value, error

            return opposite
        dtype = self.type_of(e).dtype
        inner = self.operand(e.value, dtype, mode)

        def negative(env):
            value, error = inner(env)
            if e.op == "~":
                ones = limits(dtype)[1] if dtype.startswith("u") else -1
                return left_of(ones - value, dtype, mode), error
            return (-value if is_float(dtype) or is_complex(dtype) else left_of(-value, dtype, mode)), error

        return negative

    def compile_binary(self, e, mode):
        if e.op in ("&&", "||"):
            return self.compile_logic(e)
        if e.op == "^":
            return self.compile_power(e, mode)
        left, right = self.type_of(e.left), self.type_of(e.right)
        common = meet_types(left, right)
        if e.op in COMPARE:
            return self.compile_comparison(e, common)
        common = "int32" if common == "bool" else common
        a, b = self.operand(e.left, common, mode), self.operand(e.right, common, mode)
        if is_float(common) or is_complex(common):
            ring = COMPLEX[common] if is_complex(common) else FLOATS[computed(common)]
            step = {"+": ring.add, "-": ring.sub, "*": ring.mul, "/": ring.div, "%": getattr(ring, "mod", None)}[e.op]

            def floating(env):
                x, y = a(env), b(env)
                if x[1] == UNSURE or y[1] == UNSURE:
                    return 0.0, UNSURE
                return step(x, y)

            return floating
        return self.compile_integer(e, common, a, b, mode)

    def compile_integer(self, e, common, a, b, mode):
        steps = {
            "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
            "/": floor_divide, "%": floor_remainder, **BITS,
        }  # fmt: skip
        width = 64 if mode else int(re.sub(r"\D", "", common))
        step = steps.get(e.op) or (lambda x, y: shifted(e.op, x, y, width))
        fixed = e.op in ("/", "%") and not self.indices_in(e.right) and not self.has_data(e.right)

        def whole(env):
            (x, ex), (y, ey) = a(env), b(env)
            if ex or ey:
                return 0, UNSURE
            if fixed and y == 0 and mode == "index":
                raise Refused("divisor")
            value = step(int(x), int(y))
            return left_of(value, common, mode), 0.0

        return whole

    def compile_power(self, e, mode):
        dtype, exponent = self.type_of(e).dtype, self.type_of(e.right)
        a = self.operand(e.left, dtype, mode)
        if is_complex(dtype):
            return lambda env: COMPLEX[dtype].power(a(env), exponent.weak)
        if not is_float(dtype):

            def whole(env):
                x, error = a(env)
                found = int(x) ** exponent.weak
                return (0, UNSURE) if error else (left_of(found, dtype, mode), 0.0)

            return whole
        ring, number = FLOATS[computed(dtype)], exponent.weak
        b = self.float_operand(e.right, dtype)

        def power(env):
            x, y = a(env), b(env)
            if UNSURE in (x[1], y[1]):
                return 0.0, UNSURE
            if number == 0:
                return 1.0, 0.0
            if number is None or abs(number) > 8:
                return apply("pow", pow_, [x, y], computed(dtype))
            found = x
            for _ in range(abs(number) - 1):
                found = ring.mul(found, x)
                if found[1] == UNSURE:
                    return 0.0, UNSURE
            return found if number > 0 else ring.div((1.0, 0.0), found)

        return power

    def joined(self, e):
        """`e` with `&&` and `||` where `&` and `|` join truth values."""
        match e:
            case Apply():
                return Apply(e.name, tuple(self.joined(a) for a in e.args))
            case Unary():
                return Unary(e.op, self.joined(e.value))
            case Binary():
                left, right = self.joined(e.left), self.joined(e.right)
                if e.op in JOINED and self.type_of(left).dtype == self.type_of(right).dtype == "bool":
                    return Binary(JOINED[e.op], left, right)
                return Binary(e.op, left, right)
            case Choice():
                return Choice(*(self.joined(c) for c in children(e)))
            case Bordered():
                return Bordered(*(self.joined(c) for c in children(e)))
        return e

    def compile_comparison(self, e, common):
        test = TESTS[e.op]
        mode = "" if is_float(common) or is_complex(common) else "test"
        a, b = (self.operand(side, common, mode, compared=True) for side in (e.left, e.right))

        def compared(env):
            (x, ex), (y, ey) = a(env), b(env)
            if (ex or ey) and (ex == UNSURE or ey == UNSURE or (x == x and y == y and abs(x - y) <= 2 * (ex + ey))):
                return False, UNSURE
            return test(x, y), 0.0

        return compared

    def compile_logic(self, e):
        a, b = self.compiled(e.left, ""), self.compiled(e.right, "")
        stop = e.op == "||"

        def logic(env):
            value, error = a(env)
            if error:
                self.unsure = True
                return False, UNSURE
            return (value, 0.0) if value == stop else b(env)

        return logic

    def compile_choice(self, e, mode):
        condition = self.compiled(e.condition, "")
        dtype = self.type_of(e).dtype
        yes, no = self.operand(e.yes, dtype, mode), self.operand(e.no, dtype, mode)

        def choice(env):
            value, error = condition(env)
            if error:
                self.unsure = True
                return 0, UNSURE
            return yes(env) if value else no(env)

        return choice

    def compile_bordered(self, e, mode):
        dtype, places = self.type_of(e).dtype, [self.compile_place(e.read, k) for k in range(len(e.read.args))]
        held, read, other = (
            self.tensors[e.read.name],
            self.operand(e.read, dtype, mode),
            self.operand(e.other, dtype, mode),
        )

        def bordered(env):
            found = [place(env) for place in places]
            if any(error for _, error in found):
                self.unsure = True
                return 0, UNSURE
            return other(env) if held.place([value for value, _ in found]) is None else read(env)

        return bordered

    def compile_place(self, read, dimension):
        """A subscript, where `wrap` and the like move it into the array."""
        e = read.args[dimension]
        if not is_border(e):
            return self.compile_subscript(e)
        inner = self.compile_subscript(e.args[0])
        low, high = self.tensors[read.name].box[dimension]
        order = list(range(low, high))
        self.doubt = self.doubt or not order  # an engine may refuse it where elements say that nothing is read
        back = {"reflect": order[-2:0:-1], "symmetric": order[::-1]}.get(e.name, [])

        def place(env):
            value, error = inner(env)
            if not order:
                raise Refused("a border of nothing")
            if e.name == "clamp":
                return sorted((low, value, high - 1))[1], error
            return [*order, *back][(value - low) % len(order + back)], error

        return place

    def compile_apply(self, e, mode):
        if e.name in self.tensors:
            return self.compile_read(e)
        if e.name in self.scalars:
            return self.compile_name(Name(e.name))
        if e.name in TYPE_NAMES:
            return self.compile_cast(e)
        found = self.type_of(e)
        args = [self.type_of(a) for a in e.args]
        if any(is_complex(t.dtype) for t in args):
            return self.compile_complex(e, args[0].dtype)
        if e.name in ("re", "im", "conj"):
            inner = self.operand(e.args[0], found.dtype, mode)
            return inner if e.name != "im" else lambda env: (0, 0.0) if is_integer(found.dtype) else (0.0, 0.0)
        if e.name in ("uniform", "normal"):
            return self.compile_random(e)
        if e.name == "popcount":
            return self.compile_popcount(e, args[0].dtype)
        if e.name in ("min", "max"):
            return self.compile_extreme(e, found.dtype, mode)
        if e.name in KEPT and not is_float(found.dtype):
            return self.compile_kept_integer(e, found.dtype, mode)
        if any(t.weak is not None for t in args) and all(t.weak is not None for t in args):
            raise Unclear("a function of literals")
        common = meet_types(*(as_float(t) for t in args))
        parts = [self.float_operand(a, common) for a in e.args]
        if e.name in TESTED:
            return self.compile_tested(e, parts[0])
        dtype = computed(common)
        if e.name == "rounded" and isinstance(e.args[0], Binary) and e.args[0].op in ("+", "-", "*"):
            return self.compile_rounded(e.args[0], common)
        if e.name in KEPT:
            return lambda env: keep(e.name, *parts[0](env))
        function = ONE[e.name] if e.name in ONE else MANY[e.name][1]
        return lambda env: apply(e.name, function, [part(env) for part in parts], dtype)

    def compile_complex(self, e, dtype):
        """A function of a complex number."""
        code, ring = self.compiled(e.args[0], ""), COMPLEX[dtype]

        def called(env):
            value, error = code(env)
            if error == UNSURE or not math.isfinite(abs(value)):
                return (False, UNSURE) if e.name in TESTS_OF_COMPLEX else (0.0, UNSURE)
            if e.name in TESTS_OF_COMPLEX:
                return e.name == "isfinite", 0.0
            if e.name in ("re", "im"):
                return (value.real if e.name == "re" else value.imag), error
            if e.name == "abs":
                return apply("hypot", np.hypot, [(value.real, error), (value.imag, error)], PARTS[dtype])
            return (value.conjugate(), error) if e.name == "conj" else getattr(ring, e.name)((value, error))

        return called

    def compile_random(self, e):
        parts = [self.compiled(a, "") for a in e.args]

        def number(env):
            found = [part(env) for part in parts]
            if any(error for _, error in found):
                return 0.0, UNSURE
            seed, *counter = (int(value) for value, _ in found)
            return drawn(e.name, seed, counter)

        return number

    def compile_popcount(self, e, dtype):
        """The bits that are 1, of a number in the width of its type."""
        dtype = "int32" if dtype == "bool" else dtype
        code, width = self.operand(e.args[0], dtype, ""), int(dtype.lstrip("uint"))

        def counted(env):
            value, error = code(env)
            return (0, UNSURE) if error else ((int(value) % 2**width).bit_count(), 0.0)

        return counted

    def float_operand(self, e, common):
        if is_float(self.type_of(e).dtype) or self.type_of(e).weak is not None:
            return self.operand(e, common, "")
        code, source = self.compiled(e, ""), self.type_of(e).dtype

        def converted(env):
            value, error = code(env)
            return convert(int(value), error, source, "float32")

        return converted

    def compile_rounded(self, e, common):
        """One operation that is rounded on its own: of exact numbers every engine gives the same."""
        whole = self.operand(e, common, "")
        meet_in = meet_types(self.type_of(e.left), self.type_of(e.right))
        sides = [self.operand(side, meet_in, "") for side in (e.left, e.right)]

        def rounded(env):
            value, error = whole(env)
            known = error != UNSURE and not any(side(env)[1] for side in sides)
            return value, 0.0 if known else error

        return rounded

    def compile_tested(self, e, part):
        test = TESTED[e.name]

        def tested(env):
            value, error = part(env)
            return (False, UNSURE) if error == UNSURE else (test(value), 0.0)

        return tested

    def compile_kept_integer(self, e, dtype, mode):
        inner = self.operand(e.args[0], dtype, mode)

        def kept(env):
            value, error = inner(env)
            if e.name == "abs":
                return left_of(abs(value), dtype, mode), error
            return ((value > 0) - (value < 0) if e.name == "sign" else value), error

        return kept

    def compile_extreme(self, e, dtype, mode):
        parts = [self.operand(a, dtype, mode) for a in e.args]

        def extremes(env):
            best = parts[0](env)
            for part in parts[1:]:
                best = extreme(e.name, best, part(env))
            return best

        if is_float(dtype):
            return extremes

        def whole(env):
            found = [part(env) for part in parts]
            if any(error for _, error in found):
                return 0, UNSURE
            return (min if e.name == "min" else max)(value for value, _ in found), 0.0

        return whole

    def compile_cast(self, e):
        target = TYPE_NAMES[e.name]
        if is_complex(target) and len(e.args) == 2:
            re, im = (self.operand(a, PARTS[target], "") for a in e.args)
            return lambda env: joined(re(env), im(env))
        if len(e.args) != 1:
            raise Rejected("TC213")
        inner, found = self.compiled(e.args[0], ""), self.type_of(e.args[0])
        source = computed(found.dtype)

        def cast(env):
            value, error = inner(env)
            value, error = convert(value, error, source, target)
            return value, error

        return cast

    def compile_read(self, e):
        held = self.tensors[e.name]
        subscripts = [self.compile_place(e, k) for k in range(len(e.args))]

        def read(env):
            index = []
            for subscript in subscripts:
                value, error = subscript(env)
                if error:
                    self.unsure = True
                    return 0, UNSURE
                index.append(value)
            place = held.place(index)
            if place is None:
                raise Refused("outside")
            return held.values[place], held.errors[place]

        return read

    def compile_subscript(self, e):
        found = self.type_of(e)
        if found.dtype == "bool" or is_complex(found.dtype):
            raise Rejected("TC212")
        if not is_float(found.dtype):
            code = self.compiled(e, "index")
            return lambda env: (int(code(env)[0]), code(env)[1])
        code, source = self.compiled(e, ""), computed(found.dtype)

        def cut(env):
            value, error = code(env)
            return convert(value, error, source, "int64")

        return cut

    # statements

    def run(self, given=None):
        """The results, by name; `given` holds the arrays of `out=`."""
        given = given or {}
        declared = {r.name: r for r in self.one.results}
        self.dims = {p.name: [self.symbols(d) for d in p.dims or ()] for p in self.one.parameters}
        waiting = {}
        """Literals that wait for the next statement on their target, and their places in the log."""
        for number, s in enumerate(self.one.statements):
            self.types, self.code, self.discharged = {}, {}, {}
            if isinstance(s, Constant):
                self.constant(s)
            elif isinstance(s, Block):
                self.block(s, declared, given)
            elif isinstance(s, CallDef):
                self.need_known(s.args, waiting)
                if s.count is not None:
                    self.iterate(s.targets, s.callee, s.args, s.count, declared)
                else:
                    self.call(s.targets, s.callee, s.args, declared)
            elif self.is_power(s):
                names = [a.name for a in s.value.right.args]
                self.need_known(names, waiting)
                self.iterate([s.target], s.value.left.name, names, s.value.right.name, declared)
            elif self.is_call(s):
                if not all(isinstance(a, Name) for a in s.value.args):
                    raise Unclear("an argument that is an expression")
                names = [a.name for a in s.value.args]
                self.need_known(names, waiting)
                self.call([s.target], s.value.name, names, declared)
            elif any(
                isinstance(n, Apply) and n.name in self.defs and n.name not in self.tensors for n in walk(s.value)
            ):
                raise Unclear("a call inside an expression")
            else:
                now = self.prepared(s)
                if s.target not in self.tensors and s.target not in waiting:
                    self.state_ranges(now, declared.get(s.target))
                later = [
                    n for n in self.one.statements[number + 1 :] if isinstance(n, Statement) and n.target == s.target
                ]
                if s.target not in self.tensors and s.target not in waiting:
                    self.begin_part(now, declared.get(s.target), later)
                try:
                    if s.target in waiting:
                        self.begin(*waiting.pop(s.target), now, declared, given)
                    elif s.target not in self.tensors and self.is_literal(now.value) and later and now.places:
                        raise Unclear("a literal whose type a later statement says, on a left side with expressions")
                    elif s.target not in self.tensors and self.is_literal(now.value) and later:
                        waiting[s.target] = now, len(self.log)
                        self.log.append(None)
                        continue
                    self.need_known(
                        [
                            n.name
                            for e in (
                                now.value,
                                *now.exists,
                                *now.filters,
                                *(e for ends in now.ranges.values() for e in ends),
                            )
                            for n in walk(e)
                            if hasattr(n, "name")
                        ],
                        waiting,
                    )
                    run = self.position if now.op in POSITIONS else self.reduced if now.targets else self.statement
                    run(now, declared, given)
                except Refused as reason:
                    reason.temporary = s.target not in declared
                    raise
        if any(self.unwritten.values()):
            reason = Refused("unwritten")
            reason.temporary = not any(places and name in declared for name, places in self.unwritten.items())
            raise reason
        return {r.name: self.result(r) for r in self.one.results}

    def block(self, block, declared, given):
        """The statements once for each step; what they make has all steps, also where the text has no index for them."""
        members = self.with_step(block)
        calls = {n.name for s in members for n in walk(s.value) if isinstance(n, Apply)} & self.defs.keys()
        if calls - self.tensors.keys():
            raise Unclear("a call inside a block")
        made = {s.target for s in members} - self.tensors.keys()
        before, found = dict.fromkeys(self.tensors), []
        for number, s in enumerate(members):
            ahead = {other.target for other in members[number:]} - {other.target for other in members[:number]}
            asked = replace_in(s, lambda e, names=ahead: put_all(e, dict.fromkeys(names, ANY)))
            for name in s.ranges:  # an index of nothing but what is made in order
                if name not in s.left and name in {n for n in self.indices_in(s.value)}:
                    asked.value = Binary("+", asked.value, Name(name))
            self.types, self.code, self.discharged = {}, {}, {}
            ranges = self.ranges_of(asked)
            if any(high < low for low, high in ranges.values()):
                raise Refused("range")
            found.append(ranges)
            if s.target in made and s.target not in self.tensors:
                lows, shape = [ranges[n][0] for n in s.left], [ranges[n][1] - ranges[n][0] for n in s.left]
                if s.places:
                    raise Unclear("an expression on the left of a block")
                self.tensors[s.target] = Array("float64", lows, shape)
                self.dims[s.target] = [None] * len(shape)
        types = self.types_of_block([s for s in members if s.target in made], declared)
        for name in made:
            shape = self.tensors[name].shape
            self.tensors[name] = Array(types[name], [low for low, _ in self.tensors[name].box], shape)
        self.log += [(s.target, ranges) for s, ranges in zip(members, found, strict=True)]
        logged = len(self.log)
        rows = [range(*found[0][step])[::way] for step, way, _, _ in block.heads if found]
        for steps in itertools.product(*rows):
            seen = set(before)
            for s, ranges in zip(members, found, strict=True):
                moving = self.moving(s)
                fixed = {
                    n: tuple(Number(e, "int64", False) for e in ends) for n, ends in ranges.items() if n not in moving
                }
                for (name, *_), t in zip(block.heads, steps, strict=True):
                    fixed[name] = (Number(t, "int64", False), Number(t + 1, "int64", False))
                own = {n: s.ranges[n] for n in moving if n in s.ranges}
                fresh = s.fresh or s.target not in seen
                now = Statement(
                    s.target, s.left, s.op, fresh, s.value, {**own, **fixed}, {}, s.exists, s.places, s.unique, s.at,
                    s.extreme, s.along, s.targets, s.rest, s.filters,
                )  # fmt: skip
                seen.add(s.target)
                self.types, self.code, self.discharged = {}, {}, {}
                self.in_block = True
                self.statement(now, declared, given)
                self.in_block = False
                del self.log[logged:]

    def with_step(self, block):
        """The statements with the step as the first index of what has none."""
        names, places = [name for name, *_ in block.heads], {}
        steps = tuple(map(Name, names))
        for s in block.statements:
            if s.targets or s.extreme or s.op in (*POSITIONS, *TRUTHS, "lse"):
                raise Unclear("several targets in a block")
            places.setdefault(s.target, set()).add(tuple(name in (s.left or []) for name in names))
        if any(len(each) > 1 for each in places.values()):
            raise Rejected("TC227")
        if any(any(has) and not all(has) for each in places.values() for has in each):
            raise Rejected("TC227")
        hidden = {name for name, (has,) in places.items() if not has[0]}
        if hidden & ({r.name for r in self.one.results} | self.tensors.keys()):
            raise Rejected("TC227")
        found = []
        for s in block.statements:
            s = replace_in(s, lambda e: with_subscript(e, hidden, steps))
            left = [*names, *(s.left or [])] if s.target in hidden else s.left or []
            ranges = {**s.ranges, **{name: (low, high) for name, _, low, high in block.heads}}
            try:
                found.append(self.prepared(dataclasses.replace(s, left=left, ranges=ranges)))
            except Rejected as reason:  # it asks for types, of which those that a block makes are not known yet
                raise Unclear("an operator whose meaning is that of types that a block makes") from reason
        return found

    def types_of_block(self, members, declared):
        known = {
            s.target: declared[s.target].dtype for s in members if s.target in declared and declared[s.target].dtype
        }
        stated = set(known)
        for _ in range(4):
            for s in members:
                held = {name: Number(1, dtype, False) for name, dtype in known.items()}
                value = put_all(s.value, {each.target: ANY for each in members} | held, True)
                self.types = {}
                try:
                    own = self.type_of(value)
                except Rejected as reason:
                    raise Unclear("the type of what a block makes") from reason
                dtype = "int32" if own.dtype == "bool" and s.op in ("+", "*") else own.dtype
                if s.target not in stated and own.weak is None and fits(known.get(s.target, dtype), dtype):
                    known[s.target] = dtype
        if known.keys() != {s.target for s in members}:
            raise Unclear("the type of what a block makes")
        return known

    def constant(self, s):
        name, dims = s.tensor.name, s.tensor.dims
        made = Array(s.tensor.dtype, [0] * len(dims), dims, list(s.values))
        if not dims:
            self.scalars[name] = made
            return
        self.tensors[name], self.dims[name] = made, [plain(n) for n in dims]
        self.log.append((name, {letter: (0, n) for letter, n in zip("ijkl", dims, strict=False)}))

    def state_ranges(self, s, result):
        """The ranges that the declared box of a result gives its first statement."""
        for name, dim in zip(s.left, (result and result.dims) or (), strict=False):
            known = isinstance(dim, Dimension) and dim.box and not self.indices_in(dim.high)
            if known and name not in s.ranges:
                s.ranges[name] = (dim.low, dim.high)

    def begin_part(self, s, result, later):
        """A first statement may write a part of a dimension whose extent is stated, where a later one goes on there."""
        for number, dim in enumerate((result and result.dims) or ()):
            known = not isinstance(dim, str) or dim in self.sizes or dim in self.scalars
            if number >= len(s.left) or s.left[number] in s.places or not known:
                continue
            if isinstance(dim, Dimension) and (dim.box or self.indices_in(dim.high)):
                continue
            names = [n.left[number] for n in later if n.left and number < len(n.left)]
            others = [n.places[name] for n, name in zip(later, names, strict=False) if name in n.places]
            if any(self.indices_in(e) for e in others):
                s.places[f"@{number}"] = Name(s.left[number])
                s.left = [*s.left[:number], f"@{number}", *s.left[number + 1 :]]

    def is_literal(self, e):
        return not any(isinstance(n, (Name, Extent)) or self.is_read(n) for n in walk(e))

    def need_known(self, names, waiting):
        if waiting.keys() & set(names):
            raise Unclear("a literal that is read before its type and ranges are known")

    def begin(self, first, place, later, declared, given):
        """The first statement on a target, a literal, with the type and the open ranges of the next one."""
        if self.is_literal(later.value) or len(first.left) != len(later.left):
            raise Unclear("two literals, or two ranks")
        if any(isinstance(n, Bordered) and n.read.name == first.target for n in walk(later.value)):
            raise Unclear("a border of a literal")
        value = put_for(later.value, first.target, first.value)
        exists = [put_for(e, first.target, first.value) for e in later.exists]
        filters = [put_for(e, first.target, first.value) for e in later.filters]
        asked = Statement(
            later.target, later.left, later.op, later.fresh, value, later.ranges, {}, exists, filters=filters
        )
        ranges = dict(first.ranges)
        if set(first.left) - set(ranges):
            try:
                found = self.ranges_of(asked)
            except Rejected as reason:
                raise Unclear("ranges that wait for each other") from reason
            for mine, theirs in zip(first.left, later.left, strict=True):
                ranges.setdefault(mine, tuple(Number(end, "int64", False) for end in found[theirs]))
        own, next_ = self.type_of(first.value), self.type_of(value)
        if own.weak is not None:
            if next_.dtype == "bool" and later.op in ("+", "*"):
                next_ = Type("int32")
            self.adopted[first.target] = meet_types(own, next_)
        filled = Statement(first.target, first.left, first.op, first.fresh, first.value, ranges)
        self.types, self.code, self.discharged = {}, {}, {}
        self.statement(filled, declared, given, place)
        self.types, self.code, self.discharged = {}, {}, {}

    def prepared(self, s):
        lets = dict(s.lets)
        for _ in s.lets:  # the longest chain of lets that mention each other has as many
            lets = {name: replaced(e, lets) for name, e in lets.items()}

        def plainly(e):
            return self.joined(replaced(e, lets))

        ranges = {name: tuple(map(plainly, ends)) for name, ends in s.ranges.items()}
        exists = [plainly(e) for e in s.exists]
        filters = [plainly(e) for e in s.filters]
        at = None if s.at is None else plainly(s.at)
        if s.op in TRUTHS:
            return self.of_truth(s, plainly(s.value), ranges, exists, filters)
        places = {name: plainly(e) for name, e in s.places.items()}
        if any(name in lets for name in s.left or []):
            raise Unclear("a let on the left")
        value = plainly(s.value)
        if s.left is None and s.op == "=" and not (lets or ranges or exists or filters):
            return self.with_indices(s, value)
        return Statement(
            s.target, s.left or [], s.op, s.fresh, value, ranges, {}, exists, places, s.unique, at, s.extreme,
            s.along, s.targets, [replaced(e, lets) for e in s.rest], filters,
        )  # fmt: skip

    def with_indices(self, s, value):
        """`W = U * V` for arrays of one box, element by element."""
        arrays = [
            n.name for n in walk(value) if isinstance(n, Name) and n.name in self.tensors and self.tensors[n.name].shape
        ]
        left = list("ijkl"[: len(self.tensors[arrays[0]].shape)]) if arrays else []
        boxes = [self.tensors[name].box for name in [*arrays, *([s.target] if s.target in self.tensors else [])]]
        if arrays and any(len(box) != len(left) for box in boxes):
            raise Rejected("TC202")
        if arrays and any(isinstance(n, Apply) and n.name not in {*FUNCTIONS, *TYPE_NAMES} for n in walk(value)):
            raise Unclear("a read beside whole arrays")
        if any(box != boxes[0] for box in boxes if arrays):
            raise Refused("sizes")
        own = {name: Apply(name, tuple(map(Name, left))) for name in arrays}
        return Statement(s.target, left, s.op, s.fresh, replaced(value, own))

    def of_truth(self, s, value, ranges, exists, filters):
        left = s.left or []
        found = Statement(s.target, left, TRUTHS[s.op], True, value, ranges, {}, exists, s.places, filters=filters)
        if self.type_of(value).dtype != "bool":
            raise Rejected("TC212")
        return found

    def is_call(self, s):
        value = s.value
        return (
            s.left is None and s.op == "=" and isinstance(value, Apply) and value.name in self.defs
            and value.name not in self.tensors
            and not (value.name in FUNCTIONS and all(isinstance(a, Name) and a.name in self.scalars for a in value.args))
        )  # fmt: skip

    def is_power(self, s):
        value = s.value
        return (
            s.left is None and s.op == "=" and isinstance(value, Binary) and value.op == "^" and isinstance(value.left, Name)
            and value.left.name in self.defs and value.left.name not in self.tensors and isinstance(value.right, Apply)
        )  # fmt: skip

    def iterate(self, targets, callee, args, count, declared):
        """A def applied to what it returns: call after call."""
        number = int(count) if count.isdigit() else self.end(Name(count))
        if number < 0:
            raise Refused("steps")
        names = list(args)
        start = [self.tensors[a].moved() if a in self.tensors else self.scalars[a] for a in args[: len(targets)]]
        for step in range(max(number, 1)):  # one call says whether it may be applied
            made = [f"{target}.{step}" for target in targets]
            self.call(made, callee, names, declared)
            for name, first in zip(made, start, strict=True):
                if self.tensors[name].dtype != first.dtype or len(self.tensors[name].shape) != len(first.shape):
                    raise Rejected("TC226")
                if list(self.tensors[name].shape) != list(first.shape):
                    raise Refused("sizes")
            names[: len(made)] = made
        for target, name, first in zip(targets, names, start, strict=False):
            self.tensors[target] = (self.tensors[name] if number else first).moved()
            self.dims[target] = [None] * len(first.shape)

    def call(self, targets, callee, args, declared):
        held = []
        for name in args:
            if name in self.tensors:
                held.append(self.tensors[name].moved())
            elif name in self.scalars:
                held.append(self.scalars[name])
            elif name in self.sizes:
                held.append(Array("int64", [], [], [self.sizes[name]]))
            else:
                raise Rejected("TC201")
        one = self.defs[callee]
        if len(held) != len(one.parameters):
            raise Rejected("TC213")
        for parameter, array in zip(one.parameters, held, strict=True):
            if parameter.dtype != array.dtype:
                raise Rejected("TC212")
            if len(parameter.dims or ()) != len(array.shape):
                raise Rejected("TC202")
        inner = Run(self.defs, one, held)
        inner.log = self.log
        try:
            results = inner.run()
        except Refused as reason:
            reason.temporary = reason.temporary or not declared.keys() >= set(targets)
            raise
        self.unsure, self.doubt = self.unsure or inner.unsure, self.doubt or inner.doubt
        for target, array in zip(targets, results.values(), strict=True):
            self.tensors[target] = array.moved()
            self.dims[target] = [None] * len(array.shape)

    def result(self, r):
        array = self.tensors[r.name]
        for dim, (low, high) in zip(r.dims or (), array.box, strict=bool(r.dims)):
            if not isinstance(dim, Dimension):
                number = int(self.scalars[dim].values[0]) if dim in self.scalars else dim
                fits = high - low == (number if isinstance(number, int) else self.sizes.setdefault(dim, high - low))
            elif not dim.box:
                self.solve_size(dim.high, high - low)
                fits = high - low == self.end(dim.high)
            elif isinstance(dim.high, Name) and self.is_index(dim.high.name):
                self.sizes[dim.high.name] = high
                fits = low == self.end(dim.low)
            else:
                fits = (low, high) == (self.end(dim.low), self.end(dim.high))
            if not fits:
                raise Refused("sizes")
        return array

    def solve_size(self, dim, extent):
        """Finds the one size of a result's dimension that no parameter has, as `M` in `2*M`."""
        new = {each.name for each in walk(dim) if isinstance(each, Name) and self.is_index(each.name)}
        if len(new) == 1:
            (name,) = new
            values = []
            for self.sizes[name] in (0, 1):
                values.append(self.end(dim))
            factor = values[1] - values[0]
            self.sizes[name] = (extent - values[0]) // factor if factor else 0

    def statement(self, s, declared, given, place=None):
        if s.target in self.tensors and len(s.left) != len(self.tensors[s.target].shape):
            raise Rejected("TC202")
        if s.along and s.target not in self.tensors:
            self.make(s, declared, given)
        for e in (
            *s.places.values(),
            s.value,
            *s.exists,
            *s.filters,
            *(e for ends in self.moving(s).values() for e in ends),
        ):
            before = s.filters.index(e) if e in s.filters else None if e in s.exists else len(s.filters)
            if not any(self.leaves_out(test, True) for test in s.filters[: before or 0]):
                self.check_divisors(e, "index" if e in s.places.values() else "")
        ranges = self.ranges_of(s)
        self.leaves_points_out(s, ranges)
        if place is None:
            self.log.append((s.target, ranges))
        else:
            self.log[place] = (s.target, ranges)
        if any(high < low for low, high in ranges.values()):
            raise Refused("range")
        self.check_types(s)
        target = self.target(s, ranges, declared, given)
        self.look_at_ends(s, ranges)
        reduced = [name for name in ranges if name not in s.left]
        points = math.prod(high - low for low, high in ranges.values())
        if points > MOST_POINTS:
            raise Unclear("too many points")
        if s.places:
            self.place_points(s, target, ranges)
            return
        if points:
            for name, (low, high) in zip(s.left, target.box, strict=True):
                if ranges[name][0] < low or ranges[name][1] > high:
                    if s.filters:
                        raise Unclear("a target that is too small for points that may be left out")
                    raise Refused("outside")
        value = self.stored(s, target)
        where = [range(*ranges[name]) for name in s.left]
        lefts = itertools.product(*where)
        if s.along:
            lefts = sorted(lefts, key=lambda left: [left[s.left.index(name)] * step for name, step in s.along])
        for left in lefts:
            env = dict(zip(s.left, left, strict=True))
            terms = [value(env) for _ in self.points(s, reduced, ranges, env)]
            if not terms and s.op == "=" and s.filters:
                continue
            place = target.place(left)
            if place is None:
                raise Unclear("an element outside of the target onto which nothing is combined")
            if not s.fresh:
                terms.append((target.values[place], target.errors[place]))
            kind = computed(target.dtype)
            found = terms[0] if s.op == "=" else combine(s.op, terms, kind)
            self.writes(s, place)
            target.values[place], target.errors[place] = convert(*found, kind, target.dtype)

    def make(self, s, declared, given):
        """The target of a first statement that reads what it has made: of the type of all else."""
        if any(name not in s.left or name in s.places for name, _ in s.along):
            raise Rejected("TC261")
        ranges = self.ranges_of(s)
        if any(high < low for low, high in ranges.values()):
            raise Refused("range")
        dtype = declared[s.target].dtype if s.target in declared else None
        if dtype is None:
            dtype = self.carried(s)
        shape = [ranges[name][1] - ranges[name][0] for name in s.left]
        new = self.tensors[s.target] = Array(dtype, [ranges[name][0] for name in s.left], shape)
        self.begin_with(new, s, given)
        self.dims[s.target] = [None] * len(shape)
        self.types, self.code = {}, {}

    def begin_with(self, new, s, given):
        """What a first statement combines onto: the array of `out=`, or the identity."""
        if not s.fresh and s.target in given:
            if list(given[s.target].shape) != list(new.shape):
                raise Refused("out")
            new.values, new.errors = list(given[s.target].values), [0.0] * len(new.values)
        elif s.op != "=":
            new.values = [identity(s.op, new.dtype)] * len(new.values)

    def carried(self, s):
        """The common type of the value without what it reads of its target: the first that holds what comes out with it."""
        tried = []
        for value in (put_for(s.value, s.target, ANY, True), put_for(s.value, s.target, ANY)):
            try:
                tried.append(self.type_of(value).dtype)
            except Rejected:
                continue
        for dtype in dict.fromkeys([*tried, "bool"]):
            dtype = "int32" if dtype == "bool" and s.op in ("+", "*") else dtype
            try:
                own = self.type_of(put_for(s.value, s.target, Number(1, dtype, False))).dtype
            except Rejected:
                continue
            if fits("int32" if own == "bool" and s.op in ("+", "*") else own, dtype):
                return dtype
        raise Unclear("the type of what is carried")

    def writes(self, s, place):
        """An element is written; not where a statement needs what is there, unless its points have an order."""
        reads = not (s.along or self.in_block) and any(
            isinstance(each, Apply | Name) and each.name == s.target for each in walk(s.value)
        )
        if (s.op == "=" or s.fresh) and not reads:
            self.unwritten.get(s.target, set()).discard(place)

    def holds_everywhere(self, s, ranges):
        """Whether conditions on indices leave no point of these sizes out; `None` where there are too many points."""
        if self.moving(s) or any(isinstance(each, Apply) for e in s.filters for each in walk(e)):
            return False
        where = [range(*ranges[name]) for name in s.left]
        if math.prod(map(len, where)) > MOST_POINTS:
            return None
        lefts = (dict(zip(s.left, left, strict=True)) for left in itertools.product(*where))
        return all(any(True for _ in self.points(s, [], ranges, env)) for env in lefts)

    def leaves_points_out(self, s, ranges):
        """`=` with a condition only onto a target that earlier statements fill."""
        if s.op != "=" or not (s.filters or self.moving(s)):
            return
        if self.holds_everywhere(s, ranges) is not False:
            raise Unclear("whether a condition is seen to hold everywhere")
        if s.target not in self.tensors or self.unwritten.get(s.target):
            raise Rejected("TC222")
        if s.target in self.unwritten:
            raise Unclear("whether it is proved that a target is filled")

    def place_points(self, s, target, ranges):
        """A statement whose left side says at each point which element is meant; points in order."""
        value = self.stored(s, target)
        places = {name: self.compile_left(e) for name, e in s.places.items()}
        names = [name for name in ranges if name not in s.places]
        terms, kind = {}, computed(target.dtype)
        env = {}
        for _ in self.points(s, names, ranges, env):
            left = tuple(places[name](env) if name in places else env[name] for name in s.left)
            place = target.place(left)
            if place is None:
                raise Refused("outside")
            terms.setdefault(place, []).append(value(env))
        if s.op == "=" and any(len(each) > 1 for each in terms.values()):
            raise Refused("twice")
        if s.op != "=" and s.fresh:
            box = [ranges[name] if name not in s.places else target.box[k] for k, name in enumerate(s.left)]
            for left in itertools.product(*(range(*each) for each in box)):
                if (place := target.place(left)) is None:
                    raise Refused("outside")
                terms.setdefault(place, [])
        for place, found in terms.items():
            if not s.fresh:
                found.append((target.values[place], target.errors[place]))
            new = found[0] if s.op == "=" else combine(s.op, found, kind)
            target.values[place], target.errors[place] = convert(*new, kind, target.dtype)
            self.writes(s, place)

    def position(self, s, declared, given):
        """`P(n) argmax=! X(n, m)`: the least position at which the extreme value is attained, that of the first NaN if there is one."""
        name, left = s.extreme or (None, s.left)
        if (left or []) != s.left:
            raise Rejected("TC223")
        value_type = self.type_of(s.value)
        conditions = [e for part in self.conditions(s) for e in part]
        if conditions and any(isinstance(n, Binary) and n.op == "*" for n in walk(s.value)):
            raise Unclear("whether a value is exact")
        inside = (s.value, *conditions, *s.places.values())
        reduced = list(dict.fromkeys(n for e in inside for n in self.indices_in(e) if n not in s.left))
        at = s.at or (Name(reduced[0]) if len(reduced) == 1 else None)
        if at is None or is_float(self.type_of(at).dtype) or not reduced:
            raise Rejected("TC223")
        if s.target in declared and declared[s.target].dtype not in (None, "int64"):
            raise Rejected("TC206")
        if s.target in self.tensors:
            raise Unclear("a position onto a tensor that is there")
        logged = len(self.log)
        best = Statement(
            name or s.target,
            s.left,
            POSITIONS[s.op],
            True,
            s.value,
            s.ranges,
            {},
            s.exists,
            s.places,
            filters=s.filters,
            beside=[s.target],
        )
        as_value = {s.target: replace(declared[s.target], dtype=None)} if s.target in declared else {}
        self.statement(best, declared if name else {**declared, **as_value}, given)
        box = self.tensors[best.target].box
        if name is None:
            del self.log[logged], self.tensors[best.target]
        ranges = self.ranges_of(best if name is None else replace(best, target=s.target, beside=[name]))
        self.log.append((s.target, ranges))
        if [ranges[n] for n in s.left] != box:
            raise Unclear("two targets of different sizes")
        places = Array("int64", [low for low, _ in box], [high - low for low, high in box])
        code, number = self.compiled(s.value, ""), self.compiled(at, "")
        lefts = {n: self.compile_left(e) for n, e in s.places.items()}
        dtype, found = value_type.dtype, {left: [] for left in itertools.product(*(range(*each) for each in box))}
        env = {}
        for _ in self.points(best, [n for n in ranges if n not in s.places], ranges, env):
            value, error = convert(*code(env), computed(dtype), dtype)
            left = tuple(lefts[n](env) if n in lefts else env[n] for n in s.left)
            found[left].append((value, error, *number(env)))
        for left, each in found.items():
            if not each:
                raise Refused("no position")
            place = places.place(left)
            places.values[place], places.errors[place] = first_extreme(s.op, each)
        self.tensors[s.target], self.dims[s.target] = places, [None] * len(s.left)
        self.types, self.code = {}, {}

    def reduced(self, s, declared, given):
        """`A(n), B(n) r=! X(n, m)`: operands of all points one after the other, which are exact in the programs that are drawn."""
        reducer = self.defs[s.op]
        if s.places or any(target in self.tensors for target in s.targets):
            raise Unclear("a reducer on a left side with expressions, or onto what is there")
        values = [s.value, *s.rest]
        asked = (reducer.lifted or reducer.function).parameters[: len(values)]
        for e, parameter in zip(values, asked, strict=True):
            self.check_divisors(e, "")
            found = self.type_of(e)
            if not (
                holds(found.weak, parameter.dtype) if found.weak is not None else fits(found.dtype, parameter.dtype)
            ):
                raise Rejected("TC206")
        probe = Statement(s.target, s.left, "+", True, s.value, s.ranges, {}, [*s.exists, *s.rest], filters=s.filters)
        ranges = self.ranges_of(probe)
        types = [r.dtype for r in reducer.function.results]
        direct = len(types) == 1 and (declared.get(s.target) and declared[s.target].dtype) in (None, types[0])
        for target in s.targets:
            self.log.append((target, ranges if direct else {name: ranges[name] for name in s.left}))
        if any(high < low for low, high in ranges.values()):
            raise Refused("range")
        if math.prod(high - low for low, high in ranges.values()) > MOST_POINTS // 10:
            raise Unclear("too many points")
        box = [ranges[n][0] for n in s.left], [ranges[n][1] - ranges[n][0] for n in s.left]
        made = [
            Array(self.result_type(target, dtype, declared), *box)
            for target, dtype in zip(s.targets, types, strict=True)
        ]
        self.look_at_ends(probe, ranges)
        codes = [self.stored(Statement("", [], "=", True, e), p) for e, p in zip(values, asked, strict=True)]
        inner = [name for name in ranges if name not in s.left]
        nodes = [n for statement in reducer.function.statements for n in walk(statement.value)]
        exact = not any(
            (isinstance(n, Binary) and n.op in "+-*/%") or (isinstance(n, Apply) and n.name not in ("min", "max"))
            for n in nodes
        )
        for left in itertools.product(*(range(*ranges[n]) for n in s.left)):
            env, doubt, size, count = dict(zip(s.left, left, strict=True)), 0.0, 0.0, 1
            total = self.of_numbers(reducer.identity, [])
            for _ in self.points(probe, inner, ranges, env):
                pairs = [convert(*code(env), computed(p.dtype), p.dtype) for code, p in zip(codes, asked, strict=True)]
                doubt = max(doubt, *(error for _, error in pairs))
                operand = [value for value, _ in pairs]
                operand = operand if reducer.lifted is None else self.of_numbers(reducer.lifted, operand)
                total = self.of_numbers(reducer.function, [*total, *operand])
                size, count = max([size, *(abs(n) for n in (*operand, *total) if abs(n) < math.inf)]), count + 1
            for array, value, dtype in zip(made, total, types, strict=True):
                error = UNSURE if doubt and not is_float(dtype) else 2 * doubt
                if is_float(dtype) and not exact:
                    error += 2.0**-21 * count * size
                place = array.place(left)
                array.values[place], array.errors[place] = convert(value, error, computed(dtype), array.dtype)
        for target, array in zip(s.targets, made, strict=True):
            self.tensors[target], self.dims[target] = array, [None] * len(s.left)
        self.types, self.code = {}, {}

    def result_type(self, target, dtype, declared):
        wanted = declared[target].dtype if target in declared else None
        if wanted is not None and not fits(dtype, wanted):
            raise Rejected("TC206")
        return wanted or dtype

    def of_numbers(self, function, numbers):
        """What a function of numbers makes of some."""
        held = [Array(p.dtype, [], [], [value]) for p, value in zip(function.parameters, numbers, strict=True)]
        return [array.values[0] for array in Run(self.defs, function, held).run().values()]

    def check_types(self, s):
        self.type_of(s.value)

    def check_divisors(self, e, place):
        """A divisor made of sizes that is 0 is refused in a subscript, unless a condition of sizes alone leaves it out.

        `place` is "" in a value and "test" in a comparison there; such a comparison is refused only if it decides whether something
        is read, which is left in doubt here.
        """
        if place and isinstance(e, Binary) and e.op in ("/", "%") and is_integer(self.type_of(e).dtype):
            fixed = not self.indices_in(e.right) and not self.has_data(e.right)
            if fixed and self.whole(e.right) == 0:
                self.doubt = True
                if place == "index":
                    raise Refused("divisor")
        for child, test, holds in with_tests(e):
            if test is None or not self.leaves_out(test, holds):
                here = "index" if self.is_read(e) else "test" if isinstance(e, Binary) and e.op in COMPARE else ""
                self.check_divisors(child, "index" if "index" in (place, here) else place or here)

    def leaves_out(self, test, holds):
        """Whether sizes alone say that what needs `test` to be `holds` is not computed."""
        match test:
            case Unary(op="!"):
                return self.leaves_out(test.value, not holds)
            case Binary(op="&&" | "||") if holds == (test.op == "&&"):
                return self.leaves_out(test.left, holds) or self.leaves_out(test.right, holds)
        if self.has_data(test):
            return False
        if self.indices_in(test):
            return self.is_certain(test, not holds)
        numbers = [self.type_of(n).dtype for n in walk(test) if isinstance(n, Name | Number)]
        if any(is_float(dtype) or dtype in ("bool", "uint64") for dtype in numbers):
            return False  # no condition on sizes
        return bool(self.compiled(test, "")({})[0]) != holds

    def is_certain(self, test, holds):
        """Whether a comparison is always `holds` because its indices cancel, as in `i != i - 2`."""
        if not (isinstance(test, Binary) and test.op in COMPARE):
            return False
        difference = (self.sum_of(test.left) + self.sum_of(test.right).scaled(-1)).constant
        return difference is not None and TESTS[test.op](difference, 0) == holds

    def target(self, s, ranges, declared, given):
        """The tensor that a statement writes, made by the first one."""
        found = self.type_of(s.value)
        dtype = found.dtype
        if s.op == "lse" and not is_float(dtype):
            raise Rejected("TC212")
        if is_complex(dtype) and (
            s.op in ("min", "max") or (s.op == "*" and not s.fresh and s.target not in self.tensors)
        ):
            raise Rejected("TC212")
        if dtype == "bool" and s.op in ("+", "*"):
            found = Type("int32")
            dtype = "int32"
        if s.target in self.tensors:
            dtype = self.tensors[s.target].dtype
        elif s.target in declared and declared[s.target].dtype:
            dtype = declared[s.target].dtype
        elif s.target in self.adopted:
            dtype = self.adopted[s.target]
        if not (holds(found.weak, dtype) if found.weak is not None else fits(found.dtype, dtype)):
            raise Rejected("TC206")
        if s.target not in self.tensors:
            shape = [ranges[name][1] - ranges[name][0] for name in s.left]
            new = Array(dtype, [ranges[name][0] for name in s.left], shape)
            self.begin_with(new, s, given)
            self.tensors[s.target] = new
            self.dims[s.target] = [None] * len(shape)
            if s.op == "=" and s.places:
                self.unwritten[s.target] = set(range(math.prod(shape)))
            # a read of the target was no index before
            self.types, self.code = {}, {}
        return self.tensors[s.target]

    def stored(self, s, target):
        """The value of a statement in the type in which its target is computed."""
        code, found = self.compiled(s.value, ""), self.type_of(s.value)
        kind = computed(target.dtype)
        if found.constant:
            value = to_float(found.weak, target.dtype) if is_float(target.dtype) else found.weak
            value = complex(to_float(value, PARTS[target.dtype])) if is_complex(target.dtype) else value
            return lambda env: (value, 0.0)
        source = computed(found.dtype)
        if source == kind:
            return code
        return lambda env: convert(*code(env), source, kind)


def raise_unless_exact(e):
    """A choice between literals that every floating type holds is the same in all of them."""
    numbers = [n.value for n in walk(e) if isinstance(n, Number) and not isinstance(n.value, bool)]
    if not all(abs(value * 4) <= 256 and float(value * 4).is_integer() for value in numbers):
        raise Unclear("a choice between literals that are rounded")


def as_float(t):
    if t.weak is not None:
        return Type("float32", float(t.weak))
    return t if is_float(t.dtype) else Type("float32")


def weak_arithmetic(op, a, b):
    if isinstance(a, int) and isinstance(b, int):
        if op in SHIFTS:
            return shifted(op, a, b, 1 << 10)
        steps = {"+": a + b, "-": a - b, "*": a * b, "/": floor_divide(a, b), "%": floor_remainder(a, b)}
        return BITS[op](a, b) if op in BITS else steps[op]
    if op in ("/", "%"):
        if b == 0:
            return math.nan if a == 0 or op == "%" else math.copysign(math.inf, a)
        return a / b if op == "/" else a % b
    return {"+": a + b, "-": a - b, "*": a * b}[op]


def identity(op, dtype):
    if op in ("+", "*"):
        return 0 if op == "+" else 1
    if op == "lse":
        return -math.inf
    if dtype == "bool":
        return op == "min"
    if is_float(dtype):
        return math.inf if op == "min" else -math.inf
    return limits(dtype)[1] if op == "min" else limits(dtype)[0]


def first_extreme(op, found):
    """The least position of the extreme value, with 0, or 0 with UNSURE where the values are not sure."""
    if any(error for _, error, _, _ in found) or any(doubt for _, _, _, doubt in found):
        return 0, UNSURE
    unknown = [place for value, _, place, _ in found if value != value]
    if unknown:
        return min(unknown), 0.0
    best = (max if op == "argmax" else min)(value for value, _, _, _ in found)
    return min(place for value, _, place, _ in found if value == best), 0.0


def combine(op, terms, dtype):
    """All values of a reduction, in no particular order."""
    if any(error == UNSURE for _, error in terms):
        return (0.0 if is_float(dtype) else 0), UNSURE
    if is_complex(dtype):
        return combine_complex(op, [(complex(value), error) for value, error in terms], dtype)
    if not is_float(dtype):
        return combine_integers(op, [value for value, _ in terms], dtype), 0.0
    values = [float(value) for value, _ in terms]
    if op in ("min", "max"):
        return combine_extremes(op, values, dtype), max((e for _, e in terms), default=0.0)
    if op == "lse":
        return log_of_sum(values, [e for _, e in terms], dtype)
    return (combine_sum if op == "+" else combine_product)(values, [e for _, e in terms], dtype)


def combine_complex(op, terms, dtype):
    if op == "*":
        found = (1 + 0j, 0.0)
        for term in terms:
            found = COMPLEX[dtype].mul(found, term)
        return found
    errors = [error for _, error in terms]
    sides = [value.real for value, _ in terms], [value.imag for value, _ in terms]
    return joined(*(combine_sum(side, errors, PARTS[dtype]) for side in sides))


def combine_integers(op, values, dtype):
    if op in ("min", "max"):
        return (min if op == "min" else max)([*values, identity(op, dtype)])
    total = identity(op, dtype)
    for value in values:
        total = wrap(total + value if op == "+" else total * value, dtype)
    return total


def combine_extremes(op, values, dtype):
    if any(value != value for value in values):
        return math.nan
    return (min if op == "min" else max)([*values, identity(op, dtype)])


def log_of_sum(values, errors, dtype):
    """The logarithm of the sum of the powers of values."""
    most = combine_extremes("max", values, dtype)
    if not math.isfinite(most):
        return most, 0.0
    total = most + math.log(math.fsum(math.exp(value - most) for value in values))
    step = 2.0 ** (1 - FLOAT_BITS[dtype]) * (len(values) + 8)
    return to_float(total, dtype), max(errors) + step * (2 + abs(most) + abs(total)) + TINY


def combine_sum(values, errors, dtype):
    if not all(math.isfinite(value) for value in values):
        return sum(values), UNSURE if any(errors) else 0.0
    size = math.fsum(abs(value) for value in values)
    if size > LARGEST[dtype]:
        return 0.0, UNSURE
    total, bits = math.fsum(values), FLOAT_BITS[dtype]
    if not any(errors) and size * 1024 < 2**bits and all((value * 1024).is_integer() for value in values):
        return total, 0.0
    return to_float(total, dtype), math.fsum(errors) + 2.0 ** (1 - bits) * (len(values) + 1) * size + TINY


def combine_product(values, errors, dtype):
    bits = FLOAT_BITS[dtype]
    large = math.prod(max(abs(value), 1.0) for value in values)
    small = math.prod(min(abs(value), 1.0) for value in values if value)
    if any(value != value for value in values):
        return math.nan, 0.0
    if not large <= LARGEST[dtype] or small < 1e-30:
        return 0.0, UNSURE
    total = math.prod(values)
    if not any(errors) and large < 2**bits and all(value.is_integer() for value in values):
        return total, 0.0
    size = math.prod(abs(value) + error for value, error in zip(values, errors, strict=True))
    spread = size - abs(total) + 2.0 ** (1 - bits) * (len(values) + 1) * size + TINY
    return to_float(total, dtype), spread


@dataclass
class Outcome:
    """Results by name, and the ranges of all statements in the order in which they ran."""

    results: dict
    log: list
    unsure: bool
    doubt: bool
    sizes: dict


def evaluate(text, name, arguments, given=None):
    """Call a def of a cell; `arguments` are pairs (NumPy array or number, element type)."""
    defs = Parser(text).cell()
    one = defs[name] if isinstance(defs[name], Def) else defs[name].function
    held = [array_of(np.asarray(value), dtype) for value, dtype in arguments]
    with np.errstate(all="ignore"):
        run = Run(defs, one, held)
        out = {key: array_of(np.asarray(value), dtype) for key, (value, dtype) in (given or {}).items()}
        results = run.run(out)
    return Outcome(results, run.log, run.unsure, run.doubt, run.sizes)
