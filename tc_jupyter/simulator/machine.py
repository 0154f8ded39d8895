"""Executes a kernel: one NumPy lane per thread, a group of blocks at a time, always the lanes at the lowest position first.

Lanes that part at a branch meet again at the lowest position they share, as they do on a device. A barrier or a warp-wide
instruction holds lanes back until all that must come have come; when nobody else can run, those that wait are let go and the
divergence is a finding.

Every instruction is turned once into a Python function that works on arrays; running a basic block is a loop over these.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tc_jupyter.simulator import alu
from tc_jupyter.simulator.access import (
    Operation,
    build_atomic,
    build_copy,
    build_load,
    build_store,
)
from tc_jupyter.simulator.arithmetic import BOOL, I32, I64, U8, U32, U64, Array
from tc_jupyter.simulator.collectives import BUILDERS, member_mask, warp_bits
from tc_jupyter.simulator.memory import (
    EPOCH_SHIFT,
    GLOBAL_SHIFT,
    LOCAL_SHIFT,
    DeviceMemory,
    GlobalArray,
    RaceShadow,
    Region,
    Undefined,
)
from tc_jupyter.simulator.program import (
    EXIT,
    effects,
    flatten,
    index_arithmetic,
    is_barrier,
    label_position,
    maybe_undefined,
    split,
    table_of,
    unsigned_widening,
)
from tc_jupyter.simulator.ptx import (
    SIZES,
    Address,
    Immediate,
    Instruction,
    PtxKernel,
    PtxModule,
    Register,
    SimulationError,
    Symbol,
    Variable,
    Vector,
)
from tc_jupyter.simulator.registers import Lanes
from tc_jupyter.simulator.state import LOCAL_WINDOW, SHARED_WINDOW, State, Triple


@dataclass(slots=True)
class Block:
    """A basic block ready to run: `end(lanes)` gives the next block, or a list of (block, lanes)."""

    number: int
    wait: Callable[[Lanes], Lanes] | None
    operations: list[Operation]
    end: Callable[[Lanes], int | list[tuple[int, Lanes]]]
    opcodes: tuple[str, ...]
    lanes: int = 0


@dataclass(slots=True)
class Limits:
    """How much work one launch may be: memory accesses by single threads, and executed array operations."""

    accesses: float
    operations: float = 20_000_000

    @classmethod
    def none(cls) -> Limits:
        """However much it is."""
        return cls(math.inf, math.inf)


@dataclass(slots=True)
class Launch:
    """What to run."""

    module: PtxModule
    kernel: PtxKernel
    grid: Triple
    block: Triple
    shared_bytes: int
    arguments: Sequence[GlobalArray | Any]
    limits: Limits


@dataclass(slots=True)
class _Parked:
    """Lanes that wait at the start of a block."""

    lanes: dict[int, Lanes] = field(default_factory=dict[int, Lanes])


class Machine(State):
    """The state of one launch. Public attributes are what the builders of instructions use."""

    def __init__(self, launch: Launch, memory: DeviceMemory) -> None:
        self.launch, self.memory = launch, memory
        super().__init__(flatten(launch.module, launch.kernel), launch.grid, launch.block)
        self.spans = split(self.program)
        self.findings.text_lines = {
            position: instruction.text_line
            for position, instruction in enumerate(self.program.instructions)
            if instruction.text_line is not None
        }
        self.parked = _Parked()
        self.live = np.zeros(self.lanes, BOOL)
        self.live_count = self.started = 0
        self.across: list[RaceShadow] = []
        self.overflow: dict[int, Array] = {}
        self.undefined: dict[int, Array] = {}
        self.granules = self._granules()
        self._declare()
        self._bind()
        self._layout()
        self.blocks = self._decode()

    # --- set up

    def _granules(self) -> dict[str, int]:
        """The narrowest access of each space: the width of a shadow granule."""
        smallest = {"global": 16, "shared": 16, "local": 16}
        for instruction in self.program.instructions:
            base, parts = instruction.parts[0], instruction.parts
            if base == "cp" and len(instruction.operands) > 2 and isinstance(instruction.operands[2], Immediate):
                width = instruction.operands[2].value
                names = ["global", "shared"]
            elif base == "ldmatrix":
                width, names = 16, ["shared"]
            elif base in ("ld", "ldu", "st", "atom", "red"):
                type = next((part for part in reversed(parts) if part in SIZES), "b8")
                vector = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
                width = SIZES[type] * vector
                named = [name for name in smallest if name in {part.partition("::")[0] for part in parts}]
                names = named or (["global"] if {"const", "param"} & set(parts) else list(smallest))
            else:
                continue
            for name in names:
                smallest[name] = min(smallest[name], width)
        return smallest

    def _declare(self) -> None:
        registers = self.registers
        for name, type in self.program.registers.items():
            registers.declare(name, SIZES[type])
        for name in _SPECIAL_32:
            registers.declare(name, 4)
        for name in _SPECIAL_64:
            registers.declare(name, 8)
        registers.declare("%cc", 1)

    def _bind(self) -> None:
        """Place the arguments, the parameter block and the variables of the module in global memory."""
        kernel, arguments = self.launch.kernel, self.launch.arguments
        if len(arguments) != len(kernel.parameters):
            raise SimulationError(
                f"the kernel `{kernel.name}` takes {len(kernel.parameters)} arguments, {len(arguments)} were given"
            )
        offset = 0
        pieces: dict[str, tuple[int, bytes]] = {}
        for parameter, argument in zip(kernel.parameters, arguments, strict=True):
            offset = -(-offset // parameter.align) * parameter.align
            pieces[parameter.name] = (offset, self._argument(argument, parameter.size, parameter.type, parameter.name))
            offset += parameter.size
        block = bytearray(offset)
        for start, data in pieces.values():
            block[start : start + len(data)] = data
        digest = hashlib.sha256(self.launch.module.text.encode()).hexdigest()
        for variable in self.launch.module.variables:
            if variable.space in ("global", "const"):
                data = (variable.data or b"").ljust(variable.size, b"\0")
                allocation = self.memory.module_variable(digest, variable.name, data)
                self._region(allocation.name, allocation.base, allocation.data, variable.space == "global", None)
                self.addresses[variable.name] = allocation.base
        base = (1 << 55) + (1 << 35)
        self._region("the kernel's parameters", base, np.frombuffer(block, U8), False, None, "param")
        for name, (start, _) in pieces.items():
            self.addresses[name] = base + start

    def _argument(self, argument: Any, size: int, type: str, name: str) -> bytes:
        """Return the bytes of one argument, and place an array."""
        if isinstance(argument, GlobalArray):
            if size != 8:
                raise SimulationError(f"the parameter `{name}` has {size} bytes, an array needs a pointer")
            allocation = self.memory.bind(argument)
            allocation.settle()
            region = self.spaces["global"].find(allocation.base)
            if region is None:
                self._region(argument.name, allocation.base, allocation.data, argument.writable, allocation.init)
            elif argument.writable and not region.writable:
                # Passed twice, once as an input and once as an output.
                self._region(argument.name, allocation.base, allocation.data, True, allocation.init)
            self.spaces["global"].regions[allocation.base >> GLOBAL_SHIFT].undefined = allocation.undefined
            return allocation.base.to_bytes(8, "little")
        if isinstance(argument, np.ndarray | bytes | np.void):
            data = argument if isinstance(argument, bytes) else argument.tobytes()
            if len(data) != size:
                raise SimulationError(f"the parameter `{name}` has {size} bytes, the argument has {len(data)}")
            return data
        if isinstance(argument, np.generic) and not isinstance(argument, np.bool_):
            data = argument.tobytes()
            if len(data) == size:
                return data
            argument = argument.item()
        if isinstance(argument, float):
            if type[0] in "us":
                raise SimulationError(f"the parameter `{name}` is an integer, a float was given")
            return np.dtype(f"f{size}").type(argument).tobytes()
        if isinstance(argument, bool | int | np.bool_):
            if type in ("f32", "f64"):
                return np.dtype(f"f{size}").type(argument).tobytes()
            if not -(1 << (8 * size - 1)) <= int(argument) < 1 << (8 * size):
                raise SimulationError(f"the argument {argument} does not fit the parameter `{name}` of {size} bytes")
            return (int(argument) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        raise SimulationError(f"the argument for `{name}` is neither an array nor a number")

    def _region(
        self, name: str, base: int, data: Array, writable: bool, init: Array | None, space: str = "global"
    ) -> Region:
        granule = self.granules["global"]
        region = Region(name, space, base, int(data.size), data, granule)
        region.writable = writable
        region.init = init
        if space == "global":
            region.touched = np.zeros(int(data.size), U8)
        if writable and data.size:
            region.shadow = RaceShadow(-(-int(data.size) // granule), self.clock, across_blocks=True)
            self.across.append(region.shadow)
        self.spaces["global"].add(region)
        return region

    def _layout(self) -> None:
        """Place shared and local arrays, one slot each, so that leaving one never means entering the next."""
        shared = [
            *self.program.shared,
            *(variable for variable in self.launch.module.variables if variable.space == "shared"),
        ]
        dynamic: Region | None = None
        for number, variable in enumerate(shared):
            if variable.extern or variable.size == 0:
                if dynamic is None:
                    dynamic = self._block_region(number, variable, self.launch.shared_bytes)
                self.addresses[variable.name] = dynamic.base
            else:
                self.addresses[variable.name] = self._block_region(number, variable, variable.size).base
        for number, variable in enumerate(self.program.local):
            base = ((number + 1) << LOCAL_SHIFT) + (1 << (LOCAL_SHIFT - 1))
            stride = -(-variable.size // 16) * 16
            region = Region(
                _local_name(variable.name), "local", base, variable.size, np.zeros(self.lanes * stride, U8), 1
            )
            region.stride = stride
            region.init = np.zeros(self.lanes * stride, U8)
            self.spaces["local"].add(region)
            self.addresses[variable.name] = base

    def _block_region(self, number: int, variable: Variable, size: int) -> Region:
        base = ((number + 1) << LOCAL_SHIFT) + (1 << (LOCAL_SHIFT - 1))
        stride = -(-size // 16) * 16
        granule = self.granules["shared"]
        data = np.full(self.slots * stride, 0xFF, U8)
        region = Region(_demangled(variable.name), "shared", base, size, data, granule)
        region.stride = stride
        region.shadow = RaceShadow(self.slots * stride // granule, self.clock, across_blocks=False)
        self.spaces["shared"].add(region)
        return region

    # --- decoding

    def _decode(self) -> list[Block]:
        program = self.program
        self.suspects = maybe_undefined(program, self.spans)
        self.indexing = index_arithmetic(program)
        self.ever_read = {name for instruction in program.instructions for name in effects(instruction)[1]}
        for name in self.suspects:
            slot = self.registers.slots[name]
            self.undefined[slot] = np.ones(self.lanes, BOOL)
        self.position_of = {span.start: number for number, span in enumerate(self.spans)}
        blocks: list[Block] = []
        for number, span in enumerate(self.spans):
            instructions = program.instructions[span.start : span.stop]
            last = instructions[-1]
            ends = last.parts[0] in ("bra", "brx", "ret", "exit", "trap")
            body = instructions[:-1] if ends else instructions
            operations = [
                operation
                for position, instruction in enumerate(body)
                if (operation := self._operation(instruction, span.start + position)) is not None
            ]
            blocks.append(
                Block(
                    number,
                    self._wait(instructions[0], number, span.start) if span.sync else None,
                    operations,
                    self._end(last if ends else None, number, span.stop - 1),
                    tuple(instruction.opcode for instruction in instructions),
                )
            )
        return blocks

    def _operation(self, instruction: Instruction, number: int) -> Operation | None:
        operation = self._plain(instruction, number)
        if operation is None:
            return None
        operation = self._watch_overflow(instruction, number, operation)
        operation = self._watch_undefined(instruction, number, operation)
        if instruction.guard is None:
            return operation
        read = self.registers.reader(Register(instruction.guard.register), BOOL)
        wanted = not instruction.guard.negated
        inner = operation
        self._check_guard(instruction)

        def guarded(sel: Lanes | None, lanes: Lanes) -> None:
            active = lanes[read(None if lanes.size == self.lanes else lanes) == wanted]
            if active.size == lanes.size:
                inner(sel, lanes)
            elif active.size:
                inner(active, active)

        return guarded

    def _check_guard(self, instruction: Instruction) -> None:
        if instruction.parts[0] in ("bar", "barrier", "shfl", "vote", "mma", "ldmatrix", "match", "redux"):
            raise SimulationError(f"a guarded `{instruction.opcode}` is not modelled", instruction.line)

    def _plain(self, instruction: Instruction, number: int) -> Operation | None:
        """Return the operation without guard and watches; None for one that only waits."""
        base, parts = instruction.parts[0], instruction.parts
        try:
            if base in ("ld", "ldu"):
                return build_load(self, instruction, number)
            if base == "st":
                return build_store(self, instruction, number)
            if base in ("atom", "red"):
                used = any(name in self.ever_read for name in effects(instruction)[0])
                return build_atomic(self, instruction, number, used)
            if base == "cp" and parts[1:2] == ("async",):
                return build_copy(self, instruction, number)
            if base in BUILDERS:
                return BUILDERS[base](self, instruction, number)
            if base in ("bar", "barrier"):
                return self._barrier_result(instruction)
            if base in ("membar", "fence"):
                return self._fence(instruction)
            if base == "cvta":
                return self._address_cast(instruction)
            if base == "isspacep":
                return self._is_space(instruction)
            if base == "call":
                return self._built_in(instruction, number)
            operation = alu.build(instruction, self.registers)
        except (ValueError, KeyError, IndexError, AssertionError) as problem:
            raise SimulationError(f"cannot read `{instruction.opcode}`: {problem}", instruction.line) from problem
        if operation is None:
            raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
        return lambda sel, lanes: operation(sel)

    def _address_cast(self, instruction: Instruction) -> Operation:
        """`cvta`: generic addresses of shared and local memory lie in windows."""
        parts = instruction.parts
        to, value = instruction.operands
        windows = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
        space = next((part.partition("::")[0] for part in parts if part.partition("::")[0] in windows), "global")
        shift = np.uint64(windows.get(space, 0))
        write = self.registers.target(to, U64)
        wide = isinstance(value, Symbol | Immediate) or self.registers.sizes[self.registers.slot(value)] == 8
        read = self.registers.reader(value, U64 if wide else U32)
        if "to" in parts:
            return lambda sel, lanes: write(read(sel) - shift, sel)
        return lambda sel, lanes: write(read(sel).astype(U64) + shift, sel)

    def _is_space(self, instruction: Instruction) -> Operation:
        write = self.registers.target(instruction.operands[0], BOOL)
        read = self.registers.reader(instruction.operands[1], U64)
        wanted = {"local": 1, "shared": 2}.get(instruction.parts[1].partition("::")[0], 0)
        return lambda sel, lanes: write((read(sel) >> np.uint64(57)) == wanted, sel)

    def _built_in(self, instruction: Instruction, number: int) -> Operation:
        """`vprintf` prints nothing and returns 0; `__assertfail` is a finding."""
        name = instruction.parts[1]
        results = [operand.name for operand in instruction.operands if isinstance(operand, Symbol)]

        def call(sel: Lanes | None, lanes: Lanes) -> None:
            for result in results:
                self.buffers[result][lanes] = 0
            if name == "__assertfail" and lanes.size:
                self.findings.add(
                    "trap",
                    "an `assert` of the kernel failed",
                    number,
                    instruction.line,
                    int(lanes[0]),
                    None,
                    int(lanes.size),
                )

        return call

    def _fence(self, instruction: Instruction) -> Operation | None:
        if {"cta"} & set(instruction.parts) or "proxy" in instruction.parts:
            return lambda sel, lanes: None

        def fence(sel: Lanes | None, lanes: Lanes) -> None:
            self.fenced[np.unique(self.block_slot[lanes])] = True

        return fence

    def _barrier_result(self, instruction: Instruction) -> Operation | None:
        """`bar.red`: combine a predicate over the block; the waiting itself is done before."""
        parts = instruction.parts
        if "warp" in parts:
            return None
        if "red" not in parts:
            if "sync" not in parts:
                raise SimulationError(f"unknown opcode `{instruction.opcode}`", instruction.line)
            return None
        count = "popc" in parts
        write = self.registers.target(instruction.operands[0], U32 if count else BOOL)
        read = self.registers.reader(instruction.operands[-1], BOOL)

        def reduce(sel: Lanes | None, lanes: Lanes) -> None:
            some = None if lanes.size == self.lanes else lanes
            slot = self.block_slot[lanes]
            yes = np.bincount(slot, weights=read(some), minlength=self.slots)
            if count:
                write(yes[slot].astype(U32), some)
                return
            everyone = np.bincount(slot, minlength=self.slots)
            result = yes == everyone if "and" in parts else yes > 0
            write(result[slot], some)

        return reduce

    # --- watches: undefined registers and index arithmetic

    def _watch_undefined(self, instruction: Instruction, number: int, operation: Operation) -> Operation:
        """Follow registers that were never written to where their value matters."""
        written, read = effects(instruction)
        slots = self.registers.slots
        targets = [slots[name] for name in written if name in self.suspects]
        sources = [slots[name] for name in read if name in self.suspects]
        if not targets and not sources:
            return operation
        base, undefined = instruction.parts[0], self.undefined
        choose = self._selected_undefined(instruction) if base == "selp" else self._joined_undefined(instruction)
        addressed = {
            slots[operand.base.name]
            for operand in instruction.operands
            if isinstance(operand, Address)
            and isinstance(operand.base, Register)
            and operand.base.name in self.suspects
        }
        stored = self._stored(instruction)
        uses = base in ("st", "red", "atom", "cp") and not stored
        registers = self.registers
        guard = instruction.guard
        guard_slot = slots.get(guard.register) if guard is not None and guard.register in self.suspects else None

        def watched(sel: Lanes | None, lanes: Lanes) -> None:
            bad = np.zeros(lanes.size, BOOL)
            for slot in sources:
                if registers.values[slot] is None:
                    registers.values[slot] = np.zeros(self.lanes, f"u{registers.sizes[slot]}")
                if slot != guard_slot:
                    bad |= undefined[slot][lanes]
            if choose is not None:
                bad = choose(lanes)
            if (uses or addressed) and bad.any():
                sinks = bad if uses else np.any([undefined[slot][lanes] for slot in addressed], axis=0)
                if sinks.any():
                    self._report_undefined(instruction, number, lanes[sinks])
                if uses or not targets:
                    bad = np.zeros(lanes.size, BOOL)
            if stored and bad.any():
                none = np.zeros(lanes.size, BOOL)
                masks = [none if slot is None else undefined[slot][lanes] for slot in stored]
                self.never_given = np.stack(masks, axis=1)
            operation(sel, lanes)
            self.never_given = None
            for slot in targets:
                undefined[slot][lanes] = bad

        return watched

    def _stored(self, instruction: Instruction) -> tuple[int | None, ...]:
        """The registers that a store puts into memory that others may read, `None` for each that always has a value."""
        if instruction.parts[0] != "st" or "param" in instruction.parts:
            return ()
        value = instruction.operands[1]
        items = value.items if isinstance(value, Vector) else (value,)
        names = [getattr(item, "name", "") for item in items]
        return tuple(self.registers.slots[name] if name in self.suspects else None for name in names)

    def _selected_undefined(self, instruction: Instruction) -> Callable[[Lanes], Array]:
        """`selp` passes on only what it selects."""
        first, second, predicate = instruction.operands[1:4]
        read = self.registers.reader(predicate, BOOL)
        none = np.zeros(self.lanes, BOOL)

        def mask(operand: Any) -> Array:
            slot = self.registers.slots.get(getattr(operand, "name", ""), -1)
            return self.undefined.get(slot, none)

        a, b, p = mask(first), mask(second), mask(predicate)
        return lambda lanes: np.where(read(lanes), a[lanes], b[lanes]) | p[lanes]

    def _joined_undefined(self, instruction: Instruction) -> Callable[[Lanes], Array] | None:
        """A conjunction is false whatever the other operand is, where one operand is false; a disjunction true likewise."""
        if instruction.parts not in (("and", "pred"), ("or", "pred")):
            return None
        decides = instruction.parts[0] == "or"
        operands = instruction.operands[1:3]
        values = [self.registers.reader(operand, BOOL) for operand in operands]
        none = np.zeros(self.lanes, BOOL)
        slots = [self.registers.slots.get(getattr(operand, "name", ""), -1) for operand in operands]
        masks = [self.undefined.get(slot, none) for slot in slots]

        def mask(lanes: Lanes) -> Array:
            decided = [~m[lanes] & (read(lanes) == decides) for m, read in zip(masks, values, strict=True)]
            return (masks[0][lanes] | masks[1][lanes]) & ~decided[0] & ~decided[1]

        return mask

    def _report_undefined(self, instruction: Instruction, number: int, lanes: Lanes) -> None:
        self.findings.add(
            "uninitialised",
            f"`{instruction.parts[0]}` uses a variable (a register) that was never given a value",
            number,
            instruction.line,
            int(lanes[0]),
            None,
            int(lanes.size),
        )

    def _watch_overflow(self, instruction: Instruction, number: int, operation: Operation) -> Operation:
        """Mark lanes whose 32-bit index arithmetic wraps; report them when the result is used as an address."""
        operation = self._overflow_sink(instruction, number, operation)
        if number not in self.indexing:
            return self._overflow_carrier(instruction, operation)
        registers = self.registers
        base = instruction.parts[0]
        dtype = U32 if instruction.parts[-1] == "u32" else I32
        target = registers.slot(instruction.operands[0])
        types = [dtype, U32 if base == "shl" else dtype, dtype]
        readers = [
            registers.reader(operand, type) for operand, type in zip(instruction.operands[1:], types, strict=False)
        ]
        sources = [registers.slots[name] for name in effects(instruction)[1] if name in registers.slots]

        def wide(values: list[Array]) -> Array:
            x, y = values[0].astype(I64), values[1]
            match base:
                case "add":
                    return x + y
                case "sub":
                    return x - y
                case "shl":
                    return x << np.minimum(y, np.uint32(33)).astype(I64)
                case "mul":
                    return x * y
                case _:
                    return x * y + values[2]

        low, high = (0, (1 << 32) - 1) if dtype == U32 else (-(1 << 31), (1 << 31) - 1)

        def watched(sel: Lanes | None, lanes: Lanes) -> None:
            exact = wide([read(None if lanes.size == self.lanes else lanes) for read in readers])
            wrapped = (exact < low) | (exact > high)
            if self.overflow or wrapped.any():
                for slot in sources:
                    if slot in self.overflow:
                        wrapped = wrapped | self.overflow[slot][lanes]
                self._mark_overflow(target, lanes, wrapped)
            operation(sel, lanes)

        return watched

    def _mark_overflow(self, slot: int, lanes: Lanes, wrapped: Array) -> None:
        if slot not in self.overflow:
            if not wrapped.any():
                return
            self.overflow[slot] = np.zeros(self.lanes, BOOL)
        self.overflow[slot][lanes] = wrapped

    def _overflow_carrier(self, instruction: Instruction, operation: Operation) -> Operation:
        """Instructions between the wrapped operation and the address pass the mark on."""
        if not self.indexing or instruction.parts[0] not in (
            "add",
            "sub",
            "mul",
            "mad",
            "shl",
            "mov",
            "cvt",
            "cvta",
            "selp",
        ):
            return operation
        if unsigned_widening(instruction):
            return operation
        written, read = effects(instruction)
        slots = self.registers.slots
        if len(written) != 1 or written[0] not in slots or self.program.registers.get(written[0]) == "pred":
            return operation
        target = slots[written[0]]
        sources = [slots[name] for name in read if name in slots and self.program.registers.get(name) != "pred"]

        def carry(sel: Lanes | None, lanes: Lanes) -> None:
            if self.overflow:
                wrapped = np.zeros(lanes.size, BOOL)
                for slot in sources:
                    if slot in self.overflow:
                        wrapped |= self.overflow[slot][lanes]
                self._mark_overflow(target, lanes, wrapped)
            operation(sel, lanes)

        return carry

    def _overflow_sink(self, instruction: Instruction, number: int, operation: Operation) -> Operation:
        if not self.indexing:
            return operation
        bases = [
            self.registers.slots[operand.base.name]
            for operand in instruction.operands
            if isinstance(operand, Address)
            and isinstance(operand.base, Register)
            and operand.base.name in self.registers.slots
        ]
        if not bases:
            return operation

        def check(sel: Lanes | None, lanes: Lanes) -> None:
            for slot in bases:
                if slot in self.overflow:
                    bad = np.flatnonzero(self.overflow[slot][lanes])
                    if bad.size:
                        self.findings.add(
                            "index-overflow",
                            "the 32-bit index arithmetic of this access overflows",
                            number,
                            instruction.line,
                            int(lanes[bad[0]]),
                            None,
                            int(bad.size),
                        )
            operation(sel, lanes)

        return check

    # --- ends of blocks

    def _block_at(self, label: str, instruction: Instruction) -> int:
        return self.position_of[label_position(self.program, label, instruction)]

    def _end(
        self, instruction: Instruction | None, number: int, position: int
    ) -> Callable[[Lanes], int | list[tuple[int, Lanes]]]:
        following = number + 1 if number + 1 < len(self.spans) else EXIT
        if instruction is None:
            return lambda lanes: following
        go = self._jump(instruction, position)
        guard = instruction.guard
        if guard is None:
            return go
        read = self.registers.reader(Register(guard.register), BOOL)
        wanted = not guard.negated
        slot = self.registers.slots[guard.register]
        watched = guard.register in self.suspects

        def conditional(lanes: Lanes) -> int | list[tuple[int, Lanes]]:
            if watched:
                self._check_condition(instruction, position, slot, lanes)
            taken = read(None if lanes.size == self.lanes else lanes)
            if not wanted:
                taken = ~taken
            n = np.count_nonzero(taken)
            if n == 0:
                return following
            if n == lanes.size:
                return go(lanes)
            there = lanes[taken]
            result = go(there)
            paths = [(result, there)] if isinstance(result, int) else result
            return [*paths, (following, lanes[~taken])]

        return conditional

    def _check_condition(self, instruction: Instruction, position: int, slot: int, lanes: Lanes) -> None:
        if self.registers.values[slot] is None:
            self.registers.values[slot] = np.zeros(self.lanes, BOOL)
        bad = self.undefined[slot][lanes]
        if bad.any():
            self._report_undefined(instruction, position, lanes[bad])

    def _jump(self, instruction: Instruction, position: int) -> Callable[[Lanes], int | list[tuple[int, Lanes]]]:
        match instruction.parts[0]:
            case "bra":
                target = instruction.operands[0]
                if not isinstance(target, Symbol):
                    raise SimulationError("a branch without a label", instruction.line)
                block = self._block_at(target.name, instruction)
                return lambda lanes: block
            case "brx":
                targets = [self._block_at(name, instruction) for name in table_of(self.program, instruction)]
                return self._indexed_jump(instruction, targets)
            case "trap":

                def trap(lanes: Lanes) -> int:
                    self.findings.add(
                        "trap",
                        "the kernel executes `trap`",
                        position,
                        instruction.line,
                        int(lanes[0]),
                        None,
                        int(lanes.size),
                    )
                    return EXIT

                return trap
            case _:
                return lambda lanes: EXIT

    def _indexed_jump(
        self, instruction: Instruction, targets: list[int]
    ) -> Callable[[Lanes], int | list[tuple[int, Lanes]]]:
        read = self.registers.reader(instruction.operands[0], U32)

        def jump(lanes: Lanes) -> int | list[tuple[int, Lanes]]:
            index = read(None if lanes.size == self.lanes else lanes)
            if (index >= len(targets)).any():
                raise SimulationError("`brx.idx` with an index beyond its table", instruction.line)
            values = np.unique(index)
            if values.size == 1:
                return targets[int(values[0])]
            return [(targets[int(value)], lanes[index == value]) for value in values]

        return jump

    # --- waiting

    def _wait(self, instruction: Instruction, number: int, position: int) -> Callable[[Lanes], Lanes]:
        """Return a function that takes the lanes that arrive and returns those that may go on now; the others are parked."""
        self._check_guard_of_wait(instruction)
        if is_barrier(instruction):
            return self._wait_barrier(instruction, number, position)
        mask = member_mask(self, instruction)
        is_sync = instruction.parts[0] in ("bar", "barrier")

        def arrive(lanes: Lanes) -> Lanes:
            parked = self.parked.lanes.pop(number, None)
            if parked is not None:
                lanes = np.sort(np.concatenate((parked, lanes)))
            if lanes.size != self.live_count:
                lanes = self._complete_warps(instruction, number, position, lanes, mask(lanes))
            if is_sync and lanes.size:
                self._flush_reads()
                self.clock.warp_sync(lanes)
            return lanes

        return arrive

    def _check_guard_of_wait(self, instruction: Instruction) -> None:
        if instruction.guard is not None:
            self._check_guard(instruction)

    def _complete_warps(self, instruction: Instruction, number: int, position: int, lanes: Lanes, mask: Array) -> Lanes:
        """Park the lanes of warps in which a lane that the member mask names is alive but not here."""
        own = (mask >> (lanes & 31).astype(U32)) & np.uint32(1)
        if not own.all():
            wrong = lanes[own == 0]
            self.findings.add(
                "divergent-collective",
                f"a thread executes `{instruction.opcode}` with a member mask that does not name it",
                position,
                instruction.line,
                int(wrong[0]),
                None,
                int(wrong.size),
            )
        here = warp_bits(self, lanes, np.ones(lanes.size, BOOL))
        alive = np.flatnonzero(self.live)
        living = warp_bits(self, alive, np.ones(alive.size, BOOL))
        needed = np.zeros(self.lanes // 32, U32)
        needed[lanes >> 5] = mask
        complete = (needed & living & ~here) == 0
        good = complete[lanes >> 5]
        if not good.all():
            self.parked.lanes[number] = lanes[~good]
        return lanes[good]

    def _wait_barrier(self, instruction: Instruction, number: int, position: int) -> Callable[[Lanes], Lanes]:
        count = None
        sources = instruction.operands[1:] if "red" in instruction.parts else instruction.operands
        if "red" in instruction.parts:
            sources = sources[:-1]
        if len(sources) > 1:
            count = self.registers.reader(sources[1], U32)

        def arrive(lanes: Lanes) -> Lanes:
            parked = self.parked.lanes.pop(number, None)
            if parked is not None:
                lanes = np.sort(np.concatenate((parked, lanes)))
            if lanes.size == self.started:
                self._pass_barrier(lanes, everyone=True)
                return lanes
            slot = self.block_slot[lanes]
            here = np.bincount(slot, minlength=self.slots)
            living = np.bincount(self.block_slot[np.flatnonzero(self.live)], minlength=self.slots)
            needed = living
            if count is not None:
                asked = np.zeros(self.slots, I64)
                asked[slot] = count(None if lanes.size == self.lanes else lanes)
                needed = np.where(asked > 0, asked, living)
            good = (here >= needed)[slot]
            if not good.all():
                self.parked.lanes[number] = lanes[~good]
                lanes = lanes[good]
            if lanes.size:
                if count is None:
                    self._report_ended(instruction, position, lanes, living)
                self._pass_barrier(lanes, everyone=lanes.size == self.live_count)
            return lanes

        return arrive

    def _report_ended(self, instruction: Instruction, position: int, lanes: Lanes, living: Array) -> None:
        """A barrier that some threads of the block can never reach, because they have ended."""
        short = living[self.block_slot[lanes]] < self.threads
        if short.any():
            lane = int(lanes[short][0])
            missing = self.threads - int(living[self.block_slot[lane]])
            self.findings.add(
                "divergent-barrier",
                f"{missing} threads of the block ended before this barrier, which all threads must reach",
                position,
                instruction.line,
                lane,
                None,
            )

    def _flush_reads(self) -> None:
        for space in ("shared", "global"):
            for region in self.spaces[space].regions.values():
                if region.shadow is not None and region.shadow.log:
                    region.shadow.flush()

    def _pass_barrier(self, lanes: Lanes, everyone: bool) -> None:
        if everyone:
            for region in self.spaces["shared"].regions.values():
                if region.shadow is not None:
                    region.shadow.forget_reads()
            for shadow in self.across:
                if shadow.log:
                    shadow.flush()
        else:
            self._flush_reads()
        self.clock.barrier(lanes)

    def _release(self) -> list[tuple[int, Lanes]]:
        """Nobody can run: let those go that wait for nothing more, else all, which is a finding."""
        parked = self.parked.lanes
        self.parked.lanes = {}
        result: list[tuple[int, Lanes]] = []
        barriers: dict[int, Lanes] = {}
        for number, lanes in parked.items():
            wait = self.blocks[number].wait
            assert wait is not None
            # Threads that ended since then are not waited for any more.
            ready = wait(lanes)
            rest = self.parked.lanes.pop(number, None)
            if ready.size:
                result.append((number, ready))
                self._report_left_behind(number, ready)
            if rest is not None:
                barriers[number] = rest
        if result:
            self.parked.lanes.update(barriers)
            return result
        met = self._counted_barriers(barriers)
        if met:
            for number, lanes in met.items():
                left = np.setdiff1d(barriers[number], lanes)
                if left.size:
                    self.parked.lanes[number] = left
            self.parked.lanes.update({number: lanes for number, lanes in barriers.items() if number not in met})
            self._pass_barrier(np.sort(np.concatenate(list(met.values()))), everyone=False)
            return list(met.items())
        at_warp_sync = self._warps_at_sync(barriers)
        for number, lanes in barriers.items():
            self._report_stuck(number, lanes, at_warp_sync)
        everyone = np.sort(np.concatenate(list(barriers.values())))
        self._pass_barrier(everyone, everyone=everyone.size == self.live_count)
        return list(barriers.items())

    def _counted_barriers(self, parked: dict[int, Lanes]) -> dict[int, Lanes]:
        """Return the lanes whose barrier with a number and a thread count is met, though at several places of the code."""
        by_name: dict[int, list[tuple[int, Lanes, int]]] = {}
        for number, lanes in parked.items():
            instruction = self.program.instructions[self.spans[number].start]
            operands = instruction.operands
            if is_barrier(instruction) and "red" not in instruction.parts and len(operands) == 2:
                name, count = operands
                if isinstance(name, Immediate) and isinstance(count, Immediate):
                    by_name.setdefault(name.value, []).append((number, lanes, count.value))
        result: dict[int, Lanes] = {}
        for entries in by_name.values():
            here = np.zeros(self.slots, I64)
            for _, lanes, _ in entries:
                here += np.bincount(self.block_slot[lanes], minlength=self.slots)
            for number, lanes, count in entries:
                good = here[self.block_slot[lanes]] >= count
                if good.any():
                    result[number] = lanes[good]
        return result

    def _report_left_behind(self, number: int, lanes: Lanes) -> None:
        """Threads that a warp-wide instruction waited for have ended instead of coming (a barrier reports that itself)."""
        position = self.spans[number].start
        instruction = self.program.instructions[position]
        if is_barrier(instruction):
            return
        message = (
            f"`{'.'.join(instruction.parts[:2])}` waits for threads of its member mask that end without reaching it"
        )
        self.findings.add(
            "divergent-collective", message, position, instruction.line, int(lanes[0]), None, int(lanes.size)
        )

    def _warps_at_sync(self, parked: dict[int, Lanes]) -> Array:
        """Return the warps all of whose living threads wait at a `bar.warp.sync`, though not at the same one."""
        waiting = [
            lanes
            for number, lanes in parked.items()
            if self.program.instructions[self.spans[number].start].parts[:2] == ("bar", "warp")
        ]
        if not waiting:
            return np.zeros(0, I64)
        lanes = np.concatenate(waiting)
        here = warp_bits(self, lanes, np.ones(lanes.size, BOOL))
        alive = np.flatnonzero(self.live)
        living = warp_bits(self, alive, np.ones(alive.size, BOOL))
        return np.flatnonzero((here == living) & (here != 0))

    def _report_stuck(self, number: int, lanes: Lanes, at_warp_sync: Array) -> None:
        position = self.spans[number].start
        instruction = self.program.instructions[position]
        slot = self.block_slot[lanes[0]]
        if is_barrier(instruction):
            here = int(np.count_nonzero(self.block_slot[lanes] == slot))
            living = int(np.count_nonzero(self.live[slot * self.padded : (slot + 1) * self.padded]))
            message = (
                f"only {here} of {self.threads} threads of the block wait at this barrier; "
                f"{living - here} wait elsewhere and {self.threads - living} have ended"
            )
            self.findings.add(
                "divergent-barrier", message, position, instruction.line, int(lanes[0]), None, int(lanes.size)
            )
            return
        # `__syncwarp` may be reached at different places of the code, as long as all named threads reach one.
        lanes = lanes[~np.isin(lanes >> 5, at_warp_sync)]
        if lanes.size == 0:
            return
        message = f"`{'.'.join(instruction.parts[:2])}` is reached by some of the threads that its member mask names, not by all"
        self.findings.add(
            "divergent-collective", message, position, instruction.line, int(lanes[0]), None, int(lanes.size)
        )

    # --- running

    def run(self, block_ids: Array) -> None:
        """Run one group of blocks to the end.

        Raises:
            SimulationError: the work is more than the limits allow, or an instruction cannot be executed.
        """
        lanes = self._reset(block_ids)
        pending: dict[int, Lanes] = {0: lanes}
        with np.errstate(all="ignore"):
            while True:
                if not pending:
                    if not self.parked.lanes:
                        break
                    # Odd keys: these lanes have waited already.
                    pending = {2 * number + 1: parked for number, parked in self._release()}
                    continue
                key = min(pending)
                self._advance(key, pending.pop(key), pending)
        for copy, _ in self.copies:
            copy.unfinished(copy.region, copy.lanes)
        for shadow in self.across:
            if shadow.log:
                shadow.flush()

    def _advance(self, key: int, lanes: Lanes, pending: dict[int, Lanes]) -> None:
        """Run lanes from a block on until another group is behind them, they part, wait or end."""
        number, waited = key >> 1, bool(key & 1)
        nearest = min(pending) if pending else 1 << 60
        blocks = self.blocks
        while True:
            block = blocks[number]
            if block.wait is not None and not waited:
                lanes = block.wait(lanes)
                if lanes.size == 0:
                    return
            waited = False
            sel = None if lanes.size == self.live_count else lanes
            for operation in block.operations:
                operation(sel, lanes)
            block.lanes += lanes.size
            self.operations += len(block.operations) + 1
            if self.operations > self.launch.limits.operations or self.accesses > 20 * self.launch.limits.accesses:
                raise SimulationError(
                    f"the kernel `{self.launch.kernel.name}` does too much work for the simulator (or never ends)",
                    self.program.instructions[self.spans[number].start].line,
                )
            following = block.end(lanes)
            if isinstance(following, int):
                if following == EXIT:
                    self._finish(lanes)
                    return
                if 2 * following < nearest:
                    number = following
                    continue
                _join(pending, 2 * following, lanes)
                return
            for target, some in following:
                if target == EXIT:
                    self._finish(some)
                else:
                    _join(pending, 2 * target, some)
            return

    def _finish(self, lanes: Lanes) -> None:
        self.live[lanes] = False
        self.live_count -= lanes.size

    def _reset(self, block_ids: Array) -> Lanes:
        """Prepare registers and memories for a group of blocks; return its lanes."""
        values = self.registers.values
        values[:] = [None] * len(values)
        self.overflow.clear()
        for slot, mask in self.undefined.items():
            mask[:] = True
            values[slot] = np.zeros(self.lanes, f"u{self.registers.sizes[slot]}")
        self.copies.clear()
        self.groups[:] = 0
        self.parked.lanes = {}
        padded_ids = np.zeros(self.slots, I64)
        padded_ids[: block_ids.size] = block_ids
        self.findings.blocks = padded_ids
        thread = np.arange(self.lanes, dtype=np.int64) % self.padded
        used = self.block_slot < block_ids.size
        self.live = used & (thread < self.threads)
        lanes = np.flatnonzero(self.live)
        self.live_count = self.started = int(lanes.size)
        self.clock.uid[:] = padded_ids[self.block_slot] * self.padded + thread
        self.clock.time[:] = 1 << EPOCH_SHIFT
        self.clock.floor[:] = 1 << EPOCH_SHIFT
        self.fenced = np.zeros(self.slots, BOOL)
        for name, size in self.program.buffers.items():
            self.buffers[name] = np.zeros((self.lanes, size), U8)
        for space in ("shared", "local"):
            for region in self.spaces[space].regions.values():
                if space == "shared":
                    region.data[:] = 0xFF
                    assert region.shadow is not None
                    region.shadow = RaceShadow(region.shadow.write_time.size, self.clock, across_blocks=False)
                region.undefined = Undefined()
                if region.init is not None:
                    region.init[:] = 0
        self._set_special(thread, padded_ids[self.block_slot])
        return lanes

    def _set_special(self, thread: Array, block: Array) -> None:
        bx, by, bz = self.launch.block
        gx, gy, gz = self.launch.grid
        lane = (thread & 31).astype(U32)
        one = np.uint32(1)
        special: dict[str, Any] = {
            "%tid.x": thread % bx,
            "%tid.y": thread // bx % by,
            "%tid.z": thread // (bx * by),
            "%ntid.x": bx,
            "%ntid.y": by,
            "%ntid.z": bz,
            "%ctaid.x": block % gx,
            "%ctaid.y": block // gx % gy,
            "%ctaid.z": block // (gx * gy),
            "%nctaid.x": gx,
            "%nctaid.y": gy,
            "%nctaid.z": gz,
            "%laneid": lane,
            "%warpid": thread >> 5,
            "%nwarpid": self.padded // 32,
            "%smid": block % 64,
            "%nsmid": 64,
            "%lanemask_eq": one << lane,
            "%lanemask_lt": (one << lane) - one,
            "%lanemask_le": ((one << lane) - one) | (one << lane),
            "%lanemask_gt": ~(((one << lane) - one) | (one << lane)),
            "%lanemask_ge": ~((one << lane) - one),
            "%dynamic_smem_size": self.launch.shared_bytes,
            "%total_smem_size": sum(region.nbytes for region in self.spaces["shared"].regions.values()),
            "%clock": 0,
            "%clock_hi": 0,
            "%gridid": 1,
            "%clock64": 0,
            "%globaltimer": 0,
        }
        for name, value in special.items():
            slot = self.registers.slots[name]
            dtype = U64 if name in _SPECIAL_64 else U32
            self.registers.values[slot] = np.broadcast_to(np.asarray(value), self.lanes).astype(dtype)

    def instruction_mix(self) -> dict[str, int]:
        """Return how many threads executed each opcode."""
        mix: dict[str, int] = {}
        for block in self.blocks:
            if block.lanes:
                for opcode in block.opcodes:
                    mix[opcode] = mix.get(opcode, 0) + block.lanes
        return mix


def _join(pending: dict[int, Lanes], key: int, lanes: Lanes) -> None:
    other = pending.get(key)
    pending[key] = lanes if other is None else np.sort(np.concatenate((other, lanes)))


def _demangled(name: str) -> str:
    """`_ZZ4gemmE2As` -> `As`: the last length-prefixed part of a mangled name."""
    if not name.startswith("_Z"):
        return name
    best, position = name, 2
    while position < len(name):
        digits = position
        while digits < len(name) and name[digits].isdigit():
            digits += 1
        if digits > position:
            length = int(name[position:digits])
            best = name[digits : digits + length]
            position = digits + length
        else:
            position += 1
    return best


def _local_name(name: str) -> str:
    return "the local arrays" if "__local_depot" in name else _demangled(name)


_SPECIAL_32 = (
    *(f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%lanemask_eq",
    "%lanemask_lt",
    "%lanemask_le",
    "%lanemask_gt",
    "%lanemask_ge",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%clock",
    "%clock_hi",
)
_SPECIAL_64 = ("%clock64", "%globaltimer", "%gridid")
