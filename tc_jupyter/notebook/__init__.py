"""The notebook: magics, the comm to the front end, completion, rich output. The only folder that speaks Jupyter.

Comes in: cells and messages. Goes out: bound functions and display bundles. Loading prints nothing, uses no network and starts
no GPU. What needs IPython is imported by the hooks, so that Pygments can load `lexer` alone.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension", "view"]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tc_jupyter`; loading twice changes nothing."""
    from .extension import load  # noqa: PLC0415

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext tc_jupyter`: take back the magics, the matcher, the formatters, the errors and the comm."""
    from .extension import unload  # noqa: PLC0415

    unload(shell)


def view(function: Any, name: str = "ranges", **options: Any) -> Any:
    """One view of a function: `ranges`, `iteration_space`, `schedule`, `code`, `gradient`, `benchmark`, `tuning` or `partitions`.

    Raises:
        TypeError: not a function of a cell, or a size is no integer.
        ValueError: there is no such view.
        ImportError: what draws views is not part of this installation; says what to do instead.
    """
    from tc_jupyter.function import Function  # noqa: PLC0415

    if not isinstance(function, Function):
        raise TypeError(f"tc.view draws a function of a %%tc or %%sac cell, not a {type(function).__name__}")
    if find_spec(f"{__name__}.widgets.views") is None:
        raise ImportError("this installation has no views; `%tc inspect NAME` shows the card of a function")
    from .widgets.views import view as make  # noqa: PLC0415

    return make(function, name, **options)
