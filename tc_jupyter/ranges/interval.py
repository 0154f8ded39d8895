"""Interval arithmetic on size expressions, and solving one inequality for one index.

Worked example: with `0 <= k <= K - 1`, `interval(i + k)` for fixed `i` runs from `i` to `i + K - 1`; solving
`N - 1 - (i + k) >= 0` for `i` gives `i <= N - K`.

Source: `docs/ranges.md`, 'Solving for one index' and 'Intervals'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from .size_expr import (
    ONE,
    ZERO,
    Atom,
    Choice,
    Datum,
    Extremum,
    FloorDiv,
    Limits,
    Mod,
    Monomial,
    Name,
    Opaque,
    Product,
    SizeExpr,
    constant,
    extreme,
    floor_div,
    is_known_at_call,
    maximum,
    minimum,
    mod,
    nonnegative,
    of_atom,
    product,
    with_atoms,
    with_parts,
)

Ends: TypeAlias = tuple[SizeExpr | None, SizeExpr | None]
IndexBox: TypeAlias = Mapping[str, tuple[SizeExpr, SizeExpr]]  # both ends included


@dataclass(frozen=True, slots=True)
class Box:
    """One half-open interval per dimension, in logical coordinates."""

    bounds: tuple[tuple[SizeExpr, SizeExpr], ...]

    @property
    def shape(self) -> tuple[SizeExpr, ...]:
        """Number of elements per dimension."""
        return tuple(upper - lower for lower, upper in self.bounds)

    @property
    def origin(self) -> tuple[SizeExpr, ...]:
        """The logical index of the first element."""
        return tuple(lower for lower, _ in self.bounds)


@dataclass(frozen=True, slots=True)
class Interval:
    """Smallest and largest value, both included; `None` is unknown. `exact`: both ends are reached for all sizes."""

    lower: SizeExpr | None
    upper: SizeExpr | None
    exact: bool


@dataclass(slots=True)
class _Walk:
    """One interval computation: the box, how elements count, and the directions in which each index was met."""

    box: IndexBox
    data: Callable[[Datum], Ends]
    directions: dict[str, set[int]]

    # Directions: +1 grows with the index, -1 falls, 2 exact as long as the index occurs nowhere else, 3 the same, inside an
    # element, 0 unknown.

    @property
    def is_exact(self) -> bool:
        return all(len(met) == 1 and 0 not in met for met in self.directions.values())

    def meet(self, names: frozenset[str], direction: int) -> None:
        for name in names:
            if name in self.box:
                self.directions.setdefault(name, set()).add(direction)


def type_limits(atom: Datum) -> Ends:
    """What is known of an element while shaping: the limits of its type."""
    return _as_ends(atom.limits)


def extremes(atom: Datum) -> Ends:
    """What is known of an element in a precondition: `min(C)` and `max(C)`."""
    return extreme(atom.tensor, "min", atom.dtype), extreme(atom.tensor, "max", atom.dtype)


def _as_ends(limits: Limits) -> Ends:
    low, high = limits
    return None if low is None else constant(low), None if high is None else constant(high)


def interval(e: SizeExpr, box: IndexBox, data: Callable[[Datum], Ends] = type_limits) -> Interval:
    """Smallest and largest value of `e` while the indices of `box` run over their ranges.

    Names outside `box` stay as they are. `exact` holds iff every index is monotone in one direction over all its
    occurrences, and no element is read at an index that also occurs elsewhere.
    """
    if not e.terms:
        return Interval(e, e, True)
    walk = _Walk(box, data, {})
    lower, upper = _sum_ends(e, walk, 1)
    return Interval(lower, upper, walk.is_exact)


def _sum_ends(e: SizeExpr, walk: _Walk, direction: int) -> Ends:
    low: SizeExpr | None = constant(e.offset)
    high: SizeExpr | None = low
    for mono, c in e.terms.items():
        bottom, top = _monomial_ends(mono, walk, direction if c > 0 else _opposite(direction))
        if c < 0:
            bottom, top = top, bottom
        low = None if low is None or bottom is None else low + bottom * c
        high = None if high is None or top is None else high + top * c
    return low, high


def _opposite(direction: int) -> int:
    return -direction if direction in (1, -1) else direction


def _varies(atom: Atom, walk: _Walk) -> bool:
    if isinstance(atom, Name):
        return atom.kind == "index" and atom.name in walk.box
    e = of_atom(atom)
    return bool(e.indices & walk.box.keys()) or not is_known_at_call(e)


def _monomial_ends(mono: Monomial, walk: _Walk, direction: int) -> Ends:
    if len(mono) == 1 and isinstance(mono[0], Name):
        return _name_ends(mono[0], walk, direction)
    moving = [atom for atom in mono if _varies(atom, walk)]
    fixed = ONE
    for atom in mono:
        if atom not in moving:
            fixed = fixed * of_atom(atom)
    if not moving:
        return fixed, fixed
    sign = _sign(fixed)
    if len(moving) == 1:
        ends = _atom_ends(moving[0], walk, 0 if sign == 0 else direction if sign > 0 else _opposite(direction))
    else:
        ends = _product_ends(moving, walk, direction if sign > 0 else 0)
    if fixed == ONE:
        return ends
    if sign == 0:
        return _times((fixed, fixed), ends)
    low, high = ends if sign > 0 else (ends[1], ends[0])
    return None if low is None else fixed * low, None if high is None else fixed * high


def _sign(e: SizeExpr) -> int:
    """+1 if `e >= 0` is certain, -1 if `e <= 0`, 0 if neither."""
    return 1 if nonnegative(e) else -1 if nonnegative(-e) else 0


def _product_ends(atoms: list[Atom], walk: _Walk, direction: int) -> Ends:
    """Corner products. Monotone where every factor is non-negative; exact where the factors vary independently."""
    probes = [_Walk(walk.box, walk.data, {}) for _ in atoms]
    factors = [_atom_ends(atom, probe, 1) for atom, probe in zip(atoms, probes, strict=True)]
    met = [name for probe in probes for name in probe.directions]
    if all(low is not None and nonnegative(low) for low, _ in factors):
        for atom in atoms:
            _atom_ends(atom, walk, direction)
    elif len(set(met)) == len(met) and all(probe.is_exact for probe in probes):
        for probe in probes:
            for name, directions in probe.directions.items():
                walk.directions.setdefault(name, set()).add(3 if directions == {3} else 2)
    else:
        walk.meet(frozenset(met), 0)
    ends: Ends = (ONE, ONE)
    for factor in factors:
        ends = _times(ends, factor)
    return ends


def _times(a: Ends, b: Ends) -> Ends:
    """Smallest and largest of the four corner products, simplified when signs are known."""
    (p, q), (r, s) = a, b
    if p is q and p is not None and _sign(p) != 0:
        first, second = (r, s) if _sign(p) > 0 else (s, r)
        return (
            None if first is None else product(p, first),
            None if second is None else product(p, second),
        )
    if r is s and r is not None and _sign(r) != 0:
        return _times(b, a)
    if p is not None and r is not None and nonnegative(p) and nonnegative(r):
        return product(p, r), None if q is None or s is None else product(q, s)
    if p is not None and nonnegative(p):
        return _times_nonnegative(p, q, r, s)
    if r is not None and nonnegative(r):
        return _times_nonnegative(r, s, p, q)
    if p is None or q is None or r is None or s is None:
        return None, None
    corners = [product(x, y) for x in (p, q) for y in (r, s)]
    return minimum(*corners), maximum(*corners)


def _times_nonnegative(p: SizeExpr, q: SizeExpr | None, r: SizeExpr | None, s: SizeExpr | None) -> Ends:
    """`[p, q] * [r, s]` with `p >= 0`, the second factor of unknown sign."""
    low: SizeExpr | None = None
    if r is not None and q is not None:
        low = product(q, r) if nonnegative(-r) else minimum(product(p, r), product(q, r))
    high: SizeExpr | None = None
    if s is not None:
        if nonnegative(-s):
            high = product(p, s)
        elif q is not None:
            high = product(q, s) if nonnegative(s) else maximum(product(p, s), product(q, s))
    return low, high


def _name_ends(atom: Name, walk: _Walk, direction: int) -> Ends:
    if atom.kind != "index" or atom.name not in walk.box:
        e = of_atom(atom)
        return e, e
    walk.directions.setdefault(atom.name, set()).add(direction)
    return walk.box[atom.name]


def _atom_ends(atom: Atom, walk: _Walk, direction: int) -> Ends:
    match atom:
        case Name():
            return _name_ends(atom, walk, direction)
        case FloorDiv():
            return _floor_ends(atom, walk, direction)
        case Mod():
            return _mod_ends(atom, walk, direction)
        case Extremum():
            return _extremum_ends(atom, walk, direction)
        case Product():
            ends: Ends = (ONE, ONE)
            for factor in atom.factors:
                ends = _times(ends, _sum_ends(factor, walk, 0))
            return ends
        case Datum():
            for part in atom.index:
                walk.meet(part.indices, 3)
            return walk.data(atom)
        case Choice():
            if not _varies(atom, walk):
                return of_atom(atom), of_atom(atom)
            walk.meet(of_atom(atom).indices, 0)
            (a, b), (c, d) = _sum_ends(atom.then, walk, 0), _sum_ends(atom.otherwise, walk, 0)
            return None if a is None or c is None else minimum(a, c), None if b is None or d is None else maximum(b, d)
        case Opaque():
            walk.meet(atom.indices, 0)
            return _as_ends(atom.limits)
    assert_never(atom)


def _floor_ends(atom: FloorDiv, walk: _Walk, direction: int) -> Ends:
    divisor = atom.divisor
    if divisor.indices & walk.box.keys():
        return _floor_by_index(atom, walk)
    low_limit, high_limit = divisor.limits
    if low_limit is not None and low_limit >= 1:
        low, high = _sum_ends(atom.numerator, walk, direction)
        return None if low is None else floor_div(low, divisor), None if high is None else floor_div(high, divisor)
    if high_limit is not None and high_limit <= -1:
        low, high = _sum_ends(atom.numerator, walk, _opposite(direction))
        return None if high is None else floor_div(high, divisor), None if low is None else floor_div(low, divisor)
    # the sign of the divisor is unknown: only a numerator that does not move has a value
    walk.meet(atom.numerator.indices, 0)
    if not atom.numerator.indices & walk.box.keys():
        e = of_atom(atom)
        return e, e
    return None, None


def _floor_by_index(atom: FloorDiv, walk: _Walk) -> Ends:
    """`n // d` where the divisor is an index expression that starts at 1 or more."""
    walk.meet(atom.divisor.indices, 0)
    walk.meet(atom.numerator.indices, 0)
    probe = _Walk(walk.box, walk.data, {})
    low_d, high_d = _sum_ends(atom.divisor, probe, 0)
    low, high = _sum_ends(atom.numerator, probe, 0)
    if low_d is None or not nonnegative(low_d - 1):
        return None, None
    bottom: SizeExpr | None = None
    if low is not None:
        if nonnegative(low):
            bottom = ZERO if high_d is None else floor_div(low, high_d)
        else:
            bottom = minimum(floor_div(low, low_d), ZERO)
    top: SizeExpr | None = None
    if high is not None:
        top = maximum(floor_div(high, low_d), constant(-1))
        if nonnegative(high):
            top = floor_div(high, low_d)
    return bottom, top


def _mod_ends(atom: Mod, walk: _Walk, direction: int) -> Ends:
    divisor = atom.divisor
    low_limit = divisor.limits[0]
    if divisor.indices & walk.box.keys() or low_limit is None or low_limit < 1:
        walk.meet(of_atom(atom).indices, 0)
        return None, None
    probe = _Walk(walk.box, walk.data, {})
    low, high = _sum_ends(atom.numerator, probe, 1)
    if low is not None and high is not None and nonnegative(low):
        if nonnegative(divisor - 1 - high):
            return _sum_ends(atom.numerator, walk, direction)
        numerator = atom.numerator
        if len(numerator.terms) == 1 and numerator.offset == 0 and low == ZERO:
            mono, c = next(iter(numerator.terms.items()))
            if c == 1 and len(mono) == 1 and isinstance(mono[0], Name):
                walk.meet(numerator.indices, 2)
                return ZERO, minimum(high, divisor - 1)
    if not atom.numerator.indices & walk.box.keys() and is_known_at_call(atom.numerator):
        e = mod(atom.numerator, divisor)
        return e, e
    walk.meet(atom.numerator.indices, 0)
    return ZERO, divisor - 1


def _extremum_ends(atom: Extremum, walk: _Walk, direction: int) -> Ends:
    ends = [_sum_ends(argument, walk, direction) for argument in atom.arguments]
    lows = [low for low, _ in ends if low is not None]
    highs = [high for _, high in ends if high is not None]
    middle = _middle(atom, walk)
    if middle is not None:
        (highs if atom.kind == "min" else lows).append(middle)
    if atom.kind == "min":
        return (
            minimum(*lows) if len(lows) >= len(ends) else None,
            minimum(*highs) if highs else None,
        )
    return (
        maximum(*lows) if lows else None,
        maximum(*highs) if len(highs) == len(ends) else None,
    )


def _middle(atom: Extremum, walk: _Walk) -> SizeExpr | None:
    """Half of the sum of two operands, if it does not change: the smaller one is at most that, the larger one at least.

    Worked example: `min(p, 2*N - 1 - p)`, a position in an array that is mirrored at its end, is at most `N - 1`.
    """
    if len(atom.arguments) != 2:
        return None
    total = atom.arguments[0] + atom.arguments[1]
    if any(_varies(part, walk) for mono in total.terms for part in mono):
        return None
    return floor_div(total, 2) if atom.kind == "min" else -floor_div(-total, 2)


# --- what ranges decide --------------------------------------------------------------------------------------------------


def decided(e: SizeExpr, box: IndexBox) -> SizeExpr:
    """The expression without the quotients, remainders and extrema that the ranges of the indices decide.

    Worked example: where `0 <= y <= H - 1`, `(y + H) % H` is `y`, and `i/D*D + i%D` is `i` everywhere.
    """
    if not any(isinstance(atom, FloorDiv | Mod | Extremum) for atom in e.atoms()):
        return e
    return _joined(with_atoms(e, lambda atom: _decided(atom, box)))


def _decided(atom: Atom, box: IndexBox) -> SizeExpr:
    match atom:
        case FloorDiv() | Mod():
            n, d = decided(atom.numerator, box), decided(atom.divisor, box)
            quotient = _quotient(n, d, box)
            if quotient is None:
                return floor_div(n, d) if isinstance(atom, FloorDiv) else mod(n, d)
            return constant(quotient) if isinstance(atom, FloorDiv) else n - d * quotient
        case Extremum():
            sign = 1 if atom.kind == "min" else -1
            kept: list[SizeExpr] = []
            for part in (decided(argument, box) for argument in atom.arguments):
                if not any(_is_never_less(part * sign, other * sign, box) for other in kept):
                    kept = [other for other in kept if not _is_never_less(other * sign, part * sign, box)]
                    kept.append(part)
            return minimum(*kept) if atom.kind == "min" else maximum(*kept)
        case _:
            return with_parts(atom, lambda part: decided(part, box))


def _is_never_less(a: SizeExpr, b: SizeExpr, box: IndexBox) -> bool:
    low = interval(a - b, box).lower
    return low is not None and nonnegative(low)


def _quotient(n: SizeExpr, d: SizeExpr, box: IndexBox) -> int | None:
    """The number -1, 0 or 1 that `n // d` is at every point of the box, if it is one."""
    least = d.limits[0]
    if least is None or least < 1:
        return None
    ends = interval(n, box)
    low, high = ends.lower, ends.upper
    if low is None or high is None:
        return None
    return next((q for q in (0, -1, 1) if nonnegative(low - d * q) and nonnegative(d * (q + 1) - 1 - high)), None)


def _joined(e: SizeExpr) -> SizeExpr:
    """A quotient times its divisor and the remainder beside it as the number that they are parts of."""
    for mono, c in e.terms.items():
        match mono:
            case (Mod(numerator=n, divisor=d),):
                whole = floor_div(n, d) * d * c
                if whole.terms and all(e.terms.get(other) == weight for other, weight in whole.terms.items()):
                    return _joined(e - whole - SizeExpr({mono: c}, 0) + n * c)
            case _:
                pass
    return e


# --- solving -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limit:
    """The answer of `solve`: `index >= value` (`lower`) or `index <= value` (`upper`), both included.

    `exact` is False when the other indices are not monotone, so that a larger range might be possible (TC309).
    """

    side: Literal["lower", "upper"]
    value: SizeExpr
    exact: bool


def solve(e: SizeExpr, name: str, box: IndexBox, divisors: list[SizeExpr] | None = None) -> Limit | None:
    """The limit that `e >= 0` puts on the index `name` while the others run over `box`; `None` is "no answer".

    `divisors` collects symbolic divisors, which must not be 0 at the call (TC603).
    """
    moving = {mono: c for mono, c in e.terms.items() if _contains(mono, name)}
    rest = SizeExpr({mono: c for mono, c in e.terms.items() if mono not in moving}, e.offset)
    split = _weight(moving)
    if split is None:
        return None
    atom, weight = split
    if not is_known_at_call(e) or any(isinstance(a, Choice) and of_atom(a).indices for a in e.atoms()):
        return None
    worst = interval(rest, box)
    if worst.lower is None:
        return None
    exact = interval(e, {**box, name: (ZERO, ZERO)}).exact if rest.indices else worst.exact
    if nonnegative(weight - 1):
        # weight*x >= -R  iff  x >= ceil(-R/weight)
        _note(weight, divisors)
        return _through(atom, "lower", -floor_div(worst.lower, weight), name, box, exact, divisors)
    if nonnegative(-1 - weight):
        _note(weight, divisors)
        return _through(atom, "upper", floor_div(worst.lower, -weight), name, box, exact, divisors)
    return None


def _note(divisor: SizeExpr, divisors: list[SizeExpr] | None) -> None:
    if divisors is not None and not divisor.is_constant:
        divisors.append(divisor)


def _contains(mono: Monomial, name: str) -> bool:
    for atom in mono:
        if isinstance(atom, Name):
            if atom.name == name and atom.kind == "index":
                return True
        elif name in of_atom(atom).indices:
            return True
    return False


def _weight(moving: dict[Monomial, int]) -> tuple[Atom, SizeExpr] | None:
    """`(x, D)` if the moving terms are `D*x` with one atom `x`, an index or a floor, and `D` free of indices."""
    found: Atom | None = None
    weight = ZERO
    for mono, c in moving.items():
        inner = [atom for atom in mono if isinstance(atom, Name) and atom.kind == "index"]
        inner += [atom for atom in mono if not isinstance(atom, Name) and of_atom(atom).indices]
        if len(inner) != 1 or (found is not None and inner[0] != found):
            return None
        found = inner[0]
        others = tuple(atom for atom in mono if atom is not found)
        weight = weight + (SizeExpr({others: c}, 0) if others else constant(c))
    if found is None or not isinstance(found, Name | FloorDiv):
        return None
    return found, weight


def _through(
    atom: Atom,
    side: Literal["lower", "upper"],
    value: SizeExpr,
    name: str,
    box: IndexBox,
    exact: bool,
    divisors: list[SizeExpr] | None,
) -> Limit | None:
    """The limit on the index from a limit on `atom`, which is the index itself or a floor around it."""
    if isinstance(atom, Name):
        return Limit(side, value, exact)
    if not isinstance(atom, FloorDiv):
        return None
    n, d = atom.numerator, atom.divisor
    if d.indices or d.limits[0] is None or d.limits[0] < 1:
        return None
    _note(d, divisors)
    # floor(n/d) >= L iff n >= d*L;  floor(n/d) <= U iff n <= d*U + d - 1
    inner = n - d * value if side == "lower" else d * value + d - 1 - n
    limit = solve(inner, name, box, divisors)
    return None if limit is None else Limit(limit.side, limit.value, limit.exact and exact)
