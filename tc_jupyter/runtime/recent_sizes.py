"""The sizes of the latest calls of a function, for views of it.

Worked example: after calls with `N=3`, `N=5`, `N=3`, `RecentCalls(("N",)).texts()` is `("N=3", "N=5")`.
"""

from __future__ import annotations

MOST = 5


class RecentCalls:
    """The latest calls with different sizes, at most `MOST`. Calls of several threads at once may lose one, never break it.

    Attributes:
        names: the sizes, in the order of the values.
        last: the values of the latest call that was noted; a caller compares before it calls `note`.
    """

    __slots__ = ("_seen", "last", "names")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.last: tuple[int, ...] | None = None
        self._seen: list[tuple[int, ...]] = []

    def note(self, values: tuple[int, ...]) -> None:
        """A call with these sizes."""
        seen = self._seen
        others = [key for key in seen if key != values] if values in seen else seen
        self._seen = [*others[1 - MOST :], values]
        self.last = values

    def texts(self) -> tuple[str, ...]:
        """`N=1000, K=5` per call, the latest first."""
        if not self.names:
            return ()
        pairs = (zip(self.names, values, strict=True) for values in reversed(self._seen))
        return tuple(", ".join(f"{name}={value}" for name, value in each) for each in pairs)
