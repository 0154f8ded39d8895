"""Formulas of ranges as MathML, which browsers set like a book; a page that drops the tags still reads `0 ≤ i < ⌊(N + 1) / 2⌋`.

Worked example: `mathml("N - K + 1")` has the text `N − K + 1`.

Source: W3C, "MathML Core".
"""

from __future__ import annotations

import ast
from html import escape

_OPERATORS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", 1),
    ast.Sub: ("−", 1),
    ast.Mult: ("·", 2),
    ast.Div: ("/", 2),
    ast.Mod: ("mod", 2),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "≤",
    ast.Gt: ">",
    ast.GtE: "≥",
    ast.Eq: "=",
    ast.NotEq: "≠",
}
_POWER = 3
_RIGHT = 1.5
"""To the right of a sum: a sum or a sign there needs parentheses, a product does not."""


def range_mathml(lower: str, index: str, upper: str) -> str:
    """`lower ≤ index < upper` as one formula; the ends are Python expressions over sizes."""
    inner = f"{_typeset(lower)}{_operator('≤')}{_name(index)}{_operator('<')}{_typeset(upper)}"
    return f'<math title="{escape(f"{lower} <= {index} < {upper}")}"><mrow>{inner}</mrow></math>'


def mathml(text: str) -> str:
    """A Python expression over sizes as a formula."""
    return f'<math title="{escape(text)}"><mrow>{_typeset(text)}</mrow></math>'


def _typeset(text: str) -> str:
    try:
        return _node(ast.parse(text, mode="eval").body, 0)
    except (SyntaxError, ValueError):
        return f"<mtext>{escape(text)}</mtext>"


def _node(node: ast.expr, around: float) -> str:
    """`around`: how strongly the operator outside binds."""
    match node:
        case ast.Name(id=name):
            return _name(name)
        case ast.Constant(value=value):
            return f"<mn>{escape(str(value))}</mn>"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _closed(f"{_operator('−')}{_node(operand, 2)}", around > 2 or around == _RIGHT)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return f"{_operator('⌊')}{_node(left, 2)}{_operator('/')}{_node(right, _POWER)}{_operator('⌋')}"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            sign, binds = _OPERATORS[type(op)]
            return _closed(
                f"{_node(left, binds)}{_operator(sign)}{_node(right, binds + 1 if binds > 1 else _RIGHT)}",
                around > binds,
            )
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _applied(name, arguments, "()")
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=indices)):
            return _applied(name, indices, "[]")
        case ast.Subscript(value=ast.Name(id=name), slice=place):
            return _applied(name, [place], "[]")
        case ast.IfExp(test=test, body=body, orelse=orelse):
            inner = f"{_node(body, 0)}<mtext> if </mtext>{_node(test, 0)}<mtext>, else </mtext>{_node(orelse, 0)}"
            return _closed(inner, around > 0)
        case ast.Compare(left=left, ops=ops, comparators=others):
            parts = [_node(left, 0)]
            for op, other in zip(ops, others, strict=True):
                parts += [_operator(_COMPARISONS.get(type(op), "?")), _node(other, 0)]
            return "".join(parts)
        case _:
            return f"<mtext>{escape(ast.unparse(node))}</mtext>"


def _applied(name: str, arguments: list[ast.expr], brackets: str) -> str:
    inner = _operator(",").join(_node(each, 0) for each in arguments)
    return f"<mi>{escape(name)}</mi>{_operator(brackets[0])}{inner}{_operator(brackets[1])}"


def _closed(inner: str, needed: bool) -> str:
    return f"{_operator('(')}{inner}{_operator(')')}" if needed else inner


def _operator(sign: str) -> str:
    return f"<mo>{escape(sign)}</mo>"


def _name(name: str) -> str:
    """A size; `T.0`, the extent of a computed tensor, in upright letters."""
    return f"<mi>{escape(name)}</mi>"
