"""The meaning of `%%sac`, evaluated directly: nested Python loops over nested lists of Python numbers.

Written from the language definition; nothing of the translation (`tc_jupyter.program`) is used. Only the parser is shared.
Arrays are `Array(shape, data)` with row-major data. Integers are exact, floats are doubles.
"""

import itertools
import math
from dataclasses import dataclass

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.syntax.sac_parser import parse_sac
from tc_jupyter.syntax.sac_tree import (
    Apply,
    ArrayLiteral,
    Assign,
    Binary,
    Conditional,
    Dot,
    If,
    Loop,
    Selection,
    SetExpr,
    TripleDot,
    Unary,
    Unpack,
    WithLoop,
    assigned_names,
)
from tc_jupyter.syntax.tree import Name, Number

MOST_ROUNDS = 5000


class SacError(Exception):
    """The program is wrong for these arguments."""


class NeedsValue(SacError):
    """A shape depends on the value of something of which only the shape is known."""


@dataclass(frozen=True)
class Array:
    shape: tuple
    data: list

    def at(self, index):
        place = 0
        for i, n in zip(index, self.shape, strict=False):
            if not 0 <= i < n:
                raise SacError(f"index {index} outside {self.shape}")
            place = place * n + i
        rest = self.shape[len(index) :]
        size = math.prod(rest)
        return Array(rest, self.data[place * size : (place + 1) * size])

    def elements(self):
        for position in positions([0] * len(self.shape), self.shape):
            yield position, self.at(position).data[0]


@dataclass(frozen=True)
class Shaped:
    """Something of which only the shape is known."""

    shape: tuple


def positions(low, high):
    return itertools.product(*(range(a, b) for a, b in zip(low, high, strict=True)))


def scalar(x):
    return Array((), [x])


def vec(items):
    items = list(items)
    return Array((len(items),), items)


def from_nested(x):
    if isinstance(x, list):
        rows = [from_nested(row) for row in x]
        inner = rows[0].shape if rows else ()
        return Array((len(rows), *inner), [d for row in rows for d in row.data])
    return scalar(x)


def from_numpy(array):
    return Array(tuple(array.shape), [x.item() for x in array.ravel()])


def evaluate(text, *arguments, name=None):
    """Run the last (or the named) function of a cell on `Array`s; returns a list of `Array`s."""
    return evaluate_all(text, *arguments, name=name)[0]


def evaluate_all(text, *arguments, name=None):
    """As `evaluate`, and whether some expression was never evaluated, so that mistakes in it went unnoticed."""
    parsed = parse_sac(SourceText(text))
    assert not parsed.diagnostics, parsed.diagnostics
    functions = {}
    for function in parsed.unit.functions:
        functions.setdefault(function.name.name, []).append(function)
    chosen = functions[name][-1] if name else parsed.unit.functions[-1]
    evaluator = Evaluator(functions)
    return evaluator.run(chosen, arguments), evaluator.skipped


class Evaluator:
    def __init__(self, functions):
        self.functions = functions
        self.skipped = False
        self.enclosing = []  # (pattern, lower, upper) of the comprehensions whose bodies are being evaluated

    def run(self, function, arguments):
        env = {p.name.name: a for p, a in zip(function.params, arguments, strict=True)}
        self.statements(function.body, env)
        return [self.value(result, env) for result in function.results]

    def statements(self, statements, env):
        """Run statements; `env` is changed."""
        for statement in statements:
            match statement:
                case Assign():
                    env[statement.name.name] = self.value(statement.value, env)
                case Unpack():
                    call = statement.value
                    operands = [self.value(a, env) for a in call.arguments]
                    found = self.run(self.own(call.function.name, operands), operands)
                    env.update({n.name: x for n, x in zip(statement.names, found, strict=True)})
                case If():
                    self.skipped = True
                    holds = self.value(statement.condition, env).data[0]
                    self.statements(statement.then if holds else statement.otherwise, env)
                case Loop():
                    self.statements(statement.start, env)
                    rounds = 0
                    while (not rounds and statement.word == "do") or self.value(statement.condition, env).data[0]:
                        rounds += 1
                        if rounds > MOST_ROUNDS:
                            raise SacError("a loop does not end")
                        self.statements((*statement.body, *statement.step), env)

    # Values

    def value(self, e, env):
        match e:
            case Name():
                found = env[e.name]
                if isinstance(found, Shaped):
                    raise NeedsValue(e.name)
                return found
            case Number():
                return scalar(e.value)
            case Unary():
                operand = self.value(e.operand, env)
                own = self.own(e.op, [operand])
                if own:
                    return self.run(own, [operand])[0]
                return self.zipped(lambda x: -x if e.op == "-" else not x, operand)
            case Binary(op="&&") | Binary(op="||"):
                left = self.value(e.left, env)
                if left.shape == () and bool(left.data[0]) == (e.op == "||"):
                    return left
                return self.zipped(lambda x, y: binary(e.op, x, y), left, self.value(e.right, env))
            case Binary():
                left, right = self.value(e.left, env), self.value(e.right, env)
                own = self.own(e.op, [left, right])
                if own:
                    return self.run(own, [left, right])[0]
                if e.op == "++":
                    return join(left, right)
                return self.zipped(lambda x, y: binary(e.op, x, y), left, right)
            case Conditional():
                self.skipped = True
                return self.value(e.then if self.value(e.condition, env).data[0] else e.otherwise, env)
            case ArrayLiteral():
                rows = [self.value(row, env) for row in e.elements]
                if any(row.shape != rows[0].shape for row in rows):
                    raise SacError("ragged")
                return Array((len(rows), *(rows[0].shape if rows else ())), [d for row in rows for d in row.data])
            case Selection():
                return self.selection(e, env)
            case SetExpr():
                return self.comprehension(e, env)
            case WithLoop():
                return self.with_loop(e, env)
            case Apply():
                return self.apply(e, env)
        raise AssertionError(e)

    def zipped(self, f, *operands):
        shapes = {o.shape for o in operands if o.shape != ()}
        if len(shapes) > 1:
            raise SacError(f"shapes {shapes}")
        shape = shapes.pop() if shapes else ()
        size = math.prod(shape)
        lists = [o.data if o.shape else o.data * size for o in operands]
        return Array(shape, [f(*xs) for xs in zip(*lists, strict=True)])

    def own(self, name, operands):
        best = None
        for function in self.functions.get(name, ()):
            if len(function.params) == len(operands) and all(
                accepts(p.type, o) for p, o in zip(function.params, operands, strict=True)
            ):
                score = sum(
                    2 * specific(p.type) + fits_base(p.type, o) for p, o in zip(function.params, operands, strict=True)
                )
                if best is None or score > best[0]:
                    best = (score, function)
        return best and best[1]

    def index(self, nodes, env):
        if len(nodes) == 1:
            found = self.value(nodes[0], env)
            return list(found.data)
        return [self.value(node, env).data[0] for node in nodes]

    def selection(self, e, env):
        array = self.value(e.array, env)
        if any(isinstance(i, Dot | TripleDot) for i in e.indices):
            spare = len(array.shape) - sum(not isinstance(i, TripleDot) for i in e.indices)
            if spare < 0:
                raise SacError("rank")
            index = []
            for i in e.indices:
                if isinstance(i, TripleDot):
                    index += [None] * spare
                else:
                    index.append(None if isinstance(i, Dot) else self.value(i, env).data[0])
            index += [None] * (len(array.shape) - len(index))
            kept = [n for n, i in zip(array.shape, index, strict=True) if i is None]
            data = []
            for at in positions([0] * len(kept), kept):
                free = iter(at)
                data += array.at([next(free) if i is None else i for i in index]).data
            return Array(tuple(kept), data)
        index = self.index(e.indices, env)
        if len(index) > len(array.shape):
            raise SacError("rank")
        return array.at(index)

    def apply(self, e, env):
        name = e.function.name
        if name in ("shape", "_shape_A_") and "shape" not in self.functions:
            self.skipped = True
            return vec(self.shape(e.arguments[0], env))
        if name in ("dim", "_dim_A_") and "dim" not in self.functions:
            self.skipped = True
            return scalar(len(self.shape(e.arguments[0], env)))
        operands = [self.argument(a, env, name) for a in e.arguments]
        own = self.own(name, operands)
        if own:
            return self.run(own, operands)[0]
        return self.builtin(name, operands)

    def argument(self, e, env, function):
        """The value of an argument; of one that has none only the shape, which may be all that a function of the cell asks for."""
        try:
            return self.value(e, env)
        except SacError:
            if function not in self.functions:
                raise
            return Shaped(self.shape(e, env))

    def builtin(self, name, operands):
        first = operands[0]
        name = name.split("::")[-1]
        match name:
            case "mod":
                return self.zipped(lambda x, y: x % y if y else 0, *operands)
            case "all" | "any":
                return scalar(all(first.data) if name == "all" else any(first.data))
            case "iota" if first.data[0] < 0:
                raise SacError("negative extent")
            case "iota":
                return vec(range(first.data[0]))
            case "where":
                return self.zipped(lambda m, x, y: x if m else y, *operands)
            case "reshape":
                if any(n < 0 for n in first.data) or math.prod(first.data) != len(operands[1].data):
                    raise SacError("reshape")
                return Array(tuple(first.data), operands[1].data)
            case "tile":
                return tile(list(first.data), list(operands[1].data), operands[2])
            case "rotate" | "shift":
                return moved(name, operands)
            case "sel" | "_sel_VxA_":
                return operands[1].at(list(first.data))
            case "take" | "_take_SxV_" | "drop" | "_drop_SxV_":
                return take_drop("take" in name, list(first.data), operands[1])
            case "_cat_VxV_":
                return join(*operands)
            case "_add_SxS_":
                return self.zipped(lambda x, y: x + y, *operands)
            case "sum":
                return scalar(sum(first.data))
            case "prod":
                return scalar(math.prod(first.data))
            case "minval":
                return scalar(min(first.data, default=math.inf))
            case "maxval":
                return scalar(max(first.data, default=-math.inf))
            case "reverse":
                rows = [first.at([k]).data for k in range(first.shape[0])] if first.shape else [first.data]
                return Array(first.shape, [x for row in reversed(rows) for x in row])
            case "transpose":
                shape = first.shape[::-1]
                return Array(shape, [first.at(p[::-1]).data[0] for p in positions([0] * len(shape), shape)])
            case "genarray" if any(n < 0 for n in first.data):
                raise SacError("negative extent")
            case "genarray":
                return Array((*first.data, *operands[1].shape), operands[1].data * math.prod(first.data))
            case "min" | "max":
                return self.zipped(min if name == "min" else max, *operands)
            case "abs":
                return self.zipped(abs, first)
            case "toi" | "tol" | "int" | "long":
                return self.zipped(int, first)
            case "tod" | "tof" | "double" | "float":
                return self.zipped(float, first)
            case "sqrt" | "exp":
                return self.zipped(getattr(math, name), first)
        if name in self.functions:
            raise SacError("no definition for these ranks")
        raise AssertionError(name)

    # Comprehensions

    def comprehension(self, e, env):
        parts = e.partitions
        _, high, body_shape = self.bounds(parts[-1], env, None)
        if any(h < 0 for h in high):
            raise SacError("negative extent")
        layout = place(parts[-1].pattern, high, body_shape)
        shape = tuple(max(n, 0) for _, _, n in layout)  # a body that is never evaluated may have any shape
        data = {}
        for clause in parts:
            self.fill(data, clause, env, shape)
        zero = 0
        return Array(shape, [data.get(p, zero) for p in positions([0] * len(shape), shape)])

    def fill(self, data, clause, env, shape):
        low, high, body_shape = self.bounds(clause, env, shape)
        layout = place(clause.pattern, high, body_shape)
        if len(layout) != len(shape):
            raise SacError("ranks of partitions")
        empty = any(a >= b for a, b in zip(low, high, strict=True))
        self.skipped |= empty
        for (kind, k, n), extent in zip(layout, shape, strict=True):
            if kind == "body" and n != extent and not (empty and 0 in shape):
                raise SacError("bodies differ")
            if kind == "name" and (low[k] < 0 or (n > extent and not empty)):
                raise SacError("partition leaves the result")
        for at in self.grid(positions(low, high), low, clause.generator, env):
            inner = bound_names(clause.pattern, at, env)
            spots = list(positions([0] * len(body_shape), body_shape))
            wanted = {}
            for spot in spots:
                wanted[spot] = tuple(at[k] if kind == "name" else spot[k] for kind, k, _ in layout)
            if all(target in data for target in wanted.values()):
                self.skipped = True
                continue
            self.enclosing.append((clause.pattern, low, high))
            body = self.value(clause.body, inner)
            self.enclosing.pop()
            if body.shape != body_shape:
                raise SacError("bodies differ")
            for spot, target in wanted.items():
                data.setdefault(target, body.at(spot).data[0])

    def bounds(self, clause, env, result):
        """Lower and upper bound and the shape of the body."""
        pattern, generator = clause.pattern, clause.generator
        low = self.bound(generator.lower if generator else None, env)
        high = self.bound(generator.upper if generator else None, env)
        dotted = generator is not None and isinstance(generator.upper, Dot)
        if dotted and result is None:
            raise SacError("dot in last")
        count = len(pattern.names)
        if pattern.vector:
            known = low if low is not None else high
            count = len(known) if known is not None else self.vector_length(clause, env, result)
        if any(b is not None and len(b) != count for b in (low, high)):
            raise SacError("bound length")
        low = low if low is not None else [0] * count
        names = symbols(pattern, count)
        if high is None:
            found = None if dotted else self.find_shapes(clause, names, low, env, count)
            if found is None:
                if result is None:
                    raise SacError("no bound")
                found = self.result_extents(pattern, count, result)
                if len(found) != count:
                    raise SacError("ranks of partitions")
            high = found
        shape = self.shape(clause.body, shape_env(pattern, count, env))
        return low, high, shape

    def bound(self, bound, env):
        if bound is None or isinstance(bound, Dot):
            return None
        return list(self.value(bound, env).data)

    def grid(self, every, low, generator, env):
        """The positions that `step` and `width` leave."""
        if generator is None or generator.step is None:
            return every
        step, width = (
            list(self.value(part, env).data) if part is not None else [1] for part in (generator.step, generator.width)
        )
        step, width = (part * len(low) if len(part) == 1 else part for part in (step, width))
        if any(n < 1 for n in (*step, *width)):
            raise SacError("step")
        axes = list(zip(low, step, width, strict=True))
        return [at for at in every if all((i - a) % s < w for i, (a, s, w) in zip(at, axes, strict=True))]

    def result_extents(self, pattern, count, result):
        if pattern.vector:
            return list(result[:count])
        if sum(not isinstance(i, TripleDot) for i in pattern.items) > len(result):
            raise SacError("ranks of partitions")
        spare = len(result) - sum(not isinstance(i, TripleDot) for i in pattern.items)
        found, at = [], 0
        for item in pattern.items:
            if isinstance(item, TripleDot):
                at += spare
                continue
            if isinstance(item, Name):
                found.append(result[at])
            at += 1
        return found

    def vector_length(self, clause, env, result):
        name = clause.pattern.names[0].name
        lengths = []
        for node in nodes_of(clause.body):
            if isinstance(node, Selection) and len(node.indices) == 1 and mentions(node.indices[0], name):
                try:
                    lengths.append(len(self.shape(node.array, env)))
                except (KeyError, NeedsValue):
                    continue
        if lengths:
            return min(lengths) if result is None else min(min(lengths), len(result))
        if result is None:
            raise SacError("no bound")
        for n in range(len(result), -1, -1):
            if n + len(self.shape(clause.body, {**env, name: Shaped((n,))})) == len(result):
                return n
        raise SacError("rank")

    def find_shapes(self, clause, names, low, env, count):
        """Upper bounds by rounds, or None when one stays open."""
        ranges = {}
        lower = dict(zip(names, low, strict=True))
        open_names = set(names)
        uses = []
        env = dict(env)
        for (
            pattern,
            a,
            b,
        ) in self.enclosing:  # indices further out stand at their worst ends, not at their present values
            outer = symbols(pattern, len(a))
            ranges |= {n: (x, y) for n, x, y in zip(outer, a, b, strict=True)}
            env |= {n: f for n, f in affine_env(pattern, len(a), {}).items()}
        self.collect(clause.body, affine_env(clause.pattern, count, env), uses, lower, ranges, open_names)
        while open_names:
            limits = {}
            for form, constant, extent in uses:
                mine = [n for n in form if n in open_names and form[n]]
                if len(mine) != 1:
                    continue
                v = mine[0]
                for sign, room in ((1, extent - 1), (-1, 0)):
                    c = sign * form[v]
                    if c <= 0:
                        continue
                    worst = sign * constant
                    for n, k in form.items():
                        if n != v:
                            a, b = ranges[n]
                            worst += (
                                sign * k * (b - 1 if sign * k > 0 else a)
                            )  # also for empty ranges: the formula stays
                    limits.setdefault(v, []).append((room - worst) // c + 1)
            if not limits:
                break
            for v, found in limits.items():
                open_names.discard(v)
                ranges[v] = (lower[v], min(found))
        if any(n in open_names for n in names):
            return None
        return [ranges[n][1] for n in names]

    def collect(self, e, env, uses, lower, ranges, open_names):
        """Selections whose index is affine in the open names; nested comprehensions add their names."""
        if isinstance(e, SetExpr):
            for clause in e.partitions:
                g = clause.generator
                count = len(clause.pattern.names)
                low = plain(self, g.lower, env) if g and g.lower and not isinstance(g.lower, Dot) else None
                high = plain(self, g.upper, env) if g and g.upper and not isinstance(g.upper, Dot) else None
                if clause.pattern.vector:
                    try:
                        known = low if low is not None else high
                        count = len(known) if known is not None else self.vector_length(clause, shapes_only(env), None)
                    except SacError:
                        continue
                names = symbols(clause.pattern, count)
                for k, n in enumerate(names):
                    lower[n] = low[k] if low is not None else 0
                    if high is not None:
                        ranges[n] = (lower[n], high[k])
                    else:
                        open_names.add(n)
                self.collect(clause.body, affine_env(clause.pattern, count, env), uses, lower, ranges, open_names)
            return
        if isinstance(e, Selection) and not any(isinstance(i, TripleDot) for i in e.indices):
            try:
                shape = self.shape(e.array, shapes_only(env))
                forms = (
                    affine_vector(self, e.indices[0], env)
                    if len(e.indices) == 1 and not isinstance(e.indices[0], Dot)
                    else None
                )
                if forms is None:
                    forms = [None if isinstance(i, Dot) else affine(self, i, env) for i in e.indices]
                for form, extent in zip(forms, shape, strict=False):
                    if form is not None:
                        uses.append((form[0], form[1], extent))
            except (NeedsValue, KeyError):
                pass
        for child in children_of(e):
            self.collect(child, env, uses, lower, ranges, open_names)

    # With-loops

    def with_loop(self, e, env):
        if e.operator == "fold":
            return self.fold(e, env)
        if e.operator == "genarray":
            frame = list(self.value(e.arguments[0], env).data)
            if any(n < 0 for n in frame):
                raise SacError("negative extent")
            default = self.value(e.arguments[1], env) if len(e.arguments) > 1 else None
        else:
            array = self.value(e.arguments[0], env)
        data, inner = {}, None if e.operator == "modarray" or default is None else default.shape
        for g in e.generators:
            if e.operator == "modarray":
                n = (
                    len(g.pattern.names)
                    if not g.pattern.vector
                    else len(self.bound(g.generator.lower, env) or self.bound(g.generator.upper, env) or array.shape)
                )
                frame, inner = list(array.shape[:n]), array.shape[n:]
            low, high = self.with_bounds(g, frame, env)
            if len(low) != len(frame) or len(high) != len(frame):
                raise SacError("bound length")
            empty = any(a >= b for a, b in zip(low, high, strict=True))
            self.skipped |= empty
            if any(a < 0 for a in low) or (not empty and any(b > n for b, n in zip(high, frame, strict=True))):
                raise SacError("partition leaves the result")
            body_shape = self.with_body_shape(g, len(frame), env)
            if inner is not None and body_shape != inner:
                raise SacError("bodies differ")
            inner = body_shape
            for at in self.grid(positions(low, high), low, g.generator, env):
                self.skipped |= at in data
                if at not in data:
                    self.enclosing.append((g.pattern, low, high))
                    data[at] = self.with_body(g, at, env)
                    self.enclosing.pop()
        if e.operator == "modarray":
            n = len(frame) if e.generators else 0
            return Array(
                array.shape,
                [
                    d
                    for at in positions([0] * n, array.shape[:n])
                    for d in (data[at] if at in data else array.at(at)).data
                ],
            )
        if default is None:
            default = Array(inner or (), [0] * math.prod(inner or ()))
        return Array(
            (*frame, *default.shape),
            [d for at in positions([0] * len(frame), frame) for d in data.get(at, default).data],
        )

    def with_bounds(self, g, frame, env):
        low, high = self.bound(g.generator.lower, env), self.bound(g.generator.upper, env)
        if low is None:
            low = [int(g.generator.lower_relation == "<")] * len(frame)
        elif g.generator.lower_relation == "<":
            low = [x + 1 for x in low]
        if high is None:
            high = list(frame)
        elif g.generator.upper_relation == "<=":
            high = [x + 1 for x in high]
        return low, high

    def with_body_shape(self, g, count, env):
        inner = shape_env(g.pattern, count, env)
        for statement in g.assigns:
            self.shaped_statement(statement, inner)
        return self.shape(g.body, inner)

    def shaped_statement(self, statement, env):
        """What a statement gives its names: values, or of what needs an index only the shapes."""
        try:
            self.statements([statement], env)
        except NeedsValue:
            match statement:
                case Assign():
                    env[statement.name.name] = Shaped(self.shape(statement.value, env))
                case If():
                    for inner in (*statement.otherwise, *statement.then):
                        self.shaped_statement(inner, env)
                case Loop():  # a round that needs an index keeps the shapes
                    for inner in statement.body:
                        self.shaped_statement(inner, env)
                    env |= {name.name: Shaped(env[name.name].shape) for name in assigned_names(statement.body)}
                case _:
                    raise

    def with_body(self, g, at, env):
        inner = bound_names(g.pattern, at, env)
        self.statements(g.assigns, inner)
        return self.value(g.body, inner)

    def fold(self, e, env):
        result = self.value(e.arguments[0], env)
        seen = set()
        for g in e.generators:
            low, high = self.with_bounds(g, [], env)
            self.skipped |= any(a >= b for a, b in zip(low, high, strict=True))
            for at in self.grid(positions(low, high), low, g.generator, env):
                if at in seen:
                    self.skipped = True
                    continue
                seen.add(at)
                body = self.with_body(g, at, env)
                name = e.function.name
                own = self.own(name, [result, body])
                if own:
                    result = self.run(own, [result, body])[0]
                elif name in ("min", "max"):
                    result = self.zipped(min if name == "min" else max, result, body)
                else:
                    result = self.zipped(lambda x, y, name=name: binary(name, x, y), result, body)
        return result

    # Shapes without values

    def shape(self, e, env):
        match e:
            case Name():
                return env[e.name].shape
            case Number():
                return ()
            case Unary():
                return self.shape(e.operand, env)
            case Binary(op="++"):
                a, b = self.shape(e.left, env), self.shape(e.right, env)
                if not a or len(a) != len(b) or a[1:] != b[1:]:
                    raise SacError("++")
                return (a[0] + b[0], *a[1:])
            case Binary():
                a, b = self.shape(e.left, env), self.shape(e.right, env)
                if a and b and a != b:
                    raise SacError("shapes")
                return a or b
            case Conditional():
                return self.shape(e.then, env)
            case ArrayLiteral():
                rows = [self.shape(row, env) for row in e.elements]
                return (len(rows), *(rows[0] if rows else ()))
            case Selection():
                array = self.shape(e.array, env)
                if any(isinstance(i, Dot | TripleDot) for i in e.indices):
                    spare = len(array) - sum(not isinstance(i, TripleDot) for i in e.indices)
                    if spare < 0:
                        raise SacError("rank")
                    kept, at = [], 0
                    for i in e.indices:
                        if isinstance(i, TripleDot):
                            kept += array[at : at + spare]
                            at += spare
                        else:
                            kept += [array[at]] if isinstance(i, Dot) else []
                            at += 1
                    return (*kept, *array[at:])
                first = self.shape(e.indices[0], env)
                n = first[0] if len(e.indices) == 1 and first else len(e.indices)
                if n > len(array):
                    raise SacError("rank")
                return array[n:]
            case SetExpr():
                clause = e.partitions[-1]
                _, high, body = self.bounds(clause, env, None)
                return tuple(n for _, _, n in place(clause.pattern, high, body))
            case WithLoop():
                if e.operator == "genarray":
                    frame = tuple(self.value(e.arguments[0], env).data)
                    if len(e.arguments) > 1:
                        return frame + self.shape(e.arguments[1], env)
                    return frame + (self.with_body_shape(e.generators[0], len(frame), env) if e.generators else ())
                return self.shape(e.arguments[0], env)
            case Apply():
                return self.apply_shape(e, env)
        raise AssertionError(e)

    def apply_shape(self, e, env):
        name = e.function.name
        if name in ("sum", "prod", "minval", "maxval", "all", "any") and name not in self.functions:
            return ()
        shapes = [self.shape(a, env) for a in e.arguments]
        function = self.own(name, [Array(s, []) for s in shapes])
        if function:
            inner = {}
            for p, a, s in zip(function.params, e.arguments, shapes, strict=True):
                try:
                    inner[p.name.name] = self.value(a, env)
                except NeedsValue:
                    inner[p.name.name] = Shaped(s)
            for statement in function.body:
                self.shaped_statement(statement, inner)
            return self.shape(function.results[0], inner)
        match name:
            case "shape" | "_shape_A_":
                return (len(shapes[0]),)
            case "dim" | "_dim_A_" | "sum" | "prod" | "minval" | "maxval":
                return ()
            case "sel" | "_sel_VxA_":
                return shapes[1][shapes[0][0] :]
            case "take" | "_take_SxV_" | "drop" | "_drop_SxV_":
                v = self.value(e.arguments[0], env)
                array = Array(shapes[1], [0] * math.prod(shapes[1]))
                return take_drop("take" in name, list(v.data), array).shape
            case "_cat_VxV_":
                return (shapes[0][0] + shapes[1][0],)
            case "transpose":
                return shapes[0][::-1]
            case "iota" | "reshape":
                return tuple(self.value(e.arguments[0], env).data)
            case "tile":
                wanted = tuple(self.value(e.arguments[0], env).data)
                return (*wanted, *shapes[2][len(wanted) :])
            case "rotate" | "shift":
                return shapes[-1]
            case "genarray":
                return (*self.value(e.arguments[0], env).data, *shapes[1])
        return next((s for s in shapes if s), ())


# Helpers


BASES = {bool: ("bool",), int: ("int", "long"), float: ("double", "float")}


def fits_base(type_, array):
    """Whether the elements may have this base type; of an empty array anything is possible."""
    return isinstance(array, Shaped) or not array.data or type_.base in BASES[type(array.data[0])]


def accepts(type_, array):
    rank = len(array.shape)
    if not fits_base(type_, array) and not (type(array.data[0]) is int and type_.base in BASES[float]):
        return False
    if type_.shape == "*":
        return True
    if type_.shape == "+":
        return rank > 0
    return len(type_.shape) == rank and all(a is None or a == b for a, b in zip(type_.shape, array.shape, strict=True))


def specific(type_):
    return {"*": 0, "+": 1}.get(type_.shape, 3)


def binary(op, x, y):
    match op:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case "/":
            if isinstance(x, int) and isinstance(y, int):
                return toward_zero(x, y)
            return x / y
        case "%":
            return x - y * toward_zero(x, y) if y else 0
        case "&&":
            return x and y
        case "||":
            return x or y
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[op]


def toward_zero(x, y):
    """The quotient of C; by zero it is 0."""
    if not y:
        return 0
    return abs(x) // abs(y) if (x < 0) == (y < 0) else -(abs(x) // abs(y))


def tile(sizes, starts, array):
    if len(sizes) != len(starts) or len(sizes) > len(array.shape):
        raise SacError("rank")
    high = [a + n for a, n in zip(starts, sizes, strict=True)]
    if any(n < 0 for n in sizes) or any(a < 0 or b > n for a, b, n in zip(starts, high, array.shape, strict=False)):
        raise SacError("tile")
    rest = array.shape[len(sizes) :]
    low, high = [*starts, *(0 for _ in rest)], [*high, *rest]
    return Array((*sizes, *rest), [array.at(p).data[0] for p in positions(low, high)])


def moved(word, operands):
    """`rotate` and `shift`: what stood at `i` stands at `i + count`."""
    *counts, array = operands
    boundary = 0
    if word == "shift" and len(counts) > 1:
        boundary = counts.pop().data[0]
    if len(counts) == 2:
        axis, by = counts[0].data[0], counts[1].data[0]
        if not 0 <= axis < len(array.shape):
            raise SacError("axis")
        steps = [by if k == axis else 0 for k in range(len(array.shape))]
    else:
        steps = list(counts[0].data)
        if len(steps) > len(array.shape):
            raise SacError("rank")
        steps += [0] * (len(array.shape) - len(steps))
    data = []
    for at in positions([0] * len(array.shape), array.shape):
        source = [i - c for i, c in zip(at, steps, strict=True)]
        if word == "rotate":
            source = [i % n for i, n in zip(source, array.shape, strict=True)]
        inside = all(0 <= i < n for i, n in zip(source, array.shape, strict=True))
        data.append(array.at(source).data[0] if inside else boundary)
    return Array(array.shape, data)


def join(a, b):
    if not a.shape or len(a.shape) != len(b.shape) or a.shape[1:] != b.shape[1:]:
        raise SacError("++")
    return Array((a.shape[0] + b.shape[0], *a.shape[1:]), a.data + b.data)


def take_drop(is_take, counts, array):
    if len(counts) > len(array.shape):
        raise SacError("rank")
    low, shape = [0] * len(array.shape), list(array.shape)
    for k, v in enumerate(counts):
        n = array.shape[k]
        if is_take:
            if abs(v) > n:
                raise SacError("take")
            low[k], shape[k] = (0 if v >= 0 else n - abs(v)), abs(v)
        else:
            low[k], shape[k] = max(v, 0), max(n - abs(v), 0)
    high = [a + n for a, n in zip(low, shape, strict=True)]
    return Array(tuple(shape), [array.at(p).data[0] for p in positions(low, high)])


def symbols(pattern, count):
    if pattern.vector:
        return [(pattern.names[0].name, k) for k in range(count)]
    return [(n.name, None) for n in pattern.names]


def bound_names(pattern, at, env):
    if pattern.whole:
        env = {**env, pattern.whole.name: vec(at)}
    if pattern.vector:
        return {**env, pattern.names[0].name: vec(at)}
    return {**env, **{n.name: scalar(i) for n, i in zip(pattern.names, at, strict=True)}}


def shape_env(pattern, count, env):
    if pattern.whole:
        env = {**env, pattern.whole.name: Shaped((count,))}
    if pattern.vector:
        return {**env, pattern.names[0].name: Shaped((count,))}
    return {**env, **{n.name: Shaped(()) for n in pattern.names}}


@dataclass(frozen=True)
class Form:
    """An index name while bounds are sought: its symbols."""

    shape: tuple
    parts: list


def affine_env(pattern, count, env):
    names = symbols(pattern, count)
    forms = [({n: 1}, 0) for n in names]
    if pattern.whole:
        env = {**env, pattern.whole.name: Form((count,), forms)}
    if pattern.vector:
        return {**env, pattern.names[0].name: Form((count,), forms)}
    return {**env, **{n[0]: Form((), [f]) for n, f in zip(names, forms, strict=True)}}


def shapes_only(env):
    return {name: Shaped(x.shape) if isinstance(x, Form) else x for name, x in env.items()}


def plain(evaluator, node, env):
    try:
        return list(evaluator.value(node, shapes_only(env)).data)
    except NeedsValue:
        return None


def affine_vector(evaluator, node, env):
    """The components of an index vector as affine forms, or None."""
    match node:
        case Name() if isinstance(env.get(node.name), Form):
            found = env[node.name]
            return list(found.parts) if found.shape else None
        case ArrayLiteral():
            return [affine(evaluator, x, env) for x in node.elements]
        case Apply() if node.function.name == "reverse":
            found = affine_vector(evaluator, node.arguments[0], env)
            return None if found is None else found[::-1]
        case Apply() if node.function.name in ("take", "drop"):
            found = affine_vector(evaluator, node.arguments[1], env)
            counts = affine_vector(evaluator, node.arguments[0], env)
            if found is None or counts is None or len(counts) != 1 or counts[0][0]:
                return None
            kept = take_drop(node.function.name == "take", [counts[0][1]], vec(range(len(found))))
            return [found[at] for at in kept.data]
        case Binary(op="++"):
            left, right = affine_vector(evaluator, node.left, env), affine_vector(evaluator, node.right, env)
            return None if left is None or right is None else left + right
        case Binary(op="+" | "-"):
            left, right = affine_vector(evaluator, node.left, env), affine_vector(evaluator, node.right, env)
            if left is None and right is None:
                return None
            n = len(left if left is not None else right)
            left = left if left is not None else [affine(evaluator, node.left, env)] * n
            right = right if right is not None else [affine(evaluator, node.right, env)] * n
            return [combine(node.op, a, b) for a, b in zip(left, right, strict=True)]
    try:
        found = evaluator.value(node, shapes_only(env))
    except (NeedsValue, KeyError):
        return None
    return [({}, x) for x in found.data] if found.shape else None


def affine(evaluator, node, env):
    """(coefficients, constant) of a scalar index expression, or None."""
    try:
        return {}, evaluator.value(node, shapes_only(env)).data[0]
    except (NeedsValue, KeyError):
        pass
    match node:
        case Name():
            found = env.get(node.name)
            return found.parts[0] if isinstance(found, Form) and not found.shape else None
        case Selection() if (
            isinstance(node.array, Name) and isinstance(env.get(node.array.name), Form) and len(node.indices) == 1
        ):
            k = affine(evaluator, node.indices[0], env)
            return env[node.array.name].parts[k[1]] if k and not k[0] else None
        case Unary(op="-"):
            return combine("-", ({}, 0), affine(evaluator, node.operand, env))
        case Binary(op="+" | "-"):
            return combine(node.op, affine(evaluator, node.left, env), affine(evaluator, node.right, env))
        case Binary(op="*"):
            a, b = affine(evaluator, node.left, env), affine(evaluator, node.right, env)
            for x, y in ((a, b), (b, a)):
                if x is not None and y is not None and not x[0]:
                    return {n: c * x[1] for n, c in y[0].items()}, y[1] * x[1]
    return None


def combine(op, a, b):
    if a is None or b is None:
        return None
    sign = 1 if op == "+" else -1
    names = {**a[0]}
    for n, c in b[0].items():
        names[n] = names.get(n, 0) + sign * c
    return {n: c for n, c in names.items() if c}, a[1] + sign * b[1]


def place(pattern, high, body):
    """For each axis of the result: ("name" or "body", number, extent)."""
    if pattern.vector:
        return [("name", k, n) for k, n in enumerate(high)] + [("body", k, n) for k, n in enumerate(body)]
    dots = sum(isinstance(i, Dot) for i in pattern.items)
    if dots > len(body):
        raise SacError("pattern rank")
    found, index, axis = [], 0, 0
    for item in pattern.items:
        if isinstance(item, Name):
            found.append(("name", index, high[index]))
            index += 1
            continue
        for _ in range(len(body) - dots if isinstance(item, TripleDot) else 1):
            found.append(("body", axis, body[axis]))
            axis += 1
    return found + [("body", k, body[k]) for k in range(axis, len(body))]


def children_of(e):
    match e:
        case Unary():
            return [e.operand]
        case Binary():
            return [e.left, e.right]
        case Conditional():
            return [e.condition, e.then, e.otherwise]
        case Apply():
            return list(e.arguments)
        case Selection():
            return [e.array, *(i for i in e.indices if not isinstance(i, Dot | TripleDot))]
        case ArrayLiteral():
            return list(e.elements)
        case SetExpr():
            return [p.body for p in e.partitions]
        case WithLoop():
            return [g.body for g in e.generators]
    return []


def nodes_of(e):
    yield e
    for child in children_of(e):
        yield from nodes_of(child)


def mentions(e, name):
    return any(isinstance(n, Name) and n.name == name for n in nodes_of(e))
