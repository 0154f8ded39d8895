"""Code that a second thread makes while the first goes on."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import ahead, cpu, jit
from tc_jupyter.runtime.ahead import INTERVAL, Ahead

pytest.importorskip("llvmlite")

LAYERS = """def f(float(B,K) X, float(N,K) W, float(P,N) V) -> (Y) {
    T(b,n) +=! X(b,k) * W(n,k)
    Y(b,p) +=! max(T(b,n), 0) * V(p,n)
}"""


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch):
    monkeypatch.setattr(ahead, "available_cpus", lambda: 2)


def where(made: list[str]):
    """Makes texts, and writes down which thread made which."""

    def make(text: str) -> bytes:
        if text == "bad":
            raise ValueError(text)
        made.append(f"{text} {threading.current_thread() is threading.main_thread()}")
        return text.encode()

    return make


def test_what_was_begun_is_made_once_by_another_thread():
    made: list[str] = []
    with Ahead(where(made)) as work:
        work.begin("a")
        work.begin("a")
        assert [work.result("a"), work.result("b"), work.result("a")] == [b"a", b"b", b"a"]
    assert made == ["a False", "b True"]


def test_an_error_is_that_of_who_asks():
    with Ahead(where([])) as work:
        work.begin("bad")
        with pytest.raises(ValueError, match="bad"):
            work.result("bad")


def test_with_one_processor_nothing_is_ahead(monkeypatch):
    monkeypatch.setattr(ahead, "available_cpus", lambda: 1)
    made: list[str] = []
    with Ahead(where(made)) as work:
        work.begin("a")
        work.result("a")
    assert made == ["a True"]


def test_where_no_thread_can_start_it_is_made_later(monkeypatch):
    def refused(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(ahead.Thread, "start", refused)
    made: list[str] = []
    with Ahead(where(made)) as work:
        work.begin("a")
        work.result("a")
    assert made == ["a True"]


def test_the_interval_of_the_interpreter_is_what_it_was():
    before = sys.getswitchinterval()
    with Ahead(where([])) as first:
        assert sys.getswitchinterval() == before
        first.begin("a")
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
        with Ahead(where([])) as second:
            second.begin("a")
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_it_ends_with_what_was_begun_also_after_an_error():
    """A fork waits for the thread that is inside the gate, and so for this one."""
    done = threading.Event()
    started = threading.Event()

    def make(_: str) -> bytes:
        started.set()
        done.wait(300)
        return b""

    def leave() -> None:
        with Ahead(make) as work:
            work.begin("a")
            started.wait(300)
            raise KeyError

    outside = threading.Timer(0, done.set)
    outside.start()
    with pytest.raises(KeyError):
        leave()
    assert done.is_set()


def test_kernels_that_others_follow_are_made_ahead(monkeypatch, tmp_path):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path))
    threads: list[bool] = []
    make = jit.emit_object_inside

    def noted(*given: Any) -> bytes:
        threads.append(threading.current_thread() is threading.main_thread())
        return make(*given)

    monkeypatch.setattr(jit, "emit_object_inside", noted)
    (f,) = tc.compile(LAYERS, target="cpu").values()
    random = np.random.default_rng(0)
    x, w, v = (random.integers(-2, 3, shape).astype("f") for shape in ((70, 30), (80, 30), (90, 80)))
    np.testing.assert_array_equal(f(x, w, v), np.maximum(x @ w.T, 0) @ v.T)
    texts = {source.text for source in f.definition().build(cpu.cpu_target()).sources}
    assert len(texts) > 1
    assert threads.count(False) == len(texts)  # the last kernel, a copy, runs the code of the first one


def test_switches_stay_from_kernel_to_kernel_and_are_put_back(monkeypatch):
    monkeypatch.setenv("TC_JUPYTER_CACHE", "off")
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(jit.binding(), "set_option", lambda _, option: told.append(tuple(option[1:].split("="))))
    monkeypatch.setattr(jit, "LAST_KNOWN", 1000)
    (f,) = tc.compile(LAYERS, target="cpu").values()
    f(*(np.zeros(shape, "f") for shape in ((70, 30), (80, 30), (90, 80))))
    before = {name: off for name, (_, off) in jit._SWITCHES.items()}
    now = dict(before)
    for name, value in told:
        assert now[name] != value
        now[name] = value
    assert told
    assert now == before


def test_switches_are_put_back_after_an_interrupt(monkeypatch):
    now = {name: off for name, (_, off) in jit._SWITCHES.items()}
    before, calls = dict(now), iter(range(100))

    def tell(_: str, option: str) -> None:
        name, value = option[1:].split("=")
        now[name] = value
        if next(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(jit.binding(), "set_option", tell)
    switches = jit._Switches()
    with pytest.raises(KeyboardInterrupt):
        switches.become(frozenset(jit._SWITCHES))
    assert now != before
    switches.become(frozenset())
    assert now == before


def test_what_a_thread_makes_after_an_interrupted_wait_is_finished_too(monkeypatch):
    begun, going_on = threading.Event(), threading.Event()
    order: list[str] = []

    def make(text: str) -> bytes:
        begun.set()
        going_on.wait(300)
        order.append(text)
        return b""

    monkeypatch.setattr(ahead, "available_cpus", lambda: 2)
    work = Ahead(make, lambda: order.append("finished"))
    work.begin("a")
    thread = work._thread
    assert thread is not None
    assert begun.wait(300)
    join = thread.join

    def interrupted(timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.__exit__(None, None, None)
    assert order == ["finished"]
    going_on.set()
    join()
    assert order == ["finished", "a", "finished"]
