"""A call of another def, inlined: the callee's statements with fresh names, its sizes replaced by the caller's extents.

A call means what it means from Python: a received tensor starts at index 0 again. So an argument that the caller computed, whose
origin may be elsewhere, enters as a view of its storage, and so does every result on its way back.

Worked example: `H = layer(X, W)` adds the temporary `layer.R` with the callee's statements on it, and `H` as a view of `layer.R`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import Diagnostic, Span, codes
from tc_jupyter.diagnostics.work import spend

from .expr import Binary, Cast, Const, DType, Expr, Read, Size, int64, rewrite
from .extents import difference, solutions
from .integers import maximum, minimum
from .program import FOLD_LEFT, FOLD_RIGHT, Equality, Index, Program, Statement, Tensor
from .typing import limits_of

STEPS_PER_NODE = 8  # to make it anew
STEPS_PER_STATEMENT = 50  # beside its nodes
CHARACTERS_PER_STEP = 16  # of the names of copies, which become longer with each call around a call


@dataclass(frozen=True, slots=True)
class Passed:
    """What a caller passes for one parameter.

    Attributes:
        name: name in the caller.
        dims: its extents in the caller.
        computed: a statement of the caller wrote it, so its origin may be other than 0.
        scalar: its value, for rank 0.
        span: where it is passed.
    """

    name: str
    dtype: DType
    dims: tuple[Expr, ...]
    computed: bool
    scalar: Expr | None
    span: Span

    @property
    def is_size(self) -> bool:
        """Whether it is made of sizes and literals: such a number may be passed for every type of integers that holds it."""
        return self.scalar is not None and not isinstance(self.scalar, Read)

    @property
    def stored(self) -> Passed:
        """The same as it is stored: complex numbers as pairs."""
        return replace(self, dtype=self.dtype.part, dims=(*self.dims, int64(2))) if self.dtype.is_complex else self


@dataclass(frozen=True, slots=True)
class Inlined:
    """What a call adds to the caller.

    Attributes:
        results: the callee's result tensors under their fresh names, in order of its signature.
        contradictions: sizes that differ for every call: argument number, text.
    """

    tensors: tuple[Tensor, ...]
    statements: tuple[Statement, ...]
    equalities: tuple[Equality, ...]
    results: tuple[Tensor, ...]
    contradictions: tuple[tuple[int, str], ...]


def cannot_be_called(name: str, reason: Diagnostic | None) -> str:
    """What is said of a call of a function of another cell; the reason is one of that function."""
    if reason is None:
        return f"`{name}` cannot be called with these arguments"
    arguments = "" if reason.code is codes.STALE_CALLER else " with these arguments"
    return f"`{name}` cannot be called{arguments}: {reason.message}"


def inline_call(callee: Program, passed: Sequence[Passed], prefix: str, span: Span) -> Inlined:
    """The parts of `callee` as they stand in a caller.

    Args:
        passed: one per parameter, with the ranks and element types that the callee declares.
        prefix: fresh in the caller; names become `prefix.T`.
        span: of the call; every node of the copy has it.
    """
    sizes, equalities, contradictions = _unify(callee, passed, span)
    views: list[Tensor] = []
    tensors: dict[str, str] = {}
    scalars: dict[str, Expr] = {}
    for name, argument in zip(callee.parameters, passed, strict=True):
        if argument.scalar is not None:
            scalars[name] = argument.scalar
        elif argument.computed or callee.tensor(name).box is not None:
            view = f"{prefix}.{name}"
            views.append(
                Tensor(view, argument.dtype, len(argument.dims), "temporary", view_of=argument.name, span=span)
            )
            tensors[name] = view
        else:
            tensors[name] = argument.name
    own = [tensor for tensor in callee.tensors if tensor.name not in callee.parameters]
    tensors |= {tensor.name: f"{prefix}.{tensor.name}" for tensor in own}
    copy = _Copy(tensors, sizes | _extent_names(callee, own, tensors), scalars, span)
    copied = [copy.tensor(tensor) for tensor in own]
    by_name = {tensor.name: tensor for tensor in copied}
    given = {f"{prefix}.{name}": callee.tensor(name).box for name in callee.parameters}
    views = [replace(view, box=copy.box(given[view.name])) for view in views]
    return Inlined(
        (*views, *copied),
        tuple(copy.statement(statement, prefix) for statement in callee.statements),
        (*equalities, *held_numbers(callee, passed), *(copy.equality(equality) for equality in callee.equalities)),
        tuple(by_name[tensors[name]] for name in callee.results),
        tuple(contradictions),
    )


def _unify(
    callee: Program, passed: Sequence[Passed], span: Span
) -> tuple[dict[str, Expr], list[Equality], list[tuple[int, str]]]:
    """The callee's sizes in the caller's terms; what must be equal; what cannot be."""
    sizes: dict[str, Expr] = {}
    first: dict[str, str] = {}
    equalities: list[Equality] = []
    contradictions: list[tuple[int, str]] = []
    formals = [callee.tensor(name) for name in callee.parameters]
    scalars = {
        formal.name: argument.scalar
        for formal, argument in zip(formals, passed, strict=True)
        if argument.scalar is not None
    }

    def compare(number: int, wanted: Expr, actual: Expr, reason: str) -> None:
        if wanted == actual:
            return
        if isinstance(wanted, Const) and isinstance(actual, Const):
            contradictions.append((number, f"{reason}: {wanted.value} and {actual.value}"))
        else:
            equalities.append(Equality(wanted, actual, "call", reason, span))

    places = [
        (number, argument.dims[dimension], formal, f"dimension {dimension} of `{argument.name}`")
        for number, argument in enumerate(passed)
        for dimension, formal in enumerate(formals[number].dims or ())
    ]
    for number, actual, formal, place in places:
        if isinstance(formal, Size) and formal.name not in sizes:
            sizes[formal.name] = actual
            first[formal.name] = place
        elif isinstance(formal, Size):
            reason = f"`{formal.name}` of `{callee.name}` is {first[formal.name]} and {place}"
            compare(number, sizes[formal.name], actual, reason)
    given = dict(zip(callee.parameters, passed, strict=True))
    for found in solutions(formals)[0]:
        copy = _Copy({}, sizes, scalars, span)
        extent = difference(given[found.tensor].dims[found.dimension], copy.expr(found.rest))
        factor = copy.expr(found.factor)
        sizes[found.name] = extent if factor == int64(1) else Binary("//", extent, factor, DType.INT64, span)
    copy = _Copy({}, sizes, scalars, span)
    for number, actual, formal, place in places:
        if not isinstance(formal, Size):
            compare(
                number, copy.expr(formal), actual, f"{place} is declared `{_shown(formal, callee)}` by `{callee.name}`"
            )
    return sizes, equalities, contradictions


def held_numbers(callee: Program, passed: Sequence[Passed]) -> Iterator[Equality]:
    """What the types of the callee's numbers demand of the sizes that are passed for them, as they do of a call from Python."""
    for name, argument in zip(callee.parameters, passed, strict=False):
        dtype, value = callee.tensor(name).dtype, argument.scalar
        if value is None or not argument.is_size or not dtype.is_integer:
            continue
        low, high = dtype.limits
        least, most = limits_of(value)
        if low <= least and most <= high:
            continue
        held = minimum(maximum(value, int64(low)), int64(min(high, DType.INT64.limits[1])))
        reason = f"`{name}` of `{callee.name}` is a number of type {dtype.value}, from {low} to {high}"
        yield Equality(held, value, "number", reason, argument.span)


def _shown(formal: Expr, callee: Program) -> str:
    """A dimension as it was written."""
    return str(formal.value) if isinstance(formal, Const) else callee.source.slice(formal.span) or "otherwise"


def _extent_names(callee: Program, own: list[Tensor], tensors: Mapping[str, str]) -> dict[str, Expr]:
    """Sizes that only name the extent of a result, as that extent."""
    names: dict[str, Expr] = {}
    for tensor in own:
        for dimension, declared in enumerate(tensor.declared or ()):
            if isinstance(declared, Size) and "." not in declared.name and declared.name not in callee.sizes:
                names.setdefault(declared.name, Size(f"{tensors[tensor.name]}.{dimension}"))
    return names


@dataclass(frozen=True, slots=True)
class _Copy:
    """How names of the callee are called in the caller."""

    tensors: Mapping[str, str]
    sizes: Mapping[str, Expr]
    scalars: Mapping[str, Expr]
    span: Span

    def expr(self, expr: Expr) -> Expr:
        return rewrite(expr, self.rule)

    def rule(self, node: Expr) -> Expr | None:
        """One node renamed and placed at the call."""
        spend(STEPS_PER_NODE)
        match node:
            case Size() if node.name in self.sizes:
                return replace(self.sizes[node.name], span=self.span)
            case Size() if "." in node.name:
                tensor, _, dimension = node.name.rpartition(".")
                return Size(f"{self.tensors.get(tensor, tensor)}.{dimension}", self.span)
            case Read() if node.tensor in self.scalars:
                value = self.scalars[node.tensor]
                value = value if value.dtype is node.dtype else Cast(value, node.dtype)
                return replace(value, span=self.span)
            case Read():
                border = node.border and replace(node.border, written=tuple(map(self.expr, node.border.written)))
                return replace(node, tensor=self.tensors[node.tensor], span=self.span, border=border)
            case _:
                return replace(node, span=self.span)

    def box(self, box: tuple[tuple[Expr, Expr], ...] | None) -> tuple[tuple[Expr, Expr], ...] | None:
        return None if box is None else tuple((self.expr(lower), self.expr(upper)) for lower, upper in box)

    def tensor(self, tensor: Tensor) -> Tensor:
        spend(STEPS_PER_NODE + len(self.tensors[tensor.name]) // CHARACTERS_PER_STEP)
        return replace(
            tensor,
            name=self.tensors[tensor.name],
            kind="temporary",
            dims=None if tensor.dims is None else tuple(map(self.expr, tensor.dims)),
            box=self.box(tensor.box),
            declared=None if tensor.declared is None else tuple(map(self.expr, tensor.declared)),
            starts=None if tensor.starts is None else tuple(each and self.expr(each) for each in tensor.starts),
            view_of=None if tensor.view_of is None else self.tensors.get(tensor.view_of, tensor.view_of),
            span=self.span,
        )

    def index(self, index: Index) -> Index:
        where, ends = (
            None if pair is None else (self.expr(pair[0]), self.expr(pair[1])) for pair in (index.where, index.ends)
        )
        return replace(index, where=where, ends=ends, span=self.span)

    def statement(self, statement: Statement, prefix: str) -> Statement:
        """A copy; a first statement without `!` starts from the identity, for no `out=` is passed."""
        spend(STEPS_PER_STATEMENT + len(prefix) // CHARACTERS_PER_STEP)
        return replace(
            statement,
            name=f"{prefix}.{statement.name}",
            target=self.tensors[statement.target],
            indices=tuple(map(self.index, statement.indices)),
            accumulate=statement.accumulate and not statement.initialize,
            value=self.expr(statement.value),
            exists=tuple(map(self.expr, statement.exists)),
            left=tuple(map(self.expr, statement.left)),
            filters=tuple(map(self.expr, statement.filters)),
            block=f"{prefix}.{statement.block}" if statement.block else "",
            ahead=tuple(self.tensors[name] for name in statement.ahead),
            left_span=self.span,
            span=self.span,
            combine=None if statement.combine is None else rewrite(statement.combine, self.combining),
        )

    def combining(self, node: Expr) -> Expr | None:
        """One node of a combining expression; its operands are the same everywhere."""
        return node if isinstance(node, Read) and node.tensor in (FOLD_LEFT, FOLD_RIGHT) else self.rule(node)

    def equality(self, equality: Equality) -> Equality:
        return replace(equality, left=self.expr(equality.left), right=self.expr(equality.right), span=self.span)
