"""The loops that an intrinsic stands for, for an engine that has no such operation.

Worked example: `fma_6x16_f32(C, A, B)` becomes

    for row in 0:6                # unroll
      for column in 0:16          # vectorize
        C[.. + row, .. + column] += A[.. + row, ..] * B[.., .. + column]

Loops over the elements of a fragment are loops over a matrix then, and barriers have nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tc_jupyter.program import Binary, Cast, Const, DType, Expr, IndexVar, Read, identity_of, int64
from tc_jupyter.schedule import STEPS, MatrixStep

from .ir import Allocate, Block, Buffer, Check, For, If, Intrinsic, Kernel, Stmt, Store, walk_statements


def expand(kernel: Kernel, known: frozenset[str] = frozenset()) -> Kernel:
    """The kernel with all intrinsics but `known` as loops."""
    if all(not isinstance(stmt, Intrinsic) or stmt.name in known for stmt in walk_statements(kernel.body)):
        return kernel
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    return replace(kernel, body=_Expansion(known, buffers).block(kernel.body))


@dataclass(slots=True)
class _Expansion:
    """Walks a kernel; knows the buffers in scope and how many intrinsics it has met, for the names of loops."""

    known: frozenset[str]
    buffers: dict[str, Buffer]
    count: int = field(default=0)

    def block(self, block: Block) -> Block:
        """All statements of a block."""
        return replace(block, body=tuple(found for stmt in block.body for found in self.statement(stmt)))

    def statement(self, stmt: Stmt) -> Iterator[Stmt]:
        """What a statement becomes."""
        match stmt:
            case Intrinsic() if stmt.name not in self.known:
                self.count += 1
                yield from self.loops(stmt)
            case Allocate():
                buffer = replace(stmt.buffer, scope=self.scope(stmt.buffer.scope))
                self.buffers[buffer.name] = buffer
                yield Allocate(buffer, self.block(stmt.body))
            case For():
                plain = stmt.kind.startswith("fragment.") and not self.has_warps
                yield replace(stmt, body=self.block(stmt.body), kind="serial" if plain else stmt.kind)
            case Check():
                yield replace(stmt, body=self.block(stmt.body))
            case If():
                otherwise = None if stmt.otherwise is None else self.block(stmt.otherwise)
                yield replace(stmt, then=self.block(stmt.then), otherwise=otherwise)
            case Block():
                yield self.block(stmt)
            case _:
                yield stmt

    def scope(self, scope: str) -> str:
        """A fragment is a matrix in memory where there are no steps of a warp."""
        return "local" if scope == "fragment" and not self.has_warps else scope

    @property
    def has_warps(self) -> bool:
        """Whether the engine has steps of a warp, and so registers for their fragments."""
        return any(STEPS[name].unit == "warp" for name in self.known & STEPS.keys())

    def loops(self, stmt: Intrinsic) -> Iterator[Stmt]:
        """The loops of one intrinsic."""
        attributes = dict(stmt.attributes)
        match stmt.name:
            case "ldmatrix" | "ldmatrix_trans":
                yield self.copy_matrix(stmt, int(attributes["rows"]), int(attributes["columns"]))
            case "cp_async" | "cp_async_zero":
                yield self.copy_row(stmt, int(attributes["bytes"]))
            case "cp_async_commit" | "cp_async_wait":
                return
            case "reduce_threads":
                yield from self.reduce(stmt)
            case name if name in STEPS:
                yield self.step(stmt, STEPS[name])
            case name:
                raise RuntimeError(f"no loops are known for the operation `{name}`")

    def step(self, stmt: Intrinsic, step: MatrixStep) -> Stmt:
        """`C[row, column] += A[row, k] * B[k, column]`."""
        total, left, right = stmt.operands
        row, column, depth = (self.variable(name) for name in ("row", "column", "reduction"))
        here = {"row": row, "column": column, "reduction": depth}
        c, a, b = (
            self.moved(read, _dimensions(stmt, key, read, axes), here)
            for key, read, axes in (
                ("total", total, ("row", "column")),
                ("left", left, ("row", "reduction")),
                ("right", right, ("reduction", "column")),
            )
        )
        value = Binary("*", _as(a, step.total), _as(b, step.total), step.total)
        store: Stmt = Store(c.tensor, c.indices, value, "+", statement=stmt.statement, span=stmt.span)
        rows, columns, steps = step.extents
        vectors = "vectorize" if step.unit == "vector" else "serial"
        inner = _loop(column, columns, store, vectors)
        if steps > 1:
            inner = _loop(depth, steps, inner, "unroll" if step.unit == "vector" else "serial")
        return _loop(row, rows, inner, "unroll" if step.unit == "vector" else "serial")

    def copy_matrix(self, stmt: Intrinsic, rows: int, columns: int) -> Stmt:
        """`F[row, column] = S[row, column]`, or `S[column, row]`."""
        target, source = stmt.operands
        row, column = self.variable("row"), self.variable("column")
        places = {"row": len(target.indices) - 2, "column": len(target.indices) - 1}
        last = len(source.indices) - 1
        crossed = stmt.name == "ldmatrix_trans"
        theirs = {"row": last, "column": last - 1} if crossed else {"row": last - 1, "column": last}
        here = {"row": row, "column": column}
        goal, value = self.moved(target, places, here), self.moved(source, theirs, here)
        store = Store(
            goal.tensor, goal.indices, self.converted(value, goal.tensor), statement=stmt.statement, span=stmt.span
        )
        return _loop(row, rows, _loop(column, columns, store))

    def copy_row(self, stmt: Intrinsic, nbytes: int) -> Stmt:
        """`S[.. + e] = G[.. + e]`, or zeros, along the last dimension."""
        target = stmt.operands[0]
        element = self.variable("element")
        goal = self.moved(target, {"e": len(target.indices) - 1}, {"e": element})
        value: Expr = Const(0.0 if target.dtype.is_float else 0, target.dtype.compute)
        if stmt.name == "cp_async":
            source = stmt.operands[1]
            value = self.converted(self.moved(source, {"e": len(source.indices) - 1}, {"e": element}), goal.tensor)
        store = Store(goal.tensor, goal.indices, value, statement=stmt.statement, span=stmt.span)
        return _loop(element, nbytes // target.dtype.bytes, store)

    def reduce(self, stmt: Intrinsic) -> Iterator[Stmt]:
        """`R = X[0] op ... op X[threads - 1]`."""
        attributes = dict(stmt.attributes)
        result, terms = stmt.operands
        op, axis = str(attributes["op"]), int(attributes["axis"])
        thread = self.variable("thread")
        term = self.converted(self.moved(terms, {"t": axis}, {"t": thread}), result.tensor)
        start = identity_of(op, result.dtype.compute)
        yield Store(result.tensor, result.indices, start, statement=stmt.statement, span=stmt.span)
        combine = Store(result.tensor, result.indices, term, op, statement=stmt.statement, span=stmt.span)
        yield _loop(thread, int(attributes["threads"]), combine)

    def variable(self, name: str) -> IndexVar:
        """A loop variable that no other loop has."""
        return IndexVar(f"{name}.of.step.{self.count}")

    def moved(self, read: Read, places: Mapping[str, int], by: Mapping[str, IndexVar]) -> Read:
        """The element of a tile: its first one moved along dimensions."""
        indices = list(read.indices)
        for axis, place in places.items():
            indices[place] = Binary("+", indices[place], by[axis], DType.INT64)
        return replace(read, indices=tuple(indices))

    def converted(self, value: Read, buffer: str) -> Expr:
        """A value as it is stored into a buffer."""
        return _as(value, self.buffers[buffer].dtype.compute)


def _dimensions(stmt: Intrinsic, key: str, read: Read, axes: tuple[str, str]) -> dict[str, int]:
    """Along which dimension each axis moves an operand: as the attribute says, else the last two."""
    given = dict(stmt.attributes).get(key)
    if given is not None:
        return {axis: int(place) for axis, place in (pair.split("=") for pair in str(given).split())}
    return {axes[0]: len(read.indices) - 2, axes[1]: len(read.indices) - 1}


def _as(value: Read, dtype: DType) -> Expr:
    return value if value.dtype is dtype else Cast(value, dtype)


def _loop(variable: IndexVar, extent: int, body: Stmt, kind: str = "serial") -> For:
    return For(variable.name, int64(0), int64(extent), Block((body,)), kind)


__all__ = ["expand"]
