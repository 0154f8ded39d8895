"""Random comprehensions: the specialised program computes what the direct evaluator computes."""

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.function import Options, module_of
from tc_jupyter.runtime import jit
from tests.sac_call import OutOfBounds, Refused, call_sac
from tests.sac_evaluator import SacError, evaluate_all, from_numpy

STATIC = {
    "TC202",
    "TC251",
    "TC351",
    "TC356",
    "TC652",
    "TC653",
    "TC654",
    "TC655",
}  # ranks, shapes and constant indices are checked in dead code too


TARGETS = ("interpreter", "cpu") if jit.available() else ("interpreter",)

HELPERS = """long[+] turned(long[+] x) { return reverse(x) + 1; }
long turned(long x) { return x - 1; }
long[*] rows(long[+] x) { return { [i] -> x[i] * (i + 1) }; }
long larger(long x, long y) { return x > y ? x : y; }
long[.] %(long[.] x, long y) { return x - y; }
long, long both(long x, long y) { return (x / y, x % y); }
long[*], long[*] halves(long[*] x) { y = x / 2; return (y, x - y); }
"""
"""Functions that a drawn program may call: overloaded, one with a comprehension, one to fold with, an operator."""


class Maker:
    """Draws the text of expressions over arrays `a`, `b` of known shapes; most of them are right."""

    def __init__(self, draw, shapes):
        self.draw = draw
        self.shapes = shapes
        self.count = 0

    def pick(self, *options):
        return self.draw(st.sampled_from(options))

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def name(self, stem="i"):
        self.count += 1
        return f"{stem}{self.count}"

    def array(self, depth, scope):
        """Text of an expression of any rank."""
        if depth == 0:
            return self.pick(*self.shapes)
        kind = self.number(0, 15)
        if kind == 13:
            return self.moved(depth, scope)
        if kind == 14:
            x = self.array(depth - 1, scope)
            return self.pick(
                f"where({x} > {self.number(-1, 4)}, {x}, {self.scalar(depth - 1, scope)})",
                f"tile([{self.number(0, 2)}], [{self.number(0, 2)}], {x})",
                f"reshape(reverse(shape({x})), {x})",
                f"reshape([prod(shape({x}))], {x})",
                f"reshape([2, prod(shape({x})) / 2], {x})",
                f"iota({self.extent()})",
            )
        if kind == 15:
            x, y = self.array(depth - 1, scope), self.pick(str(self.number(-3, 3)), "n", self.scalar(depth - 1, scope))
            return self.pick(f"({x} / {y})", f"mod({x}, {y})", f"(({x} - 4) / ({y}))", f"(n / ({x} - 2))")
        if kind == 10:
            return f"{self.pick('turned', 'rows')}({self.array(depth - 1, scope)})"
        if kind == 11:
            test = f"{self.extent()} {self.pick('<', '>=', '==')} {self.extent()}"
            x = self.array(depth - 1, scope)
            return self.pick(f"({test} ? {x} : {x} + 1)", f"({x} % {self.number(1, 3)})")
        if kind == 12:
            return self.fold(depth, scope)
        if kind == 0:
            return f"({self.array(depth - 1, scope)} {self.pick('+', '-', '*')} {self.scalar(depth - 1, scope)})"
        if kind == 1:
            x = self.array(depth - 1, scope)
            return f"({x} + {x})"
        if kind == 2:
            return f"reverse({self.array(depth - 1, scope)})"
        if kind == 3:
            return f"transpose({self.array(depth - 1, scope)})"
        if kind == 4:
            word = self.pick("take", "drop")
            return f"{word}([{self.number(-2, 2)}], {self.array(depth - 1, scope)})"
        if kind == 5:
            x = self.array(depth - 1, scope)
            return f"({x} ++ {self.pick(x, self.array(depth - 1, scope))})"
        if kind == 6:
            return self.pick("shape({})", "(0 * {})", "{}[.]", "{}[0]", "{}[., 0]", "{}[..., 0]").format(
                self.array(depth - 1, scope)
            )
        if kind == 7:
            return self.with_loop(depth, scope)
        return self.comprehension(depth, scope)

    def moved(self, depth, scope):
        """Text of a rotated or shifted array."""
        x, by = self.array(depth - 1, scope), self.pick(str(self.number(-4, 4)), "n", "-n")
        return self.pick(
            f"rotate([{by}], {x})",
            f"rotate(0, {by}, {x})",
            f"shift([{by}], {x})",
            f"shift([{by}], {self.number(-2, 9)}, {x})",
            f"shift(0, {by}, n, {x})",
            f"rotate([{by}, {self.number(-2, 2)}], {x})",
        )

    def statements(self):
        """Lines that change the scalar `s` and the array `d`."""
        lines = [
            f"s = {self.pick('n', '0', '1 - n')};",
            f"d = {self.pick(*(name for name in self.shapes if name != 'c'))};",
        ]
        for _ in range(self.number(0, 3)):
            kind = self.number(0, 10)
            test = f"{self.pick('s', 'n', 'shape(a)[0]', 'sum(d)')} {self.pick('<', '>', '==')} {self.number(-1, 3)}"
            change = self.pick(
                "s += 2;", "s -= n;", "s *= -3;", "s /= 2;", "s %= 3;", "s++;", "s--;", "d += s;", "d = reverse(d);"
            )
            other = self.pick("s -= 1;", "d *= 2;", "s = n; d = d - 1;")
            lines.append(
                (
                    f"q, r = both(s - 5, {self.pick('2', '-3', 'n')}); s = q * 10 + r;",
                    "p, q = halves(d); d = p * q;",
                    change,
                    change,
                    f"if ({test}) {{ {change} }} else {{ {other} }}",
                    f"if ({test}) {{ {change} }}",
                    f"for (k = 0; k < {self.pick('2', 'n', 'shape(a)[0]')}; k++) {{ {change} s += k; }}",
                    f"k = {self.number(1, 9)}; do {{ {change} k /= 2; }} while (k > 1);",
                    f"for ({self.rounds()}) {{ {self.state()} if ({test}) {{ {change} }} else {{ {self.state()} }} }}",
                    f"for ({self.rounds()}) {{ {self.state()} {self.state()} }}",
                    self.nest(test),
                )[kind]
            )
        return lines

    def nest(self, test):
        """Text of a loop with loops inside, one of them in a choice or behind another one."""
        first, last = self.pick("0", "k", "n - k"), self.pick("n", "k", "k + 2", "3")
        inner = f"for (j = {first}; j < {last}; j++) {{ {self.pick('s += j;', 's = s * 2 - j * k;', 'd = d + j - s;')} {self.state()} }}"
        other = f"for (i = n; i > {self.pick('0', 'k')}; i -= 2) {{ {self.pick('s -= i;', 't += s; d = d - t;')} }}"
        before = self.pick("t = s;", "t = sum(d); s++;", "t = k; d = d * 2;")
        parts = self.pick(
            f"{inner} s -= t;",
            f"{inner} {other}",
            f"if ({test}) {{ {inner} }} else {{ {other} }} s += t;",
            f"for (j = 0; j < n; j++) {{ {other} s += j; }}",
        )
        return f"for ({self.rounds()}) {{ {before} {parts} }}"

    def rounds(self):
        """The head of a loop that counts."""
        end = self.pick("n", "n", "shape(a)[0]", "n * 2")
        return self.pick(
            f"k = 0; k < {end}; k++", f"k = {end}; k > 0; k--", f"k = 1; k <= {end}; k += 2", f"k = n; {end} > k; k++"
        )

    def state(self):
        """A change of the scalar `s` or of the array `d` in a round, mostly one that keeps the shape."""
        return self.pick(
            "s += k;",
            "s = s * 2 - k;",
            "s = sum(d) - s;",
            "d = d * k + s;",
            "d = rotate([k], d);",
            "d = shift([1], s, d);",
            "d = { iv -> d[iv] + a[iv] | iv < shape(d) };",
            "d = { iv -> d[iv] + sum(iv) * k | iv < shape(d) };",
            "d = { [i, ...] -> with { ([0] <= [j] < [i + 1]) : d[j]; } : fold(+, 0 * d[i]) };",
            "d = with { (0 * shape(d) + 1 <= iv < shape(d) - 1) : d[iv + 1] - d[iv - 1]; ([0] <= iv < [1]) : k; } : modarray(d);",
            "d = drop([1], d);",
        )

    def scalar(self, depth, scope):
        kind = self.number(0, 11)
        if kind == 10:
            return f"({self.scalar(0, scope)} - {self.number(0, 9)}) {self.pick('/', '%')} {self.pick('2', '-3', '3', 'n')}"
        if kind == 11:
            x = self.pick(*self.shapes)
            return f"({self.pick('all', 'any')}({x} > {self.number(-1, 5)}) ? 1 : 0)"
        if kind == 7:
            return self.pick(self.extent(), f"turned({self.scalar(0, scope)})")
        if depth and scope and kind == 8:  # a shape that depends on an index, inside a reduction
            x, i = self.array(depth - 1, scope), self.pick(*scope)
            return f"{self.pick('sum', 'maxval')}(drop([{i}], {x}) ++ take([{self.number(0, 1)}], {x}))"
        if kind == 9:
            test = f"{self.extent()} {self.pick('<', '>')} {self.number(0, 3)}"
            word = self.pick("take([2], {0})", "drop([1], {0})", "{0}[1]").format(self.pick(*self.shapes))
            return f"({test} ? sum({word}) : {self.number(0, 5)})"
        if scope and kind <= 2:
            return self.pick(*scope)
        if depth and kind == 3:
            return f"{self.pick('sum', 'prod')}({self.array(depth - 1, scope)})"
        if depth and kind == 4:
            k = self.name("k")
            inner = f"{{ [{k}] -> {k} * {self.scalar(0, [*scope, k])} | [{k}] < [{self.number(0, 3)}] }}"
            return f"sum({inner})"
        if scope and kind == 5:
            i = self.pick(*scope)
            return (
                f"({i} {self.pick('<', '==', '>')} {self.number(0, 2)} ? {self.scalar(0, scope)} : {self.number(0, 9)})"
            )
        return str(self.number(0, 5))

    def extent(self):
        """Text of a number that is known at a call."""
        return self.pick("n", "shape(a)[0]", "dim(b)", str(self.number(0, 3)))

    def limit(self, *numbers):
        """A component of a bound."""
        return "n" if self.number(0, 9) == 0 else str(self.pick(*numbers))

    def fold(self, depth, scope):
        iv = self.name("v")
        array = self.pick(*self.shapes)
        function, neutral = self.pick(("+", 0), ("*", 1), ("max", -99), ("min", 99), ("larger", -99))
        low = self.pick(f"0 * shape({array})", f"0 * shape({array}) + {self.number(0, 1)}")
        grid = self.pick("", "", " step 2", " step 3 width 2")
        parts = f"({low} <= {iv} < shape({array}){grid}) : {array}[{iv}] + {self.scalar(0, scope)};"
        if not grid and self.number(0, 3) == 0:
            parts = f"({low} + 1 <= {iv} < shape({array}) - 1) : {self.scalar(0, scope)}; {parts}"
        return f"with {{ {parts} }} : fold({function}, {neutral})"

    def body(self, depth, scope, names, vector):
        """A body that selects with the index, so that bounds can be left out."""
        array = self.pick(*self.shapes)
        kind = self.number(0, 7)
        if vector:
            at = self.pick("{0}", "{0}", "{0} + 1", "reverse({0})").format(names[0])
            base = f"{array}[{at}]"
            extra = self.pick(
                "", f" + {self.pick(*self.shapes)}[{names[0]}]", f" * {self.scalar(0, scope)}", f" + sum({names[0]})"
            )
            return base + extra if kind < 7 else self.array(depth - 1, scope)
        if kind == 7:
            return self.array(max(depth - 1, 0), [*scope, *names])
        shuffled = self.draw(st.permutations(names))
        at = ", ".join(self.pick("{}", "{}", "{} + 1", "2 * {}", "{} - 1").format(n) for n in shuffled)
        base = f"{array}[{at}]"
        if kind == 5:
            k = self.name("k")
            base = f"sum({{ [{k}] -> {array}[{', '.join(shuffled)} + {k}] * {self.pick(*self.shapes)}[{k}] }})"
        if kind == 6:
            base = f"{{ [{(k := self.name('k'))}] -> {array}[{', '.join([*shuffled, k])}] }}"
        return f"{base} + {self.scalar(max(depth - 1, 0), [*scope, *names])}"

    def comprehension(self, depth, scope):
        parts = [self.partition(depth, scope, last=False) for _ in range(self.pick(0, 0, 0, 1, 1, 2))]
        if parts and self.number(0, 1):
            iv = self.name("v")
            last = f"{iv} -> {self.pick(*self.shapes)}[{iv}]"
        else:
            last = self.partition(depth, scope, last=True)
        return "{ " + "; ".join([*parts, last]) + " }"

    def partition(self, depth, scope, last):
        if self.number(0, 2) == 0:
            iv = self.name("v")
            n = self.number(0, 3)
            return f"{iv} -> {self.body(depth, scope, [iv], True)}{self.generator(iv, n, last)}"
        names = [self.name() for _ in range(self.number(1, 2))]
        items = list(names)
        for dot in self.draw(
            st.lists(st.sampled_from([".", "..."]), max_size=2, unique_by=lambda x: x == "..." or id(x))
        ):
            items.insert(self.number(0, len(items)), dot)
        return f"[{', '.join(items)}] -> {self.body(depth, scope, names, False)}{self.generator('[' + ', '.join(names) + ']', len(names), last)}"

    def generator(self, names, count, last):
        low = "[" + ", ".join(self.limit(0, 1, 2) for _ in range(count)) + "]"
        high = "[" + ", ".join(self.limit(0, 1, 2, 2, 3, 3, 4) for _ in range(count)) + "]"
        if self.number(0, 3) == 0:
            high = "." if not last else high
        return self.pick(
            "",
            "",
            f" | {low} <= {names}",
            f" | {names} < {high}",
            f" | {low} <= {names} < {high}",
            f" | . <= {names} < {high}",
            f" | {low} <= {names} < {high} step [{', '.join(str(self.number(1, 3)) for _ in range(count))}]",
            f" | {low} <= {names} < {high} step {self.number(1, 3)} width {self.number(1, 2)}",
        )

    def with_loop(self, depth, scope):
        count = self.number(1, 2)
        iv = self.name("v")
        parts = []
        for _ in range(self.number(0, 2)):
            low = "[" + ", ".join(str(self.number(0, 2)) for _ in range(count)) + "]"
            high = self.pick(
                "." if count else "[]", "[" + ", ".join(str(self.number(0, 3)) for _ in range(count)) + "]"
            )
            relation = self.pick("<", "<=")
            grid = self.pick("", "", "", f" step {self.number(1, 3)}", f" step [{', '.join('2' * count)}] width 1")
            block = self.pick("", "", f" {{ x = {iv}[0]; if (x > 0) {{ x -= 2; }} }}")
            parts.append(
                f"({self.pick(low, low, '.')} {relation} {iv} {self.pick('<', '<=') if high != '.' else '<'} {high}{grid}){block}"
                f" : {'x' if block else f'{iv}[0]'} + {self.scalar(depth - 1, scope)};"
            )
        frame = "[" + ", ".join(str(self.number(0, 4)) for _ in range(count)) + "]"
        operator = self.pick(
            f"genarray({frame}, {self.number(0, 9)})", f"genarray({frame})", f"modarray({self.pick(*self.shapes)})"
        )
        return f"with {{ {' '.join(parts)} }} : {operator}"


@st.composite
def programs(draw):
    extents = st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4])
    shapes = {
        name: tuple(draw(st.lists(extents, min_size=low, max_size=high)))
        for name, low, high in (("a", 1, 3), ("b", 0, 2))
    }
    maker = Maker(draw, shapes)
    lines = []
    if draw(st.booleans()):
        lines += [f"    {line}" for line in maker.statements()]
        maker.shapes = {**shapes, "d": None}
    if draw(st.booleans()):
        lines.append(f"    c = {maker.array(draw(st.integers(0, 2)), [])};")
        maker.shapes = {**maker.shapes, "c": None}
    result = maker.comprehension(2, []) if draw(st.integers(0, 3)) else maker.array(2, [])
    text = (
        HELPERS + "long[*] f(long[*] a, long[*] b, long n) {\n" + "\n".join([*lines, f"    return {result};"]) + "\n}"
    )
    data = [
        np.array(draw(st.lists(st.integers(-3, 9), min_size=(n := int(np.prod(s))), max_size=n)), np.int64).reshape(s)
        for s in shapes.values()
    ]
    return text, [*data, np.array(draw(st.integers(-1, 4)), np.int64)]


def compare(text, data, fixed):
    """What the evaluator finds is what the specialised program gives, and what the engines compute."""
    try:
        (want,), skipped = evaluate_all(text, *(from_numpy(array) for array in data))
    except SacError:
        want, skipped = None, False
    if want is not None and any(abs(x) > 1 << 60 for x in want.data):
        return  # the evaluator counts exactly, `long` wraps
    try:
        got = call_sac(text, *data, fixed=fixed)
    except (Refused, OutOfBounds) as error:
        if want is None:
            event("refused")
            return
        if skipped and isinstance(error, Refused) and set(error.codes) <= STATIC:
            event("refused for something that is not evaluated")
            return
        raise
    if want is None:
        event("only the evaluator refuses")  # it computes elements that nobody selects
        return
    event("equal")
    assert (tuple(got.shape), got.ravel().tolist()) == (want.shape, want.data)
    analysis = tc.analyze(text, language="sac")
    for target in TARGETS:  # the call decides by itself whether extents are fixed
        found = np.asarray(module_of(analysis, Options(text, "sac", target))["f"](*data))
        assert (tuple(found.shape), found.ravel().tolist()) == (want.shape, want.data), target


def fuzzed(count, *more):
    def decorate(test):
        checks = list(HealthCheck)
        test = given(programs(), *more)(test)
        return settings(max_examples=count, deadline=None, report_multiple_bugs=False, suppress_health_check=checks)(
            test
        )

    return decorate


@fuzzed(60, st.booleans())
def test_random_comprehensions(program, fixed):
    compare(*program, fixed)


@pytest.mark.slow
@fuzzed(600, st.booleans())
def test_many_random_comprehensions(program, fixed):
    compare(*program, fixed)
