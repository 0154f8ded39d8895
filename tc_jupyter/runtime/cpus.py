"""How many processors this process may use: affinity and container limits count, not only what the machine has."""

from __future__ import annotations

import os
from pathlib import Path


def _quota(text: str) -> int | None:
    """Processors that a cgroup's `cpu.max` (`quota period`, microseconds) allows, rounded up; `None` without a limit."""
    words = text.split()
    if len(words) != 2 or not words[0].isdigit() or not words[1].isdigit() or int(words[1]) == 0:
        return None
    return max(1, -(-int(words[0]) // int(words[1])))


def available_cpus() -> int:
    """Processors available to this process, at least 1."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity call
        count = os.cpu_count() or 1
    try:
        limit = _quota(Path("/sys/fs/cgroup/cpu.max").read_text())
    except OSError:
        limit = None
    return max(1, min(count, limit or count))
