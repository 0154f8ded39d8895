"""Messages about an end of an array name the end that is left, and a remedy that works."""

import numpy as np
import pytest

import tc_jupyter as tc

X = np.arange(5, dtype=np.float32)


def applied(text, fix):
    for edit in sorted(fix.edits, key=lambda each: -each.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def only(text):
    found, *others = tc.analyze(text).diagnostics
    assert all(each.code.number == "TC323" for each in others)
    return found


@pytest.mark.parametrize(
    ("index", "number", "label"),
    [("i / d", 2, "needs `i//d < N`"), ("i / d", -2, "needs `0 <= i//d`"), ("i * d", 2, "needs `d*i < N`")],
)
def test_a_call_names_the_end_that_is_left(index, number, label):
    f = tc.compile(f"def f(float(N) X, int32 d) -> (Y) {{ Y(i) = X({index}) where i in 0:11 }}", target="cpu").f
    with pytest.raises(tc.CallError) as error:
        f(X, number)
    assert error.value.diagnostic.label == label


def test_the_extent_as_an_index():
    text = "def f(float(N) X) -> (Y) { Y(i) = X(i) - X(N) }"
    found = only(text)
    assert (found.message, found.help) == (
        "`X(N)` leaves `X` for all sizes",
        "the last element has the index `N - 1`",
    )
    assert (tc.compile(applied(text, found.fix), target="cpu").f(X) == X - X[-1]).all()
    found = only("def f(float(4) X) -> (Y) { Y = X(7) }")
    assert (found.help, found.fix) == ("the last element has the index `3`", None)


def test_a_write_outside_of_what_the_first_statement_made():
    halves = "Y(t, d) = X(t, d) - X(t, d + D)  Y(t, d + D) = X(t, d) + X(t, d + D)"
    found = only(f"def f(float(T, 2*D) X) -> (Y) {{ {halves} where d in 0:D }}")
    start = "Y(i, j) = 0 where i in 0:T, j in 0:2*D"
    assert found.code.number == "TC311"
    assert found.help.endswith(f"state that in the result list, or begin with `{start}`")
    halves = halves.replace("  Y", " where d in 0:D  Y")
    f = tc.compile(
        f"def f(float(T, 2*D) X) -> (Y) {{ {start}  {halves} where d in 0:D }}", target="cpu", allow="TC325"
    ).f
    both = np.arange(12, dtype=np.float32).reshape(2, 6) ** 2
    a, b = both[:, :3], both[:, 3:]
    assert (f(both) == np.concatenate([a - b, a + b], 1)).all()


def test_a_write_outside_of_what_is_stated_or_of_a_first_element():
    found = tc.analyze("def f(float(N) X) -> (float(N) Y) { Y(i + 1) = X(i) }").diagnostics
    assert found[0].help == "state a larger `Y` in the result list, or write fewer elements with a `where` range"
    found = tc.analyze("def f(float(N) X) -> (Y) { Y(0) = 0  Y(i) = X(i) }").diagnostics
    assert [each.code.number for each in found] == ["TC322", "TC325"]
    assert found[0].help.endswith(
        "says how large it is: state that in the result list, or begin with `Y(i) = 0 where i in 0:N`"
    )


def test_a_stated_size_that_the_first_statement_does_not_make():
    found = only("def f(float(N) X) -> (float(N) Y) { Y(i) = X(i + 1) - X(i) }")
    assert found.help == "the first statement makes `N - 1` elements: state that, or give its index a `where` range"


def test_a_result_that_begins_at_a_computed_subscript():
    found = only("def f(float(N) A) -> (Y) { Y(2*i + 1) = A(i) }")
    assert found.help == "give all of them a value first, as with `Y(i) = 0 where i in 0:2*N`"
    (told,) = tc.analyze("def f(float(N) A) -> (Y) { Y(i + 1) = A(i) }").diagnostics
    assert told.code.number == "TC321"
    assert told.help == "to start at 0, give all elements a value first, as with `Y(i) = 0 where i in 0:N + 1`"
    f = tc.compile("def f(float(N) A) -> (Y) { Y(i) = 0 where i in 0:2*N  Y(2*i + 1) = A(i) }", target="cpu").f
    assert (f(X) == np.stack([0 * X, X], 1).ravel()).all()


def test_a_position_is_converted_and_not_what_is_compared():
    text = """def gather(float(K, D) C, int32(N) Id) -> (Q) { Q(n, d) = C(Id(n), d) }
def f(float(N, K) S, float(K, D) C) -> (Q, P) { P(n) argmin=! S(n, k)  Q = gather(C, P) }"""
    f = tc.compile(applied(text, only(text).fix), target="cpu", allow="TC323").f
    scores, codes = np.random.default_rng(0).random((7, 4), np.float32), np.eye(4, 3, dtype=np.float32)
    q, p = f(scores / 100, codes)
    assert (p == scores.argmin(1)).all()
    assert (q == codes[p]).all()


def test_a_window_with_negative_padding_is_told_so():
    f = tc.compile(
        "def f(float(N) X, float(K) W, int32 p) -> (Y) { Y(i) +=! (X(i+k-p) else 0) * W(k) }", target="cpu"
    ).f
    with pytest.raises(
        tc.CallError, match=r"a window cannot go so: `0 <= p` is false.*\n(.*\n)*help: steps are at least 1"
    ):
        f(np.ones(9, np.float32), np.ones(3, np.float32), -1)


@pytest.mark.parametrize(
    ("read", "help"),
    [
        ("X(N - i)", "write `i + 1` for `i`, as in `X(N - i - 1)` for `X(N - i)`"),
        ("X(10 - i)", "write `i - N + 11` for `i`, as in `X(N - i - 1)` for `X(10 - i)`"),
        ("X(i - 2)", "write `i + 2` for `i`, as in `X(i)` for `X(i - 2)`"),
        (
            "X(i) - X(i - 1)",
            "write `else 0`, or another value, directly behind each read that begins before its array or ends behind it and add `where i in 0:N`",
        ),
    ],
)
def test_a_range_from_0_on_leaves_no_element_out(read, help):
    found = tc.analyze(f"def f(float(N) X) -> (Y) {{ Y(i) = {read} }}").diagnostics
    assert [each.help for each in found if each.code.number == "TC321"] == [f"to start at 0, {help}"]


@pytest.mark.parametrize("index", ["N + abs(s)", "max(N, s)", "-abs(s) - 1"])
def test_what_two_conditions_exclude_is_told_at_once(index):
    (found,) = tc.analyze(f"def f(float(N) X, int s) -> (Y) {{ Y = X({index}) }}").diagnostics
    assert found.code.number == "TC311"
    assert found.help in ("the last element has the index `N - 1`", "the first element has the index `0`")
