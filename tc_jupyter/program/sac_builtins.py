"""Operators and built-in functions of `%%sac` on values that are not computed yet.

Worked example: `take([1], v) ++ drop([1], v)` becomes two boxes of one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc_jupyter.diagnostics import Span, codes
from tc_jupyter.syntax.sac_tree import Apply, SacExpression

from .expr import COMPARISONS, Binary, Call, Const, DType, Expr, IndexVar, Select, int64
from .functions import FUNCTIONS
from .sac_emit import negate, zero
from .sac_helpers import chained, negative, several
from .sac_selection import Selections
from .sac_sizes import ONE, ZERO, absolute, add, fold, is_nonnegative, maximum, same, sub, substitute
from .sac_sizes import value as number_of
from .sac_values import (
    Kind,
    Piece,
    Value,
    Weak,
    arithmetic,
    compute,
    convert,
    is_float,
    is_integer,
    kind_text,
    promote,
    scalar,
    vector,
)
from .sac_work import MOST_RANK, Context


class Builtins(Selections):
    """Operators and built-in functions."""

    def operate(self, op: str, operands: list[Value], node: SacExpression, context: Context) -> Value:
        """A built-in operator or elementwise function, or the cell's own definition of it."""
        user = self.own_function("-" if op == "neg" else op, operands)
        if user is not None:
            return self.call(user, operands, node.span, context)
        if op == "++":
            return self.joined(operands[0], operands[1], node.span, context)
        if op in ("&&", "||", "!"):
            return self.logical(op, operands, node, context)
        if op == "neg":
            kind = arithmetic(operands[0].kind)
            operand = self.converted(operands[0], kind)
            return self.elementwise([operand], kind, lambda e: negative(e[0]), node.span, context)
        common = promote(operands[0].kind, operands[1].kind)
        if op in COMPARISONS:
            if common is DType.BOOL and op not in ("==", "!="):
                common = DType.INT32
            left, right = (self.converted(o, common) for o in operands)
            return self.elementwise(
                [left, right],
                DType.BOOL,
                lambda e: fold(Binary(op, e[0], e[1], DType.BOOL, node.span)),
                node.span,
                context,
            )
        common = self.wide_enough(arithmetic(common), operands)
        left, right = (self.converted(o, common) for o in operands)
        word = "//" if op == "/" and is_integer(common) else op
        return self.elementwise(
            [left, right],
            common,
            lambda e: fold(Binary(word, e[0], e[1], compute(common), node.span)),
            node.span,
            context,
        )

    def wide_enough(self, kind: Kind, operands: list[Value]) -> Kind:
        """`kind`, or a wider one where a literal does not fit."""
        if not isinstance(kind, DType) or not kind.is_integer:
            return kind
        for operand in operands:
            number = operand.expr if operand.kind is Weak.INT else None
            if isinstance(number, Const) and not kind.limits[0] <= int(number.value) <= kind.limits[1]:
                literal = DType.INT32 if -(1 << 31) <= int(number.value) < 1 << 31 else DType.INT64
                promoted = promote(kind, literal)
                kind = promoted if isinstance(promoted, DType) else kind
        return kind

    def logical(self, op: str, operands: list[Value], node: SacExpression, context: Context) -> Value:
        """`&&`, `||`, `!` on truth values."""
        for operand in operands:
            if operand.kind is not DType.BOOL:
                self.refuse(
                    codes.TYPE_MISMATCH,
                    node.span,
                    f"`{op}` takes `bool`, and an operand is `{kind_text(operand.kind)}`",
                    help="compare, for example `x != 0`",
                )
        if op == "!":
            return self.elementwise(operands, DType.BOOL, lambda e: negate(e[0]), node.span, context)
        return self.elementwise(
            operands, DType.BOOL, lambda e: fold(Binary(op, e[0], e[1], DType.BOOL, node.span)), node.span, context
        )

    def cast(self, found: Value, dtype: DType, span: Span) -> Value:
        """The elements converted to `dtype`; to `bool` tests `!= 0`."""
        source = found.kind

        def change(expr: Expr) -> Expr:
            if dtype is DType.BOOL and source is not DType.BOOL:
                return fold(Binary("!=", expr, zero(expr.dtype), DType.BOOL, span))
            return convert(expr, source, dtype)

        return self.mapped(found, dtype, change)

    def mathematical(self, word: str, operands: list[Value], node: Apply[SacExpression], context: Context) -> Value:
        """A mathematical function, element by element."""
        function = FUNCTIONS[word]
        if len(operands) != function.arity and not (function.variadic and len(operands) >= function.arity):
            self.refuse(
                codes.ARGUMENT_COUNT,
                node.span,
                f"`{word}` takes {function.arity} arguments{' or more' if function.variadic else ''}, {len(operands)} are given",
                help=f"`{function.signature}`",
            )
        kind = operands[0].kind
        for operand in operands[1:]:
            kind = promote(kind, operand.kind)
        if word in ("min", "max"):
            kind = self.wide_enough(kind, operands)
            values = [self.converted(o, kind) for o in operands]
            return self.elementwise(values, kind, lambda e: chained(word, e), node.span, context)
        if function.kind in ("numeric", "rounding") and not is_float(kind):
            kind = arithmetic(kind)
            if function.kind == "rounding":
                return self.converted(operands[0], kind)
        elif not is_float(kind):
            kind = Weak.FLOAT if kind is Weak.INT else DType.FLOAT32
        values = [self.converted(o, kind) for o in operands]
        if function.kind == "test":
            return self.elementwise(
                values, DType.BOOL, lambda e: Call(word, tuple(e), DType.BOOL, node.span), node.span, context
            )
        if word == "abs" and kind is Weak.INT:
            return self.elementwise(values, kind, lambda e: absolute(e[0]), node.span, context)
        return self.elementwise(
            values, kind, lambda e: Call(word, tuple(e), compute(kind), node.span), node.span, context
        )

    def structural(self, word: str, operands: list[Value], node: Apply[SacExpression], context: Context) -> Value:
        """The functions that make or look at shapes."""
        first = operands[0]
        match word:
            case "shape":
                return vector(first.shape)
            case "dim":
                return scalar(int64(first.rank), Weak.INT)
            case "sel":
                return self.selected(operands[1], self.components_or_scalar(first, node, context), node, context)
            case "take" | "drop":
                return self.taken(word, first, operands[1], node, context)
            case "sum" | "prod" | "minval" | "maxval":
                return self.reduced(word, first, node, context)
            case "reverse":
                return self.reversed(first, node, context)
            case "transpose":
                return self.transposed(first, context)
            case _:
                frame = self.components(first, node.arguments[0].span, context, "the frame of `genarray`")
                return self.filled(frame, operands[1], node, context)

    def components_or_scalar(self, found: Value, node: Apply[SacExpression], context: Context) -> tuple[Expr, ...]:
        """An index vector, or one component."""
        if found.rank == 0:
            return (self.index_of(found, node.arguments[0], context),)
        return self.components(found, node.arguments[0].span, context, "the index")

    def filled(self, frame: tuple[Expr, ...], element: Value, node: SacExpression, context: Context) -> Value:
        """`genarray(frame, element)`."""
        self.check_frame(frame, node.span)
        shape = (*(self.bound(extent, node.span) for extent in frame), *element.shape)
        self.check_rank(len(shape), node.span)
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes[len(frame) :])
        return Value(element.kind, shape, axes, self.element(element, at, context))

    def check_frame(self, frame: Sequence[Expr], span: Span) -> None:
        """Refuse negative extents of a result."""
        for axis, extent in enumerate(frame):
            if not is_nonnegative(extent, self.out.box):
                condition = fold(Binary(">=", extent, ZERO, DType.BOOL))
                self.require(
                    condition,
                    codes.NEGATIVE_SHAPE,
                    span,
                    f"axis {axis} of the result would have a negative extent",
                    ((f"extent {axis}", extent),),
                    help="extents are at least 0: limit it with `max(.., 0)`",
                )

    def check_rank(self, rank: int, span: Span) -> None:
        """Refuse more axes than any device takes."""
        if rank > MOST_RANK:
            self.refuse(
                codes.DEVICE_LIMIT,
                span,
                f"an array of rank {rank} is too large; at most {MOST_RANK} axes are possible",
                help="join axes: `a[i / m, i % m]` for one index `i`",
            )

    def taken(self, word: str, counts: Value, found: Value, node: Apply[SacExpression], context: Context) -> Value:
        """`take(v, a)` and `drop(v, a)`; a scalar counts as a vector of one component."""
        if counts.rank == 0:
            amounts = (self.index_of(counts, node.arguments[0], context),)
        else:
            amounts = self.components(counts, node.arguments[0].span, context, f"the first argument of `{word}`")
        if len(amounts) > found.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                node.span,
                f"`{word}` has {several(len(amounts), 'count')} for an array of rank {found.rank}",
                help=f"give at most one count for each axis; its shape is {self.shape_text(found.shape)}",
            )
        shape = list(found.shape)
        offsets: list[Expr] = [ZERO] * found.rank
        for axis, amount in enumerate(amounts):
            amount, extent = self.bound(amount, node.span), found.shape[axis]
            size = absolute(amount, self.out.box)
            if word == "take":
                condition = fold(Binary("<=", size, extent, DType.BOOL))
                self.require(
                    condition,
                    codes.SELECTION_OUT_OF_BOUNDS,
                    node.span,
                    f"`take` wants more elements than axis {axis} has",
                    (("wanted", size), ("present", extent)),
                    help=f"limit the count with `min(.., shape(a)[{axis}])`",
                )
                shape[axis] = size
                offsets[axis] = self.either_sign(amount, ZERO, sub(extent, size))
            else:
                shape[axis] = maximum((sub(extent, size), ZERO))
                offsets[axis] = self.either_sign(amount, size, ZERO)
        axes = self.axes(shape)
        at = tuple(add(IndexVar(axis), offset) for axis, offset in zip(axes, offsets, strict=True))
        extents = tuple(number_of(extent) for extent in shape)
        if found.items is not None and None not in extents:
            positions: list[tuple[Expr, ...]] = [()]
            for extent, offset in zip(extents, offsets, strict=True):
                positions = [(*p, add(offset, int64(k))) for p in positions for k in range(extent or 0)]
            return Value(found.kind, tuple(shape), items=tuple(self.element(found, p, context) for p in positions))
        if found.pieces is not None:
            found = self.stored(found, context)
        assert found.expr is not None or found.items is not None
        if found.expr is None:
            return Value(found.kind, tuple(shape), axes, self.element(found, at, context))
        return Value(found.kind, tuple(shape), axes, substitute(found.expr, dict(zip(found.axes, at, strict=True))))

    def either_sign(self, amount: Expr, positive: Expr, negative_: Expr) -> Expr:
        """`negative_` where `amount < 0`, else `positive`."""
        if is_nonnegative(amount, self.out.box):
            return positive
        if is_nonnegative(sub(int64(-1), amount), self.out.box):
            return negative_
        return fold(Select(fold(Binary("<", amount, ZERO, DType.BOOL)), negative_, positive, DType.INT64))

    def joined(self, left: Value, right: Value, span: Span, context: Context) -> Value:
        """`left ++ right` along the first axis."""
        if left.rank == 0 or left.rank != right.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                span,
                f"`++` joins arrays of equal rank, at least 1, and these have ranks {left.rank} and {right.rank}",
                help="write `[x]` for a vector of one element",
            )
        for axis in range(1, left.rank):
            self.require_equal(
                left.shape[axis],
                right.shape[axis],
                codes.SHAPE_MISMATCH,
                span,
                f"the operands of `++` differ in the extent of axis {axis}",
                (("left", left.shape[axis]), ("right", right.shape[axis])),
                help="`++` joins the first axis; all other extents must be equal",
            )
        kind = promote(left.kind, right.kind) if left.kind is not right.kind else left.kind
        for empty, other in ((left, right), (right, left)):
            if empty.items == () and isinstance(empty.kind, Weak):
                kind = other.kind
        left, right = self.converted(left, kind), self.converted(right, kind)
        shape = (add(left.shape[0], right.shape[0]), *left.shape[1:])
        if left.items is not None and right.items is not None:
            return Value(kind, shape, items=left.items + right.items)
        axes = self.axes(shape)
        pieces: list[Piece] = []
        for found, offset in ((left, ZERO), (right, left.shape[0])):
            for piece in self.as_pieces(found, context):
                pieces.append(self._shifted(piece, axes, offset, len(pieces), span))
        pieces = [piece for piece in pieces if not any(same(low, high) for low, high in piece.box)]
        return Value(kind, shape, pieces=tuple(pieces))

    def _shifted(self, piece: Piece, axes: tuple[str, ...], offset: Expr, number: int, span: Span) -> Piece:
        mapping: dict[str, Expr] = {old: IndexVar(new) for old, new in zip(piece.axes, axes, strict=True)}
        mapping[piece.axes[0]] = sub(IndexVar(axes[0]), offset)
        (low, high), *rest = piece.box
        box = ((add(low, offset), add(high, offset)), *rest)
        return Piece(axes, box, substitute(piece.expr, mapping), number, span, self.text(span))

    def reversed(self, found: Value, node: Apply[SacExpression], context: Context) -> Value:
        """`reverse(a)`: the first axis backwards."""
        if found.rank == 0:
            return found
        if found.items is not None:
            stride = len(found.items) // max(number_of(found.shape[0]) or 1, 1)
            rows = [found.items[k : k + stride] for k in range(0, len(found.items), max(stride, 1))]
            return replace(found, items=tuple(item for row in reversed(rows) for item in row))
        last = sub(found.shape[0], ONE)
        if found.pieces is not None:
            pieces = tuple(
                replace(
                    piece,
                    box=((sub(found.shape[0], piece.box[0][1]), sub(found.shape[0], piece.box[0][0])), *piece.box[1:]),
                    expr=substitute(piece.expr, {piece.axes[0]: sub(last, IndexVar(piece.axes[0]))}),
                )
                for piece in found.pieces
            )
            return replace(found, pieces=pieces)
        assert found.expr is not None
        axes = self.axes(found.shape)
        at = (sub(last, IndexVar(axes[0])), *(IndexVar(axis) for axis in axes[1:]))
        return replace(found, axes=axes, expr=substitute(found.expr, dict(zip(found.axes, at, strict=True))))

    def transposed(self, found: Value, context: Context) -> Value:
        """`transpose(a)`: the axes in reverse order."""
        shape = tuple(reversed(found.shape))
        if found.rank < 2:
            return found
        if found.pieces is not None:
            pieces = tuple(replace(p, axes=p.axes[::-1], box=p.box[::-1]) for p in found.pieces)
            return replace(found, shape=shape, pieces=pieces)
        if found.items is not None:
            axes = self.axes(shape)
            at = tuple(IndexVar(axis) for axis in reversed(axes))
            flat = Value(found.kind, shape, axes, self.element(found, at, context))
            return replace(flat, items=self.items(flat, context), axes=(), expr=None)
        return replace(found, shape=shape, axes=found.axes[::-1])
