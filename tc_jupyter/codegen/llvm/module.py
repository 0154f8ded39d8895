"""The functions of one kernel: the task function, which `Function` prints, and the entry point, which calls it.

Comes in: a kernel as it was prepared, cut into tasks. Goes out: `KernelSource`.

The entry point is `void NAME(ptr args, i64 index, i64 thread, i64 tasks)`: one task of so many. `args` holds one 8-byte slot per
argument of the `KernelSource`, in order: addresses, `int64` numbers, scalars by value in the low bytes. The first line of the text
names the passes that it wants; see `runtime.jit`.

Worked example: of 10 points and 4 tasks, the entry point calls the task function of task 1 for the points 3, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from tc_jupyter.codegen.source import IN_ORDER, Argument, KernelSource, Launch
from tc_jupyter.loops import Block, Buffer, For, Kernel, Store, walk_statements
from tc_jupyter.loops.show import heading
from tc_jupyter.program import Binary, DType, Expr, Read, Select, Size, int64
from tc_jupyter.program.integers import maximum, plus, times
from tc_jupyter.schedule import Target
from tc_jupyter.schedule.target import LINE_BYTES, PAGE_BYTES

from . import arith
from .builder import Builder, Lines, Value, clean, flatten, index, memory_type
from .line_starts import POINTS, LineStart
from .packed_tails import written
from .polynomial import Polynomial, as_expr, constant_value, polynomial
from .prefetch import is_batch
from .row_tiles import is_large
from .storage import Storage, rounded_up, row_major
from .tasks import Tasks
from .vector_loops import Function


class Module:
    """The functions of a kernel and what they share."""

    def __init__(self, kernel: Kernel, target: Target, plan: Tasks, start: LineStart | None = None) -> None:
        self.kernel = kernel
        self.target = target
        self.plan = plan
        self.start = start
        self.name = clean(kernel.name)
        stores = (stmt for stmt in walk_statements(plan.body) if isinstance(stmt, Store))
        self.reduces = any(stmt.reduce is not None for stmt in stores)

    def source(self) -> KernelSource:
        """Print everything."""
        task = self.task_function()
        function, builder = task
        needs_workspace = constant_value(function.workspace) != 0
        # It begins at a page and leaves the next one free: a processor that reads on to the end of a page fetches the beginning of
        # the next one too, and would take it from the processor that writes there. Measured with a row of 4 kB in the workspace,
        # 4096 rows on two threads: 2.7 to 3.0 ms with none or one page per thread, 1.2 to 1.4 ms with a free page between.
        workspace = (
            rounded_up(plus(function.workspace, int64(PAGE_BYTES)), PAGE_BYTES)
            if needs_workspace
            else function.workspace
        )
        arguments = self.arguments(needs_workspace)
        entry = self.entry_function(arguments, workspace, builder)
        lines = [
            *self.header(arguments, function.turns),
            *self.task_text(builder),
            "",
            *entry,
            "",
            *self.footer(builder),
        ]
        text, line_map = _line_map(lines)
        buffers = (
            (Buffer("thread.workspace", DType.UINT8, (workspace,), "local", align=PAGE_BYTES),)
            if needs_workspace
            else ()
        )
        count = self.plan.count
        if self.plan.in_order:
            several = plus(count, times(self.plan.width, int64(IN_ORDER)))
            count = Select(Binary(">", count, int64(1), DType.BOOL), several, count, DType.INT64)
        elif constant_value(count) != 1:
            count = Select(self.plan.brief, Binary("-", int64(0), count, DType.INT64), count, DType.INT64)
        grid = (count, int64(1), int64(1))
        launch = Launch(grid, (int64(1), int64(1), int64(1)))
        return KernelSource("llvm", text, self.name, arguments, launch, self.kernel.buffers, buffers, line_map)

    def arguments(self, needs_workspace: bool) -> tuple[Argument, ...]:
        """The slots in order."""
        found: list[Argument] = []
        for buffer in self.kernel.buffers:
            found.append(Argument("buffer", buffer.name, buffer.dtype))
            if buffer.strided:
                found += [Argument("stride", buffer.name, DType.INT64, k) for k in range(len(buffer.shape))]
        found += [Argument("size", name, DType.INT64) for name in self.kernel.sizes]
        found += [Argument("scalar", name, dtype) for name, dtype in self.kernel.scalars]
        if needs_workspace:
            found.append(Argument("workspace", "thread.workspace", DType.UINT8))
        if self.kernel.checks:
            found.append(Argument("errors", "errors", DType.INT64))
        return tuple(found)

    def parameters(self, names: Mapping[tuple[str, str, int], str]) -> str:
        """The parameter list of the task function."""
        parts: list[str] = []
        roles = {buffer.name: buffer.role for buffer in self.kernel.buffers}
        for (kind, name, _), text in names.items():
            if kind == "buffer":
                parts.append(f"ptr noalias {'readonly ' if roles[name] == 'input' else ''}{text}")
            elif kind == "scalar":
                dtype = dict(self.kernel.scalars)[name]
                parts.append(f"{memory_type(dtype)} {text}")
            else:
                parts.append(f"i64 {text}")
        return ", ".join([*parts, "ptr %workspace", "ptr %errors", "i64 %first", "i64 %last"])

    def task_function(self) -> tuple[Function, Builder]:
        """Print the loops."""
        builder = Builder(scales="avx512f" in self.target.features)
        for reserved in ("workspace", "errors", "first", "last", "entry", "args", "index", "thread"):
            builder.name(reserved)
        function = Function(self.kernel, self.target, builder)
        function.writers = written(self.plan.body)
        function.is_stream = self.start is not None
        self.names = self.bind(function, builder)
        lines: Lines = [function.place]
        builder.lines = lines
        self.points(function, builder)
        if function.streams:
            # Streaming stores are weakly ordered: they must be visible before the task counts as done.
            builder.call("llvm.x86.sse.sfence", (), "void")
        builder.line("ret void")
        return function, builder

    def bind(self, function: Function, builder: Builder) -> dict[tuple[str, str, int], str]:
        """Name the parameters and make them known to the printer."""
        names: dict[tuple[str, str, int], str] = {}
        for buffer in self.kernel.buffers:
            pointer = "%" + builder.name(buffer.name)
            names["buffer", buffer.name, 0] = pointer
            strides = () if buffer.strided else self.strides(function, buffer)
            if buffer.strided:
                strides = tuple(polynomial(Size(f"{buffer.name}.stride.{k}")) for k in range(len(buffer.shape)))
                for k in range(len(buffer.shape)):
                    text = "%" + builder.name(f"{buffer.name}.stride.{k}")
                    names["stride", buffer.name, k] = text
                    function.values[f"{buffer.name}.stride.{k}"] = Value(text, DType.INT64)
            function.storages[buffer.name] = Storage(buffer, pointer, strides)
        for size in self.kernel.sizes:
            names["size", size, 0] = "%" + builder.name(size)
            function.values[size] = Value(names["size", size, 0], DType.INT64)
        for name, dtype in self.kernel.scalars:
            names["scalar", name, 0] = text = "%" + builder.name(name)
            builder.lines = function.place
            function.scalars[name] = function.from_memory(text, dtype, 1)
        if self.start is not None:
            names["points", POINTS, 0] = text = "%" + builder.name(POINTS)
            function.values[POINTS] = Value(text, DType.INT64)
        return names

    def strides(self, function: Function, buffer: Buffer) -> tuple[Polynomial, ...]:
        """Elements per step of each dimension; a sum of several products has a name, so that it is computed once."""
        found = list(row_major(list(buffer.shape)))
        for k, stride in enumerate(found):
            if len(stride.terms) > 1:
                name = f"{buffer.name}.stride.{k}"
                function.sums[name] = as_expr(stride)
                found[k] = polynomial(Size(name))
        return tuple(found)

    def points(self, function: Function, builder: Builder) -> None:
        """The loop over the points of one task, which decodes the point into the variables of the parallel loops."""
        loops = self.plan.loops
        if not loops:
            function.block(self.plan.body)
            return
        for loop in loops:
            builder.comment(f"{heading(loop)}  (parallel)")
        *outer, inner = loops
        first, last = Value("%first", DType.INT64), Value("%last", DType.INT64)
        if not outer:
            self.run(function, inner, first, last)
            return
        # a division for every point would take as long as a short row: one for every run of the innermost loop
        length = function.value(maximum(int64(1), inner.extent))
        low = arith.natural_division(builder, "//", first, length)
        end = arith.natural_division(builder, "//", arith.binary(builder, "-", last, index(1)), length)
        end = arith.binary(builder, "+", end, index(1))
        extent = reduce(times, (maximum(int64(0), loop.extent) for loop in outer))
        with function.counted("run", low, end, int64(0), extent, guard=True):
            rest = function.values["run"]
            for number, loop in enumerate(reversed(outer)):
                extent, low, part = function.value(loop.extent), function.value(loop.min), rest
                with function.at(len(function.levels) - 1):  # all extents are positive here
                    if number < len(outer) - 1:
                        part = arith.natural_division(builder, "%", rest, extent)
                        rest = arith.natural_division(builder, "//", rest, extent)
                    counter = arith.binary(builder, "+", low, part)
                function.enter(loop.var, counter, loop.min, loop.extent, function.levels[-1].place)
            before = arith.binary(builder, "*", function.values["run"], length)
            start = arith.binary(builder, "max", arith.binary(builder, "-", first, before), index(0))
            stop = arith.binary(builder, "min", arith.binary(builder, "-", last, before), length)
            self.run(function, inner, start, stop)
            for loop in outer:
                function.leave(loop.var)

    def run(self, function: Function, loop: For, start: Value, stop: Value) -> None:
        """The body for the iterations `start : stop`, counted from 0, of a parallel loop."""
        first = function.value(loop.min)
        low, end = (arith.binary(function.b, "+", first, counted) for counted in (start, stop))
        function.item = loop.var if is_batch(self.plan.body, loop.var, function.inputs) else ""
        with function.counted(loop.var, low, end, loop.min, loop.extent, guard=True):
            function.block(self.plan.body)

    def header(self, arguments: tuple[Argument, ...], turns: bool) -> list[str]:
        """Comments at the top.

        Addresses in vector code are good as written for x86. Those of other processors add and multiply less, so LLVM may search
        for better ones, but not among the many of a kernel that only turns rows.
        """
        vector = _only_vectors(self.plan.body) or _only_copies(self.plan.body)
        good = (vector and self.target.arch.startswith("x86")) or (turns and not self.reduces)
        lines = [f"; passes: {'vector' if vector else 'loops'}{', addresses as written' if good else ''}"]
        lines += [f"; {line}" for line in self.kernel.comment]
        lines.append("; args: " + ", ".join(_argument_text(argument) for argument in arguments))
        return [*lines, ""]

    def task_text(self, builder: Builder) -> list[str]:
        """The definition of the task function."""
        head = f"define internal void @{self.name}.task({self.parameters(self.names)}) noinline #0 {{"
        return [head, "entry:", *flatten(builder.entry), *flatten(builder.lines), "}"]

    def entry_function(self, arguments: tuple[Argument, ...], workspace: Expr, module: Builder) -> list[str]:
        """`NAME`, which calls the task function for its share of the points."""
        builder, function = self.entry_prologue(arguments)
        skipped = None if self.start is None else self.skip(function, self.start, arguments)
        chunk, total = self.share(function), function.value(self.plan.total)
        first = builder.op(f"mul i64 %index, {chunk.text}", DType.INT64, 1, "first")
        end = arith.binary(builder, "+", first, chunk)
        last = arith.binary(builder, "min", end, total)
        own = "null"
        if constant_value(workspace) != 0:
            size = function.value(workspace)
            start = builder.op(f"mul i64 %thread, {size.text}", DType.INT64, 1, "start")
            own = builder.raw(f"getelementptr inbounds i8, ptr %thread.workspace, {start.typed}", "own")
        places = f"ptr {own}, ptr {'%errors' if self.kernel.checks else 'null'}"
        if self.start is not None and skipped is not None:
            self.head(builder, self.start, skipped, arguments, places)
        self.call_task(
            builder, arguments, skipped, function.values.get(POINTS), f"{places}, {first.typed}, {last.typed}"
        )
        builder.line("ret void")
        module.declares.update(builder.declares)
        head = f"define void @{self.name}(ptr %args, i64 %index, i64 %thread, i64 %tasks) #0 {{"
        return [head, "entry:", *flatten(builder.lines), "}"]

    def call_task(
        self, b: Builder, arguments: tuple[Argument, ...], skipped: Value | None, points: Value | None, others: str
    ) -> None:
        """Call the task function, with pointers behind the points that are skipped."""
        operands: list[str] = []
        for position, argument in enumerate(arguments):
            if argument.kind not in ("buffer", "stride", "size", "scalar"):
                continue
            operand = f"{_slot_type(argument)} %{_slot_name(argument, position)}"
            moved = argument.kind == "buffer" and self.start is not None and argument.name in self.start.moved
            if moved and skipped is not None:
                assert argument.dtype is not None
                element = f"getelementptr {memory_type(argument.dtype)}, {operand}, {skipped.typed}"
                operand = f"ptr {b.raw(element, f'{clean(argument.name)}.left')}"
            operands.append(operand)
        if points is not None:
            operands.append(points.typed)
        b.line(f"call void @{self.name}.task({', '.join([*operands, others])})")

    def skip(self, function: Function, start: LineStart, arguments: tuple[Argument, ...]) -> Value:
        """The number of points before the first line of a large result; `POINTS` becomes that of the others."""
        b, dtype = function.b, start.result.dtype
        (slot,) = [
            _slot_name(a, k) for k, a in enumerate(arguments) if (a.kind, a.name) == ("buffer", start.result.name)
        ]
        whole, large = function.value(start.points), function.value(is_large(start.result, self.target))
        with function.at(0):
            address = b.op(f"ptrtoint ptr %{slot} to i64", DType.INT64, 1, "address")
            beyond = arith.binary(b, "-", index(0), address)
            rest = b.op(f"and i64 {beyond.text}, {LINE_BYTES - 1}", DType.INT64, 1, "rest")
            before = arith.binary(b, "//", rest, index(dtype.bytes))
            skipped = arith.select(b, large, before, index(0))
            function.values[POINTS] = arith.binary(b, "-", whole, skipped)
        return skipped

    def head(self, b: Builder, start: LineStart, skipped: Value, arguments: tuple[Argument, ...], places: str) -> None:
        """The points that are skipped, which the first task computes."""
        some = arith.compare(b, ">", skipped, index(0))
        is_first = arith.compare(b, "==", Value("%index", DType.INT64), index(0))
        head, rest = b.name("head"), b.name("others")
        b.branch_if(arith.logical(b, "and", is_first, some), head, rest)
        b.label(head)
        b.comment(f"what stands before the first line of {start.result.name}")
        rounded = arith.binary(b, "+", skipped, index(start.lanes - 1))
        vectors = arith.natural_division(b, "//", rounded, index(start.lanes))
        self.call_task(b, arguments, None, skipped, f"{places}, i64 0, {vectors.typed}")
        b.branch(rest)
        b.label(rest)

    def share(self, function: Function) -> Value:
        """Points of one task: as planned where that is a number, else `total / tasks`, rounded up, which is never more."""
        if constant_value(self.plan.chunk) is not None:
            return function.value(self.plan.chunk)
        b, tasks = function.b, Value("%tasks", DType.INT64)
        rounded = arith.binary(b, "+", function.value(self.plan.total), arith.binary(b, "-", tasks, index(1)))
        return arith.natural_division(b, "//", rounded, tasks)

    def entry_prologue(self, arguments: tuple[Argument, ...]) -> tuple[Builder, Function]:
        """The start of a function that takes `ptr %args`: every slot is loaded."""
        builder = Builder()
        for reserved in ("index", "thread", "tasks", "args", "entry"):
            builder.name(reserved)
        function = Function(self.kernel, self.target, builder)
        builder.lines = [function.place]
        for position, argument in enumerate(arguments):
            name = _slot_name(argument, position)
            builder.name(name)
            with function.at(0):
                where = builder.raw(f"getelementptr inbounds i64, ptr %args, i64 {position}", "slot")
                builder.line(f"%{name} = load {_slot_type(argument)}, ptr {where}, align 8")
            if argument.kind == "size":
                function.values[argument.name] = Value(f"%{name}", DType.INT64)
            if argument.kind == "scalar" and argument.dtype is not None:
                with function.at(0):
                    function.scalars[argument.name] = function.from_memory(f"%{name}", argument.dtype, 1)
        return builder, function

    def footer(self, builder: Builder) -> list[str]:
        """Declarations and attributes."""
        wide = '"prefer-vector-width"="512" ' if self.target.vector_bits >= 512 else ""
        attributes = f'attributes #0 = {{ nounwind {wide}"no-trapping-math"="true" }}'
        return [*builder.declares.values(), "", attributes, "!0 = !{i32 1}"]


def _only_vectors(block: Block) -> bool:
    """Whether LLVM's own vectoriser has nothing to do: every innermost loop is vectorised or written out."""
    innermost = [
        stmt
        for stmt in walk_statements(block)
        if isinstance(stmt, For)
        and stmt.kind != "unroll"
        and not any(isinstance(inner, For) and inner.kind != "unroll" for inner in walk_statements(stmt.body))
    ]
    marked = any(stmt.kind == "vectorize" for stmt in innermost)
    return marked or not innermost


def _only_copies(block: Block) -> bool:
    """Whether elements are only moved, from anywhere: LLVM would write short loops out, 288 stores of weights in 85 ms."""
    stores = [stmt for stmt in walk_statements(block) if isinstance(stmt, Store)]
    return bool(stores) and all(isinstance(store.value, Read) and store.reduce is None for store in stores)


def _slot_name(argument: Argument, position: int) -> str:
    """Different names may look alike once they are cleaned, so the position is part of it."""
    if argument.kind in ("workspace", "errors"):
        return clean(argument.name)
    return f"arg{position}.{clean(argument.name)}"


def _slot_type(argument: Argument) -> str:
    if argument.kind in ("buffer", "workspace", "errors"):
        return "ptr"
    if argument.kind == "scalar":
        assert argument.dtype is not None
        return memory_type(argument.dtype)
    return "i64"


def _argument_text(argument: Argument) -> str:
    if argument.kind == "stride":
        return f"stride {argument.dimension} of {argument.name}"
    return f"{argument.kind} {argument.name}"


def _line_map(lines: list[str]) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Take the marks of statements out of the text."""
    kept: list[str] = []
    marks: list[tuple[int, str]] = []
    for line in lines:
        if line.startswith("  ;@ "):
            marks.append((len(kept), line[len("  ;@ ") :]))
        else:
            kept.append(line)
    return "\n".join(kept) + "\n", tuple(marks)
