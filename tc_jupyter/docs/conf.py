"""The pages of this folder, the messages and the lessons as a site: `python -m sphinx tc_jupyter/docs site`.

It needs `pip install "tc_jupyter[docs]"`, and nothing of another host: neither to be built nor to be read.
"""

from __future__ import annotations

import re
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from tc_jupyter.notebook.export import TcHTMLExporter
from tc_jupyter.notebook.lexer import SacLexer, TcLexer

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
CHECKS = ("ranges", "shapes", "preconditions", "diagnostics", "rewrites", "call", "ipython")
"""Kinds of fences that the tests compare with what follows from the program above them."""

project = "tc_jupyter"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "tc_jupyter"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # of programs that are wrong on purpose


def lessons(app: Sphinx, failed: Exception | None) -> None:
    """Write the notebooks as pages, with the results that they were saved with."""
    if failed is not None or app.builder.name != "html":
        return
    exporter = TcHTMLExporter(require_js_url="", mathjax_url="", jquery_url="", mermaid_js_url="")
    folder = Path(app.outdir) / "lessons"
    folder.mkdir(exist_ok=True)
    for notebook in sorted(EXAMPLES.glob("*.ipynb")):
        page, _ = exporter.from_filename(str(notebook))
        page = re.sub(r'href="(\w+)\.ipynb"', r'href="\1.html"', page)  # from one lesson to another, or to a page
        page = re.sub(r'href="\.\./tc_jupyter/docs/(\w+)\.md', r'href="../\1.html', page)
        (folder / f"{notebook.stem}.html").write_text(page, encoding="utf-8")


def linked(app: Sphinx, page: str, text: list[str]) -> None:
    """Let links to files beside the pages lead to where the site has them; records of the tests are in the repository alone."""
    text[0] = re.sub(r"\[([^\]]+)\]\(\.\./\.\./examples/(\w+)\.ipynb\)", r'<a href="lessons/\2.html">\1</a>', text[0])
    text[0] = re.sub(r"\[([^\]]+)\]\(\.\./\.\./tests/[^)]+\)", r"\1", text[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_lexer("tc", TcLexer)
    app.add_lexer("sac", SacLexer)
    for kind in CHECKS:
        app.add_lexer(kind, TextLexer)
    app.connect("source-read", linked)
    app.connect("build-finished", lessons)
