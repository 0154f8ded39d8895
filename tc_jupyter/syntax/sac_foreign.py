"""What Python writes otherwise than `%%sac`: comprehensions, functions without a name, methods, products with `@`.

Worked example: of `[2 * x for x in a]` the fix writes `{ [i] -> 2 * a[i] }`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Sequence
from typing import Protocol

from tc_jupyter.diagnostics import Edit, Fix, SourceText, Span

from . import library_names
from .sac_tree import Dot, SacExpression, Selection, SetExpr, TripleDot, WithLoop, assigned_names, sac_walk
from .tree import Name, Number

INSTEAD_OF_MASK = "write `where(mask, a, b)`: how many elements there are depends on no value"
_POSITION = "`minval({{ [i] -> a[i] == {}(a) ? i : shape(a)[0] }})`, the first position at which `a` is so"
_OTHER_INTEGERS = {
    **{"int8": ("byte",), "int16": ("s",), "int64": ("ll",)},
    **{"uint8": ("ub",), "uint16": ("us",), "uint32": ("ui",), "uint64": ("ul", "ull")},
}
"""Integers to which SaC has conversions that are written as casts here, and how their names end."""

INSTEAD = {
    "argmax": _POSITION.format("maxval"),
    "argmin": _POSITION.format("minval"),
    **dict.fromkeys(("mean", "average", "avg"), "`sum(a) / tod(prod(shape(a)))`"),
    **dict.fromkeys(("matmul", "mm", "gemm"), "`{ [i, j] -> sum({ [k] -> a[i, k] * b[k, j] }) }`"),
    **dict.fromkeys(("dot", "inner", "vdot"), "`sum(a * b)`"),
    "modarray": "`with { (iv <= jv <= iv) : e; } : modarray(a)` for `a` with `e` at `iv`",
    "outer": "`{ [i, j] -> a[i] * b[j] }`",
    **dict.fromkeys(("logsumexp", "lse"), "`maxval(a) + log(sum(exp(a - maxval(a))))`"),
    **dict.fromkeys(("len", "length"), "`shape(a)[0]`"),
    **dict.fromkeys(("size", "numel"), "`prod(shape(a))`"),
    **dict.fromkeys(("ndim", "rank"), "`dim(a)`"),
    **dict.fromkeys(("range", "arange"), "`iota(n)` for `[0, .., n - 1]`, or `{ [i] -> .. | [i] < [n] }`"),
    **dict.fromkeys(("zeros", "ones", "full"), "`genarray(shape, e)`, an array of `e`"),
    **dict.fromkeys(("concat", "concatenate", "cat"), "`a ++ b`"),
    "roll": "`rotate(axis, n, a)`",
    **dict.fromkeys(("flip", "flipud"), "`reverse(a)`"),
    **dict.fromkeys(("clip", "clamp"), "`min(max(a, low), high)`"),
    "relu6": "`min(max(a, 0.0), 6.0)`",
    **dict.fromkeys(
        ("scan", "scanl", "scanl1", "inclusive_scan"), "`{ [i] -> sum(take([i + 1], a)) | [i] < shape(a) }`"
    ),
    "cumsum": "`{ [i] -> sum(take([i + 1], a)) | [i] < shape(a) }`",
    "cumprod": "`{ [i] -> prod(take([i + 1], a)) | [i] < shape(a) }`",
    "zip": "`{ [i] -> [a[i], b[i]] }`",
    "enumerate": "`{ [i] -> .. a[i] .. }`, where `i` is the number of the element",
    **dict.fromkeys(("filter", "compress", "nonzero"), INSTEAD_OF_MASK.removeprefix("write ")),
    **dict.fromkeys(("sort", "sorted", "argsort", "unique"), "this in Python: no function here sorts"),
    "norm": "`sqrt(sum(a * a))`",
    **dict.fromkeys(("square", "sqr"), "`a * a`"),
    "diff": "`drop([1], a) - drop([-1], a)`",
    **dict.fromkeys(("map", "vmap", "vectorize", "apply"), "`abs(a)`: functions of numbers take whole arrays"),
    **dict.fromkeys(
        ("reduce", "fold", "foldl", "foldr", "accumulate"), "`sum(a)`, `prod(a)`, `minval(a)` or `maxval(a)`"
    ),
    **dict.fromkeys(("modulo", "fmod", "remainder"), "`a % b`, or `mod(a, b)` with the sign of `b`"),
    **{f"to{letters}": f"`{dtype}(..)`" for dtype, names in _OTHER_INTEGERS.items() for letters in names},
}
"""Functions of other languages: how their value is written."""


class Word(Protocol):
    """A token of the parser; its kind is `number`, `name`, `symbol`, `text` or `end`."""

    @property
    def kind(self) -> str:
        """What sort of token it is."""
        ...

    @property
    def text(self) -> str:
        """As it is written."""
        ...

    @property
    def span(self) -> Span:
        """Where it stands."""
        ...


EACH_ELEMENT = "say what each element is, as in `{ [i] -> 2 * a[i] }`"
NO_NAME = (
    "a function has a name, and stands before this one; what one element is, is said as in `{ [i] -> 2 * a[i] }`, "
    "and operators and `abs(a)` take whole arrays"
)
COMBINED = (
    "all elements are combined by `sum(a)`, `prod(a)`, `minval(a)`, `maxval(a)`, `all(a)` and `any(a)`, "
    "others by `with { ([0] <= [i] < shape(a)) : a[i]; } : fold(f, neutral)`"
)
_CHOSEN = (
    "an array has an element for every index: choose its value, as in `{ [i] -> a[i] > 0.0 ? a[i] : 0.0 }`; "
    "how many elements fulfil a condition is `sum(toi(a > 0.0))`"
)
RUNNING = "the elements up to each place are combined by `{ [i] -> sum(take([i + 1], a)) | [i] < shape(a) }`"
_OF_ALL = {"+": "sum", "*": "prod", "min": "minval", "max": "maxval", "&&": "all", "||": "any"}
REDUCING = frozenset({"reduce", "fold", "foldl", "foldr", "foldl1", "accumulate", "aggregate"})
"""Functions of other languages that combine the elements of an array by a function."""


SCANNING = frozenset({"scan", "scanl", "scanl1", "inclusive_scan", "cumulate"})
"""Those that do so for the elements up to each place."""


def comprehension(tokens: Sequence[Word], source: SourceText, start: int, word: int) -> tuple[str, Fix | None]:
    """Help and fix for `e for x in a` behind a bracket, which begins at the token `start` and has its `for` at `word`."""
    end = _end(tokens, word)
    clause = tokens[word + 1 : end]
    if any(token.text == "if" for token in clause):
        return _CHOSEN, None
    brackets = tokens[start - 1], tokens[end]
    texts = [token.text for token in clause]
    if len(texts) < 3 or texts[1] != "in" or clause[0].kind != "name":
        return EACH_ELEMENT, None
    value = tokens[start:word]
    if len(texts) == 3 and clause[2].kind == "name":
        made = _of_elements(value, source, texts[0], texts[2])
    elif texts[2] in ("range", "iota") and texts[3:4] == ["("] and _end(tokens, word + 5) == end - 1:
        count = source.slice(Span(clause[4].span.start, clause[-2].span.end))
        made = f"{{ [{texts[0]}] -> {_text(value, source)} | [{texts[0]}] < [{count}] }}"
        made = made if "," not in texts else None
    else:
        made = None
    if made is None:
        return EACH_ELEMENT, None
    is_list = brackets[0].text == "["
    place = Span(brackets[0].span.start if is_list else value[0].span.start, clause[-1].span.end)
    place = place | brackets[1].span if is_list else place
    return EACH_ELEMENT, Fix("say what each element is", (Edit(place, made),))


def mapped(tokens: Sequence[Word], source: SourceText, called: int) -> Fix | None:
    """The fix for `map(lambda x: e, a)`, whose `map` is the token `called`."""
    texts = [token.text for token in tokens[called : called + 5]]
    if texts[:1] not in (["map"], ["vmap"]) or texts[1:3] != ["(", "lambda"] or texts[4:] != [":"]:
        return None
    comma = _end(tokens, called + 4)
    behind = [token.text for token in tokens[comma : comma + 3]]
    if len(behind) < 3 or behind[0] != "," or behind[2] != ")" or tokens[comma + 1].kind != "name":
        return None
    made = _of_elements(tokens[called + 5 : comma], source, texts[3], behind[1])
    place = tokens[called].span | tokens[comma + 2].span
    return None if made is None else Fix("say what each element is", (Edit(place, made),))


def combined(tokens: Sequence[Word], called: int) -> Fix | None:
    """The fix for `reduce(+, a)` and `scan(+, a)`, whose name is the token `called`."""
    texts = [token.text for token in tokens[called : called + 6]]
    if len(texts) < 6 or texts[1] != "(" or texts[3] != "," or texts[5] != ")" or tokens[called + 4].kind != "name":
        return None
    made = f"{_OF_ALL.get(texts[2])}({texts[4]})"
    if texts[0] in SCANNING:
        index = "i" if texts[4] != "i" else "j"
        first = f"take([{index} + 1], {texts[4]})"
        made = f"{{ [{index}] -> {_OF_ALL.get(texts[2])}({first}) | [{index}] < shape({texts[4]}) }}"
    place = tokens[called].span | tokens[called + 5].span
    return Fix(f"write `{made}`", (Edit(place, made),)) if texts[2] in _OF_ALL else None


_TYPED = re.compile(r"\b[a-z]\w*\s*\[([.\d,\s]*)\]\s*([A-Za-z_]\w*)")
_BEHIND = re.compile(r"\s*([A-Za-z_]\w*)\s*(?=[-+*;,)\]}])")
_PRODUCTS = {
    (2, 2): "{{ [i, j] -> sum({{ [k] -> {0}[i, k] * {1}[k, j] }}) }}",
    (2, 1): "{{ [i] -> sum({{ [k] -> {0}[i, k] * {1}[k] }}) }}",
    (1, 2): "{{ [j] -> sum({{ [k] -> {0}[k] * {1}[k, j] }}) }}",
    (1, 1): "sum({0} * {1})",
}
PRODUCT = f"a product of matrices is `{_PRODUCTS[2, 2].format('a', 'b')}`"


def product(source: SourceText, before: Word, place: Span) -> Fix | None:
    """The fix for `a @ b`, where both are named and have a known number of axes; `place` is that of `@`."""
    behind = _BEHIND.match(source.text, place.end)
    ranks = {found.group(2): found.group(1).count(",") + 1 for found in _TYPED.finditer(source.text, 0, place.start)}
    if behind is None or before.kind != "name":
        return None
    names = before.text, behind.group(1)
    made = _PRODUCTS.get((ranks.get(names[0], 0), ranks.get(names[1], 0)))
    if made is None or set(names) & {"i", "j", "k"}:
        return None
    text = made.format(*names)
    return Fix(f"write `{text}`", (Edit(Span(before.span.start, behind.end(1)), text),))


def free_indices(value: SacExpression, known: Container[str]) -> list[str]:
    """The names in subscripts that nothing gives a value: `i` and `k` in `a[i, k] * b[k + 1]`."""
    nodes = list(sac_walk(value))
    bound = {name for node in nodes for name in _bound(node)}
    subscripts = (index for node in nodes if isinstance(node, Selection) for index in node.indices)
    inside = (part for each in subscripts if not isinstance(each, Dot | TripleDot) for part in sac_walk(each))
    names = (part.name for part in inside if isinstance(part, Name))
    return list(dict.fromkeys(name for name in names if name not in bound and name not in known))


def _bound(node: SacExpression) -> list[str]:
    """The names that a comprehension or a with-loop gives a meaning to."""
    match node:
        case SetExpr():
            return [name.name for each in node.partitions for name in each.pattern.bound]
        case WithLoop():
            patterns = [name.name for each in node.generators for name in each.pattern.bound]
            return [*patterns, *(name.name for each in node.generators for name in assigned_names(each.assigns))]
        case _:
            return []


def has_one_subscript(value: SacExpression, names: Collection[str]) -> bool:
    """Whether all selections by these names have all of them, in the same order, as those of one element have."""
    chosen = [
        [part.name for part in sac_walk(node) if isinstance(part, Name) and part.name in names]
        for node in sac_walk(value)
        if isinstance(node, Selection)
    ]
    return all(each == list(names) for each in chosen if each)


_OF_ARRAYS = {
    **{
        "T": "transpose",
        "transpose": "transpose",
        "max": "maxval",
        "min": "minval",
        "ndim": "dim",
        "reverse": "reverse",
    },
    **{name: name for name in ("shape", "sum", "prod", "any", "all", "abs", "sqrt", "exp", "log", "round")},
}


def function_of(method: str) -> str:
    """The function that is `a.method` in array libraries: `transpose` for `T`."""
    return _OF_ARRAYS.get(method) or library_names.RENAMED.get(method, method)


def is_method(name: str) -> bool:
    """Whether `a.name` is a function here."""
    return name in _OF_ARRAYS


_DEFINED = re.compile(r"#\s*define\s+([A-Za-z_]\w*)[ \t]+([^\n]*)")


def of_hash(source: SourceText, span: Span) -> str:
    """What helps for a `#`, which begins comments elsewhere, and defines constants in C."""
    found = _DEFINED.match(source.text, span.start)
    return "comments start with `//`" if found is None else constant(found.group(1), found.group(2).split("//")[0])


def constant(name: str, value: str, type_: str | None = None) -> str:
    """What helps for a constant outside of functions."""
    value = value.strip()
    type_ = type_ or ("double" if re.fullmatch(r"\d*\.\d*(?:[eE][-+]?\d+)?", value) else "int")
    return f"a constant is a function: `inline {type_} {name}() {{ return {value}; }}`, called `{name}()`"


def along_axis(function: str, array: str, arguments: Sequence[SacExpression]) -> str | None:
    """What helps for `sum(a, 0)` and `a.sum(1)`: the combination of the elements along one axis."""
    if function not in _OF_ALL.values() or len(arguments) != 1:
        return None
    axis = arguments[0].value if isinstance(arguments[0], Number) else None
    index, place = ("i", "i, .") if isinstance(axis, int) and axis == 1 else ("j", "., j")
    return f"`{function}` combines all elements; along one axis: `{{ [{index}] -> {function}({array}[{place}]) }}`"


def closed(source: SourceText, span: Span) -> Span:
    """The place with the brackets around its first and last operand, which are no part of it."""
    start, end = span.start, span.end
    depth = least = 0
    for char in source.slice(span):
        depth += (char == "(") - (char == ")")
        least = min(least, depth)
    for _ in range(-least):
        start = max(source.text.rfind("(", 0, start), 0)
    for _ in range(depth - least):
        end = source.text.find(")", end) + 1 or end
    return Span(start, end)


def _end(tokens: Sequence[Word], start: int) -> int:
    """The first place from `start` on at which a bracket closes that stands before it, or a comma stands beside it."""
    depth, at = 0, start
    while tokens[at].kind != "end":
        if depth == 0 and tokens[at].text in (")", "]", "}", ",", ";"):
            break
        depth += (tokens[at].text in ("(", "[", "{")) - (tokens[at].text in (")", "]", "}"))
        at += 1
    return at


def _of_elements(value: Sequence[Word], source: SourceText, name: str, array: str) -> str | None:
    """`{ [i] -> e }` for the elements of an array that a value calls `name`; `None` where there is no value."""
    used = {token.text for token in value} | {array}
    index = next((each for each in "ijklmn" if each not in used or each == name), None)
    if not value or index is None:
        return None
    return f"{{ [{index}] -> {_text(value, source, name, f'{array}[{index}]')} }}"


def _text(value: Sequence[Word], source: SourceText, name: str = "", by: str = "") -> str:
    """The text of tokens, with another text for a name."""
    text, end = "", value[0].span.start if value else 0
    for token in value:
        text += source.slice(Span(end, token.span.start)) + (by if token.text == name else token.text)
        end = token.span.end
    return text
