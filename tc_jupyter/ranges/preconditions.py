"""What must hold for all accesses to stay inside their tensors: proved, refuted, checked at the call, or seen only in the data.

Worked example: in `A(i,j) = B(i) * C(i+j) * D(j)` the bounds of `B(i)` and `D(j)` shape the ranges; those of `C(i+j)` become
preconditions: `0 <= i + j` is proved, `i + j < J` leaves `I + K <= J + 1`, which the call checks.

Source: `docs/ranges.md`, 'Preconditions'.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Edit, Fix, Label, Span, codes, shown_line
from tc_jupyter.diagnostics.work import TooMuchWork, too_much
from tc_jupyter.program import (
    Binary,
    Cast,
    Const,
    DType,
    Equality,
    Expr,
    Program,
    Select,
    Statement,
    Tensor,
    power_of,
    walk,
)
from tc_jupyter.syntax.sac_parser import remainders

from .accesses import Access, Bound, Guard, as_written
from .certain import constant_truth, holds, index_limits, loop_facts
from .convert import from_expr, is_polynomial, leaves_int64, scalar_limits
from .display import condition_text, element_text, solved, to_python, written_tensor
from .inference import IndexRange, Ranges
from .interval import IndexBox, extremes, interval
from .left_sides import left_side_messages, value_first
from .orders import order_messages
from .sets import Answer, IntegerSet, Unknown, decide
from .size_expr import (
    Choice,
    Condition,
    Datum,
    Extremum,
    Opaque,
    SizeExpr,
    atom_parts,
    conjunction,
    has_data,
    index,
    maximum,
    minimum,
    nonnegative,
    scalar,
    with_atoms,
    with_parts,
)
from .wider import clause, give, whole

Pieces: TypeAlias = tuple[tuple[tuple[SizeExpr, bool], ...], ...]  # OR of ANDs of (e, is_equality)

STATUS = {
    "PROVED": "proved",
    "REFUTED": "refuted",
    "SIZE": "checked_at_call",
    "SIZE_SET": "checked_at_call",
    "DATA": "data_dependent",
    "POINTWISE": "data_dependent",
}
MOST_BRANCHES = 100  # of the `? :` inside one subscript; one with more is checked at each point
WORST = ("PROVED", "SIZE", "SIZE_SET", "DATA", "POINTWISE", "REFUTED")


@dataclass(frozen=True, slots=True, repr=False)
class Precondition:
    """One condition.

    Attributes:
        text: a Python expression (kinds PROVED, REFUTED, SIZE, DATA); for the others usually words.
        kind: PROVED, REFUTED, SIZE, SIZE_SET, DATA or POINTWISE.
        subject: `access`, `write`, `range`, `number` (limits of a scalar), `window` (step, dilation and padding) or `points` (there
            must be some to combine).
        bound: the bound of an access or a write. range: the range, for the subjects `range` and `points`.
        conditions: SIZE and DATA: each must be >= 0; names are sizes, scalars, and `min(C)`, `max(C)` for DATA. POINTWISE with a
            datum: where each is, no element leads outside, whatever conditions on data say.
        violations: SIZE_SET: the sizes at which it fails, as OR of ANDs of `(e, is_equality)`; `None`: only found by search.
        datum: DATA, and POINTWISE with such conditions: the element whose extreme values they are about.
    """

    text: str
    kind: str
    subject: str
    statement: str
    span: Span = field(default=NO_SPAN, compare=False)
    bound: Bound | None = None
    range: IndexRange | None = None
    conditions: tuple[SizeExpr, ...] = ()
    violations: Pieces | None = None
    datum: Datum | None = None

    def __repr__(self) -> str:
        return f"Precondition({self.text!r}, {self.status}, {self.subject} of {self.statement})"

    @property
    def status(self) -> str:
        """`proved`, `refuted`, `checked_at_call` or `data_dependent`."""
        return STATUS[self.kind]


@dataclass(frozen=True, slots=True)
class EqualityCheck:
    """Two extents that the call must compare, because neither equality nor inequality was proved."""

    left: SizeExpr
    right: SizeExpr
    equality: Equality


@dataclass(frozen=True, slots=True)
class Preconditions:
    """All preconditions of a def.

    Attributes:
        items: per statement, accesses in text order, then writes, then ranges that are not proved.
        equalities: comparisons left to the call.
        definitions: names of declared dimensions that occur nowhere else, with the extent they stand for.
    """

    items: tuple[Precondition, ...]
    equalities: tuple[EqualityCheck, ...]
    definitions: Mapping[str, SizeExpr]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def accesses(self) -> tuple[int, int]:
        """Number of accesses that are proved in bounds, and of all accesses."""
        proved: dict[tuple[str, int], bool] = {}
        for item in self.items:
            if item.subject == "access" and item.bound is not None:
                key = (item.statement, id(item.bound.access))
                proved[key] = proved.get(key, True) and item.kind == "PROVED"
        return sum(proved.values()), len(proved)

    @property
    def at_points(self) -> frozenset[str]:
        """The statements with an access that each point has to look at."""
        return frozenset(item.statement for item in self.items if item.kind == "POINTWISE")

    def subscripts(self) -> Mapping[str, Iterable[Precondition]]:
        """By statement: what is known of every subscript that could leave its dimension."""
        found: dict[str, dict[tuple[int, int], Precondition]] = {}
        for item in self.items:
            bound = item.bound
            if bound is not None and not bound.access.is_border(bound.dimension):
                found.setdefault(item.statement, {})[id(bound.access), bound.dimension] = item
        return {statement: items.values() for statement, items in found.items()}


def preconditions(program: Program, ranges: Ranges) -> Preconditions:
    """Classify every bound that shaped no range, and say what is suspicious about the ranges; never raises for the program."""
    items: list[Precondition] = []
    diagnostics: list[Diagnostic] = []
    skipped = False
    checks: tuple[EqualityCheck, ...] = ()
    definitions: dict[str, SizeExpr] = {}
    told_of: list[_Told] = []
    narrowed: set[tuple[str, str]] = set()  # indices of which a message says that they should run further
    span = program.span
    try:
        for statement in program.statements:
            span = statement.span
            if not ranges.is_complete(statement.name) or _is_negative(ranges, statement):
                continue
            checker = _Checker(statement, ranges)
            items.extend(checker.run())
            told_of.extend(checker.told)
            diagnostics.extend(_range_messages(statement, ranges))
            told, names = _guard_messages(statement, ranges)
            diagnostics.extend(told)
            narrowed |= {(statement.name, name) for name in names}
            skipped = skipped or checker.skipped
        span = program.span
        diagnostics[:0] = _once_per_place(told_of)
        checks, definitions, wrong = _equalities(program, ranges)
        diagnostics = [*(each for each in diagnostics if not _is_consequence(each, wrong, program)), *wrong]
        diagnostics.extend(order_messages(program, ranges))
        told_spans = {each.span for each in diagnostics if each.code is codes.OUT_OF_BOUNDS}
        left_sides = [each for each in left_side_messages(program, ranges) if each.span not in told_spans]
        diagnostics.extend(left_sides)
        unwritten = {each.span for each in left_sides if each.code is codes.UNWRITTEN_ELEMENT}
        diagnostics = [
            each for each in diagnostics if each.code is not codes.GUARD_ALWAYS or each.span not in unwritten
        ]
        diagnostics.extend(_origin_messages(program, ranges, narrowed, unwritten))
        if not any(item.kind == "REFUTED" for item in items):
            diagnostics.extend(_unread_messages(program, ranges))
    except TooMuchWork as problem:
        if not any(said.code is codes.TOO_MUCH_WORK for said in ranges.diagnostics):
            diagnostics.append(too_much(problem, span))
    if skipped:
        message = "a proof was left to the call: the set library is absent or its limit was reached"
        diagnostics.append(Diagnostic(codes.PROOF_SKIPPED, program.span, message))
    return Preconditions(tuple(items), checks, definitions, tuple(sorted(diagnostics, key=lambda d: d.span)))


def _is_negative(ranges: Ranges, statement: Statement) -> bool:
    return any(nonnegative(-r.extent - 1) for r in ranges.indices[statement.name])


def _one_by_one(guards: Iterable[Guard]) -> tuple[tuple[Expr, bool], ...]:
    """Conditions and whether they hold, those joined by `&&` (by `||`, where they do not hold) apart: each is looked at under those
    before it.
    """
    found: list[tuple[Expr, bool]] = []
    for guard in guards:
        left = [guard.condition]
        while left:
            each = left.pop()
            if isinstance(each, Binary) and each.op == ("&&" if guard.polarity else "||"):
                left += [each.right, each.left]
            else:
                found.append((each, guard.polarity))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Verdict:
    kind: str
    conditions: tuple[SizeExpr, ...] = ()
    violations: Pieces | None = None
    datum: Datum | None = None


class _Checker:
    """The preconditions of one statement."""

    def __init__(self, statement: Statement, ranges: Ranges) -> None:
        self.statement = statement
        self.ranges = ranges
        self.found = ranges.indices[statement.name]
        self.box = index_limits(self.found)
        # a dimension whose subscript is an expression is no loop: there are points, and so writes, also where it has no element
        self.facts_of = {begins: loop_facts(ranges.around(statement.name, begins)) for begins in (False, True)}
        self.facts = self.facts_of[False]
        self.never_runs = {begins for begins, facts in self.facts_of.items() if any(nonnegative(-1 - e) for e in facts)}
        self.told: list[_Told] = []
        self.skipped = False
        self.branches = 0

    def run(self) -> list[Precondition]:
        items: list[Precondition] = []
        again: list[int] = []
        ends: list[_Told] = []
        for r in self.found:
            if r.ends_on_data:
                items.append(_ends_item(self.statement, r))
                ends.append(_Told(_ends_message(r), ()))
        bounds = self.ranges.bounds[self.statement.name]
        elements = _elements(bounds)
        always: dict[_Place, Bound] = {}
        for each in sorted(bounds, key=lambda each: len(_one_by_one(each.access.guards))):
            always.setdefault(_place(each, elements), each)
        for bound in bounds:
            subject = "write" if self.is_write(bound.access) else "access"
            inside = bound.access.is_border(bound.dimension)  # by what stands around the subscript
            other = self.read_anyway(bound, always[_place(bound, elements)])
            shapes = any(each is not None and (each.used or each.discharged) for each in (bound, other))
            begins = (other or bound).access.begins
            self.facts = self.facts_of[begins]
            if shapes or begins in self.never_runs or inside:
                verdict = _Verdict("PROVED")
            else:
                verdict = self.verdict(other or bound)
            again += [id(bound)] if other is not None else []
            items.append(self.item(bound, subject, verdict))
        told = [item for item in items if id(item.bound) not in again]
        own = [item for item in told if self.is_own(item.bound)]
        before = [_Told(said, ()) for said in _before_start(own, self)]
        self.told = [*ends, *before]
        if not (before and power_of(self.statement.block)):  # else more of the same, in words that nobody wrote
            self.told += _access_messages([item for item in told if not self.is_own(item.bound)], self)
        for r in self.found:
            item = _range_item(self.statement, r)
            if item is not None:
                items.append(item)
            if r.needs:
                text = " and ".join(condition_text(e) for e in r.needs)
                items.append(Precondition(text, "SIZE", "window", self.statement.name, r.span, None, r, r.needs))
        return [*items, *_number_items(self.statement), *_point_items(self.statement, self.found)]

    def verdict(self, bound: Bound) -> _Verdict:
        """The kind of one bound; one that holds for exact numbers only is checked at each point, on those that are computed."""
        self.branches = 0
        exact = self.classify(bound.expr, bound.access.condition)
        if exact.kind == "POINTWISE":
            exact = self.on_whole_range(bound) or self.whatever_data(bound) or exact
        written = bound.access.read.indices[bound.dimension]
        # the last 64 bits of a polynomial are right, whatever wraps on the way, and both of its ends are looked at
        if exact.kind == "POINTWISE" or is_polynomial(written) or not any(map(leaves_int64, walk(written))):
            return exact
        scope = replace(self.ranges.index_scope(self.statement), wraps=True)
        index = from_expr(written, scope)
        computed = index - bound.limit if bound.side == "lower" else bound.limit - 1 - index
        self.branches = 0
        return exact if self.classify(computed, bound.access.condition).kind == "PROVED" else _Verdict("POINTWISE")

    def on_whole_range(self, bound: Bound) -> _Verdict | None:
        """What is scanned where elements say which part of a range there is: the whole range. Where that fails, points decide."""
        guards = bound.access.guards
        others = [g for g in guards if not (g.of_range and any(map(has_data, g.meaning.exprs())))]
        if len(others) == len(guards):
            return None
        self.branches = 0
        found = self.classify(bound.expr, conjunction(guard.holds for guard in others))
        return found if found.kind in ("PROVED", "DATA") else None

    def whatever_data(self, bound: Bound) -> _Verdict | None:
        """That a read is inside where the conditions hold that say nothing of data, and so under all of them; or that it is where
        the elements of an index tensor have limits, and that each point decides where they have not.
        """
        guards = bound.access.guards
        others = [guard for guard in guards if not guard.is_on_data]
        if len(others) == len(guards):
            return None
        self.branches = 0
        found = self.classify(bound.expr, conjunction(guard.holds for guard in others))
        if found.kind == "DATA":
            return replace(found, kind="POINTWISE")
        return found if found.kind == "PROVED" else None

    def read_anyway(self, bound: Bound, other: Bound) -> Bound | None:
        """An access under fewer conditions that needs the same; one that is checked at each point says nothing of the others."""
        guards = _one_by_one(bound.access.guards)
        fewer = _one_by_one(other.access.guards)
        if len(fewer) >= len(guards) or fewer != guards[: len(fewer)]:
            return None
        return other if other.used or other.discharged or self.verdict(other).kind != "POINTWISE" else None

    def is_own(self, bound: Bound | None) -> bool:
        """Whether a bound is about what the statement reads of its own target, which exists for certain or not at all."""
        return bound is not None and self.statement.is_made(bound.access.tensor) and not self.is_write(bound.access)

    def is_write(self, access: Access) -> bool:
        return all(access is not other for other in self.ranges.accesses[self.statement.name])

    def item(self, bound: Bound, subject: str, verdict: _Verdict) -> Precondition:
        if verdict.conditions and verdict.kind in ("SIZE", "SIZE_SET", "DATA"):
            text = " and ".join(dict.fromkeys(condition_text(c) for c in verdict.conditions))
        elif verdict.kind in ("SIZE_SET", "POINTWISE"):
            shown = in_the_text(bound.access.text, bound.access.index, bound.access.read.span, self.ranges)
            text = f"{shown} stays inside {bound.access.tensor}"
        else:
            text = bound.text
        return Precondition(
            text,
            verdict.kind,
            subject,
            self.statement.name,
            bound.access.span,
            bound,
            None,
            verdict.conditions,
            verdict.violations,
            verdict.datum,
        )

    # --- the kinds -----------------------------------------------------------------------------------------------------

    def classify(self, e: SizeExpr, guard: Condition) -> _Verdict:
        """The kind of one bound; a `? :` inside gives one case per branch, and the worst kind wins."""
        choice = next((atom for atom in e.atoms() if isinstance(atom, Choice)), None)
        if choice is not None:
            self.branches += 1
            if self.branches > MOST_BRANCHES:
                return _Verdict("POINTWISE")
            then = conjunction((guard, choice.condition))
            otherwise = conjunction((guard, choice.condition.negated()))
            cases = [
                self.classify(_replaced(e, choice, choice.then), then),
                self.classify(_replaced(e, choice, choice.otherwise), otherwise),
            ]
            return self.merged(cases)
        found = interval(e, self.box, extremes)
        if found.lower is not None and holds(found.lower, self.facts):
            return _Verdict("PROVED")
        alternatives, complete = guard.alternatives()
        if all(any(self.follows(e, g) for g in alternative) for alternative in alternatives):
            return _Verdict("PROVED")
        data = _data(e)
        mixed = any(isinstance(a, Opaque) for a in e.atoms()) or len(data) > 1
        if mixed or not complete or any(_data(g) for a in alternatives for g in a):
            return _Verdict("POINTWISE")
        if data:
            if found.lower is None or not found.exact:
                return _Verdict("POINTWISE")
            return self.on_data(found.lower, data[0])
        if found.lower is not None and guard.op == "true" and found.exact:
            return self.on_sizes(found.lower)
        return self.on_sets(e, alternatives)

    def merged(self, cases: list[_Verdict]) -> _Verdict:
        worst = max(cases, key=lambda case: WORST.index(case.kind))
        if worst.kind == "REFUTED":
            return worst if all(case.kind == "REFUTED" for case in cases) else _Verdict("SIZE_SET")
        if worst.kind == "SIZE":
            return _Verdict("SIZE", tuple(c for case in cases for c in case.conditions))
        if worst.kind == "SIZE_SET":
            pieces: list[tuple[tuple[SizeExpr, bool], ...]] = []
            for case in cases:
                if case.kind == "SIZE":
                    pieces.extend(((-c - 1, False),) for c in case.conditions)
                elif case.kind == "SIZE_SET":
                    if case.violations is None:
                        return worst
                    pieces.extend(case.violations)
            return _Verdict("SIZE_SET", violations=tuple(pieces))
        if worst.kind == "DATA":
            # the other branch may need its own check, and one scan cannot tell which branch an element belongs to
            return _Verdict("POINTWISE")
        return worst

    def follows(self, e: SizeExpr, g: SizeExpr) -> bool:
        """Whether `g >= 0` makes `e >= 0` everywhere on the ranges; equal elements on both sides cancel."""
        low = interval(e - g, self.box).lower
        return low is not None and holds(low, self.facts)

    def on_sizes(self, lower: SizeExpr) -> _Verdict:
        open_parts: list[SizeExpr] = []
        refuted = False
        for part in conjuncts(lower):
            if holds(part, self.facts) or self.proves(part):
                continue
            refuted = refuted or holds(-part - 1, self.facts) or self.proves(-part - 1)
            open_parts.append(part)
        if not open_parts:
            return _Verdict("PROVED")
        refuted = refuted or any(nonnegative(-one - other - 1) for one, other in combinations(open_parts, 2))
        open_parts = [solved(part) for part in open_parts]
        return _Verdict("REFUTED" if refuted else "SIZE", tuple(open_parts))

    def on_data(self, lower: SizeExpr, datum: Datum) -> _Verdict:
        parts = [p for p in conjuncts(lower) if not holds(p, self.facts)]
        on_data = [p for p in parts if any("(" in name for name in p.names)]
        if not on_data:
            verdicts = [self.on_sizes(p) for p in parts]
            kind = "SIZE" if any(v.kind != "PROVED" for v in verdicts) else "PROVED"
            return _Verdict(kind, tuple(c for v in verdicts for c in v.conditions))
        return _Verdict("DATA", tuple(parts), datum=datum)

    def on_sets(self, e: SizeExpr, alternatives: tuple[tuple[SizeExpr, ...], ...]) -> _Verdict:
        """Guarded or not monotone: the exact set of violations decides."""
        dims = tuple(self.box)
        domain = [
            index
            for name, (low, high) in self.box.items()
            for index in _inside(self.ranges, self.statement, name, low, high)
        ]
        try:
            violated = IntegerSet.empty(dims)
            for alternative in alternatives:
                violated = violated.union(IntegerSet.build(dims, [*domain, *alternative, -e - 1], (), True))
            if violated.is_empty() is Answer.YES:
                return _Verdict("PROVED")
            sizes = violated.project_out(dims)
            runs = IntegerSet.build(dims, domain, (), True).project_out(dims)
            if runs.is_subset(sizes) is Answer.YES and not violated.has_opaque:
                return _Verdict("REFUTED")
            if violated.has_opaque:
                return _Verdict("SIZE_SET")
            pieces = _shortened(sizes.simplified(runs).pieces())
            return _Verdict("SIZE_SET", _closed_form(pieces), pieces)
        except Unknown as unknown:
            self.skipped = self.skipped or unknown.is_skipped
            return _Verdict("SIZE_SET")

    def proves(self, e: SizeExpr) -> bool:
        if not self.facts and _is_linear(e):
            return False  # the limits of a sum of sizes are exact: there is nothing left to find
        answer, skipped = decide(self.facts, e)
        self.skipped = self.skipped or skipped
        return answer is Answer.YES


def _is_linear(e: SizeExpr) -> bool:
    return all(len(mono) == 1 and not atom_parts(mono[0]) for mono in e.terms)


def _shortened(pieces: Pieces) -> Pieces:
    """Without the constraints that always hold."""
    return tuple(tuple((e, equal) for e, equal in piece if equal or not nonnegative(e)) for piece in pieces)


def _inside(
    ranges: Ranges, statement: Statement, name: str, low: SizeExpr, high: SizeExpr
) -> tuple[SizeExpr, SizeExpr]:
    variable = ranges.index_scope(statement).indices[name]
    return variable - low, high - variable


def _data(e: SizeExpr) -> list[Datum]:
    """The elements that the value depends on directly, not through the index of another element."""
    found: dict[Datum, None] = {}
    stack = [e]
    while stack:
        for mono in stack.pop().terms:
            for atom in mono:
                if isinstance(atom, Datum):
                    found[atom] = None
                else:
                    stack.extend(atom_parts(atom))
    return list(found)


def _replaced(e: SizeExpr, old: Choice, new: SizeExpr) -> SizeExpr:
    """`e` with one branch in place of a `? :`."""
    return with_atoms(e, lambda atom: new if atom == old else with_parts(atom, lambda part: _replaced(part, old, new)))


def conjuncts(e: SizeExpr) -> list[SizeExpr]:
    """Expressions that are all >= 0 exactly when `e` is: a `+min` or `-max` term gives one per argument."""
    for mono, c in e.terms.items():
        atom = mono[0]
        if len(mono) == 1 and isinstance(atom, Extremum) and (atom.kind == "min") == (c > 0):
            rest = e - SizeExpr({mono: c}, 0)
            return [part for argument in atom.arguments for part in conjuncts(rest + argument * c)]
    return [e]


_Place: TypeAlias = tuple[int, int, str]


def _elements(bounds: Sequence[Bound]) -> dict[int, int]:
    """A number for each access, by its `id`; those of the same element have the same one. An element has many bounds."""
    numbers: dict[tuple[str, tuple[SizeExpr, ...]], int] = {}
    accesses = {id(each.access): each.access for each in bounds}
    return {key: numbers.setdefault((each.tensor, each.index), len(numbers)) for key, each in accesses.items()}


def _place(bound: Bound, elements: Mapping[int, int]) -> _Place:
    """Which end of which dimension a bound is about, whatever guards the access."""
    return elements[id(bound.access)], bound.dimension, bound.side


def _closed_form(pieces: Pieces) -> tuple[SizeExpr, ...]:
    """The negation of a set of violations that is one inequality."""
    if len(pieces) == 1 and len(pieces[0]) == 1 and not pieces[0][0][1]:
        return (-pieces[0][0][0] - 1,)
    return ()


def _number_items(statement: Statement) -> Iterable[Precondition]:
    """Limits of the scalars that ranges are made of: where none is beyond them, nothing that a kernel computes wraps around."""
    ends = [(end, item.span) for item in statement.indices if item.where is not None for end in item.where]
    for end, span in ends:
        for name, limit in scalar_limits(end).items():
            text = f"-{limit} <= {name} <= {limit}"
            number = scalar(name, DType.INT64)
            yield Precondition(
                text, "SIZE", "number", statement.name, span, conditions=(number + limit, limit - number)
            )


def _point_items(statement: Statement, ranges: Iterable[IndexRange]) -> Iterable[Precondition]:
    """What a statement that needs them combines has points, wherever its left side has one."""
    if not statement.needs_points:
        return
    known = [(r, r.upper - r.lower) for r in ranges if r.lower is not None and r.upper is not None]
    written = tuple((extent - 1, False) for r, extent in known if r.kind == "output")
    for r, extent in known:
        if r.kind == "output" or r.ends is not None or (extent.is_constant and extent.offset > 0):  # any size may be 0
            continue
        text = condition_text(solved(extent - 1))
        violations = (((-extent, False), *written),)
        yield Precondition(text, "SIZE_SET", "points", statement.name, r.span, None, r, violations=violations)


def _ends_item(statement: Statement, r: IndexRange) -> Precondition:
    """A range whose ends are elements begins before it ends, and stays inside of what its index can index."""
    return Precondition(_ends_text(r), "DATA", "range", statement.name, r.span, None, r)


def _ends_text(r: IndexRange) -> str:
    ends = (r.lower, *(r.ends or ()), r.upper)
    return " <= ".join(dict.fromkeys(to_python(end) for end in ends if end is not None))


def _ends_message(r: IndexRange) -> Diagnostic:
    """TC323 for a range."""
    message = f"elements say where `{r.index}` begins and ends: each call looks whether `{_ends_text(r)}`"
    return Diagnostic(codes.DATA_CHECKED, r.span, message, f"`{r.text}`")


def _range_item(statement: Statement, r: IndexRange) -> Precondition | None:
    """`lower <= upper` of a range, unless it is proved."""
    if r.lower is None or r.upper is None:
        return None
    parts = [solved(part) for part in conjuncts(r.upper - r.lower) if not nonnegative(part)]
    if not parts:
        return None
    text = " and ".join(dict.fromkeys(condition_text(part) for part in parts))
    return Precondition(text, "SIZE", "range", statement.name, r.span, None, r, tuple(parts))


# --- messages ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Told:
    """A message about an access, and what must not be negative for the access to stay inside."""

    message: Diagnostic
    needs: tuple[SizeExpr, ...]
    reads: bool = False


def _once_per_place(told: Sequence[_Told]) -> Iterable[Diagnostic]:
    """The messages without those that another one at its place makes needless: a loop of `%%sac` has each access once per round."""
    places: dict[tuple[object, Span], list[_Told]] = {}
    for each in told:
        key = (
            (each.message.code, each.message.span) if each.message.code in _OF_CALLS else (id(each), each.message.span)
        )
        kept = places.setdefault(key, [])
        if not any(_implies(other, each) for other in kept):
            kept[:] = [*(other for other in kept if not _implies(each, other)), each]
    found = [each for kept in places.values() for each in kept]
    writes = [each for each in found if each.message.code in _OF_CALLS and not each.reads]
    return [each.message for each in found if not (each.reads and any(_is_inside(each, other) for other in writes))]


def _is_inside(one: _Told, other: _Told) -> bool:
    """Whether a read is of what a statement writes, at the same place: a statement that combines values is several ones."""
    inner, outer = one.message.span, other.message.span
    same = one.message.code is other.message.code and outer.start == inner.start and inner.end <= outer.end
    return same and _implies(other, one)


_OF_CALLS = (codes.CHECKED_AT_CALL, codes.POINTWISE_CHECK, codes.DATA_CHECKED)


def _implies(one: _Told, other: _Told) -> bool:
    """Whether what one access needs is more than what another one needs."""
    return bool(one.needs) and all(any(nonnegative(b - a) for a in one.needs) for b in other.needs)


def _access_messages(items: list[Precondition], checker: _Checker) -> list[_Told]:
    """One message per access dimension and kind; both sides of a dimension are told together."""
    groups: dict[tuple[int, int, str], list[Precondition]] = {}
    for item in items:
        if item.bound is not None and item.kind != "PROVED":
            groups.setdefault((id(item.bound.access), item.bound.dimension, item.kind), []).append(item)
    return [
        _Told(
            _access_message(group, group[0].bound, checker),
            tuple(e for item in group for e in item.conditions or ((item.bound.expr,) if item.bound else ())),
            group[0].kind in ("DATA", "POINTWISE") and group[0].subject != "write",
        )
        for group in groups.values()
        if group[0].bound is not None and not _is_demanded(group[0], checker.ranges.program)
    ]


def _is_demanded(item: Precondition, program: Program) -> bool:
    """Whether what an access needs of sizes is demanded by an operation of `%%sac`, as `take`, in words of its own."""
    if program.language != "sac" or item.bound is None or item.kind not in ("SIZE", "SIZE_SET"):
        return False
    declared = program.tensor(item.bound.access.tensor).span
    return not item.span.end or (declared.start <= item.span.start and item.span.end <= declared.end)


def _before_start(items: list[Precondition], checker: _Checker) -> list[Diagnostic]:
    """TC225, once for every read of the target by its own statement that is not proved to be inside."""
    program, found = checker.ranges.program, dict[int, Diagnostic]()
    for item in items:
        bound = item.bound
        if bound is None or item.kind == "PROVED" or id(bound.access) in found:
            continue
        read, target = bound.access, bound.access.tensor
        text = program.source.slice(read.span)
        end = "first" if bound.side == "lower" else "last"
        element = element_text(target, map(as_written, read.index), "()")
        beyond = "is" if item.kind == "REFUTED" else "may be"
        message = f"`{element}` {beyond} beyond the {end} element of `{target}`"
        help_text = f"say what stands there, as in `{element} else 0`, or guard the read with `? :`"
        if called := power_of(checker.statement.block):
            message = f"`{called}` may read beyond the ends of what the step before has made"
            limit = "limit the subscript there, as in `clamp(..)`, or guard the read with `? :`"
            help_text = f"{limit}; in Python `{called}.iterate(n)` checks every step"
            found[id(read)] = Diagnostic(codes.BEFORE_START, read.span, message, "", (), help_text)
            continue
        if _goes_on(checker):
            help_text, fix = _behind_the_first(bound, checker, told_before=bool(found))
            label = f"needs `{bound.text}`"
            found[id(read)] = Diagnostic(codes.BEFORE_START, read.span, message, label, (), help_text, fix)
            continue
        is_read = re.fullmatch(rf"{re.escape(target)}\s*\(.*\)", text, re.DOTALL) is not None
        fix = Fix(f"write `({text} else 0)`", (Edit(read.span, f"({text} else 0)"),)) if is_read else None
        found[id(read)] = Diagnostic(
            codes.BEFORE_START, read.span, message, f"needs `{bound.text}`", (), help_text, fix
        )
    return list(found.values())


def _goes_on(checker: _Checker) -> bool:
    """Whether an earlier statement wrote what this one goes on from, which a value for what is not there would write over."""
    statement = checker.statement
    first = next(each for each in checker.ranges.program.statements if each.target == statement.target)
    return first is not statement and not statement.block


def _behind_the_first(bound: Bound, checker: _Checker, told_before: bool) -> tuple[str, Fix | None]:
    """Take the points from which on all elements are there: `where i in 1:N`."""
    advice = "leave out the points where it is not there, with a `where` range, or guard the read with `? :`"
    target, needs = bound.access.tensor, dict[str, tuple[SizeExpr, SizeExpr]]()
    box = checker.ranges.boxes[target].bounds
    for access in dict.fromkeys(each.access for each in checker.ranges.bounds[checker.statement.name]):
        for e, (low, high) in zip(access.index, box, strict=False) if access.tensor == target else ():
            name = next(iter(e.indices), None)
            r = next((each for each in checker.found if each.index == name), None)
            if name is None or r is None or r.lower is None or r.upper is None or r.ends is not None:
                return advice, None
            shift = e - index(name)
            if shift.indices or r.source == "where":
                return advice, None
            if checker.is_write(access) and not nonnegative(high - shift - r.upper):
                return f"state in the result list how large `{target}` is; {advice}", None
            lower, upper = needs.get(name, (r.lower, r.upper))
            needs[name] = maximum(lower, low - shift), minimum(upper, high - shift)
    known = {each.index: (each.lower, each.upper) for each in checker.found}
    clauses = [f"{name} in {as_written(a)}:{as_written(b)}" for name, (a, b) in needs.items() if known[name] != (a, b)]
    text = ", ".join(clauses)
    if not clauses:
        return advice, None
    fix = None if told_before else give(checker.ranges, checker.statement, text)
    return f"leave out the points where it is not there: `where {text}`", fix


def _access_message(items: list[Precondition], bound: Bound, checker: _Checker) -> Diagnostic:
    item = items[0]
    access, span = bound.access, item.span
    e = access.index[bound.dimension]
    shown = in_the_text(access.text, access.index, access.read.span, checker.ranges)
    source = source_of(bound, checker.ranges)
    where, tensor = f"`{source or shown}`", written_tensor(access.tensor, checker.ranges.program)
    needs = "needs " + " and ".join(needed(other.bound, source) for other in items if other.bound is not None)
    text = " and ".join(dict.fromkeys(f"`{other.text}`" for other in items))
    labels = tuple(
        Label(r.span, f"`{r.text}`")
        for r in checker.found
        if r.index in e.indices and r.source != "open" and r.span.end
    )
    if item.kind == "REFUTED":
        ends = interval(e, checker.box, extremes)
        worst = ends.lower if bound.side == "lower" else ends.upper
        reach = f": `{to_python(e)}` reaches `{to_python(worst)}`" if worst is not None and ends.exact else ""
        if not e.indices:
            reach = ""
        message = f"{where} leaves `{tensor}` for all sizes{reach}"
        if e.is_constant and e.offset < 0 and bound.limit == 0 and checker.ranges.program.language == "tc":
            return _from_the_end(bound, span, message, needs, checker.ranges)
        larger = _larger_help(checker, bound)
        if larger is not None:
            return Diagnostic(codes.OUT_OF_BOUNDS, span, message, needs, labels, *larger)
        if not e.indices and bound.side == "upper" and checker.ranges.program.language == "tc":
            return _behind_the_end(bound, span, message, needs)
        if not e.indices and checker.ranges.program.language == "tc":
            return Diagnostic(codes.OUT_OF_BOUNDS, span, message, needs, labels, "the first element has the index `0`")
        remainder = remainder_help(checker.ranges.program, access, bound.dimension) if bound.side == "lower" else None
        help_text, fix = remainder or (_begin_help(checker, bound) or _range_help(checker, e), None)
        return Diagnostic(codes.OUT_OF_BOUNDS, span, message, needs, labels, help_text, fix)
    if item.kind in ("SIZE", "SIZE_SET"):
        condition = f"only if {text}" if all(map(_is_expression, items)) else "only for some sizes"
        message = f"{where} stays inside `{tensor}` {condition}"
        help_text = f"the call checks it; {_one_name_help(checker, items, e)}"
        if e.is_constant:
            stated = f"if the signature has a number as the extent of `{tensor}`, it is proved"
            help_text = f"the call checks it; {stated}"
        larger = _larger_help(checker, bound)
        if larger is not None:
            help_text = f"the call checks it; {larger[0]}"
        if checker.ranges.program.language == "sac":
            help_text = "the call checks it; a bound with `min(.., ..)` over both extents needs no check"
        fix = None
        if c_division(checker.ranges.program, access) is not None:
            help_text = "the call checks it"
        remainder = remainder_help(checker.ranges.program, access, bound.dimension)
        if remainder is not None:
            help_text, fix = f"the call checks it; {remainder[0]}", remainder[1]
        return Diagnostic(codes.CHECKED_AT_CALL, span, message, needs, labels, help_text, fix)
    sides = {other.bound.side for other in items if other.bound is not None}
    clamp = _inside_help(checker, access, bound.dimension, sides)
    if item.kind == "DATA":
        scanned = item.datum.tensor if item.datum is not None else ""
        does = "writes" if item.subject == "write" else "reads"
        message = f"{where} {does} where the values of `{scanned}` say: each call scans them for {text}"
        return Diagnostic(codes.DATA_CHECKED, span, message, needs, (), clamp)
    message = f"{where} is checked at every point: whether it stays inside `{tensor}` is seen only in the data"
    return Diagnostic(codes.POINTWISE_CHECK, span, message, needs, (), clamp)


def remainder_help(program: Program, access: Access, dimension: int) -> tuple[str, Fix | None] | None:
    """What helps where an index of `%%sac` is a remainder of C, which has the sign of the dividend: the other remainder.

    The relation of the text is shown, and the fix is an edit of it, where it is seen which one is meant.
    """
    if program.language != "sac" or not _is_of_c(access.read.indices[dimension]):
        return None
    found = remainders(program.source, access.span, dimension)
    if not found:
        return None
    place, left, right = found[0]
    general = "`x % n` is negative where `x` is, as in C: `mod(x, n)` is not, for a positive `n`"
    if len(found) > 1:
        return general, None
    said, meant = " ".join(program.source.slice(place).split()), f"mod({left}, {right})"
    return f"`{said}` is negative where `{left}` is, as in C", Fix(f"write `{meant}`", (Edit(place, meant),))


def c_division(program: Program, access: Access) -> str | None:
    """The text of a selection with a quotient or remainder of C, which is a long expression of floor division; else `None`."""
    if program.language != "sac" or not any(_is_of_c(index) for index in access.read.indices):
        return None
    text = shown_line(program.source.slice(access.span))
    return text if ("%" in text or "/" in text) and "[" in text and len(text) <= 100 else None


def source_of(bound: Bound, ranges: Ranges) -> str | None:
    """The text of an access whose subscript is kept as nobody has written it; else `None`."""
    access = bound.access
    quotient = c_division(ranges.program, access)
    if quotient is not None or not is_kept_otherwise((access.index[bound.dimension],), ranges):
        return quotient
    return in_the_text(access.text, access.index, access.read.span, ranges)


def _is_of_c(index: Expr) -> bool:
    """Whether an index has floor division of something with `min` or `max` in it."""
    divided = (node for node in walk(index) if isinstance(node, Binary) and node.op in ("//", "%"))
    return any(isinstance(part, Binary) and part.op in ("min", "max") for node in divided for part in walk(node))


def needed(bound: Bound, source: str | None) -> str:
    """What an index must fulfil; `..` stands for what the text has there."""
    if source is None:
        return f"`{bound.text}`"
    return f"`{to_python(bound.limit)} <= ..`" if bound.side == "lower" else f"`.. < {to_python(bound.limit)}`"


def _from_the_end(bound: Bound, span: Span, message: str, label: str, ranges: Ranges) -> Diagnostic:
    """A negative number as an index, which counts from the end in Python."""
    access, dimension = bound.access, bound.dimension
    upper = ranges.boxes[access.tensor].bounds[dimension][1]
    last, place = as_written(upper + access.index[dimension]), access.read.indices[dimension].span
    fix = Fix(f"write `{last}`", (Edit(place, last),)) if place.end else None
    help_text = f"negative indices do not count from the end: the last element has the index `{as_written(upper - 1)}`"
    return Diagnostic(codes.OUT_OF_BOUNDS, span, message, label, (), help_text, fix)


def _larger_help(checker: _Checker, bound: Bound) -> tuple[str, Fix | None] | None:
    """How a target gets the elements that a write needs, and a fix; no condition guards a write."""
    tensor, ends = bound.access.tensor, interval(bound.access.index[bound.dimension], checker.box, extremes)
    worst = ends.lower if bound.side == "lower" else ends.upper
    if not checker.is_write(bound.access) or worst is None or not ends.exact:
        return None
    first = next(each for each in checker.ranges.program.statements if each.target == tensor)
    if first is checker.statement:
        return f"state a larger `{tensor}` in the result list, or write fewer elements with a `where` range", None
    bounds = list(checker.ranges.boxes[tensor].bounds)
    low, high = bounds[bound.dimension]
    bounds[bound.dimension] = (worst, high) if bound.side == "lower" else (low, worst + 1)
    larger = value_first(checker.ranges, tensor, bounds)
    help = f"the first statement on `{tensor}` says how large it is: "
    if not first.left and not bound.access.index[bound.dimension].indices:  # it writes all that is stated
        return f"{help}begin with {larger}", None
    return f"{help}state that in the result list, or begin with {larger}", _stated_extents(checker, tensor, bounds)


def _stated_extents(checker: _Checker, tensor: str, bounds: Sequence[tuple[SizeExpr, SizeExpr]]) -> Fix | None:
    """State the extents of a result whose last statement needs these; `None` where they are no sums of sizes."""
    program = checker.ranges.program
    info, last = program.tensor(tensor), [each for each in program.statements if each.target == tensor][-1]
    header = re.match(r"[^{]*?->([^{]*)", program.source.text[program.span.start :])
    place = None if header is None else re.search(rf"\b{re.escape(tensor)}\b", header[1])
    extents = [as_written(high) for _, high in bounds]
    plain = all(re.fullmatch(r"[\w+* -]+", each) for each in extents) and all(low == 0 for low, _ in bounds)
    if info.kind != "output" or info.declared is not None or info.pairs or last is not checker.statement:
        return None
    if program.language != "tc" or header is None or place is None or not plain:
        return None
    text, start = f"{info.element.value}({', '.join(extents)})", program.span.start + header.start(1) + place.start()
    return Fix(f"state `{text}`", (Edit(Span(start, start), f"{text} "),))


def _behind_the_end(bound: Bound, span: Span, message: str, label: str) -> Diagnostic:
    """A number or size behind the last element; where it is the extent, indices were counted from 1."""
    access, dimension = bound.access, bound.dimension
    last, place = as_written(bound.limit - 1), access.read.indices[dimension].span
    is_extent = access.index[dimension] == bound.limit and place.end
    fix = Fix(f"write `{last}`", (Edit(place, last),)) if is_extent else None
    return Diagnostic(codes.OUT_OF_BOUNDS, span, message, label, (), f"the last element has the index `{last}`", fix)


def _is_expression(item: Precondition) -> bool:
    return "stays inside" not in item.text


def _inside_help(checker: _Checker, access: Access, dimension: int, sides: Collection[str]) -> str:
    """What to write where data says whether a subscript is inside: what becomes of such points, or the nearest element.

    Args:
        sides: where it may leave, `lower` and `upper`.
    """
    ranges, operator = checker.ranges, checker.statement.operator
    first, end = ranges.boxes[access.tensor].bounds[dimension]
    if ranges.program.language == "sac":
        return _limited_sac(ranges, access, dimension, sides)
    inside = _subscript_text(ranges, access, dimension)
    limited = f"min({inside}, {as_written(end - 1)})" if "upper" in sides else inside
    limited = f"max({limited}, {as_written(first)})" if "lower" in sides else limited
    clamp = f"clamp it: `{limited}`"
    if inside == "..":
        return clamp
    lower = [f"{inside} >= {as_written(first)}"] if "lower" in sides else []
    upper = [f"{inside} < {as_written(end)}"] if "upper" in sides else []
    is_read = not checker.is_write(access)
    zero = zero_outside(ranges, checker.statement, access) if is_read else None
    if zero is None:
        left_out = f"leave points without {'an element' if is_read else 'a place'} out"
        left_out = f"{left_out}: `where {', '.join(lower + upper)}`"
        return left_out if operator == "=" else f"{left_out}; or {clamp}"
    given = _given_by_it(checker, access)
    also = f", with `where {', '.join(given)}`," if given else ""
    tensor, value = written_tensor(access.tensor, ranges.program), zero.split()[-1].rstrip(")")
    return f"`{zero}`{also} is {value} where `{tensor}` has no such element; or {clamp}"


def zero_outside(ranges: Ranges, statement: Statement, access: Access) -> str | None:
    """A read of `%%tc` that is 0 where there is no such element; `None` where a reduction would not leave its points out so."""
    operator = statement.operator
    if operator != "=" and not (operator == "+" and _is_factor(access.read, statement.value)):
        return None
    shown = in_the_text(access.text, access.index, access.read.span, ranges)
    is_bool = ranges.program.tensor(access.tensor).element is DType.BOOL
    return f"({shown} else {'false' if is_bool else '0'})"


def _subscript_text(ranges: Ranges, access: Access, dimension: int) -> str:
    """A subscript of `%%tc` as a value that can be compared; `..` stands for what the text has there."""
    index, place = (access.index[dimension],), access.read.indices[dimension]
    written = as_written(index[0])
    inside = in_the_text(written, index, place.span, ranges)
    cast = f"{place.dtype.value}(" if isinstance(place, Cast) and place.operand.dtype.is_float else ""
    # a floating subscript is truncated, which a limit of it is not
    if inside != written and not inside.startswith(cast):
        inside = f"{cast}{inside})"
    return ".." if inside == written and is_kept_otherwise(index, ranges) else inside


def _limited_sac(ranges: Ranges, access: Access, dimension: int, sides: Collection[str]) -> str:
    """The nearest element in `%%sac`; `..` stands for what the text has there."""
    first, end = ranges.boxes[access.tensor].bounds[dimension]
    last = as_written(end - 1)
    if not (end - 1).is_constant:
        if ranges.program.tensor(access.tensor).kind != "input":
            return "clamp it with `max` and `min`"
        last = f"shape({access.tensor})[{dimension}] - 1"
    limited = f"min(.., {last})" if "upper" in sides else ".."
    return f"clamp it: `max({limited}, {as_written(first)})`" if "lower" in sides else f"clamp it: `{limited}`"


def _is_factor(read: Expr, value: Expr) -> bool:
    """Whether a value is 0 where this read is: it is a product with it."""
    match value:
        case Cast(operand=inner):
            return _is_factor(read, inner)
        case Binary(op="*", left=left, right=right):
            return _is_factor(read, left) or _is_factor(read, right)
        case Binary(op="/", left=left):
            return _is_factor(read, left)
        case _:
            return value == read and value.span == read.span


def _given_by_it(checker: _Checker, access: Access) -> list[str]:
    """The clauses for indices that have their ranges from this access alone, which it gives no longer once it may be outside."""
    alone = [
        r
        for r in checker.found
        if r.source == "inferred" and all(bound.access.span == access.span for bound in r.because)
    ]
    return [
        f"{r.index} in {as_written(r.lower)}:{as_written(r.upper)}"
        for r in alone
        if r.lower is not None and r.upper is not None
    ]


def in_the_text(shown: str, index: tuple[SizeExpr, ...], span: Span, ranges: Ranges) -> str:
    """What is shown of subscripts, or their text where they are kept otherwise; a def that is called has a text of its own."""
    program = ranges.program
    inside = program.span.start <= span.start < span.end <= program.span.end
    is_text = inside and all(each.span != span for each in program.calls) and is_kept_otherwise(index, ranges)
    if is_text:
        return shown_line(program.source.slice(span))
    name = re.split(r"[(\[]", shown, maxsplit=1)[0]
    return written_tensor(name, program) + shown[len(name) :]


def is_kept_otherwise(index: Iterable[SizeExpr], ranges: Ranges) -> bool:
    """Whether a part of subscripts is kept as nobody has written it: arithmetic on floats, a narrow cast, an element of floats
    without its cast, or what `%%tc` writes with `? :` or `else`.
    """
    kept = (Opaque, Choice) if ranges.program.language == "tc" else Opaque
    atoms = (atom for each in index for atom in each.atoms())
    return any(isinstance(atom, kept) or (isinstance(atom, Datum) and atom.dtype.is_float) for atom in atoms)


def _begin_help(checker: _Checker, bound: Bound) -> str | None:
    """Where an index of `%%sac` begins too early, the bound that is missing; nothing follows from selections there."""
    e = bound.access.index[bound.dimension]
    for r in checker.found:
        if (
            checker.ranges.program.language != "sac"
            or bound.side != "lower"
            or r.lower is None
            or r.index not in e.indices
        ):
            continue
        begin = bound.limit - (e - index(r.index))
        if begin.is_constant and r.lower == 0:
            return f"give a lower bound, which is 0 where there is none: `{r.index}` has to begin at {begin.offset}"
    return None


def _range_help(checker: _Checker, e: SizeExpr) -> str:
    given = [r.index for r in checker.found if r.index in e.indices and r.source == "where"]
    in_sac = checker.ranges.program.language == "sac"
    kept = "guard the access with `? :`" if in_sac else "write `else 0`, or another value, directly behind the read"
    if given:
        return f"shorten the range of `{given[0]}`, or {kept}"
    return f"{kept}, or give a {'bound' if in_sac else '`where` range'}"


def _one_name_help(checker: _Checker, items: Sequence[Precondition], e: SizeExpr) -> str:
    """How a condition on sizes is met before the call: by equal names, by a range, or by less of the range that is given."""
    exprs = [expr for item in items for expr in item.conditions or ((item.bound.expr,) if item.bound else ())]
    several = len({name for expr in exprs for name in expr.names - expr.indices}) > 1
    one_name = "use one size name for equal extents, or " * several
    given = next((r.index for r in checker.found if r.index in e.indices and r.source == "where"), None)
    if given is None:
        return one_name + "give a `where` range"
    is_write = any(item.bound is not None and checker.is_write(item.bound.access) for item in items)
    return one_name + (f"shorten the range of `{given}`" if is_write else _range_help(checker, e))


def _range_messages(statement: Statement, ranges: Ranges) -> list[Diagnostic]:
    """TC325, TC326, TC328, TC330, TC331: legal, but probably not meant."""
    result: list[Diagnostic] = []
    for r in ranges.indices[statement.name]:
        is_reduction = r.kind == "reduction"
        cut = _guarded_cut(statement, ranges, r) if is_reduction else []
        told = is_reduction or ranges.program.language == "tc" or _computes(statement, ranges)
        empty = (_no_element(statement, r) or _empty_range(r)) if told else []
        few = cut or empty or (_one_point(r, ranges) if is_reduction or _shares_a_subscript(r, ranges) else [])
        result.extend(d for d in few if d.fix is None or all(d.fix != other.fix for other in result))
        if any(bound.access.is_border(bound.dimension) for bound in r.because):
            alone = all(bound.access.index[bound.dimension] == index(r.index) for bound in r.because)
            result.extend([] if alone else [_window_message(r)])
        elif r.source == "inferred" and not few:
            result.extend(_cut_messages(r, ranges))
    result.extend(_update_messages(statement, ranges))
    return result


def _window_message(r: IndexRange) -> Diagnostic:
    """TC332."""
    access = r.because[0].access
    message = f"`{r.index}` runs as over `{access.tensor}` with its border on both sides: `{r.text}`"
    label = f"all places of the window `{access.text}`"
    help_text = f"give another range with `where {r.index} in ...`"
    return Diagnostic(codes.PADDED_WINDOW, r.span, message, label, (), help_text)


def _computes(statement: Statement, ranges: Ranges) -> bool:
    """Whether a statement of `%%sac` was to compute a result: `[]` is empty on purpose, and so are steps on the way."""
    return statement.target in ranges.program.results and not isinstance(statement.value, Const)


def _no_element(statement: Statement, r: IndexRange) -> list[Diagnostic]:
    """TC326 of a target without elements, whose subscript is an expression: no index that the text has runs over it."""
    if r.index not in statement.computed_indices or r.lower is None or r.upper is None or not nonnegative(-r.extent):
        return []
    message = f"`{statement.target}` has no element for any size, so nothing is computed"
    return [Diagnostic(codes.EMPTY_RANGE, r.span, message, "", (), "state another extent in the result list")]


def _empty_range(r: IndexRange) -> list[Diagnostic]:
    """TC326."""
    if r.lower is None or r.upper is None or not nonnegative(-r.extent):
        return []
    follows = "the result is the identity" if r.kind == "reduction" else "nothing is computed"
    message = f"the range of `{r.index}` is empty for all sizes, so {follows}"
    needs = {b.access.span: f"needs `{b.text}`" for b in r.because if b.access.span.end}
    labels = tuple(Label(span, text) for span, text in needs.items())
    return [Diagnostic(codes.EMPTY_RANGE, r.span, message, f"`{r.text}`", labels, "check its bounds")]


def _shares_a_subscript(r: IndexRange, ranges: Ranges) -> bool:
    """Whether a bound of a range is that of a sum with other indices, as `X(i + l)` is for `l`, whatever the size of `X`."""
    shared = (b for b in r.because if len(b.access.index[b.dimension].indices) > 1)
    return any(ranges.boxes[b.access.tensor].bounds[b.dimension][1].names for b in shared)


def _one_point(r: IndexRange, ranges: Ranges) -> list[Diagnostic]:
    """TC328."""
    if r.source != "inferred" or not nonnegative(1 - r.extent):
        return []
    single = "a single value" if r.extent == 1 else "at most one value"
    what = "reduction index" if r.kind == "reduction" else "index"
    message = f"the {what} `{r.index}` has {single}, `{to_python_of(r.lower)}`"
    labels = tuple(Label(b.access.span, f"fixed by `{b.text}`") for b in r.because if b.access.span.end)
    help_text, fix = f"give its range if more is meant: `where {r.index} in ...`", None
    if narrow := _narrowed_by_where(r, ranges):
        help_text, fix = _beyond_the_ends(narrow, ranges)
    return [Diagnostic(codes.ONE_POINT_INDEX, r.span, message, f"`{r.text}`", labels, help_text, fix)]


def _narrowed_by_where(r: IndexRange, ranges: Ranges) -> Access | None:
    """An access that leaves a reduction index less than others do, as it must be inside for all of a range that `where` gives.

    Worked example: `X(i + k) * W(k) where i in 0:N`. It is inside for `k = 0` alone, though `W` has more elements.
    """
    given = {other.index for other in ranges.indices[r.statement] if other.source == "where"}
    narrow = [b.access for b in r.because if b.access.index[b.dimension].indices & given and b.access.span.end]
    free = {b.side for b in r.because if not b.access.index[b.dimension].indices & given}
    return narrow[0] if narrow and free == {"lower", "upper"} else None


def _beyond_the_ends(access: Access, ranges: Ranges) -> tuple[str, Fix | None]:
    """What to write where elements beyond the ends of an array were meant to count as 0."""
    text = ranges.program.source.slice(access.span)
    fix = Fix(f"write `({text} else 0)`", (Edit(access.span, f"({text} else 0)"),))
    given = f"`{text}` has to be inside `{access.tensor}` for all that `where` gives"
    return f"{given}; if what is beyond its ends counts as 0, write `({text} else 0)`", fix


def _guarded_cut(statement: Statement, ranges: Ranges, r: IndexRange) -> list[Diagnostic]:
    """TC331: an access under a condition on the index cuts a range that other accesses give it, or those that it indexes itself.

    The condition was meant to let the index run on, but is not seen to imply what the access needs (`discharge`).
    """
    if r.source != "inferred" or r.lower is None or r.upper is None:
        return []
    learned = [s for step in ranges.rounds[statement.name] for s in step.learned if s.index == r.index]
    own = index(r.index)
    free = [s.limit for s in learned if not s.bound.access.guards or s.bound.access.index[s.bound.dimension] == own]
    lowest = [limit.value for limit in free if limit.side == "lower"]
    highest = [limit.value for limit in free if limit.side == "upper"]
    lower = maximum(*lowest) if lowest else r.lower
    upper = minimum(*highest) + 1 if highest else r.upper
    cut = {"lower": lower != r.lower, "upper": upper != r.upper}
    for shaped in learned:
        access = shaped.bound.access
        if cut[shaped.limit.side] and any(r.index in e.indices for g in access.guards for e in g.meaning.exprs()):
            message = (
                f"`{access.text}` cuts the range of `{r.index}`, though it is made under a condition on `{r.index}`"
            )
            labels = (Label(access.span, f"needs `{shaped.bound.text}`, which the condition is not seen to imply"),)
            text = f"{r.index} in {as_written(lower)}:{as_written(upper)}"
            help_text = f"if `{r.index}` runs on where the condition is false, give its range: `where {text}`"
            fix = give(ranges, statement, text)
            return [Diagnostic(codes.GUARDED_CUT, r.span, message, f"`{r.text}`", labels, help_text, fix)]
    return []


def to_python_of(e: SizeExpr | None) -> str:
    """The text of a bound that may be unknown."""
    return "?" if e is None else to_python(e)


def _cut_messages(r: IndexRange, ranges: Ranges) -> list[Diagnostic]:
    """TC330: the upper end is the minimum of bounds with different sizes, or of a window that `where` holds inside its array."""
    if r.upper is None or len(r.upper.terms) != 1:
        return []
    mono = next(iter(r.upper.terms))
    atom = mono[0]
    if not isinstance(atom, Extremum) or len(mono) != 1:
        return []
    equal = _equal_sizes(ranges)
    names = [frozenset(equal.get(n, n) for n in argument.names) for argument in atom.arguments if argument.names]
    narrow = _narrowed_by_where(r, ranges) if r.kind == "reduction" else None
    first, *others = atom.arguments
    numbers = frozenset(ranges.scope.scalars or ())
    moved = all((first - other).names <= numbers for other in others)  # `S - D + 1`: what a window leaves of `S`
    if narrow is None and (len(names) < 2 or moved or all(other == names[0] for other in names)):
        return []
    labels = [Label(b.access.span, f"needs `{b.text}`") for b in r.because if b.side == "upper" and b.access.span.end]
    sizes = ", ".join(f"`{name}`" for name in sorted(frozenset().union(*names)))
    message = f"`{r.index}` is cut to the smallest of several extents: `{r.text}`"
    help_text, fix = f"if {sizes} are meant to be equal, use one name", None
    if narrow is not None:
        help_text, fix = _beyond_the_ends(narrow, ranges)
    return [Diagnostic(codes.CUT_TO_MINIMUM, r.span, message, "the smaller one wins", tuple(labels), help_text, fix)]


def _equal_sizes(ranges: Ranges) -> dict[str, str]:
    """One name for sizes that a call of a def compares anyway."""
    same: dict[str, str] = {}
    for equality in ranges.program.equalities:
        left, right = from_expr(equality.left, ranges.scope), from_expr(equality.right, ranges.scope)
        if len(left.names) == 1 and len(right.names) == 1 and left != right:
            (a,), (b,) = left.names, right.names
            same[b] = same.get(a, a)
    return same


def _guard_messages(statement: Statement, ranges: Ranges) -> tuple[list[Diagnostic], set[str]]:
    """TC324, where accesses under a condition narrow the range until the condition says nothing; and the indices."""
    found = {r.index: r for r in ranges.indices[statement.name] if r.source == "inferred"}
    box = index_limits(ranges.indices[statement.name])
    facts = loop_facts(ranges.indices[statement.name])
    seen: dict[int, Guard] = {}
    for bound in ranges.bounds[statement.name]:
        if bound.used:
            for guard in bound.access.guards:
                if not guard.condition.span.end:
                    continue  # of a border, which is no condition of the text
                seen.setdefault(id(guard.condition), guard)
    result: list[Diagnostic] = []
    names: set[str] = set()
    for guard in seen.values():
        tested = {name for e in guard.meaning.exprs() for name in e.indices}
        inside = [
            name for name, r in found.items() if name in tested and any(guard in b.access.guards for b in r.because)
        ]
        always = constant_truth(guard.meaning, box, facts) if inside else None
        if always is not None:
            said = _guard_message(statement, ranges, guard, always, [found[name] for name in inside])
            result.append(said if names.isdisjoint(inside) else replace(said, fix=None))  # an index has one range
            names |= set(inside)
    return result, names


def _chooses(value: Expr, condition: Expr) -> bool:
    """Whether a condition is that of a `? :`."""
    return any(isinstance(item, Select) and item.condition is condition for item in walk(value))


def _guard_message(
    statement: Statement, ranges: Ranges, guard: Guard, always: bool, inside: list[IndexRange]
) -> Diagnostic:
    truth = "true" if always else "false"
    shown = " and ".join(f"`{r.text}`" for r in inside)
    message = f"the condition is always {truth} on the inferred range{'s' * (len(inside) > 1)} {shown}"
    if ranges.program.language == "tc" and _chooses(statement.value, guard.condition):
        message += f", so what stands {'after' if always else 'before'} `:` is never taken"
    if (text := clause(ranges, inside)) is None:
        text = ", ".join(f"{r.index} in ..." for r in inside)
        fix = None
    elif always and any(each is guard.condition for each in statement.filters):
        fix = Fix(f"write the range `{text}`", (Edit(guard.condition.span, text),))
    else:
        fix = give(ranges, statement, text)
    runs = "runs" if len(inside) == 1 else "run"
    names = " and ".join(f"`{r.index}`" for r in inside)
    help_text = f"if {names} {runs} on where it is {'false' if always else 'true'}, give the range: `where {text}`"
    return Diagnostic(codes.GUARD_ALWAYS, guard.condition.span, message, f"always {truth}", (), help_text, fix)


def _update_messages(statement: Statement, ranges: Ranges) -> list[Diagnostic]:
    """TC325: a later statement that may leave elements of its target alone."""
    writes = [b for b in ranges.bounds[statement.name] if b.access.tensor == statement.target]
    known = ranges.accesses[statement.name]
    if not any(all(b.access is not a for a in known) for b in writes):
        return []
    box = ranges.boxes[statement.target]
    first = next(s for s in ranges.program.statements if s.target == statement.target)
    tensor = ranges.program.tensor(statement.target)
    if tensor.box is not None or first is statement:
        return []
    outputs = ranges.indices[statement.name][: len(box.bounds)]
    parts = [r for r, (lower, upper) in zip(outputs, box.bounds, strict=True) if r.lower != lower or r.upper != upper]
    if not parts or (statement.order and all(r.source == "where" for r in parts)):  # it goes on from what is there
        return []
    where = ", ".join(f"`{r.text}`" for r in parts)
    message = f"this statement may update only a part of `{statement.target}`: {where}"
    dimension = outputs.index(parts[0])
    lower, upper = box.bounds[dimension]
    label = f"`{statement.target}` has `{to_python(lower)} <= {parts[0].index} < {to_python(upper)}`"
    return [
        Diagnostic(
            codes.PARTIAL_UPDATE,
            statement.span,
            message,
            label,
            (),
            "the other elements keep their values; `# allow TC325` on this line says that it is meant",
        )
    ]


def _origin_messages(
    program: Program, ranges: Ranges, narrowed: set[tuple[str, str]], unwritten: set[Span]
) -> list[Diagnostic]:
    """TC321: results that start at another index than 0, unless another message is about their range or left side."""
    result: list[Diagnostic] = []
    for tensor in program.tensors:
        box = ranges.boxes.get(tensor.name)
        if tensor.kind != "output" or box is None or tensor.box is not None:
            continue
        first = next((s for s in program.statements if s.target == tensor.name), None)
        if first is not None and first.left_span in unwritten:
            continue
        names = [item.name for item in first.output_indices] if first is not None else []
        moved = [
            d
            for d, lower in enumerate(box.origin)
            if lower != 0
            and not (tensor.starts and tensor.starts[d] is not None)
            and (first is None or d >= len(names) or (first.name, names[d]) not in narrowed)
        ]
        if moved:
            result.append(_origin_message(program, tensor, ranges, moved[0]))
    return result


def _shifted(ranges: Ranges, statement: Statement, r: IndexRange, ends: tuple[SizeExpr, SizeExpr] | None) -> str | None:
    """What makes an index begin at 0 where a range from 0 on would leave out elements: in `X(N - i)` it would be `X(0)`."""
    if r.source != "inferred" or r.lower is None or r.upper is None or r.lower.indices:
        return None
    if ends is not None and nonnegative(ends[1] - r.upper):
        return None
    accesses = (each for each in ranges.accesses[statement.name] if any(r.index in e.indices for e in each.index))
    access = next(accesses, None)
    if access is None or access.read.border is not None:
        return None
    later = index(r.index) + r.lower
    read = replace(access, index=tuple(e.substitute({r.index: later}) for e in access.index))
    return f"write `{as_written(later)}` for `{r.index}`, as in `{read.text}` for `{access.text}`"


_KEPT = "write `else 0`, or another value, directly behind each read that begins before its array or ends behind it"


def _origin_message(program: Program, tensor: Tensor, ranges: Ranges, dimension: int) -> Diagnostic:
    first = next((s for s in program.statements if s.target == tensor.name), None)
    box = ranges.boxes[tensor.name]
    at = ", ".join(to_python(lower) for lower in box.origin)
    span = tensor.span
    name = str(dimension)
    labels: tuple[Label, ...] = ()
    end, shifted = "...", None
    if first is not None and dimension < len(first.output_indices):
        item = first.output_indices[dimension]
        span, name = item.span, item.name
        labels = _origin_labels(ranges, first, item.name)
        found = next(r for r in ranges.indices[first.name] if r.index == item.name)
        ends = whole(ranges, found) if found.source == "inferred" else None
        end = as_written(ends[1]) if ends is not None else end
        shifted = _shifted(ranges, first, found, ends)
        if shifted is None and found.source == "where":
            shifted = f"begin the range of `{name}` there, and {_KEPT}"
    message = f"`{tensor.name}` does not start at 0: element 0 of the array that you get is `{tensor.name}({at})`"
    help_text = f"to start at 0, {shifted or f'{_KEPT} and add `where {name} in 0:{end}`'}"
    if first is not None and name in first.computed_indices:  # it stands in no text
        bounds = [(minimum(low, SizeExpr({}, 0)), high) for low, high in box.bounds]
        help_text = (
            f"to start at 0, give all elements a value first, as with {value_first(ranges, tensor.name, bounds)}"
        )
    elif first is not None and (shared := _boxed_input(ranges, first, name, box.origin[dimension])) is not None:
        extents = ", ".join(_stated(*each) for each in box.bounds[: tensor.written_rank])
        stated = f"`-> ({tensor.element.value}({extents}) {tensor.name})`"
        start = f"write `where {name} in 0:{end}` to start at 0"
        help_text = f"`{shared}` starts there, too: {stated} says that it is meant; {start}"
    label = f"starts at `{to_python(box.origin[dimension])}`"
    return Diagnostic(codes.MOVED_ORIGIN, span, message, label, labels, help_text)


def _boxed_input(ranges: Ranges, statement: Statement, name: str, start: SizeExpr) -> str | None:
    """The parameter with a box that begins where an index does, and whose elements it counts."""
    own = index(name)
    for access in ranges.accesses[statement.name]:
        tensor = ranges.program.tensor(access.tensor)
        if tensor.kind != "input" or tensor.box is None:
            continue
        lows = (low for low, _ in ranges.boxes[access.tensor].bounds)
        if any(low == start and e == own for e, low in zip(access.index, lows, strict=False)):
            return tensor.name
    return None


def _stated(low: SizeExpr, high: SizeExpr) -> str:
    """A dimension in a type: its extent, or its box."""
    return as_written(high) if low == 0 else f"{as_written(low)}:{as_written(high)}"


def _origin_labels(ranges: Ranges, statement: Statement, index: str) -> tuple[Label, ...]:
    """The accesses that made the range start where it does."""
    lower = ranges.range(statement.name, index).lower
    learned = [s for step in ranges.rounds[statement.name] for s in step.learned if s.index == index]
    bounds = [s.bound for s in learned if s.limit.side == "lower" and s.limit.value == lower]
    return tuple(Label(b.access.span, f"needs `{b.text}`") for b in bounds if b.access.span.end)


def _unread_messages(program: Program, ranges: Ranges) -> list[Diagnostic]:
    """TC329: elements of an input beyond the window of all reads, for all sizes."""
    result: list[Diagnostic] = []
    if any(not ranges.is_complete(s.name) or _is_negative(ranges, s) for s in program.statements):
        return result  # a statement has an error of its own, and may read anything
    boxes = [box for s in program.statements if (box := _box(ranges, s)) is not None]
    for tensor in program.tensors:
        if tensor.kind != "input" or tensor.written_rank == 0 or tensor.name not in ranges.boxes:
            continue
        windows = _windows(tensor.name, boxes)
        if windows is None:
            continue
        gaps: dict[tuple[int, str], SizeExpr] = {}
        for dimension, (lower, upper, facts) in enumerate(windows):
            first, end = ranges.boxes[tensor.name].bounds[dimension]
            ends = {"start": lower - first, "end": end - 1 - upper}
            gaps |= {(dimension, place): gap for place, gap in ends.items() if holds(gap - 1, facts)}
        if gaps:
            message = _unread_message(tensor, gaps)
            result.append(Diagnostic(codes.UNREAD_INPUT, tensor.span, message, "not read completely"))
    return result


def _unread_message(tensor: Tensor, gaps: Mapping[tuple[int, str], SizeExpr]) -> str:
    """One sentence about all that is not read of an array; `gaps` are widths by dimension and end."""
    name, widths = tensor.name, set(gaps.values())
    if len(gaps) == 2 * tensor.written_rank and len(widths) == 1:
        return f"the border of `{name}` is never read: `{to_python(widths.pop())}` at both ends" + (
            " of each dimension" if tensor.written_rank > 1 else ""
        )
    parts: list[str] = []
    for (dimension, place), gap in gaps.items():
        axis = f" of dimension {dimension}" if tensor.written_rank > 1 else ""
        parts.append(f"`{to_python(gap)}` {'element' if gap == 1 else 'elements'} at the {place}{axis}")
    be = "is" if len(gaps) == 1 and next(iter(widths)) == 1 else "are"
    return f"{' and '.join(parts)} of `{name}` {be} never read"


@dataclass(frozen=True, slots=True)
class _Box:
    """Where a statement reads: what it accesses, its indices with their first and last values, what holds inside."""

    accesses: tuple[Access, ...]
    limits: IndexBox
    facts: list[SizeExpr]


def _box(ranges: Ranges, statement: Statement) -> _Box | None:
    """`None` where a statement reads nothing, which has a message of its own."""
    indices = ranges.indices[statement.name]
    if any(nonnegative(-r.extent) for r in indices):
        return None
    return _Box(ranges.accesses[statement.name], index_limits(indices), loop_facts(indices))


def _windows(name: str, boxes: Sequence[_Box]) -> list[tuple[SizeExpr, SizeExpr, list[SizeExpr]]] | None:
    """Smallest and largest index per dimension over all reads of an input, or `None` while a read may be anywhere."""
    windows: list[tuple[SizeExpr, SizeExpr, list[SizeExpr]]] = []
    for box in boxes:
        for access in box.accesses:
            if access.tensor != name:
                continue
            for dimension, e in enumerate(access.index):
                found = interval(e, box.limits)
                if not e.indices <= box.limits.keys() or found.lower is None or found.upper is None or _data(e):
                    return None
                if dimension < len(windows):
                    low, high, known = windows[dimension]
                    both = [fact for fact in known if fact in box.facts]
                    windows[dimension] = (minimum(low, found.lower), maximum(high, found.upper), both)
                else:
                    windows.append((found.lower, found.upper, box.facts))
    return windows or None


# --- equalities ------------------------------------------------------------------------------------------------------------


_UNEQUAL = {"call": codes.SIZE_MISMATCH, "declared": codes.RESULT_TYPE, "number": codes.TYPE_MISMATCH}
"""What is said of an `Equality` that never holds, by its kind."""


def _equalities(
    program: Program, ranges: Ranges
) -> tuple[tuple[EqualityCheck, ...], dict[str, SizeExpr], list[Diagnostic]]:
    """Declared dimensions and sizes of calls: proved, refuted (TC205, TC215), a definition, or left to the call (TC605)."""
    bound = {name for tensor in program.tensors if tensor.dims for dim in tensor.dims for name in from_expr(dim).names}
    bound |= set(ranges.scope.scalars or ())
    checks: list[EqualityCheck] = []
    definitions: dict[str, SizeExpr] = {}
    diagnostics: list[Diagnostic] = []
    for equality in program.equalities:
        left, right = from_expr(equality.left, ranges.scope), from_expr(equality.right, ranges.scope)
        left, right = left.substitute(definitions), right.substitute(definitions)
        if any("." in name for name in left.names | right.names):
            continue  # an extent that is unknown has a message of its own
        if _defines(left, bound, definitions):
            definitions[next(iter(left.names))] = right
            continue
        gap = left - right
        if gap == 0:
            continue
        if nonnegative(gap - 1) or nonnegative(-gap - 1):
            code = _UNEQUAL[equality.kind]
            message = f"{equality.reason}: `{to_python(left)}` can never be `{to_python(right)}`"
            help_text = None
            if equality.kind == "number":
                diagnostics.append(
                    Diagnostic(code, equality.span, f"{equality.reason}: `{to_python(right)}` never fits", "never fits")
                )
                continue
            if code is codes.RESULT_TYPE and program.language == "tc":
                inferred = to_python(left)
                help_text = (
                    f"the first statement makes `{inferred}` elements: state that, or give its index a `where` range"
                )
            diagnostics.append(Diagnostic(code, equality.span, message, "different for all sizes", (), help_text))
        else:
            checks.append(EqualityCheck(left, right, equality))
    for tensor in program.tensors:
        for number, start in enumerate(tensor.starts or ()):
            if start is None or tensor.name not in ranges.boxes:
                continue
            reason = f"`{tensor.name}` dimension {number} is declared from `{to_python(from_expr(start))}` on"
            own, declared = ranges.boxes[tensor.name].origin[number], from_expr(start, ranges.scope)
            gap = own - declared
            if nonnegative(gap - 1) or nonnegative(-gap - 1):
                message = f"{reason}, but its first index is `{to_python(own)}`"
                diagnostics.append(Diagnostic(codes.RESULT_TYPE, tensor.span, message, "different for all sizes"))
            elif gap != 0:
                checks.append(EqualityCheck(own, declared, Equality(start, start, "declared", reason, tensor.span)))
    return tuple(checks), definitions, diagnostics


def _is_consequence(message: Diagnostic, wrong: Sequence[Diagnostic], program: Program) -> bool:
    """Whether a message is about what a call computes, one of whose arguments has a size, or is a number, that it can never be.

    All that a call computes is written where the call is; a message about the whole def is about more.
    """
    sizes = [each.span for each in wrong if each.code in (codes.SIZE_MISMATCH, codes.TYPE_MISMATCH)]
    within = any(message.span.start <= each.start and each.end <= message.span.end for each in sizes)
    return within and any(each.span == each.value.span == message.span for each in program.statements)


def _defines(e: SizeExpr, bound: set[str], definitions: Mapping[str, SizeExpr]) -> bool:
    """Whether `e` is a size name that no parameter fixes."""
    if len(e.names) != 1 or e.offset or len(e.terms) != 1:
        return False
    (name,) = e.names
    mono, c = next(iter(e.terms.items()))
    return c == 1 and len(mono) == 1 and not atom_parts(mono[0]) and name not in bound and name not in definitions
