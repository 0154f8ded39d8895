"""What is known of a text, in rows: the plain text of the command line and of terminals, and what the card of a notebook shows.

Worked example, for `def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }`:

    conv(float32(N) B, float32(K) W) -> (float32 A(N - K + 1))
      A(i) +=! B(i + k) * W(k)
        0 <= i < N - K + 1  output     0 <= i + k < N  (B); round 2
        0 <= k < K          reduction  0 <= k < K  (W); round 1
      4 of 4 bounds of accesses proved
      checked at call: K <= N + 1  (range of `i`)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import indent

from tc_jupyter.diagnostics import SourceText, Span, shown_line
from tc_jupyter.program import CallSite, Program, Statement, Tensor
from tc_jupyter.ranges import IndexRange, Precondition, Ranges, given_by, to_python
from tc_jupyter.schedule import Schedule

from .analysis import Analysis, FunctionAnalysis
from .analysis_json import LEVELS, dimensions

STATUS = {
    "proved": "proved",
    "refuted": "fails for all sizes",
    "checked_at_call": "checked at call",
    "data_dependent": "data checked at call",
}
_LONGEST = 160
"""Characters of a statement that are shown."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One index: its range, `output` or `reduction`, why it has this range, and the round that found it (0: none did).

    Attributes:
        declared: the range is a whole dimension, as the signature declares it, and nothing else bounds it.
    """

    range: str
    kind: str
    because: str
    round: int
    declared: bool = False

    @property
    def reason(self) -> str:
        """`0 <= k < K  (W); round 1`."""
        return f"{self.because}; round {self.round}" if self.round else self.because


@dataclass(frozen=True, slots=True)
class StatementRows:
    """One statement, or a call (which has no rows: the statements of the callee follow)."""

    text: str
    rows: tuple[IndexRow, ...]


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One condition that is not proved; `status` is a key of `STATUS`, `about` the access or the range it is for."""

    status: str
    text: str
    about: str


def signature(found: FunctionAnalysis) -> str:
    """`conv(float32(N) B, float32(K) W) -> (float32 A(N - K + 1))`."""
    program = found.program
    inputs = ", ".join(input_text(program.tensor(name)) for name in program.parameters)
    outputs = ", ".join(shape_text(program.tensor(name), found) for name in program.results)
    return f"{program.name}({inputs}) -> ({outputs})"


def input_text(tensor: Tensor) -> str:
    """`float32(N) B`; a scalar has no parentheses."""
    if tensor.dims is None:
        return f"{tensor.element.value}[*] {tensor.name}"
    dims = ", ".join(dimensions(tensor))
    return f"{tensor.element.value}({dims}) {tensor.name}" if dims else f"{tensor.element.value} {tensor.name}"


def shape_text(tensor: Tensor, found: FunctionAnalysis) -> str:
    """`float32 A(N - K + 1)`, with the origin where it is not 0."""
    box = found.ranges.boxes.get(tensor.name)
    dtype, rank = tensor.element.value, tensor.written_rank
    if box is None:
        return f"{dtype} {tensor.name}(?)"
    if not rank:
        return f"{dtype} {tensor.name}"
    origin = [to_python(low) for low in box.origin[:rank]]
    moved = f" starting at ({', '.join(origin)})" if any(low != "0" for low in origin) else ""
    return f"{dtype} {tensor.name}({', '.join(to_python(extent) for extent in box.shape[:rank])}){moved}"


def temporaries(found: FunctionAnalysis) -> tuple[str, ...]:
    """The tensors that are computed and not returned: `float32 M(N)`."""
    computed = (tensor for tensor in found.program.tensors if tensor.kind == "temporary" and tensor.view_of is None)
    return tuple(shape_text(tensor, found) for tensor in computed)


def because(index: IndexRange, ranges: Ranges) -> str:
    """Why an index has its range, in one phrase."""
    if index.lower is None or index.source == "open":
        return "not known"
    if index.source == "where":
        return f"given by {'the bounds' if ranges.program.language == 'sac' else given_by(ranges, index)}"
    if index.source == "target":
        return "the range of the tensor that is updated"
    return " and ".join(index.reasons)


def statements(found: FunctionAnalysis) -> Iterator[StatementRows]:
    """Statements and calls in text order, each with its indices; several results of one statement are told once."""
    program = found.program
    before: tuple[Span, tuple[str, ...]] | None = None
    for number, statement in enumerate(program.statements):
        yield from (_call(call) for call in program.calls if call.position == number)
        rows = _statement(statement, program, found)
        told = statement.span, (rows.text, *(row.range for row in rows.rows))
        if not statement.span.end or told != before:
            yield rows
        before = told
    yield from (_call(call) for call in program.calls if call.position >= len(program.statements))


def _call(call: CallSite) -> StatementRows:
    return StatementRows(f"{', '.join(call.targets)} = {call.callee}({', '.join(call.arguments)})", ())


def _statement(statement: Statement, program: Program, found: FunctionAnalysis) -> StatementRows:
    indices = found.ranges.written(statement.name)
    rows = tuple(
        IndexRow(index.text, index.kind, because(index, found.ranges), index.round, _is_declared(index, program))
        for index in indices
    )
    written = statement.text or program.source.slice(statement.span) or statement.name
    text = shown_line(written)
    prefix = f"{statement.target.rpartition('.')[0]}: " if "." in statement.target else ""
    return StatementRows(prefix + (text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."), rows)


def _is_declared(index: IndexRange, program: Program) -> bool:
    if (
        index.source != "inferred"
        or index.upper is None
        or index.text != f"0 <= {index.index} < {to_python(index.upper)}"
    ):
        return False
    return to_python(index.upper) in program.sizes and all(
        to_python(bound.access.index[bound.dimension]) == index.index for bound in index.because
    )


def proved_line(items: tuple[Precondition, ...], ranges_known: bool = True) -> str:
    """`3 of 4 bounds of accesses proved`: an access has two bounds per dimension, which are those of known ranges."""
    bounds = [item for item in items if item.bound is not None]
    proved = sum(item.status == "proved" for item in bounds)
    if not bounds:
        return "no access needs a bound" if ranges_known else "no bound is proved: ranges are unknown"
    return f"{proved} of {len(bounds)} bounds of accesses proved"


def ranges_known(found: FunctionAnalysis) -> bool:
    """Whether every index of a def has a range."""
    return all(found.ranges.is_complete(each.name) for each in found.program.statements)


def open_conditions(found: FunctionAnalysis) -> tuple[ConditionRow, ...]:
    """What is not proved, one row per condition; equal rows once."""
    source = found.program.source
    rows = (
        ConditionRow(item.status, item.text, _about(item, source))
        for item in found.preconditions
        if item.status != "proved"
    )
    return tuple(dict.fromkeys(rows))


def _about(item: Precondition, source: SourceText) -> str:
    if item.range is not None:
        return f"range of `{item.range.index}`"
    place = source.slice(item.span) if item.span != Span(0, 0) else ""
    return f"`{shown_line(place)[:_LONGEST]}`" if place else item.subject


def text_form(analysis: Analysis, engine: str = "", schedules: Mapping[str, Schedule] | None = None) -> str:
    """Signature, ranges with reasons, conditions and messages as plain text; never ends with a line end.

    A def of which no statement could be read has only its messages.

    Args:
        engine: which engine calls use, for the last line; empty: no such line.
        schedules: those that were given, by name of the def.
    """
    parts = [
        function_text(found, demands(name, analysis)) + _schedule_text((schedules or {}).get(name))
        for name, found in analysis.functions.items()
        if found.ok or found.program.statements
    ]
    parts += [_open_text(name, analysis) for name in analysis.open_functions if name not in analysis.functions]
    if analysis.diagnostics:
        parts.append(analysis.render())
    if engine:
        parts.append(f"engine: {engine}")
    return "\n\n".join(parts)


def _schedule_text(schedule: Schedule | None) -> str:
    if schedule is None:
        return ""
    return f"\n  schedule that was given: {schedule.said_steps}\n{indent(schedule.loops(), '  ')}"


def _open_text(name: str, analysis: Analysis) -> str:
    lines: list[str] = []
    demanded = demands(name, analysis)
    for number, text in enumerate(open_signatures(name, analysis)):
        lines += [text, *(f"  {line}" for line in demanded[number : number + 1] if line)]
        lines.append("  ranks and ranges are known at the call")
    return "\n".join(lines)


def demands(name: str, analysis: Analysis) -> tuple[str, ...]:
    """What each definition of a `%%sac` function demands of its arguments: `demands A: value, s: shape`; nothing for `%%tc`."""
    found: list[str] = []
    for definition in analysis.open_functions.get(name, ()):
        levels = ", ".join(f"{param}: {LEVELS[level]}" for param, level in definition.demands.items())
        found.append(f"demands {levels}" if levels else "")
    return tuple(found)


def open_signatures(name: str, analysis: Analysis) -> tuple[str, ...]:
    """The signatures of a function whose ranks are known at the call; it may have several definitions."""
    definitions = analysis.open_functions.get(name, ())
    return tuple(str(getattr(definition, "signature", name)) for definition in definitions) or (name,)


def function_text(found: FunctionAnalysis, demanded: tuple[str, ...] = ()) -> str:
    """What is known of one def, in rows."""
    lines = [signature(found), *(f"  {line}" for line in demanded if line)]
    blocks = list(statements(found))
    rows = [row for block in blocks for row in block.rows]
    width = max((len(row.range) for row in rows), default=0)
    kinds = max((len(row.kind) for row in rows), default=0)
    for block in blocks:
        lines.append(f"  {block.text}")
        lines += [f"    {row.range:<{width}}  {row.kind:<{kinds}}  {row.reason}" for row in block.rows]
    if names := temporaries(found):
        lines.append(f"  temporary: {', '.join(names)}")
    lines.append(f"  {proved_line(found.preconditions, ranges_known(found))}")
    lines += [f"  {STATUS[row.status]}: {row.text}  ({row.about})" for row in open_conditions(found)]
    return "\n".join(lines)
