"""One kernel of any engine as a callable on storage: the interpreter, CPU code, CUDA code.

Comes in: a kernel, or its code with what else a launch must know. Goes out: a `Runner`, called with where the buffers are and the
values of sizes and scalars. An engine sees addresses and numbers only; which library an array came from does not matter here.

Worked example: a CPU kernel with arguments `A, A.stride.0, N, s` (float32) is started with four 8-byte slots: address, stride in
elements, size, and the bits of `s` in the low half of the last slot.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from tc_jupyter.codegen import Argument, KernelSource
from tc_jupyter.codegen.source import IN_ORDER
from tc_jupyter.loops import Buffer, Check, Kernel, walk_statements
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import Binary, Cast, Const, DType, Expr, Read, Select, Size, Unary

from . import threads
from .address import numpy_address
from .arguments import Number
from .arrays import ITEMSIZE, ArrayView, as_numpy
from .memory import aligned_empty

Failure: TypeAlias = tuple[int, ...]
"""The first failed check at a point: its number in the kernel, then the values that it reports."""


class Runner(Protocol):
    """Runs one kernel in place on its buffers; returns the first failed check, if any."""

    def __call__(
        self, storage: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        """Work on the given storage."""
        ...


def interpreter_runner(kernel: Kernel) -> Runner:
    """The loop IR run directly on NumPy arrays."""
    names = [buffer.name for buffer in kernel.buffers]

    def run(
        storage: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        arrays = {name: as_numpy(storage[name]) for name in names}
        return interpret(kernel, arrays, sizes, scalars)

    return run


@dataclass(frozen=True, slots=True)
class LaunchInfo:
    """What a launch must know of a kernel: all but its loops.

    Attributes:
        buffers, sizes, scalars, most: as in `Kernel`.
        checks: number of each check inside -> how many values it reports.
    """

    name: str
    buffers: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    scalars: tuple[tuple[str, DType], ...]
    most: tuple[tuple[str, int], ...]
    checks: tuple[tuple[int, int], ...]


def launch_info(kernel: Kernel) -> LaunchInfo:
    """What a launch of this kernel must know."""
    checks = tuple(values_of_checks(kernel).items())
    return LaunchInfo(kernel.name, kernel.buffers, kernel.sizes, kernel.scalars, kernel.most, checks)


# numbers of a launch -------------------------------------------------------------------------------------------------------------


def python_text(expr: Expr, names: Mapping[str, str]) -> str:
    """An integer expression over sizes and scalars as Python text; `names` gives the variable of each."""
    match expr:
        case Const():
            return repr(int(expr.value))
        case Size():
            return names[expr.name]
        case Read(indices=()):
            return names[expr.tensor]
        case Cast():
            return python_text(expr.operand, names)
        case Unary():
            return f"(-{python_text(expr.operand, names)})"
        case Select():
            then, other = python_text(expr.then, names), python_text(expr.otherwise, names)
            return f"({then} if {python_text(expr.condition, names)} else {other})"
        case Binary(op=("min" | "max") as op):
            return f"{op}({python_text(expr.left, names)}, {python_text(expr.right, names)})"
        case Binary():
            op = {"/": "//", "&&": "and", "||": "or"}.get(expr.op, expr.op)
            return f"({python_text(expr.left, names)} {op} {python_text(expr.right, names)})"
        case _:
            raise TypeError(f"{type(expr).__name__} in the shape of a launch")


def integers(
    expressions: Sequence[Expr], kernel: Kernel | LaunchInfo
) -> Callable[[Mapping[str, Number]], tuple[int, ...]]:
    """A function that computes launch extents or buffer shapes from the values of the sizes and scalars of a kernel."""
    names = {name: f"v[{name!r}]" for name in kernel.sizes}
    names |= {name: f"int(v[{name!r}])" for name, _ in kernel.scalars}
    body = "".join(f"{python_text(expression, names)}, " for expression in expressions)
    return eval(f"lambda v: ({body})")


Steps: TypeAlias = tuple[tuple[str | int, ...], ...]
"""Arithmetic on a list that starts with sizes: every step appends `operation(list[k], ...)`, or a number (`"="`)."""


def steps_of(expr: Expr, sizes: Sequence[str]) -> Steps:
    """An integer expression over sizes as steps, which nothing has to compile; a part that occurs again is computed once.

    Raises:
        TypeError: the expression depends on more than sizes.
    """
    places: dict[Expr, int] = {Size(name): k for k, name in enumerate(sizes)}
    steps: list[tuple[str | int, ...]] = []

    def visit(part: Expr) -> int:
        if isinstance(part, Cast):
            return visit(part.operand)
        if part not in places:
            match part:
                case Const():
                    step: tuple[str | int, ...] = ("=", int(part.value))
                case Unary(op="-"):
                    step = ("neg", visit(part.operand))
                case Select():
                    step = ("?", visit(part.condition), visit(part.then), visit(part.otherwise))
                case Binary() if part.op in _TEXTS:
                    step = (part.op, visit(part.left), visit(part.right))
                case _:
                    raise TypeError(f"{type(part).__name__} in the number of tasks")
            steps.append(step)
            places[part] = len(sizes) + len(steps) - 1
        return places[part]

    last = visit(expr)
    return (*steps, ("is", last))


def follow(steps: Steps, sizes: Sequence[int]) -> int:
    """What the last step gives."""
    values: list[Any] = list(sizes)
    for name, *operands in steps:
        if name == "=":
            values.append(operands[0])
        else:
            values.append(_OPERATIONS[str(name)](*[values[int(k)] for k in operands]))
    return int(values[-1])


def followed(steps: Steps, count: int) -> Callable[..., int]:
    """`follow` of so many sizes as a function of them: making it takes as long as thirty times following, a call a tenth."""
    values = [f"v{k}" for k in range(count)]
    lines = [f"def f({', '.join(values)}):"]
    for k, (name, *operands) in enumerate(steps, count):
        if name == "=":
            values.append(f"({operands[0]!r})")
            continue
        lines.append(f" v{k} = {_TEXTS[str(name)].format(*[values[int(each)] for each in operands])}")
        values.append(f"v{k}")
    lines.append(f" return int({values[-1]})")
    made: dict[str, Callable[..., int]] = {}
    exec("\n".join(lines), made)
    return made["f"]


_TEXTS = {
    "is": "{0}",
    "neg": "-{0}",
    "?": "{1} if {0} else {2}",
    "/": "{0} // {1} if {1} else 0",
    "//": "{0} // {1} if {1} else 0",
    "%": "{0} % {1} if {1} else 0",
    "min": "{0} if {0} <= {1} else {1}",
    "max": "{0} if {0} >= {1} else {1}",
    "&&": "{0} and {1}",
    "||": "{0} or {1}",
    **{op: f"{{0}} {op} {{1}}" for op in ("+", "-", "*", "<", "<=", ">", ">=", "==", "!=")},
}
"""Steps in Python. A quotient by nothing is 0, since both sides of a choice are computed."""

_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    op: eval(f"lambda a, b=0, c=0: {text.format('a', 'b', 'c')}") for op, text in _TEXTS.items()
}


_MOST_FOLLOWED = 8
"""Different sizes after which sizes are taken to change often."""


def counter(steps: Steps) -> Callable[..., int]:
    """The steps as a function; they are followed for sizes that were not seen lately, and compiled where many are new."""
    quick: list[Callable[..., int]] = []

    @lru_cache(maxsize=64)
    def count(*sizes: int) -> int:
        if quick:
            return quick[0](*sizes)
        if count.cache_info().misses > _MOST_FOLLOWED:
            quick.append(followed(steps, len(sizes)))
        return follow(steps, sizes)

    return count


_FORMATS = {
    DType.BOOL: "?7x",
    DType.INT8: "b7x",
    DType.INT16: "h6x",
    DType.INT32: "i4x",
    DType.INT64: "q",
    DType.UINT8: "B7x",
    DType.UINT16: "H6x",
    DType.UINT32: "I4x",
    DType.UINT64: "Q",
    DType.FLOAT16: "e6x",
    DType.BFLOAT16: "H6x",
    DType.FLOAT32: "f4x",
    DType.FLOAT64: "d",
}


def slot_format(argument: Argument) -> str:
    """The `struct` format of one 8-byte slot."""
    if argument.kind == "scalar":
        assert argument.dtype is not None
        return _FORMATS[argument.dtype]
    return "q" if argument.kind in ("size", "stride") else "Q"


def scalar_value(dtype: DType, value: Number) -> Number:
    """What `struct` packs for a number of that type; a `bfloat16` is its rounded bit pattern."""
    if dtype is DType.BFLOAT16:
        return bfloat16_bits(float(value))
    return float(value) if dtype.is_float else value


def bfloat16_bits(value: float) -> int:
    """The nearest `bfloat16` (ties to even) of a number, as 16 bits; NaN stays NaN."""
    with np.errstate(over="ignore"):
        bits = int(np.float32(value).view(np.uint32))
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def slots(arguments: Sequence[Argument]) -> struct.Struct:
    """The packer of all slots of an entry point, in order."""
    return struct.Struct("=" + "".join(slot_format(argument) for argument in arguments))


# the CPU -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel in memory.

    Attributes:
        address: of the entry point.
        positions: of the sizes among the slots.
        count: the sizes -> number of tasks, with a minus where the work is brief; in an order, `IN_ORDER` times as many
            more as may be done at one time.
    """

    address: int
    positions: tuple[int, ...]
    count: Callable[..., int]

    def tasks(self, slots: Any) -> tuple[int, int, bool]:
        """Of a launch with these argument slots: how many tasks it has; how many may be done at one time, if they have an order,
        else 0; and whether it is so little work that no thread is woken for it.
        """
        number = self.count(*[slots[k] for k in self.positions])
        return abs(number) % IN_ORDER, max(0, number) // IN_ORDER, number < 0

    def run(self, slots: Any, thread_count: int | None = None) -> None:
        """Run all tasks; returns when they are done. The GIL is released meanwhile.

        Args:
            slots: a ctypes array of 8-byte slots.
            thread_count: at most this many threads; `None`: the pool's.
        """
        tasks, together, brief = self.tasks(slots)
        if together > 1:
            threads.pool().run_rounds(self.address, ctypes.addressof(slots), tasks, together, thread_count)
        elif tasks:
            threads.pool().run(self.address, ctypes.addressof(slots), tasks, 1 if together else thread_count, brief)


RECORD = 18
"""Words of an error record: the number of the failed check + 1, a spare word, and at most 16 values."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """The function in machine code that a launch calls.

    Attributes:
        name, arguments: as in `KernelSource`.
        workspace: temporary memory of every thread; bytes.
        tasks: from the sizes, in the order of their slots, to the number of tasks, negative if no thread is worth waking.
    """

    name: str
    arguments: tuple[Argument, ...]
    workspace: Buffer | None
    tasks: Steps


def entry_point(source: KernelSource) -> EntryPoint:
    """The entry point of generated CPU code."""
    sizes = tuple(argument.name for argument in source.arguments if argument.kind == "size")
    workspace = source.workspace[0] if source.workspace else None
    return EntryPoint(source.entry, source.arguments, workspace, steps_of(source.launch.grid[0], sizes))


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory of the threads that run a kernel, and how many may."""

    memory: np.ndarray[Any, Any]
    threads: int


@dataclass(slots=True, eq=False)
class CpuLaunch:
    """A launch whose sizes and strides are known.

    Attributes:
        values: what goes into the slots, but for `sources` and `scratch` of the pattern.
        scratch_bytes: memory of every thread.
    """

    pattern: LaunchPattern
    values: Sequence[Number]
    scratch_bytes: int

    def scratch(self) -> Scratch | None:
        """Memory for the threads, if the kernel wants any.

        Raises:
            MemoryError: it does not fit.
        """
        workspace = self.pattern.runner.entry.workspace
        if workspace is None:
            return None
        count = threads.get_threads()  # another thread of Python may change it before the kernel runs
        return Scratch(aligned_empty((self.scratch_bytes * count,), _BYTE, workspace.align), count)

    def slots(self, given: Sequence[Any], scratch: Scratch | None, errors: int = 0) -> Any:
        """The filled slots; `errors` is the address of an error record."""
        pattern, values = self.pattern, [*self.values]
        for slot, place, value in pattern.sources:
            values[slot] = value(given[place])
        if scratch is not None:
            values[pattern.scratch] = numpy_address(scratch.memory)
        if errors:
            values[-1] = errors
        block = pattern.runner.block()
        pattern.runner.pack(block, 0, *values)
        return block

    def __call__(self, given: Sequence[Any], scratch: Scratch | None, errors: int = 0) -> None:
        """Run the kernel."""
        code = self.pattern.runner.code
        code.run(self.slots(given, scratch, errors), None if scratch is None else scratch.threads)


@dataclass(frozen=True, slots=True)
class CpuRunner:
    """Machine code on all threads; every call has slots, workspace and error record of its own.

    Attributes:
        work: sizes and scalars -> bytes of workspace per thread, or `None`.
    """

    kernel: LaunchInfo
    entry: EntryPoint
    code: LoadedKernel
    pack: Callable[..., None]
    block: Any
    work: Callable[[Mapping[str, Number]], tuple[int, ...]] | None

    def __call__(
        self, storage: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> Failure | None:
        """Run the kernel."""
        launch = self.pattern({}).at(storage, sizes, scalars)
        record = (ctypes.c_int64 * RECORD)() if self.kernel.checks else None
        launch((), launch.scratch(), 0 if record is None else ctypes.addressof(record))
        return None if record is None else failure_of(list(record), 2, dict(self.kernel.checks))

    def pattern(self, places: Mapping[str, int]) -> LaunchPattern:
        """The launches at any sizes.

        Args:
            places: of arrays and numbers that are given at the launch.
        """
        count = len(self.entry.arguments)
        pattern = LaunchPattern(self, [0] * count, [], [], [], [], [])
        for slot, argument in enumerate(self.entry.arguments):
            name = argument.name
            match argument.kind:
                case "buffer" if name in places:
                    pattern.sources.append((slot, places[name], numpy_address))
                case "buffer":
                    pattern.buffers.append((slot, name))
                case "stride":
                    pattern.strides.append((slot, name, argument.dimension))
                case "size":
                    pattern.sizes.append((slot, name))
                case "scalar":
                    assert argument.dtype is not None
                    pattern.scalars.append((slot, name, argument.dtype))
                    if name in places:
                        value = bfloat16_bits if argument.dtype is DType.BFLOAT16 else float
                        pattern.sources.append((slot, places[name], value))
                case "workspace":
                    pattern.scratch = slot
                case _:
                    pass  # the error record, which is the last one
        return pattern


@dataclass(slots=True, eq=False)
class LaunchPattern:
    """The launches of a kernel, which differ in sizes, strides, and numbers.

    Attributes:
        zeros: one for every slot.
        buffers, strides, sizes, scalars: slots and whose address, stride, value goes there.
        sources: slot, place among what is given at the launch, and what makes the value of the slot of that.
        scratch: the slot for the address of the memory of the threads.
    """

    runner: CpuRunner
    zeros: list[int]
    buffers: list[tuple[int, str]]
    strides: list[tuple[int, str, int]]
    sizes: list[tuple[int, str]]
    scalars: list[tuple[int, str, DType]]
    sources: list[tuple[int, int, Callable[[Any], Number]]]
    scratch: int = -1

    def at(
        self, storage: Mapping[str, ArrayView], sizes: Mapping[str, int], scalars: Mapping[str, Number]
    ) -> CpuLaunch:
        """The launch at these sizes; `storage` has the buffers and strides that are not given later."""
        values: list[Number] = [*self.zeros]
        for slot, name in self.buffers:
            values[slot] = storage[name].address
        for slot, name, axis in self.strides:
            view = storage[name]
            assert view.dtype is not None
            values[slot] = view.strides[axis] // ITEMSIZE[view.dtype]
        for slot, name in self.sizes:
            values[slot] = sizes[name]
        for slot, name, dtype in self.scalars:
            values[slot] = scalar_value(dtype, scalars[name])
        work = self.runner.work
        return CpuLaunch(self, values, 0 if work is None else work({**sizes, **scalars})[0])


def cpu_runner(kernel: LaunchInfo, entry: EntryPoint, code: LoadedKernel) -> CpuRunner:
    """The runner of loaded code."""
    work = None if entry.workspace is None else integers(entry.workspace.shape, kernel)
    block = ctypes.c_int64 * len(entry.arguments)
    return CpuRunner(kernel, entry, code, slots(entry.arguments).pack_into, block, work)


_BYTE = np.dtype(np.uint8)


def values_of_checks(kernel: Kernel) -> Mapping[int, int]:
    """How many values each check of a kernel reports."""
    checks = (stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Check))
    return {check.number: len(check.values) for check in checks}


def failure_of(record: Sequence[int], first: int, values: Mapping[int, int]) -> Failure | None:
    """The failed check in an error record whose values start at word `first`."""
    if record[0] == 0:
        return None
    number = int(record[0]) - 1
    return (number, *(int(record[first + k]) for k in range(values.get(number, 0))))
