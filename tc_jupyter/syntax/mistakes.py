"""What to say about a piece of a cell that the grammar refuses.

Worked example: in `A(i) = X(i) Y(i)` the grammar refuses `Y`; the message says that an operator is missing between `X(i)` and `Y`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, Span, codes, nearest

from .foreign import (
    CHOOSING,
    RANGES,
    attribute,
    behind,
    condition_of,
    operand_end,
    prefix_cast,
    prefix_choice,
    suffix_cast,
    text_of,
    where_range,
)
from .library_names import (
    ARRAY_TYPES,
    FUNCTION_WORDS,
    INSTEAD,
    OPERATORS,
    POINTERS,
    REDUCING,
    RUNNING,
    TC_TYPES,
    TYPES,
    reducing,
)
from .made import allocated, filled
from .recovery import closers, enclosed, split_commas
from .slices import LETTERS, NEW_AXES, ranks_of
from .tokens import ENDS_EXPRESSION, POSITION_OPERATORS, SCALAR_TYPES, STARTS_EXPRESSION, Token

_RESERVED = frozenset({"WHERE", "IN", "EXISTS", "ELSE", "UNIQUE", "REDUCE", "CONST", "DEF", "SCALAR", "MINMAX"})
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
    "else": "it stands behind one read, as in `X(i - 1) else 0`; a choice is written `condition ? value : other`",
    "for": "there are no loops: an index runs over everything it can index",
    "while": "there are no loops: an index runs over everything it can index",
    "return": "results are named after `->`",
    "lambda": "functions are defined with `def`",
    "is": "equality is `==`",
}


def refused(
    piece: list[Token],
    position: int,
    accepted: AbstractSet[str],
    what: str,
    tensors: AbstractSet[str] = frozenset(),
    extents: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> Diagnostic | None:
    """The message about token `position` of `piece` (its length: the end came too early); `None` if one was given already.

    Args:
        accepted: terminals that may stand there, `END` for the end of the piece.
        what: what the piece is, for the text: `statement`, `parameter`, `result`.
        tensors: words among which are the names of tensors.
        extents: of those that have known ones, by name and dimension.
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
    if what == "statement" and position == 0 and token.type == "WHERE":
        help = "it belongs to a statement and stands behind its value, as in `Y(i) = X(i) where i in 0:N`"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "no statement stands before this `where`", help=help)
    after = piece[position + 1].type if position + 1 < len(piece) else ""
    if what == "statement" and position == 0 and token.type in _RESERVED and after in ("NAME", "COLON", "LBRACE"):
        help = _PYTHON_WORDS.get(token.text, "it begins with what it writes, as in `Y(i) = X(i)`")
        message = f"no statement begins with `{token.text}`"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, message, help=help)
    if token.text in CHOOSING and (found := _choice(piece, position)):
        return found
    if what == "statement" and (found := _quantified(piece, position) or _combined_over(piece, position)):
        return found
    if what == "statement" and token.type == "LBRACE":
        return _braces(piece, position)
    if what == "statement" and before is not None and (found := behind(piece, position)):
        return found
    if found := _sign_behind_else(piece, position):
        return found
    if what == "statement" and (found := prefix_choice(piece, position)):
        return found
    if what == "statement" and before is not None and (found := _misplaced_at(piece, position, opened)):
        return found
    if token.text == "for" and opened is not None and (found := _generated(piece, position, opened)):
        return found
    if what == "statement" and (found := _by_operator(piece, position, opened)):
        return found
    if what == "statement" and (found := _of_tuple(piece, position, opened, tensors)):
        return found
    if (found := _word(token, accepted)) or (found := _symbol(piece, position, opened, what, accepted)):
        return found
    if token.type == "ASSIGN" and opened is not None and (found := _by_name(piece, position, opened)):
        return found
    ends_inside = token.type in ("ASSIGN", "UPDATE", "WHERE") or (token.first and token.type == "NAME")
    if "RPAR" in accepted and opened is not None and ends_inside:
        return _unclosed_bracket(opened, token.span, before.end if before else token.start)
    if what == "statement" and before is not None and _adjacent(before, token):
        return _missing_operator(piece, position, tensors, extents)
    if what == "parameter" and token.text in ("+", "-", "*", "/") and opened is not None:
        help = "a size is a name or a number; the ranges of `X(i + 1)` and the like are inferred"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "a size is no expression", help=help)
    is_pointer = what == "parameter" and token.text == "*"
    help = "a tensor is declared with its sizes, as in `float(N) X`" if is_pointer else expectation(accepted, what)
    return Diagnostic(codes.SYNTAX_ERROR, token.span, f"unexpected `{shorten(token.text)}`", "here", help=help)


def _misplaced_at(piece: list[Token], position: int, opened: Token | None) -> Diagnostic | None:
    """`at` behind another operator, before it or behind `where`, and `at (h, w)`; `None` if this is something else."""
    token, start = piece[position], piece.index(opened) if opened is not None else 0
    if token.type == "COMMA" and start and piece[start - 1].type == "AT":
        help = "count the points, as in `P(n) argmax=! X(n, h, w) at h*X.2 + w`"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "a position is one number", help=help)
    if token.text != "at" or opened is not None or piece[position - 1].type not in ENDS_EXPRESSION:
        return None
    operator = next((each.text for each in piece if each.type in ("ASSIGN", "UPDATE")), "")
    where = next((i for i, each in enumerate(piece) if each.type == "WHERE"), position)
    fix, help = None, "`argmin=!` and `argmax=!` alone have it, as in `P(n) argmax=! X(n, h, w) at h*X.2 + w`"
    if operator in POSITION_OPERATORS or not operator:
        help = "it stands behind what is looked at, as in `P(n) argmax=! X(n, h, w) at h*X.2 + w where w in 2:5`"
    if where < position < len(piece) - 1 and operator in POSITION_OPERATORS:
        end, place = piece[-1].end, Span(piece[where].start, token.start)
        fix = Fix(
            "move it before `where`", (Edit(place, ""), Edit(Span(end, end), f" {text_of(piece[where:position])}"))
        )
    return Diagnostic(codes.SYNTAX_ERROR, token.span, "`at` says what a position is", help=help, fix=fix)


_COMBINING = frozenset({"reduce", "mapreduce", "foldl", "foldr", "fold", "accumulate", "scan"})


def _by_operator(piece: list[Token], position: int, opened: Token | None) -> Diagnostic | None:
    """`reduce(+, X)` and `mapreduce(abs, +, X)`, at the operator; `None` if this is something else."""
    token, after = piece[position], piece[position + 1].type if position + 1 < len(piece) else ""
    start = piece.index(opened) if opened is not None else 0
    operator = {"+": "+=!", "*": "*=!"}.get(token.text)
    if operator is None or after != "COMMA" or not start or piece[start - 1].text not in _COMBINING:
        return None
    help = f"an operator reduces over the indices that stand only on the right, as in `s {operator} abs(X(i))`"
    return Diagnostic(codes.SYNTAX_ERROR, piece[start - 1].span, "operators are no arguments", help=help)


def _of_tuple(piece: list[Token], position: int, opened: Token | None, tensors: AbstractSet[str]) -> Diagnostic | None:
    """`zeros((N, M))` and `concatenate([a, b])`, which are told as without these brackets; `None` if this is something else."""
    is_list = piece[position].type == "LSQB"
    if (piece[position].type != "COMMA" and not is_list) or opened is None:
        return None
    start = position if is_list else piece.index(opened)
    if not start or piece[start - 1].type not in ("LPAR", "COMMA"):
        return None
    around = _unclosed(piece[:start])
    called = piece[piece.index(around) - 1] if around is not None and piece.index(around) else None
    if called is None or called.type not in ("NAME", "MINMAX") or called.text in tensors:
        return None
    help = REDUCING.get(reducing(called.text) or "") or (INSTEAD[called.text].help if called.text in INSTEAD else None)
    if help is None:
        return None
    message = f"there is no tensor, function or def `{called.text}`"
    if called.type == "MINMAX":
        message = f"`{called.text}` takes two numbers or more"
        return Diagnostic(codes.SYNTAX_ERROR, called.span, message, help=help)
    fix = None
    if (allocation := allocated(piece, {})) is not None:
        used = {token.text for token in piece} | {*tensors}
        at, value = filled(allocation[0], [letter for letter in LETTERS if letter not in used], allocation[1])
        end = piece[0].end
        fix = Fix("write a statement", (Edit(Span(end, end), at), Edit(Span(piece[2].start, piece[-1].end), value)))
    return Diagnostic(codes.UNKNOWN_NAME, called.span, message, help=help, fix=fix)


def _by_name(piece: list[Token], position: int, opened: Token) -> Diagnostic | None:
    """`sum(X, axis=1)`: an argument with a name; `None` if this is something else."""
    before = piece[position - 2 : position]
    if len(before) < 2 or before[1].type != "NAME" or before[0].type not in ("COMMA", "LPAR"):
        return None
    start = piece.index(opened)
    called = piece[start - 1].text if start else ""
    place = Span(before[1].start, piece[position].end)
    help = REDUCING.get(reducing(called) or "") or (INSTEAD[called].help if called in INSTEAD else None)
    close, comma = closers(piece).get(start), position - 2
    fix = None
    if (
        reducing(called)
        and _says_axes(piece, piece[start + 1 : comma])
        and close is not None
        and piece[comma].type == "COMMA"
        and _has_axes(piece[comma:close])
    ):
        fix = Fix("leave it out", (Edit(Span(piece[comma].start, piece[close - 1].end), ""),))
    return Diagnostic(codes.SYNTAX_ERROR, place, "arguments have no names", help=help, fix=fix)


def _says_axes(piece: list[Token], combined: list[Token]) -> bool:
    """Whether what is combined has all indices of the target, and one more, as in `Y(i) = sum(X(i, j), axis=1)`."""
    assign = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), 0)
    left = {token.text for token in piece[1:assign] if token.type == "NAME"}
    return bool(left) and left < _subscripts(combined)


def _has_axes(tokens: list[Token]) -> bool:
    """Whether nothing but axes is given, which the indices of elements say by themselves."""
    words = {token.text for token in tokens if token.type == "NAME"}
    return bool(words) and words <= {"axis", "dim", "dims", "keepdims", "keepdim", "True", "False"}


def _too_short(piece: list[Token], opened: Token | None, accepted: AbstractSet[str], what: str) -> Diagnostic:
    last = piece[-1]
    after = Span(last.end, last.end)
    if opened is not None and "RPAR" in accepted:
        return _unclosed_bracket(opened, after, last.end)
    if what == "statement" and "UPDATE" in accepted:
        help = "a statement is `T(i, j) = expression`"
        if piece[0].text in POINTERS:
            help = (
                "an element is written as `Y(i) = ...`; the ranges of the indices take the place of pointers and masks"
            )
        return Diagnostic(
            codes.SYNTAX_ERROR, Span(piece[0].start, last.end), "this is no statement: it assigns nothing", help=help
        )
    message = f"the {what} ends too early: something is missing after `{shorten(last.text)}`"
    if last.type == "COMMA" and opened is None:
        fix = Fix("delete `,`", (Edit(last.span, ""),))
        return Diagnostic(codes.SYNTAX_ERROR, last.span, message, help=expectation(accepted), fix=fix)
    return Diagnostic(codes.SYNTAX_ERROR, last.span, message, help=expectation(accepted))


def _unclosed_bracket(opened: Token, place: Span, before: int) -> Diagnostic:
    """`before`: where the last token in the bracket ends."""
    fix = Fix("insert `)`", (Edit(Span(before, before), ")"),))
    labels = (Label(opened.span, "opened here"),)
    return Diagnostic(codes.SYNTAX_ERROR, place, "`)` is missing", "before this", labels, fix=fix)


def _unclosed(tokens: list[Token]) -> Token | None:
    stack: list[Token] = []
    for token in tokens:
        if token.type == "LPAR":
            stack.append(token)
        elif token.type == "RPAR" and stack:
            stack.pop()
    return stack[-1] if stack else None


def _sign_behind_else(piece: list[Token], position: int) -> Diagnostic | None:
    """`X(i - 1) else -Y(i)`."""
    start = position if piece[position].type in ("BANG", "TILDE") else position - 1
    if start < 1 or piece[start - 1].type != "ELSE" or piece[start].type not in ("BANG", "TILDE", "MINUS"):
        return None
    last = start + 1
    if last < len(piece) - 1 and piece[last + 1].type == "LPAR":
        last = closers(piece).get(last + 1, last)
    span = Span(piece[start].start, piece[min(last, len(piece) - 1)].end)
    is_whole = last < len(piece) and piece[last].type in ("NAME", "RPAR", "INTEGER", "NUMBER")
    edits = (Edit(Span(span.start, span.start), "("), Edit(Span(span.end, span.end), ")"))
    help = "behind `else` stands a number, a name, a read, or anything in parentheses"
    message = f"what begins with `{piece[start].text}` behind `else` needs parentheses"
    fix = Fix("put it in parentheses", edits) if is_whole else None
    return Diagnostic(codes.SYNTAX_ERROR, span, message, help=help, fix=fix)


def _generated(piece: list[Token], position: int, opened: Token) -> Diagnostic | None:
    """`y(i) = sum(A(i, j) for j in range(M))`, which is `y(i) +=! A(i, j) where j in 0:M`; `None` if it is something else."""
    start = piece.index(opened)
    close, word = closers(piece).get(start), reducing(piece[start - 1].text) if start else None
    if close is None or word not in OPERATORS:
        return None
    ranges = _ranges_of(piece[position:close])
    assigned = start > 1 and piece[start - 2].type == "ASSIGN" and close + 1 == len(piece)
    fix, operator = None, OPERATORS[word]
    if ranges is not None and assigned:
        behind = f" where {', '.join(ranges)}" if ranges else ""
        edits = (
            Edit(piece[start - 2].span, operator),
            Edit(Span(piece[start - 1].start, piece[start + 1].start), ""),
            Edit(Span(piece[position - 1].end, piece[close].end), behind),
        )
        fix = Fix(f"replace `=` by `{operator}`", edits)
    return Diagnostic(codes.SYNTAX_ERROR, piece[position].span, "unexpected `for`", help=REDUCING[word], fix=fix)


def _ranges_of(clauses: list[Token]) -> list[str] | None:
    """The ranges of `for j in range(M) for k in 0:K`, but for `1:M` of Julia, a whole dimension; `None` if it is something else."""
    starts, pairs, found = [i for i, token in enumerate(clauses) if token.text == "for"], closers(clauses), list[str]()
    for start, end in pairwise([*starts, len(clauses)]):
        clause = clauses[start:end]
        if [token.type for token in clause[1:3]] != ["NAME", "IN"] or len(clause) < 4:
            return None
        counted = clause[3].text in RANGES and pairs.get(start + 4) == end - 1
        values = split_commas(clause[5:-1]) if counted else [clause[3:]]
        if counted and len(values) < 3 and all(values):
            texts = [text_of(each) for each in values]
            found.append(f"{clause[1].text} in {':'.join(texts) if len(texts) == 2 else f'0:{texts[0]}'}")
        elif not counted and [token.type for token in clause[3:]].count("COLON") == 1:
            whole = clause[3].text == "1" and clause[4].type == "COLON"
            found += [] if whole else [f"{clause[1].text} in {text_of(clause[3:])}"]
        else:
            return None
    return found


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
    if token.type == "DOTS":
        help = "write out what it stands for"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, f"`{token.text}` is no expression", help=help)
    if token.type == "DIGIT_NAME" and "NAME" in accepted:
        return Diagnostic(
            codes.DIGIT_NAME, token.span, f"`{shorten(token.text)}` starts with a digit and cannot name this"
        )
    return None


def _type_word(token: Token) -> Diagnostic:
    is_other_width = re.fullmatch(r"(u?int|b?float|f|i|u)[0-9]+", token.text) is not None  # a slip of no other one
    close = TC_TYPES.get(token.text) or (None if is_other_width else nearest(token.text, sorted(SCALAR_TYPES)))
    fix = Fix(f"replace it by `{close}`", (Edit(token.span, close),)) if close else None
    help = "a parameter is a type and a name, as in `float(M, N) A`, or `float a` for a number"
    if token.text in ARRAY_TYPES:
        help = "the type of a tensor is that of its elements, with its sizes, as in `float(M, N) A`"
    return Diagnostic(codes.SYNTAX_ERROR, token.span, f"`{shorten(token.text)}` is no type", help=help, fix=fix)


_OF_BITS = ("BITAND", "BITOR", "XOR", "SHIFT")


def _symbol(
    piece: list[Token],
    position: int,
    opened: Token | None,
    what: str,
    accepted: AbstractSet[str],
) -> Diagnostic | None:
    """Mistakes that an operator or a bracket shows."""
    token = piece[position]
    before = piece[position - 1] if position else None
    if token.type == "RPAR" and opened is None:
        fix = Fix("delete `)`", (Edit(token.span, ""),))
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "`)` closes nothing", fix=fix)
    if what == "statement" and token.type == "LSQB" and before is not None and before.type in ("NAME", "DIGIT_NAME"):
        return _square(piece, position)
    after = piece[position + 1] if position + 1 < len(piece) else None
    assigns = after is not None and after.type == "ASSIGN" and after.start == token.end
    if token.type in ("MINUS", "FACTOR", "POWER", *_OF_BITS) and assigns:
        return _no_update(piece, position)
    if what == "statement" and "ASSIGN" in accepted and (found := _other_assignment(token, after)):
        return found
    if what == "statement" and "ASSIGN" in accepted and (found := _other_update(piece, position)):
        return found
    if what == "statement" and "ASSIGN" not in accepted and (found := _other_comparison(piece, position)):
        return found
    if token.type == "LSQB" and what == "statement" and before is not None and before.type == "RPAR":
        help = "all indices of a tensor stand in one pair of round brackets, as in `X(i, j)`"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "an element has no elements", help=help)
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
    swapped = before is not None and before.type == "ASSIGN" and before.end == token.start
    if token.type in ("SIGN", "FACTOR") and token.text in "+*" and swapped:
        return _swapped(piece, position)
    after_word = (
        position > 1 and piece[position - 2].type == "ASSIGN" and piece[position - 2].end == piece[position - 1].start
    )
    if before is not None and before.type == "MINMAX" and after_word and "LPAR" in accepted:
        return _swapped(piece, position - 1)
    if (
        token.text == "+"
        and "MINUS" in accepted
        and after is not None
        and after.type in (*STARTS_EXPRESSION, "MINUS", "SIGN")
    ):
        fix = Fix("leave it out", (Edit(Span(token.start, after.start), ""),))
        return Diagnostic(
            codes.SYNTAX_ERROR, token.span, "`+` stands between two operands", help="`-` alone is a sign", fix=fix
        )
    if token.type == "DOT":
        return attribute(piece, position)
    if token.type == "RPAR" and before is not None and before.type == "COMMA" and what == "statement":
        fix = Fix("delete `,`", (Edit(before.span, ""),))
        return Diagnostic(codes.SYNTAX_ERROR, before.span, "something is missing after `,`", fix=fix)
    if token.type == "LSQB" and "LPAR" in accepted and what == "statement":
        return _grouped(piece, position)
    if (
        token.type == "RPAR"
        and position > 1
        and before is not None
        and before.type == "SCALAR"
        and piece[position - 2].type == "LPAR"
    ):
        return prefix_cast(piece, position)
    return None


def _other_assignment(token: Token, after: Token | None) -> Diagnostic | None:
    """`Y(i) := X(i)`, `Y(i) <- X(i)`, `Y(i) == X(i)` and `Y(i) === X(i)`."""
    two = after is not None and after.start == token.end and token.text + after.text in (":=", "<-", "===")
    if not two and token.text != "==":
        return None
    place = Span(token.start, after.end) if two and after is not None else token.span
    text = token.text + (after.text[:1] if two and after is not None else "")
    fix = Fix("replace it by `=`", (Edit(place, "="),))
    return Diagnostic(codes.SYNTAX_ERROR, place, f"`{text}` assigns nothing", help="an assignment is `=`", fix=fix)


_SYMBOLS_OF_UPDATES = (
    "BANG",
    "UPDATE",
    "ASSIGN",
    "AND",
    "OR",
    "EQUALITY",
    "RELATION",
    "SIGN",
    "MINUS",
    "FACTOR",
    "MINMAX",
)


def _other_update(piece: list[Token], position: int) -> Diagnostic | None:
    """`y !+= x`, `y ||=! x` and `y max != x`; `None` if no operator that assigns stands here."""
    end = position + 1
    while (
        end < len(piece)
        and end < position + 5
        and piece[end].start == piece[end - 1].end
        and piece[end].type in _SYMBOLS_OF_UPDATES
    ):
        end += 1
    while end > position + 1 and piece[end - 1].type == "MINUS":
        end -= 1  # the sign of the value
    text = "".join(token.text for token in piece[position:end])
    is_update = "=" in text or text in ("max!", "min!", "+!", "*!")
    if piece[position].type not in _SYMBOLS_OF_UPDATES or not is_update or end - position < 2:
        return None
    operators = {"||": "max=", "&&": "min=", "max": "max=", "min": "min=", "+": "+=", "*": "*="}
    operators |= {"||": "any=", "&&": "all="} if "!" in text else {}
    found = [plain for symbol, plain in operators.items() if symbol in text]
    place, plain = Span(piece[position].start, piece[end - 1].end), found[0] + "!" * ("!" in text) if found else ""
    fix = Fix(f"write `{plain}`", (Edit(place, plain),)) if len(found) == 1 else None
    help = "`=`, `+=`, `*=`, `min=`, `max=` exist, each but the first one also with `!`"
    help += "; `any=!`, `all=!`, `argmin=!`, `argmax=!` and `lse=!` always have it"
    return Diagnostic(codes.SYNTAX_ERROR, place, f"there is no operator `{text}`", help=help, fix=fix)


def _other_comparison(piece: list[Token], position: int) -> Diagnostic | None:
    """`<>`, `===`, `!==` and `/=` between values, and `:=`, which names one; `None` if this is something else."""
    token, before = piece[position], piece[position - 1]
    after = piece[position + 1] if position + 1 < len(piece) else None
    if token.type == "COLON" and after is not None and after.type == "ASSIGN" and after.start == token.end:
        return _named(piece, position)
    text = before.text + token.text
    if before.end != token.start or text not in ("<>", "===", "!==", "/="):
        return None
    plain, place = "==" if text == "===" else "!=", Span(before.start, token.end)
    fix = Fix(f"replace it by `{plain}`", (Edit(place, plain),))
    return Diagnostic(
        codes.PYTHON_OPERATOR, place, f"there is no operator `{text}`", help="`==` and `!=` compare", fix=fix
    )


def _named(piece: list[Token], position: int) -> Diagnostic:
    """`(x := X(i)) * x`, which is `x * x where x = X(i)`."""
    place = Span(piece[position].start, piece[position + 1].end)
    pairs, fix = closers(piece), None
    close = pairs.get(position - 2)
    if close is not None and piece[position - 1].type == "NAME" and close > position + 2:
        name, value = piece[position - 1].text, text_of(piece[position + 2 : close])
        where = next((token for token in piece if token.type == "WHERE"), None)
        end = piece[-1].end
        let = Edit(Span(where.end, where.end), f" {name} = {value},") if where else None
        let = let or Edit(Span(end, end), f" where {name} = {value}")
        fix = Fix(f"write `where {name} = ...`", (Edit(Span(piece[position - 2].start, piece[close].end), name), let))
    help = "a part of an expression has a name with `where x = ...`"
    return Diagnostic(codes.SYNTAX_ERROR, place, "`:=` assigns nothing", help=help, fix=fix)


def _braces(piece: list[Token], position: int) -> Diagnostic:
    """`X{i, j}`, `A_{i,j}` of LaTeX, and the set in `i in {0, N}`."""
    before, place = piece[position - 1], piece[position].span
    end = next((i for i in range(position, len(piece)) if piece[i].type == "RBRACE"), None)
    if before.type == "IN":
        help = "a range includes its lower and excludes its upper end"
        return Diagnostic(codes.RANGE_BRACKETS, place, "a range is written `k in a:b` or `k = [a, b[`", help=help)
    fix = None
    if before.type == "NAME" and before.end == place.start and end is not None:
        subscripted = before.text.endswith("_") and len(before.text) > 1
        edits = [
            edit
            for i in range(position, len(piece))
            if piece[i].type in ("LBRACE", "RBRACE")
            for edit in (Edit(piece[i].span, "(" if piece[i].type == "LBRACE" else ")"),)
        ]
        fix = None if subscripted else Fix("use round brackets", tuple(edits))
        help = "as in `A(i, j)`"
        message = "elements of a tensor are read with round brackets"
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)
    message, help = "braces hold the statements of a def", "expressions are grouped with round brackets"
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help)


def _grouped(piece: list[Token], position: int) -> Diagnostic:
    """`[X(i) + 1] * 2`, and `[X(i) for i in range(N)]`, which is a list."""
    close = closers(piece).get(position)
    inside = piece[position + 1 : close]
    is_list = (
        close is None or not inside or len(split_commas(inside)) > 1 or any(token.text == "for" for token in inside)
    )
    if is_list or close is None:
        help = "a statement says what one element is, as in `Y(i) = 2 * X(i)`"
        return Diagnostic(codes.SYNTAX_ERROR, piece[position].span, "there are no lists", help=help)
    fix = Fix("use round brackets", (Edit(piece[position].span, "("), Edit(piece[close].span, ")")))
    message = "expressions are grouped with round brackets"
    return Diagnostic(codes.SYNTAX_ERROR, piece[position].span, message, fix=fix)


def _swapped(piece: list[Token], position: int) -> Diagnostic:
    """`Y(i) =+! X(i, k)`, `Y(i) =* X(i)` and `Y(i) =max X(i, k)`."""
    last = position + (position + 1 < len(piece) and piece[position + 1].type == "BANG")
    place = Span(piece[position - 1].start, piece[last].end)
    written = "".join(token.text for token in piece[position - 1 : last + 1])
    plain = f"{piece[position].text}={'!' if last > position or piece[position].type == 'MINMAX' else ''}"
    fix = Fix(f"write `{plain}`", (Edit(place, plain),))
    return Diagnostic(codes.SYNTAX_ERROR, place, f"there is no operator `{written}`", fix=fix)


def _no_update(piece: list[Token], position: int) -> Diagnostic:
    """`y(i) -= X(i)`, `y(i) /= X(i)`, `y(i) %= 2` and the like, with or without a `!`."""
    token, last = piece[position], position + 1
    last += last + 1 < len(piece) and piece[last + 1].type == "BANG" and piece[last + 1].start == piece[last].end
    place, mark = Span(token.start, piece[last].end), "!" * (piece[last].type == "BANG")
    left, right = piece[:position], piece[last + 1 :]
    right = right[: next((i for i, each in enumerate(right) if each.type in ("WHERE", "MATCH")), len(right))]
    message, help = f"there is no operator `{token.text}={mark}`", "`=`, `+=`, `*=`, `min=`, `max=` exist"
    wrapped = _accumulated(token.text, mark, left, right) if right else None
    if wrapped is None:
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help)
    plain, opening, closing, help = wrapped
    if opening.endswith("(") and operand_end(right, 0) == len(right):
        opening, closing = opening[:-1], ""
    start, end = right[0].start, right[-1].end
    edits = Edit(place, plain), Edit(Span(start, start), opening), Edit(Span(end, end), closing)
    fix = Fix(f"use `{plain}`", edits if closing else edits[:2] if opening else edits[:1])
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)


def _accumulated(symbol: str, mark: str, left: list[Token], right: list[Token]) -> tuple[str, str, str, str] | None:
    """The operator to write for `-=` and the like, what to write around the value, and a help; `None` if there is none."""
    each_once = not mark and _subscripts(right) <= _subscripts(left)
    own = "{} in a statement of its own"
    if symbol == "-":
        return f"+={mark}", "-(", ")", f"accumulate the negated value with `+={mark}`"
    if symbol == "/" and not each_once:
        return f"*={mark}", "1.0 / (", ")", f"accumulate the reciprocal with `*={mark}`"
    if symbol in ("/", "//", "%") and each_once:
        verb = "take the remainder" if symbol == "%" else "divide"
        return "=", f"{text_of(left)} {symbol[0]} (", ")", own.format(verb)
    if symbol in ("**", "^") and each_once:  # the types say later whether this is a power of floats, or of bits
        return "=", f"{text_of(left)}^(", ")", own.format("raise it")
    if symbol in ("&", "|") and not each_once:
        kinds = {token.type for token in right}
        if kinds & {"INTEGER", *_OF_BITS} and not kinds & {"RELATION", "EQUALITY", "BANG"}:
            return None  # integers, whose bits are combined
        plain, holds = ("min=", "all are") if symbol == "&" else ("max=", "one is")
        return plain, "", "", f"`{plain}` of `bool` says whether {holds} true"
    if symbol in ("&", "|", "^^", "<<", ">>") and each_once:
        return "=", f"{text_of(left)} {symbol} (", ")", own.format("combine the bits")
    return None


def _subscripts(tokens: list[Token]) -> set[str]:
    """The names that stand alone in brackets of elements."""
    pairs = closers(tokens)
    called = {i for i in pairs if not i or tokens[i - 1].type != "NAME" or tokens[i - 1].text in FUNCTION_WORDS}
    inside = enclosed({opening: closing for opening, closing in pairs.items() if opening not in called})
    return {tokens[i].text for i in inside if tokens[i].type == "NAME" and i + 1 not in pairs}


def _choice(piece: list[Token], position: int) -> Diagnostic | None:
    """`a if c else b`, which is `c ? a : b`, and the same with `unless`; `None` if this is something else."""
    depth, middle, end = 0, None, len(piece)
    for i in range(position + 1, len(piece)):
        depth += (piece[i].type == "LPAR") - (piece[i].type == "RPAR")
        if depth < 0 or (not depth and piece[i].type in ("COMMA", "WHERE", "MATCH")):
            end = i
            break
        if not depth and piece[i].text == "else" and middle is None:
            middle = i
    depth, start = 0, 0
    for i in range(position - 1, -1, -1):
        depth += (piece[i].type == "RPAR") - (piece[i].type == "LPAR")
        if depth < 0 or (not depth and piece[i].type in ("COMMA", "ASSIGN", "UPDATE", "COLON")):
            start = i + 1
            break
    if middle is None or start >= position or middle in (position + 1, end - 1):
        return None
    then, condition = piece[start:position], piece[position + 1 : middle]
    edits = (
        Edit(Span(then[0].start, then[-1].end), condition_of(piece[position], condition)),
        Edit(Span(piece[position].start, condition[-1].end), f"? {text_of(then)}"),
        Edit(piece[middle].span, ":"),
    )
    help = "a choice is written `condition ? value : other`"
    message = f"unexpected `{piece[position].text}`"
    return Diagnostic(
        codes.SYNTAX_ERROR, piece[position].span, message, help=help, fix=Fix("write it with `? :`", edits)
    )


_QUANTIFIERS = {"exists": "any=!", "exist": "any=!", "any": "any=!", "forall": "all=!", "all": "all=!"}


def _quantified(piece: list[Token], position: int) -> Diagnostic | None:
    """`Y(i) = exists m : X(i, m)`, which is `Y(i) any=! X(i, m)`; `None` if this is something else."""
    words = (i for i in (position, position - 1) if i > 0 and piece[i].text in _QUANTIFIERS)
    start = next(words, None)
    if start is None or piece[start - 1].type in (*ENDS_EXPRESSION, "WHERE", "COMMA"):
        return None
    kinds = [token.type for token in piece[start + 1 : start + 3]]
    if kinds not in (["NAME", "COLON"], ["NAME", "IN"], ["NAME", "COMMA"], ["NAME", "DOT"]):
        return None
    operator = _QUANTIFIERS[piece[start].text]
    one = "one is true" if operator == "any=!" else "all are true"
    help = (
        f"`{operator}` says whether {one}, as in `Y(i) {operator} X(i, m) > 0`: `m` runs over everything it can index"
    )
    assigned, fix = piece[start - 1], None
    if assigned.type == "ASSIGN" and kinds[1] != "IN" and start + 3 < len(piece):
        fix = Fix(f"write `{operator}`", (Edit(Span(assigned.start, piece[start + 2].end), operator),))
    message = f"no expression begins with `{piece[start].text}`"
    return Diagnostic(codes.SYNTAX_ERROR, piece[start].span, message, help=help, fix=fix)


_WRITTEN = "elements are chosen with `where`, as in `Y(i) = 0 where Y(i) < 0`"
_ALL = "a statement keeps all elements: choose their values, as in `X(i) > 0 ? X(i) : 0`"


def _combined_over(piece: list[Token], position: int) -> Diagnostic | None:
    """`y(i) max= A(i, j) over j`, where the indices that only stand on the right say it."""
    end = position + 1
    while end < len(piece) and piece[end].type in ("NAME", "COMMA"):
        end += 1
    names = {token.text for token in piece[position + 1 : end] if token.type == "NAME"}
    if piece[position].text != "over" or not names:
        return None
    place = Span(piece[position].start, piece[end - 1].end)
    message = "an operator combines over the indices that stand only on the right: `over` is not written"
    help = "as in `y(i) max=! A(i, j)`"
    update = next((token for token in piece[:position] if token.type in ("UPDATE", "ASSIGN")), None)
    ends = end == len(piece) or piece[end].type == "WHERE"
    fix = None
    if update is not None and update.type == "UPDATE" and ends and names <= _subscripts(piece[:position]):
        marked = [] if update.text.endswith("!") else [Edit(update.span, update.text + "!")]
        fix = Fix("leave it out", (*marked, Edit(Span(piece[position - 1].end, place.end), "")))
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)


def _square(piece: list[Token], position: int) -> Diagnostic:
    """`A[i, j]` or `A[i][j]` instead of `A(i, j)`; the fix mends all of them."""
    chosen = False  # by a condition, as in `X[X > 0]`
    mended: dict[int, str] = {}  # what to write in the place of a bracket
    opened: list[tuple[int, bool]] = []  # places of `[`, and whether one stands after a tensor
    for place, token in enumerate(piece):
        if token.type == "LSQB":
            named = place > 0 and piece[place - 1].type in ("NAME", "DIGIT_NAME") and piece[place - 2].type != "DOT"
            opened.append((place, named or place - 1 in mended))
        elif token.type == "RELATION" and opened:
            chosen = True
        elif token.type == "RSQB" and opened:
            start, is_read = opened.pop()
            if is_read and start - 1 in mended:
                mended |= {start - 1: ", ", start: "", place: ")"}
            elif is_read:
                mended |= {start: "(", place: ")"}
    assign = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), len(piece))
    is_left = position < assign
    is_empty = any(one.type == "LSQB" and other.type == "RSQB" for one, other in pairwise(piece))
    edits = tuple(Edit(piece[place].span, text) for place, text in sorted(mended.items()))
    pairs = closers(piece)
    square = {opening: closing for opening, closing in pairs.items() if piece[opening].type == "LSQB"}
    inside = enclosed(square)
    number = any(
        (i in inside or i in square) and one.type in ("LSQB", "COMMA") and other.type == "INTEGER"
        for i, (one, other) in enumerate(pairwise(piece))
    )
    return Diagnostic(
        codes.SYNTAX_ERROR,
        piece[position].span,
        "elements of a tensor are read with round brackets",
        help=(_WRITTEN if is_left else _ALL) if chosen else "the first element is number 0" if number else None,
        fix=Fix("use round brackets", edits) if edits and not is_empty and not chosen else None,
    )


_QUALIFIERS = frozenset({"const", "restrict", "__restrict__", "__restrict", "volatile", "static", "inout", "out"})


def meant(piece: list[Token]) -> tuple[list[Token], Diagnostic] | None:
    """`float[N] X`, `float X[N][M]`, `float X(N)` or `X: float[N]`, which stand otherwise than in `float(N) X`.

    Returns:
        The tokens that were meant, and what to say; `None` if this is something else.
    """
    kinds = [token.type for token in piece]
    if len(piece) > 2 and piece[0].text in _QUALIFIERS:
        place, fix = piece[0].span, Fix("leave it out", (Edit(Span(piece[0].start, piece[1].start), ""),))
        return piece[1:], Diagnostic(codes.SYNTAX_ERROR, place, f"`{piece[0].text}` says nothing here", fix=fix)
    if kinds[:3] == ["NAME", "COLON", "SCALAR"]:
        name, type_, place = piece[0], piece[2:], Span(piece[0].start, piece[1].end)
        message = "the type of a parameter stands before its name"
    elif kinds[:2] == ["SCALAR", "LPAR"] and kinds[-3:] == ["COMMA", "RPAR", "NAME"]:
        comma, message = piece[-3], "a size is missing behind this comma"
        fix = Fix("delete `,`", (Edit(comma.span, ""),))
        return [*piece[:-3], *piece[-2:]], Diagnostic(codes.SYNTAX_ERROR, comma.span, message, fix=fix)
    elif len(piece) > 3 and kinds[0] == "SCALAR" and kinds[1] == "LSQB" and kinds[-1] == "NAME":
        name, type_, place = piece[-1], piece[:-1], piece[1].span
        message = _SIZES
    elif len(piece) > 3 and kinds[0] == "SCALAR" and kinds[1] == "NAME":
        name, type_, place = piece[1], [piece[0], *piece[2:]], piece[2].span
        message = _SIZES
    else:
        return None
    known = _type(type_)
    if known is None or name.type != "NAME":
        return None
    tokens, text = known
    text = f"{text} {name.text}"
    fix = Fix(f"write `{text}`", (Edit(Span(piece[0].start, piece[-1].end), text),))
    return [*tokens, name], Diagnostic(codes.SYNTAX_ERROR, place, message, fix=fix)


def pointer(piece: list[Token], sizes: Mapping[str, list[str]]) -> Diagnostic | None:
    """`const float *X`; `None` if this is something else. `sizes`: those that the use of each name suggests."""
    rest = [token for i, token in enumerate(piece) if token.text not in _QUALIFIERS or i + 1 == len(piece)]
    stars = rest[1:-1]
    if [token.type for token in rest] == ["SCALAR", "NAME", "LSQB", "RSQB"]:  # `float X[]`
        rest, stars = rest[:2], rest[2:]
    kinds, signs = (rest[0].type, rest[-1].type), {token.text for token in stars}
    if kinds != ("SCALAR", "NAME") or not ((signs and signs <= {"*", "**", "^"}) or signs == {"[", "]"}):
        return None
    kind, name = rest[0].text, rest[-1].text
    known = sizes.get(name, [])
    text = f"{kind}({', '.join(known)}) {name}"
    fix = Fix(f"write `{text}`", (Edit(Span(piece[0].start, piece[-1].end), text),)) if known else None
    help = f"a tensor is declared with its sizes, as in `{text if known else f'{kind}(N) {name}'}`"
    return Diagnostic(codes.SYNTAX_ERROR, stars[0].span, "there are no pointers", help=help, fix=fix)


def without_default(piece: list[Token]) -> tuple[list[Token], Diagnostic | None]:
    """The tokens of a parameter before `= 1e-5`, and what to say about that."""
    inside = enclosed(closers(piece))
    cut = next((i for i, token in enumerate(piece) if i and token.type == "ASSIGN" and i not in inside), None)
    if cut is None:
        return piece, None
    place = Span(piece[cut].start, piece[-1].end)
    fix = Fix("leave it out", (Edit(Span(piece[cut - 1].end, place.end), ""),))
    message, help = "a parameter has no default value", "a call passes every argument"
    return piece[:cut], Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)


def typed_constant(tokens: list[Token]) -> tuple[list[Token], Diagnostic] | None:
    """`const a = 2.0`, which has no type; `None` if this is something else.

    Returns:
        The tokens with the type that the number has, and what to say.
    """
    kinds = [token.type for token in tokens if token.type != "MINUS"]
    if kinds not in (["CONST", "NAME", "ASSIGN", "NUMBER"], ["CONST", "NAME", "ASSIGN", "INTEGER"]):
        return None
    kind, name = "float" if kinds[-1] == "NUMBER" else "int", tokens[1]
    fix = Fix(f"write `{kind} {name.text}`", (Edit(name.span, f"{kind} {name.text}"),))
    said = Diagnostic(codes.SYNTAX_ERROR, name.span, f"the constant `{shorten(name.text)}` has no type", fix=fix)
    return [tokens[0], Token("SCALAR", kind, name.start, name.start), *tokens[1:]], said


def sized_result(piece: list[Token]) -> tuple[list[Token], Diagnostic] | None:
    """`Y(N)` in the result list; `None` if this is something else.

    Returns:
        The tokens that were meant, and what to say.
    """
    if [token.type for token in piece[:2]] != ["NAME", "LPAR"] or closers(piece).get(1) != len(piece) - 1:
        return None
    place = Span(piece[1].start, piece[-1].end)
    message = "the sizes of a result stand behind its type"
    help = f"as in `float(N) {piece[0].text}`; without a type, the statements say them"
    fix = Fix("leave them out", (Edit(place, ""),))
    return piece[:1], Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)


_SIZES = "the sizes of a tensor stand in round brackets behind its type"


def _type(tokens: list[Token]) -> tuple[list[Token], str] | None:
    """The tokens and the text of `float(N, M)` for `float`, `float[N, M]` or `float[N][M]`."""
    if len(tokens) == 1:
        return tokens, tokens[0].text
    if (tokens[1].type, tokens[-1].type) not in (("LSQB", "RSQB"), ("LPAR", "RPAR")) or len(tokens) < 4:
        return None
    brackets = replace(tokens[1], type="LPAR", text="("), replace(tokens[-1], type="RPAR", text=")")
    sizes = [
        replace(token, type="COMMA", text=",") if token.type == "RSQB" else token  # `[N][M]`
        for token in tokens[2:-1]
        if token.type != "LSQB"
    ]
    shown = "".join(token.text + " " * (token.type == "COMMA") for token in sizes)
    return [tokens[0], brackets[0], *sizes, brackets[1]], f"{tokens[0].text}({shown})"


def split_types(piece: list[Token]) -> tuple[list[list[Token]], list[Diagnostic]]:
    """The parameters in `float(N) X float(N) Z`, between which commas are missing, and a message about each."""
    inside = enclosed(closers(piece))
    first = next((i for i, token in enumerate(piece) if token.text not in _QUALIFIERS), 0)
    begins = bool(piece) and piece[first].type == "SCALAR"
    cuts = [
        i
        for i in range(1, len(piece))
        if piece[i].type == "SCALAR" and piece[i - 1].type == "NAME" and i > first and i not in inside and begins
    ]
    message, told = "`,` is missing between two parameters", list[Diagnostic]()
    for cut in cuts:
        fix = Fix("insert `,`", (Edit(Span(piece[cut - 1].end, piece[cut - 1].end), ","),))
        told.append(Diagnostic(codes.SYNTAX_ERROR, piece[cut].span, message, "before this", fix=fix))
    return [piece[start:end] for start, end in pairwise([0, *cuts, len(piece)])], told


def size_alone(name: Token, around: list[Token]) -> Diagnostic:
    """`N` as a parameter beside `float(N) X`."""
    i = around.index(name)
    start, end = (around[i - 1].start, name.end) if i else (name.start, around[i + 1].end)
    fix = Fix("leave it out", (Edit(Span(start, end), ""),))
    help = "a call takes the sizes from the shapes of the arrays"
    return Diagnostic(
        codes.SYNTAX_ERROR, name.span, f"`{shorten(name.text)}` is a size, no parameter", help=help, fix=fix
    )


def annotated(piece: list[Token], sizes: list[str]) -> Diagnostic | None:
    """`X: np.ndarray`, or any other annotation of Python that says neither the type of the elements nor the sizes."""
    if [token.type for token in piece[:2]] != ["NAME", "COLON"]:
        return None
    span = Span(piece[0].start, piece[-1].end)
    written = _written(piece[0].text, sizes)
    fix = Fix(f"write `{written}`", (Edit(span, written),)) if sizes else None
    help = f"it is the type of the elements with the sizes, as in `{written if sizes else f'float(N) {piece[0].text}'}`"
    return Diagnostic(codes.SYNTAX_ERROR, span, "the type of a parameter stands before its name", help=help, fix=fix)


def _written(name: str, sizes: list[str]) -> str:
    return f"float({', '.join(sizes)}) {name}" if sizes else f"float {name}"


def is_free(word: str) -> bool:
    """Whether a word means nothing as a type in any language."""
    return (
        word not in TYPES and word not in ARRAY_TYPES and word not in _PYTHON_WORDS and not word.startswith("complex")
    )


def suggested_sizes(body: list[Token], taken: set[str]) -> dict[str, list[str]]:
    """Sizes for what a body reads with brackets: one per index, in the order in which they occur."""
    letters = iter([letter for letter in "NMKLPQRSTUVW" if letter not in taken])
    pairs, known, found = closers(body), dict[str, str](), dict[str, list[str]]()
    for i, token in enumerate(body[:-1]):
        opening, subscripts = i + 1, list[list[Token]]()
        is_read = token.type == "NAME" and body[opening].type in ("LPAR", "LSQB") and opening in pairs
        if not is_read or token.text in found:
            continue
        while opening in pairs and (opening == i + 1 or body[opening].type == "LSQB"):  # `X[i][j]`
            written = split_commas(body[opening + 1 : pairs[opening]])
            subscripts += [part for part in written if not part or part[-1].text not in NEW_AXES]
            opening = pairs[opening] + 1
        keys = [part[0].text if _is_name(part) else f"{token.text}.{k}" for k, part in enumerate(subscripts)]
        for key in keys:
            known[key] = known.get(key) or next(letters, "")
        if not all(known[key] for key in keys):
            break
        found[token.text] = [known[key] for key in keys]
    return found


def _is_name(part: list[Token]) -> bool:
    return [token.type for token in part] == ["NAME"]


def untyped(name: Token, sizes: list[str], before: list[Token], bracketed: AbstractSet[str]) -> Diagnostic:
    """`b` as a parameter, also in `float(N) a, b`, where it has the type of the one before.

    Args:
        sizes: those that its use in the body suggests.
        before: the parameter before; nothing where that has no type.
        bracketed: names that are read with brackets.
    """
    written = _written(name.text, sizes)
    if before:
        count = len(split_commas(before[2:-2])) if len(before) > 2 else 0
        is_same = count == len(sizes) if name.text in bracketed else before[-1].text not in bracketed
        kind = before[:-1] if is_same else before[:1]
        written = f"{text_of(kind)} {name.text}" if is_same or not sizes else written
    help = f"a parameter is a type and a name, as in `{written}`"
    fix = Fix(f"write `{written}`", (Edit(name.span, written),))
    return Diagnostic(codes.SYNTAX_ERROR, name.span, f"`{shorten(name.text)}` has no type", help=help, fix=fix)


def unnamed(piece: list[Token], target: str | None) -> tuple[list[Token], Diagnostic] | None:
    """`-> float[N]` or `-> np.ndarray`, a result without a name; `target` is what the last statement writes.

    Returns:
        The tokens that were meant, if they are known, and what to say; `None` if this is something else.
    """
    kinds = [token.type for token in piece]
    known = _type(piece) if kinds[0] == "SCALAR" and kinds[-1] in ("SCALAR", "RPAR", "RSQB") else None
    generic = kinds[0] == "NAME" and kinds[-1] == "RSQB"  # `Float[Array, "N M"]`
    if known is None and not generic and piece[-1].text not in (*ARRAY_TYPES, "None"):
        return None
    span = Span(piece[0].start, piece[-1].end)
    message, help = "a result has a name", "a result is a name that statements write, as in `-> (Y)`"
    if target is None:
        return [], Diagnostic(codes.SYNTAX_ERROR, span, message, help=help)
    name = Token("NAME", target, span.start, span.end)
    text = f"{known[1]} {target}" if known else target
    fix = Fix(f"write `{text}`", (Edit(span, text),))
    return [*(known[0] if known else []), name], Diagnostic(codes.SYNTAX_ERROR, span, message, help=help, fix=fix)


def _adjacent(before: Token, token: Token) -> bool:
    return before.type in ENDS_EXPRESSION and token.type in STARTS_EXPRESSION


def _missing_operator(
    piece: list[Token], position: int, tensors: AbstractSet[str], extents: Mapping[tuple[str, int], str]
) -> Diagnostic:
    before, token = piece[position - 1], piece[position]
    end = operand_end(piece, position)
    word = reducing(before.text)
    if before.text in CHOOSING and (found := _choice(piece, position - 1)):
        return found
    if before.text == "let":
        return _let(piece, position)
    called = _called(piece, position, tensors)
    if called is not None and _has_all_indices(piece, position, called, extents):
        called = None  # `X(i)(1 - X(i))` is a product
    if called is not None and called.text in tensors:
        fix = Fix("write `,`", (Edit(Span(before.start, token.end), ", "),))
        message = "all indices of a tensor stand in one pair of brackets"
        return Diagnostic(codes.SYNTAX_ERROR, token.span, message, help="as in `X(i, j)`", fix=fix)
    if called is not None:
        instead = REDUCING.get(reducing(called.text) or "") or (
            INSTEAD[called.text].help if called.text in INSTEAD else None
        )
        message = f"what `{called.text}(...)` gives has no elements here"
        help = instead or f"write a statement `T = {called.text}(...)` before this one and read `T` here"
        place, fix = Span(called.start, before.end), _running(piece, position, called)
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)
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
        while end + 1 < len(piece) and piece[end].type == "FACTOR":
            end = operand_end(piece, end + 1)
        ends = end == len(piece) or piece[end].type == "WHERE"
        if position > 1 and piece[position - 2].type == "ASSIGN" and word in OPERATORS and ends:
            edits = Edit(piece[position - 2].span, OPERATORS[word]), Edit(Span(before.start, token.start), "")
            fix = Fix(f"replace `=` by `{OPERATORS[word]}`", edits)
        return Diagnostic(
            codes.SYNTAX_ERROR, before.span, f"`{before.text}` is no operator", help=REDUCING[word], fix=fix
        )
    if before.type == "NUMBER" and [each.type for each in piece[position : position + 2]] == ["LPAR", "RPAR"]:
        fix = Fix("delete them", (Edit(Span(token.start, piece[position + 1].end), ""),))
        message = f"`{shorten(before.text)}` is a number, and takes no argument"
        return Diagnostic(codes.SYNTAX_ERROR, token.span | piece[position + 1].span, message, fix=fix)
    if token.text == "end" and position + 1 == len(piece):
        help = "a def ends with `}`"
        fix = Fix("delete it", (Edit(token.span, ""),))
        return Diagnostic(codes.SYNTAX_ERROR, token.span, "there is no `end`", help=help, fix=fix)
    if token.text == "as" and position + 1 < len(piece) and piece[position + 1].type == "SCALAR":
        return suffix_cast(piece, position)
    fix = None
    touching = token.start == before.end > before.start
    if before.type in ("INTEGER", "NUMBER") or token.type == "LPAR" or touching:
        fix = Fix("multiply", (Edit(Span(before.end, before.end), " *" if token.start > before.end else " * "),))
    if before.type == token.type == "NAME" and fix is None and (opened := _unclosed(piece[:position])) is not None:
        start = piece.index(opened)
        if start and piece[start - 1].text in tensors and piece[start - 1].text not in (before.text, token.text):
            fix = Fix("write `,`", (Edit(Span(before.end, before.end), ","),))
            message = f"`,` is missing between `{shorten(before.text)}` and `{shorten(token.text)}`"
            return Diagnostic(codes.SYNTAX_ERROR, token.span, message, "before this", fix=fix)
    if before.type == token.type == "NAME" and position == 1 and before.text not in tensors and token.text in tensors:
        help = "it begins with what it writes, as in `Y(i) = X(i)`; what is to be done besides is done in Python, with the results"
        message = f"no statement begins with `{shorten(before.text)}`"
        return Diagnostic(codes.SYNTAX_ERROR, before.span, message, help=help)
    message = f"an operator is missing between `{shorten(before.text)}` and `{shorten(token.text)}`"
    help = "a product is written with `*`"
    if token.type == "LPAR" and (name := _power_of(piece, position)) is not None and name.text not in tensors:
        help = f"how often a def is applied is a size, an integer scalar or a literal, as in `{name.text}^3(X)`"
        fix = None
    return Diagnostic(codes.SYNTAX_ERROR, token.span, message, "before this", help=help, fix=fix)


def _has_all_indices(piece: list[Token], position: int, called: Token, extents: Mapping[tuple[str, int], str]) -> bool:
    """Whether the bracket before a place holds an index for each dimension of a tensor of known rank."""
    rank = ranks_of([called], extents).get(called.text)
    return rank is not None and len(split_commas(piece[piece.index(called) + 2 : position - 1])) >= rank


def _running(piece: list[Token], position: int, called: Token) -> Fix | None:
    """`Y(i) = (Y(i - 1) else 0) + X(i) along i` instead of `Y(i) = cumsum(X)(i)`, whose second bracket opens at `position`."""
    running = RUNNING.get(called.text)
    if running is None:
        return None
    start, end = piece.index(called), operand_end(piece, position - 1)
    kinds = [token.type for token in piece]
    named = kinds[start + 1 : position] == ["LPAR", "NAME", "RPAR"] and kinds[:2] == ["NAME", "LPAR"]
    whole = kinds[start - 2 : start] == ["RPAR", "ASSIGN"] and (end == len(piece) or kinds[end] == "WHERE")
    left = [text_of(each) for each in split_commas(piece[2 : start - 2])]
    same = left == [text_of(each) for each in split_commas(piece[position + 1 : end - 1])]
    if not (named and whole and same) or len(left) != 1 or "ALONG" in kinds:
        return None
    text = running.text(piece[0].text, left, 0, f"{piece[start + 2].text}({left[0]})")
    return Fix("go on from the element before", (Edit(Span(called.start, piece[end - 1].end), text),))


def _let(piece: list[Token], position: int) -> Diagnostic:
    """`Y(i) = let s = X(i) in s * s`, which is `Y(i) = s * s where s = X(i)`."""
    word = piece[position - 1]
    body = next((i for i in range(position, len(piece)) if piece[i].text == "in"), len(piece))
    named = [token.type for token in piece[position : position + 2]] == ["NAME", "ASSIGN"]
    fix = None
    whole = position > 1 and piece[position - 2].type in ("ASSIGN", "UPDATE")
    if named and whole and position + 2 < body < len(piece) - 1 and all(token.type != "WHERE" for token in piece):
        value = text_of(piece[position + 2 : body])
        taken = Edit(Span(word.start, piece[body + 1].start), "")
        last = piece[-1].end
        fix = Fix(
            "name it behind the value", (taken, Edit(Span(last, last), f" where {piece[position].text} = {value}"))
        )
    message = "a value is named behind the expression that it is in, and `let` is not written"
    help = "as in `Y(i) = s * s where s = X(i)`"
    return Diagnostic(codes.SYNTAX_ERROR, word.span, message, help=help, fix=fix)


def _power_of(piece: list[Token], position: int) -> Token | None:
    """The name of `f` in `f^n(X)`, `f^(n + 1)(X)`, `f^-1(X)` and `f^1.5(X)`, where the last bracket opens at `position`."""
    start = position - 1
    if piece[start].type == "RPAR":
        start = next((opening for opening, closing in closers(piece).items() if closing == start), 0)
    if start and piece[start - 1].type == "MINUS":
        start -= 1
    is_power = start > 1 and piece[start - 1].type == "POWER" and piece[start - 2].type == "NAME"
    return piece[start - 2] if is_power else None


def _called(piece: list[Token], position: int, tensors: AbstractSet[str]) -> Token | None:
    """What is called in `f(X)(i)` and in `f^n(X)(i)`, where the second bracket opens at `position`: `f`, or `f^n`."""
    if piece[position].type != "LPAR" or piece[position - 1].type != "RPAR":
        return None
    start = next(opening for opening, closing in closers(piece).items() if closing == position - 1)
    power = _power_of(piece, start) if start else None
    if power is not None and power.text not in tensors:
        return Token("NAME", f"{power.text}^{piece[start - 1].text}", power.start, piece[start - 1].end)
    return piece[start - 1] if start and piece[start - 1].type in ("NAME", "MINMAX") else None


def expectation(accepted: AbstractSet[str], what: str = "statement") -> str | None:
    """What may stand at a place, in words; a parameter or result (`what`) ends where the next one begins, or the list ends."""
    rest = set(accepted)
    words: list[str] = []
    if {"LPAR", "INTEGER", "NAME"} <= rest:
        words.append("an expression")
        rest -= {"LPAR", "INTEGER", "NUMBER", "NAME", "DIGIT_NAME", "SCALAR", "MINMAX", "MINUS", "BANG", "TILDE"}
    if "FACTOR" in rest:
        words.append("an operator")
        rest -= {"RELATION", "EQUALITY", "AND", "OR", "SIGN", "MINUS", "FACTOR", "QUESTION", "MATCH", "DIMENSION"}
        rest -= {"POWER", "SHIFT", "BITAND", "XOR", "BITOR"}
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
