"""Generated text beside the cell, and measurements that can be watched and stopped."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.ide.made_lines import lines_of, lines_of_locations
from tc_jupyter.notebook.widgets.benchmark import BenchmarkView, random_arguments
from tc_jupyter.notebook.widgets.code import Code
from tc_jupyter.notebook.widgets.gradient import Gradient
from tc_jupyter.notebook.widgets.peers import einsum_of
from tc_jupyter.notebook.widgets.views import view

TWO = "def two(float(N) A) -> (C) {\n  B(i) = A(i) + 1\n  C(i) = B(i) * 3\n}"
BOTH = TWO.replace("(C)", "(B, C)")  # results are not computed inside one another
CONV = "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }"


def function(text: str, **options):
    return next(iter(tc.compile(text, **options).values()))


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["loops", "passes", "c", "cuda", "ptx", "llvm", "asm"])
def test_lines_are_linked_to_the_cell(kind):
    picture = Code(function(BOTH), kind)
    html = picture.content(live=True).html
    assert picture.content(live=True).data["text"] == picture.function.source(kind)
    left, right = html.split('data-listing="made"')
    linked = {int(n) for n in re.findall(r'data-line="(\d+)"', right)}
    assert linked == {int(n) for n in re.findall(r'data-line="(\d+)"', left)}
    assert linked <= {1, 2}
    assert linked == {1, 2}


def test_the_gradient_is_the_text_of_a_cell():
    f = function(CONV)
    picture = Gradient(f)
    found = picture.content(live=True)
    assert found.data["text"] == f"%%tc\n{f.vjp().text}"
    assert 'data-copy="gradient"' in found.html
    assert "dX" not in found.html
    picture.apply({"kind": "jvp"})
    assert picture.content().text == f"%%tc\n{f.jvp().text}"
    none = Gradient(function("def f(int32(N) X) -> (Y) { Y(i) = X(i) }")).content()
    assert none.text == "`f` has no gradient: no parameter is a float"
    with pytest.raises(ValueError, match="expected 'vjp' or 'jvp'"):
        view(f, "gradient", kind="other")


def test_blocks_and_threads_are_drawn_on_the_points_that_they_run():
    f = function("def scale(float(N, M) X) -> (Y) { Y(i, j) = 2 * X(i, j) }")
    picture = Code(f, "cuda", N=64, M=128)
    html = picture.content().html
    rows = re.findall(
        r"<tr[^>]*><td[^>]*>\(([\d,]+)\)</td><td[^>]*>(\d+)</td><td[^>]*>([^<]*)</td><td[^>]*>(\d+)</td>", html
    )
    (launch,) = f.kernels(N=64, M=128)
    assert len(rows) == np.prod(launch[2])
    assert sum(int(points) for *_, points in rows) == 64 * 128
    assert max(int(threads) for _, threads, *_ in rows) == np.prod(launch[3])
    picture.apply({"size:N": 10**6})
    assert "too many points" in picture.content(live=True).html
    picture.apply({"size:N": -1})
    assert "whole number" in picture.content(live=True).html


def test_machine_code_and_assembly_are_read_by_their_locations():
    made = '\t.file\t1 "/a/k.cu"\n\t.file\t2 "/a/cell"\n\t.loc\t1 4 0\n\tadd;\n\t.loc\t2 3 1\n\tmul;\nL1:\n\tsub;'
    assert lines_of_locations(made, "cell") == [None, None, None, None, None, 2, None, 2]
    note = '//## File "/a/cell", line 2\n /*0000*/ FADD ;\n//## File "/a/k.cu", line 9\n /*0010*/ EXIT ;'
    assert lines_of_locations(note, "cell") == [None, 1, None, None]


def test_code_after_a_producer_belongs_to_its_consumer_again():
    made = "kernel k\n  # C\n  for i\n    allocate B\n    # B\n    for B.j\n      B = A\n    for j\n      C = B\n"
    assert lines_of(made, {"C": 2, "B": 1}) == [None, 2, 2, 2, 1, 1, 1, 2, 2, None]


def test_a_form_that_cannot_be_made_is_said():
    picture = Code(function(TWO), "rewrites")
    assert "cannot be shown here" in picture.content().html
    picture.apply({"kind": "nothing"})
    assert picture.kind == "rewrites"
    with pytest.raises(ValueError):
        Code(function(TWO), "x")


def test_saved_code_is_small():
    for kind in ("llvm", "asm", "cuda"):
        assert len(view(function(CONV), "code", kind=kind).bundle()["text/html"]) < 100_000


def test_a_measurement_and_its_export():
    peers = {"numpy": lambda a: (a + 1) * 3, "wrong": lambda a: a, "broken": lambda a: a[None].missing}
    picture = BenchmarkView(function(TWO), against=peers, seconds=0.2, N=1000)
    assert "nothing was measured" in picture.content().html
    picture.run()
    columns = picture.export()
    assert columns["name"] == ["two", "numpy", "wrong"]
    assert columns["agrees"] == [None, True, False]
    assert all(
        low <= middle <= high
        for low, middle, high in zip(columns["p10"], columns["median"], columns["p90"], strict=True)
    )
    html = picture.content().html
    assert "`broken`" not in html
    assert "was dropped" in html
    assert "DIFFERS" in html
    assert picture.csv().count("\n") == 3
    ticks = re.search(r'data-samples="numpy"\s+d="([^"]*)"', html)
    assert ticks is not None
    assert ticks.group(1).count("M") >= min(150, len(picture.results[-1].timings["numpy"])) // 2


def test_a_measurement_says_best_and_what_not_to_trust(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.delenv("OPENBLAS_L2_SIZE", raising=False)
    picture = BenchmarkView(function(TWO), against={"numpy": lambda a: (a + 1) * 3}, seconds=0.1, N=10)
    picture.run()
    assert "OPENBLAS_CORETYPE=Haswell is set" in picture.content().html
    found = picture.results[-1]
    found.timings["numpy"], found.disturbed["numpy"] = [1e-3] * 3 + [9e-2] * 4, 4
    for said in (picture.content().html, picture.content().text):
        assert "noisy: p90 of numpy is 90 times p10" in said
        assert "57% of numpy" in said
        assert said.count("best") >= 2
    columns = picture.export()
    assert columns["best"][1] == 1e-3
    assert picture.csv().startswith("name,best,median,")
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    assert "OPENBLAS" not in picture.content().html


MATMUL = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"


def test_a_sweep_measures_every_size_and_says_so_in_a_chart_and_a_table():
    picture = BenchmarkView(function(CONV), seconds=0.2, N=64, K=4)
    picture.apply({"sweep": "N", "to": 1024, "steps": 3})
    assert picture.sweep() == (64, 256, 1024)
    picture.run()
    columns = picture.export()
    assert columns["N"] == [64, 256, 1024]
    assert columns["K"] == [4, 4, 4]
    html = picture.content().html
    assert 'data-sweep="conv" data-count="3"' in html
    assert "shortest and median times over N" in html
    assert picture.content().text.startswith("at N = 64, K = 4\nconv: ")
    picture.apply({"metric": "gflops"})
    assert "GFLOP/s over N" in picture.content().html
    again = BenchmarkView(function(CONV), **picture.specification())
    assert again.specification() == picture.specification()
    assert again.sweep() == (64, 256, 1024)


@pytest.mark.parametrize("values", [{"to": -1}, {"steps": 1}, {"steps": 99}, {"to": "x"}, {"to": 10**12}])
def test_a_wrong_sweep_changes_nothing_and_is_told(values):
    picture = BenchmarkView(function(CONV), N=64, K=4)
    picture.apply({"sweep": "N", "to": 1024, "steps": 3})
    picture.apply(values)
    assert picture.sweep() == (64, 256, 1024)
    assert "whole number" in picture.content().html


def test_engines_and_libraries_are_offered_and_checked():
    assert einsum_of(function(MATMUL).program) == "einsum('ac,cb->ab', A, B)"
    assert einsum_of(function(CONV).program) is None
    assert einsum_of(function(TWO).program) is None
    picture = BenchmarkView(function(MATMUL), seconds=0.1, M=5, K=6, N=7)
    assert picture.chosen == ("mm", "numpy einsum")
    picture.apply({"use:mm on interpreter": True})
    picture.run()
    rows = {row.name: row.agrees for row in picture.rows()}
    assert rows == {"mm": None, "mm on interpreter": True, "numpy einsum": True}
    picture.apply({"size:M": 500, "size:K": 500, "size:N": 500, "use:numpy einsum": False})
    picture.run()
    assert "take the interpreter too long" in picture.content().html
    assert [row.name for row in picture.rows()] == ["mm"]


def test_expressions_of_libraries_and_unknown_candidates():
    peers = {"numpy slow": "np.dot(A, B)"}
    picture = BenchmarkView(function(MATMUL), against=peers, seconds=0.05, candidates=["numpy slow"], M=3, K=3, N=3)
    picture.run()
    assert [row.name for row in picture.rows()] == ["numpy slow"]
    with pytest.raises(ValueError, match="begins with one of"):
        BenchmarkView(function(MATMUL), against={"mine": "A + B"})
    with pytest.raises(ValueError, match="no candidate 'nobody'; there are mm"):
        BenchmarkView(function(MATMUL), candidates=["nobody"])
    with pytest.raises(ValueError, match="no size 'Q'"):
        BenchmarkView(function(MATMUL), sweep={"Q": [1, 2]})
    picture.apply({f"use:{name}": False for name in picture.makes})
    with pytest.raises(ValueError, match="nothing to measure"):
        picture.run()


def test_the_specification_makes_the_same_arguments():
    first = BenchmarkView(function(CONV), seed=3, N=50, K=4)
    again = BenchmarkView(function(CONV), **first.specification())
    assert all(np.array_equal(a, b) for a, b in zip(first.arguments(), again.arguments(), strict=True))


def test_cancel_keeps_what_was_measured():
    picture = BenchmarkView(function(TWO), seconds=1000, N=100)
    progressed = threading.Event()
    picture.on_change(progressed.set)
    picture.apply({"run": True})
    assert progressed.wait(300)
    assert picture.running
    assert "measuring" in picture.content(live=True).html
    thread = picture._thread
    picture.apply({"cancel": True})
    if thread is not None:
        thread.join(300)
    assert not picture.running
    assert picture.rows()


def test_sizes_that_do_not_fit_in_memory_are_said():
    picture = BenchmarkView(function(CONV))
    picture.apply({"size:N": 10**9, "size:K": 10**9, "run": True})
    thread = picture._thread
    if thread is not None:
        thread.join(300)
    assert "GiB" in picture.content().html


def test_arguments_have_the_types_of_the_def():
    f = function("def f(float16(N) A, int32(N) I, bool(N) M, float s) -> (Y) { Y(i) = M(i) ? A(i) * s : A(I(i)) }")
    a, i, m, s = random_arguments(f.program, {"N": 7})
    assert (a.dtype, i.dtype, m.dtype, s) == (np.float16, np.int32, np.bool_, 1)
    assert i.max() < 7
