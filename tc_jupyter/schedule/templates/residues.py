"""Quotients by a small number along the last index on a CPU: the loop is split by that number, and the short part written out.

Every residue then has plain subscripts, and a condition on it is known; the vectors of the residues are mixed when they are written
(`codegen.llvm.stores`).

Worked example: in `Y(x) = X(x / 2) + X((x + 1) / 2)` with `x = 2*k + r`, vectors along `k` read `X(k) + X(k)` where `r` is 0 and
`X(k) + X(k + 1)` where it is 1; `i % 2 == 0 ? A(i / 2) : B(i / 2)` is `A(k)` and `B(k)`.

Measured with AVX-512 (Zen 5), one thread: an image of 400 x 400 made twice as large, nearest 188 and 40 us, linear 886 and 299 us;
two arrays of 500,000 interleaved 365 and 167 us.

What goes along the row itself is read once for all residues, and taken apart. Measured with AVX-512 (Zen 5), one thread, 1024 x
1024 elements: pairs turned by angles of `j / 2` 566 and 184 us, `X(i, j) - M(j % 3)` 775 and 119, `X(i, j) * S(i, j / 2)` 303 and
138.

By a number that is larger, and less than a row, vectors go along the residues: an image of 64 x 64 blocks of 8 x 8, written as
`X(y / 8, x / 8, y % 8, x % 8)`, 91 and 23 us.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from tc_jupyter.program import SHORTEST_ROW, Binary, Const, Expr, IndexVar, int64, walk
from tc_jupyter.ranges import Name, SizeExpr, constant, from_expr, index, of_atom, step_of
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, constant_extent
from tc_jupyter.schedule.target import Target

from .contraction import PIXEL
from .form import Form, formed
from .streaming import lanes_of


def default(schedule: Schedule, name: str, target: Target, _: object) -> Schedule | None:
    """Vectors along the quotient, residues one after the other; `None` if no read has such a quotient, or it would not help."""
    stage = schedule.graph.stage(name)
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    if stage.statement.operator != "=" or not outputs or not target.free_masks:
        return None
    *around, last = outputs
    number, lanes = divisor_along(stage, last), lanes_of(schedule, stage, target)
    length = constant_extent(stage, last)
    outer, inner = f"{last}.outer", f"{last}.inner"
    is_long = number in PIXEL and (length is None or length >= number * lanes)
    if not (is_long and _is_plain(stage, last, number)):
        if PIXEL[-1] <= number < SHORTEST_ROW and _is_plain_inside(stage, last, number):
            return formed(schedule, name, Form({last: number}, around or (outer,), (outer,), vector=inner))
        if not (is_long and _is_plain(stage, last, number, PIXEL[0], number)):
            return None
    splits, outer, vector = {last: number, outer: lanes}, f"{last}.outer.outer", f"{last}.outer.inner"
    return formed(schedule, name, Form(splits, around or (outer,), (outer,), (inner,), vector))


def divisor_along(stage: Stage, last: str) -> int:
    """What all quotients and remainders along an index in subscripts are by; 1 if there are none."""
    subscripts = (subscript for read in stage.statement.reads() for subscript in read.indices)
    return lcm(*(number for subscript in subscripts for number in _divisors(subscript, last)))


def _divisors(subscript: Expr, last: str) -> Iterator[int]:
    for node in walk(subscript):
        match node:
            case Binary(op="//" | "%", left=left, right=Const(value=number)) if number > 0 and IndexVar(last) in walk(
                left
            ):
                yield int(number)
            case _:
                pass


def _is_plain(stage: Stage, last: str, number: int, *apart: int) -> bool:
    """Whether neighbours of each residue read neighbours, one element each, or elements that are so far `apart`: each read of
    these is done once for all residues (`codegen.llvm.shared_loads`).
    """
    along, residues = f"{last}.outer", map(constant, range(number))
    return all(_steps(stage, last, number, each, along) <= {0, 1, *apart} for each in residues)


def _is_plain_inside(stage: Stage, last: str, number: int) -> bool:
    """Whether neighbours of one quotient do."""
    residue = of_atom(Name("index", f"{last}.inner", (0, number - 1)))
    return _steps(stage, last, number, residue, f"{last}.inner") <= {0, 1}


def _steps(stage: Stage, last: str, number: int, residue: SizeExpr, along: str) -> set[int | None]:
    """How far neighbours are from each other in all reads; `None`: not in one row, or not evenly."""
    here = {last: stage.root(last).dom[0] + index(f"{last}.outer") * number + residue}
    found: set[int | None] = set()
    for read in stage.statement.reads():
        *others, step = (step_of(from_expr(where).substitute(here), along) for where in read.indices or (int64(0),))
        found.add(None if any(others) else step)
    return found
