"""The functions that every `%%sac` cell knows, and SaC's names of them (`_sel_VxA_`), so that its own definitions run as printed.

Worked example: `primitive("_add_SxS_")` is `"+"`; `DEMANDS["shape"]` says that the value of `shape(a)` needs the shape of `a`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tc_jupyter.diagnostics import nearest
from tc_jupyter.syntax import library_names
from tc_jupyter.syntax.sac_foreign import INSTEAD

from .functions import FUNCTIONS

LEVELS = "NDSF"
"""Levels of knowledge of an array, from nothing over rank and shape to its value (section 6 of the paper)."""

DEMANDS: dict[str, tuple[str, str, str]] = {
    "shape": ("S", "D", "N"),
    "dim": ("D", "N", "N"),
    "sel": ("FF", "SS", "SD"),
    "take": ("FF", "FS", "ND"),
    "drop": ("FF", "FS", "ND"),
    "++": ("FF", "SS", "DN"),
    "sum": ("F", "N", "N"),
    "prod": ("F", "N", "N"),
    "minval": ("F", "N", "N"),
    "maxval": ("F", "N", "N"),
    "reverse": ("F", "S", "D"),
    "transpose": ("F", "S", "D"),
    "genarray": ("FF", "FS", "SD"),
    "reshape": ("FF", "FN", "SN"),
    "iota": ("F", "F", "N"),
    "tile": ("FFF", "FNS", "NND"),
    "where": ("FFF", "SSS", "DDD"),
    "all": ("F", "N", "N"),
    "any": ("F", "N", "N"),
    "rotate": ("FF", "NS", "ND"),
    "shift": ("FFF", "NNS", "NND"),
}
"""For the value, the shape and the rank of a result: the level needed of each argument. Elementwise functions are not listed."""

ARITIES: dict[str, tuple[int, ...]] = {"rotate": (2, 3), "shift": (2, 3, 4)}
"""Functions that take several numbers of arguments; the last one is the array."""

CASTS: dict[str, str] = {"tof": "float32", "toi": "int32", "tod": "float64", "tol": "int64", "tob": "bool"}
"""Functions that convert element by element."""

_PRIMITIVES: dict[str, str] = {
    "shape": "shape", "dim": "dim", "sel": "sel", "take": "take", "drop": "drop", "cat": "++", "add": "+", "sub": "-",
    "mul": "*", "div": "/", "mod": "%", "aplmod": "mod", "min": "min", "max": "max", "abs": "abs", "neg": "neg",
    "not": "!", "and": "&&", "reshape": "reshape",
    "or": "||", "eq": "==", "neq": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "toi": "toi", "tof": "tof",
    "tod": "tod", "tol": "tol", "tob": "tob", "exp": "exp", "log": "log", "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan",
}  # fmt: skip
_FORM = re.compile(r"_([a-z]+)_([SVA](?:x[SVA])*)_")

ARITY: dict[str, int] = {
    "shape": 1, "dim": 1, "sel": 2, "take": 2, "drop": 2, "++": 2, "sum": 1, "prod": 1, "minval": 1, "maxval": 1,
    "reverse": 1, "transpose": 1, "genarray": 2, "reshape": 2, "iota": 1, "tile": 3, "where": 3, "all": 1, "any": 1,
    "rotate": 2, "shift": 2, "neg": 1, "!": 1,
} | {op: 2 for op in ("+", "-", "*", "/", "%", "mod", "&&", "||", "==", "!=", "<", "<=", ">", ">=")
} | dict.fromkeys(CASTS, 1)  # fmt: skip


def arities(word: str) -> tuple[int, ...]:
    """The numbers of arguments that a built-in function takes."""
    return ARITIES.get(word) or (ARITY.get(word, 1),)


def primitive(name: str) -> str | None:
    """The built-in function that a name of the form `_add_SxS_` or `Array::take` stands for, if there is one."""
    if "::" in name:
        word = name.partition("::")[2]
        return word if is_builtin(word) else None
    match = _FORM.fullmatch(name)
    return _PRIMITIVES.get(match.group(1)) if match else None


def usage(name: str) -> str:
    """How a built-in function or cast is called: `take(v, a)`."""
    word = primitive(name) or name
    wanted = {"take": "v, a", "drop": "v, a", "sel": "iv, a", "genarray": "s, e", "reshape": "s, a", "iota": "n"}
    wanted |= {"tile": "s, offset, a", "where": "mask, a, b", "rotate": "axis, count, a", "shift": "axis, count, e, a"}
    arguments = wanted.get(word, ", ".join("abcd"[: ARITY.get(word, 1)]))
    return f"`{name}({arguments})`"


def no_function_help(name: str, candidates: Iterable[str]) -> str:
    """What to do about a call of a name that is no function."""
    if name in library_names.TYPES:
        return f"`{name}` is no type here; a cast is written `{library_names.TYPES[name]}(..)`"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    near = nearest(name, candidates)
    return f"did you mean `{near}`?" if near else "define it in this cell, or run the cell that does"


def is_builtin(name: str) -> bool:
    """Whether `name` is a function that every cell knows (casts to a type name are not listed here)."""
    word = primitive(name) or name
    return word in FUNCTIONS or (word in ARITY and (word.isidentifier() or word != name))


def builtin_names() -> list[str]:
    """Names that a call may use, for did-you-mean and completion."""
    return sorted({*FUNCTIONS, *CASTS, *(word for word in ARITY if word.isidentifier() and word != "neg")})
