"""Tree of a `%%sac` cell -> canonical text: one spelling per tree, the basis of cache keys and of the printed rewrites.

Worked example: `{iv->A[iv]+1|iv<[5]}` prints as `{ iv -> A[iv] + 1 | iv < [5] }`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from .printer import use_text
from .sac_tree import (
    Apply,
    ArrayLiteral,
    Assign,
    Binary,
    BrokenAssign,
    Conditional,
    Dot,
    Generator,
    If,
    Loop,
    PartitionClause,
    Pattern,
    SacExpression,
    SacFunction,
    SacImport,
    SacType,
    SacTypedef,
    SacUnit,
    Selection,
    SetExpr,
    Statement,
    TripleDot,
    Unary,
    Unpack,
    WithGenerator,
    WithLoop,
)
from .tree import Name, Number

_LEVEL = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "++": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip
_COMPARISON = ("==", "!=", "<", "<=", ">", ">=")


def sac_to_text(node: SacUnit | SacFunction | SacExpression | PartitionClause | Pattern | Dot) -> str:
    """The canonical text; parsing it gives an equal tree (for functions that could be read)."""
    match node:
        case SacUnit():
            lines = [f"{use_text(use)};" for use in node.uses] + [line_text(line) for line in node.lines]
            return "\n\n".join([*lines, *(_function(function) for function in node.functions)])
        case SacFunction():
            return _function(node)
        case PartitionClause():
            return _partition(node)
        case Pattern():
            return _pattern(node)
        case Dot():
            return "."
        case _:
            return _expr(node, 0)


def type_text(type_: SacType) -> str:
    """`float[*]`, `int[.,3]`, `double`."""
    if type_.written:
        return type_.written
    if isinstance(type_.shape, str):
        return f"{type_.base}[{type_.shape}]"
    extents = ",".join("." if extent is None else str(extent) for extent in type_.shape)
    return f"{type_.base}[{extents}]" if type_.shape else type_.base


def signature_text(function: SacFunction) -> str:
    """`float[*] increment(float[*] A)`."""
    types = ", ".join(type_text(t) if t else "?" for t in function.types)
    params = ", ".join(f"{type_text(p.type) if p.type else '?'} {p.name.name}" for p in function.params)
    return f"{types} {function.name.name}({params})"


def head_text(function: SacFunction) -> str:
    """The signature as the definition begins with it: with `inline`."""
    return f"{'inline ' if function.inline else ''}{signature_text(function)}"


def line_text(line: SacTypedef | SacImport) -> str:
    """`typedef int[3] vec;`."""
    return line.text if isinstance(line, SacImport) else f"typedef {type_text(line.type)} {line.name.name};"


def _function(function: SacFunction) -> str:
    lines = statement_lines(function.body, 1)
    results = ", ".join(_expr(result, 0) for result in function.results)
    return "\n".join([head_text(function) + " {", *lines, f"    return {results};", "}"])


def statement_lines(statements: Iterable[Statement], depth: int) -> list[str]:
    """Statements, one or more lines each."""
    found: list[str] = []
    indent = "    " * depth
    for statement in statements:
        match statement:
            case Assign():
                found.append(f"{indent}{_assign(statement)};")
            case Unpack():
                names = ", ".join(name.name for name in statement.names)
                found.append(f"{indent}{names} = {_expr(statement.value, 0)};")
            case If():
                found += _if_lines(statement, depth)
            case Loop():
                inside = statement_lines(statement.body, depth + 1)
                last = f" while ({_expr(statement.condition, 0)});" if statement.word == "do" else ""
                found += [f"{indent}{_loop_head(statement)} {{", *inside, f"{indent}}}{last}"]
            case BrokenAssign():
                pass
    return found


def _if_lines(statement: If, depth: int) -> list[str]:
    indent = "    " * depth
    head = f"if ({_expr(statement.condition, 0)}) {{"
    found = [f"{indent}{head}", *statement_lines(statement.then, depth + 1)]
    rest = statement.otherwise
    if len(rest) == 1 and isinstance(rest[0], If):
        first, *others = _if_lines(rest[0], depth)
        return [*found, f"{indent}}} else {first.lstrip()}", *others]
    if rest:
        found += [f"{indent}}} else {{", *statement_lines(rest, depth + 1)]
    return [*found, f"{indent}}}"]


def _loop_head(loop: Loop) -> str:
    condition = _expr(loop.condition, 0)
    if loop.word == "for":
        start, step = (", ".join(map(_assign, part)) for part in (loop.start, loop.step))
        return f"for ({start}; {condition}; {step})"
    return "do" if loop.word == "do" else f"while ({condition})"


def _assign(assign: Assign) -> str:
    name = assign.name.name
    if assign.operator in ("++", "--"):
        return f"{name}{assign.operator}"
    value = assign.value
    if assign.operator != "=":
        assert isinstance(value, Binary)
        value = value.right
    return f"{name} {assign.operator} {_expr(value, 0)}"


def _expr(node: SacExpression, level: int) -> str:
    match node:
        case Name():
            return node.name
        case Number():
            return node.text
        case Unary():
            text = f"{node.op}{_expr(node.operand, 8)}"
            return f"({text})" if level > 8 else text
        case Binary():
            own = _LEVEL[node.op]
            left = _expr(node.left, own + 1 if node.op in _COMPARISON else own)
            text = f"{left} {node.op} {_expr(node.right, own + 1)}"
            return f"({text})" if level > own else text
        case Conditional():
            text = f"{_expr(node.condition, 1)} ? {_expr(node.then, 0)} : {_expr(node.otherwise, 0)}"
            return f"({text})" if level > 0 else text
        case Apply():
            return f"{node.function.name}({', '.join(_expr(a, 0) for a in node.arguments)})"
        case Selection():
            return f"{_expr(node.array, 9)}[{', '.join(_index(i) for i in node.indices)}]"
        case ArrayLiteral():
            return f"[{', '.join(_expr(e, 0) for e in node.elements)}]"
        case SetExpr():
            return "{ " + "; ".join(_partition(p) for p in node.partitions) + " }"
        case WithLoop():
            return _with_loop(node)
    assert_never(node)


def _index(node: SacExpression | Dot | TripleDot) -> str:
    if isinstance(node, Dot):
        return "."
    return "..." if isinstance(node, TripleDot) else _expr(node, 0)


def _pattern(pattern: Pattern) -> str:
    items = [item.name if isinstance(item, Name) else _index(item) for item in pattern.items]
    whole = f"{pattern.whole.name} = " if pattern.whole is not None else ""
    return items[0] if pattern.vector else f"{whole}[{', '.join(items)}]"


def _variables(pattern: Pattern) -> str:
    names = [name.name for name in pattern.names]
    return names[0] if pattern.vector else f"[{', '.join(names)}]"


def _bound(bound: SacExpression | Dot) -> str:
    return "." if isinstance(bound, Dot) else _expr(bound, _LEVEL["++"])


def _generator(generator: Generator, variables: str) -> str:
    lower = "" if generator.lower is None else f"{_bound(generator.lower)} {generator.lower_relation} "
    upper = "" if generator.upper is None else f" {generator.upper_relation} {_bound(generator.upper)}"
    step = "" if generator.step is None else f" step {_bound(generator.step)}"
    width = "" if generator.width is None else f" width {_bound(generator.width)}"
    return f"{lower}{variables}{upper}{step}{width}"


def _partition(partition: PartitionClause) -> str:
    text = f"{_pattern(partition.pattern)} -> {_expr(partition.body, 0)}"
    if partition.generator is None:
        return text
    return f"{text} | {_generator(partition.generator, _variables(partition.pattern))}"


def _with_loop(loop: WithLoop) -> str:
    parts = "".join(f" {_with_generator(g)};" for g in loop.generators)
    head = [loop.function.name] if loop.function else []
    arguments = ", ".join(head + [_expr(a, 0) for a in loop.arguments])
    return f"with {{{parts} }} : {loop.operator}({arguments})"


def _with_generator(generator: WithGenerator) -> str:
    assigns = (
        " { " + " ".join(line.strip() for line in statement_lines(generator.assigns, 0)) + " }"
        if generator.assigns
        else ""
    )
    return f"({_generator(generator.generator, _pattern(generator.pattern))}){assigns} : {_expr(generator.body, 0)}"
