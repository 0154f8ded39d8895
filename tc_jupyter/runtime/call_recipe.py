"""The recipe of a call: all that a call needed of the general path, so that another one like it only allocates and launches.

Comes in: a call that the general path has made, with all that it found. Goes out: a `Recipe`, which looks at index tensors, makes
the results, puts addresses into the slots of the launches and starts them. Calls are alike (`likeness`) where the arrays have the
same shape, strides, type and device, and the integers the same value; numbers with a fraction may differ. So every condition on
sizes was checked for exactly these sizes. Python follows a recipe for arrays of NumPy, CuPy and PyTorch, and `native_call` follows
the latest one of a def where all of it is code for the CPU. Where only sizes differ, `family` makes the recipe of a call.

Worked example: `softmax(x)` in a loop finds sizes, shapes, layout and code once; then a call makes one result and one launch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from tc_jupyter.program import DType

from . import threads
from .alternating import Alternating, alternating
from .arguments import LARGEST, Number, Parameter, misfit, read_scalar
from .arrays import ArrayView, apart, share_elements
from .cuda import CudaRunner, on_device_of
from .kernel import BoundKernel, Inputs, Numbers, Step, root_of
from .launch import CpuLaunch, CpuRunner, Runner
from .memory import aligned_empty, empty
from .native_call import (
    MOST_BYTES,
    MOST_KEPT_BYTES,
    MOST_TASKS,
    PLAIN,
    WRITABLE,
    NativeCall,
    PlannedKernel,
)
from .pairs import Pairs
from .within import Scan, comparable

Likeness: TypeAlias = tuple[Hashable, ...]

_FLAGS = PLAIN | WRITABLE
"""Flags of an array of NumPy that a recipe depends on: row order, aligned elements, and that it may be written into."""


def likeness(values: Sequence[object], floats: Container[int] = ()) -> Likeness | None:
    """What calls that repeat each other have in common; `None` if the general path must look at an argument each time.

    Args:
        floats: the places of numbers that are floating, also where an integer is given.
    """
    found: list[Hashable] = []
    for place, value in enumerate(values):
        kind = type(value)
        if kind is np.ndarray:
            array = cast("np.ndarray[Any, Any]", value)
            found.append((array.shape, array.strides, array.dtype, array.flags.num & _FLAGS))
        elif kind is float or (kind is int and place in floats):
            found.append(float)
        elif kind is int or kind is bool:
            found.append((kind, value))
        else:
            part = _on_gpu(kind, value)
            if part is None:
                return None
            found.append(part)
    return tuple(found)


def _on_gpu(kind: type, array: Any) -> Hashable | None:
    """The same of an array on a GPU; `None` where reading it takes more than its address."""
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is None:
        return None
    if kind is cupy.ndarray:
        return array.shape, array.strides, array.dtype, array.data.device_id, array.data.ptr & 15
    if torch is None or kind is not torch.Tensor or not array.is_cuda or array.requires_grad:
        return None
    if array.layout is not torch.strided or array.is_neg() or array.is_conj():
        return None
    return array.shape, array.stride(), array.dtype, array.get_device(), array.data_ptr() & 15


@dataclass(frozen=True, slots=True)
class Outline:
    """A call as the general path sees it, without its arrays.

    Attributes:
        arrays: place among the arguments (those of `out=` follow the others, and what the call makes those), name in the storage,
            and the view as it was.
    """

    numbers: Numbers
    scalars: Mapping[str, Number]
    arrays: tuple[tuple[int, str, ArrayView], ...]


@dataclass(slots=True, eq=False)
class Recipe:
    """A call that can be made again with other arrays.

    Attributes:
        noted: the sizes, as `RecentCalls` wants them.
        places: of arrays among the arguments.
        floats: place and parameter of the numbers that may differ.
        makes: every result, then every temporary.
        results: how many of `makes` are results.
        written: for each argument of `out=`, its place and those of the arguments that may be the same array.
        on: an array on the GPU that works.
        scans: of the index tensors that nothing but limits is asked of.
        launches: for each step of the kernel; a launch depends on nothing that may differ.
        outline: the call as the general path sees it, for launches that are no `CpuLaunch`.
        planned: whether `native_call` may follow it.
    """

    bound: BoundKernel
    noted: tuple[int, ...]
    places: tuple[int, ...]
    floats: tuple[tuple[int, Parameter], ...]
    makes: Sequence[partial[Any]]
    results: int
    written: tuple[tuple[int, frozenset[int]], ...]
    check: str
    launches: Sequence[CpuLaunch | Runner]
    on: ArrayView | None = None
    scans: tuple[Scan, ...] = ()
    outline: Outline | None = None
    planned: bool = True

    def __call__(self, values: Sequence[Any]) -> Any:
        """The results for other arrays, an empty tuple with `out=`; `None` where the general path has to look.

        Raises:
            CallError: TC604, TC607.
            BackendError: a launch failed.
            MemoryError: the results or temporaries do not fit.
        """
        for place, parameter in self.floats:
            if misfit(parameter.dtype, values[place]):
                return None
        if self.written:
            found = self._apart(values)
            if found is None:
                return None
            values = found
        if self.on is None:
            return self._made(values)
        with on_device_of(self.on):
            return self._made(values)

    def _made(self, values: Sequence[Any]) -> Any:
        fresh = [make() for make in self.makes]
        every = [*values, *fresh]
        for scan in self.scans:
            if scan.fails(values):
                return None
        self._launch(every)
        return fresh[0] if self.results == 1 else tuple(fresh[: self.results])

    def _apart(self, values: Sequence[Any]) -> list[Any] | None:
        """The arguments, with copies of those that are the same array as one of `out=`; `None` where others share memory."""
        found = list(values)
        for target, same in self.written:
            for place in self.places:
                if place >= target:
                    continue
                # code may compute an element twice: what it reads must not change meanwhile
                other = apart(found[place], values[target])
                if other is None or (other is not found[place] and place not in same):
                    return None
                found[place] = other
        return found

    def _launch(self, every: Sequence[Any]) -> None:
        # all memory of threads is there before the first kernel runs
        scratch = [each.scratch() if isinstance(each, CpuLaunch) else None for each in self.launches]
        storage: Mapping[str, ArrayView] | None = None
        scalars: Mapping[str, Number] = {}
        for k, launch in enumerate(self.launches):
            if isinstance(launch, CpuLaunch):
                launch(every, scratch[k])
                continue
            assert self.outline is not None
            if storage is None:
                storage = {name: _again(view, every[place]) for place, name, view in self.outline.arrays}
                scalars = self._scalars(self.outline, every)
            self.bound.start(self.bound.steps[k], launch, self.outline.numbers, storage, scalars, self.check)

    def _scalars(self, outline: Outline, values: Sequence[Any]) -> Mapping[str, Number]:
        source = self.bound.program.source
        given = {each.name: read_scalar(each, values[place], source) for place, each in self.floats}
        return {**outline.scalars, **given}

    def again(self, even: Sequence[Any], odd: Sequence[Any]) -> Alternating | None:
        """A native loop of this call, whose arguments and arrays of `out=` take turns; `None` where Python looks every time."""
        fresh = [make() for make in self.makes]
        launches = [each for each in self.launches if isinstance(each, CpuLaunch)]
        if self.on is not None or self.scans or len(launches) < len(self.launches):
            return None
        return alternating(launches, [*even, *fresh], [*odd, *fresh])

    def plan(self, native: NativeCall, values: Sequence[Any], pairs: Pairs | None = None) -> bool | None:
        """Whether `native` follows this recipe from now on; `None` where that may be so later.

        Args:
            pairs: the complex numbers, which `native` gets and makes: their memory is that of the pairs of floats.
        """
        changes, count = threads.CHANGES.value, threads.get_threads()
        if native.taken:
            return None
        read = len(values) - len(self.written)
        if not all(isinstance(launch, CpuLaunch) for launch in self.launches):
            return False
        if any(each.dtype not in (DType.FLOAT32, DType.FLOAT64) for _, each in self.floats):
            return False
        made = [math.prod(make.args[0]) * make.args[1].itemsize for make in self.makes[: self.results]]
        if sum(values[place].nbytes for place in self.places) + sum(made) > MOST_BYTES:
            return False
        if any(
            share_elements(values[target], values[k]) for target, _ in self.written for k in self.places if k < target
        ):
            return None
        fresh = [make() for make in self.makes]
        results, temporary = fresh[: self.results], fresh[self.results :]
        every = [*values, *fresh]
        single = {place for place, each in self.floats if each.dtype is DType.FLOAT32}
        kernels: list[PlannedKernel] = []
        for launch in cast("Sequence[CpuLaunch]", self.launches):
            scratch = launch.scratch()
            block = launch.slots(every, scratch)
            code = launch.pattern.runner.code
            tasks, together, brief = code.tasks(block)
            if not 0 < tasks < MOST_TASKS or together > 1:
                return False
            moving = range(len(values) + self.results)
            sources = [(slot, place, place in single) for slot, place, _ in launch.pattern.sources if place in moving]
            temporary += [] if scratch is None else [scratch.memory]
            most = together or min(tasks, count)
            kernels.append(PlannedKernel(code.address, block, sources, tasks, most, brief))
        if sum(each.nbytes for each in temporary) > MOST_KEPT_BYTES:
            return False
        largest = {place: LARGEST[each.dtype] for place, each in self.floats}
        if pairs is not None and not pairs.are_arrays:
            return False  # a kernel has the address of the parts of a number
        every = values if pairs is None else pairs.joined(values)
        results = results if pairs is None else [pairs.number(k, each) for k, each in enumerate(results)]
        given = every[:read], results, kernels, temporary, every[read:]
        return native.record(*given, changes, self.scans, largest)


def _again(view: ArrayView, array: Any) -> ArrayView:
    """The view of another array that differs in its address only."""
    assert view.library.address is not None
    return view.moved(view.library.address(array), array)


@dataclass(frozen=True, slots=True)
class Found:
    """What the general path found for a call.

    Attributes:
        storage: where every buffer was.
        noted: the sizes, as `RecentCalls` wants them.
    """

    bound: BoundKernel
    inputs: Inputs
    numbers: Numbers
    storage: Mapping[str, ArrayView]
    noted: tuple[int, ...]


def recipe(
    found: Found,
    parameters: Sequence[Parameter],
    values: Sequence[object],
    same: frozenset[tuple[str, str]],
    check: str,
) -> Recipe | None:
    """What makes the call again that was just made; `None` if it copied an argument, or arrays are of other libraries.

    Args:
        values: the arguments, then those of `out=`.
        same: pairs of a parameter and a result that may be the same array.
        check: as of `BoundKernel.start`.
    """
    bound, inputs, storage = found.bound, found.inputs, found.storage
    program, read = bound.program, len(parameters)
    own = [(place, each.name) for place, each in enumerate(parameters) if each.rank]
    roots = [root_of(program, name) for name in program.results]
    given = list(enumerate(roots, read)) if len(values) > read else []
    arrays = tuple((place, name, storage[name]) for place, name in (*own, *given))
    if given and any(view.device != "cpu" for _, _, view in arrays):
        return None
    if any(storage[name] is not view for name, view in inputs.arrays.items()):
        return None
    for place, _, view in arrays:
        # an argument that is also in `out=` was copied, which `_apart` does
        itself = view.device != "cpu" or view.owner is values[place]
        if not itself and (place >= read or view.strides != cast("np.ndarray[Any, Any]", values[place]).strides):
            return None
    if any(view.library.address is None for view in storage.values()):
        return None
    single = [(place, each) for place, each in enumerate(parameters) if not each.rank]
    if any(type(values[place]) not in (int, float, bool) for place, _ in single):
        return None  # an array of one number, whose value counts
    floats = tuple((k, each) for k, each in single if each.dtype.is_float and type(values[k]) is not bool)
    results = [] if given else roots
    read_or_written = {name for _, name, _ in arrays}
    names = [*results, *(name for name in storage if name not in results and name not in read_or_written)]
    makes = tuple(_make(bound, name, storage[name], name in results) for name in names)
    written = tuple(
        (place, frozenset(k for k, name in own if (name, result) in same))
        for (place, _), result in zip(given, program.results, strict=False)
    )
    places = tuple(place for place, _, _ in arrays)
    arrays = (*arrays, *((place, name, storage[name]) for place, name in enumerate(names, len(values))))
    views = tuple((place, name, view.moved(0, None)) for place, name, view in arrays)
    outline = Outline(found.numbers, dict(inputs.scalars), views)
    on = next((storage[name] for name in (*names, *storage) if storage[name].device != "cpu"), None)
    slots = {name: place for place, name, _ in views} | {each.name: place for place, each in floats}
    launches, scans = launches_of(bound, outline, storage, slots, check)
    common = floats, makes, len(results), written, check, launches
    return Recipe(bound, found.noted, places, *common, None if on is None else on.moved(0, None), scans, outline)


def launches_of(
    bound: BoundKernel, outline: Outline, storage: Mapping[str, ArrayView], places: Mapping[str, int], check: str
) -> tuple[tuple[CpuLaunch | Runner, ...], tuple[Scan, ...]]:
    """What launches, for each step, and what is looked at before; `places` of arrays and numbers that may differ."""
    sizes = outline.numbers.sizes
    launches: list[CpuLaunch | Runner] = []
    scans: list[Scan] = []
    for step in bound.steps:
        run, looks = step.run, _scans(bound, step, outline, storage) if check == "all" else []
        if isinstance(run, CpuRunner) and not step.kernel.checks and looks is not None:
            launches.append(run.pattern(places).at(storage, sizes, outline.scalars))
            scans += looks
        elif isinstance(run, CudaRunner) and all(view.device != "cpu" for view in storage.values()):
            launches.append(run.planned(storage, sizes))
        else:
            launches.append(run)
    return tuple(launches), tuple(dict.fromkeys(scans))


def _scans(bound: BoundKernel, step: Step, outline: Outline, storage: Mapping[str, ArrayView]) -> list[Scan] | None:
    """The checks on data before a step, if they are limits of whole arguments."""
    found: list[Scan] = []
    inputs = {name: (place, view) for place, name, view in outline.arrays if name in bound.program.parameters}
    for number in step.scans:
        limits = bound.numbers.limits(number, outline.numbers, storage)
        if limits is None or not all(name in inputs for name, *_ in limits):
            return None
        for name, least, most, rising in limits:
            place, view = inputs[name]
            if not view.contiguous or view.dtype is None or not comparable(view.dtype, least, most, rising):
                return None
            if view.elements:
                found.append(Scan(place, view.dtype, view.elements, least, most, rising))
    return found


def _make(bound: BoundKernel, name: str, view: ArrayView, result: bool) -> partial[Any]:
    owner = cast(Any, view.owner)
    assert view.dtype is not None
    if view.device != "cpu":
        assert view.library.fresh is not None
        return partial(view.library.fresh, owner.shape, view.dtype, view.device)
    if result:
        return partial(empty, owner.shape, owner.dtype)
    buffers = (buffer for step in bound.steps for buffer, _ in step.temporaries)
    align = next(buffer.align for buffer in buffers if buffer.name == name)
    return partial(aligned_empty, owner.shape, owner.dtype, align)
