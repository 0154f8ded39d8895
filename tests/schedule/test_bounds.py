"""The worked examples of the bounds map, with TVM's counts and the exact ones, and what running the loops shows."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import interpret as interpreter
from tc_jupyter.schedule import schedule_of
from tests.running import default, in_bounds, kernels_of, number, program_of, run
from tests.strategies import arguments, drawn, programs, random_schedule, sizes

COMMON = "def f() -> (D) { C(i,j) = 5 where i in 0:5, j in 0:16    D(i,j) = C(i,j) * 2 }"
FOURTH = "def f() -> (D) { C(i,j) = 5 where i in 0:5, j in 0:16    D(di,dj,dk) = C(dj,dk) * 2 where di in 0:4 }"
CHAIN = "def f() -> (E) { C(i,j) = 5 where i in 0:5, j in 0:16    D(i,j) = C(i,j) * 2    E(i,j) = D(i,j) * 4 }"
FUSED = "def f() -> (C) { B(i,j) = i + j where i in 0:4, j in 0:4    C(i,j) = B(i,j) * 3 }"
DISJOINT = """def f() -> (P, Q) {
    T(i,j) = i + j where i in 0:4, j in 0:4
    P(a,b) = T(a,b) where a in 0:2, b in 0:2
    Q(c,d) = T(c+2, d+2) where c in 0:2, d in 0:2
}"""

EXAMPLES = {
    "Ex. 1 root": (COMMON, lambda s: s, "C", 1, 80, 80, 80),
    "Ex. 2 at j": (COMMON, lambda s: s.compute_at("C", "D", "j"), "C", 80, 80, 80, 80),
    "Ex. 3 at i": (COMMON, lambda s: s.compute_at("C", "D", "i"), "C", 5, 80, 80, 80),
    "Ex. 4 at di": (FOURTH, lambda s: s.compute_at("C", "D", "di"), "C", 4, 320, 320, 320),
    "Ex. 4 at dj": (FOURTH, lambda s: s.compute_at("C", "D", "dj"), "C", 20, 320, 320, 320),
    "Ex. 4 at dk": (FOURTH, lambda s: s.compute_at("C", "D", "dk"), "C", 320, 320, 320, 320),
    "Ex. 5 at j.inner": (COMMON, lambda s: s.split("D", "j", 8).compute_at("C", "D", "j.inner"), "C", 80, 80, 80, 80),
    "Ex. 5 at j.outer": (COMMON, lambda s: s.split("D", "j", 8).compute_at("C", "D", "j.outer"), "C", 10, 80, 80, 80),
    "split 12 of 16": (COMMON, lambda s: s.split("D", "j", 12).compute_at("C", "D", "j.outer"), "C", 10, 120, 80, 80),
    "chain": (CHAIN, lambda s: s.compute_at("D", "E", "j"), "C", 1, 80, 80, 80),
    "Ex. 6 split 4": (FUSED, lambda s: fused(s, 4), "B", 4, 64, 16, 16),
    "Ex. 6 split 8": (FUSED, lambda s: fused(s, 8), "B", 2, 32, 16, 16),
    "Ex. 6 split 3": (FUSED, lambda s: fused(s, 3), "B", 6, 96, 26, 16),
    "GatherBound": (DISJOINT, lambda s: s, "T", 1, 16, 16, 8),
}


def fused(schedule, factor):
    schedule = schedule.fuse("C", "i", "j").split("C", "i.j.fused", factor)
    return schedule.compute_at("B", "C", "i.j.fused.outer")


@pytest.mark.parametrize("name", EXAMPLES)
def test_counts_of_the_worked_examples(name):
    text, change, stage, visits, tvm, hull, exact = EXAMPLES[name]
    found = change(default(text)).bounds().stage(stage)
    assert (found.visits, found.tvm, found.hull, found.elements) == (visits, tvm, hull, exact)


def test_per_visit_counts():
    assert fused(default(FUSED), 3).bounds().stage("B").hull_per_visit == (3, 8, 8, 3, 3, 1)
    assert fused(default(FUSED), 3).bounds().stage("B").elements_per_visit == (3, 3, 3, 3, 3, 1)
    split = default(COMMON).split("D", "j", 12).compute_at("C", "D", "j.outer").bounds().stage("C")
    assert split.elements_per_visit == (12, 4) * 5
    assert split.tvm_per_visit == (12, 12) * 5


def test_chain_both_attached_needs_one_element():
    schedule = default(CHAIN).compute_at("D", "E", "j").compute_at("C", "D", "j")
    bounds = schedule.bounds()
    assert bounds.stage("C").elements_per_visit == (1,) * 80
    assert bounds.stage("D").elements_per_visit == (1,) * 80
    assert schedule.graph.attach_path("C") == (("D", "j"), ("D", "i"), ("E", "j"), ("E", "i"))


def test_tail_of_a_split_is_exact():
    schedule = default("def f(float(N) X) -> (Y) { Y(i) = X(i) }").split("Y", "i", 16)
    bounds = schedule.bounds(N=20)
    assert str(schedule.bounds()["Y"]["i.inner"]) == "[0, min(N - 16*Y[i.outer], 16))"
    assert bounds["Y"]["i.outer"].extent == 2
    assert "for Y[i.inner] in 0:min(20 - 16*Y[i.outer], 16)" in bounds.loops()


def test_symbolic_bounds_are_expressions():
    schedule = default("def f(float(N) X) -> (Y) { T(i) = X(i-1)+X(i)+X(i+1)  Y(i) = T(i)+T(i+2) }")
    bounds = schedule.split("Y", "i", 8).compute_at("T", "Y", "i.outer").bounds()
    assert bounds.region("T") == ("[8*Y[i.outer] + 1, min(8*Y[i.outer] + 11, N - 1))",)
    assert bounds["Y"]["i"].min == 1


def test_loop_nest_as_text():
    schedule = default(COMMON).split("D", "j", 8).compute_at("C", "D", "j.outer")
    assert schedule.bounds().loops().splitlines() == [
        "for D[i] in 0:5",
        "  for D[j.outer] in 0:2",
        "    allocate C [D[i], D[i] + 1) x [8*D[j.outer], 8*D[j.outer] + 8)   # local",
        "    for C[j] in 0:8",
        "      C(i,j) = 5 where i in 0:5, j in 0:16",
        "    for D[j.inner] in 0:8",
        "      D(i,j) = C(i,j) * 2",
    ]
    assert "for C[i] in 0:1" in schedule.bounds().loops(keep_trivial=True)


def test_json_has_counts_and_requests():
    data = fused(default(FUSED), 3).bounds().to_json()
    stage = next(stage for stage in data["stages"] if stage["name"] == "B")
    assert stage["counts"] == {"visits": 6, "exact": 16, "hull": 26, "tvm": 96, "computed": 16, "distinct": 16}
    assert stage["per_visit"]["hull"] == [3, 8, 8, 3, 3, 1]
    assert stage["per_visit"]["tvm"] == [16] * 6
    assert stage["memory"] == {"bytes": 64, "tvm_bytes": 128}
    assert stage["tvm_region"] == ["[0, 4)", "[0, 4)"]
    assert stage["path"] == [["C", "i.j.fused.outer"]]
    assert stage["requests"][0]["consumer"] == "C"


@pytest.mark.parametrize(
    ("given", "part"),
    [({"N": 4, "Q": 1}, "`Q` is no size"), ({"M": 4}, "`M` is no size"), ({"N": -1}, "a size is not negative")],
)
def test_wrong_sizes_are_refused(given, part):
    schedule = default("def f(float(N) X) -> (Y) { Y(i) = X(i) }")
    with pytest.raises(CompileError, match="TC411") as caught:
        schedule.bounds(**given)
    assert part in str(caught.value)


def test_tvm_computes_tails_as_the_rest():
    """Its extents are constants: of 20 rows by 8, the last visit computes 8 rows as well, under a test of every element."""
    text = "def f(float(N,M) X) -> (C) { B(i,j) = 2 * X(i,j)  C(i,j) = B(i,j) + 1 }"
    found = default(text).split("C", "i", 8).compute_at("B", "C", "i.outer").bounds(N=20, M=7)
    assert found.stage("B").tvm_per_visit == (56, 56, 56)
    assert found.stage("B").hull_per_visit == (56, 56, 28)
    assert str(found.tvm_axes("B")["i"].extent) == "8"


NESTED = "def f(float(m) A) -> (A3) { A1(i) = A(i)  A2(i) = A1(i) + 2  A3(i) = A2(i) + 3 }"


def nested(threads):
    """TVM's `test_bound_nest_thread`: a tensor in shared memory, and one thread's own elements beside it."""
    s = default(NESTED).split("A3", "i", 32).bind("A3", "i.outer", "blockIdx.x").bind("A3", "i.inner", "threadIdx.x")
    s = s.compute_at("A2", "A3", "i.inner").storage("A2", "shared")
    if threads:
        s = s.split("A2", "i", nparts=1).bind("A2", "i.inner", "threadIdx.x")
    return s.compute_at("A1", "A3", "i.inner")


def test_a_thread_needs_its_own_element_of_what_all_make():
    """The threads share the loop over `A2`, so each reads one element of `A1`; the loops run in the interpreter, too."""
    schedule = nested(threads=True)
    bounds = schedule.bounds(m=64)
    assert set(bounds.stage("A1").computed_per_visit) == {1}
    assert bounds.stage("A2").hull_per_visit == (32, 32)
    (extent,) = [extent for _, extent in schedule.bounds().symbolic["A1"].box]
    assert extent.limits[1] == 1
    for m in (1, 31, 32, 70):
        x = np.arange(m, dtype="float32")
        np.testing.assert_array_equal(run(schedule, {"A": x}, {"m": m})["A3"], x + 5)


def test_a_thread_that_makes_all_alone_needs_all():
    """No loop of `A2` is bound: every thread fills all of it, and reads as many elements of `A1`."""
    bounds = nested(threads=False).bounds(m=64)
    assert bounds.table().splitlines()[1].split() == [
        "A1", "64", "2048", "(32)", "2048", "(32)", "2048", "(32)", "2048", "(32)", "128", "[32*A3[i.outer],", "32*A3[i.outer]", "+", "32)",
    ]  # fmt: skip


SCALAR = "def f(float(n) A, int32 m, float32 s) -> (B) { B(i) = s * A(i) where i in 0:m }"


def test_an_integer_scalar_is_a_size():
    schedule = default(SCALAR)
    assert schedule.bounds().region("B") == ("[0, m)",)
    assert schedule.bounds(n=24, m=3).stage("B").elements == 3
    assert schedule.bounds(n=np.int64(24), m=np.int32(3)).region("B") == ("[0, 3)",)


@pytest.mark.parametrize(
    ("given", "code", "part"),
    [
        ({"n": 24}, "TC614", "`m` is not given"),
        ({"m": 3}, "TC614", "`n` is not given"),
        ({"n": 24, "m": 3, "s": 1}, "TC411", "`s` is no size of this def"),
        ({"n": 24, "m": 3.5}, "TC411", "m=3.5: a size is an integer"),
    ],
)
def test_what_is_missing_beside_an_integer_scalar(given, code, part):
    with pytest.raises(CompileError, match=code) as caught:
        default(SCALAR).bounds(**given)
    assert part in str(caught.value)
    assert "the sizes are `n`, `m`" in str(caught.value)


def test_a_scalar_in_a_subscript_is_needed_and_one_in_a_value_is_not():
    text = "def f(float(N) A, int32 a, int32 b) -> (C) { B(i) = 2 * A(i)  C(i) = b * B(i+a) where i in 0:N/2 }"
    schedule = default(text).compute_at("B", "C", "i")
    assert schedule.bounds(N=8, a=2).stage("B").elements_per_visit == (1,) * 4
    with pytest.raises(CompileError, match="`a` is not given"):
        schedule.bounds(N=8)


def test_what_cannot_be_counted_is_a_diagnostic():
    text = "def f(float(N,M) X) -> (C) { B(i,j) = 2 * X(i,j)  C(i,j) = B(i,j) + 1 }"
    bounds = default(text).compute_at("B", "C", "j").bounds(N=10_000, M=10_000)
    with pytest.raises(CompileError, match="TC412") as caught:
        bounds.stage("B")
    assert "`C` has 100000000 points" in str(caught.value)
    with pytest.raises(CompileError, match="TC412"):
        _ = bounds.needs
    assert "100000000" in bounds.table()
    assert bounds.exact
    gather = default("def f(float(N) X, int32(M) Id) -> (C) { B(i) = 2 * X(i)  C(i) = B(Id(i)) }")
    with pytest.raises(CompileError, match="data decide where `C` reads `B`"):
        gather.bounds(N=4, M=4).stage("B")


def test_many_visits_are_counted():
    """512 by 512 tiles: tables of arrays, and no loop of Python per visit."""
    text = "def f(float(N,M) X) -> (C) { B(i,j) = 2 * X(i,j)  C(i,j) = B(i,j) + 1 }"
    schedule = default(text).tile("C", "i", "j", 2, 2).compute_at("B", "C", "j.outer")
    found = schedule.bounds(N=1024, M=1023).stage("B")
    assert (found.visits, found.elements, found.tvm) == (512 * 512, 1024 * 1023, 1024 * 1024)


def test_a_window_is_counted_as_it_is_computed():
    """100 visits of two elements, of which each but the first finds one."""
    text = "def f(float(N) X) -> (C) { B(i) = 2 * X(i)  C(i) = B(i) + B(i+1) }"
    schedule = default(text).compute_at("B", "C", "i").storage("B", rolling=True)
    found = schedule.bounds(N=101).stage("B")
    assert (found.elements, found.computed, found.distinct, found.exact) == (200, 101, 101, True)
    assert schedule.bounds(N=101).to_json()["stages"][0]["counts"]["computed"] == 101


# --- what running shows ----------------------------------------------------------------------------------------------


class Watched(np.ndarray):
    """An allocation that remembers where it was written and read."""


def watch(schedule, arrays, numbers):
    """Per allocated buffer a list of visits, each a pair (positions written, positions read)."""
    visits: dict[str, list[tuple[set, set]]] = {}
    owner: dict[int, tuple[set, set]] = {}
    keep = []
    runtime = dict(interpreter._RUNTIME)

    def allocate_named(name):
        def allocate(shape, dtype):
            array = interpreter._allocate(shape, dtype)
            keep.append(array)
            owner[id(array)] = (set(), set())
            visits.setdefault(name, []).append(owner[id(array)])
            return array

        return allocate

    def load(array, where, dtype):
        if id(array) in owner:
            owner[id(array)][1].add(tuple(where))
        return interpreter._load(array, where, dtype)

    def store(array, where, value, dtype):
        if id(array) in owner:
            owner[id(array)][0].add(tuple(where))
        interpreter._store(array, where, value, dtype)

    held = dict(arrays)
    for kernel in kernels_of(schedule):
        text = interpreter.python_text(kernel)
        names = [line.split("allocate(")[0].strip(" =") for line in text.splitlines() if "allocate(" in line]
        lines = []
        for line in text.splitlines():
            for name in names:
                if line.strip().startswith(f"{name} = allocate("):
                    line = line.replace("allocate(", f"allocate_{name}(", 1)
            lines.append(line)
        scope = {
            **runtime,
            "load": load,
            "store": store,
            **{f"allocate_{name}": allocate_named(name) for name in names},
        }
        exec("\n".join(lines), scope)
        for buffer in kernel.buffers:
            if buffer.name not in held:
                shape = tuple(max(0, number(extent, numbers)) for extent in buffer.shape)
                held[buffer.name] = interpreter._allocate(shape, buffer.dtype.value)
        with np.errstate(all="ignore"):
            scope["run"](held, numbers, {name: held[name].item() for name, _ in kernel.scalars})
    return visits


@drawn(40, 120, programs(dtypes=("int32",), chain=True), st.data(), sizes())
def test_region_is_what_consumers_read(text, data, numbers):
    """Element for element where `exact` is true, a superset otherwise: recorded by running the loops."""
    found = program_of(text)
    assume(found is not None)
    program, ranges = found
    assume(in_bounds(program, ranges, numbers))
    schedule = random_schedule(data, schedule_of(program, ranges), steps=4)
    if schedule.graph.stage("S").attach.kind == "root" and "R" in schedule.stages:
        user = data.draw(st.sampled_from(schedule.graph.consumers("S"))).name
        with suppress(CompileError):
            schedule = schedule.compute_at("S", user, data.draw(st.sampled_from(schedule.leaves(user))))
    attached = [stage for stage in schedule.graph.stages if stage.attach.kind == "at"]
    assume(attached)
    assume(
        all(len(schedule.graph.stages_on(stage.target)) == 1 and stage.statement.operator == "=" for stage in attached)
    )
    given_sizes = {name: numbers[name] for name in program.sizes}
    bounds = schedule.bounds(**given_sizes)
    recorded = watch(schedule, arguments(program, 1, numbers), numbers)
    for stage in attached:
        if stage.name not in bounds:
            continue
        need = bounds.stage(stage.name)
        marks = [pairs for name, pairs in recorded.items() if name.split("_", 1)[1] == clean(stage.target)]
        assert len(marks) <= 1
        for written, read in marks[0] if marks else []:
            assert read <= written, (text, schedule.to_python(), stage.name)
            if need.exact:
                assert read == written, (text, schedule.to_python(), stage.name, bounds.loops())


def clean(name: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in name)
