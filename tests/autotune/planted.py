"""Candidates with made-up behaviour, for the processes of a search (they import this module by its name)."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from itertools import count
from typing import Any

LUCK: list[int] = []


def slow(value: Any, steps: int) -> Any:
    for _ in range(steps):
        pass
    return value


@dataclass(frozen=True)
class PlantedJob:
    """Per candidate what happens: `(value, steps)` is a call that takes so many steps; else a word."""

    behaviour: tuple[Any, ...]

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
                return 1

    def same(self, expected: Any, found: Any) -> bool:
        return expected == found
