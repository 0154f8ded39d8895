"""A search for a faster schedule that can be watched and stopped: best so far against time, every schedule that was tried.

Worked example: `tc.view(matmul, "tuning", M=256, K=256, N=256)`, then `run`; `stop` keeps the best so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from tc_jupyter.autotune import TuningLog
from tc_jupyter.compiler.peers import checked_seconds
from tc_jupyter.function import Function, OpenRanks
from tc_jupyter.runtime.timing import duration

from .background import BackgroundPicture
from .benchmark import random_arguments
from .picture import ACCENT, BAD, LINE, MUTED, Content, Control, code, table, words
from .sizes import SizeNames, read_sizes, realistic_sizes, size_names
from .svg import letters, svg, units, wide

_LISTED = 40
_LONGEST = 200
"""Characters of a schedule in the list."""


class Tuning(BackgroundPicture):
    """One search at chosen sizes."""

    name = "tuning"
    title = "tuning"

    def __init__(self, function: Function, seconds: float = 20.0, **sizes: int) -> None:
        """`seconds`: how long to search at most."""
        super().__init__(function)
        self.seconds = checked_seconds(seconds)
        self.log: TuningLog | None = None
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = {}
        try:
            self.known = size_names(function.analysis)
        except OpenRanks as problem:
            self.problem = str(problem)
            return
        self.sizes = realistic_sizes(self.known, sizes)

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Sizes, `run`, `stop`."""
        del dragging
        if self.known is None:
            return
        self.sizes, self.problem = read_sizes(self.known, self.sizes, values)
        self.obey(values, "stop")

    def run(self) -> TuningLog:
        """Search; the best is kept on disk.

        Raises:
            CallError, ValueError: the function cannot run at these sizes.
        """
        assert self.known is not None
        arrays = random_arguments(self.known.found.program, self.sizes)

        def seen(log: TuningLog) -> None:
            self.log = log
            self.changed()

        self.log = self.function.tune(*arrays, seconds=self.seconds, on_trial=seen, stopped=self.stopping.is_set)
        return self.log

    def content(self, live: bool = False) -> Content:
        """Controls, the chart, the list of trials."""
        if self.known is None:
            return Content(words(self.problem), text=self.problem)
        sizes = [
            Control(c.name, c.kind, c.label, c.value, high=max(1024, int(c.value) * 2))
            for c in self.known.controls(self.sizes)
        ]
        controls = (
            *sizes,
            Control("run", "button", "run", disabled=self.running),
            Control("stop", "button", "stop", disabled=not self.running),
        )
        parts = [words(self.problem, "✗", BAD)] if self.problem else []
        log = self.log
        if log is None or not log.trials:
            said = "the search begins" if self.running else "nothing was tried yet" + (": press `run`" if live else "")
            return Content("".join([*parts, words(said)]), controls, text=said)
        if log.trials[0].seconds is None:
            said = f"the default schedule was {log.trials[0].dropped}; a longer search starts with it"
            return Content("".join([*parts, words(said)]), controls, text=said)
        parts.append(
            f"<div>{len(log.trials)} of {log.total} candidates; best {duration(log.best.seconds or 0)}, "
            f"{log.gain:.2f} times as fast as the default ({duration(log.baseline)})"
            f"{': ' + escape(log.stopped) if log.stopped else ''}</div><div>best: {code(log.best.name)}</div>"
        )
        parts.append(progress_svg(log))
        parts.append(f'<div style="{MUTED}">each dot: a schedule; line: the best so far</div>')
        listed = log.rows()[:_LISTED]
        dropped = any(why for _, _, why in listed)
        rows = [
            [f'<span style="white-space:nowrap">{time}</span>', code(_first_steps(name)), *([escape(why)] * dropped)]
            for name, time, why in listed
        ]
        parts.append(table(["time", "schedule", *["dropped"] * dropped], rows, "schedules that were tried"))
        if len(log.trials) > _LISTED:
            parts.append(f"<div>and {len(log.trials) - _LISTED} more</div>")
        return Content("".join(parts), controls, {"trials": len(log.trials)}, text=str(log))


def _first_steps(schedule: str) -> str:
    """A schedule as code, without the last steps where it is long."""
    if len(schedule) <= _LONGEST:
        return schedule
    end = schedule.rfind(").", 0, _LONGEST) + 1
    return f"{schedule[: end or _LONGEST]} ..."


def progress_svg(log: TuningLog) -> str:
    """Every timed candidate as a dot, the best so far as a line; time of the search to the right, time per call upwards."""
    timed = [trial for trial in log.trials if trial.seconds is not None]
    right = max(trial.at for trial in log.trials) or 1.0
    top = max(trial.seconds or 0 for trial in timed) * 1.05
    dots, path, best = "", "", float("inf")
    said = {part: duration(top * part) if part else "0" for part in (0, 0.5, 1)}
    left = max(map(wide, said.values())) + 8
    for trial in timed:
        x, y = left + trial.at / right * 420, 130 - (trial.seconds or 0) / top * 120
        dots += f'<circle data-trial="" cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{ACCENT}"/>'
        best = y if not path else max(best, y)
        path += f"M{x:.1f} {best:.1f}" if not path else f"H{x:.1f}V{best:.1f}"
    marks = "".join(
        f'<path d="M{units(left)} {130 - part * 120:.0f}h424" stroke="{LINE}"/>'
        f"{letters(left - 4, 134 - part * 120, label, 'end')}"
        for part, label in said.items()
    )
    label = f"{len(timed)} candidates timed; best {duration(log.best.seconds or 0)}, default {duration(log.baseline)}"
    inner = f'{marks}{dots}<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    return svg(left + 434, 152, inner + letters(left + 420, 148, f"{duration(right)} of search", "end"), label)
