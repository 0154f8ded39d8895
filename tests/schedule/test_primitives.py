"""The documentation of every primitive: its loop nest before and after is what the library prints, and values stay the same."""

import inspect
import re
import textwrap
from contextlib import suppress

import numpy as np
import pytest

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule import Schedule, primitives
from tests.running import default, run
from tests.strategies import arguments

METHODS = ["split", "fuse", "skew", "reorder", "tile", "parallel", "vectorize", "unroll", "bind", "tensorize", "compute_at", "compute_root", "compute_inline", "compute_with", "storage", "at_most", "cache_read", "cache_write", "expand", "factor", "separate", "rebias", "rfactor", "prefix", "time_tile"]  # fmt: skip


def example(name):
    """Program, loops before, steps and loops after of the `Example` of a primitive."""
    _, _, rest = inspect.getdoc(getattr(primitives, name)).partition("Example:\n")
    lines = []
    for line in rest.splitlines():
        if line and not line.startswith("    "):
            break
        lines.append(line)
    text = textwrap.dedent("\n".join(lines)).strip()
    program, before, steps, after = text.split("\n\n")
    return program, before, steps.splitlines(), after


def test_every_primitive_is_a_method_of_a_schedule():
    text = inspect.getsource(Schedule)
    assert sorted(re.findall(r'self\._(?:do|each)\("(\w+)"', text)) == sorted(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_help_of_a_method_says_what_it_does(name):
    """Steps before and after, every argument, what comes back and what is refused, in words of a schedule."""
    method = getattr(Schedule, name)
    said = method.__doc__
    assert all(f"\n{title}:" in said for title in ("Example", "Args", "Returns", "Raises"))
    assert said.splitlines()[0] == inspect.getdoc(getattr(primitives, name)).splitlines()[0]
    for argument in inspect.signature(method).parameters.keys() - {"self", "options"}:
        assert len(re.findall(rf"^    {argument}: ", said, re.MULTILINE)) == 1
    assert not re.search(r"new graph|[Ss]ee `|\.py", said)


def test_a_schedule_prints_its_stages_and_loops():
    """Where a stage runs, its loops from the outside, and what they are bound to."""
    start = default("def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }")
    cached = start.split("C", "i", factor=16).cache_read("A", "C").compute_at("A.cache", "C", "i.outer")
    assert repr(start).splitlines() == [
        "schedule of f: no step, the loops of the text",
        "  C: i, j, k",
        "(calls run `f.default_schedule()`, which may be another, unless `with_schedule` gives one)",
    ]
    assert repr(cached.parallel("C", "i.outer")).splitlines() == [
        "schedule of f: 4 steps",
        "  A.cache at C, i.outer: i, k",
        "  C: i.outer parallel, i.inner, j, k",
    ]
    bounds = start.bounds()
    assert repr(bounds) == str(bounds)


@pytest.mark.parametrize("name", [*METHODS, "annotate"])
def test_the_documented_loops_are_the_loops(name):
    program, before, steps, after = example(name)
    schedule = default(program)
    assert schedule.bounds().loops() == before
    assert name == "annotate" or any(step.startswith(f".{name}(") for step in steps)
    for step in steps:
        schedule = eval(f"schedule{step}", {"schedule": schedule})
    assert schedule.bounds().loops() == after
    numbers = {"N": 21, "M": 19, "K": 10}
    arrays = arguments(schedule.graph.program, 1, numbers)
    expected = run(default(program), arrays, numbers)
    for result, values in run(schedule, arrays, numbers).items():
        np.testing.assert_array_equal(values, expected[result])


TAKERS = {
    "split": ("C", "i", 4), "fuse": ("C", "i", "j"), "skew": ("D", "i", "j", 1), "reorder": ("C", "j", "i"), "tile": ("C", "i", "j", 4, 4),
    "parallel": ("C", "i"), "vectorize": ("C", "j"), "unroll": ("C", "k"), "bind": ("C", "i", "threadIdx.x"), 
    "tensorize": ("C", ("i", "j", "k"), "mma"), "compute_at": ("C", "D", "i"), "compute_root": ("C",), "compute_inline": ("C",),
    "compute_with": ("C", "D", "i"), "storage": ("C",), "at_most": ("N", 4), "cache_read": ("A", "C"), 
    "cache_write": ("C", True), "expand": ("C",), "factor": ("C", "k"), "separate": ("C",), "rebias": ("C", "A"), "rfactor": ("C", "k"),
    "prefix": ("C", 4), "time_tile": ("C", 4, 4),
}  # fmt: skip
OPTIONS = {
    "split": ("nparts", "tail"),
    "tile": ("tail",),
    "cache_read": ("widen", "reindex", "value", "only", "order"),
    "storage": ("layout", "padded", "pad", "swizzle", "double", "whole", "rolling", "clamped", "masked"),
}
ODD = (
    -1, 2**100, 1.5, "", "nope", b"i", [], {"a": 1}, {1}, np.array([1, 0]), (0, 0), (1.0, 0.0), (True, False), "01", ("i", "i"), (0, 1, 2),
    (-1, 0), object, 2j,
)  # fmt: skip


@pytest.mark.parametrize("primitive", TAKERS)
def test_an_argument_of_another_kind_is_a_diagnostic(primitive):
    """Whatever stands for a name, a number, a flag or an order: the schedule takes it, or says what is wrong with it."""
    text = "def f(float(N, M) A, float(M, K) B) -> (D) { C(i, j) +=! A(i, k) * B(k, j)  D(i, j) = 2 * C(i, j) }"
    usual, take = TAKERS[primitive], getattr(default(text), primitive)
    assert [*TAKERS] == METHODS
    calls = [((*usual[:place], odd, *usual[place + 1 :]), {}) for place in range(len(usual)) for odd in ODD]
    calls += [(usual, {option: odd}) for option in OPTIONS.get(primitive, ()) for odd in ODD]
    refused = 0
    for given, options in calls:
        with suppress(CompileError):
            take(*given, **options)
            continue
        refused += 1
    assert refused >= len(calls) / 2


ORDERS = (
    "01",
    (1.0, 0.0),
    [0, 0],
    (0,),
    (0, 1, 2),
    (True, False),
    (),
    "",
    0,
    {},
    np.array([1, 0]),
    (-1, 0),
    ("0", "1"),
)


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_an_order_of_a_copy_names_every_dimension_once(order):
    s = default("def f(float(N, M) A) -> (B) { B(i, j) = A(i, j) }")
    with pytest.raises(CompileError, match=r"TC401.*`order` has to name each of the 2 dimensions once"):
        s.cache_read("A", "B", order=order)
    assert s.cache_read("A", "B", order=[1, 0]).steps == s.cache_read("A", "B", order=(1, np.int64(0))).steps


def test_flags_are_true_or_false_and_loops_are_those_of_a_stage():
    s = default("def f(float(N, M) A) -> (B) { B(i, j) = A(i, j) }")
    with pytest.raises(CompileError, match=r"TC411.*`1` is no `reindex` of `cache_read`") as caught:
        s.cache_read("A", "B", reindex=1)
    assert "help: give `True` or `False`" in str(caught.value)
    with pytest.raises(CompileError, match=r"TC411.*`\['i'\]` is no `axis` of `split`"):
        s.split("B", ["i"], 4)
    with pytest.raises(CompileError, match=r"TC411.*`1` is no `others` of `cache_read`"):
        s.cache_read("A", "B", "B", 1)
    assert s.cache_read("A", "B", "B", "B").stages == ("A.cache", "B")
    with pytest.raises(CompileError, match=r"TC411.*has no stage `E`"):
        s.parallel("E")
