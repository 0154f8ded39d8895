"""What a call runs: a recipe where there is one for calls like it, the general path otherwise, and where it can, no Python at all.

Comes in: what a def knows of its calls. Goes out: a function of the positional arguments. With `out=` the arrays to write into are
arguments after the others.

Worked example: the first call with two matrices takes the general path, which keeps a recipe; the second one follows the recipe and
hands it to `native_call`, which makes the third one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import numpy as np

from tc_jupyter.diagnostics import CallError
from tc_jupyter.program import DType

from . import native_call
from .arguments import Parameter
from .arrays import adopted, lent, plain_number
from .autograd import is_recorded, is_traced_by_jax, written
from .call_recipe import Likeness, Recipe, likeness
from .native_call import NativeCall
from .nvrtc import BackendError
from .pairs import Pairs
from .recent_sizes import RecentCalls

_QUICK_PLANS, _MOST_REPEATS = 8, 1 << 8


@dataclass(slots=True)
class Dispatcher:
    """The calls of one def, without `out=` or with it.

    Attributes:
        parameters, results: of the def; the types of results in order.
        recipes: by likeness of the arguments; the general path adds to them. `None`: of a call that was made once, or cannot be.
        resized: a recipe for a likeness without one, if a call differs from others in sizes only; it is added as well.
        general: all arguments as a tuple -> results; always right.
        recent: is told the sizes of every call.
        floats: as `likeness` takes them.
        on_cpu: calls may run code for the CPU, and have recipes.
        into: the arrays of `out=` come after the other arguments.
        record: makes a call that PyTorch or JAX follows, or nothing if the def has no derivative.
        pairs: the complex numbers among arguments and results, which recipes know as pairs of floats.
        function: of the positional arguments.
        native: the native entry point, if there is one; it is told the recipe that was followed. That takes as long as some fifty
            calls, so after `_QUICK_PLANS` of them a recipe has to be followed two, four, ... times in a row: they may alternate.
        arrays: whether each parameter has dimensions.
        latest: the recipe that Python followed last, `repeats` times in a row.
    """

    parameters: Sequence[Parameter]
    results: Sequence[DType]
    recipes: Mapping[Likeness, Recipe | None]
    resized: Callable[[Likeness, tuple[Any, ...]], Recipe | None]
    general: Callable[[tuple[Any, ...]], Any]
    recent: RecentCalls
    floats: frozenset[int]
    on_cpu: bool
    into: bool = False
    record: Callable[[tuple[Any, ...]], Any] | None = None
    pairs: Pairs | None = None
    function: Callable[..., Any] = field(init=False)
    native: NativeCall | None = None
    latest: Recipe | None = None
    repeats: int = 0
    plans: int = 0
    arrays: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        """Make the function."""
        kinds = enumerate(self.parameters)
        self.arrays = tuple(each.rank > 0 if self.pairs is None else self.pairs.kinds[k][1] for k, each in kinds)
        self.function = self.python
        if self.on_cpu and self.parameters and native_call.available():
            self.native = NativeCall(self.python, "call")
            self.function = self.native.function

    def python(self, *args: Any) -> Any:
        """A call by Python."""
        plain = self.with_numbers(args)
        if plain is not None:
            with suppress(CallError):
                return self.function(*plain)
            return self.general(args)
        given = args if self.pairs is None else self.pairs.split(args)
        like = None if given is None else likeness(given, self.floats)
        if like is None or given is None:
            return self.foreign(args)
        known = self.recipes.get(like)
        recipe = known or self.resized(like, given)
        if recipe is None:
            return self.general(args)
        try:
            found = recipe(given)
        except (MemoryError, BackendError):
            found = None  # the general path says what does not fit, or run
        if found is None:
            return self.general(args)
        if recipe.noted != self.recent.last:
            self.recent.note(recipe.noted)
        if known is not None and self.native is not None and recipe.planned:
            self.watch(self.native, recipe, given)
        return found if self.pairs is None or self.into else self.pairs.numbers(found)

    def with_numbers(self, args: tuple[Any, ...]) -> list[Any] | None:
        """The arguments with numbers of NumPy as Python's, and integers as the floats that they stand for; `None` without such."""
        found = list(args)
        for place, is_array in enumerate(self.arrays[: len(args)]):
            if not is_array:
                found[place] = plain_number(args[place], self.pairs is None and place in self.floats)
        return None if all(map(is_, found, args)) else found

    def watch(self, native: NativeCall, recipe: Recipe, args: tuple[Any, ...]) -> None:
        """Plan the native entry point if this recipe was followed some times in a row."""
        self.repeats = self.repeats + 1 if recipe is self.latest else 1
        self.latest = recipe
        if self.repeats >= min(1 << max(0, self.plans - _QUICK_PLANS), _MOST_REPEATS):
            planned = recipe.plan(native, args, self.pairs)
            self.plans += planned is True
            recipe.planned = planned is not False

    def foreign(self, args: tuple[Any, ...]) -> Any:
        """A call that PyTorch or JAX follows, or one with arrays that are lent."""
        if self.record is not None and (is_recorded(args) or is_traced_by_jax(args)):
            found = self.record(args)
            if found is not None:
                return found
        return self.lent(args)

    def lent(self, args: tuple[Any, ...]) -> Any:
        """Call with PyTorch's tensors and JAX's arrays on the CPU as NumPy's arrays, those of one number as that.

        What is not so, or wrong, takes the general way, which says it in the words of the library.
        """
        read, kinds = len(self.parameters), self.arrays
        if len(args) == read + len(self.results) * self.into:
            plain = [
                lent(value, k >= read) if k >= read or kinds[k] else _lent_number(value) for k, value in enumerate(args)
            ]
            changed = [k for k, mine in enumerate(plain) if mine is not args[k]]
            if changed and all([mine is not None for mine in plain]):
                with suppress(CallError):
                    found = self.function(*plain)
                    if self.into:
                        written(args[read:])
                    first = next((k for k in changed if isinstance(plain[k], np.ndarray)), None)
                    return found if first is None or self.into else adopted(found, args[first])
        return self.general(args)


def _lent_number(value: Any) -> Any:
    """The number in a tensor without dimensions, which `with_numbers` looks at; anything else as it is."""
    array = lent(value, False)
    return value if array is None else plain_number(array, False)
