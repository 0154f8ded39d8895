"""Vectorised loops: which accesses of a statement become loads and stores of up to 16 bytes.

An access qualifies if it steps by one element per lane along the innermost dimension of contiguous memory and its
first element is provably a multiple of the vector; guarded reads (in a branch of a condition) and everything else
stay element by element.

Worked example: `O[4*j + v] = 2 * A[4*j + v]` for `v in 0:4` loads and stores `tc_vector<float, 4>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from tc_jupyter.loops import Buffer, For, Store
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Select, children, int64, rewrite
from tc_jupyter.program.integers import index_names

from .expressions import Scope, divisor, in_one_dimension, padded, position
from .literals import C_TYPES


@dataclass(frozen=True, slots=True)
class Access:
    """`total` consecutive elements from `indices` on, in pieces of `width` elements."""

    read: Read
    buffer: Buffer
    total: int
    width: int

    @property
    def type(self) -> str:
        """C++ type of a piece."""
        return f"tc_vector<{C_TYPES[self.buffer.dtype]}, {self.width}>"

    def declaration(self, name: str) -> str:
        """Pieces without a value."""
        return (
            f"{self.type} {name};" if self.width == self.total else f"{self.type} {name}[{self.total // self.width}];"
        )

    def lines(self, name: str, scope: Scope) -> list[str]:
        """Declaration and loads."""
        loads = [f"tc_load<{self.width}>(&{place})" for place in self._places(scope)]
        if self.width == self.total:
            return [f"{self.type} {name} = {loads[0]};"]
        return [f"{self.type} {name}[{len(loads)}] = {{{', '.join(loads)}}};"]

    def stores(self, name: str, scope: Scope) -> list[str]:
        """Stores of all pieces."""
        if self.width == self.total:
            return [f"tc_store<{self.width}>(&{self._places(scope)[0]}, {name});"]
        return [f"tc_store<{self.width}>(&{place}, {name}[{k}]);" for k, place in enumerate(self._places(scope))]

    def _places(self, scope: Scope) -> list[str]:
        place, indices = scope.places[self.read.tensor], self.read.indices
        found: list[str] = []
        for step in range(0, self.total, self.width):
            last = indices[-1] if step == 0 else Binary("+", indices[-1], int64(step), DType.INT64)
            at = (*indices[:-1], last)
            if place.dimensional:
                found.append(place.name + "".join(f"[{position(_row(), (each,), scope).text}]" for each in at))
            else:
                found.append(f"{place.name}[{position(self.buffer, at, scope).text}]")
        return found


@dataclass(frozen=True, slots=True)
class VectorStore:
    """How a statement in a vectorised loop is written: `width` lanes, its vector loads (keyed by the read of one
    lane), its target.
    """

    width: int
    loads: tuple[LaneLoad, ...]
    target: Access | None


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """A read of one lane (as it stands in the statement) and the vector access that serves all lanes."""

    read: Read
    access: Access

    @property
    def width(self) -> int:
        """Elements per piece."""
        return self.access.width

    def lines(self, name: str, scope: Scope) -> list[str]:
        """Declaration and loads."""
        return self.access.lines(name, scope)


def plan_vector(store: Store, loop: For, width: int, scope: Scope) -> VectorStore | None:
    """Vector accesses of a statement inside `for loop.var in loop.min : + width`; `None` if it has none."""
    loads: list[LaneLoad] = []
    for read in dict.fromkeys(_unguarded(store.value)):
        access = _access(read, loop, width, scope)
        if access is not None:
            loads.append(LaneLoad(read, access))
    dtype = scope.places[store.buffer].buffer.dtype
    target = None if store.atomic else _access(Read(store.buffer, store.indices, dtype), loop, width, scope)
    return VectorStore(width, tuple(loads), target) if loads or target is not None else None


def _unguarded(expr: Expr) -> Iterator[Read]:
    """Reads that happen whenever the expression is evaluated."""
    match expr:
        case Read():
            yield expr
            for child in expr.indices:
                yield from _unguarded(child)
        case Select():
            yield from _unguarded(expr.condition)
        case Binary("&&" | "||", left, _):
            yield from _unguarded(left)
        case _:
            for child in children(expr):
                yield from _unguarded(child)


def _access(read: Read, loop: For, total: int, scope: Scope) -> Access | None:
    """The vector access that covers a read in all lanes."""
    place = scope.places.get(read.tensor)
    if place is None or not read.indices or place.private or place.buffer.strided:
        return None
    buffer, indices = (
        (place.buffer, read.indices) if place.dimensional else in_one_dimension(place.buffer, read.indices)
    )
    *outer, last = indices
    if any(loop.var in index_names(expr) for expr in outer) or steps_of(last, loop.var) != 1:
        return None

    def at_start(expr: Expr) -> Expr | None:
        return loop.min if isinstance(expr, IndexVar) and expr.name == loop.var else None

    first = tuple(_folded(rewrite(expr, at_start)) for expr in indices)
    multiple = _flat_divisor(buffer, first, scope)
    width = min(16 // buffer.dtype.bytes, total)
    while width > 1 and (
        total % width or multiple % width or buffer.align % (width * buffer.dtype.bytes) or width & (width - 1)
    ):
        width -= 1
    return Access(Read(read.tensor, first, read.dtype), buffer, total, width) if width > 1 and buffer.align else None


def steps_of(expr: Expr, var: str) -> int | None:
    """The coefficient of a variable in a sum; `None` if it stands elsewhere."""
    match expr:
        case IndexVar(name) if name == var:
            return 1
        case Binary("+" | "-", left, right):
            one, other = steps_of(left, var), steps_of(right, var)
            return None if one is None or other is None else one + other if expr.op == "+" else one - other
        case Binary("*", Const(number), other) | Binary("*", other, Const(number)):
            inner = steps_of(other, var)
            return None if inner is None else inner * int(number)
        case _:
            return None if var in index_names(expr) else 0


def _folded(expr: Expr) -> Expr:
    """`x + 0` -> `x`."""
    match expr:
        case Binary("+", left, Const(0)):
            return left
        case Binary("+", Const(0), right):
            return right
        case _:
            return expr


def _flat_divisor(buffer: Buffer, indices: tuple[Expr, ...], scope: Scope) -> int:
    """A divisor of the flat position of an element; 0 for position 0."""
    extents = [*buffer.shape]
    if extents:
        extents[-1] = padded(extents[-1], buffer.pad)
    total = divisor(indices[0], scope)
    for extent, expr in zip(extents[1:], indices[1:], strict=True):
        total = gcd(total * divisor(extent, scope), divisor(expr, scope))
    return total


def _row() -> Buffer:
    """A stand-in for one dimension of an array of arrays."""
    return Buffer("", DType.FLOAT32, (int64(0),))
