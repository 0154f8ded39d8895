"""Blocks, `along t in 0:T { ... }`, as statements in which the step is an index.

A tensor of which each step has one of its own gets the step as its first dimension. Statements that need nothing of what they
themselves lead to are taken out of the loop: they stand before or behind it, and their points have no order. What is left goes in
circles: a statement alone is one with `along`, several keep the block, whose number is that of the circle then.

Worked example: of `along t in 0:T { Z(o) +=! X(t, i)*W(o, i)  R(o) +=! h(t-1, k)*U(o, k)  h(t, o) = tanh(Z(o) + R(o)) }` the first
statement becomes `Z(t, o) +=! X(t, i)*W(o, i) where t in 0:T`, and `R` and `h` are done step by step.

Source: Allen and Kennedy, "Automatic translation of FORTRAN programs to vector form", TOPLAS 1987 (loop distribution).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TypeAlias

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, Span, codes
from tc_jupyter.syntax import tree

from .carried_states import Carried, names_of, parts_of, with_step_fix
from .orders import offset

_STAYS = "what stays has the step as an index, as `s` in `s(t, b) = (s(t-1, b) else 0) + X(t, b)`"


def without_blocks(
    node: tree.Def,
    diagnostics: list[Diagnostic],
    callees: Container[str],
    taken_out: Callable[[tree.Comprehension], Sequence[tree.Comprehension]],
) -> tree.Def:
    """A def whose blocks are statements with the step as an index; what is wrong with them is added to the messages.

    Args:
        callees: the defs that may be called.
        taken_out: gives a statement, and before it those for the calls in it.
    """
    if not any(isinstance(each, tree.Comprehension) and each.blocks for each in node.statements):
        return node
    found: list[tree.TcStatement] = []
    results = {result.name.name for result in node.results}
    count, runs = 0, _runs(node.statements)
    for place, (block, run) in enumerate(runs):
        if block is None:
            found += run
            continue
        written = [each for each in run if isinstance(each, tree.Comprehension)]
        inside = [each for statement in written for each in taken_out(statement)]
        before, after = ([each for _, other in part for each in other] for part in (runs[:place], runs[place + 1 :]))
        made = _Block(block, inside, results, before, after, diagnostics)
        told = len(diagnostics)
        made.refuse_calls(callees)
        statements = made.statements()
        if any(each.is_error for each in diagnostics[told:]):  # nothing else is said of what they make
            found += [
                tree.Broken((name.name,), frozenset(names_of(each)), "", each.span)
                for each in run
                for name in _made(each)
            ]
            continue
        found += made.in_circles(statements, count)
        count += len(statements)
    return replace(node, statements=tuple(found))


def _block_of(statement: tree.TcStatement) -> tree.Block | None:
    return statement.blocks[0] if isinstance(statement, tree.Comprehension) and statement.blocks else None


def _runs(statements: Sequence[tree.TcStatement]) -> list[tuple[tree.Block | None, list[tree.TcStatement]]]:
    """The statements of each block, and those between; a constant inside of a block stands before it."""
    runs: list[tuple[tree.Block | None, list[tree.TcStatement]]] = []
    for statement in statements:
        block = _block_of(statement)
        same = [place for place in range(len(runs))[-2:] if runs[place][0] == block]
        if not same:
            runs.append((block, [statement]))
            continue
        if same[-1] < len(runs) - 1 and block is not None:
            runs[-2], runs[-1] = runs[-1], runs[-2]
            same = [len(runs) - 1]
        if same[-1] == len(runs) - 1:
            runs[-1][1].append(statement)
        else:
            runs.append((block, [statement]))
    return runs


@dataclass(slots=True)
class _Block:
    """The statements of one block, as written, and the names in those outside of it."""

    block: tree.Block
    inside: list[tree.Comprehension]
    results: set[str]
    before: list[tree.TcStatement]
    after: list[tree.TcStatement]
    diagnostics: list[Diagnostic]
    carried: Carried = field(init=False)

    def __post_init__(self) -> None:
        self.carried = Carried(self.inside)

    @property
    def step(self) -> str:
        return self.nest[-1].index.name

    @property
    def outside(self) -> set[str]:
        """The names in statements outside of the block."""
        return {name for each in (*self.before, *self.after) for name in names_of(each)}

    @property
    def nest(self) -> tuple[tree.Block, ...]:
        """The blocks around the statements, outermost first."""
        return self.inside[0].blocks

    def refuse_calls(self, callees: Container[str]) -> None:
        """TC501 for calls of defs that no statement could be made of, TC227 for what is passed while the block makes it."""
        targets = {target.name for target, _ in self.targets()} | self.outside
        hidden = self.hidden_names()
        for each in self.inside:
            called = (node for node in _reads(each) if node.function.name.partition(".")[0] in callees)
            own = each.value if each.called and isinstance(each.value, tree.Apply) else None
            for node in _apart(node for node in called if node.function.name not in targets and node is not own):
                help = "call it with whole arrays in a statement of its own, as in `Z = cell(P, W)`, or write its statements here"
                if node is each.value and self.step in tree.names_in(node.arguments):
                    what = f"an argument that has the step `{self.step}` in it"
                    help = f"compute {what} in a statement before, as in `n = {self.step} + 1`, and pass `n`"
                message = f"`{node.function.name}` cannot be called here, inside of a block"
                self.report(codes.UNSUPPORTED, node.span, message, help)
            for name in () if own is None else own.arguments:
                if isinstance(name, tree.Name) and name.name in self.made_here() - hidden:
                    message = f"`{name.name}` is made step by step, and a def is called here with all of it"
                    help = f"pass what one step has: write `P(i) = {name.name}({self.step} - 1, i) else 0` before, and pass `P`"
                    self.report(codes.STEP, name.span, message, help, Label(self.block.span, "the block"))

    def statements(self) -> list[tree.Comprehension]:
        """The statements with the step as an index."""
        if len(self.inside) > MOST_STATEMENTS:
            message = f"the block has more than {MOST_STATEMENTS} statements"
            self.report(codes.DEVICE_LIMIT, self.block.span, message, "write several blocks, or one def for each")
            return []
        beside = next((each for each in self.inside if each.blocks != self.nest), None)
        if beside is not None:
            help = (
                "write all statements into the inner block, or name the inner order behind a statement, as in `along j`"
            )
            message = "statements beside a block inside of a block are not part of this version"
            self.report(codes.UNSUPPORTED, beside.span, message, help)
            return []
        hidden = self.hidden()
        return [self.with_step(each, hidden) for each in self.inside]

    def report(self, code: codes.Code, span: Span, message: str, help: str, label: Label | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, span, message, "", () if label is None else (label,), help))

    def hidden(self) -> dict[str, tuple[tree.Name, ...]]:
        """The tensors of which each step has one of its own, with the steps that become their first indices."""
        found: dict[str, tuple[tree.Name, ...]] = {}
        outside = self.outside
        for name, targets in groupby(sorted(self.targets(), key=lambda pair: pair[0].name), lambda pair: pair[0].name):
            lacking = [(target, self.lacking(indices or ())) for target, indices in targets]
            target, steps = next(((target, steps) for target, steps in lacking if steps), lacking[0])
            if not steps:
                continue
            found[name] = steps
            step, place = steps[-1].name, Label(self.block.span, "the block")
            if any(other != steps for _, other in lacking):
                message = f"some statements write `{name}` with the index `{step}`, and this one does not"
                self.report(codes.STEP, target.span, message, _STAYS, place)
            elif name in self.results or name in outside:
                why = "is a result" if name in self.results else "stands outside of the block, too"
                message = f"`{name}` has no index `{step}`, so it lives for one step, and it {why}"
                self.told(target, message, place)
            elif len(steps) < len(self.nest):
                message = f"`{name}` has a step as an index, but not `{step}`"
                self.report(
                    codes.STEP, target.span, message, "a tensor has the steps of all blocks around it, or none", place
                )
            elif self.carried.is_carried(name):
                message = (
                    f"`{name}` has no index `{step}`, so it begins anew in each step, and is read before it is written"
                )
                self.told(target, message, place)
            elif self.carried.is_accumulated(name):
                self.begins_anew(name)
        return found

    def begins_anew(self, name: str) -> None:
        """TC232: what has no step is not kept for the next one, so there is nothing to accumulate onto."""
        first = next(each for each in self.inside if any(target.name == name for target, _ in each.targets))
        place, operator = first.operator_span, first.operator
        message = f"`{name}` begins anew in each step, so `{operator}` accumulates onto nothing"
        fix = with_step_fix(self.carried, name, (), ())
        if fix is None or len(self.nest) > 1:
            fix = Fix(f"replace it by `{operator}!`", (Edit(place, operator + "!"),))
        help = f"{_STAYS}; where each step is a sum of its own, say so with `{operator}!`"
        label = Label(self.block.span, "the block")
        self.diagnostics.append(Diagnostic(codes.ACCUMULATE_UNSET, place, message, "", (label,), help, fix))

    def told(self, target: tree.Name, message: str, place: Label) -> None:
        """TC227 with the step as the first index wherever the tensor is named."""
        fix = None
        indices = next((indices for name, indices in self.targets() if name is target), None)
        used = (node for index in indices or () for node in tree.walk(index) if isinstance(node, tree.Name))
        if any(node.name == self.step for node in used):
            message = f"the step `{self.step}` has to be an index of `{target.name}` by itself"
            help = "write another range of steps: `along t in 1:T + 1 { Y(t) = ... }`, not `along t in 0:T { Y(t + 1) = ... }`"
            self.report(codes.STEP, target.span, message, help, place)
            return
        if len(self.nest) == 1 and not (target.name in self.results and target.name in self.outside):
            fix = with_step_fix(self.carried, target.name, self.before, self.after)
        self.diagnostics.append(Diagnostic(codes.STEP, target.span, message, "", (place,), _STAYS, fix))

    def made_here(self) -> set[str]:
        """The names of what the block writes."""
        return {name.name for name, _ in self.targets()}

    def hidden_names(self) -> set[str]:
        """Those of which each step has one of its own."""
        return {name.name for name, indices in self.targets() if self.lacking(indices or ())}

    def targets(self) -> Iterator[tree.Target]:
        return (target for each in self.inside for target in each.targets)

    def lacking(self, indices: Iterable[tree.Expression]) -> tuple[tree.Name, ...]:
        """The steps that are no indices."""
        names = {index.name for index in indices if isinstance(index, tree.Name)}
        return tuple(block.index for block in self.nest if block.index.name not in names)

    def with_step(self, node: tree.Comprehension, hidden: Mapping[str, tuple[tree.Name, ...]]) -> tree.Comprehension:
        """A statement with the step as an index, which has the range of the block."""
        span = node.target.span
        targets: list[tree.Target] = [
            (name, (*_placed(hidden[name.name], span), *(indices or ())) if name.name in hidden else indices)
            for name, indices in node.targets
        ]
        arrays = {name.name for name, indices in self.targets() if indices is not None and not node.called}
        inside = partial(_with_index, hidden=hidden, arrays=arrays)
        (target, indices), before = targets[-1], targets[:-1]
        where = [tree.Where(replace(each.index, span=span), each.lower, each.upper, each.span) for each in self.nest]
        clauses = [tree.mapped_clause(each, inside) for each in node.clauses]
        return replace(
            node,
            target=target,
            indices=None if indices is None else tuple(map(inside, indices)),
            value=inside(node.value),
            clauses=(*where, *clauses),
            at=None if node.at is None else inside(node.at),
            before=tuple((name, None if each is None else tuple(map(inside, each))) for name, each in before),
            rest=tuple(map(inside, node.rest)),
            blocks=(),
        )

    # circles ---------------------------------------------------------------------------------------------------------------------

    def in_circles(self, statements: Sequence[tree.Comprehension], first: int) -> Iterator[tree.Comprehension]:
        """The statements in an order in which they may run one after the other, where circles stay together."""
        needs = self.needs(statements)
        directions = [tree.Direction(each.index, each.step, each.span) for each in self.nest]
        for number, circle in enumerate(_circles(needs), first):
            alone = len(circle) == 1
            for place in circle:
                node = statements[place]
                if alone and place not in needs[place]:
                    yield node
                    continue
                along = (*directions, *node.along)
                plain = alone and not self.reads_neighbours(node)
                blocks = () if plain else tuple(replace(each, number=number) for each in self.nest)
                yield replace(node, along=along, blocks=blocks)

    def reads_neighbours(self, node: tree.Comprehension) -> bool:
        """Whether a statement reads its target at other indices than it writes, beside the step: a step is a nest of loops then."""
        steps = {block.index.name for block in self.nest}
        for name, indices in node.targets:
            for read in _reads(node):
                pairs = zip(indices or (), read.arguments, strict=False)
                pairs = [(left, at) for left, at in pairs if isinstance(left, tree.Name) and left.name not in steps]
                if read.function.name == name.name and any(offset(left.name, at) != 0 for left, at in pairs):
                    return True
        return False

    def needs(self, statements: Sequence[tree.Comprehension]) -> list[set[int]]:
        """The statements that each one must stand behind; both of each other, where they have to stay together."""
        found = [set[int]() for _ in statements]
        reads = [_reads_by_name(each) for each in statements]
        writers: dict[str, list[tuple[int, _Steps]]] = {}
        for place, node in enumerate(statements):
            for name, indices in {name.name: indices for name, indices in node.targets}.items():
                writers.setdefault(name, []).append((place, self.steps_of(indices or ())))
        for place, node in enumerate(statements):
            for name in _behind(node):
                found[place] |= {writer for writer, _ in writers.get(name, ()) if writer < place}
            for name, arguments in reads[place].items():
                known: dict[_Steps, set[int | None]] = {}
                for writer, steps in writers.get(name, ()):
                    if steps not in known:
                        known[steps] = {self.distance(steps, each) for each in arguments}
                    distances = known[steps]
                    if writer != place or distances != {0}:
                        found[place].add(writer)
                    # what is written over, or comes too early, is read before
                    if writer != place and (distances & {None, 1} or (0 in distances and place < writer)):
                        found[writer].add(place)
        return found

    def steps_of(self, written: Sequence[tree.Expression]) -> _Steps:
        """Where the steps stand among the indices of a target."""
        places = {index.name: place for place, index in reversed([*enumerate(written)]) if isinstance(index, tree.Name)}
        return tuple(places.get(each.index.name) for each in self.nest)

    def distance(self, steps: _Steps, read: Sequence[tree.Expression]) -> int | None:
        """Whether an element is made in a later step than it is read (1), in the same one, or in an earlier one (-1).

        `None` where that is not known.
        """
        for block, place in zip(self.nest, steps, strict=True):
            by = None if place is None or place >= len(read) else offset(block.index.name, read[place])
            if by is None:
                return None
            if by:
                return 1 if by * block.step > 0 else -1
        return 0


MOST_STATEMENTS = 256
"""Statements of one block."""


_Steps: TypeAlias = tuple[int | None, ...]
"""The place of each step among the indices of a target, if it stands there by itself."""


def _placed(names: Sequence[tree.Name], span: Span) -> tuple[tree.Name, ...]:
    return tuple(replace(name, span=span) for name in names)


def _circles(needs: Sequence[set[int]]) -> list[list[int]]:
    """The numbers in groups that need each other, each group behind what it needs, else as early as it was."""
    bits = [1 << place for place in range(len(needs))]
    reach = [sum(bits[each] for each in found) for found in needs]
    for middle, bit in enumerate(bits):
        reach = [each | reach[middle] if each & bit else each for each in reach]
    back = [sum(bit for bit, each in zip(bits, reach, strict=True) if each & own) for own in bits]
    left, found = sum(bits), list[list[int]]()
    while left:
        for place, bit in enumerate(bits):
            circle = bit | (reach[place] & back[place])
            if left & bit and not reach[place] & left & ~circle:
                found.append([each for each, own in enumerate(bits) if circle & own])
                left &= ~circle
                break
    return found


# expressions ---------------------------------------------------------------------------------------------------------------------


def _made(statement: tree.TcStatement) -> tuple[tree.Name, ...]:
    return tuple(name for name, _ in statement.targets) if isinstance(statement, tree.Comprehension) else ()


def _apart(calls: Iterable[tree.Apply[tree.Expression]]) -> Iterator[tree.Apply[tree.Expression]]:
    """One call of each def, and none inside of another one: what is written instead of that says what becomes of them."""
    names, end = set[str](), 0
    for call in calls:
        if call.function.name not in names and call.span.start >= end:
            yield call
            end = call.span.end
        names.add(call.function.name)


def _reads(node: tree.Comprehension) -> Iterator[tree.Apply[tree.Expression]]:
    nodes = (each for part in parts_of(node) for each in tree.walk(part))
    return (each for each in nodes if isinstance(each, tree.Apply))


def _reads_by_name(node: tree.Comprehension) -> dict[str, list[Sequence[tree.Expression]]]:
    """The subscripts of what a statement reads."""
    found: dict[str, list[Sequence[tree.Expression]]] = {}
    for read in _reads(node):
        found.setdefault(read.function.name, []).append(read.arguments)
    return found


def _behind(node: tree.Comprehension) -> set[str]:
    """The names that a statement stands behind, read or not: what it writes again, and what it takes an extent of."""
    extents = (each for part in parts_of(node) for each in tree.walk(part) if isinstance(each, tree.Extent))
    return {name.name for name, _ in node.targets} | {each.tensor.name for each in extents}


def _with_index(
    node: tree.Expression, hidden: Mapping[str, tuple[tree.Name, ...]], arrays: set[str]
) -> tree.Expression:
    """An expression with the step as the first subscript of each tensor that has one of its own in each step."""
    inner = partial(_with_index, hidden=hidden, arrays=arrays)
    match node:
        case tree.Name():
            single = node.name in hidden and node.name not in arrays
            return tree.Apply(node, _placed(hidden[node.name], node.span), node.span) if single else node
        case tree.Apply():
            steps = _placed(hidden.get(node.function.name, ()), node.function.span)
            return replace(node, arguments=(*steps, *map(inner, node.arguments)))
        case tree.Extent():
            return replace(node, dimension=node.dimension + len(hidden.get(node.tensor.name, ())))
        case _:
            return tree.mapped(node, inner)


def groups(statements: Sequence[tree.TcStatement]) -> Mapping[int, tuple[tree.Comprehension, ...]]:
    """The statements of each circle, by its number."""
    found: dict[int, tuple[tree.Comprehension, ...]] = {}
    for each in statements:
        if isinstance(each, tree.Comprehension) and each.blocks:
            found[each.blocks[0].number] = (*found.get(each.blocks[0].number, ()), each)
    return found


__all__ = ["groups", "without_blocks"]
