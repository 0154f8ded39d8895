"""Numbers of a call for which arithmetic that the ranges take to be exact would wrap around in a kernel.

Sizes are at most some billions, so `i*N + j` fits into 64 bits, and `I(j)*N / N` is `I(j)`. An array that repeats its elements (a
stride of 0) has any size, however: a call with one that is larger than what every expression of the def holds is looked at here.

Comes in: a program with its ranges. Goes out: a `Magnitudes`: up to which size nothing needs a look, and the look at a call.

Worked example: `1.0 / (N*N*N)` is sure to fit up to `N = 2**20`; beyond, with `N = 2**22`, the product is `2**66`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tc_jupyter.diagnostics import Diagnostic, codes
from tc_jupyter.program import (
    COMPARISONS,
    Binary,
    Call,
    Cast,
    DType,
    Expr,
    IndexVar,
    Leaves,
    Program,
    Read,
    Statement,
    Unary,
    children,
    intervals,
)
from tc_jupyter.program.integers import sizes_of

from .convert import from_expr, leaves_int64
from .display import to_python
from .inference import Ranges
from .size_expr import SizeExpr, nonnegative, size

SMALL = 1 << 10
"""What wraps around with sizes like these does so by its constants, as the multiplications of a hash do: it is meant."""
SURE = tuple(1 << bits for bits in (31, 24, 20, 16, 12, 10))
"""Tried in turn: up to which size an expression is sure to fit."""


@dataclass(frozen=True)
class Magnitudes:
    """How large the arithmetic of a def becomes."""

    program: Program
    ranges: Ranges

    @cached_property
    def believed(self) -> Mapping[str, tuple[Expr, ...]]:
        """The arithmetic of every statement that the ranges take to be exact."""
        found: dict[str, tuple[Expr, ...]] = {}
        for statement in self.program.statements:
            nodes = tuple(_exact(statement))
            meant = {id(node) for node in _beyond(statement, nodes, Leaves(sizes=SMALL))}
            found[statement.name] = tuple(node for node in nodes if id(node) not in meant)
        return found

    @cached_property
    def sure(self) -> int:
        """With sizes and ends of ranges up to this, nothing can wrap around."""
        return min(map(self._sure, self.program.statements), default=SURE[0])

    def _sure(self, statement: Statement) -> int:
        nodes = self.believed[statement.name]
        return next((size for size in SURE if not _beyond(statement, nodes, Leaves(sizes=size))), SMALL)

    @cached_property
    def limited(self) -> tuple[SizeExpr, ...]:
        """What must not exceed `sure`: sizes, upper ends, and lower ends that may be negative."""
        given = {name for tensor in self.program.tensors for dim in tensor.dims or () for name in sizes_of(dim)}
        ends = [size(name) for name in self.program.sizes if name in given]
        for r in (each for statement in self.program.statements for each in self.ranges.indices[statement.name]):
            ends += [] if r.upper is None else [r.upper]
            ends += [] if r.lower is None or nonnegative(r.lower) else [-r.lower]
        return tuple(end for end in dict.fromkeys(ends) if not (end.is_constant and end.offset <= self.sure))

    def problem(self, values: Mapping[str, int]) -> Diagnostic | None:
        """What may not fit into its type at a call with these sizes and scalars (TC502)."""
        for statement in self.program.statements:
            indices = {
                r.index: (r.lower.evaluate(values), r.upper.evaluate(values) - 1)
                for r in self.ranges.indices[statement.name]
                if r.lower is not None and r.upper is not None
            }
            if any(high < low for low, high in indices.values()):
                continue
            leaves = Leaves(known={**{name: (value, value) for name, value in values.items()}, **indices})
            if beyond := _beyond(statement, self.believed[statement.name], leaves):
                shortest = min(beyond, key=lambda node: node.span.end - node.span.start)
                return self._message(shortest, values)
        return None

    def _message(self, node: Expr, values: Mapping[str, int]) -> Diagnostic:
        text = to_python(from_expr(node.operand if isinstance(node, Cast) else node, self.ranges.scope))
        message = f"`{text}` may be a number here that {node.dtype.bits} bits do not hold"
        large = [name for name, value in values.items() if value > self.sure and "." not in name]
        given = ", ".join(f"`{name}` is {values[name]}" for name in large)
        help_ = "call with smaller sizes" + (f": {given}" if given else "")
        return Diagnostic(codes.TOO_LARGE, node.span, message, "too large", help=help_)


def _exact(statement: Statement) -> Iterator[Expr]:
    """Indices, sums, differences and products of 64 bits, and in positions also casts that are taken to change nothing."""
    stack = [(statement.value, False), *((each, True) for each in statement.exists)]
    while stack:
        node, position = stack.pop()
        match node:
            case IndexVar() | Binary(op="+" | "-" | "*") | Unary(op="-") | Call(function="abs"):
                taken = node.dtype in (DType.INT64, DType.UINT64) and not leaves_int64(node)
            case Cast():
                taken = position and node.dtype.is_integer and node.dtype.bits >= 32 and not _of_elements(node.operand)
            case _:
                taken = False
        if taken:
            yield node
        inside = position or isinstance(node, Read) or (isinstance(node, Binary) and node.op in COMPARISONS)
        stack.extend((each, inside) for each in children(node))


def _of_elements(expr: Expr) -> bool:
    """Whether a cast of this is not taken to change nothing: it has elements in it, or is no integer."""
    return not expr.dtype.is_integer or isinstance(expr, Read) or any(map(_of_elements, children(expr)))


def _beyond(statement: Statement, nodes: Iterable[Expr], leaves: Leaves) -> list[Expr]:
    """Those of the nodes that may be no numbers of their type; a cast is taken to be what it casts."""
    found: dict[int, tuple[int, int]] = {}
    for part in (statement.value, *statement.exists):
        found |= intervals(part, leaves)

    def fits(node: Expr) -> bool:
        low, high = found[id(node.operand if isinstance(node, Cast) else node)]
        return node.dtype.limits[0] <= low and high <= node.dtype.limits[1]

    return [node for node in nodes if not fits(node)]
