"""Functions of Python and Numba, whose bodies are indented.

Worked example: of `@njit` and `def f(x): ...` comes the function `f`, and of `for i, v in enumerate(x): s += i * v` a loop over
`i` in whose statements `v` is `x(i)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from tc_jupyter.syntax.tree import Apply, Binary, Expression, Extent, Name, Number, Unary, names_in

from .parser import OTHER, SHARED, WHILE, Beyond, Reader, number, put, target_of
from .tree import Assign, Choice, Declare, Function, Leave, Loop, Parameter, Statement, mapped_statement

_REMARK = re.compile(r"#[^\n]*")
_TRITON = "a program of Triton computes blocks; a statement says what one element is, as in `Z(i) = X(i) + Y(i)`"
_FILLED = {"zeros": "0", "ones": "1", "empty": None}
_ATOMIC = {"cuda.atomic.add": "+", "cuda.atomic.max": "max", "cuda.atomic.min": "min"}
_RANGES = frozenset({"range", "prange", "numba.prange", "nb.prange"})


_NAMES = {"int": "int64", "float": "float64", "bool_": "bool", "boolean": "bool", "intp": "int64", "double": "float64"}
_CODES = {"i": "int", "u": "uint", "f": "float"}


def type_of(word: str) -> str | None:
    """The type that `np.int64`, `int` or `"f8"` names; `None` for another word."""
    name = word.strip("\"' ").rpartition(".")[2]
    if (code := re.fullmatch(r"([iuf])([1248])", name)) is not None:
        name = f"{_CODES[code[1]]}{8 * int(code[2])}"
    name = _NAMES.get(name, name)
    return name if re.fullmatch(r"bool|u?int(8|16|32|64)|float(16|32|64)", name) else None


def functions_of_python(text: str) -> tuple[Function, ...]:
    """The functions of a text."""
    reader = Reader(_REMARK.sub("", text), is_c=False)
    if any(word.text.startswith("tl.") for word in reader.words):
        raise Beyond(_TRITON)
    parser, found = _Parser(reader), list[Function]()
    while reader.word.kind != "end":
        is_kernel, begin = False, reader.place
        while reader.take("@"):
            is_kernel = is_kernel or reader.word.text.endswith("cuda.jit")
            parser.to_next_line()
        decorators = "".join(word.text for word in reader.words[begin : reader.place])
        if reader.word.text in ("import", "from"):
            parser.to_next_line()
            continue
        found.append(_with_types(parser.function(is_kernel), decorators))
    return tuple(found)


def _with_types(function: Function, decorators: str) -> Function:
    """A function with the types of the only signature that its decorators give, as in `@njit("float64(float64[:], int64)")`."""
    texts = [each.split(",") for each in re.findall(r"\(([^()]*)\)", re.sub(r"\[[^\w\[\]]*(?:1\]|\])", "", decorators))]
    found = {tuple(map(type_of, each)) for each in texts if len(each) == len(function.parameters)}
    types = next(iter(found)) if len(found) == 1 else ()
    if not types or None in types:
        return function
    parameters = tuple(replace(each, type=type_) for each, type_ in zip(function.parameters, types, strict=True))
    own = {each.name: each.type for each in parameters}
    return replace(function, parameters=parameters, body=tuple(_filled_like(each, own) for each in function.body))


def _filled_like(statement: Statement, types: Mapping[str, str | None]) -> Statement:
    """An array of the function's own with the type that NumPy gives it: that of the array that it is like, else a double."""
    if not isinstance(statement, Declare) or statement.type:
        return statement
    return replace(statement, type=types.get(statement.like) if statement.like else "float64")


def lines(reader: Reader) -> tuple[Statement, ...]:
    """The statements of a text, which begin in one column."""
    parser, found = _Parser(reader), list[Statement]()
    reader.ends_line()
    column = reader.word.column
    while reader.word.kind != "end":
        if reader.word.column != column:
            raise Beyond(OTHER)
        found += parser.statement(column)
    return tuple(found)


class _Parser:
    """Reads statements by their lines and columns."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.numbers = count()

    def to_next_line(self) -> None:
        """Leave the rest of a line out."""
        while not self.reader.ends_line():
            self.reader.place += 1

    def function(self, is_kernel: bool) -> Function:
        """`def f(x, y): ...`."""
        reader, column = self.reader, self.reader.word.column
        reader.need("def")
        name, parameters = reader.name(), list[Parameter]()
        reader.need("(")
        while not reader.take(")"):
            if parameters:
                reader.need(",")
                if reader.take(")"):
                    break
            parameters.append(Parameter(reader.name()))
            if reader.take(":"):
                self.skip_annotation(",", ")", "=")
            if reader.take("="):
                self.skip_annotation(",", ")")
        while reader.word.text != ":":
            reader.place += 1
            if reader.word.kind == "end":
                raise Beyond(OTHER)
        return Function(name, tuple(parameters), self.block(column), is_kernel)

    def skip_annotation(self, *ends: str) -> None:
        """Leave `np.ndarray`, or a default value, out: a call of a def passes all arguments."""
        depth = 0
        while depth or self.reader.word.text not in ends:
            depth += (self.reader.word.text in "([") - (self.reader.word.text in ")]")
            self.reader.place += 1
            if self.reader.word.kind == "end":
                raise Beyond(OTHER)

    def block(self, column: int) -> tuple[Statement, ...]:
        """What stands behind a `:`: the rest of the line, or the lines that are indented more than a column."""
        reader = self.reader
        reader.need(":")
        if not reader.ends_line():
            return self.line()
        found, inner = list[Statement](), reader.word.column
        if inner <= column:
            raise Beyond(OTHER)
        while reader.word.column == inner and reader.word.kind != "end":
            found += self.statement(inner)
        if reader.word.column > column:
            raise Beyond(OTHER)
        return tuple(found)

    def line(self) -> tuple[Statement, ...]:
        """Statements in one line."""
        found = [*self.simple()]
        while self.reader.take(";"):
            found += self.simple()
        if not self.reader.ends_line():
            raise Beyond(OTHER)
        return tuple(found)

    def statement(self, column: int) -> tuple[Statement, ...]:
        """One statement; what is indented less ends it."""
        reader = self.reader
        if reader.word.text in ("while", "with", "def", "try", "class"):
            raise Beyond(WHILE if reader.word.text == "while" else OTHER)
        if reader.word.kind == "text":
            self.to_next_line()
            return ()
        if reader.take("for"):
            with reader.deeper():
                return (self.loop(column),)
        if reader.take("if"):
            return (self.choice(column),)
        return self.line()

    def choice(self, column: int) -> Choice:
        """`if ... elif ... else ...`, behind its first word."""
        reader = self.reader
        with reader.deeper():
            condition = reader.expression()
            then, otherwise = self.block(column), tuple[Statement, ...]()
            if reader.word.column == column and reader.take("elif"):
                otherwise = (self.choice(column),)
            elif reader.word.column == column and reader.take("else"):
                otherwise = self.block(column)
        return Choice(condition, then, otherwise)

    def loop(self, column: int) -> Loop:
        """`for i in range(n): ...`, and loops over elements, in whose bodies these have the names of the loop."""
        reader = self.reader
        names = self.names_of_loop()
        reader.need("in")
        source = reader.word.text
        if source in _RANGES and reader.ahead() == "(" and len(names) == 1:
            reader.place += 1
            lower, upper, step = _bounds(reader.arguments())
            return Loop(names[0], lower, upper, step, self.block(column))
        index, values = self.elements_of(names)
        arrays = [value.function.name for value in values.values() if isinstance(value, Apply)]
        body = tuple(mapped_statement(each, lambda node: put(node, values)) for each in self.block(column))
        return Loop(index, number("0"), Extent(Name(arrays[0]), 0), number("1"), body)

    def names_of_loop(self) -> list[str]:
        """`i`, `i, x` and `i, (x, y)`."""
        reader, names = self.reader, list[str]()
        while reader.word.text != "in":
            if reader.take(",", "(", ")"):
                continue
            names.append(reader.name())
        return names

    def elements_of(self, names: list[str]) -> tuple[str, dict[str, Expression]]:
        """The index of a loop over `x`, `enumerate(x)` or `zip(x, y)`, and what its names stand for."""
        reader = self.reader
        index = next(name for k in self.numbers if (name := f"i{k or ''}") not in {word.text for word in reader.words})
        if reader.word.text == "enumerate":
            reader.place += 1
            reader.need("(")
            index, *names = names
            found = self.elements_of(names)[1]
            reader.need(")")
            values = {
                name: Apply(each.function, (Name(index),)) for name, each in found.items() if isinstance(each, Apply)
            }
            return index, dict[str, Expression](values)
        if reader.word.text == "zip":
            reader.place += 1
            arrays = reader.arguments()
        else:
            arrays = [Name(reader.name())]
        if len(arrays) != len(names) or not all(isinstance(each, Name) for each in arrays):
            raise Beyond(OTHER)
        pairs = zip(names, arrays, strict=True)
        return index, {name: Apply(each, (Name(index),)) for name, each in pairs if isinstance(each, Name)}

    def simple(self) -> list[Statement]:
        """A statement without a block."""
        reader = self.reader
        if reader.take("pass"):
            return []
        if leave := reader.take("return", "continue", "break"):
            values = list[Expression]()
            while (
                reader.word.kind not in ("line", "end") and reader.word.text != ";" and (not values or reader.take(","))
            ):
                values.append(reader.expression())
            return [Leave(leave, tuple(values))]
        if reader.word.text in _ATOMIC:
            return [self.atomic()]
        if reader.word.text.endswith(("syncthreads", "shared.array", "local.array")):
            raise Beyond(SHARED)
        targets = [reader.expression()]
        while reader.take(","):
            targets.append(reader.expression())
        if len(targets) > 1:
            return self.several(targets)
        if reader.word.text == "=" and reader.ahead().rpartition(".")[2].removesuffix("_like") in _FILLED:
            return [self.filled(targets[0])]
        if reader.word.text == "=" and (reader.ahead() == "np.copy" or reader.ahead().endswith(".copy")):
            return [self.copied(targets[0])]
        return [reader.assignment(targets[0])]

    def several(self, targets: list[Expression]) -> list[Statement]:
        """`M, N = A.shape`, `i, j = cuda.grid(2)` and `a, b = 0, 1`."""
        reader = self.reader
        reader.need("=")
        word = reader.word.text
        if word.endswith(".shape"):
            reader.place += 1
            values: list[Expression] = [Extent(Name(word.removesuffix(".shape")), k) for k in range(len(targets))]
        elif word.endswith("cuda.grid"):
            reader.place += 1
            reader.arguments()
            values = [Apply(Name("grid"), (number(str(k)),)) for k in range(len(targets))]
        else:
            values = [reader.expression()]
            while reader.take(","):
                values.append(reader.expression())
        names = {target_of(each)[0] for each in targets}
        if len(values) != len(targets) or any(names & names_in((value,)) for value in values):
            raise Beyond("statements run one after the other: what is swapped has another name in between")
        return [Assign(*target_of(each), "=", value) for each, value in zip(targets, values, strict=True)]

    def filled(self, target: Expression) -> Declare:
        """`y = np.zeros(n)` and `y = np.empty_like(x)`."""
        reader = self.reader
        name, subscripts = target_of(target)
        reader.need("=")
        word = reader.name().rpartition(".")[2]
        reader.need("(")
        like, extents = "", list[Expression]()
        if word.endswith("_like") or (reader.word.text.endswith(".shape") and reader.ahead() != "["):
            like = reader.name().removesuffix(".shape")
        else:
            extents = reader.arguments() if reader.word.text == "(" else [reader.expression()]
        type_ = None
        while not reader.take(")"):
            type_ = type_of(reader.word.text) or type_
            reader.place += 1
            if reader.word.kind == "end":
                raise Beyond(OTHER)
        if subscripts or not (extents or like):
            raise Beyond(OTHER)
        fill = _FILLED[word.removesuffix("_like")]
        return Declare(name, tuple(extents), None if fill is None else number(fill), type_, like)

    def copied(self, target: Expression) -> Declare:
        """`y = x.copy()` and `y = np.copy(x)`."""
        reader = self.reader
        name, subscripts = target_of(target)
        reader.need("=")
        word, arguments = reader.name(), reader.arguments()
        source = arguments[0] if word == "np.copy" and len(arguments) == 1 else Name(word.removesuffix(".copy"))
        if subscripts or not isinstance(source, Name) or "." in source.name:
            raise Beyond(OTHER)
        return Declare(name, fill=source, like=source.name)

    def atomic(self) -> Assign:
        """`cuda.atomic.add(h, i, v)`."""
        reader = self.reader
        operator = _ATOMIC[reader.name()]
        target, *subscripts, value = reader.arguments()
        if not isinstance(target, Name) or not subscripts:
            raise Beyond(OTHER)
        return Assign(target.name, tuple(subscripts), operator, value)


def _plus_one(node: Expression) -> Expression:
    return Binary("+", node, number("1"))


def _bounds(ends: list[Expression]) -> tuple[Expression, Expression, Expression]:
    """The lower end, the upper one and the step of `range(...)`; one that counts downwards ends at its lower end."""
    match ends:
        case [upper]:
            return number("0"), upper, number("1")
        case [lower, upper]:
            return lower, upper, number("1")
        case [first, last, Unary("-", Number()) as step]:
            return _plus_one(last), _plus_one(first), step
        case [lower, upper, step]:
            return lower, upper, step
        case _:
            raise Beyond(OTHER)
