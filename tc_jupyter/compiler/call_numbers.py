"""The numbers and the data checks of a call, for `runtime.kernel`: made once per def from what `ranges` knows.

A check on data runs before the kernel that relies on it, as a scan of the index tensor; where that is not possible (the subscript
mixes several reads, or the index tensor is computed inside the same kernel) it runs at each point, inside the kernel.

Worked example: `A(i) = B(C(i))` has one item, a `DataCheck` on `C`; `A(i) = B(C(i) + D(i))` has one `PointCheck`, which becomes
`check 0 <= C[i] + D[i] && C[i] + D[i] < J` around the store.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np

from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.loops import Kernel
from tc_jupyter.loops.lower import PointCheck as LoopCheck
from tc_jupyter.program import Binary, Cast, DType, Expr, IndexVar, Read, Unary, walk
from tc_jupyter.ranges import SizeExpr, python_code, to_python
from tc_jupyter.ranges.at_call import Bind, make_bind
from tc_jupyter.ranges.data import AnyCheck, DataCheck, EndCheck, PointCheck, UniqueCheck, check_data, extremes_of
from tc_jupyter.ranges.data import failure as point_failure
from tc_jupyter.ranges.size_expr import has_data
from tc_jupyter.runtime.arguments import Number
from tc_jupyter.runtime.arrays import ArrayView, host_values
from tc_jupyter.runtime.extremes import device_extremes
from tc_jupyter.runtime.kernel import Inputs, Numbers, root_of
from tc_jupyter.runtime.launch import Failure

from .function_analysis import FunctionAnalysis

Shapes: TypeAlias = tuple[tuple[int, ...], ...]

MOST_UNREAD = 4
"""An index tensor of which at least one element of so many is read is looked at whole, which repeated calls do fastest. Not swept:
50,000 edges whose two ends are columns of one tensor took 221 us, and 76 so."""


class CallNumbers:
    """What `runtime.kernel.CallNumbers` asks for.

    Attributes:
        items: the checks on data; their positions are their numbers.
        at_zero: checks for calls with a size of 0, whose numbers follow.
        formulas: of the extents (`T.0`) that kernels know by name.
    """

    def __init__(self, found: FunctionAnalysis) -> None:
        self.program = found.program
        self.numbers: Bind = make_bind(found.program, found.ranges, found.conditions)
        self.items = self.numbers.data
        self.at_zero = tuple(self.numbers.at_zero.values())
        extents = {name: value for name, value in found.ranges.sizes.items() if name not in self.numbers.names}
        extents |= found.conditions.definitions
        self.formulas = extents
        text = ", ".join(f"{name!r}: {python_code(to_python(value))}" for name, value in extents.items())
        arguments = ", ".join(map(python_code, self.numbers.names))
        code = compile(f"lambda {arguments}: {{{text}}}", f"<extents of {found.program.name}>", "eval")
        self._extents = eval(code, {"min": min, "max": max})

    def bind(self, sizes: Mapping[str, int], check_sizes: bool) -> Numbers | Diagnostic:
        """Shapes, origins and every size by name, or what is wrong with the sizes."""
        found = self.shapes(sizes, check_sizes)
        if not isinstance(found, tuple):
            return found
        shapes, origins = found
        tensors = self.numbers.tensors
        extents = self.extents(sizes)
        return Numbers(extents, dict(zip(tensors, shapes, strict=True)), dict(zip(tensors, origins, strict=True)))

    def shapes(self, sizes: Mapping[str, int], check_sizes: bool) -> tuple[Shapes, Shapes] | Diagnostic:
        """Shapes and origins of the computed tensors, in the order of `numbers.tensors`, or what is wrong with the sizes."""
        bind = self.numbers
        found: Any = bind.function(*[sizes[name] for name in bind.names], check_sizes)
        if type(found) is tuple:
            return cast("tuple[Any, Shapes, Shapes]", found)[1:]
        return found if isinstance(found, Diagnostic) else bind.message(found, sizes)

    def extents(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Every size by name."""
        return {**sizes, **self._extents(*[sizes[name] for name in self.numbers.names])}

    def scan(
        self, number: int, numbers: Numbers, tensors: Mapping[str, ArrayView], scalars: Mapping[str, Number]
    ) -> Diagnostic | None:
        """Run one check on data before its kernel."""
        hosts = _Hosts(tensors, scalars)
        if number >= len(self.items):
            return (
                None
                if self._whole(numbers)
                else check_data(self.at_zero[number - len(self.items)], hosts, numbers.sizes)
            )
        item = self._enough.get(number) or self.items[number]
        if isinstance(item, DataCheck) and self._passes_on_device(item, numbers.sizes, tensors):
            return None
        problem = check_data(item, hosts, numbers.sizes)
        if problem is None:
            return None
        # an index tensor that is itself read outside has no values to complain about: the innermost failure is the cause
        inner = (other for other in self.items if other.statement == item.statement and _is_inside(other, item))
        causes = (check_data(other, hosts, numbers.sizes) for other in sorted(inner, key=_reads_in))
        return next((cause for cause in causes if cause is not None), problem)

    def _whole(self, numbers: Numbers) -> bool:
        """Whether no size is 0."""
        return all(numbers.sizes[name] for name in self.program.sizes)

    def limits(
        self, number: int, numbers: Numbers, tensors: Mapping[str, ArrayView]
    ) -> tuple[tuple[str, int, int, bool], ...] | None:
        """The index tensor of a check with the smallest and largest element that it may have, and whether its elements
        have to rise, if that is all it asks.
        """
        if number >= len(self.items):
            return () if self._whole(numbers) else None
        item = self._enough.get(number) or self.items[number]
        if isinstance(item, EndCheck):
            return item.limits(numbers.sizes)
        if not isinstance(item, DataCheck) or item.tensor not in tensors:
            return None
        if not item.is_active(numbers.sizes):
            return ()
        read = math.prod(part.stop - part.start for part in item.region_at(numbers.sizes))
        # elements that nobody reads may be outside: the general path looks at the region alone
        limits = item.limits(numbers.sizes) if MOST_UNREAD * read >= tensors[item.tensor].elements else None
        return None if limits is None else ((item.tensor, *limits, False),)

    def _passes_on_device(self, item: DataCheck, sizes: Mapping[str, int], tensors: Mapping[str, ArrayView]) -> bool:
        """On a GPU the extreme values are found there; only a failing scan brings the data over."""
        view = tensors[item.tensor]
        if view.device == "cpu" or view.dtype is None or not item.is_active(sizes):
            return False
        found = device_extremes(view, item.region_at(sizes))
        return found is None or item.holds(sizes, *found)

    def point(self, failure: Failure) -> Diagnostic:
        """The message of a check that failed inside a kernel."""
        number, value, lower, upper, *place = failure
        points = points_of(self.items[number])
        at = {r.index: position for r, position in zip(points.ranges, place, strict=True)}
        return point_failure(points, at, value, lower, upper)

    @cached_property
    def pointwise(self) -> frozenset[int]:
        """The checks that only make sense inside the loops."""
        return frozenset(number for number, item in enumerate(self.items) if isinstance(item, PointCheck))

    @cached_property
    def _enough(self) -> Mapping[int, DataCheck]:
        """Of each check at points that arguments' smallest and largest elements may decide, the check of those."""
        found = {number: points_of(self.items[number]).enough for number in self.pointwise}
        return {number: each for number, each in found.items() if each is not None and self._is_argument(each.tensor)}

    @cached_property
    def _rooms(self) -> Mapping[int, tuple[SizeExpr, SizeExpr]]:
        """Of each other check at points that sizes may decide, what is never negative where it passes."""
        known = {*self.numbers.names, *self.formulas}
        rooms = {number: points_of(self.items[number]).room() for number in self.pointwise - self._enough.keys()}
        return {
            number: room
            for number, room in rooms.items()
            if room is not None and not any(each.indices or has_data(each) or each.names - known for each in room)
        }

    def _is_argument(self, name: str) -> bool:
        """Whether this is an array that the call gets."""
        return name in self.program.parameters and bool(self.program.tensor(name).rank)

    def passed(self, sizes: Mapping[str, int], inputs: Inputs | None = None) -> tuple[int, ...]:
        """The checks at points that pass with these sizes whatever the data, or with these index tensors whatever other data: code
        for such calls is without them.
        """
        if not self._rooms and (inputs is None or not self._enough):
            return ()
        known = self.extents(sizes)
        found = [n for n, room in self._rooms.items() if all(each.evaluate(known) >= 0 for each in room)]
        if inputs is not None:
            found += [n for n, each in self._enough.items() if self._limited(each, known, inputs.arrays)]
        return tuple(found)

    def _limited(self, item: DataCheck, sizes: Mapping[str, int], arrays: Mapping[str, ArrayView]) -> bool:
        """Whether the elements of an index tensor have limits that are enough."""
        view = arrays[item.tensor]
        if view.device != "cpu":
            return self._passes_on_device(item, sizes, arrays)
        part = np.asarray(host_values(view))[item.region_at(sizes)]
        return not part.size or item.holds(sizes, *extremes_of(part))

    def in_kernel(self, kernels: Sequence[Kernel]) -> frozenset[int]:
        """The checks that must run inside: those, and the ones whose tensors are not complete before their kernel."""
        inside = set(self.pointwise)
        for number, item in enumerate(self.items):
            for kernel in kernels:
                if item.statement in kernel.statements and not self._complete_before(item, kernel, kernels):
                    inside.add(number)
        return frozenset(inside)

    def _complete_before(self, item: AnyCheck, kernel: Kernel, kernels: Sequence[Kernel]) -> bool:
        """Whether everything that the check reads is an input or was written by earlier kernels."""
        ready = set(self.program.parameters)
        for earlier in kernels:
            if earlier is kernel:
                break
            ready |= {buffer.name for buffer in earlier.buffers}
        late = {root_of(self.program, self.program.statement(name).target) for name in kernel.statements}
        return all(root_of(self.program, name) in ready - late for name in _tensors(item))

    def loop_checks(
        self, inside: Iterable[int], constants: Mapping[str, int], passed: Sequence[int] = ()
    ) -> tuple[LoopCheck, ...]:
        """The given checks for `lower`, which puts later ones around earlier ones: what a check reads is checked around it; none
        for those that were `passed`, and for what always holds where some sizes are numbers.
        """
        numbers = sorted({*inside} - {*passed}, key=lambda number: -_reads_in(self.items[number]))
        found = {number: self.items[number] for number in numbers}
        asked = (
            n for n, item in found.items() if isinstance(item, UniqueCheck) or not points_of(item).is_proved(constants)
        )
        return tuple(loop_check(number, points_of(found[number])) for number in asked)

    def scans(self, kernel: Kernel, inside: frozenset[int], passed: Sequence[int] = ()) -> tuple[int, ...]:
        """The checks to run before a kernel; so are those that passed because of index tensors, for calls with other ones."""
        looked_at = inside - (self._enough.keys() & {*passed})
        return tuple(
            number
            for number, item in enumerate((*self.items, *self.at_zero))
            if number not in looked_at and item.statement in kernel.statements
        )


def points_of(item: AnyCheck) -> PointCheck:
    """The exact form of a check; of one on whole left sides what it has in common with those on subscripts."""
    return item if isinstance(item, PointCheck) else item.points


def _tensors(item: AnyCheck) -> set[str]:
    """The tensors whose elements a check looks at; scalars do not count."""
    points = points_of(item)
    parts = [
        points.index,
        *(guard for guard, _ in points.guards),
        *(item.subscripts if isinstance(item, UniqueCheck) else ()),
    ]
    others = item.others if isinstance(item, UniqueCheck) else ()
    own = {node.tensor for part in parts for node in walk(part) if isinstance(node, Read) and node.indices}
    return own.union(*map(_tensors, others))


def _is_inside(inner: AnyCheck, outer: AnyCheck) -> bool:
    """Whether `inner` checks a read that stands in the subscript of `outer`."""
    own = points_of(inner)
    reads = (node for node in walk(points_of(outer).index) if isinstance(node, Read) and node.tensor == own.tensor)
    return any(own.index in read.indices for read in reads)


def _reads_in(item: AnyCheck) -> int:
    """How many reads the subscript and its guards have: more than each of those, which stand in it, has in its own."""
    points = points_of(item)
    parts = (points.index, *(guard for guard, _ in points.guards))
    return sum(isinstance(node, Read) for part in parts for node in walk(part))


def loop_check(number: int, points: PointCheck) -> LoopCheck:
    """`guards imply lower <= index < upper`; NaN as a floating index never passes, nor does what `int64` does not hold."""
    index = Cast(points.index, DType.INT64) if points.index.dtype is DType.UINT64 else points.index
    condition: Expr = _and(_compare("<=", points.lower, index), _compare("<", index, points.upper))
    for operand in _numbers(points):
        condition = _and(_compare("==", operand, operand), condition)
    for guard, polarity in reversed(points.guards):
        unless = Unary("!", guard, DType.BOOL) if polarity else guard
        condition = Binary("||", unless, condition, DType.BOOL)
    place = tuple(IndexVar(r.index) for r in points.ranges)
    return LoopCheck(points.statement, condition, (points.index, points.lower, points.upper, *place), number)


def _numbers(points: PointCheck) -> list[Expr]:
    """The floats that must not be NaN: a floating index, and on the left side whatever is converted in a subscript."""
    if points.writes:
        casts = (node for node in walk(points.index) if isinstance(node, Cast) and node.dtype.is_integer)
        return [node.operand for node in casts if node.operand.dtype.is_float]
    index = points.index
    return [index.operand] if isinstance(index, Cast) and index.operand.dtype.is_float else []


def _and(left: Expr, right: Expr) -> Expr:
    return Binary("&&", left, right, DType.BOOL)


def _compare(op: str, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right, DType.BOOL)


@dataclass(frozen=True, slots=True)
class _Hosts(Mapping[str, Any]):
    """The tensors and scalars of a call as NumPy arrays, each brought over when it is looked at."""

    tensors: Mapping[str, ArrayView]
    scalars: Mapping[str, Number]

    def __getitem__(self, name: str) -> Any:
        return host_values(self.tensors[name]) if name in self.tensors else self.scalars[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.tensors, **self.scalars})

    def __len__(self) -> int:
        return len(self.tensors) + len(self.scalars)
