"""A def in which every tensor stands for itself and every range is written down, so that parts of it can be computed.

Views of tensors (what a call of another def hands over) are replaced by the tensors, extents (`T.0`) by what they are, and
every index gets the range that was inferred for it. What is computed stays the same.

Worked example: of `Y(i) = X(i) + X(i + 1)` the flat form is `Y(i) = X(i) + X(i + 1) where i in 0:N - 1`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tc_jupyter.program import Binary, DType, Expr, Index, IndexVar, Program, Read, Size, Statement, rewrite
from tc_jupyter.ranges import Ranges, SizeExpr, constant, to_expr

Bounds = tuple[SizeExpr, SizeExpr]


@dataclass(frozen=True, slots=True)
class Flat:
    """A def without views.

    Attributes:
        program: the rewritten program; its results have the names of the tensors that hold them.
        boxes: of every tensor, in expressions of sizes and integer scalars.
        points: per statement and index the least begin and the largest end.
    """

    program: Program
    boxes: dict[str, tuple[Bounds, ...]]
    points: dict[str, dict[str, Bounds]]

    @property
    def computed(self) -> tuple[str, ...]:
        """The tensors that statements write, in order."""
        return tuple(dict.fromkeys(each.target for each in self.program.statements))

    def family(self, tensor: str) -> tuple[Statement, ...]:
        """The statements that write a tensor."""
        return tuple(each for each in self.program.statements if each.target == tensor)


def flat(program: Program, ranges: Ranges) -> Flat:
    """The flat form of a def without errors.

    What is said of reads beyond the ends of arrays is left out: a part of an array may end where the array does not, so these reads
    are looked at like all others.
    """
    return _Flattening(program, ranges).run()


class _Flattening:
    def __init__(self, program: Program, ranges: Ranges) -> None:
        self.program, self.ranges = program, ranges
        self.views = {each.name for each in program.tensors if each.view_of is not None}

    def run(self) -> Flat:
        program, boxes = self.program, self.ranges.boxes
        kept = [each for each in program.tensors if each.view_of is None]
        statements = tuple(map(self.statement, program.statements))
        begun: dict[str, Statement] = {}
        for each in statements:
            begun.setdefault(each.target, each)
        tensors = tuple(
            replace(
                each,
                declared=None,
                starts=None,
                box=self.stated(each.name) if each.name in begun and begun[each.name].computed else each.box,
            )
            for each in kept
        )
        results = tuple(self.root(name)[0] for name in program.results)
        made = replace(program, tensors=tensors, statements=statements, results=results, equalities=(), partitions=())
        points = {each.name: self.points(each) for each in program.statements}
        return _versions(
            Flat(made, {each.name: boxes[each.name].bounds for each in kept if each.name in boxes}, points)
        )

    def root(self, name: str) -> tuple[str, tuple[SizeExpr, ...]]:
        """The tensor behind a view, and what has to be added to an index of the view."""
        shift = [constant(0)] * self.program.tensor(name).rank
        while (seen := self.program.tensor(name).view_of) is not None:
            own, other = self.ranges.boxes[name].origin, self.ranges.boxes[seen].origin
            shift = [far + there - here for far, here, there in zip(shift, own, other, strict=True)]
            name = seen
        return name, tuple(shift)

    def stated(self, tensor: str) -> tuple[tuple[Expr, Expr], ...]:
        """The box of a tensor whose extents follow from the subscripts of a left side, of which a part may have fewer."""
        return tuple((to_expr(low), to_expr(high)) for low, high in self.ranges.boxes[tensor].bounds)

    def moves(self, statement: Statement) -> dict[str, SizeExpr]:
        """How far output indices move when the target of a statement is no view any more."""
        _, shift = self.root(statement.target)
        pairs = zip(statement.output_indices, shift, strict=True)
        return {index.name: far for index, far in pairs if far != constant(0)}

    def points(self, statement: Statement) -> dict[str, Bounds]:
        moves, found = self.moves(statement), dict[str, Bounds]()
        for each in self.ranges.indices[statement.name]:
            assert each.lower is not None
            assert each.upper is not None
            far = moves.get(each.index, constant(0))
            found[each.index] = (each.lower + far, each.upper + far)
        return found

    def statement(self, statement: Statement) -> Statement:
        moves, points = self.moves(statement), self.points(statement)

        def rule(node: Expr) -> Expr | None:
            match node:
                case Size() if node.name in self.ranges.sizes and "." in node.name:
                    return to_expr(self.ranges.sizes[node.name])
                case Binary("+", first, Binary("-", end, taken), DType.INT64) if first == taken:
                    return end  # `T.first + T.0`: as one term, it proves that reads are inside
                case IndexVar() if node.name in moves:
                    return Binary("-", node, to_expr(moves[node.name]), DType.INT64)
                case Read() if node.tensor in self.views:
                    name, shift = self.root(node.tensor)
                    at = tuple(_moved(each, far) for each, far in zip(node.indices, shift, strict=True))
                    return Read(name, at, node.dtype, node.span)
                case Read(border=border) if border is not None:
                    return replace(node, border=None)
                case _:
                    return None

        computed = {index.name for index, _ in statement.computed}

        def index(each: Index) -> Index:
            if each.ends is not None:
                return replace(each, where=None)
            if each.name in computed:
                return each
            low, high = points[each.name]
            return replace(each, where=(to_expr(low), to_expr(high)))

        target, shift = self.root(statement.target)
        made = rewritten(statement, rule)
        left = tuple(
            at if at == IndexVar(one.name) else _moved(other, far)
            for at, other, far, one in zip(statement.left, made.left, shift, statement.output_indices, strict=False)
        )
        return replace(made, target=target, left=left, indices=tuple(map(index, made.indices)))


def _versions(about: Flat) -> Flat:
    """The def in which a tensor that is written anew has another name before.

    Worked example: of `m +=! X(i)  m = m / N` the first statement is on `m_1`, which the second one reads.
    """
    program = about.program
    statements, tensors, boxes = list(program.statements), list(program.tensors), dict(about.boxes)
    taken = {*program.sizes, *(each.name for each in tensors)}
    for tensor in about.computed:
        places = [place for place, each in enumerate(statements) if each.target == tensor]
        anew = [place for place in places[1:] if _writes_anew(about, statements[place])]
        for place in reversed(anew):
            name = next(found for n in range(1, 1000) if (found := f"{tensor}_{n}") not in taken)
            taken.add(name)
            for earlier in range(place + 1):
                statements[earlier] = renamed(statements[earlier], tensor, name, earlier < place)
            described = program.tensor(tensor)
            tensors.append(replace(described, name=name, kind="temporary"))
            boxes[name] = boxes[tensor]
    return Flat(replace(program, statements=tuple(statements), tensors=tuple(tensors)), boxes, about.points)


def _writes_anew(about: Flat, statement: Statement) -> bool:
    """Whether nothing of what was there stays, but for what the statement reads."""
    if statement.computed or statement.filters or statement.order or statement.part:
        return False
    if statement.operator != "=" and not statement.initialize:
        return False
    points = about.points[statement.name]
    return tuple(points[index.name] for index in statement.output_indices) == about.boxes[statement.target]


def renamed(statement: Statement, old: str, new: str, target: bool) -> Statement:
    """The statement that reads a tensor by another name, and writes it if `target`."""

    def rule(node: Expr) -> Expr | None:
        return replace(node, tensor=new) if isinstance(node, Read) and node.tensor == old else None

    written = new if target and statement.target == old else statement.target
    return replace(rewritten(statement, rule), target=written)


def rewritten(statement: Statement, rule: Callable[[Expr], Expr | None]) -> Statement:
    """The statement with a rule (`program.rewrite`) applied to its value, left side, conditions and ends of ranges."""

    def index(each: Index) -> Index:
        if each.ends is None:
            return each
        return replace(each, ends=(rewrite(each.ends[0], rule), rewrite(each.ends[1], rule)))

    return replace(
        statement,
        left=tuple(rewrite(each, rule) for each in statement.left),
        value=rewrite(statement.value, rule),
        exists=tuple(rewrite(each, rule) for each in statement.exists),
        filters=tuple(rewrite(each, rule) for each in statement.filters),
        indices=tuple(map(index, statement.indices)),
    )


def _moved(at: Expr, far: SizeExpr) -> Expr:
    return at if far == constant(0) else Binary("+", at, to_expr(far), DType.INT64)


__all__ = ["Bounds", "Flat", "flat"]
