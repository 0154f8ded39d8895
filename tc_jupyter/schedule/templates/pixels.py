"""Elements of two to four values (complex numbers, points, colours: `Y(i, c)`) on a CPU: vectors run over elements.

A vector along so few values would be mostly empty. Rows that are read like the result, value by value, are one long row
(`codegen.llvm.collapse`); where a value needs others (`X(i, 0)`), what stands in planes (`X(c, i)`), or what all values of an
element share (`W(i)`), vectors run over elements: values are computed one after the other, and mixed when they are written
(`codegen.llvm.stores`). Values of operands are taken apart the same way.

Measured with AVX-512 (Zen 4), two threads: 1,000,000 products of complex numbers as pairs 0.17 of the time of vectors of two.

Where each value has a name and is read again for many others (overlaps of boxes, `min(A(i, 2), B(j, 2))` for all `i`), a copy has
planes of them. Measured with AVX-512, one thread: overlaps of 1000 x 1000 boxes 0.7 of the time, sums over `i` 0.3.

Sums of so few values (forces between points, `O(i, c) +=! P(j, c) * W(i, j)`) have vectors along what is summed over, and the
values one after the other, so that what they share is computed once. Measured on one thread of the same processor, forces between
700 points: 3.57 ms with vectors along the three coordinates, 0.21 ms so, 0.18 with four points at a time.
"""

from __future__ import annotations

from math import prod

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Const, IndexVar, Read, Statement
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import Facts, constant, from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, constant_extent
from tc_jupyter.schedule.target import Target

from .contraction import PIXEL, extent_of
from .form import Form, formed
from .reduction import has_parts, is_across, is_to_few, partial_results
from .streaming import lanes_of


def default(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """Vectors over elements, values one after the other; `None` if the statement has no such values or is better off without.

    Args:
        facts: of the sizes of a call.
    """
    stage = schedule.graph.stage(name)
    roles = _roles(schedule, stage, target, facts)
    if roles is None:
        return None
    place, *values = roles
    rest = [leaf for leaf in stage.leaves if leaf not in roles]
    splits, tasks = {place: lanes_of(schedule, stage, target)}, (*rest, f"{place}.outer")
    return formed(schedule, name, Form(splits, tasks, (), values, f"{place}.inner"))


def _roles(schedule: Schedule, stage: Stage, target: Target, facts: Facts) -> tuple[str, ...] | None:
    """Indices of elements, of which there are some, and of their values; `None` if it has none, or its operands are not even."""
    if stage.statement.operator != "=" or not target.free_masks:
        return None
    roles = _mixed(stage) or _planes(schedule, stage)
    reads = dict.fromkeys(read for read in stage.statement.reads() if read.indices)
    if not roles or not all(_is_even(schedule, stage, read, roles[0]) for read in reads):
        return None
    length = extent_of(stage, roles[0], facts)
    return None if length is not None and length.typical < tuning.FEW else roles


def mixes_values(schedule: Schedule, stage: Stage, target: Target, facts: Facts) -> bool:
    """Whether a statement has the values of an element last, and reads others for each: vectors run over elements."""
    roles = _roles(schedule, stage, target, facts)
    return roles is not None and roles == tuple(root.name for root in stage.roots[-2:])


def in_planes(schedule: Schedule, _: Target, facts: Facts) -> Schedule:
    """Copies of operands whose values have names, in planes of one value each, for statements that read each of them many times.

    Args:
        facts: of the sizes of a call; those that are not known count as large.
    """
    users: dict[str, list[str]] = {}
    for name in filter(schedule.graph.is_free, schedule.stages):
        stage = schedule.graph.stage(name)
        reads = list(stage.statement.reads())
        for tensor in dict.fromkeys(read.tensor for read in reads):
            if all(_is_read_again(schedule, stage, read, facts) for read in reads if read.tensor == tensor):
                users.setdefault(tensor, []).append(name)
    for tensor, names in users.items():
        *others, value = range(schedule.graph.program.tensor(tensor).rank)
        try:
            schedule = schedule.cache_read(tensor, *names, order=(value, *others))
        except CompileError:  # it changes between them
            continue
    return schedule


def _is_read_again(schedule: Schedule, stage: Stage, read: Read, facts: Facts) -> bool:
    """Whether a vector reads one value of neighbouring elements, which stand apart, and others read them, too."""
    if len(read.indices) < 2:
        return False
    place, value = read.indices[-2:]
    if not isinstance(value, Const) or not isinstance(place, IndexVar) or place.name not in _along_rows(stage):
        return False
    if not _has_few(schedule, stage, read):
        return False
    others = [extent_of(stage, root.name, facts) for root in stage.roots if root.name not in index_names(read)]
    return prod(tuning.UNKNOWN_SIZE if each is None else each.typical for each in others) >= tuning.USES


def _along_rows(stage: Stage) -> set[str]:
    """The indices along which vectors may run: the last subscripts of what a statement reads and writes of several dimensions."""
    statement = stage.statement
    places = [read.indices for read in statement.reads()]
    places.append(tuple(IndexVar(index.name) for index in statement.output_indices))
    rows = {where[-1].name for where in places if len(where) > 1 and isinstance(where[-1], IndexVar)}
    return rows or {stage.roots[-1].name}


def summed(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """Sums of a few values: vectors along a reduction, values one after the other; `None` for other statements.

    Args:
        facts: of the sizes of a call.
    """
    stage = schedule.graph.stage(name)
    if not _sums_values(schedule, stage, target):
        return None
    if is_to_few(stage, facts):
        if not is_across(stage) or not has_parts(schedule, name):
            return None
        schedule, name = partial_results(schedule, name)
        stage = schedule.graph.stage(name)
    return _summed(schedule, stage, target)


def _sums_values(schedule: Schedule, stage: Stage, target: Target) -> bool:
    if stage.statement.combine is not None or not schedule.graph.is_free(stage.name):
        return False
    along = _along(schedule, stage, target)
    return along is not None and bool(_values(stage, along))


def _values(stage: Stage, along: str) -> tuple[str, ...]:
    """The index of few results, or the steps over few values beside which something is computed that does not depend on them.

    What would be computed for each of these steps, as a distance between points is, is then computed once for a vector of points.
    """
    outputs = [index.name for index in stage.statement.output_indices]
    if outputs and constant_extent(stage, outputs[-1]) in PIXEL:
        return (outputs[-1],)
    steps = (index.name for index in stage.statement.reduction_indices)
    few = tuple(name for name in steps if name != along and constant_extent(stage, name) in PIXEL)
    moving = [names for read in stage.statement.reads() if along in (names := index_names(read))]
    return few if outputs and any(not names & {*few} for names in moving) else ()


def _along(schedule: Schedule, stage: Stage, target: Target) -> str | None:
    """The last reduction that has vectors: what it reads moves evenly, and it has enough steps, as far as is known."""
    reads = [read for read in stage.statement.reads() if read.indices]

    def has_vectors(index: str) -> bool:
        length = constant_extent(stage, index)
        long = length is None or length >= lanes_of(schedule, stage, target)
        moves = any(index in from_expr(where).indices for read in reads for where in read.indices)
        return long and moves and all(_is_even(schedule, stage, read, index) for read in reads)

    return next(filter(has_vectors, (index.name for index in reversed(stage.statement.reduction_indices))), None)


def _summed(schedule: Schedule, stage: Stage, target: Target) -> Schedule | None:
    name, along = stage.name, _along(schedule, stage, target)
    if along is None:
        return None
    values = _values(stage, along)
    outer = [index.name for index in stage.statement.output_indices if index.name not in values]
    rest = [index.name for index in stage.statement.reduction_indices if index.name not in (along, *values)]
    splits = {along: lanes_of(schedule, stage, target)}
    found, inner = _together(stage, outer, values, target), list[str]()
    if found is not None:
        together, splits[together] = found
        outer[outer.index(together)], inner = f"{together}.outer", [f"{together}.inner"]
    form = Form(splits, outer, (*rest, f"{along}.outer"), (*inner, *values), f"{along}.inner")
    return formed(schedule, name, form)


def _together(stage: Stage, outer: list[str], values: tuple[str, ...], target: Target) -> tuple[str, int] | None:
    """An index of the results, some of whose sums are added up together, and of how many: what they share is read once.

    The operand with the values does not have it, another one does. The sums, the values and one element of the other operand are in
    registers.
    """
    number = prod(constant_extent(stage, value) or 1 for value in values)
    fitting = [each for each in (tuning.FEW, tuning.ABREAST) if (each + 1) * number < target.vector_registers]
    reads = [read for read in stage.statement.reads() if read.indices]
    used = [{name for index in read.indices for name in from_expr(index).indices} for read in reads]
    shared = [names for names in used if names & {*values}]
    for name in outer:
        length, has = constant_extent(stage, name), [name in names for names in used]
        free = all(name not in names for names in shared)
        numbers = [each for each in (*fitting, tuning.ABREAST) if length is None or length >= each]
        if free and any(has) and numbers:
            return name, numbers[0]
    return None


def sums_values(statement: Statement) -> bool:
    """Whether the result holds sums of the values of elements, one beside the other: `Y(c) +=! X(i, c)`."""
    summed = {index.name for index in statement.reduction_indices}
    if not summed or not statement.output_indices:
        return False
    value = statement.output_indices[-1].name
    ends = (read.indices[-2:] for read in statement.reads() if len(read.indices) > 1)
    return any(
        isinstance(end, IndexVar) and end.name == value and bool(summed & from_expr(place).indices)
        for place, end in ends
    )


def is_value(statement: Statement, index: str) -> bool:
    """Whether a reduction runs over the values of the elements of a row: the last subscript, after the last one of the result."""
    if not statement.output_indices:
        return False
    row = statement.output_indices[-1].name
    found = [read.indices for read in statement.reads() if any(row in index_names(each) for each in read.indices)]
    ends = [where[-2:] for where in found if len(where) > 1]
    return len(ends) == len(found) > 0 and all(
        row in index_names(place) and last == IndexVar(index) for place, last in ends
    )


def needs_values_apart(statement: Statement) -> bool:
    """Whether the values of an element of the result, if it has few, do not all stand in the operands as they do in the result."""
    if statement.reduction_indices or len(statement.output_indices) < 2:
        return False
    place, value = (index.name for index in statement.output_indices[-2:])
    return not all(_is_same(read, place, value) for read in statement.reads())


def fills_no_vector(stage: Stage) -> bool:
    """Whether a vector along the last index would hold the few values of one element, which stand elsewhere in the operands."""
    last = stage.statement.output_indices[-1:]
    few = bool(last) and constant_extent(stage, last[0].name) in PIXEL
    return few and needs_values_apart(stage.statement)


def _mixed(stage: Stage) -> tuple[str, str] | None:
    """Index of the elements and of their values where the result holds value beside value, and not all operands do."""
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    return (outputs[-2], outputs[-1]) if len(outputs) > 1 and fills_no_vector(stage) else None


def _planes(schedule: Schedule, stage: Stage) -> tuple[str, str] | None:
    """The same indices where an operand holds value beside value, and the result has planes of them (`Y(c, i) = X(i, c)`)."""
    outputs = [leaf for leaf in stage.leaves if stage.kind(leaf) == "output"]
    for read in stage.statement.reads():
        value = read.indices[-1] if read.indices else None
        if isinstance(value, IndexVar) and value.name in outputs[:-1] and constant_extent(stage, value.name) in PIXEL:
            moves = [step_of(from_expr(index), outputs[-1]) for index in read.indices]
            if moves[-2:] == [1, 0] and _has_few(schedule, stage, read):
                return outputs[-1], value.name
    return None


def _is_same(read: Read, place: str, value: str) -> bool:
    """Whether a read has a value for each value of the result, or is the same for all."""
    names = [index.name if isinstance(index, IndexVar) else "" for index in read.indices]
    moved = {name for index in read.indices for name in from_expr(index).indices} & {place, value}
    return not moved or names[-2:] == [place, value]


def _is_even(schedule: Schedule, stage: Stage, read: Read, place: str) -> bool:
    """Whether neighbours along `place` are neighbours of the operand, or values of neighbouring elements of as few values."""
    moves = [step_of(from_expr(index), place) for index in read.indices]
    if all(move == 0 for move in moves[:-1]):
        return moves[-1] in (0, 1)
    return not any(moves[:-2]) and moves[-2:] == [1, 0] and _has_few(schedule, stage, read)


def _has_few(schedule: Schedule, stage: Stage, read: Read) -> bool:
    """Whether the elements of an operand have two to four values each, as far as is known."""
    value = read.indices[-1]
    if isinstance(value, IndexVar):
        return constant_extent(stage, value.name) in PIXEL
    writers, dims = schedule.graph.stages_on(read.tensor), schedule.graph.program.tensor(read.tensor).dims
    ends = (each.indices[-1] for each in stage.statement.reads() if each.tensor == read.tensor)
    if any(isinstance(end, IndexVar) and constant_extent(stage, end.name) in PIXEL for end in ends):
        return True  # a size that is a constant of the code stands in the ranges only
    if writers:
        return constant_extent(writers[0], writers[0].statement.output_indices[-1].name) in PIXEL
    return dims is not None and from_expr(dims[-1]) in [constant(number) for number in PIXEL]
