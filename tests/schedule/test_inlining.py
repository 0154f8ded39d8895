"""Which temporaries the default schedules write into their users."""

from __future__ import annotations

import re
import sys
import time

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import lower
from tc_jupyter.program import rewrite, walk
from tc_jupyter.ranges import infer_ranges
from tc_jupyter.runtime.cpu import cpu_target
from tc_jupyter.runtime.cuda import cuda_target
from tc_jupyter.schedule import default_schedule, infer_symbolic, inline, tuning
from tc_jupyter.schedule.infer_bound import StageBounds
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.templates import inlining
from tests.running import default, program_of
from tests.sac_call import bind


def on_cpu(text: str):
    found = program_of(text)
    assert found is not None
    return default_schedule(*found, cpu_target())


def inlined(text: str) -> list[str]:
    schedule = on_cpu(text)
    return [name for name in schedule.stages if schedule.graph.stage(name).attach.kind == "inline"]


@pytest.mark.parametrize(
    "statements, expected",
    [
        ("T(i) = exp(X(i))  U(i) = T(i) * T(i)  Y(i) = T(i) + U(i)", ["T", "U"]),
        ("T(i) = X(2*i) where i in 0:N/2  Y(i) = T(i)", ["T"]),
        ("T(i) = exp(X(i))  Y(i) = T(N - 1 - i) where i in 0:N", ["T"]),
        ("T(j,i) = X(i) where j in 0:2  Y(i) = T(i%2, i)", ["T"]),
        ("T(i) = exp(X(i))  Y(i) = T(0) where i in 0:N", ["T"]),
        ("T(i) = X(i) * 2  Y(i) = T(i) + T(i+1)", ["T"]),
        ("T(i) = exp(X(i))  Y(i) = T(i) + T(i+1)", []),
        ("T(i) = X(i) * 2  Y(i,j) = T(i) * X(j)", []),
        ("T(i) = X(i) * 2  Y +=! T(i)", ["T"]),
        ("T(i) = X(i) * 2  U(i) = T(i)  S +=! T(i)  Y(i) = U(i) + S", ["T", "U"]),
        ("T(i) = exp(X(i))  S +=! T(i)  Y(i) = T(i) + S", []),
        ("T(i) = X(i) * 2  Y(i) +=! T(k) * X(i + k) where k in 0:9", []),
        ("T(i) = X(i)  T(i) += 1.0 where i in 0:N  Y(i) = T(i)", ["T", "T#2"]),
    ],
    ids=[
        *(
            "chain",
            "strided",
            "other direction",
            "remainder",
            "constant",
            "neighbours",
            "neighbours of a function",
            "broadcast",
        ),
        *("sum", "two users", "two users of a function", "window", "written twice"),
    ],
)
def test_what_is_cheaper_where_it_is_read_is_computed_there(statements, expected):
    assert inlined(f"def f(float(N) X) -> (Y) {{ {statements} }}") == expected


@pytest.mark.parametrize(
    "statements",
    [
        "T(i) = exp(X(i))",
        "T +=! X(i)",
        "T(i) = X(i)  T(i) += 1.0 where i in 0:N",
        "S(i) = X(i) * 2  T(i) = S(i) + S(i)",
    ],
    ids=["element", "sum", "written twice", "chain"],
)
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_what_nobody_reads_is_not_computed(statements, target):
    found = program_of(f"def f(float(N) X) -> (Y) {{ {statements}  Y(i) = X(i) }}")
    assert found is not None
    schedule = default_schedule(*found, cpu_target() if target == "cpu" else cuda_target("sm_80"))
    assert [stage.name for stage in inject_inline(schedule.graph).stages] == ["Y"]


def test_what_nobody_reads_is_computed_where_its_reads_are_checked():
    """A call says that an element of an index tensor is no position, whether or not the result depends on it."""
    text = "def f(float(N) X, int32(M) I) -> (Y) { T(i) = X(I(i))  Y(i) = X(i) }"
    with pytest.raises(tc.CallError, match="TC60"), pytest.warns(tc.DiagnosticWarning):
        tc.compile(text)["f"](np.ones(3, np.float32), np.array([5], np.int32))


@pytest.mark.parametrize(
    "statements, stages",
    [
        ("Y(i) = 2 * X(i)  Y(i) = Y(i) + 1", ["Y#2"]),
        ("Y(i) = 2 * X(i)  Y(i) = Y(i) + 1  Y(i) = Y(i) * Y(i)", ["Y#3"]),
        ("T(i) = 2 * X(i)  T(i) = T(i) + 1  Y(i) = T(i)", ["Y"]),
        ("Y(i) = exp(X(i))  S +=! Y(i)  Y(i) = Y(i) / S", ["Y", "S.rf", "S", "Y#2"]),
        ("Y(i) = 2 * X(i)  Y(i) = Y(i) + 1 where i in 1:N", ["Y", "Y#2"]),
        ("Y(i) = X(i)  Y(i) += X(i)", ["Y#2"]),
        ("Y(i) = 2 * X(i)  Y(i) = Y(i) > 1 ? X(i + 1) : Y(i) where i in 0:N", ["Y", "Y#2"]),
    ],
    ids=["once", "twice", "temporary", "sum", "some elements", "added to", "checked"],
)
def test_what_a_statement_replaces_is_a_temporary(statements, stages):
    graph = inject_inline(on_cpu(f"def f(float(N) X) -> (Y) {{ {statements} }}").graph)
    assert [stage.name for stage in graph.stages] == stages
    assert (graph.stages[0].target == "Y.before") == (statements.startswith("Y(i) = exp"))


@pytest.mark.parametrize("statements", ["Y(i) += X(i)  Y(i) = 2 * Y(i)", "Y(i) +=! X(i)  Y(i) = 2 * Y(i)"])
def test_what_is_added_to_an_array_of_the_caller_stays_there(statements):
    function = tc.compile(f"def f(float(N) X) -> (Y) {{ {statements} }}")["f"]
    out = np.ones(3, np.float32)
    function(np.ones(3, np.float32), out=out)
    assert list(out) == ([4] * 3 if "+= " in statements else [2] * 3)


def test_steps_of_a_template_follow_on_the_program_as_written():
    """The template sees `C` with `T` written into it; a copy of `X` for `C` is a copy of what `T` reads."""
    text = "def f(float(K,M) X, float(K,N) W) -> (C) { T(i,k) = X(k,i)  C(i,j) +=! T(i,k) * W(k,j) }"
    schedule = on_cpu(text)
    assert schedule.steps[0].to_python() == ".compute_inline('T')"
    assert any(step.name == "cache_read" and step.arguments[0] == "X" for step in schedule.steps)
    assert schedule.replay(schedule.start()).graph == schedule.graph


def test_lengths_that_no_number_gives_count_as_large():
    text = "def f(float(N) X) -> (Y) { T(i) = X(i) where i in 0:N / (N % 4)  Y(i) = T(i) }"
    assert inlined(text) == ["T"]


def test_a_result_is_stored():
    assert inlined("def f(float(N) X) -> (T, Y) { T(i) = X(i) * 2  Y(i) = T(i) + 1 }") == []


def test_elements_that_are_subscripts_are_stored():
    """They are checked before anything is read there."""
    text = "def f(float(N) X, int32(M) I) -> (Y) { T(i) = I(i) + 1  Y(i) = X(T(i)) }"
    assert inlined(text) == []
    with pytest.raises(CompileError, match=r"TC401(?s:.)*decide what `Y` reads"):
        on_cpu(text).compute_inline("T")


@pytest.mark.parametrize("value", ["T(i) > 0 ? X(i+1) : 0.0", "T(i) > 0 && X(i+1) > 0 ? 1.0 : 0.0"])
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_condition_of_a_read_is_checked_with_what_is_stored(value, target):
    """The last element may be read only where the condition is false."""
    text = f"def f(float(N) X) -> (Y) {{ T(i) = X(i) * 2  Y(i) = {value} where i in 0:N }}"
    function = tc.compile(text, target=target)["f"]
    assert list(function(np.array([1, 1, -1], np.float32)) > 0) == [True, False, False]
    with pytest.raises(tc.CallError, match="TC604"):
        function(np.ones(3, np.float32))
    assert "f_0_T" in function.source("cuda")


@pytest.mark.parametrize(
    "statements",
    [
        "T(i) = X(i) * 2  Y(i) = T(i) > 0 && Z(i) > 0 ? Z(i) : 1.0",
        "T(i) = X(i) > 0 ? Z(i) : 0.0  Y(i) = T(i) + 1",
        "T(i) = X(i) > 0  Y(i) = T(i) ? X((i + 1) % N) : 0.0 where i in 0:N",
    ],
    ids=["of the user", "of the temporary", "around the end"],
)
def test_conditions_of_reads_that_are_always_inside_are_not_checked(statements):
    assert inlined(f"def f(float(N) X, float(N) Z) -> (Y) {{ {statements} }}") == ["T"]


def test_a_condition_on_the_element_itself_is_computed_in_place():
    assert inlined("def f(float(N) X) -> (Y) { T(i) = X(i) * 2  Y(i) = T(i) > 0 ? T(i) : 0.0 }") == ["T"]


def squares(count: int) -> str:
    lines = [f"T{k}(i) = T{k - 1}(i) * T{k - 1}(i)" for k in range(1, count)]
    return f"def f(float(N) X) -> (T{count - 1}) {{ T0(i) = X(i)  {'  '.join(lines)} }}"


def test_expressions_that_double_stay_small():
    """Twenty squares in one expression would be a million factors."""
    graph = inject_inline(on_cpu(squares(20)).graph)
    assert len(graph.stages) > 1
    assert max(sum(1 for _ in walk(stage.statement.value)) for stage in graph.stages) <= tuning.NODES


def test_expressions_that_double_stay_small_on_a_gpu():
    found = program_of(squares(20))
    assert found is not None
    target = cuda_target("sm_80")
    graph = inject_inline(default_schedule(*found, target).graph)
    assert max(len(emit_cuda(kernel, target).text) for kernel in lower(infer_symbolic(graph))) < 20_000


def test_a_def_of_many_statements_keeps_its_temporaries():
    """The time that the choice takes grows faster than the number of statements."""
    lines = [f"T{k}(i) = T{k - 1}(i) + 1" for k in range(1, tuning.NODES + 1)]
    assert inlined(f"def f(float(N) X) -> (T{tuning.NODES}) {{ T0(i) = X(i)  {'  '.join(lines)} }}") == []


def chain(statements: int) -> str:
    lines = [f"T{k}(i) = T{k - 1}(i) * 0.5 + X(i)" for k in range(1, statements)]
    return f"def f(float(N) X) -> (Y) {{ T0(i) = X(i)  {'  '.join(lines)}  Y(i) = T{statements - 1}(i) }}"


def test_a_long_chain_is_a_few_loops():
    graph = inject_inline(on_cpu(chain(120)).graph)
    assert len(graph.stages) <= 4


def test_a_temporary_is_written_into_its_users_only(monkeypatch):
    """Otherwise the time to compile a chain grows with the square of its length."""
    graph = on_cpu(chain(40)).graph
    visited: list[str] = []

    def counted(expr, rule):
        visited.append(str(expr))
        return rewrite(expr, rule)

    monkeypatch.setattr(inline, "rewrite", counted)
    assert len(inject_inline(graph).stages) < 5
    assert len(visited) <= 2 * len(graph.stages), "the value of the temporary, and its only user"


def rows(statements: int) -> str:
    lines = [f"T{k}(i) +=! X(i, j) * T{k - 1}(i)" for k in range(1, statements)]
    return f"def f(float(N, M) X) -> (Y) {{ T0(i) +=! X(i, j)  {'  '.join(lines)}  Y(i) = T{statements - 1}(i) }}"


def choices(statements: int) -> str:
    lines = [f"T{k}(i, j) = T{k - 1}(i, j) > {k} ? T{k - 1}(i, j) + {k} : X(i, j)" for k in range(1, statements)]
    return (
        f"def f(float(N, M) X) -> (Y) {{ T0(i, j) = X(i, j)  {'  '.join(lines)}  Y(i, j) = T{statements - 1}(i, j) }}"
    )


@pytest.mark.some(3)
@pytest.mark.parametrize("text", [chain(120), rows(60), choices(90)], ids=["chain", "rows", "choices"])
def test_the_bounds_of_a_stage_are_inferred_a_few_times(text, monkeypatch):
    """They were inferred for all stages again whenever one was placed, or two were to share a loop."""
    visited: list[str] = []

    def counted(*arguments):
        found = original(*arguments)
        visited.extend(found)
        return found

    module = sys.modules[StageBounds.__module__]
    original = module._family_bounds
    monkeypatch.setattr(module, "_family_bounds", counted)
    graph = on_cpu(text).graph
    assert len(visited) <= 6 * len(graph.stages)


def test_a_place_that_readers_are_in_the_way_of():
    """The refusal says which step comes first; then the order of both does not matter."""
    base = default("def f(float(N) X) -> (C) { A1(i) = 2 * X(i)  A2(i) = A1(i) + 1  C(i) = A2(i) * 3 }").split(
        "C", "i", 8
    )
    with pytest.raises(CompileError) as caught:
        base.compute_at("A1", "C", "i.outer")
    (found,) = caught.value.diagnostics
    assert found.help is not None
    assert found.help.startswith(
        '`compute_inline("A2")` first, or `compute_at("A2", "C", "i.outer")` first; legal: root'
    )
    for first in (base.compute_inline("A2"), base.compute_at("A2", "C", "i.outer")):
        assert first.compute_at("A1", "C", "i.outer").graph.stage("A1").attach.axis == "i.outer"


def test_an_inlined_place_names_both_ways_that_work():
    """The inlined stage gets loops of its own, or one of those takes it that it is computed in."""
    base = default("def f(float(N) X) -> (C) { A(i) = 2 * X(i)  B(i) = A(i) + 1  C(i) = B(i) * 3 }").compute_inline("B")
    with pytest.raises(CompileError) as caught:
        base.compute_at("A", "B", "i")
    (found,) = caught.value.diagnostics
    assert (
        found.help == '`compute_root("B")` first, or name a loop of a stage that it is computed in; legal: root, `C[i]`'
    )
    assert base.compute_at("A", "C", "i").graph.stage("A").attach.stage == "C"
    assert base.compute_root("B").compute_at("A", "B", "i").graph.stage("A").attach.stage == "B"
    with pytest.raises(CompileError) as caught:
        base.split("B", "i", 2)
    assert caught.value.diagnostics[0].help == '`compute_root("B")` first, or change the loops of `C`'


def test_of_several_readers_in_the_way_each_has_a_step():
    lines = "A(i) = 2 * X(i)  B(i) = A(i) + 1  D(i) = B(i) + A(i)  C(i) = D(i) * 3"
    base = default(f"def f(float(N) X) -> (C) {{ {lines} }}")
    with pytest.raises(CompileError) as caught:
        base.compute_at("A", "C", "i")
    (found,) = caught.value.diagnostics
    assert found.help is not None
    ways = found.help.split("; legal")[0].split(", or ")
    assert [way.count("compute_") for way in ways] == [2, 2]
    for way in ways:
        schedule = base
        for step in re.findall(r"`(.*?)`", way):
            schedule = eval(f"schedule.{step}", {"schedule": schedule})
        assert schedule.compute_at("A", "C", "i").graph.stage("A").attach.stage == "C"


def test_a_place_where_readers_that_cannot_be_inlined_come_first():
    base = default("def f(float(N,K) X) -> (C) { A1(i,k) = 2 * X(i,k)  A2(i) +=! A1(i,k)  C(i) = A2(i) * 3 }")
    with pytest.raises(CompileError) as caught:
        base.compute_at("A1", "C", "i")
    (found,) = caught.value.diagnostics
    assert found.help is not None
    assert found.help.startswith('`compute_at("A2", "C", "i")` first')
    assert base.compute_at("A2", "C", "i").compute_at("A1", "C", "i").graph.stage("A1").attach.stage == "C"


@pytest.mark.parametrize("change", [
    lambda s: s.split("B", "i", 4),
    lambda s: s.reorder("B", "j", "i"),
    lambda s: s.fuse("B", "i", "j"),
    lambda s: s.tile("B", "i", "j", 4, 4),
    lambda s: s.parallel("B", "i"),
    lambda s: s.bind("B", "i", "blockIdx.x"),
    lambda s: s.storage("B", "local"),
    lambda s: s.compute_at("A", "B", "i"),
])  # fmt: skip
def test_an_inlined_stage_has_no_loops_and_no_storage(change):
    text = "def f(float(N,M) X) -> (C) { A(i,j) = 2 * X(i,j)  B(i,j) = A(i,j) + 1  C(i,j) = B(i,j) * 3 }"
    schedule = default(text).compute_inline("B")
    with pytest.raises(CompileError, match="inlined"):
        change(schedule)
    assert change(schedule.compute_root("B")).steps


def test_the_help_of_a_refusal_looks_at_the_readers_only():
    """It tried to move every reader, whose refusal tried to move theirs: twice as long with every round."""
    text = "int[*] f() { x = [1, 2]; for (i = 0; i < 14; i++) x = reshape([2 * shape(x)[0]], [x, x]); return x; }"
    program = bind(text)[0].specialized.program
    start = time.process_time()
    default_schedule(program, infer_ranges(program), cpu_target())
    assert time.process_time() - start < 10  # a bound for runaway work, not a measurement


def test_the_parts_of_a_state_are_not_written_into_each_other(monkeypatch):
    """It was tried before it was refused, and each part reads all: a stencil in a plane, in time, was never compiled."""
    text = (
        "double[.,.] f(double[.,.] x, int n) { for (t = 0; t < n; t++) { "
        "x = with { ([1, 1] <= [i, j] < shape(x) - 1) : x[i, j] + x[i - 1, j]; } : modarray(x); } return x; }"
    )
    program = bind(text, np.ones((4, 5)), np.int32(3))[0].specialized.program
    states = {each.target for each in program.statements if each.block}

    def tried(graph):
        assert not states & {each.target for each in graph.stages if each.attach.kind == "inline"}
        return inline.without_inlined(graph)

    monkeypatch.setattr(inlining, "without_inlined", tried)
    schedule = default_schedule(program, infer_ranges(program), cpu_target())
    assert states <= {schedule.graph.stage(name).target for name in schedule.stages}
