"""The assignments of a function, each with the loops and conditions around it.

Threads are loops whose ends the conditions say. What `continue` and `return` skip is under a condition, a loop that is left at the
first match looks for the smallest index, and numbers that only name indices and sizes are put where they are used.

Worked example: `int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i];` has one leaf, `y(i) = x(i)`, in a loop over
`i` and under the condition `i < n`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tc_jupyter.syntax.tree import (
    Apply,
    Binary,
    Conditional,
    Expression,
    Extent,
    Name,
    Number,
    Unary,
    children,
    mapped,
    names_in,
    walk,
)

from .kinds import Kinds, is_cast, is_function, is_integer, values_in
from .parser import OTHER, SHARED, WHILE, Beyond, changed, extreme, number, put
from .polynomials import expression, polynomial
from .tree import Assign, Choice, Declare, Function, Leave, Loop, Statement, mapped_statement

_FIRST = "no point is the last one: what a loop does at its first match is a minimum over indices, as in `p min=! i where X(i) > t`"
ALONE = (
    "an index counts all threads, as `blockIdx.x * blockDim.x + threadIdx.x` does, or the blocks, or the threads of one"
)


_OF_THREADS = ("threadIdx.", "blockIdx.", "blockDim.", "gridDim.")


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A loop around assignments, or the threads that count an index.

    Attributes:
        upper: `None` where conditions say it.
        step: what it counts by, negative where it counts downwards.
    """

    index: str
    lower: Expression
    upper: Expression | None
    step: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An assignment."""

    assign: Assign
    heads: tuple[Head, ...]
    conditions: tuple[Expression, ...]


@dataclass(slots=True)
class Flat:
    """A function without loops and conditions around statements.

    Attributes:
        results: what `return` gives.
        declared: arrays of its own.
        sizes: names that it gives to extents.
    """

    leaves: list[Leaf] = field(default_factory=list[Leaf])
    kinds: Kinds = field(default_factory=lambda: Kinds({}))
    declared: dict[str, Declare] = field(default_factory=dict[str, Declare])
    results: tuple[Expression, ...] = ()
    sizes: dict[str, str] = field(default_factory=dict[str, str])


def flat(function: Function) -> Flat:
    """The leaves of a function."""
    body = _without_skips(_searching(_with_named_threads(_with_whole_threads(function.body))), function.is_kernel)
    return _Flattener(function, body).run()


# --- statements that others mean ------------------------------------------------------------------------------------


def expressions(statement: Statement) -> Iterator[Expression]:
    """All expressions in a statement, those of its targets among them."""
    match statement:
        case Assign():
            yield from (*statement.subscripts, statement.value)
        case Declare():
            yield from statement.extents
        case Loop():
            yield from (statement.lower, statement.upper, statement.step)
            yield from (each for inner in statement.body for each in expressions(inner))
        case Choice():
            yield statement.condition
            yield from (each for inner in (*statement.then, *statement.otherwise) for each in expressions(inner))
        case Leave():
            yield from statement.values


def assigned(body: Iterable[Statement]) -> Iterator[str]:
    """The targets in statements, as often as they are."""
    for each in body:
        match each:
            case Assign():
                yield each.target
                yield from (each.place or ())[:1]
            case Loop():
                yield from assigned(each.body)
            case Choice():
                yield from assigned((*each.then, *each.otherwise))
            case _:
                pass


def _counting(body: Iterable[Statement]) -> Iterator[str]:
    """The names that stand in bounds, extents and subscripts: integers, or arrays of them."""
    for each in body:
        inner: tuple[Statement, ...] = ()
        counts: list[Expression] = []
        match each:
            case Loop():
                inner, counts = each.body, [each.lower, each.upper]
            case Choice():
                inner = (*each.then, *each.otherwise)
            case Declare():
                counts = [*each.extents]
            case Assign():
                counts = [*each.subscripts]
            case Leave():
                pass
        reads = (node for part in expressions(each) for node in walk(part) if isinstance(node, Apply))
        counts += [argument for node in reads if not is_function(node.function.name) for argument in node.arguments]
        nodes = [node for part in counts for node in _whole_numbers(part)]
        yield from (node.name for node in nodes if isinstance(node, Name))
        yield from (node.function.name for node in nodes if isinstance(node, Apply))
        yield from _counting(inner)


def _whole_numbers(node: Expression) -> Iterator[Expression]:
    """An expression and those in it that are integers where it is one: what a cast is of may be a float."""
    yield node
    for each in () if isinstance(node, Apply) and is_cast(node.function.name) else children(node):
        yield from _whole_numbers(each)


def _with_whole_threads(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Statements with the whole number of a thread where its parts have names, as in `pos = tx + ty * bw`."""
    values, found = dict[str, Expression](), list[Statement]()
    for each in body:
        if isinstance(each, Assign) and not each.subscripts and each.operator == "=":
            value = put(each.value, values)
            names = {node.name for node in walk(value) if isinstance(node, Name)}
            if names and all(name.startswith(_OF_THREADS) for name in names):
                values[each.target] = value
                each = replace(each, value=value)
        found.append(each)
    others = [each for each in found if not (isinstance(each, Assign) and each.target in values)]
    used = names_in(part for each in others for part in expressions(each))
    return tuple(each for each in found if each in others or (isinstance(each, Assign) and each.target in used))


def _with_named_threads(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Statements with an index in the place of a number of a thread in a subscript."""
    words = {name for each in body for part in expressions(each) for name in names_in((part,))}
    letters, named = iter([each for each in "ijklmn" if each not in words]), dict[Expression, str]()

    def change(node: Expression) -> Expression:
        if not thread_atoms(node) or not is_thread_number(node):
            return mapped(node, change)
        if node not in named:
            named[node] = next(letters)
        return Name(named[node])

    found = [each if _is_thread(each) else mapped_statement(each, change) for each in body]
    return (*(Assign(name, (), "=", node) for node, name in named.items()), *found)


def _is_thread(statement: Statement) -> bool:
    """Whether a statement gives a name to the number of a thread, or is a loop that begins at it."""
    value = (
        statement.value if isinstance(statement, Assign) else statement.lower if isinstance(statement, Loop) else None
    )
    return value is not None and bool(thread_atoms(value)) and is_thread_number(value)


def _searching(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """A function that returns the first index at which something holds, with one `return` at its end."""
    match body:
        case (
            *before,
            Loop(body=(Choice(_, (Leave("return", (Name() as index,)),), ()) as inner,)) as loop,
            Leave("return", (none,)),
        ):
            first = "first"
            inner = replace(inner, then=(Assign(first, (), "=", index), Leave("break")))
            begin = Assign(first, (), "=", none)
            return (*before, begin, replace(loop, body=(inner,)), Leave("return", (Name(first),)))
        case _:
            return body


def _types(body: Iterable[Statement]) -> Iterator[tuple[str, str]]:
    """The types of declarations, and those of what counts."""
    for each in body:
        match each:
            case Assign() | Declare() if each.type not in (None, "auto"):
                yield (each.target if isinstance(each, Assign) else each.name), each.type or ""
            case Loop():
                yield each.index, "int32"
                yield from _types(each.body)
            case Choice():
                yield from _types((*each.then, *each.otherwise))
            case _:
                pass


def _without_skips(body: tuple[Statement, ...], is_kernel: bool) -> tuple[Statement, ...]:
    """Statements with what follows a `continue`, or a `return` of a thread, under the opposite condition."""
    found = list[Statement]()
    for k, each in enumerate(body):
        match each:
            case Loop():
                found.append(replace(each, body=_without_skips(each.body, False)))
            case Choice():
                rest = body[k + 1 :]
                if _skips(each.then, is_kernel):
                    other = _without_skips((*each.otherwise, *rest), is_kernel)
                    return (*found, *_chosen(Choice(each.condition, _without_skips(each.then[:-1], is_kernel), other)))
                then, otherwise = (_without_skips(part, is_kernel) for part in (each.then, each.otherwise))
                found += _chosen(Choice(each.condition, then, otherwise))
            case Leave("continue") | Leave("return", ()) if k == len(body) - 1:
                pass
            case _:
                found.append(each)
    return tuple(found)


def _skips(body: tuple[Statement, ...], is_kernel: bool) -> bool:
    match body[-1:]:
        case (Leave("continue"),):
            return True
        case (Leave("return", ()),):
            return is_kernel
        case _:
            return False


def _chosen(choice: Choice) -> tuple[Statement, ...]:
    """Choices between values of one target as a value; others as they are."""
    match choice.then, choice.otherwise:
        case ((Assign(operator="=") as one,), (Assign(operator="=") as other,)) if (one.target, one.subscripts) == (
            other.target,
            other.subscripts,
        ):
            return (changed(replace(one, value=Conditional(choice.condition, one.value, other.value))),)
        case ((Assign(target, (), "=", Name() as index),), ()) if best := _best(choice.condition, target, index):
            return (replace(best, place=(target, index)),)
        case ((Assign(operator="=") as one,), ()):
            read = Apply(Name(one.target), one.subscripts) if one.subscripts else Name(one.target)
            operator = extreme(choice.condition, one.value, read)
            return (replace(one, operator=operator),) if operator else (choice,)
        case ((Assign(operator="=") as one, Assign(operator="=") as other), ()):
            best, place = (one, other) if isinstance(other.value, Name) else (other, one)
            operator = extreme(choice.condition, best.value, Name(best.target))
            is_first = isinstance(choice.condition, Binary) and choice.condition.op in "<>"
            if not operator or not is_first or not isinstance(place.value, Name) or best.subscripts or place.subscripts:
                return (choice,)
            return (replace(best, operator=f"arg{operator}", place=(place.target, place.value)),)
        case ((), _) if choice.otherwise:
            return (Choice(Unary("!", choice.condition), choice.otherwise),)
        case ((), ()):
            return ()
        case _:
            return (choice,)


def _best(condition: Expression, target: str, index: Name) -> Assign | None:
    """The value of which `if (x[i] > x[p]) p = i;` keeps the place of the largest one."""
    match condition:
        case Binary("<" | ">" as operator, left, right):
            values = {index.name: Name(target)}
            value = left if put(left, values) == right else right if put(right, values) == left else None
            if value is None or target in names_in((value,)):
                return None
            is_largest = (operator == ">") == (value is left)
            return Assign(f"best_{target}", (), "argmax" if is_largest else "argmin", value)
        case _:
            return None


_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def conjunction(condition: Expression, kinds: Kinds) -> tuple[Expression, ...]:
    """The conditions that hold together."""
    match condition:
        case Binary("&&", left, right):
            return (*conjunction(left, kinds), *conjunction(right, kinds))
        case Unary("!", Unary("!", inner)):
            return conjunction(inner, kinds)
        case Unary("!", Binary("||", left, right)):
            return (*conjunction(Unary("!", left), kinds), *conjunction(Unary("!", right), kinds))
        case Unary("!", Binary("<" | "<=" | ">" | ">=" | "==" | "!=" as operator, left, right) as inner):
            is_sure = operator in ("==", "!=") or is_integer(kinds.wider(left, right))  # one may be no number
            return (replace(inner, op=_OPPOSITE[operator]),) if is_sure else (condition,)
        case _:
            return (condition,)


# --- the walk through a function -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Around:
    """What stands around statements.

    Attributes:
        values: what names of indices and sizes stand for.
    """

    heads: tuple[Head, ...] = ()
    conditions: tuple[Expression, ...] = ()
    values: dict[str, Expression] = field(default_factory=dict[str, Expression])


class _Flattener:
    """Walks through the statements of a function."""

    def __init__(self, function: Function, body: tuple[Statement, ...]) -> None:
        self.function, self.body, self.found = function, body, Flat()
        targets = [*assigned(body)]
        self.once = {name for name in targets if targets.count(name) == 1} - {each.name for each in function.parameters}
        self.written = {*targets}
        self.uses = [node for each in body for part in expressions(each) for node in walk(part)]
        self.threads = list[tuple[set[str], Head]]()
        given = {each.name: each.extents for each in function.parameters}
        self.stated = {name: [each for each in extents if each is not None] for name, extents in given.items()}
        types = {each.name: each.type for each in function.parameters if each.type}
        sizes = names_in(each for extents in self.stated.values() for each in extents)
        types = dict.fromkeys(sizes, "int32") | types
        types |= dict(_types(body))
        self.typed = types
        self.kinds = self.found.kinds = Kinds(dict.fromkeys(_counting(body), "int32") | types)

    def run(self) -> Flat:
        self.walk(self.body, _Around())
        if self.function.results and self.found.results:
            raise Beyond("a def names its results behind `->`")
        self.found.results += tuple(map(Name, self.function.results))
        return self.found

    def walk(self, body: tuple[Statement, ...], around: _Around) -> None:
        for each in body:
            match each:
                case Assign():
                    around = self.assign(each, around)
                case Declare():
                    self.declare(each, around)
                case Loop():
                    self.loop(each, around)
                case Choice():
                    self.choice(each, around)
                case Leave("return") if not around.heads and not around.conditions and each is body[-1]:
                    self.found.results = tuple(self.value(value, around) for value in each.values)
                case Leave():
                    raise Beyond(_FIRST)

    def choice(self, each: Choice, around: _Around) -> None:
        """The leaves of both parts, each under its condition, which is a number by itself where one part changes it."""
        condition, begin = self.value(each.condition, around), len(self.found.leaves)
        self.parts(each, condition, around)
        changed = [leaf.assign.target for leaf in self.found.leaves[begin:-1]]
        if values_in((condition,)) & {*changed}:
            del self.found.leaves[begin:]
            name = next(name for k in range(99) if (name := f"holds{k or ''}") not in self.written)
            self.written.add(name)
            assign = Assign(name, (), "=", self.kinds.truth(condition), "bool")
            self.kinds.types[name] = "bool"
            self.found.leaves.append(Leaf(assign, around.heads, around.conditions))
            self.parts(each, Name(name), around)

    def parts(self, each: Choice, condition: Expression, around: _Around) -> None:
        """What stands under a condition, and under the opposite one."""
        then = (*around.conditions, *conjunction(condition, self.kinds))
        self.walk(each.then, replace(around, conditions=then, values={**around.values}))
        other = (*around.conditions, *conjunction(Unary("!", condition), self.kinds))
        self.walk(each.otherwise, replace(around, conditions=other, values={**around.values}))

    def declare(self, each: Declare, around: _Around) -> None:
        """An array of the function's own; a number has its value later."""
        if each.name in self.found.declared or (around.heads and each.extents):
            raise Beyond(OTHER)
        if each.extents or each.like:
            extents = tuple(self.value(extent, around) for extent in each.extents)
            self.found.declared[each.name] = replace(each, extents=extents)

    def assign(self, each: Assign, around: _Around) -> _Around:
        """A leaf, or a name for a value."""
        if (inner := self.thread(each, around)) is not None:
            return inner
        subscripts = tuple(self.value(subscript, around) for subscript in each.subscripts)
        value = self.kinds.of_type(self.value(each.value, around), self.kinds.types.get(each.target), each.operator)
        if each.target in self.once and not subscripts and each.operator == "=" and self.is_plain(each.target, value):
            around.values[each.target] = value
            if isinstance(value, Extent):
                self.found.sizes[f"{value.tensor.name}.{value.dimension}"] = each.target
            return around
        if each.target in self.typed and (subscripts or each.operator in ("+", "*")):
            value = self.kinds.of_array(value, self.typed[each.target])
        self.found.leaves.append(
            Leaf(replace(each, subscripts=subscripts, value=value), around.heads, around.conditions)
        )
        return around

    def is_plain(self, target: str, value: Expression) -> bool:
        """Whether a value may stand where its name is used: it stays the same."""
        own = [node for node in walk(value) if isinstance(node, Apply) and node.arguments]
        if values_in((value,)) & self.written:
            return False
        reads = any(not is_function(node.function.name) for node in own)
        uses = sum(isinstance(node, Name) and node.name == target for node in self.uses)
        return uses == 1 or not reads

    def value(self, node: Expression, around: _Around) -> Expression:
        """An expression with what its names stand for, and indices in the place of the numbers of threads."""
        if isinstance(node, Name):
            return around.values.get(node.name, node)
        if isinstance(node, Extent) and (stated := self.stated.get(node.tensor.name)):
            return stated[node.dimension] if node.dimension < len(stated) else node
        if isinstance(node, Extent) and (own := self.found.declared.get(node.tensor.name)) is not None:
            known = own.extents[node.dimension : node.dimension + 1]
            return known[0] if known else Extent(Name(own.like), node.dimension)
        return mapped(node, lambda each: self.value(each, around))

    # --- threads and loops -------------------------------------------------------------------------------------------

    def thread(self, each: Assign, around: _Around) -> _Around | None:
        """What stands behind `int i = blockIdx.x * blockDim.x + threadIdx.x`: a loop over `i`; `None` for other statements."""
        atoms = thread_atoms(each.value)
        if not atoms:
            return None
        if around.conditions or each.subscripts or each.operator != "=" or not is_thread_number(each.value):
            raise Beyond(ALONE)
        if any(atoms & other for other, _ in self.threads) or any(head.upper is not None for head in around.heads):
            raise Beyond(SHARED)
        head = Head(each.target, number("0"), None)
        self.written.discard(each.target)
        self.kinds.types[each.target] = "int32"
        self.threads.append((atoms, head))
        return replace(around, heads=(*around.heads, head))

    def loop(self, each: Loop, around: _Around) -> None:
        if self.first_match(each, around):
            return
        lower, upper = self.value(each.lower, around), self.value(each.upper, around)
        step = self.value(each.step, around)
        around = replace(around)
        counted = next((head for head in around.heads if Name(head.index) == lower and head.upper is None), None)
        if counted is not None or thread_atoms(lower):
            if not (counted or is_thread_number(lower)) or not _is_grid(step):
                raise Beyond(ALONE)
            lower, step = number("0"), number("1")
            around.heads = tuple(head for head in around.heads if head is not counted)
        if any(head.index == each.index for head in around.heads) or each.index in self.written:
            raise Beyond(OTHER)
        if values_in((lower, upper)) & {*assigned(each.body)}:
            raise Beyond(WHILE)
        size = step.operand if isinstance(step, Unary) else step
        if not isinstance(size, Number) or not isinstance(size.value, int) or size.value < 1:
            raise Beyond(OTHER)
        head = Head(each.index, lower, upper, -size.value if isinstance(step, Unary) else size.value)
        self.walk(each.body, _Around((*around.heads, head), around.conditions, {**around.values}))

    def first_match(self, each: Loop, around: _Around) -> bool:
        """A loop that keeps the first or last index at which something holds: the smallest or the largest one."""
        match each.body:
            case (Choice(condition, (Assign(target, (), "=", Name() | Number() as value), *rest), ()),):
                pass
            case _:
                return False
        if isinstance(value, Name) and value.name != each.index:
            return False
        one, is_up = number("1"), each.step == number("1")
        if (
            target in values_in((condition,))
            or rest not in ([], [Leave("break")])
            or not (is_up or each.step == Unary("-", one))
        ):
            return False
        operator = "min" if is_up == bool(rest) and isinstance(value, Name) else "max"
        terms = polynomial(none := each.upper if operator == "min" else Binary("-", each.lower, one))
        none = none if terms is None else expression(terms)
        index, none = (Name(each.index), none) if isinstance(value, Name) else (one, number("0"))
        found = f"{target}_found"
        if found in self.written or thread_atoms(each.lower):
            raise Beyond(_FIRST)
        loop = replace(each, body=(Choice(condition, (Assign(found, (), operator, index),)),))
        was_found = value if isinstance(value, Number) else Name(found)
        chosen = Conditional(Binary("!=", Name(found), none), was_found, Name(target))
        none = Apply(Name("int64"), (none,)) if names_in((none,)) else none
        self.walk((Assign(found, (), "=", none), loop, Assign(target, (), "=", chosen)), around)
        return True


def _is_grid(step: Expression) -> bool:
    """Whether a step is the number of all threads."""
    names = names_in((step,))
    return bool(names) and all(name.startswith(("blockDim.", "gridDim.", "gridsize")) for name in names)


def thread_atoms(node: Expression) -> set[str]:
    """The numbers of threads and blocks in an expression, by their axes."""
    found = set[str]()
    for each in walk(node):
        match each:
            case Name() if each.name.startswith(("threadIdx.", "blockIdx.")):
                found.add(each.name)
            case Apply(Name("grid"), (Number() as axis,)):
                letter = "xyz"[int(axis.value)] if axis.value in (0, 1, 2) else "?"
                found |= {f"threadIdx.{letter}", f"blockIdx.{letter}"}
            case _:
                pass
    return found


def is_thread_number(node: Expression) -> bool:
    """Whether an expression is `blockIdx.x * blockDim.x + threadIdx.x`, one of its two numbers, or `cuda.grid(1)`."""
    if isinstance(node, Apply):
        return node.function.name == "grid"
    terms = polynomial(Name("?") if any(isinstance(each, Apply) for each in walk(node)) else node) or {}
    axes = {name.rpartition(".")[2] for names in terms for name in names}
    if len(axes) != 1:
        return False
    (axis,) = axes
    thread, block, size = (f"threadIdx.{axis}",), (f"blockIdx.{axis}",), (f"blockDim.{axis}", f"blockIdx.{axis}")
    is_whole = len(terms) == 2 and terms.get(thread) == 1 and (terms.get(size) == 1 or terms.get(block, 1) > 1)
    return is_whole or terms in ({thread: 1}, {block: 1})
