"""What plain loops have in common, whatever the language they are printed in: the walk, names, sizes, and which loop is parallel.

Comes in: the kernels of a schedule in which nothing is transformed. `c` and `numba` add the syntax.

Worked example: `T(i) +=! A(i) - B(i)` is a loop over `i`, whose body is two stores; `Printer.binary` gives `A[i] - B[i]` in both.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, assert_never

from tc_jupyter.codegen.source import Argument
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
    expressions,
    walk_statements,
)
from tc_jupyter.program import Binary, Call, Cast, Const, DType, Expr, IndexVar, Read, Select, Size, Unary, walk
from tc_jupyter.program.integers import index_names, reads_elements
from tc_jupyter.ranges import from_expr

PAD = "    "
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_WIDTH = 120


@dataclass(frozen=True, slots=True)
class PlainFunction:
    """One def as loops.

    Attributes:
        text: the whole file.
        name: of the function. In C it returns 0, or 1 if there is no memory for the temporaries.
        parameters: `size` (`int64`), `scalar` (by value) and `buffer` (a row-major array), in order, each with the name in the def.
    """

    text: str
    name: str
    parameters: tuple[Argument, ...]


@dataclass(slots=True)
class Names:
    """The user's names as identifiers, each as close to what was written as the language allows."""

    reserved: ClassVar[frozenset[str]] = frozenset()
    helpers: ClassVar[re.Pattern[str]]
    known: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def of(self, name: str) -> str:
        """The identifier of a name, the same each time."""
        if name not in self.known:
            plain = re.sub(r"[^0-9A-Za-z_]", "_", name)
            plain = f"t{plain}" if plain[0].isdigit() or plain[0] == "_" else plain
            plain = f"{plain}_" if plain in self.reserved or self.helpers.fullmatch(plain) else plain
            number, unique = 2, plain
            while unique in self.taken:
                unique, number = f"{plain}_{number}", number + 1
            self.taken.add(unique)
            self.known[name] = unique
        return self.known[name]


class Printer(ABC):
    """Prints one def; what it needs of helpers is collected on the way."""

    comment: ClassVar[str]
    level: ClassVar[Mapping[str, int]]
    """How tightly operators bind: `?:` is 1, the names of C say which operator is meant."""
    words: ClassVar[Mapping[str, str]] = {}
    """Operators that have another name."""
    unary: ClassVar[int]
    primary: ClassVar[int]

    def __init__(
        self, names: Names, kernels: Sequence[Kernel], arguments: Sequence[Buffer], stored: Mapping[str, str]
    ) -> None:
        self.names = names
        self.kernels = kernels
        self.arguments = arguments
        self.stored = stored
        self.buffers = {buffer.name: buffer for kernel in kernels for buffer in kernel.buffers}
        self.buffers |= {each.name: each for each in arguments if not is_scalar(each)}
        self.numbers = {size for kernel in kernels for size in kernel.sizes}
        self.natural: set[str] = set()
        self.helpers: dict[str, None] = {}

    def named(self, name: str, sizes: Sequence[str]) -> tuple[str, list[str], list[Buffer]]:
        """Give names to what the def has; its own name, the sizes that are no parameters of it, and the temporaries."""
        own = self.names.of(name)
        given = {each.name for each in self.arguments}
        outer = [size for size in sizes if size not in given]
        for each in (*outer, *(argument.name for argument in self.arguments)):
            self.names.of(each)
        self.natural |= {*outer}
        for buffer, result in self.stored.items():
            self.names.known[buffer] = self.names.of(result)
        return own, outer, [each for each in self.buffers.values() if each.name not in given | self.stored.keys()]

    def parameters(self, sizes: Iterable[str]) -> tuple[Argument, ...]:
        """Sizes first, then the arguments."""
        return (*(Argument("size", size, DType.INT64) for size in sizes), *map(self.argument, self.arguments))

    def argument(self, buffer: Buffer) -> Argument:
        """How an argument is passed."""
        if not is_scalar(buffer):
            return Argument("buffer", buffer.name, buffer.dtype)
        return Argument("scalar", buffer.name, DType.INT64 if buffer.name in self.numbers else buffer.dtype)

    # statements ----------------------------------------------------------------------------------------------------------------

    def block(self, block: Block, depth: int, parallel: bool = False) -> list[str]:
        """Its comment, then its statements."""
        lines = [f"{PAD * depth}{self.comment} {one_line(line)}" for line in block.comment.splitlines()]
        for stmt in block.body:
            lines += self.statement(stmt, depth, parallel)
        return lines

    def statement(self, stmt: Stmt, depth: int, parallel: bool) -> list[str]:
        """The lines of a statement; of the outermost loops, some are `parallel`."""
        match stmt:
            case For():
                if self.is_natural(stmt.min):
                    self.natural.add(stmt.var)
                lines = self.loop(stmt, depth, parallel and is_independent(stmt))
                self.natural.discard(stmt.var)
                return lines
            case If():
                return self.branch(stmt, depth)
            case Store():
                return [PAD * depth + self.store(stmt)]
            case Allocate():
                self.buffers[stmt.buffer.name] = stmt.buffer
                return self.local(stmt, depth)
            case Block():
                return self.block(stmt, depth, parallel)
            case Check():
                return self.tested(stmt, depth)
            case Barrier() | Intrinsic():
                raise AssertionError("a schedule that transforms nothing has no such statement")
        assert_never(stmt)

    def ends(self, loop: For) -> tuple[str, str]:
        """The first value of its variable, and the one behind the last."""
        low, extent, add = loop.min, loop.extent, self.level["+"]
        if isinstance(low, Const) and low.value == 0:
            return self.expr(low), self.expr(extent, add)
        if isinstance(extent, Binary) and extent.op == "-" and extent.right == low:
            return self.expr(low), self.expr(extent.left, add)
        return self.expr(low), f"{self.expr(low, add)} + {self.expr(extent, add + 1)}"

    @abstractmethod
    def loop(self, loop: For, depth: int, parallel: bool) -> list[str]:
        """A loop and its body."""

    @abstractmethod
    def branch(self, stmt: If, depth: int) -> list[str]:
        """A condition around statements."""

    @abstractmethod
    def store(self, stmt: Store) -> str:
        """One assignment."""

    @abstractmethod
    def local(self, stmt: Allocate, depth: int) -> list[str]:
        """A number that a point needs, with its first value where that comes next; or the components of a fold."""

    @abstractmethod
    def tested(self, check: Check, depth: int) -> list[str]:
        """A check that ends the function where it fails."""

    # expressions ---------------------------------------------------------------------------------------------------------------

    def expr(self, expr: Expr, level: int = 0) -> str:
        """The text; in brackets if it binds less tightly than `level`."""
        text, own = self.leveled(expr)
        return f"({text})" if own < level else text

    def leveled(self, expr: Expr) -> tuple[str, int]:
        """The text, and how tightly it binds."""
        match expr:
            case Const():
                return self.constant(expr)
            case Size() | IndexVar():
                return self.names.of(expr.name), self.primary
            case Read():
                return self.read(expr)
            case Unary(op="!"):
                own = self.level["!"]
                return f"{self.words.get('!', '!')}{self.expr(expr.operand, own)}", own
            case Unary():
                return self.wrapped(f"-{self.expr(expr.operand, self.primary)}", self.unary, expr)
            case Binary(op="min" | "max"):
                return self.extremum(expr)
            case Binary(op="/" | "//" | "%") if expr.op == "%" or not expr.dtype.is_float:
                return self.quotient(expr)
            case Binary():
                return self.binary(expr)
            case Select():
                return self.select(expr), 1
            case Call():
                return self.call(expr)
            case Cast():
                return self.cast(expr)
        assert_never(expr)

    def binary(self, expr: Binary) -> tuple[str, int]:
        """An operator that the language has."""
        return self.wrapped(*self.applied(expr), expr)

    def applied(self, expr: Binary) -> tuple[str, int]:
        """An operator between its operands; in Python `a < b < c` would be two comparisons."""
        own, op = self.level[expr.op], expr.op
        left = self.operand(expr.left, own + (op in COMPARISONS), op)
        return f"{left} {self.words.get(op, op)} {self.operand(expr.right, own + 1, op)}", own

    def operand(self, expr: Expr, level: int, op: str) -> str:
        """Brackets around `&&` within `||`, and compared comparisons, are for the reader; compilers of C ask for them."""
        inner = expr.op if isinstance(expr, Binary) else ""
        mixed = (op, inner) == ("||", "&&") or (op in COMPARISONS and inner in COMPARISONS)
        return self.expr(expr, self.primary if mixed else level)

    @abstractmethod
    def constant(self, const: Const) -> tuple[str, int]:
        """A number."""

    @abstractmethod
    def read(self, read: Read) -> tuple[str, int]:
        """An element, or a parameter without dimensions."""

    @abstractmethod
    def wrapped(self, text: str, level: int, expr: Binary | Unary) -> tuple[str, int]:
        """The result of an operator, which of integers is to wrap around in its own type."""

    @abstractmethod
    def extremum(self, expr: Binary) -> tuple[str, int]:
        """`min` or `max`; NaN stays."""

    @abstractmethod
    def quotient(self, expr: Binary) -> tuple[str, int]:
        """A quotient of integers or a remainder, which round down."""

    @abstractmethod
    def select(self, expr: Select) -> str:
        """One of two values."""

    @abstractmethod
    def call(self, call: Call) -> tuple[str, int]:
        """A function of the language."""

    @abstractmethod
    def cast(self, cast: Cast) -> tuple[str, int]:
        """A conversion."""

    @staticmethod
    def converted(value: Expr, dtype: DType) -> Expr:
        """The value in another type."""
        return value if value.dtype is dtype else Cast(value, dtype)

    def need(self, texts: Iterable[str]) -> None:
        """Helpers that stand above the function."""
        self.helpers |= dict.fromkeys(texts)

    def is_natural(self, expr: Expr) -> bool:
        """Whether an index expression is never negative, as far as its form tells."""
        match expr:
            case Const():
                return expr.value >= 0
            case Size() | IndexVar():
                return expr.name in self.natural
            case Binary(op="+" | "*" | "/" | "//" | "%" | "min") if expr.dtype is DType.INT64:
                return self.is_natural(expr.left) and self.is_natural(expr.right)
            case Binary(op="max") if expr.dtype is DType.INT64:
                return self.is_natural(expr.left) or self.is_natural(expr.right)
            case _:
                return expr.dtype in (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64)


def is_scalar(buffer: Buffer) -> bool:
    """Whether an argument is passed by value."""
    return not buffer.shape and buffer.role == "input"


def signature(head: str, parameters: Sequence[str], end: str) -> list[str]:
    """On as few lines as keep to the width, the later ones below the first parameter."""
    lines = [head]
    for number, parameter in enumerate(parameters, 1):
        text = parameter + ("," if number < len(parameters) else end)
        if len(lines[-1]) + 1 + len(text) > _WIDTH and lines[-1] != head:
            lines.append(" " * len(head) + text)
        else:
            lines[-1] += text if lines[-1].endswith("(") else f" {text}"
    return lines


def is_independent(loop: For) -> bool:
    """Whether every iteration writes elements of its own, and reads none that another one writes.

    The variable is a subscript of all stores to arrays. What is combined may meet other values in one element, unless the subscript
    grows with the variable alone; what is stored and read has such a subscript, too, the same at all places.
    """
    statements = list(walk_statements(loop.body))
    local = {stmt.buffer.name for stmt in statements if isinstance(stmt, Allocate)}
    outer = [stmt for stmt in statements if isinstance(stmt, Store) and stmt.buffer not in local]
    inner = {stmt.var for stmt in statements if isinstance(stmt, For)}
    if not outer or not all(any(_moves(i, loop.var, inner, s.reduce is None) for i in s.indices) for s in outer):
        return False
    read = [node for stmt in statements for each in expressions(stmt) for node in walk(each) if isinstance(node, Read)]
    for name in {each.tensor for each in read} & {stmt.buffer for stmt in outer}:
        places = [stmt.indices for stmt in outer if stmt.buffer == name]
        places += [each.indices for each in read if each.tensor == name]
        if not any(len({*at}) == 1 and _moves(at[0], loop.var, inner, False) for at in zip(*places, strict=True)):
            return False
    return True


def _moves(subscript: Expr, var: str, inner: set[str], plain: bool) -> bool:
    names = index_names(subscript)
    if var not in names or plain:
        return var in names
    if names & inner or reads_elements(subscript):
        return False
    split = from_expr(subscript).linear_in(var)
    return split is not None and split[0].is_constant and split[0].offset != 0


def one_line(line: str) -> str:
    """A line of a comment: what the user wrote must not end it, nor go on in the next line."""
    return "".join(char if char.isprintable() else " " for char in line).rstrip("\\ ")
