"""What is known at the place that is being printed: loops around it, values printed before, active lanes.

Comes in: a kernel, its target and a `Builder`. Goes out: `State`, which decides where text goes. It is the first of a chain of
classes that print the body of a task function. Each one knows what those before it know:

* `State`: levels of loops and places for text.
* `Counters` (`counters.py`): the blocks of a loop that counts.
* `Values` (`values.py`): expressions.
* `Addresses` (`addresses.py`): pointers to elements.
* `Memory` (`memory.py`): neighbouring elements as vectors, with and without masks.
* `Fetches` (`fetches.py`): what is asked for before it is needed.
* `Loads` (`loads.py`): how the element of an expression is read.
* `SharedLoads` (`shared_loads.py`): reads that several written-out iterations share.
* `Stores` (`stores.py`): assignments and reductions.
* `Statements` (`statements.py`): all other statements, loops that count, and loops that are written out.
* `Function` (`vector_loops.py`): vectorised loops.

A method that a later class defines is declared, abstract, where it is needed first: `load` and `vectorized`.

Worked example: in `for i: for j: C[i, j] += A[i] * (2*i + j)` there are three levels. `2*i` is printed once, at the start of the
body of the loop over `i`; `needs` says that it depends on `i` alone, and `at(1)` prints there.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from tc_jupyter.loops import Block, Buffer, For, Kernel, Stmt, Store, expressions, walk_statements
from tc_jupyter.loops.rewrite import substitute
from tc_jupyter.program import Binary, Call, Const, Expr, IndexVar, Read, Size, children, int64, walk
from tc_jupyter.schedule import Target

from . import arith
from .builder import Builder, Lines, Value
from .polynomial import Polynomial
from .storage import Storage


@dataclass(frozen=True, slots=True)
class Moved:
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
class Counted:
    """An innermost loop with a counter that is being printed: its variable, and what moves with it."""

    var: str
    moved: list[Moved] = field(default_factory=list)


@dataclass(slots=True)
class Level:
    """A loop that is being printed: where code that depends on its variable alone goes, and what is there already."""

    place: Lines
    memo: dict[object, Value] = field(default_factory=dict)
    pointers: dict[object, str] = field(default_factory=dict)
    counted: Counted | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A store of neighbouring elements that goes past the caches if a condition holds.

    Attributes:
        stored: operand with its type.
        pointer: where it goes.
        size, register: alignment in bytes, of an element and where lines are whole.
        past: the condition.
        read: where the only element of an input comes from of which it is made, and how many bytes come for all lanes.
    """

    stored: str
    pointer: str
    size: int
    register: int
    past: Value
    read: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """The vectorised loop that is being printed: its variable, first value, lanes and level."""

    var: str
    first: Expr
    lanes: int
    level: int = field(compare=False)


class State:
    """Where text goes, and what was printed before."""

    def __init__(self, kernel: Kernel, target: Target, builder: Builder) -> None:
        self.kernel = kernel
        self.target = target
        self.b = builder
        self.place: Lines = []
        self.levels = [Level(self.place)]
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
        self.around: dict[str, For] = {}
        self.extents: dict[str, Expr] = {}
        self.positive: frozenset[Expr] = frozenset()
        self.item = ""
        self.scalars: dict[str, Value] = {}
        self.storages: dict[str, Storage] = {}
        self.vector: Vector | None = None
        self.tail: Value | None = None
        self.tail_count: Value | None = None
        self.lengths: tuple[Expr, ...] = ()
        self.alone: Value | None = None
        self.mask: Value | None = None
        self.memo: list[dict[Expr, Value]] = [{}]
        self.loads: list[dict[object, Value]] = [{}]
        self.workspace: Expr = int64(0)
        self.stack_bytes = 0
        self.slots: set[str] = set()
        self.streams = False
        self.put_off: tuple[str, list[Written]] | None = None
        self.mixed: list[tuple[Polynomial, Value]] | None = None
        self.turns = self.last_rows = False
        self.partial = self.takes_long = False
        self.adds_up: Store | None = None
        self.is_stream = self.reads_once = False
        self.read: tuple[str, int] | None = None
        self.fetched: dict[str, str] = {}

    # --- features ---

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
        names = {name for stmt in walk_statements(block) for name in touched_by(stmt)}
        return [self.storages[name].buffer for name in names if name in self.storages]

    # --- places ---

    @contextmanager
    def printing(self, place: Lines) -> Generator[None]:
        """Print there instead of here, without jumps: blocks printed later would not begin where they believe."""
        saved, self.b.lines, block = self.b.lines, place, self.b.block
        yield
        assert self.b.block == block, "a jump was moved to another place"
        self.b.lines = saved

    def at(self, level: int) -> AbstractContextManager[None]:
        """Print into the start of a loop body instead of here."""
        return self.printing(self.levels[level].place)

    def once(self, text: str, hint: str) -> str:
        """The result of an instruction of things known where a task begins, printed there the first time."""
        known = self.levels[0].pointers
        if text not in known:
            with self.at(0):
                known[text] = self.b.raw(text, hint)
        return known[text]

    @contextmanager
    def scope(self) -> Generator[None]:
        """Results of reads and calls printed inside are not known outside."""
        self.memo.append({})
        self.loads.append({})
        yield
        self.memo.pop()
        self.loads.pop()

    @contextmanager
    def beside(self, label: str) -> Generator[None]:
        """Start a block that jumps lead around: results printed inside are not known behind it."""
        self.b.label(label)
        with self.scope():
            yield

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
            case Binary(op="/" | "%") if expr.dtype.is_float:  # printed with jumps
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


def touched_by(stmt: Stmt) -> frozenset[str]:
    """Buffers that a statement itself reads or writes."""
    reads = {node.tensor for expr in expressions(stmt) for node in walk(expr) if isinstance(node, Read)}
    return frozenset(reads | {stmt.buffer} if isinstance(stmt, Store) else reads)
