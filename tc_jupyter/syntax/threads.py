"""Numbers of threads, as CUDA, OpenCL, Numba and Triton have them: an index runs by itself.

Worked example: `int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) Y[i] = X[i]` means `Y(i) = X(i)`.
"""

from __future__ import annotations

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes

from .elsewhere import INSTEAD
from .recovery import behind_declaration, closers, extents
from .tokens import ENDS_EXPRESSION, Token

_NUMBERS, _SIZES = frozenset({"threadIdx", "blockIdx"}), frozenset({"blockDim", "gridDim"})
_CALLS = frozenset({"get_global_id", "program_id", "grid", "get_local_id", "get_group_id"})
_MODULES = frozenset({"cuda", "tl", "triton"})
_BEFORE, _AFTER = ("LPAR", "LSQB", "COMMA"), ("RPAR", "RSQB", "COMMA", "SIGN", "MINUS")
_LETTERS = "ijklmnopq"
_MOST = 60  # tokens of such a number, and of a condition on it


def without_threads(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """Statements that compute an index from the number of a thread, and conditions that keep it in its range, are left out."""
    if not any(token.text in _NUMBERS or token.text in _CALLS for token in tokens):
        return tokens
    pairs, kept = closers(tokens), list[Token]()
    read = {
        token.text
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if token.type == "NAME" and before.type in _BEFORE and after.type in _AFTER
    }
    indices, sizes, i, braces = set[str](), frozenset[str](), 0, set[int]()
    while i < len(tokens):
        if tokens[i].type == "DEF":
            indices, sizes = set(), frozenset(extents(tokens[i : i + 400]).values())
        end, found = i, None
        if (made := _made(tokens, i, pairs)) is not None and made[0] in read:
            indices.add(made[0])
            end, fix = made[1], (Edit(Span(tokens[i].start, tokens[made[1] - 1].end), ""),)
            found = _told(Span(tokens[i].start, tokens[end - 1].end), Fix("leave it out", fix))
        elif tokens[i].text == "if" and (end := _guard(tokens, i, pairs, indices, sizes)) > i:
            heads = [Span(tokens[i].start, tokens[end - 1].end)]
            if end < len(tokens) and tokens[end].type == "LBRACE" and (close := _brace(tokens, end)):
                heads = [Span(tokens[i].start, tokens[end].end), tokens[close].span]
                braces.add(close)
                end += 1
            found = _told(heads[0], Fix("leave it out", tuple(Edit(head, "") for head in heads)))
        elif i not in braces:
            kept.append(tokens[i])
        if found is not None:
            diagnostics.append(found)
            if end < len(tokens):
                tokens[end].first = True
        i = max(end, i + 1)
    return _in_subscripts(kept, diagnostics)


def _told(place: Span, fix: Fix | None) -> Diagnostic:
    message = "an index is no number of a thread"
    return Diagnostic(codes.SYNTAX_ERROR, place, message, help=INSTEAD["get_global_id"].help, fix=fix)


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


def _guard(tokens: list[Token], i: int, pairs: dict[int, int], indices: set[str], sizes: frozenset[str]) -> int:
    """Where `if (i < N && j < M)` or `if (i >= N) return` ends, which keeps indices in their ranges; `i` for something else."""
    end = pairs[i + 1] + 1 if i + 1 in pairs else i
    if end == i:
        colon = (j for j in range(i, min(len(tokens), i + _MOST)) if tokens[j].type in ("COLON", "LBRACE"))
        end = next(colon, i) + 1
    condition = tokens[i + 1 : end] if i + 1 in pairs else tokens[i + 1 : end - 1]
    condition = condition[1:-1] if i + 1 in pairs else condition
    returns = end < len(tokens) and tokens[end].text == "return"
    relation, joining = (">=", "OR") if returns else ("<", "AND")
    for k, token in enumerate(condition):
        is_kept = (
            (token.text in indices, token.text == relation, token.text in sizes)[k % 4]
            if k % 4 < 3
            else token.type == joining
        )
        if not is_kept:
            return i
    return end + returns if len(condition) % 4 == 3 else i


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
    kept = tokens[: starts[0]] if starts else tokens
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
            diagnostics.append(_told(place, fix))
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
