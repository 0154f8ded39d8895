"""Between program expressions and size expressions.

Worked example: the subscript `2*i + 1` of a read becomes `SizeExpr` with index `i`; `to_expr` turns the bound `N - K + 1` back
into `Binary("+", Binary("-", Size("N"), Size("K")), Const(1))`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import assert_never

from tc_jupyter.program import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Leaves,
    Read,
    Select,
    Size,
    Unary,
    bits,
    int64,
    limits_of,
    may_wrap,
    walk,
)
from tc_jupyter.program.integers import has_read
from tc_jupyter.program.typing import wrap

from .size_expr import (
    UNLIMITED,
    Atom,
    Choice,
    Condition,
    Datum,
    Extremum,
    FloorDiv,
    Limits,
    Mod,
    Name,
    Opaque,
    Product,
    SizeExpr,
    choose,
    conjunction,
    constant,
    floor_div,
    index,
    is_known_at_call,
    maximum,
    minimum,
    mod,
    of_atom,
    on_sizes,
    scalar,
    size,
)

ALWAYS = Condition("true")


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean while an expression is converted.

    Attributes:
        sizes: sizes of the signature and extents of computed tensors (`T.0`).
        scalars: integer rank-0 parameters; every other read of rank 0 is data. `None`: every integer of rank 0 is a parameter.
        indices: index variables of the statement.
        divisors: collects every divisor that is not a positive constant, for the check at the call (TC603); `None`: nobody asks.
            One behind a condition on sizes alone, which may leave it out, is collected as `condition ? divisor : 1`.
        brackets: what stands around the indices of an element: `()`, in `%%sac` `[]`.
        when: what sizes alone decide of the conditions around the expression.
        wraps: numbers are those that a kernel computes: what may leave 64 bits, as a product of elements may, is any number
            of 64 bits. Otherwise they are exact.
        pairs: tensors whose last subscript tells the part of a complex number; it is always inside, and no text shows it.
    """

    sizes: Mapping[str, SizeExpr] = field(default_factory=dict)
    scalars: Mapping[str, SizeExpr] | None = None
    indices: Mapping[str, SizeExpr] = field(default_factory=dict)
    divisors: list[SizeExpr] | None = None
    brackets: str = "()"
    when: Condition = ALWAYS
    wraps: bool = False
    pairs: frozenset[str] = frozenset()

    def under(self, condition: Condition) -> Scope:
        """The scope of what is computed only where the condition holds."""
        return self if self.divisors is None else replace(self, when=conjunction((self.when, on_sizes(condition))))


EMPTY = Scope()


def from_expr(expr: Expr, scope: Scope = EMPTY) -> SizeExpr:
    """The size expression of an integer expression.

    Elements of tensors become `Datum`; what has no integer form (a narrow element, a function of data) becomes `Opaque` with the
    limits of its type. Conversions between integer types of at least 32 bits do not change an index, and a narrower one of sizes
    and scalars is a remainder.
    """
    if scope.wraps and leaves_int64(expr) and not isinstance(expr, Cast):
        return _opaque(expr, scope)
    match expr:
        case Const():
            return constant(int(expr.value)) if _is_integral(expr.value) else _opaque(expr)
        case Size():
            found = scope.sizes.get(expr.name)
            return size(expr.name) if found is None else found
        case IndexVar():
            found = scope.indices.get(expr.name)
            return index(expr.name) if found is None else found
        case Read():
            return _read(expr, scope)
        case Unary():
            return -from_expr(expr.operand, scope) if expr.op == "-" else _truth(expr, scope)
        case Binary():
            return _binary(expr, scope)
        case Select():
            condition = to_condition(expr.condition, scope)
            then = from_expr(expr.then, scope.under(condition))
            return choose(condition, then, from_expr(expr.otherwise, scope.under(condition.negated())))
        case Call():
            return _call(expr, scope)
        case Cast():
            return _cast(expr, scope)
    assert_never(expr)


FAR_FROM_THE_ENDS = Leaves(sizes=1 << 31)
"""Sizes and indices beside elements: an int32 element times a size of more than 31 bits; larger ones are looked at in the call."""


def leaves_int64(expr: Expr) -> bool:
    """Whether this is arithmetic with elements or scalars that may wrap around, or a number of `uint64` as one of `int64`."""
    match expr:
        case Cast():
            return expr.dtype is DType.INT64 and expr.operand.dtype is DType.UINT64
        case Binary(op="+" | "-" | "*") | Unary(op="-") | Call(function="abs") if expr.dtype.is_integer:
            return has_read(expr) and may_wrap(expr, FAR_FROM_THE_ENDS)
        case _:
            return False


def is_polynomial(expr: Expr) -> bool:
    """Whether an index is made by sums and products alone: its last 64 bits do not depend on what wrapped on the way."""
    match expr:
        case Const() | Size() | IndexVar() | Read():
            return True
        case Binary(op="+" | "-" | "*"):
            return is_polynomial(expr.left) and is_polynomial(expr.right)
        case Unary(op="-"):
            return is_polynomial(expr.operand)
        case Cast():
            return expr.operand.dtype.is_integer and expr.dtype is DType.INT64 and is_polynomial(expr.operand)
        case _:
            return False


def keeps_its_form(expr: Expr) -> bool:
    """Whether a subscript has to be computed as it is written.

    Numbers of 64 bits may be so near to the ends of `int64` that another form wraps around, as `min(s + 1, N) - 1` does where
    `min(s, N - 1)` does not.
    """
    wide = (
        (node.dtype in (DType.INT64, DType.UINT64) and isinstance(node, Read)) or leaves_int64(node)
        for node in walk(expr)
    )
    return not is_polynomial(expr) and any(wide)


LIMITS_OF_SCALARS = tuple((1 << bits) - 1 for bits in (63, 47, 31, 20, 15, 8, 4, 1))
"""Tried in turn: what scalars are limited to so that a bound made of them does not wrap around."""
SMALLER = 1 << 20
"""Sizes beside which scalars are looked at where larger ones wrap around by themselves: their product is a length of an array."""


def scalar_limits(expr: Expr) -> Mapping[str, int]:
    """The absolute values that scalars must not exceed for a bound to be computed in 64 bits; none where their types see to it."""
    wrapping = [node for node in walk(expr) if leaves_int64(node)]
    reads = {node.tensor for part in wrapping for node in walk(part) if isinstance(node, Read) and not node.indices}
    if not reads:
        return {}
    fits = (
        limit
        for sizes in (FAR_FROM_THE_ENDS.sizes, SMALLER)  # products of large sizes do not fit, whatever scalars are
        for limit in LIMITS_OF_SCALARS
        if not may_wrap(expr, Leaves(numbers=limit, sizes=sizes))
    )
    return dict.fromkeys(sorted(reads), next(fits, LIMITS_OF_SCALARS[-1]))


def divided_by(e: SizeExpr) -> SizeExpr:
    """A divisor that a scope has collected, without the condition around it.

    Of `min(-n, n)`, which a quotient that is cut off divides by, it is `n`: both are 0 where the other one is.
    """
    match tuple(e.terms.items()):
        case (((Choice() as choice,), 1),) if e.offset == 0 and choice.otherwise == 1:
            return divided_by(choice.then)
        case (((Extremum(arguments=(one, other)),), 1),) if one + other + 2 * e.offset == 0:
            return max(one + e.offset, other + e.offset, key=lambda each: [*each.terms.values(), each.offset])
        case _:
            return e


def _is_integral(value: float) -> bool:
    return isinstance(value, int) or value == value // 1


def _read(expr: Read, scope: Scope) -> SizeExpr:
    if not expr.indices and scope.scalars is None and expr.dtype.is_integer:
        return scalar(expr.tensor, expr.dtype)
    if not expr.indices and scope.scalars and expr.tensor in scope.scalars:
        return scope.scalars[expr.tensor]
    index = tuple(from_expr(i, scope) for i in expr.indices)
    return of_atom(Datum(expr.tensor, index, expr.dtype, expr, scope.brackets))


def _binary(expr: Binary, scope: Scope) -> SizeExpr:
    if expr.op in COMPARISONS or expr.op in LOGICAL:
        return _truth(expr, scope)
    if expr.op == "/" or expr.dtype.is_float:
        return _opaque(expr, scope)
    left, right = from_expr(expr.left, scope), from_expr(expr.right, scope)
    match expr.op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "min":
            return minimum(left, right)
        case "max":
            return maximum(left, right)
        case "//" | "%":
            if scope.divisors is not None and not (right.is_constant and right.offset > 0):
                scope.divisors.append(choose(scope.when, right, constant(1)))
            return floor_div(left, right) if expr.op == "//" else mod(left, right)
        case _:
            return _opaque(expr, scope)


def _call(expr: Call, scope: Scope) -> SizeExpr:
    if (
        expr.dtype.is_integer
        and expr.function in ("abs", "ceil", "floor", "round", "rounded", "trunc")
        and len(expr.arguments) == 1
    ):
        value = from_expr(expr.arguments[0], scope)
        return maximum(value, -value) if expr.function == "abs" else value
    return _opaque(expr, scope)


def _cast(expr: Cast, scope: Scope) -> SizeExpr:
    operand = expr.operand
    if operand.dtype is DType.BOOL and not isinstance(operand, Read):
        return _truth(operand, scope)
    if operand.dtype.is_float:
        if isinstance(operand, Cast) and operand.dtype.compute is operand.dtype:
            # a 16-bit element is widened before it is truncated
            operand = operand.operand if isinstance(operand.operand, Read) else operand
        if isinstance(operand, Read) and operand.indices and expr.dtype in (DType.INT32, DType.INT64):
            return from_expr(operand, scope)
        return _opaque(expr, scope)
    if expr.dtype.is_float:
        return from_expr(operand, scope)
    value = from_expr(operand, scope)
    low, high = value.limits
    bottom, top = expr.dtype.limits
    if value.is_constant:
        return constant(wrap(value.offset, expr.dtype))
    if expr.dtype is DType.INT64 and not (scope.wraps and leaves_int64(expr)):
        return value
    if low is not None and high is not None and bottom <= low and high <= top:
        return value
    if expr.dtype.bits >= 32 and _is_position(value) and (expr.dtype.is_signed or (low is not None and low >= 0)):
        return value
    if expr.dtype.bits <= 32 and is_known_at_call(value) and not value.indices:
        return _wrapped(value, expr.dtype)
    return _opaque(expr, scope)


def _wrapped(value: SizeExpr, dtype: DType) -> SizeExpr:
    """The number of a narrow type that has the same last bits, by steps that stay in 64 bits."""
    bottom, cycle = dtype.limits[0], 1 << dtype.bits
    return mod(mod(value, cycle) - bottom, cycle) + bottom


def _is_position(value: SizeExpr) -> bool:
    """Whether this is made of indices and sizes by sums, quotients, minima and maxima, which 32 bits are taken to hold."""
    return all(len(mono) == 1 and _is_held(mono[0]) for mono in value.terms)


def _is_held(atom: Atom) -> bool:
    match atom:
        case Name():
            return atom.kind != "scalar"
        case FloorDiv() | Mod():
            return atom.divisor.is_constant and atom.divisor.offset > 0 and _is_position(atom.numerator)
        case Extremum():
            return all(map(_is_position, atom.arguments))
        case _:
            return False


def _truth(expr: Expr, scope: Scope) -> SizeExpr:
    """A truth value as 0 or 1."""
    return choose(to_condition(expr, scope), constant(1), constant(0))


def _opaque(expr: Expr, scope: Scope = EMPTY) -> SizeExpr:
    names: set[str] = set()
    indices: set[str] = set()
    for node in walk(expr):
        if isinstance(node, IndexVar):
            indices.add(node.name)
        elif isinstance(node, Size):
            names |= scope.sizes[node.name].names if node.name in scope.sizes else {node.name}
        elif isinstance(node, Read) and not node.indices:
            names.add(node.tensor)
    limits: Limits = UNLIMITED if expr.dtype.is_float else expr.dtype.limits
    if isinstance(expr, Call) and expr.function in bits.OPERATORS:
        limits = limits_of(expr)
    return of_atom(Opaque(expr, structure(expr), frozenset(names | indices), frozenset(indices), limits))


def structure(expr: Expr) -> str:
    """A text that is equal for equal expressions, whatever their spans."""
    match expr:
        case Const():
            return f"{expr.value!r}:{expr.dtype.value}"
        case Size() | IndexVar():
            return expr.name
        case Read():
            return f"{expr.tensor}({','.join(map(structure, expr.indices))})" if expr.indices else expr.tensor
        case Unary():
            return f"({expr.op}{structure(expr.operand)})"
        case Binary():
            return f"({structure(expr.left)}{expr.op}{structure(expr.right)})"
        case Select():
            return f"({structure(expr.condition)}?{structure(expr.then)}:{structure(expr.otherwise)})"
        case Call():
            return f"{expr.function}({','.join(map(structure, expr.arguments))})"
        case Cast():
            return f"{expr.dtype.value}({structure(expr.operand)})"
    assert_never(expr)


# --- conditions --------------------------------------------------------------------------------------------------------


def to_condition(expr: Expr, scope: Scope = EMPTY) -> Condition:
    """A `bool` expression as a condition on size expressions; what is no integer comparison stays `unknown`."""
    match expr:
        case Const():
            return Condition("true" if expr.value else "false")
        case Unary() if expr.op == "!":
            return to_condition(expr.operand, scope).negated()
        case Binary() if expr.op in LOGICAL:
            left = to_condition(expr.left, scope)
            right = to_condition(expr.right, scope.under(left if expr.op == "&&" else left.negated()))
            return conjunction((left, right)) if expr.op == "&&" else Condition("or", parts=(left, right))
        case Binary() if expr.op in COMPARISONS:
            return _comparison(expr, scope)
        case Cast() if expr.dtype is DType.BOOL and expr.operand.dtype.is_integer:
            return Condition("!=", (from_expr(expr.operand, scope),))
        case Cast() if expr.operand.dtype is DType.BOOL:
            return to_condition(expr.operand, scope)
        case _:
            return Condition("unknown", expr=expr, text=structure(expr))


def _comparison(expr: Binary, scope: Scope) -> Condition:
    operands = (expr.left, expr.right)
    # what is compared of `uint64`, as it is or as `int64`, may differ from the number, and so does what wraps around
    large = any(isinstance(node, Read) and node.dtype is DType.UINT64 for side in operands for node in walk(side))
    if large or not all(side.dtype.is_integer for side in operands) or any(map(may_wrap, operands)):
        return Condition("unknown", expr=expr, text=structure(expr))
    left, right = from_expr(expr.left, scope), from_expr(expr.right, scope)
    match expr.op:
        case "<":
            condition = Condition(">=", (right - left - 1,))
        case "<=":
            condition = Condition(">=", (right - left,))
        case ">":
            condition = Condition(">=", (left - right - 1,))
        case ">=":
            condition = Condition(">=", (left - right,))
        case _:
            condition = Condition(expr.op, (left - right,))
    if condition.arguments[0].is_constant:
        return Condition("true" if condition.evaluate({}) else "false")
    return condition


# --- back to program expressions -----------------------------------------------------------------------------------------


def to_expr(e: SizeExpr) -> Expr:
    """The program expression (`int64`) with the value of `e`.

    Sizes become `Size`, scalars a `Read` of rank 0 converted to `int64`, indices `IndexVar`, elements the original `Read`.
    """
    positive = [(mono, c) for mono, c in e.ordered() if c > 0]
    negative = [(mono, -c) for mono, c in e.ordered() if c < 0]
    total: Expr | None = None
    for mono, c in positive:
        term = _term(mono, c)
        total = term if total is None else Binary("+", total, term, DType.INT64)
    if total is None:
        total = int64(e.offset)
    elif e.offset > 0:
        total = Binary("+", total, int64(e.offset), DType.INT64)
    for mono, c in negative:
        total = Binary("-", total, _term(mono, c), DType.INT64)
    if positive and e.offset < 0:
        total = Binary("-", total, int64(-e.offset), DType.INT64)
    return total


def _term(mono: tuple[Atom, ...], c: int) -> Expr:
    factors = [_atom_expr(atom) for atom in mono]
    if c != 1:
        factors.insert(0, int64(c))
    return reduce(lambda a, b: Binary("*", a, b, DType.INT64), factors)


def _atom_expr(atom: Atom) -> Expr:
    match atom:
        case Name():
            if atom.kind == "index":
                return IndexVar(atom.name)
            if atom.kind == "scalar":
                return _wide(Read(atom.name, (), _scalar_type(atom)))
            return Size(atom.name)
        case FloorDiv():
            return Binary("//", to_expr(atom.numerator), to_expr(atom.divisor), DType.INT64)
        case Mod():
            return Binary("%", to_expr(atom.numerator), to_expr(atom.divisor), DType.INT64)
        case Extremum():
            kind = atom.kind
            return reduce(lambda a, b: Binary(kind, a, b, DType.INT64), [to_expr(a) for a in atom.arguments])
        case Product():
            return reduce(lambda a, b: Binary("*", a, b, DType.INT64), [to_expr(f) for f in atom.factors])
        case Datum():
            read = atom.expr
            if isinstance(read, Read):
                read = replace(read, indices=tuple(to_expr(i) for i in atom.index))
            return _wide(read)
        case Choice():
            condition = condition_expr(atom.condition)
            return Select(condition, to_expr(atom.then), to_expr(atom.otherwise), DType.INT64)
        case Opaque():
            return _wide(atom.expr)
    assert_never(atom)


def _wide(expr: Expr) -> Expr:
    return expr if expr.dtype is DType.INT64 else Cast(expr, DType.INT64)


def _scalar_type(name: Name) -> DType:
    for dtype in DType:
        if dtype.is_integer and dtype.limits == name.limits:
            return dtype
    return DType.INT64


def condition_expr(condition: Condition) -> Expr:
    """The `bool` expression of a condition."""
    match condition.op:
        case ">=" | "==" | "!=":
            return Binary(condition.op, to_expr(condition.arguments[0]), int64(0), DType.BOOL)
        case "and" | "or":
            op = "&&" if condition.op == "and" else "||"
            parts = [condition_expr(part) for part in condition.parts]
            return reduce(lambda a, b: Binary(op, a, b, DType.BOOL), parts)
        case "true" | "false":
            return Const(condition.op == "true", DType.BOOL)
        case _:
            if condition.expr is None:
                raise AssertionError("a condition on data without its expression")
            return condition.expr if condition.polarity else Unary("!", condition.expr, DType.BOOL)
