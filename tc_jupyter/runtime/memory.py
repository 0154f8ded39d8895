"""Memory of results: buffers that return to a pool when the last array that refers to them is gone.

Fresh pages cost more than the arithmetic of a large streaming kernel (every first touch of a page is a fault), so large results
reuse freed buffers. A buffer is lent as the base of a NumPy array; views, memoryviews, DLPack capsules and tensors made from that
array all keep the base alive, and only its end returns the buffer. Small arrays come from NumPy's own allocator.

Worked example: `a = empty((1024, 1024), np.dtype("float32")); del a; b = empty((1024, 1024), np.dtype("float32"))` gives `b` the
memory that `a` had.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
import weakref
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tc_jupyter.program import LARGEST_ARRAY, array_bytes

from .address import numpy_address

SMALL_BYTES = 256 << 10
"""Below this size `np.empty` is used: the C library keeps such blocks mapped, and the pool would only add calls."""

HUGE_PAGE_BYTES = 2 << 20
CHECKED_BYTES = 1 << 30
"""From this size on it is asked whether the system has the memory: the question takes less than 1 ms, touching the pages 100 ms."""

CONTAINER_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Files with the limit of a container and what it uses: control groups of version 2 and 1. Beside them is `memory.stat`."""

_MAX_BYTES = 1 << 62
_BYTE = np.dtype(np.uint8)
_PATIENCE = 0.1
"""Seconds to wait for the lock, which others hold for microseconds."""


@dataclass(slots=True)
class _Block:
    """One mapping from the operating system; `start` is the offset of the first usable byte."""

    memory: mmap.mmap
    start: int
    capacity: int


@lru_cache(maxsize=256)
def _capacity(nbytes: int, whole: bool) -> int:
    """Round up to one of eight steps per power of two, so that at most an eighth of a buffer is unused, or to whole huge pages."""
    step = max(HUGE_PAGE_BYTES if whole else 4096, 1 << max(nbytes.bit_length() - 4, 0))
    return -(-nbytes // step) * step


def _physical_bytes() -> int:
    """Memory of the machine in bytes; 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _number_in(path: str) -> int | None:
    """The number that a file of the system consists of; None where there is none (`max`: no limit)."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _files_in(path: str) -> int:
    """Bytes of files that a control group keeps in memory: they count as used, but the system takes them back before it kills.

    Of version 1 they are those of the group and all below it, as what it uses is.
    """
    try:
        with open(path, encoding="ascii") as file:
            rows = dict(line.split() for line in file)
        below = "total_" if "total_inactive_file" in rows else ""
        return int(rows[f"{below}inactive_file"]) + int(rows[f"{below}active_file"])
    except (OSError, KeyError, ValueError):
        return 0


def left_bytes() -> int | None:
    """Bytes that this process can still write to before the system ends it; None where the system does not say.

    Linux promises more memory than it has and kills who uses it. What is left is `MemAvailable` and free swap, or less where a
    control group (a container) has a limit; files that are kept in memory do not count as used.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        left = sum(int(rows[name].split()[0]) << 10 for name in ("MemAvailable", "SwapFree"))
    except (OSError, KeyError, ValueError):
        return None
    for limit, used in CONTAINER_LIMITS:
        most, now = _number_in(limit), _number_in(used)
        if most is not None and now is not None:
            left = min(left, max(most - now + _files_in(os.path.join(os.path.dirname(limit), "memory.stat")), 0))
    return left


def _anonymous(length: int) -> mmap.mmap:
    """Fresh memory of this process alone: shared memory, the default, has no huge pages, and a fork would share results."""
    private = getattr(mmap, "MAP_PRIVATE", None)
    if private is None:  # Windows has neither
        return mmap.mmap(-1, length)
    return mmap.mmap(-1, length, flags=private | mmap.MAP_ANONYMOUS)


def _map(capacity: int) -> _Block:
    """Map fresh memory, aligned and marked for huge pages when it is large enough for one.

    Raises:
        MemoryError: the system has no such memory.
    """
    if capacity >= CHECKED_BYTES and (left := left_bytes()) is not None and capacity > left:
        raise MemoryError(f"{capacity} bytes where {left} are left")
    huge = capacity >= HUGE_PAGE_BYTES
    length = capacity + (HUGE_PAGE_BYTES if huge else 0)
    try:
        memory = _anonymous(length)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"{capacity} bytes") from error
    if not huge:
        return _Block(memory, 0, capacity)
    start = -numpy_address(np.frombuffer(memory, _BYTE, 1)) % HUGE_PAGE_BYTES
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None:
        with contextlib.suppress(OSError):  # a system without transparent huge pages
            memory.madvise(advice, start, capacity // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES)
    return _Block(memory, start, capacity)


_Lease: TypeAlias = np.ndarray[Any, Any]
"""The base of an array that lives in a pooled buffer: when it ends, the buffer goes back.

A plain array: the garbage collector does not know it, so it ends when nothing refers to it, and not before finalisers that may
revive what it is a part of. Its own base is no array, so NumPy leaves it in place as the base of views.
"""


class _End(weakref.ref[_Lease]):
    """Notices the end of a lease; told apart by identity, since arrays have neither hash nor one answer to `==`."""

    __slots__ = ("block",)
    block: _Block
    __eq__, __hash__ = object.__eq__, object.__hash__


@dataclass(slots=True)
class Pool:
    """Freed buffers by capacity, at most `limit` bytes of them; the oldest are unmapped first.

    Attributes:
        limit: bytes of unused memory that the pool may keep.
        lent, reused: buffers handed out so far, and how many of them were used before.
    """

    limit: int
    lent: int = 0
    reused: int = 0
    _free: deque[_Block] = field(default_factory=deque[_Block])
    # A lease may end inside a garbage collection that interrupts `take` in the same thread: it must not need the lock.
    _returned: deque[_Block] = field(default_factory=deque[_Block])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _unused: int = 0
    _ends: set[_End] = field(default_factory=set["_End"])

    def take(self, nbytes: int, whole: bool = False) -> np.ndarray[Any, Any]:
        """Lend `nbytes` bytes as the base for arrays, with unspecified content.

        Args:
            whole: in whole huge pages, also if most of the last one stays unused: for what lives no longer than a call.

        Raises:
            MemoryError: the system has no such memory, also after the pool gave up what it kept.
        """
        capacity = _capacity(nbytes, whole)
        block = self._reuse(capacity)
        if block is None:
            try:
                block = _map(capacity)
            except MemoryError:
                self.clear()
                block = _map(capacity)
        lease = np.ndarray((capacity,), _BYTE, block.memory, block.start)
        end = _End(lease, self._ended)
        end.block = block
        self._ends.add(end)
        self.lent += 1
        return lease

    def _ended(self, end: Any) -> None:
        """The buffer of an `_End` goes back; names of this module may be gone when the interpreter ends."""
        self._ends.discard(end)
        self._returned.append(end.block)

    def _reuse(self, capacity: int) -> _Block | None:
        """A freed buffer of exactly this capacity; the most recent one, since it is still in the caches."""
        # In vain if a finaliser wants memory that interrupted this very thread while it held the lock.
        if not self._lock.acquire(timeout=_PATIENCE):
            return None
        try:
            self._collect()
            for position in range(len(self._free) - 1, -1, -1):
                block = self._free[position]
                if block.capacity == capacity:
                    del self._free[position]
                    self._unused -= capacity
                    self.reused += 1
                    return block
            return None
        finally:
            self._lock.release()

    def _collect(self) -> None:
        """Move returned buffers to the free ones and unmap the oldest beyond the limit; the lock is held."""
        while self._returned:
            block = self._returned.popleft()
            self._free.append(block)
            self._unused += block.capacity
        while self._unused > self.limit:
            self._unused -= self._free.popleft().capacity

    def clear(self) -> int:
        """Unmap every unused buffer; returns their bytes, 0 where the lock is not free (see `_reuse`)."""
        if not self._lock.acquire(timeout=_PATIENCE):
            return 0
        try:
            self._collect()
            unused, self._unused = self._unused, 0
            self._free.clear()
            return unused
        finally:
            self._lock.release()

    def after_fork(self) -> None:
        """In a child: the thread that held the lock does not exist."""
        self._lock = threading.Lock()

    def unused_bytes(self) -> int:
        """Bytes kept for reuse."""
        with self._lock:
            self._collect()
            return self._unused


POOL = Pool(limit=min(_physical_bytes() // 4, 4 << 30))
"""The pool of this process. Memory is a property of the process, so this is its one global."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.after_fork)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A row-major array with unspecified content.

    Raises:
        MemoryError: it does not fit; also for extents whose product no address can hold.
    """
    nbytes = dtype.itemsize
    for extent in shape:
        nbytes *= extent
    if 0 < nbytes < SMALL_BYTES:
        return np.empty(shape, dtype)
    if nbytes > _MAX_BYTES:
        raise MemoryError(f"{nbytes} bytes")
    if nbytes <= 0:
        _refuse_unreachable(shape, dtype)
        return np.empty(shape, dtype)  # which refuses negative extents
    return np.ndarray(shape, dtype, POOL.take(nbytes))


def _refuse_unreachable(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise `MemoryError` for an array without elements that NumPy does not make."""
    if array_bytes(shape, dtype.itemsize) > LARGEST_ARRAY:
        raise MemoryError(f"an array of shape {shape}")


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any], align: int) -> np.ndarray[Any, Any]:
    """Scratch memory: as `empty`, with the address of element 0 a multiple of `align` bytes (a power of two, at most a page).

    Packed operands are read panel by panel, so many small pages would cost more than unused memory that nobody keeps.

    Raises:
        MemoryError: as `empty`.
    """
    nbytes = dtype.itemsize
    for extent in shape:
        nbytes *= extent
    if SMALL_BYTES <= nbytes <= _MAX_BYTES:
        return np.ndarray(shape, dtype, POOL.take(nbytes, whole=True))
    if nbytes >= SMALL_BYTES or align <= 8:
        return empty(shape, dtype)
    if nbytes <= 0:
        _refuse_unreachable(shape, dtype)
    block = np.empty(nbytes + align, np.uint8)
    skip = -numpy_address(block) % align
    return np.ndarray(shape, dtype, block, skip)


def empty_cache() -> int:
    """Return the unused buffers of the result pool to the operating system; returns how many bytes that were."""
    return POOL.clear()
