"""The two applications as the tests see them: cells, lines and keys instead of selectors."""

from __future__ import annotations

import errno
import inspect
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT = 120
"""Seconds in which a state has to come. It says nothing about speed: a machine that is busy takes its time."""

START = "%load_ext stand_in"
FRONT = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"


@dataclass
class Server:
    url: str
    folder: Path

    def notebook(self, name: str, cells: list[Any], metadata: dict[str, Any] | None = None) -> str:
        """Write a notebook; a cell is its source, or a whole cell as a dict."""
        made = [
            c
            if isinstance(c, dict)
            else {
                "cell_type": "code",
                "id": f"c{i}",
                "metadata": {},
                "source": c,
                "outputs": [],
                "execution_count": None,
            }
            for i, c in enumerate(cells)
        ]
        kernel = {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        }
        text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata or kernel, "cells": made})
        (self.folder / name).write_text(text)
        return name


# what the applications log by themselves; `test_noise.py` sees it without the front end
OWN_NOISE = {"lab": (), "notebook": ("Cannot read properties of undefined (reading 'schema')",)}

# and what they log where a page is left, or a kernel goes, before its debugger or the subshell of a comm has answered
CANCELLED = (
    "Could not restore the debugger state: Canceled future for ",
    "Error: Canceled future for create_subshell_request message before replies were done",
    "Disposed",
)


# close what is open without asking, stop the kernels
_CLOSE = """async () => {
    const app = window.jupyterapp;
    for (const widget of Array.from(app.shell.widgets('main'))) widget.dispose();
    app.shell.collapseRight();
    await app.serviceManager.sessions.shutdownAll().catch(() => undefined);  // one may have gone already
}"""

# a promise of the next end of an execution of a cell
_LISTEN = """([index, limit]) => {
    const { model } = window.jupyterapp.shell.currentWidget.content.widgets[index];
    window.tcRan = new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`cell ${index} did not run within ${limit} s`)), 1000 * limit);
        model.stateChanged.connect(function end(_, change) {
            if (change.name === 'executionCount' && change.newValue !== null) {
                clearTimeout(late);
                model.stateChanged.disconnect(end);
                resolve(null);
            }
        });
    });
}"""


# what a reader of a failed test asks first
_SEEN = """() => {
    const app = window.jupyterapp, widget = app?.shell.currentWidget, short = text => text.replace(/\\s+/g, ' ').trim().slice(0, 300);
    const shown = (name, selector) => [...document.querySelectorAll(selector)].filter(e => e.getClientRects().length)
        .map(e => `${name}: ${short(e.innerText)}`);
    const cells = [...document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell')].slice(0, 12).map(e => {
        const marks = e.querySelectorAll('[class*=cm-lintRange]').length, prompt = e.querySelector('.jp-InputPrompt')?.innerText ?? '';
        return `cell ${e.dataset.windowedListIndex} ${prompt} ${marks} marks: ${short(e.innerText)}`;
    });
    const at = document.activeElement, values = [...document.querySelectorAll('.tcw [data-control]')].slice(0, 24).map(e => `${e.dataset.control} = ${e.value}`);
    return [`in front: ${widget?.title.label}, kernel ${widget?.sessionContext?.session?.kernel?.status}`, ...cells,
        `focus: ${at?.tagName} ${at?.className} ${at?.dataset?.control ?? ''}`, `controls: ${values.join(', ')}`, ...shown('said', '.tcw-said'),
        ...[...document.querySelectorAll('[data-tc-state]')].map(e => `state ${e.dataset.tcState}`).slice(0, 12),
        ...shown('panel', '[data-tc-panel]'), ...shown('inspector', '[data-tc-inspector]'),
        ...shown('tooltip', '.cm-tooltip'), ...shown('dialog', '.jp-Dialog')];
}"""


def flat(text: str) -> str:
    """Without the marks of code and the line breaks, which the page draws in its own way."""
    return " ".join(text.replace("`", "").split())


@dataclass
class App:
    """One page of one application. Methods speak in cells and lines, not in selectors."""

    kind: str
    server: Server
    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    soiled: bool = False
    themed: bool = False

    def until(self, test: Callable[[], Any], what: str = "") -> None:
        """Wait for a state that is no state of one element; what is waited for is told in words, or else by the test itself."""
        end = time.monotonic() + LIMIT
        while not test():
            assert time.monotonic() < end, f"not within {LIMIT} s: {what or inspect.getsource(test).strip()}"
            self.page.wait_for_timeout(50)  # the page goes on meanwhile

    def again(self, act: Callable[[], Any], test: Callable[[], Any], what: str) -> None:
        """Act until the state comes: where a page moves under the pointer, what it does meets nothing.

        Every try waits twice as long as the one before, which tells a page that is slow from one that was missed.
        """
        end, patience = time.monotonic() + LIMIT, 2.0
        while True:
            act()
            late = time.monotonic() + patience
            while time.monotonic() < late:
                if test():
                    return
                self.page.wait_for_timeout(50)
            assert time.monotonic() < end, f"not within {LIMIT} s: {what}"
            patience *= 2

    def seen(self) -> str:
        """What the page shows, for the report of a test that failed: a picture, cells, states, tooltips, the console."""
        picture = Path(os.environ.get("TC_SHOTS", self.server.folder.parent)) / f"{self.kind}-{time.time_ns()}.png"
        lines = [f"page {self.page.url}", *(f"console: {text}" for text in self.errors)]
        try:
            self.page.screenshot(path=picture, timeout=20_000)
            lines += [f"picture {picture}", *self.page.evaluate(_SEEN)]
        except Exception as problem:  # the report of the failure is worth more than a second one
            lines.append(f"the page does not answer: {problem}")
        return "\n".join(lines)

    @property
    def loaded(self) -> bool:
        return self.page.evaluate("() => window.jupyterapp !== undefined")

    def close_all(self) -> None:
        """Close every notebook of a page that stays; what the application says about that is its own."""
        if self.loaded:
            self.page.evaluate(_CLOSE)
        self.errors.clear()

    def open(self, name: str) -> None:
        """Open a notebook. A page of JupyterLab that is loaded already closes everything else instead of loading again."""
        if self.kind == "lab" and self.loaded:
            self.close_all()
            self.page.evaluate(
                "name => window.jupyterapp.commands.execute('docmanager:open', { path: name }).then(() => null)", name
            )
        else:
            self.go(self.server.url + (f"/lab/tree/{name}?reset" if self.kind == "lab" else f"/notebooks/{name}"))
        self.shown()

    def go(self, url: str) -> None:
        """Load a page; on a machine under heavy load Chromium itself gives a first request up now and then, so twice."""
        from playwright.sync_api import Error

        try:
            self.page.goto(url)
        except Error as failed:
            if "ERR_FAILED" not in failed.message:
                raise
            self.page.goto(url)

    def leave(self) -> None:
        """Make the next notebook load the whole page again."""
        self.page.goto("about:blank")

    @contextmanager
    def setting(self, package: str, plugin: str, values: dict[str, Any]) -> Iterator[None]:
        """Settings of the user, for the pages that are loaded inside."""
        folder = self.server.folder.parent / "config" / "lab" / "user-settings" / package
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{plugin}.jupyterlab-settings"
        file.write_text(json.dumps(values))
        self.leave()
        try:
            yield
        finally:
            file.unlink()
            self.leave()

    def ready(self, name: str, *cells: Any) -> None:
        """Open a notebook whose first cell loads the kernel side, and run it."""
        self.open(self.server.notebook(name, [START, *cells]))
        self.idle()
        self.run_and_wait(0)

    def blocking(self, name: str) -> str:
        """A cell that waits until `release`."""
        pipe = self.server.folder / name
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        return f"open({name!r}).close()"

    def release(self, name: str) -> None:
        """Let the cell go on, as soon as it waits."""

        def opened() -> bool:
            try:
                os.close(os.open(self.server.folder / name, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as problem:
                if problem.errno != errno.ENXIO:  # nobody reads yet
                    raise
                return False
            return True

        self.until(opened, f"a cell that waits for {name}")

    def panel(self, tab: str = "Ranges") -> Any:
        """The side panel, with a view chosen."""
        self.command("tc-jupyter:show-panel")
        panel = self.page.locator("[data-tc-panel]")
        panel.locator(f"[data-tc-tab='{tab}']").click()
        return panel

    def shown(self) -> None:
        """Wait until the notebook in front has its cells."""
        self.page.wait_for_selector(f"{FRONT} .jp-Cell .cm-content")
        self.page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.content.widgets?.length > 0")
        self.page.evaluate(
            "() => Promise.all([window.jupyterapp.restored, window.jupyterapp.shell.currentWidget.revealed])"
        )

    def cell(self, index: int) -> Any:
        return self.page.locator(f"{FRONT} .jp-Cell[data-windowed-list-index='{index}']").first

    def editor(self, index: int) -> Any:
        return self.cell(index).locator(".cm-content").first

    def text(self, index: int) -> str:
        return self.page.evaluate(
            "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.sharedModel.getSource()", index
        )

    def focus(self, index: int) -> None:
        self.editor(index).click()

    def run(self, index: int) -> None:
        self.focus(index)
        self.page.keyboard.press("Control+Enter")

    def run_and_wait(self, index: int) -> None:
        self.focus(index)
        self.page.evaluate(_LISTEN, [index, LIMIT])
        self.page.keyboard.press("Control+Enter")
        self.page.evaluate("() => window.tcRan")

    def idle(self) -> None:
        """Wait until the kernel of the notebook in front is idle."""
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
        )

    def type_(self, text: str) -> None:
        self.page.keyboard.type(text)

    def caret(self, index: int, needle: str, after: bool = True) -> None:
        """Put the cursor after (or before) the first occurrence of `needle` in the cell."""
        text = self.text(index)
        at = text.index(needle) + (len(needle) if after else 0)
        self.focus(index)
        self.page.keyboard.press("Control+Home")
        line, column = text.count("\n", 0, at), at - (text.rfind("\n", 0, at) + 1)
        for _ in range(line):
            self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("Home")
        self.page.keyboard.press("Home")
        for _ in range(column):
            self.page.keyboard.press("ArrowRight")

    def command(self, name: str) -> None:
        """Run a command of the application by its id."""
        self.page.evaluate("name => window.jupyterapp.commands.execute(name)", name)

    def hover(self, index: int, needle: str, *words: str, whole: str | None = None) -> Any:
        """Move the pointer over the first occurrence of `needle` until tooltips say all `words`, or the last one says `whole`.

        What a kernel that is late answers stands in the tooltip of the next time.
        """
        tip = self.page.locator(".cm-tooltip-hover")

        def said() -> bool:
            texts = [flat(text) for text in tip.all_inner_texts()]
            if whole is not None:
                return texts[-1:] == [flat(whole)]
            return bool(texts) and all(any(flat(word) in text for text in texts) for word in words)

        wanted = whole if whole is not None else ", ".join(words) or "anything"
        self.again(
            lambda: self.point(index, needle), said, f"a tooltip over {needle!r} of cell {index} that says {wanted}"
        )
        return tip

    def point(self, index: int, needle: str) -> None:
        """Move the pointer over the first occurrence of `needle`."""
        x, y = self._place(index, needle)
        self.page.mouse.move(5, 5)
        self.page.mouse.move(x - 2, y)
        self.page.mouse.move(x, y, steps=3)

    def _place(self, index: int, needle: str) -> tuple[float, float]:
        """The middle of the first character of `needle`, in pixels of the page."""
        x, y = self.page.evaluate(
            """([front, cell, needle]) => {
                const root = document.querySelector(`${front} .jp-Cell[data-windowed-list-index='${cell}'] .cm-content`);
                const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
                const parts = []; let text = '';
                for (let n = walker.nextNode(); n; n = walker.nextNode()) { parts.push([text.length, n]); text += n.data; }
                const at = text.indexOf(needle);
                const [start, node] = parts.filter(([s]) => s <= at).at(-1);
                const range = document.createRange();
                range.setStart(node, at - start); range.setEnd(node, at - start + 1);
                const r = range.getBoundingClientRect();
                return [r.x + r.width / 2, r.y + r.height / 2];
            }""",
            [FRONT, index, needle],
        )
        return x, y

    def away(self) -> None:
        """Move the pointer away, until nothing is shown about what was under it."""
        self.page.mouse.move(5, 5)
        self.page.locator(".cm-tooltip-hover").first.wait_for(state="detached")

    def theme(self, name: str) -> None:
        """Change the theme, `Light` or `Dark`, and wait for it.

        Where the application loads the settings of themes again meanwhile, it takes the old style sheet away twice and logs that,
        sooner or later.
        """
        change = "name => window.jupyterapp.commands.execute('apputils:change-theme', { theme: name })"
        self.page.evaluate(change, f"JupyterLab {name}")
        there = "name => document.body.dataset.jpThemeName === name"
        self.page.wait_for_function(there, arg=f"JupyterLab {name}")
        self.themed = True

    def own_errors(self) -> list[str]:
        noise = OWN_NOISE[self.kind]
        found = [e for e in self.errors if e not in noise and not e.startswith(CANCELLED)]
        return [e for e in found if not self.themed or "'removeChild' on 'Node'" not in e]

    def external(self) -> list[str]:
        return [
            r
            for r in self.requests
            if not r.startswith((self.server.url, self.server.url.replace("http", "ws"), "data:", "blob:"))
        ]
