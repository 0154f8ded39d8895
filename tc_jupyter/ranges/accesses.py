"""Accesses of a statement, the two bounds per dimension, and the guards that stand around them.

Worked example: `i > 0 ? X(i - 1) : 0` has one access, `X(i - 1)` under the guard `i - 1 >= 0`, with the bounds `i - 1 >= 0`
(which the guard discharges) and `N - 1 - (i - 1) >= 0`.

Source: `docs/ranges.md`, 'One statement, step by step' and 'Guards'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, assert_never

from tc_jupyter.diagnostics import NO_SPAN, Span
from tc_jupyter.program import (
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Statement,
    Unary,
)
from tc_jupyter.program.integers import index_names

from .convert import Scope, from_expr, to_condition
from .display import element_text, to_python
from .interval import Box, IndexBox, interval
from .size_expr import (
    Atom,
    Condition,
    Extremum,
    FloorDiv,
    SizeExpr,
    conjunction,
    has_data,
    nonnegative,
    of_atom,
    size,
)


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that holds (`polarity`) or does not hold wherever the access is made; `of_range`: it is an end of a range."""

    condition: Expr
    polarity: bool
    meaning: Condition
    of_range: bool = False

    @property
    def holds(self) -> Condition:
        """The condition as it is wherever the access is made."""
        return self.meaning if self.polarity else self.meaning.negated()

    @property
    def is_on_data(self) -> bool:
        """Whether elements of tensors decide it, or what has no formula."""
        return not self.meaning.alternatives()[1] or any(map(has_data, self.meaning.exprs()))


@dataclass(frozen=True, slots=True)
class Access:
    """One read of a tensor with indices.

    Attributes:
        exists: only named in an `exists` clause and never executed.
        hidden: so many subscripts at the end no text shows.
        begins: of a reduction that begins anew: it takes place for all results, also where they have no point.
    """

    tensor: str
    index: tuple[SizeExpr, ...]
    read: Read
    guards: tuple[Guard, ...] = ()
    exists: bool = False
    span: Span = field(default=NO_SPAN, compare=False)
    brackets: str = "()"
    hidden: int = 0
    begins: bool = False

    @property
    def condition(self) -> Condition:
        """All guards together."""
        return conjunction(guard.holds for guard in self.guards)

    @property
    def text(self) -> str:
        """The access as it would be written: `B(i + k)`, `X(i/2)`; in `%%sac` `B[i + k]`."""
        if self.read.border is not None:
            return self.read.border.text
        shown = [as_written(each) for each in self.index[: len(self.index) - self.hidden]]
        if shown and shown[0].endswith(".part"):  # of the state of a reducer, which nobody has written
            return element_text(self.tensor.rpartition(".")[0], shown[1:], self.brackets)
        return element_text(self.tensor, shown, self.brackets) if shown else self.tensor

    @property
    def tensor_parts(self) -> int:
        """How many dimensions before the others nobody has written: 1 for the state of a reducer, which is in parts."""
        return int(bool(self.index) and to_python(self.index[0]).endswith(".part"))

    def is_border(self, dimension: int) -> bool:
        """Whether a subscript may be outside as it is written, so that it gives no index its range."""
        return self.read.border is not None and dimension in self.read.border.dimensions


def as_written(e: SizeExpr) -> str:
    """An index expression in the notation of the language, where `/` rounds down."""
    return _with_abs(e).replace("//", "/")


def _with_abs(e: SizeExpr) -> str:
    """As `to_python`, but with `abs(x)` for `max(x, -x)`, which is not what the user wrote."""
    shown = e
    for mono, weight in e.terms.items():
        if len(mono) == 1 and (absolute := _absolute(mono[0])) is not None:
            shown = shown - of_atom(mono[0]) * weight + absolute * weight
    return to_python(shown)


def _absolute(atom: Atom) -> SizeExpr | None:
    """`max(x, 2*h - x)` as `abs(x - h) + h`, and `min` of them as `h - abs(x - h)`, where `abs(...)` is a name; else `None`."""
    if not isinstance(atom, Extremum) or len(atom.arguments) != 2:
        return None
    total, first = atom.arguments[0] + atom.arguments[1], atom.arguments[0]
    if not total.is_constant or total.offset % 2:
        return None
    half = total.offset // 2
    inside = min(map(to_python, (first - half, half - first)), key=lambda text: text[0] in "-0123456789")
    return size(f"abs({inside})") * (1 if atom.kind == "max" else -1) + half


@dataclass(frozen=True, slots=True)
class Bound:
    """One inequality `expr >= 0` of an access dimension.

    Attributes:
        limit: the lower bound of the tensor's box (`side` is `lower`) or its upper bound, excluded (`upper`).
        used: it shaped a range. discharged: the surrounding condition tests it.
    """

    expr: SizeExpr
    access: Access
    dimension: int
    side: Literal["lower", "upper"]
    limit: SizeExpr
    used: bool = False
    discharged: bool = False

    @property
    def text(self) -> str:
        """The inequality in terms of the indices: `i + j < J`."""
        e = _with_abs(self.access.index[self.dimension])
        return f"{to_python(self.limit)} <= {e}" if self.side == "lower" else f"{e} < {to_python(self.limit)}"


def accesses(statement: Statement, scope: Scope) -> tuple[Access, ...]:
    """All accesses on both sides and of the `exists` clauses, in text order, without repetitions.

    The two parts of a complex number are one access without the subscript that tells them apart.
    """
    found: dict[tuple[str, tuple[SizeExpr, ...], tuple[tuple[Condition, bool], ...], bool], Access] = {}
    around = guards_of(statement, scope)
    all_guards, ranges = around[-1], around[len(statement.inside)]
    values = statement.parts if statement.target in scope.pairs else (statement.value,)
    places = [
        *((expr, False, *all_guards) for expr in (*statement.left, *values)),
        *((expr, True, *ranges) for expr in statement.exists),
        *((expr, False, *at) for expr, at in zip(statement.conditions, around, strict=False)),
    ]
    for expr, exists, outer, inner in places:
        for read, guards, within in _reads(expr, outer, inner):
            index = _index(read, within)
            index = index[:-1] if read.tensor in scope.pairs else index
            if not index or (read.tensor in scope.pairs and _is_known(found.values(), read, index, guards, exists)):
                continue
            access = Access(read.tensor, index, read, guards, exists, read.span, scope.brackets)
            found.setdefault((read.tensor, index, tuple((g.meaning, g.polarity) for g in guards), exists), access)
    return tuple(found.values())


def _is_known(
    found: Iterable[Access], read: Read, index: tuple[SizeExpr, ...], guards: tuple[Guard, ...], exists: bool
) -> bool:
    """Whether an element is read under fewer conditions already: formulas of complex numbers read it several times."""
    return any(
        each.tensor == read.tensor
        and each.index == index
        and each.exists == exists
        and guards[: len(each.guards)] == each.guards
        for each in found
    )


def guards_of(statement: Statement, scope: Scope) -> list[tuple[tuple[Guard, ...], Scope]]:
    """The guards around each condition of a statement, which are those before it, and around the value, the last ones.

    Around an end of a range they are those on the indices that it needs: each call looks at all ends, also where another range
    leaves no point, or where this one begins behind all that it may be.
    """
    ends = {each.name: each.ends for each in statement.indices if each.ends is not None}
    held, under = list[Guard](), scope
    found: list[tuple[tuple[Guard, ...], Scope]] = []
    for number, condition in enumerate(statement.conditions):
        of_range = number < len(statement.inside)
        needed = needed_names(ends[_ended(condition)], ends) if of_range else None
        kept = [guard for guard in held if needed is None or index_names(guard.condition) <= needed]
        found.append((tuple(kept), under if len(kept) == len(held) else _under(scope, kept)))
        held.append(Guard(condition, True, to_condition(condition, found[-1][1]), of_range))
        under = under.under(held[-1].holds)
    return [*found, (tuple(held), under)]


def _under(scope: Scope, guards: Iterable[Guard]) -> Scope:
    for guard in guards:
        scope = scope.under(guard.holds)
    return scope


def _ended(condition: Expr) -> str:
    """The index whose range ends at `condition`, one of `Statement.inside`."""
    match condition:
        case Binary(op="<=", right=IndexVar(name=name)) | Binary(op="<", left=IndexVar(name=name)):
            return name
        case _:
            raise AssertionError(f"{condition} is no end of a range")


def needed_names(exprs: Iterable[Expr], ends: Mapping[str, tuple[Expr, Expr]]) -> frozenset[str]:
    """The indices in expressions, and those that say where the ranges of these begin and end."""
    names = frozenset[str]().union(*map(index_names, exprs))
    while (
        more := frozenset[str]().union(*(index_names(end) for name in names & ends.keys() for end in ends[name]))
        - names
    ):
        names |= more
    return names


def _index(read: Read, scope: Scope) -> tuple[SizeExpr, ...]:
    """The subscripts of a read. What a border divides by is 0 only where the dimension has no element, which is told otherwise."""
    border = read.border
    if border is None or not border.nonempty:
        return tuple(from_expr(i, scope) for i in read.indices)
    for subscript in border.written:
        from_expr(subscript, scope)
    quiet = replace(scope, divisors=None)
    return tuple(from_expr(i, quiet if k in border.nonempty else scope) for k, i in enumerate(read.indices))


def _reads(expr: Expr, guards: tuple[Guard, ...], scope: Scope) -> Iterator[tuple[Read, tuple[Guard, ...], Scope]]:
    """The reads of elements, with the guards around each and the scope of its indices."""
    match expr:
        case Const() | Size() | IndexVar():
            return
        case Read():
            if expr.indices:
                yield expr, guards, scope
            for inner in expr.indices:
                yield from _reads(inner, guards, scope)
        case Binary():
            yield from _reads(expr.left, guards, scope)
            if expr.op in ("&&", "||"):
                guard = Guard(expr.left, expr.op == "&&", to_condition(expr.left, scope))
                guards, scope = (*guards, guard), scope.under(guard.holds)
            yield from _reads(expr.right, guards, scope)
        case Select():
            meaning = to_condition(expr.condition, scope)
            yield from _reads(expr.condition, guards, scope)
            for polarity, chosen in ((True, expr.then), (False, expr.otherwise)):
                guard = Guard(expr.condition, polarity, meaning)
                yield from _reads(chosen, (*guards, guard), scope.under(guard.holds))
        case Unary() | Cast():
            yield from _reads(expr.operand, guards, scope)
        case Call():
            for argument in expr.arguments:
                yield from _reads(argument, guards, scope)
        case _:
            assert_never(expr)


def bounds_of(access: Access, box: Box) -> list[Bound]:
    """Two bounds per dimension of an access to a tensor with that box."""
    result: list[Bound] = []
    count = len(access.index) - access.hidden
    for dimension, (e, (lower, upper)) in enumerate(zip(access.index[:count], box.bounds[:count], strict=True)):
        result.append(Bound(e - lower, access, dimension, "lower", lower))
        result.append(Bound(upper - 1 - e, access, dimension, "upper", upper))
    return result


def write_access(statement: Statement, scope: Scope) -> Access:
    """What a statement writes as an access to its target, so that "fits into the box" is a bound like others."""
    subscripts = statement.left or tuple(IndexVar(index.name, index.span) for index in statement.output_indices)
    span = statement.left_span if statement.left else statement.span
    read = Read(statement.target, subscripts, DType.INT64, span)
    guards, within = guards_of(statement, scope)[-1]
    index = tuple(from_expr(subscript, within) for subscript in subscripts)
    hidden = int(statement.target in scope.pairs)
    return Access(statement.target, index, read, guards, span=span, brackets=scope.brackets, hidden=hidden)


def discharge(bound: Bound, where_box: IndexBox) -> bool:
    """Whether the guards around an access already test `bound` (`docs/ranges.md`, 'Guards').

    True if every alternative of the guards has a comparison `g >= 0` of sizes and indices with `expr - g >= 0` over the
    `where` ranges; an index of `expr - g` without a `where` range makes it False. A quotient counts as its numerator: `e//d >= a`
    is `e >= d*a`.
    """
    if not bound.access.guards:
        return False
    alternatives, _ = bound.access.condition.alternatives()
    expr = _multiplied_out(bound.expr)
    return all(any(_implies(_multiplied_out(g), expr, where_box) for g in each) for each in alternatives)


def _multiplied_out(e: SizeExpr) -> SizeExpr:
    """`e >= 0` as a comparison without its quotient, if that stands there once and is divided by a number of 1 or more.

    Worked example: `N - 1 - e//2 >= 0` says that `e//2 <= N - 1`, so `e <= 2*(N - 1) + 1`: `2*N - 1 - e >= 0`.
    """
    quotients = [(mono, c) for mono, c in e.terms.items() if any(isinstance(atom, FloorDiv) for atom in mono)]
    match quotients:
        case [((FloorDiv() as quotient,) as mono, (1 | -1) as sign)] if quotient.divisor.is_constant:
            divisor = quotient.divisor.offset
        case _:
            return e
    if divisor < 1:
        return e
    rest = (e - SizeExpr({mono: sign}, 0)) * divisor
    return _multiplied_out(rest + quotient.numerator if sign == 1 else rest + (divisor - 1) - quotient.numerator)


def _implies(g: SizeExpr, e: SizeExpr, where_box: IndexBox) -> bool:
    if has_data(g):
        return False
    gap = e - g
    if not gap.indices <= where_box.keys():
        return False
    low = interval(gap, where_box).lower
    return low is not None and nonnegative(low)
