"""The statements of a called def at every step of a loop: what moves gets the steps as its first dimensions.

Worked example: at the steps `t in 0:T` the statement `Y(i) = 2*X(i)` of a callee is `Y(t, i) = 2*X(i)`, and `Y.0` is `Y.1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .expr import Expr, IndexVar, Read, Size, rewrite, walk
from .inline import Inlined
from .program import Equality, Index, Statement, Tensor, made_from
from .typing import without_idle_casts


def moving_tensors(copy: Inlined, first: set[str], always: set[str]) -> set[str]:
    """The tensors of a copy that the first ones lead to, and those that move in any case; views of them among these."""
    found = set(always)
    owners = {tensor.name: tensor.view_of for tensor in copy.tensors}
    used = [(each.target, _used(each)) for each in copy.statements]
    while True:
        more = {target for target, names in used if names & (found | first)}
        more |= {name for name, owner in owners.items() if owner in found and name not in first}
        if more <= found:
            return found
        found |= more


def _used(statement: Statement) -> set[str]:
    """The tensors of which a statement reads elements or extents, in its ranges, too."""
    nodes = [node for part in statement.parts_and_ends for node in walk(part)]
    extents = {node.name.rpartition(".")[0] for node in nodes if isinstance(node, Size)}
    return extents | {node.tensor for node in nodes if isinstance(node, Read)}


def moved_extent(node: Size, tensor: str, count: int) -> Size:
    """The extent, or first index, of a dimension of a tensor that has so many dimensions more in front."""
    dimension = node.name.rpartition(".")[2]
    kind = "first" if dimension.startswith("first") else ""
    return replace(node, name=f"{tensor}.{kind}{int(dimension.removeprefix('first')) + count}")


def at_steps(read: Read, steps: Sequence[Expr]) -> Read:
    """An element of a tensor that has dimensions more in front."""
    border, count = read.border, len(steps)
    if border is not None:
        outside, nonempty = (frozenset(k + count for k in each) for each in (border.dimensions, border.nonempty))
        border = replace(border, dimensions=outside, nonempty=nonempty)
    return replace(read, indices=(*steps, *read.indices), border=border)


@dataclass(frozen=True, slots=True)
class Steps:
    """How the copy of a def is done at every step.

    Attributes:
        indices: the steps, outermost first, with their ranges.
        moving: the tensors that get them as their first dimensions.
        order, block: of the loop; empty where the steps have no order.
        behind: what later statements of the block make.
    """

    indices: tuple[Index, ...]
    moving: set[str]
    order: tuple[tuple[str, int], ...]
    block: str
    behind: tuple[str, ...]

    @property
    def now(self) -> tuple[Expr, ...]:
        """The steps as subscripts."""
        return tuple(IndexVar(each.name) for each in self.indices)

    def expr(self, expr: Expr) -> Expr:
        """An expression of the copy at every step."""
        return without_idle_casts(rewrite(expr, self.rule))

    def rule(self, node: Expr) -> Expr | None:
        """What stands for a node; `None` for itself."""
        match node:
            case Read() if node.tensor in self.moving:
                return at_steps(node, self.now)
            case Size():
                return self.size(node)
            case _:
                return None

    def size(self, node: Size) -> Size:
        """The extent of a dimension of a tensor that has more dimensions now."""
        tensor = node.name.rpartition(".")[0]
        return moved_extent(node, tensor, len(self.indices)) if tensor in self.moving else node

    def tensor(self, tensor: Tensor) -> Tensor:
        """A tensor of the copy, with the steps where it moves."""
        if tensor.name not in self.moving:
            return tensor
        ends = tuple(each.where for each in self.indices if each.where is not None)
        box = None if tensor.box is None else (*ends, *tensor.box)
        return replace(tensor, rank=tensor.rank + len(self.indices), box=box, declared=None, starts=None)

    def statements(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """Those that move, at every step."""
        loop = [each for each in statements if each.target in self.moving]
        return tuple(self.statement(each, loop) for each in loop)

    def statement(self, statement: Statement, loop: Sequence[Statement]) -> Statement:
        """A statement at every step."""
        ahead = (*made_from([each.target for each in loop], loop.index(statement)), *self.behind)
        own = tuple(replace(each, span=statement.span) for each in self.indices)
        made = statement.mapped(self.expr)
        return replace(
            made,
            indices=(*own, *made.indices),
            left=(*self.now, *made.left) if made.left else (),
            order=(*self.order, *statement.order),
            block=self.block,
            ahead=tuple(dict.fromkeys(ahead)) if self.block else statement.ahead,
        )

    def equality(self, equality: Equality) -> Equality:
        """What must be equal, at every step."""
        return replace(equality, left=self.expr(equality.left), right=self.expr(equality.right))


__all__ = ["Steps", "at_steps", "moved_extent", "moving_tensors"]
