"""`tc.view(f, name)`: which views there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any

from tc_jupyter.function import Function, OpenRanks
from tc_jupyter.program import Program

from .benchmark import BenchmarkView
from .card import Card
from .code import Code
from .gradient import Gradient
from .iteration_space import IterationSpace
from .live import Shown, widget_of
from .partitions import Partitions
from .picture import Picture
from .ranges import Ranges
from .schedule import ScheduleView
from .tuning import Tuning

VIEWS: dict[str, Callable[..., Picture]] = {
    "ranges": Ranges,
    "iteration_space": IterationSpace,
    "schedule": ScheduleView,
    "code": Code,
    "gradient": Gradient,
    "benchmark": BenchmarkView,
    "tuning": Tuning,
    "partitions": Partitions,
}


def view(function: Function, name: str = "ranges", **options: Any) -> Shown:
    """One view of a function.

    Args:
        name: a key of `VIEWS`.
        options: sizes by name, and what the view takes besides.

    Raises:
        TypeError: a size is no integer.
        ValueError: there is no such view, or no such size.
        CallError: the function takes no arguments of the rank that is given with sizes.
    """
    if name not in VIEWS:
        near = get_close_matches(str(name), VIEWS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no view {name!r}{hint}; there are {', '.join(VIEWS)}")
    parameters = signature(VIEWS[name]).parameters.values()
    others = options.keys() - {each.name for each in parameters if each.kind is not Parameter.VAR_KEYWORD}
    if others:
        options |= _program_of(function, name, options).numbers({name: options[name] for name in sorted(others)})
    return Shown(VIEWS[name](function, **options))


def _program_of(function: Function, name: str, options: Mapping[str, Any]) -> Program:
    """The program whose sizes a view is given.

    Raises:
        ValueError: its ranks are not known, so no size is.
    """
    takes_rank = function.leaves_ranks_open and "rank" in signature(VIEWS[name]).parameters
    rank = options.get("rank") if takes_rank else None
    try:
        return function.program if rank is None else function.at_rank(rank).found.program
    except OpenRanks as problem:
        if takes_rank:
            return function.at_rank(1).found.program
        raise ValueError(f"no sizes can be given yet: {problem}") from None


def live_card(html: str, functions: Mapping[str, Function], text: str = "", predict: bool = False) -> Any:
    """The live card of a cell: its static HTML with the views of its functions under it; `predict`: after it has asked."""
    return widget_of(Card(html, functions, VIEWS, text, predict))
