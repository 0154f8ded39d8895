"""Elements of values: conversions, elementwise operations, storing what is worth storing.

Worked example: an element of `A + 1` at `(i, j)` is `A(i, j) + 1`; only when something may be selected outside is the array stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from tc_jupyter.diagnostics import NO_SPAN, Fix, Span, codes
from tc_jupyter.syntax.sac_foreign import INSTEAD_OF_MASK
from tc_jupyter.syntax.sac_tree import SacExpression

from .expr import COMPARISONS, Binary, Call, Const, DType, Expr, IndexVar, Read, int64, walk
from .integers import index_names
from .program import Statement
from .sac_emit import Draft, NotSolvable, zero
from .sac_helpers import item_or_single, memory_order, read
from .sac_sizes import (
    ONE,
    ZERO,
    Interval,
    add,
    constant,
    ends,
    is_nonnegative,
    maximum,
    same,
    sub,
    substitute,
)
from .sac_sizes import value as number_of
from .sac_values import (
    Kind,
    Piece,
    Value,
    compute,
    convert,
    is_integer,
    item_at,
    kind_text,
    reads_of,
    scalar,
    storage,
    to_index,
    unconditional,
)
from .sac_work import MOST_ITEMS, MOST_VALUES, Context, NeedMore, Work
from .typing import may_wrap


def made_from(drafts: Iterable[Draft | Statement]) -> list[Expr]:
    """What decides the elements that statements store: their values, and the bounds of their indices."""
    found: list[Expr] = []
    for draft in drafts:
        found.append(draft.value)
        if isinstance(draft, Draft):
            found += [bound for _, interval in draft.indices for bound in interval]
    return found


def _stands_in_bounds(node: Expr) -> bool:
    """Whether the kernel can compute a bound from such a node: no floats, no truth values that are data, no wrapped numbers."""
    if isinstance(node, Binary) and node.op in COMPARISONS:
        return not any(side.dtype is DType.BOOL or may_wrap(side) for side in (node.left, node.right))
    return not (node.dtype.is_float or isinstance(node, Call) or (isinstance(node, Read) and node.dtype is DType.BOOL))


def holds(box: tuple[Interval, ...], position: tuple[int, ...]) -> bool | None:
    """Whether a box has a position; `None` if its bounds are not known."""
    bounds = [(number_of(low), number_of(high)) for low, high in box]
    if any(low is None or high is None for low, high in bounds):
        return None
    return all((low or 0) <= at < (high or 0) for (low, high), at in zip(bounds, position, strict=True))


def at_position(axes: tuple[str, ...], expr: Expr | None, position: tuple[int, ...]) -> Const | None:
    """An expression over axes at a position, if it is a number there."""
    if expr is None:
        return None
    found = substitute(expr, dict(zip(axes, map(int64, position), strict=True)))
    return found if isinstance(found, Const) else None


class Elements(Work):
    """Elementwise operations, elements, storage."""

    def scalar_of(
        self, found: Value, node: SacExpression, context: Context, help: str | None = None, fix: Fix | None = None
    ) -> Value:
        """`found`, which must have rank 0; `help` and `fix` say what else is meant where it has not."""
        if found.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                node.span,
                f"a scalar is needed here, and this has shape {self.shape_text(found.shape)}",
                help=help or "select an element, or reduce it with `sum`, `minval`, `maxval`",
                fix=fix,
            )
        return found if found.expr is not None else scalar(self.element(found, (), context), found.kind)

    def outside(self, at: int, extent: Expr, span: Span) -> None:
        """Say that a constant index leaves an axis."""
        message = f"index {at} leaves an axis of {self.show(extent)} elements"
        self.say(codes.SELECTION_OUT_OF_BOUNDS, span, message, help="indices start at 0")

    def items(self, found: Value, context: Context) -> tuple[Expr, ...]:
        """All elements of a small array, row-major."""
        if found.items is not None:
            return found.items
        extents = found.extents
        assert extents is not None
        positions: list[tuple[Expr, ...]] = [()]
        for extent in extents:
            positions = [(*position, int64(k)) for position in positions for k in range(extent)]
        return tuple(self.element(found, position, context) for position in positions)

    def components(self, found: Value, span: Span, context: Context, what: str) -> tuple[Expr, ...]:
        """The components of an integer vector, exact in 64 bits."""
        if found.rank != 1:
            self.refuse(
                codes.SHAPE_MISMATCH,
                span,
                f"{what} must be a vector, and has shape {self.shape_text(found.shape)}",
                help="write `[x]` for a vector of one component",
            )
        if not is_integer(found.kind):
            self.refuse(
                codes.TYPE_MISMATCH,
                span,
                f"{what} must be integers, and is `{kind_text(found.kind)}`",
                help=INSTEAD_OF_MASK if found.kind is DType.BOOL and what == "the index" else "cast with `toi(..)`",
            )
        length = number_of(found.shape[0])
        if length is None:
            self.demand(found.shape[0])
            self.refuse(
                codes.WHERE_NOT_SIZE,
                span,
                f"the length of {what} depends on computed data",
                help="pass it as an argument",
            )
        if length > MOST_VALUES:
            help = f"at most {MOST_VALUES} are possible"
            self.refuse(codes.DEVICE_LIMIT, span, f"{what} has {length} components", help=help)
        whole = replace(found, shape=(int64(length),))
        return tuple(to_index(item, found.kind) for item in self.items(whole, context))

    def index_of(self, found: Value, node: SacExpression, context: Context) -> Expr:
        """A scalar integer as an index expression."""
        found = self.scalar_of(found, node, context)
        if not is_integer(found.kind):
            self.refuse(
                codes.TYPE_MISMATCH,
                node.span,
                f"an index must be an integer, and this is `{kind_text(found.kind)}`",
                help="cast with `toi(..)`",
            )
        assert found.expr is not None
        return to_index(found.expr, found.kind)

    def bound(self, expr: Expr, span: Span) -> Expr:
        """`expr` as the bound of a range: over sizes and scalar arguments only, or a request for the numbers."""
        if self.is_bound(expr):
            return expr
        inputs, computed = self._sources(expr)
        if not computed and all(_stands_in_bounds(node) for node in walk(expr)):  # as integer scalar arguments do
            inputs = {position for position in inputs if self.signature.arguments[position].rank}
        self.demand(expr, inputs)
        number = None if computed else constant(expr)
        if number is not None:
            return int64(int(number))
        self.refuse(
            codes.WHERE_NOT_SIZE,
            span,
            "a shape depends on data that the function computes",
            help="pass the shape as an argument",
        )

    def is_bound(self, expr: Expr) -> bool:
        """Whether an expression is the bound of a range without a request for numbers."""
        inputs, computed = self._sources(expr)
        plain = not any(self.signature.arguments[position].rank for position in inputs)
        return plain and not computed and all(_stands_in_bounds(node) for node in walk(expr))

    def demand(self, expr: Expr, inputs: set[int] | None = None) -> None:
        """Ask for the elements of the arguments that `expr` is made from, and for all extents; nothing if they are known.

        Raises:
            NeedMore: they are not known yet.
        """
        wanted = self._sources(expr)[0] if inputs is None else inputs
        known = {position for position, _ in self.signature.values}
        if not wanted <= known or not self.numbers:
            raise NeedMore(extents=True, values=tuple(sorted(wanted | known)))

    def _sources(self, expr: Expr) -> tuple[set[int], bool]:
        """The positions of the arguments that an expression is made from, and whether it uses what the function computes."""
        inputs: set[int] = set()
        seen: set[str] = set()
        todo = [expr]
        while todo:
            for node in reads_of(todo.pop()):
                if node.tensor in self.out.inputs:
                    inputs.add(self.input_positions[node.tensor])
                elif node.tensor not in seen:
                    seen.add(node.tensor)
                    todo += made_from(draft for draft in self.out.drafts if draft.target == node.tensor)
        return inputs, bool(seen)

    def converted(self, found: Value, kind: Kind) -> Value:
        """The same elements in another type."""
        if found.kind is kind:
            return found
        change: Callable[[Expr], Expr] = lambda e: convert(e, found.kind, kind)  # noqa: E731
        return self.mapped(found, kind, change)

    def mapped(self, found: Value, kind: Kind, change: Callable[[Expr], Expr]) -> Value:
        """`change` applied to every element."""
        if found.items is not None:
            return replace(found, kind=kind, items=tuple(change(item) for item in found.items))
        if found.pieces is not None:
            return replace(found, kind=kind, pieces=tuple(replace(p, expr=change(p.expr)) for p in found.pieces))
        assert found.expr is not None
        return replace(found, kind=kind, expr=change(found.expr))

    def elementwise(
        self,
        operands: list[Value],
        kind: Kind,
        make: Callable[[list[Expr]], Expr],
        span: Span,
        context: Context,
        *,
        extend: bool = True,
    ) -> Value:
        """`make` of the elements at equal positions; scalars are extended."""
        arrays = [operand for operand in operands if operand.rank] if extend else operands
        shape = self.common_shape(arrays, span, "the operands" if extend else "the branches") if arrays else ()
        if all(operand.rank == 0 for operand in operands):
            return scalar(make([self.element(operand, (), context) for operand in operands]), kind)
        small = [operand for operand in arrays if operand.items is not None]
        extents = tuple(number_of(extent) for extent in shape)
        if (
            small
            and None not in extents
            and prod(n for n in extents if n is not None) <= max(MOST_ITEMS, len(small[0].items or ()))
        ):
            lists = [
                self.items(replace(o, shape=shape) if o.rank else o, context) if o.rank else None for o in operands
            ]
            count = prod(n for n in extents if n is not None)
            scalars = [None if o.rank else self.element(o, (), context) for o in operands]
            items = tuple(
                make([item_or_single(lists[j], scalars[j], k) for j in range(len(operands))]) for k in range(count)
            )
            return Value(kind, shape, items=items)
        split = [operand for operand in arrays if operand.pieces is not None]
        if len(split) == 1 and split[0].pieces is not None:
            pieces = tuple(self._piecewise(piece, operands, split[0], make, context) for piece in split[0].pieces)
            return Value(kind, shape, pieces=pieces)
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes)
        return Value(kind, shape, axes, make([self.element(o, at if o.rank else (), context) for o in operands]))

    def _piecewise(
        self, piece: Piece, operands: list[Value], split: Value, make: Callable[[list[Expr]], Expr], context: Context
    ) -> Piece:
        at = tuple(IndexVar(axis) for axis in piece.axes)
        elements = [piece.expr if o is split else self.element(o, at if o.rank else (), context) for o in operands]
        return replace(piece, expr=make(elements))

    def common_shape(self, arrays: Sequence[Value], span: Span, what: str) -> tuple[Expr, ...]:
        """The shape of values that must be equal in shape; `what` they are: operands, or the branches of a choice."""
        equal = "shapes must be equal, or one operand a scalar"
        if what == "the branches":
            equal = "both branches need one shape where no constant decides which one is taken"
        first = arrays[0]
        shape = list(first.shape)
        for other in arrays[1:]:
            if other.rank != first.rank:
                self.refuse(
                    codes.SHAPE_MISMATCH,
                    span,
                    f"{what} have shapes {self.shape_text(first.shape)} and {self.shape_text(other.shape)}",
                    help=f"{equal}; a comprehension says which axes belong together",
                )
            for axis, (a, b) in enumerate(zip(shape, other.shape, strict=True)):
                self.require_equal(
                    a,
                    b,
                    codes.SHAPE_MISMATCH,
                    span,
                    f"{what} differ in the extent of axis {axis}",
                    (("one", a), ("the other", b)),
                    help=f"{equal}; `take` shortens an axis",
                )
                if number_of(a) is None and number_of(b) is not None:
                    shape[axis] = b
        return tuple(shape)

    def element(self, found: Value, indices: tuple[Expr, ...], context: Context) -> Expr:
        """The element at `indices` as an expression; where an index may leave the array it is stored, so that this is checked."""
        extents = found.extents
        if extents is not None and 0 in extents and found.expr is None:
            return zero(compute(found.kind))
        if found.items is not None and extents is not None:
            for index, extent in zip(indices, extents, strict=True):
                at = number_of(index)
                if at is not None and not 0 <= at < extent:
                    self.refuse(
                        codes.SELECTION_OUT_OF_BOUNDS,
                        NO_SPAN,
                        f"index {at} leaves an axis of {extent} elements",
                        help="indices start at 0",
                    )
            if all(self.inside(index, int64(extent)) for index, extent in zip(indices, extents, strict=True)):
                return item_at(found.items, extents, indices)
            found = self.stored(found, context)
        elif found.pieces is not None or not self._safe(found, indices):
            known = self.settled(found)
            if known is not found:
                return self.element(known, indices, context)
            found = self.stored(found, context)
        assert found.expr is not None
        return substitute(found.expr, dict(zip(found.axes, indices, strict=True)))

    def settled(self, found: Value) -> Value:
        """A small array of integers with its elements as numbers, where all are known; else the value as it is.

        So a shape that is computed of constants, shapes and known arguments is one, whatever computes it.
        """
        extents = found.extents
        whole = is_integer(found.kind) or found.kind is DType.BOOL
        if extents is None or found.items is not None or not whole or prod(extents) > MOST_ITEMS:
            return found
        items: list[Expr] = []
        for position in product(*(range(extent) for extent in extents)):
            item = self.number_at(found, position)
            if item is None:
                return found
            items.append(item)
        return Value(found.kind, found.shape, items=tuple(items))

    def number_at(self, found: Value, position: tuple[int, ...]) -> Const | None:
        """The element at a position, if it is a number."""
        if found.pieces is None:
            return at_position(found.axes, found.expr, position)
        for piece in found.pieces:
            inside = holds(piece.box, position)
            if inside is None:
                return None
            if inside:
                return at_position(piece.axes, piece.expr, position)
        return None

    def _safe(self, found: Value, indices: tuple[Expr, ...]) -> bool:
        return all(
            self.inside(index, extent) or self._checks_itself(found, axis)
            for axis, (index, extent) in enumerate(zip(indices, found.shape, strict=True))
        )

    def inside(self, index: Expr, extent: Expr) -> bool:
        """Whether `0 <= index < extent` certainly holds, or will be made to hold by the bound of an open index."""
        if isinstance(index, IndexVar) and index.name in self.open:
            return True
        return is_nonnegative(index, self.out.box) and is_nonnegative(sub(sub(extent, ONE), index), self.out.box)

    def _checks_itself(self, found: Value, axis: int) -> bool:
        """Whether an element read of equal extent, made for every element, already checks this axis."""
        index = IndexVar(found.axes[axis])
        for node in unconditional(found.expr):
            if isinstance(node, Read):
                for dimension, subscript in enumerate(node.indices):
                    extent = self.out.extent(node.tensor, dimension)
                    if subscript == index and extent is not None and same(extent, found.shape[axis]):
                        return True
        return False

    def stored(self, found: Value, context: Context) -> Value:
        """The value as elements of a temporary, which is called as the variable that has the value."""
        _, home, hint = self.homes.get(id(found), (found, context, "t"))
        if home.guards == context.guards[: len(home.guards)]:  # else another name got the value where more is asked
            context = home
        key = (id(found), context.guards)
        if key in self.stored_values:
            return self.stored_values[key][1]
        outer = self.needed(found, context)
        dtype = storage(found.kind)
        shape = tuple(self._hull(self.bound(extent, NO_SPAN)) for extent in found.shape)
        box = (*(self._interval(name) for name in outer), *((ZERO, extent) for extent in shape))
        plain = tuple(range(len(box)))  # pieces and items have no axes in common
        order = plain if found.expr is None else memory_order((*outer, *found.axes), found.expr)
        name = self.out.new_temp(hint, dtype, tuple(box[place] for place in order))
        self.write(name, found, context, outer, NO_SPAN, hint, order)
        axes = self.axes(found.shape)
        indices = tuple(IndexVar(index) for index in (*outer, *axes))
        element = read(name, tuple(indices[place] for place in order), dtype)
        result = Value(found.kind, found.shape, axes, element)
        self.stored_values[key] = (found, result)
        return result

    def _interval(self, name: str) -> Interval:
        low, high = self.out.box[name]
        first, last = ends(low, self.out.box), ends(sub(high, ONE), self.out.box)
        if first is None or last is None:
            raise NotSolvable(name)
        if not index_names(low) | index_names(high):
            return low, high
        return first[0], maximum((add(last[1], ONE), first[0]))

    def _hull(self, extent: Expr) -> Expr:
        found = ends(extent, self.out.box) if index_names(extent) else (extent, extent)
        if found is None:
            raise NotSolvable("")
        return found[1]

    def needed(self, found: Value, context: Context) -> tuple[str, ...]:
        """The enclosing indices that a value depends on, from the outside in."""
        exprs: list[Expr] = [*found.shape, *(found.items or ()), *context.guards]
        if found.expr is not None:
            exprs.append(found.expr)
        for piece in found.pieces or ():
            exprs += [piece.expr, *(bound for interval in piece.box for bound in interval)]
        return self.closed_over(exprs, context)

    def closed_over(self, exprs: Iterable[Expr], context: Context) -> tuple[str, ...]:
        """The enclosing indices in `exprs`, with those that their ranges use."""
        names = {name for expr in exprs for name in index_names(expr)}
        for name in reversed(context.indices):  # a range may use indices further out
            if name in names:
                names |= index_names(self.out.box[name][0]) | index_names(self.out.box[name][1])
        return tuple(name for name in context.indices if name in names)

    def write(
        self,
        target: str,
        found: Value,
        context: Context,
        outer: tuple[str, ...],
        span: Span,
        text: str,
        order: tuple[int, ...] | None = None,
    ) -> None:
        """Statements that store all elements of `found` in `target`.

        Its dimensions are the indices `outer`, then the axes of `found`, or these in another `order`.
        """
        dtype = self.out.temps[target].dtype
        left = tuple((name, self.out.box[name]) for name in outer)
        away = tuple(name for name in context.indices if name not in outer)
        for piece in self.as_pieces(found, context):
            ranges = tuple(zip(piece.axes, piece.box, strict=True))
            several = found.pieces is not None
            outputs = (*left, *((name, (self.bound(a, span), self.bound(b, span))) for name, (a, b) in ranges))
            self.out.add(
                Draft(
                    target,
                    outputs if order is None else tuple(outputs[place] for place in order),
                    convert(piece.expr, found.kind, dtype),
                    number=piece.number if several else None,
                    text=piece.text or text,
                    span=piece.span if several else span,
                    context=away,
                ),
                context.guards,
                zero(dtype.compute),
            )

    def as_pieces(self, found: Value, context: Context) -> tuple[Piece, ...]:
        """The boxes of a value; a single one where it has only one expression."""
        whole = tuple((ZERO, extent) for extent in found.shape)
        if found.pieces == ():  # an array that is empty for all sizes: one statement says so
            return (Piece(self.axes(found.shape), whole, zero(compute(found.kind))),)
        if found.pieces is not None:
            return found.pieces
        if found.items is not None:
            extents = found.extents
            assert extents is not None
            axes = self.axes(found.shape)
            if not found.items:
                return (Piece(axes, whole, zero(compute(found.kind))),)
            at = tuple(IndexVar(axis) for axis in axes)
            return (Piece(axes, whole, item_at(found.items, extents, at)),)
        assert found.expr is not None
        return (Piece(found.axes, whole, found.expr),)
