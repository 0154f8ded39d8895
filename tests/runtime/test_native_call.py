"""The native entry point: same answers, back to Python whenever something differs, no leaks, safe under threads and finalisers."""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import native_call, threads
from tc_jupyter.runtime.call_recipe import Recipe
from tc_jupyter.runtime.native_call import MOST_BYTES, NativeCall, PlannedKernel

pytest.importorskip("llvmlite")
if not native_call.available():
    pytest.skip("this interpreter has no native entry point", allow_module_level=True)

CELL = """
def add(float(N) X, float(N) Y) -> (Z) { Z(i) = X(i) + Y(i) }
def matmul(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }
def two(float(M,N) X) -> (s, T) { s(i) +=! X(i,j)  T(j,i) = X(i,j) }
def softmax(float(N) X) -> (Y) { E(i) = exp(X(i))  s +=! E(i)  Y(i) = E(i) / s }
def window(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }
def scaled(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }
def shifted(float(N) X, int n, bool on) -> (Y) { Y(i) = on ? X(i) + n : 0 }
def sums(float(N) X) -> (Y, s) { Y(i) += X(i)  s += X(i) }
def heavy(float(N) X) -> (Y) { Y(i) = tanh(X(i)) * tanh(X(i) + 1) }
"""
LONG = 300_000
"""Elements that `heavy` does in more tasks than one thread takes at once."""


@pytest.fixture
def module():
    """Functions with their entry points, which the first call would make."""
    made = tc.compile(CELL, target="cpu", allow=["TC232"])
    for function in made.values():
        function._call = function.definition().dispatcher()
    return made


def floats(*shape):
    return np.random.default_rng(3).random(shape, dtype=np.float32)


def together(work):
    """Call `work` with 1 to 4, in as many threads."""
    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()


def writing(function):
    """The native entry point of calls with `out=`."""
    return inspect.getclosurevars(function._writer()).nonlocals["short"]


def python_calls(call, monkeypatch):
    """Counts the calls that take the Python path from now on."""
    count = []
    plan = getattr(call, "_call", call).__self__
    real = plan.fixed[0]

    def python(*args):
        count.append(1)
        return real(*args)

    monkeypatch.setattr(plan, "path", id(python))
    monkeypatch.setattr(plan, "fixed", (python, *plan.fixed))
    return count


def planned(function):
    return function._call.__self__.count >= 0


EXPECTED = [
    ("add", [(16,), (16,)], lambda x, y: x + y),
    ("matmul", [(5, 7), (7, 3)], lambda a, b: a @ b),
    ("two", [(4, 6)], lambda x: (x.sum(1), x.T)),
    ("softmax", [(33,)], lambda x: np.exp(x) / np.exp(x).sum()),
]
"""Functions of the module, shapes of arguments, and the same in NumPy."""


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        *EXPECTED,
        ("window", [(40,), (5,)], lambda x, w: np.correlate(x, w, "valid")),
    ],
)
def test_the_same_results_by_both_paths(module, monkeypatch, name, shapes, expected):
    function = module[name]
    arrays = [floats(*shape) for shape in shapes]
    for _ in range(3):
        function(*arrays)
    assert planned(function)
    count = python_calls(function, monkeypatch)
    for repetition in range(5):
        mine, theirs = function(*arrays), expected(*arrays)
        pairs = [(mine, theirs)] if isinstance(mine, np.ndarray) else list(zip(mine, theirs, strict=True))
        for found, wanted in pairs:
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        arrays = [array + repetition for array in arrays]
    assert count == []


def test_whatever_differs_goes_to_python(module, monkeypatch):
    x, y = floats(16), floats(16)
    for _ in range(3):
        module.add(x, y)
    assert planned(module.add)
    count = python_calls(module.add, monkeypatch)
    unusual = [
        (x[:15], y[:15]),
        (np.repeat(x, 2)[::2], y),
        (np.frombuffer(bytes(3) + x.tobytes(), np.uint8)[3:].view(np.float32), y),
        (x.astype(">f4"), y),
        (x.view(type("Sub", (np.ndarray,), {})), y),
    ]
    for number, (first, second) in enumerate(unusual, 1):
        np.testing.assert_allclose(module.add(first, second), np.asarray(first) + second)
        assert len(count) >= number
    for wrong in [(x,), (x, y, y), (x, y[:3]), (x, y.astype("f8")), (x, 1), (x, None), (x.reshape(4, 4), y), ()]:
        with pytest.raises(tc.CallError):
            module.add(*wrong)
    np.testing.assert_allclose(module.add(x, Y=y), x + y)
    out = np.empty(16, np.float32)
    assert module.add(x, y, out=out) is out


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        *EXPECTED,
        ("sums", [(5,)], lambda x: (1 + x, 1 + x.sum())),
    ],
)
def test_the_same_results_in_out(module, monkeypatch, name, shapes, expected):
    function = module[name]
    arrays = [floats(*shape) for shape in shapes]
    wanted = expected(*arrays)
    several = isinstance(wanted, tuple)
    out = tuple(np.empty(np.shape(each), np.float32) for each in (wanted if several else [wanted]))
    given = out if several else out[0]
    for _ in range(3):
        function(*arrays, out=given)
    count = python_calls(writing(function), monkeypatch)
    for repetition in range(5):
        for each in out:
            each.fill(1)
        assert function(*arrays, out=given) is given
        wanted = expected(*arrays)
        for mine, theirs in zip(out, wanted if several else [wanted], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)
        arrays = [array + repetition for array in arrays]
    assert count == []


def test_out_that_differs_goes_to_python(module, monkeypatch):
    memory = floats(64)
    x, y, out = memory[:16], memory[16:32], memory[32:48]
    for _ in range(3):
        module.add(x, y, out=out)
    count = python_calls(writing(module.add), monkeypatch)
    module.add(x, y, out=out)
    module.add(x, x, out=memory[48:])
    assert count == []
    expected = x + y
    strided = np.zeros(32, np.float32)[::2]
    for number, each in enumerate([strided, np.zeros(17, np.float32)[1:].view(type("Sub", (np.ndarray,), {})), x], 1):
        module.add(x, y, out=each)
        np.testing.assert_array_equal(each, expected)
        assert len(count) >= number
    read_only = np.zeros(16, np.float32)
    read_only.flags.writeable = False
    kept = memory.copy()
    for wrong in [read_only, memory[1:17], memory[15:31], np.zeros(15, "f4"), np.zeros(16), np.zeros((16, 1), "f4"), 1]:
        with pytest.raises(tc.CallError):
            module.add(x, y, out=wrong)
        np.testing.assert_array_equal(memory, kept)
    with pytest.raises(tc.CallError, match="TC606"):
        module.add(x, out=(y, out))


def test_results_that_share_memory_go_to_python(module):
    x = floats(4, 4)
    memory = np.zeros(20, np.float32)
    for _ in range(4):
        module.two(x, out=(memory[:4], memory[4:].reshape(4, 4)))
    np.testing.assert_array_equal(memory[4:].reshape(4, 4), x.T)
    kept = memory.copy()
    for _ in range(2):
        with pytest.raises(tc.CallError, match="TC611"):
            module.two(x, out=(memory[1:5], memory[4:].reshape(4, 4)))
        np.testing.assert_array_equal(memory, kept)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        (
            "scaled",
            (3, np.float32(3), np.float64(3), np.int64(3), np.array(3), np.array(3.0, np.float32), np.longdouble(3)),
        ),
        ("shifted", (np.int32(2), np.uint8(2), np.array(2), np.array(2, np.int8))),
    ],
)
def test_numbers_of_numpy_are_those_of_python(module, monkeypatch, name, numbers):
    """Python makes them its own, and calls the native entry point: the general path would read them as arrays."""
    function, x = module[name], floats(16)
    more = (True,) * (name == "shifted")
    for _ in range(4):
        expected = function(x, 2 if name == "shifted" else 3.0, *more)
    assert planned(function)
    dispatcher = function._call.__self__.fixed[0].__self__
    monkeypatch.setattr(dispatcher, "general", lambda _: pytest.fail("the general path was taken"))
    for number in numbers:
        np.testing.assert_array_equal(function(x, number, *more), expected)


def test_conditions_on_sizes_stay_checked(module):
    x, w = floats(8), floats(3)
    for _ in range(4):
        module.window(x, w)
    assert planned(module.window)
    for _ in range(3):
        with pytest.raises(tc.CallError, match="TC60"):
            module.window(w, x)


def test_numbers_are_read_by_the_native_entry_point(module, monkeypatch):
    x = floats(16)
    for _ in range(3):
        module.scaled(x, 2.0)
    count = python_calls(module.scaled, monkeypatch)
    for number in (3.0, -0.1, float("nan"), float("-0.0"), 1e-50):
        np.testing.assert_array_equal(module.scaled(x, number), np.float32(number) * x)
    assert count == []
    for number in (3, True, np.float32(3), float("inf")):
        np.testing.assert_array_equal(module.scaled(x, number), np.float32(number) * x)
    with pytest.raises(tc.CallError, match="TC607"):
        module.scaled(x, 1e39)
    assert len(count) >= 5
    for _ in range(4):
        found = module.shifted(x, 2, True)
    count = python_calls(module.shifted, monkeypatch)
    np.testing.assert_array_equal(module.shifted(x, 2, True), found)
    assert count == []
    np.testing.assert_array_equal(module.shifted(x, 3, True), x + 3)
    np.testing.assert_array_equal(module.shifted(x, 2, False), 0 * x)


def test_large_arrays_keep_the_python_path(module):
    large = floats(MOST_BYTES)
    for _ in range(4):
        module.add(large, large)
    assert not planned(module.add)


def test_a_new_size_is_planned_when_it_comes_twice(module, monkeypatch):
    for size in (5, 6, 7):
        x = floats(size)
        for _ in range(3):
            np.testing.assert_allclose(module.add(x, x), x + x)
        count = python_calls(module.add, monkeypatch)
        module.add(x, x)
        assert count == []
        monkeypatch.undo()


def test_sizes_that_alternate_are_not_planned_again_and_again(module, monkeypatch):
    plans, old = [], Recipe.plan
    monkeypatch.setattr(Recipe, "plan", lambda *args: plans.append(1) or old(*args))
    arrays = [floats(size) for size in (5, 6)]
    for _ in range(2000):
        for x in arrays:
            np.testing.assert_array_equal(module.add(x, x), x + x)
    assert len(plans) < 24
    for _ in range(1 << 13):
        module.add(arrays[0], arrays[0])
    count = python_calls(module.add, monkeypatch)
    module.add(arrays[0], arrays[0])
    assert count == []  # they are once they stay


def test_nothing_leaks(module):
    a, b = floats(4, 4), floats(4, 4)
    for _ in range(4):
        module.two(a)
        module.matmul(a, b)
    before = sys.getrefcount(a), sys.getrefcount(a.dtype)
    for _ in range(300):
        module.matmul(a, b)
        module.two(a)
    assert sys.getrefcount(a) == before[0]
    assert abs(sys.getrefcount(a.dtype) - before[1]) < 10
    result = module.two(a)
    assert [sys.getrefcount(each) for each in result] == [3, 3]
    for _ in range(300):
        module.two(a, out=result)
    assert [sys.getrefcount(each) for each in result] == [3, 3]
    assert sys.getrefcount(a) == before[0]


def test_many_threads_and_sizes(module):
    failures = []

    def work(seed):
        for k in range(300):
            x = np.full(1 + (seed * k) % 5, seed * 1000 + k, np.float32)
            found = module.add(x, x)
            if found.shape != x.shape or not (found == 2 * x).all():
                failures.append((seed, k))

    together(work)
    assert failures == []


@pytest.fixture
def number_of_threads():
    before = threads.get_threads()
    yield threads.set_threads
    threads.set_threads(before)


def heavy(x):
    return np.tanh(x) * np.tanh(x + 1)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("size", [5000, 60_000, LONG])
def test_calls_of_several_tasks(module, monkeypatch, number_of_threads, count, size):
    number_of_threads(count)
    x, out = floats(size), np.empty(size, np.float32)
    for _ in range(4):
        module.heavy(x)
        module.heavy(x, out=out)
    assert planned(module.heavy)
    assert module.heavy._call.__self__.job is not None or size == 5000
    calls = python_calls(module.heavy, monkeypatch), python_calls(writing(module.heavy), monkeypatch)
    for repetition in range(20):
        np.testing.assert_allclose(module.heavy(x), heavy(x), rtol=1e-5)
        assert module.heavy(x, out=out) is out
        np.testing.assert_allclose(out, heavy(x), rtol=1e-5)
        x = x + repetition
    assert calls == ([], [])


def test_a_plan_of_several_tasks_ends_with_the_number_of_threads(module, monkeypatch, number_of_threads):
    x = floats(LONG)
    for count in (2, 3, 1):
        number_of_threads(count)
        calls = python_calls(module.heavy, monkeypatch)
        np.testing.assert_allclose(module.heavy(x), heavy(x), rtol=1e-5)
        assert calls
        for _ in range(3):
            module.heavy(x)
        monkeypatch.undo()
        assert planned(module.heavy)


def test_threads_share_a_plan_of_several_tasks(module, number_of_threads):
    number_of_threads(2)
    failures = []

    def work(seed):
        for k in range(40):
            x = np.full(LONG, seed + k / 64, np.float32)
            if not np.allclose(module.heavy(x), heavy(x), rtol=1e-5):
                failures.append((seed, k))

    together(work)
    assert failures == []
    job = module.heavy._call.__self__.job
    assert not job.pool.busy.locked()
    assert module.heavy._call.__self__.taken == 0


def test_a_taken_plan_is_not_replaced(module, number_of_threads):
    number_of_threads(2)
    x = floats(LONG)
    for _ in range(4):
        module.heavy(x)
    plan = module.heavy._call.__self__
    job = plan.job
    plan.taken = 1
    for _ in range(4):
        np.testing.assert_allclose(module.heavy(x[1:]), heavy(x[1:]), rtol=1e-5)
    assert plan.job is job
    plan.taken = 0
    for _ in range(4):
        module.heavy(x[1:])
    assert plan.job is not job


def test_an_interrupt_gives_plan_and_pool_back(module, monkeypatch, number_of_threads):
    number_of_threads(2)
    x = floats(LONG)
    for _ in range(4):
        module.heavy(x)
    finish = threads.Pool.finish

    def interrupted(*args):
        finish(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(threads.Pool, "finish", interrupted)
    interrupts = 0
    for _ in range(10_000):  # a worker that is awake may do most of a job
        try:
            module.heavy(x)
        except KeyboardInterrupt:
            interrupts += 1
            break
    assert interrupts == 1
    monkeypatch.undo()
    plan = module.heavy._call.__self__
    assert plan.taken == 0
    assert not plan.job.pool.busy.locked()
    before = sys.getrefcount(x)
    for _ in range(20):
        np.testing.assert_allclose(module.heavy(x), heavy(x), rtol=1e-5)
    assert sys.getrefcount(x) == before


@pytest.fixture
def interruptible():
    """A process that a shell has started in the background ignores interrupts."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread on this system")
@pytest.mark.parametrize("count", [1, 2])
def test_real_interrupts_at_any_moment(module, number_of_threads, count, interruptible):
    number_of_threads(count)
    x = floats(4 * LONG)
    for _ in range(4):
        module.heavy(x)
    plan, own, interrupts = module.heavy._call.__self__, threading.get_ident(), 0

    def interrupt(after):
        end = time.perf_counter() + after
        while time.perf_counter() < end:
            os.sched_yield()
        signal.pthread_kill(own, signal.SIGINT)

    for k in range(100):
        try:
            other = threading.Thread(target=interrupt, args=(2e-5 * k,))
            other.start()
            while True:
                module.heavy(x)
        except KeyboardInterrupt:
            interrupts += 1
        other.join()
        assert plan.taken == 0
        assert not plan.job.pool.busy.locked()
    assert interrupts == 100
    np.testing.assert_allclose(module.heavy(x), heavy(x), rtol=1e-5)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_a_signal_handler_calls_while_its_thread_runs_a_job(module, number_of_threads):
    number_of_threads(2)
    x, y, found = floats(40 * LONG), floats(LONG), []
    for _ in range(4):
        module.heavy(x)
    old = signal.signal(signal.SIGALRM, lambda *_: found.append(module.heavy(y)))
    try:
        while len(found) < 20:
            signal.setitimer(signal.ITIMER_REAL, 0.005)  # once: a handler may take longer than the next one waits
            module.heavy(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    np.testing.assert_allclose(found[-1], heavy(y), rtol=1e-5)


def test_a_plan_that_changes_while_the_pool_is_taken_is_left(module, number_of_threads):
    number_of_threads(2)
    x, y = floats(LONG), floats(LONG // 2)
    for _ in range(4):
        module.heavy(x)
    plan, taken = module.heavy._call.__self__, []

    def acquire(blocking):
        if not taken:
            taken.append(1)
            for _ in range(3):
                module.heavy(y)
        return plan.job.pool.busy.acquire(blocking)

    plan.acquire = id(acquire)
    np.testing.assert_allclose(module.heavy(x), heavy(x), rtol=1e-5)
    assert taken
    assert not plan.job.pool.busy.locked()


def test_a_plan_for_another_number_of_threads_is_not_made(module, number_of_threads):
    number_of_threads(2)
    native = module.heavy._call.__self__
    x = floats(LONG)
    module.heavy(x)
    old = threads.pool().ready
    try:
        threads.pool().ready = lambda count: (threads.set_threads(3), old(count))[1]
        module.heavy(x)
        module.heavy(x)
    finally:
        del threads.pool().ready
    assert native.job is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_calls_what_its_parent_planned(module, number_of_threads):
    number_of_threads(2)
    x = floats(LONG)
    for _ in range(4):
        module.heavy(x)
    child = os.fork()
    if child == 0:
        good = all(np.allclose(module.heavy(x), heavy(x), rtol=1e-5) for _ in range(6))
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_plan_that_changes_while_results_are_made_is_left(monkeypatch):
    answers = []
    native = NativeCall(lambda *args: answers.append(args) or "python", "f")
    x, ran = np.zeros(4, np.float32), []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    code = kind(lambda slots, index, thread: ran.append(1))
    kernel = PlannedKernel(
        ctypes.cast(code, ctypes.c_void_p).value, (ctypes.c_int64 * 2)(), [(0, 0, False), (1, 1, False)]
    )
    assert native.record([x], [np.zeros(4, np.float32), np.zeros(2, np.float32)], [kernel])
    first, second = native.function(x)
    assert (first.shape, second.shape) == ((4,), (2,))
    assert ran == [1]

    def empty(shape, dtype):
        native.forget()
        return np.zeros(shape, dtype)

    native._plan.empty = id(empty)
    assert native.function(x) == "python"
    assert ran == [1]
    assert native.function(x) == "python"
    assert len(answers) == 2


def test_an_exception_of_either_side_passes_through():
    def python(*args):
        raise KeyError("python")

    native = NativeCall(python, "f")
    with pytest.raises(KeyError, match="python"):
        native.function(1)


def test_the_entry_point_ends_with_its_function(module):
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(20):
        NativeCall(lambda: None, "f").function()
    gc.collect()
    assert len(gc.get_objects()) < before + 100


FREED = """
import gc
import numpy as np
import tc_jupyter as tc

x = np.ones((8, 8), np.float32)
for _ in range(4):
    functions = []
    for _ in range(6):
        f = tc.compile("def f(float(N,M) X) -> (Y) { Y(i) +=! X(i,j) }").f
        y = f(x)
        f(x), f(x, out=y), f(x, out=y)
        functions.append(f)
    for generation in range(3):  # which changes the order of what a later collection frees
        gc.collect(generation)
    del functions, f
    gc.collect()
print("freed")
f = tc.compile("def f(float(N,M) X) -> (Y) { Y(i) +=! X(i,j) }").f  # ends with the process
f(x), f(x)
"""


@pytest.mark.slow
def test_functions_are_freed_in_any_order():
    """The C library fills memory that is freed with a pattern; a function that read its record there would take that for flags."""
    # what is freed stays with the process: giving it back to the system and asking again took four times as long as all else
    kept = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"), str(1 << 28))
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2", **kept}
    done = subprocess.run(
        [sys.executable, "-c", FREED], capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (0, "freed\n"), done.stderr
