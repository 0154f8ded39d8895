"""The card of a cell as static HTML and as plain text: the same statements in both.

The HTML has no script, no style sheet and no address: it is readable on a saved notebook, on a dark page, and where styles are
stripped. Severity is a word and a sign, never a colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from tc_jupyter.compiler import Analysis, FunctionAnalysis
from tc_jupyter.diagnostics import Diagnostic, Severity, SourceText
from tc_jupyter.program import Tensor
from tc_jupyter.ranges import IndexRange, Precondition, from_expr, to_python

SIGNS = {Severity.ERROR: "✗ error", Severity.WARNING: "⚠ warning", Severity.NOTE: "ℹ note"}
COLOURS = {Severity.ERROR: "#c62828", Severity.WARNING: "#b26a00", Severity.NOTE: "#1565c0"}
STATUS = {
    "proved": "✓ proved",
    "refuted": "✗ fails",
    "checked_at_call": "◷ checked at call",
    "data_dependent": "◷ data checked at call",
}
MONO = "font-family:var(--jp-code-font-family,monospace);font-size:0.92em"
CELL = "padding:2px 14px 2px 0;text-align:left;vertical-align:top;border:0"
SOURCE_LIMIT = 30_000
"""Characters of generated text kept in the saved card; more is a call of `%tc source` away."""


# --- shared between HTML and text ------------------------------------------------------------------------------------


def signature(found: FunctionAnalysis) -> str:
    """`conv(float32(N) B, float32(K) W) -> (A: N - K + 1)`."""
    program = found.program
    inputs = ", ".join(f"{_type(program.tensor(name))} {name}" for name in program.parameters)
    outputs = ", ".join(shape_text(program.tensor(name), found) for name in program.results)
    return f"{program.name}({inputs}) -> ({outputs})"


def _type(tensor: Tensor) -> str:
    if tensor.dims is None:
        return f"{tensor.dtype.value}[known at call]"
    dims = ", ".join(to_python(from_expr(dim)) for dim in tensor.dims)
    return f"{tensor.dtype.value}({dims})" if dims else tensor.dtype.value


def shape_text(tensor: Tensor, found: FunctionAnalysis) -> str:
    """`float32 A(N - K + 1)`, with the origin where it is not 0."""
    box = found.ranges.boxes.get(tensor.name)
    if box is None:
        return f"{tensor.dtype.value} {tensor.name}(?)"
    dims = ", ".join(to_python(extent) for extent in box.shape)
    moved = any(to_python(low) != "0" for low in box.origin)
    origin = f" from ({', '.join(to_python(low) for low in box.origin)})" if moved else ""
    return f"{tensor.dtype.value} {tensor.name}({dims}){origin}"


def because(index: IndexRange) -> str:
    """Why an index has its range, in one phrase."""
    if index.source == "where":
        return "given by `where`"
    if index.source == "target":
        return "the range of the tensor that is updated"
    if index.lower is None:
        return "not known"
    return f"{'; '.join(index.reasons)}, round {index.round}"


def rows_of_ranges(found: FunctionAnalysis) -> Iterable[tuple[str, str, str, str]]:
    """Statement, range, kind, reason of every index."""
    for statement in found.program.statements:
        for index in found.ranges.indices.get(statement.name, ()):
            yield statement.name, index.text, index.kind, because(index)


def proved_line(items: tuple[Precondition, ...]) -> str:
    """`7 of 8 accesses proved in bounds`."""
    accesses = [item for item in items if item.subject != "range"]
    proved = sum(item.status == "proved" for item in accesses)
    return f"{proved} of {len(accesses)} conditions on accesses proved" if accesses else "no access needs a condition"


def open_conditions(items: tuple[Precondition, ...]) -> list[Precondition]:
    """What is not proved and so is shown one by one."""
    return [item for item in items if item.status != "proved"]


# --- plain text ------------------------------------------------------------------------------------------------------


def text_card(analysis: Analysis, target: str) -> str:
    """The card for terminals."""
    lines: list[str] = []
    for found in analysis.functions.values():
        lines.append(signature(found))
        rows = list(rows_of_ranges(found))
        width = max((len(row[1]) for row in rows), default=0)
        lines += [f"  {text:<{width}}  {name}, {kind}: {why}" for name, text, kind, why in rows]
        lines.append(f"  {proved_line(found.preconditions)}")
        lines += [f"  {STATUS[item.status]}: {item.text}" for item in open_conditions(found.preconditions)]
    if analysis.diagnostics:
        lines.append(analysis.render())
    lines.append(f"engine: {target}")
    return "\n".join(lines)


# --- HTML ------------------------------------------------------------------------------------------------------------


def html_card(analysis: Analysis, target: str, sources: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The card for notebooks.

    Args:
        sources: per def, generated text by kind (`cuda`, `loops`), shown folded.
    """
    parts = [_function(found, (sources or {}).get(name, {})) for name, found in analysis.functions.items()]
    parts += [_diagnostic(diagnostic, analysis.source) for diagnostic in analysis.diagnostics]
    foot = f'<div style="opacity:.75;font-size:.85em;margin-top:4px">engine: {escape(target)}</div>'
    style = "border-left:3px solid currentColor;padding:2px 0 2px 12px;margin:2px 0;max-width:100%;overflow-x:auto"
    return f'<div class="tc-card" style="{style}">{"".join(parts)}{foot}</div>'


def _function(found: FunctionAnalysis, sources: Mapping[str, str]) -> str:
    title = f'<div style="{MONO};font-weight:600;margin:4px 0">{escape(signature(found))}</div>'
    folded = "".join(_folded(kind, text) for kind, text in sources.items())
    return title + _ranges_table(found) + _conditions(found) + folded


def _row(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f'<{tag} style="{CELL}">{cell}</{tag}>' for cell in cells) + "</tr>"


def _code(text: str) -> str:
    return f'<span style="{MONO}">{escape(text)}</span>'


def _ranges_table(found: FunctionAnalysis) -> str:
    rows = list(rows_of_ranges(found))
    if not rows:
        return ""
    many = len(found.program.statements) > 1
    head = ["range", "kind", "because"]
    body: list[str] = []
    last = ""
    for name, text, kind, why in rows:
        cells = [_code(text), kind, _code(why)]
        body.append(_row([_code(name if name != last else ""), *cells] if many else cells))
        last = name
    columns = _row(["statement", *head] if many else head, "th")
    return (
        f'<table style="border-collapse:collapse;border:0;margin:2px 0"><thead>{columns}</thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _conditions(found: FunctionAnalysis) -> str:
    items = found.preconditions
    rows = [
        _row([escape(STATUS[item.status]), _code(item.text), escape(item.subject)]) for item in open_conditions(items)
    ]
    table = f'<table style="border-collapse:collapse;border:0"><tbody>{"".join(rows)}</tbody></table>' if rows else ""
    return f'<div style="margin:2px 0">✓ {escape(proved_line(items))}</div>{table}'


def _folded(kind: str, text: str) -> str:
    shown = text if len(text) <= SOURCE_LIMIT else text[:SOURCE_LIMIT] + "\n... (cut; `%tc source` shows all)"
    style = f"{MONO};white-space:pre;overflow-x:auto;margin:4px 0;background:transparent;color:inherit"
    return f'<details><summary>{escape(kind)}</summary><div style="{style}">{escape(shown)}</div></details>'


def _diagnostic(diagnostic: Diagnostic, source: SourceText) -> str:
    code, severity = diagnostic.code, diagnostic.code.severity
    line, column = source.position(diagnostic.span.start)
    head = (
        f'<strong style="color:{COLOURS[severity]}">{SIGNS[severity]}</strong> '
        f"<strong>{code.number}</strong> {escape(code.name)}: {_marked(diagnostic.message)}"
    )
    where = f'<span style="opacity:.75"> (line {line + 1}, column {column + 1})</span>'
    labels = "".join(f"<div>{_marked(label.text)}</div>" for label in diagnostic.labels if label.text)
    help_text = f"<div>help: {_marked(diagnostic.help)}</div>" if diagnostic.help else ""
    return f'<div style="margin:6px 0">{head}{where}{_underlined(diagnostic, source)}{labels}{help_text}</div>'


def _marked(text: str) -> str:
    """Plain text with `code` in backticks set in the code font."""
    parts = text.split("`")
    return "".join(_code(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def _underlined(diagnostic: Diagnostic, source: SourceText) -> str:
    """The source line with the span underlined."""
    line, start = source.position(diagnostic.span.start)
    last, end = source.position(diagnostic.span.end)
    text = source.line(line)
    end = len(text) if last != line else max(end, start + 1)
    low = max(0, start - 100)
    pieces = (text[low:start], text[start:end][:200], text[end : end + 100])
    colour = COLOURS[diagnostic.code.severity]
    style = f"{MONO};white-space:pre;overflow-x:auto;margin:2px 0 2px 12px"
    mark = (
        f'<span style="text-decoration:underline wavy {colour};font-weight:600">{escape(pieces[1]) or "&nbsp;"}</span>'
    )
    return f'<div style="{style}">{escape(pieces[0])}{mark}{escape(pieces[2])}</div>'
