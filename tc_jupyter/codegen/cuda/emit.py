"""Loop IR -> self-contained CUDA C++ for people to read: no header is included, names are the user's.

Loops of kind `blockIdx.x`, `threadIdx.y`, ... become the launch shape; a kernel without such loops runs in one
thread. What stands outside every loop over threads and is not private to a thread is done by thread 0. A barrier
under a condition that differs between threads is illegal in CUDA, so such a condition is pushed down to the
statements between the barriers, and a loop whose length differs runs as often as the thread that needs it most.

Arguments in order: buffers, strides of strided buffers, sizes, scalars, workspace, error record. The error record is
an `int64` array: element 0 is 0 or the number of the failed check + 1, the following elements are the values of that
check.

Worked example: `for b in 0:(N + 255) // 256 [blockIdx.x]`, `for t in 0:256 [threadIdx.x]`, `if b * 256 + t < N`, `O[b
* 256 + t] = 2 * A[...]` becomes

    extern "C" __global__ void __launch_bounds__(256) double_O(const float* __restrict__ A, float* __restrict__ O, int
    N) {
        const int b = blockIdx.x;  // b in 0 : (N + 255) // 256
        const int t = threadIdx.x;  // t in 0 : 256
        if (b * 256 + t < N) {
            O[b * 256 + t] = 2.0f * A[b * 256 + t];
        }
    }
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import lcm, prod
from typing import assert_never

from tc_jupyter.codegen.source import Argument, KernelSource, Launch
from tc_jupyter.diagnostics import NO_SPAN, CompileError, Diagnostic, SourceText, Span, codes, render
from tc_jupyter.loops import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    Check,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    expand,
    sub_blocks,
    walk_statements,
)
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Size, int64, walk
from tc_jupyter.program.integers import all_of, conjunction, index_names, reads_elements
from tc_jupyter.schedule import STATIC_SHARED_BYTES, Target

from .accumulators import in_registers
from .expressions import (
    PRIMARY,
    SUM,
    UNARY,
    Place,
    Scope,
    Text,
    arithmetic,
    cast,
    condition,
    divisor,
    element,
    extremum,
    index,
    is_narrow,
    nonnegative,
    show,
    value,
)
from .fragments import with_fragments
from .helpers import helper_texts, helpers_called
from .launch import (
    GRID_AXES,
    GRID_LIMITS,
    THREAD_AXES,
    Axis,
    Range,
    axes_of,
    before_launch,
    bounds,
    few_blocks,
    loop_range,
    needs_one,
    ranges_of,
)
from .literals import C_TYPES, value_type
from .names import Names, comment_text
from .pipeline import pipelined
from .primitives import (
    COLLECTIVE,
    KNOWN,
    LANE,
    MATRIX_STEPS,
    OF_WARP,
    PRIMITIVES,
    copy_line,
    emit_intrinsic,
    fragment_type,
    is_of_lanes,
)
from .quotients import quotients_of
from .spread import foreign_access
from .vectors import VectorStore, plan_vector

ALL_THREADS = frozenset(THREAD_AXES)


MAX_PRIVATE = 16 << 10
"""Bytes of an array of one thread beyond which it lies in memory that the launcher allocates."""

MAX_PARAMETERS = 32764
"""Bytes of parameters that a kernel may take."""

MAX_UNROLL = 512
"""Iterations beyond which a loop is not unrolled: the compiler would take too long."""

INDENT = "    "


def emit_cuda(
    kernel: Kernel,
    target: Target,
    index_bits: int = 32,
    *,
    source: SourceText | None = None,
    restrict: bool = True,
    large_grid: bool = False,
) -> KernelSource:
    """Write a kernel as CUDA C++.

    Args:
        target: limits of the device (`max_threads`, `shared_optin_bytes`, `multiprocessors`).
        index_bits: 32 for `int` indices (legal when `fits_int32` holds at the call), 64 for `long long`.
        source: the cell; with it, statements are shown in comments and mapped to its lines by `#line`.
        restrict: no output overlaps another argument, so pointers may be `__restrict__`; the launcher chooses by
        address ranges.
        large_grid: the grid may exceed the device's limits, so each block takes every n-th iteration.

    Raises:
        CompileError: TC503, storage that has no constant bound or is larger than the device's shared memory.
    """
    kernel = pipelined(with_fragments(expand(kernel, KNOWN)), "cp.async" in target.features)
    kernel = in_registers(kernel)
    # of a choice between an element that it makes and one of an input, NVRTC reads either past the cache that writes go to
    restrict = restrict and not kernel.ordered
    return _Emitter(kernel, target, index_bits, source, restrict, large_grid).run()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text: the statement that it belongs to, its line in the cell (from 0), the variable that it declares."""

    text: str
    statement: str = ""
    cell: int | None = None
    declares: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that still has to be tested, and the thread axes along which it differs."""

    text: str
    axes: frozenset[str]


Guards = tuple[Guard, ...]


@dataclass(slots=True)
class _Emitter:
    """The state of one run: lines so far, names, and what encloses the current place."""

    kernel: Kernel
    target: Target
    index_bits: int
    source: SourceText | None
    restrict: bool
    large_grid: bool
    names: Names = field(default_factory=Names)
    lines: list[Line] = field(default_factory=list)
    depth: int = 1
    axes: dict[str, Axis] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    varying: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    shared_bytes: int = 0
    dynamic: bool = False
    alone: bool = True
    described: bool = False
    workspace: list[Buffer] = field(default_factory=list)
    shown: tuple[str, Span] = ("", NO_SPAN)
    scope: Scope = field(default_factory=lambda: Scope({}, {}, {}))

    def run(self) -> KernelSource:
        """The whole text."""
        kernel = self.kernel
        foreign = foreign_access(kernel)
        if foreign:
            self._refuse(
                f"a thread needs an element of `{foreign}` that another thread holds",
                'spread all loops over it alike, or keep it in `storage(..., "shared")`',
            )
        entry = self.names.of("", kernel.name)
        self.scope.ranges = ranges_of(kernel)
        self.axes = axes_of(kernel, self.target.max_threads, self.target.multiprocessors)
        fragments = any(isinstance(s, Intrinsic) and s.name in MATRIX_STEPS for s in walk_statements(kernel.body))
        if fragments:
            self.axes.setdefault("threadIdx.x", Axis("threadIdx.x", int64(32), 32))
        self._check_reductions()
        self.scope.block_threads = prod(axis.fixed or 1 for name, axis in self.axes.items() if name in THREAD_AXES)
        self._declare_arguments()
        if fragments:
            self.scope.nonnegative.add(LANE)
            self.scope.variables[LANE] = lane = self.names.of(LANE, "lane")
            self.scope.ranges = self.scope.ranges | {LANE: (0, 31)}
            self._line(f"const int {lane} = threadIdx.x % 32;  // in the warp")
        self.dynamic = _shared_total(kernel.body, ranges_of(kernel)) > STATIC_SHARED_BYTES
        if self.dynamic:
            self._line("extern __shared__ __align__(16) unsigned char tc_shared[];")
        self._block(kernel.body, ())
        self._check_shared()
        launch = Launch(self._extents(GRID_AXES), self._extents(THREAD_AXES), self.shared_bytes if self.dynamic else 0)
        arguments = self._arguments()
        if 8 * len(arguments) > MAX_PARAMETERS:
            self._refuse(f"kernel `{kernel.name}` needs {len(arguments)} parameters", "split the def into several")
        body = _without_unused(self.lines)
        head = [*self._header(launch), *self._helper_lines(body), *self._signature(entry, arguments, launch), "{"]
        lines = [*map(Line, head), *body, Line("}")]
        text, line_map = _assemble(lines, entry, self.source)
        return KernelSource(
            "cuda", text, entry, arguments, launch, kernel.buffers, tuple(self.workspace), line_map, self.index_bits
        )

    # --- arguments and head ------------------------------------------------------------------------------------------

    def _declare_arguments(self) -> None:
        """Names of all parameters, in the order in which they are passed."""
        kernel, scope = self.kernel, self.scope
        scope.index_bits = self.index_bits
        for buffer in kernel.buffers:
            scope.places[buffer.name] = Place(buffer, self.names.of(f"buffer {buffer.name}", buffer.name))
            for extent in buffer.shape:
                if isinstance(extent, Size):
                    scope.nonnegative.add(extent.name)
        for name in (*self._strides(), *kernel.sizes):
            scope.variables.setdefault(name, self.names.of(f"size {name}", name))
        for name, dtype in kernel.scalars:
            scope.scalars[name] = (self.names.of(f"scalar {name}", name), dtype)
        scope.multiples.update((name, fact.multiple) for name, fact in kernel.facts)
        if kernel.checks or any(isinstance(stmt, Check) for stmt in walk_statements(kernel.body)):
            self.names.of("errors")

    def _strides(self) -> tuple[str, ...]:
        strided = [buffer for buffer in self.kernel.buffers if buffer.strided]
        return tuple(f"{buffer.name}.stride.{k}" for buffer in strided for k in range(len(buffer.shape)))

    def _arguments(self) -> tuple[Argument, ...]:
        kernel = self.kernel
        found = [Argument("buffer", buffer.name, buffer.dtype) for buffer in kernel.buffers]
        for buffer in kernel.buffers:
            if buffer.strided:
                found += [Argument("stride", buffer.name, DType.INT64, k) for k in range(len(buffer.shape))]
        strides = frozenset(self._strides())
        found += [Argument("size", name, DType.INT64) for name in kernel.sizes if name not in strides]
        found += [Argument("scalar", name, dtype) for name, dtype in kernel.scalars]
        found += [Argument("workspace", buffer.name, buffer.dtype) for buffer in self.workspace]
        if "errors" in self.names.known:
            found.append(Argument("errors", "errors", DType.INT64))
        return tuple(found)

    def _header(self, launch: Launch) -> list[str]:
        lines = [f"{self.kernel.name}: {', '.join(self.kernel.statements)}".rstrip(": "), *self.kernel.comment]
        grid, block = (f"({', '.join(map(show, extents))})" for extents in (launch.grid, launch.block))
        shared = f", {launch.shared} bytes of dynamic shared memory" if launch.shared else ""
        lines.append(f"launch: grid {grid}, block {block}{shared}")
        lines.append(f"indices: {self.scope.index_type}")
        return ["// " + comment_text(part) for line in lines for part in line.splitlines() or [""]]

    def _helper_lines(self, body: list[Line]) -> list[str]:
        """The functions that the lines call; some were needed by a value that nobody uses in the end."""
        called = helpers_called("\n".join(line.text.partition("//")[0] for line in body))
        texts = helper_texts(self.scope.helpers & called, PRIMITIVES)
        return [line for text in texts for line in ("", *text.split("\n"))] + [""]

    def _signature(self, entry: str, arguments: tuple[Argument, ...], launch: Launch) -> list[str]:
        threads = 1
        for extent in launch.block:
            assert isinstance(extent, Const)
            threads *= int(extent.value)
        bound = f"{threads}, {self.kernel.min_blocks}" if self.kernel.min_blocks else f"{threads}"
        parameters = [self._parameter(argument) for argument in arguments]
        width = max((len(text) for text, _ in parameters), default=0) + 1
        lines = [f'extern "C" __global__ void __launch_bounds__({bound}) {entry}(']
        for number, (text, note) in enumerate(parameters):
            comma = "," if number + 1 < len(parameters) else ""
            lines.append(f"{INDENT}{text + comma:<{width}}  // {comment_text(note)}".rstrip(" /"))
        return [*lines, ")"]

    def _parameter(self, argument: Argument) -> tuple[str, str]:
        """Declaration and comment."""
        assert argument.dtype is not None
        match argument.kind:
            case "buffer":
                place = self.scope.places[argument.name]
                buffer = place.buffer
                const = "const " if buffer.role == "input" else ""
                restrict = "__restrict__ " if self.restrict else ""
                note = f"{buffer.name}: {buffer.dtype.value} ({', '.join(map(show, buffer.shape))}), {buffer.role}"
                return f"{const}{C_TYPES[buffer.dtype]}* {restrict}{place.name}", note
            case "stride":
                name = f"{argument.name}.stride.{argument.dimension}"
                return (
                    f"{self.scope.index_type} {self.scope.variables[name]}",
                    f"in elements, dimension {argument.dimension}",
                )
            case "size":
                return f"{self.scope.index_type} {self.scope.variables[argument.name]}", f"size {argument.name}"
            case "scalar":
                name, dtype = self.scope.scalars[argument.name]
                return f"{value_type(dtype)} {name}", f"{argument.name}: {dtype.value}"
            case "workspace":
                name = self.names.of(f"workspace {argument.name}")
                return f"{C_TYPES[argument.dtype]}* __restrict__ {name}", "temporary memory"
            case _:
                return f"long long* {self.names.of('errors')}", "record of the first failed check: number + 1, values"

    def _extents(self, names: tuple[str, str, str]) -> tuple[Expr, Expr, Expr]:
        x, y, z = (self._extent(name) for name in names)
        return x, y, z

    def _extent(self, name: str) -> Expr:
        if name not in self.axes:
            return int64(1)
        axis = self.axes[name]
        if axis.fixed is not None:
            least = 1 if name in THREAD_AXES or needs_one(self.kernel.body, name) else 0
            return int64(max(axis.fixed, least))
        extent = axis.extent
        if self.large_grid:
            extent = Binary("min", extent, int64(GRID_LIMITS[name]), DType.INT64)
        return Binary("max", extent, int64(1), DType.INT64) if needs_one(self.kernel.body, name) else extent

    # --- lines -------------------------------------------------------------------------------------------------------

    def _line(self, text: str, stmt: Store | Intrinsic | None = None) -> None:
        """Add a line at the present depth; preprocessor lines stand at the margin."""
        statement, cell = "", None
        if stmt is not None:
            statement = stmt.statement
            if self.source is not None and stmt.span != NO_SPAN:
                cell = self.source.position(stmt.span.start)[0]
        self.lines.append(Line(INDENT * self.depth + text if text else "", statement, cell))

    def _declare(self, text: str, name: str) -> None:
        """Declare a variable; the line is dropped at the end if nothing uses the name in its scope."""
        self._line(text)
        self.lines[-1] = replace(self.lines[-1], declares=name)

    def _comment(self, text: str) -> None:
        for line in text.splitlines():
            self._line("// " + comment_text(line))

    @contextmanager
    def _braces(self, head: str) -> Generator[None]:
        """`head {` ... `}`."""
        self._line(f"{head} {{".lstrip())
        self.depth += 1
        self.alone = True
        yield
        self.depth -= 1
        self._line("}")

    def _announce(self, stmt: Store | Intrinsic) -> None:
        """A comment with the statement, when it is not the one shown last."""
        if (stmt.statement, stmt.span) == self.shown or not (stmt.statement or stmt.span != NO_SPAN):
            return
        self.shown = (stmt.statement, stmt.span)
        if self.described:
            return
        text = ""
        if self.source is not None and stmt.span != NO_SPAN:
            text = self.source.line(self.source.position(stmt.span.start)[0]).strip()
        note = ": ".join(part for part in (stmt.statement, text) if part)
        if note:
            self._comment(note)

    # --- statements --------------------------------------------------------------------------------------------------

    def _block(self, block: Block, guards: Guards) -> None:
        """Statements in order. `guards` are conditions that differ between threads and still have to be tested."""
        described, self.described = self.described, self.described or bool(block.comment)
        if block.comment:
            self._comment(block.comment)
        run: list[Stmt] = []
        alone = self.alone and len(block.body) == 1
        for stmt in block.body:
            self.alone = alone
            if guards and not self._parted(stmt, guards):
                run.append(stmt)
                continue
            self._guarded(run, guards)
            run = []
            self._statement(stmt, guards)
        self._guarded(run, guards)
        self.described = described

    def _guarded(self, run: list[Stmt], guards: Guards) -> None:
        """Statements that need no thread which leaves them out, under all guards."""
        if not run:
            return
        with self._braces(f"if ({' && '.join(guard.text for guard in guards)})"):
            for stmt in run:
                self._statement(stmt, ())

    def _statement(self, stmt: Stmt, guards: Guards) -> None:
        match stmt:
            case For():
                self._for(stmt, guards)
            case If():
                self._if(stmt, guards)
            case Store():
                self._announce(stmt)
                with self._by_one_thread(stmt.buffer):
                    self._store(stmt)
            case Allocate():
                self._allocate(stmt, guards)
            case Barrier():
                self._line("__syncwarp();" if stmt.scope == "warp" else "__syncthreads();")
            case Check():
                self._check(stmt)
            case Intrinsic():
                self._announce(stmt)
                for line in emit_intrinsic(stmt, self.scope):
                    self._line(line, stmt)
            case Block():
                self._block(stmt, guards)
            case _:
                assert_never(stmt)

    def _together(self, stmt: Stmt) -> frozenset[str]:
        """The thread axes along which all threads have to reach a statement, if any of them does."""
        rows = frozenset({"threadIdx.x"}) if self._has_rows_of_warps() else ALL_THREADS
        needed: frozenset[str] = frozenset()
        for each in walk_statements(Block((stmt,))):
            match each:
                case Barrier():
                    needed |= rows if each.scope == "warp" else ALL_THREADS
                case Intrinsic() if each.name in OF_WARP or is_of_lanes(each):
                    needed |= {"threadIdx.x"}
                case Intrinsic() if each.name in COLLECTIVE:
                    needed |= ALL_THREADS
                case _:
                    pass
        return needed

    def _has_rows_of_warps(self) -> bool:
        """Whether the threads of a warp differ only along x."""
        axis = self.axes.get("threadIdx.x")
        return axis is not None and axis.fixed is not None and axis.fixed % 32 == 0

    def _parted(self, stmt: Stmt, guards: Guards) -> bool:
        """Whether the guards would part threads that have to reach a statement together."""
        return any(guard.axes & self._together(stmt) for guard in guards)

    @contextmanager
    def _by_one_thread(self, buffer: str) -> Generator[None]:
        """What stands outside the loops over an axis is done once: by the first thread, of the first block where it
        matters.
        """
        place = self.scope.places[buffer]
        missing = [
            name
            for name, axis in self.axes.items()
            if name not in self.active and axis.fixed != 1 and not place.private
            if name in THREAD_AXES or place.buffer.scope != "shared"
        ]
        if not missing:
            yield
            return
        with self._braces(f"if ({' && '.join(f'{name} == 0' for name in missing)})"):
            yield

    def _if(self, stmt: If, guards: Guards) -> None:
        facts = _facts(stmt.condition)
        needed = [test for test in conjunction(stmt.condition) if not self._holds(test)]
        if not needed:
            self._block(stmt.then, guards)
            return
        stmt = replace(stmt, condition=all_of(needed))
        copy = _guarded_copy(stmt)
        if copy is not None:
            with self._braces(""):
                name = self.names.fresh("inside")
                self._line(f"const bool {name} = {condition(stmt.condition, self.scope)};")
                self._line(copy_line(copy, self.scope, name), copy)
                self.names.taken.discard(name)
            return
        axes = self._differs(stmt.condition)
        if guards or axes & self._together(stmt):
            name = self.names.fresh("active")
            test = condition(stmt.condition, self.scope)
            if reads_elements(stmt.condition):
                # what a guard leaves out must not be read
                test = " && ".join([*(guard.text for guard in guards), f"({test})"])
            self._line(f"const bool {name} = {test};")
            parts = [(stmt.then, name, facts)] + ([(stmt.otherwise, f"!{name}", {})] if stmt.otherwise else [])
            for block, test, known in parts:
                with self._part(len(parts) > 1), self._known(known):
                    self._block(block, (*guards, Guard(test, axes)))
            return
        with self._braces(f"if ({condition(stmt.condition, self.scope)})"), self._known(facts):
            self._block(stmt.then, ())
        if stmt.otherwise is not None:
            self.lines[-1] = replace(self.lines[-1], text=self.lines[-1].text + " else {")
            self.depth += 1
            self._block(stmt.otherwise, ())
            self.depth -= 1
            self._line("}")

    @contextmanager
    def _part(self, braces: bool) -> Generator[None]:
        """A part of several that may declare the same names."""
        if not braces:
            yield
            return
        with self._braces(""):
            yield

    def _holds(self, test: Expr) -> bool:
        """Whether the lengths of the loops around decide a comparison: it is true everywhere."""
        if not (isinstance(test, Binary) and test.op in ("<", ">=") and test.left.dtype is DType.INT64):
            return False
        left, right = bounds(test.left, self.scope.ranges), bounds(test.right, self.scope.ranges)
        if test.op == "<":
            return left[1] is not None and right[0] is not None and left[1] < right[0]
        return left[0] is not None and right[1] is not None and left[0] >= right[1]

    @contextmanager
    def _known(self, facts: dict[str, int]) -> Generator[None]:
        """Divisors of sizes that hold inside."""
        before = dict(self.scope.multiples)
        for name, number in facts.items():
            self.scope.multiples[name] = lcm(before.get(name, 1), number)
        yield
        self.scope.multiples = before

    def _differs(self, *exprs: Expr) -> frozenset[str]:
        """The thread axes along which expressions may differ between the threads of a block."""
        found: frozenset[str] = frozenset()
        for node in (node for expr in exprs for node in walk(expr)):
            if isinstance(node, IndexVar):
                found |= self.varying.get(node.name, frozenset())
            elif isinstance(node, Read) and node.tensor not in self.scope.scalars:
                found |= ALL_THREADS
        return found

    def _check(self, stmt: Check) -> None:
        if _collective(stmt):
            raise ValueError("a barrier inside a checked statement")
        with self._braces(f"if ({condition(stmt.condition, self.scope)})"):
            self._block(stmt.body, ())
        errors = self.names.of("errors")
        record = f" else if ({self.scope.use('tc_record')}({errors}, {stmt.number})) {{"
        self.lines[-1] = replace(self.lines[-1], text=self.lines[-1].text + record)
        self.depth += 1
        for number, each in enumerate(stmt.values):
            self._line(
                f"{errors}[{number + 1}] = {cast(value(each, self.scope), each.dtype, DType.INT64, self.scope).text};"
            )
        self.depth -= 1
        self._line("}")

    # --- loops -------------------------------------------------------------------------------------------------------

    def _for(self, loop: For, guards: Guards) -> None:
        if loop.kind in self.axes:
            self._gpu_loop(loop, guards)
            return
        if loop.kind == "fragment.row":
            self._tile_loop(loop)
            return
        if loop.kind == "vectorize" and not _collective(loop) and self._vectorized(loop):
            return
        if self._differs(loop.min, loop.extent) & self._together(loop):
            self._uniform_loop(loop, guards)
            return
        most, limit = (0, None) if self._together(loop) else _unrolled_end(loop)
        if limit is not None and divisor(limit, self.scope) % most == 0:  # all iterations, or none
            whole = Block((replace(loop, extent=int64(most)),))
            self._if(If(Binary(">=", limit, int64(most), DType.BOOL), whole), guards)
            return
        extent = bounds(loop.extent, self.scope.ranges)
        if loop.kind in ("unroll", "vectorize") and extent[1] is not None and extent[1] <= MAX_UNROLL:
            self._line("#pragma unroll")
        with self._variable(loop) as name, self._repeated():
            low = index(loop.min, self.scope).text
            high = self._end(loop) if limit is None else str(most)
            head = f"for ({self._type(loop)} {name} = {low}; {name} < {high}; {name}++) {{  // {self._note(loop)}"
            self._line(head)
            self.depth += 1
            self.alone = True
            with self._quotients(loop):
                if limit is None:
                    self._block(loop.body, guards)
                else:
                    self._if(If(Binary("<", IndexVar(loop.var), limit, DType.BOOL), loop.body), guards)
            self.depth -= 1
            self._line("}")

    def _uniform_loop(self, loop: For, guards: Guards) -> None:
        """A loop whose length differs between threads that meet in it: all run as often as the longest one."""
        axes = self._differs(loop.min, loop.extent)
        most = bounds(loop.extent, self.scope.ranges)[1]
        with self._variable(loop) as name, self._repeated():
            low, test = index(loop.min, self.scope).text, f"{name} < {self._end(loop)}"
            goes_on = f"__syncthreads_or({test})"
            if most is not None:
                goes_on = f"{name} < {index(Binary('+', loop.min, int64(most), DType.INT64), self.scope).at(SUM)}"
            self._line(f"for ({self._type(loop)} {name} = {low}; {goes_on}; {name}++) {{  // {self._note(loop)}")
            self.depth += 1
            self.alone = True
            with self._quotients(loop):
                self._block(loop.body, (*guards, Guard(test, axes)))
            self.depth -= 1
            self._line("}")

    def _tile_loop(self, loop: For) -> None:
        """The four elements of a 16 x 8 tile that a lane holds."""
        inner = loop.body.body[0] if len(loop.body.body) == 1 else None
        if not (isinstance(inner, For) and inner.kind == "fragment.column"):
            raise ValueError("a loop over the rows of a fragment must contain one over its columns and nothing else")
        scope, lane = self.scope, self.scope.variables[LANE]
        before, self.active = self.active, (*self.active, "threadIdx.x")
        register = self.names.fresh("e")
        self._line("#pragma unroll")
        head = f"for (int {register} = 0; {register} < 4; {register}++)"
        with self._braces(head), self._variable(loop) as row, self._variable(inner) as column:
            self._declare(f"const int {row} = {lane} / 4 + {register} / 2 * 8;  // {self._note(loop)}", row)
            self._declare(f"const int {column} = {lane} % 4 * 2 + {register} % 2;  // {self._note(inner)}", column)
            scope.tile = (loop.var, inner.var, register)
            self._block(inner.body, ())
            scope.tile = None
        self.names.taken.discard(register)
        self.active = before

    @contextmanager
    def _repeated(self) -> Generator[None]:
        """What is written here runs several times."""
        before, self.scope.repeated = self.scope.repeated, True
        yield
        self.scope.repeated = before

    def _type(self, loop: For) -> str:
        """Type of a loop variable in scope: `int` where it certainly suffices, one step beyond the end included."""
        return "int" if is_narrow(Binary("+", IndexVar(loop.var), int64(1), DType.INT64), self.scope) else "long long"

    def _note(self, loop: For) -> str:
        """`k in 0 : K`, with the schedule's axis where the loop has another name."""
        high = _high(loop)
        axis = f" ({loop.axis})" if loop.axis not in ("", loop.var) else ""
        return comment_text(f"{loop.var} in {show(loop.min)} : {show(high)}{axis}")

    def _end(self, loop: For) -> str:
        """One beyond the last value, as it stands behind `<`."""
        if isinstance(loop.min, Const) and isinstance(loop.extent, Const):
            return index(int64(int(loop.min.value) + int(loop.extent.value)), self.scope).text
        return index(_high(loop), self.scope).at(SUM)

    @contextmanager
    def _variable(self, loop: For) -> Generator[str]:
        """The loop variable, with what is known of it while the body is written."""
        scope = self.scope
        before = (scope.variables.get(loop.var), self.scope.ranges, self.varying, loop.var in scope.nonnegative)
        quotients = scope.quotients
        scope.quotients = {expr: text for expr, text in quotients.items() if loop.var not in index_names(expr)}
        name = self.names.fresh(loop.var)
        if nonnegative(loop.min, scope):
            scope.nonnegative.add(loop.var)
        own = frozenset({loop.kind}) & ALL_THREADS
        self.varying = self.varying | {loop.var: self._differs(loop.min) | own}
        self.scope.ranges = self.scope.ranges | {loop.var: loop_range(loop, self.scope.ranges)}
        scope.variables[loop.var] = name
        yield name
        self.names.taken.discard(name)
        old, self.scope.ranges, self.varying, known = before
        scope.quotients = quotients
        if not known:
            scope.nonnegative.discard(loop.var)
        if old is None:
            del scope.variables[loop.var]
        else:
            scope.variables[loop.var] = old

    def _gpu_loop(self, loop: For, guards: Guards) -> None:
        """The iterations are blocks or threads: one each, guarded where the launch has more, striding where it has
        fewer.
        """
        axis = self.axes[loop.kind]
        before, self.active = self.active, (*self.active, loop.kind)
        end = self._end(loop)
        with self._own_scope(), self._variable(loop) as name:
            first = f"{index(loop.min, self.scope).at(SUM)} + " if loop.min != int64(0) else ""
            if self._strides_over(loop, axis):
                self._striding(loop, name, first + loop.kind, end, guards)
            else:
                self._declare(f"const {self._type(loop)} {name} = {first}{loop.kind};  // {self._note(loop)}", name)
                with self._quotients(loop):
                    self._within(loop, axis, f"{name} < {end}", guards)
        self.active = before

    def _within(self, loop: For, axis: Axis, test: str, guards: Guards) -> None:
        """The body of a loop over blocks or threads, of which the launch may have more than iterations."""
        if self._covers(loop, axis):
            self._block(loop.body, guards)
        elif loop.kind in GRID_AXES:
            with self._braces(f"if ({test})"):
                self._block(loop.body, guards)
        else:
            axes = self._differs(loop.min, loop.extent) | {loop.kind}
            self._block(loop.body, (*guards, Guard(test, axes)))

    def _striding(self, loop: For, name: str, first: str, end: str, guards: Guards) -> None:
        """Fewer blocks or threads than iterations: each takes every n-th one."""
        if loop.kind in THREAD_AXES and _collective(loop):
            raise ValueError(f"a barrier inside a loop over {loop.kind} with more iterations than threads")
        step = loop.kind.replace("blockIdx", "gridDim").replace("threadIdx", "blockDim")
        self._line(
            f"for ({self._type(loop)} {name} = {first}; {name} < {end}; {name} += {step}) {{  // {self._note(loop)}"
        )
        self.depth += 1
        self.alone = True
        with self._repeated(), self._quotients(loop):
            self._block(loop.body, guards)
        if loop.kind in GRID_AXES and _uses_shared(loop.body):
            self._line("__syncthreads();  // the next round overwrites shared memory")
        self.depth -= 1
        self._line("}")

    @contextmanager
    def _quotients(self, loop: For) -> Generator[None]:
        """Divisions that have all they need as soon as the variable of a loop is known, as variables of their own."""
        scope, names, before = self.scope, list[str](), dict(self.scope.quotients)
        for expr in quotients_of(loop.body, scope.variables.keys(), loop.var):
            name = self.names.fresh("rest" if expr.op == "%" else "quotient")
            text = index(expr, scope)
            kind = "long long" if text.wide else scope.index_type
            self._declare(f"const {kind} {name} = {text.text};  // {comment_text(show(expr))}", name)
            scope.quotients[expr] = replace(text, text=name, level=PRIMARY)
            names.append(name)
        yield
        self.names.taken.difference_update(names)
        scope.quotients = before

    @contextmanager
    def _own_scope(self) -> Generator[None]:
        """Braces around what declares a variable, where siblings may use the same name."""
        if self.alone:
            yield
            return
        with self._braces(""):
            yield

    def _strides_over(self, loop: For, axis: Axis) -> bool:
        _, high = bounds(loop.extent, self.scope.ranges)
        if loop.kind in THREAD_AXES:
            assert axis.fixed is not None
            return high is None or high > axis.fixed
        if axis.fixed is not None:
            return high is None or high > axis.fixed
        more = not before_launch(loop.extent, self.kernel) and (
            high is None or high > few_blocks(self.target.multiprocessors)
        )
        return self.large_grid or more

    def _covers(self, loop: For, axis: Axis) -> bool:
        """Whether the launch has exactly the loop's iterations."""
        if axis.fixed is not None:
            return bounds(loop.extent, self.scope.ranges) == (axis.fixed, axis.fixed)
        return loop.extent == axis.extent and not needs_one(self.kernel.body, loop.kind)

    def _vectorized(self, loop: For) -> bool:
        """Write a loop with 16-byte accesses where memory allows; otherwise leave it to the unrolled form."""
        width = bounds(loop.extent, self.scope.ranges)[1]
        stores = _stores(loop.body)
        if width is None or width < 2 or stores is None:
            return False
        plans = [plan_vector(store, loop, width, self.scope) for store in stores]
        if all(plan is None for plan in plans):
            return False
        if bounds(loop.extent, self.scope.ranges)[0] == width:
            self._vector_stores(loop, stores, plans, width)
            return True
        rest = _at_least(loop.extent, width)
        with self._braces(f"if ({index(rest, self.scope).at(SUM)} >= {width})"):
            self._vector_stores(loop, stores, plans, width)
        if divisor(rest, self.scope) % width == 0:
            return True  # a vector is whole, or there is none
        self.lines[-1] = replace(self.lines[-1], text=self.lines[-1].text + " else {  // the rest")
        self.depth += 1
        self._for(self._rest(loop, stores, width), ())
        self.depth -= 1
        self._line("}")
        return True

    def _rest(self, loop: For, stores: Sequence[Store], width: int) -> For:
        """A shorter vector, element by element; unrolled with a condition where it takes elements from registers."""
        private = any(
            self.scope.places[node.tensor].private and any(IndexVar(loop.var) in walk(each) for each in node.indices)
            for store in stores
            for node in walk(store.value)
            if isinstance(node, Read) and node.tensor in self.scope.places
        )
        if not private or loop.min != int64(0):
            return replace(loop, kind="serial")
        exists = Binary("<", IndexVar(loop.var), _at_least(loop.extent, width), DType.BOOL)
        return replace(loop, kind="unroll", extent=int64(width - 1), body=Block((If(exists, loop.body),)))

    def _vector_stores(self, loop: For, stores: list[Store], plans: Sequence[VectorStore | None], width: int) -> None:
        whole = replace(loop, extent=int64(width), kind="unroll")
        for store, plan in zip(stores, plans, strict=True):
            if plan is None:
                self._for(replace(whole, body=Block((store,))), ())
                continue
            self._announce(store)
            with self._by_one_thread(store.buffer), self._braces(""):
                self._vector_store(whole, store, plan)

    def _vector_store(self, loop: For, store: Store, plan: VectorStore) -> None:
        """Loads, the elements one by one in registers, the store."""
        scope = self.scope
        for helper in ("tc_vector", "tc_load", "tc_store"):
            scope.use(helper)
        pieces: dict[Read, tuple[str, int]] = {}
        for load in plan.loads:
            name = self.names.fresh(f"{load.read.tensor}_vector")
            pieces[load.read] = (name, load.width)
            for line in load.lines(name, scope):
                self._line(line, store)
        target = plan.target
        result = self.names.fresh(f"{store.buffer}_result")
        if target is not None:
            for line in target.lines(result, scope) if store.reduce else [target.declaration(result)]:
                self._line(line, store)
        self._line("#pragma unroll")
        with self._variable(loop) as name:
            low = index(loop.min, scope).at(SUM)
            self._line(f"for (int {name} = 0; {name} < {plan.width}; {name}++) {{")
            self.depth += 1
            lane = name if low in ("0", "0ll") else f"{low} + {name}"
            scope.variables[loop.var] = lane if lane == name else f"({lane})"
            scope.lanes = {read: _lane(piece, name, plan.width, width) for read, (piece, width) in pieces.items()}
            goal = None if target is None else _lane(result, name, plan.width, target.width)
            self._store(store, goal)
            scope.lanes = {}
            scope.variables[loop.var] = name
            self.depth -= 1
            self._line("}")
        if target is not None:
            for line in target.stores(result, scope):
                self._line(line, store)
        for taken in (result, *(name for name, _ in pieces.values())):
            self.names.taken.discard(taken)

    # --- stores ------------------------------------------------------------------------------------------------------

    def _store(self, stmt: Store, goal: str | None = None) -> None:
        """Assign or combine; `goal` replaces the element (a lane of a vector)."""
        scope = self.scope
        place = scope.places[stmt.buffer]
        dtype = place.buffer.dtype
        target = goal or element(place, stmt.indices, scope)
        if stmt.reduce is None:
            new = cast(value(stmt.value, scope), stmt.value.dtype, dtype, scope)
            self._line(f"{target} = {new.text};", stmt)
            return
        term = cast(value(stmt.value, scope), stmt.value.dtype, dtype.compute, scope)
        if stmt.atomic and not place.private:
            self._atomic(stmt, target, dtype, term)
            return
        if dtype.is_float and dtype is dtype.compute and stmt.reduce in ("+", "*"):
            self._line(f"{target} {stmt.reduce}= {term.text};", stmt)
            return
        self._line(f"{target} = {self._combined(stmt.reduce, Text(target), term, dtype).text};", stmt)

    def _combined(self, op: str, old: Text, term: Text, dtype: DType) -> Text:
        """`combine(old, term)` as it is stored; `old` is as stored, `term` has the type of arithmetic."""
        scope, compute = self.scope, dtype.compute
        if dtype is DType.BOOL:
            old = Text(f"{old.at(UNARY)} != 0", 50)
        left = cast(old, dtype, compute, scope)
        if op in ("min", "max"):
            return cast(extremum(op, compute, left, term, scope), compute, dtype, scope)
        return cast(arithmetic(op, compute, left, term, scope), compute, dtype, scope)

    def _atomic(self, stmt: Store, target: str, dtype: DType, term: Text) -> None:
        """The hardware's operation where there is one, else a loop around compare-and-swap."""
        scope, op = self.scope, stmt.reduce
        assert op is not None
        native = {"+": "atomicAdd", "min": "atomicMin", "max": "atomicMax"}.get(op, "")
        word = dtype in (DType.INT32, DType.UINT32, DType.INT64, DType.UINT64)
        if (op == "+" and dtype in (DType.FLOAT32, DType.FLOAT64)) or (native and word):
            address, operand = f"&{target}", term.text
            if dtype is DType.INT64 and op == "+":
                address = f"reinterpret_cast<unsigned long long*>({address})"
                operand = f"(unsigned long long){term.at(UNARY)}"
            self._line(f"{native}({address}, {operand});", stmt)
            return
        compute = dtype.compute
        with self._braces(""):
            name, seen = self.names.fresh("term"), self.names.fresh("seen")
            self._line(f"const {value_type(compute)} {name} = {term.text};", stmt)
            new = self._combined(op, Text(seen), Text(name), dtype).text
            if dtype.bits >= 32:
                kind, bits = value_type(dtype), "unsigned int" if dtype.bits == 32 else "unsigned long long"
                scope.use("tc_bits")
                call = f"{scope.use('tc_atomic_update')}<{bits}>(&{target}, [=]({kind} {seen}) {{ return {new}; }});"
            else:
                helper = scope.use(f"tc_atomic_update{dtype.bits}")
                call = f"{helper}(&{target}, [=]({C_TYPES[dtype]} {seen}) {{ return {new}; }});"
            self._line(call, stmt)
            self.names.taken -= {name, seen}

    # --- storage -----------------------------------------------------------------------------------------------------

    def _allocate(self, stmt: Allocate, guards: Guards) -> None:
        buffer = stmt.buffer
        before = self.scope.places.get(buffer.name)
        name = self.names.fresh(buffer.name)
        match buffer.scope:
            case "shared":
                place = self._shared(buffer, name)
            case "local" | "register" | "threads":
                place = self._private(buffer, name)
            case "fragment":
                place = self._fragment(buffer, name, stmt.body)
            case _:
                place = self._workspace(buffer, name)
        self.scope.places[buffer.name] = place
        self._block(stmt.body, guards)
        if before is not None:
            self.scope.places[buffer.name] = before

    def _constant_shape(self, buffer: Buffer) -> tuple[int, ...] | None:
        """Extents that are large enough for every iteration around, if they are constants."""
        extents = [bounds(extent, self.scope.ranges)[1] for extent in buffer.shape]
        return None if any(extent is None for extent in extents) else tuple(max(extent or 0, 1) for extent in extents)

    def _private(self, buffer: Buffer, name: str) -> Place:
        shape = self._constant_shape(buffer)
        if shape is None:
            return self._thread_workspace(buffer, name)
        sized = _sized(buffer, shape)
        shape = shape[buffer.threads :]
        if prod(shape) * buffer.dtype.bytes > MAX_PRIVATE:
            return self._thread_workspace(replace(sized, shape=sized.shape[buffer.threads :], threads=0), name)
        kind = C_TYPES[buffer.dtype]
        note = comment_text(f"{buffer.name}: {buffer.dtype.value} ({', '.join(map(str, shape))}), one per thread")
        if not shape:
            self._line(f"{kind} {name};  // {note}")
            return Place(sized, name, scalar=True)
        own = replace(sized, shape=sized.shape[buffer.threads :])
        self._line(f"{kind} {name}{_extents_text(own)};  // {note}")
        return Place(sized, name, dimensional=True)

    def _fragment(self, buffer: Buffer, name: str, body: Block) -> Place:
        """Registers of a matrix in the layout of the matrix steps that use it."""
        shape = self._constant_shape(buffer)
        roles = {
            role
            for stmt in walk_statements(body)
            if isinstance(stmt, Intrinsic) and stmt.name in MATRIX_STEPS
            for operand, role in zip(stmt.operands, ("accumulator", "left", "right"), strict=True)
            if operand.tensor == buffer.name
        }
        if shape is None or len(roles) != 1:
            raise ValueError(f"the fragment {buffer.name} needs constant extents and one role, it has {sorted(roles)}")
        place = Place(_sized(buffer, shape), name, fragment=roles.pop())
        kind, extents = fragment_type(place)
        note = f"{buffer.name}: {buffer.dtype.value} {' x '.join(map(str, shape[-2:]))}, one per warp, spread over its lanes"
        self._line(f"{kind} {name}{''.join(f'[{extent}]' for extent in extents)};  // {comment_text(note)}")
        return place

    def _shared(self, buffer: Buffer, name: str) -> Place:
        shape = self._constant_shape(buffer)
        if shape is None:
            self._refuse(
                f"`{buffer.name}` in shared memory has no constant size",
                "choose constant factors for the splits around it",
            )
        sized = _sized(buffer, shape or (1,) * len(buffer.shape))
        kind = C_TYPES[buffer.dtype]
        swizzle = f", chunks exchanged by (row >> {buffer.swizzle[0]}) & {buffer.swizzle[1]}" if buffer.swizzle else ""
        note = comment_text(f"{buffer.name}: {buffer.dtype.value}{_extents_text(sized)}, one per block{swizzle}")
        start, self.shared_bytes = self.shared_bytes, self.shared_bytes + _padded_bytes(sized)
        extents = _extents_text(sized) or "[1]"
        flat = buffer.swizzle is not None or not shape
        if flat:
            extents = f"[{_elements(sized)}]"
        if not self.dynamic:
            self._line(f"__shared__ __align__(16) {kind} {name}{extents};  // {note}")
        elif flat or len(sized.shape) == 1:
            self._line(f"{kind}* const {name} = reinterpret_cast<{kind}*>(tc_shared + {start});  // {note}")
        else:
            rows = extents[extents.index("]") + 1 :]
            self._line(
                f"{kind} (*const {name}){rows} = reinterpret_cast<{kind} (*){rows}>(tc_shared + {start});  // {note}"
            )
        return Place(sized, name, dimensional=not flat)

    def _workspace(self, buffer: Buffer, name: str) -> Place:
        """Memory of the whole kernel, passed by the launcher."""
        self.names.taken.discard(name)
        self.workspace.append(buffer)
        return Place(buffer, self.names.of(f"workspace {buffer.name}", buffer.name))

    def _thread_workspace(self, buffer: Buffer, name: str) -> Place:
        """Private storage without a constant size: a part of memory per thread of the launch."""
        if not all(before_launch(extent, self.kernel) for extent in buffer.shape):
            self._refuse(f"`{buffer.name}` has no size that is known before the launch", "compute it at root")
        axes = [self._extent(axis) for axis in (*THREAD_AXES, *GRID_AXES)]
        total: Expr = int64(1)
        for extent in axes:
            if extent != int64(1):
                total = extent if total == int64(1) else Binary("*", total, extent, DType.INT64)
        whole = replace(buffer, scope="global", shape=(total, *buffer.shape), pad=0, swizzle=None)
        self.workspace.append(whole)
        pointer = self.names.of(f"workspace {buffer.name}", f"{buffer.name}_of_all")
        number = (
            "((((long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.z + threadIdx.z)"
            " * blockDim.y * blockDim.x + threadIdx.y * blockDim.x + threadIdx.x"
        )
        size = " * ".join(f"(long long){index(extent, self.scope).at(UNARY)}" for extent in buffer.shape)
        note = comment_text(f"{buffer.name}, one per thread")
        self._line(f"{C_TYPES[buffer.dtype]}* const {name} = {pointer} + ({number}) * {size};  // {note}")
        return Place(replace(buffer, pad=0, swizzle=None), name)

    def _refuse(self, message: str, help_text: str) -> None:
        source = self.source or SourceText("")
        diagnostic = Diagnostic(codes.DEVICE_LIMIT, NO_SPAN, message, help=help_text)
        raise CompileError((diagnostic,), source, render((diagnostic,), source))

    def _check_reductions(self) -> None:
        """The threads of a reduction are neighbours: a row of threads along x has them once, or one warp's part several times."""
        for stmt in walk_statements(self.kernel.body):
            if not (isinstance(stmt, Intrinsic) and stmt.name == "reduce_threads"):
                continue
            threads, row = int(dict(stmt.attributes)["threads"]), self.axes["threadIdx.x"].fixed or 1
            if row % threads if is_of_lanes(stmt) else row != threads:
                self._refuse(
                    f"a reduction over {threads} threads does not fit rows of {row} threads",
                    f"bind loops of {threads} iterations to `threadIdx.x`",
                )

    def _check_shared(self) -> None:
        limit = max(self.target.shared_optin_bytes, STATIC_SHARED_BYTES)
        if self.shared_bytes > limit:
            self._refuse(
                f"kernel `{self.kernel.name}` needs {self.shared_bytes} bytes of shared memory per block; the device has {limit}",
                "use smaller tiles or fewer stages",
            )


# --- facts about statements ------------------------------------------------------------------------------------------


def _high(loop: For) -> Expr:
    """One beyond the last value of a loop: of one over `end - min` iterations from `min` that is `end`."""
    match loop.extent:
        case Binary("-", end, start) if start == loop.min:
            return end
        case _:
            return loop.extent if loop.min == int64(0) else Binary("+", loop.min, loop.extent, DType.INT64)


def _unrolled_end(loop: For) -> tuple[int, Expr | None]:
    """Of a loop over `min(limit, most)` that is unrolled: both ends. Only a constant end makes indices of registers constant."""
    extent = loop.extent
    if (
        loop.kind in ("unroll", "vectorize")
        and loop.min == int64(0)
        and isinstance(extent, Binary)
        and extent.op == "min"
    ):
        for most, limit in ((extent.right, extent.left), (extent.left, extent.right)):
            if isinstance(most, Const) and 0 < most.value <= MAX_UNROLL:
                return int(most.value), limit
    return 0, None


def _collective(stmt: Stmt) -> bool:
    """Whether all threads have to take part: a barrier or a warp-wide operation is inside."""
    return any(
        isinstance(each, Barrier) or (isinstance(each, Intrinsic) and each.name in COLLECTIVE)
        for each in walk_statements(Block((stmt,)))
    )


def _guarded_copy(stmt: If) -> Intrinsic | None:
    """The copy of `if inside: cp_async(S, G) else: cp_async_zero(S)`: one instruction."""
    if stmt.otherwise is None or len(stmt.then.body) != 1 or len(stmt.otherwise.body) != 1:
        return None
    copy, zero = stmt.then.body[0], stmt.otherwise.body[0]
    if not (isinstance(copy, Intrinsic) and isinstance(zero, Intrinsic)):
        return None
    fits = copy.name == "cp_async" and zero.name == "cp_async_zero" and copy.operands[:1] == zero.operands
    return copy if fits else None


def _uses_shared(block: Block) -> bool:
    return any(isinstance(stmt, Allocate) and stmt.buffer.scope == "shared" for stmt in walk_statements(block))


def _stores(block: Block) -> list[Store] | None:
    """The statements of a block if all of them are stores."""
    found: list[Store] = []
    for stmt in block.body:
        match stmt:
            case Store():
                found.append(stmt)
            case Block():
                inner = _stores(stmt)
                if inner is None:
                    return None
                found += inner
            case _:
                return None
    return found


def _at_least(extent: Expr, width: int) -> Expr:
    """`min(4, rest)` -> `rest`, where only a comparison with 4 matters."""
    match extent:
        case Binary("min", Const(number), rest) | Binary("min", rest, Const(number)) if number >= width:
            return rest
        case _:
            return extent


def _facts(expr: Expr) -> dict[str, int]:
    """`N % 4 == 0 && M % 8 == 0` -> {N: 4, M: 8}."""
    match expr:
        case Binary("&&", left, right):
            return _facts(left) | _facts(right)
        case Binary("==", Binary("%", Size(name), Const(number)), Const(0)) if number > 0:
            return {name: int(number)}
        case _:
            return {}


def _shared_total(block: Block, ranges: dict[str, Range]) -> int:
    """Bytes of all shared allocations; an extent without a constant bound counts as 1 (it is refused where it is
    allocated).
    """
    total = 0
    for stmt in block.body:
        inner = ranges
        if isinstance(stmt, For):
            inner = ranges | {stmt.var: loop_range(stmt, ranges)}
        if isinstance(stmt, Allocate) and stmt.buffer.scope == "shared":
            shape = tuple(bounds(extent, ranges)[1] or 1 for extent in stmt.buffer.shape)
            total += _padded_bytes(_sized(stmt.buffer, shape))
        total += sum(_shared_total(sub, inner) for sub in sub_blocks(stmt))
    return total


def _sized(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    return replace(buffer, shape=tuple(map(int64, shape)), align=max(buffer.align, 16))


def _pitched(buffer: Buffer) -> list[int]:
    """Constant extents, the last one with its padding."""
    extents = [int(extent.value) for extent in buffer.shape if isinstance(extent, Const)]
    return [*extents[:-1], extents[-1] + buffer.pad] if extents else []


def _extents_text(buffer: Buffer) -> str:
    return "".join(f"[{extent}]" for extent in _pitched(buffer))


def _elements(buffer: Buffer) -> int:
    return prod(_pitched(buffer))


def _padded_bytes(buffer: Buffer) -> int:
    """Bytes of a shared allocation, rounded up so that the next one starts aligned."""
    return -(-_elements(buffer) * buffer.dtype.bytes // 16) * 16


def _lane(vector: str, lane: str, total: int, width: int) -> str:
    """Element `lane` of a vector, or of an array of vectors."""
    return f"{vector}.at[{lane}]" if width == total else f"{vector}[{lane} / {width}].at[{lane} % {width}]"


# --- the text --------------------------------------------------------------------------------------------------------


def _without_unused(lines: list[Line]) -> list[Line]:
    """The lines without declarations that nothing uses."""
    kept: list[Line] = []  # the last line first: what only an unused declaration uses is unused
    for line in reversed(lines):
        if not line.declares or _is_used(line, reversed(kept)):
            kept.append(line)
    return kept[::-1]


def _is_used(own: Line, later: Iterable[Line]) -> bool:
    """Whether a declared name stands in a later line of its scope."""
    depth = len(own.text) - len(own.text.lstrip())
    word = re.compile(rf"\b{own.declares}\b")
    for line in later:
        if line.text and len(line.text) - len(line.text.lstrip()) < depth:
            return False
        if word.search(line.text.partition("//")[0]):
            return True
    return False


def _is_silent(text: str) -> bool:
    """Whether the compiler has nothing to say about a line: a comment, a pragma, the end of an inner block."""
    return text.lstrip().startswith(("//", "#pragma")) or (text.startswith(INDENT) and text.strip() == "}")


def _assemble(lines: list[Line], entry: str, source: SourceText | None) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The text with `#line` directives, and the statement of each of its lines.

    A line of a statement counts as its line of the cell. Lines of nobody count as lines of the text itself, so that
    no message about them points into the cell; for inner closing braces and comments that does not matter and the
    directive is left out.
    """
    text: list[str] = []
    line_map: list[tuple[int, str]] = []
    counted: tuple[str, int] = ("", 0)
    own = f"{entry}.cu"
    name = "" if source is None else source.name.replace("\\", "/").replace('"', "'")
    for line in lines:
        if line.cell is not None:
            wanted = (name, line.cell + 1)
            if counted != wanted:
                text.append(f'#line {line.cell + 1} "{name}"')
            counted = wanted
        elif name and counted[0] == name and not _is_silent(line.text):
            text.append(f'#line {len(text) + 2} "{own}"')
            counted = (own, len(text) + 1)
        if line.statement:
            line_map.append((len(text), line.statement))
        text.append(line.text)
        counted = (counted[0], counted[1] + 1)
    return "\n".join(text) + "\n", tuple(line_map)
