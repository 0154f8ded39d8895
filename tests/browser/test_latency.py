"""Typing latency with the front end and without it, in one browser, alternating. Slow, and timed: run it with `-m slow`."""

from __future__ import annotations

import statistics

import pytest
from browser_app import START, App

LINES = "\n".join(f"    Y(i) = X(i + {n}) * 2 + X(i)" for n in range(56))
TC = f"%%tc\ndef f(float(N) X) -> (Y) {{\n{LINES}\n}}"
PYTHON = "\n".join(f"x{n} = [i * {n} for i in range(10)]" for n in range(60))


def measure(app: App, index: int, needle: str, keys: int) -> tuple[list[float], list[float]]:
    """Milliseconds of processor time of the page's main thread: for keys in a burst, and for a key with the pause after it.

    The pause is longer than the debounce, so the second list contains the work of a check.
    """
    probe = app.page.context.new_cdp_session(app.page)
    # thread time: other programs on the machine do not count
    probe.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = {m["name"]: m["value"] for m in probe.send("Performance.getMetrics")["metrics"]}
        return 1000 * metrics["TaskDuration"]

    app.caret(index, needle)
    app.page.wait_for_timeout(500)
    typed: list[float] = []
    paused: list[float] = []
    for n in range(keys):
        before = spent()
        app.page.keyboard.press("71"[n % 2])
        # some keys come in a burst, some after the check has started
        app.page.wait_for_timeout(60 if n % 8 else 450)
        (typed if n % 8 else paused).append(spent() - before)
    probe.detach()
    return typed, paused


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


@pytest.mark.slow
def test_latency_with_and_without(lab: App, bare: App) -> None:
    typed: dict[tuple[str, str], list[float]] = {}
    paused: dict[tuple[str, str], list[float]] = {}
    for name, app in (("on", lab), ("off", bare)):
        app.open(app.server.notebook(f"latency-{name}.ipynb", [START, TC, PYTHON]))
        app.idle()
        app.run_and_wait(0)
    for _ in range(4):
        for name, app in (("on", lab), ("off", bare)):
            app.page.bring_to_front()
            for kind, index, needle in (("tc", 1, "i + 30"), ("python", 2, "i * 30")):
                burst, pause = measure(app, index, needle, 48)
                typed.setdefault((kind, name), []).extend(burst)
                paused.setdefault((kind, name), []).extend(pause)
    for what, times in (("typed", typed), ("with a pause", paused)):
        for key, values in times.items():
            print(
                what,
                key,
                f"median {statistics.median(values):.1f} ms, 95th percentile {p95(values):.1f} ms, {len(values)} keys",
            )
    assert p95(typed["python", "on"]) - p95(typed["python", "off"]) < 3
    assert p95(typed["tc", "on"]) - p95(typed["tc", "off"]) < 8
    assert p95(paused["tc", "on"]) - p95(paused["tc", "off"]) < 50
