"""Random cells of both languages that are syntactically correct, as lists of tokens, and their mutants of one token."""

from __future__ import annotations

import random
from collections.abc import Callable


class Programs:
    """Random syntactically correct cells, as lists of tokens."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def several(self, item: Callable[[], list[str]], low: int, high: int, separator: str | None = ",") -> list[str]:
        out: list[str] = []
        for i in range(self.r.randint(low, high)):
            out += ([separator] if i and separator else []) + item()
        return out

    def name(self) -> list[str]:
        return [self.r.choice(["A", "B", "C", "X", "Y", "i", "j", "k", "N", "M", "alpha", "x_1", "exp", "definition"])]

    def number(self) -> list[str]:
        return [
            self.r.choice(["0", "7", "12u", "3LL", "0x1F", "0b101", "1.", ".5", "7e-2", "7.5E3f", "0x1.8p3", "2.f"])
        ]


class TcPrograms(Programs):
    def cell(self) -> list[str]:
        return self.several(self.definition, 1, 2, None)

    def definition(self) -> list[str]:
        results = self.result() if self.r.random() < 0.3 else ["(", *self.several(self.result, 1, 3), ")"]
        body = self.several(self.statement, 0, 3, None)
        return ["def", *self.name(), "(", *self.several(self.param, 0, 3), ")", "->", *results, "{", *body, "}"]

    def param(self) -> list[str]:
        return [*self.type(), *self.name()]

    def result(self) -> list[str]:
        return [*(self.type() if self.r.random() < 0.2 else []), *self.name()]

    def type(self) -> list[str]:
        scalar = self.r.choice(["float", "int32", "bool", "double", "uint8", "half"])
        dims = lambda: self.name() if self.r.random() < 0.8 else ["3"]  # noqa: E731
        return [scalar, *(["(", *self.several(dims, 0, 3), ")"] if self.r.random() < 0.9 else [])]

    def statement(self) -> list[str]:
        if self.r.random() < 0.1:
            return [*self.several(self.name, 2, 3), "=", *self.name(), "(", *self.several(self.name, 0, 3), ")"]
        target = [*self.name(), *(["(", *self.several(self.name, 0, 3), ")"] if self.r.random() < 0.9 else [])]
        operator = self.r.choice(["=", "+=!", "+=", "*=", "max=!", "min=", "*=!"])
        matched = (
            ["<=>", *self.name(), "(", *self.several(lambda: self.expr(1), 0, 2), ")"] if self.r.random() < 0.03 else []
        )
        where = ["where", *self.several(self.clause, 1, 3)] if self.r.random() < 0.3 else []
        return [*target, operator, *self.expr(3), *matched, *where]

    def clause(self) -> list[str]:
        form = self.r.randrange(4)
        if form == 0:
            return [*self.name(), "in", *self.expr(1), ":", *self.expr(1)]
        if form == 1:
            return [*self.name(), "=", "[", *self.expr(1), ",", *self.expr(1), "["]
        return [*self.name(), "=", *self.expr(2)] if form == 2 else ["exists", *self.expr(2)]

    def expr(self, depth: int) -> list[str]:
        if depth > 1 and self.r.random() < 0.1:
            return [
                "(",
                *self.atom(depth - 1),
                "<",
                *self.expr(0),
                ")",
                "?",
                *self.expr(depth - 1),
                ":",
                *self.expr(depth - 1),
            ]
        out = self.atom(depth)
        for _ in range(self.r.choice([0, 0, 1, 2]) if depth else 0):
            operators = ["+", "-", "*", "/", "%", "+", "-", "*", "^", "<<", ">>", "&", "^^", "|"]
            out += [self.r.choice(operators), *self.atom(depth - 1)]
        if depth and self.r.random() < 0.1:
            out += [self.r.choice(["<", "<=", ">", ">="]), *self.atom(depth - 1)]
        if depth and self.r.random() < 0.08:
            out += [self.r.choice(["==", "!="]), *self.atom(depth - 1)]
        if depth and self.r.random() < 0.08:
            out += [self.r.choice(["&&", "||"]), *self.atom(depth - 1)]
        return out

    def atom(self, depth: int) -> list[str]:
        form = self.r.random()
        if depth <= 0 or form < 0.25:
            return self.name() if self.r.random() < 0.7 else self.number()
        if form < 0.35:
            return [self.r.choice(["-", "!", "-", "~"]), *self.atom(depth - 1)]
        if form < 0.45:
            return ["(", *self.expr(depth - 1), ")"]
        if form < 0.5:
            return [self.r.choice(["true", "false", "inf", "nan", "X.0", "A.1"])]
        if form < 0.55:
            return [self.r.choice(["float", "int32"]), "(", *self.expr(depth - 1), ")"]
        if form < 0.6:
            return [self.r.choice(["min", "max"]), "(", *self.several(lambda: self.expr(depth - 1), 1, 3), ")"]
        return [*self.name(), "(", *self.several(lambda: self.expr(depth - 1), 0, 3), ")"]


TC_WORDS = """
    def where in exists min max float ( ) [ ] { } , : ? = += +=! max=! < <= == && || -> <=> !
    + - * / % ^ ~ << & | ^^ . X i 3 1.5 3i X.0 017 ; ** // .. and 18446744073709551616 and or
"""
TC_TOKENS = TC_WORDS.split()


class SacPrograms(Programs):
    OPERATORS = ("+", "-", "*", "/", "%", "++", "<", "<=", "==", "!=", "&&", "||", "!")

    def cell(self) -> list[str]:
        return self.several(self.function, 1, 2, None)

    def name(self) -> list[str]:
        return [
            self.r.choice(
                [
                    "A",
                    "B",
                    "a",
                    "b",
                    "iv",
                    "i",
                    "j",
                    "k",
                    "x_1",
                    "shape",
                    "sum",
                    "min",
                    "fold",
                    "genarray",
                    "\u00e9t\u00e9",
                ]
            )
        ]

    def number(self) -> list[str]:
        return [self.r.choice(["0", "7", "12u", "3LL", "0x1F", "0b101", "1.", ".5", "7e-2", "7.5E3f", "2.f", "2f"])]

    def function(self) -> list[str]:
        count = self.r.choice([1, 1, 1, 2])
        name = self.name() if self.r.random() < 0.8 else [self.r.choice(self.OPERATORS)]
        param = lambda: [*self.type(), *self.name()]  # noqa: E731
        header = [*self.several(self.type, count, count), *name, "(", *self.several(param, 0, 3), ")"]
        return [*header, "{", *self.several(self.assign, 0, 3, None), *self.returned(count), "}"]

    def returned(self, count: int) -> list[str]:
        values = self.several(lambda: self.expr(self.r.choice([1, 2])), count, count)
        if count > 1 and self.r.random() < 0.3:
            values = ["(", *values, ")"]
        return ["return", *values, ";"]

    def assign(self) -> list[str]:
        return [*self.name(), "=", *self.expr(self.r.choice([1, 2, 2, 3])), ";"]

    def type(self) -> list[str]:
        base = self.r.choice(["float", "int", "bool", "double", "uint8", "long"])
        axis = lambda: [self.r.choice([".", ".", "3"])]  # noqa: E731
        form = self.r.randrange(4)
        return [base, *([], ["[", "*", "]"], ["[", "+", "]"], ["[", *self.several(axis, 1, 3), "]"])[form]]

    def expr(self, depth: int) -> list[str]:
        if depth > 1 and self.r.random() < 0.1:
            return [*self.ordered(depth - 1), "?", *self.expr(depth - 1), ":", *self.expr(depth - 1)]
        return self.ordered(depth)

    def ordered(self, depth: int) -> list[str]:
        """One comparison at most in a chain: comparisons do not associate."""
        out = self.joined(depth)
        for operators in (("<", "<=", ">", ">="), ("==", "!=")):
            if depth and self.r.random() < 0.1:
                out += [self.r.choice(operators), *self.joined(depth - 1)]
        if depth and self.r.random() < 0.1:
            out += [self.r.choice(["&&", "||"]), *self.joined(depth - 1)]
        return out

    def joined(self, depth: int) -> list[str]:
        out = self.unary(depth)
        for _ in range(self.r.choice([0, 0, 1, 2]) if depth else 0):
            out += [self.r.choice(["+", "-", "*", "/", "%", "++"]), *self.unary(depth - 1)]
        return out

    def unary(self, depth: int) -> list[str]:
        out = [self.r.choice(["-", "!"])] if self.r.random() < 0.08 else []
        out += self.atom(depth)
        while depth > 0 and self.r.random() < 0.15:
            selector = lambda: self.expr(depth - 1) if self.r.random() < 0.7 else [self.r.choice([".", "..."])]  # noqa: E731
            out += ["[", *self.several(selector, 1, 3), "]"]
        return out

    def atom(self, depth: int) -> list[str]:
        form = self.r.random()
        if depth <= 0 or form < 0.3:
            return self.name() if self.r.random() < 0.6 else self.number()
        if form < 0.4:
            return ["(", *self.expr(depth - 1), ")"]
        if form < 0.45:
            return [self.r.choice(["true", "false", "inf", "nan"])]
        if form < 0.5:
            return [self.r.choice(["float", "int"]), "(", *self.expr(depth - 1), ")"]
        if form < 0.65:
            return ["[", *self.several(lambda: self.expr(depth - 1), 0, 3), "]"]
        if form < 0.8:
            return [*self.name(), "(", *self.several(lambda: self.expr(depth - 1), 0, 3), ")"]
        return self.comprehension(depth) if form < 0.92 else self.with_loop(depth)

    def names(self) -> list[str]:
        return self.r.sample(["i", "j", "k", "l"], self.r.randint(1, 3))

    def comprehension(self, depth: int) -> list[str]:
        end = [";"] if self.r.random() < 0.2 else []
        return ["{", *self.several(lambda: self.partition(depth), 1, 2, ";"), *end, "}"]

    def partition(self, depth: int) -> list[str]:
        names, items = self.names(), []
        for name in names:
            items += [[name], *([["."]] if self.r.random() < 0.15 else [])]
        if self.r.random() < 0.1:
            items.append(["..."])
        pattern, same = self.listed(items), self.listed([[name] for name in names])
        if self.r.random() < 0.4:
            pattern = same = ["iv"]
        return [*pattern, "->", *self.expr(depth - 1), *(["|", *self.generator(same)] if self.r.random() < 0.5 else [])]

    def listed(self, items: list[list[str]]) -> list[str]:
        flat = [part for item in items for part in (",", *item)]
        return ["[", *flat[1:], "]"]

    def bound(self) -> list[str]:
        return ["."] if self.r.random() < 0.2 else self.joined(1)

    def generator(self, names: list[str]) -> list[str]:
        form = self.r.randrange(3)
        if form == 0:
            return [*self.bound(), "<=", *names, "<", *self.bound()]
        # one bound: literals alone, since a list of names would be taken for the indices
        return [*names, "<", "[", "5", "]"] if form == 1 else ["[", "0", "]", "<=", *names]

    def with_loop(self, depth: int) -> list[str]:
        parts: list[str] = []
        for _ in range(self.r.randint(0, 2)):
            names = ["iv"] if self.r.random() < 0.6 else self.listed([[name] for name in self.names()])
            relations = [self.r.choice(["<", "<="]) for _ in range(2)]
            block = ["{", *self.several(self.small, 0, 2, None), "}"] if self.r.random() < 0.3 else []
            parts += [
                "(",
                *self.bound(),
                relations[0],
                *names,
                relations[1],
                *self.bound(),
                ")",
                *block,
                ":",
                *self.expr(depth - 1),
                ";",
            ]
        return ["with", "{", *parts, "}", ":", *self.operation(depth)]

    def small(self) -> list[str]:
        return [*self.name(), "=", *self.expr(1), ";"]

    def operation(self, depth: int) -> list[str]:
        form = self.r.randrange(3)
        if form == 0:
            return ["genarray", "(", *self.several(lambda: self.expr(depth - 1), 1, 2), ")"]
        if form == 1:
            return ["modarray", "(", *self.expr(depth - 1), ")"]
        function = ["add"] if self.r.random() < 0.3 else [self.r.choice(self.OPERATORS[:-1])]
        return ["fold", "(", *function, ",", *self.expr(depth - 1), ")"]


SAC_WORDS = """
    return with genarray fold float [ ] { } ( ) , ; : | -> . ... iv i
    j A 3 1.5 = + ++ - * < <= == && || ? ! % 0x1.8p3 1f 0b1f 017f 18446744073709551616 017 def and # half min iv
"""
SAC_TOKENS = SAC_WORDS.split()


def mutant(tokens: list[str], r: random.Random, vocabulary: list[str]) -> list[str]:
    at = r.randrange(len(tokens))
    form = r.randrange(4)
    if form == 0:
        return tokens[:at] + tokens[at + 1 :]
    if form == 1:
        return [*tokens[:at], tokens[at], *tokens[at:]]
    other = r.choice(vocabulary)
    return [*tokens[:at], other, *tokens[at + (form == 2) :]]
