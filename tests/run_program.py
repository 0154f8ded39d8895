"""Runs a `Program` whose indices all have explicit ranges, point by point: the meaning of statements, for tests only."""

import itertools
import math

import numpy as np

from tc_jupyter.program import Binary, Call, Cast, Const, DType, IndexVar, Read, Select, Size, Unary


class OutOfBounds(Exception):
    pass


def run_program(program, arguments):
    """`arguments`: arrays and scalars in order. Returns the list of results (NumPy arrays)."""
    sizes, arrays, origins = {}, {}, {}
    for name, argument in zip(program.parameters, arguments, strict=True):
        tensor = program.tensor(name)
        array = np.asarray(argument)
        assert array.ndim == tensor.rank, (name, array.shape)
        arrays[name], origins[name] = array, (0,) * array.ndim
        for dim, extent in zip(tensor.dims, array.shape, strict=True):
            if isinstance(dim, Size):
                assert sizes.setdefault(dim.name, extent) == extent
            else:
                assert dim.value == extent, (name, array.shape)
    state = _State(sizes, arrays, origins)
    for tensor in program.tensors:
        if tensor.kind != "input" and tensor.box is not None:
            box = [(state.integer(low), state.integer(high)) for low, high in tensor.box]
            shape = tuple(max(high - low, 0) for low, high in box)
            dtype = np.dtype(tensor.dtype.value)
            arrays[tensor.name] = np.full(shape, 77, dtype)
            origins[tensor.name] = tuple(low for low, _ in box)
    for block, group in itertools.groupby(program.statements, lambda statement: statement.block):
        members = list(group)
        for step in state.steps(members[0]) if block else ({},):
            for statement in members:
                state.statement(program, statement, step)
    return [arrays[name] for name in program.results]


class _State:
    def __init__(self, sizes, arrays, origins):
        self.sizes, self.arrays, self.origins = sizes, arrays, origins

    def integer(self, expr):
        return int(self.eval(expr, {}))

    def steps(self, statement):
        """The values of the steps of a block, in order."""
        ends = {each.name: tuple(map(self.integer, each.where)) for each in statement.indices}
        rounds = itertools.product(*(range(*ends[name])[::way] for name, way in statement.order))
        return (dict(zip(dict(statement.order), at, strict=True)) for at in rounds)

    def statement(self, program, statement, step):
        target = self.arrays[statement.target]
        origin = self.origins[statement.target]

        def ranges(indices):
            return [(step[i.name],) if i.name in step else range(*map(self.integer, i.where)) for i in indices]

        outputs, reductions = statement.output_indices, statement.reduction_indices
        names = [i.name for i in statement.indices]
        for at in itertools.product(*ranges(outputs)):
            spot = tuple(a - o for a, o in zip(at, origin, strict=True))
            if any(not 0 <= s < n for s, n in zip(spot, target.shape, strict=True)):
                raise OutOfBounds(f"write {statement.name} {at}")
            if statement.initialize:
                target[spot] = _identity(statement.operator, target.dtype)
            for inner in itertools.product(*ranges(reductions)):
                env = dict(zip(names, (*at, *inner), strict=True))
                value = self.eval(statement.value, env)
                if statement.operator == "=":
                    target[spot] = value
                elif statement.operator == "fold":
                    extra = {"fold.left": target[spot], "fold.right": value}
                    target[spot] = self.eval(statement.combine, env, extra)
                else:
                    target[spot] = _binary(
                        statement.operator, target[spot], value, program.tensor(statement.target).dtype
                    )

    def eval(self, e, env, extra=None):
        match e:
            case Const():
                return np.dtype(e.dtype.value).type(e.value)
            case Size():
                return np.int64(self.sizes[e.name])
            case IndexVar():
                return np.int64(env[e.name])
            case Read():
                if extra and e.tensor in extra:
                    return extra[e.tensor]
                array = self.arrays[e.tensor]
                at = tuple(
                    int(self.eval(i, env, extra)) - o for i, o in zip(e.indices, self.origins[e.tensor], strict=True)
                )
                if any(not 0 <= a < n for a, n in zip(at, array.shape, strict=True)):
                    raise OutOfBounds(f"read {e.tensor} {at} {array.shape}")
                return array[at]
            case Unary():
                value = self.eval(e.operand, env, extra)
                return not value if e.op == "!" else -value
            case Binary():
                if e.op in ("&&", "||"):
                    left = bool(self.eval(e.left, env, extra))
                    return left if left == (e.op == "||") else bool(self.eval(e.right, env, extra))
                left, right = self.eval(e.left, env, extra), self.eval(e.right, env, extra)
                assert e.left.dtype is e.right.dtype, e
                return _binary(e.op, left, right, e.dtype)
            case Select():
                return self.eval(e.then if self.eval(e.condition, env, extra) else e.otherwise, env, extra)
            case Call():
                args = [self.eval(a, env, extra) for a in e.arguments]
                return _call(e.function, args, np.dtype(e.dtype.value))
            case Cast():
                value = self.eval(e.operand, env, extra)
                if e.dtype is DType.BOOL:
                    return bool(value)
                return np.asarray(value).astype(e.dtype.value)[()]
        raise AssertionError(e)


def _identity(op, dtype):
    if op in "+*":
        return int(op == "*")
    if dtype.kind == "b":
        return op == "min"
    if dtype.kind == "f":
        return math.inf if op == "min" else -math.inf
    return np.iinfo(dtype).max if op == "min" else np.iinfo(dtype).min


def _binary(op, a, b, dtype):
    with np.errstate(all="ignore"):
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                assert dtype.is_float
                return np.divide(a, b)
            case "//":
                assert dtype.is_integer
                return a // b if b else type(a)(0)
            case "%":
                return np.mod(a, b) if dtype.is_float or b else type(a)(0)
            case "min":
                return a and b if dtype is DType.BOOL else np.minimum(a, b)
            case "max":
                return a or b if dtype is DType.BOOL else np.maximum(a, b)
            case "<":
                return a < b
            case "<=":
                return a <= b
            case ">":
                return a > b
            case ">=":
                return a >= b
            case "==":
                return a == b
            case "!=":
                return a != b
    raise AssertionError(op)


def _call(name, args, dtype):
    special = {
        "abs": abs,
        "relu": lambda x: max(x, 0),
        "sign": np.sign,
        "pow": np.power,
        "isnan": np.isnan,
        "rounded": np.asarray,
    }
    function = special.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return np.asarray(function(*args)).astype(dtype)[()]
