"""With-loops: `genarray`, `modarray`, `fold`.

Worked example: `with { ([0] <= iv < [10]) : iv[0]; } : fold(+, 0)` becomes one reduction statement.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from tc_jupyter.diagnostics import codes, nearest
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_printer import signature_text
from tc_jupyter.syntax.sac_tree import (
    Dot,
    Generator,
    PartitionClause,
    Pattern,
    SacFunction,
    WithGenerator,
    WithLoop,
)
from tc_jupyter.syntax.tree import Name

from .expr import DType, Expr, IndexVar, Read, int64, rewrite, walk
from .integers import index_names
from .program import FOLD_LEFT, FOLD_RIGHT
from .sac_comprehensions import Comprehensions
from .sac_emit import identity, zero
from .sac_helpers import component_names, is_zero_like, known_operator, ordered_box, several
from .sac_sizes import ONE, ZERO, Interval, add, floordiv, maximum, mul, same, sub
from .sac_sizes import value as number_of
from .sac_values import Kind, Piece, Value, Weak, arithmetic, compute, convert, kind_text, promote, scalar
from .sac_work import MOST_PIECES, Context, Env, Part, Refused


class WithLoops(Comprehensions):
    """With-loops."""

    def with_loop(self, node: WithLoop, env: Env, context: Context) -> Value:
        """A with-loop by its operator."""
        match node.operator:
            case "genarray":
                return self.genarray(node, env, context)
            case "modarray":
                return self.modarray(node, env, context)
            case _:
                return self.fold(node, env, context)

    def genarray(self, node: WithLoop, env: Env, context: Context) -> Value:
        """`genarray(frame, default)`."""
        written = node.arguments[0]
        shape_value = self.expr(written, env, context)
        if shape_value.rank == 0:
            frame = (self.index_of(shape_value, written, context),)
        else:
            frame = self.components(shape_value, written.span, context, "the frame of `genarray`")
        frame = self.frame(tuple(self.bound(extent, written.span) for extent in frame), written.span, context)
        default = self.expr(node.arguments[1], env, context) if len(node.arguments) > 1 else None
        if not node.generators and default is None:
            default = scalar(ZERO, Weak.INT)
        parts = self.with_parts(node, frame, default.shape if default is not None else None, env, context)
        inner = default.shape if default is not None else tuple(high for _, high in parts[0].box[len(frame) :])
        shape = (*frame, *inner)
        self.check_rank(len(shape), node.span)
        if default is None:
            filler = Value(parts[0].kind, shape, self.axes(shape), zero(compute(parts[0].kind)))
        else:
            filler = self.filled(frame, default, node, context)
        return self.assembled(parts, shape, filler, node, context) if parts else filler

    def modarray(self, node: WithLoop, env: Env, context: Context) -> Value:
        """`modarray(array)`: shape and default elements of `array`."""
        array = self.expr(node.arguments[0], env, context)
        if not node.generators:
            return array
        length = self.with_length(node.generators[0], array.rank, env, context)
        if length > array.rank:
            self.refuse(
                codes.BOUND_LENGTH,
                node.generators[0].generator.span,
                f"the bounds have {several(length, 'component')} and the array rank {array.rank}",
                help=f"give at most {several(array.rank, 'component')}",
            )
        parts = self.with_parts(node, array.shape[:length], array.shape[length:], env, context)
        return self.assembled(parts, array.shape, array, node, context)

    def with_length(self, generator: WithGenerator, default: int, env: Env, context: Context) -> int:
        """The length of the index of a generator."""
        if not generator.pattern.vector:
            return len(generator.pattern.names)
        for bound in (generator.generator.lower, generator.generator.upper):
            found = self.generator_bound(bound, env, context)
            if found is not None:
                return len(found)
        return default

    def with_parts(
        self,
        node: WithLoop,
        frame: tuple[Expr, ...] | None,
        inner: tuple[Expr, ...] | None,
        env: Env,
        context: Context,
    ) -> list[Part]:
        """All generators of a with-loop."""
        parts: list[Part] = []
        refused = False
        for number, generator in enumerate(node.generators):
            try:
                for offsets in self.offsets(generator, frame, env, context):
                    part = self.with_part(generator, number, frame, inner, env, context, offsets)
                    inner = inner if inner is not None else tuple(high for _, high in part.box[len(part.named) :])
                    parts.append(part)
            except Refused:
                refused = True
        if refused:
            raise Refused
        return parts

    def offsets(
        self, generator: WithGenerator, frame: tuple[Expr, ...] | None, env: Env, context: Context
    ) -> list[tuple[int, ...] | None]:
        """Of a fold with steps: the first positions of its grids, relative to the lower bound; else one `None`."""
        bounds = generator.generator
        if frame is not None or bounds.step is None:
            return [None]
        steps = self.steps(bounds, len(self.with_bounds(bounds, None, env, context)[0]), env, context)
        assert steps is not None
        widths: list[int] = []
        for width in steps[1]:
            number = number_of(width)
            if number is None:
                self.demand(width)
                self.refuse(
                    codes.WHERE_NOT_SIZE, bounds.span, "`width` depends on computed data", help="pass it as an argument"
                )
            widths.append(number)
        if prod(widths) > MOST_PIECES:
            help = "use a smaller `width`, or `step 1` and a condition in the body"
            self.refuse(
                codes.DEVICE_LIMIT, bounds.span, f"a fold has grids of at most {MOST_PIECES} positions", help=help
            )
        return list(product(*(range(width) for width in widths)))

    def with_part(
        self,
        generator: WithGenerator,
        number: int,
        frame: tuple[Expr, ...] | None,
        inner: tuple[Expr, ...] | None,
        env: Env,
        context: Context,
        offsets: tuple[int, ...] | None = None,
    ) -> Part:
        """One generator of a with-loop."""
        bounds = generator.generator
        lows, highs = self.with_bounds(bounds, frame, env, context)
        pattern = generator.pattern
        length = len(lows) if frame is None else len(frame)
        if not pattern.vector and len(pattern.names) != length:
            given, needed = several(len(pattern.names), "index", "indices"), several(length, "axis", "axes")
            self.refuse(
                codes.BOUND_LENGTH,
                pattern.span,
                f"the generator names {given} and its array has {needed} here",
                help=f"name {length}, or one vector `iv`",
            )
        for bound, written in ((lows, bounds.lower), (highs, bounds.upper)):
            if len(bound) != length and written is not None:
                self.refuse(
                    codes.BOUND_LENGTH,
                    written.span,
                    f"the bound has {several(len(bound), 'component')} and the index {length}",
                    help=f"give {several(length, 'component')}",
                )
        names = component_names(pattern.names[0].name, length) if pattern.vector else [n.name for n in pattern.names]
        steps = self.steps(bounds, length, env, context) if offsets is not None else None
        begins = lows
        if steps is not None and offsets is not None:  # position `lower + offset + step*k` for the index `k`
            begins = tuple(add(low, int64(offset)) for low, offset in zip(lows, offsets, strict=True))
            rooms = (sub(high, begin) for high, begin in zip(highs, begins, strict=True))
            counts = (floordiv(add(room, sub(step, ONE)), step) for room, step in zip(rooms, steps[0], strict=True))
            lows, highs = (ZERO,) * length, tuple(maximum((count, ZERO)) for count in counts)
        indices = tuple(
            self.out.fresh(name, interval) for name, interval in zip(names, zip(lows, highs, strict=True), strict=True)
        )
        variables: list[Expr] = [IndexVar(index) for index in indices]
        if steps is not None:
            variables = [add(b, mul(s, v)) for b, s, v in zip(begins, steps[0], variables, strict=True)]
        local = self.bind_indices(pattern, variables, env)
        drafts_from = len(self.out.drafts)
        grid = self.on_grid(bounds, indices, lows, env, context) if steps is None else None
        within = self.within(context, indices, grid)
        self.assigned(generator.assigns, (generator.body,), local, within)
        body = self.expr(generator.body, local, within)
        clause = PartitionClause(pattern, generator.body, bounds, generator.span)
        self.check_body_shape(clause, body, indices)
        if inner is not None and len(inner) != body.rank:
            self.refuse(
                codes.SHAPE_MISMATCH,
                generator.body.span,
                f"the body has shape {self.shape_text(body.shape)}, the other elements {self.shape_text(inner)}",
                help="the bodies of all generators and the default element need one shape",
            )
        flat = replace(clause, pattern=Pattern((Name("_"),), True))
        result = None if frame is None else (*frame, *(inner if inner is not None else body.shape))
        return self.placed(flat, number, result, indices, lows, highs, body, drafts_from, within, grid)

    def with_bounds(
        self, bounds: Generator, frame: tuple[Expr, ...] | None, env: Env, context: Context
    ) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Both bounds in the form `lower <= iv < upper`; `.` needs a frame."""
        if frame is None:
            for bound in (bounds.lower, bounds.upper):
                if isinstance(bound, Dot):
                    self.refuse(
                        codes.DOT_IN_LAST,
                        bound.span,
                        "`.` is not allowed with `fold`",
                        help="a fold has no shape that it could stand for: write the bound",
                    )
        lows = self.generator_bound(bounds.lower, env, context)
        highs = self.generator_bound(bounds.upper, env, context)
        shape = frame or ()
        if lows is None:
            lows = (ZERO,) * len(shape)
        elif bounds.lower_relation == "<":
            lows = tuple(add(low, ONE) for low in lows)
        if isinstance(bounds.lower, Dot) and bounds.lower_relation == "<":
            lows = (ONE,) * len(shape)
        if highs is None:
            highs = shape
        elif bounds.upper_relation == "<=":
            highs = tuple(add(high, ONE) for high in highs)
        return lows, highs

    def fold(self, node: WithLoop, env: Env, context: Context) -> Value:
        """`fold(op, neutral)`: every position counts once, for the first generator that covers it."""
        neutral = self.expr(node.arguments[0], env, context)
        parts = self.with_parts(node, None, neutral.shape, env, context)
        if not parts:
            return neutral
        kind = neutral.kind
        for part in parts:
            kind = promote(kind, part.kind) if part.kind is not kind else kind
        counts = {len(part.named) for part in parts}
        if len(counts) > 1:
            self.refuse(
                codes.BOUND_LENGTH,
                node.span,
                "the generators of a fold have indices of different lengths",
                help="give all bounds one length",
            )
        (count,) = counts
        operator, kind, combine = self.fold_operator(node, kind, neutral.shape, context)
        start = self.converted(neutral, kind)
        pieces: list[Piece] = []
        cuts: list[tuple[Interval, ...]] = []
        for part in parts:
            dependent = any(index_names(bound) for interval in part.box for bound in interval)
            alone = dependent or any(g.generator.step is not None for g in node.generators)
            if alone and len(node.generators) > 1:
                what = "bounds that depend on an outer index" if dependent else "`step`"
                self.refuse(
                    codes.INHOMOGENEOUS,
                    node.span,
                    f"a fold with several generators takes no {what}",
                    help="use one fold per generator",
                )
            domain = [part.box] if alone else self.domain(ordered_box(part.box), cuts, MOST_PIECES, node.span)
            cuts.append(ordered_box(part.box))
            pieces += (
                self.pieces_of(part, domain, kind)
                if not dependent
                else [replace(p, expr=convert(p.expr, part.kind, kind)) for p in part.bodies]
            )
        if not start.rank:
            return self.combined(
                operator, pieces, count, kind, self.element(start, (), context), combine, node, context, "fold"
            )
        stored = self.stored(start, context)
        axes = self.axes(start.shape)
        content = self.element(stored, tuple(IndexVar(a) for a in axes), context)
        return self._fold_arrays(operator, pieces, count, kind, content, axes, combine, node, context, start.shape)

    def _fold_arrays(
        self,
        operator: str,
        pieces: list[Piece],
        count: int,
        kind: Kind,
        content: Expr,
        axes: tuple[str, ...],
        combine: Expr | None,
        node: WithLoop,
        context: Context,
        shape: tuple[Expr, ...],
    ) -> Value:
        """A fold of arrays: element by element, the neutral array first."""
        if is_zero_like(content, operator):
            return self.combined(
                operator, pieces, count, kind, identity(operator, compute(kind)), combine, node, context, "fold", shape
            )
        first = Piece((self.out.fresh("z", (ZERO, ONE)), *axes), ((ZERO, ONE), *((ZERO, e) for e in shape)), content)
        if combine is None:
            widened = [replace(p, axes=p.axes) for p in pieces]
            one = replace(
                first,
                axes=(*(self.out.fresh("z", (ZERO, ONE)) for _ in range(count)), *axes),
                box=(*((ZERO, ONE) for _ in range(count)), *((ZERO, e) for e in shape)),
            )
            return self.combined(
                operator,
                [one, *widened],
                count,
                kind,
                identity(operator, compute(kind)),
                None,
                node,
                context,
                "fold",
                shape,
            )
        self.refuse(
            codes.SHAPE_MISMATCH,
            node.arguments[0].span,
            "a fold with a function of the cell combines scalars",
            help="fold each element: put the fold inside a comprehension",
        )

    def fold_operator(
        self, node: WithLoop, kind: Kind, shape: tuple[Expr, ...], context: Context
    ) -> tuple[str, Kind, Expr | None]:
        """The reduction operator, the type in which it combines, and the combining expression of other functions.

        Args:
            shape: of what is combined.
        """
        assert node.function is not None
        name = node.function.name
        if name in ("&&", "||"):
            if kind is not DType.BOOL:
                self.refuse(
                    codes.TYPE_MISMATCH,
                    node.span,
                    f"`fold({name}, ..)` combines `bool`, and this is `{kind_text(kind)}`",
                    help="compare, for example `x != 0`",
                )
            return ("min" if name == "&&" else "max"), kind, None
        strong = kind if name in ("min", "max") else arithmetic(kind)
        user = self.own_function(name, self.sides(strong, shape))
        if user is None and name in ("+", "*", "min", "max"):
            return name, strong, None
        if user is None:
            if name in self.cell.functions:
                self.refuse(
                    codes.DECLARED_TYPE,
                    node.function.span,
                    f"no definition of `{name}` takes two {'arrays' if shape else 'scalars'} of type `{kind_text(kind)}`",
                    help=f"it is defined as {'; '.join(f'`{signature_text(f)}`' for f in self.cell.functions[name])}",
                )
            near = nearest(name, self.cell.functions)
            self.refuse(
                codes.UNKNOWN_NAME,
                node.function.span,
                f"`{name}` cannot be folded with: it is none of `+ * min max && ||` and no function of the cell",
                help=f"did you mean `{near}`?" if near else "write a function of two scalars in this cell",
            )
        return self.user_fold(user, strong, shape, node)

    def sides(self, kind: Kind, shape: tuple[Expr, ...]) -> tuple[Value, Value]:
        """What a function that is folded with combines."""
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes)
        left, right = (Value(kind, shape, axes, Read(side, at, compute(kind))) for side in (FOLD_LEFT, FOLD_RIGHT))
        return left, right

    def user_fold(
        self, user: SacFunction, kind: Kind, shape: tuple[Expr, ...], node: WithLoop
    ) -> tuple[str, Kind, Expr | None]:
        """A fold with a function of the cell on scalars, or on arrays that it combines element by element."""
        assert node.function is not None
        type_ = user.types[0]
        kind = DType(BASES[type_.base]) if type_ is not None else kind
        is_closed = type_ is None or all(
            each.type is not None and BASES[each.type.base] == BASES[type_.base] for each in user.params
        )
        before = len(self.out.drafts)
        found = self.call(user, self.sides(kind, shape), node.function.span, Context())
        fits = found.rank == len(shape) and all(map(same, found.shape, shape))
        is_alone = fits and len(self.out.drafts) == before  # no statements for its body
        is_closed &= found.kind is kind
        expr = _combining(found) if is_alone and is_closed else None
        if expr is None and shape and is_closed:
            name = user.name.name
            self.refuse(
                codes.SHAPE_MISMATCH,
                node.function.span,
                f"a fold combines arrays element by element, and `{name}` needs more than the two elements of a place",
                help=f"combine them in a loop, `for (i = 0; i < n; i++) {{ r = {name}(r, x[i]); }}`",
            )
        if expr is None:
            self.refuse(
                codes.DECLARED_TYPE,
                node.function.span,
                f"`{user.name.name}` must take two {'arrays' if shape else 'scalars'} and return one of the same type",
                help="its body may not contain comprehensions" if is_closed else None,
            )
        left, right = (Read(side, (), compute(kind)) for side in (FOLD_LEFT, FOLD_RIGHT))
        known = known_operator(expr, left, right)
        return (known, kind, None) if known else ("fold", kind, expr)


def _combining(found: Value) -> Expr | None:
    """What makes an element of a combined array of the two at its place; `None` if it takes others, or the place itself."""
    if found.expr is None:
        return None
    at = tuple(IndexVar(axis) for axis in found.axes)

    def alone(node: Expr) -> Expr | None:
        return replace(node, indices=()) if isinstance(node, Read) and node.indices == at else None

    expr = rewrite(found.expr, alone)
    takes_others = any(isinstance(each, Read) and each.indices for each in walk(expr))
    return None if takes_others or index_names(expr) & {*found.axes} else expr
