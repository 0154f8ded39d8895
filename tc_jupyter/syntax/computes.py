"""Statements of TVM's tensor expressions: `C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))`.

Worked example: the fix writes `C(i, j) +=! A[i, k] * B[k, j]`, and leaves out `k = te.reduce_axis((0, K), name="k")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes

from .foreign import text_of
from .library_names import OPERATORS
from .mended import mended
from .recovery import closers, extents, split_commas
from .tokens import Token

_MODULES = ("te", "tvm", "tir")
_AXES, _INPUTS = frozenset({"reduce_axis"}), frozenset({"placeholder", "var", "size_var"})
_MOST = 400  # tokens of such a statement
_COMPUTED = "a statement says what one element is, as in `C(i, j) +=! A(i, k) * B(k, j)`"
_REDUCED = "an index that stands on the right only is combined over; a range of its own is given with `where k in a:b`"
_GIVEN = "tensors and sizes are parameters, as in `def f(float(M, N) A) -> (C) { ... }`"


@dataclass(slots=True)
class _Def:
    """What is known where a statement stands.

    Attributes:
        sizes: those of the parameters, by name and dimension.
        names: all words of the header.
        axes: the ranges of reductions, by index.
    """

    sizes: Mapping[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    names: frozenset[str] = frozenset()
    axes: dict[str, str] = field(default_factory=dict[str, str])


def without_computes(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """Statements of tensor expressions become those that they mean, after a message each."""
    if not any(token.text in ("compute", *_AXES, *_INPUTS) for token in tokens):
        return tokens
    starts = [0, *(i for i, token in enumerate(tokens) if token.type == "DEF" and i), len(tokens)]
    # the edits of a def are together: what is said of its words stays within it
    parts = (_mended_def(tokens[begin:end], diagnostics) for begin, end in pairwise(starts))
    return [token for part in parts for token in part]


def _mended_def(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    pairs, known, edits = closers(tokens), _Def(), list[Edit]()
    for i, token in enumerate(tokens):
        if token.type == "DEF":
            body = next((j for j in range(i, len(tokens)) if tokens[j].type == "LBRACE"), len(tokens))
            header = tokens[i:body]
            known = _Def(extents(header), frozenset(each.text for each in header))
        called = _called(tokens, i, pairs)
        if called is None:
            continue
        found = _told(tokens, i, called, pairs[called + 1], known)
        if found is not None:
            whole = Span(tokens[i].start, tokens[pairs[called + 1]].end)
            diagnostics[:] = [each for each in diagnostics if not _is_quote(each, whole)]
            diagnostics.append(found)
            edits += found.fix.edits if found.fix else ()
    return (mended(tokens, Fix("", tuple(edits))) or tokens) if edits else tokens


def _is_quote(found: Diagnostic, whole: Span) -> bool:
    return found.code is codes.UNKNOWN_CHARACTER and whole.start <= found.span.start < whole.end and found.fix is None


def _called(tokens: list[Token], i: int, pairs: dict[int, int]) -> int | None:
    """The place of `compute` in `C = te.compute(...)`, whose `C` stands at a place."""
    if [token.type for token in tokens[i : i + 2]] != ["NAME", "ASSIGN"]:
        return None
    at = i + 2
    while at + 2 < len(tokens) and tokens[at].type == "NAME" and tokens[at + 1].type == "DOT":
        at += 2
    known = at < len(tokens) and tokens[at].text in ("compute", *_AXES, *_INPUTS)
    known = known and (tokens[at].text != "var" or tokens[at - 2].text in _MODULES)  # `X.var()` is the variance
    is_call = known and at + 1 in pairs and pairs[at + 1] - i < _MOST
    if not is_call or (at == i + 2 and all(token.text != "lambda" for token in tokens[at : pairs[at + 1]])):
        return None  # a cell may have a def of that name
    return at


def _told(tokens: list[Token], i: int, called: int, close: int, known: _Def) -> Diagnostic | None:
    name, target = tokens[called].text, tokens[i].text
    place, whole = Span(tokens[i + 2].start, tokens[called].end), Span(tokens[i].start, tokens[close].end)
    message = f"there is no `{text_of(tokens[i + 2 : called + 1])}`"
    if name == "compute":
        edits = _statement(tokens, i, called, close, known)
        fix = Fix("write a statement", tuple(edits)) if edits else None
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=_COMPUTED, fix=fix)
    leave_out = Fix("leave it out", (Edit(whole, ""),))
    if name in _AXES:
        inside = closers(tokens[called + 2 : close]).get(0)
        ends = split_commas(tokens[called + 3 : called + 2 + inside]) if inside else []
        if len(ends) == 2 and all(ends):
            known.axes[target] = f"{text_of(ends[0])}:{text_of(ends[1])}"
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=_REDUCED, fix=leave_out)
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=_GIVEN, fix=leave_out if target in known.names else None)


def _statement(tokens: list[Token], i: int, called: int, close: int, known: _Def) -> list[Edit]:
    """What makes `C(i, j) = e` of `C = te.compute(shape, lambda i, j: e)`; nothing where this is something else."""
    inside = tokens[called + 2 : close]
    pairs = closers(inside)
    outside = _outside(len(inside), pairs)
    word = next((at for at in outside if inside[at].text == "lambda"), None)
    colon = next((at for at in outside if word is not None and at > word and inside[at].type == "COLON"), None)
    if word is None or colon is None or word < 2:
        return []
    named = split_commas(inside[word + 1 : colon])
    end = next((at for at in outside if at > colon and inside[at].type == "COMMA"), len(inside))
    value, shape = inside[colon + 1 : end], split_commas(inside[: word - 1])
    if inside[0].type == "LPAR" and pairs.get(0) == word - 2:
        shape = [each for each in split_commas(inside[1 : word - 2]) if each]
    if not value or not all(len(each) == 1 and each[0].type == "NAME" for each in named):
        return []
    indices = [each[0].text for each in named]
    operator, combined = _combined(value)
    ranges = {
        index: f"0:{text_of(each)}" for index, each in zip(indices, shape, strict=False) if _is_known(each, known)
    }
    used = {token.text for token in combined}
    ranges |= {index: range for index, range in known.axes.items() if index in used}
    clauses = [f"{index} in {range}" for index, range in ranges.items() if not _is_whole(combined, index, range, known)]
    where = f" where {', '.join(clauses)}" if clauses else ""
    head = Edit(Span(tokens[i].end, combined[0].start), f"({', '.join(indices)}) {operator} ")
    return [head, Edit(Span(combined[-1].end, tokens[close].end), where)]


def _outside(count: int, pairs: dict[int, int]) -> list[int]:
    """The places outside of all brackets, with those where one opens."""
    found, at = list[int](), 0
    while at < count:
        found.append(at)
        at = pairs.get(at, at) + 1
    return found


def _combined(value: list[Token]) -> tuple[str, list[Token]]:
    """The operator and the operand of `te.sum(e, axis=k)`; `=` and the value itself where nothing is combined."""
    at = 0
    while at + 1 < len(value) and value[at].type == "NAME" and value[at + 1].type == "DOT":
        at += 2
    operator = OPERATORS.get(value[at].text)
    if operator is None or closers(value).get(at + 1) != len(value) - 1:
        return "=", value
    first, *others = split_commas(value[at + 2 : -1])
    by_axis = any(len(each) > 2 and each[0].text == "axis" for each in others)
    return (operator, first) if first and by_axis else ("=", value)


def _is_known(size: list[Token], known: _Def) -> bool:
    return all(token.type != "NAME" or token.text in known.names for token in size)


def _is_whole(value: list[Token], index: str, range: str, known: _Def) -> bool:
    """Whether an index stands alone in a subscript of a parameter whose extent is its range, as it runs by itself."""
    for opening, closing in closers(value).items():
        for k, each in enumerate(split_commas(value[opening + 1 : closing])):
            alone = opening and len(each) == 1 and each[0].text == index
            if alone and range == f"0:{known.sizes.get((value[opening - 1].text, k))}":
                return True
    return False
