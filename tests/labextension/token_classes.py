"""Class of every token as the Python parsers see it: from their tokens, and from the role of each name in their trees.

Worked example: in `Y(i) = X(i)` the tokens are `definition Y`, `punctuation (`, `index i`, ..., `call X`, ..., `name i`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.ide.words import keywords
from tc_jupyter.syntax import parse_tc, sac_tree, tree
from tc_jupyter.syntax.sac_parser import BASES, _Parser, _steps_down
from tc_jupyter.syntax.tokens import tokenize
from tc_jupyter.syntax.uses import cut

Tokens = list[tuple[str, str]]

SAC_KEYWORDS = (*keywords("sac"), "genarray", "modarray", "fold")
WORDS = {"true": "bool", "false": "bool", "inf": "constant", "nan": "constant"}


def nodes(value: Any) -> Iterator[Any]:
    """Every node below a value, parents before children."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        for each in fields(value):
            yield from nodes(getattr(value, each.name))


def symbol(text: str) -> str:
    return "punctuation" if text in "()[]{},:;" else "operator"


def spanned(found: dict[tuple[int, int], str], text: str) -> Tokens:
    return [(kind, text[start:end]) for (start, end), kind in sorted(found.items())]


def tc_roles(unit: Any, text: str) -> dict[int, str]:
    """Offset of each name -> its class."""
    names = [node for node in nodes(unit) if isinstance(node, tree.Name)]
    # the span of a name in parentheses holds them
    written = (
        node for node in names if node.name in text[node.span.start : node.span.end]
    )  # results of a reducer are not
    roles = {text.index(node.name, node.span.start): "name" for node in written}
    for node in nodes(unit):
        match node:
            case tree.Def():
                roles[node.name.span.start] = "def"
            case tree.Param() | tree.Result() | tree.Let() | tree.Constant():
                roles[node.name.span.start] = "definition"
            case tree.Reducer():
                roles |= {name.span.start: "definition" for name in node.given}
            case tree.Where() | tree.Direction() | tree.Block():
                roles[node.index.span.start] = "index"
            case tree.Comprehension():
                for target, indices in node.targets:
                    roles[target.span.start] = "definition"
                    roles |= {index.span.start: "index" for index in indices or () if isinstance(index, tree.Name)}
            case tree.CallStatement():
                roles |= {target.span.start: "definition" for target in node.targets}
                roles[node.callee.span.start] = "call"
            case tree.Apply():
                roles[node.function.span.start] = "call"
            case _:
                pass
    return roles


def tc_tokens(text: str) -> Tokens:
    source = SourceText(text)
    roles = tc_roles(parse_tc(source).unit, text)
    uses, rest = cut(source, "tc")
    scanned = tokenize(rest)
    found = use_tokens(uses) | {(span.start, span.end): "comment" for span in scanned.comments}
    before = None
    for token in scanned.tokens:
        place = (token.start, token.end)
        match token.type:
            case "DEF" | "REDUCE" | "WHERE" | "IN" | "EXISTS" | "UNIQUE" | "ELSE" | "AT" | "CONST" | "ALONG" | "BLOCK":
                found[place] = "keyword"
            case "SCALAR" | "MINMAX":
                found[place] = "standard"
            case "NAME" | "DIGIT_NAME":
                found[place] = roles.get(token.start, "keyword")  # the words `from` and `with` of a reducer
            case "INTEGER" | "NUMBER":
                found[place] = WORDS.get(token.text, "number")
            case "DIMENSION":  # one word with the tensor before it
                del found[before]
                place = (before[0], token.end)
                found[place] = "name"
            case _:
                found[place] = symbol(token.text)
        before = place
    return spanned(found, text)


def use_tokens(uses: tuple[tree.Use, ...]) -> dict[tuple[int, int], str]:
    """The words, paths and `;` of lines that use files."""
    words = {(use.span.start, use.span.start + 3): "keyword" for use in uses}
    words |= {(use.span.end - 1, use.span.end): "punctuation" for use in uses if use.span.end > use.place.end}
    return words | {(use.place.start, use.place.end): "string" for use in uses}


def sac_roles(unit: Any) -> dict[int, str]:
    roles = {node.span.start: "name" for node in nodes(unit) if isinstance(node, tree.Name)}
    for node in nodes(unit):
        match node:
            case sac_tree.SacFunction():
                roles[node.name.span.start] = "def"
            case sac_tree.SacParam() | sac_tree.Assign():
                roles[node.name.span.start] = "definition"
            case sac_tree.Unpack():
                roles |= {name.span.start: "definition" for name in node.names}
            case sac_tree.SacType() if node.written:
                roles[node.span.start] = "standard"  # a type with a name of its own
            case sac_tree.SacTypedef():
                roles[node.name.span.start] = "standard"
            case sac_tree.Pattern():
                roles |= {name.span.start: "index" for name in node.bound}
            case sac_tree.Apply():
                module, _, called = node.function.name.rpartition("::")  # `Math` of `Math::sin` is a name of its own
                start = node.function.span.end - len(called) if module else node.function.span.start
                roles[start] = "standard" if called in BASES else "call"
            case sac_tree.WithLoop(function=tree.Name() as function):
                roles[function.span.start] = "call" if function.name.isidentifier() else "operator"
            case _:
                pass
    return roles


def word(text: str) -> str:
    """Class of a word that is no name of the tree; the names that a generator repeats are not kept there."""
    if text in BASES:
        return "standard"
    return WORDS.get(text, "keyword" if text in SAC_KEYWORDS or text in ("all", "except") else "name")


def sac_tokens(text: str) -> Tokens:
    uses, rest = cut(SourceText(text), "sac")
    parser = _Parser(rest)
    unit = parser.cell(bool(uses)).unit
    roles = sac_roles(unit)
    found = use_tokens(uses) | {(span.start, span.end): "comment" for span in parser.comments}
    dots = {node.span.start: node.span for node in nodes(unit) if isinstance(node, sac_tree.TripleDot)}
    inside = 0
    for at, token in enumerate(parser.tokens[:-1]):
        place = (token.span.start, token.span.end)
        if token.span.start < inside:
            continue
        if token.span.start in dots:  # `. . .` is one token of the editor
            place = (token.span.start, dots[token.span.start].end)
            inside = place[1]
            found[place] = "constant"
        elif _steps_down(parser.tokens[at : at + 3]):  # `--` too
            inside = parser.tokens[at + 1].span.end
            found[place[0], inside] = "operator"
        elif token.kind == "number":
            found[place] = "number"
        elif token.span.start in roles:
            found[place] = roles[token.span.start]
        elif token.kind == "name":
            found[place] = word(token.text)
        else:
            found[place] = "constant" if token.text == "." else symbol(token.text)
    return spanned(found, text)
