"""Numbers at a call, and the messages of calls that do not fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example
from hypothesis import strategies as st
from range_programs import define, program

import tc_jupyter as tc
import tc_jupyter.ranges.data as data
import tc_jupyter.ranges.sets as sets
from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.ranges import check_data, infer_ranges, make_bind, preconditions, to_python
from tc_jupyter.ranges.at_call import at_sizes
from tests.strategies import drawn


def bind_of(checked):
    ranges = infer_ranges(checked)
    return make_bind(checked, ranges, preconditions(checked, ranges))


def test_numbers():
    bind = bind_of(define("float(N) B, float(M) C", "A(i) = B(i) + C(i-2)"))
    numbers = bind({"N": 9, "M": 5})
    assert numbers.ranges == {"A": ((2, 7),)}
    assert numbers.shapes == {"A": (5,)}
    assert numbers.origins == {"A": (2,)}


def test_function_alone():
    bind = bind_of(define("float(N) B, float(M) K", "A(i) +=! B(i+k)*K(k)"))
    assert bind.names == ("N", "M")
    assert bind.function(10, 3, True) == ((((0, 8), (0, 3)),), ((8,),), ((0,),))


def test_reductions_onto_every_second_element_beside_arrays_without_elements():
    bind = bind_of(define("float(L) A, float(K) B", "Y(j, 2*i + 1) +=! A(i) * A(j)  Z(i) = B(i)"))
    assert bind({"L": 3, "K": 0}).shapes == {"Y": (3, 5), "Z": (0,)}


def test_precondition_failed():
    bind = bind_of(define("float(I) B, float(J) C, float(K) D", "A(i,j) = B(i)*C(i+j)*D(j)"))
    message = bind({"I": 3, "J": 5, "K": 4})
    assert message.code.number == "TC601"
    assert message.message == "`C(i + j)` leaves `C`: `I + K <= J + 1` is false, `3 + 4 <= 5 + 1`"
    assert message.help == "at i = 2, j = 3 it reads `C(5)`, but `C` has 0 to 4"
    assert [label.text for label in message.labels] == ["`0 <= i < 3`", "`0 <= j < 4`"]
    assert not isinstance(bind({"I": 3, "J": 6, "K": 4}), Diagnostic)
    assert not isinstance(bind({"I": 3, "J": 5, "K": 4}, check=False), Diagnostic)


def test_negative_range():
    message = bind_of(define("float(N) B, float(M) K", "A(i) +=! B(i+k)*K(k)"))({"N": 2, "M": 9})
    assert message.code.number == "TC602"
    assert message.message == "the range of `i` ends before it starts: `0 <= i < -6`"
    assert message.help == "it needs `M <= N + 1`; here M = 9, N = 2"


def test_negative_range_is_found_without_checks():
    bind = bind_of(define("float(N) B, float(M) K", "A(i) +=! B(i+k)*K(k)"))
    assert isinstance(bind({"N": 2, "M": 9}, check=False), Diagnostic)


def test_zero_divisor():
    bind = bind_of(define("float(I) B, float(K) W, float(S) Z", "A(i) +=! B(S*i+k)*W(k)"))
    message = bind({"I": 5, "K": 2, "S": 0})
    assert message.code.number == "TC603"
    assert "`S` is 0" in message.message


def test_zero_divisor_that_is_not_chosen():
    statement = "A(i) = X(i) where i in 0:(d == 0 ? N : N/d + (d > 2 ? N % (d - 2) : 0))"
    bind = bind_of(define("float(N) X, int32 d", statement))
    assert [bind({"N": 7, "d": d}).ranges["A"] for d in (0, 2, 4)] == [((0, 7),), ((0, 3),), ((0, 2),)]
    bind = bind_of(define("float(N) X, int32 d", "A(i) = X(i) where i in 0:(N > 3 ? N/d : N)"))
    assert bind({"N": 3, "d": 0}).ranges["A"] == ((0, 3),)
    message = bind({"N": 4, "d": 0})
    assert message.code.number == "TC603"


def test_zero_divisor_under_a_condition_on_an_index():
    bind = bind_of(define("float(N) X, int32 d", "A(i) = X(i > 0 ? i/d : 0) where i in 0:N"))
    assert bind({"N": 3, "d": 0}).code.number == "TC603"


@pytest.mark.parametrize(
    "value",
    [
        "d > 0 ? X(i % d) : 0",
        "!(d > 0) ? 0 : (i > 1 ? X(i % d) : 2)",
        "i > 1 && d > 0 && i % d == 0 ? X(i) : 2",
        "d > 0 && d <= N ? X(N/d - 1) : 0",
        "float(d <= 0 || X(i % d) > 0)",
        "(d != 0 ? X(i % (d*d)) : 1) * (d > 0 ? X(i % d) : 1)",
        "X(d > 0 && i % d == 0 ? i : 0)",
    ],
)
def test_a_condition_on_sizes_leaves_out_what_divides_by_zero(value):
    bind = bind_of(define("float(N) X, int32 d", f"A(i) = {value} where i in 0:N"))
    assert not isinstance(bind({"N": 3, "d": 0}), Diagnostic)
    assert not isinstance(bind({"N": 3, "d": 1}), Diagnostic)


def test_the_message_names_the_divisor_that_a_condition_lets_through():
    bind = bind_of(define("float(N) X, int32 d", "A(i) = N > 1 ? X(i % d) : 0 where i in 0:N"))
    assert not isinstance(bind({"N": 1, "d": 0}), Diagnostic)
    assert bind({"N": 3, "d": 0}).message.startswith("`d` is 0")


def test_zero_divisor_that_simplifies_away():
    bind = bind_of(define("float(N,K) X", "A(i) = X(i*K/K, 0) where i in 0:N"))
    assert bind({"N": 3, "K": 0}).code.number == "TC603"


@pytest.mark.parametrize(
    ("end", "extent"),
    [
        ("min(M, 1)", 0),
        ("max(M, 1)", 1),
        ("abs(M - 1)", 1),
        ("(M - 1)/(M + 1) + 1", 0),
        ("(M + 1)%(M + 2)", 1),
        ("min(M*K, M + 1)", 0),
    ],
)
def test_ends_of_ranges_are_what_they_say_at_a_size_of_0(end, extent):
    bind = bind_of(define("float(M) X, float(K) Z", f"A(i) = 2 where i in 0:{end}"))
    assert bind({"M": 0, "K": 2}).shapes["A"] == (extent,)
    assert bind({"M": 1, "K": 2}).shapes["A"] == (
        {"abs(M - 1)": 0, "(M + 1)%(M + 2)": 2, "min(M*K, M + 1)": 2}.get(end, 1),
    )


def test_kernel_of_extent_zero():
    bind = bind_of(define("float(N) B, float(M) K", "A(i) +=! B(i+k)*K(k)"))
    assert bind({"N": 5, "M": 0}).ranges["A"] == ((0, 6), (0, 0))
    assert bind({"N": 0, "M": 0}).shapes["A"] == (1,)
    assert bind({"N": 0, "M": 1}).shapes["A"] == (0,)


def test_clamp_into_an_empty_tensor():
    bind = bind_of(define("float(J) B, int(I) C", "A(i) = B(max(min(C(i), J-1), 0))"))
    assert bind({"J": 0, "I": 3}).code.number == "TC601"
    assert not isinstance(bind({"J": 0, "I": 0}), Diagnostic)
    assert not isinstance(bind({"J": 1, "I": 3}), Diagnostic)


def test_integer_scalars_count():
    bind = bind_of(define("float(N) X, int s", "A(i) = X(i+s) where i in 0:N-s"))
    assert bind.names == ("N", "s")
    assert bind({"N": 5, "s": 2}).shapes["A"] == (3,)
    assert bind({"N": 5, "s": -1}).code.number == "TC601"
    assert bind({"N": 5, "s": 7}).code.number == "TC602"


def test_declared_extent_is_compared():
    bind = bind_of(program("def f(float(N) X, float(M) Y) -> (float(M) A) { A(i) = X(i) where exists Y(0) }"))
    assert bind({"N": 3, "M": 3}).shapes["A"] == (3,)
    assert bind({"N": 3, "M": 4}).code.number == "TC605"


def test_declared_extent_that_is_only_a_name():
    bind = bind_of(program("def f(float(N) X) -> (float(P) A) { A(i) = X(i+1) }"))
    assert bind({"N": 3}).shapes["A"] == (3,)


def test_declared_extent_that_never_fits():
    checked = program("def f(float(N) X) -> (float(N) A) { A(i) = X(i) + X(i+1) }")
    found = preconditions(checked, infer_ranges(checked))
    assert [d.code.number for d in found.diagnostics if d.is_error] == ["TC215"]


@pytest.mark.parametrize("library", [True, False])
def test_guarded_access_is_decided_on_numbers(library, monkeypatch):
    if not library:
        monkeypatch.setattr(sets, "_library", lambda: None)
    bind = bind_of(define("float(N) X, float(M) Z", "A(i) = i < M ? X(i) : Z(i) where i in 0:N"))
    assert not isinstance(bind({"N": 3, "M": 3}), Diagnostic)
    message = bind({"N": 5, "M": 3})
    assert message.code.number == "TC601"
    assert message.help == "at i = 3 it reads `Z(3)`, but `Z` has 0 to 2"


def test_write_outside():
    bind = bind_of(define("float(N) X, float(M) Z", "A(i) = X(i) A(i) += Z(i)"))
    message = bind({"N": 2, "M": 3})
    assert message.code.number == "TC601"
    assert message.help == "at i = 2 it writes `A(2)`, but `A` has 0 to 1"


@pytest.mark.parametrize("left", ["A(j)", "A(j, 0)", "A(j, Id(k))"])
def test_a_reduction_without_points_sets_its_results(left):
    """It wrote behind the end of `A`."""
    first = "A(i) = X(i)" if left == "A(j)" else "A(i, l) = X(i) where l in 0:2"
    ranges = "where k in 3:K, j in 0:M"
    bind = bind_of(define("float(N) X, float(M) Z, int32(K) Id", f"{first}  {left} +=! Z(j) * Id(k) {ranges}"))
    assert not isinstance(bind({"N": 5, "M": 5, "K": 3}), Diagnostic)
    for zero in (0, 9):
        message = bind({"N": 5 if zero else 0, "M": zero or 2, "K": 3})
        assert message.code.number == "TC601"
        assert "it writes `A(" in message.help
    onto = bind_of(define("float(N) X, float(M) Z, int32(K) Id", f"{first}  {left} += Z(j) * Id(k) {ranges}"))
    assert not isinstance(onto({"N": 5, "M": 9, "K": 3}), Diagnostic)


def test_a_reduction_that_never_has_points_sets_its_results():
    checked = define("float(N) X", "A(i) = X(i) where i in 1:N - 1  A(j) +=! X(j) * X(k) where k in N:N, j in 0:N")
    (found,) = [each for each in preconditions(checked, infer_ranges(checked)).diagnostics if each.is_error]
    assert found.message == "`A(j)` leaves `A` for all sizes: `j` reaches `0`"


def test_unknown_ranges_cannot_be_bound():
    checked = define("float(N,N) X", "A(i,j) = X(i+j, i-j)")
    ranges = infer_ranges(checked)
    with pytest.raises(ValueError):
        make_bind(checked, ranges, preconditions(checked, ranges))


def test_at_sizes():
    ranges = at_sizes(infer_ranges(define("float(N) B, float(M) K", "A(i) +=! B(i+k)*K(k)")), {"M": 3})
    assert to_python(ranges.boxes["A"].shape[0]) == "N - 2"


# --- data -------------------------------------------------------------------------------------------------------------------


def run(bind, arrays, values):
    return [found for found in (check_data(item, arrays, values) for item in bind.data) if found is not None]


def test_look_up():
    bind = bind_of(define("float(J) B, int(I) C", "A(i) = B(C(i))"))
    (item,) = bind.data
    assert [to_python(e) for e in item.region[0]] == ["0", "I"]
    values = {"J": 4, "I": 3}
    assert not run(bind, {"C": np.array([0, 3, 1], np.int32)}, values)
    (message,) = run(bind, {"C": np.array([0, 1, 4], np.int32)}, values)
    assert message.code.number == "TC604"
    assert message.message == "`B(C(i))` leaves `B`: index 4 in dimension 0, but it has 0 to 3"
    assert message.help == "first at i = 2; correct the data, or write `(B(C(i)) else 0)`"
    assert run(bind, {"C": np.array([0, -1, 1], np.int32)}, values)


def test_float_index_truncates_and_refuses_nan():
    bind = bind_of(define("float(J) B, float(I) C", "A(i) = B(C(i))"))
    values = {"J": 2, "I": 2}
    assert not run(bind, {"C": np.array([-0.9, 1.9], np.float32)}, values)
    assert run(bind, {"C": np.array([0.0, 2.0], np.float32)}, values)
    assert run(bind, {"C": np.array([0.0, math.nan], np.float32)}, values)
    assert run(bind, {"C": np.array([0.0, math.inf], np.float32)}, values)


def test_elements_that_are_not_read_do_not_count():
    bind = bind_of(define("float(J) B, int(I) C", "A(i) = B(C(2*i)) where i in 0:I/2"))
    assert not run(bind, {"C": np.array([0, 99, 1, 99], np.int32)}, {"J": 2, "I": 4})
    assert run(bind, {"C": np.array([0, 0, 9, 0], np.int32)}, {"J": 2, "I": 4})


def test_elements_behind_a_guard_do_not_count():
    bind = bind_of(define("float(J) B, int(I) C", "A(i) = i < 2 ? B(C(i)) : 0 where i in 0:I"))
    assert not run(bind, {"C": np.array([0, 1, 99], np.int32)}, {"J": 2, "I": 3})
    assert run(bind, {"C": np.array([0, 5, 1], np.int32)}, {"J": 2, "I": 3})


def test_two_index_tensors_are_checked_at_each_point():
    bind = bind_of(define("float(N) X, int(I) p, int(J) q", "A(i,j) = X(p(i) + q(j))"))
    values = {"N": 6, "I": 2, "J": 2}
    arrays = {"p": np.array([1, 2], np.int32), "q": np.array([0, 3], np.int32)}
    assert not run(bind, arrays, values)
    (message,) = run(bind, {**arrays, "q": np.array([0, 4], np.int32)}, values)
    assert message.help == "first at i = 1, j = 1; correct the data, or write `(X(p(i) + q(j)) else 0)`"


@pytest.mark.parametrize("chunk", [1, 3, 4, 5, 20, 100])
def test_points_are_looked_at_in_their_order_a_few_at_a_time(chunk, monkeypatch):
    monkeypatch.setattr(data, "CHUNK", chunk)
    bind = bind_of(define("float(N) X, int(I) p, int(J) q, int(K) r", "A(i,j,k) = X(p(i) + q(j) + r(k))"))
    values = {"N": 6, "I": 2, "J": 3, "K": 4}
    point = bind.data[0]
    shapes = [shape for _, shape in data._chunks(point, data._Evaluator(point, {}, values))]
    assert sum(map(math.prod, shapes)) == 24
    assert max(map(math.prod, shapes)) <= chunk
    arrays = {"p": np.array([0, 4]), "q": np.array([0, 2, 0]), "r": np.array([0, 0, 0, 1])}
    (message,) = run(bind, {name: array.astype(np.int32) for name, array in arrays.items()}, values)
    assert (message.help or "").startswith("first at i = 1, j = 1, k = 0; ")


def test_index_tensor_of_the_same_def():
    bind = bind_of(define("float(J) B, int(I) C", "T(i) = C(i+1) A(i) = B(T(i))"))
    (item,) = bind.data
    assert item.tensor == "T"
    assert bind.checks("A") == (item,)
    arrays = {"T": np.array([0, 1, 1], np.int32)}
    assert not run(bind, arrays, {"J": 2, "I": 3})
    assert run(bind, {"T": np.array([0, 2, 1], np.int32)}, {"J": 2, "I": 3})


def test_empty_loops_check_nothing():
    bind = bind_of(define("float(J) B, int(I) C", "A(i) = B(C(i))"))
    assert not run(bind, {"C": np.zeros(0, np.int32)}, {"J": 0, "I": 0})


def test_unsigned_values_beyond_64_bits():
    bind = bind_of(define("float(J) B, uint64(I) C", "A(i) = B(C(i))"))
    assert run(bind, {"C": np.array([2**64 - 1], np.uint64)}, {"J": 5, "I": 1})


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """An integer expression over `N`, `A` and `B`, with all its brackets."""
    if not depth or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(["N", "A", "B", "2", "3"]))
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    op = draw(st.sampled_from(["+", "-", "*", "/", "/", "%", "min", "max"]))
    return f"{op}({left}, {right})" if op in ("min", "max") else f"({left} {op} {right})"


@drawn(37, 150, expressions(), st.tuples(*[st.integers(0, 12)] * 3))
@example("N / (A * B)", (8, 2, 2))
@example("N % (A * B)", (4, 2, 3))
@example("(N * A) / (2 * B)", (7, 3, 2))
@example("N / (A * A * B)", (9, 2, 1))
@example("N / (B / A)", (9, 2, 5))
def test_extents_are_what_their_formula_says(text: str, sizes: tuple[int, int, int]) -> None:
    values = dict(zip("NAB", sizes, strict=True))
    bind = bind_of(define("float(N) X, float(A) Y, float(B) Z", f"O(c) = 1.0 where c in 0:{text}"))
    found = bind(values)
    try:
        extent = eval(text.replace("/", "//"), {}, dict(values))
    except ZeroDivisionError:
        return  # refused, unless the divisor cancels out
    if isinstance(found, Diagnostic):
        assert extent < 0, found
    else:
        assert found.shapes == {"O": (extent,)}


@pytest.mark.parametrize(
    ("end", "length"),
    [
        ("int32(N / 2)", 3),
        ("int32(min(N, 3))", 3),
        ("int32(N % 4) + 1", 4),
        ("int32(N*N)", 49),
        ("uint8(N + 250)", 1),
        ("int8(25*N) + 100", 19),
        ("(int16(N) > 6 ? 2 : 3)", 2),
    ],
)
def test_an_end_may_be_cast(end, length):
    bind = bind_of(define("float(N) A", f"Y(i) = A(0) where i in 0:{end}"))
    assert bind({"N": 7}).shapes == {"Y": (length,)}


@pytest.mark.parametrize("number", [-(2**63), -(2**31) - 1, -200, -1, 0, 3, 127, 128, 300, 2**31, 2**32 + 3, 2**63 - 1])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_narrow_end_has_the_last_bits_of_a_scalar(number, target):
    dtypes = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
    results = " ".join(f"Y_{dtype}(i) = 1 where i in 0:max(0, min(5, {dtype}(s)))" for dtype in dtypes)
    text = f"def f(int64 s) -> ({', '.join(f'Y_{dtype}' for dtype in dtypes)}) {{ {results} }}"
    expected = [max(0, min(5, int(np.array(number).astype(dtype)))) for dtype in dtypes]
    assert [len(found) for found in tc.compile(text, target=target).f(number)] == expected


@pytest.mark.parametrize("subscript", ["(i & 4) | (i & 3)", "(i ^^ 5) + 2*i", "int8(i*2)", "(i & 1) << 2 | i >> 1"])
def test_a_condition_on_sizes_shows_the_subscript_as_it_is_written(subscript):
    f = tc.compile(f"def f(int16(N) X) -> (Y) {{ Y(i) = X({subscript}) where i in 0:8 }}", target="interpreter").f
    with pytest.raises(tc.CallError, match="TC601") as found:
        f(np.zeros(0, np.int16))
    said = str(found.value)
    assert f"`X({subscript})` leaves `X`" in said
    assert "needs `.. < N`" in said
    assert "int64" not in said


def test_a_scalar_is_not_limited_by_products_of_sizes():
    """Twice the square of a size of 31 bits does not fit into 64 bits, whatever `s` is: `s` was limited to 1."""
    bind = bind_of(define("double(L) A, int8 s", "Y(i) = A(0) where i in min(s, L):2*L*L + L - min(s, L)"))
    assert bind({"L": 9, "s": 5}).shapes == {"Y": (161,)}
