"""Statements of a `%%sac` function while it is specialised, and their way into a `Program`.

A `Draft` is a statement over uniquely named indices with known ranges. `finish` drops what nobody reads, writes results directly
where a temporary would only be copied, and gives readable names.

Worked example: a matrix product is drafted as `t(i, j) +=! A(i, k) * B(k, j)` and `out(i, j) = t(i, j)`; it leaves as one
statement on `out`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import NO_SPAN, SourceText, Span
from tc_jupyter.diagnostics.work import spend

from .expr import Binary, Call, Const, DType, Expr, IndexVar, Read, Select, Size, Unary, rewrite, walk
from .integers import index_names
from .program import CallSite, Equality, Index, Partition, Program, Statement, Tensor, made_from
from .sac_sizes import (
    ONE,
    Interval,
    add,
    ends,
    fold,
    is_nonnegative,
    maximum,
    same,
    sub,
    substitute,
    value,
)
from .sac_values import reads_of, unconditional

STEPS_PER_STATEMENT = 300  # to make it, to name its indices, and to find its ranges later
STEPS_TO_PLACE = 5000  # where a statement is computed: see `Emitter.steps`
STEPS_PER_PAIR_OF_AXES = 250
STEPS_PER_OPERATION = 25


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement in the making; see `Statement` for the words.

    Attributes:
        outputs, reductions: index name and range, in order.
        number: the partition it computes (from 0), -1 for a hole, `None` outside partitions.
        context: enclosing indices that are no dimension of the target (the statement is moved out of their loops).
        order, block: of a statement that is done in turns with those of the same block, round by round.
    """

    target: str
    outputs: tuple[tuple[str, Interval], ...]
    value: Expr
    operator: str = "="
    initialize: bool = False
    accumulate: bool = False
    reductions: tuple[tuple[str, Interval], ...] = ()
    combine: Expr | None = None
    neutral: Expr | None = None
    number: int | None = None
    text: str = ""
    span: Span = NO_SPAN
    context: tuple[str, ...] = ()
    order: tuple[tuple[str, int], ...] = ()
    block: str = ""

    @property
    def indices(self) -> tuple[tuple[str, Interval], ...]:
        """All indices with their ranges."""
        return self.outputs + self.reductions


@dataclass(frozen=True, slots=True)
class Temp:
    """A computed tensor in the making; `box` has one interval per dimension, or is `None` for tensors of a `%%tc` callee."""

    name: str
    dtype: DType
    box: tuple[Interval, ...] | None
    kind: str = "temporary"
    rank: int = 0
    view_of: str | None = None


class Emitter:
    """Collects drafts; owns the names and ranges of all indices."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.box: dict[str, Interval] = {}
        self.inputs: dict[str, Tensor] = {}
        self.temps: dict[str, Temp] = {}
        self.drafts: list[Draft | Statement] = []
        self.aside: list[Partition] = []  # that have no statement of their own
        self.calls: list[CallSite] = []
        self.equalities: list[Equality] = []
        self.rounds = set[str]()  # indices that count the rounds of loops
        self.made = 0  # steps of all that was added, as `steps` counts them
        self._count = 0

    def fresh(self, base: str, interval: Interval | None = None) -> str:
        """A new index name; `base` is what it will be called in the program if possible."""
        self._count += 1
        name = f"{base}'{self._count}"
        if interval is not None:
            self.box[name] = interval
        return name

    def new_temp(self, hint: str, dtype: DType, box: tuple[Interval, ...] | None, rank: int = -1) -> str:
        """A new temporary; returns its name."""
        base = hint if hint.isidentifier() else "t"
        name, number = base, 1
        while name in self.temps or name in self.inputs or (base == "t" and number == 1):
            name = f"{base}{number}" if base == "t" else f"{base}_{number + 1}"
            number += 1
        self.temps[name] = Temp(name, dtype, box, rank=len(box) if box is not None else rank)
        return name

    def extent(self, tensor: str, dimension: int) -> Expr | None:
        """The extent of a tensor that starts at 0 in this dimension, or `None`; a view starts at 0 whatever it is a view of."""
        if tensor in self.inputs:
            dims = self.inputs[tensor].dims or ()
            return dims[dimension] if dimension < len(dims) else None
        temp = self.temps.get(tensor)
        is_view = temp is not None and temp.view_of is not None
        while temp is not None and temp.view_of is not None:
            temp = self.temps.get(temp.view_of)
        if temp is None or temp.box is None:
            return Size(f"{tensor}.{dimension}")
        low, high = temp.box[dimension]
        if is_view:
            return sub(high, low)
        return high if same(low, Const(0, DType.INT64)) else None

    def add(self, draft: Draft, guards: tuple[Expr, ...], neutral: Expr) -> None:
        """Add a statement whose ranges may depend on other indices and whose value holds only where `guards` do.

        Such a range becomes its hull and the condition goes into the value: `neutral` elsewhere.
        """
        spend(STEPS_PER_STATEMENT)
        conditions = list(guards)
        outputs = tuple((name, self._hull(name, interval, conditions)) for name, interval in draft.outputs)
        reductions = tuple((name, self._hull(name, interval, conditions)) for name, interval in draft.reductions)
        value = draft.value
        for condition in reversed(conditions):
            value = fold(Select(condition, value, neutral, value.dtype))
        added = self._within_loops(replace(draft, outputs=outputs, reductions=reductions, value=value))
        self.made += _steps(added)
        self.drafts.append(added)

    def _hull(self, name: str, interval: Interval, conditions: list[Expr]) -> Interval:
        low, high = interval
        if not index_names(low) and not index_names(high):
            return interval
        first, last = ends(low, self.box), ends(sub(high, ONE), self.box)
        if first is None or last is None:
            raise NotSolvable(name)
        index = IndexVar(name)
        if index_names(low):
            conditions.append(Binary("<=", low, index, DType.BOOL))
        if index_names(high):
            conditions.append(Binary("<", index, high, DType.BOOL))
        return first[0], maximum((add(last[1], ONE), first[0]))  # where no range has a position, it has none, too

    def _within_loops(self, draft: Draft) -> Draft:
        """Empty the loops of a statement that was moved out of loops that may be empty, unless its reads are safe anyway."""
        idle = self.idle(draft.context)
        if not idle or not draft.indices or self._reads_are_safe(draft):
            return draft
        condition: Expr = Const(True, DType.BOOL)
        for low, high in idle:
            condition = fold(Binary("&&", condition, Binary("<", low, high, DType.BOOL), DType.BOOL))
        if draft.reductions:
            (name, (low, high)), *rest = draft.reductions
            return replace(draft, reductions=((name, (low, Select(condition, high, low, DType.INT64))), *rest))
        free = next((place for place, (name, _) in enumerate(draft.outputs) if name not in self.rounds), None)
        if free is None:  # the rounds of a loop are all made, for later ones read them
            return replace(
                draft, value=fold(Select(condition, draft.value, zero(draft.value.dtype), draft.value.dtype))
            )
        outputs = list(draft.outputs)
        name, (low, high) = outputs[free]
        outputs[free] = name, (low, Select(condition, high, low, DType.INT64))
        return replace(draft, outputs=tuple(outputs))

    def idle(self, names: Iterable[str]) -> list[Interval]:
        """The ranges of indices that may be empty, where no other index decides it."""
        return [
            (low, high)
            for low, high in (self.box[name] for name in names)
            if not is_nonnegative(sub(sub(high, low), ONE)) and not index_names(low) | index_names(high)
        ]

    def _reads_are_safe(self, draft: Draft) -> bool:
        box = self.box | dict(draft.indices)
        for read in reads_of(draft.value):
            for dimension, index in enumerate(read.indices):
                extent = self.extent(read.tensor, dimension)
                if extent is None or index.dtype is not DType.INT64:
                    return False
                if not is_nonnegative(index, box) or not is_nonnegative(sub(sub(extent, ONE), index), box):
                    return False
        return True

    # Pieces of a partition

    def clone(
        self, begin: int, end: int, axes: Mapping[str, Interval], names: Iterable[str]
    ) -> tuple[list[Draft], dict[str, str]]:
        """Copies of the drafts `begin:end` that depend on the indices `names`, for the piece `axes` of their partition.

        Returns:
            The copies, and old name -> new name of the temporaries they write.
        """
        wanted = set(names)
        mine = [
            d for d in self.drafts[begin:end] if isinstance(d, Draft) and any(name in wanted for name, _ in d.outputs)
        ]
        renamed: dict[str, str] = {}
        for target in dict.fromkeys(draft.target for draft in mine):
            temp = self.temps[target]
            first = next(draft for draft in mine if draft.target == target)
            box = temp.box or ()
            new_box = (
                tuple(axes.get(name, box[k]) for k, (name, _) in enumerate(first.outputs)) + box[len(first.outputs) :]
            )
            renamed[target] = self.new_temp(target.rstrip("0123456789").rstrip("_") or "t", temp.dtype, new_box)
        copies: list[Draft] = []
        blocks: dict[str, str] = {}
        for draft in mine:
            outputs = tuple((name, axes.get(name, interval)) for name, interval in draft.outputs)
            blocks.setdefault(draft.block, self.fresh(_base(draft.block)) if draft.block else "")
            value = rename_reads(draft.value, renamed)
            copies.append(
                replace(draft, target=renamed[draft.target], outputs=outputs, value=value, block=blocks[draft.block])
            )
        return copies, renamed

    # The program

    def outside(self, results: tuple[str, ...]) -> Iterator[tuple[Span, int, Expr]]:
        """Reads that the results need and that leave their tensor whatever the sizes: place, constant index, extent."""
        self._drop_unread(results)
        for draft in self.drafts:
            if not isinstance(draft, Draft) or not all(_has_steps(interval) for _, interval in draft.indices):
                continue
            for node in unconditional(draft.value):
                if not isinstance(node, Read):
                    continue
                for dimension, index in enumerate(node.indices):
                    at, extent = value(index), self.extent(node.tensor, dimension)
                    size = None if extent is None else value(extent)
                    if extent is not None and at is not None and (at < 0 or (size is not None and at >= size)):
                        yield (node.span if node.span != NO_SPAN else draft.span), at, extent

    def steps(self) -> int:
        """About how much work the statements are for later stages, which try where each is computed for every reader and axis."""
        return sum(map(_steps, self.drafts))

    def finish(
        self,
        name: str,
        sizes: tuple[str, ...],
        parameters: tuple[str, ...],
        results: tuple[str, ...],
        span: Span,
    ) -> Program:
        """The program of all drafts that the results need."""
        self._drop_unread(results)
        self._forward_copies(results)
        taken = {*sizes, *self.inputs, *self.temps}
        statements: list[Statement] = []
        partitions: list[Partition] = []
        counts: dict[str, int] = {}
        steps = self._steps(taken)
        taken |= set(steps.values())
        ahead = _ahead(self.drafts)
        for place, draft in enumerate(self.drafts):
            target = draft.target
            counts[target] = counts.get(target, 0) + 1
            label = target if counts[target] == 1 else f"{target}#{counts[target]}"
            statement = (
                replace(draft, name=label)
                if isinstance(draft, Statement)
                else replace(self._statement(draft, label, taken, steps), ahead=ahead.get(place, ()))
            )
            statements.append(statement)
            if isinstance(draft, Draft) and draft.number is not None:
                state = "hole" if draft.number < 0 else "body"
                box = tuple(interval for _, interval in draft.outputs)
                partitions.append(Partition(label, draft.number, draft.text, state, box, draft.span))
        used = {statement.target for statement in statements} | {read.tensor for s in statements for read in s.reads()}
        places = {draft.target: draft.span for draft in reversed(self.drafts)}
        tensors = tuple(self.inputs.values()) + tuple(
            _tensor(temp, places.get(temp.name, NO_SPAN))
            for temp in self._in_order(results)
            if temp.name in used or temp.name in results
        )
        return Program(
            name=name,
            language="sac",
            sizes=sizes,
            parameters=parameters,
            results=results,
            tensors=tensors,
            statements=tuple(statements),
            equalities=tuple(self.equalities),
            calls=tuple(self.calls),
            partitions=(*partitions, *dict.fromkeys(self.aside)),
            source=self.source,
            span=span,
        )

    def _in_order(self, results: tuple[str, ...]) -> list[Temp]:
        order = list(dict.fromkeys(draft.target for draft in self.drafts))
        order += [temp.name for temp in self.temps.values() if temp.name not in order]
        return [self.temps[name] for name in order if name in self.temps]

    def _steps(self, taken: set[str]) -> dict[str, str]:
        """The indices over rounds, which have one name in all statements of their block."""
        steps = dict.fromkeys(name for draft in self.drafts if isinstance(draft, Draft) for name, _ in draft.order)
        found: dict[str, str] = {}
        for step in steps:
            base = _base(step)
            names = (base, *(f"{base}_{number}" for number in range(2, len(steps) + len(taken) + 3)))
            found[step] = next(name for name in names if name not in taken and name not in found.values())
        return found

    def _statement(self, draft: Draft, label: str, taken: set[str], steps: Mapping[str, str]) -> Statement:
        names = {index: steps[index] for index, _ in draft.indices if index in steps}
        used: set[str] = set()
        for index in (index for index, _ in draft.indices if index not in steps):
            base = _base(index)
            new, number = base, 2
            while new in taken or new in used:
                new, number = f"{base}_{number}", number + 1
            used.add(new)
            names[index] = new
        mapping: dict[str, Expr] = {old: IndexVar(new) for old, new in names.items()}
        indices = tuple(
            Index(names[index], kind, interval, draft.span)
            for kind, group in (("output", draft.outputs), ("reduction", draft.reductions))
            for index, interval in group
        )
        return Statement(
            name=label,
            target=draft.target,
            indices=indices,
            operator=draft.operator,
            initialize=draft.initialize,
            accumulate=draft.accumulate,
            value=substitute(draft.value, mapping),
            text=draft.text,
            span=draft.span,
            combine=draft.combine,
            identity=draft.neutral,
            order=tuple((steps[name], way) for name, way in draft.order),
            block=draft.block.replace("'", "#"),
        )

    def _drop_unread(self, results: tuple[str, ...]) -> None:
        writers: dict[str, list[Draft | Statement]] = {}
        for draft in self.drafts:
            writers.setdefault(draft.target, []).append(draft)
        needed: set[str] = set()
        todo = list(results)
        while todo:
            name = todo.pop()
            if name in needed:
                continue
            needed.add(name)
            temp = self.temps.get(name)
            todo += [temp.view_of] if temp is not None and temp.view_of else []
            for draft in writers.get(name, ()):
                todo += mentioned(draft)
        self.drafts = [draft for draft in self.drafts if draft.target in needed]

    def _forward_copies(self, results: tuple[str, ...]) -> None:
        """`t(i) +=! ..; out(i) = t(i)`  ->  `out(i) +=! ..` where `t` is not used otherwise."""
        for copy in [d for d in self.drafts if isinstance(d, Draft) and d.target in results]:
            source = _copied(copy)
            temp = self.temps.get(source or "")
            if source is None or temp is None or source in results or temp.box is None:
                continue
            if temp.dtype is not self.temps[copy.target].dtype or temp.view_of or self._has_view(source):
                continue
            writers = [d for d in self.drafts if d.target == source]
            if any(isinstance(d, Statement) for d in writers):
                continue
            if (self._whole(copy, temp) and sum(d.target == copy.target for d in self.drafts) == 1) or (
                self._only_reader(source, copy) and all(_ranges(d) == _ranges(copy) for d in writers)
            ):
                self._rename(source, copy)

    def _has_view(self, name: str) -> bool:
        return any(temp.view_of == name for temp in self.temps.values())

    def _whole(self, copy: Draft, temp: Temp) -> bool:
        target = self.temps[copy.target].box or ()
        box = temp.box or ()
        return len(box) == len(target) and all(
            same(a[0], b[0]) and same(a[1], b[1]) for a, b in zip(box, target, strict=True)
        )

    def _only_reader(self, name: str, copy: Draft) -> bool:
        return not any(name in mentioned(d) for d in self.drafts if d is not copy)

    def _rename(self, source: str, copy: Draft) -> None:
        renamed = {source: copy.target}
        new: list[Draft | Statement] = []
        for draft in self.drafts:
            if draft is copy:
                continue
            if isinstance(draft, Statement):  # which writes other tensors
                new.append(draft.mapped(lambda expr: rename_reads(expr, renamed)))
                continue
            is_target = draft.target == source
            new.append(
                replace(
                    draft,
                    target=copy.target if is_target else draft.target,
                    value=rename_reads(draft.value, renamed),
                    number=copy.number if is_target else draft.number,
                    text=(copy.text or draft.text) if is_target else draft.text,
                )
            )
        self.drafts = new
        del self.temps[source]


def _ahead(drafts: Sequence[Draft | Statement]) -> dict[int, tuple[str, ...]]:
    """Of each statement of a block, what it or a later one of the block makes, and no earlier one; by its place."""
    blocks: dict[str, list[int]] = {}
    for place, draft in enumerate(drafts):
        if isinstance(draft, Draft) and draft.block:
            blocks.setdefault(draft.block, []).append(place)
    found: dict[int, tuple[str, ...]] = {}
    for places in blocks.values():
        targets = [drafts[place].target for place in places]
        found |= {place: made_from(targets, number) for number, place in enumerate(places)}
    return found


def _base(index: str) -> str:
    """An index as the text calls it."""
    return index.partition("'")[0]


def _has_steps(interval: Interval) -> bool:
    return is_nonnegative(sub(sub(interval[1], interval[0]), ONE))


def _steps(draft: Draft | Statement) -> int:
    nodes = sum(1 for _ in walk(draft.value))
    found = STEPS_TO_PLACE + STEPS_PER_PAIR_OF_AXES * len(draft.indices) ** 2
    return found + (STEPS_PER_OPERATION + nodes // 2) * nodes  # the conditions around each read are looked for


class NotSolvable(Exception):
    """A range depends on an index in a way that has no hull; `args[0]` is the index."""


def rename_reads(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Reads of other tensors in place of the renamed ones."""
    if not names:
        return expr

    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Read) and node.tensor in names:
            return replace(node, tensor=names[node.tensor])
        if isinstance(node, Size) and "." in node.name and node.name.split(".")[0] in names:
            tensor, _, dimension = node.name.partition(".")
            return Size(f"{names[tensor]}.{dimension}", node.span)
        return None

    return rewrite(expr, rule)


def _tensor(temp: Temp, span: Span) -> Tensor:
    rank = len(temp.box) if temp.box is not None else temp.rank
    return Tensor(temp.name, temp.dtype, rank, temp.kind, box=temp.box, view_of=temp.view_of, span=span)


def mentioned(draft: Draft | Statement) -> set[str]:
    """Tensors that a statement reads, or whose extents it uses."""
    found: set[str] = set()
    exprs = list(draft.parts_and_ends) if isinstance(draft, Statement) else [draft.value]
    if isinstance(draft, Draft):
        exprs += [bound for _, interval in draft.indices for bound in interval]
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Read):
                found.add(node.tensor)
            elif isinstance(node, Size) and "." in node.name:
                found.add(node.name.split(".")[0])
    return found


def _copied(copy: Draft) -> str | None:
    """The tensor that a draft only copies, index by index."""
    read = copy.value
    if copy.operator != "=" or not isinstance(read, Read):
        return None
    wanted = tuple(IndexVar(name) for name, _ in copy.outputs)
    return read.tensor if read.indices == wanted else None


def _ranges(draft: Draft | Statement) -> tuple[Interval, ...]:
    return tuple(interval for _, interval in draft.outputs) if isinstance(draft, Draft) else ()


def zero(dtype: DType) -> Const:
    """Zero, or `false`."""
    if dtype is DType.BOOL:
        return Const(False, dtype)
    return Const(0.0 if dtype.is_float else 0, dtype)


def identity(operator: str, dtype: DType) -> Const:
    """The value that changes nothing."""
    if operator in ("+", "*"):
        number = int(operator == "*")
        return Const(bool(number) if dtype is DType.BOOL else float(number) if dtype.is_float else number, dtype)
    if dtype is DType.BOOL:
        return Const(operator == "min", dtype)
    if dtype.is_float:
        return Const(float("inf") if operator == "min" else float("-inf"), dtype)
    return Const(dtype.limits[operator == "min"], dtype)


def negate(condition: Expr) -> Expr:
    """`!condition`."""
    if isinstance(condition, Unary) and condition.op == "!":
        return condition.operand
    return fold(Unary("!", condition, DType.BOOL))


def with_call(expr: Expr) -> bool:
    """Whether a mathematical function is called."""
    return any(isinstance(node, Call) for node in walk(expr))
