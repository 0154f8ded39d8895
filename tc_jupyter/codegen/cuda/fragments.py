"""Loops over matrices that a warp holds in its registers (scope `fragment`) become the instructions of tensor cores.

A schedule stores a sum and copies of its operands in the scope `fragment`; lowering writes ordinary loops over them. Three kinds of
nests are known: a product of a tile (`mma`), a copy of a tile of shared memory (`ldmatrix`), and statements on single elements of
the sum (the start value, the epilogue), which run over the elements that each lane holds.

Worked example:

    for i in 0:64, k in 0:16                               for i in 0:4  # unroll
      F[i, k] = S[i + 64*w, k]                               ldmatrix F[16*i, 0] = S[16*i + 64*w, 0]
    for m in 0:16, n in 0:8, k in 0:16               ->
      C[m + 16*i, n + 8*j] += F[m + 16*i, k] * G[k, n + 8*j]
                                                           mma_m16n8k16_f16 C[16*i, 8*j], F[16*i, 0], G[0, 8*j]
    for m in 0:16, n in 0:min(8, N - 8*j)
      O[m, n + 8*j] = C[m + 16*i, n + 8*j]                 for m in 0:16 (fragment.row), n in 0:8 (fragment.column)
                                                             if n < min(8, N - 8*j): O[m, n + 8*j] = C[m + 16*i, n + 8*j]

Where a nest is none of these, the matrices stay ordinary arrays of each thread: the same values, without tensor cores.

Source: PTX ISA, "Matrix multiply-accumulate operation using mma instruction"; CUTLASS, warp-level tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tc_jupyter.loops import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    block_with_expressions,
    expressions,
    simplify_expr,
    sub_blocks,
    walk_statements,
    with_blocks,
)
from tc_jupyter.loops.rewrite import only
from tc_jupyter.program import (
    Binary,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    factors_of,
    int64,
    rewrite,
    variables,
    walk,
)
from tc_jupyter.program.integers import all_of, index_names, times

from .launch import Range, bounds, loop_range
from .primitives import fragment_depth

ROWS, COLUMNS = 16, 8
"""Of a tile of a sum."""

STEP_OF = {
    DType.FLOAT16: "mma_m16n8k16_f16",
    DType.BFLOAT16: "mma_m16n8k16_bf16",
    DType.FLOAT32: "mma_m16n8k8_tf32",
    DType.INT8: "mma_m16n8k32_s8",
}
"""The matrix step of a type of operands."""

Ranges = Mapping[str, Range]
T = TypeVar("T")


class _NoFragments(Exception):
    """A nest over fragments that no instruction does."""


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A fragment: its part in matrix steps, and which dimensions of the buffer are its rows and columns."""

    role: str
    row: int
    column: int
    dtype: DType

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns that one instruction loads or computes; two tiles of a right operand are loaded at once."""
        depth = fragment_depth(self.dtype)
        return {"accumulator": (ROWS, COLUMNS), "left": (ROWS, depth), "right": (depth, 2 * COLUMNS)}[self.role]

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        """Row and column of an element."""
        return indices[self.row], indices[self.column]


def with_fragments(kernel: Kernel) -> Kernel:
    """The kernel with instructions of tensor cores in the place of loops over fragments."""
    statements = tuple(walk_statements(kernel.body))
    given = {operand.tensor for stmt in statements if isinstance(stmt, Intrinsic) for operand in stmt.operands}
    found = [s.buffer for s in statements if isinstance(s, Allocate) and s.buffer.scope == "fragment"]
    fragments = {buffer.name: buffer for buffer in found if buffer.name not in given}
    if not fragments:
        return kernel
    try:
        body = _squeezed(kernel.body)
        matrices = _matrices(body, fragments)
        shared = {s.buffer.name: s.buffer for s in walk_statements(body) if isinstance(s, Allocate)}
        return replace(kernel, body=_Rewriter(matrices, shared).block(body, {}))
    except _NoFragments:
        return replace(kernel, body=_ordinary(kernel.body, frozenset(fragments)))


def _ordinary(block: Block, names: frozenset[str]) -> Block:
    """Fragments as arrays of each thread."""

    def each(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Allocate) and stmt.buffer.name in names:
            stmt = replace(stmt, buffer=replace(stmt.buffer, scope="local"))
        return with_blocks(stmt, lambda inner: _ordinary(inner, names))

    return replace(block, body=tuple(map(each, block.body)))


# --- which matrix is what --------------------------------------------------------------------------------------------


def _matrices(body: Block, fragments: Mapping[str, Buffer]) -> dict[str, _Matrix]:
    """The part of every fragment, from the products that use it."""
    found: dict[str, _Matrix] = {}
    for loops, store in _nests(body):
        if store.buffer not in fragments or store.reduce != "+":
            continue
        left, right, (m, n, k) = _product(loops, store)
        for name, indices, role, row, column in (
            (store.buffer, store.indices, "accumulator", m, n),
            (left.tensor, left.indices, "left", m, k),
            (right.tensor, right.indices, "right", k, n),
        ):
            if name not in fragments:
                raise _NoFragments
            matrix = _Matrix(role, _dimension(indices, row), _dimension(indices, column), fragments[name].dtype)
            if found.setdefault(name, matrix) != matrix:
                raise _NoFragments
            rest = [e for d, e in enumerate(fragments[name].shape) if d not in (matrix.row, matrix.column)]
            if any(bounds(extent, {}) != (1, 1) for extent in rest):
                raise _NoFragments
    if found.keys() != fragments.keys():
        raise _NoFragments
    return found


def _nests(block: Block, loops: tuple[For, ...] = ()) -> Iterator[tuple[tuple[For, ...], Store]]:
    """Every store with the loops around it."""
    for stmt in block.body:
        if isinstance(stmt, Store):
            yield loops, stmt
        around = (*loops, stmt) if isinstance(stmt, For) else loops
        for inner in sub_blocks(stmt):
            yield from _nests(inner, around)


def _product(loops: tuple[For, ...], store: Store) -> tuple[Read, Read, tuple[str, str, str]]:
    """Left and right operand of a product of a tile, and the variables of its rows, columns and depth."""
    factors = factors_of(store.value, store.value.dtype.compute)
    if len(loops) < 3 or len(factors) != 2:
        raise _NoFragments
    depth = fragment_depth(factors[0].dtype)
    tile = {loop.var: loop for loop in loops[-3:]}
    (k,) = (_only_one([name for name in tile if name not in _names(store.indices)]),)
    m = _only_one([n for n in tile if n != k and bounds(tile[n].extent, {}) == (ROWS, ROWS)])
    n = _only_one([each for each in tile if each not in (k, m)])
    left = _only_one([read for read in factors if m in _names(read.indices)])
    right = _only_one([read for read in factors if n in _names(read.indices)])
    wanted = {n: COLUMNS, k: depth}
    if left is right or any(bounds(tile[name].extent, {}) != (size, size) for name, size in wanted.items()):
        raise _NoFragments
    return left, right, (m, n, k)


def _only_one(found: list[T]) -> T:
    """The only one of its kind."""
    if len(found) != 1:
        raise _NoFragments
    return found[0]


def _dimension(indices: tuple[Expr, ...], name: str) -> int:
    """The only dimension in whose subscript a variable is."""
    return _only_one([number for number, each in enumerate(indices) if name in index_names(each)])


def _names(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset[str]().union(*map(index_names, exprs))


# --- dimensions of one element ---------------------------------------------------------------------------------------


def _squeezed(body: Block) -> Block:
    """Tiles in shared memory without their dimensions of one element: `ldmatrix` wants rows and columns side by side."""
    kept: dict[str, tuple[int, ...]] = {}
    for stmt in walk_statements(body):
        if isinstance(stmt, Allocate) and stmt.buffer.scope == "shared" and len(stmt.buffer.shape) > 2:
            shape = stmt.buffer.shape
            kept[stmt.buffer.name] = tuple(
                d for d, extent in enumerate(shape) if bounds(extent, {}) != (1, 1) or d == len(shape) - 1
            )

    def rule(expr: Expr) -> Expr | None:
        if isinstance(expr, Read) and expr.tensor in kept:
            return replace(expr, indices=tuple(expr.indices[d] for d in kept[expr.tensor]))
        return None

    def each(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Allocate) and stmt.buffer.name in kept:
            shape = tuple(stmt.buffer.shape[d] for d in kept[stmt.buffer.name])
            stmt = replace(stmt, buffer=replace(stmt.buffer, shape=shape))
        if isinstance(stmt, Store) and stmt.buffer in kept:
            stmt = replace(stmt, indices=tuple(stmt.indices[d] for d in kept[stmt.buffer]))
        return with_blocks(stmt, lambda block: replace(block, body=tuple(map(each, block.body))))

    return block_with_expressions(replace(body, body=tuple(map(each, body.body))), rule)


# --- rewriting -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rewriter:
    """Rewrites loops over fragments; `shared` holds the buffers allocated in the kernel."""

    matrices: Mapping[str, _Matrix]
    shared: Mapping[str, Buffer]

    def block(self, block: Block, ranges: Ranges) -> Block:
        return replace(block, body=tuple(self.statement(stmt, ranges) for stmt in block.body))

    def statement(self, stmt: Stmt, ranges: Ranges) -> Stmt:
        match stmt:
            case For():
                return self.loop(stmt, ranges)
            case Allocate() if stmt.buffer.name in self.matrices:
                return Allocate(self.fragment(stmt.buffer), self.block(stmt.body, ranges))
            case Store() if self.touched(stmt):
                raise _NoFragments
            case _:
                return with_blocks(stmt, lambda block: self.block(block, ranges))

    def fragment(self, buffer: Buffer) -> Buffer:
        """Whole tiles."""
        matrix = self.matrices[buffer.name]
        extents = [bounds(extent, {})[1] for extent in matrix.at(buffer.shape)]
        if any(extent is None for extent in extents):
            raise _NoFragments
        shape = tuple(
            int64(-(-(extent or 1) // size) * size) for extent, size in zip(extents, matrix.tile, strict=True)
        )
        return replace(buffer, shape=shape, align=0)

    def touched(self, stmt: Stmt) -> bool:
        """Whether a statement, or one inside it, uses a fragment."""
        return any(
            (isinstance(each, Store) and each.buffer in self.matrices)
            or any(isinstance(n, Read) and n.tensor in self.matrices for e in expressions(each) for n in walk(e))
            for each in walk_statements(Block((stmt,)))
        )

    def loop(self, loop: For, ranges: Ranges) -> Stmt:
        chain = _chain(loop)
        inner = only(chain[-1].body)
        if isinstance(inner, Store):
            matrix = self.matrices.get(inner.buffer)
            if matrix is not None and matrix.role == "accumulator" and inner.reduce == "+" and len(chain) == 3:
                return self.step(chain, inner)
            if matrix is not None and matrix.role != "accumulator":
                return self.load(chain, inner)
        if len(chain) > 1 and (tile := self.elements(loop, chain[1], ranges)) is not None:
            return tile
        body = self.block(loop.body, {**ranges, loop.var: loop_range(loop, dict(ranges))})
        constant = isinstance(loop.extent, Const) and loop.kind == "serial" and self.touched(loop)
        return replace(loop, body=body, kind="unroll" if constant and self.selects(loop) else loop.kind)

    def selects(self, loop: For) -> bool:
        """Whether the variable of a loop is part of a subscript of a fragment: it must be a constant."""
        reads = [
            (n.tensor, n.indices)
            for stmt in walk_statements(loop.body)
            for e in expressions(stmt)
            for n in walk(e)
            if isinstance(n, Read)
        ]
        stores = [(stmt.buffer, stmt.indices) for stmt in walk_statements(loop.body) if isinstance(stmt, Store)]
        return any(name in self.matrices and loop.var in _names(where) for name, where in (*reads, *stores))

    # --- a product of a tile -----------------------------------------------------------------------------------------

    def step(self, chain: tuple[For, ...], store: Store) -> Stmt:
        left, right, tile = _product(chain, store)
        zero = variables({name: int64(0) for name in tile})

        def operand(name: str, indices: tuple[Expr, ...]) -> Read:
            matrix = self.matrices[name]
            sizes = (matrix.tile[0], COLUMNS) if matrix.role == "right" else matrix.tile
            where = tuple(simplify_expr(rewrite(each, zero)) for each in matrix.at(indices))
            if any(not _is_multiple(each, size) for each, size in zip(where, sizes, strict=True)):
                raise _NoFragments
            return Read(name, where, matrix.dtype)

        name = STEP_OF.get(left.dtype)
        total = DType.INT32 if left.dtype is DType.INT8 else DType.FLOAT32
        if name is None or right.dtype is not left.dtype or self.matrices[store.buffer].dtype is not total:
            raise _NoFragments
        operands = (
            operand(store.buffer, store.indices),
            operand(left.tensor, left.indices),
            operand(right.tensor, right.indices),
        )
        return Intrinsic(name, operands, (), store.statement, store.span)

    # --- a copy of a tile --------------------------------------------------------------------------------------------

    def load(self, chain: tuple[For, ...], store: Store) -> Stmt:
        matrix = self.matrices[store.buffer]
        source = _source(store.value)
        row, column = matrix.at(store.indices)
        loops = {loop.var: loop for loop in chain}
        if store.reduce is not None or source is None or len(chain) != 2:
            raise _NoFragments
        if not (isinstance(row, IndexVar) and isinstance(column, IndexVar) and {row.name, column.name} == set(loops)):
            raise _NoFragments
        if any(loop.min != int64(0) for loop in chain):
            raise _NoFragments
        name = self.instruction(source, row.name, column.name)
        counts: list[int] = []
        for variable, size in zip((row.name, column.name), matrix.tile, strict=True):
            extent = loops[variable].extent
            if not isinstance(extent, Const) or int(extent.value) % size:
                raise _NoFragments
            counts.append(int(extent.value) // size)
        starts = {
            variable: times(int64(size), IndexVar(variable)) if count > 1 else int64(0)
            for variable, size, count in zip((row.name, column.name), matrix.tile, counts, strict=True)
        }
        rule = variables(starts)
        at = tuple(simplify_expr(rewrite(each, rule)) for each in source.indices)
        operands = (
            Read(store.buffer, (starts[row.name], starts[column.name]), matrix.dtype),
            replace(source, indices=at),
        )
        sizes = (("rows", matrix.tile[0]), ("columns", matrix.tile[1]))
        result: Stmt = Intrinsic(name, operands, sizes, store.statement, store.span)
        for variable, count in zip((column.name, row.name), reversed(counts), strict=True):
            if count > 1:
                result = replace(loops[variable], extent=int64(count), kind="unroll", body=Block((result,)))
        return result

    def instruction(self, source: Read, row: str, column: str) -> str:
        """`ldmatrix`, or `ldmatrix_trans` where rows of the matrix are columns of the tile in shared memory."""
        buffer = self.shared.get(source.tensor)
        if buffer is None or buffer.scope != "shared" or len(buffer.shape) < 2:
            raise _NoFragments
        pitch = bounds(buffer.shape[-1], {})
        if pitch[0] is None or pitch[0] != pitch[1] or (pitch[0] + buffer.pad) * buffer.dtype.bytes % 16:
            raise _NoFragments
        places = [_dimension(source.indices, name) for name in (row, column)]
        if any(_coefficient(source.indices[d], name) != 1 for d, name in zip(places, (row, column), strict=True)):
            raise _NoFragments
        last = len(source.indices) - 1
        if places == [last - 1, last]:
            return "ldmatrix"
        if places == [last, last - 1]:
            return "ldmatrix_trans"
        raise _NoFragments

    # --- single elements ---------------------------------------------------------------------------------------------

    def elements(self, outer: For, inner: For, ranges: Ranges) -> Stmt | None:
        """Two loops over the elements of a sum, one of which is outside the other, as loops over tiles and their elements."""
        accesses = [
            self.matrices[name].at(indices)
            for name, indices in self.accesses(inner.body)
            if self.matrices[name].role == "accumulator"
        ]
        if not accesses or any(self.matrices[n].role != "accumulator" for n, _ in self.accesses(inner.body)):
            return None
        row, column = outer, inner
        if all(inner.var in index_names(at[0]) for at in accesses):
            row, column = inner, outer
        if not all(_coefficient(at[0], row.var) == 1 and _coefficient(at[1], column.var) == 1 for at in accesses):
            return None
        if any(isinstance(stmt, Allocate | Barrier | Intrinsic) for stmt in walk_statements(inner.body)):
            raise _NoFragments
        return self.tiles(row, column, inner.body, ranges)

    def accesses(self, block: Block) -> list[tuple[str, tuple[Expr, ...]]]:
        """Fragments and subscripts of all stores and reads in a block."""
        found: list[tuple[str, tuple[Expr, ...]]] = []
        for stmt in walk_statements(block):
            if isinstance(stmt, Store) and stmt.buffer in self.matrices:
                found.append((stmt.buffer, stmt.indices))
            for expr in expressions(stmt):
                found += [
                    (n.tensor, n.indices) for n in walk(expr) if isinstance(n, Read) and n.tensor in self.matrices
                ]
        return found

    def tiles(self, row: For, column: For, body: Block, ranges: Ranges) -> Stmt:
        values: dict[str, Expr] = {}
        tests: list[Expr] = []
        around: list[For] = []
        for loop, size in ((row, ROWS), (column, COLUMNS)):
            most = bounds(loop.extent, dict(ranges))[1]
            if most is None or loop.min != int64(0):
                raise _NoFragments
            count = -(-most // size)
            here: Expr = IndexVar(loop.var)
            if count > 1:
                tile = f"{loop.var}.tile"
                around.append(replace(loop, var=tile, extent=int64(count), kind="unroll"))
                here = Binary("+", here, times(int64(size), IndexVar(tile)), DType.INT64)
                values[loop.var] = here
            if loop.extent != int64(count * size):
                tests.append(Binary("<", here, loop.extent, DType.BOOL))
        inside = self.indexed(block_with_expressions(body, variables(values)))
        if tests:
            condition = all_of(tests)
            inside = Block((If(condition, inside),))
        columns = replace(column, extent=int64(COLUMNS), kind="fragment.column", body=inside)
        result: Stmt = replace(row, extent=int64(ROWS), kind="fragment.row", body=Block((columns,)))
        for loop in reversed(around):
            result = replace(loop, body=Block((result,)))
        return result

    def indexed(self, block: Block) -> Block:
        """Rows and columns as the only subscripts of sums."""

        def rule(expr: Expr) -> Expr | None:
            if isinstance(expr, Read) and expr.tensor in self.matrices:
                return replace(expr, indices=self.matrices[expr.tensor].at(expr.indices))
            return None

        def each(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Store) and stmt.buffer in self.matrices:
                stmt = replace(stmt, indices=self.matrices[stmt.buffer].at(stmt.indices))
            return with_blocks(stmt, lambda inner: replace(inner, body=tuple(map(each, inner.body))))

        return block_with_expressions(replace(block, body=tuple(map(each, block.body))), rule)


# --- shapes of nests -------------------------------------------------------------------------------------------------


def _chain(loop: For) -> tuple[For, ...]:
    """A loop and those directly inside it."""
    inner = only(loop.body)
    return (loop, *_chain(inner)) if isinstance(inner, For) else (loop,)


def _source(value: Expr) -> Read | None:
    """The read that a copy consists of: a conversion to the type of arithmetic changes no value."""
    if isinstance(value, Cast) and isinstance(value.operand, Read) and value.dtype is value.operand.dtype.compute:
        return value.operand
    return value if isinstance(value, Read) else None


def _coefficient(expr: Expr, name: str) -> int | None:
    """The factor of a variable in a sum; `None` where it stands elsewhere."""
    match expr:
        case IndexVar(found):
            return int(found == name)
        case Binary("+" | "-", left, right):
            one, other = _coefficient(left, name), _coefficient(right, name)
            return None if one is None or other is None else one + (other if expr.op == "+" else -other)
        case Binary("*", Const(number), other) | Binary("*", other, Const(number)):
            inner = _coefficient(other, name)
            return None if inner is None else int(number) * inner
        case _:
            return None if name in index_names(expr) else 0


def _is_multiple(expr: Expr, number: int) -> bool:
    """Whether an expression is certainly divisible."""
    match expr:
        case Const(value):
            return int(value) % number == 0
        case Binary("*", Const(value), other) | Binary("*", other, Const(value)):
            return int(value) % number == 0 or _is_multiple(other, number)
        case Binary("+" | "-", left, right):
            return _is_multiple(left, number) and _is_multiple(right, number)
        case _:
            return False


__all__ = ["with_fragments"]
