"""Text of a `%%sac` cell -> tree, with all mistakes in one go.

A recursive-descent parser: after a mistake it goes on at the next `;` of the function, or at the next function header.

Worked example: `float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }` becomes `SacUnit((SacFunction(...),))`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from tc_jupyter.diagnostics import NO_SPAN, Code, Diagnostic, Edit, Fix, SourceText, Span, codes, nearest

from . import library_names, sac_foreign, sac_writes
from .sac_printer import type_text
from .sac_tree import (
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
    SacImport,
    SacParam,
    SacParsed,
    SacType,
    SacTypedef,
    SacUnit,
    Selection,
    SetExpr,
    Statement,
    TripleDot,
    Unary,
    Unpack,
    WithGenerator,
    WithLoop,
    inner_statements,
    sac_children,
    sac_walk,
)
from .tree import Name, Number
from .uses import ONLY_USES, cut

BASES: dict[str, str] = {
    "bool": "bool",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float32",
    "float64": "float64",
}
"""Base types: the word of the language and its canonical element type."""

OPERATORS = ("+", "-", "*", "/", "%", "++", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "!")
"""Operators that a function may be named after."""

STATEMENT_WORDS = ("if", "else", "for", "while", "do", "return")
"""Words that begin a statement or a part of one."""

COMPOUND = ("+=", "-=", "*=", "/=", "%=")
"""Assignments that use the old value."""

MODULES = frozenset(
    {
        "Array",
        "ArrayArith",
        "ArrayBasics",
        "ArrayFormat",
        "ArrayReduce",
        "ArrayTransform",
        "Bits",
        "Bool",
        "Constants",
        "Math",
        "MathArray",
        "Numerical",
        "ScalarArith",
        "Structures",
    }
)
"""Modules of SaC's library: what this language has of them is known in every cell."""

RESERVED = (
    frozenset({"with", "true", "false", "inf", "nan", "inline", "typedef"})
    | frozenset(STATEMENT_WORDS)
    | frozenset(BASES)
)

_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("++",),
    ("+", "-"),
    ("*", "/", "%"),
)
_POWER: dict[str, int] = {op: level for level, ops in enumerate(_LEVELS) for op in ops}
_CONCAT = _POWER["++"]
_RELATIONS = ("<=", "<", ">=", ">", "==", "!=")

DOTS = "in a pattern `[i, ., j]`, in a selection `a[., j]`, as a bound `. <= iv < .`"
FLOAT = "write a float, for example `1e20`"
OPERATOR = "for example `genarray(shape(A), 0)`, `modarray(A)` or `fold(+, 0)`"

_RECORDS = frozenset({"struct", "class", "union", "record"})
_TEXTS = frozenset({"string", "str"})
_MODULE_WORDS = ("module", "class", "export", "provide", "external", "specialize", "objdef")
_LINE_WORDS = ("use", "import", "typedef")

_IN_PLACE, _DECLARED = "arrays are not changed in place", "variables are not declared"
_OF_LOOPS = (_IN_PLACE, _DECLARED)
"""Messages about a loop that are about nothing once it is gone."""

_BLOCKS = "a choice is `if (c) { .. } else if (d) { .. } else { .. }`"

_QUALIFIERS = frozenset({"const", "restrict", "__restrict__", "__restrict", "volatile"})
_MOST_DIAGNOSTICS = 100
_DEEPEST = 100
_DEEPEST_BLOCKS = 20
_CALLS = 5  # of this parser from one bracket to the next
_MOST_CALLS = 600

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n\f\v\u00a0\ufeff]+)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<open_comment>/\*.*)
  | (?P<number>(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|(?:\d+\.(?!\.)\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)[A-Za-z0-9_]*)
  | (?P<name>[^\W\d]\w*)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<hash>\#[^\n]*)
  | (?P<symbol>\.\.\.|::|<<|>>|->|<=|>=|==|!=|&&|\|\||\+\+|[-+*/%]=(?!=)|[-+*/%()\[\]{},:;?=<>!.|&^~])
  | (?P<unknown>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTIENT = re.compile(r"[ \t]*(?P<sign>//)[ \t]*-?[\w(.](?![^\n]*\w[ \t]+\w)[^\n;]*;[ \t})]*(?=\n|\Z)")
"""A comment that ends a statement, as the `// 2;` of `a // 2;` does."""

_BITS = {
    "&": "write `&&` between truth values; there are no operators on bits",
    "|": "write `||` between truth values; there are no operators on bits",
    "^": "write `pow(x, y)` for a power, `!=` between truth values; there are no operators on bits",
    "~": "write `!` before a truth value; there are no operators on bits",
    "<<": "there are no operators on bits: multiply by a power of 2, `a * 2` for `a << 1`",
    ">>": "there are no operators on bits: divide what is not negative by a power of 2, `a / 2` for `a >> 1`",
}
"""Operators of C, and what to write."""

_FOLDS = {"+": "sum", "*": "prod", "max": "maxval", "min": "minval", "any": "any", "all": "all"}
"""Operators of `%%tc` that combine elements, and the functions that do it here."""

_SUFFIXES = {
    "b": "int8",
    "s": "int16",
    "i": "int32",
    "ub": "uint8",
    "us": "uint16",
    "ui": "uint32",
    "u": "uint32",
    "l": "int64",
    "ll": "int64",
    "ul": "uint64",
    "ull": "uint64",
    "": None,
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # `number`, `name`, `symbol`, `text`, `end`
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class _Part:
    """A partition without its generator: its pattern, its body with its place, and the token before it."""

    pattern: Pattern
    body: SacExpression
    span: Span
    opens: int


class _Failed(Exception):
    """A statement cannot be read further; its message was given."""


def parse_sac(source: SourceText) -> SacParsed:
    """Parse a `%%sac` cell.

    Returns:
        Every function that could be told apart, with the messages of the whole text in source order. Never raises for a
        mistake in the text, and takes time in proportion to its length.
    """
    uses, rest = cut(source, "sac")
    parsed = _Parser(rest).cell(bool(uses))
    return replace(parsed, unit=replace(parsed.unit, uses=uses)) if uses else parsed


def remainders(source: SourceText, span: Span, axis: int) -> tuple[tuple[Span, str, str], ...]:
    """The remainders `left % right` of an index of the selection at a place of the text: their places and both operands."""
    before = "int f() { return "
    parsed = parse_sac(SourceText(f"{before}{source.slice(span)}; }}"))
    if parsed.diagnostics or len(parsed.unit.functions) != 1:
        return ()
    (root, *_) = parsed.unit.functions[0].results
    if isinstance(root, Selection) and len(root.indices) > 1:
        chosen = root.indices[axis : axis + 1]
    else:
        chosen = (root,)
    nodes = (node for part in chosen if not isinstance(part, Dot | TripleDot) for node in sac_walk(part))
    moved = span.start - len(before)

    def place(node: SacExpression) -> Span:
        return Span(node.span.start + moved, node.span.end + moved)

    def text(node: SacExpression) -> str:
        return " ".join(source.slice(sac_foreign.closed(source, place(node))).split())

    found = [node for node in nodes if isinstance(node, Binary) and node.op == "%"]
    return tuple((sac_foreign.closed(source, place(node)), text(node.left), text(node.right)) for node in found)


def _steps_down(tokens: Sequence[_Token]) -> bool:
    """Whether `--` stands behind a variable; else both signs are of an expression, as in `a--b`."""
    texts = tuple(token.text for token in tokens[:3])
    return (
        texts[:2] == ("-", "-") and texts[2:] in ((";",), (")",), (",",)) and tokens[0].span.end == tokens[1].span.start
    )


class _Parser:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self.comments: list[Span] = []
        self.allow: list[tuple[str, Span]] = []
        self.tokens = self._scan()
        self.at = 0
        self.level = 0
        self.calls = 0
        self.blocks = 0
        self.types = self._named_types()
        self.aliases: dict[str, SacType | None] = {}
        self.lines: list[SacTypedef | SacImport] = []
        self.spoiled = False  # a pattern of the function is wrong: nothing can be said of its shapes
        self.divided = False  # a `//` of the function is meant as an operator: what stands behind it was not read
        self.past_block = False  # a refused statement was skipped to its end
        self.known: dict[str, int | None] = {}  # what has a value so far, and its rank where that is certain
        self.writes: dict[int, list[sac_writes.ElementWrite]] = {}  # by the start of a statement that does nothing else
        self.closed: set[Span] = set()  # expressions that stand in parentheses, which the tree does not keep
        self.starts = self._function_starts()

    # Tokens

    def _scan(self) -> list[_Token]:
        tokens: list[_Token] = []
        allowed: list[tuple[str, Span]] = []
        for match in _TOKEN.finditer(self.source.text):
            kind = match.lastgroup or "unknown"
            span = Span(match.start(), match.end())
            if kind == "space":
                continue
            if kind in ("comment", "open_comment"):
                self.comments.append(span)
                allowed += [(code, span) for code in re.findall(r"\ballow\s+(TC\d{3})", match.group())]
                if kind == "open_comment":
                    self.say(
                        codes.SYNTAX_ERROR,
                        Span(span.start, span.start + 2),
                        "the comment is never closed",
                        help="end it with `*/`",
                    )
            elif kind == "hash":
                self.comments.append(span)
                self._unknown("#", Span(span.start, span.start + 1), tokens)
            elif kind == "unknown":
                self._unknown(match.group(), span, tokens)
            else:
                tokens.append(_Token(kind, match.group(), span))
        end = len(self.source.text)
        tokens.append(_Token("end", "", Span(end, end)))
        self.allow = allowed
        return tokens

    def _unknown(self, char: str, span: Span, tokens: list[_Token]) -> None:
        """Tell of a character behind some tokens; one that joins operands has a token that does so, too."""
        help, fix, before = sac_foreign.of_hash(self.source, span) if char == "#" else "delete it", None, tokens[-1:]
        operand = bool(before) and (before[0].kind in ("name", "number") or before[0].text in (")", "]"))
        if char == "@" and operand:
            told = len(self.diagnostics) < _MOST_DIAGNOSTICS
            help, fix = sac_foreign.PRODUCT, sac_foreign.product(self.source, before[0], span) if told else None
            tokens.append(_Token("symbol", "*", span))
        elif char == "'" and operand and before[0].span.end == span.start:
            help = "the axes in reverse order are `transpose(a)`"
            text = f"transpose({before[0].text})"
            fix = Fix(f"write `{text}`", (Edit(before[0].span | span, text),)) if before[0].kind == "name" else None
        shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
        self.say(codes.UNKNOWN_CHARACTER, span, f"{shown} is not part of the language", help=help, fix=fix)

    def no_operator(self, token: _Token) -> NoReturn:
        """Refuse an operator of C on bits."""
        self.fail(
            f"`{token.text}` is not part of the language",
            code=codes.UNKNOWN_CHARACTER,
            span=token.span,
            help=_BITS[token.text],
        )

    def _function_starts(self) -> set[int]:
        """Indices of tokens at which a function header certainly starts: the places to go on after a mistake."""
        starts: set[int] = set()
        for at, token in enumerate(self.tokens):
            if token.kind != "name" or not (token.text in self.types or token.text in ("inline", *_LINE_WORDS)):
                continue
            line = self.source.text.rfind("\n", 0, token.span.start) + 1
            first = not self.source.text[line : token.span.start].strip()
            if (first or (at and self.tokens[at - 1].text == "}")) and self._begins(at):
                starts.add(at)
        return starts

    def _named_types(self) -> set[str]:
        """The words that may begin a type: the base types, and what a `typedef` of the cell names."""
        found = set(BASES)
        for at, token in enumerate(self.tokens):
            if token.kind == "name" and token.text == "typedef":
                end = next((k for k, each in enumerate(self.tokens[at : at + 64], at) if each.text in (";", "")), at)
                if self.tokens[end - 1].kind == "name" and end > at:
                    found.add(self.tokens[end - 1].text)
        return found

    def _begins(self, at: int) -> bool:
        """Whether a function, or a line outside of functions, begins at a token."""
        if self.tokens[at].text in _LINE_WORDS:
            return self.tokens[at + 1].kind == "name"
        return self._looks_like_header(at + (self.tokens[at].text == "inline"))

    def _looks_like_header(self, at: int) -> bool:
        """Whether `type {, type} NAME (` stands here."""
        for _ in range(64):
            if self.tokens[at].text not in self.types:
                return False
            at += 1
            if self.tokens[at].text == "[":
                while self.tokens[at].text not in ("]", "{", "}", ";", ""):
                    at += 1
                at += self.tokens[at].text == "]"
            if self.tokens[at].text != ",":
                break
            at += 1
        named = self.tokens[at].kind == "name" or self.tokens[at].text in OPERATORS
        return named and at + 1 < len(self.tokens) and self.tokens[at + 1].text == "("

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    @property
    def last(self) -> _Token:
        return self.tokens[max(self.at - 1, 0)]

    def next(self) -> _Token:
        token = self.token
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.token.kind in ("symbol", "name") and self.token.text == text:
            self.at += 1
            return True
        return False

    def is_at(self, *texts: str) -> bool:
        return self.token.kind in ("symbol", "name") and self.token.text in texts

    def expect(self, text: str, after: str, help: str | None = None) -> _Token:
        if self.is_at(text):
            return self.next()
        self.no_quotient()
        self.fail(f"expected `{text}` {after}, found {self.found()}", help=help or f"add `{text}`")

    def end_of_value(self, text: str, after: str, help: str | None = None) -> _Token:
        """What stands behind a value. A `=` there is meant as a comparison."""
        if self.is_at("="):
            place = self.token.span
            fix = Fix("write `==`", (Edit(place, "=="),))
            self.fail("`=` compares nothing", span=place, help="a comparison is written `==`", fix=fix)
        return self.expect(text, after, help)

    def more(self, begun: bool, close: str) -> bool:
        """Whether another item of a list follows; eats the comma before it, and refuses one before `close`."""
        if not begun:
            return not self.is_at(close)
        if not self.accept(","):
            return False
        if self.is_at(close):
            self.fail(
                f"expected another item after the comma, found `{close}`", span=self.last.span, help="delete the comma"
            )
        return True

    def found(self) -> str:
        return "the end of the text" if self.token.kind == "end" else f"`{self.token.text}`"

    # Messages

    def say(
        self, code: Code, span: Span, message: str, *, label: str = "", help: str | None = None, fix: Fix | None = None
    ) -> None:
        if len(self.diagnostics) < _MOST_DIAGNOSTICS:
            self.diagnostics.append(Diagnostic(code, span, message, label=label, help=help or None, fix=fix))

    def no_quotient(self) -> None:
        """Refuse `a // 2;`, whose end is a comment here, where the expression does not go on."""
        between = Span(self.last.span.end, self.token.span.start)
        found = _QUOTIENT.match(self.source.text, between.start, between.end)
        if found is not None:
            place = Span(found.start("sign"), found.end("sign"))
            self.divided = self.past_block = True
            message, help = "`//` begins a comment", "the quotient of integers is `a / b`, cut off toward zero"
            self.fail(message, span=place, help=help, fix=Fix("write `/`", (Edit(place, "/"),)))

    def fail(
        self,
        message: str,
        *,
        code: Code = codes.SYNTAX_ERROR,
        span: Span | None = None,
        help: str | None = None,
        fix: Fix | None = None,
    ) -> NoReturn:
        self.say(code, span or self.token.span, message, help=help, fix=fix)
        raise _Failed

    # Functions

    def cell(self, uses: bool) -> SacParsed:
        functions: list[SacFunction] = []
        while self.token.kind != "end":
            functions += self.function_or_skip()
        if not functions and not self.lines and not self.diagnostics:
            example = "for example `float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }`"
            help = ONLY_USES if uses else example
            self.say(codes.NO_DEF, Span(0, len(self.source.text)), "the cell has no function", help=help)
        diagnostics = tuple(sorted(self.diagnostics, key=lambda d: (d.span.start, d.span.end)))
        unit = SacUnit(tuple(functions), Span(0, len(self.source.text)), tuple(self.lines))
        return SacParsed(unit, diagnostics, tuple(self._allowed(functions)), tuple(self.comments))

    def _allowed(self, functions: list[SacFunction]) -> list[tuple[str, Span]]:
        """A comment allows a code for the statement on its line, or for the function whose header is there."""
        found: list[tuple[str, Span]] = []
        for code, span in self.allow:
            line = self.source.position(span.start)[0]
            for function in functions:
                if self.source.position(function.signature_span.start)[0] == line:
                    found.append((code, function.span))
                places = [statement.span for statement in inner_statements(function.body)] + [function.return_span]
                found += [(code, place) for place in places if self._on_line(place, line)]
        return found

    def _on_line(self, span: Span, line: int) -> bool:
        return self.source.position(span.start)[0] <= line <= self.source.position(span.end)[0]

    def function_or_skip(self) -> list[SacFunction]:
        start = self.at
        self.spoiled, self.divided, self.level, self.calls, self.blocks = False, False, 0, 0, 0
        try:
            if self.is_at(*_LINE_WORDS):
                self.line()
                return []
            return [self.function()]
        except _Failed:
            self.at = max(self.at, start + 1)
            while self.token.kind != "end" and self.at not in self.starts:
                self.at += 1
            return []

    def line(self) -> None:
        """`use Array: all;`, `import Math: {sin, cos};` or `typedef int[3] vec;`."""
        begin = self.next()
        if begin.text == "typedef":
            type_ = self.type()
            name = self.name("of the new type")
            self.expect(";", "after a `typedef`")
            if name.name in self.aliases:
                self.say(codes.DUPLICATE_NAME, name.span, f"two types are called `{name.name}`", help="rename one")
            elif type_ is not None:
                self.aliases[name.name] = type_
                self.lines.append(SacTypedef(name, type_, begin.span | self.last.span))
            else:
                self.aliases[name.name] = None
            return
        module = self.module_name()
        self.expect(":", "after the name of the module", help=f"write `{begin.text} {module}: all;`")
        words = self.imported()
        self.expect(";", f"after `{begin.text} {module}: {words}`", help="end the line with `;`")
        self.lines.append(SacImport(f"{begin.text} {module}: {words};", begin.span | self.last.span))

    def module_name(self) -> str:
        """The name of a module that is known here."""
        name = self.name("of a module")
        if name.name not in MODULES:
            near = nearest(name.name, MODULES)
            help = (
                f"did you mean `{near}`?"
                if near
                else "delete the line: functions of other cells are known by their names"
            )
            if name.name in ("StdIO", "TermFile", "ArrayIO", "ScalarIO", "FibreIO"):
                help = "delete the line: functions compute, and Python prints what they return"
            self.fail(f"there is no module `{name.name}`", code=codes.UNKNOWN_MODULE, span=name.span, help=help)
        return name.name

    def imported(self) -> str:
        """`all`, `all except {a, b}` or `{a, b}`."""
        text = ""
        if self.accept("all"):
            text = "all"
            if not self.accept("except"):
                return text
            text = "all except "
        self.expect("{", "in front of the names", help="write `all`, or the names as `{sin, cos}`")
        names: list[str] = []
        while self.more(bool(names), "}"):
            token = self.token
            if not (token.kind == "name" or token.text in OPERATORS):
                self.fail(f"expected a name, found {self.found()}", help="write `all`, or the names as `{sin, cos}`")
            names.append(self.next().text)
        self.expect("}", "after the names")
        return f"{text}{{{', '.join(names)}}}"

    def function(self) -> SacFunction:
        inline = self.accept("inline")
        begin = self.last.span if inline else self.token.span
        if self.token.text == "def":
            of_tc = "a def stands in a `%%tc` cell or a file `.tc`; from Python: `tc.compile(text)`"
            help = f"a function here starts with its result type; {of_tc}"
            self.fail("`def` belongs to `%%tc`", code=codes.NO_DEF, help=help)
        if self.token.text in _RECORDS:
            help = "there are no records: pass each field as an argument, or fields of one type as an axis of an array"
            self.fail(f"`{self.token.text}` is not part of the language", help=help)
        if self.token.text in _MODULE_WORDS:
            help = "delete the line: every function of a cell is known in later cells and in Python"
            self.fail(f"`{self.token.text}` is not part of the language", help=help)
        self.skip_constant()
        self.check_head()
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        name = self.function_name()
        if self.is_at("=", ";"):
            self.outside(name.name, name.span, types[0] if self.is_at("=") else None)
        self.expect("(", "after the function name")
        params = self.params()
        signature = begin | self.last.span
        self.expect("{", "before the body of the function")
        return replace(self.body(begin, tuple(types), name, params, signature), inline=inline)

    def skip_constant(self) -> None:
        """Go behind the `const` of `const int N = 5;`, which is refused at its `=`."""
        at = self.at
        while self.tokens[at].text in ("const", "constexpr", "static"):
            at += 1
        name = at + 1
        if self.tokens[at].text in self.types and self.tokens[name].text == "[":
            name = self.behind_bracket(name)
        if (
            self.tokens[at].text in self.types
            and self.tokens[name].kind == "name"
            and self.tokens[name + 1].text == "="
        ):
            self.at = at

    def check_head(self) -> None:
        """See whether a function begins here, and no statement."""
        token, behind = self.token, self.at + 1
        if token.kind == "name" and token.text in self.types:
            return
        if token.kind != "name" or self.tokens[behind].kind not in ("name", "symbol"):
            help = "a function starts with its result type"
            self.fail(f"expected a function, found {self.found()}", code=codes.NO_DEF, help=help)
        while self.tokens[behind].text in library_names.WORDS_OF_TYPES:
            behind += 1
        if self.tokens[behind].text == "[":
            behind = self.behind_bracket(behind)
        after = self.tokens[behind]
        is_head = after.kind == "name" and self.tokens[behind + 1].text == "("
        if is_head or after.text == "," or after.text in OPERATORS:
            return
        closed = self.behind_bracket(behind) if after.text == "(" else behind
        if token.text not in RESERVED and self.tokens[closed].text == "{":
            help = f"write it before the name, as in `double[*] {token.text}(double[*] a)`"
            self.fail(f"`{token.text}` has no result type", code=codes.BAD_TYPE, help=help)
        self.outside(token.text, token.span)

    def behind_bracket(self, at: int) -> int:
        """The place behind the bracket that opens at a place; that where it is not closed before something else begins."""
        depth = 1
        while depth and self.tokens[at].kind != "end" and (at := at + 1) not in self.starts:
            depth += (self.tokens[at].text in ("(", "[")) - (self.tokens[at].text in (")", "]"))
        return at if depth else at + 1

    def outside(self, text: str, span: Span, type_: SacType | None = None) -> NoReturn:
        """Refuse what stands between functions; one with a type is a constant."""
        help = "a cell holds functions; what calls them is Python, in a cell of its own"
        if type_ is not None:
            help = sac_foreign.constant(text, self._value_behind(), type_text(type_))
        self.fail(f"`{text}` stands outside of a function", code=codes.NO_DEF, span=span, help=help)

    def _value_behind(self) -> str:
        """The text between the `=` at this token and the `;` behind it, on the same line."""
        return self.source.slice(Span(self.token.span.end, len(self.source.text))).partition("\n")[0].partition(";")[0]

    def body(
        self, begin: Span, types: tuple[SacType | None, ...], name: Name, params: tuple[SacParam, ...], signature: Span
    ) -> SacFunction:
        assigns: list[Statement] = []
        self.known = {param.name.name: _rank_of_type(param.type) for param in params}
        results: tuple[SacExpression, ...] = ()
        return_span = signature
        returned, broken = False, False
        while not self.is_at("}") and self.token.kind != "end" and self.at not in self.starts:
            start = self.at
            try:
                if self.is_at("return"):
                    if returned:
                        self.say(
                            codes.NO_RETURN,
                            self.token.span,
                            f"`{name.name}` returns twice",
                            help="keep one `return` at the end",
                        )
                    returned, return_span = True, self.token.span
                    results, return_span = self.result()
                else:
                    assigns.append(self.statement())
                    if returned:
                        self.say(
                            codes.NO_RETURN,
                            assigns[-1].span,
                            "a statement after `return` is never reached",
                            help="move it before `return`",
                        )
            except _Failed:
                broken = True
                assigns.append(self.skip_statement(start))
        if not self.accept("}"):
            if not self.divided:
                self.say(
                    codes.SYNTAX_ERROR, self.token.span, f"the body of `{name.name}` is not closed", help="add `}`"
                )
            broken = True
        if not returned and not broken and None not in types:
            self.say(
                codes.NO_RETURN,
                name.span,
                f"`{name.name}` returns nothing",
                help="end the body with `return expression;`",
            )
            broken = True
        elif returned and not broken and len(results) != len(types):
            self.say(
                codes.NO_RETURN,
                return_span,
                f"`{name.name}` declares {len(types)} result{'s' if len(types) > 1 else ''} and returns {len(results)}",
                help="give one type per result before the name of the function",
            )
            broken = True
        broken = broken or self.spoiled or None in types or any(param.type is None for param in params)
        return SacFunction(
            types, name, params, tuple(assigns), results, broken, begin | self.last.span, signature, return_span
        )

    def skip_statement(self, start: int) -> BrokenAssign:
        """Go to the end of the statement that starts at token `start`; every name that may be assigned there stays unknown."""
        depth = 0
        for token in self.tokens[start : self.at]:
            depth += (token.text == "{") - (token.text == "}")
        while self.token.kind != "end" and self.at not in self.starts and not self.past_block:
            if self.is_at(";") and depth <= 0:
                self.next()
                break
            if self.is_at("}") and depth <= 0:
                break
            depth += self.is_at("{") - self.is_at("}")
            self.next()
        if self.at == start:
            self.next()
        self.level, self.calls, self.blocks, self.past_block = 0, 0, 0, False
        span = self.tokens[start].span | self.last.span
        pairs = zip(self.tokens[start : self.at], self.tokens[start + 1 : self.at + 1], strict=True)
        names = [name.text for name, equal in pairs if name.kind == "name" and equal.text in ("=", *COMPOUND)]
        names += [token.text for token in self.tokens[start : start + 1] if token.kind == "name"]
        return BrokenAssign(tuple(dict.fromkeys(names)), span)

    def function_name(self) -> Name:
        token = self.token
        if token.kind == "symbol" and token.text in OPERATORS:
            self.next()
            return Name(token.text, token.span)
        return self.name("as the name of the function")

    def name(self, role: str) -> Name:
        token = self.token
        if token.kind == "number" and re.fullmatch(r"\d+[A-Za-z_]\w*", token.text):
            self.next()
            self.say(codes.DIGIT_NAME, token.span, f"`{token.text}` is not a name", help="a name starts with a letter")
            return Name(token.text, token.span)
        if token.text == "&":
            help = "delete it: arguments are not changed, and a function returns what it computes"
            self.fail("`&` is not part of the language", code=codes.UNKNOWN_CHARACTER, help=help)
        if token.kind != "name":
            self.fail(f"expected a name {role}, found {self.found()}", help="a name starts with a letter")
        if token.text in RESERVED:
            self.fail(
                f"`{token.text}` is reserved and cannot stand {role}",
                code=codes.RESERVED_WORD,
                help="choose another name",
            )
        self.next()
        return Name(token.text, token.span)

    def params(self) -> tuple[SacParam, ...]:
        found: list[SacParam] = []
        if self.accept(")"):
            return ()
        while True:
            found.append(self.param())
            if self.accept(")"):
                return tuple(found)
            self.expect(",", "or `)` after a parameter")

    def param(self) -> SacParam:
        begin = self.token.span
        if (
            self.token.kind == "name"
            and self.token.text not in self.types
            and self.tokens[self.at + 1].text in (",", ")")
        ):
            name = self.name("of a parameter")
            help = f"write it before the name, as in `double[*] {name.name}`"
            self.say(codes.BAD_TYPE, begin, f"the parameter `{name.name}` has no type", help=help)
            return SacParam(None, name, begin)
        words = self.qualifiers()
        type_, pointers = self.type(), 0
        words += self.qualifiers()
        while self.accept("*"):
            pointers += 1
            words += self.qualifiers()
        name = self.name("after the type of a parameter")
        if pointers or self.is_at("["):
            type_ = self.axes_of_c(type_, name, pointers, begin)
        elif words:
            self.say_qualifier(words[0])
        return SacParam(type_, name, begin | self.last.span)

    def qualifiers(self) -> list[_Token]:
        """The words of C around the type of a parameter, as in `const float * __restrict__ a`, which change nothing here."""
        found: list[_Token] = []
        while self.token.text in _QUALIFIERS:
            after = self.tokens[self.at + 1]
            if after.kind != "name" and after.text != "*":
                break
            found.append(self.next())
        return found

    def say_qualifier(self, word: _Token) -> None:
        message, fix = (
            f"`{word.text}` is no part of a type",
            Fix("delete it: nothing is changed", (self.without(word),)),
        )
        self.say(codes.BAD_TYPE, word.span, message, fix=fix)

    def without(self, token: _Token) -> Edit:
        """An edit that deletes a word, with the blanks behind it."""
        after = re.compile(r"\s*").match(self.source.text, token.span.end)
        return Edit(Span(token.span.start, after.end() if after else token.span.end), "")

    def axes_of_c(self, type_: SacType | None, name: Name, pointers: int, begin: Span) -> SacType | None:
        """`int a[]`, `int a[3][4]` and `int *a`: the type that is meant, after a message."""
        axes: tuple[int | None, ...] = (None,) * pointers
        while self.accept("["):
            shape = (None,) if self.accept("]") else self.type_shape(self.last)
            if not isinstance(shape, tuple):
                return None
            axes += shape
        if type_ is None or isinstance(type_.shape, str):
            meant, text = None, "int[.] a"
        else:
            meant = replace(type_, shape=(*axes, *type_.shape), written="")
            text = f"{type_text(meant)} {name.name}"
        span = begin | self.last.span
        fix = Fix(f"write `{text}`", (Edit(span, text),)) if meant else None
        message, help = "the axes of an array stand in its type", None if fix else f"as in `{text}`"
        self.say(codes.SYNTAX_ERROR, span, message, help=help, fix=fix)
        self.spoiled = True
        return meant

    def type(self) -> SacType | None:
        """A type; `None` after a message when its shape or word is wrong but its end is clear."""
        if self.is_at("const") and self.tokens[self.at + 1].kind == "name":
            self.say_qualifier(self.next())
        token = self.token
        if token.kind != "name":
            self.fail(f"expected a type, found {self.found()}", help="for example `float[*]`, `int[.,3]`, `double`")
        self.next()
        right = True
        words = [token]
        while token.text in library_names.WORDS_OF_TYPES and self.token.text in library_names.WORDS_OF_TYPES:
            words.append(self.token)
            self.next()
        if len(words) > 1:
            shown, near = " ".join(word.text for word in words[:6]), library_names.c_type([word.text for word in words])
            span = token.span | words[-1].span
            self.say(codes.BAD_TYPE, span, f"`{shown}` is not a type", help=f"did you mean `{near}`?")
            if self.accept("["):
                self.type_shape(token)
            return None
        if token.text in self.types - BASES.keys():
            return self.alias(token)
        if token.text not in BASES:
            right = False
            near = library_names.TYPES.get(token.text) or nearest(token.text, BASES)
            help = f"did you mean `{near}`?" if near else f"types are {', '.join(BASES)}"
            if token.text == "byte":
                help = "write `int8` or `uint8`: the sign of `byte` differs between languages"
            elif token.text.lower() in _TEXTS:
                help = "there are no texts: pass their characters as an array of numbers, as `np.frombuffer(b'..', np.uint8)`"
            self.say(codes.BAD_TYPE, token.span, f"`{token.text}` is not a type", help=help)
        shape: tuple[int | None, ...] | str | None = ()
        if self.accept("["):
            shape = self.type_shape(token)
        if not right or shape is None:
            return None
        return SacType(token.text, shape, token.span | self.last.span)

    def alias(self, token: _Token) -> SacType | None:
        """A type by the name that a `typedef` gave it; axes that are written behind it come first."""
        shape: tuple[int | None, ...] | str | None = self.type_shape(token) if self.accept("[") else ()
        span = token.span | self.last.span
        if token.text not in self.aliases:
            help = f"move `typedef .. {token.text};` before it"
            self.say(codes.BAD_TYPE, token.span, f"the type `{token.text}` is used before its `typedef`", help=help)
        known = self.aliases.get(token.text)
        if known is None or shape is None:
            return None
        if (isinstance(shape, str) and known.shape) or (isinstance(known.shape, str) and shape):
            message = f"`{self.source.slice(span)}` has axes of `{token.text}` behind an open number of others"
            help = f"write the axes one by one, as in `{token.text}[.]`, or `{known.base}[*]`"
            self.say(codes.BAD_TYPE, span, message, help=help)
            return None
        whole = (
            shape if isinstance(shape, str) else known.shape if isinstance(known.shape, str) else (*shape, *known.shape)
        )
        return SacType(known.base, whole, span, re.sub(r"\s+", "", self.source.slice(span)))

    def type_shape(self, base: _Token) -> tuple[int | None, ...] | str | None:
        if self.is_at("*", "+") and self.tokens[self.at + 1].text == "]":
            text = self.next().text
            self.next()
            return text
        items: list[int | None] = []
        right = not self.is_at("]")
        while not self.is_at("]"):
            token = self.token
            if token.kind == "end" or token.text in ("(", ")", "{", "}", ";"):
                self.fail(f"the shape of the type `{base.text}` is not closed", code=codes.BAD_TYPE, help="add `]`")
            self.next()
            if token.text == ".":
                items.append(None)
            elif token.kind == "number" and token.text.isdigit() and int(token.text) < 1 << 63:
                items.append(int(token.text))
            else:
                right = False
            right &= self.accept(",") != self.is_at("]")
        self.next()
        if not right:
            self.say(
                codes.BAD_TYPE,
                base.span | self.last.span,
                f"`{self.source.slice(base.span | self.last.span)}` is not the shape of a type",
                help="write `[*]` (any rank), `[+]` (rank 1 or more), or one `.` or number per axis, as in `[.,3]`",
            )
            return None
        return tuple(items)

    # Statements

    def statement(self) -> Statement:
        """An assignment, a choice or a loop."""
        match self.token.text if self.token.kind == "name" else "":
            case "if":
                return self.choice()
            case "for":
                return self.for_loop()
            case "while":
                return self.while_loop()
            case "do":
                return self.do_loop()
            case _:
                found = self.assign()
                if self.is_at("="):
                    help = "every variable has a statement of its own; a comparison is written `==`"
                    self.fail("a second `=` in one statement", help=help)
                self.expect(";", "after the expression", help=self.end_help())
                return replace(found, span=found.span | self.last.span)

    def block(self, word: str) -> tuple[Statement, ...]:
        """`{ statements }`, or one statement."""
        self.blocks += 1
        if self.blocks > _DEEPEST_BLOCKS:
            self.fail(
                f"more than {_DEEPEST_BLOCKS} blocks are open here",
                code=codes.DEVICE_LIMIT,
                help="move a part of it to a function of its own",
            )
        found: list[Statement] = []
        if self.accept("{"):
            while not self.is_at("}") and self.token.kind != "end" and self.at not in self.starts:
                self.no_return(word)
                found.append(self.statement())
            self.expect("}", f"at the end of the block of `{word}`")
        else:
            self.no_return(word)
            found.append(self.statement())
        self.blocks -= 1
        return tuple(found)

    def no_return(self, word: str) -> None:
        if self.is_at("return"):
            help = "assign the value to a variable here, in every branch, and return the variable at the end"
            self.fail(f"`return` stands inside of `{word}`", code=codes.NO_RETURN, help=help)

    def condition(self, word: str) -> SacExpression:
        """A condition in its brackets; without them, or before a colon, after a message."""
        start, message = self.token.span, f"the condition of `{word}` stands in brackets"
        if not self._is_bracketed():
            found = self.whole()
            inside, behind = Span(start.start, self.last.span.end), self.last.span.end
            if self.is_at(":", "then"):
                behind = self.next().span.end
            edits = Edit(Span(start.start, start.start), "("), Edit(Span(inside.end, behind), ")")
            self.say(codes.SYNTAX_ERROR, inside, message, fix=Fix("put it in brackets", edits))
            self.spoiled = True
            return found
        self.expect("(", f"after `{word}`", help=f"write `{word} (condition)`")
        found = self.whole()
        self.end_of_value(")", f"after the condition of `{word}`")
        self.no_colon(word)
        return found

    def _is_bracketed(self) -> bool:
        """Whether a bracket opens here and closes at the end of a condition: nothing goes on behind it."""
        if not self.is_at("("):
            return self.is_at("{", ";")  # no condition at all
        after = self.tokens[self.behind_bracket(self.at)].text
        return after not in _POWER and after not in ("?", "[", "and", "or")

    def no_colon(self, word: str) -> None:
        """Tell of the `:` or `then` of other languages, and go on behind it."""
        if self.is_at(":", "then") and self.tokens[self.at + 1].text not in ("=", "["):
            fix = Fix("leave it out", (Edit(Span(self.last.span.end, self.token.span.end), ""),))
            message = f"no `{self.token.text}` stands behind `{word}`"
            self.say(codes.SYNTAX_ERROR, self.next().span, message, help=_BLOCKS, fix=fix)
            self.spoiled = True

    def choice(self) -> If:
        """`if (c) { .. } else { .. }`."""
        begin = self.next().span
        condition = self.condition("if")
        head = begin | self.last.span
        then = self.block("if")
        otherwise = self.alternative()
        found = If(condition, then, otherwise, begin | self.last.span, head)
        self.choice_of_writes(found)
        return found

    def alternative(self) -> tuple[Statement, ...]:
        """The statements behind `else`, if it stands here; after a message also behind `elif` and `else:`."""
        if self.is_at("elif", "elseif", "elsif"):
            fix = Fix("write `else if`", (Edit(self.token.span, "else if"),))
            self.say(codes.SYNTAX_ERROR, self.token.span, f"there is no `{self.token.text}`", help=_BLOCKS, fix=fix)
            self.spoiled = True
            return (self.choice(),)
        if not self.accept("else"):
            return ()
        self.no_colon("else")
        return self.block("else")

    def choice_of_writes(self, choice: If) -> None:
        """Keep what an `if` writes: one element, with its value on both ways."""
        ways = [[self.writes.get(each.span.start) for each in way] for way in (choice.then, choice.otherwise)]
        flat = [[write for group in way for write in group or ()] for way in ways]
        if None in (*ways[0], *ways[1]) or len(flat[0]) != 1 or len(flat[1]) > 1:
            return
        condition = self.source.slice(sac_foreign.closed(self.source, choice.condition.span))
        if (found := sac_writes.chosen(condition, flat[0][0], flat[1][0] if flat[1] else None)) is not None:
            self.writes[choice.span.start] = [found]

    def for_loop(self) -> Loop:
        at, begin = self.at, self.next().span
        form = "write `for (i = 0; i < n; i++) { .. }`"
        if (counted := self.counted()) is not None:
            span = begin | self.last.span
            self.at = at
            self.skip_block()
            message = "the head of a loop is `for (start; condition; step)`"
            self.fail(message, span=span, help=f"write `for ({counted}) {{ .. }}`")
        self.expect("(", "after `for`", help=form)
        start = self.steps(";")
        self.expect(";", "after the start of `for`", help=form)
        condition = self.whole()
        self.end_of_value(";", "after the condition of `for`", help=form)
        step = self.steps(")")
        self.expect(")", "after the step of `for`", help=form)
        head = begin | self.last.span
        body = self.block("for")
        found = Loop("for", start, condition, step, body, begin | self.last.span, head)
        self.loop_of_writes(found)
        return found

    def loop_of_writes(self, loop: Loop) -> None:
        """Let one message about a loop that only writes elements, and its fix, stand for those about its statements."""
        counted = self.counter(loop)
        groups = [self.writes.get(each.span.start) for each in loop.body]
        inner = [sac_writes.within(write, [counted]) for group in groups if group and counted for write in group]
        if not inner or not all(groups):
            return
        self.writes[loop.span.start] = writes = sac_writes.joined(inner)
        own = [each for each in self.diagnostics if loop.span.start <= each.span.start < loop.span.end]
        if (text := sac_writes.at_once(writes, self.known)) and all(each.message in _OF_LOOPS for each in own):
            first = next(each for each in own if each.message == _IN_PLACE)
            self.diagnostics = [each for each in self.diagnostics if each not in own]
            self.in_place(first.span, loop.span, text)

    def counter(self, loop: Loop) -> tuple[str, str, str] | None:
        """The variable of a loop that counts up by 1, its first number, and the one behind its last."""
        starts, steps, condition = loop.start, loop.step, loop.condition
        if not (len(starts) == len(steps) == 1 and isinstance(condition, Binary) and condition.op in ("<", "<=")):
            return None
        index, step = starts[0].name, steps[0]
        one = isinstance(step.value, Binary) and step.value.op == "+" and step.value.right == Number("1", 1)
        counts = one and step.name == step.value.left == condition.left == index  # pyright: ignore[reportAttributeAccessIssue]
        if not counts or starts[0].operator != "=":
            return None
        low, high = (
            " ".join(self.source.slice(sac_foreign.closed(self.source, each.span)).split())
            for each in (starts[0].value, condition.right)
        )
        return index.name, low, high if condition.op == "<" else f"{high} + 1"

    def counted(self) -> str | None:
        """What the head `(i in 0..n)`, `(i in range(n))`, `i in 0:n` or `(int i : a)` is here; eats such a head."""
        at, bracketed = self.at, self.accept("(")
        if self.token.text in BASES or self.is_at("auto"):
            self.next()
        index, word = self.token, self.tokens[min(self.at + 1, len(self.tokens) - 1)].text
        if index.kind != "name" or word not in ("in", ":", "of"):
            self.at = at
            return None
        self.at += 2
        first, depth = self.at, 0
        while self.token.kind not in ("end", "text") and not self.is_at(";", "{", "}"):
            depth += self.is_at("(", "[") - self.is_at(")", "]")
            if depth < 0:
                break
            self.next()
        low, high = self.ends_of(
            self.tokens[first : self.at - (depth == 0 and not bracketed and self.last.text == ":")]
        )
        return f"{index.text} = {low}; {index.text} < {high}; {index.text}++"

    def ends_of(self, tokens: Sequence[_Token]) -> tuple[str, str]:
        """The first number of `0..n`, `0:n`, `range(n)` or an array, and the one behind its last."""
        texts = [token.text for token in tokens]
        if texts[:2] == ["range", "("] and texts[-1] == ")":
            parts = self.source.slice(tokens[2].span | tokens[-2].span).split(",") if len(tokens) > 3 else [""]
            return (parts[0].strip(), parts[1].strip()) if len(parts) > 1 else ("0", parts[0].strip() or "n")
        text = self.source.slice(tokens[0].span | tokens[-1].span) if tokens else "a"
        for mark in ("...", "..", ":"):
            low, found, high = text.partition(mark)
            if found:
                return low.strip() or "0", high.strip() or "n"
        return "0", f"shape({text})[0]"

    def steps(self, close: str) -> tuple[Assign, ...]:
        found: list[Assign] = []
        while self.more(bool(found), close):
            assign = self.assign()
            if isinstance(assign, Unpack):
                self.fail(
                    "a call with several results cannot stand here", span=assign.span, help="put it into the block"
                )
            if isinstance(assign, BrokenAssign):
                raise _Failed
            found.append(assign)
        return tuple(found)

    def while_loop(self) -> Loop:
        begin = self.next().span
        condition = self.condition("while")
        head = begin | self.last.span
        body = self.block("while")
        return Loop("while", (), condition, (), body, begin | self.last.span, head)

    def do_loop(self) -> Loop:
        begin = self.next().span
        body = self.block("do")
        if not self.is_at("while"):
            help = "write `do { .. } while (condition);`"
            self.fail(f"expected `while` after the block of `do`, found {self.found()}", help=help)
        last = self.next().span
        condition = self.condition("while")
        head = last | self.last.span
        self.end_of_value(";", "after the condition of `while`", help="end the statement with `;`")
        return Loop("do", (), condition, (), body, begin | self.last.span, head)

    def assign(self) -> Assign | Unpack | BrokenAssign:
        """`x = e`, `x += e`, `x++` or `a, b = f(x)`, without the `;`; after a message also `a[i] = e`."""
        self.refuse_statement(self.token)
        self.no_round_targets()
        token = self.token
        name = self.name("on the left of `=`")
        if self.is_at(","):
            return self.unpack(name)
        operator = self.token
        self.no_reduction(name)
        if self.is_at(*COMPOUND):
            self.next()
            value = self.whole()
            changed = Binary(operator.text[0], name, value, name.span | value.span, operator.span)
            self.known.setdefault(name.name, self.rank_of(value))
            return Assign(name, changed, token.span | value.span, operator.text)
        twice = self._repeated_sign()
        if twice:
            span = operator.span | self.last.span
            changed = Binary(twice[0], name, Number("1", 1, None, span), token.span | span, span)
            return Assign(name, changed, token.span | span, twice)
        if self.is_at("["):
            return self.element_write(name)
        if self.is_at("+", "-", "*", "/", "%", "++"):
            help = f"write `{name.name} = {name.name} {self.token.text} ..;`"
            self.fail("only `=`, `+= -= *= /= %=`, `++` and `--` assign", help=help)
        help = "a function is made of assignments `name = expression;`, `if`, loops and one `return`"
        if self.is_at(*_RELATIONS):
            help = "a condition stands in `if (condition)`, and between two `;` in `for (i = 0; i < n; i++)`"
        self.expect("=", f"after `{name.name}`", help=help)
        value = self.whole()
        self.known[name.name] = self.rank_of(value)
        return Assign(name, value, token.span | value.span)

    def element_write(self, name: Name) -> BrokenAssign:
        """Refuse `a[i] = e` and `a[i][j] += e`, and keep what they write, which the fix of a loop around them needs."""
        span, subscripts, ranks = self.token.span, list[str](), list[int | None]()
        while self.accept("["):
            begun = False
            while self.more(begun, "]"):
                first, begun = self.token.span, True
                index = self.dot() or self.expression()
                if self.is_at(":"):
                    text = f"{name.name} = {{ [i] -> 0 | [0] <= [i] < [3]; iv -> {name.name}[iv] }}"
                    self.fail(_IN_PLACE, span=span, help=f"a part of an array is given by a generator, as in `{text};`")
                subscripts.append(self.source.slice(first | self.last.span))
                ranks.append(None if isinstance(index, Dot | TripleDot) else self.rank_of(index))
            self.expect("]", "after the indices of an element")
        operator, step = self.token, self._repeated_sign()
        value, shown = Name("1", NO_SPAN), "1"
        if step is None:
            if not self.is_at("=", *COMPOUND):
                self.expect("=", f"after `{self.source.slice(name.span | self.last.span)}`")
            self.next()
            first = self.token.span
            value = self.whole()
            shown = self.source.slice(first | self.last.span)
        sign = operator.text[0]
        operand = f"({shown})" if self._is_open(value, sign) else shown
        is_vector = None if ranks in ([None], [2]) else ranks == [1]
        plain = not any(text in (".", "...") for text in subscripts)
        write = sac_writes.ElementWrite(
            name.name, tuple(subscripts), sign, shown, operand, is_vector if plain else None
        )
        place = name.span | self.last.span
        self.writes[place.start] = [write] if plain else []
        free = sac_foreign.free_indices(value, self.known)
        text = sac_writes.one_by_one(write, self.known)
        if plain and subscripts and not self.known.keys() & set(subscripts) and all(map(str.isidentifier, subscripts)):
            text = sac_writes.of_each(write, free)
        self.in_place(span, place, text)
        return BrokenAssign((name.name,), place)

    def _is_open(self, value: SacExpression, sign: str) -> bool:
        """Whether a value needs brackets behind an operator."""
        is_looser = isinstance(value, Binary) and _POWER[value.op] <= _POWER.get(sign, -1)
        return (is_looser or isinstance(value, Conditional)) and value.span not in self.closed

    def in_place(self, span: Span, place: Span, text: str | None) -> None:
        """Say that elements are written; the fix writes a text for a statement."""
        fix = Fix("give the whole array", (Edit(place, text),)) if text is not None else None
        help = "the elements of an array are given at once, as in `b = { [i] -> 2 * a[i] };`"
        self.say(codes.SYNTAX_ERROR, span, _IN_PLACE, help=help, fix=fix)
        self.spoiled = True

    def rank_of(self, node: SacExpression) -> int | None:
        """The rank of an index, where it can be told without types."""
        match node:
            case Number():
                return 0
            case ArrayLiteral():
                return 1
            case Name():
                return self.known.get(node.name)
            case Unary():
                return self.rank_of(node.operand)
            case Binary():
                ranks = {self.rank_of(node.left), self.rank_of(node.right)} - {0}
                return 0 if not ranks else ranks.pop() if len(ranks) == 1 else None
            case Selection():
                whole, chosen = (
                    self.rank_of(node.array),
                    [self.rank_of(each) for each in node.indices if not isinstance(each, Dot | TripleDot)],
                )
                return whole - len(chosen) if whole is not None and set(chosen) == {0} else None
            case _:
                return None

    def no_reduction(self, name: Name) -> None:
        """Refuse `s +=! a[i]` and `s max=! a[i]` of `%%tc`."""
        words = [token.text for token in self.tokens[self.at : self.at + 3]]
        sign = words[0][:1] if words[0] in COMPOUND and words[1] == "!" else words[0] if words[1:] == ["=", "!"] else ""
        if sign not in _FOLDS:
            return
        span = self.token.span | self.tokens[self.at + (1 if words[1] == "!" else 2)].span
        called = _FOLDS[sign]
        help = f"write `{name.name} = {called}(a);`, or `{name.name} = {called}({{ [i] -> .. }});` for elements that are computed"
        self.fail(f"`{self.source.slice(span)}` belongs to `%%tc`", span=span, help=help)

    def _repeated_sign(self) -> str | None:
        """`++` or `--` behind a variable; eats it."""
        if self.accept("++"):
            return "++"
        if _steps_down(self.tokens[self.at : self.at + 3]):
            self.at += 2
            return "--"
        return None

    def no_round_targets(self) -> None:
        """Read `(a, b) = f(x)` and `[a, b] = f(x)` without the brackets, after a message."""
        end = self.behind_pattern(self.at) - 1
        names, behind = self.tokens[self.at + 1 : end], self.tokens[end + 1 : end + 4]
        words = [each.kind == "name" for each in names]
        if not self.is_at("(", "[") or behind[0].text != "=" or words != [True, False] * (len(words) // 2) + [True]:
            return
        opening, closing = self.token.span, self.tokens[end].span
        fix = None
        if len(words) == 1 or (behind[1].kind == "name" and behind[2].text in ("(", "::")):
            fix = Fix("leave the brackets out", (Edit(opening, ""), Edit(closing, "")))
        message, help = "what receives results stands in no brackets", "write `a, b = f(x);`"
        self.say(codes.SYNTAX_ERROR, opening | closing, message, help=help, fix=fix)
        del self.tokens[end]
        self.next()

    def unpack(self, first: Name) -> Unpack:
        """`a, b = f(x)`."""
        names = [first]
        while self.accept(","):
            names.append(self.name("on the left of `=`"))
        seen: set[str] = set()
        for name in names:
            if name.name in seen:
                self.say(codes.DUPLICATE_NAME, name.span, f"`{name.name}` receives two results", help="rename one")
            seen.add(name.name)
        self.expect("=", "after the names", help="write `a, b = f(x);`")
        value = self.whole()
        self.known |= dict.fromkeys((name.name for name in names), None)
        if not isinstance(value, Apply):
            help = "give each name a statement of its own: `a = ..; b = ..;`"
            self.fail("only a call has several results", span=value.span, help=help)
        return Unpack(tuple(names), value, first.span | value.span)

    def refuse_statement(self, token: _Token) -> None:
        if token.text in ("else", "goto", "break", "continue", "switch") and token.kind == "name":
            help = {
                "else": "it stands behind the block of an `if`",
                "goto": "use `if` and loops",
                "switch": "use `if (..) { .. } else if (..) { .. }`",
            }.get(token.text, "write what ends the loop into its condition")
            self.skip_block()
            self.fail(f"`{token.text}` cannot stand here", span=token.span, help=help)
        if token.text in self.types and token.kind == "name" and self.tokens[self.at + 1].text != "(":
            self.declaration()
        if self.is_at("++") or (self.is_at("-") and self.tokens[self.at + 1].text == "-"):
            sign = "++" if self.is_at("++") else "--"
            self.fail(f"`{sign}` stands behind its variable", help=f"write `n{sign};`")
        if token.kind == "name" and token.text not in RESERVED and self.tokens[self.at + 1].text == "(":
            if self.writes_element():
                help = f"write `{token.text} = {{ [i] -> .. }};`: the elements of an array are given at once"
                self.fail(_IN_PLACE, span=token.span, help=help)
            help = f"functions only compute: write `x = {token.text}(..);`, or delete the call"
            if token.text in ("print", "printf", "fprintf", "show"):
                help = "functions only compute: delete the call, return the value, and print it in Python"
            self.fail("a call is no statement", span=token.span, help=help)
        if token.text == "def":
            self.fail("`def` belongs to `%%tc`", help="a function starts with its result type")

    def writes_element(self) -> bool:
        """Whether `s(i) = ..` or `s(i) +=! ..` stands here, as in `%%tc`."""
        depth, at = 0, self.at + 1
        while self.tokens[at].kind != "end" and self.tokens[at].text not in (";", "{", "}"):
            depth += (self.tokens[at].text == "(") - (self.tokens[at].text == ")")
            at += 1
            if not depth:
                break
        after = self.tokens[min(at + 1, len(self.tokens) - 1)]
        return self.tokens[at].text in ("=", *COMPOUND) or after.text == "="

    def declaration(self) -> None:
        """Say that a variable is declared, and read on behind its type."""
        begin = self.next()
        if self.is_at("["):
            while not self.is_at("]", ";", "{", "}", "=") and self.token.kind != "end":
                self.next()
            self.accept("]")
        span = begin.span | self.last.span
        if self.token.kind == "name" and self.tokens[self.at + 1].text == "=":
            fix = Fix("leave the type out", (Edit(Span(span.start, self.token.span.start), ""),))
            self.say(codes.SYNTAX_ERROR, span, _DECLARED, help="write `name = expression;`", fix=fix)
            self.spoiled = True
            return
        end = next(at for at in range(self.at, len(self.tokens)) if self.tokens[at].text in (";", "=", "{", "}", ""))
        whole = begin.span | self.tokens[end].span
        fix = Fix("leave it out", (Edit(whole, ""),)) if self.tokens[end].text == ";" else None
        self.fail(_DECLARED, span=span, help="write `name = expression;`, where it has its first value", fix=fix)

    def skip_block(self) -> None:
        """Go behind a statement of another language that ends with a block: `for (..) { .. }`, `if (..) { .. } else { .. }`."""
        depth, at = 0, self.at
        while self.tokens[at].kind != "end" and at not in self.starts:
            text = self.tokens[at].text
            depth += (text in "([{") - (text in ")]}")
            if depth < 0 or (depth == 0 and text == ";"):
                return  # no block
            at += 1
            if depth == 0 and text == "}" and self.tokens[at].text not in ("else", "while"):
                self.at, self.past_block = at, True
                return

    def end_help(self) -> str:
        """What helps where an expression goes on although it is complete."""
        token = self.token
        if token.text == "." and self.tokens[self.at + 1].kind == "name":
            name = self.tokens[self.at + 1].text
            if name in sac_foreign.INSTEAD:
                return f"there are no methods: write {sac_foreign.INSTEAD[name]}"
            return f"functions stand before their argument: `{library_names.RENAMED.get(name, name)}(..)`"
        if token.text == "|":
            return _BITS["|"]
        if token.kind in ("name", "number", "text"):
            return "write an operator before it, or `;`"
        return "end the statement with `;`"

    def result(self) -> tuple[tuple[SacExpression, ...], Span]:
        begin = self.next().span
        if self.is_at(";", "return"):
            self.fail("`return` needs an expression", span=begin, help="write `return expression;`")
        listed = self.is_at("(") and self._closes_statement()
        if listed:
            self.next()
        found = [self.whole()]
        while self.accept(","):
            found.append(self.whole())
        if listed:
            self.end_of_value(")", "after the results")
        self.end_of_value(";", "after the results", help=self.end_help())
        return tuple(found), begin | self.last.span

    def _closes_statement(self) -> bool:
        """Whether the bracket at this token closes directly before `;`."""
        depth, at = 0, self.at
        while self.tokens[at].kind != "end":
            depth += (self.tokens[at].text in "([{") - (self.tokens[at].text in ")]}")
            if depth == 0:
                return self.tokens[at + 1].text == ";"
            at += 1
        return False

    # Expressions

    def whole(self) -> SacExpression:
        """One complete expression, refused if it is so deep that later passes could not walk it."""
        node = self.expression()
        deepest, stack = 0, [(node, 1)]
        while stack:
            current, level = stack.pop()
            deepest = max(deepest, level)
            stack.extend((child, level + 1) for child in sac_children(current))
        if deepest > _DEEPEST:
            self.fail(
                f"the expression has {deepest} levels of operators; the limit is {_DEEPEST}",
                code=codes.DEVICE_LIMIT,
                span=node.span,
                help="in `a + b + c` every operator is a level: give parts of it a name",
            )
        return node

    def enter(self, calls: int) -> None:
        """Count calls of this parser inside each other: a bracket or a bound has several, an operand one."""
        self.calls += calls
        if self.calls > _MOST_CALLS:
            self.fail(
                "too many brackets and operators are open here",
                code=codes.DEVICE_LIMIT,
                help="give parts of the expression a name",
            )

    def expression(self) -> SacExpression:
        self.level += 1
        if self.level > _DEEPEST:
            self.fail(f"more than {_DEEPEST} brackets are open here", help="give parts of the expression a name")
        self.enter(_CALLS)
        begin = self.token.span
        condition = self.binary(0)
        node = condition
        if self.is_at("if"):
            node = self.choice_behind(condition, begin | self.last.span)
        elif self.accept("?"):
            then = self.expression()
            self.expect(":", "of `c ? a : b`")
            otherwise = self.expression()
            node = Conditional(condition, then, otherwise, condition.span | otherwise.span)
        self.level -= 1
        self.calls -= _CALLS
        return node

    def binary(self, power: int) -> SacExpression:
        left = self.unary()
        while True:
            token = self.token
            if token.kind == "name" and token.text in ("and", "or"):
                good = "&&" if token.text == "and" else "||"
                fix = Fix(f"write `{good}`", (Edit(token.span, good),))
                message = f"`{token.text}` is an operator of Python"
                self.say(codes.PYTHON_OPERATOR, token.span, message, help=f"write `{good}`", fix=fix)
                self.tokens[self.at] = token = _Token("symbol", good, token.span)
            if token.text in _BITS and token.text != "|" and token.kind == "symbol":
                self.no_operator(token)
            level = _POWER.get(token.text) if token.kind == "symbol" else None
            if level is None or level < power:
                return left
            self.next()
            self.spoiled = self.spoiled or self.source.slice(token.span) == "@"  # it has another shape than a product
            self.enter(1)
            right = self.binary(level + 1)
            self.calls -= 1
            if (
                level in (_POWER["<"], _POWER["=="])
                and isinstance(left, Binary)
                and _POWER.get(left.op) == level
                and left.span not in self.closed
            ):
                self.say(
                    codes.CHAINED_COMPARISON,
                    token.span,
                    "comparisons do not chain",
                    help="write `a < b && b < c`; a generator stands behind `|`",
                )
            left = Binary(token.text, left, right, left.span | right.span, token.span)

    def unary(self) -> SacExpression:
        signs: list[_Token] = []
        while self.is_at("-", "!"):
            signs.append(self.next())
        node = self.postfix(self.primary())
        if len(signs) > _DEEPEST:
            self.fail("too many signs", span=signs[0].span, help="two signs cancel each other")
        for sign in reversed(signs):
            node = Unary(sign.text, node, sign.span | node.span)
        return node

    def postfix(self, node: SacExpression) -> SacExpression:
        while self.is_at("[") or self._has_dot():
            if self.is_at("."):
                if self.tokens[self.at + 1].kind != "name":
                    self.without_dot()
                    return node
                node = self.method(node)
                continue
            self.next()
            if self.is_at("]"):
                self.fail("a selection needs an index", help="write `a[i]`, `a[iv]` or `a[., j]`")
            indices: list[SacExpression | Dot | TripleDot] = []
            listed = self._lists_dots()
            if listed:
                self.next()
            while self.more(bool(indices), "]"):
                self.no_star()
                indices.append(self.dot() or self.expression())
            part = (
                "a part is `take([3], drop([1], a))`, or `{ [i] -> a[i + 1] | [i] < [3] }`" if self.is_at(":") else None
            )
            self.expect("]", "after the indices of a selection", help=part)
            if listed:
                self.expect("]", "after the indices of a selection", help="write `a[[., j]]` or `a[., j]`")
            node = Selection(node, tuple(indices), node.span | self.last.span)
        return node

    def no_star(self) -> None:
        """Read `*` and `:` for a whole axis of a selection as `.`, after a message."""
        token = self.token
        if self.is_at("*", ":") and self.tokens[self.at + 1].text in ("]", ","):
            fix = Fix("write `.`", (Edit(token.span, "."),))
            message, help = f"`{token.text}` is no index", "a whole axis is written `.`, as in `a[., 1]`"
            self.say(codes.SYNTAX_ERROR, token.span, message, help=help, fix=fix)
            self.tokens[self.at] = _Token("symbol", ".", token.span)

    def _has_dot(self) -> bool:
        """Whether a dot behind an operand is that of a method or of an operator."""
        after = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        touches = self.is_at(".") and after.span.start == self.token.span.end
        is_method = sac_foreign.is_method(after.text) and self.last.span.end == self.token.span.start
        return touches and (is_method or after.text in ("*", "/", "+", "-"))

    def _lists_dots(self) -> bool:
        """Whether a selection has its indices in a list with dots: `a[[., j]]`."""
        if not self.is_at("["):
            return False
        depth, at = 0, self.at
        while self.tokens[at].kind != "end" and self.tokens[at].text != ";":
            text = self.tokens[at].text
            depth += (text in "([{") - (text in ")]}") if text else 0
            if depth == 0:
                return False
            if depth == 1 and text in (".", "..."):
                return True
            at += 1
        return False

    def dot(self) -> Dot | TripleDot | None:
        """`.` or `...` (also written `. . .`), or nothing."""
        begin = self.token.span
        if self.accept("..."):
            return TripleDot(begin)
        if not self.accept("."):
            return None
        if self.is_at(".") and self.tokens[self.at + 1].text == ".":
            self.at += 2
            return TripleDot(begin | self.last.span)
        return Dot(begin)

    def primary(self) -> SacExpression:
        token = self.token
        if token.kind == "number":
            self.next()
            return self.number(token)
        if token.kind == "name":
            return self.word(token)
        if token.kind == "text":
            help = "values are numbers and arrays of them; Python prints what a function returns"
            self.fail(f"{token.text[:40]} is a text, and there are none", code=codes.UNKNOWN_CHARACTER, help=help)
        if token.text in _BITS and token.kind == "symbol" and token.text != "|":
            self.no_operator(token)
        if self.accept("("):
            self.no_cast_of_c()
            inner = self.expression()
            if self.is_at(","):
                return self.tuple_of(token, inner)
            self.end_of_value(")", "to close the bracket")
            self.closed.add(inner.span)
            return inner
        if self.accept("["):
            return self.literal(token)
        if self.is_at("{"):
            return self.initializer() or self.comprehension()
        if self.is_at(".", "..."):
            self.fail(f"`{token.text}` can stand only in a pattern, a selection, or alone as a bound", help=DOTS)
        self.fail(f"expected an expression, found {self.found()}", help=self._expression_hint(token))

    def tuple_of(self, begin: _Token, first: SacExpression) -> ArrayLiteral:
        """Read `(a, b)` as `[a, b]`, at the comma, after a message."""
        elements = [first]
        while self.accept(","):
            elements.append(self.expression())
        closing = self.end_of_value(")", "to close the bracket")
        span, fix = begin.span | closing.span, Fix("write `[..]`", (Edit(begin.span, "["), Edit(closing.span, "]")))
        message, help = "several values stand in parentheses", "an array is written `[a, b]`"
        self.say(codes.SYNTAX_ERROR, span, message, help=help, fix=fix)
        self.spoiled = True
        return ArrayLiteral(tuple(elements), span)

    def no_cast_of_c(self) -> None:
        """Refuse `(type) a`, behind the bracket; the type may be one of another language, and may have axes."""
        if self.is_at(":"):
            self.fail(
                "types do not stand before values", help="leave `(:type)` out: the declared type of the result says it"
            )
        at = self.at
        words: list[_Token] = []
        while self.tokens[at].kind == "name":
            words.append(self.tokens[at])
            at += 1
        has_axes = bool(words) and self.tokens[at].text == "[" and self.tokens[at + 1].text in ("*", "+", ".")
        while has_axes and self.tokens[at].text in ("[", "*", "+", ".", ",", "]"):
            at += 1
        closed, behind = self.tokens[at], self.tokens[min(at + 1, len(self.tokens) - 1)]
        operand = behind.kind in ("name", "number") or behind.text in ("(", "!")  # `(real) - a` may be a difference
        if not words or closed.text != ")" or not operand:
            return
        text, span = " ".join(word.text for word in words[:6]), words[0].span | words[-1].span
        near = self.type_like(words)
        if near is None and not has_axes:
            return
        if text == near:
            help = f"a cast is written `{near}(..)`, without axes"
            self.fail(f"`{near}` is reserved", code=codes.RESERVED_WORD, span=span, help=help)
        help = f"types are {', '.join(BASES)}; a cast is written `{near or 'float'}(..)`"
        self.fail(f"`{text}` is not a type", code=codes.BAD_TYPE, span=span, help=help)

    def type_like(self, words: Sequence[_Token]) -> str | None:
        """The type here that words of another language mean, or that a misspelt word may mean."""
        if len(words) > 1:
            return library_names.c_type([word.text for word in words])
        (word,) = words
        if word.text in BASES:
            return word.text
        alias = self.aliases.get(word.text)
        if alias is not None:
            return alias.base
        similar = nearest(word.text, BASES) if word.text.lower() in BASES or word.text.endswith("_t") else None
        return library_names.TYPES.get(word.text) or similar

    def _expression_hint(self, token: _Token) -> str:
        if token.text == "*" and self.last.text == "*":
            return "a power is written `pow(x, y)`"
        if token.text in ("=", ">") and self.last.text in ("=", "<", ">"):
            return "comparisons are `< <= > >= == !=`"
        if self.last.text == "++" and token.text in (";", ")", ","):
            return "`++` joins arrays between values; `n++;` is a statement of its own"
        if token.text == ":" and self.last.text in ("[", ","):
            return "a whole axis is written `.`, as in `a[., 1]`"
        return "an operand is missing here: write it, or delete the operator before it"

    def word(self, token: _Token) -> SacExpression:
        if token.text == "with":
            return self.with_loop()
        if token.text == "if":
            return self.choice_of_values()
        self.next()
        if token.text in ("true", "false"):
            return Number(token.text, token.text == "true", "bool", token.span)
        if token.text in ("inf", "nan"):
            return Number(token.text, float(token.text), None, token.span)
        if token.text in ("lambda", "fn", "fun") and (self.token.kind == "name" or self.is_at(":")):
            self.nameless(token.span, sac_foreign.mapped(self.tokens, self.source, self.at - 3))
        name = Name(token.text, token.span)
        if self.is_at(".") and self._is_module(token):
            return self.of_module(token)
        if self.is_at("::"):
            name = self.qualified(name)
        alias = self.aliases.get(token.text)
        if alias is not None and self.is_at("("):
            if alias.shape != ():
                help = f"a cast names a base type: `{alias.base}(..)`"
                self.fail(
                    f"`{token.text}` is a type with axes and no cast", code=codes.BAD_TYPE, span=token.span, help=help
                )
            name = Name(alias.base, token.span)
        if self.is_at(".") and self.tokens[self.at + 1].text == "(" and self.token.span.start == token.span.end:
            self.without_dot()
        if token.text not in STATEMENT_WORDS and self.accept("("):
            arguments = self.arguments(token)
            self.end_of_value(")", f"after the arguments of `{token.text}`")
            return Apply(name, tuple(arguments), token.span | self.last.span)
        if token.text in ("and", "or", "not"):
            good = {"and": "&&", "or": "||", "not": "!"}[token.text]
            fix = Fix(f"write `{good}`", (Edit(token.span, good),))
            self.say(
                codes.PYTHON_OPERATOR,
                token.span,
                f"`{token.text}` is an operator of Python",
                help=f"write `{good}`",
                fix=fix,
            )
            raise _Failed
        if token.text in RESERVED:
            self.fail(
                f"`{token.text}` is reserved",
                code=codes.RESERVED_WORD,
                span=token.span,
                help="a cast is written `float(x)`" if token.text in BASES else "choose another name",
            )
        return name

    def choice_behind(self, value: SacExpression, place: Span) -> SacExpression:
        """Read `a if c else b` as `c ? a : b` after a message, at the `if`; anything else there is left."""
        begin, said, counts = self.at, len(self.diagnostics), (self.level, self.calls)
        word = self.next().span
        try:
            first = self.token.span
            condition = self.binary(0)
            asked = self.source.slice(first | self.last.span)
            self.expect("else", "after the condition")
            otherwise, other = self.with_text()
        except _Failed:
            self.at, (self.level, self.calls) = begin, counts
            del self.diagnostics[said:]
            return value
        span, text = place | self.last.span, f"{asked} ? {self.source.slice(place)} : {other}"
        help, fix = "a choice of values is `c ? a : b`", Fix(f"write `{text}`", (Edit(span, text),))
        self.say(codes.SYNTAX_ERROR, word, "`if` stands in no expression", help=help, fix=fix)
        return Conditional(condition, value, otherwise, span)

    def choice_of_values(self) -> Conditional[SacExpression]:
        """Read `if (c) a else b` and `if c then a else b`, where a value stands, as `c ? a : b` after a message."""
        before, begin, said = self.last.text, self.at, len(self.diagnostics)
        message, help = "`if` stands in no expression", "a choice of values is `c ? a : b`"
        try:
            found, text = self.values_of_choice()
        except _Failed:
            self.at = begin
            del self.diagnostics[said:]
            self.fail(message, help=help)
        span = self.tokens[begin].span | self.last.span
        text = text if before in ("->", "=", "return", "(", "[", ",", ":", "?") else f"({text})"
        self.say(
            codes.SYNTAX_ERROR,
            self.tokens[begin].span,
            message,
            help=help,
            fix=Fix(f"write `{text}`", (Edit(span, text),)),
        )
        return found

    def values_of_choice(self) -> tuple[Conditional[SacExpression], str]:
        """The choice at an `if`, and its text as it is written here."""
        begin = self.next().span
        bracketed = self._is_bracketed() and self.accept("(")
        (condition, asked), nodes, texts = self.with_text(), list[SacExpression](), list[str]()
        if bracketed:
            self.expect(")", "after the condition")
        if self.is_at("then", ":"):
            self.next()
        for word in ("else", ""):
            in_braces = self.is_at("{") and not self.arrow_words(self.behind_pattern(self.at + 1)) and self.accept("{")
            node, text = self.with_text()
            if in_braces:
                self.accept(";")
                self.expect("}", "after the value")
            if word:
                self.expect(word, "after the value")
                self.accept(":")
            nodes.append(node)
            texts.append(text)
        return Conditional(condition, nodes[0], nodes[1], begin | self.last.span), f"{asked} ? {texts[0]} : {texts[1]}"

    def with_text(self) -> tuple[SacExpression, str]:
        """An expression, and how it is written."""
        begin = self.token.span
        node = self.expression()
        return node, self.source.slice(begin | self.last.span)

    def arguments(self, called: _Token) -> list[SacExpression]:
        """The arguments of a call, behind the bracket."""
        found: list[SacExpression] = []
        if (
            called.text in sac_foreign.REDUCING | sac_foreign.SCANNING
            and self.token.text in OPERATORS
            and self.tokens[self.at + 1].text == ","
        ):
            fix = sac_foreign.combined(self.tokens, self.at - 2)
            help = sac_foreign.RUNNING if called.text in sac_foreign.SCANNING else sac_foreign.COMBINED
            self.fail("operators are no arguments", help=help, fix=fix)
        while self.more(bool(found), ")"):
            start = self.at
            found.append(self.expression())
            self.no_comprehension(start)
            if self.is_at("->"):
                self.nameless(self.token.span)
        return found

    def no_comprehension(self, start: int) -> None:
        """Refuse `e for x in a`, whose `e` begins at a token and ends here."""
        if self.is_at("for"):
            help, fix = sac_foreign.comprehension(self.tokens, self.source, start, self.at)
            self.fail("`for` stands in no expression", help=help, fix=fix)

    def nameless(self, span: Span, fix: Fix | None = None) -> NoReturn:
        """Refuse a function that stands in an expression."""
        self.fail("there are no functions without a name", span=span, help=sac_foreign.NO_NAME, fix=fix)

    def without_dot(self) -> None:
        """Tell of the dot of `a .* b` and `abs.(a)`, and go on behind it."""
        fix = Fix("delete `.`", (Edit(self.token.span, ""),))
        help = "operators and functions of numbers take whole arrays"
        self.say(codes.SYNTAX_ERROR, self.token.span, "no operator and no call has a dot", help=help, fix=fix)
        self.next()

    def _is_module(self, token: _Token) -> bool:
        """Whether what stands before this dot names a module, and not an array."""
        if token.text in self.known or self.tokens[self.at + 1].kind != "name":
            return False
        behind = [each.text for each in self.tokens[self.at + 2 : self.at + 4]]
        is_called = behind[:1] == ["("] and behind[1:] != [")"] and sac_foreign.is_method(self.tokens[self.at + 1].text)
        return is_called or token.text in library_names.MODULES or token.text in MODULES

    def of_module(self, module: _Token) -> SacExpression:
        """`np.abs(a)`, at the dot: functions have their plain names."""
        name = self.tokens[self.at + 1]
        plain = library_names.CONSTANTS.get(name.text) or library_names.OF_MODULES.get(name.text)
        text = plain or library_names.RENAMED.get(name.text, name.text)
        fix = Fix(f"write `{text}`", (Edit(module.span | name.span, text),))
        help = "numbers are written out" if plain else "functions have their plain names"
        self.say(codes.SYNTAX_ERROR, module.span | self.token.span, "there are no modules", help=help, fix=fix)
        self.at += 1
        if plain:
            self.next()
            return Number(plain, float(plain), None, name.span)
        self.tokens[self.at] = token = _Token("name", text, name.span)
        return self.word(token)

    def method(self, node: SacExpression) -> SacExpression:
        """`a.T` and `a.sum()`, at the dot."""
        dot, name = self.next(), self.next()
        arguments = self.arguments(name) if self.accept("(") else []
        if self.last is not name:
            self.end_of_value(")", f"after the arguments of `{name.text}`")
        function, end = sac_foreign.function_of(name.text), self.last.span.end
        help, fix = f"functions stand before their argument: `{function}(a)`", None
        if arguments:
            help = sac_foreign.along_axis(function, self.source.slice(node.span), arguments) or help
            self.spoiled = True  # the result has another shape than that of all elements
        elif isinstance(node, Name | Selection | Apply):
            start = Span(node.span.start, node.span.start)
            fix = Fix(f"write `{function}(..)`", (Edit(start, f"{function}("), Edit(Span(dot.span.start, end), ")")))
        self.say(codes.SYNTAX_ERROR, dot.span | name.span, f"there is no `.{name.text}`", help=help, fix=fix)
        return Apply(Name(function, name.span), (node,), node.span | name.span)

    def qualified(self, module: Name) -> Name:
        """`Math::sin`, at the `::`."""
        if module.name not in MODULES:
            near = nearest(module.name, MODULES)
            help = f"did you mean `{near}`?" if near else "write the name of the function alone"
            self.fail(f"there is no module `{module.name}`", code=codes.UNKNOWN_MODULE, span=module.span, help=help)
        self.next()
        name = self.name("behind `::`")
        if not self.is_at("("):
            self.fail(
                f"`{module.name}::{name.name}` is a function of a module", span=name.span, help="call it: add `(..)`"
            )
        return Name(f"{module.name}::{name.name}", module.span | name.span)

    def literal(self, begin: _Token) -> ArrayLiteral:
        elements: list[SacExpression] = []
        while self.more(bool(elements), "]"):
            start = self.at
            elements.append(self.expression())
            self.no_comprehension(start)
        self.expect("]", "after the elements of an array")
        return ArrayLiteral(tuple(elements), begin.span | self.last.span)

    def number(self, token: _Token) -> Number:
        text = token.text
        match = re.fullmatch(
            r"(0[xX][0-9A-Fa-f]+|0[bB][01]+)([A-Za-z]*)|((?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)(\w*)", text
        )
        digits = (match.group(1) or match.group(3)) if match else ""
        suffix = ((match.group(2) or match.group(4) or "") if match else "?").lower()
        is_float = digits[:2].lower() not in ("0x", "0b") and any(c in digits for c in ".eE")
        if (is_float and suffix in ("", "f", "d")) or (suffix in ("f", "d") and digits.isdigit()):
            return Number(text, float(digits), {"f": "float32", "d": "float64"}.get(suffix), token.span)
        if not is_float and suffix in _SUFFIXES:
            return self.integer(token, digits, suffix)
        if re.fullmatch(r"\d+(?:_\d+)+[A-Za-z]*", text):
            plain = text.replace("_", "")
            fix = Fix(f"write `{plain}`", (Edit(token.span, plain),))
            self.say(
                codes.BAD_NUMBER, token.span, f"`{text}` is not a number", help="digits stand in no groups", fix=fix
            )
        elif re.fullmatch(r"\d+[A-Za-z_]\w*", text) and suffix not in _SUFFIXES:
            self.say(
                codes.DIGIT_NAME,
                token.span,
                f"`{text}` is neither a number nor a name",
                help=f"did you mean `{digits}*{text[len(digits) :]}`?",
            )
        else:
            self.say(
                codes.BAD_NUMBER,
                token.span,
                f"`{text}` is not a number",
                help="suffixes are `b s i l ll u ub us ui ul ull` for integers, `f` and `d` for floats",
            )
        return Number("0", 0, None, token.span)

    def integer(self, token: _Token, digits: str, suffix: str) -> Number:
        if len(digits) > 400:
            self.say(codes.BAD_NUMBER, token.span, "the number is beyond the range of `uint64`", help=FLOAT)
            return Number("0", 0, None, token.span)
        if re.fullmatch(r"0\d+", digits):
            self.say(
                codes.BAD_NUMBER,
                token.span,
                f"`{token.text}` has a leading zero",
                help=f"write `{digits.lstrip('0') or '0'}`",
            )
            return Number("0", 0, None, token.span)
        value = int(digits, 0)
        type_ = _SUFFIXES[suffix]
        if type_ == "uint32" and value >= 1 << 32:
            type_ = "uint64"
        limit = (1 << 64) if type_ is None else _beyond(type_)
        if value >= limit:
            self.say(
                codes.BAD_NUMBER, token.span, f"`{token.text}` is beyond the range of `{type_ or 'uint64'}`", help=FLOAT
            )
            return Number("0", 0, None, token.span)
        return Number(token.text, value, type_, token.span)

    # Comprehensions

    def comprehension(self) -> SetExpr:
        begin = self.next().span
        found: list[PartitionClause] = []
        while not self.is_at("}"):
            found.append(self.partition())
            if not self.accept(";"):
                break
        self.end_of_value(
            "}",
            "after the partitions of a comprehension",
            help="partitions are separated by `;`, a generator stands behind `|`",
        )
        span = begin | self.last.span
        if not found:
            self.fail("a comprehension needs a partition", span=span, help="for example `{ iv -> A[iv] + 1 }`")
        return SetExpr(tuple(found), span)

    def partition(self) -> PartitionClause:
        begin = self.token.span
        opens = self.at - 1
        pattern = self.pattern()
        self.arrow()
        first = self.token.span
        body = self.expression()
        part = _Part(pattern, body, first | self.last.span, opens)
        generator = self.generator(part) if self.accept("|") else None
        if generator and self.is_at(",", "&&", "and"):
            self.condition_behind(part)
        return PartitionClause(pattern, body, generator, begin | self.last.span)

    def arrow(self) -> None:
        """The `->` behind a pattern; after a message also `:`, `=` or `=>`."""
        words = 0 if self.is_at("->") else self.arrow_words(self.at)
        if not words:
            self.expect("->", "after the pattern")
            return
        place = self.token.span | self.tokens[self.at + words - 1].span
        self.at += words
        help, fix = "what an element is stands behind `->`", Fix("write `->`", (Edit(place, "->"),))
        message = f"`{self.source.slice(place)}` cannot stand behind a pattern"
        self.say(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)

    def arrow_words(self, at: int) -> int:
        """How many tokens stand for the arrow behind a pattern, which is `:`, `=` or `=>` elsewhere; 0: none does."""
        if self.tokens[at].text != "=":
            return int(self.tokens[at].text in ("->", ":"))
        if self.tokens[at + 1].text == ">":
            return 2
        return int(self.tokens[at - 1].text in ("]", ")"))

    def behind_pattern(self, at: int) -> int:
        """The place behind what looks like a pattern; its own place where nothing does."""
        if [each.text for each in self.tokens[at + 1 : at + 3]] == ["=", "["]:
            at += 2
        if self.tokens[at].kind == "name":
            return at + 1
        if self.tokens[at].text not in ("[", "("):
            return at
        end = at + 1
        while self.tokens[end].kind == "name" or self.tokens[end].text in (".", "...", ","):
            end += 1
        return end + 1 if self.tokens[at].text + self.tokens[end].text in ("[]", "()") else at

    def condition_behind(self, part: _Part) -> None:
        """Refuse the condition of `| [i] < [n], x[i] > 0`, at the comma; anything else there is left."""
        at = self.at
        self.next()
        start = self.at
        parts, _ = self.generator_parts(part.pattern)
        if self._is_condition(part.pattern, parts):
            self.no_condition(part, start)
        self.at = at

    def _is_condition(self, pattern: Pattern, parts: Sequence[SacExpression | Dot]) -> bool:
        """Whether these operands of comparisons ask something of an element, as in `x[i] > 0`, `i % 2 == 0` and `i < j`."""
        names = {each.name for each in pattern.bound}
        whole = [part for part in parts if isinstance(part, ArrayLiteral) or _variables(part) in self._vectors(pattern)]
        used = [
            part
            for part in parts
            if not isinstance(part, Dot)
            and any(isinstance(each, Name) and each.name in names for each in sac_walk(part))
        ]
        computed = [part for part in used if not isinstance(part, Name)]
        return not whole and (bool(computed) or len({_variables(part) for part in used}) > 1)

    @staticmethod
    def _vectors(pattern: Pattern) -> list[str]:
        """The names of a pattern that stand for vectors of indices."""
        whole = [pattern.whole.name] if pattern.whole is not None else []
        return whole + [each.name for each in pattern.names if pattern.vector]

    def no_condition(self, part: _Part, start: int) -> NoReturn:
        """Refuse a condition, which begins at a token, as a generator or behind one: it is read again as a whole."""
        self.at = start
        condition = self.binary(0)
        span, behind = self.tokens[start].span | self.last.span, self.tokens[start - 2].span.end
        asked, text = self.source.slice(span), self.source.slice(part.span)
        called = [token.text for token in self.tokens[max(part.opens - 2, 0) : part.opens + 1]]
        other = {"sum": "0", "prod": "1"}.get(called[0]) if called[1:] == ["(", "{"] and self.is_at("}") else None
        value, fix = f"{asked} ? {text} : {other or '0'}", None
        if other and self._is_number(part.pattern, part.body) and self._is_number(part.pattern, condition):
            edits = Edit(part.span, value), Edit(Span(behind, span.end), "")
            fix = Fix(f"write `{value}`", edits)
        help = f"every index has an element: choose its value, as in `{value}`"
        message = "a generator bounds indices, and chooses no elements"
        self.fail(message, code=codes.GENERATOR_RELATION, span=span, help=help, fix=fix)

    def _is_number(self, pattern: Pattern, node: SacExpression) -> bool:
        """Whether what is said of an element is certainly one number."""
        if pattern.vector or not all(isinstance(each, Name) for each in pattern.items):
            return False
        known = self.known
        self.known = known | {each.name: 0 for each in pattern.names}
        rank = self.rank_of(node)
        self.known = known
        return rank == 0

    def pattern(self) -> Pattern:
        begin = self.token.span
        self.no_round_pattern()
        if not self.is_at("["):
            name = self.name("as a pattern")
            if self.arrow_words(self.at) or not self.accept("="):
                return Pattern((name,), True, name.span)
            if not self.is_at("["):
                self.fail(
                    f"expected `[` after `{name.name} =`, found {self.found()}", help=f"write `{name.name} = [i, j]`"
                )
            parts = self.pattern()
            for item in parts.items:
                if not isinstance(item, Name):
                    help = f"name the axis, or leave `{name.name} =` out"
                    self.say(
                        codes.SYNTAX_ERROR,
                        item.span,
                        f"`{name.name}` cannot stand for an axis without a name",
                        help=help,
                    )
                    self.spoiled = True
            self.say_repeated((name, *parts.names))
            return replace(parts, whole=name, span=name.span | parts.span)
        self.next()
        items: list[Name | Dot | TripleDot] = []
        while self.more(bool(items), "]"):
            items.append(self.dot() or self.name("in a pattern"))
        self.expect("]", "after the items of a pattern")
        triples = [item for item in items if isinstance(item, TripleDot)]
        if len(triples) > 1:
            edits = tuple(Edit(extra.span, ".") for extra in triples[1:])
            self.say(
                codes.TRIPLE_DOTS,
                triples[1].span,
                "a pattern has more than one `...`",
                help="use `.` for each further axis",
                fix=Fix("replace by `.`", edits),
            )
            items = [Dot(i.span) if isinstance(i, TripleDot) and i is not triples[0] else i for i in items]
        self.say_repeated(tuple(item for item in items if isinstance(item, Name)))
        return Pattern(tuple(items), False, begin | self.last.span)

    def no_round_pattern(self) -> None:
        """Read `(i, j) ->` as `[i, j] ->` after a message, and refuse `i, j ->`."""
        opens, at = self.is_at("("), self.at + self.is_at("(")
        while self.tokens[at].kind == "name" or self.tokens[at].text in (".", "...", ","):
            at += 1
        names = self.tokens[self.at + opens : at]
        behind = at + (opens and self.tokens[at].text == ")")
        if not self.arrow_words(behind) or not names or (not opens and all(each.text != "," for each in names)):
            return
        text = f"[{self.source.slice(names[0].span | names[-1].span)}]"
        place = self.token.span | self.tokens[behind - 1].span
        message, fix = "the indices of a pattern stand in square brackets", Fix(f"write `{text}`", (Edit(place, text),))
        if not opens:
            self.fail(message, span=place, fix=fix)
        self.say(codes.SYNTAX_ERROR, place, message, fix=fix)
        self.spoiled = True
        self.tokens[self.at], self.tokens[at] = (
            _Token("symbol", bracket, self.tokens[where].span) for bracket, where in (("[", self.at), ("]", at))
        )

    def initializer(self) -> ArrayLiteral | None:
        """Read `{1, 2, 3}` of C as `[1, 2, 3]` after a message; `None` where a comprehension stands here."""
        end, depth = self.at, 0
        if (behind := self.behind_pattern(end + 1)) > end + 1 and self.arrow_words(behind):
            return None
        while self.tokens[end].kind != "end" and self.tokens[end].text not in (";", "->", "|"):
            depth += (self.tokens[end].text == "{") - (self.tokens[end].text == "}")
            if not depth:
                break
            end += 1
        if self.tokens[end].text != "}" or end == self.at + 1:
            return None
        edits = list[Edit]()
        for at in range(self.at, end + 1):
            if self.tokens[at].text in ("{", "}"):
                bracket = "[" if self.tokens[at].text == "{" else "]"
                edits.append(Edit(self.tokens[at].span, bracket))
                self.tokens[at] = _Token("symbol", bracket, self.tokens[at].span)
        place, fix = self.token.span | self.tokens[end].span, Fix("write square brackets", tuple(edits))
        help = "braces hold what is said of each element, as in `{ [i] -> 2 * a[i] }`"
        self.say(codes.SYNTAX_ERROR, place, "the elements of an array stand in square brackets", help=help, fix=fix)
        self.spoiled = True
        return self.literal(self.next())

    def say_repeated(self, names: tuple[Name, ...]) -> None:
        seen: set[str] = set()
        for name in names:
            if name.name in seen:
                self.spoiled = True
                self.say(
                    codes.DUPLICATE_NAME,
                    name.span,
                    f"`{name.name}` is bound twice in one pattern",
                    help="give each axis a name of its own, or `.`",
                )
            seen.add(name.name)

    def bound(self) -> SacExpression | Dot:
        begin = self.token.span
        if not self.is_at("...") and self.accept("."):
            return Dot(begin)
        self.enter(_CALLS)
        found = self.binary(_CONCAT)
        self.calls -= _CALLS
        return found

    def generator_part(self, pattern: Pattern) -> SacExpression | Dot:
        """A bound, or the indices; `iv = [i, j]` stands for `[i, j]` there."""
        whole = pattern.whole
        if whole is not None and self.token.text == whole.name and self.tokens[self.at + 1].text == "=":
            self.at += 2
        return self.bound()

    def generator_parts(self, pattern: Pattern) -> tuple[list[SacExpression | Dot], list[_Token]]:
        """The operands of a generator, and the relations between them."""
        parts: list[SacExpression | Dot] = [self.generator_part(pattern)]
        relations: list[_Token] = []
        while self.is_at(*_RELATIONS) and len(relations) < 2:
            relations.append(self.next())
            parts.append(self.generator_part(pattern))
        return parts, relations

    def generator(self, part: _Part) -> Generator:
        pattern, start, begin = part.pattern, self.at, self.token.span
        parts, relations = self.generator_parts(pattern)
        if self._is_condition(pattern, parts):
            self.no_condition(part, start)
        if not relations:
            self.fail(
                "expected `<=` or `<` in the generator",
                help="a generator is `lower <= iv < upper`, `iv < upper` or `lower <= iv`",
            )
        if (axis := self.axis_of(pattern, parts)) is not None:
            return self.by_axis(pattern, begin, [(axis, parts, relations)])
        bounds = begin | self.last.span
        step, width = self.grid()
        span = begin | self.last.span
        if len(parts) == 3 and _variables(parts[1]) is None and any(map(_variables, parts)):
            self.fail(
                "a generator has its indices in the middle",
                code=codes.GENERATOR_RELATION,
                span=span,
                help="write `lower <= indices < upper`",
            )
        position = self._variables_at(pattern, parts, relations)
        self.check_variables(pattern, parts[position])
        sides = [
            (parts[at if at < position else at + 1], _seen_from_indices(relations[at], at < position))
            for at in range(max(position - 1, 0), min(position + 1, len(relations)))
        ]
        lowers = [_next(bound, way == ">") for bound, way in sides if way in (">", ">=", "==")]
        uppers = [_next(bound, way != "<") for bound, way in sides if way in ("<", "<=", "==")]
        turned = [each for each in relations if each.text not in ("<", "<=")]
        if turned:
            self.turned(turned[0], lowers, uppers, parts[position], bounds)
        elif position and relations[position - 1].text != "<=":
            self.wrong_relation(relations[position - 1], parts[position - 1], parts[position], is_lower=True)
        if not turned and position + 1 < len(parts) and relations[position].text != "<":
            self.wrong_relation(relations[position], parts[position + 1], parts[position], is_lower=False)
        lower, upper = (found[0] if found else None for found in (lowers, uppers))
        return Generator(lower, upper, "<=", "<", span, step, width)

    def axis_of(self, pattern: Pattern, parts: Sequence[SacExpression | Dot]) -> str | None:
        """The only index that `0 < i < n` names, where the pattern has several."""
        names = [each.name for each in pattern.names]
        if pattern.vector or len(names) < 2 or not all(isinstance(each, Name) for each in pattern.items):
            return None
        place = 1 if len(parts) == 3 else next((at for at, part in enumerate(parts) if _variables(part) in names), 0)
        return found if isinstance(found := _variables(parts[place]), str) and found in names else None

    def by_axis(
        self, pattern: Pattern, begin: Span, found: list[tuple[str, list[SacExpression | Dot], list[_Token]]]
    ) -> Generator:
        """Generators for one index each, `0 < i < n, 0 <= j < m`, as one for all, after a message that says so."""
        while self.is_at(",", "&&"):
            self.next()
            parts, relations = self.generator_parts(pattern)
            axis = self.axis_of(pattern, parts)
            if axis is None or not relations:
                break
            found.append((axis, parts, relations))
        span, lowers, uppers = (
            begin | self.last.span,
            dict[str, SacExpression | Dot](),
            dict[str, SacExpression | Dot](),
        )
        for axis, parts, relations in found:
            position = next(at for at, part in enumerate(parts) if _variables(part) == axis)
            for at, relation in enumerate(relations):
                way = _seen_from_indices(relation, at < position)
                bound = parts[at if at < position else at + 1]
                if way in (">", ">="):
                    lowers[axis] = _next(bound, way == ">")
                elif way in ("<", "<="):
                    uppers[axis] = _next(bound, way == "<=")
        names = [each.name for each in pattern.names]
        sides = [[side.get(name) for name in names] for side in (lowers, uppers)]
        texts = [self.joined(side) for side in sides if any(side)]
        is_whole = all(text is not None for text in texts) and bool(uppers)
        listed = f"[{', '.join(names)}]"
        help, fix = f"one generator has the bounds of all indices, as in `[1, 1] <= {listed} < [n, m]`", None
        if is_whole:
            text = f"{texts[0]} <= {listed} < {texts[-1]}" if lowers else f"{listed} < {texts[-1]}"
            fix = Fix(f"write `{text}`", (Edit(span, text),))
        self.spoiled = self.spoiled or fix is None
        self.say(codes.GENERATOR_NAMES, span, "a generator has all indices of the pattern", help=help, fix=fix)
        lower, upper = (
            ArrayLiteral(tuple(each for each in side if each is not None and not isinstance(each, Dot)), span)
            if is_whole and any(side)
            else None
            for side in sides
        )
        return Generator(lower, upper, "<=", "<", span, *self.grid())

    def joined(self, bounds: Sequence[SacExpression | Dot | None]) -> str | None:
        """The text of bounds, one of each index; `None` where one is not given."""
        texts = [None if each is None or isinstance(each, Dot) else self.bound_text(each) for each in bounds]
        return None if None in texts else f"[{', '.join(each for each in texts if each is not None)}]"

    def turned(
        self,
        relation: _Token,
        lowers: Sequence[SacExpression | Dot],
        uppers: Sequence[SacExpression | Dot],
        variables: SacExpression | Dot,
        span: Span,
    ) -> None:
        """Say how a generator is written whose relations are not `<` and `<=`; what it means is taken as it would be then."""
        whole = "a generator is `lower <= indices < upper`"
        help, fix = "choose in the body, as in `c ? x : y`, or write a part for each side", None
        if relation.text != "!=" and len(lowers) < 2 and len(uppers) < 2:
            names = self.source.slice(variables.span)
            before = f"{self.bound_text(lowers[0])} <= " if lowers else ""
            behind = f" < {self.bound_text(uppers[0])}" if uppers else ""
            good = f"{before}{names}{behind}"
            help, fix = f"write `{good}`", Fix(f"write `{good}`", (Edit(span, good),))
        elif relation.text != "!=":
            help = "write one lower and one upper bound: `max(a, b) <= indices < min(c, d)`"
        self.spoiled = self.spoiled or fix is None
        self.say(
            codes.GENERATOR_RELATION, relation.span, f"`{relation.text}` cannot stand here: {whole}", help=help, fix=fix
        )

    def bound_text(self, bound: SacExpression | Dot) -> str:
        """A bound as it is written, with the 1 that was added to it."""
        if isinstance(bound, Binary) and isinstance(bound.right, Number) and bound.right.span == NO_SPAN:
            return f"{self.bound_text(bound.left)} + 1"
        if isinstance(bound, ArrayLiteral) and bound.elements and bound.elements[0].span == bound.span:
            return f"[{', '.join(each.text for each in bound.elements if isinstance(each, Number))}]"
        text = bound.text if isinstance(bound, Number) else self.source.slice(bound.span)
        return f"({text})" if isinstance(bound, Binary) and bound.op == "++" else text

    def grid(self) -> tuple[SacExpression | None, SacExpression | None]:
        """`step s width w` behind the bounds, if they stand there."""
        step = self.binary(_CONCAT) if self.accept("step") else None
        if self.is_at("width") and step is None:
            self.fail("`width` needs a `step`", help="write `step s width w`")
        width = self.binary(_CONCAT) if self.accept("width") else None
        return step, width

    def _variables_at(self, pattern: Pattern, parts: list[SacExpression | Dot], relations: list[_Token]) -> int:
        """Which part of a generator names the indices."""
        if len(parts) == 3:
            return 1
        whole = pattern.whole.name if pattern.whole is not None else None
        for at, part in enumerate(parts):
            if _variables(part) == _pattern_names(pattern) or (whole is not None and _variables(part) == whole):
                return at
        listed = [at for at, part in enumerate(parts) if _variables(part) is not None and not isinstance(part, Name)]
        if len(listed) == 1:
            return listed[0]
        return 0 if relations[0].text in ("<", ">", ">=") else 1

    def check_variables(self, pattern: Pattern, part: SacExpression | Dot) -> None:
        wanted, found = _pattern_names(pattern), _variables(part)
        if pattern.whole is not None and found == pattern.whole.name:
            return
        if found != wanted and not (isinstance(found, str) and wanted == (found,)):
            text = wanted if isinstance(wanted, str) else f"[{', '.join(wanted)}]"
            self.say(
                codes.GENERATOR_NAMES,
                part.span,
                "the generator names other indices than the pattern",
                help=f"write `{text}`: the pattern without its dots",
                fix=Fix(f"write `{text}`", (Edit(part.span, text),)),
            )

    def wrong_relation(
        self, relation: _Token, bound: SacExpression | Dot | None, variables: SacExpression | Dot, *, is_lower: bool
    ) -> None:
        assert bound is not None
        names = self.source.slice(variables.span)
        good = self.bound_text(_next(bound, relation.text == ("<" if is_lower else "<=")))
        whole = f"{good} <= {names}" if is_lower else f"{names} < {good}"
        fix = None
        if not isinstance(bound, Dot):
            fix = Fix(
                f"write `{whole}`", (Edit(bound.span | relation.span, f"{good} <=" if is_lower else f"< {good}"),)
            )
        self.say(
            codes.GENERATOR_RELATION,
            relation.span,
            f"`{relation.text}` cannot stand here: a generator is `lower <= indices < upper`",
            help=f"write `{whole}`" if not isinstance(bound, Dot) else "write `. <= indices < .`",
            fix=fix,
        )

    # With-loops

    def with_loop(self) -> WithLoop:
        begin = self.next().span
        form = "write `with { (lower <= iv < upper) : e; } : genarray(shape, 0)`" if self.is_at("(") else None
        self.expect("{", "after `with`", help=form)
        generators: list[WithGenerator] = []
        while self.is_at("("):
            generators.append(self.with_generator())
            if not self.accept(";") and not self.accept(","):
                break
        self.expect(
            "}", "after the generators of a with-loop", help="a generator is `(lower <= iv < upper) : expression;`"
        )
        self.accept(",")
        self.expect(":", "before the operator of a with-loop")
        return self.with_operator(begin, tuple(generators))

    def with_operator(self, begin: Span, generators: tuple[WithGenerator, ...]) -> WithLoop:
        token = self.token
        if token.text not in ("genarray", "modarray", "fold"):
            self.fail(f"expected `genarray`, `modarray` or `fold`, found {self.found()}", help=OPERATOR)
        self.next()
        self.expect("(", f"after `{token.text}`")
        function = None
        if token.text == "fold":
            function = self.fold_function()
            self.expect(",", "after the function of `fold`", help="`fold(+, 0)` names a function and a neutral element")
        arguments = [self.expression()]
        if token.text == "genarray" and self.accept(","):
            arguments.append(self.expression())
        self.end_of_value(")", f"after the arguments of `{token.text}`")
        return WithLoop(generators, token.text, function, tuple(arguments), begin | self.last.span)

    def fold_function(self) -> Name:
        token = self.token
        if token.kind == "symbol" and token.text in OPERATORS and token.text != "!":
            self.next()
            return Name(token.text, token.span)
        return self.name("as the function of `fold`")

    def with_generator(self) -> WithGenerator:
        begin = self.next().span
        lower = self.bound()
        first = self.relation()
        pattern = self.pattern()
        for item in pattern.items:
            if not isinstance(item, Name):
                self.say(
                    codes.SYNTAX_ERROR,
                    item.span,
                    "a with-loop has no dots between its names",
                    help="use a comprehension `{ [i, .] -> .. }`",
                )
        second = self.relation()
        upper = self.bound()
        step, width = self.grid()
        self.expect(
            ")", "after the bounds of a generator", help="a generator is `(lower <= iv < upper step s width w)`"
        )
        span = begin | self.last.span
        assigns: tuple[Statement, ...] = self.block("with") if self.is_at("{") else ()
        self.expect(":", "before the body of a generator")
        body = self.expression()
        return WithGenerator(
            pattern, Generator(lower, upper, first, second, span, step, width), assigns, body, begin | self.last.span
        )

    def relation(self) -> str:
        if not self.is_at("<", "<="):
            self.fail(
                f"expected `<` or `<=`, found {self.found()}",
                code=codes.GENERATOR_RELATION,
                help="a generator is `(lower <= iv < upper)`",
            )
        return self.next().text


def _rank_of_type(type_: SacType | None) -> int | None:
    return None if type_ is None or isinstance(type_.shape, str) else len(type_.shape)


def _beyond(type_: str) -> int:
    """The smallest number above the range of an integer type."""
    signed = type_.startswith("int")
    return 1 << (int(type_.strip("uint")) - signed)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _seen_from_indices(relation: _Token, bound_is_left: bool) -> str:
    """The relation of the indices to a bound: `2 <= i` is `>=`."""
    return _MIRRORED[relation.text] if bound_is_left else relation.text


def _next(bound: SacExpression | Dot, shifts: bool) -> SacExpression | Dot:
    """A bound, or what is one larger; `.` is the same on both sides of a relation."""
    if isinstance(bound, Dot) or not shifts:
        return bound
    if isinstance(bound, Binary) and bound.op == "-" and isinstance(bound.right, Number) and bound.right.value == 1:
        return bound.left
    if isinstance(bound, ArrayLiteral) and all(_is_plain(each) for each in bound.elements):
        numbers = [int(each.value) + 1 for each in bound.elements if isinstance(each, Number)]
        return ArrayLiteral(tuple(Number(str(each), each, None, bound.span) for each in numbers), bound.span)
    if isinstance(bound, Number) and _is_plain(bound):
        return Number(str(int(bound.value) + 1), int(bound.value) + 1, None, bound.span)
    return Binary("+", bound, Number("1", 1, None, NO_SPAN), bound.span, bound.span)


def _is_plain(node: SacExpression) -> bool:
    """Whether this is a whole number without a type."""
    return isinstance(node, Number) and node.type is None and isinstance(node.value, int)


def _variables(part: SacExpression | Dot) -> str | tuple[str, ...] | None:
    """`iv` or the names of `[i, j]`, if that is what stands here."""
    if isinstance(part, Name):
        return part.name
    if isinstance(part, ArrayLiteral) and all(isinstance(e, Name) for e in part.elements):
        return tuple(e.name for e in part.elements if isinstance(e, Name))
    return None


def _pattern_names(pattern: Pattern) -> str | tuple[str, ...]:
    return (
        pattern.items[0].name
        if pattern.vector and isinstance(pattern.items[0], Name)
        else tuple(n.name for n in pattern.names)
    )
