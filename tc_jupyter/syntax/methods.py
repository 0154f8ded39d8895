"""Methods of arrays that change no value, and limits of values with names: each is told, and what is meant stands in its place.

Worked example: `x(i).detach()` becomes `x(i)`, and `torch.clamp(x(i), min=0)` becomes `max(x(i), 0)`.
"""

from __future__ import annotations

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes

from .library_names import INSTEAD, MODULES
from .mended import mended
from .recovery import closers, split_commas
from .tokens import ENDS_EXPRESSION, Token

_IDLE = frozenset(
    {"item", "detach", "cuda", "cpu", "numpy", "clone", "contiguous", "copy", "get", "requires_grad_", "retain_grad"}
)
"""Methods that give the same values."""
_LOWER = frozenset({"min", "a_min", "min_value", "clip_value_min"})
_UPPER = frozenset({"max", "a_max", "max_value", "clip_value_max"})
_LIMITS = frozenset({"clip", "clamp", "clip_by_value", "clamp_", "clip_"})
_ONE_LIMIT = {"clamp_min": "max", "clamp_max": "min"}


def without_idle_methods(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`x(i).detach().cpu()` becomes `x(i)`, after one message."""
    if not any(token.type == "DOT" for token in tokens):
        return tokens
    kept, i = list[Token](), 0
    while i < len(tokens):
        end = i
        while end and tokens[i - 1].type in ENDS_EXPRESSION and _is_idle(tokens, end):
            end += 4
        if end == i:
            kept.append(tokens[i])
            i += 1
            continue
        place = Span(tokens[i].start, tokens[end - 1].end)
        message = f"there is no `.{tokens[i + 1].text}`"
        help = "it changes no value: leave it out"
        fix = Fix("leave it out", (Edit(place, ""),))
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix))
        i = end
    return kept


def _is_idle(tokens: list[Token], i: int) -> bool:
    four = tokens[i : i + 4]
    return [token.type for token in four] == ["DOT", "NAME", "LPAR", "RPAR"] and four[1].text in _IDLE


def with_limits(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`clamp(x, min=a)`, `np.clip(x, None, b)` and `x.clip(a, b)` become `max(x, a)`, `min(x, b)` and `min(max(x, a), b)`."""
    places = [i for i, token in enumerate(tokens) if token.text in _LIMITS or token.text in _ONE_LIMIT]
    if not places:
        return tokens
    pairs, fixes = closers(tokens), list[Fix]()
    openings = {close: opening for opening, close in pairs.items()}
    for i in places:
        if i + 1 in pairs and (found := _limited(tokens, i, pairs[i + 1], openings)) is not None:
            diagnostics.append(found)
            fixes += [found.fix] if found.fix else []
    return mended(tokens, *fixes) or tokens if fixes else tokens


def _limited(tokens: list[Token], i: int, close: int, openings: dict[int, int]) -> Diagnostic | None:
    """What to say of a call that begins at a place; `None` where it is a plain one, or something else."""
    arguments = split_commas(tokens[i + 2 : close])
    is_of_module = i > 1 and tokens[i - 1].type == "DOT" and tokens[i - 2].text in MODULES
    first = i - 2 if is_of_module else i
    if i and tokens[i - 1].type == "DOT" and not is_of_module:
        first = _operand_start(tokens, i - 1, openings)
        value, message = tokens[first : i - 1], f"there is no `.{tokens[i].text}`"
        end = tokens[i - 1].start  # behind methods that were left out
    else:
        value = arguments.pop(0) if arguments else []
        is_named = any(token.type in ("ASSIGN", "UPDATE") for each in arguments for token in each)
        message = "arguments have no names" if is_named else "there is no `None`"
        if not value or not (is_named or any(_is_none(each) for each in arguments)):
            return None
        end = value[-1].end
    limits = _limits(tokens[i].text, arguments)
    if not limits or value[0].type == "RPAR":
        return None
    called = "".join(f"{function}(" for function, _ in reversed(limits))
    ends = [end, *(limit[-1].end for _, limit in limits)]
    edits = [Edit(Span(tokens[first].start, value[0].start), called)]
    edits += [
        Edit(Span(end, limit[0].start), f"{')' * (k > 0)}, ")
        for k, (end, (_, limit)) in enumerate(zip(ends, limits, strict=False))
    ]
    edits.append(Edit(Span(ends[-1], tokens[close].end), ")"))
    place = Span(tokens[i].start, tokens[close].end)
    fix = Fix("limit it with `min` and `max`", tuple(edits))
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=INSTEAD["clip"].help, fix=fix)


def _limits(name: str, arguments: list[list[Token]]) -> list[tuple[str, list[Token]]]:
    """The limits of a call, each with the function that limits; none where one of them is something else."""
    if name in _ONE_LIMIT:
        one = [_named(each)[1] for each in arguments]
        return [(_ONE_LIMIT[name], one[0])] if len(one) == 1 and one[0] else []
    found: list[tuple[str, list[Token]]] = []
    for function, argument in zip(("max", "min"), arguments, strict=False):
        word, limit = _named(argument)
        given = "max" if word in _LOWER else "min" if word in _UPPER else None if word else function
        if given is None or not limit:
            return []
        found += [] if _is_none(limit) else [(given, limit)]
    return found if 0 < len(arguments) < 3 and len({function for function, _ in found}) == len(found) else []


def _named(argument: list[Token]) -> tuple[str, list[Token]]:
    """The name of an argument, if it has one, and its value: `min` and `0` for `min=0`."""
    if argument and argument[0].type == "UPDATE":
        return argument[0].text.rstrip("="), argument[1:]
    if len(argument) > 2 and argument[1].type == "ASSIGN":
        return argument[0].text, argument[2:]
    return "", argument


def _is_none(argument: list[Token]) -> bool:
    return len(argument) == 1 and argument[0].text == "None"


def _operand_start(tokens: list[Token], end: int, openings: dict[int, int]) -> int:
    """Where the operand that ends before a place starts: `x`, `x(i)`, `np.where(..)` or something in brackets."""
    start = end - 1
    while start in openings and (opening := openings[start]):
        is_called = tokens[opening - 1].type in ("RSQB", "NAME", "MINMAX", "SCALAR")
        if not is_called and (opening < 2 or tokens[opening - 2].type != "DOT"):  # `where` of `np.where` is a word too
            break
        start = opening - 1
    start = openings.get(start, start)
    while start > 1 and tokens[start - 1].type == "DOT" and tokens[start - 2].type == "NAME":
        start -= 2
    return start
