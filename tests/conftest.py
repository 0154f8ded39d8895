"""Options and fixtures for all tests."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# The same random programs in every run, so that a failure is the change's; `--hypothesis-profile=default` draws new ones.
settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")

GOLDEN = Path(__file__).with_name("golden")


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite literate cases and golden files; review the difference"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Several cases live in one file: one process rewrites them."""
    if config.getoption("--update-golden"):
        config.option.numprocesses = 0


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Thousands of tests are made, and stay: no collection of garbage looks at them, neither now nor while they run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test that is marked `some(n)` plain `pytest` runs the first and then every n-th case; the others are slow.

    Of a test that is marked `some(n, ci=m)` every m-th case is one of these two, and the others are `long`.
    """
    seen = Counter()
    for item in items:
        mark = item.get_closest_marker("some")
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            if seen[name] % mark.args[0]:
                item.add_marker(pytest.mark.long if seen[name] % mark.kwargs.get("ci", 1) else pytest.mark.slow)
            seen[name] += 1


_seconds = Counter()


def pytest_runtest_logreport(report):
    folder, *inside = report.nodeid.removeprefix("tests/").split("::")[0].split("/")
    _seconds[folder if inside else "files of tests"] += report.duration


def pytest_terminal_summary(terminalreporter):
    """Where the time goes; on two cores the run lasts half of the sum, and a bit for starting."""
    if not _seconds:
        return
    terminalreporter.section("seconds by folder")
    parts = [f"{folder} {seconds:.0f}" for folder, seconds in _seconds.most_common()]
    terminalreporter.write_line(f"{sum(_seconds.values()):.0f} in all: {', '.join(parts)}")


@pytest.fixture
def update_golden(request) -> bool:
    return request.config.getoption("--update-golden")


@pytest.fixture
def golden(update_golden):
    """`golden(name, text)`: compare a long text with `tests/golden/NAME`, or write it with `--update-golden`."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update_golden:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"tests/golden/{name} does not exist; write it with --update-golden"
        assert text == path.read_text(encoding="utf-8"), f"differs from tests/golden/{name}"

    return check
