"""What a build for CUDA says about itself without a GPU: launches, resources, a simulated call.

Comes in: a `Build` for a CUDA target, and the sizes or the arguments of a call. Goes out: plain values.

Worked example: `resources(build(program, ranges, layout, cuda_target("sm_80")), numbers)[0].registers` is the number of 32-bit
registers that one thread of the first kernel takes, as ptxas wrote it into the cubin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tc_jupyter.codegen import Argument, KernelSource
from tc_jupyter.diagnostics import codes
from tc_jupyter.loops import Buffer, Kernel
from tc_jupyter.program import DType
from tc_jupyter.ranges.data import UniqueCheck
from tc_jupyter.runtime import cuda
from tc_jupyter.runtime.arguments import call_error, fail
from tc_jupyter.runtime.arrays import NDArray, copied, host_array, numpy_dtype, storage_dtype, view_of
from tc_jupyter.runtime.cubin import Occupancy, Resources, occupancy, read_resources
from tc_jupyter.runtime.kernel import Inputs, Numbers, in_memory, refuse_larger, root_of
from tc_jupyter.runtime.launch import RECORD, failure_of, integers, values_of_checks
from tc_jupyter.runtime.pairs import joined
from tc_jupyter.simulator import DeviceMemory, Finding, GlobalArray
from tc_jupyter.simulator import simulate as simulate_launch

from .accesses import accesses_outside
from .build import Build
from .call_numbers import CallNumbers, points_of
from .simulation_time import in_words, simulation_seconds

Triple = tuple[int, int, int]

SIMULATED = "compute_80"
"""The virtual architecture whose PTX is simulated: no machine code is made."""


class KernelLaunch(NamedTuple):
    """One launch: `kernel` is the `cupy.RawKernel`, or `None` without a GPU; sizes of grid and block along x, y, z."""

    kernel: Any
    name: str
    grid: Triple
    block: Triple
    shared_bytes: int
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel takes of a multiprocessor.

    Attributes:
        registers: 32-bit registers per thread.
        shared_bytes: per block, static and dynamic.
        spill_bytes: bytes of spill stores and loads in the code.
        occupancy: resident warps / most warps of a multiprocessor.
    """

    name: str
    registers: int
    shared_bytes: int
    spill_bytes: int
    occupancy: float
    details: Resources
    limits: Occupancy


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulated call: the results in the order of the signature, what was found wrong, and the report as text."""

    outputs: tuple[NDArray, ...]
    findings: tuple[Finding, ...]
    report: str


def argument_text(argument: Argument) -> str:
    """A parameter for people: `A`, `A.stride.0`, `N`."""
    return f"{argument.name}.stride.{argument.dimension}" if argument.kind == "stride" else argument.name


def launch_shape(kernel: Kernel, source: KernelSource, sizes: Mapping[str, int]) -> tuple[Triple, Triple]:
    """Grid and block at the given sizes.

    Raises:
        KeyError: a size is missing.
    """
    grid = integers(source.launch.grid, kernel)(sizes)
    block = integers(source.launch.block, kernel)(sizes)
    return (grid[0], grid[1], grid[2]), (block[0], block[1], block[2])


def launches(made: Build, sizes: Mapping[str, int], on_device: bool) -> tuple[KernelLaunch, ...]:
    """What will be launched, in order.

    Args:
        on_device: load the kernels, so that each comes with its `cupy.RawKernel`.
    """
    found: list[KernelLaunch] = []
    for kernel, source in zip(made.kernels, made.sources, strict=True):
        grid, block = launch_shape(kernel, source, sizes)
        raw = cuda.load(source, cuda.compile_source(source, made.target)).raw if on_device else None
        order = tuple(argument_text(argument) for argument in source.arguments)
        found.append(KernelLaunch(raw, source.entry, grid, block, source.launch.shared, order))
    return tuple(found)


def resources(made: Build, sizes: Mapping[str, int]) -> tuple[KernelResources, ...]:
    """Registers, shared memory, spills and occupancy of every kernel, read from its cubin.

    Raises:
        BackendError: NVRTC is not installed, or refused the text.
    """
    found: list[KernelResources] = []
    for kernel, source in zip(made.kernels, made.sources, strict=True):
        compiled = cuda.compile_source(source, made.target)
        own = next(item for item in read_resources(compiled.cubin, compiled.log) if item.name == source.entry)
        threads = _threads(kernel, source, sizes, own)
        limits = occupancy(own, threads, made.target.arch, source.launch.shared)
        shared = own.shared_bytes + source.launch.shared
        found.append(KernelResources(own.name, own.registers, shared, own.spill_bytes, limits.fraction, own, limits))
    return tuple(found)


def _threads(kernel: Kernel, source: KernelSource, sizes: Mapping[str, int], own: Resources) -> int:
    """Threads per block; where sizes decide and are not given, the most that the kernel was compiled for."""
    try:
        return math.prod(integers(source.launch.block, kernel)(sizes))
    except KeyError:
        return own.max_threads or 256


def simulate(
    made: Build, inputs: Inputs, numbers: Numbers, call: CallNumbers, seconds: float | None = None
) -> Simulation:
    """Run the generated CUDA code on the CPU, with every access checked.

    Args:
        seconds: how long it may take, as estimated before it begins; `None` for any time.

    Raises:
        CallError: TC507, it takes longer; TC502 or TC612, an array is too large; TC604, a check at a point failed.
        BackendError: NVRTC is not installed.
        SimulationError: the call is too large, or the PTX has something that the simulator does not know.
    """
    if seconds is not None:
        _refuse_longer(seconds, made, numbers)
    run = _SimulatedCall(made, inputs, numbers, call)
    for kernel, source in zip(made.kernels, made.sources, strict=True):
        refuse_larger(kernel.most, numbers.sizes, made.program)
        run.launch(kernel, source)
    pairs = {name: made.program.tensor(name).pairs for name in made.program.results}
    outputs = tuple(joined(run.result(name)) if pairs[name] else run.result(name) for name in pairs)
    # temporaries and the workspace of idle threads may keep elements that nobody needs; reading one is a finding of its own
    results = {root_of(made.program, name) for name in made.program.results}
    missing = tuple(finding for finding in run.memory.unwritten() if finding.array in results)
    return Simulation(outputs, (*run.findings, *missing), "\n\n".join(run.reports))


def _refuse_longer(seconds: float, made: Build, numbers: Numbers) -> None:
    launched = zip(made.kernels, made.sources, strict=True)
    shapes = [(kernel, *launch_shape(kernel, source, numbers.sizes)) for kernel, source in launched]
    estimate = sum(simulation_seconds(kernel, numbers.sizes, grid, block) for kernel, grid, block in shapes)
    if estimate > seconds:
        message = f"the simulation of this call would take about {in_words(estimate)}; the limit is {in_words(seconds)}"
        help = (
            "use smaller arrays: about 100 elements along each dimension reach most branches; `seconds=None` begins it"
        )
        fail(codes.LONG_SIMULATION, message, made.program.source, made.program.span, help=help)


class _SimulatedCall:
    """The state of one simulated call: arrays by buffer name, memory that all launches share."""

    def __init__(self, made: Build, inputs: Inputs, numbers: Numbers, call: CallNumbers) -> None:
        self.made, self.inputs, self.numbers, self.call = made, inputs, numbers, call
        self.memory = DeviceMemory()
        self.arrays: dict[str, NDArray] = {}
        self.findings: list[Finding] = []
        self.reports: list[str] = []
        for name, view in inputs.arrays.items():
            host = view if view.device == "cpu" else view_of(host_array(view.owner))
            make = lambda host=host: host_array(copied(host).owner)  # noqa: E731
            self.arrays[name] = in_memory(make, made.program, name, made.program.tensor(name).dtype, view.shape)
        for name in made.program.results:
            dtype = made.program.tensor(name).dtype
            self.arrays[root_of(made.program, name)] = self.zeros(name, dtype, numbers.shapes[name])

    def launch(self, kernel: Kernel, source: KernelSource) -> None:
        compiled = cuda.compile_source(source, replace(self.made.target, arch=SIMULATED))
        grid, block = launch_shape(kernel, source, self.numbers.sizes)
        if min(grid) <= 0:
            return
        self.findings += self.written_outside(kernel)
        self.findings += self.outside(kernel)
        record = np.zeros(RECORD, np.int64)
        buffers = {buffer.name: buffer for buffer in (*kernel.buffers, *source.workspace)}
        arguments = [self.argument(argument, buffers, kernel, record) for argument in source.arguments]
        done = simulate_launch(
            compiled.ptx, source.entry, grid, block, arguments, source.launch.shared, memory=self.memory, ends=True
        )
        self.findings += self.not_said(done.findings)
        self.reports.append(f"{source.entry}:\n{done.report}")
        failure = failure_of(record.tolist(), 1, values_of_checks(kernel))
        if failure is not None:
            raise call_error(self.call.point(failure), self.made.program.source)

    def outside(self, kernel: Kernel) -> tuple[Finding, ...]:
        """Accesses that leave a dimension of their tensor; elements that nobody wrote so far are not known."""
        arrays = {buffer.name: self.array(buffer, kernel) for buffer in kernel.buffers}
        return accesses_outside(kernel, self.numbers.sizes, self.inputs.scalars, arrays, self.made.program.source)

    def written_outside(self, kernel: Kernel) -> list[Finding]:
        """Left sides that leave a dimension: the loops over the elements of a target leave them out, and calls look before."""
        inside, found = self.call.in_kernel(self.made.kernels), list[Finding]()
        roots = {each.name: root_of(self.made.program, each.name) for each in self.made.program.tensors}
        views = {name: view_of(self.arrays[root]) for name, root in roots.items() if root in self.arrays}
        for number, item in enumerate(self.call.items):
            points = points_of(item)
            if number in inside or isinstance(item, UniqueCheck) or not points.writes:
                continue
            if points.statement not in kernel.statements:
                continue
            problem = self.call.scan(number, self.numbers, views, self.inputs.scalars)
            if problem is not None:
                line = self.made.program.source.position(problem.span.start)[0] + 1
                message = f"{problem.message} ({problem.help})" if problem.help else problem.message
                found.append(Finding("out-of-bounds", message, line, (0, 0, 0), (0, 0, 0), points.tensor))
        return found

    def not_said(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Without accesses outside of an array of which the dimension that they leave is known."""
        said = {(each.kind, each.line, each.array) for each in self.findings}
        return tuple(each for each in findings if (each.kind, each.line, each.array) not in said)

    def argument(
        self, argument: Argument, buffers: Mapping[str, Buffer], kernel: Kernel, record: NDArray
    ) -> GlobalArray | int | np.generic[Any]:
        name = argument.name
        match argument.kind:
            case "buffer" | "workspace":
                buffer = buffers[name]
                array = self.array(buffer, kernel)
                writable = buffer.role != "input" or argument.kind == "workspace"
                return GlobalArray(name, array, writable, name in self.inputs.arrays)
            case "stride":
                array = self.arrays[name]
                return int(array.strides[argument.dimension] // array.itemsize)
            case "size":
                return int(self.numbers.sizes[name])
            case "scalar":
                return cuda.scalar_converter(argument)(self.inputs.scalars[name])
            case _:
                return GlobalArray("error record", record)

    def array(self, buffer: Buffer, kernel: Kernel) -> NDArray:
        found = self.arrays.get(buffer.name)
        if found is None:
            extents = integers(buffer.shape, kernel)({**self.numbers.sizes, **self.inputs.scalars})
            shape = tuple(max(0, extent) for extent in extents)  # a size of 0 may give less
            if shape and buffer.pad:
                shape = (*shape[:-1], shape[-1] + buffer.pad)
            found = self.arrays[buffer.name] = self.zeros(buffer.name, buffer.dtype, shape)
        return found

    def zeros(self, name: str, dtype: DType, shape: tuple[int, ...]) -> NDArray:
        return in_memory(lambda: np.zeros(shape, storage_dtype(dtype)), self.made.program, name, dtype, shape)

    def result(self, name: str) -> NDArray:
        array = self.arrays[root_of(self.made.program, name)]
        dtype = numpy_dtype(self.made.program.tensor(name).dtype)
        return array if dtype is None else array.view(dtype)
