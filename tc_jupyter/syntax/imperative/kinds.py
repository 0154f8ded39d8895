"""Types of values, as far as they decide how something is written.

Worked example: in C, `s += a[i]` with `int a[]` and `float s` adds `float32(a(i))`, and `i / 2` of an index is `i / 2` here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tc_jupyter.syntax.tree import Apply, Binary, Conditional, Expression, Extent, Name, Number, Unary, mapped, walk

from .parser import DIVIDED, FUNCTIONS, Beyond

_ORDER = (
    "bool",
    "int",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float",
    "float16",
    "float32",
    "float64",
)
"""Types, each of which holds what those before it become beside it; `int` and `float` are those of literals."""
_MARKS = frozenset(name for each in DIVIDED for name in each.values())
_SIGNS = "integers are divided towards minus infinity here, and towards 0 in C: write what is meant for negative ones"


def is_function(name: str) -> bool:
    """Whether a name with arguments is a function, a cast or a division, and no array."""
    return name in FUNCTIONS or name in _ORDER or name in _MARKS or name == "grid"


def is_cast(name: str) -> bool:
    """Whether a name with arguments is a cast, or a function that takes floats."""
    return name in _ORDER or (name in FUNCTIONS and name not in ("min", "max", "abs", "clamp"))


def is_integer(kind: str) -> bool:
    """Whether a type is one of integers."""
    return kind == "bool" or "int" in kind


def values_in(nodes: Iterable[Expression]) -> set[str]:
    """The names in expressions whose values are read, which those of extents are not."""
    found = set[str]()
    for node in (each for part in nodes for each in walk(part)):
        if isinstance(node, Name):
            found.add(node.name)
        elif isinstance(node, Apply) and not is_function(node.function.name):
            found.add(node.function.name)
    return found


@dataclass(frozen=True, slots=True)
class Kinds:
    """The types of names; those of a language that has none are floats, of numbers and elements."""

    types: dict[str, str]

    def name(self, new: str, old: str) -> None:
        """Let a new name have the type of an old one."""
        self.types.update({new: self.types[old]} if old in self.types else {})

    def of(self, node: Expression) -> str:
        """The type of a value."""
        match node:
            case Number():
                return "bool" if isinstance(node.value, bool) else "int" if isinstance(node.value, int) else "float"
            case Name():
                return self.types.get(node.name, "int32" if "." in node.name else "float")
            case Extent():
                return "int"
            case Unary():
                return "bool" if node.op == "!" else self.of(node.operand)
            case Binary("<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||"):
                return "bool"
            case Binary():
                return self.wider(node.left, node.right)
            case Conditional():
                return self.wider(node.then, node.otherwise)
            case Apply(Name(name), arguments):
                if name in _ORDER:
                    return name
                if name == "quotient" and is_integer(self.wider(*arguments)):
                    return "float64"
                if name in _MARKS or name in ("min", "max", "abs", "clamp"):
                    return self.wider(*arguments)
                return "float" if name in FUNCTIONS else self.types.get(name, "float")
            case _:
                return "float"

    def wider(self, *nodes: Expression) -> str:
        """The type of several values beside each other."""
        return max((self.of(each) for each in nodes), key=_ORDER.index)

    def of_type(self, value: Expression, kind: str | None, operator: str) -> Expression:
        """A value as one of a type, to which it is assigned; it is as it is where no type is known."""
        own = self.of(value)
        if own == "bool" and (operator == "+" or kind not in (None, "bool")):
            return Apply(Name(kind or "int32"), (value,))
        if kind is None or kind == own or (is_integer(own) and is_integer(kind)):
            return value
        if is_integer(kind) and operator != "=":
            raise Beyond("an integer cannot add up floats: what is added has the type of the result")
        if isinstance(value, Unary) and value.op == "-":
            return Unary("-", self.of_type(value.operand, kind, operator))
        if isinstance(value, Number) and not isinstance(value.value, bool) and kind == "float32":
            return Number(str(float(value.value)), float(value.value)) if math.isfinite(value.value) else value
        return value if own == "float" and kind == "float32" else Apply(Name(kind), (value,))

    def of_array(self, value: Expression, kind: str) -> Expression:
        """An integer as an element of an array, or a part of a sum, of whose type the text speaks."""
        own = self.of(value)
        is_other = is_integer(own) and is_integer(kind) and own not in ("bool", kind)
        return Apply(Name(kind), (value,)) if is_other and (own, kind) != ("int", "int32") else value

    def written(self, node: Expression) -> Expression:
        """A value with its divisions as they are written here."""
        node = mapped(node, self.written)
        match node:
            case Conditional(condition):
                node = replace(node, condition=self.truth(condition))
            case Binary("&&" | "||" as operator, left, right):
                return Binary(operator, self.truth(left), self.truth(right))
            case Unary("!", operand):
                return Unary("!", self.truth(operand))
            case _:
                pass
        if not isinstance(node, Apply) or node.function.name not in _MARKS:
            return node
        left, right = node.arguments
        operator = "%" if "remainder" in node.function.name else "/"
        found = Binary(operator, left, right)
        if not is_integer(self.wider(left, right)):
            if operator == "%":
                raise Beyond("`%` divides integers here")
            return Apply(Name("floor"), (found,)) if "floor" in node.function.name else found
        if node.function.name == "quotient":
            return Binary("/", Apply(Name("float64"), (left,)), right)
        if "of C" in node.function.name and not (self.is_natural(left) and self.is_natural(right)):
            raise Beyond(_SIGNS)
        return found

    def truth(self, node: Expression) -> Expression:
        """A condition: a number is one where it is not 0."""
        return node if self.of(node) == "bool" else Binary("!=", node, Number("0", 0))

    def is_natural(self, node: Expression) -> bool:
        """Whether an integer is never negative: it is made of indices, sizes and numbers, and nothing is taken away."""
        match node:
            case Number() | Extent():
                return True
            case Name():
                return is_integer(self.types.get(node.name, "float"))
            case Binary("+" | "*" | "/" | "%"):
                return self.is_natural(node.left) and self.is_natural(node.right)
            case Binary("-", left, Number()):
                return self.is_natural(left)
            case _:
                return False
