"""`cache_read`, `cache_write`, `rfactor`, `tensorize`, `storage`: values, bounds and refusals."""

from itertools import permutations, product

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Select, walk
from tc_jupyter.runtime.cpu import cpu_target
from tc_jupyter.schedule import default_schedule
from tests.running import default, program_of, run

PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
HALF = "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
NUMBERS = {"M": 18, "N": 11, "K": 20}


def arrays(dtype="float32"):
    random = np.random.default_rng(2)
    return {
        "A": random.integers(-3, 4, (NUMBERS["M"], NUMBERS["K"])).astype(dtype),
        "B": random.integers(-3, 4, (NUMBERS["K"], NUMBERS["N"])).astype(dtype),
    }


def is_product(schedule, dtype="float32"):
    given = arrays(dtype)
    found = run(schedule, given, NUMBERS)["C"]
    np.testing.assert_array_equal(found, given["A"].astype("float64") @ given["B"].astype("float64"))


def refused(change, *arguments, **options):
    with pytest.raises(CompileError) as caught:
        change(*arguments, **options)
    return caught.value.diagnostics[0]


SAME = "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * A(i,k) where j in 0:N }"
DIAGONAL = "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k+i) * B(k,j) where k in 0:32 }"
MIDDLE = "def f(half(M,K,L) A, half(K,N) B) -> (C) { C(l,i,j) +=! A(i,k,l) * B(k,j) }"
DOT = "def f(uint8(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! int32(A(i,k)) * int32(B(k,j)) }"
TILE = ("i.inner", "j.inner", "k.inner")


def inside(schedule):
    return step(schedule).cache_read("A", "C").compute_at("A.cache", "C", "i.inner")


def step(schedule, factors=(16, 8, 16), stage="C"):
    for axis, factor in zip("ijk", factors, strict=True):
        schedule = schedule.split(stage, axis, factor)
    return schedule.reorder(stage, "i.outer", "j.outer", "k.outer", "i.inner", "j.inner", "k.inner")


def test_a_copy_of_an_input_holds_what_a_tile_reads():
    schedule = default(PRODUCT).tile("C", "i", "j", 4, 8).reorder("C", "i.outer", "j.outer", "k", "i.inner", "j.inner")
    schedule = schedule.cache_read("B", "C").compute_at("B.cache", "C", "j.outer")
    need = schedule.bounds(**NUMBERS).stage("B.cache")
    assert need.elements_per_visit == (20 * 8, 20 * 3) * 5
    is_product(schedule)


def test_two_copies_have_different_names():
    schedule = default(PRODUCT).cache_read("A", "C").cache_read("A.cache", "C")
    assert schedule.stages == ("A.cache", "A.cache.cache", "C")
    is_product(schedule)


def test_a_sum_in_a_cache_is_copied_out():
    schedule = default(PRODUCT).tile("C", "i", "j", 4, 4).cache_write("C").compute_at("C.cache", "C", "j.outer")
    assert schedule.bounds(**NUMBERS).stage("C.cache").memory == 16 * 4
    is_product(schedule.storage("C.cache", "register"))


def test_partial_results_have_the_loop_as_an_index():
    schedule = default(PRODUCT).split("C", "k", 6).rfactor("C", "k.outer")
    assert [i.name for i in schedule.graph.stage("C.rf").statement.output_indices] == ["k.outer", "i", "j"]
    assert schedule.bounds(**NUMBERS).stage("C.rf").elements == 4 * 18 * 11
    is_product(schedule)
    is_product(default(PRODUCT).split("C", "k", 6).rfactor("C", "k.inner"))


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["k.outer", "k.inner"])
def test_partial_results_in_every_order_of_loops(axis):
    # a loop over partial results runs over all of them, also where one combines nothing: the end of `k` is a test inside
    schedule = default(PRODUCT).split("C", "k", 6).rfactor("C", axis)
    for order in permutations(schedule.leaves("C.rf")):
        is_product(schedule.reorder("C.rf", *order))


@pytest.mark.parametrize("axes", [("k.outer", "k.inner"), ("k.inner", "k.outer")])
def test_partial_results_of_partial_results_are_those_that_exist(axes):
    # 20 is no multiple of 6: beyond it nothing is computed and nothing may be read
    first, second = axes
    schedule = default(PRODUCT).split("C", "k", 6).rfactor("C", first).rfactor("C.rf", second)
    is_product(schedule)
    is_product(schedule.reorder("C.rf", second, first))
    deeper = default(PRODUCT).split("C", "k", 6).split("C", "k.outer", 3).rfactor("C", "k.inner")
    deeper = deeper.rfactor("C.rf", "k.outer.inner").rfactor("C.rf.rf", "k.outer.outer")
    is_product(deeper)


ROWS = "def f({type}(N,M,L) X) -> (Y) {{ Y(i) {operator} X(i,j,k) }}"
TWICE = {
    "the parts of one split": lambda s, n: s.split("Y", "k", n).rfactor("Y", "k.outer").rfactor("Y.rf", "k.inner"),
    "the parts the other way round": lambda s, n: s.split("Y", "k", n).rfactor("Y", "k.inner").rfactor("Y.rf", "k.outer"),
    "parts of the other index": lambda s, n: s.split("Y", "j", n).rfactor("Y", "j.outer").rfactor("Y.rf", "j.inner"),
    "a part of each index": (
        lambda s, n: s.split("Y", "k", n).rfactor("Y", "k.outer").split("Y.rf", "j", n + 1).rfactor("Y.rf", "j.inner")
    ),
    "a number of parts": (
        lambda s, n: s.split("Y", "k", nparts=n).rfactor("Y", "k.outer").rfactor("Y.rf", "k.inner")
    ),
    "parts of both indices in one": (
        lambda s, n: s.fuse("Y", "j", "k").split("Y", "j.k.fused", n)
        .rfactor("Y", "j.k.fused.outer").rfactor("Y.rf", "j.k.fused.inner")
    ),
    "a split that was split again": (
        lambda s, n: s.split("Y", "k", n).split("Y", "k.outer", 2).rfactor("Y", "k.outer.outer").rfactor("Y.rf", "k.inner")
    ),
    "a split after the first time": (
        lambda s, n: s.split("Y", "k", n).rfactor("Y", "k.outer").split("Y.rf", "k.inner", 2)
        .rfactor("Y.rf", "k.inner.outer").rfactor("Y.rf.rf", "k.inner.inner")
    ),
    "a split of another index after the first time": (
        lambda s, n: s.split("Y", "k", n).rfactor("Y", "k.outer").split("Y.rf", "k.outer", 2).rfactor("Y.rf", "j")
    ),
    "three parts": (
        lambda s, n: s.split("Y", "k", 2 * n).split("Y", "k.inner", n).rfactor("Y", "k.outer")
        .split("Y.rf", "k.inner.outer", 2).rfactor("Y.rf", "k.inner.inner")
    ),
    "in the loops of the sum": (
        lambda s, n: s.split("Y", "k", n).rfactor("Y", "k.outer").rfactor("Y.rf", "k.inner")
        .compute_at("Y.rf.rf", "Y.rf", "k.outer").compute_at("Y.rf", "Y", "i")
    ),
    "in another order": (
        lambda s, n: s.split("Y", "k", n).rfactor("Y", "k.outer").rfactor("Y.rf", "k.inner")
        .reorder("Y.rf.rf", "j", "i", "k.outer", "k.inner").reorder("Y.rf", "k.inner", "i", "k.outer")
    ),
}  # fmt: skip


def rows(kind, operator, shape):
    """Numbers, and their sums, minima or maxima, which the zeros of fresh memory would change."""
    away = 0 if operator == "+" else 100 if operator == "min" else -100
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(kind) + np.array(away, kind)
    return x, {"+": np.sum, "min": np.min, "max": np.max}[operator](x, axis=(1, 2))


@pytest.mark.some(5)
@pytest.mark.parametrize("chain", TWICE)
@pytest.mark.parametrize(("kind", "operator"), [("int32", "+"), ("float32", "+"), ("float32", "max"), ("int32", "min")])
def test_nothing_is_read_of_partial_results_that_nobody_writes(chain, kind, operator):
    # beyond the tail of the first split there are no partial results of partial results, although `j` is left to reduce
    text = ROWS.format(type=kind.replace("float32", "float"), operator=f"{operator}=!")
    for factor, (m, length) in product((2, 3), ((3, 5), (1, 6), (5, 7), (2, 1), (4, 2))):
        schedule = TWICE[chain](default(text), factor)
        x, expected = rows(kind, operator, (3, m, length))
        np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": 3, "M": m, "L": length})["Y"], expected)


@pytest.mark.some(4)
@pytest.mark.parametrize("chain", TWICE)
@pytest.mark.parametrize(("kind", "operator"), [("int32", "+"), ("float32", "max")])
def test_machine_code_reads_nothing_that_nobody_writes(chain, kind, operator):
    text = ROWS.format(type=kind.replace("float32", "float"), operator=f"{operator}=!")
    f = tc.compile(text, target="cpu").f
    changed = f.with_schedule(TWICE[chain](f.schedule(), 3))
    for m, length in ((3, 5), (1, 6), (5, 7), (2, 1), (40, 101)):
        x, expected = rows(kind, operator, (8, m, length))
        np.testing.assert_array_equal(changed(x), expected)


@pytest.mark.parametrize("operator", ["max=!", "min=!", "*=!", "max=", "+="])
def test_partial_results_of_partial_results_with_other_operators(operator):
    text = f"def f(float(N,M) X, float(N) Y) -> (P) {{ P(n) = Y(n)\n P(n) {operator} X(n,m) }}"
    plain = default(text)
    schedule = plain.split("P#2", "m", 4).rfactor("P#2", "m.outer").rfactor("P#2.rf", "m.inner")
    numbers = {"N": 3, "M": 17}
    given = {"X": -np.random.default_rng(1).integers(1, 3, (3, 17)).astype("f"), "Y": -np.ones(3, "f")}
    np.testing.assert_array_equal(run(schedule, given, numbers)["P"], run(plain, given, numbers)["P"])


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: (default(HALF), ("i", "j", "k"), "dot"), "no such intrinsic"),
        (lambda: (default(HALF), ("i", "j"), "mma_m16n8k16_f16"), "it has 3 axes: row, column, reduction"),
        (lambda: (default(HALF), ("j", "i", "k"), "mma_m16n8k16_f16"), "not the innermost"),
        (lambda: (step(default(HALF)), ("j.outer", "k.outer", "i.inner"), "mma_m16n8k16_f16"), "not the innermost"),
        (lambda: (step(default(SAME)), TILE, "mma_m16n8k16_f16"), "one factor must be read at (row, reduction)"),
        (lambda: (step(default(DIAGONAL)), TILE, "mma_m16n8k16_f16"), "by single elements along the axes"),
        (lambda: (step(default(MIDDLE)), TILE, "mma_m16n8k16_f16"), "does not lie in its last two dimensions"),
        (lambda: (step(default(HALF)).bind("C", "i.outer", "threadIdx.x"), TILE, "mma_m16n8k16_f16"), "32 threads"),
        (lambda: (step(default(HALF)).unroll("C", "k.inner"), TILE, "mma_m16n8k16_f16"), "is `unroll` already"),
        (lambda: (inside(default(HALF)), TILE, "mma_m16n8k16_f16"), "`A.cache` is attached inside it"),
        (lambda: (step(default(DOT)), TILE, "dot_4x16x4_u8s8"), "the extents are 16 x 8 x 16, not 4 x 16 x 4"),
        (lambda: (step(default(DOT), (4, 16, 4)), TILE, "dot_4x16x4_u8s8"), "`B` is not stored with the reduction"),
        (lambda: (default(HALF), ("i", "j", "k"), "mma_m16n8k16_f16"), "the extents are"),
        (lambda: (step(default(PRODUCT)), ("i.inner", "j.inner", "k.inner"), "mma_m16n8k16_f16"), "type float32"),
        (
            lambda: (
                step(default(HALF.replace("+=!", "max=!"))),
                ("i.inner", "j.inner", "k.inner"),
                "mma_m16n8k16_f16",
            ),
            "the operator",
        ),
        (
            lambda: (step(default(HALF.replace("* B", "+ B"))), ("i.inner", "j.inner", "k.inner"), "mma_m16n8k16_f16"),
            "not a product",
        ),
    ],
)
def test_a_matrix_step_must_match(make, part):
    schedule, axes, name = make()
    found = refused(schedule.tensorize, "C", axes, name)
    assert found.code.number == "TC410"
    assert part in found.message


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda s: s.split("C", "k.inner", 2), "it is part of `mma_m16n8k16_f16`"),
        (lambda s: s.fuse("C", "i.inner", "j.inner"), "it is part of `mma_m16n8k16_f16`"),
        (lambda s: s.reorder("C", "k.inner", "i.inner"), "the axes are not the innermost loops"),
        (lambda s: s.reorder("C", "k.inner", "k.outer"), "the axes are not the innermost loops"),
        (lambda s: s.vectorize("C", "j.inner"), "`j.inner` is `vectorize` already"),
        (lambda s: s.bind("C", "j.outer", "threadIdx.x"), "the 32 threads of the warp"),
        (lambda s: s.cache_read("A", "C").compute_at("A.cache", "C", "j.inner"), "`A.cache` is attached inside it"),
        (lambda s: s.cache_write("C"), "`C` is tensorized"),
        (lambda s: s.rfactor("C", "k.outer"), "`C` is tensorized"),
        (lambda s: s.tensorize("C", TILE, "mma_m16n8k16_f16"), "it is `mma_m16n8k16_f16` already"),
        (lambda s: s.cache_read("A", "C").storage("A.cache", layout=((1, 0), (0, 0), (1, 8))), "by single elements"),
        (
            lambda s: (
                s.cache_read("A", "C").split("A.cache", "k", 64).bind("A.cache", "k.inner", "threadIdx.x")
                .compute_at("A.cache", "C", "k.outer")
            ),
            "another length than the 32 threads",
        ),
    ],
)  # fmt: skip
def test_tensorized_loops_stay_what_they_are(change, part):
    schedule = step(default(HALF)).tensorize("C", TILE, "mma_m16n8k16_f16")
    assert part in refused(change, schedule).message


def test_what_a_warp_computes_is_not_private_to_its_threads():
    schedule = step(default(HALF).cache_write("C"), stage="C.cache").tensorize("C.cache", TILE, "mma_m16n8k16_f16")
    schedule = schedule.split("C", "i", 16)
    assert "each thread would hold only a part" in refused(schedule.compute_at, "C.cache", "C", "i.outer").message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda s: s.cache_read("X", "C"), "TC401"),
        (lambda s: s.cache_read("C", "C"), "TC401"),
        (lambda s: s.cache_read("A", "C", "C.cache"), "TC411"),
        (lambda s: s.cache_write("C").cache_read("A", "C.cache", "C"), "TC401"),
        (lambda s: s.at_most("Q", 4), "TC411"),
        (lambda s: s.at_most("N", 0), "TC405"),
        (lambda s: s.unroll("C", "j"), "TC410"),
        (lambda s: s.cache_write("Q"), "TC411"),
        (lambda s: s.rfactor("C", "i"), "TC403"),
        (lambda s: s.rfactor("C", "z"), "TC403"),
        (lambda s: s.cache_write("C").compute_at("C.cache", "C", "j").cache_write("C.cache"), "TC401"),
        (lambda s: s.cache_write("C").compute_at("C.cache", "C", "j").rfactor("C.cache", "k"), "TC401"),
        (lambda s: s.storage("C", "local"), "TC410"),
        (lambda s: s.cache_write("C").storage("C.cache", "shared"), "TC410"),
        (lambda s: s.cache_write("C").storage("C.cache", layout=((0, 0),)), "TC410"),
        (lambda s: s.cache_write("C").storage("C.cache", layout=((0, 0), (1, 0), (1, -4))), "TC410"),
    ],
)
def test_illegal_uses_are_refused(change, code):
    assert refused(change, default(PRODUCT)).code.number == code


def test_a_packed_layout_holds_the_same_values():
    schedule = default(PRODUCT).cache_read("B", "C").storage("B.cache", layout=((1, 0), (0, 0), (1, 4)))
    is_product(schedule)
    is_product(schedule.split("C", "j", 4).compute_at("B.cache", "C", "j.outer"))


@pytest.mark.parametrize("layout", [((1, 2), (0, 0), (1, 0), (1, 4)), ((1, 0), (1, 4), (0, 3), (1, 2), (0, 0))])
def test_tiles_of_tiles_hold_the_same_values(layout):
    schedule = default(PRODUCT).cache_read("B", "C").storage("B.cache", layout=layout)
    is_product(schedule)
    is_product(schedule.split("C", "j", 4).compute_at("B.cache", "C", "j.outer"))


def test_several_stages_read_one_copy():
    text = "def f(float(N) X) -> (O) { s +=! X(i)  O(i) = X(i) * s }"
    schedule = default(text).cache_read("X", "s", "O")
    assert schedule.stages == ("X.cache", "s", "O")
    assert [read.tensor for read in schedule.graph.stage("O").statement.reads()] == ["X.cache", "s"]
    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": 5})["O"], 10 * x)


def test_a_copy_may_have_its_dimensions_in_another_order():
    text = "def f(float(2:N + 2, M, 3) X) -> (O) { O(i, j) = X(i, j, 2) + X(i, j, 0) }"
    schedule = default(text).cache_read("X", "O", order=(2, 0, 1))
    assert [str(read.indices[0].value) for read in schedule.graph.stage("O").statement.reads()] == ["2", "0"]
    x = np.arange(24, dtype="float32").reshape(4, 2, 3)
    np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": 4, "M": 2})["O"], x[..., 2] + x[..., 0])
    said = refused(default(text).cache_read, "X", "O", order=(0, 2, 2))
    assert (said.code.number, said.help) == ("TC401", "such as `(2, 1, 0)`")
    assert "keeps the type" in refused(default(text).cache_read, "X", "O", only=0, order=(2, 0, 1)).message


WRAPPED = "def f(float(N) X, float(K) F) -> (Y) { Y(i) +=! X((i+k)%N) * F(k) where i in 0:N }"
BORDERED = (
    "def f(float(H,W) X, float(3,3) F) -> (Y) "
    "{ Y(h,w) +=! (2*h+p>=1 && 2*h+p-1<H && w-q>=0 ? X(2*h+p-1,w-q) : 7) * F(p,q) where h in 0:(H+1)/2, w in 0:W }"
)


def test_a_reindexed_copy_is_what_the_consumer_reads():
    """At `i + k`: the consumer reads a plain window, the copy has the remainder."""
    schedule = default(WRAPPED).cache_read("X", "Y", reindex=True)
    need = schedule.bounds(N=7, K=3).stage("X.cache")
    assert need.elements_per_visit == (9,)
    random = np.random.default_rng(3)
    x, f = random.integers(-3, 4, 7).astype("f"), random.integers(-3, 4, 3).astype("f")
    expected = sum(np.roll(x, -k) * f[k] for k in range(3))
    moved = schedule.split("Y", "i", 4)
    for each in (schedule, moved, moved.compute_at("X.cache", "Y", "i.outer")):
        np.testing.assert_array_equal(run(each, {"X": x, "F": f}, {"N": 7, "K": 3})["Y"], expected)


@pytest.mark.parametrize("size", [{"H": 1, "W": 1}, {"H": 5, "W": 4}, {"H": 6, "W": 2}])
def test_conditions_on_indices_move_into_the_copy(size):
    """With a step of two and a falling index: `2*h + p` from 0, `w - q` from -2."""
    schedule = default(BORDERED).cache_read("X", "Y", reindex=True)
    assert [type(node).__name__ for node in walk(schedule.graph.stage("Y").statement.value)].count("Select") == 0
    random = np.random.default_rng(4)
    given = {
        "X": random.integers(-3, 4, (size["H"], size["W"])).astype("f"),
        "F": random.integers(-3, 4, (3, 3)).astype("f"),
    }
    plain = run(default(BORDERED), given, size)["Y"]
    np.testing.assert_array_equal(run(schedule, given, size)["Y"], plain)
    first, end = schedule.graph.boxes["X.cache"].bounds[1]
    assert (first.evaluate(size), end.evaluate(size)) == (-2, size["W"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Y(i) +=! X((i+k)%N) * X(i) where i in 0:N, k in 0:3", "reads two places"),
        ("Y(i) +=! X((i*k)%N) where i in 0:N, k in 0:3", "two dimensions where the tensor has one"),
        ("Y(i) +=! X((3*i+2*k)%N) where i in 0:N, k in 0:3", "gaps"),
        ("Y(i) +=! (2*i+k < N ? X(i+k) : 0) where i in 0:N, k in 0:3", "an index in two sums"),
    ],
)
def test_what_is_no_function_of_sums_is_not_reindexed(text, why):
    schedule = default(f"def f(float(N) X, float(N) F, float(P) G) -> (Y) {{ {text} }}")
    assert refused(schedule.cache_read, "X", "Y", reindex=True).code.number == "TC401", why


@pytest.mark.parametrize(
    ("text", "zeros"),
    [
        ("Y(i) +=! (F(i) > 0 ? X((i+k)%N) : 0) where i in 0:N, k in 0:3", False),
        ("Y(i) +=! (F(i) > 0 ? X(i+k) : 0) where i in 0:N-2, k in 0:3", False),
        ("Y(i) +=! (i+k < N && X(i+k) > 0 ? F(i) : 0) where i in 0:N, k in 0:3", True),
        ("Y(i) +=! (i+k < N && F(i) > 0 ? X(i+k) : 0) where i in 0:N, k in 0:3", True),
        ("Y(i) +=! (i+k < N ? exp(X(i+k)) : 0) where i in 0:N, k in 0:3", True),
        ("Y(i) +=! (i+k < N ? X(i+k) : 0) where i in 0:N, k in 0:3", False),
        ("Y(i,j) +=! X(i+k) * F(j) where i in 0:P, j in 0:N-4, k in 0:3", True),
        ("Y(i) +=! X(i+k) where i in 0:N-4, k in 0:3", False),
    ],
)
def test_a_copy_reads_only_what_is_there(text, zeros):
    """Where the stage's own conditions are not in the copy, it has zeros for what may not be there."""
    whole = f"def f(float(N) X, float(N) F, float(P) G) -> (Y) {{ {text} }}"
    schedule = default(whole).cache_read("X", "Y", reindex=True)
    copy = schedule.graph.stage(schedule.stages[0]).statement.value
    conditions = sum(isinstance(node, Select) for node in walk(copy))
    assert conditions == (zeros or "(i+k < N ? X" in text)
    random = np.random.default_rng(5)
    for size in (1, 3, 6):
        sizes = {"N": size, "P": max(size - 2, 0)}
        given = {n: random.integers(-3, 4, sizes["P" if n == "G" else "N"]).astype("f") for n in "XFG"}
        np.testing.assert_array_equal(run(schedule, given, sizes)["Y"], run(default(whole), given, sizes)["Y"])


def test_a_reindexed_copy_is_for_one_stage_without_moves():
    schedule = default(WRAPPED)
    assert "has moves already" in refused(schedule.split("Y", "i", 4).cache_read, "X", "Y", reindex=True).message
    assert "keeps the type" in refused(schedule.cache_read, "X", "Y", widen=True, reindex=True).message
    two = default("def f(float(N) X) -> (Y, Z) { Y(i) = X((i+1)%N) where i in 0:N  Z(i) = X((i+2)%N) where i in 0:N }")
    assert "for one consumer" in refused(two.cache_read, "X", "Y", "Z", reindex=True).message


def test_one_of_several_accesses_reads_a_copy():
    text = "def f(float(N,K) X) -> (C) { C(i,j) +=! X(n,i) * X(n,j) * X(n,i) }"
    schedule = default(text).cache_read("X", "C", only=0)
    assert [read.tensor for read in schedule.graph.stage("C").statement.reads()] == ["X.cache", "X", "X.cache"]
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": 2, "K": 3})["C"], np.einsum("ni,nj,ni->ij", x, x, x))
    for wrong in (-1, 2):
        said = refused(default(text).cache_read, "X", "C", only=wrong)
        assert (said.code.number, said.help) == ("TC401", "`only` is less than 2, and 0 for the first access")
    assert "keeps the type" in refused(default(text).cache_read, "X", "C", only=0, widen=True).message
    assert "does not go with `only`" in refused(default(text).cache_read, "X", "C", only=0, reindex=True).message


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("Y(i,j) +=! exp(X(i,k)) / S(i) * W(k,j)", "exp(X(i,k)) / S(i)"),
        ("Y(i,j) +=! W(k,j) * (X(i,k) - S(i))", "(X(i,k) - S(i))"),
        ("Y(i,j) +=! exp(X(i,k)) * W(k,j) + X(i,k)", "exp(X(i,k))"),
        (
            "Y(i,j) +=! X(i,k) > 2 ? exp(X(i,k)) / S(i) * W(k,j) : 0",
            "exp(X(i,k)) / S(i)",
        ),  # not around the first `X(i,k)`
        ("Y(i,j) +=! X(i,k) * W(k,j) + (X(i,k) + 1) * exp(X(i,k))", "(X(i,k) + 1) * exp(X(i,k))"),
        ("Y(i,j) +=! exp(X(i,k) * exp(W(k,j)))", None),
        ("Y(i,j) +=! X(i,k) * W(k,j)", None),
        ("Y(i,j) +=! double(X(i,k)) * W(k,j)", None),
        ("Y(i,j) +=! (S(i) > 0 ? exp(X(i,k)) : 0) * W(k,j)", "(S(i) > 0 ? exp(X(i,k)) : 0)"),
        ("Y(i,j) +=! (W(k,j) > 0 ? exp(X(i,k)) : 0)", "exp(X(i,k))"),
        ("Y(i,j) +=! (X(i,k) + i * k) * W(k,j)", "(X(i,k) + i * k)"),
        ("Y(i,j) +=! (X(i,k) + j) * W(k,j)", None),
    ],
)
def test_a_copy_of_what_is_computed_from_an_operand(text, copied):
    whole = f"def f(float(M,K) X, float(K,N) W, float(M) S) -> (Y) {{ {text} }}"
    plain = default(whole)
    random = np.random.default_rng(5)
    sizes = {"M": 3, "N": 4, "K": 6}
    given = {
        name: random.integers(1, 4, tuple(sizes[size] for size in shape)).astype("f")
        for name, shape in (("X", "MK"), ("W", "KN"), ("S", "M"))
    }
    if copied is None:
        assert "nothing from an element" in refused(plain.cache_read, "X", "Y", value=True).message
        return
    schedule = plain.cache_read("X", "Y", value=True)
    assert schedule.stages == ("X.cache", "Y")
    value = schedule.graph.stage("X.cache").statement.value
    assert whole[value.span.start : value.span.end].strip("()") == copied.strip("()")
    np.testing.assert_array_equal(run(schedule, given, sizes)["Y"], run(plain, given, sizes)["Y"])


def test_a_value_of_a_window_is_a_window():
    """`exp(X(i+k-1))`, or 1 beyond the ends, for every `i + k`."""
    text = "def f(float(N) X, float(K) F) -> (Y) { Y(i) +=! (i+k > 0 && i+k <= N ? exp(X(i+k-1)) : 1) * F(k) where i in 0:N }"
    schedule = default(text).cache_read("X", "Y", value=True)
    assert len(schedule.leaves("X.cache")) == 1
    given = {"X": np.arange(5, dtype="f"), "F": np.arange(3, dtype="f")}
    plain = run(default(text), given, {"N": 5, "K": 3})["Y"]
    np.testing.assert_array_equal(run(schedule, given, {"N": 5, "K": 3})["Y"], plain)


def test_options_of_a_copy_that_exclude_each_other():
    schedule = default("def f(float(M,K) X, float(K,N) W) -> (Y) { Y(i,j) +=! exp(X(i,k)) * W(k,j) }")
    said = refused(schedule.cache_read, "X", "Y", reindex=True, value=True)
    assert (said.message, said.help) == ("`reindex` does not go with `value`", "leave out `value`")
    assert "has moves already" in refused(schedule.split("Y", "i", 4).cache_read, "X", "Y", value=True).message


def test_a_promised_size_is_a_constant_of_the_loops():
    schedule = default(PRODUCT).at_most("N", 16).at_most("N", 12)
    assert schedule.graph.most == (("N", 12),)
    is_product(schedule.unroll("C", "j"))
    is_product(schedule.split("C", "j", 4).unroll("C", "j.outer"))


def test_rfactor_keeps_the_loops_of_other_reductions():
    """Splits, order and annotations of the other index go to the partial results; the output's stay where they are."""
    text = "def f(int32(N,K,L) X) -> (S) { S(i) +=! X(i,k,l) }"
    schedule = default(text).split("S", "i", 2).split("S", "k", 4).split("S", "l", 3).unroll("S", "l.inner")
    schedule = schedule.reorder("S", "l.outer", "k.outer", "l.inner", "k.inner").rfactor("S", "k.inner")
    assert schedule.leaves("S.rf") == ("k.inner", "i", "l.outer", "k.outer", "l.inner")
    assert schedule.graph.stage("S.rf").annotations == (("l.inner", "unroll"),)
    assert schedule.leaves("S") == ("i.outer", "i.inner", "k.inner")
    x = np.arange(5 * 6 * 7, dtype="int32").reshape(5, 6, 7)
    np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": 5, "K": 6, "L": 7})["S"], x.sum((1, 2)))


def test_rfactor_of_an_annotated_loop_is_refused():
    schedule = default("def f(int32(K) X) -> (S) { S +=! X(k) }").split("S", "k", 4).unroll("S", "k.inner")
    found = refused(schedule.rfactor, "S", "k.inner")
    assert (found.code.number, found.help) == ("TC410", "rfactor first, then annotate")


DILATED = "def f(float(H) X, float(3) F) -> (Y) { Y(h) +=! (0 <= h+2*p-2 && h+2*p-2 < H ? X(h+2*p-2) : 7) * F(p) where h in 0:H }"


@pytest.mark.parametrize("size", [1, 2, 9])
def test_a_step_beside_an_index_of_unknown_length_moves_into_the_copy(size):
    """Of a single `h` the odd elements of the copy are read by nobody."""
    random = np.random.default_rng(5)
    given = {"X": random.integers(-3, 4, size).astype("f"), "F": random.integers(-3, 4, 3).astype("f")}
    schedule = default(DILATED).cache_read("X", "Y", reindex=True)
    np.testing.assert_array_equal(
        run(schedule, given, {"H": size})["Y"], run(default(DILATED), given, {"H": size})["Y"]
    )


FACTORS = "def f(float(M,K) A, float(N) B) -> (C) { C(i) +=! k <= i ? -2.0 * A(i,k) / float(4*K) : 0 where i in 0:M }"


def test_numbers_that_all_terms_are_multiplied_by_are_left_to_the_copy():
    schedule = default(FACTORS).cache_write("C", factors=True)
    assert schedule.graph.stage("C").statement.text == "C(i) = C.cache(i) * -2 / float32(4*K)"
    given = {"A": np.arange(12, dtype="f").reshape(3, 4), "B": np.ones(1, "f")}
    np.testing.assert_array_equal(
        run(schedule, given, {"M": 3, "K": 4, "N": 1})["C"], run(default(FACTORS), given, {"M": 3, "K": 4, "N": 1})["C"]
    )


@pytest.mark.parametrize(
    "text",
    [
        "float(N) X, float a) -> (S) { S +=! a * X(i) }",  # may be infinite
        "float(N) X) -> (S) { S +=! X(i) / float(N - 1) }",  # may be 0
        "float(N) X) -> (S) { S +=! 1e30 * X(i) }",  # sums that are infinite without
        "float(N) X) -> (S) { S +=! X(i) + 2.0 }",
        "half(N) X) -> (S) { S +=! 2.0 * X(i) }",  # terms are rounded
        "int(N) X) -> (S) { S +=! 2 * X(i) }",
        "float(N) X) -> (S) { S max=! 2.0 * X(i) }",
    ],
)
def test_other_numbers_stay_in_the_sum(text):
    schedule = default(f"def f({text}")
    assert refused(schedule.cache_write, "S", factors=True).code.number == "TC401"


@pytest.mark.parametrize(
    "text",
    [
        "float(N,K) X) -> (S) { S(i) +=! X(i,k) }",
        "float(N,9) X) -> (S) { S(i) +=! X(i,k) }",
        "float(N,3) X) -> (S) { S(i) max=! X(i,k) }",
        "half(N,3) X) -> (S) { S(i) +=! X(i,k) }",
        "float(N,3) X, int(N,3) I, float(8) T) -> (S) { S(i) +=! T(I(i,k)) }",
    ],
)
def test_what_is_no_sum_of_few_terms_is_not_expanded(text):
    assert refused(default(f"def f({text}").expand, "S").code.number == "TC401"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("float(N,3,3) A, float(N,3) B) -> (C) { C(n,i) +=! A(n,i,k) * B(n,k) }", "expand('C')"),
        ("float(N,3) X) -> (C) { C(n) +=! X(n,k) * X(n,k) }", "expand('C')"),
        ("float(N) X) -> (C) { C(n) max=! X(n) }", "expand('C')"),
        ("float(N) X) -> (C) { C(n) = X(n)  C(n) += 2 * X(n) }", "expand('C#2')"),
        ("float(N) X) -> (C) { C(n,m) = exp(X(m)) where n in 0:N }", "factor('C', 'm')"),
        ("float(N) X) -> (C) { C(n,m) max=! X(k) where n in 0:N, m in 0:N }", "factor('C', 'k')"),
        (
            "float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) / float(K) }",
            "cache_write('C', factors=True)",
        ),
    ],
)
def test_default_schedules_bring_sums_to_one_form(text, step):
    found = default_schedule(*program_of(f"def f({text}"), cpu_target())
    assert step in found.to_python()


CHECKED = {
    "a function, on the left": "H(int32(sqrt(T(i, j)) * 25)) +=! 1",
    "a quotient, on the left": "H(int32(T(i, j) / 0.04)) +=! 1 where j in 0:i",
    "the largest": "H(int32(exp(-T(i, j)) * 40)) max=! W(j) * 9",
    "a function, in a read": "H(k) +=! W(int32(sqrt(T(i, j)) * 4)) where k in 0:50",
    "in a condition": "H(k) +=! sqrt(T(i, j)) > 0.5 ? W(int32(W(j) * 4)) : 0 where k in 0:50",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHECKED)
def test_what_points_look_at_is_there_where_they_read_a_copy_of_it(name):
    """Checks of places look at elements as they were written, whatever the stage reads instead."""
    text = f"def f(float(N) P, float(5) W) -> (float(50) H) {{ T(i, j) = abs(P(i) - P(j))  {CHECKED[name]} }}"
    points, weights = (np.random.default_rng(3).random(size).astype(np.float32) for size in (17, 5))
    f, reference = (tc.compile(text.replace("W(j)", "W(j % 5)"), target=target).f for target in ("cpu", "interpreter"))
    np.testing.assert_allclose(f(points, weights), reference(points, weights), rtol=1e-5)
    copied = f.schedule().cache_read("T", "H")
    assert "`H` reads it outside" in refused(copied.compute_at, "T", "T.cache", "i").message


def test_a_point_that_goes_to_one_place_computes_it_once():
    """The bins are no reason for a copy."""
    f = tc.compile("def f(float(N, M) T) -> (float(50) H) { H(int32(sqrt(T(i, j)) * 25)) +=! T(i, j) }").f
    assert "cache" not in f.source("loops")


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("def f(int32(M) A, int32(M) P) -> (int32(M) Y) { Y(P(i)) = A(i) where unique }", "Y"),
        ("def f(int32(M) A) -> (Y) { Y(i) = 0 where i in 0:M  Y(M-1-i) = A(i) where A(i) > 0 }", "Y#2"),
    ],
)
def test_what_combines_nothing_has_no_partial_results(text, stage):
    with pytest.raises(tc.CompileError, match="TC403"):
        tc.compile(text).f.schedule().rfactor(stage, "i")


def test_indices_that_a_def_makes_lie_in_the_order_of_their_dimensions():
    """A call looks at them there: of a layout with tiles or room behind rows some are no elements."""
    f = tc.compile("def f(int32(M,N) X, int32(9) W) -> (Y) { T(i,j) = (X(i,j) + i) & 7  Y(i,j) = W(T(i,j)) }").f
    with pytest.raises(tc.CompileError, match="TC410"):
        f.schedule().storage("T", layout=((1, 0), (0, 0)), pad=8)


def test_a_temporary_of_a_block_stays_in_it():
    f = tc.compile("""def f(int32(M,N) X) -> (U) { along t in 0:M {
        V(i) = ((U(t-1,i) else 1)*3 + X(t,i)) % 101 where i in 0:N
        U(t,i) = V(i) - i } }""").f
    with pytest.raises(tc.CompileError, match="TC407"):
        f.schedule().compute_inline("V").compute_root("V")
