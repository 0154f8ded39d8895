"""Workloads and suites: every workload computes what its peers compute, at small sizes."""

from __future__ import annotations

import json
import platform
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.bench import cpu, plain, runner, workloads
from tc_jupyter.compiler.peers import moved, peer_call
from tc_jupyter.function import compile
from tc_jupyter.runtime import libraries
from tests.c_compiler import needs_compiler

HEADER = """# name: a
# suite: cpu gpu
# sizes: N=4 M=3
# sizes: N=5 M=2
# data: C = rng.integers(0, M, (N,))
# numpy: X[C]
def look(float(M) X, int32(N) C) -> (Y) { Y(i) = X(C(i)) }
"""


def test_headers():
    found = workloads.parse_workload(HEADER)
    assert found.name == "a"
    assert found.suites == ("cpu", "gpu")
    assert found.sizes == ({"N": 4, "M": 3}, {"N": 5, "M": 2})
    assert found.data == {"C": "rng.integers(0, M, (N,))"}
    assert found.peers == {"numpy": "X[C]"}


@pytest.mark.parametrize("peer", ["numba", "halide"])
def test_functions_of_a_header_keep_their_indentation(peer):
    text = f"# name: a\n# sizes: N=4\n# {peer}: def a(X):\n# {peer}:     return X + 1\ndef a(float(N) X) -> (Y) {{ Y(i) = X(i) + 1 }}\n"
    assert workloads.parse_workload(text).peers == {peer: "def a(X):\n    return X + 1"}


@pytest.mark.parametrize(
    "text", ["# name: a\n", "# name: a\n# sizes: N=1\n# fortran: x\n", "# nothing\n", "def f() {}"]
)
def test_headers_that_are_wrong(text):
    with pytest.raises(ValueError):
        workloads.parse_workload(text)


WORKLOADS = [each for suite in ("cpu", "borders", "operands", "scatter") for each in runner.workloads(suite)]
CAP = 19  # sizes of the ordinary tests: past a vector of 16, cheap to compute in every library


def test_there_are_workloads_for_all_suites():
    assert len(runner.workloads("cpu")) >= 20
    assert [len(runner.workloads(each)) for each in ("borders", "operands", "scatter")] == [7, 12, 9]
    assert runner.workloads("gpu")
    assert runner.workloads("nothing") == []
    assert all(workload.awkward and workload.reference and workload.peers for workload in WORKLOADS)


def small(sizes):
    return {name: value if name in ("KH", "KW") else min(value, CAP) for name, value in sizes.items()}


@pytest.mark.some(25)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_workloads_agree_with_their_peers_and_with_double_precision(workload):
    pytest.importorskip("llvmlite")
    (function,) = compile(workload.text, target="cpu", allow=runner.QUIET).values()
    for sizes in map(small, (*workload.sizes, *workload.awkward)):
        arrays = runner.make_data(workload, function, sizes)
        result = function(*arrays.values())
        assert workloads.deviation(workload, arrays, sizes, result) <= 1
        _, agrees = cpu._candidates(workload, arrays, sizes, result, compiled=False)
        assert all(agrees.values()), agrees


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if "numba" in w.peers], ids=lambda w: w.name)
def test_loops_compute_the_workload_also_without_their_compiler(workload, monkeypatch):
    uncompiled = SimpleNamespace(prange=range, njit=lambda **options: lambda function: function)
    monkeypatch.setitem(sys.modules, "numba", uncompiled)
    (function,) = compile(workload.text, target="interpreter", allow=runner.QUIET).values()
    sizes = {name: min(value, 5) for name, value in small(workload.sizes[0]).items()}
    arrays = runner.make_data(workload, function, sizes)
    call = peer_call("numba", workload.peers["numba"], moved(arrays, "numba"))
    assert workloads.deviation(workload, arrays, sizes, call()) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_workloads_at_their_own_sizes_agree_with_double_precision(workload):
    pytest.importorskip("llvmlite")
    (function,) = compile(workload.text, target="cpu", allow=runner.QUIET).values()
    for sizes in (*workload.sizes, *workload.awkward):
        arrays = runner.make_data(workload, function, sizes)
        assert workloads.deviation(workload, arrays, sizes, function(*arrays.values())) <= 1


def test_a_result_beyond_its_bound_is_found():
    workload = workloads.parse_workload("""# name: sum
# sizes: N=1000
# length: N
# numpy: X.sum()
def total(float(N) X) -> (s) { s +=! X(i) }
""")
    (function,) = compile(workload.text, target="interpreter").values()
    sizes = {"N": 1000}
    arrays = runner.make_data(workload, function, sizes)
    exact = arrays["X"].astype(np.float64).sum()
    bound = 1002 * 2**-24 * np.abs(arrays["X"].astype(np.float64)).sum()
    assert workloads.deviation(workload, arrays, sizes, np.float32(exact + 0.9 * bound)) < 1
    assert workloads.deviation(workload, arrays, sizes, np.float32(exact + 1.1 * bound)) > 1
    assert workloads.deviation(workload, arrays, sizes, np.zeros(3, np.float32)) == float("inf")


def test_scalars_are_numbers():
    """An array without dimensions takes another way through a call, which costs more than many a kernel."""
    workload = workloads.parse_workload(
        "# name: scaled\n# sizes: N=4\ndef f(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }"
    )
    function = compile(workload.text, target="interpreter").f
    assert type(runner.make_data(workload, function, {"N": 4})["a"]) is float


def test_data_is_the_same_every_time():
    workload = workloads.parse_workload(HEADER)
    (function,) = compile(workload.text, allow=["TC323"]).values()
    first, second = (runner.make_data(workload, function, {"N": 4, "M": 3}) for _ in range(2))
    assert (first["X"] == second["X"]).all()
    assert first["C"].dtype == "int32"
    assert first["C"].max() < 3


@pytest.fixture
def one_workload(monkeypatch):
    """The suite `cpu` has one workload, and measures it quickly."""
    pytest.importorskip("llvmlite")

    def use(**changes):
        workload = replace(workloads.parse_workload(HEADER), **{"sizes": ({"N": 4, "M": 3},), "awkward": (), **changes})
        monkeypatch.setattr(cpu, "workloads", lambda suite: [workload])
        monkeypatch.setattr(cpu, "cpu_limits", lambda: runner.Limits(1e9, 1e9, "given"))
        monkeypatch.setattr(cpu, "_limits_text", lambda count: "given")
        quick = cpu.benchmark
        monkeypatch.setattr(cpu, "benchmark", lambda candidates, **more: quick(candidates, rounds=3))
        monkeypatch.setattr(cpu, "_child", here)

    def here(count, only, compiled, suite):
        return cpu.Measured("kernels: given", tuple(cpu._measured(only, count, compiled, suite)))

    return use


def test_a_suite_prints_and_writes_its_entries(one_workload, tmp_path, capsys):
    one_workload()
    target = tmp_path / "out.json"
    assert runner.run_suite("cpu", str(target), thread_count=2) == 0
    said = capsys.readouterr().out
    assert "a, N=4 M=3" in said
    assert "best of all peers: geometric mean" in said
    assert "numba " in said
    (entry,) = json.loads(target.read_text())["entries"]
    assert entry["best"] > 0
    assert entry["error"] == 0
    assert [row["name"] for row in entry["rows"]] == ["tc_jupyter", "numpy"]
    assert cpu.main([str(target), str(target)]) == 0
    table = capsys.readouterr().out
    head, below = table.split("\n\n", 1)
    assert re.fullmatch(r"\* \S+, Python .*\n\* peers: numpy .*\n\* kernels: given", head)
    assert below.startswith("| | 2 threads |")
    ratio = f"{entry['best']:.2f}"
    assert re.search(rf"^\| a, N=4 M=3 \| .*s \| {ratio}, {ratio} numpy \|$", table, re.MULTILINE)
    assert "* 2 threads: geometric mean over the best peer" in table
    assert runner.run_suite("cpu", only="something else", thread_count=1) == 2
    assert "no line of the suite `cpu` has 'something else' in its name; there are\n  a\n" in capsys.readouterr().err


def test_every_number_of_threads_has_a_process_of_its_own(one_workload, monkeypatch, capsys):
    one_workload()
    counts = []
    monkeypatch.setattr(cpu, "_child", lambda count, *_: counts.append(count) or cpu.Measured("", ()))
    monkeypatch.setattr(cpu.threads, "get_threads", lambda: 3)
    assert runner.run_suite("cpu") == 0
    assert counts == [3, 1]


@pytest.mark.slow
def test_a_process_that_measures_lets_libraries_choose_their_kernels(monkeypatch, capfd):
    pytest.importorskip("llvmlite")
    pytest.importorskip("threadpoolctl")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    found = cpu._child(1, "nothing of this name", False)
    assert found.results == ()
    assert f"\n{found.kernels}\n" in capfd.readouterr().out
    if "openblas" in found.kernels and platform.machine() in ("x86_64", "AMD64"):
        assert "Prescott" not in found.kernels


def test_a_suite_starts_again_without_what_slows_libraries(monkeypatch, capfd):
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "1")
    started = []
    real = runner.subprocess.run
    monkeypatch.setattr(runner.subprocess, "run", lambda *a, **named: started.append(named["env"]) or real(*a, **named))
    assert runner.run_suite("tuning", only="nothing at all") == 2
    assert ["OPENBLAS_L2_SIZE" in each for each in started] == [False]
    assert "no line of the suite `tuning` has 'nothing at all' in its name" in capfd.readouterr().err


def test_a_wrong_result_is_an_exit_code(one_workload, capsys):
    one_workload(peers={"numpy": "X[C] + 1"})
    assert runner.run_suite("cpu", thread_count=1) == 1
    assert "numpy" in capsys.readouterr().out.split("DIFFERS")[0]
    one_workload(reference="X[C] + 1")
    assert runner.run_suite("cpu", thread_count=1) == 1
    assert "WRONG" in capsys.readouterr().out


def test_the_gpu_suite_says_why_it_cannot_run(monkeypatch, capsys):
    monkeypatch.setattr(runner, "gpu_available", lambda: False)
    assert runner.run_suite("gpu") == 2
    assert "needs a GPU" in capsys.readouterr().err


def test_compile_entries_name_their_targets():
    (entry,) = runner._import_time("import tc_jupyter")
    assert entry.target == 0.25
    assert entry.median > 0
    assert "target 250 ms" in entry.text


def test_the_gain_of_a_search_is_measured_against_the_default_schedule(monkeypatch, tmp_path):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path / "cache"))
    workload = replace(workloads.parse_workload(HEADER), sizes=({"N": 4, "M": 3},))
    quick = runner.benchmark
    monkeypatch.setattr(runner, "benchmark", lambda candidates, seconds: quick(candidates, rounds=3))
    found = runner.tuning_gain(workload, 0.1)
    assert found["trials"] >= 1
    assert found["gain"] == pytest.approx(found["default"] / np.median(found["samples"]))
    assert len(runner.workloads("tuning")) == 5


@pytest.fixture(autouse=True)
def _libraries_choose(monkeypatch):
    """Whatever the environment of the tests says."""
    for name in libraries.SLOWING:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.some(3)
@pytest.mark.parametrize("suite", ["compile", "sac", "tuning"])
def test_a_name_that_no_line_has(suite, capfd):
    assert runner.run_suite(suite, only="nothing at all") == 2
    said = capfd.readouterr().err
    assert f"no line of the suite `{suite}` has 'nothing at all' in its name; there are\n  " in said


def test_names_of_the_suite_compile_begin_its_lines():
    text = Path(runner.__file__).read_text(encoding="utf-8")
    assert all(f'"{name}' in text.split("Measure = ", 1)[1] for name in runner.COMPILED)


def test_every_spelling_of_a_plain_program_computes_the_same():
    """At a few elements; what is measured is as large as it says."""
    from tc_jupyter.compiler.plain import plain_c

    names = [program.name for program in plain.programs()]
    assert len(names) == len(set(names)) >= 60
    for program in plain.programs():
        found = tc.analyze(program.text)
        assert found.ok, program.name
        assert program.unequal <= set(found.functions), program.name
        assert len({tuple(each.program.parameters) for each in found.functions.values()}) == 1, program.name
        for each in found.functions.values():
            assert f"int {plain_c(each).name}(" in plain_c(each).text


def test_a_summary_names_the_slowest():
    fast = plain.Spelled("a", "one", 2, 1.0, 2.0, 1.0, True)
    slow = plain.Spelled("a", "other", 2, 3.0, 2.0, 3.0, True)
    lines = plain.summary([fast, slow])
    assert "1 of 2 above 1.1 of their loops, 1 above 1.25" in lines[1]
    assert "a: other" in lines[2]


def test_a_summary_counts_what_takes_longer_than_numba():
    fast = plain.Spelled("a", "one", 2, 1.0, 2.0, 1.0, True, 2.0)
    slow = plain.Spelled("a", "other", 2, 1.0, 2.0, 1.0, True, 0.5)
    assert "over Numba 1.00; 1 of 2 above 1.1 of its loops" in plain.summary([fast, slow, replace(fast, numba=None)])[2]
    assert "    -  " in replace(fast, numba=None).text


def test_loops_that_numba_does_not_compile_are_left_out(monkeypatch):
    monkeypatch.setattr(plain, "installed", lambda library: True)
    monkeypatch.setattr(plain, "numba_call", lambda *given: (lambda: 1 / 0, []))
    f = tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) }").f
    assert plain._compiled_by_numba(f, {}, (), {}) is None


@needs_compiler
def test_a_plain_program_is_measured_against_its_loops(tmp_path):
    (known,) = [each for each in plain.programs() if each.name == "product with a matrix of conditions"]
    program = replace(known, sizes=({"M": 8, "K": 7, "N": 5},))
    found = list(plain.measure(program, 1, tmp_path, seconds=0.01))
    assert [each.spelling for each in found] == ["as_choice", "as_number", "as_mask"]
    assert all(each.agrees and each.time > 0 and each.loops > 0 for each in found)
    assert [each.over_spelling is None for each in found] == [False, True, False]


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ["matrix product", "softmax", "maximum of 2 x 2 windows"])
def test_derivatives_of_workloads_are_those_of_pytorch(name):
    pytest.importorskip("torch")
    from tc_jupyter.bench import gradient

    workload = next(each for each in gradient.gradients() if each.name == name)
    sizes = {size: min(value, 12) for size, value in workload.sizes[0].items()}
    lines = list(gradient.measure(workload, sizes, 1, seconds=0.01))
    assert [each.kind for each in lines] == ["backward", "both"]
    assert all(each.agrees for each in lines)
    assert "geometric mean over PyTorch" in "".join(gradient.summary(lines))
