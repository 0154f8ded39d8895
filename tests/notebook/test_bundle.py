"""The value of a cell: its display bundle, its pickle."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Options
from tc_jupyter.notebook.report import JSON_LIMIT, MIME, Report
from tc_jupyter.notebook.widgets.views import VIEWS

CONV = "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }"


def report(text: str, **options) -> Report:
    return Report(tc.analyze(text), Options(text, **options), "cpu (test)")


def test_the_bundle():
    made = report(CONV)
    bundle = made._repr_mimebundle_()
    assert list(bundle) == [MIME, "text/html", "text/plain"]
    assert bundle["text/plain"] == repr(made)
    data = bundle[MIME]
    assert data["schema"] == "tc-jupyter/analysis/1"
    assert data["functions"] == tc.analyze(CONV).to_json()["functions"]
    assert (data["source"], data["language"], data["package"]) == (CONV, "tc", tc.__version__)
    assert "__global__" in data["html"]
    json.dumps(data)


@pytest.mark.parametrize(("count", "kept"), [(12, "html"), (200, "text")])
def test_a_large_cell_is_saved_in_less_than_100_kb(count, kept):
    text = "\n".join(CONV.replace("conv", f"conv{i}") for i in range(count))
    bundle = report(text).bundle()
    data = bundle[MIME]
    assert len(json.dumps(data)) < JSON_LIMIT
    assert "conv0" in data[kept]
    assert f"conv{count - 1}" in bundle["text/html"]


CELLS = {
    "thirty stages": "def g(float(N) T0) -> (T30) {\n"
    + "".join(f"T{n + 1}(i) = T{n}(i) + 1\n" for n in range(30))
    + "}",
    "eight axes": "def all8(float(A,B,C,D,E,F,G,H) X) -> (Y) { Y(a,b,c,d) +=! X(a,b,c,d,e,f,g,h) }",
    "convolution": CONV,
}


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "partitions"])
def test_lines_of_code_stay_lines(name):
    html = tc.view(next(iter(tc.compile(CELLS["thirty stages"]).values())), name).bundle()["text/html"]
    listings = re.findall(r"<pre[^>]*>", html)
    assert all("white-space:pre;" in each for each in listings)
    assert listings or name not in ("code", "schedule")


@pytest.mark.some(3)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", VIEWS)
def test_every_saved_view_is_small(cell, name):
    function = next(iter(tc.compile(CELLS[cell]).values()))
    assert len(json.dumps(tc.view(function, name).bundle()[MIME])) < JSON_LIMIT
    assert len(json.dumps(report(CELLS[cell]).bundle()[MIME])) < JSON_LIMIT


def test_pickling_keeps_text_and_options_and_makes_functions_again():
    made = report(CONV, target="interpreter", allow=("TC322",))
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made)
    assert again.bound is None
    assert again.functions["conv"].options.target == "interpreter"
    b = np.arange(4, dtype=np.float32)
    assert again.functions["conv"](b, b[:2]).tolist() == made.functions["conv"](b, b[:2]).tolist()


def test_a_report_of_mistakes_has_no_functions():
    made = report("def f(float(N, K) A) -> (B) { B(i) = A(i, k) }")
    assert dict(made.functions) == {}
    assert "TC204" in made.bundle()["text/html"]
