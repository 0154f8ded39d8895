"""What one call tells (`Signature`), and what a function becomes for it (`Specialized`).

Worked example: two matrices of `float32` are `Signature((ArgumentType(FLOAT32, 2), ArgumentType(FLOAT32, 2)))`; sizes stay symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tc_jupyter.diagnostics import Code, Diagnostic, SourceText, Span
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_tree import SacFunction, SacParam, SacType

from .expr import DType, Expr
from .program import ArgumentType, Program
from .sac_sizes import Interval, evaluate


@dataclass(frozen=True, slots=True)
class Signature:
    """What one call tells: types of all arguments, and the elements (row-major) of those whose values are demanded for shapes.

    `values` pairs the position of an argument with its elements; the extents of such an argument must be given.
    """

    arguments: tuple[ArgumentType, ...]
    values: tuple[tuple[int, tuple[int | float | bool, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on sizes and scalar arguments that a call must fulfil, with the message that says so."""

    code: Code
    condition: Expr
    message: str
    shown: tuple[tuple[str, Expr], ...]
    span: Span
    help: str | None = None


@dataclass(frozen=True, slots=True)
class ResultInfo:
    """A result of the function: the tensor of the program that holds it, its type and rank; rank 0 is a scalar."""

    tensor: str
    dtype: DType
    rank: int
    declared: str


@dataclass(frozen=True, slots=True)
class Specialized:
    """A function for the ranks and types of one call.

    Attributes:
        program: `None` when there are errors or when more must be known (`needs_...`).
        diagnostics: errors, warnings and notes.
        checks: what a call must fulfil; `verify` does it.
        needs_extents: the extents of all arguments must be part of the signature.
        needs_values: positions of the arguments whose elements must be part of the signature.
    """

    program: Program | None
    diagnostics: tuple[Diagnostic, ...] = ()
    checks: tuple[Check, ...] = ()
    results: tuple[ResultInfo, ...] = ()
    needs_extents: bool = False
    needs_values: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is a program."""
        return self.program is not None

    def verify(
        self, sizes: Mapping[str, int], scalars: Mapping[str, int | float | bool] | None = None
    ) -> Diagnostic | None:
        """The first condition that these sizes and scalar arguments break, with its numbers, or nothing."""
        for check in self.checks:
            if not evaluate(check.condition, sizes, scalars or {}):
                shown = ", ".join(f"{label} is {_shown(expr, sizes, scalars or {})}" for label, expr in check.shown)
                message = f"{check.message}: {shown}" if shown else check.message
                return Diagnostic(check.code, check.span, message, help=check.help)
        return None


def _shown(expr: Expr, sizes: Mapping[str, int], scalars: Mapping[str, int | float | bool]) -> str:
    return str(evaluate(expr, sizes, scalars))


@dataclass(frozen=True, slots=True)
class Cell:
    """The functions that a text may call: its own by name (overloads in text order), and programs handed over by name.

    `known` maps a name to something with `program_for(arguments) -> Program | tuple[Diagnostic, ...]`, or to a `Program`.
    """

    functions: Mapping[str, tuple[SacFunction, ...]]
    source: SourceText
    known: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def defined(self) -> Mapping[str, tuple[SacFunction, ...]]:
        """Definitions by name; none are listed for a name of another cell, which means no built-in function either."""
        return {**dict.fromkeys(self.known, ()), **self.functions}


@dataclass(frozen=True, slots=True)
class SolvedPartition:
    """What specialisation found for a partition: bounds of the named indices, shape of the body, whether it inferred them."""

    bounds: tuple[Interval, ...]
    body_shape: tuple[Expr, ...]
    inferred: bool

    @property
    def body_rank(self) -> int:
        """The number of axes of the body."""
        return len(self.body_shape)


def select_overload(functions: Sequence[SacFunction], arguments: Sequence[ArgumentType]) -> SacFunction | None:
    """The most specific definition that takes these arguments, or `None`."""
    fitting = [
        f
        for f in functions
        if len(f.params) == len(arguments) and all(takes(p, a) for p, a in zip(f.params, arguments, strict=True))
    ]
    return max(fitting, key=lambda f: sum(specificity(p.type) for p in f.params), default=None)


def takes(param: SacParam, argument: ArgumentType) -> bool:
    """Whether a parameter accepts an argument of a call."""
    type_ = param.type
    if type_ is None or DType(BASES[type_.base]) is not argument.dtype:
        return False
    return fits_shape(type_, argument.rank, argument.extents)


def fits_shape(type_: SacType, rank: int, extents: Sequence[int | None] | None) -> bool:
    """Whether a type accepts this rank and the extents that are known."""
    if type_.shape == "*":
        return True
    if type_.shape == "+":
        return rank >= 1
    if len(type_.shape) != rank:
        return False
    wanted = zip(type_.shape, extents or type_.shape, strict=True)
    return all(a is None or b is None or a == b for a, b in wanted)


def specificity(type_: SacType | None) -> int:
    """How much the shape of a type says: of several fitting definitions the one that says most is called."""
    if type_ is None or type_.shape == "*":
        return 0
    if type_.shape == "+":
        return 1
    return 4 if isinstance(type_.shape, tuple) and type_.shape and None not in type_.shape else 3
