"""A function with loops as a def that computes the same.

Worked example: `for i: { s = 0; for k: s += A[i * K + k]; C[i] = s; }` is `C(i) +=! A(i, k)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tc_jupyter.syntax.library_names import TYPES, WORD_OPERATORS
from tc_jupyter.syntax.printer import def_text, expression_text, statement_text
from tc_jupyter.syntax.tokens import KEYWORDS
from tc_jupyter.syntax.tree import (
    Apply,
    Binary,
    Bordered,
    Clause,
    Comprehension,
    Def,
    DimensionBox,
    Direction,
    Expression,
    Extent,
    Filter,
    Let,
    Name,
    Number,
    Param,
    Result,
    TypeName,
    Unary,
    Where,
    children,
    mapped,
    mapped_clause,
    names_in,
    walk,
)

from .kinds import is_function, is_integer, values_in
from .leaves import flat
from .order import in_any_order, with_scans
from .parser import FUNCTIONS, OTHER, Beyond, number, put
from .polynomials import Polynomial, constant, expression, plus, polynomial
from .shapes import reads, with_shapes
from .steps import UNSET, Range, Step, combined, steps_of, with_numbers
from .tree import Assign, Function

_NO_RESULT = "the function writes nothing that a def could return"
_NO_SIZE = "no array says how large `{}` is: a size is the extent of a parameter, as in `float(N) X`"
_PLACES = "`V, P argmax=! X(i)` gives the largest value and its place, where the loop begins with the first element"
_LETTERS = ("N", "M", "K", "L", "P", "Q", "R", "S", "T")
_INDICES = ("i", "j", "k", "l", "m", "n")
_IDENTITIES = {"+": 0, "*": 1}
_OPERATORS = {"=": "=", "+": "+=", "*": "*=", "max": "max=", "min": "min=", "argmax": "argmax=!", "argmin": "argmin=!"}
_TAKEN = frozenset({*KEYWORDS, *FUNCTIONS, *TYPES})
_WORD = re.compile(r"[A-Za-z_]\w*")


def translated(function: Function) -> str:
    """The text of the def that computes what a function does.

    Raises:
        Beyond: There is none, or it is not known whether there is.
    """
    return def_text(_Translation(function).run())


def translated_body(function: Function) -> list[str]:
    """The statements that compute what the body of a def does.

    Raises:
        Beyond: There are none, or it is not known whether there are.
    """
    translation = _Translation(function)
    return [statement_text(each) for each in translation.run().statements]


class _Translation:
    """One function on its way to a def."""

    def __init__(self, function: Function) -> None:
        self.function, self.found = function, flat(function)
        self.kinds = self.found.kinds
        self.parameters = {each.name: each for each in function.parameters}
        leaves = with_numbers(self.found, self.parameters)
        self.steps = steps_of(leaves, self.kinds)
        self.shapes = with_shapes(self.steps, function, self.found)
        self.results: list[str] = []

    def run(self) -> Def:
        self.steps, scanned = with_scans(self.steps)
        in_any_order(self.steps, {*scanned, *self.with_last(scanned)})
        self.with_positions()
        self.with_numbers()
        self.with_results()
        self.join()
        self.leave_out()
        for step in self.steps:
            if self.shapes.get(step.assign.target) is None:
                self.shapes[step.assign.target] = ()
        return self.definition()

    # --- what the function gives -------------------------------------------------------------------------------------

    def with_last(self, scanned: Mapping[str, Expression]) -> Iterator[str]:
        """What is read behind the loop that computes it step by step is a number: the last step, which has another name then."""
        read = {*names_in(self.found.results), *self.function.results}
        for name, last in scanned.items():
            if name not in read:
                continue
            new = self.unused(f"{name}2")
            self.kinds.name(new, name)
            end = Step(Assign(name, (), "=", last), (), {})
            for step in (*self.steps, end):
                _rename(step, name, new)
            end.assign = replace(end.assign, target=name)
            self.steps.append(end)
            yield new

    def with_results(self) -> None:
        """The results: what `return` names, and parameters that are written, each a new tensor; those of a def have names."""
        targets = dict.fromkeys(
            name for step in self.steps for name in (step.assign.target, *(step.assign.place or ())[:1])
        )
        if unset := [name for name in self.function.results if name not in targets]:
            raise Beyond(UNSET.format(unset[0]))
        for value in self.found.results:
            if isinstance(value, Name) and (value.name in targets or value.name in self.found.declared):
                self.results.append(value.name)
                continue
            name = self.unused("result")
            self.steps.append(Step(Assign(name, (), "=", value), (), {}))
            self.results.append(name)
        self.results += [name for name in targets if name in self.parameters and name not in self.results]
        if not self.results:
            raise Beyond(_NO_RESULT)
        for name in [*targets, *(each for each in self.found.declared if each in self.results and each not in targets)]:
            if name in self.parameters:
                self.begin_parameter(name)
            elif name in self.found.declared:
                self.begin_own(name)
            elif name in self.function.results:
                self.begin_result(name)

    def begin_parameter(self, name: str) -> None:
        """A parameter that is written: nothing of it is needed, or the result is a copy that other statements change."""
        own = [step for step in self.steps if step.assign.target == name]
        first = next(step for step in self.steps if name in (step.assign.target, *values_in(step.read)))
        if self.covers(own[0], name) and first is own[0] and name not in values_in(first.read):
            del self.parameters[name]
            return
        new = self.unused(f"{name}2")
        self.kinds.name(new, name)
        self.shapes[new] = self.shapes[name]
        self.results = [new if each == name else each for each in self.results]
        readers = [step for step in self.steps if any(node.function.name == name for node in reads(step))]
        if len(own) == 1 and readers in ([], own) and self.sets_once(own[0], name):
            own[0].assign = replace(own[0].assign, target=new)
            return
        for step in self.steps:
            _rename(step, name, new)
        ranges = self.whole(name)
        subscripts = tuple(map(Name, ranges))
        self.steps.insert(0, Step(Assign(new, subscripts, "=", Apply(Name(name), subscripts)), (), ranges))

    def begin_result(self, name: str) -> None:
        """A result of a def: one statement gives all its elements, or the only one gives some of them."""
        own = [
            step
            for step in self.steps
            if name in (step.assign.target, *(step.assign.place or ())[:1], *values_in(step.read))
        ]
        assign = own[0].assign
        if assign.place or (assign.target == name and self.covers(own[0], name)):
            return
        is_only = len(own) == 1 and assign.operator == "=" and not own[0].filters and not own[0].along
        if not is_only or any(each.step != 1 for each in own[0].ranges.values()):
            raise Beyond(UNSET.format(name))

    def whole(self, name: str) -> dict[str, Range]:
        """Indices that run over all elements of a tensor."""
        names = self.words() - {index for step in self.steps for index in step.ranges}
        indices = [each for each in _INDICES if each not in names]
        if len(indices) < len(self.shapes[name]):
            raise Beyond(OTHER)
        return {index: _whole(extent) for index, extent in zip(indices, self.shapes[name], strict=False)}

    def sets_once(self, step: Step, name: str) -> bool:
        """Whether a step gives each element of a tensor a new value, if need be by an assignment in place of `+=`."""
        assign = step.assign
        is_plain = {*step.ranges} == {*names_in(assign.subscripts)} and not step.filters and not step.along
        if assign.operator in ("+", "*", "max", "min") and is_plain:
            step.assign = replace(
                assign,
                operator="=",
                value=combined(assign.operator, Apply(Name(name), assign.subscripts), assign.value),
            )
        if is_plain and self.covers(step, name):
            return True
        step.assign = assign
        return False

    def begin_own(self, name: str) -> None:
        """An array of the function's own: what its elements are before they are written."""
        own = [step for step in self.steps if step.assign.target == name]
        if own and self.covers(own[0], name):
            return
        fill, shape = self.found.declared[name].fill, self.shapes.get(name, ())
        if fill is None or not shape:
            raise Beyond(UNSET.format(name))
        if is_integer(self.kinds.types.get(name, "float")) is False and isinstance(fill, Number):
            fill = Number(str(float(fill.value)), float(fill.value))
        if isinstance(fill, Number) and self.kinds.types.get(name, "int32") not in ("int32", "float32"):
            fill = Apply(Name(self.kinds.types[name]), (fill,))
        ranges = self.whole(name)
        subscripts = own[0].assign.subscripts if own else ()
        indices = [each.name for each in subscripts if isinstance(each, Name) and each.name in own[0].ranges]
        if len(indices) == len({*indices}) == len(shape):  # `y(i) = 0` goes where `y(i) += e` follows
            ranges = dict(zip(indices, ranges.values(), strict=True))
        subscripts = tuple(map(Name, ranges))
        fill = Apply(fill, subscripts) if isinstance(fill, Name) else fill
        self.steps.insert(0, Step(Assign(name, subscripts, "=", fill), (), ranges))

    def covers(self, step: Step, name: str) -> bool:
        """Whether a step assigns all elements of a tensor."""
        assign, shape = step.assign, self.shapes.get(name, ())
        if assign.operator != "=" or step.filters:
            return False
        indices = [each.name for each in assign.subscripts if isinstance(each, Name) and each.name in step.ranges]
        ranges = [step.ranges[index] for index in indices]
        if not len(indices) == len({*indices}) == len(shape) or any(each.step != 1 for each in ranges):
            return False
        return all(
            each.first == {} and each.last == plus(extent, constant(1), -1)
            for each, extent in zip(ranges, shape, strict=True)
        )

    def with_numbers(self) -> None:
        """`*s = e`: an array of one element that begins in the function is a number."""
        for name, shape in self.shapes.items():
            own = [step for step in self.steps if name in (step.assign.target, *values_in(step.read))]
            first = own[0] if own else None
            if shape != ({(): 1},) or first is None or first.assign.target != name or name not in self.parameters:
                continue
            if (
                first.assign.operator == "="
                and name not in values_in(first.read)
                and not first.filters
                and not first.ranges
            ):
                for step in own:
                    _rename(step, name, None)
                self.shapes[name] = ()

    def with_positions(self) -> None:
        """`m, p argmax=! x(i)`, whose first values are those of the first element."""
        for step in [each for each in self.steps if each.assign.place]:
            name, index = step.assign.place or ("", Name(""))
            targets = step.assign.target, name
            begins = [each for each in self.steps if each.assign.target in targets and each is not step]
            values = {each.assign.target: each.assign.value for each in begins if each.assign.operator == "="}
            place = values.get(name)
            if len(begins) != len(values) or place is None or not step.ranges or not isinstance(index, Name):
                raise Beyond(_PLACES)
            (*_, last) = step.ranges
            own, at, first = step.ranges[last], polynomial(place), put(step.assign.value, {last: place})
            is_first = _normal(values.get(step.assign.target, first)) == _normal(first)
            begins_there = at is not None and own.first in (at, plus(at, constant(1)))
            is_plain = not step.filters and step.heads[-1].step == 1 and index.name == last
            if not is_first or not begins_there or not is_plain:
                raise Beyond(_PLACES)
            step.ranges[last] = replace(own, lower=place, first=at)
            self.steps = [each for each in self.steps if each not in begins]

    # --- fewer statements --------------------------------------------------------------------------------------------

    def join(self) -> None:
        """One statement where one sets what the next one changes, and none for a number that another tensor takes over."""
        for step in [*self.steps]:
            if step.assign.operator == "=" and step in self.steps:
                _ = self.into_next(step) or self.into_number(step) or self.into_let(step)

    def leave_out(self) -> None:
        """Steps that nothing reads are left out."""
        while True:
            idle = [step for step in self.steps if step.assign.target not in self.results and not step.assign.place]
            idle = [step for step in idle if not any(self.uses(each, step.assign.target, True) for each in self.steps)]
            if not idle:
                return
            self.steps = [step for step in self.steps if step not in idle]

    def into_next(self, step: Step) -> bool:
        """`s(i) = 0` goes where `s(i) += e` follows."""
        name, place = step.assign.target, self.steps.index(step)
        users = [each for each in self.steps[place + 1 :] if self.uses(each, name)]
        if not users or step.filters or self.uses(step, name, is_read=True):
            return False
        user = users[0]
        same = user.assign.target == name and user.assign.subscripts == step.assign.subscripts
        indices = {*names_in(step.assign.subscripts)}
        if not same or {*step.ranges} != indices or any(user.ranges.get(each) != step.ranges[each] for each in indices):
            return False
        is_read = self.uses(user, name, is_read=True)
        identity = _IDENTITIES.get(user.assign.operator)
        if user.assign.operator in ("max", "min") and not is_read and _is_extreme(step.assign.value, user):
            user.fresh = True
            self.steps.remove(step)
            return True
        if identity is not None and not is_read and _value(step.assign.value) == identity:
            user.fresh = True
        elif (
            user.assign.operator == "="
            and not user.filters
            and not any(True for _ in reads(step))
            and {*user.ranges} == indices
        ):
            values = {name: step.assign.value}
            if any(node.function.name == name for node in reads(user)):
                return False
            user.assign = replace(user.assign, value=put(user.assign.value, values))
        else:
            return False
        self.steps.remove(step)
        return True

    def into_let(self, step: Step) -> bool:
        """`t(i) = X(i)`, which one statement alone reads: it names the value itself."""
        name, own = step.assign.target, Apply(Name(step.assign.target), step.assign.subscripts)
        users = [each for each in self.steps if each is not step and self.uses(each, name)]
        is_local = name not in self.parameters and name not in self.found.declared and name not in self.results
        if len(users) != 1 or not is_local or not step.assign.subscripts or step.filters or step.along:
            return False
        (user,) = users
        found = [
            node for part in user.read for node in walk(part) if isinstance(node, Apply) and node.function.name == name
        ]
        between = self.steps[self.steps.index(step) + 1 : self.steps.index(user)]
        same = all(node == own for node in found) and all(
            user.ranges.get(index) == each for index, each in step.ranges.items()
        )
        if (
            not same
            or user.assign.target == name
            or {each.assign.target for each in between} & values_in(step.read)
            or user.along
        ):
            return False
        _rename(user, name, None)
        user.lets = {name: step.assign.value, **user.lets}
        self.steps.remove(step)
        return True

    def into_number(self, step: Step) -> bool:
        """`C(i) = s(i)`: what `s` is goes to `C`."""
        value, name = step.assign.value, step.assign.target
        if isinstance(value, Apply) and not is_function(value.function.name):
            source, indices = value.function.name, value.arguments
        elif isinstance(value, Name) and value.name not in self.parameters:
            source, indices = value.name, ()
        else:
            return False
        own = [each for each in self.steps if each.assign.target == source]
        others = [each for each in self.steps if each is not step and self.uses(each, name)]
        others += [each for each in self.steps if each is not step and each not in own and self.uses(each, source)]
        is_local = source not in self.parameters and source not in self.found.declared and source not in self.results
        if (
            not own
            or others
            or not is_local
            or step.filters
            or {*step.ranges} != {*names_in(indices)}
            or any(each.assign.place for each in own)
        ):
            return False
        if any(each.assign.subscripts != indices for each in own):
            return False
        if any(each.ranges.get(index) != step.ranges[index] for each in own for index in step.ranges):
            return False
        for each in own:
            _rename(each, source, name)
            each.assign = replace(each.assign, target=name, subscripts=step.assign.subscripts)
        self.steps.remove(step)
        return True

    def uses(self, step: Step, name: str, is_read: bool = False) -> bool:
        """Whether a step reads a name, or writes it."""
        is_written = not is_read and name in (step.assign.target, *(step.assign.place or ())[:1])
        return is_written or name in values_in(step.read)

    # --- the def -----------------------------------------------------------------------------------------------------

    def words(self) -> set[str]:
        """All names that have a meaning."""
        inside = (part for step in self.steps for part in step.read)
        indices = {index for step in self.steps for index in step.ranges}
        texts = " ".join(map(expression_text, inside))
        return {*_WORD.findall(texts), *self.parameters, *indices} | {step.assign.target for step in self.steps}

    def unused(self, name: str) -> str:
        """A name that has no meaning yet."""
        words = self.words()
        return next(each for each in (name, *(f"{name}_{k}" for k in range(1, 99))) if each not in words)

    def definition(self) -> Def:
        """The def of all steps."""
        statements = tuple(map(self.statement, self.steps))
        arrays = [name for name in self.parameters if name in self.shapes]
        sizes = self.sizes(arrays)
        used = {*_WORD.findall(" ".join(map(statement_text, statements)))}
        params = list[Param]()
        for name in self.parameters:
            kind = self.kinds.types.get(name, "float32")
            scalar = {"float32": "float", "float64": "double", "int32": "int32"}.get(kind, kind)
            dimensions = tuple(map(expression, self.shapes.get(name, ())))
            if name in used and name not in sizes:
                params.append(Param(TypeName(scalar, dimensions), Name(name)))
        results = tuple(Result(Name(name)) for name in self.results)
        found = Def(Name(self.function.name), tuple(params), results, statements)
        return _Names(found, sizes, {*arrays}).run()

    def sizes(self, inputs: list[str]) -> dict[str, Expression]:
        """The sizes that the extents of parameters say, by their names before: those of integers, and letters for others."""
        words = self.words()
        letters = iter([each for each in (*_LETTERS, *(f"N{k}" for k in range(99))) if each not in words])
        found = dict[str, Expression]()
        for name in inputs:
            for extent in self.shapes[name]:
                named = {names: value for names, value in extent.items() if names}
                if len(named) == 1 and (names := next(iter(named)))[1:] == () and named[names] == 1:
                    size = names[0]
                    given = self.found.sizes.get(size, size)
                    if size not in found:
                        found[size] = (
                            Name(next(letters) if "." in given or given in words else given)
                            if "." in size
                            else Name(size)
                        )
        return found

    def statement(self, step: Step) -> Comprehension:
        """The statement of a step."""
        step = _by_ones(_counted(step))
        assign, written = step.assign, self.kinds.written
        filters = tuple(Filter(self.kinds.truth(written(each))) for each in step.filters)
        lets = tuple(Let(Name(name), written(value)) for name, value in step.lets.items())
        read = (assign.value, *step.filters, *step.lets.values())
        ranges = tuple(
            Where(Name(index), each.lower, each.upper)
            for index, each in step.ranges.items()
            if not self.runs_by_itself(index, step, read)
        )
        return Comprehension(
            Name(assign.place[0] if assign.place else assign.target),
            tuple(map(written, assign.subscripts)) or None,
            _OPERATORS[assign.operator] + "!" * step.fresh,
            written(assign.value),
            (*lets, *ranges, *filters),
            along=tuple(Direction(Name(head.index), head.step) for head in step.along),
            before=((Name(assign.target), assign.subscripts or None),) if assign.place else (),
        )

    def runs_by_itself(self, index: str, step: Step, read: tuple[Expression, ...]) -> bool:
        """Whether what a statement reads gives an index its range: whole dimensions of that extent."""
        own = step.ranges[index]
        if own.first != {} or own.last is None:
            return False
        extent, found = plus(own.last, constant(1)), False
        ends = [end for each in step.ranges.values() for end in (each.lower, each.upper)]
        for part in (*read, *ends, *step.assign.subscripts):
            for node in _plain_reads(part):
                for k, each in enumerate(node.arguments):
                    if index not in names_in((each,)):
                        continue
                    shape = self.shapes.get(node.function.name) or self.of_step(node.function.name)
                    if each != Name(index) or shape[k : k + 1] != (extent,):
                        return False
                    found = found or part not in ends
        return found and not any(each != Name(index) and index in _outside(each) for each in step.assign.subscripts)

    def of_step(self, name: str) -> tuple[Polynomial, ...]:
        """The extents of a tensor that a step makes."""
        step = next((each for each in self.steps if each.assign.target == name), None)
        ranges = (
            []
            if step is None
            else [step.ranges.get(each.name) for each in step.assign.subscripts if isinstance(each, Name)]
        )
        return tuple(plus(each.last, constant(1)) for each in ranges if each is not None and each.last is not None)


def _plain_reads(node: Expression) -> Iterator[Apply[Expression]]:
    """The reads of arrays, but for those that say what stands outside."""
    if isinstance(node, Bordered):
        yield from _plain_reads(node.otherwise)
        return
    if isinstance(node, Apply) and not is_function(node.function.name):
        yield node
    for each in children(node):
        yield from _plain_reads(each)


def _is_extreme(value: Expression, user: Step) -> bool:
    """Whether a value is the one that nothing exceeds, or that of an element: of the first one, or of the one before it."""
    infinite = _value(value)
    if infinite is not None and abs(infinite) == float("inf"):
        return (infinite < 0) == (user.assign.operator == "max")
    inner = [index for index in user.ranges if index not in names_in(user.assign.subscripts)]
    if len(inner) != 1 or user.filters or user.ranges[inner[0]].step != 1:
        return False
    (index,) = inner
    own = user.ranges[index]
    for shift in (0, 1):
        if own.first is not None and (own.first or not shift):
            first = plus(own.first, constant(shift), -1)
            if _normal(put(user.assign.value, {index: expression(first)})) == _normal(value):
                user.ranges[index] = replace(own, lower=expression(first), first=first)
                return True
    return False


def _normal(node: Expression) -> Expression:
    """An expression whose sums and products have one order."""
    terms = polynomial(node)
    return expression(terms) if terms is not None else mapped(node, _normal)


def _outside(node: Expression) -> set[str]:
    """The names in an expression that stand in no read of an array."""
    if isinstance(node, Apply) and not is_function(node.function.name):
        return set()
    return {node.name} if isinstance(node, Name) else {name for each in children(node) for name in _outside(each)}


def _value(node: Expression) -> float | None:
    """The number that a literal is, in whatever type."""
    match node:
        case Number():
            return node.value
        case Apply(_, (Number() as inner,)):
            return inner.value
        case Unary("-", operand):
            value = _value(operand)
            return None if value is None else -value
        case _:
            return None


def _counted(step: Step) -> Step:
    """A step that adds one value several times adds a product; other repetitions raise `Beyond`."""
    assign = step.assign
    used = names_in((assign.value, *assign.subscripts, *step.filters, *step.lets.values()))
    used |= names_in(end for each in step.ranges.values() for end in (each.lower, each.upper))
    for index in [each for each in step.ranges if each not in used]:
        own = step.ranges[index]
        if assign.operator != "+" or own.first is None or own.last is None or own.step != 1:
            raise Beyond(f"all turns of the loop over `{index}` do the same: a statement is no repetition")
        count = expression(plus(plus(own.last, own.first, -1), constant(1)))
        value = count if _value(assign.value) == 1 else Binary("*", count, assign.value)
        assign = replace(assign, value=value)
        step = replace(step, ranges={name: each for name, each in step.ranges.items() if name != index})
    is_set = step.fresh and {*step.ranges} == {*names_in(assign.subscripts)}
    is_set = is_set and assign is not step.assign
    return replace(step, assign=replace(assign, operator="=") if is_set else assign, fresh=step.fresh and not is_set)


def _by_ones(step: Step) -> Step:
    """A step whose indices take all values from 0 on, in place of some of their range."""
    for index, each in step.ranges.items():
        if each.step == 1:
            continue
        if each.first is None or each.last is None:
            raise Beyond("a range has steps of 1, and ends that are no elements")
        size = abs(each.step)
        count = Binary("/", expression(plus(plus(each.last, each.first, -1), constant(size))), Number(str(size), size))
        begin = each.first if each.step > 0 else each.last
        value = {index: expression(plus(begin, {(index,): each.step}))}
        step = replace(
            step,
            assign=_put_in(step.assign, value),
            ranges={
                **step.ranges,
                index: replace(each, lower=number("0"), upper=count, first=constant(0), last=None, step=1),
            },
            filters=tuple(put(node, value) for node in step.filters),
        )
    return step


def _put_in(assign: Assign, value: Mapping[str, Expression]) -> Assign:
    subscripts = tuple(
        expression(terms) if (terms := polynomial(put(each, value))) is not None else put(each, value)
        for each in assign.subscripts
    )
    return replace(assign, subscripts=subscripts, value=put(assign.value, value))


def _whole(extent: Polynomial) -> Range:
    return Range(number("0"), expression(extent), {}, plus(extent, constant(1), -1))


def _rename(step: Step, old: str, new: str | None) -> None:
    """Give a tensor another name; without one it becomes a number."""

    def change(node: Expression) -> Expression:
        node = mapped(node, change)
        if not isinstance(node, Apply) or node.function.name != old:
            return node
        return Name(old) if new is None else replace(node, function=Name(new))

    assign = step.assign
    subscripts = tuple(map(change, assign.subscripts))
    if assign.target == old:
        assign = replace(assign, target=new or old)
        subscripts = subscripts if new else ()
    step.assign = replace(assign, value=change(assign.value), subscripts=subscripts)
    step.filters = tuple(map(change, step.filters))
    step.ranges = {
        index: replace(each, lower=change(each.lower), upper=change(each.upper)) for index, each in step.ranges.items()
    }


class _Names:
    """Puts sizes in the place of extents, and other names in the place of words of the language."""

    def __init__(self, found: Def, sizes: Mapping[str, Expression], arrays: set[str]) -> None:
        self.found, self.sizes, self.arrays = found, sizes, arrays
        given = (*found.params, *found.results) if not found.name.name else ()
        self.fixed = {each.name.name for each in given}  # names that the head of a def has

    def run(self) -> Def:
        """The def with such names."""
        found = self.found
        params = tuple(Param(self.type(each.type), self.name(each.name)) for each in found.params)
        results = tuple(Result(self.name(each.name)) for each in found.results)
        statements = tuple(self.statement(each) for each in found.statements if isinstance(each, Comprehension))
        name = Name(found.name.name + "_" * (found.name.name in _TAKEN))
        return replace(found, name=name, params=params, results=results, statements=statements)

    def name(self, name: Name) -> Name:
        """A name; `_` stands behind one that means something else."""
        if name.name in self.fixed:
            return name
        is_taken = name.name in _TAKEN or name.name in WORD_OPERATORS or name.name == self.found.name.name
        return Name(name.name + "_") if is_taken else name

    def type(self, type_: TypeName | None) -> TypeName | None:
        """A type with sizes."""
        return type_ and replace(
            type_,
            dimensions=tuple(self.expression(each) for each in type_.dimensions if not isinstance(each, DimensionBox)),
        )

    def statement(self, each: Comprehension) -> Comprehension:
        """A statement with such names."""
        return replace(
            each,
            target=self.name(each.target),
            indices=each.indices and tuple(map(self.expression, each.indices)),
            value=self.expression(each.value),
            clauses=tuple(self.clause(clause) for clause in each.clauses),
            along=tuple(replace(way, index=self.name(way.index)) for way in each.along),
            before=tuple((self.name(target), at and tuple(map(self.expression, at))) for target, at in each.before),
        )

    def clause(self, clause: Clause) -> Clause:
        """A clause with such names."""
        clause = replace(clause, index=self.name(clause.index)) if isinstance(clause, Where) else clause
        return mapped_clause(clause, self.expression)

    def expression(self, node: Expression) -> Expression:
        """An expression with such names."""
        match node:
            case Name():
                return self.sizes.get(node.name) or self.name(node)
            case Extent():
                size = f"{node.tensor.name}.{node.dimension}"
                if size not in self.sizes and node.tensor.name not in self.arrays:
                    raise Beyond(_NO_SIZE.format(node.tensor.name))
                return self.sizes.get(size) or replace(node, tensor=self.name(node.tensor))
            case Apply(Name("int64"), (Name() as size,)) if size.name in self.sizes:
                return self.sizes[size.name]  # which is one
            case Apply() if not is_function(node.function.name):
                node = replace(node, function=self.name(node.function))
            case _:
                pass
        return mapped(node, self.expression)
