"""The calls of a def that differ in sizes only: arrays of NumPy in row order, and numbers of Python, by code for the CPU.

Comes in: the likeness of a call with sizes that were not seen yet. Goes out: its `Recipe`, made from what all of them share. The
conditions on sizes are looked at as by the general path, which says what is wrong, makes code, and serves all other arguments.

Worked example: a vector that grows by one element each call takes the general path once; then a call reads the shapes, finds
`N=1001`, the class of that size, and the code for the class, and makes one result and one launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from tc_jupyter.loops import Buffer
from tc_jupyter.program import DType, Program
from tc_jupyter.ranges import Fact

from .arguments import Formula, Number, Parameter, misfit
from .arrays import ITEMSIZE, NUMPY, ArrayView, numpy_dtype, row_major, storage_dtype
from .call_recipe import Likeness, Outline, Recipe, launches_of
from .kernel import BoundKernel, Numbers, Step, pitched, root_of
from .launch import CpuLaunch, CpuRunner, LaunchPattern, Runner
from .memory import aligned_empty, empty
from .native_call import PLAIN, WRITABLE
from .within import Scan

_NO_NUMBERS: Mapping[str, Number] = {}
SizeFacts: TypeAlias = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, Fact], ...]]
"""The constants of a class, and facts of other sizes."""
SizeClass: TypeAlias = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, Fact], ...], tuple[int, ...]]
"""Those, and the checks at points that pass."""


class Code(Protocol):
    """What a family asks of its def."""

    program: Program
    parameters: tuple[Parameter, ...]

    def shapes_of(self, sizes: Mapping[str, int]) -> Sequence[tuple[int, ...]] | None:
        """The shapes of the results at the sizes of a call; `None` if something is wrong with them."""
        ...

    def extents_of(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Every size and extent by name."""
        ...

    def numbers_at(self, sizes: Mapping[str, int]) -> Numbers:
        """Shapes and extents at sizes that are right."""
        ...

    def class_on_cpu(self, sizes: Mapping[str, int]) -> SizeClass | None:
        """The class of a call whose loops all have iterations; `None` for others."""
        ...

    def code_on_cpu(self, found: SizeClass, into: bool) -> BoundKernel | None:
        """The code for row-major arrays of a class, if it was made."""
        ...


@dataclass(frozen=True, slots=True)
class _Array:
    """An array that a call is given: its place, its name in the storage, and what is asked of it.

    Attributes:
        dims: as those of `Parameter`; `None` for an array of `out=`, which has the shape of a result.
    """

    place: int
    name: str
    kind: np.dtype[Any]
    dims: tuple[str | int | Formula | None, ...] | None
    flags: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class _Result:
    """A result: its name, where it is stored, and what elements it has."""

    name: str
    root: str
    kind: np.dtype[Any]
    dtype: DType


@dataclass(frozen=True, slots=True)
class _Steps:
    """The code of a class.

    Attributes:
        patterns: a launch per step; none where one depends on more than sizes and numbers.
        extents: whether the steps ask for other extents than the sizes of the signature.
        temporaries: what the steps share, with the extents, and what NumPy stores.
    """

    bound: BoundKernel
    patterns: tuple[LaunchPattern, ...]
    extents: bool
    temporaries: tuple[tuple[Buffer, Callable[[Mapping[str, Number]], tuple[int, ...]], np.dtype[Any]], ...]


class Family:
    """The calls of a def, without `out=` or with it."""

    def __init__(self, code: Code, noted: Sequence[str], written: Sequence[frozenset[int]] | None, check: str) -> None:
        """Find what its calls share.

        Args:
            noted: the sizes that `RecentCalls` wants.
            written: with `out=`, for each result the arguments that may be the same array.
            check: as of `BoundKernel.start`.
        """
        program = code.program
        self.code, self.check, self.noted, self.into = code, check, tuple(noted), written is not None
        self.arrays = [
            _Array(place, each.name, storage_dtype(each.dtype), each.dims, PLAIN, each.dtype)
            for place, each in enumerate(code.parameters)
            if each.rank
        ]
        self.numbers = [(place, each) for place, each in enumerate(code.parameters) if not each.rank]
        self.floats = tuple((place, each) for place, each in self.numbers if each.dtype.is_float)
        typed = [(name, program.tensor(name).dtype) for name in program.results]
        self.results = [_Result(name, root_of(program, name), storage_dtype(dtype), dtype) for name, dtype in typed]
        self.written: tuple[tuple[int, frozenset[int]], ...] = ()
        if written is not None:
            self.written = tuple(enumerate(written, len(code.parameters)))
            for (place, _), each in zip(self.written, self.results, strict=True):
                self.arrays.append(_Array(place, each.root, each.kind, None, PLAIN | WRITABLE, each.dtype))
        self.places = tuple(each.place for each in self.arrays)
        roots = [each.root for each in self.results]
        types = [each.dtype for each in (*self.arrays, *self.results)]
        own = len({*roots, *(each.name for each in code.parameters)}) == len(roots) + len(code.parameters)
        plain = not any(isinstance(dim, Formula) for each in code.parameters for dim in each.dims)
        self.possible = own and plain and all(numpy_dtype(dtype) is not None for dtype in types)
        self._steps: dict[SizeClass, _Steps] = {}

    def at(self, like: Likeness, values: Sequence[Any]) -> Recipe | None:
        """The recipe of a call; `None` where the general path must look, or make code.

        Raises:
            CallError: TC605, a size differs from the one that `specialize=` fixed.
        """
        if not self.possible or len(values) != len(self.code.parameters) + len(self.written):
            return None
        sizes = self._sizes(like)
        scalars = self._scalars(values) if self.numbers else _NO_NUMBERS
        if sizes is None or scalars is None:
            return None
        for _, each in self.numbers:
            if not each.dtype.is_float:
                sizes[each.name] = int(scalars[each.name])
        shapes = self.code.shapes_of(sizes)
        if shapes is None or (self.into and not self._fit(like, shapes)):
            return None
        found = self.code.class_on_cpu(sizes)
        steps = None if found is None else self._steps.get(found) or self._new(found)
        return None if steps is None else self._recipe(steps, like, sizes, shapes, scalars)

    def _sizes(self, like: Likeness) -> dict[str, int] | None:
        """The sizes of the signature, if the arguments have its types and shapes, and elements."""
        sizes: dict[str, int] = {}
        for each in self.arrays:
            described: Any = like[each.place]
            if type(described) is not tuple or len(described) != 4:
                return None
            shape, _, kind, flags = described
            if (kind is not each.kind and kind != each.kind) or flags & each.flags != each.flags or 0 in shape:
                return None
            dims = each.dims
            if dims is None:
                continue
            if len(shape) != len(dims):
                return None
            for dim, extent in zip(dims, shape, strict=True):
                if type(dim) is str:
                    if sizes.setdefault(dim, extent) != extent:
                        return None
                elif dim is not None and dim != extent:
                    return None
        return sizes

    def _scalars(self, values: Sequence[Any]) -> Mapping[str, Number] | None:
        """The numbers, if they fit their types."""
        found: dict[str, Number] = {}
        for place, each in self.numbers:
            value, kind = values[place], type(values[place])
            plain = kind is float or kind is int if each.dtype.is_float else kind is int or kind is bool
            if not plain or misfit(each.dtype, value):
                return None
            found[each.name] = float(value) if each.dtype.is_float else value
        return found

    def _fit(self, like: Likeness, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the arrays of `out=` have the shapes of the results."""
        pairs = zip(self.written, shapes, strict=True)
        return all(cast(Any, like[place])[0] == shape for (place, _), shape in pairs)

    def _new(self, found: SizeClass) -> _Steps | None:
        """What the calls of a class share, if its code was made."""
        bound = self.code.code_on_cpu(found, self.into)
        if bound is None or any(step.kernel.most for step in bound.steps):
            return None
        given = {each.name for each in self.arrays} | {each.root for each in self.results}
        buffers = [pair for step in bound.steps for pair in step.temporaries if pair[0].name not in given]
        first = {each.name: (each, extents, storage_dtype(each.dtype)) for each, extents in reversed(buffers)}
        temporaries = tuple(reversed(first.values()))
        places = {each.name: each.place for each in self.arrays} | {each.name: place for place, each in self.floats}
        made = [*(each.root for each in self.results if not self.into), *(buffer.name for buffer, _, _ in temporaries)]
        places |= {name: place for place, name in enumerate(made, len(self.code.parameters) + len(self.written))}
        patterns = tuple(each for step in bound.steps if (each := self._pattern(bound, step, places)) is not None)
        patterns = patterns if len(patterns) == len(bound.steps) else ()
        signature = {dim for each in self.arrays for dim in each.dims or ()} | {each.name for _, each in self.numbers}
        extents = any(name not in signature for step in bound.steps for name in step.kernel.sizes)
        steps = _Steps(bound, patterns, extents, temporaries)
        self._steps[found] = steps
        return steps

    def _pattern(self, bound: BoundKernel, step: Step, places: Mapping[str, int]) -> LaunchPattern | None:
        """The launches of a step, if nothing about them depends on data, and no array may lie otherwise."""
        whole = Numbers(dict.fromkeys(bound.program.sizes, 1), {}, {})
        looks = self.check == "all" and any(bound.numbers.limits(number, whole, {}) != () for number in step.scans)
        if looks or step.kernel.checks or not isinstance(step.run, CpuRunner):
            return None
        pattern = step.run.pattern(places)
        return None if pattern.strides or pattern.buffers else pattern

    def _recipe(
        self,
        steps: _Steps,
        like: Likeness,
        sizes: Mapping[str, int],
        made: Sequence[tuple[int, ...]],
        scalars: Mapping[str, Number],
    ) -> Recipe:
        """The recipe of a call; `made` are the shapes of the results."""
        makes: list[partial[Any]] = []
        if not self.into:
            for each, shape in zip(self.results, made, strict=True):
                makes.append(partial(empty, shape, each.kind))
        known = self.code.extents_of(sizes) if steps.extents else sizes
        shapes: list[tuple[int, ...]] = []
        if steps.temporaries:
            every = {**known, **scalars} if scalars else known
            for buffer, extents, kind in steps.temporaries:
                shape = tuple([extent if extent > 0 else 0 for extent in extents(every)])
                shapes.append(shape)
                whole = pitched(shape, buffer.pad) if buffer.pad else shape
                makes.append(partial(aligned_empty, whole, kind, buffer.align))
        launches: Sequence[CpuLaunch | Runner] = [pattern.at({}, known, scalars) for pattern in steps.patterns]
        scans, outline = tuple[Scan, ...](), None
        if not launches:
            outline = self._outline(steps, like, sizes, scalars, [*(() if self.into else made), *shapes])
            storage = {name: view for _, name, view in outline.arrays}
            places = {name: place for place, name, _ in outline.arrays}
            places |= {each.name: place for place, each in self.floats}
            launches, scans = launches_of(steps.bound, outline, storage, places, self.check)
        return Recipe(
            steps.bound,
            tuple([sizes[name] for name in self.noted]),
            self.places,
            self.floats,
            makes,
            0 if self.into else len(self.results),
            self.written,
            self.check,
            launches,
            None,
            scans,
            outline,
        )

    def _outline(
        self,
        steps: _Steps,
        like: Likeness,
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number],
        shapes: Sequence[tuple[int, ...]],
    ) -> Outline:
        """What a call is beside its launches; `shapes` of what it makes."""
        arrays = [(each.place, each.name, _view(cast(Any, like[each.place])[0], each.dtype)) for each in self.arrays]
        made = [(each.root, each.dtype, 0) for each in self.results if not self.into]
        made += [(buffer.name, buffer.dtype, buffer.pad) for buffer, _, _ in steps.temporaries]
        first = len(self.code.parameters) + len(self.written)
        for place, ((name, dtype, pad), shape) in enumerate(zip(made, shapes, strict=True), first):
            arrays.append((place, name, _view(shape, dtype, pad)))
        return Outline(self.code.numbers_at(sizes), scalars, tuple(arrays))


def _view(shape: tuple[int, ...], dtype: DType, pad: int = 0) -> ArrayView:
    """A row-major array of NumPy, but for its address."""
    strides = row_major(pitched(shape, pad), ITEMSIZE[dtype])
    return ArrayView(0, shape, strides, dtype, dtype.value, "cpu", True, None, NUMPY)
