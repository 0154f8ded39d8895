"""The front end with the package itself in the kernel: the same words in the page as in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_app import App

ROOT = Path(__file__).resolve().parents[2]
LOAD = "%load_ext tc_jupyter"
BODY = "def matmul(float(M, K) A, float(K, N) B) -> (C) {\n    C(i, j) +=! A(i, k) * B(k, j)\n}"
MATMUL = f"%%tc\n{BODY}"

pytestmark = pytest.mark.skipif(
    not (ROOT / "tc_jupyter" / "notebook" / "comm.py").exists() or not (ROOT / "tc_jupyter" / "ide").exists(),
    reason="the kernel side is not part of this checkout yet",
)


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
    mark.wait_for(timeout=20_000)
    assert mark.inner_text() == wrong[told.span.start : told.span.end]
    app.caret(1, "C(i, j)")
    app.page.keyboard.press("Control+.")
    app.page.locator(".cm-lintRange-error").first.wait_for(state="detached", timeout=20_000)
    assert app.text(1) == MATMUL


def test_hover_says_what_python_says(app: App) -> None:
    from tc_jupyter import ide

    ready(app, "real-hover.ipynb", MATMUL)
    app.editor(1).locator(".tok-keyword").first.wait_for()
    told = ide.hover(BODY, {"line": 1, "character": 6})
    tip = app.hover(1, "i, j) +=").first.inner_text()
    assert told is not None
    assert str(told["title"]) in tip


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
    panel.get_by_text("0 <= i < M").first.wait_for(timeout=20_000)
    app.command("tc-jupyter:show-inspector")
    entry = app.page.locator("[data-tc-inspector] [data-tc-def=matmul]")
    app.page.locator("[data-tc-def=matmul][data-tc-state=analysed]").wait_for(timeout=20_000)
    app.run_and_wait(1)
    app.page.locator("[data-tc-card]").wait_for(timeout=20_000)
    app.page.locator("[data-tc-def=matmul][data-tc-state=bound]").wait_for(timeout=20_000)
    app.run_and_wait(2)
    app.page.locator("[data-tc-def=matmul][data-tc-state=compiled]").wait_for(timeout=60_000)
    assert entry.count() == 1
    assert app.external() == []
    assert app.own_errors() == []


def test_code_and_schedule_views(lab: App) -> None:
    ready(lab, "real-code.ipynb", MATMUL)
    lab.focus(1)
    lab.command("tc-jupyter:show-panel")
    panel = lab.page.locator("[data-tc-panel]")
    panel.get_by_text("0 <= i < M").first.wait_for(timeout=20_000)
    panel.locator("[data-tc-tab='Code']").click()
    panel.locator("pre[data-tc-code=loops]").wait_for(timeout=60_000)
    panel.locator("[data-tc-tab='Schedule']").click()
    panel.locator("pre[data-tc-code=schedule]").wait_for(timeout=60_000)


def test_completion_rename_and_format(lab: App) -> None:
    ready(lab, "real-edits.ipynb", MATMUL.replace(" +=! ", "  +=!   "))
    lab.caret(1, "k, j)")
    lab.type_(" + A")
    lab.page.locator(".cm-tooltip-autocomplete li", has_text="A").first.wait_for(timeout=10_000)
    lab.page.keyboard.press("Escape")
    for _ in range(4):
        lab.page.keyboard.press("Backspace")
    lab.caret(1, "C(i")
    lab.page.keyboard.press("F2")
    field = lab.page.locator(".jp-Dialog input")
    field.wait_for(timeout=10_000)
    field.fill("row")
    lab.page.keyboard.press("Enter")
    lab.editor(1).get_by_text("row").first.wait_for(timeout=10_000)
    assert "A(row, k)" in lab.text(1)
    lab.page.keyboard.press("Alt+Shift+F")
    lab.page.wait_for_function(
        "() => document.querySelector(\".jp-Cell[data-windowed-list-index='1'] .cm-content\").innerText.includes('C(row, j) +=! A(row, k)')",
        timeout=10_000,
    )
