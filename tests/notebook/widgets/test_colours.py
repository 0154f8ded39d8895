"""Colours of elements: in order, readable under black or white digits, apart for every kind of colour vision."""

from __future__ import annotations

import pytest

from tc_jupyter.notebook.widgets.colours import KINDS, Colours, ink, luminance, palette

# Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", severity 1
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, vision: str) -> list[float]:
    rgb = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return [sum(w * part for w, part in zip(row, rgb, strict=True)) for row in VISIONS[vision]]


def apart(one: str, other: str, vision: str) -> float:
    return sum((a - b) ** 2 for a, b in zip(seen(one, vision), seen(other, vision), strict=True)) ** 0.5


def test_digits_are_readable_on_every_disc():
    colours = {each for hues in range(1, 25) for tones in (1, 2, 3, 8, 16) for each in palette(hues, tones)}
    colours |= set(palette(1, 96))
    for each in colours:
        assert contrast(each, "#000000" if ink(each) == "#000" else "#ffffff") >= 4.5


@pytest.mark.parametrize("count", [2, 3, 8, 24, 96])
def test_elements_of_a_row_become_lighter(count):
    lights = [luminance(Colours(1, count).of(n)) for n in range(count)]
    assert lights == sorted(lights)
    assert len(set(lights)) == count


@pytest.mark.parametrize("vision", VISIONS)
def test_neighbours_differ_for_every_vision(vision):
    row = Colours(1, 8)
    assert min(apart(row.of(n), row.of(n + 1), vision) for n in range(7)) > 18
    several = Colours(4, 6)
    for n in range(24):
        if n % 6 < 5:
            assert apart(several.of(n), several.of(n + 1), vision) > 18
        if n < 18:
            assert apart(several.of(n), several.of(n + 6), vision) > 18
    kinds = [apart(a, b, vision) for n, a in enumerate(KINDS) for b in KINDS[:n]]
    assert min(kinds) > 10


def test_rows_differ_by_hue_and_columns_by_lightness():
    colours = Colours(3, 4)
    for row in range(3):
        lights = [luminance(colours.of(4 * row + column)) for column in range(4)]
        assert lights == sorted(lights)
    assert Colours(0, 0).of(0) == Colours(1, 1).of(0)
    data = Colours(1000, 1000).data()
    assert len(data["palette"]) == data["hues"] * data["tones"] <= 400
