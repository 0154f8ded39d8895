"""The back half of the arrow: a checked program and what one call tells -> kernels and their text.

Sizes stay symbols all the way, so the machine code that comes out runs with any sizes of the same layout class. A `Build` keeps
every stage; widgets, `f.source(...)` and the command line read it, and nobody computes a stage twice.

Worked example: `build(program, ranges, Layout(frozenset(), 32), cpu_target())` for a matrix product has one kernel whose buffers
are row-major and whose sizes are `M, K, N`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.codegen.llvm import AlikePrinter, emit_as_twin, show_passes
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import Kernel, PointCheck, lower, lower_later, simplify, with_points, without_empty_rounds
from tc_jupyter.program import Program
from tc_jupyter.ranges import Ranges
from tc_jupyter.runtime.cache import default_folder, key_of
from tc_jupyter.runtime.kernel import Layout
from tc_jupyter.schedule import (
    Schedule,
    ScheduleStore,
    StageGraph,
    StoreKey,
    SymbolicBounds,
    Target,
    default_schedule,
    infer_symbolic,
    schedule_of,
)
from tc_jupyter.schedule.inline import expressions_inlined, inject_inline

from .call_numbers import CallNumbers


@dataclass(frozen=True, slots=True)
class Build:
    """Every stage of one back half.

    Attributes:
        kernels: in order of execution, fitted to `layout`.
        sources: one per kernel; empty for the interpreter, which runs the kernels themselves. Kernels for the CPU that are equal
            but for names share a text; `shown` gives each its own.
        scans: per kernel, numbers of the checks on data to run before it; the other checks are inside.
    """

    program: Program
    ranges: Ranges
    layout: Layout
    target: Target
    schedule: Schedule
    bounds: SymbolicBounds
    kernels: tuple[Kernel, ...]
    sources: tuple[KernelSource, ...]
    scans: tuple[tuple[int, ...], ...] = ()

    def passes(self) -> str:
        """The loops for a CPU, as they are lowered and after each rewrite."""
        exclusive = _exclusive(self.bounds.graph)
        return "\n\n".join(show_passes(kernel, self.target, exclusive) for kernel in self.kernels)

    def shown(self) -> tuple[KernelSource, ...]:
        """The sources as people read them: every kernel with names of its own, printed now where another one's code runs."""
        exclusive, named = _exclusive(self.bounds.graph), {kernel.name: kernel for kernel in self.kernels}
        found: list[KernelSource] = []
        for kernel, source in zip(self.kernels, self.sources, strict=True):
            if source.twin_of:
                note = f"what runs is the code of `{source.twin_of}`, which is equal but for names"
                kernel = replace(kernel, comment=(*kernel.comment, note))
                source = emit_as_twin(kernel, named[source.twin_of], self.target, exclusive)
            found.append(source)
        return tuple(found)


def build(
    program: Program,
    ranges: Ranges,
    layout: Layout,
    target: Target,
    schedule: Schedule | None = None,
    checks: CallNumbers | None = None,
    ahead: Callable[[str], object] | None = None,
) -> Build:
    """Run the back half.

    Args:
        layout: strides and index width of the arrays of the call.
        schedule: `None` for the default schedule of the target.
        checks: the checks on data; `None` leaves them out.
        ahead: is told every text after which another one is printed.

    Raises:
        CompileError: TC503, a limit of the device.
    """
    if layout.empty:
        schedule = schedule_of(program, ranges, zeros=True)
    if schedule is None:
        tuned = _tuned(program, ranges, layout, target)
        if tuned is not None:
            try:
                return build(program, ranges, layout, target, tuned, checks, ahead)
            except (CompileError, RuntimeError):  # tuned for other strides or constants: the default always fits
                pass
        schedule = default_schedule(program, ranges, target, dict(layout.facts), dict(layout.most))
    bounds = infer_symbolic(inject_inline(schedule.graph), whole=layout.empty)
    inside: frozenset[int] = frozenset()
    later = lower_later(bounds)
    if checks is not None and checks.items:
        inside = checks.in_kernel(lower(bounds))
        loop_checks = checks.loop_checks(inside, dict(layout.constants), layout.passed)
        later = lower_later(bounds, _inlined(loop_checks, schedule.graph))
    known = layout.facts if target.kind == "cpu" else ()

    def made(number: int) -> Kernel:
        kernel = simplify(_fitted(later[number](), layout))
        if layout.empty:
            kernel = without_empty_rounds(with_points(kernel, checks is not None, zeros=True))
        elif target.kind != "interpreter":
            kernel = simplify(with_points(kernel, checks is not None))
        return replace(kernel, facts=known)

    if target.kind == "cpu":
        kernels, sources = _printed(made, bounds.graph, target, ahead)
    else:
        kernels = tuple(map(made, range(len(later))))
        sources = _emit(kernels, target, layout, program)
    scans = tuple(() if checks is None else checks.scans(kernel, inside, layout.passed) for kernel in kernels)
    return Build(program, ranges, layout, target, schedule, bounds, kernels, sources, scans)


def _inlined(checks: Sequence[PointCheck], graph: StageGraph) -> tuple[PointCheck, ...]:
    """Checks of the statements as written -> of the stages, which hold the expressions of inlined ones."""
    found: list[PointCheck] = []
    for check in checks:
        condition, *values = expressions_inlined(graph, (check.condition, *check.values))
        found.append(replace(check, condition=condition, values=tuple(values)))
    return tuple(found)


def tuning_key(program: Program, target: Target, layout: Layout) -> StoreKey:
    """What a tuned schedule is stored for: text and types of the def, the device, the class of sizes."""
    types = ",".join(f"{tensor.name}:{tensor.dtype.value}" for tensor in program.tensors)
    features = ",".join(sorted(target.features))
    device = f"{target.kind} {target.name} {target.arch} {target.vector_bits} {target.threads} {features}"
    sizes = tuple((name, str(value)) for name, value in (*layout.constants, *layout.facts, *layout.most))
    return StoreKey(key_of(program.language, program.source.text, program.name, types), device, sizes)


def schedule_store() -> ScheduleStore:
    """The schedules of this user: a folder beside the compiled code."""
    folder = default_folder()
    return ScheduleStore(None if folder is None else folder / "schedules")


def _tuned(program: Program, ranges: Ranges, layout: Layout, target: Target) -> Schedule | None:
    """The schedule that `Function.tune` has stored for such calls."""
    if target.kind == "interpreter":
        return None
    return schedule_store().schedule(tuning_key(program, target, layout), schedule_of(program, ranges).graph)


def _fitted(kernel: Kernel, layout: Layout) -> Kernel:
    """Strides as run-time parameters only where the arrays of the call need them."""
    buffers = tuple(
        replace(buffer, strided=buffer.scope == "argument" and buffer.name in layout.strided)
        for buffer in kernel.buffers
    )
    return replace(kernel, buffers=buffers)


def _exclusive(graph: StageGraph) -> frozenset[str]:
    """What one kernel alone writes."""
    written = {(graph.storage_name(stage.target), graph.root(stage).name) for stage in graph.stages}
    kernels = Counter(name for name, _ in written)
    return frozenset(name for name, count in kernels.items() if count == 1)


def _printed(
    made: Callable[[int], Kernel], graph: StageGraph, target: Target, ahead: Callable[[str], object] | None
) -> tuple[tuple[Kernel, ...], tuple[KernelSource, ...]]:
    """The kernels for a CPU and their texts, one made and printed after the other, so that each but the last is told `ahead`."""
    printer = AlikePrinter(target, _exclusive(graph))
    found: dict[int, tuple[Kernel, KernelSource]] = {}
    for number in _turns(graph):
        kernel = made(number)
        source = printer.source(kernel)
        found[number] = kernel, source
        if ahead is not None and len(found) < len(graph.roots) and not source.twin_of:
            ahead(source.text)
    pairs = [found[number] for number in range(len(found))]
    return tuple([kernel for kernel, _ in pairs]), tuple([source for _, source in pairs])


def _turns(graph: StageGraph) -> list[int]:
    """The numbers of the kernels as they are printed: those of fewer temporaries first: code for arguments serves others, too."""
    numbers = {root.name: number for number, root in enumerate(graph.roots)}
    known = {graph.storage_name(name) for name in (*graph.program.parameters, *graph.program.results)}
    temporaries: list[set[str]] = [set() for _ in numbers]
    for stage in graph.stages:
        names = {graph.storage_name(stage.target), *graph.reads(stage)} - known
        temporaries[numbers[graph.root(stage).name]] |= {name for name in names if _is_shared(graph, name)}
    return sorted(range(len(numbers)), key=lambda number: len(temporaries[number]))


def _is_shared(graph: StageGraph, name: str) -> bool:
    return any(graph.scope(stage) == "global" for stage in graph.stages_on(name))


def _emit(kernels: Sequence[Kernel], target: Target, layout: Layout, program: Program) -> tuple[KernelSource, ...]:
    match target.kind:
        case "interpreter":
            return ()
        case "cuda":
            return tuple(emit_cuda(kernel, target, layout.index_bits, source=program.source) for kernel in kernels)
        case _:
            raise ValueError(f"no code generator for `{target.kind}`")
