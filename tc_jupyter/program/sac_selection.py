"""Selections and reductions of values.

Worked example: `a[., j]` of a matrix is a vector of expressions `a(i0, j)`; `sum` of it becomes a reduction statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from tc_jupyter.diagnostics import Span, codes
from tc_jupyter.syntax.sac_foreign import INSTEAD_OF_MASK
from tc_jupyter.syntax.sac_tree import Apply, Dot, SacExpression, Selection, TripleDot
from tc_jupyter.syntax.tree import Name

from .expr import Binary, Const, DType, Expr, IndexVar, Read, rewrite
from .program import FOLD_LEFT, FOLD_RIGHT
from .sac_bounds import Constraint
from .sac_elements import Elements, at_position, holds
from .sac_emit import Draft, identity, zero
from .sac_helpers import chained, located, several
from .sac_sizes import ONE, ZERO, fold, is_nonnegative, simplified, sub
from .sac_sizes import value as number_of
from .sac_values import Kind, Piece, Value, Weak, alone, arithmetic, compute, convert, kind_text, scalar, storage
from .sac_work import MOST_COMBINED, MOST_ITEMS, Context, Env, Refused


def _merged(operator: str, combine: Expr | None, left: Expr, right: Expr) -> Expr:
    """Two values combined, as a reduction does it."""
    if combine is None:
        if left.dtype is DType.BOOL:
            operator = "&&" if operator in ("min", "*") else "||"
        return fold(Binary(operator, left, right, left.dtype))
    operands = {FOLD_LEFT: left, FOLD_RIGHT: right}
    return simplified(rewrite(combine, lambda node: operands.get(node.tensor) if isinstance(node, Read) else None))


class Selections(Elements):
    """Selections `a[..]` and reductions `sum`, `prod`, `minval`, `maxval`."""

    def selection(self, node: Selection, env: Env, context: Context) -> Value:
        """`a[..]`."""
        array = self.expr(node.array, env, context)
        if isinstance(node.array, Name) and node.array.name in self.out.inputs and array.expr is not None:
            array = replace(array, expr=located(array.expr, node.span))
        if any(isinstance(i, Dot | TripleDot) for i in node.indices):
            return self.kept_axes(node, array, env, context)
        indices = [(i, self.expr(i, env, context)) for i in node.indices if not isinstance(i, Dot | TripleDot)]
        if len(indices) == 1 and indices[0][1].rank == 1:
            found = self.components(indices[0][1], indices[0][0].span, context, "the index")
        else:
            found = tuple(self.component(written, index, context) for written, index in indices)
        return self.selected(array, found, node, context)

    def at_selection(self, element: Expr, span: Span) -> Expr:
        """A read with the place of a selection: that of the innermost one."""
        innermost = isinstance(element, Read) and self.text(element.span) not in ("", element.tensor)
        return element if innermost else located(element, span)

    def component(self, written: SacExpression, index: Value, context: Context) -> Expr:
        """One component of an index."""
        if index.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                written.span,
                f"a component of an index is a scalar, and this has shape {self.shape_text(index.shape)}",
                help=INSTEAD_OF_MASK if index.kind is DType.BOOL else "a single vector is the whole index: `a[u ++ v]`",
            )
        return self.index_of(index, written, context)

    def selected(self, array: Value, indices: tuple[Expr, ...], node: SacExpression, context: Context) -> Value:
        """The subarray at `indices`; every component says how far its indices may run."""
        if len(indices) > array.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                node.span,
                f"a selection with {several(len(indices), 'index', 'indices')} from an array of rank {array.rank}",
                help=f"its shape is {self.shape_text(array.shape)}",
            )
        small = array.items is not None
        for index, extent in zip(indices, array.shape, strict=False):
            self.constraints.append(Constraint(index, extent, context.guards, node.span))
            self.check_constant_index(index, extent, array.shape[len(indices) :], node.span, context, is_vector=small)
        shape = array.shape[len(indices) :]
        numbers = tuple(number_of(index) for index in indices)
        if array.items is not None and None not in numbers and array.extents is not None:
            stride = prod(array.extents[len(indices) :])
            start = 0
            for number, extent in zip(numbers, array.extents, strict=False):
                start = start * extent + (number or 0)
            inside = all(0 <= (n or 0) < extent for n, extent in zip(numbers, array.extents, strict=False))
            items = array.items[start * stride : (start + 1) * stride]
            if not inside:  # nothing is selected: a loop around it is empty
                items = (zero(compute(array.kind)),) * stride
            return Value(array.kind, shape, items=items) if shape else scalar(items[0], array.kind)
        axes = self.axes(shape)
        element = self.element(array, (*indices, *(IndexVar(axis) for axis in axes)), context)
        return Value(array.kind, shape, axes, self.at_selection(element, node.span))

    def check_constant_index(
        self, index: Expr, extent: Expr, rest: Sequence[Expr], span: Span, context: Context, *, is_vector: bool
    ) -> None:
        """Refuse an index that leaves the axis whatever the sizes, unless a condition or an empty loop may protect it."""
        at, size = number_of(index), number_of(extent)
        if at is None or context.guards or self.shapes_only or (at >= 0 and (size is None or at < size)):
            return
        if not is_vector:
            return  # what is read in the end is looked at in `Emitter.outside`; not everything is
        counts = [*(sub(*reversed(self.out.box[name])) for name in context.indices), *rest]
        if size is None and not all(is_nonnegative(sub(count, ONE)) for count in counts):
            return
        if not any(is_nonnegative(sub(ZERO, count)) for count in counts):
            self.outside(at, extent, span)
            raise Refused

    def kept_axes(self, node: Selection, array: Value, env: Env, context: Context) -> Value:
        """`a[., j]`: the dotted axes stay, the others are fixed."""
        triples = [i for i in node.indices if isinstance(i, TripleDot)]
        if len(triples) > 1:
            self.refuse(
                codes.TRIPLE_DOTS,
                triples[1].span,
                "a selection has more than one `...`",
                help="use `.` for each further axis",
            )
        fixed = len(node.indices) - len(triples)
        if fixed > array.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                node.span,
                f"a selection with {several(fixed, 'index', 'indices')} from an array of rank {array.rank}",
                help=f"its shape is {self.shape_text(array.shape)}",
            )
        at: list[Expr] = []
        shape: list[Expr] = []
        axes: list[str] = []

        def keep() -> None:
            extent = array.shape[len(at)]
            axes.append(self.out.fresh(f"i{len(axes)}", (ZERO, extent)))
            shape.append(extent)
            at.append(IndexVar(axes[-1]))

        for index in node.indices:
            if isinstance(index, Dot):
                keep()
            elif isinstance(index, TripleDot):
                for _ in range(array.rank - fixed):
                    keep()
            else:
                component = self.component(index, self.expr(index, env, context), context)
                extent = array.shape[len(at)]
                self.constraints.append(Constraint(component, extent, context.guards, node.span))
                others = [e for k, e in enumerate(array.shape) if k != len(at)]
                self.check_constant_index(component, extent, others, node.span, context, is_vector=False)
                at.append(component)
        while len(at) < array.rank:
            keep()
        return Value(array.kind, tuple(shape), tuple(axes), self.element(array, tuple(at), context))

    def reduced(self, word: str, found: Value, node: Apply[SacExpression], context: Context) -> Value:
        """`sum`, `prod`, `minval`, `maxval` of all elements."""
        operator = {"sum": "+", "prod": "*", "minval": "min", "maxval": "max", "all": "min", "any": "max"}[word]
        if word in ("all", "any") and found.kind is not DType.BOOL:
            self.refuse(
                codes.TYPE_MISMATCH,
                node.span,
                f"`{word}` takes `bool`, and this is `{kind_text(found.kind)}`",
                help="compare, for example `a > 0`",
            )
        kind = arithmetic(found.kind) if operator in "+*" else found.kind
        found = self.converted(found, kind)
        if found.items is not None and (
            len(found.items) <= MOST_ITEMS or all(isinstance(i, Const) for i in found.items)
        ):
            return self._reduced_items(operator, found, kind)
        if found.rank == 0:
            return found
        pieces = self.as_pieces(found, context)
        start = identity(operator, compute(kind))
        return self.combined(operator, pieces, found.rank, kind, start, None, node, context, word)

    def _reduced_items(self, operator: str, found: Value, kind: Kind) -> Value:
        items = found.items or ()
        if not items:
            limits = storage(alone(kind)) if kind is Weak.INT else compute(kind)
            number = identity(operator, limits)
            return scalar(replace(number, dtype=compute(kind)), kind)
        return scalar(chained(operator, list(items)), kind)

    def _known_reduction(
        self,
        operator: str,
        pieces: Sequence[Piece],
        count: int,
        kind: Kind,
        neutral: Expr,
        combine: Expr | None,
        shape: tuple[Expr, ...],
    ) -> Value | None:
        """A reduction of integers whose elements and bounds are all numbers, or `None`."""
        extents = Value(kind, shape).extents
        rooms = [[(number_of(low), number_of(high)) for low, high in piece.box[:count]] for piece in pieces]
        if extents is None or not isinstance(neutral, Const) or neutral.dtype.is_float or prod(extents) > MOST_ITEMS:
            return None
        if any(low is None or high is None for room in rooms for low, high in room):
            return None
        spans = [[range(low or 0, high or 0) for low, high in room] for room in rooms]
        if prod(extents) * sum(prod(map(len, span)) for span in spans) > MOST_COMBINED:
            return None
        items: list[Expr] = []
        for position in product(*(range(extent) for extent in extents)):
            result: Expr = neutral
            for piece, span in zip(pieces, spans, strict=True):
                for reduced in product(*span):
                    inside = holds(piece.box, (*reduced, *position))
                    element = at_position(piece.axes, piece.expr, (*reduced, *position)) if inside else None
                    if inside is None or (inside and element is None):
                        return None
                    if element is not None:
                        result = _merged(operator, combine, result, element)
                if not isinstance(result, Const):
                    return None  # it does not fit into its type: the kernel wraps it
            items.append(result)
        return Value(kind, shape, items=tuple(items)) if shape else scalar(items[0], kind)

    def combined(
        self,
        operator: str,
        pieces: Sequence[Piece],
        count: int,
        kind: Kind,
        neutral: Expr,
        combine: Expr | None,
        node: SacExpression,
        context: Context,
        hint: str,
        shape: tuple[Expr, ...] = (),
    ) -> Value:
        """Reduce the first `count` axes of all pieces; the other axes (`shape`) stay. `neutral` is the content before."""
        known = self._known_reduction(operator, pieces, count, kind, neutral, combine, shape)
        if known is not None:
            return known
        exprs: list[Expr] = [neutral, *shape, *context.guards]
        for piece in pieces:
            exprs += [piece.expr, *(bound for interval in piece.box for bound in interval)]
        outer = self.closed_over(exprs, context)
        dtype = storage(kind)
        box = (
            *(self._interval(name) for name in outer),
            *((ZERO, self._hull(self.bound(e, node.span))) for e in shape),
        )
        name = self.out.new_temp(hint, dtype, box)
        left = tuple((index, self.out.box[index]) for index in outer)
        away = tuple(index for index in context.indices if index not in outer)
        identical = combine is None and neutral == identity(operator, dtype.compute)
        if not identical or len(pieces) != 1:
            axes = self.axes(shape)
            self.out.add(
                Draft(
                    name,
                    (*left, *((a, (ZERO, e)) for a, e in zip(axes, shape, strict=True))),
                    neutral,
                    text=self.text(node.span),
                    span=node.span,
                ),
                (),
                neutral,
            )
        for piece in pieces:
            ranges = tuple(
                (axis, (self.bound(a, node.span), self.bound(b, node.span)))
                for axis, (a, b) in zip(piece.axes, piece.box, strict=True)
            )
            first = identical and len(pieces) == 1
            draft = Draft(
                name,
                (*left, *ranges[count:]),
                convert(piece.expr, kind, dtype),
                operator=operator,
                initialize=first,
                accumulate=not first,
                reductions=ranges[:count],
                combine=combine,
                neutral=neutral if combine is not None and isinstance(neutral, Const) else None,
                text=self.text(node.span),
                span=node.span,
                context=away,
            )
            empty = identity(operator, dtype.compute) if combine is None else neutral
            self.out.add(draft, context.guards, empty)
        return replace(self.reading(name, dtype, shape, before=tuple(IndexVar(n) for n in outer)), kind=kind)
