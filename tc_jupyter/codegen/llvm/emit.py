"""Loop IR -> LLVM IR: loops become blocks, vectorised loops become vectors, parallel loops become tasks.

One walk prints scalar and vector code alike: inside a vectorised loop an expression that moves with its variable has as many lanes
as the loop has iterations, every other expression stays a scalar. Conditions that differ between lanes become masks, and a masked
read touches no memory of an inactive lane. Integer expressions without reads are printed in the outermost loop that knows their
variables, once.

The entry point is `void NAME(ptr args, i64 index, i64 thread, i64 tasks)`: one task of so many. `args` holds one 8-byte slot per
argument of the `KernelSource`, in order: addresses, `int64` numbers, scalars by value in the low bytes. The first line of the text
names the passes that it wants; see `runtime.jit`.

Worked example: `C[i, j] += A[i, k] * B[k, j]` in `for j in 0:32 (vectorize)` is two loads, a broadcast and a fused multiply-add of
`<32 x float>`, which is two registers of AVX-512 or eight of NEON.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import assert_never

from tc_jupyter.codegen.source import Argument, KernelSource, Launch
from tc_jupyter.diagnostics import NO_SPAN, CompileError, Diagnostic, SourceText, render
from tc_jupyter.diagnostics.codes import DEVICE_LIMIT
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
    expressions,
    walk_statements,
)
from tc_jupyter.program import (
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    children,
    int64,
    rewrite,
    walk,
)
from tc_jupyter.schedule import Target
from tc_jupyter.schedule.templates.contraction import PIXEL

from . import arith
from .builder import (
    Builder,
    Lines,
    Value,
    clean,
    constant,
    flatten,
    index,
    mangle,
    memory_type,
    register_type,
    vector_type,
)
from .collapse import collapse, collapse_reductions
from .division import divide, has_reciprocal
from .fusion import fuse_reductions
from .half_tiles import half_tiles
from .multiples import whole_tiles
from .narrow import narrow
from .overlap import overlap
from .packing import Scope, packed, written
from .peeling import peel
from .pieces import Pieces, in_pieces, reads_in_pieces, reduced, wrapped
from .polynomial import (
    Polynomial,
    Term,
    add,
    as_expr,
    coefficient,
    has_iterations,
    mentions,
    moves,
    multiply,
    polynomial,
    scaled,
    step,
    without,
)
from .prefetch import (
    BURST,
    FIRST,
    LINE,
    LONGEST,
    MOST_LINES,
    ROW_AHEAD,
    SECOND,
    SHORT_ROW,
    SOON,
    distance,
    is_batch,
    look_up,
    next_item,
    next_panel,
    next_rows,
    takes_long,
)
from .prepare import (
    PARTIAL,
    Tasks,
    accesses,
    accumulate,
    ceil_div,
    constant_value,
    full_tiles,
    has_read,
    largest,
    maximum,
    minimum,
    plus,
    substitute,
    tasks,
    times,
    upper_limit,
    variables,
    without_short,
)
from .remainder import one_by_one
from .row_tiles import Part, is_large, lanes_of_stream, row_tiles
from .show import show, show_store
from .steps import DOT, dot, native_steps
from .strips import WIDEST, cut, find, flat_dimensions, is_stream, join, native_lanes, operation_lanes, strip
from .transpose import PIECE_BITS, apart, blocked, crossing_reads, every, halving_reads, plain_reads, turn, under_masks
from .vector_math import emit_call, float_remainder

STACK_BYTES = 16 << 10
"""Largest temporary on the stack, and the sum of all is at most four times this: other threads have small stacks."""
PAGE = 4 << 10
"""The workspace of a thread begins at a page and leaves the next one free: a processor that reads on to the end of a page fetches
the beginning of the next one too, and would take it from the processor that writes there. Measured with a row of 4 kB in the
workspace, 4096 rows on two threads: 2.7 to 3.0 ms with none or one page per thread, 1.2 to 1.4 ms with a free page between."""
MOST_WEIGHT = 1 << 31
"""Up to so large constants and factors of sizes and indices, a comparison is one of their difference, which does not overflow."""
MOST_UNROLLED = 128
"""Iterations of `unroll` loops that are written out."""


def emit_llvm(kernel: Kernel, target: Target, exclusive: frozenset[str] = frozenset()) -> KernelSource:
    """Return the LLVM IR of one kernel.

    Args:
        target: a CPU; `features` and `vector_bits` decide about masks, conversions and the width of strip-mined loops.
        exclusive: temporaries of the whole program that no other kernel writes.

    Returns:
        `launch.grid[0]` is the number of tasks, negative if no thread is worth waking. `workspace` holds at most one buffer of
        bytes with scope `local`: the launcher gives every thread that many (a multiple of 64), 64-byte aligned, one after the
        other.

    Raises:
        CompileError: TC503, an expression is nested too deeply.
    """
    try:
        return _emit(kernel, target, exclusive)
    except RecursionError:
        message = f"the expressions of `{kernel.name}` are nested too deeply to generate code"
        diagnostic = Diagnostic(DEVICE_LIMIT, NO_SPAN, message, help="split the statement with a temporary")
        source = SourceText("")
        raise CompileError((diagnostic,), source, render((diagnostic,), source)) from None


def _emit(kernel: Kernel, target: Target, exclusive: frozenset[str]) -> KernelSource:
    """From the kernel as it was lowered to text."""
    kernel = expand(whole_tiles(kernel), native_steps(kernel, target))
    own = tuple(stmt.buffer for stmt in walk_statements(kernel.body) if isinstance(stmt, Allocate))
    flat = flat_dimensions((*kernel.buffers, *own))
    kernel = collapse_reductions(replace(kernel, body=fuse_reductions(one_by_one(kernel.body))))
    flat = flat_dimensions((*kernel.buffers, *own))
    kernel = replace(kernel, body=join(narrow(find(kernel.body, flat))))
    kernel = collapse(kernel, target)
    flat = flat_dimensions((*kernel.buffers, *own))
    kernel = replace(kernel, body=strip(kernel.body, target))
    plan = tasks(kernel, lambda loop: operation_lanes(loop, flat, target))
    scopes = {buffer.name: buffer.scope for buffer in kernel.buffers}
    scopes |= {buffer.name: buffer.scope for buffer in plan.allocations}
    bound = frozenset(loop.var for loop in plan.loops)
    inputs = {buffer.name: buffer for buffer in kernel.buffers}
    buffers = {buffer.name: buffer for buffer in (*kernel.buffers, *plan.allocations)}
    lengths = {loop.var: loop.extent for loop in plan.loops if constant_value(loop.min) == 0}
    body = packed(plan.body, Scope(buffers, flat, lengths, written(plan.body), exclusive, target))
    body = row_tiles(overlap(body, target.free_masks), buffers, target)
    body = under_masks(without_short(peel(accumulate(body, scopes))), buffers, target)
    limits = {name: (least, largest) for name, least, largest in kernel.within}
    body = blocked(half_tiles(full_tiles(body, bound), limits, target), inputs, target)
    for buffer in reversed(plan.allocations):
        body = Block((Allocate(buffer, body),))
    return _Module(kernel, target, replace(plan, body=body)).source()


SCALES = (1, 2, 4, 8)
"""What the addresses of a processor multiply a register with."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """A pointer that a loop moves by the same number of elements in every iteration.

    Attributes:
        name: of the pointer.
        start: the pointer where the counter is 0.
        gain: elements per iteration.
        bytes: the same in bytes, 0 if it is not a constant.
        element: type of an element.
        place: for the text that computes it.
    """

    name: str
    start: str
    gain: Value
    bytes: int
    element: str
    place: Lines


@dataclass(slots=True)
class _Counted:
    """An innermost loop with a counter that is being printed: its variable, and what moves with it."""

    var: str
    moved: list[_Moved] = field(default_factory=list)


@dataclass(slots=True)
class _Level:
    """A loop that is being printed: where code that depends on its variable alone goes, and what is there already."""

    place: Lines
    memo: dict[object, Value] = field(default_factory=dict)
    pointers: dict[object, str] = field(default_factory=dict)
    counted: _Counted | None = None


@dataclass(frozen=True, slots=True)
class _Storage:
    """A buffer at run time.

    Attributes:
        pointer: address of element 0.
        strides: elements per step of each dimension.
        level: loop depth from which on the pointer is known.
        lanes: more than 1 for private storage of a vectorised loop: every element is a vector of one value per lane.
        private: memory of the task, where inactive lanes may be read.
    """

    buffer: Buffer
    pointer: str
    strides: tuple[Polynomial, ...]
    level: int = 0
    lanes: int = 1
    private: bool = False


@dataclass(frozen=True, slots=True)
class _Wrap:
    """A position that wraps around: that of the first lane, and what it is a remainder of."""

    first: Value
    size: Value


@dataclass(frozen=True, slots=True)
class _Written:
    """A store of neighbouring elements that goes past the caches if a condition holds.

    Attributes:
        stored: operand with its type.
        pointer: where it goes.
        size, register: alignment in bytes, of an element and where lines are whole.
        past: the condition.
    """

    stored: str
    pointer: str
    size: int
    register: int
    past: Value


@dataclass(frozen=True, slots=True)
class _Vector:
    """The vectorised loop that is being printed: its variable, first value, lanes and level."""

    var: str
    first: Expr
    lanes: int
    level: int = field(compare=False)


class _Function:
    """Prints the body of the task function."""

    def __init__(self, kernel: Kernel, target: Target, builder: Builder) -> None:
        self.kernel = kernel
        self.target = target
        self.b = builder
        self.place: Lines = []
        self.levels = [_Level(self.place)]
        self.writers: Mapping[str, set[tuple[str, bool]]] = {}
        # by identity, with the object, so that no other one gets its identity
        self.vectorizable: dict[int, tuple[For, bool]] = {}
        self.needed: dict[int, tuple[Expr, frozenset[str] | None]] = {}
        self.inputs = frozenset(buffer.name for buffer in kernel.buffers if buffer.role == "input")
        self.values: dict[str, Value] = {}
        self.sums: dict[str, Expr] = {}
        self.level_of: dict[str, int] = {}
        self.constants: dict[str, Expr] = {}
        self.ranges: dict[str, tuple[Expr, Expr]] = {}
        self.extents: dict[str, Expr] = {}
        self.positive: frozenset[Expr] = frozenset()
        self.item = ""
        self.scalars: dict[str, Value] = {}
        self.storages: dict[str, _Storage] = {}
        self.vector: _Vector | None = None
        self.tail: Value | None = None
        self.tail_count: Value | None = None
        self.alone: Value | None = None
        self.mask: Value | None = None
        self.memo: list[dict[Expr, Value]] = [{}]
        self.loads: list[dict[object, Value]] = [{}]
        self.workspace: Expr = int64(0)
        self.stack_bytes = 0
        self.slots: set[str] = set()
        self.streams = False
        self.put_off: tuple[str, list[_Written]] | None = None
        self.turns = self.last_rows = False
        self.partial = self.takes_long = False
        self.adds_up: Store | None = None
        self.fetched: dict[str, str] = {}
        self.statements: list[tuple[str, str]] = []

    # --- features ----------------------------------------------------------------------------------------------------

    @property
    def f16c(self) -> bool:
        """Whether the processor converts 16-bit floats."""
        return "f16c" in self.target.features or not self.target.arch.startswith(("x86", "i686"))

    def masks(self, block: Block) -> bool:
        """Whether lanes beyond the end are masked; if not, they run one by one.

        A mask is an instruction for every element type with AVX-512 and for 32 and 64 bits with AVX2. Where it is not, it
        costs a jump per lane, but accumulators that live in registers must not be read by a computed index.
        """
        if self.target.free_masks:
            return True
        if self.uses_registers(block):
            return True
        return all(self.target.has_masks(buffer.dtype.bits) for buffer in self.touched(block))

    def uses_registers(self, block: Block) -> bool:
        """Whether accumulators in registers are read or written."""
        return any(buffer.scope == "register" for buffer in self.touched(block))

    def touched(self, block: Block) -> list[Buffer]:
        """The buffers that are read or written."""
        names = {name for stmt in walk_statements(block) for name in _touched(stmt)}
        return [self.storages[name].buffer for name in names if name in self.storages]

    # --- places ------------------------------------------------------------------------------------------------------

    @contextmanager
    def printing(self, place: Lines) -> Generator[None]:
        """Print there instead of here."""
        saved, self.b.lines = self.b.lines, place
        yield
        self.b.lines = saved

    def at(self, level: int) -> AbstractContextManager[None]:
        """Print into the start of a loop body instead of here."""
        return self.printing(self.levels[level].place)

    @contextmanager
    def scope(self) -> Generator[None]:
        """Results of reads and calls printed inside are not known outside."""
        self.memo.append({})
        self.loads.append({})
        yield
        self.memo.pop()
        self.loads.pop()

    @contextmanager
    def statement_scope(self) -> Generator[None]:
        """As `scope` where no jump leads around the code inside: elements of inputs stay known."""
        self.memo.append({})
        yield
        self.memo.pop()

    @contextmanager
    def masked(self, condition: Value) -> Generator[None]:
        """Only lanes with a true condition are active inside."""
        saved = self.mask
        self.mask = condition if saved is None else arith.logical(self.b, "and", saved, condition)
        with self.statement_scope():
            yield
        self.mask = saved

    def needs(self, expr: Expr) -> frozenset[str] | None:
        """The loop variables that a value depends on; `None` if it depends on more, so that it may not be computed earlier."""
        found = self.needed.get(id(expr))
        if found is not None:
            return found[1]
        names: frozenset[str] | None = frozenset()
        match expr:
            case Const() | Size():
                pass
            case IndexVar():
                names = frozenset((expr.name,))
            case Read(indices=()) if expr.tensor in self.scalars:
                pass
            case Read() | Call():
                names = None
            case Binary(op="%") if expr.dtype.is_float:
                names = None
            case _:
                for child in children(expr):
                    more = self.needs(child)
                    names = None if names is None or more is None else names | more
        self.needed[id(expr)] = (expr, names)
        return names

    def depth(self, names: frozenset[str]) -> int:
        """The innermost level that these loop variables need."""
        return max((self.level_of[name] for name in names), default=0)

    def resolve(self, expr: Expr) -> Expr:
        """Put in the numbers of unrolled loops."""
        return substitute(expr, self.constants) if self.constants else expr

    # --- expressions -------------------------------------------------------------------------------------------------

    def varies(self, expr: Expr) -> bool:
        """Whether the value differs between the lanes of the vectorised loop."""
        if self.vector is None:
            return False
        for node in walk(expr):
            if isinstance(node, IndexVar) and node.name == self.vector.var:
                return True
            if isinstance(node, Read) and node.tensor in self.storages and self.storages[node.tensor].lanes > 1:
                return True
        return False

    def offset_varies(self, offset: Polynomial) -> bool:
        """Whether a position differs between lanes."""
        if self.vector is None:
            return False
        var = self.vector.var
        return moves(offset, var) or any(self.varies(f) for product, _ in offset.terms for f in product if has_read(f))

    def lanes_of(self, expr: Expr) -> int:
        """Lanes of the value."""
        return self.vector.lanes if self.vector is not None and self.varies(expr) else 1

    def value(self, expr: Expr) -> Value:
        """Print the expression, or find its value if it was printed before; constants of unrolled loops are in."""
        match expr:
            case Const():
                return constant(expr.value, expr.dtype)
            case Size() if expr.name in self.sums:
                return self.value(self.sums[expr.name])
            case Size():
                return self.values[expr.name]
            case IndexVar():
                return self.lane_values() if self.vector and expr.name == self.vector.var else self.values[expr.name]
            case Read(indices=()) if expr.tensor in self.scalars:
                return self.scalars[expr.tensor]
            case _:
                pass
        names = self.needs(expr)
        if names is not None:
            level = self.depth(names)
            memo = self.levels[level].memo
            if expr not in memo:
                with self.at(level):
                    memo[expr] = self.node(expr)
            return memo[expr]
        for known in reversed(self.memo):
            if expr in known:
                return known[expr]
        value = self.node(expr)
        self.memo[-1][expr] = value
        return value

    def node(self, expr: Expr) -> Value:
        """Print one node."""
        match expr:
            case Unary(op="!"):
                return arith.invert(self.b, self.value(expr.operand))
            case Unary():
                return arith.negate(self.b, self.value(expr.operand))
            case Binary(op="&&" | "||") if self.may_evaluate_both(expr.left, expr.right):
                operands = arith.same_lanes(self.b, self.value(expr.left), self.value(expr.right))
                return arith.logical(self.b, "and" if expr.op == "&&" else "or", *operands)
            case Binary(op="&&"):
                return self.choose(expr.left, expr.right, Const(False, DType.BOOL))
            case Binary(op="||"):
                return self.choose(expr.left, Const(True, DType.BOOL), expr.right)
            case Binary(op="<") if (lanes := self.lanes_below(expr.left, expr.right)) is not None:
                return lanes
            case Binary(op="//" | "%", dtype=DType.INT64):
                return self.divided(expr)
            case Binary():
                left, right = self.value(expr.left), self.value(expr.right)
                if expr.op == "%" and left.dtype.is_float:
                    return float_remainder(self.b, left, right)
                if expr.op == "/" and has_reciprocal(left, right, self.target):
                    return divide(self.b, left, right)
                return arith.binary(self.b, expr.op, left, right)
            case Select():
                return self.choose(expr.condition, expr.then, expr.otherwise)
            case Cast():
                return arith.cast(self.b, self.value(expr.operand), expr.dtype, self.f16c)
            case Call():
                arguments = tuple(self.value(argument) for argument in expr.arguments)
                return emit_call(self.b, expr.function, arguments, expr.dtype, self.target)
            case Read():
                return self.load(expr)
            case Const() | Size() | IndexVar():
                return self.value(expr)
        assert_never(expr)

    def divided(self, expr: Binary) -> Value:
        """A quotient or remainder of positions; what is known of the divisor saves tests, or the division."""
        if expr.op == "%" and isinstance(expr.right, Size) and (once := self.wraps_once(expr)) is not None:
            return once
        left, right = self.value(expr.left), self.value(expr.right)
        match expr.right:
            case Size():
                return arith.floor_by(self.b, expr.op, left, right, self.value(maximum(expr.right, int64(1))))
            case Binary(op="max", left=a, right=b) if max(constant_value(a) or 0, constant_value(b) or 0) >= 1:
                return arith.floor_by(self.b, expr.op, left, right, right)
            case _:
                return arith.binary(self.b, expr.op, left, right)

    def wraps_once(self, expr: Binary) -> Value | None:
        """A remainder of a position that is at most one beyond what it is a remainder of, by a comparison; else `None`.

        Worked example: `(j + 1) % N` in `for j in 0:N` is `j + 1 < N ? j + 1 : j + 1 - N`.
        """
        if has_read(expr.left) or self.varies(expr):
            return None
        divisor = polynomial(expr.right)
        total = as_expr(reduced(polynomial(expr.left), expr.right))
        try:
            low, high = (polynomial(largest(total, self.ranges, upper)) for upper in (False, True))
        except (RuntimeError, KeyError):  # it has parts whose ranges are not known
            return None
        beyond = add(high, scaled(divisor, -1))
        if any(product for product, _ in (*low.terms, *beyond.terms)) or low.constant < -1 or beyond.constant > 0:
            return None
        found, size = self.value(total), self.value(expr.right)
        if beyond.constant == 0:
            less = arith.binary(self.b, "-", found, size)
            found = arith.select(self.b, arith.compare(self.b, ">=", found, size), less, found)
        if low.constant < 0:
            # without elements everything is at 0
            more = arith.binary(self.b, "+", found, self.value(maximum(expr.right, int64(1))))
            found = arith.select(self.b, arith.compare(self.b, "<", found, index(0)), more, found)
        return found

    def may_evaluate_both(self, first: Expr, second: Expr) -> bool:
        """Whether the second operand of a condition can be computed whatever the first one is.

        It reads elements at the same places as the first one, in arrays of the same shape, and divides by nothing that could be 0.
        """

        def place(read: Read) -> tuple[object, ...]:
            return self.storages[read.tensor].buffer.shape, read.indices

        known = {place(read) for read in plain_reads(first) if read.tensor in self.storages}
        for node in walk(second):
            match node:
                case Read() if node.tensor in self.storages and place(node) not in known:
                    return False
                case Binary(op="/" | "//" | "%") if not node.dtype.is_float:
                    return False
                case Call():
                    return False
                case _:
                    pass
        return bool(known)

    def lanes_below(self, position: Expr, end: Expr) -> Value | None:
        """Which lanes have a position below an end, if neighbours have neighbouring positions: a comparison of narrow numbers."""
        if self.vector is None or has_read(position) or has_read(end) or self.varies(end):
            return None
        place = polynomial(position)
        if position.dtype is not DType.INT64 or step(place, self.vector.var) != (1, True):
            return None
        if any(abs(weight) > MOST_WEIGHT for _, weight in (*place.terms, *polynomial(end).terms)):
            return None
        lanes = self.vector.lanes
        before = Binary("-", end, as_expr(self.first_lane(place)), DType.INT64)
        count = minimum(int64(lanes), maximum(int64(0), before))
        return self.inside(count, lanes, self.value(count))

    def choose(self, condition: Expr, then: Expr, otherwise: Expr) -> Value:
        """`condition ? then : otherwise`; a side with reads is printed under its condition."""
        test = self.value(condition)
        if test.text in ("true", "false"):
            return self.value(then if test.text == "true" else otherwise)
        if self.needs(then) is not None and self.needs(otherwise) is not None:
            return arith.select(self.b, test, self.value(then), self.value(otherwise))
        if test.lanes > 1:
            first, second = self.under(test, then), self.under(test, otherwise, not_=True)
            return arith.select(self.b, test, first, second)
        lanes = max(self.lanes_of(then), self.lanes_of(otherwise))
        return self.branch(test, then, otherwise, lanes)

    def under(self, test: Value, expr: Expr, not_: bool = False) -> Value:
        """A value for the lanes that pass a test, or do not; what has no reads is computed for all."""
        if self.needs(expr) is not None:
            return self.value(expr)
        with self.masked(arith.invert(self.b, test) if not_ else test):
            return self.value(expr)

    def branch(self, test: Value, then: Expr, otherwise: Expr, lanes: int) -> Value:
        """A choice by a jump."""
        yes, no, end = (self.b.name(hint) for hint in ("then", "else", "end"))
        self.b.branch_if(test, yes, no)
        ends: list[tuple[Value, str]] = []
        for label, side in ((yes, then), (no, otherwise)):
            self.b.label(label)
            with self.scope():
                value = arith.broadcast(self.b, self.value(side), lanes)
            ends.append((value, self.b.block))
            self.b.branch(end)
        self.b.label(end)
        return self.b.phi(*ends[0], *ends[1])

    def lane_values(self) -> Value:
        """The variable of the vectorised loop in all lanes."""
        assert self.vector is not None
        vector, key = self.vector, "lanes"
        memo = self.levels[vector.level].memo
        if key not in memo:
            with self.at(vector.level):
                first = arith.broadcast(self.b, self.value(vector.first), vector.lanes)
                numbers = ", ".join(f"i64 {lane}" for lane in range(vector.lanes))
                memo[key] = self.b.op(
                    f"add {first.type} {first.text}, <{numbers}>", DType.INT64, vector.lanes, vector.var
                )
        return memo[key]

    # --- memory ------------------------------------------------------------------------------------------------------

    def offset(self, storage: _Storage, indices: tuple[Expr, ...]) -> Polynomial:
        """The position of an element, in elements from element 0."""
        total = Polynomial(())
        for where, stride in zip(indices, storage.strides, strict=True):
            total = add(total, multiply(polynomial(where), stride))
        return total

    def pointer(self, read: Read) -> str:
        """The address of an element."""
        storage = self.storages[read.tensor]
        return self.address(storage, self.offset(storage, tuple(map(self.resolve, read.indices))))

    def address(self, storage: _Storage, offset: Polynomial) -> str:
        """A pointer to an element; what outer loops know is added there.

        A partial sum may point outside of the buffer (`t[2 - j]` begins with `t - j`), so nothing here is `inbounds`.
        """
        element = vector_type(memory_type(storage.buffer.dtype), storage.lanes)
        by_level: dict[int, list[Term]] = {}
        here: list[Term] = []
        for product, value in offset.terms:
            if not product:
                continue
            needed = [self.needs(factor) for factor in product]
            if all(names is not None for names in needed):
                level = max(storage.level, *(self.depth(names) for names in needed if names is not None))
                by_level.setdefault(level, []).append((product, value))
            else:
                here.append((product, value))
        pointer = storage.pointer
        for level, terms in _rows_last(by_level):
            pointer = self.advance(storage, pointer, element, terms, level)
        if here:
            moved = self.value(as_expr(Polynomial(tuple(here))))
            pointer = self.b.raw(f"getelementptr {element}, ptr {pointer}, {moved.typed}", f"{storage.buffer.name}.at")
        if offset.constant:
            step, name = f"getelementptr {element}, ptr {pointer}, i64 {offset.constant}", f"{storage.buffer.name}.at"
            if pointer not in self.slots:
                return self.b.raw(step, name)
            known = self.levels[0].pointers
            if step not in known:  # an accumulator: it is set, added to and copied out at this place
                with self.at(0):
                    known[step] = self.b.raw(step, name)
            return known[step]
        return pointer

    def advance(self, storage: _Storage, pointer: str, element: str, terms: list[Term], level: int) -> str:
        """`pointer` plus terms that are known in a level."""
        pointers = self.levels[level].pointers
        key = (pointer, element, frozenset(terms))
        if key not in pointers:
            offset, name = Polynomial(tuple(terms)), f"{storage.buffer.name}.at"
            loop = self.levels[level].counted if storage.level < level else None
            gain = None if loop is None else self.gain(offset, loop.var, storage)
            if loop is not None and gain is not None:
                place: Lines = []
                size = storage.buffer.dtype.bytes * storage.lanes * (gain.integer or 0)
                moved = _Moved("%" + self.b.name(name), pointer, gain, size, element, place)
                loop.moved.append(moved)
                self.levels[level].place.append(place)
                pointers[key] = moved.name
                return moved.name
            value = self.value(as_expr(offset))
            with self.at(level):
                pointers[key] = self.b.raw(f"getelementptr {element}, ptr {pointer}, {value.typed}", name)
        return pointers[key]

    def gain(self, offset: Polynomial, var: str, storage: _Storage) -> Value | None:
        """By how much every iteration of an innermost loop moves a position, if a sum is better than a product.

        It is not where addresses of the processor can multiply the counter. LLVM's own search for such sums (loop strength
        reduction) took a quarter of its time and is off (`_Module.header`).
        """
        found = coefficient(offset, var)
        if found is None or without(offset, var) != Polynomial(()):
            return None
        number = constant_value(as_expr(found))
        scaled = number is not None and number * storage.buffer.dtype.bytes * storage.lanes in SCALES
        return None if scaled else self.value(as_expr(found))

    def first_lane(self, offset: Polynomial) -> Polynomial:
        """The position for the first lane."""
        assert self.vector is not None
        if constant_value(self.vector.first) == 0:
            start = without(offset, self.vector.var)
            if start is not None:
                return start
        return polynomial(substitute(as_expr(offset), {self.vector.var: self.vector.first}))

    def whole_vectors(self, storage: _Storage, offset: Polynomial) -> bool:
        """Whether private storage has room for all lanes, so that lanes beyond the end of the loop may be touched."""
        if not storage.private or self.vector is None or not storage.buffer.shape:
            return False
        width = constant_value(self.resolve(storage.buffer.shape[-1]))
        lanes = self.vector.lanes
        return (
            width is not None and width % lanes == 0 and all(s % lanes == 0 for _, s in self.first_lane(offset).terms)
        )

    def active(self, storage: _Storage, offset: Polynomial) -> Value | None:
        """The lanes that may touch memory."""
        if self.whole_vectors(storage, offset):
            return None
        if self.tail is None or self.mask is None:
            return self.mask or self.tail
        return arith.logical(self.b, "and", *arith.same_lanes(self.b, self.tail, self.mask))

    def load(self, read: Read) -> Value:
        """An element, or one element per lane."""
        storage = self.storages[read.tensor]
        offset = self.offset(storage, read.indices)
        key = (storage.buffer.name, frozenset(offset.terms), self.vector, self.tail, self.mask)
        for known in reversed(self.loads):
            if key in known:
                return arith.cast(self.b, known[key], read.dtype, self.f16c)
        if storage.private or storage.buffer.role != "input":
            return arith.cast(self.b, self.element(storage, offset), read.dtype, self.f16c)
        # Nobody writes to what this kernel only reads (what it allocates is private): unrolled and jammed loops share it.
        value = self.loads[-1][key] = self.element(storage, offset)
        return arith.cast(self.b, value, read.dtype, self.f16c)

    def element(self, storage: _Storage, offset: Polynomial) -> Value:
        """Print the read of an element."""
        self.fetch_item(storage, offset)
        if storage.lanes > 1:
            return self.plain_load(storage, self.address(storage, offset), storage.lanes)
        if self.vector is None or not self.offset_varies(offset):
            return self.uniform_load(storage, offset)
        return self.lane_load(storage, offset)

    def uniform_load(self, storage: _Storage, offset: Polynomial) -> Value:
        """The same element for all lanes; not read if no lane is active."""
        if self.mask is None or storage.private:
            return self.plain_load(storage, self.address(storage, offset), 1)
        mask = self.mask  # a condition that holds beyond the end of the loop only is none of it
        if self.tail is not None:
            mask = arith.logical(self.b, "and", *arith.same_lanes(self.b, self.tail, mask))
        some = self.b.call(f"llvm.vector.reduce.or.{mangle(mask.type)}", (mask,), Value("", DType.BOOL), "some")
        assert isinstance(some, Value)
        yes, end, before = self.b.name("active"), self.b.name("end"), self.b.block
        self.b.branch_if(some, yes, end)
        self.b.label(yes)
        value = self.plain_load(storage, self.address(storage, offset), 1)
        loaded = self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(value, loaded, constant(0, value.dtype), before, storage.buffer.name)

    def plain_load(self, storage: _Storage, pointer: str, lanes: int) -> Value:
        """Neighbouring elements without a mask."""
        dtype = storage.buffer.dtype
        kind = vector_type(memory_type(dtype), lanes)
        stored = self.b.raw(f"load {kind}, ptr {pointer}, align {dtype.bytes}", f"{storage.buffer.name}.v")
        return self.from_memory(stored, dtype, lanes)

    def lane_load(self, storage: _Storage, offset: Polynomial) -> Value:
        """One element per lane: neighbours, reversed neighbours, or anywhere."""
        assert self.vector is not None
        lanes, mask = self.vector.lanes, self.active(storage, offset)
        change, _linear = step(offset, self.vector.var)
        if change == 1:
            pointer = self.address(storage, self.first_lane(offset))
            if mask is None:
                self.prefetch(storage, self.first_lane(offset), lanes)
                self.fetch_ahead(storage, pointer, lanes)
                self.fetch_panel(storage, self.first_lane(offset))
                return self.plain_load(storage, pointer, lanes)
            if mask is self.tail and not storage.buffer.strided and storage.buffer.name in self.multiplied():
                return self.load_inside(storage, pointer, lanes, mask)
            return self.masked_load("load", f"ptr {pointer}", storage, mask)
        if change == -1:
            start = add(self.first_lane(offset), Polynomial((((), 1 - lanes),)))
            return self.reversed_load(storage, self.address(storage, start), mask)
        if change == 2:
            return self.strided_load(storage, self.first_lane(offset), mask)
        pieces = in_pieces(offset, self.vector.var, lanes)
        if pieces is not None:
            return self.pieces_load(storage, pieces, mask)
        return self.masked_load("gather", self.lane_pointers(storage, offset), storage, mask)

    def pieces_load(self, storage: _Storage, pieces: Pieces, mask: Value | None) -> Value:
        """Neighbours in one read if they are, else in as many as it takes."""
        assert self.vector is not None
        near, far, end = (self.b.name(hint) for hint in ("near", "far", "end"))
        start = self.address(storage, pieces.rest)
        first, wrap = self.first_neighbour(pieces.position, near, far)
        together = self.read_lanes(storage, start, first, mask)
        self.b.branch(end)
        self.b.label(far)
        if wrap is None:
            apart = self.gather_lanes(storage, start, pieces.position, mask)
        elif self.target.has_masks(storage.buffer.dtype.bits):
            apart = self.around_the_end(storage, start, wrap, mask)
        else:
            apart = self.lane_by_lane(storage, start, wrap, mask)
        last = self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(together, near, apart, last, storage.buffer.name)

    def read_lanes(self, storage: _Storage, start: str, first: Value, mask: Value | None) -> Value:
        """Neighbours from position `first` after `start`."""
        assert self.vector is not None
        element = memory_type(storage.buffer.dtype)
        pointer = self.b.raw(f"getelementptr {element}, ptr {start}, {first.typed}", f"{storage.buffer.name}.at")
        if mask is None:
            return self.plain_load(storage, pointer, self.vector.lanes)
        return self.masked_load("load", f"ptr {pointer}", storage, mask)

    def gather_lanes(self, storage: _Storage, start: str, position: Expr, mask: Value | None) -> Value:
        """Elements from anywhere; the positions are printed here, as few vectors need them."""
        assert self.vector is not None
        where = arith.broadcast(self.b, self.here(position), self.vector.lanes)
        element, name = memory_type(storage.buffer.dtype), f"{storage.buffer.name}.at"
        each = self.b.raw(f"getelementptr {element}, ptr {start}, {where.typed}", name)
        return self.masked_load("gather", f"<{self.vector.lanes} x ptr> {each}", storage, mask)

    def here(self, expr: Expr) -> Value:
        """Print here what `value` would print where its variables are known."""
        if isinstance(expr, Binary) and self.varies(expr):
            return arith.binary(self.b, expr.op, self.here(expr.left), self.here(expr.right))
        return self.value(expr)

    def first_neighbour(self, position: Expr, near: str, far: str) -> tuple[Value, _Wrap | None]:
        """Jump to `far` if the lanes are no neighbours, else begin `near`.

        Returns:
            (position of the first lane in `near`; what `far` has to know of a position that wraps around).
        """
        assert self.vector is not None
        var, first_lane, lanes = self.vector.var, self.vector.first, self.vector.lanes
        wraps = wrapped(position, var)
        if wraps is None:
            first = self.value(substitute(position, {var: first_lane}))
            last = self.value(substitute(position, {var: plus(first_lane, int64(lanes - 1))}))
            distance = arith.binary(self.b, "-", last, first)
            self.b.branch_if(arith.compare(self.b, "==", distance, index(lanes - 1)), near, far)
            self.b.label(near)
            return first, None
        # most positions are their own remainders, which saves the division
        total, divisor = wraps
        first, latest = self.value(substitute(total, {var: first_lane})), self.value(plus(divisor, int64(-lanes)))
        from_start = arith.compare(self.b, ">=", first, index(0))
        to_end = arith.compare(self.b, "<=", first, latest)
        wrap, before = self.b.name("wrap"), self.b.block
        self.b.branch_if(arith.logical(self.b, "and", from_start, to_end), near, wrap)
        self.b.label(wrap)
        size, safe = self.value(divisor), self.value(maximum(divisor, int64(1)))
        rest = arith.floor_by(self.b, "%", first, size, safe)
        found = self.b.block
        self.b.branch_if(arith.compare(self.b, "<=", rest, latest), near, far)
        self.b.label(near)
        return self.b.phi(first, before, rest, found, "first"), _Wrap(rest, size)

    def around_the_end(self, storage: _Storage, start: str, wrap: _Wrap, mask: Value | None) -> Value:
        """Two reads, at the end and at the start, if it wraps around once."""
        assert self.vector is not None
        lanes = self.vector.lanes
        twice, often, end = (self.b.name(hint) for hint in ("twice", "often", "end"))
        self.b.branch_if(arith.compare(self.b, ">=", wrap.size, index(lanes)), twice, often)
        self.b.label(twice)
        kind, left = DType.INT32, arith.binary(self.b, "-", wrap.size, wrap.first)
        numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
        counts = arith.broadcast(self.b, arith.cast(self.b, left, kind, self.f16c), lanes)
        before = self.b.op(f"icmp sgt {counts.typed}, <{numbers}>", DType.BOOL, lanes, "before")
        parts: list[Value] = []
        for first, inside in ((wrap.first, before), (arith.negate(self.b, left), arith.invert(self.b, before))):
            both = inside if mask is None else arith.logical(self.b, "and", *arith.same_lanes(self.b, inside, mask))
            parts.append(self.read_lanes(storage, start, first, both))
        once, found = arith.select(self.b, before, *parts), self.b.block
        self.b.branch(end)
        self.b.label(often)
        each, last = self.lane_by_lane(storage, start, wrap, mask), self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(once, found, each, last, storage.buffer.name)

    def lane_by_lane(self, storage: _Storage, start: str, wrap: _Wrap, mask: Value | None) -> Value:
        """One element after the other: few vectors are like that, so this code is to be short."""
        assert self.vector is not None
        lanes, dtype = self.vector.lanes, storage.buffer.dtype
        element, lane, name = memory_type(dtype), f"{self.vector.var}.lane", storage.buffer.name
        kind = vector_type(element, lanes)
        active = None if mask is None else arith.broadcast(self.b, mask, lanes)
        slot = self.b.slot(kind, 1, lanes * dtype.bytes, f"{name}.lanes")
        if active is not None:
            self.b.line(f"store {kind} zeroinitializer, ptr {slot}")
        present = self.b.slot("i64", 1, 8, "position")
        self.b.line(f"store {wrap.first.typed}, ptr {present}")
        with self.counted(lane, index(0), index(lanes), int64(0), int64(lanes), guard=False):
            where = self.next_wrapped(present, wrap.size)
            skip = "" if active is None else self.skip_unless(active, lane)
            pointer = self.b.raw(f"getelementptr {element}, ptr {start}, {where.typed}", f"{name}.at")
            stored = self.b.raw(f"load {element}, ptr {pointer}, align {dtype.bytes}", f"{name}.v")
            place = self.b.raw(f"getelementptr {element}, ptr {slot}, {self.values[lane].typed}", "lane.at")
            self.b.line(f"store {element} {stored}, ptr {place}")
            if skip:
                self.b.branch(skip)
                self.b.label(skip)
        return self.from_memory(self.b.raw(f"load {kind}, ptr {slot}", f"{name}.v"), dtype, lanes)

    def next_wrapped(self, slot: str, size: Value) -> Value:
        """The position in a slot, which then holds the one after it: the first one after the last."""
        now = self.b.op(f"load i64, ptr {slot}", DType.INT64, 1, "position")
        after = arith.binary(self.b, "+", now, index(1))
        is_last = arith.compare(self.b, ">=", after, size)
        self.b.line(f"store {arith.select(self.b, is_last, index(0), after).typed}, ptr {slot}")
        return now

    def skip_unless(self, active: Value, lane: str) -> str:
        """Jump over what follows where a lane is not active; the label that it ends with."""
        one = self.b.op(f"extractelement {active.typed}, {self.values[lane].typed}", DType.BOOL, 1, "active")
        read, skip = self.b.name("read"), self.b.name("skip")
        self.b.branch_if(one, read, skip)
        self.b.label(read)
        return skip

    def prefetch(self, storage: _Storage, offset: Polynomial, lanes: int) -> None:
        """Fetch the row of a later look-up, if the innermost loop looks rows up in a table larger than the nearer caches."""
        inner = [name for name, level in self.level_of.items() if level == len(self.levels) - 2]
        read = look_up(offset, inner[0]) if inner and self.mask is None else None
        if read is None or storage.private:
            return
        table = self.storages[read.tensor]
        where = self.offset(table, read.indices)
        if table.private or table.buffer.strided or step(where, inner[0]) != (1, True) or _reads(where):
            return
        size, count = storage.buffer.dtype.bytes, _product(storage.buffer.shape)
        large = self.value(Binary(">", count, int64(self.target.l2_bytes // size), DType.BOOL))
        fetch, end = self.b.name("fetch"), self.b.name("fetched")
        self.b.branch_if(large, fetch, end)
        self.b.label(fetch)
        with self.scope():
            last = plus(_product(table.buffer.shape), int64(-1))
            place = minimum(plus(as_expr(where), int64(distance(lanes * size))), last)
            ahead = self.later(table, place, read)
            moved = rewrite(as_expr(offset), lambda node: ahead if node == read else None)
            pointer = self.address(storage, polynomial(moved))
            for line in range(min(MOST_LINES, -(-lanes * size // LINE))):
                self.fetch(pointer, line * LINE)
        self.b.branch(end)
        self.b.label(end)

    def fetch_ahead(self, storage: _Storage, pointer: str, lanes: int) -> None:
        """Fetch what a long computation reads soon, or a reduction over rows of an input, of all its rows, in the first loop that
        reads the input.
        """
        if storage.buffer.name not in self.inputs:
            return
        if self.takes_long:
            for line in range(0, lanes * storage.buffer.dtype.bytes, LINE):
                self.fetch(pointer, SOON + line)
        if not self.partial or self.target.reads_ahead:
            return
        loop = max(self.level_of, key=self.level_of.__getitem__, default="")
        if self.fetched.setdefault(storage.buffer.name, loop) != loop:
            return
        for line in range(-(-lanes * storage.buffer.dtype.bytes // LINE)):
            self.fetch(pointer, ROW_AHEAD + line * LINE)

    def fetch_rows(self, var: str, body: Block) -> None:
        """Fetch the rows of large inputs that the next iteration of a loop over rows reads, before this one is computed."""
        if self.target.reads_ahead or any(isinstance(stmt, Part) for stmt in walk_statements(body)):
            return
        inputs = {
            name: storage.strides
            for name, storage in self.storages.items()
            if storage.buffer.role == "input" and storage.buffer.shape and not storage.buffer.strided
            if (constant_value(storage.buffer.shape[-1]) or SHORT_ROW) * storage.buffer.dtype.bytes >= SHORT_ROW
        }
        reduces = any(isinstance(stmt, Store) and stmt.reduce is not None for stmt in walk_statements(body))
        for name, row, gain in next_rows(body, var, inputs, self.resolve):
            self.b.comment(f"fetch the row of {name} that the next iteration of {var} reads")
            buffer, number = self.storages[name].buffer, f"{name}.line"
            size, shape = buffer.dtype.bytes, buffer.shape
            large = Binary(">", _product(shape), int64(self.target.l2_bytes // size), DType.BOOL)
            lines = ceil_div(times(shape[-1], int64(size)), int64(LINE))
            count = Select(large, minimum(lines, int64(LONGEST // LINE)), int64(0), DType.INT64)
            pointer = self.address(self.storages[name], row)
            if (
                reduces and constant_value(as_expr(gain)) is None
            ):  # windows make little of a row, so it must be under way earlier
                nbytes = times(maximum(as_expr(gain), int64(1)), int64(size))
                later = Binary("//", int64(BURST), nbytes, DType.INT64)
                by = self.value(times(later, as_expr(gain)))
                pointer = self.b.raw(f"getelementptr {memory_type(buffer.dtype)}, ptr {pointer}, {by.typed}", "later")
            with self.counted(number, index(0), self.value(count), int64(0), count, guard=True):
                self.fetch(
                    self.b.raw(f"getelementptr [{LINE} x i8], ptr {pointer}, {self.values[number].typed}", "line"), 0
                )

    def fetch_panel(self, storage: _Storage, offset: Polynomial) -> None:
        """Fetch a piece of the next panel of a temporary, once per iteration of the loop over the rows of this one."""
        assert self.vector is not None
        loops = sorted(self.level_of.keys() - {self.vector.var}, key=self.level_of.__getitem__)
        if storage.private or storage.buffer.scope != "global" or not loops:
            return
        memo, key = self.levels[self.level_of[loops[-1]]].memo, ("panel", storage.buffer.name)
        found = next_panel(offset, loops, self.extents)
        if found is None or key in memo:
            return
        piece, elements = found
        memo[key] = index(elements)
        pointer = self.address(storage, piece)
        for line in range(-(-elements * storage.buffer.dtype.bytes // LINE)):
            self.fetch(pointer, line * LINE, SECOND)

    def fetch_item(self, storage: _Storage, offset: Polynomial) -> None:
        """Fetch a piece of the next item of a batch, once per iteration of the reduction of this one."""
        if storage.buffer.role != "input" or self.item not in self.level_of:
            return
        own, vector = self.level_of[self.item], None if self.vector is None else self.vector.var
        inside = (name for name, level in self.level_of.items() if level > own and name != vector)
        loops = sorted(inside, key=self.level_of.__getitem__)
        if not loops:
            return
        memo, key = self.levels[self.level_of[loops[-1]]].memo, ("item", storage.buffer.name)
        if key in memo:
            return
        memo[key] = index(1)
        first = offset if vector is None else self.first_lane(offset)
        place = next_item(
            first, self.item, loops, self.extents, self.target.l1_bytes // 2 // storage.buffer.dtype.bytes
        )
        if place is not None:
            self.fetch(self.address(storage, place), 0)

    def fetch(self, pointer: str, nbytes: int, cache: int = FIRST) -> None:
        """Ask for the cache line that many bytes after a pointer; no address is wrong."""
        at = self.b.raw(f"getelementptr i8, ptr {pointer}, i64 {nbytes}", "line") if nbytes else pointer
        self.b.call("llvm.prefetch.p0", (f"ptr {at}", "i32 0", f"i32 {cache}", "i32 1"), "void")

    def later(self, table: _Storage, place: Expr, read: Read) -> Read:
        """The read of one element of a contiguous buffer by its position."""
        name = f"{read.tensor}.flat"
        count = _product(table.buffer.shape)
        flat = replace(table.buffer, name=name, shape=(count,))
        self.storages[name] = _Storage(flat, table.pointer, _row_major([count]))
        return replace(read, tensor=name, indices=(place,))

    def reversed_load(self, storage: _Storage, pointer: str, mask: Value | None) -> Value:
        """Neighbouring elements, last one first."""
        if mask is not None:
            stored = self.masked_load("load", f"ptr {pointer}", storage, self.reverse(mask))
        else:
            assert self.vector is not None
            stored = self.plain_load(storage, pointer, self.vector.lanes)
        return self.reverse(stored)

    def strided_load(self, storage: _Storage, start: Polynomial, mask: Value | None) -> Value:
        """Every second element, from two overlapping vectors that end with the last element needed."""
        assert self.vector is not None
        lanes = self.vector.lanes
        low, high = (
            self.neighbours(storage, add(start, Polynomial((((), by),) if by else ())), mask, by)
            for by in (0, lanes - 1)
        )
        picks = ", ".join(f"i32 {2 * k if 2 * k < lanes else 2 * k + 1}" for k in range(lanes))
        text = f"shufflevector {low.typed}, {high.typed}, <{lanes} x i32> <{picks}>"
        return self.b.op(text, low.dtype, lanes, "even")

    def neighbours(self, storage: _Storage, start: Polynomial, mask: Value | None, first: int) -> Value:
        """As many neighbours as there are lanes; the first one is element `first`, and lane `k` needs element `2*k`."""
        assert self.vector is not None
        lanes, pointer = self.vector.lanes, self.address(storage, start)
        if mask is None:
            return self.plain_load(storage, pointer, lanes)
        if mask is self.tail and self.tail_count is not None:
            # what lies between two needed elements may be read too: comparing numbers is shorter than moving bits of masks
            last = arith.binary(self.b, "-", _times(self.b, self.tail_count, 2), constant(1, DType.INT32))
            return self.masked_load("load", f"ptr {pointer}", storage, _below(self.b, last, first, lanes))
        mask = arith.broadcast(self.b, mask, lanes)
        picks = ", ".join(f"i32 {e // 2 if e % 2 == 0 else lanes}" for e in range(first, first + lanes))
        text = f"shufflevector {mask.typed}, {mask.type} zeroinitializer, <{lanes} x i32> <{picks}>"
        return self.masked_load("load", f"ptr {pointer}", storage, self.b.op(text, DType.BOOL, lanes, "needed"))

    def reverse(self, value: Value) -> Value:
        """Lanes in the opposite order."""
        picks = ", ".join(f"i32 {lane}" for lane in reversed(range(value.lanes)))
        text = f"shufflevector {value.typed}, {value.type} poison, <{value.lanes} x i32> <{picks}>"
        return self.b.op(text, value.dtype, value.lanes, "reversed")

    def lane_pointers(self, storage: _Storage, offset: Polynomial) -> str:
        """`<n x ptr> %p`, one address per lane."""
        assert self.vector is not None
        where = arith.broadcast(self.b, self.value(as_expr(offset)), self.vector.lanes)
        element = memory_type(storage.buffer.dtype)
        text = f"getelementptr {element}, ptr {storage.pointer}, {where.typed}"
        return f"<{self.vector.lanes} x ptr> " + self.b.raw(text, f"{storage.buffer.name}.at")

    def masked_load(self, kind: str, where: str, storage: _Storage, mask: Value | None) -> Value:
        """`load` of neighbours or `gather`; inactive lanes are 0."""
        dtype = storage.buffer.dtype
        if self.vector is not None:
            mask = arith.broadcast(self.b, mask or constant(True, DType.BOOL), self.vector.lanes)
        assert mask is not None
        lanes = mask.lanes
        vector = vector_type(memory_type(dtype), lanes)
        function = f"llvm.masked.{kind}.{mangle(vector)}.{mangle(where.rsplit(' ', 1)[0])}"
        operands = (where, f"i32 {dtype.bytes}", mask, f"{vector} zeroinitializer")
        stored = self.b.call(function, operands, vector, f"{storage.buffer.name}.v")
        assert isinstance(stored, str)
        return self.from_memory(stored, dtype, lanes)

    def multiplied(self) -> frozenset[str]:
        """The inputs of which the present statement adds one vector, with other factors, to several accumulators."""
        stmt = self.adds_up
        if stmt is None:
            return frozenset()
        rows = {name for name in self.constants if any(mentions(where, name) for where in stmt.indices)}
        reads = [node for node in walk(stmt.value) if isinstance(node, Read) and node.tensor in self.inputs]
        return frozenset(read.tensor for read in reads if any(not mentions(read, row) for row in rows))

    def load_inside(self, storage: _Storage, pointer: str, lanes: int, mask: Value) -> Value:
        """Neighbours of which the last ones are not needed: without a mask where they lie in the array.

        The first one is needed, so it is an element of the array. In a loop that adds products up, a mask takes the place of one
        of them. Measured with AVX-512, one thread, 500 products of 26 x 72 x 26: 650 and 580 us.
        """
        size, name = _product(storage.buffer.shape), storage.buffer.name
        lasts, key = self.levels[0].pointers, ("last", name, lanes)
        if key not in lasts:
            with self.at(0):
                lasts[key] = self.address(storage, polynomial(plus(size, int64(-lanes))))
        within = self.b.op(f"icmp ule ptr {pointer}, {lasts[key]}", DType.BOOL, 1, "within")
        whole, ends, end = (self.b.name(f"{name}.{hint}") for hint in ("whole", "ends", "read"))
        self.b.branch_if(within, whole, ends)
        self.b.label(whole)
        first, first_block = self.plain_load(storage, pointer, lanes), self.b.block
        self.b.branch(end)
        self.b.label(ends)
        second, second_block = self.masked_load("load", f"ptr {pointer}", storage, mask), self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(first, first_block, second, second_block, f"{name}.v")

    def from_memory(self, stored: str, dtype: DType, lanes: int) -> Value:
        """What stored bits mean."""
        if dtype is DType.BOOL:
            return self.b.op(
                f"icmp ne {vector_type('i8', lanes)} {stored}, {constant(0, DType.INT8, lanes).text}",
                dtype,
                lanes,
                "bool",
            )
        if dtype is DType.FLOAT16:
            return arith.half_from_memory(self.b, stored, lanes, self.f16c)
        if dtype is DType.BFLOAT16:
            return arith.bfloat16_from_bits(self.b, stored, lanes)
        return Value(stored, dtype, lanes)

    def to_memory(self, value: Value, dtype: DType) -> str:
        """The stored form of a value, with its type."""
        lanes = value.lanes
        kind = vector_type(memory_type(dtype), lanes)
        if dtype is DType.BOOL:
            return f"{kind} " + self.b.raw(f"zext {value.typed} to {kind}", "byte")
        if dtype in (DType.FLOAT16, DType.BFLOAT16):
            single = Value(value.text, DType.FLOAT32, lanes)
            if dtype is DType.FLOAT16:
                return f"{kind} " + arith.half_to_memory(self.b, single, self.f16c)
            return f"{kind} " + arith.bfloat16_bits(self.b, single)
        return f"{kind} {value.text}"

    # --- stores ------------------------------------------------------------------------------------------------------

    def store(self, stmt: Store) -> None:
        """`buffer[indices] = value`, with or without a reduction."""
        if not self.b.quiet:
            self.b.comment(show_store(stmt))
        if stmt.statement:
            self.b.lines.append(f"  ;@ {stmt.statement}")
        storage = self.storages[stmt.buffer]
        offset = self.offset(storage, tuple(self.resolve(where) for where in stmt.indices))
        self.partial = stmt.reduce is not None and stmt.buffer.endswith(PARTIAL)
        self.takes_long = takes_long(stmt, self.inputs)
        self.adds_up = stmt if stmt.reduce is not None and storage.private and not self.partial else None
        value = self.value(self.resolve(stmt.value))
        self.takes_long, self.adds_up = False, None
        moves = self.vector is not None and self.offset_varies(offset)
        if not (stmt.atomic or storage.lanes > 1 or moves):
            self.uniform_store(stmt, storage, offset, value)
            return
        value = self.converted(stmt, storage, value)
        if stmt.atomic:
            self.atomic_store(stmt, storage, offset, value)
        elif storage.lanes > 1:
            self.private_store(stmt, storage, offset, value)
        else:
            assert self.vector is not None
            self.lane_store(stmt, storage, offset, arith.broadcast(self.b, value, self.vector.lanes))

    def converted(self, stmt: Store, storage: _Storage, value: Value) -> Value:
        """The value in the type that the buffer computes in."""
        if value.dtype is storage.buffer.dtype:
            return value
        compute = storage.buffer.dtype.compute
        empty = self.is_empty(stmt, value, compute)
        value = arith.cast(self.b, value, compute, self.f16c)
        if empty is None:
            return value
        return arith.select(self.b, empty, constant(arith.identity(str(stmt.reduce), compute), compute), value)

    def is_empty(self, stmt: Store, value: Value, dtype: DType) -> Value | None:
        """Where 32 bits hold no position of 64 bits yet; see `narrow`."""
        if stmt.reduce not in ("min", "max") or (value.dtype, dtype) != (DType.INT32, DType.INT64):
            return None
        return arith.compare(self.b, "==", value, constant(arith.identity(stmt.reduce, value.dtype), value.dtype))

    def combine(self, stmt: Store, old: Value, value: Value) -> Value:
        """The reduction of a store."""
        assert stmt.reduce is not None
        old = Value(old.text, old.dtype.compute, old.lanes)
        value = Value(value.text, value.dtype.compute, value.lanes)
        if stmt.reduce in ("min", "max") and old.dtype.is_float and self.vector is None:
            return arith.intrinsic(self.b, stmt.reduce + "imum", *arith.same_lanes(self.b, value, old))
        return arith.binary(self.b, stmt.reduce, value, old, reassociate=True)

    def uniform_store(self, stmt: Store, storage: _Storage, offset: Polynomial, value: Value) -> None:
        """One element; lanes are combined first."""
        pointer = self.address(storage, offset)
        if value.lanes > 1 and stmt.reduce is not None:
            value = self.all_lanes(stmt.reduce, value)
        elif value.lanes > 1:
            raise RuntimeError(f"`{stmt.buffer}`: the lanes of a vectorised loop write one element")
        elif stmt.reduce is not None and self.vector is not None:
            raise RuntimeError(f"`{stmt.buffer}`: a reduction of equal lanes")
        value = self.converted(stmt, storage, value)
        if stmt.reduce is not None:
            value = self.combine(stmt, self.plain_load(storage, pointer, 1), value)
        if self.mask is not None and stmt.reduce is None:
            some = self.b.call(
                f"llvm.vector.reduce.or.{mangle(self.mask.type)}", (self.mask,), Value("", DType.BOOL), "some"
            )
            assert isinstance(some, Value)
            value = arith.select(self.b, some, value, self.plain_load(storage, pointer, 1))
        self.b.line(
            f"store {self.to_memory(value, storage.buffer.dtype)}, ptr {pointer}, align {storage.buffer.dtype.bytes}"
        )

    def all_lanes(self, op: str, value: Value) -> Value:
        """Combine the active lanes."""
        value = Value(value.text, value.dtype.compute, value.lanes)
        for mask in (self.tail, self.mask):
            if mask is not None:
                value = arith.select(self.b, mask, value, constant(arith.identity(op, value.dtype), value.dtype))
        return arith.horizontal(self.b, op, value)

    def private_store(self, stmt: Store, storage: _Storage, offset: Polynomial, value: Value) -> None:
        """Every lane has an element of its own."""
        pointer = self.address(storage, offset)
        value = arith.broadcast(self.b, value, storage.lanes)
        self.blend_store(stmt, storage, pointer, value)

    def blend_store(self, stmt: Store, storage: _Storage, pointer: str, value: Value) -> None:
        """Neighbouring elements of private memory: inactive lanes are written back.

        So are those beyond the end of a loop where another statement, or one that sets columns to a number, may have written.
        """
        kept = storage.buffer.name.endswith(PARTIAL) or len(self.writers.get(storage.buffer.name, ())) > 1
        masks = [self.mask, self.tail if kept else None]
        if stmt.reduce is not None or any(masks):
            old = self.plain_load(storage, pointer, value.lanes)
            value = value if stmt.reduce is None else self.combine(stmt, old, value)
            for mask in masks:
                if mask is not None:
                    value = arith.select(self.b, mask, value, Value(old.text, value.dtype, old.lanes))
        stored = self.to_memory(value, storage.buffer.dtype)
        self.b.line(f"store {stored}, ptr {pointer}, align {storage.buffer.dtype.bytes}")

    def lane_store(self, stmt: Store, storage: _Storage, offset: Polynomial, value: Value) -> None:
        """One element per lane."""
        assert self.vector is not None
        change, _linear = step(offset, self.vector.var)
        mask, dtype = self.active(storage, offset), storage.buffer.dtype
        if change == 1 and self.whole_vectors(storage, offset):
            self.blend_store(stmt, storage, self.address(storage, self.first_lane(offset)), value)
            return
        if change == 1:
            where, kind = f"ptr {self.address(storage, self.first_lane(offset))}", "load"
        else:
            where, kind = self.lane_pointers(storage, offset), "gather"
        if stmt.reduce is not None:
            plain = kind == "load" and mask is None
            old = (
                self.plain_load(storage, where[4:], value.lanes)
                if plain
                else self.masked_load(kind, where, storage, mask)
            )
            value = self.combine(stmt, old, value)
        stored = self.to_memory(value, dtype)
        if kind == "load" and mask is None:
            if stmt.streaming and stmt.reduce is None and self.can_stream(storage, value.lanes):
                self.streaming_store(stmt, storage, stored, where[4:])
            else:
                self.b.line(f"store {stored}, {where}, align {dtype.bytes}")
            return
        name = "store" if kind == "load" else "scatter"
        every = arith.broadcast(self.b, mask or constant(True, DType.BOOL), value.lanes)
        type_name = mangle(vector_type(memory_type(dtype), value.lanes))
        function = f"llvm.masked.{name}.{type_name}.{mangle(where.rsplit(' ', 1)[0])}"
        self.b.call(function, (stored, where, f"i32 {dtype.bytes}", every), "void")

    def can_stream(self, storage: _Storage, lanes: int) -> bool:
        """Whether the processor can write past its caches (x86), and lines become whole soon; the last rows are not worth it."""
        bits = lanes * storage.buffer.dtype.bits
        whole = bits % self.target.vector_bits == 0 and (bits >= 8 * LINE or self.alone is not None)
        return self.target.arch.startswith("x86_64") and not storage.private and whole and not self.last_rows

    def streaming_store(self, stmt: Store, storage: _Storage, stored: str, pointer: str) -> None:
        """Past the caches if the output is far larger than they are, its rows are long, and whole lines are written.

        The ends of a row share a cache line with its neighbours, and vectors overlap there: a line that is written past a cache
        that has it costs more than it saves. Measured on x86: rows of 1 kB twice as slow past the caches, rows of 4 kB up to 1.4
        times as fast; rows of 4094 floats take 0.91 to 0.93 of the time if what overlaps is written into the cache.
        """
        assert self.vector is not None
        size, register = storage.buffer.dtype.bytes, self.target.vector_bits // 8
        piece = max(register, min(LINE, self.vector.lanes * size))
        large = self.value(is_large(storage.buffer, self.target))
        always = self.whole_lines(stmt, storage, piece, large)
        if always is None and self.put_off is not None:  # few of the rows begin with a line
            self.b.line(f"store {stored}, ptr {pointer}, align {size}")
            return
        found = _Written(stored, pointer, size, register, always or self.whole_line(pointer, piece, large))
        if always is not None and self.put_off is not None and self.put_off[0] == self.b.block:
            self.put_off[1].append(found)
        else:
            self.past_or_cached([found])

    def past_or_cached(self, stores: Sequence[_Written]) -> None:
        """Print stores, which need not be in order: those with one condition behind one jump."""
        self.streams = self.streams or bool(stores)
        for condition in dict.fromkeys(each.past for each in stores):
            past, plain, end = (self.b.name(hint) for hint in ("past", "cached", "stored"))
            self.b.branch_if(condition, past, plain)
            for label, ending in ((past, ", !nontemporal !0"), (plain, "")):
                self.b.label(label)
                for each in stores:
                    if each.past == condition:
                        align = each.register if ending else each.size
                        self.b.line(f"store {each.stored}, ptr {each.pointer}, align {align}{ending}")
                self.b.branch(end)
            self.b.label(end)

    def whole_lines(self, stmt: Store, storage: _Storage, piece: int, large: Value) -> Value | None:
        """`large`, and all stores of a statement begin with a piece of a line: so do rows, and a multiple of it lies before."""
        size = storage.buffer.dtype.bytes
        start = self.first_lane(polynomial(self.resolve(stmt.indices[-1])))
        even = all(factor * size % piece == 0 for _, factor in start.terms)
        if self.alone is not None or not even or constant_value(as_expr(storage.strides[-1])) != 1:
            return None
        if any(has_read(extent) for extent in storage.buffer.shape):  # a scalar: not known before the loops
            return None
        memo, key = self.levels[0].memo, ("whole lines", storage.buffer.name, piece)
        if key not in memo:
            strides = [
                self.value(as_expr(multiply(stride, Polynomial((((), size),))))) for stride in storage.strides[:-1]
            ]
            with self.at(0):
                bits = self.b.op(f"ptrtoint ptr {storage.pointer} to i64", DType.INT64, 1, "address")
                for stride in strides:
                    bits = self.b.op(f"or i64 {bits.text}, {stride.text}", DType.INT64, 1, "steps")
                rest = self.b.op(f"and i64 {bits.text}, {piece - 1}", DType.INT64, 1, "rest")
                memo[key] = arith.logical(self.b, "and", large, arith.compare(self.b, "==", rest, index(0)))
        return memo[key]

    def whole_line(self, pointer: str, piece: int, large: Value) -> Value:
        """`large`, and a vector at this place is whole lines that nothing else writes."""
        number = self.b.op(f"ptrtoint ptr {pointer} to i64", DType.INT64, 1, "address")
        rest = self.b.op(f"and i64 {number.text}, {piece - 1}", DType.INT64, 1, "rest")
        aligned = arith.compare(self.b, "==", rest, index(0))
        if self.alone is not None:
            aligned = arith.logical(self.b, "and", aligned, self.alone)
        return arith.logical(self.b, "and", large, aligned)

    def atomic_store(self, stmt: Store, storage: _Storage, offset: Polynomial, value: Value) -> None:
        """Compare and exchange until nobody interfered."""
        pointer = self.address(storage, offset)
        dtype = storage.buffer.dtype
        kind, bits = memory_type(dtype), f"i{dtype.bits}"
        first = self.b.raw(f"load atomic {bits}, ptr {pointer} monotonic, align {dtype.bytes}", "seen")
        again, done, before = self.b.name("retry"), self.b.name("done"), self.b.block
        self.b.branch(again)
        self.b.label(again)
        seen, new_seen = "%" + self.b.name("old"), "%" + self.b.name("found")
        phi_at = len(self.b.lines)
        typed = seen if kind == bits else self.b.raw(f"bitcast {bits} {seen} to {kind}", "old")
        old = self.from_memory(typed, dtype, 1)
        new = value if stmt.reduce is None else self.combine(stmt, old, value)
        stored = self.to_memory(new, dtype)
        if kind != bits:
            stored = f"{bits} " + self.b.raw(f"bitcast {stored} to {bits}", "new")
        pair = self.b.raw(f"cmpxchg ptr {pointer}, {bits} {seen}, {stored} monotonic monotonic", "pair")
        self.b.line(f"{new_seen} = extractvalue {{ {bits}, i1 }} {pair}, 0")
        ok = self.b.op(f"extractvalue {{ {bits}, i1 }} {pair}, 1", DType.BOOL, 1, "ok")
        self.b.branch_if(ok, done, again)
        self.b.lines.insert(phi_at, f"  {seen} = phi {bits} [ {first}, %{before} ], [ {new_seen}, %{self.b.block} ]")
        self.b.label(done)

    # --- statements --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Statements in order."""
        for line in block.comment.splitlines():
            self.b.comment(line)
        for stmt in block.body:
            with self.statement_scope():
                self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        """One statement."""
        match stmt:
            case Store():
                self.store(stmt)
            case For():
                self.loop(stmt)
            case If():
                self.condition(stmt)
            case Allocate():
                self.allocate(stmt)
            case Check():
                self.check(stmt)
            case Block():
                self.block(stmt)
            case Barrier():
                pass
            case Intrinsic():
                assert stmt.name == DOT, f"the CPU has no operation `{stmt.name}`"
                dot(self.b, self.pointer, stmt)
            case _:
                assert_never(stmt)

    def condition(self, stmt: If) -> None:
        """A jump, or a mask if lanes differ."""
        test = self.value(self.resolve(stmt.condition))
        if test.lanes > 1:
            with self.masked(test):
                self.block(stmt.then)
            if stmt.otherwise is not None:
                with self.masked(arith.invert(self.b, test)):
                    self.block(stmt.otherwise)
            return
        self.b.comment(f"if {show(stmt.condition)}")
        yes, end = self.b.name("if.then"), self.b.name("if.end")
        no = end if stmt.otherwise is None else self.b.name("if.else")
        self.b.branch_if(test, yes, no)
        self.b.label(yes)
        known, tested = self.positive, stmt.condition
        if isinstance(tested, Binary) and tested.op == ">" and constant_value(tested.right) == 0:
            self.positive = known | {tested.left}  # as written: so do loops inside ask for their length
        with self.scope():
            self.block(stmt.then)
        self.positive = known
        self.b.branch(end)
        if stmt.otherwise is not None:
            self.b.label(no)
            with self.scope():
                self.block(stmt.otherwise)
            self.b.branch(end)
        self.b.label(end)

    def check(self, stmt: Check) -> None:
        """Run the body, or claim the error record and write the values into it."""
        test = self.value(self.resolve(stmt.condition))
        good, bad, first, end = (self.b.name(hint) for hint in ("check.ok", "check.failed", "check.first", "check.end"))
        self.b.branch_if(test, good, bad)
        self.b.label(good)
        with self.scope():
            self.block(stmt.body)
        self.b.branch(end)
        self.b.label(bad)
        with self.scope():
            pair = self.b.raw(f"cmpxchg ptr %errors, i64 0, i64 {stmt.number + 1} seq_cst monotonic", "pair")
            won = self.b.op(f"extractvalue {{ i64, i1 }} {pair}, 1", DType.BOOL, 1, "won")
            self.b.branch_if(won, first, end)
            self.b.label(first)
            for position, expr in enumerate(stmt.values):
                value = arith.cast(self.b, self.value(self.resolve(expr)), DType.INT64, self.f16c)
                where = self.b.raw(f"getelementptr inbounds i64, ptr %errors, i64 {position + 2}", "record")
                self.b.line(f"store {value.typed}, ptr {where}, align 8")
            self.b.branch(end)
        self.b.label(end)

    def allocate(self, stmt: Allocate) -> None:
        """Temporary storage: on the stack if it is small and of known size, else in the thread's workspace."""
        buffer = stmt.buffer
        lanes = self.vector.lanes if self.vector is not None else 1
        pitch = [self.resolve(extent) for extent in buffer.shape]
        if pitch and buffer.pad:
            pitch[-1] = plus(pitch[-1], int64(buffer.pad))
        limits = [largest(extent, self.ranges) for extent in pitch]
        numbers = [upper_limit(limit) for limit in limits]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            pitch = [int64(max(0, number)) for number in known]
        size = prod(known) * lanes * buffer.dtype.bytes if len(known) == len(numbers) else None
        element = vector_type(memory_type(buffer.dtype), lanes)
        if size is not None and size <= STACK_BYTES and self.stack_bytes + size <= 4 * STACK_BYTES:
            self.stack_bytes += size
            pointer = self.b.slot(element, max(1, prod(known)), 64, buffer.name)
            self.slots.add(pointer)
        else:
            pointer = self.from_workspace(buffer, limits, lanes)
        level = self.depth(variables(_product(pitch))) if pitch else 0
        self.storages[buffer.name] = _Storage(buffer, pointer, _row_major(pitch), level, lanes, private=True)
        self.block(stmt.body)

    def from_workspace(self, buffer: Buffer, limits: list[Expr], lanes: int) -> str:
        """A part of the thread's workspace, 64-byte aligned."""
        start = self.workspace
        count = times(
            _product([Binary("max", limit, int64(0), DType.INT64) for limit in limits]),
            int64(lanes * buffer.dtype.bytes),
        )
        self.workspace = plus(start, _rounded(count, 64))
        offset = self.value(start)
        with self.at(0):
            return self.b.raw(f"getelementptr inbounds i8, ptr %workspace, {offset.typed}", buffer.name)

    # --- loops -------------------------------------------------------------------------------------------------------

    def loop(self, stmt: For) -> None:
        """One loop, by its kind."""
        extent = constant_value(self.resolve(stmt.extent))
        if stmt.kind == "unroll" and extent is not None and extent <= MOST_UNROLLED:
            self.unrolled(stmt, extent)
        elif stmt.kind in ("unroll", "serial") and self.indexes_registers(stmt):
            self.guarded_unroll(stmt)
        elif stmt.kind == "vectorize" and self.vector is None and self.can_vectorize(stmt):
            self.vectorized(stmt)
        else:
            self.serial(stmt)

    def unrolled(self, stmt: For, extent: int) -> None:
        """The body once per iteration, with numbers in the place of the variable."""
        first = self.resolve(stmt.min)
        self.b.comment(f"{_heading(stmt)}  (unroll)")
        before = frozenset(self.loads[-1])
        self.turn_blocks(stmt, extent)
        self.halve_rows(stmt, extent)
        turned = [key for key in self.loads[-1] if key not in before]
        together: list[_Written] | None = None
        if self.put_off is None and _only_stores(stmt.body):
            self.put_off = self.b.block, (together := [])
        for iteration in range(extent):
            number = plus(first, int64(iteration))
            folded = constant_value(number)
            self.constants[stmt.var] = number if folded is None else int64(folded)
            with self.statement_scope():
                self.block(stmt.body)
            self.b.quiet += iteration == 0
        self.b.quiet -= extent > 0
        self.constants.pop(stmt.var, None)
        if together is not None:
            self.put_off = None
            self.past_or_cached(together)
        for key in turned:
            del self.loads[-1][key]

    def turn_blocks(self, stmt: For, extent: int) -> None:
        """Read blocks that the vectorised loop inside would gather across rows; its iterations find them as known elements."""
        if self.vector is not None or len(stmt.body.body) != 1 or extent < 2 or extent & (extent - 1):
            return
        inner = stmt.body.body[0]
        if not isinstance(inner, For) or inner.kind != "vectorize" or constant_value(self.resolve(inner.min)) != 0:
            return
        lanes = upper_limit(self.resolve(inner.extent))
        if lanes is None or lanes & (lanes - 1) or lanes > WIDEST * native_lanes(inner.body, self.target):
            return
        if any(
            not isinstance(s, Store | Block) or (isinstance(s, Store) and s.reduce is not None)
            for s in walk_statements(inner.body)
        ):
            return
        length = self.resolve(inner.extent)
        if constant_value(length) is None and not (self.masks(inner.body) and has_iterations(length, self.extents)):
            return
        inputs = {name: storage.buffer for name, storage in self.storages.items()}
        for read in dict.fromkeys(crossing_reads(inner, stmt.var, inputs)):
            self.turns = True
            self.turn_block(read, stmt, inner.var, extent, lanes, inner.extent)

    def turn_block(self, read: Read, stmt: For, lane: str, extent: int, lanes: int, length: Expr) -> None:
        """Load `lanes` pieces of `extent` elements and transpose them; beyond `length` lanes the last piece again."""
        storage, start = self.storages[read.tensor], self.resolve(stmt.min)
        vector = _Vector(lane, int64(0), lanes, 0)
        count = self.resolve(length)
        tail = None if constant_value(count) is not None else self.inside(count, lanes, self.value(count))

        def offset_at(row: Expr, column: Expr) -> Polynomial:
            values = {stmt.var: column, lane: row}
            return self.offset(storage, tuple(self.resolve(substitute(where, values)) for where in read.indices))

        def row_at(k: int) -> Expr:
            return int64(k) if tail is None else minimum(int64(k), plus(count, int64(-1)))

        bits = storage.buffer.dtype.compute.bits
        width = min(extent, lanes, PIECE_BITS // bits)
        group = min(lanes, max(width, self.target.vector_bits // bits))
        turned: dict[int, list[Value]] = {column: [] for column in range(extent)}
        for top in range(0, lanes, group):
            # all pieces of a row at once: rows that are a power of two apart put each other's lines out of the first cache
            rows = [
                [
                    self.plain_load(
                        storage, self.address(storage, offset_at(row_at(k), plus(start, int64(piece)))), width
                    )
                    for piece in range(0, extent, width)
                ]
                for k in range(top, top + group)
            ]
            for piece, block in enumerate(zip(*rows, strict=True)):
                for column, value in enumerate(turn(self.b, list(block))):
                    turned[piece * width + column].append(value)
        for column, parts in turned.items():
            offset = offset_at(IndexVar(lane), plus(start, int64(column)))
            self.loads[-1][storage.buffer.name, frozenset(offset.terms), vector, tail, None] = arith.joined(
                self.b, parts
            )

    def halve_rows(self, stmt: For, extent: int) -> None:
        """Read neighbours once of which one iteration needs the even and the next one the odd elements (`X[2*j + l]`)."""
        if self.vector is not None or len(stmt.body.body) != 1 or extent < 2:
            return
        inner = stmt.body.body[0]
        if not isinstance(inner, For) or inner.kind != "vectorize" or constant_value(self.resolve(inner.min)) != 0:
            return
        if not all(isinstance(each, Store | Block) for each in walk_statements(inner.body)):
            return
        length = self.resolve(inner.extent)
        lanes = upper_limit(length)
        if lanes is None or lanes & (lanes - 1) or lanes > WIDEST * native_lanes(inner.body, self.target):
            return
        is_full = constant_value(length) is not None
        if not is_full and (not self.target.free_masks or mentions(length, stmt.var)):
            return
        vector = _Vector(inner.var, int64(0), lanes, 0)
        for read in dict.fromkeys(halving_reads(inner)):
            storage = self.storages.get(read.tensor)
            if storage is None or storage.buffer.scope != "argument" or storage.buffer.role != "input":
                continue
            offset = self.offset(storage, tuple(self.resolve(where) for where in read.indices))
            native = self.target.vector_bits // storage.buffer.dtype.compute.bits
            apart, linear = step(offset, inner.var)
            if apart is None or not linear or step(offset, stmt.var) != (1, True) or lanes < native:
                continue
            if apart != 2 and (apart != extent or apart not in PIXEL):  # then all of the neighbours are needed
                continue
            count = None if is_full else self.value(length)
            tail = None if count is None else self.inside(length, lanes, count)
            for first in range(0, extent - apart + 1, apart):
                number = plus(self.resolve(stmt.min), int64(first))
                even = polynomial(substitute(as_expr(offset), {stmt.var: number}))
                start = polynomial(substitute(as_expr(even), {inner.var: int64(0)}))
                parts = self.parted(storage, start, lanes, native, count, apart)
                for by, value in enumerate(parts):
                    place = add(even, Polynomial((((), by),) if by else ()))
                    self.loads[-1][storage.buffer.name, frozenset(place.terms), vector, tail, None] = value

    def parted(
        self, storage: _Storage, start: Polynomial, lanes: int, native: int, count: Value | None, apart: int
    ) -> Sequence[Value]:
        """Of `apart * lanes` neighbours every one that is so far from the one before, from the first one on, the second one, ..."""
        if apart == 2:
            return self.halves(storage, start, lanes, native, count)
        end = None if count is None else _times(self.b, count, apart)
        found: list[list[Value]] = [[] for _ in range(apart)]
        for first in range(0, apart * lanes, apart * native):
            pieces = [self.piece(storage, start, first + k * native, native, end) for k in range(apart)]
            for by, parts in enumerate(found):
                parts.append(every(self.b, pieces, by))
        return [arith.joined(self.b, parts) for parts in found]

    def piece(self, storage: _Storage, start: Polynomial, at: int, lanes: int, end: Value | None) -> Value:
        """Neighbours from number `at` on; those from number `end` on are 0."""
        pointer = self.address(storage, add(start, Polynomial((((), at),) if at else ())))
        if end is None:
            return self.plain_load(storage, pointer, lanes)
        return self.masked_load("load", f"ptr {pointer}", storage, _below(self.b, end, at, lanes))

    def halves(
        self, storage: _Storage, start: Polynomial, lanes: int, native: int, count: Value | None
    ) -> tuple[Value, Value]:
        """Every second one of `2 * lanes` neighbours, and those between; of twice `count` neighbours where that is known."""
        across = native // 2 if self.target.vector_bits == 2 * PIECE_BITS else native
        end = None if count is None else _times(self.b, count, 2)
        pairs: list[tuple[Value, Value]] = []
        for first in range(0, 2 * lanes, 2 * native):
            places = range(first, first + native + 1, across)
            pairs.append(apart(self.b, [self.piece(storage, start, at, native, end) for at in places]))
        return arith.joined(self.b, [even for even, _ in pairs]), arith.joined(self.b, [odd for _, odd in pairs])

    def indexes_registers(self, stmt: For) -> bool:
        """Whether a short loop selects registers: it is written out, since registers have no addresses."""
        limit = upper_limit(self.resolve(stmt.extent))
        if limit is None or limit > 32:
            return False
        for inner in walk_statements(stmt.body):
            for name, indices in accesses(inner):
                known = self.storages.get(name)
                if (
                    known is not None
                    and (known.buffer.scope == "register" or (stmt.kind == "unroll" and known.private))
                    and any(mentions(i, stmt.var) for i in indices)
                ):
                    return True
        return False

    def guarded_unroll(self, stmt: For) -> None:
        """The body once per possible iteration, each behind a test."""
        extent = self.resolve(stmt.extent)
        limit = upper_limit(extent) or 0
        if constant_value(extent) is not None:
            self.unrolled(stmt, limit)
            return
        inside = If(Binary("<", IndexVar(stmt.var), plus(stmt.min, extent), DType.BOOL), stmt.body)
        before, self.last_rows = self.last_rows, stmt.kind == "unroll"  # `full_tiles` has made another version
        self.unrolled(replace(stmt, body=Block((inside,))), limit)
        self.last_rows = before

    def serial(self, stmt: For) -> None:
        """A counted loop."""
        low_expr, extent_expr = self.resolve(stmt.min), self.resolve(stmt.extent)
        extent = constant_value(extent_expr)
        if extent is not None and extent <= 0:
            return
        if extent == 1 and not has_read(low_expr):
            self.constants[stmt.var] = low_expr
            with self.scope():
                self.block(stmt.body)
            del self.constants[stmt.var]
            return
        note = "" if stmt.kind == "serial" else f"  ({stmt.kind})"
        self.b.comment(_heading(stmt) + note)
        low, count = self.value(low_expr), self.value(extent_expr)
        end = (
            self.value(plus(low_expr, extent_expr))
            if self.needs(low_expr) is not None and self.needs(extent_expr) is not None
            else arith.binary(self.b, "+", low, count)
        )
        innermost = self.is_innermost(stmt.body)
        with self.counted(stmt.var, low, end, low_expr, extent_expr, guard=extent is None, innermost=innermost):
            self.fetch_rows(stmt.var, stmt.body)
            self.block(stmt.body)

    def is_innermost(self, body: Block) -> bool:
        """Whether no loop inside has a counter."""

        def is_counted(loop: For) -> bool:
            if loop.kind != "vectorize":
                return loop.kind != "unroll"
            limit = upper_limit(self.resolve(loop.extent))
            return limit is None or limit > WIDEST * native_lanes(loop.body, self.target)

        return not any(isinstance(stmt, For) and is_counted(stmt) for stmt in walk_statements(body))

    @contextmanager
    def counted(
        self,
        var: str,
        low: Value,
        end: Value,
        low_expr: Expr,
        extent: Expr,
        guard: bool,
        innermost: bool = False,
    ) -> Generator[None]:
        """The blocks of `for var in low : end`; the caller prints the body."""
        body, done = self.b.name(f"for.{var}"), self.b.name(f"end.{var}")
        loop = _Counted(var) if innermost else None
        before: Lines = []
        self.b.lines.append(before)
        if guard:
            some = self.b.op(f"icmp slt i64 {low.text}, {end.text}", DType.BOOL, 1, "some")
            self.b.branch_if(some, body, done)
        else:
            self.b.branch(body)
        entered = self.b.block
        self.b.label(body)
        counter = Value("%" + self.b.name(var), DType.INT64)
        phis: Lines = []
        place: Lines = []
        self.b.lines += [phis, place]
        self.enter(var, counter, low_expr, extent, place)
        self.levels[-1].counted = loop
        with self.scope():
            yield
        self.leave(var)
        after = self.b.op(f"add nsw i64 {counter.text}, 1", DType.INT64, 1, f"{var}.next")
        values = [(counter.text, "i64", low.text, after.text)]
        for together in _alike(loop.moved if loop else []):
            values.append(self.sum_of(together, low, var, before))
        more = self.b.op(f"icmp slt i64 {after.text}, {end.text}", DType.BOOL, 1, "more")
        for now, kind, first, then in values:
            phis.append(f"  {now} = phi {kind} [ {first}, %{entered} ], [ {then}, %{self.b.block} ]")
        self.b.branch_if(more, body, done)
        self.b.label(done)

    def sum_of(self, moved: list[_Moved], low: Value, var: str, before: Lines) -> tuple[str, str, str, str]:
        """Name, type, first and next value of what a loop adds up: a pointer, or an offset that several of them share.

        Args:
            low: the first value of the counter.
            before: the place before the loop.
        """
        first, *others = moved
        in_bytes = bool(others and first.bytes)
        gain = index(first.bytes) if in_bytes else first.gain
        with self.printing(before):
            start = arith.binary(self.b, "*", low, gain)
        if not others:
            step = f"getelementptr {first.element}, ptr"
            with self.printing(before):
                begin = first.start if start.integer == 0 else self.b.raw(f"{step} {first.start}, {start.typed}")
            return first.name, "ptr", begin, self.b.raw(f"{step} {first.name}, {gain.typed}", f"{first.name[1:]}.next")
        offset = Value("%" + self.b.name(f"{var}.offset"), DType.INT64)
        for each in moved:
            with self.printing(each.place):
                factor = each.bytes // first.bytes if in_bytes else 1
                by = offset if factor == 1 else arith.binary(self.b, "*", offset, index(factor))
                element = "i8" if in_bytes else each.element
                self.b.line(f"{each.name} = getelementptr {element}, ptr {each.start}, {by.typed}")
        return offset.text, "i64", start.text, arith.binary(self.b, "+", offset, gain).text

    def enter(self, var: str, counter: Value, low: Expr, extent: Expr, place: Lines) -> None:
        """Make a loop variable known."""
        self.level_of[var] = len(self.levels)
        self.levels.append(_Level(place))
        self.values[var] = counter
        self.ranges[var] = self.bounds_of(low, extent)
        if constant_value(low) == 0:
            self.extents[var] = extent

    def bounds_of(self, low: Expr, extent: Expr) -> tuple[Expr, Expr]:
        """First and last value of a loop variable over the sizes, for the bounds of temporary storage."""
        if has_read(low) or has_read(extent):
            return low, plus(low, extent)
        last = plus(plus(low, extent), int64(-1))
        return largest(low, self.ranges, upper=False), largest(last, self.ranges)

    def leave(self, var: str) -> None:
        """Forget a loop variable."""
        self.levels.pop()
        del self.level_of[var], self.values[var], self.ranges[var]
        self.extents.pop(var, None)

    # --- vectorised loops --------------------------------------------------------------------------------------------

    def can_vectorize(self, stmt: For) -> bool:
        """Whether the body can be printed with one lane per iteration; if not, the loop is serial.

        Asked for every iteration of a written-out loop around it.
        """
        known = self.vectorizable.get(id(stmt))
        if known is None:
            known = self.vectorizable[id(stmt)] = (stmt, self.has_free_lanes(stmt))
        return known[1]

    def has_free_lanes(self, stmt: For) -> bool:
        """Whether no iteration needs what another one does."""
        allocated: set[str] = set()
        for inner in walk_statements(stmt.body):
            match inner:
                case Check() | Intrinsic():
                    return False
                case Store(atomic=True):
                    return False
                case Allocate():
                    if any(constant_value(extent) is None for extent in inner.buffer.shape):
                        return False
                    allocated.add(inner.buffer.name)
                case For() if any(mentions(e, stmt.var) or has_read(e) for e in (inner.min, inner.extent)):
                    return False
                case Store() if inner.buffer not in allocated and not self.lanes_write_apart(
                    inner, stmt.var, allocated
                ):
                    return False
                case _:
                    pass
            for expr in expressions(inner):
                for node in walk(expr):
                    if (
                        isinstance(node, Read)
                        and node.tensor in allocated
                        and any(mentions(i, stmt.var) for i in node.indices)
                    ):
                        return False
        return True

    def lanes_write_apart(self, store: Store, var: str, allocated: set[str]) -> bool:
        """Whether a store of a vectorised loop writes one element per lane, or is a reduction of values that differ."""
        if any(mentions(where, var) for where in store.indices):
            return True
        differs = mentions(store.value, var) or any(
            isinstance(node, Read) and node.tensor in allocated for node in walk(store.value)
        )
        return store.reduce is not None and differs

    def vectorized(self, stmt: For) -> None:
        """Full vectors, and what is left at the end under a mask or one by one."""
        native = native_lanes(stmt.body, self.target)
        extent = self.resolve(stmt.extent)
        limit = upper_limit(extent)
        number = constant_value(extent)
        if limit is not None and limit <= 1:
            self.serial(replace(stmt, kind="serial"))
        elif isinstance(stmt, Part) or ((limit is None or limit > WIDEST * native) and is_stream(stmt)):
            self.stream(stmt, lanes_of_stream(stmt.body, self.target))
        elif limit is None or limit > WIDEST * native:
            self.strip_mined(stmt, 2 * native)
        elif limit & (limit - 1):
            self.uneven(stmt, limit, native)
        elif number is not None:
            self.lanes(stmt, number, None)
        else:
            self.ragged(stmt, limit)

    def uneven(self, stmt: For, limit: int, native: int) -> None:
        """A number of iterations that is no power of two."""
        part = limit & -limit
        width = max(part, native)
        if limit > native and self.uses_registers(stmt.body) and constant_value(self.resolve(stmt.extent)) is None:
            # every piece has its place: a position that is computed would keep the accumulators out of registers
            outer = cut(replace(stmt, extent=self.resolve(stmt.extent), min=self.resolve(stmt.min)), width)
            self.statement(replace(outer, extent=int64(-(-limit // width)), kind="unroll"))
        elif part >= native or limit > native:
            self.strip_mined(stmt, width)
        elif self.masks(stmt.body):
            self.ragged(stmt, 1 << limit.bit_length())
        else:
            self.loop(replace(stmt, kind="unroll"))

    def strip_mined(self, stmt: For, lanes: int) -> None:
        """Cut a loop into vectors of `lanes` iterations."""
        resolved = replace(stmt, extent=self.resolve(stmt.extent), min=self.resolve(stmt.min))
        outer = cut(resolved, lanes)
        if outer.kind == "unroll":
            self.statement(outer)
        else:
            self.block(full_tiles(peel(Block((outer,))), frozenset(self.level_of)))

    def stream(self, stmt: For, lanes: int) -> None:
        """Vectors that may overlap: the first one, then from the first aligned position, then the last one again.

        The body appears once; the position moves by a vector, but never beyond the last full one. A short row is one part.
        """
        put_off, self.put_off = self.put_off, None
        extent = self.value(self.resolve(stmt.extent))
        part = f", part {stmt.tile}" if isinstance(stmt, Part) else ""
        long, short, end = (self.b.name(hint) for hint in ("long", "short", "row.end"))
        self.b.comment(f"{_heading(stmt)}  (vectors of {lanes}, the last one overlaps{part})")
        self.b.branch_if(arith.compare(self.b, ">=", extent, index(lanes)), long, short)
        self.b.label(long)
        with self.scope():
            self.overlapping(stmt, lanes, extent, end)
        self.b.branch(end)
        self.b.label(short)
        with self.scope():
            if isinstance(stmt, Part):
                whole = self.b.name("whole")
                self.b.branch_if(arith.compare(self.b, "==", self.part(stmt), index(0)), whole, end)
                self.b.label(whole)
            bound = replace(stmt, extent=minimum(int64(lanes), self.resolve(stmt.extent)))
            if reads_in_pieces(stmt.body, stmt.var):
                self.serial(replace(stmt, kind="serial"))
            else:
                self.ragged(bound, lanes, never_full=True)
        self.b.branch(end)
        self.b.label(end)
        self.put_off = put_off

    def part(self, stmt: Part) -> Value:
        """Which part of a stream is printed."""
        return self.value(self.resolve(IndexVar(stmt.tile)))

    def of_part(self, stmt: Part, lanes: int, first_step: Value, last: Value, end: str) -> tuple[Value, Value]:
        """First and last position of a part; jump to `end` if the parts before it are all of the row.

        The vectors of a row begin at 0, at `first_step`, and then every `lanes`; the last one at `last`.
        """
        width, length = index(lanes), index(lanes * stmt.vectors)
        at = arith.binary(self.b, "+", first_step, arith.binary(self.b, "*", self.part(stmt), length))
        some = self.b.name("some")
        before = arith.binary(self.b, "-", at, index(2 * lanes))
        self.b.branch_if(arith.compare(self.b, "<", before, last), some, end)
        self.b.label(some)
        start, until = (
            arith.binary(self.b, "min", arith.binary(self.b, "max", index(0), place), last)
            for place in (arith.binary(self.b, "-", at, width), arith.binary(self.b, "+", before, length))
        )
        return start, arith.select(self.b, self.value(stmt.cut), until, last)

    def overlapping(self, stmt: For, lanes: int, extent: Value, end: str) -> None:
        """At least one full vector; of a part perhaps none, then a jump to `end`."""
        at = f"{stmt.var}.at"
        last = arith.binary(self.b, "-", extent, index(lanes))
        first_step = self.to_alignment(stmt, lanes)
        begin, until = self.of_part(stmt, lanes, first_step, last, end) if isinstance(stmt, Part) else (index(0), last)
        body, done, before = self.b.name(f"for.{stmt.var}"), self.b.name(f"end.{stmt.var}"), self.b.block
        self.b.branch(body)
        self.b.label(body)
        counter = Value("%" + self.b.name(at), DType.INT64)
        phi_at = len(self.b.lines)
        place: Lines = []
        self.b.lines.append(place)
        self.enter(at, counter, int64(0), self.resolve(stmt.extent), place)
        moved = replace(stmt, min=plus(self.resolve(stmt.min), IndexVar(at)), extent=int64(lanes))
        with self.scope():
            self.alone = self.overlaps_none(counter, first_step, lanes, last)
            self.lanes(moved, lanes, None)
            self.alone = None
        self.leave(at)
        start = arith.compare(self.b, "==", counter, index(0))
        length = arith.select(self.b, start, first_step, index(lanes))
        after = arith.binary(self.b, "min", self.b.op(f"add nsw i64 {counter.text}, {length.text}", DType.INT64), last)
        more = arith.compare(self.b, "!=", counter, until)
        latch = self.b.block
        self.b.branch_if(more, body, done)
        self.b.lines.insert(
            phi_at, f"  {counter.text} = phi i64 [ {begin.text}, %{before} ], [ {after.text}, %{latch} ]"
        )
        self.b.label(done)

    def overlaps_none(self, counter: Value, first_step: Value, lanes: int, last: Value) -> Value:
        """Whether no other vector of the stream writes any of these elements: not the first one, and not the last one."""
        width = index(lanes)
        ends_before = arith.compare(self.b, "<=", arith.binary(self.b, "+", counter, width), last)
        is_last = arith.compare(self.b, "==", counter, last)
        starts_after = arith.compare(self.b, ">=", counter, width)
        in_step = arith.compare(self.b, "==", first_step, width)
        return arith.logical(
            self.b,
            "and",
            arith.logical(self.b, "or", starts_after, in_step),
            arith.logical(self.b, "or", ends_before, is_last),
        )

    def to_alignment(self, stmt: For, lanes: int) -> Value:
        """Iterations until the first store is at the start of a cache line, at least 1; a whole vector if it is there.

        A vector of less than a line: at a multiple of its bytes.
        """
        store = next(s for s in walk_statements(stmt.body) if isinstance(s, Store))
        storage = self.storages[store.buffer]
        offset = self.offset(storage, tuple(self.resolve(where) for where in store.indices))
        low = self.resolve(stmt.min)
        first = polynomial(substitute(as_expr(offset), {stmt.var: low}))
        size = storage.buffer.dtype.bytes
        line = min(LINE, lanes * size)
        number = self.b.op(f"ptrtoint ptr {self.address(storage, first)} to i64", DType.INT64, 1, "address")
        beyond = arith.binary(self.b, "-", index(0), number)
        rest = self.b.op(f"and i64 {beyond.text}, {line - 1}", DType.INT64, 1, "rest")
        steps = arith.binary(self.b, "//", rest, index(size))
        return arith.select(self.b, arith.compare(self.b, "==", steps, index(0)), index(lanes), steps)

    def ragged(self, stmt: For, limit: int, never_full: bool = False) -> None:
        """A vector whose last lanes may be beyond the end."""
        count = self.value(self.resolve(stmt.extent))
        if not self.masks(stmt.body):
            if never_full:
                self.serial(replace(stmt, kind="serial"))
            else:
                self.full_or_serial(stmt, limit, count)
            return
        if stmt.extent in self.positive or has_iterations(self.resolve(stmt.extent), self.extents):
            with self.statement_scope():
                self.lanes(stmt, limit, self.inside(self.resolve(stmt.extent), limit, count), count)
            return
        body, end = self.b.name("tail"), self.b.name("tail.end")
        some = arith.compare(self.b, ">", count, index(0))
        self.b.branch_if(some, body, end)
        self.b.label(body)
        with self.scope():
            self.lanes(stmt, limit, self.inside(self.resolve(stmt.extent), limit, count), count)
        self.b.branch(end)
        self.b.label(end)

    def inside(self, extent: Expr, limit: int, count: Value) -> Value:
        """Which of `limit` lanes are before the end of a loop; known from where its length is known."""
        key = ("inside", count.text, limit)
        names = self.needs(extent)
        level = len(self.levels) - 1 if names is None else self.depth(names)
        memo = {} if names is None else self.levels[level].memo
        if key not in memo:
            with nullcontext() if names is None else self.at(level):
                # The narrower the numbers, the fewer registers the comparison takes.
                narrow = DType.INT32 if limit <= 64 else DType.INT16
                kind = register_type(narrow)
                numbers = ", ".join(f"{kind} {lane}" for lane in range(limit))
                counts = arith.broadcast(self.b, arith.cast(self.b, count, narrow, self.f16c), limit)
                memo[key] = self.b.op(f"icmp sgt {counts.typed}, <{numbers}>", DType.BOOL, limit, "inside")
        return memo[key]

    def full_or_serial(self, stmt: For, limit: int, count: Value) -> None:
        """One full vector, or a serial loop."""
        yes, no, end = (self.b.name(hint) for hint in ("full", "part", "part.end"))
        self.b.branch_if(arith.compare(self.b, "==", count, index(limit)), yes, no)
        self.b.label(yes)
        with self.scope():
            self.lanes(stmt, limit, None)
        self.b.branch(end)
        self.b.label(no)
        with self.scope():
            self.serial(replace(stmt, kind="serial"))
        self.b.branch(end)
        self.b.label(end)

    def lanes(self, stmt: For, lanes: int, tail: Value | None, count: Value | None = None) -> None:
        """The body with one lane per iteration; of the lanes, only `tail`, the first `count`, may touch memory."""
        self.b.comment(f"{_heading(stmt)}  (vector of {lanes}{', masked' if tail else ''})")
        place: Lines = []
        self.b.lines.append(place)
        first = self.resolve(stmt.min)
        self.enter(stmt.var, self.value(first), first, int64(lanes), place)
        self.vector, self.tail, self.tail_count = _Vector(stmt.var, first, lanes, len(self.levels) - 1), tail, count
        with self.statement_scope():
            self.block(stmt.body)
        self.vector = self.tail = self.tail_count = None
        self.leave(stmt.var)


def _rows_last(by_level: dict[int, list[Term]]) -> list[tuple[int, list[Term]]]:
    """The terms of an address by loop depth; what depends on sizes alone goes with the last but one of two loops or more.

    Written-out rows differ in that, so they share the pointers of the loops further out.

    Worked example: `X[n, x + 1, z]` is `X + C + B*C*n + C*x + z`, in this order by depth; it becomes `X + B*C*n + C*x + C + z`.
    """
    levels = sorted(by_level)
    if levels[:1] != [0] or len(levels) < 3:
        return [(level, by_level[level]) for level in levels]
    *outer, last = levels[1:]
    steps = [(level, by_level[level]) for level in outer]
    return [*steps, (outer[-1], by_level[0]), (last, by_level[last])]


def _times(b: Builder, count: Value, factor: int) -> Value:
    """A multiple of a number of lanes, as a narrow number."""
    return arith.binary(b, "*", arith.cast(b, count, DType.INT32, False), constant(factor, DType.INT32))


def _below(b: Builder, end: Value, first: int, lanes: int) -> Value:
    """Which of `lanes` neighbours from number `first` on are before number `end`."""
    numbers = ", ".join(f"i32 {number}" for number in range(first, first + lanes))
    return b.op(f"icmp sgt {arith.broadcast(b, end, lanes).typed}, <{numbers}>", DType.BOOL, lanes, "needed")


def _only_stores(block: Block) -> bool:
    """Whether nothing but assignments of whole vectors happens inside, so that these may be printed one behind the other."""
    inner = list(walk_statements(block))
    plain = all(isinstance(stmt, Block | For | Store) for stmt in inner)
    loops = all(stmt.kind == "vectorize" for stmt in inner if isinstance(stmt, For))
    return plain and loops and all(stmt.reduce is None for stmt in inner if isinstance(stmt, Store))


def _only_copies(block: Block) -> bool:
    """Whether elements are only moved, from anywhere: LLVM would write short loops out, 288 stores of weights in 85 ms."""
    stores = [stmt for stmt in walk_statements(block) if isinstance(stmt, Store)]
    return bool(stores) and all(isinstance(store.value, Read) and store.reduce is None for store in stores)


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


def _touched(stmt: Stmt) -> frozenset[str]:
    """Buffers that a statement itself reads or writes."""
    reads = {node.tensor for expr in expressions(stmt) for node in walk(expr) if isinstance(node, Read)}
    return frozenset(reads | {stmt.buffer} if isinstance(stmt, Store) else reads)


def _heading(stmt: For) -> str:
    """`for i in 0:N`."""
    low = constant_value(stmt.min)
    end = show(stmt.extent) if low == 0 else f"{show(stmt.min)} + {show(stmt.extent)}"
    return f"for {stmt.var} in {show(stmt.min)}:{end}"


def _alike(moved: list[_Moved]) -> list[list[_Moved]]:
    """Pointers that one offset moves: by as many elements, or by a multiple of as many bytes that addresses can multiply with."""
    groups: list[list[_Moved]] = []
    for each in sorted(moved, key=lambda each: each.bytes):
        for group in groups:
            first = group[0]
            if (each.bytes == first.bytes == 0 and each.gain == first.gain) or (
                first.bytes > 0 and each.bytes % first.bytes == 0 and each.bytes // first.bytes in SCALES
            ):
                group.append(each)
                break
        else:
            groups.append([each])
    return groups


def _reads(offset: Polynomial) -> bool:
    """Whether a position depends on data."""
    return any(has_read(factor) for product, _ in offset.terms for factor in product)


def _rounded(count: Expr, unit: int) -> Expr:
    """The next multiple of `unit`."""
    return times(Binary("//", plus(count, int64(unit - 1)), int64(unit), DType.INT64), int64(unit))


def _product(factors: Sequence[Expr]) -> Expr:
    total: Expr = int64(1)
    for factor in factors:
        total = times(total, factor)
    return total


def _row_major(shape: Sequence[Expr]) -> tuple[Polynomial, ...]:
    """Strides of contiguous storage."""
    strides: list[Polynomial] = []
    pitch = Polynomial((((), 1),))
    for extent in reversed(shape):
        strides.append(pitch)
        pitch = multiply(pitch, polynomial(extent))
    return tuple(reversed(strides))


# --- the module ------------------------------------------------------------------------------------------------------


class _Module:
    """The functions of a kernel and what they share."""

    def __init__(self, kernel: Kernel, target: Target, plan: Tasks) -> None:
        self.kernel = kernel
        self.target = target
        self.plan = plan
        self.name = clean(kernel.name)
        stores = (stmt for stmt in walk_statements(plan.body) if isinstance(stmt, Store))
        self.reduces = any(stmt.reduce is not None for stmt in stores)

    def source(self) -> KernelSource:
        """Print everything."""
        task = self.task_function()
        function, builder = task
        needs_workspace = constant_value(function.workspace) != 0
        workspace = _rounded(plus(function.workspace, int64(PAGE)), PAGE) if needs_workspace else function.workspace
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
            (Buffer("thread.workspace", DType.UINT8, (workspace,), "local", align=PAGE),) if needs_workspace else ()
        )
        count = self.plan.count
        if constant_value(count) != 1:
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

    def task_function(self) -> tuple[_Function, Builder]:
        """Print the loops."""
        builder = Builder(scales="avx512f" in self.target.features)
        for reserved in ("workspace", "errors", "first", "last", "entry", "args", "index", "thread"):
            builder.name(reserved)
        function = _Function(self.kernel, self.target, builder)
        function.writers = written(self.plan.body)
        self.names = self.bind(function, builder)
        lines: Lines = [function.place]
        builder.lines = lines
        self.points(function, builder)
        if function.streams:
            # Streaming stores are weakly ordered: they must be visible before the task counts as done.
            builder.call("llvm.x86.sse.sfence", (), "void")
        builder.line("ret void")
        return function, builder

    def bind(self, function: _Function, builder: Builder) -> dict[tuple[str, str, int], str]:
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
            function.storages[buffer.name] = _Storage(buffer, pointer, strides)
        for size in self.kernel.sizes:
            names["size", size, 0] = "%" + builder.name(size)
            function.values[size] = Value(names["size", size, 0], DType.INT64)
        for name, dtype in self.kernel.scalars:
            names["scalar", name, 0] = text = "%" + builder.name(name)
            builder.lines = function.place
            function.scalars[name] = function.from_memory(text, dtype, 1)
        return names

    def strides(self, function: _Function, buffer: Buffer) -> tuple[Polynomial, ...]:
        """Elements per step of each dimension; a sum of several products has a name, so that it is computed once."""
        found = list(_row_major(list(buffer.shape)))
        for k, stride in enumerate(found):
            if len(stride.terms) > 1:
                name = f"{buffer.name}.stride.{k}"
                function.sums[name] = as_expr(stride)
                found[k] = polynomial(Size(name))
        return tuple(found)

    def points(self, function: _Function, builder: Builder) -> None:
        """The loop over the points of one task, which decodes the point into the variables of the parallel loops."""
        loops = self.plan.loops
        if not loops:
            function.block(self.plan.body)
            return
        for loop in loops:
            builder.comment(f"{_heading(loop)}  (parallel)")
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

    def run(self, function: _Function, loop: For, start: Value, stop: Value) -> None:
        """The body for the iterations `start : stop`, counted from 0, of a parallel loop."""
        first = function.value(loop.min)
        low, end = (arith.binary(function.b, "+", first, counted) for counted in (start, stop))
        function.item = loop.var if is_batch(self.plan.body, loop.var, function.inputs) else ""
        with function.counted(loop.var, low, end, loop.min, loop.extent, guard=True):
            function.fetch_rows(loop.var, self.plan.body)
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
        passed = [
            f"{_slot_type(argument)} %{_slot_name(argument, position)}"
            for position, argument in enumerate(arguments)
            if argument.kind in ("buffer", "stride", "size", "scalar")
        ]
        chunk, total = self.share(function), function.value(self.plan.total)
        first = builder.op(f"mul i64 %index, {chunk.text}", DType.INT64, 1, "first")
        end = arith.binary(builder, "+", first, chunk)
        last = arith.binary(builder, "min", end, total)
        own = "null"
        if constant_value(workspace) != 0:
            size = function.value(workspace)
            start = builder.op(f"mul i64 %thread, {size.text}", DType.INT64, 1, "start")
            own = builder.raw(f"getelementptr inbounds i8, ptr %thread.workspace, {start.typed}", "own")
        errors = "%errors" if self.kernel.checks else "null"
        call = ", ".join([*passed, f"ptr {own}", f"ptr {errors}", f"i64 {first.text}", f"i64 {last.text}"])
        builder.line(f"call void @{self.name}.task({call})")
        builder.line("ret void")
        module.declares.update(builder.declares)
        head = f"define void @{self.name}(ptr %args, i64 %index, i64 %thread, i64 %tasks) #0 {{"
        return [head, "entry:", *flatten(builder.lines), "}"]

    def share(self, function: _Function) -> Value:
        """Points of one task: as planned where that is a number, else `total / tasks`, rounded up, which is never more."""
        if constant_value(self.plan.chunk) is not None:
            return function.value(self.plan.chunk)
        b, tasks = function.b, Value("%tasks", DType.INT64)
        rounded = arith.binary(b, "+", function.value(self.plan.total), arith.binary(b, "-", tasks, index(1)))
        return arith.natural_division(b, "//", rounded, tasks)

    def entry_prologue(self, arguments: tuple[Argument, ...]) -> tuple[Builder, _Function]:
        """The start of a function that takes `ptr %args`: every slot is loaded."""
        builder = Builder()
        for reserved in ("index", "thread", "tasks", "args", "entry"):
            builder.name(reserved)
        function = _Function(self.kernel, self.target, builder)
        builder.lines = [function.place]
        for position, argument in enumerate(arguments):
            name = _slot_name(argument, position)
            builder.name(name)
            with function.at(0):
                where = builder.raw(f"getelementptr inbounds i64, ptr %args, i64 {position}", "slot")
                builder.line(f"%{name} = load {_slot_type(argument)}, ptr {where}, align 8")
            if argument.kind == "size":
                function.values[argument.name] = Value(f"%{name}", DType.INT64)
        return builder, function

    def footer(self, builder: Builder) -> list[str]:
        """Declarations and attributes."""
        wide = '"prefer-vector-width"="512" ' if self.target.vector_bits >= 512 else ""
        attributes = f'attributes #0 = {{ nounwind {wide}"no-trapping-math"="true" }}'
        return [*builder.declares.values(), "", attributes, "!0 = !{i32 1}"]


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
