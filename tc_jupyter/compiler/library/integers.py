"""Integer arithmetic of a call as C: what the runtime runs as Python, read from the same text.

A sum, difference or product that leaves 64 bits sets `over`, an `int` of the C function around it; Python has no such limit, so a
call where that happens is refused.

Worked example: `c_integer("(N - K)//2 + 1", {"N": "c->v_N", "K": "c->v_K"})` is
`tc_add(&over, tc_floor(tc_sub(&over, c->v_N, c->v_K), 2), 1)`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tc_jupyter.ranges import SizeExpr, python_code, to_python
from tc_jupyter.runtime.launch import Steps

_CHECKED: Mapping[type[ast.operator], str] = {ast.Add: "tc_add", ast.Sub: "tc_sub", ast.Mult: "tc_mul"}
_ROUNDED: Mapping[type[ast.operator], str] = {ast.FloorDiv: "tc_floor", ast.Mod: "tc_mod"}
_COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def c_size(e: SizeExpr, names: Mapping[str, str]) -> str:
    """An expression over sizes; `names` has the C expression of each."""
    return c_integer(python_code(to_python(e)), {python_code(name): text for name, text in names.items()})


def c_integer(text: str, names: Mapping[str, str]) -> str:
    """A Python expression of integers and truth values."""
    marked = {name.replace(".", _DOT): text for name, text in names.items()}
    return c_of(ast.parse(_without_dots(text, names), mode="eval").body, marked)


_DOT = "ẋ"
"""Stands for the point in the name of an extent, `T.0`, which is no name of Python."""


def _without_dots(text: str, names: Mapping[str, str]) -> str:
    for name in sorted((each for each in names if "." in each), key=len, reverse=True):
        text = text.replace(name, name.replace(".", _DOT))
    return text


def c_of(node: ast.expr, names: Mapping[str, str]) -> str:
    """The same of a syntax tree."""
    match node:
        case ast.Constant(value=bool() as value):
            return str(int(value))
        case ast.Constant(value=int() as value):
            return f"INT64_C({value})" if abs(value) >= 1 << 31 else str(value)
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"tc_sub(&over, 0, {c_of(operand, names)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"!({c_of(operand, names)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _CHECKED:
            return f"{_CHECKED[type(op)]}(&over, {c_of(left, names)}, {c_of(right, names)})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"{_ROUNDED[type(op)]}({c_of(left, names)}, {c_of(right, names)})"
        case ast.Compare():
            operands = [c_of(each, names) for each in (node.left, *node.comparators)]
            pairs = zip(operands, node.ops, operands[1:], strict=False)
            return "(" + " && ".join(f"{a} {_COMPARED[type(op)]} {b}" for a, op, b in pairs) + ")"
        case ast.BoolOp(op=op, values=values):
            joint = " && " if isinstance(op, ast.And) else " || "
            return "(" + joint.join(c_of(each, names) for each in values) + ")"
        case ast.IfExp():
            return f"({c_of(node.test, names)} ? {c_of(node.body, names)} : {c_of(node.orelse, names)})"
        case ast.Call(func=ast.Name(id="int"), args=[operand]):
            return f"(int64_t){c_of(operand, names)}"
        case ast.Call(func=ast.Name(id=("min" | "max") as name), args=[first, *others]):
            text = c_of(first, names)
            for other in others:
                text = f"tc_{name}({text}, {c_of(other, names)})"
            return text
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=place), *_]):
            return f"{names[name]}_{place}(c)"
        case _:
            raise TypeError(f"{ast.unparse(node)} in the numbers of a call")


_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")
_STEPS = {
    "+": "tc_add(&over, {}, {})",
    "-": "tc_sub(&over, {}, {})",
    "*": "tc_mul(&over, {}, {})",
    "/": "tc_floor({}, {})",
    "//": "tc_floor({}, {})",
    "%": "tc_mod({}, {})",
    "neg": "-{}",
    "?": "{} ? {} : {}",
    "min": "tc_min({}, {})",
    "max": "tc_max({}, {})",
    **{op: f"{{}} {op} {{}}" for op in _COMPARISONS},
}
"""The steps in C, where they are no number and no end."""


def c_steps(steps: Steps, sizes: Sequence[str], name: str) -> list[str]:
    """The steps of `runtime.launch` as lines, of which the last one is that of the variable `name`."""
    values, lines = [*sizes], list[str]()
    for number, (op, *operands) in enumerate(steps):
        value = f"{name}{number}"
        parts = [f"INT64_C({operands[0]})"] if op == "=" else [values[int(k)] for k in operands]
        if op in ("=", "is"):
            values.append(parts[0])
            continue
        lines.append(f"const int64_t {value} = {_STEPS[str(op)].format(*parts)};")
        values.append(value)
    return [*lines, f"const int64_t {name} = {values[-1]};"]
