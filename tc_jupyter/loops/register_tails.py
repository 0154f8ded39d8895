"""Takes the last, shorter tile out of a loop over register tiles, so that all other tiles have constant lengths.

Worked example:

    for j.outer in 0:ceil(N/32)
      allocate register T[32]
      for j.inner in 0:min(32, N - 32*j.outer)  # vectorize
        T[j.inner] += ...
    ->
    for j.outer in 0:ceil(N/32)
      if N - 32*j.outer >= 32
        allocate register T[32]
        for j.inner in 0:32  # vectorize
      else
        allocate local T[32]
        for j.inner in 0:N - 32*j.outer

Threads of a block that meet in the loop, at a barrier or to fill shared memory, stay together: a tile that is full for one of them
and not for another one is not taken apart.

What is not in registers gets its versions later, on a CPU (`codegen.llvm.full_tiles`).

Source: Halide, "loop partitioning".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tc_jupyter.program import Binary, Const, DType, Expr
from tc_jupyter.program.integers import all_of, index_names
from tc_jupyter.schedule import THREAD_AXES

from .ir import Allocate, Barrier, Block, For, If, Intrinsic, Kernel, Stmt, Store, walk_statements
from .rewrite import with_blocks

CONSTANT = ("vectorize", "unroll")


def split_tails(kernel: Kernel) -> Kernel:
    """Separate full from shorter tiles in every loop around a register buffer that is written in loops of varying length."""
    threads = {s.var for s in walk_statements(kernel.body) if isinstance(s, For) and s.kind in THREAD_AXES}
    return replace(kernel, body=_block(kernel.body, _Bound(frozenset(), frozenset(threads))))


@dataclass(frozen=True, slots=True)
class _Bound:
    """The variables of the loops around a place, and those of the kernel that differ between threads."""

    around: frozenset[str]
    threads: frozenset[str]

    def inside(self, loop: For) -> _Bound:
        return replace(self, around=self.around | {loop.var})


def _block(block: Block, bound: _Bound) -> Block:
    return replace(block, body=tuple(_statement(stmt, bound) for stmt in block.body))


def _statement(stmt: Stmt, bound: _Bound) -> Stmt:
    if isinstance(stmt, For):
        return _loop(stmt, bound.inside(stmt))
    return with_blocks(stmt, lambda block: _block(block, bound))


def _loop(loop: For, bound: _Bound) -> For:
    tails = _tails(loop.body, bound)
    if not tails:
        return replace(loop, body=_block(loop.body, bound))
    tests = [Binary(">=", rest, Const(length, DType.INT64), DType.BOOL) for rest, length in tails.items()]
    condition: Expr = all_of(tests)
    full = _block(_map_block(loop.body, lambda each: _full(each, tails)), bound)
    short = _map_block(loop.body, lambda each: _short(each, tails))
    return replace(loop, body=Block((If(condition, full, short),)))


def _tails(body: Block, bound: _Bound) -> dict[Expr, int]:
    """What must be at least how long for full tiles: from loops that write registers and whose length is known here."""
    registers = {
        stmt.buffer.name
        for stmt in walk_statements(body)
        if isinstance(stmt, Allocate) and stmt.buffer.scope == "register"
    }
    allowed = bound.around - bound.threads if _meets(body) else bound.around
    found: dict[Expr, int] = {}
    for loop in (stmt for stmt in walk_statements(body) if isinstance(stmt, For) and stmt.kind in CONSTANT):
        parts = None if loop.tail == "mask" else _shorter(loop.extent)
        if parts is None or not _writes(loop, registers):
            continue
        rest, length = parts
        if index_names(rest) <= allowed:
            found[rest] = max(length, found.get(rest, 0))
    return found


def _meets(body: Block) -> bool:
    """Whether threads meet inside."""
    return any(isinstance(stmt, Barrier | Intrinsic) for stmt in walk_statements(body))


def _shorter(extent: Expr) -> tuple[Expr, int] | None:
    """`min(rest, length)` with a constant length."""
    if isinstance(extent, Binary) and extent.op == "min":
        for rest, length in ((extent.left, extent.right), (extent.right, extent.left)):
            if isinstance(length, Const):
                return rest, int(length.value)
    return None


def _writes(loop: For, registers: set[str]) -> bool:
    return any(isinstance(stmt, Store) and stmt.buffer in registers for stmt in walk_statements(loop.body))


def _full(stmt: Stmt, tails: Mapping[Expr, int]) -> Stmt:
    if isinstance(stmt, For) and (parts := _shorter(stmt.extent)) is not None and tails.get(parts[0], 0) >= parts[1]:
        return replace(stmt, extent=Const(parts[1], DType.INT64))
    return stmt


def _short(stmt: Stmt, tails: Mapping[Expr, int]) -> Stmt:
    if (
        isinstance(stmt, For)
        and stmt.kind in CONSTANT
        and (parts := _shorter(stmt.extent)) is not None
        and parts[0] in tails
    ):
        return replace(stmt, kind="serial")
    if isinstance(stmt, Allocate) and stmt.buffer.scope == "register":
        return replace(stmt, buffer=replace(stmt.buffer, scope="local"))
    return stmt


def _map_block(block: Block, change: Callable[[Stmt], Stmt]) -> Block:
    """Change every statement of a block, outer ones first."""
    return replace(block, body=tuple(with_blocks(change(stmt), lambda b: _map_block(b, change)) for stmt in block.body))
