"""Tree -> canonical text: the basis of every cache key, and the layout of formatted cells.

Parsing the text of a tree gives the tree again. Comments are not kept. Names, literals and the words for types stay as written;
blanks, brackets and the spelling of ranges are made uniform.

Worked example: `o(i)+=!A(i,j)*(B(j)) where j=[0,3[` prints as `o(i) +=! A(i, j) * B(j) where j in 0:3`.
"""

from __future__ import annotations

from typing import assert_never

from .tree import (
    Apply,
    Binary,
    Block,
    Bordered,
    Broken,
    CallStatement,
    Clause,
    Comprehension,
    Conditional,
    Constant,
    Def,
    Dimension,
    Exists,
    Expression,
    Extent,
    Filter,
    Let,
    Listed,
    Name,
    Number,
    Param,
    Reducer,
    Result,
    TcStatement,
    TypeName,
    Unary,
    Unique,
    Unit,
    Use,
    Where,
    ends,
)

_WIDTH = 100
_INDENT = "    "
_CHOICE, _UNARY, _TIGHT, _ATOM = 0, 11, 13, 14
_LEVELS = {
    **dict.fromkeys(("||",), 1),
    **dict.fromkeys(("&&",), 2),
    **dict.fromkeys(("==", "!="), 3),
    **dict.fromkeys(("<", "<=", ">", ">="), 4),
    **{"|": 5, "^^": 6, "&": 7},
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("*", "/", "%"), 10),
    "^": 12,
}


def to_text(unit: Unit) -> str:
    """The canonical text of a cell, with a line end after each def and a blank line between them."""
    constants = "".join(f"{use_text(item)}\n" for item in unit.uses)
    constants += "".join(f"{statement_text(item)}\n" for item in unit.constants)
    return "\n".join([*([constants] if constants else []), *(def_text(item) for item in unit.defs)])


def use_text(item: Use) -> str:
    """`use "kernels.tc"`."""
    return f'use "{item.path}"'


def def_text(item: Def) -> str:
    """One def, statements indented by four blanks, with a final line end."""
    params = [_param(param) for param in item.params]
    if item.reducer is not None:
        return reducer_text(item, item.reducer) + "\n"
    results = ", ".join(_result(result) for result in item.results)
    head = f"def {item.name.name}({', '.join(params)}) -> ({results}) {{"
    if len(head) > _WIDTH:
        head = f"def {item.name.name}(\n" + ",\n".join(_INDENT + param for param in params) + f"\n) -> ({results}) {{"
    return "\n".join([head, *body_lines(item.statements), "}\n"])


def body_lines(statements: tuple[TcStatement, ...]) -> list[str]:
    """The lines of a body; what stands inside of a block is indented by four blanks more."""
    lines: list[str] = []
    around: tuple[Block, ...] = ()
    for statement in statements:
        blocks = statement.blocks if isinstance(statement, Comprehension) else around
        common = next((k for k, pair in enumerate(zip(around, blocks, strict=False)) if pair[0] != pair[1]), None)
        common = min(len(around), len(blocks)) if common is None else common
        lines += [_INDENT * (k + 1) + "}" for k in reversed(range(common, len(around)))]
        lines += [_INDENT * (k + 1) + block_text(blocks[k]) + " {" for k in range(common, len(blocks))]
        text = statement_text(statement).replace("\n", "\n" + _INDENT * len(blocks))
        lines.append(_INDENT * (len(blocks) + 1) + text)
        around = blocks
    return lines + [_INDENT * (k + 1) + "}" for k in reversed(range(len(around)))]


def block_text(block: Block) -> str:
    """The head of a block."""
    sign = "-" if block.step < 0 else ""
    return f"along {sign}{block.index.name} in {_at(block.lower, 1)}:{_at(block.upper, 1)}"


def reducer_text(item: Def, reducer: Reducer) -> str:
    """A `reduce`; the value of a long one stands in a line of its own."""
    values = tuple(each.value for each in item.statements if isinstance(each, Comprehension))
    head = f"reduce {item.name.name}({', '.join(map(_param, item.params))}) ="
    rest = f"{_together(values)} from {_together(reducer.identity)}"
    if reducer.lifted:
        given = ", ".join(name.name for name in reducer.given)
        rest += f" with {f'({given})' if len(reducer.given) > 1 else given} -> {_together(reducer.lifted)}"
    return f"{head} {rest}" if len(head) + len(rest) < _WIDTH else f"{head}\n{_INDENT}{rest}"


def statement_text(statement: TcStatement) -> str:
    """A statement; long ones continue on lines indented by eight blanks (relative to the def)."""
    match statement:
        case Broken():
            return " ".join(statement.text.split())
        case CallStatement():
            targets = ", ".join(target.name for target in statement.targets)
            power = "" if statement.count is None else f"^{statement.count.name}"
            return f"{targets} = {statement.callee.name}{power}({', '.join(map(expression_text, statement.arguments))})"
        case Constant():
            return f"const {type_text(statement.type)} {statement.name.name} = {_values(statement.values)}"
        case Comprehension():
            return _comprehension(statement)
    assert_never(statement)


def _values(node: Expression | Listed) -> str:
    return f"[{', '.join(map(_values, node.items))}]" if isinstance(node, Listed) else expression_text(node)


def _comprehension(node: Comprehension) -> str:
    targets = ", ".join(
        name.name + ("" if indices is None else f"({_list(indices)})") for name, indices in node.targets
    )
    text = f"{targets} {node.operator} {_together((node.value, *node.rest))}"
    if node.matched is not None:
        text += f" <=> {expression_text(node.matched)}"
    if node.at is not None:
        text += f" at {expression_text(node.at)}"
    along = ", ".join(("-" if each.step < 0 else "") + each.index.name for each in node.along)
    order = f" along {along}" if along else ""
    if not node.clauses:
        return text + order
    clauses = ", ".join(clause_text(clause) for clause in node.clauses)
    if len(_INDENT) + len(text) + len(" where ") + len(clauses + order) > _WIDTH:
        return f"{text}\n{_INDENT * 2}where {clauses}{order}"
    return f"{text} where {clauses}{order}"


def clause_text(clause: Clause) -> str:
    """A part of a `where`."""
    match clause:
        case Where():
            return f"{clause.index.name} in {_at(clause.lower, 1)}:{_at(clause.upper, 1)}"
        case Let():
            return f"{clause.name.name} = {expression_text(clause.value)}"
        case Exists():
            return f"exists {expression_text(clause.value)}"
        case Unique():
            return "unique"
        case Filter():
            return expression_text(clause.condition)
    assert_never(clause)


def expression_text(node: Expression) -> str:
    """An expression with the fewest brackets."""
    return _at(node, _CHOICE)


def _at(node: Expression, level: int) -> str:
    """The text of an operand that has to bind at least as tightly as `level`."""
    text, own = _text(node)
    return text if own >= level else f"({text})"


def _text(node: Expression) -> tuple[str, int]:
    match node:
        case Name():
            return node.name, _ATOM
        case Number():
            return node.text, _ATOM
        case Extent():
            return f"{node.tensor.name}.{node.dimension}", _ATOM
        case Apply():
            return f"{node.function.name}({_list(node.arguments)})", _ATOM
        case Bordered():
            text = expression_text(node.otherwise)
            return f"{_text(node.read)[0]} else {f'({text})' if node.bracketed else text}", _ATOM
        case Unary():
            level = _TIGHT if node.op == "~" else _UNARY
            return node.op + _at(node.operand, level), level
        case Binary(op="^"):
            return f"{_at(node.left, _TIGHT)}^{_at(node.right, _UNARY)}", _LEVELS["^"]
        case Binary():
            own = _LEVELS[node.op]
            chains = own not in (3, 4)  # comparisons do not chain
            return f"{_at(node.left, own if chains else own + 1)} {node.op} {_at(node.right, own + 1)}", own
        case Conditional():
            parts = _at(node.condition, 1), _at(node.then, 1), _at(node.otherwise, _CHOICE)
            return f"{parts[0]} ? {parts[1]} : {parts[2]}", _CHOICE
    assert_never(node)


def _together(nodes: tuple[Expression, ...]) -> str:
    """A value, or several in brackets."""
    return expression_text(nodes[0]) if len(nodes) == 1 else f"({_list(nodes)})"


def _list(nodes: tuple[Expression, ...]) -> str:
    return ", ".join(expression_text(node) for node in nodes)


def type_text(node: TypeName) -> str:
    """A type with its dimensions."""
    dimensions = ", ".join(dimension_text(each) for each in node.dimensions)
    return f"{node.scalar}({dimensions})" if dimensions else node.scalar


def dimension_text(node: Dimension) -> str:
    """A dimension of a type: an extent, or both ends of a box."""
    return ":".join(_at(end, 1) for end in ends(node))


def _param(param: Param) -> str:
    return f"{type_text(param.type)} {param.name.name}" if param.type else param.name.name


def _result(result: Result) -> str:
    return f"{type_text(result.type)} {result.name.name}" if result.type else result.name.name
