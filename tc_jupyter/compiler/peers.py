"""What else computes the same: a function of the user, or an expression that a library computes.

Worked example: `against={"numpy": "A @ B"}` is the product of NumPy, of the arguments `A` and `B` of the function that is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from tc_jupyter.diagnostics import shown_value

from .definition import gpu_available

Peer = Callable[..., Any] | str
"""A function with the arguments of the def, or a Python expression over them and the module of a library."""
LIBRARIES = {"numpy": "np", "scipy": "scipy", "torch": "torch", "jax": "jax", "cupy": "cp"}
"""Peers and the name of their module in expressions."""
INTO = "torch out"
"""A peer whose expression writes into the array `OUT`."""
LOOPS = "numba"
"""A peer that is a function: loops over the parameters, a line of the header each, which Numba compiles."""
_MODULES = {INTO: "torch"}


def checked_peers(against: object) -> dict[str, Peer]:
    """What was given as `against=`.

    Raises:
        TypeError: these are no names with functions or expressions.
        ValueError: an expression that does not say which library computes it, or that is none.
    """
    example = 'peers have names, as in `against={"numpy": "A @ B"}` or `against={"mine": my_function}`'
    if against is None:
        return {}
    if not isinstance(against, Mapping) or not all(isinstance(name, str) for name in against):
        raise TypeError(f"against={shown_value(against)}: {example}")
    for name, peer in against.items():
        if not callable(peer) and not isinstance(peer, str):
            raise TypeError(f"against: {name!r} is neither a function nor an expression, but {shown_value(peer)}")
        if isinstance(peer, str):
            library_of(name)
            _check_expression(name, peer)
    return dict(against)


def _check_expression(name: str, text: str) -> None:
    try:
        compile(text, name, "eval")
    except (SyntaxError, ValueError) as problem:
        raise ValueError(f"against: {name!r} is no expression of Python: {shown_value(text)}") from problem


def library_of(name: str) -> str:
    """The library that computes an expression: the first word of the name of the peer.

    Raises:
        ValueError: there is no such library.
    """
    word = (name.split() or [""])[0]
    library = next((library for library, short in LIBRARIES.items() if word in (library, short)), None)
    if library is None:
        raise ValueError(
            f"the name of a peer that is an expression begins with one of {', '.join(LIBRARIES)}: {name!r}"
        )
    return library


def checked_seconds(seconds: object) -> float:
    """How long to measure or to search.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative, or NaN.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.integer, np.floating)):
        raise TypeError(f"seconds={shown_value(seconds)}: expected a number of seconds")
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"seconds={shown_value(seconds)}: a time is not negative")
    return float(seconds)


def installed(library: str) -> bool:
    """Whether a peer can be asked."""
    return find_spec(_MODULES.get(library, library)) is not None


def moved(arrays: Mapping[str, Any], library: str) -> dict[str, Any]:
    """The arguments as arrays of a library."""
    if library in ("numpy", "scipy", LOOPS):
        return dict(arrays)
    if library in ("torch", INTO):
        torch = import_module("torch")
        device = "cuda" if gpu_available() else "cpu"
        return {k: torch.from_numpy(v).to(device) if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
    module = import_module("jax.numpy" if library == "jax" else library)
    return {k: module.asarray(v) if isinstance(v, np.ndarray) else v for k, v in arrays.items()}


def peer_call(library: str, expression: str, arrays: Mapping[str, Any], out: Any = None) -> Callable[[], Any]:
    """The call of a peer; JAX and Numba compile it, PyTorch writes into an array like `out` where the library is `INTO`."""
    module = import_module(_MODULES.get(library, library))
    if library == LOOPS:
        return _loops_call(module, expression, arrays)
    scope: dict[str, Any] = {LIBRARIES[_MODULES.get(library, library)]: module, "np": np}
    if library == "torch":
        scope["F"] = import_module("torch.nn.functional")
    if library == "scipy":
        for part in ("ndimage", "signal", "spatial.distance", "special"):
            import_module(f"scipy.{part}")
    if library == INTO:
        scope["OUT"] = module.from_numpy(np.empty_like(out))
    if library == "jax":
        scope["jnp"] = import_module("jax.numpy")
        function = module.jit(eval(f"lambda {', '.join(arrays)}: ({expression}\n)", scope))
        return lambda: module.block_until_ready(function(*arrays.values()))
    return eval(f"lambda: ({expression}\n)", {**scope, **arrays})  # `A.min(), A.max()` is one value


def _loops_call(numba: Any, text: str, arrays: Mapping[str, Any]) -> Callable[[], Any]:
    """A function with loops, compiled by Numba for these arguments: on all threads, sums in any order."""
    scope: dict[str, Any] = {"np": np, "prange": numba.prange}
    exec(text, scope)
    name = text.removeprefix("def ").partition("(")[0]
    function = numba.njit(parallel=True, fastmath=True)(scope[name])
    values = tuple(arrays.values())
    function(*values)
    return lambda: function(*values)
