"""What `%load_ext tc_jupyter` adds to a shell, and how it is taken away again; loading twice changes nothing.

Worked example: after `load(shell)` the shell knows `%%tc` and shows the card of a function; after `unload(shell)` it is as before.
"""

from __future__ import annotations

from typing import Any

from tc_jupyter.diagnostics import NARROW, PAGE, WIDE
from tc_jupyter.function import Function
from tc_jupyter.runtime.timing import Benchmark

from . import comm, errors
from .completion import IDENTIFIER, matcher
from .magic import TcMagics
from .report import report_of

_PLAN = "tc_jupyter.chunks.plan", "Plan"
_MAGICS = {"cell": ("tc", "sac"), "line": ("tc",)}


def load(shell: Any) -> None:
    """Add magics, completion, display of functions and benchmarks, short errors of calls, and the comm."""
    unload(shell)
    magics = TcMagics(shell, comm.front_end)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(matcher)
    shell.display_formatter.mimebundle_formatter.for_type(Function, _show_function)
    _text_formatter(shell).for_type(Benchmark, _print_benchmark)
    # by name: few sessions plan a call in chunks
    shell.display_formatter.mimebundle_formatter.for_type_by_name(*_PLAN, _show_plan)
    errors.install(magics)
    shell.tc_jupyter_magics = magics
    comm.open_channel(shell)
    if getattr(shell, "kernel", None) is not None:  # our front end breaks no line of a text; others do
        PAGE.columns = lambda: WIDE if comm.attached() else NARROW


def unload(shell: Any) -> None:
    """Take everything back."""
    comm.close_channel()
    PAGE.columns = lambda: WIDE
    errors.remove()
    # after `%reload_ext` or `%autoreload` the matcher of the earlier load is another function object
    shell.Completer.custom_matchers[:] = [each for each in shell.Completer.custom_matchers if not _ours(each)]
    shell.display_formatter.mimebundle_formatter.type_printers.pop(Function, None)
    _text_formatter(shell).type_printers.pop(Benchmark, None)
    shell.display_formatter.mimebundle_formatter.deferred_printers.pop(_PLAN, None)
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


def _show_plan(plan: Any, include: Any = None, exclude: Any = None) -> dict[str, Any]:
    from .widgets.chunks import plan_html  # noqa: PLC0415  (few sessions plan a call in chunks)

    del include, exclude
    return {"text/plain": repr(plan), "text/html": plan_html(plan)}


def _print_benchmark(result: Benchmark, printer: Any, cycle: bool) -> None:
    del cycle
    printer.text(str(result))
