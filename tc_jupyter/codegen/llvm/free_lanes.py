"""Which loops can be printed with one lane per iteration.

Comes in: a loop that the schedule wants vectorised. Goes out: whether no iteration needs what another one does; if one may, the
loop counts instead.

Worked example: `for j: t[0] = A[j]` has no free lanes, as all of them write one element; `for j: t[0] += A[j]` has.
"""

from __future__ import annotations

from tc_jupyter.loops import Allocate, Check, For, Intrinsic, Store, expressions, walk_statements
from tc_jupyter.program import Call, Read, walk
from tc_jupyter.program.integers import has_read

from .polynomial import constant_value, mentions
from .prefixes import LAST, SOUND


def has_free_lanes(stmt: For) -> bool:
    """Whether no iteration needs what another one does."""
    allocated: set[str] = set()
    for inner in walk_statements(stmt.body):
        match inner:
            case Check() | Intrinsic():
                return False
            case Store(atomic=True):
                return False
            case Allocate():
                if any(constant_value(extent) is None for extent in inner.buffer.shape):
                    return False
                allocated.add(inner.buffer.name)
            case For() if any(mentions(e, stmt.var) or has_read(e) for e in (inner.min, inner.extent)):
                return False
            case Store() if inner.buffer not in allocated and not _lanes_write_apart(inner, stmt.var, allocated):
                return False
            case _:
                pass
        for expr in expressions(inner):
            for node in walk(expr):
                if (
                    isinstance(node, Read)
                    and node.tensor in allocated
                    and any(mentions(i, stmt.var) for i in node.indices)
                ):
                    return False
    return True


def _lanes_write_apart(store: Store, var: str, allocated: set[str]) -> bool:
    """Whether a store of a vectorised loop writes one element per lane, or is a reduction of values that differ."""
    if any(mentions(where, var) for where in store.indices):
        return True
    if any(isinstance(node, Call) and node.function.startswith((LAST, SOUND)) for node in walk(store.value)):
        return True  # one value of all lanes
    differs = mentions(store.value, var) or any(
        isinstance(node, Read) and node.tensor in allocated for node in walk(store.value)
    )
    return store.reduce is not None and differs
