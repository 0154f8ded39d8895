"""Machine code of one kernel is made while the text of the next one is printed.

LLVM needs the lock of the interpreter for none of its work, so a second thread can run it. But it gives the lock away and takes it
back around every call, some thirty per kernel, and where the first thread computes in Python it waits for it up to
`sys.getswitchinterval()`, 5 ms: as long as the work itself. So the interval is shorter meanwhile.

Worked example, on two processors, cold: four layers, eight kernels that were printed each for itself then, are ready after 240 ms
instead of 340, three products after 139 instead of 175, a layer after 77 instead of 87. A quarter of the interval gains nothing
more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

from .cpus import available_cpus

INTERVAL = 2e-4
"""Seconds between two requests for the lock of the interpreter."""


class _Interval:
    """The interval while anybody is ahead; the one from before afterwards."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = INTERVAL

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, INTERVAL))

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setswitchinterval(self._before)


_INTERVAL = _Interval()
"""Of the process, as the interpreter has one."""


class Ahead:
    """What a second thread makes of texts; use as a context, which ends when the thread has ended.

    The thread is a plain one: pools of `concurrent.futures` share a lock that a fork holds while it waits for who makes code.
    """

    def __init__(self, make: Callable[[str], bytes], finish: Callable[[], object] = lambda: None) -> None:
        """`make` is what the thread does, one text after the other; `finish` is called after the last one."""
        self._make, self._finish = make, finish
        self._thread: Thread | None = None
        self._begun: SimpleQueue[str | None] = SimpleQueue()
        self._promises: dict[str, Any] = {}
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._thread is not None:
                self._is_over = True
                self._begun.put(None)
                try:
                    self._thread.join()
                finally:
                    _INTERVAL.leave()
        finally:
            self._finish()

    def begin(self, text: str) -> None:
        """Let the thread make this; nothing happens where there is one processor, or the interpreter is about to end."""
        if self._thread is None and not self._has_started():
            return
        if text not in self._promises:
            from concurrent.futures import Future  # noqa: PLC0415  (takes 5 ms: when it is first needed)

            self._promises[text] = Future()
            self._begun.put(text)

    def result(self, text: str) -> bytes:
        """What was made, when it is done; made here where nobody has begun.

        Raises:
            Exception: what `make` raises.
        """
        promise = self._promises.get(text)
        return self._make(text) if promise is None else promise.result()

    def _has_started(self) -> bool:
        if available_cpus() < 2:
            return False
        thread = Thread(target=self._work, name="tc_jupyter-code", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no new threads at the end of the interpreter
            return False
        self._thread = thread
        _INTERVAL.enter()
        return True

    def _work(self) -> None:
        while (text := self._begun.get()) is not None:
            if self._is_over:
                continue
            try:
                self._promises[text].set_result(self._make(text))
            except BaseException as error:  # it is raised where the result is asked for
                self._promises[text].set_exception(error)
        self._finish()  # an interrupt may have ended the wait for this thread
