"""The checks on the data of a call as C: loops over the points of a `PointCheck`, and scans of index tensors before them.

Comes in: a def and the checks of its `CallNumbers`. Goes out: C functions, and the buffers and numbers that a call of one passes.

Worked example: of `Out(t, d) = Table(Id(t), d)` the check on `Id` becomes a scan for the smallest and the largest element, and,
where they are outside, a loop over `t` that finds the first element that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.codegen.plain import CCheck, emit_check
from tc_jupyter.codegen.plain.c_helpers import C_TYPES
from tc_jupyter.compiler.call_numbers import loop_check, points_of
from tc_jupyter.compiler.function_analysis import FunctionAnalysis
from tc_jupyter.loops import Block, Buffer, Check, For, If, Kernel, Stmt, Store, expressions, walk_statements
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Select, Size, int64, rewrite, walk
from tc_jupyter.program.integers import maximum, minimum, plus, times
from tc_jupyter.ranges import DataCheck, PointCheck, SizeExpr, from_expr, size, to_expr
from tc_jupyter.ranges.data import AnyCheck, UniqueCheck
from tc_jupyter.runtime.kernel import root_of

from .integers import c_size

SEEN = "places.seen"
"""The buffer that marks which elements a statement has written."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A check as a C function.

    Attributes:
        inactive: a C expression over `c`: whether nothing is to be looked at.
        scan: lines that look at all of an index tensor first, which they call `INDEX`, and `index` is its name.
        marks: the number of elements to be marked, as C, for a check of a left side.
    """

    check: CCheck
    inactive: str = "0"
    scan: tuple[str, ...] = ()
    index: str = ""
    marks: str = ""

    @property
    def buffers(self) -> list[str]:
        """The arrays that the check reads, as its function takes them."""
        return [each.name for each in self.check.parameters if each.kind == "buffer" and each.name != SEEN]


class Looks:
    """Prints the checks of a def."""

    def __init__(self, found: FunctionAnalysis, names: Mapping[str, str]) -> None:
        """`names`: the C expression of every size."""
        self.found = found
        self.program = found.program
        self.names = names

    def of(self, item: AnyCheck, number: int, name: str) -> Looked:
        """One check; `number` is the one that its record reports."""
        if isinstance(item, UniqueCheck):
            return self.unique(item, number, name)
        points = points_of(item)
        check = self.printed(name, self.loops(points, number))
        if not isinstance(item, DataCheck):
            return Looked(check, self.inactive(points))
        return Looked(check, self.inactive(points), tuple(self.scanned(item)), root_of(self.program, item.tensor))

    def inactive(self, points: PointCheck) -> str:
        """Whether no point takes part."""
        return " || ".join(f"{c_size(extent, self.names)} < 1" for extent in points.active) or "0"

    def scanned(self, item: DataCheck) -> list[str]:
        """The look at the smallest and the largest element of `INDEX`, which returns where these are good."""
        kind, shape = item.dtype, self.shape(root_of(self.program, item.tensor))
        number = "double" if kind.is_float else "int64_t"
        ends = [(c_size(low, self.names), c_size(high, self.names)) for low, high in item.storage]
        lines, place = list[str](), "0"
        for axis, ((low, high), extent) in enumerate(zip(ends, shape, strict=True)):
            lines.append(f"const int64_t e{axis} = {c_size(extent, self.names)};")
            lines.append(f"const int64_t f{axis} = tc_max({low}, 0), l{axis} = tc_min(tc_max({high}, 0), e{axis});")
            place = f"i{axis}" if axis == 0 else f"({place} * e{axis} + i{axis})"
        lines += [f"for (int64_t i{axis} = f{axis}; i{axis} < l{axis}; i{axis}++)" for axis in range(len(ends))]
        value = f"tc_widened(of[{place}])" if kind is DType.UINT64 else f"({number})of[{place}]"
        nan = "nan |= x != x; " if kind.is_float else ""
        keep = "low = some && low <= x ? low : x; high = some && high >= x ? high : x; some = 1;"
        lines.append(f"{{ const {number} x = {value}; {nan}{keep} }}")
        ends_of = {f"min({item.tensor})": size("least.element"), f"max({item.tensor})": size("largest.element")}
        whole = "tc_whole({})" if kind.is_float else "{}"
        names = {**self.names, "least.element": whole.format("low"), "largest.element": whole.format("high")}
        good = " && ".join(f"{c_size(each.substitute(ends_of), names)} >= 0" for each in item.conditions) or "1"
        lines += ["(void)low; (void)high;", f"if (!some || (!nan && ({good}) && !over)) return 0;"]
        return [
            f"const {C_SCANNED[kind]} *of = INDEX;",
            f"{number} low = 0, high = 0;",
            "int some = 0, nan = 0;",
            *lines,
        ]

    # loops -----------------------------------------------------------------------------------------------------------------------

    def loops(self, points: PointCheck, number: int) -> Block:
        """A test at every point of a check."""
        check = loop_check(number, points)
        values = tuple(self.stored(each, points) for each in check.values)
        return self.around(points, Block((Check(self.stored(check.condition, points), number, values, Block(())),)))

    def around(self, points: PointCheck, body: Block) -> Block:
        """Loops over the points of a check."""
        for r in reversed(points.ranges):
            assert r.lower is not None
            assert r.upper is not None
            low, high = points.ends.get(r.index) or (to_expr(r.lower), to_expr(r.upper))
            low, high = self.stored(low, points), self.stored(high, points)
            body = Block((For(r.index, low, _minus(high, low), body),))
        return body

    def stored(self, expr: Expr, points: PointCheck) -> Expr:
        """An expression in logical coordinates as one that reads storage; elements that there are not count as others."""

        def rule(node: Expr) -> Expr | None:
            if not isinstance(node, Read) or not node.indices:
                return None
            origin = points.origins.get(node.tensor, ())
            extents = [to_expr(extent) for extent in self.shape(root_of(self.program, node.tensor))]
            places: list[Expr] = []
            for axis, (place, extent) in enumerate(zip(node.indices, extents, strict=True)):
                moved = _minus(place, to_expr(origin[axis])) if origin else place
                places.append(maximum(int64(0), minimum(moved, _minus(extent, int64(1)))))
            read = replace(node, tensor=root_of(self.program, node.tensor), indices=tuple(places))
            some: Expr = Const(True, DType.BOOL)
            for extent in extents:
                if not isinstance(extent, Const):
                    test = Binary("<=", int64(1), extent, DType.BOOL)
                    some = test if isinstance(some, Const) else Binary("&&", some, test, DType.BOOL)
            zero = Const(False if node.dtype is DType.BOOL else 0, node.dtype)
            return read if isinstance(some, Const) else Select(some, read, zero, node.dtype)

        return rewrite(expr, rule)

    def unique(self, item: UniqueCheck, number: int, name: str) -> Looked:
        """Marks of the elements of all points: no element twice, or every one."""
        total: Expr = int64(1)
        for low, high in item.box:
            total = times(total, maximum(int64(0), _minus(to_expr(high), to_expr(low))))
        body = self.marks(item, number)
        if item.covers:
            every = For("element", int64(0), total, Block((self.marked(IndexVar("element"), 1, number, 1),)))
            body = Block((body, *(self.marks(each, number) for each in item.others), every))
        seen = Buffer(SEEN, DType.UINT8, (total,), role="output")
        return Looked(self.printed(name, body, (seen,)), marks=c_size(from_expr(total), self.names))

    def marks(self, item: UniqueCheck, number: int) -> Block:
        """Marks of the elements of the points of one statement."""
        points, place, inside = item.points, int64(0), Const(True, DType.BOOL)
        for subscript, (low, high) in zip(item.subscripts, item.box, strict=True):
            start, end = to_expr(low), to_expr(high)
            at, extent = self.stored(subscript, points), maximum(int64(0), _minus(end, start))
            within = Binary("&&", Binary("<=", start, at, DType.BOOL), Binary("<", at, end, DType.BOOL), DType.BOOL)
            inside = within if isinstance(inside, Const) else Binary("&&", inside, within, DType.BOOL)
            place = plus(times(place, extent), _minus(at, start))
        for guard, polarity in points.guards:
            test = self.stored(guard, points)
            test = test if polarity else Binary("==", test, Const(False, DType.BOOL), DType.BOOL)
            inside = Binary("&&", test, inside, DType.BOOL)
        mark = Store(SEEN, (place,), Const(1, DType.UINT8))
        steps: tuple[Stmt, ...] = (mark,)
        if item.unique:
            steps = (self.marked(place, 0, number, 0), mark)
        return self.around(points, Block((If(inside, Block(steps)),)))

    @staticmethod
    def marked(place: Expr, wanted: int, number: int, kind: int) -> Check:
        """A test of the mark of an element, which reports the element, and `kind`."""
        test = Binary("==", Read(SEEN, (place,), DType.UINT8), Const(wanted, DType.UINT8), DType.BOOL)
        return Check(test, number, (place, int64(kind)), Block(()))

    # printing --------------------------------------------------------------------------------------------------------------------

    def printed(self, name: str, body: Block, more: Sequence[Buffer] = ()) -> CCheck:
        """The C function of loops."""
        exprs = [expr for stmt in walk_statements(body) for expr in expressions(stmt)]
        nodes = [node for expr in exprs for node in walk(expr)]
        own = {buffer.name for buffer in more}
        read = dict.fromkeys(node.tensor for node in nodes if isinstance(node, Read) and node.tensor not in own)
        buffers = [self.buffer(each) for each in read if self.is_buffer(each)]
        shapes = [node for buffer in (*buffers, *more) for expr in buffer.shape for node in walk(expr)]
        scalars = [(each, self.program.tensor(each).dtype) for each in read if not self.is_buffer(each)]
        sizes = dict.fromkeys(node.name for node in (*nodes, *shapes) if isinstance(node, Size))
        scalars = [(each, dtype) for each, dtype in scalars if each not in sizes]
        kernel = Kernel(name, (*buffers, *more), tuple(sizes), tuple(scalars), body)
        natural = [each for each in sizes if each not in self.program.integer_scalars]
        return emit_check(name, kernel, natural)

    def is_buffer(self, name: str) -> bool:
        """Whether a tensor is memory: all but the numbers that are passed by value."""
        tensor = self.program.tensor(name)
        return tensor.kind != "input" or tensor.rank > 0

    def shape(self, name: str) -> tuple[SizeExpr, ...]:
        """The extents of a tensor."""
        return tuple(high - low for low, high in self.found.ranges.boxes[name].bounds)

    def buffer(self, name: str) -> Buffer:
        """A tensor as a parameter."""
        tensor = self.program.tensor(name)
        shape = tuple(map(to_expr, self.shape(name)))
        return Buffer(name, tensor.dtype, shape, role="input" if shape or tensor.kind == "input" else "output")


C_SCANNED = {**C_TYPES, DType.BOOL: "uint8_t"}
"""The type of an element of an index tensor."""


def _minus(left: Expr, right: Expr) -> Expr:
    return left if isinstance(right, Const) and right.value == 0 else Binary("-", left, right, DType.INT64)
