"""Rows that are split where conditions on positions change."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import split_rows_at_borders
from tc_jupyter.ranges import SizeExpr, minimum

pytest.importorskip("llvmlite")

SIZES = [1, 2, 3, 31, 32, 33, 63, 64, 65, 66, 130]
ROWS = {
    "halves": "e < D ? X(t, e + D) : 2*X(t, e - D) where e in 0:2*D, t in 0:T",
    "border": "e >= 1 && e < 2*D - 1 ? X(t, e - 1) + X(t, e + 1) : X(t, e) where e in 0:2*D, t in 0:T",
    "wide border": "e >= 2 && e + 2 < 2*D ? X(t, e - 2) + X(t, e + 2) : e >= 1 ? X(t, e - 1) : -1.0 where e in 0:2*D, t in 0:T",
    "zeros around": "e >= 3 && e < 2*D + 3 && t >= 1 ? X(t - 1, e - 3) : 0 where e in 0:2*D + 6, t in 0:T",
    "thirds": "e < D ? X(t, e) : e < D + 5 ? 2*X(t, e) : 3*X(t, e) where e in 0:2*D, t in 0:T",
    "triangle": "e <= t ? X(t, e) : 0 where e in 0:2*D, t in 0:T",
    "diagonal": "e == t ? X(t, e) : 0 where e in 0:2*D, t in 0:T",
    "all but the diagonal": "e != t ? X(t, e) : 0 where e in 0:2*D, t in 0:T",
    "from the end": "2*D - 1 - e > t ? X(t, 2*D - 1 - e) : X(t, e) where e in 0:2*D, t in 0:T",
    "every third": "3*e < 2*D ? X(t, 3*e) : X(t, e) where e in 0:2*D, t in 0:T",
    "scalar": "e < s ? X(t, e) : -X(t, e) where e in 0:2*D, t in 0:T",
    "large scalar": "e < s + 9223372036854775800 ? X(t, e) : -X(t, e) where e in 0:2*D, t in 0:T",
    "chosen places": "X(t, e > 0 ? e - 1 : 0) + 2*X(t, e < 2*D - 1 ? e + 1 : 0) where e in 0:2*D, t in 0:T",
    "places turned back": "X(t, e < 1 ? 0 : e - 1) - X(t, e >= D ? 2*D - 1 - e : e) where e in 0:2*D, t in 0:T",
    "one place in the middle": "X(t, e >= 2 && e < 2*D - 2 ? e : 0) where e in 0:2*D, t in 0:T",
    "many": "e < D ? X(t, e) : e < t ? 1 : e < s ? 2 : e > 3 + t ? 3 : e == 9 ? 4 : 5 where e in 0:2*D, t in 0:T",
    "tiles with a diagonal": "e != t && e >= 1 ? X(t, e) + X(t + 1, e) : 0 where e in 0:2*D, t in 0:T - 1",
    "tiles": "t >= 1 && t < T - 1 && e >= 1 && e < 2*D - 1 ? X(t - 1, e) + X(t + 1, e) + X(t, e - 1) + X(t, e + 1) : X(t, e)"
    " where e in 0:2*D, t in 0:T",
}


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ROWS)
def test_values_are_those_of_the_interpreter(name: str) -> None:
    """At sizes around vectors, for borders that lie in the rows and beyond them."""
    text = (
        f"def f(float(T, N) X, int32 s) -> (Y) {{ Y(t, e) = {ROWS[name].replace('2*D', 'N').replace('D', '(N/2)')} }}"
    )
    plain = tc.compile(text, target="interpreter", allow=["TC322"]).f
    f = tc.compile(text, target="cpu", allow=["TC322"]).f
    for n in SIZES:
        for t in (1, 9):
            x = np.arange(t * n, dtype=np.float32).reshape(t, n)
            for s in (-3, 5, 40):
                np.testing.assert_array_equal(f(x, s), plain(x, s), err_msg=f"{n} {t} {s}")


def test_halves_have_no_masks() -> None:
    """Each half is a stream of plain reads."""
    text = """def f(float(T, E) X, float(D) W) -> (Y) {
        Y(t, e) = e < D ? X(t, e + D) * W(e) : X(t, e - D) where e in 0:2*D
    }"""
    code = tc.compile(text, target="cpu", allow=["TC322"]).f.source("llvm")
    found = re.findall(r"; for \S+ in (\S+:.*)  \(vectors", code)
    assert found == ["0:D", "D:D + D"], found


def test_chosen_places_are_borders() -> None:
    text = "def f(float(T, E) X) -> (Y) { Y(t, e) = X(t, e > 0 ? e - 1 : 1) + X(t, e < E - 1 ? e + 1 : E - 2) where e in 0:E }"
    passes = tc.compile(text, target="cpu", allow=["TC322"]).f.source("passes")
    assert re.search(r"in 1:1 \+ E - 2  # vectorize\n *Y\[(t), (\S+)\] = X\[t, \2 - 1\] \+ X\[t, \2 \+ 1\]\n", passes)


@pytest.mark.some(3)
@pytest.mark.parametrize("n", [1, 2, 8191, 8192, 8193, 16384, 16385])
def test_sums_whose_ends_weigh_half(n: int) -> None:
    """Sums in parts, too: the first and the last element are loops of their own."""
    text = "def f(int64(N) X) -> (s) { s() +=! i == 0 || i == N - 1 ? X(i) : 2*X(i) }"
    f = tc.compile(text, target="cpu").f
    middle = f.source("passes").split("-- tasks")[0].split("-- row borders")[1]
    assert "2 * X[i.inner + 8192 * i.outer]\n" in middle
    x = np.random.default_rng(n).integers(-99, 99, n)
    assert f(x) == 2 * x.sum() - x[0] - x[-1] + (x[0] if n == 1 else 0)


def test_many_conditions_are_not_split_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first few parts are looked for: a chain of 25 conditions has more of them than could be made."""
    cuts: list[tuple[SizeExpr, ...]] = []
    monkeypatch.setattr(split_rows_at_borders, "minimum", lambda *ends: cuts.append(ends) or minimum(*ends))
    chain = " : ".join(f"j < i - {2 * k} ? {k}*X(j)" for k in range(9))
    f = tc.compile(f"def f(float(N) X) -> (Y) {{ Y(i) +=! ({chain} : 0) where i in 0:N }}", target="cpu").f
    x = np.arange(30, dtype=np.float32)
    assert not f(x).any()  # where one of them holds, the first one does, whose weight is 0
    assert len(cuts) < 100
