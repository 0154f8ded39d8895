"""Workloads and suites: every workload computes what its peers compute, at small sizes."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import tc_jupyter.bench as bench
from tc_jupyter.function import close, compile

HEADER = """# name: a
# suite: cpu gpu
# sizes: N=4 M=3
# sizes: N=5 M=2
# data: C = rng.integers(0, M, (N,))
# numpy: X[C]
def look(float(M) X, int32(N) C) -> (Y) { Y(i) = X(C(i)) }
"""


def test_headers():
    found = bench.parse_workload(HEADER)
    assert found.name == "a"
    assert found.suites == ("cpu", "gpu")
    assert found.sizes == ({"N": 4, "M": 3}, {"N": 5, "M": 2})
    assert found.data == {"C": "rng.integers(0, M, (N,))"}
    assert found.peers == {"numpy": "X[C]"}


@pytest.mark.parametrize(
    "text", ["# name: a\n", "# name: a\n# sizes: N=1\n# fortran: x\n", "# nothing\n", "def f() {}"]
)
def test_headers_that_are_wrong(text):
    with pytest.raises(ValueError):
        bench.parse_workload(text)


WORKLOADS = bench.workloads("cpu")


def test_there_are_workloads_for_both_suites():
    assert len(WORKLOADS) >= 12
    assert bench.workloads("gpu")
    assert bench.workloads("nothing") == []


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_workloads_agree_with_their_peers(workload):
    pytest.importorskip("llvmlite")
    (function,) = compile(workload.text, target="cpu", allow=bench._QUIET).values()
    for sizes in workload.sizes:
        small = {name: min(value, 9) for name, value in sizes.items()}
        arrays = bench.make_data(workload, function, small)
        expected = function(*arrays.values())
        compared = 0
        for library, expression in workload.peers.items():
            if library != "cupy" and find_spec(library):
                assert close(expected, bench.peer_call(library, expression, bench.moved(arrays, library))()), library
                compared += 1
        if not compared:
            pytest.skip("no peer of this workload is installed")


def test_data_is_the_same_every_time():
    workload = bench.parse_workload(HEADER)
    (function,) = compile(workload.text, allow=["TC323"]).values()
    first, second = (bench.make_data(workload, function, {"N": 4, "M": 3}) for _ in range(2))
    assert (first["X"] == second["X"]).all()
    assert first["C"].dtype == "int32"
    assert first["C"].max() < 3


def test_a_suite_prints_and_writes_its_entries(monkeypatch, tmp_path, capsys):
    workload = replace(bench.parse_workload(HEADER), sizes=({"N": 4, "M": 3},))
    monkeypatch.setattr(bench, "workloads", lambda suite: [workload])
    monkeypatch.setattr(bench, "cpu_limits", lambda: bench.Limits(1e9, 1e9, "given"))
    quick = bench.benchmark
    monkeypatch.setattr(bench, "benchmark", lambda candidates, **more: quick(candidates, rounds=3))
    target = tmp_path / "out.json"
    assert bench.run_suite("cpu", str(target)) == 0
    assert "a, N=4 M=3" in capsys.readouterr().out
    (entry,) = json.loads(target.read_text())["entries"]
    assert entry["ratio"] > 0
    assert [row["name"] for row in entry["peers"]] == ["tc_jupyter", "numpy"]
    assert bench.run_suite("cpu", only="something else") == 0


def test_a_wrong_result_is_an_exit_code(monkeypatch, capsys):
    workload = replace(bench.parse_workload(HEADER), sizes=({"N": 4, "M": 3},), peers={"numpy": "X[C] + 1"})
    monkeypatch.setattr(bench, "workloads", lambda suite: [workload])
    monkeypatch.setattr(bench, "cpu_limits", lambda: bench.Limits(1e9, 1e9, "given"))
    quick = bench.benchmark
    monkeypatch.setattr(bench, "benchmark", lambda candidates, **more: quick(candidates, rounds=3))
    assert bench.run_suite("cpu") == 1
    assert "numpy DIFFERS" in capsys.readouterr().out


def test_the_gpu_suite_says_why_it_cannot_run(monkeypatch, capsys):
    monkeypatch.setattr(bench, "gpu_available", lambda: False)
    assert bench.run_suite("gpu") == 2
    assert "needs a GPU" in capsys.readouterr().err


def test_compile_entries_name_their_targets():
    (entry,) = bench._import_time("import tc_jupyter")
    assert entry.target == 0.25
    assert entry.median > 0
    assert "target 250 ms" in entry.text


def test_the_gain_of_a_search_is_measured_against_the_default_schedule(monkeypatch, tmp_path):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path / "cache"))
    workload = replace(bench.parse_workload(HEADER), sizes=({"N": 4, "M": 3},))
    quick = bench.benchmark
    monkeypatch.setattr(bench, "benchmark", lambda candidates, seconds: quick(candidates, rounds=3))
    found = bench.tuning_gain(workload, 0.1)
    assert found["trials"] >= 1
    assert found["gain"] == pytest.approx(found["default"] / np.median(found["samples"]))
    assert len(bench.workloads("tuning")) == 5
