"""Draw the pictures of the README: cells as JupyterLab shows them, in Chromium.

    python examples/make_pictures.py                   # writes examples/*.png
    python examples/make_pictures.py --sheet FOLDER    # every view in every theme, large and narrow, on one page: FOLDER/index.html

Two pictures are of cells below, the others of live views in the example notebooks, which are run for it from top to bottom. Needs the
extra `test` and Chromium. The notebooks, the settings and the server's folders are temporary copies.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

import nbformat
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
CELLS = [
    "%load_ext tc_jupyter\nimport numpy as np",
    "%%tc\ndef blur(float(H, W) Image, float(K) Kernel) -> (Out) {\n"
    "    Row(y, x) +=! Image(y, x + k) * Kernel(k)\n"
    "    Out(y, x) +=! Row(y + k, x) * Kernel(k)\n}",
    "blur(np.ones((480, 640), np.float32), np.ones(900, np.float32))",
]
PICTURES = {"cell.png": 1, "call_error.png": 2}
VIEWS = {
    "seeing_ranges.ipynb": {
        "iteration_space.png": "tc.view(conv, 'iteration_space'",
        "ranges.png": "short = tc.view(window, 'ranges'",
        "schedule.png": "s = stencil.schedule()",
    },
    "benchmarking.ipynb": {"benchmark.png": "swept = tc.view(matmul"},
}
"""Of each notebook: the picture, and how the source of its cell begins."""

SHEET = {
    "card": "%%tc\ndef conv(float(N) B, float(K) W) -> (A) {\n    A(i) +=! B(i + k) * W(k)\n}",
    "long card": "%%tc\ndef rope(float(B, T, H) X, float(T, H) Cos, float(T, H) Sin, float(H) G, float eps) -> (Y) {\n"
    "    S(b, t) +=! X(b, t, h) * X(b, t, h)\n    R(b, t) = rsqrt(S(b, t) / H + eps)\n    N(b, t, h) = X(b, t, h) * R(b, t) * G(h)\n"
    "    Y(b, t, h) = N(b, t, h) * Cos(t, h) + N(b, t, (h + 1) % H) * Sin(t, h)\n}",
    "given schedule": "tc.card(conv.with_schedule(conv.schedule().split('A', 'i', 64).parallel('A', 'i.outer')))",
    "error": "%%tc\ndef wrong(float(N, K) A, float(K, M) B) -> (C, S) {\n    C(i, j) = A(i, k) * B(k, j)\n    S(j) +=! b(k, j)\n}",
    "long help": "%%tc\ndef late(float(N) X) -> (Y) { Y(i) = Y(i - 1) + X(i) }",
    "refused call": "conv(np.ones(3, np.float32), np.ones(9, np.float32))",
    "ranges": "tc.view(conv, 'ranges', N=8, K=3)",
    "empty range": "tc.view(conv, 'ranges', N=3, K=6)",
    "iteration_space": "tc.view(conv, 'iteration_space', N=8, K=3)",
    "rows and columns": "v = tc.view(blur, 'iteration_space', statement='Out', H=6, W=8)\nv.picture.apply({'colour': 1})\nv",
    "panels": "v = tc.view(blur, 'iteration_space', statement='Sum', H=5, W=6)\nv.picture.apply({'z': 2})\nv",
    "arrows": "v = tc.view(stencil, 'iteration_space', N=9)\nv.picture.apply({'arrows': True})\nv",
    "many points": "tc.view(conv, 'iteration_space', N=300, K=100)",
    "schedule": "s = stencil.schedule().split('O', 'i', factor=3).compute_at('T', 'O', 'i.outer')\ntc.view(stencil, 'schedule', schedule=s, N=14)",
    "code": "tc.view(conv, 'code', kind='cuda')",
    "benchmark": "v = tc.view(conv, 'benchmark', K=9, seconds=3, sweep={'N': [4096, 16384, 65536]}, "
    "against={'numpy': \"np.convolve(B, W[::-1], 'valid')\"})\nv.picture.run()\nv",
    "tuning": "v = tc.view(conv, 'tuning', seconds=8, N=65536, K=9)\nv.picture.run()\nv",
    "partitions": "tc.view(edge, 'partitions', rank=2)",
    "gradient": "conv.vjp()",
    "ordered": "%%tc\ndef cumsum(float(N, M) X) -> (Y) { Y(i, j) = (Y(i - 1, j) else 0) + X(i, j) along i }",
    "ordered space": "v = tc.view(cumsum, 'iteration_space', N=5, M=8)\nv.picture.apply({'arrows': True})\nv",
    "complex": "%%tc\ndef turn(complex64(N) Z, complex64 w) -> (Y, P) {\n    Y(i) = Z(i) * w\n    P(i) = re(Y(i)) * re(Y(i))\n}",
    "histogram": "tc.view(histogram, 'iteration_space', N=24)",
    "ragged": "tc.view(running, 'iteration_space', N=9)",
    "reducers": "%%tc\ndef best(float(N, K) X) -> (V, P, S) {\n    V(n), P(n) argmax=! X(n, k)\n    S(n) +=! X(n, k) * X(n, k)\n}",
    "sac fold": "%%sac\ndouble total(double[*] a) { return with { (0 * shape(a) <= iv < shape(a)): a[iv]; }: fold(+, 0.0); }",
}
WIDTH = 838
"""Pixels that GitHub gives a picture of the README: at this width letters are as large as in JupyterLab, 13 pixels."""
BEFORE = [
    "%load_ext tc_jupyter\nimport numpy as np\nimport tc_jupyter as tc",
    "%%tc -q --allow TC321\ndef stencil(float(N) X) -> (O) {\n    T(i) = X(i - 1) + X(i + 1)\n    O(i) = T(i) + T(i + 2)\n}\n"
    "def blur(float(H, W) X) -> (Out) {\n    Sum(y, x) +=! X(y + r, x) where r in 0:3\n"
    "    Out(y, x) = Sum(y, x) + Sum(y, x + 1)\n}\n"
    "def histogram(uint8(N) X) -> (H) { H(X(i) / 16) +=! 1 where i in 0:N }\n"
    "def running(float(N) X) -> (Y) { Y(i) +=! X(k) where i in 0:N, k in 0:i + 1 }",
    "%%sac -q\nint[*] edge(int[*] a) { return { iv -> 1 | 0 * shape(a) + 1 <= iv < shape(a) - 1; iv -> a[iv] }; }",
]
LOOKS = {
    "light": ("JupyterLab Light", 1, 1000),
    "dark": ("JupyterLab Dark", 1, 1000),
    "high contrast": ("JupyterLab Dark High Contrast", 1, 1000),
    "200 %": ("JupyterLab Light", 2, 1400),
    "small": ("JupyterLab Light", 11 / 13, 1000),
    "large": ("JupyterLab Dark", 22 / 13, 1200),
    "narrow": ("JupyterLab Light", 1, 520),
}
"""Of each column of the sheet: theme, size of fonts as a multiple of the usual one, width of the window in pixels."""
AROUND = 98
"""Pixels that JupyterLab has around a cell."""


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def write(path: Path, sources: list[str]) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)


def serve(folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--ServerApp.token=",
    ]
    command += [
        f"--ServerApp.root_dir={folder}",
        "--LabApp.news_url=",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
    ]
    command += ["--LabApp.expose_app_in_browser=True"]
    private = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "RUNTIME")}
    settings = folder / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    settings.joinpath("notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false", "checkForUpdates": False})
    )
    built = HERE.parent / "tc_jupyter" / "labextension"
    if built.exists():  # the front end of this checkout, also where the package is not installed
        extensions = folder / "data" / "labextensions"
        extensions.mkdir(parents=True)
        shutil.copytree(built, extensions / "tc-jupyter")
        private["JUPYTER_DATA_DIR"] = str(folder / "data")
        private["JUPYTER_PREFER_ENV_PATH"] = "0"  # not a front end that is installed in the environment
    environment = {**os.environ, **private, "PYTHONPATH": str(HERE.parent), "IPYTHONDIR": str(folder / "ipython")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(url: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).read()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def draw(page: Page, url: str) -> None:
    page.goto(f"{url}/lab/tree/cells.ipynb?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell .cm-content", timeout=60_000)
    page.get_by_text("| Idle").wait_for(timeout=60_000)  # the kernel is connected
    page.keyboard.press("Control+b")
    for number in range(len(CELLS)):
        cell = page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{number}']").first
        cell.locator(".cm-content").first.click()
        page.keyboard.press("Control+Enter")
        cell.locator(".jp-InputPrompt", has_text=str(number + 1)).first.wait_for(timeout=60_000)
        if number:
            cell.locator(".jp-OutputArea-output").first.wait_for(timeout=60_000)
    page.mouse.move(5, 5)
    page.locator(".jp-Notebook .jp-Cell[data-windowed-list-index='0'] .jp-InputPrompt").first.click()
    for name, number in PICTURES.items():
        cell = page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{number}']").first
        cell.scroll_into_view_if_needed()
        box = cell.bounding_box()
        assert box is not None
        # without the frame of the selected cell above
        clip = {"x": box["x"], "y": box["y"] + 3, "width": box["width"], "height": box["height"] - 3}
        page.screenshot(path=HERE / name, clip=clip)
        print(f"{name}: {(HERE / name).stat().st_size // 1000} kB")


RUN_ALL = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    await panel.sessionContext.ready;
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
}"""
SHOW = """async begins => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const index = notebook.widgets.findIndex(cell => cell.model.sharedModel.getSource().startsWith(begins));
    notebook.activeCellIndex = index;
    await notebook.scrollToItem(index, 'start');
    return index;
}"""


def draw_views(page: Page, url: str, notebook: str, pictures: dict[str, str]) -> None:
    page.goto(f"{url}/lab/tree/{notebook}?reset")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell .cm-content", timeout=60_000)
    page.get_by_text("| Idle").wait_for(timeout=60_000)
    page.keyboard.press("Control+b")
    page.evaluate(RUN_ALL)
    for name, begins in pictures.items():
        index = page.evaluate(SHOW, begins)
        assert index >= 0, f"{notebook} has no cell {begins!r}"
        view = page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{index}'] .tcw").first
        view.wait_for(timeout=60_000)
        page.mouse.move(5, 5)
        page.wait_for_timeout(500)
        view.screenshot(path=HERE / name)
        print(f"{name}: {(HERE / name).stat().st_size // 1000} kB")


def named(view: str, look: str) -> str:
    """The file of a view in a look."""
    return f"{view}-{look}.png".replace(" ", "")


def write_sheet(page: Page, folder: Path, url: str, out: Path, looks: list[str]) -> None:
    """Draw every view in every look, and a page that shows all of them."""
    out.mkdir(parents=True, exist_ok=True)
    sources = [*BEFORE, *SHEET.values()]
    write(folder / "sheet.ipynb", sources)
    themes = (
        folder
        / "config"
        / "lab"
        / "user-settings"
        / "@jupyterlab"
        / "apputils-extension"
        / "themes.jupyterlab-settings"
    )
    rows = "<tr><th></th>" + "".join(f"<th>{look}</th>" for look in looks) + "</tr>"
    for look in looks:
        theme, scale, width = LOOKS[look]
        sizes = {
            "code-font-size": f"{13 * scale:.0f}px",
            "content-font-size1": f"{14 * scale:.0f}px",
            "ui-font-size1": f"{13 * scale:.0f}px",
        }
        themes.write_text(json.dumps({"theme": theme, "overrides": sizes}))
        page.set_viewport_size({"width": width, "height": round(2400 * max(1, scale))})
        page.goto(f"{url}/lab/tree/sheet.ipynb?reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell .cm-content", timeout=60_000)
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.ready.then(() => null)")
        page.keyboard.press("Control+b")
        for index, source in enumerate(sources):
            page.evaluate(SHOW, source)
            page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell').then(() => null)")
            if index >= len(BEFORE):
                cell = page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{index}']").first
                output = cell.locator(".jp-OutputArea-output").first
                output.wait_for(timeout=60_000)
                page.get_by_text("| Idle").wait_for(timeout=60_000)
                page.wait_for_timeout(1000)
                output.screenshot(path=out / named(list(SHEET)[index - len(BEFORE)], look))
    for name in SHEET:
        cells = "".join(
            f'<td><img src="{quote(named(name, look))}" alt="{name}, {look}" width="480"></td>' for look in looks
        )
        rows += f"<tr><th>{name}</th>{cells}</tr>"
    (out / "index.html").write_text(f"<!doctype html><title>Views</title><table>{rows}</table>", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the pictures of the README, or a sheet of all views.")
    parser.add_argument("--sheet", type=Path, metavar="FOLDER", help="every view in every theme, for looking at")
    parser.add_argument("--look", action="append", choices=LOOKS, help="with --sheet: this column alone")
    asked = parser.parse_args()
    sheet = asked.sheet
    chromium = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder, port = Path(name), free_port()
        write(folder / "cells.ipynb", CELLS)
        server = serve(folder, port)
        try:
            wait_for(f"http://127.0.0.1:{port}/api")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1000, "height": 1200}, device_scale_factor=1.5)
            if sheet is not None:
                write_sheet(page, folder, f"http://127.0.0.1:{port}", sheet, asked.look or list(LOOKS))
                return
            page.set_viewport_size({"width": WIDTH + AROUND, "height": 1200})
            draw(page, f"http://127.0.0.1:{port}")
            page = browser.new_page(viewport={"width": 1000, "height": 2200})  # shown alone, each pixel as it is
            for notebook, pictures in VIEWS.items():
                shutil.copy(HERE / notebook, folder / notebook)
                draw_views(page, f"http://127.0.0.1:{port}", notebook, pictures)
            browser.close()
        finally:
            server.terminate()
            server.wait(20)


if __name__ == "__main__":
    main()
