"""Copies that turn axes around on a CPU: which statements have tiles for it."""

import pytest

import tc_jupyter as tc


@pytest.mark.parametrize(
    ("value", "where", "is_turned"),
    [
        ("A(j, i) * 2", "j in 0:8", True),
        ("A(j, i) * 2", "j in 0:min(M, 2)", True),
        ("A(j, i) * B(j)", "j in 0:min(M, 2)", True),
        ("A(j, i) * A(j, 2*j + 2)", "j in 0:min(M/2 - 2, 100)", True),
        ("A(j, i) * A(j, 2*j + 2)", "j in 0:min(M/2 - 2, 6)", False),
    ],
)
def test_short_rows_beside_a_diagonal_are_not_turned(value, where, is_turned):
    text = f"def f(float(N, M) A, float(N) B) -> (Y) {{ Y(i, j) = {value} where i in 0:M, {where} }}"
    loops = tc.compile(text, target="cpu", allow=["TC322"]).f.source("loops")
    assert ("for j.inner.inner" in loops) == is_turned


@pytest.mark.parametrize(("length", "strip"), [(640, 128), (600, 16), (601, 16)])
def test_strips_are_short_where_tiles_share_lines_of_the_result(length, strip):
    f = tc.compile("def f(float(N, M) A) -> (B) { B(i, j) = A(j, i) }", target="cpu").f
    assert f".split('B', 'i', factor={strip})" in f.default_schedule(N=length, M=1000).to_python()
