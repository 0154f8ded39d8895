r"""Bounds as SymPy expressions and as LaTeX. The door of SymPy, which is imported on the first formula.

Worked example: `to_latex(floor_div(size("I") + 1, 2))` is `\left\lfloor{\frac{I + 1}{2}}\right\rfloor`.
"""

from __future__ import annotations

from typing import Any, assert_never

from .convert import structure
from .size_expr import (
    Atom,
    Choice,
    Condition,
    Datum,
    Extremum,
    FloorDiv,
    Mod,
    Name,
    Opaque,
    Product,
    SizeExpr,
)

LONGEST = 100
"""Parts of an expression that becomes a formula: SymPy orders and compares them all."""


SIMPLE = 30
"""Parts of a minimum whose arguments SymPy compares with each other: nested ones take it exponentially long."""


class FormulaUnavailable(ImportError):
    """SymPy is not installed, or the expression is too long for it."""


def _sympy() -> Any:
    try:
        import sympy  # noqa: PLC0415 (slow: imported on the first formula)
    except ImportError:
        raise FormulaUnavailable("formulas need the package `sympy`") from None
    return sympy


def to_sympy(e: SizeExpr) -> Any:
    """The SymPy expression of `e`; sizes are integer symbols, elements of tensors applied functions.

    Sizes are non-negative and not positive, so that SymPy simplifies nothing that a size of 0 would break.

    Raises:
        FormulaUnavailable: SymPy is not installed, or would take long with an expression of this length.
    """
    sympy = _sympy()
    if e.weight > LONGEST:
        raise FormulaUnavailable("the bound is too long for a formula")
    total = sympy.Integer(e.offset)
    for mono, c in e.ordered():
        total += sympy.Integer(c) * sympy.Mul(*[_atom(atom, sympy) for atom in mono])
    return total


def _atom(atom: Atom, sympy: Any) -> Any:
    match atom:
        case Name():
            return sympy.Symbol(atom.name, integer=True, **({"nonnegative": True} if atom.kind == "size" else {}))
        case FloorDiv():
            return sympy.floor(to_sympy(atom.numerator) / to_sympy(atom.divisor))
        case Mod():
            return sympy.Mod(to_sympy(atom.numerator), to_sympy(atom.divisor))
        case Extremum():
            combine = sympy.Min if atom.kind == "min" else sympy.Max
            simple = sum(argument.weight for argument in atom.arguments) <= SIMPLE
            return combine(*map(to_sympy, atom.arguments), **({} if simple else {"evaluate": False}))
        case Product():
            return sympy.Mul(*map(to_sympy, atom.factors))
        case Datum():
            return sympy.Function(atom.tensor)(*map(to_sympy, atom.index)) if atom.index else sympy.Symbol(atom.tensor)
        case Choice():
            condition = _condition(atom.condition, sympy)
            return sympy.Piecewise((to_sympy(atom.then), condition), (to_sympy(atom.otherwise), True))
        case Opaque():
            return sympy.Symbol(structure(atom.expr), integer=True)
    assert_never(atom)


def _condition(condition: Condition, sympy: Any) -> Any:
    match condition.op:
        case ">=":
            return sympy.Ge(to_sympy(condition.arguments[0]), 0)
        case "==":
            return sympy.Eq(to_sympy(condition.arguments[0]), 0)
        case "!=":
            return sympy.Ne(to_sympy(condition.arguments[0]), 0)
        case "and" | "or":
            combine = sympy.And if condition.op == "and" else sympy.Or
            return combine(*(_condition(part, sympy) for part in condition.parts))
        case "true" | "false":
            return sympy.true if condition.op == "true" else sympy.false
        case _:
            return sympy.Symbol(str(condition.key[4]))


def to_latex(e: SizeExpr) -> str:
    """The LaTeX text of a bound.

    Raises:
        FormulaUnavailable: SymPy is not installed.
    """
    return str(_sympy().latex(to_sympy(e)))


def range_latex(name: str, lower: SizeExpr, upper: SizeExpr) -> str:
    """The LaTeX text of a half-open range."""
    return f"{to_latex(lower)} \\le {name} < {to_latex(upper)}"
