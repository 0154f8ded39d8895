"""The picture of a plan: chunks, and what one of them reads."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.chunks import plan_html

da = pytest.importorskip("dask.array")

TEXT = """
def blur(float(H, W) X) -> (Y) { Y(i, j) = X(clamp(i - 1), j) + X(i, wrap(j + 1)) where i in 0:H, j in 0:W }
def total(float(H, W) X) -> (S, m) { S(j) +=! X(i, j)  m max=! S(j) }
"""


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT, target="interpreter", allow=("TC321", "TC322"))


def test_a_plan_is_drawn(module):
    X = da.zeros((40, 30), chunks=10, dtype=np.float32)
    html = plan_html(module.blur.chunked(X))
    assert html.count("<svg") == 2
    assert "makes Y(20:30, 10:20), 100 elements" in html
    assert "reads X(19:30, 10:21), 121 elements" in html
    assert not re.search(r"<script|javascript|https?:|\son\w+=", html)
    assert "X 1+0, 0+1" in html


def test_layers_and_numbers_are_drawn(module):
    html = plan_html(module.total.chunked(da.zeros((40, 30), chunks=10, dtype=np.float32)))
    assert "runs along a dimension that is cut" in html
    assert html.count("<svg") == 4


def test_a_notebook_shows_it(module):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tc_jupyter")
    try:
        data, _ = shell.display_formatter.format(module.blur.chunked(da.zeros((8, 8), chunks=4, dtype=np.float32)))
    finally:
        shell.run_line_magic("unload_ext", "tc_jupyter")
        InteractiveShell.clear_instance()
    assert data["text/plain"].startswith("<plan of blur: 4 tasks")
    assert "<svg" in data["text/html"]
