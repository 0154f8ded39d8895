"""Accumulations that are written out, as they are elsewhere: `Y(i) = Y(i) + X(i, j)` means `Y(i) += X(i, j)`.

Worked example: of `m = max(m, X(i))` the operator is `max=`, and `m, ` with the brackets of `max` is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tc_jupyter.diagnostics import Edit, SourceText, Span
from tc_jupyter.syntax import tree

_JOINING = {"+": "+=", "-": "+=", "*": "*=", "&&": "all=", "||": "any="}
_CHAINS = ({"+", "-"}, {"*"}, {"&&"}, {"||"})
"""Operators of which one may be left out anywhere between others of them."""


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """An accumulation that is written out.

    Attributes:
        operator: the one that accumulates.
        value: the edits that leave the target out of the value.
        rest: what is accumulated.
    """

    operator: str
    value: tuple[Edit, ...]
    rest: tuple[tree.Expression, ...]


def written_out(node: tree.Comprehension, source: SourceText) -> WrittenOut | None:
    """What a statement accumulates that reads its target once, where it writes it; `None` if it is something else."""
    if node.operator != "=" or len(node.targets) != 1 or node.along or node.blocks:
        return None
    reads = sum(_is_of(item, node.target.name) for item in tree.walk(node.value))
    return (_of_extreme(node) or _of_chain(node, source)) if reads == 1 else None


def _is_of(item: tree.Expression, name: str) -> bool:
    named = item.function if isinstance(item, tree.Apply) else item
    return isinstance(named, tree.Name) and named.name == name


def _is_own(item: tree.Expression, node: tree.Comprehension) -> bool:
    """Whether an expression is the element that a statement writes."""
    if node.indices is None:
        return isinstance(item, tree.Name) and item.name == node.target.name
    return _is_of(item, node.target.name) and isinstance(item, tree.Apply) and item.arguments == node.indices


def _of_extreme(node: tree.Comprehension) -> WrittenOut | None:
    """`max(m, e)` and `max(e, m)`."""
    call = node.value
    if not isinstance(call, tree.Apply) or call.function.name not in ("max", "min") or len(call.arguments) != 2:
        return None
    others = [each for each in call.arguments if not _is_own(each, node)]
    if len(others) != 1:
        return None
    (rest,) = others
    before, behind = Span(call.span.start, rest.span.start), Span(rest.span.end, call.span.end)
    return WrittenOut(f"{call.function.name}=", (Edit(before, ""), Edit(behind, "")), (rest,))


def _of_chain(node: tree.Comprehension, source: SourceText) -> WrittenOut | None:
    """`Y + a - b`, `a + Y + b` and the like with `*`, `&&` and `||`."""
    steps = list(_chain(node.value))
    for number, step in enumerate(steps):
        terms = [each.right for each in steps if each is not step]
        if step.op != "-" and _is_own(step.right, node):
            place, written = Span(step.op_span.start, step.right.span.end), ""
            terms.append(steps[-1].left)
        elif number == len(steps) - 1 and _is_own(step.left, node):
            place, written = Span(step.left.span.start, step.op_span.end), "-" * (step.op == "-")
            terms.append(step.right)
        else:
            continue
        text = source.slice(place)
        if text.count("(") != text.count(")") or "#" in text:
            return None  # brackets around it would be cut apart
        return WrittenOut(_JOINING[step.op], (Edit(_with_blanks(place, source), written),), tuple(terms))
    return None


def _chain(value: tree.Expression) -> Iterator[tree.Binary[tree.Expression]]:
    """The operations from the last one to the first one, all of one kind."""
    kinds = next((each for each in _CHAINS if isinstance(value, tree.Binary) and value.op in each), set[str]())
    while isinstance(value, tree.Binary) and value.op in kinds:
        yield value
        value = value.left


def _with_blanks(place: Span, source: SourceText) -> Span:
    """A place with the blanks on that side of it where an operand stays."""
    start, end, text = place.start, place.end, source.text
    if text[start] in "+-*&|":
        while text[start - 1] in " \t":
            start -= 1
    else:
        while text[end : end + 1] in (" ", "\t"):
            end += 1
    return Span(start, end)
