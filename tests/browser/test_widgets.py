"""The live views in the applications: what is drawn is what Python says, by mouse and by keyboard."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
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
    root.wait_for()
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
    from tc_jupyter.notebook.widgets.colours import Colours

    colour_of = Colours(1, n).of
    loops = [i + j for i in range(n - k + 1) for j in range(k)]
    return {e: (loops.count(e), colour_of(e)) for e in set(loops)}


def point(app: App, root: Any, x: float, y: float, said: str) -> None:
    """Move the pointer over a place of the lattice.

    The applications scroll and lay out after a cell has run; a place that was measured before that is another one when the pointer
    arrives, and the view rightly ignores the event that Chromium makes up for it. So: measure anew until the view answers.
    """

    def move() -> None:
        lattice = root.locator("[data-lattice]")
        box, unit = lattice.bounding_box(), lattice.evaluate("e => parseFloat(getComputedStyle(e).fontSize) / 13")
        app.page.mouse.move(box["x"] + x * unit - 3, box["y"] + y * unit)
        app.page.mouse.move(box["x"] + x * unit, box["y"] + y * unit)

    app.again(move, lambda: said in root.locator("[data-readout]").inner_text(), f"a readout that says {said!r}")


def code_lines(kind: str) -> list[int | None]:
    from tc_jupyter.notebook.widgets.code import Code

    picture = Code(function(BOTH), kind)
    return picture.lines(picture.text() or "")


def clean(app: App) -> None:
    assert app.external() == []
    assert app.own_errors() == []


@pytest.mark.always
def test_iteration_space_by_mouse_and_keyboard(app: App) -> None:
    root = shown(app, "space.ipynb", "tc.view(conv, 'iteration_space', N=8, K=3)")
    app.until(lambda: dots(root) == expected_dots(8, 3))
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
    app.until(lambda: readout.inner_text().startswith("i = 1, k = 2: writes A(1); reads B(3)"))
    named = "l => l.map(g => g.getAttribute('aria-label'))"
    assert root.locator(".tcw-group").evaluate_all(named) == ["sizes", "axes", "look"]
    root.locator("[data-control=swap]").focus()
    app.page.keyboard.press("Enter")
    app.until(lambda: root.locator("[data-control=x]").input_value() == "1")
    app.page.keyboard.press("Enter")
    app.until(lambda: root.locator("[data-control=x]").input_value() == "0")
    root.locator("[data-control='size:N']").focus()
    for _ in range(4):
        app.page.keyboard.press("ArrowRight")
    app.until(lambda: dots(root) == expected_dots(12, 3))
    assert root.locator("[data-field='size:N']").input_value() == "12"
    # a word of the trade is reached by Tab, and then says what it means
    for _ in range(12):
        app.page.keyboard.press("Tab")
        if app.page.evaluate("() => document.activeElement.tagName") == "ABBR":
            break
    word = root.locator("abbr:focus")
    assert word.get_attribute("title")
    assert word.evaluate("e => getComputedStyle(e, '::after').content") != "none"
    clean(app)


def test_many_points_on_a_canvas(lab: App) -> None:
    root = shown(lab, "canvas.ipynb", "tc.view(conv, 'iteration_space', N=300, K=100)")
    from tc_jupyter.notebook.widgets.colours import Colours

    canvas = root.locator("canvas[data-points]")
    assert canvas.get_attribute("data-points") == str(201 * 100)
    from tc_jupyter.notebook.widgets.iteration_space import IterationSpace, Layout

    layout = Layout(IterationSpace(function(CONV), N=300, K=100).space())
    x, y = layout.place(30, 40, 0)
    pixel = canvas.evaluate(
        "(c, [x, y]) => Array.from(c.getContext('2d').getImageData(x, y, 1, 1).data)", [int(x), int(y)]
    )
    other = canvas.evaluate(
        "(c, css) => { const k = document.createElement('canvas').getContext('2d'); k.fillStyle = css; k.fillRect(0,0,1,1);"
        " return Array.from(k.getImageData(0,0,1,1).data); }",
        Colours(1, 300).of(30 + 40),
    )
    assert all(abs(a - b) <= 2 for a, b in zip(pixel, other, strict=True))
    point(lab, root, x, y, "reads B(70)")
    field = root.locator("[data-field='size:N']")
    field.fill("2000000000000")
    field.press("Enter")
    lab.until(lambda: "whole number" in root.inner_text())
    field = root.locator("[data-field='size:N']")
    field.fill("1000000")
    field.press("Enter")
    lab.until(lambda: "thinned" in root.inner_text())
    shot(lab, "canvas")
    clean(lab)


def test_reload_and_restart_show_the_right_picture(lab: App) -> None:
    root = shown(lab, "restart.ipynb", "tc.view(conv, 'iteration_space', N=8, K=3)")
    root.locator("[data-control='size:N']").focus()
    lab.page.keyboard.press("ArrowRight")
    lab.until(lambda: dots(root) == expected_dots(9, 3))
    lab.until(lambda: dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(9, 3))
    assert root.locator("[data-control='size:N']").evaluate("e => e === document.activeElement")
    lab.command("docmanager:save")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    static = lab.page.locator("[data-tc-card-content=static] [data-tc-view=iteration_space]")
    static.wait_for(state="visible")
    lab.until(lambda: dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(9, 3))
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    lab.open("restart.ipynb")
    static.wait_for(state="visible")
    lab.until(lambda: dots(lab.page.locator("[data-tc-card-content=static]")) == expected_dots(9, 3))
    assert lab.page.get_by_text(re.compile("model not found", re.I)).count() == 0
    clean(lab)


TWO = "def two(float(M, N) A) -> (C) {\n    B(i, j) = A(i, j) + 1\n    C(i, j) = B(i, j) * 3\n}"
STENCIL = "def st(float(N) X) -> (O) {\n    T(i) = X(i)\n    O(i) = T(i) + T(i + 1) + T(i + 2)\n}"
MAKE_STENCIL = f"st = tc.compile('''{STENCIL}''').st"
BOTH = TWO.replace("(C)", "(B, C)")  # results are not computed inside one another
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
    app.until(lambda: root.locator("[data-holds=true]").count() > 0 and "empty" in root.inner_text())
    app.page.keyboard.press("ArrowRight")
    app.until(lambda: root.locator("[data-holds=false]").count() > 0)
    assert root.locator("[data-witness=i]").get_attribute("aria-label").startswith("range of i: it would begin at 0")
    assert root.locator("math").first.text_content() == "0≤i<N−K+1"
    shot(app, "ranges")
    clean(app)


def test_a_card_that_asks_first(app: App) -> None:
    source = ["%load_ext tc_jupyter\n%config TcMagics.predict = True", f"%%tc\n{CONV}"]
    app.open(app.server.notebook("predict.ipynb", source))
    app.idle()
    app.run_and_wait(0)
    app.run_and_wait(1)
    root = app.page.locator("[data-tc-card-content=live] .tcw")
    root.wait_for()
    assert "N - K + 1" not in root.inner_text()
    for answer, said in (
        ("0, N", "you say"),
        ("0, N - K + 1", "range of k"),
        ("0, K", "shape of"),
        ("N - K + 1", "predicted"),
    ):
        field = root.locator("[data-control=guess]")
        field.focus()
        app.page.keyboard.press("Control+a")
        app.page.keyboard.type(answer)
        app.page.keyboard.press("Enter")
        app.until(lambda said=said: said in root.inner_text())
    assert "3 of 3 predicted, 4 answers" in root.inner_text()
    assert "checked at call" in root.inner_text()
    clean(app)


def test_schedule_edits_by_mouse_and_keyboard(app: App) -> None:
    root = shown(app, "schedule.ipynb", "tc.view(two, 'schedule', M=4, N=4)", MAKE_TWO)
    python = root.locator("[data-python]")
    root.locator("[data-key='C[j]']").click()
    root.locator("[data-field=factor]").fill("2")
    root.locator("[data-field=factor]").press("Enter")
    root.locator("[data-control=apply]").click()
    app.until(lambda: "split('C', 'j', factor=2)" in python.inner_text())
    root.locator("[data-control=primitive]").select_option(label="compute_at")
    root.locator("[data-control=other]").wait_for()
    root.locator("[data-control=stage]").select_option(label="B")
    app.until(lambda: root.locator("[data-control=second]").count() == 1)
    root.locator("[data-control=second]").select_option(label="j.outer")
    root.locator("[data-control=apply]").focus()
    app.page.keyboard.press("Enter")
    app.until(lambda: "compute_at('B', 'C', 'j.outer')" in python.inner_text())
    f = function(TWO)
    from tc_jupyter.notebook.widgets.execution import execution

    bounds = f.schedule().split("C", "j", factor=2).compute_at("B", "C", "j.outer").bounds(M=4, N=4)
    said = root.locator("table[aria-label^='elements that every stage']").inner_text()
    need = bounds.stage("B")
    assert f"{need.visits}\t{need.elements}\t{need.hull}\t{need.tvm}" in said
    visit = root.locator("[data-control=visit]")
    visit.focus()
    app.page.keyboard.press("ArrowRight")
    app.until(lambda: "visit 2 of 8" in root.inner_text())
    assert root.locator("[data-exact]").get_attribute("data-exact") == str(need.elements_per_visit[1])
    shot(app, "schedule")
    found = execution(bounds, "B")
    step = root.locator("[data-control=time]")
    step.focus()
    app.page.keyboard.press("End")
    app.until(lambda: f"step {found.steps} of {found.steps}" in root.inner_text())
    assert f"1 point ({', '.join(map(str, found.points[-1].tolist()))})" in root.inner_text()
    root.locator("[data-control=undo]").click()
    app.until(lambda: "compute_at" not in python.inner_text())
    root.locator("[data-control=redo]").click()
    app.until(lambda: "compute_at" in python.inner_text())
    for control, label in (("primitive", "compute_inline"), ("stage", "C")):
        before = root.get_attribute("data-answer")
        root.locator(f"[data-control={control}]").select_option(label=label)
        app.until(lambda before=before: root.get_attribute("data-answer") != before, f"an answer to {label}")
    root.locator("[data-control=apply]").click()
    root.locator("[data-refused]").wait_for()
    root.locator("[data-control=plain]").click()
    app.until(lambda: "compute_at" not in python.inner_text())
    root = shown(app, "refused.ipynb", "tc.view(st, 'schedule', N=9)", MAKE_STENCIL)
    root.locator("[data-control=primitive]").select_option(label="compute_with")
    root.locator("[data-control=second]").wait_for()
    root.locator("[data-control=apply]").click()
    ringed = root.locator("[data-refused-points='2'] [data-point]")
    ringed.first.wait_for()
    assert ringed.evaluate_all("l => l.map(c => c.dataset.point)") == ["0", "1"]
    clean(app)


def test_code_and_benchmark(app: App) -> None:
    root = shown(app, "code.ipynb", "tc.view(two, 'code')", MAKE_TWO.replace(TWO, BOTH))
    made = root.locator("[data-listing=made] [data-line='2']").first
    linked = root.locator("[data-listing=source] [data-line='2'][data-linked]")
    app.again(lambda: (app.page.mouse.move(5, 5), made.hover()), lambda: linked.count() == 1, "the line of the cell")
    app.page.mouse.move(5, 5)
    made.focus()
    for _ in range(2):  # the first line that is made is of this statement: up to the cell, there to the line before
        app.page.keyboard.press("ArrowUp")
    app.until(lambda: linked.count() == 0)
    shown_kind = root.locator("[data-control=kind]")
    for label, kind in (("assembly", "asm"), ("PTX", "ptx"), ("CUDA C++", "cuda")):
        shown_kind.select_option(label=label)
        count = len([n for n in code_lines(kind) if n is not None])
        app.until(lambda count=count: root.locator("[data-listing=made] [data-line]").count() == count)
    assert "registers" in root.inner_text()
    root.locator("[data-execution]").first.wait_for()
    shot(app, "code")
    root = shown(
        app,
        "bench.ipynb",
        "tc.view(two, 'benchmark', M=64, N=64, seconds=0.5, against={'numpy': lambda a: (a + 1) * 3})",
        MAKE_TWO,
    )
    root.locator("[data-control=run]").click()
    root.locator("svg[data-chart=roofline]").wait_for()
    app.until(lambda: root.locator("[data-control=run]").is_enabled())
    assert "✓ equal" in root.inner_text()
    assert root.locator("[data-samples]").count() == 2
    clean(app)


def test_a_sweep_is_drawn_saved_as_files_and_kept_in_the_notebook(app: App) -> None:
    source = "v = tc.view(conv, 'benchmark', N=64, K=4, seconds=0.5)\nv"
    root = shown(app, "sweep.ipynb", source)
    root.locator("[data-control=sweep]").select_option(label="over N")
    root.locator("[data-field=to]").fill("1024")
    root.locator("[data-field=to]").press("Enter")
    root.locator("[data-control=steps]").focus()
    for _ in range(2):
        app.page.keyboard.press("ArrowLeft")
    app.until(lambda: root.locator("[data-field=steps]").input_value() == "3")
    root.locator("[data-control=run]").focus()
    app.page.keyboard.press("Enter")
    line = root.locator("[data-sweep=conv][data-count='3']")
    line.wait_for()
    app.until(lambda: root.locator("[data-control=run]").is_enabled())
    rows = root.locator("table[aria-label='shortest and median times over N'] tbody tr")
    assert [row.split("\t")[0] for row in rows.all_inner_texts()] == ["64", "256", "1024"]
    shot(app, "sweep")
    for kind, begins in (("csv", b"name,best,median"), ("svg", b"<svg xmlns"), ("png", b"\x89PNG")):
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
    static.wait_for(state="visible")
    clean(app)


def test_live_card_opens_views_and_reopens_static(app: App) -> None:
    app.open(app.server.notebook("card.ipynb", ["%load_ext tc_jupyter", f"%%tc\n{CONV}"]))
    app.idle()
    app.run_and_wait(0)
    app.run_and_wait(1)
    live = app.page.locator("[data-tc-card-content=live] .tcw")
    live.wait_for()
    live.locator("[data-key='conv.iteration_space']").click()
    app.until(lambda: len(dots(live)) > 0)
    live.locator("[data-lattice]").focus()
    app.page.keyboard.press("End")
    app.until(lambda: "writes A(" in live.locator("[data-readout]").inner_text())
    live.locator("[data-key='conv.schedule']").click()
    live.locator("[data-python]").wait_for()
    shot(app, "card")
    app.command("docmanager:save")
    app.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    app.page.locator("[data-tc-card-content=static] [data-tc=card]").wait_for(state="visible")
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
    letters = "e => parseFloat(getComputedStyle(e).fontSize) / parseFloat(getComputedStyle(e.closest('.tcw')).fontSize)"
    assert root.locator("[data-lattice] svg").first.evaluate(letters) > 1.2, "a picture grows with the free width"
    lab.theme("Dark")
    lab.until(lambda: root.evaluate(CONTRAST) > 7)
    assert root.locator("[data-readout]").evaluate(CONTRAST) > 7
    shot(lab, "dark")
    lab.theme("Light")
    lab.page.set_viewport_size({"width": 520, "height": 800})
    lab.until(lambda: dots(root) == expected_dots(8, 3))
    lab.until(
        lambda: root.locator("[data-lattice] svg").first.evaluate(letters) < 1.2, "and is small where there is none"
    )
    shot(lab, "narrow")
    clean(lab)


def test_a_busy_kernel_is_told(lab: App) -> None:
    lab.open(
        lab.server.notebook(
            "busy.ipynb",
            [f"{SETUP}\n{MAKE}", "tc.view(conv, 'iteration_space', N=8, K=3)", lab.blocking("busy-view")],
        )
    )
    lab.idle()
    lab.run_and_wait(0)
    lab.run_and_wait(1)
    root = lab.page.locator(".tcw").first
    root.wait_for()
    lab.run(2)
    lab.cell(2).locator(".jp-InputPrompt", has_text="[*]:").wait_for()
    root.locator("[data-control='size:N']").focus()
    lab.page.keyboard.press("ArrowRight")
    lab.until(lambda: "kernel is busy" in root.inner_text() or dots(root) == expected_dots(9, 3))
    lab.release("busy-view")
    lab.until(lambda: dots(root) == expected_dots(9, 3))
    assert "kernel is busy" not in root.inner_text()
    clean(lab)


def test_tuning_and_partitions(app: App) -> None:
    root = shown(app, "tuning.ipynb", "tc.view(conv, 'tuning', N=1000, K=5, seconds=600)")
    root.locator("[data-control=run]").click()
    root.locator("[data-trial]").first.wait_for()
    root.locator("[data-control=stop]").click()
    app.until(lambda: root.locator("[data-control=run]").is_enabled())
    assert "candidates; best" in root.inner_text()
    shot(app, "tuning")
    sac = "int[.] f() { return { iv -> 1 | [0] <= iv < [5]; iv -> 2 | [6] <= iv < [10] }; }"
    root = shown(
        app, "partitions.ipynb", "tc.view(f, 'partitions')", f"f = tc.compile('''{sac}''', language='sac').f\nf()"
    )
    assert root.locator("[data-partition]").count() == 10
    shot(app, "partitions")
    clean(app)


EDGE = "int[*] edge(int[*] a) { return { iv -> 1 | 0 * shape(a) + 1 <= iv < shape(a) - 1; iv -> a[iv] }; }"


def test_an_open_rank_is_chosen_by_mouse_and_keyboard(app: App) -> None:
    """The letters of the cells are where the function says: 1 inside, what was there at the edge."""
    np = pytest.importorskip("numpy")
    import tc_jupyter as tc

    edge = tc.compile(EDGE, language="sac").edge
    app.open(app.server.notebook("ranks.ipynb", ["%load_ext tc_jupyter", f"%%sac\n{EDGE}"]))
    app.idle()
    app.run_and_wait(0)
    app.run_and_wait(1)
    live = app.page.locator("[data-tc-card-content=live] .tcw")
    live.wait_for()
    live.locator("[data-key='edge.partitions']").click()

    def cells() -> list[list[str]]:
        found = "l => l.map(r => [r.dataset.partition, r.nextElementSibling.textContent])"
        return live.locator("[data-partition]").evaluate_all(found)

    def expected(*extents: int) -> list[list[str]]:
        return [["0", "A"] if inside else ["1", "B"] for inside in edge(np.zeros(extents, np.int32)).ravel()]

    app.until(lambda: cells() == expected(8))
    rank = live.locator("[data-control=rank]")
    rank.focus()
    app.page.keyboard.press("ArrowRight")
    app.until(lambda: cells() == expected(8, 8))
    assert rank.evaluate("e => e === document.activeElement")
    columns = live.locator("[data-control='size:a_1']")

    def to_five() -> None:
        columns.focus()  # again: the page of Notebook takes the focus once when it has loaded, however late
        for _ in range(int(columns.input_value()) - 5):
            app.page.keyboard.press("ArrowLeft")

    app.again(to_five, lambda: cells() == expected(8, 5), "five columns")
    shot(app, "ranks")
    box = rank.bounding_box()
    app.page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)  # the left end is rank 0: one cell
    app.until(lambda: cells() == expected())
    field = live.locator("[data-field=rank]")
    for typed in ("-2", "99999999999999", ""):
        field.fill(typed)
        field.press("Enter")
        app.until(lambda: "a rank is a whole number from 0 to 8" in live.inner_text())
        field.fill("0")
        field.press("Enter")
        app.until(lambda: "a rank is" not in live.inner_text())
    field.fill("3")
    field.press("Enter")
    app.until(lambda: "drawn at [.., .., 4]" in live.inner_text())
    clean(app)


FIFTY = [f"%%tc\n{CONV.replace('conv', f'conv{n}')}" for n in range(50)]


def test_fifty_cards(app: App) -> None:
    """All are drawn, alive and from the file; a page with them still answers to keys."""
    app.open(app.server.notebook("fifty.ipynb", ["%load_ext tc_jupyter", *FIFTY, "x = 1"]))
    app.idle()
    app.command("notebook:run-all-cells")
    app.page.wait_for_function("() => document.querySelectorAll('.jp-InputPrompt').length > 3")
    last = app.cell(51).locator(".jp-InputPrompt")
    app.until(lambda: (last.scroll_into_view_if_needed(), "52" in last.inner_text())[1])
    for number in (50, 25, 1):
        app.cell(number).scroll_into_view_if_needed()
        live = app.cell(number).locator("[data-tc-card-content=live] .tcw")
        live.wait_for()
        live.locator(f"[data-key='conv{number - 1}.ranges']").click()
        live.get_by_text("at these sizes").first.wait_for()
    app.command("docmanager:save")
    clean(app)
    app.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    app.open("fifty.ipynb")
    app.errors.clear()  # of widgets that were still loading when the page was left
    for number in (1, 25, 50):
        app.cell(number).scroll_into_view_if_needed()
        app.cell(number).locator("[data-tc-card-content=static] [data-tc=card]").wait_for()
    app.cell(51).scroll_into_view_if_needed()
    app.focus(51)
    app.page.keyboard.press("End")
    app.page.keyboard.type(" + 41")
    app.until(lambda: app.text(51) == "x = 1 + 41")
    clean(app)


TEXTS = """(root) => {
    const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
    const rgb = css => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = '#000'; pen.fillStyle = css; pen.fillRect(0, 0, 1, 1); const d = pen.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
    const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(k => a * top[k] + (1 - a) * below[k]); };
    const backs = at => { const list = []; for (let e = at; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length && (c[3] ?? 1) > 0) { list.push(c); if ((c[3] ?? 1) === 1) break; } } return list.reverse().reduce((below, c) => over(c, below), [255, 255, 255]); };
    const found = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let n = walker.nextNode(); n; n = walker.nextNode()) {
        const e = n.parentElement;
        if (!n.data.trim() || e.closest('[aria-hidden=true], style, option, :disabled') || !e.getClientRects().length) continue;
        if (e.closest('g[data-ink]')) continue; // on a disc: DISCS
        let opacity = 1;
        for (let a = e; a; a = a.parentElement) opacity *= Number(getComputedStyle(a).opacity);
        const back = backs(e), style = getComputedStyle(e);
        const own = rgb(e.namespaceURI.endsWith('svg') ? style.fill : style.color);
        const front = over([...own.slice(0, 3), (own[3] ?? 1) * opacity], back);
        const [a, b] = [light(front), light(back)];
        found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), n.data.trim().slice(0, 40)]);
    }
    return found;
}"""
# the contrast of the digit on each disc with the disc
DISCS = """root => {
    const light = css => { const [r, g, b] = [1, 3, 5].map(at => parseInt(css.slice(at, at + 2), 16) / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const ink = { '#000': 0, '#fff': 1 };
    return [...root.querySelectorAll('g[data-ink] text')].map(text => {
        const back = light(root.querySelector(`[data-element="${text.textContent}"]`).getAttribute('stroke')), front = ink[text.parentNode.getAttribute('fill')];
        return (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
    });
}"""
EVERY = [
    ("ranges", "tc.view(conv, 'ranges', N=3, K=6)"),
    ("space", "tc.view(conv, 'iteration_space', N=8, K=3)"),
    ("arrows", "v = tc.view(st, 'iteration_space', N=9)\nv.picture.apply({'arrows': True})\nv"),
    ("canvas", "tc.view(conv, 'iteration_space', N=300, K=100)"),
    ("schedule", "tc.view(conv, 'schedule', N=8, K=3)"),
    ("code", "tc.view(conv, 'code')"),
    ("tuning", "tc.view(conv, 'tuning')"),
    ("partitions", "f"),
    ("benchmark", "b = tc.view(conv, 'benchmark', N=64, K=4, seconds=0.2)\nb.picture.run()\nb"),
]
SAC = "int[.] f() { return { iv -> 1 | [0] <= iv < [5]; iv -> 2 | [6] <= iv < [10] }; }"
# texts and lines that leave their picture, and pictures that are drawn smaller than they were made
CLIPPED = """root => [...root.querySelectorAll('svg:not([aria-hidden])')].flatMap(svg => {
    const box = svg.getBoundingClientRect();
    const found = [...svg.querySelectorAll('text, path, rect, circle')].filter(e => e.getClientRects().length).filter(e => {
        const r = e.getBoundingClientRect();
        return r.left < box.left - 3 || r.right > box.right + 3 || r.top < box.top - 3 || r.bottom > box.bottom + 3;
    });
    const shrunk = box.width > 0 && box.width < parseFloat(svg.getAttribute('width')) * parseFloat(getComputedStyle(svg).fontSize) - 1 ? ['shrunk'] : [];
    return [...shrunk, ...found.map(e => e.outerHTML.slice(0, 120))];
})"""


@contextmanager
def themed(app: App, theme: str) -> Iterator[None]:
    """The application in a theme; a page that stays is light again afterwards."""
    if theme == "dark":
        app.theme("Dark")
    yield
    if theme == "dark":
        app.theme("Light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_picture_is_said_in_words_reached_by_keys_and_readable(app: App, theme: str) -> None:
    """Contrast, words, focus, reduced motion, nothing clipped: every view, in both applications and both themes."""
    cells = [
        f"{SETUP}\n{MAKE}\n{MAKE_STENCIL}\nf = tc.view(tc.compile('''{SAC}''', language='sac').f, 'partitions')",
        *(source for _, source in EVERY),
    ]
    app.page.emulate_media(reduced_motion="reduce")
    app.open(app.server.notebook(f"every-{theme}.ipynb", cells))
    app.idle()
    with themed(app, theme):
        for number in range(len(cells)):
            app.run_and_wait(number)
        for number, (name, _) in enumerate(EVERY, 1):
            examine(app, number, name)
            shot(app, f"every-{theme}-{name}")
    clean(app)


def examine(app: App, number: int, name: str) -> None:
    """What holds for the view in every cell."""
    app.cell(number).scroll_into_view_if_needed()
    root = app.cell(number).locator(".tcw").first
    root.wait_for()
    root.evaluate("r => r.querySelectorAll('details').forEach(d => { d.open = true; })")
    unsaid = root.locator("svg:not([aria-label]):not([aria-hidden]), canvas:not([aria-label]):not([aria-hidden])")
    assert unsaid.count() == 0, name
    assert root.locator("table, [data-python], [data-listing], [data-tc-words]").count() > 0, name
    faint = [text for ratio, text in root.evaluate(TEXTS) if ratio < 4.5]
    assert faint == [], (name, faint)
    assert all(ratio >= 4.5 for ratio in root.evaluate(DISCS)), name
    assert root.evaluate(CLIPPED) == [], name
    moving = "l => l.filter(e => getComputedStyle(e).transitionDuration !== '0s' || getComputedStyle(e).animationName !== 'none').length"
    assert root.locator("*").evaluate_all(moving) == 0, name
    control = root.locator("input, select, button:not([disabled]), [tabindex='0']").first
    if control.count():
        seen = "e => e.matches(':focus-visible') && getComputedStyle(e).outlineStyle !== 'none'"

        def focused() -> bool:
            app.page.keyboard.press("Tab")  # keys are in use, not the pointer
            control.focus()
            return control.evaluate(seen)

        app.until(focused, f"focus in {name}")


def test_large_programs_and_a_narrow_window_degrade_in_words(lab: App) -> None:
    names = "abcdefgh"
    eight = f"def all8(float({', '.join(names.upper())}) X) -> (Y) {{ Y(a, b) +=! X({', '.join(names)}) }}"
    chain = "\n".join(f"T{n + 1}(i) = T{n}(i) + 1" for n in range(30))
    make = f"e = tc.compile('''{eight}''').all8\ng = tc.compile('''def g(float(N) T0) -> (T30) {{ {chain} }}''').g"
    views = [f"tc.view({f}, '{v}')" for f in "eg" for v in ("ranges", "iteration_space", "schedule")]
    lab.open(lab.server.notebook("large.ipynb", [f"{SETUP}\n{make}", *views]))
    lab.idle()
    for number in range(len(views) + 1):
        lab.run_and_wait(number)
    lab.command("application:toggle-left-area")
    lab.page.set_viewport_size({"width": 320, "height": 700})
    for number in range(1, len(views) + 1):
        lab.cell(number).scroll_into_view_if_needed()
        root = lab.cell(number).locator(".tcw").first
        root.wait_for()
        lab.until(lambda root=root: len(root.inner_text()) > 100, f"view {number}")
        assert "failed" not in root.inner_text()
        assert root.evaluate(CLIPPED) == []
        field = root.locator("[data-field^='size:']").first
        for typed, refused in (("1000000000", False), ("-5", True), ("99999999999999", True), ("", True)):
            before = root.get_attribute("data-answer")
            field.fill(typed)
            field.press("Enter")
            lab.until(
                lambda root=root, before=before: root.get_attribute("data-answer") != before, f"an answer to {typed!r}"
            )
            assert ("whole number" in root.inner_text()) == refused, f"{typed!r} in view {number}"
            assert "this view failed" not in root.inner_text()
    shot(lab, "large-narrow")
    lab.page.set_viewport_size({"width": 1400, "height": 900})
    clean(lab)


def test_a_dead_kernel_is_told_and_the_last_state_stays(lab: App) -> None:
    root = shown(lab, "dead.ipynb", "tc.view(conv, 'iteration_space', N=8, K=3)")
    root.locator("[data-control='size:N']").focus()
    lab.page.keyboard.press("ArrowRight")
    lab.until(lambda: dots(root) == expected_dots(9, 3))
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    drawn = lab.page.locator("[data-tc-card-content]:visible")
    lab.until(lambda: dots(drawn) == expected_dots(9, 3))
    live = lab.page.locator("[data-tc-card-content=live] [data-control='size:N']")
    if live.count():
        live.focus()
        lab.page.keyboard.press("ArrowRight")
        lab.until(
            lambda: (
                "no kernel" in lab.page.locator(".tcw-said").inner_text()
                or "busy" in lab.page.locator(".tcw-said").inner_text()
            ),
        )
    lab.until(lambda: dots(drawn) == expected_dots(9, 3))
    clean(lab)


def test_without_widgets_the_static_view_is_there(lab: App) -> None:
    hide = "import sys\nsys.modules['anywidget'] = sys.modules['ipywidgets'] = None\n"
    lab.open(
        lab.server.notebook(
            "bare.ipynb", [hide + SETUP + "\n" + MAKE, "tc.view(conv, 'iteration_space', N=8, K=3)", f"%%tc\n{CONV}"]
        )
    )
    lab.idle()
    for number in range(3):
        lab.run_and_wait(number)
    static = lab.page.locator("[data-tc-card-content=static]")
    static.nth(1).wait_for()
    lab.until(lambda: dots(static.first) == expected_dots(8, 3))
    assert lab.page.locator(".tcw").count() == 0
    assert lab.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    clean(lab)


@pytest.mark.parametrize("kind", ["tc_html", "html", "html of a notebook that nbconvert ran"])
def test_an_exported_page_is_complete_without_a_network(lab: App, tmp_path: Path, kind: str) -> None:
    """Plain HTML asks for require.js and MathJax, which are nbconvert's own; cards and views need neither."""
    nbformat = pytest.importorskip("nbformat")
    from nbconvert.exporters import HTMLExporter

    from tc_jupyter.notebook.export import TcHTMLExporter

    cells = ["tc.view(conv, 'iteration_space', N=8, K=3)", f"%%tc\n{CONV}"]
    if kind.endswith("ran"):
        nbclient = pytest.importorskip("nbclient")
        new = nbformat.v4
        book = new.new_notebook(cells=[new.new_code_cell(source) for source in (f"{SETUP}\n{MAKE}", *cells)])
        nbclient.NotebookClient(book, timeout=300).execute()
    else:
        shown(lab, "export.ipynb", cells[0])
        lab.command("docmanager:save")
        path = lab.server.folder / "export.ipynb"
        lab.until(lambda: "data-dots" in path.read_text())
        book = nbformat.read(path, as_version=4)
    page, _ = (TcHTMLExporter() if kind == "tc_html" else HTMLExporter()).from_notebook_node(book)
    saved = tmp_path / "export.html"
    saved.write_text(page)
    asked: list[str] = []
    lab.leave()
    lab.errors.clear()
    lab.page.route("http*://*/**", lambda route: (asked.append(route.request.url), route.abort()))
    try:
        lab.page.goto(f"file://{saved}")
        lab.until(lambda: dots(lab.page) == expected_dots(8, 3))
        assert lab.page.locator("[data-tc=card]").count() == (1 if kind.endswith("ran") else 0)
        assert all(re.search("mathjax|require", url) or url.startswith(lab.server.url) for url in asked), asked
        assert lab.page.locator("button, input, .tcw").count() == 0
        assert [e for e in lab.errors if "ERR_FAILED" not in e and not re.search("MathJax|require", e)] == []
        lab.errors.clear()  # those of a page of nbconvert without a network
        lab.requests.clear()
    finally:
        lab.page.unroute("http*://*/**")


@pytest.mark.parametrize("which", ["code-font-size", "ui-font-size1", "content-font-size1"])
def test_a_card_and_an_error_follow_the_font_sizes_of_the_reader(lab: App, which: str) -> None:
    """A card is as large as the text around it (other content is a pixel larger than code), its rules are those of the theme, and no line of an error breaks inside a word."""
    chosen = {"theme": "JupyterLab Dark High Contrast", "overrides": {which: "22px"}}
    with lab.setting("@jupyterlab/apputils-extension", "themes", chosen):
        cells = [SETUP, f"%%tc\n{CONV}", CONV.replace("def", "%%tc\ndef").replace("+=!", "="), f"{MAKE}\ntc.view(conv)"]
        lab.open(lab.server.notebook("fonts.ipynb", cells))
        lab.idle()
        large = "21px" if which.startswith("content") else "22px"
        style = "e => { const s = getComputedStyle(e); return [s.fontSize, s.borderTopColor, s.wordBreak]; }"
        lab.run_and_wait(0)
        lab.run_and_wait(1)
        card = lab.page.locator("[data-tc='card']:visible").first
        card.wait_for()
        lab.until(lambda: card.evaluate(style)[:2] == [large, "rgb(224, 224, 224)"], "a large card with visible rules")
        lab.run_and_wait(2)
        wrong = lab.page.locator("pre:visible", has_text="TC204").first
        lab.until(lambda: wrong.evaluate(style)[2] == "normal", "an error that breaks between words")
        lab.run_and_wait(3)
        view = lab.page.locator(".tcw:visible").last
        lab.until(lambda: view.evaluate(style)[0] == large, "a large view")
