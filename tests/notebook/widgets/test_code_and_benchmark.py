"""Generated text beside the cell, and measurements that can be watched and stopped."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.benchmark import BenchmarkView, random_arguments
from tc_jupyter.notebook.widgets.code import Code, lines_of
from tc_jupyter.notebook.widgets.views import view

TWO = "def two(float(N) A) -> (C) {\n  B(i) = A(i) + 1\n  C(i) = B(i) * 3\n}"
CONV = "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }"


def function(text: str, **options):
    return next(iter(tc.compile(text, **options).values()))


@pytest.mark.parametrize("kind", ["loops", "cuda", "llvm", "asm"])
def test_lines_are_linked_to_the_cell(kind):
    picture = Code(function(TWO), kind)
    html = picture.content(live=True).html
    assert picture.content(live=True).data["text"] == picture.function.source(kind)
    left, right = html.split('data-listing="made"')
    linked = {int(n) for n in re.findall(r'data-line="(\d+)"', right)}
    assert linked == {int(n) for n in re.findall(r'data-line="(\d+)"', left)}
    assert linked <= {1, 2}
    assert linked or kind in ("llvm", "asm")
    if kind == "loops":
        assert linked == {1, 2}


def test_code_after_a_producer_belongs_to_its_consumer_again():
    made = "kernel k\n  # C\n  for i\n    allocate B\n    # B\n    for B.j\n      B = A\n    for j\n      C = B\n"
    assert lines_of(made, {"C": 2, "B": 1}, "cell") == [None, 2, 2, 2, 1, 1, 1, 2, 2, None]


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
    assert ticks.group(1).count("M") >= min(150, len(picture.timings["numpy"])) // 2


def test_the_specification_makes_the_same_arguments():
    first = BenchmarkView(function(CONV), seed=3, N=50, K=4)
    again = BenchmarkView(function(CONV), **first.specification())
    assert all(np.array_equal(a, b) for a, b in zip(first.arguments(), again.arguments(), strict=True))


def test_cancel_keeps_what_was_measured():
    picture = BenchmarkView(function(TWO), seconds=1000, N=100)
    progressed = threading.Event()
    picture.on_change(progressed.set)
    picture.apply({"run": True})
    assert progressed.wait(60)
    assert picture.running
    assert "measuring" in picture.content(live=True).html
    thread = picture._thread
    picture.apply({"cancel": True})
    if thread is not None:
        thread.join(30)
    assert not picture.running
    assert picture.rows()


def test_sizes_that_do_not_fit_in_memory_are_said():
    picture = BenchmarkView(function(CONV))
    picture.apply({"size:N": 10**9, "size:K": 10**9, "run": True})
    thread = picture._thread
    if thread is not None:
        thread.join(30)
    assert "GiB" in picture.content().html


def test_arguments_have_the_types_of_the_def():
    f = function("def f(float16(N) A, int32(N) I, bool(N) M, float s) -> (Y) { Y(i) = M(i) ? A(i) * s : A(I(i)) }")
    a, i, m, s = random_arguments(f.program, {"N": 7})
    assert (a.dtype, i.dtype, m.dtype, s) == (np.float16, np.int32, np.bool_, 1)
    assert i.max() < 7
