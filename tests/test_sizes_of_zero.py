"""A call with a size of 0 is refused if and only if some read that takes place leaves its array: random programs, brute force."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import CallError, CompileError

SIZES = ("K", "M", "N")
QUIET = [f"TC{number}" for number in (234, 235, *range(321, 331))]


class Draw:
    """One random program: text of the language, and the same as Python."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def size(self) -> str:
        return self.random.choice(SIZES)

    def index(self) -> str:
        r, size = self.random, self.size()
        parts = [f"{size}-1", "i", "j", "i+1", "j-1", "0", "1", f"min({size}-1, i)", "max(j-1, 0)", "Id(0)", "Id(i)"]
        text = r.choice(parts)
        return f"min(max({text}, 0), {self.size()}-1)" if "Id" in text or r.random() < 0.3 else text

    def test(self) -> str:
        r, size = self.random, self.size()
        return r.choice(
            [
                f"{size}-1 > -1",
                f"{size} > j && 0 <= j",
                f"i < {size}",
                f"{size} > 1",
                "i % 2 == 0",
                "x > 0",
                "Id(j) > 0",
            ]
        )

    def condition(self) -> str:
        r = self.random
        tests = [self.test() for _ in range(r.randint(1, 3))]
        text = r.choice([" && ", " && ", " || "]).join(f"({each})" for each in tests)
        return f"!({text})" if r.random() < 0.2 else text


def as_python(text: str) -> str:
    return text.replace("&&", " and ").replace("||", " or ").replace("!(", " not (")


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(40))
def test_a_call_is_refused_if_and_only_if_a_read_leaves_its_array(seed):
    draw = Draw(seed)
    condition, first, second, a, b = draw.condition(), draw.index(), draw.index(), draw.size(), draw.size()
    unless = draw.test() if draw.random.random() < 0.3 else "i < 0"
    value = f"({unless}) ? 7 : (({condition}) ? A({first}, {second}) : 7)"
    parameters = f"int({a}, {b}) A, int(4) Id, float x, int(K) k, int(M) m, int(N) n"
    text = f"def f({parameters}) -> (O) {{ O(i, j) = {value} where i in 0:4, j in 0:3 }}"
    try:
        function = tc.compile(text, target="interpreter", allow=QUIET).f
    except CompileError:  # a read that leaves its array for all sizes
        return
    taken, place = as_python(f"not ({unless}) and ({condition})"), as_python(f"({first}, {second})")
    for sizes in itertools.product((0, 1, 3), repeat=3):
        known = dict(zip(SIZES, sizes, strict=True))
        shape = known[a], known[b]
        ids = np.array([draw.random.choice([-1, 0, 1, 2]) for _ in range(4)], np.int32)
        known |= {"x": draw.random.choice([-1.0, 1.0]), "Id": ids.__getitem__}
        points = [{**known, "i": i, "j": j} for i, j in itertools.product(range(4), range(3))]
        read = [eval(place, point) for point in points if eval(taken, point)]
        leaves = any(not (0 <= r < shape[0] and 0 <= c < shape[1]) for r, c in read)
        call = (np.zeros(shape, np.int32), ids, known["x"], *(np.zeros(known[name], np.int32) for name in SIZES))
        if leaves:
            with pytest.raises(CallError):
                function(*call)
        else:
            function(*call)


@pytest.mark.parametrize("kind", ["float", "bfloat16", "double", "int"])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    ("guard", "taken"),
    [
        ("(0 < K ? T(0) : 1) == 0", False),
        ("(0 < K && K > 7 ? T(0) : 2) <= 1", False),
        ("(K > 0 ? T(0) : 1) != 0", True),
        ("!((K >= 1 ? T(0) : 1) == 1)", False),
    ],
)
def test_numbers_that_a_size_of_0_chooses_decide_about_reads(guard, taken, target, kind):
    """Where `K` is 0, no element is compared: a read that the comparison leaves out does not take place."""
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
    one = "1" if kind == "int" else "1.0"
    guard = guard.replace(": 1", f": {one}").replace(": 2", f": {one.replace('1', '2')}")
    text = f"""def f({kind}(K) A, {kind}(N) B) -> (Y) {{
        T(i) = A(i) * 2 where i in 0:K
        Y(i) = {guard} ? T(max(min(i, K - 1), 0)) : B(i) where i in 0:N
    }}"""
    f = tc.compile(text, target=target, allow=QUIET).f
    dtype = {"float": "f4", "double": "f8", "int": "i4"}.get(kind) or __import__("ml_dtypes").bfloat16
    a, b = np.zeros(0, dtype), np.ones(3, dtype)
    if taken:
        with pytest.raises(CallError):
            f(a, b)
    else:
        np.testing.assert_array_equal(f(a, b), b)


def test_an_integer_of_0_that_is_no_size_has_the_code_of_other_integers():
    f = tc.compile(
        "def f(float(M, K) A, float(K, N) B, int z) -> (C) { C(i, j) +=! A(i, k) * (B(k, j) - z) }", target="cpu"
    ).f
    A, B = np.ones((4, 70), np.float32), np.ones((70, 80), np.float32)
    assert f.source("loops", A, B, 0) == f.source("loops", A, B, 3)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    ("statement", "extents"),
    [
        ("H(Id(i)) +=! 1 where X(i) > 0", "5"),
        ("H(Id(i)) +=! X(j) where X(i) > 0, X(j) > 0", "5"),
        ("H(Id(i), d) +=! A(i, d) where X(i) > 0", "5, D"),
        ("H(d, Id(i)) max=! A(i, d) where A(i, d) > 0", "D, 5"),
        ("H(Id(i)) max=! A(j, 0) where i in 0:N, j in 0:N, X(i) > 0, Id(j)*i >= 0, X(j) > 0", "5"),
        ("H(Id(i) + Id(j)) +=! X(i) where i in 0:N, j in 0:N", "11"),
        ("H(Id(i), d) +=! 1 where X(i) > 0, d == Id(j), d in 0:D, j in 0:N", "5, D"),
    ],
)
def test_where_points_go_is_looked_at_though_some_other_size_is_0(target, statement, extents):
    text = f"""def f(int32(N) Id, float(N) X, float(N, D) A, float(Z) W) -> (float({extents}) H, s) {{
        {statement}
        s +=! W(z)
    }}"""
    f = tc.compile(text, target=target, allow=QUIET).f
    X, A = np.ones(3, "f"), np.arange(6, dtype=np.float32).reshape(3, 2)
    for ids in ([1, 0, 2], [1, -7, 1], [1, 12, 1]):
        found = []
        for size in (0, 1):
            try:
                found.append(f(np.int32(ids), X, A, np.zeros(size, "f"))[0].tolist())
            except CallError as refused:
                found.append(refused.diagnostic.message)
        assert found[0] == found[1]
        assert isinstance(found[0], str) == (ids[1] != 0)
