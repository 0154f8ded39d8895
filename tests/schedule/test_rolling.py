"""Windows that move along a loop: what is computed at which visit, when the wish is granted, and that values stay the same."""

from contextlib import suppress
from random import Random

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import Allocate, For, walk_statements
from tc_jupyter.loops.show import show_kernel
from tc_jupyter.schedule import infer_symbolic, schedule_of, window_of
from tc_jupyter.schedule.inline import inject_inline
from tests.running import default, kernels_of, program_of, run

THREE = "def f(float(N) X) -> (C) { B(i) = 2.0 * X(i)  C(i) = B(i) + B(i+1) + B(i+2) }"


def window(schedule, stage="B"):
    bounds = infer_symbolic(inject_inline(schedule.graph))
    return window_of(bounds, bounds.graph.stage(stage))


def text(schedule):
    return "\n".join(map(show_kernel, kernels_of(schedule)))


def test_a_later_visit_computes_what_is_new():
    """Of a window of three elements that moves by one, two are kept, in registers one place further."""
    schedule = default(THREE).compute_at("B", "C", "i").storage("B", rolling=True)
    found = window(schedule)
    assert (found.dimension, found.step, found.length, found.kept, found.room) == (0, 1, 3, 2, 3)
    (kernel,) = kernels_of(schedule)
    outer = kernel.body
    while not isinstance(outer, Allocate):
        outer = outer.body[0]
    assert outer.buffer.name == "B"  # around the loop that the window moves along
    assert "if i == 0 || B.i >= 2" in text(schedule)
    bounds = schedule.bounds(N=20)
    assert "# local, rolling" in bounds.loops()
    assert [note.code.number for note in bounds.diagnostics] == []
    assert [note.code.number for note in schedule.storage("B", rolling=False).bounds(N=20).diagnostics] == ["TC408"]


@pytest.mark.parametrize(("reads", "change"), [
    ("T(i,j) + T(i+1,j)", lambda s: s.compute_at("T", "O", "i").storage("T", rolling=True, pad=1)),
    ("T(i,j) + T(i+1,j)", lambda s: s.split("O", "j", 8).reorder("O", "j.outer", "i", "j.inner")
        .compute_at("T", "O", "i").storage("T", rolling=True)),
    ("T(i,j) + (T(i+1,j) else 0) + (T(i+2,j) else 0)", lambda s: s.compute_at("T", "O", "i").storage("T", rolling=True)),
])  # fmt: skip
@pytest.mark.parametrize("rows", [1, 5])
def test_a_window_that_moves_on_copies_what_was_computed(reads, change, rows):
    """There may be more room: behind a row, in the last tile, and where a window is cut."""
    f = tc.compile(f"def f(int32(N,M) X) -> (O) {{ T(i,j) = X(i,j)*3  O(i,j) = {reads} }}", target="interpreter").f
    x = np.arange(rows * 11, dtype=np.int32).reshape(rows, 11)
    found = f.with_schedule(change(f.schedule())).simulate(x)
    assert found.findings == ()
    np.testing.assert_array_equal(found.outputs[0], f(x))


def test_shared_windows_are_rings():
    """New elements have a place that no thread reads any more, and loops that start behind what is kept."""
    schedule = default(THREE).split("C", "i", 8).bind("C", "i.outer", "blockIdx.x")
    schedule = schedule.compute_at("B", "C", "i.inner").storage("B", "shared", rolling=True)
    assert window(schedule).room == 4
    (kernel,) = kernels_of(schedule)
    loops = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For)]
    assert [loop.var for loop in loops] == ["i.outer", "i.inner", "i"]
    assert "% 4" in text(schedule)


@pytest.mark.parametrize("change", [
    lambda s: s.compute_root("B"),
    lambda s: s.storage("B", rolling=False),
    lambda s: s.vectorize("C", "i.inner"),
    lambda s: s.parallel("C", "i.inner"),
    lambda s: s.split("B", "i", 2),
    lambda s: s.storage("B", layout=((0, 0),)),
])  # fmt: skip
def test_where_the_wish_is_not_granted(change):
    """No serial loop, a split dimension, another layout: every visit computes all."""
    schedule = default(THREE).split("C", "i", 8).compute_at("B", "C", "i.inner").storage("B", rolling=True)
    assert window(schedule) is not None
    assert window(change(schedule)) is None


def test_windows_of_tiles():
    """Neighbouring tiles of eight share two elements."""
    schedule = default(THREE).split("C", "i", 8).compute_at("B", "C", "i.outer").storage("B", rolling=True)
    assert (window(schedule).step, window(schedule).length) == (8, 10)


@pytest.mark.parametrize(("reads", "end", "reason"), [
    ("B(min(i,3)) + B(min(i,3)+1)", "N/3", "it is not known to move evenly along `C[i]`"),
    ("B(i) + B(min(i+1,N-1))", "N", "it is not known to move evenly along `C[i]`"),
    ("B(i) + B(0)", "N", "it begins at the same element at every visit along `C[i]`"),
    ("B(2*i) + B(2*i+1)", "N/3", "it moves by 2 along `C[i]` and is 2 long"),
    ("B(N-1-i) + B(N-2-i)", "N-1", "it moves backwards along `C[i]`"),
    ("B(i) + B(i+M-1)", "N-M", "its length along `C[i]` is not a number that is known before"),
    ("B(3) + X(i)", "N", "no dimension of its box moves"),
])  # fmt: skip
def test_windows_that_cannot_be_kept(reads, end, reason):
    lines = f"B(i) = 2.0 * X(i) where i in 0:N  C(i) = W(0) * ({reads}) where i in 0:{end}"
    schedule = default(f"def f(float(N) X, float(M) W) -> (C) {{ {lines} }}")
    schedule = schedule.compute_at("B", "C", "i")
    with pytest.raises(CompileError, match="TC410") as caught:
        schedule.storage("B", rolling=True)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("tail", "leaf", "end", "reason"), [
    (None, "i.inner", "N-2", "it moves backwards along `C[i.inner]`"),
    (None, "i.outer", "min(N-2,M)", "it moves backwards along `C[i.outer]`"),
    ("shift", "i.outer", "N-2", "it moves backwards along `C[i.outer]`"),
])  # fmt: skip
def test_a_window_that_moves_backwards_is_said_to(tail, leaf, end, reason):
    """Also where the last tile is cut, or begins earlier."""
    lines = f"B(i) = 2.0 * X(i) where i in 0:N  C(i) = W(0) * (B(N-1-i) + B(N-2-i)) where i in 0:{end}"
    schedule = default(f"def f(float(N) X, float(M) W) -> (C) {{ {lines} }}").split("C", "i", 8, tail=tail)
    with pytest.raises(CompileError, match="TC410") as caught:
        schedule.compute_at("B", "C", leaf).storage("B", rolling=True)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("tail", "leaf", "end"), [
    ("shift", "i.inner", "N-1"), ("shift", "i.inner", "min(N-1,M)"), (None, "i.outer", "max(0,min(M,N-1)-2)"),
    (None, "i.inner", "max(0,min(M,N-1)-2)"), (None, "i.outer", "max(3,min(M,N-1)-2)"),
])  # fmt: skip
@pytest.mark.parametrize("storage", ["local", "shared"])
def test_windows_that_an_end_of_several_values_cuts(tail, leaf, end, storage):
    """Whichever value is the end, it does not move, and neither does it where the last tile begins earlier."""
    lines = f"B(i) = 2 * X(i) where i in 0:N  C(i) = B(i) + B(i+1) where i in 0:{end}"
    base = default(f"def f(int32(N) X, int32(M) W) -> (C) {{ {lines} }}").split("C", "i", 4, tail=tail)
    schedule = base.compute_at("B", "C", leaf).storage("B", storage).storage("B", rolling=True)
    assert window(schedule).length == (2 if leaf == "i.inner" else 5)
    for n, m in ((23, 30), (23, 9), (8, 8)):
        x = {"X": np.arange(n, dtype="int32") ** 2, "W": np.zeros(m, "int32")}
        found, plain = (run(each, x, {"N": n, "M": m})["C"] for each in (schedule, base))
        np.testing.assert_array_equal(found, plain)


def test_two_dimensions_that_move():
    text = "def f(float(N,N) X) -> (C) { B(i,j) = 2.0 * X(i,j)  C(i) = B(i,i) + B(i+1,i+1) where i in 0:N-1 }"
    with pytest.raises(CompileError, match="`B` cannot keep a window"):
        default(text).compute_at("B", "C", "i").storage("B", rolling=True)


@pytest.mark.parametrize(("change", "reason"), [
    (lambda s: s, "it is not computed inside a loop"),
    (lambda s: s.compute_at("B", "C", "i.inner").vectorize("C", "i.inner"), "`C[i.inner]` is `vectorize`"),
    (lambda s: s.compute_at("B", "C", "i.inner").split("B", "i", 2), "its loop `i` is split"),
    (lambda s: s.compute_at("B", "C", "i.inner").storage("B", layout=((0, 0),)), "its storage has a layout"),
])  # fmt: skip
def test_places_where_no_window_is_kept(change, reason):
    schedule = change(default(THREE).split("C", "i", 8))
    with pytest.raises(CompileError, match="TC410") as caught:
        schedule.storage("B", rolling=True)
    assert reason in str(caught.value)


def test_a_window_that_a_later_step_takes_away_is_told():
    schedule = default(THREE).split("C", "i", 8).compute_at("B", "C", "i.inner").storage("B", rolling=True)
    assert schedule.bounds().diagnostics == ()
    (note,) = schedule.vectorize("C", "i.inner").bounds().diagnostics
    assert note.code.number == "TC413"
    assert "`C[i.inner]` is `vectorize`" in note.message


def test_a_window_inside_a_containing_stage():
    """The stage that moves it runs in a loop of another one, so each visit of that loop begins anew."""
    text = "def f(int32(N) X) -> (D) { B(i) = 2 * X(i)  C(i) = B(i) + B(i+1)  D(i) = C(i) + C(i+1) }"
    base = default(text)
    schedule = base.split("D", "i", 8).compute_at("C", "D", "i.outer").compute_at("B", "C", "i")
    schedule = schedule.storage("B", rolling=True)
    found = schedule.bounds(N=26).stage("B")
    assert found.computed_per_visit == tuple(([2] + [1] * 8) * 3)
    x = np.arange(26, dtype="int32") ** 2
    np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": 26})["D"], run(base, {"X": x}, {"N": 26})["D"])


def program(random):
    """A chain of two or three stencils over one or two indices, some in steps of two, some under a condition."""
    rank = random.choice((1, 2))
    names = "ij"[:rank]

    def read(tensor, step):
        places = (f"{step}*{name} + {random.randint(0, 3)}" for name in names)
        return f"{tensor}({', '.join(places)})"

    lines, last = [], "X"
    extents = dict.fromkeys(names, "N")
    for number in range(random.randint(2, 3)):
        step = random.choice((1, 1, 1, 2))
        reads = [read(last, step) for _ in range(random.randint(1, 4))]
        if random.random() < 0.3:
            reads[-1] = f"(i > 1 ? {reads[-1]} : 0)"
        extents = {name: f"({each}-3)/{step}" for name, each in extents.items()}
        where = ", ".join(f"{name} in 0:{each}" for name, each in extents.items())
        lines.append(f"T{number}({', '.join(names)}) = {' + '.join(reads)} where {where}")
        last = f"T{number}"
    return f"def f(int32({','.join('N' * rank)}) X) -> ({last}) {{\n    " + "\n    ".join(lines) + "\n}"


def scheduled(random, schedule):
    """Every producer inside a random loop of its reader, rolling."""
    *producers, last = schedule.stages
    for leaf in schedule.leaves(last):
        if random.random() < 0.5:
            tail = random.choice((None, None, "shift"))
            schedule = schedule.split(last, leaf, random.choice((2, 3, 5)), tail=tail)
    readers = [*producers[1:], last]
    for producer, reader in reversed(list(zip(producers, readers, strict=True))):
        places = [(reader, leaf) for leaf in schedule.leaves(reader)]
        places += [(last, leaf) for leaf in schedule.leaves(last) if reader != last and random.random() < 0.5]
        schedule = schedule.compute_at(producer, *random.choice(places))
        schedule = schedule.storage(producer, random.choice(("local", "register", "shared")))
    for producer in producers:
        with suppress(CompileError):
            schedule = schedule.storage(producer, rolling=True)
    return schedule


def same_values(seed):
    """Whether a window is kept in a random schedule that computes what the plain one does; `None` if there is none of the kind."""
    random = Random(seed)
    found = program_of(program(random))
    assert found is not None
    base = schedule_of(*found)
    try:
        schedule = scheduled(random, base)
    except CompileError:
        return None  # a reader runs outside of the place
    for n in (18, 23, 30):
        x = np.random.default_rng(seed).integers(-99, 99, (n,) * found[0].tensor("X").rank).astype("int32")
        (name,) = found[0].results
        np.testing.assert_array_equal(run(schedule, {"X": x}, {"N": n})[name], run(base, {"X": x}, {"N": n})[name])
    return any(window(schedule, producer) for producer in schedule.stages)


def test_values_do_not_change():
    """The interpreter computes the same with and without windows, at sizes around the tiles."""
    assert sum(same_values(seed) is True for seed in range(12)) > 1


@pytest.mark.slow
def test_values_do_not_change_many():
    assert sum(same_values(seed) is True for seed in range(12, 90)) > 14
