"""Integer expressions over sizes and indices while a `%%sac` function is specialised: kept simple as they are made.

A sum is held as integer-weighted atoms plus a constant, so equal shapes become equal expressions. Sizes are at least 0 here
(not 1, as in range inference), because a specialised program must be right for empty axes too.

Sums, differences and products (`add`, `sub`, `mul`) are exact: bounds are compared by the sign of their difference. What a program
writes goes through `fold` and wraps as its type does, so numbers never have more than 64 bits.

Worked example: `sub(add(N, 1), N)` is `Const(1)`; `minimum((N, add(N, 2)))` is `N`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tc_jupyter.diagnostics.work import spend

from .expr import (
    COMPARISONS,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    children,
    int64,
    rebuild,
    rewrite,
)
from .integers import index_names
from .typing import number_in, wrap

Linear: TypeAlias = tuple[dict[Expr, int], int]
Interval: TypeAlias = tuple[Expr, Expr]

ZERO, ONE = int64(0), int64(1)
STEPS_PER_NODE = 15  # to make it anew and to simplify it
REPLACED = 4  # `min` and `max` of a sum, until its sign is given up
STEPS_PER_SUM, STEPS_PER_TERM = 2, 2  # to take it apart, and to make it again
_I64 = DType.INT64


def value(expr: Expr) -> int | None:
    """The number, if `expr` is one."""
    return int(expr.value) if isinstance(expr, Const) and not isinstance(expr.value, float) else None


def linear(expr: Expr) -> Linear:
    """`expr` as integer-weighted atoms plus a constant."""
    terms: dict[Expr, int] = {}
    constant = _collect(expr, 1, terms)
    spend(STEPS_PER_SUM + STEPS_PER_TERM * len(terms))
    return terms, constant


def _collect(expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
    if isinstance(expr, Const):
        return factor * int(expr.value)
    if isinstance(expr, Binary) and expr.dtype is _I64:
        if expr.op in ("+", "-"):
            right = factor if expr.op == "+" else -factor
            return _collect(expr.left, factor, terms) + _collect(expr.right, right, terms)
        if expr.op == "*":
            for number, other in ((value(expr.left), expr.right), (value(expr.right), expr.left)):
                if number is not None:
                    return _collect(other, factor * number, terms)
    if isinstance(expr, Unary) and expr.op == "-" and expr.dtype is _I64:
        return _collect(expr.operand, -factor, terms)
    count = terms.get(expr, 0) + factor
    if count:
        terms[expr] = count
    else:
        terms.pop(expr, None)
    return 0


def build(form: Linear) -> Expr:
    """The expression of a sum: positive terms first, then negative ones, then the constant."""
    terms, constant = form
    result: Expr | None = None
    for positive in (True, False):
        for atom, count in terms.items():
            if (count > 0) == positive:
                result = _append(result, atom, count)
    if result is None:
        return int64(constant)
    if constant:
        sign, size = _sign_and_size(constant)
        return Binary(sign, result, int64(size), _I64)
    return result


def _append(result: Expr | None, atom: Expr, count: int) -> Expr:
    sign, size = _sign_and_size(count)
    term = atom if size == 1 else Binary("*", int64(size), atom, _I64)
    if result is None:
        return term if sign == "+" else Unary("-", term, _I64)
    return Binary(sign, result, term, _I64)


def _sign_and_size(number: int) -> tuple[str, int]:
    """`+` or `-`, and what is added or subtracted; the smallest number of the type has no opposite there."""
    return ("-", -number) if number < 0 and number != _I64.limits[0] else ("+", number)


def add(left: Expr, right: Expr) -> Expr:
    """`left + right`."""
    terms, constant = linear(left)
    return build((terms, constant + _collect(right, 1, terms)))


def sub(left: Expr, right: Expr) -> Expr:
    """`left - right`."""
    terms, constant = linear(left)
    return build((terms, constant + _collect(right, -1, terms)))


def mul(left: Expr, right: Expr) -> Expr:
    """`left * right`."""
    for number, other in ((value(left), right), (value(right), left)):
        if number is not None:
            terms: dict[Expr, int] = {}
            return build((terms, _collect(other, number, terms)))
    return Binary("*", left, right, _I64)


def _wrapped(expr: Expr) -> Expr:
    """A sum as the kernel computes it: its numbers modulo 2^64."""
    terms, constant = linear(expr)
    if all(_held(number) for number in (*terms.values(), constant)):
        return expr
    counts = {atom: wrap(count, _I64) for atom, count in terms.items()}
    return build(({atom: count for atom, count in counts.items() if count}, wrap(constant, _I64)))


def _held(number: int) -> bool:
    """Whether an index has enough bits for a number and for its opposite."""
    return -(1 << 63) < number < 1 << 63


def floordiv(left: Expr, right: Expr) -> Expr:
    """Floor division; by zero it gives 0."""
    divisor = value(right)
    if divisor is None or divisor == 0:
        return ZERO if divisor == 0 else Binary("//", left, right, _I64)
    terms, constant = linear(left)
    whole = {atom: count // divisor for atom, count in terms.items() if count % divisor == 0}
    rest = {atom: count for atom, count in terms.items() if count % divisor}
    if not rest:
        return build((whole, constant // divisor))
    inside = Binary("//", build((rest, constant % divisor)), right, _I64)
    whole[inside] = whole.get(inside, 0) + 1  # the quotient may be one of the terms already
    return build(({atom: count for atom, count in whole.items() if count}, constant // divisor))


def modulo(left: Expr, right: Expr) -> Expr:
    """Remainder with the sign of the divisor; by zero it gives 0."""
    a, b = value(left), value(right)
    if b == 0 or b == 1:
        return ZERO
    if a is not None and b is not None:
        return int64(a % b)
    return Binary("%", left, right, _I64)


def quotient(left: Expr, right: Expr, box: Mapping[str, Interval] | None = None) -> Expr:
    """The quotient cut off toward zero, of integers of one type, in terms of floor division; by zero it gives 0.

    Exact for all operands of the type, and monotone in `left` for a positive divisor, so that `ends` knows its ends.
    """
    divisor = value(right)
    if _never_negative(left, box) and _never_negative(right, box):
        return _plain("//", left, right)
    if divisor is not None and divisor > 0:  # max(a, 0) // b + ceil(min(a, 0) / b)
        below = _plain("//", _plain("+", _clipped("min", left), _number(divisor - 1, left)), right)
        return _plain("+", _plain("//", _clipped("max", left), right), below)
    if divisor is not None and 0 < -divisor <= left.dtype.limits[1]:
        return _minus(quotient(left, _number(-divisor, left), box))
    low, high, by = _nonpositive(left, right, box)
    positive = _plain("-", _plain("//", high, by), _plain("//", low, by))
    if _never_negative(right, box):
        return positive
    sign = _plain("max", _plain("min", right, _number(1, left)), _number(-1, left))
    return _plain("*", sign, positive)


def remainder(left: Expr, right: Expr, box: Mapping[str, Interval] | None = None) -> Expr:
    """The remainder that belongs to `quotient`: it has the sign of `left`; by zero it gives 0."""
    divisor = value(right)
    if _never_negative(left, box) and _never_negative(right, box):
        return _plain("%", left, right)
    if divisor is not None and divisor > 0:
        below = _plain("%", _plain("+", _clipped("min", left), _number(divisor - 1, left)), right)
        below = _plain("-", below, _number(divisor - 1, left))
        return _plain("+", _plain("%", _clipped("max", left), right), below)
    if divisor is not None and 0 < -divisor <= left.dtype.limits[1]:
        return remainder(left, _number(-divisor, left), box)
    low, high, by = _nonpositive(left, right, box)
    return _plain("-", _plain("%", low, by), _plain("%", high, by))


def _nonpositive(left: Expr, right: Expr, box: Mapping[str, Interval] | None) -> tuple[Expr, Expr, Expr]:
    """`min(left, 0)`, `-max(left, 0)` and `-|right|`: nothing positive, as `-x` exists for every positive `x` only."""
    low, high = _clipped("min", left), _minus(_clipped("max", left))
    by = _minus(right) if _never_negative(right, box) else _plain("min", right, _minus(right))
    return low, high, by


def _never_negative(expr: Expr, box: Mapping[str, Interval] | None) -> bool:
    """Whether no value of an integer expression is negative, overflow of its type included."""
    if expr.dtype is _I64:
        return is_nonnegative(expr, box)
    number = value(expr)
    if number is not None or not expr.dtype.is_signed:
        return number is None or number >= 0
    if isinstance(expr, Binary) and expr.op in ("max", "%"):
        return (value(expr.right) or 0) > 0 or (expr.op == "max" and value(expr.right) == 0)
    return False


def _number(number: int, like: Expr) -> Const:
    return Const(number, like.dtype)


def _plain(op: str, left: Expr, right: Expr) -> Expr:
    return fold(Binary(op, left, right, left.dtype))


def _clipped(op: str, expr: Expr) -> Expr:
    """`min(expr, 0)` or `max(expr, 0)`."""
    return _plain(op, expr, _number(0, expr))


def _minus(expr: Expr) -> Expr:
    return fold(Binary("-", _number(0, expr), expr, expr.dtype))


def minimum(values: Iterable[Expr]) -> Expr:
    """The smallest; arguments that another one never exceeds are dropped."""
    return _extreme("min", values)


def maximum(values: Iterable[Expr]) -> Expr:
    """The largest; arguments that never exceed another one are dropped."""
    return _extreme("max", values)


def _extreme(op: str, values: Iterable[Expr]) -> Expr:
    kept: list[Expr] = []
    for new in _flat(op, values):
        if any(_dominates(op, old, new) for old in kept):
            continue
        kept = [old for old in kept if not _dominates(op, new, old)]
        kept.append(new)
    kept.sort(key=_order)
    result = kept[0]
    for other in kept[1:]:
        result = Binary(op, result, other, _I64)
    return result


def _order(expr: Expr) -> tuple[bool, str]:
    """Sorts the arguments of `min` and `max`, so that equal ones are one expression: numbers last, the others by their words."""
    if isinstance(expr, Const):
        return True, ""
    words: list[str] = []
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        match node:
            case Const():
                words.append(str(node.value))
            case Size() | IndexVar():
                words.append(node.name)
            case Read():
                words.append(node.tensor)
            case Binary() | Unary():
                words.append(node.op)
            case Call() | Select() | Cast():
                words.append(type(node).__name__)
        stack.extend(reversed(children(node)))
    return False, " ".join(words)


def _flat(op: str, values: Iterable[Expr]) -> list[Expr]:
    flat: list[Expr] = []
    for item in values:
        if isinstance(item, Binary) and item.op == op and item.dtype is _I64:
            flat += _flat(op, (item.left, item.right))
        else:
            flat.append(item)
    return flat


def _dominates(op: str, better: Expr, worse: Expr) -> bool:
    """Whether `min`/`max` of both is always `better`."""
    difference = sub(worse, better) if op == "min" else sub(better, worse)
    return is_nonnegative(difference)


def absolute(expr: Expr, box: Mapping[str, Interval] | None = None) -> Expr:
    """`|expr|`, for indices in `box`."""
    number = value(expr)
    if number is not None:
        return int64(wrap(abs(number), _I64))
    if is_nonnegative(sub(ZERO, expr), box):
        return sub(ZERO, expr)
    return expr if is_nonnegative(expr, box) else maximum((expr, sub(ZERO, expr)))


def is_nonnegative(expr: Expr, box: Mapping[str, Interval] | None = None) -> bool:
    """Whether `expr >= 0` for all sizes (at least 0) and all indices in `box` (upper end excluded); `False`: not known.

    `min` and `max` inside the sum are replaced by their arguments, at most `REPLACED` times.
    """
    return _nonnegative(linear(expr), _Asked(box or {}, {}, {}), REPLACED)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question about a sign, and what is known of the parts: the ends of cut boxes have the same parts many times."""

    box: Mapping[str, Interval]
    exprs: dict[Expr, bool]
    atoms: dict[Expr, bool]

    def expr(self, expr: Expr) -> bool:
        """Whether `expr` is never negative, with one `min` or `max` of a sum replaced."""
        if expr not in self.exprs:
            self.exprs[expr] = _nonnegative(linear(expr), self, 1)
        return self.exprs[expr]

    def atom(self, atom: Expr) -> bool:
        """Whether what is no sum is never negative."""
        if atom not in self.atoms:
            self.atoms[atom] = _always_nonnegative(atom, self)
        return self.atoms[atom]


def _nonnegative(form: Linear, asked: _Asked, depth: int) -> bool:
    terms, constant = form
    for atom, count in terms.items():
        replaced = _ends(atom, count, asked)
        if replaced is None:
            continue
        if depth == 0:
            return False
        rest = {a: c for a, c in terms.items() if a is not atom and a != atom}
        results = (_nonnegative(_plus(rest, constant, end, count), asked, depth - 1) for end in replaced[1])
        if (all if replaced[0] else any)(results):
            return True
        if not asked.atom(atom) or count < 0:
            return False
    return constant >= 0 and all(count > 0 and asked.atom(atom) for atom, count in terms.items())


def _plus(terms: dict[Expr, int], constant: int, expr: Expr, count: int) -> Linear:
    new = dict(terms)
    return new, constant + _collect(expr, count, new)


def _ends(atom: Expr, count: int, asked: _Asked) -> tuple[bool, tuple[Expr, ...]] | None:
    """Lower bounds of `count*atom`: (all must do, or any) and the replacements of the atom."""
    if isinstance(atom, IndexVar) and atom.name in asked.box:
        lower, upper = asked.box[atom.name]
        return True, (lower if count > 0 else sub(upper, ONE),)
    if isinstance(atom, Binary) and atom.op in ("min", "max"):
        every = (atom.op == "min") == (count > 0)
        return every, (atom.left, atom.right)
    if isinstance(atom, Select):
        return True, (atom.then, atom.otherwise)
    if isinstance(atom, Binary) and atom.op == "%" and count < 0 and (value(atom.right) or 0) > 0:
        return True, (sub(atom.right, ONE),)
    divisor = value(atom.right) if isinstance(atom, Binary) and atom.op == "//" else None
    if isinstance(atom, Binary) and divisor is not None and divisor > 0 and count < 0 and asked.expr(atom.left):
        return False, (atom.left,)
    return None


def _always_nonnegative(atom: Expr, asked: _Asked) -> bool:
    match atom:
        case Size():
            return True
        case IndexVar():
            return atom.name in asked.box and is_nonnegative(asked.box[atom.name][0])
        case Binary():
            both = (asked.expr(atom.left), asked.expr(atom.right))
            if atom.op == "max":
                return any(both)
            return all(both) if atom.op in ("min", "*", "//") else atom.op == "%" and both[1]
        case Select():
            return asked.expr(atom.then) and asked.expr(atom.otherwise)
        case Const() | Unary() | Read() | Call() | Cast():
            return False


def is_zero(expr: Expr) -> bool:
    """Whether `expr` is the number 0."""
    return value(expr) == 0


def same(left: Expr, right: Expr) -> bool:
    """Whether both are equal for all sizes, by their form."""
    return left == right or is_zero(sub(left, right))


def ends(expr: Expr, box: Mapping[str, Interval]) -> tuple[Expr, Expr] | None:
    """Smallest and largest value (included) of `expr` over `box`, or `None` if it is not known.

    Exact for sums in which no index occurs inside another function.
    """
    low, high = ZERO, ZERO
    terms, constant = linear(expr)
    for atom, count in terms.items():
        pair = _atom_ends(atom, box)
        if pair is None:
            return None
        first, last = pair if count > 0 else (pair[1], pair[0])
        low, high = add(low, mul(int64(count), first)), add(high, mul(int64(count), last))
    return add(low, int64(constant)), add(high, int64(constant))


def _atom_ends(atom: Expr, box: Mapping[str, Interval]) -> tuple[Expr, Expr] | None:
    if isinstance(atom, IndexVar):
        if atom.name not in box:
            return None
        return box[atom.name][0], sub(box[atom.name][1], ONE)
    if not index_names(atom):
        return atom, atom
    if isinstance(atom, Binary) and atom.op in ("min", "max", "//"):
        left, right = ends(atom.left, box), ends(atom.right, box)
        if left is None or right is None:
            return None
        if atom.op == "//":
            if not is_nonnegative(sub(right[0], ONE)):
                return None
            # it grows with the dividend, and grows or falls with the divisor
            least, most = ([floordiv(end, divisor) for divisor in dict.fromkeys(right)] for end in left)
            return minimum(least), maximum(most)
        pick = minimum if atom.op == "min" else maximum
        return pick((left[0], right[0])), pick((left[1], right[1]))
    if isinstance(atom, Select):
        then, otherwise = ends(atom.then, box), ends(atom.otherwise, box)
        if then is None or otherwise is None:
            return None
        return minimum((then[0], otherwise[0])), maximum((then[1], otherwise[1]))
    return None


def substitute(expr: Expr, mapping: Mapping[str, Expr]) -> Expr:
    """Replace indices by expressions and simplify what becomes known."""
    if not mapping:
        return expr

    def visit(node: Expr) -> Expr:
        if isinstance(node, IndexVar):
            return mapping.get(node.name, node)
        old = children(node)
        if not old:
            return node
        spend(STEPS_PER_NODE)
        found: list[Expr] = []
        for child in old:  # no comprehension: it would be a second level of recursion
            found.append(visit(child))
        new = tuple(found)
        if all(a is b for a, b in zip(old, new, strict=True)):
            return node
        return fold(rebuild(node, new))

    return visit(expr)


def simplified(expr: Expr) -> Expr:
    """An expression with every node simplified."""
    return rewrite(expr, fold)


def fold(node: Expr) -> Expr:
    """One node, simplified where its operands allow; the operands are simple already."""
    match node:
        case Binary():
            return _fold_binary(node)
        case Unary(op="-", dtype=DType.INT64):
            return _wrapped(sub(ZERO, node.operand))
        case Unary(op="!") if isinstance(node.operand, Const):
            return Const(not node.operand.value, DType.BOOL)
        case Select() if isinstance(node.condition, Const):
            return node.then if node.condition.value else node.otherwise
        case Select() if node.then == node.otherwise:
            return node.then
        case Cast() if isinstance(node.operand, Const):
            return convert_const(node.operand, node.dtype)
        case Cast() if node.operand.dtype is node.dtype:
            return node.operand
        case _:
            return node


def _fold_binary(node: Binary) -> Expr:
    left, right = node.left, node.right
    if node.op in ("&&", "||"):
        for first, second in ((left, right), (right, left)):
            if isinstance(first, Const):
                return second if bool(first.value) == (node.op == "&&") else Const(node.op == "||", DType.BOOL)
        return node
    if node.op in COMPARISONS and (left.dtype is _I64 or _are_whole(left, right)):
        return _fold_comparison(node)
    if node.dtype is not _I64:
        return _fold_numbers(node)
    operations = {"+": add, "-": sub, "*": mul, "//": floordiv, "%": modulo}
    if node.op in operations:
        return _wrapped(operations[node.op](left, right))
    return _extreme(node.op, (left, right)) if node.op in ("min", "max") else node


def _are_whole(left: Expr, right: Expr) -> bool:
    """Whether both are numbers of an integer type or truth values."""
    return value(left) is not None and value(right) is not None and not left.dtype.is_float


_WHOLE: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
}


def _fold_comparison(node: Binary) -> Expr:
    difference = sub(node.left, node.right)
    number = value(difference)
    if number is not None:
        results = {
            "<": number < 0, "<=": number <= 0, ">": number > 0, ">=": number >= 0, "==": number == 0, "!=": number != 0,
        }  # fmt: skip
        return Const(results[node.op], DType.BOOL)
    if node.op in (">=", "<"):
        if is_nonnegative(difference):
            return Const(node.op == ">=", DType.BOOL)
    elif node.op in ("<=", ">") and is_nonnegative(sub(node.right, node.left)):
        return Const(node.op == "<=", DType.BOOL)
    return node


def _fold_numbers(node: Binary) -> Expr:
    """Two numbers of a narrower integer type, where the result needs no wrapping: in an index it is exact (`to_index`)."""
    a, b = value(node.left), value(node.right)
    if a is None or b is None or not node.dtype.is_integer or node.op not in _WHOLE:
        return node
    number = _WHOLE[node.op](a, b)
    low, high = node.dtype.limits
    return Const(number, node.dtype) if low <= number <= high else node


def convert_const(number: Const, dtype: DType) -> Const:
    """The number in another type."""
    return Const(number_in(number.value, dtype), dtype, number.span)


def constant(expr: Expr) -> int | float | bool | None:
    """The value of an expression of numbers alone, floats included, as the kernel computes it; `None` if it is not known."""
    match expr:
        case Const():
            return number_in(expr.value, expr.dtype)
        case Unary():
            operand = constant(expr.operand)
            return None if operand is None else _opposite(expr, operand)
        case Cast():
            operand = constant(expr.operand)
            return None if operand is None else number_in(operand, expr.dtype)
        case Select():
            condition = constant(expr.condition)
            return None if condition is None else constant(expr.then if condition else expr.otherwise)
        case Binary():
            left = constant(expr.left)
            right = None if left is None else constant(expr.right)
            return None if left is None or right is None else _combined(expr, left, right)
        case Size() | IndexVar() | Read() | Call():
            return None


def _opposite(expr: Unary, operand: float | bool) -> int | float | bool:
    """`-x` or `!x`."""
    return number_in(-operand, expr.dtype) if expr.op == "-" else not operand


def _combined(expr: Binary, left: float | bool, right: float | bool) -> int | float | bool | None:
    """An operator applied to the values of its operands, in its type; `None` for what floats are not certain to give."""
    if expr.op in _COMPARED:
        return _COMPARED[expr.op](left, right)
    if expr.op in ("&&", "||"):
        return bool((left and right) if expr.op == "&&" else (left or right))
    if expr.dtype.is_float:
        if expr.op == "/" and right:
            return number_in(left / right, expr.dtype)
        plain = expr.op in ("+", "-", "*") and expr.dtype in (DType.FLOAT32, DType.FLOAT64)
        return number_in(_WHOLE[expr.op](left, right), expr.dtype) if plain else None
    return number_in(_WHOLE[expr.op](int(left), int(right)), expr.dtype) if expr.op in _WHOLE else None


_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def is_decidable(condition: Expr, arguments: Collection[str]) -> bool:
    """Whether `evaluate` knows the value before a function runs: only sizes and integer or `bool` scalar arguments occur."""
    todo = [condition]
    while todo:
        node = todo.pop()
        match node:
            case Size() | Const():
                known = True
            case Read():
                known = not node.indices and node.tensor in arguments
            case Cast() | Unary() | Select():
                known = True
            case Binary():
                known = node.op in _DECIDED
            case Call() | IndexVar():
                known = False
        if not known or node.dtype.is_float:
            return False
        todo.extend(children(node))
    return True


_DECIDED = COMPARISONS | {"&&", "||", "+", "-", "*", "//", "%", "min", "max"}


def evaluate(expr: Expr, sizes: Mapping[str, int], scalars: Mapping[str, int | float | bool]) -> int:
    """The value of an integer or `bool` expression over sizes and scalar arguments, as the kernel computes it.

    Raises:
        KeyError: a size or scalar is missing, or the expression holds an index or an element of an array.
    """
    match expr:
        case Const():
            return int(expr.value)
        case Size():
            return sizes[expr.name]
        case Read():
            if expr.indices:
                raise KeyError(expr.tensor)
            return int(scalars[expr.tensor])
        case Cast():
            return int(number_in(evaluate(expr.operand, sizes, scalars), expr.dtype))
        case Unary():
            return int(_opposite(expr, evaluate(expr.operand, sizes, scalars)))
        case Select():
            chosen = expr.then if evaluate(expr.condition, sizes, scalars) else expr.otherwise
            return evaluate(chosen, sizes, scalars)
        case Binary():
            return _evaluate_binary(expr, sizes, scalars)
        case Call() if expr.function == "abs":
            return wrap(abs(evaluate(expr.arguments[0], sizes, scalars)), expr.dtype)
        case IndexVar() | Call():
            raise KeyError(str(expr))


def _evaluate_binary(expr: Binary, sizes: Mapping[str, int], scalars: Mapping[str, int | float | bool]) -> int:
    """As `evaluate`; what `&&` and `||` leave out may be unknown."""
    left = evaluate(expr.left, sizes, scalars)
    if expr.op in ("&&", "||") and bool(left) == (expr.op == "||"):
        return int(expr.op == "||")
    found = _combined(expr, left, evaluate(expr.right, sizes, scalars))
    if found is None:
        raise KeyError(str(expr))
    return int(found)
