"""Pictures as SVG that are as large as the text around them.

A picture is drawn in units of which an em of the page has 13, JupyterLab's own size in pixels; its own size is told in em. So
points, lines and letters follow what a reader chose for letters, and no element says a size of its own. Letters are 12 units high.

Worked example: at 13 pixels `svg(130, 26, letters(0, 12, "i"), "an index")` is 130 pixels wide with letters of 12; at 26 pixels
everything is twice as large.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

EM = 13
"""Units of an em."""
LETTERS = 12
"""Units of the height of letters."""
LEADING = 15
"""Units from one line of letters to the next."""

LARGEST = 1.25
"""Times the size of the text around that a picture grows to: its letters are then 15 pixels high beside text of 13."""

_NARROW = frozenset("ijl.,:;'|!() []{}ft/rI\"")
_BROAD = frozenset("mwMW@%→←↓↑≤≥+=<>×−…●■▲◆▼✚")


def svg(
    width: float,
    height: float,
    inner: str,
    label: str,
    facts: Mapping[str, object] | None = None,
    corner: float = 0,
    style: str = "",
    grows: bool = True,
) -> str:
    """A picture.

    Args:
        inner: elements, whose letters and fills have the colour of the text around.
        label: what is read aloud.
        facts: data attributes.
        corner: both coordinates of the left upper corner.
        grows: whether it is larger than the text around where the page is wide; not where something around it is.
    """
    box = " ".join(map(units, (corner, corner, width, height)))
    shown = f'width="{width / EM:.2f}em" height="{height / EM:.2f}em" viewBox="{box}"'
    size = growing(width) if grows else ""
    looks = ";".join(filter(None, ("color:inherit;font-family:inherit;vertical-align:top", size, style)))
    return (
        f'<svg{_data(facts)} role="img" aria-label="{escape(label)}" {shown} style="{looks}">'
        f'<g fill="currentColor" font-size="{LETTERS}">{inner}</g></svg>'
    )


def growing(width: float) -> str:
    """The style of a picture of so many units, whose letters grow with the width of the page, to what a back row reads."""
    return f"font-size:clamp(1em,{100 / (width / EM + 1):.2f}cqi,{LARGEST}em)"


def letters(
    x: float, y: float, said: str, anchor: str = "start", facts: Mapping[str, object] | None = None, bold: bool = False
) -> str:
    """A line of letters; `anchor` says which end of it `x` is: `start`, `middle` or `end`."""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    weight = ' font-weight="bold"' if bold else ""
    return f'<text{_data(facts)} x="{units(x)}" y="{units(y)}"{at}{weight}>{escape(said)}</text>'


def _data(facts: Mapping[str, object] | None) -> str:
    return "".join(f' data-{name}="{escape(str(value))}"' for name, value in (facts or {}).items())


def units(value: float) -> str:
    """A number of units with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def wide(said: str) -> float:
    """Units that a line of letters takes at most, in the usual fonts without serifs."""
    return sum(
        4.8 if c in _NARROW else 11.0 if c in _BROAD else 9.2 if c.isupper() else 12.0 if ord(c) > 0x2E80 else 7.7
        for c in said
    )


def short(said: str, most: int) -> str:
    """A text that is cut where it is longer than some characters."""
    return said if len(said) <= most else said[: most - 1] + "…"


def in_rows(labels: Iterable[tuple[float, str]]) -> list[tuple[float, int, str]]:
    """Texts around given places from left to right, each in the first row where it stands beside the others."""
    ends: list[float] = []
    found: list[tuple[float, int, str]] = []
    for middle, said in sorted(labels):
        half = wide(said) / 2
        row = next((n for n, end in enumerate(ends) if end + 4 <= middle - half), len(ends))
        ends[row : row + 1] = [middle + half]
        found.append((middle, row, said))
    return found


def beside(labels: Iterable[tuple[float, float]], gap: float = 6) -> list[int]:
    """Which of the places with lengths around them are apart from all before them in the list: those that come first are kept."""
    kept: list[tuple[float, float]] = []
    found: list[int] = []
    for n, (middle, length) in enumerate(labels):
        if all(abs(middle - other) >= (length + long) / 2 + gap for other, long in kept):
            kept.append((middle, length))
            found.append(n)
    return found
