"""The name that was probably meant: did-you-mean by edit distance.

Worked example: `nearest("weigth", ["weight", "input"])` is `"weight"`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_MOST_CANDIDATES = 400  # keeps a cell with thousands of unknown names in bounded time
_LONGEST = 64


def edit_distance(left: str, right: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) from `left` to `right`; `limit + 1` if there are more.

    Source: optimal string alignment distance.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `name`, or `None` when none is close (a third of the letters, at least one edit)."""
    if len(name) > _LONGEST:
        return None
    best: tuple[int, str] | None = None
    limit = max(1, len(name) // 3)
    for candidate in islice(candidates, _MOST_CANDIDATES):
        if candidate == name or len(candidate) > _LONGEST:
            continue
        if candidate.lower() == name.lower():
            return candidate
        distance = edit_distance(name, candidate, limit)
        if distance <= limit and distance < max(len(name), len(candidate)) and (best is None or distance < best[0]):
            best = (distance, candidate)
    return best[1] if best else None
