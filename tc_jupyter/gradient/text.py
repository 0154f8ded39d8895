"""A derived def as a syntax tree, which is printed as a cell.

Every type that the language would not choose by itself is written as a cast, and every range that it would not infer as `where`.

Worked example: `Const(2.0)` of `float64` beside an element of `double` is `2.0`, and alone it is `double(2.0)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from tc_jupyter.diagnostics.work import spend
from tc_jupyter.program import (
    COMPARISONS,
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
    Tensor,
    Unary,
    identity_of,
    int64,
    may_wrap,
    rewrite,
    walk,
)
from tc_jupyter.program.beyond_ends import placed
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import Datum, Name, nonnegative, to_expr
from tc_jupyter.syntax import tree
from tc_jupyter.syntax.printer import def_text

from .arithmetic import number
from .draft import Derived
from .drawn import drawn
from .steps import Array, Bounds, Step, circles, root, version

WORDS = {DType.FLOAT32: "float", DType.FLOAT64: "double", DType.FLOAT16: "half"}
"""Words for types whose other name is longer."""


_COMPLEX = {DType.FLOAT32: "complex64", DType.FLOAT64: "complex128"}


def number_of(array: Array) -> Const:
    """A number of the type of an array, for a statement whose computed value says nothing of the ranges of its indices."""
    return Const(0.0, array.dtype)


def text_of(derived: Derived) -> str:
    """The text of a cell with the def."""
    return def_text(_Printer(derived).definition())


def takes(derived: Derived) -> tuple[str, ...]:
    """The parameters of the def it is about that the derived def has: all of them, unless it is to be lean."""
    program = derived.about.program
    if not derived.lean:
        return program.parameters
    read = reads(derived)
    left_out = [name for name in program.parameters if name not in read and program.tensor(name).dims]
    others = [name for name in program.parameters if name not in left_out]
    given = {end for name in (*derived.saved, *derived.parameters) for end in _plain(derived.arrays[name])}
    given |= {end for name in others for end in _plain(derived.about.arrays[name])}
    for name in left_out:
        wanted = {end.name for end in (program.tensor(name).dims or ()) for end in walk(end) if isinstance(end, Size)}
        if not wanted <= given:
            others.append(name)
            given |= set(_plain(derived.about.arrays[name]))
    return tuple(name for name in program.parameters if name in others)


def reads(derived: Derived) -> frozenset[str]:
    """The tensors of which elements are read, where they are no sizes."""
    names = {root(read.tensor) for step in (*derived.forward, *derived.steps) for read in step.reads()}
    steps = (*derived.forward, *derived.steps)
    ends = [end for step in steps for point in step.points for end in point.bounds]
    ends += [end for array in derived.arrays.values() for bounds in array.box for end in bounds]
    data = {atom.tensor for end in ends for atom in end.atoms() if isinstance(atom, Datum)}
    return frozenset(names | data)


def _plain(array: Array) -> list[str]:
    """The sizes that are a dimension of an array as they stand."""
    return [end.name for low, high in array.box if low == 0 and isinstance(end := to_expr(high), Size)]


class _Printer:
    def __init__(self, derived: Derived) -> None:
        self.derived, self.about = derived, derived.about
        self.names: dict[str, str] = {}
        self.taken = {*derived.arrays, *derived.spelling.values()}
        self.begun: set[str] = set()
        self.boxes: dict[str, tuple[Bounds, ...]] = {}
        self.declared = set(derived.results)
        self.takes = takes(derived)
        self.numbers: dict[str, int] = {}  # of blocks
        self.moving: set[str] = set()  # what the statement, or its block, makes in order
        self.parts: dict[str, str] = {}  # results that are complex, and the arrays of their parts

    def definition(self) -> tree.Def:
        """The whole def."""
        program, derived = self.about.program, self.derived
        params = [self.parameter(program.tensor(name)) for name in program.parameters if name in self.takes]
        for name in derived.saved:
            self.names[version(name, self.about.last[name])] = self.spelled(name)
            params.append(self.cotangent(name))
        params += [self.cotangent(name) for name in derived.parameters]
        results = [
            tree.Result(tree.Name(self.spelled(name)), self.type_of(derived.arrays[name])) for name in derived.results
        ]
        opened = self.opened()
        closed = [name for name in derived.results if derived.arrays[name].pairs]
        for name in closed:
            self.parts[name] = self.names[name] = self.fresh_name(f"{self.spelled(name)}_parts")
            self.declared.discard(name)
        statements = [*self.forward(), *(each for step in derived.steps for each in self.statement(step))]
        statements = [*opened, *statements, *map(self.put_together, closed)]
        return tree.Def(tree.Name(derived.name), tuple(params), tuple(results), tuple(statements))

    # complex numbers of the signature, which all else knows as their parts

    def opened(self) -> list[tree.TcStatement]:
        """The parts of complex parameters, each as an array."""
        derived, statements = self.derived, list[tree.TcStatement]()
        last = {name: version(name, self.about.last[name]) for name in derived.saved}
        read = {each for name in reads(derived) for each in (name, root(name))}
        for name in (*self.takes, *derived.saved, *derived.parameters):
            array = derived.arrays.get(name) or self.about.arrays[name]
            if not array.pairs or name not in read:
                continue
            own = self.fresh_name(f"{self.spelled(name)}_parts")
            points, left = self.elements(array)
            *outer, part = map(self.value, left)
            called: tree.Expression = tree.Name(self.spelled(name))
            number = tree.Apply(called, tuple(outer)) if outer else called
            first = tree.Binary("==", part, _integer(0))
            value = tree.Conditional(
                first, tree.Apply(tree.Name("re"), (number,)), tree.Apply(tree.Name("im"), (number,))
            )
            statements.append(self.comprehension(own, left, "=", value, points, number_of(array)))
            self.names[last.get(name, name)] = own
            self.boxes[own] = array.box
        return statements

    def put_together(self, name: str) -> tree.TcStatement:
        """A complex result of its parts."""
        array = self.derived.arrays[name]
        points, left = self.elements(replace(array, box=array.box[:-1]))
        outer, called = tuple(map(self.value, left)), tree.Name(self.parts[name])
        parts = (tree.Apply(called, (*outer, _integer(each))) for each in (0, 1))
        value = tree.Apply(tree.Name(_COMPLEX[array.dtype]), tuple(parts))
        return self.comprehension(self.spelled(name), left, "=", value, points, number_of(array))

    def fresh_name(self, wish: str) -> str:
        """A free name: as wished, if that is free."""
        found = wish if wish not in self.taken else self.fresh(wish)
        self.taken.add(found)
        return found

    # the signature

    def parameter(self, tensor: Tensor) -> tree.Param:
        self.boxes[tensor.name] = self.about.arrays[tensor.name].box
        bounds = tensor.box or ()
        dimensions: list[tree.Dimension] = [
            tree.DimensionBox(self.integer(low), self.integer(high)) for low, high in bounds
        ] or [self.integer(extent) for extent in tensor.dims or ()]
        if tensor.name in self.derived.many and self.derived.count is not None:
            dimensions.insert(0, self.integer(to_expr(self.derived.count)))
        scalar = WORDS.get(tensor.element, tensor.element.value)
        if tensor.pairs:
            dimensions.pop()
        return tree.Param(tree.TypeName(scalar, tuple(dimensions)), tree.Name(self.spelled(tensor.name)))

    def cotangent(self, name: str) -> tree.Param:
        array = self.derived.arrays[name]
        self.boxes[name] = array.box
        return tree.Param(self.type_of(array), tree.Name(self.spelled(name)))

    def type_of(self, array: Array) -> tree.TypeName:
        if array.pairs:
            return tree.TypeName(_COMPLEX[array.dtype], tuple(map(self.dimension, array.box[:-1])))
        scalar = WORDS.get(array.dtype, array.dtype.value)
        return tree.TypeName(scalar, tuple(map(self.dimension, array.box)))

    def dimension(self, bounds: Bounds) -> tree.Dimension:
        low, high = bounds
        end = self.integer(to_expr(high))
        return end if low == 0 else tree.DimensionBox(self.integer(to_expr(low)), end)

    # statements

    def forward(self) -> list[tree.TcStatement]:
        """The steps that are computed again. A version that is read later has a name of its own."""
        statements: list[tree.TcStatement] = []
        steps, kept = self.derived.forward, self.kept_versions()
        last = {root(step.target): step.target for step in steps}
        held: dict[str, str] = {}
        for step in reversed(steps):
            name, _, number = step.target.partition("@")
            if last[name] == step.target or step.target in kept:
                final = int(number) == self.about.last[name]
                wish = self.derived.called.get(step.target, self.spelled(name))
                wish = self.parts.get(wish, wish)
                held[name] = self.names.get(step.target) or (wish if final else self.fresh(wish))
            self.names.setdefault(step.target, held[name])
        for circle in circles(steps):
            made = {step.target for step in circle}
            copies = {
                step.target: (before, self.copied(step, before)) for step in circle if (before := self.goes_on(step))
            }
            statements += [each for before, found in copies.values() if before not in made for each in found]
            for step in circle:
                before, found = copies.get(step.target, ("", []))
                statements += [*(found if before in made else ()), *self.statement(step)]
        return statements

    def goes_on(self, step: Step) -> str:
        """The version, of another name, whose elements a step leaves as they are or combines onto; else empty."""
        name, _, number = step.target.partition("@")
        before, own = version(name, int(number) - 1), self.names[step.target]
        fits = step.is_whole(self.about.arrays[name]) and (step.fresh or step.operator == "=")
        return before if self.names.get(before, own) != own and not fits else ""

    def kept_versions(self) -> set[str]:
        """Versions that something reads when there is already a later one."""
        kept = {read.tensor for step in self.derived.steps for read in step.reads()} | set(self.derived.called)
        newest: dict[str, str] = {}
        for step in self.derived.forward:
            others = (read.tensor for read in step.reads() if read.tensor != step.target)
            kept |= {name for name in others if newest.get(root(name), name) != name}
            newest[root(step.target)] = step.target
        return kept

    def fresh(self, wish: str) -> str:
        """A name for a version that is not the last one."""
        number = 1
        while f"{wish}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{wish}_{number}")
        return f"{wish}_{number}"

    def copied(self, step: Step, before: str) -> list[tree.TcStatement]:
        """A copy of the version before, in the turns of a block if it is made in them."""
        own, array = self.names[step.target], self.derived.arrays[root(before)]
        turns = (
            step if any(each.target == before and each.block == step.block for each in self.derived.forward) else None
        )
        points, left = self.elements(array, turns)
        self.begun.add(own)
        self.boxes[own] = array.box
        read = Read(before, left, array.dtype)
        value = Cast(read, array.dtype.compute) if array.dtype.compute is not array.dtype else read
        text = self.rounded(self.value(value), array)
        return [self.comprehension(own, left, "=", text, points, value, turns=turns)]

    def elements(
        self, array: Array, turns: Step | None = None
    ) -> tuple[tuple[tuple[str, Bounds], ...], tuple[Expr, ...]]:
        """An index for each dimension, with its range; `turns`: of a step of a block, its indices where it has turns."""
        used = self.taken | set(map(self.spelled, self.about.program.sizes))
        names: list[str] = []
        for _ in array.box:
            names.append(
                next(each for each in (*"ijklmn", *(f"i{n}" for n in range(999))) if each not in {*used, *names})
            )
        for place, (name, _) in zip(turns.places, turns.turns, strict=True) if turns is not None else ():
            names[place] = name
        return tuple(zip(names, array.box, strict=True)), tuple(map(IndexVar, names))

    def statement(self, step: Step) -> list[tree.TcStatement]:
        """A step; where the language needs them, with a filling before or a rounding behind it."""
        others = (*self.derived.forward, *self.derived.steps) if step.block else ()
        self.moving = {each.target for each in (step, *others) if each.order and each.block == step.block}
        array = self.derived.arrays[root(step.target)]
        own = self.name(step.target)
        points = tuple((point.name, point.bounds) for point in step.points)
        self.boxes[own] = array.box
        first = own not in self.begun
        self.begun.add(own)
        statements: list[tree.TcStatement] = []
        fresh = step.fresh
        value = self.value(step.value)
        narrow = array.dtype.compute is not array.dtype
        if narrow and step.operator != "=":
            return self.narrow_sum(step, own, array, points, first)
        if first and not (own in self.declared if step.indices is None else self.is_begun_by(step, array)):
            filled, left = self.elements(array, step)
            number: Expr = identity_of("+" if step.operator == "=" else step.operator, array.dtype.compute)
            statements.append(
                self.comprehension(own, left, "=", self.rounded(self.value(number), array), filled, number, turns=step)
            )
            fresh = False
        operator = step.operator if step.operator == "=" else step.operator + ("=!" if fresh else "=")
        value = self.rounded(value, array)
        node = self.comprehension(
            own, step.left, operator, value, points, step.value, step.unique, step, step.conditions
        )
        node = replace(node, clauses=(*node.clauses, *self.filters(step)))
        return [*statements, _along(node, step.order[len(step.turns) :])]

    def is_begun_by(self, step: Step, array: Array) -> bool:
        """Whether a statement with an index for each dimension says how large its target is: parts of `%%sac` need not."""
        ranges = map(step.range_of, step.indices or ())
        return all(
            ends == box or (nonnegative(box[0] - ends[0]) and nonnegative(ends[1] - box[1]))
            for ends, box in zip(ranges, array.box, strict=True)
        )

    def filters(self, step: Step) -> tuple[tree.Clause, ...]:
        """The conditions of a step."""
        return tuple(tree.Filter(self.value(each)) for each in step.conditions)

    def narrow_sum(
        self, step: Step, own: str, array: Array, points: Sequence[tuple[str, Bounds]], first: bool
    ) -> list[tree.TcStatement]:
        """A sum of 16-bit floats is kept in 32 bits until it is complete."""
        if step.turns != step.order:
            step = step.in_turns_alone()
        wide = self.fresh(f"{own}_sum")
        held = replace(array, name=wide, dtype=array.dtype.compute)
        self.boxes[wide] = array.box
        filled, left = self.elements(array, step)
        begin: Expr = identity_of(step.operator, held.dtype)
        if not step.fresh and not first:
            begin = Cast(Read(step.target, left, array.dtype), held.dtype)
        summed = self.comprehension(
            wide,
            step.left,
            step.operator + "=",
            self.value(step.value),
            points,
            step.value,
            turns=step,
            conditions=step.conditions,
        )
        statements: list[tree.TcStatement] = [
            self.comprehension(wide, left, "=", self.value(begin), filled, begin, turns=step),
            replace(summed, clauses=(*summed.clauses, *self.filters(step))),
        ]
        read = Read(wide, left, held.dtype)
        text = self.rounded(self.value(read), array)
        return [*statements, self.comprehension(own, left, "=", text, filled, read, turns=step)]

    def rounded(self, value: tree.Expression, array: Array) -> tree.Expression:
        """A value in the type of an array of 16-bit floats."""
        if array.dtype.compute is array.dtype:
            return value
        return _applied(WORDS.get(array.dtype, array.dtype.value), value)

    def comprehension(
        self,
        own: str,
        left: Sequence[Expr],
        operator: str,
        value: tree.Expression,
        points: Sequence[tuple[str, Bounds]],
        computed: Expr,
        unique: bool = False,
        turns: Step | None = None,
        conditions: Sequence[Expr] = (),
    ) -> tree.Comprehension:
        """One statement with the ranges that the language would not infer, in the turns of the block of a step."""
        blocks = () if turns is None else self.blocks(turns)
        names = {block.index.name for block in blocks}
        clauses: list[tree.Clause] = [
            tree.Where(tree.Name(name), self.integer(to_expr(low)), self.integer(to_expr(high)))
            for name, (low, high) in points
            if name not in names
            and (is_subscript(name, conditions) or not self.is_inferred(name, (low, high), computed, left))
        ]
        if unique:
            clauses.append(tree.Unique())
        box = self.boxes.get(own)  # parts of complex numbers have none
        indices = tuple(map(self.place, left, box) if box else map(self.integer, left)) if left else None
        return tree.Comprehension(tree.Name(own), indices, operator, value, tuple(clauses), blocks=blocks)

    def blocks(self, step: Step) -> tuple[tree.Block, ...]:
        """The blocks around a step."""
        if not step.block:
            return ()
        number = self.numbers.setdefault(step.block, len(self.numbers))
        return tuple(
            tree.Block(tree.Name(name), way, self.integer(to_expr(low)), self.integer(to_expr(high)), number)
            for name, way in step.turns
            for low, high in [step.range_of(name)]
        )

    def is_inferred(self, name: str, bounds: Bounds, value: Expr, left: Sequence[Expr]) -> bool:
        """Whether an index stands alone wherever it subscripts, each time over the whole dimension."""
        if any(name in index_names(at) and not isinstance(at, IndexVar) for at in left) or isinstance(value, Const):
            return False
        if not all(isinstance(atom, Name) for end in bounds for atom in end.atoms()):
            return False
        found = False
        for node in walk(value):
            if isinstance(node, Select) or (isinstance(node, Binary) and node.op in ("&&", "||")):
                return False  # what a condition guards may not count
            for place, at in enumerate(node.indices if isinstance(node, Read) else ()):
                assert isinstance(node, Read)
                if name not in index_names(at):
                    continue
                box = self.boxes.get(node.tensor) or self.boxes.get(self.name(node.tensor))
                if not isinstance(at, IndexVar) or box is None or box[place] != bounds:
                    return False
                found = True
        return found

    # expressions

    def spelled(self, name: str) -> str:
        """How an array or a size is called."""
        return self.derived.spelling.get(name, name)

    def name(self, tensor: str) -> str:
        """What a tensor, or a version of one, is called."""
        return self.names.get(tensor) or self.spelled(tensor)

    def box_of(self, tensor: str) -> tuple[Bounds, ...]:
        """The box of what is read."""
        return self.boxes.get(tensor) or self.boxes.get(self.name(tensor)) or self.derived.arrays[root(tensor)].box

    def read(self, expr: Read) -> tree.Expression:
        """An element."""
        indices = tuple(self.subscript(expr.tensor, place, at) for place, at in enumerate(expr.indices))
        called = tree.Name(self.name(expr.tensor))
        if not indices:
            return called
        found = tree.Apply(called, indices)
        if expr.tensor in self.moving and any(
            may_wrap(to_expr(end)) for each in self.box_of(expr.tensor) for end in each
        ):
            # conditions with such an end may wrap, and so do not say that the element was made before
            return tree.Bordered(found, _number(number(0, expr.dtype), weak=True))
        return found

    def subscript(self, tensor: str, place: int, at: Expr) -> tree.Expression:
        """A subscript of a read; one that goes around the array, or stops at its ends, in the words for that."""
        box = self.box_of(tensor)
        low, high = box[place]
        for word, inner in _borders(at) if low == 0 else ():
            if self.about.size(placed(word, inner, (to_expr(low), to_expr(high)))) == self.about.size(at):
                return tree.Apply(tree.Name(word), (self.integer(inner),))
        if tensor in self.moving and any(isinstance(node, Read) and node.indices for node in walk(at)):
            # data were looked at where it was made; of what is made in order, subscripts have to be certain
            return tree.Apply(tree.Name("clamp"), (self.integer(at),))
        return self.place(at, box[place])

    def place(self, at: Expr, bounds: Bounds) -> tree.Expression:
        """A subscript without a word for it; one that goes around an array without elements divides by 1, for nothing is there."""
        extent = bounds[1] - bounds[0]

        def rule(node: Expr) -> Expr | None:
            if (
                not isinstance(node, Binary)
                or node.op != "%"
                or self.about.size(node.right) not in (extent, 2 * extent)
            ):
                return None
            return replace(node, right=Binary("max", node.right, int64(1), DType.INT64))

        return self.integer(at if extent.is_constant and extent.offset > 0 else rewrite(at, rule))

    def integer(self, expr: Expr) -> tree.Expression:
        """A subscript or the end of a range, which is computed in `int64` whatever stands there."""
        match expr:
            case Cast(operand=operand) if expr.dtype is DType.INT64 and operand.dtype.is_integer:
                return self.integer(operand)
            case Binary() if expr.dtype is DType.INT64 and expr.op not in COMPARISONS:
                return _operator(expr.op, self.integer(expr.left), self.integer(expr.right))
            case Const() if expr.dtype.is_integer:
                return _integer(int(expr.value))
            case Unary() if expr.dtype is DType.INT64:
                return tree.Unary("-", self.integer(expr.operand))
            case Select() if expr.dtype is DType.INT64:
                return tree.Conditional(
                    self.value(expr.condition), self.integer(expr.then), self.integer(expr.otherwise)
                )
            case _:
                return self.value(expr)

    def value(self, expr: Expr, weak: bool = False) -> tree.Expression:
        """An expression; `weak`: a literal takes its type from what stands beside it."""
        spend(1)
        if isinstance(expr, Binary | Cast) and (found := drawn(expr)) is not None:
            name, seed, counters = found
            return tree.Apply(tree.Name(name), tuple(map(self.integer, (seed, *counters))))
        match expr:
            case Const():
                return _number(expr, weak)
            case Size():
                return tree.Name(self.spelled(expr.name))
            case IndexVar():
                return tree.Name(expr.name)
            case Read():
                return self.read(expr)
            case Unary():
                return tree.Unary(expr.op, self.value(expr.operand, weak))
            case Binary():
                return self.binary(expr)
            case Select():
                then, otherwise = self.pair(expr.then, expr.otherwise)
                return tree.Conditional(self.value(expr.condition), then, otherwise)
            case Call() if expr.function in _BITS:
                return _operator(_BITS[expr.function], *self.pair(*expr.arguments))
            case Call():
                strong = any(not _is_literal(each) for each in expr.arguments)
                arguments = (self.value(each, strong) for each in expr.arguments)
                return tree.Apply(tree.Name(expr.function), tuple(arguments))
            case Cast():
                return _applied(WORDS.get(expr.dtype, expr.dtype.value), self.value(expr.operand))
        assert_never(expr)

    def binary(self, expr: Binary) -> tree.Expression:
        numbers = expr.left.dtype is DType.INT64 and expr.op in COMPARISONS
        sides = (self.integer(expr.left), self.integer(expr.right)) if numbers else self.pair(expr.left, expr.right)
        return _operator(expr.op, *sides)

    def pair(self, left: Expr, right: Expr) -> tuple[tree.Expression, tree.Expression]:
        """Two operands of one type."""
        return self.value(left, not _is_literal(right)), self.value(right, not _is_literal(left))


_BITS = {"bitand": "&", "bitxor": "^^", "bitor": "|", "shiftleft": "<<", "shiftright": ">>"}
"""The operators on the bits of integers, by the functions that they are."""


def is_subscript(name: str, conditions: Sequence[Expr]) -> bool:
    """Whether what a condition reads would say how far an index runs."""
    reads = (node for each in conditions for node in walk(each) if isinstance(node, Read))
    return any(name in index_names(at) for read in reads for at in read.indices)


def _along(node: tree.Comprehension, order: Sequence[tuple[str, int]]) -> tree.Comprehension:
    """The statement whose points are taken in an order."""
    return replace(node, along=tuple(tree.Direction(tree.Name(name), way) for name, way in order))


def _operator(op: str, left: tree.Expression, right: tree.Expression) -> tree.Expression:
    if op in ("min", "max"):
        return tree.Apply(tree.Name(op), (left, right))
    return tree.Binary("/" if op == "//" else op, left, right)


def _borders(at: Expr) -> Iterator[tuple[str, Expr]]:
    """The words for what is read beyond the ends that a subscript may have, and what then stands behind them."""
    match _without_zero(at):
        case Binary(op="%", left=inner):
            yield "wrap", _without_zero(inner)
        case Binary(op="min", left=Binary(op="max", left=inner)):
            yield "clamp", inner
        case Binary(op="min", left=Binary(op="%", left=inner)):
            yield "reflect", _without_zero(inner)
            yield "symmetric", _without_zero(inner)
        case _:
            return


def _without_zero(expr: Expr) -> Expr:
    """A sum or difference with the origin of an array whose box was stated."""
    match expr:
        case Binary(op="+" | "-", left=left, right=Const(value=0)):
            return left
        case _:
            return expr


def _applied(function: str, value: tree.Expression) -> tree.Expression:
    return tree.Apply(tree.Name(function), (value,))


def _is_literal(expr: Expr) -> bool:
    return isinstance(expr, Const) or (isinstance(expr, Unary) and expr.op == "-" and _is_literal(expr.operand))


def _integer(value: int) -> tree.Expression:
    number = tree.Number(str(abs(value)), abs(value))
    return number if value >= 0 else tree.Unary("-", number)


_ALONE = {DType.INT32, DType.FLOAT32, DType.BOOL}


def _number(expr: Const, weak: bool) -> tree.Expression:
    """A literal of a type: bare where that follows, else in a cast."""
    value, dtype = expr.value, expr.dtype
    if dtype is DType.BOOL:
        return tree.Number("true" if value else "false", bool(value), "bool")
    if dtype.is_float:
        text = _digits(abs(value), dtype)
        found: tree.Expression = tree.Number(text, float(abs(value)) if math.isfinite(value) else value)
        negative = math.copysign(1, value) < 0
    else:
        found, negative = tree.Number(str(abs(int(value))), abs(int(value))), value < 0
    found = tree.Unary("-", found) if negative else found
    return found if weak or dtype in _ALONE else _applied(WORDS.get(dtype, dtype.value), found)


def _digits(value: float, dtype: DType) -> str:
    if math.isinf(value):
        return "inf"
    if math.isnan(value):
        return "nan"
    text = str(np.float32(value)) if dtype is DType.FLOAT32 else repr(float(value))
    return text.replace("e+", "e")
