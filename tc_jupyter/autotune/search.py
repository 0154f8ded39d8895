"""The search: candidates in the order of their estimates, each built, checked against the default's result, timed, recorded.

A candidate that cannot be built, fails, differs in its result or is far slower is dropped and named. Whenever a better one is
found it is written to the store at once, so a search that is stopped or killed keeps its best.

Worked example: `search(candidates, run_of, expected, close, seconds=10)` returns a `TuningLog` whose `best` is the fastest trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from tc_jupyter.runtime.timing import benchmark, duration
from tc_jupyter.schedule import Schedule, ScheduleStore, StoreKey

HOPELESS = 5.0
"""A candidate whose first call takes this many times the best is not timed further."""
_SLICE = 0.05
_CERTAIN = 1.03
"""A candidate must beat the default schedule by this factor to replace it: noise is not a gain."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate.

    Attributes:
        schedule: what was tried; the first trial of a log is the default schedule.
        estimate: of the cost model; only comparable within one log.
        seconds: median per call; `None` where it was dropped.
        dropped: why, or empty.
        at: seconds since the search began.
    """

    schedule: Schedule
    estimate: float
    seconds: float | None
    dropped: str = ""
    at: float = 0.0

    @property
    def name(self) -> str:
        """The steps in one line."""
        return "".join(step.to_python() for step in self.schedule.steps)[1:] or "default"


@dataclass(slots=True, repr=False)
class TuningLog:
    """All trials of a search, in order; prints as a table.

    Attributes:
        total: number of candidates there were.
        stopped: why the search ended.
    """

    trials: list[Trial] = field(default_factory=list[Trial])
    total: int = 0
    stopped: str = ""

    @property
    def baseline(self) -> float:
        """Seconds of the default schedule."""
        return self.trials[0].seconds or float("inf") if self.trials else float("inf")

    @property
    def best(self) -> Trial:
        """The fastest trial; the default schedule where no other is clearly faster."""
        timed = [trial for trial in self.trials[1:] if trial.seconds is not None]
        fastest = min(timed, key=lambda trial: trial.seconds or 0.0, default=self.trials[0])
        return fastest if (fastest.seconds or 0.0) * _CERTAIN < self.baseline else self.trials[0]

    @property
    def gain(self) -> float:
        """How many times faster the best is than the default schedule."""
        return self.baseline / (self.best.seconds or self.baseline)

    def rows(self) -> list[tuple[str, str, str]]:
        """Name, time, and what happened, fastest first."""
        ordered = sorted(self.trials, key=lambda trial: trial.seconds or float("inf"))
        return [(t.name, "-" if t.seconds is None else duration(t.seconds), t.dropped) for t in ordered]

    def __str__(self) -> str:
        head = f"{len(self.trials)} of {self.total} candidates, {self.gain:.2f} times the default ({self.stopped})"
        return "\n".join([head, *(f"{time:>9}  {name[:100]}  {why}".rstrip() for name, time, why in self.rows())])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        cells = ((time, f"<code>{escape(name[:200])}</code>", escape(why)) for name, time, why in self.rows()[:60])
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
        head = "<tr><th>time</th><th>schedule</th><th></th></tr>"
        title = escape(str(self).split("\n")[0])
        return f"<div>{title}</div><table><thead>{head}</thead><tbody>{body}</tbody></table>"


def search(
    candidates: Sequence[tuple[float, Schedule]],
    run_of: Callable[[Schedule], Callable[[], Any]],
    same: Callable[[Any, Any], bool],
    seconds: float,
    store: ScheduleStore | None = None,
    key: StoreKey | None = None,
    on_trial: Callable[[TuningLog], None] = lambda log: None,
    stopped: Callable[[], bool] = lambda: False,
) -> TuningLog:
    """Time candidates until the seconds are over, all were tried, `stopped()`, or Ctrl-C.

    Args:
        candidates: estimate and schedule; the first is the default schedule, which gives the expected result.
        run_of: makes a schedule callable without arguments.
        same: whether two results agree.
        on_trial: called after every trial.

    Returns:
        The log; a search that was interrupted returns what it has.
    """
    log = TuningLog(total=len(candidates))
    start = time.perf_counter()
    try:
        default = run_of(candidates[0][1])
        expected = default()
        base = benchmark({"default": default}, _SLICE)[0].median
        log.trials.append(Trial(candidates[0][1], candidates[0][0], base, "", time.perf_counter() - start))
        on_trial(log)
        for cost, schedule in sorted(candidates[1:], key=lambda pair: pair[0]):
            if stopped():
                log.stopped = "stopped"
                return log
            if time.perf_counter() - start > seconds:
                log.stopped = "time is over"
                return log
            taken, dropped = _tried(schedule, run_of, same, expected, default, log)
            log.trials.append(Trial(schedule, cost, taken, dropped, time.perf_counter() - start))
            if store is not None and key is not None and log.best is log.trials[-1]:
                store.put(key, schedule.steps, log.best.seconds or base)
            on_trial(log)
        log.stopped = "all candidates tried"
    except KeyboardInterrupt:
        log.stopped = "interrupted"
    return log


def _tried(
    schedule: Schedule,
    run_of: Callable[[Schedule], Callable[[], Any]],
    same: Callable[[Any, Any], bool],
    expected: Any,
    default: Callable[[], Any],
    log: TuningLog,
) -> tuple[float | None, str]:
    """Median seconds of a candidate, or why it is dropped; timed in turn with the default, on which the clock is corrected."""
    try:
        run = run_of(schedule)
        found = run()
        begin = time.perf_counter()
        run()
        once = time.perf_counter() - begin
    except Exception as problem:  # whatever a candidate does, the search goes on
        return None, f"failed: {type(problem).__name__}: {str(problem).splitlines()[0][:120] if str(problem) else ''}"
    if not same(expected, found):
        return None, "wrong result"
    best = log.best.seconds or once
    if once > HOPELESS * max(best, 1e-5):
        return None, f"too slow: {duration(once)}"
    both = benchmark({"default": default, "candidate": run}, _SLICE * 2)
    # a busy neighbour slows both: the ratio counts
    return both[1].median / max(both[0].median, 1e-12) * log.baseline, ""
