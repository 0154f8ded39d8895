"""Typing latency in Chromium with the front end and without it: `python tests/browser/latency.py [ROUNDS [CELL]]`.

12 rounds take 13 minutes per cell. Both pages are JupyterLab with the same notebook and the package in the kernel; on one of them the front end is switched off. The same
phrases go to a `%%tc` cell of 60 lines and to a Python cell of 60 lines, at two speeds, each phrase to both pages before the next one,
so that what else the machine does meets both. Two times are taken of every key: from the key event to the end of the frame that shows
it, and the processor time that the main thread of the page spends meanwhile, without the commands that measure. At the slower speed
lists and helps open between the keys, and the next key finds them drawn.

A processor whose core is shared with somebody else's program is half as slow again, for moments or for minutes. So before and after
every key the processor of the main thread runs a short fixed loop. A key counts if both loops say that there was no neighbour, and the
host of a virtual machine took no processor away meanwhile; nothing else decides. Where too few such keys are left, those count whose loops
both say that there was a neighbour: times are longer then, on both pages. Where neighbours come and go too fast for either, every key of
the phrases counts once, with its median over the rounds: what comes from outside meets fewer than half of them.

Prints medians, 95th percentiles, their differences with an interval, and how many keys count; the status is 1 where a difference of the
95th percentiles reaches its limit.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from browser_app import App, Server
from conftest import CHROMIUM, FLAGS, _serve, _stop
from playwright.sync_api import Browser, sync_playwright

LINES = "\n".join(f"    T{n}(i) = T{n - 1}(i) * 2 + X(i + {n})" for n in range(1, 57))
TC = f"%%tc\ndef f(float(N) X) -> (T56) {{\n    T0(i) = 2 * X(i)\n{LINES}\n}}"
PYTHON = "\n".join(f"x{n} = [i * {n} for i in range(10)]" for n in range(60))
CELLS = {
    "tc": (1, "X(i + 30)", " + X(i)*2 - sqrt(X(i + 1))"),
    "python": (2, "i * 30", " + len(x)*2 - abs(int(x))"),
}
LIMITS = {"tc": 8.0, "python": 3.0}
SPEEDS = (150, 260)
"""Milliseconds from key to key: 80 and 46 words a minute."""
PAUSE = 600
"""Milliseconds before a phrase: longer than the delay of the checks."""
PROBE = 20_000
"""Steps of the loop that says how fast a processor is now: under a millisecond."""
FREE, SHARED = 1.35, 2.0
"""How much longer than at its shortest the loop may take without a neighbour on the core, and with one: it is slower by half then."""
PATIENCE = 0.5
"""Seconds that a phrase waits for a processor without neighbours."""
ENOUGH = 200
"""Keys of a page that a 95th percentile needs: with 60 it is the third longest, and two runs differ by 20 ms."""
PROCESSORS = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []

# frames as fast as they are ready: else every time holds the wait for a display that nobody looks at
UNLIMITED = ["--disable-frame-rate-limit", "--disable-gpu-vsync"]
# a cursor that blinks would then be drawn all the time, on the page that waits for its turn too
STEADY = ".cm-cursorLayer { animation: none !important; }"
PLACE = """([index, place]) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = index;
    notebook.mode = 'edit';
    const { editor } = notebook.widgets[index];
    editor.setCursorPosition(place);
    editor.focus();
}"""
LISTEN = """() => window.addEventListener('keydown', event => {
    window.tcShown = new Promise(resolve => requestAnimationFrame(() => {
        const shown = new MessageChannel();
        shown.port1.onmessage = () => resolve(performance.now() - event.timeStamp);
        shown.port2.postMessage(0);
    }));
}, true)"""


@dataclass(frozen=True)
class Key:
    """Milliseconds of one key, of the loops before and after it (1 where threads cannot be placed), and what the host took meanwhile."""

    shown: float
    worked: float
    loops: tuple[float, float]
    stolen: float


def stolen() -> float:
    """Milliseconds so far in which the host ran somebody else although a processor of this machine had work, in steps of a tick."""
    if not PROCESSORS:
        return 0.0
    return 1000 / os.sysconf("SC_CLK_TCK") * int(Path("/proc/stat").read_text().split(maxsplit=9)[8])


Phrase = dict[str, list[Key]]
"""The keys of one phrase by page, with the front end and without it."""
Phrases = dict[tuple[str, int], list[Phrase]]
"""By cell and speed."""
View = Callable[[list[Phrase]], list[Phrase]]
"""The keys that count."""


def loop_time(processor: int) -> float:
    """Milliseconds of processor time of the loop: other programs that wait for the same processor do not count, only its speed."""
    os.sched_setaffinity(0, {processor})
    try:
        times: list[float] = []
        for _ in range(2):  # the first one after a move meets cold caches
            start = time.thread_time()
            for _ in range(PROBE):
                pass
            times.append(1000 * (time.thread_time() - start))
        return min(times)
    finally:
        os.sched_setaffinity(0, PROCESSORS)


def own_threads() -> list[int]:
    """All threads of the processes that this one has started, and of those that they have."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    threads: list[int] = []
    for process in found - {os.getpid()}:
        with suppress(OSError):
            threads += [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]
    return threads


@dataclass
class Place:
    """The processor of the main threads, and the shortest loop so far."""

    threads: list[int]
    processor: int | None = None
    shortest: float = float("inf")

    def loop(self) -> float:
        if self.processor is None:
            return 1.0
        found = loop_time(self.processor)
        self.shortest = min(self.shortest, found)
        return found

    def choose(self) -> None:
        """Take a processor without neighbours, or after some seconds the one with the fewest."""
        end = time.monotonic() + PATIENCE
        while PROCESSORS:
            found, self.processor = min((max(loop_time(each) for _ in range(4)), each) for each in PROCESSORS)
            self.shortest = min(self.shortest, found)
            if found <= FREE * self.shortest or time.monotonic() > end:
                break
            time.sleep(0.05)
        if self.processor is not None:
            self.keep(self.processor)

    def keep(self, processor: int) -> None:
        """The main threads have the processor to themselves: kept on it, they would wait there for other threads of the browser."""
        others = {*PROCESSORS} - {processor} or {processor}
        for thread in own_threads():
            with suppress(ProcessLookupError):  # gone meanwhile
                os.sched_setaffinity(thread, {processor} if thread in self.threads else others)


@dataclass(frozen=True)
class Page:
    """One of the two pages, with its channel to the metrics of the main thread."""

    app: App
    probe: Any
    place: Place

    def spent(self) -> float:
        """Milliseconds of processor time of the main thread so far, without the commands that measure."""
        metrics = {m["name"]: m["value"] for m in self.probe.send("Performance.getMetrics")["metrics"]}
        return 1000 * (metrics["TaskDuration"] - metrics["DevToolsCommandDuration"])

    def press(self, key: str, speed: int) -> Key:
        """Press a key; its times, once the next one is due."""
        due = time.monotonic() + speed / 1000
        taken, loop = stolen(), self.place.loop()
        before = self.spent()
        self.app.page.keyboard.press("Space" if key == " " else key)
        shown = self.app.page.evaluate("() => window.tcShown")
        worked = self.spent() - before
        loops, taken = (loop, self.place.loop()), stolen() - taken
        self.app.page.wait_for_timeout(max(0, 1000 * (due - time.monotonic())))
        return Key(shown, worked, loops, taken)


def opened(browser: Browser, server: Server, name: str) -> Page:
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    app = App("lab", server, page)
    app.open(server.notebook(f"latency-{name}.ipynb", ["%load_ext tc_jupyter", TC, PYTHON]))
    app.idle()
    app.run_and_wait(0)
    page.evaluate(LISTEN)
    page.add_style_tag(content=STEADY)
    probe = page.context.new_cdp_session(page)
    probe.send("Performance.enable", {"timeDomain": "threadTicks"})
    return Page(app, probe, Place(main_threads(browser) if PROCESSORS else []))


def main_threads(browser: Browser) -> list[int]:
    """The threads that run pages."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return [each["id"] for each in found if each["type"] == "renderer"]


def cursor(page: Page, index: int, needle: str) -> None:
    """Put the cursor after a text of the cell at once: keys would take longer than the measurement."""
    before = page.app.text(index).partition(needle)[0] + needle
    place = {"line": before.count("\n"), "column": len(before) - before.rfind("\n") - 1}
    page.app.page.evaluate(PLACE, [index, place])


def turn(pages: dict[str, Page], cell: str, speed: int) -> list[Phrase]:
    """A phrase is typed into the middle of the cell and taken back, on one page after the other."""
    index, needle, phrase = CELLS[cell]
    found: list[Phrase] = []
    for place, keys in ((needle, phrase), (needle + phrase, ["Backspace"] * len(phrase))):
        taken: Phrase = {}
        for name, page in pages.items():
            page.app.page.keyboard.press("Escape")
            cursor(page, index, place)
            page.app.page.wait_for_timeout(PAUSE)
            page.place.choose()
            taken[name] = [page.press(key, speed) for key in keys]
        found.append(taken)
    return found


def measure(rounds: int, cells: list[str]) -> Phrases:
    servers = {
        "on": _serve(Path(tempfile.mkdtemp()), "lab"),
        "off": _serve(Path(tempfile.mkdtemp()), "lab", extension=False),
    }
    times: Phrases = {key: [] for key in product(cells, SPEEDS)}
    try:
        with sync_playwright() as p:
            # a browser for each page: one that is not in front draws no frames
            browsers = {
                name: p.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *UNLIMITED]) for name in servers
            }
            pages = {name: opened(browsers[name], server, name) for name, (_, server) in servers.items()}
            pages["on"].app.editor(1).locator(".tok-keyword").first.wait_for()
            assert pages["off"].app.page.locator(".tc-editor").count() == 0
            for number in range(rounds + 1):
                pages = dict(reversed(pages.items()))
                for cell, speed in times:
                    found = turn(pages, cell, speed)
                    times[cell, speed] += found if number else []  # the first turn warms up
            for browser in browsers.values():
                browser.close()
    finally:
        for process, _ in servers.values():
            _stop(process)
    return times


def between(phrases: list[Phrase], low: float, high: float) -> list[Phrase]:
    """The keys whose loops both took between these times, with nothing stolen."""
    return [
        {
            name: [key for key in keys if low < min(key.loops) and max(key.loops) <= high and not key.stolen]
            for name, keys in each.items()
        }
        for each in phrases
    ]


def typical(phrases: list[Phrase]) -> list[Phrase]:
    """Every key once, with its medians over the rounds; a round types a phrase and takes it back."""
    return [
        {
            name: [median(keys) for keys in zip(*(each[name] for each in phrases[half::2]), strict=True)]
            for name in ("on", "off")
        }
        for half in (0, 1)
    ]


def median(keys: tuple[Key, ...]) -> Key:
    return Key(statistics.median(key.shown for key in keys), statistics.median(key.worked for key in keys), (1, 1), 0)


def column(phrases: list[Phrase], name: str, what: str) -> list[float]:
    return [getattr(key, what) for phrase in phrases for key in phrase[name]]


def count(phrases: list[Phrase]) -> int:
    """Keys of the page that has fewer."""
    return min(sum(len(phrase[name]) for phrase in phrases) for name in ("on", "off"))


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def difference(phrases: list[Phrase], what: str) -> float:
    """Of the 95th percentiles, with the front end and without it."""
    return p95(column(phrases, "on", what)) - p95(column(phrases, "off", what))


def interval(phrases: list[Phrase], what: str, view: View) -> tuple[float, float]:
    """Where nine of ten differences lie if the rounds are drawn again with replacement."""
    draw, rounds = random.Random(0), list(zip(phrases[::2], phrases[1::2], strict=True))
    drawn = (view([each for pair in draw.choices(rounds, k=len(rounds)) for each in pair]) for _ in range(1000))
    found = sorted(difference(each, what) for each in drawn)
    return found[50], found[-51]


def line(phrases: list[Phrase], what: str, view: View) -> str:
    low, high = interval(phrases, what, view)
    on, off = (column(view(phrases), name, what) for name in ("on", "off"))
    return (
        f"{what}: on {statistics.median(on):.1f} and {p95(on):.1f} ms, off {statistics.median(off):.1f} and {p95(off):.1f} ms "
        f"(median, 95th percentile); the 95th percentiles differ by {p95(on) - p95(off):.1f} ms ({low:.1f} to {high:.1f})"
    )


def main(rounds: int, cells: list[str]) -> int:
    times = measure(rounds, cells)
    shortest = min(
        min(key.loops) for phrases in times.values() for phrase in phrases for keys in phrase.values() for key in keys
    )
    status = 0
    for (cell, speed), phrases in times.items():
        views: dict[str, View] = {
            "keys without a neighbour": partial(between, low=0, high=FREE * shortest),
            "keys with a neighbour": partial(between, low=FREE * shortest, high=SHARED * shortest),
            "medians over the rounds": typical,
        }
        counts = {name: count(view(phrases)) for name, view in views.items()}
        chosen = next((name for name, keys in counts.items() if keys >= ENOUGH), "medians over the rounds")
        found = ", ".join(f"{keys} {name}" for name, keys in counts.items())
        print(
            f"{cell}, a key in {speed} ms, limit {LIMITS[cell]:g} ms: {found} of each page; {chosen} count", flush=True
        )
        for what in ("shown", "worked"):
            print(f"  {line(phrases, what, views[chosen])}", flush=True)
            status = 1 if difference(views[chosen](phrases), what) >= LIMITS[cell] else status
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 12, sys.argv[2:] or list(CELLS)))


# Notes
#
# * The editor draws more than what changed when a character is deleted: `RangeSet.compare` of @codemirror/state 6.7 asks the old side for
#   open ranges at places of the new one, so every mark below counts as changed (469 changes in the cell of 60 lines) unless its chunk is
#   the same object. With the colours of a line in a chunk of its own (`colours.ts`) a deletion costs a third less than in the same cell
#   without the extension, whose colours JupyterLab draws (28 and 40 ms).
# * Times come in two kinds, a third apart, each for moments or for minutes: with and without a neighbour on the core of the virtual
#   processor. The other processor of the machine makes no difference; the loop shows it, since an interpreter shares what the neighbour
#   takes. A loop of multiplications does not show it: each waits for the one before, and leaves room.
