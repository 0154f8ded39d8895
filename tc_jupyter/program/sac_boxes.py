"""Partitions of comprehensions as disjoint boxes: the first one wins, the rest is filled.

Worked example: an inner region over `iv -> A[iv]` becomes one box for the region and `2*rank` boxes for the border.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.diagnostics import Label, Span, codes
from tc_jupyter.syntax.sac_tree import SacExpression

from .expr import Binary, Const, DType, Expr, IndexVar, Select
from .integers import index_names
from .program import Partition
from .sac_bounds import is_empty, subtract
from .sac_builtins import Builtins
from .sac_emit import Draft, rename_reads, zero
from .sac_helpers import clipped_box, covers, intersected, is_whole
from .sac_sizes import ONE, ZERO, Interval, fold, is_nonnegative, same, sub, substitute
from .sac_values import Kind, Piece, Value, compute, convert, promote, weight
from .sac_work import MOST_PIECES, MOST_PIECES_WITH_NUMBERS, Context, NeedMore, Part

HEAVIEST_END = 60  # expression nodes of an end of a box; bounds of several products, each cut at the others, have more


class Boxes(Builtins):
    """From partitions to disjoint boxes."""

    def assembled(
        self, parts: list[Part], shape: tuple[Expr, ...], filler: Value | None, node: SacExpression, context: Context
    ) -> Value:
        """One array of all partitions: the first that covers a position gives its element; `filler` (zeros) fills the rest."""
        kind = parts[-1].kind if filler is None else filler.kind
        for part in parts:
            kind = promote(kind, part.kind) if part.kind is not kind else kind
        if any(part.grid is not None for part in parts) or any(
            index_names(bound)
            for part in parts
            for piece in part.bodies
            for interval in piece.box
            for bound in interval
        ):
            return self.chosen(parts, shape, filler, kind, node, context)
        whole = tuple((ZERO, extent) for extent in shape)
        if len(parts) == 1 and len(parts[0].bodies) == 1 and covers(parts[0].bodies[0].box, whole):
            piece = parts[0].bodies[0]
            return Value(kind, shape, piece.axes, convert(piece.expr, parts[0].kind, kind))
        limit = MOST_PIECES_WITH_NUMBERS if self.numbers else MOST_PIECES
        cuts = [clipped_box(part.box, shape) for part in parts]
        domains = [self.domain(cut, cuts[:at], limit, node.span) for at, cut in enumerate(cuts)]
        holes = self.domain(whole, cuts, limit, node.span)
        ends = (end for boxes in (*domains, holes) for box in boxes for interval in box for end in interval)
        if any(weight(end) > HEAVIEST_END for end in ends):
            return self.chosen(parts, shape, filler, kind, node, context)
        pieces: list[Piece] = []
        for at, (part, domain) in enumerate(zip(parts, domains, strict=True)):
            if not domain and not is_empty(part.box):
                self.out.aside.append(Partition(None, part.number, part.text, "hidden", part.box, part.span))
                self.say(
                    codes.DEAD_PARTITION,
                    part.span,
                    "the partition is hidden by earlier ones",
                    labels=tuple(
                        Label(early.span, "it covers positions of that one")
                        for early, cut in zip(parts[:at], cuts, strict=False)
                        if subtract([cuts[at]], cut, limit) != [cuts[at]]
                    ),
                    help="the first partition that covers a position wins: put it before them",
                )
            pieces += self.pieces_of(part, domain, kind)
        axes = self.axes(shape)
        at = tuple(IndexVar(axis) for axis in axes)
        rest = zero(compute(kind)) if filler is None else convert(self.element(filler, at, context), filler.kind, kind)
        pieces += [Piece(axes, hole, rest, -1, node.span, "zeros" if filler is None else "default") for hole in holes]
        if holes and filler is None:
            words = "; ".join(
                " x ".join(f"[{self.show(low)}, {self.show(high)})" for low, high in hole) for hole in holes[:4]
            )
            self.say(
                codes.UNCOVERED,
                node.span,
                f"positions that no partition covers are filled with zeros: {words}{' ..' if len(holes) > 4 else ''}",
                help="to fill them with something else, give a last partition that covers all: `iv -> 1 | iv < ..`",
            )
        return Value(kind, shape, pieces=tuple(pieces))

    def domain(
        self, box: tuple[Interval, ...], cuts: list[tuple[Interval, ...]], limit: int, span: Span
    ) -> list[tuple[Interval, ...]]:
        """The part of `box` that no earlier box covers, as disjoint boxes."""
        boxes: list[tuple[Interval, ...]] = [] if any(same(low, high) for low, high in box) else [box]
        for cut in cuts:
            remaining = subtract(boxes, cut, limit)
            if remaining is None and not self.numbers:
                raise NeedMore(extents=True)
            if remaining is None:
                self.refuse(
                    codes.DEVICE_LIMIT,
                    span,
                    f"the partitions cut the result into more than {limit} boxes",
                    help="use fewer partitions",
                )
            boxes = remaining
        return boxes

    def pieces_of(self, part: Part, domain: list[tuple[Interval, ...]], kind: Kind) -> list[Piece]:
        """The bodies of a partition over its domain; temporaries inside are computed for each box of their own."""
        found: list[Piece] = []
        whole = len(domain) == 1 and domain[0] == part.box
        for box in domain:
            renamed = {} if whole else self.recomputed(part, box)
            for piece in part.bodies:
                inside = tuple(
                    a if is_whole(b, c) else intersected(a, b) for a, b, c in zip(box, piece.box, part.box, strict=True)
                )
                if any(same(low, high) for low, high in inside):
                    continue
                expr = convert(rename_reads(piece.expr, renamed), part.kind, kind)
                found.append(replace(piece, box=inside, expr=expr))
        return found

    def recomputed(self, part: Part, box: tuple[Interval, ...]) -> dict[str, str]:
        """The temporaries of a partition that its indices number, once more for a part of its box: their names, old to new."""
        names = {part.axes[place] for place in part.named}
        begin, end = part.drafts
        if not any(isinstance(d, Draft) and names & {n for n, _ in d.outputs} for d in self.out.drafts[begin:end]):
            return {}
        ranges = {part.axes[place]: box[place] for place in part.named}
        copies, renamed = self.out.clone(begin, end, ranges, names)
        self.out.drafts += copies
        return renamed

    def chosen(
        self,
        parts: list[Part],
        shape: tuple[Expr, ...],
        filler: Value | None,
        kind: Kind,
        node: SacExpression,
        context: Context,
    ) -> Value:
        """The partition is chosen element by element: where one has a step, or a bound depends on an outer index.

        Or where the ends of the boxes are so large that every later stage would work through their nested least and greatest.
        """
        names = [axis.partition("'")[0] for axis in parts[0].axes]  # as the text calls them
        axes = tuple(self.out.fresh(name, (ZERO, extent)) for name, extent in zip(names, shape, strict=True))
        at = tuple(IndexVar(axis) for axis in axes)
        expr = zero(compute(kind)) if filler is None else convert(self.element(filler, at, context), filler.kind, kind)
        aside: list[Partition] = []
        for part in reversed(parts):
            inside = clipped_box(part.box, shape)
            fixed = not any(index_names(bound) for interval in part.box for bound in interval)
            renamed = self.recomputed(part, inside) if fixed and inside != part.box else {}
            covered: Expr = Const(False, DType.BOOL)
            for piece in reversed(part.bodies):
                places = dict(zip(piece.axes, at, strict=True))
                condition: Expr = Const(True, DType.BOOL)
                for index, (low, high) in zip(at, piece.box, strict=True):
                    for test in (Binary("<=", low, index, DType.BOOL), Binary("<", index, high, DType.BOOL)):
                        if not self._always(test):
                            condition = fold(Binary("&&", condition, test, DType.BOOL))
                if part.grid is not None:
                    condition = fold(Binary("&&", condition, substitute(part.grid, places), DType.BOOL))
                covered = fold(Binary("||", condition, covered, DType.BOOL))
                then = substitute(convert(rename_reads(piece.expr, renamed), part.kind, kind), places)
                expr = fold(Select(condition, then, expr, then.dtype))
            box = tuple((ZERO, extent) for extent in shape)
            own = Partition(None, part.number, part.text, "chosen", box, part.span, axes, covered, node.span)
            aside.append(own)
        self.out.aside += reversed(aside)
        return Value(kind, shape, axes, expr)

    def _always(self, test: Binary) -> bool:
        slack = sub(test.right, test.left) if test.op == "<=" else sub(sub(test.right, test.left), ONE)
        return is_nonnegative(slack, self.out.box)
