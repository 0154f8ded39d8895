from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tc_jupyter.runtime import cpus, jit, threads

TEXT = """; passes: vector
define void @add(ptr %args, i64 %index, i64 %thread, i64 %tasks) {
  %at = getelementptr i64, ptr %args, i64 %index
  %old = atomicrmw add ptr %at, i64 1 monotonic
  ret void
}
define void @who(ptr %args, i64 %index, i64 %thread, i64 %tasks) {
  %at = getelementptr i64, ptr %args, i64 %thread
  %old = atomicrmw add ptr %at, i64 1 monotonic
  ret void
}
define void @sum(ptr %args, i64 %index, i64 %thread, i64 %tasks) {
  %old = atomicrmw add ptr %args, i64 1 monotonic
  %sum.at = getelementptr i64, ptr %args, i64 1
  %old.sum = atomicrmw add ptr %sum.at, i64 %index monotonic
  ret void
}
define void @meet(ptr %args, i64 %index, i64 %thread, i64 %tasks) {
entry:
  %old = atomicrmw add ptr %args, i64 1 seq_cst
  br label %wait
wait:
  %begun = load atomic i64, ptr %args seq_cst, align 8
  %all = icmp uge i64 %begun, %tasks
  br i1 %all, label %end, label %wait
end:
  ret void
}
"""


@pytest.fixture(scope="module")
def code():
    return jit.compile(TEXT)


@pytest.fixture
def four_threads():
    before = threads.get_threads()
    threads.set_threads(4)
    yield
    threads.set_threads(before)


def counts(code, tasks: int, name: str = "add", limit: int | None = None) -> list[int]:
    numbers = (ctypes.c_int64 * max(tasks, 16))()
    threads.pool().run(code.address(name), ctypes.addressof(numbers), tasks, limit)
    return list(numbers)


@pytest.mark.usefixtures("four_threads")
def test_every_task_runs_once(code):
    for tasks in (0, 1, 2, 3, 15, 16, 17, 100, 1000):
        assert counts(code, tasks)[:tasks] == [1] * tasks


@pytest.mark.usefixtures("four_threads")
def test_many_short_jobs(code):
    for round_number in range(3000):
        tasks = 2 + round_number % 7
        assert counts(code, tasks)[:tasks] == [1] * tasks


@pytest.mark.usefixtures("four_threads")
def test_thread_numbers_stay_below_the_limit(code):
    for limit in (1, 2, 3):
        numbers = counts(code, 500, "who", limit)
        assert sum(numbers) == 500
        assert numbers[limit:] == [0] * (len(numbers) - limit)


TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def claims_in_turn(total: int, limit: int, turns: list[int]) -> list[tuple[int, list[int]]]:
    """The tasks of every claim of a job of `limit` threads if these threads, all played by this one, claim in this order."""
    pool, begun = threads.Pool(), list[tuple[int, int]]()
    task = TASK(lambda _, index, thread, __: begun.append((thread, index)))
    address = ctypes.cast(task, ctypes.c_void_p).value
    pool._word(threads._LOOK).value = 1
    pool.code.run(pool.state, address, None, total, limit, False, threads.PAUSES, pool._wake)
    found = [(0, [index for _, index in begun])]
    for number in turns:
        begun.clear()
        pool.code.work(pool.state, number, 1)
        assert all(thread == number for thread, _ in begun)
        found.append((number, [index for _, index in begun]))
    return found


def test_each_thread_takes_its_share_from_the_front_and_then_others_from_the_end():
    found = claims_in_turn(8, 2, [1, 1, 0, 1, 1, 1, 1, 0])
    assert found == [(0, [0]), (1, [4]), (1, [5]), (0, [1]), (1, [6]), (1, [7]), (1, [3]), (1, [2]), (0, [])]


@pytest.mark.parametrize(("total", "limit", "firsts"), [(3, 2, (0, 2)), (10, 4, (0, 3, 5, 8)), (7, 3, (0, 3, 5))])
def test_the_caller_has_the_largest_share(total, limit, firsts):
    found = claims_in_turn(total, limit, list(range(1, limit)))
    assert found == [(number, [first]) for number, first in enumerate(firsts)]


def test_a_thread_that_has_no_part_in_a_job_claims_nothing():
    assert claims_in_turn(6, 2, [2, 7]) == [(0, [0]), (2, []), (7, [])]


def test_a_late_worker_of_a_larger_job_claims_nothing():
    """Its own share still says that eight threads take part; what it finds is of a job of two."""
    pool, begun = threads.Pool(), list[tuple[int, int]]()
    task = TASK(lambda _, index, thread, __: begun.append((thread, index)))
    address = ctypes.cast(task, ctypes.c_void_p).value
    pool.code.run(pool.state, address, None, 8, 8, False, threads.PAUSES, pool._wake)
    assert [index for _, index in begun] == [0, *range(1, 8)]
    pool._word(threads._LOOK).value = 1
    pool.code.run(pool.state, address, None, 6, 2, False, threads.PAUSES, pool._wake)
    begun.clear()
    assert not pool.code.work(pool.state, 5, 1)
    assert begun == []
    assert pool.code.work(pool.state, 1, 1)
    assert begun == [(1, 3)]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer on this system")
def test_an_interrupt_at_any_place_leaves_the_pool_free(code):
    """Also between taking the pool and the first line that runs with it: of 2000 interrupts 100 came there."""
    pool, numbers = threads.pool(), (ctypes.c_int64 * 64)()
    job = (code.address("add"), ctypes.addressof(numbers), 64, 2)
    is_armed, seen, turn = False, 0, 0

    def interrupt(*_) -> None:
        if is_armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    end = time.perf_counter() + 0.7
    try:
        while time.perf_counter() < end and not pool.busy.locked():
            turn += 1
            signal.setitimer(signal.ITIMER_REAL, 1e-6 + 6e-5 * (turn * 0.618 % 1))
            try:
                is_armed = True
                for _ in range(5):
                    pool.run(*job)
                is_armed = False
            except KeyboardInterrupt:
                is_armed = False
                seen += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not pool.busy.locked()
    assert seen > 0


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("spare", [-1, 0, 5])
def test_more_tasks_than_a_share_counts(code, spare):
    total = (1 << 25) + spare
    numbers = (ctypes.c_int64 * 16)()
    threads.pool().run(code.address("sum"), ctypes.addressof(numbers), total)
    assert list(numbers)[:2] == [total, total * (total - 1) // 2]


@pytest.mark.usefixtures("four_threads")
def test_many_python_threads(code):
    wrong: list[int] = []

    def caller():
        wrong.extend(k for k in range(300) if counts(code, 40)[:40] != [1] * 40)

    callers = [threading.Thread(target=caller) for _ in range(6)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert wrong == []


def test_set_threads_refuses_nonsense():
    for count in (0, -1, 5000):
        with pytest.raises(ValueError, match="between 1 and"):
            threads.set_threads(count)


@pytest.mark.usefixtures("four_threads")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_a_pool_of_its_own(code):
    assert counts(code, 100)[:100] == [1] * 100
    child = os.fork()
    if child == 0:
        good = all(counts(code, 100)[:100] == [1] * 100 for _ in range(5))
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert counts(code, 100)[:100] == [1] * 100


def asleep(number: int, cpu: int | None = None) -> None:
    """Return once a worker sleeps, and has said that it ran on that processor: it says so after its flag is up."""
    pool = threads.pool()
    flag = pool._word(threads._WORKERS + number * threads._LINE)
    end = time.monotonic() + 300
    while (flag.value == 0 or cpu not in (None, pool.workers[number - 1].slept_on)) and time.monotonic() < end:
        os.sched_yield()
    assert flag.value == 1


def fall_asleep(code, cpu: int) -> None:
    """The first worker sleeps, and believes that it ran on that processor, which `current_cpu` says."""
    for where in (None, cpu):  # it may have fallen asleep before, elsewhere
        counts(code, 100, limit=2)
        asleep(1, where)


@pytest.mark.usefixtures("four_threads")
def test_a_worker_that_slept_where_the_caller_runs_is_sent_to_the_other_processors(code, monkeypatch):
    sent: list[tuple[int | None, int, int | None]] = []
    monkeypatch.setattr(cpus, "current_cpu", lambda: 7)
    monkeypatch.setattr(cpus, "send_away", lambda *call: bool(sent.append(call)))
    fall_asleep(code, 7)
    sent.clear()
    assert counts(code, 100, limit=2)[:100] == [1] * 100
    worker = threads.pool().workers[0]
    assert sent[0] == (worker.thread, 7, worker.left)


def test_only_workers_that_slept_where_the_caller_runs_are_sent_away(monkeypatch):
    sent: list[tuple[int | None, int, int | None]] = []
    monkeypatch.setattr(cpus, "current_cpu", lambda: 7)
    monkeypatch.setattr(cpus, "send_away", lambda *call: bool(sent.append(call)))
    pool = threads.Pool()
    pool.workers = [threads._Worker(threading.Lock(), thread, cpu) for thread, cpu in ((11, 6), (12, 7), (13, None))]
    for k, worker in enumerate(pool.workers):
        worker.lock.acquire()
        pool._wake[k] = k + 1
    pool._word(threads._SLEEPERS).value = 3
    pool._wake_sleepers()
    assert sent == [(12, 7, None)]
    assert not any(worker.lock.locked() for worker in pool.workers)


def test_a_job_that_the_first_worker_has_not_seen_says_so(code):
    pool = threads.Pool()
    numbers = (ctypes.c_int64 * 16)()
    post = (pool.state, code.address("add"), ctypes.addressof(numbers), 3, 2, False, threads.PAUSES, pool._wake)
    assert pool.code.run(*post) == threads._UNSEEN
    pool._word(threads._seen(1)).value = 2
    assert pool.code.run(*post) == -1
    assert list(numbers)[:4] == [2, 2, 2, 0]


def test_a_worker_that_has_not_seen_a_finished_job_is_sent_away(monkeypatch):
    sent: list[tuple[int | None, int, int | None]] = []
    monkeypatch.setattr(cpus, "send_away", lambda *call: sent.append(call) or True)
    pool = threads.Pool()
    pool.workers = [threads._Worker(threading.Lock(), thread) for thread in (11, 12, 13)]
    pool._word(threads._JOB).value = 5
    pool._word(threads._seen(2)).value = 5
    here = 7
    monkeypatch.setattr(cpus, "current_cpu", lambda: here)
    for _ in range(threads._LATE_JOBS - 1):
        pool._make_room(3)
    assert sent == []
    pool._make_room(3)
    assert sent == [(11, 7, None)]
    here = 6
    for _ in range(threads._LATE_JOBS):
        pool._make_room(4)
    assert sent[1:] == [(11, 6, 7), (13, 6, None)]


def test_a_job_whose_first_worker_ran_on_the_callers_processor_says_so(code):
    """By what the worker noted: here, and then elsewhere. Where the system does not say, nobody knows."""
    pool = threads.Pool()
    pool._word(threads._LOOK).value = (
        1 << 62
    )  # ticks: however long the other thread takes to begin, the caller waits for it
    reader = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)
    pool._word(threads._PROCESSOR).value = ctypes.cast(reader, ctypes.c_void_p).value

    def one_task() -> None:
        while not pool.code.work(pool.state, 1, 0):
            os.sched_yield()

    def answer(noted: int, job: int = 1) -> int:
        """Of a job of two tasks, one on each of two threads; the worker noted a processor, for this job or an earlier one."""
        pool._word(threads._ran_on(1)).value = noted
        pool._word(threads._seen(1)).value = pool._word(threads._JOB).value + job
        begun = ctypes.c_int64()
        helper = threading.Thread(target=one_task)
        helper.start()
        place = (code.address("meet"), ctypes.addressof(begun))
        found = pool.code.run(pool.state, *place, 2, 2, False, 1 << 40, pool._wake)
        helper.join()
        return found

    assert answer(8) == threads._TOGETHER
    assert answer(7) == threads._DONE
    assert answer(8, job=0) == threads._DONE
    pool._word(threads._PROCESSOR).value = 0
    assert answer(0) == threads._DONE


def test_workers_that_ran_where_the_caller_runs_are_sent_away(monkeypatch):
    sent: list[tuple[int | None, int, int | None]] = []
    monkeypatch.setattr(cpus, "send_away", lambda *call: sent.append(call) or True)
    monkeypatch.setattr(cpus, "current_cpu", lambda: 7)
    pool = threads.Pool()
    pool.workers = [threads._Worker(threading.Lock(), thread) for thread in (11, 12, 13, 14)]
    pool._word(threads._JOB).value = 5
    for number, (ran_on, seen) in enumerate(((8, 5), (7, 5), (8, 4), (8, 5)), 1):
        pool._word(threads._ran_on(number)).value = ran_on
        pool._word(threads._seen(number)).value = seen
    pool._keep_apart(4)  # the caller and the first three
    assert sent == [(11, 7, None)]
    monkeypatch.setattr(cpus, "current_cpu", lambda: None)
    pool._keep_apart(5)
    assert len(sent) == 1


def test_a_worker_begins_elsewhere(code, monkeypatch):
    sent: list[tuple[int | None, int, int | None]] = []
    monkeypatch.setattr(cpus, "send_away", lambda *call: bool(sent.append(call)))
    monkeypatch.setattr(cpus, "current_cpu", lambda: 7)
    monkeypatch.setattr(threads, "available_cpus", lambda: 2)
    pool = threads.Pool()
    numbers = (ctypes.c_int64 * 16)()
    pool.run(code.address("add"), ctypes.addressof(numbers), 3, 3)
    assert (pool.workers[0].thread, 7, None) in sent
    assert all(call[0] != pool.workers[1].thread for call in sent[:1])


@pytest.mark.parametrize(("soon", "woken"), [(1e9, 1), (0.0, 0)])
def test_brief_jobs_are_done_alone_until_they_make_a_loop(code, monkeypatch, soon, woken):
    pool, released = threads.Pool(), []
    lock = type("Lock", (), {"release": lambda self: released.append(1)})()
    pool.workers = [threads._Worker(lock)]
    flag = pool._word(threads._WORKERS + threads._LINE)
    flag.value = 1
    monkeypatch.setattr(threads, "SPIN_SECONDS", soon)
    numbers = (ctypes.c_int64 * 16)()
    for job in range(1, threads._ROW):
        pool.run(code.address("who"), ctypes.addressof(numbers), 3, 2, brief=True)
        assert (numbers[0], numbers[1], flag.value) == (3 * job, 0, 1)
    assert released == []
    pool.run(code.address("who"), ctypes.addressof(numbers), 3, 2, brief=True)
    assert (numbers[0], numbers[1]) == (3 * threads._ROW, 0)
    assert (len(released), flag.value) == (woken, 1 - woken)


@pytest.mark.usefixtures("four_threads")
def test_an_interrupt_before_a_worker_is_woken_does_not_lose_it(code, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cpus, "current_cpu", lambda: -7)
        fall_asleep(code, -7)
        patched.setattr(threads._Worker, "leave", lambda *_: interrupted(None))
        with pytest.raises(KeyboardInterrupt):
            counts(code, 100, limit=2)
    asleep(1)  # it has run, and sleeps again
    assert counts(code, 100, limit=2)[:100] == [1] * 100


def test_the_number_of_pauses_before_a_worker_sleeps_follows_their_length(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(threads.time, "perf_counter", lambda: 1e-5 * next(ticks))
    assert threads.Pool()._longest == pytest.approx(threads.SPIN_SECONDS / 1e-5 * threads.PAUSES, abs=1)
    monkeypatch.setattr(threads.time, "perf_counter", lambda: 0.0)
    assert threads.Pool()._longest > threads.PAUSES
    monkeypatch.setattr(threads.time, "perf_counter", lambda: 1.0 * next(ticks))  # other threads of Python ran
    assert threads.Pool()._longest == threads.PAUSES


@pytest.mark.slow
def test_the_interpreter_ends_with_sleeping_and_spinning_workers():
    script = f"""
import ctypes
from tc_jupyter.runtime import jit, threads
threads.set_threads(3)
code = jit.compile({TEXT!r})
numbers = (ctypes.c_int64 * 64)()
threads.pool().run(code.address("add"), ctypes.addressof(numbers), 64)
print(sum(numbers))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout.strip()) == (0, "64"), done.stderr


@pytest.mark.usefixtures("four_threads")
def test_an_interrupt_drops_tasks_and_leaves_the_pool_usable(code, monkeypatch):
    pool = threads.pool()
    names = ("worker", "run", "wait", "cancel", "alone")

    def interrupted(*_):
        raise KeyboardInterrupt

    stand_in = type("Code", (), {name: staticmethod(getattr(pool.code, name)) for name in names})
    stand_in.work = staticmethod(interrupted)
    numbers = (ctypes.c_int64 * 16)()
    total = (1 << 32) - 1  # minutes of work
    monkeypatch.setattr(pool, "code", stand_in)
    with pytest.raises(KeyboardInterrupt):
        pool.run(code.address("who"), ctypes.addressof(numbers), total)
    monkeypatch.undo()
    done = sum(numbers)
    assert done < total
    assert counts(code, 100)[:100] == [1] * 100
    assert sum(numbers) == done


def test_the_caller_of_long_tasks_looks_after_each_of_them():
    """One tick is not enough for sixteen; then no claim is of more than one."""
    pool, begun = threads.Pool(), list[int]()
    task = TASK(lambda _, index, *__: begun.append(index))
    address = ctypes.cast(task, ctypes.c_void_p).value
    pool._word(threads._LOOK).value = 1
    for job in range(1, 4):
        assert pool.code.run(pool.state, address, None, 100, 1, False, threads.PAUSES, pool._wake) == 0
        assert begun == [0] * job
    for number in (1, 2, 3):
        assert pool.code.work(pool.state, 0, 1)
        assert begun[3:] == list(range(1, number + 1))
    assert not pool.code.work(pool.state, 0, 1 << 62)
    assert begun[3:] == list(range(1, 100))


def test_one_thread_looks_after_each_long_task():
    pool, begun = threads.Pool(), list[int]()
    task = TASK(lambda _, index, *__: begun.append(index))
    address = ctypes.cast(task, ctypes.c_void_p).value
    assert pool.code.alone(address, None, 0, 9, 0) == 1
    assert pool.code.alone(address, None, 1, 9, 1) == 2
    assert pool.code.alone(address, None, 2, 9, 1 << 62) == 9
    assert pool.code.alone(address, None, 9, 9, 1 << 62) == 9
    assert begun == list(range(9))


def test_what_is_left_of_a_claim_is_dropped_too():
    pool, begun, dropped = threads.Pool(), list[int](), list[int]()

    def compute(_: int, index: int, *__: int) -> None:
        begun.append(index)
        if index == 3:
            dropped.append(pool.code.cancel(pool.state))

    task = TASK(compute)
    address = ctypes.cast(task, ctypes.c_void_p).value
    pool._word(threads._LOOK).value = 1 << 62
    for _ in range(2):  # the next job begins anew
        begun.clear()
        pool.code.run(pool.state, address, None, 1000, 1, False, threads.PAUSES, pool._wake)
        assert begun == [0, 1, 2, 3]
    assert dropped == [1000 - 1 - threads._SLICE] * 2  # a claim of one task, then one of sixteen


@pytest.mark.usefixtures("four_threads")
def test_further_interrupts_do_not_end_the_wait_for_begun_tasks(code, monkeypatch):
    pool, times = threads.pool(), itertools.count()
    total = (1 << 32) - 1

    def interrupted(*_):
        raise KeyboardInterrupt

    def wait(*given):
        return interrupted() if next(times) < 3 else real.wait(*given)

    def cancel(*given):
        return interrupted() if next(cancels) < 2 else real.cancel(*given)

    real, cancels = pool.code, itertools.count()
    stand_in = type("Code", (), {name: staticmethod(getattr(real, name)) for name in ("run", "worker")})
    stand_in.work = staticmethod(interrupted)
    stand_in.wait, stand_in.cancel = staticmethod(wait), staticmethod(cancel)
    numbers = (ctypes.c_int64 * 16)()
    with monkeypatch.context() as patched:
        patched.setattr(pool, "code", stand_in)
        with pytest.raises(KeyboardInterrupt):
            pool.run(code.address("who"), ctypes.addressof(numbers), total)
    assert pool._word(2 * threads._LINE).value == total
    done = sum(numbers)
    assert counts(code, 100)[:100] == [1] * 100
    assert sum(numbers) == done < total


@pytest.mark.usefixtures("four_threads")
def test_an_interrupt_before_a_job_has_begun_waits_for_nothing(code, monkeypatch):
    pool = threads.pool()
    assert counts(code, 3)[:3] == [1] * 3

    def interrupted(*_):
        raise KeyboardInterrupt

    stand_in = type(
        "Code", (), {name: staticmethod(getattr(pool.code, name)) for name in ("worker", "wait", "cancel", "work")}
    )
    stand_in.run = staticmethod(interrupted)
    with monkeypatch.context() as patched:
        patched.setattr(pool, "code", stand_in)
        with pytest.raises(KeyboardInterrupt):
            pool.run(code.address("add"), None, 1000)
    assert counts(code, 100)[:100] == [1] * 100


def test_without_a_clock_the_caller_looks_after_every_claim(monkeypatch):
    code = threads._code()
    monkeypatch.setattr(threads, "_code", lambda: SimpleNamespace(**{**vars(code), "ticks": lambda: 0}))
    assert threads.Pool()._look == 0


def test_how_often_the_caller_looks():
    def deviation():
        pool = threads.Pool()
        start, first = time.perf_counter(), pool.code.ticks()
        while time.perf_counter() - start < 0.01:
            pool.code.pause(1000)
        ticks, seconds = pool.code.ticks() - first, time.perf_counter() - start
        return (pool._look / ticks) / (threads._LOOK_SECONDS / seconds)

    # somebody else may take the processor between a look at one clock and at the other
    assert 0.2 < sorted(deviation() for _ in range(5))[2] < 5


def test_an_interrupt_after_a_brief_job_waits_for_nothing(code, monkeypatch):
    pool = threads.Pool()
    pool.workers = [threads._Worker(threading.Lock())]
    numbers = (ctypes.c_int64 * 16)()
    assert (
        pool.code.run(
            pool.state, code.address("add"), ctypes.addressof(numbers), 2, 1, False, threads.PAUSES, pool._wake
        )
        < 0
    )
    pool._word(threads._WORKERS + threads._LINE).value = 1

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "_follows", interrupted)
    for _ in range(threads._ROW - 1):
        pool._together(code.address("add"), ctypes.addressof(numbers), 5, 2, True)
    with pytest.raises(KeyboardInterrupt):
        pool._together(code.address("add"), ctypes.addressof(numbers), 5, 2, True)
    assert list(numbers)[:5] == [threads._ROW + 1] * 2 + [threads._ROW] * 3


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")
@pytest.mark.usefixtures("four_threads")
def test_a_thread_that_runs_beside_the_pool_is_seen(code):
    assert counts(code, 100)[:100] == [1] * 100
    end, started = threading.Event(), threading.Event()

    def spin():
        started.set()
        while not end.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    started.wait()
    try:
        last = time.monotonic() + 300
        while not threads.others_run() and time.monotonic() < last:
            pass
        assert threads.others_run() or time.monotonic() < last
    finally:
        end.set()
        thread.join()
