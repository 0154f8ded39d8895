r"""Pygments lexers `tc` and `sac`: colours in nbconvert, Sphinx and terminals.

`jupyter nbconvert --to tc_html notebook.ipynb` uses them (`export`); for another exporter of nbconvert:

    jupyter nbconvert --to slides --HighlightMagicsPreprocessor.enabled=True \
        --HighlightMagicsPreprocessor.languages="{'%%tc': 'tc', '%%sac': 'sac'}" notebook.ipynb

Worked example: `TcLexer().get_tokens("def f(float(N) X) -> (Y) { Y(i) = X(i) }")` begins with `Token.Keyword "def"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from tc_jupyter.program import TC_FUNCTIONS
from tc_jupyter.syntax import KEYWORDS, SCALAR_TYPES
from tc_jupyter.syntax.sac_parser import BASES, RESERVED

_CONSTANTS = ("true", "false", "inf", "nan")
_TC_KEYWORDS = sorted(set(KEYWORDS) - SCALAR_TYPES - set(_CONSTANTS) - set(TC_FUNCTIONS))
_SAC_KEYWORDS = sorted(set(RESERVED) - set(BASES) - set(_CONSTANTS))

_NUMBERS: list[Any] = [
    (r"0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+[fF]?", Number.Float),
    (r"0[xX][0-9a-fA-F]+[uUlL]*", Number.Hex),
    (r"0[bB][01]+[uUlL]*", Number.Bin),
    (r"(?:\d+\.(?!\.)\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?", Number.Float),
    (r"\d+[eE][+-]?\d+[fF]?", Number.Float),
    (r"\d+[uUlL]*\b", Number.Integer),
    (r"\d\w*", Name),
]


_USE = (r'(use)(\s*)("[^"\n]*")', bygroups(Keyword, Whitespace, String))


def _named(table: Any, kind: Any) -> tuple[Any, Any]:
    return words(table, prefix=r"\b", suffix=r"\b"), kind


class TcLexer(RegexLexer):
    """`%%tc` cells and `.tc` files."""

    name = "Tensor Comprehensions"
    aliases: ClassVar[Sequence[str]] = ["tc", "tensor-comprehensions"]
    filenames: ClassVar[Sequence[str]] = ["*.tc"]
    mimetypes: ClassVar[Sequence[str]] = ["text/x-tc"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"%%\w+[^\n]*", Comment.Preproc),
            (r"#[^\n]*", Comment.Single),
            _USE,
            (r"(def|reduce)(\s+)(\w+)", bygroups(Keyword, Whitespace, Name.Function)),
            (r"(?<=[\w)\s])[A-Za-z_]\w*=!(?!=)(?=\s)", Operator),
            (r"(?<=\s)(?:from|with)(?=\s)", Keyword),
            (r"\b(?:(?:min|max)=!?|(?:argmin|argmax|any|all|lse)=!)(?!=)", Operator),
            (r"[+*]=!?(?!=)", Operator),
            _named(_TC_KEYWORDS, Keyword),
            (r"\balong\b(?=\s*-?\s*[A-Za-z_]\w*\b(?!\s*[(=]))", Keyword),
            _named(sorted(SCALAR_TYPES), Keyword.Type),
            _named(_CONSTANTS, Keyword.Constant),
            (words(sorted(TC_FUNCTIONS), prefix=r"\b", suffix=r"(?=\s*\()"), Name.Builtin),
            (r"[A-Za-z_]\w*", Name),
            *_NUMBERS,
            (r"<=>|->|&&|\|\||\^\^|<<|>>|[<>=!]=|[-+*/%<>=!?:.&|^~]", Operator),
            (r"[(){}\[\],]", Punctuation),
        ]
    }


class SacLexer(RegexLexer):
    """`%%sac` cells and `.sac` files."""

    name = "SaC"
    aliases: ClassVar[Sequence[str]] = ["sac"]
    filenames: ClassVar[Sequence[str]] = ["*.sac"]
    mimetypes: ClassVar[Sequence[str]] = ["text/x-sac"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"%%\w+[^\n]*", Comment.Preproc),
            (r"//[^\n]*", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            _USE,
            _named(_SAC_KEYWORDS, Keyword),
            _named(sorted(BASES), Keyword.Type),
            _named(_CONSTANTS, Keyword.Constant),
            (words(sorted(TC_FUNCTIONS), prefix=r"\b", suffix=r"(?=\s*\()"), Name.Builtin),
            (r"[^\W\d]\w*(?=\s*\()", Name.Function),
            (r"[^\W\d]\w*", Name),
            *_NUMBERS,
            (r"\.\.\.|->|\+\+|&&|\|\||[<>=!]=|[-+*/%<>=!?:.|]", Operator),
            (r"[(){}\[\],;]", Punctuation),
        ]
    }
