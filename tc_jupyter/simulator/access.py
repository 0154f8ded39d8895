"""Instruction -> function on memory: loads, stores, atomics and asynchronous copies, every access checked.

An operation gets `sel` (None when every live lane is active) and `lanes` (the indices of the active lanes). A wrong access is a
finding and then does nothing: a load gives 0, a store is dropped.

Source: PTX ISA, "Data movement: ld, st, cp.async", "Parallel synchronization: atom, red".
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy as copied
from functools import partial
from typing import Any

import numpy as np

from tc_jupyter.simulator import arithmetic as am
from tc_jupyter.simulator.arithmetic import F16, F32, F64, I64, INTEGERS, U8, U16, U32, U64, Array
from tc_jupyter.simulator.memory import Copy, Region, Space, as_signed
from tc_jupyter.simulator.ptx import (
    SIZES,
    Address,
    Immediate,
    Instruction,
    Register,
    SimulationError,
    Symbol,
    Vector,
    element_type,
)
from tc_jupyter.simulator.registers import Lanes, Writer
from tc_jupyter.simulator.state import LOCAL_WINDOW, SHARED_WINDOW, State
from tc_jupyter.simulator.traffic import AccessSite
from tc_jupyter.simulator.traffic import count as count_traffic

Operation = Callable[[Lanes | None, Lanes], None]

_SPACES = ("global", "shared", "local", "param", "const")


def space_of(parts: tuple[str, ...]) -> str:
    """Return the state space that an opcode names, "generic" without one."""
    for part in parts[1:]:
        name = part.partition("::")[0]
        if name in _SPACES:
            return name
    return "generic"


class Checked:
    """The checks of one memory instruction: finds the region, counts the traffic, reports what is wrong."""

    def __init__(
        self, machine: State, instruction: Instruction, number: int, space: str, kind: str, total: int
    ) -> None:
        self.machine, self.line, self.number, self.total = machine, instruction.line, number, total
        self.opcode, self.kind = instruction.opcode, kind
        # Polling a global flag through `volatile` is customary; in shared memory `volatile` orders nothing between threads.
        strong = ("relaxed", "acquire", "release", "acq_rel", "mmio", *(() if space == "shared" else ("volatile",)))
        self.atomic = kind == "atomic" or any(part in strong for part in instruction.parts)
        self.generic = space == "generic"
        self.constant = "nc" in instruction.parts
        self.space: Space = machine.spaces["global" if space in ("generic", "const", "param") else space]
        shown = "global" if space in ("generic", "const", "param") else space
        self.site = AccessSite(instruction.line, instruction.opcode, shown, kind, total, instruction.text_line)
        self.counted = True
        machine.sites.append(self.site)

    def of_element(self, size: int) -> Checked:
        """The checks of one element of the access, which is counted as a whole."""
        found = copied(self)
        found.total, found.counted = size, False
        return found

    def report(self, kind: str, message: str, lanes: Lanes, array: str | None) -> None:
        """Add a finding for `lanes` (not empty)."""
        self.machine.findings.add(kind, message, self.number, self.line, int(lanes[0]), array, int(lanes.size))

    def address(self, operand: Address) -> Callable[[Lanes], Array]:
        """Return a function that computes int64 addresses of lanes."""
        machine = self.machine
        if not isinstance(operand.base, Register):
            base = operand.offset + (machine.symbol_address(operand.base) if isinstance(operand.base, Symbol) else 0)
            return lambda lanes: np.full(lanes.size, base, I64)
        registers = machine.registers
        size = registers.sizes[registers.slot(operand.base)]
        read = registers.reader(operand.base, U64 if size == 8 else U32)
        offset, total_lanes = np.int64(operand.offset), machine.lanes

        def compute(lanes: Lanes) -> Array:
            address = as_signed(read(None if lanes.size == total_lanes else lanes))
            return address + offset if offset else address

        return compute

    def by_space(self, address: Array, lanes: Lanes) -> list[tuple[Space, Array, Array]]:
        """Split generic addresses: space, positions, addresses inside the space."""
        window = address >> 57
        spaces = self.machine.spaces
        result: list[tuple[Space, Array, Array]] = []
        for value in np.unique(window):
            positions = np.flatnonzero(window == value)
            name = {1: "local", 2: "shared"}.get(int(value), "global")
            base = {"local": LOCAL_WINDOW, "shared": SHARED_WINDOW}.get(name, 0)
            result.append((spaces[name], positions, address[positions] - base))
        return result

    def each(self, address: Array, lanes: Lanes, action: Callable[[Region, Array, Lanes, Array | None], None]) -> None:
        """Call `action(region, byte positions, lanes, positions)` for the good accesses, report the others.

        `positions` is None when all accesses are good and lie in one region.
        """
        machine, total = self.machine, self.total
        machine.accesses += lanes.size
        if self.generic and address.size and (address >= LOCAL_WINDOW).any():
            for space, positions, inner in self.by_space(address, lanes):
                self.slow(space, inner, lanes[positions], positions, action)
            return
        if self.counted:
            count_traffic(self.site, address, lanes)
        region = self.space.regions.get(int(address[0]) >> self.space.shift)
        if region is not None and total <= region.nbytes:
            offset = address - region.base
            if not (offset.view(U64) > region.nbytes - total).any() and (
                total == 1 or not (offset & (total - 1)).any()
            ):
                action(region, self.flat(region, offset, lanes), lanes, None)
                return
        self.slow(self.space, address, lanes, None, action)

    def flat(self, region: Region, offset: Array, lanes: Lanes) -> Array:
        """Offsets in the array -> positions in the region's bytes, which hold one copy per block or lane."""
        if region.stride == 0:
            return offset
        if region.space == "shared":
            return offset + self.machine.block_slot[lanes] * region.stride
        return offset + lanes * region.stride

    def slow(
        self,
        space: Space,
        address: Array,
        lanes: Lanes,
        outer: Array | None,
        action: Callable[[Region, Array, Lanes, Array | None], None],
    ) -> None:
        """The path with reports."""
        for region, good, offsets, outside, odd in space.pieces(address, self.total):
            if outside.size:
                self.report_outside(space, region, int(address[outside[0]]), lanes[outside])
            if odd.size and region is not None:
                self.report(
                    "misaligned",
                    f"a {self.total}-byte {self.kind} of `{region.name}` at byte offset "
                    f"{int(address[odd[0]]) - region.base} is not aligned to {self.total} bytes",
                    lanes[odd],
                    region.name,
                )
            if good.size and region is not None:
                positions = good if outer is None else outer[good]
                action(region, self.flat(region, offsets, lanes[good]), lanes[good], positions)

    def report_outside(self, space: Space, region: Region | None, address: int, lanes: Lanes) -> None:
        """Report accesses outside of every array, or outside of the array they are nearest to."""
        if region is None:
            self.report(
                "out-of-bounds",
                f"a {self.total}-byte {self.kind} at {space.name} address {int(address):#x} is in no array",
                lanes,
                None,
            )
            return
        self.report(
            "out-of-bounds",
            f"a {self.total}-byte {self.kind} at byte offset {int(address) - region.base} of `{region.name}`, "
            f"which has {region.nbytes} bytes",
            lanes,
            region.name,
        )

    def before_read(self, region: Region, flat: Array, lanes: Lanes) -> None:
        """Check initialisation, waits and races of a read."""
        if region.touched is not None:
            region.mark(region.touched, region.touched_views, flat, self.total)
        if region.init is not None:
            bad = region.initialised(flat, self.total)
            if bad.size:
                self.uninitialised(region, lanes[bad])
        bad = region.undefined.read(flat, self.total)
        if bad.size:
            self.uninitialised(region, lanes[bad])
        if region.shadow is None:
            return
        granules, width = region.granules(flat, self.total)
        if self.constant:
            self.stale(region, granules, lanes, width)
        flying, races, never = region.shadow.read(granules, lanes, width, self.atomic)
        if never.size:
            self.uninitialised(region, lanes[never // width])
        if flying.size:
            self.report(
                "missing-wait",
                f"`{region.name}` is read before the asynchronous copy into it has been waited for",
                lanes[flying // width],
                region.name,
            )
        if races.size:
            self.race(region, granules[races], lanes[races // width], "reads what", "wrote")

    def stale(self, region: Region, granules: Array, lanes: Lanes, width: int) -> None:
        """Report loads through the read-only path (`const __restrict__`) of what this launch has written."""
        assert region.shadow is not None
        written = np.flatnonzero(region.shadow.write_time[granules])
        if written.size:
            self.report(
                "race",
                f"`{region.name}` is read as constant (`__restrict__`), but this launch writes to it",
                lanes[written // width],
                region.name,
            )

    def uninitialised(self, region: Region, lanes: Lanes) -> None:
        """Report reads of bytes that nobody has written."""
        self.report(
            "uninitialised",
            f"a {self.kind} of `{region.name}` ({region.space} memory) reads bytes that were never written",
            lanes,
            region.name,
        )

    def undefined(self, region: Region, flat: Array, lanes: Lanes, size: int, masks: Array) -> None:
        """Remember which of the stored elements were never given a value."""
        rows = np.flatnonzero(masks.any(axis=1))
        if rows.size:
            message = "`st` uses a variable (a register) that was never given a value"
            first = int(lanes[rows[0]])
            store = self.machine.findings.finding("uninitialised", message, self.number, self.line, first, region.name)
            region.undefined.mark(flat[rows], size, masks[rows], region.data.size, store)

    def race(
        self, region: Region, granules: Array, lanes: Lanes, now: str, before: str, others: Array | None = None
    ) -> None:
        """Report a race with the thread that last wrote (or with `others`)."""
        assert region.shadow is not None
        machine = self.machine
        other = others if others is not None else region.shadow.write_uid[granules]
        mine = machine.clock.uid[lanes]
        for far in (False, True):
            chosen = np.flatnonzero((other // machine.padded != mine // machine.padded) == far)
            if not chosen.size:
                continue
            uid = int(other[chosen[0]])
            where = machine.describe(uid)
            ending = "and nothing orders the two blocks" if far else "and no barrier lies between the two accesses"
            self.report(
                "race-between-blocks" if far else "race",
                f"this thread {now} {where} {before} in `{region.name}`, {ending}",
                lanes[chosen],
                region.name,
            )

    def before_write(self, region: Region, flat: Array, lanes: Lanes, values: Array | None) -> bool:
        """Check a write; return False when it must not happen. `values` as rows, to forgive writes of equal values."""
        if not region.writable:
            self.report("read-only", f"a {self.kind} writes to the read-only `{region.name}`", lanes, region.name)
            return False
        if region.touched is not None:
            region.mark(region.touched, region.touched_views, flat, self.total)
        shadow = region.shadow
        if shadow is not None:
            granules, width = region.granules(flat, self.total)
            flying, writes, reads = shadow.write(granules, lanes, width, self.atomic)
            if flying.size:
                self.report(
                    "race",
                    f"`{region.name}` is written while an asynchronous copy into it is in flight",
                    lanes[flying // width],
                    region.name,
                )
            if writes.size and values is not None:
                which = writes // width
                writes = writes[self.differs(region, flat[which], values[which])]
            if writes.size:
                self.race(region, granules[writes], lanes[writes // width], "overwrites what", "wrote")
            if reads.size:
                which = granules[reads]
                low, mine = shadow.read_low[which], self.machine.clock.uid[lanes[reads // width]]
                others = np.where(low == mine, shadow.read_high[which], low)
                self.race(region, which, lanes[reads // width], "overwrites what", "read", others)
        return True

    def differs(self, region: Region, flat: Array, values: Array) -> Array:
        """Tell where memory does not hold `values`."""
        element = values.dtype.itemsize
        rows = region.rows(element, self.total // element)
        different = rows[flat >> (self.total.bit_length() - 1)] != values
        return different.any(axis=1) if different.ndim == 2 else different

    def after_write(self, region: Region, flat: Array, lanes: Lanes, values: Array | None) -> None:
        """Record a write that has happened, and report lanes that wrote different values to one place."""
        if region.init is not None:
            region.mark(region.init, region.init_views, flat, self.total)
        region.undefined.clear(flat, self.total)
        if not self.atomic:
            self.machine.unfence(region, lanes)
        shadow = region.shadow
        if shadow is None:
            return
        granules, width = region.granules(flat, self.total)
        shadow.record_write(granules, lanes, width, self.atomic)
        if values is None:
            return
        double = shadow.overwritten(granules, lanes, width)
        if double.size:
            which = double // width
            lost = self.differs(region, flat[which], values[which])
            if lost.any():
                self.race(region, granules[double[lost]], lanes[which[lost]], "writes where", "writes another value")


def _vector_length(parts: tuple[str, ...]) -> int:
    return next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)


def build_load(machine: State, instruction: Instruction, number: int) -> Operation:
    """`ld`, `ldu`."""
    type, count = element_type(instruction), _vector_length(instruction.parts)
    size = SIZES[type]
    destination, place = instruction.operands[0], instruction.operands[1]
    assert isinstance(place, Address)
    items = destination.items if isinstance(destination, Vector) else (destination,)
    dtype = INTEGERS[type] if type in INTEGERS else np.dtype(f"u{size}")
    writers = [machine.registers.target(item, dtype) for item in items]
    space = space_of(instruction.parts)
    if space == "param" and isinstance(place.base, Symbol) and place.base.name in machine.program.buffers:
        return _load_buffer(machine, place, size, writers, dtype)
    if space == "param" and isinstance(place.base, Symbol):
        return _load_parameter(machine, place, size, writers, dtype)
    checked = Checked(machine, instruction, number, space, "load", size * count)
    address = checked.address(place)
    shift = (size * count).bit_length() - 1

    acquires = "acquire" in instruction.parts

    def load(sel: Lanes | None, lanes: Lanes) -> None:
        if lanes.size == 0:
            return
        found: list[Array] = []

        def fetch(region: Region, flat: Array, inner: Lanes, positions: Array | None) -> None:
            if acquires:
                machine.synchronise(region, flat, inner, instruction.parts)
            checked.before_read(region, flat, inner)
            rows = region.rows(size, count)
            if positions is None:
                found.append(rows.take(flat >> shift, axis=0))
                return
            if not found:
                found.append(np.zeros((lanes.size, count) if count > 1 else lanes.size, rows.dtype))
            found[0][positions] = rows[flat >> shift]

        checked.each(address(lanes), lanes, fetch)
        values = found[0] if found else np.zeros((lanes.size, count) if count > 1 else lanes.size, f"u{size}")
        store_rows(machine, values, writers, dtype, lanes)

    used = _used_pieces(instruction.used, size, count)
    if used == [(size * k, size) for k in range(count)]:
        return load

    def load_used(sel: Lanes | None, lanes: Lanes) -> None:
        """An aligned access stays where the memory of its first byte is: bytes that nobody uses may lie behind the array."""
        place = address(lanes)
        if not lanes.size or (place & (size * count - 1)).any():
            load(sel, lanes)
            return
        count_traffic(checked.site, place, lanes)
        values = np.zeros((lanes.size, count), f"u{size}")
        for start, width in used:
            piece, column = checked.of_element(width), values.view(f"u{width}")[:, start // width]
            piece.each(place + start, lanes, partial(_fetch_piece, piece, column))
        store_rows(machine, values, writers, dtype, lanes)

    return load_used


def _fetch_piece(
    piece: Checked, column: Array, region: Region, flat: Array, lanes: Lanes, positions: Array | None
) -> None:
    """Read a piece of what is loaded into a column of it."""
    piece.before_read(region, flat, lanes)
    column[slice(None) if positions is None else positions] = region.rows(piece.total, 1)[
        flat >> (piece.total.bit_length() - 1)
    ]


def _used_pieces(mask: int, size: int, count: int) -> list[tuple[int, int]]:
    """The bytes of a load that are used: offset and size of pieces that are each aligned and no larger than an element.

    Worked example: of two elements of 4 bytes with the mask 0b00111111 these are `(0, 4)` and `(4, 2)`.
    """
    found, start = list[tuple[int, int]](), 0
    while start < size * count:
        width = size
        while width > 1 and (start % width or ~mask >> start & ((1 << width) - 1)):
            width //= 2
        if mask >> start & 1:
            found.append((start, width))
        start += width
    return found


def _load_parameter(
    machine: State, place: Address, size: int, writers: list[Writer], dtype: np.dtype[Any]
) -> Operation:
    """`ld.param` of a kernel argument: the same number for every thread."""
    assert isinstance(place.base, Symbol)
    address = machine.symbol_address(place.base) + place.offset
    region = machine.spaces["global"].find(address)
    assert region is not None
    start = address - region.base
    values = [
        np.full(machine.lanes, region.data[begin : begin + size].copy().view(dtype)[0], dtype)
        for begin in range(start, start + size * len(writers), size)
    ]

    def load(sel: Lanes | None, lanes: Lanes) -> None:
        for value, write in zip(values, writers, strict=True):
            write(value.copy() if sel is None else value[: sel.size], sel)

    return load


def store_rows(machine: State, values: Array, writers: list[Writer], dtype: np.dtype[Any], lanes: Lanes) -> None:
    """Write loaded rows to registers, one column per register."""
    sel = None if lanes.size == machine.lanes else lanes
    if len(writers) == 1:
        writers[0](values.view(dtype), sel)
        return
    columns = np.ascontiguousarray(values.T)
    for position, write in enumerate(writers):
        write(columns[position].view(dtype), sel)


def _load_buffer(machine: State, place: Address, size: int, writers: list[Writer], dtype: np.dtype[Any]) -> Operation:
    """`ld.param` of an argument or result of an inlined call."""
    assert isinstance(place.base, Symbol)
    name = place.base.name
    start = place.offset + place.base.offset

    def load(sel: Lanes | None, lanes: Lanes) -> None:
        data = machine.buffers[name]
        for position, write in enumerate(writers):
            begin = start + size * position
            piece = data[:, begin : begin + size].copy().view(f"u{size}").reshape(-1).view(dtype)
            write(piece if sel is None else piece[sel], sel)

    return load


def build_store(machine: State, instruction: Instruction, number: int) -> Operation:
    """`st`."""
    type, count = element_type(instruction), _vector_length(instruction.parts)
    size = SIZES[type]
    place, value = instruction.operands
    assert isinstance(place, Address)
    items = value.items if isinstance(value, Vector) else (value,)
    dtype = np.dtype(f"u{size}")
    readers = [machine.registers.reader(item, dtype) for item in items]
    space = space_of(instruction.parts)
    if space == "param":
        return _store_buffer(machine, place, size, readers)
    checked = Checked(machine, instruction, number, space, "store", size * count)
    address = checked.address(place)
    shift = (size * count).bit_length() - 1

    releases = "release" in instruction.parts

    def store(sel: Lanes | None, lanes: Lanes) -> None:
        if lanes.size == 0:
            return
        inner_sel = None if lanes.size == machine.lanes else lanes
        if count == 1:
            values = readers[0](inner_sel)
        else:
            values = np.empty((lanes.size, count), dtype)
            for position, read in enumerate(readers):
                values[:, position] = read(inner_sel)

        def put(region: Region, flat: Array, inner: Lanes, positions: Array | None) -> None:
            chosen = values if positions is None else values[positions]
            if checked.before_write(region, flat, inner, chosen):
                region.rows(size, count)[flat >> shift] = chosen
                checked.after_write(region, flat, inner, chosen)
                masks = machine.never_given
                if masks is not None:
                    checked.undefined(region, flat, inner, size, masks if positions is None else masks[positions])
                if releases:
                    machine.synchronise(region, flat, inner, instruction.parts)

        checked.each(address(lanes), lanes, put)

    return store


def _store_buffer(
    machine: State, place: Address, size: int, readers: list[Callable[[Lanes | None], Array]]
) -> Operation:
    """`st.param` of an argument or result of an inlined call."""
    if not isinstance(place.base, Symbol) or place.base.name not in machine.program.buffers:
        raise SimulationError("`st.param` to something that is not an argument of a call")
    name = place.base.name
    start = place.offset + place.base.offset

    def store(sel: Lanes | None, lanes: Lanes) -> None:
        data = machine.buffers[name]
        for position, read in enumerate(readers):
            values = np.ascontiguousarray(read(sel)).view(U8).reshape(-1, size)
            begin = start + size * position
            data[slice(None) if sel is None else sel, begin : begin + size] = values

    return store


# --- atomics

_FLOAT_VIEW = {"f16": F16, "f16x2": F16, "f32": F32, "f64": F64}


def _combine(name: str, type: str, line: int | None) -> Callable[[Array, Array, Array | None], Array]:
    """Return (old, operand, second operand) -> new, on raw unsigned elements."""
    size = SIZES[type]
    raw = np.dtype(f"u{size}")
    dtype = _FLOAT_VIEW.get(type) or INTEGERS.get(type) or raw
    if name == "add" and type in ("bf16", "bf16x2"):
        return lambda old, x, _: am.round_bf16(am.widen_bf16(old.view(U16)) + am.widen_bf16(x.view(U16))).view(raw)
    simple: dict[str, Callable[[Array, Array], Array]] = {
        "add": np.add,
        "min": np.fmin if type in _FLOAT_VIEW else np.minimum,
        "max": np.fmax if type in _FLOAT_VIEW else np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda old, x: x,
        "inc": lambda old, x: np.where(old >= x, 0, old + 1).astype(old.dtype),
        "dec": lambda old, x: np.where((old == 0) | (old > x), x, old - 1).astype(old.dtype),
    }
    if name == "cas":
        return lambda old, x, y: np.where(old == x, y, old) if y is not None else old
    if name not in simple:
        raise SimulationError(f"unknown atomic operation `{name}`", line)
    function = simple[name]
    return lambda old, x, _: function(old.view(dtype), x.view(dtype)).view(raw)


def build_atomic(machine: State, instruction: Instruction, number: int, wanted: bool) -> Operation:
    """`atom` and `red`; `wanted` tells whether the old value is used."""
    type = element_type(instruction)
    size = SIZES[type]
    name = next(
        (
            part
            for part in instruction.parts[1:]
            if part in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
        ),
        "",
    )
    if _vector_length(instruction.parts) > 1:
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    returns = instruction.parts[0] == "atom"
    place = instruction.operands[1 if returns else 0]
    assert isinstance(place, Address)
    raw = np.dtype(f"u{size}")
    values = [machine.registers.reader(operand, raw) for operand in instruction.operands[2 if returns else 1 :]]
    write = machine.registers.target(instruction.operands[0], raw) if returns else None
    combine = _combine(name, type, instruction.line)
    checked = Checked(machine, instruction, number, space_of(instruction.parts), "atomic", size)
    address = checked.address(place)
    shift = size.bit_length() - 1

    def atomic(sel: Lanes | None, lanes: Lanes) -> None:
        if lanes.size == 0:
            return
        inner_sel = None if lanes.size == machine.lanes else lanes
        x = values[0](inner_sel)
        y = values[1](inner_sel) if len(values) > 1 else None
        old = np.zeros(lanes.size, raw)

        def update(region: Region, flat: Array, inner: Lanes, positions: Array | None) -> None:
            checked.before_read(region, flat, inner)
            if not checked.before_write(region, flat, inner, None):
                return
            here = slice(None) if positions is None else positions
            data = region.rows(size, 1)
            index = flat >> shift
            old[here] = serialise(data, index, x[here], None if y is None else y[here], combine)
            checked.after_write(region, flat, inner, None)
            machine.synchronise(region, flat, inner, instruction.parts)

        checked.each(address(lanes), lanes, update)
        if write is not None and wanted:
            write(old, inner_sel)

    return atomic


def serialise(
    data: Array, index: Array, x: Array, y: Array | None, combine: Callable[[Array, Array, Array | None], Array]
) -> Array:
    """Apply an atomic in the order of the lanes; return the old values. Lanes with one address take turns."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.concatenate((np.ones(1, np.bool_), ordered[1:] != ordered[:-1]))
    starts = np.flatnonzero(first)
    turn = np.arange(index.size, dtype=np.int64) - np.repeat(starts, np.diff(np.append(starts, index.size)))
    old = np.empty(index.size, data.dtype)
    if turn.size and int(turn.max()) == 0:
        old[:] = data[index]
        data[index] = combine(old, x, y)
        return old
    for round in range(int(turn.max()) + 1):
        lanes = order[turn == round] if round else order[first]
        place = index[lanes]
        old[lanes] = data[place]
        data[place] = combine(old[lanes], x[lanes], None if y is None else y[lanes])
    return old


# --- asynchronous copies


def build_copy(machine: State, instruction: Instruction, number: int) -> Operation:
    """`cp.async` and its commit and wait."""
    parts = instruction.parts
    if "commit_group" in parts:

        def commit(sel: Lanes | None, lanes: Lanes) -> None:
            machine.groups[lanes] += 1

        return commit
    if "wait_all" in parts or "wait_group" in parts:
        keep = instruction.operands[0] if instruction.operands else Immediate("int", 0)
        assert isinstance(keep, Immediate)
        return _build_wait(machine, keep.value, "wait_all" in parts)
    if len(parts) < 3 or parts[2] not in ("ca", "cg"):
        raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
    return _build_cp_async(machine, instruction, number)


def _build_wait(machine: State, keep: int, everything: bool) -> Operation:
    def wait(sel: Lanes | None, lanes: Lanes) -> None:
        if not machine.copies:
            return
        waiting = np.full(machine.lanes, -1, I64)
        # Groups below this number are complete; -1 for threads that do not wait here.
        waiting[lanes] = np.iinfo(np.int64).max if everything else machine.groups[lanes] - keep
        left: list[tuple[Copy, int]] = []
        for copy, total in machine.copies:
            done = copy.groups < waiting[copy.lanes]
            if done.all():
                copy.land(None, total)
                continue
            if done.any():
                copy.land(np.flatnonzero(done), total)
                copy.keep(np.flatnonzero(~done))
            left.append((copy, total))
        machine.copies[:] = left

    return wait


def _build_cp_async(machine: State, instruction: Instruction, number: int) -> Operation:
    operands = instruction.operands
    to, origin, size = operands[0], operands[1], operands[2]
    assert isinstance(to, Address)
    assert isinstance(origin, Address)
    assert isinstance(size, Immediate)
    total = size.value
    if total not in (4, 8, 16):
        raise SimulationError(f"`{instruction.opcode}` of {total} bytes", instruction.line)
    source_size = None
    if len(operands) > 3:
        last = operands[3]
        ignored = isinstance(last, Register) and machine.registers.sizes[machine.registers.slot(last)] == 1
        if ignored:
            predicate = machine.registers.reader(last, am.BOOL)
            source_size = lambda sel: np.where(predicate(sel), np.uint32(0), np.uint32(total))  # noqa: E731
        else:
            source_size = machine.registers.reader(last, U32)
    reading = Checked(machine, instruction, number, "global", "copy", total)
    writing = Checked(machine, instruction, number, "shared", "copy", total)
    from_address, to_address = reading.address(origin), writing.address(to)
    words = total // 4
    shift = total.bit_length() - 1

    def unfinished(region: Region, lanes: Lanes) -> None:
        message = (
            f"an asynchronous copy into `{region.name}` is in flight when the kernel ends: nobody has waited for it"
        )
        writing.report("missing-wait", message, lanes, region.name)

    def copy(sel: Lanes | None, lanes: Lanes) -> None:
        if lanes.size == 0:
            return
        data = np.zeros((lanes.size, words) if words > 1 else lanes.size, U32)
        given = None if source_size is None else source_size(None if lanes.size == machine.lanes else lanes)
        _fetch(reading, from_address(lanes), lanes, given, data, shift)

        def start(region: Region, flat: Array, inner: Lanes, positions: Array | None) -> None:
            chosen = data if positions is None else data[positions]
            writing.before_write(region, flat, inner, None)
            assert region.shadow is not None
            granules, width = region.granules(flat, total)
            region.shadow.record_write(granules, inner, width, False, flying=True)
            double = region.shadow.overwritten(granules, inner, width)
            if double.size:
                writing.race(region, granules[double], inner[double // width], "copies to where", "copies")
            machine.copies.append((Copy(region, flat, chosen, inner, machine.groups[inner], unfinished), total))

        writing.each(to_address(lanes), lanes, start)

    return copy


def _fetch(reading: Checked, address: Array, lanes: Lanes, given: Array | None, data: Array, shift: int) -> None:
    """Read the source of a `cp.async` into `data`; lanes with a smaller source size keep zeros behind it."""
    total, words = reading.total, reading.total // 4

    def fetch(region: Region, flat: Array, inner: Lanes, positions: Array | None) -> None:
        reading.before_read(region, flat, inner)
        data[slice(None) if positions is None else positions] = region.rows(4, words)[flat >> shift]

    if given is None or (given == total).all():
        reading.each(address, lanes, fetch)
        return
    if (given > total).any():
        bad = np.flatnonzero(given > total)
        reading.report("out-of-bounds", f"`cp.async` of {total} bytes has a larger source size", lanes[bad], None)
    whole = np.flatnonzero(given == total)

    def fetch_some(region: Region, flat: Array, inner: Lanes, positions: Array | None) -> None:
        reading.before_read(region, flat, inner)
        data[whole if positions is None else whole[positions]] = region.rows(4, words)[flat >> shift]

    if whole.size:
        reading.each(address[whole], lanes[whole], fetch_some)
    partial = np.flatnonzero((given > 0) & (given < total))
    bytes_of = data.view(U8).reshape(lanes.size, total)
    for lane in partial:
        _fetch_bytes(reading, int(address[lane]), lanes[lane : lane + 1], int(given[lane]), bytes_of[lane])


def _fetch_bytes(reading: Checked, address: int, lane: Lanes, size: int, into: Array) -> None:
    """The first bytes of one lane's source."""
    region = reading.space.find(address)
    offset = address - region.base if region is not None else 0
    if region is None or offset < 0 or offset + size > region.nbytes:
        reading.report_outside(reading.space, region, address, lane)
        return
    if region.init is not None and not region.init[offset : offset + size].all():
        reading.uninitialised(region, lane)
    reading.machine.accesses += 1
    into[:size] = region.data[offset : offset + size]
