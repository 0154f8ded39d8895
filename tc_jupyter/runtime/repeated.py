"""Calls on a GPU that repeat an earlier one: what was found then is used again.

Comes in: a call that the general path has made, with all that it found. Goes out: a `RepeatedCall`, which reads no more than the
addresses of the arrays, makes the results, and launches. Calls are the same (`likeness`) where the arrays have the same library,
shape, strides, type, device and place within 16 bytes, and the integers the same value; numbers with a fraction may differ.

Worked example: `softmax(x)` in a loop finds sizes, shapes, layout, code and grid once; then a call makes one result and one launch.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .arguments import Number, Parameter, read_scalar
from .arrays import ArrayView
from .cuda import CudaRunner, on_device_of
from .kernel import BoundKernel, Inputs, Numbers, root_of
from .launch import Runner

MOST_REPEATED = 256
"""Calls that a function remembers; it forgets all when there are more."""

Likeness = tuple[Hashable, ...]


def likeness(values: Sequence[object]) -> Likeness | None:
    """What calls that repeat each other have in common; `None` if the general path must look at an argument each time."""
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is None:
        return None
    found: list[Hashable] = []
    for value in values:
        kind = type(value)
        if kind is cupy.ndarray:
            data: Any = value.data  # type: ignore[attr-defined]
            found.append((value.shape, value.strides, value.dtype, data.device_id, data.ptr & 15))  # type: ignore[attr-defined]
        elif torch is not None and kind is torch.Tensor:
            part = _of_tensor(torch, value)
            if part is None:
                return None
            found.append(part)
        elif kind is float:
            found.append(float)
        elif kind is int or kind is bool:
            found.append((kind, value))
        else:
            return None
    return tuple(found)


def _of_tensor(torch: Any, tensor: Any) -> Hashable | None:
    """The same of a PyTorch tensor; `None` where reading it takes more than its address."""
    if not tensor.is_cuda or tensor.requires_grad or tensor.layout is not torch.strided or tensor.is_neg():
        return None
    if tensor.is_conj():
        return None
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device(), tensor.data_ptr() & 15


@dataclass(slots=True)
class RepeatedCall:
    """A call that can be made again with other arrays.

    Attributes:
        arrays: place among the arguments, name in the storage, and the view as it was.
        floats: place and parameter of the numbers that may differ.
        made: name in the storage, shape in memory and view of every result, then of every temporary.
        results: how many of `made` are results.
        launches: made by the first repetition; a launch depends on nothing that may differ.
    """

    bound: BoundKernel
    numbers: Numbers
    scalars: Mapping[str, Number]
    arrays: tuple[tuple[int, str, ArrayView], ...]
    floats: tuple[tuple[int, Parameter], ...]
    made: tuple[tuple[str, tuple[int, ...], ArrayView], ...]
    results: int
    launches: tuple[Runner, ...] = ()

    def __call__(self, values: Sequence[Any], check: str) -> Any:
        """The results for other arrays.

        Args:
            check: as of `BoundKernel.start`.

        Raises:
            CallError: TC604, TC607.
            BackendError: a launch failed.
            MemoryError: the results or temporaries do not fit.
        """
        storage = {name: _again(view, values[place]) for place, name, view in self.arrays}
        fresh: list[Any] = []
        with on_device_of(self.made[0][2]):
            for name, shape, view in self.made:
                assert view.library.fresh is not None
                assert view.dtype is not None
                array = view.library.fresh(shape, view.dtype, view.device)
                storage[name] = _again(view, array)
                fresh.append(array)
            self._launch(storage, self._scalars(values), check)
        return fresh[0] if self.results == 1 else tuple(fresh[: self.results])

    def _scalars(self, values: Sequence[Any]) -> Mapping[str, Number]:
        if not self.floats:
            return self.scalars
        source = self.bound.program.source
        return {**self.scalars, **{each.name: read_scalar(each, values[place], source) for place, each in self.floats}}

    def _launch(self, storage: Mapping[str, ArrayView], scalars: Mapping[str, Number], check: str) -> None:
        steps = self.bound.steps
        if not self.launches:
            self.launches = tuple([cast(CudaRunner, each.run).planned(storage, self.numbers.sizes) for each in steps])
        for step, launch in zip(steps, self.launches, strict=True):
            self.bound.start(step, launch, self.numbers, storage, scalars, check)


def _again(view: ArrayView, array: Any) -> ArrayView:
    """The view of another array that differs in its address only."""
    assert view.library.address is not None
    return view.moved(view.library.address(array), array)


def repeated(
    bound: BoundKernel,
    inputs: Inputs,
    numbers: Numbers,
    storage: Mapping[str, ArrayView],
    parameters: Sequence[Parameter],
    values: Sequence[object],
) -> RepeatedCall | None:
    """The call that was just made, to be made again; `None` if it copied an argument, or was not all on a GPU."""
    if not bound.steps or not all(isinstance(step.run, CudaRunner) for step in bound.steps):
        return None
    if any(storage[name] is not view for name, view in inputs.arrays.items()):
        return None
    if any(view.library.address is None or view.device == "cpu" for view in storage.values()):
        return None
    places = list(enumerate(parameters))
    if any(type(values[place]) not in (int, float, bool) for place, each in places if not each.rank):
        return None  # an array of one number, whose value counts
    arrays = tuple((place, each.name, storage[each.name].moved(0, None)) for place, each in places if each.rank)
    floats = tuple((place, each) for place, each in places if type(values[place]) is float)
    results = [root_of(bound.program, name) for name in bound.program.results]
    names = [*results, *(name for name in storage if name not in results and name not in inputs.arrays)]
    made = tuple((name, _shape_in_memory(storage[name]), storage[name].moved(0, None)) for name in names)
    return RepeatedCall(bound, numbers, dict(inputs.scalars), arrays, floats, made, len(results))


def _shape_in_memory(view: ArrayView) -> tuple[int, ...]:
    """Of a temporary with padded rows, whose view is of the elements alone."""
    return tuple(cast(Any, view.owner).shape)
