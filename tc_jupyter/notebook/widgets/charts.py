# ruff: noqa: E501  (an element of a picture is one line)
"""Charts of measurements as SVG: distribution of timings, roofline, a sweep over sizes. Marks and dashes tell candidates apart, not colours.

Worked example: `distribution_svg({"f": (1e-3, 1.1e-3)})` is one row with two ticks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from tc_jupyter.runtime.timing import Limits, Row, Timing, duration

from .picture import ACCENT, LINE

MARKS = ("●", "■", "▲", "◆", "▼", "✚")
_DASHES = ("", "6 3", "2 2", "8 2 2 2", "1 3", "10 4")
METRICS = {"time": "time", "gbs": "GB/s", "gflops": "GFLOP/s"}


def distribution_svg(samples: Mapping[str, tuple[float, ...]]) -> str:
    """One row per candidate on a common logarithmic axis: every sample as a tick, p10 to p90 as a box, the median as a line."""
    everything = [value for values in samples.values() for value in values]
    low, high = math.log10(max(min(everything), 1e-12)), math.log10(max(*everything, 1e-12))
    span = max(high - low, 0.05)
    place = lambda value: 130 + (math.log10(max(value, 1e-12)) - low) / span * 420  # noqa: E731
    parts: list[str] = []
    said: list[str] = []
    for n, (name, values) in enumerate(samples.items()):
        y = 10 + n * 30
        timing = Timing(name, values)
        step = max(1, len(values) // 150)
        ticks = "".join(f"M{place(v):.1f} {y + 2}v16" for v in sorted(values)[::step])
        parts.append(
            f'<text x="2" y="{y + 14}" font-size="11" fill="currentColor">{MARKS[n % len(MARKS)]} {escape(name[:16])}</text>'
            f'<path data-samples="{escape(name)}" d="{ticks}" stroke="currentColor" opacity=".3"/>'
            f'<rect x="{place(timing.p10):.1f}" y="{y + 4}" width="{max(1.0, place(timing.p90) - place(timing.p10)):.1f}" height="12" '
            f'fill="{ACCENT}" fill-opacity=".35" stroke="{LINE}"/>'
            f'<path d="M{place(timing.median):.1f} {y}v20" stroke="currentColor" stroke-width="2.5"/>'
        )
        said.append(f"{name}: best {duration(timing.best)}, median {duration(timing.median)}, {len(values)} samples")
    y = 14 + len(samples) * 30
    for exponent in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**exponent
            if low - 0.001 <= math.log10(value) <= low + span + 0.001:
                parts.append(
                    f'<path d="M{place(value):.1f} 6V{y}" stroke="{LINE}"/><text x="{place(value):.1f}" y="{y + 12}" font-size="9" text-anchor="middle" fill="currentColor">{duration(value)}</text>'
                )
    label = "; ".join(said)
    return f'<svg data-chart="distribution" role="img" aria-label="{escape(label)}" width="570" height="{y + 18}" viewBox="0 0 570 {y + 18}" style="color:inherit">{"".join(parts)}</svg>'


def roofline_svg(rows: tuple[Row, ...], intensity: float, limits: Limits) -> str:
    """Operations per second against operations per byte, with the measured limits of this machine, both logarithmic."""
    ridge = limits.flops / limits.bandwidth
    left, right = math.log10(min(intensity, ridge) / 8), math.log10(max(intensity, ridge) * 8)
    top = math.log10(limits.flops * 2)
    reached = [row.gflops * 1e9 for row in rows if row.gflops]
    bottom = math.log10(max(1.0, min([limits.bandwidth * 10**left, *reached]) / 2))

    def at(x: float, y: float) -> tuple[float, float]:
        return 50 + (math.log10(x) - left) / (right - left) * 380, 12 + (top - math.log10(y)) / (top - bottom) * 150

    x0, y0 = at(10**left, limits.bandwidth * 10**left)
    x1, y1 = at(ridge, limits.flops)
    x2, y2 = at(10**right, limits.flops)
    parts = [f'<path d="M50 6V162H430" fill="none" stroke="{LINE}"/>']
    for power in range(math.ceil(bottom), math.floor(top) + 1):
        y = at(intensity, 10.0**power)[1]
        parts.append(
            f'<path d="M46 {y:.1f}h4" stroke="currentColor"/><text x="44" y="{y + 3:.1f}" font-size="9" text-anchor="end" fill="currentColor">{10.0 ** (power - 9):g}</text>'
        )
    for power in range(math.ceil(left), math.floor(right) + 1):
        x = at(10.0**power, limits.flops)[0]
        parts.append(
            f'<path d="M{x:.1f} 162v4" stroke="currentColor"/><text x="{x:.1f}" y="174" font-size="9" text-anchor="middle" fill="currentColor">{10.0**power:g}</text>'
        )
    parts.append('<text x="54" y="12" font-size="10" fill="currentColor">GFLOP/s</text>')
    parts += [
        f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none" stroke="currentColor" stroke-width="2"/>'
    ]
    for n, row in enumerate(rows):
        if row.gflops:
            x, y = at(intensity, row.gflops * 1e9)
            parts.append(
                f'<text data-roof="{escape(row.name)}" x="{x:.1f}" y="{y + 4:.1f}" font-size="12" text-anchor="middle" fill="currentColor">{MARKS[n % len(MARKS)]}</text>'
            )
    parts.append(
        f'<text x="240" y="188" font-size="10" text-anchor="middle" fill="currentColor">operations per byte (here {intensity:.3g}; ridge {ridge:.3g})</text>'
    )
    parts.append(
        f'<text x="{x2 - 4:.1f}" y="{y2 - 4:.1f}" font-size="10" text-anchor="end" fill="currentColor">{limits.flops / 1e9:.3g} GFLOP/s, {limits.bandwidth / 1e9:.3g} GB/s</text>'
    )
    label = (
        "roofline: "
        + "; ".join(f"{row.name} {row.gflops:.3g} GFLOP/s" for row in rows if row.gflops)
        + f"; limits: {limits.how}"
    )
    return f'<div><svg data-chart="roofline" role="img" aria-label="{escape(label)}" width="440" height="194" viewBox="0 0 440 194" style="color:inherit">{"".join(parts)}</svg></div>'


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

    def at(x: float, y: float) -> tuple[float, float]:
        return 64 + (math.log10(x) - left) / (right - left) * 400, 196 - (math.log10(y) - low) / span * 180

    parts = [_grid(low, span, metric)]
    parts += [
        f'<path d="M{at(x, 10**low)[0]:.1f} 196v4" stroke="currentColor"/>'
        f'<text x="{at(x, 10**low)[0]:.1f}" y="210" font-size="9" text-anchor="middle" fill="currentColor">{x}</text>'
        for x in _apart(sizes)
    ]
    for n, (who, points) in enumerate(drawn.items()):
        if not points:
            continue
        upper = [at(x, ends[2]) for x, ends in points]
        lower = [at(x, ends[0]) for x, ends in reversed(points)]
        middle = [at(x, ends[1]) for x, ends in points]
        if metric == "time":
            band = "L".join(f"{x:.1f} {y:.1f}" for x, y in upper + lower)
            parts.append(f'<path d="M{band}z" fill="currentColor" opacity=".12"/>')
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in middle)
        dash = f' stroke-dasharray="{_DASHES[n % len(_DASHES)]}"' if _DASHES[n % len(_DASHES)] else ""
        parts.append(f'<path data-sweep="{escape(who)}" data-count="{len(points)}" d="M{path}" fill="none" stroke="currentColor" stroke-width="1.6"{dash}/>')  # fmt: skip
        mark = MARKS[n % len(MARKS)]
        parts += [f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="11" text-anchor="middle" fill="currentColor">{mark}</text>' for x, y in middle]  # fmt: skip
        parts.append(
            f'<text x="480" y="{24 + n * 16}" font-size="11" fill="currentColor">{mark} {escape(who[:22])}</text>'
        )
    parts.append(f'<text x="264" y="224" font-size="10" text-anchor="middle" fill="currentColor">{escape(name)}</text>')
    said = "; ".join(
        f"{who}: {', '.join(f'{x}: {_value(ends[1], metric)}' for x, ends in points)}" for who, points in drawn.items()
    )
    label = f"{METRICS[metric]} over {name}. {said}"
    return f'<div><svg data-chart="sweep" role="img" aria-label="{escape(label)}" width="640" height="230" viewBox="0 0 640 230" style="color:inherit">{"".join(parts)}</svg></div>'


def _ends(row: Row, metric: str) -> tuple[float, float, float] | None:
    if metric == "time":
        return row.p10, row.median, row.p90
    value = row.gbs if metric == "gbs" else row.gflops
    return None if value is None else (value, value, value)


def _value(value: float, metric: str) -> str:
    return duration(value) if metric == "time" else f"{value:.3g} {METRICS[metric]}"


def _apart(sizes: Sequence[int]) -> list[int]:
    """At most eight of the sizes, evenly."""
    step = -(-len(sizes) // 8)
    return list(sizes[::step])


def _grid(low: float, span: float, metric: str) -> str:
    parts: list[str] = [
        '<path d="M64 16V196H464" fill="none" stroke="currentColor"/>',
        f'<text x="64" y="11" font-size="10" fill="currentColor">{METRICS[metric]}{" (line: median; band: p10 to p90)" if metric == "time" else ""}</text>',
    ]
    for exponent in range(math.floor(low), math.ceil(low + span) + 1):
        for digit in (1,) if span > 3 else (1, 2, 5) if span > 0.8 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9):
            value = digit * 10.0**exponent
            if low <= math.log10(value) <= low + span:
                y = 196 - (math.log10(value) - low) / span * 180
                parts.append(
                    f'<path d="M64 {y:.1f}H464" stroke="{LINE}"/><text x="60" y="{y + 3:.1f}" font-size="9" text-anchor="end" fill="currentColor">{_value(value, metric)}</text>'
                )
    return "".join(parts)
