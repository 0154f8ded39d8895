"""The live views in the applications: what is drawn is what Python says, by mouse and by keyboard."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from browser_app import App

SETUP = "%load_ext tc_jupyter\nimport tc_jupyter as tc, numpy as np"
CONV = "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }"
MAKE = f"conv = tc.compile('''{CONV}''').conv"


def function(text: str) -> Any:
    import tc_jupyter as tc

    return next(iter(tc.compile(text).values()))


def shown(app: App, name: str, source: str, make: str = MAKE) -> Any:
    """The view that a cell shows."""
    app.open(app.server.notebook(name, [f"{SETUP}\n{make}", source]))
    app.idle()
    app.run_and_wait(0)
    app.run_and_wait(1)
    root = app.page.locator(".tcw").first
    root.wait_for(timeout=30_000)
    return root


def shot(app: App, name: str) -> None:
    if os.environ.get("TC_SHOTS"):
        app.page.screenshot(path=os.path.join(os.environ["TC_SHOTS"], f"{app.kind}-{name}.png"))


def dots(root: Any) -> dict[int, tuple[int, str]]:
    paths = root.locator("[data-dots] path").evaluate_all(
        "list => list.map(p => [p.dataset.element, p.getAttribute('d'), p.getAttribute('stroke')])"
    )
    return {int(n): (path.count("M"), colour) for n, path, colour in paths}


def expected_dots(n: int, k: int) -> dict[int, tuple[int, str]]:
    from tc_jupyter.notebook.widgets.lattice import colour_of

    loops = [i + j for i in range(n - k + 1) for j in range(k)]
    return {e: (loops.count(e), colour_of(e)) for e in set(loops)}


def until(page: Any, test: Any, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it did not happen"
        page.wait_for_timeout(50)


def point(app: App, root: Any, x: float, y: float, said: str) -> None:
    """Move the pointer over a place of the lattice.

    The applications scroll and lay out after a cell has run; a place that was measured before that is another one when the pointer
    arrives, and the view rightly ignores the event that Chromium makes up for it. So: measure anew until the view answers.
    """

    def tried() -> bool:
        box = root.locator("[data-lattice]").bounding_box()
        app.page.mouse.move(box["x"] + x - 3, box["y"] + y)
        app.page.mouse.move(box["x"] + x, box["y"] + y)
        app.page.wait_for_timeout(100)
        return said in root.locator("[data-readout]").inner_text()

    until(app.page, tried)


def clean(app: App) -> None:
    assert app.external() == []
    assert app.own_errors() == []


def test_iteration_space_by_mouse_and_keyboard(app: App) -> None:
    root = shown(app, "space.ipynb", "tc.view(conv, 'iteration_space', N=8, K=3)")
    assert dots(root) == expected_dots(8, 3)
    from tc_jupyter.notebook.widgets.iteration_space import IterationSpace, Layout

    layout = Layout(IterationSpace(function(CONV), N=8, K=3).space())
    point(app, root, *layout.place(4, 1, 0), "i = 4, k = 1: writes A(4); reads B(5); reads W(1)")
    readout = root.locator("[data-readout]")
    lit = root.locator("[data-lit]").evaluate_all("l => l.map(g => [g.parentNode.dataset.tensor, g.dataset.lit])")
    assert sorted(lit) == [["A", "4"], ["B", "5"], ["W", "1"]]
    shot(app, "space")
    root.locator("[data-lattice]").focus()
    for key in ("Home", "ArrowRight", "ArrowDown"):
        app.page.keyboard.press(key)
    until(app.page, lambda: readout.inner_text().startswith("i = 1, k = 2: writes A(1); reads B(3)"))
    root.locator("[data-control='size:N']").focus()
    for _ in range(4):
        app.page.keyboard.press("ArrowRight")
    until(app.page, lambda: dots(root) == expected_dots(12, 3))
    assert root.locator("[data-field='size:N']").input_value() == "12"
    clean(app)


def test_many_points_on_a_canvas(lab: App) -> None:
    root = shown(lab, "canvas.ipynb", "tc.view(conv, 'iteration_space', N=300, K=100)")
    canvas = root.locator("canvas[data-points]")
    assert canvas.get_attribute("data-points") == str(201 * 100)
    from tc_jupyter.notebook.widgets.iteration_space import IterationSpace, Layout

    layout = Layout(IterationSpace(function(CONV), N=300, K=100).space())
    x, y = layout.place(30, 40, 0)
    pixel = canvas.evaluate(
        "(c, [x, y]) => Array.from(c.getContext('2d').getImageData(x, y, 1, 1).data)", [int(x), int(y)]
    )
    hue = int((30 + 40) * 137.508) % 360
    other = canvas.evaluate(
        "(c, css) => { const k = document.createElement('canvas').getContext('2d'); k.fillStyle = css; k.fillRect(0,0,1,1);"
        " return Array.from(k.getImageData(0,0,1,1).data); }",
        f"hsl({hue},62%,52%)",
    )
    assert all(abs(a - b) <= 2 for a, b in zip(pixel, other, strict=True))
    point(lab, root, x, y, "reads B(70)")
    field = root.locator("[data-field='size:N']")
    field.fill("2000000000000")
    field.press("Enter")
    until(lab.page, lambda: "whole number" in root.inner_text())
    field = root.locator("[data-field='size:N']")
    field.fill("1000000")
    field.press("Enter")
    until(lab.page, lambda: "thinned" in root.inner_text())
    shot(lab, "canvas")
    clean(lab)


def test_reload_and_restart_show_the_right_picture(lab: App) -> None:
    root = shown(lab, "restart.ipynb", "tc.view(conv, 'iteration_space', N=8, K=3)")
    root.locator("[data-control='size:N']").focus()
    lab.page.keyboard.press("ArrowRight")
    until(lab.page, lambda: dots(root) == expected_dots(9, 3))
    until(lab.page, lambda: dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(9, 3))
    assert root.locator("[data-control='size:N']").evaluate("e => e === document.activeElement")
    lab.command("docmanager:save")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    static = lab.page.locator("[data-tc-card-content=static] [data-tc-view=iteration_space]")
    static.wait_for(state="visible", timeout=30_000)
    assert dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(9, 3)
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    lab.open("restart.ipynb")
    static.wait_for(state="visible", timeout=30_000)
    assert dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(9, 3)
    assert lab.page.get_by_text(re.compile("model not found", re.I)).count() == 0
    clean(lab)


TWO = "def two(float(M, N) A) -> (C) {\n    B(i, j) = A(i, j) + 1\n    C(i, j) = B(i, j) * 3\n}"
MAKE_TWO = f"two = tc.compile('''{TWO}''').two"


def test_ranges_by_mouse_and_keyboard(app: App) -> None:
    root = shown(app, "ranges.ipynb", "tc.view(conv, 'ranges', N=8, K=3)")
    root.get_by_text("0 .. 5 (6)").first.wait_for()
    root.locator("[data-key='A.i']").focus()
    app.page.keyboard.press("Enter")
    root.locator("mark", has_text="B(i + k)").wait_for()
    assert root.locator("[data-key='A.i']").evaluate("b => b === document.activeElement")
    root.locator("[data-control='size:K']").focus()
    for _ in range(6):
        app.page.keyboard.press("ArrowRight")
    until(app.page, lambda: root.locator("[data-holds=true]").count() > 0 and "empty" in root.inner_text())
    app.page.keyboard.press("ArrowRight")
    until(app.page, lambda: root.locator("[data-holds=false]").count() > 0)
    shot(app, "ranges")
    clean(app)


def test_predicting_a_range(lab: App) -> None:
    root = shown(lab, "predict.ipynb", "tc.view(conv, 'ranges', predict=True)")
    field = root.locator("[data-control=guess]")
    field.fill("0, N")
    field.press("Enter")
    until(lab.page, lambda: "you say" in root.inner_text())
    field = root.locator("[data-control=guess]")
    field.fill("0, N - K + 1")
    field.press("Enter")
    until(lab.page, lambda: "✓ right" in root.inner_text())
    clean(lab)


def test_schedule_edits_by_mouse_and_keyboard(lab: App) -> None:
    root = shown(lab, "schedule.ipynb", "tc.view(two, 'schedule', M=4, N=4)", MAKE_TWO)
    python = root.locator("[data-python]")
    root.locator("[data-key='C[j]']").click()
    root.locator("[data-field=factor]").fill("2")
    root.locator("[data-field=factor]").press("Enter")
    root.locator("[data-control=apply]").click()
    until(lab.page, lambda: "split('C', 'j', factor=2)" in python.inner_text())
    root.locator("[data-control=primitive]").select_option(label="compute_at")
    root.locator("[data-control=other]").wait_for()
    root.locator("[data-control=stage]").select_option(label="B")
    until(lab.page, lambda: root.locator("[data-control=second]").count() == 1)
    root.locator("[data-control=second]").select_option(label="j.outer")
    root.locator("[data-control=apply]").focus()
    lab.page.keyboard.press("Enter")
    until(lab.page, lambda: "compute_at('B', 'C', 'j.outer')" in python.inner_text())
    f = function(TWO)
    bounds = f.schedule().split("C", "j", factor=2).compute_at("B", "C", "j.outer").bounds(M=4, N=4)
    said = root.locator("table[aria-label^='elements that every stage']").inner_text()
    need = bounds.stage("B")
    assert f"{need.visits}\t{need.elements}\t{need.hull}\t{need.tvm}" in said
    visit = root.locator("[data-control=visit]")
    visit.focus()
    lab.page.keyboard.press("ArrowRight")
    until(lab.page, lambda: "visit 2 of 8" in root.inner_text())
    assert root.locator("[data-exact]").get_attribute("data-exact") == str(need.elements_per_visit[1])
    shot(lab, "schedule")
    root.locator("[data-control=undo]").click()
    until(lab.page, lambda: "compute_at" not in python.inner_text())
    root.locator("[data-control=redo]").click()
    until(lab.page, lambda: "compute_at" in python.inner_text())
    root.locator("[data-control=primitive]").select_option(label="compute_inline")
    root.locator("[data-control=stage]").select_option(label="C")
    lab.page.wait_for_timeout(300)
    root.locator("[data-control=apply]").click()
    root.locator("[data-refused]").wait_for()
    clean(lab)


def test_code_and_benchmark(lab: App) -> None:
    root = shown(lab, "code.ipynb", "tc.view(two, 'code')", MAKE_TWO)
    made = root.locator("[data-listing=made] [data-line='2']").first
    made.hover()
    until(lab.page, lambda: root.locator("[data-listing=source] [data-line='2'][data-linked]").count() == 1)
    shot(lab, "code")
    root = shown(
        lab,
        "bench.ipynb",
        "tc.view(two, 'benchmark', M=64, N=64, seconds=0.5, against={'numpy': lambda a: (a + 1) * 3})",
        MAKE_TWO,
    )
    root.locator("[data-control=run]").click()
    root.locator("svg[data-chart=roofline]").wait_for(timeout=60_000)
    until(lab.page, lambda: root.locator("[data-control=run]").is_enabled(), 60)
    assert "✓ equal" in root.inner_text()
    assert root.locator("[data-samples]").count() == 2
    clean(lab)


def test_a_sweep_is_drawn_saved_as_files_and_kept_in_the_notebook(app: App) -> None:
    source = "v = tc.view(conv, 'benchmark', N=64, K=4, seconds=0.5)\nv"
    root = shown(app, "sweep.ipynb", source)
    root.locator("[data-control=sweep]").select_option(label="over N")
    root.locator("[data-field=to]").fill("1024")
    root.locator("[data-field=to]").press("Enter")
    root.locator("[data-control=steps]").focus()
    for _ in range(2):
        app.page.keyboard.press("ArrowLeft")
    until(app.page, lambda: root.locator("[data-field=steps]").input_value() == "3")
    root.locator("[data-control=run]").focus()
    app.page.keyboard.press("Enter")
    line = root.locator("[data-sweep=conv][data-count='3']")
    line.wait_for(timeout=60_000)
    until(app.page, lambda: root.locator("[data-control=run]").is_enabled(), 60)
    rows = root.locator("table[aria-label='median times over N'] tbody tr")
    assert [row.split("\t")[0] for row in rows.all_inner_texts()] == ["64", "256", "1024"]
    shot(app, "sweep")
    for kind, begins in (("csv", b"name,median"), ("svg", b"<svg xmlns"), ("png", b"\x89PNG")):
        with app.page.expect_download() as found:
            root.locator(f"[data-save={kind}]").click()
        assert found.value.suggested_filename == f"benchmark.{kind}"
        content = Path(found.value.path()).read_bytes()
        assert content.startswith(begins)
        if os.environ.get("TC_SHOTS"):
            Path(os.environ["TC_SHOTS"], f"{app.kind}-saved.{kind}").write_bytes(content)
    app.command("docmanager:save")
    app.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    static = app.page.locator("[data-tc-card-content=static] [data-sweep=conv]")
    static.wait_for(state="visible", timeout=30_000)
    clean(app)


def test_live_card_opens_views_and_reopens_static(app: App) -> None:
    app.open(app.server.notebook("card.ipynb", ["%load_ext tc_jupyter", f"%%tc\n{CONV}"]))
    app.idle()
    app.run_and_wait(0)
    app.run_and_wait(1)
    live = app.page.locator("[data-tc-card-content=live] .tcw")
    live.wait_for(timeout=30_000)
    live.locator("[data-key='conv.iteration_space']").click()
    until(app.page, lambda: len(dots(live)) > 0)
    live.locator("[data-lattice]").focus()
    app.page.keyboard.press("End")
    until(app.page, lambda: "writes A(" in live.locator("[data-readout]").inner_text())
    live.locator("[data-key='conv.schedule']").click()
    live.locator("[data-python]").wait_for()
    shot(app, "card")
    app.command("docmanager:save")
    app.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    app.page.locator("[data-tc-card-content=static] [data-tc=card]").wait_for(state="visible", timeout=30_000)
    assert app.page.get_by_text(re.compile("model not found", re.I)).count() == 0
    clean(app)


CONTRAST = """(root) => {
    const rgb = css => (css.match(/[\\d.]+/g) ?? []).map(Number);
    const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    let at = root, back = [0, 0, 0, 0];
    while (at && (back.length === 4 && back[3] === 0)) { back = rgb(getComputedStyle(at).backgroundColor); at = at.parentElement; }
    const [a, b] = [light(rgb(getComputedStyle(root).color)), light(back)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


def test_dark_theme_narrow_window_and_no_kernel(lab: App) -> None:
    root = shown(lab, "dark.ipynb", "tc.view(conv, 'iteration_space', N=8, K=3)")
    assert root.evaluate(CONTRAST) > 7
    lab.page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    lab.page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    until(lab.page, lambda: root.evaluate(CONTRAST) > 7)
    assert root.locator("[data-readout]").evaluate(CONTRAST) > 7
    shot(lab, "dark")
    lab.page.evaluate(
        "() => window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' })"
    )
    lab.page.set_viewport_size({"width": 520, "height": 800})
    assert dots(root) == expected_dots(8, 3)
    shot(lab, "narrow")
    clean(lab)


def test_a_busy_kernel_is_told(lab: App) -> None:
    lab.open(
        lab.server.notebook(
            "busy.ipynb",
            [f"{SETUP}\n{MAKE}", "tc.view(conv, 'iteration_space', N=8, K=3)", "import time; time.sleep(6)"],
        )
    )
    lab.idle()
    lab.run_and_wait(0)
    lab.run_and_wait(1)
    root = lab.page.locator(".tcw").first
    root.wait_for(timeout=30_000)
    lab.run(2)
    lab.page.wait_for_timeout(300)
    root.locator("[data-control='size:N']").focus()
    lab.page.keyboard.press("ArrowRight")
    until(lab.page, lambda: "kernel is busy" in root.inner_text() or dots(root) == expected_dots(9, 3))
    until(lab.page, lambda: dots(root) == expected_dots(9, 3))
    assert "kernel is busy" not in root.inner_text()
    clean(lab)


def test_tuning_and_partitions(lab: App) -> None:
    root = shown(lab, "tuning.ipynb", "tc.view(conv, 'tuning', N=1000, K=5, seconds=3)")
    root.locator("[data-control=run]").click()
    root.locator("[data-trial]").first.wait_for(timeout=60_000)
    until(lab.page, lambda: root.locator("[data-control=run]").is_enabled(), 60)
    assert "candidates; best" in root.inner_text()
    shot(lab, "tuning")
    sac = "int[.] f() { return { iv -> 1 | [0] <= iv < [5]; iv -> 2 | [6] <= iv < [10] }; }"
    root = shown(
        lab, "partitions.ipynb", "tc.view(f, 'partitions')", f"f = tc.compile('''{sac}''', language='sac').f\nf()"
    )
    assert root.locator("[data-partition]").count() == 10
    shot(lab, "partitions")
    clean(lab)
