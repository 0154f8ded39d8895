"""What a measurement compares: the function on its engines, functions of the user, and libraries that compute the same.

Worked example: for `C(i, j) +=! A(i, k) * B(k, j)` the libraries are offered `einsum('ik,kj->ij', A, B)`.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from tc_jupyter.compiler.definition import engine_of
from tc_jupyter.compiler.peers import LIBRARIES, Peer, library_of, moved, peer_call
from tc_jupyter.function import Function, gpu_available
from tc_jupyter.program import Binary, Cast, Expr, IndexVar, Program, Read
from tc_jupyter.runtime import jit

Arrays = Mapping[str, Any]
Make = Callable[[Arrays], Callable[[], Any]]
"""Arguments as NumPy arrays by name -> a call without arguments; copies to the arrays of a library happen before it."""

SLOWEST = 2_000_000
"""Operations up to which the interpreter is measured."""


def candidates_of(function: Function, against: Mapping[str, Peer]) -> dict[str, Make]:
    """Everything that can be measured, by name; the function on its own engine comes first.

    Raises:
        ValueError: a peer that has the name of the function, or of the function on an engine.
    """
    own = engine_of(function.options.target, "cpu")
    found: dict[str, Make] = {function.__name__: _on(function, own)}
    others = [*(["cpu"] if jit.is_installed() else []), *(["cuda"] if gpu_available() else []), "interpreter"]
    for engine in others:
        if engine != own:
            found[f"{function.__name__} on {engine}"] = _on(function.on(engine), engine)
    for name, peer in against.items():
        if name in found:
            raise ValueError(f"against: {name!r} is measured already: give the peer another name")
        found[name] = _of_user(name, peer)
    formula = einsum_of(function.program)
    if formula is not None:
        for library in ("numpy", "torch", "cupy"):
            name = f"{library} einsum"
            if name not in found and find_spec(library) is not None and (library != "cupy" or gpu_available()):
                # without `optimize` NumPy and CuPy multiply in plain loops
                best = formula if library == "torch" else f"{formula[:-1]}, optimize=True)"
                found[name] = _of_library(library, f"{LIBRARIES[library]}.{best}")
    return found


def usual(function: Function, against: Mapping[str, Peer]) -> tuple[str, ...]:
    """What is measured unless something else is chosen: the function, the user's peers, and without those NumPy."""
    first = (function.__name__, *against)
    return first if against or einsum_of(function.program) is None else (*first, "numpy einsum")


def _on(function: Function, engine: str) -> Make:
    def make(arrays: Arrays) -> Callable[[], Any]:
        own = tuple(moved(arrays, "cupy").values()) if engine == "cuda" else tuple(arrays.values())
        return lambda: function(*own)

    return make


def _of_user(name: str, peer: Peer) -> Make:
    if callable(peer):
        return lambda arrays: lambda: peer(*arrays.values())
    return _of_library(library_of(name), peer)


def _of_library(library: str, expression: str) -> Make:
    return lambda arrays: peer_call(library, expression, moved(arrays, library))


def einsum_of(program: Program) -> str | None:
    """`einsum('ik,kj->ij', A, B)` for a def that is one sum of products of elements at plain indices; else `None`."""
    if len(program.statements) != 1:
        return None
    (statement,) = program.statements
    if statement.operator != "+" or not statement.initialize or not statement.reduction_indices or statement.left:
        return None
    reads = _factors(statement.value)
    names = {index.name: letter for index, letter in zip(statement.indices, string.ascii_letters, strict=False)}
    if reads is None or len(names) < len(statement.indices):
        return None
    operands = ["".join(names[i.name] for i in read.indices if isinstance(i, IndexVar)) for read in reads]
    result = "".join(names[index.name] for index in statement.output_indices)
    return f"einsum('{','.join(operands)}->{result}', {', '.join(read.tensor for read in reads)})"


def _factors(value: Expr) -> list[Read] | None:
    """The reads of a product, if all of them are at plain indices."""
    match value:
        case Binary(op="*", left=left, right=right):
            first, second = _factors(left), _factors(right)
            return None if first is None or second is None else first + second
        case Read(indices=indices) if indices and all(isinstance(index, IndexVar) for index in indices):
            return [value]
        case Cast(operand=operand):
            return _factors(operand)
        case _:
            return None
