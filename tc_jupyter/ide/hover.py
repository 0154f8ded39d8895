"""What a name, a word or an operator means: its range and why, type, shape and origin, uses, documentation, signature.

Worked example: in `A(i) +=! B(i + k) * W(k)`, at `i`: `0 <= i < N - K + 1`, "output index, inferred in round 2",
"because 0 <= i + k < N  (B)".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tc_jupyter.compiler import FunctionAnalysis
from tc_jupyter.compiler.analysis_json import dimensions
from tc_jupyter.compiler.derivatives import derived_text
from tc_jupyter.diagnostics import CompileError, SourceText, Span
from tc_jupyter.program import Program, Statement, Tensor
from tc_jupyter.ranges import IndexRange, explain, to_python
from tc_jupyter.syntax import expression_text, parse_tc, reducer_text, sac_to_text, sac_tree, statement_text, tree
from tc_jupyter.syntax.printer import dimension_text, type_text
from tc_jupyter.syntax.sac_printer import signature_text
from tc_jupyter.syntax.sac_printer import type_text as sac_type_text

from . import files
from .cell import Cell, Json, cell_of
from .files import NO_FILES, Files
from .names import Place
from .words import CONSTANTS, function_doc, keywords, operators, type_doc, types

_DERIVED = 40
"""Statements of a def whose derivative is said."""
_LINES = 12
"""Lines of one answer."""


def hover(
    text: str,
    position: Mapping[str, int],
    language: str = "tc",
    known: Mapping[str, Any] | None = None,
    used: Files = NO_FILES,
) -> Json | None:
    """Say what stands at a position.

    Returns:
        `{"span", "kind", "title", "lines", "documentation"}`, or `None` where nothing is known.
    """
    told = files.hover(text, position, language, used)
    if told is not None:
        return told
    cell = cell_of(text, language, known, position)
    offset = cell.offset(position)
    if any(comment.start <= offset < comment.end for comment in cell.parsed.comments):
        return None
    place = cell.names.at(offset)
    told = _fixed_word(cell, offset) if place is None else _name(cell, place)
    if told is None and place is not None and place.span.end == offset:
        told = _fixed_word(cell, offset)
    return told


def _answer(
    cell: Cell, span: Span, kind: str, title: str, lines: list[str] | None = None, documentation: str | None = None
) -> Json:
    lines = lines or []
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"... {len(lines) - _LINES + 1} more"]
    return {"span": cell.span(span), "kind": kind, "title": title, "lines": lines, "documentation": documentation}


# words of the language -----------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"(?P<reduction>(?:min|max|[+*])=(?!=)!?)|(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)"
    r"|(?P<operator>->|\.\.\.|\+\+|<<|>>|<=|>=|==|!=|&&|\|\||\^\^|[-+*/%<>=!?:|.&^~])"
)


def _fixed_word(cell: Cell, offset: int) -> Json | None:
    """A keyword, type, function or operator at an offset."""
    line = cell.source.position(offset)[0]
    start, end = cell.source.line_starts[line], cell.end_of_line(line)
    start, end = max(start, offset - 200), min(end, offset + 200)
    tokens = [found for found in _TOKEN.finditer(cell.text, start, end) if found.start() <= offset <= found.end()]
    for found in reversed(tokens):
        told = _token(cell, found.group(), str(found.lastgroup), Span(found.start(), found.end()))
        if told is not None:
            return told
    return None


def _token(cell: Cell, word: str, group: str, span: Span) -> Json | None:
    language = cell.language
    if group in ("operator", "reduction"):
        text = operators(language).get(word)
        return None if text is None else _answer(cell, span, "operator", word, documentation=text)
    if group != "word":
        return None
    if word in keywords(language):
        return _answer(cell, span, "keyword", word, documentation=keywords(language)[word])
    if word in CONSTANTS:
        return _answer(cell, span, "keyword", word, documentation=CONSTANTS[word])
    if word in types(language):
        return _answer(cell, span, "type", word, documentation=type_doc(word, language))
    return _function(cell, word, span)


def _function(cell: Cell, word: str, span: Span) -> Json | None:
    doc = function_doc(word, cell.language)
    return None if doc is None else _answer(cell, span, "function", doc.label, documentation=doc.text)


# names ---------------------------------------------------------------------------------------------------------------------------


def _name(cell: Cell, place: Place) -> Json | None:
    match place.kind:
        case "index":
            return _index(cell, place)
        case "tensor" | "scalar":
            return _constant(cell, place) if place.is_shared else _tensor(cell, place)
        case "size":
            return _answer(cell, place.span, "size", f"size {place.name}", _size_lines(cell, place))
        case "let":
            return _let(cell, place)
        case "function":
            return _function(cell, place.name, place.span)
        case "type":
            return _answer(cell, place.span, "type", place.name, documentation=type_doc(place.name, cell.language))
        case "def":
            return _def(cell, place)
        case _:
            return None


def _index(cell: Cell, place: Place) -> Json | None:
    found = cell.found(place.owner)
    statement = None if found is None else statement_of(found.program, place)
    if found is None or statement is None:
        return _index_unknown(cell, place)
    ranges = {index.index: index for index in found.ranges.indices.get(statement.name, ())}
    index = ranges.get(place.name)
    if index is None:
        return _index_unknown(cell, place)
    return _answer(cell, place.span, "index", range_title(index), index_lines(found, index))


def _index_unknown(cell: Cell, place: Place) -> Json:
    """An index without a range of its own: in `%%sac` one that is as written, or whose statement became a part of another."""
    item = cell.items[place.owner]
    if isinstance(item, tree.Def):
        line = "range not known: the statement, or one before it, has mistakes"
        return _answer(cell, place.span, "index", f"index {place.name}", [line])
    title, line = f"index {place.name}", "its range follows from the accesses of the body"
    for partition in _partitions(item):
        if partition.span == place.statement and partition.generator is not None:
            title, line = cell.source.slice(partition.generator.span), "given by the bounds of this part"
    later = cell.found(place.owner) is None
    return _answer(cell, place.span, "index", _short(title), [line, *(["known at the call"] if later else [])])


def _partitions(item: sac_tree.SacFunction) -> Iterator[sac_tree.PartitionClause]:
    """The parts of all comprehensions of a function."""
    for value in sac_tree.sac_expressions(item):
        for node in sac_tree.sac_walk(value):
            if isinstance(node, sac_tree.SetExpr):
                yield from node.partitions


def range_title(index: IndexRange) -> str:
    """`0 <= i < N`, or that the range is not known."""
    return index.text if index.lower is not None and index.upper is not None else f"{index.index}: range not known"


def index_lines(found: FunctionAnalysis, index: IndexRange) -> list[str]:
    """Kind and source, the bounds that shaped it, and for later rounds the way there."""
    match index.source:
        case "where":
            by = "`where`" if found.program.language == "tc" else "the bounds of this part"
            return [f"{index.kind} index, given by {by}"]
        case "target":
            return [f"{index.kind} index, the range of the tensor that is updated"]
        case "open":
            return [f"{index.kind} index, no access bounds it"]
        case _:
            lines = [f"{index.kind} index, inferred in round {index.round}"]
            lines += [f"because {reason}" for reason in index.reasons]
            if index.round > 1:
                steps = explain(found.ranges, index.statement, index.index).steps
                lines += [step.text for step in steps]
            return lines


def statement_of(program: Program, place: Place) -> Statement | None:
    """The statement in whose text a name stands."""
    if place.statement is None:
        return None
    inside = [
        s for s in program.statements if place.statement.start <= s.span.start and s.span.end <= place.statement.end
    ]
    if not inside:
        start = place.span.start
        inside = [s for s in program.statements if s.span.start <= start < s.span.end]
    named = [s for s in inside if any(index.name == place.name for index in s.indices)]
    return (named or inside or [None])[0]


def tensor_of(program: Program, name: str) -> Tensor | None:
    """The tensor of that name."""
    return next((tensor for tensor in program.tensors if tensor.name == name), None)


def _tensor(cell: Cell, place: Place) -> Json | None:
    found = cell.found(place.owner)
    tensor = None if found is None else tensor_of(found.program, place.name)
    if found is None or tensor is None:
        return _tensor_as_written(cell, place)
    return _answer(cell, place.span, place.kind, tensor_title(tensor, found), _tensor_lines(cell, place, tensor, found))


def _constant(cell: Cell, place: Place) -> Json | None:
    """A constant of the text."""
    unit = cell.parsed.unit
    written = unit.constants if isinstance(unit, tree.Unit) else ()
    for each in written:
        if each.name.name == place.name:
            line = cell.source.position(each.span.start)[0] + 1
            lines = ["constant", f"written in line {line}: {_short(cell.source.slice(each.span))}"]
            return _answer(cell, place.span, place.kind, f"{type_text(each.type)} {place.name}", lines)
    return None


def tensor_title(tensor: Tensor, found: FunctionAnalysis) -> str:
    """`float32 A(N - K + 1)`; a scalar has no parentheses."""
    shape = shape_of(tensor, found)
    if shape is None:
        return f"{tensor.element.value} {tensor.name}({', '.join(['?'] * tensor.written_rank)})"
    return f"{tensor.element.value} {tensor.name}" + (f"({', '.join(shape)})" if shape else "")


def shape_of(tensor: Tensor, found: FunctionAnalysis) -> list[str] | None:
    """The extents as text, `None` where they are not known."""
    if tensor.dims is not None:
        return dimensions(tensor)
    box = found.ranges.boxes.get(tensor.name)
    return None if box is None else [to_python(extent) for extent in box.shape[: tensor.written_rank]]


def _tensor_lines(cell: Cell, place: Place, tensor: Tensor, found: FunctionAnalysis) -> list[str]:
    words = {"input": "parameter", "output": "result", "temporary": "temporary, not returned"}
    lines = [words[tensor.kind]]
    box = found.ranges.boxes.get(tensor.name)
    if box is None and tensor.dims is None:
        lines.append("shape not known")
    elif box is not None and any(to_python(low) != "0" for low in box.origin):
        rank = tensor.written_rank
        ends = zip(box.origin[:rank], box.shape[:rank], strict=True)
        spans = ", ".join(f"{to_python(low)} up to {to_python(low + extent - 1)}" for low, extent in ends)
        lines.append(f"indices from {spans}")
        lines.append("element 0 of the array is at the first of them")
    for statement in found.program.statements:
        if statement.target == tensor.name:
            line = cell.source.position(statement.span.start)[0]
            lines.append(f"written in line {line + 1}: {_short(statement.text)}")
    return [*lines, *_gradient_lines(tensor, found)]


def _gradient_lines(tensor: Tensor, found: FunctionAnalysis) -> list[str]:
    """What the derivatives by the parameters are made of a result's, or how that of a parameter is computed."""
    if tensor.kind == "temporary" or not tensor.dtype.is_float or len(found.program.statements) > _DERIVED:
        return []
    try:
        text = derived_text(found.program, found.ranges, "vjp")
    except CompileError as problem:
        message = problem.diagnostics[0].message
        return [f"no gradient: {message.partition(': ')[2] or message}"]
    (item,) = parse_tc(SourceText(text)).unit.defs
    statements = [each for each in item.statements if isinstance(each, tree.Comprehension)]
    written = {result.name.name for result in item.results}
    wanted = {f"d{tensor.name}"} if tensor.kind == "input" else written
    shown = [" ".join(statement_text(each).split()) for each in statements if each.target.name in wanted]
    return [f"gradient: {_short(each)}" for each in shown]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "..."


def _tensor_as_written(cell: Cell, place: Place) -> Json | None:
    """A name of which only the declaration is known."""
    item = cell.items[place.owner]
    for param in item.params:
        if param.name.name != place.name or param.type is None:
            continue
        if isinstance(param.type, tree.TypeName):
            return _answer(cell, place.span, place.kind, f"{type_text(param.type)} {place.name}", ["parameter"])
        lines = ["parameter"] if param.type.rank is not None else ["parameter; the rank is known at the call"]
        return _answer(cell, place.span, place.kind, f"{sac_type_text(param.type)} {place.name}", lines)
    if isinstance(item, tree.Def):
        result = any(result.name.name == place.name for result in item.results)
        return _answer(cell, place.span, place.kind, place.name, ["result" if result else "tensor", "type not known"])
    return _variable(cell, place, item)


def _variable(cell: Cell, place: Place, item: sac_tree.SacFunction) -> Json:
    """A variable of a `%%sac` function: the assignment that it has its value from."""
    every = [(name, s) for s in sac_tree.inner_statements(item.body) for name in sac_tree.own_names(s)]
    own = [
        (name, s) for name, s in every if name.name == place.name and isinstance(s, sac_tree.Assign | sac_tree.Unpack)
    ]
    before = [s for name, s in own if name.span.start <= place.span.start] or [s for _, s in own]
    title = place.name
    if before:
        found = before[-1]
        names = ", ".join(name.name for name in sac_tree.own_names(found))
        title = f"{names} = {_short(sac_to_text(found.value))}"
    return _answer(cell, place.span, place.kind, title, ["variable"])


def _size_lines(cell: Cell, place: Place) -> list[str]:
    """What a size is the extent of, and which conditions it takes part in."""
    item = cell.items[place.owner]
    lines: list[str] = []
    for declared in (*item.params, *(item.results if isinstance(item, tree.Def) else ())):
        if isinstance(declared.type, tree.TypeName):
            for number, dimension in enumerate(declared.type.dimensions):
                inside = (node for end in tree.ends(dimension) for node in tree.walk(end))
                if isinstance(dimension, tree.Name) and dimension.name == place.name:
                    lines.append(f"extent of dimension {number} of `{declared.name.name}`")
                elif any(isinstance(node, tree.Name) and node.name == place.name for node in inside):
                    lines.append(f"dimension {number} of `{declared.name.name}` is `{dimension_text(dimension)}`")
    found = cell.found(place.owner)
    if found is None:
        return lines
    word = re.compile(rf"\b{re.escape(place.name)}\b")
    for name, ranges in found.ranges.indices.items():
        used = [range_title(index) for index in ranges if word.search(range_title(index))]
        lines += [f"range in `{name}`: {text}" for text in used]
    for name in found.program.results:
        shape = shape_of(found.program.tensor(name), found)
        if shape is not None and any(word.search(extent) for extent in shape):
            lines.append(f"shape of `{name}`: ({', '.join(shape)})")
    conditions = [item.text for item in found.preconditions if item.status != "proved" and word.search(item.text)]
    return lines + [f"checked at the call: {text}" for text in dict.fromkeys(conditions)]


def _let(cell: Cell, place: Place) -> Json:
    """The value behind a name of a `where` clause or of a with-loop."""
    title = f"{place.name}"
    item = cell.items[place.owner]
    for statement in item.statements if isinstance(item, tree.Def) else ():
        if isinstance(statement, tree.Comprehension) and statement.span == place.statement:
            for clause in statement.clauses:
                if isinstance(clause, tree.Let) and clause.name.name == place.name:
                    title = f"{place.name} = {_short(expression_text(clause.value))}"
    return _answer(cell, place.span, "let", title, ["a name for this value, in this statement"])


# defs ----------------------------------------------------------------------------------------------------------------------------


def _def(cell: Cell, place: Place) -> Json | None:
    owner = next((n for n, item in enumerate(cell.items) if item.name.name == place.name), None)
    if owner is None:
        return _known_def(cell, place)
    found = cell.found(owner)
    lines = [] if found is None else def_lines(found)
    if cell.language == "sac" and found is None:
        lines = ["ranks and ranges are known at the call"]
    item = cell.items[owner]
    if isinstance(item, tree.Def) and item.reducer is not None:
        lines = reducer_text(item, item.reducer).splitlines()[1:] or lines
    return _answer(cell, place.span, "def", signature_line(cell, owner), lines)


def signature_line(cell: Cell, owner: int) -> str:
    """`def conv(float(N) B, float(K) W) -> (A)`, as written."""
    item = cell.items[owner]
    if isinstance(item, sac_tree.SacFunction):
        return signature_text(item)
    params = ", ".join(param_text(param) for param in item.params)
    if item.reducer is not None:
        return f"reduce {item.name.name}({params})"
    results = ", ".join((f"{type_text(r.type)} " if r.type else "") + r.name.name for r in item.results)
    return f"def {item.name.name}({params}) -> ({results})"


def param_text(param: tree.Param | sac_tree.SacParam) -> str:
    """`float(N) B`."""
    if isinstance(param.type, sac_tree.SacType):
        return f"{sac_type_text(param.type)} {param.name.name}"
    return f"{type_text(param.type)} {param.name.name}" if param.type else param.name.name


def def_lines(found: FunctionAnalysis) -> list[str]:
    """The shapes of the results, then the ranges of every statement, then what the call checks."""
    program = found.program
    lines = [f"returns {tensor_title(program.tensor(name), found)}" for name in program.results]
    for name, ranges in found.ranges.indices.items():
        if ranges:
            lines.append(f"{name}: {', '.join(range_title(index) for index in ranges)}")
    conditions = (item.text for item in found.preconditions if item.status != "proved")
    return lines + [f"checked at the call: {text}" for text in dict.fromkeys(conditions)]


def _known_def(cell: Cell, place: Place) -> Json | None:
    """A function of another cell."""
    value = cell.known.functions.get(place.name)
    if value is None:
        return None
    return _answer(cell, place.span, "def", f"def {known_signature(place.name, value)}", [files.origin(value)])


def known_signature(name: str, value: Any) -> str:
    """A function of another cell in one line: a `Function`, or a program of a cell that was not run."""
    if isinstance(value, Program):
        return f"{name}({', '.join(_inputs(value))}) -> ({', '.join(value.results)})"
    return str(getattr(value, "signature", name))


def _inputs(program: Program) -> Iterator[str]:
    for name in program.parameters:
        tensor = program.tensor(name)
        dims = ", ".join(dimensions(tensor))
        yield f"{tensor.element.value}{f'({dims})' if dims else ''} {name}"


__all__ = [
    "def_lines",
    "hover",
    "index_lines",
    "known_signature",
    "param_text",
    "range_title",
    "shape_of",
    "signature_line",
    "statement_of",
    "tensor_of",
    "tensor_title",
]
