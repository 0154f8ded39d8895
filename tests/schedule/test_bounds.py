"""The worked examples of the bounds map, with TVM's counts and the exact ones, and what running the loops shows."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import interpret as interpreter
from tc_jupyter.schedule import schedule_of
from tests.running import default, in_bounds, kernels_of, number, program_of
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
    "split 12 of 16": (COMMON, lambda s: s.split("D", "j", 12).compute_at("C", "D", "j.outer"), "C", 10, 80, 80, 80),
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
    assert split.tvm_per_visit == (12, 4) * 5


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
    [({"N": 4, "Q": 1}, "`Q` is no size"), ({"M": 4}, "`M` is no size"), ({"N": -1}, "not an integer of 0 or more")],
)
def test_wrong_sizes_are_refused(given, part):
    schedule = default("def f(float(N) X) -> (Y) { Y(i) = X(i) }")
    with pytest.raises(CompileError, match="TC411") as caught:
        schedule.bounds(**given)
    assert part in str(caught.value)


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
