"""The tuning and the partitions view."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.card import Card
from tc_jupyter.notebook.widgets.live import script_of
from tc_jupyter.notebook.widgets.partitions import Partitions, joined
from tc_jupyter.notebook.widgets.picture import CODE
from tc_jupyter.notebook.widgets.tuning import Tuning
from tc_jupyter.notebook.widgets.views import VIEWS, view

SCALE = "def scale(float(N, M) X) -> (Y) { Y(i, j) = 2 * X(i, j) + 1 }"


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path / "cache"))


def test_a_search_is_shown_and_can_be_stopped():
    picture = Tuning(tc.compile(SCALE).scale, seconds=1000, N=64, M=64)
    assert "nothing was tried" in picture.content().html
    tried = threading.Event()
    picture.on_change(tried.set)
    picture.apply({"run": True})
    assert tried.wait(300)
    thread = picture._thread
    picture.apply({"stop": True})
    if thread is not None:
        thread.join(300)
    assert picture.log is not None
    html = picture.content().html
    timed = [trial for trial in picture.log.trials if trial.seconds is not None]
    assert html.count("data-trial") == len(timed)
    assert f"{len(picture.log.trials)} of {picture.log.total} candidates" in html


def test_partitions_are_drawn_as_written():
    text = "int[.] f(int[.] a) { return { iv -> 1 | [0] <= iv < [5]; iv -> 2 | [6] <= iv < [10] }; }"
    f = next(iter(tc.compile(text, language="sac").values()))
    assert f(np.zeros(3, np.int32)).tolist() == [1, 1, 1, 1, 1, 0, 2, 2, 2, 2]
    html = Partitions(f).content().html
    states = [part.state for part in f.program.partitions]
    assert sorted(states) == ["body", "body", "hole"]
    assert html.count('data-partition="-1"') == 1
    assert html.count("data-partition") == 10


EDGE = "int[*] edge(int[*] a) { return { iv -> 1 | 0 * shape(a) + 1 <= iv < shape(a) - 1; iv -> a[iv] }; }"


def sac(text):
    return next(iter(tc.compile(text, language="sac").values()))


@pytest.mark.parametrize("rank", [1, 2])
def test_an_open_rank_is_chosen_and_every_cell_has_the_letter_of_what_computes_it(rank):
    f = sac(EDGE)
    picture = Partitions(f)
    assert picture.rank == 1
    picture.apply({"rank": rank})
    assert picture.problem == ""
    inside = f(np.zeros([picture.sizes[f"a_{n}"] for n in range(rank)], np.int32))
    html = picture.content(live=True).html
    assert html.count('data-partition="0"') == inside.sum()
    assert html.count('data-partition="1"') == (inside == 0).sum()
    assert f"<code>{'[1, 7) x ' * (rank - 1)}[1, 7)</code>" in html.replace(f' style="{CODE}"', "")


@pytest.mark.parametrize("wrong", ["x", -1, 9, 10**12, 1.5, None])
def test_a_rank_that_is_none_changes_nothing_and_is_told(wrong):
    picture = Partitions(sac(EDGE), rank=2)
    picture.apply({"rank": wrong})
    assert picture.rank == 2
    assert "a rank is a whole number from 0 to 8" in picture.content(live=True).html


def test_a_rank_that_the_function_refuses_is_told_and_another_one_shown():
    picture = Partitions(sac("double[*] first(double[*] a) { return { [i, ...] -> a[i] }; }"), rank=0)
    content = picture.content(live=True)
    assert "not with arguments of rank 0" in content.html
    picture.apply({"rank": 3})
    assert "[0, 8) x [0, 8) x [0, 8)" in picture.content().text
    assert "drawn at [.., .., 4]" in picture.content().html


def test_the_rank_of_the_last_call_is_shown_first():
    f = sac(EDGE)
    f(np.zeros((3, 4), np.int32))
    assert Partitions(f).rank == 2


def test_arguments_of_every_declared_type_tell_a_rank():
    f = sac(
        "double[*] part(int[.] low, double s, double[*] a) { return { iv -> s * a[iv + low] | iv < shape(a) - low }; }"
    )
    picture = Partitions(f, rank=2)
    assert picture.problem == ""
    assert len(f.program.tensor("result").dims or "ab") == 2


@pytest.mark.filterwarnings("ignore::tc_jupyter.diagnostics.DiagnosticWarning")
def test_a_hidden_partition_is_named():
    f = sac(
        "int[.] f() { return { iv -> 1 | [0] <= iv < [5]; iv -> 2 | [1] <= iv < [4]; iv -> 3 | [5] <= iv < [10] }; }"
    )
    content = Partitions(f).content()
    assert "hidden by earlier partitions: iv -> 2" in content.text
    assert "hidden by earlier partitions" in content.html
    assert [content.html.count(f'data-partition="{n}"') for n in range(3)] == [5, 0, 5]


def test_a_tc_def_has_no_partitions():
    assert "no partitions" in view(tc.compile(SCALE).scale, "partitions").bundle()["text/html"]


def test_a_card_opens_one_view_at_a_time_and_survives_a_broken_one():
    f = tc.compile(SCALE).scale

    def broken(function):
        raise RuntimeError("planted")

    card = Card("<p>static</p>", {"scale": f}, VIEWS | {"code": broken})
    assert card.content().html == "<p>static</p>"
    card.apply({"open": ["scale", "iteration_space"]})
    assert card.content(live=True).data["view"] == "iteration_space"
    card.apply({"size:N": 3})
    assert card.open_view.sizes["N"] == 3
    card.apply({"open": ["scale", "code"]})
    assert "planted" in card.content(live=True).html
    card.apply({"open": ["nothing", "code"]})
    card.apply({"open": ["scale", "code"]})
    assert card.content(live=True).data["head"].startswith("<p>static</p>")


@pytest.mark.parametrize("name", [*VIEWS, "card"])
def test_scripts_fetch_nothing(name):
    text = script_of(name)
    assert "export default" in text
    for forbidden in ("import(", "import ", "fetch(", "XMLHttpRequest", "https:", "cdn"):
        assert forbidden not in text


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("{ iv -> 1 | [0] <= iv < shape(a) step [2]; iv -> 2 | iv < shape(a) }", {0: 4, 1: 4}),
        (
            "{ iv -> 1 | [0] <= iv < shape(a) step [4] width [2]; iv -> 2 | iv < shape(a) - 1; iv -> 3 | iv < shape(a) }",
            {0: 4, 1: 3, 2: 1},
        ),
        ("{ iv -> 1 | [1] <= iv < shape(a) step [3]; iv -> 2 | [0] <= iv < shape(a) step [2] }", {0: 3, 1: 3, -1: 2}),
    ],
)
def test_partitions_with_a_step_are_as_many_as_are_written(text, counts):
    f = sac(f"int[.] f(int[.] a) {{ return {text}; }}")
    picture = Partitions(f, a_0=8)
    content = picture.content()
    (length,) = f(np.zeros(8, np.int32)).shape
    assert sum(counts.values()) == length
    assert {n: content.html.count(f'data-partition="{n}"') for n in counts} == counts
    values = f(np.zeros(8, np.int32)).tolist()
    assert [values.count(n + 1) for n in counts] == list(counts.values())
    assert "result: A iv -> 1 | " in content.text
    assert "result: B iv -> 2 | " in content.text
    large = Partitions(f, a_0=10**6).content()
    assert "chosen element by element: iv -> 1 | " in large.text


def test_a_rank_in_python_is_one_that_can_be_shown():
    g = sac(EDGE)
    for rank in (-1, 9, 400, 1.5, "x", True):
        with pytest.raises(ValueError, match="a rank is a whole number from 0 to 8"):
            view(g, "partitions", rank=rank)
        with pytest.raises(ValueError, match="a rank is a whole number from 0 to 8"):
            g.at_rank(rank)
    fixed = sac("int[.] f(int[.] a) { return { iv -> a[iv] }; }")
    for rank in (-1, 1, 3):
        with pytest.raises(ValueError, match="declares all ranks"):
            view(fixed, "partitions", rank=rank)
    with pytest.raises(ValueError, match="no sizes can be given yet"):
        view(sac(EDGE), "ranges", rank=2)
    g(np.zeros((3, 4), np.int32))
    with pytest.raises(ValueError, match="no size 'rank'"):
        view(g, "ranges", rank=2)
    assert view(sac(EDGE), "partitions", a_0=3).picture.sizes == {"a_0": 3}
    assert view(sac(EDGE), "partitions", rank=2, a_1=3).picture.sizes["a_1"] == 3


def test_boxes_that_touch_are_one_and_what_is_empty_says_no_more():
    f = sac("int[.] f(int[.] a) { return { iv -> 1 | [1] <= iv < shape(a) - 1; iv -> a[iv] }; }")
    text = Partitions(f, a_0=1).content().text
    assert not any(line.endswith(": ") for line in text.splitlines())
    assert "its bounds are empty" in text
    boxes = [((0, 1), (0, 2)), ((1, 3), (0, 2)), ((0, 3), (2, 3)), ((5, 6), (0, 3))]
    assert joined(boxes) == [((0, 3), (0, 3)), ((5, 6), (0, 3))]
    assert joined([]) == []


STEPS = "{ [i] -> a[i] | [0] <= [i] < [8] step [2]; [i] -> 0 | [i] < [8] }"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"int[.] f(int[.] a) {{ return a + {STEPS}; }}", ""),
        (f"int[.] f(int[.] a) {{ y = {STEPS}; return 2 * y; }}", ""),
        (f"int f(int[.] a) {{ return sum({STEPS}); }}", ""),
        (f"int[.] f(int[.] a) {{ return {{ [i] -> a[i] | [i] < [8] }} ++ {STEPS}; }}", ""),
        (
            f"int[.,.] f(int[.] a) {{ return {{ [j] -> {STEPS.replace('[0]', '[j]')} | [j] < [3] }}; }}",
            ", at j = 0",
        ),
    ],
)
def test_partitions_with_a_step_inside_an_expression_are_drawn(text, said):
    content = Partitions(sac(text), a_0=8).content()
    assert "chosen element by element" not in content.text
    (line,) = (line for line in content.text.splitlines() if ": A [i] -> a[i] | [" in line)
    assert line.split(": A ")[0].endswith(f" ...{said}")
    assert line.endswith("computed: [0, 1); [2, 3); [4, 5); [6, 7)")
    assert content.html.count('data-partition="1"') >= 4


def test_views_show_no_range_that_ends_before_it_starts():
    f = tc.compile(
        "def f(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }", target="interpreter", allow=["TC322"]
    ).f
    for name in ("ranges", "iteration_space", "schedule", "partitions"):
        content = view(f, name, N=3, K=5).picture.content()
        assert "0:-1" not in content.text + content.html, name
        assert "[0, -1)" not in content.text + content.html, name
        assert content.text.count("0 <= i < -1") == (name != "partitions"), name  # the refusal
    assert "no i  output, 0 values" in view(f, "iteration_space", N=3, K=5).picture.content().text
