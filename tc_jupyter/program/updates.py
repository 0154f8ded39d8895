"""Operators of other languages that change what is there, as `Z(i) ^= Y(i)`: the parser reads them as a `=`, and types say which.

Worked example: `Z(i) ^= Y(i)` is `Z(i) = Z(i) ^^ Y(i)` of integers, and of floats `Z(i) = pow(Z(i), Y(i))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, SourceText, Span, codes
from tc_jupyter.syntax import expression_text, tree

from .expr import DType
from .scope import words_of
from .typing import Typed

_BITWISE = frozenset({"&", "|", "^", "^^"})
"""What combines with the identity to the other operand: the first one of a series may be `=`."""
_SHIFTS = frozenset({"<<", ">>"})
_OF_INTEGERS = _SHIFTS | _BITWISE - {"^"}
_OWN = "{} in a statement of its own"


@dataclass(frozen=True, slots=True)
class Update:
    """What such a statement is.

    Attributes:
        opening, closing: what stands around the value behind `=`.
        node: the new value; `None` where there is none.
        help: the cure in words.
        whole: what stands in place of the statement, if it becomes several.
    """

    opening: str
    closing: str
    node: tree.Expression | None
    help: str
    whole: str = ""


def is_update(node: tree.TcStatement) -> bool:
    """Whether a statement is one that the parser made of such an operator: what it reads of its target stands nowhere."""
    return (
        isinstance(node, tree.Comprehension)
        and node.operator == "="
        and isinstance(node.value, tree.Binary)
        and node.value.left.span.start == node.value.left.span.end
        and node.operator_span.end - node.operator_span.start > 1
    )


def is_in_place(statement: tree.Comprehension) -> bool:
    """Whether a statement changes all elements of its target, at its indices."""
    indices = statement.indices or ()
    names = {index.name for index in indices if isinstance(index, tree.Name)}
    ranges = any(not isinstance(clause, tree.Let) for clause in statement.clauses)
    return len(names) == len(indices) and not ranges


def meant(statement: tree.Comprehension, source: SourceText, types: tuple[Typed, Typed], is_fraction: bool) -> Update:
    """The statement by the types of an element of its target and of the value behind the operator.

    Args:
        is_fraction: the value is `1/2` or the like, whose integers a power does not divide.
    """
    node, (target, value) = statement.value, types
    assert isinstance(node, tree.Binary)
    written, left, right = (
        source.slice(statement.operator_span),
        _left(statement, source),
        source.slice(node.right.span),
    )
    simple = isinstance(node.right, tree.Name | tree.Apply | tree.Number) or right.startswith("(")
    opening, closing = ("", "") if simple else ("(", ")")
    are_integers = all(_is_integer(each) for each in types)
    if written == "//=":
        if are_integers:
            return Update(f"{left} / {opening}", closing, node, _OWN.format("divide") + ", which rounds integers down")
        help = _OWN.format("divide") + ", and round down with `floor`"
        return Update(f"floor({left} / {opening}", f"{closing})", node, help)
    if node.op in _OF_INTEGERS and not are_integers:
        kind = next(each.dtype.value for each in types if not _is_integer(each))
        cure = "a float is shifted as `x * exp2(n)`" if node.op in _SHIFTS else "cast it, as in `int32(x)`"
        return Update("", "", None, f"`{node.op}` takes integers, not `{kind}`: {cure}")
    if node.op != "^":
        verb = {"/": "divide", "%": "take the remainder"}.get(node.op, "combine the bits")
        return Update(f"{left} {node.op} {opening}", closing, node, _OWN.format(verb))
    if are_integers and written == "^=":
        help = _OWN.format("combine the bits") + ": exclusive or is `^^`, and `^` is the power"
        return Update(f"{left} ^^ {opening}", closing, replace(node, op="^^"), help)
    if isinstance(node.right, tree.Number) and right.isdigit():
        return Update(f"{left}^", "", node, _OWN.format("raise it"))
    if _is_integer(value) and not is_fraction and not are_integers:
        return Update(f"{left}^{opening}", closing, node, _OWN.format("raise it"))
    return _real_power(node, left, target.dtype if are_integers and not is_fraction else None)


def _is_integer(value: Typed) -> bool:
    return (value.dtype.is_integer or value.dtype is DType.BOOL) and value.weak != "float"


def _real_power(node: tree.Binary[tree.Expression], left: str, dtype: DType | None) -> Update:
    """`pow(x, y)`; of integers of a type it is rounded, so that it is what a product of them is."""
    function, place = tree.Name("pow", node.left.span), node.span
    if dtype is None:
        return Update(
            f"pow({left}, ", ")", tree.Apply(function, (node.left, node.right), place), _OWN.format("raise it")
        )
    names = (tree.Name(name, node.left.span) for name in (dtype.value, "round", "double"))
    cast, rounded, double = names
    base = tree.Apply(double, (node.left,), node.left.span)
    power = tree.Apply(function, (base, node.right), place)
    value = tree.Apply(cast, (tree.Apply(rounded, (power,), place),), place)
    help = _OWN.format("raise it") + ": integers have powers that are literals, others are rounded ones of `double`"
    return Update(f"{dtype.value}(round(pow(double({left}), ", ")))", value, help)


def _left(statement: tree.Comprehension, source: SourceText) -> str:
    """The left side as it is written; with round brackets where it has others, about which there is another message."""
    written = source.slice(Span(statement.target.span.start, statement.operator_span.start)).rstrip()
    assert isinstance(statement.value, tree.Binary)
    return expression_text(statement.value.left) if "[" in written else written


def combined(statement: tree.Comprehension, source: SourceText) -> list[Edit]:
    """The edits that make `= Z * (X)` of `*= X` on whole arrays, which `=` alone is about."""
    value, name = statement.value, statement.target.name
    symbol = source.slice(statement.operator_span).removesuffix("=")
    place = value.operand.span if symbol == "-" and isinstance(value, tree.Unary) else value.span
    simple = isinstance(value, tree.Name | tree.Number) or source.text[place.start : place.start + 1] == "("
    opening, closing = (f"{name} {symbol} ", "") if simple else (f"{name} {symbol} (", ")")
    if symbol in ("min", "max"):
        opening, closing = f"{symbol}({name}, ", ")"
    around = Edit(Span(place.start, place.start), opening), Edit(Span(place.end, place.end), closing)
    return [Edit(statement.operator_span, "="), *(each for each in around if each.text)]


def told(statement: tree.Comprehension, source: SourceText, update: Update, others: Sequence[Edit] = ()) -> Diagnostic:
    """The message about the operator, with the fix that writes `=` and something around the value.

    Args:
        others: edits at other places, which belong to it.
    """
    assert isinstance(statement.value, tree.Binary)
    message, place = _message(statement, source, update.help), statement.value.right.span
    if update.node is None:
        return message
    if update.whole:
        return replace(message, fix=Fix("write two statements", (Edit(statement.span, update.whole),)))
    around = Edit(Span(place.start, place.start), update.opening), Edit(Span(place.end, place.end), update.closing)
    edits = Edit(statement.operator_span, "="), *(each for each in around if each.text), *others
    return replace(message, fix=Fix("use `=`", edits))


def at_places(statement: tree.Comprehension, source: SourceText, update: Update, indices: Sequence[str]) -> Update:
    """What is said where the left side is no list of its indices: a statement reads its target nowhere else, so there are two."""
    if update.node is None:
        return update
    if (help := _met(statement, source)) is not None:
        return Update("", "", None, help)
    value, left, text = (
        statement.value,
        _left(statement, source),
        source.text[statement.span.start : statement.span.end],
    )
    assert isinstance(value, tree.Binary)
    words, name = words_of(source.text), "T"
    while name in words:
        name += "2"
    made = f"{name}({', '.join(indices)})" if indices else name
    new = f"{made} = {update.opening}{source.slice(value.right.span)}{update.closing}"
    help = f"take the new values first: `{new}`, then `{left} = {made}`"
    simple = not statement.along and not statement.blocks and "#" not in text and "[" not in text
    ranges = all(isinstance(clause, tree.Where | tree.Let) for clause in statement.clauses)
    if not simple or not ranges:
        return Update("", "", None, help)
    whole = f"{new}{source.text[value.right.span.end : statement.span.end]}  {left} = {made}"
    return Update("", "", value, help, whole)


def _met(statement: tree.Comprehension, source: SourceText) -> str | None:
    """How bits are combined where data says in which place, so that many may meet in one; `None` for anything else."""
    node = statement.value
    assert isinstance(node, tree.Binary)
    by_data = any(isinstance(item, tree.Apply) for index in statement.indices or () for item in tree.walk(index))
    if not by_data or node.op not in _BITWISE:
        return None
    operator, identity = "^^" if node.op == "^" else node.op, -1 if node.op == "&" else 0
    line = f"`reduce bits(int a, int b) = a {operator} b from {identity}`"
    return f"a reducer combines bits: {line}, then `{_left(statement, source)} bits=! {source.slice(node.right.span)}`"


def unwritten(
    statement: tree.Comprehension, source: SourceText, is_float: bool
) -> tuple[Diagnostic, tree.Expression | None]:
    """The message where nothing has written the target, and the value that is meant; `None` where there is none.

    Args:
        is_float: the value behind the operator is a float, of which there are no bits.
    """
    node, target = statement.value, statement.target.name
    assert isinstance(node, tree.Binary)
    if not is_float and (help := _met(statement, source)) is not None:
        return _message(statement, source, help), None
    if node.op in _BITWISE and not is_float and source.slice(statement.operator_span) != "**=":
        help = f"nothing has written `{target}`, so that its first statement is `=`"
        return told(statement, source, Update("", "", node.right, help)), node.right
    help = f"nothing has written `{target}`, which it changes: a statement before it has to, or a parameter of another name"
    return _message(statement, source, help), None


def _message(statement: tree.Comprehension, source: SourceText, help: str) -> Diagnostic:
    """What the parser says of the operator, with another help."""
    place = statement.operator_span
    return Diagnostic(codes.SYNTAX_ERROR, place, f"there is no operator `{source.slice(place)}`", help=help)
