"""The definition of range inference on numbers, by search: the oracle of the random tests. Shares no code with the package's reasoning."""

from __future__ import annotations

import itertools
from math import floor, trunc

from tc_jupyter.program import Binary, Cast, Const, IndexVar, Read, Select, Size, Unary, walk

WINDOW = 60


class Unresolved(Exception):
    """The rounds end with open indices."""


def value(expr, env, arrays=None, origins=None):
    """An integer (or bool) expression for numbers of sizes and indices in `env`."""

    def get(e):
        match e:
            case Const():
                return e.value
            case Size() | IndexVar():
                return env[e.name]
            case Read():
                if not e.indices:
                    return env[e.tensor]
                place = tuple(
                    get(i) - o
                    for i, o in zip(e.indices, (origins or {}).get(e.tensor, (0,) * len(e.indices)), strict=False)
                )
                return (
                    int(arrays[e.tensor][place])
                    if arrays[e.tensor].dtype.kind in "iu"
                    else float(arrays[e.tensor][place])
                )
            case Unary():
                return (not get(e.operand)) if e.op == "!" else -get(e.operand)
            case Cast():
                inner = get(e.operand)
                return trunc(inner) if e.dtype.is_integer and isinstance(inner, float) else inner
            case Select():
                return get(e.then) if get(e.condition) else get(e.otherwise)
            case Binary():
                if e.op == "&&":
                    return get(e.left) and get(e.right)
                if e.op == "||":
                    return get(e.left) or get(e.right)
                a, b = get(e.left), get(e.right)
                return {
                    "+": lambda: a + b,
                    "-": lambda: a - b,
                    "*": lambda: a * b,
                    "//": lambda: floor(a / b) if isinstance(a, float) else a // b,
                    "%": lambda: a % b,
                    "min": lambda: min(a, b),
                    "max": lambda: max(a, b),
                    "<": lambda: a < b,
                    "<=": lambda: a <= b,
                    ">": lambda: a > b,
                    ">=": lambda: a >= b,
                    "==": lambda: a == b,
                    "!=": lambda: a != b,
                }[e.op]()
        raise AssertionError(e)

    return get(expr)


def names(expr):
    return {n.name for n in walk(expr) if isinstance(n, IndexVar)}


def has_data(expr):
    return any(isinstance(n, Read) and n.indices for n in walk(expr))


def guarded_reads(expr, guards=()):
    """All reads with their guards, in text order."""
    match expr:
        case Read():
            if expr.indices:
                yield expr, guards
            for i in expr.indices:
                yield from guarded_reads(i, guards)
        case Select():
            yield from guarded_reads(expr.condition, guards)
            yield from guarded_reads(expr.then, (*guards, (expr.condition, True)))
            yield from guarded_reads(expr.otherwise, (*guards, (expr.condition, False)))
        case Binary():
            yield from guarded_reads(expr.left, guards)
            if expr.op in ("&&", "||"):
                guards = (*guards, (expr.left, expr.op == "&&"))
            yield from guarded_reads(expr.right, guards)
        case Unary() | Cast():
            yield from guarded_reads(expr.operand, guards)
        case _:
            return


def shapes(expr, v):
    """Whether `expr` can shape `v`: sums, number or size times, floor division around one occurrence."""
    if has_data(expr):
        return False
    count = sum(isinstance(n, IndexVar) and n.name == v for n in walk(expr))
    if count != 1:
        return False

    def path(e):
        if isinstance(e, IndexVar):
            return True
        if isinstance(e, Unary | Cast):
            return path(e.operand)
        if isinstance(e, Binary):
            left = v in names(e.left)
            inside, other = (e.left, e.right) if left else (e.right, e.left)
            if e.op in ("+", "-"):
                return path(inside)
            if e.op == "*":
                return not names(other) and path(inside)
            if e.op == "//":
                return left and not names(e.right) and path(inside)
        return False

    return path(expr)


class Vacuous(Exception):
    """ "For all k" over nothing means nothing; a formula still gives a number."""


class Oracle:
    """Ranges of all statements of a program for given sizes."""

    def __init__(self, program, sizes, discharged):
        self.program, self.env = program, dict(sizes)
        self.boxes, self.ranges = {}, {}
        self.discharged = discharged
        for t in program.tensors:
            if t.dims is not None:
                self.set_box(t.name, [(0, value(d, self.env)) for d in t.dims])
        for s in program.statements:
            self.infer(s)

    def set_box(self, name, box):
        self.boxes[name] = box
        for d, (a, b) in enumerate(box):
            self.env[f"{name}.{d}"] = b - a

    def infer(self, s):
        found = {i.name: (value(i.where[0], self.env), value(i.where[1], self.env)) for i in s.indices if i.where}
        bounds = []
        for place in (s.value, *s.exists):
            for read, guards in guarded_reads(place):
                for d, e in enumerate(read.indices):
                    for side in ("lower", "upper"):
                        bounds.append((read, guards, d, e, side))
        open_ = [i.name for i in s.indices if i.name not in found]
        limits, looked, fallback = {}, set(), False
        while open_:
            for n, (read, _guards, d, e, side) in enumerate(bounds):
                here = names(e) & set(open_)
                if len(here) != 1 or n in looked or (self.discharged(s, n) and not fallback):
                    continue
                looked.add(n)
                (v,) = here
                if shapes(e, v):
                    self.limit(limits, v, read, d, e, side, found)
            done = [v for v in open_ if {k for k, _ in limits.get(v, [])} == {"lower", "upper"}]
            for v in done:
                found[v] = (
                    max(x for k, x in limits[v] if k == "lower"),
                    min(x for k, x in limits[v] if k == "upper") + 1,
                )
            open_ = [v for v in open_ if v not in done]
            if not done:
                if fallback:
                    break
                fallback = True
        for v in list(open_):
            if s.target in self.boxes and v in [i.name for i in s.output_indices]:
                found[v] = self.boxes[s.target][[i.name for i in s.output_indices].index(v)]
                open_.remove(v)
        if open_:
            raise Unresolved(s.name)
        self.ranges[s.name] = [found[i.name] for i in s.indices]
        if any(b <= a for a, b in self.ranges[s.name]):
            raise Vacuous
        if s.target not in self.boxes:
            self.set_box(s.target, [found[i.name] for i in s.output_indices])

    def limit(self, limits, v, read, d, e, side, found):
        low, high = self.boxes[read.tensor][d]
        others = sorted(names(e) - {v})
        values = [range(*found[o]) for o in others]
        if any(len(r) == 0 for r in values):
            raise Vacuous

        def fits(x):
            for point in itertools.product(*values):
                y = value(e, {**self.env, **dict(zip(others, point, strict=False)), v: x})
                if not (y >= low if side == "lower" else y < high):
                    return False
            return True

        # one side of the line fits; the other does not
        if fits(10**7):
            a, b = -(10**6), 10**7
            while b - a > 1:
                m = (a + b) // 2
                a, b = (a, m) if fits(m) else (m, b)
            limits.setdefault(v, []).append(("lower", b))
        else:
            a, b = -(10**7), 10**6
            while b - a > 1:
                m = (a + b) // 2
                a, b = (m, b) if fits(m) else (a, m)
            limits.setdefault(v, []).append(("upper", a))

    def violations(self, s, arrays=None):
        """Per read and dimension: whether some point leaves the tensor on the given side."""
        origins = {name: [a for a, _ in box] for name, box in self.boxes.items()}
        result = {}
        order = [i.name for i in s.indices]
        for place in (s.value, *s.exists):
            for read, guards in guarded_reads(place):
                for point in itertools.product(*[range(a, b) for a, b in self.ranges[s.name]]):
                    env = {**self.env, **dict(zip(order, point, strict=False))}
                    if not all(bool(value(c, env, arrays, origins)) == p for c, p in guards):
                        continue
                    for d, e in enumerate(read.indices):
                        try:
                            y = value(e, env, arrays, origins)
                        except IndexError:
                            continue  # the inner access is the one that fails
                        low, high = self.boxes[read.tensor][d]
                        key = (id(read), d)
                        a, b = result.get(key, (False, False))
                        result[key] = (a or y < low, b or y >= high)
        return result
