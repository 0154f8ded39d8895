"""Left sides that can be solved are plain indices, and statements that write the residues of one array are one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("llvmlite")

ONE = {
    "two": "Y(2*i) = A(i)  Y(2*i + 1) = 3*B(i)",
    "three, in any order": "Y(3*i + 1) = A(i)  Y(3*i) = B(i) + 1  Y(3*k + 2) = A(k) * B(k)",
    "four, one is a number": "Y(4*i + 1) = A(i)  Y(4*i) = B(i)  Y(4*k + 2) = A(k) - B(k)  Y(4*i + 3) = 7 where i in 0:N",
    "beyond the ends": "Y(2*i) = A(clamp(i - 1)) where i in 0:N  Y(2*i + 1) = B(i)",
    "not from 0": "Y(2*i + 5) = A(i)  Y(2*i + 4) = B(i)",
}
APART = {
    "other ranges": "Y(i) = 0 where i in 0:2*N  Y(2*i) = A(i)  Y(2*i + 1) = B(i + 1) where i in 0:N - 1",
    "one is missing": "Y(i) = 0 where i in 0:2*N  Y(2*i) = A(i)",
    "points are left out": "Y(i) = 0 where i in 0:2*N  Y(2*i) = A(i) where A(i) > 0.5  Y(2*i + 1) = B(i)",
    "added": "Y(i) = 0 where i in 0:2*N  Y(2*i) += A(i)  Y(2*i + 1) += B(i)",
    "places from data": "Y(2*i) = A(I(i))  Y(2*i + 1) = B(i)",
}


def compiled(body: str, target: str) -> Any:
    text = f"def f(float(N) A, float(N) B{', int32(N) I' if 'I(' in body else ''}) -> (Y) {{ {body} }}"
    return tc.compile(text, target=target).f


def kernels(f: Any) -> list[str]:
    return [line.split("(")[0] for line in f.source("loops").splitlines() if line.startswith("kernel")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*ONE, *APART])
def test_values_are_those_of_the_statements_one_by_one(name: str) -> None:
    body = (ONE | APART)[name]
    f, plain, rng = compiled(body, "cpu"), compiled(body, "interpreter"), np.random.default_rng(1)
    for n in (2, 3, 7, 15, 16, 17, 33, 64, 131):
        a, b = rng.random((2, n), np.float32)
        more = [rng.integers(0, n, n, np.int32)] if "I(" in body else []
        np.testing.assert_array_equal(f(a, b, *more), plain(a, b, *more), err_msg=str(n))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*ONE, *APART])
def test_residues_of_one_array_are_one_kernel(name: str) -> None:
    assert (len(kernels(compiled((ONE | APART)[name], "cpu"))) == 1) == (name in ONE)


@pytest.mark.filterwarnings("ignore")
def test_vectors_are_mixed() -> None:
    """Nothing is scattered, and no element is tested for its residue."""
    code = compiled(ONE["two"], "cpu").source("llvm")
    assert "scatter" not in code
    assert "srem" not in code


@pytest.mark.filterwarnings("ignore")
def test_rows_have_names_of_their_own() -> None:
    text = "def f(float(N, M) A, float(N, M) B) -> (Y) { Y(i, 2*j) = A(i, j)  Y(r, 2*k + 1) = B(r, k) }"
    a, b = np.random.default_rng(1).random((2, 3, 40), np.float32)
    wanted = np.stack((a, b), 2).reshape(3, 80)
    for target in ("cpu", "interpreter"):
        np.testing.assert_array_equal(tc.compile(text, target=target).f(a, b), wanted)


SOLVED = {
    "backwards": ("float(N) A) -> (Y) { Y(N - 1 - i) = A(i) + i }", (33,)),
    "both ways": ("float(N, M) A) -> (Y) { Y(M - 1 - j, i) = A(i, j) }", (19, 34)),
    "moved": ("float(N) A) -> (Y) { Y(i + 3) = A(i) }", (18,)),
    "under a guard": ("float(N) A) -> (Y) { Y(N - 1 - i) = i > 4 ? A(i) : 0 where i in 0:N }", (40,)),
}
KEPT = {
    "a part": ("float(N) A) -> (Y) { Y(i) = 0 where i in 0:N  Y(N - 1 - i) = A(i) where i in 2:N }", (33,)),
    "a diagonal": (
        "float(N) A) -> (Y) { Y(i, j) = 0 where i in 0:N, j in 0:N  Y(N - 1 - i, N - 1 - i) = A(i) }",
        (17,),
    ),
    "points left out": ("float(N) A) -> (Y) { Y(i) = 0 where i in 0:N  Y(N - 1 - i) = A(i) where A(i) > 0.5 }", (17,)),
    "turns": ("float(C, 2, N) A) -> (Y) { Y(c, 2*i + b) = A(c, b, i) }", (3, 2, 37)),
    "turns of rows": ("float(C, N, 3) A) -> (Y) { Y(c, 3*i + b) = A(c, i, b) }", (3, 37, 3)),
    "blocks": ("float(N, M, 5, 6) A) -> (Y) { Y(5*a + u, 6*b + v) = A(a, b, u, v) }", (3, 7, 5, 6)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*SOLVED, *KEPT])
def test_subscripts_on_the_left(name: str) -> None:
    """Those that can be solved are plain indices of the schedule; values are those of the interpreter."""
    text, shape = (SOLVED | KEPT)[name]
    f, plain = (tc.compile(f"def f({text}", target=target).f for target in ("cpu", "interpreter"))
    a = np.random.default_rng(2).random(shape, np.float32)
    np.testing.assert_array_equal(f(a), plain(a))
    last = f.schedule().graph.stages[-1].statement
    assert (not last.reduction_indices) == (name in SOLVED)


def test_turns_are_written_in_vectors() -> None:
    """Vectors along the plain index that stands first were scattered."""
    text = "def f(float(C, 2, 2, H, W) X) -> (Y) { Y(c, 2*y + a, 2*x + b) = X(c, a, b, y, x) }"
    f = tc.compile(text, target="cpu").f
    assert "x.inner in 0:min(W - 16 * x.outer, 16)  # vectorize" in f.source("loops").replace("32", "16").replace(
        "8 ", "8 "
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", [5, 7, 8, 12, 15])
def test_numbers_beyond_a_pixel_are_split(number: int) -> None:
    """Vectors go along the residues, and no element is divided."""
    text = (
        f"def f(float(N) X, float({number}) w, float(M) z) -> (Y) {{ Y(i) = X(i) * w(i % {number}) + z(i / {number}) }}"
    )
    f, plain = (tc.compile(text, target=target).f for target in ("cpu", "interpreter"))
    assert f"in 0:{number}" in f.source("loops") or f", {number})  # vectorize" in f.source("loops")
    for n in (1, number - 1, number, 3 * number + 2):
        x, w = np.random.default_rng(n).integers(0, 9, (2, 40)).astype(np.float32)
        given = x[:n], w[:number], x[: (n - 1) // number + 1]
        np.testing.assert_array_equal(f(*given), plain(*given))


@pytest.mark.parametrize(
    ("statement", "axis", "refused"),
    [
        ("Y(I(i)) +=! X(i)", "i", True),
        ("Y(I(i)) max=! X(i)", "i", True),
        ("Y(i/2) +=! X(i)", "i", True),
        ("Y(i%3) += X(i)", "i", True),
        ("Y(i+k) +=! X(i) * W(k)", "k", False),
        ("Y(I(i)) = X(i) where unique", "i", False),
    ],
)
def test_no_vector_has_two_points_of_one_element(statement, axis, refused):
    text = f"def f(float(N) X, float(N) W, int32(N) I) -> (float(2*N) Y) {{ {statement} }}"
    if "+= " in statement:
        text = text.replace(" { ", " { Y(i) = 1  ")
    schedule = tc.compile(text, target="cpu", allow=["TC234", "TC326"]).f.schedule()
    stage = schedule.stages[-1]
    split = schedule.split(stage, axis, 8)
    if not refused:
        assert split.vectorize(stage, f"{axis}.inner")
        return
    with pytest.raises(tc.CompileError, match=r"TC410.*one element"):
        split.vectorize(stage, f"{axis}.inner")
