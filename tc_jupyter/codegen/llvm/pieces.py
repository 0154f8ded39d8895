"""Lanes that read neighbours, but for the few vectors in which a subscript wraps around or stops.

Worked example: in `Y[j] = X[(j + 1) % N]` sixteen lanes read sixteen neighbours, unless one of them is the last element of `X`; in
`Y[j] = X[min(j + 1, N - 1)]` too. One comparison per vector tells which it is. A vector that wraps around is two reads where a mask
is an instruction, else one read per lane; one that stops is gathered. Measured with AVX2, a stencil of 5 points that wraps around,
2048 x 2048 on two threads: 0.9 ms, 5.0 with a division per element, 0.8 without wrapping.
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.loops import Block, expressions, walk_statements
from tc_jupyter.program import Binary, Const, Expr, IndexVar, Read, walk
from tc_jupyter.program.integers import reads_elements
from tc_jupyter.ranges import SizeExpr, from_expr, interior, keeps_its_form, to_expr

from .polynomial import Polynomial, Term, add, as_expr, mentions, polynomial, scaled, step


@dataclass(frozen=True, slots=True)
class Rows:
    """An offset whose lanes go along a row, or stay at one element of it, and then along the next one.

    Attributes:
        position: grows by one from lane to lane: `position // length` is the row.
        length: of a row, in lanes.
        gain: from a row to the next one.
        moves: whether lanes of a row are neighbours; else they are the same.
    """

    position: Expr
    length: Expr
    gain: Polynomial
    moves: bool


def along_rows(offset: Polynomial, var: str) -> Rows | None:
    """Take an offset apart that has quotients of one position and perhaps, once, its remainder; `None` if it is no such sum."""
    rows: list[Term] = []
    ways: set[tuple[Expr, Expr]] = set()
    places = 0
    for product, value in offset.terms:
        moving = [factor for factor in product if mentions(factor, var)]
        match moving:
            case []:
                continue
            case [Binary(op="//", left=left, right=right) as quotient]:
                ways.add((left, right))
                rows.append((tuple(factor for factor in product if factor is not quotient), value))
            case [Binary(op="%", left=left, right=right)] if len(product) == 1 and value == 1:
                ways.add((left, right))
                places += 1
            case _:
                return None
    if len(ways) != 1 or places > 1:
        return None
    ((position, length),) = ways
    if step(polynomial(position), var) != (1, True) or mentions(length, var):
        return None
    gain = Polynomial(())
    for term in rows:
        gain = add(gain, Polynomial((term,)))
    return Rows(position, length, gain, places == 1)


@dataclass(frozen=True, slots=True)
class Pieces:
    """An offset whose lanes are neighbours where no border is between them.

    Attributes:
        rest: what does not differ between lanes.
        position: what does.
        inside: the position where lanes are neighbours.
        near: expressions that are 0 or more there, if they are for one lane; the first one for those that grow, else the last one.
    """

    rest: Polynomial
    position: Expr
    inside: Expr
    near: tuple[tuple[Expr, bool], ...]


def in_pieces(offset: Polynomial, var: str, lanes: int) -> Pieces | None:
    """Take an offset apart; `None` if its lanes are neighbours always, or in no way that can be told from the first and last.

    A remainder of so small a power of two that no vector is in one piece is none either: it is gathered without a division.
    """
    moved = [term for term in offset.terms if any(mentions(factor, var) for factor in term[0])]
    match moved:
        case [((position,), 1)] if not isinstance(position, IndexVar) and not _is_mask(position, lanes):
            pass
        case _:
            return None
    found = interior(from_expr(position), var)
    if (
        reads_elements(position)
        or keeps_its_form(position)  # the ends of the interior may not fit into 64 bits
        or found is None
        or not found.conditions
        or _weight(found.value, var) != 1
    ):
        return None
    rest = Polynomial(tuple(term for term in offset.terms if term not in moved))
    near = tuple((to_expr(each), _weight(each, var) > 0) for each in found.conditions)
    return Pieces(rest, position, to_expr(found.value), near)


def _weight(value: SizeExpr, var: str) -> int:
    split = value.linear_in(var)
    return split[0].constant if split is not None else 0


def _is_mask(position: Expr, lanes: int) -> bool:
    """Whether a position is a remainder of a power of two of less than a vector."""
    match position:
        case Binary(op="%", right=Const(value=value)):
            return value < lanes and int(value) & (int(value) - 1) == 0
        case _:
            return False


def wrapped(position: Expr, var: str) -> tuple[Expr, Expr] | None:
    """`(a, n)` of a position `(a + c*n) % n` with an `a` that grows by one from lane to lane; else `None`."""
    if not isinstance(position, Binary) or position.op != "%" or step(polynomial(position.left), var) != (1, True):
        return None
    return as_expr(reduced(polynomial(position.left), position.right)), position.right


def reads_in_pieces(block: Block, var: str) -> bool:
    """Whether a loop reads somewhere where its subscript wraps around or stops."""
    reads = (
        node
        for stmt in walk_statements(block)
        for expr in expressions(stmt)
        for node in walk(expr)
        if isinstance(node, Read)
    )
    return any(
        in_pieces(polynomial(subscript), var, 0) is not None for read in reads for subscript in read.indices[-1:]
    )


def reduced(total: Polynomial, divisor: Expr) -> Polynomial:
    """Without multiples of the divisor: `j + N - 1` modulo `N` is `j - 1`, which for most `j` is the remainder already."""
    count = dict(total.terms).get((divisor,), 0)
    return add(total, scaled(polynomial(divisor), -count))
