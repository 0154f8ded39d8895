"""Numbers for the sizes: ranges, shapes and origins of one call, and the checks on sizes.

`make_bind` writes a Python function for a def and compiles it; calling it takes about a microsecond. With a size of 0 the same
formulas hold, and the accesses are checked again on numbers (`docs/ranges.md`, 'At the call').

Worked example: for `A(i,j) = B(i) * C(i+j) * D(j)` the function computes `((0, I), (0, K))` for the statement `A`, and fails with
TC601 where `I + K <= J + 1` is false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from tc_jupyter.diagnostics import Diagnostic, Label, codes
from tc_jupyter.program import Program, Statement, int64, power_of

from .accesses import Access, Bound
from .convert import divided_by
from .data import (
    AnyCheck,
    PointCheck,
    checks_at_zero,
    condition_numbers,
    data_checks,
    depends_on_data,
    numbered,
)
from .display import condition_text, element_text, range_text, solved, to_python
from .inference import IndexRange, Ranges
from .magnitudes import Magnitudes
from .preconditions import EqualityCheck, Precondition, Preconditions, needed, remainder_help, source_of
from .search import Numbers as Point
from .search import Subscript, leaves_everywhere, may_leave, span, stays_inside, violation
from .size_expr import (
    Atom,
    Choice,
    Condition,
    Datum,
    Extremum,
    FloorDiv,
    Mod,
    Monomial,
    Name,
    Opaque,
    Product,
    SizeExpr,
    constant,
    has_data,
    nonnegative,
    on_sizes,
)


@dataclass(frozen=True, slots=True)
class BoundNumbers:
    """What the sizes of one call make of a def.

    Attributes:
        values: sizes and integer scalars by name, as given.
        ranges: `(lower, upper)` of every index, per statement, in the order of `Statement.indices`.
        shapes, origins: per computed tensor.
    """

    values: Mapping[str, int]
    ranges: Mapping[str, tuple[tuple[int, int], ...]]
    shapes: Mapping[str, tuple[int, ...]]
    origins: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Border:
    """A dimension of which an element is read wherever the subscript is, so that there has to be one."""

    statement: str
    access: Access
    dimension: int
    extent: SizeExpr


def borders(ranges: Ranges) -> tuple[Border, ...]:
    """All dimensions of which an element is read wherever a subscript is, and which may be without one."""
    found: list[Border] = []
    for name, every in ranges.accesses.items():
        for access in every:
            border, box = access.read.border, ranges.boxes.get(access.tensor)
            if border is None or box is None or access.exists:
                continue
            numbered_extents = [(number, box.shape[number]) for number in sorted(border.nonempty)]
            found += [Border(name, access, k, e) for k, e in numbered_extents if not (e.is_constant and e.offset > 0)]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Failure:
    """A way in which a call can fail; the generated function returns its number."""

    kind: str  # divisor, range, shape, equality, size, border
    statement: str = ""
    divisor: SizeExpr | None = None
    range: IndexRange | None = None
    equality: EqualityCheck | None = None
    item: Precondition | None = None
    tensor: str = ""
    border: Border | None = None


@dataclass(frozen=True, slots=True)
class Bind:
    """The numbers of a def at a call.

    Attributes:
        names: sizes, then integer scalars: the positional arguments of `function`, which are followed by `check`.
        statements, tensors: order of what `function` returns, `(ranges per statement, shapes per tensor, origins per tensor)`.
        text: the source of `function`.
        function: returns that tuple, or the number (an `int`) of an entry of `failures`.
        data: what remains to be checked on the data.
        at_zero: the same where a size is 0.
        fitting: conditions on sizes and scalars; where they hold, no arithmetic leaves its type.
    """

    program: Program
    ranges: Ranges
    names: tuple[str, ...]
    statements: tuple[str, ...]
    tensors: tuple[str, ...]
    text: str
    function: Callable[..., Any]
    failures: tuple[Failure, ...]
    data: tuple[AnyCheck, ...] = field(default=())
    at_zero: Mapping[tuple[int, int], PointCheck] = field(default_factory=dict[tuple[int, int], PointCheck])
    fitting: tuple[str, ...] = ()

    def __call__(self, values: Mapping[str, int], check: bool = True) -> BoundNumbers | Diagnostic:
        """Numbers for given sizes and integer scalars, or what is wrong with them (TC601, TC602, TC603, TC605).

        Args:
            check: also check preconditions on sizes; the rest is always needed for allocation.

        Raises:
            KeyError: a size is missing.
        """
        result = self.function(*[values[name] for name in self.names], check)
        if isinstance(result, int):
            return self.message(result, values)
        if isinstance(result, Diagnostic):
            return result
        ranges, shapes, origins = result
        return BoundNumbers(
            values,
            dict(zip(self.statements, ranges, strict=True)),
            dict(zip(self.tensors, shapes, strict=True)),
            dict(zip(self.tensors, origins, strict=True)),
        )

    def checks(self, statement: str) -> tuple[AnyCheck, ...]:
        """The checks on data that belong to a statement."""
        return tuple(item for item in self.data if _statement_of(item) == statement)

    def extents(self, values: Mapping[str, int]) -> dict[str, int]:
        """Every size, integer scalar and extent (`T.0`) by name."""
        known = dict(values)
        known.update((name, e.evaluate(values)) for name, e in self.ranges.sizes.items() if name not in known)
        return known

    def message(self, number: int, values: Mapping[str, int]) -> Diagnostic:
        """The message of a failure with its numbers."""
        return _message(self, self.failures[number], values)


def _statement_of(item: AnyCheck) -> str:
    return item.statement


def make_bind(program: Program, ranges: Ranges, found: Preconditions) -> Bind:
    """Generate the function that turns sizes into numbers.

    Raises:
        ValueError: a range is unknown, so the def cannot be called.
    """
    writer = _Writer(program, ranges, found)
    text = writer.write()
    names = writer.names
    environment: dict[str, Any] = {"recheck": writer.recheck, "search": writer.search, "is_read": writer.is_read}
    environment["magnitude"] = writer.magnitude
    exec(compile(text, f"<bind {program.name}>", "exec"), environment)
    bind = Bind(
        program,
        ranges,
        names,
        tuple(writer.statements),
        tuple(writer.tensors),
        text,
        environment["bind"],
        tuple(writer.failures),
        data_checks(program, ranges, found),
        checks_at_zero(program, ranges, found),
        tuple(f"{to_python(end)} <= {writer.magnitudes.sure}" for end in writer.magnitudes.limited),
    )
    writer.bind = bind
    return bind


class _Writer:
    """Writes the source of `bind`, line by line."""

    def __init__(self, program: Program, ranges: Ranges, found: Preconditions) -> None:
        self.program = program
        self.ranges = ranges
        self.found = found
        scalars = tuple(ranges.scope.scalars or ())
        # sizes that stand for the extent of a result alone follow from the others
        self.names = (*(name for name in program.sizes if name not in found.definitions), *scalars)
        self.variables = {name: f"n{place}" for place, name in enumerate(self.names)}
        self.lines: list[str] = []
        self.failures: list[Failure] = []
        self.statements = [s.name for s in program.statements]
        self.tensors = [t.name for t in program.tensors if t.kind != "input" and t.name in ranges.boxes]
        self.known: dict[SizeExpr, str] = {}
        self.places = {id(item): place for place, item in enumerate(found.items)}
        self.bind: Bind | None = None
        self.borders = borders(ranges)
        self.magnitudes = Magnitudes(program, ranges)

    def write(self) -> str:
        arguments = ", ".join([*(self.variables[name] for name in self.names), "check"])
        self.lines = [f"def bind({arguments}):"]
        sizes = [self.variables[name] for name in self.names if name not in (self.ranges.scope.scalars or ())]
        zero = " or ".join(f"{name} < 1" for name in sizes) or "False"
        self.line(f"zero = {zero}")
        self.write_divisors()
        self.write_windows()
        for statement in self.program.statements:
            self.write_ranges(statement)
        for name in self.tensors:
            self.write_shape(name)
        self.write_equalities()
        self.write_checks()
        ranges = [self.tuple_of(self.pair(r) for r in self.ranges.indices[name]) for name in self.statements]
        boxes = [self.ranges.boxes[name] for name in self.tensors]
        shapes = [self.tuple_of(self.code(e) for e in box.shape) for box in boxes]
        origins = [self.tuple_of(self.code(e) for e in box.origin) for box in boxes]
        self.line(f"return {self.tuple_of(ranges)}, {self.tuple_of(shapes)}, {self.tuple_of(origins)}")
        return "\n".join(self.lines) + "\n"

    def line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def fail(self, failure: Failure) -> str:
        self.failures.append(failure)
        return f"return {len(self.failures) - 1}"

    @staticmethod
    def tuple_of(parts: Iterable[str]) -> str:
        joined = list(parts)
        return "(" + ", ".join(joined) + ("," if len(joined) == 1 else "") + ")"

    def pair(self, r: IndexRange) -> str:
        if r.lower is None or r.upper is None:
            raise ValueError(f"the range of {r.index} is not known")
        return f"({self.code(r.lower)}, {self.code(r.upper)})"

    # --- parts of the function -----------------------------------------------------------------------------------------

    def write_divisors(self) -> None:
        divisors = [(e, name) for name, found in self.ranges.divisors.items() for e in found]
        seen: set[SizeExpr] = set()
        for e, statement in divisors:
            if e in seen or e.indices or has_data(e) or not e.names <= self.variables.keys():
                continue
            seen.add(e)
            self.line(f"if {self.code(e)} == 0: {self.fail(Failure('divisor', statement, e))}")

    def write_windows(self) -> None:
        """Steps, dilations and paddings that ranges are computed with."""
        for item in self.found.items:
            if item.subject == "window":
                self.line(f"if {self.failure_code(item)}: {self.fail(Failure('size', item.statement, item=item))}")

    def write_borders(self) -> None:
        """Dimensions without an element, of which one is read."""
        for place, border in enumerate(self.borders):
            numbers = self.tuple_of(self.variables[each] for each in self.names)
            failure = self.fail(Failure("border", border.statement, border=border))
            self.line(f"if {self.code(border.extent)} == 0 and is_read({place}, {numbers}): {failure}", 2)

    def is_read(self, place: int, numbers: tuple[int, ...]) -> bool:
        """Whether an access to a dimension without elements takes place."""
        name, access = self.borders[place].statement, self.borders[place].access
        values = self.values_of(numbers)
        guards = tuple((guard.condition, guard.polarity) for guard in access.guards)
        point, anywhere = _box_of(self.ranges.around(name, access.begins), values), Subscript(int64(0), 1, 1, guards)
        if any(high < low for low, high in point.box.values()):
            return False
        if any(depends_on_data(access, number) for number in range(len(access.index))):
            return may_leave(anywhere, point)
        try:
            return violation(anywhere, point) is not None
        except RuntimeError:
            return True

    def write_ranges(self, statement: Statement) -> None:
        # a size is never negative; an integer scalar may be
        sizes = {text for name, text in self.variables.items() if name not in (self.ranges.scope.scalars or ())}
        for r in self.ranges.indices[statement.name]:
            if r.lower is None or r.upper is None:
                raise ValueError(f"the range of {r.index} is not known")
            lower, upper = self.named(r.lower), self.named(r.upper)
            if r.ends is not None and r.source == "where":
                continue  # the ends of a range that moves with others may meet, and pass: it is empty then
            if not (r.lower == 0 and upper in sizes) and not _never_negative(r):
                self.line(f"if {upper} < {lower}: {self.fail(Failure('range', statement.name, range=r))}")

    def write_shape(self, name: str) -> None:
        box = self.ranges.boxes[name]
        for (lower, upper), extent in zip(box.bounds, box.shape, strict=True):
            if not extent.is_constant and extent not in self.known and upper in self.known and lower in self.known:
                self.line(f"v{len(self.known)} = {self.code(upper)} - {self.code(lower)}")
                self.known[extent] = f"v{len(self.known)}"
            self.named(extent)
        given = self.program.tensor(name).box is not None
        if given:
            for extent in box.shape:
                if not (extent.limits[0] is not None and extent.limits[0] >= 0):
                    self.line(f"if {self.code(extent)} < 0: {self.fail(Failure('shape', tensor=name))}")

    def write_equalities(self) -> None:
        for check in self.found.equalities:
            failure = Failure("equality", equality=check)
            self.line(f"if {self.code(check.left)} != {self.code(check.right)}: {self.fail(failure)}")

    def write_checks(self) -> None:
        lines: list[str] = []
        for statement in self.program.statements:
            lines.extend(self.checks_of(statement))
        self.line("if check:")
        for item in self.found.items:
            if item.subject in ("number", "points"):
                self.line(f"if {self.failure_code(item)}: {self.fail(Failure('size', item.statement, item=item))}", 2)
        self.write_borders()
        numbers = self.tuple_of(self.variables[name] for name in self.names)
        self.line("if zero:", 2)
        self.line(f"problem = recheck({numbers})", 3)
        self.line("if problem is not None: return problem", 3)
        if lines:
            self.line("else:", 2)
            for text in lines:
                self.line(text, 3)
        if large := [f"{self.code(end)} > {self.magnitudes.sure}" for end in self.magnitudes.limited]:
            self.line(f"if {' or '.join(large)}:", 2)
            self.line(f"problem = magnitude({numbers})", 3)
            self.line("if problem is not None: return problem", 3)

    def checks_of(self, statement: Statement) -> list[str]:
        found: dict[bool, list[str]] = {}
        for item in self.found.items:
            if item.statement != statement.name:
                continue
            lines = found.setdefault(item.bound is not None and item.bound.access.begins, [])
            if (extent := self.without_element(statement, item)) is not None:
                lines.append(f"if {self.code(extent)} < 1: {self.fail(Failure('size', statement.name, item=item))}")
            if item.subject in ("range", "number", "window", "points") or item.kind not in (
                "SIZE",
                "SIZE_SET",
                "REFUTED",
            ):
                continue
            code = self.condition_code(item)
            if code is not None:
                lines.append(f"if {code}: {self.fail(Failure('size', statement.name, item=item))}")
        around = self.ranges.around
        return [each for begins, lines in found.items() for each in self.guarded(around(statement.name, begins), lines)]

    def guarded(self, around: Iterable[IndexRange], lines: list[str]) -> list[str]:
        """Lines, behind the question whether no range is empty."""
        runs = [
            f"{self.code(r.upper)} > {self.code(r.lower)}"
            for r in around
            if r.lower is not None and r.upper is not None and not nonnegative(r.upper - r.lower - 1)
        ]
        return [f"if {' and '.join(runs)}:", *("    " + text for text in lines)] if lines and runs else lines

    def without_element(self, statement: Statement, item: Precondition) -> SizeExpr | None:
        """The extent of a dimension that every point writes to where its data says: without elements no kernel would look at it."""
        bound = item.bound
        if item.subject != "write" or item.kind != "POINTWISE" or bound is None:
            return None
        name = statement.output_indices[bound.dimension].name
        if bound.side != "upper" or name not in statement.computed_indices:
            return None
        return self.ranges.range(statement.name, name).extent

    def condition_code(self, item: Precondition) -> str | None:
        """The code that is true when the precondition fails and sizes do not leave the access out."""
        fails = self.failure_code(item)
        made = on_sizes(item.bound.access.condition) if item.bound is not None else Condition("true")
        return fails if made.op == "true" or fails is None else f"{self.condition(made)} and ({fails})"

    def failure_code(self, item: Precondition) -> str | None:
        """The code that is true when the precondition fails."""
        if item.kind == "SIZE":
            return " or ".join(f"{self.code(c)} < 0" for c in item.conditions)
        if item.kind == "SIZE_SET" and item.violations is not None:
            if not all(e.names <= self.variables.keys() for piece in item.violations for e, _ in piece):
                return self.search_code(item)
            pieces = [
                " and ".join(f"{self.code(e)} {'==' if equal else '>='} 0" for e, equal in piece) or "True"
                for piece in item.violations
            ]
            return " or ".join(f"({piece})" for piece in pieces) or None
        return self.search_code(item)

    def search_code(self, item: Precondition) -> str:
        return f"search({self.places[id(item)]}, {self.tuple_of(self.variables[name] for name in self.names)})"

    # --- expressions ---------------------------------------------------------------------------------------------------

    def named(self, e: SizeExpr) -> str:
        """A variable (or constant) with the value of `e`; computed once."""
        text = self.code(e)
        if not e.is_constant and text not in self.variables.values() and e not in self.known:
            name = f"v{len(self.known)}"
            self.line(f"{name} = {text}")
            self.known[e] = name
            return name
        return text

    def code(self, e: SizeExpr) -> str:
        """Python code of an expression."""
        if e in self.known:
            return self.known[e]
        parts: list[str] = []
        for mono, c in e.ordered():
            factors = self.monomial(mono)
            sign = "-" if c < 0 else "+"
            weight = "" if abs(c) == 1 else f"{abs(c)}*"
            parts.append(f"{sign} {weight}{factors}")
        if e.offset or not parts:
            parts.append(f"{'-' if e.offset < 0 else '+'} {abs(e.offset)}")
        text = " ".join(parts).removeprefix("+ ")
        return text if len(parts) == 1 and not text.startswith("-") else f"({text})"

    def divisor(self, e: SizeExpr) -> str:
        """As `code`, a product in brackets: `N//A*B` would be `(N//A)*B`."""
        text = self.code(e)
        return text if text.isalnum() else f"({text})"

    def monomial(self, mono: Monomial) -> str:
        return "*".join(self.atom(atom) for atom in mono)

    def atom(self, atom: Atom) -> str:
        match atom:
            case Name():
                return self.variables[atom.name]
            case FloorDiv():
                return f"({self.code(atom.numerator)}//{self.divisor(atom.divisor)})"
            case Mod():
                return f"({self.code(atom.numerator)}%{self.divisor(atom.divisor)})"
            case Extremum():
                return f"{atom.kind}({', '.join(map(self.code, atom.arguments))})"
            case Product():
                return "(" + "*".join(f"({self.code(factor)})" for factor in atom.factors) + ")"
            case Choice():
                condition = self.condition(atom.condition)
                return f"({self.code(atom.then)} if {condition} else {self.code(atom.otherwise)})"
            case Datum() | Opaque():
                raise ValueError(f"{atom!r} is no number of the call")
        assert_never(atom)

    def condition(self, condition: Condition) -> str:
        match condition.op:
            case ">=" | "==" | "!=":
                return f"{self.code(condition.arguments[0])} {condition.op} 0"
            case "and" | "or":
                return "(" + f" {condition.op} ".join(self.condition(part) for part in condition.parts) + ")"
            case "true" | "false":
                return condition.op.capitalize()
            case _:
                raise ValueError("a condition on data is no number of the call")

    # --- slow paths ----------------------------------------------------------------------------------------------------

    def values_of(self, numbers: tuple[int, ...]) -> dict[str, int]:
        values = dict(zip(self.names, numbers, strict=True))
        return {**values, **{name: e.evaluate(values) for name, e in self.ranges.sizes.items() if name not in values}}

    def magnitude(self, numbers: tuple[int, ...]) -> Diagnostic | None:
        """Whether arithmetic of these numbers does not fit into its type."""
        return self.magnitudes.problem(self.values_of(numbers))

    def search(self, place: int, numbers: tuple[int, ...]) -> bool:
        """Whether an access without a closed form leaves its tensor at these sizes."""
        item = self.found.items[place]
        if item.bound is None:
            return False
        values = self.values_of(numbers)
        point = _box_of(self.ranges.around(item.statement, item.bound.access.begins), values)
        subscript = _subscript(self.ranges, item.bound.access, item.bound.dimension, values)
        try:
            return violation(subscript, point) is not None
        except RuntimeError:
            return True  # an access that cannot be shown to be safe is not made

    def recheck(self, numbers: tuple[int, ...]) -> Diagnostic | None:
        """With a size of 0 every access of a statement that still runs is looked at again."""
        if self.bind is None:
            raise AssertionError("bind is called before it is made")
        values, subscripts = self.values_of(numbers), self.found.subscripts()
        for statement in self.program.statements:
            points = {each: _box_of(self.ranges.around(statement.name, each), values) for each in (False, True)}
            for item in subscripts.get(statement.name, ()):
                assert item.bound is not None
                access, dimension = item.bound.access, item.bound.dimension
                point = points[access.begins]
                if any(high < low for low, high in point.box.values()):
                    continue
                if self.leaves(access, dimension, point, values, item.kind in ("DATA", "POINTWISE")):
                    return _size_message(self.bind, item, values)
        return None

    def leaves(self, access: Access, dimension: int, point: Point, values: Mapping[str, int], on_data: bool) -> bool:
        """Whether an access may leave its tensor at these sizes; `on_data`: its data are looked at in the call anyway."""
        subscript = _subscript(self.ranges, access, dimension, values)
        if stays_inside(subscript, point):
            return False
        if depends_on_data(access, dimension):
            if not on_data:
                # proved for sizes of 1 and more only: an access that cannot be shown to be safe is not made
                scanned = self.bind is not None and (id(access), dimension) in self.bind.at_zero
                return leaves_everywhere(subscript, point) if scanned else may_leave(subscript, point)
            low, high = span(subscript.index, point)
            return not access.guards and (high < subscript.lower or low >= subscript.upper)
        try:
            return violation(subscript, point) is not None
        except RuntimeError:
            return True


def _never_negative(r: IndexRange) -> bool:
    """Whether `upper < lower` is impossible also for sizes of 0: plain sums with weights >= 0, and floors of them."""
    if r.lower is None or r.upper is None:
        return False
    extent = r.upper - r.lower
    return extent.offset >= 0 and all(c > 0 and _plain(mono) for mono, c in extent.terms.items())


def _plain(mono: Monomial) -> bool:
    return all(isinstance(atom, Name) and atom.kind == "size" for atom in mono)


def _box_of(around: Iterable[IndexRange], values: Mapping[str, int]) -> Point:
    box: dict[str, tuple[int, int]] = {}
    for r in around:
        if r.lower is not None and r.upper is not None:
            box[r.index] = (r.lower.evaluate(values), r.upper.evaluate(values) - 1)
    return Point(values, box)


def _subscript(ranges: Ranges, access: Access, dimension: int, values: Mapping[str, int]) -> Subscript:
    lower, upper = ranges.boxes[access.tensor].bounds[dimension]
    guards = tuple((guard.condition, guard.polarity) for guard in access.guards)
    return Subscript(access.read.indices[dimension], lower.evaluate(values), upper.evaluate(values), guards)


# --- messages --------------------------------------------------------------------------------------------------------------


def _message(bind: Bind, failure: Failure, values: Mapping[str, int]) -> Diagnostic:
    known = dict(values)
    if failure.divisor is not None:
        statement = next((s for s in bind.program.statements if s.name == failure.statement), None)
        where = statement.span if statement is not None else bind.program.span
        divisor = divided_by(failure.divisor)
        text = to_python(divisor)
        message = f"`{text}` is 0 and stands as a divisor in an index or a range"
        if len(divisor.terms) != 1 or divisor.offset:
            message += f": `{numbered(text, known)}`"
        return Diagnostic(codes.ZERO_DIVISOR, where, message, "divides by 0", help=_given(divisor.names, known))
    if failure.border is not None:
        access, number = failure.border.access, failure.border.dimension
        message = f"`{access.text}` reads an array without elements: dimension {number} of `{access.tensor}` is 0"
        given = _given(failure.border.extent.names, known)
        return Diagnostic(codes.ZERO_DIVISOR, access.span, message, "nothing to read", help=given)
    if failure.range is not None:
        return _range_message(bind, failure.range, known)
    if failure.equality is not None:
        return _equality_message(bind, failure.equality, known)
    if failure.item is not None and failure.item.subject == "window":
        return _number_message(failure.item, known)
    if failure.item is not None:
        return _size_message(bind, failure.item, bind.extents(values))
    box = bind.ranges.boxes[failure.tensor]
    shape = ", ".join(str(e.evaluate(values)) for e in box.shape)
    tensor = bind.program.tensor(failure.tensor)
    message = f"`{tensor.name}` would have the shape ({shape})"
    return Diagnostic(codes.NEGATIVE_SHAPE, tensor.span, message, "negative extent")


def _given(names: Iterable[str], values: Mapping[str, int]) -> str | None:
    known = [f"{name} = {values[name]}" for name in sorted(names) if name in values]
    return ", ".join(known) or None


def applied_by(bind: Bind, r: IndexRange) -> str | None:
    """The def that a range counts the steps of, as that of `f^n` does; `None` if it is another range."""
    block = next(each.block for each in bind.program.statements if each.name == r.statement)
    return power_of(block) if block.endswith(f"#{r.index}") else None


def _range_message(bind: Bind, r: IndexRange, values: Mapping[str, int]) -> Diagnostic:
    if r.lower is None or r.upper is None:
        raise AssertionError("a range without ends")
    low, high = r.lower.evaluate(values), r.upper.evaluate(values)
    statement = next(each for each in bind.program.statements if each.name == r.statement)
    given = _given((r.lower.names | r.upper.names), values)
    if r.index in statement.computed_indices:
        return _extent_message(bind, statement, r, high - low, given)
    if (applied := applied_by(bind, r)) is not None:
        message = f"`{applied}` cannot be applied {high} times"
        return Diagnostic(codes.NEGATIVE_STEPS, r.span, message, help="0 steps give the arguments back")
    message = f"the range of `{r.index}` ends before it starts: `{low} <= {r.index} < {high}`"
    labels = tuple(Label(b.access.span, f"needs `{b.text}`") for b in r.because if b.access.span.end)
    text = range_text(r.index, r.lower, r.upper)
    extents = list(_negative_extents(bind, r, values))
    needs = " and ".join(dict.fromkeys(f"`{condition_text(solved(each))}`" for each in extents))
    given = _given({name for each in extents for name in each.names}, values)
    help = f"it needs {needs}" + (f"; here {given}" if given else "")
    return Diagnostic(codes.NEGATIVE_RANGE_AT_CALL, r.span, message, f"`{text}`", labels, help)


def _negative_extents(bind: Bind, first: IndexRange, values: Mapping[str, int]) -> Iterator[SizeExpr]:
    """The extents of all ranges that end before they start, that of the range with the message first.

    Whoever mends the first alone meets the next one at the following call.
    """
    found = (r for statement in bind.program.statements for r in bind.ranges.indices[statement.name])
    for r in (first, *(r for r in found if r is not first and r.source == "inferred" and r.ends is None)):
        if r.lower is None or r.upper is None or not (r.lower.names | r.upper.names) <= values.keys():
            continue
        try:
            negative = r.upper.evaluate(values) < r.lower.evaluate(values)
        except ZeroDivisionError:
            continue
        if negative:
            yield r.upper - r.lower


def _extent_message(bind: Bind, statement: Statement, r: IndexRange, extent: int, given: str | None) -> Diagnostic:
    """Of a dimension whose subscripts are computed: its extent is stated, or follows from the subscript."""
    written = statement.target.rpartition(".")[0]  # `P` of `P.max`, and of the state of a reducer
    name = written if any(each.name == written for each in bind.program.tensors) else statement.target
    if bind.program.tensor(name).declared is not None:
        message, help = f"`{name}` would have a negative extent: {extent}", given
    else:
        message = f"nothing says how large `{name}` is: its subscript has no value here"
        help = "state its extent in the result list" + (f"; {given}" if given else "")
    return Diagnostic(codes.NEGATIVE_RANGE_AT_CALL, r.span, message, help=help)


def _equality_message(bind: Bind, check: EqualityCheck, values: Mapping[str, int]) -> Diagnostic:
    left, right = check.left.evaluate(values), check.right.evaluate(values)
    if check.equality.kind == "number":
        message = f"{check.equality.reason}: `{to_python(check.right)}` is {right}"
        return Diagnostic(codes.ARGUMENT_TYPE, check.equality.span, message, help=_given(check.right.names, values))
    message = f"{check.equality.reason}: `{to_python(check.left)}` is {left}, `{to_python(check.right)}` is {right}"
    given = _given(check.left.names | check.right.names, values)
    return Diagnostic(codes.SIZE_CONFLICT, check.equality.span, message, "different here", help=given)


def _size_message(bind: Bind, item: Precondition, values: Mapping[str, int]) -> Diagnostic:
    """TC601: the condition with numbers, the ranges, and a counter-example."""
    bound = item.bound
    if bound is None:
        return _point_message(item) if item.subject == "points" else _number_message(item, values)
    access = bound.access
    failing = [c for c in item.conditions if not has_data(c) and c.names <= values.keys() and c.evaluate(values) < 0]
    source = source_of(bound, bind.ranges)
    message = f"`{source or access.text}` leaves `{access.tensor}`"
    if failing and source is None:
        message += f": `{_text(item, failing[0])}` is false, `{condition_numbers(failing[0], values)}`"
    labels = _range_labels(bind, item.statement, bound, values)
    point = _violating_point(bind, item, values)
    witness = None if point is None else _witness(bind, item, point)
    if point is not None:
        bound = _violated_end(bind, bound, point)
    remainder = remainder_help(bind.program, access, bound.dimension) if bound.side == "lower" else None
    fix = None
    if remainder is not None:
        witness, fix = "; ".join(filter(None, (witness, remainder[0]))), remainder[1]
    needs = f"needs {needed(bound, source)}"
    return Diagnostic(codes.PRECONDITION_FAILED, item.span, message, needs, labels, witness, fix)


def _number_message(item: Precondition, values: Mapping[str, int]) -> Diagnostic:
    """TC601 for a scalar that is too large for a bound to be computed in 64 bits, or that is no step or padding of a window."""
    if item.subject == "window":
        failing = next(c for c in item.conditions if c.evaluate(values) < 0)
        message = f"a window cannot go so: `{condition_text(failing)}` is false, `{condition_numbers(failing, values)}`"
        help = "steps are at least 1 and the padding at least 0; to begin inside the array, give the range with `where`"
        return Diagnostic(codes.PRECONDITION_FAILED, item.span, message, f"needs `{item.text}`", help=help)
    (name,) = item.conditions[0].names
    message = (
        f"a range computed from `{name}` may not fit into 64 bits: `{item.text}` is false, `{name}` is {values[name]}"
    )
    return Diagnostic(codes.PRECONDITION_FAILED, item.span, message, f"needs `{item.text}`")


def _point_message(item: Precondition) -> Diagnostic:
    """TC601 for an extreme value of nothing."""
    index = item.range.index if item.range is not None else ""
    message = f"nothing has no position: `{item.text}` is false, and `{index}` has no values"
    return Diagnostic(codes.PRECONDITION_FAILED, item.span, message, f"needs `{item.text}`")


def _text(item: Precondition, condition: SizeExpr) -> str:
    return item.text if len(item.conditions) == 1 else condition_text(condition)


def _range_labels(bind: Bind, statement: str, bound: Bound, values: Mapping[str, int]) -> tuple[Label, ...]:
    labels: list[Label] = []
    for r in bind.ranges.indices[statement]:
        if r.index in bound.access.index[bound.dimension].indices and r.lower is not None and r.upper is not None:
            labels.append(Label(r.span, f"`{r.lower.evaluate(values)} <= {r.index} < {r.upper.evaluate(values)}`"))
    return tuple(label for label in labels if label.span.end)


def _violating_point(bind: Bind, item: Precondition, values: Mapping[str, int]) -> Point | None:
    """Index values that leave the tensor, each as a range of one number."""
    bound = item.bound
    if bound is None or has_data(bound.access.index[bound.dimension]):
        return None
    subscript = _subscript(bind.ranges, bound.access, bound.dimension, values)
    try:
        found = violation(subscript, _box_of(bind.ranges.around(item.statement, bound.access.begins), values))
    except RuntimeError:
        return None
    return None if found is None else Point(values, {name: (value, value) for name, value in found.items()})


def _violated_end(bind: Bind, bound: Bound, at: Point) -> Bound:
    """The end that is left at a point: where each point is looked at, one look is for both ends."""
    subscript = _subscript(bind.ranges, bound.access, bound.dimension, at.values)
    value = span(subscript.index, at)[0]
    if bound.side == "lower" and value >= subscript.upper:
        return replace(bound, side="upper", limit=bind.ranges.boxes[bound.access.tensor].bounds[bound.dimension][1])
    if bound.side == "upper" and value < subscript.lower:
        return replace(bound, side="lower", limit=bind.ranges.boxes[bound.access.tensor].bounds[bound.dimension][0])
    return bound


def _witness(bind: Bind, item: Precondition, at: Point) -> str | None:
    """Which index values leave which tensor."""
    bound = item.bound
    if bound is None:
        return None
    access, found = bound.access, {name: low for name, (low, _) in at.box.items()}
    subscript = _subscript(bind.ranges, access, bound.dimension, at.values)
    used = [name for name in found if any(name in e.indices for e in access.index)]
    element = element_text(access.tensor, (str(span(e, at)[0]) for e in access.read.indices), access.brackets)
    where = ", ".join(f"{name} = {found[name]}" for name in used)
    extent = subscript.upper - subscript.lower
    inside = f"{subscript.lower} to {subscript.upper - 1}" if extent > 0 else "no elements"
    verb = "writes" if item.subject == "write" else "reads"
    dimension = f"dimension {bound.dimension} of `{access.tensor}`" if len(access.index) > 1 else f"`{access.tensor}`"
    prefix = f"at {where} it" if where else "it"
    return f"{prefix} {verb} `{element}`, but {dimension} has {inside}"


def at_sizes(ranges: Ranges, constants: Mapping[str, int]) -> Ranges:
    """The ranges with numbers in place of some sizes; what shaped them stays as it was (numbers come after inference)."""
    values = {name: constant(value) for name, value in constants.items()}
    return ranges.changed(lambda e: e.substitute(values)) if values else ranges
