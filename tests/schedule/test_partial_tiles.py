"""What a split says of a partial tile: the same values in every engine, in loops that do what was said."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tc_jupyter.codegen.llvm.emit import show_passes
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import Allocate, Block, If, Store, walk_statements
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.loops.rewrite import with_blocks
from tc_jupyter.loops.show import show_kernel
from tc_jupyter.program import Const, DType, int64
from tc_jupyter.schedule import Split, candidates, steps_from_data, steps_to_data
from tc_jupyter.schedule.stage import TAILS
from tests.codegen.llvm_kernels import AVX512, ISAS, compare
from tests.running import default, kernels_of, program_of, run
from tests.strategies import arguments

ROW = "def f(float(N) X) -> (C) { C(i) = 2 * X(i) + 1 }"
CHAIN = "def f(float(N) X) -> (C) { T(i) = 2 * X(i)  C(i) = T(i) + T(i+1) }"
PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
ALL = (None, *TAILS)


def test_a_tail_is_in_the_relation_the_steps_and_the_text():
    for tail in TAILS:
        schedule = default(ROW).split("C", "i", 8, tail=tail)
        assert schedule.graph.stage("C").relations == (Split("i", "i.outer", "i.inner", 8, None, tail),)
        assert schedule.to_python().splitlines()[1] == f"    .split('C', 'i', factor=8, tail='{tail}')"
        assert schedule.loops() == f"  C: i.outer, i.inner tail={tail}"
        assert f"# tail {tail}" in schedule.bounds().loops()
        steps = steps_from_data(json.loads(json.dumps(steps_to_data(schedule.steps))))
        assert default(ROW).followed_by(steps).graph == schedule.graph


def test_a_stored_schedule_without_a_tail_means_what_it_meant():
    old = steps_from_data([["split", ["C", "i"], [["factor", 8]]], ["vectorize", ["C", "i.inner"], []]])
    assert default(ROW).followed_by(old).graph == default(ROW).split("C", "i", 8).vectorize("C", "i.inner").graph
    assert default(ROW).split("C", "i", 8).to_python() == "(f.schedule()\n    .split('C', 'i', factor=8)\n)"


def test_a_tail_holds_for_the_parts_of_its_inner_loop():
    """What was said of a tile is said of the loops that it is split into, and not of those over tiles."""
    stage = (
        default(ROW).split("C", "i", 32, tail="mask").split("C", "i.inner", 8).split("C", "i.outer", 2).graph.stage("C")
    )
    assert {leaf: stage.tail(leaf) for leaf in stage.leaves} == {
        "i.outer.outer": None, "i.outer.inner": None, "i.inner.outer": "mask", "i.inner.inner": "mask",
    }  # fmt: skip


def counted(block: Block) -> Block:
    """The loops of a kernel, with stores that count how often an element is computed."""

    def rule(stmt):
        if isinstance(stmt, Store):
            return replace(stmt, value=Const(1.0, DType.FLOAT32), reduce="+")
        return with_blocks(stmt, counted)

    return replace(block, body=tuple(map(rule, block.body)))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("tail", ALL)
def test_only_a_shifted_tile_computes_a_point_again(tail, n):
    (kernel,) = kernels_of(default(ROW).split("C", "i", 8, tail=tail))
    times = np.zeros(n, "float32")
    interpret(replace(kernel, body=counted(kernel.body)), {"X": times, "C": times}, {"N": n})
    expected = np.ones(n)
    if tail == "shift" and n > 8 and n % 8:
        expected[n - 8 : n // 8 * 8] = 2
    np.testing.assert_array_equal(times, expected)


def loops_of(tail: str) -> str:
    (kernel,) = kernels_of(default(ROW).split("C", "i", 8, tail=tail).vectorize("C", "i.inner"))
    return "\n".join(line.strip() for line in show_kernel(kernel).splitlines()[2:])


def test_loops():
    """A shorter loop, a condition, and a start that is as early as it has to be."""
    head, store = "for i.outer in 0:(N + 7) // 8", "C[i.inner + 8 * i.outer] = 2.0 * X[i.inner + 8 * i.outer] + 1.0"
    rest = "for i.inner in 0:min(N - 8 * i.outer, 8)  # vectorize, tail"
    assert loops_of("short") == f"{head}\n{rest} short\n{store}"
    assert loops_of("mask") == f"{head}\n{rest} mask\n{store}"
    condition = "for i.inner in 0:8  # vectorize, tail guard\nif i.inner + 8 * i.outer < N"
    assert loops_of("guard") == f"{head}\n{condition}\n{store}"
    shifted = store.replace("8 * i.outer", "min(8 * i.outer + 8, max(N, 8)) - 8")
    assert loops_of("shift") == f"{head}\nfor i.inner in 0:min(N, 8)  # vectorize, tail shift\n{shifted}"


def test_a_mask_in_a_loop_without_lanes_is_a_condition():
    schedule = default(ROW).split("C", "i", 8, tail="mask")
    (kernel,) = kernels_of(schedule)
    assert any(isinstance(stmt, If) for stmt in walk_statements(kernel.body))


def test_a_shifted_tile_asks_for_as_much_as_the_others():
    """Storage at the loop over tiles has a constant size, and each visit computes one tile of what it reads."""
    schedule = default(CHAIN).split("C", "i", 8, tail="shift").compute_at("T", "C", "i.outer")
    (kernel,) = kernels_of(schedule)
    (allocate,) = (stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Allocate))
    assert allocate.buffer.shape == (int64(9),)
    assert schedule.bounds(N=21).stage("T").elements_per_visit == (9, 9, 9)
    assert schedule.bounds(N=6).stage("T").elements_per_visit == (6,)


def tiled(schedule, tail, columns=8):
    tiles = schedule.tile("C", "i", "j", 3, columns, tail=tail).reorder(
        "C", "i.outer", "j.outer", "k", "i.inner", "j.inner"
    )
    return tiles.unroll("C", "i.inner").vectorize("C", "j.inner")


SCHEDULES = {
    "vectors": (ROW, lambda s, t: s.split("C", "i", 8, tail=t).vectorize("C", "i.inner")),
    "no power of two": (ROW, lambda s, t: s.split("C", "i", 11, tail=t).vectorize("C", "i.inner")),
    "long vectors": (ROW, lambda s, t: s.split("C", "i", 500, tail=t).vectorize("C", "i.inner")),
    "parts": (ROW, lambda s, t: s.split("C", "i", nparts=3, tail=t)),
    "tasks": (ROW, lambda s, t: s.split("C", "i", 8, tail=t).parallel("C", "i.outer").vectorize("C", "i.inner")),
    "tiles of tiles": (
        ROW,
        lambda s, t: s.split("C", "i", 12, tail=t).split("C", "i.inner", 8, tail=t).split("C", "i.outer", 2, tail=t),
    ),
    "tiles inside": (ROW, lambda s, t: s.split("C", "i", 8, tail=t).reorder("C", "i.inner", "i.outer")),
    "a producer": (
        CHAIN,
        lambda s, t: s.split("C", "i", 8, tail=t).compute_at("T", "C", "i.outer").split("T", "i", 4, tail=t),
    ),
    "a product": (PRODUCT, tiled),
    "turned": ("def f(float(M,N) A) -> (C) { C(i,j) = A(j,i) }", lambda s, t: s.tile("C", "i", "j", 8, 8, tail=t).vectorize("C", "j.inner")),
    "a guard and a sum": (
        "def f(float(M,N) A) -> (C) { C(i) +=! i > 1 ? A(i,j) : 0 }",
        lambda s, t: s.split("C", "i", 4, tail=t).split("C", "j", 8, tail=None if t == "shift" else t).vectorize("C", "j.inner"),
    ),
}  # fmt: skip
SIZES = [{"N": 1, "M": 1, "K": 2}, {"N": 8, "M": 3, "K": 1}, {"N": 21, "M": 7, "K": 3}, {"N": 0, "M": 5, "K": 2}]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_values(name, tail):
    """The loops compute what those of the text compute."""
    text, change = SCHEDULES[name]
    plain = default(text)
    schedule = change(plain, tail)
    assert any(isinstance(each, Split) and each.tail == tail for each in schedule.graph.stage("C").relations)
    for numbers in SIZES:
        sizes = {name: numbers[name] for name in plain.graph.program.sizes}
        arrays = arguments(plain.graph.program, 1, sizes)
        expected = run(plain, arrays, sizes)["C"]
        np.testing.assert_allclose(run(schedule, arrays, sizes)["C"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_values_on_a_cpu(name, tail, isa):
    """As the interpreter, and nothing is written beside the result."""
    text, change = SCHEDULES[name]
    schedule = change(default(text), tail)
    (kernel,) = kernels_of(schedule)
    kernel = replace(kernel, buffers=tuple(replace(each, strided=False) for each in kernel.buffers))
    for numbers in SIZES[:-1]:
        arrays = arguments(schedule.graph.program, 1, {name: numbers[name] for name in kernel.sizes})
        length = {ROW: "N", CHAIN: "N", PRODUCT: "MN"}.get(text) or ("NM" if "j) = A" in text else "M")
        shape = [numbers[each] - (text == CHAIN) for each in length]
        compare(kernel, {**arrays, "C": np.zeros(shape, "float32")}, numbers, isa=isa, rtol=1e-5, atol=1e-5)


def passes_of(tail: str | None, text: str = ROW) -> dict[str, str]:
    """What the passes of the CPU engine make of the loops of a row in vectors, by their names."""
    (kernel,) = kernels_of(default(text).split("C", "i", 32, tail=tail).vectorize("C", "i.inner"))
    shown = show_passes(kernel, AVX512)
    return {part.partition("\n")[0].partition(":")[0]: part for part in re.split(r"(?m)^-- ", shown)[1:]}


def test_the_passes_decide_where_nothing_is_said():
    assert "join" in passes_of(None)
    assert passes_of("guard").keys() == passes_of("mask").keys() == {"lowered"}
    assert passes_of("short").keys() == {"lowered", "full tiles"}
    assert "i.inner in 0:min(N - 32 * i.outer, 32)" in passes_of("short")["full tiles"]


def test_a_sum_in_tiles_keeps_its_tail():
    """`overlap` begins the last tile earlier, `half tiles` halves it, `one by one` takes its rows apart; of what is said none does."""
    windows = default("def f(half(H,W) X, half(R) F) -> (C) { C(i,w) +=! X(i,w+k) * F(k) }")
    for tail in ALL:
        tiles = windows.split("C", "w", 32, tail=tail).reorder("C", "i", "w.outer", "k", "w.inner")
        (kernel,) = kernels_of(tiles.vectorize("C", "w.inner"))
        assert ("-- overlap:" in show_passes(kernel, AVX512)) == (tail is None)
    rows = default("def f(float(N,M) X) -> (S) { S(i) +=! X(i,j) }")
    for tail in (None, "short", "guard", "mask"):
        tiles = (
            rows.split("S", "i", 4, tail=tail)
            .split("S", "j", 8)
            .reorder("S", "i.outer", "j.outer", "i.inner", "j.inner")
        )
        (kernel,) = kernels_of(tiles.unroll("S", "i.inner").vectorize("S", "j.inner"))
        assert ("-- one by one:" in show_passes(kernel, AVX512)) == (tail is None)
    for tail in (None, "short", "mask"):
        (kernel,) = kernels_of(tiled(default(PRODUCT), tail, columns=32))
        assert ("-- half tiles:" in show_passes(kernel, AVX512)) == (tail is None)


def test_refused_steps_leave_no_shift_behind():
    """Neither in steps of which only the last graph is looked at."""
    start = default("def f(float(N,M) X) -> (S) { S(i) +=! X(i,j) }")
    with pytest.raises(CompileError, match="TC414"):
        start.together(lambda s: s.split("S", "j", 4, tail="shift").cache_write("S"))


def test_a_tuner_tries_tails_of_partial_tiles():
    text = "def f(float(N,M) X) -> (O) { T(i,j) = 2*X(i,j)  O(i,j) = T(i,j) + T(i,j+1) }"
    found = candidates(*program_of(text), AVX512, {"N": 512, "M": 512})
    tails = [{dict(step.keywords).get("tail") for step in each.steps} - {None} for each in found]
    assert {name for each in tails for name in each} <= {*TAILS}
    assert 1 <= sum(map(bool, tails)) <= len(TAILS)
