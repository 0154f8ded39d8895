"""Large letters and small windows: no line of a source breaks under its marks, every text of a picture is as large as the text around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser_app import App

SETUP = "%load_ext tc_jupyter\nimport tc_jupyter as tc, numpy as np"
LARGE = {"code-font-size": "22px", "content-font-size1": "22px", "ui-font-size1": "22px"}
LONG = (
    "def conv(float(N, Channels) Background, float(K, Channels, Filters) Weights) -> (Activations) "
    "{ Activations(i, f) = Background(i + k, c) * Weights(k, c, f) * 2 + Background(i, c) }"
)
FAILS = [
    f"%%tc\n{LONG}",
    f"%%tc\n{LONG.replace(') = B', ') +=! B')}",
    "conv(np.ones((3, 4), np.float32), np.ones((9, 4, 5), np.float32))",
    f"%%tc --quiet\n{LONG.replace(') = B', ') +=! B').replace('Background(i, c)', 'Background(i - 3, c)')}",
]

# how far each mark of a text is from its character, in letters to the right and lines down
MARKS = """root => [...root.querySelectorAll('pre')].flatMap(pre => {
    const texts = [], walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
    for (let n = walker.nextNode(); n; n = walker.nextNode()) for (let k = 0; k < n.length; k++) texts.push([n.data[k], n, k]);
    const box = ([, node, at]) => { const r = document.createRange(); r.setStart(node, at); r.setEnd(node, at + 1); return r.getBoundingClientRect(); };
    const found = [];
    let start = 0, before = 0;
    const all = texts.map(([c]) => c).join('');
    for (const line of all.split('\\n')) {
        if (/^ *[|] [ ^-]*[\\^]/.test(line)) {
            for (let k = 0; k < line.length && ' |^-'.includes(line[k]); k++) if (line[k] === '^') {
                const mark = box(texts[start + k]), over = box(texts[before + k]);
                found.push([(mark.x - over.x) / mark.width, (mark.y - over.y) / mark.height]);
            }
        }
        before = start;
        start += line.length + 1;
    }
    return found;
})"""


def assert_marks_stand_under_their_characters(root: Any, what: str) -> None:
    found = root.evaluate(MARKS)
    assert found, f"no mark in {what}"
    assert all(abs(across) < 0.1 and 0.9 < down < 2 for across, down in found), (what, found)


def shown_fails(app: App, name: str) -> None:
    """A notebook whose cells show messages about long lines, each examined."""
    app.open(app.server.notebook(name, [SETUP, *FAILS]))
    app.idle()
    app.run_and_wait(0)
    for number, source in enumerate(FAILS, 1):
        app.run_and_wait(number)
        if number != 2:
            app.cell(number).locator("pre:visible", has_text="-->").first.wait_for()
            assert_marks_stand_under_their_characters(app.cell(number), source)


THEMES = ("@jupyterlab/apputils-extension", "themes")


def test_marks_stand_under_long_lines(app: App) -> None:
    with app.setting(*THEMES, {"overrides": LARGE}):
        shown_fails(app, "long.ipynb")


def test_marks_stand_under_long_lines_without_the_front_end(plain: App) -> None:
    with plain.setting(*THEMES, {"overrides": LARGE}):
        shown_fails(plain, "long-plain.ipynb")


@pytest.mark.parametrize("kind", ["tc_html", "html"])
def test_marks_stand_under_long_lines_of_an_exported_page(lab: App, tmp_path: Path, kind: str) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    from nbconvert.exporters import HTMLExporter

    from tc_jupyter.notebook.export import TcHTMLExporter

    new = nbformat.v4
    book = new.new_notebook(cells=[new.new_code_cell(source) for source in (SETUP, *FAILS)])
    nbclient.NotebookClient(book, timeout=300, allow_errors=True).execute()
    page, _ = (TcHTMLExporter() if kind == "tc_html" else HTMLExporter()).from_notebook_node(book)
    saved = tmp_path / "long.html"
    saved.write_text(page)
    lab.leave()
    lab.page.route("http*://*/**", lambda route: route.abort())
    try:
        lab.page.goto(f"file://{saved}")
        lab.page.add_style_tag(content="body { --jp-code-font-size: 22px !important; }")
        for place in lab.page.locator("pre", has_text="-->").all():
            assert_marks_stand_under_their_characters(place.locator(".."), place.inner_text())
    finally:
        lab.page.unroute("http*://*/**")
        lab.errors.clear()  # those of a page of nbconvert without a network
        lab.requests.clear()
        lab.leave()
