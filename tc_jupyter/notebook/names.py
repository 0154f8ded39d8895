"""Which compiled function a cell calls by a name of the notebook.

Worked example: after a cell that defines `f`, and `f = len`, no cell calls `f`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tc_jupyter.function import Function


def known_functions(namespace: Mapping[str, Any]) -> dict[str, Function]:
    """What a cell may call: the functions of the notebook by the names that they have there.

    A name that Python has not, as `2fc`, is that of the function which the notebook has under the name that it was given for it.
    """
    found = {name: value for name, value in namespace.items() if isinstance(value, Function)}
    return {value.written_name: value for name, value in found.items() if name == value.__name__} | found


__all__ = ["known_functions"]
