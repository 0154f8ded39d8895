"""Left sides with expressions: values, bits, what is refused before anything is written, and random programs."""

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.ranges.left_sides import written_by
from tc_jupyter.ranges.sets import operation_limit
from tests.tc_programs import drawn_left_sides, judge

HISTOGRAM = "def f(uint8(N) X) -> (H) { H(X(i)) +=! 1 }"
WEIGHTED = "def f(int32(N) X, float(N) W) -> (float(100) H) { H(X(i)) +=! W(i) }"
SEGMENT = "def f(float(E, D) M, int32(E) Dst, float(V) Like) -> (float(V, D) Y) { Y(Dst(e), d) +=! M(e, d) }"
NUMBERED = "def f(float(E, D) M, int32(E) Dst, int32 V) -> (float(V, D) Y) { Y(Dst(e), d) +=! M(e, d) }"
PLACE = "def f(int32(N) P, float(N) X) -> (float(N) Y) { Y(P(i)) = X(i) where unique }"


@pytest.fixture
def threads():
    yield tc.set_threads
    tc.set_threads(None)


@pytest.mark.parametrize("count", [0, 1, 7, 8191, 8193, 100_000])
def test_histogram(count):
    x = np.random.default_rng(count).integers(0, 256, count).astype(np.uint8)
    for values in (x, np.full_like(x, 7)):
        assert np.array_equal(tc.compile(HISTOGRAM).f(values), np.bincount(values, minlength=256))


def test_same_bits_for_any_number_of_threads(threads):
    rng = np.random.default_rng(1)
    calls = [
        (WEIGHTED, (rng.integers(0, 100, 50_000).astype(np.int32), rng.random(50_000, np.float32))),
        (
            SEGMENT,
            (rng.random((5000, 17), np.float32), rng.integers(0, 9, 5000).astype(np.int32), np.zeros(9, np.float32)),
        ),
        (
            SEGMENT,
            (rng.random((300, 5), np.float32), rng.integers(0, 99, 300).astype(np.int32), np.zeros(99, np.float32)),
        ),
        (NUMBERED, (rng.random((300, 5), np.float32), rng.integers(0, 9, 300).astype(np.int32), 9)),
    ]
    for text, arguments in calls:
        results = []
        for count in (1, 2, 3, 8):
            threads(count)
            results.append(tc.compile(text, allow=("TC234",)).f(*arguments).tobytes())
        assert len(set(results)) == 1, text


def test_segments():
    rng = np.random.default_rng(2)
    for points, row, elements in ((1000, 64, 10), (50, 3, 400), (0, 3, 4), (5, 0, 4)):
        m, to = rng.random((points, row), np.float32), rng.integers(0, elements, points).astype(np.int32)
        expected = np.zeros((elements, row))
        np.add.at(expected, to, m)
        assert np.allclose(tc.compile(NUMBERED).f(m, to, elements), expected, rtol=1e-5)


def of_rows(left: str, right: str, operator: str = "+=!", last: str = "") -> str:
    """A scatter whose points say in each row where they go."""
    return f"def f(float(B, N, D) X, int32(B, N) I, int32(N, D) J) -> (float(B, 9, D) Y) {{ Y({left}) {operator} {right}{last} }}"


ROWS_APART = {
    "rows before": (of_rows("b, I(b, n), d", "X(b, n, d)"), lambda b, n, d, i, j: (b, i[b, n], d)),
    "rows behind": (of_rows("b, J(n, d), d", "X(b, n, d)"), lambda b, n, d, i, j: (b, j[n, d], d)),
    "both": (
        of_rows("b, (I(b, n) + J(n, d)) % 9, d", "X(b, n, d)"),
        lambda b, n, d, i, j: (b, (i[b, n] + j[n, d]) % 9, d),
    ),
    "shifted": (of_rows("b, (n + I(b, 0)) % 9, d", "X(b, n, d)"), lambda b, n, d, i, j: (b, (n + i[b, 0]) % 9, d)),
}
"""Texts, and the element of each point."""


@pytest.mark.parametrize("name", ROWS_APART)
@pytest.mark.parametrize("shape", [(3, 20, 5), (1, 40, 33), (2, 1, 1), (0, 3, 2), (2, 0, 3)], ids=str)
def test_points_that_decide_in_each_row(name, shape, threads):
    """`Y(b, I(b, n), d) +=! ...`: the loops of the rows stay outside or inside of those of the points, with one element for each."""
    text, element = ROWS_APART[name]
    b, n, d = shape
    rng = np.random.default_rng(4)
    x, i, j = rng.random(shape, np.float32), rng.integers(0, 9, (b, n), np.int32), rng.integers(0, 9, (n, d), np.int32)
    expected = np.zeros((b, 9, d), np.float32)
    for point in np.ndindex(*shape):
        expected[element(*point, i, j)] += x[point]
    compiled = tc.compile(text, target="cpu", allow=["TC234", "TC329"]).f
    for count in (1, 2):
        threads(count)
        np.testing.assert_allclose(compiled(x, i, j), expected, rtol=1e-5)
    assert compiled.source("loops").count("for at in") == 1, "no loop looks for points: one sets all elements to 0"


def test_one_row_each_has_a_permutation_of_its_own():
    text = "def f(float(B, N) X, int32(B, N) P) -> (float(B, N) Y) { Y(b, P(b, n)) = X(b, n) where unique }"
    rng = np.random.default_rng(5)
    x, places = rng.random((4, 50), np.float32), np.argsort(rng.random((4, 50)), 1).astype(np.int32)
    expected = np.empty_like(x)
    np.put_along_axis(expected, places, x, 1)
    np.testing.assert_array_equal(tc.compile(text, target="cpu").f(x, places), expected)
    simulation = tc.compile(text, target="cuda").f.simulate(x, places)
    assert simulation.findings == ()
    np.testing.assert_array_equal(simulation.outputs[0], expected)
    places[2, 7] = places[2, 8]
    with pytest.raises(tc.CallError, match="TC617"):
        tc.compile(text, target="cpu").f(x, places)


@pytest.mark.parametrize("engine", ["cpu", "interpreter"])
@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        (WEIGHTED, ([3, 100, 5], [1, 1, 1]), "TC604", "index 100 in dimension 0"),
        (WEIGHTED, ([3, 4, -1], [1, 1, 1]), "TC604", "index -1 in dimension 0"),
        (PLACE, ([2, 0, 2], [1, 2, 3]), "TC617", "`Y(2)` is written twice: for `i = 0` and for `i = 2`"),
    ],
)
def test_refused_before_anything_is_written(engine, text, arguments, code, said):
    where, values = np.array(arguments[0], np.int32), np.array(arguments[1], np.float32)
    function = tc.compile(text, target=engine).f
    out = np.full(100 if text is WEIGHTED else 3, 5, np.float32)
    with pytest.raises(tc.CallError) as caught:
        function(where, values, out=out)
    assert caught.value.diagnostic.code.number == code
    assert said in caught.value.diagnostic.message
    assert (out == 5).all()


@pytest.mark.parametrize("engine", ["cpu", "interpreter"])
def test_computed_subscripts(engine):
    function = tc.compile("def f(float(N) X) -> (int32(4) H) { H(int32(X(i) * 4)) +=! 1 }", target=engine).f
    x = np.array([0, 0.3, 0.99], np.float32)
    assert function(x).tolist() == [1, 1, 0, 1]
    for bad in (1.5, -0.5, np.nan, np.inf):
        with pytest.raises(tc.CallError) as caught:
            function(np.array([0.5, bad, 0.5], np.float32))
        assert caught.value.diagnostic.code.number == "TC604"
        first, cure = (caught.value.diagnostic.help or "").split("; ")
        assert first == "first at i = 1"
        assert cure == "correct the data" + (
            "" if np.isnan(bad) else ", or leave such points out by a condition behind `where`"
        )


def test_elements_that_data_leaves_out():
    function = tc.compile("def f(int32(N) P, float(N) X) -> (float(5) Y) { Y(P(i)) = X(i) where unique }").f
    with pytest.raises(tc.CallError) as caught:
        function(np.array([0, 3, 1], np.int32), np.ones(3, np.float32))
    assert caught.value.diagnostic.code.number == "TC222"
    assert caught.value.diagnostic.message == "no statement writes `Y(2)`"


@pytest.mark.parametrize("engine", ["cpu", "interpreter"])
def test_every_statement_before_the_first_read_writes_elements(engine):
    """Only the last one counted: what others wrote was missed, and nobody looked where that one had plain indices."""
    head, place = "def f(int32(N) P, float(N) X) -> (float(5) Y) {", "Y(P(i)) = X(i) where unique"
    given = np.array([0, 4, 1], np.int32), np.array([5, 6, 7], np.float32)
    for first, then, found in (
        ("Y(i) = 2 where i in 0:3", "Y(3) = 1", [5, 7, 2, 1, 6]),
        ("Y(2*i) = 2 where i in 0:3", "Y(3) = 1", [5, 7, 2, 1, 6]),
        ("Y(3) = 1  Y(2) = 2", "", [5, 7, 2, 1, 6]),
        ("", "Y(i) = 2 where i in 1:3  Y(P(i)) += 3", "TC222"),
        ("Y(i) = 2 where i in 0:3", "", "TC222"),
    ):
        function = tc.compile(f"{head} {first} {place} {then} }}", target=engine).f
        if isinstance(found, list):
            assert function(*given).tolist() == found
        else:
            with pytest.raises(tc.CallError, match=r"no statement writes `Y\(3\)`") as caught:
                function(*given)
            assert caught.value.diagnostic.code.number == found


@pytest.mark.parametrize("left, extent", [("2*i", "2*N"), ("3*i + 2", "3*N"), ("i + k", "N + N")])
def test_a_subscript_without_a_value_leaves_no_extent(left, extent):
    text, none = f"def f(float(N) X) -> (Y) {{ Y({left}) +=! X(i) * X(k) }}", np.zeros(0, np.float32)
    with pytest.raises(tc.CallError, match=r"TC602.* nothing says how large `Y` is: its subscript has no value here"):
        tc.compile(text).f(none)
    assert tc.compile(text.replace("(Y)", f"(float({extent}) Y)")).f(none).shape == (0,)


def test_a_target_without_elements_is_told_of_by_its_name():
    def said(text):
        return [(each.code.number, each.message) for each in tc.analyze(text, allow=("TC234", "TC323")).diagnostics]

    bins = "def f(int32(N) K) -> (int32(0) H) { H(K(i)) +=! 1 }"
    assert said(bins) == [("TC326", "`H` has no element for any size, so nothing is computed")]
    large = "nothing says how large `Y` is: its subscript has no value for any size"
    assert said("def f(float(N) X) -> (Y) { Y(2*i) = 1 where i in 0:0 }") == [("TC304", large)]


def test_many_statements_side_by_side_are_proved_to_write_all_elements_within_a_few_operations():
    # each taken away from what those before it left took 44 ms of 100 such statements, and more of every further one
    text = " ".join(f"Y(60*i + {k}) = X(i) + {k}" for k in range(60))
    with operation_limit(3000):
        found = tc.analyze(f"def f(float(N) X) -> (Y) {{ {text} }}").functions["f"]
        written = written_by(found.program, found.ranges, "Y")
    assert written is not None
    assert written.proved


@pytest.mark.parametrize("then", ["Y(i, P(i)) += 1", "Y(i, j) *= 2", "Y(i, j) = 3"])
@pytest.mark.parametrize("engine", ["cpu", "interpreter"])
def test_a_statement_that_keeps_elements_stays_one(engine, then):
    """As an expression of the next statement it read what no one had written, and lost all its checks."""
    text = f"def f(int32(N) P, float(N) X) -> (float(N, 5) Y) {{ Y(i, P(i)) = X(i) where unique  {then} }}"
    function, x = tc.compile(text, target=engine).f, np.ones(2, np.float32)
    for places, code in (([1, 5], "TC604"), ([-1, 0], "TC604"), ([1, 4], "" if "3" in then else "TC222")):
        if code:
            with pytest.raises(tc.CallError) as caught:
                function(np.array(places, np.int32), x)
            assert caught.value.diagnostic.code.number == code
        else:
            assert (function(np.array(places, np.int32), x) == 3).all()


def test_no_element_at_all():
    function = tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i)  Y(0) = 0 }").f
    with pytest.raises(tc.CallError) as caught:
        function(np.zeros(0, np.float32))
    assert caught.value.diagnostic.code.number == "TC601"


def test_a_target_whose_length_is_no_number_but_0_gets_no_point():
    f = tc.compile(
        "def f(float(N) X, int32(N) I) -> (Y) { Y(k) = 0 where k in N:N  Y(I(i)) += X(i) where I(i) < 0 }", target="cpu"
    ).f
    assert f(np.ones(3, np.float32), np.arange(3, dtype=np.int32)).shape == (0,)


def test_empty_targets_do_not_look_for_points():
    """Where a size is 0 there is other code: it does not pass all elements for each point either."""
    text = (
        "def f(float(E) M, int32(E) Dst, float(V) L, float(Z) U) -> (float(V) Y, W) { Y(Dst(e)) +=! M(e)  W +=! U(z) }"
    )
    where = np.arange(20_000, dtype=np.int32)
    found = tc.compile(text, allow=("TC234",)).f(
        np.ones(20_000, np.float32), where, np.zeros(20_000, np.float32), np.zeros(0, np.float32)
    )
    assert (found[0] == 1).all()


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (HISTOGRAM, (np.random.default_rng(3).integers(0, 256, 9000).astype(np.uint8),)),
        (PLACE, (np.random.default_rng(4).permutation(300).astype(np.int32), np.arange(300, dtype=np.float32))),
        (
            "def f(float(N) A, float(N) B) -> (Y) { Y(2*i) = A(i)  Y(2*i + 1) = B(i) }",
            (np.arange(300, dtype=np.float32),) * 2,
        ),
        (NUMBERED, (np.ones((40, 9), np.float32), np.arange(40, dtype=np.int32) % 7, 7)),
    ],
)
def test_simulated_cuda(text, arguments):
    simulation = tc.compile(text, target="cuda").f.simulate(*arguments)
    assert simulation.findings == ()
    assert np.array_equal(np.asarray(simulation.outputs[0]), tc.compile(text).f(*arguments))


def test_histograms_on_a_gpu_are_in_shared_memory():
    source = tc.compile(HISTOGRAM).f.source("cuda")
    assert "__shared__" in source
    assert "atomic" not in source


def test_plain_c_shares_no_element():
    lines = [line.strip() for line in tc.compile(HISTOGRAM).f.source("c").splitlines()]
    assert lines[lines.index("H[(int64_t)X[i]] += 1;") - 2] == "}"


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    judge(*drawn_left_sides(seed))


def test_sums_of_halves_with_an_extent_of_a_scalar():
    """The sums are kept in memory whose size a scalar says."""
    text = "def f(half(N) X, int64 s) -> (Y) { Y(2*j + 1) min=! X(i) where j in min(s, N):N }"
    for engine in ("cpu", "interpreter"):
        found = tc.compile(text, target=engine).f(np.arange(5, dtype=np.float16), 3)
        assert found.tolist() == [0, np.inf, 0]


@pytest.mark.parametrize("then", ["Y(i) *= 2", "Y(i) += 1", "Y(i) = Y(i) + 2", "Y(i) max= 3"])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_statement_that_needs_what_is_there_writes_no_element(then, target):
    """What `where unique` has left out was read, and what the memory held came back."""
    given = np.array([2, 0], np.int32), np.array([5, 6], np.float32)
    head, first = "def f(int32(M) P, float(M) X) -> (float(4) Y) {", "Y(P(i)) = X(i) where unique"
    f = tc.compile(f"{head} {first} {then} where i in 0:4 }}", target=target).f
    with pytest.raises(tc.CallError, match=r"TC222(.|\n)*no statement writes `Y\(1\)`"):
        f(*given)
    g = tc.compile(f"{head} Y(i) = 1 where i in 0:4 {first} {then} where i in 0:4 }}", target=target).f
    assert np.isfinite(g(*given)).all()
    found = tc.analyze(f"def f(float(N) A) -> (Y) {{ Y(2*i) = A(i) {then} where i in 0:2*N - 1 }}")
    assert "TC222" in [each.code.number for each in found.diagnostics]


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    "statement",
    [
        "H(2*i) +=! X(i) where Id(i) > 0",
        "H(2*i) +=! X(j) where i in 0:N, j in 0:N, j < Id(i)",
        "H(i + j) max=! X(j) where i in 0:N, j in 0:N, Id(i) > 0",
    ],
)
def test_no_condition_ends_a_loop_before_a_place_outside_is_seen(statement, target):
    text = f"def f(int32(N) Id, float(N) X) -> (float(3) H) {{ {statement} }}"
    allowed = [each.code.number for each in tc.analyze(text).diagnostics]
    f = tc.compile(text, target=target, allow=allowed).f
    for size in (2, 3, 9, 40):
        arguments = np.full(size, size, np.int32), np.ones(size, "f")
        if size == 2:
            assert f(*arguments).shape == (3,)
            continue
        with pytest.raises(tc.CallError, match="TC604"):
            f(*arguments)


ROWS = {
    "columns": ("float(N, D) X, int32(D) P) -> (float(N, D) Y) { Y(i, P(d)) = X(i, d) where unique }", "d"),
    "rows": ("float(N, D) X, int32(N) P) -> (float(N, D) Y) { Y(P(i), d) = X(i, d) where unique }", "i"),
    "part of the rows": (
        "float(N, D) X, int32(D) P) -> (float(N, D) Y) { Y(i, j) = 0 where i in 0:N, j in 0:D  "
        "Y(i, P(d)) = X(i, d) where unique, i in 1:N - 1 }",
        "d",
    ),
    "rows of their own": (
        "float(N, D) X, int32(N, D) P) -> (float(N, D) Y) { Y(i, P(i, d)) = X(i, d) where unique }",
        "",
    ),
    "rows under a guard": (
        "float(N, D) X, int32(D) P) -> (float(N, D) Y) { Y(i, j) = 0 where i in 0:N, j in 0:D  "
        "Y(i, P(d)) = X(i, d) where unique, i < d }",
        "d",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_looked_at_once(name: str) -> None:
    """Places that all rows have alike are unique where those of one row are; messages name an element of the whole target."""
    text, index = ROWS[name]
    f, plain = (tc.compile(f"def f({text}", target=target).f for target in ("cpu", "interpreter"))
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, 6)).astype(np.float32)
    places = (
        rng.permutation(6).astype(np.int32)
        if index
        else rng.permuted(np.tile(np.arange(6, dtype=np.int32), (6, 1)), axis=1)
    )
    np.testing.assert_array_equal(f(x, places), plain(x, places))
    wrong = places.copy()
    wrong[..., 5] = wrong[..., 4]
    for function in (f, plain):
        with pytest.raises(tc.CallError, match=r"is written twice: for `(d = 0, )?i = "):
            function(x, wrong)


def test_long_permutations_are_looked_at_quickly() -> None:
    """Elements are marked, and not sorted: each point is one step."""
    f = tc.compile(PLACE, target="cpu").f
    places = np.random.default_rng(1).permutation(3 << 20).astype(np.int32)  # more points than are looked at together
    x = np.arange(3 << 20, dtype=np.float32)
    result = f(places, x)
    np.testing.assert_array_equal(result[places], x)
    places[-1] = places[0]
    with pytest.raises(
        tc.CallError, match=f"`Y.{places[0]}.` is written twice: for `i = 0` and for `i = {(3 << 20) - 1}`"
    ):
        f(places, x)


@pytest.mark.parametrize(
    "text",
    [
        "def f(int32(N) K, float(N) X, int32 C) -> (float(C) Y) { Y(K(i)) +=! X(i) }",
        "def f(int32(N) K, float(N) X, int32 C) -> (int64(C) Y) { Y(K(i)) argmax=! X(i) }",
        "reduce m(float s, float n, float t, float k) = (s + t, n + k) from (0, 0) with x -> (x, 1)\n"
        "def f(int32(N) K, float(N) X, int32 C) -> (float(C) S, float(C) Y) { S(K(i)), Y(K(i)) m=! X(i) }",
    ],
)
def test_a_stated_extent_that_is_negative_is_called_so(text):
    f = tc.compile(text, target="interpreter").f
    with pytest.raises(tc.CallError) as found:
        f(np.zeros(3, np.int32), np.ones(3, np.float32), -1)
    assert "`Y` would have a negative extent: -1" in str(found.value)
    assert "state its extent" not in str(found.value)
