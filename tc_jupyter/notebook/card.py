"""The card of a cell as static HTML: what `compiler.text_form` says as text, as a compact table.

The HTML has no script, no style sheet and no address: it is readable on a saved notebook, on a dark page, and where styles are
stripped. Structure is therefore in elements (`table`, `code`, `u`, `details`), looks are in style attributes, and severity is a
word and a sign, never a colour alone. Colours are the theme's where there is one, else tones that read on white and on black.

Worked example: `html_card(analyze("def f(float(N) X) -> (Y) { Y(i) = X(i) }"), "cpu")` is one `<div data-tc="card">`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape

from tc_jupyter.compiler import Analysis, FunctionAnalysis
from tc_jupyter.compiler.text_form import (
    STATUS,
    ConditionRow,
    IndexRow,
    StatementRows,
    demands,
    input_text,
    open_conditions,
    open_signatures,
    proved_line,
    ranges_known,
    shape_text,
    statements,
    temporaries,
)
from tc_jupyter.diagnostics import Diagnostic, Severity, SourceText, Span
from tc_jupyter.schedule import Schedule

SIGNS = {Severity.ERROR: "✗ error", Severity.WARNING: "⚠ warning", Severity.NOTE: "ℹ note"}


def _readable(tone: str) -> str:
    """A tone mixed with the colour of the text around: darker on a light page, lighter on a dark one."""
    return f"color-mix(in srgb,{tone} 55%,currentColor)"


COLOURS = {
    Severity.ERROR: _readable("#dc4440"),
    Severity.WARNING: _readable("#b26a00"),
    Severity.NOTE: _readable("#3a7fd0"),
}
GOOD, CHECKED, BAD = _readable("#2e8b57"), _readable("#3a7fd0"), _readable("#dc4440")
STATUS_SIGNS = {"proved": "✓", "refuted": "✗", "checked_at_call": "◷", "data_dependent": "◷"}
GLOSSARY = {
    "kind": "output: the index is on the left side; reduction: it is not, and its values are combined",
    "from": "what says the range, or the round that found it: an access with two open indices waits for a round that knows one",
    "because": "the accesses that bound the index, and the round that found its range: an access with two open indices waits",
    "hull": "the elements of the smallest box around those that are needed",
    "exact": "the elements that are needed, counted one by one",
    "TVM": "the elements of the box that the compiler TVM would compute: ends of ranges are combined, not sets of elements",
    "visits": "how often the loops around this stage come to its place",
    "computed": "the elements that the generated loops compute",
    "memory held": "bytes of the largest box of any visit",
    "computed again": "elements that several visits need and each computes anew",
    "p10": "a tenth of the samples were shorter",
    "p90": "a tenth of the samples were longer",
    "best": "the shortest sample",
    "of limit": "the part of what this machine could do at best, by its arithmetic or by its memory",
    "spilled bytes": "bytes per thread that found no register and lie in memory",
    "occupancy": "the part of the threads of a multiprocessor that can be there at the same time",
    "InferBound": "how TVM finds the range of each loop, from the last stage to the first",
}
"""Words of the trade, explained where they stand."""
SOURCE_LIMIT = 30_000
"""Characters of generated text kept in the saved card; more is a call of `%tc source` away."""
MOST_MESSAGES = 50
"""Messages drawn in a card; the count of the others is said."""

_LINE = "var(--jp-border-color2,#80808059)"
_MONO = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:.93em"
# a page that styles `code` and `pre` (JupyterLab, nbconvert) gives them a background that may be invisible in the other theme
_PLAIN = "background:none;color:inherit;border:0;padding:0"
FONT_SIZE = (
    "font-size:max(var(--jp-ui-font-size1,13px),var(--jp-code-font-size,13px),"
    "calc(var(--jp-content-font-size1,14px) - 1px))"
)
"""As large as the largest of what a reader chose for menus, for code and for other content, where JupyterLab has 13, 13 and 14
pixels. All else in cards and views is told in `em`."""
_CODE = f"{_MONO};{_PLAIN};white-space:pre-wrap"
_MOST_RANGES = 8
"""Ranges that a card lists; of more, those that are as declared are folded."""
_SHORT = 40
"""Letters of a cell of a table that stay in one line: on a narrow page every word would have a line of its own."""
_NARROWEST = 26
"""Letters that a line of a statement has at least in the table of ranges: on a narrow page the table is scrolled."""
_LETTER = 0.57
"""Width in `em` of a letter of code."""
_TAG = re.compile(r"<[^>]*>")
_CELL = "padding:1px 1.2em 1px 0;text-align:left;vertical-align:baseline;border:0;font-weight:inherit;max-width:none"
_TABLE = "border-collapse:collapse;border:0;color:inherit;margin:0;font-size:inherit;width:auto;table-layout:auto"
_MUTED = "opacity:.72"
_TERM = "text-decoration:underline dotted;text-underline-offset:3px;cursor:help"


def html_card(
    analysis: Analysis,
    engine: str,
    sources: Mapping[str, Mapping[str, str]] | None = None,
    schedules: Mapping[str, Schedule] | None = None,
) -> str:
    """The card.

    Args:
        engine: which engine calls use and why, in one line.
        sources: per def, generated text by title, shown folded.
        schedules: those that were given, by name of the def.
    """
    folded = sources or {}
    parts = [
        _function(found, folded.get(name, {}), demands(name, analysis), (schedules or {}).get(name))
        for name, found in analysis.functions.items()
    ]
    opened = (name for name in analysis.open_functions if name not in analysis.functions)
    parts += [_open(name, analysis, folded.get(name, {})) for name in opened]
    parts += [_diagnostic(diagnostic, analysis.source) for diagnostic in analysis.diagnostics[:MOST_MESSAGES]]
    hidden = len(analysis.diagnostics) - MOST_MESSAGES
    if hidden > 0:
        parts.append(f"<div>{hidden} more messages are not shown here</div>")
    foot = f'<div style="{_MUTED};font-size:.88em;margin-top:6px">engine: {escape(engine)}</div>' if engine else ""
    style = (
        f"border:1px solid {_LINE};border-radius:4px;padding:6px 12px 8px;margin:2px 0;max-width:100%;overflow-x:auto;"
        f"line-height:1.45;{FONT_SIZE}"
    )
    return f'<div data-tc="card" style="{style}">{_ruled(parts)}{foot}</div>'


def _ruled(parts: list[str]) -> str:
    rule = f'<div style="border-top:1px solid {_LINE};margin:8px 0"></div>'
    return rule.join(parts)


# --- one def ---------------------------------------------------------------------------------------------------------------------


def _function(
    found: FunctionAnalysis, sources: Mapping[str, str], demanded: tuple[str, ...], schedule: Schedule | None
) -> str:
    folded = "".join(_folded(title, text) for title, text in sources.items())
    head = _signature(found) + "".join(map(_demand, demanded))
    return f"{head}{_ranges(list(statements(found)))}{_temporaries(found)}{_conditions(found)}{_schedule(schedule)}{folded}"


def _schedule(schedule: Schedule | None) -> str:
    """The loops that were given, and the steps that make them, folded."""
    if schedule is None:
        return ""
    loops = f'<pre style="{_MONO};{_PLAIN};white-space:pre-wrap;margin:0">{escape(schedule.loops())}</pre>'
    name = schedule.graph.program.name
    steps = _folded(schedule.said_steps, schedule.to_python(name)) if schedule.steps else ""
    return f"<div>schedule that was given, loops from the outside:{loops}{steps}</div>"


def _signature(found: FunctionAnalysis) -> str:
    program = found.program
    inputs = ", ".join(escape(input_text(program.tensor(name))) for name in program.parameters)
    results = [f"<b>{escape(shape_text(program.tensor(name), found))}</b>" for name in program.results]
    outputs = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f'<div><code style="{_CODE}"><b>{escape(program.name)}</b>({inputs}) → {outputs}</code></div>'


def _open(name: str, analysis: Analysis, sources: Mapping[str, str]) -> str:
    demanded = demands(name, analysis)
    lines = "".join(
        f"<div><b>{_code(text)}</b></div>{''.join(map(_demand, demanded[number : number + 1]))}"
        for number, text in enumerate(open_signatures(name, analysis))
    )
    said = f'<div style="{_MUTED}">ranks and ranges are known at the call</div>'
    return lines + said + "".join(_folded(title, text) for title, text in sources.items())


def _demand(text: str) -> str:
    """What a definition demands of its arguments: value, shape, rank or nothing."""
    return f'<div style="{_MUTED}">{escape(text)}</div>' if text else ""


def _ranges(blocks: list[StatementRows]) -> str:
    if not blocks:
        return ""
    count = sum(row.declared for block in blocks for row in block.rows)
    if sum(len(block.rows) for block in blocks) <= _MOST_RANGES or not count:
        return _range_table(blocks)
    told, as_declared = (
        [replace(block, rows=tuple(row for row in block.rows if row.declared is declared)) for block in blocks]
        for declared in (False, True)
    )
    said = f"{count} range{'s are' if count > 1 else ' is'} as declared"
    folded = _range_table([block for block in as_declared if block.rows])
    style = 'style="cursor:pointer"'
    shown = (
        _range_table(told)
        if any(block.rows for block in told)
        else "".join(f"<div>{_code(b.text)}</div>" for b in told)
    )
    return f"{shown}<details><summary {style}>{said}</summary>{folded}</details>"


def _range_table(blocks: list[StatementRows]) -> str:
    head = _row(
        ["statement", "range", term("kind", True), term("because", True)],
        "th",
        f"{_MUTED};border-bottom:1px solid {_LINE}",
    )
    return f'<table style="{_TABLE};margin:4px 0"><thead>{head}</thead><tbody>{"".join(map(_block, blocks))}</tbody></table>'


def _block(block: StatementRows) -> str:
    if not block.rows:
        return _row([_code(block.text), "", "", ""])
    rows = [[_code(row.range), row.kind, _because(row)] for row in block.rows]
    width = f"min-width:{_LETTER * min(len(block.text), _NARROWEST):.0f}em"
    statement = f'<td rowspan="{len(rows)}" style="{_CELL};white-space:pre-wrap;{width}">{_code(block.text)}</td>'
    first, *rest = (
        "".join(cell(content, f"{_CELL};{_MUTED}" if number == 1 else _CELL) for number, content in enumerate(row))
        for row in rows
    )
    style = f'style="background:none;border-top:1px solid {_LINE}"'
    return f"<tr {style}>{statement}{first}</tr>" + "".join(f'<tr style="background:none">{row}</tr>' for row in rest)


def _because(row: IndexRow) -> str:
    found = f' <span style="{_MUTED};font-size:.9em;white-space:nowrap">round {row.round}</span>' if row.round else ""
    return (_code(row.because) if row.round else _marked(row.because)) + found


def term(word: str, reached: bool = False) -> str:
    """A word with its explanation, where it is one of the trade; `reached`: by the key Tab, too, as one of each column is."""
    if word not in GLOSSARY:
        return escape(word)
    keys = ' tabindex="0"' if reached else ""
    return f'<abbr title="{escape(GLOSSARY[word])}"{keys} style="{_TERM}">{escape(word)}</abbr>'


def _row(cells: Iterable[str], tag: str = "td", style: str = "") -> str:
    content = "".join(cell(each, f"{_CELL};{style}", tag) for each in cells)
    return f'<tr style="background:none">{content}</tr>'


def cell(content: str, style: str, tag: str = "td") -> str:
    """A cell of a table; what is short stays in one line, and code in it follows."""
    wrap = "pre-wrap" if len(_TAG.sub("", content)) > _SHORT else "pre"
    return f'<{tag} style="{style};white-space:{wrap}">{content}</{tag}>'


def _temporaries(found: FunctionAnalysis) -> str:
    names = temporaries(found)
    return f"<div>temporary {_code(', '.join(names))}</div>" if names else ""


def _conditions(found: FunctionAnalysis) -> str:
    rows = open_conditions(found)
    known = ranges_known(found)
    sign = "✓" if known and not any(row.status == "refuted" for row in rows) else "✗"
    colour = GOOD if sign == "✓" else BAD
    summary = f'<span style="color:{colour}">{sign}</span> {escape(proved_line(found.preconditions, known))}'
    listed = "".join(_condition(row) for row in rows)
    table = f'<table style="{_TABLE}"><tbody>{listed}</tbody></table>' if listed else ""
    return f"<div>{summary}</div>{table}"


def _condition(row: ConditionRow) -> str:
    colour = BAD if row.status == "refuted" else CHECKED
    sign = f'<span style="color:{colour}">{STATUS_SIGNS[row.status]}</span>'
    about = f'<span style="{_MUTED}">{_marked(row.about)}</span>'
    return _row([f"{sign} {escape(STATUS[row.status])}", f"<b>{_code(row.text)}</b>", about])


def _folded(title: str, text: str) -> str:
    shown = text if len(text) <= SOURCE_LIMIT else text[:SOURCE_LIMIT] + "\n... (cut: `%tc source` shows all)"
    style = f"{_MONO};{_PLAIN};white-space:pre;overflow:auto;max-height:28em;margin:4px 0 4px 12px;line-height:1.35"
    summary = f'<summary style="cursor:pointer">{escape(title)}</summary>'
    return f'<details style="margin-top:4px">{summary}<pre style="{style}">{escape(shown)}</pre></details>'


# --- messages --------------------------------------------------------------------------------------------------------------------


def _diagnostic(diagnostic: Diagnostic, source: SourceText) -> str:
    code, colour = diagnostic.code, COLOURS[diagnostic.severity]
    line, column = source.position(diagnostic.span.start)
    head = (
        f'<b style="color:{colour}">{SIGNS[diagnostic.severity]} {code.number}</b> {_marked(diagnostic.message)}'
        f' <span style="{_MUTED};font-size:.9em">({escape(code.name)}, line {line + 1}, column {column + 1})</span>'
    )
    texts = [label.text for label in diagnostic.labels if label.text]
    said = [_marked(text) for text in ([diagnostic.label] if diagnostic.label else []) + texts]
    notes = f'<div style="margin-left:12px">{"; ".join(dict.fromkeys(said))}</div>' if said else ""
    cures = "".join(f'<div style="margin-left:12px"><i>help:</i> {_marked(text)}</div>' for text in diagnostic.helps)
    style = f"border-left:3px solid {colour};padding-left:9px"
    return f'<div style="{style}"><div>{head}</div>{_underlined(diagnostic, source)}{notes}{cures}</div>'


def _marked(text: str) -> str:
    """Plain text with what stands in backticks set in the code font."""
    parts = text.split("`")
    return "".join(_code(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def _code(text: str) -> str:
    return f'<code style="{_MONO};{_PLAIN};white-space:inherit">{escape(text)}</code>'


def _underlined(diagnostic: Diagnostic, source: SourceText) -> str:
    """The source lines of the message and its labels, with the places underlined."""
    if not source.text:
        return ""
    spans = [diagnostic.span, *(label.span for label in diagnostic.labels)]
    numbers = sorted({source.position(span.start)[0] for span in spans})[:6]
    lines = "\n".join(_source_line(number, diagnostic, source) for number in numbers)
    style = f"{_MONO};{_PLAIN};white-space:pre;overflow-x:auto;margin:2px 0 2px 12px;line-height:1.6"
    return f'<pre style="{style}">{lines}</pre>'


def _source_line(number: int, diagnostic: Diagnostic, source: SourceText) -> str:
    """One line, numbered; the place of the message has a wavy line, places of labels a dotted one."""
    text, start = source.line(number), source.line_starts[number]
    main = _within(diagnostic.span, start, len(text))
    others = [_within(label.span, start, len(text)) for label in diagnostic.labels]
    here = [main] if main is not None else []
    for other in others:
        if other is not None and all(other.end <= kept.start or kept.end <= other.start for kept in here):
            here.append(other)
    low = max(0, min((span.start for span in here), default=0) - 100)
    pieces = ["..." if low else ""]
    position = low
    for span in sorted(here):
        pieces += [
            escape(text[position : span.start]),
            _mark(text[span.start : span.end][:200], span is main, diagnostic),
        ]
        position = span.end
    pieces.append(escape(text[position : position + 100]))
    return f'<span style="{_MUTED}">{number + 1:>3}  </span>{"".join(pieces)}'


def _mark(text: str, main: bool, diagnostic: Diagnostic) -> str:
    shown = escape(text) or "&nbsp;"
    if not main:
        return f'<u style="text-decoration:underline dotted;text-underline-offset:3px">{shown}</u>'
    colour = COLOURS[diagnostic.severity]
    return f'<u style="text-decoration:underline wavy {colour};text-underline-offset:3px"><b>{shown}</b></u>'


def _within(span: Span, start: int, length: int) -> Span | None:
    """The part of a span on the line that starts at `start`, in characters of that line; at least one wide."""
    low, high = span.start - start, max(span.end, span.start + 1) - start
    if low < 0 or low > length:
        return None
    return Span(low, max(low + 1, min(high, length)))
