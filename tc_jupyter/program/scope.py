"""The names of a `%%tc` def while it is checked: sizes, tensors, defs; and the messages found so far.

Worked example: after `def f(float(N) X) -> (Y)` the scope knows the size `N` and the tensor `X`; `Y` is expected, but not written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, SourceText, Span, codes, nearest
from tc_jupyter.syntax import library_names, tree

from .expr import Binary, DType, Expr, Size, int64
from .extents import difference, sum_of
from .functions import TC_FUNCTIONS
from .typing import Typed


@lru_cache(maxsize=8)
def words_of(text: str) -> frozenset[str]:
    """The words of a text, of which every statement of a cell asks whether a name is free."""
    return frozenset(re.findall(r"\w+", text))


@dataclass(slots=True)
class TensorInfo:
    """A tensor of the def.

    Attributes:
        dtype, rank: `None` where a mistake was told already; checks about it stay silent then.
        dims: for inputs one expression per dimension; for computed tensors sizes named `T.0`, ... .
        written: a statement before the present one wrote it; inputs count as written.
        names: what it is, for messages: `parameter`, `result`, `temporary`.
        starts: the first indices of a parameter with a box.
        ahead: its type is known before the statement of a block that makes it.
        literal: what its first statement writes, while a later statement has still to say of which type that is.
    """

    name: str
    dtype: DType | None
    rank: int | None
    dims: tuple[Expr, ...]
    kind: str
    span: Span
    written: bool = False
    read: bool = False
    literal: Typed | None = None
    starts: tuple[Expr, ...] = ()
    ahead: bool = False

    @property
    def is_input(self) -> bool:
        """Whether it is a parameter."""
        return self.kind == "parameter"

    @property
    def has_dims(self) -> bool:
        """Whether its extents are known; not where the statement that makes it has a mistake."""
        return self.rank == len(self.dims)


@dataclass(slots=True)
class Suggestions:
    """How many did-you-means a cell may still ask for: a cell with thousands of unknown names stays in bounded time."""

    left: int = 50

    def nearest(self, name: str, candidates: Iterable[str]) -> str | None:
        """The closest candidate, while some are left."""
        if self.left <= 0:
            return None
        self.left -= 1
        return nearest(name, candidates)


@dataclass(slots=True)
class Scope:
    """Everything that is in scope in the statements of one def.

    Attributes:
        sizes: size names of the parameters, and where they stand.
        result_sizes: sizes that occur only in declared results: the tensor and dimension whose extent they name.
        result_starts: where one of those names the end of a box: its first index.
        result_parts: where one stands in an expression, `factor * name + rest`: the factor and the rest.
        defs: defs of the cell, with the place of their names.
        callable_names: defs of the cell and functions of earlier cells.
        results: names of results, written or not.
        later: names that some statement of the def writes.
        behind: where another parameter would stand; `None` if there is none before it.
        ranks_of: the ranks of the parameters and of the results of a def, if they are known.
    """

    source: SourceText
    diagnostics: list[Diagnostic]
    defs: dict[str, Span]
    callable_names: frozenset[str]
    suggestions: Suggestions = field(default_factory=Suggestions)
    sizes: dict[str, Span] = field(default_factory=dict[str, Span])
    result_sizes: dict[str, tuple[str, int, Span]] = field(default_factory=dict[str, tuple[str, int, Span]])
    result_starts: dict[str, Expr] = field(default_factory=dict[str, Expr])
    result_parts: dict[str, tuple[Expr, Expr]] = field(default_factory=dict[str, tuple[Expr, Expr]])
    tensors: dict[str, TensorInfo] = field(default_factory=dict[str, TensorInfo])
    results: dict[str, Span] = field(default_factory=dict[str, Span])
    later: dict[str, None] = field(default_factory=dict[str, None])
    used_sizes: set[str] = field(default_factory=set[str])
    unknown: set[str] = field(default_factory=set[str])
    behind: Span | None = None
    ranks_of: Callable[[str], tuple[tuple[int, ...], tuple[int, ...]] | None] = lambda _: None

    def whole_arguments(self, called: tree.Apply[tree.Expression], gives_number: bool = False) -> Fix | None:
        """A fix that passes `x`, where `x(i)` stands for a parameter of its rank; `None` where that is not meant.

        Args:
            gives_number: the call stands where it has to give one number.
        """
        ranks, edits = self.ranks_of(called.function.name), list[Edit]()
        if ranks is None or len(ranks[0]) != len(called.arguments) or (gives_number and ranks[1] != (0,)):
            return None
        for rank, argument in zip(ranks[0], called.arguments, strict=True):
            if not any(isinstance(node, tree.Apply) for node in tree.walk(argument)):
                continue
            if not isinstance(argument, tree.Apply) or argument.function.name not in self.tensors:
                return None
            names = {each.name for each in argument.arguments if isinstance(each, tree.Name)}
            indices = names - self.sizes.keys() - self.tensors.keys()
            if not rank == len(indices) == len(argument.arguments) == self.tensors[argument.function.name].rank:
                return None
            edits.append(Edit(argument.span, argument.function.name))
        return Fix("pass whole arrays", tuple(edits)) if edits else None

    def as_parameter(self, name: str) -> tuple[str, Fix | None]:
        """Help and fix that make an integer of a name a parameter; there is one fix in a def."""
        fix = None
        if self.behind is not None and name not in self.unknown:
            fix = Fix(f"make `{name}` a parameter", (Edit(self.behind, f", int32 {name}"),))
        self.unknown.add(name)
        return f"make `{name}` a parameter, as in `int32 {name}`", fix

    def report(
        self,
        code: codes.Code,
        span: Span,
        message: str,
        label: str = "",
        labels: tuple[Label, ...] = (),
        help: str | None = None,
        fix: Fix | None = None,
    ) -> None:
        """Add a message; a name that is unknown, and for which there is no fix, is told of once."""
        if code is codes.UNKNOWN_NAME and fix is None:
            name = self.source.slice(span)
            if name in self.unknown:
                return
            self.unknown.add(name)
        self.diagnostics.append(Diagnostic(code, span, message, label, labels, help, fix))

    def silently(self, check: Callable[[], Typed | None]) -> Typed | None:
        """The value of `check`; `None` if it has a mistake. No message is given, and what was told of stays as it was."""
        count, asked, unknown = len(self.diagnostics), self.suggestions.left, set(self.unknown)
        value = check()
        wrong = any(item.is_error for item in self.diagnostics[count:])
        del self.diagnostics[count:]
        self.suggestions.left, self.unknown = asked, unknown
        return None if wrong else value

    def told(self, code: codes.Code, span: Span) -> bool:
        """Whether there is a message of a kind at a place."""
        return any(each.code is code and each.span == span for each in self.diagnostics)

    def taken(self, name: str) -> tuple[str, Span] | None:
        """What a name stands for already, and where that was said."""
        if name in self.sizes:
            return "a size", self.sizes[name]
        if name in self.result_sizes:
            return "a size", self.result_sizes[name][2]
        if name in self.tensors:
            return f"a {self.tensors[name].kind}", self.tensors[name].span
        if name in self.results:
            return "a result", self.results[name]
        if name in self.defs:
            return "a def", self.defs[name]
        return None

    def unwritten(self, name: str) -> bool:
        """Whether a name is that of a tensor which no statement has written yet."""
        if name in self.tensors:
            return not self.tensors[name].written
        return name in self.results or name in self.later

    def size(self, name: str, span: Span) -> Expr | None:
        """The value of a size name; `None` where it is the extent of a result that is not written yet."""
        self.used_sizes.add(name)
        if name in self.sizes:
            return Size(name, span)
        tensor, dimension, _ = self.result_sizes[name]
        info = self.tensors.get(tensor)
        if info is None or not info.written:
            return None
        extent = Size(f"{tensor}.{dimension}", span)
        return self.found_size(name, extent)

    def found_size(self, name: str, extent: Expr) -> Expr:
        """The value of a size name that only results have, from the extent that its dimension has."""
        if name in self.result_parts:
            factor, rest = self.result_parts[name]
            multiple = difference(extent, rest)
            return multiple if factor == int64(1) else Binary("//", multiple, factor, DType.INT64)
        return sum_of(self.result_starts[name], extent) if name in self.result_starts else extent

    def readable(self, count: int) -> Iterable[str]:
        """Names that may stand before `(` with so many arguments, for did-you-mean."""
        yield from self.tensors
        yield from (name for name, each in TC_FUNCTIONS.items() if count == each.arity or each.variadic)
        yield from self.callable_names

    def did_you_mean(self, name: str, span: Span, candidates: Iterable[str]) -> tuple[str | None, Fix | None]:
        """Help and fix with the nearest of `candidates`; of `conv.vjp` the nearest of `conv`."""
        name, dot, derivative = name.partition(".")
        other = (
            library_names.plain_name(name, TC_FUNCTIONS)
            or library_names.RENAMED.get(name)
            or library_names.TC_TYPES.get(name)
        )
        close = other or self.suggestions.nearest(name, candidates)
        if close is None:
            return None, None
        close += dot + derivative
        return f"did you mean `{close}`?", Fix(f"replace it by `{close}`", (Edit(span, close),))

    def unknown_def(self, name: str, span: Span) -> None:
        """Report a name that is called as a def is, and that is none."""
        help, fix = self.did_you_mean(name, span, sorted(self.callable_names))
        self.report(codes.UNKNOWN_NAME, span, f"there is no def `{name}`", help=help, fix=fix)
