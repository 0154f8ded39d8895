"""The classes of the sizes of calls: calls of one class share their schedule and their code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tc_jupyter.program import IndexVar, Program, Statement
from tc_jupyter.program.integers import index_names
from tc_jupyter.ranges import Fact, IndexRange, Ranges, exactly, from_expr, step_of, value_at

from . import tuning
from .target import VECTOR_BYTES, WARP
from .templates import contraction, pixels, reduction, scatter

Sized = tuple[str, int]
Known = tuple[str, Fact]
_FEW = Fact(1, tuning.FEW - 1)
_ANY_LARGE = Fact(tuning.TOLD_APART + 1)


class SizeClasses:
    """The classes of the sizes of calls: what code for one may assume, constants and facts.

    Calls of one class share their code. Constants are small sizes of windows: of a reduction index that is added to another index
    in a subscript (`h + kh`), and, on a CPU, of the values of a pixel (`X(h, w, c)`), summed or each by itself, and sizes of 1 in
    reductions: a matrix of one column is a vector. Facts are kept of sizes of results of reductions, up to a factor of
    two below 64 (on a CPU also whether they are 16, 32, 64, or other multiples of 8; and as they are where a window slides over a
    row, since its tiles have to fit, in steps of two or more up to 512). Above, it is kept on a CPU whether they are
    multiples of 64 and whether they are few. On a GPU all sizes of a sum with few results, its steps too, have the power of two
    above; of others those above 64 do not count. Where a CPU turns rows around, it is kept whether sizes are multiples of 64, and
    where it reduces rows, that they are short; of elements whose values it computes apart (`pixels`), that they are few. Of targets
    whose elements data chooses it is kept in how many parts the points are taken, a power of two. Other programs without reductions
    have one class.

    What the program alone tells is found once, since every call with new sizes asks for its class.
    """

    def __init__(self, program: Program, ranges: Ranges, kind: str = "cpu") -> None:
        """`kind`: of the device, as in `Target`."""
        self.kind = kind
        self.windows: set[str] = set()
        self.values: set[str] = set()
        self.single: set[str] = set()
        self.shaped: set[str] = set()
        self.slid: dict[str, int] = {}
        self.turned: set[str] = set()
        self.short: dict[str, tuple[int, ...]] = {}
        self.few: set[str] = set()
        self.sums: list[list[IndexRange]] = []
        self.scattered: list[tuple[Statement, list[IndexRange]]] = []
        for statement in program.statements:
            indices = {index.index: index for index in ranges.indices[statement.name]}
            if kind == "cpu" and statement.computed:
                self.scattered.append((statement, list(indices.values())))
            if statement.reduction_indices:
                self._reduction(statement, indices)
            elif kind == "cpu":
                self._elementwise(statement, indices)
        asked = self.windows | self.values | self.single | self.shaped | self.turned | self.short.keys() | self.few
        asked = asked.union(*(_names(index) for indices in self.sums for index in indices))
        self.sizes = tuple(name for name in program.sizes if name in asked)

    def _elementwise(self, statement: Statement, indices: Mapping[str, IndexRange]) -> None:
        turns = _turns(statement)
        if turns:
            self.turned.update(*map(_names, indices.values()))
        if turns or pixels.needs_values_apart(statement):
            self.values.update(*(_names(indices[name]) for name in _last_indices(statement)))
            if not turns:  # else elements are put elsewhere
                self.few |= _names(indices[statement.output_indices[-2].name])

    def _reduction(self, statement: Statement, indices: Mapping[str, IndexRange]) -> None:
        on_cpu = self.kind == "cpu"
        self.sums.append(list(indices.values()))
        for name, index in indices.items():
            names = _names(index)
            self.single |= names if on_cpu else set()
            if index.kind == "output":
                self.shaped |= names
                if on_cpu and name == statement.output_indices[-1].name and pixels.sums_values(statement):
                    self.values |= names
                if _is_window(statement, name):
                    longest = tuning.LONG if on_cpu and _is_strided(statement, name) else tuning.TOLD_APART
                    self.slid |= {each: max(longest, self.slid.get(each, 0)) for each in names}
            elif _is_window(statement, name):
                self.windows |= names
            elif on_cpu:
                self.values |= names if pixels.is_value(statement, name) else set()
                if _reduces_rows(statement, name):
                    ends = reduction.short_ends(statement)
                    self.short |= {each: max(ends, self.short.get(each, ()), key=len) for each in names}

    def __call__(self, sizes: Mapping[str, int]) -> tuple[tuple[Sized, ...], tuple[Known, ...]]:
        """Names with values that the code for a call of these sizes is made for, and names with what else it relies on."""
        counted = self._counted(sizes) if self.kind == "cuda" else frozenset[str]()
        parts = self._parts(sizes) if self.scattered else dict[str, int]()
        constants: list[Sized] = []
        facts: list[Known] = []
        for name in self.sizes:
            if name not in sizes:
                continue
            value = sizes[name]
            if value <= tuning.FEW and self._is_constant(name, value):
                constants.append((name, value))
            elif name in self.few and value < tuning.FEW:
                facts.append((name, Fact() if parts.get(name) == 1 else _FEW))
            else:
                short = next((most for most in self.short.get(name, ()) if value <= most), 0)
                if short or name in self.shaped or name in self.turned or name in counted:
                    fact = Fact() if parts.get(name) == 1 else self._fact(name, value, short, name in counted)
                    facts.append((name, fact._replace(parts=parts.get(name, 1))))
        return tuple(constants), tuple(facts)

    def _is_constant(self, name: str, value: int) -> bool:
        """Whether code is made for a size."""
        return (
            (value == 1 and name in self.single)
            or (value >= 1 and name in self.windows)
            or (name in self.values and value in contraction.PIXEL)
        )

    def _fact(self, name: str, value: int, short: int, counted: bool) -> Fact:
        slid = self.slid.get(name, 0)
        if self.kind == "cuda" and value > slid:
            return _up_to_power(value) if counted or value <= tuning.TOLD_APART else _ANY_LARGE
        if name not in self.shaped:
            return Fact(1, short) if short else _whole(value)
        return exactly(value) if value <= slid else _interval(value)

    def _parts(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Of each size of targets whose elements data chooses, the parts in which their points are taken: the fewest of all."""
        found = dict[str, int]()
        for statement, indices in self.scattered:
            names, number = scatter.parts_of_points(statement, indices, sizes)
            found |= {name: min(number, found.get(name, number)) for name in names}
        return found

    def _counted(self, sizes: Mapping[str, int]) -> frozenset[str]:
        """The sizes of sums with few results."""
        few = (indices for indices in self.sums if _has_few_results(indices, sizes))
        return frozenset(name for indices in few for index in indices for name in _names(index))


def _names(index: IndexRange) -> frozenset[str]:
    """The sizes that the length of a range depends on."""
    return frozenset() if index.lower is None or index.upper is None else frozenset((index.upper - index.lower).names)


def _turns(statement: Statement) -> bool:
    """Whether a read runs along another index than the result does, so that tiles are turned around."""
    if statement.reduction_indices or len(statement.output_indices) < 2:
        return False
    last = statement.output_indices[-1].name
    moving = [
        [last in index_names(subscript) for subscript in read.indices] for read in statement.reads() if read.indices
    ]
    return any(any(others) and not end for *others, end in moving)


def _last_indices(statement: Statement) -> set[str]:
    """The indices that the result and what is read have last."""
    ends = [read.indices[-1] for read in statement.reads() if read.indices]
    names = {index.name for index in statement.output_indices}
    return {statement.output_indices[-1].name} | {
        end.name for end in ends if isinstance(end, IndexVar) and end.name in names
    }


def _reduces_rows(statement: Statement, index: str) -> bool:
    """Whether a reduction runs along rows of what it reads, the same ones in all reads."""
    places = {read.indices for read in statement.reads() if any(index in index_names(each) for each in read.indices)}
    return len(places) == 1 and all(last == IndexVar(index) for *_, last in places)


def _whole(value: int) -> Fact:
    """The multiples of 64, or the other sizes."""
    return Fact(tuning.TOLD_APART, multiple=tuning.TOLD_APART) if value and value % tuning.TOLD_APART == 0 else Fact()


def row_class(program: Program, ranges: Ranges, sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """What code for a GPU may assume that lengths of rows do not exceed, where rows are read more than once.

    The number is a power of two of at least 32 for rows of whole vectors of 16 bytes, one less than such a number for others.

    Returns:
        Names of sizes with a number that is at least theirs.
    """
    found: dict[str, int] = {}
    for statement in program.statements:
        indices = ranges.indices[statement.name]
        lengths = {i.index: i.upper - i.lower for i in indices if i.lower is not None and i.upper is not None}
        for read in statement.reads():
            last = read.indices[-1] if read.indices else None
            summed = {index.name for index in statement.reduction_indices}
            if not isinstance(last, IndexVar) or last.name not in summed or last.name not in lengths:
                continue
            again = sum(any(other.tensor == read.tensor for other in s.reads()) for s in program.statements) > 1
            for name in lengths[last.name].names & sizes.keys() if again else ():
                found[name] = max(found.get(name, 1), VECTOR_BYTES // read.dtype.bytes)
    return tuple(
        (name, most)
        for name, lanes in found.items()
        if (most := _longest_row(sizes[name], lanes)) <= tuning.LONGEST_ROW
    )


def _longest_row(length: int, lanes: int) -> int:
    """The largest length of the same class."""
    whole = max(WARP, 1 << max(0, length - 1).bit_length())
    return whole if length % lanes == 0 else whole - 1


def _is_window(statement: Statement, index: str) -> bool:
    """Whether a subscript combines `index` with another index."""
    for read in statement.reads():
        for subscript in read.indices:
            names = index_names(subscript)
            if index in names and len(names) > 1:
                return True
    return False


def _is_strided(statement: Statement, index: str) -> bool:
    """Whether a window goes along rows in steps of two or more, beside an operand that is not read along them."""
    if statement.output_indices[-1].name != index:
        return False
    reads = [read.indices for read in statement.reads() if read.indices]
    beside = [where for where in reads if not any(index in index_names(each) for each in where)]
    steps = {step_of(from_expr(where[-1]), index) for where in reads}
    return bool(beside) and not steps <= {None, 0, 1}


def _has_few_results(indices: Sequence[IndexRange], sizes: Mapping[str, int]) -> bool:
    """Whether a sum has results, but not so many that they fill every GPU."""
    results = [index for index in indices if index.kind == "output"]
    lengths = [index.upper - index.lower for index in results if index.lower is not None and index.upper is not None]
    known = [value for length in lengths if (value := value_at(length, sizes)) is not None]
    return len(known) == len(results) > 0 and prod(known) <= tuning.FEW_RESULTS


def _power_above(value: int) -> int:
    """A power of two, at least 4."""
    return max(4, 1 << max(0, value - 1).bit_length())


def _up_to_power(value: int) -> Fact:
    """From one power of two, which is at least 4, to the next one."""
    power = _power_above(value)
    return Fact(power // 2 + 1 if power > 4 else 1, power)


def _interval(value: int) -> Fact:
    """The sizes of the same class on a CPU, up to 8 all to the next power of two.

    From there on multiples of 8, the rows of a register tile, are told from others, and 16, 32 and 64 are alone. Above 64 multiples
    of 64 are told from others, and lengths of short rows, which are few rows, too, from longer ones.
    """
    if value > tuning.TOLD_APART:
        multiple = 1 if value % tuning.TOLD_APART else tuning.TOLD_APART
        if value > tuning.FEW_ROWS:
            return Fact(tuning.FEW_ROWS + multiple, multiple=multiple)
        return Fact(tuning.TOLD_APART + multiple, tuning.FEW_ROWS - (multiple == 1), multiple)
    power = _power_above(value)
    if power <= 8:
        return _up_to_power(value)
    if value == power:
        return exactly(value)
    return Fact(power // 2 + 8, power - 8, 8) if value % 8 == 0 else Fact(power // 2 + 1, power - 1)
