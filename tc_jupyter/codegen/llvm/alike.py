"""Kernels that are equal but for names are printed once, and share one machine code.

Comes in: the kernels of a build, one by one. Goes out: a `KernelSource` for each. `outline` writes a kernel without its names: a
name stands as the number of the place where it is bound, and operands of integer sums, products, minima and maxima are sorted, as
names may have put them in order. Kernels of one outline compute the same with what is bound at the same places, so code that is
right for the first of them, whatever it calls things inside, is right for all. Only their arguments differ; no generated text is
taken apart.

An outline holds all that code may depend on: loops, types, shapes, scopes, roles, which temporaries no other kernel writes, and
comments of blocks that mean something. It is one of loops after `whole_tiles`: of what numbers sizes are multiples counts only
where it changes them.

Worked example: of two layers

    A(n,o) +=! X(n,i) * W1(o,i)      P(n,o) = max(A(n,o), 0.0)
    C(n,o) +=! P(n,i) * W2(o,i)      Q(n,o) = max(C(n,o), 0.0)

the second one runs the code of the first one with `W2, Q, P` and `B, D1, D2` in the slots of `W1, P, X` and `B, D0, D1`, if `X`
and `Q` are temporaries as `P` is. Cold, on two processors, the workload of four layers is ready after 140 ms instead of 184: its
eight kernels have four outlines.

Nor is the place of an array a name, but code that is right for an argument is right for a temporary, too: it asks for less. So if
`Q` is the result, the first layer runs the code of the second one (`_serves`), if that is printed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from tc_jupyter.codegen.source import Argument, KernelSource
from tc_jupyter.loops import SPARE, Allocate, Barrier, Block, Buffer, Check, For, If, Intrinsic, Kernel, Stmt, Store
from tc_jupyter.loops.rewrite import with_blocks, with_body
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
    rebuild,
)
from tc_jupyter.schedule import Target, tuning

from .emit import emit_llvm
from .full_tiles import SHORT
from .multiples import whole_tiles

MEANT = frozenset((SHORT, SPARE))
"""Comments of blocks by which code is chosen; all others are for people."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer of a kernel is: an argument of the call, or a temporary.

    Attributes:
        scope: as the buffer has it.
        alone: it is a temporary that no other kernel writes.
        may_be_argument: code for an argument suits a temporary, too. Not so for copies into a temporary, which may write whole
            tiles, and for what is computed from one, which is fetched ahead.
    """

    scope: str
    alone: bool
    may_be_argument: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """A kernel without names.

    Attributes:
        text: equal for kernels that may share code, if `places` allow it.
        places: of every buffer, in order.
        streaming: of every store, in order: whether what it writes is not read again soon.
        statements: the names of statements in the order of their numbers.
    """

    text: str
    places: tuple[Place, ...]
    streaming: tuple[bool, ...]
    statements: tuple[str, ...]


class AlikePrinter:
    """Prints kernels one after the other; one that is equal to an earlier one but for names has its text (`twin_of`)."""

    def __init__(self, target: Target, exclusive: frozenset[str] = frozenset()) -> None:
        """`target`, `exclusive`: as for `emit_llvm`."""
        self._target = target
        self._exclusive = exclusive
        self._printed: list[tuple[Kernel, Outline, KernelSource]] = []

    def source(self, kernel: Kernel) -> KernelSource:
        """The LLVM IR of a kernel.

        Raises:
            CompileError: TC503, an expression is nested too deeply.
        """
        try:
            kernel = whole_tiles(kernel)
            own = outline(kernel, self._exclusive)
        except RecursionError:  # printing says which kernel it is
            return emit_llvm(kernel, self._target, self._exclusive)
        for known in self._printed:
            if _serves(known[1], own):
                return _twin(known, kernel, own)
        source = emit_llvm(kernel, self._target, self._exclusive)
        self._printed.append((kernel, own, source))
        return source


def emit_as_twin(kernel: Kernel, other: Kernel, target: Target, exclusive: frozenset[str]) -> KernelSource:
    """Print, with its own names, what runs for a kernel that has the code of another one.

    Args:
        other: the kernel that the code was printed for.
        target, exclusive: as for `emit_llvm`.
    """
    theirs, flags = other.buffers, iter(outline(whole_tiles(other)).streaming)

    def streamed(stmt: Stmt) -> Stmt:
        """With the flags in the order in which an outline has them: `with_blocks` walks like it."""
        if isinstance(stmt, Store):
            return replace(stmt, streaming=next(flags))
        return with_blocks(stmt, lambda block: with_body(block, map(streamed, block.body)))

    kernel = whole_tiles(kernel)
    body = with_body(kernel.body, map(streamed, kernel.body.body))
    places = zip(kernel.buffers, theirs, strict=True)
    buffers = tuple([replace(ours, scope=there.scope, align=there.align) for ours, there in places])
    return emit_llvm(replace(kernel, body=body, buffers=buffers), target, exclusive)


def _serves(other: Outline, own: Outline) -> bool:
    """Whether the code of another kernel is right for a kernel: if a place differs, that code expects an argument."""
    return (
        other.text == own.text
        and all(map(_suits, other.places, own.places))
        and all(theirs or not ours for theirs, ours in zip(other.streaming, own.streaming, strict=True))
    )


def _suits(theirs: Place, ours: Place) -> bool:
    return theirs == ours or (ours.may_be_argument and (theirs.scope, ours.scope) == ("argument", "global"))


def _twin(known: tuple[Kernel, Outline, KernelSource], kernel: Kernel, own: Outline) -> KernelSource:
    """The source of a kernel that runs the code of another one of the same outline."""
    other, outlined, source = known
    tensors = {theirs.name: ours.name for theirs, ours in zip(other.buffers, kernel.buffers, strict=True)}
    tensors |= {theirs: ours for (theirs, _), (ours, _) in zip(other.scalars, kernel.scalars, strict=True)}
    sizes = dict(zip(other.sizes, kernel.sizes, strict=True))
    statements = dict(zip(outlined.statements, own.statements, strict=True))

    done: dict[Expr, Expr] = {}  # numbers of operations have the same parts again and again

    def renamed(expr: Expr) -> Expr:
        found = done.get(expr)
        if found is None:
            found = rebuild(expr, tuple([renamed(child) for child in children(expr)]))
            if isinstance(found, Size):
                found = Size(sizes[found.name])
            elif isinstance(found, Read):
                found = replace(found, tensor=tensors[found.tensor])
            done[expr] = found
        return found

    def argument(slot: Argument) -> Argument:
        if slot.kind in ("workspace", "errors"):
            return slot
        return replace(slot, name=(sizes if slot.kind == "size" else tensors)[slot.name])

    places = {buffer.name: buffer for buffer in kernel.buffers}

    def placed(buffer: Buffer) -> Buffer:
        ours = places[tensors[buffer.name]]
        return replace(shaped(buffer), name=ours.name, scope=ours.scope, align=ours.align)

    def shaped(buffer: Buffer) -> Buffer:
        return replace(buffer, shape=tuple(map(renamed, buffer.shape)))

    x, y, z = map(renamed, source.launch.grid)
    return replace(
        source,
        arguments=tuple(map(argument, source.arguments)),
        launch=replace(source.launch, grid=(x, y, z)),
        buffers=tuple(map(placed, source.buffers)),
        workspace=tuple(map(shaped, source.workspace)),
        line_map=tuple((line, statements[name]) for line, name in source.line_map),
        twin_of=other.name,
    )


def outline(kernel: Kernel, exclusive: frozenset[str] = frozenset()) -> Outline:
    """Write a kernel without names.

    Args:
        exclusive: as for `emit_llvm`.

    Raises:
        RecursionError: an expression is nested too deeply.
    """
    return _Outliner(exclusive).kernel(kernel)


class _Outliner:
    """Writes one kernel; every name that is bound has a number, and an inner binding hides an outer one."""

    def __init__(self, exclusive: frozenset[str]) -> None:
        self.exclusive = exclusive
        self.parts: list[str] = []
        self.bound = 0
        self.tensors: dict[str, str] = {}
        self.sizes: dict[str, str] = {}
        self.loops: dict[str, str] = {}
        self.statements: dict[str, str] = {}
        self.stores: list[Store] = []

    def kernel(self, kernel: Kernel) -> Outline:
        self.sizes = {name: f"n{number}" for number, name in enumerate(kernel.sizes)}
        for name, _ in kernel.scalars:
            self.tensors[name] = self.fresh()
        for buffer in kernel.buffers:
            self.tensors[buffer.name] = self.fresh()
        own = [f"{dtype.value} {self.sizes.get(name)}" for name, dtype in kernel.scalars]
        known = [(self.sizes[name], fact) for name, fact in kernel.facts if name in self.sizes and not fact.fixed]
        limits = sorted(
            f"{name} in {fact.least}..{fact.most}" for name, fact in known if fact.typical <= tuning.TOLD_APART
        )
        self.parts += [f"{len(kernel.sizes)} sizes", *limits, *own, *map(self.argument, kernel.buffers)]
        self.parts.append(
            f"{kernel.checks} checks, {kernel.min_blocks} blocks, unguarded: {kernel.unguarded}, ordered: {kernel.ordered}"
        )
        self.block(kernel.body)
        copies = all(isinstance(store.value, Read | Const) and store.reduce is None for store in self.stores)
        places = tuple([self.place(buffer, copies) for buffer in kernel.buffers])
        streaming = tuple([store.streaming for store in self.stores])
        return Outline("\n".join(self.parts), places, streaming, tuple(self.statements))

    def place(self, buffer: Buffer, copies: bool) -> Place:
        may_be_argument = buffer.role == ("input" if copies else "output")
        return Place(buffer.scope, buffer.name in self.exclusive, may_be_argument)

    # --- names -------------------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        self.bound += 1
        return f"b{self.bound}"

    def tensor(self, name: str) -> str:
        return self.tensors.get(name) or repr(name)

    def size(self, name: str) -> str:
        return self.sizes.get(name) or repr(name)

    def computed(self, name: str) -> str:
        """The number of a statement: what writes for one statement is told from what writes for another."""
        return self.statements.setdefault(name, f"s{len(self.statements)}")

    # --- statements --------------------------------------------------------------------------------------------------

    def argument(self, buffer: Buffer) -> str:
        """What a buffer of the kernel is, wherever it is."""
        about = (buffer.role, buffer.strided, buffer.pad, buffer.swizzle, buffer.threads)
        return f"{buffer.dtype.value}[{self.all(buffer.shape)}] {about} {buffer.stages}"

    def buffer(self, buffer: Buffer) -> str:
        return f"{self.argument(buffer)} {buffer.scope} {buffer.align} {buffer.name in self.exclusive}"

    def block(self, block: Block) -> None:
        self.parts.append("{" + (block.comment if block.comment in MEANT else ""))
        for stmt in block.body:
            self.statement(stmt)
        self.parts.append("}")

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self.parts.append(
                    f"for {stmt.kind} {stmt.chunk} {stmt.tail} {self.expr(stmt.min)} {self.expr(stmt.extent)}"
                )
                self.inside(self.loops, stmt.var, stmt.body)
            case If():
                self.parts.append(f"if {self.expr(stmt.condition)}")
                self.block(stmt.then)
                if stmt.otherwise is not None:
                    self.parts.append("else")
                    self.block(stmt.otherwise)
            case Store():
                place = f"{self.tensor(stmt.buffer)}[{self.all(stmt.indices)}]"
                how = f"{stmt.reduce} {stmt.atomic} {self.computed(stmt.statement)}"
                self.stores.append(stmt)
                self.parts.append(f"{place} {how} {self.expr(stmt.value)}")
            case Allocate():
                self.parts.append(f"allocate {self.buffer(stmt.buffer)}")
                self.inside(self.tensors, stmt.buffer.name, stmt.body)
            case Barrier():
                self.parts.append(f"barrier {stmt.scope}")
            case Check():
                self.parts.append(f"check {stmt.number} {self.expr(stmt.condition)} [{self.all(stmt.values)}]")
                self.block(stmt.body)
            case Intrinsic():
                about = f"{stmt.attributes!r} {self.computed(stmt.statement)}"
                self.parts.append(f"intrinsic {stmt.name} [{self.all(stmt.operands)}] {about}")
            case Block():
                self.block(stmt)
            case _:
                assert_never(stmt)

    def inside(self, names: dict[str, str], name: str, body: Block) -> None:
        """A block in which a name is bound."""
        hidden = names.get(name)
        names[name] = self.fresh()
        self.block(body)
        if hidden is None:
            del names[name]
        else:
            names[name] = hidden

    # --- expressions -------------------------------------------------------------------------------------------------

    def all(self, expressions: Sequence[Expr]) -> str:
        return ", ".join([self.expr(each) for each in expressions])

    def expr(self, expr: Expr) -> str:
        match expr:
            case IndexVar():
                return self.loops.get(expr.name) or repr(expr.name)
            case Const():
                return f"{expr.value!r}:{expr.dtype.value}"
            case Binary(dtype=DType.INT64, op="+" | "-"):
                return self.ordered("+", self.terms(expr, "+"))
            case Binary(dtype=DType.INT64, op="*" | "min" | "max"):
                return self.ordered(expr.op, self.operands(expr, expr.op))
            case Binary():
                return f"({self.expr(expr.left)} {expr.op}:{expr.dtype.value} {self.expr(expr.right)})"
            case Size():
                return self.size(expr.name)
            case Read():
                return f"{self.tensor(expr.tensor)}[{self.all(expr.indices)}]:{expr.dtype.value}"
            case Unary():
                return f"({expr.op}:{expr.dtype.value} {self.expr(expr.operand)})"
            case Cast():
                return f"({expr.dtype.value} {self.expr(expr.operand)})"
            case Select():
                sides = f"{self.expr(expr.then)} : {self.expr(expr.otherwise)}"
                return f"({self.expr(expr.condition)} ?:{expr.dtype.value} {sides})"
            case Call():
                return f"{expr.function}({self.all(expr.arguments)}):{expr.dtype.value}"
        assert_never(expr)

    def ordered(self, op: str, operands: list[str]) -> str:
        return f"({op} {', '.join(sorted(operands))})"

    def terms(self, expr: Expr, sign: str) -> list[str]:
        """The terms of a sum with their signs; integers wrap, so their order does not matter."""
        match expr:
            case Binary(dtype=DType.INT64, op=("+" | "-") as op):
                other = sign if op == "+" else "-" if sign == "+" else "+"
                return [*self.terms(expr.left, sign), *self.terms(expr.right, other)]
            case _:
                return [sign + self.expr(expr)]

    def operands(self, expr: Expr, op: str) -> list[str]:
        """The operands of a product, minimum or maximum of more than two."""
        if isinstance(expr, Binary) and expr.op == op and expr.dtype is DType.INT64:
            return [*self.operands(expr.left, op), *self.operands(expr.right, op)]
        return [self.expr(expr)]
