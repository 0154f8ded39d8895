"""Integer sets and maps by name, and that everything works without the library."""

from __future__ import annotations

import itertools
import random
import threading

import pytest
from range_programs import define

import tc_jupyter.ranges.sets as sets
from tc_jupyter.ranges import (
    Answer,
    Box,
    IntegerMap,
    IntegerSet,
    Unknown,
    constant,
    floor_div,
    index,
    infer_ranges,
    minimum,
    mod,
    preconditions,
    prove,
    scan,
    size,
    to_python,
)
from tc_jupyter.ranges.sets import operation_limit, scanned

pytest.importorskip("islpy")

N, M = size("N"), size("M")
i, j = index("i"), index("j")
TRIANGLE = [i, N - 1 - i, j, i - j]


def brute(constraints, equalities, values, dims=("i", "j"), reach=range(-3, 12)):
    result = []
    for point in itertools.product(reach, repeat=len(dims)):
        env = {**values, **dict(zip(dims, point, strict=False))}
        if all(c.evaluate(env) >= 0 for c in constraints) and all(e.evaluate(env) == 0 for e in equalities):
            result.append(point)
    return result


def test_points_and_count():
    triangle = IntegerSet.build(("i", "j"), TRIANGLE)
    assert triangle.points({"N": 4}) == brute(TRIANGLE, [], {"N": 4})
    assert triangle.count({"N": 100}) == 5050
    assert triangle.hull({"N": 4}) == ((0, 4), (0, 4))
    assert triangle.hull({"N": 0}) is None


def test_quasi_affine():
    constraints = [i, 10 - i, j - floor_div(i, 3), minimum(N, M + 2) - 1 - j]
    equalities = [mod(i, 2)]
    found = IntegerSet.build(("i", "j"), constraints, equalities)
    assert found.points({"N": 4, "M": 3}) == brute(constraints, equalities, {"N": 4, "M": 3})


def test_algebra_against_brute_force():
    rng = random.Random(1)
    for _ in range(20):

        def random_set():
            constraints = [i + 2, 6 - i, j + 2, 6 - j]
            for _ in range(2):
                constraints.append(rng.randint(-2, 2) * i + rng.randint(-2, 2) * j + rng.randint(-3, 6))
            return constraints, IntegerSet.build(("i", "j"), constraints)

        (c1, a), (c2, b) = random_set(), random_set()
        p1, p2 = set(brute(c1, [], {})), set(brute(c2, [], {}))
        assert set(a.intersect(b).points()) == p1 & p2
        assert set(a.union(b).points()) == p1 | p2
        assert set(a.subtract(b).points()) == p1 - p2
        assert set(a.project_out(["j"]).points()) == {(x,) for x, _ in p1}
        assert (a.is_subset(b) is Answer.YES) == (p1 <= p2)
        assert (a.equals(b) is Answer.YES) == (p1 == p2)
        assert (a.is_empty() is Answer.YES) == (not p1)
        boxes = a.union(b).boxes()
        covered = [p for box in boxes for p in itertools.product(*[range(x, y) for x, y in box])]
        assert sorted(covered) == sorted(p1 | p2)
        assert set(scanned(scan(a.union(b)), {})) == p1 | p2


def test_scan_visits_in_order_with_parameters():
    found = IntegerSet.build(("i", "j"), [*TRIANGLE, 2 * j - i])
    assert list(scanned(scan(found), {"N": 7})) == found.points({"N": 7})


def test_witness():
    found = IntegerSet.build(("i",), [i - 3, N - 1 - i])
    assert found.smallest() == {"N": 4, "i": 3}
    point = found.sample()
    assert 3 <= point["i"] < point["N"]
    assert IntegerSet.empty(("i",)).sample() is None
    assert IntegerSet.empty(("i",)).smallest() is None


def test_product_of_sizes_is_one_parameter():
    found = IntegerSet.build(("i",), [i, N * M - 1 - i])
    assert found.count({"N": 3, "M": 4}) == 12
    assert found.has_opaque
    assert list(scanned(scan(found), {"N": 2, "M": 2})) == [(0,), (1,), (2,), (3,)]


def test_product_with_a_dimension_is_refused():
    with pytest.raises(Unknown):
        IntegerSet.build(("i",), [N * i])


def test_maps_compose():
    fused = IntegerMap.from_exprs(("o", "k"), [4 * index("o") + index("k")], ["f"]).constrain(
        [index("k"), 3 - index("k")]
    )
    rows = IntegerMap.from_exprs(("f",), [floor_div(index("f"), 4), mod(index("f"), 4)], ["r", "c"])
    both = fused.then(rows)
    assert both.inputs == ("o", "k")
    assert both.outputs == ("r", "c")
    assert both.image({"o": 2}).points() == [(2, 0), (2, 1), (2, 2), (2, 3)]
    assert both.reverse().image({"r": 1, "c": 2}).points() == [(1, 2)]
    assert both.is_single_valued() is Answer.YES
    assert both.project_out(["c"]).outputs == ("r",)
    assert both.sample() is not None


def test_order():
    before = IntegerMap.before(("a", "b"), ("c", "d"))
    assert before.fix({"a": 1, "b": 1, "c": 1, "d": 0}).is_empty() is Answer.YES
    assert before.fix({"a": 1, "b": 1, "c": 2, "d": 0}).is_empty() is Answer.NO


def test_pieces_say_the_same():
    even = IntegerSet.build(("q",), [N - 1], [N - 2 * index("q")]).project_out(["q"])
    pieces = even.pieces()
    for n in range(1, 8):
        truth = any(
            all((e.evaluate({"N": n}) == 0) if equal else e.evaluate({"N": n}) >= 0 for e, equal in p) for p in pieces
        )
        assert truth == (n % 2 == 0)


def test_prove():
    assert prove([N - M], N + 1 - M) is Answer.YES
    assert prove([], N - 1) is Answer.YES
    assert prove([], N - M) is Answer.NO
    with operation_limit(1):
        assert prove([N - M, floor_div(M, 3) - 2], floor_div(N + M, 2) - M) is Answer.UNKNOWN
    assert prove([N - M, floor_div(M, 3) - 2], floor_div(N + M, 2) - M) is Answer.YES


def worked_out(query):
    try:
        return query()
    except Unknown:
        return Answer.UNKNOWN


BAND = IntegerSet.build(("i", "j"), [i, N - 1 - i, j - floor_div(i, 2), i + 2 - j], [mod(i + j, 3)])
OTHER = IntegerSet.build(("i", "j"), [i, N - 1 - i, j, 2 * i - j, mod(i, 4) - 1])


@pytest.mark.parametrize(
    "query",
    [
        lambda: BAND.count({"N": 40}),
        lambda: BAND.points({"N": 9}),
        lambda: BAND.hull({"N": 9}),
        lambda: BAND.boxes({"N": 5}),
        lambda: BAND.intersect(OTHER).is_empty(),
        lambda: BAND.is_subset(OTHER),
        lambda: BAND.equals(BAND.union(OTHER)),
        lambda: BAND.smallest(),
        lambda: BAND.project_out(["i"]).points({"N": 9}),
        lambda: BAND.subtract(OTHER).points({"N": 9}),
        lambda: BAND.union(OTHER).simplified(OTHER).intersect(OTHER).count({"N": 9}),
        lambda: BAND.as_map(["i"]).is_injective(),
        lambda: BAND.as_map(["i"]).reverse().is_single_valued(),
        lambda: IntegerSet.build(("i", "j"), [minimum(N, M + 2) - 1 - mod(i, 3)]).pieces(),
        lambda: list(scanned(scan(BAND), {"N": 9})),
        lambda: prove([N - M, floor_div(M, 3) - 2], floor_div(N + M, 2) - M),
    ],
)
def test_a_query_that_reaches_the_limit_says_so(query, capfd):
    truth = query()
    answers = []
    for limit in (*range(1, 60), *range(60, 600, 9), *range(600, 6000, 250)):
        with operation_limit(limit):
            answers.append(worked_out(query))
        assert answers[-1] in (Answer.UNKNOWN, truth), limit
        assert limit % 10 or query() == truth, "one query that reached the limit spoils the next"
    assert answers[0] is Answer.UNKNOWN
    assert capfd.readouterr() == ("", "")


def test_a_set_of_a_thread_that_reached_its_limit():
    made, ready, done = [], threading.Event(), threading.Event()

    def other():
        made.append(IntegerSet.build(("i", "j"), TRIANGLE))
        context = sets._context()
        context.reset_operations()
        context.set_max_operations(1)
        made[0].raw.count_val()
        ready.set()
        done.wait(300)
        context.set_max_operations(0)

    worker = threading.Thread(target=other)
    worker.start()
    assert ready.wait(300)
    try:
        assert worked_out(lambda: made[0].count({"N": 4})) is Answer.UNKNOWN
    finally:
        done.set()
        worker.join()
    assert made[0].count({"N": 4}) == 10


def test_numbers_beyond_64_bits():
    i = index("i")
    wide = IntegerSet.build(("i",), [i + 2**70, -i - 2**70 + 2])
    assert wide.is_empty() is Answer.NO
    assert IntegerSet.build(("i",), [i - 2**70, -i + 2**70 - 1]).is_empty() is Answer.YES
    assert IntegerSet.build(("i",), [minimum(i, i + 2**70) - 2**80, -i]).is_empty() is Answer.YES


def test_a_set_travels_between_threads():
    found = IntegerSet.build(("i",), [i, N * M - 1 - i]).union(IntegerSet.from_box(("i",), Box(((constant(0), N),))))
    counts = []

    def work():
        counts.append(found.intersect(found).count({"N": 3, "M": 4}))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert counts == [12]


def affine_programs():
    yield "float(N) B, float(M) K", "A(i) +=! B(i+k)*K(k)"
    yield "float(N) B, float(M) C", "A(i) = B(i) + C(i-2)"
    yield "float(N) B", "A(i) = B(2*i) + B(2*i+1)"
    yield "float(N) B", "A(i) = B(10-i)"
    yield "float(N) B", "A(i) = B((i+1)/3)"
    yield "float(N,M) B, float(K) W", "A(i,j) +=! B(i+2*k, j-k)*W(k)"


@pytest.mark.parametrize("signature,body", list(affine_programs()))
def test_inferred_range_is_the_exact_set(signature, body):
    """On non-empty loops the last resolved index runs over exactly the values for which all accesses stay inside."""
    program = define(signature, body)
    ranges = infer_ranges(program)
    found = ranges.indices["A"]
    inner = [r for r in found if r.round == 1] if any(r.round == 2 for r in found) else []
    outer = [r for r in found if r not in inner]
    dims = [r.index for r in (*outer, *inner)]
    bounds = [b.expr for b in ranges.bounds["A"]]
    domain = [e for r in inner for e in (index(r.index) - r.lower, r.upper - 1 - index(r.index))]
    wrong = IntegerSet.empty(dims)
    for b in bounds:
        wrong = wrong.union(IntegerSet.build(dims, [*domain, -b - 1]))
    names = [r.index for r in outer]
    context = [r.extent - 1 for r in found] + [N - 1]
    window = IntegerSet.build(names, context)
    exact = window.subtract(wrong.project_out([r.index for r in inner]))
    box = IntegerSet.from_box(names, Box(tuple((r.lower, r.upper) for r in outer)))
    assert exact.equals(box.intersect(window)) is Answer.YES


def test_without_the_library(monkeypatch):
    program = define("float(N) X, float(M) Z", "A(i) = i < M ? X(i) : Z(i) where i in 0:N")
    monkeypatch.setattr(sets, "_library", lambda: None)
    ranges = infer_ranges(program)
    found = preconditions(program, ranges)
    assert [p.kind for p in found.items if p.kind != "PROVED"] == ["SIZE_SET"]
    assert "TC506" in [d.code.number for d in found.diagnostics]
    assert prove([], N - 1) is Answer.UNKNOWN
    with pytest.raises(Unknown):
        IntegerSet.build(("i",), [i])


def test_same_ranges_without_the_library(monkeypatch):
    program = define("float(H) X, float(KH) W", "A(h) +=! X(2*h+k)*W(k)")
    texts = [r.text for r in infer_ranges(program).indices["A"]]
    monkeypatch.setattr(sets, "_library", lambda: None)
    assert [r.text for r in infer_ranges(program).indices["A"]] == texts
    assert to_python(infer_ranges(program).boxes["A"].shape[0]) == "(H - KH)//2 + 1"
