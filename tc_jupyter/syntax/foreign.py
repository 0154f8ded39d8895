"""Messages about spellings of other languages: attributes, casts, loops, declarations, conditions for ranges.

Worked example: in `Y(i) = (float)X(i)` the grammar refuses `)` behind `float`; the fix writes `float(X(i))`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes, nearest

from .library_names import INSTEAD, METHODS, REDUCING, RENAMED, TYPES, depends_on_types, reducing
from .mended import mended
from .recovery import (
    DECLARING,
    BlockTokens,
    behind_declaration,
    closers,
    enclosed,
    is_command,
    is_scheduled,
    split_commas,
)
from .tokens import ENDS_EXPRESSION, STARTS_EXPRESSION, Token, is_own

_DERIVATIVES = ("vjp", "jvp", "grad", "gradient", "backward", "derivative")
_PAIR = ["LPAR", "NAME", "COMMA", "NAME", "RPAR"]


def attribute(piece: list[Token], position: int) -> Diagnostic:
    """`X.T`, `X.shape`, `X(i).sqrt()`."""
    dot, after = piece[position], piece[position + 1] if position + 1 < len(piece) else None
    start, kinds = _operand_start(piece, position), [token.type for token in piece[position + 2 : position + 5]]
    if after is not None and after.type == "SCALAR" and start is not None and kinds[:2] == ["LPAR", "RPAR"]:
        return _method_cast(piece, position, start, after.text, position + 3)
    if after is None or after.type not in ("NAME", "MINMAX"):
        help = "the extent of dimension 0 of `X` is `X.0`"
        return Diagnostic(codes.SYNTAX_ERROR, dot.span, "`.` is followed by no dimension", help=help)
    fix, word, place = None, reducing(after.text), Span(dot.start, after.end)
    help = REDUCING[word] if word else INSTEAD[after.text].help if after.text in INSTEAD else None
    if after.text == "view" and not _is_of_type(piece[position + 2 :]):
        help = INSTEAD["reshape"].help
    called = 2 if after.text == "t" and kinds[:2] == ["LPAR", "RPAR"] else 0
    is_transposed, behind = after.text == "T" or called, position + 2 + called
    name = RENAMED.get(after.text, after.text)
    if help is None and kinds[:2] == ["LPAR", "RPAR"] and start is not None and name in METHODS:
        opening, closing = (name, "") if piece[start].type == "LPAR" else (f"{name}(", ")")
        first = Edit(Span(piece[start].start, piece[start].start), opening)
        fix = Fix(f"write `{name}(...)`", (first, Edit(Span(dot.start, piece[position + 3].end), closing)))
    elif after.text in ("astype", "to", "type") and kinds[:3] == ["LPAR", "SCALAR", "RPAR"] and start is not None:
        return _method_cast(piece, position, start, piece[position + 3].text, position + 4)
    elif after.text == "shape" and kinds == ["LSQB", "INTEGER", "RSQB"]:
        dimension = piece[position + 3].text
        fix = Fix(f"write `.{dimension}`", (Edit(Span(dot.start, piece[position + 4].end), f".{dimension}"),))
    elif is_transposed and [token.type for token in piece[behind : behind + 5]] == _PAIR:
        text = f"({piece[behind + 3].text}, {piece[behind + 1].text})"
        edit = Edit(Span(dot.start, piece[behind + 4].end), text)
        fix = Fix(f"write `{text}`", (edit,))
    elif is_transposed and behind == len(piece) and [each.type for each in piece[:3]] == ["NAME", "ASSIGN", "NAME"]:
        i, j = [each for each in "ijklm" if each not in (piece[0].text, piece[2].text)][:2]
        edits = (
            Edit(Span(piece[0].end, piece[0].end), f"({i}, {j})"),
            Edit(Span(dot.start, piece[-1].end), f"({j}, {i})"),
        )
        fix = Fix(f"write `({i}, {j})` and `({j}, {i})`", edits)
    if fix is None and (after.text in _DERIVATIVES or nearest(after.text, _DERIVATIVES) is not None):
        help = "the derivatives of a def are called, as in `f.vjp(X, dY)` and `f.jvp(X, dX)`"
    if fix is None and kinds[:2] == ["LPAR", "RPAR"] and start is not None and not word and after.text in INSTEAD:
        value = text_of(piece[start:position])
        text = None if depends_on_types(after.text) else INSTEAD[after.text].text([value], [value])
        whole = Span(piece[start].start, piece[position + 3].end)
        fix = None if text is None else Fix(f"write `{text}`", (Edit(whole, text),))
    if help is None:
        renamed = RENAMED.get(after.text)
        help = "there are no methods: functions stand before their argument, as in `sqrt(X(i))`"
        help = f"there are no methods: write `{renamed}(x)`" if renamed else help
    return Diagnostic(codes.SYNTAX_ERROR, place, f"there is no `.{after.text[:40]}`", help=help, fix=fix)


def _is_of_type(tokens: list[Token]) -> bool:
    """Whether the only argument in brackets is a type, or a text that may name one; sizes are others."""
    inside = tokens[1 : closers(tokens).get(0, 1)]
    value = inside[2:] if [token.type for token in inside[:2]] == ["NAME", "ASSIGN"] else inside
    return len(value) == 1 and (value[0].type in ("SCALAR", "ERROR") or value[0].text in TYPES)


def _method_cast(piece: list[Token], position: int, start: int, kind: str, end: int) -> Diagnostic:
    """`X(i).astype(float)` and `X(i).float()`."""
    dot, opening = piece[position], piece[start].type == "LPAR"
    first = Edit(Span(piece[start].start, piece[start].start), kind if opening else f"{kind}(")
    fix = Fix(f"write `{kind}(...)`", (first, Edit(Span(dot.start, piece[end].end), "" if opening else ")")))
    help, place = f"a cast is written like a call, as in `{kind}(x)`", Span(dot.start, piece[position + 1].end)
    return Diagnostic(codes.SYNTAX_ERROR, place, f"there is no `.{piece[position + 1].text}`", help=help, fix=fix)


def _operand_start(piece: list[Token], end: int) -> int | None:
    """Where the operand that ends before `end` starts."""
    if piece[end - 1].type != "RPAR":
        return end - 1
    start = next((opening for opening, closing in closers(piece).items() if closing == end - 1), None)
    named = start is not None and start > 0 and piece[start - 1].type in ("NAME", "MINMAX", "SCALAR")
    return start - 1 if named and start is not None else start


def prefix_cast(piece: list[Token], position: int) -> Diagnostic:
    """`(float)X(i)`."""
    kind, follows = piece[position - 1].text, position + 1
    fix = None
    if follows < len(piece) and piece[follows].type in STARTS_EXPRESSION:
        last = piece[operand_end(piece, follows) - 1].end
        bracketed = piece[follows].type == "LPAR"
        edits = [Edit(Span(piece[position - 2].start, piece[follows].start), kind if bracketed else f"{kind}(")]
        edits += [] if bracketed else [Edit(Span(last, last), ")")]
        fix = Fix(f"write `{kind}(...)`", tuple(edits))
    place = Span(piece[position - 2].start, piece[position].end)
    return Diagnostic(codes.SYNTAX_ERROR, place, f"a cast is written like a call, as in `{kind}(x)`", fix=fix)


def suffix_cast(piece: list[Token], position: int) -> Diagnostic:
    """`X(i) as int`."""
    kind, start = piece[position + 1], _operand_start(piece, position)
    place, fix = Span(piece[position].start, kind.end), None
    if start is not None:
        bracketed = piece[start].type == "LPAR"
        first = Edit(Span(piece[start].start, piece[start].start), kind.text if bracketed else f"{kind.text}(")
        last = Edit(Span(piece[position - 1].end, kind.end), "" if bracketed else ")")
        fix = Fix(f"write `{kind.text}(...)`", (first, last))
    message = f"a cast is written like a call, as in `{kind.text}(x)`"
    return Diagnostic(codes.SYNTAX_ERROR, place, message, fix=fix)


def prefix_choice(piece: list[Token], position: int) -> Diagnostic | None:
    """`if (c) a else b` and `if c then a else b`, which are `c ? a : b`; `None` if `position` is not in one."""
    starts = (
        i
        for i in range(min(position, len(piece) - 1), 0, -1)
        if piece[i].text == "if" and piece[i - 1].type not in ENDS_EXPRESSION
    )
    start = next(starts, None)
    if start is None or start + 2 >= len(piece):
        return None
    pairs, words, end, i = closers(piece), dict[str, int](), len(piece), start + 1
    while i < len(piece):
        if piece[i].type in ("RPAR", "COMMA", "WHERE", "MATCH"):
            end = i
            break
        if piece[i].text in ("then", "else"):
            words.setdefault(piece[i].text, i)
        i = pairs.get(i, i) + 1
    close = words.get("then") or pairs.get(start + 1, 0) + 1
    middle = words.get("else", 0)
    if position < start or close < start + 2 or not close < middle < end - 1:
        return None
    then = close + (piece[close].text == "then")
    if then == middle:
        return None
    edits = (
        Edit(Span(piece[start].start, piece[start + 1].start), ""),
        Edit(Span(piece[close - 1].end, piece[then].start), " ? "),
        Edit(piece[middle].span, ":"),
    )
    help, fix = "a choice is written `condition ? value : other`", Fix("write it with `? :`", edits)
    return Diagnostic(codes.SYNTAX_ERROR, piece[start].span, "unexpected `if`", help=help, fix=fix)


def where_range(piece: list[Token], position: int) -> Diagnostic | None:
    """`i in range(N)`, `i < N`, `0 <= i < N`, `i = 0:N`, `i from 0 to N`, `i in 0:N:2` and a missing `,` in a `where`."""
    where = next((i for i, token in enumerate(piece) if token.type == "WHERE"), len(piece))
    if (found := _second_where(piece, where)) is not None:
        return found
    pairs, cuts, i = closers(piece), [where], where + 1
    while i < len(piece):
        if piece[i].type == "COMMA":
            cuts.append(i)
        i = pairs.get(i, i) + 1
    first = max((cut for cut in cuts if cut < position), default=len(piece)) + 1
    clause = piece[first : min((cut for cut in cuts if cut > first), default=len(piece))]
    if not clause:
        return None
    found = _without_comma(clause) or _bracketed(clause) or _stepped(piece, clause)
    if found is not None:
        return found
    edits = _counted(clause) if len(clause) > 3 and clause[2].text in RANGES else _spelled(clause) or _compared(clause)
    if edits is None:
        return None
    span = Span(clause[0].start, clause[-1].end)
    help = "a range includes its lower and excludes its upper end; a condition leaves points out"
    fix = Fix("write a range", tuple(edits)) if edits else None
    return Diagnostic(codes.RANGE_BRACKETS, span, "a range is written `k in a:b` or `k = [a, b[`", help=help, fix=fix)


def _second_where(piece: list[Token], first: int) -> Diagnostic | None:
    """`where i in 0:N where j in 0:M`; `None` if there is no second `where`."""
    pairs, places, i = closers(piece), list[int](), first + 1
    while i < len(piece):
        if piece[i].type == "WHERE" and piece[i - 1].type in (*ENDS_EXPRESSION, "COMMA", "LSQB"):
            places.append(i)
        i = pairs.get(i, i) + 1
    if not places or places[-1] + 1 >= len(piece):
        return None
    edits = [Edit(Span(piece[i - 1].end, piece[i].end), "" if piece[i - 1].type == "COMMA" else ",") for i in places]
    message, help = (
        "a second `where` in one statement",
        "clauses are separated by `,`, as in `where i in 0:N, j in 0:M`",
    )
    fix = Fix("write `,`", tuple(edits))
    return Diagnostic(codes.SYNTAX_ERROR, piece[places[0]].span, message, help=help, fix=fix)


def _without_comma(clause: list[Token]) -> Diagnostic | None:
    """`x = 2 i in 0:3`: the next clause begins without a comma before it; `None` if this is something else."""
    pairs, edits, i = closers(clause), list[Edit](), 0
    begins = list[Token]()
    while i < len(clause):
        clause_begins = clause[i].type == "EXISTS" or (
            clause[i].type == "NAME" and i + 1 < len(clause) and clause[i + 1].type in ("IN", "ASSIGN")
        )
        joined = i > 1 and (clause[i - 1].type == "AND" or clause[i - 1].text == "and")
        if clause_begins and joined:
            edits.append(Edit(Span(clause[i - 2].end, clause[i - 1].end), ","))
            begins.append(clause[i - 1])
        elif i and clause_begins and clause[i - 1].type in ENDS_EXPRESSION:
            edits.append(Edit(Span(clause[i - 1].end, clause[i - 1].end), ","))
            begins.append(clause[i])
        i = pairs.get(i, i) + 1
    if not edits:
        return None
    message, fix = "`,` is missing between two clauses of `where`", Fix("insert `,`", tuple(edits))
    return Diagnostic(codes.SYNTAX_ERROR, begins[0].span, message, "before this", fix=fix)


def _bracketed(clause: list[Token]) -> Diagnostic | None:
    """`(i in 0:N)` and `i in [0:N]`; `None` if this is something else."""
    kinds, pairs = [token.type for token in clause], closers(clause)
    start = 2 if kinds[1:2] == ["IN"] else 0
    inside = clause[start + 1 : -1]
    if pairs.get(start) != len(clause) - 1 or not inside or kinds[start] not in ("LPAR", "LSQB"):
        return None
    if [token.type for token in inside].count("COLON") != 1 or any(
        token.type in ("QUESTION", "COMMA") for token in inside
    ):
        return None
    if not start and [token.type for token in inside[:2]] != ["NAME", "IN"]:
        return None
    edits = Edit(clause[start].span, ""), Edit(clause[-1].span, "")
    message = "a range is written `k in a:b` or `k = [a, b[`"
    place = Span(clause[0].start, clause[-1].end)
    return Diagnostic(codes.RANGE_BRACKETS, place, message, fix=Fix("leave out the brackets", edits))


CHOOSING = ("if", "when", "unless")
"""Words behind a value, before a condition."""
_NEUTRAL = {"+=!": "0", "+=": "0", "*=!": "1", "*=": "1"}  # those of minima and maxima depend on the type


def chosen(piece: list[Token], word: int, condition: list[Token], message: str) -> Diagnostic:
    """A condition behind a value, after `where` or `if` at `word`: the fix puts it before the value."""
    assign = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), len(piece))
    other = _NEUTRAL.get(piece[assign].text) if assign + 1 < word else None
    alone = condition[-1] is piece[-1] and condition[0] is piece[word + 1]
    help, fix = "a choice is written `condition ? value : other`", None
    if other is not None and alone:
        value = piece[assign + 1 : word]
        before = Edit(Span(value[0].start, value[0].start), f"{condition_of(piece[word], condition)} ? ")
        fix = Fix("write it with `? :`", (before, Edit(Span(value[-1].end, condition[-1].end), f" : {other}")))
    place = Span(condition[0].start, condition[-1].end) if piece[word].type == "WHERE" else piece[word].span
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)


def condition_of(word: Token, condition: list[Token]) -> str:
    """The text of a condition behind a word, which `unless` negates."""
    text = text_of(condition)
    if word.text != "unless":
        return text
    return f"!{text}" if operand_end(condition, 0) == len(condition) else f"!({text})"


def behind(piece: list[Token], position: int) -> Diagnostic | None:
    """`X(i, j) for j in 0:M` and `X(i, j), j in 0:M`, where `where` is missing, and `X(i) if X(i) > 0`; `None` otherwise."""
    token, rest = piece[position], piece[position + 1 :]
    if (
        any(each.type == "WHERE" for each in piece)
        or not rest
        or closers(piece[:position]).keys()
        != {i for i, each in enumerate(piece[:position]) if each.type in ("LPAR", "LSQB")}
    ):
        return None
    if token.text in CHOOSING and all(each.text != "else" for each in rest):
        return chosen(piece, position, rest, f"unexpected `{token.text}`")
    ranged = [each.type for each in rest[:2]] == ["NAME", "IN"]
    if not ranged or not (token.type == "COMMA" or token.text in ("for", "over", "forall")):
        return None
    place = Span(piece[position - 1].end, token.end)
    edits = [Edit(place, " where")]
    clause = rest
    if (counted := _counted(clause) if clause[2:3] and clause[2].text in RANGES else None) is not None:
        edits += counted
    help = "a range is given with `where k in a:b`"
    return Diagnostic(
        codes.SYNTAX_ERROR, token.span, f"unexpected `{token.text}`", help=help, fix=Fix("write `where`", tuple(edits))
    )


def _stepped(piece: list[Token], clause: list[Token]) -> Diagnostic | None:
    """`i in 0:N:2` and `i in range(0, N, 2)`; `None` if there is no step."""
    pairs, outside, i = closers(clause), list[int](), 2
    if len(clause) < 5 or clause[0].type != "NAME" or clause[1].type not in ("IN", "ASSIGN"):
        return None
    counted = clause[2].text in RANGES and pairs.get(3) == len(clause) - 1
    i = 4 if counted else i
    while i < len(clause):
        outside.append(i)
        i = pairs.get(i, i) + 1
    between = [i for i in outside if clause[i].type == ("COMMA" if counted else "COLON")]
    between += [i for i in outside[2:] if clause[i].text in ("step", "by") and clause[i - 1].type in ENDS_EXPRESSION]
    if len(between) != 2 or any(clause[i].type == "QUESTION" for i in outside):
        return None
    name, place = clause[0].text, Span(clause[0].start, clause[-1].end)
    lower, upper = clause[outside[0] : between[0]], clause[between[0] + 1 : between[1]]
    step = clause[between[1] + 1 : len(clause) - counted]
    help, fix = f"let the index count the steps, as in `X(2 * {name}) where {name} in 0:(N + 1) / 2`", None
    if lower and upper and len(step) == 1 and _is_step(upper, step[0], counted):
        value, count = _of_steps(name, lower, int(step[0].text)), _count(lower, upper, int(step[0].text))
        help = f"let the index count the steps, as in `X({value}) where {name} in 0:{count}`"
        edits = [*_replaced(piece, clause, name, value), Edit(place, f"{name} in 0:{count}")]
        assigned = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), 0)
        on_left = any(token.text == name for token in piece[:assigned])  # where it may mean that elements are left out
        fix = None if on_left else Fix("count the steps", tuple(edits))
    return Diagnostic(codes.RANGE_BRACKETS, place, "a range has no step", help=help, fix=fix)


def _is_step(upper: list[Token], step: Token, counted: bool) -> bool:
    """Whether the step stands last, as in Python, and not in the middle, as in MATLAB."""
    known = step.type == "INTEGER" and step.text.isdigit() and 0 < len(step.text) < 10 and step.text[0] != "0"
    number = upper[0].text if len(upper) == 1 and upper[0].text.isdigit() else None
    return known and (counted or number is None or int(number) > int(step.text))


def _of_steps(name: str, lower: list[Token], step: int) -> str:
    """The value of the index after so many steps."""
    value, start = f"{step} * {name}" if step > 1 else name, text_of(lower)
    return value if start == "0" else f"{value} + {start}"


def _count(lower: list[Token], upper: list[Token], step: int) -> str:
    """How many steps a range has, which is rounded up."""
    start, end = text_of(lower), text_of(upper)
    if start.isdigit() and end.isdigit():
        return str(max(0, -((int(start) - int(end)) // step)))
    more = step - 1 - int(start) if start.isdigit() else step - 1
    end += "" if start.isdigit() else f" - {start}" if len(lower) == 1 else f" - ({start})"
    end += f" + {more}" if more > 0 else f" - {-more}" if more < 0 else ""
    return end if step == 1 else f"({end}) / {step}" if " " in end else f"{end} / {step}"


_CLOSES = ("RPAR", "RSQB", "COMMA")


def _replaced(piece: list[Token], clause: list[Token], name: str, value: str) -> list[Edit]:
    """Write the value wherever a name stands outside its clause, in brackets where operators beside it would take it apart."""
    edits: list[Edit] = []
    for i, token in enumerate(piece):
        if token.text != name or clause[0].start <= token.start < clause[-1].end:
            continue
        before, after = piece[i - 1], piece[i + 1].type if i + 1 < len(piece) else "COMMA"
        free = before.type in ("LPAR", "LSQB", "COMMA", "ASSIGN", "UPDATE") or before.text == "+"
        alone = value == name or (free and after in (*_CLOSES, "SIGN", "MINUS", "WHERE"))
        edits += [] if value == name else [Edit(token.span, value if alone else f"({value})")]
    return edits


RANGES = frozenset({"range", "arange", "xrange", "prange"})
"""Functions that make ranges."""


def _counted(clause: list[Token]) -> list[Edit] | None:
    """Edits that make `i in range(a, b)` a range; none where it has a step, `None` if it is something else."""
    close = closers(clause).get(3)
    if clause[1].type != "IN" or close is None or close != len(clause) - 1:
        return None
    commas = [token for token in clause[4:close] if token.type == "COMMA"]
    if len(clause) < 6:
        return []
    opening = Edit(Span(clause[2].start, clause[3].end), "" if commas else "0:")
    middle = [Edit(Span(token.start, clause[clause.index(token) + 1].start), ":") for token in commas]
    return [opening, *middle, Edit(clause[close].span, "")]


def _spelled(clause: list[Token]) -> list[Edit] | None:
    """Edits that make `i = a:b`, `i from a to b` and `i in a to b` a range; `None` if it is something else."""
    if len(clause) < 5 or clause[0].type != "NAME":
        return None
    begins, pairs = clause[1], closers(clause)
    inside = enclosed(pairs)
    outside = [i for i in range(2, len(clause)) if i not in inside]
    ends = [i for i in outside if clause[i].type == "COLON" or clause[i].text in ("to", "until", "till")]
    known = begins.type in ("ASSIGN", "IN") or begins.text == "from"
    choice = any(clause[i].type == "QUESTION" for i in outside)
    if not known or choice or len(ends) != 1 or not 2 < ends[0] < len(clause) - 1:
        return None
    end = clause[ends[0]]
    if begins.type == "IN" and end.type == "COLON":
        return None
    between = Edit(Span(clause[ends[0] - 1].end, clause[ends[0] + 1].start), ":")
    return [*([] if begins.type == "IN" else [Edit(begins.span, "in")]), *([] if end.type == "COLON" else [between])]


def _compared(clause: list[Token]) -> list[Edit] | None:
    """Edits that make `i < n` or `a <= i < n` a range; none where an end is missing, `None` if it is something else."""
    places = [i for i, token in enumerate(clause) if token.type == "RELATION"]
    simple = all(token.type not in ("QUESTION", "EQUALITY", "AND", "OR", "IN") for token in clause)
    name = clause[places[0] - 1 if len(places) == 1 else places[0] + 1] if places else clause[0]
    middle = places == [1] or (len(places) == 2 and places[0] > 0 and places[1] - places[0] == 2)
    if not middle or not simple or name.type != "NAME" or places[-1] + 1 >= len(clause):
        return None
    if any(clause[i].text not in ("<", "<=") for i in places):
        return []
    upper = clause[places[-1] + 1 :]
    more = [_one_more(upper)] if clause[places[-1]].text == "<=" else []
    if len(places) == 1:
        return [Edit(Span(name.end, upper[0].start), " in 0:"), *more]
    lower = clause[: places[0]]
    more += [_one_more(lower)] if clause[places[0]].text == "<" else []
    between = Edit(Span(lower[-1].end, upper[0].start), ":")
    return [Edit(Span(lower[0].start, lower[0].start), f"{name.text} in "), *more, between]


def _one_more(bound: list[Token]) -> Edit:
    if len(bound) == 1 and bound[0].text.isdigit():
        return Edit(bound[0].span, str(int(bound[0].text) + 1))
    return Edit(Span(bound[-1].end, bound[-1].end), " + 1")


def declared(piece: list[Token]) -> tuple[list[Token], Diagnostic] | None:
    """The tokens after `let` or a type at the start of a statement, which none has, and what to say; `None` if there are none."""
    count = behind_declaration(piece, 0, closers(piece))
    rest = piece[count:]
    if not count or (rest and rest[0].type != "NAME"):
        return None
    place = Span(piece[0].start, piece[count - 1].end)
    kinds = [token for token in piece[:count] if token.type == "SCALAR" or token.text in DECLARING]
    words = " ".join(token.text for token in kinds)
    if rest and all(token.type not in ("ASSIGN", "UPDATE") for token in rest):
        message = f"no statement begins with `{words}`"
        fix = Fix("leave it out", (Edit(Span(piece[0].start, piece[-1].end), ""),))
        help = "indices and tensors need no declaration"
        return [], Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)
    where = next((i for i, token in enumerate(rest) if token.type == "WHERE"), len(rest))
    if len(split_commas(rest[:where])) > 1:
        help = "one statement writes each of them, and needs no declaration"
        message = f"no statement begins with `{words}`"
        return [], Diagnostic(codes.SYNTAX_ERROR, place, message, help=help)
    edits = [Edit(Span(place.start, rest[0].start if rest else place.end), "")]
    assign = next((i for i, token in enumerate(rest) if token.type == "ASSIGN"), where)
    kind, value = kinds[-1], rest[assign + 1 : where]
    if kind.type == "SCALAR" and value:
        edits += [
            Edit(Span(value[0].start, value[0].start), f"{kind.text}("),
            Edit(Span(value[-1].end, value[-1].end), ")"),
        ]
    help = "what is assigned is a tensor of the type of its value; without indices it is a number"
    message = f"no statement begins with `{words}`"
    return rest, Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=Fix("leave it out", tuple(edits)))


_NAMING = frozenset({"let", "auto", "const", "val", "var", "int", "int32", "int64"})
_OF_SIZES = frozenset({"NAME", "INTEGER", "SIGN", "MINUS", "FACTOR", "LPAR", "RPAR", "DIMENSION"})


def lets(
    body: list[list[Token] | BlockTokens], sizes: AbstractSet[str], known: AbstractSet[str]
) -> tuple[list[list[Token] | BlockTokens], list[Diagnostic]]:
    """The body with `where n = N - 1` in the statements that read what `let n = N - 1` names, and what to say.

    Args:
        sizes: those of the def, of which the value is made.
        known: the words in its header.
    """
    statements = [each for each in body if not isinstance(each, BlockTokens)]
    if len(statements) < len(body) or not any(each[0].text in _NAMING for each in statements):
        return body, []
    uses: dict[str, list[int]] = {}
    for place, each in enumerate(statements):
        for text in {token.text for token in each if token.type == "NAME"}:
            uses.setdefault(text, []).append(place)
    told, clauses = list[int](), dict[int, list[str]]()
    for place, each in enumerate(statements):
        name, value = _named_size(each, sizes)
        users = [i for i in uses.get(name, []) if i != place]
        is_written = any(statements[i][0].text in (name, *_NAMING) for i in users)
        if users and min(users) > place and not is_written and name not in known:
            told.append(place)
            for i in users:
                clauses.setdefault(i, []).append(f"{name} = {value}")
    if not told:
        return body, []
    edits = [Edit(Span(statements[i][0].start, statements[i][-1].end), "") for i in told]
    found: list[list[Token] | BlockTokens] = [*statements]
    for i, texts in clauses.items():
        where = next((token for token in statements[i] if token.type == "WHERE"), None)
        end, text = statements[i][-1].end, ", ".join(texts)
        own = Edit(Span(where.end, where.end), f" {text},") if where else Edit(Span(end, end), f" where {text}")
        found[i] = mended(statements[i], Fix("", (own,))) or statements[i]
        edits.append(own)
    first = statements[told[0]]
    first = first[: behind_declaration(first, 0, closers(first))]
    message, place = f"no statement begins with `{text_of(first)}`", Span(first[0].start, first[-1].end)
    help = "`where` names values, as in `Y(i) = X(n - i) where n = N - 1`"
    fix = Fix("name it where it is used", tuple(edits))
    said = Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)
    return [each for i, each in enumerate(found) if i not in told], [said]


def _named_size(piece: list[Token], sizes: AbstractSet[str]) -> tuple[str, str]:
    """The name and the value in `let n = N - 1`; nothing where the value is made of something else."""
    rest = piece[behind_declaration(piece, 0, closers(piece)) :] if piece[0].text in _NAMING else []
    names = [token.text for token in rest[2:] if token.type == "NAME"]
    plain = [token.type for token in rest[:2]] == ["NAME", "ASSIGN"] and bool(names) and set(names) <= sizes
    of_sizes = plain and all(token.type in _OF_SIZES for token in rest[2:])
    return (rest[0].text, text_of(rest[2:])) if of_sizes else ("", "")


def chained(piece: list[Token], known: AbstractSet[str]) -> tuple[tuple[str, ...], Diagnostic] | None:
    """`A(i) = B(i) = X(i)`, which writes two tensors; `None` if this is something else.

    Args:
        known: words among which are the parameters, which no statement writes.

    Returns:
        The tensors, and what to say.
    """
    pairs, places, start = closers(piece), list[int](), 0
    while start < len(piece) and piece[start].type in ("NAME", "DIGIT_NAME"):
        after = start + 1
        after = pairs.get(after, after) + (after in pairs)
        if after >= len(piece) or piece[after].type != "ASSIGN":
            break
        places.append(after)
        start = after + 1
    starts = [0, *(place + 1 for place in places[:-1])]
    targets = tuple(piece[first].text for first in starts)
    if len(places) < 2 or len(set(targets)) < len(targets) or set(targets[1:]) & known:
        return None
    lefts = [text_of(piece[first:place]) for first, place in zip(starts, places, strict=True)]
    last, end = piece[starts[-1]].start, piece[-1].end
    more = "".join(f" {left} = {lefts[-1]}" for left in reversed(lefts[:-1]))
    edits = Edit(Span(piece[0].start, last), ""), Edit(Span(end, end), more)
    fix = Fix("write one statement for each", edits)
    message, help = "a second `=` in one statement", "a statement writes one tensor; a comparison is `==`"
    return targets, Diagnostic(codes.SYNTAX_ERROR, piece[places[1]].span, message, help=help, fix=fix)


def paired(piece: list[Token]) -> tuple[tuple[str, ...], Diagnostic] | None:
    """`Y(i), Z(i) = X(i), 2 * X(i)`, which writes two tensors; `None` if this is something else.

    Returns:
        The tensors, and what to say.
    """
    pairs, assign = closers(piece), next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), 0)
    lefts, where = split_commas(piece[:assign]), next((i for i, each in enumerate(piece) if each.type == "WHERE"), None)
    values = split_commas(piece[assign + 1 : where])
    plain = all(each and each[0].type in ("NAME", "DIGIT_NAME") for each in lefts) and all(values)
    ends = all(len(each) == 1 or closers(each).get(1) == len(each) - 1 for each in lefts)
    if len(lefts) < 2 or not plain or not ends or not (len(values) > 1 or any(i < assign for i in pairs)):
        return None
    help, fix = "a def with several results is called with names alone, as in `P, Q = g(X)`", None
    operator = piece[assign].text
    if piece[assign].type == "UPDATE":
        if len(values) == 1 and (len(lefts) == 2 or is_own(operator)):
            return None  # a value and its position, or what check_tc.py says about them
        help = "a value and its position are two, as in `V(n), P(n) argmax=! X(n, m)`"
    if len(lefts) == len(values):
        clauses = "" if where is None else f" {text_of(piece[where:])}"
        texts = [
            f"{text_of(left)} {operator} {text_of(value)}{clauses}" for left, value in zip(lefts, values, strict=True)
        ]
        fix = Fix("write one statement for each", (Edit(Span(piece[0].start, piece[-1].end), "  ".join(texts)),))
        early = next(_written_early(lefts, values), None)
        if early is not None:
            fix, help = None, f"statements run one after the other: keep the old `{early}` under another name first"
    comma = next(token for token in piece[len(lefts[0]) :] if token.type == "COMMA")
    found = Diagnostic(codes.SYNTAX_ERROR, comma.span, "a statement writes one tensor", help=help, fix=fix)
    return tuple(each[0].text for each in lefts), found


def _written_early(lefts: Sequence[Sequence[Token]], values: Sequence[Sequence[Token]]) -> Iterator[str]:
    """Targets that a later value reads: in `a, b = b, a + b` all values are those from before."""
    written = set[str]()
    for left, value in zip(lefts, values, strict=True):
        yield from (token.text for token in value if token.text in written)
        written.add(left[0].text)


def subscripted(piece: list[Token], results: AbstractSet[str], known: AbstractSet[str]) -> Diagnostic | None:
    """`Y_i = X_i` and `y_i = A_{i,j} x_j`, with subscripts as in a formula; `None` if this is something else.

    Args:
        results: results that nothing writes.
        known: all names in the header of the def.
    """
    if _base(piece[0], known) not in results or len(piece) < 2 or piece[1].type not in ("ASSIGN", "UPDATE", "LBRACE"):
        return None
    edits: list[Edit] = []
    for i, token in enumerate(piece):
        base = _base(token, known)
        if base is None:
            continue
        braced = i + 1 < len(piece) and piece[i + 1].type == "LBRACE"
        near = range(i, min(len(piece), i + 40)) if braced else ()
        end = next((j for j in near if piece[j].type == "RBRACE"), None)
        if braced and end is None:
            continue
        subscript = token.text[len(base) + 1 :]
        if braced and end is not None:
            edits += [Edit(token.span, base), Edit(piece[i + 1].span, "("), Edit(piece[end].span, ")")]
        elif subscript:
            indices = subscript.split("_") if "_" in subscript or len(subscript) > 3 else list(subscript)
            edits.append(Edit(token.span, f"{base}({', '.join(indices)})"))
    message, help = "indices stand in round brackets", "as in `Y(i, j)`"
    fix = Fix("use round brackets", tuple(edits))
    return Diagnostic(codes.SYNTAX_ERROR, piece[0].span, message, help=help, fix=fix)


def _base(token: Token, known: AbstractSet[str]) -> str | None:
    """`X` for `X_ij`, where `X` is a known name and `X_ij` is none."""
    if token.type != "NAME" or token.text in known:
        return None
    base, line, rest = token.text.partition("_")
    return base if line and base in known and (not rest or rest.replace("_", "").isalpha()) else None


_NO_LAST = "no point is the last one: an index runs over its whole range, and `where` leaves points out"
LEAVING = {
    "continue": "a condition behind `where` leaves points out, as in `S +=! X(i) where X(i) > 0`",
    **dict.fromkeys(("break", "return", "goto", "stop"), _NO_LAST),
}
"""Commands that go elsewhere, so that a def without them computes something else; and what to do instead."""


def commanded(piece: list[Token]) -> Diagnostic | None:
    """`print(Y)`, `assert N > 0`: what is done and gives no value; `None` if this is something else."""
    if not is_command(piece, 0, closers(piece)):
        return None
    place, word = Span(piece[0].start, piece[-1].end), piece[0].text
    help = "a def has only statements that write tensors: print and check in Python, before or after the call"
    if word in ("__shared__", "__syncthreads", "syncthreads"):
        help = "what is kept in shared memory, and when threads wait, follows from a schedule, as in `s.storage(...)`"
    if is_scheduled(piece, 0, closers(piece)):
        word = text_of(piece[:3])
        help = f"how a tensor is computed is said in Python, as in `f.schedule().{piece[2].text}(...)`"
    fix = None if word in LEAVING else Fix("leave it out", (Edit(place, ""),))
    help = LEAVING.get(word, help)
    return Diagnostic(codes.SYNTAX_ERROR, place, f"no statement begins with `{word}`", help=help, fix=fix)


def domain(piece: list[Token], later: Sequence[list[Token]]) -> Diagnostic | None:
    """`RDom r(0, 10)` of Halide, which gives an index the range `0:10`; `None` if this is something else."""
    kinds = [token.type for token in piece[1:3]]
    if piece[0].text != "RDom" or kinds != ["NAME", "LPAR"] or closers(piece).get(2) != len(piece) - 1:
        return None
    place, name, given = Span(piece[0].start, piece[1].end), piece[1].text, split_commas(piece[3:-1])
    message, help = "no statement begins with `RDom`", f"the range of an index is given with `where {name} in a:b`"
    users = [each for each in later if any(token.text == name for token in each)]
    ranged = any(one.text == name and other.type == "IN" for each in users for one, other in pairwise(each))
    if len(given) != 2 or not all(given) or ranged:
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help)
    low, count = text_of(given[0]), text_of(given[1])
    high = count if low == "0" else str(int(low) + int(count)) if (low + count).isdigit() else f"{low} + {count}"
    edits = [Edit(Span(piece[0].start, piece[-1].end), "")]
    for each in users:
        where = next((token for token in each if token.type == "WHERE"), None)
        end, text = each[-1].end, f" where {name} in {low}:{high}"
        edits.append(Edit(Span(where.end, where.end), f"{text[6:]},") if where else Edit(Span(end, end), text))
    fix = Fix("write the range where it is used", tuple(edits))
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)


def ended(body: list[Token]) -> tuple[list[Token], Edit] | None:
    """A body without the `end` that stands in the place of `}`, and the edit that writes this; `None` if there is none."""
    if len(body) > 1 and body[-2].text == "end" and body[-1].text in _ENDED:
        first = len(body) - 2
    elif body and body[-1].text in ("end", "endfunction"):
        first = len(body) - 1
    else:
        return None
    if first and body[first - 1].type not in ENDS_EXPRESSION:
        return None
    return body[:first], Edit(Span(body[first].start, body[-1].end), "}")


_ENDED = frozenset({"function", "subroutine", "def", "kernel"})


def text_of(tokens: list[Token]) -> str:
    """Tokens as a text, with one blank wherever there was space."""
    return "".join(token.text for token in tokens[:1]) + "".join(
        " " * _apart(one, other) + other.text for one, other in pairwise(tokens)
    )


def _apart(one: Token, other: Token) -> bool:
    """Whether space stood between two tokens, or must, as between the words that a fix has written."""
    return other.start > one.end or (one.text[-1].isalnum() and other.text[0].isalnum())


def operand_end(piece: list[Token], start: int) -> int:
    """The position after an operand: a name with its brackets, a number, or something in brackets."""
    after = start + 1 if piece[start].type != "LPAR" else start
    if after < len(piece) and piece[after].type == "LPAR":
        return closers(piece).get(after, len(piece) - 1) + 1
    return after + 1 if after < len(piece) and piece[after].type == "DIMENSION" else after
