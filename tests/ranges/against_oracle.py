"""What inference says of a program, compared with the oracle on numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.program import Program, Read, Statement, walk
from tc_jupyter.ranges import Preconditions, Ranges, to_python
from tests.ranges.oracle import Oracle, guarded_reads


def discharged_in(ranges: Ranges) -> Callable[[Statement, int], bool]:
    """Whether the guards around the n-th bound of a statement, in text order, already test it."""
    flags = {
        name: {(id(b.access.read), b.dimension, b.side): b.discharged for b in bounds}
        for name, bounds in ranges.bounds.items()
    }
    flat: dict[str, list[bool]] = {}

    def of(statement: Statement) -> list[bool]:
        found = []
        for place in (statement.value, *statement.exists):
            for read, guards in guarded_reads(place):
                same = [
                    access
                    for access in ranges.accesses[statement.name]
                    if access.read == read and [(g.condition, g.polarity) for g in access.guards] == list(guards)
                ]
                for dimension in range(len(read.indices)):
                    for side in ("lower", "upper"):
                        hits = [flags[statement.name].get((id(a.read), dimension, side), False) for a in same]
                        found.append(bool(hits and hits[0]))
        return found

    def discharged(statement: Statement, number: int) -> bool:
        if statement.name not in flat:
            flat[statement.name] = of(statement)
        return flat[statement.name][number]

    return discharged


def same_ranges(program: Program, ranges: Ranges, oracle: Oracle, sizes: Mapping[str, int], text: str) -> None:
    """Every range, and what is printed of it, is the one found by search."""
    for s in program.statements:
        numbers = [(r.lower.evaluate(sizes), r.upper.evaluate(sizes)) for r in ranges.indices[s.name]]
        assert numbers == oracle.ranges[s.name], f"{text} at {sizes}: {[r.text for r in ranges.indices[s.name]]}"
        shown = [
            (eval(to_python(r.lower), {}, dict(sizes)), eval(to_python(r.upper), {}, dict(sizes)))
            for r in ranges.indices[s.name]
        ]
        assert shown == numbers, text


def reads_data(program: Program, statement: Statement) -> bool:
    """Whether an index or a condition depends on elements, or on a number that a statement computed."""
    computed = {s.target for s in program.statements}
    return any(
        isinstance(node, Read) and (bool(node.indices) or node.tensor in computed)
        for place in (statement.value, *statement.exists)
        for read, guards in guarded_reads(place)
        for part in (*read.indices, *(condition for condition, _ in guards))
        for node in walk(part)
    )


def same_preconditions(
    program: Program, found: Preconditions, bind: Callable, oracle: Oracle, sizes: Mapping[str, int], text: str
) -> None:
    """A precondition holds exactly where no access leaves its tensor; for statements that do not look at data."""
    wrong = False
    for s in program.statements:
        bad = oracle.violations(s)
        for item in found.items:
            if item.statement != s.name or item.subject != "access" or item.bound is None:
                continue
            b = item.bound
            sides = bad.get((id(b.access.read), b.dimension), (False, False))
            fails = sides[0] if b.side == "lower" else sides[1]
            wrong = wrong or fails
            where = f"{text} at {sizes}: {item.kind} {item.text} for {b.text}"
            if item.kind == "PROVED":
                assert not fails, where
            elif item.kind == "REFUTED":
                assert any(sides), where
            elif item.kind == "SIZE" or item.conditions:
                assert fails == any(c.evaluate(sizes) < 0 for c in item.conditions), where
            else:
                assert item.kind == "SIZE_SET", where
    result = bind(sizes)
    assert isinstance(result, Diagnostic) == wrong, f"{text} at {sizes}: {result}"
    if isinstance(result, Diagnostic):
        assert result.code.number == "TC601"
        assert result.help
    else:
        assert [list(r) for r in result.ranges.values()] == [list(r) for r in oracle.ranges.values()]
