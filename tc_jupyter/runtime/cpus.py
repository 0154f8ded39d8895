"""The processors of this process: affinity and container limits count, not only what the machine has; where a thread runs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any


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


@lru_cache(maxsize=1)
def _reader() -> Callable[[], int] | None:
    """The C library's `sched_getcpu`, if there is one and threads can be moved."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None


def current_cpu() -> int | None:
    """The processor that runs this thread now; `None` where the system does not say."""
    read = _reader()
    number = -1 if read is None else read()
    return number if number >= 0 else None


def reader_address() -> int:
    """Where compiled code finds what `current_cpu` calls, an `int (*)(void)`; 0 where the system does not say."""
    read: Any = _reader()
    return 0 if read is None else ctypes.cast(read, ctypes.c_void_p).value or 0


def send_away(thread: int | None, cpu: int, back: int | None = None) -> bool:
    """Let a thread run on what it may use now, except one processor; nothing happens if there is no other.

    Args:
        thread: the number of the system, `threading.Thread.native_id`.
        back: a processor that it was sent away from before, and may use again.

    Returns:
        Whether it may not run there any more because of this call.
    """
    if thread is None:
        return False
    try:
        allowed = os.sched_getaffinity(thread)
        others = (allowed if back is None else allowed | {back}) - {cpu}
        if cpu not in allowed or not others:
            return False
        os.sched_setaffinity(thread, others)
    except OSError:  # a container may forbid it, or has changed what is allowed meanwhile: the thread stays where it is
        return False
    return True
