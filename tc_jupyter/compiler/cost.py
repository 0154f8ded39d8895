"""How much arithmetic and memory traffic a def asks for, as expressions over its sizes: the input of the roofline.

Operations are counted per point of each statement: arithmetic on floating and integer values is one, a mathematical function is
one, combining into a reduction is one; index arithmetic, conversions, comparisons and choices are free. Bytes are what must move
at least: every element of an input that is read comes in once, every element of a result goes out once, temporaries stay in caches.

Worked example: `C(i,j) +=! A(i,k) * B(k,j)` has `2*M*N*K` operations, reads `4*(M*K + K*N)` bytes and writes `4*M*N`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tc_jupyter.program import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Expr,
    Program,
    Read,
    Select,
    Statement,
    Unary,
    children,
)
from tc_jupyter.ranges import IndexRange, Ranges, SizeExpr, constant, floor_div, index, minimum, nonnegative


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations and bytes as size expressions."""

    operations: SizeExpr
    read: SizeExpr
    written: SizeExpr

    def at(self, sizes: Mapping[str, int]) -> Counts:
        """The numbers for given sizes.

        Raises:
            KeyError: a size is missing.
        """
        flops, read, written = (part.evaluate(sizes) for part in (self.operations, self.read, self.written))
        return Counts(flops, read, written)


@dataclass(frozen=True, slots=True)
class Counts:
    """Operations and bytes: numbers, or SymPy expressions over the sizes.

    Attributes:
        flops: operations.
        bytes_read, bytes_written: bytes.
    """

    flops: Any
    bytes_read: Any
    bytes_written: Any

    @property
    def bytes(self) -> Any:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> Any:
        """Operations per byte."""
        return self.flops / self.bytes


def cost_of(program: Program, ranges: Ranges) -> Cost:
    """The cost of a def whose ranges are known."""
    operations = constant(0)
    for statement in program.statements:
        operations = operations + _points(statement, ranges, per_point(statement))
    read = constant(0)
    for name in program.parameters:
        read = read + _bytes_read(program, ranges, name)
    written = constant(0)
    for name in program.results:
        written = written + _elements(ranges, name) * constant(program.tensor(name).dtype.bytes)
    return Cost(operations, read, written)


def _points(statement: Statement, ranges: Ranges, each: int) -> SizeExpr:
    """How many points there are, `each` times: half of a square for a triangle, and all elements once where rows follow rows."""
    found = {r.index: r for r in ranges.points(statement.name)}
    lengths = {name: r.extent for name, r in found.items()}
    halves = 1
    for name, r in found.items():
        if r.ends is None:
            continue
        (lower, upper), length = r.ends, r.ends[1] - r.ends[0]
        for row in lower.indices & found.keys():
            if r.ends_on_data and lower.substitute({row: index(row) + 1}) == upper:
                lengths[row] = constant(1)  # the rows lie one behind the other
        ends = None if r.ends_on_data or len(length.indices) != 1 else _at_ends(length, found)
        if ends is not None:
            lengths[name], halves = ends[0] + ends[1], halves * 2
    points = constant(each)
    for length in lengths.values():
        points = points * length
    return floor_div(points, halves)


def _at_ends(length: SizeExpr, found: Mapping[str, IndexRange]) -> tuple[SizeExpr, SizeExpr] | None:
    """A length at the first and at the last value of the index on which it depends evenly; `None` if there is no such one."""
    (name,) = length.indices
    other, split = found.get(name), length.linear_in(name)
    if other is None or other.ends is not None or other.lower is None or other.upper is None or split is None:
        return None
    first, last = (length.substitute({name: at}) for at in (other.lower, other.upper - 1))
    even = not split[0].indices and nonnegative(first) and nonnegative(last)
    return (first, last) if even else None


def _elements(ranges: Ranges, tensor: str) -> SizeExpr:
    elements = constant(1)
    for extent in ranges.boxes[tensor].shape:
        elements = elements * extent
    return elements


def _bytes_read(program: Program, ranges: Ranges, name: str) -> SizeExpr:
    """Every element once; through an index tensor at most one element per point."""
    if program.tensor(name).rank == 0:
        return constant(0)
    total: SizeExpr | None = None
    for statement in program.statements:
        reads = [read for read in statement.reads() if read.tensor == name]
        if not reads:
            continue
        elements = _elements(ranges, name)
        if all(_through_data(read) for read in reads):
            elements = minimum(elements, _points(statement, ranges, len(reads)))
        total = elements if total is None else _larger(total, elements, ranges, name)
    return constant(0) if total is None else total * constant(program.tensor(name).dtype.bytes)


def _larger(first: SizeExpr, second: SizeExpr, ranges: Ranges, name: str) -> SizeExpr:
    return first if first == second else _elements(ranges, name)


def _through_data(read: Read) -> bool:
    return any(isinstance(node, Read) for index in read.indices for node in _nodes(index))


def _nodes(expr: Expr) -> list[Expr]:
    return [expr, *(node for child in children(expr) for node in _nodes(child))]


def per_point(statement: Statement) -> int:
    """Operations of one point of a statement."""
    own = int(statement.operator != "=") if statement.combine is None else _operations(statement.combine)
    return _operations(statement.value) + own


def _operations(expr: Expr) -> int:
    match expr:
        case Read():
            return 0
        case Binary() if expr.op in COMPARISONS and not any(isinstance(node, Read) for node in _nodes(expr)):
            return 0  # of indices and sizes
        case Binary():
            own = 0 if expr.op in COMPARISONS or expr.op in LOGICAL else 1
            return own + _operations(expr.left) + _operations(expr.right)
        case Call() | Unary(op="-"):
            return 1 + sum(_operations(child) for child in children(expr))
        case Select():
            # one of the two branches runs; the longer one is the safe estimate
            return _operations(expr.condition) + max(_operations(expr.then), _operations(expr.otherwise))
        case _:
            return sum(_operations(child) for child in children(expr))
