"""Integer expressions over sizes, scalars and indices, in canonical form.

A `SizeExpr` is an integer-weighted sum of monomials plus an integer; a monomial is a product of atoms. Equal expressions
compare equal however they were built: `size("N") * 2 - size("N") == size("N")`. Values are Python integers, hence exact.

Worked example: `floor_div(size("I") - 1, 2) + 1` is stored as `floor((I + 1)/2)`, and `maximum(20 - size("N"), 0)` equals
`20 - minimum(size("N"), 20)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias, assert_never

from tc_jupyter.diagnostics.work import WORK, TooMuchWork, bounded, uncounted
from tc_jupyter.program import DType, Expr

Limits: TypeAlias = tuple[int | None, int | None]
Key: TypeAlias = tuple[Any, ...]

UNLIMITED: Limits = (None, None)
DEPTH = 6  # nested relaxations tried by `nonnegative`; proofs needing more are left to the set library
MOST_STEPS = 10_000  # of one proof: sums of minima of many arguments have as many cases as there are combinations
MAX_DEGREE = 8  # polynomials of a higher degree are left to the set library, to which a product is one unknown
MAX_TERMS = 200  # a product of sums with more terms stays factored: one unknown, too
MAX_ALTERNATIVES = 32  # a condition with more alternatives counts as one that cannot be expressed


class _Keyed:
    """Equality and hash by `key`, so that the display position of a name does not take part.

    Attributes:
        weight, depth: number of its parts, as a tree, and of levels: its key, hash and text take so much to make.
        shown: what `display` made of it, once it has.
    """

    __slots__ = ("depth", "shown", "weight")
    key: Key
    hash: int
    weight: int
    depth: int
    shown: str

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Keyed) and self.hash == other.hash and self.key == other.key)

    def __hash__(self) -> int:
        return self.hash


def _finish(atom: Any, key: Key, limits: Limits, parts: tuple[SizeExpr, ...] = ()) -> None:
    """Set the derived fields of a frozen atom; `parts` are the expressions in its key."""
    weight, depth = 1, 0
    for part in parts:
        weight += part.weight
        depth = max(depth, part.depth)
    bounded(weight, depth + 1)
    object.__setattr__(atom, "weight", weight)
    object.__setattr__(atom, "depth", depth + 1)
    object.__setattr__(atom, "key", key)
    object.__setattr__(atom, "hash", hash(key))
    object.__setattr__(atom, "limits", limits)


@dataclass(frozen=True, slots=True, eq=False)
class Name(_Keyed):
    """A named integer: a size (>= 1), an integer scalar, an index, a symbol, or an extreme value of an index tensor.

    `position` is the place in the signature or statement; it orders the text and nothing else.
    """

    kind: str
    name: str
    limits: Limits
    position: int = 1 << 30
    key: Key = field(init=False)
    hash: int = field(init=False)

    def __post_init__(self) -> None:
        _finish(self, (0, self.kind, self.name), self.limits)


@dataclass(frozen=True, slots=True, eq=False)
class FloorDiv(_Keyed):
    """`floor(numerator / divisor)`."""

    numerator: SizeExpr
    divisor: SizeExpr
    key: Key = field(init=False)
    hash: int = field(init=False)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        limits = _floor_limits(self.numerator.limits, self.divisor.limits)
        _finish(self, (1, self.numerator.key, self.divisor.key), limits, (self.numerator, self.divisor))


@dataclass(frozen=True, slots=True, eq=False)
class Mod(_Keyed):
    """`numerator - divisor * floor(numerator / divisor)`."""

    numerator: SizeExpr
    divisor: SizeExpr
    key: Key = field(init=False)
    hash: int = field(init=False)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        low, high = self.divisor.limits
        limits: Limits = UNLIMITED
        if low is not None and low >= 1:
            limits = (0, None if high is None else high - 1)
        _finish(self, (2, self.numerator.key, self.divisor.key), limits, (self.numerator, self.divisor))


@dataclass(frozen=True, slots=True, eq=False)
class Extremum(_Keyed):
    """`min` or `max` of two or more arguments, none of which is known to be needless."""

    kind: str
    arguments: tuple[SizeExpr, ...]
    key: Key = field(init=False)
    hash: int = field(init=False)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        lows = [argument.limits[0] for argument in self.arguments]
        highs = [argument.limits[1] for argument in self.arguments]
        if self.kind == "min":
            limits = (_all_known(min, lows), _any_known(min, highs))
        else:
            limits = (_any_known(max, lows), _all_known(max, highs))
        _finish(self, (3, self.kind, *(argument.key for argument in self.arguments)), limits, self.arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Product(_Keyed):
    """A product that is kept factored because expanding it would hide what it means: `(N - 1)*(N - 1)`."""

    factors: tuple[SizeExpr, ...]
    key: Key = field(init=False)
    hash: int = field(init=False)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        limits: Limits = (1, 1)
        for factor in self.factors:
            limits = _times(limits, factor.limits)
        _finish(self, (4, *(factor.key for factor in self.factors)), limits, self.factors)


@dataclass(frozen=True, slots=True, eq=False)
class Datum(_Keyed):
    """An element of a tensor used as an index; a floating one is truncated toward zero.

    Attributes:
        brackets: what stands around `index` in the language of the text; equal elements are equal whatever stands there.
    """

    tensor: str
    index: tuple[SizeExpr, ...]
    dtype: DType
    expr: Expr
    brackets: str = "()"
    key: Key = field(init=False)
    hash: int = field(init=False)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        limits = UNLIMITED if self.dtype.is_float else self.dtype.limits
        if self.dtype is DType.UINT64:  # beyond 2^63 - 1 it is negative where subscripts are computed, in `int64`
            limits = DType.INT64.limits[0], self.dtype.limits[1]
        _finish(self, (5, self.tensor, *(index.key for index in self.index)), limits, self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Choice(_Keyed):
    """`then if condition else otherwise`."""

    condition: Condition
    then: SizeExpr
    otherwise: SizeExpr
    key: Key = field(init=False)
    hash: int = field(init=False)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        with uncounted():  # no more than the parts that were made before
            then = _limits_where(self.condition, True, self.then)
            otherwise = _limits_where(self.condition, False, self.otherwise)
        low, high = _all_known(min, [then[0], otherwise[0]]), _all_known(max, [then[1], otherwise[1]])
        parts = (*self.condition.exprs(), self.then, self.otherwise)
        _finish(self, (6, self.condition.key, self.then.key, self.otherwise.key), (low, high), parts)


@dataclass(frozen=True, slots=True, eq=False)
class Opaque(_Keyed):
    """An integer value that only its limits are known of: a narrow cast, a function of data."""

    expr: Expr
    text: str
    names: frozenset[str]
    indices: frozenset[str]
    limits: Limits
    key: Key = field(init=False)
    hash: int = field(init=False)

    def __post_init__(self) -> None:
        _finish(self, (7, self.text), self.limits)


Atom: TypeAlias = Name | FloorDiv | Mod | Extremum | Product | Datum | Choice | Opaque
Monomial: TypeAlias = tuple[Atom, ...]


class Condition(_Keyed):
    """A condition on size expressions.

    `op` is `>=` or `==` or `!=` (one argument, compared with 0), `and`, `or`, `true`, `false`, or `unknown` (a condition on
    data or floating values, kept as `expr` with its polarity).
    """

    __slots__ = ("arguments", "expr", "hash", "key", "op", "parts", "polarity")

    def __init__(
        self,
        op: str,
        arguments: tuple[SizeExpr, ...] = (),
        parts: tuple[Condition, ...] = (),
        expr: Expr | None = None,
        polarity: bool = True,
        text: str = "",
    ) -> None:
        self.op = op
        self.arguments = arguments
        self.parts = parts
        self.expr = expr
        self.polarity = polarity
        self.weight = 1 + sum(a.weight for a in arguments) + sum(p.weight for p in parts)
        self.depth = 1 + max((each.depth for each in (*arguments, *parts)), default=0)
        bounded(self.weight, 0)
        self.key = (op, tuple(a.key for a in arguments), tuple(p.key for p in parts), polarity, text)
        self.hash = hash(self.key)

    def negated(self) -> Condition:
        """The opposite condition."""
        match self.op:
            case ">=":
                return Condition(">=", (-self.arguments[0] - 1,))
            case "==":
                return Condition("!=", self.arguments)
            case "!=":
                return Condition("==", self.arguments)
            case "and" | "or":
                parts = tuple(part.negated() for part in self.parts)
                return Condition("or" if self.op == "and" else "and", parts=parts)
            case "true":
                return Condition("false")
            case "false":
                return Condition("true")
            case _:
                return Condition("unknown", expr=self.expr, polarity=not self.polarity, text=self.key[4])

    def alternatives(self) -> tuple[tuple[tuple[SizeExpr, ...], ...], bool]:
        """An OR of ANDs of `g >= 0`, and whether it says everything (no part of the condition was left out)."""
        match self.op:
            case ">=":
                return ((self.arguments[0],),), True
            case "==":
                return ((self.arguments[0], -self.arguments[0]),), True
            case "!=":
                return ((self.arguments[0] - 1,), (-self.arguments[0] - 1,)), True
            case "true":
                return ((),), True
            case "false":
                return (), True
            case "or":
                sides = [part.alternatives() for part in self.parts]
                joined = tuple(alternative for side, _ in sides for alternative in side)
                if len(joined) > MAX_ALTERNATIVES:
                    return ((),), False
                return joined, all(complete for _, complete in sides)
            case "and":
                result: tuple[tuple[SizeExpr, ...], ...] = ((),)
                exact = True
                for part in self.parts:
                    side, complete = part.alternatives()
                    exact = exact and complete
                    if len(result) * len(side) > MAX_ALTERNATIVES:
                        exact = False
                        continue
                    result = tuple(left + right for left in result for right in side)
                return result, exact
            case _:
                return ((),), False

    def evaluate(self, values: Mapping[str, int]) -> bool:
        """The truth for given numbers; raises `KeyError` for a condition on data."""
        match self.op:
            case ">=":
                return self.arguments[0].evaluate(values) >= 0
            case "==":
                return self.arguments[0].evaluate(values) == 0
            case "!=":
                return self.arguments[0].evaluate(values) != 0
            case "and":
                return all(part.evaluate(values) for part in self.parts)
            case "or":
                return any(part.evaluate(values) for part in self.parts)
            case "true" | "false":
                return self.op == "true"
            case _:
                raise KeyError(self.key[4])

    def exprs(self) -> Iterator[SizeExpr]:
        """All size expressions inside."""
        yield from self.arguments
        for part in self.parts:
            yield from part.exprs()

    @property
    def is_on_sizes(self) -> bool:
        """Whether sizes and integer scalars alone decide it."""
        return self.is_known_at_call and not any(e.indices for e in self.exprs())

    @property
    def is_known_at_call(self) -> bool:
        """Whether sizes, integer scalars and indices decide it, by arithmetic that does not wrap around."""
        parts, arguments = self.parts, self.arguments
        return self.op != "unknown" and all(p.is_known_at_call for p in parts) and all(map(is_known_at_call, arguments))

    def substitute(self, values: Mapping[str, SizeExpr]) -> Condition:
        """The condition with other expressions in place of names."""
        return self.changed(lambda part: part.substitute(values))

    def changed(self, change: Callable[[SizeExpr], SizeExpr]) -> Condition:
        """The condition after a change of the expressions inside."""
        arguments = tuple(map(change, self.arguments))
        parts = tuple(part.changed(change) for part in self.parts)
        return Condition(self.op, arguments, parts, self.expr, self.polarity, self.key[4])


class SizeExpr:
    """An integer-weighted sum of monomials plus `offset`; immutable, equal by value.

    A plain class and not a dataclass, because thousands are made per cell and construction dominates.
    """

    __slots__ = ("_hash", "_key", "_limits", "_measure", "_names", "offset", "terms", "text")

    def __init__(self, terms: dict[Monomial, int], offset: int) -> None:
        self.terms = terms
        self.offset = offset
        self._hash: int | None = None
        self._key: Key | None = None
        self._limits: Limits | None = None
        self._names: tuple[frozenset[str], frozenset[str]] | None = None
        self._measure: tuple[int, int] | None = None
        WORK.left -= 1 + len(terms)
        if WORK.left < 0:
            raise TooMuchWork("the analysis would take too long")
        self.text: str | None = None  # what `display.to_python` made of it

    # --- value -------------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, int):
            return not self.terms and self.offset == other
        return isinstance(other, SizeExpr) and self.offset == other.offset and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), self.offset)) if self.terms else hash(self.offset)
        return self._hash

    def __repr__(self) -> str:
        parts = [f"{c}*{'*'.join(map(_debug, mono))}" for mono, c in self.ordered()]
        return "SizeExpr(" + " + ".join([*parts, str(self.offset)]) + ")"

    @property
    def weight(self) -> int:
        """Number of its parts, as a tree: names, numbers and operators."""
        return self._measured()[0]

    @property
    def depth(self) -> int:
        """Levels of atoms inside atoms."""
        return self._measured()[1]

    def _measured(self) -> tuple[int, int]:
        if self._measure is None:
            weight, depth = 1, 0
            for mono in self.terms:
                weight += 1
                for atom in mono:
                    weight += atom.weight
                    depth = max(depth, atom.depth)
            self._measure = (weight, depth)
        return self._measure

    @property
    def key(self) -> Key:
        """A nested tuple that orders expressions; equal exactly for equal expressions."""
        if self._key is None:
            bounded(self.weight, self.depth)
            items = sorted((tuple(atom.key for atom in mono), c) for mono, c in self.terms.items())
            self._key = (tuple(items), self.offset)
        return self._key

    def ordered(self) -> list[tuple[Monomial, int]]:
        """Terms in canonical order; the first one is the leading term."""
        return sorted(self.terms.items(), key=lambda item: tuple(atom.key for atom in item[0]))

    @property
    def is_constant(self) -> bool:
        """Whether no name occurs."""
        return not self.terms

    @property
    def constant(self) -> int:
        """The value of a constant; raises `ValueError` for another expression."""
        if self.terms:
            raise ValueError(f"{self!r} is not constant")
        return self.offset

    @property
    def limits(self) -> Limits:
        """Smallest and largest value while sizes are at least 1 and scalars lie in their types; `None` is unlimited."""
        if self._limits is None:
            self._limits = _limits(self.terms, self.offset)
        return self._limits

    @property
    def names(self) -> frozenset[str]:
        """Sizes, scalars, indices and extreme values (`min(C)`) that the value depends on."""
        return self._both_names()[0]

    @property
    def indices(self) -> frozenset[str]:
        """Index variables that the value depends on, also through elements of tensors."""
        return self._both_names()[1]

    def _both_names(self) -> tuple[frozenset[str], frozenset[str]]:
        if self._names is None:
            names: set[str] = set()
            indices: set[str] = set()
            for mono in self.terms:
                for atom in mono:
                    if isinstance(atom, Name):
                        names.add(atom.name)
                        if atom.kind == "index":
                            indices.add(atom.name)
                    elif isinstance(atom, Opaque):
                        names |= atom.names
                        indices |= atom.indices
                    else:
                        for part in atom_parts(atom):
                            names |= part.names
                            indices |= part.indices
            self._names = (frozenset(names), frozenset(indices))
        return self._names

    def atoms(self) -> Iterator[Atom]:
        """All atoms, nested ones included, each before those inside."""
        left = [atom for mono in reversed(self.terms) for atom in reversed(mono)]
        while left:
            atom = left.pop()
            yield atom
            for part in reversed(atom_parts(atom)):
                left.extend(inner for mono in reversed(part.terms) for inner in reversed(mono))

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def __add__(self, other: SizeExpr | int) -> SizeExpr:
        if isinstance(other, int):
            return SizeExpr(self.terms, self.offset + other) if other else self
        if not other.terms:
            return SizeExpr(self.terms, self.offset + other.offset) if other.offset else self
        if not self.terms:
            return SizeExpr(other.terms, self.offset + other.offset)
        terms = dict(self.terms)
        for mono, c in other.terms.items():
            total = terms.get(mono, 0) + c
            if total:
                terms[mono] = total
            else:
                del terms[mono]
        return SizeExpr(terms, self.offset + other.offset)

    __radd__ = __add__

    def __neg__(self) -> SizeExpr:
        return SizeExpr({mono: -c for mono, c in self.terms.items()}, -self.offset)

    def __sub__(self, other: SizeExpr | int) -> SizeExpr:
        if isinstance(other, int) or not other.terms:
            return self + -(other if isinstance(other, int) else other.offset)
        terms = dict(self.terms)
        for mono, c in other.terms.items():
            total = terms.get(mono, 0) - c
            if total:
                terms[mono] = total
            else:
                del terms[mono]
        return SizeExpr(terms, self.offset - other.offset)

    def __rsub__(self, other: SizeExpr | int) -> SizeExpr:
        return (-self) + other

    def __mul__(self, other: SizeExpr | int) -> SizeExpr:
        if isinstance(other, int):
            return self._scaled(other)
        if not other.terms:
            return self._scaled(other.offset)
        if not self.terms:
            return other._scaled(self.offset)
        bounded(self.weight * (len(other.terms) + 1) + other.weight * (len(self.terms) + 1), 0)
        terms: dict[Monomial, int] = {}
        for left, a in [*self.terms.items(), ((), self.offset)]:
            for right, b in [*other.terms.items(), ((), other.offset)]:
                if a * b == 0 or not (left or right):
                    continue
                mono = _joined(left, right)
                terms[mono] = terms.get(mono, 0) + a * b
        return SizeExpr({mono: c for mono, c in terms.items() if c}, self.offset * other.offset)

    __rmul__ = __mul__

    def _scaled(self, factor: int) -> SizeExpr:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        bounded((factor.bit_length() + self.offset.bit_length()) >> 6, 0)
        return SizeExpr({mono: c * factor for mono, c in self.terms.items()}, self.offset * factor)

    def __floordiv__(self, other: SizeExpr | int) -> SizeExpr:
        return floor_div(self, other)

    def __mod__(self, other: SizeExpr | int) -> SizeExpr:
        return mod(self, other)

    # --- use ---------------------------------------------------------------------------------------------------------

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value for given numbers, by name; an extreme value is named `min(C)` or `max(C)`.

        Raises:
            KeyError: a name without a number, or an element of a tensor.
            ZeroDivisionError: a divisor is 0.
        """
        total = self.offset
        for mono, c in self.terms.items():
            product = c
            for atom in mono:
                product *= atom_value(atom, values)
            total += product
        return total

    def linear_in(self, name: str) -> tuple[SizeExpr, SizeExpr] | None:
        """`(weight, rest)` with `self == weight * name + rest` and neither of them depending on the index `name`.

        `None`: the index stands in a quotient or another function, or is multiplied by itself.
        """
        weight: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        alone = 0
        for mono, c in self.terms.items():
            others = tuple([atom for atom in mono if not (isinstance(atom, Name) and atom.name == name)])
            if len(others) == len(mono):
                rest[mono] = c
            elif len(others) < len(mono) - 1:
                return None
            elif others:
                weight[others] = c
            else:
                alone = c
            for atom in others:
                if not isinstance(atom, Name) and name in of_atom(atom).indices:
                    return None
        return SizeExpr(weight, alone), SizeExpr(rest, self.offset)

    def substitute(self, values: Mapping[str, SizeExpr]) -> SizeExpr:
        """The expression with other expressions in place of names, in canonical form again."""
        if not self.names & values.keys():
            return self
        terms: dict[Monomial, int] = {}
        offset = self.offset
        for mono, c in self.terms.items():
            if all(isinstance(atom, Name) and atom.name not in values for atom in mono):
                terms[mono] = terms.get(mono, 0) + c
                continue
            product = atom_substitute(mono[0], values)
            for atom in mono[1:]:
                product = product * atom_substitute(atom, values)
            offset += c * product.offset
            for found, factor in product.terms.items():
                terms[found] = terms.get(found, 0) + c * factor
        return SizeExpr({mono: c for mono, c in terms.items() if c}, offset)


ZERO = SizeExpr({}, 0)
ONE = SizeExpr({}, 1)


def _debug(atom: Atom) -> str:
    if isinstance(atom, Name):
        return atom.name
    return f"{type(atom).__name__}({', '.join(map(repr, atom_parts(atom)))})"


# --- constructors ----------------------------------------------------------------------------------------------------


def constant(value: int) -> SizeExpr:
    """The expression of an integer."""
    return SizeExpr({}, value)


def size(name: str, position: int = 1 << 30) -> SizeExpr:
    """A size, at least 1 while reasoning symbolically; `position` orders the text."""
    return of_atom(Name("size", name, (1, None), position))


def scalar(name: str, dtype: DType, position: int = 1 << 30) -> SizeExpr:
    """An integer rank-0 parameter, limited by its type."""
    return of_atom(Name("scalar", name, dtype.limits, position))


def symbol(name: str, position: int = 1 << 30) -> SizeExpr:
    """An integer of which nothing is known, as the end of a tile; unlike a size it may be 0 or negative."""
    return of_atom(Name("symbol", name, UNLIMITED, position))


def index(name: str, position: int = 1 << 30) -> SizeExpr:
    """An index variable."""
    return of_atom(Name("index", name, UNLIMITED, position))


def extreme(tensor: str, kind: str, dtype: DType) -> SizeExpr:
    """The smallest or largest (`kind`) value of the part of an index tensor that is read."""
    limits = UNLIMITED if dtype.is_float else dtype.limits
    return of_atom(Name("extreme", f"{kind}({tensor})", limits))


def of_atom(atom: Atom) -> SizeExpr:
    """The expression that is one atom."""
    return SizeExpr({(atom,): 1}, 0)


def as_size_expr(value: SizeExpr | int) -> SizeExpr:
    """`value` as an expression."""
    return value if isinstance(value, SizeExpr) else SizeExpr({}, value)


def _joined(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials, atoms in canonical order."""
    if not left or not right:
        return left or right
    return tuple(sorted((*left, *right), key=lambda atom: atom.key))


def floor_div(a: SizeExpr | int, b: SizeExpr | int) -> SizeExpr:
    """`floor(a / b)` in canonical form; division by the constant 0 is kept and fails when evaluated."""
    a, b = as_size_expr(a), as_size_expr(b)
    if b.is_constant and b.offset:
        return _floor_by_integer(a, b.offset) if b.offset > 0 else _floor_by_integer(-a, -b.offset)
    if b.is_constant:
        return of_atom(FloorDiv(a, b))
    quotient, rest = _divide_out(a, b)
    if rest == ZERO:
        return quotient
    positive = b.limits[0] is not None and b.limits[0] >= 1
    if positive and always_nonnegative(rest) and always_nonnegative(b - 1 - rest):
        return quotient
    if positive and always_nonnegative(-1 - rest) and always_nonnegative(rest + b):
        return quotient - 1
    if positive and rest.terms and rest.ordered()[0][1] < 0:
        # floor(e/D) = -floor((-e - 1)/D) - 1, so that the leading coefficient is positive
        return quotient - 1 - of_atom(FloorDiv(-rest - 1, b))
    return quotient + of_atom(FloorDiv(rest, b))


def _floor_by_integer(a: SizeExpr, d: int) -> SizeExpr:
    if d == 1:
        return a
    inside = {mono: c for mono, c in a.terms.items() if c % d}
    outside = SizeExpr({mono: c // d for mono, c in a.terms.items() if c % d == 0}, a.offset // d)
    rest = a.offset % d
    if not inside:
        return outside
    common = math.gcd(d, *inside.values())
    if common > 1:
        inside = {mono: c // common for mono, c in inside.items()}
        rest, d = rest // common, d // common
    sign = 1
    if SizeExpr(inside, 0).ordered()[0][1] < 0:
        # floor(e/d) = -floor((-e + d - 1)/d), so that the leading coefficient is positive
        inside = {mono: -c for mono, c in inside.items()}
        rest, sign = d - 1 - rest, -1
    numerator = SizeExpr(inside, rest)
    nested = _only_atom(inside)
    if isinstance(nested, FloorDiv) and nested.divisor.is_constant and nested.divisor.offset > 0:
        k = nested.divisor.offset
        return outside + floor_div(nested.numerator + rest * k, d * k) * sign
    low, high = numerator.limits
    if low is not None and high is not None and low // d == high // d:
        return outside + sign * (low // d)
    return outside + of_atom(FloorDiv(numerator, constant(d))) * sign


def _only_atom(terms: Mapping[Monomial, int]) -> Atom | None:
    """The atom of a sum that is one atom with weight 1."""
    if len(terms) == 1:
        mono, c = next(iter(terms.items()))
        if c == 1 and len(mono) == 1:
            return mono[0]
    return None


def _divide_out(a: SizeExpr, b: SizeExpr) -> tuple[SizeExpr, SizeExpr]:
    """`(q, r)` with `a = q*b + r`, where everything that contains the symbolic divisor `b` went into `q`."""
    if len(b.terms) == 1 and b.offset == 0:
        (divisor, d) = next(iter(b.terms.items()))
        quotient, rest = ZERO, constant(a.offset)
        for mono, c in a.terms.items():
            left = _without(mono, divisor)
            if left is None or c % d:
                rest = rest + SizeExpr({mono: c}, 0)
            elif left:
                quotient = quotient + SizeExpr({left: c // d}, 0)
            else:
                quotient = quotient + c // d
        return quotient, rest
    lead, d = b.ordered()[0]
    quotient, rest = ZERO, a
    for mono, c in a.terms.items():
        left = _without(mono, lead)
        if left is None or c % d:
            continue
        factor = SizeExpr({left: c // d}, 0) if left else constant(c // d)
        shorter = rest - factor * b
        if len(shorter.terms) < len(rest.terms):
            quotient, rest = quotient + factor, shorter
    return quotient, rest


def _without(mono: Monomial, divisor: Monomial) -> Monomial | None:
    """`mono` divided by `divisor`, or `None` if that leaves a fraction."""
    left = list(mono)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def mod(a: SizeExpr | int, b: SizeExpr | int) -> SizeExpr:
    """The remainder that belongs to `floor_div`, with the sign of the divisor."""
    a, b = as_size_expr(a), as_size_expr(b)
    if b.is_constant and b.offset:
        d = b.offset
        if d < 0:
            return -mod(-a, -d)
        if d == 1:
            return ZERO
        low, high = a.limits
        if low is not None and high is not None and low >= 0 and high < d:
            return a
        a = SizeExpr({mono: c % d for mono, c in a.terms.items() if c % d}, a.offset % d)
        low, high = a.limits
        if not a.terms or (low is not None and high is not None and low >= 0 and high < d):
            return a
        bare = _without_remainders(a, b)
        return of_atom(Mod(a, b)) if bare == a else mod(bare, b)
    if b.is_constant:
        return of_atom(Mod(a, b))
    _, rest = _divide_out(a, b)
    bare = _without_remainders(rest, b)
    if bare != rest:
        return mod(bare, b)
    if rest == ZERO or (always_nonnegative(rest) and always_nonnegative(b - 1 - rest)):
        return rest
    return of_atom(Mod(rest, b))


def _without_remainders(a: SizeExpr, b: SizeExpr) -> SizeExpr:
    """What has the same remainder by `b` as `a`, without the remainders in it by constant multiples of `b`.

    What stands in the place of a remainder may be larger, but no sum may leave 64 bits.
    """
    total = constant(a.offset)
    for mono, c in a.terms.items():
        match mono:
            case (Mod() as inner,) if _is_multiple(inner.divisor * c, b):
                total = total + inner.numerator * c
            case _:
                total = total + SizeExpr({mono: c}, 0)
    alone = _only_atom(a.terms) is not None and a.offset == 0
    return total if alone or is_held(total) else a


def _is_multiple(a: SizeExpr, b: SizeExpr) -> bool:
    quotient, rest = _divide_out(a, b) if not b.is_constant else (a, mod(a, b))
    return rest == ZERO and quotient.is_constant


def is_held(e: SizeExpr) -> bool:
    """Whether 64 bits hold the value with room to spare: sizes, indices and numbers of 32 bits, no product of more than two."""
    return all(len(mono) <= 2 and all(map(_is_short, mono)) for mono in e.terms)


def _is_short(atom: Atom) -> bool:
    match atom:
        case Name(kind="size" | "index"):
            return True
        case Name() | Datum():
            low, high = atom.limits
            return low is not None and high is not None and -(1 << 32) <= low <= high <= 1 << 32
        case FloorDiv() | Mod():
            return is_held(atom.numerator) and is_held(atom.divisor)
        case Extremum():
            return all(map(is_held, atom.arguments))
        case _:
            return False


def minimum(*arguments: SizeExpr | int) -> SizeExpr:
    """The smallest of the arguments, in canonical form."""
    return _minimum(map(as_size_expr, arguments), always_nonnegative)


def _minimum(arguments: Iterable[SizeExpr], certain: Callable[[SizeExpr], bool]) -> SizeExpr:
    """As `minimum`; `certain` says which differences are never negative."""
    flat = [part for argument in arguments for part in _flattened(argument, "min")]
    kept = flat if len(flat) == 1 else _undominated(flat, certain)
    return kept[0] if len(kept) == 1 else _canonical_minimum(kept)


def maximum(*arguments: SizeExpr | int) -> SizeExpr:
    """The largest of the arguments, in canonical form."""
    if len(arguments) == 1:
        return as_size_expr(arguments[0])
    return -minimum(*(-argument for argument in arguments))


def _flattened(e: SizeExpr, kind: str) -> list[SizeExpr]:
    """The arguments of `e` if it is a lone `min` plus a constant (or minus a `max`), else `e` itself."""
    if len(e.terms) == 1:
        mono, c = next(iter(e.terms.items()))
        atom = mono[0]
        if (
            len(mono) == 1
            and isinstance(atom, Extremum)
            and ((atom.kind == kind and c == 1) or (atom.kind != kind and c == -1))
        ):
            return [argument * c + e.offset for argument in atom.arguments]
    return [e]


def _undominated(arguments: list[SizeExpr], certain: Callable[[SizeExpr], bool]) -> list[SizeExpr]:
    """The arguments that can be the smallest one."""
    kept: list[SizeExpr] = []
    for argument in arguments:
        if any(certain(argument - other) for other in kept):
            continue
        kept = [other for other in kept if not certain(other - argument)]
        kept.append(argument)
    return kept


def always_nonnegative(e: SizeExpr, positive: Container[SizeExpr] = ()) -> bool:
    """Whether `e >= 0` is certain for sizes of 0, too: what a value is must not rest on a call's sizes being 1 or more.

    Args:
        positive: sizes that are 1 or more.
    """
    if not nonnegative(e):
        return False
    one_less = {name.name: of_atom(name) - 1 for name in _sizes(e) if of_atom(name) not in positive}
    return not one_less or nonnegative(e.substitute(one_less))


def _sizes(e: SizeExpr) -> Iterator[Name]:
    return (atom for atom in e.atoms() if isinstance(atom, Name) and atom.kind == "size")


def _canonical_minimum(arguments: list[SizeExpr]) -> SizeExpr:
    symbolic = [argument for argument in arguments if argument.terms]
    shift = min(argument.offset for argument in symbolic)
    arguments = sorted((argument - shift for argument in arguments), key=lambda a: (not a.terms, a.key))
    positive = sum(1 for a in arguments if a.terms and a.ordered()[0][1] > 0)
    if 2 * positive >= len(symbolic):
        return of_atom(Extremum("min", tuple(arguments))) + shift
    # min(-a, -b) = -max(a, b); the shift is chosen anew for the other sign
    flipped = [-argument for argument in arguments]
    inner = min(a.offset for a in flipped if a.terms)
    flipped = sorted((a - inner for a in flipped), key=lambda a: (not a.terms, a.key))
    return shift - inner - of_atom(Extremum("max", tuple(flipped)))


def product(a: SizeExpr, b: SizeExpr) -> SizeExpr:
    """`a * b`, kept factored where expanding would mix several terms."""
    if len(a.terms) + bool(a.offset) <= 1 and len(b.terms) + bool(b.offset) <= 1:
        return a * b
    if a.is_constant or b.is_constant:
        return a * b
    return of_atom(Product(tuple(sorted((a, b), key=lambda e: (len(e.terms) + bool(e.offset), e.key)))))


def choose(condition: Condition, then: SizeExpr, otherwise: SizeExpr) -> SizeExpr:
    """`condition ? then : otherwise`."""
    if condition.op in ("true", "false") or then == otherwise:
        return then if condition.op != "false" else otherwise
    return of_atom(Choice(condition, then, otherwise))


def conjunction(parts: Iterable[Condition]) -> Condition:
    """All of `parts`."""
    kept = tuple(part for part in parts if part.op != "true")
    return kept[0] if len(kept) == 1 else Condition("and", parts=kept) if kept else Condition("true")


def on_sizes(condition: Condition) -> Condition:
    """What of a conjunction sizes alone decide: of `N > 0 and i < 3` it is `N > 0`."""
    if condition.op == "and":
        return conjunction(map(on_sizes, condition.parts))
    return condition if condition.is_on_sizes else Condition("true")


def has_data(e: SizeExpr) -> bool:
    """Whether the value depends on elements of tensors, or on what has no integer form."""
    return any(isinstance(atom, Datum | Opaque) for atom in e.atoms())


@lru_cache(maxsize=1 << 12)  # a condition inside of conditions is asked for by each of them
def is_known_at_call(e: SizeExpr) -> bool:
    """Whether sizes, integer scalars and indices give the value: no element of a tensor, nothing without an integer form."""
    choices = (atom for atom in e.atoms() if isinstance(atom, Choice))
    return not has_data(e) and all(choice.condition.is_known_at_call for choice in choices)


# --- limits and proofs -------------------------------------------------------------------------------------------------


def _all_known(combine: Callable[[list[int]], int], values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return combine(known) if len(known) == len(values) else None


def _any_known(combine: Callable[[list[int]], int], values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return combine(known) if known else None


def _times(a: Limits, b: Limits) -> Limits:
    """Limits of a product."""
    (p, q), (r, s) = a, b
    if p is not None and r is not None and p >= 0 and r >= 0:
        return p * r, None if q is None or s is None else q * s
    lows: list[int | None] = []
    highs: list[int | None] = []
    for x, below in ((p, True), (q, False)):
        for y, under in ((r, True), (s, False)):
            if x is not None and y is not None:
                corner = x * y
            elif 0 in (x, y):
                corner = 0
            else:  # without limit, to the side that the signs say
                negative = (below if x is None else x < 0) != (under if y is None else y < 0)
                (lows if negative else highs).append(None)
                continue
            lows.append(corner)
            highs.append(corner)
    return _all_known(min, lows), _all_known(max, highs)


def _floor_limits(a: Limits, d: Limits) -> Limits:
    low, high = d
    if low is None or low < 1:
        return UNLIMITED
    smallest = None if a[0] is None else (a[0] // low if a[0] < 0 else 0 if high is None else a[0] // high)
    largest = None if a[1] is None else (a[1] // low if a[1] >= 0 else -1 if high is None else a[1] // high)
    return smallest, largest


def _limits(terms: Mapping[Monomial, int], offset: int) -> Limits:
    low: int | None = offset
    high: int | None = offset
    for mono, c in terms.items():
        if c == 0:
            continue
        bottom, top = mono[0].limits
        for atom in mono[1:]:
            bottom, top = _times((bottom, top), atom.limits)
        if c < 0:
            bottom, top = top, bottom
        low = None if low is None or bottom is None else low + c * bottom
        high = None if high is None or top is None else high + c * top
    return low, high


def _limits_where(condition: Condition, holds: bool, e: SizeExpr) -> Limits:
    """Limits of an expression where a condition holds, or does not: `M` is 2 at most where `2 - M >= 0`."""
    low, high = e.limits
    if all(e.terms.keys().isdisjoint(part.terms) for part in condition.exprs()):
        return low, high
    alternatives, _ = (condition if holds else condition.negated()).alternatives()
    if not alternatives:
        return low, high
    lows = [_any_known(max, [low, *(_sum_limits(e, -1, gap)[0] for gap in gaps)]) for gaps in alternatives]
    highs = [_any_known(min, [high, *(_sum_limits(e, 1, gap)[1] for gap in gaps)]) for gaps in alternatives]
    return _all_known(min, lows), _all_known(max, highs)


def _sum_limits(e: SizeExpr, sign: int, other: SizeExpr) -> Limits:
    """Limits of `e + sign * other`."""
    weights = {mono: e.terms.get(mono, 0) + sign * other.terms.get(mono, 0) for mono in (*e.terms, *other.terms)}
    return _limits(weights, e.offset + sign * other.offset)


def expanded(e: SizeExpr) -> SizeExpr:
    """The expression with factored products multiplied out, but for those that have too many terms then."""
    total = constant(e.offset)
    for mono, c in e.terms.items():
        term = constant(c)
        for atom in mono:
            factors = tuple(map(expanded, atom.factors)) if isinstance(atom, Product) else ()
            if factors and math.prod(len(each.terms) + bool(each.offset) for each in (term, *factors)) <= MAX_TERMS:
                for factor in factors:
                    term = term * factor
            else:
                term = term * of_atom(atom)
        total = total + term
    return total


def nonnegative(e: SizeExpr, depth: int = DEPTH) -> bool:
    """Whether `e >= 0` is certain for all sizes >= 1; `False` may also mean "not found".

    Relaxes one `floor`, `%`, `min` or `max` at a time, at most `DEPTH` of them and `MOST_STEPS` steps, so it is sound and quick but
    not complete.
    """
    low, high = e.limits
    if low is not None and low >= 0:
        return True
    if depth == 0 or not e.terms or (high is not None and high < 0) or WORK.left < WORK.proof:
        return False
    if WORK.proof < 0:  # nobody has asked yet: what is inside shares the steps of this proof
        WORK.proof = max(0, WORK.left - MOST_STEPS)
        try:
            return _nonnegative(e, depth)
        finally:
            WORK.proof = -1
    return _nonnegative(e, depth)


def _nonnegative(e: SizeExpr, depth: int) -> bool:
    degree = 1
    for mono, c in e.terms.items():
        for atom in mono:
            if not isinstance(atom, Name | Datum | Opaque):
                return _relaxed(e, mono, c, atom, depth - 1)
        degree = max(degree, len(mono))
    return 1 < degree <= MAX_DEGREE and _positive_polynomial(e)


def _relaxed(e: SizeExpr, mono: Monomial, c: int, atom: Atom, depth: int) -> bool:
    """`nonnegative` by giving one composite atom its worst value."""
    others = list(mono)
    others.remove(atom)
    weight = constant(c)
    for other in others:
        weight = weight * of_atom(other)
    rest = SizeExpr({m: k for m, k in e.terms.items() if m != mono}, e.offset)
    if any(other.limits[0] is None or other.limits[0] < 0 for other in others):
        return isinstance(atom, Product) and nonnegative(expanded(e), depth)
    match atom:
        case Product():
            return nonnegative(expanded(e), depth)
        case Extremum():
            values = (nonnegative(rest + weight * argument, depth) for argument in atom.arguments)
            return all(values) if (atom.kind == "min") == (c > 0) else any(values)
        case Mod():
            positive = atom.divisor.limits[0] is not None and atom.divisor.limits[0] >= 1
            return positive and nonnegative(rest if c > 0 else rest + weight * (atom.divisor - 1), depth)
        case FloorDiv():
            return _relaxed_floor(rest, weight, c, atom, depth)
        case Choice():
            then = _under(atom.condition, rest + weight * atom.then, depth)
            return then and _under(atom.condition.negated(), rest + weight * atom.otherwise, depth)
        case Name() | Datum() | Opaque():
            return False
    assert_never(atom)


def _under(condition: Condition, e: SizeExpr, depth: int) -> bool:
    """`e >= 0` wherever `condition` holds, from one comparison of each of its alternatives."""
    if nonnegative(e, depth):
        return True
    alternatives, _ = condition.alternatives()
    return all(any(nonnegative(e - g, depth) for g in alternative) for alternative in alternatives)


def _relaxed_floor(rest: SizeExpr, weight: SizeExpr, c: int, atom: FloorDiv, depth: int) -> bool:
    """`rest + weight*floor(n/d) >= 0` from `n - d + 1 <= d*floor(n/d) <= n`."""
    n, d = atom.numerator, atom.divisor
    partner = _floor_partner(rest, weight, d)
    if partner is not None:
        # floor(x/d) - floor(y/d) >= floor((x - y)/d)
        other, less = partner
        x, y = (n, other.numerator) if c > 0 else (other.numerator, n)
        magnitude = weight if c > 0 else -weight
        if nonnegative(less + magnitude * floor_div(x - y, d), depth):
            return True
    worst = n - d + 1 if c > 0 else n
    if d.is_constant:
        slack = d.offset - 1  # an integer above -1 is at least 0
        return nonnegative(rest * d + weight * worst + slack, depth)
    if d.limits[0] is None or d.limits[0] < 1:
        return False
    if len(d.terms) == 1 and d.offset == 0 and len(weight.terms) == 1:
        left, remainder = _divide_out(weight, d)
        if remainder == ZERO:
            return nonnegative(rest + left * worst, depth)
    if not nonnegative(n, depth):
        return False
    return nonnegative(rest if c > 0 else rest + weight * n, depth)


def _floor_partner(rest: SizeExpr, weight: SizeExpr, d: SizeExpr) -> tuple[FloorDiv, SizeExpr] | None:
    """A floor by the same divisor with the opposite weight, and the sum without it."""
    for mono, c in rest.terms.items():
        for atom in mono:
            if isinstance(atom, FloorDiv) and atom.divisor == d:
                others = list(mono)
                others.remove(atom)
                factor = constant(c)
                for other in others:
                    factor = factor * of_atom(other)
                if factor == -weight:
                    return atom, SizeExpr({m: k for m, k in rest.terms.items() if m != mono}, rest.offset)
    return None


def _positive_polynomial(e: SizeExpr) -> bool:
    """Whether the polynomial has no negative weight once every name is written as its lower limit plus a rest >= 0."""
    shifts: dict[str, SizeExpr] = {}
    for mono in e.terms:
        for atom in mono:
            low = atom.limits[0]
            if not isinstance(atom, Name) or low is None:
                return False
            shifts[atom.name] = of_atom(Name("scalar", f"{atom.name}'", (0, None))) + low
    moved = e.substitute(shifts)
    return moved.offset >= 0 and all(c > 0 for c in moved.terms.values())


# --- atoms -------------------------------------------------------------------------------------------------------------


def atom_parts(atom: Atom) -> tuple[SizeExpr, ...]:
    """The expressions inside an atom."""
    match atom:
        case Name() | Opaque():
            return ()
        case FloorDiv() | Mod():
            return (atom.numerator, atom.divisor)
        case Extremum():
            return atom.arguments
        case Product():
            return atom.factors
        case Datum():
            return atom.index
        case Choice():
            return (*atom.condition.exprs(), atom.then, atom.otherwise)
    assert_never(atom)


def atom_value(atom: Atom, values: Mapping[str, int]) -> int:
    """The value of an atom for given numbers."""
    match atom:
        case Name():
            return values[atom.name]
        case FloorDiv():
            return atom.numerator.evaluate(values) // atom.divisor.evaluate(values)
        case Mod():
            return atom.numerator.evaluate(values) % atom.divisor.evaluate(values)
        case Extremum():
            pick = min if atom.kind == "min" else max
            return pick(argument.evaluate(values) for argument in atom.arguments)
        case Product():
            return math.prod(factor.evaluate(values) for factor in atom.factors)
        case Choice():
            return (atom.then if atom.condition.evaluate(values) else atom.otherwise).evaluate(values)
        case Datum() | Opaque():
            raise KeyError(atom.key)
    assert_never(atom)


def atom_substitute(atom: Atom, values: Mapping[str, SizeExpr]) -> SizeExpr:
    """The atom with other expressions in place of names."""
    found = values.get(atom.name) if isinstance(atom, Name) else None
    return found or with_parts(atom, lambda part: part.substitute(values))


def with_parts(atom: Atom, change: Callable[[SizeExpr], SizeExpr]) -> SizeExpr:
    """The atom in canonical form after a change of the expressions inside."""
    match atom:
        case Name() | Opaque():
            return of_atom(atom)
        case FloorDiv():
            return floor_div(change(atom.numerator), change(atom.divisor))
        case Mod():
            return mod(change(atom.numerator), change(atom.divisor))
        case Extremum():
            arguments = map(change, atom.arguments)
            return minimum(*arguments) if atom.kind == "min" else maximum(*arguments)
        case Product():
            return math.prod(map(change, atom.factors), start=ONE)
        case Datum():
            return of_atom(replace(atom, index=tuple(map(change, atom.index))))
        case Choice():
            return choose(atom.condition.changed(change), change(atom.then), change(atom.otherwise))
    assert_never(atom)


def with_atoms(e: SizeExpr, change: Callable[[Atom], SizeExpr]) -> SizeExpr:
    """The expression with others in place of its atoms."""
    total = constant(e.offset)
    for mono, c in e.terms.items():
        total = total + math.prod(map(change, mono), start=constant(c))
    return total


def without_zeros(e: SizeExpr) -> SizeExpr:
    """What has the same value where no size is 0, as short as is known: 1 for `min(N, 1)`."""
    if not any(isinstance(atom, Extremum) for atom in e.atoms()):
        return e
    return with_atoms(e, _atom_without_zeros)


def _atom_without_zeros(atom: Atom) -> SizeExpr:
    if not isinstance(atom, Extremum):
        return with_parts(atom, without_zeros)
    arguments = list(map(without_zeros, atom.arguments))
    if atom.kind == "min":
        return _minimum(arguments, nonnegative)
    return -_minimum([-argument for argument in arguments], nonnegative)
