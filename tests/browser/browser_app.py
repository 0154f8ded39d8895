"""The two applications as the tests see them: cells, lines and keys instead of selectors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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

# and what they log where a page is left, or a kernel goes, before its debugger has answered
CANCELLED = "Could not restore the debugger state: Canceled future for "


# close what is open without asking, stop the kernels
_CLOSE = """async () => {
    const app = window.jupyterapp;
    for (const widget of Array.from(app.shell.widgets('main'))) widget.dispose();
    app.shell.collapseRight();
    await app.serviceManager.sessions.shutdownAll().catch(() => undefined);  // one may have gone already
}"""

# a promise of the next end of an execution of a cell
_LISTEN = """index => {
    const { model } = window.jupyterapp.shell.currentWidget.content.widgets[index];
    window.tcRan = new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`cell ${index} did not run`)), 60000);
        model.stateChanged.connect(function end(_, change) {
            if (change.name === 'executionCount' && change.newValue !== null) {
                clearTimeout(late);
                model.stateChanged.disconnect(end);
                resolve(null);
            }
        });
    });
}"""


@dataclass
class App:
    """One page of one application. Methods speak in cells and lines, not in selectors."""

    kind: str
    server: Server
    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    soiled: bool = False

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
            self._go(self.server.url + (f"/lab/tree/{name}?reset" if self.kind == "lab" else f"/notebooks/{name}"))
        self.shown()

    def _go(self, url: str) -> None:
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
        """Let the cell go on; an error where none waits."""
        os.close(os.open(self.server.folder / name, os.O_WRONLY | os.O_NONBLOCK))

    def panel(self, tab: str = "Ranges") -> Any:
        """The side panel, with a view chosen."""
        self.command("tc-jupyter:show-panel")
        panel = self.page.locator("[data-tc-panel]")
        panel.locator(f"[data-tc-tab='{tab}']").click()
        return panel

    def shown(self) -> None:
        """Wait until the notebook in front has its cells."""
        self.page.wait_for_selector(f"{FRONT} .jp-Cell .cm-content", timeout=60_000)
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.content.widgets?.length > 0", timeout=60_000
        )
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
        self.page.evaluate(_LISTEN, index)
        self.page.keyboard.press("Control+Enter")
        self.page.evaluate("() => window.tcRan")

    def idle(self) -> None:
        """Wait until the kernel of the notebook in front is idle."""
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
            timeout=60_000,
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

    def hover(self, index: int, needle: str) -> Any:
        """Move the pointer over the first occurrence of `needle` and return the tooltip; the text may move away meanwhile."""
        from playwright.sync_api import TimeoutError as Late

        tip = self.page.locator(".cm-tooltip-hover")
        for attempt in range(3):
            self.point(index, needle)
            try:
                tip.first.wait_for(timeout=10_000)
                break
            except Late:
                if attempt == 2:
                    raise
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

    def own_errors(self) -> list[str]:
        return [e for e in self.errors if e not in OWN_NOISE[self.kind] and not e.startswith(CANCELLED)]

    def external(self) -> list[str]:
        return [
            r
            for r in self.requests
            if not r.startswith((self.server.url, self.server.url.replace("http", "ws"), "data:", "blob:"))
        ]
