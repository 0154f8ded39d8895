"""A sum in two statements (TC239) is proposed where it is the same sum.

`program.check_tc` writes the two statements before any range is known. Here they are analysed as if the user had written them, and
the note is left out where that gives an error, another range of an index, or another element type.

Worked example: `O(i,l) +=! (i > 0 ? X(i-1,j) : 0) * W(i,l)` runs over all rows of `W`, but `T(i) +=! (i > 0 ? X(i-1,j) : 0)` by
itself over those alone where `X(i-1,j)` is an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tc_jupyter.diagnostics import Diagnostic, Edit, SourceText, codes
from tc_jupyter.program import Callee, Program, Statement, check_tc
from tc_jupyter.ranges import Ranges
from tc_jupyter.syntax import parse_tc

from .function_analysis import FunctionAnalysis, analyze_program

MOST_TEXT = 10_000
"""Characters that are analysed again for such notes, all of them together; one note is always looked at."""


def without_other_sums(
    messages: Iterable[Diagnostic],
    source: SourceText,
    functions: Mapping[str, FunctionAnalysis],
    known: Mapping[str, Callee],
) -> list[Diagnostic]:
    """The messages without notes whose fix would change what is computed; only the first notes of a long text are looked at.

    Args:
        source: the text that the messages are about.
        functions: what is known of its defs.
        known: what it may call beside them.
    """
    left = max(1, MOST_TEXT // max(1, len(source.text)))
    kept: list[Diagnostic] = []
    for message in messages:
        if message.code is codes.FACTORED_SUM and message.fix is not None:
            left -= 1
            if left < 0 or not _is_same(message.fix.edits, source, functions, known):
                continue
        kept.append(message)
    return kept


def _is_same(
    edits: tuple[Edit, ...],
    source: SourceText,
    functions: Mapping[str, FunctionAnalysis],
    known: Mapping[str, Callee],
) -> bool:
    """Whether the text after the edit, which replaces one statement, computes what it did."""
    (edit,) = edits
    text = SourceText(source.text[: edit.span.start] + edit.text + source.text[edit.span.end :], source.name)
    around = [
        key for key, each in functions.items() if each.program.span.start <= edit.span.start < each.program.span.end
    ]
    parsed = parse_tc(text)
    programs = check_tc(parsed.unit, text, known).programs
    if parsed.diagnostics or not around or around[0] not in programs:
        return False
    old, program = functions[around[0]], programs[around[0]]
    new, said = analyze_program(program)
    at = next(n for n, statement in enumerate(old.program.statements) if statement.span == edit.span)
    before, after = old.program.statements, program.statements
    if any(each.is_error for each in said) or len(after) != len(before) + 1:
        return False
    pairs = [(before[n - (n > at)], after[n]) for n in range(len(after))]
    return _sums_alike(old.program, before[at], program, after[at]) and all(
        _ranges_alike(old.ranges, one, new.ranges, other) for one, other in pairs
    )


def _sums_alike(old: Program, whole: Statement, new: Program, part: Statement) -> bool:
    """Whether a part of a sum has its element type, and is not rounded before the rest is computed."""
    dtype = old.tensor(whole.target).dtype
    return new.tensor(part.target).dtype is dtype and dtype.compute is dtype


def _ranges_alike(old: Ranges, whole: Statement, new: Ranges, part: Statement) -> bool:
    """Whether the indices of the second statement run where those of the first one do."""
    limits = {r.index: (r.lower, r.upper) for r in old.indices[whole.name]}
    return all(limits.get(r.index) == (r.lower, r.upper) for r in new.indices[part.name])
