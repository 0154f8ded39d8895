"""Random programs: what a call launches on a GPU is simulated, and computes what the loop interpreter computes, without a finding."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, seed, settings
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Options
from tc_jupyter.function import module_of
from tc_jupyter.runtime import nvrtc
from tests.strategies import EVERY_TYPE, arguments, few_points, kernels_of_templates, programs

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

PROGRAMS = st.one_of(kernels_of_templates(), programs(dtypes=EVERY_TYPE))
SIZES = few_points()
TOLERANCE = {1: 0.0, 2: 2e-2, 4: 1e-4, 8: 1e-9}
"""Per bytes of a floating element: sums are taken in another order."""


def through_the_simulator(text: str, numbers: dict[str, int], data: int) -> str:
    """Compare one program; says how far it went."""
    return through(text, numbers, data, simulated)


def simulated(function: tc.Function, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
    """The results of a simulated call without findings; `None` where it was simulated in part."""
    found = function.simulate(*arrays)
    assert found.findings == (), found.findings[:3]
    return None if "outputs are incomplete" in found.report else list(found.outputs)


def through(
    text: str,
    numbers: dict[str, int],
    data: int,
    call: Callable[[tc.Function, list[np.ndarray]], list[np.ndarray] | None],
) -> str:
    """Compare what `call` finds on a GPU, real or simulated, with the loop interpreter; says how far it went."""
    analysis = tc.analyze(text)
    if not analysis.ok:
        reject()
    program = analysis.functions["f"].program
    arrays = list(arguments(program, data, numbers).values())
    slow = module_of(analysis, Options(text, target="interpreter"))["f"]
    fast = module_of(analysis, Options(text, target="cuda"))["f"]
    expected: list[object] = []
    refused = code_of(lambda: expected.append(slow(*arrays)))
    if refused:
        # an index from the data may be a finding of the simulation instead
        assert refused == "TC604" or code_of(lambda: call(fast, arrays)) == refused
        return "refused at the call"
    try:
        found = call(fast, arrays)
    except AssertionError as problem:
        raise AssertionError(f"{text}\n{numbers}\n{problem}") from None
    if found is None:
        return "in part"
    (results,) = expected
    for mine, theirs in zip(found, results if isinstance(results, tuple) else (results,), strict=True):
        same(mine, theirs, any(each.operator == "*" for each in program.statements), f"{text}\n{numbers}")
    return "compared"


def code_of(call: Callable[[], object]) -> str:
    """The code with which a call is refused; empty if it is not."""
    try:
        call()
    except tc.CallError as error:
        return error.diagnostic.code.number
    return ""


def same(mine: np.ndarray, theirs: np.ndarray, products: bool, text: str) -> None:
    """Integers are equal, floats up to the order of a sum; a product of large numbers and 0 is what its order makes of it."""
    theirs = np.asarray(theirs)
    if theirs.dtype == ml_dtypes.bfloat16 and mine.dtype == np.uint16:
        mine = mine.view(ml_dtypes.bfloat16)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), text
    if mine.dtype.kind in "iub":
        np.testing.assert_array_equal(mine, theirs, err_msg=text)
        return
    tolerance = TOLERANCE[mine.dtype.itemsize]
    mine, theirs = mine.astype("float64"), theirs.astype("float64")
    known = np.isfinite(theirs) | (not products)
    np.testing.assert_allclose(mine[known], theirs[known], rtol=tolerance, atol=tolerance, err_msg=text)


FOUND = (
    # a copy of an inlined tensor into shared memory, beyond the end of the second factor
    ("def f(int(M) A, int8(M,N) B, int(M) Bi) -> (T1) { T0(j,i) = A(i) * B(i,j) T1(i,j) = T0(j,i) + Bi(i) }", {"M": 2, "N": 41}),
    ("""def f(int8(M) A, int8(L,K,M) C, int8(L) Bi, int8(N,K) B) -> (T1) {
    T0(k,l,i,j) = min(A(l) * int(B(k,i)), C(j,i,l))
    T1(k,j,i,l) = T0(k,l,i,j) + Bi(j)
}""", {"N": 3, "M": 5, "K": 2, "L": 4}),
    # the same with a guard, whose read may be outside where the element is needed
    ("""def f(bfloat16(N,M) A, uint8(M) B) -> (T1) {
    T0(j,i) = i > 0 ? A(i-1,j) + B(j) : 1 where i in 0:N
    T1(i,j) = T0(j,i) + B(j)
}""", {"N": 33, "M": 35}),
    # the same with rows that data choose
    ("def f(int16(M,N) A, int32(K) Id) -> (T1) { T0(j,i) = A(Id(i),j) * 2 T1(i,j) = T0(j,i) + Id(i) }", {"M": 5, "N": 9, "K": 40}),
    # lanes that combine a sum while others of the warp have no row: the loop over rows has another length
    ("def f(float(N) X) -> (B) { S(i) +=! X(i+k) where k in 0:5 B(i) = S(i)/5 }", {"N": 17}),
    ("def f(float(N,5) X) -> (O) { m(i) max=! X(i,j) e(i,j) = exp(X(i,j)-m(i)) s(i) +=! e(i,j) O(i,j) = e(i,j)/s(i) }", {"N": 13}),
    ("def f(float(V,D) L, int32(B,5) I) -> (O) { O(b,d) +=! L(I(b,k), d) }", {"V": 9, "D": 5, "B": 7}),
    # a vector store with undefined lanes, which are stored again before anybody reads them
    ("""def f(float(L) A) -> (P) {
    D(x) = x % 2 == 0 ? A(x/2) : 0 where x in 0:2*L-1
    P(x) = x >= 3 ? D(x-3) : 0 where x in 0:2*L+2
}""", {"L": 9}),
    # a condition that is checked at each point reads an inlined tensor
    ("""def f(uint32(7,N,K) A) -> (T1) {
    T0(i,j) = A(i/2, max(min(i+i-1, 6), 0), 2*j) where i in 1:1+3
    T1(i,j) +=! max((T0(i+1, k) > 1 ? T0(k, max(min(i, 3), 0)) : 2), (A(i, j, (j-j)%7) > 1 ? T0(i, k) : 2))
}""", {"N": 9, "K": 6}),
    # the compiler subtracts with an `xor`, whose upper bits are no part of the index
    ("def f(half(M,7,K) A, bfloat16(N) B) -> (T0) { T0(i,j,k) = max(B(k+1) - 2, A(6-j, 6-j, 0)) where i in 1:1+3 }", {"K": 2, "N": 33, "M": 1}),
    # a statement that updates more than is needed of a temporary reads nothing that nobody wrote
    ("""def f(uint16(K) A, uint16(M) B) -> (T2) {
    T0(i,j) min=! B(2*i+2) where j in 0:M
    T0(i,j) = T0(i,j)*2 + 3
    T2(i,j) += T0(6-i,6-i) where j in 0:5
}""", {"K": 2, "M": 35}),
    # nor does one that computes more of a temporary than its consumer needs
    ("""def f(double(N,M) A, int32(M) B) -> (T2) {
    T0(j,i) = i > 0 && i < 4 ? (A(i,j) > 1 ? A(i,j) : 2) + B(j) : 1
    T1(j,i) = i > 0 && i < 4 ? T0(j,i) : 1
    T2(i,j) = j%2 == 0 ? int32(T1(j,i)) : 1
}""", {"N": 17, "M": 17}),
    # the compiler halves a negative number with zeros in front, which a later factor shifts out
    ("""def f(bfloat16(K,7) A, int32(N,K,N) B) -> (T0) {
    T0(i) = max((A(i, (i+1)%7) > 1 ? A(i/2, i/2) : 2) + 2 - B(i+1, 6-i, 0), B(i+2, i+1, 6-i))
}""", {"N": 8, "K": 7}),
    # sums of bytes that were loaded side by side, whose sign NVRTC forgets
    ("def f(int8(N) X, int8(N) Z) -> (Y) { Y(i) = max((X(i)+Z(i))/8, X(i)/-8) }", {"N": 64}),
    ("def f(int8(N) X, int8(N) Z) -> (Y) { Y(i) = max(X(i)+1, Z(i)) + (X(i)-Z(i) >> 3) }", {"N": 64}),
    ("def f(int8(N) X) -> (Y, Z) { Y(i) = abs(X(i)+1) Z(i) = int8(int32(X(i))+1)/4 }", {"N": 64}),
)  # fmt: skip


@pytest.mark.parametrize("text, numbers", FOUND)
def test_programs_that_once_failed(text, numbers):
    assert through_the_simulator(text, numbers, 1) == "compared"


def test_a_choice_by_data_of_an_element_that_does_not_exist_is_refused():
    text = "def f(uint16(K) A, float(M,K) B) -> (T) { T(i) min=! A(i%3) > 1 ? B(0, 2*i) : 2 where i in 0:3 }"
    assert through_the_simulator(text, {"M": 0, "K": 13}, 2) == "refused at the call"


NAMES = (
    "3a",
    "2fc",
    "a",
    "b",
    "e",
    "lane",
    "inside",
    "active",
    "errors",
    "scratch",
    "tc_shared",
    "C_cache",
    "i_outer",
    "term",
    "T",
    "int4",
)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "def f(half(N,K) {0}, half(K,M) {0}_) -> ({0}C) { {0}C(i,j) +=! {0}(i,k) * {0}_(k,j) }",
        "def {0}(float(N,M) X) -> ({0}_) { {0}m(i) max=! X(i,j) {0}_(j,i) = X(i,j) - {0}m(i) }",
        "def f(int8(N,M) {0}, int8(N) {0}_) -> ({0}R) { {0}t(j,i) = {0}(i,j) * {0}_(i) {0}R(i,j) max= {0}t(j,i) + {0}_(i) }",
    ],
)
def test_every_name_is_compiled(text, name):
    """Names that start with a digit, that the generated text uses itself, and that clash with others once they are C++ names."""
    text = text.replace("{0}", name)
    module = tc.compile(text)
    (function,) = module.values()
    arrays = list(arguments(function.program, 1, {"N": 7, "M": 5, "K": 3}).values())
    found, expected = function.simulate(*arrays), function.on("interpreter")(*arrays)
    assert found.findings == ()
    same(found.outputs[0], expected, False, text)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(PROGRAMS, SIZES, st.integers(0, 1000))
def test_random_programs(text, numbers, data):
    through_the_simulator(text, numbers, data)


@pytest.mark.slow
@seed(0)
@settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(PROGRAMS, SIZES, st.integers(0, 1000))
def test_three_hundred_programs(text, numbers, data):
    """The first of those that `python -m tests.campaign --simulate` runs by thousands."""
    through_the_simulator(text, numbers, data)


def test_a_load_may_be_widened_into_the_rest_of_the_alignment():
    """NVRTC reads ten bytes that are aligned to sixteen with one load, and says which of them it uses."""
    text = "def f(int32(N) B) -> (T) { T(k) min=! int16(B((i*N + 3) % 5) else 1) where k in 0:1, i in 0:5, (k + i) % 3 != 1 }"
    (value,) = simulated(tc.compile(text, target="cpu").f, [np.arange(67, dtype=np.int32)]) or ()
    assert value.tolist() == [2]
