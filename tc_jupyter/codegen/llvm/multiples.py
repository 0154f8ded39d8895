"""Sizes that are multiples of a tile have no last tile that is less than one.

A class of calls may say that a size is a multiple of 64 (`ranges.facts`). Then a tile of 32 that begins inside a row
also ends there, and the code for less than a tile, often as much again as the rest, is left out.

Worked example: where `N` is a multiple of 64,

    for j.outer in 0:(N + 31) // 32                          for j.outer in 0:(N + 31) // 32
      for j in 0:min(N - 32*j.outer, 32): Y[j] = 0    ->       for j in 0:32: Y[j] = 0

since `N - 32*j.outer` is positive in the loop and a multiple of 32, so it is 32 or more. So `32*j.outer + j < N` is
true there, and what such a condition guards (lanes beyond the end of a row) needs no masks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd, prod

from tc_jupyter.loops import Block, For, Kernel, Stmt, simplify
from tc_jupyter.loops.rewrite import with_blocks, with_body, with_own_expressions
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Size, int64
from tc_jupyter.program.integers import has_read, plus

from .polynomial import Polynomial, add, as_expr, constant_value, has_iterations, polynomial, scaled


def whole_tiles(kernel: Kernel) -> Kernel:
    """The kernel with the lengths that its sizes, as multiples of numbers, leave to tiles; then no more is said of multiples."""
    multiples = {name: fact.multiple for name, fact in kernel.facts if fact.multiple > 1}
    if not multiples:
        return kernel
    facts = tuple((name, fact._replace(multiple=1)) for name, fact in kernel.facts)
    return simplify(replace(kernel, facts=facts, body=_Multiples(multiples).block(kernel.body, {})))


class _Multiples:
    """Rewrites statements; `loops` are the lengths of those around that begin with 0."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self.known = known

    def block(self, block: Block, loops: Mapping[str, Expr]) -> Block:
        return with_body(block, (self.statement(stmt, loops) for stmt in block.body))

    def statement(self, stmt: Stmt, loops: Mapping[str, Expr]) -> Stmt:
        inside = loops
        if isinstance(stmt, For):
            inside = {name: extent for name, extent in loops.items() if name != stmt.var}
            if constant_value(stmt.min) == 0:
                inside[stmt.var] = stmt.extent
        own = with_own_expressions(stmt, lambda node: self.simpler(node, loops))
        return with_blocks(own, lambda block: self.block(block, inside))

    def simpler(self, expr: Expr, loops: Mapping[str, Expr]) -> Expr | None:
        """The side of a minimum of lengths that is never the larger one; `true` for a position that is always below an end."""
        match expr:
            case Binary(op="min", left=left, right=right) if expr.dtype is DType.INT64:
                sides = ((left, right), (right, left))
                return next((less for less, more in sides if self.ordered(less, more, loops)), None)
            case Binary(op="<", left=left, right=right) if left.dtype is DType.INT64 and not has_read(expr):
                return Const(True, DType.BOOL) if self.ordered(plus(left, int64(1)), right, loops) else None
            case _:
                return None

    def ordered(self, less: Expr, more: Expr, loops: Mapping[str, Expr]) -> bool:
        """Whether the first of two values is never the larger one."""
        return self.is_natural(add(polynomial(more), scaled(polynomial(less), -1)), loops)

    def is_natural(self, difference: Polynomial, loops: Mapping[str, Expr]) -> bool:
        """Whether a difference is never negative, as it moves in steps and a loop leaves some of it."""
        least, moving = difference.constant, Polynomial(())
        for term in difference.terms:
            match term:
                case ((), _):
                    continue
                case ((IndexVar(name=name),), factor) if (
                    count := constant_value(loops.get(name, IndexVar("")))
                ) is not None:
                    least += min(0, factor * (count - 1))
                case _:
                    moving = add(moving, Polynomial((term,)))
        if not moving.terms:
            return least >= 0
        return self.step(moving) >= -least and has_iterations(as_expr(moving), loops)

    def step(self, value: Polynomial) -> int:
        """A number that divides it."""
        return gcd(*(factor * prod(map(self.divisor, product)) for product, factor in value.terms))

    def divisor(self, factor: Expr) -> int:
        match factor:
            case Size(name=name):
                return self.known.get(name, 1)
            case Binary(op="min" | "max", left=left, right=right):
                return gcd(self.step(polynomial(left)), self.step(polynomial(right)))
            case _:
                return 1
