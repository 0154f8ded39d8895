"""Statements with other blocks or other expressions inside; nothing is changed in place.

Worked example: `with_expressions(stmt, variables({"k": k + 1}))` puts `k + 1` in the place of the variable `k` in all of `stmt`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from tc_jupyter.program import Expr, IndexVar, Read, rewrite

from .ir import Allocate, Barrier, Block, Check, For, If, Intrinsic, Stmt, Store

Rule = Callable[[Expr], Expr | None]


def with_body(block: Block, body: Iterable[Stmt]) -> Block:
    """The block with other statements; itself where they are the same objects."""
    new = tuple(body)
    same = len(new) == len(block.body) and all(map(operator.is_, new, block.body))
    return block if same else replace(block, body=new)


def with_blocks(stmt: Stmt, change: Callable[[Block], Block]) -> Stmt:
    """The statement with every block directly inside it changed."""
    match stmt:
        case For() | Allocate() | Check():
            body = change(stmt.body)
            return stmt if body is stmt.body else replace(stmt, body=body)
        case If():
            then, otherwise = change(stmt.then), None if stmt.otherwise is None else change(stmt.otherwise)
            same = then is stmt.then and otherwise is stmt.otherwise
            return stmt if same else replace(stmt, then=then, otherwise=otherwise)
        case Block():
            return change(stmt)
        case Store() | Barrier() | Intrinsic():
            return stmt
    assert_never(stmt)


def with_expressions(stmt: Stmt, rule: Rule) -> Stmt:
    """The statement with `rule` applied bottom-up to every expression in it, inner statements included."""
    match stmt:
        case For():
            stmt = replace(stmt, min=rewrite(stmt.min, rule), extent=rewrite(stmt.extent, rule))
        case If():
            stmt = replace(stmt, condition=rewrite(stmt.condition, rule))
        case Store():
            indices = tuple(rewrite(each, rule) for each in stmt.indices)
            return replace(stmt, indices=indices, value=rewrite(stmt.value, rule))
        case Allocate():
            shape = tuple(rewrite(each, rule) for each in stmt.buffer.shape)
            stmt = replace(stmt, buffer=replace(stmt.buffer, shape=shape))
        case Check():
            values = tuple(rewrite(each, rule) for each in stmt.values)
            stmt = replace(stmt, condition=rewrite(stmt.condition, rule), values=values)
        case Intrinsic():
            return replace(stmt, operands=tuple(_read(each, rule) for each in stmt.operands))
        case Barrier() | Block():
            pass
        case _:
            assert_never(stmt)
    return with_blocks(stmt, lambda block: block_with_expressions(block, rule))


def block_with_expressions(block: Block, rule: Rule) -> Block:
    """As `with_expressions`, for all statements of a block."""
    return with_body(block, (with_expressions(stmt, rule) for stmt in block.body))


def _read(read: Read, rule: Rule) -> Read:
    new = rewrite(read, rule)
    assert isinstance(new, Read)
    return new


def variables(values: Mapping[str, Expr]) -> Rule:
    """The rule that puts expressions in the place of loop variables."""

    def rule(expr: Expr) -> Expr | None:
        return values.get(expr.name) if isinstance(expr, IndexVar) else None

    return rule
