"""Bodies of defs that have loops: the statements that compute the same.

Worked example: of `{ for (int i = N - 1; i >= 0; i--) Y[i] = 2 * X[i]; }` in `def f(float(N) X) -> (Y)` the fix makes
`Y(i) = 2 * X(i)`.
"""

from __future__ import annotations

import re

from tc_jupyter.diagnostics import SourceText, Span
from tc_jupyter.syntax.recovery import closers, split_commas
from tc_jupyter.syntax.tokens import Token
from tc_jupyter.syntax.tree import Expression

from .of_c import block
from .of_python import lines
from .parser import OTHER, Beyond, Reader
from .translate import translated_body
from .tree import Function, Parameter

IS_COUNTED = re.compile(
    r"(?P<loop>\b(?:for|forall|parfor|prange)\b)|\b(?:threadIdx|blockIdx|get_global_id)\b|\bcuda\.grid\b"
)
"""A word of a body that counts: that of a loop, or the number of a thread."""
_REMARK = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_TYPES = {
    **{"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64"},
    **{name: name for name in ("float16", "float32", "float64", "bool")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def without_remarks(text: str) -> str:
    """The text with blanks in the place of comments."""
    return _REMARK.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def statements_of(header: list[Token], source: SourceText, place: Span) -> list[str]:
    """The statements for a body.

    Raises:
        Beyond: There are none, or it is not known whether there are.
    """
    parameters, results = _head(header, source)
    text = without_remarks(source.text[place.start : place.end])
    is_c = ";" in text or "{" in text
    if not is_c and "//" in source.text[place.start : place.end]:
        raise Beyond(OTHER)  # a comment, or a quotient of Python
    tensors = frozenset(each.name for each in parameters if each.extents) | frozenset(results)
    column = 0 if is_c else source.position(place.start)[1]
    reader = Reader("{" * is_c + " " * column + text + "}" * is_c, is_c, tensors=tensors)
    body = block(reader) if is_c else lines(reader)
    is_kernel = any(match["loop"] is None for match in IS_COUNTED.finditer(text))
    return translated_body(Function("", tuple(parameters), body, is_kernel, tuple(results)))


def _head(header: list[Token], source: SourceText) -> tuple[list[Parameter], list[str]]:
    """The parameters and the names of the results, if all of them are plain."""
    kinds = [token.type for token in header]
    close = closers(header).get(1)
    if kinds[:2] != ["NAME", "LPAR"] or close is None or kinds[close + 1 : close + 2] != ["ARROW"]:
        raise Beyond(OTHER)
    parameters = [_parameter(piece, source) for piece in split_commas(header[2:close])]
    results = header[close + 2 :]
    if results and results[0].type == "LPAR":
        results = results[1:-1]
    names = [piece[-1].text for piece in split_commas(results) if piece]
    if not names or {*names} & {each.name for each in parameters} or not all(name.isidentifier() for name in names):
        raise Beyond(OTHER)
    return parameters, names


def _parameter(piece: list[Token], source: SourceText) -> Parameter:
    if len(piece) < 2 or piece[0].type != "SCALAR" or piece[-1].type != "NAME" or piece[0].text not in _TYPES:
        raise Beyond(OTHER)
    sizes = split_commas(piece[2:-2])
    if not all(sizes):
        raise Beyond(OTHER)
    extents = tuple(_size(source.text[each[0].start : each[-1].end]) for each in sizes)
    return Parameter(piece[-1].text, _TYPES[piece[0].text], bool(extents), extents)


def _size(text: str) -> Expression:
    reader = Reader(text, is_c=True)
    found = reader.expression()
    if reader.word.kind != "end":
        raise Beyond(OTHER)
    return found
