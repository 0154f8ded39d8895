"""Processes that build, check and time candidates, so that none of them can take the search or the notebook down.

A process is sent a pickled `Job` and then requests, one at a time; it answers each. One that dies, or does not answer in time, is
named, killed and replaced. When the process of the search ends, however it ends, the others end with it: their input is closed.

Worked example: `with Workers(job) as workers: workers.prepare([1, 2, 3])` builds three candidates side by side;
`workers.measure(1, None)` runs and times one.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

from tc_jupyter.runtime.cpus import available_cpus
from tc_jupyter.runtime.timing import benchmark, duration

from .job import Job

HOPELESS = 5.0
"""A candidate whose call takes this many times the best is not timed further."""
PATIENCE = 5.0
"""Seconds for the calls of one candidate, besides sixty times that of the default schedule."""
_BUILD = 60.0
_START = 120.0
_SLICE = 0.05
_LONG = 0.8
_MOST = 4
_TICK = 0.1
_LENGTH = struct.Struct("<Q")


class Stopped(Exception):
    """The search was asked to end while it waited."""


class OutOfTime(Stopped):
    """The time of the search is over; what was at work has been killed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What timing a candidate gave: seconds per call, or why it was dropped."""

    seconds: float | None
    dropped: str = ""


# inside a process ----------------------------------------------------------------------------------------------------------------


class Server:
    """One job in this process: builds, runs and times its candidates."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._default: tuple[Callable[[], Any], Any] | None = None

    def default(self) -> tuple[Callable[[], Any], Any]:
        """The call of the default schedule, and its result."""
        if self._default is None:
            run = self.job.run_of(0)
            self._default = run, run()
        return self._default

    def build(self, number: int) -> str:
        """Why a candidate cannot be built, or nothing."""
        try:
            return self.job.build(number)
        except Exception as problem:  # whatever a candidate does, the search goes on
            return _failed(problem)

    def measure(self, number: int, base: float, best: float | None) -> Measured:
        """Run, compare and time a candidate in turn with the default schedule.

        Args:
            base: seconds of the default schedule.
            best: seconds of the best one so far.
        """
        if number == 0:
            run, _ = self.default()
            return Measured(benchmark({"default": run}, 2 * _SLICE)[0].median)
        default, expected = self.default()
        try:
            run = self.job.run_of(number)
            found = run()
            once = _seconds(run, 1.0 if best is None else HOPELESS * best)
        except Exception as problem:  # whatever a candidate does, the search goes on
            return Measured(None, _failed(problem))
        if not self.job.same(expected, found):
            return Measured(None, "wrong result")
        if best is not None and once > HOPELESS * max(best, 1e-5):
            return Measured(None, f"too slow: {duration(once)}")
        # A new best is measured twice, and the worst of all its ratios counts: a lucky moment of a busy machine is not a gain.
        ratio = _ratio(default, run, 2 * _SLICE)
        if best is not None and ratio * base < best:
            ratio = max(ratio, _ratio(default, run, 6 * _SLICE))
        return Measured(ratio * base)

    def confirm(self, number: int, base: float) -> Measured:
        """Time a candidate once more, for longer; what looked best of many was also the luckiest.

        Args:
            base: seconds of the default schedule.
        """
        default, _ = self.default()
        try:
            return Measured(_ratio(default, self.job.run_of(number), _LONG) * base)
        except Exception as problem:  # whatever a candidate does, the search goes on
            return Measured(None, _failed(problem))


def _seconds(run: Callable[[], Any], enough: float) -> float:
    """The shortest of three calls; fewer if one takes less than `enough`."""
    shortest = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        run()
        shortest = min(shortest, time.perf_counter() - begin)
        if shortest < enough:
            break
    return shortest


def _ratio(default: Callable[[], Any], run: Callable[[], Any], seconds: float) -> float:
    """Time of a candidate over that of the default in turn with it: of the medians, or of the shortest, whichever is larger."""
    first, second = benchmark({"default": default, "candidate": run}, seconds)
    return max(second.median / max(first.median, 1e-12), second.best / max(first.best, 1e-12))


def _failed(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    return f"failed: {type(problem).__name__}: {lines[0][:120] if lines else ''}"


def serve() -> None:
    """The loop of a process: a job, then requests, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a candidate prints is no answer
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    source = sys.stdin.buffer

    def read() -> None:
        with suppress(OSError, EOFError):
            while True:
                requests.put(_receive(source))
        os._exit(0)  # the search has ended: also in the middle of a candidate

    threading.Thread(target=read, name="tc-tuning-input", daemon=True).start()
    server = Server(requests.get())
    _send(answers, None)
    while True:
        name, arguments = requests.get()
        try:
            answer: Any = getattr(server, name)(*arguments)
        except Exception as problem:  # of the default schedule: told to the search
            answer = problem if _picklable(problem) else RuntimeError(str(problem))
        _send(answers, answer)


def _picklable(value: object) -> bool:
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # any object may fail in any way here
        return False
    return True


def _send(stream: IO[bytes], value: object) -> None:
    data = pickle.dumps(value, protocol=5)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


# outside -------------------------------------------------------------------------------------------------------------------------


class _Gone(Exception):
    """A process died; the text says how."""


class _Process:
    """One process with a job."""

    def __init__(self, job: Job) -> None:
        code = "from tc_jupyter.autotune.workers import serve; serve()"
        found = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # a session of its own: Ctrl-C is for the search, which then ends its processes
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=found,
            start_new_session=True,
        )
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="tc-tuning-answers", daemon=True).start()
        threading.Thread(target=self._write, name="tc-tuning-requests", daemon=True).start()
        self._job: Job | None = job

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, EOFError, ValueError):
            while True:
                self._answers.put((True, _receive(self._process.stdout)))
        self._answers.put((False, None))

    def _write(self) -> None:
        """Send requests; in a thread, since a process that is starting takes nothing yet. `_read` sees one that died."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            while (request := self._requests.get()) is not None:
                _send(self._process.stdin, request)

    def ask(
        self, name: str, arguments: tuple[Any, ...], seconds: float, stopped: Callable[[], bool], ends: float
    ) -> Any:
        """The answer to a request.

        Args:
            ends: when the search ends, by `time.monotonic`.

        Raises:
            _Gone: it died or did not answer in time.
            Stopped: the search is over.
        """
        if self._job is not None:
            job, self._job = self._job, None
            self._requests.put(job)
            self._wait(_START, stopped, ends)
        self._requests.put((name, arguments))
        answer = self._wait(seconds, stopped, ends)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _wait(self, seconds: float, stopped: Callable[[], bool], ends: float) -> Any:
        late = time.monotonic() + seconds
        while True:
            try:
                alive, answer = self._answers.get(timeout=max(0.0, min(_TICK, ends - time.monotonic())))
            except queue.Empty:
                if stopped():
                    raise Stopped from None
                if time.monotonic() >= ends:
                    raise OutOfTime from None
                if time.monotonic() > late:
                    raise _Gone(f"timed out: no answer in {duration(seconds)}") from None
                continue
            if not alive:
                raise _Gone(self._how())
            return answer

    def _how(self) -> str:
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "crashed: its process closed its output"
        if code < 0:
            with suppress(ValueError):
                return f"crashed: {signal.Signals(-code).name}"
        return f"crashed: its process ended with status {code}"

    def close(self) -> None:
        """End it at once."""
        self._requests.put(None)
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class Workers:
    """Processes with one job: the first one measures, alone; all of them build.

    Args:
        builder: the job of the others, which only build; by default the same.
        count: number of processes; by default one per processor, four at most.
        patience: see `PATIENCE`.
        stopped: asked while waiting.

    Attributes:
        ends: when the search ends, by `time.monotonic`; what is at work then is killed.
    """

    def __init__(
        self,
        job: Job,
        builder: Job | None = None,
        count: int | None = None,
        patience: float = PATIENCE,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._jobs = [job, *[builder or job] * (max(1, min(count or available_cpus(), _MOST)) - 1)]
        self._processes: list[_Process | None] = [None for _ in self._jobs]
        self._patience, self._default = patience, 0.0
        self._stopped = stopped
        self._lock = threading.Lock()
        self.ends = float("inf")

    @property
    def batch(self) -> int:
        """How many candidates are built before some are timed."""
        return 2 * len(self._jobs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        for process in self._processes:
            if process is not None:
                process.close()

    def _ask(self, place: int, name: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        process = self._processes[place]
        if process is None:
            process = self._processes[place] = _Process(self._jobs[place])
        try:
            return process.ask(name, arguments, seconds, self._stopped, self.ends)
        except (_Gone, Stopped):  # its answer, if there is one, belongs to a request that nobody waits for
            process.close()
            self._processes[place] = None
            raise

    def prepare(self, numbers: Sequence[int]) -> Mapping[int, str]:
        """Build candidates side by side; returns those that must be dropped, with the reason.

        Raises:
            Stopped, OutOfTime: the search is over.
        """
        waiting, dropped = list(numbers)[::-1], dict[int, str]()
        ended: list[BaseException] = []

        def work(place: int) -> None:
            while not ended:
                with self._lock:
                    if not waiting:
                        return
                    number = waiting.pop()
                try:
                    reason = self._ask(place, "build", (number,), _BUILD)
                except _Gone as problem:
                    reason = str(problem)
                except BaseException as problem:  # raised again below, in the thread of the search
                    ended.append(problem)
                    return
                if reason:
                    dropped[number] = reason

        count = min(len(self._jobs), len(waiting))
        threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # so that Ctrl-C arrives
                thread.join(_TICK)
        if ended:
            raise ended[0]
        return dropped

    def measure(self, number: int, best: float | None) -> Measured:
        """Time a candidate in the process that measures, while the others wait.

        Raises:
            Stopped, OutOfTime: the search is over.
            RuntimeError: the default schedule cannot be measured.
        """
        found = self._timed("measure", number, best)
        if number == 0:
            if found.dropped:
                raise RuntimeError(f"the default schedule cannot be measured: {found.dropped}")
            self._default = found.seconds or 0.0
        return found

    def confirm(self, number: int, best: float | None) -> Measured:
        """Time a candidate for longer.

        Raises:
            Stopped, OutOfTime: the search is over.
        """
        return self._timed("confirm", number, best)

    def _timed(self, request: str, number: int, best: float | None) -> Measured:
        # the process runs the default schedule first when it is new
        limit = self._patience + 60 * max(self._default, best or 0.0) if number else _BUILD
        arguments = (number, self._default, best) if request == "measure" else (number, self._default)
        try:
            found = self._ask(0, request, arguments, limit)
        except _Gone as problem:
            return Measured(None, str(problem))
        assert isinstance(found, Measured)
        return found


# Note [Processes and not threads]
# A candidate is machine code that nobody has run before. A wrong one can write anywhere, stop the process, or never return, and a
# thread in native code cannot be ended. `multiprocessing` is not used: its way to start a process runs the main module again.
