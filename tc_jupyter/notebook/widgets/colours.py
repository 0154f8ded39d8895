"""Colours that have an order, that a colour-blind reader can tell apart, and on which black or white digits can be read.

Elements of one row are a scale from dark blue over purple and orange to light yellow: each is lighter than the one before it.
Of several rows the hue, from blue to yellow, says the row, and the lightness says the column. For the eye the colours are equally
far apart, because they are chosen in OKLCH (lightness, chroma, hue). Things without an order have one of eight colours.

Worked example: `Colours(1, 8).of(0)` is a dark blue on which `ink` is white, `Colours(1, 8).of(7)` a light yellow with black ink.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

_MOST_ROWS, _MOST_COLUMNS, _MOST_IN_A_ROW = 24, 16, 96
"""Different hues, different tones of a hue, and different colours of a single row: more nobody tells apart."""
_BLUE, _YELLOW = 265.0, 460.0
"""Degrees of hue at the ends, the shorter way over purple, red and orange."""
KINDS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8a8a8a")
"""Okabe and Ito, "Color Universal Design": eight colours that differ for every kind of colour vision."""


def of_kind(number: int) -> str:
    """A colour for the things of one kind, where kinds have no order."""
    return KINDS[number % len(KINDS)]


@dataclass(frozen=True, slots=True)
class Colours:
    """The colours of the elements of a tensor that is drawn with so many rows and columns.

    Attributes:
        columns: how many elements a row has.
    """

    rows: int
    columns: int

    @property
    def levels(self) -> tuple[int, int]:
        """How many different hues, and how many tones of each."""
        if self.rows <= 1:
            return 1, max(1, min(self.columns, _MOST_IN_A_ROW))
        return min(self.rows, _MOST_ROWS), max(1, min(self.columns, _MOST_COLUMNS))

    def of(self, number: int) -> str:
        """The colour of an element, counted in the order of the rows."""
        row, column = divmod(number, max(1, self.columns))
        hues, tones = self.levels
        hue, tone = row * hues // max(1, self.rows), column * tones // max(1, self.columns)
        return palette(hues, tones)[hue * tones + tone]

    def data(self) -> dict[str, Any]:
        """For the script, which finds the same colour from the number of an element."""
        hues, tones = self.levels
        counts = {"rows": max(1, self.rows), "columns": max(1, self.columns), "hues": hues, "tones": tones}
        return {**counts, "palette": palette(hues, tones)}


@cache
def palette(hues: int, tones: int) -> tuple[str, ...]:
    """All colours, the tones of the first hue first."""
    if hues == 1:
        return tuple(_scale(_part(tone, tones)) for tone in range(tones))
    return tuple(
        _oklch(0.44 + 0.38 * _part(tone, tones), 0.13, _BLUE + (_YELLOW - _BLUE) * _part(hue, hues))
        for hue in range(hues)
        for tone in range(tones)
    )


def _part(number: int, count: int) -> float:
    return number / (count - 1) if count > 1 else 0.5


def _scale(part: float) -> str:
    return _oklch(0.36 + 0.50 * part, 0.15, _BLUE + (_YELLOW - _BLUE) * part)


def _oklch(lightness: float, chroma: float, hue: float) -> str:
    """A colour as `#rrggbb`, less vivid where a screen cannot show it."""
    while True:
        a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
        parts = _linear(lightness, a, b)
        if chroma < 0.01 or all(-0.001 <= part <= 1.001 for part in parts):
            return "#" + "".join(f"{round(255 * _encoded(part)):02x}" for part in parts)
        chroma *= 0.95


def _linear(lightness: float, a: float, b: float) -> tuple[float, float, float]:
    """Ottosson, "A perceptual color space for image processing"."""
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _encoded(part: float) -> float:
    kept = min(1.0, max(0.0, part))
    return 12.92 * kept if kept <= 0.0031308 else 1.055 * kept ** (1 / 2.4) - 0.055


def luminance(colour: str) -> float:
    """How light a colour is, from 0 to 1 (WCAG 2.2, "relative luminance")."""
    parts: Sequence[float] = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@cache
def ink(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour: the contrast is 4.5 at least."""
    light = luminance(colour)
    return "#000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#fff"
