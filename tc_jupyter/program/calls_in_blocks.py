"""`Z = cell(P, W)` inside of `along t in 0:T { ... }`: a def that is called at every step.

What a step has of its own, as `P` with `P(t, i)` in the tree, is passed as one plane; reads of the parameter read that plane. What
it leads to in the callee gets the step as its first dimension and is done in turns with the other statements of the block.

Worked example: of `def cell(float(N) H) -> (Y) { Y(i) = 2*H(i) }` the call `Z = cell(P)` at the steps `t in 0:T` makes the
statements `cell.Y(t, i) = 2*P(t, i)` and `Z(t, i0) = cell.Y(t, i0) where i0 in 0:cell.Y.1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import Span

from .expr import Binary, DType, Expr, IndexVar, Read, Size, int64, rewrite
from .inline import Inlined, Passed, inline_call
from .program import Index, Program, Statement, Tensor
from .steps import Steps, at_steps, moved_extent, moving_tensors


def inline_in_steps(
    callee: Program,
    passed: Sequence[Passed],
    planes: Mapping[str, str],
    steps: Steps,
    prefix: str,
    targets: Sequence[str],
    span: Span,
) -> Inlined:
    """The parts of `callee` as they stand in a block of a caller; its results are new tensors, which have the steps.

    Args:
        passed, prefix, span: as those of `inline_call`.
        planes: the parameters of which each step has one of its own, and the tensor of the caller they are in.
        steps: those of the block; what moves is found here.
        targets: what the caller calls the results.
    """
    marked = [
        _marked(each, f"{prefix}.{name}", name in planes) for name, each in zip(callee.parameters, passed, strict=True)
    ]
    copy = inline_call(callee, marked, prefix, span)
    views = {f"{prefix}.{name}": tensor for name, tensor in planes.items()}
    moving = moving_tensors(copy, set(views), {each.name for each in copy.results})
    own = _Called(steps.indices, moving - views.keys(), steps.order, steps.block, steps.behind, views)
    names = {each.name for each in steps.indices}
    statements = [_renamed(each, names) for each in copy.statements]
    copies = [_copied(own, each, name, span) for each, name in zip(copy.results, targets, strict=True)]
    behind = (*(tensor.name for tensor, _ in copies), *steps.behind)
    inside = replace(own, behind=behind)
    return Inlined(
        (*(own.tensor(each) for each in copy.tensors if each.name not in views), *(tensor for tensor, _ in copies)),
        (
            *(each for each in statements if each.target not in own.moving),
            *inside.statements(statements),
            *(statement for _, statement in copies),
        ),
        tuple(map(own.equality, copy.equalities)),
        tuple(tensor for tensor, _ in copies),
        copy.contradictions,
    )


def _marked(passed: Passed, marker: str, is_plane: bool) -> Passed:
    """A number of a step as it is passed, so that its reads can be told from others."""
    return replace(passed, scalar=Read(marker, (), passed.dtype)) if is_plane and passed.scalar is not None else passed


@dataclass(frozen=True, slots=True)
class _Called(Steps):
    """The copy of a def; `views`: what its parameters that are planes are called, and the tensors they are planes of."""

    views: Mapping[str, str]

    def rule(self, node: Expr) -> Expr | None:
        if isinstance(node, Read) and node.tensor in self.views:
            tensor, count = self.views[node.tensor], len(self.indices)
            firsts = [Size(f"{tensor}.first{count + k}") for k in range(len(node.indices))]
            inside = [Binary("+", at, first, DType.INT64) for at, first in zip(node.indices, firsts, strict=True)]
            return at_steps(replace(node, tensor=tensor, indices=tuple(inside)), self.now)
        return Steps.rule(self, node)

    def size(self, node: Size) -> Size:
        view = self.views.get(node.name.rpartition(".")[0])
        return Steps.size(self, node) if view is None else moved_extent(node, view, len(self.indices))


def _renamed(statement: Statement, taken: set[str]) -> Statement:
    """A statement whose indices have other names than the steps."""
    names = {each.name for each in statement.indices}
    new = {
        name: next(f"{name}{k}" for k in range(2, 99) if f"{name}{k}" not in names | taken) for name in names & taken
    }
    if not new:
        return statement

    def expr(node: Expr) -> Expr:
        return rewrite(
            node, lambda each: IndexVar(new[each.name]) if isinstance(each, IndexVar) and each.name in new else None
        )

    made = statement.mapped(expr)
    return replace(
        made,
        indices=tuple(replace(each, name=new.get(each.name, each.name)) for each in made.indices),
        combine=None if statement.combine is None else expr(statement.combine),
        order=tuple((new.get(name, name), way) for name, way in statement.order),
        part=new.get(statement.part, statement.part),
    )


def _copied(steps: Steps, result: Tensor, name: str, span: Span) -> tuple[Tensor, Statement]:
    """What the block receives of a result at every step: it starts at 0, as for a caller in Python."""
    count = len(steps.indices)
    extents = [Size(f"{result.name}.{count + k}") for k in range(result.rank)]
    firsts = [Size(f"{result.name}.first{count + k}") for k in range(result.rank)]
    letters = [Index(f"i{k}", "output", (int64(0), extent), span) for k, extent in enumerate(extents)]
    inside = [Binary("+", IndexVar(each.name), first, DType.INT64) for each, first in zip(letters, firsts, strict=True)]
    value: Expr = at_steps(Read(result.name, tuple(inside), result.dtype, span), steps.now)
    tensor = replace(result, name=name, rank=result.rank + count, box=None, declared=None, starts=None, view_of=None)
    indices = (*(replace(each, span=span) for each in steps.indices), *letters)
    made = Statement(name, name, indices, "=", False, False, value, text=f"{result.name}.now at every step", span=span)
    ahead = (name, *steps.behind) if steps.block else ()
    return tensor, replace(made, order=steps.order, block=steps.block, ahead=ahead)


__all__ = ["inline_in_steps"]
