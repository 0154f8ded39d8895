"""Export to HTML with the bodies of `%%tc` and `%%sac` cells highlighted: `jupyter nbconvert --to tc_html notebook.ipynb`.

nbconvert colours the cells of other languages when it is told which; this exporter is its HTML exporter with that said. Lines of a
source in messages are not broken, since marks stand under them. Cards and views are exported in their static form: a live widget
would need its kernel, and scripts from another host. The notebook must name `ipython3` as its lexer, as every notebook that was
saved with a kernel does.
"""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import groupby
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbconvert.filters import ansi2html, strip_ansi
from nbconvert.preprocessors import Preprocessor
from traitlets.config import Config

from .widgets.live import MIME, WIDGET

_EXCERPT = re.compile(r" *\d* \|(?: .*)?")
LANGUAGES = {"%%tc": "tc", "%%sac": "sac"}


class TcHTMLExporter(HTMLExporter):
    """HTML with colours for the two languages, and cards in their static form."""

    export_from_notebook = "HTML with colours for tc_jupyter"

    @property
    def default_config(self) -> Any:
        """The default of the HTML exporter and the two languages."""
        own = Config(
            {
                "HighlightMagicsPreprocessor": {"enabled": True, "languages": LANGUAGES},
                "TcHTMLExporter": {"preprocessors": [StaticCards]},
            }
        )
        own.merge(super().default_config)
        return own

    def default_filters(self) -> Any:
        """The filters of the HTML exporter, and one for text."""
        yield from super().default_filters()
        yield "ansi2html", with_whole_lines


def with_whole_lines(text: str) -> str:
    """The HTML of a text with ANSI codes, in which lines of a source and the marks under them are not broken."""
    parts: list[str] = []
    for is_excerpt, lines in groupby(text.split("\n"), lambda line: _EXCERPT.fullmatch(strip_ansi(line)) is not None):
        html = ansi2html("\n".join(lines))
        parts.append(f'<span style="white-space:pre">{html}</span>' if is_excerpt else html)
    return "\n".join(parts)


class StaticCards(Preprocessor):
    """Leaves the live form of cards and views out, also of those that the export has just run."""

    enabled = True

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """A notebook without them; the given one stays as it is."""
        return static_cards(nb), resources


def static_cards(notebook: Any) -> Any:
    """A copy of a notebook without the live form of cards and views, and without the saved state of their widgets."""
    copy = deepcopy(notebook)
    dropped: set[str] = set()
    for cell in copy.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if MIME in data and WIDGET in data:
                dropped.add(str(data.pop(WIDGET).get("model_id", "")))
    saved = copy.metadata.get("widgets", {})
    state = saved.get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    for model in dropped:
        layout = str(state.pop(model, {}).get("state", {}).get("layout", "")).removeprefix("IPY_MODEL_")
        state.pop(layout, None)
    if saved and not state:
        del copy.metadata["widgets"]
    return copy
