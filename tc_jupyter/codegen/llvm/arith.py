"""The operators of the language on operands of any type and any number of lanes.

Nothing here branches: integer division replaces a forbidden divisor before it divides, so all code may be moved or masked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tc_jupyter.program import DType, random_numbers

from .builder import Builder, Value, constant, mangle, register_type, vector_type

_COMPARE_FLOAT = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_COMPARE_INT = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def broadcast(b: Builder, value: Value, lanes: int) -> Value:
    """The same value in `lanes` lanes."""
    if value.lanes == lanes:
        return value
    if not value.text.startswith("%"):
        return Value(f"splat ({value.type} {value.text})", value.dtype, lanes)
    element, vector = value.type, vector_type(value.type, lanes)
    first = b.raw(f"insertelement {vector} poison, {element} {value.text}, i64 0", "one")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return b.op(f"shufflevector {vector} {first}, {vector} poison, {zeros}", value.dtype, lanes, "all")


def same_lanes(b: Builder, *values: Value) -> tuple[Value, ...]:
    """All values with the largest number of lanes among them."""
    lanes = max(value.lanes for value in values)
    return tuple(broadcast(b, value, lanes) for value in values)


def intrinsic(b: Builder, name: str, *operands: Value, dtype: DType | None = None, flags: str = "") -> Value:
    """Call `llvm.<name>` overloaded on its first operand."""
    first = operands[0]
    result = Value("", dtype or first.dtype, first.lanes)
    value = b.call(f"llvm.{name}.{mangle(first.type)}", operands, result, name.split(".")[0], flags)
    assert isinstance(value, Value)
    return value


def select(b: Builder, condition: Value, then: Value, otherwise: Value) -> Value:
    """Lane by lane, or as a whole if the condition is a scalar."""
    if condition.lanes > 1:
        condition, then, otherwise = same_lanes(b, condition, then, otherwise)
    else:
        then, otherwise = same_lanes(b, then, otherwise)
    if then == otherwise:
        return then
    text = f"select {condition.typed}, {then.typed}, {otherwise.typed}"
    return b.op(text, then.dtype, then.lanes, "sel")


def logical(b: Builder, op: str, left: Value, right: Value) -> Value:
    """`and`, `or`, `xor` of truth values."""
    left, right = same_lanes(b, left, right)
    return b.op(f"{op} {left.typed}, {right.text}", DType.BOOL, left.lanes, op)


def negate(b: Builder, value: Value) -> Value:
    """`-x`."""
    if value.dtype.is_float:
        return b.op(f"fneg {value.typed}", value.dtype, value.lanes, "neg")
    if value.integer is not None:
        return constant(-value.integer, value.dtype)
    zero = constant(0, value.dtype, value.lanes)
    return b.op(f"sub {value.type} {zero.text}, {value.text}", value.dtype, value.lanes, "neg")


def invert(b: Builder, value: Value) -> Value:
    """`!x`."""
    return logical(b, "xor", value, constant(True, DType.BOOL))


def compare(b: Builder, op: str, left: Value, right: Value) -> Value:
    """A comparison; every comparison with NaN but `!=` is false."""
    left, right = same_lanes(b, left, right)
    dtype = left.dtype
    if dtype.is_float:
        text = f"fcmp {_COMPARE_FLOAT[op]} {left.typed}, {right.text}"
    else:
        sign = "" if op in ("==", "!=") else ("s" if dtype.is_signed else "u")
        text = f"icmp {sign}{_COMPARE_INT[op]} {left.typed}, {right.text}"
    return b.op(text, DType.BOOL, left.lanes, "cmp")


def binary(b: Builder, op: str, left: Value, right: Value, reassociate: bool = False) -> Value:
    """`+ - * / // % min max` of operands of one type, or a comparison."""
    if op in _COMPARE_INT:
        return compare(b, op, left, right)
    folded = _fold(op, left, right)
    if folded is not None:
        return folded
    left, right = same_lanes(b, left, right)
    if op in ("min", "max"):
        return _extreme(b, op, left, right)
    if left.dtype.is_float:
        return _float_binary(b, op, left, right, reassociate)
    if left.dtype is DType.BOOL:
        return logical(b, {"+": "or", "*": "and"}[op], left, right)
    if op in ("//", "/", "%"):
        return _integer_division(b, op, left, right)
    name = {"+": "add", "-": "sub", "*": "mul"}[op]
    return b.op(f"{name} {left.typed}, {right.text}", left.dtype, left.lanes, name)


def natural_division(b: Builder, op: str, left: Value, right: Value) -> Value:
    """`//` or `%` of a number that is not negative by a positive one.

    Divided as numbers with a sign: LLVM takes unsigned quotients apart, and then finds no addresses that move with a loop.
    """
    folded = _fold(op, left, right)
    if folded is not None:
        return folded
    name, hint = ("srem", "rem") if op == "%" else ("sdiv", "quot")
    return b.op(f"{name} {left.typed}, {right.text}", left.dtype, left.lanes, hint)


def _fold(op: str, left: Value, right: Value) -> Value | None:
    """Integer literals are computed here; neutral elements vanish."""
    x, y = left.integer, right.integer
    if x is not None and y is not None:
        results: dict[str, Callable[[], int]] = {
            "+": lambda: x + y,
            "-": lambda: x - y,
            "*": lambda: x * y,
            "//": lambda: x // y if y else 0,
            "/": lambda: x // y if y else 0,
            "%": lambda: x % y if y else 0,
            "min": lambda: min(x, y),
            "max": lambda: max(x, y),
        }
        if left.dtype.is_signed:
            return constant(results[op](), left.dtype)
        return None
    if y == 0 and op in ("+", "-") and left.dtype.is_integer:
        return left
    if x == 0 and op == "+" and left.dtype.is_integer:
        return right
    if y == 1 and op in ("*", "//", "/") and left.dtype.is_integer:
        return left
    if x == 1 and op == "*" and left.dtype.is_integer:
        return right
    return None


def _float_binary(b: Builder, op: str, left: Value, right: Value, reassociate: bool) -> Value:
    """Floating arithmetic; a product and a sum may become one fused operation."""
    name = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "//": "fdiv"}[op]
    flags = "reassoc contract" if reassociate else "contract"
    return b.op(f"{name} {flags} {left.typed}, {right.text}", left.dtype, left.lanes, name)


def _extreme(b: Builder, op: str, left: Value, right: Value) -> Value:
    """Smaller or larger operand; NaN if one of the two is NaN."""
    dtype = left.dtype
    if dtype is DType.BOOL:
        return logical(b, "and" if op == "min" else "or", left, right)
    if not dtype.is_float:
        return intrinsic(b, ("s" if dtype.is_signed else "u") + op, left, right)
    # without the order of zeros: one instruction, and two that put a NaN back; comparisons and choices become four
    return intrinsic(b, op + "imum", left, right, flags="nsz")


def _integer_division(b: Builder, op: str, left: Value, right: Value) -> Value:
    """Floor division and its remainder; 0 for a divisor of 0, wrapped for the one quotient that overflows."""
    divisor = _positive_literal(right)
    if divisor is not None and divisor & (divisor - 1) == 0:
        if op == "%":
            return b.op(f"and {left.typed}, {_like(divisor - 1, left)}", left.dtype, left.lanes, "rem")
        shift = "ashr" if left.dtype.is_signed else "lshr"
        return b.op(f"{shift} {left.typed}, {_like(divisor.bit_length() - 1, left)}", left.dtype, left.lanes, "quot")
    if not left.dtype.is_signed:
        return _unsigned_division(b, op, left, right)
    positive = divisor is not None
    safe = right if positive else _safe_divisor(b, left, right)
    remainder = b.op(f"srem {left.typed}, {safe.text}", left.dtype, left.lanes, "rem")
    zero = constant(0, left.dtype, left.lanes)
    signs = b.op(f"xor {remainder.typed}, {safe.text}", left.dtype, left.lanes, "signs")
    wrong = logical(b, "and", compare(b, "!=", remainder, zero), compare(b, "<", signs, zero))
    if op == "%":
        result = binary(b, "+", remainder, select(b, wrong, safe, zero))
    else:
        quotient = b.op(f"sdiv {left.typed}, {safe.text}", left.dtype, left.lanes, "quot")
        result = binary(b, "-", quotient, select(b, wrong, constant(1, left.dtype, left.lanes), zero))
    return result if positive else select(b, compare(b, "==", right, zero), zero, result)


def floor_by(b: Builder, op: str, left: Value, right: Value, safe: Value) -> Value:
    """`//` or `%` of `int64` numbers by one that is not negative; 0 for a divisor of 0. `safe` is `max(right, 1)`."""
    if _positive_literal(right) is not None:
        return binary(b, op, left, right)
    is_safe = safe == right
    left, right, safe = same_lanes(b, left, right, safe)
    zero = constant(0, left.dtype, left.lanes)
    rest = b.op(f"srem {left.typed}, {safe.text}", left.dtype, left.lanes, "rem")
    below = b.op(
        f"ashr {rest.typed}, {constant(left.dtype.bits - 1, left.dtype, left.lanes).text}", left.dtype, left.lanes
    )
    if op == "%":
        return binary(b, "+", rest, b.op(f"and {below.typed}, {safe.text}", left.dtype, left.lanes, "below"))
    quotient = binary(b, "+", b.op(f"sdiv {left.typed}, {safe.text}", left.dtype, left.lanes, "quot"), below)
    return quotient if is_safe else select(b, compare(b, "==", right, zero), zero, quotient)


def _unsigned_division(b: Builder, op: str, left: Value, right: Value) -> Value:
    """As `_integer_division` without signs."""
    zero, one = constant(0, left.dtype, left.lanes), constant(1, left.dtype, left.lanes)
    by_zero = compare(b, "==", right, zero)
    safe = select(b, by_zero, one, right)
    result = b.op(f"{'urem' if op == '%' else 'udiv'} {left.typed}, {safe.text}", left.dtype, left.lanes, "quot")
    return select(b, by_zero, zero, result)


def _safe_divisor(b: Builder, left: Value, right: Value) -> Value:
    """`right`, or 1 where the processor would trap: a divisor of 0, and the smallest number by -1."""
    zero, minus = constant(0, left.dtype, left.lanes), constant(-1, left.dtype, left.lanes)
    smallest = constant(left.dtype.limits[0], left.dtype, left.lanes)
    overflow = logical(b, "and", compare(b, "==", left, smallest), compare(b, "==", right, minus))
    trap = logical(b, "or", compare(b, "==", right, zero), overflow)
    return select(b, trap, constant(1, left.dtype, left.lanes), right)


_BITWISE = {"&": "and", "|": "or", "^^": "xor"}


def of_bits(b: Builder, op: str, left: Value, right: Value) -> Value:
    """An operator on bits. A shift by the width or more, or by a negative number, shifts everything out; LLVM knows none."""
    if op in _BITWISE:
        return _int_op(b, _BITWISE[op], left, right)
    fits = b.op(f"icmp ult {right.typed}, {_like(right.dtype.bits, right)}", DType.BOOL, right.lanes, "fits")
    if op == ">>" and left.dtype.is_signed:
        return _int_op(b, "ashr", left, select(b, fits, right, _same(right.dtype.bits - 1, right)))
    zero = _same(0, right)
    moved = _int_op(b, "shl" if op == "<<" else "lshr", left, select(b, fits, right, zero))
    return select(b, fits, moved, zero)


def random_word(b: Builder, word: int, arguments: tuple[Value, ...]) -> Value:
    """A word of `random_numbers.philox`, written out, for any number of lanes."""
    k0, k1, *counter = arguments

    def multiplied(value: Value, factor: int) -> tuple[Value, Value]:
        wide = b.op(f"zext {value.typed} to {vector_type('i64', value.lanes)}", DType.UINT64, value.lanes, "wide")
        product = _int_op(b, "mul", wide, factor)
        halves = (_int_op(b, "lshr", product, 32), product)
        kind = vector_type("i32", value.lanes)
        high, low = (b.op(f"trunc {half.typed} to {kind}", DType.UINT32, value.lanes, "word") for half in halves)
        return high, low

    for number in range(random_numbers.ROUNDS):
        first, second = (
            multiplied(counter[place], factor) for place, factor in zip((0, 2), random_numbers.FACTORS, strict=True)
        )
        keys = [
            _int_op(b, "add", key, number * step % (1 << 32))
            for key, step in zip((k0, k1), random_numbers.STEPS, strict=True)
        ]
        mixed = [
            _int_op(b, "xor", _int_op(b, "xor", product[0], counter[place]), key)
            for product, place, key in ((second, 1, keys[0]), (first, 3, keys[1]))
        ]
        counter = [mixed[0], second[1], mixed[1], first[1]]
    return counter[word]


def _positive_literal(value: Value) -> int | None:
    """The number if the operand is a positive integer literal, alone or in all lanes."""
    text = value.text
    if text.startswith("splat ("):
        text = text[len("splat (") : -1].split(" ")[1]
    if not value.dtype.is_integer or not text.lstrip("-").isdigit():
        return None
    return int(text) if int(text) > 0 else None


def _like(number: int, value: Value) -> str:
    """A literal with the type of `value`."""
    return constant(number, value.dtype, value.lanes).text


def identity(op: str, dtype: DType) -> float | int | bool:
    """Start value of a reduction."""
    if op in ("+", "*"):
        return 1 if op == "*" else 0
    if dtype.is_float:
        return float("inf") if op == "min" else float("-inf")
    return dtype.limits[1] if op == "min" else dtype.limits[0]


def horizontal(b: Builder, op: str, value: Value) -> Value:
    """Combine all lanes, in any order."""
    if value.lanes > 1 and value.lanes & (value.lanes - 1) == 0 and value.dtype is not DType.BOOL:
        return _all_lanes(b, op, value)
    extra: Value | None = None
    while value.lanes > 1:
        half = value.lanes // 2
        if value.lanes % 2:
            last = b.op(f"extractelement {value.typed}, i64 {value.lanes - 1}", value.dtype, 1, "lane")
            extra = last if extra is None else binary(b, op, extra, last, True)
        low, high = part(b, value, 0, half), part(b, value, half, half)
        value = binary(b, op, low, high, True)
    return value if extra is None else binary(b, op, value, extra, True)


def _all_lanes(b: Builder, op: str, value: Value) -> Value:
    """One instruction of LLVM, which makes a tree of it that the processor likes; for a power of two of numbers."""
    dtype = value.dtype
    operands: tuple[Value, ...] = (value,)
    flags = ""
    if op in ("min", "max"):
        name = f"f{op}imum" if dtype.is_float else ("s" if dtype.is_signed else "u") + op
        flags = "nsz" if dtype.is_float else ""
    else:
        name = {"+": "add", "*": "mul"}[op]
        if dtype.is_float:
            name, flags, operands = f"f{name}", "reassoc", (constant(-0.0 if op == "+" else 1.0, dtype), value)
    result = b.call(f"llvm.vector.reduce.{name}.{mangle(value.type)}", operands, Value("", dtype), "lanes", flags)
    assert isinstance(result, Value)
    return result


def part(b: Builder, value: Value, start: int, lanes: int) -> Value:
    """Some neighbouring lanes."""
    if lanes == 1:
        return b.op(f"extractelement {value.typed}, i64 {start}", value.dtype, 1, "lane")
    picks = ", ".join(f"i32 {start + k}" for k in range(lanes))
    text = f"shufflevector {value.typed}, {value.type} poison, <{lanes} x i32> <{picks}>"
    return b.op(text, value.dtype, lanes, "part")


def pick(b: Builder, left: Value, right: Value, lanes: list[int], hint: str) -> Value:
    """Some lanes of two vectors; those of the second one are counted on."""
    picks = ", ".join(f"i32 {lane}" for lane in lanes)
    text = f"shufflevector {left.typed}, {right.typed}, <{len(lanes)} x i32> <{picks}>"
    return b.op(text, left.dtype, len(lanes), hint)


def picked(b: Builder, vectors: list[Value], sources: list[tuple[int, int]], hint: str) -> Value:
    """Any lanes of several vectors: for each lane the number of a vector and the lane in it."""
    found, lanes = vectors[0], vectors[0].lanes
    for number, vector in enumerate(vectors[1:], 1):
        # what earlier vectors had is in its place already, except for what the first one still has where it lies
        kept = [at if number == 1 else lane for lane, (_, at) in enumerate(sources)]
        picks = [lanes + at if source == number else kept[lane] for lane, (source, at) in enumerate(sources)]
        found = pick(b, found, vector, picks, hint)
    return found


def joined(b: Builder, parts: list[Value]) -> Value:
    """Vectors one after the other."""
    if len(parts) == 1:
        return parts[0]
    most = 1 << (len(parts) - 1).bit_length() - 1
    return _join(b, joined(b, parts[:most]), joined(b, parts[most:]))


def _join(b: Builder, left: Value, right: Value) -> Value:
    """One vector after the other; the left one may be longer."""
    n, m = left.lanes, right.lanes
    if n > m:
        picks = ", ".join(f"i32 {k if k < m else 0}" for k in range(n))
        right = b.op(f"shufflevector {right.typed}, {right.type} poison, <{n} x i32> <{picks}>", right.dtype, n, "wide")
    return pick(b, left, right, list(range(n + m)), "row")


def cast(b: Builder, value: Value, dtype: DType, f16c: bool) -> Value:
    """Any type to any type; float to integer truncates and saturates, NaN gives 0."""
    source, lanes = value.dtype, value.lanes
    if source is dtype:
        return value
    target = vector_type(register_type(dtype), lanes)
    if dtype is DType.BOOL:
        return compare(b, "!=", value, constant(0, source, lanes))
    if source is DType.BOOL:
        return select(b, value, constant(1, dtype, lanes), constant(0, dtype, lanes))
    if source.is_float and dtype.is_float:
        return _float_to_float(b, value, dtype, f16c)
    if source.is_float:
        name = "fptosi" if dtype.is_signed else "fptoui"
        result = b.call(
            f"llvm.{name}.sat.{mangle(target)}.{mangle(value.type)}", (value,), Value("", dtype, lanes), "int"
        )
        assert isinstance(result, Value)
        return result
    if dtype.is_float:
        wide = dtype.compute
        name = "sitofp" if source.is_signed else "uitofp"
        number = b.op(f"{name} {value.typed} to {vector_type(register_type(wide), lanes)}", wide, lanes, "num")
        return cast(b, number, dtype, f16c)
    if value.integer is not None:
        return constant(value.integer if source.is_signed else value.integer % (1 << source.bits), dtype)
    if dtype.bits == source.bits:
        return Value(value.text, dtype, lanes)
    widen = "sext" if source.is_signed else "zext"
    name = "trunc" if dtype.bits < source.bits else widen
    return b.op(f"{name} {value.typed} to {target}", dtype, lanes, "int")


def _float_to_float(b: Builder, value: Value, dtype: DType, f16c: bool) -> Value:
    """Between the four floating types, rounding once, to nearest even."""
    source, lanes = value.dtype, value.lanes
    if dtype is DType.FLOAT64:
        return b.op(f"fpext {value.type} {value.text} to {vector_type('double', lanes)}", dtype, lanes, "wide")
    if dtype is DType.FLOAT32:
        if source is DType.FLOAT64:
            return b.op(f"fptrunc {value.typed} to {vector_type('float', lanes)}", dtype, lanes, "narrow")
        return replace(value, dtype=dtype)
    if source is DType.FLOAT64:
        value = _round_to_odd(b, value)
    if dtype is DType.BFLOAT16:
        return bfloat16_from_bits(b, bfloat16_bits(b, value), lanes)
    return half_from_memory(b, half_to_memory(b, value, f16c), lanes, f16c)


def bits_of(b: Builder, value: Value) -> Value:
    """The bit pattern of floats as unsigned integers of the same width."""
    dtype = DType.UINT64 if value.dtype is DType.FLOAT64 else DType.UINT32
    kind = vector_type(register_type(dtype), value.lanes)
    return b.op(f"bitcast {value.typed} to {kind}", dtype, value.lanes, "bits")


def float_of(b: Builder, bits: Value) -> Value:
    """The floats with a bit pattern."""
    dtype = DType.FLOAT64 if bits.dtype.bits == 64 else DType.FLOAT32
    kind = vector_type(register_type(dtype), bits.lanes)
    return b.op(f"bitcast {bits.typed} to {kind}", dtype, bits.lanes, "num")


def _int_op(b: Builder, name: str, left: Value, right: Value | int) -> Value:
    """A bit operation with an operand or a literal."""
    other = right.text if isinstance(right, Value) else _like(right, left)
    return b.op(f"{name} {left.typed}, {other}", left.dtype, left.lanes, name)


def _round_to_odd(b: Builder, value: Value) -> Value:
    """A `float` from which a second rounding gives what one rounding of the `double` would give.

    Source: Boldo, Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    narrow = cast(b, value, DType.FLOAT32, True)
    back = cast(b, narrow, DType.FLOAT64, True)
    inexact = b.op(f"fcmp one {back.typed}, {value.text}", DType.BOOL, value.lanes, "inexact")
    larger = compare(b, ">", intrinsic(b, "fabs", back), intrinsic(b, "fabs", value))
    bits = bits_of(b, narrow)
    down = select(b, larger, _int_op(b, "sub", bits, 1), bits)
    return float_of(b, select(b, inexact, _int_op(b, "or", down, 1), bits))


def bfloat16_bits(b: Builder, value: Value) -> str:
    """`float` lanes rounded to the upper 16 bits, as an `i16` operand; NaN stays NaN."""
    bits = bits_of(b, value)
    odd = _int_op(b, "and", _int_op(b, "lshr", bits, 16), 1)
    rounded = _int_op(b, "lshr", _int_op(b, "add", _int_op(b, "add", bits, 0x7FFF), odd), 16)
    quiet = _int_op(b, "or", _int_op(b, "lshr", bits, 16), 0x40)
    nan = b.op(f"fcmp uno {value.typed}, {value.text}", DType.BOOL, value.lanes, "nan")
    chosen = select(b, nan, quiet, rounded)
    return b.raw(f"trunc {chosen.typed} to {vector_type('i16', value.lanes)}", "bf16")


def bfloat16_from_bits(b: Builder, bits: str, lanes: int) -> Value:
    """The `float` values of stored `bfloat16`."""
    wide = b.op(f"zext {vector_type('i16', lanes)} {bits} to {vector_type('i32', lanes)}", DType.UINT32, lanes, "bits")
    return Value(float_of(b, _int_op(b, "shl", wide, 16)).text, DType.BFLOAT16, lanes, bits)


def half_from_memory(b: Builder, stored: str, lanes: int, f16c: bool) -> Value:
    """The `float` values of stored `half`; `stored` has type `half`."""
    half, single = vector_type("half", lanes), vector_type("float", lanes)
    if f16c:
        return b.op(f"fpext {half} {stored} to {single}", DType.FLOAT16, lanes, "wide")
    # Without the instruction: place exponent and mantissa, scale by 2^112; the product is exact and rights subnormals.
    raw = b.raw(f"bitcast {half} {stored} to {vector_type('i16', lanes)}", "raw")
    wide = b.op(f"zext {vector_type('i16', lanes)} {raw} to {vector_type('i32', lanes)}", DType.UINT32, lanes, "bits")
    magnitude = _int_op(b, "shl", _int_op(b, "and", wide, 0x7FFF), 13)
    scale = constant(2.0**112, DType.FLOAT32, lanes)
    number = bits_of(b, binary(b, "*", float_of(b, magnitude), scale))
    special = _int_op(b, "or", magnitude, 0x7F800000)
    is_special = compare(b, ">=", magnitude, constant(0x0F800000, DType.UINT32, lanes))
    sign = _int_op(b, "shl", _int_op(b, "and", wide, 0x8000), 16)
    result = float_of(b, _int_op(b, "or", select(b, is_special, special, number), sign))
    return Value(result.text, DType.FLOAT16, lanes)


def half_to_memory(b: Builder, value: Value, f16c: bool) -> str:
    """`float` lanes rounded to `half`, as an operand of type `half`."""
    lanes = value.lanes
    half = vector_type("half", lanes)
    if f16c:
        return b.raw(f"fptrunc {value.type} {value.text} to {half}", "half")
    bits = bits_of(b, value)
    sign = _int_op(b, "lshr", _int_op(b, "and", bits, 0x80000000), 16)
    size = _int_op(b, "and", bits, 0x7FFFFFFF)
    # Normal results: round in the integer; subnormal results: adding 0.5 lines the mantissa up and the adder rounds.
    odd = _int_op(b, "and", _int_op(b, "lshr", size, 13), 1)
    normal = _int_op(b, "lshr", _int_op(b, "add", _int_op(b, "add", size, 0xC8000FFF), odd), 13)
    half_one = constant(0.5, DType.FLOAT32, lanes)
    total = b.op(f"fadd {half_one.typed}, {float_of(b, size).text}", DType.FLOAT32, lanes, "sum")
    small = _int_op(b, "sub", bits_of(b, total), 0x3F000000)
    result = select(b, compare(b, "<", size, constant(0x38800000, DType.UINT32, lanes)), small, normal)
    result = select(b, compare(b, ">=", size, constant(0x477FF000, DType.UINT32, lanes)), _same(0x7C00, bits), result)
    nan = compare(b, ">", size, constant(0x7F800000, DType.UINT32, lanes))
    result = _int_op(b, "or", select(b, nan, _same(0x7E00, bits), result), sign)
    raw = b.raw(f"trunc {result.typed} to {vector_type('i16', lanes)}", "raw")
    return b.raw(f"bitcast {vector_type('i16', lanes)} {raw} to {half}", "half")


def _same(number: int, value: Value) -> Value:
    """A constant with type and lanes of `value`."""
    return constant(number, value.dtype, value.lanes)
