"""A picture in a notebook: the bundle of every front end, and the live widget when a kernel runs.

The widget has one trait with the state (HTML, controls, data) and one with the points as bytes. The page sends values of
controls, numbered; the answer carries the number, and the page sends the next values only after it, so dragging never queues up.
A third trait holds the static form of the present state. The front end writes it into the notebook's output, so that a notebook
that is saved, reopened without a kernel or exported shows what was last seen, measurements included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tc_jupyter.notebook.card import FONT_SIZE

from .picture import Content, Picture, frame, one_line

MIME = "application/vnd.tc-jupyter.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
JSON_LIMIT = 100_000
"""Bytes of the front end's own form of a saved view."""
HERE = Path(__file__).parent


def can_be_live() -> bool:
    """Whether widgets are installed, a kernel runs this process, and somebody sits before the notebook.

    A program that runs it (nbconvert, nbclient) tells the kernel that nobody can be asked. A live widget would stand before the
    static form in what it saves, and plain HTML would have an empty box.
    """
    if find_spec("anywidget") is None or find_spec("ipywidgets") is None or find_spec("IPython") is None:
        return False
    from IPython.core.getipython import get_ipython  # noqa: PLC0415

    kernel = getattr(get_ipython(), "kernel", None)
    return kernel is not None and bool(getattr(kernel, "_allow_stdin", True))


VIEW_SCRIPTS = ("ranges", "iteration_space", "schedule", "code", "gradient", "benchmark", "tuning", "partitions")


def script_of(name: str) -> str:
    """The ES module of a view: what all views share, then its own part; for a card the parts of all views."""
    common = f"const FONT_SIZE = {json.dumps(FONT_SIZE)};\n" + (HERE / "common.js").read_text("utf-8")
    if name != "card":
        return f"{common}\n{(HERE / f'{name}.js').read_text('utf-8')}"
    parts: list[str] = []
    for each in VIEW_SCRIPTS:
        own = (HERE / f"{each}.js").read_text("utf-8").partition("export default")[0]
        parts.append(f"VIEWS.{each} = (() => {{\n{own}\nreturn enliven;\n}})();")
    choose = "const enliven = (body, view) => VIEWS[view.data.view]?.(body, view);"
    last = "export default { render: ({ model, el }) => makeView(model, el, enliven) };"
    return "\n".join([common, "const VIEWS = {};", *parts, choose, last])


@cache
def _widget_class(name: str) -> Any:
    import anywidget  # noqa: PLC0415
    import traitlets  # noqa: PLC0415

    traits: dict[str, Any] = {
        "__module__": __name__,
        "_esm": script_of(name),
        "state": traitlets.Dict().tag(sync=True),
        "points": traitlets.Bytes(b"").tag(sync=True),
        "saved": traitlets.Dict().tag(sync=True),
    }
    return type(f"View_{name}", (anywidget.AnyWidget,), traits)


def widget_of(picture: Picture) -> Any:
    """A live widget of a picture."""
    first = picture.content(live=True)
    made = _widget_class(picture.name)(state={**first.state(), "answer": 0}, points=first.points)

    def receive(_: Any, message: Any, buffers: Any) -> None:
        del buffers
        if isinstance(message, Mapping):
            _answer(picture, made, message)

    made.on_msg(receive)
    refresh = getattr(picture, "on_change", None)
    if refresh is not None:
        refresh(lambda: _progressed(picture, made))
    return made


def _progressed(picture: Picture, widget: Any) -> None:
    """Show a state that nobody asked for: a measurement went on."""
    _show(widget, picture.content(live=True), widget.state.get("answer", 0))
    _keep(picture, widget)


def _answer(picture: Picture, widget: Any, message: Mapping[Any, Any]) -> None:
    number = message.get("number", 0)
    question = message.get("ask")
    try:
        if isinstance(question, Mapping):
            widget.send({"number": number, "told": picture.ask(question)})
            return
        values = message.get("values")
        picture.apply(values if isinstance(values, Mapping) else {}, bool(message.get("dragging")))
        content = picture.content(live=True)
    except Exception as problem:  # a blank box would tell nothing
        text = f"this view failed ({type(problem).__name__}: {one_line(problem)[:200]}); its earlier state stays"
        widget.state = {**widget.state, "answer": number, "failed": text}
        return
    _show(widget, content, number)
    if not message.get("dragging"):
        _keep(picture, widget)


def _keep(picture: Picture, widget: Any) -> None:
    """Give the front end the static form of what is shown; it is sent after the answer, so nobody waits for it."""
    if getattr(picture, "running", False):
        return
    try:
        widget.saved = static_bundle(picture)
    except Exception:  # the output keeps its earlier static form
        return


def _show(widget: Any, content: Content, number: int) -> None:
    with widget.hold_sync():
        widget.points = content.points
        widget.state = {**content.state(), "answer": number, "failed": ""}


def static_bundle(picture: Picture) -> dict[str, Any]:
    """The present state of a picture for saved notebooks, exports and terminals, by MIME type."""
    content = picture.content()
    if picture.name == "card":
        return {MIME: {"html": content.html}, "text/html": content.html, "text/plain": content.text}
    html = frame(f"{picture.function.__name__}: {picture.title}", content.html, picture.name)
    data = {"view": picture.name, "text": content.text[: JSON_LIMIT // 4]}
    whole = data | {"html": html}
    return {
        MIME: whole if len(json.dumps(whole)) < JSON_LIMIT else data,
        "text/html": html,
        "text/plain": content.text,
    }


class Shown:
    """A view as a value of a cell.

    Attributes:
        picture: its state.
    """

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self._widget: Any = None

    @property
    def widget(self) -> Any:
        """The live widget, made when it is first shown."""
        if self._widget is None:
            self._widget = widget_of(self.picture)
        return self._widget

    def bundle(self) -> dict[str, Any]:
        """Every static form by MIME type."""
        return static_bundle(self.picture)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude
        bundle = self.bundle()
        return with_widget(bundle, lambda: self.widget)

    def _display_(self) -> Any:
        """What marimo shows."""
        return displayed(self.bundle()["text/html"], lambda: self.widget)

    def __repr__(self) -> str:
        return self.picture.content().text


@dataclass(frozen=True, slots=True)
class Html:
    """A picture of HTML alone."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def displayed(html: str, make: Callable[[], Any]) -> Any:
    """A live widget as a value, or its static form where no widgets are installed."""
    return make() if find_spec("anywidget") is not None else Html(html)


def with_widget(bundle: dict[str, Any], make: Any) -> dict[str, Any]:
    """A bundle with the entry of a live widget, if there can be one; a widget that cannot be made leaves the static forms."""
    if not can_be_live():
        return bundle
    try:
        model = make().model_id
    except Exception:  # a broken installation of widgets costs the controls, not the output
        return bundle
    return {MIME: bundle[MIME], WIDGET: {"version_major": 2, "version_minor": 0, "model_id": model}} | bundle
