"""Scalar expressions -> CUDA C++ with the meaning of the language.

An expression of type `int64` made of loop variables, sizes, constants and `+ - * // % min max abs` is an *index
expression*. It is computed in the index type of the variant (`int` when `fits_int32` holds at the call), everything
else in its own type.

Worked example: with `int` indices, `A(i, 2*k) / 3` of a `float32` matrix with `N` columns is `A[i * N + 2 * k] / 3.0f`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import gcd
from typing import assert_never

from tc_jupyter.loops import Buffer
from tc_jupyter.program import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    bits,
    int64,
    random_numbers,
)

from .launch import Range, bounds
from .literals import C_TYPES, constant, value_type

PRIMARY, UNARY, PRODUCT, SUM, RELATION, EQUALITY, BITAND, AND, OR, CHOICE = 100, 90, 80, 70, 60, 50, 40, 30, 20, 10
SHIFT, BITXOR, BITOR = 65, 37, 34

INDEX_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "min", "max"})

SAME_NAME = frozenset(
    """acos acosh asin asinh atan atanh cos cosh cospi sin sinh sinpi tan tanh exp exp2 exp10 expm1 log log2 log10
    log1p logb sqrt rsqrt cbrt rcbrt erf erfc erfcx erfinv erfcinv normcdf normcdfinv lgamma tgamma j0 j1 y0 y1
    cyl_bessel_i0 cyl_bessel_i1 fabs ceil floor round trunc atan2 copysign fdim fmax fmin fmod hypot nextafter pow
    remainder rhypot fma norm3d rnorm3d norm4d rnorm4d""".split()  # noqa: SIM905
)
"""Functions of the language that CUDA has under the same name (with the suffix `f` for `float32`)."""


@dataclass(frozen=True, slots=True)
class Text:
    """C++ of an expression and how tightly its outermost operator binds; `wide`: an index of type `long long`."""

    text: str
    level: int = PRIMARY
    wide: bool = False

    def at(self, level: int) -> str:
        """The text, in parentheses if it binds less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"


PRIVATE = frozenset({"local", "register", "threads", "fragment"})
"""Scopes of which each thread has its own registers."""


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer in the text.

    Attributes:
        name: identifier of the array, pointer or scalar.
        dimensional: it is indexed as an array of arrays; else by one flat position.
        scalar: a variable instead of an array.
        fragment: `accumulator`, `left` or `right` operand of matrix steps.
    """

    buffer: Buffer
    name: str
    dimensional: bool = False
    scalar: bool = False
    fragment: str = ""

    @property
    def private(self) -> bool:
        """Whether each thread has its own."""
        return self.buffer.scope in PRIVATE


@dataclass(slots=True)
class Scope:
    """What names mean at a place of the text, and which helpers the text uses so far.

    Attributes:
        variables: loop variables and sizes -> identifier.
        places: buffers in scope.
        scalars: arguments by value -> (identifier, type).
        ranges: constant bounds of loop variables.
        nonnegative: loop variables and sizes that are never negative.
        multiples: sizes and variables -> a number that divides them.
        index_bits: width of index arithmetic.
        helpers: device functions used so far.
        lanes: inside a vectorised statement: read -> text of its element.
        tile: inside loops over a tile of a fragment: variables of the row and the column, register of the element.
        block_threads: threads per block.
        repeated: inside a loop, so that what uses shared memory finds it in use by the round before.
        quotients: divisions that have been done (`quotients.py`).
    """

    variables: dict[str, str]
    places: dict[str, Place]
    scalars: dict[str, tuple[str, DType]]
    nonnegative: set[str] = field(default_factory=set)
    ranges: dict[str, Range] = field(default_factory=dict)
    multiples: dict[str, int] = field(default_factory=dict)
    index_bits: int = 32
    helpers: set[str] = field(default_factory=set)
    lanes: dict[Read, str] = field(default_factory=dict)
    tile: tuple[str, str, str] | None = None
    block_threads: int = 1
    repeated: bool = False
    quotients: dict[Expr, Text] = field(default_factory=dict[Expr, "Text"])

    @property
    def index_type(self) -> str:
        """C++ type of index arithmetic."""
        return "int" if self.index_bits == 32 else "long long"

    def use(self, name: str) -> str:
        """Note that the text uses a helper, and return its name."""
        self.helpers.add(name)
        return name


def is_index(expr: Expr) -> bool:
    """Whether an expression is computed in the index type."""
    if expr.dtype is not DType.INT64:
        return False
    match expr:
        case Const():
            return abs(expr.value) < 1 << 31
        case Size() | IndexVar():
            return True
        case Binary():
            return expr.op in INDEX_OPERATORS and is_index(expr.left) and is_index(expr.right)
        case Unary():
            return is_index(expr.operand)
        case Select():
            return is_index(expr.then) and is_index(expr.otherwise)
        case Call():
            return expr.function in ("abs", "min", "max") and all(map(is_index, expr.arguments))
        case Read() | Cast():
            return False
    assert_never(expr)


def nonnegative(expr: Expr, scope: Scope) -> bool:
    """Whether an index expression is certainly >= 0."""
    match expr:
        case Const():
            return expr.value >= 0
        case Size() | IndexVar():
            return expr.name in scope.nonnegative
        case Binary("+" | "*" | "min", left, right):
            return nonnegative(left, scope) and nonnegative(right, scope)
        case Binary("max", left, right):
            return nonnegative(left, scope) or nonnegative(right, scope)
        case Binary("/" | "//", left, Const(value)):
            return value > 0 and nonnegative(left, scope)
        case Binary("%", _, Const(value)):
            return value >= 0
        case _:
            return False


def divisor(expr: Expr, scope: Scope) -> int:
    """A number that certainly divides an index expression; 0 for the constant 0."""
    match expr:
        case Const():
            return abs(int(expr.value))
        case Size() | IndexVar():
            return scope.multiples.get(expr.name, 1)
        case Binary("*", left, right):
            return divisor(left, scope) * divisor(right, scope)
        case Binary("+" | "-" | "min" | "max", left, right):
            return gcd(divisor(left, scope), divisor(right, scope))
        case Binary("%", left, right):
            return gcd(divisor(left, scope), divisor(right, scope))
        case Unary("-", operand):
            return divisor(operand, scope)
        case Select():
            return gcd(divisor(expr.then, scope), divisor(expr.otherwise, scope))
        case _:
            return 1


def index(expr: Expr, scope: Scope) -> Text:
    """A position, size or bound: an index expression in the index type, anything else in 64 bits."""
    return _index(expr, scope) if is_index(expr) else replace(value(expr, scope), wide=True)


def value(expr: Expr, scope: Scope) -> Text:
    """A value of exactly the type of `expr`."""
    if scope.index_bits == 32 and is_index(expr) and not isinstance(expr, Const):
        return Text(f"(long long){_index(expr, scope).at(UNARY)}", UNARY)
    match expr:
        case Const():
            text = constant(expr.value, expr.dtype)
            return Text(text, UNARY if text[0] == "-" else PRIMARY)
        case Size() | IndexVar():
            text = Text(scope.variables[expr.name])
            return widened(text) if is_narrow(expr, scope) else text
        case Read():
            return read(expr, scope)
        case Unary("!", operand):
            return Text(f"!{value(operand, scope).at(UNARY)}", UNARY)
        case Unary():
            return _negative(expr, scope)
        case Binary():
            return _binary(expr, scope)
        case Select():
            return _select(expr, scope, value)
        case Call():
            return _call(expr, scope)
        case Cast():
            return cast(value_or_index(expr.operand, scope), expr.operand.dtype, expr.dtype, scope)
    assert_never(expr)


def value_or_index(expr: Expr, scope: Scope) -> Text:
    """A value whose width does not matter to what follows (a cast, a comparison with its like)."""
    return index(expr, scope) if expr.dtype is DType.INT64 else value(expr, scope)


def condition(expr: Expr, scope: Scope) -> str:
    """The text of a condition, as it stands between parentheses."""
    return value(expr, scope).text


def read(expr: Read, scope: Scope) -> Text:
    """The element as stored, but for `bool`, whose byte becomes a truth value."""
    if expr in scope.lanes:
        text = Text(scope.lanes[expr])
    elif expr.tensor in scope.scalars:
        return Text(scope.scalars[expr.tensor][0])
    else:
        text = Text(element(scope.places[expr.tensor], expr.indices, scope))
    return Text(f"{text.text} != 0", EQUALITY) if expr.dtype is DType.BOOL else text


def element(place: Place, indices: tuple[Expr, ...], scope: Scope) -> str:
    """An element as something that can be read or assigned."""
    if place.fragment:
        return _fragment_element(place, indices, scope)
    indices = indices[place.buffer.threads :]
    if place.scalar:
        return place.name
    if place.dimensional:
        return place.name + "".join(f"[{index(expr, scope).text}]" for expr in indices)
    return f"{place.name}[{position(place.buffer, indices, scope).text}]"


def _fragment_element(place: Place, indices: tuple[Expr, ...], scope: Scope) -> str:
    """The register of `(16*i + row, 8*j + column)` of an accumulator."""
    if scope.tile is None or place.fragment != "accumulator":
        raise ValueError(f"an element of the fragment {place.buffer.name} outside loops over its tiles")
    row, column, register = scope.tile
    tiles = [
        quotient(without(expr, name), by) for expr, name, by in zip(indices[-2:], (row, column), (16, 8), strict=True)
    ]
    return place.name + "".join(f"[{index(tile, scope).text}]" for tile in tiles) + f"[{register}]"


def without(expr: Expr, name: str) -> Expr:
    """A sum of which a variable is one term, without that term."""
    match expr:
        case IndexVar(found) if found == name:
            return int64(0)
        case Binary("+", left, right):
            one, other = without(left, name), without(right, name)
            zero = int64(0)
            return other if one == zero else one if other == zero else Binary("+", one, other, DType.INT64)
        case _:
            return expr


def quotient(expr: Expr, by: int) -> Expr:
    """`16*i + 32` divided by 16 is `i + 2`."""
    match expr:
        case Const(number) if int(number) % by == 0:
            return int64(int(number) // by)
        case Binary("*", Const(number), other) | Binary("*", other, Const(number)) if int(number) % by == 0:
            factor = int(number) // by
            return other if factor == 1 else Binary("*", int64(factor), other, DType.INT64)
        case Binary("+" | "-", left, right):
            return Binary(expr.op, quotient(left, by), quotient(right, by), DType.INT64)
        case _:
            return Binary("//", expr, int64(by), DType.INT64)


def position(buffer: Buffer, indices: tuple[Expr, ...], scope: Scope) -> Text:
    """The flat position of an element, in elements: by strides where the caller passes them, else row-major."""
    if not indices:
        return Text("0")
    if buffer.strided:
        strides = [
            Text(scope.variables[f"{buffer.name}.stride.{k}"], PRIMARY, scope.index_bits == 64)
            for k in range(len(indices))
        ]
        terms = [_product(index(expr, scope), stride) for expr, stride in zip(indices, strides, strict=True)]
        return _sum([term for term in terms if term.text != "0"])
    buffer, indices = in_one_dimension(buffer, indices)
    first = index(indices[0], scope)
    if len(indices) == 1:
        return first
    total = first if scope.index_bits == 32 or _is_small(buffer) else widened(first)
    for extent, expr in zip(_pitches(buffer), indices[1:-1], strict=False):
        total = _sum([_product(total, index(extent, scope)), index(expr, scope)])
    pitch, last = index(_pitches(buffer)[-1], scope), index(indices[-1], scope)
    if buffer.swizzle is not None:
        last = _swizzle(buffer, index(indices[-2], scope), last)
    return _sum([_product(total, pitch), last])


def in_one_dimension(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
    """Dimensions along which one fused loop runs, as one: `X[n, f // W, f % W]` of `X[N, H, W]` is `X[n, f]` of `X[N, H*W]`."""
    if buffer.strided or buffer.pad or buffer.swizzle is not None:
        return buffer, indices
    extents, places = list(buffer.shape[:1]), list(indices[:1])
    for extent, place in zip(buffer.shape[1:], indices[1:], strict=True):
        match places[-1], place:
            case Binary(op="//", left=fused, right=row), Binary(op="%", left=same, right=again) if (
                fused == same and row == again == extent
            ):
                extents[-1], places[-1] = Binary("*", extents[-1], extent, DType.INT64), fused
            case _:
                extents.append(extent)
                places.append(place)
    if len(places) == len(indices):
        return buffer, indices
    return replace(buffer, shape=tuple(extents)), tuple(places)


def _is_small(buffer: Buffer) -> bool:
    """Whether every position is a 32-bit number."""
    total = 1
    for extent in buffer.shape:
        total *= int(extent.value) + buffer.pad if isinstance(extent, Const) else 1 << 31
    return total < 1 << 31


def _pitches(buffer: Buffer) -> tuple[Expr, ...]:
    """Extents of dimensions 1, 2, ...; the last one with its padding."""
    *middle, last = buffer.shape[1:]
    return (*middle, padded(last, buffer.pad))


def padded(extent: Expr, pad: int) -> Expr:
    """`extent + pad`."""
    if pad == 0:
        return extent
    return int64(int(extent.value) + pad) if isinstance(extent, Const) else Binary("+", extent, int64(pad), DType.INT64)


def _swizzle(buffer: Buffer, row: Text, column: Text) -> Text:
    """Column of an element whose 16-byte chunk `c` lies at chunk `c ^ ((row >> shift) & mask)`."""
    assert buffer.swizzle is not None
    shift, mask = buffer.swizzle
    chunk = 16 // buffer.dtype.bytes
    moved = f"({row.at(SUM)} >> {shift})" if shift else row.at(BITAND + 1)
    return Text(f"{column.at(PRIMARY)} ^ (({moved} & {mask}) * {chunk})", BITXOR)


def is_narrow(expr: Expr, scope: Scope) -> bool:
    """Whether an index expression is certainly a 32-bit number."""
    low, high = bounds(expr, scope.ranges)
    return scope.index_bits == 32 or (low is not None and high is not None and low >= -(1 << 31) and high < 1 << 31)


def _index(expr: Expr, scope: Scope) -> Text:
    """An index expression; in the wide variant what is certainly small stays `int`."""
    match expr:
        case Const():
            text = f"{int(expr.value)}"
            return Text(text, UNARY if text[0] == "-" else PRIMARY)
        case Size() | IndexVar():
            return Text(scope.variables[expr.name], PRIMARY, not is_narrow(expr, scope))
        case Unary():
            operand = _index(expr.operand, scope)
            return Text(f"-{operand.at(PRIMARY)}", UNARY, operand.wide)
        case Binary():
            return _index_binary(expr, scope)
        case Select():
            return _select(expr, scope, _index)
        case Call("abs"):
            operand = _index(expr.arguments[0], scope)
            return Text(f"{scope.use('tc_abs')}({operand.text})", PRIMARY, operand.wide)
        case Call():
            return _fold(expr.function, [_index(argument, scope) for argument in expr.arguments])
        case Read() | Cast():
            raise AssertionError("not an index expression")
    assert_never(expr)


def widened(text: Text) -> Text:
    """The same number as `long long`."""
    if text.wide:
        return text
    if text.text.isdigit():
        return Text(text.text + "ll", PRIMARY, True)
    return Text(f"(long long){text.at(UNARY)}", UNARY, True)


def _alike(left: Text, right: Text) -> tuple[Text, Text]:
    """Two arguments of one type."""
    return (widened(left), widened(right)) if left.wide or right.wide else (left, right)


def _index_binary(expr: Binary, scope: Scope) -> Text:
    if expr in scope.quotients:
        return scope.quotients[expr]
    left, right = _index(expr.left, scope), _index(expr.right, scope)
    if not (left.wide or right.wide or is_narrow(expr, scope)):
        left = widened(left)
    match expr.op:
        case "+":
            return _sum([left, right])
        case "-":
            zero = right.text == "0"
            return left if zero else Text(f"{left.at(SUM)} - {right.at(PRODUCT)}", SUM, left.wide or right.wide)
        case "*":
            return _product(left, right)
        case "min" | "max":
            return _fold(expr.op, [left, right])
        case _:
            return _index_division(expr, left, right, scope)


def _index_division(expr: Binary, left: Text, right: Text, scope: Scope) -> Text:
    """The operators of C++ where the sign allows, else a helper."""
    constant = isinstance(expr.right, Const) and expr.right.value > 0
    if constant and nonnegative(expr.left, scope):
        sign = "%" if expr.op == "%" else "/"
        return Text(f"{left.at(PRODUCT)} {sign} {right.at(UNARY)}", PRODUCT, left.wide)
    left, right = _alike(left, right)
    helper = scope.use("tc_floor_mod" if expr.op == "%" else "tc_floor_div")
    return Text(f"{helper}({left.text}, {right.text})", PRIMARY, left.wide)


def _sum(terms: list[Text]) -> Text:
    terms = [term for term in terms if term.text != "0"] or [Text("0")]
    if len(terms) == 1:
        return terms[0]
    text = terms[0].at(SUM) + "".join(f" + {term.at(PRODUCT)}" for term in terms[1:])
    return Text(text, SUM, any(term.wide for term in terms))


def _product(left: Text, right: Text) -> Text:
    for one, other in ((left, right), (right, left)):
        if one.text in ("1", "1ll"):
            return other
        if one.text in ("0", "0ll"):
            return Text("0")
    return Text(f"{left.at(PRODUCT)} * {right.at(UNARY)}", PRODUCT, left.wide or right.wide)


def _fold(function: str, arguments: list[Text]) -> Text:
    """`f(f(a, b), c)` of indices."""
    total = arguments[0]
    for argument in arguments[1:]:
        left, right = _alike(total, argument)
        total = Text(f"{function}({left.text}, {right.text})", PRIMARY, left.wide)
    return total


def _select(expr: Select, scope: Scope, branch: Callable[[Expr, Scope], Text]) -> Text:
    test = value(expr.condition, scope).at(OR)
    then, other = branch(expr.then, scope), branch(expr.otherwise, scope)
    return Text(f"{test} ? {then.at(CHOICE)} : {other.at(CHOICE)}", CHOICE, then.wide or other.wide)


def _negative(expr: Unary, scope: Scope) -> Text:
    operand = value(expr.operand, scope)
    if expr.dtype.is_float:
        return Text(f"-{operand.at(PRIMARY)}", UNARY)
    return narrowed(Text(f"{scope.use('tc_negative')}({operand.text})"), expr.dtype, scope)


def narrowed(text: Text, dtype: DType, scope: Scope) -> Text:
    """Back to an 8 or 16 bit type after arithmetic, which C++ does in `int`."""
    if dtype is DType.INT8:
        return Text(f"{scope.use('tc_int8')}({text.text})")
    return Text(f"({C_TYPES[dtype]}){text.at(UNARY)}", UNARY) if dtype.bits < 32 else text


def _dividend(text: Text, dtype: DType, scope: Scope) -> Text:
    """What is divided or shifted: NVRTC makes sums of it, so the bytes of a wide load get their sign first (`tc_int8`)."""
    return text if dtype is not DType.INT8 or text.text.startswith("tc_int8(") else narrowed(text, dtype, scope)


def _helper(name: str, dtype: DType, scope: Scope) -> str:
    """A helper for two operands of one type; constants of 8 and 16 bit types are `int` in C++, so these types are
    named.
    """
    return scope.use(name) + (f"<{C_TYPES[dtype]}>" if dtype.bits < 32 else "")


_OPERATOR_LEVEL = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}


def _binary(expr: Binary, scope: Scope) -> Text:
    if expr.op in LOGICAL:
        level = AND if expr.op == "&&" else OR
        left, right = value(expr.left, scope), value(expr.right, scope)
        return Text(f"{left.at(level)} {expr.op} {right.at(level + 1)}", level)
    if expr.op in COMPARISONS:
        return _comparison(expr, scope)
    left, right = value(expr.left, scope), value(expr.right, scope)
    if expr.op in ("min", "max"):
        return extremum(expr.op, expr.dtype, left, right, scope)
    if expr.op in ("//", "/", "%") and (power := _power_of_two(expr.right)):
        return _by_power(expr.op, expr.dtype, left, power, scope)
    if expr.op == "%":
        dividend = _dividend(left, expr.dtype, scope)
        return Text(f"{_helper('tc_floor_mod', expr.dtype, scope)}({dividend.text}, {right.text})")
    if expr.op in ("/", "//") and not expr.dtype.is_float:
        dividend = _dividend(left, expr.dtype, scope)
        return Text(f"{_helper('tc_floor_div', expr.dtype, scope)}({dividend.text}, {right.text})")
    if expr.op == "//":
        return Text(f"floor{'f' if expr.dtype is DType.FLOAT32 else ''}({left.at(PRODUCT)} / {right.at(UNARY)})")
    return arithmetic(expr.op, expr.dtype, left, right, scope)


def _power_of_two(expr: Expr) -> int:
    """The number, if a divisor is such a literal of an integer type; else 0."""
    number = int(expr.value) if isinstance(expr, Const) and expr.dtype.is_integer else 0
    return number if number > 0 and number & (number - 1) == 0 else 0


def _by_power(op: str, dtype: DType, left: Text, power: int, scope: Scope) -> Text:
    """Rounding down by a power of two: a shift, or a mask."""
    left = _dividend(left, dtype, scope)
    if op == "%":
        return narrowed(Text(f"{left.at(BITAND)} & {constant(power - 1, dtype)}", BITAND), dtype, scope)
    return narrowed(Text(f"{left.at(SHIFT)} >> {power.bit_length() - 1}", SHIFT), dtype, scope)


def arithmetic(op: str, dtype: DType, left: Text, right: Text, scope: Scope) -> Text:
    """`+ - *`, and `/` of floats; integers wrap."""
    level = _OPERATOR_LEVEL[op]
    plain = Text(f"{left.at(level)} {op} {right.at(level + 1)}", level)
    if dtype.is_float or dtype in (DType.UINT32, DType.UINT64):
        return plain
    if dtype.bits < 32:
        left, right = (Text(f"(unsigned int){side.at(UNARY)}", UNARY) for side in (left, right))
        return narrowed(Text(f"{left.at(level)} {op} {right.at(level + 1)}", level), dtype, scope)
    helper = {"+": "tc_add", "-": "tc_sub", "*": "tc_mul"}[op]
    return Text(f"{scope.use(helper)}({left.text}, {right.text})")


def extremum(op: str, dtype: DType, left: Text, right: Text, scope: Scope) -> Text:
    """`min` or `max`, with the language's rule for NaN."""
    if dtype is DType.BOOL:
        word, level = ("&&", AND) if op == "min" else ("||", OR)
        return Text(f"{left.at(level)} {word} {right.at(level + 1)}", level)
    return Text(f"{_helper(f'tc_{op}', dtype, scope)}({left.text}, {right.text})")


def _comparison(expr: Binary, scope: Scope) -> Text:
    level = EQUALITY if expr.op in ("==", "!=") else RELATION
    both = is_index(expr.left) and is_index(expr.right)
    left, right = ((index if both else value)(side, scope) for side in (expr.left, expr.right))
    return Text(f"{left.at(level + 1)} {expr.op} {right.at(level + 1)}", level)


def _rounded(expr: Expr, text: Text, scope: Scope) -> Text:
    """A value that is not fused with a sum around it, as no operation with a rounding of its own is."""
    letter = "d" if expr.dtype is DType.FLOAT64 else "f"
    match expr:
        case Binary(op="*"):
            left, right = (value(each, scope).text for each in (expr.left, expr.right))
            return Text(f"__{letter}mul_rn({left}, {right})")
        case Read() | Const():
            return text
        case _:
            return Text(f"__{letter}add_rn({text.text}, {constant(-0.0, expr.dtype)})")


_BITWISE = {"&": ("&", BITAND), "^^": ("^", BITXOR), "|": ("|", BITOR)}


def _of_bits(op: str, dtype: DType, left: Text, right: Text, scope: Scope) -> Text:
    """An operator on bits; a shift by the width or more is a helper, for C++ knows none."""
    if op in bits.SHIFTS:
        helper = _helper("tc_shift_left" if op == "<<" else "tc_shift_right", dtype, scope)
        return Text(f"{helper}({_dividend(left, dtype, scope).text}, {right.text})")
    symbol, level = _BITWISE[op]
    return narrowed(Text(f"{left.at(level)} {symbol} {right.at(level + 1)}", level), dtype, scope)


def _call(expr: Call, scope: Scope) -> Text:
    name, operand_type = expr.function, expr.arguments[0].dtype
    arguments = [value(argument, scope) for argument in expr.arguments]
    suffix = "f" if operand_type is DType.FLOAT32 else ""
    first = arguments[0]
    match name:
        case _ if name in random_numbers.WORDS:
            texts = ", ".join(argument.text for argument in arguments)
            return Text(f"{scope.use('tc_philox')}<{random_numbers.WORDS[name]}>({texts})")
        case _ if name in bits.OPERATORS:
            return _of_bits(bits.OPERATORS[name], expr.dtype, first, arguments[1], scope)
        case "min" | "max":
            total = first
            for argument in arguments[1:]:
                total = extremum(name, expr.dtype, total, argument, scope)
            return total
        case "ceil" | "floor" | "round" | "rounded" | "trunc" if not operand_type.is_float:
            return first
        case "rounded":
            return _rounded(expr.arguments[0], first, scope)
        case "abs" if operand_type.is_float:
            return Text(f"fabs{suffix}({first.text})")
        case "abs" | "sign" if operand_type is DType.BOOL:
            return first
        case "abs" | "sign":
            return Text(f"{scope.use(f'tc_{name}')}({first.text})")
        case "popcount":
            return Text(f"__popc{'ll' if operand_type.bits == 64 else ''}({first.text})")
        case "relu":
            return Text(f"{scope.use('tc_max')}({first.text}, {constant(0.0, operand_type)})")
        case "sigmoid":
            return Text(f"{scope.use('tc_sigmoid')}({first.text})")
        case "isnan":
            return Text(f"isnan({first.text})")
        case "isinf":
            return Text(f"fabs{suffix}({first.text}) == {constant(float('inf'), operand_type)}", EQUALITY)
        case "isfinite":
            return Text(f"fabs{suffix}({first.text}) < {constant(float('inf'), operand_type)}", RELATION)
        case "digamma" | "polygamma":
            text = f"{scope.use(f'tc_{name}')}({', '.join(argument.text for argument in arguments)})"
            return Text(text if operand_type is DType.FLOAT64 else f"(float){text}", UNARY)
        case "fdivide":
            return arithmetic("/", expr.dtype, arguments[0], arguments[1], scope)
        case _ if name in SAME_NAME:
            return Text(f"{name}{suffix}({', '.join(argument.text for argument in arguments)})")
        case _:
            raise ValueError(f"unknown function: {name}")


def cast(text: Text, source: DType, target: DType, scope: Scope) -> Text:
    """A value of type `source` as one of type `target`."""
    if source is target:
        return text
    if source in (DType.FLOAT16, DType.BFLOAT16):
        helper = "tc_half_to_float" if source is DType.FLOAT16 else "tc_bfloat16_to_float"
        return cast(Text(f"{scope.use(helper)}({text.text})"), DType.FLOAT32, target, scope)
    if target is DType.BOOL:
        return Text(f"{text.at(EQUALITY + 1)} != {constant(0, source)}", EQUALITY)
    if target in (DType.FLOAT16, DType.BFLOAT16):
        return _to_16_bits(text, source, target, scope)
    if source.is_float and target.is_integer:
        return _to_integer(text, target, scope)
    if target is DType.INT8:
        return narrowed(text, target, scope)
    return Text(f"({value_type(target)}){text.at(UNARY)}", UNARY)


def _to_16_bits(text: Text, source: DType, target: DType, scope: Scope) -> Text:
    """Rounding to a 16-bit float, once: integers that `float32` cannot hold go through `float64`."""
    kind = "half" if target is DType.FLOAT16 else "bfloat16"
    if source is DType.FLOAT32:
        return Text(f"{scope.use(f'tc_float_to_{kind}')}({text.text})")
    if source is DType.FLOAT64:
        return Text(f"{scope.use(f'tc_double_to_{kind}')}({text.text})")
    middle = DType.FLOAT32 if source.bits < 32 else DType.FLOAT64
    return _to_16_bits(cast(text, source, middle, scope), middle, target, scope)


def _to_integer(text: Text, target: DType, scope: Scope) -> Text:
    """Truncation that saturates; 8 and 16 bit types are limited after the conversion to 32 bits."""
    if target.bits >= 32:
        return Text(f"{scope.use(f'tc_to_{target.value}')}({text.text})")
    low, high = target.limits
    wide = f"{scope.use('tc_to_int32')}({text.text})"
    return Text(f"({C_TYPES[target]}){scope.use('tc_clamp')}({wide}, {low}, {high})", UNARY)


def show(expr: Expr) -> str:
    """An index expression for readers, in the notation of ranges: `min(4, N - 4*j)`, `ceil`-free."""
    return _show(expr).text


def _show(expr: Expr) -> Text:
    match expr:
        case Const():
            return Text(str(expr.value), PRIMARY if expr.value >= 0 else UNARY)
        case Size() | IndexVar():
            return Text(expr.name)
        case Read():
            return Text(f"{expr.tensor}({', '.join(map(show, expr.indices))})")
        case Unary():
            return Text(f"{expr.op}{_show(expr.operand).at(PRIMARY)}", UNARY)
        case Binary("min" | "max"):
            return Text(f"{expr.op}({show(expr.left)}, {show(expr.right)})")
        case Binary():
            level = {"+": SUM, "-": SUM, "&&": AND, "||": OR}.get(expr.op, PRODUCT)
            level = RELATION if expr.op in COMPARISONS else level
            space = "" if level == PRODUCT and expr.op == "*" else " "
            return Text(f"{_show(expr.left).at(level)}{space}{expr.op}{space}{_show(expr.right).at(level + 1)}", level)
        case Select():
            return Text(f"{show(expr.condition)} ? {show(expr.then)} : {show(expr.otherwise)}", CHOICE)
        case Call(function=function, arguments=(left, right)) if function in bits.OPERATORS:
            return Text(f"{_show(left).at(UNARY)} {bits.OPERATORS[function]} {_show(right).at(UNARY)}", OR)
        case Call():
            return Text(f"{expr.function}({', '.join(map(show, expr.arguments))})")
        case Cast():
            return Text(f"{expr.dtype.value}({show(expr.operand)})")
    assert_never(expr)
