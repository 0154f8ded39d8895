"""`W = U * V + 1` for whole arrays: the statement with indices that is meant.

Worked example: for matrices `U` and `V` it is `W(i, j) = U(i, j) * V(i, j) + 1`, and the boxes of `U` and `V` must be equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tc_jupyter.syntax import tree

from .functions import FUNCTIONS
from .scope import TensorInfo
from .typing import TYPE_NAMES

_LETTERS = "ijklmnpqrs"


@dataclass(frozen=True, slots=True)
class Indexed:
    """The statement with indices, and the arrays that it reads as a whole, each once."""

    node: tree.Comprehension
    arrays: tuple[tree.Name, ...]


def indexed(node: tree.Comprehension, tensors: Mapping[str, TensorInfo], taken: Collection[str]) -> Indexed | None:
    """The statement that is meant; `None` if it is none on whole arrays, or if it is not certain what is meant.

    Args:
        taken: names that are no index.
    """
    if (
        node.operator != "="
        or node.indices is not None
        or node.clauses
        or node.at is not None
        or node.before
        or node.rest
    ):
        return None
    arrays = list(dict.fromkeys(_arrays(node.value, tensors)))
    ranks = {tensors[each.name].rank for each in arrays}
    target = tensors.get(node.target.name)
    if target is not None and target.rank is not None and target.written:
        ranks.add(target.rank)
    applied = [each for each in tree.walk(node.value) if isinstance(each, tree.Apply)]
    if not arrays or len(ranks) != 1 or not all(_is_elementwise(each, tensors) for each in applied):
        return None
    words = {each.name for each in tree.walk(node.value) if isinstance(each, tree.Name)} | {*taken}
    rank = tensors[arrays[0].name].rank or 0
    letters = [letter for letter in _LETTERS if letter not in words][:rank]
    if len(letters) < rank:
        return None
    value = _with_indices(node.value, letters, tensors)
    indices = tuple(tree.Name(letter, node.target.span) for letter in letters)
    return Indexed(replace(node, indices=indices, value=value), tuple(arrays))


def _is_elementwise(node: tree.Apply[tree.Expression], tensors: Mapping[str, TensorInfo]) -> bool:
    """Whether this is a function of elements, a cast, or the read of an element; `max(X)` is meant as something else."""
    name = node.function.name
    if name in tensors:
        return not any(True for each in node.arguments for _ in _arrays(each, tensors))
    return name in TYPE_NAMES or (name in FUNCTIONS and len(node.arguments) >= FUNCTIONS[name].arity)


def _arrays(node: tree.Expression, tensors: Mapping[str, TensorInfo]) -> Iterator[tree.Name]:
    """The arrays that stand without indices."""
    for each in tree.walk(node):
        if isinstance(each, tree.Name) and each.name in tensors and tensors[each.name].rank:
            yield each


def _with_indices(node: tree.Expression, letters: list[str], tensors: Mapping[str, TensorInfo]) -> tree.Expression:
    """An expression with indices behind each array."""

    def inner(each: tree.Expression) -> tree.Expression:
        return _with_indices(each, letters, tensors)

    match node:
        case tree.Name() if node.name in tensors and tensors[node.name].rank:
            return tree.Apply(node, tuple(tree.Name(letter, node.span) for letter in letters), node.span)
        case tree.Apply() if node.function.name in tensors:
            return node
        case tree.Bordered():
            return replace(node, otherwise=inner(node.otherwise))
        case _:
            return tree.mapped(node, inner)
