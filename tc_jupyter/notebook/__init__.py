"""The notebook: magics, the comm to the front end, completion, rich output. The only folder that speaks Jupyter.

Comes in: cells and messages. Goes out: bound functions and display bundles. `load_ipython_extension` prints nothing, uses no network
and starts no GPU.
"""

from __future__ import annotations

from typing import Any

from .completion import matcher
from .magic import TcMagics
from .report import Report

__all__ = ["Report", "TcMagics", "load_ipython_extension", "unload_ipython_extension", "view"]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tc_jupyter`; loading twice changes nothing."""
    from tc_jupyter.function import Function  # noqa: PLC0415  (only a loaded extension needs it)

    from . import comm  # noqa: PLC0415

    unload_ipython_extension(shell)
    magics = TcMagics(shell)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(matcher)
    formatter = shell.display_formatter.mimebundle_formatter
    formatter.for_type(Function, _show_function)
    shell.tc_jupyter_magics = magics
    comm.open_channel(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext tc_jupyter`: take back the magics, the matcher, the formatter and the comm."""
    from tc_jupyter.function import Function  # noqa: PLC0415

    from . import comm  # noqa: PLC0415

    comm.close_channel()
    shell.Completer.custom_matchers[:] = [
        each for each in shell.Completer.custom_matchers if each is not matcher and not _ours(each)
    ]
    shell.display_formatter.mimebundle_formatter.type_printers.pop(Function, None)
    old = getattr(shell, "tc_jupyter_magics", None)
    if old is None:
        return
    for kind, names in (("cell", ("tc", "sac")), ("line", ("tc",))):
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)
    shell.configurables[:] = [each for each in shell.configurables if each is not old]
    shell.tc_jupyter_magics = None


def _ours(candidate: Any) -> bool:
    """A matcher of an earlier load of this package (after `%reload_ext` it is another function object)."""
    return getattr(candidate, "matcher_identifier", "") == "tc_jupyter"


def _show_function(function: Any, include: Any = None, exclude: Any = None) -> dict[str, Any]:
    del include, exclude
    from .magic import report_of  # noqa: PLC0415

    return report_of(function)._repr_mimebundle_()


def view(function: Any, name: str = "ranges", **options: Any) -> Any:
    """One view of a function alone; see `widgets`."""
    from .widgets import view as make  # noqa: PLC0415

    return make(function, name, **options)
