"""How a notebook with 50 live cards feels in Chromium: `python tests/browser/fifty.py [CARDS]`.

JupyterLab opens a notebook of so many `%%tc` cells and runs them all; every card is alive and none has a view open. Printed are: the time
until all are drawn; the longest and the sum of the long tasks (50 ms or more of the page's main thread) while the notebook is scrolled
from end to end; the time from a key to the frame that shows it in a Python cell below them; the time from a step of a slider to the
changed picture of an open view; the frames per second while that slider is dragged; and, after the kernel
has ended, the time until the saved notebook is drawn again.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from browser_app import App
from conftest import CHROMIUM, FLAGS, _serve, _stop
from latency import LISTEN, p95
from playwright.sync_api import Page, sync_playwright

CELL = "%%tc\ndef conv{n}(float(N) B, float(K) W) -> (A) {{ A(i) +=! B(i + k) * W(k) }}"
KEYS = "y = len([1, 2, 3]) + 4"
DRAG = "big = tc.view(conv0, 'iteration_space', N=300, K=160)\nbig"
WATCH = """() => {
    window.tcLong = [];
    new PerformanceObserver(list => window.tcLong.push(...list.getEntries().map(e => e.duration))).observe({ entryTypes: ['longtask'] });
}"""
SCROLL = """async () => {
    const panel = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer');
    window.tcLong.length = 0;
    for (let at = 0; at < panel.scrollHeight; at += 300) {
        panel.scrollTop = at;
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
    }
}"""
# the slider moves at every frame, as a pointer moves it; a frame counts when it is drawn
FRAMES = """async ([root, steps]) => {
    const slider = root.querySelector("[data-control='size:N']");
    const begin = performance.now(), answers = new Set();
    for (let n = 0; n < steps; n++) {
        slider.value = String(200 + n);
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise(requestAnimationFrame);
        answers.add(root.dataset.answer);
    }
    const seconds = (performance.now() - begin) / 1000;
    return [steps / seconds, answers.size / seconds];
}"""
STEP = """async ([root, value]) => {
    const slider = root.querySelector("[data-control='size:N']");
    const before = root.dataset.answer;
    const begin = performance.now();
    slider.value = String(value);
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    while (root.dataset.answer === before) await new Promise(requestAnimationFrame);
    return performance.now() - begin;
}"""


def run_all(app: App, cards: int) -> float:
    """Seconds until the last cell of a notebook has run and its cards are drawn."""
    begin = time.monotonic()
    app.command("notebook:run-all-cells")
    app.page.wait_for_function(
        "n => window.jupyterapp.shell.currentWidget.content.widgets[n].model.executionCount !== null",
        arg=cards + 1,
        timeout=300_000,
    )
    app.cell(cards).scroll_into_view_if_needed()
    app.cell(cards).locator("[data-tc-card-content=live] .tcw").wait_for(timeout=60_000)
    return time.monotonic() - begin


def typed(app: App, cell: int) -> list[float]:
    """Milliseconds from each key to the frame that shows it."""
    app.cell(cell).scroll_into_view_if_needed()
    app.focus(cell)
    times: list[float] = []
    for key in KEYS:
        app.page.keyboard.press("Space" if key == " " else key)
        times.append(app.page.evaluate("() => window.tcShown"))
    app.page.keyboard.press("Escape")
    return times


def told(what: str, times: list[float]) -> None:
    print(f"{what}: median {statistics.median(times):.0f} ms, 95th percentile {p95(times):.0f} ms", flush=True)


def measure(page: Page, app: App, cards: int) -> None:
    """Print what a person would notice."""
    cells = [CELL.format(n=n) for n in range(cards)]
    name = app.server.notebook(
        f"cards{cards}.ipynb", ["%load_ext tc_jupyter\nimport tc_jupyter as tc", *cells, "x = 1", DRAG]
    )
    app.open(name)
    app.idle()
    page.evaluate(LISTEN)
    page.evaluate(WATCH)
    print(f"{cards} cards: all run and drawn after {run_all(app, cards):.1f} s", flush=True)
    page.evaluate(SCROLL)
    long = page.evaluate("() => window.tcLong")
    print(
        f"scrolled from end to end: {len(long)} long tasks, the longest {max(long, default=0):.0f} ms, together {sum(long):.0f} ms"
    )
    told("a key in the Python cell below", typed(app, cards + 1))
    card = app.cell(1).locator("[data-tc-card-content=live] .tcw")
    app.cell(1).scroll_into_view_if_needed()
    card.locator("[data-key='conv0.ranges']").click()
    card.get_by_text("at these sizes").first.wait_for()
    root = card.element_handle()
    told("a step of a slider to the changed ranges", [page.evaluate(STEP, [root, 9 + n]) for n in range(20)])
    drag(page, app, cards + 2)
    app.command("docmanager:save")
    page.wait_for_timeout(2000)
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    saved = json.loads((app.server.folder / name).read_text())["cells"]
    mime = "application/vnd.tc-jupyter.v1+json"
    sizes = [
        len(json.dumps(out["data"][mime])) for cell in saved for out in cell["outputs"] if mime in out.get("data", {})
    ]
    print(f"saved JSON of a card: at most {max(sizes) / 1000:.1f} kB")
    app.leave()
    begin = time.monotonic()
    app.open(name)
    app.cell(1).locator("[data-tc-card-content=static] [data-tc=card]").wait_for(timeout=60_000)
    print(
        f"the saved notebook is drawn {time.monotonic() - begin:.1f} s after the page was asked for, JupyterLab included"
    )


def drag(page: Page, app: App, cell: int) -> None:
    """Frames per second while a slider is dragged, of the page and of new pictures."""
    app.cell(cell).scroll_into_view_if_needed()
    root = app.cell(cell).locator(".tcw").first
    root.wait_for()
    handle: Any = root.element_handle()
    page.evaluate(FRAMES, [handle, 10])
    frames, pictures = page.evaluate(FRAMES, [handle, 90])
    points = root.locator("canvas[data-points]").get_attribute("data-points")
    print(
        f"a slider dragged over {points} points: {frames:.0f} frames per second, {pictures:.0f} new pictures per second"
    )


def main(cards: int) -> int:
    process, server = _serve(Path(tempfile.mkdtemp()), "lab")
    try:
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            measure(page, App("lab", server, page), cards)
            browser.close()
    finally:
        _stop(process)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
