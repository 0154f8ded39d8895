"""Side panel, inspector, renderer, connection states."""

from __future__ import annotations

import json
from typing import Any

import pytest
import stand_in
from browser_app import START, App

GOOD = "%%tc\ndef f(float(N) X) -> (Y) {\n    Y(i) = X(i + 1)\n}"
BODY = GOOD.split("\n", 1)[1]
CARD = "application/vnd.tc-jupyter.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"


def output(bundle: dict[str, Any]) -> dict[str, Any]:
    result = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/plain": "card", **bundle},
    }
    return {"cell_type": "code", "id": "out", "metadata": {}, "source": GOOD, "execution_count": 1, "outputs": [result]}


def test_panel_follows_the_active_cell(app: App) -> None:
    app.ready("panel.ipynb", GOOD, "%%tc\ndef other(float(N) X) -> (Y) { Y(i) = X(i) }", "x = 1")
    app.focus(1)
    app.command("tc-jupyter:show-panel")
    panel = app.page.locator("[data-tc-panel]")
    panel.get_by_text("0 <= i < N - 1").first.wait_for(timeout=10_000)
    app.focus(2)
    panel.locator(".tc-title b", has_text="other").wait_for(timeout=10_000)
    app.focus(3)
    panel.get_by_text("Select a %%tc or %%sac cell.").wait_for(timeout=10_000)
    assert app.own_errors() == []
    assert app.external() == []


def test_panel_tabs_by_keyboard_and_sizes(lab: App) -> None:
    lab.ready("tabs.ipynb", GOOD)
    lab.focus(1)
    lab.command("tc-jupyter:show-panel")
    panel = lab.page.locator("[data-tc-panel]")
    panel.locator("[data-tc-tab='Ranges']").click()
    lab.page.keyboard.press("ArrowRight")
    row = panel.locator("tr", has_text="K <= N")
    row.get_by_text("✓ holds").wait_for(timeout=10_000)
    panel.locator("[data-size=K]").fill("99")
    row.get_by_text("✗ fails").wait_for(timeout=10_000)
    panel.locator("[data-size=K]").fill("-3")
    panel.get_by_text("K is a whole number").wait_for(timeout=10_000)
    panel.locator("[data-size=K]").fill("3")
    panel.locator("[data-size=N]").fill("7")
    panel.locator("[data-tc-tab='Iteration space']").click()
    lab.page.wait_for_function(
        "() => document.querySelectorAll('[data-tc-panel] .tc-point').length === 18", timeout=10_000
    )
    panel.locator("[data-size=N]").fill("5000")
    panel.locator("canvas").wait_for(timeout=10_000)
    panel.locator("[data-size=N]").fill("1")
    panel.get_by_text("empty: no point").wait_for(timeout=10_000)
    panel.locator("[data-tc-tab='Schedule']").click()
    panel.locator("[data-tc-code=schedule]", has_text="for i in 0:N - 1").wait_for(timeout=10_000)
    panel.locator("[data-tc-tab='Code']").click()
    assert "Y[i] = X[i + 1];" in panel.locator("[data-tc-code=loops]").inner_text()
    assert lab.own_errors() == []


def test_inspector_lists_all_defs_and_scrolls(app: App) -> None:
    filler = [f"x{i} = {i}\n" + "# line\n" * 8 for i in range(30)]
    app.ready(
        "inspector.ipynb",
        GOOD,
        *filler,
        "%%sac\nfloat[*] far(float[*] A) { return A; }",
        "%%tc\ndef bad(float(N) X) -> (Y) { Y(i) = Q(i) }",
    )
    app.focus(1)
    app.command("tc-jupyter:show-inspector")
    tree = app.page.locator("[data-tc-inspector]")
    tree.locator("[data-tc-def=f][data-tc-state=analysed]").wait_for(timeout=10_000)
    tree.locator("[data-tc-def=bad][data-tc-state=failing]").wait_for(timeout=10_000)
    assert tree.locator("[data-tc-def=far]").count() == 1
    tree.locator("[data-tc-def=bad] button").click()
    app.page.locator(".jp-Cell.jp-mod-active", has_text="def bad").wait_for(timeout=10_000)
    assert app.own_errors() == []


def test_saved_card_without_a_kernel(app: App) -> None:
    analysis = stand_in.check({"source": BODY})["analysis"]
    html = "<table><tr><td onclick='x()'>kept</td></tr></table><script>window.hacked = 1</script><img src='http://127.0.0.1:9/x.png' onerror='window.hacked = 2'>"
    cells = [
        output({CARD: analysis, WIDGET: {"version_major": 2, "version_minor": 0, "model_id": "gone"}}),
        {**output({CARD: {**analysis, "html": html}}), "id": "out2"},
        {**output({CARD: {"functions": 7, "text": "as text"}}), "id": "out3"},
        {**output({CARD: "junk"}), "id": "out4"},
    ]
    app.open(app.server.notebook("saved.ipynb", cells))
    cards = app.page.locator("[data-tc-card]")
    cards.first.get_by_text("0 <= i < N - 1").wait_for(timeout=20_000)
    assert "model not found" not in app.page.inner_text("body")
    app.idle()
    app.page.wait_for_timeout(500)
    assert "model not found" not in app.page.inner_text("body")
    assert cards.nth(1).inner_text().strip() == "kept"
    assert app.page.evaluate("() => window.hacked") is None
    assert cards.nth(1).locator("img[src]").count() == 0
    assert cards.nth(2).inner_text().strip() == "as text"
    assert "cannot be read" in cards.nth(3).inner_text()
    assert app.external() == []
    assert app.own_errors() == []


def test_live_widget_is_mounted_and_falls_back(app: App) -> None:
    show = (
        "import ipywidgets\nfrom IPython.display import display\nw = ipywidgets.IntSlider(description='live')\n"
        f"display({{'{CARD}': {json.dumps({'functions': [], 'diagnostics': [], 'html': '<p>static</p>'})}, "
        f"'{WIDGET}': {{'version_major': 2, 'version_minor': 0, 'model_id': w.model_id}}, 'text/plain': 'w'}}, raw=True)"
    )
    app.open(app.server.notebook("live.ipynb", [show]))
    app.idle()
    app.run_and_wait(0)
    card = app.page.locator("[data-tc-card]")
    card.locator(".widget-slider").wait_for(timeout=20_000)
    assert card.get_by_text("static").is_hidden()
    app.page.evaluate("() => { window.jupyterapp.shell.currentWidget.sessionContext.restartKernel() }")
    card.get_by_text("static").wait_for(timeout=30_000)
    assert card.locator(".widget-slider").count() == 0


def test_bad_answers_and_large_cells(lab: App) -> None:
    big = "%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) }\n" + "# filler\n" * 120_000
    lab.ready("bad.ipynb", GOOD + "\n# junk", GOOD + "\n# flood", "x = 1")
    lab.editor(2).locator(".cm-lintRange-error").first.wait_for(timeout=10_000)
    lab.focus(3)
    lab.page.evaluate(
        "text => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.setSource(text)", big
    )
    lab.editor(3).locator(".cm-lintRange-info").first.wait_for(timeout=15_000)
    lab.command("tc-jupyter:show-panel")
    lab.page.locator("[data-tc-panel]").get_by_text("too large").wait_for(timeout=10_000)
    assert lab.own_errors() == []


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_themes(lab: App, theme: str) -> None:
    lab.ready("theme.ipynb", GOOD)
    lab.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    lab.focus(1)
    lab.command("tc-jupyter:show-panel")
    lab.page.locator("[data-tc-panel]").get_by_text("0 <= i < N - 1").first.wait_for(timeout=10_000)
    lab.page.wait_for_timeout(300)
    contrast = lab.page.evaluate(
        """() => {
            const parse = c => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
            const light = c => { const [r, g, b] = parse(c).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const panel = getComputedStyle(document.querySelector('[data-tc-panel]'));
            const back = light(panel.backgroundColor);
            return [...document.querySelectorAll('[data-tc-panel] td, [data-tc-panel] p, [data-tc-panel] button')].map(e => {
                const front = light(getComputedStyle(e).color);
                return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
            }).reduce((a, b) => Math.min(a, b), 99);
        }"""
    )
    assert contrast >= 4.5
    assert lab.own_errors() == []


def test_three_hundred_cells_with_windowing(lab: App) -> None:
    cells = [START] + [GOOD.replace("def f", f"def f{i}") if i % 3 == 0 else f"x{i} = {i}" for i in range(299)]
    lab.open(lab.server.notebook("many.ipynb", cells))
    lab.idle()
    lab.run_and_wait(0)
    lab.editor(1).locator(".tok-keyword").first.wait_for(timeout=20_000)
    lab.command("tc-jupyter:show-inspector")
    entries = lab.page.locator("[data-tc-inspector] [data-tc-def]")
    lab.page.wait_for_function(
        "() => document.querySelectorAll('[data-tc-inspector] [data-tc-state=analysed]').length === 100", timeout=30_000
    )
    entries.last.locator("button").click()
    lab.page.locator(".jp-Cell.jp-mod-active", has_text="def f297").wait_for(timeout=20_000)
    lab.page.locator(".jp-Cell.jp-mod-active .tok-keyword").first.wait_for(timeout=10_000)
    assert lab.own_errors() == []


def test_new_notebook_command(lab: App) -> None:
    lab.page.goto(lab.server.url + "/lab?reset")
    lab.page.locator(".jp-LauncherCard", has_text="TC Notebook").first.click(timeout=60_000)
    lab.page.locator(".jp-Notebook .tok-keyword", has_text="def").first.wait_for(timeout=30_000)


def test_tc_file_is_coloured_and_checked(lab: App) -> None:
    (lab.server.folder / "demo.tc").write_text("def f(float(N) X) -> (Y) { Y(i) = X(i); }\n")
    lab.page.goto(lab.server.url + "/lab/tree/demo.tc?reset")
    lab.page.locator(".jp-FileEditor .tok-keyword", has_text="def").wait_for(timeout=60_000)
    lab.page.locator(".jp-FileEditor .cm-lintRange-error").first.wait_for(timeout=10_000)
