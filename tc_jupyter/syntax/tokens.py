"""Text -> tokens of the `%%tc` language, with what is wrong with single characters and numbers.

The types of tokens are the terminals of `tc.lark`. A mistake whose repair is certain (`;`, `=<`, `&`) is told and repaired, so
that the rest of the statement is still checked; any other leaves an `ERROR` token, about which later stages stay silent.

Worked example: `o(i) +=! 2` is `NAME LPAR NAME RPAR UPDATE INTEGER`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, SourceText, Span, codes

from . import einops, library_names
from .letters import GREEK, PI, POWERS, Word, words_of

_TYPE_WORDS = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128
    int byte half float double
"""
SCALAR_TYPES = frozenset(_TYPE_WORDS.split())
"""Names of element types, the other names included."""

MACRO = "there are no macros and decorators"
STENCIL = "there are no decorators, and the indices of a stencil are named"
SEMICOLON = "`;` is not needed: statements are not separated"

POSITION_OPERATORS = ("argmin=!", "argmax=!")
"""Operators whose result is the place of an extreme value."""

REDUCTIONS = ("argmax", "argmin", "min", "max", "any", "all", "lse")
"""Words that are operators with `=!` behind them; the names of reducers are others."""

KEYWORDS: dict[str, str] = {
    "def": "DEF",
    "where": "WHERE",
    "in": "IN",
    "exists": "EXISTS",
    "else": "ELSE",
    "unique": "UNIQUE",
    "reduce": "REDUCE",
    "const": "CONST",
    "min": "MINMAX",
    "max": "MINMAX",
    "true": "NUMBER",
    "false": "NUMBER",
    "inf": "NUMBER",
    "nan": "NUMBER",
} | dict.fromkeys(SCALAR_TYPES, "SCALAR")
"""Reserved words and the terminals they make."""
_RESERVED = frozenset(KEYWORDS)


_WORDS = re.compile(r"(\w+)(=!(?!=))?", re.ASCII)
"""A word, and whether a reduction stands behind it; from word to word, so that a long one is read once."""


def own_operators(text: str) -> tuple[str, ...]:
    """The words of a text that may be names of reducers, for they touch `=!`."""
    words = (word.lstrip("0123456789") for word, reduction in _WORDS.findall(text) if reduction)
    return tuple(dict.fromkeys(word for word in words if word and word not in REDUCTIONS))


def is_own(operator: str) -> bool:
    """Whether an operator is that of a reducer which somebody has defined."""
    return operator.endswith("=!") and operator[:-2].isidentifier() and operator[:-2] not in REDUCTIONS


_SYMBOLS = {
    "<=>": "MATCH",
    "->": "ARROW",
    "<=": "RELATION",
    ">=": "RELATION",
    "<": "RELATION",
    ">": "RELATION",
    "==": "EQUALITY",
    "!=": "EQUALITY",
    "&&": "AND",
    "||": "OR",
    "&": "BITAND",
    "|": "BITOR",
    "^^": "XOR",
    "<<": "SHIFT",
    ">>": "SHIFT",
    "^": "POWER",
    "~": "TILDE",
    "+": "SIGN",
    "-": "MINUS",
    "*": "FACTOR",
    "/": "FACTOR",
    "%": "FACTOR",
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    ":": "COLON",
    "?": "QUESTION",
    "=": "ASSIGN",
    "!": "BANG",
    ".": "DOT",
    "..": "DOTS",
    "...": "DOTS",
}

_TOKEN = re.compile(
    r'''
    (?P<space>[ \t\r\n\f\v]+)
  | (?P<comment>\#[^\n]*)
  | (?P<block>/\*(?s:.*?)(?:\*/|\Z))
  | (?P<slashes>//+)
  | (?P<reduce>(?:min|max|argmin|argmax|any|all|lse)=(?!=)!|(?:min|max)=(?!=)|[+*]=(?!=)!?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:(?:\.(?:vjp|jvp))+(?=[ \t]*\())?)
  | (?P<dimension>(?<=[A-Za-z0-9_])\.[0-9]+)
  | (?P<number>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]\w*
      | (?:[0-9]+\.(?!\.)[0-9]*|\.[0-9]+|[0-9]+(?=[eE][+-]?[0-9]))(?:[eE][+-]?[0-9]+)?\w*
      | [0-9]\w*)
  | (?P<python>=<|=>|\*\*)
  | (?P<symbol><=>|->|<<|>>|<=|>=|==|!=|&&|\|\||\.\.\.?|[-+*/%()\[\]{},:?=<>!.])
  | (?P<quote>"""(?s:.*?)(?:"""|\Z)|'{3}(?s:.*?)(?:'{3}|\Z)|"[^"\n]*"?|'[^'\n]*'?)
  | (?P<semicolon>;)
  | (?P<bits>\^\^|[&|^~])
  | (?P<unknown>[^\sA-Za-z0-9_\#+*/%()\[\]{},:?=<>!.;&|^~"'-]{1,80}|[^\S\ \t\r\n\f\v]+)  # is read anew behind a letter
    ''',
    re.VERBOSE | re.ASCII,
)
_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)(?:u|l|ll|ul|ull)?", re.IGNORECASE)
_FLOAT = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?[fF]?")
_HEX_FLOAT = re.compile(r"0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fF]?")
_SIZES_OF_AXES = re.compile(r"\s*(?:,\s*\w+\s*=\s*\w+\s*)*\)")  # `, h=4)`
_OPERATION = re.compile(r"""\s*,\s*(?:reduction\s*=\s*)?["'](\w+)["']""")  # `, "mean"`
_WRITTEN = re.compile(r"([A-Za-z_]\w*)[ \t]*[(\[][^()\[\]\n]*[)\]][ \t]*[-+*]?=(?!=)|\bdef[ \t]+(\w+)")  # `Y(i) =`
_GOES_ON = re.compile(r"[ \t]*[-+*/%^&|<>=?.,(\[]")  # behind what is not all of a value
_INFINITE = re.compile(r"""["']\s*([-+]?)(inf|nan)(?:inity)?\s*["']""", re.IGNORECASE)
_ALLOW = re.compile(r"#\s*allow\s+(TC[0-9]{3}(?:[\s,]+TC[0-9]{3})*)")
_PROSE = re.compile(r"\b([A-Za-z]+)[ \t]+(?=([A-Za-z]{2,})\b(?![ \t]*(?:[(\[=]|[-+*/]=)))")
_ASSIGNED = re.compile(r"\s*(?:\([^()]*\)\s*)?(?:(?:[-+*/]|(?:arg)?(?:min|max)|any|all|lse)?=(?!=)|,)")
"""What stands behind the target of a statement."""
_DIRECTION = re.compile(r"\s*-?\s*[A-Za-z_][A-Za-z0-9_]*\b(?!\s*[(=])", re.ASCII)
"""What stands behind `along`: an index, with a sign or without."""
_BLOCK = re.compile(r"\s*-?\s*[A-Za-z_][A-Za-z0-9_]*\s+in\b", re.ASCII)
"""What stands behind `along` where it begins a block."""
_REDUCER = re.compile(r"\breduce\s+([A-Za-z_]\w*)\s*\(", re.ASCII)
_CONTROL = re.compile(r"[ \t]*(?:for|while|do|if)\b")  # words of loops and conditions of other languages
_RANGE = re.compile(r"\s*[A-Za-z_]\w*\s+in\s+\S", re.ASCII)
"""The range of an index, which begins no statement."""
_WORD_ALONE = re.compile(r"[ \t]*([A-Za-z]{2,})[ \t.!?]*")
_READ_OTHERWISE = frozenset({"||", "%", "!", "-"})
_MARK = re.compile(r"(%+(?=[ \t])|!+(?!=)|--+(?=[ \t]))[ \t]*([^\n]{1,200})$", re.MULTILINE)
"""What begins a comment elsewhere, and the comment."""
_COMMENTS = re.compile(r"(?:#|//)[^\n]*|(?:%|!|--)[ \t]*[A-Za-z]{2,}[ \t.!?]*$", re.MULTILINE)
_BETWEEN = frozenset(
    {"along", "at", "exists", "unique"}
    | {"where", "in", "exists", "unique", "if", "else", "and", "or", "not", "for", "min", "max", "return"}
)
"""Words between the operands of a statement, which make no prose of it."""
_TYPOGRAPHIC = {
    "−": "-",
    "–": "-",
    "—": "-",
    "×": "*",
    "·": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "→": "->",
    "∧": "&&",
    "∨": "||",
    "∈": "in",
    "←": "=",
    "⋅": "*",
    "∗": "*",
    "∞": "inf",
    "½": "0.5",
    "¬": "!",
    "，": ",",
    "：": ":",
    "（": "(",
    "）": ")",
    "＝": "=",
}
_LATEX = {
    **dict.fromkeys(("cdot", "times"), "*"),
    **dict.fromkeys(("le", "leq"), "<="),
    **dict.fromkeys(("ge", "geq"), ">="),
    **dict.fromkeys(("ne", "neq"), "!="),
    **{
        "lt": "<",
        "gt": ">",
        "land": "&&",
        "wedge": "&&",
        "lor": "||",
        "vee": "||",
        "lnot": "!",
        "neg": "!",
        "in": "in",
    },
    **{"div": "/", "infty": "inf", "ln": "log", "to": "->", "leftarrow": "=", "gets": "=", "ast": "*"},
}
_LATEX_FUNCTIONS = frozenset({"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "max", "min", "arctan"})
_LATEX_SPACES = frozenset({"left", "right", "big", "Big", "bigl", "bigr", "quad", "qquad", "displaystyle"})
_LATEX_SUMS = {"sum": "sum", "prod": "prod"}
_GROUP = re.compile(r"[ \t]*\{([^{}\n]{1,200})\}")
_DECORATION = re.compile(r"(?:[ \t]*[_^](?:\w+|\{[^{}\n]{0,80}\}))*", re.ASCII)
_NAMES_OF_GREEK = {name.rstrip("_"): name for name in GREEK.values()} | {"varepsilon": "epsilon", "epsilon": "epsilon"}
_POWER = re.compile(r"⁻?[⁰¹²³⁴-⁹]+")
_MOST_DIGITS = 400  # of an integer: far beyond uint64, and below the length at which Python refuses to convert


@dataclass(slots=True)
class Token:
    """A token.

    Attributes:
        type: a terminal of the grammar.
        first: whether it is the first one on its line.
        stood: the place from which a fix moved it.
    """

    type: str
    text: str
    start: int
    end: int
    first: bool = False
    stood: Span | None = None

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as tokens; `allow` pairs the code of an `# allow` comment with the offset of the comment."""

    tokens: list[Token]
    diagnostics: list[Diagnostic]
    comments: tuple[Span, ...]
    allow: tuple[tuple[str, int], ...]


def tokenize(source: SourceText, reducers: Iterable[str] = ()) -> Tokens:
    """All tokens of a text. Time is linear in its length, but for very long words.

    Args:
        reducers: names of reducers of other cells; behind a left side, `r=!` is an operator for each of them and of this text.
    """
    scanner = _Scanner(source, frozenset(reducers) | frozenset(_REDUCER.findall(source.text)))
    scanner.run()
    return Tokens(scanner.tokens, scanner.diagnostics, tuple(scanner.comments), tuple(scanner.allow))


class _Scanner:
    """The state of one pass over a text."""

    def __init__(self, source: SourceText, reducers: frozenset[str]) -> None:
        self.text = source.text
        self.reducers = reducers
        self.tokens: list[Token] = []
        self.diagnostics: list[Diagnostic] = []
        self.comments: list[Span] = []
        self.allow: list[tuple[str, int]] = []
        self.first = True
        self.operator = ""
        """The last one that assigns."""
        self.def_place = -1
        """Place of the last `def` among the tokens, -1 before there is one."""
        self.parameters: dict[str, tuple[str, int]] = {}
        """Types and ranks of the parameters of the def at `parameters_of`."""
        self.parameters_of = -1
        self.has_floats = False
        self.names_assigned: frozenset[str] | None = None
        self.words_outside: frozenset[str] | None = None
        self.told = set[tuple[int, str]]()
        """Characters about which there is a message, by def."""
        self.renamed = set[str]()
        self.is_bits_free: bool | None = None
        """Whether `bits` may be the name of a reducer; `None` before it was asked."""

    def run(self) -> None:
        position, text = 0, self.text
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:  # a lone character that no class names
                self.unknown(text[position], position, position + 1)
                position += 1
                continue
            start, position = position, match.end()
            kind = match.lastgroup
            word = match.group()
            if kind == "space":
                self.first = self.first or "\n" in word
            elif kind == "name" and word in self.reducers and self.is_reduction(position):
                position = self.reduction(word, start, position)
            elif kind == "name":
                self.add(KEYWORDS.get(word, self.in_context(word, position)), word, start, position)
            elif word in _READ_OTHERWISE and (after := self.read_otherwise(word, start)) is not None:
                position = after
            elif kind == "symbol":
                self.add(_SYMBOLS[word], word, start, position)
            elif kind == "number":
                self.number(word, start, position)
            elif kind == "reduce":
                self.add("UPDATE", word, start, position)
            elif kind == "dimension":
                self.add("DIMENSION", word, start, position)
            else:
                position = self.rare(kind or "", word, start, position)

    def read_otherwise(self, word: str, start: int) -> int | None:
        """A bar of an absolute value, and what begins a comment elsewhere. Returns where to go on; `None` for an operator."""
        return self.absolute(start, start + 1) if word == "||" else self.remark(start)

    def in_context(self, word: str, end: int) -> str:
        """The terminal of a word that is reserved at some places only."""
        if word == "at" and self.is_position(end):
            return "AT"
        if word == "along" and self.is_block(end):
            return "BLOCK"
        return "ALONG" if word == "along" and self.is_order(end) else "NAME"

    def is_block(self, end: int) -> bool:
        """Whether `along` begins a block: behind a brace or a statement, before an index and its range."""
        last = self.tokens[-1].type if self.tokens else ""
        behind = last in ("LBRACE", "RBRACE", "UNIQUE", "LSQB") or last in ENDS_EXPRESSION
        return behind and _BLOCK.match(self.text, end) is not None

    def is_order(self, end: int) -> bool:
        """Whether `along` stands behind a statement and names indices, and is no target of the next one."""
        last = self.tokens[-1] if self.tokens else None
        behind = last is not None and (last.type in ENDS_EXPRESSION or last.type in ("UNIQUE", "LSQB"))
        return behind and self.operator != "" and _DIRECTION.match(self.text, end) is not None

    def is_reduction(self, end: int) -> bool:
        """Whether `=` touches the name of a reducer behind a left side; elsewhere `y=!b` is `y = !b`."""
        touches = self.text.startswith("=", end) and not self.text.startswith(("==", "=!="), end)
        return touches and self.is_left_side(len(self.tokens))

    def reduction(self, word: str, start: int, end: int) -> int:
        """The operator of a reducer, also without `!` after a message. Returns the offset to go on from."""
        marked = self.text.startswith("=!", end)
        end += 2 if marked else 1
        if not marked:
            message, help = f"there is no operator `{word}=`", "a reducer begins with its identity"
            fix = Fix(f"write `{word}=!`", (Edit(Span(start, end), f"{word}=!"),))
            self.report(codes.PYTHON_OPERATOR, start, end, message, help, fix)
        self.add("UPDATE", f"{word}=!", start, end)
        return end

    def is_left_side(self, end: int) -> bool:
        """Whether the tokens before place `end` end with targets that begin a statement."""
        while True:
            place = end - 1
            if place >= 0 and self.tokens[place].type == "RPAR":
                depth = 0
                while place >= 0:
                    depth += (self.tokens[place].type == "RPAR") - (self.tokens[place].type == "LPAR")
                    place -= 1
                    if not depth:
                        break
            if place < 0 or self.tokens[place].type not in ("NAME", "DIGIT_NAME"):
                return False
            before = self.tokens[place - 1].type if place else "LBRACE"
            if before != "COMMA":
                return before in ("LBRACE", "RBRACE", "UNIQUE", "LSQB", *ENDS_EXPRESSION)
            end = place - 1

    def is_position(self, end: int) -> bool:
        """Whether `at` stands behind what `argmin=!` or `argmax=!` looks at, and is no target of the next statement."""
        last = self.tokens[-1] if self.tokens else None
        behind = self.operator in POSITION_OPERATORS and last is not None and last.type in ENDS_EXPRESSION
        return behind and _ASSIGNED.match(self.text, end) is None

    def add(self, kind: str, word: str, start: int, end: int) -> None:
        if kind in ("UPDATE", "ASSIGN"):
            self.operator = word
        if kind == "DEF":
            self.def_place = len(self.tokens)
        self.tokens.append(Token(kind, word, start, end, self.first))
        self.first = False

    def rare(self, kind: str, word: str, start: int, end: int) -> int:
        """Comments, and everything that is a mistake. Returns the offset to go on from."""
        match kind:
            case "comment":
                self.comment(word, start, end)
            case "block":
                self.block(word, start, end)
            case "slashes":
                return self.slashes(start, end)
            case "python":
                self.python(word, start, end)
            case "semicolon" if _RANGE.match(self.text, end):
                message, fix = (
                    "clauses of `where` are separated by `,`",
                    Fix("write `,`", (Edit(Span(start, end), ","),)),
                )
                self.report(codes.UNKNOWN_CHARACTER, start, end, message, fix=fix)
                self.add("COMMA", ",", start, end)
            case "semicolon":
                line = "\n" if _CONTROL.match(self.text, end) else ""  # at whose start alone such a word is known
                fix = Fix("delete `;`", (Edit(Span(start, end), line),))
                self.report(codes.UNKNOWN_CHARACTER, start, end, SEMICOLON, fix=fix)
                self.first = True
            case "bits":
                return self.bits(word, start, end)
            case "quote" if word[0] == "'" and self.is_transposed(word, start):
                help = "there is no transposition: write the indices in the other order, as in `Y(i, j) = X(j, i)`"
                self.report(codes.UNKNOWN_CHARACTER, start, start + 1, "`'` is not part of the language", help)
                self.add("ERROR", "'", start, start + 1)
                return start + 1
            case "quote" if self.begins_statement():
                self.documented(word, start, end)
            case "quote" if (after := self.infinite(word, start, end)) is not None:
                return after
            case "quote" if (after := self.of_axes(word, start, end)) is not None:
                return after
            case "quote":
                help, fix = self.quoted(word, end)
                self.report(codes.UNKNOWN_CHARACTER, start, end, "the language has no text in quotes", help, fix)
                self.add("ERROR", word, start, end)
            case _:
                return self.unknown(word, start, end)
        return end

    def report(
        self, code: codes.Code, start: int, end: int, message: str, help: str | None = None, fix: Fix | None = None
    ) -> None:
        self.diagnostics.append(Diagnostic(code, Span(start, end), message, help=help, fix=fix))

    def is_transposed(self, word: str, start: int) -> bool:
        """Whether a quote stands right behind an operand and no other one follows on the line: `X'`."""
        last = self.tokens[-1] if self.tokens else None
        alone = len(word) == 1 or word[-1] != "'"
        return alone and last is not None and last.end == start and last.type in ENDS_EXPRESSION

    def begins_statement(self) -> bool:
        """Whether the next token is the first of a def or of a statement on a new line."""
        last = self.tokens[-1].type if self.tokens else "RBRACE"
        return last in ("LBRACE", "RBRACE") or (self.first and last in ENDS_EXPRESSION)

    def documented(self, word: str, start: int, end: int) -> None:
        """A text in quotes where a statement may begin: what Python has as documentation is a comment here."""
        mark = word[:3] if word[:3] == word[0] * 3 and len(word) > 2 else word[0]
        lines = [line.strip() for line in word[len(mark) :].removesuffix(mark).strip().splitlines()]
        stop = self.text.find("\n", end)
        if self.text[end : stop if stop >= 0 else len(self.text)].strip():
            fix = Fix("leave it out", (Edit(Span(start, end), ""),))
        else:
            line = self.text[self.text.rfind("\n", 0, start) + 1 : start]
            between = "\n" + line[: len(line) - len(line.lstrip())]
            comment = between.join(f"# {each}".rstrip() for each in lines or [""])
            fix = Fix("start the comment with `#`", (Edit(Span(start, end), comment),))
        message, help = "the language has no text in quotes", "a comment starts with `#` and ends with its line"
        self.report(codes.UNKNOWN_CHARACTER, start, end, message, help, fix)
        self.first = self.first or "\n" in word

    def infinite(self, word: str, start: int, end: int) -> int | None:
        """`float("inf")`: where to go on from; `None` if this is something else."""
        number = _INFINITE.fullmatch(word)
        close = re.compile(r"[ \t]*\)").match(self.text, end)
        if number is None or close is None or [token.type for token in self.tokens[-2:]] != ["SCALAR", "LPAR"]:
            return None
        kind = self.tokens[-2]
        del self.tokens[-2:]
        text = ("-" if number.group(1) == "-" else "") + number.group(2).lower()
        fix = Fix(f"write `{text}`", (Edit(Span(kind.start, close.end()), text),))
        help = "`inf` and `nan` are numbers"
        self.report(codes.UNKNOWN_CHARACTER, start, end, "the language has no text in quotes", help, fix)
        if text[0] == "-":
            self.tokens.append(Token("MINUS", "-", kind.start, kind.start, kind.first))
        self.tokens.append(Token("NUMBER", text.lstrip("-"), kind.start, close.end(), kind.first and text[0] != "-"))
        return close.end()

    def quoted(self, word: str, end: int) -> tuple[str, Fix | None]:
        """What to say about a text in quotes, which may be that of `C = einsum("ik,kj->ij", A, B)`."""
        last = [token.text for token in self.tokens[-30:]]
        if last[-2:] != ["einsum", "("]:
            help = "values are numbers and truth values; a comment starts with `#`"
            called = library_names.INSTEAD.get(last[place - 1]) if (place := _open_bracket(last)) > 0 else None
            return help if called is None else called.help, None
        place = len(last) - (5 if last[-3:-2] == ["."] else 3)
        bracket = last[:place][::-1].index("(") if ")" in last[place - 1 : place] and "(" in last[:place] else -1
        target = place - 2 - bracket
        name = re.fullmatch(r"[A-Za-z_]\w*", last[target]) if target >= 0 else None
        rest = re.match(r"((?:\s*,\s*\w+)+)\s*\)", self.text[end : end + 400])
        text = None
        if name and rest and last[place] == "=":
            text = library_names.einsum(word[1:-1], re.findall(r"\w+", rest.group(1)), last[target])
        if text is None:
            return library_names.INSTEAD["einsum"].help, None
        span = Span(self.tokens[target - len(last)].start, end + rest.end() if rest else end)
        return "an einsum is a statement", Fix(f"write `{text}`", (Edit(span, text),))

    def of_axes(self, word: str, start: int, end: int) -> int | None:
        """The text of `Y = rearrange(X, "i j -> j i")`, as einops has it. Returns where to go on; `None` for something else."""
        place = _open_bracket([token.text for token in self.tokens[-30:]])
        call = self.tokens[len(self.tokens) - len(self.tokens[-30:]) + place - 1 :] if place > 0 else []
        if "->" not in word or not call or call[0].text not in einops.FUNCTIONS:
            return None
        operation = _OPERATION.match(self.text, end)
        after = operation.end() if operation else end
        close = _SIZES_OF_AXES.match(self.text, after)
        fix, help = None, einops.HELP
        if close is not None and [token.type for token in call[1:]] == ["LPAR", "NAME", "COMMA"]:
            sizes = dict(re.findall(r"(\w+)\s*=\s*(\w+)", close[0]))
            kind, rank = self.declared().get(call[2].text, ("", None))
            found = einops.Called(
                call[0].text, call[2].text, word[1:-1], rank, kind in FLOATS, sizes, operation[1] if operation else ""
            )
            first = len(self.tokens) - len(call) - 2 * (self.tokens[-len(call) - 1].type == "DOT")
            before = self.tokens[max(first - 2, 0) : first]
            is_whole = [token.type for token in before] == ["NAME", "ASSIGN"]
            is_whole = is_whole and not _GOES_ON.match(self.text, close.end())
            text = einops.statement(found, before[0].text if is_whole else "T", self.named())
            if text is not None and is_whole:
                fix = Fix(f"write `{text}`", (Edit(Span(before[0].start, close.end()), text),))
            elif text is not None:
                help = f"it is a statement of its own: `{text}`"
        self.report(codes.UNKNOWN_CHARACTER, start, end, "the language has no text in quotes", help, fix)
        self.add("ERROR", word, start, after)
        return after

    def named(self) -> set[str]:
        """Names that are no indices: those of the header of this def, of tensors that are written, and of defs."""
        own = self.tokens[self.def_place :]
        header = next((i for i, token in enumerate(own) if token.type == "LBRACE"), len(own))
        written = (one.text for one, after in pairwise(own[header:]) if after.type in ("ASSIGN", "UPDATE"))
        others = (name for pair in _WRITTEN.findall(self.text) for name in pair if name)
        return {token.text for token in own[:header]} | {*written, *others}

    def bits(self, word: str, start: int, end: int) -> int:
        """An operator on bits, or `^`, or what has the same first character: `|=`, `|>`, `|x|`, `x^{2}`. Returns where to go on."""
        found = _ASSIGNS.match(self.text, end) if word in _COMBINING else None
        if found and self.combined(word, start, found.end()):
            return found.end()
        if word == "|" and self.text[end : end + 1] == ">":
            return self.pipe(start, end + 1)
        if (
            word == "|"
            and self.type_of(-1) == "RELATION"
            and self.tokens[-1].text == "<"
            and self.tokens[-1].end == start
        ):
            self.tokens.pop()
            help = "a function stands before its argument, as in `exp(X(i))`"
            self.report(codes.UNKNOWN_CHARACTER, start - 1, end, "there is no operator `<|`", help)
            self.add("ERROR", "<|", start - 1, end)
            return end
        if word == "|" and (after := self.absolute(start, end)) is not None:
            return after
        if word == "^" and (group := _GROUP.match(self.text, end)) is not None:
            return self.raised(group.group(1), start, group.end())
        if word == "~" and re.compile("=(?!=)").match(self.text, end):
            fix = Fix("replace `~=` by `!=`", (Edit(Span(start, end + 1), "!="),))
            self.report(codes.PYTHON_OPERATOR, start, end + 1, "there is no operator `~=`", fix=fix)
            self.add("EQUALITY", "!=", start, end + 1)
            return end + 1
        before = self.tokens[-1].type if self.tokens else ""
        if word == "&" and before in ("SCALAR", "RPAR") and self.in_parameters():
            fix = Fix("leave it out", (Edit(Span(start, end), ""),))
            self.report(codes.UNKNOWN_CHARACTER, start, end, "there are no references", fix=fix)
            return end
        self.add(_SYMBOLS[word], word, start, end)
        return end

    def combined(self, word: str, start: int, end: int) -> bool:
        """`|=!` and `&=!` of truth values, and of integers, whose bits a reducer combines; whether this is such an operator.

        Without `!` it is one where integers are combined over an index.
        """
        number, is_new = self.declared_integer(end), self.text[end - 1] == "!"
        if not is_new and (number is None or not self.combines_over(start, end)):
            return False
        message = f"there is no operator `{self.text[start:end]}`"
        if number is None and word not in "&|":
            return False
        if number is None:
            plain, holds = ("any=!", "one is") if word == "|" else ("all=!", "all are")
            fix = Fix(f"write `{plain}`", (Edit(Span(start, end), plain),))
            help = f"`{plain}` of `bool` says whether {holds} true; a reducer combines bits"
            self.report(codes.UNKNOWN_CHARACTER, start, end, message, help, fix)
            self.add("UPDATE", plain, start, end)
            return True
        bits = 8 if number == "byte" else int(number.lstrip("uint") or 32)
        all_ones = (1 << bits) - 1 if number in ("byte", f"uint{bits}") else -1
        identity = all_ones if word == "&" else 0
        line = f"reduce bits({number} a, {number} b) = a {_COMBINING[word]} b from {identity}"
        first = self.tokens[self.def_place].start if self.def_place >= 0 else None
        edits = (Edit(Span(first or 0, first or 0), f"{line}\n"), Edit(Span(start, end), "bits=!"))
        if self.is_bits_free is None:
            self.is_bits_free = not re.search(r"\bbits\b", self.text)
        is_known = first is not None and self.is_bits_free
        fix = Fix("combine with a reducer", edits) if is_known and (is_new or self.begins_at(identity)) else None
        self.report(codes.UNKNOWN_CHARACTER, start, end, message, f"a reducer combines bits: `{line}`", fix)
        self.add("UPDATE", "max=!", start, end)  # of any type, so that nothing else is told of it
        return True

    def combines_over(self, start: int, end: int) -> bool:
        """Whether the value behind an operator that ends at `end` has an index in brackets that the target before it has not."""
        left = re.split(r"[\n;{}]", self.text[max(0, start - 200) : start])[-1]
        right = re.split(r"[\n;{}]", self.text[end : end + 200])[0]
        return not {*_IN_BRACKETS.findall(right)} <= {*re.findall(r"[A-Za-z_]\w*", left)}

    def begins_at(self, identity: int) -> bool:
        """Whether the statements of the def before this one write nothing but an identity to its target."""
        own = self.tokens[self.def_place :]
        if len(own) > _MOST_IN_DEF:
            return False
        body = own[next((i for i, token in enumerate(own) if token.type == "LBRACE"), 0) :]
        starts = [i for i, token in enumerate(body) if token.type == "NAME" and _is_target(body, i)]
        if not starts:
            return False
        *before, last = starts
        for i in (each for each in before if body[each].text == body[last].text):
            assign = next((k for k in range(i, len(body)) if body[k].type in ("ASSIGN", "UPDATE")), i)
            value = "".join(token.text for token in body[assign + 1 : assign + 2 + (identity < 0)])
            after = body[assign + 2 + (identity < 0)]
            if body[assign].type == "UPDATE" or value != str(identity) or not (after.first or after.type == "NAME"):
                return False
        return True

    def declared_integer(self, start: int) -> str | None:
        """The type of integers that a parameter has which begins the value at `start`; `None` where a truth value is made of it."""
        value = re.match(
            r"[ \t]*([A-Za-z_]\w*)[ \t]*(?:\([^()\n]*\))?[ \t]*(?![ \t]*(?:<(?!<)|>(?!>)|[=!?(]))",
            self.text[start : start + 200],
        )
        kind, _ = self.declared().get(value.group(1) if value else "", ("", 0))
        return kind if re.fullmatch("u?int(?:8|16|32|64)?|byte", kind) else None

    def pipe(self, start: int, end: int) -> int:
        """`A(i) + B(i) |> sqrt |> exp`, whose functions take all that is added before them. Returns where to go on."""
        chain = _PIPED.match(self.text, start)
        if self.type_of(-1) == "DOT" and self.tokens[-1].end == start:
            start = self.tokens.pop().start  # `.|>`
        names = re.findall(r"\w+", chain.group()) if chain else []
        fix, left = None, self.piped_from() if names else None
        help = "a function stands before its argument, as in `exp(X(i))`"
        if chain is not None and left is not None and not _GOES_ON_BEHIND.match(self.text, chain.end()):
            value = self.text[left:start].rstrip()
            for name in names:
                value = f"{name}({value})"
            fix = Fix(f"write `{value}`", (Edit(Span(left, chain.end()), value),)) if len(value) < 200 else None
        if names and left is None:
            help += "; one of a sum is a statement behind it, as in `Y(i) = exp(Y(i))`"
        self.report(codes.UNKNOWN_CHARACTER, start, end, "there is no operator `|>`", help, fix)
        self.add("ERROR", "|>", start, end)
        return end if fix is None or chain is None else chain.end()

    def piped_from(self) -> int | None:
        """Where the value begins that a `|>` behind the last token takes; `None` where other languages differ about it.

        Where a statement may combine elements, as in `C[i] := A[i, k] |> sqrt`, the function may be meant of the sum.
        """
        own = self.tokens[-200:]
        place, depth = len(own) - 1, 0
        while place >= 0 and (depth or own[place].type in _PIPED_TOGETHER):
            depth += (own[place].type in ("RPAR", "RSQB")) - (own[place].type in ("LPAR", "LSQB"))
            place -= 1
        before = own[place].type if 0 <= place < len(own) - 1 else ""
        if before in ("LPAR", "COMMA"):
            return own[place + 1].start
        target = next((k for k in range(place, -1, -1) if own[k].first or own[k].type in ("LBRACE", "RBRACE")), 0)
        known = {token.text for token in own[target:place]} | self.declared().keys()
        read = {
            one.text
            for one, after in pairwise(own[place:])
            if one.type == "NAME" and after.type not in ("LPAR", "LSQB")
        }
        return own[place + 1].start if before == "ASSIGN" and read <= known else None

    def comment(self, word: str, start: int, end: int) -> None:
        self.comments.append(Span(start, end))
        if found := _ALLOW.match(word):
            self.allow += [(code, start) for code in re.findall(r"TC[0-9]{3}", found.group(1))]

    def block(self, word: str, start: int, end: int) -> None:
        inner = word[2:].removesuffix("*/")
        fix = None
        stop = self.text.find("\n", end)
        if "\n" not in inner and not self.text[end : stop if stop >= 0 else len(self.text)].strip():
            fix = Fix("start the comment with `#`", (Edit(Span(start, end), "#" + inner.rstrip()),))
        self.report(
            codes.DOUBLE_SLASH,
            start,
            min(end, start + 2),
            "`/*` does not start a comment",
            "a comment starts with `#` and ends with its line",
            fix,
        )
        self.first = self.first or "\n" in word

    def slashes(self, start: int, end: int) -> int:
        """`//` is meant as floor division between two operands, else as a comment."""
        stop = self.text.find("\n", end)
        rest = self.text[end : stop if stop >= 0 else len(self.text)]
        if self.assigns(end) and end - start == 2:
            self.add("FACTOR", "//", start, end)
            return end
        before = self.tokens[-1].type if self.tokens and not self.first else ""
        operand = (
            before in ENDS_EXPRESSION
            and re.match(r"[ \t]*[\w(.]", rest)
            and not self.is_prose(re.split(r"//|/\*|#", rest)[0])
            and end - start == 2
        )
        if operand:
            fix = self.floor_quotient(start, end)
            help = "`/` of two integers rounds down, that of two floats is rounded down with `floor`"
            self.report(codes.DOUBLE_SLASH, start, end, "`//` is no operator", help, fix)
            self.add("FACTOR", "/", start, end)
            return end
        fix = Fix("start the comment with `#`", (Edit(Span(start, end), "#"),))
        self.report(
            codes.DOUBLE_SLASH,
            start,
            end,
            "`//` does not start a comment",
            "a comment starts with `#`; `/` is division",
            fix,
        )
        return end + len(rest)

    def remark(self, start: int) -> int | None:
        """A comment of MATLAB, Fortran, Haskell or Lua. Returns where to go on; `None` where it is an operator."""
        mark = _MARK.match(self.text, start)
        if mark is None:
            return None
        rest = mark.group(2)
        begins = not self.tokens or self.begins_statement()
        alone = begins and (mark.group(1)[0] == "!" or not self.tokens or self.tokens[-1].type in ("LBRACE", "RBRACE"))
        behind = begins or (bool(self.tokens) and self.tokens[-1].type in ENDS_EXPRESSION)
        if "}" in rest or not (alone or (behind and "=" not in rest and self.is_prose(rest))):
            return None
        place, end = Span(start, mark.end(1)), mark.end()
        fix = Fix("start the comment with `#`", (Edit(place, "#"),))
        message = f"`{mark.group(1)}` does not start a comment"
        self.report(codes.DOUBLE_SLASH, place.start, place.end, message, "a comment starts with `#`", fix)
        return end

    def is_prose(self, line: str) -> bool:
        """Whether the rest of a line is a comment: words in a row, or one word that the program does not have."""
        if alone := _WORD_ALONE.fullmatch(line):
            return alone.group(1) not in self.words()
        return any(not {*pair.groups()} & _BETWEEN for pair in _PROSE.finditer(line))

    def words(self) -> frozenset[str]:
        """The words outside comments."""
        if self.words_outside is None:
            self.words_outside = frozenset(re.findall(r"\w+", _COMMENTS.sub("", self.text), re.ASCII))
        return self.words_outside

    def python(self, word: str, start: int, end: int) -> None:
        if word == "**" and self.assigns(end):
            self.add("FACTOR", word, start, end)
            return
        if word == "**":
            self.raised(None, start, end)
            return
        if word == "=>" and self.in_header():
            fix = Fix("replace `=>` by `->`", (Edit(Span(start, end), "->"),))
            self.report(codes.PYTHON_OPERATOR, start, end, "results stand behind `->`", fix=fix)
            self.add("ARROW", "->", start, end)
            return
        right = word[::-1] if word == "=<" else ">="
        fix = Fix(f"replace `{word}` by `{right}`", (Edit(Span(start, end), right),))
        self.report(codes.PYTHON_OPERATOR, start, end, f"there is no operator `{word}`", fix=fix)
        self.add("RELATION", right, start, end)

    def assigns(self, end: int) -> bool:
        """Whether an operator that ends here is the first part of one that assigns: `//=`, `**=`."""
        before = self.tokens[-1].type if self.tokens else ""
        return before in ENDS_EXPRESSION and re.match(r"=(?!=)", self.text[end : end + 2]) is not None

    def in_header(self) -> bool:
        """Whether the last thing was the parameters of a def."""
        if not self.tokens or self.tokens[-1].type != "RPAR":
            return False
        known = (token.type for token in reversed(self.tokens[-200:]) if token.type in ("DEF", "LBRACE"))
        return next(known, "") == "DEF"

    def in_parameters(self) -> bool:
        """Whether the last thing belongs to the parameters of a def."""
        known = (token.type for token in reversed(self.tokens[-200:]) if token.type in ("DEF", "LBRACE", "ARROW"))
        return next(known, "") == "DEF"

    def declared(self) -> dict[str, tuple[str, int]]:
        """Types and ranks of the parameters of the def that was begun last."""
        if self.parameters_of != self.def_place:
            self.parameters, self.parameters_of = parameters(self.tokens[self.def_place :]), self.def_place
            self.has_floats = any(kind not in _INTEGERS for kind, _ in self.parameters.values())
        return self.parameters

    def is_integer(self, text: str) -> bool:
        """Whether an operand is probably an integer: no float is in it, and no let or temporary of a def with float parameters."""
        known, has_floats = self.declared(), self.has_floats
        words = set(re.findall(r"[A-Za-z_]\w*", text, re.ASCII)) - KEYWORDS.keys()
        read = set(re.findall(r"([A-Za-z_]\w*)[ \t]*\(", text, re.ASCII)) & words
        made = {word for word in words - known.keys() if word in read or word in self.assigned()}
        floats = self.has_float(words & known.keys()) or _FRACTION.fullmatch(text.strip())
        return not floats and not (has_floats and made) and not re.search(r"\d\.|\.\d", text)

    def has_float(self, parameters: set[str]) -> bool:
        """Whether one of some parameters is of floats."""
        return any(self.declared()[word][0] not in _INTEGERS for word in parameters)

    def assigned(self) -> frozenset[str]:
        """The names before a `=` without brackets: lets and numbers."""
        if self.names_assigned is None:
            self.names_assigned = frozenset(re.findall(r"([A-Za-z_]\w*)[ \t]*=(?!=)", self.text, re.ASCII))
        return self.names_assigned

    def floor_quotient(self, start: int, end: int) -> Fix | None:
        """`a / b` for `a // b` of integers, and `floor(a / b)` for floats where the left operand is all that is divided."""
        last, left = _operand_after(self.text, end), self.operand()
        if last is None or left is None:
            return None
        if self.is_integer(self.text[left:last]):
            return Fix("replace `//` by `/`", (Edit(Span(start, end), "/"),))
        place = next(i for i in range(len(self.tokens) - 1, -1, -1) if self.tokens[i].start == left)
        if place and self.tokens[place - 1].type == "FACTOR":
            return None
        edits = Edit(Span(left, left), "floor("), Edit(Span(start, end), "/"), Edit(Span(last, last), ")")
        return Fix("round down with `floor`", edits)

    def macro(self, start: int, end: int) -> int | None:
        """`@tullio` before a statement and `@jit` before a def. Returns where to go on; `None` if this is something else."""
        name = re.compile(r"[A-Za-z_][\w.!]*").match(self.text, end)
        if name is None or not (self.begins_statement() or not self.tokens):
            return None
        last = name.end()
        if (arguments := re.compile(r"\([^()\n]*\)(?=[ \t]*\n)").match(self.text, last)) is not None:
            last = arguments.end()  # of a decorator
        fix = Fix("leave it out", (Edit(Span(start, last), ""),))
        message, help = MACRO, "a statement says by itself what it computes"
        if name.group().rpartition(".")[2] == "stencil":
            # without it, what it says of the positions in its def would be lost
            message, help, fix = STENCIL, "as in `b(i, j) = a(i, j - 1) + a(i, j + 1)`", None
        self.report(codes.UNKNOWN_CHARACTER, start, name.end(), message, help, fix)
        self.first = True
        return last

    def latex(self, start: int, end: int) -> int | None:
        r"""`\\cdot` and `\\exp`. Returns where to go on; `None` if this is something else."""
        name = re.compile(r"[A-Za-z]+").match(self.text, end)
        if name is None:
            return None
        word, last = name.group(), name.end()
        if word == "cdot" and self.is_between_arrays(last):
            return self.dotted("\\cdot", start, last)
        plain = _LATEX.get(word) or (word if word in _LATEX_FUNCTIONS else None) or _NAMES_OF_GREEK.get(word)
        if plain is None:
            return self.latex_of_parts(word, start, last)
        is_unknown = plain in _NAMES_OF_GREEK.values() and plain not in self.declared()
        fix = None if is_unknown else Fix(f"write `{plain}`", (Edit(Span(start, last), plain),))
        help = f"write `{plain}`" + f", and make it a parameter, as in `float {plain}`" * is_unknown
        self.report(codes.UNKNOWN_CHARACTER, start, last, f"`\\{word}` is not part of the language", help, fix)
        self.add("ERROR" if is_unknown else _SYMBOLS.get(plain) or KEYWORDS.get(plain, "NAME"), plain, start, last)
        return last

    def latex_of_parts(self, word: str, start: int, last: int) -> int:
        r"""`\\sqrt{x}`, `\\frac{a}{b}`, `\\sum_j`, and what has no form here. Returns where to go on."""
        end, fix = last, None
        help = "a formula is written with operators and functions, as in `sqrt(x)`, `a / b` and `+=!`"
        first = _GROUP.match(self.text, last)
        second = _GROUP.match(self.text, first.end()) if first else None
        if word in _LATEX_SPACES:
            fix = Fix("leave it out", (Edit(Span(start, last), ""),))
            self.report(codes.UNKNOWN_CHARACTER, start, last, f"`\\{word}` is not part of the language", fix=fix)
            return last
        if word == "sqrt":
            return self.root(start, last, f"\\{word}")
        if word in ("frac", "dfrac", "tfrac") and first and second:
            end, help = second.end(), "a quotient is written with `/`"
            text = f"(({first.group(1)}) / ({second.group(1)}))"
            fix = Fix("write a quotient", (Edit(Span(start, end), text),))
        elif word in _LATEX_SUMS:
            decoration = _DECORATION.match(self.text, last)
            end, help = decoration.end() if decoration else last, library_names.REDUCING[_LATEX_SUMS[word]]
        self.report(codes.UNKNOWN_CHARACTER, start, last, f"`\\{word}` is not part of the language", help, fix)
        self.add("ERROR", self.text[start:end], start, end)
        return end

    def root(self, start: int, last: int, shown: str) -> int:
        """A sign that stands for the root of what follows. Returns where to go on."""
        group = _GROUP.match(self.text, last)
        end = group.end() if group else _operand_after(self.text, last)
        inside = group.group(1) if group else self.text[last : end or last].strip()
        if inside.startswith("(") and inside.endswith(")"):
            inside = inside[1:-1]
        fix = Fix("write `sqrt(...)`", (Edit(Span(start, end), f"sqrt({inside})"),)) if end and inside else None
        message = f"`{shown}` is not part of the language"
        self.report(codes.UNKNOWN_CHARACTER, start, last, message, "a root is `sqrt(x)`", fix)
        self.add("ERROR", self.text[start : end or last], start, end or last)
        return end or last

    def absolute(self, start: int, end: int) -> int | None:
        """`|X(i)|`. Returns where to go on; `None` if this is something else."""
        bars = _bars(self.text, start) if self.type_of(-1) not in ENDS_EXPRESSION else []
        if not bars:
            return None
        last = bars[-1][0] + 1
        fix = Fix("write `abs(...)`", tuple(Edit(Span(at, at + 1), "abs(" if opens else ")") for at, opens in bars))
        help = "an absolute value is `abs(x)`"
        message = "bars are no absolute value: `|` combines bits"
        if len(bars) == 4 and self.text[start : start + 2] == self.text[last - 2 : last] == "||":
            message, help, fix = "bars are no norm: `|` combines bits", library_names.INSTEAD["norm"].help, None
        self.report(codes.UNKNOWN_CHARACTER, start, end, message, help, fix)
        self.add("ERROR", self.text[start:last], start, last)
        return last

    def raised(self, exponent: str | None, start: int, end: int) -> int:
        """A power in another spelling: `x**2`, `x^{2}` and `x²`, the last two with their exponent. Returns where to go on."""
        written = self.text[start : start + 2] if exponent is None else self.text[start:end]
        message, code = f"there is no operator `{written}`", codes.PYTHON_OPERATOR
        if exponent is not None:
            message, code = f"`{written}` is not part of the language", codes.UNKNOWN_CHARACTER
        sign = _SIGN.match(self.text, end)
        start_of = sign.end() if sign and exponent is None else end
        last = _operand_after(self.text, start_of) or start_of
        text = exponent or self.text[start_of:last]
        is_computed = exponent is None and re.match(r"[ \t]*[A-Za-z_(]", text) is not None and self.is_integer(text)
        if is_computed and (base := self.integer_base(start)) is not None:
            self.report(code, start, end, message, POWER_HELP, self.rounded_power(base, start, end, last))
            self.add("ERROR", written, start, end)
            return end
        if (
            text
            and self.is_integer(text)
            and (exponent is None or re.fullmatch(r"-?\w+", exponent))
            and not self.is_euler()
        ):
            plain = "^" + (exponent or "")
            fix = Fix(f"write `{plain}`", (Edit(Span(start, end), plain),))
            self.report(code, start, end, message, POWER_HELP, fix)
            self.add("POWER", "^", start, end)
            if exponent is not None:
                number = exponent.removeprefix("-")
                if number != exponent:
                    self.add("MINUS", "-", end, end)
                self.add(classify_number(number)[0] if number[0].isdigit() else "NAME", number, end, end)
            return end
        self.report(code, start, end, message, POWER_HELP, self.power(start, end, exponent))
        self.add("ERROR", written, start, end)
        return end

    def integer_base(self, end: int) -> str | None:
        """The operand before a power as `pow` takes it, if it may be an integer, whose power `^` has a literal exponent."""
        left = self.operand()
        base = "" if left is None else self.text[left:end].rstrip()
        words = set(re.findall(r"[A-Za-z_]\w*", base, re.ASCII)) & self.declared().keys()
        if not base or self.is_euler() or re.search(r"\d\.|\.\d", base) or self.has_float(words):
            return None
        return f"double({base})" if self.is_integer(base) else base

    def rounded_power(self, base: str, start: int, end: int, last: int) -> Fix | None:
        """`pow(double(a(i)), b(i))` for `a(i) ** b(i)` of integers; `None` where more belongs to the exponent."""
        left = self.operand()
        if left is None or re.compile(r"[ \t]*(?:\^|\*\*|[(\[.])").match(self.text, last):
            return None
        plain = self.text[left:start].rstrip()
        base = base.replace(f"(({plain[1:-1]}))", f"({plain[1:-1]})") if plain.startswith("(") else base
        edits = (
            Edit(Span(left, left + len(plain)), f"pow({base}"),
            Edit(Span(left + len(plain), last), f", {self.text[end:last].strip()})"),
        )
        return Fix("use `pow`", edits)

    def is_euler(self) -> bool:
        """Whether the base of a power is `e`."""
        return bool(self.tokens) and self.tokens[-1].text == "e" and self.operand() == self.tokens[-1].start

    def power(self, start: int, end: int, exponent: str | None) -> Fix | None:
        """`pow(a, b)` where the right operand is a single word, and the left one is, an element or something in brackets."""
        right = re.match(r"[ \t]*([\w.]+)(?!\w*[ \t]*[(.^]|[ \t]*\*\*)", self.text[end : end + 80])
        left, last = self.operand(), end
        if exponent is not None and left is not None and self.is_euler():
            return Fix("use `exp`", (Edit(Span(left, last), f"exp({exponent})"),))
        if (
            exponent is None
            and (fraction := re.compile(r"[ \t]*" + _FRACTION.pattern).match(self.text, end)) is not None
        ):
            exponent, last = f"{fraction.group(1)}.0/{fraction.group(2)}", fraction.end()
        elif exponent is None and right is not None:
            exponent, last = right.group(1), end + right.end()
        if exponent is None or left is None:
            return None
        base = self.text[left:start].rstrip()
        edits = Edit(Span(left, left), "pow("), Edit(Span(left + len(base), last), f", {exponent})")
        return Fix("use `pow`", edits)

    def product(self, end: int) -> Fix | None:
        """`C(i, j) +=! A(i, k) * B(k, j)` for `C = A @ B`, and the like for vectors and batches."""
        right = re.match(r"[ \t]*([A-Za-z_]\w*)(?=[ \t]*(?:[}\n;]|\Z))", self.text[end : end + 80])
        assign = next((i for i in range(-2, -5, -1) if self.type_of(i) == "ASSIGN"), None)
        if assign != -2 or self.type_of(-1) != "NAME" or right is None:
            return None
        target = self.tokens[:-2][-12:]
        names = next(
            (i for i in range(len(target) - 1, -1, -1) if target[i].type == "NAME" and _is_left(target[i:])), None
        )
        if names is None:
            return None
        operands, known = [self.tokens[-1].text, right.group(1)], self.declared()
        one, other = (known.get(name, ("", 2))[1] for name in operands)
        batch = "bcdefgh"[: max(one, other, 2) - 2]
        if (one > 2 or other > 2) and one != other:
            return None
        parts = [batch + ("ik" if one > 1 else "k"), batch + ("kj" if other > 1 else "k")]
        result = batch + "i" * (one > 1) + "j" * (other > 1)
        written = [token.text for token in target[names + 1 :] if token.type == "NAME"]
        if written and len(written) != len(result):
            return None
        text = library_names.einsum(f"{','.join(parts)}->{result}", operands, target[names].text)
        return Fix(f"write `{text}`", (Edit(Span(target[names].start, end + right.end()), text),)) if text else None

    def is_between_arrays(self, end: int) -> bool:
        """Whether an operator that ends there has a whole array on both sides."""
        right = _ARRAY_AFTER.match(self.text, end)
        names = [self.tokens[-1].text, right.group(1)] if right and self.type_of(-1) == "NAME" else []
        return bool(names) and all(self.declared().get(name, ("", 0))[1] for name in names)

    def dotted(self, word: str, start: int, end: int) -> int:
        """`a ⋅ b` of whole arrays, which is their product of vectors or matrices. Returns where to go on."""
        message, help = f"`{word}` is not part of the language", "a product of vectors is `y +=! a(i) * b(i)`"
        self.report(codes.UNKNOWN_CHARACTER, start, end, message, help, self.product(end))
        self.add("ERROR", word, start, end)
        return end

    def type_of(self, place: int) -> str:
        """The type of a token, counted from the end."""
        return self.tokens[place].type if len(self.tokens) >= -place else ""

    def operand(self) -> int | None:
        """Where the operand that ends with the last token starts, with the methods that are called on it."""
        opened, last = 0, len(self.tokens) - 1
        for place in range(last, max(last - 200, -1), -1):
            token = self.tokens[place]
            opened += (token.type in ("RPAR", "RSQB")) - (token.type in ("LPAR", "LSQB"))
            before = self.tokens[place - 1].type if place else ""
            named = token.type in ("LPAR", "LSQB") and before in ("NAME", "MINMAX", "SCALAR", "RSQB")
            is_method = token.type == "DOT" or (before == "DOT" and token.type in ("NAME", "MINMAX", "SCALAR"))
            if opened <= 0 and not named and not is_method:
                return token.start if token.type in ("NAME", "MINMAX", "SCALAR", "LPAR", "INTEGER", "NUMBER") else None
        return None

    def unknown(self, word: str, start: int, end: int) -> int:
        """A character that no class names. Returns the offset to go on from."""
        char = word[0]
        if not char.isascii() and (found := words_of(self.text, _RESERVED).at(start)):
            return self.letters(found)
        if char in "⋅·" and self.is_between_arrays(start + 1):
            return self.dotted(char, start, start + 1)
        if char in _TYPOGRAPHIC:
            plain, end = _TYPOGRAPHIC[char], start + 1
            fix = Fix(f"replace it by `{plain}`", (Edit(Span(start, end), plain),))
            self.report(
                codes.UNKNOWN_CHARACTER, start, end, f"`{char}` is not part of the language", f"write `{plain}`", fix
            )
            self.add(_SYMBOLS.get(plain) or KEYWORDS.get(plain, "NUMBER"), plain, start, end)
            return end
        if power := _POWER.match(self.text, start):
            return self.raised(power.group().translate(POWERS), start, power.end())
        if char == "√":
            return self.root(start, start + 1, char)
        if char == "\\" and len(word) == 1 and (found := self.latex(start, end)) is not None:
            return found
        if char == "@" and len(word) == 1 and (found := self.macro(start, end)) is not None:
            return found
        if word.isspace() or char in "\ufeff\u200b":
            fix = Fix("replace it by a blank", (Edit(Span(start, end), " "),))
            self.report(codes.UNKNOWN_CHARACTER, start, end, f"U+{ord(char):04X} is no blank of the language", fix=fix)
            return end
        shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
        fix = self.product(end) if word == "@" else None
        if (
            fix is not None or (self.def_place, word) not in self.told
        ):  # once in a def where nothing can be written for it
            self.report(codes.UNKNOWN_CHARACTER, start, end, f"{shown} is not part of the language", _advice(char), fix)
            self.told.add((self.def_place, word))
        self.add("ERROR", word, start, end)
        return end

    def letters(self, word: Word) -> int:
        """A name with letters that names do not have. Returns where to go on."""
        start, end = word.span.start, word.span.end
        while self.tokens and self.tokens[-1].start >= start:
            self.tokens.pop()  # the letters before, which are part of it
        is_number = word.plain == PI
        if word.text not in self.renamed:
            message, help = f"`{word.text}` is not part of the language", f"the number is written out: `{PI}`"
            if not is_number:
                help = f"names are made of the letters A-Z and a-z, digits and `_`: write `{word.plain}`"
                help += f", and make it a parameter, as in `float {word.plain}`" * (not word.known)
            if word.alike:
                help = f"it only looks like `{word.plain}`, with letters of another alphabet: write `{word.plain}`"
            fix = words_of(self.text, _RESERVED).fix(word) if word.known or is_number else None
            self.report(codes.UNKNOWN_CHARACTER, start, end, message, help, fix)
            self.renamed.add(word.text)
        if word.factor:
            self.add("FACTOR", "*", start, start)
        self.add(
            "NUMBER" if is_number else KEYWORDS.get(word.plain, "NAME") if word.known else "ERROR",
            word.plain,
            start,
            end,
        )
        return end

    def number(self, word: str, start: int, end: int) -> None:
        kind, problem = classify_number(word)
        if problem is not None:
            message, plain = problem
            fix = Fix(f"write `{plain}`", (Edit(Span(start, end), plain),)) if plain else None
            self.report(codes.BAD_NUMBER, start, end, message, fix=fix)
        self.add(kind, word, start, end)


_WORD = re.compile(r"[ \t]*([\w.]*)", re.ASCII)
_ARRAY_AFTER = re.compile(r"[ \t]*([A-Za-z_]\w*)(?!\w|[ \t]*[(\[.])", re.ASCII)
_SIGN = re.compile(r"[ \t]*-")
_PIPED = re.compile(r"(?:\|>[ \t]*[A-Za-z_]\w*(?![\w(.])\s*)*(?<!\s)")
_GOES_ON_BEHIND = re.compile(r"\s*[-+*/^%<>=!&|?:.(\[]")
_PIPED_TOGETHER = frozenset(
    {"NAME", "DIGIT_NAME", "MINMAX", "SCALAR", "INTEGER", "NUMBER", "RPAR", "RSQB", "DOT", "DIMENSION"}
    | {"MINUS", "FACTOR", "SIGN", "POWER"}
)
"""What binds its operands closer than `|>` does, and the operands."""


def _is_target(tokens: list[Token], i: int) -> bool:
    """Whether a name is what a statement writes, or the last one, behind whose brackets the tokens end."""
    after, depth = i + 1, 0
    while after < len(tokens) and (depth or tokens[after].type in ("LPAR", "LSQB")):
        depth += (tokens[after].type in ("LPAR", "LSQB")) - (tokens[after].type in ("RPAR", "RSQB"))
        after += 1
    begins = not i or tokens[i - 1].type in ("LBRACE", "RBRACE") or tokens[i - 1].type in ENDS_EXPRESSION
    return begins and not depth and (after == len(tokens) or tokens[after].type in ("ASSIGN", "UPDATE"))


_COMBINING = {"|": "|", "&": "&", "^": "^^", "^^": "^^"}
"""Operators of C and of this language on bits, and how a reducer writes them."""
_MOST_IN_DEF = 400  # tokens in which what a statement adds to is looked for
_ASSIGNS = re.compile(r"=!|=(?!=)")
_IN_BRACKETS = re.compile(r"(?<=[(\[,])\s*([A-Za-z_]\w*)\s*(?=[)\],])")


def _bars(text: str, start: int) -> list[tuple[int, bool]]:
    """The bars of `|x - |y||` from the one at `start` on, and whether each opens; none where they are no absolute value.

    A bar behind an operand closes; one behind an operator or an opening bracket opens.
    """
    found: list[tuple[int, bool]] = []
    opened: list[int] = []  # the depth of brackets at each open bar
    depth, before = 0, ""
    for i in range(start, min(start + _MOST_IN_BARS, len(text))):
        char = text[i]
        if char in "{}\n;":
            return []
        depth += (char in "([") - (char in ")]")
        if char == "|" and (before.isalnum() or before in tuple("_.)]")):
            if opened.pop() != depth:
                return []
            found.append((i, False))
            if not opened:
                return found if text[i + 1 : i + 2] != "|" and not _COMBINES.match(text, i) else []
            before = ")"
        elif char == "|":
            opened.append(depth)
            found.append((i, True))
            before = "("
        elif not char.isspace():
            before = char
    return []


_MOST_IN_BARS = 200
_COMBINES = re.compile(r"(?<=\s)\|\s*[\w(][^|{}\n;]{,200}\|", re.ASCII)
"""The first bar of `a | 3|`, which may combine bits."""


def _operand_after(text: str, start: int) -> int | None:
    """Where the operand that begins at `start`, a word with or without brackets, ends; `None` if that is not near."""
    word = _WORD.match(text, start)
    end = word.end() if word else start
    depth = 0
    for i in range(end, min(end + 120, len(text))):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth <= 0:
            return i + 1 if text[i] == ")" and i > end else end if word and word.group(1) else None
    return end if word and word.group(1) and depth == 0 else None


FLOATS = frozenset({"half", "float", "double", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
"""Names of the types of floats, and of complex numbers, which are made of them."""
_INTEGERS = SCALAR_TYPES - FLOATS


def parameters(tokens: list[Token]) -> dict[str, tuple[str, int]]:
    """Types and ranks of the parameters of a def that begins with these tokens."""
    found: dict[str, tuple[str, int]] = {}
    kind, rank, depth = "", 0, 0
    for token in tokens:
        if token.type in ("LBRACE", "ARROW"):
            break
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if token.type == "SCALAR":
            kind, rank = token.text, 0
        elif kind and depth == 2 and token.type in ("LPAR", "COMMA"):
            rank += 1
        elif kind and depth == 1 and token.type == "NAME":
            found[token.text] = kind, rank
            kind = ""
    return found


def _is_left(tokens: list[Token]) -> bool:
    """Whether tokens are `C` or `C(i, j)`."""
    kinds = "".join({"NAME": "n", "LPAR": "(", "RPAR": ")", "COMMA": ","}.get(token.type, "?") for token in tokens)
    return re.fullmatch(r"n(\(n(,n)*\))?", kinds) is not None


def _open_bracket(words: list[str]) -> int:
    """The place of the last `(` that nothing closes; -1 if there is none."""
    depth = 0
    for place in range(len(words) - 1, -1, -1):
        depth += (words[place] == ")") - (words[place] == "(")
        if depth < 0:
            return place
    return -1


_FRACTION = re.compile(r"\([ \t]*(\d+)[ \t]*/[ \t]*(\d+)[ \t]*\)")
"""An exponent that would be rounded, were it an integer."""
POWER_HELP = "a power is `x^n` for an integer `n`, else `pow(x, y)`"

ENDS_EXPRESSION = frozenset({"NAME", "DIGIT_NAME", "INTEGER", "NUMBER", "RPAR", "RSQB", "DIMENSION"})
STARTS_EXPRESSION = frozenset({"NAME", "DIGIT_NAME", "INTEGER", "NUMBER", "LPAR", "SCALAR", "MINMAX"})


def _advice(char: str) -> str:
    if char == "@":
        return "a product of matrices is `C(i, j) +=! A(i, k) * B(k, j)`"
    if char in "Σ∑∏":
        return library_names.REDUCING["prod" if char == "∏" else "sum"]
    if char.isalpha():
        return "names are made of the letters A-Z and a-z, digits and `_`"
    return "delete it, or start a comment with `#`"


def classify_number(word: str) -> tuple[str, tuple[str, str | None] | None]:
    """The terminal of a word that starts with a digit or `.`; and what is wrong with it, with the right spelling if certain."""
    if _INTEGER.fullmatch(word):
        return _check_integer(word)
    if _FLOAT.fullmatch(word) or _HEX_FLOAT.fullmatch(word):
        return "NUMBER", None
    if re.fullmatch(r"[0-9.]+[dD][0-9]+", word):
        return "ERROR", ("an exponent is written with `e`", re.sub("[dD]", "e", word))
    if not re.fullmatch(r"\w+", word, re.ASCII):
        return "ERROR", (f"`{_short(word)}` is no number", None)
    if re.fullmatch(r"[0-9]+(?:_+[0-9]+)+", word):
        return "ERROR", ("digits are not grouped with `_`", word.replace("_", "").lstrip("0") or "0")
    if re.fullmatch(r"[0-9]+[uUlL]+", word):
        return "ERROR", (f"`{_short(word)}` has an unknown suffix: `u`, `l`, `ll`, `ul`, `ull` are known", None)
    return "DIGIT_NAME", None


def _check_integer(word: str) -> tuple[str, tuple[str, str | None] | None]:
    digits = word.rstrip("uUlL")
    if digits.isdigit() and len(digits) > 1 and digits[0] == "0":
        plain = digits.lstrip("0") or "0"
        return "ERROR", ("an integer has no leading zero", plain + word[len(digits) :])
    if len(digits) > _MOST_DIGITS or int(digits, 0) >= 1 << 64:
        return "ERROR", (f"`{_short(word)}` is larger than every integer type", None)
    return "INTEGER", None


def _short(word: str) -> str:
    return word if len(word) <= 40 else word[:37] + "..."
