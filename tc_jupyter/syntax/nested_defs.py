"""A def that stands inside another one: it is told, and read as if it stood before that.

Worked example: of `def f(float(N) X) -> (Y) { def g(float a) -> (b) { b = a } Y(i) = X(i) }` the fix writes `g`, and then `f`.
"""

from __future__ import annotations

import textwrap

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, SourceText, Span, codes

from .tokens import Token


def before_others(tokens: list[Token], diagnostics: list[Diagnostic], source: SourceText) -> list[Token]:
    """The tokens with each def inside of another one before that, after a message."""
    defs = [i for i, token in enumerate(tokens) if token.type == "DEF"]
    ends = _ends(tokens, defs) if len(defs) > 1 else {}
    found, around, is_outer = list[Token](), list[int](), set[int]()
    own = dict[int, list[Token]]()  # of the defs around a token
    for i, token in enumerate(tokens):
        if i in ends:
            is_outer |= {*around[-1:]}
            around.append(i)
            own[i] = []
        (own[around[-1]] if around else found).append(token)
        if around and ends[around[-1]] == i:
            start = around.pop()
            found += own.pop(start)
            if around:
                diagnostics.append(_told(tokens, around[0], start, i, source, start in is_outer))
    return found if is_outer else tokens


def _ends(tokens: list[Token], defs: list[int]) -> dict[int, int]:
    """The place of the `}` of each def that has one."""
    pairs, opened = dict[int, int](), list[int]()
    for i, token in enumerate(tokens):
        if token.type == "LBRACE":
            opened.append(i)
        elif token.type == "RBRACE" and opened:
            pairs[opened.pop()] = i
    found = dict[int, int]()
    for start in defs:
        first = next((i for i in range(start + 1, len(tokens)) if tokens[i].type in ("LBRACE", "RBRACE", "DEF")), 0)
        if first in pairs:
            found[start] = pairs[first]
    return found


def _told(tokens: list[Token], outer: int, start: int, end: int, source: SourceText, has_defs: bool) -> Diagnostic:
    """The message about a def inside of another one; the fix of one that has none itself writes it before that."""
    fix = None if has_defs else Fix("write it before this one", _moved(tokens, outer, start, end, source))
    message, help = (
        "a def stands inside another one",
        "defs stand one after the other; a def is called with whole arrays",
    )
    return Diagnostic(codes.SYNTAX_ERROR, tokens[start].span, message, help=help, fix=fix)


def _moved(tokens: list[Token], outer: int, start: int, end: int, source: SourceText) -> tuple[Edit, ...]:
    """Edits that write the def at a place before the outer one, in lines of its own where it has them."""
    begin, last = tokens[start].start, tokens[end].end
    line = source.text.rfind("\n", 0, begin) + 1
    indent = source.text[line:begin] if not source.text[line:begin].strip() else ""
    is_alone = line + len(indent) == begin and source.text[last : last + 1] == "\n"
    text, at = textwrap.dedent(indent + source.text[begin:last]), tokens[outer].start
    return Edit(Span(at, at), f"{text}\n"), Edit(Span(line, last + 1) if is_alone else Span(begin, last), "")
