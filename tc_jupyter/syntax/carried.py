"""Numbers that each turn of a loop takes from the turn before it, which makes the loop a recurrence.

Worked example: in `s += x[i]; y[i] = s` the number `s` is carried, and what is meant is `y(i) = (y(i - 1) else 0) + x(i) along i`;
`s += x[i]` alone is a sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.diagnostics import Edit, Fix, Span

from .foreign import text_of
from .library_names import TYPES, Running
from .mended import mended
from .recovery import DECLARING, closers, split_commas
from .tokens import Token

RECURRENCE = (
    "each turn needs `{}` of the turn before: that is a recurrence, as in `y(i) = (y(i - 1) else 0) + x(i) along i`"
)
"""The help about a loop that carries a number."""

_LARGEST = {
    **dict.fromkeys(("max", "fmax", "fmaxf", "maximum", "fmaximum"), "max"),
    **dict.fromkeys(("min", "fmin", "fminf", "minimum", "fminimum"), "min"),
}
_OTHERS = {"-": "+", "/": "*"}  # what `s -= x` and `s /= x` combine with, but for a sign
_LOOSER = frozenset({"RELATION", "EQUALITY", "QUESTION", "AND", "OR"})


def is_type(token: Token) -> bool:
    """Whether a token declares the name behind it."""
    return token.type == "SCALAR" or token.text in DECLARING or token.text in TYPES


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that changes a number.

    Attributes:
        operator: what combines the value with the number: `+`, `*`, `max`; nothing where it replaces the number.
        value: what is combined.
    """

    name: str
    operator: str
    value: tuple[Token, ...]


def change(piece: list[Token]) -> Change | None:
    """What a statement does to a number; `None` if it writes elements of a tensor, or something else."""
    start = next((i for i, token in enumerate(piece) if not is_type(token)), 0)
    if piece[start].type != "NAME" or len(piece) < start + 3:
        return None
    name, follows = piece[start].text, piece[start + 1]
    if follows.type == "ASSIGN":
        after = mended(piece, Fix("", tuple(edits))) if (edits := as_update(piece)) else None
        return change(after) if after else Change(name, "", tuple(piece[start + 2 :]))
    if follows.type == "UPDATE":
        return Change(name, follows.text.rstrip("=!"), tuple(piece[start + 2 :]))
    if piece[start + 2].type == "ASSIGN" and follows.end == piece[start + 2].start:
        return Change(name, _OTHERS.get(follows.text, follows.text), tuple(piece[start + 3 :]))
    return None


def changes(piece: list[Token]) -> list[Change]:
    """What a statement does to numbers: `a, b = b, a + b` replaces two."""
    assign = next((i for i, token in enumerate(piece) if token.type == "ASSIGN"), 0)
    lefts = split_commas(piece[:assign])
    if len(lefts) > 1 and all([token.type for token in left] == ["NAME"] for left in lefts):
        return [Change(left[0].text, "", tuple(piece[assign + 1 :])) for left in lefts]
    found = change(piece)
    return [] if found is None else [found]


def carried(statements: list[list[Token]], heads: list[Token]) -> list[str]:
    """The numbers that a turn of a loop needs from the turn before it; those that are only added to, or only multiplied, are none.

    Args:
        statements: those of the body.
        heads: the tokens in the heads of the loops and conditions of the body.
    """
    changed: dict[str, list[tuple[int, str]]] = {}
    reads: dict[str, int] = {}  # the first place
    for token in heads:
        reads[token.text] = min(token.start, reads.get(token.text, token.start))
    for piece in statements:
        if is_type(piece[0]) and all(token.type not in ("ASSIGN", "UPDATE") for token in piece):
            continue  # `float t` reads nothing
        found = changes(piece)
        for each in found:
            changed.setdefault(each.name, []).append((piece[-1].end, each.operator))
        for token in found[0].value if found else piece[1:]:
            reads[token.text] = min(piece[0].start, reads.get(token.text, piece[0].start))
    carrying: list[str] = []
    for name, each in changed.items():
        place, operator = each[0]
        is_set_first = not operator and reads.get(name, place) >= place
        if not is_set_first and (name in reads or not operator or len({kind for _, kind in each}) > 1):
            carrying.append(name)
    return carrying


def as_update(piece: list[Token]) -> list[Edit]:
    """`s += e` for `s = s + e` and `s = e + s`, `s += -e` for `s = s - e`, and `m max= e` for `m = max(m, e)`."""
    at = next((i for i, token in enumerate(piece) if token.type == "ASSIGN"), 0)
    stop = next((i for i, token in enumerate(piece) if token.type == "WHERE"), len(piece))
    start = next((i for i, token in enumerate(piece) if not is_type(token)), 0)
    target, value = [token.text for token in piece[start:at]], piece[at + 1 : stop]
    size, texts = len(target), [token.text for token in value]
    if not target or len(value) < size + 2:
        return []
    if texts[:size] == target and texts[size] in ("+", "*", "-"):
        sign, own = texts[size], value[size + 1 :]
        if _is_looser(own, "+" if sign == "+" else "*"):
            return []
        operator = "+= -" if sign == "-" else f"{sign}= "
        return [Edit(Span(piece[at].start, own[0].start), operator)]
    if texts[-size:] == target and texts[-size - 1] in ("+", "*"):
        sign, own = texts[-size - 1], value[: -size - 1]
        if not own or _is_looser(own, sign):
            return []
        return [Edit(Span(piece[at].start, own[0].start), f"{sign}= "), Edit(Span(own[-1].end, value[-1].end), "")]
    called = texts[0] in _LARGEST and value[1].text == "(" and closers(value).get(1) == len(value) - 1
    parts = split_commas(value[2:-1]) if called else []
    others = [part for part in parts if [token.text for token in part] != target]
    if len(parts) != 2 or len(others) != 1 or not others[0]:
        return []
    own = others[0]
    operator = f"{_LARGEST[texts[0]]}= "
    return [Edit(Span(piece[at].start, own[0].start), operator), Edit(Span(own[-1].end, value[-1].end), "")]


def _is_looser(value: list[Token], operator: str) -> bool:
    """Whether a value needs brackets beside `+` or `*`."""
    pairs, i, kinds = closers(value), 0, set[str]()
    while i < len(value):
        kinds.add(value[i].type)
        i = pairs.get(i, i) + 1
    return bool(kinds & (_LOOSER | ({"SIGN", "MINUS"} if operator == "*" else set())))


def as_recurrence(
    body: list[list[Token]], indices: list[str], clauses: list[str]
) -> tuple[list[Token], list[Edit]] | None:
    """The recurrence for `s = 0`, `s += x[i]` and `y[i] = s`, and the edits that write it; `None` if this is something else.

    Args:
        body: the three statements.
        indices: those of the loops around, the innermost one last.
        clauses: the ranges that the loops give.
    """
    begin, update, write = body
    begins, changes = change(begin), change(update)
    assign = next((i for i, token in enumerate(write) if token.type == "ASSIGN"), 0)
    if begins is None or changes is None or changes.operator not in ("+", "*", "max", "min") or not assign:
        return None
    start = _start(begins)
    left = _subscripts(write[1:assign])
    own = {token.text for token in changes.value}
    if start is None or [token.text for token in write[assign + 1 :]] != [begins.name] or changes.name != begins.name:
        return None
    if sorted(left) != sorted(indices) or own & {begins.name, write[0].text, "where", "along"}:
        return None
    is_open = changes.operator in "+*" and _is_looser(list(changes.value), changes.operator)
    running = Running("", changes.operator, start)
    before, after = running.text(write[0].text, left, left.index(indices[-1]), "{}", is_open).split("{}")
    after += f" where {', '.join(clauses)}" if clauses else ""
    value = Span(changes.value[0].start, changes.value[-1].end)
    edits = [
        Edit(Span(update[0].start, value.start), f"{write[0].text}({', '.join(left)}) = {before}"),
        Edit(Span(value.end, update[-1].end), after),
    ]
    written = mended(update, Fix("", tuple(edits)))
    gone = [Edit(Span(piece[0].start, piece[-1].end), "") for piece in (begin, write)]
    return None if written is None else (written, [*edits, *gone])


def _start(begins: Change) -> str | None:
    """What `s = 0` sets a number to, as it stands behind `else`; `None` where it is no number or name."""
    *sign, last = begins.value
    plain = last.type in ("NUMBER", "INTEGER", "NAME") and [token.text for token in sign] in ([], ["-"])
    if begins.operator or not plain:
        return None
    return f"(-{last.text})" if sign else last.text


def _subscripts(tokens: list[Token]) -> list[str]:
    """The subscripts in `(i, j)`, `[i, j]` and `[i][j]`, as texts."""
    return [
        text_of(each)
        for opening, close in sorted(closers(tokens).items())
        for each in split_commas(tokens[opening + 1 : close])
        if each
    ]
