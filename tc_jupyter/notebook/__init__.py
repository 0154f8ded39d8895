"""The notebook: magics, the comm to the front end, completion, rich output. The only folder that speaks Jupyter.

Comes in: cells and messages. Goes out: bound functions and display bundles. Loading prints nothing, uses no network and starts
no GPU.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tc_jupyter.function import Function
from tc_jupyter.runtime.timing import Benchmark

from . import comm, errors
from .completion import IDENTIFIER, matcher
from .magic import TcMagics, report_of
from .report import Report

__all__ = ["Report", "TcMagics", "load_ipython_extension", "unload_ipython_extension", "view"]

_MAGICS = {"cell": ("tc", "sac"), "line": ("tc",)}


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tc_jupyter`; loading twice changes nothing."""
    unload_ipython_extension(shell)
    magics = TcMagics(shell)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(matcher)
    shell.display_formatter.mimebundle_formatter.for_type(Function, _show_function)
    _text_formatter(shell).for_type(Benchmark, _print_benchmark)
    errors.install(magics)
    shell.tc_jupyter_magics = magics
    comm.open_channel(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext tc_jupyter`: take back the magics, the matcher, the formatters, the errors and the comm."""
    comm.close_channel()
    errors.remove()
    # after `%reload_ext` or `%autoreload` the matcher of the earlier load is another function object
    shell.Completer.custom_matchers[:] = [each for each in shell.Completer.custom_matchers if not _ours(each)]
    shell.display_formatter.mimebundle_formatter.type_printers.pop(Function, None)
    _text_formatter(shell).type_printers.pop(Benchmark, None)
    shell.configurables[:] = [each for each in shell.configurables if type(each).__name__ != TcMagics.__name__]
    if getattr(shell, "tc_jupyter_magics", None) is None:
        return
    for kind, names in _MAGICS.items():
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)
    shell.tc_jupyter_magics = None


def _ours(candidate: Any) -> bool:
    return getattr(candidate, "matcher_identifier", "") == IDENTIFIER


def _text_formatter(shell: Any) -> Any:
    return shell.display_formatter.formatters["text/plain"]


def _show_function(function: Function, include: Any = None, exclude: Any = None) -> dict[str, Any]:
    del include, exclude
    return report_of(function).bundle()


def _print_benchmark(result: Benchmark, printer: Any, cycle: bool) -> None:
    del cycle
    printer.text(str(result))


def view(function: Any, name: str = "ranges", **options: Any) -> Any:
    """One view of a function alone: `ranges`, `iteration_space`, `schedule`, `code`, `benchmark` or `tuning`.

    Raises:
        TypeError: not a function of a cell.
        ImportError: what draws views is not part of this installation; says what to do instead.
    """
    if not isinstance(function, Function):
        raise TypeError(f"tc.view draws a function of a %%tc or %%sac cell, not a {type(function).__name__}")
    if find_spec(f"{__name__}.widgets.views") is None:
        raise ImportError("this installation has no views; `%tc inspect NAME` shows the card of a function")
    from .widgets.views import view as make  # noqa: PLC0415

    return make(function, name, **options)
