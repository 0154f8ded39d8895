from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.loops import Buffer, Store
from tc_jupyter.program import Size, int64
from tests.codegen.llvm_kernels import F32, ISAS, add, compare, kernel, least, loop, mul, op, read, target, var

N = Size("N")
o, v = var("o"), var("v")


def added(lanes: int, length=N):
    """`Y[i] += X[i]` for the first `length` elements, in vectors."""
    at = add(mul(o, lanes), v)
    part = loop(
        "v",
        least(lanes, op("-", length, mul(o, lanes))),
        Store("Y", (at,), read("X", at), reduce="+"),
        kind="vectorize",
    )
    body = loop("o", op("//", add(length, lanes - 1), int64(lanes)), part)
    return kernel([Buffer("X", F32, (N,)), Buffer("Y", F32, (N,), role="output")], "N", body)


def arrays(n: int) -> dict[str, np.ndarray]:
    return {"X": np.arange(1, n + 1, dtype=np.float32), "Y": np.zeros(n, np.float32)}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("lanes", [8, 32])
@pytest.mark.parametrize("less", [0, 5])
def test_full_vectors_and_the_last_one(isa, lanes, less):
    """Also where less than nothing is left: `N - 5` of fewer than 5 elements."""
    made = added(lanes, op("-", N, int64(less)) if less else N)
    for n in (0, 1, 2, 4, 5, 6, lanes - 1, lanes, lanes + 1, lanes + less, 3 * lanes + 2):
        compare(made, arrays(n), {"N": n}, isa=isa)


def test_no_test_in_the_loop():
    text = emit_llvm(added(8), target("avx2")).text
    head, _, loop_and_more = text.partition("; for o in 0:N // 8")
    inside, _, behind = loop_and_more.partition("br i1 %more")
    assert "masked" not in head + inside
    assert "; if" not in inside
    assert "masked.load" in behind


@pytest.mark.parametrize("rows", [3, 300])
def test_regions_that_a_guard_leaves_empty(rows):
    """Beyond the end of T its region has a negative length; nothing may be written before its storage."""
    text = """def f(float(M,K) A, float(N) B) -> (Y) {
 T(i) +=! A(i,k)
 Y(i) +=! B(i) * (i + j < M ? T(i+j) : 0.0) where i in 0:N, j in 0:M
}"""
    f = tc.compile(text, target="cpu", allow=["TC322", "TC325", "TC326"]).f
    s = f.schedule().split("Y", "i", 12).compute_at("T", "Y", "i.outer").split("T", "i", 8)
    s = s.reorder("T", "k", "i.outer", "i.inner").vectorize("T", "i.inner")
    a, b = np.ones((10, 7), "f"), np.ones(rows, "f")
    sums = np.concatenate([a.sum(1), np.zeros(rows)])
    expected = [sums[i : i + 10].sum() for i in range(rows)]
    np.testing.assert_allclose(f.with_schedule(s)(a, b), expected)
