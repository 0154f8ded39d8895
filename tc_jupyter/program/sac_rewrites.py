"""The three rewrites of the paper as texts: bound inference, elimination of dots, with-loops.

Every step is again a `%%sac` function. At definition bounds are expressions (`shape(A)[0]`); for a call they are numbers, taken
from what the specialisation found. A name that `...` stands for is one name per axis where the rank is known; else `t1` stands for
a vector and a remark says so.

Worked example: `{ [i, .] -> a[i] + 1 }` becomes `{ [i, .] -> a[i] + 1 | [shape(a)[0]] * 0 <= [i] < [shape(a)[0]] }`, then
`{ [i, t1] -> (a[i] + 1)[[t1]] | [([shape(a)[0]] * 0)[0], 0] <= .. }`, then a with-loop.

Source: the paper, section 5.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import assert_never

from tc_jupyter.diagnostics import Span
from tc_jupyter.syntax.sac_printer import sac_to_text
from tc_jupyter.syntax.sac_tree import (
    Apply,
    ArrayLiteral,
    Assign,
    Binary,
    BrokenAssign,
    Conditional,
    Dot,
    Generator,
    If,
    Loop,
    PartitionClause,
    Pattern,
    SacExpression,
    SacFunction,
    Selection,
    SetExpr,
    Statement,
    TripleDot,
    Unary,
    Unpack,
    WithGenerator,
    WithLoop,
    assigned_names,
    sac_expressions,
    sac_walk,
    statement_expressions,
)
from tc_jupyter.syntax.tree import Name, Number

from .sac_primitives import primitive
from .sac_signature import Cell, Signature, SolvedPartition
from .sac_sizes import value as number_of
from .specialize import solved_partitions

Bound = SacExpression | Dot


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """A step: its short name, its words, the function after it, and which characters of that text are new."""

    name: str
    title: str
    text: str
    changed: tuple[Span, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrites:
    """The source and the three steps (`BI`, `ED`, `W`)."""

    steps: tuple[RewriteStep, ...]

    @property
    def text(self) -> str:
        """All steps under each other, for `f.source("rewrites")`."""
        parts: list[str] = []
        for step in self.steps:
            remarks = "".join(f"\n// {remark}" for remark in step.remarks)
            parts.append(f"// {step.name}: {step.title}{remarks}\n{step.text}")
        return "\n\n".join(parts) + "\n"


def rewrites(cell: Cell, function: SacFunction, signature: Signature | None = None) -> Rewrites:
    """The rewrites of a function; with a signature whose extents are given, with the numbers of that call."""
    solved = solved_partitions(cell, function, signature) if signature is not None else {}
    source = RewriteStep("source", "as written", sac_to_text(function))
    steps, current = [source], function
    for name, title, worker in (
        ("BI", "bounds are inferred", _Bounds(solved)),
        ("ED", "dots become names", _Dots(solved)),
        ("W", "comprehensions become with-loops", _Loops(solved)),
    ):
        current = _mapped_function(current, worker.rewrite)
        text = sac_to_text(current)
        remarks = (*worker.remarks, *(stored_remarks(function) if name == "W" else ()))
        steps.append(RewriteStep(name, title, text, changed_spans(steps[-1].text, text), tuple(dict.fromkeys(remarks))))
    return Rewrites(tuple(steps))


def changed_spans(before: str, after: str) -> tuple[Span, ...]:
    """Where `after` has words that `before` has not."""
    old, new = _words(before), _words(after)
    matcher = SequenceMatcher(None, [word for word, _ in old], [word for word, _ in new], autojunk=False)
    found: list[Span] = []
    for tag, _, _, begin, end in matcher.get_opcodes():
        if tag in ("insert", "replace"):
            found.append(Span(new[begin][1], new[end - 1][1] + len(new[end - 1][0])))
    return tuple(found)


def _words(text: str) -> list[tuple[str, int]]:
    return [(match.group(), match.start()) for match in re.finditer(r"\w+|\.\.\.|->|[<>=!]=|[^\w\s]", text)]


# Trees


Rule = Callable[[SetExpr, frozenset[str]], SacExpression]
"""The new form of a comprehension; the names around it that have rank 0 are told."""


def _mapped_function(function: SacFunction, rule: Rule) -> SacFunction:
    scalars = frozenset(p.name.name for p in function.params if p.type is not None and p.type.rank == 0)
    body, scalars = _body_mapped(function.body, rule, scalars)
    return replace(function, body=body, results=tuple(_mapped(result, rule, scalars) for result in function.results))


def _body_mapped(
    statements: Sequence[Statement], rule: Rule, scalars: frozenset[str]
) -> tuple[tuple[Statement, ...], frozenset[str]]:
    """The statements with `rule` applied, and which names have rank 0 behind them."""
    found: list[Statement] = []
    for statement in statements:
        assigned = {name.name for name in assigned_names((statement,))}
        inside = scalars - assigned if isinstance(statement, Loop) else scalars
        if isinstance(statement, If):
            then, otherwise = (_body_mapped(part, rule, scalars)[0] for part in (statement.then, statement.otherwise))
            condition = _mapped(statement.condition, rule, scalars)
            found.append(replace(statement, condition=condition, then=then, otherwise=otherwise))
        else:
            found.append(_statement_mapped(statement, lambda e, known=inside: _mapped(e, rule, known)))
        is_scalar = isinstance(statement, Assign) and shape_of(statement.value, scalars) == ArrayLiteral(())
        scalars = scalars | assigned if is_scalar else scalars - assigned
    return tuple(found), scalars


def _statements_mapped(
    statements: Sequence[Statement], visit: Callable[[SacExpression], SacExpression]
) -> tuple[Statement, ...]:
    return tuple(_statement_mapped(statement, visit) for statement in statements)


def _statement_mapped(statement: Statement, visit: Callable[[SacExpression], SacExpression]) -> Statement:
    match statement:
        case Assign():
            return replace(statement, value=visit(statement.value))
        case Unpack():
            value = visit(statement.value)
            assert isinstance(value, Apply)
            return replace(statement, value=value)
        case If():
            then, otherwise = (_statements_mapped(part, visit) for part in (statement.then, statement.otherwise))
            return replace(statement, condition=visit(statement.condition), then=then, otherwise=otherwise)
        case Loop():
            return replace(
                statement,
                condition=visit(statement.condition),
                start=_assigns_mapped(statement.start, visit),
                step=_assigns_mapped(statement.step, visit),
                body=_statements_mapped(statement.body, visit),
            )
        case BrokenAssign():
            return statement
    assert_never(statement)


def _assigns_mapped(assigns: Sequence[Assign], visit: Callable[[SacExpression], SacExpression]) -> tuple[Assign, ...]:
    return tuple(replace(assign, value=visit(assign.value)) for assign in assigns)


def _mapped(node: SacExpression, rule: Rule, scalars: frozenset[str]) -> SacExpression:
    """`rule` applied to every comprehension, outer ones first."""

    def visit(inner: SacExpression) -> SacExpression:
        return _mapped(inner, rule, scalars)

    if isinstance(node, SetExpr):
        node = rule(node, scalars)
    if isinstance(node, SetExpr):
        parts = tuple(
            replace(
                p,
                body=_mapped(p.body, rule, _scalars_within(p.pattern, scalars)),
                generator=_generator_mapped(p.generator, visit),
            )
            for p in node.partitions
        )
        return replace(node, partitions=parts)
    if isinstance(node, WithLoop):
        generators = tuple(_block_mapped(g, rule, scalars) for g in node.generators)
        return replace(node, generators=generators, arguments=tuple(visit(a) for a in node.arguments))
    return _children_mapped(node, visit)


def _scalars_within(pattern: Pattern, scalars: frozenset[str]) -> frozenset[str]:
    """The names of rank 0 below a pattern: of those that it binds, its components are."""
    bound = frozenset(name.name for name in pattern.bound)
    return scalars - bound if pattern.vector else scalars - bound | {name.name for name in pattern.names}


def _block_mapped(node: WithGenerator, rule: Rule, scalars: frozenset[str]) -> WithGenerator:
    generator = _generator_mapped(node.generator, lambda e: _mapped(e, rule, scalars))
    assert generator is not None
    assigns, known = _body_mapped(node.assigns, rule, _scalars_within(node.pattern, scalars))
    return replace(node, generator=generator, assigns=assigns, body=_mapped(node.body, rule, known))


def _children_mapped(node: SacExpression, visit: Callable[[SacExpression], SacExpression]) -> SacExpression:
    match node:
        case Name() | Number():
            return node
        case Unary():
            return replace(node, operand=visit(node.operand))
        case Binary():
            return replace(node, left=visit(node.left), right=visit(node.right))
        case Conditional():
            return replace(
                node, condition=visit(node.condition), then=visit(node.then), otherwise=visit(node.otherwise)
            )
        case Apply():
            return replace(node, arguments=tuple(visit(a) for a in node.arguments))
        case Selection():
            indices = tuple(i if isinstance(i, Dot | TripleDot) else visit(i) for i in node.indices)
            return replace(node, array=visit(node.array), indices=indices)
        case ArrayLiteral():
            return replace(node, elements=tuple(visit(e) for e in node.elements))
        case SetExpr():
            parts = tuple(
                replace(p, body=visit(p.body), generator=_generator_mapped(p.generator, visit)) for p in node.partitions
            )
            return replace(node, partitions=parts)
        case WithLoop():
            generators = tuple(_with_mapped(g, visit) for g in node.generators)
            return replace(node, generators=generators, arguments=tuple(visit(a) for a in node.arguments))
    assert_never(node)


def _with_mapped(node: WithGenerator, visit: Callable[[SacExpression], SacExpression]) -> WithGenerator:
    generator = _generator_mapped(node.generator, visit)
    assert generator is not None
    assigns = _statements_mapped(node.assigns, visit)
    return replace(node, generator=generator, assigns=assigns, body=visit(node.body))


def _generator_mapped(generator: Generator | None, visit: Callable[[SacExpression], SacExpression]) -> Generator | None:
    if generator is None:
        return None

    def bound(node: Bound | None) -> Bound | None:
        return node if node is None or isinstance(node, Dot) else visit(node)

    def grid(node: SacExpression | None) -> SacExpression | None:
        return node if node is None else visit(node)

    return replace(
        generator,
        lower=bound(generator.lower),
        upper=bound(generator.upper),
        step=grid(generator.step),
        width=grid(generator.width),
    )


def number(value: int) -> SacExpression:
    """An integer literal."""
    literal = Number(str(abs(value)), abs(value))
    return Unary("-", literal) if value < 0 else literal


def call(name: str, *arguments: SacExpression) -> Apply[SacExpression]:
    """`name(arguments)`."""
    return Apply(Name(name), arguments)


def pick(vector: SacExpression, position: int) -> SacExpression:
    """`vector[position]`, or the element itself of a literal."""
    if isinstance(vector, ArrayLiteral) and position < len(vector.elements):
        return vector.elements[position]
    if isinstance(vector, Binary) and vector.op == "*" and vector.right == number(0):
        return number(0)
    return Selection(vector, (number(position),))


def substituted(node: SacExpression, values: Mapping[str, SacExpression]) -> SacExpression:
    """Free names replaced by expressions; a name that is bound inside and occurs in one of them is another name then."""
    if isinstance(node, Name):
        return values.get(node.name, node)
    if isinstance(node, SetExpr):
        return replace(node, partitions=tuple(_clause_substituted(clause, values) for clause in node.partitions))
    if isinstance(node, WithLoop):
        arguments = tuple(substituted(argument, values) for argument in node.arguments)
        return replace(
            node, generators=tuple(_with_substituted(g, values) for g in node.generators), arguments=arguments
        )
    return _children_mapped(node, lambda e: substituted(e, values))


def _clause_substituted(clause: PartitionClause, values: Mapping[str, SacExpression]) -> PartitionClause:
    pattern, inner = _bound_apart(clause.pattern, _names_in(clause.body), values)
    generator = _generator_mapped(clause.generator, lambda e: substituted(e, values))
    return replace(clause, pattern=pattern, body=substituted(clause.body, inner), generator=generator)


def _with_substituted(generator: WithGenerator, values: Mapping[str, SacExpression]) -> WithGenerator:
    roots = (generator.body, *statement_expressions(generator.assigns))
    pattern, inner = _bound_apart(generator.pattern, set().union(*map(_names_in, roots)), values)
    bounds = _generator_mapped(generator.generator, lambda e: substituted(e, values))
    assert bounds is not None
    assigns = _statements_mapped(generator.assigns, lambda e: substituted(e, inner))
    assigned = {name.name for name in assigned_names(generator.assigns)}
    body = substituted(generator.body, {name: value for name, value in inner.items() if name not in assigned})
    return replace(generator, pattern=pattern, generator=bounds, assigns=assigns, body=body)


def _bound_apart(
    pattern: Pattern, used: set[str], values: Mapping[str, SacExpression]
) -> tuple[Pattern, dict[str, SacExpression]]:
    """A pattern whose names occur in none of the values, and what is to be substituted below it."""
    bound = {name.name for name in pattern.bound}
    inner = {name: value for name, value in values.items() if name not in bound and name in used}
    taken = used | bound | set().union(*map(_names_in, inner.values()))
    renamed: dict[str, Name] = {}
    for name in sorted(bound & set().union(*map(_names_in, inner.values()))):
        number = next(k for k in range(2, len(taken) + 3) if f"{name}_{k}" not in taken)
        renamed[name] = Name(f"{name}_{number}")
        taken.add(renamed[name].name)
    return _pattern_renamed(pattern, renamed), {**inner, **renamed}


def _pattern_renamed(pattern: Pattern, names: Mapping[str, Name]) -> Pattern:
    items = tuple(names.get(item.name, item) if isinstance(item, Name) else item for item in pattern.items)
    whole = None if pattern.whole is None else names.get(pattern.whole.name, pattern.whole)
    return replace(pattern, items=items, whole=whole)


def _names_in(node: SacExpression) -> set[str]:
    return {inner.name for inner in sac_walk(node) if isinstance(inner, Name)}


# Find-shapes on the tree


@dataclass(frozen=True, slots=True)
class _Sum:
    """`constant + sum of factor*name`, of the names that bounds are sought for."""

    factors: tuple[tuple[str, int], ...]
    constant: int


def find_shapes(names: Sequence[str], body: SacExpression) -> list[SacExpression | None]:
    """The upper bounds that the selections in `body` tell for component names; `None` where they tell nothing."""
    body = _named_apart(body, Counter(names))
    everyone = list(names)
    inner = _inner_names(body)
    everyone += [name for name in inner if name not in everyone]
    limits: dict[str, list[SacExpression]] = {}
    solved: dict[str, SacExpression] = {}
    uses = list(_uses(body, set(everyone)))
    for name, bound in inner.items():
        if bound is not None:
            solved[name] = bound
    while True:
        found: dict[str, list[SacExpression]] = {}
        for form, extent in uses:
            unsolved = [name for name, _ in form.factors if name not in solved]
            if len(unsolved) != 1:
                continue
            limit = _limit(form, unsolved[0], extent, solved)
            if limit is not None and limit not in found.setdefault(unsolved[0], []):
                found[unsolved[0]].append(limit)
        if not found:
            break
        for name, several in found.items():
            if several:
                limits[name] = several
                solved[name] = _minimum(several)
        if not any(found.values()):
            break
    known = {name: solved[name] for name in names if name in limits}
    return [known[name] if name in known and not _mentions(known[name], set(everyone)) else None for name in names]


def _named_apart(node: SacExpression, seen: Counter[str]) -> SacExpression:
    """The same expression, where no two comprehensions, and none of them and `seen`, bind one name."""

    def visit(inner: SacExpression) -> SacExpression:
        return _named_apart(inner, seen)

    if not isinstance(node, SetExpr):
        return _children_mapped(node, visit)
    parts: list[PartitionClause] = []
    for clause in node.partitions:
        renamed: dict[str, Name] = {}
        for name in clause.pattern.bound:
            if seen[name.name]:
                renamed[name.name] = Name(f"{name.name}'{seen[name.name]}")  # no name of the text
            seen[name.name] += 1
        pattern = _pattern_renamed(clause.pattern, renamed)
        generator = _generator_mapped(clause.generator, visit)
        parts.append(
            replace(clause, pattern=pattern, body=visit(substituted(clause.body, renamed)), generator=generator)
        )
    return replace(node, partitions=tuple(parts))


def _inner_names(body: SacExpression) -> dict[str, SacExpression | None]:
    """Names of nested comprehensions with their given upper bounds."""
    found: dict[str, SacExpression | None] = {}
    for node in sac_walk(body):
        if isinstance(node, SetExpr):
            for clause in node.partitions:
                upper = clause.generator.upper if clause.generator else None
                for position, name in enumerate(clause.pattern.names if not clause.pattern.vector else ()):
                    found[name.name] = None if upper is None or isinstance(upper, Dot) else pick(upper, position)
    return found


def _uses(body: SacExpression, names: set[str]) -> list[tuple[_Sum, SacExpression]]:
    found: list[tuple[_Sum, SacExpression]] = []
    for node in sac_walk(body):
        if not isinstance(node, Selection) or _mentions(node.array, names):
            continue
        indices = node.indices
        if len(indices) == 1 and isinstance(indices[0], ArrayLiteral):
            indices = indices[0].elements
        for axis, index in enumerate(indices):
            if isinstance(index, TripleDot):
                break
            form = None if isinstance(index, Dot) else _sum(index, names)
            if form is not None and form.factors:
                found.append((form, pick(call("shape", node.array), axis)))
    return found


def _sum(node: SacExpression, names: set[str]) -> _Sum | None:
    match node:
        case Name() if node.name in names:
            return _Sum(((node.name, 1),), 0)
        case Number() if isinstance(node.value, int):
            return _Sum((), int(node.value))
        case Unary(op="-"):
            inner = _sum(node.operand, names)
            return None if inner is None else _scaled(inner, -1)
        case Binary(op="+" | "-"):
            left, right = _sum(node.left, names), _sum(node.right, names)
            return None if left is None or right is None else _added(left, _scaled(right, 1 if node.op == "+" else -1))
        case Binary(op="*"):
            left, right = _sum(node.left, names), _sum(node.right, names)
            if left is None or right is None:
                return None
            if not left.factors:
                return _scaled(right, left.constant)
            return _scaled(left, right.constant) if not right.factors else None
        case _:
            return None


def _scaled(form: _Sum, factor: int) -> _Sum:
    return _Sum(tuple((name, factor * count) for name, count in form.factors if factor * count), factor * form.constant)


def _added(left: _Sum, right: _Sum) -> _Sum:
    factors = dict(left.factors)
    for name, count in right.factors:
        factors[name] = factors.get(name, 0) + count
    return _Sum(tuple((name, count) for name, count in factors.items() if count), left.constant + right.constant)


def _limit(form: _Sum, name: str, extent: SacExpression, solved: Mapping[str, SacExpression]) -> SacExpression | None:
    """Upper bound (excluded) of `name` from `form < extent`, the other names at their worst."""
    factors = dict(form.factors)
    own = factors.pop(name)
    if own <= 0 or any(count < 0 for count in factors.values()):
        return None
    result, constant = extent, -form.constant
    for other, count in factors.items():
        top = solved[other]
        result = Binary("-", result, top if count == 1 else Binary("*", number(count), top))
        constant += count
    if own == 1:
        return _shifted(result, constant)
    return Binary("/", _shifted(result, constant + own - 1), number(own))


def _shifted(node: SacExpression, constant: int) -> SacExpression:
    if constant == 0:
        return node
    return Binary("+" if constant > 0 else "-", node, number(abs(constant)))


def _minimum(several: Sequence[SacExpression]) -> SacExpression:
    result = several[0]
    for other in several[1:]:
        result = call("min", result, other)
    return result


def vector_shape(name: str, body: SacExpression) -> SacExpression | None:
    """The upper bound of an index vector: the smallest shape of the arrays that it selects from."""
    found: list[SacExpression] = []
    for node in sac_walk(body):
        array = None
        if isinstance(node, Selection) and len(node.indices) == 1 and node.indices[0] == Name(name):
            array = node.array
        elif (
            isinstance(node, Apply)
            and (primitive(node.function.name) or node.function.name) == "sel"
            and len(node.arguments) == 2
        ):
            array = node.arguments[1] if node.arguments[0] == Name(name) else None
        if array is not None and not _mentions(array, {name}):
            shape = call("shape", array)
            if shape not in found:
                found.append(shape)
    return _minimum(found) if found else None


def _mentions(node: SacExpression, names: set[str]) -> bool:
    return any(isinstance(inner, Name) and inner.name in names for inner in sac_walk(node))


# Shapes of bodies


def shape_of(node: SacExpression, scalars: frozenset[str]) -> SacExpression:
    """Level S of an expression (section 6 of the paper); `scalars` are names of rank 0."""
    empty = ArrayLiteral(())
    match node:
        case Number():
            return empty
        case Name():
            return empty if node.name in scalars else call("shape", node)
        case Unary():
            return shape_of(node.operand, scalars)
        case Binary(op="++"):
            return call("shape", node)
        case Binary():
            left, right = shape_of(node.left, scalars), shape_of(node.right, scalars)
            return right if left == empty else left
        case Conditional():
            return shape_of(node.then, scalars)
        case ArrayLiteral():
            inner = shape_of(node.elements[0], scalars) if node.elements else empty
            return (
                ArrayLiteral((number(len(node.elements)), *inner.elements))
                if isinstance(inner, ArrayLiteral)
                else call("shape", node)
            )
        case Selection() if not any(isinstance(i, Dot | TripleDot) for i in node.indices):
            return _selected_shape(node, scalars)
        case Apply():
            return _applied_shape(node, scalars)
        case _:
            return call("shape", node)


def _selected_shape(node: Selection, scalars: frozenset[str]) -> SacExpression:
    array = shape_of(node.array, scalars)
    index = node.indices[0]
    is_scalar = not isinstance(index, Dot | TripleDot) and shape_of(index, scalars) == ArrayLiteral(())
    if len(node.indices) > 1 or is_scalar:
        return call("drop", ArrayLiteral((number(len(node.indices)),)), array)
    if isinstance(index, ArrayLiteral):
        return call("drop", ArrayLiteral((number(len(index.elements)),)), array)
    assert not isinstance(index, Dot | TripleDot)
    return call("drop", call("shape", index), array)


def _applied_shape(node: Apply[SacExpression], scalars: frozenset[str]) -> SacExpression:
    word = primitive(node.function.name) or node.function.name
    if word in ("sum", "prod", "minval", "maxval", "dim"):
        return ArrayLiteral(())
    if word == "shape":
        return ArrayLiteral((call("dim", node.arguments[0]),))
    if word == "reverse" and node.arguments:
        return shape_of(node.arguments[0], scalars)
    if word == "genarray" and len(node.arguments) == 2:
        return Binary("++", node.arguments[0], shape_of(node.arguments[1], scalars))
    if word in ("exp", "sqrt", "log", "sin", "cos", "tanh", "abs") and node.arguments:
        return shape_of(node.arguments[0], scalars)
    return call("shape", node)


# The steps


class _Bounds:
    """BI: every partition gets both bounds."""

    def __init__(self, solved: Mapping[Span, SolvedPartition]) -> None:
        self.solved = solved
        self.remarks: list[str] = []

    def rewrite(self, node: SetExpr, scalars: frozenset[str]) -> SacExpression:
        """One comprehension."""
        del scalars  # a bound is inferred for a scalar as for an array
        last = len(node.partitions) - 1
        parts: list[PartitionClause] = []
        for position, clause in enumerate(node.partitions):
            if position == last and clause.generator is None and _is_modarray(clause) is not None:
                parts.append(self.clause(clause, is_last=True))
            else:
                parts.append(self.clause(clause, is_last=position == last))
        return replace(node, partitions=tuple(parts))

    def clause(self, clause: PartitionClause, *, is_last: bool) -> PartitionClause:
        """One partition."""
        whole = clause.pattern.whole
        if whole is not None:  # the components take its place
            vector = ArrayLiteral(clause.pattern.names)
            body = substituted(clause.body, {whole.name: vector})
            clause = replace(clause, pattern=replace(clause.pattern, whole=None), body=body)
        generator = clause.generator or Generator(None, None)
        numbers = self.numbers(clause)
        if numbers is not None:
            lower, upper = numbers
            return replace(clause, generator=replace(generator, lower=lower, upper=upper))
        lower, upper = generator.lower, generator.upper
        if upper is None:
            upper = self.upper(clause, lower) or Dot()
            if isinstance(upper, Dot) and is_last:
                self.remarks.append("the upper bound of the last partition is known at the call")
        if lower is None:
            lower = Dot() if isinstance(upper, Dot) else Binary("*", upper, number(0))
        return replace(clause, generator=replace(generator, lower=lower, upper=upper))

    def numbers(self, clause: PartitionClause) -> tuple[SacExpression, SacExpression] | None:
        found = self.solved.get(clause.span)
        if found is None:
            return None
        lows, highs = [number_of(low) for low, _ in found.bounds], [number_of(high) for _, high in found.bounds]
        if None in lows or None in highs:
            return None
        literal = [ArrayLiteral(tuple(number(n) for n in group if n is not None)) for group in (lows, highs)]
        return literal[0], literal[1]

    def upper(self, clause: PartitionClause, lower: Bound | None) -> SacExpression | None:
        if not clause.pattern.vector:
            found = find_shapes([name.name for name in clause.pattern.names], clause.body)
            known = [bound for bound in found if bound is not None]
            return ArrayLiteral(tuple(known)) if len(known) == len(found) else None
        shape = vector_shape(clause.pattern.names[0].name, clause.body)
        if shape is None or lower is None or isinstance(lower, Dot):
            return shape
        return call("take", call("shape", lower), shape)


class _Dots:
    """ED: fresh names for dots, and the body selected at them."""

    def __init__(self, solved: Mapping[Span, SolvedPartition]) -> None:
        self.solved = solved
        self.remarks: list[str] = []

    def rewrite(self, node: SetExpr, scalars: frozenset[str]) -> SacExpression:
        """One comprehension."""
        return replace(node, partitions=tuple(self.clause(clause, scalars) for clause in node.partitions))

    def clause(self, clause: PartitionClause, scalars: frozenset[str]) -> PartitionClause:
        """One partition; unchanged without dots."""
        items = clause.pattern.items
        if clause.pattern.vector or all(isinstance(item, Name) for item in items):
            return clause
        found = self.solved.get(clause.span)
        dots = sum(isinstance(item, Dot) for item in items)
        if found is not None and any(isinstance(item, TripleDot) for item in items):
            spare = [Dot()] * max(found.body_rank - dots, 0)
            items = tuple(new for item in items for new in (spare if isinstance(item, TripleDot) else [item]))
        return self.named(clause, items, scalars)

    def named(
        self, clause: PartitionClause, items: Sequence[Name | Dot | TripleDot], scalars: frozenset[str]
    ) -> PartitionClause:
        taken = {node.name for node in sac_walk(clause.body) if isinstance(node, Name)} | {
            n.name for n in clause.pattern.names
        }
        names: list[Name] = []
        fresh: list[tuple[Name, bool]] = []
        counter = 0
        for item in items:
            if isinstance(item, Name):
                names.append(item)
                continue
            counter += 1
            while f"t{counter}" in taken:
                counter += 1
            names.append(Name(f"t{counter}"))
            fresh.append((names[-1], isinstance(item, TripleDot)))
        zeros = {name.name: number(0) for name in clause.pattern.names}
        shape = shape_of(substituted(clause.body, zeros), _scalars_within(clause.pattern, scalars))
        found = self.solved.get(clause.span)
        if found is not None and None not in (numbers := [number_of(extent) for extent in found.body_shape]):
            shape = ArrayLiteral(tuple(number(n) for n in numbers if n is not None))
        generator = clause.generator
        if generator is not None:
            generator = self.with_vectors(generator, clause.pattern, scalars)
            step, width = (self.merged(part, items, None, 1) for part in (generator.step, generator.width))
            generator = replace(
                generator,
                lower=self.merged(generator.lower, items, None),
                upper=self.merged(generator.upper, items, shape),
                step=None if isinstance(step, Dot) else step,
                width=None if isinstance(width, Dot) else width,
            )
        index = self.index(fresh)
        pattern = Pattern(tuple(names), False, clause.pattern.span)
        return replace(clause, pattern=pattern, body=Selection(clause.body, (index,)), generator=generator)

    def with_vectors(self, generator: Generator, pattern: Pattern, scalars: frozenset[str]) -> Generator:
        """A scalar bound, step or width as a vector: with a component for each named index."""

        def vector(node: SacExpression) -> SacExpression:
            if shape_of(node, scalars) != ArrayLiteral(()):
                return node
            is_zero = isinstance(node, Binary) and node.op == "*" and node.right == number(0)
            return ArrayLiteral((number(0) if is_zero else node,) * len(pattern.names))

        found = _generator_mapped(generator, vector)
        assert found is not None
        return found

    def index(self, fresh: Sequence[tuple[Name, bool]]) -> SacExpression:
        """`[t1, t2]`, or `[t1] ++ t2` where `t2` stands for all axes of `...`."""
        groups: list[SacExpression] = []
        for name, several in fresh:
            if several:
                self.remarks.append(f"`{name.name}` is a vector: as many axes as the body has left")
                groups.append(name)
            elif groups and isinstance(groups[-1], ArrayLiteral):
                groups[-1] = ArrayLiteral((*groups[-1].elements, name))
            else:
                groups.append(ArrayLiteral((name,)))
        result = groups[0]
        for group in groups[1:]:
            result = Binary("++", result, group)
        return result

    def merged(
        self, bound: Bound | None, items: Sequence[Name | Dot | TripleDot], shape: SacExpression | None, least: int = 0
    ) -> Bound | None:
        """A bound over all axes: `least` (`shape` is `None`) or the extents of the body stand in the new places."""
        if bound is None or isinstance(bound, Dot):
            return bound
        triple = next((k for k, item in enumerate(items) if isinstance(item, TripleDot)), None)
        before = sum(isinstance(item, Dot) for item in items[:triple])
        after = 0 if triple is None else sum(isinstance(item, Dot) for item in items[triple + 1 :])
        groups: list[SacExpression] = []
        row: list[SacExpression] = []
        name, dot = 0, 0
        for item in items:
            if isinstance(item, Name):
                row.append(pick(bound, name))
                name += 1
            elif isinstance(item, Dot):
                row.append(
                    number(least)
                    if shape is None
                    else self.extent(shape, dot, triple is not None and dot >= before, after)
                )
                dot += 1
            else:
                groups += [ArrayLiteral(tuple(row))] if row else []
                row = []
                groups.append(self.middle(shape, before, after, least))
        groups += [ArrayLiteral(tuple(row))] if row else []
        result = groups[0]
        for group in groups[1:]:
            result = Binary("++", result, group)
        return result

    def extent(self, shape: SacExpression, dot: int, from_end: bool, after: int) -> SacExpression:
        if not from_end:
            return pick(shape, dot)
        return pick(call("take", ArrayLiteral((number(-after),)), shape), max(dot - 1, 0) if after > 1 else 0)

    def middle(self, shape: SacExpression | None, before: int, after: int, least: int) -> SacExpression:
        if shape is None:
            self.remarks.append("`0 * t` stands for as many zeros as `...` has axes")
            zeros = Binary("*", number(0), Name("t"))
            return Binary("+", zeros, number(least)) if least else zeros
        result = shape
        if after:
            result = call("drop", ArrayLiteral((number(-after),)), result)
        return call("drop", ArrayLiteral((number(before),)), result) if before else result


class _Loops:
    """W: comprehensions with both bounds and no dots become with-loops."""

    def __init__(self, solved: Mapping[Span, SolvedPartition]) -> None:
        self.solved = solved
        self.remarks: list[str] = []

    def rewrite(self, node: SetExpr, scalars: frozenset[str]) -> SacExpression:
        """One comprehension."""
        last = node.partitions[-1]
        array = _is_modarray(last)
        plain = array is not None and self._covers(last, array)
        parts = node.partitions[:-1] if plain else node.partitions
        generators = tuple(
            WithGenerator(clause.pattern, clause.generator or Generator(Dot(), Dot()), (), clause.body, clause.span)
            for clause in parts
        )
        if plain and array is not None:
            return WithLoop(generators, "modarray", None, (array,), node.span)
        upper = last.generator.upper if last.generator else None
        frame = upper if upper is not None and not isinstance(upper, Dot) else call("shape", Name("result"))
        zeros: dict[str, SacExpression] = (
            {name.name: number(0) for name in last.pattern.names} if not last.pattern.vector else {}
        )
        shape = shape_of(substituted(last.body, zeros), _scalars_within(last.pattern, scalars))
        if last.pattern.vector and upper is not None and not isinstance(upper, Dot):
            lower = last.generator.lower if last.generator else None
            literal = next((bound for bound in (lower, upper) if isinstance(bound, ArrayLiteral)), upper)
            shape = _with_length(shape, last.pattern.names[0].name, literal)
        found = self.solved.get(last.span)
        if isinstance(last.body, Selection) and _is_fresh(last.body):
            shape = ArrayLiteral(())
        elif found is not None and None not in (numbers := [number_of(extent) for extent in found.body_shape]):
            shape = ArrayLiteral(tuple(number(n) for n in numbers if n is not None))
        default = number(0) if shape == ArrayLiteral(()) else call("genarray", shape, number(0))
        return WithLoop(generators, "genarray", None, (frame, default), node.span)

    def _covers(self, last: PartitionClause, array: SacExpression) -> bool:
        """Whether a last partition `iv -> A[iv]` got its bounds from `A` (then it is left out)."""
        generator = last.generator
        if generator is None:
            return True
        if generator.upper == call("shape", array):
            return generator.lower == Binary("*", call("shape", array), number(0)) or isinstance(generator.lower, Dot)
        found = self.solved.get(last.span)
        return found is not None and found.inferred


def _with_length(shape: SacExpression, index: str, upper: SacExpression) -> SacExpression:
    """`shape(iv)` inside a shape replaced by the length that the bound gives the index."""
    length: SacExpression = call("shape", upper)
    if isinstance(upper, ArrayLiteral):
        length = ArrayLiteral((number(len(upper.elements)),))
    elif isinstance(upper, Apply) and upper.function.name == "shape":
        length = ArrayLiteral((call("dim", upper.arguments[0]),))

    def visit(node: SacExpression) -> SacExpression:
        return length if node == call("shape", Name(index)) else _children_mapped(node, visit)

    return visit(shape)


def _is_modarray(clause: PartitionClause) -> SacExpression | None:
    """`A` of a partition `iv -> A[iv]`."""
    body = clause.body
    if (
        clause.pattern.vector
        and isinstance(body, Selection)
        and len(body.indices) == 1
        and body.indices[0] == clause.pattern.names[0]
    ):
        return body.array if not _mentions(body.array, {clause.pattern.names[0].name}) else None
    return None


def _is_fresh(body: Selection) -> bool:
    """Whether a body is `e[[t1, ..]]` as ED makes it."""
    names = [n for i in body.indices if not isinstance(i, Dot | TripleDot) for n in sac_walk(i) if isinstance(n, Name)]
    return bool(names) and all(re.fullmatch(r"t\d+", name.name) for name in names)


def stored_remarks(function: SacFunction) -> tuple[str, ...]:
    """A remark for every reduction of a comprehension: its array is never stored."""
    found: list[str] = []
    for root in sac_expressions(function):
        for node in sac_walk(root):
            reduces = isinstance(node, Apply) and node.function.name in ("sum", "prod", "minval", "maxval")
            if (
                isinstance(node, Apply)
                and reduces
                and node.arguments
                and isinstance(node.arguments[0], SetExpr | WithLoop)
            ):
                found.append(f"the array inside `{node.function.name}(..)` is not stored: it becomes a reduction")
    return tuple(dict.fromkeys(found))
