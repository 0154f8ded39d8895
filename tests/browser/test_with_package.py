"""The front end with the package itself in the kernel: the same words in the page as in Python."""

from __future__ import annotations

import pytest
from browser_app import App, flat

LOAD = "%load_ext tc_jupyter"
BODY = "def matmul(float(M, K) A, float(K, N) B) -> (C) {\n    C(i, j) +=! A(i, k) * B(k, j)\n}"
MATMUL = f"%%tc\n{BODY}"


def ready(app: App, name: str, *cells: str) -> None:
    app.open(app.server.notebook(name, [LOAD, *cells]))
    app.idle()
    app.run_and_wait(0)


def test_squiggle_and_fix_are_those_of_the_analysis(app: App) -> None:
    import tc_jupyter as tc

    wrong = BODY.replace("+=!", "=")
    (told,) = [d for d in tc.analyze(wrong).diagnostics if d.code.number == "TC204"]
    ready(app, "real-fix.ipynb", f"%%tc\n{wrong}")
    mark = app.editor(1).locator(".cm-lintRange-error").first
    mark.wait_for()
    assert mark.inner_text() == wrong[told.span.start : told.span.end]
    said = [f"error[TC204] {told.code.name}: {told.message}", *([f"help: {told.help}"] if told.help else [])]
    assert told.fix is not None
    app.hover(1, wrong[told.span.start : told.span.end], *said, told.fix.title)
    app.away()
    app.caret(1, "C(i, j)")
    app.page.keyboard.press("Control+.")
    app.page.locator(".cm-lintRange-error").first.wait_for(state="detached")
    assert app.text(1) == MATMUL


# right-to-left and astral characters stand before the names, on the same line and above
HOVERED = """# \u05db\u05e4\u05dc \u05de\u05d8\u05e8\u05d9\u05e6\u05d5\u05ea \U0001d54f
def scale(float(M, K) A) -> (S) { # \u0645\u0631\u062d\u0628\u0627
    S(i, j) = exp(A(i, j)) * 2
}
def twice(float(M, K) A) -> (Z) {
    T = scale(A)
    Z(i, j) = 2 * T(i, j)
}"""


@pytest.mark.always
def test_hover_says_what_python_says(app: App) -> None:
    from tc_jupyter import ide

    ready(app, "real-hover.ipynb", f"%%time\n%%tc\n{HOVERED}")
    app.editor(1).locator(".tok-keyword").first.wait_for()
    for needle in ("i, j) = exp", "A(i, j)", "K) A) -> (S)", "exp", "S(i", "scale(A)", "twice"):
        at = HOVERED.index(needle)
        line = HOVERED.count("\n", 0, at)
        told = ide.hover(HOVERED, {"line": line, "character": at - (HOVERED.rfind("\n", 0, at) + 1)})
        assert told is not None
        said = [told["title"], *told["lines"], *([told["documentation"]] if told["documentation"] else [])]
        app.hover(1, needle, whole=" ".join(said))


def test_panel_inspector_and_card(app: App) -> None:
    ready(
        app,
        "real-panel.ipynb",
        MATMUL,
        "import numpy as np\nmatmul(np.ones((2, 3), 'f4'), np.ones((3, 4), 'f4')).shape",
    )
    app.focus(1)
    app.command("tc-jupyter:show-panel")
    panel = app.page.locator("[data-tc-panel]")
    panel.get_by_text("0 <= i < M").first.wait_for()
    app.command("tc-jupyter:show-inspector")
    entry = app.page.locator("[data-tc-inspector] [data-tc-def=matmul]")
    app.page.locator("[data-tc-def=matmul][data-tc-state=analysed]").wait_for()
    app.run_and_wait(1)
    app.page.locator("[data-tc-card]").wait_for()
    app.page.locator("[data-tc-def=matmul][data-tc-state=bound]").wait_for()
    app.run_and_wait(2)
    app.page.locator("[data-tc-def=matmul][data-tc-state=compiled]").wait_for()
    assert entry.count() == 1


def test_code_and_schedule_views(lab: App) -> None:
    ready(lab, "real-code.ipynb", MATMUL)
    lab.focus(1)
    lab.command("tc-jupyter:show-panel")
    panel = lab.page.locator("[data-tc-panel]")
    panel.get_by_text("0 <= i < M").first.wait_for()
    panel.locator("[data-tc-tab='Code']").click()
    panel.locator("pre[data-tc-code=loops]").wait_for()
    panel.locator("[data-tc-tab='Schedule']").click()
    panel.locator("pre[data-tc-code=schedule]").wait_for()


def test_completion_rename_and_format(app: App) -> None:
    ready(app, "real-edits.ipynb", MATMUL.replace(" +=! ", "  +=!   "))
    app.caret(1, "k, j)")
    app.type_(" + A")
    app.page.locator(".cm-tooltip-autocomplete li", has_text="A").first.wait_for()
    app.page.keyboard.press("Escape")
    for _ in range(4):
        app.page.keyboard.press("Backspace")
    app.caret(1, "C(i")
    app.page.keyboard.press("F2")
    field = app.page.locator(".jp-Dialog input")
    field.wait_for()
    field.fill("row")
    app.page.keyboard.press("Enter")
    app.editor(1).get_by_text("row").first.wait_for()
    assert "A(row, k)" in app.text(1)
    app.page.keyboard.press("Alt+Shift+F")
    app.page.wait_for_function(
        "() => document.querySelector(\".jp-Cell[data-windowed-list-index='1'] .cm-content\").innerText.includes('C(row, j) +=! A(row, k)')",
    )


def test_what_is_marked_while_typing_is_what_running_the_cell_says(app: App) -> None:
    """A name that Python has taken from a def is unknown while typing too, until the cell of the def runs again."""
    scale, caller = "def scale(float(N) X) -> (Y) { Y(i) = 2 * X(i) }", "def caller(float(N) X) -> (Z) { Z = scale(X) }"
    ready(app, "taken.ipynb", f"%%tc\n{scale}", "scale = 3", f"%%tc\n{caller}")
    app.run_and_wait(1)
    app.focus(3)
    app.panel().get_by_text("caller").first.wait_for()
    marks = app.editor(3).locator(".cm-lintRange-error")
    assert marks.count() == 0
    app.run_and_wait(2)
    marks.first.wait_for()
    cure = "`scale` is a value of type `int` here, and no longer the def of cell 2: run that cell again"
    app.hover(3, "scale(X)", "error[TC201]", cure)
    app.away()
    app.run_and_wait(3)
    app.cell(3).locator("pre:visible", has_text="TC201").first.wait_for()
    assert flat(cure) in flat(app.cell(3).locator("pre:visible", has_text="TC201").first.inner_text())
    app.run_and_wait(1)
    app.until(lambda: marks.count() == 0, "a cell without a mark")


def test_all_places_of_a_name_are_selected(app: App) -> None:
    ready(app, "places.ipynb", MATMUL)
    app.caret(1, "A(i")
    app.page.keyboard.press("Shift+F12")
    app.until(lambda: app.page.evaluate("() => document.querySelectorAll('.cm-selectionBackground').length") >= 2)
    app.type_("row")
    app.until(lambda: "C(row, j) +=! A(row, k)" in app.text(1))


def test_definition_in_a_file(app: App) -> None:
    (app.server.folder / "kernels.tc").write_text("# twice\ndef twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }\n")
    ready(app, "uses.ipynb", '%%tc\nuse "kernels.tc"\ndef f(float(N) X) -> (Y) { Y = twice(X) }')
    app.editor(1).get_by_text('"kernels.tc"').wait_for()
    app.until(lambda: app.editor(1).locator(".cm-lintRange-error").count() == 0)
    app.caret(1, "Y = twice")
    app.page.keyboard.press("F12")
    if app.kind == "lab":  # Notebook opens a file on a page of its own
        app.page.locator(".jp-FileEditor", has_text="def twice").wait_for()
        app.page.get_by_text("Ln 2, Col 5").wait_for()
    else:
        app.until(lambda: any("kernels.tc" in page.url for page in app.page.context.pages))
