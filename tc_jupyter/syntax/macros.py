"""`#define N 4` of C, which is a comment here: a name that it gives has no value.

Worked example: `#define R 3` above a def that reads `R` is told, and the fix writes `const int32 R = 3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, SourceText, Span, codes

from .recovery import closers
from .tokens import Token, tokenize

MACRO = re.compile(r"#define[ \t]+([A-Za-z_]\w*)(\()?[ \t]*([^\n]*)", re.ASCII)
"""The name, whether it has arguments, and what it stands for."""
_REMARK = re.compile(r"//.*|/\*.*?\*/")
_LITERAL = re.compile(r"-?(?:(?P<integer>\d+)|\d+\.\d*(?:[eE][-+]?\d+)?[fF]?|\.?\d+[eE][-+]?\d+[fF]?|\.\d+[fF]?)")
_MESSAGE = "`#define` begins a comment"


def without_macros(
    tokens: list[Token], comments: Iterable[Span], source: SourceText, diagnostics: list[Diagnostic]
) -> list[Token]:
    """The tokens with its value in place of each such name that a def uses, after a message each."""
    found = [(place, match) for place in comments if (match := MACRO.fullmatch(source.slice(place)))]
    if not found:
        return tokens
    declared, sizes = _declared(tokens)
    for place, match in reversed(found):  # one may read those before it
        name, value = match[1], _REMARK.sub("", match[3]).strip()
        uses = [token.span for token in tokens if token.type == "NAME" and token.text == name]
        if not uses or name in declared or not value:
            continue
        if match[2]:
            help = f"write the value of `{name}` where it is used; what gives an array is a def"
            diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, _MESSAGE, help=help))
            tokens = [replace(token, type="ERROR") if token.text == name else token for token in tokens]
            continue
        written = Fix(f"write `{value}` for `{name}`", tuple(Edit(use, value) for use in uses))
        tokens = _expanded(tokens, name, value)
        literal = None if name in sizes else _LITERAL.fullmatch(value)
        if literal is not None:
            line = f"const {'int32' if literal['integer'] else 'float'} {name} = {value}"
            help, fix = f"a number with a name is a constant: `{line}`", Fix("write a constant", (Edit(place, line),))
        else:
            help, fix = f"write `{value}` where it is used", Fix(written.title, (Edit(place, ""), *written.edits))
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, _MESSAGE, help=help, fix=fix))
    return tokens


def _expanded(tokens: list[Token], name: str, value: str) -> list[Token]:
    made = [(each.type, each.text) for each in tokenize(SourceText(value)).tokens]
    return [
        each
        for token in tokens
        for each in (
            [Token(kind, text, token.start, token.end, token.first) for kind, text in made]
            if token.type == "NAME" and token.text == name
            else [token]
        )
    ]


def _declared(tokens: list[Token]) -> tuple[AbstractSet[str], AbstractSet[str]]:
    """The names behind a type, and the words that are sizes of one."""
    declared, sizes = set[str](), set[str]()
    pairs = closers(tokens)
    for i, token in enumerate(tokens):
        if token.type == "SCALAR":
            close = pairs.get(i + 1, i)
            sizes |= {each.text for each in tokens[i:close]}
            declared |= {each.text for each in tokens[close + 1 : close + 2]}
    return declared, sizes
