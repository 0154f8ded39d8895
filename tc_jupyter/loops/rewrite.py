"""Statements with other blocks or other expressions inside; nothing is changed in place.

Worked example: `with_expressions(stmt, variables({"k": k + 1}))` puts `k + 1` in the place of the variable `k` in all of `stmt`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from tc_jupyter.program import Binary, Const, Expr, IndexVar, Read, Size, children, rebuild, rewrite

from .ir import Allocate, Barrier, Block, Check, For, If, Intrinsic, Stmt, Store, expressions

Rule = Callable[[Expr], Expr | None]
Change = Callable[[Expr], Expr]


def with_body(block: Block, body: Iterable[Stmt]) -> Block:
    """The block with other statements; itself where they are the same objects."""
    new = tuple(body)
    same = len(new) == len(block.body) and all(map(operator.is_, new, block.body))
    return block if same else replace(block, body=new)


def only(block: Block) -> Stmt | None:
    """The one statement of a block, through nested blocks."""
    if len(block.body) != 1:
        return None
    inner = block.body[0]
    return only(inner) if isinstance(inner, Block) else inner


def flat(block: Block) -> list[Stmt]:
    """The statements of a block and of the blocks that are statements of it."""
    return [inner for stmt in block.body for inner in (flat(stmt) if isinstance(stmt, Block) else [stmt])]


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
    return mapped(stmt, lambda expr: rewrite(expr, rule))


def block_with_expressions(block: Block, rule: Rule) -> Block:
    """As `with_expressions`, for all statements of a block."""
    return mapped_block(block, lambda expr: rewrite(expr, rule))


def with_own_expressions(stmt: Stmt, rule: Rule) -> Stmt:
    """As `with_expressions`, without the statements inside; itself where nothing changes."""
    return _with_own(stmt, lambda expr: rewrite(expr, rule))


def mapped(stmt: Stmt, change: Change) -> Stmt:
    """The statement with every expression in it changed, inner statements included."""
    return with_blocks(_with_own(stmt, change), lambda block: mapped_block(block, change))


def mapped_block(block: Block, change: Change) -> Block:
    """As `mapped`, for all statements of a block."""
    return with_body(block, (mapped(stmt, change) for stmt in block.body))


def _with_own(stmt: Stmt, change: Change) -> Stmt:
    before = expressions(stmt)
    after = tuple([change(each) for each in before])
    if all(map(operator.is_, after, before)):
        return stmt
    match stmt:
        case For():
            return replace(stmt, min=after[0], extent=after[1])
        case If():
            return replace(stmt, condition=after[0])
        case Store():
            return replace(stmt, indices=after[:-1], value=after[-1])
        case Allocate():
            return replace(stmt, buffer=replace(stmt.buffer, shape=after))
        case Check():
            return replace(stmt, condition=after[0], values=after[1:])
        case Intrinsic():
            return replace(stmt, operands=tuple(map(_as_read, after)))
        case Barrier() | Block():
            return stmt
    assert_never(stmt)


def _as_read(expr: Expr) -> Read:
    assert isinstance(expr, Read)
    return expr


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace loop variables; what has none of them stays the same object."""
    match expr:
        case IndexVar():
            return values.get(expr.name, expr)
        case Const() | Size():
            return expr
        case Binary():
            left, right = substitute(expr.left, values), substitute(expr.right, values)
            same = left is expr.left and right is expr.right
            return expr if same else Binary(expr.op, left, right, expr.dtype, expr.span)
        case Read():
            indices = tuple(substitute(where, values) for where in expr.indices)
            same = all(new is old for new, old in zip(indices, expr.indices, strict=True))
            return expr if same else Read(expr.tensor, indices, expr.dtype, expr.span)
        case _:
            return rebuild(expr, tuple(substitute(child, values) for child in children(expr)))
