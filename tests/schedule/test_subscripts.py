"""Subscripts are shortened before templates and loops see them."""

from __future__ import annotations

import pytest

import tc_jupyter as tc
from tc_jupyter.program import Expr, IndexVar
from tc_jupyter.schedule import subscripts
from tc_jupyter.schedule.inline import inject_inline


@pytest.mark.parametrize(
    ("subscripts", "ranges", "loops"),
    [
        ("(y + H) % H, ((x + s) % W + W) % W", "y in 0:H, x in 0:W", "X[y, (x + s) % W]"),
        ("y, (x + 2*W) % W", "y in 0:H, x in 0:W", "X[y, x]"),
        ("(y*W + x) / W, (y*W + x) % W", "y in 0:H, x in 0:W", "X[y, x]"),
        ("y % (2*H) % H, x", "y in 0:9, x in 0:W", "X[y % H, x]"),
        ("min(max(y, 0), H - 1), x", "y in 0:H, x in 0:W", "X[y, x]"),
        ("(y - 1) % H, x", "y in 0:H, x in 0:W", "X[(y - 1) % H, x]"),
    ],
)
def test_multiples_and_what_ranges_decide_are_left_out(subscripts: str, ranges: str, loops: str) -> None:
    """The loops read what is left of the subscripts."""
    f = tc.compile(
        f"def f(float(H, W) X, int32 s) -> (Y) {{ Y(y, x) = X({subscripts}) where {ranges} }}", target="interpreter"
    ).f
    assert loops in f.source("loops")


def test_subscripts_of_inlined_statements() -> None:
    """What is written into another statement is shortened again."""
    text = (
        "def f(float(H, W) X) -> (Y) {"
        " T(y, x) = X((y + 1) % H, x) where y in 0:H  Y(y, x) = T((y - 1) % H, x) where y in 0:H }"
    )
    f = tc.compile(text, target="interpreter").f
    graph = inject_inline(f.schedule().compute_inline("T").graph)
    (read,) = graph.stage("Y").statement.reads()
    assert read.indices == (IndexVar("y"), IndexVar("x"))


def test_a_subscript_of_many_reads_is_shortened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 64 reads of two stencils of 8 neighbours have 9 different subscripts of rows: each of 128 was shortened by itself."""
    looked_at: list[Expr] = []

    def counted(index: Expr, *others: object) -> Expr:
        looked_at.append(index)
        return original(index, *others)

    original = subscripts._shorter
    turned = " + ".join(f"{{}}((y + {k % 3}) % H, (x + {k // 3}) % W)" for k in range(8))
    box = "where y in 0:H, x in 0:W"
    text = f"T(y, x) = {turned.replace('{}', 'X')} {box}  Y(y, x) = {turned.replace('{}', 'T')} {box}"
    schedule = (
        tc.compile(f"def f(float(H, W) X) -> (Y) {{ {text} }}", target="interpreter").f.schedule().compute_inline("T")
    )
    monkeypatch.setattr(subscripts, "_shorter", counted)
    inject_inline(schedule.graph)
    assert 0 < len(looked_at) < 40
