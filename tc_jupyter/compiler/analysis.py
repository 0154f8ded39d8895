"""The front half of the arrow: text -> everything that can be said without arrays and without a device.

`analyze` is pure and thread-safe: it touches neither device nor user namespace, and it never raises for a mistake in the text.

Worked example: `analyze("def mv(float(R,C) A, float(C) B) -> (o) { o(i) +=! A(i,j) * B(j) }").functions["mv"].ranges` holds
`0 <= i < R` and `0 <= j < C`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from os import PathLike
from typing import TYPE_CHECKING, Any

from tc_jupyter.diagnostics import (
    NO_SPAN,
    CompileError,
    Diagnostic,
    Edit,
    Severity,
    SourceText,
    Span,
    codes,
    nearest,
    render,
)
from tc_jupyter.diagnostics.work import WORK, allowed, in_turn
from tc_jupyter.program import ArgumentType, Callee, Program, check_tc
from tc_jupyter.program.check_tc import Open
from tc_jupyter.runtime.forks import MAKING
from tc_jupyter.syntax import Parsed, in_order, own_operators, parse_sac, parse_tc
from tc_jupyter.syntax.sac_tree import SacFunction
from tc_jupyter.syntax.tree import Def, Use

from .analysis_json import open_json, to_json
from .analysis_sac import analyze_sac
from .function_analysis import FunctionAnalysis, analyze_program
from .laws import broken_law
from .meanings import with_meanings
from .told_before import new_at_calls, of_earlier_cells
from .uses import NOTHING, Used, against

if TYPE_CHECKING:
    from .derivatives import Kind

STEPS = 1_200_000
"""What the reasoning about sizes of a cell may take, and more for longer texts; a step takes a microsecond or two."""
STEPS_PER_CHARACTER = 40


@dataclass(frozen=True, repr=False)
class Analysis:
    """The result of `analyze`.

    Attributes:
        source: the text that was given.
        language: `tc` or `sac`.
        diagnostics: every message of the text: errors, warnings, notes, each in source order.
        functions: def name -> what is known of it.
        parsed: the tree, for tools.
    """

    source: SourceText
    language: str
    diagnostics: tuple[Diagnostic, ...]
    functions: Mapping[str, FunctionAnalysis]
    parsed: Parsed | None = None
    open_functions: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys((*self.functions, *self.open_functions))) or "nothing"
        count = len(self.diagnostics)
        return f"<analysis of {names}: {count or 'no'} message{'' if count == 1 else 's'}>"

    @cached_property
    def ok(self) -> bool:
        """No message is an error."""
        return not any(diagnostic.is_error for diagnostic in self.diagnostics)

    def to_json(self) -> dict[str, Any]:
        """The data of `tc-jupyter/analysis/1`: functions, ranges, preconditions, diagnostics; in `%%sac` signatures and demands."""
        data = to_json(self.source, self.functions.values(), self.diagnostics)
        if self.open_functions:
            data["open"] = {
                name: [open_json(each.signature, each.demands) for each in definitions]
                for name, definitions in self.open_functions.items()
            }
        return data

    def render(self, color: bool = False) -> str:
        """All messages as text."""
        return render(self.diagnostics, self.source, color)


def analyze(
    text: str,
    language: str = "tc",
    strict: bool = False,
    allow: Iterable[str] = (),
    known: Mapping[str, Any] | None = None,
    name: str = "cell",
    used: Used = NOTHING,
) -> Analysis:
    """Analyse the text of a cell.

    Args:
        text: one or more defs.
        language: `tc` or `sac`.
        strict: preconditions on sizes that are not proved become errors.
        allow: codes of warnings and notes not to report.
        known: functions (or programs) of earlier cells that the text may call, by name.
        name: what messages call the text.
        used: what the files have that the text uses. Nothing is read here: without it, their functions are among `known`.

    Raises:
        TypeError: `text` is no string.
        ValueError: `language` is neither `tc` nor `sac`, or `allow` has what is no code.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
        hint = "; `tc.load` compiles a file" if isinstance(text, PathLike) else ""
        raise TypeError(f"the text of a cell is a string, not `{type(text).__name__}`{hint}")
    if not isinstance(known, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"known={known!r:.60}: expected functions by name, as in `{{'f': module.f}}`")
    silent = frozenset(allowed_codes(allow))
    with MAKING, allowed(STEPS + STEPS_PER_CHARACTER * len(text)):
        known = {**(known or {}), **used.functions}
        return _analysis(SourceText(text, name), language, strict, silent, known, used)


def _analysis(
    source: SourceText, language: str, strict: bool, silent: frozenset[str], known: Mapping[str, Any], used: Used
) -> Analysis:
    if language == "sac":
        sac = analyze_sac(source, known, strict)
        messages = _with_files(list(sac.messages), source, sac.parsed.unit.uses, sac.parsed.unit.functions, used)
        shown = with_meanings(finish(messages, strict, silent, sac.parsed.allow), source, _others(known))
        return Analysis(source, language, shown, sac.functions, None, sac.open_functions)
    if language != "tc":
        raise ValueError(f"language {language!r} is neither 'tc' nor 'sac'")
    callees, refused = with_derivatives(source, callable_values(known))
    parsed = parse_tc(source, reducers_in(source.text, callees))
    with allowed(reserve=WORK.left // 4 * 3):  # a call is a copy of what it calls; most work is to find the ranges
        checked = check_tc(parsed.unit, source, callees)
    functions: dict[str, FunctionAnalysis] = {}
    without = {item.span for item in refused}
    meant = (item for item in checked.diagnostics if not (item.code is codes.UNKNOWN_NAME and item.span in without))
    of_text, of_meaning = _with_types(parsed.diagnostics, list(meant))
    messages = [*of_text, *of_meaning, *refused]
    defined = (program for key, program in checked.programs.items() if program.reducer and key not in checked.broken)
    messages += [each for each in map(broken_law, defined) if each is not None]
    told: dict[str, tuple[Diagnostic, ...]] = {}
    for (key, program), limit in in_turn(list(checked.programs.items())):
        with limit:
            functions[key], told[key] = analyze_program(program, key not in checked.broken)
    earlier = of_earlier_cells(known)

    def said_of(name: str) -> Sequence[tuple[Program, Sequence[Diagnostic]]]:
        return [(functions[name].program, told[name])] if name in functions else earlier(name)

    for key, found in functions.items():
        messages += told[key] if strict else new_at_calls(found.program, told[key], said_of)
    messages = _with_files(messages, source, parsed.unit.uses, parsed.unit.defs, used)
    messages = _without_consequences(messages, source, [each.span.start for each in parsed.unit.defs])
    shown = with_meanings(finish(_apart(of_text, messages), strict, silent, parsed.allow), source, _others(known))
    return Analysis(source, language, shown, functions, parsed)


def _with_files(
    messages: list[Diagnostic],
    source: SourceText,
    uses: tuple[Use, ...],
    defs: Sequence[Def | SacFunction],
    used: Used,
) -> list[Diagnostic]:
    """The messages, and those about files; calls of what nobody knows are none where a file could not be used."""
    if not uses:
        return messages

    def follows(item: Diagnostic) -> bool:
        called = source.text[item.span.end : item.span.end + 2].lstrip()[:1] == "("
        return item.code is codes.UNKNOWN_NAME and called and not used.is_whole

    own = against(used, uses, ((item.name, item.span) for item in defs))
    return [*used.diagnostics, *own, *(item for item in messages if not follows(item))]


_NEAR = 200
"""Characters behind a left side in which its operator is looked for."""


def _with_types(
    of_text: Sequence[Diagnostic], of_meaning: list[Diagnostic]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Messages of the parser and of the checker; what both say of a place, as of `Z(i) ^= e`, the checker says with types."""
    better = {(item.code, item.span, item.message): item for item in of_meaning if item.code is codes.SYNTAX_ERROR}
    told = [(item.code, item.span, item.message) for item in of_text]
    both = better.keys() & set(told)
    found = [better.get(key, item) for key, item in zip(told, of_text, strict=True)]
    return found, [item for item in of_meaning if (item.code, item.span, item.message) not in both]


_OF_LEFT_SIDES = (codes.OUT_OF_BOUNDS, codes.CHECKED_AT_CALL, codes.PARTIAL_UPDATE, codes.UNWRITTEN_ELEMENT)


def _without_consequences(messages: list[Diagnostic], source: SourceText, defs: Sequence[int]) -> list[Diagnostic]:
    """The messages without those that follow from others: one mistake is told once.

    TC221 and TC222 follow where `=` should combine values. What is told of the ranges of left sides follows where a statement
    reads its own target in no order; `defs` is where the defs begin, of which each has targets of its own.
    """

    def name_at(span: Span) -> tuple[int, str]:
        name = re.match(r"\w*", source.text[span.start : span.end])
        return bisect_right(defs, span.start), name.group() if name else ""

    unordered = {name_at(item.span) for item in messages if item.code is codes.RECURRENCE}
    uncombined = {item.span.start for item in messages if item.code is codes.REDUCTION_MISSING}

    def follows(item: Diagnostic) -> bool:
        if item.code in _OF_LEFT_SIDES and name_at(item.span) in unordered:
            return True
        if item.code not in (codes.NOT_INJECTIVE, codes.UNWRITTEN_ELEMENT):
            return False
        behind = source.text[item.span.end : item.span.end + _NEAR]
        return item.span.end + len(behind) - len(behind.lstrip()) in uncombined

    return [item for item in messages if not follows(item)] if uncombined or unordered else messages


def _apart(of_text: Sequence[Diagnostic], messages: list[Diagnostic]) -> list[Diagnostic]:
    """The messages; of a fix about the meaning that writes over what a fix of the text changes, only a title without code stays."""
    spans = sorted(
        {edit.span for item in of_text if item.fix for edit in item.fix.edits if edit.span.end > edit.span.start}
    )
    ends = list(accumulate((span.end for span in spans), max))

    def overlaps(edit: Edit) -> bool:
        before = bisect_left(spans, edit.span.end, key=lambda span: span.start)
        return before > 0 and edit.span.end > edit.span.start and ends[before - 1] > edit.span.start

    known = set(map(id, of_text))
    return [
        replace(item, fix=None, help=item.help or ("" if "`" in item.fix.title else item.fix.title) or None)
        if id(item) not in known and item.fix and any(map(overlaps, item.fix.edits))
        else item
        for item in messages
    ]


MOST_DERIVATIVES = 8
"""Of derivatives of a def in a cell; each is several times as long as the one before."""
_DERIVATIVE = re.compile(r"\b[A-Za-z_]\w*(?:\.(?:vjp|jvp))+(?=\s*\()", re.ASCII)


def with_derivatives(
    source: SourceText, callees: Mapping[str, Callee], pending: frozenset[str] = frozenset()
) -> tuple[dict[str, Callee], tuple[Diagnostic, ...]]:
    """What a text may call, with the derivatives that it calls, as `conv.vjp`; and why one of those cannot be computed.

    Args:
        pending: derivatives that are being made, which cannot call themselves.
    """
    found, refused = dict(callees), list[Diagnostic]()
    for match in _DERIVATIVE.finditer(re.sub(r"#[^\n]*", lambda comment: " " * len(comment[0]), source.text)):
        name = match[0]
        if name in found or name in pending or name.count(".") > MOST_DERIVATIVES:
            continue
        try:
            program = _derivative(name, source, found, pending | {name})
        except CompileError as problem:
            span = Span(match.start(), match.end())
            refused += [replace(each, span=span, labels=(), fix=None) for each in problem.diagnostics[:1]]
            continue
        if program is not None:
            found[name] = program
    return found, tuple(refused)


def _derivative(name: str, source: SourceText, callees: dict[str, Callee], pending: frozenset[str]) -> Callee | None:
    """What `conv.vjp` is; `None` where there is no def `conv` without errors."""
    base, _, kind = name.rpartition(".")
    known = callees.get(base)
    if "." in base:
        known = known or _derivative(base, source, callees, pending)
    elif any(each.name.name == base for each in parse_tc(source).unit.defs):
        known = _program_of(SourceText(text_of_def(source.text, "tc", base)), base, callees, pending)
    rule = getattr(getattr(known, "options", None), "rule", None)
    if rule is not None and kind == "vjp":
        return rule.program
    way: Kind = "vjp" if kind == "vjp" else "jvp"
    if known is None:
        return None
    if isinstance(known, Program):
        return _derived(known, way)
    program = known.program_for(())
    return _derived(program, way) if isinstance(program, Program) else _OpenDerivative(known, way)


def _derived(program: Program, kind: Kind) -> Program:
    """The program of the derivatives of a def.

    Raises:
        CompileError: TC250.
    """
    from .derivatives import derived_text, refuse  # noqa: PLC0415  (few cells call one)

    text = derived_text(program, analyze_program(program)[0].ranges, kind)
    found = _program_of(SourceText(text), f"{program.name}_{kind}", {}, frozenset())
    if found is None:
        raise refuse(program, "it is too long")
    return found


@dataclass(frozen=True, slots=True)
class _OpenDerivative:
    """The derivative of a function of an earlier cell whose program depends on the types of the arguments."""

    about: Open
    kind: Kind

    def program_for(self, arguments: Sequence[ArgumentType]) -> Program | tuple[Diagnostic, ...]:
        """The program for arguments of these types, the first of which are those of the function; or why there is none."""
        refused: tuple[Diagnostic, ...] = ()
        for count in range(1, len(arguments) + 1):
            program = self.about.program_for(arguments[:count])
            if not isinstance(program, Program):
                refused = refused or program
                continue
            try:
                found = _derived(program, self.kind)
            except CompileError as problem:
                return problem.diagnostics
            names = found.parameters
            if len(names) == len(arguments):
                return found
            refused = (Diagnostic(codes.ARGUMENT_COUNT, NO_SPAN, f"it takes {len(names)}: {', '.join(names)}"),)
        return refused


def _program_of(
    source: SourceText, name: str, callees: Mapping[str, Callee], pending: frozenset[str]
) -> Program | None:
    """The program of one def of a text, if it has no errors."""
    callees, _ = with_derivatives(source, callees, pending)
    checked = check_tc(parse_tc(source).unit, source, callees)
    program = checked.programs.get(name)
    return None if program is None or checked.broken else program


def called_names(text: str, language: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of some functions that a text may call: their names stand outside its comments, in `%%tc` before brackets or `^`."""
    called = r"\w+(?=(?:\.(?:vjp|jvp))*\s*\(|=!|\s*\^)"
    comments, word = (r"//[^\n]*|/\*.*?\*/", r"\w+") if language == "sac" else (r"#[^\n]*", called)
    words = set(re.findall(word, re.sub(comments, " ", text, flags=re.DOTALL)))
    return tuple(name for name in names if name in words)


def called_beside(text: str, language: str, name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of some functions that other defs of a text than the one of a name may call."""
    others = (text[each.span.start : each.span.end] for each in _defs(text, language) if each.name.name != name)
    return called_names("\n".join(others), language, names)


def _defs(text: str, language: str) -> Sequence[Def | SacFunction]:
    source = SourceText(text)
    return parse_tc(source).unit.defs if language == "tc" else parse_sac(source).unit.functions


def text_of_def(text: str, language: str, name: str) -> str:
    """A text in which the defs that one of its defs does not need are blanks: every place stays where it was."""
    defs = _defs(text, language)
    names = {each.name.name for each in defs}
    operators = (each for each in names if not each.isidentifier())  # which are called without their names
    needed, waiting = set[str](), [name, *operators]
    while waiting:
        at = waiting.pop()
        if at in needed:
            continue
        needed.add(at)
        for each in defs:
            if each.name.name == at:
                waiting += called_names(text[each.span.start : each.span.end], language, names)
    for each in defs:
        if each.name.name not in needed:
            start, end = each.span.start, each.span.end
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def allowed_codes(allow: str | Iterable[str]) -> tuple[str, ...]:
    """The codes of `allow=`, in capitals; a single one may stand alone.

    Raises:
        TypeError: not strings.
        ValueError: there is no such code.
    """
    if not isinstance(allow, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
        raise TypeError(f"allow={allow!r}: expected codes such as 'TC322'")
    given = (allow,) if isinstance(allow, str) else tuple(allow)
    for code in given:
        if not isinstance(code, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
            raise TypeError(f"allow={code!r}: a code is a string such as 'TC322'")
        if code.upper() not in codes.ALL:
            close = nearest(code.upper(), codes.ALL)
            raise ValueError(f"allow: there is no message {code!r}" + (f"; did you mean {close}?" if close else ""))
    return tuple(code.upper() for code in given)


def _others(known: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was given as functions that the text may call, and is none."""
    callees = callable_values(known)
    return {name: value for name, value in (known or {}).items() if name not in callees}


def callable_values(known: Mapping[str, Any] | None) -> dict[str, Callee]:
    """What defs may call: programs, and functions of earlier cells, which have a program per types of the arguments."""
    return {
        name: value
        for name, value in (known or {}).items()
        if isinstance(value, Program) or hasattr(value, "program_for")
    }


def reducers_in(text: str, callees: Mapping[str, Callee]) -> tuple[str, ...]:
    """The names of reducers of earlier cells that stand before `=!` in a text."""
    return tuple(name for name in own_operators(text) if _is_reducer(callees.get(name)))


def _is_reducer(value: Callee | None) -> bool:
    program = value if isinstance(value, Program) or value is None else value.program_for(())
    return isinstance(program, Program) and program.reducer is not None


def finish(
    messages: Iterable[Diagnostic], strict: bool, allow: frozenset[str], places: Iterable[tuple[str, Span]] = ()
) -> tuple[Diagnostic, ...]:
    """Errors, warnings, notes, each in source order; each message once, silenced ones left out, strict mode applied."""
    kept = [_strict(message) if strict else message for message in dict.fromkeys(messages)]
    errors = {(message.code.number, message.span) for message in kept if message.is_error}
    kept = [each for each in kept if each.is_error or (each.code.number, each.span) not in errors]
    kept = [each for each in kept if not _follows(each, kept)]
    places = tuple(places)
    shown = in_order(message for message in kept if not _silenced(message, allow, places))
    return tuple(sorted(shown, key=lambda message: _RANK[message.severity]))


def _follows(message: Diagnostic, others: Sequence[Diagnostic]) -> bool:
    """Whether a partition is hidden by one with an error, whose bounds will change."""
    early = [label.span for label in message.labels] if message.code is codes.DEAD_PARTITION else []
    return any(
        other.is_error and span.start <= other.span.start and other.span.end <= span.end
        for span in early
        for other in others
    )


_RANK = {severity: rank for rank, severity in enumerate(Severity)}


def _strict(message: Diagnostic) -> Diagnostic:
    if message.code is codes.CHECKED_AT_CALL:
        return replace(message, code=replace(message.code, severity=Severity.ERROR))
    return message


def _silenced(message: Diagnostic, allow: frozenset[str], places: tuple[tuple[str, Span], ...]) -> bool:
    if message.is_error:
        return False
    here = message.span.start
    return message.code.number in allow or any(
        code == message.code.number and span.start <= here < span.end for code, span in places
    )
