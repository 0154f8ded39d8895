"""A child that is forked while other threads make code can make code; each case is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from tc_jupyter.runtime import forks, jit
from tc_jupyter.runtime.forks import Gate

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

START = """
import importlib.abc, os, signal, sys, threading
import numpy as np
import tc_jupyter as tc
from tc_jupyter.compiler import analysis, definition, open_definition
from tc_jupyter.runtime import forks, jit, threads

MM = "def mm(float(N,K) A, float(K,M) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
SUM = "float[.] twice(float[*] A) { return { [i] -> A[i] * 2f }; }"
inside, go = threading.Event(), threading.Event()
A = np.ones((160, 160), np.float32)
PRODUCT = A @ A  # here, since forks do not wait for NumPy's library

def stop():
    # once, in the middle of what the other thread does
    if not inside.is_set():
        inside.set()
        go.wait(300)

def stopped(holder, name):
    old = getattr(holder, name)
    def new(*args, **named):
        stop()
        return old(*args, **named)
    setattr(holder, name, new)

class Finder(importlib.abc.MetaPathFinder):
    # stops an import after the module is in `sys.modules` and before it is whole
    def __init__(self, name):
        assert name.partition(".")[0] not in sys.modules, "nothing is left to import"
        self.name = name
    def find_spec(self, name, path, target=None):
        if name == self.name:
            stop()

def product():
    return np.array_equal(tc.compile(MM).mm(A, A), PRODUCT)

def child(work):
    # the exit status of a forked child; one that hangs is ended
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def fork_inside(work, after=None):
    # a thread works and is stopped on its way; it goes on when the fork begins, and no sooner
    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(300)
    os.register_at_fork(before=go.set)  # the last one registered comes first
    status = child(after or work)
    thread.join()
    assert status == 0, status
    assert child(after or work) == 0
    assert (after or work)()
"""

POINTS = {
    "reading the text": "stopped(analysis, 'parse_tc'); fork_inside(product)",
    "the first import of the parser": "sys.meta_path.insert(0, Finder('lark.lark')); fork_inside(product)",
    "the first import of LLVM": "sys.meta_path.insert(0, Finder('llvmlite.binding.ffi')); fork_inside(product)",
    "making the code of a function": """
mm = tc.compile(MM).mm
stopped(definition.Definition, '_make')
fork_inside(lambda: np.array_equal(mm(A, A), PRODUCT))
""",
    "inside LLVM": "stopped(jit, '_run_passes'); fork_inside(product)",
    "loading code": "stopped(jit, '_resolve'); stopped(jit.Loaded, '__init__'); fork_inside(product)",
    "making the threads": """
mm = tc.compile(MM).mm
mm(A[:2], A)
stopped(threads.Pool, '__init__')
threads._Shared.pool = None
fork_inside(lambda: np.array_equal(mm(A, A), PRODUCT))
""",
    "the first call with `out=`": """
mm = tc.compile(MM).mm
stopped(definition.Definition, 'writer')
fork_inside(lambda: np.array_equal(mm(A, A, out=np.empty_like(A)), PRODUCT))
""",
    "choosing ranks": """
twice = tc.compile(SUM, language="sac").twice
stopped(open_definition.OpenDefinition, '_specialize')
x = np.arange(5, dtype=np.float32)
fork_inside(lambda: np.array_equal(twice(x), 2 * x))
""",
    "another library inside LLVM": """
mm = tc.compile(MM).mm
from llvmlite.binding import ffi
def hold():
    with ffi.lib._lock:
        stop()
fork_inside(hold, lambda: np.array_equal(mm(A, A), PRODUCT))
""",
}


def passes(script: str) -> None:
    environment = {**os.environ, "TC_JUPYTER_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", START + script],
        env=environment,
        timeout=600,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.some(10)
@pytest.mark.parametrize("point", POINTS)
def test_a_child_forked_while_a_thread_is(point):
    passes(POINTS[point])


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "stage", ["definition.Definition, '_make'", "jit, '_parse'", "analysis, 'parse_tc'", "threads, '_code'"]
)
def test_a_fork_by_the_thread_that_makes_code(stage):
    # the child goes on where its parent was, with the locks that it holds
    passes(f"""
def forked():
    # once: both processes go on, and the parent looks whether the child was right
    if not inside.is_set():
        inside.set()
        children.append(os.fork())
        if not children[0]:
            signal.alarm(10)
stop, children = forked, []
stopped({stage})
good = product()
if not children[0]:
    os._exit(0 if good and product() else 1)
assert good and os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
""")


def test_forks_while_several_threads_make_code():
    passes("""
texts = [f"def f(float(N,M) X) -> (Y) {{ Y(i) +=! X(i,j) * {n} }}" for n in range(6)]
functions = [tc.compile(text).f for text in texts]

def work():
    good = all(np.array_equal(f(A), n * A.sum(1)) for n, f in enumerate(functions))
    return good and np.array_equal(tc.compile(texts[1]).f(A), A.sum(1))

workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers:
    worker.start()
statuses = []
while any(worker.is_alive() for worker in workers) and len(statuses) < 6:
    statuses.append(child(work))
assert statuses and not any(statuses), statuses
""")


def test_the_lock_of_llvm_is_found():
    # an attribute that llvmlite does not document: without it a fork does not wait for other users of LLVM
    jit.binding()
    lock = jit._library_lock()
    with lock:
        pass


@pytest.fixture
def gate():
    return Gate()


def in_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_gate_lets_threads_in_together_and_again(gate):
    both = threading.Barrier(2)

    def work():
        with gate, gate:
            both.wait(300)

    threads = [in_thread(work) for _ in range(2)]
    for thread in threads:
        thread.join(300)
    assert gate._inside == {}


def test_nobody_enters_during_a_fork(gate):
    gate.before_fork()
    entered = threading.Event()

    def work():
        with gate:
            entered.set()

    thread = in_thread(work)
    with gate:  # the thread that forks may
        assert not entered.is_set()
    gate.after_fork()
    thread.join(300)
    assert entered.is_set()


def one_inside(gate):
    """A thread in the gate, and what lets it leave."""
    inside, leave = threading.Event(), threading.Event()

    def work():
        with gate:
            inside.set()
            leave.wait(300)

    thread = in_thread(work)
    assert inside.wait(300)
    return thread, leave


def test_a_fork_does_not_wait_for_ever(gate, monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 0.05)
    thread, leave = one_inside(gate)
    gate.before_fork()
    gate.after_fork()
    leave.set()
    thread.join(300)
    assert gate._inside == {}


def test_a_child_forgets_threads_that_it_does_not_have(gate, monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 0.05)
    thread, leave = one_inside(gate)
    with gate:
        gate.before_fork()
        gate.after_fork_in_child()
        assert list(gate._inside) == [threading.get_ident()]
    assert gate._inside == {}
    gate._inside[thread.ident] = 1  # here the thread does exist, and leaves
    leave.set()
    thread.join(300)


def test_one_that_is_interrupted_at_the_door_is_not_inside(gate):
    class Door:
        def __enter__(self):
            pass

        def __exit__(self, *_):
            raise KeyboardInterrupt

    gate._door = Door()
    with pytest.raises(KeyboardInterrupt), gate:
        pass
    assert gate._inside == {}
