"""The schedule explorer: edits, refusals, counts and regions are those of `Schedule.bounds`."""

from __future__ import annotations

import re

import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.execution import execution
from tc_jupyter.notebook.widgets.schedule import ScheduleView
from tc_jupyter.notebook.widgets.views import view

TWO = "def two(float(M, N) A) -> (C) { B(i, j) = A(i, j) + 1 \n C(i, j) = B(i, j) * 3 }"


def function(text: str):
    return next(iter(tc.compile(text).values()))


def edit(picture: ScheduleView, **values) -> None:
    picture.apply({**values, "apply": True})


def example() -> ScheduleView:
    """The fused example of `infer_bound` with a split by 4."""
    picture = ScheduleView(function(TWO), M=4, N=4)
    edit(picture, primitive="fuse", stage="C", axis="i", second="j")
    fused = picture.schedule.leaves("C")[0]
    edit(picture, primitive="split", stage="C", axis=fused, factor=4)
    edit(picture, primitive="compute_at", stage="B", other="C", second=picture.schedule.leaves("C")[0])
    return picture


def test_edits_are_the_primitives():
    picture = example()
    assert picture.refused is None
    assert picture.problem == ""
    assert [step.name for step in picture.schedule.steps] == ["fuse", "split", "compute_at"]
    f = picture.function
    expected = f.schedule().fuse("C", "i", "j")
    fused = expected.leaves("C")[0]
    expected = expected.split("C", fused, factor=4)
    expected = expected.compute_at("B", "C", expected.leaves("C")[0])
    assert picture.schedule == expected


def test_counts_and_region_of_each_visit():
    picture = example()
    html = picture.content().html
    need = picture.bounds().stage("B")
    assert (need.visits, need.elements, need.tvm) == (4, 16, 64)
    row = next(r for r in re.findall(r"<tr.*?</tr>", html, re.S) if ">B<" in r and "<td" in r)
    cells = [re.sub("<[^>]*>", "", c) for c in re.findall(r"<td.*?</td>", row, re.S)]
    assert cells[:5] == ["B", "4", "16", "16", "64"]
    picture.apply({"stage": "B"})
    for visit in range(4):
        picture.apply({"visit": visit})
        said = re.sub("<[^>]*>", "", picture.content().html)
        assert "filled: needed exactly (4); solid: hull (4); dashed: TVM (16)" in said


def test_undo_and_redo():
    picture = example()
    last = picture.schedule
    picture.apply({"undo": True})
    assert len(picture.schedule.steps) == 2
    picture.apply({"redo": True})
    assert picture.schedule == last
    picture.apply({"undo": True})
    edit(picture, primitive="parallel", stage="C", axis=picture.schedule.leaves("C")[0])
    picture.apply({"redo": True})
    assert picture.schedule.steps[-1].name == "parallel"


def test_a_refused_edit_changes_nothing_and_shows_its_message():
    picture = ScheduleView(function(TWO), M=4, N=4)
    edit(picture, primitive="split", stage="C", axis="i", factor=0)
    assert picture.schedule.steps == ()
    assert "TC405" in picture.content().html
    edit(picture, primitive="compute_inline", stage="C")
    assert "data-refused" in picture.content().html
    picture.apply({"size:M": 5})
    assert "data-refused" not in picture.content().html


def test_copied_python_makes_the_same_schedule():
    picture = example()
    assert eval(picture.content(live=True).data["python"], {"two": picture.function}) == picture.schedule


@pytest.mark.parametrize(
    "values", [{"stage": "nothing"}, {"axis": 3}, {"primitive": "x"}, {"visit": "x"}, {"visit": 10**9}, {"other": []}]
)
def test_odd_values(values):
    picture = example()
    before = picture.content(live=True).html
    picture.apply(values)
    after = picture.content(live=True).html
    assert after == before or (values == {"visit": 10**9} and "visit 4 of 4" in after)


def test_large_sizes_and_many_stages_stay_readable():
    picture = ScheduleView(function(TWO))
    picture.apply({"size:M": 10**8, "size:N": 10**8})
    assert "no exact counts" in picture.content().html
    chain = "".join(f"T{n + 1}(i) = T{n}(i) + 1 \n" for n in range(30))
    g = function(f"def g(float(N) T0) -> (T30) {{ {chain} }}")
    html = view(g, "schedule").bundle()["text/html"]
    assert "T12" in html
    assert len(html) < 60_000


def test_generated_loops_follow():
    picture = example()
    picture.apply({"generated": True})
    html = picture.content(live=True).html
    assert "<summary style" in html
    assert ">generated loops<" in html
    assert "no loops" not in html
    assert ">generated loops<" not in example().content(live=True).html


MATMUL = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"


def test_the_order_of_a_tiled_nest_is_that_of_its_loops():
    f = function(MATMUL)
    s = f.schedule().split("C", "i", factor=2).split("C", "j", factor=2)
    s = s.reorder("C", "i.outer", "j.outer", "i.inner", "j.inner")
    found = execution(s.bounds(M=4, N=4, K=1), "C")
    expected = [(2 * i + a, 2 * j + b, 0) for i in range(2) for j in range(2) for a in range(2) for b in range(2)]
    assert [tuple(row) for row in found.points.tolist()] == expected
    assert found.step.tolist() == list(range(16))
    picture = ScheduleView(f, schedule=s, M=4, N=4, K=1)
    picture.apply({"time": 5})
    assert f"step 6 of 16: 1 point {expected[5]}" in picture.content().html


def test_parallel_loops_and_blocks_take_no_turns():
    f = function(MATMUL)
    s = f.schedule().bind("C", "i", "blockIdx.x").bind("C", "j", "threadIdx.x")
    found = execution(s.bounds(M=3, N=4, K=5), "C")
    assert found.steps == 5
    assert sorted(found.block.tolist()) == sorted([[i] for i in range(3) for _ in range(20)])
    html = ScheduleView(f, schedule=s, M=3, N=4, K=5).content().html
    assert "step 1 of 5: 12 points" in html
    assert re.search(r"<td[^>]*>\(1\)</td><td[^>]*>4</td><td[^>]*>5</td><td[^>]*>20</td>", html)


def test_axes_are_drawn_with_relations_and_ranges():
    picture = example()
    picture.apply({"stage": "C"})
    html = picture.content().html
    assert re.findall(r'data-relation="([^"]*)"', html) == ["fuse", "split 4"]
    assert re.findall(r'data-axis="([^"]*)"', html) == ["i", "j", "i.j.fused", "i.j.fused.outer", "i.j.fused.inner"]
    assert "SizeExpr" not in html


def test_a_wavefront_is_chosen_and_drawn():
    picture = ScheduleView(function(TWO), M=4, N=4)
    edit(picture, primitive="skew", stage="C", axis="i", second="j", factor=2)
    assert picture.schedule == picture.function.schedule().skew("C", "i", "j", 2)
    html = picture.content().html
    assert re.findall(r'data-relation="([^"]*)"', html) == ["skew 2"]
    assert re.findall(r'data-axis="([^"]*)"', html) == ["i", "j", "i.j.front", "i.place"]


def test_steps_are_taken_together():
    """The choice has the steps and the tile as its arguments; a statement of no block says why it has none."""
    text = """def next(float(N) U) -> (V) { V(i) = U(wrap(i+1)) / 2 where i in 0:N }
    def f(float(N) U, int32 n) -> (V) { V = next^n(U) }"""
    picture = ScheduleView(tc.compile(text).f, N=12, n=5)
    edit(picture, primitive="time_tile", stage="next.V", steps=3, factor=4)
    assert picture.schedule == picture.function.schedule().time_tile("next.V", 3, 4)
    controls = {each.name: each.label for each in picture.content(live=True).controls}
    assert {"steps", "tile"} <= set(controls.values())
    assert "axis" not in controls
    picture = ScheduleView(function(TWO), M=4, N=4)
    edit(picture, primitive="time_tile", stage="C")
    assert "takes its steps one by one" in picture.content().html


STENCIL = "def st(float(N) X) -> (O) { T(i) = X(i) \n O(i) = T(i) + T(i+1) + T(i+2) }"


def test_a_refused_order_is_drawn_as_two_points():
    picture = ScheduleView(function(STENCIL), N=12)
    edit(picture, primitive="compute_with", stage="O", other="T", second="i")
    html = picture.content().html
    assert re.findall(r'data-point="([^"]*)"', html) == ["0", "1"]
    assert "data-arrow" in html
    assert "O at (0) reads T(1), which T makes later, at (1)" in html


def test_a_place_that_cannot_serve_a_reader_is_drawn():
    f = function("def g(float(N) X) -> (A, B) { T(i) = X(i) \n A(i) = T(i) \n B(i) = T(i) }")
    picture = ScheduleView(f, N=5)
    edit(picture, primitive="compute_at", stage="T", other="A", second="i")
    assert picture.refused is not None
    assert 'data-refused-points="1"' in picture.content().html


def test_gaps_between_requests_are_hatched():
    f = function("def g(float(N) X) -> (O) { T(i) = X(i) \n O(i) = T(i) + T(i+3) }")
    picture = ScheduleView(f, N=12)
    edit(picture, primitive="compute_at", stage="T", other="O", second="i")
    picture.apply({"stage": "T"})
    html = picture.content().html
    assert 'data-gaps="2"' in html
    assert "hatched: in the hull and not needed (2)" in html
    assert re.findall(r'data-request="([^"]*)"', html) == ["T(i)", "T(i + 3)"]


def test_messages_of_the_phases_are_stepped_through():
    picture = example()
    lines = re.search(r'data-phases="(\d+)"', picture.content().html)
    assert lines is not None
    picture.apply({"message": 3})
    assert f"message 4 of {lines.group(1)}" in picture.content(live=True).html
    picture.apply({"message": 10**6})
    assert f"message {lines.group(1)} of {lines.group(1)}" in picture.content(live=True).html


def test_the_order_of_loops_with_shorter_last_parts_is_drawn():
    f = function(STENCIL)
    picture = ScheduleView(f, schedule=f.schedule().split("O", "i", factor=3).compute_at("T", "O", "i.outer"), N=14)
    picture.apply({"stage": "T"})
    expected = picture.bounds().stage("T").elements
    assert f'data-execution="{expected}"' in picture.content().html
    assert "at the points" not in picture.content().html
    f = function("def g(float(N) X) -> (O) { T(i) = X(i - 1) + X(i + 1)\n O(i) = T(i) + T(i + 2) }")
    picture = ScheduleView(f, schedule=f.schedule().split("O", "i", factor=3).compute_at("T", "O", "i.outer"), N=14)
    picture.apply({"stage": "T"})
    assert picture.bounds().stage("T").computed == picture.bounds().stage("T").elements + 1
    assert "at the points that are needed" in picture.content().html


def test_a_tile_is_of_a_loop_and_the_one_inside():
    """As a teacher does it: choose `tile`, press apply; of the last loop the one around it is taken."""
    picture = ScheduleView(function(MATMUL), M=8, N=8, K=4)
    picture.apply({"primitive": "tile"})
    assert (picture.axis, picture.values["second"]) == ("i", "j")
    picture.apply({"axis": "k"})
    assert picture.values["second"] == "j"
    picture.apply({"axis": "i", "second": "k"})
    assert picture.values["second"] == "k"
    picture.apply({"second": "j", "apply": True})
    assert ".tile('C', 'i', 'j', 4, 4)" in picture.schedule.to_python("mm")
