"""Checks at points that sizes or index tensors may decide: code for calls that they leave room is without them, that of others has them."""

import numpy as np
import pytest

import tc_jupyter as tc

TEXTS = {
    "shifted": "def f(float(N) M, float(K) X) -> (Y) { Y(i) = M(i) > 0 ? X(i + 1) : 0 where i in 0:N }",
    "sum": "def f(float(N) M, float(K) X) -> (Y) { Y +=! M(i) > 0 ? X(2*i) : 0 where i in 0:N }",
    "clamped": "def f(float(N) M, float(K) X) -> (Y) { Y(i) = M(i) > 0 ? X(max(min(2*i - 1, 4), 0)) : 1 where i in 0:N }",
    "turned": "def f(float(N) M, float(K) X) -> (Y) { Y(i) = M(i) > 0 ? X(K - 2 - i) : 0 where i in 0:N }",
    "scalar": "def f(float(N) M, float(K) X, int32 s) -> (Y) { Y(i) = M(i) > 0 ? X(i + s) : 0 where i in 0:N }",
    "two": "def f(float(N) M, float(K) X) -> (Y, Z) {\n Y(i) = M(i) > 0 ? X(i + 2) : 0 where i in 0:N\n Z(i) = M(i) > 1 ? Y(i + 0) * X(2*i) : 0 where i in 0:N }",
}


def outcome(function, *arguments, **options):
    try:
        found = function(*arguments, **options)
    except tc.CallError as problem:
        return problem.diagnostic.code.number, problem.diagnostic.message
    return [each.tolist() for each in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_calls_of_all_sizes_in_any_order_are_those_of_the_interpreter(text):
    random = np.random.default_rng(5)
    ours, plain = (tc.compile(text, target=target, allow=("TC327",)).f for target in ("cpu", "interpreter"))
    found = []
    for number in range(150):
        n, k = int(random.integers(0, 7)), int(random.integers(0, 14))
        again = 1 + 3 * (number % 7 == 0)  # often enough for a call without Python
        mask = np.where(random.random(n) < 0.4, 2.0, -1.0).astype(np.float32)
        arguments = [
            mask,
            random.integers(0, 99, k).astype(np.float32),
            *([int(random.integers(-1, 4))] if "int32 s" in text else ()),
        ]
        wanted = outcome(plain, *arguments)
        for _ in range(again):
            assert outcome(ours, *arguments) == wanted, (n, k, arguments)
        found.append(isinstance(wanted, list))
    assert 20 < sum(found) < 150


def test_code_of_calls_with_room_is_without_the_check():
    function = tc.compile(TEXTS["shifted"], target="cpu", allow=("TC327",)).f
    mask, values = np.ones(8, np.float32), np.arange(9, dtype=np.float32)
    assert "check" not in function.source("loops", mask, values)
    assert "check" in function.source("loops", mask, values[:8])
    none = np.zeros(8, np.float32)
    assert function(none, values[:8]).tolist() == [0] * 8
    with pytest.raises(tc.CallError, match="TC604"):
        function(mask, values[:8])


def test_a_simulated_call_has_the_check_where_there_is_no_room():
    function = tc.compile(TEXTS["sum"], allow=("TC327",)).f
    mask = np.array([1, 0, 0], np.float32)
    for values in ([5, 1, 2], [5, 1, 2, 3, 4]):
        assert function.simulate(mask, np.float32(values)).outputs[0] == 5
    with pytest.raises(tc.CallError, match="TC604"):
        function.simulate(mask[::-1].copy(), np.float32([5, 1, 2]))


GATHERS = {
    "missing": "def f(float(K) X, int32(N) J) -> (Y) { Y(i) = J(i) >= 0 ? X(J(i)) : -1 }",
    "masked": "def f(float(K) X, int32(N) J, float(N) M) -> (Y) { Y(i) = M(i) > 0 ? X(J(i) + 1) : -1 }",
    "rows": "def f(float(K) X, int32(N, 3) J) -> (Y) { Y(i) +=! J(i, k) != -1 ? X(J(i, k)) : 0 }",
    "clamped": "def f(float(K) X, int32(N) J) -> (Y) { Y +=! J(i) >= 0 ? X(max(J(i), 0)) : 0 }",
    "twice": "def f(float(K) X, int32(N) J, int32(N) L) -> (Y) { Y(i) = J(i) >= 0 ? X(J(i)) + X(L(i)) : 1 }",
    "written": "def f(float(K) X, int32(N) J) -> (Y) {\n T(i) = 2*X(i)\n Y(i) = J(i) >= 0 ? T(J(i)) : -1 }",
}


@pytest.mark.parametrize("text", GATHERS.values(), ids=GATHERS)
def test_calls_with_any_index_tensors_in_any_order_are_those_of_the_interpreter(text):
    random = np.random.default_rng(6)
    allow = ("TC323", "TC327")
    ours, plain = (tc.compile(text, target=target, allow=allow).f for target in ("cpu", "interpreter"))
    found = []
    for number in range(120):
        n, k = (int(random.integers(0, 5)), int(random.integers(1, 6))) if number % 3 else (3, 4)
        low, high = [(-1, k), (0, k - 1), (-1, k + 1), (-3, k)][int(random.integers(4))]
        arguments = [random.integers(0, 99, k).astype(np.float32)]
        for name in ours.program.parameters[1:]:
            tensor = ours.program.tensor(name)
            shape = (n, 3)[: tensor.rank]
            drawn = random.integers(low, max(high, low + 1), shape) if name in "JL" else random.integers(-1, 2, shape)
            arguments.append(drawn.astype(tensor.dtype.value))
        wanted = outcome(plain, *arguments)
        for _ in range(1 + 3 * (number % 5 == 0)):
            ours_now = outcome(ours, *arguments)
            # of several reads outside, another one may be named
            assert ours_now == wanted or ours_now[0] == wanted[0] == "TC604", arguments
        found.append(isinstance(wanted, list))
    assert 20 < sum(found) < 120


def test_code_for_an_index_tensor_with_limits_is_without_the_check():
    function = tc.compile(GATHERS["masked"], target="cpu", allow=("TC323", "TC327")).f
    values, mask = np.arange(4, dtype=np.float32), np.float32([1, -1])
    inside, outside = np.int32([0, 2]), np.int32([0, 70])
    assert "check" not in function.source("loops", values, inside, mask)
    assert "check" in function.source("loops", values, outside, mask)
    for _ in range(5):
        assert function(values, inside, mask).tolist() == [1, -1]
        assert function(values, outside, mask).tolist() == [1, -1]
        with pytest.raises(tc.CallError, match="TC604"):
            function(values, outside, -mask)
