"""The best known schedules on disk: the steps of a schedule as JSON, one file per program, target and sizes class.

A file is written next to its place and moved there, so that a reader sees the old or the new one, whole. What cannot be read, or
does not fit the program any more, counts as absent. Nothing is executed that a file says: steps are names of primitives with plain
arguments, and every primitive checks them again.

Worked example: `store.put(key, schedule.steps, 1.2e-3)`; later `store.best(key)` gives the steps, 1.2 ms.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.files import read_own, write_whole

from .schedule import Schedule, Step, steps_from_data, steps_to_data
from .stage import StageGraph

SCHEMA = "tc-jupyter/schedule/1"
PRIMITIVES = frozenset(
    {
        *("split", "fuse", "skew", "reorder", "tile", "parallel", "vectorize", "unroll", "bind", "tensorize"),
        *("compute_at", "compute_root", "compute_inline", "compute_with", "storage"),
        *("cache_read", "cache_write", "expand", "factor", "separate", "rebias", "rfactor", "prefix", "time_tile"),
    }
)
"""The methods of `Schedule` that a file, or a request of an editor, may name."""


@dataclass(frozen=True, slots=True)
class StoreKey:
    """What a schedule was tuned for.

    Attributes:
        program: fingerprint of the canonical text of the def, with its element types.
        target: the device: kind, name, features.
        sizes: the sizes class: names, each with what is known of it.
    """

    program: str
    target: str
    sizes: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """The name of the file."""
        text = json.dumps([self.program, self.target, [list(pair) for pair in sorted(self.sizes)]])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Record:
    """A stored schedule: its steps, and the seconds that a call took."""

    steps: tuple[Step, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class ScheduleStore:
    """A folder of schedules.

    Attributes:
        folder: made on the first write, for its owner only; `None` keeps nothing.
    """

    folder: Path | None

    def best(self, key: StoreKey) -> Record | None:
        """The stored schedule of a key, or `None`; files that cannot be read count as absent."""
        if self.folder is None:
            return None
        try:
            data = json.loads(read_own(self.folder / f"{key.digest}.json"))
            return _record(data, key)
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None

    def schedule(self, key: StoreKey, start: StageGraph) -> Schedule | None:
        """The stored schedule on the default stages of the program; `None` also where a step no longer fits."""
        found = self.best(key)
        if found is None:
            return None
        try:
            return Schedule(start, found.steps).replay(start)
        except (CompileError, TypeError, ValueError, LookupError, AttributeError):
            return None

    def put(self, key: StoreKey, steps: tuple[Step, ...], seconds: float) -> bool:
        """Keep a schedule if none is stored that took at most as long.

        Returns:
            Whether it is the stored one now; False also where the folder cannot be written.
        """
        present = self.best(key)
        if self.folder is None or (present is not None and present.seconds <= seconds):
            return False
        data = {
            "schema": SCHEMA,
            "key": [key.program, key.target, [list(pair) for pair in sorted(key.sizes)]],
            "seconds": seconds,
            "steps": steps_to_data(steps),
        }
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.folder / f"{key.digest}.json", json.dumps(data).encode())
        except OSError:
            return False
        return True

    def remove(self, key: StoreKey) -> None:
        """Forget the schedule of a key."""
        if self.folder is not None:
            (self.folder / f"{key.digest}.json").unlink(missing_ok=True)


def _record(data: Mapping[str, Any], key: StoreKey) -> Record | None:
    known = [key.program, key.target, [list(pair) for pair in sorted(key.sizes)]]
    if data["schema"] != SCHEMA or data["key"] != known or not all(step[0] in PRIMITIVES for step in data["steps"]):
        return None
    return Record(steps_from_data(data["steps"]), float(data["seconds"]))


__all__ = ["Record", "ScheduleStore", "StoreKey"]
