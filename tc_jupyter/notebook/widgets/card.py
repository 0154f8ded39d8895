"""The live card of a cell: the static card, and under it one view at a time, made when it is asked for.

One widget per card, whatever is opened in it, so a notebook with many cards stays light.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tc_jupyter.function import Function

from .picture import Content, Picture, action, frame, one_line, words

TITLES = {
    "ranges": "ranges", "iteration_space": "iteration space", "schedule": "schedule", "code": "code", "gradient": "gradient",
    "benchmark": "benchmark", "tuning": "tuning", "partitions": "partitions",
}  # fmt: skip

STATIC_CARD = 95_000
"""Characters of HTML and text of a saved card with an open view."""


class Card(Picture):
    """The card of a cell.

    Attributes:
        chosen: function and view that are open, or `None`.
    """

    name = "card"
    title = "card"

    def __init__(
        self,
        html: str,
        functions: Mapping[str, Function],
        views: Mapping[str, Callable[..., Picture]],
        text: str = "",
        predict: bool = False,
    ) -> None:
        """`html`, `text`: the static card; `views`: how each view is made; `predict`: ask for ranges before they are shown."""
        super().__init__(next(iter(functions.values())))
        self.text = text
        self.html, self.functions, self.views = html, dict(functions), dict(views)
        self.chosen: tuple[str, str] | None = None
        self._made: dict[tuple[str, str], Picture] = {}
        self._changed: Callable[[], None] = lambda: None
        self._first = predict
        if predict:
            for name in self.functions:
                self.chosen = (name, "ranges")
                self._make(predict=True)

    @property
    def asking(self) -> Picture | None:
        """The view that waits for predictions, def by def; nothing else is shown before they are made."""
        return (
            next((view for view in self._made.values() if getattr(view, "asking", False)), None)
            if self._first
            else None
        )

    def on_change(self, changed: Callable[[], None]) -> None:
        """Called when a measurement in an open view has made progress."""
        self._changed = changed

    @property
    def open_view(self) -> Picture | None:
        """The view that is open."""
        return None if self.chosen is None else self._made.get(self.chosen)

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """`open`: [function, view], or the open one again to close it; all else is for the open view."""
        if (asking := self.asking) is not None:
            asking.apply(values, dragging)
            return
        wanted = values.get("open")
        if isinstance(wanted, list) and len(wanted) == 2 and wanted[0] in self.functions and wanted[1] in self.views:
            key = (str(wanted[0]), str(wanted[1]))
            self.chosen = None if key == self.chosen else key
            self._make()
        elif (view := self.open_view) is not None:
            view.apply(values, dragging)

    def _make(self, **options: bool) -> None:
        if self.chosen is None or self.chosen in self._made:
            return
        name, view = self.chosen
        try:
            self._made[self.chosen] = self.views[view](self.functions[name], **options)
            self.problem = ""
        except Exception as problem:  # the card stays
            self.problem = f"this view cannot be made: {one_line(problem)}"
            return
        subscribe = getattr(self._made[self.chosen], "on_change", None)
        if subscribe is not None:
            subscribe(lambda: self._changed())

    def ask(self, question: Mapping[str, Any]) -> Any:
        """A question of the open view's script."""
        view = self.open_view
        return None if view is None else view.ask(question)

    @property
    def running(self) -> bool:
        """Whether a measurement runs in the open view."""
        return bool(getattr(self.open_view, "running", False))

    def _static(self) -> Content:
        """The static card, and the open view under it if both together are small enough to be saved."""
        view = self.open_view
        if view is None:
            return Content(self.html, text=self.text)
        inner = view.content()
        both = self.html + frame(f"{view.function.__name__}: {view.title}", inner.html, view.name)
        text = f"{self.text}\n\n{inner.text}"
        return Content(both if len(both) + len(text) < STATIC_CARD else self.html, text=text)

    def content(self, live: bool = False) -> Content:
        """The static card, the buttons, the open view."""
        if not live:
            return self._static()
        rows: list[str] = []
        if (asking := self.asking) is not None:
            inner = asking.content(live=True)
            return Content(inner.html, inner.controls, {**inner.data, "view": "ranges", "head": ""}, inner.points)
        for name, function in self.functions.items():
            names = [v for v in self.views if v in TITLES and (v != "partitions" or function.options.language == "sac")]
            buttons = " ".join(
                action({"open": [name, v]}, TITLES[v], True, (name, v) == self.chosen, f"{name}.{v}") for v in names
            )
            label = f"<b>{name}</b> " if len(self.functions) > 1 else ""
            rows.append(f'<div role="group" aria-label="views of {name}" style="margin:4px 0">{label}{buttons}</div>')
        head = self.html + "".join(rows[:20])
        view = self.open_view
        if view is None:
            said = words(self.problem, "✗") if self.problem else ""
            return Content(said, data={"view": "", "head": head})
        inner = view.content(live=True)
        data = {**inner.data, "view": view.name, "head": head}
        return Content(inner.html, inner.controls, data, inner.points)
