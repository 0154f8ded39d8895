# ruff: noqa: E501  (an element of a picture is one line)
"""Charts of measurements as SVG: distribution of timings, roofline, a sweep over sizes. Marks and dashes tell candidates apart, colours besides.

Worked example: `distribution_svg({"f": (1e-3, 1.1e-3)})` is one row with two ticks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from tc_jupyter.runtime.timing import Limits, Row, Timing, duration

from .colours import of_kind
from .picture import LINE
from .svg import LETTERS, beside, letters, short, svg, units, wide

MARKS = ("●", "■", "▲", "◆", "▼", "✚")
_DASHES = ("", "6 3", "2 2", "8 2 2 2", "1 3", "10 4")
METRICS = {"time": "time", "gbs": "GB/s", "gflops": "GFLOP/s"}


def line_of(number: int) -> str:
    """The colour of a thin line: of its kind, mixed with that of the text, so that it is seen on every page."""
    return f"color-mix(in srgb,{of_kind(number)} 45%,currentColor)"


def distribution_svg(samples: Mapping[str, tuple[float, ...]]) -> str:
    """One row per candidate on a common logarithmic axis: every sample as a tick, p10 to p90 as a box, the median as a line."""
    everything = [value for values in samples.values() for value in values]
    low, high = math.log10(max(min(everything), 1e-12)), math.log10(max(*everything, 1e-12))
    span = max(high - low, 0.05)
    names = {name: f"{MARKS[n % len(MARKS)]} {short(name, 16)}" for n, name in enumerate(samples)}
    left = max(map(wide, names.values())) + 14
    place = lambda value: left + (math.log10(max(value, 1e-12)) - low) / span * 420  # noqa: E731
    parts: list[str] = []
    said: list[str] = []
    for n, (name, values) in enumerate(samples.items()):
        y = 10 + n * 30
        timing = Timing(name, values)
        step = max(1, len(values) // 150)
        ticks = "".join(f"M{place(v):.1f} {y + 2}v16" for v in sorted(values)[::step])
        parts.append(
            f"{letters(2, y + 14, names[name])}"
            f'<path data-samples="{escape(name)}" d="{ticks}" stroke="currentColor" opacity=".3"/>'
            f'<rect x="{place(timing.p10):.1f}" y="{y + 4}" width="{max(1.0, place(timing.p90) - place(timing.p10)):.1f}" height="12" '
            f'fill="{of_kind(n)}" fill-opacity=".5" stroke="{LINE}"/>'
            f'<path d="M{place(timing.median):.1f} {y}v20" stroke="currentColor" stroke-width="2.5"/>'
        )
        said.append(f"{name}: best {duration(timing.best)}, median {duration(timing.median)}, {len(values)} samples")
    y = 14 + len(samples) * 30
    numbers = _round_numbers(low - 0.001, high + 0.001)
    ticks = [(place(value), duration(value)) for value in (numbers if len(numbers) > 1 else (10**low, 10**high))]
    shown = beside((x, wide(said)) for x, said in ticks)
    parts += [f'<path d="M{ticks[n][0]:.1f} 6V{y}" stroke="{LINE}"/>{letters(ticks[n][0], y + 13, ticks[n][1], "middle")}' for n in shown]  # fmt: skip
    right = max(left + 430, *(ticks[n][0] + wide(ticks[n][1]) / 2 for n in shown), 0)
    return svg(right, y + 18, "".join(parts), "; ".join(said), {"chart": "distribution"})


def _round_numbers(low: float, high: float) -> list[float]:
    """Round numbers between two powers of ten, those that matter most first."""
    span = high - low
    digits = (1,) if span > 3 else (1, 5, 2) if span > 0.8 else (1, 5, 2, 3, 1.5, 7, 4, 6, 8, 9, 2.5, 3.5)
    exponents = range(math.floor(low), math.ceil(high) + 1)
    found = [digit * 10.0**exponent for digit in digits for exponent in exponents]
    return [value for value in found if low <= math.log10(value) <= high]


def roofline_svg(rows: tuple[Row, ...], intensity: float, limits: Limits) -> str:
    """Operations per second against operations per byte, with the measured limits of this machine, both logarithmic."""
    ridge = limits.flops / limits.bandwidth
    left, right = math.log10(min(intensity, ridge) / 8), math.log10(max(intensity, ridge) * 8)
    top = math.log10(limits.flops * 2)
    reached = [row.gflops * 1e9 for row in rows if row.gflops]
    bottom = math.log10(max(1.0, min([limits.bandwidth * 10**left, *reached]) / 2))

    powers = range(math.ceil(bottom), math.floor(top) + 1)
    numbers = {power: f"{10.0 ** (power - 9):g}" for power in powers}
    start = max([24.0, *map(wide, numbers.values())]) + 8

    def at(x: float, y: float) -> tuple[float, float]:
        return start + (math.log10(x) - left) / (right - left) * 380, 20 + (top - math.log10(y)) / (top - bottom) * 150

    x0, y0 = at(10**left, limits.bandwidth * 10**left)
    x1, y1 = at(ridge, limits.flops)
    x2, y2 = at(10**right, limits.flops)
    parts = [f'<path d="M{units(start)} 14V170H{units(start + 380)}" fill="none" stroke="{LINE}"/>']
    heights = {power: at(intensity, 10.0**power)[1] for power in powers}
    parts += [f'<path d="M{units(start - 4)} {y:.1f}h4" stroke="currentColor"/>' for y in heights.values()]
    shown = [powers[n] for n in beside([(heights[power], LETTERS) for power in powers], 3)]
    parts += [letters(start - 6, heights[power] + 4, numbers[power], "end") for power in shown]
    for power in range(math.ceil(left), math.floor(right) + 1):
        x = at(10.0**power, limits.flops)[0]
        parts.append(f'<path d="M{x:.1f} 170v4" stroke="currentColor"/>{letters(x, 185, f"{10.0**power:g}", "middle")}')
    parts.append(letters(start + 4, 12, "GFLOP/s"))
    parts += [
        f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none" stroke="currentColor" stroke-width="2"/>'
    ]
    for n, row in enumerate(rows):
        if row.gflops:
            x, y = at(intensity, row.gflops * 1e9)
            parts.append(letters(x, y + 4, MARKS[n % len(MARKS)], "middle", {"roof": row.name}))
    below = f"operations per byte (here {intensity:.3g}; ridge {ridge:.3g})"
    parts.append(letters(start + 190, 201, below, "middle"))
    parts.append(letters(x2 - 4, y2 - 5, f"{limits.flops / 1e9:.3g} GFLOP/s, {limits.bandwidth / 1e9:.3g} GB/s", "end"))
    label = (
        "roofline: "
        + "; ".join(f"{row.name} {row.gflops:.3g} GFLOP/s" for row in rows if row.gflops)
        + f"; limits: {limits.how}"
    )
    return f"<div>{svg(start + 390, 207, ''.join(parts), label, {'chart': 'roofline'})}</div>"


def sweep_svg(name: str, metric: str, series: Mapping[str, Sequence[tuple[int, Row]]]) -> str:
    """One line per candidate over the values of a size, both axes logarithmic; for times also p10 to p90 as a band.

    Args:
        metric: a key of `METRICS`.
        series: per candidate, values of the size with their rows.
    """
    lines = {n: [(x, _ends(row, metric)) for x, row in found] for n, found in series.items()}
    drawn = {n: [(x, e) for x, e in points if e is not None and x > 0 and e[1] > 0] for n, points in lines.items()}
    values = [value for points in drawn.values() for _, ends in points for value in ends]
    sizes = sorted({x for points in drawn.values() for x, _ in points})
    if not values or len(sizes) < 2:
        return ""
    low, high = math.log10(min(values)), math.log10(max(values))
    low, span = low - 0.05, max(high - low + 0.1, 0.1)
    left, right = math.log10(sizes[0]), math.log10(sizes[-1])

    numbers = [(value, _number(value, metric)) for value in _round_numbers(low, low + span)]
    start = max([40.0, *(wide(said) for _, said in numbers)]) + 8

    def at(x: float, y: float) -> tuple[float, float]:
        return start + (math.log10(x) - left) / (right - left) * 400, 200 - (math.log10(y) - low) / span * 180

    parts = [_axes(start, metric)]
    heights = [at(sizes[0], value)[1] for value, _ in numbers]
    for n in beside([(y, LETTERS) for y in heights], 3):
        grid = f'<path d="M{units(start)} {heights[n]:.1f}h400" stroke="{LINE}"/>'
        parts.append(grid + letters(start - 4, heights[n] + 4, numbers[n][1], "end"))
    places = [at(x, 10**low)[0] for x in sizes]
    parts += [f'<path d="M{x:.1f} 200v4" stroke="currentColor"/>' for x in places]
    ends_first = sorted(range(len(sizes)), key=lambda n: n not in (0, len(sizes) - 1))
    labels = [(places[n], wide(str(sizes[n]))) for n in ends_first]
    parts += [letters(labels[n][0], 215, str(sizes[ends_first[n]]), "middle") for n in beside(labels)]
    for n, (who, points) in enumerate(drawn.items()):
        if not points:
            continue
        upper = [at(x, ends[2]) for x, ends in points]
        lower = [at(x, ends[0]) for x, ends in reversed(points)]
        middle = [at(x, ends[1]) for x, ends in points]
        if metric == "time":
            band = "L".join(f"{x:.1f} {y:.1f}" for x, y in upper + lower)
            parts.append(f'<path d="M{band}z" fill="{of_kind(n)}" opacity=".3"/>')
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in middle)
        dash = f' stroke-dasharray="{_DASHES[n % len(_DASHES)]}"' if _DASHES[n % len(_DASHES)] else ""
        parts.append(f'<path data-sweep="{escape(who)}" data-count="{len(points)}" d="M{path}" fill="none" stroke="{line_of(n)}" stroke-width="2"{dash}/>')  # fmt: skip
        mark = MARKS[n % len(MARKS)]
        marks = "".join(letters(x, y + 4, mark, "middle") for x, y in middle)
        parts.append(f'<g fill="{line_of(n)}">{marks}{letters(start + 422, 28 + n * 18, mark, "middle")}</g>')
        parts.append(letters(start + 434, 28 + n * 18, short(who, 22)))
    parts.append(letters(start + 200, 230, name, "middle"))
    said = "; ".join(
        f"{who}: {', '.join(f'{x}: {_value(ends[1], metric)}' for x, ends in points)}" for who, points in drawn.items()
    )
    label = f"{METRICS[metric]} over {name}. {said}"
    width = start + 440 + max(wide(short(who, 22)) for who in drawn)
    return f"<div>{svg(width, 236, ''.join(parts), label, {'chart': 'sweep'})}</div>"


def _ends(row: Row, metric: str) -> tuple[float, float, float] | None:
    if metric == "time":
        return row.p10, row.median, row.p90
    value = row.gbs if metric == "gbs" else row.gflops
    return None if value is None else (value, value, value)


def _value(value: float, metric: str) -> str:
    return duration(value) if metric == "time" else f"{_number(value, metric)} {METRICS[metric]}"


def _number(value: float, metric: str) -> str:
    """What stands beside an axis that tells the unit."""
    return duration(value) if metric == "time" else f"{value:.3g}"


def _axes(start: float, metric: str) -> str:
    name = METRICS[metric] + (" (line: median; band: p10 to p90)" if metric == "time" else "")
    lines = f'<path d="M{units(start)} 20V200h400" fill="none" stroke="currentColor"/>'
    return lines + letters(start, 12, name)
