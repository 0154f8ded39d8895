"""How much work a text may cause, counted in steps and not in seconds: the same text has the same messages on every machine.

Reasoning about sizes can grow much faster than the text: `X((N+M)*(N+M)*..., i)` has exponentially many terms, and extents that are
made of extents double with every statement. So whoever makes an expression says how large it is (`spend`, `bounded`), and
where nothing is left, `TooMuchWork` leaves everything up to the statement, which becomes a message (TC508). Outside of
`allowed` nothing is limited.

Worked example: in `with allowed(10): ...` the eleventh `spend(1)` raises `TooMuchWork`.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from . import codes
from .diagnostic import Diagnostic, Span

T = TypeVar("T")
UNLIMITED = 1 << 62
LARGEST = 4_000
"""Names, numbers and operators of one expression over sizes; what a reader is shown has some ten."""
DEEPEST = 128
"""Levels of one inside the other, as of the quotients in `s / a / b / ...`: later stages recurse over them, with up to five calls
for each, and Python allows 1000 calls."""
DEEPEST_EXTENT = 64
"""Levels of an extent: it becomes code with up to three brackets for each, and Python allows 200 nested brackets."""


class TooMuchWork(Exception):
    """What is being analysed would need more work than it may; `str()` says what was too much."""


class _Work(threading.local):
    left: int = UNLIMITED
    limited: bool = False
    proof: int = -1  # what is left when the proof that is being tried is given up; negative: none is


WORK = _Work()
"""What the analysis of this thread may still spend. Whoever counts in a hot place takes `WORK.left` down itself."""


def spend(steps: int) -> None:
    """Count steps; one takes about a microsecond.

    Raises:
        TooMuchWork: more than are left.
    """
    WORK.left -= steps
    if WORK.left < 0:
        raise TooMuchWork("the analysis would take too long")


def bounded(weight: int, depth: int) -> None:
    """Refuse an expression over sizes that has too many parts, or too many levels; making one is work for all its parts.

    Raises:
        TooMuchWork: it has, or nothing is left.
    """
    if WORK.limited and weight > LARGEST:
        raise TooMuchWork(f"an expression over sizes has more than {LARGEST} parts")
    if WORK.limited and depth > DEEPEST:
        raise TooMuchWork(f"an expression over sizes has more than {DEEPEST} levels")
    spend(weight)


def bounded_extent(depth: int) -> None:
    """Refuse an extent of a tensor that has too many levels.

    Raises:
        TooMuchWork: it has.
    """
    if WORK.limited and depth > DEEPEST_EXTENT:
        raise TooMuchWork(f"an extent has more than {DEEPEST_EXTENT} levels")


@contextmanager
def allowed(steps: int = UNLIMITED, reserve: int | None = None) -> Generator[None]:
    """Let what is inside spend that much; of a limit around it all but a reserve.

    Args:
        reserve: what stays for those that follow; `None`: half of what is left.
    """
    before = WORK.left, WORK.limited
    share = min(steps, before[0] - (before[0] // 2 if reserve is None else reserve)) if before[1] else steps
    WORK.left, WORK.limited = share, True
    try:
        yield
    finally:
        spent = share - max(0, WORK.left)  # what was refused was not done
        WORK.left, WORK.limited = (before[0] - spent if before[1] else before[0]), before[1]


@contextmanager
def uncounted() -> Generator[None]:
    """Let what is inside spend anything, for it is no more than the text or what was counted before."""
    before = WORK.left, WORK.limited
    WORK.left, WORK.limited = UNLIMITED, False
    try:
        yield
    finally:
        WORK.left, WORK.limited = before


def in_turn(items: Sequence[T]) -> Generator[tuple[T, AbstractContextManager[None]]]:
    """The items, each with its limit: half of what is left is for all in equal parts, the other half for whoever is first."""
    part = WORK.left // (2 * max(1, len(items)))
    for at, item in enumerate(items):
        yield item, allowed(reserve=part * (len(items) - 1 - at))


def too_much(
    problem: TooMuchWork,
    span: Span,
    what: str = "its ranges are left out",
    help: str = "split the statement, or give its ranges with short ends: `where i in 0:N`",
) -> Diagnostic:
    """TC508: what stands there is left out."""
    return Diagnostic(codes.TOO_MUCH_WORK, span, f"{problem}; {what}", "too much work", (), help)
