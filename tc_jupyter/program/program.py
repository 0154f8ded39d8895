"""The meaning of a def, for both languages: tensors and statements with explicit types, without sugar.

What the checkers have already done: names are resolved, lets are substituted, calls of other defs are inlined, every
expression is typed, every `where` bound is an integer expression over sizes and integer scalars.

Worked example: `def mv(float(R,C) A, float(C) B) -> (o) { o(i) +=! A(i,j) * B(j) }` becomes a `Program` with sizes `R, C`,
tensors `A, B, o` and one `Statement` with target `o`, operator `+`, indices `i` (output) and `j` (reduction).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import index
from typing import SupportsIndex

import numpy as np

from tc_jupyter.diagnostics import NO_SPAN, SourceText, Span, shown_value

from .expr import Binary, Const, DType, Expr, IndexVar, Read, Select, int64, walk


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor or scalar of a def.

    Attributes:
        kind: `input` (parameter), `output` (result) or `temporary`.
        dims: for inputs one integer expression per dimension, of sizes and integer scalars. For a computed tensor `None`: the first
            statement that writes it fixes its box; its extents are known in expressions as `Size("T.0")`, ... .
        box: only for tensors whose box is given and not inferred: lower and upper (excluded) expression per dimension. Of an input
            that has one (`float(1:N) X`) `dims` are the differences.
        declared: declared result dimensions (`-> (float(M,N) C)`) or `None`; each must equal the inferred extent. A name that
            occurs nowhere else is a name for that extent.
        starts: declared first indices of a result (`-> (float(1:M) C)`), `None` for a dimension that may start anywhere.
        view_of: this tensor is the storage of another one, received by a caller: same elements, every origin reset to 0.
        pairs: along the last dimension, which has two elements, are the real and the imaginary part of complex numbers.
    """

    name: str
    dtype: DType
    rank: int
    kind: str
    dims: tuple[Expr, ...] | None = None
    box: tuple[tuple[Expr, Expr], ...] | None = None
    declared: tuple[Expr, ...] | None = None
    starts: tuple[Expr | None, ...] | None = None
    view_of: str | None = None
    span: Span = field(default=NO_SPAN, compare=False)
    pairs: bool = False

    @property
    def element(self) -> DType:
        """The type of an element as the text and Python see it."""
        return self.dtype.of_pairs if self.pairs else self.dtype

    @property
    def written_rank(self) -> int:
        """The number of dimensions that the text and Python see."""
        return self.rank - self.pairs


@dataclass(frozen=True, slots=True)
class Index:
    """An index variable of a statement.

    Attributes:
        kind: `output` (on the left side) or `reduction`.
        where: lower and upper (excluded) bound of a `where` clause, integer expressions over sizes and scalars, or `None`.
        ends: the same of a reduction index, where other indices or elements are in them: they differ from point to point.
    """

    name: str
    kind: str
    where: tuple[Expr, Expr] | None = None
    span: Span = field(default=NO_SPAN, compare=False)
    ends: tuple[Expr, Expr] | None = None


FOLD_LEFT, FOLD_RIGHT = "fold.left", "fold.right"
"""Names of the two operands in `Statement.combine`: `Read(FOLD_LEFT, ())` is the accumulator."""


@dataclass(frozen=True, slots=True)
class Reducer:
    """A function of numbers as a reducer: `A(n), S(n), C(n) moments=! X(n, m)`.

    Attributes:
        types: of the components.
        combine: the components of what two are together, of `Read(FOLD_LEFT, (k,))` and `Read(FOLD_RIGHT, (k,))`.
        identity: the components of what changes nothing.
        given, lifted: the components of a value, of `Read(name, ())` for each given name; none where values are components.
    """

    name: str
    types: tuple[DType, ...]
    combine: tuple[Expr, ...]
    identity: tuple[Const, ...]
    given: tuple[str, ...] = ()
    lifted: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Statement:
    """`target(indices) operator value`: one independent point per value of the output indices, combined over the others.

    Attributes:
        name: unique in the program: the target, then `C#2`, `C#3` for later statements on it. Also the name of its stage.
        indices: output indices in left-side order, then reduction indices in order of first occurrence.
        left: the subscripts of the left side, where one of them is no index of its own; else empty. A dimension with another
            subscript has an output index of its own, and a point takes part where each such index is equal to its subscript
            (`left_sides`): in `H(X(i)) +=! 1` the output index `at` runs over the elements of `H`, and `i` is a reduction index.
        unique: the user's word that no two points have the same left side; looked at before anything is written.
        left_span: the place of the left side.
        operator: `=`, or the reduction `+`, `*`, `min`, `max`, or `fold` with the function `combine`.
        initialize: the operator has `!`, or it has none but nothing was written before and no array is accumulated into.
        accumulate: non-`!` reduction that combines onto present content (earlier statement, or the array passed as `out=`).
        value: the right side in the type of the accumulator (`Tensor.dtype.compute`); stored as `Tensor.dtype`.
        exists: expressions of `exists` clauses: their reads take part in inference and must be in bounds; never evaluated.
        text: the statement as written, for comments in generated code.
        combine: only for `fold` (associative and commutative by the user's word, which is tested): the new content as an expression
            of `Read(FOLD_LEFT, ())`, the present content, and `Read(FOLD_RIGHT, ())`, the value of a point.
        identity: of a `fold`, where there is one; else it always accumulates onto what an earlier statement wrote.
        part: of a `fold` of several components, which are combined together, the output index over them, the first one. Operands
            are `Read(FOLD_LEFT, (k,))` then, and `combine`, `identity` and `value` are those of the component at this index.
        filters: conditions as clauses: points where one of them does not hold are left out. Each is guarded by those before it.
        needs_points: combining nothing is an error of the call, for there is no position then.
        order: for a statement that reads elements of its target which it has made before: the output indices whose values are
            taken one after the other, outermost first, each with 1 for upwards and -1 for downwards. Points that differ in
            other indices alone are independent.
        block: the name of the block (`along t in 0:T { ... }`) whose statements are done in turns for each value of its steps,
            as in `t,i#0`: the steps, with commas between, and a number. Copies of a def have a name before it. It is empty for
            a statement of its own.
        ahead: tensors that this statement or a later one of its block makes. What is read of them gives no index its range.
    """

    name: str
    target: str
    indices: tuple[Index, ...]
    operator: str
    initialize: bool
    accumulate: bool
    value: Expr
    exists: tuple[Expr, ...] = ()
    text: str = ""
    span: Span = field(default=NO_SPAN, compare=False)
    combine: Expr | None = None
    identity: Expr | None = None
    part: str = ""
    left: tuple[Expr, ...] = ()
    unique: bool = False
    left_span: Span = field(default=NO_SPAN, compare=False)
    needs_points: bool = False
    order: tuple[tuple[str, int], ...] = ()
    filters: tuple[Expr, ...] = ()
    block: str = ""
    ahead: tuple[str, ...] = ()

    @cached_property
    def output_indices(self) -> tuple[Index, ...]:
        """Indices on the left side, in order of the target's dimensions."""
        return tuple(index for index in self.indices if index.kind == "output")

    @cached_property
    def reduction_indices(self) -> tuple[Index, ...]:
        """Indices that are combined over."""
        return tuple(index for index in self.indices if index.kind == "reduction")

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The value; where the last output index chooses between two, as between the parts of a complex number, both."""
        match self.value:
            case Select(Binary("==", IndexVar(name), Const(0)), then, otherwise) if self.output_indices[-1:]:
                index = self.output_indices[-1]
                if index.name == name and index.where == (int64(0), int64(2)):
                    return then, otherwise
            case _:
                pass
        return (self.value,)

    @cached_property
    def computed(self) -> tuple[tuple[Index, Expr], ...]:
        """The dimensions whose subscript is no index of its own: their output index, and the subscript."""
        pairs = zip(self.output_indices, self.left, strict=False)
        return tuple((index, at) for index, at in pairs if not (isinstance(at, IndexVar) and at.name == index.name))

    @cached_property
    def computed_indices(self) -> frozenset[str]:
        """The names of the output indices of computed dimensions, which nobody has written."""
        return frozenset(index.name for index, _ in self.computed)

    @cached_property
    def inside(self) -> tuple[Expr, ...]:
        """What holds at the points of ranges that differ from point to point, as `k < i + 1`; what others need is first."""
        found: list[Expr] = []
        waiting = {each.name: each.ends for each in self.indices if each.ends is not None}
        while waiting:
            for name, (lower, upper) in list(waiting.items()):
                used = {node.name for end in (lower, upper) for node in walk(end) if isinstance(node, IndexVar)}
                if not used & waiting.keys():
                    found += _between(lower, IndexVar(name), upper)
                    del waiting[name]
        return tuple(found)

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """Under which conditions a point of the ranges takes part, each guarded by those before it."""
        return (*self.inside, *self.filters)

    def reads(self) -> Iterator[Read]:
        """All reads of tensors in the value, on the left side and in conditions, subscripts included."""
        parts = (*self.left, self.value, *self.conditions)
        return (node for expr in parts for node in walk(expr) if isinstance(node, Read))

    @property
    def self_reads(self) -> tuple[Read, ...]:
        """The reads of elements of the target that points before have made; none where the points are independent."""
        return tuple(read for read in self.reads() if read.tensor == self.target) if self.order else ()

    @property
    def steps(self) -> tuple[tuple[str, int], ...]:
        """The part of the order that all statements of the block have: its steps."""
        return turns(self.block, self.order)

    def mapped(self, change: Callable[[Expr], Expr]) -> Statement:
        """The statement with all expressions changed that its points evaluate; what a reduction combines with stays."""

        def pair(ends: tuple[Expr, Expr] | None) -> tuple[Expr, Expr] | None:
            return None if ends is None else (change(ends[0]), change(ends[1]))

        return replace(
            self,
            indices=tuple(replace(each, where=pair(each.where), ends=pair(each.ends)) for each in self.indices),
            value=change(self.value),
            exists=tuple(map(change, self.exists)),
            left=tuple(map(change, self.left)),
            filters=tuple(map(change, self.filters)),
        )

    @property
    def parts_and_ends(self) -> Iterator[Expr]:
        """All expressions that its points evaluate, ends of ranges among them."""
        yield from (self.value, *self.exists, *self.left, *self.filters)
        for each in self.indices:
            yield from (*(each.where or ()), *(each.ends or ()))

    def is_made(self, tensor: str) -> bool:
        """Whether elements of a tensor are made in order while this statement runs: by itself, or by its block."""
        return bool(self.order) and (tensor == self.target or tensor in self.ahead)

    @cached_property
    def tensors_read(self) -> tuple[str, ...]:
        """Names of the tensors in the value, on the left side and in conditions, in order of occurrence."""
        return tuple(dict.fromkeys(read.tensor for read in self.reads()))

    @cached_property
    def tensors_that_decide(self) -> tuple[str, ...]:
        """Names of the tensors whose elements say where it reads or writes, and whether it does: in subscripts and conditions."""
        found = [*self.left, *self.conditions, *(end for each in self.indices for end in each.ends or ())]
        for node in (node for expr in (self.value, *found) for node in walk(expr)):
            match node:
                case Read():
                    found += node.indices
                case Select():
                    found.append(node.condition)
                case Binary(op="&&" | "||"):
                    found.append(node.left)
                case _:
                    pass
        return tuple(dict.fromkeys(node.tensor for expr in found for node in walk(expr) if isinstance(node, Read)))


def turns(block: str, order: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """The part of an order that all statements of a block have."""
    return order[: 1 + block.rpartition("#")[0].count(",")] if block else ()


def power_of(block: str) -> str:
    """The def that the steps of a block are applications of, as those of `f^n`; nothing for a block of a text."""
    called, _, step = block.rpartition("#")
    return "" if step.isdigit() else called.rpartition(".")[2].partition("#")[0]


def made_from(targets: Sequence[str], place: int) -> tuple[str, ...]:
    """What the statement at a place or a later one makes, and no earlier one; `targets` are those of all statements of a block."""
    early = {*targets[:place]} - {targets[place]}
    return tuple(dict.fromkeys(each for each in targets[place:] if each not in early))


def _between(lower: Expr, index: IndexVar, upper: Expr) -> list[Expr]:
    """That an index is inside of its range; an end that is the same everywhere is that of the whole range, unless elements say."""
    tests = [Binary("<=", lower, index, DType.BOOL), Binary("<", index, upper, DType.BOOL)]
    parts = [list(walk(end)) for end in (lower, upper)]
    if any(isinstance(node, Read) and node.indices for each in parts for node in each):
        return list[Expr](tests)
    moves = [any(isinstance(node, IndexVar) for node in each) for each in parts]
    return [test for test, moving in zip(tests, moves, strict=True) if moving]


def as_size(name: str, value: object, scalar: DType | None = None) -> int:
    """The value that was given for a size, or for an integer scalar of some type.

    Raises:
        TypeError: it is no integer.
        ValueError: it is negative or beyond 64 bits, or not of the type of the scalar.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name}={shown_value(value)}: a size is an integer")
    number = index(value)
    low, high = (scalar or DType.INT64).limits
    if scalar is None and number < 0:
        raise ValueError(f"{name}={shown_value(number)}: a size is not negative")
    if not low <= number <= high:
        fits = "a size has at most 64 bits" if scalar is None else f"`{scalar.value}` holds {low} to {high}"
        raise ValueError(f"{name}={shown_value(number)}: {fits}")
    return number


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """What one call tells of an argument: element type, rank, and, if asked for, the extents."""

    dtype: DType
    rank: int
    extents: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Equality:
    """Two extents that must be equal: declared result dimension and inferred one, or caller's and callee's (TC205, TC215, TC605).

    Or a size that is passed for a number, and the same limited to what the type of that number holds (TC212, TC607).

    Attributes:
        reason: what is compared, for the message: "`C` dimension 0 is declared `M`".
        kind: `declared`, `call` or `number`.
    """

    left: Expr
    right: Expr
    kind: str
    reason: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of another def that was inlined, kept for display (in JSON a statement with operator `call`)."""

    callee: str
    arguments: tuple[str, ...]
    targets: tuple[str, ...]
    position: int
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Partition:
    """Which part of a `%%sac` comprehension a statement computes, for display: statement name, number, text, state.

    `state` is `body`, `hole` (zero fill), `hidden` (covered by earlier partitions, no statement) or `chosen` (one statement
    computes all partitions of the comprehension at `whole`, and `inside`, over `axes`, says where this one would).
    """

    statement: str | None
    number: int
    text: str
    state: str
    box: tuple[tuple[Expr, Expr], ...]
    span: Span = field(default=NO_SPAN, compare=False)
    axes: tuple[str, ...] = ()
    inside: Expr | None = None
    whole: Span = NO_SPAN


@dataclass(frozen=True, repr=False)
class Program:
    """One def, checked.

    Attributes:
        name: name of the def as written.
        language: `tc` or `sac`.
        sizes: size names of the signature, in order of first occurrence.
        parameters, results: names of tensors, in order of the signature.
        tensors: all tensors; parameters first, then in order of first writing.
        statements: in text order; callees' statements stand where they are called.
        reducer: what a `reduce` says beside its function, which is the program of two operands.
    """

    name: str
    language: str
    sizes: tuple[str, ...]
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    statements: tuple[Statement, ...]
    equalities: tuple[Equality, ...] = ()
    calls: tuple[CallSite, ...] = ()
    partitions: tuple[Partition, ...] = ()
    source: SourceText = field(default=SourceText(""), compare=False)
    span: Span = field(default=NO_SPAN, compare=False)
    reducer: Reducer | None = None

    def __repr__(self) -> str:
        return f"<program {self.name}({', '.join(self.parameters)}) -> ({', '.join(self.results)})>"

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name; raises `KeyError`."""
        return self._tensors[name]

    def statement(self, name: str) -> Statement:
        """The statement (stage) of that name; raises `KeyError`."""
        return self._statements[name]

    @property
    def integer_scalars(self) -> tuple[str, ...]:
        """The parameters without dimensions whose values may take part in ranges, in order of the signature."""
        inputs = (self.tensor(name) for name in self.parameters)
        return tuple(each.name for each in inputs if not each.rank and each.dtype.is_integer)

    def numbers(self, given: Mapping[str, object]) -> dict[str, int]:
        """Values that were given by name, for sizes and for integer scalars.

        Raises:
            TypeError: a value is no integer.
            ValueError: there is no such size, or it does not have such a value.
        """
        scalars = {name: self.tensor(name).dtype for name in self.integer_scalars}
        for name in given:
            if name not in self.sizes and name not in scalars:
                known = ", ".join((*self.sizes, *scalars))
                raise ValueError(f"`{self.name}` has no size {name!r}; there are {known or 'none'}")
        return {name: as_size(name, value, scalars.get(name)) for name, value in given.items()}

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        return {tensor.name: tensor for tensor in reversed(self.tensors)}

    @cached_property
    def _statements(self) -> dict[str, Statement]:
        return {statement.name: statement for statement in reversed(self.statements)}
