"""Large letters and small windows: no line of a source breaks under its marks, every text of a picture is as large as the text around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser_app import App
from test_widgets import CLIPPED, CONV, EVERY, MAKE, MAKE_STENCIL, SAC, TEXTS, TWO

SETUP = "%load_ext tc_jupyter\nimport tc_jupyter as tc, numpy as np"
THEMES = ("@jupyterlab/apputils-extension", "themes")
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


def test_marks_stand_under_long_lines(app: App) -> None:
    with app.setting(*THEMES, {"overrides": LARGE}):
        shown_fails(app, "long.ipynb")


def test_marks_stand_under_long_lines_without_the_front_end(plain: App) -> None:
    with plain.setting(*THEMES, {"overrides": LARGE}):
        shown_fails(plain, "long-plain.ipynb")
    plain.errors.clear()  # nobody listens to the comm


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


# texts of pictures: those that are smaller than 12 of 13 parts of the text around, or than 12 pixels, and those that overlap
LETTERS = """root => [...root.querySelectorAll('svg:not([aria-hidden])')].flatMap(svg => {
    const shown = svg.getBoundingClientRect(), units = Number(svg.getAttribute('viewBox').split(' ')[2]);
    const em = parseFloat(getComputedStyle(svg).fontSize), texts = [...svg.querySelectorAll('text')].filter(e => e.getClientRects().length);
    const small = texts.map(e => [parseFloat(getComputedStyle(e).fontSize) * shown.width / units, e.textContent])
        .filter(([size]) => size < em * 12 / 13 - 0.1 || size < 11.9);
    const boxes = texts.filter(e => !/^[●■▲◆▼✚]$/.test(e.textContent)).map(e => [e.getBoundingClientRect(), e.textContent]);
    const over = boxes.flatMap(([a, s], n) => boxes.slice(n + 1).filter(([b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.25 * a.height
    ).map(([, t]) => ['overlap', s, t]));
    return [...small, ...over];
})"""
MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"
FAR = "def far(float(channel) X) -> (Y) { Y(channels) = X(channels * 1000) where channels in 0:channel / 1000 }"
MORE = [
    ("three", "tc.view(mm, 'iteration_space', M=12, N=11, K=10)"),
    ("panels", "p = tc.view(mm, 'iteration_space', M=4, N=5, K=12)\np.picture.apply({'z': 2})\np"),
    ("far", "tc.view(far, 'iteration_space', channel=90_000)"),
    ("wide", "tc.view(conv, 'ranges', N=1_000_003, K=1_000_005)"),
    ("row", "tc.view(conv, 'ranges', N=60, K=62)"),
    ("default", "tc.view(mm, 'schedule', M=64, N=64, K=64)"),
    (
        "sweep",
        "q = tc.view(mm, 'benchmark', M=8, N=8, K=8, seconds=0.1)\n"
        "q.picture.apply({'sweep': 'N', 'to': 70, 'steps': 9})\nq.picture.run()\nq",
    ),
]


@pytest.mark.parametrize("size", [13, 16, 22])
def test_pictures_are_as_large_as_the_text_around_them(lab: App, size: int) -> None:
    """No letter is small, no two texts overlap, nothing is clipped: at every size, in a narrow and in a wide window."""
    defs = {"mm": MM, "two": TWO, "far": FAR}
    make = [SETUP, MAKE, MAKE_STENCIL, *(f"{name} = tc.compile('''{text}''').{name}" for name, text in defs.items())]
    make.append(f"f = tc.view(tc.compile('''{SAC}''', language='sac').f, 'partitions')")
    views = [*EVERY, *MORE]
    with lab.setting(*THEMES, {"overrides": dict.fromkeys(LARGE, f"{size}px")}):
        lab.open(lab.server.notebook(f"letters-{size}.ipynb", ["\n".join(make), *(source for _, source in views)]))
        lab.idle()
        lab.command("application:toggle-left-area")
        for number in range(len(views) + 1):
            lab.run_and_wait(number)
        wrong: dict[tuple[str, int], Any] = {}
        for width in (1400, 320):
            lab.page.set_viewport_size({"width": width, "height": 900})
            for number, (name, _) in enumerate(views, 1):
                lab.cell(number).scroll_into_view_if_needed()
                root = lab.cell(number).locator(".tcw").first
                root.wait_for()
                root.evaluate("r => r.querySelectorAll('details').forEach(d => { d.open = true; })")
                wrong[name, width] = root.evaluate(LETTERS) + root.evaluate(CLIPPED)
        lab.page.set_viewport_size({"width": 1400, "height": 900})
        assert {place: found for place, found in wrong.items() if found} == {}


# what makes a panel scroll to the side
BEYOND = """panel => panel.scrollWidth <= panel.clientWidth ? [] : [...panel.querySelectorAll('*')]
    .filter(e => e.getBoundingClientRect().right > panel.getBoundingClientRect().right && !e.parentElement.closest('pre, .tc-scroll'))
    .map(e => e.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("size", [13, 22])
def test_the_side_panel_is_as_large_as_the_code(lab: App, size: int) -> None:
    with lab.setting(*THEMES, {"overrides": dict.fromkeys(LARGE, f"{size}px")}):
        lab.open(lab.server.notebook(f"panel-{size}.ipynb", ["%load_ext tc_jupyter", f"%%tc\n{CONV}"]))
        lab.idle()
        lab.run_and_wait(0)
        lab.run_and_wait(1)
        lab.focus(1)
        for tab in ("Ranges", "Preconditions", "Iteration space", "Schedule", "Code"):
            panel = lab.panel(tab)
            panel.locator("table, svg, pre").first.wait_for()
            assert panel.evaluate("p => parseFloat(getComputedStyle(p).fontSize)") == size
            assert panel.evaluate(BEYOND) == [], f"{tab} scrolls to the side"
            assert panel.evaluate(LETTERS) == []
            assert panel.evaluate(CLIPPED) == []


@pytest.mark.parametrize("theme", ["Light", "Dark", "Dark High Contrast"])
def test_messages_are_readable_in_every_theme(lab: App, theme: str) -> None:
    with lab.setting(*THEMES, {"theme": f"JupyterLab {theme}"}):
        lab.open(lab.server.notebook("themes.ipynb", [SETUP, FAILS[0]]))
        lab.idle()
        lab.run_and_wait(0)
        lab.run_and_wait(1)
        shown = lab.cell(1).locator("pre:visible", has_text="-->").first
        shown.wait_for()
        assert "warning" in shown.inner_text()
        assert [text for ratio, text in shown.evaluate(TEXTS) if ratio < 4.5] == []
