"""The search: candidates in the order of their estimates, each built, checked against the default's result, timed, recorded.

A candidate that cannot be built, crashes, does not end, differs in its result or is far slower is dropped and named. Whenever a
better one is found it is written to the store at once, so a search that is stopped or killed keeps its best; at the end the best is
timed once more, for longer, and gives way if its gain was luck.

Worked example: `search(candidates, workers, seconds=10)` returns a `TuningLog` whose `best` is the fastest trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from tc_jupyter.runtime.timing import duration
from tc_jupyter.schedule import Schedule, ScheduleStore, StoreKey

from .workers import OutOfTime, Stopped, Workers

_CERTAIN = 1.05
"""A candidate must beat the default schedule by this factor to replace it: noise is not a gain."""
_CONFIRMING = 3.0
"""Seconds at the end for timing the best once more, perhaps in a new process; at most a quarter of the time."""


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
        timed = [trial for trial in self.trials[1:] if trial.seconds is not None and not trial.dropped]
        fastest = min(timed, key=lambda trial: trial.seconds or 0.0, default=self.trials[0])
        return fastest if (fastest.seconds or 0.0) * _CERTAIN < self.baseline else self.trials[0]

    @property
    def gain(self) -> float:
        """How many times faster the best is than the default schedule; 1 where that was not measured."""
        best = self.best.seconds
        return 1.0 if best is None else self.baseline / best

    def rows(self) -> list[tuple[str, str, str]]:
        """Name, time, and what happened, fastest first."""
        ordered = sorted(self.trials, key=lambda trial: trial.seconds or float("inf"))
        return [
            (
                f"default: {t.name}" if t is self.trials[0] and t.schedule.steps else t.name,
                "-" if t.seconds is None else duration(t.seconds),
                t.dropped,
            )
            for t in ordered
        ]

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
    workers: Workers,
    seconds: float,
    store: ScheduleStore | None = None,
    key: StoreKey | None = None,
    on_trial: Callable[[TuningLog], None] = lambda log: None,
    stopped: Callable[[], bool] = lambda: False,
) -> TuningLog:
    """Time candidates until the seconds are over, all were tried, `stopped()`, or Ctrl-C.

    The last part of the time is for timing the best once more. What is at work when its time is over is killed, so the search ends
    at most a tenth of a second and the killing of its processes late.

    Args:
        candidates: estimate and schedule; the first is the default schedule, which gives the expected result.
        seconds: how long at most, the starts of processes included.
        workers: their job knows the candidates by their place in `candidates`.
        on_trial: called after every trial.

    Returns:
        The log; a search that was interrupted returns what it has, at least the default schedule, measured or not.

    Raises:
        RuntimeError: the default schedule cannot be measured.
    """
    log = TuningLog(total=len(candidates))
    start = time.perf_counter()
    end, spare = time.monotonic() + seconds, min(_CONFIRMING, seconds / 4)

    def add(number: int, seconds: float | None, dropped: str) -> None:
        cost, schedule = candidates[number]
        log.trials.append(Trial(schedule, cost, seconds, dropped, time.perf_counter() - start))
        if number and store is not None and key is not None and log.best is log.trials[-1]:
            store.put(key, schedule.steps, log.best.seconds or log.baseline)
        workers.ends = end if log.best is log.trials[0] else end - spare
        on_trial(log)

    workers.ends = end
    try:
        add(0, workers.measure(0, None).seconds, "")
        log.stopped = _try(log, candidates, workers, add, stopped)
        workers.ends = end
        _confirm(log, candidates, workers, store, key)
        on_trial(log)
    except OutOfTime:
        log.stopped = "time is over"
        if log.trials and log.best is not log.trials[0]:
            log.stopped += " before the best was timed once more"
        if log.trials:
            on_trial(log)
    except Stopped:
        log.stopped = "stopped"
    except KeyboardInterrupt:
        log.stopped = "interrupted"
    if not log.trials:
        add(0, None, "not measured: " + log.stopped)
    return log


def _try(
    log: TuningLog,
    candidates: Sequence[tuple[float, Schedule]],
    workers: Workers,
    add: Callable[[int, float | None, str], None],
    stopped: Callable[[], bool],
) -> str:
    """Measure one candidate after the other; returns why that ended."""
    try:
        for number, dropped in _built(candidates, workers):
            if stopped():
                return "stopped"
            if time.monotonic() >= workers.ends:
                return "time is over"
            if dropped:
                add(number, None, dropped)
                continue
            found = workers.measure(number, log.best.seconds)
            add(number, found.seconds, found.dropped)
    except OutOfTime:
        return "time is over"
    return "all candidates tried"


def _confirm(
    log: TuningLog,
    candidates: Sequence[tuple[float, Schedule]],
    workers: Workers,
    store: ScheduleStore | None,
    key: StoreKey | None,
) -> None:
    """Time the best once more, until one is confirmed or the default is left; the store then has that one."""
    numbers = {id(schedule): number for number, (_, schedule) in enumerate(candidates)}
    while (best := log.best) is not log.trials[0]:
        found = workers.confirm(numbers[id(best.schedule)], best.seconds)
        place = log.trials.index(best)
        if found.seconds is not None and found.seconds * _CERTAIN < log.baseline:
            log.trials[place] = replace(best, seconds=found.seconds)
            return
        why = found.dropped or "no gain when it was timed once more"
        log.trials[place] = replace(best, seconds=found.seconds, dropped=why)
        if store is not None and key is not None:
            record = store.best(key)
            if record is not None and record.steps == best.schedule.steps:
                store.remove(key)
            if log.best is not log.trials[0]:
                store.put(key, log.best.schedule.steps, log.best.seconds or log.baseline)


def _built(candidates: Sequence[tuple[float, Schedule]], workers: Workers) -> Iterator[tuple[int, str]]:
    """The numbers of all candidates but the default, cheapest first, each with why it cannot be built, if so."""
    order = sorted(range(1, len(candidates)), key=lambda number: candidates[number][0])
    for first in range(0, len(order), workers.batch):
        part = order[first : first + workers.batch]
        dropped: Mapping[int, str] = workers.prepare(part)
        yield from ((number, dropped.get(number, "")) for number in part)
