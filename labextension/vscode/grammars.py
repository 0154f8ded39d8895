"""The TextMate grammars for VS Code, made of the tables of the Pygments lexers: `python labextension/vscode/grammars.py`.

The lexers have their words from the parsers (`tc_jupyter.syntax`, `tc_jupyter.program`), so that no list is written twice.
Their rules are tried in order at each place, as TextMate tries its patterns; only comments over several lines need a beginning and
an end.

Worked example: the rule `(r"#[^\\n]*", Comment.Single)` becomes `{"match": "#[^\\n]*", "name": "comment.line.tc"}`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pygments.lexer import words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from tc_jupyter.notebook.lexer import SacLexer, TcLexer

FOLDER = Path(__file__).with_name("syntaxes")
LEXERS = {"tc": TcLexer, "sac": SacLexer}
SCOPES = {
    Comment.Single: "comment.line",
    Comment.Multiline: "comment.block",
    Comment.Preproc: "keyword.control.directive",
    Keyword: "keyword.control",
    Keyword.Type: "storage.type",
    Keyword.Constant: "constant.language",
    Name: "variable.other",
    Name.Builtin: "support.function",
    Name.Function: "entity.name.function",
    Number.Bin: "constant.numeric",
    Number.Float: "constant.numeric",
    Number.Hex: "constant.numeric",
    Number.Integer: "constant.numeric",
    Operator: "keyword.operator",
    Punctuation: "punctuation",
    String: "string.quoted.double",
}
"""What the lexers call a token -> what themes of editors colour."""


def pattern(rule: tuple[Any, Any], language: str) -> dict[str, Any] | None:
    """The pattern of a rule; `None` for blanks."""
    regex, kind = rule
    text = regex.get() if isinstance(regex, words) else regex
    if kind is Whitespace:
        return None
    if kind is Comment.Multiline:
        return {"begin": r"/\*", "end": r"\*/", "name": f"comment.block.{language}"}
    if callable(kind):  # `bygroups` keeps its kinds in its closure
        kinds = next(cell.cell_contents for cell in kind.__closure__ if isinstance(cell.cell_contents, tuple))
        named = {number: each for number, each in enumerate(kinds, 1) if each is not Whitespace}
        return {
            "match": text,
            "captures": {str(number): {"name": f"{SCOPES[each]}.{language}"} for number, each in named.items()},
        }
    return {"match": text, "name": f"{SCOPES[kind]}.{language}"}


def grammar(language: str) -> dict[str, Any]:
    """The grammar of a language."""
    lexer = LEXERS[language]
    found = (pattern(rule, language) for rule in lexer.tokens["root"])
    return {
        "name": lexer.name,
        "scopeName": f"source.{language}",
        "fileTypes": [language],
        "patterns": [each for each in found if each is not None],
    }


def cells() -> dict[str, Any]:
    """What colours `%%tc` and `%%sac` cells, which are Python for VS Code: from the magic to the end of the cell."""
    return {
        "scopeName": "tc-jupyter.cells",
        "injectionSelector": "L:source.python -comment -string -meta.embedded",
        "patterns": [
            {
                "begin": rf"^\s*(%%{language})(?=\s|$)([^\n]*)",
                "beginCaptures": {
                    "1": {"name": f"keyword.control.directive.{language}"},
                    "2": {"name": f"variable.parameter.{language}"},
                },
                "end": "(?!)",
                "contentName": f"meta.embedded.block.{language}",
                "patterns": [{"include": f"source.{language}"}],
            }
            for language in LEXERS
        ],
    }


def made() -> dict[str, str]:
    """The texts of all files, by name."""
    found = {f"{language}.tmLanguage.json": grammar(language) for language in LEXERS}
    found["cells.tmLanguage.json"] = cells()
    return {name: json.dumps(data, indent=1) + "\n" for name, data in found.items()}


def regexes(data: Any) -> list[str]:
    """Every expression of a grammar."""
    return re.findall(r'"(?:match|begin|end)": "((?:[^"\\]|\\.)*)"', json.dumps(data))


if __name__ == "__main__":
    for name, text in made().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
