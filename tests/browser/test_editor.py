"""Cells as a language: colours, squiggles, hover, completion, edits."""

from __future__ import annotations

import re

import pytest
import stand_in
from browser_app import START, App

GOOD = "%%tc\ndef f(float(N) X) -> (Y) {\n    Y(i) = X(i + 1)\n}"


def test_highlight_comes_and_goes_while_typing(app: App) -> None:
    app.open(app.server.notebook("highlight.ipynb", ["def f(float(N) X) -> (Y) { Y(i) +=! X(i) }", "x = 1"]))
    keyword = app.editor(0).locator(".tok-keyword", has_text="def")
    assert keyword.count() == 0
    app.focus(0)
    app.page.keyboard.press("Control+Home")
    app.type_("%%tc\n")
    keyword.wait_for()
    assert app.editor(0).locator(".tok-meta").inner_text() == "%%tc"
    # a name has the colour of what it is wherever it stands; tensors that are read, and sizes, are plain
    assert app.editor(0).locator(".tok-variableName2").all_inner_texts() == ["i", "i"]
    assert app.editor(0).locator(".tok-definition").all_inner_texts() == ["f", "X", "Y", "Y"]
    for _ in range(5):
        app.page.keyboard.press("Backspace")
    keyword.wait_for(state="detached")
    app.type_("%%time\n%%sac\n")
    app.editor(0).locator(".tok-meta", has_text="%%sac").wait_for()
    assert app.editor(1).locator("[class*=tok-]").count() == 0


def test_syntax_error_is_underlined_without_a_kernel(app: App) -> None:
    app.open(app.server.notebook("syntax.ipynb", ["%%tc\ndef f(float(N) X) -> (Y) {\n    Y(i) = X(i) +\n}"], {}))
    app.editor(0).locator(".cm-lintRange-error").first.wait_for()
    app.hover(0, "}", "TC101")


@pytest.mark.always
def test_semantic_squiggle_with_span_text_and_fix(app: App) -> None:
    app.ready("semantic.ipynb", GOOD)
    app.caret(1, "X(i", after=True)
    for _ in range(3):
        app.page.keyboard.press("Backspace")
    app.type_("Q(i")
    mark = app.editor(1).locator(".cm-lintRange-error")
    mark.wait_for()
    assert mark.inner_text() == "Q"
    tip = app.hover(1, "Q(i", "error[TC201] unknown-name", "did you mean X?")
    tip.get_by_text("replace `Q` by `X`").click()
    mark.wait_for(state="detached")
    assert app.text(1) == GOOD


def test_positions_with_astral_characters_and_a_stacked_magic(app: App) -> None:
    app.ready(
        "astral.ipynb",
        "%%time\n%%tc\n# \U0001d54f \u05e9\u05dc\u05d5\u05dd\ndef f(float(N) X) -> (Y) { Y(i) = X(i) } # \U0001d54f\ndef g(float(N) X) -> (Y) { Y(i) = Q(i) }",
    )
    mark = app.editor(1).locator(".cm-lintRange-error")
    mark.wait_for()
    assert mark.inner_text() == "Q"


def test_hover_says_what_python_says(app: App) -> None:
    app.ready("hover.ipynb", GOOD)
    app.editor(1).locator(".tok-keyword").first.wait_for()
    body = GOOD.split("\n", 1)[1]
    at = {"line": 1, "character": 6}
    told = stand_in.hover({"source": body, "position": at})["hover"]
    app.hover(1, "i) = X", told["title"], "told so")


def test_completion_without_and_with_a_kernel(app: App) -> None:
    app.open(app.server.notebook("complete.ipynb", [START, GOOD]))
    app.idle()
    app.caret(1, "X(i + 1)")
    app.type_(" + sqr")
    app.page.locator(".cm-tooltip-autocomplete").get_by_text("sqrt", exact=True).wait_for()
    app.page.keyboard.press("Escape")
    for _ in range(6):
        app.page.keyboard.press("Backspace")
    app.run_and_wait(0)
    app.caret(1, "X(i + 1)")
    app.type_(" + XL")
    app.page.locator(".cm-tooltip-autocomplete").get_by_text("XLong").wait_for()

    def taken() -> bool:
        """At once: a key in the first moments of the list takes nothing yet, and indents nothing."""
        app.page.keyboard.press("Tab")
        assert re.search(r"\+ XL(ong)?\n", app.text(1)), app.text(1)
        return "+ XLong" in app.text(1)

    app.until(taken)
    assert app.page.locator(".jp-Completer:visible").count() == 0


def test_arrow_keys_stay_in_the_list(app: App) -> None:
    app.open(app.server.notebook("arrows.ipynb", ["%%tc\ndef f(float(N) X) -> (Y) { Y(i) = ", "x = 1"]))
    items = app.page.locator(".cm-tooltip-autocomplete li")
    app.caret(0, "Y(i) = ")
    app.type_("co")
    items.nth(1).wait_for()
    first = items.first.inner_text()
    chosen = app.page.locator(".cm-tooltip-autocomplete li[aria-selected]")

    def moved() -> bool:
        """At once: the list takes the key, though a key in the first moments does not move in it yet."""
        app.page.keyboard.press("ArrowDown")
        return chosen.inner_text() != first  # in the cell the key would leave it, and close the list

    app.until(moved)


def test_signature_help_marks_the_parameter(app: App) -> None:
    app.ready("signature.ipynb", GOOD)
    app.caret(1, "X(i + 1)")
    app.type_(" + pow(N, ")
    app.page.locator(".tc-signature b").get_by_text("y", exact=True).wait_for()


def test_rename_format_references_and_definition(app: App) -> None:
    app.ready(
        "edits.ipynb", GOOD.replace("Y(i) = ", "Y(i)   =   "), "%%tc\ndef g(float(N) X) -> (Z) {\n    Z = f(X)\n}"
    )
    app.caret(1, "Y(i")
    app.page.keyboard.press("F2")
    field = app.page.locator(".jp-Dialog input")
    field.wait_for()
    field.fill("row")
    app.page.keyboard.press("Enter")
    app.editor(1).get_by_text("row", exact=False).first.wait_for()
    assert "Y(row)   =   X(row + 1)" in app.text(1)
    app.page.keyboard.press("Alt+Shift+F")
    app.page.wait_for_function(
        "() => document.querySelector(\".jp-Cell[data-windowed-list-index='1'] .cm-content\").innerText.includes('Y(row) = X')",
    )
    app.caret(1, "Y(row")
    app.page.keyboard.press("Shift+F12")
    app.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[1].editor.editor.state.selection.ranges.length === 2"
    )
    app.type_("col")
    assert "Y(col) = X(col + 1)" in app.text(1)
    app.caret(2, "Z = f")
    app.page.keyboard.press("F12")
    app.page.wait_for_selector(".jp-Cell[data-windowed-list-index='1'].jp-mod-active")


def test_problem_keys_and_gutter(app: App) -> None:
    app.ready("problems.ipynb", "%%tc\ndef f(float(N) X) -> (Y) {\n    Y(i) = Q(i)\n    Y(i) = Q(i) + W(i)\n}")
    app.editor(1).locator(".cm-lintRange-warning").wait_for()
    app.until(lambda: app.cell(1).locator(".cm-lint-marker").count() == 2)
    app.focus(1)
    app.page.keyboard.press("Control+Home")
    app.page.keyboard.press("F8")
    app.page.keyboard.press("Control+.")
    app.page.wait_for_function("() => document.querySelectorAll('.cm-lintRange-error').length === 1")
    assert app.text(1).count("Q") == 1


def test_inlay_hints(app: App) -> None:
    app.ready("hints.ipynb", GOOD)
    assert app.page.locator(".tc-hint").count() == 0
    app.focus(1)
    app.command("tc-jupyter:toggle-inlay-hints")
    hint = app.page.locator(".tc-hint")
    hint.wait_for()
    assert re.sub(r"\s+", " ", hint.inner_text()) == "i in 0:N - 1 k in 0:K Y(N - 1)"
    app.command("tc-jupyter:toggle-inlay-hints")
    hint.wait_for(state="detached")
