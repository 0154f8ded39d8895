"""Conditions around statements, where what is meant is a choice, an extreme value, or a `where`.

Worked example: `if (x[i] > 0) s += x[i];` becomes `s += x[i] where x[i] > 0`, and `if (x[i] > m) m = x[i];` becomes `m max= x[i]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, SourceText, Span, codes

from .foreign import LEAVING, RANGES, commanded, text_of
from .mended import mended
from .recovery import closers, declares, extents, is_command, split_commas, split_statements, starts_statement
from .tokens import ENDS_EXPRESSION, SEMICOLON, Token

_NEAR = 400  # tokens of such a statement
_CHOICE = "choose a value, as in `Y(i) = condition ? value : other`"
_WHERE = "a condition behind `where` leaves points out, as in `S +=! X(i) where X(i) > 0`"
_EXTREME = "`{}` keeps the {} value: it is compared and chosen at once"
_POSITION = "`{}` finds a value and where it is"
_BEHIND_HEADS = ("RPAR", "COLON", "LBRACE", "RBRACE")


@dataclass(frozen=True, slots=True)
class _If:
    """`if (c) { body }` without what follows.

    Attributes:
        head: the first token, and the one behind the condition and its brackets or colon.
        body: the first token of the body, and the one behind its last.
        end: the token behind the whole.
    """

    head: tuple[int, int]
    condition: list[Token]
    body: tuple[int, int]
    end: int


@dataclass(frozen=True, slots=True)
class _Command:
    """`if (c) print(x);` and `if (c) continue;` without what follows.

    Attributes:
        conditions: that one, and those of more `continue` directly behind the first.
        body: the first token of the command, and the one behind its last.
        end: the token behind the whole.
    """

    conditions: tuple[list[Token], ...]
    body: tuple[int, int]
    end: int


def conditional(tokens: list[Token], diagnostics: list[Diagnostic], source: SourceText) -> list[Token]:
    """The tokens without the conditions around statements that have another form here; a message about each."""
    pairs, fixes, i = closers(tokens), list[Fix](), 0
    while i < len(tokens):
        found, end = None, i + 1
        if tokens[i].text == "if" and tokens[i].type == "NAME" and _begins(tokens, i):
            found, end = _told(tokens, i, pairs)
            if found is None and (command := _command(tokens, i, pairs, source)) is not None:
                found, own = _of_command(tokens, i, command, pairs, source)
                diagnostics += [found] if found.fix is None else []
                fixes.append(Fix("", tuple(own)))
                end = command.end
        if found is not None and found.fix is not None:
            gone = [edit.span for edit in found.fix.edits if edit.span.end > edit.span.start]
            diagnostics[:] = [each for each in diagnostics if each.message != SEMICOLON or not _inside(each.span, gone)]
            diagnostics.append(found)
            fixes.append(found.fix)
        i = end
    return (mended(tokens, *fixes) or tokens) if fixes else tokens


def with_clauses(piece: list[Token], text: str) -> Edit:
    """The edit that gives a statement more clauses behind `where`."""
    where = next((token.end for token in piece if token.type == "WHERE"), None)
    place = piece[-1].end if where is None else where
    return Edit(Span(place, place), f" where {text}" if where is None else f" {text},")


_OF_BOUNDS = frozenset({"NAME", "INTEGER", "SIGN", "MINUS", "FACTOR", "LPAR", "RPAR", "DIMENSION"})


def bound(tokens: list[Token]) -> str | None:
    """An end of a range as a text, `X.0` for `len(X)` and `X.shape[0]`; `None` where it has something else in it."""
    texts, kinds = [token.text for token in tokens], [token.type for token in tokens]
    if kinds == ["NAME", "LPAR", "NAME", "RPAR"] and texts[0] in ("len", "length"):
        return f"{texts[2]}.0"
    if kinds == ["NAME", "DOT", "NAME", "LSQB", "INTEGER", "RSQB"] and texts[2] == "shape":
        return f"{texts[0]}.{texts[4]}"
    called = any(kinds[i : i + 2] == ["NAME", "LPAR"] for i in range(len(kinds)))
    return text_of(tokens) if set(kinds) <= _OF_BOUNDS and not called else None


def runs_so_far(piece: list[Token], index: str, end: str, sizes: Mapping[tuple[str, int], str]) -> bool:
    """Whether an index that runs over everything ends at `end`: a statement reads a dimension of that size with it alone."""
    openings = {close: opening for opening, close in closers(piece).items()}
    for close, opening in openings.items():
        before, first = opening - 1, 0
        while before in openings and piece[before].type == "RSQB":  # `X[i][j]`
            before, first = openings[before] - 1, first + 1
        name = piece[before].text if before >= 0 else ""
        for k, subscript in enumerate(split_commas(piece[opening + 1 : close]), first):
            alone = len(subscript) == 1 and subscript[0].text == index
            if alone and end in (sizes.get((name, k)), f"{name}.{k}"):
                return True
    return False


def _begins(tokens: list[Token], i: int) -> bool:
    """Whether a statement may begin at a place; behind an operator, `if` is a part of a value."""
    return i > 0 and (tokens[i - 1].type in _BEHIND_HEADS or tokens[i - 1].type in ENDS_EXPRESSION or tokens[i].first)


def _inside(place: Span, spans: list[Span]) -> bool:
    return any(span.start <= place.start < span.end for span in spans)


def _told(tokens: list[Token], i: int, pairs: dict[int, int]) -> tuple[Diagnostic | None, int]:
    """What to say of the `if` at a place, and where to go on; `None` where no other form says the same."""
    parts, at, last = list[_If](), i, None
    while (part := _if(tokens, at, pairs)) is not None:
        parts.append(part)
        if part.end >= len(tokens) or tokens[part.end].text not in ("else", "elif", "elseif"):
            break
        is_else = tokens[part.end].text == "else"
        at = part.end + is_else
        if at + 1 >= len(tokens):
            return None, i + 1
        if is_else and tokens[at].text != "if":
            last = _body(tokens, at + (tokens[at].type == "COLON"), pairs)
            if _if_of_lines(tokens, parts[0].head[0], pairs) is not None:
                stop = _end_of_lines(tokens, at, pairs)
                last = None if stop is None else (at, stop, stop + _length_of_end(tokens, stop))
            break
    if not parts or part is None:
        return None, i + 1
    if last is not None:
        found = _choice(tokens, parts, last)
        return found, (last[2] if found else i + 1)
    if len(parts) > 1 or (parts[0].end < len(tokens) and tokens[parts[0].end].text == "else"):
        return None, i + 1
    found = _extreme(tokens, parts[0]) or _position(tokens, parts[0]) or _left_out(tokens, parts[0])
    return found, parts[0].end if found else i + 1


def _if(tokens: list[Token], i: int, pairs: dict[int, int]) -> _If | None:
    """`if (c)` or `if c:` at a place, with its body; `None` where either is not plain."""
    if (found := _if_of_lines(tokens, i, pairs)) is not None:
        return found
    condition, behind = _condition(tokens, i, pairs)
    body = _body(tokens, behind, pairs)
    if body is None or not _is_plain(condition):
        return None
    if tokens[behind - 1].type == "COLON" and tokens[behind].first and not _is_last(tokens, body[2]):
        return None  # lines say where a body of Python ends
    return _If((i, behind), condition, body[:2], body[2])


def _condition(tokens: list[Token], i: int, pairs: dict[int, int]) -> tuple[list[Token], int]:
    """The condition of `if (c)` or `if c:` at a place, and the place behind its brackets or colon."""
    start, close = i + 1, pairs.get(i + 1)
    if close is not None and close + 1 < len(tokens) and tokens[close + 1].type in ("NAME", "LBRACE", "COLON"):
        condition, behind = tokens[start + 1 : close], close + 1
        behind += tokens[behind].type == "COLON"
    else:
        near = range(start, min(len(tokens), start + 60))
        behind = next((j for j in near if tokens[j].type in ("COLON", "LBRACE")), len(tokens))
        condition = tokens[start:behind]
        behind += behind < len(tokens) and tokens[behind].type == "COLON"
    return condition, behind


def _is_plain(condition: list[Token]) -> bool:
    return bool(condition) and not any(token.type in ("ERROR", "ASSIGN", "UPDATE", "DEF") for token in condition)


def _if_of_lines(tokens: list[Token], i: int, pairs: dict[int, int]) -> _If | None:
    """`if (c) then` of Fortran and `if c` of MATLAB and Julia, whose body ends at `else` or `end`; `None` for other forms."""
    near = range(i + 1, min(len(tokens), i + 60))
    then = next((j for j in near if tokens[j].text == "then"), None)
    line = next((j for j in near if tokens[j].first and tokens[j].type != "LBRACE"), None)
    behind = then if then is not None and (line is None or then <= line) else line
    if behind is None or any(token.type in ("COLON", "LBRACE", "ASSIGN", "UPDATE") for token in tokens[i:behind]):
        return None
    condition, first = tokens[i + 1 : behind], behind + (behind == then)
    if condition and pairs.get(i + 1) == behind - 1:
        condition = condition[1:-1]
    stop = _end_of_lines(tokens, first, pairs)
    if not condition or stop is None or not starts_statement(tokens, first, pairs):
        return None
    return _If((i, first), condition, (first, stop), stop + _length_of_end(tokens, stop))


def _end_of_lines(tokens: list[Token], first: int, pairs: dict[int, int]) -> int | None:
    """The place of the `else` or `end` behind plain statements; `None` where something else comes first."""
    stop = first
    while stop < min(len(tokens), first + _NEAR) and tokens[stop].type not in _ENDING:
        if tokens[stop].text in ("else", "elseif", "elif", *_ENDS):
            return stop
        if tokens[stop].text in _WORDS:
            return None
        stop = pairs.get(stop, stop) + 1
    return None


def _length_of_end(tokens: list[Token], stop: int) -> int:
    """How many words close an `if` at a place: 2 for `end if`, 1 for `end`, none for `else`."""
    if tokens[stop].text not in _ENDS:
        return 0
    return 2 if stop + 1 < len(tokens) and tokens[stop + 1].text == "if" and tokens[stop].text == "end" else 1


_ENDS = ("end", "endif")


def _is_last(tokens: list[Token], end: int) -> bool:
    """Whether a body certainly ends at a place, whatever the lines are."""
    return end >= len(tokens) or tokens[end].type in ("RBRACE", "DEF") or tokens[end].text in ("else", "elif")


def _body(tokens: list[Token], start: int, pairs: dict[int, int]) -> tuple[int, int, int] | None:
    """First token, the one behind the last, and the one behind the brace, of a body of plain statements."""
    is_block = start < len(tokens) and tokens[start].type == "LBRACE"
    first = start + is_block
    if first >= len(tokens) or not starts_statement(tokens, first, pairs):
        return None
    stop, near = first + 1, min(len(tokens), first + _NEAR)
    while (
        stop < near
        and tokens[stop].type not in ("RBRACE", "LBRACE", "DEF", "ERROR", "BLOCK")
        and tokens[stop].text not in _WORDS
    ):
        ends = not is_block and tokens[stop - 1].type in ENDS_EXPRESSION
        if ends and (starts_statement(tokens, stop, pairs) or tokens[stop].first):
            break
        stop = pairs.get(stop, stop) + 1
    closes = stop < len(tokens) and tokens[stop].type == "RBRACE"
    if (is_block and not closes) or (stop < len(tokens) and tokens[stop].type in ("LBRACE", "ERROR", "BLOCK")):
        return None
    return first, stop, stop + is_block


_ENDING = ("RBRACE", "LBRACE", "DEF", "ERROR", "BLOCK")
_WORDS = frozenset({"else", "elif", "elseif", "if", "for", "while", "return", "break", "continue", "end"})


def _assigned(tokens: list[Token], part: tuple[int, ...]) -> tuple[list[Token], list[Token]] | None:
    """The left side with `=`, and the value, of a body that is one assignment."""
    pieces = split_statements(tokens[part[0] : part[1]])
    assign = next((k for k, token in enumerate(pieces[0]) if token.type in ("ASSIGN", "UPDATE")), 0) if pieces else 0
    if len(pieces) != 1 or pieces[0][assign].type != "ASSIGN" or assign + 1 >= len(pieces[0]):
        return None
    value = pieces[0][assign + 1 :]
    return None if any(token.type in ("WHERE", "ALONG") for token in value) else (pieces[0][: assign + 1], value)


def _choice(tokens: list[Token], parts: list[_If], last: tuple[int, int, int]) -> Diagnostic | None:
    """`Y(i) = c ? a : d ? b : e` for `if (c) Y(i) = a; else if (d) Y(i) = b; else Y(i) = e;`."""
    ways = [_assigned(tokens, part.body) for part in parts] + [_assigned(tokens, last)]
    plain = [way for way in ways if way is not None]
    if len(plain) < len(ways) or len({"".join(token.text for token in left) for left, _ in plain}) > 1:
        return None
    conditions = [f"{text_of(part.condition)} ? " for part in parts]
    edits = [Edit(Span(tokens[parts[0].head[0]].start, plain[0][0][0].start), "")]
    edits.append(Edit(Span(plain[0][1][0].start, plain[0][1][0].start), conditions[0]))
    for (_, before), (_, value), condition in zip(plain, plain[1:], [*conditions[1:], ""], strict=False):
        edits.append(Edit(Span(before[-1].end, value[0].start), f" : {condition}"))
    edits.append(Edit(Span(plain[-1][1][-1].end, tokens[last[2] - 1].end), ""))
    fix = Fix("write it with `? :`", tuple(edits))
    return _refused(tokens[parts[0].head[0]], _CHOICE, fix)


def _refused(word: Token, help: str, fix: Fix) -> Diagnostic:
    return Diagnostic(codes.SYNTAX_ERROR, word.span, "no statement begins with `if`", help=help, fix=fix)


def _extreme(tokens: list[Token], part: _If) -> Diagnostic | None:
    """`m max= x[i]` for `if (x[i] > m) m = x[i];`."""
    way, condition = _assigned(tokens, part.body), part.condition
    places = [k for k, token in enumerate(condition) if token.type in ("RELATION", "AND", "OR", "QUESTION")]
    if way is None or len(places) != 1 or condition[places[0]].type != "RELATION":
        return None
    texts = [_plainly(side) for side in (condition[: places[0]], condition[places[0] + 1 :])]
    left, value = _plainly(way[0][:-1]), _plainly(way[1])
    if [left, value] not in (texts, texts[::-1]):
        return None
    is_largest = (condition[places[0]].text[0] == "<") == (texts[0] == left)
    operator, word = ("max=", "largest") if is_largest else ("min=", "smallest")
    edits = [*_without(tokens, part), Edit(way[0][-1].span, operator)]
    return _refused(tokens[part.head[0]], _EXTREME.format(operator, word), Fix(f"write `{operator}`", tuple(edits)))


def _position(tokens: list[Token], part: _If) -> Diagnostic | None:
    """`m, p argmax=! x[i]` for `if (x[i] > m) { m = x[i]; p = i; }`."""
    pieces = split_statements(tokens[part.body[0] : part.body[1]])
    kinds = [[token.type for token in piece] for piece in pieces]
    if len(pieces) != 2 or any(each[:2] != ["NAME", "ASSIGN"] for each in kinds):
        return None
    at = 0 if kinds[1][2:] == ["NAME"] and _compares(part.condition, pieces[0]) else 1
    value, place = pieces[at], pieces[1 - at]
    operator = _compares(part.condition, value)
    if operator is None or kinds[1 - at][2:] != ["NAME"]:
        return None
    index, own = place[2].text, {token.text for token in value[2:] if token.type == "NAME"}
    word = _loop_of(tokens, part.head[0], index)
    if word is not None and not _begins_at_0(tokens, word, part.head[0]):
        return None  # what stands before the loop counts, too
    if index not in own and (word is None or not _is_set(tokens[word : part.head[0]], own)):
        return None
    start, end = Span(tokens[part.head[0]].start, value[2].start), Span(value[-1].end, tokens[part.end - 1].end)
    edits = Edit(start, f"{value[0].text}, {place[0].text} {operator} "), Edit(end, "")
    return _refused(tokens[part.head[0]], _POSITION.format(operator), Fix(f"write `{operator}`", edits))


def _is_set(tokens: list[Token], names: set[str]) -> bool:
    """Whether a loop sets one of several numbers in each turn, which then has an element for each turn."""
    return any(one.text in names and after.type == "ASSIGN" for one, after in pairwise(tokens))


def _loop_of(tokens: list[Token], i: int, index: str) -> int | None:
    """The place of the word that begins the loop around a place which counts with `index`."""
    for j in range(i - 1, max(0, i - _NEAR), -1):
        if tokens[j].type == "DEF":
            return None
        if tokens[j].text in ("for", "do", "foreach", "prange"):
            assign = next((k for k in range(j, i) if tokens[k].type in ("ASSIGN", "IN")), j)
            if tokens[assign - 1].text == index:
                return j
    return None


def _begins_at_0(tokens: list[Token], word: int, i: int) -> bool:
    """Whether the loop at `word`, whose body has the place `i`, counts from 0."""
    first = next((j + 1 for j in range(word, i) if tokens[j].type in ("ASSIGN", "IN")), i)
    if tokens[first].text in RANGES:
        close = closers(tokens[: i + 1]).get(first + 1, first + 1)
        ends = split_commas(tokens[first + 2 : close])
        return len(ends) == 1 or [token.text for token in ends[0]] == ["0"]
    return tokens[first].text == "0"


def _compares(condition: list[Token], piece: list[Token]) -> str | None:
    """The operator that finds the first place where the value of `m = x[i]` is the extreme one: `x[i] > m` and `m < x[i]`."""
    left, value, texts = piece[0].text, _plainly(piece[2:]), _plainly(condition)
    if texts in ([*value, ">", left], [left, "<", *value]):
        return "argmax=!"
    return "argmin=!" if texts in ([*value, "<", left], [left, ">", *value]) else None


def _plainly(tokens: list[Token]) -> list[str]:
    """The texts of tokens, in which `X[i]` is `X(i)`."""
    return [{"[": "(", "]": ")"}.get(token.text, token.text) for token in tokens]


def _left_out(tokens: list[Token], part: _If) -> Diagnostic | None:
    """`s += x[i] where x[i] > 0` for `if (x[i] > 0) s += x[i];`."""
    clauses = _clauses(tokens, part, text_of(part.condition))
    edits = [*_without(tokens, part), *clauses]
    return (
        _refused(tokens[part.head[0]], _WHERE, Fix("leave points out with `where`", tuple(edits))) if clauses else None
    )


def _clauses(tokens: list[Token], part: _If, condition: str) -> list[Edit]:
    """Edits that give the statements of a body a condition as a text; none where one of them changes what it reads.

    A declared name is that of a value, which is a part of the statements that read it, and needs none.
    """
    pieces = split_statements(tokens[part.body[0] : part.body[1]])
    read = {token.text for token in part.condition}
    is_changed = any(piece[0].text in read for piece in pieces[:-1])
    if is_changed or any(token.type == "ALONG" for piece in pieces for token in piece):
        return []
    return [with_clauses(piece, condition) for piece in pieces if not declares(piece, 0, closers(piece))]


# --- commands behind a condition --------------------------------------------------------------------------------------


def _command(tokens: list[Token], i: int, pairs: dict[int, int], source: SourceText) -> _Command | None:
    """The `if` at a place whose body is a command; `None` if its body is something else, or may have more in it."""
    condition, behind = _condition(tokens, i, pairs)
    is_block = behind < len(tokens) and tokens[behind].type == "LBRACE"
    first = behind + is_block
    is_head = _is_plain(condition) and not any(token.first for token in condition[1:])
    is_known = is_head and first < len(tokens) and (tokens[first].text == "return" or is_command(tokens, first, pairs))
    if not is_known or starts_statement(tokens, first, pairs):
        return None
    stop = _command_end(tokens, first, pairs)
    if is_block:
        closes = stop < len(tokens) and tokens[stop].type == "RBRACE"
        return _with_next(_Command((condition,), (first, stop), stop + 1), tokens, pairs, source) if closes else None
    of_lines = tokens[behind - 1].type == "COLON" and tokens[first].first and stop < len(tokens)
    if of_lines and tokens[stop].type != "RBRACE" and _column(source, tokens[stop]) > _column(source, tokens[i]):
        return None
    return _with_next(_Command((condition,), (first, stop), stop), tokens, pairs, source)


def _with_next(command: _Command, tokens: list[Token], pairs: dict[int, int], source: SourceText) -> _Command:
    """`if (c) continue;` with the next one directly behind it."""
    end = command.end
    if tokens[command.body[0]].text != "continue" or end >= len(tokens) or tokens[end].text != "if":
        return command
    more = _command(tokens, end, pairs, source)
    if more is None or tokens[more.body[0]].text != "continue":
        return command
    return _Command((*command.conditions, *more.conditions), command.body, more.end)


def _column(source: SourceText, token: Token) -> int:
    return source.position(token.start)[1]


def _command_end(tokens: list[Token], first: int, pairs: dict[int, int]) -> int:
    """The place behind a command."""
    stop = first + 1
    if tokens[first].text in ("break", "continue"):
        return stop
    while stop < min(len(tokens), first + _NEAR) and tokens[stop].type not in ("RBRACE", "DEF"):
        begins = tokens[stop].first or starts_statement(tokens, stop, pairs) or is_command(tokens, stop, pairs)
        ends = stop > first + 1 and tokens[stop - 1].type in (*ENDS_EXPRESSION, "ERROR")
        ends = ends or (stop == first + 1 and tokens[first].text == "return")
        if tokens[stop].text in _WORDS or (ends and begins):
            break
        stop = pairs.get(stop, stop) + 1
    return stop


def _of_command(
    tokens: list[Token], i: int, command: _Command, pairs: dict[int, int], source: SourceText
) -> tuple[Diagnostic, list[Edit]]:
    """What to say of a command behind a condition, and the edits that leave it out where the fix does not.

    The condition goes, too: without its command it would be that of the next statement.
    """
    piece = tokens[command.body[0] : command.body[1]]
    found = commanded(piece)
    whole = Span(tokens[i].start, tokens[command.end - 1].end)
    has_other = command.end < len(tokens) and tokens[command.end].text in ("else", "elif", "elseif")
    edits = None
    if _leaves_point(tokens, i, piece) and not has_other:
        edits = _continued(tokens, i, command, pairs, source)
    if edits is not None:
        title = "leave points out with `where`" if edits else "leave it out"
        return _refused(tokens[i], _WHERE, Fix(title, (Edit(whole, ""), *edits))), []
    help = LEAVING.get(piece[0].text) or (found.help if found else None)
    if piece[0].text in LEAVING or has_other:
        message, place = f"no statement begins with `{piece[0].text}`", Span(piece[0].start, piece[-1].end)
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help), [Edit(place, "")]
    return _refused(tokens[i], help or "", Fix("leave it out", (Edit(whole, ""),))), []


def _leaves_point(tokens: list[Token], i: int, piece: list[Token]) -> bool:
    """Whether a command leaves the point out: `continue`, and `return` where no loop is around, as in what a thread computes."""
    if piece[0].text == "continue":
        return True
    start = next((j for j in range(i, -1, -1) if tokens[j].type == "DEF"), 0)
    return [token.text for token in piece] == ["return"] and all(token.text not in _LOOPS for token in tokens[start:i])


_LOOPS = frozenset({"for", "while", "do", "loop", "forall", "foreach", "parfor", "prange", "parallel_for"})


def _continued(
    tokens: list[Token], i: int, command: _Command, pairs: dict[int, int], source: SourceText
) -> list[Edit] | None:
    """The clauses of the statements behind `if (c) continue;`; `None` where it is not certain which these are."""
    stop = command.end
    column = _column(source, tokens[i]) if tokens[i].first else 0
    while stop < min(len(tokens), command.end + _NEAR) and tokens[stop].type not in _ENDING:
        if tokens[stop].text in _WORDS:
            return None
        if tokens[stop].first and _column(source, tokens[stop]) < column:
            break
        stop = pairs.get(stop, stop) + 1
    body = command.end, stop
    begins = starts_statement(tokens, body[0], pairs) or declares(tokens, body[0], pairs)
    if body[0] == stop or not begins:
        return None
    if tokens[command.body[0]].text == "return" and (found := _in_ranges(tokens, i, command, body)) is not None:
        return found
    read = [token for condition in command.conditions for token in condition]
    kept = " && ".join(f"!({text_of(condition)})" for condition in command.conditions)
    return _clauses(tokens, _If((i, body[0]), read, body, stop), kept) or None


def _in_ranges(tokens: list[Token], i: int, command: _Command, body: tuple[int, int]) -> list[Edit] | None:
    """The ranges behind `if (i >= n || j >= m) return;` that indices do not have by themselves; `None` for other conditions."""
    start = next((j for j in range(i, -1, -1) if tokens[j].type == "DEF"), i)
    header = tokens[start : next((j for j in range(start, i) if tokens[j].type == "LBRACE"), i)]
    ranges, known, sizes = dict[str, str](), {token.text for token in header}, extents(header)
    for part in _alternatives(command.conditions[0]):
        found = _end(part)
        if found is None or found[0] in known or found[0] in ranges:
            return None
        ranges[found[0]] = found[1]
    edits = list[Edit]()
    for piece in split_statements(tokens[slice(*body)]):
        needed = [
            f"{index} in 0:{end}"
            for index, end in ranges.items()
            if any(token.text == index for token in piece) and not runs_so_far(piece, index, end, sizes)
        ]
        edits += [with_clauses(piece, ", ".join(needed))] if needed else []
    return edits


def _alternatives(condition: list[Token]) -> list[list[Token]]:
    """The parts between `||`."""
    pairs, cuts, i = closers(condition), [-1], 0
    while i < len(condition):
        if condition[i].type == "OR" or condition[i].text == "or":
            cuts.append(i)
        i = pairs.get(i, i) + 1
    return [condition[one + 1 : other] for one, other in pairwise([*cuts, len(condition)])]


def _end(condition: list[Token]) -> tuple[str, str] | None:
    """The index and the end of its range that `i >= n`, `n <= i` and `i > n - 1` leave; `None` for something else."""
    at = next((k for k, token in enumerate(condition) if token.type == "RELATION"), 0)
    one, relation, other = condition[:at], condition[at].text if at else "", condition[at + 1 :]
    if relation in ("<", "<="):
        one, relation, other = other, relation.replace("<", ">"), one
    if relation not in (">", ">=") or [token.type for token in one] != ["NAME"] or not other:
        return None
    is_more = relation == ">"
    if is_more and [token.text for token in other[-2:]] == ["-", "1"]:
        is_more, other = False, other[:-2]
    end = bound(other)
    return None if end is None else (one[0].text, f"{end} + 1" if is_more else end)


def _without(tokens: list[Token], part: _If) -> list[Edit]:
    """Edits that leave out a condition, and the braces around its body."""
    edits = [Edit(Span(tokens[part.head[0]].start, tokens[part.body[0]].start), "")]
    closing = Span(tokens[part.body[1]].start, tokens[part.end - 1].end) if part.end > part.body[1] else None
    return [*edits, Edit(closing, "")] if closing else edits
