"""Instruction -> function on the register file, for everything that touches neither memory nor other lanes.

`build(instruction, registers)` returns `operation(sel)`, or None when the opcode is not an arithmetic one.

Source: PTX ISA, sections "Integer arithmetic", "Floating point", "Comparison and selection", "Logic and shift",
"Data movement and conversion".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tc_jupyter.simulator import arithmetic as am
from tc_jupyter.simulator.arithmetic import BOOL, F16, F32, F64, I32, I64, INTEGERS, U8, U16, U32, U64, Array
from tc_jupyter.simulator.ptx import (
    SIZES,
    Immediate,
    Instruction,
    Operand,
    Pair,
    Register,
    SimulationError,
    Vector,
    element_type,
)
from tc_jupyter.simulator.registers import Lanes, Reader, RegisterFile, Writer

Operation = Callable[[Lanes | None], None]
Builder = Callable[[Instruction, RegisterFile], Operation | None]

FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"})
ROUNDINGS = ("rn", "rz", "rm", "rp")


def _mode(parts: tuple[str, ...]) -> str:
    return next((part for part in parts if part in ROUNDINGS), "")


def source(registers: RegisterFile, operand: Operand, type: str, ftz: bool = False) -> Reader:
    """Return a reader that gives 16-bit floats as float32, pairs of them as arrays of twice the length."""
    match type:
        case "f16" | "f16x2":
            read = registers.reader(operand, F16, type == "f16x2")
            return lambda sel: read(sel).astype(F32)
        case "bf16" | "bf16x2":
            read = registers.reader(operand, U16, type == "bf16x2")
            return lambda sel: am.widen_bf16(read(sel))
        case "f32" | "tf32":
            plain = registers.reader(operand, F32)
            return (lambda sel: am.flush(plain(sel))) if ftz else plain
        case "f64":
            return registers.reader(operand, F64)
        case "pred":
            return registers.reader(operand, BOOL)
        case _:
            return registers.reader(operand, INTEGERS[type])


def target(registers: RegisterFile, operand: Operand, type: str, ftz: bool = False, sat: bool = False) -> Writer:
    """Return a writer that rounds float32 to 16-bit floats, and applies `.ftz` and `.sat`."""
    match type:
        case "f16" | "f16x2":
            write = registers.target(operand, U16 if type == "f16" else U32)
            view = U16 if type == "f16" else U32
            if sat:
                return lambda value, sel: write(am.saturate(value).astype(F16).view(view), sel)
            return lambda value, sel: write(value.astype(F16).view(view), sel)
        case "bf16" | "bf16x2":
            write = registers.target(operand, U16 if type == "bf16" else U32)
            view = U16 if type == "bf16" else U32
            return lambda value, sel: write(am.round_bf16(value.astype(F32)).view(view), sel)
        case "f32" | "tf32":
            write = registers.target(operand, F32)
            if ftz or sat:

                def finish(value: Array, sel: Lanes | None) -> None:
                    value = am.flush(value) if ftz else value
                    write(am.saturate(value) if sat else value, sel)

                return finish
            return write
        case "f64":
            return registers.target(operand, F64)
        case "pred":
            return registers.target(operand, BOOL)
        case _:
            return registers.target(operand, INTEGERS[type])


def _apply(write: Writer, function: Callable[..., Array], readers: list[Reader]) -> Operation:
    """Join readers, function and writer; the common numbers of operands avoid a loop."""
    if len(readers) == 1:
        (a,) = readers
        return lambda sel: write(function(a(sel)), sel)
    if len(readers) == 2:
        a, b = readers
        return lambda sel: write(function(a(sel), b(sel)), sel)
    if len(readers) == 3:
        a, b, c = readers
        return lambda sel: write(function(a(sel), b(sel), c(sel)), sel)
    return lambda sel: write(function(*[read(sel) for read in readers]), sel)


def _typed(
    instruction: Instruction, registers: RegisterFile, function: Callable[..., Array], type: str, count: int
) -> Operation:
    ftz, sat = "ftz" in instruction.parts, "sat" in instruction.parts
    operands = instruction.operands
    if len(operands) != count + 1:
        raise SimulationError(f"`{instruction.opcode}` takes {count + 1} operands", instruction.line)
    write = target(registers, operands[0], type, ftz, sat and type in FLOATS)
    return _apply(write, function, [source(registers, operand, type, ftz) for operand in operands[1:]])


def _wrapping(type: str) -> str:
    """Integers are added and multiplied modulo 2**n, which the unsigned types do without warnings."""
    return "u" + type[1:] if type[0] in "sb" and type in INTEGERS else type


def _saturating(function: Callable[..., Array]) -> Callable[..., Array]:
    """`.sat` of add, sub and mad.hi on s32."""

    def clamp(*values: Array) -> Array:
        wide = function(*[value.astype(I64) for value in values])
        return np.clip(wide, -(1 << 31), (1 << 31) - 1).astype(I32)

    return clamp


def _add(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, mode = element_type(instruction), _mode(instruction.parts)
    subtract = instruction.parts[0] == "sub"
    if "cc" in instruction.parts or instruction.parts[0] in ("addc", "subc"):
        return _carry(instruction, registers, type)
    if type in FLOATS:
        if type in ("f16", "f16x2", "bf16", "bf16x2"):
            return _typed(instruction, registers, np.subtract if subtract else np.add, type, 2)
        if mode in ("", "rn"):
            return _typed(instruction, registers, np.subtract if subtract else np.add, type, 2)
        if subtract:
            return _typed(instruction, registers, lambda a, b: am.add(a, -b, mode), type, 2)
        return _typed(instruction, registers, lambda a, b: am.add(a, b, mode), type, 2)
    if "sat" in instruction.parts:
        return _typed(instruction, registers, _saturating(np.subtract if subtract else np.add), type, 2)
    if type in ("u16x2", "s16x2"):
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    return _typed(instruction, registers, np.subtract if subtract else np.add, _wrapping(type), 2)


def _carry(instruction: Instruction, registers: RegisterFile, type: str) -> Operation:
    """`add.cc`, `addc`, `sub.cc`, `subc`: the carry lives in one more register."""
    parts, unsigned = instruction.parts, _wrapping(type)
    subtract, takes, gives = parts[0].startswith("sub"), parts[0].endswith("c"), "cc" in parts
    carry = registers.declare("%cc", 1)
    one = INTEGERS[unsigned].type(1)
    write = target(registers, instruction.operands[0], unsigned)
    write_carry = registers.writer(carry, BOOL)
    read_carry = registers.reader(Register("%cc"), BOOL)
    a, b = (source(registers, operand, unsigned) for operand in instruction.operands[1:3])

    def run(sel: Lanes | None) -> None:
        x, y = a(sel), b(sel)
        carried = read_carry(sel) if takes else np.zeros(x.shape, BOOL)
        if subtract:
            result = x - y - np.where(carried, one, one - one)
            out = (x < y) | ((x == y) & carried)
        else:
            result = x + y + np.where(carried, one, one - one)
            out = (result < x) | ((result == x) & carried)
        write(result, sel)
        if gives:
            write_carry(out, sel)

    return run


def _product(a: Array, b: Array, wide: np.dtype[Any]) -> Array:
    result = a.astype(wide)
    result *= b
    return result


_WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}


def _mul(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, mode = element_type(instruction), _mode(instruction.parts)
    if type in FLOATS:
        if type in ("f32", "f64") and mode not in ("", "rn"):
            return _typed(instruction, registers, lambda a, b: am.multiply(a, b, mode), type, 2)
        return _typed(instruction, registers, np.multiply, type, 2)
    if "wide" in instruction.parts:
        wide = INTEGERS[_WIDER[type]]
        write = target(registers, instruction.operands[0], _WIDER[type])
        readers = [source(registers, operand, type) for operand in instruction.operands[1:3]]
        return _apply(write, lambda a, b: _product(a, b, wide), readers)
    if "hi" in instruction.parts:
        return _typed(instruction, registers, am.mul_high, type, 2)
    return _typed(instruction, registers, np.multiply, _wrapping(type), 2)


def _mad(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, parts = element_type(instruction), instruction.parts
    if type in FLOATS:
        return _fma(instruction, registers)
    if "cc" in parts or parts[0] == "madc":
        return _mad_carry(instruction, registers, type)
    if "wide" in parts:
        wide = _WIDER[type]
        write = target(registers, instruction.operands[0], wide)
        readers = [source(registers, operand, type) for operand in instruction.operands[1:3]]
        readers.append(source(registers, instruction.operands[3], wide))
        return _apply(write, lambda a, b, c: _product(a, b, INTEGERS[wide]) + c, readers)
    if "hi" in parts:
        if "sat" in parts:
            return _typed(
                instruction,
                registers,
                lambda a, b, c: _saturating(np.add)(am.mul_high(a, b), c),
                type,
                3,
            )
        return _typed(instruction, registers, lambda a, b, c: am.mul_high(a, b) + c, type, 3)
    return _typed(instruction, registers, lambda a, b, c: a * b + c, _wrapping(type), 3)


def _mad_carry(instruction: Instruction, registers: RegisterFile, type: str) -> Operation:
    """`mad.lo.cc` and its kin: the product first, then an addition with carry."""
    parts = instruction.parts
    registers.declare("%product", SIZES[type])
    kind = "hi" if "hi" in parts else "lo"
    product = Instruction(
        f"mul.{kind}.{type}",
        ("mul", kind, type),
        (Register("%product"), *instruction.operands[1:3]),
        None,
        instruction.line,
    )
    opcode = "addc" if parts[0] == "madc" else "add"
    suffix = ("cc", type) if "cc" in parts else (type,)
    addition = Instruction(
        ".".join((opcode, *suffix)),
        (opcode, *suffix),
        (instruction.operands[0], Register("%product"), instruction.operands[3]),
        None,
        instruction.line,
    )
    first = _mul(product, registers)
    second = _carry(addition, registers, type)

    def run(sel: Lanes | None) -> None:
        first(sel)
        second(sel)

    return run


def _fma(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, mode = element_type(instruction), _mode(instruction.parts)
    relu = "relu" in instruction.parts
    if type in ("f16", "f16x2", "bf16", "bf16x2"):

        def half(a: Array, b: Array, c: Array) -> Array:
            result = am.fused(a, b, c, "rn")
            return np.maximum(result, np.float32(0)) if relu else result

        return _typed(instruction, registers, half, type, 3)
    return _typed(instruction, registers, lambda a, b, c: am.fused(a, b, c, mode), type, 3)


def _div(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, mode = element_type(instruction), _mode(instruction.parts)
    if type in FLOATS:
        return _typed(instruction, registers, lambda a, b: am.divide(a, b, mode), type, 2)
    return _typed(instruction, registers, am.divide_int, type, 2)


def _extreme(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, parts = element_type(instruction), instruction.parts
    smaller = parts[0] == "min"
    if type in FLOATS:
        nan = "NaN" in parts
        pick = am.float_min if smaller else am.float_max
        count = len(instruction.operands) - 1
        if count == 3:
            return _typed(instruction, registers, lambda a, b, c: pick(pick(a, b, nan), c, nan), type, 3)
        return _typed(instruction, registers, lambda a, b: pick(a, b, nan), type, 2)
    if "relu" in parts:
        zero = INTEGERS[type].type(0)
        base = np.minimum if smaller else np.maximum
        return _typed(instruction, registers, lambda a, b: np.maximum(base(a, b), zero), type, 2)
    return _typed(instruction, registers, np.minimum if smaller else np.maximum, type, 2)


def _sign(instruction: Instruction, registers: RegisterFile) -> Operation:
    type = element_type(instruction)
    function = np.negative if instruction.parts[0] == "neg" else np.abs
    if type not in FLOATS and instruction.parts[0] == "neg":
        type = _wrapping(type)
    return _typed(instruction, registers, function, type, 1)


def _in_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: function(a.astype(F64)).astype(a.dtype)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
}


def _special(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, mode, name = element_type(instruction), _mode(instruction.parts), instruction.parts[0]
    if name == "rcp":
        return _typed(instruction, registers, lambda a: am.divide(np.full_like(a, 1), a, mode), type, 1)
    if name == "sqrt":
        return _typed(instruction, registers, lambda a: am.square_root(a, mode), type, 1)
    return _typed(instruction, registers, _in_double(_UNARY[name]), type, 1)


def _logic(instruction: Instruction, registers: RegisterFile) -> Operation:
    function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[instruction.parts[0]]
    return _typed(instruction, registers, function, element_type(instruction), 2)


def _not(instruction: Instruction, registers: RegisterFile) -> Operation:
    type = element_type(instruction)
    if instruction.parts[0] == "cnot":
        return _typed(instruction, registers, lambda a: (a == 0).astype(a.dtype), type, 1)
    return _typed(instruction, registers, np.invert, type, 1)


def _shift(instruction: Instruction, registers: RegisterFile) -> Operation:
    type = element_type(instruction)
    left = instruction.parts[0] == "shl"
    type = _wrapping(type) if left else type
    write = target(registers, instruction.operands[0], type)
    value = source(registers, instruction.operands[1], type)
    amount = instruction.operands[2]
    dtype = INTEGERS[type]
    if isinstance(amount, Immediate) and 0 <= amount.value < dtype.itemsize * 8:
        count = dtype.type(amount.value)
        if left:
            return lambda sel: write(value(sel) << count, sel)
        return lambda sel: write(value(sel) >> count, sel)
    return _apply(write, am.shift_left if left else am.shift_right, [value, source(registers, amount, "u32")])


def _bits(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, name = element_type(instruction), instruction.parts[0]
    operands = instruction.operands
    if name in ("popc", "clz", "bfind"):
        write = target(registers, operands[0], "u32")
        functions: dict[str, Callable[[Array], Array]] = {
            "popc": am.population,
            "clz": am.leading_zeros,
            "bfind": lambda a: am.find_highest(a, "shiftamt" in instruction.parts),
        }
        read = source(registers, operands[1], type if name == "bfind" else _wrapping(type))
        return _apply(write, functions[name], [read])
    if name == "brev":
        return _typed(instruction, registers, am.reverse_bits, _wrapping(type), 1)
    positions = [source(registers, operand, "u32") for operand in operands[-2:]]
    if name == "bfe":
        write = target(registers, operands[0], type)
        return _apply(write, am.extract_field, [source(registers, operands[1], type), *positions])
    write = target(registers, operands[0], _wrapping(type))
    values = [source(registers, operand, _wrapping(type)) for operand in operands[1:3]]
    return _apply(write, am.insert_field, [*values, *positions])


def _mask(instruction: Instruction, registers: RegisterFile) -> Operation:
    """`bmsk` and `szext`."""
    clamp = "clamp" in instruction.parts
    if instruction.parts[0] == "bmsk":

        def mask(a: Array, b: Array) -> Array:
            p, n = (a, b) if clamp else (a & np.uint32(31), b & np.uint32(31))
            ones = np.full(a.shape, 0xFFFFFFFF, U32)
            return am.shift_left(~am.shift_left(ones, n), p)

        return _typed(instruction, registers, mask, "u32", 2)
    type = element_type(instruction)
    dtype = INTEGERS[type]

    def extend(a: Array, b: Array) -> Array:
        n = b.view(U32) if clamp else b.view(U32) & np.uint32(31)
        return am.extract_field(a, np.zeros(a.shape, U32), np.minimum(n, np.uint32(32))).view(dtype)

    return _typed(instruction, registers, extend, type, 2)


def _prmt(instruction: Instruction, registers: RegisterFile) -> Operation:
    mode = instruction.parts[2] if len(instruction.parts) > 2 else ""
    return _typed(instruction, registers, lambda a, b, c: am.permute(a, b, c, mode), "u32", 3)


def _lop3(instruction: Instruction, registers: RegisterFile) -> Operation:
    table = instruction.operands[4]
    if not isinstance(table, Immediate):
        raise SimulationError("the table of `lop3` is not a constant", instruction.line)
    write = target(registers, instruction.operands[0], "u32")
    readers = [source(registers, operand, "u32") for operand in instruction.operands[1:4]]
    return _apply(write, lambda a, b, c: am.lookup3(a, b, c, table.value & 255), readers)


def _shf(instruction: Instruction, registers: RegisterFile) -> Operation:
    left, clamp = "l" in instruction.parts, "clamp" in instruction.parts
    return _typed(instruction, registers, lambda a, b, c: am.funnel(a, b, c, left, clamp), "u32", 3)


def _dot(instruction: Instruction, registers: RegisterFile) -> Operation:
    types = [part for part in instruction.parts if part in ("s32", "u32")]
    signed_a, signed_b = types[0] == "s32", types[1] == "s32"
    write = target(registers, instruction.operands[0], "u32")
    readers = [source(registers, operand, "u32") for operand in instruction.operands[1:4]]
    if instruction.parts[0] == "dp4a":
        return _apply(write, lambda a, b, c: am.dot4(a, b, c, signed_a, signed_b), readers)
    high = "hi" in instruction.parts
    return _apply(write, lambda a, b, c: am.dot2(a, b, c, signed_a, signed_b, high), readers)


def _sad(instruction: Instruction, registers: RegisterFile) -> Operation:
    return _typed(
        instruction, registers, lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c, element_type(instruction), 3
    )


def _mul24(instruction: Instruction, registers: RegisterFile) -> Operation:
    """`mul24` and `mad24`: products of the low 24 bits."""
    type = element_type(instruction)
    high = "hi" in instruction.parts

    def low24(a: Array) -> Array:
        wide = a.astype(I64) & 0xFFFFFF
        return np.where(wide & 0x800000, wide - (1 << 24), wide) if type == "s32" else wide

    def product(a: Array, b: Array, *c: Array) -> Array:
        result = low24(a) * low24(b)
        result = (result >> 16 if high else result).astype(I64).view(U64).astype(U32).view(a.dtype)
        return result + c[0] if c else result

    return _typed(instruction, registers, product, type, len(instruction.operands) - 1)


def _setp(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, parts, operands = element_type(instruction), instruction.parts, instruction.operands
    compare = am.comparison(parts[1], type in FLOATS)
    if compare is None:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    combine = next((am.COMBINE[part] for part in parts[2:] if part in am.COMBINE), None)
    first, second = (operands[0].first, operands[0].second) if isinstance(operands[0], Pair) else (operands[0], None)
    write = registers.target(first, BOOL)
    ftz = "ftz" in parts
    a, b = (source(registers, operand, type, ftz) for operand in operands[1:3])
    if type in ("f16x2", "bf16x2"):
        if second is None:
            raise SimulationError(f"`{instruction.opcode}` needs two destinations", instruction.line)
        write_high = registers.target(second, BOOL)
        extra = registers.reader(operands[3], BOOL) if combine else None

        def halves(sel: Lanes | None) -> None:
            result = compare(a(sel), b(sel))
            low, high = result[0::2].copy(), result[1::2].copy()
            if combine is not None and extra is not None:
                low, high = combine(low, extra(sel)), combine(high, extra(sel))
            write(low, sel)
            write_high(high, sel)

        return halves
    if combine is None and second is None:
        return lambda sel: write(compare(a(sel), b(sel)), sel)
    write_second = registers.target(second, BOOL) if second is not None else None
    third = registers.reader(operands[3], BOOL) if combine is not None else None

    def general(sel: Lanes | None) -> None:
        result = compare(a(sel), b(sel))
        opposite = ~result
        if combine is not None and third is not None:
            other = third(sel)
            result, opposite = combine(result, other), combine(opposite, other)
        write(result, sel)
        if write_second is not None:
            write_second(opposite, sel)

    return general


def _set(instruction: Instruction, registers: RegisterFile) -> Operation:
    parts, operands = instruction.parts, instruction.operands
    types = [part for part in parts[1:] if part in SIZES]
    to, type = types[0], types[1]
    compare = am.comparison(parts[1], type in FLOATS)
    if compare is None:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    combine = next((am.COMBINE[part] for part in parts[2:] if part in am.COMBINE), None)
    ftz = "ftz" in parts
    a, b = (source(registers, operand, type, ftz) for operand in operands[1:3])
    third = registers.reader(operands[3], BOOL) if combine is not None else None
    write = target(registers, operands[0], to)

    def run(sel: Lanes | None) -> None:
        result = compare(a(sel), b(sel))
        if combine is not None and third is not None:
            result = combine(result, third(sel))
        if to in FLOATS:
            write(result.astype(F64 if to == "f64" else F32), sel)
        else:
            write(-result.astype(INTEGERS[_wrapping(to)]), sel)

    return run


def _raw(type: str) -> str:
    """The untyped type of the same size: selections and copies keep bits, also those of a NaN."""
    return "pred" if type == "pred" else f"b{8 * SIZES[type]}"


def _selp(instruction: Instruction, registers: RegisterFile) -> Operation:
    raw = _raw(element_type(instruction))
    operands = instruction.operands
    write = target(registers, operands[0], raw)
    a, b = (source(registers, operand, raw) for operand in operands[1:3])
    p = registers.reader(operands[3], BOOL)
    return lambda sel: write(np.where(p(sel), a(sel), b(sel)), sel)


def _slct(instruction: Instruction, registers: RegisterFile) -> Operation:
    types = [part for part in instruction.parts[1:] if part in SIZES]
    raw = _raw(types[0])
    operands = instruction.operands
    write = target(registers, operands[0], raw)
    a, b = (source(registers, operand, raw) for operand in operands[1:3])
    c = source(registers, operands[3], types[1])
    return lambda sel: write(np.where(c(sel) >= 0, a(sel), b(sel)), sel)


def _testp(instruction: Instruction, registers: RegisterFile) -> Operation:
    name = instruction.parts[1]
    write = registers.target(instruction.operands[0], BOOL)
    return _apply(
        write,
        lambda a: am.float_property(name, a),
        [source(registers, instruction.operands[1], element_type(instruction))],
    )


def _copysign(instruction: Instruction, registers: RegisterFile) -> Operation:
    return _typed(instruction, registers, lambda a, b: np.copysign(b, a), element_type(instruction), 2)


def _mov(instruction: Instruction, registers: RegisterFile) -> Operation:
    type, operands = element_type(instruction), instruction.operands
    to, value = operands[0], operands[1]
    if isinstance(to, Vector):
        return _unpack(instruction, registers, to, value, SIZES[type])
    if isinstance(value, Vector):
        return _pack(instruction, registers, to, value, SIZES[type])
    raw = _raw(type)
    write, read = target(registers, to, raw), source(registers, value, raw)
    return lambda sel: write(read(sel).copy() if sel is None else read(sel), sel)


def _unpack(instruction: Instruction, registers: RegisterFile, to: Vector, value: Operand, size: int) -> Operation:
    count = len(to.items)
    piece, whole = np.dtype(f"u{size // count}"), np.dtype(f"u{size}")
    read = registers.reader(value, whole)
    writers = [registers.target(item, piece) for item in to.items]

    def run(sel: Lanes | None) -> None:
        parts = read(sel).view(piece).reshape(-1, count)
        for position, write in enumerate(writers):
            write(parts[:, position].copy(), sel)

    return run


def _pack(instruction: Instruction, registers: RegisterFile, to: Operand, value: Vector, size: int) -> Operation:
    count = len(value.items)
    piece, whole = np.dtype(f"u{size // count}"), np.dtype(f"u{size}")
    write = registers.target(to, whole)
    readers = [registers.reader(item, piece) for item in value.items]

    def run(sel: Lanes | None) -> None:
        first = readers[0](sel)
        joined = np.empty((first.size, count), piece)
        joined[:, 0] = first
        for position in range(1, count):
            joined[:, position] = readers[position](sel)
        write(joined.view(whole).reshape(-1), sel)

    return run


def _cvt(instruction: Instruction, registers: RegisterFile) -> Operation | None:
    parts, operands = instruction.parts, instruction.operands
    if "pack" in parts:
        return _cvt_pack(instruction, registers)
    types = [part for part in parts[1:] if part in SIZES]
    if len(types) != 2:
        return None
    to, origin = types
    ftz, sat, relu = "ftz" in parts, "sat" in parts, "relu" in parts
    mode = next((part for part in parts[1:] if part in (*ROUNDINGS, "rna", "rni", "rzi", "rmi", "rpi")), "")
    if to in ("f16x2", "bf16x2") and len(operands) == 3:
        return _cvt_pair(instruction, registers, to, mode, relu)
    if to in ("f16x2", "bf16x2") or origin in ("f16x2", "bf16x2"):
        return None
    if to == "tf32":
        write = registers.target(operands[0], F32)
        kind = mode or "rna"
        return _apply(
            write, lambda a: _relu(am.round_tf32(a, kind), relu), [source(registers, operands[1], "f32", ftz)]
        )
    read = source(registers, operands[1], origin, ftz)
    if origin in FLOATS and to in FLOATS:
        return _float_to_float(registers, operands[0], read, origin, to, mode, ftz, sat, relu)
    if origin in FLOATS:
        dtype = INTEGERS[to]
        write = registers.target(operands[0], dtype)
        wide = origin == "f64"
        return _apply(write, lambda a: am.float_to_int(a, dtype, mode or "rzi", wide), [read])
    if to in FLOATS:
        return _int_to_float(registers, operands[0], read, to, mode, sat)
    dtype = INTEGERS[to]
    write = registers.target(operands[0], dtype)
    if sat:
        return _apply(write, lambda a: am.clamp_int(a, dtype), [read])
    return _apply(write, lambda a: a.astype(dtype), [read])


def _relu(value: Array, relu: bool) -> Array:
    return np.where(value > 0, value, np.where(np.isnan(value), value, 0)).astype(value.dtype) if relu else value


def _cvt_pair(instruction: Instruction, registers: RegisterFile, to: str, mode: str, relu: bool) -> Operation:
    """`cvt.rn.f16x2.f32 d, a, b`: a becomes the upper half."""
    write = registers.target(instruction.operands[0], U32)
    high, low = (source(registers, operand, "f32") for operand in instruction.operands[1:3])

    def half(value: Array) -> Array:
        value = _relu(value, relu)
        if to == "bf16x2":
            return am.round_bf16(value, mode or "rn")
        return am.narrow(value.astype(F64), 0.0, F16, mode).view(U16)

    return lambda sel: write(half(low(sel)).astype(U32) | (half(high(sel)).astype(U32) << np.uint32(16)), sel)


def _float_to_float(
    registers: RegisterFile,
    to_operand: Operand,
    read: Reader,
    origin: str,
    to: str,
    mode: str,
    ftz: bool,
    sat: bool,
    relu: bool,
) -> Operation:
    if mode in ("rni", "rzi", "rmi", "rpi"):
        return _apply(target(registers, to_operand, to, ftz, sat), lambda a: am.round_to_integral(a, mode), [read])
    if to == "bf16":
        write = registers.target(to_operand, U16)
        return _apply(write, lambda a: am.round_bf16(_relu(a.astype(F32), relu), mode or "rn"), [read])
    if to == "f16":
        write = registers.target(to_operand, U16)

        def shrink(a: Array) -> Array:
            value = am.narrow(_relu(a, relu).astype(F64), 0.0, F16, mode)
            return (am.saturate(value) if sat else value).view(U16)

        return _apply(write, shrink, [read])
    write = target(registers, to_operand, to, ftz, sat)
    if to == "f64":
        return _apply(write, lambda a: a.astype(F64), [read])
    if origin == "f64":
        return _apply(write, lambda a: am.narrow(a, 0.0, F32, mode), [read])
    return _apply(write, lambda a: a.astype(F32), [read])


def _int_to_float(
    registers: RegisterFile, to_operand: Operand, read: Reader, to: str, mode: str, sat: bool
) -> Operation:
    if to in ("f32", "f64"):
        dtype = F64 if to == "f64" else F32
        write = target(registers, to_operand, to, False, sat)
        return _apply(write, lambda a: am.int_to_float(a, dtype, mode), [read])
    write = registers.target(to_operand, U16)
    if to == "bf16":
        return _apply(write, lambda a: am.round_bf16(a.astype(F32), mode or "rn"), [read])
    return _apply(write, lambda a: am.narrow(a.astype(F64), 0.0, F16, mode).view(U16), [read])


def _cvt_pack(instruction: Instruction, registers: RegisterFile) -> Operation:
    """`cvt.pack.sat`: clamp two integers and pack them below the low half of a third."""
    types = [part for part in instruction.parts[1:] if part in SIZES]
    small = INTEGERS[types[0]]
    bits = 8 * small.itemsize
    unsigned = np.dtype(f"u{small.itemsize}")
    write = registers.target(instruction.operands[0], U32)
    readers = [source(registers, operand, "s32") for operand in instruction.operands[1:3]]
    if len(instruction.operands) > 3:
        readers.append(source(registers, instruction.operands[3], "s32"))

    def pack(a: Array, b: Array, *c: Array) -> Array:
        high, low = (am.clamp_int(value, small).view(unsigned).astype(U32) for value in (a, b))
        result = low | (high << np.uint32(bits))
        return result | (c[0].view(U32) << np.uint32(2 * bits)) if c else result

    return _apply(write, pack, readers)


def _video(instruction: Instruction, registers: RegisterFile) -> Operation:
    """`vadd2`, `vabsdiff4` and the like: the same operation on two or four parts of 32 bits."""
    name, count = instruction.parts[0][1:-1], int(instruction.parts[0][-1])
    signed = [part == "s32" for part in instruction.parts if part in ("s32", "u32")]
    if len(signed) != 3 or len(instruction.operands) != 4:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    to, left, right = (np.dtype(f"{'i' if sign else 'u'}{4 // count}") for sign in signed)
    unsigned = np.dtype(f"u{4 // count}")
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "add": np.add,
        "sub": np.subtract,
        "avrg": lambda x, y: (x + y + (1 if to.kind == "u" else np.where(x + y >= 0, 1, 0))) >> 1,
        "absdiff": lambda x, y: np.abs(x - y),
        "min": np.minimum,
        "max": np.maximum,
    }
    if name == "set":
        compare = am.comparison(instruction.parts[-1], False) or am.comparison(instruction.parts[3], False)
        if compare is None:
            raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
        functions["set"] = lambda x, y: compare(x, y).astype(I64)
    function = functions[name]
    sat, total = "sat" in instruction.parts, "add" in instruction.parts

    def run(a: Array, b: Array, c: Array) -> Array:
        wide = function(a.view(left).astype(I64), b.view(right).astype(I64))
        if total:
            return c + wide.reshape(-1, count).sum(axis=1).astype(U64).astype(U32)
        if sat:
            wide = np.clip(wide, np.iinfo(to).min, np.iinfo(to).max)
        return wide.astype(unsigned).view(U32)

    return _typed(instruction, registers, run, "u32", 3)


def _nothing(instruction: Instruction, registers: RegisterFile) -> Operation:
    return lambda sel: None


_BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(("add", "sub", "addc", "subc"), _add),
    "mul": _mul,
    **dict.fromkeys(("mad", "madc"), _mad),
    "fma": _fma,
    "div": _div,
    "rem": lambda instruction, registers: _typed(
        instruction, registers, am.remainder_int, element_type(instruction), 2
    ),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("neg", "abs"), _sign),
    **dict.fromkeys(("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"), _special),
    **dict.fromkeys(("and", "or", "xor"), _logic),
    **dict.fromkeys(("not", "cnot"), _not),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz", "bfind", "brev", "bfe", "bfi"), _bits),
    **dict.fromkeys(("bmsk", "szext"), _mask),
    "prmt": _prmt,
    "lop3": _lop3,
    "shf": _shf,
    **dict.fromkeys(("dp4a", "dp2a"), _dot),
    "sad": _sad,
    **dict.fromkeys(("mul24", "mad24"), _mul24),
    "setp": _setp,
    "set": _set,
    "selp": _selp,
    "slct": _slct,
    **{
        f"v{name}{count}": _video for name in ("add", "sub", "avrg", "absdiff", "min", "max", "set") for count in (2, 4)
    },
    "testp": _testp,
    "copysign": _copysign,
    "mov": _mov,
    "cvt": _cvt,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "applypriority", "discard", "nanosleep", "brkpt", "pmevent", "createpolicy"), _nothing
    ),
}

__all__ = ["FLOATS", "U8", "Operation", "build", "source", "target"]


def build(instruction: Instruction, registers: RegisterFile) -> Operation | None:
    """Return the operation of an arithmetic instruction, or None when the opcode is not one."""
    builder = _BUILDERS.get(instruction.parts[0])
    return None if builder is None else builder(instruction, registers)
