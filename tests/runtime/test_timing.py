"""Interleaved measurements and their tables."""

from __future__ import annotations

import itertools
import time

import pytest

from tc_jupyter.runtime import peak, timing
from tc_jupyter.runtime.cpus import _quota, available_cpus
from tc_jupyter.runtime.timing import Benchmark, Limits, Row, Timing, benchmark, doubts, duration, roofline, rows_of


def test_percentiles():
    timing = Timing("x", tuple(float(i) for i in range(11)))
    assert (timing.p10, timing.median, timing.p90, timing.best) == (1, 5, 9, 0)


def test_candidates_take_turns_and_the_order_alternates():
    calls: list[str] = []
    timings = benchmark({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=4)
    order = [name for i, name in enumerate(calls) if i == 0 or calls[i - 1] != name]
    assert order[-4:] in (["a", "b", "a", "b"], ["b", "a", "b", "a"])
    assert "".join(order).count("ab") >= 2
    assert [timing.name for timing in timings] == ["a", "b"]
    assert all(len(timing.samples) == 4 for timing in timings)


@pytest.mark.parametrize("names", ["ab", "abc", "abcd", "abcde"])
def test_no_candidate_is_favoured(names):
    """None runs after itself, when its data is in the caches, and none always after the same other one."""
    calls: list[str] = []
    benchmark({name: lambda name=name: calls.append(name) for name in names}, rounds=2 * len(names))
    order = [name for i, name in enumerate(calls) if i == 0 or calls[i - 1] != name]
    assert len(order) == len(names) + 2 * len(names) * len(names)  # none twice in a row; each warmed up once
    before = set(itertools.pairwise(order))
    assert all(len({one for one, other in before if other == name}) >= min(2, len(names) - 1) for name in names)


def test_calls_before_a_sample_do_not_count():
    calls: list[float] = []
    benchmark({"a": lambda: calls.append(time.perf_counter())}, rounds=2, warm=0.02)
    assert calls[-1] - calls[0] > 0.04


def test_a_slow_candidate_still_gets_the_least_number_of_rounds():
    (timing,) = benchmark({"a": lambda: None}, seconds=0.0, least=7)
    assert len(timing.samples) == 7


def test_the_device_is_waited_for_after_every_sample():
    waits: list[int] = []
    benchmark({"a": lambda: None}, rounds=5, synchronize=lambda: waits.append(1))
    assert len(waits) == 7


def test_a_disturbed_sample_is_taken_again(monkeypatch):
    monkeypatch.setattr(timing, "_PATIENCE", 0.0)
    answers = iter([True, False, True, True] + [True] * 100)
    asked: list[bool] = []
    (found,) = benchmark({"a": lambda: None}, rounds=2, quiet=lambda: asked.append(True) or next(answers))
    assert len(found.samples) == 2
    assert found.disturbed == 0
    assert len(asked) == 6  # before and after the first try, the second, and the second round
    (found,) = benchmark({"a": lambda: None}, rounds=1, quiet=lambda: False)
    assert (len(found.samples), found.disturbed) == (1, 1)


def test_a_sample_waits_for_the_threads_of_the_last_candidate(monkeypatch):
    monkeypatch.setattr(timing, "_PATIENCE", 60.0)
    answers = itertools.chain([False] * 50, itertools.repeat(True))
    (found,) = benchmark({"a": lambda: None}, rounds=1, quiet=answers.__next__)
    assert (found.disturbed, next(answers)) == (0, True)


def test_limits_are_measured(monkeypatch):
    pytest.importorskip("llvmlite")
    found = peak.bandwidth(1)
    assert found is not None
    assert min(found.copy, found.copy_past, found.triad, found.triad_past) > 1e8
    assert found.best >= found.copy
    assert (peak.fma_rate(1) or 0) > 1e8
    probe = peak.quiet(1)
    assert probe is not None
    probe.shortest = 0.0
    assert probe() is False
    monkeypatch.setattr(peak.threads, "others_run", lambda: False)  # those of another library may spin still
    probe.shortest = float("inf")
    assert probe() is True


def test_how_far_two_threads_are_apart(monkeypatch):
    pytest.importorskip("llvmlite")
    found = peak.round_trip()  # none on a busy machine
    assert found is None or 1e-9 < found < 1e-3
    real = peak._job
    monkeypatch.setattr(peak, "_job", lambda name, slots, tasks, count: real(name, slots, tasks, 1))
    assert peak.round_trip() is None  # one thread waits for the other one in vain, and gives up
    monkeypatch.setattr(peak.threads, "get_threads", lambda: 1)
    assert peak.round_trip() is None


def test_an_exception_of_a_candidate_is_not_hidden():
    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        benchmark({"a": broken}, rounds=3)


def test_the_roofline_takes_the_slower_of_arithmetic_and_memory():
    limits = Limits(100.0, 10.0, "")
    assert roofline(200, 10, limits) == 2
    assert roofline(200, 40, limits) == 4


def test_rates_come_from_the_work_of_the_def():
    timing = Timing("x", (0.5, 30.0, 30.0))  # somebody else took the processor twice
    (row,) = rows_of([timing], 1e9, 2e9, Limits(4e9, 8e9, ""), {"x": True})
    assert row.gflops == 2
    assert row.gbs == 4
    assert row.fraction == 0.5
    assert row.agrees
    (row,) = rows_of([timing], None, None, Limits(1, 1, ""))
    assert row.gflops is None
    assert row.fraction is None


def test_tables_name_what_differs_and_escape_html():
    table = Benchmark((Row("<f>", 1e-3, 9e-4, 2e-3), Row("peer", 2.0, 1.0, 3.0, agrees=False)))
    assert "DIFFERS" in str(table)
    assert len(str(table).splitlines()) == 3
    assert str(table).splitlines()[0].split()[:3] == ["name", "best", "median"]
    assert "&lt;f&gt;" in table._repr_html_()


def test_a_table_says_which_medians_are_not_to_be_trusted():
    steady = Timing("steady", tuple(1e-3 + n * 1e-5 for n in range(11)))
    shaken = Timing("torch", (5e-4,) * 5 + (3e-2,) * 6, disturbed=6)
    table = Benchmark(rows_of([steady, shaken], None, None, None), notes=("a note",))
    below = str(table).splitlines()[3:]
    assert below == [
        "noisy: p90 of torch is 60 times p10, do not trust its median, compare 500 µs, its shortest sample",
        "busy: somebody else used the processors during these samples: 55% of torch",
        "a note",
    ]
    assert all(f"<div>{line}</div>" in table._repr_html_() for line in below)
    assert doubts(rows_of([steady], None, None, None)) == ()


def test_samples_that_are_alike_since_all_but_one_met_somebody_else_are_told():
    # three loads on two processors: NumPy's product took 0.2 ms once, and 20 to 77 ms otherwise
    loaded = Timing("numpy", (2e-4, *(0.02 + 0.003 * k for k in range(20))))
    assert loaded.p90 < 5 * loaded.p10
    assert doubts(rows_of([loaded], None, None, None)) == (
        "noisy: the median of numpy is 235 times its shortest sample, do not trust it, compare 200 µs",
    )


def test_disturbed_samples_of_a_measurement_that_somebody_waits_for_are_counted_once():
    asked = []
    (found,) = benchmark({"a": lambda: None}, rounds=4, quiet=lambda: asked.append(1) or False, tries=1, patience=0.0)
    assert (len(found.samples), found.disturbed) == (4, 4)
    assert rows_of([found], None, None, None)[0].disturbed == 1.0
    assert len(asked) >= 4


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.00123, "1.23 ms"), (4.5e-6, "4.5 µs"), (8e-9, "8 ns"), (0.0, "0 ns")]
)
def test_times_for_people(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [("200000 100000\n", 2), ("150000 100000", 2), ("50000 100000", 1), ("max 100000", None), ("", None)],
)
def test_container_limits(text, count):
    assert _quota(text) == count


def test_there_is_a_processor():
    assert available_cpus() >= 1
