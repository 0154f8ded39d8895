"""Functions of array libraries that combine elements, as statements: `sum(X(i, j))`, `max(X)`, `mean(X(i, j))`.

Worked example: of `Y(i) = X(i) / max(X)` the fix makes `Y_max max=! X(j)  Y(i) = X(i) / Y_max`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass

from tc_jupyter.diagnostics import Edit, Fix, SourceText, Span
from tc_jupyter.syntax import lengths, library_names, tree

from .expr import DType
from .scope import TensorInfo, words_of


@dataclass(frozen=True, slots=True)
class Combined:
    """What is combined.

    Attributes:
        text: one element of it, in brackets in `bracketed` where operators beside it could take it apart.
        over: the indices that it is combined over, each with the number of its values where that is seen: `X.1` for `j`.
        left: the left-side indices that it has.
        dtype: its type, if that is known.
    """

    text: str
    bracketed: str
    over: Mapping[str, str]
    left: tuple[str, ...]
    dtype: DType | None


def of_elements(
    node: tree.Expression,
    text: str,
    bracketed: str,
    known: Collection[str],
    left: tuple[str, ...],
    dtype: DType | None,
    tensors: Mapping[str, TensorInfo],
) -> Combined | None:
    """An expression of elements; `None` where all of its names mean something already, so that nothing is combined over."""
    names = dict.fromkeys(item.name for item in tree.walk(node) if isinstance(item, tree.Name))
    over = {name: _length(name, node, tensors) for name in names if name not in known}
    own = tuple(name for name in left if name in names)
    return Combined(text, bracketed, over, own, dtype) if over else None


def of_tensor(info: TensorInfo, free: list[str]) -> Combined | None:
    """All elements of a tensor, at indices that are free; `None` where there are too few, or it has none."""
    rank = info.rank or 0
    if not 0 < rank <= len(free):
        return None
    text = f"{info.name}({', '.join(free[:rank])})"
    return Combined(text, text, {name: f"{info.name}.{k}" for k, name in enumerate(free[:rank])}, (), info.dtype)


def _length(name: str, node: tree.Expression, tensors: Mapping[str, TensorInfo]) -> str:
    """The number of values of an index; nothing where the reads do not say it."""
    is_guarded = any(
        isinstance(item, tree.Conditional | tree.Bordered)
        or (isinstance(item, tree.Binary) and item.op in ("&&", "||"))
        for item in tree.walk(node)
    )
    return lengths.length(_places(name, node, tensors), is_guarded)


def _places(name: str, node: tree.Expression, tensors: Mapping[str, TensorInfo]) -> Iterator[lengths.Place]:
    for read in tree.walk(node):
        info = tensors.get(read.function.name) if isinstance(read, tree.Apply) else None
        if not isinstance(read, tree.Apply) or info is None:
            continue
        for k, at in enumerate(read.arguments):
            if name in _outside_of_reads(at, tensors):
                run = (
                    (info.dims[k], info.starts[k : k + 1]) if info.kind == "parameter" and k < len(info.dims) else None
                )
                yield lengths.Place(f"{info.name}.{k}", run or (info.name, k), _shift(at))


def _outside_of_reads(node: tree.Expression, tensors: Mapping[str, TensorInfo]) -> set[str]:
    """The names in a subscript, but for those that subscript a tensor in it, as in `X(I(j))`."""
    inner = [item.span for item in tree.walk(node) if isinstance(item, tree.Apply) and item.function.name in tensors]
    names = (item for item in tree.walk(node) if isinstance(item, tree.Name))
    return {item.name for item in names if not any(_is_inside(item.span, span) for span in inner)}


def _shift(at: tree.Expression) -> int | None:
    """1 for `j + 1`, -1 for `j - 1`, 0 for `j` alone; `None` for more."""
    match at:
        case tree.Name():
            return 0
        case tree.Binary(op="+" | "-", left=tree.Name(), right=tree.Number(value=int(by))):
            return by if at.op == "+" else -by
        case _:
            return None


def statements(word: str, target: str, combined: Combined) -> tuple[str, str, str] | None:
    """The operator, the value, and what stands in a second statement, for a target; `None` where `word` is no statement."""
    if word in library_names.REDUCED:
        operator, template = library_names.REDUCED[word]
        return operator, template.format(combined.text, combined.bracketed), ""
    if word == "norm" and combined.dtype is not None and not combined.dtype.is_complex:
        value = f"{combined.bracketed}^2" if combined.dtype.is_float else f"double({combined.text})^2"
        return "+=!", value, f"  {target} = sqrt({target})"
    if word != "mean" or not all(combined.over.values()) or combined.dtype is None:
        return None
    value = combined.text if combined.dtype.part.is_float else f"double({combined.text})"
    return "+=!", value, f"  {target} = {target} / {lengths.count(combined.over.values())}"


_IN_TWO = {"mean": "sum, and divide", "norm": "sum the squares, and take the root"}


def whole(
    word: str, statement: tree.Comprehension, node: tree.Expression, combined: Combined, source: SourceText
) -> Fix | None:
    """The fix for a statement that is this function alone: `m = max(X)`."""
    target = source.slice(Span(statement.span.start, statement.operator_span.start)).rstrip()
    made = statements(word, target, combined)
    if made is None or (made[2] and statement.clauses):
        return None
    operator, value, behind = made
    edits = [Edit(statement.operator_span, operator), Edit(node.span, value)]
    edits += [Edit(Span(statement.span.end, statement.span.end), behind)] if behind else []
    return Fix(f"replace `=` by `{operator}`" if not behind else _IN_TWO[word], tuple(edits))


def apart(
    word: str, statement: tree.Comprehension, node: tree.Expression, combined: Combined, source: SourceText
) -> Fix | None:
    """The fix for such a function inside of an expression: a statement before gives its value a name.

    `None` where an index that it combines over stands elsewhere in the statement, too.
    """
    items = [item for part in (statement.value, *(statement.indices or ())) for item in tree.walk(part)]
    same = [
        item for item in items if isinstance(item, tree.Apply) and source.slice(item.span) == source.slice(node.span)
    ]
    names = (item for item in items if isinstance(item, tree.Name))
    rest = {name.name for name in names if not any(_is_inside(name.span, each.span) for each in same)}
    if statement.clauses or statement.along or statement.blocks or rest & combined.over.keys():
        return None
    name = _free(f"{statement.target.name}_{word}", source)
    target = f"{name}({', '.join(combined.left)})" if combined.left else name
    made = statements(word, target, combined)
    if made is None:
        return None
    operator, value, behind = made
    if not behind and any(isinstance(item, tree.Binary) and item.op == "/" and item.left in same for item in items):
        is_float = combined.dtype is not None and combined.dtype.part.is_float and "? 1 : 0" not in value
        value = value if is_float else f"double({value})"  # a quotient of integers would be rounded down
    start = Span(statement.span.start, statement.span.start)
    edits = [Edit(start, f"{target} {operator} {value}{behind}  "), *(Edit(each.span, target) for each in same)]
    return Fix(f"give it a name in a statement before: `{name}`", tuple(edits))


def _is_inside(span: Span, outer: Span) -> bool:
    return outer.start <= span.start < outer.end


def _free(name: str, source: SourceText) -> str:
    """The name, with a number behind it where the text has it already."""
    words = words_of(source.text)
    return next(each for k in itertools.count(1) if (each := f"{name}{k if k > 1 else ''}") not in words)


def combines(function: str) -> bool:
    """Whether a function of array libraries combines the elements of its argument."""
    return function == "norm" or library_names.reducing(function) is not None


def is_nested(statement: tree.Comprehension, node: tree.Apply[tree.Expression]) -> bool:
    """Whether a call that combines elements stands inside of another one, or has one inside."""
    calls = (item for item in tree.walk(statement.value) if isinstance(item, tree.Apply) and item is not node)
    near = (each for each in calls if _is_inside(each.span, node.span) or _is_inside(node.span, each.span))
    return any(len(each.arguments) == 1 and combines(each.function.name) for each in near)


def along_axes(statement: tree.Comprehension, names: Container[str]) -> Iterator[tree.Apply[tree.Expression]]:
    """The calls of `max` and `min` in a statement that have an index as an axis: in `max(X(i, j), j)` it is combined over."""
    for call in tree.walk(statement.value):
        if not isinstance(call, tree.Apply) or call.function.name not in ("max", "min"):
            continue
        inside = tree.names_in(each for each in call.arguments if not isinstance(each, tree.Name))
        if any(isinstance(each, tree.Name) and each.name in names and each.name in inside for each in call.arguments):
            yield call
