"""`use "kernels.tc"` in a cell, and `%%tc --save kernels.tc`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc

KERNELS = "# what others use\ndef twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }\n"
CALLER = 'use "kernels.tc"\ndef f(float(N) X) -> (Y) { Y = twice(X) }\n'
X = np.arange(4, dtype=np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with `kernels.tc`, in which the kernel is."""
    made = tmp_path / "notebook"
    made.mkdir()
    monkeypatch.chdir(made)
    (made / "kernels.tc").write_text(KERNELS)
    return made


def test_a_cell_uses_a_file(session, folder):
    session("%%tc\n" + CALLER)
    session.names.update(X=X)
    assert session("f(X)").tolist() == [0, 2, 4, 6]
    # a def of the notebook with the same name is another one
    session("%%tc\ndef twice(float(N) X) -> (Y) { Y(i) = 20 * X(i) }")
    assert session("f(X)").tolist() == [0, 2, 4, 6]
    assert "TC680" in session.fails("%%tc\n" + CALLER.replace("kernels", "nowhere"))


SCALE = "def scale(float(N) X, float a) -> (Y) {\n    Y(i) = a * X(i)\n}\n"


def test_a_cell_is_saved(session, folder):
    session("%%tc --save made.tc\n" + SCALE)
    path = folder / "made.tc"
    assert path.read_text().endswith("\n" + SCALE)
    assert tc.load(path).scale(X, 2.0).tolist() == [0, 2, 4, 6]
    session("%%tc --save made.tc\n" + SCALE.replace("a * X(i)", "a + X(i)"))  # it is the notebook's own
    assert tc.load(path).scale(X, 2.0).tolist() == [2, 3, 4, 5]


def test_what_somebody_else_has_written_is_not_overwritten(session, folder):
    assert "`kernels.tc` is there already, and no cell has saved it" in session.fails(
        "%%tc --save kernels.tc\n" + SCALE
    )
    session("%%tc --save made.tc\n" + SCALE)
    path = folder / "made.tc"
    edited = path.read_text().replace("a * X", "X * a")
    path.write_text(edited)
    assert "error[TC687] changed-file: `made.tc` has changed" in session.fails("%%tc --save made.tc\n" + SCALE)
    assert path.read_text() == edited
    session("%%tc --save made.tc --force\n" + SCALE)
    assert "also has `scale`" in session.fails("%%tc --save made.tc\n" + SCALE.replace("scale", "other"))
    assert sorted(each.name for each in folder.iterdir()) == ["kernels.tc", "made.tc"]


def test_a_saved_text_stands_alone(session, folder):
    session("%%tc\n" + SCALE)
    calls = "def g(float(N) X, float a) -> (Y) { Y = scale(X, a) }"
    assert "error[TC686] not-alone: the file would not have it" in session.fails("%%tc --save g.tc\n" + calls)
    assert not (folder / "g.tc").exists()


def test_the_paths_of_a_saved_text_are_those_of_the_file(session, folder):
    (folder / "lib").mkdir()
    session("%%tc --save lib/f.tc\n" + CALLER)
    assert 'use "../kernels.tc"' in (folder / "lib" / "f.tc").read_text()
    assert tc.load("lib/f.tc").f(X).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    "name", ["made.py", "made.sac", "nowhere/made.tc", "~nobody-of-that-name/made.tc", "kernels.tc/made.tc"]
)
def test_places_that_are_none(session, folder, name):
    assert "--save" in session.fails(f"%%tc --save {name}\n" + SCALE)


def test_a_loop_of_links_is_refused(session, folder):
    (folder / "loop.tc").symlink_to("loop.tc")
    assert "Too many levels of symbolic links" in session.fails("%%tc --save loop.tc\n" + SCALE)
    assert sorted(each.name for each in folder.iterdir()) == ["kernels.tc", "loop.tc"]


def test_the_file_of_a_link_is_written_where_it_is(session, folder, monkeypatch):
    (folder / "lib").mkdir()
    (folder / "link.tc").symlink_to("lib/f.tc")
    moved, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: moved.append(paths) or replace(*paths))
    session("%%tc --save link.tc\n" + SCALE)
    assert [Path(each).parent for each in moved[0]] == [folder / "lib"] * 2  # a rename cannot leave its disk
    assert "scale" in (folder / "lib" / "f.tc").read_text()


def test_the_front_end_is_told_of_files(session, folder):
    from tc_jupyter.notebook.comm import Channel

    def ask(kind: str, source: str, **more):
        head = {"v": 1, "kind": kind, "id": "a", "cell": "c", "version": 1, "magic": "%%tc", "source": source}
        return Channel(session.shell).answer({**head, **more})

    place = {"line": 1, "character": CALLER.split("\n")[1].index("twice") + 1}
    assert ask("check", CALLER)["analysis"]["diagnostics"] == []
    assert ask("hover", CALLER, position=place)["hover"]["lines"] == ["defined in `kernels.tc`, line 2"]
    found = ask("definition", CALLER, position=place)["definition"]
    assert (found["file"], found["in_file"]["start"]) == ("kernels.tc", {"line": 1, "character": 4})
    outside = ask("check", CALLER.replace("kernels", "../kernels"))["analysis"]["diagnostics"]
    assert [each["code"] for each in outside] == ["TC685"]
    # a cell below calls a def of a cell that uses a file and was not run
    above = [{"cell": "b", "magic": "%%tc", "source": CALLER}]
    below = "def g(float(N) X) -> (Y) { Y = f(X) }"
    assert ask("check", below, earlier=above)["analysis"]["diagnostics"] == []


def test_the_front_end_is_told_all_places_of_a_name(session):
    from tc_jupyter.notebook.comm import Channel

    text = "def f(float(N) X) -> (Y) { Y(i) = X(i) }"
    head = {"v": 1, "kind": "references", "id": "a", "cell": "c", "version": 1, "magic": "%%tc", "source": text}
    position = {"line": 0, "character": text.index("i)")}
    found = Channel(session.shell).answer({**head, "position": position})["references"]
    places = [(each["span"]["start"]["character"], each["introduces"]) for each in found]
    assert places == [(text.index("i)"), True), (text.rindex("i)"), False)]
