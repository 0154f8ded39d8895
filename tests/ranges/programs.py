"""Programs for the tests of ranges: text -> checked program."""

from __future__ import annotations

from functools import reduce

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.program import Binary, Cast, Const, DType, Index, IndexVar, Program, Read, Select, Size, Statement, Tensor, Unary
from tc_jupyter.syntax import parse_tc, tree

TYPES = {"int": "int32", "float": "float32", "double": "float64", "byte": "uint8", "half": "float16"}


def program(text: str) -> Program:
    """The program of a cell with one def; a bare statement list gets a def around it."""
    try:
        from tc_jupyter.program import check_tc
    except ImportError:
        return _by_hand(text)
    parsed = parse_tc(SourceText(text))
    assert not [d for d in parsed.diagnostics if d.is_error], parsed.diagnostics
    checked = check_tc(parsed.unit, SourceText(text))
    return checked.programs[0]


def define(signature: str, body: str, results: str = "A") -> Program:
    """`define("float(N) B", "A(i) = B(i)")`."""
    return program(f"def f({signature}) -> ({results}) {{ {body} }}")


def _by_hand(text: str) -> Program:
    parsed = parse_tc(SourceText(text))
    assert not parsed.diagnostics, parsed.diagnostics
    return _Builder(parsed.unit.defs[0]).build(text)


class _Builder:
    def __init__(self, definition):
        self.definition = definition
        self.sizes: list[str] = []
        self.tensors: dict[str, Tensor] = {}

    def build(self, text):
        for param in self.definition.params:
            dims = []
            for dim in param.type.dimensions:
                if isinstance(dim, tree.Name):
                    if dim.name not in self.sizes:
                        self.sizes.append(dim.name)
                    dims.append(Size(dim.name, dim.span))
                else:
                    dims.append(Const(dim.value, DType.INT64, dim.span))
            dtype = DType(TYPES.get(param.type.scalar, param.type.scalar))
            self.tensors[param.name.name] = Tensor(param.name.name, dtype, len(dims), "input", tuple(dims), span=param.name.span)
        results = tuple(r.name.name for r in self.definition.results)
        statements = []
        for node in self.definition.statements:
            statements.append(self.statement(node, results, statements))
        return Program(
            self.definition.name.name, "tc", tuple(self.sizes), tuple(p.name.name for p in self.definition.params),
            results, tuple(self.tensors.values()), tuple(statements), source=SourceText(text),
        )

    def statement(self, node, results, before):
        self.lets, where, exists, self.names = {}, {}, [], []
        for clause in node.clauses:
            if isinstance(clause, tree.Let):
                self.lets[clause.name.name] = clause.value
            elif isinstance(clause, tree.Where):
                where[clause.index.name] = (clause.lower, clause.upper)
        left = [i.name for i in node.indices or ()]
        self.names = list(left)
        where = {n: tuple(self.cast(self.expr(e), DType.INT64) for e in ends) for n, ends in where.items()}
        self.names = list(left)
        value = self.expr(node.value)
        exists = [self.expr(c.value) for c in node.clauses if isinstance(c, tree.Exists)]
        target = node.target.name
        if target not in self.tensors:
            kind = "output" if target in results else "temporary"
            self.tensors[target] = Tensor(target, value.dtype, len(left), kind, span=node.target.span)
        spans = {n.name: n.span for n in tree.walk(node.value) if isinstance(n, tree.Name)} | {i.name: i.span for i in node.indices or ()}
        indices = tuple(
            Index(n, "output" if n in left else "reduction", where.get(n), spans.get(n, node.span)) for n in self.names
        )
        count = sum(s.target == target for s in before)
        operator = node.operator.rstrip("!").rstrip("=") or "="
        name = target if not count else f"{target}#{count + 1}"
        return Statement(name, target, indices, operator, "!" in node.operator or not count, "!" not in node.operator and operator != "=", value, tuple(exists), span=node.span)

    def cast(self, expr, dtype):
        if expr.dtype is dtype:
            return expr
        if isinstance(expr, Const) and (dtype.is_float or dtype.is_integer):
            return Const(float(expr.value) if dtype.is_float else int(expr.value), dtype)
        return Cast(expr, dtype)

    def expr(self, node):
        match node:
            case tree.Number():
                kind = "bool" if isinstance(node.value, bool) else "float32" if isinstance(node.value, float) else "int32"
                return Const(node.value, DType(kind), node.span)
            case tree.Name():
                if node.name in self.lets:
                    return self.expr(self.lets[node.name])
                if node.name in self.sizes:
                    return Size(node.name, node.span)
                if node.name in self.tensors:
                    return Read(node.name, (), self.tensors[node.name].dtype, node.span)
                if node.name not in self.names:
                    self.names.append(node.name)
                return IndexVar(node.name, node.span)
            case tree.Extent():
                return Size(f"{node.tensor.name}.{node.dimension}", node.span)
            case tree.Unary():
                operand = self.expr(node.operand)
                return Unary(node.op, operand, operand.dtype, node.span)
            case tree.Conditional():
                then, otherwise = self.common(self.expr(node.then), self.expr(node.otherwise))
                return Select(self.expr(node.condition), then, otherwise, then.dtype, node.span)
            case tree.Binary():
                return self.binary(node)
            case tree.Apply():
                name = node.function.name
                if name in self.tensors:
                    indices = tuple(self.cast(self.expr(a), DType.INT64) for a in node.arguments)
                    return Read(name, indices, self.tensors[name].dtype, node.span)
                arguments = [self.expr(a) for a in node.arguments]
                if name in ("min", "max"):
                    def join(a, b):
                        a, b = self.common(a, b)
                        return Binary(name, a, b, a.dtype)
                    return reduce(join, arguments)
                return Cast(arguments[0], DType(TYPES.get(name, name)), node.span)

    def binary(self, node):
        left, right = self.expr(node.left), self.expr(node.right)
        if node.op in ("&&", "||"):
            return Binary(node.op, left, right, DType.BOOL, node.span)
        left, right = self.common(left, right)
        if node.op in ("<", "<=", ">", ">=", "==", "!="):
            return Binary(node.op, left, right, DType.BOOL, node.span)
        op = "//" if node.op == "/" and left.dtype.is_integer else node.op
        return Binary(op, left, right, left.dtype, node.span)

    def common(self, left, right):
        order = list(DType)
        weak = [isinstance(e, Const) for e in (left, right)]
        if weak[0] != weak[1]:
            dtype = right.dtype if weak[0] else left.dtype
            if (left.dtype.is_float or right.dtype.is_float) and not dtype.is_float:
                dtype = DType.FLOAT32
        else:
            dtype = max((left.dtype, right.dtype), key=order.index)
        return self.cast(left, dtype), self.cast(right, dtype)
