"""A def as PyTorch and JAX see it where they trace a call, and defs that are derived from it; nothing here loads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .arguments import Parameter

Outlines = list[tuple[tuple[Any, ...], str]]
"""Shape and type of each result."""


class Traceable(Protocol):
    """A def; the arguments of its methods are in the order of the parameters."""

    @property
    def key(self) -> str:
        """What names it; equal for equal texts."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def written(self) -> tuple[Parameter, ...]:
        """Its parameters."""
        ...

    @property
    def shaping(self) -> frozenset[int]:
        """Places of the numbers on which shapes depend."""
        ...

    @property
    def float_results(self) -> tuple[bool, ...]:
        """Whether each result is a float."""
        ...

    def run(self, args: Sequence[Any]) -> Sequence[Any]:
        """The results of a call that nobody records."""
        ...

    def run_into(self, args: Sequence[Any], results: Sequence[Any]) -> None:
        """The same into arrays."""
        ...

    def dispatcher(self) -> Callable[..., Any]:
        """The function of positional arguments that a call runs."""
        ...

    def outlines(self, args: Sequence[Any]) -> Outlines:
        """Of arguments without elements; sizes may be symbols of PyTorch."""
        ...

    def shapes_for(self, args: Sequence[Any]) -> Outlines:
        """Of arguments without elements; `None` stands for a number that is not known."""
        ...

    def tangent_of(self, places: tuple[int, ...]) -> Lean:
        """The def of the derivatives of the results along some parameters, which takes these directions behind the others."""
        ...

    def backward_of(self, places: tuple[int, ...]) -> tuple[Lean, tuple[int, ...]]:
        """The def of the derivatives by some parameters, and the places of those by which it derives."""
        ...

    def batched(self, places: tuple[int, ...]) -> tuple[Traceable, tuple[bool, ...]]:
        """The def for many calls, between which some arguments differ, and which results do."""
        ...


@dataclass(frozen=True, slots=True)
class Lean:
    """A derived def, which takes some parameters and results of the def it is about, and others behind them.

    Attributes:
        about: the derived def.
        takes: places of the parameters.
        saved: places of the results.
        reads: places of the parameters of which elements are read.
    """

    about: Traceable
    takes: tuple[int, ...]
    saved: tuple[int, ...]
    reads: frozenset[int]
