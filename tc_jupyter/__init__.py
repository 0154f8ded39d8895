"""Fast array kernels from index notation in a notebook cell.

The folders, in the order in which a cell flows through them; each is named after the value it makes:

* `files`: files that this user has written;
* `diagnostics`: what is said to the user;
* `syntax`: text -> tree;
* `program`: tree -> checked program;
* `ranges`: program -> ranges, shapes, origins, preconditions;
* `gradient`: program and ranges -> text of the def of its derivatives;
* `schedule`: ranges -> schedule and bounds;
* `loops`: program, schedule and bounds -> loops;
* `codegen`: loops -> source text;
* `runtime`: source text -> callable;
* `simulator`: PTX and arrays -> results and findings, without a GPU;
* `compiler`: the arrow itself;
* `chunks`: a def over arrays in chunks, for Dask, xarray and zarr;
* `autotune`: candidates -> timings -> store;
* `function`: what the user holds and calls;
* `bench`, `ide`, `importer`: programs measured against other libraries and C, answers for editors, files as modules of Python;
* `lsp`: those answers for any editor;
* `cli`, `notebook`: the command line, the magics and widgets.

Worked example:

    import tc_jupyter as tc
    module = tc.compile("def mv(float(R,C) A, float(C) B) -> (o) { o(i) +=! A(i,j) * B(j) }")
    module.mv(A, B)

The public names are loaded when they are first used: importing the package costs a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler import Analysis, analyze
    from .diagnostics import CallError, CompileError, Diagnostic, DiagnosticWarning, explain
    from .function import Function, Module, compile, export, load, zarr
    from .notebook import view
    from .notebook.report import card
    from .runtime.arrays import register_arrays
    from .runtime.doctor import doctor
    from .runtime.memory import empty_cache
    from .runtime.threads import set_threads

__version__ = "0.1.0"

_HOMES = {
    "Analysis": ".compiler",
    "analyze": ".compiler",
    "CallError": ".diagnostics",
    "CompileError": ".diagnostics",
    "Diagnostic": ".diagnostics",
    "DiagnosticWarning": ".diagnostics",
    "explain": ".diagnostics",
    "Function": ".function",
    "Module": ".function",
    "compile": ".function",
    "export": ".function",
    "load": ".function",
    "zarr": ".function",
    "view": ".notebook",
    "card": ".notebook.report",
    "register_arrays": ".runtime.arrays",
    "doctor": ".runtime.doctor",
    "empty_cache": ".runtime.memory",
    "set_threads": ".runtime.threads",
}

__all__ = [
    "Analysis",
    "CallError",
    "CompileError",
    "Diagnostic",
    "DiagnosticWarning",
    "Function",
    "Module",
    "analyze",
    "card",
    "compile",
    "doctor",
    "empty_cache",
    "explain",
    "export",
    "load",
    "register_arrays",
    "set_threads",
    "view",
    "zarr",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not; no modules and helpers that happen to be loaded."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext tc_jupyter`: register the magics."""
    import_module(".notebook", __name__).load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext tc_jupyter`: take the magics away again."""
    import_module(".notebook", __name__).unload_ipython_extension(ipython)


def _jupyter_labextension_paths() -> list[dict[str, str]]:  # pyright: ignore[reportUnusedFunction]
    """Where JupyterLab's tools find the built front end in a checkout."""
    return [{"src": "labextension", "dest": "tc-jupyter"}]
