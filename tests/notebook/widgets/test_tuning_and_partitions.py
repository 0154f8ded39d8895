"""The tuning and the partitions view."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.card import Card
from tc_jupyter.notebook.widgets.live import script_of
from tc_jupyter.notebook.widgets.partitions import Partitions
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
    assert tried.wait(60)
    thread = picture._thread
    picture.apply({"stop": True})
    if thread is not None:
        thread.join(60)
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
    drawn = {state: html.count(f'data-partition="{n}"') for n, state in enumerate(states) if state == "hole"}
    assert drawn == {"hole": 1}
    assert html.count("data-partition") == 10


def test_an_open_rank_is_chosen():
    f = next(iter(tc.compile("int[*] twice(int[*] a) { return { iv -> 2 * a[iv] }; }", language="sac").values()))
    picture = Partitions(f)
    assert "known at the call" in picture.content().html
    picture.apply({"rank": 2})
    assert picture.problem == ""
    picture.apply({"rank": "x"})
    picture.content(live=True)


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
