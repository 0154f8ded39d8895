"""What a stage makes of an operand before it combines it with others -> a copy that is read at plain sums of indices.

Worked example: `Y(i) +=! X((i + k) % N) * F(k)` reads `X` at a function of `i + k`. With `T(u) = X(u % N)` it is
`Y(i) +=! T(i + k) * F(k)`, a window like any other. A condition on indices around the read belongs to it:
`0 <= i + k && i + k < N ? X(i + k) : 0` is `T(i + k)` with `T(u) = 0 <= u && u < N ? X(u) : 0`. So does arithmetic, if that is
asked for: `exp(X(i, k)) * W(k, j)` is `T(i, k) * W(k, j)`.

Source: TVM, `reindex_cache_read`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from tc_jupyter.program import Binary, Cast, Const, DType, Expr, Read, Select, children, rebuild, walk
from tc_jupyter.program.integers import has_read, index_names
from tc_jupyter.ranges import Box, Name, SizeExpr, constant, from_expr, index, interval, nonnegative, to_expr

from .stage import Stage

LIKELY = 16
"""A length that is not known is mostly at least so long. Where it is shorter, a copy has elements that nobody reads: in `y + 2*u`
the odd ones, if `y` has a single value."""
Domains = Mapping[str, tuple[SizeExpr, SizeExpr]]
"""Where indices begin and end."""
Sum = tuple[tuple[str, int], ...]
"""Indices with their coefficients, by name: `i + k` without what does not move."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What a stage reads from a tensor, as a function of sums of its indices.

    Attributes:
        place: the part of the statement's value that the copy stands for.
        safe: the same, with zeros for elements that may not be there: the copy is made before the stage checks its data.
        sums: one per dimension of the copy; together they have every index once.
        bounds: where each sum begins and ends.
    """

    place: Expr
    safe: Expr
    sums: tuple[Sum, ...]
    bounds: tuple[tuple[SizeExpr, SizeExpr], ...]

    def value(self, names: tuple[str, ...]) -> Expr:
        """The element of the copy at `names`."""
        return _with_sums(self.safe, dict(zip(self.sums, names, strict=True)))

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        """Where the stage reads the copy."""
        return tuple(_expression(each) for each in self.sums)

    def is_window(self, outputs: Collection[str]) -> bool:
        """Whether results read elements of the copy that others read too: `outputs` are the indices of results.

        Such a copy is about as large as the results. That of a sum over two reductions is as large as they are long.
        """
        return any(len(each) > 1 and any(name in outputs for name, _ in each) for each in self.sums)


def operand(stage: Stage, tensor: str, box: Box) -> Operand | None:
    """What a stage reads from a tensor; `None` if that is no function of sums of indices, each of which has indices of its own.

    The copy has no more dimensions than the tensor. It reads only elements that the tensor has.

    Args:
        box: of the tensor.
    """
    reads = {read for read in stage.statement.reads() if read.tensor == tensor}
    place = _with_conditions(stage.statement.value, tensor)
    if (
        place is None
        or len(reads) != 1
        or any(isinstance(node, Read) and node.tensor != tensor for node in walk(place))
    ):
        return None
    (read,) = reads
    return _at(stage, place, read, {tensor: box})


def value_of(stage: Stage, read: Read, boxes: Mapping[str, Box]) -> Operand | None:
    """The largest expression around a read that is an operand with no more indices than the read; `None` if there is none.

    It computes something, or reads where elements of another tensor say.

    Args:
        boxes: of all tensors.
    """
    own = index_names(read)
    for place in _around(stage.statement.value, read):
        plain = isinstance(place.operand if isinstance(place, Cast) else place, Read) and not reads_by_data(place)
        if index_names(place) <= own and not plain and place.dtype is not DType.BOOL:
            found = _at(stage, place, read, boxes)
            if found is not None:
                return found
    return None


def _at(stage: Stage, place: Expr, read: Read, boxes: Mapping[str, Box]) -> Operand | None:
    """The operand that stands in one place, with the indices of a read."""
    if stage.relations or stage.limits:
        return None
    found: dict[Sum, None] = {}
    for expr in (*read.indices, place):
        _collect(expr, found)
    sums = tuple(found)
    names = [name for each in sums for name, _ in each]
    if len(set(names)) < len(names) or not 0 < len(sums) <= _dimensions(stage, read, sums):
        return None
    domains = {root.name: root.dom for root in stage.roots}
    if not all(_has_no_gaps(each, domains, LIKELY) for each in sums):
        return None
    always = _is_always_read(stage.statement.value, place) and all(_has_no_gaps(each, domains, 1) for each in sums)
    all_read = always and all(nonnegative(high - low - 1) for low, high in domains.values())
    safe = _safe(place, boxes, None if all_read else domains, frozenset())
    return Operand(place, safe, sums, tuple(_bounds(each, domains) for each in sums))


def _dimensions(stage: Stage, read: Read, sums: tuple[Sum, ...]) -> int:
    """The most dimensions of a copy: those of the tensor.

    More come from a tensor that says where it is read (`X(Id(i, t), k)`): a copy with all of them is as large as a result if one of
    them is a step of the reduction, but not if two are.
    """
    steps = {root.name for root in stage.roots if root.kind != "output"}
    inner = (node for index in read.indices for node in walk(index) if isinstance(node, Read))
    more = sum(len(each.indices) - 1 for each in inner)
    return len(read.indices) + (more if sum(any(n in steps for n, _ in each) for each in sums) == 1 else 0)


def _safe(expr: Expr, boxes: Mapping[str, Box], domains: Domains | None, known: frozenset[SizeExpr]) -> Expr:
    """The expression with 0 for elements that are not there.

    Args:
        domains: of the indices; `None` where every element of the copy is read by the stage, so that only data can be wrong.
        known: what is not negative where this is computed.
    """
    if isinstance(expr, Select):
        condition = _safe(expr.condition, boxes, domains, known)
        then = _safe(expr.then, boxes, domains, known | _not_negative(expr.condition))
        return replace(expr, condition=condition, then=then, otherwise=_safe(expr.otherwise, boxes, domains, known))
    expr = rebuild(expr, tuple(_safe(child, boxes, domains, known) for child in children(expr)))
    if not isinstance(expr, Read):
        return expr
    value: Expr = expr
    for subscript, (low, high) in zip(expr.indices, boxes[expr.tensor].bounds, strict=False):
        by_data = has_read(subscript)
        where = from_expr(subscript)
        if not by_data and (domains is None or {where - low, high - 1 - where} <= known):
            continue
        if by_data or domains is None or not _is_inside(subscript, (low, high), domains):
            place = subscript if subscript.dtype is DType.INT64 else Cast(subscript, DType.INT64)
            after = Binary("<=", to_expr(low), place, DType.BOOL)
            before = Binary("<", place, to_expr(high), DType.BOOL)
            value = Select(Binary("&&", after, before, DType.BOOL), value, Const(0, expr.dtype), expr.dtype)
    return value


def _not_negative(condition: Expr) -> frozenset[SizeExpr]:
    """What a condition on indices says is 0 or more."""
    match condition:
        case Binary(op="&&"):
            return _not_negative(condition.left) | _not_negative(condition.right)
        case Binary(op="<" | "<=" | ">" | ">=") if condition.left.dtype is condition.right.dtype is DType.INT64:
            small, large = from_expr(condition.left), from_expr(condition.right)
            if condition.op.startswith(">"):
                small, large = large, small
            return frozenset((large - small - (0 if condition.op.endswith("=") else 1),))
        case _:
            return frozenset()


def _around(value: Expr, read: Read) -> list[Expr]:
    """The expressions around a read, wherever it stands, largest first; those inside subscripts of others are left out."""
    found: list[tuple[int, Expr]] = []

    def visit(node: Expr) -> tuple[int, bool]:
        inside = [] if isinstance(node, Read) else [visit(child) for child in children(node)]
        size, has = 1 + sum(size for size, _ in inside), node == read or any(has for _, has in inside)
        if has:
            found.append((size, node))
        return size, has

    visit(value)
    return [node for _, node in sorted(found, key=lambda each: -each[0])]


def reads_by_data(expr: Expr) -> bool:
    """Whether what an expression reads depends on elements of tensors; an expression that is a subscript reads them itself."""
    subscripts = (index for node in walk(expr) if isinstance(node, Read) for index in node.indices)
    return any(map(has_read, subscripts))


def _with_conditions(value: Expr, tensor: str) -> Expr | None:
    """The largest choice by conditions on indices that is all about the reads of a tensor, or the read itself.

    `None` if they do not stand in one place.
    """
    if isinstance(value, Read) and value.tensor == tensor:
        return value
    inside = [child for child in children(value) if _mentions(child, tensor)]
    if isinstance(value, Select):
        alone = all(node.tensor == tensor for node in walk(value) if isinstance(node, Read))
        if alone and not has_read(value.condition) and _is_choice(value):
            return value
    return _with_conditions(inside[0], tensor) if len(inside) == 1 else None


def _is_always_read(value: Expr, place: Expr) -> bool:
    """Whether no condition outside of a place decides that it is not needed, and perhaps not there."""
    match value:
        case _ if value == place:
            return True
        case Select():
            chosen = place in walk(value.then) or place in walk(value.otherwise)
            return not chosen and _is_always_read(value.condition, place)
        case Binary(op="&&" | "||"):
            return place not in walk(value.right) and _is_always_read(value.left, place)
        case _:
            return all(_is_always_read(child, place) for child in children(value) if place in walk(child))


def _is_choice(value: Expr) -> bool:
    """Whether a value is a read or a constant, chosen by conditions: nothing that would be computed earlier than asked for."""
    match value:
        case Select():
            return _is_choice(value.then) and _is_choice(value.otherwise)
        case _:
            return isinstance(value.operand if isinstance(value, Cast) else value, Read | Const)


def _mentions(expr: Expr, tensor: str) -> bool:
    return any(isinstance(node, Read) and node.tensor == tensor for node in walk(expr))


# --- sums ------------------------------------------------------------------------------------------------------------


def _sum_of(expr: Expr) -> tuple[Sum, SizeExpr] | None:
    """The sum in an expression that is one, and what else is in it; an index with a step is a sum only beside another one."""
    if expr.dtype is not DType.INT64:
        return None
    rest, found = from_expr(expr), list[tuple[str, int]]()
    for product, weight in rest.ordered():
        match product:
            case (Name(kind="index", name=name),):
                found.append((name, weight))
                rest = rest - index(name) * weight
            case _:
                pass
    is_sum = len(found) > 1 or [weight for _, weight in found] == [1]
    return (tuple(sorted(found)), rest) if is_sum and not rest.indices else None


def _collect(expr: Expr, found: dict[Sum, None]) -> None:
    whole = _sum_of(expr)
    if whole is not None:
        found[whole[0]] = None
    else:
        for child in children(expr):
            _collect(child, found)


def _with_sums(expr: Expr, names: Mapping[Sum, str]) -> Expr:
    """The expression with an index in the place of every sum."""
    whole = _sum_of(expr)
    if whole is None:
        return rebuild(expr, tuple(_with_sums(child, names) for child in children(expr)))
    return to_expr(index(names[whole[0]]) + whole[1])


def _expression(total: Sum) -> Expr:
    return to_expr(sum((index(name) * weight for name, weight in total), constant(0)))


# --- where a sum begins and ends -------------------------------------------------------------------------------------


def _has_no_gaps(total: Sum, domains: Domains, length: int) -> bool:
    """Whether the sum takes every value between its ends: indices with a step are filled by those without.

    Args:
        length: at least so many values has an index of which it is not known.
    """
    if any(low.indices or high.indices for low, high in (domains[name] for name, _ in total)):
        return False
    reach = 1
    for name, weight in sorted(total, key=lambda each: abs(each[1])):
        if abs(weight) > reach:
            return False
        low, high = domains[name]
        extent = high - low
        reach += abs(weight) * ((extent.constant if extent.is_constant else length) - 1)
    return True


def _is_inside(subscript: Expr, bounds: tuple[SizeExpr, SizeExpr], domains: Domains) -> bool:
    """Whether a subscript is inside at every element of the copy: a remainder, between two limits, or a sum with ends inside."""
    low, high = bounds
    found = interval(from_expr(subscript), {name: (first, end - 1) for name, (first, end) in domains.items()})
    if found.lower is None or found.upper is None:
        return False
    return nonnegative(found.lower - low) and nonnegative(high - 1 - found.upper)


def _bounds(total: Sum, domains: Domains) -> tuple[SizeExpr, SizeExpr]:
    low, last = constant(0), constant(0)
    for name, weight in total:
        first, end = domains[name]
        near, far = (first, end - 1) if weight > 0 else (end - 1, first)
        low, last = low + near * weight, last + far * weight
    return low, last + 1
