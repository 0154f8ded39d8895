"""A cell in canonical layout with its comments.

The text of every def, statement and signature is the printer's. A comment keeps its place: on the line of what it stands behind, or
on a line of its own before what follows it. A comment inside a statement moves to a line of its own before the statement.

Worked example: `Y(i)=X(i)  # copy` becomes `    Y(i) = X(i)  # copy`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from tc_jupyter.diagnostics import SourceText, Span
from tc_jupyter.syntax import (
    block_text,
    own_operators,
    parse_sac,
    parse_tc,
    reducer_text,
    sac_to_text,
    sac_tree,
    statement_text,
    tree,
)
from tc_jupyter.syntax.printer import def_text, use_text
from tc_jupyter.syntax.printer import type_text as tc_type_text
from tc_jupyter.syntax.sac_printer import head_text, line_text, statement_lines

from .cell import Json
from .pieces import chunks_of

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class _Item:
    """A piece of the text that is printed as a whole: where it stood, its lines, and its indentation."""

    span: Span
    text: str
    indent: str = ""
    gap: bool = False  # a blank line before it


def format_text(text: str, language: str = "tc") -> Json:
    """Lay out a cell.

    Returns:
        `{"text", "refused"}`: the text, ending with or without a line end as it was given; or why it was left alone.
    """
    parts = chunks_of(text, language)
    laid = [_kept(part, language) for part in parts]
    if len(laid) > 1 and all(each["text"] is not None for each in laid):
        return {"text": "\n\n".join(each["text"].rstrip("\n") for each in laid) + _ending(text), "refused": None}
    return _format(text, language)


def _ending(text: str) -> str:
    return "\n" if "\n" in text[len(text.rstrip()) :] else ""


def _format(text: str, language: str) -> Json:
    source = SourceText(text)
    parsed = (
        parse_sac(source) if language == "sac" else parse_tc(source, own_operators(text))
    )  # some are of other cells
    errors = [item for item in parsed.diagnostics if item.is_error]
    if errors:
        line = source.position(errors[0].span.start)[0] + 1
        return {"text": None, "refused": f"the text has a syntax error in line {line}: {errors[0].message}"}
    items = list(_sac_items(parsed, source) if isinstance(parsed, sac_tree.SacParsed) else _tc_items(parsed, source))
    made = _lines(items, parsed.comments, source) + _ending(text)
    if not _same(parsed, made, language):
        return {"text": None, "refused": "the text cannot be laid out without changing it; please report this"}
    return {"text": made, "refused": None}


_kept = lru_cache(maxsize=512)(_format)
"""The layout of one def of a text, kept for the next change elsewhere."""


def _same(parsed: tree.Parsed | sac_tree.SacParsed, text: str, language: str) -> bool:
    """Whether a layout says the same and has all comments."""
    source = SourceText(text)
    again = parse_sac(source) if language == "sac" else parse_tc(source, own_operators(text))
    return again.unit == parsed.unit and len(again.comments) == len(parsed.comments)


# items ---------------------------------------------------------------------------------------------------------------------------


def _tc_items(parsed: tree.Parsed, source: SourceText) -> Iterable[_Item]:
    parts = sorted([*parsed.unit.uses, *parsed.unit.constants, *parsed.unit.defs], key=lambda part: part.span.start)
    for number, item in enumerate(parts):
        if isinstance(item, tree.Use):
            yield _Item(item.span, use_text(item), gap=number > 0 and isinstance(parts[number - 1], tree.Def))
            continue
        if isinstance(item, tree.Constant):
            gap = number > 0 and not isinstance(parts[number - 1], tree.Constant)
            yield _Item(item.span, statement_text(item), gap=gap)
            continue
        if item.reducer is not None:
            yield _Item(item.span, reducer_text(item, item.reducer), gap=number > 0)
            continue
        first = item.statements[0].span.start if item.statements else item.span.end - 1
        opening = _find(source.text, "{", item.signature_span.start, first, parsed.comments)
        head = Span(item.span.start, opening + 1)
        yield from _tc_head(item, head, parsed.comments, source, gap=number > 0)
        yield from _tc_body(item, head.end, parsed.comments, source)


def _tc_body(item: tree.Def, end: int, comments: tuple[Span, ...], source: SourceText) -> Iterable[_Item]:
    """The statements from place `end` on, the heads and braces of the blocks around them, and the last `}`."""
    around: tuple[tree.Block, ...] = ()
    for statement in (*item.statements, None):
        blocks = statement.blocks if isinstance(statement, tree.Comprehension) else around if statement else ()
        common = next((k for k, pair in enumerate(zip(around, blocks, strict=False)) if pair[0] != pair[1]), None)
        common = min(len(around), len(blocks)) if common is None else common
        for depth in (*reversed(range(common, len(around))), *(() if statement else (-1,))):
            closing = _find(source.text, "}", end, item.span.end, comments)
            end = closing + 1
            yield _Item(Span(closing, end), "}", _INDENT * (depth + 1))
        for depth in range(common, len(blocks)):
            opening = _find(source.text, "{", blocks[depth].span.end, item.span.end, comments)
            end = opening + 1
            yield _Item(Span(blocks[depth].span.start, end), f"{block_text(blocks[depth])} {{", _INDENT * (depth + 1))
        if statement is not None:
            indent = _INDENT * (len(blocks) + 1)
            text = statement_text(statement).replace("\n", "\n" + _INDENT * len(blocks))
            yield _Item(statement.span, text, indent)
            end = statement.span.end
        around = blocks


def _tc_head(item: tree.Def, head: Span, comments: tuple[Span, ...], source: SourceText, gap: bool) -> Iterable[_Item]:
    """The signature; with comments inside, one parameter on a line, so that each comment stays at its parameter."""
    last = item.params[-1].span.end if item.params else head.start
    if not any(head.start <= comment.start < last for comment in comments):
        empty = tree.Def(item.name, item.params, item.results, ())
        yield _Item(head, def_text(empty).removesuffix("}\n").rstrip("\n"), gap=gap)
        return
    yield _Item(Span(head.start, item.name.span.end), f"def {item.name.name}(", gap=gap)
    for param in item.params:
        comma = "" if param is item.params[-1] else ","
        assert param.type is not None
        yield _Item(
            Span(param.span.start, param.span.end), f"{tc_type_text(param.type)} {param.name.name}{comma}", _INDENT
        )
    results = ", ".join((f"{tc_type_text(r.type)} " if r.type else "") + r.name.name for r in item.results)
    closing = _find(source.text, ")", last, head.end, comments)
    yield _Item(Span(closing, head.end), f") -> ({results}) {{")


def _sac_items(parsed: sac_tree.SacParsed, source: SourceText) -> Iterable[_Item]:
    parts = sorted([*parsed.unit.uses, *parsed.unit.lines, *parsed.unit.functions], key=lambda part: part.span.start)
    for number, item in enumerate(parts):
        if not isinstance(item, sac_tree.SacFunction):
            text = f"{use_text(item)};" if isinstance(item, tree.Use) else line_text(item)
            yield _Item(item.span, text, gap=number > 0 and isinstance(parts[number - 1], sac_tree.SacFunction))
            continue
        body = [*(statement.span for statement in item.body), item.return_span]
        opening = _find(source.text, "{", item.signature_span.end, body[0].start, parsed.comments)
        yield _Item(Span(item.span.start, opening + 1), f"{head_text(item)} {{", gap=number > 0)
        yield from _sac_statements(item.body, 1, parsed.comments, source)
        yield _Item(item.return_span, f"return {', '.join(map(sac_to_text, item.results))};", _INDENT)
        closing = _find(source.text, "}", item.return_span.end, item.span.end, parsed.comments)
        yield _Item(Span(closing, closing + 1), "}")


def _sac_statements(
    statements: Iterable[sac_tree.Statement], depth: int, comments: tuple[Span, ...], source: SourceText
) -> Iterable[_Item]:
    """Statements; one with a block is laid out line by line where a comment is inside, so that it stays at its line."""
    for statement in statements:
        first, *others = statement_lines((statement,), depth)
        inside = any(statement.span.start <= comment.start < statement.span.end for comment in comments)
        if not inside or not others:
            yield _Item(statement.span, "\n".join((first.lstrip(), *others)), _INDENT * depth)
            continue
        yield from _sac_blocks(statement, depth, comments, source)


def _sac_blocks(
    statement: sac_tree.Statement, depth: int, comments: tuple[Span, ...], source: SourceText
) -> Iterable[_Item]:
    """The lines of a statement with blocks, each with its place in the text."""
    lines = statement_lines((statement,), depth)
    match statement:
        case sac_tree.If():
            groups, rest = [statement.then], statement.otherwise
            while len(rest) == 1 and isinstance(rest[0], sac_tree.If):  # `else if` is one line
                groups, rest = [*groups, rest[0].then], rest[0].otherwise
            groups += [rest] if rest else []
        case sac_tree.Loop():
            groups = [statement.body]
        case _:
            groups = []
    at, line = statement.span.start, 0
    for group in groups:
        first = group[0].span.start if group else _find(source.text, "}", at, statement.span.end, comments)
        yield _Item(Span(at, first), lines[line].strip(), _INDENT * depth)
        yield from _sac_statements(group, depth + 1, comments, source)
        line += 1 + len(statement_lines(group, depth + 1))
        at = group[-1].span.end if group else first
    yield _Item(Span(at, statement.span.end), lines[line].strip(), _INDENT * depth)


def _find(text: str, char: str, start: int, end: int, comments: tuple[Span, ...]) -> int:
    """The first place of a character outside comments."""
    position = text.find(char, start)
    while position >= 0 and any(comment.start <= position < comment.end for comment in comments):
        position = text.find(char, position + 1)
    return position if position >= 0 else max(start, end - 1)


# comments ------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Placed:
    """An item with the comments before it and behind it."""

    item: _Item
    before: list[str]
    behind: list[str]


def _lines(items: list[_Item], comments: tuple[Span, ...], source: SourceText) -> str:
    placed = [_Placed(item, [], []) for item in items]
    rest: list[str] = []
    for comment in comments:
        _place(comment, placed, rest, source)
    lines: list[str] = []
    for number, each in enumerate(placed):
        if each.item.gap:
            lines.append("")
        closes = each.item.text == "}"
        indent = _INDENT if closes or (number and placed[number - 1].item.text.endswith("(")) else each.item.indent
        lines += [indent + comment for comment in each.before]
        behind = "".join(f"  {comment}" for comment in each.behind)
        lines.append(each.item.indent + each.item.text + behind)
    return "\n".join([*lines, *rest])


def _place(comment: Span, placed: list[_Placed], rest: list[str], source: SourceText) -> None:
    """Give a comment to the item that it stands in, stands behind, or stands before."""
    text = source.slice(comment).rstrip()
    number = bisect_right(placed, comment.start, key=lambda each: each.item.span.start) - 1
    earlier = placed[number] if number >= 0 else None
    if earlier is not None and comment.start < earlier.item.span.end:
        allows = "allow TC" in text and not earlier.behind  # it speaks of the statement on its line
        (earlier.behind if allows else earlier.before).append(text)
    elif earlier is not None and _stands_behind(comment, text, earlier, source):
        earlier.behind.append(text)
    elif number + 1 < len(placed):
        placed[number + 1].before.append(text)
    else:
        rest.append(text)


def _stands_behind(comment: Span, text: str, each: _Placed, source: SourceText) -> bool:
    """Whether a comment ends the line of an item: then it stays there, but for a second one after a line comment."""
    line = source.position(comment.start)[0]
    same_line = source.position(max(each.item.span.end - 1, 0))[0] == line
    ends_line = not _rest_of_line(source, comment.end).strip()
    single = not any(behind.startswith(("#", "//")) for behind in each.behind)
    return same_line and ends_line and single and "\n" not in text


def _rest_of_line(source: SourceText, offset: int) -> str:
    end = source.text.find("\n", offset)
    return source.text[offset : len(source.text) if end < 0 else end]
