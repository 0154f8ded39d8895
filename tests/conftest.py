"""Options and fixtures for all tests."""

from __future__ import annotations

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
