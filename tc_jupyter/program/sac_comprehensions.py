"""Comprehensions: patterns, generators, bounds that are inferred, the shape of the result.

Worked example: `{ [i, .] -> a[i] }` for a matrix has the axes `i` (named, up to `shape(a)[0]`) and one axis of the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NoReturn

from tc_jupyter.diagnostics import Span, codes
from tc_jupyter.syntax.sac_tree import Dot, Generator, PartitionClause, Pattern, SacExpression, SetExpr, TripleDot
from tc_jupyter.syntax.tree import Name

from .expr import Binary, Const, DType, Expr, IndexVar
from .integers import index_names
from .sac_bounds import fill_pending, open_names, pending, solve_round
from .sac_boxes import Boxes
from .sac_helpers import component_names, filled_draft, rank_of, several, with_bounds_filled
from .sac_ranks import index_lengths
from .sac_signature import SolvedPartition
from .sac_sizes import ONE, ZERO, Interval, fold, is_nonnegative, is_zero, sub
from .sac_values import Piece, Value, Weak, rename_axes, scalar, vector
from .sac_work import Context, Env, Part, Refused


@dataclass(frozen=True, slots=True)
class Marks:
    """How much there was of everything when an index was opened: what was there before knows nothing of it."""

    drafts: int
    constraints: int
    checks: int
    equalities: int
    box: int
    temps: int
    stored: int


class Comprehensions(Boxes):
    """Comprehensions `{ pattern -> body | generator; .. }`."""

    def comprehension(self, node: SetExpr, env: Env, context: Context) -> Value:
        """`{ p1 -> e1 | g1; .. }`: the last partition gives the shape, the first one that covers a position its element."""
        last_number = len(node.partitions) - 1
        last = self.partition(node.partitions[-1], last_number, None, env, context)
        extents = [high for _, high in last.box]
        frame = self.frame([extents[axis] for axis in last.named], node.partitions[-1].span, context)
        for axis, extent in zip(last.named, frame, strict=True):
            extents[axis] = extent
        shape = tuple(extents)
        parts: list[Part] = []
        refused = False
        for number, clause in enumerate(node.partitions[:-1]):
            try:
                parts.append(self.partition(clause, number, shape, env, context))
            except Refused:
                refused = True
        if refused:
            raise Refused
        parts.append(last)
        if number_lower := [axis for axis in last.named if not is_zero(last.box[axis][0])]:
            for axis in number_lower:
                self.check_lower(last.box[axis][0], axis, last.span)
        return self.assembled(parts, shape, None, node, context)

    def partition(
        self, clause: PartitionClause, number: int, result: tuple[Expr, ...] | None, env: Env, context: Context
    ) -> Part:
        """One partition; `result` is the shape of the comprehension, or `None` for the last partition, which determines it."""
        pattern, generator = clause.pattern, clause.generator
        lower = self.generator_bound(generator.lower if generator else None, env, context)
        upper = self.generator_bound(generator.upper if generator else None, env, context)
        if result is None and generator is not None and isinstance(generator.upper, Dot):
            self.refuse(
                codes.DOT_IN_LAST,
                generator.upper.span,
                "`.` cannot be the upper bound of the last partition",
                help="the last partition gives the shape of the result: write its extents, for example `shape(A)`",
            )
        length = self.index_length(clause, lower, upper, result, env, context)
        names = component_names(pattern.names[0].name, length) if pattern.vector else [n.name for n in pattern.names]
        for bound, written in ((lower, generator and generator.lower), (upper, generator and generator.upper)):
            if bound is not None and len(bound) != length and written is not None:
                self.refuse(
                    codes.BOUND_LENGTH,
                    written.span,
                    f"the bound has {several(len(bound), 'component')} and the index {length}",
                    help=f"give {several(length, 'component')}",
                )
        lows = lower if lower is not None else (ZERO,) * length
        return self.open_partition(clause, number, result, env, context, names, tuple(lows), upper)

    def open_partition(
        self,
        clause: PartitionClause,
        number: int,
        result: tuple[Expr, ...] | None,
        env: Env,
        context: Context,
        names: list[str],
        lows: tuple[Expr, ...],
        upper: tuple[Expr, ...] | None,
    ) -> Part:
        """A partition whose index has a known length: its body, then its bounds."""
        generator = clause.generator
        dotted = generator is not None and isinstance(generator.upper, Dot)
        places = self.places(clause.pattern, len(names), len(result), clause.span) if result is not None else None
        if upper is None and dotted and result is not None and places is not None:
            upper = tuple(result[place] for place in places)
        marks = self.marks()
        indices: list[str] = []
        for k, name in enumerate(names):
            index = self.out.fresh(name)
            self.out.box[index] = (lows[k], upper[k] if upper is not None else pending(index))
            indices.append(index)
        inner = self.bind_indices(clause.pattern, [IndexVar(index) for index in indices], env)
        grid = self.on_grid(generator, indices, lows, env, context)
        within = self.within(context, indices, grid)
        marks = replace(marks, drafts=len(self.out.drafts), constraints=len(self.constraints))
        outer_open = list(self.open)
        if upper is None:
            self.open |= dict(zip(indices, names, strict=True))
        try:
            body = self.expr(clause.body, inner, within)
        except Refused:
            self.open = {name: word for name, word in self.open.items() if name in outer_open}
            raise
        if upper is None:
            body = self.close(clause, indices, body, result, places, marks, outer_open)
        highs = tuple(self.out.box[index][1] for index in indices)
        inferred = generator is None or (generator.upper is None and generator.lower is None)
        self.solved[clause.span] = SolvedPartition(tuple(zip(lows, highs, strict=True)), body.shape, inferred)
        self.check_body_shape(clause, body, indices)
        grid = None if grid is None else fill_pending(grid, {name: self.out.box[name][1] for name in indices})
        return self.placed(clause, number, result, tuple(indices), lows, highs, body, marks.drafts, within, grid)

    def within(self, context: Context, indices: Sequence[str], grid: Expr | None) -> Context:
        """The context inside a partition."""
        inside = context.within(indices)
        return inside if grid is None else inside.where(grid)

    def steps(
        self, generator: Generator, length: int, env: Env, context: Context
    ) -> tuple[tuple[Expr, ...], tuple[Expr, ...]] | None:
        """`step` and `width` of a generator, one of each for every axis; `None` if it has none."""
        if generator.step is None:
            return None
        found: list[tuple[Expr, ...]] = []
        for written, word in ((generator.step, "step"), (generator.width, "width")):
            parts = (ONE,) if written is None else self.generator_bound(written, env, context) or ()
            if len(parts) == 1:
                parts *= length
            if written is not None and len(parts) != length:
                self.refuse(
                    codes.BOUND_LENGTH,
                    written.span,
                    f"`{word}` has {several(len(parts), 'component')} and the index {length}",
                    help=f"give {several(length, 'component')}, or one number for all axes",
                )
            if written is None:
                found.append(parts)
                continue
            for part in parts:
                condition = fold(Binary(">=", part, ONE, DType.BOOL))
                self.require(
                    condition,
                    codes.PARTITION_TOO_LARGE,
                    written.span,
                    f"a `{word}` must be at least 1",
                    ((f"`{word}`", part),),
                    help="write `max(.., 1)`",
                )
            found.append(parts)
        return found[0], found[1]

    def on_grid(
        self, generator: Generator | None, indices: Sequence[str], lows: Sequence[Expr], env: Env, context: Context
    ) -> Expr | None:
        """Where a partition with `step` has its positions: `(i - lower) mod step < width` on every axis."""
        steps = self.steps(generator, len(indices), env, context) if generator is not None else None
        if steps is None:
            return None
        condition: Expr = Const(True, DType.BOOL)
        for index, low, step, width in zip(indices, lows, *steps, strict=True):
            place = fold(Binary("%", sub(IndexVar(index), low), step, DType.INT64))
            condition = fold(Binary("&&", condition, fold(Binary("<", place, width, DType.BOOL)), DType.BOOL))
        return None if isinstance(condition, Const) and condition.value else condition

    def bind_indices(self, pattern: Pattern, variables: Sequence[Expr], env: Env) -> Env:
        """The names of a pattern in a new scope."""
        inner = dict(env)
        variables = tuple(variables)
        if pattern.vector:
            inner[pattern.names[0].name] = vector(variables)
        else:
            inner |= {
                name.name: scalar(variable, Weak.INT) for name, variable in zip(pattern.names, variables, strict=True)
            }
        if pattern.whole is not None:
            inner[pattern.whole.name] = vector(variables)
        return inner

    def generator_bound(self, bound: SacExpression | Dot | None, env: Env, context: Context) -> tuple[Expr, ...] | None:
        """The components of a bound; a scalar is one component; `.` and a missing bound are `None`."""
        if bound is None or isinstance(bound, Dot):
            return None
        found = self.expr(bound, env, context)
        if found.rank == 0:
            return (self.bound(self.index_of(found, bound, context), bound.span),)
        return tuple(self.bound(c, bound.span) for c in self.components(found, bound.span, context, "a bound"))

    def index_length(
        self,
        clause: PartitionClause,
        lower: tuple[Expr, ...] | None,
        upper: tuple[Expr, ...] | None,
        result: tuple[Expr, ...] | None,
        env: Env,
        context: Context,
    ) -> int:
        """How many components the index has; of a vector name without bounds the longest legal length."""
        if not clause.pattern.vector:
            return len(clause.pattern.names)
        for bound in (lower, upper):
            if bound is not None:
                return len(bound)
        name = clause.pattern.names[0].name
        ranks = {key: rank_of(found) for key, found in env.items() if found is not None}
        lengths = index_lengths(clause.body, name, ranks, self.cell.defined)
        if lengths:
            return min(lengths) if result is None else min(min(lengths), len(result))
        if result is None:
            self.no_bound(clause, [name])
        return self.frame_length(clause, name, len(result), env, context)

    def frame_length(self, clause: PartitionClause, name: str, rank: int, env: Env, context: Context) -> int:
        """The length of an index vector that nothing limits: what the body leaves of the result's axes."""
        marks, calls = self.marks(), len(self.out.calls)
        stored = dict(self.stored_values)
        indices = [self.out.fresh(name, (ZERO, pending(f"{name}{k}"))) for k in range(rank)]
        try:
            variables = [IndexVar(index) for index in indices]
            body = self.expr(clause.body, self.bind_indices(clause.pattern, variables, env), context.within(indices))
        finally:
            del self.out.drafts[marks.drafts :], self.constraints[marks.constraints :], self.checks[marks.checks :]
            del self.out.equalities[marks.equalities :], self.out.calls[calls:]
            self.stored_values = stored  # what was stored here has no statement any more
        return max(rank - body.rank, 0)

    def no_bound(self, clause: PartitionClause, names: Sequence[str]) -> NoReturn:
        """Say that no upper bound can be found (TC351)."""
        words = " and ".join(f"`{name}`" for name in names)
        pattern = clause.pattern
        variables = pattern.names[0].name if pattern.vector else f"[{', '.join(n.name for n in pattern.names)}]"
        example = "shape(A)" if pattern.vector else f"[{', '.join('..' for _ in pattern.names)}]"
        self.refuse(
            codes.NO_BOUND,
            clause.pattern.span,
            f"no upper bound is given for {words}, and no selection tells one",
            help=f"write `| {variables} < {example}`; the last partition gives the shape of the result",
        )

    def places(self, pattern: Pattern, length: int, rank: int, span: Span) -> tuple[int, ...] | None:
        """At which axes of a result of `rank` axes the named indices stand."""
        if pattern.vector:
            return tuple(range(length)) if length <= rank else None
        fixed = sum(not isinstance(item, TripleDot) for item in pattern.items)
        if fixed > rank:
            self.refuse(
                codes.PATTERN_RANK,
                span,
                f"the pattern has {several(fixed, 'axis', 'axes')} and the result {rank}",
                help="all partitions make one array; its rank is that of the last partition",
            )
        spare = rank - fixed
        found: list[int] = []
        place = 0
        for item in pattern.items:
            if isinstance(item, TripleDot):
                place += spare
            else:
                if isinstance(item, Name):
                    found.append(place)
                place += 1
        return tuple(found)

    def close(
        self,
        clause: PartitionClause,
        indices: list[str],
        body: Value,
        result: tuple[Expr, ...] | None,
        places: tuple[int, ...] | None,
        marks: Marks,
        outer_open: list[str],
    ) -> Value:
        """Find the upper bounds of open indices; what stays open waits for the enclosing comprehension."""
        guarded = False
        solved: dict[str, Expr] = {}
        while True:
            mine = [name for name in self.open if name not in outer_open]
            everyone = [*mine, *outer_open]
            if not mine:
                break
            constraints = self.constraints[marks.constraints :]
            found = solve_round(everyone, constraints, self.out.box, use_guarded=guarded)
            found = {name: limit for name, limit in found.items() if name in mine}
            if not found and not guarded and not outer_open:
                guarded = True
                continue
            if not found:
                break
            for name, limit in found.items():
                del self.open[name]
                solved[name] = limit
            self.settle(solved, marks)
            guarded = False
            if outer_open:
                break  # one round only: the enclosing comprehension goes on with all names together
        unsolved = [name for name in indices if name in self.open]
        if unsolved and self._waits(unsolved, outer_open, marks):
            return with_bounds_filled(body, solved)
        if unsolved and result is None:
            names = [
                self.open[name] if not clause.pattern.vector else clause.pattern.names[0].name for name in unsolved
            ]
            for name in indices:
                self.open.pop(name, None)
            self.no_bound(clause, list(dict.fromkeys(names)))
        if unsolved and result is not None and places is not None:
            for name, place in zip(indices, places, strict=True):
                self.open.pop(name, None)
                solved[name] = result[place]
            self.settle(solved, marks)
        return with_bounds_filled(body, solved)

    def _waits(self, unsolved: list[str], outer_open: list[str], marks: Marks) -> bool:
        """Whether a selection links an unsolved name with an open one further out."""
        if not outer_open:
            return False
        for constraint in self.constraints[marks.constraints :]:
            names = open_names(constraint.index, self.open)
            if names & set(unsolved) and names & set(outer_open):
                return True
        return False

    def marks(self) -> Marks:
        """How much there is of everything."""
        out = self.out
        return Marks(
            drafts=len(out.drafts),
            constraints=len(self.constraints),
            checks=len(self.checks),
            equalities=len(out.equalities),
            box=len(out.box),
            temps=len(out.temps),
            stored=len(self.stored_values),
        )

    def settle(self, solved: Mapping[str, Expr], marks: Marks) -> None:
        """Put solved bounds in place of the sizes that stood for them, in what was added while they were open."""
        done: dict[str, Expr] = {}
        for name, limit in solved.items():
            done[name] = fill_pending(limit, done)
        out = self.out
        for name, interval in list(islice(out.box.items(), marks.box, None)):
            out.box[name] = (fill_pending(interval[0], done), fill_pending(interval[1], done))
        for at, old in enumerate(self.constraints[marks.constraints :], marks.constraints):
            self.constraints[at] = replace(
                old, extent=fill_pending(old.extent, done), index=fill_pending(old.index, done)
            )
        for at, draft in enumerate(out.drafts[marks.drafts :], marks.drafts):
            out.drafts[at] = filled_draft(draft, done)
        for name, temp in list(islice(out.temps.items(), marks.temps, None)):
            if temp.box is not None:
                box = tuple((fill_pending(low, done), fill_pending(high, done)) for low, high in temp.box)
                out.temps[name] = replace(temp, box=box)
        for at, check in enumerate(self.checks[marks.checks :], marks.checks):
            shown = tuple((label, fill_pending(e, done)) for label, e in check.shown)
            self.checks[at] = replace(check, condition=fill_pending(check.condition, done), shown=shown)
        for at, e in enumerate(out.equalities[marks.equalities :], marks.equalities):
            out.equalities[at] = replace(e, left=fill_pending(e.left, done), right=fill_pending(e.right, done))
        for key, (source, kept) in list(islice(self.stored_values.items(), marks.stored, None)):
            self.stored_values[key] = (source, with_bounds_filled(kept, done))

    def check_body_shape(self, clause: PartitionClause, body: Value, indices: Sequence[str]) -> None:
        """Refuse a body whose shape depends on an index of its own."""
        for extent in body.shape:
            names = index_names(extent) & set(indices)
            if names:
                word = sorted(names)[0].partition("'")[0]
                self.refuse(
                    codes.INHOMOGENEOUS,
                    clause.body.span,
                    f"the shape of the body depends on the value of index `{word}`",
                    help="all elements of an array have one shape",
                )

    def placed(
        self,
        clause: PartitionClause,
        number: int,
        result: tuple[Expr, ...] | None,
        indices: tuple[str, ...],
        lows: tuple[Expr, ...],
        highs: tuple[Expr, ...],
        body: Value,
        drafts_from: int,
        inner: Context,
        grid: Expr | None = None,
    ) -> Part:
        """The partition over all axes of the result: named indices and body axes in the order of the pattern."""
        layout = self.layout(clause.pattern, len(indices), body, clause.span)
        self.check_rank(len(layout), clause.span)
        if result is not None and len(layout) != len(result):
            self.refuse(
                codes.PATTERN_RANK,
                clause.span,
                f"this partition makes an array of rank {len(layout)} and the last one of rank {len(result)}",
                help=f"the body has shape {self.shape_text(body.shape)}, the result {self.shape_text(result)}",
            )
        body_axes = self.axes(body.shape, "t")
        axes = tuple(indices[k] if named else body_axes[k] for named, k in layout)
        box = tuple((lows[k], highs[k]) if named else (ZERO, body.shape[k]) for named, k in layout)
        named = tuple(place for place, (is_named, _) in enumerate(layout) if is_named)
        if result is not None:
            self.check_fit(clause, result, box, named)
        bodies: list[Piece] = []
        for piece in self.body_pieces(body, body_axes, inner):
            ranges = dict(zip(piece.axes, piece.box, strict=True))
            full = tuple(ranges.get(axis, interval) for axis, interval in zip(axes, box, strict=True))
            bodies.append(Piece(axes, full, piece.expr, number, clause.span, self.text(clause.span)))
        drafts = (drafts_from, len(self.out.drafts))
        text = self.text(clause.span)
        return Part(number, axes, box, named, tuple(bodies), body.kind, drafts, clause.span, text, grid)

    def body_pieces(self, body: Value, axes: tuple[str, ...], context: Context) -> list[Piece]:
        """The body over the axes `axes`: one expression, or several boxes."""
        if body.pieces is not None:
            return [rename_axes(piece, dict(zip(piece.axes, axes, strict=True))) for piece in body.pieces]
        at = tuple(IndexVar(axis) for axis in axes)
        whole = tuple((ZERO, extent) for extent in body.shape)
        return [Piece(axes, whole, self.element(body, at, context))]

    def layout(self, pattern: Pattern, length: int, body: Value, span: Span) -> list[tuple[bool, int]]:
        """For each axis of the result: (whether the pattern names it, number of the index or of the body axis)."""
        if pattern.vector:
            return [*((True, k) for k in range(length)), *((False, k) for k in range(body.rank))]
        dots = sum(isinstance(item, Dot) for item in pattern.items)
        if dots > body.rank:
            self.refuse(
                codes.PATTERN_RANK,
                pattern.span,
                f"the pattern has {several(dots, 'dot')} and the body {several(body.rank, 'axis', 'axes')}",
                help=f"the body has shape {self.shape_text(body.shape)}; each `.` stands for one of its axes",
            )
        spare = body.rank - dots
        found: list[tuple[bool, int]] = []
        index, axis = 0, 0
        for item in pattern.items:
            if isinstance(item, Name):
                found.append((True, index))
                index += 1
                continue
            steps = spare if isinstance(item, TripleDot) else 1
            found += [(False, axis + k) for k in range(steps)]
            axis += steps
        return found + [(False, k) for k in range(axis, body.rank)]

    def check_fit(
        self, clause: PartitionClause, result: tuple[Expr, ...], box: tuple[Interval, ...], named: tuple[int, ...]
    ) -> None:
        """A partition must stay inside the result, and its body must have the shape of the other bodies."""
        for place, ((low, high), extent) in enumerate(zip(box, result, strict=True)):
            if place not in named:
                self.require_equal(
                    high,
                    extent,
                    codes.SHAPE_MISMATCH,
                    clause.body.span,
                    f"the bodies of the partitions differ in the extent of axis {place} of the result",
                    (("this one", high), ("the result", extent)),
                    help="all bodies need the shape of the last partition's body",
                )
                continue
            self.check_lower(low, place, clause.span)
            if is_nonnegative(sub(extent, high), self.out.box):
                continue
            condition: Expr = fold(Binary("<=", high, extent, DType.BOOL))
            for first, last in box:
                condition = fold(Binary("||", condition, fold(Binary(">=", first, last, DType.BOOL)), DType.BOOL))
            if index_names(condition):
                continue  # a bound that depends on an outer index: cut to the result below
            self.require(
                condition,
                codes.PARTITION_TOO_LARGE,
                clause.span,
                f"the partition leaves the result on axis {place}",
                (("its upper bound", high), ("the extent of the result", extent)),
                help="limit its upper bound",
            )

    def check_lower(self, low: Expr, place: int, span: Span) -> None:
        """Refuse a negative lower bound."""
        if not is_nonnegative(low, self.out.box) and not index_names(low):
            condition = fold(Binary(">=", low, ZERO, DType.BOOL))
            self.require(
                condition,
                codes.PARTITION_TOO_LARGE,
                span,
                f"the partition leaves the result on axis {place}",
                (("its lower bound", low),),
                help="indices of a result start at 0",
            )
