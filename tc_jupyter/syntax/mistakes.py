"""What to say about a piece of a cell that the grammar refuses.

Worked example: in `A(i) = X(i) Y(i)` the grammar refuses `Y`; the message says that an operator is missing between `X(i)` and `Y`.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, Span, codes, nearest

from .elsewhere import ARRAY_TYPES, FUNCTION_WORDS, INSTEAD, MODULES, OPERATORS, REDUCING, TYPES, reducing
from .foreign import attribute, module_name, operand_end, prefix_cast, shift, where_range
from .tokens import ENDS_EXPRESSION, SCALAR_TYPES, STARTS_EXPRESSION, Token

_RESERVED = frozenset({"WHERE", "IN", "EXISTS", "DEF", "SCALAR", "MINMAX"})
_LITERAL_WORDS = frozenset({"true", "false", "inf", "nan"})
_EXPECTED = {
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "QUESTION": "`?`",
    "IN": "`in`",
    "WHERE": "`where`",
    "ASSIGN": "`=`",
    "UPDATE": "`+=!`",
    "LSQB": "`[`",
    "SCALAR": "a type",
    "NAME": "a name",
    "INTEGER": "a number",
    "END": "the end",
}
_PYTHON_WORDS = {
    "if": "a choice is written `condition ? value : other`",
    "else": "a choice is written `condition ? value : other`",
    "for": "there are no loops: an index runs over everything it can index",
    "while": "there are no loops: an index runs over everything it can index",
    "return": "results are named after `->`",
    "lambda": "functions are defined with `def`",
    "is": "equality is `==`",
}


def refused(piece: list[Token], position: int, accepted: AbstractSet[str], what: str) -> Diagnostic | None:
    """The message about token `position` of `piece` (its length: the end came too early); `None` if one was given already.

    Args:
        accepted: terminals that may stand there, `END` for the end of the piece.
        what: what the piece is, for the text: `statement`, `parameter`, `result`.
    """
    if any(token.type == "ERROR" for token in piece):
        return None
    opened = _unclosed(piece[:position])
    if what == "statement" and (found := where_range(piece, position)):
        return found
    if position >= len(piece):
        return _too_short(piece, opened, accepted, what)
    token = piece[position]
    before = piece[position - 1] if position else None
    if what == "statement" and position == 1 and piece[0].text in _PYTHON_WORDS:
        token = piece[0]  # taken for a name, as `for` may be one
    if (
        token.type == "WHERE"
        and what == "statement"
        and position + 1 < len(piece)
        and piece[position + 1].type == "LPAR"
    ):
        help = "a choice is written `condition ? value : other`"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "`where` is no function", help=help)
    if (found := _word(token, accepted)) or (found := _symbol(piece, position, opened, what)):
        return found
    ends_inside = token.type in ("ASSIGN", "UPDATE", "WHERE") or (token.first and token.type == "NAME")
    if "RPAR" in accepted and opened is not None and ends_inside:
        return _unclosed_bracket(opened, token.span)
    follows = piece[position + 1].type if position + 1 < len(piece) else ""
    if before is not None and "COMMA" in accepted and token.type == "NAME" and follows == "IN":
        fix = Fix("insert `,`", (Edit(Span(before.end, before.end), ","),))
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "`,` is missing between two ranges", "before this", fix=fix)
    if what == "statement" and before is not None and _adjacent(before, token):
        return _missing_operator(piece, position)
    if what == "parameter" and token.text in ("+", "-", "*", "/") and opened is not None:
        help = "a size is a name or a number; the ranges of `X(i + 1)` and the like are inferred"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "a size is no expression", help=help)
    is_pointer = what == "parameter" and token.text == "*"
    help = "a tensor is declared with its sizes, as in `float(N) X`" if is_pointer else expectation(accepted, what)
    return Diagnostic(codes.SYNTAX_ERROR, token.span, f"unexpected `{shorten(token.text)}`", "here", help=help)


def _too_short(piece: list[Token], opened: Token | None, accepted: AbstractSet[str], what: str) -> Diagnostic:
    last = piece[-1]
    after = Span(last.end, last.end)
    if opened is not None and "RPAR" in accepted:
        return _unclosed_bracket(opened, after)
    if what == "statement" and "UPDATE" in accepted:
        help = "a statement is `T(i, j) = expression`"
        return Diagnostic(
            codes.SYNTAX_ERROR, Span(piece[0].start, last.end), "this is no statement: it assigns nothing", help=help
        )
    message = f"the {what} ends too early: something is missing after `{shorten(last.text)}`"
    return Diagnostic(codes.SYNTAX_ERROR, last.span, message, help=expectation(accepted))


def _unclosed_bracket(opened: Token, place: Span) -> Diagnostic:
    return Diagnostic(codes.SYNTAX_ERROR, place, "`)` is missing", "before this", (Label(opened.span, "opened here"),))


def _unclosed(tokens: list[Token]) -> Token | None:
    stack: list[Token] = []
    for token in tokens:
        if token.type == "LPAR":
            stack.append(token)
        elif token.type == "RPAR" and stack:
            stack.pop()
    return stack[-1] if stack else None


def _word(token: Token, accepted: AbstractSet[str]) -> Diagnostic | None:
    """Mistakes that a single word shows."""
    reserved = token.type in _RESERVED or token.text in _LITERAL_WORDS or token.text in ("min=", "max=")
    if reserved and "NAME" in accepted and token.type != "DEF":
        name = token.text.rstrip("=")
        fix = Fix(f"rename it to `{name}_`", (Edit(Span(token.start, token.start + len(name)), name + "_"),))
        help = "every use has to be renamed"
        return Diagnostic(
            codes.RESERVED_WORD,
            token.span,
            f"`{name}` is a word of the language and cannot be a name",
            help=help,
            fix=fix,
        )
    if token.text in _PYTHON_WORDS:
        return Diagnostic(codes.SYNTAX_ERROR, token.span, f"unexpected `{token.text}`", help=_PYTHON_WORDS[token.text])
    if "SCALAR" in accepted and token.type == "NAME":
        return _type_word(token)
    if token.type == "DIGIT_NAME" and "NAME" in accepted:
        return Diagnostic(
            codes.DIGIT_NAME, token.span, f"`{shorten(token.text)}` starts with a digit and cannot name this"
        )
    return None


def _type_word(token: Token) -> Diagnostic:
    if token.text in ("complex64", "complex128"):
        help = "use two tensors, one for the real and one for the imaginary parts"
        return Diagnostic(
            codes.UNSUPPORTED, token.span, f"the type `{token.text}` is not part of this version", help=help
        )
    close = TYPES.get(token.text) or nearest(token.text, sorted(SCALAR_TYPES))
    fix = Fix(f"replace it by `{close}`", (Edit(token.span, close),)) if close else None
    help = "a parameter is a type and a name, as in `float(M, N) A`"
    if token.text in ARRAY_TYPES:
        help = "the type of a tensor is that of its elements, with its sizes, as in `float(M, N) A`"
    return Diagnostic(codes.SYNTAX_ERROR, token.span, f"`{shorten(token.text)}` is no type", help=help, fix=fix)


def _symbol(piece: list[Token], position: int, opened: Token | None, what: str) -> Diagnostic | None:
    """Mistakes that an operator or a bracket shows."""
    token = piece[position]
    before = piece[position - 1] if position else None
    if token.type == "RPAR" and opened is None:
        fix = Fix("delete `)`", (Edit(token.span, ""),))
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "`)` closes nothing", fix=fix)
    if what == "statement" and token.type == "LSQB" and before is not None and before.type == "NAME":
        return _square(piece, position)
    after = piece[position + 1] if position + 1 < len(piece) else None
    if token.type in ("MINUS", "FACTOR") and after is not None and after.type == "ASSIGN" and after.start == token.end:
        help = (
            "accumulate a negated value with `+=`" if token.type == "MINUS" else "`=`, `+=`, `*=`, `min=`, `max=` exist"
        )
        return Diagnostic(
            codes.SYNTAX_ERROR, Span(token.start, after.end), f"there is no operator `{token.text}=`", help=help
        )
    is_second = token.type == "ASSIGN" and before is not None and opened is None and before.type in ENDS_EXPRESSION
    if is_second and what == "statement":
        fix = Fix("compare with `==`", (Edit(token.span, "=="),))
        help = "a statement has one assignment; a comparison is `==`"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "a second `=` in one statement", help=help, fix=fix)
    assigned = any(each.type in ("ASSIGN", "UPDATE") for each in piece[:position])
    if token.type == "SIGN" and not assigned and after is not None and after.text == "!=" and after.start == token.end:
        fix = Fix(f"write `{token.text}=!`", (Edit(Span(token.start, after.end), f"{token.text}=!"),))
        return Diagnostic(
            codes.SYNTAX_ERROR, Span(token.start, after.end), f"there is no operator `{token.text}!=`", fix=fix
        )
    if token.type == "DOT" and before is not None and after is not None and before.text in MODULES:
        return module_name(before, token, after)
    if token.type == "DOT":
        return attribute(piece, position)
    if (
        token.type == "RPAR"
        and position > 1
        and before is not None
        and before.type == "SCALAR"
        and piece[position - 2].type == "LPAR"
    ):
        return prefix_cast(piece, position)
    if token.type == "RELATION" and before is not None and before.text == token.text and before.end == token.start:
        return shift(piece, position)
    return None


def _square(piece: list[Token], position: int) -> Diagnostic:
    """`A[i, j]` or `A[i][j]` instead of `A(i, j)`; the fix mends all of them."""
    mended: dict[int, str] = {}  # what to write in the place of a bracket
    opened: list[tuple[int, bool]] = []  # places of `[`, and whether one stands after a tensor
    for place, token in enumerate(piece):
        if token.type == "LSQB":
            opened.append((place, place > 0 and (piece[place - 1].type == "NAME" or place - 1 in mended)))
        elif token.type == "RSQB" and opened:
            start, is_read = opened.pop()
            if is_read and start - 1 in mended:
                mended |= {start - 1: ", ", start: "", place: ")"}
            elif is_read:
                mended |= {start: "(", place: ")"}
    is_empty = any(one.type == "LSQB" and other.type == "RSQB" for one, other in pairwise(piece))
    edits = tuple(Edit(piece[place].span, text) for place, text in sorted(mended.items()))
    return Diagnostic(
        codes.SYNTAX_ERROR,
        piece[position].span,
        "elements of a tensor are read with round brackets",
        fix=Fix("use round brackets", edits) if edits and not is_empty else None,
    )


def meant(piece: list[Token]) -> tuple[list[Token], Diagnostic] | None:
    """`float[N] X`, `float X[N][M]` or `float X(N)`, where sizes stand otherwise than in `float(N) X`.

    Returns:
        The tokens that were meant, and what to say; `None` if this is something else.
    """
    kinds = [token.type for token in piece]
    if not kinds or kinds[0] != "SCALAR" or len(piece) < 4:
        return None
    first = 1 if kinds[1] == "LSQB" and kinds[-1] == "NAME" else 2
    last = len(piece) - 1 if first == 2 else len(piece) - 2
    name = piece[-1] if first == 1 else piece[1]
    pair = (kinds[first], kinds[last])
    if name.type != "NAME" or last == first + 1 or pair not in (("LSQB", "RSQB"), ("LPAR", "RPAR")):
        return None
    brackets = replace(piece[first], type="LPAR", text="("), replace(piece[last], type="RPAR", text=")")
    sizes = [
        replace(token, type="COMMA", text=",") if token.type == "RSQB" else token  # `[N][M]`
        for token in piece[first + 1 : last]
        if token.type != "LSQB"
    ]
    tokens = [piece[0], brackets[0], *sizes, brackets[1], name]
    shown = "".join(token.text + " " * (token.type == "COMMA") for token in sizes)
    text = f"{piece[0].text}({shown}) {name.text}"
    fix = Fix(f"write `{text}`", (Edit(Span(piece[0].start, piece[-1].end), text),))
    message = "the sizes of a tensor stand in round brackets behind its type"
    return tokens, Diagnostic(codes.SYNTAX_ERROR, piece[first].span, message, fix=fix)


def _adjacent(before: Token, token: Token) -> bool:
    return before.type in ENDS_EXPRESSION and token.type in STARTS_EXPRESSION


def _missing_operator(piece: list[Token], position: int) -> Diagnostic:
    before, token = piece[position - 1], piece[position]
    end = operand_end(piece, position)
    word = reducing(before.text)
    if before.text in _PYTHON_WORDS:
        return Diagnostic(
            codes.SYNTAX_ERROR, before.span, f"unexpected `{before.text}`", help=_PYTHON_WORDS[before.text]
        )
    if before.type == "NAME" and before.text in FUNCTION_WORDS:
        edits = Edit(Span(before.end, token.start), "("), Edit(Span(piece[end - 1].end, piece[end - 1].end), ")")
        message = f"the argument of `{before.text}` stands in parentheses"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, message, "here", fix=Fix("put it in parentheses", edits))
    if before.type == "NAME" and word is not None:
        fix = None
        if position > 1 and piece[position - 2].type == "ASSIGN" and word in OPERATORS and end == len(piece):
            edits = Edit(piece[position - 2].span, OPERATORS[word]), Edit(Span(before.start, token.start), "")
            fix = Fix(f"replace `=` by `{OPERATORS[word]}`", edits)
        return Diagnostic(
            codes.SYNTAX_ERROR, before.span, f"`{before.text}` is no operator", help=REDUCING[word], fix=fix
        )
    if token.text == "xor" and position + 1 < len(piece):
        fix = Fix("compare with `!=`", (Edit(token.span, "!="),))
        message = "there is no operator `xor`"
        return Diagnostic(codes.PYTHON_OPERATOR, token.span, message, help=INSTEAD["xor"].help, fix=fix)
    fix = None
    if before.type in ("INTEGER", "NUMBER") or token.type == "LPAR":
        fix = Fix("multiply", (Edit(Span(before.end, before.end), " *" if token.start > before.end else " * "),))
    message = f"an operator is missing between `{shorten(before.text)}` and `{shorten(token.text)}`"
    help = "a product is written with `*`"
    return Diagnostic(codes.SYNTAX_ERROR, token.span, message, "before this", help=help, fix=fix)


def expectation(accepted: AbstractSet[str], what: str = "statement") -> str | None:
    """What may stand at a place, in words; a parameter or result (`what`) ends where the next one begins, or the list ends."""
    rest = set(accepted)
    words: list[str] = []
    if {"LPAR", "INTEGER", "NAME"} <= rest:
        words.append("an expression")
        rest -= {"LPAR", "INTEGER", "NUMBER", "NAME", "DIGIT_NAME", "SCALAR", "MINMAX", "MINUS", "BANG"}
    if "FACTOR" in rest:
        words.append("an operator")
        rest -= {"RELATION", "EQUALITY", "AND", "OR", "SIGN", "MINUS", "FACTOR", "QUESTION", "MATCH", "DIMENSION"}
        rest.discard("LPAR")
    words += [word for kind, word in _EXPECTED.items() if kind in rest and kind != "END"]
    if "END" in rest:
        words += [_EXPECTED["END"]] if what == "statement" else ["`,`", "`)`"]
    return "expected " + _listed(words) if words else None


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def shorten(text: str) -> str:
    """At most 40 characters."""
    return text if len(text) <= 40 else text[:37] + "..."
