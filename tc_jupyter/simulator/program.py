"""A kernel as basic blocks: calls inlined, labels resolved, and what can be known before running.

* `flatten` puts the body of every called device function in the place of its call, with names of its own.
* `split` cuts the list where lanes may arrive or wait.
* `maybe_undefined` finds the registers that some path reads before writing them.
* `index_arithmetic` finds the 32-bit operations whose result reaches a 64-bit address without being reduced on the way.

Source: PTX ISA, "Control flow instructions"; the analyses are the textbook ones (definite assignment, backward slice).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tc_jupyter.simulator.ptx import (
    Address,
    Group,
    Guard,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    PtxKernel,
    PtxModule,
    Register,
    SimulationError,
    Symbol,
    Variable,
    Vector,
)

EXIT = -1

WARP_SYNC = frozenset({"shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "movmatrix"})
WITHOUT_DESTINATION = frozenset(
    {
        "st",
        "red",
        "bra",
        "brx",
        "ret",
        "exit",
        "call",
        "membar",
        "fence",
        "prefetch",
        "prefetchu",
        "trap",
        "brkpt",
        "nanosleep",
        "discard",
        "applypriority",
        "pmevent",
        "cp",
        "griddepcontrol",
    }
)
BUILT_IN_CALLS = frozenset({"vprintf", "__assertfail"})


@dataclass(frozen=True, slots=True)
class Program:
    """The flat list of instructions with positions of labels, jump tables, and the variables of all inlined bodies."""

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    tables: dict[str, tuple[str, ...]]
    registers: dict[str, str]
    buffers: dict[str, int]
    local: tuple[Variable, ...]
    shared: tuple[Variable, ...]


@dataclass(slots=True)
class _Flat:
    """What `flatten` fills."""

    module: PtxModule
    instructions: list[Instruction]
    labels: dict[str, int]
    tables: dict[str, tuple[str, ...]]
    registers: dict[str, str]
    buffers: dict[str, int]
    local: list[Variable]
    shared: dict[str, Variable]
    calls: int = 0


def flatten(module: PtxModule, kernel: PtxKernel) -> Program:
    """Return a kernel without calls.

    Raises:
        SimulationError: a recursive or indirect call, or a call of something that has no body.
    """
    flat = _Flat(module, [], {}, {}, {}, {}, [], {})
    _place(flat, kernel, "", {}, ())
    flat.instructions.append(Instruction("exit", ("exit",), (), None, None))
    return Program(
        tuple(flat.instructions),
        flat.labels,
        flat.tables,
        flat.registers,
        flat.buffers,
        tuple(flat.local),
        tuple(flat.shared.values()),
    )


def _place(flat: _Flat, function: PtxKernel, prefix: str, rename: dict[str, str], stack: tuple[str, ...]) -> None:
    """Append the body of `function`; `rename` maps its parameters to the caller's buffers."""
    if function.name in stack:
        raise SimulationError(f"the recursive device function `{function.name}` is not modelled")
    names = dict(rename)
    for register, type in function.registers.items():
        flat.registers[prefix + register] = type
        if prefix:
            names[register] = prefix + register
    for variable in function.variables:
        if variable.space == "shared":
            flat.shared.setdefault(variable.name, variable)
            continue
        names[variable.name] = prefix + variable.name
        if variable.space == "param":
            flat.buffers[prefix + variable.name] = max(variable.size, flat.buffers.get(prefix + variable.name, 0))
        elif variable.space == "local":
            flat.local.append(replace(variable, name=prefix + variable.name))
    for label in (*function.labels, *function.tables):
        names[label] = prefix + label
    for label, targets in function.tables.items():
        flat.tables[prefix + label] = tuple(prefix + target for target in targets)
    by_position: dict[int, list[str]] = {}
    for label, position in function.labels.items():
        by_position.setdefault(position, []).append(label)
    for position, instruction in enumerate(function.body):
        for label in by_position.get(position, ()):
            flat.labels[prefix + label] = len(flat.instructions)
        _append(flat, function, instruction, prefix, names, stack)
    for label in by_position.get(len(function.body), ()):
        flat.labels[prefix + label] = len(flat.instructions)
    if prefix:
        flat.labels[prefix + "$end"] = len(flat.instructions)


def _append(
    flat: _Flat,
    function: PtxKernel,
    instruction: Instruction,
    prefix: str,
    names: dict[str, str],
    stack: tuple[str, ...],
) -> None:
    base = instruction.parts[0]
    if base == "call":
        _call(flat, function, _renamed(instruction, names), stack)
    elif base == "ret" and prefix:
        flat.instructions.append(
            replace(
                instruction,
                opcode="bra",
                parts=("bra",),
                operands=(Symbol(prefix + "$end"),),
                guard=_guard(instruction.guard, names),
            )
        )
    else:
        flat.instructions.append(_renamed(instruction, names) if names else instruction)


def _guard(guard: Guard | None, names: dict[str, str]) -> Guard | None:
    return None if guard is None else Guard(names.get(guard.register, guard.register), guard.negated)


def _renamed(instruction: Instruction, names: dict[str, str]) -> Instruction:
    return replace(
        instruction,
        operands=tuple(_rename(operand, names) for operand in instruction.operands),
        guard=_guard(instruction.guard, names),
    )


def _rename(operand: Operand, names: dict[str, str]) -> Operand:
    match operand:
        case Register(name):
            return Register(names[name]) if name in names else operand
        case Symbol(name, offset):
            return Symbol(names[name], offset) if name in names else operand
        case Address(Register(name), offset) if name in names:
            return Address(Register(names[name]), offset)
        case Address(Symbol(name, inner), offset) if name in names:
            return Address(Symbol(names[name], inner), offset)
        case Vector(items):
            return Vector(tuple(_rename(item, names) for item in items))
        case Group(items):
            return Group(tuple(_rename(item, names) for item in items))
        case Pair(first, second):
            return Pair(_rename(first, names), _rename(second, names))
        case Negated(inner):
            return Negated(Register(names.get(inner.name, inner.name)))
        case _:
            return operand


def _call(flat: _Flat, caller: PtxKernel, instruction: Instruction, stack: tuple[str, ...]) -> None:
    groups = [operand for operand in instruction.operands if isinstance(operand, Group)]
    target = next((operand for operand in instruction.operands if isinstance(operand, Symbol)), None)
    if target is None or any(isinstance(operand, Register) for operand in instruction.operands):
        raise SimulationError("a call through a function pointer is not modelled", instruction.line)
    first = isinstance(instruction.operands[0], Group)
    results = groups[0].items if first else ()
    arguments = groups[1 if first else 0].items if len(groups) > (1 if first else 0) else ()
    if instruction.guard is not None:
        raise SimulationError("a guarded call is not modelled", instruction.line)
    callee = flat.module.functions.get(target.name)
    if callee is None:
        if target.name not in BUILT_IN_CALLS:
            raise SimulationError(f"the function `{target.name}` has no body in this PTX text", instruction.line)
        flat.instructions.append(
            replace(instruction, opcode=f"call.{target.name}", parts=("call", target.name), operands=tuple(results))
        )
        return
    flat.calls += 1
    prefix = f"{callee.name}@{flat.calls}/"
    rename: dict[str, str] = {}
    for parameter, operand in (
        *zip(callee.parameters, arguments, strict=True),
        *zip(callee.results, results, strict=True),
    ):
        if not isinstance(operand, Symbol):
            raise SimulationError(f"an argument of `{callee.name}` is not in parameter space", instruction.line)
        rename[parameter.name] = operand.name
    _place(flat, callee, prefix, rename, (*stack, caller.name))


# --- what an instruction reads and writes


def registers_of(operand: Operand) -> tuple[str, ...]:
    """Return the names of the registers in an operand."""
    match operand:
        case Register(name):
            return () if name == "_" else (name,)
        case Address(Register(name), _):
            return (name,)
        case Vector(items) | Group(items):
            return tuple(name for item in items for name in registers_of(item))
        case Pair(first, second):
            return registers_of(first) + registers_of(second)
        case Negated(inner):
            return (inner.name,)
        case _:
            return ()


def has_destination(instruction: Instruction) -> bool:
    """Tell whether the first operand is written."""
    base = instruction.parts[0]
    if base in ("bar", "barrier"):
        return "red" in instruction.parts
    return base not in WITHOUT_DESTINATION


def effects(instruction: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the registers an instruction writes and those it reads (its guard included)."""
    operands = instruction.operands
    written: tuple[str, ...] = ()
    if operands and has_destination(instruction):
        written, operands = registers_of(operands[0]), operands[1:]
    read = tuple(name for operand in operands for name in registers_of(operand))
    if instruction.guard is not None:
        read += (instruction.guard.register,)
    return written, read


# --- basic blocks


@dataclass(frozen=True, slots=True)
class Span:
    """A basic block: instructions [start, stop); `sync` tells that the first one waits for other lanes."""

    start: int
    stop: int
    sync: bool


def is_barrier(instruction: Instruction) -> bool:
    """Tell whether this is a barrier of the block (`bar.warp.sync` is not)."""
    return instruction.parts[0] in ("bar", "barrier") and "warp" not in instruction.parts


def waits(instruction: Instruction) -> bool:
    """Tell whether lanes wait for each other here."""
    return instruction.parts[0] in WARP_SYNC or instruction.parts[0] in ("bar", "barrier")


def ends_block(instruction: Instruction) -> bool:
    """Tell whether lanes may go elsewhere after this instruction."""
    return instruction.parts[0] in ("bra", "brx", "ret", "exit", "trap")


def split(program: Program) -> tuple[Span, ...]:
    """Cut the program into basic blocks."""
    instructions = program.instructions
    leaders = {0, *(position for position in program.labels.values() if position < len(instructions))}
    for position, instruction in enumerate(instructions):
        if waits(instruction):
            leaders.add(position)
        if ends_block(instruction):
            leaders.add(position + 1)
    starts = sorted(leader for leader in leaders if leader < len(instructions))
    stops = [*starts[1:], len(instructions)]
    return tuple(Span(start, stop, waits(instructions[start])) for start, stop in zip(starts, stops, strict=True))


def successors(program: Program, spans: tuple[Span, ...], number: int) -> tuple[int, ...]:
    """Return the numbers of the blocks that may follow."""
    at = {span.start: position for position, span in enumerate(spans)}
    last = program.instructions[spans[number].stop - 1]
    following = () if number + 1 >= len(spans) else (number + 1,)
    match last.parts[0]:
        case "bra":
            target = last.operands[0]
            assert isinstance(target, Symbol)
            jump = (at[label_position(program, target.name, last)],)
            return jump + (following if last.guard is not None else ())
        case "brx":
            return tuple(at[label_position(program, name, last)] for name in table_of(program, last)) + (
                following if last.guard is not None else ()
            )
        case "ret" | "exit" | "trap":
            return following if last.guard is not None else ()
        case _:
            return following


def label_position(program: Program, name: str, instruction: Instruction) -> int:
    """Return the position of a label."""
    if name not in program.labels:
        raise SimulationError(f"the label `{name}` does not exist", instruction.line)
    return program.labels[name]


def table_of(program: Program, instruction: Instruction) -> tuple[str, ...]:
    """Return the labels of a `brx.idx`."""
    table = instruction.operands[1]
    if not isinstance(table, Symbol) or table.name not in program.tables:
        raise SimulationError(f"`{instruction.opcode}` names no table", instruction.line)
    return program.tables[table.name]


# --- analyses


def maybe_undefined(program: Program, spans: tuple[Span, ...]) -> frozenset[str]:
    """Return the registers that may be read before they are written, and those computed from them."""
    facts = [effects(instruction) for instruction in program.instructions]
    follow = [successors(program, spans, number) for number in range(len(spans))]
    defined: list[set[str] | None] = [None] * len(spans)
    defined[0] = set()
    work = [0]
    while work:
        number = work.pop()
        state = set(defined[number] or ())
        for position in range(spans[number].start, spans[number].stop):
            if program.instructions[position].guard is None:
                state.update(facts[position][0])
        for after in follow[number]:
            known = defined[after]
            merged = state if known is None else known & state
            if known is None or len(merged) != len(known):
                defined[after] = set(merged)
                work.append(after)
    suspects: set[str] = set()
    for number, span in enumerate(spans):
        entry = defined[number]
        if entry is None:
            continue
        state = set(entry)
        for position in range(span.start, span.stop):
            written, read = facts[position]
            suspects.update(name for name in read if name in program.registers and name not in state)
            if program.instructions[position].guard is None:
                state.update(written)
    grown = bool(suspects)
    while grown:
        grown = False
        for written, read in facts:
            if not suspects.isdisjoint(read) and not suspects.issuperset(written):
                suspects.update(written)
                grown = True
    return frozenset(suspects)


_SLICE = frozenset({"add", "sub", "mul", "mad", "shl", "mov", "cvt", "cvta", "selp"})


def index_arithmetic(program: Program) -> frozenset[int]:
    """Return the positions of the 32-bit additions, multiplications and shifts that feed a 64-bit address.

    The slice stops at operations that reduce the range on purpose (`rem`, `and`, `shr`, ...) and where a 32-bit number is
    widened as unsigned: unsigned arithmetic wraps by definition, so a hash is no index arithmetic. Nor is what follows from a
    number whose upper bits are of no account (`_modular`).
    """
    modular = _modular(program)
    writers: dict[str, list[int]] = {}
    for position, instruction in enumerate(program.instructions):
        for name in effects(instruction)[0]:
            writers.setdefault(name, []).append(position)
    work = [
        operand.base.name
        for instruction in program.instructions
        for operand in instruction.operands
        if isinstance(operand, Address)
        and isinstance(operand.base, Register)
        and program.registers.get(operand.base.name, "b32").endswith("64")
    ]
    seen: set[str] = set(work)
    found: set[int] = set()
    while work:
        for position in writers.get(work.pop(), ()):
            instruction = program.instructions[position]
            if instruction.parts[0] not in _SLICE or unsigned_widening(instruction):
                continue
            counts = instruction.parts[-1] in ("s32", "u32", "b32") and _can_wrap(instruction)
            if counts and modular.isdisjoint(effects(instruction)[0]):
                found.add(position)
            for name in effects(instruction)[1]:
                if name not in seen and program.registers.get(name) != "pred":
                    seen.add(name)
                    work.append(name)
    return frozenset(found)


def _modular(program: Program) -> frozenset[str]:
    """Registers of which only the lower bits are the number's, and what follows from them.

    The compiler writes `8 * (n - 1 - x)` as `8 * (n + (x ^ (2**29 - 1)))`, and `8 * (x / 2)` of a negative `x` with a shift that
    fills up with zeros: what is wrong in the upper bits is shifted out.
    """
    found: set[str] = set()
    halved = _halved(program)
    before = -1
    while len(found) > before:
        before = len(found)
        for instruction in program.instructions:
            written, read = effects(instruction)
            masked = instruction.parts[0] == "xor" and any(map(_is_ones, instruction.operands))
            shifts = instruction.parts[0] == "shl"
            back = shifts and any(_shift(instruction) >= halved[name] for name in read if name in halved)
            if masked or back or (instruction.parts[0] in _SLICE and not found.isdisjoint(read)):
                found |= set(written)
    return frozenset(found)


def _halved(program: Program) -> dict[str, int]:
    """Sums with a number that was shifted right as an unsigned one, and by how many bits: so many upper bits say nothing."""
    found: dict[str, int] = {}
    before = -1
    while len(found) > before:
        before = len(found)
        for instruction in program.instructions:
            written, read = effects(instruction)
            bits: list[int] = []
            if instruction.parts[0] in ("add", "sub", "mov"):
                bits = [found[name] for name in read if name in found]
            elif instruction.parts[0] == "shr" and instruction.parts[-1] == "u32" and _shift(instruction) > 0:
                bits = [_shift(instruction)]
            if bits:
                found.update({name: max(bits) for name in written if name not in found})
    return found


def _shift(instruction: Instruction) -> int:
    """By how many bits a shift goes; 0 where a register says it."""
    by = instruction.operands[-1]
    return by.value if isinstance(by, Immediate) and by.kind == "int" else 0


def _is_ones(operand: object) -> bool:
    """Whether this is a number of at least 16 ones and nothing else, shorter than a register."""
    if not isinstance(operand, Immediate) or operand.kind != "int":
        return False
    return 16 <= operand.value.bit_length() < 32 and operand.value & (operand.value + 1) == 0


def unsigned_widening(instruction: Instruction) -> bool:
    """Tell whether a 32-bit unsigned number becomes part of a 64-bit one."""
    parts = instruction.parts
    return ("wide" in parts and parts[-1] == "u32") or (
        parts[0] == "cvt" and parts[-2:] in (("u64", "u32"), ("s64", "u32"))
    )


def _can_wrap(instruction: Instruction) -> bool:
    base, parts = instruction.parts[0], instruction.parts
    if base in ("add", "sub"):
        return "cc" not in parts and "sat" not in parts
    if base in ("mul", "mad"):
        return "lo" in parts and "cc" not in parts
    return base == "shl"


__all__ = [
    "EXIT",
    "Immediate",
    "Program",
    "Span",
    "effects",
    "flatten",
    "index_arithmetic",
    "is_barrier",
    "label_position",
    "maybe_undefined",
    "split",
    "successors",
    "table_of",
    "unsigned_widening",
    "waits",
]
