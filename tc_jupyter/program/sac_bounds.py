"""Upper bounds of index names from their selections (find-shapes of the paper), solved in rounds as in range inference.

The lower bound of a name is given or 0; every selection `a[.., e, ..]` says `0 <= e < extent`. A round uses the selections in
which exactly one name is still open, with every other index at its worst end; a name is solved when a round limits it.

Worked example: `{ [i] -> sum({ [k] -> a[i+k] * w[k] }) }`: round 1 `k < shape(w)[0]`, round 2 `i < shape(a)[0] - shape(w)[0] + 1`.

Also here: exact differences of boxes with symbolic ends, right for all sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tc_jupyter.diagnostics import NO_SPAN, Span
from tc_jupyter.diagnostics.work import spend

from .expr import Binary, Const, DType, Expr, IndexVar, Size, Unary, int64, rewrite, walk
from .integers import index_names
from .sac_sizes import (
    ONE,
    ZERO,
    Interval,
    add,
    build,
    ends,
    floordiv,
    is_nonnegative,
    linear,
    maximum,
    minimum,
    mul,
    same,
    sub,
    substitute,
    value,
)

STEPS_PER_BOX = 10  # to see whether it has a position in common with another


@dataclass(frozen=True, slots=True)
class Constraint:
    """A selection: `0 <= index < extent`, where all `guards` hold."""

    index: Expr
    extent: Expr
    guards: tuple[Expr, ...] = ()
    span: Span = NO_SPAN


def pending(name: str) -> Size:
    """The size that stands for the unknown upper bound of an index until it is solved."""
    return Size(f"?{name}")


def open_names(expr: Expr, names: Iterable[str]) -> frozenset[str]:
    """Which of the open `names` occur in `expr`, as an index or through their unknown upper bound."""
    wanted = set(names)
    found = index_names(expr) & wanted
    sizes = {node.name[1:] for node in walk(expr) if isinstance(node, Size) and node.name.startswith("?")}
    return found | (sizes & wanted)


def fill_pending(expr: Expr, solved: Mapping[str, Expr]) -> Expr:
    """Put solved upper bounds in place of their sizes."""
    nodes = list(walk(expr))
    spend(4 + 2 * len(nodes))
    from_sizes = {
        node.name for node in nodes if isinstance(node, Size) and node.name[1:] in solved and node.name[0] == "?"
    }
    if not from_sizes:
        return expr
    return substitute(_sizes_as_indices(expr, from_sizes), {name: solved[name[1:]] for name in from_sizes})


def _sizes_as_indices(expr: Expr, names: set[str]) -> Expr:
    return rewrite(expr, lambda node: IndexVar(node.name) if isinstance(node, Size) and node.name in names else None)


def solve_round(
    names: Iterable[str], constraints: Iterable[Constraint], box: Mapping[str, Interval], *, use_guarded: bool = False
) -> dict[str, Expr]:
    """One round: the upper bounds (excluded) of the names that the constraints limit now.

    Args:
        names: the open indices.
        box: ranges of all indices.
        use_guarded: also use what a guard already implies (when nothing else is left).
    """
    frozen = tuple(names)
    closed = _Closed(box, frozenset(frozen))
    limits: dict[str, list[Expr]] = {}
    for constraint in constraints:
        found = open_names(constraint.index, frozen) | open_names(constraint.extent, frozen)
        if len(found) != 1:
            continue
        (name,) = found
        if open_names(constraint.extent, frozen):
            continue
        for expr, bound in (
            (constraint.index, sub(constraint.extent, ONE)),
            (sub(ZERO, constraint.index), ZERO),
        ):
            if not use_guarded and _implied(sub(bound, expr), constraint.guards):
                continue
            limit = upper_limit(expr, name, bound, closed)
            if limit is not None:
                limits.setdefault(name, []).append(add(limit, ONE))
    return {name: minimum(found) for name, found in limits.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Closed(Mapping[str, Interval]):
    """The ranges of the indices that are not open; they are not copied for every question."""

    box: Mapping[str, Interval]
    open_: frozenset[str]

    def __getitem__(self, name: str) -> Interval:
        if name in self.open_:
            raise KeyError(name)
        return self.box[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.box if name not in self.open_)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def upper_limit(expr: Expr, name: str, bound: Expr, box: Mapping[str, Interval]) -> Expr | None:
    """The largest value of index `name` for which `expr <= bound`, the other indices at their worst, or `None`."""
    terms, constant = linear(expr)
    mine = [atom for atom in terms if name in index_names(atom)]
    if len(mine) != 1 or terms[mine[0]] <= 0:
        return None
    atom, factor = mine[0], terms[mine[0]]
    rest = build(({other: count for other, count in terms.items() if other is not atom}, constant))
    worst = ends(rest, box)
    if worst is None or name in index_names(worst[1]):  # an index inside it ends where this one says: no limit of it
        return None
    room = floordiv(sub(bound, worst[1]), value_expr(factor))
    if isinstance(atom, IndexVar):
        return room
    if isinstance(atom, Binary) and atom.op == "//":
        divisor = value(atom.right)
        if divisor is None or divisor <= 0:
            return None
        return upper_limit(atom.left, name, add(mul(atom.right, room), sub(atom.right, ONE)), box)
    if isinstance(atom, Binary) and atom.op == "*":
        for index, size in ((atom.left, atom.right), (atom.right, atom.left)):
            if index == IndexVar(name) and not index_names(size) and is_nonnegative(size):
                return floordiv(room, size)
    return None


def value_expr(number: int) -> Expr:
    """An index constant."""
    return add(ZERO, build(({}, number)))


def _implied(slack: Expr, guards: tuple[Expr, ...]) -> bool:
    """Whether a guard says `slack >= 0` already."""
    return any(is_nonnegative(sub(slack, known)) for guard in guards for known in conjuncts(guard))


def conjuncts(condition: Expr) -> list[Expr]:
    """Integer expressions that are at least 0 where `condition` holds."""
    if isinstance(condition, Unary) and condition.op == "!":
        return _negated(condition.operand)
    if not isinstance(condition, Binary):
        return []
    if condition.op == "&&":
        return conjuncts(condition.left) + conjuncts(condition.right)
    if not condition.left.dtype.is_integer:
        return []
    left, right = condition.left, condition.right
    match condition.op:
        case "<":
            return [sub(sub(right, left), ONE)]
        case "<=":
            return [sub(right, left)]
        case ">":
            return [sub(sub(left, right), ONE)]
        case ">=":
            return [sub(left, right)]
        case "==":
            return [sub(left, right), sub(right, left)]
        case _:
            return []


def _negated(condition: Expr) -> list[Expr]:
    if isinstance(condition, Unary) and condition.op == "!":
        return conjuncts(condition.operand)
    if not isinstance(condition, Binary):
        return []
    if condition.op == "||":
        return _negated(condition.left) + _negated(condition.right)
    opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "!=": "=="}.get(condition.op)
    if opposite is None:
        return []
    return conjuncts(Binary(opposite, condition.left, condition.right, condition.dtype))


def slack(condition: Expr) -> Expr | None:
    """An integer expression that is at least 0 exactly where `condition` holds; `None` for conditions on other things."""
    if isinstance(condition, Const):
        return ZERO if condition.value else int64(-1)
    if isinstance(condition, Unary) and condition.op == "!":
        return _slack_of_opposite(condition.operand)
    if not isinstance(condition, Binary):
        return None
    if condition.op in ("&&", "||"):
        left, right = slack(condition.left), slack(condition.right)
        if left is None or right is None:
            return None
        return minimum((left, right)) if condition.op == "&&" else maximum((left, right))
    if condition.left.dtype is not DType.INT64:
        return None
    less, more = sub(condition.right, condition.left), sub(condition.left, condition.right)
    match condition.op:
        case "<":
            return sub(less, ONE)
        case "<=":
            return less
        case ">":
            return sub(more, ONE)
        case ">=":
            return more
        case "==":
            return minimum((less, more))
        case _:
            return sub(maximum((less, more)), ONE)


def _slack_of_opposite(condition: Expr) -> Expr | None:
    found = slack(condition)
    return None if found is None else sub(int64(-1), found)


def difference(box: tuple[Interval, ...], cut: tuple[Interval, ...]) -> list[tuple[Interval, ...]]:
    """Disjoint boxes that cover `box` without `cut`, for all sizes; boxes that are empty for all sizes are left out.

    Law: every interval of `box` has `lower <= upper`; then so have all intervals of the result. `cut` may be empty or reach
    outside.
    """
    found: list[tuple[Interval, ...]] = []
    middle = list(box)
    for axis, ((low, high), (first, last)) in enumerate(zip(box, cut, strict=True)):
        begin = minimum((maximum((first, low)), high))
        end = minimum((maximum((last, begin)), high))
        for piece in ((low, begin), (end, high)):
            if not same(*piece):
                found.append((*middle[:axis], piece, *box[axis + 1 :]))
        if same(begin, end):
            return found
        middle[axis] = (begin, end)
    return found


def subtract(
    boxes: list[tuple[Interval, ...]], cut: tuple[Interval, ...], limit: int
) -> list[tuple[Interval, ...]] | None:
    """`difference` of several boxes; `None` when more than `limit` remain."""
    found: list[tuple[Interval, ...]] = []
    spend(STEPS_PER_BOX * len(boxes))
    for box in boxes:
        if disjoint(box, cut):
            found.append(box)
        else:
            found += difference(box, cut)
        if len(found) > limit:
            return None
    return found


def disjoint(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> bool:
    """Whether two boxes certainly have no common position."""
    return any(
        is_nonnegative(sub(a[0], b[1])) or is_nonnegative(sub(b[0], a[1])) for a, b in zip(left, right, strict=True)
    )


def is_empty(box: tuple[Interval, ...]) -> bool:
    """Whether a box certainly has no position."""
    return any(is_nonnegative(sub(low, high)) for low, high in box)
