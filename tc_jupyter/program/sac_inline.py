"""The statements of another program in place of a call from a `%%sac` function.

The callee's tensors get new names; its sizes and scalars become expressions of the caller. Inside a comprehension whose index the
arguments depend on, everything in the callee gets that index as an additional leading dimension.

Worked example: `{ [i] -> total(A[i]) }` with `%%tc def total(float(N) X) -> (s) { s +=! X(k) }` becomes `s(i) +=! t(i, k)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc_jupyter.diagnostics import Span
from tc_jupyter.diagnostics.work import spend

from .expr import Expr, IndexVar, Read, Size, rewrite
from .program import FOLD_LEFT, FOLD_RIGHT, CallSite, Equality, Index, Program, Statement
from .sac_emit import STEPS_PER_STATEMENT, Emitter, Temp
from .sac_sizes import STEPS_PER_NODE, ZERO
from .steps import at_steps, moved_extent


def inline_program(
    out: Emitter,
    program: Program,
    arguments: Mapping[str, str],
    scalars: Mapping[str, Expr],
    sizes: Mapping[str, Expr],
    lifted: tuple[str, ...],
    span: Span,
) -> tuple[str, ...]:
    """Add the callee's statements.

    Args:
        arguments: parameter -> tensor of the caller that holds it (with leading dimensions `lifted`).
        scalars: parameter of rank 0 -> expression of the caller.
        sizes: size of the callee -> expression of the caller.

    Returns:
        The tensors of the caller that hold the results; they start at 0 again, as for a caller in Python.
    """
    worker = _Inliner(out, program, arguments, scalars, sizes, lifted, span)
    position = len(out.drafts)
    for statement in program.statements:
        out.drafts.append(worker.statement(statement))
    for equality in program.equalities:
        kind = "call" if equality.kind == "declared" else equality.kind
        out.equalities.append(
            Equality(worker.expr(equality.left), worker.expr(equality.right), kind, equality.reason, span)
        )
    views: list[str] = []
    for result in program.results:
        inner = worker.names[result]
        temp = out.temps[inner]
        views.append(out.new_temp(result, temp.dtype, None, temp.rank))
        out.temps[views[-1]] = replace(out.temps[views[-1]], view_of=inner)
    out.calls.append(CallSite(program.name, tuple(arguments.values()), tuple(views), position, span))
    return tuple(views)


class _Inliner:
    def __init__(
        self,
        out: Emitter,
        program: Program,
        arguments: Mapping[str, str],
        scalars: Mapping[str, Expr],
        sizes: Mapping[str, Expr],
        lifted: tuple[str, ...],
        span: Span,
    ) -> None:
        self.out = out
        self.span = span
        self.scalars = scalars
        self.sizes = sizes
        self.lifted = lifted
        self.names: dict[str, str] = dict(arguments)
        self.call = f"{program.name}.{len(out.calls)}"
        self.leading = tuple(name.replace("'", "_") for name in lifted)
        for tensor in program.tensors:
            if tensor.kind != "input":
                self.names[tensor.name] = out.new_temp(tensor.name, tensor.dtype, None, tensor.rank + len(lifted))
        for tensor in program.tensors:
            if tensor.kind != "input":
                self._declare(tensor.name, tensor.box, tensor.view_of)

    def _declare(self, name: str, box: tuple[tuple[Expr, Expr], ...] | None, view_of: str | None) -> None:
        new = self.names[name]
        temp: Temp = self.out.temps[new]
        if box is not None:
            outer = tuple((ZERO, self.out.box[index][1]) for index in self.lifted)
            temp = replace(temp, box=(*outer, *((self.expr(low), self.expr(high)) for low, high in box)))
        if view_of is not None:
            temp = replace(temp, view_of=self.names[view_of])
        self.out.temps[new] = temp

    def expr(self, expr: Expr) -> Expr:
        """An expression of the callee in terms of the caller, at the call: the callee may be of another text."""
        return rewrite(expr, lambda node: replace(self._rule(node) or node, span=self.span))

    def _rule(self, node: Expr) -> Expr | None:
        spend(STEPS_PER_NODE)
        if isinstance(node, Size):
            tensor = node.name.rpartition(".")[0]
            if tensor in self.names:
                return moved_extent(node, self.names[tensor], len(self.lifted))
            return self.sizes.get(node.name)
        if isinstance(node, Read):
            if node.tensor in self.scalars:
                return self.scalars[node.tensor]
            if node.tensor in (FOLD_LEFT, FOLD_RIGHT):
                return None
            return at_steps(replace(node, tensor=self.names[node.tensor]), tuple(map(IndexVar, self.leading)))
        return None

    def statement(self, statement: Statement) -> Statement:
        """A statement of the callee as one of the caller."""
        spend(STEPS_PER_STATEMENT)
        outer = tuple(
            Index(name, "output", (ZERO, self.out.box[index][1]), self.span)
            for name, index in zip(self.leading, self.lifted, strict=True)
        )
        made = statement.mapped(self.expr)
        return replace(
            made,
            name=self.names[statement.target],
            target=self.names[statement.target],
            indices=(*outer, *(replace(index, span=self.span) for index in made.indices)),
            left=(*map(IndexVar, self.leading), *made.left) if made.left else (),
            combine=None if statement.combine is None else self.expr(statement.combine),
            block=f"{self.call}.{statement.block}" if statement.block else "",
            ahead=tuple(self.names[name] for name in statement.ahead),
            left_span=self.span,
            span=self.span,
        )
