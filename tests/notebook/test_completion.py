"""Completion: in the cell, on the magic line, of the subcommands; through IPython's own completer."""

from __future__ import annotations

import pytest
from IPython.core.completer import CompletionContext, provisionalcompleter

from tc_jupyter.notebook.completion import magic_line, matcher


def offered(text: str) -> list[str]:
    """What is offered at `|`."""
    before, after = text.split("|")
    lines = before.split("\n")
    context = CompletionContext(
        token="", full_text=before + after, cursor_position=len(lines[-1]), cursor_line=len(lines) - 1, limit=None
    )
    return [completion.text for completion in matcher(context)["completions"]]


def test_names_of_the_cell_come_first():
    found = offered("%%tc\ndef mv(float(R,C) Matrix, float(C) v) -> (o) { o(i) +=! Ma|")
    assert found[0] == "Matrix"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%tc\nde|", "def"),
        ("%%tc\ndef f(flo|", "float32"),
        ("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) wh|", "where"),
        ("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = sq|", "sqrt"),
        ("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i)-sq|", "sqrt"),
        ("%%time\n%%tc\nde|", "def"),
        ("\n\n%%tc --strict\nde|", "def"),
        ("%%sac\nfloat[*] f(float[*] A) { ret|", "return"),
        ("%%sac\ndou|", "double"),
        ("%%tc --st|", "--strict"),
        ("%%tc -|", "--target"),
        ("%%tc --target |", "cpu"),
        ("%%tc --target cu|", "cuda"),
        ("%%tc --allow TC32|", "TC323"),
        ("%tc ins|", "inspect"),
        ("%tc |", "explain"),
        ("%tc cache |", "--clear"),
        ("%tc explain TC20|", "TC204"),
        ("x = 1\n%tc li|", "list"),
    ],
)
def test_what_may_stand_there(text, expected):
    assert expected in offered(text)


@pytest.mark.parametrize(
    "text", ["de|", "x = 1\n%%tc\nde|", "%%timeit\nde|", "%%tcx\nde|", "%tcx |", "tc li|", "%%time\n%%ti|"]
)
def test_python_is_left_alone(text):
    assert offered(text) == []


def test_types_of_offers():
    context = CompletionContext(
        token="", full_text="%%tc\ndef f(float(N) X) { ", cursor_position=23, cursor_line=1, limit=None
    )
    kinds = {completion.text: completion.type for completion in matcher(context)["completions"]}
    assert kinds["def"] == "keyword"
    assert kinds["float"] == "class"
    assert kinds["exp"] == "function"
    assert kinds["min"] == "function"
    assert kinds["X"] == "variable"
    assert len(kinds) == len(matcher(context)["completions"])


def test_the_magic_line_of_a_cell():
    assert magic_line(["%%tc"]) == 0
    assert magic_line(["", "%%time -n1", "%%capture x", "  %%sac --strict"]) == 3
    assert magic_line(["%%timeless", "%%tc"]) is None
    assert magic_line([]) is None


def complete(session, text: str) -> list[str]:
    with provisionalcompleter():
        found = list(session.shell.Completer.completions(text, len(text)))
    return [text[: completion.start] + completion.text for completion in found]


def test_through_the_completer_of_the_shell(session):
    session("%%tc\ndef rows(float(N) X) -> (Y) { Y(i) = X(i) }")
    assert complete(session, "%%tc\ndef f(float(N) Xray) -> (Y) { Y(i) = Xra") == [
        "%%tc\ndef f(float(N) Xray) -> (Y) { Y(i) = Xray"
    ]
    assert complete(session, "%tc inspect ro") == ["%tc inspect rows"]
    assert complete(session, "%%tc --stri") == ["%%tc --strict"]
    assert "%%tc\ndef f(float(N) X) { Y = rows" in complete(session, "%%tc\ndef f(float(N) X) { Y = ro")
    # no name of Python beside what a cell of ours offers
    assert not any(text.endswith("exec") for text in complete(session, "%%tc\ndef f(float(N) X) { ex"))
    assert "exec" in complete(session, "ex")


def test_nothing_is_offered_after_unloading(session):
    session("%unload_ext tc_jupyter")
    assert "%tc inspect" not in complete(session, "%tc ins")
