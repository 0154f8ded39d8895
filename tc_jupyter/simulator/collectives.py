"""Instruction -> function for what the lanes of a warp do together: shuffles, votes, matrix fragments.

Lane `4*g + q` of a warp holds row g and columns around q of a fragment; the layouts are those of the PTX ISA, and one formula
covers all element sizes, because a register always holds 32 bits of consecutive k.

Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "ldmatrix", "mma.sync" (fragment tables).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tc_jupyter.simulator import arithmetic as am
from tc_jupyter.simulator.access import Checked, Operation, space_of
from tc_jupyter.simulator.arithmetic import BOOL, F16, F32, F64, I8, I32, I64, INTEGERS, U8, U16, U32, U64, Array
from tc_jupyter.simulator.memory import Region
from tc_jupyter.simulator.ptx import (
    SIZES,
    Address,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    SimulationError,
    Vector,
)
from tc_jupyter.simulator.registers import Lanes
from tc_jupyter.simulator.state import State

WARP = 32


def _select(machine: State, lanes: Lanes) -> Lanes | None:
    return None if lanes.size == machine.lanes else lanes


def _report(machine: State, instruction: Instruction, number: int, message: str, lanes: Lanes) -> None:
    machine.findings.add(
        "divergent-collective", message, number, instruction.line, int(lanes[0]), None, int(lanes.size)
    )


# --- shuffles and votes


def build_shuffle(machine: State, instruction: Instruction, number: int) -> Operation:
    """`shfl.sync`."""
    mode = instruction.parts[2]
    operands = instruction.operands
    first, second = (operands[0].first, operands[0].second) if isinstance(operands[0], Pair) else (operands[0], None)
    registers = machine.registers
    write = registers.target(first, U32)
    write_predicate = registers.target(second, BOOL) if second is not None else None
    value = registers.reader(operands[1], U32)
    b, c = registers.reader(operands[2], U32), registers.reader(operands[3], U32)

    def shuffle(sel: Lanes | None, lanes: Lanes) -> None:
        some = _select(machine, lanes)
        lane = lanes & 31
        shift = (b(some) & np.uint32(31)).astype(I64)
        control = c(some).astype(I64)
        clamp, segment = control & 31, control >> 8 & 31
        last = (lane & segment) | (clamp & ~segment)
        if mode == "up":
            origin = lane - shift
            inside = origin >= last
        elif mode == "down":
            origin = lane + shift
            inside = origin <= last
        elif mode == "bfly":
            origin = lane ^ shift
            inside = origin <= last
        else:
            origin = (lane & segment) | (shift & ~segment)
            inside = origin <= last
        origin = np.where(inside, origin, lane) + (lanes - lane)
        if lanes.size != machine.lanes:
            active = np.zeros(machine.lanes, BOOL)
            active[lanes] = True
            wrong = np.flatnonzero(~active[origin])
            if wrong.size:
                _report(
                    machine,
                    instruction,
                    number,
                    f"this thread reads lane {int(origin[wrong[0]]) & 31} of its warp, which does not take part in the shuffle",
                    lanes[wrong],
                )
        write(value(None)[origin], some)
        if write_predicate is not None:
            write_predicate(inside, some)

    return shuffle


def warp_bits(machine: State, lanes: Lanes, chosen: Array) -> Array:
    """Return one uint32 per warp with the bits of the lanes for which `chosen` is true."""
    bits = np.zeros(machine.lanes, BOOL)
    bits[lanes[chosen]] = True
    return np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little").view(U32).reshape(-1)


def build_vote(machine: State, instruction: Instruction, number: int) -> Operation:
    """`vote.sync` and `activemask`."""
    registers = machine.registers
    operands = instruction.operands
    if instruction.parts[0] == "activemask":
        write_mask = registers.target(operands[0], U32)

        def mask(sel: Lanes | None, lanes: Lanes) -> None:
            bits = warp_bits(machine, lanes, np.ones(lanes.size, BOOL))
            write_mask(bits[lanes >> 5], _select(machine, lanes))

        return mask
    mode = instruction.parts[2]
    read = registers.reader(operands[1], BOOL)
    write = registers.target(operands[0], U32 if mode == "ballot" else BOOL)

    def vote(sel: Lanes | None, lanes: Lanes) -> None:
        some = _select(machine, lanes)
        predicate = read(some)
        yes = warp_bits(machine, lanes, predicate)[lanes >> 5]
        if mode == "ballot":
            write(yes, some)
            return
        here = warp_bits(machine, lanes, np.ones(lanes.size, BOOL))[lanes >> 5]
        result = yes == here if mode == "all" else yes != 0 if mode == "any" else (yes == here) | (yes == 0)
        write(result, some)

    return vote


def build_match(machine: State, instruction: Instruction, number: int) -> Operation:
    """`match.sync`."""
    registers = machine.registers
    operands = instruction.operands
    first, second = (operands[0].first, operands[0].second) if isinstance(operands[0], Pair) else (operands[0], None)
    dtype = U64 if instruction.parts[-1] == "b64" else U32
    write = registers.target(first, U32)
    write_predicate = registers.target(second, BOOL) if second is not None else None
    read = registers.reader(operands[1], dtype)
    every = "all" in instruction.parts

    def match(sel: Lanes | None, lanes: Lanes) -> None:
        some = _select(machine, lanes)
        values = np.zeros(machine.lanes, dtype)
        values[lanes] = read(some)
        active = np.zeros(machine.lanes, BOOL)
        active[lanes] = True
        table, here = values.reshape(-1, WARP), active.reshape(-1, WARP)
        equal = (table[:, :, None] == table[:, None, :]) & here[:, None, :]
        bits = np.packbits(equal, axis=2, bitorder="little").view(U32).reshape(-1)[lanes]
        if every:
            full = warp_bits(machine, lanes, np.ones(lanes.size, BOOL))[lanes >> 5]
            same = bits == full
            bits = np.where(same, full, np.uint32(0)).astype(U32)
            if write_predicate is not None:
                write_predicate(same, some)
        write(bits, some)

    return match


def build_reduction(machine: State, instruction: Instruction, number: int) -> Operation:
    """`redux.sync`: a reduction over the lanes of a warp that take part."""
    registers = machine.registers
    type = instruction.parts[-1]
    name = instruction.parts[2]
    dtype = INTEGERS.get(type)
    functions = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    if dtype is None or name not in functions:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    write = registers.target(instruction.operands[0], dtype)
    read = registers.reader(instruction.operands[1], dtype)
    function = functions[name]

    def reduce(sel: Lanes | None, lanes: Lanes) -> None:
        some = _select(machine, lanes)
        starts = np.flatnonzero(np.concatenate((np.ones(1, BOOL), (lanes[1:] >> 5) != (lanes[:-1] >> 5))))
        totals = function.reduceat(read(some), starts, dtype=dtype)
        lengths = np.diff(np.append(starts, lanes.size))
        write(np.repeat(totals, lengths), some)

    return reduce


def build_elect(machine: State, instruction: Instruction, number: int) -> Operation:
    """`elect.sync`: the lowest lane that takes part is chosen."""
    operands = instruction.operands
    first, second = (operands[0].first, operands[0].second) if isinstance(operands[0], Pair) else (operands[0], None)
    registers = machine.registers
    write = registers.target(first, U32)
    write_predicate = registers.target(second, BOOL) if second is not None else None

    def elect(sel: Lanes | None, lanes: Lanes) -> None:
        some = _select(machine, lanes)
        change = np.concatenate((np.ones(1, BOOL), (lanes[1:] >> 5) != (lanes[:-1] >> 5)))
        leaders = np.repeat(lanes[change], np.diff(np.append(np.flatnonzero(change), lanes.size)))
        write((leaders & 31).astype(U32), some)
        if write_predicate is not None:
            write_predicate(leaders == lanes, some)

    return elect


# --- matrix fragments


def whole_warps(machine: State, instruction: Instruction, number: int, lanes: Lanes) -> tuple[Lanes, bool]:
    """Return all 32 lanes of every warp that takes part; a warp with missing lanes is a finding."""
    if lanes.size == machine.lanes:
        return lanes, True
    warps = np.unique(lanes >> 5)
    if lanes.size == warps.size * WARP:
        return lanes, True
    _report(
        machine,
        instruction,
        number,
        f"`{'.'.join(instruction.parts[:2])}` needs all 32 threads of the warp, but some do not take part",
        lanes,
    )
    return (warps[:, None] * WARP + np.arange(WARP)).reshape(-1), False


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def build_ldmatrix(machine: State, instruction: Instruction, number: int) -> Operation:
    """`ldmatrix` x1, x2, x4, plain and transposed, for 16-bit elements."""
    parts = instruction.parts
    if "m8n8" not in parts or parts[-1] != "b16":
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    items = _items(instruction.operands[0])
    n, transposed = len(items), "trans" in parts
    place = instruction.operands[1]
    assert isinstance(place, Address)
    space = space_of(parts)
    checked = Checked(machine, instruction, number, space, "load", 16)
    address = checked.address(place)
    registers = machine.registers
    writers = [registers.target(item, U32) for item in items]

    def load(sel: Lanes | None, lanes: Lanes) -> None:
        if lanes.size == 0:
            return
        full, complete = whole_warps(machine, instruction, number, lanes)
        reading = full if n == 4 else full.reshape(-1, WARP)[:, : 8 * n].reshape(-1)
        rows = np.zeros((reading.size, 4), U32)

        def fetch(region: Region, flat: Array, inner: Lanes, positions: Array | None) -> None:
            checked.before_read(region, flat, inner)
            rows[slice(None) if positions is None else positions] = region.rows(4, 4)[flat >> 4]

        checked.each(address(reading), reading, fetch)
        warps = full.size // WARP
        if transposed:
            halves = rows.view(U16).reshape(warps, n, 8, 8)
            tiles = np.ascontiguousarray(halves.transpose(1, 0, 3, 2)).view(U32)
        else:
            tiles = np.ascontiguousarray(rows.reshape(warps, n, 8, 4).transpose(1, 0, 2, 3))
        tiles = tiles.reshape(n, full.size)
        some = _select(machine, lanes)
        for position, write in enumerate(writers):
            column = tiles[position]
            write(column if complete else column[np.isin(full, lanes)], some)

    return load


def build_movmatrix(machine: State, instruction: Instruction, number: int) -> Operation:
    """`movmatrix`: transpose an 8x8 fragment of 16-bit elements."""
    registers = machine.registers
    write, read = registers.target(instruction.operands[0], U32), registers.reader(instruction.operands[1], U32)

    def move(sel: Lanes | None, lanes: Lanes) -> None:
        full, complete = whole_warps(machine, instruction, number, lanes)
        halves = np.ascontiguousarray(read(_select(machine, full))).view(U16).reshape(-1, 8, 8)
        turned = np.ascontiguousarray(halves.transpose(0, 2, 1)).view(U32).reshape(-1)
        write(turned if complete else turned[np.isin(full, lanes)], _select(machine, lanes))

    return move


_ELEMENTS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "f16": (2, lambda words: words.view(F16)),
    "bf16": (2, lambda words: am.widen_bf16(words.view(U16))),
    # The tensor cores ignore the low 13 bits of a tf32 operand.
    "tf32": (1, lambda words: (words & np.uint32(0xFFFFE000)).view(F32)),
    "s8": (4, lambda words: words.view(I8)),
    "u8": (4, lambda words: words.view(U8)),
}


def build_mma(machine: State, instruction: Instruction, number: int) -> Operation:
    """`mma.sync` for f16, bf16, tf32, s8, u8 and f64 operands; sums are exact up to one rounding to the result type."""
    parts = instruction.parts
    shape = next((part for part in parts if part.startswith("m") and "n" in part and part[1].isdigit()), "")
    types = [part for part in parts if part in SIZES]
    if len(types) != 4 or parts[:2] != ("mma", "sync") or "row" not in parts or "col" not in parts:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    if types == ["f64"] * 4 and shape == "m8n8k4":
        return _build_mma_f64(machine, instruction, number)
    to, a_type, b_type, c_type = types
    shapes = {"f16": (8, 16), "bf16": (8, 16), "tf32": (4, 8), "s8": (16, 32), "u8": (16, 32)}
    k = int(shape.rpartition("k")[2])
    if not shape.startswith("m16n8k") or a_type not in shapes or k not in shapes[a_type]:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    if b_type not in shapes or _ELEMENTS[b_type][0] != _ELEMENTS[a_type][0]:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    per, view_a = _ELEMENTS[a_type]
    view_b = _ELEMENTS[b_type][1]
    halves = k // (4 * per)
    registers = machine.registers
    d_items, a_items, b_items, c_items = (_items(operand) for operand in instruction.operands[:4])
    if len(a_items) != 2 * halves or len(b_items) != halves:
        raise SimulationError(f"`{instruction.opcode}` has the wrong number of registers", instruction.line)
    read_a = [registers.reader(item, U32) for item in a_items]
    read_b = [registers.reader(item, U32) for item in b_items]
    read_c = [registers.reader(item, U32) for item in c_items]
    writers = [registers.target(item, U32) for item in d_items]
    integer = a_type in ("s8", "u8")
    compute = I32 if integer else F32
    saturating = "satfinite" in parts

    def multiply(sel: Lanes | None, lanes: Lanes) -> None:
        full, complete = whole_warps(machine, instruction, number, lanes)
        some = _select(machine, full)
        warps = full.size // WARP
        words_a = np.empty((full.size, 2 * halves), U32)
        for position, read in enumerate(read_a):
            words_a[:, position] = read(some)
        words_b = np.empty((full.size, halves), U32)
        for position, read in enumerate(read_b):
            words_b[:, position] = read(some)
        # Registers of A: k-half major, row-half minor; of B: k-half. Lane = 4*g + q, element e of a register is k = q*per + e.
        a = view_a(words_a.reshape(-1)).reshape(warps, 8, 4, halves, 2, per).transpose(0, 4, 1, 3, 2, 5)
        b = view_b(words_b.reshape(-1)).reshape(warps, 8, 4, halves, per).transpose(0, 3, 2, 4, 1)
        a = a.astype(F64).reshape(warps, 16, k)
        b = b.astype(F64).reshape(warps, k, 8)
        product = np.matmul(a, b)
        # Rows 8*h + g, columns 2*q + j -> lane (g, q), register 2*h + j.
        fragment = product.reshape(warps, 2, 8, 4, 2).transpose(1, 4, 0, 2, 3).reshape(4, full.size)
        results = _accumulate(fragment, [read(some) for read in read_c], c_type, to, compute, saturating)
        keep = slice(None) if complete else np.isin(full, lanes)
        target = _select(machine, lanes)
        for position, write in enumerate(writers):
            write(np.ascontiguousarray(results[position][keep]), target)

    return multiply


def _accumulate(
    fragment: Array, c: list[Array], c_type: str, to: str, compute: np.dtype[Any], saturating: bool
) -> list[Array]:
    """Add C to the product and pack the result as registers."""
    if compute == I32:
        total = fragment + np.stack([value.view(I32) for value in c]).astype(F64)
        wide = total.astype(I64)
        if saturating:
            wide = np.clip(wide, -(1 << 31), (1 << 31) - 1)
        return list(wide.astype(U64).astype(U32))
    if c_type == "f16":
        pairs = np.stack([value.view(F16).reshape(-1, 2) for value in c]).astype(F64)
        added = fragment + pairs.transpose(0, 2, 1).reshape(4, -1)
    else:
        added = fragment + np.stack([value.view(F32) for value in c]).astype(F64)
    if to == "f32":
        return list(added.astype(F32).view(U32))
    small = np.ascontiguousarray(added.astype(F16).reshape(2, 2, -1).transpose(0, 2, 1))
    return list(small.view(U32).reshape(2, -1))


def _build_mma_f64(machine: State, instruction: Instruction, number: int) -> Operation:
    registers = machine.registers
    d_items, a_items, b_items, c_items = (_items(operand) for operand in instruction.operands[:4])
    read_a, read_b = registers.reader(a_items[0], F64), registers.reader(b_items[0], F64)
    read_c = [registers.reader(item, F64) for item in c_items]
    writers = [registers.target(item, F64) for item in d_items]

    def multiply(sel: Lanes | None, lanes: Lanes) -> None:
        full, complete = whole_warps(machine, instruction, number, lanes)
        some = _select(machine, full)
        a = read_a(some).reshape(-1, 8, 4)
        b = read_b(some).reshape(-1, 8, 4).transpose(0, 2, 1)
        product = np.matmul(a, b).reshape(-1, 8, 4, 2).transpose(3, 0, 1, 2).reshape(2, full.size)
        keep = slice(None) if complete else np.isin(full, lanes)
        for position, write in enumerate(writers):
            write((product[position] + read_c[position](some))[keep], _select(machine, lanes))

    return multiply


def member_mask(machine: State, instruction: Instruction) -> Callable[[Lanes], Array]:
    """Return a function that reads the member mask of a warp-wide instruction; aligned ones need the whole warp."""
    base = instruction.parts[0]
    operands = instruction.operands
    if base in ("mma", "ldmatrix", "movmatrix") or not operands:
        return lambda lanes: np.full(lanes.size, 0xFFFFFFFF, U32)
    last = operands[-1]
    if isinstance(last, Negated) or (isinstance(last, Register) and last.name not in machine.registers.slots):
        raise SimulationError(f"`{instruction.opcode}` has no member mask", instruction.line)
    read = machine.registers.reader(last, U32)
    return lambda lanes: read(_select(machine, lanes))


BUILDERS: dict[str, Callable[[State, Instruction, int], Operation]] = {
    "shfl": build_shuffle,
    "vote": build_vote,
    "activemask": build_vote,
    "match": build_match,
    "redux": build_reduction,
    "elect": build_elect,
    "ldmatrix": build_ldmatrix,
    "movmatrix": build_movmatrix,
    "mma": build_mma,
}
