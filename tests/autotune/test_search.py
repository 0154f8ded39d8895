"""The search: planted wrong, failing and slow candidates are never chosen; the best survives an interruption and a new process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from planted import PlantedJob

import tc_jupyter as tc
from tc_jupyter.autotune import Workers, estimate, search
from tc_jupyter.compiler.definition import target_of
from tc_jupyter.schedule import ScheduleStore, StoreKey

ROOT = Path(__file__).resolve().parents[2]
SCALE = "def scale(float(N, M) X) -> (Y) { Y(i, j) = 2 * X(i, j) + 1 }"


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path / "cache"))


def planted(tmp_path, behaviour, count=1, seconds=10_000.0, patience=10_000.0, **options):
    """A search over schedules with made-up behaviour; the first is the default. Its limits are far away unless they are given."""
    f = tc.compile(SCALE).scale
    start = f.schedule()
    schedules = [start, *(start.split("Y", "i", factor=n) for n in range(2, 2 + len(behaviour) - 1))]
    store, key = ScheduleStore(tmp_path / "s"), StoreKey("p", "t")
    with Workers(PlantedJob(tuple(behaviour)), count=count, patience=patience) as workers:
        log = search(list(enumerate(schedules)), workers, seconds, store, key, **options)
    return log, schedules, store, key


FAST, MIDDLE, DEFAULT, HOPELESS = (1, 10), (1, 2_000), (1, 40_000), (1, 4_000_000)
WRONG = (2, 10)


def test_wrong_failing_crashing_and_slow_candidates_are_dropped_and_named(tmp_path):
    behaviour = [DEFAULT, WRONG, "fails", MIDDLE, HOPELESS, "crashes", "prints", "ends the process"]
    behaviour += ["cannot be built", "spills", "crashes the compiler", WRONG]
    log, schedules, store, key = planted(tmp_path, behaviour, count=2)
    said = {behaviour[n]: log.trials[n].dropped for n in range(len(behaviour))}
    assert said.pop("fails") == "failed: MemoryError: planted"
    assert said.pop("cannot be built") == "failed: MemoryError: planted"
    assert said.pop("crashes") == "crashed: SIGSEGV"
    assert said.pop("crashes the compiler") == "crashed: SIGABRT"
    assert said.pop("ends the process") == "crashed: its process ended with status 3"
    assert said.pop("spills") == "spills 64 bytes of registers"
    assert said.pop(HOPELESS) == "too slow: 40 ms"
    assert said.pop(WRONG) == "wrong result"
    assert said == {DEFAULT: "", MIDDLE: "", "prints": ""}
    assert log.best.schedule == schedules[behaviour.index(MIDDLE)]  # of the three that are right the fastest
    assert store.best(key).steps == log.best.schedule.steps
    assert "planted" in str(log)
    assert log.gain == pytest.approx(20)


@pytest.mark.slow
def test_a_candidate_that_hangs_is_dropped_and_named(tmp_path):
    # the default answers in time also where others use the processors
    log, *_ = planted(tmp_path, [DEFAULT, "hangs"], patience=3.0)
    assert log.trials[1].dropped == "timed out: no answer in 3.02 s"  # and sixty times the default's 0.4 ms
    assert log.best is log.trials[0]


def test_the_default_stays_where_nothing_is_faster(tmp_path):
    log, schedules, store, key = planted(tmp_path, [MIDDLE, (1, 6_000), (3, 1)])
    assert log.best.schedule == schedules[0]
    assert log.gain == 1
    assert store.best(key) is None


@pytest.mark.slow
def test_a_gain_that_was_luck_is_taken_back(tmp_path):
    # fast while it is searched, slow when it is timed once more
    log, _, store, key = planted(tmp_path, [MIDDLE, "lucky", (1, 3_000)])
    assert log.trials[1].dropped == "no gain when it was timed once more"
    assert log.best is log.trials[0]
    assert store.best(key) is None


def test_an_interruption_keeps_the_best(tmp_path):
    def interrupt(log):
        if len(log.trials) == 3:
            raise KeyboardInterrupt

    log, schedules, store, key = planted(tmp_path, [DEFAULT, MIDDLE, WRONG, FAST], on_trial=interrupt)
    assert log.stopped == "interrupted"
    assert store.best(key).steps == schedules[1].steps


def test_a_search_is_stopped_in_the_middle_of_a_candidate(tmp_path):
    stop = threading.Event()
    behaviour = [DEFAULT, MIDDLE, "hangs", FAST]

    def seen(log):
        if len(log.trials) == 2:
            stop.set()

    log, schedules, store, key = planted(tmp_path, behaviour, on_trial=seen, stopped=stop.is_set)
    assert (log.stopped, len(log.trials)) == ("stopped", 2)
    assert store.best(key).steps == schedules[1].steps


@pytest.mark.parametrize("behaviour", ["hangs", "hangs the compiler"])
def test_the_end_of_the_time_ends_what_is_at_work(tmp_path, behaviour):
    def over(log):
        workers.ends = time.monotonic() + 0.2  # without it the search would wait for hours

    start = tc.compile(SCALE).scale.schedule()
    candidates = [(0, start), (1, start.split("Y", "i", factor=2)), (2, start.split("Y", "i", factor=3))]
    with Workers(PlantedJob((DEFAULT, behaviour, FAST)), count=1, patience=10_000.0) as workers:
        log = search(candidates, workers, 10_000.0, on_trial=over)
    assert log.stopped == "time is over"
    assert log.best is log.trials[0]


def test_no_time_for_the_default_schedule_is_told(tmp_path):
    seen = []
    log, _, store, key = planted(tmp_path, ["hangs", FAST], seconds=0.2, on_trial=lambda log: seen.append(str(log)))
    assert [trial.dropped for trial in log.trials] == ["not measured: time is over"]
    assert (log.gain, log.best, store.best(key)) == (1.0, log.trials[0], None)
    assert seen == [str(log)]


def test_a_large_job_does_not_wait_for_a_process_that_starts(tmp_path):
    # more than a pipe holds
    start = tc.compile(SCALE).scale.schedule()
    with Workers(PlantedJob((b"x" * 10_000_000,))) as workers:
        assert search([(0, start)], workers, 0.0).stopped == "time is over"


def test_a_default_that_fails_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="the default schedule cannot be measured: crashed: SIGSEGV"):
        planted(tmp_path, ["crashes", FAST])


KILLED = """
import os, sys
sys.path[:0] = {path!r}
from pathlib import Path
from test_search import DEFAULT, planted

def seen(log):
    print(len(log.trials), log.trials.index(log.best), flush=True)
    if len(log.trials) == {moment}:
        os.kill(os.getpid(), 9)

planted(Path({folder!r}), [DEFAULT, (1, 20_000), (2, 1), (1, 5_000), "hangs", (1, 10)], on_trial=seen)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 2, 3, 4])
def test_a_search_that_is_killed_keeps_its_best(tmp_path, moment):
    code = KILLED.format(path=[str(Path(__file__).parent), str(ROOT)], moment=moment, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == -9, done.stderr
    trials, best = map(int, done.stdout.split("\n")[moment - 1].split())
    assert trials == moment
    start = tc.compile(SCALE).scale.schedule()
    found = ScheduleStore(tmp_path / "s").best(StoreKey("p", "t"))
    if moment == 1:
        assert found is None
    else:
        assert found.steps == start.split("Y", "i", factor=best + 1).steps


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.5, 1.0, 1.5, 2.0, 2.5])
def test_a_real_search_that_is_killed_at_any_moment_leaves_a_good_store(tmp_path, after):
    script = f"import numpy as np, tc_jupyter as tc\nf = tc.compile({SCALE!r}).scale\nf.tune(np.ones((300, 300), 'f4'), seconds=60)"
    running = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        running.wait(after)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
    files = list((tmp_path / "cache" / "schedules").glob("*.json"))
    assert all(json.loads(file.read_text())["steps"] for file in files)
    x = np.ones((300, 300), np.float32)
    assert (tc.compile(SCALE).scale(x) == 3).all()


def test_estimates_prefer_lanes_and_threads():
    f = tc.compile(SCALE).scale
    target = target_of("cpu")
    plain = f.schedule()
    wide = plain.split("Y", "j", factor=8)
    wide = wide.vectorize("Y", wide.leaves("Y")[-1])
    sizes = {"N": 100, "M": 128}
    assert estimate(wide, sizes, target) < estimate(plain, sizes, target)


@pytest.mark.slow
def test_tune_stores_what_later_calls_and_processes_use(tmp_path):
    f = tc.compile(SCALE).scale
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    seen = []
    log = f.tune(x, on_trial=lambda log: seen.append(len(log.trials)), stopped=lambda: len(seen) > 2)
    assert seen[:3] == [1, 2, 3]
    assert log.baseline > 0
    assert np.array_equal(f(x), 2 * x + 1)
    script = f"import numpy as np, tc_jupyter as tc\nx = np.ones((64, 64), 'f4')\nassert (tc.compile({SCALE!r}).scale(x) == 3).all()"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, timeout=600)


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
