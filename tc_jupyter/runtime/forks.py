"""A fork waits until no other thread makes code.

A forked child has only the thread that forked. A lock that another thread held stays taken in the child for ever, a module that it
imported is never complete, and LLVM stays in the middle of what it did. So all that takes such locks, from the text of a cell to
machine code, is inside `MAKING`: any number of threads at once, again inside itself, and none while a fork waits or happens. A fork
so waits for what has begun, at most `PATIENCE` seconds; calls of functions that are ready pass no gate.

Worked example: thread 1 is in `with MAKING:` and compiles; thread 2 calls `os.fork()`, which returns once thread 1 has left. Thread
3, which came to `with MAKING:` after that call, enters after the fork.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 30.0
"""Seconds after which a fork goes on in any case: the other thread may wait for something that this one holds."""
_LOOK = 1e-3
"""Seconds between two looks whether all have left."""


class Gate:
    """What threads are inside of while they make code; see above.

    Attributes:
        others: each finds a lock of another library, if that is loaded, which a fork takes after all have left.
    """

    def __init__(self) -> None:
        self.others: list[Callable[[], Any]] = []
        self._door = threading.RLock()
        self._inside: dict[int, int] = {}
        self._taken: dict[int, list[Any]] = {}

    def __enter__(self) -> None:
        me = threading.get_ident()
        if me in self._inside:
            self._inside[me] += 1
            return
        try:
            with self._door:
                self._inside[me] = 1
        except BaseException:  # Ctrl-C behind the door: nobody would leave
            self._inside.pop(me, None)
            raise

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        if self._inside[me] > 1:
            self._inside[me] -= 1
        else:
            del self._inside[me]

    def before_fork(self) -> None:
        """Let nobody in, wait until other threads have left, and take the locks of other libraries."""
        me, end = threading.get_ident(), time.monotonic() + PATIENCE
        taken = self._taken[me] = []

        def take(lock: Any) -> None:
            if lock is not None and lock.acquire(timeout=max(0.0, end - time.monotonic())):
                taken.append(lock)

        take(self._door)
        while any(thread != me for thread in tuple(self._inside)) and time.monotonic() < end:
            time.sleep(_LOOK)
        for find in self.others:
            take(find())

    def after_fork(self) -> None:
        """In the parent: let others in again."""
        for lock in reversed(self._taken.pop(threading.get_ident(), [])):
            lock.release()

    def after_fork_in_child(self) -> None:
        """In the child: as in the parent; threads that do not exist are not inside."""
        self.after_fork()
        me = threading.get_ident()
        self._door, self._taken = threading.RLock(), {}
        self._inside = {me: self._inside[me]} if me in self._inside else {}


MAKING = Gate()
"""The gate of this process. Threads are a property of the process, so this is its one global."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=MAKING.before_fork, after_in_parent=MAKING.after_fork, after_in_child=MAKING.after_fork_in_child
    )


# Note [A fork beside a product of NumPy]
#
# NumPy's OpenBLAS (0.3.31, pthreads, two processors) hangs a fork while another thread is inside `A @ B` of 1024 x 1024: in
# nine of nine processes that forked up to 20 times beside two such threads, and had not imported `tc_jupyter`. The stack of
# what forks there:
#
#     blas_thread_shutdown_        (libscipy_openblas64_: joins its workers)
#     __run_prefork_handlers       (the C library)
#     fork
#
# and of the worker that is joined: `blas_thread_server`, asleep in `pthread_cond_wait`. OpenBLAS registers this handler with
# `pthread_atfork`; the product of the other thread changes the state of the worker between the order to end and the join, and
# nobody wakes it again. With OPENBLAS_NUM_THREADS=1, or products that it computes on one thread, there is no worker and no fork
# hangs.
#
# The gate takes no part: its handler is one of Python's and has returned by then, and it holds no lock that a product waits
# for. It cannot help either: to wait until no thread is inside OpenBLAS would need a lock that OpenBLAS shows to nobody, and to
# change the number of its threads would change results of others. Whoever forks beside such products uses `spawn` or
# `forkserver`.
