"""The live views in the applications: what is drawn is what Python says, by mouse and by keyboard."""

from __future__ import annotations

import os
import re
import time
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


def clean(app: App) -> None:
    assert app.external() == []
    assert app.own_errors() == []


def test_iteration_space_by_mouse_and_keyboard(app: App) -> None:
    root = shown(app, "space.ipynb", "tc.view(conv, 'iteration_space', N=8, K=3)")
    assert dots(root) == expected_dots(8, 3)
    box = root.locator("[data-lattice]").bounding_box()
    from tc_jupyter.notebook.widgets.iteration_space import IterationSpace, Layout

    layout = Layout(IterationSpace(function(CONV), N=8, K=3).space())
    x, y = layout.place(4, 1, 0)
    app.page.mouse.move(box["x"] + x, box["y"] + y)
    readout = root.locator("[data-readout]")
    until(app.page, lambda: readout.inner_text() == "i = 4, k = 1: writes A(4); reads B(5); reads W(1)")
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
    box = root.locator("[data-lattice]").bounding_box()
    lab.page.mouse.move(box["x"] + x, box["y"] + y)
    until(lab.page, lambda: "reads B(70)" in root.locator("[data-readout]").inner_text())
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
    lab.command("docmanager:save")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    static = lab.page.locator("[data-tc-card-content=static] [data-tc-view=iteration_space]")
    static.wait_for(state="visible", timeout=30_000)
    assert dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(8, 3)
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    lab.open("restart.ipynb")
    static.wait_for(state="visible", timeout=30_000)
    assert dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(8, 3)
    assert lab.page.get_by_text(re.compile("model not found", re.I)).count() == 0
    clean(lab)
