"""The site of the pages: it is built without a warning, its links lead somewhere, and it asks no other host for anything."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.literate import DOCS

pytestmark = pytest.mark.slow
EXAMPLES = DOCS.parents[1] / "examples"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(folder / "trees"), str(DOCS)]
    done = subprocess.run([*command, str(folder / "html")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_and_every_lesson_is_there(site):
    pages = {path.stem for path in site.glob("*.html")}
    assert pages >= {path.stem for path in DOCS.glob("*.md")}
    assert {path.stem for path in site.glob("lessons/*.html")} == {path.stem for path in EXAMPLES.glob("*.ipynb")}
    index = (site / "lessons.html").read_text(encoding="utf-8")
    assert all(f"lessons/{path.stem}.html" in index for path in EXAMPLES.glob("*.ipynb"))


def test_links_and_pictures_lead_somewhere(site):
    seen = 0
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        own = set(re.findall(r'\bid="([^"]+)"', text))
        for target in re.findall(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"#?]*(?:#[^"]*)?)[^"]*"', text):
            file, _, anchor = target.partition("#")
            if re.match(r"\w+:", file):
                continue
            other = page.parent / unquote(file) if file else page
            assert other.exists(), f"{page.name}: {target}"
            if anchor and other.suffix == ".html":
                there = own if not file else set(re.findall(r'\bid="([^"]+)"', other.read_text(encoding="utf-8")))
                assert {anchor, unquote(anchor)} & there, f"{page.name}: {target}"
            seen += 1
    assert seen > 200


def test_no_other_host_is_needed(site):
    asked = re.compile(
        r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="(https?:)?//[^"]*"|@import[^;]*//|url\(["\']?https?:'
    )
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        found = asked.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.name}: {found.group(0) if found else ''}"
