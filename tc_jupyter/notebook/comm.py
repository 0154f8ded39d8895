"""The channel to the front end: which of its functions run depends on the shell; without a kernel nothing happens.

Worked example: in a terminal `open_channel(shell)` does nothing and `front_end()` says that there is no kernel.
"""

from __future__ import annotations

from typing import Any


def open_channel(shell: Any) -> None:
    """Open the channel, if the shell belongs to a kernel."""
    del shell


def close_channel() -> None:
    """Close the channel, if it is open."""


def front_end() -> str:
    """Whether a front end is attached, in words."""
    return "none attached"
