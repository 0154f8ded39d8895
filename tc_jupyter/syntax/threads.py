"""Numbers of threads, as CUDA, OpenCL, Numba and Triton have them: an index runs by itself.

Worked example: `int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) Y[i] = X[i]` means `Y(i) = X(i)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes

from .conditional import with_clauses
from .library_names import INSTEAD
from .mended import mended
from .recovery import behind_declaration, closers, enclosed, extents, split_commas, split_statements
from .tokens import ENDS_EXPRESSION, SEMICOLON, Token, parameters

_NUMBERS, _SIZES = frozenset({"threadIdx", "blockIdx"}), frozenset({"blockDim", "gridDim"})
_CALLS = frozenset({"get_global_id", "program_id", "grid", "get_local_id", "get_group_id"})
_MODULES = frozenset({"cuda", "tl", "triton"})
_BEFORE, _AFTER = ("LPAR", "LSQB", "COMMA"), ("RPAR", "RSQB", "COMMA", "SIGN", "MINUS")
_MESSAGE = "an index is no number of a thread"
_LETTERS = "ijklmnopq"
_MOST = 60  # tokens of such a number, and of a condition on it


@dataclass(slots=True)
class _Names:
    """What words mean in a def.

    Attributes:
        start: where the def begins in the text.
        sizes: of parameters: an index that stays below one runs so far by itself.
        numbers: parameters that are integers: below one, an index has a range of its own.
        indices: those that a statement has computed from the number of a thread, in their order.
        message: where the message about the first of them stands.
    """

    start: int = 0
    sizes: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    indices: dict[str, None] = field(default_factory=dict[str, None])
    results: frozenset[str] = frozenset()
    message: Span | None = None


@dataclass(frozen=True, slots=True)
class _Guard:
    """A condition that keeps indices in their ranges.

    Attributes:
        end: the token behind it.
        ranges: their ends, by index.
        returns: it leaves the def outside of the ranges: what follows is inside of them.
    """

    end: int
    ranges: dict[str, str]
    returns: bool


@dataclass(frozen=True, slots=True)
class _Region:
    """The statements behind a guard.

    Attributes:
        start: where the first one begins in the text; `end`: where they end, if there may be several.
        message: where the message about the guard stands.
        numbers: ends of ranges that no array has.
    """

    start: int
    end: int | None
    ranges: dict[str, str]
    message: Span
    numbers: frozenset[str]


def without_threads(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """Statements that compute an index from the number of a thread, and conditions that keep it in its range, are left out."""
    if not any(token.text in _NUMBERS or token.text in _CALLS for token in tokens):
        return tokens
    pairs, kept, read = closers(tokens), list[Token](), _read(tokens)
    names, i, braces, regions = _Names(), 0, set[int](), list[_Region]()
    defs = list[_Names]()
    while i < len(tokens):
        if tokens[i].type == "DEF":
            names = _names(tokens[i : i + 400])
            defs.append(names)
        end, found = i, None
        if (made := _made(tokens, i, pairs)) is not None and made[0] in read:
            names.indices[made[0]] = None
            end = made[1]
            place = Span(tokens[i].start, tokens[end - 1].end)
            edit = Edit(_with_semicolon(place, tokens[end].start if end < len(tokens) else None, diagnostics), "")
            found = of_thread(place, Fix("leave it out", (edit,)))
            names.message = names.message or place
        elif (guard := _guard(tokens, i, pairs, names) or _grid_loop(tokens, i, pairs, names)) is not None:
            end, close = guard.end, None
            heads = [Span(tokens[i].start, tokens[end - 1].end)]
            if end < len(tokens) and tokens[end].type == "LBRACE" and (close := _brace(tokens, end)):
                heads = [Span(tokens[i].start, tokens[end].end), tokens[close].span]
                braces.add(close)
                end += 1
            if guard.ranges and end < len(tokens):
                last = (
                    tokens[close].start if close else len(tokens[-1].text) + tokens[-1].start if guard.returns else None
                )
                regions.append(_Region(tokens[end].start, last, guard.ranges, heads[0], names.numbers))
            diagnostics[:] = [
                each for each in diagnostics if not (each.message == SEMICOLON and _is_in(each.span, heads[0]))
            ]
            found = of_thread(heads[0], Fix("leave it out", tuple(Edit(head, "") for head in heads)))
        elif i not in braces:
            kept.append(tokens[i])
        if found is not None:
            diagnostics.append(found)
            if end < len(tokens):
                tokens[end].first = True
        i = max(end, i + 1)
    for each in defs:
        kept = _of_each_thread(kept, each, diagnostics)
    return _in_subscripts(_ranged(kept, regions, diagnostics), diagnostics)


def _of_each_thread(kept: list[Token], names: _Names, diagnostics: list[Diagnostic]) -> list[Token]:
    """The tokens with `s(i)` for a number that each thread sets and then adds to, which the fix about its index writes, too."""
    own = [token for token in kept if token.start >= names.start]
    own = own[: next((k for k, token in enumerate(own) if k and token.type == "DEF"), len(own))]
    inside, changed = enclosed(closers(own)), dict[str, set[str]]()
    for k, (token, after) in enumerate(pairwise(own)):
        if token.type == "NAME" and k not in inside and after.type in ("ASSIGN", "UPDATE"):
            changed.setdefault(token.text, set()).add(after.type)
    local = {name for name, kinds in changed.items() if len(kinds) == 2 and name not in names.results}
    at = f"({', '.join(names.indices)})"
    edits = [
        Edit(token.span, f"{token.text}{at}")
        for token, after in pairwise(own)
        if token.text in local and token.type == "NAME" and after.type not in ("LPAR", "LSQB")
    ]
    is_told = names.message is not None and edits and _also(diagnostics, names.message, None, edits)
    return mended(kept, Fix("", tuple(edits))) or kept if is_told else kept


def _also(diagnostics: list[Diagnostic], place: Span, title: str | None, edits: list[Edit]) -> bool:
    """Let the fix of the message at a place make other edits, too; whether there is such a fix."""
    number = next((k for k, each in enumerate(diagnostics) if each.span == place and each.message == _MESSAGE), None)
    fix = None if number is None else diagnostics[number].fix
    if number is None or fix is None:
        return False
    more = Fix(title or fix.title, (*fix.edits, *edits))
    diagnostics[number] = replace(diagnostics[number], fix=more)
    return True


_ATOMIC = {"atomicAdd": "+=", "atomicMax": "max=", "atomicMin": "min=", "atomic_add": "+="}


def without_atomics(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`atomicAdd(&h[x[i]], 1)`, `np.add.at(h, x, 1)`, `h.at[x].add(1)` and others become statements, each after a message."""
    pairs, fixes = closers(tokens), list[Fix]()
    for i, token in enumerate(tokens):
        if i + 1 not in pairs or not i:
            continue
        close = pairs[i + 1]
        start, operator, edited = _atomic(tokens, i, pairs)
        if not edited or not start or tokens[start - 1].type in _OPERATORS:
            continue
        first, last = edited[0].span.start, edited[-1].span.end
        own = [
            Edit(Span(tokens[start].start, first), ""),
            *edited[1:-1],
            Edit(Span(last, tokens[close].end), edited[-1].text),
        ]
        message = f"there is no function `{''.join(each.text for each in tokens[start : i + 1])}`"
        fix = Fix(f"write `{operator}`", tuple(own))
        help = "an operator combines the values of all points, also where several of them have one element"
        place = Span(tokens[start].start, token.end)
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix))
        fixes.append(fix)
    return (mended(tokens, *fixes) or tokens) if fixes else tokens


_ATOMIC_AT = {"add": "+=", "multiply": "*=", "maximum": "max=", "minimum": "min=", "max": "max=", "min": "min="}
_ADDS_AT = frozenset({"index_add_", "index_add", "scatter_add_", "scatter_add"})


def _atomic(tokens: list[Token], i: int, pairs: dict[int, int]) -> tuple[int, str, list[Edit]]:
    """Where the call of a name begins that adds at places, the operator, and the edits; there are none for other calls."""
    name, start = tokens[i].text, _with_module(tokens, i)
    is_method = i > 2 and tokens[i - 1].type == "DOT"
    if name not in _ATOMIC and not is_method:
        return start, "", []
    parts, module = split_commas(tokens[i + 2 : pairs[i + 1]]), tokens[max(i - 2, 0)].text
    if name == "at":
        operator = _ATOMIC_AT.get(module, "")
        return start, operator, _at_places(tokens[:i], parts, operator) if operator else []
    if name in _ATOMIC:
        return start, _ATOMIC[name], _at_address(parts, _ATOMIC[name])
    operator = _ATOMIC_AT.get(name, "")
    if module == "atomic" and operator:
        return start, operator, _at_places(tokens[:i], parts, operator)
    if name in _ADDS_AT and start == i - 2 and len(parts) == 3 and [each.text for each in parts[0]] == ["0"]:
        return _assigned(tokens, start), "+=", _at_places(tokens[:i], [[tokens[start]], *parts[1:]], "+=")
    opened = next((k for k, end in pairs.items() if end == i - 2), 0) if operator and module == "]" else 0
    if opened > 2 and [each.text for each in tokens[opened - 2 : opened]] == [".", "at"]:
        target, places = tokens[opened - 3], tokens[opened + 1 : i - 2]
        return _assigned(tokens, opened - 3), operator, _at_places(tokens[:i], [[target], places, *parts], operator)
    return start, "", []


def _assigned(tokens: list[Token], i: int) -> int:
    """Where `H = H.at[x]` begins; of a method alone, its tensor."""
    again = i > 1 and tokens[i - 1].text == "=" and tokens[i - 2].text == tokens[i].text
    return i - 2 if again else i


def _with_module(tokens: list[Token], i: int) -> int:
    """Where a name begins that may stand behind modules, as `tl.atomic_add` and `np.add.at`."""
    while i > 1 and tokens[i - 1].type == "DOT" and tokens[i - 2].type == "NAME":
        i -= 2
    return i


def _at_address(parts: list[list[Token]], operator: str) -> list[Edit]:
    """The edits for `&h[e]` or `h + e` and a value, the first one where the target begins, the last one where the value ends."""
    target = parts[0][parts[0][0].text == "&" :] if len(parts) == 2 and all(parts) else []
    if not target or target[0].type != "NAME":
        return []
    before, value = Span(target[0].start, target[0].start), parts[1]
    is_sum = len(target) > 2 and target[1].text == "+"
    opening = [Edit(Span(target[0].end, target[2].start), "(")] if is_sum else []
    joint = Edit(Span(target[-1].end, value[0].start), f"{')' * is_sum} {operator} ")
    return [Edit(before, ""), *opening, joint, Edit(Span(value[-1].end, value[-1].end), "")]


def _at_places(before: list[Token], parts: list[list[Token]], operator: str) -> list[Edit]:
    """The same for a target, places and values: elements, or vectors as those of `np.add.at(h, x, v)`.

    `v` may be a number, or have a row for each place.
    """
    begin = next((k for k in range(len(before) - 1, -1, -1) if before[k].type == "DEF"), 0)
    types, words = parameters(before[begin:]), {token.text for token in before[begin:]}
    letters = [each for each in _LETTERS if each not in words]
    if len(parts) != 3 or not all(parts) or len(parts[0]) != 1 or parts[0][0].type != "NAME":
        return []
    (target,), places, value = parts
    ranks = [types.get(each[0].text, ("", 0))[1] if len(each) == 1 else 0 for each in (places, value)]
    if ranks[0] > 1 or ranks[1] > (ranks[0] and len(letters)) or len(letters) < ranks[0]:
        return []
    at = [f"({letters[0]})"] * ranks[0]
    row = [f", {each}" for each in letters[1 : ranks[1]]]
    is_tuple = closers(places).get(0) == len(places) - 1
    places = places[1:-1] if is_tuple and places[0].text == "(" else places
    return [
        Edit(Span(target.start, target.start), ""),
        Edit(Span(target.end, places[0].start), "("),
        Edit(Span(places[-1].end, value[0].start), f"{''.join([*at, *row])}) {operator} "),
        Edit(Span(value[-1].end, value[-1].end), f"({letters[0]}{''.join(row)})" if ranks[1] else ""),
    ]


_OPERATORS = ("ASSIGN", "UPDATE", "SIGN", "MINUS", "FACTOR", "COMMA", "LPAR")


def _is_in(place: Span, other: Span) -> bool:
    return other.start <= place.start < other.end


def _read(tokens: list[Token]) -> set[str]:
    """The names in brackets behind a name."""
    found = set[str]()
    for opening, close in closers(tokens).items():
        if opening and tokens[opening - 1].type in ("NAME", "RSQB"):
            found |= {token.text for token in tokens[opening + 1 : close] if token.type == "NAME"}
    return found


def _names(header: list[Token]) -> _Names:
    header = header[: next((i for i, token in enumerate(header) if token.type == "LBRACE"), len(header))]
    numbers = (
        name.text
        for kind, name, after in zip(header, header[1:], header[2:], strict=False)
        if kind.type == "SCALAR" and "int" in kind.text and name.type == "NAME" and after.type in ("COMMA", "RPAR")
    )
    arrow = next((i for i, token in enumerate(header) if token.type == "ARROW"), len(header))
    results = frozenset(token.text for token in header[arrow:] if token.type == "NAME")
    return _Names(header[0].start, frozenset(extents(header).values()), frozenset(numbers), results=results)


def _with_semicolon(place: Span, limit: int | None, diagnostics: list[Diagnostic]) -> Span:
    """The place of a statement with the `;` behind it, of which nothing is said then."""
    behind = [each for each in diagnostics if each.message == SEMICOLON and each.span.start >= place.end]
    first = min(behind, key=lambda each: each.span.start, default=None)
    if first is None or (limit is not None and first.span.start > limit):
        return place
    diagnostics.remove(first)
    return place | first.span


def _ranged(kept: list[Token], regions: list[_Region], diagnostics: list[Diagnostic]) -> list[Token]:
    """The tokens with the ranges that guards give where nothing else does; the fixes of their messages write them, too."""
    for region in regions:
        end = region.end if region.end is not None else kept[-1].end if kept else 0
        inside = [token for token in kept if region.start <= token.start < end]
        body = next((i for i, each in enumerate(inside) if each.type == "RBRACE"), len(inside))
        pieces = split_statements(inside[:body])
        edits = [
            edit for piece in (pieces if region.end is not None else pieces[:1]) for edit in _clauses(piece, region)
        ]
        if edits and _also(diagnostics, region.message, "write ranges", edits):
            kept = mended(kept, Fix("", tuple(edits))) or kept
    return kept


def _clauses(piece: list[Token], region: _Region) -> list[Edit]:
    """The ranges of a guard that a statement needs: nothing that it reads gives them."""
    assign = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), len(piece))
    if assign == len(piece):
        return []
    used, read = {token.text for token in piece}, _read(piece[assign:])
    needed = [
        f"{index} in 0:{end}"
        for index, end in region.ranges.items()
        if index in used and (end in region.numbers or index not in read)
    ]
    return [with_clauses(piece, ", ".join(needed))] if needed else []


def of_thread(place: Span, fix: Fix | None = None) -> Diagnostic:
    """What is said of the number of a thread."""
    return Diagnostic(codes.SYNTAX_ERROR, place, _MESSAGE, help=INSTEAD["get_global_id"].help, fix=fix)


def _made(tokens: list[Token], i: int, pairs: dict[int, int]) -> tuple[str, int] | None:
    """The index that a statement at a place computes from the number of a thread, and where it ends."""
    if i and tokens[i - 1].type not in ("LBRACE", "RBRACE") and tokens[i - 1].type not in ENDS_EXPRESSION:
        return None
    start = behind_declaration(tokens, i, pairs)
    named = [token.type for token in tokens[start : start + 2]] == ["NAME", "ASSIGN"]
    end = _number(tokens, start + 2, pairs) if named else None
    return None if end is None else (tokens[start].text, end)


def _number(tokens: list[Token], start: int, pairs: dict[int, int]) -> int | None:
    """Where the number of a thread ends that begins at a place; `None` if it is something else."""
    i, depth, is_number, operand = start, 0, False, True
    while i < min(len(tokens), start + _MOST):
        token = tokens[i]
        if operand and token.type == "LPAR":
            depth += 1
        elif operand:
            end = _operand(tokens, i, pairs)
            if end is None:
                return None
            is_number = is_number or (token.text not in _SIZES and token.type != "INTEGER")
            i, operand = end, False
            continue
        elif token.type == "RPAR" and depth:
            depth -= 1
        elif token.type == "SIGN" or token.text == "*":
            operand = True
        else:
            break
        i += 1
    return i if is_number and not depth and not operand else None


def _operand(tokens: list[Token], i: int, pairs: dict[int, int]) -> int | None:
    token, kinds = tokens[i], [each.type for each in tokens[i + 1 : i + 3]]
    if token.type == "INTEGER":
        return i + 1
    if token.text in _NUMBERS | _SIZES and kinds == ["DOT", "NAME"] and tokens[i + 2].text in ("x", "y", "z"):
        return i + 3
    if token.text in _MODULES and kinds[:1] == ["DOT"]:
        i += 2
    is_call = i + 1 in pairs and tokens[i].text in _CALLS and pairs[i + 1] == i + 3
    return i + 4 if is_call else None


def _guard(tokens: list[Token], i: int, pairs: dict[int, int], names: _Names) -> _Guard | None:
    """The guard `if (i < N && j < M)` or `if (i >= N) return` at a place; `None` for something else."""
    if tokens[i].text != "if":
        return None
    if i + 1 in pairs:
        end = pairs[i + 1] + 1
        condition = tokens[i + 2 : end - 1]
    else:
        near = range(i, min(len(tokens), i + _MOST))
        end = next((j for j in near if tokens[j].type in ("COLON", "LBRACE")), i)
        condition = tokens[i + 1 : end]
        end += end > i and tokens[end].type == "COLON"
    returns = end < len(tokens) and tokens[end].text == "return"
    relation, joining = (">=", "OR") if returns else ("<", "AND")
    ranges = dict[str, str]()
    for k, token in enumerate(condition):
        is_kept = (
            token.text in names.indices,
            token.text == relation,
            token.text in names.sizes | names.numbers,
            token.type == joining,
        )
        if not is_kept[k % 4]:
            return None
        if k % 4 == 2:
            ranges[condition[k - 2].text] = token.text
    return _Guard(end + returns, ranges, returns) if len(condition) % 4 == 3 else None


def _grid_loop(tokens: list[Token], i: int, pairs: dict[int, int], names: _Names) -> _Guard | None:
    """`for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x)`, whose turns threads share."""
    close = pairs.get(i + 1) if tokens[i].text == "for" else None
    start = behind_declaration(tokens, i + 2, pairs) if close is not None else i
    if close is None or [token.type for token in tokens[start : start + 2]] != ["NAME", "ASSIGN"]:
        return None
    index, end = tokens[start].text, _number(tokens, start + 2, pairs)
    if end is None or [token.text for token in tokens[end : end + 2]] != [index, "<"] or end + 6 > close:
        return None
    step, size = tokens[end + 3 : close], tokens[end + 2].text
    counts = step[0].text == index and step[1].type == "UPDATE" and all(token.text in _OF_STEPS for token in step[2:])
    if not counts or size not in names.sizes | names.numbers:
        return None
    names.indices[index] = None
    return _Guard(close + 1, {index: size}, False)


_OF_STEPS = _SIZES | {".", "x", "y", "z", "*"}


def _brace(tokens: list[Token], opening: int) -> int | None:
    """The place of the `}` of a block that no `else` follows."""
    depth = 0
    for i in range(opening, min(len(tokens), opening + 1000)):
        depth += (tokens[i].type == "LBRACE") - (tokens[i].type == "RBRACE")
        if not depth:
            return None if i + 1 < len(tokens) and tokens[i + 1].text == "else" else i
    return None


def _in_subscripts(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`Y(threadIdx.x) = X(threadIdx.x)`, in which one letter stands for a number that is the same in the whole def."""
    pairs, starts = closers(tokens), [i for i, token in enumerate(tokens) if token.type == "DEF"]
    if not starts:
        return tokens
    kept = tokens[: starts[0]]
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        own = _numbers_of(tokens, start, end, pairs)
        texts = {"".join(token.text for token in tokens[first:last]) for first, last in own}
        used = {token.text for token in tokens[start:end]}
        letter = next((each for each in _LETTERS if each not in used), "i")
        is_left = any(_is_of_target(tokens, last, pairs) for _, last in own)
        done = start
        for first, last in own:
            place = Span(tokens[first].start, tokens[last - 1].end)
            fix = Fix("write an index", (Edit(place, letter),)) if len(texts) == 1 and is_left else None
            diagnostics.append(of_thread(place, fix))
            kept += [*tokens[done:first], Token("NAME" if fix else "ERROR", letter, place.start, place.end)]
            done = last
        kept += tokens[done:end]
    return kept


def _numbers_of(tokens: list[Token], start: int, end: int, pairs: dict[int, int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for i in range(start + 1, end):
        begins = tokens[i - 1].type in ("LPAR", "LSQB", "COMMA") and (not found or i >= found[-1][1])
        last = _number(tokens, i, pairs) if begins else None
        if last is not None and last < end and tokens[last].type in ("RPAR", "RSQB", "COMMA"):
            found.append((i, last))
    return found


def _is_of_target(tokens: list[Token], last: int, pairs: dict[int, int]) -> bool:
    """Whether the brackets that close behind a place are those of what a statement writes."""
    near = range(last, min(len(tokens), last + _MOST))
    close = next((i for i in near if tokens[i].type in ("RPAR", "RSQB")), last)
    return close + 1 < len(tokens) and tokens[close + 1].type in ("ASSIGN", "UPDATE")
