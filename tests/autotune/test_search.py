"""The search: planted wrong, failing and slow candidates are never chosen; the best survives an interruption and a new process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.autotune import estimate, search
from tc_jupyter.compiler.definition import target_of
from tc_jupyter.schedule import ScheduleStore, StoreKey

SCALE = "def scale(float(N, M) X) -> (Y) { Y(i, j) = 2 * X(i, j) + 1 }"


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path / "cache"))


def planted(tmp_path, behaviour):
    """A search over schedules with made-up behaviour; the first is the default."""
    f = tc.compile(SCALE).scale
    start = f.schedule()
    schedules = [start, *(start.split("Y", "i", factor=n) for n in range(2, 2 + len(behaviour) - 1))]
    runs = dict(zip(schedules, behaviour, strict=True))
    store, key = ScheduleStore(tmp_path / "s"), StoreKey("p", "t")
    log = search([(n, s) for n, s in enumerate(schedules)], lambda s: runs[s], lambda a, b: a == b, 30, store, key)
    return log, schedules, store, key


def slow(value, count):
    def run():
        for _ in range(count):
            pass
        return value

    return run


def fails():
    raise MemoryError("planted")


def test_wrong_failing_and_slow_candidates_are_dropped_and_named(tmp_path):
    behaviour = [slow(1, 40_000), slow(2, 10), fails, slow(1, 2_000), slow(1, 4_000_000)]
    log, schedules, store, key = planted(tmp_path, behaviour)
    assert [trial.dropped.split(":")[0] for trial in log.trials] == ["", "wrong result", "failed", "", "too slow"]
    assert log.best.schedule == schedules[3]
    assert store.best(key).steps == schedules[3].steps
    assert "planted" in str(log)
    assert log.gain > 1


def test_the_default_stays_where_nothing_is_faster(tmp_path):
    log, schedules, store, key = planted(tmp_path, [slow(1, 2_000), slow(1, 6_000), slow(3, 1)])
    assert log.best.schedule == schedules[0]
    assert log.gain == 1
    assert store.best(key) is None


def test_an_interruption_keeps_the_best(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    log, schedules, store, key = planted(tmp_path, [slow(1, 40_000), slow(1, 2_000), interrupted, slow(1, 1)])
    assert log.stopped == "interrupted"
    assert store.best(key).steps == schedules[1].steps


def test_estimates_prefer_lanes_and_threads():
    f = tc.compile(SCALE).scale
    target = target_of("cpu")
    plain = f.schedule()
    wide = plain.split("Y", "j", factor=8)
    wide = wide.vectorize("Y", wide.leaves("Y")[-1])
    sizes = {"N": 100, "M": 128}
    assert estimate(wide, sizes, target) < estimate(plain, sizes, target)


def test_tune_stores_what_later_calls_and_processes_use(tmp_path):
    f = tc.compile(SCALE).scale
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    seen = []
    log = f.tune(x, seconds=1.5, on_trial=lambda log: seen.append(len(log.trials)))
    assert seen == list(range(1, len(log.trials) + 1))
    assert log.baseline > 0
    assert np.array_equal(f(x), 2 * x + 1)
    script = f"import numpy as np, tc_jupyter as tc\nx = np.ones((64, 64), 'f4')\nassert (tc.compile({SCALE!r}).scale(x) == 3).all()"
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, timeout=120)


def test_a_stored_schedule_is_used(tmp_path):
    from tc_jupyter.compiler.build import schedule_store, tuning_key
    from tc_jupyter.compiler.definition import ROW_MAJOR

    f = tc.compile(SCALE).scale
    marked = f.schedule().split("Y", "i", factor=7)
    schedule_store().put(tuning_key(f.program, target_of("cpu"), ROW_MAJOR), marked.steps, 1e-9)
    assert "7" in f.source("loops")
    x = np.ones((20, 3), np.float32)
    assert (tc.compile(SCALE).scale(x) == 3).all()


def test_the_interpreter_is_not_tuned():
    f = tc.compile(SCALE, target="interpreter").scale
    with pytest.raises(ValueError, match="nothing to tune"):
        f.tune(np.ones((2, 2), np.float32))
