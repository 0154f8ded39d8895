"""Side panel, inspector, renderer, connection states."""

from __future__ import annotations

import json
from typing import Any

import pytest
import stand_in
from browser_app import FRONT, START, App

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
    panel = app.panel()
    panel.get_by_text("0 <= i < N - 1").first.wait_for()
    app.focus(2)
    panel.locator(".tc-title b", has_text="other").wait_for()
    app.focus(3)
    panel.get_by_text("Select a %%tc or %%sac cell.").wait_for()


def test_panel_tabs_by_keyboard_and_sizes(lab: App) -> None:
    lab.ready("tabs.ipynb", GOOD)
    lab.focus(1)
    panel = lab.panel()
    panel.locator("[data-tc-tab='Ranges']").click()
    lab.page.keyboard.press("ArrowRight")
    row = panel.locator("tr", has_text="K <= N")
    row.get_by_text("✓ holds").wait_for()
    panel.locator("[data-size=K]").fill("99")
    row.get_by_text("✗ fails").wait_for()
    panel.locator("[data-size=K]").fill("-3")
    panel.get_by_text("K is a whole number").wait_for()
    panel.locator("[data-size=K]").fill("3")
    panel.locator("[data-size=N]").fill("7")
    panel.locator("[data-tc-tab='Iteration space']").click()
    lab.page.wait_for_function("() => document.querySelectorAll('[data-tc-panel] .tc-point').length === 18")
    panel.locator("[data-size=N]").fill("5000")
    panel.locator("canvas").wait_for()
    panel.locator("[data-size=N]").fill("1")
    panel.get_by_text("empty: no point").wait_for()
    panel.locator("[data-tc-tab='Schedule']").click()
    panel.locator("[data-tc-code=schedule]", has_text="for i in 0:N - 1").wait_for()
    panel.locator("[data-tc-tab='Code']").click()
    assert "Y[i] = X[i + 1];" in panel.locator("[data-tc-code=loops]").inner_text()


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
    tree.locator("[data-tc-def=f][data-tc-state=analysed]").wait_for()
    app.caret(1, "def f")
    app.type_("irst")
    tree.locator("[data-tc-def=first][data-tc-state=analysed]").wait_for()
    assert tree.locator("[data-tc-def=f]").count() == 0
    tree.locator("[data-tc-def=bad][data-tc-state=failing]").wait_for()
    assert tree.locator("[data-tc-def=far]").count() == 1
    tree.locator("[data-tc-def=bad] button").click()
    app.page.locator(".jp-Cell.jp-mod-active", has_text="def bad").wait_for()


@pytest.mark.always
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
    cards.first.get_by_text("0 <= i < N - 1").wait_for()
    assert "model not found" not in app.page.inner_text("body")
    app.idle()
    # what the widgets of the page asked the kernel is answered before this
    app.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestCommInfo({}).then(() => null)"
    )
    assert "model not found" not in app.page.inner_text("body")
    assert cards.nth(1).inner_text().strip() == "kept"
    assert app.page.evaluate("() => window.hacked") is None
    assert cards.nth(1).locator("img[src]").count() == 0
    assert cards.nth(2).inner_text().strip() == "as text"
    assert "cannot be read" in cards.nth(3).inner_text()


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
    card.locator(".widget-slider").wait_for()
    assert card.get_by_text("static").is_hidden()
    app.page.evaluate(
        "() => { window.tcRestarted = window.jupyterapp.shell.currentWidget.sessionContext.restartKernel() }"
    )
    card.get_by_text("static").wait_for()
    assert card.locator(".widget-slider").count() == 0
    app.page.evaluate("() => window.tcRestarted.then(() => null)")


def test_a_flood_of_diagnostics_is_cut_and_counted(app: App) -> None:
    app.ready("flood.ipynb", GOOD + "\n# flood")
    app.editor(1).locator(".cm-lintRange-error").first.wait_for()
    app.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activateNextCell?.()")
    app.hover(1, "%%tc", "4500 more diagnostics are not drawn")
    app.caret(1, "X(i")
    app.type_("7")
    assert "X(i7 + 1)" in app.text(1)


def test_a_cell_of_a_megabyte_stays_usable(app: App) -> None:
    line = "    Y(i) = X(i + 1) * 2 + X(i)\n"
    big = "%%tc\ndef f(float(N) X) -> (Y) {\n" + line * (1_000_000 // len(line)) + "}"
    app.ready("big.ipynb", "x = 1", GOOD)
    app.focus(1)
    app.page.evaluate(
        "text => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.setSource(text)", big
    )
    app.editor(1).locator(".tok-meta").wait_for()
    app.editor(1).locator(".cm-lintRange-info").first.wait_for()
    app.panel().get_by_text("too large").first.wait_for()
    app.editor(1).locator(".cm-line").first.click()
    app.page.keyboard.press("End")
    app.type_(" --strict")
    assert app.text(1).startswith("%%tc --strict\n")
    # the other cells go on
    app.page.keyboard.press("Escape")
    app.page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }")
    app.caret(2, "X(i", after=False)
    app.type_("Q(i) + ")
    app.editor(2).locator(".cm-lintRange-error", has_text="Q").wait_for()


# the smallest contrast of what the front end draws, against the background behind it
CONTRAST = """selectors => {
    const rgb = css => (css.match(/[\\d.]+/g) ?? []).map(Number);
    const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = node => { for (let at = node; at; at = at.parentElement) { const c = rgb(getComputedStyle(at).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
    return [...document.querySelectorAll(selectors)].map(e => {
        const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }).reduce((a, b) => Math.min(a, b), 99);
}"""


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_themes(app: App, theme: str) -> None:
    app.ready("theme.ipynb", GOOD)
    app.theme(theme)
    app.focus(1)
    app.panel().get_by_text("0 <= i < N - 1").first.wait_for()
    assert app.page.evaluate(CONTRAST, "[data-tc-panel] td, [data-tc-panel] p, [data-tc-panel] button") >= 4.5
    # the tokens have the colours that the application gives to Python, which are weaker than 4.5 here and there
    assert app.page.evaluate(CONTRAST, f"{FRONT} .tc-editor [class*=tok-]") >= 2.5
    keyword = app.editor(1).locator(".tok-keyword").first.evaluate("e => getComputedStyle(e).color")
    plain = app.editor(1).evaluate("e => getComputedStyle(e).color")
    assert keyword != plain
    tip = app.hover(1, "i) = X", "told so").first
    assert app.page.evaluate(CONTRAST, ".cm-tooltip-hover, .cm-tooltip-hover *") >= 4.5
    assert tip.is_visible()
    app.theme("Light")


@pytest.mark.parametrize("mode", ["full", pytest.param("contentVisibility", marks=pytest.mark.slow)])
def test_three_hundred_cells_with_windowing(app: App, mode: str) -> None:
    cells = [START] + [GOOD.replace("def f", f"def f{i}") if i % 3 == 0 else f"x{i} = {i}" for i in range(299)]
    with app.setting("@jupyterlab/notebook-extension", "tracker", {"windowingMode": mode}):
        app.open(app.server.notebook("many.ipynb", cells))
        assert (
            app.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.notebookConfig.windowingMode")
            == mode
        )
        app.idle()
        app.run_and_wait(0)
        app.editor(1).locator(".tok-keyword").first.wait_for()
        app.command("tc-jupyter:show-inspector")
        app.page.wait_for_function(
            "() => document.querySelectorAll('[data-tc-inspector] [data-tc-state=analysed]').length === 100",
        )
        app.page.locator("[data-tc-inspector] [data-tc-def]").last.locator("button").click()
        active = app.page.locator(".jp-Cell.jp-mod-active", has_text="def f297")
        # with `contentVisibility` the cells come one after the other while the page is idle
        active.wait_for()
        active.locator(".tok-keyword").first.wait_for()
        app.page.locator("[data-tc-inspector] [data-tc-def=f0] button").click()
        app.page.locator(".jp-Cell.jp-mod-active", has_text="def f0").locator(".tok-keyword").first.wait_for()


def test_new_notebook_command(lab: App) -> None:
    lab.go(lab.server.url + "/lab?reset")
    lab.page.locator(".jp-LauncherCard", has_text="TC Notebook").first.click()
    lab.page.locator(".jp-Notebook .tok-keyword", has_text="def").first.wait_for()


def test_tc_file_is_coloured_and_checked(lab: App) -> None:
    (lab.server.folder / "demo.tc").write_text("def f(float(N) X) -> (Y) { Y(i) = X(i); }\n")
    lab.go(lab.server.url + "/lab/tree/demo.tc?reset")
    lab.page.locator(".jp-FileEditor .tok-keyword", has_text="def").wait_for()
    lab.page.locator(".jp-FileEditor .cm-lintRange-error").first.wait_for()
