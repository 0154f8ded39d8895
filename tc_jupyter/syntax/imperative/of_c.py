"""Functions of C and kernels of CUDA.

Worked example: of `void f(float A[M][K]) { ... }` comes a function whose parameter `A` is an array with the extents `M` and `K`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from tc_jupyter.syntax.tree import Binary, Expression, Name, Number, Unary

from .parser import OTHER, POINTERS, SHARED, WHILE, Beyond, Reader, number, pointed, target_of
from .tree import Assign, Choice, Declare, Function, Leave, Loop, Parameter, Statement

_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", re.MULTILINE)
_MACRO = re.compile(r"[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([\w, \t]*\))?[ \t]*(.*)", re.DOTALL)
_DEF = re.compile(r"^(\s*)def\s")
_REMARK = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINKAGE = re.compile(r'extern\s*"C"\s*')
_TEMPLATE = re.compile(r"template\s*<\s*typename\s+(\w+)\s*>")
_ATOMIC = {"atomicAdd": "+", "atomicMax": "max", "atomicMin": "min"}
_WAITS = frozenset({"__syncthreads", "__syncwarp", "__threadfence", "barrier"})


Macros: TypeAlias = dict[str, tuple[tuple[str, ...], Expression]]
"""Names and values of `#define`, and functions of one value."""


def functions_of_c(text: str, macros: Macros) -> tuple[Function, ...]:
    """The functions of a text; those of one value become macros, which stand in the place of their calls."""
    text = _REMARK.sub(" ", text)
    directives = _DIRECTIVE.findall(text)
    text = _DEF.sub(r"\1void ", _LINKAGE.sub("", _DIRECTIVE.sub("", text)))
    for name in _TEMPLATE.findall(text):
        text = re.sub(rf"\b{name}\b", "float", _TEMPLATE.sub("", text))
    reader = Reader(text, is_c=True, macros=macros)
    for directive in directives:
        if (match := _MACRO.fullmatch(directive)) is not None:
            _define(reader, match[1], match[2], match[3])
    found = list[Function]()
    while reader.word.kind != "end":
        function = _function(reader)
        match function.body:
            case (Leave("return", (value,)),) if not any(each.is_array for each in function.parameters):
                macros[function.name] = tuple(each.name for each in function.parameters), value
            case _:
                found.append(function)
    return tuple(found)


def _define(reader: Reader, name: str, parameters: str | None, text: str) -> None:
    inner = Reader(text.replace("\\\n", " "), is_c=True, macros=reader.macros)
    if inner.word.kind == "end":
        return
    try:
        value = inner.expression()
    except Beyond:
        return  # nothing may use it
    if inner.word.kind == "end":
        names = tuple(each.strip() for each in (parameters or "()")[1:-1].split(",") if each.strip())
        reader.macros[name] = names, value


def _function(reader: Reader) -> Function:
    is_kernel = any(
        word.text in ("__global__", "__kernel", "kernel") for word in reader.words[reader.place : reader.place + 4]
    )
    if not reader.type():
        raise Beyond(OTHER)
    while reader.take("*"):
        pass
    name = reader.name()
    parameters = list[Parameter]()
    reader.need("(")
    while not reader.take(")"):
        if parameters:
            reader.need(",")
        if reader.take("void"):
            continue
        parameters.append(_parameter(reader))
    return Function(name, tuple(parameters), block(reader), is_kernel)


def _parameter(reader: Reader) -> Parameter:
    type_, pointers = reader.type(), 0
    if not type_:
        raise Beyond(OTHER)
    while word := reader.take("*", "**", "&", "const", "restrict", "__restrict__", "__restrict"):
        pointers += word.count("*")
    name, extents = reader.name(), list[Expression | None]()
    while reader.take("["):
        extents.append(None if reader.word.text == "]" else reader.expression())
        reader.need("]")
    if pointers + bool(extents) > 1:
        raise Beyond(POINTERS)
    return Parameter(name, type_, bool(pointers or extents), tuple(extents))


def block(reader: Reader) -> tuple[Statement, ...]:
    """The statements in braces, or one."""
    if not reader.take("{"):
        return _statement(reader)
    found = list[Statement]()
    while not reader.take("}"):
        if reader.word.kind == "end":
            raise Beyond(OTHER)
        found += _statement(reader)
    return tuple(found)


def _statement(reader: Reader) -> tuple[Statement, ...]:
    word = reader.word.text
    if word == "{":
        with reader.deeper():
            return block(reader)
    if reader.take(";"):
        return ()
    if word in ("while", "do"):
        raise Beyond(WHILE)
    if reader.take("for"):
        with reader.deeper():
            return (_loop(reader),)
    if reader.take("if"):
        with reader.deeper():
            reader.need("(")
            condition = reader.expression()
            reader.need(")")
            then = block(reader)
            return (Choice(condition, then, block(reader) if reader.take("else") else ()),)
    if leave := reader.take("return", "continue", "break"):
        values = () if reader.word.text in (";", "}") else (reader.expression(),)
        found: tuple[Statement, ...] = (Leave(leave, values),)
    else:
        found = _simple(reader)
    if not reader.ends_statement():
        raise Beyond(OTHER)
    return found


def _simple(reader: Reader) -> tuple[Statement, ...]:
    """A declaration, an assignment or an addition at a place."""
    if reader.word.text in _WAITS or reader.word.text == "__shared__":
        raise Beyond(SHARED)
    if reader.word.text in _ATOMIC and reader.ahead() == "(":
        return (_atomic(reader),)
    place = reader.place
    if type_ := reader.type():
        found = list[Statement]()
        while not found or reader.take(","):
            found += _declared(reader, type_)
        return tuple(found)
    reader.place = place
    if operator := reader.take("++", "--"):
        name, subscripts = target_of(reader.expression())
        return (Assign(name, subscripts, "+", number("1") if operator == "++" else Unary("-", number("1"))),)
    found_one = list[Statement]()
    while not found_one or reader.take(","):
        found_one.append(reader.assignment(reader.expression()))
    return tuple(found_one)


def _declared(reader: Reader, type_: str) -> list[Statement]:
    name, extents = reader.name(), list[Expression]()
    while reader.take("["):
        extents.append(reader.expression())
        reader.need("]")
    if extents:
        fill = None
        if reader.take("="):
            reader.need("{")
            fill = reader.expression() if reader.word.text != "}" else number("0")
            reader.need("}")
            if not isinstance(fill, Number) or fill.value:
                raise Beyond(OTHER)
        return [Declare(name, tuple(extents), fill, type_)]
    if not reader.take("="):
        return [Declare(name, (), None, type_)]
    return [Assign(name, (), "=", reader.expression(), type_)]


def _atomic(reader: Reader) -> Assign:
    """`atomicAdd(&h[e], v)` and `atomicAdd(h + e, v)`."""
    operator = _ATOMIC[reader.name()]
    reader.need("(")
    is_address = bool(reader.take("&"))
    target = reader.expression()
    reader.need(",")
    value = reader.expression()
    reader.need(")")
    if not is_address:
        target = pointed(target)
    name, subscripts = target_of(target)
    return Assign(name, subscripts, operator, value)


def _loop(reader: Reader) -> Loop:
    reader.need("(")
    reader.type()
    name = reader.words[reader.place + (reader.word.text == ";")].text
    first: Expression = Name(name)  # in `for (; i < n; i += stride)`
    if not reader.take(";"):
        reader.name()
        reader.need("=")
        first = reader.expression()
        reader.need(";")
    condition = reader.expression()
    reader.need(";")
    step = _step(reader, name)
    reader.need(")")
    body, index = block(reader), Name(name)
    match condition:
        case Binary("<" | "<=" | ">" | ">=" | "!=" as operator, left, right) if (
            index in (left, right) and left != right
        ):
            end = right if left == index else left
            operator = operator if left == index else operator.translate(_TURNED)
        case _:
            raise Beyond(WHILE)
    more, is_up = number("1"), not isinstance(step, Unary)
    if operator == "!=" and step in (more, Unary("-", more)):
        operator = "<" if is_up else ">"
    match operator, is_up:
        case ("<", True):
            return Loop(name, first, end, step, body)
        case ("<=", True):
            return Loop(name, first, Binary("+", end, more), step, body)
        case (">", False):
            return Loop(name, Binary("+", end, more), Binary("+", first, more), step, body)
        case (">=", False):
            return Loop(name, end, Binary("+", first, more), step, body)
        case _:
            raise Beyond(WHILE)


def _step(reader: Reader, name: str) -> Expression:
    """The step in `i++`, `--i`, `i += 2` and `i = i + 2`."""
    if operator := reader.take("++", "--"):
        target: Expression = Name(reader.name())
        step = Assign("", (), "+", number("1") if operator == "++" else Unary("-", number("1")))
    else:
        target = Name(reader.name())
        step = reader.assignment(target)
    if target != Name(name) or not isinstance(step, Assign) or step.operator != "+":
        raise Beyond(WHILE)
    return step.value


_TURNED = str.maketrans("<>", "><")
