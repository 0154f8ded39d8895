"""Loops and conditions around statements, which are left out after a message each; the statements inside are checked.

Worked example: `for i in range(2, N): Y(i) = X(i)` is read as `Y(i) = X(i) where i in 2:N`, which is its fix, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, SourceText, Span, codes

from .carried import RECURRENCE, as_recurrence, as_update, carried, change, is_type
from .conditional import bound, conditional, runs_so_far, with_clauses
from .foreign import LEAVING, RANGES, text_of
from .imperative.bodies import IS_COUNTED, statements_of, without_remarks
from .imperative.parser import Beyond, Ordered
from .imperative.steps import LAST, TWICE
from .mended import mended
from .recovery import closers, extents, is_command, split_commas, split_statements, starts_statement
from .threads import of_thread
from .tokens import ENDS_EXPRESSION, SEMICOLON, Token

_LOOPS = (
    "there are no loops: an index runs over everything it can index; a range of its own is given with `where i in a:b`"
)
_CONTROL = {
    **dict.fromkeys(("for", "do", "while", "forall", "foreach", "parfor", "prange", "loop", "parallel_for"), _LOOPS),
    "if": "choose a value, as in `Y(i) = condition ? value : other`",
}
_NEAR = 400  # tokens in which the end of a block is looked for
_ELSE = frozenset({"else", "elif"})
_ENDS = frozenset({"end", "endfor", "enddo", "endif", "endwhile"})
_MOST_LOOPS = 50  # of a cell for which a fix is looked for


@dataclass(frozen=True, slots=True)
class _Range:
    """What a loop counts: `lower <= index < upper` as texts, or everything (`upper` is `None`).

    Attributes:
        from_1: whether the loop counts from 1 and stands for one that counts from 0, as those of MATLAB and Fortran do.
    """

    index: str
    lower: str = "0"
    upper: str | None = None
    from_1: bool = False


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop whose range is known: the place of its message, the texts to leave out, and where its body stands.

    Attributes:
        ranges: none where what it counts is not known.
        end: where the body ends; `None` where it is one statement.
    """

    message: int
    ranges: tuple[_Range, ...]
    outside: tuple[Span, ...]
    start: int
    end: int | None


def without_control(tokens: list[Token], diagnostics: list[Diagnostic], source: SourceText) -> list[Token]:
    """Leave out `for (...) {`, `if (...) {` and their `}`, after a message each; the statements inside are checked."""
    tokens, ordered = _with_statements(tokens, diagnostics, source)
    if not any(token.text in _CONTROL for token in tokens):
        return tokens
    left = [token.start for token in tokens if token.type == "NAME" and token.text in _LEFT]
    tokens = conditional(tokens, diagnostics, source)
    pairs, opened, i = closers(tokens), 0, 0
    kept, told, loops = list[Token](), list[Diagnostic](), list[_Loop]()
    heads: list[Span] = []
    unended = 0  # heads without braces, each of which may have its `end`
    behind = -1  # where the last head ends, behind which a head may follow
    while i < len(tokens):
        token = tokens[i]
        end = _control_end(tokens, i, pairs, i == behind)
        if end is not None:
            heads.append(Span(token.start, tokens[end - 1].end))
            if token.text in _CONTROL:
                message = f"no statement begins with `{token.text}`"
                is_loop = token.text != "if" and len(loops) < _MOST_LOOPS
                loop = _loop(tokens, i, end, pairs, source) if is_loop else None
                loops += [replace(loop, message=len(told))] if loop else []
                told.append(Diagnostic(codes.SYNTAX_ERROR, token.span, message, help=_CONTROL[token.text]))
            is_block = end < len(tokens) and tokens[end].type == "LBRACE"
            is_line = tokens[end - 1].type == "COLON" and end < len(tokens) and not tokens[end].first
            unended += token.text in _CONTROL and not is_block and not is_line
            opened, i = opened + is_block, end + is_block
            behind = i
            if i < len(tokens):
                tokens[i].first = True
            continue
        opened, unended = (0, 0) if token.type == "DEF" else (opened, unended)
        if token.type == "RBRACE" and opened:
            opened -= 1
        elif unended and _is_end(tokens, i):
            unended -= 1
            i += 2 if token.text == "end" and i + 1 < len(tokens) and tokens[i + 1].text in _CONTROL else 1
            continue
        else:
            kept.append(token)
        i += 1
    diagnostics[:] = [each for each in diagnostics if not _inside(each.span.start, heads)]
    in_heads = [token for token in tokens if token.type == "NAME" and _inside(token.start, heads)] if loops else []
    fixed = {number for number, each in enumerate(told) if each.fix is not None}
    carrying = {loop.message: names for loop in loops if (names := _carried(kept, loop, in_heads))}
    nests = _nests([loop for loop in loops if loop.ranges])
    ordered += [each for nest in nests for each in _needing(kept, nest) if nest[0].message not in carrying]
    for nest in nests:
        if _stays(kept, nest[0], loops, left, ordered):
            continue
        sizes = _extents(tokens, nest[0].start)
        if not any(loop.message in carrying for loop in nest):
            kept, fix = _ranged(kept, nest, sizes, diagnostics)
        else:
            kept, fix = _recurrence(kept, nest, carrying, sizes)
        if fix is not None:
            told[nest[0].message] = replace(told[nest[0].message], fix=fix)
            fixed |= {loop.message for loop in nest}
    for loop in loops:
        if names := carrying.get(loop.message):
            kept = _without_values(kept, _reading(kept, loop, names))
            told[loop.message] = replace(told[loop.message], help=RECURRENCE.format("` and `".join(names)))
        elif reason := next((text for place, text in ordered if place.start <= loop.start < place.end), ""):
            kept = _without_values(kept, _body(kept, loop))
            told[loop.message] = replace(told[loop.message], help=reason)
        elif loop.message not in fixed:
            kept = _without_values(kept, _counting(kept, loop))
    _keep_semicolons(tokens, [each.span for i, each in enumerate(told) if i not in fixed], diagnostics)
    diagnostics += told
    return kept


def _stays(
    kept: list[Token], outer: _Loop, loops: list[_Loop], left: list[int], ordered: list[tuple[Span, str]]
) -> bool:
    """Whether no fix leaves a loop out: an inner range or the last turn is not known, or turns need each other."""
    body = _body(kept, outer)
    place = Span(outer.outside[0].start, body[-1][-1].end if outer.end is None and body else outer.end or outer.start)
    unknown = [loop.start for loop in loops if not loop.ranges]
    inside = any(place.start <= each < place.end for each in (*unknown, *left))
    return inside or any(each.start <= place.start < each.end for each, _ in ordered)


def _needing(kept: list[Token], nest: list[_Loop]) -> Iterator[tuple[Span, str]]:
    """The head of a loop with the reason, where its turns need each other, or the last one decides."""
    indices, body = {each.index for loop in nest for each in loop.ranges}, _body(kept, nest[-1])
    for piece in body:
        place = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), 0)
        openings = {close: opening for opening, close in closers(piece).items()}
        name = openings.get(place - 1, place) - 1
        if not place or name < 0 or piece[name].type != "NAME":
            continue
        over = indices & {token.text for token in piece[place:]} - {token.text for token in piece[name:place]}
        target, own = piece[name].text, text_of(piece[name:place])
        found = [k for k, token in enumerate(piece) if k > place and token.text == target]
        reads = [piece[k : closers(piece).get(k + 1, k) + 1] for k in found]
        is_elsewhere = any(over & {token.text for token in read} for read in reads)
        is_used = any(_uses(other, target) for other in body if other is not piece)
        is_last = piece[place].type == "ASSIGN" and over and not is_used and own not in map(text_of, reads)
        if is_elsewhere or is_last:
            reason = TWICE if place - name > 1 else LAST
            yield Span(nest[0].outside[0].start, nest[-1].start + 1), reason.format(target)


def _with_statements(
    tokens: list[Token], diagnostics: list[Diagnostic], source: SourceText
) -> tuple[list[Token], list[tuple[Span, str]]]:
    """The tokens with statements in the place of bodies with loops, after a message each, where they compute the same.

    Returns:
        The tokens, and bodies in which turns need each other, with the reason.
    """
    ordered = list[tuple[Span, str]]()
    if not IS_COUNTED.search(source.text):
        return tokens, ordered
    starts = [i for i, token in enumerate(tokens) if token.type == "DEF"]
    kept = tokens[: starts[0]] if starts else tokens
    for start, end in pairwise([*starts, len(tokens)]):
        own = tokens[start:end]
        opening = next((i for i, token in enumerate(own) if token.type == "LBRACE"), len(own))
        close = _block_end(own, opening)
        place = Span(own[opening].end, own[close].start) if close is not None else Span(0, 0)
        word = IS_COUNTED.search(without_remarks(source.text[place.start : place.end]))
        if close is None or word is None:
            kept += own
            continue
        try:
            statements = statements_of(own[1:opening], source, place)
        except Beyond as reason:
            ordered += [(place, str(reason))] if isinstance(reason, Ordered) else []
            kept += own
            continue
        is_line = own[close].first or "\n" in source.text[place.start : place.end]
        text = "".join(f"\n    {each}" for each in statements) + "\n" if is_line else f" {'  '.join(statements)} "
        at = Span(place.start + word.start(), place.start + word.end())
        found = Diagnostic(codes.SYNTAX_ERROR, at, f"no statement begins with `{word[0]}`", help=_LOOPS)
        found = found if word["loop"] else of_thread(at)
        diagnostics[:] = [each for each in diagnostics if not place.start <= each.span.start < place.end]
        fix = Fix("write statements", (Edit(place, text),))
        diagnostics.append(replace(found, fix=fix))
        made = mended(own, fix) or own
        kept += [replace(each, start=at.start, end=at.end) if each.span == place else each for each in made]
    return kept, ordered


_LEFT = LEAVING.keys() - {"continue"}


# --- loops whose range is known --------------------------------------------------------------------------------------


def _loop(tokens: list[Token], i: int, end: int, pairs: dict[int, int], source: SourceText) -> _Loop | None:
    """The loop whose head stands at `i` and ends before `end`; `None` where its end is not known."""
    counted = _counted(tokens[i + 1 : end]) or ()
    head = Span(tokens[i].start, tokens[end - 1].end)
    if tokens[end].type == "LBRACE":
        close = _block_end(tokens, end)
        if close is None:
            return None
        outside = head, tokens[end].span, tokens[close].span
        return _Loop(0, counted, outside, tokens[end].end, tokens[close].start)
    is_line = tokens[end - 1].type == "COLON" and not tokens[end].first
    if not is_line and (word := _end_word(tokens, end, pairs)) is not None:
        two = word + 1 < len(tokens) and tokens[word].text == "end" and tokens[word + 1].text in _CONTROL
        outside = head, Span(tokens[word].start, tokens[word + two].end)
        return _Loop(0, counted, outside, tokens[end].start, tokens[word].start)
    if tokens[end - 1].type == "COLON":
        near = tokens[end + 1 : end + _NEAR]
        column = source.position(tokens[i].start)[1] if tokens[end].first else len(source.text)
        after = (token for token in near if token.first and source.position(token.start)[1] <= column)
        return _Loop(0, counted, (head,), tokens[end].start, next(after, tokens[-1]).start)
    while (inner := _control_end(tokens, end, pairs, True)) is not None:
        end = inner
    close = _block_end(tokens, end) if tokens[end].type == "LBRACE" else None
    if close is not None:  # that of a loop which is the body of this one
        return _Loop(0, counted, (head,), tokens[end].end, tokens[close].start)
    return _Loop(0, counted, (head,), tokens[end].start, None)


def _end_word(tokens: list[Token], start: int, pairs: dict[int, int]) -> int | None:
    """The place of the `end` of a loop whose body begins at `start`."""
    depth = 0
    for j in range(start, min(len(tokens), start + _NEAR)):
        if tokens[j].type in ("DEF", "RBRACE"):
            return None
        if _is_end(tokens, j):
            if not depth:
                return j
            depth -= 1
        elif tokens[j].text in _CONTROL and (end := _control_end(tokens, j, pairs, j == start)) is not None:
            depth += tokens[end].type != "LBRACE"
    return None


def _counted(head: list[Token]) -> tuple[_Range, ...] | None:
    """The ranges in `(int i = 0; i < N; i++)`, `i in range(N)`, `i = 1:N, j = 1:M`; `None` if it is something else."""
    if head and closers(head).get(0) == len(head) - 1:
        head = head[1:-1]
    if head and (head[-1].type == "COLON" or head[-1].text in ("do", "then", "loop")):
        head = head[:-1]
    parts = split_commas(head)
    if not all(len(each) > 2 and each[1].type in ("IN", "ASSIGN") for each in parts):
        parts = [head]
    found = [_one_range(part) for part in parts]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def _one_range(head: list[Token]) -> _Range | None:
    """The range of one index."""
    while len(head) > 1 and is_type(head[0]):
        head = head[1:]
    if not head or head[0].type != "NAME":
        return None
    index, rest = head[0].text, head[2:]
    if len(head) == 1:
        return _Range(index)
    if not (head[1].type in ("ASSIGN", "IN", "COMMA") or head[1].text == "from") or not rest:
        return None
    if any(token.type == "RELATION" and rest[at - 1].text == index for at, token in enumerate(rest) if at):
        return _compared(index, rest)
    if rest[0].text in RANGES and closers(rest).get(1) == len(rest) - 1:
        ends = split_commas(rest[2:-1])
        if len(ends) == 3 and text_of(ends[2]) == "1":
            ends = ends[:2]
        return _between(index, ends[0] if len(ends) == 2 else None, ends[-1]) if 0 < len(ends) < 3 else None
    if [token.type for token in rest] == ["NAME", "LPAR", "NAME", "RPAR"] and rest[0].text == "eachindex":
        return _Range(index, upper=f"{rest[2].text}.0", from_1=True)
    return _spelled(index, rest)


def _compared(index: str, rest: list[Token]) -> _Range | None:
    """The range in `0; i < N; i++`, whose `;` are no tokens."""
    at = next(i for i, token in enumerate(rest) if i and token.type == "RELATION" and rest[i - 1].text == index)
    steps = (f"{index}++", f"++{index}", f"{index}+=1", f"{index}={index}+1")
    texts = [token.text for token in rest]
    stop = next((i for i in range(at + 2, len(rest)) if "".join(texts[i:]) in steps), None)
    if rest[at].text not in ("<", "<=") or at < 2 or stop is None:
        return None
    return _between(index, rest[: at - 1], rest[at + 1 : stop], one_more=rest[at].text == "<=")


def _spelled(index: str, rest: list[Token]) -> _Range | None:
    """The range in `1:N`, `0..N`, `0, N - 1` and `0 to N`; `None` where it is not certain whether it includes its end."""
    pairs, places, i = closers(rest), list[int](), 0
    while i < len(rest):
        if rest[i].type in ("COLON", "DOTS", "COMMA") or rest[i].text in ("to", "until"):
            places.append(i)
        i = pairs.get(i, i) + 1
    if len(places) != 1 or not 0 < places[0] < len(rest) - 1:
        return None
    (place,) = places
    lower, upper = rest[:place], rest[place + 1 :]
    if rest[place].type == "DOTS" and upper[0].text in ("=", "<") and len(upper) > 1:
        return _between(index, lower, upper[1:], one_more=upper[0].text == "=")
    if rest[place].text == "until":
        return _between(index, lower, upper)
    if text_of(lower) == "1":
        found = _between(index, None, upper)
        return found and replace(found, from_1=True)
    if text_of(lower) != "0":
        return None
    if len(upper) > 2 and (upper[-2].text, upper[-1].text) == ("-", "1"):
        upper = upper[:-2]
    return _between(index, None, upper)


def _between(index: str, lower: list[Token] | None, upper: list[Token], one_more: bool = False) -> _Range | None:
    low, high = bound(lower) if lower else "0", bound(upper)
    if low is None or high is None:
        return None
    more = str(int(high) + 1) if high.isdigit() else f"{high} + 1"
    return _Range(index, low, more if one_more else high)


def _nests(loops: list[_Loop]) -> list[list[_Loop]]:
    """The loops, those together of which one stands in the other."""
    found: list[list[_Loop]] = []
    for loop in loops:
        outer = found[-1][0] if found else None
        same = outer is not None and (loop.start == outer.start or (outer.end is not None and loop.start < outer.end))
        found[-1:] = [[*found[-1], loop]] if same else [*found[-1:], [loop]]
    return found


def _extents(tokens: list[Token], place: int) -> dict[tuple[str, int], str]:
    """The sizes of the parameters of the def around a place, by name and dimension."""
    starts = [i for i, token in enumerate(tokens) if token.type == "DEF" and token.start < place]
    return extents(tokens[starts[-1] :]) if starts else {}


def _ranged(
    kept: list[Token], nest: list[_Loop], sizes: dict[tuple[str, int], str], diagnostics: list[Diagnostic]
) -> tuple[list[Token], Fix | None]:
    """The tokens with the ranges of loops where these are not those of the arrays, and what to write in the place of the loops."""
    clauses: dict[int, list[str]] = {}  # by the start of the statement
    pieces: dict[int, list[Token]] = {}
    turns = _set_in_each_turn(kept, nest)
    results, last = _results(kept, nest[0].start), dict[int, dict[str, str]]()  # by the start of the statement
    for loop in nest:
        found = [each for each in _body(kept, loop) if not is_command(each, 0, closers(each))]
        for range in loop.ranges:
            names = [range.index, *(name for name, indices in turns.items() if range.index in indices)]
            used = [each for each in found if _uses(each, *names)]
            repeated = any(each not in used and _accumulates(each) for each in found)
            if not used or repeated or any(_is_numbered(each, range) for each in used):
                return kept, None  # it repeats something, or the fix would not mean the same
            for each in used:
                pieces[each[0].start] = each
                if range.upper and _sets_number(each, results):
                    last.setdefault(each[0].start, {})[range.index] = _before(range.upper)
                elif not _is_whole(each, range, sizes):
                    text = f"{range.index} in {range.lower}:{range.upper}"
                    clauses.setdefault(each[0].start, []).append(text)
    edits = [Edit(span, "") for loop in nest for span in loop.outside]
    offered = True
    for start, piece in pieces.items():
        if start in last:
            kept = _of_last_turn(kept, piece, last[start], diagnostics)
            continue
        own = [*as_update(piece), *_with_indices(piece, turns)]
        own = [each for each in own if not _is_inside_another(each, own)]
        if start in clauses and any(token.type == "WHERE" and token.start == token.end for token in piece):
            offered = False  # another fix writes this `where`: there is one after the other
        else:
            own += [with_clauses(piece, ", ".join(clauses[start]))] if start in clauses else []
        if not own:
            continue
        after = mended(piece, Fix("", tuple(own := _apart(own))))
        if after is None:
            return kept, None
        at = next(i for i, token in enumerate(kept) if token is piece[0])
        kept = [*kept[:at], *after, *kept[at + len(piece) :]]
        edits += own
    title = "leave them out" if len(nest) > 1 else "leave it out"
    return kept, Fix("write ranges" if clauses else title, tuple(edits)) if offered else None


def _body(kept: list[Token], loop: _Loop) -> list[list[Token]]:
    """The statements of a loop."""
    inside = [token for token in kept if token.start >= loop.start and (loop.end is None or token.start < loop.end)]
    return split_statements(_first_block(inside))[: None if loop.end is not None else 1]


def _first_block(tokens: list[Token]) -> list[Token]:
    """The tokens before the first `}`; none where that is far away."""
    end = next((i for i, token in enumerate(tokens[:_NEAR]) if token.type == "RBRACE"), len(tokens))
    return tokens[:end] if end <= _NEAR else []


def _uses(piece: list[Token], *names: str) -> bool:
    return any(token.text in names and token.type == "NAME" for token in piece)


def _set_in_each_turn(kept: list[Token], nest: list[_Loop]) -> dict[str, list[str]]:
    """The numbers that loops set anew in each turn and then add to, with the indices of these loops.

    `s = 0` and `s += X(i, j)` in a loop over `i` are one sum for each `i`. A result is a number, though: that of the last turn.
    """
    found: dict[str, list[str]] = {}
    results = _results(kept, nest[0].start)
    for loop in nest:
        if loop.end is None:
            continue
        first: dict[str, str] = {}
        for piece in _body(kept, loop):
            changes = change(piece)
            if changes is None or changes.name in results:
                continue
            name = changes.name
            if name not in first:
                first[name] = changes.operator
            elif not first[name]:
                own = [range.index for range in loop.ranges]
                found[name] = [*found.get(name, []), *(index for index in own if index not in found.get(name, []))]
    return found


def _accumulates(piece: list[Token]) -> bool:
    """Whether a statement combines a value with what is there, so that it matters how often it runs."""
    found = change(piece)
    return found.operator != "" if found else any(token.type == "UPDATE" for token in piece)


def _sets_number(piece: list[Token], results: frozenset[str]) -> bool:
    """Whether a statement writes a result that is a number, and does not read it."""
    target = piece[0].text in results and len(piece) > 1 and piece[1].type == "ASSIGN"
    return target and not _uses(piece[1:], piece[0].text)


def _before(upper: str) -> str:
    return f"{upper} - 1" if upper.isidentifier() else str(int(upper) - 1) if upper.isdigit() else f"({upper}) - 1"


def _of_last_turn(
    kept: list[Token], piece: list[Token], last: dict[str, str], diagnostics: list[Diagnostic]
) -> list[Token]:
    """The tokens with `t = X(N - 1)` for `t = X(i)`, after a message: the last turn of a loop decides."""
    places = [token for token in piece[2:] if token.type == "NAME" and token.text in last]
    written = mended(piece, Fix("", tuple(Edit(token.span, f"({last[token.text]})") for token in places)))
    if written is None:
        return kept
    texts = [token.text if token not in places else last[token.text] for token in piece]
    shown = text_of([replace(token, text=text) for token, text in zip(piece, texts, strict=True)])
    index = " and ".join(f"`{name}`" for name in last)
    message = f"`{piece[0].text}` is one number, but its value differs with {index}"
    help = f"`+=!` adds all values, `max=!` takes the largest; a loop leaves the last one, which is `{shown}`"
    labels = (Label(places[0].span, f"`{places[0].text}` is not on the left"),)
    diagnostics.append(Diagnostic(codes.REDUCTION_MISSING, piece[1].span, message, "", labels, help))
    at = next(i for i, token in enumerate(kept) if token is piece[0])
    return [*kept[:at], *written, *kept[at + len(piece) :]]


def _results(tokens: list[Token], place: int) -> frozenset[str]:
    """The names behind the `->` of the def around a place."""
    starts = [i for i, token in enumerate(tokens) if token.type == "DEF" and token.start < place]
    header = tokens[starts[-1] :] if starts else []
    arrow = next((i for i, token in enumerate(header) if token.type == "ARROW"), len(header))
    end = next((i for i, token in enumerate(header) if token.type == "LBRACE"), len(header))
    return frozenset(token.text for token in header[arrow:end] if token.type == "NAME")


def _is_inside_another(edit: Edit, edits: list[Edit]) -> bool:
    return any(each.span.start < edit.span.start < each.span.end for each in edits)


def _with_indices(piece: list[Token], turns: dict[str, list[str]]) -> list[Edit]:
    """`s(i)` for every `s` that is set in each turn."""
    after = [*(token.type for token in piece[1:]), ""]
    return [
        Edit(Span(token.end, token.end), f"({', '.join(turns[token.text])})")
        for token, follows in zip(piece, after, strict=True)
        if token.type == "NAME" and token.text in turns and follows != "LPAR"
    ]


def _apart(edits: list[Edit]) -> list[Edit]:
    """The edits, those at one place as one."""
    found: dict[Span, str] = {}
    for edit in edits:
        found[edit.span] = found.get(edit.span, "") + edit.text
    return [Edit(span, text) for span, text in found.items()]


_BEFORE, _AFTER = ("LPAR", "LSQB", "COMMA"), ("RPAR", "RSQB", "COMMA")


def _is_shifted(piece: list[Token], index: str) -> bool:
    """Whether an index stands only alone, or with a number added, in subscripts, so that it may count from 0 as well."""
    for i, token in enumerate(piece):
        if token.text != index:
            continue
        after = i + 1
        if [token.type for token in piece[after : after + 2]] in (["SIGN", "INTEGER"], ["MINUS", "INTEGER"]):
            after += 2
        if piece[i - 1].type not in _BEFORE or after >= len(piece) or piece[after].type not in _AFTER:
            return False
    return True


def _is_whole(piece: list[Token], range: _Range, sizes: dict[tuple[str, int], str]) -> bool:
    """Whether a loop goes over a whole array that its index reads, as the index does by itself."""
    if range.upper is None:
        return True
    return range.lower == "0" and runs_so_far(piece, range.index, range.upper, sizes)


# --- loops that carry a number ---------------------------------------------------------------------------------------


def _carried(kept: list[Token], loop: _Loop, in_heads: list[Token]) -> list[str]:
    """The numbers that a loop carries from turn to turn."""
    body = _body(kept, loop)
    if not body:
        return []
    head, end = loop.outside[0], body[-1][-1].end
    inside = [token for token in in_heads if head.start <= token.start < end]
    counters = set[str]() if loop.ranges else {token.text for token in inside if token.start < head.end}
    return [name for name in carried(body, inside) if name not in counters]


def _recurrence(
    kept: list[Token], nest: list[_Loop], carrying: dict[int, list[str]], sizes: dict[tuple[str, int], str]
) -> tuple[list[Token], Fix | None]:
    """The tokens with a recurrence in the place of loops, and its fix; `None` unless the innermost loop alone is a running sum."""
    *around, loop = nest
    ranges = [range for each in nest for range in each.ranges]
    names, body = carrying.get(loop.message, []), _body(kept, loop)
    is_plain = len(names) == 1 and len(body) == 2 and all(range.lower == "0" for range in ranges)
    if not is_plain or len(ranges) > len(nest) or any(each.message in carrying for each in around):
        return kept, None
    own = _of_def(kept, loop.start)
    before = [token for token in own if (around[-1].start if around else 0) <= token.start < loop.start][-_NEAR:]
    whole = [*split_statements(before)[-1:], *body]
    if len(whole) < 3 or any(_body(kept, each) != whole for each in around):
        return kept, None
    if any(_is_numbered(piece, range) for piece in whole for range in ranges):
        return kept, None
    count = sum(token.text == names[0] for piece in whole for token in piece)
    if names[0] in _results(kept, loop.start) or sum(token.text == names[0] for token in own) > count:
        return kept, None  # it is read elsewhere, too
    clauses = [f"{range.index} in 0:{range.upper}" for range in ranges if not _is_whole(whole[1], range, sizes)]
    found = as_recurrence(whole, [range.index for range in ranges], clauses)
    if found is None:
        return kept, None
    gone, at = {id(token) for piece in whole for token in piece}, kept.index(whole[1][0])
    rest = [[token for token in part if id(token) not in gone] for part in (kept[:at], kept[at:])]
    edits = [*(Edit(span, "") for each in nest for span in each.outside), *found[1]]
    return [*rest[0], *found[0], *rest[1]], Fix("write the recurrence", tuple(edits))


def _is_numbered(piece: list[Token], range: _Range) -> bool:
    """Whether a statement in a loop that counts from 1 uses the number itself."""
    return range.from_1 and not _is_shifted(piece, range.index)


def _of_def(tokens: list[Token], place: int) -> list[Token]:
    """The tokens in the braces of the def around a place."""
    starts = [token.start for token in tokens if token.type == "DEF"]
    number = bisect_left(starts, place)
    own = [token for token in tokens if not starts[:number] or token.start >= starts[number - 1]]
    own = [token for token in own if not starts[number:] or token.start < starts[number]]
    opening = next((i + 1 for i, token in enumerate(own) if token.type == "LBRACE"), 0)
    return own[opening:]


def _keep_semicolons(tokens: list[Token], heads: list[Span], diagnostics: list[Diagnostic]) -> None:
    """Say nothing of a `;` before a head that stays: directly behind a value, the head would be read as something else."""
    starts = [token.start for token in tokens]
    ends = {bisect_left(starts, head.start): tokens[bisect_left(starts, head.start) - 1].end for head in heads}
    diagnostics[:] = [
        each
        for each in diagnostics
        if each.message != SEMICOLON
        or (place := bisect_left(starts, each.span.start)) not in ends
        or each.span.start < ends[place]
    ]


def _reading(kept: list[Token], loop: _Loop, names: list[str]) -> list[list[Token]]:
    """The statements in a loop that change or read some numbers."""
    return [piece for piece in _body(kept, loop) if _uses(piece, *names)]


def _counting(kept: list[Token], loop: _Loop) -> list[list[Token]]:
    """The statements in a loop whose value is what it counts with, as in `p = i`: no index has such a range without the loop."""
    counters = {range.index for range in loop.ranges}
    return [
        piece
        for piece in _body(kept, loop)
        if len(piece) > 2 and piece[-2].type == "ASSIGN" and piece[-1].text in counters
    ]


def _without_values(kept: list[Token], pieces: list[list[Token]]) -> list[Token]:
    """The tokens, with nothing that could be told of the values of some statements."""
    for piece in pieces:
        at = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), len(piece)) + 1
        if at >= len(piece):
            continue
        first = next(i for i, token in enumerate(kept) if token is piece[0])
        value = Token("ERROR", piece[at].text, piece[at].start, piece[-1].end)
        kept = [*kept[: first + at], value, *kept[first + len(piece) :]]
    return kept


# --- conditions, and where a head and a body end ---------------------------------------------------------------------


def _block_end(tokens: list[Token], opening: int) -> int | None:
    """The place of the `}` of a block."""
    depth = 0
    for i in range(opening, min(len(tokens), opening + _NEAR)):
        depth += (tokens[i].type == "LBRACE") - (tokens[i].type == "RBRACE")
        if not depth:
            return i
    return None


def _is_end(tokens: list[Token], i: int) -> bool:
    """Whether a word closes a loop of Julia, MATLAB or Fortran: `end`, `end do`, and no statement on a tensor of that name."""
    follows = tokens[i + 1].type if i + 1 < len(tokens) else "RBRACE"
    return tokens[i].text in _ENDS and tokens[i - 1].type in ENDS_EXPRESSION and follows in ("NAME", "RBRACE", "DEF")


def _inside(place: int, heads: list[Span]) -> bool:
    """Whether a place is behind the first word of a head, as the `;` of `for (...; ...)` are."""
    found = bisect_left(heads, place, key=lambda head: head.start) - 1
    return found >= 0 and place < heads[found].end


def _control_end(tokens: list[Token], i: int, pairs: dict[int, int], behind: bool) -> int | None:
    """Where `for (...)` and the like that starts at `i` ends; `None` if it is something else.

    Args:
        behind: whether another head ends there.
    """
    token, before = tokens[i], tokens[i - 1].type if i else ""
    if (
        token.type not in ("NAME", "ELSE")
        or (token.text not in _CONTROL and token.text not in _ELSE)
        or i + 1 >= len(tokens)
    ):
        return None
    if before not in ("LBRACE", "RBRACE") and not behind and not (token.first and before in ENDS_EXPRESSION):
        return None
    end = i + 1
    of_read = token.type == "ELSE" and before in ENDS_EXPRESSION and tokens[end].type not in ("LBRACE", "COLON")
    if of_read and not starts_statement(tokens, end, pairs):
        return None  # `X(i)`, and on the next line `else 0`
    if token.text != "else" and tokens[end].type == "LPAR":
        end = pairs.get(end, len(tokens)) + 1
    elif tokens[end].type in ("ASSIGN", "UPDATE", "COMMA"):
        return None  # a tensor has that name
    elif token.text != "else":
        near = range(end, min(end + 40, len(tokens)))
        stops = (j for j in near if tokens[j].type in ("LBRACE", "RBRACE") or tokens[j].first)
        end = next(stops, len(tokens))
        inner = (  # `for i in range(N): Y(i) = X(i)` on one line
            j + 1
            for j in near
            if j + 1 < end
            and (tokens[j].type == "COLON" or (tokens[j].type in ENDS_EXPRESSION and j > i + 1))
            and tokens[j + 1].type in ("NAME", "DIGIT_NAME")
            and starts_statement(tokens, j + 1, pairs)
            and not (tokens[j].type == "COLON" and tokens[j + 2].type == "COMMA")  # as in `i = 1:N, j = 1:M`
        )
        end = next(inner, end)
    elif tokens[end].type == "COLON":
        end += 1
    end += end + 1 < len(tokens) and tokens[end].text == "then" and tokens[end + 1].first
    follows = tokens[end].type if end < len(tokens) else ""
    return end if follows in ("NAME", "DIGIT_NAME", "SCALAR", "LBRACE") else None
