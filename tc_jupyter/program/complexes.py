"""Complex numbers as pairs of real ones: while a statement is checked, a complex value is `complex(re, im)`, and then it is gone.

A tensor of complex numbers is one of floats whose last dimension has two elements, and a statement on it has an index more:

    C(i) = A(i) * B(i)
    ->
    C(i, part) = part == 0 ? A(i, 0)*B(i, 0) - A(i, 1)*B(i, 1) : A(i, 0)*B(i, 1) + A(i, 1)*B(i, 0)

So no later stage knows complex numbers, and both parts are computed in one pass. A real operand stays real: `2 * z` has two
products.
Formulas are those of the textbook, but for quotients and roots, which do not overflow where their value does not: R. L. Smith,
"Algorithm 116: Complex division", CACM 1962; W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from tc_jupyter.diagnostics import NO_SPAN, Span

from .expr import Binary, Call, Const, DType, Expr, IndexVar, Read, Select, Unary, int64, walk
from .program import FOLD_LEFT, FOLD_RIGHT, Index, Reducer, Tensor

PAIR = "complex"
"""The function of a value that has two parts."""
TAKE_A_REAL = "take `re(z)`, `im(z)` or `abs(z)`"
"""The help where a real number is wanted."""
MOST_NODES = 5_000
"""Of one part: products and quotients of products have each part of their operands several times."""


def paired(re: Expr, im: Expr, span: Span) -> Expr:
    """The complex number of two parts of one type."""
    return Call(PAIR, (re, im), re.dtype.of_pairs, span)


def parts(value: Expr) -> tuple[Expr, Expr | None]:
    """The real and the imaginary part; a real value has none."""
    if isinstance(value, Call) and value.function == PAIR:
        return value.arguments[0], value.arguments[1]
    return value, None


def both(value: Expr) -> tuple[Expr, Expr]:
    """The real and the imaginary part of any number."""
    re, im = parts(value)
    return re, im or Const(0.0, re.dtype)


def each_part(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """A value with both parts changed."""
    re, im = both(value)
    return paired(change(re), change(im), value.span)


def is_too_large(value: Expr) -> bool:
    """Whether a part has become too large to be worked with."""
    return any(
        next(islice(walk(part), MOST_NODES, None), None) is not None for part in parts(value) if part is not None
    )


# arithmetic: operands have parts of one type, and at least one of them is complex


def arithmetic(op: str, left: Expr, right: Expr, span: Span) -> Expr:
    """`left op right` for one of `+ - * /`."""
    (a, b), (c, d) = parts(left), parts(right)
    match op:
        case "+" | "-":
            alone = d if op == "+" else None if d is None else _negative(d)
            im = b if d is None else alone if b is None else _real(op, b, d)
            assert im is not None
            return paired(_real(op, a, c), im, span)
        case "*" if b is not None and d is not None:
            re = _real("-", _real("*", a, c), _real("*", b, d))
            return paired(re, _real("+", _real("*", a, d), _real("*", b, c)), span)
        case "*" if d is not None:
            return paired(_real("*", a, c), _real("*", a, d), span)
        case _ if d is None:
            assert b is not None
            return paired(_real(op, a, c), _real(op, b, c), span)
        case _:
            return _quotient(*both(left), c, d, span)


def _quotient(a: Expr, b: Expr, c: Expr, d: Expr, span: Span) -> Expr:
    """`(a + bi) / (c + di)` by the quotient of the smaller part of the divisor by the larger one; by 0 as its parts by 0."""
    first = Binary(">=", _size(c), _size(d), DType.BOOL)
    large, small = _choice(first, c, d), _choice(first, d, c)
    nothing = Binary("==", large, _number(0, c), DType.BOOL)
    ratio = _choice(nothing, _number(0, c), _real("/", small, large))
    divisor = _real("+", large, _real("*", small, ratio))
    p, q = _choice(first, _number(1, c), ratio), _choice(first, ratio, _number(1, c))
    re, im = _real("+", _real("*", a, p), _real("*", b, q)), _real("-", _real("*", b, p), _real("*", a, q))
    return paired(_real("/", re, divisor), _real("/", im, divisor), span)


def product(dtype: DType) -> Reducer:
    """What multiplies complex numbers whose parts have a type: `Y(n) *=! Z(n, m)`."""

    def operand(side: str) -> Expr:
        re, im = (Read(side, (int64(number),), dtype) for number in (0, 1))
        return paired(re, im, NO_SPAN)

    combine = parts(arithmetic("*", operand(FOLD_LEFT), operand(FOLD_RIGHT), NO_SPAN))
    return Reducer(
        "product",
        (dtype, dtype),
        tuple(each for each in combine if each is not None),
        (Const(1.0, dtype), Const(0.0, dtype)),
    )


def power(base: Expr, exponent: int, span: Span) -> Expr:
    """`z^n`, by squaring; what is too large ends early."""
    re, _ = both(base)
    one = paired(_number(1, re), _number(0, re), span)
    if exponent == 0:  # what is raised is read all the same
        return paired(_call("pow", re, _number(0, re)), _number(0, re), span)
    found: Expr | None = None
    for bit in bin(abs(exponent))[2:]:
        found = base if found is None else arithmetic("*", found, found, span)
        if bit == "1" and found is not base:
            found = arithmetic("*", found, base, span)
        if is_too_large(found):
            return found
    assert found is not None
    return found if exponent > 0 else arithmetic("/", one, found, span)


def negative(value: Expr, span: Span) -> Expr:
    """`-z`."""
    return replace(each_part(value, _negative), span=span)


def equal(op: str, left: Expr, right: Expr, span: Span) -> Expr:
    """`left == right` or `left != right`, where both parts count."""
    pairs = zip(both(left), both(right), strict=True)
    first, second = (Binary(op, one, other, DType.BOOL) for one, other in pairs)
    return Binary("&&" if op == "==" else "||", first, second, DType.BOOL, span)


def chosen(condition: Expr, then: Expr, otherwise: Expr, span: Span) -> Expr:
    """`condition ? then : otherwise`."""
    (a, b), (c, d) = both(then), both(otherwise)
    return paired(_choice(condition, a, c), _choice(condition, b, d), span)


# functions


def called(name: str, value: Expr, span: Span) -> Expr | None:
    """A function of a complex number; `None` if it has no meaning for them."""
    re, im = both(value)
    match name:
        case "re":
            return re
        case "im":
            return im
        case "conj":
            return paired(re, _negative(im), span)
        case "abs":
            return Call("hypot", (re, im), re.dtype, span)
        case "exp":
            size = _call("exp", re)
            return paired(_real("*", size, _call("cos", im)), _real("*", size, _call("sin", im)), span)
        case "sqrt":
            return _root(re, im, span)
        case "isnan" | "isinf" | "isfinite":
            first, second = (Call(name, (each,), DType.BOOL) for each in (re, im))
            return Binary("&&" if name == "isfinite" else "||", first, second, DType.BOOL, span)
        case _:
            return None


FUNCTIONS = ("re", "im", "conj", "abs", "exp", "sqrt", "isnan", "isinf", "isfinite")
"""The functions of complex numbers."""


def _root(re: Expr, im: Expr, span: Span) -> Expr:
    """The root whose real part is not negative: no sum in it cancels."""
    zero, half = _number(0, re), _number(0.5, re)
    size = _call("hypot", re, im)
    larger = _call("sqrt", _real("*", half, _real("+", _size(re), size)))
    nothing = Binary("==", larger, zero, DType.BOOL)
    other = _choice(nothing, zero, _real("/", _real("*", half, im), larger))
    right = Binary(">=", re, zero, DType.BOOL)
    turned = _call("copysign", larger, im)
    return paired(_choice(right, larger, _size(other)), _choice(right, other, turned), span)


def _real(op: str, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right, left.dtype)


def _negative(value: Expr) -> Expr:
    return Unary("-", value, value.dtype)


def _call(name: str, *arguments: Expr) -> Expr:
    return Call(name, arguments, arguments[0].dtype)


def _size(value: Expr) -> Expr:
    return _call("abs", value)


def _number(value: float, like: Expr) -> Expr:
    return Const(float(value), like.dtype)


def _choice(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    return Select(condition, then, otherwise, then.dtype)


# tensors and statements

_TWO = int64(2)


def as_pairs(tensor: Tensor) -> Tensor:
    """A tensor of complex numbers as one of floats; another one as it is."""
    if not tensor.dtype.is_complex:
        return tensor
    return replace(
        tensor,
        dtype=tensor.dtype.part,
        rank=tensor.rank + 1,
        dims=None if tensor.dims is None else (*tensor.dims, _TWO),
        box=None if tensor.box is None else (*tensor.box, (int64(0), _TWO)),
        declared=None if tensor.declared is None else (*tensor.declared, _TWO),
        starts=None if tensor.starts is None else (*tensor.starts, None),
        pairs=True,
    )


def element(tensor: str, indices: Sequence[Expr], dtype: DType, span: Span) -> Expr:
    """An element of a tensor of complex numbers."""
    re, im = (Read(tensor, (*indices, int64(number)), dtype.part, span) for number in (0, 1))
    return paired(re, im, span)


def part_index(name: str) -> Index:
    """The index of the parts: 0 of the real, 1 of the imaginary ones."""
    return Index(name, "output", (int64(0), _TWO))


def by_part(value: Expr, index: str) -> Expr:
    """The part of a value that an index tells."""
    re, im = both(value)
    return _choice(Binary("==", IndexVar(index), int64(0), DType.BOOL), re, im)


def is_of_matrices(value: Expr, outputs: Sequence[str]) -> bool:
    """Whether operands are read for indices of the left side that others have not: sums of such products are computed in tiles,
    which the real and the imaginary part have each for itself.

    Measured with AVX-512, `C(i, j) +=! A(i, k) * B(k, j)` of 256 x 256, two threads: 25 ms with both parts in one
    statement, 1.5 so.
    """
    seen = {
        frozenset(name for place in node.indices for name in _names(place) if name in outputs)
        for node in walk(both(value)[0])
        if isinstance(node, Read) and node.indices
    }
    return any(not one <= other and not other <= one for one in seen for other in seen)


def _names(place: Expr) -> set[str]:
    return {node.name for node in walk(place) if isinstance(node, IndexVar)}


def mixes_own_parts(value: Expr, target: str, own: Sequence[str]) -> bool:
    """Whether a part of the new value needs the other part of the old one, at these indices, which would be written meanwhile."""
    return any(
        isinstance(node, Read)
        and node.tensor == target
        and node.indices[-1] != int64(number)
        and all(isinstance(at, IndexVar) and at.name == name for at, name in zip(node.indices, own, strict=False))
        for number, part in enumerate(both(value))
        for node in walk(part)
    )
