"""Candidates with made-up behaviour, for the processes of a search (they import this module by its name).

Their time is made up too: in a process of a search the clock is the number of steps that were taken, so that a busy machine measures
what an idle one does.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from itertools import count
from typing import Any

from tc_jupyter.autotune import workers
from tc_jupyter.runtime import timing

LUCK: list[int] = []
STEP = 1e-8
"""Seconds that a step takes."""


class Clock:
    """In place of the module `time`."""

    steps = 0

    def perf_counter(self) -> float:
        return self.steps * STEP


CLOCK = Clock()


def slow(value: Any, steps: int) -> Any:
    CLOCK.steps += steps
    return value


@dataclass(frozen=True)
class PlantedJob:
    """Per candidate what happens: `(value, steps)` is a call that takes so many steps; else a word."""

    behaviour: tuple[Any, ...]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The job has arrived in a process of the search."""
        self.__dict__.update(state)
        timing.time = workers.time = CLOCK  # type: ignore[assignment]

    def build(self, number: int) -> str:
        match self.behaviour[number]:
            case "cannot be built":
                raise MemoryError("planted")
            case "spills":
                return "spills 64 bytes of registers"
            case "crashes the compiler":
                os.abort()
            case "hangs the compiler":
                self.misbehave("hangs")
        return ""

    def run_of(self, number: int) -> Any:
        found = self.behaviour[number]
        if found == "lucky":
            LUCK.append(number)
            found = (1, 10) if len(LUCK) == 1 else (1, 40_000)
        return lambda: slow(*found) if isinstance(found, tuple) else self.misbehave(found)

    def misbehave(self, found: str) -> Any:
        match found:
            case "fails":
                raise MemoryError("planted")
            case "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "ends the process":
                os._exit(3)
            case "hangs":
                for _ in count():
                    pass
            case "prints":
                os.write(1, b"\x00" * 100_000)
                return slow(1, 5_000)

    def same(self, expected: Any, found: Any) -> bool:
        return expected == found
