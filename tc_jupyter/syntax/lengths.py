"""How many values an index takes, as the reads that it subscripts say.

Worked example: `i` of `X(i + 1) * X(i)` takes `X.0 - 1` values, and `j` of `X(j) * Z(j)` takes `X.0` where both have the same size.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index stands.

    Attributes:
        extent: the text of the extent of that dimension, as `X.1`.
        range: what dimensions that run over the same have in common.
        shift: 1 for `j + 1`; `None` where more than that stands there.
    """

    extent: str
    range: Hashable
    shift: int | None


def length(places: Iterable[Place], is_guarded: bool) -> str:
    """The number of values of an index that stands at these places; nothing where they do not say it.

    Args:
        is_guarded: conditions decide what is read, so that a shift may reach beyond an end.
    """
    found = list(places)
    shifts = [place.shift for place in found if place.shift is not None]
    if not found or len(shifts) != len(found) or len({place.range for place in found}) != 1:
        return ""
    if is_guarded and any(shifts):
        return ""
    lost = max(shifts) - min(shifts)
    return f"{found[0].extent} - {lost}" if lost else found[0].extent


def count(lengths: Iterable[str]) -> str:
    """The number of points, in brackets where an operator beside it could take it apart: `(X.0 * (X.1 - 1))`."""
    factors = list(lengths)
    if len(factors) == 1:
        return f"({factors[0]})" if " " in factors[0] else factors[0]
    return f"({' * '.join(f'({factor})' if ' ' in factor else factor for factor in factors)})"
