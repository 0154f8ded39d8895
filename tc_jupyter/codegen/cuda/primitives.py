"""Intrinsics: the operations of the hardware that C++ cannot say, as inline PTX. All inline PTX but conversions lives here."""

from __future__ import annotations

from tc_jupyter.loops import Intrinsic

from .expressions import Scope

COLLECTIVE: frozenset[str] = frozenset()
"""Intrinsics in which all threads of a warp or block take part."""

PRIMITIVES: dict[str, str] = {}
"""Device functions by name, like `helpers.HELPERS`."""


def emit_intrinsic(stmt: Intrinsic, scope: Scope) -> list[str]:
    """The lines of an intrinsic.

    Raises:
        ValueError: the name is not known.
    """
    raise ValueError(f"unknown intrinsic: {stmt.name} {scope.index_type}")
