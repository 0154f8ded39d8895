"""The JSON form of an analysis: the contract with the front end, the command line and other tools.

Bounds are Python expressions over the size names; `line` counts from 0 and `character` in Unicode code points of the given text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tc_jupyter.diagnostics import Diagnostic, Label, SourceText, Span
from tc_jupyter.program import CallSite, Statement, Tensor, int64
from tc_jupyter.ranges import IndexRange, Precondition, SizeExpr, from_expr, to_python

from .function_analysis import FunctionAnalysis

SCHEMA = "tc-jupyter/analysis/1"


def to_json(
    source: SourceText, functions: Iterable[FunctionAnalysis], diagnostics: Iterable[Diagnostic]
) -> dict[str, Any]:
    """A whole analysis as JSON-ready data."""
    return {
        "schema": SCHEMA,
        "functions": [function_json(found, source) for found in functions],
        "diagnostics": [diagnostic_json(diagnostic, source) for diagnostic in diagnostics],
    }


def function_json(found: FunctionAnalysis, source: SourceText) -> dict[str, Any]:
    """One def."""
    program = found.program
    results = [program.tensor(name) for name in program.results]
    temporaries = [tensor for tensor in program.tensors if tensor.kind == "temporary" and tensor.view_of is None]
    return {
        "name": program.name,
        "sizes": list(program.sizes),
        "inputs": [_input(program.tensor(name)) for name in program.parameters],
        "outputs": [_computed(tensor, found) for tensor in results],
        "temporaries": [_computed(tensor, found) for tensor in temporaries],
        "statements": _statements(found, source),
        "preconditions": [_precondition(item, source) for item in found.preconditions],
    }


LEVELS = {"F": "value", "S": "shape", "D": "rank", "N": "nothing"}


def open_json(signature: str, demands: Mapping[str, str]) -> dict[str, Any]:
    """One definition of a `%%sac` function: what it demands of its arguments before anything is computed."""
    return {"signature": signature, "demands": {param: LEVELS[level] for param, level in demands.items()}}


def dimensions(tensor: Tensor) -> list[str]:
    """The dimensions of an input: extents, or `1:N` where its indices do not start at 0."""
    boxes, dims = tensor.box or (None,) * tensor.rank, (tensor.dims or ())[: tensor.written_rank]
    return [
        to_python(from_expr(dim))
        if box is None or box[0] == int64(0)
        else ":".join(to_python(from_expr(e)) for e in box)
        for dim, box in zip(dims, boxes[: len(dims)], strict=True)
    ]


def _input(tensor: Tensor) -> dict[str, Any]:
    dims = None if tensor.dims is None else dimensions(tensor)
    return {"name": tensor.name, "dtype": tensor.element.value, "dims": dims}


def _computed(tensor: Tensor, found: FunctionAnalysis) -> dict[str, Any]:
    box = found.ranges.boxes.get(tensor.name)
    rank = tensor.written_rank
    shape = None if box is None else [to_python(extent) for extent in box.shape[:rank]]
    origin = None if box is None else [to_python(low) for low in box.origin[:rank]]
    return {"name": tensor.name, "dtype": tensor.element.value, "shape": shape, "origin": origin}


def _statements(found: FunctionAnalysis, source: SourceText) -> list[dict[str, Any]]:
    """Statements and calls in text order; a callee's statements stand where it is called."""
    program = found.program
    rows: list[dict[str, Any]] = []
    for number, statement in enumerate(program.statements):
        rows += [_call(call, source) for call in program.calls if call.position == number]
        rows.append(_statement(statement, found, source))
    rows += [_call(call, source) for call in program.calls if call.position >= len(program.statements)]
    return rows


def _statement(statement: Statement, found: FunctionAnalysis, source: SourceText) -> dict[str, Any]:
    operator = "=" if statement.operator == "=" else f"{statement.operator}={'!' if statement.initialize else ''}"
    return {
        "line": source.position(statement.span.start)[0],
        "target": statement.target,
        "operator": operator,
        "indices": [_index(index) for index in found.ranges.written(statement.name)],
    }


def _index(index: IndexRange) -> dict[str, Any]:
    return {
        "name": index.index,
        "kind": index.kind,
        "lower": _text(index.lower),
        "upper": _text(index.upper),
        "text": index.text,
        "round": index.round,
        "source": index.source,
        "because": list(index.reasons),
    }


def _text(value: SizeExpr | None) -> str | None:
    return None if value is None else to_python(value)


def _call(call: CallSite, source: SourceText) -> dict[str, Any]:
    return {
        "line": source.position(call.span.start)[0],
        "operator": "call",
        "callee": call.callee,
        "arguments": list(call.arguments),
        "targets": list(call.targets),
        "indices": [],
    }


def _precondition(item: Precondition, source: SourceText) -> dict[str, Any]:
    return {
        "text": item.text,
        "status": item.status,
        "kind": item.kind,
        "subject": item.subject,
        "span": span_json(item.span, source),
    }


def diagnostic_json(diagnostic: Diagnostic, source: SourceText) -> dict[str, Any]:
    """One message."""
    fix = None
    if diagnostic.fix is not None:
        edits = [{"span": span_json(edit.span, source), "text": edit.text} for edit in diagnostic.fix.edits]
        fix = {"title": diagnostic.fix.title, "edits": edits}
    return {
        "code": diagnostic.code.number,
        "name": diagnostic.code.name,
        "severity": diagnostic.code.severity.value,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "span": span_json(diagnostic.span, source),
        "labels": [_label(label, source) for label in diagnostic.labels],
        "fix": fix,
    }


def span_json(span: Span, source: SourceText) -> dict[str, Any]:
    """A span as positions."""

    def position(offset: int) -> dict[str, int]:
        line, character = source.position(offset)
        return {"line": line, "character": character}

    return {"start": position(span.start), "end": position(span.end)}


def _label(label: Label, source: SourceText) -> dict[str, Any]:
    """A second place; one in another file has its name."""
    found = {"span": span_json(label.span, label.source or source), "text": label.text}
    return found if label.source is None else {**found, "file": label.source.name}
