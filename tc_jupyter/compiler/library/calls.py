"""The C functions of a def: they read the arguments, look at the conditions, find the code, give it memory and start it.

Comes in: a definition, its variants, and the C names of their kernels. Goes out: the text of the functions. It says in C what
`runtime.kernel` does in Python, from the same values: the text of `Bind`, the checks of `CallNumbers`, the slots of an entry point.

Worked example: of `mv` the static functions are `mv_sizes` (what the arguments say), `mv_variant0_v3` (one build), and the public
ones `mv`, `mv_shapes` and `mv_error`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tc_jupyter.codegen.plain import CCheck, Names
from tc_jupyter.compiler.definition import Definition
from tc_jupyter.loops import Block, Buffer, Check
from tc_jupyter.program import Binary, Cast, Const, Expr, IndexVar, Read, Size, Unary, int64, rewrite, walk
from tc_jupyter.program.integers import reads_elements
from tc_jupyter.ranges import Access, IndexRange, PointCheck, borders, to_expr
from tc_jupyter.ranges.data import UniqueCheck, depends_on_data, point_check
from tc_jupyter.ranges.magnitudes import Magnitudes
from tc_jupyter.runtime.arguments import Formula
from tc_jupyter.runtime.arrays import ITEMSIZE
from tc_jupyter.runtime.kernel import pitched, root_of
from tc_jupyter.runtime.launch import RECORD, python_text

from .checks import SEEN, Looked, Looks
from .failures import Condition, c_string, of_check, of_failure, of_item, of_places
from .integers import c_integer, c_size, c_steps
from .processor import Processor
from .signature import ELEMENTS, Parameter, Signature
from .variants import Step, Variant

SMALL = 1024
"""Bytes of temporaries that stand on the stack."""
_PAD = "    "


@dataclass(frozen=True, slots=True)
class Entry:
    """A public function of a def: as `f(X)` computes, or, with the suffix `_onto`, as `f(X, out=Y)`."""

    suffix: str
    variants: tuple[Variant, ...]


class Calls:
    """Prints the functions of a def."""

    def __init__(
        self,
        definition: Definition,
        signature: Signature,
        kinds: Sequence[Processor],
        kernels: Mapping[tuple[str, str], str],
    ) -> None:
        """`kernels`: the C name of each kernel, by the name of the processor (or `any`) and its text."""
        self.definition, self.signature, self.kinds, self.kernels = definition, signature, kinds, kernels
        self.program, self.found, self.bind = definition.program, definition.found, definition.numbers.numbers
        self.name = f"tc_of_{signature.name}"  # of what is inside: no function of a program begins so
        own = Names()
        sizes = dict.fromkeys((*self.bind.names, *self.program.sizes, *definition.numbers.formulas))
        self.fields = {name: f"v_{own.of(name)}" for name in sizes}
        self.names = {name: f"c->{field}" for name, field in self.fields.items()}
        pointers = Names()
        self.pointers = {each.name: f"p_{pointers.of(each.name)}" for each in signature.parameters if not each.by_value}
        self.values = {each.name: f"x_{pointers.of(each.name)}" for each in signature.inputs if each.by_value}
        self.looks = Looks(self.found, self.names)
        self.checked = definition.options.check
        items = (*definition.numbers.items, *definition.numbers.at_zero)
        self.items = items if self.checked == "all" else ()
        self.conditions: list[Condition] = [of_failure(self.bind, each) for each in self.bind.failures]
        self.of_items: list[range] = []  # the places of the conditions of each check on data
        for each in self.items:
            found = of_places(each) if isinstance(each, UniqueCheck) else [of_check(each)]
            self.of_items.append(range(len(self.conditions), len(self.conditions) + len(found)))
            self.conditions += found
        self.helpers: dict[str, None] = {}
        self.text: list[str] = []
        self.looked: dict[int, Looked] = {}

    # the whole -------------------------------------------------------------------------------------------------------------------

    def printed(self, entries: Sequence[Entry]) -> list[str]:
        """All functions, those that are called first."""
        self.looked = {number: self.look(number) for number in self.used(entries)}
        rechecks = self.rechecks()
        numbers = [*self.call_checks(), *self.numbers()]
        plans = [line for entry in entries for line in self.plans(entry)]
        public = [line for entry in entries for line in self.entry(entry)]
        texts = [c_string(each.text) for each in self.conditions] or ["NULL"]
        table = [
            f"static const char *const {self.name}_conditions[] = {{",
            *(f"{_PAD}{each}," for each in texts),
            "};",
            "",
        ]
        own = f'static const char {self.name}_name[] = "{self.signature.name}";'
        rest = [*rechecks, *numbers, *plans, *public, *self.shapes(), *self.error()]
        return self.without_unused([own, "", *table, *self.struct(), "", *rest])

    def without_unused(self, lines: list[str]) -> list[str]:
        """The lines without the extents that none of them needs but the one that computes it."""
        for name in reversed(self.definition.numbers.formulas):
            own, field = f"    {self.names[name]} = ", f"int64_t {self.fields[name]};"
            used = re.compile(rf"{re.escape(self.names[name])}(?!\w)")
            if not any(used.search(line) and not line.startswith(own) for line in lines):
                lines = [line for line in lines if not line.startswith(own) and line.strip() != field]
        return lines

    def used(self, entries: Sequence[Entry]) -> list[int]:
        """The numbers of the checks that run before kernels."""
        steps = (step for entry in entries for variant in entry.variants for each in variant.steps for step in each)
        return sorted({number for step in steps for number in step.scans if number < len(self.items)})

    def struct(self) -> list[str]:
        """What is known of a call."""
        fields = [f"int64_t {field};" for field in self.fields.values()]
        for each in self.signature.parameters:
            if each.by_value:
                fields.append(f"{ELEMENTS[each.dtype]} {self.values[each.name]};")
            else:
                fields.append(f"{'' if each.is_result else 'const '}void *{self.pointers[each.name]};")
        fields += [
            f"int64_t {self.extent(each, k)};" for each in self.signature.results for k in range(each.stored_rank)
        ]
        return [f"struct {self.name}_call {{", *(f"{_PAD}{each}" for each in fields or ["int none;"]), "};"]

    def extent(self, result: Parameter, axis: int) -> str:
        """The field of an extent of a result."""
        return f"s_{self.pointers[result.name][2:]}_{axis}"

    def head(self, name: str, more: str = "") -> str:
        """Of a static function."""
        return f"static int {self.name}_{name}(struct {self.name}_call *c{more})"

    def failed(self, number: int, more: Sequence[str] = ()) -> str:
        """The call that says which condition does not hold."""
        condition = self.conditions[number]
        text = c_string(condition.text, is_format=True)[:-1]
        text += (condition.record if more else "") + "".join(
            f"{'; ' if k == 0 else ', '}{name} = %lld" for k, name in enumerate(condition.names)
        )
        values = [*more, *(f"(long long){self.names[name]}" for name in condition.names)]
        arguments = ", ".join([f"{self.name}_name", f"TC_CONDITION + {number}", f'{text}"', *values])
        return f"tc_fail({arguments})"

    def plain(self, code: str, text: str, *values: str) -> str:
        """The call for a failure that is no condition of the def."""
        return f"tc_fail({', '.join([f'{self.name}_name', code, text, *values])})"

    # checks on data --------------------------------------------------------------------------------------------------------------

    def look(self, number: int) -> Looked:
        """Print a check on data; a function around it makes the message."""
        item = self.items[number]
        looked = self.looks.of(item, number, f"{self.name}_data{number}")
        self.add(looked.check)
        buffers = looked.buffers
        given = "".join(f", const void *b{k}" for k, _ in enumerate(buffers))
        body = ["int over = 0;", f"int64_t errors[{RECORD}] = {{0}};", "(void)over; (void)options;"]
        if number >= len(self.definition.numbers.items):
            body.append(f"if (!({self.vanishes()})) return 0;")
        body.append(f"if ({looked.inactive}) return 0;")
        if looked.scan:
            place = f"b{buffers.index(looked.index)}" if looked.index in buffers else "NULL"
            body += ["{", *(f"{_PAD}{line.replace('INDEX', place)}" for line in looked.scan), "}"]
        passed = ["errors"]
        for each in looked.check.parameters:
            is_memory = each.kind == "buffer"
            own = (
                "seen" if each.name == SEEN else f"b{buffers.index(each.name)}" if is_memory else self.scalar(each.name)
            )
            passed.append(own)
        call = f"{self.name}_data{number}({', '.join(passed)})"
        if looked.marks:
            body.append(f"const int64_t marks = {looked.marks};")
            body.append("void *seen = over ? NULL : tc_allocate(options, (size_t)marks + 1, 64);")
            body.append(f"if (!seen) return {self.plain('TC_MEMORY', c_string('there is no memory for a check'))};")
            body += ["memset(seen, 0, (size_t)marks + 1);", f"const int wrong = {call};", "tc_release(options, seen);"]
        else:
            body.append(f"const int wrong = {call};")
        body.append(f"return wrong ? {self.name}_point(c, errors) : 0;")
        head = self.head(f"look{number}", f", const tc_options *options{given}")
        self.text += [head, "{", *(f"{_PAD}{line}" for line in body), "}", ""]
        return looked

    def vanishes(self) -> str:
        """Whether a size is 0."""
        return " || ".join(f"{self.names[name]} == 0" for name in self.program.sizes if name in self.names) or "0"

    def scalar(self, name: str) -> str:
        """A size or a number as a check takes it."""
        return self.names[name] if name in self.names else f"c->{self.values[name]}"

    def add(self, check: CCheck) -> None:
        """A function of loops, and what it needs."""
        self.helpers |= dict.fromkeys(check.helpers)
        self.text += [check.text, ""]

    def point(self) -> list[str]:
        """The message of a check that failed at a point."""
        lines = [
            f"static int {self.name}_point(const struct {self.name}_call *c, const int64_t *errors)",
            "{",
            f"{_PAD}(void)c;",
        ]
        lines += [f"{_PAD}switch (errors[0] - 1) {{"]
        for number, places in enumerate(self.of_items):
            told = ([f"(long long)errors[{2 + word}]" for word in self.conditions[place].words] for place in places)
            first, *second = map(self.failed, places, told)
            chosen = f"errors[3] ? {second[0]} : {first}" if second else first
            lines.append(f"{_PAD}case {number}: return {chosen};")
        return [*lines, f"{_PAD}}}", f"{_PAD}return TC_UNSUPPORTED;", "}", ""]

    # sizes -----------------------------------------------------------------------------------------------------------------------

    def numbers(self) -> list[str]:
        """What the arguments say of sizes, and the conditions on these."""
        given = "".join(f", {each.declared}" for each in self.signature.inputs)
        body = ["int over = 0, code = 0;", "(void)over; (void)code; (void)c;"]
        for each in self.signature.inputs:
            if not each.by_value:
                missing = self.plain("TC_NULL", c_string(f"`{each.name}` is NULL"))
                body.append(f"if (!{each.c}) return {missing};")
            for axis in range(each.rank):
                text = c_string(f"dimension {axis} of `{each.name}` is %lld")
                wrong = self.plain("TC_SIZE", text, f"(long long){each.c}->sizes[{axis}]")
                body.append(f"if ({each.c}->sizes[{axis}] < 0) return {wrong};")
            if each.by_value:
                body.append(f"c->{self.values[each.name]} = {each.c};")
                if each.name in self.names:
                    body.append(f"{self.names[each.name]} = (int64_t){each.c};")
        body += [*self.unified(), *self.formulas()]
        if self.definition.special is not None:
            body.append(f"if ((code = {self.name}_checks(c))) return code;")
        body += [*self.bound()]
        too_large = self.plain("TC_TOO_LARGE", c_string("numbers of this call leave 64 bits"))
        body += [f"if (over) return {too_large};", "return 0;"]
        return [self.head("sizes", given), "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def unified(self) -> list[str]:
        """Sizes of the signature: from the first dimension that has one, compared with the others."""
        lines: list[str] = []
        first: dict[str, tuple[Parameter, int]] = {}
        for parameter, written in zip(self.signature.inputs, self.definition.written, strict=True):
            for axis, dim in enumerate(written.dims):
                here = f"{parameter.c}->sizes[{axis}]"
                if isinstance(dim, str) and dim not in first:
                    first[dim] = parameter, axis
                    lines.append(f"{self.names[dim]} = {here};")
                elif isinstance(dim, str):
                    one, place = first[dim]
                    text = f"size `{dim}` is %lld in `{one.name}` (dimension {place})"
                    text += f" and %lld in `{parameter.name}` (dimension {axis})"
                    wrong = self.plain("TC_SIZE", c_string(text), f"(long long){self.names[dim]}", f"(long long){here}")
                    lines.append(f"if ({here} != {self.names[dim]}) return {wrong};")
                elif isinstance(dim, int):
                    text = f"dimension {axis} of `{parameter.name}` is {dim}; %lld came"
                    lines.append(
                        f"if ({here} != {dim}) return {self.plain('TC_SIZE', c_string(text), f'(long long){here}')};"
                    )
        return lines

    def formulas(self) -> list[str]:
        """Sizes that formulas give, and extents that are formulas."""
        lines: list[str] = []
        inputs = {each.name: each for each in self.signature.inputs}
        for each in self.definition.solved:
            here = f"{inputs[each.argument].c}->sizes[{each.axis}]"
            factor, rest = c_size(each.factor, self.names), c_size(each.rest, self.names)
            text = c_string(f"dimension {each.axis} of `{each.argument}` is %lld, which tells no `{each.name}`")
            wrong = self.plain("TC_SIZE", text, f"(long long){here}")
            lines.append(f"if ({factor} == 0) return {wrong};")
            lines.append(f"{self.names[each.name]} = tc_floor(tc_sub(&over, {here}, {rest}), {factor});")
            lines.append(f"if ({self.names[each.name]} < 0) return {wrong};")
        for parameter, written in zip(self.signature.inputs, self.definition.written, strict=True):
            for axis, dim in enumerate(written.dims):
                if isinstance(dim, Formula):
                    wanted, here = c_size(dim.value, self.names), f"{parameter.c}->sizes[{axis}]"
                    shown = dim.shown.replace("%", "%%")
                    text = c_string(f"dimension {axis} of `{parameter.name}` is %lld, but `{shown}` is %lld")
                    wrong = self.plain("TC_SIZE", text, f"(long long){here}", f"(long long){wanted}")
                    lines.append(f"if ({here} != {wanted}) return {wrong};")
        return lines

    def bound(self) -> list[str]:
        """The text of `Bind` in C, and the extents that kernels know by name."""
        (function,) = ast.parse(self.bind.text).body
        assert isinstance(function, ast.FunctionDef)
        variables = [argument.arg for argument in function.args.args][:-1]
        lines = [f"const int64_t {v} = {self.names[name]};" for v, name in zip(variables, self.bind.names, strict=True)]
        lines += [f"(void){v};" for v in variables]
        lines.append(f"const int check = {int(self.checked != 'none')};")
        known = {v: v for v in variables} | {
            "check": "check",
            "search": f"{self.name}_search",
            "is_read": f"{self.name}_is_read",
        }
        body = self.block(function.body, known, "")
        extents = [
            f"{self.names[name]} = {c_size(e, self.names)};" for name, e in self.definition.numbers.formulas.items()
        ]
        return [*extents, *lines, "(void)check;", *body]

    def block(self, statements: Sequence[ast.stmt], known: dict[str, str], pad: str) -> list[str]:
        """Statements of `Bind`."""
        lines: list[str] = []
        for stmt in statements:
            match stmt:
                case ast.Assign(
                    targets=[ast.Name(id="problem")],
                    value=ast.Call(func=ast.Name(id=("recheck" | "magnitude") as name)),
                ):
                    lines.append(f"{pad}if ((code = {self.name}_{name}(c))) return code;")
                case ast.If(test=ast.Compare(left=ast.Name(id="problem"))):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)]):
                    known[name] = name
                    lines += [
                        f"{pad}const int64_t {name} = {c_integer(ast.unparse(stmt.value), known)};",
                        f"{pad}(void){name};",
                    ]
                case ast.If(body=[ast.Return(value=ast.Constant(value=int(number)))]):
                    lines.append(f"{pad}if ({c_integer(ast.unparse(stmt.test), known)}) return {self.failed(number)};")
                case ast.If():
                    lines.append(f"{pad}if ({c_integer(ast.unparse(stmt.test), known)}) {{")
                    lines += self.block(stmt.body, known, pad + _PAD)
                    lines += [f"{pad}}} else {{", *self.block(stmt.orelse, known, pad + _PAD)] if stmt.orelse else []
                    lines.append(f"{pad}}}")
                case ast.Return(value=ast.Tuple(elts=[_, ast.Tuple(elts=shapes), _])):
                    lines += self.shape_fields(shapes, known)
                case _:
                    raise TypeError(f"{ast.unparse(stmt)} in the numbers of a call")
        return lines

    def shape_fields(self, shapes: Sequence[ast.expr], known: Mapping[str, str]) -> list[str]:
        """The extents of the results."""
        lines: list[str] = []
        for each in self.signature.results:
            shape = shapes[self.bind.tensors.index(each.name)]
            assert isinstance(shape, ast.Tuple)
            for axis, extent in enumerate(shape.elts):
                lines.append(f"c->{self.extent(each, axis)} = {c_integer(ast.unparse(extent), known)};")
        return lines

    def call_checks(self) -> list[str]:
        """What is asked of calls of a `%%sac` function: code for any sizes has arrays with elements."""
        special = self.definition.special
        if special is None:
            return []
        before: list[str] = []
        body = ["int over = 0;", f"int64_t errors[{RECORD}];", "(void)over; (void)errors; (void)c;"]
        for each in self.definition.written:
            none = self.plain(
                "TC_UNSUPPORTED", c_string(f"`{each.name}` has no elements, which the library has no code for")
            )
            empty = " || ".join(f"{self.names[dim]} == 0" for dim in each.dims if isinstance(dim, str))
            body += [f"if ({empty}) return {none};"] if empty else []
        extents = {name: to_expr(value) for name, value in special.extents.items()}

        def filled(expr: Expr) -> Expr:
            return rewrite(expr, lambda node: extents.get(node.name) if isinstance(node, Size) else None)

        for each in special.found.checks:
            number = len(self.conditions)
            shown = each.shown[: RECORD - 2]
            words = ", ".join(f"{label} is %lld" for label, _ in shown)
            text = f"{each.code.number}: {each.message}"
            self.conditions.append(Condition(text, (), f": {words}" if shown else "", tuple(range(len(shown)))))
            values = tuple(filled(value) for _, value in shown)
            loops = Block((Check(filled(each.condition), 0, values, Block(())),))
            check = self.looks.printed(f"{self.name}_check{number}", loops)
            self.helpers |= dict.fromkeys(check.helpers)
            before += [check.text, ""]
            passed = ["errors", *(self.scalar(parameter.name) for parameter in check.parameters)]
            told = [f"(long long)errors[{2 + k}]" for k in range(len(shown))]
            body.append(f"if ({self.name}_check{number}({', '.join(passed)})) return {self.failed(number, told)};")
        body.append("return 0;")
        return [*before, self.head("checks"), "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    # conditions that are looked for ----------------------------------------------------------------------------------------------

    def rechecks(self) -> list[str]:
        """What `Bind` calls: searches of points, and the look at everything where a size is 0."""
        text = self.bind.text
        lines: list[str] = []
        for place, item in enumerate(self.found.conditions.items):
            if f"search({place}, " in text and item.bound is not None:
                points = self.points(item.statement, item.bound.access, item.bound.dimension)
                lines += self.searched(f"search_{place}", points)
        for place, border in enumerate(borders(self.found.ranges)):
            if f"is_read({place}, " in text:
                lines += self.border(place, border.statement, border.access)
        if "recheck(" in text:
            lines += self.recheck()
        if "magnitude(" in text:
            lines += self.magnitude()
        checks, self.text = self.text, []
        return [*(self.point() if self.items else []), *checks, *lines]

    def magnitude(self) -> list[str]:
        """The look at arithmetic of large numbers, as `Magnitudes` has it."""
        believed = Magnitudes(self.program, self.found.ranges).believed
        wrong = self.plain("TC_TOO_LARGE", c_string("index arithmetic of this call may not fit into 64 bits"))
        body = ["int over = 0;", "tc_interval x;", "(void)over; (void)x; (void)c;"]
        for statement in self.program.statements:
            indices = {r.index: r for r in self.found.ranges.indices[statement.name]}
            inner: list[str] = []
            for node in believed[statement.name]:
                low, high = node.dtype.limits
                own = node.operand if isinstance(node, Cast) else node
                inner.append(f"{_PAD}x = {self.interval(own, indices)};")
                inner.append(f"{_PAD}if (x.low < {low}.0L || x.high > {high}.0L) return {wrong};")
            if inner:
                body += [f"if ({self.runs(self.found.ranges.points(statement.name))}) {{", *inner, "}"]
        body.append("return 0;")
        return [self.head("magnitude"), "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def interval(self, expr: Expr, indices: Mapping[str, IndexRange]) -> str:
        """Between which numbers an integer expression is without wrapping; all of its type where nothing better is known."""
        match expr:
            case Const():
                return f"tc_between({int(expr.value)}.0L, {int(expr.value)}.0L)"
            case Size() if expr.name in self.names:
                return f"tc_between({self.names[expr.name]}, {self.names[expr.name]})"
            case Read(indices=()) if expr.tensor in self.names:
                return f"tc_between({self.names[expr.tensor]}, {self.names[expr.tensor]})"
            case IndexVar() if expr.name in indices:
                r = indices[expr.name]
                if r.lower is not None and r.upper is not None:
                    return f"tc_between({c_size(r.lower, self.names)}, {c_size(r.upper - 1, self.names)})"
            case Unary(op="-"):
                return f"tc_between_sub(tc_between(0, 0), {self.interval(expr.operand, indices)})"
            case Binary(op=("+" | "-" | "*" | "min" | "max") as op) if expr.dtype.is_integer:
                name = {"+": "add", "-": "sub", "*": "mul"}.get(op, op)
                return f"tc_between_{name}({self.interval(expr.left, indices)}, {self.interval(expr.right, indices)})"
            case Cast() if expr.operand.dtype.is_integer:
                (low, high), (least, most) = expr.operand.dtype.limits, expr.dtype.limits
                if least <= low and high <= most:
                    return self.interval(expr.operand, indices)
            case _:
                pass
        low, high = expr.dtype.limits
        return f"tc_between({low}.0L, {high}.0L)"

    def points(self, statement: str, access: Access, dimension: int) -> PointCheck:
        """The check of an access at every point."""
        return point_check(self.program.statement(statement), self.found.ranges, access, dimension)

    def searched(self, name: str, points: PointCheck) -> list[str]:
        """A function that says whether an access leaves its tensor at a point; what is not looked at here may hold anywhere."""
        points = replace(points, guards=tuple(each for each in points.guards if not reads_elements(each[0])))
        check = self.looks.printed(f"{self.name}_{name}_points", self.looks.loops(points, 0))
        self.helpers |= dict.fromkeys(check.helpers)
        passed = ["errors", *(self.scalar(each.name) for each in check.parameters)]
        body = [
            "int over = 0;",
            f"int64_t errors[{RECORD}];",
            f"if ({self.looks.inactive(points)}) return 0;",
            "(void)over; (void)c;",
        ]
        body.append(f"return {self.name}_{name}_points({', '.join(passed)});")
        return [check.text, "", self.head(name), "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def border(self, place: int, statement: str, access: Access) -> list[str]:
        """Whether an access to a dimension without elements takes place."""
        around = self.found.ranges.around(statement, access.begins)
        if any(depends_on_data(access, k) for k in range(len(access.index))):
            return [
                self.head(f"is_read_{place}"),
                "{",
                f"{_PAD}int over = 0;",
                f"{_PAD}(void)over;",
                f"{_PAD}return {self.runs(around)};",
                "}",
                "",
            ]
        found = self.points(statement, access, 0)
        active = (*found.active, *(each.extent for each in around))
        points = replace(found, index=int64(0), lower=int64(1), upper=int64(1), active=active)
        return self.searched(f"is_read_{place}", points)

    def runs(self, around: Iterable[IndexRange]) -> str:
        """Whether no range is empty."""
        tests = [f"{c_size(each.extent, self.names)} > 0" for each in around]
        return " && ".join(tests) or "1"

    def recheck(self) -> list[str]:
        """With a size of 0 every access of a statement that still runs is looked at again, as `Bind` does."""
        before: list[str] = []
        body = ["int over = 0;", "(void)over; (void)c;"]
        subscripts = self.found.conditions.subscripts()
        for statement in self.program.statements:
            inner: dict[str, list[str]] = {}
            for item in subscripts.get(statement.name, ()):
                assert item.bound is not None
                access, dimension = item.bound.access, item.bound.dimension
                on_data = item.kind in ("DATA", "POINTWISE")
                looked_at = on_data or (id(access), dimension) in self.bind.at_zero
                if depends_on_data(access, dimension) and looked_at:
                    continue
                number = len(self.conditions)
                points = self.points(statement.name, access, dimension)
                if depends_on_data(access, dimension):
                    points = replace(points, guards=())  # what cannot be looked at here may hold anywhere
                if _is_whole(points):
                    continue
                unknown = any(isinstance(node, Read) and node.indices for node in walk(points.index))
                if not unknown:
                    before += self.searched(f"zero_{number}", points)
                self.conditions.append(of_item(self.bind, item))
                test = "1" if unknown else f"{self.name}_zero_{number}(c)"
                runs = self.runs(self.found.ranges.around(statement.name, access.begins))
                inner.setdefault(runs, []).append(f"{_PAD}if ({test}) return {self.failed(number)};")
            for runs, lines in inner.items():
                body += [f"if ({runs}) {{", *lines, "}"]
        return [*before, self.head("recheck"), "{", *(f"{_PAD}{line}" for line in [*body, "return 0;"]), "}", ""]

    # builds ----------------------------------------------------------------------------------------------------------------------

    def plans(self, entry: Entry) -> list[str]:
        """A function for every build, and the table of those of a variant."""
        lines: list[str] = []
        for variant in entry.variants:
            kinds = ["any"] if variant.empty else [kind.name for kind in self.kinds]
            for kind, steps in zip(kinds, variant.steps, strict=True):
                lines += self.plan(f"{variant.name}{entry.suffix}_{kind}", steps, kind)
        return lines

    def plan(self, name: str, steps: Sequence[Step], kind: str) -> list[str]:
        """One build: memory for its temporaries, then its kernels in order."""
        body = ["int over = 0, code = 0;", "int64_t total = 0;", "const int64_t threads = tc_threads(options);"]
        body.append("(void)over; (void)total; (void)threads; (void)c;")
        places, align = self.temporaries(steps, self.given(), body)
        if places:
            taken = self.plain(
                "TC_MEMORY", c_string("there is no memory for %lld bytes of temporaries"), "(long long)total"
            )
            body += [f"_Alignas({64 if align <= 64 else 16}) char small[{SMALL if align <= 64 else 16}];"]
            fits = f"!over && total <= (int64_t)sizeof small && {align} <= 64"
            body += [f"char *own = over || ({fits}) ? NULL : tc_allocate(options, (size_t)total, {align});"]
            body += [f"char *memory = {fits} ? small : own;", f"if (!memory) return {taken};"]
        for number, step in enumerate(steps):
            body += self.launch(number, step, kind, places)
        jumps = any("goto done" in line for line in body)
        body += ["done:"] if jumps else []
        body += ["tc_release(options, own);"] if places else []
        body.append("return code;")
        return [self.head(name, ", const tc_options *options"), "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def temporaries(self, steps: Sequence[Step], given: set[str], body: list[str]) -> tuple[dict[str, str], int]:
        """The places of temporaries and of the memory of threads, by name, and the largest alignment."""
        places: dict[str, str] = {}
        largest = 64
        for number, step in enumerate(steps):
            buffers = [(each.name, each, "") for each in step.temporaries if each.name not in given | places.keys()]
            if step.entry is not None and step.entry.workspace is not None:
                buffers.append((f"workspace {number}", step.entry.workspace, "threads"))
            elif step.entry is None:
                buffers += [(f"workspace {number} {each.name}", each, "") for each in step.source.workspace]
            for key, buffer, times in buffers:
                align = max(64, buffer.align)
                largest = max(largest, align)
                places[key] = place = f"t{len(places)}"
                size = self.bytes_of(buffer, step, times)
                body.append(f"const int64_t {place} = tc_place(&over, &total, {size}, {align});")
        return places, largest

    def bytes_of(self, buffer: Buffer, step: Step, times: str) -> str:
        """Bytes of a temporary, with the pitch of its rows."""
        extents = [f"tc_max(0, {self.integer(extent, step)})" for extent in buffer.shape]
        if buffer.pad and extents:
            assert pitched((1,), buffer.pad) == (1 + buffer.pad,)
            extents[-1] = f"tc_add(&over, {extents[-1]}, {buffer.pad})"
        size = times or "1"
        for each in [*extents, str(ITEMSIZE[buffer.dtype])]:
            size = f"tc_mul(&over, {size}, {each})"
        return size

    def integer(self, expr: Expr, step: Step) -> str:
        """An expression over the sizes and scalars of a kernel."""
        known = {name: f"n{k}" for k, name in enumerate((*step.info.sizes, *(name for name, _ in step.info.scalars)))}
        return c_integer(python_text(expr, known), {short: self.number(name) for name, short in known.items()})

    def number(self, name: str) -> str:
        """A size or a scalar."""
        return self.names[name] if name in self.names else f"(int64_t)c->{self.values[name]}"

    def pointer(self, name: str, places: Mapping[str, str]) -> str:
        """Where a buffer is."""
        if name in places:
            return f"(memory + {places[name]})"
        for each in self.signature.results:
            if root_of(self.program, each.name) == name:
                return f"c->{self.pointers[each.name]}"
        return f"c->{self.pointers[name]}"

    def launch(self, number: int, step: Step, kind: str, places: Mapping[str, str]) -> list[str]:
        """The checks on data before a kernel, and its start."""
        lines = [f"{{ /* {step.info.name} */"]
        for scan in step.scans:
            if scan not in self.looked:
                continue
            passed = "".join(f", {self.pointer(each, places)}" for each in self.looked[scan].buffers)
            lines.append(f"{_PAD}if ((code = {self.name}_look{scan}(c, options{passed}))) goto done;")
        assert step.entry is not None
        checks = bool(step.info.checks)
        if checks:
            lines.append(f"{_PAD}int64_t errors[{RECORD}] = {{0}};")
        slots: list[str] = []
        copied: list[str] = []
        for slot, argument in enumerate(step.entry.arguments):
            match argument.kind:
                case "buffer":
                    slots.append(f"(int64_t)(intptr_t){self.pointer(argument.name, places)}")
                case "size":
                    slots.append(self.number(argument.name))
                case "scalar":
                    slots.append("0")
                    value = f"c->{self.values[argument.name]}"
                    copied.append(f"memcpy(&slots[{slot}], &{value}, sizeof {value});")
                case "workspace":
                    slots.append(f"(int64_t)(intptr_t)(memory + {places[f'workspace {number}']})")
                case "errors":
                    slots.append("(int64_t)(intptr_t)errors")
                case _:
                    raise TypeError(f"a slot for {argument.kind}")
        lines += [f"{_PAD}int64_t slots[] = {{{', '.join(slots) or '0'}}};", *(_PAD + each for each in copied)]
        sizes = [f"slots[{k}]" for k, argument in enumerate(step.entry.arguments) if argument.kind == "size"]
        lines += [_PAD + each for each in c_steps(step.entry.tasks, sizes, "k")]
        kernel = self.kernels[kind, step.source.text]
        lines.append(f"{_PAD}tc_run(options, threads, {kernel}, slots, k);")
        if checks:
            lines.append(f"{_PAD}if (errors[0]) {{ code = {self.name}_point(c, errors); goto done; }}")
        return [*lines, "}"]

    # public functions ------------------------------------------------------------------------------------------------------------

    def entry(self, entry: Entry) -> list[str]:
        """The function that a program calls."""
        signature = self.signature
        body = [f"struct {self.name}_call call, *c = &call;", "int over = 0, level, code;"]
        body += [f"int (*run)(struct {self.name}_call *, const tc_options *) = NULL;", "(void)over;"]
        body += self.arguments()
        lacks = self.plain(
            "TC_PROCESSOR", c_string("this processor lacks instructions: the library needs %s"), "tc_needs"
        )
        body += ["if ((level = tc_level()) < 0)", f"{_PAD}return {lacks};", *self.chosen(entry, *self.of_cpu())]
        none = self.plain("TC_UNSUPPORTED", c_string("the library has no code for these sizes"))
        body.append(f"if (!run) return {none};")
        copied = [each for each in signature.inputs if each.rank]
        if copied:
            body += self.copied(copied)
        else:
            body.append("return run(c, options);")
        return [f"TC_PUBLIC {signature.call(entry.suffix)}", "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def of_cpu(self) -> tuple[list[str], str, bool]:
        """What `chosen` has to know of code for the CPU."""
        return [kind.name for kind in self.kinds], f"struct {self.name}_call *, const tc_options *", False

    def arguments(self) -> list[str]:
        """The look at all arguments: sizes, conditions, places."""
        signature = self.signature
        passed = ", ".join(["c", *(each.c for each in signature.inputs)])
        lines = [f"if ((code = {self.name}_sizes({passed}))) return code;"]
        arrays = [each for each in signature.parameters if not each.by_value]
        for each in signature.results:
            lines += self.result(each)
        for each in arrays:
            lines += self.array(each)
        for k, each in enumerate(signature.results):
            for other in [*(a for a in arrays if not a.is_result), *signature.results[:k]]:
                ranges = f"&r_{each.c}, {c_string(other.name)}, &r_{other.c}"
                meet = f"tc_meet({self.name}_name, {c_string(each.name)}, {ranges})"
                lines.append(f"if ((code = {meet})) return code;")
        return lines

    def given(self) -> set[str]:
        """The buffers that the caller has."""
        results = {root_of(self.program, each.name) for each in self.signature.results}
        return {each.name for each in self.signature.inputs} | results

    def result(self, each: Parameter) -> list[str]:
        """Whether a result has the extents that it is to have."""
        lines = [f"if (!{each.c}) return {self.plain('TC_NULL', c_string(f'`{each.name}` is NULL'))};"]
        for axis in range(each.rank):
            here, wanted = f"{each.c}->sizes[{axis}]", f"c->{self.extent(each, axis)}"
            text = c_string(f"dimension {axis} of `{each.name}` is %lld; it has to be %lld")
            wrong = self.plain("TC_SIZE", text, f"(long long){here}", f"(long long){wanted}")
            lines.append(f"if ({here} != {wanted}) return {wrong};")
        return lines

    def array(self, each: Parameter) -> list[str]:
        """Where an array is, and how it lies there."""
        size = each.dtype.bytes
        align = each.dtype.part.bytes if each.pairs else size
        data, sizes, strides = (f"{each.c}->{field}" for field in ("data", "sizes", "strides"))
        if not each.rank:
            data, sizes, strides = each.c, "NULL", "NULL"
        given = f"{data}, {sizes}, {strides}, {each.rank}, {size}, {align}, &r_{each.c}, &q_{each.c}"
        lines = [f"tc_range r_{each.c};", f"int q_{each.c};", f"(void)q_{each.c};"]
        lines.append(f"if ((code = tc_array({self.name}_name, {c_string(each.name)}, {given}))) return code;")
        lines.append(f"c->{self.pointers[each.name]} = {data};")
        if each.is_result and each.rank:
            wrong = self.plain("TC_STRIDES", c_string(f"`{each.name}` does not lie in row order"))
            lines.append(f"if (!q_{each.c}) return {wrong};")
        return lines

    def copied(self, inputs: Sequence[Parameter]) -> list[str]:
        """Arrays that do not lie in row order are copied for the call."""
        tests = " && ".join(f"q_{each.c}" for each in inputs)
        lines = [f"if ({tests}) return run(c, options);", f"void *copies[{len(inputs)}] = {{NULL}};"]
        none = self.plain("TC_MEMORY", c_string("there is no memory for a copy in row order"))
        for k, each in enumerate(inputs):
            data = f"{each.c}->data, {each.c}->sizes, {each.c}->strides, {each.rank}, {each.dtype.bytes}"
            lines.append(f"if (!q_{each.c} && !code) {{")
            lines.append(f"{_PAD}c->{self.pointers[each.name]} = copies[{k}] = tc_copy(options, {data});")
            lines += [f"{_PAD}if (!copies[{k}]) code = {none};", "}"]
        lines.append("if (!code) code = run(c, options);")
        lines.append(f"for (int k = 0; k < {len(inputs)}; k++) tc_release(options, copies[k]);")
        return [*lines, "return code;"]

    def chosen(self, entry: Entry, kinds: Sequence[str], types: str, everywhere: bool) -> list[str]:
        """Which variant is the right one.

        Args:
            kinds: the names of the processors or devices, by `level`.
            types: of the parameters of a build.
            everywhere: there is code for each of them where a size is 0, too.
        """
        lengths = [f"{c_size(extent, self.names)} <= 0" for extent in self.definition.lengths]
        lines = [f"const int empty = {' || '.join([self.vanishes(), *lengths])};", "(void)empty;"]
        for variant in entry.variants:
            tests = ["empty" if variant.empty else "!empty"]
            tests += [f"{self.names[name]} == {value}" for name, value in variant.equal]
            tests += [f"{self.names[name]} <= {most}" for name, most in variant.most]
            for name, fact in variant.facts:
                tests.append(f"{self.names[name]} >= {fact.least}")
                tests += [] if fact.most is None else [f"{self.names[name]} <= {fact.most}"]
                tests += [] if fact.multiple == 1 else [f"{self.names[name]} % {fact.multiple} == 0"]
            tests += [f"{self.names[name]} != 0" for name in variant.positive]
            single = variant.empty and not everywhere
            found = [f"{self.name}_{variant.name}{entry.suffix}_{kind}" for kind in (["any"] if single else kinds)]
            table = f"static int (*const found[])({types}) = {{{', '.join(found)}}};"
            place = "0" if single else "level"
            lines += [f"if (!run && {' && '.join(tests)}) {{", f"{_PAD}{table}", f"{_PAD}run = found[{place}];", "}"]
        return lines

    def shapes(self) -> list[str]:
        """The function that tells the sizes of the results."""
        passed = ", ".join(["c", *(each.c for each in self.signature.inputs)])
        body = [
            f"struct {self.name}_call call, *c = &call;",
            f"int code = {self.name}_sizes({passed});",
            "if (code) return code;",
        ]
        for each in self.signature.results:
            if each.rank:
                body.append(f"if (!{each.c}) return {self.plain('TC_NULL', c_string(f'`{each.name}` is NULL'))};")
            body += [f"{each.c}->sizes[{axis}] = c->{self.extent(each, axis)};" for axis in range(each.rank)]
        body.append("return 0;")
        return [f"TC_PUBLIC {self.signature.shapes()}", "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def error(self) -> list[str]:
        """The function that tells what a code means."""
        count = len(self.conditions)
        call = f"tc_text({self.name}_name, code, {self.name}_conditions, {count})"
        return [f"TC_PUBLIC {self.signature.error()}", "{", f"{_PAD}return {call};", "}", ""]


def _is_whole(points: PointCheck) -> bool:
    """Whether the subscript is an index whose range is that of the dimension."""
    own = next((r for r in points.ranges if isinstance(points.index, IndexVar) and r.index == points.index.name), None)
    if own is None or own.lower is None or own.upper is None:
        return False
    return (to_expr(own.lower), to_expr(own.upper)) == (points.lower, points.upper)
