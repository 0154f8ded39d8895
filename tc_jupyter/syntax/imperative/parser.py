"""Text of C, CUDA, Python or Numba -> functions with loops.

Only what a def may mean is read: anything else (pointers that move, `while`, shared memory) raises `Beyond`, which says why.

Worked example: of `for i in range(n): y[i] = 2 * x[i]` comes `Loop("i", 0, n, 1, (Assign("y", (i,), "=", 2 * x(i)),))`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tc_jupyter.syntax.library_names import CONSTANTS, METHODS, MODULES, RENAMED, TYPES, WORDS_OF_TYPES, c_type
from tc_jupyter.syntax.tree import Apply, Binary, Conditional, Expression, Extent, Name, Number, Unary, depth, mapped

from .tree import Assign, Statement

_WORD = re.compile(
    r"(?P<blank>\s+|\\\n)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFuUlL]*)"
    r"|(?P<name>[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*)|(?P<text>\"\"\".*?\"\"\"|'''.*?'''|\"[^\"\n]*\"|'[^'\n]*')"
    r"|(?P<sign><<=|>>=|\*\*=|//=?|\+\+|--|->|\*\*|[-+*/%&|^<>=!]=|&&|\|\||<<|>>|.)",
    re.DOTALL,
)
_LEVELS = (
    ("||", "or"),
    ("&&", "and"),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "//", "%"),
)
_SAME = {"or": "||", "and": "&&"}
DIVIDED = (
    {"/": "quotient of C", "%": "remainder of C"},
    {"/": "quotient", "//": "floor of a quotient", "%": "remainder"},
)
"""What divides, of C and of Python: the types of its operands say how it is written here."""
_QUALIFIERS = frozenset(
    {
        "const",
        "static",
        "inline",
        "register",
        "volatile",
        "restrict",
        "__restrict__",
        "__restrict",
        "extern",
        "__forceinline__",
    }
    | {"__global__", "__device__", "__host__", "__constant__", "__kernel", "__global", "kernel", "signed", "constexpr"}
)
_FLOATS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "__half": "float16",
    "bool": "bool",
    "void": "void",
}
_WORDS = WORDS_OF_TYPES | {"unsigned"}
_RENAMED = RENAMED | {"fmax": "max", "fmin": "min", "fabs": "abs"}
FUNCTIONS = METHODS | {"pow", "min", "max", "fma", "atan2", "hypot"}
"""Functions of numbers that are here, too."""
MOST = 20_000
"""Characters of a text that is read."""
_LONGEST = 100  # levels of operators
_DEEPEST = 80  # nested brackets, loops and conditions

SHARED = (
    "what threads share follows from a schedule: write what the kernel computes, as in `C(i, j) +=! A(i, k) * B(k, j)`"
)
WHILE = "a statement has no number of turns that its values decide: an index runs over a range that is known before"
POINTERS = "a tensor has its sizes and is read by its indices, as in `A(i, j)`"
OTHER = "only loops, conditions and assignments have a counterpart here"


class Beyond(Exception):
    """A def has nothing for this; the text says why."""


class Ordered(Beyond):
    """Turns of a loop need each other, so that no statement computes the same."""


@dataclass(frozen=True, slots=True)
class _Word:
    kind: str
    text: str
    line: int
    column: int


@dataclass(slots=True)
class Reader:
    """Reads one text.

    Attributes:
        is_c: the text is C, else it is Python.
        tensors: names whose elements are read with round brackets, too.
        macros: names and values of `#define`, and functions of one value, by name: their parameters and the value.
    """

    text: str
    is_c: bool
    words: list[_Word] = field(default_factory=list[_Word])
    place: int = 0
    deep: int = 0
    tensors: frozenset[str] = frozenset()
    macros: dict[str, tuple[tuple[str, ...], Expression]] = field(
        default_factory=dict[str, tuple[tuple[str, ...], Expression]]
    )

    def __post_init__(self) -> None:
        """The words of the text."""
        if len(self.text) > MOST:
            raise Beyond(OTHER)
        line, begin, depth = 0, 0, 0
        for match in _WORD.finditer(self.text):
            kind, text = match.lastgroup or "sign", match[0]
            depth += (text in "([{") - (text in ")]}") if kind == "sign" else 0
            if kind != "blank":
                self.words.append(_Word(kind, text, line, match.start() - begin))
            elif "\n" in text and text != "\\\n" and not (self.is_c or depth or self.word_before("line", "")):
                self.words.append(_Word("line", "", line, -1))
            if "\n" in text:
                line, begin = line + text.count("\n"), match.start() + text.rindex("\n") + 1
        self.words.append(_Word("end", "", line, -1))

    # --- words -------------------------------------------------------------------------------------------------------

    @property
    def word(self) -> _Word:
        """The next word."""
        return self.words[min(self.place, len(self.words) - 1)]

    def word_before(self, *kinds: str) -> bool:
        """Whether the last word that was found is of one of these kinds; there is none at the beginning."""
        return (self.words[-1].kind if self.words else "") in kinds

    def ends_line(self) -> bool:
        """Whether a line of Python ends here, which is left then."""
        found = self.word.kind in ("line", "end")
        self.place += self.word.kind == "line"
        return found

    def ends_statement(self) -> bool:
        """Whether a statement of C ends here: at a `;`, before a `}`, or at the end of a line."""
        return bool(self.take(";")) or self.word.text == "}" or self.word.line > self.words[self.place - 1].line

    def ahead(self, count: int = 1) -> str:
        """The text of a word behind the next one."""
        return self.words[min(self.place + count, len(self.words) - 1)].text

    def take(self, *texts: str) -> str:
        """The next word, if it is one of these."""
        if self.word.text in texts and self.word.kind in ("sign", "name"):
            self.place += 1
            return self.words[self.place - 1].text
        return ""

    def need(self, text: str) -> None:
        """The next word, which has to be this one."""
        if not self.take(text):
            raise Beyond(OTHER)

    def name(self) -> str:
        """The next word, which has to be a name."""
        if self.word.kind != "name":
            raise Beyond(POINTERS if self.word.text in "*&" else OTHER)
        self.place += 1
        return self.words[self.place - 1].text.replace("::", ".")

    # --- expressions -------------------------------------------------------------------------------------------------

    @contextmanager
    def deeper(self) -> Generator[None]:
        """One level of brackets, loops or conditions more."""
        self.deep += 1
        if self.deep > _DEEPEST:
            raise Beyond(OTHER)
        yield
        self.deep -= 1

    def expression(self) -> Expression:
        """An expression, with `c ? a : b` and `a if c else b`."""
        with self.deeper():
            found = self._chosen()
        if depth(found) > _LONGEST:
            raise Beyond(OTHER)
        return found

    def _chosen(self) -> Expression:
        value = self._binary(0)
        if self.take("?"):
            then = self.expression()
            self.need(":")
            value = Conditional(value, then, self.expression())
        elif not self.is_c and self.take("if"):
            condition = self._binary(0)
            self.need("else")
            value = Conditional(condition, value, self.expression())
        return value

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        if level == 2 and not self.is_c and self.take("not"):
            return Unary("!", self._binary(2))
        left, last = self._binary(level + 1), None
        while operator := self.take(*_LEVELS[level]):
            right = self._binary(level + 1)
            operator = _SAME.get(operator, operator)
            if last is not None and level in (2, 3):
                if self.is_c:
                    raise Beyond(OTHER)
                left = Binary("&&", left, Binary(operator, last, right))  # `0 <= i < n`
            elif operator in DIVIDED[not self.is_c]:
                left = Apply(Name(DIVIDED[not self.is_c][operator]), (left, right))
            else:
                left = Binary(operator, left, right)
            last = right
        return left

    def _unary(self) -> Expression:
        with self.deeper():
            return self._signed()

    def _signed(self) -> Expression:
        if self.is_c and self.take("*"):
            return pointed(self._unary())
        if operator := self.take("-", "+", "!"):
            operand = self._unary()
            return operand if operator == "+" else Unary(operator, operand)
        if self.word.text == "(" and self.is_c and (cast := self._cast()):
            return Apply(Name(cast), (self._unary(),))
        value = self._postfix()
        if not self.is_c and self.take("**"):
            return Apply(Name("pow"), (value, self._unary()))
        return value

    def _cast(self) -> str:
        """The type in `(float)`, which is taken."""
        place = self.place
        self.place += 1
        type_ = self.type()
        if type_ and self.take(")"):
            return type_
        self.place = place
        return ""

    def _postfix(self) -> Expression:
        word = self.word
        if self.take("("):
            value = self.expression()
            self.need(")")
            return value
        if word.kind == "number":
            self.place += 1
            return number(word.text)
        name = self.name()
        if self.word.text == "(":
            return self.called(name, self.arguments())
        if name.endswith(".shape") and self.word.text == "[":
            return extent(name.removesuffix(".shape"), self._listed("[", "]"))
        if name.endswith((".shape", ".T")) or ("." in name and name.rpartition(".")[2] == "size"):
            if not name.endswith(".size"):
                raise Beyond(OTHER)
            return Extent(Name(name.removesuffix(".size")), 0)
        subscripts = list[Expression]()
        while self.word.text == "[":
            subscripts += self._listed("[", "]")
        if subscripts:
            return Apply(Name(name), tuple(subscripts))
        return self.named(name)

    def arguments(self) -> list[Expression]:
        """What stands in brackets behind a name."""
        return self._listed("(", ")")

    def _listed(self, opening: str, closing: str) -> list[Expression]:
        self.need(opening)
        found = list[Expression]()
        while not self.take(closing):
            if found:
                self.need(",")
                if self.take(closing):
                    break
            if not self.is_c and self.word.text == ":":
                raise Beyond(OTHER)
            if opening == "(" and self.word.text == "(" and not self.is_c and self._is_tuple():
                found += self._listed("(", ")")  # the shape in `np.zeros((M, N))`
            else:
                found.append(self.expression())
        return found

    def _is_tuple(self) -> bool:
        depth = 0
        for word in self.words[self.place :]:
            depth += (word.text in "([") - (word.text in ")]")
            if depth == 1 and word.text == ",":
                return True
            if not depth:
                return False
        return False

    def named(self, name: str) -> Expression:
        """What a name stands for."""
        if name in self.macros and not self.macros[name][0]:
            return self.macros[name][1]
        plain = name.removeprefix("cuda.")
        if plain.startswith(("threadIdx", "blockIdx", "blockDim", "gridDim")):
            return Name(plain)
        module, _, last = name.rpartition(".")
        if name in ("True", "False", "true", "false"):
            return Number(name.lower(), name.lower() == "true", "bool")
        if (last in CONSTANTS or last in ("inf", "nan")) and (not module or module in MODULES):
            text = CONSTANTS.get(last, last)
            return Unary("-", number(text[1:])) if text.startswith("-") else number(text)
        if module:
            raise Beyond(OTHER)
        return Name(name)

    def called(self, name: str, arguments: list[Expression]) -> Expression:
        """A call: the length of an array, the number of a thread, a cast, or a function that has a counterpart."""
        if name in self.tensors:
            return Apply(Name(name), tuple(arguments))
        if name in self.macros and len(self.macros[name][0]) == len(arguments):
            names, value = self.macros[name]
            return put(value, dict(zip(names, arguments, strict=True)))
        if name == "len" and len(arguments) == 1 and isinstance(arguments[0], Name):
            return Extent(arguments[0], 0)
        if name in ("cuda.grid", "get_global_id", "numba.cuda.grid"):
            first = [number("0")] if name.endswith("cuda.grid") and arguments == [number("1")] else arguments
            return Apply(Name("grid"), tuple(first))
        module, _, last = name.rpartition(".")
        if last == "gridsize":
            return Name("gridsize")
        if module and module not in MODULES:
            raise Beyond(OTHER)
        if last in ("float", "int", "bool") or last in TYPES or last in ("float32", "float64", "int32", "int64"):
            return Apply(Name({"float": "float64", "int": "int64"}.get(last, TYPES.get(last, last))), tuple(arguments))
        plain = last.removeprefix("__")
        plain = plain[:-1] if plain.endswith("f") and plain[:-1] in FUNCTIONS | _RENAMED.keys() else plain
        plain = _RENAMED.get(plain, plain)
        if plain not in FUNCTIONS:
            raise Beyond(f"there is no function `{name}` here")
        return Apply(Name(plain), tuple(arguments))

    # --- types and assignments ---------------------------------------------------------------------------------------

    def type(self) -> str:
        """The type that begins here, with what qualifies it; nothing where none does."""
        place, words = self.place, list[str]()
        while self.word.kind == "name" and (self.word.text in _QUALIFIERS or not words or self.word.text in _WORDS):
            text = self.word.text
            if text == "__shared__" or text == "extern":
                raise Beyond(SHARED)
            is_type = text in _FLOATS or text in _WORDS or text in TYPES or text in ("auto", "void")
            if text not in _QUALIFIERS and not is_type:
                break
            self.place += 1
            words += [] if text in _QUALIFIERS else [text]
        if not words:
            self.place = place
            return ""
        if len(words) == 1:
            (word,) = words
            return _FLOATS.get(word, "" if word == "int" else TYPES.get(word, "")) or (
                "auto" if word == "auto" else c_type(words)
            )
        return c_type(words)

    def assignment(self, target: Expression) -> Statement:
        """What stands behind the target of an assignment."""
        name, subscripts = target_of(target)
        operator = self.word.text
        self.place += 1
        if operator in ("++", "--"):
            return Assign(name, subscripts, "+", number("1") if operator == "++" else Unary("-", number("1")))
        value = self.expression()
        match operator:
            case "=":
                return changed(Assign(name, subscripts, "=", value))
            case "+=" | "*=":
                return Assign(name, subscripts, operator[0], value)
            case "-=":
                return Assign(name, subscripts, "+", Unary("-", value))
            case "/=":
                value = Apply(Name(DIVIDED[not self.is_c]["/"]), (target, value))
                return Assign(name, subscripts, "=", value)
            case _:
                raise Beyond(OTHER)


def number(text: str) -> Number:
    """A literal, without the suffix that says its type."""
    plain = text.rstrip("fFuUlL") if text[-1:] in "fFuUlL" and text not in ("inf", "nan") else text
    value = int(plain) if plain.isdigit() else float(plain)
    return Number(str(value) if isinstance(value, int) else plain, value)


def extent(name: str, subscripts: list[Expression]) -> Expression:
    """`x.shape[0]`."""
    match subscripts:
        case [Number(value=int() as dimension)]:
            return Extent(Name(name), dimension)
        case _:
            raise Beyond(OTHER)


def pointed(address: Expression) -> Expression:
    """What `*p` and `*(p + i)` are."""
    match address:
        case Name():
            return Apply(address, (number("0"),))
        case Binary("+", Name() as array, shift):
            return Apply(array, (shift,))
        case _:
            raise Beyond(POINTERS)


def target_of(target: Expression) -> tuple[str, tuple[Expression, ...]]:
    """The name and the subscripts of what is assigned."""
    match target:
        case Name():
            return target.name, ()
        case Apply() if target.function.name not in FUNCTIONS:
            return target.function.name, target.arguments
        case _:
            raise Beyond(OTHER)


def changed(assign: Assign) -> Assign:
    """`x = x + e` as `x += e`, and `m = max(m, e)` or `m = e > m ? e : m` as `m max= e`."""
    read = Apply(Name(assign.target), assign.subscripts) if assign.subscripts else Name(assign.target)
    match assign.value:
        case Binary("+" | "*" as operator, left, right) if left == read:
            return replace(assign, operator=operator, value=right)
        case Binary("+" | "*" as operator, left, right) if right == read:
            return replace(assign, operator=operator, value=left)
        case Binary("-", left, right) if left == read:
            return replace(assign, operator="+", value=Unary("-", right))
        case Apply(Name("max" | "min" as operator), (left, right)) if read in (left, right):
            return replace(assign, operator=operator, value=right if left == read else left)
        case Conditional(condition, then, otherwise) if read in (then, otherwise):
            value = otherwise if then == read else then
            chosen = extreme(condition, value, read)
            if chosen and otherwise != read:
                chosen = {"max": "min", "min": "max"}[chosen]
            return replace(assign, operator=chosen, value=value) if chosen else assign
        case _:
            return assign


def extreme(condition: Expression, value: Expression, read: Expression) -> str:
    """`max` where a condition is `value > read`, `min` where it is `value < read`."""
    match condition:
        case Binary("<" | "<=" | ">" | ">=" as operator, left, right) if (left, right) in (
            (value, read),
            (read, value),
        ):
            return "max" if (operator[0] == ">") == (left == value) else "min"
        case _:
            return ""


def put(node: Expression, values: Mapping[str, Expression]) -> Expression:
    """An expression with values in the place of names."""
    return values.get(node.name, node) if isinstance(node, Name) else mapped(node, lambda each: put(each, values))
