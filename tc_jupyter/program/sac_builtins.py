"""Operators and built-in functions of `%%sac` on values that are not computed yet.

Worked example: `take([1], v) ++ drop([1], v)` becomes two boxes of one array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from math import prod

from tc_jupyter.diagnostics import Span, codes
from tc_jupyter.syntax.sac_printer import sac_to_text
from tc_jupyter.syntax.sac_tree import Apply, SacExpression

from . import bits
from .expr import COMPARISONS, TURNED, Binary, Call, Const, DType, Expr, IndexVar, Select, int64
from .functions import FUNCTIONS
from .integers import index_names
from .sac_emit import negate, zero
from .sac_helpers import chained, is_literal, negative, several, still_wide
from .sac_selection import Selections
from .sac_sizes import (
    ONE,
    ZERO,
    absolute,
    add,
    floordiv,
    fold,
    is_nonnegative,
    maximum,
    modulo,
    mul,
    quotient,
    remainder,
    same,
    sub,
    substitute,
)
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
    narrows,
    promote,
    scalar,
    storage,
    vector,
    weight,
)
from .sac_work import MOST_ITEMS, MOST_PIECES, MOST_RANK, MOST_REPEATED, Context
from .typing import common, holds, smallest_integer, unsigned_comparison


def wide_enough(dtype: DType, number: int) -> DType:
    """An integer type, or a wider one where a number does not fit."""
    return dtype if dtype.limits[0] <= number <= dtype.limits[1] else common(dtype, smallest_integer(number))


def loses(found: Value, kind: Kind) -> bool:
    """Whether an integer may become another number in the type of a comparison."""
    if not isinstance(kind, DType) or found.kind is kind:
        return False
    if found.kind is Weak.INT:
        return not all(map(partial(is_held, dtype=kind), _parts(found)))
    return narrows(found.kind, kind)


def is_held(expr: Expr | None, dtype: DType) -> bool:
    """Whether a weak integer is one of a type."""
    return dtype is DType.INT64 if not isinstance(expr, Const) else holds(int(expr.value), dtype)


def compared_in(found: Value) -> DType:
    """The type of 64 bits that holds an operand of a comparison."""
    beyond = any(isinstance(part, Const) and not is_held(part, DType.INT64) for part in _parts(found))
    return DType.UINT64 if found.kind is DType.UINT64 or beyond else DType.INT64


def _parts(found: Value) -> Sequence[Expr | None]:
    return (found.expr,) if found.items is None else found.items


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
        if op in COMPARISONS:
            return self.compared(op, operands, node, context)
        kind = self.common_kind(operands)
        kind = arithmetic(kind)
        left, right = (self.converted(o, kind) for o in operands)
        if op in ("/", "%", "mod"):
            return self.divided(op, left, right, kind, node, context)
        return self.elementwise(
            [left, right],
            kind,
            lambda e: still_wide(fold(Binary(op, e[0], e[1], compute(kind), node.span)), e, node.span),
            node.span,
            context,
        )

    def compared(self, op: str, operands: list[Value], node: SacExpression, context: Context) -> Value:
        """A comparison; of integers that no common type holds, as `uint64` and -1, it compares the numbers."""
        kind = self.common_kind(operands)
        if kind is DType.BOOL and op not in ("==", "!="):
            kind = DType.INT32
        if all(is_integer(operand.kind) for operand in operands) and any(loses(each, kind) for each in operands):
            return self.numbers_compared(op, operands, node, context)
        left, right = (self.converted(o, kind) for o in operands)
        make: Callable[[list[Expr]], Expr] = lambda e: fold(Binary(op, e[0], e[1], DType.BOOL, node.span))  # noqa: E731
        return self.elementwise([left, right], DType.BOOL, make, node.span, context)

    def numbers_compared(self, op: str, operands: list[Value], node: SacExpression, context: Context) -> Value:
        """A comparison of integers in 64 bits, each with its own sign."""
        kinds = [compared_in(each) for each in operands]
        left, right = (
            self.light(self.converted(each, kind), context) for each, kind in zip(operands, kinds, strict=True)
        )

        def make(e: list[Expr]) -> Expr:
            if kinds[0] is kinds[1]:
                return fold(Binary(op, e[0], e[1], DType.BOOL, node.span))
            if kinds[0] is DType.UINT64:
                return unsigned_comparison(op, e[0], e[1], node.span)
            return unsigned_comparison(TURNED[op], e[1], e[0], node.span)

        return self.elementwise([left, right], DType.BOOL, make, node.span, context)

    def divided(self, op: str, left: Value, right: Value, kind: Kind, node: SacExpression, context: Context) -> Value:
        """`/` and `%` are those of C: toward zero, with the sign of the dividend; `mod` belongs to the quotient rounded down."""
        if op == "/" and not is_integer(kind):
            make: Callable[[list[Expr]], Expr] = lambda e: Binary("/", e[0], e[1], compute(kind), node.span)  # noqa: E731
        elif op == "mod":
            make = lambda e: fold(Binary("%", e[0], e[1], compute(kind), node.span))  # noqa: E731
        elif not is_integer(kind):
            make = lambda e: Call("fmod", tuple(e), compute(kind), node.span)  # noqa: E731
        else:
            exact = quotient if op == "/" else remainder
            left, right = self.light(left, context), self.light(right, context)
            make = lambda e: exact(e[0], e[1], self.out.box)  # noqa: E731
        return self.elementwise([left, right], kind, make, node.span, context)

    def light(self, found: Value, context: Context) -> Value:
        """The value, stored where its expression is large: for one that is to be used twice."""
        parts = found.items or ((found.expr,) if found.expr is not None else [p.expr for p in found.pieces or ()])
        return self.stored(found, context) if any(weight(part) > MOST_REPEATED for part in parts) else found

    def common_kind(self, operands: Sequence[Value]) -> Kind:
        """The kind that operands have in common, or a wider one where a literal does not fit."""
        kind = reduce(promote, (operand.kind for operand in operands))
        if not isinstance(kind, DType) or not kind.is_integer:
            return kind
        numbers = [n for o in operands if o.kind is Weak.INT for n in (o.expr, *(o.items or ())) if is_literal(n)]
        return reduce(wide_enough, (int(number.value) for number in numbers), kind)

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
        kind = self.common_kind(operands)
        if word in ("min", "max"):
            values = [self.converted(o, kind) for o in operands]
            return self.elementwise(values, kind, lambda e: chained(word, e), node.span, context)
        if function.kind in ("numeric", "rounding") and not is_float(kind):
            kind = arithmetic(kind)
            if function.kind == "rounding":
                return self.converted(operands[0], kind)
        elif not is_float(kind):
            kind = Weak.FLOAT if kind is Weak.INT else DType.FLOAT32
        if function.kind == "bits":
            return self.ones(word, operands[0], node, context)
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

    def ones(self, word: str, operand: Value, node: Apply[SacExpression], context: Context) -> Value:
        """`popcount` of integers."""
        if is_float(operand.kind):
            message = f"`{word}` takes integers, not `{kind_text(operand.kind)}`"
            self.refuse(
                codes.TYPE_MISMATCH, node.span, message, help="cast it, as in `toi(x)`, which cuts off the fraction"
            )
        values = [self.converted(operand, storage(arithmetic(operand.kind)))]
        return self.elementwise(values, DType.INT32, lambda e: bits.counted(e[0], node.span), node.span, context)

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
            case "sum" | "prod" | "minval" | "maxval" | "all" | "any":
                return self.reduced(word, first, node, context)
            case "reverse":
                return self.reversed(first, node, context)
            case "transpose":
                return self.transposed(first, context)
            case "iota":
                count = self.bound(self.index_of(first, node.arguments[0], context), node.span)
                (count,) = self.frame((count,), node.span, context)
                axes = self.axes((count,))
                return Value(Weak.INT, (count,), axes, IndexVar(axes[0]))
            case "where":
                return self.masked(operands, node, context)
            case "reshape":
                return self.reshaped(first, operands[1], node, context)
            case "tile":
                return self.tiled(operands, node, context)
            case "rotate" | "shift":
                return self.moved(word, operands, node, context)
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
        frame = self.frame(tuple(self.bound(extent, node.span) for extent in frame), node.span, context)
        shape = (*frame, *element.shape)
        self.check_rank(len(shape), node.span)
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes[len(frame) :])
        return Value(element.kind, shape, axes, self.element(element, at, context))

    def frame(
        self, extents: Sequence[Expr], span: Span, context: Context, help: str = "limit it with `max(.., 0)`"
    ) -> tuple[Expr, ...]:
        """The extents of a result, refused where one is negative; inside of loops that are empty nothing is, and they are 0."""
        idle = self.out.idle(context.indices)
        found: list[Expr] = []
        for axis, extent in enumerate(extents):
            if is_nonnegative(extent, self.out.box):
                found.append(extent)
                continue
            found.append(maximum((extent, ZERO)) if idle and not index_names(extent) else extent)
            condition = fold(Binary(">=", extent, ZERO, DType.BOOL))
            for low, high in idle:
                condition = fold(Binary("||", condition, fold(Binary(">=", low, high, DType.BOOL)), DType.BOOL))
            self.require(
                condition,
                codes.NEGATIVE_SHAPE,
                span,
                f"axis {axis} of the result would have a negative extent",
                ((f"extent {axis}", extent),),
                help=f"extents are at least 0: {help}",
            )
        return tuple(found)

    def check_rank(self, rank: int, span: Span) -> None:
        """Refuse more axes than any device takes."""
        if rank > MOST_RANK:
            self.refuse(
                codes.DEVICE_LIMIT,
                span,
                f"an array of rank {rank} is too large; at most {MOST_RANK} axes are possible",
                help="join axes: `a[i / m, i % m]` for one index `i`",
            )

    def masked(self, operands: list[Value], node: Apply[SacExpression], context: Context) -> Value:
        """`where(mask, a, b)`: element by element `a` where the mask holds, else `b`."""
        mask, left, right = operands
        if mask.kind is not DType.BOOL:
            self.refuse(
                codes.TYPE_MISMATCH,
                node.arguments[0].span,
                f"the mask is `{kind_text(mask.kind)}`, not `bool`",
                help="compare, for example `a > 0`",
            )
        kind = self.common_kind((left, right))
        left, right = self.converted(left, kind), self.converted(right, kind)
        make: Callable[[list[Expr]], Expr] = lambda e: fold(Select(e[0], e[1], e[2], e[1].dtype, node.span))  # noqa: E731
        return self.elementwise([mask, left, right], kind, make, node.span, context)

    def rest_help(self, extents: Sequence[int | None], node: Apply[SacExpression]) -> str:
        """What helps for a negative extent of `reshape`: -1 stands for the rest of the elements in NumPy."""
        others = [each for each in extents if each != -1]
        if len(others) != len(extents) - 1 or any(each is not None and each < 1 for each in others):
            return "limit it with `max(.., 0)`"
        rest = f" / {'..' if None in others else prod(each for each in others if each)}" if others else ""
        return f"write `prod(shape({sac_to_text(node.arguments[1])})){rest}` for the -1"

    def reshaped(self, wanted: Value, found: Value, node: Apply[SacExpression], context: Context) -> Value:
        """`reshape(shape, a)`: the elements of `a` in their order, in another shape."""
        shape = self.components(wanted, node.arguments[0].span, context, "the shape of `reshape`")
        bounds = tuple(self.bound(extent, node.span) for extent in shape)
        help = self.rest_help([number_of(extent) for extent in bounds], node)
        shape = self.frame(bounds, node.span, context, help)
        self.check_rank(len(shape), node.span)
        counts = [reduce(mul, extents, ONE) for extents in (shape, found.shape)]
        self.require_equal(
            counts[0],
            counts[1],
            codes.SHAPE_MISMATCH,
            node.span,
            "`reshape` keeps the number of elements",
            (("wanted", counts[0]), ("present", counts[1])),
            help="the product of the shape must be that of `shape(a)`",
        )
        if found.items is not None and None not in [number_of(extent) for extent in shape]:
            return Value(found.kind, shape, items=found.items)
        axes = self.axes(shape)
        same_rows = 0  # leading axes that stay
        for a, b in zip(shape, found.shape, strict=False):
            if not same(a, b):
                break
            same_rows += 1
        at: list[Expr] = [IndexVar(axis) for axis in axes[:same_rows]]
        place: Expr = ZERO
        for axis, extent in zip(axes[same_rows:], shape[same_rows:], strict=True):
            place = add(mul(place, extent), IndexVar(axis))
        rest = found.shape[same_rows:]
        if len(rest) > 1 and None in [number_of(extent) for extent in (*rest, *shape[same_rows:])]:
            self.demand(place)  # quotients by products of sizes: the numbers make them simple
        for position, _ in enumerate(rest):
            inner = reduce(mul, rest[position + 1 :], ONE)
            whole = floordiv(place, inner) if not same(inner, ONE) else place
            at.append(whole if position == 0 else modulo(whole, rest[position]))
        return Value(found.kind, shape, axes, self.element(found, tuple(at), context))

    def tiled(self, operands: list[Value], node: Apply[SacExpression], context: Context) -> Value:
        """`tile(shape, offset, a)`: the part of `a` that begins at `offset`; axes behind the vectors are whole."""
        sizes, starts = (
            self.components(operand, written.span, context, f"the {word} of `tile`")
            for operand, written, word in zip(operands, node.arguments, ("shape", "offset"), strict=False)
        )
        found = operands[2]
        if len(sizes) != len(starts) or len(sizes) > found.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                node.span,
                f"`tile` has {several(len(sizes), 'extent')} and {several(len(starts), 'offset')}, and the array rank {found.rank}",
                help="give as many offsets as extents, at most one for each axis",
            )
        shape = list(found.shape)
        offsets: list[Expr] = [ZERO] * found.rank
        for axis, (size, start) in enumerate(zip(sizes, starts, strict=True)):
            shape[axis], offsets[axis] = self.bound(size, node.span), self.bound(start, node.span)
            end = add(offsets[axis], shape[axis])
            inside = fold(Binary("<=", end, found.shape[axis], DType.BOOL))
            inside = fold(Binary("&&", fold(Binary(">=", offsets[axis], ZERO, DType.BOOL)), inside, DType.BOOL))
            self.require(
                inside,
                codes.SELECTION_OUT_OF_BOUNDS,
                node.span,
                f"`tile` leaves axis {axis}",
                (("the begin", offsets[axis]), ("the end", end), ("the extent", found.shape[axis])),
                help=f"limit it with `min(.., shape(a)[{axis}])`",
            )
        shape[: len(sizes)] = self.frame(shape[: len(sizes)], node.span, context)
        axes = self.axes(shape)
        at = tuple(add(IndexVar(axis), offset) for axis, offset in zip(axes, offsets, strict=True))
        return self.viewed(found, tuple(shape), axes, at, context)

    def viewed(
        self, found: Value, shape: tuple[Expr, ...], axes: tuple[str, ...], at: tuple[Expr, ...], context: Context
    ) -> Value:
        """The elements of `found` at positions that certainly are inside."""
        extents = [number_of(extent) for extent in shape]
        count = prod(extent for extent in extents if extent is not None)
        if found.items is not None and None not in extents and count <= max(MOST_ITEMS, len(found.items)):
            spots = product(*(range(extent or 0) for extent in extents))
            places = [dict(zip(axes, map(int64, spot), strict=True)) for spot in spots]
            items = tuple(self.element(found, tuple(substitute(e, place) for e in at), context) for place in places)
            return Value(found.kind, shape, items=items)
        if found.pieces is not None:
            found = self.stored(found, context)
        if found.expr is None:
            return Value(found.kind, shape, axes, self.element(found, at, context))
        return Value(found.kind, shape, axes, substitute(found.expr, dict(zip(found.axes, at, strict=True))))

    def moved(self, word: str, operands: list[Value], node: Apply[SacExpression], context: Context) -> Value:
        """`rotate` and `shift`: every element goes to a higher index by the count of its axis, to a lower one if it is negative."""
        found = operands[-1]
        counts = self.moves(word, operands, node, context)
        axes = self.axes(found.shape)
        plain = tuple(IndexVar(axis) for axis in axes)
        if word == "rotate":
            at = tuple(
                index if count is None else modulo(sub(index, count), extent)
                for index, count, extent in zip(plain, counts, found.shape, strict=True)
            )
            return self.viewed(found, found.shape, axes, at, context)
        boundary = scalar(zero(compute(found.kind)), found.kind)
        if len(operands) > 2:
            boundary = self.scalar_of(operands[-2], node.arguments[-2], context)
        kind = self.common_kind((found, boundary))
        found, boundary = self.converted(found, kind), self.converted(boundary, kind)
        at = tuple(index if count is None else sub(index, count) for index, count in zip(plain, counts, strict=True))
        inside: Expr = Const(True, DType.BOOL)
        for source, count, extent in zip(at, counts, found.shape, strict=True):
            if count is not None:
                for test in (Binary("<=", ZERO, source, DType.BOOL), Binary("<", source, extent, DType.BOOL)):
                    inside = fold(Binary("&&", inside, fold(test), DType.BOOL))
        if found.items is not None:
            spots = list(product(*(range(extent) for extent in found.extents or ())))
            items: list[Expr] = []
            for spot in spots:
                place: dict[str, Expr] = dict(zip(axes, map(int64, spot), strict=True))
                test, source = substitute(inside, place), tuple(substitute(e, place) for e in at)
                items.append(self._chosen_item(test, found, source, boundary, context))
            return Value(kind, found.shape, items=tuple(items))
        return Value(kind, found.shape, axes, self._chosen_item(inside, found, at, boundary, context))

    def _chosen_item(self, test: Expr, found: Value, at: tuple[Expr, ...], boundary: Value, context: Context) -> Expr:
        rest = self.element(boundary, (), context)
        if isinstance(test, Const):
            return self.element(found, at, context) if test.value else rest
        element = self.element(found, at, context)
        return fold(Select(test, element, rest, element.dtype))

    def moves(
        self, word: str, operands: list[Value], node: Apply[SacExpression], context: Context
    ) -> list[Expr | None]:
        """By how much `rotate` or `shift` moves each axis; `None` where it does not."""
        found = operands[-1]
        by_axis = len(operands) == (3 if word == "rotate" else 4)
        if not by_axis:
            written = node.arguments[0]
            counts = self.components(operands[0], written.span, context, f"the counts of `{word}`")
            if len(counts) > found.rank:
                self.refuse(
                    codes.RANK_MISMATCH,
                    node.span,
                    f"`{word}` has {several(len(counts), 'count')} for an array of rank {found.rank}",
                    help=f"give at most one count for each axis; its shape is {self.shape_text(found.shape)}",
                )
            return [*counts, *(None for _ in range(found.rank - len(counts)))]
        count = self.index_of(operands[1], node.arguments[1], context)
        axis = number_of(self.index_of(operands[0], node.arguments[0], context))
        if axis is None:
            self.demand(self.index_of(operands[0], node.arguments[0], context))
            help = "pass it as an argument, or write a number"
            self.refuse(
                codes.WHERE_NOT_SIZE,
                node.arguments[0].span,
                f"the axis of `{word}` depends on computed data",
                help=help,
            )
        if not 0 <= axis < found.rank:
            self.refuse(
                codes.RANK_MISMATCH,
                node.arguments[0].span,
                f"`{word}` moves axis {axis} of an array of rank {found.rank}",
                help=f"axes are counted from 0; the shape is {self.shape_text(found.shape)}",
            )
        return [count if k == axis else None for k in range(found.rank)]

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
        kind = self.common_kind((left, right))
        for empty, other in ((left, right), (right, left)):
            if empty.items == () and isinstance(empty.kind, Weak):
                kind = other.kind
        left, right = self.converted(left, kind), self.converted(right, kind)
        shape = (add(left.shape[0], right.shape[0]), *left.shape[1:])
        if left.items is not None and right.items is not None:
            return Value(kind, shape, items=left.items + right.items)
        if len(left.pieces or ()) + len(right.pieces or ()) > MOST_PIECES:  # joining what was joined doubles them
            left, right = (each if each.pieces is None else self.stored(each, context) for each in (left, right))
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
