"""Cutting a token list into defs and statements, so that a mistake in one leaves the others alone.

Two facts make the cuts certain in a correct text: `def` and `reduce` are reserved, and a name never follows the end of an
expression inside a statement. In a text with mistakes, a name that is the first on its line and is followed by an assignment starts
a statement too.

Worked example: `A(i) = X(i) B(i) = X(i)` is cut before `B`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from .tokens import ENDS_EXPRESSION, STARTS_EXPRESSION, Token

_ASSIGN = ("ASSIGN", "UPDATE")
_NAMES = ("NAME", "DIGIT_NAME")
_HEADS = (
    *_NAMES,
    "SCALAR",
    "MINMAX",
    "NUMBER",
    "IN",
    "EXISTS",
    "UNIQUE",
    "WHERE",
    "CONST",
)  # the last ones start a statement only by mistake


@dataclass(frozen=True, slots=True)
class DefTokens:
    """The tokens of one def: between `def` and `{`, the body without braces, what stands after `}`."""

    word: Token
    header: list[Token]
    opening: Token | None
    body: list[Token]
    closing: Token | None
    rest: list[Token]


def split_defs(tokens: list[Token]) -> tuple[list[Token], list[DefTokens | ReducerTokens]]:
    """What stands before the first def or `reduce`, and these."""
    starts = [i for i, token in enumerate(tokens) if token.type == "DEF" or begins_reducer(tokens, i)]
    if not starts:
        return tokens, []
    ends = [*starts[1:], len(tokens)]
    pieces = (tokens[start:end] for start, end in zip(starts, ends, strict=True))
    return tokens[: starts[0]], [_split_def(each) if each[0].type == "DEF" else split_reducer(each) for each in pieces]


def begins_reducer(tokens: list[Token], i: int) -> bool:
    """Whether `reduce r(` stands at `i`, or `reduce` as the first word of a text or behind a `}`."""
    if tokens[i].type != "REDUCE":
        return False
    outside = i == 0 or tokens[i - 1].type == "RBRACE"
    named = i + 2 < len(tokens) and tokens[i + 1].type not in ("LPAR", "ASSIGN") and tokens[i + 2].type == "LPAR"
    return named or outside


def split_reducer(tokens: list[Token]) -> ReducerTokens:
    """The parts of `reduce NAME(...) = ... from ... with ... -> ...`; a part that is not there is empty."""
    depth, part = 0, 0
    constant = next((i for i, token in enumerate(tokens) if token.type == "CONST"), len(tokens))
    tokens, rest = tokens[:constant], tokens[constant:]
    parts: tuple[list[Token], list[Token], list[Token], list[Token], list[Token]] = [], [], [], [], []
    for i, token in enumerate(tokens[1:], 1):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        following = _PART_OF_REDUCER.get(token.text) if depth == 0 else None
        behind = token.type != "NAME" or tokens[i - 1].type in ENDS_EXPRESSION
        if following is not None and following > part and behind and (following < 4 or part == 3):
            part = following
            parts[part].append(token)
        else:
            parts[part].append(token)
    return ReducerTokens(tokens[0], *parts, tokens[-1].end, rest)


_PART_OF_REDUCER = {"=": 1, "from": 2, "with": 3, "->": 4}


@dataclass(frozen=True, slots=True)
class ReducerTokens:
    """The tokens of one `reduce`: name and parameters, then the parts that begin with `=`, `from`, `with` and `->`."""

    word: Token
    header: list[Token]
    value: list[Token]
    identity: list[Token]
    given: list[Token]
    lifted: list[Token]
    end: int
    rest: list[Token]


def _split_def(tokens: list[Token]) -> DefTokens:
    opening = next((i for i, token in enumerate(tokens) if token.type == "LBRACE"), None)
    first = _header_end(tokens) if opening is None else opening + 1
    closing = _body_end(tokens, first)
    return DefTokens(
        tokens[0],
        tokens[1 : first if opening is None else opening],
        None if opening is None else tokens[opening],
        tokens[first:closing],
        tokens[closing] if closing < len(tokens) else None,
        tokens[closing + 1 :],
    )


def _body_end(tokens: list[Token], first: int) -> int:
    """The place of the `}` of a def. Braces around a part of a statement, as in `A_{i,j}` and `i in {0, N}`, are none of it."""
    i, depth = first, 0
    while i < len(tokens) and (depth or tokens[i].type != "RBRACE"):
        if tokens[i].type in ("BLOCK", "RBRACE"):
            opening = _opening(tokens, i)
            depth += 1 if opening else -(tokens[i].type == "RBRACE")
            i = (opening or i) + 1
            continue
        is_inside = (
            i > first
            and tokens[i].type == "LBRACE"
            and tokens[i - 1].type in ("NAME", "IN", "ELSE", "ASSIGN", "UPDATE")
        )
        near = range(i + 1, min(len(tokens), i + _MOST_IN_BRACES)) if is_inside else ()
        closing = next((j for j in near if tokens[j].type in ("RBRACE", "LBRACE", "DEF", "REDUCE")), i)
        i = closing + 1 if tokens[closing].type == "RBRACE" else i + 1
    return i


def _opening(tokens: list[Token], i: int) -> int | None:
    """The place of the `{` of the block that begins at a place, if one does and has one."""
    if tokens[i].type != "BLOCK":
        return None
    near = range(i + 1, min(len(tokens), i + _MOST_IN_HEAD))
    place = next((j for j in near if tokens[j].type in ("LBRACE", "RBRACE", "BLOCK", "ASSIGN", "UPDATE")), None)
    return place if place is not None and tokens[place].type == "LBRACE" else None


MAX_BRACKETS = 64
"""Nested brackets. The stages that follow recurse over expressions, most deeply over reads inside reads."""
_MOST_IN_BRACES = 40
"""Tokens in braces that are no body."""
_MOST_IN_HEAD = 200
"""Tokens before the `{` of a block."""


def _header_end(tokens: list[Token]) -> int:
    """Where a body without `{` starts: after the results, or at the `:` of `def f(float(N) X):`."""
    pairs = closers(tokens)
    arrow = next((i for i, token in enumerate(tokens) if token.type == "ARROW"), None)
    if arrow is None:
        after = pairs.get(2, -1) + 1
        if after and after < len(tokens) and tokens[after].type == "COLON":
            return after
        starts = (i for i in range(3, len(tokens)) if tokens[i].first and starts_statement(tokens, i, pairs))
        return next(starts, len(tokens))
    if arrow + 1 < len(tokens) and tokens[arrow + 1].type == "LPAR":
        return pairs.get(arrow + 1, arrow + 1) + 1
    if arrow + 2 < len(tokens) and tokens[arrow + 1].type == "SCALAR" and tokens[arrow + 2].type in ("LPAR", "LSQB"):
        return pairs.get(arrow + 2, arrow + 1) + 1
    return min(arrow + 2, len(tokens))


_MOST_NAMED = 60
"""Tokens from `const` to the `=` of a constant."""


def split_constants(tokens: list[Token]) -> tuple[list[Token], list[list[Token]]]:
    """What stands outside of all defs without the constants, and the constants."""
    starts = [i for i, token in enumerate(tokens) if token.type == "CONST"]
    if not starts:
        return tokens, []
    return tokens[: starts[0]], [tokens[i:j] for i, j in zip(starts, [*starts[1:], len(tokens)], strict=True)]


def is_constant(tokens: list[Token]) -> bool:
    """Whether a statement that begins with `const` has a list or a literal as its value; others are those of C."""
    assign = next((i for i, token in enumerate(tokens) if token.type == "ASSIGN"), len(tokens))
    value = [token.type for token in tokens[assign + 1 :]]
    return value[:1] == ["LSQB"] or value[value[:1] == ["MINUS"] :] in (["NUMBER"], ["INTEGER"])


def closers(tokens: list[Token]) -> dict[int, int]:
    """The position of the closing bracket of every opening one that has one; square brackets are a mistake for round ones."""
    pairs: dict[int, int] = {}
    stacks: dict[str, list[int]] = {"LPAR": [], "LSQB": []}
    openings = {"RPAR": stacks["LPAR"], "RSQB": stacks["LSQB"]}
    for i, token in enumerate(tokens):
        if token.type in stacks:
            stacks[token.type].append(i)
        elif openings.get(token.type):
            pairs[openings[token.type].pop()] = i
    return pairs


def enclosed(pairs: dict[int, int]) -> set[int]:
    """The positions between brackets, whose pairs are those of `closers`."""
    found, end = set[int](), 0
    for opening, closing in sorted(pairs.items()):
        found.update(range(max(opening + 1, end), closing))
        end = max(end, closing)
    return found


def bracket_depth(tokens: list[Token]) -> int:
    """How deep brackets are nested. Square ones count where they are a pair: `[` also closes a range, as in `k = [0, 2[`."""
    pairs = closers(tokens)
    closing = {*pairs.values()}
    depth = deepest = 0
    for i, token in enumerate(tokens):
        if token.type == "LPAR" or (token.type == "LSQB" and i in pairs):
            depth += 1
            deepest = max(deepest, depth)
        elif token.type == "RPAR" or (token.type == "RSQB" and i in closing):
            depth = max(0, depth - 1)
    return deepest


def split_commas(tokens: list[Token]) -> list[list[Token]]:
    """The pieces between the commas outside brackets; none for no tokens. Square ones count where each has another one."""
    if not tokens:
        return []
    kinds = [token.type for token in tokens]
    opening, closing = ("LPAR",), ("RPAR",)
    if kinds.count("LSQB") == kinds.count("RSQB"):
        opening, closing = ("LPAR", "LSQB"), ("RPAR", "RSQB")
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.type in opening) - (token.type in closing)
        if token.type == "COMMA" and depth <= 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def extents(header: list[Token]) -> dict[tuple[str, int], str]:
    """The sizes of the parameters of a def, by name and dimension."""
    header = header[: next((i for i, token in enumerate(header) if token.type in ("ARROW", "LBRACE")), len(header))]
    found: dict[tuple[str, int], str] = {}
    for opening, close in closers(header).items():
        if opening and header[opening - 1].type == "SCALAR" and close + 1 < len(header):
            sizes = split_commas(header[opening + 1 : close])
            named = ((k, " ".join(token.text for token in size)) for k, size in enumerate(sizes) if size)
            found |= {(header[close + 1].text, k): text for k, text in named}
    return found


_OF_ARRAYS = frozenset({"axis", "dim", "keepdims", "keepdim", "einsum", "len", "shape", "matmul"})


def without_elements(body: list[Token]) -> set[str]:
    """The names that a body uses as whole arrays: `x.shape`, `sum(x, axis=0)`, `len(x)`."""
    found = {one.text for one, other in pairwise(body) if one.type == "NAME" and other.type in ("DOT", "DIMENSION")}
    for opening, closing in closers(body).items():
        if not opening or closing - opening > _MOST_IN_HEAD:
            continue
        inside = body[opening + 1 : closing]
        if body[opening - 1].text in _OF_ARRAYS or any(token.text in _OF_ARRAYS for token in inside):
            found |= {token.text for token in inside if token.type == "NAME"}
    return found


@dataclass(slots=True)
class BlockTokens:
    """The tokens of `along t in 0:T { ... }`: its head, and its body without braces, cut as that of a def.

    `closing` is `None` where `}` is missing.
    """

    head: list[Token]
    opening: Token | None
    body: list[list[Token] | BlockTokens]
    closing: Token | None = None


def split_body(tokens: list[Token]) -> list[list[Token] | BlockTokens]:
    """The statements and blocks of a body."""
    open_blocks = [BlockTokens([], None, [])]
    start = i = 0
    while i < len(tokens):
        token = tokens[i]
        closes = token.type == "RBRACE" and len(open_blocks) > 1
        if token.type != "BLOCK" and not closes:
            i += 1
            continue
        if token.type == "BLOCK" and (end := _end_of_order(tokens, start, i)) is not None:
            token.type = "ALONG"
            i = end
            continue
        open_blocks[-1].body += _plain_statements(tokens[start:i])
        if closes:
            open_blocks.pop().closing = token
            start = i = i + 1
            continue
        opening = _opening(tokens, i)
        start = i + 1 if opening is None else opening + 1
        found = BlockTokens(tokens[i : start if opening is None else opening], tokens[opening or i], [])
        if opening is None:  # its statements are read as others
            found.head, found.opening = _head(tokens, i), None
            start = i + len(found.head)
        open_blocks[-1].body.append(found)
        if opening is not None:
            open_blocks.append(found)
        i = start
    open_blocks[-1].body += _plain_statements(tokens[start:])
    return open_blocks[0].body


def _end_of_order(tokens: list[Token], start: int, i: int) -> int | None:
    """Where `along t in a:b` ends behind a statement in its line, if nothing but that statement, and its `where`, is in it."""
    if start == i or tokens[i].first or _opening(tokens, i) is not None:
        return None
    head = _head(tokens, i)
    end = i + next((place for place, token in enumerate(head) if token.type == "WHERE"), len(head))
    if end < i + len(head):
        return end
    alone = end == len(tokens) or tokens[end].first or tokens[end].type == "RBRACE"
    return end if alone else None


def _head(tokens: list[Token], i: int) -> list[Token]:
    """The head of a block without `{`: what stands before the next statement."""
    near = tokens[i : i + _MOST_IN_HEAD]
    pairs = closers(near)
    ends = (j for j in range(1, len(near)) if near[j].type in _NAMES and starts_statement(near, j, pairs))
    return near[: min(next(ends, len(near)), _MOST_IN_BRACES)]


def split_statements(tokens: list[Token]) -> list[list[Token]]:
    """The statements of a body, those of blocks among them."""
    found: list[list[Token]] = []
    waiting = [*reversed(split_body(tokens))]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BlockTokens):
            waiting += reversed(each.body)
        else:
            found.append(each)
    return found


def _plain_statements(tokens: list[Token]) -> list[list[Token]]:
    """The statements of a body without blocks."""
    pairs = closers(tokens)
    cuts = [0]
    depth = named = 0
    for i, token in enumerate(tokens):
        if token.type == "CONST":
            named = next((j for j in range(i, min(i + _MOST_NAMED, len(tokens))) if tokens[j].type == "ASSIGN"), i)
        if token.type == "LPAR":
            depth += 1
        elif token.type == "RPAR":
            depth = max(0, depth - 1)
        elif i and (token.type == "CONST" or i > named) and token.type in _HEADS and _is_cut(tokens, i, depth, pairs):
            cuts.append(i)
            depth = 0
        if i == cuts[-1] and declares(tokens, i, pairs):
            named = max(named, behind_declaration(tokens, i, pairs))  # no statement begins at the name itself
    return [tokens[start:end] for start, end in zip(cuts, [*cuts[1:], len(tokens)], strict=True) if start < end]


def _is_cut(tokens: list[Token], i: int, depth: int, pairs: dict[int, int]) -> bool:
    token, before = tokens[i], tokens[i - 1]
    if token.type == "CONST" and depth == 0 and _ends(tokens, i - 1):
        return True
    if depth == 0 and _ends(tokens, i - 1) and declares(tokens, i, pairs):
        return True
    if token.text == "return" and depth == 0 and _ends(tokens, i - 1):
        return i + 1 == len(tokens) or tokens[i + 1].type not in (*_ASSIGN, "LPAR") or token.first
    if token.type not in _NAMES:
        return token.first and depth == 0 and _ends(tokens, i - 1) and starts_statement(tokens, i, pairs)
    if depth == 0 and _ends(tokens, i - 1):
        return token.first or is_command(tokens, i, pairs) or starts_statement(tokens, i, pairs)
    if (
        before.type in ("COMMA", "WHERE", "EXISTS")
        and depth == 0
        and not (i + 1 < len(tokens) and tokens[i + 1].type == "LPAR")
    ):
        return False  # a clause; only `T(i) =` cannot be one
    return token.first and starts_statement(tokens, i, pairs)


DECLARING = frozenset({"let", "var", "val", "auto", "const", "Var", "RVar", "RDom", "Func"})
"""Words that stand before a name where other languages declare it."""


def declares(tokens: list[Token], i: int, pairs: dict[int, int]) -> bool:
    """Whether `float y =`, `float(N) y(i) =` or `const int y =` begins at `i`, which no expression has in it."""
    end = behind_declaration(tokens, i, pairs)
    named = i < end < len(tokens) and not (i and _declares(tokens[i - 1])) and tokens[end].type in _NAMES
    return named and starts_statement(tokens, end, pairs)


def behind_declaration(tokens: list[Token], i: int, pairs: dict[int, int]) -> int:
    """Where the words end that declare a name from `i` on, with the sizes of a type: behind `const`, `float` or `float(N, D)`."""
    while i < len(tokens) and _declares(tokens[i]):
        sized = tokens[i].type == "SCALAR" and i + 1 < len(tokens) and tokens[i + 1].type == "LPAR"
        i = pairs.get(i + 1, i) + 1 if sized else i + 1
    return i


def _declares(token: Token) -> bool:
    return token.type == "SCALAR" or token.text in DECLARING


_COMMAND_WORDS = """
    print println printf cout echo assert static_assert require raise throw import using include break continue
    del global nonlocal yield with try __shared__ __syncthreads syncthreads delete free call goto stop
"""
_COMMANDS = frozenset(_COMMAND_WORDS.split())


_SCHEDULING_WORDS = """
    vectorize parallel tile split reorder fuse unroll bind compute_root compute_at store_at store_root bound estimate
    gpu_tile gpu_blocks gpu_threads rfactor cache_read cache_write cache_shared_memory prefetch trace_stores realize
"""
SCHEDULING = frozenset(_SCHEDULING_WORDS.split())
"""Methods of Halide and TVM that say how a tensor is computed."""


def is_scheduled(tokens: list[Token], i: int, pairs: dict[int, int]) -> bool:
    """Whether `y.vectorize(x, 8)` begins at a place."""
    four = [token.type for token in tokens[i : i + 4]]
    return four == ["NAME", "DOT", "NAME", "LPAR"] and tokens[i + 2].text in SCHEDULING and i + 3 in pairs


def is_command(tokens: list[Token], i: int, pairs: dict[int, int]) -> bool:
    """Whether `print(...)`, `assert ...` or the like stands at `i`, which no language has as a part of an expression."""
    if is_scheduled(tokens, i, pairs):
        return True
    if tokens[i].text not in _COMMANDS or starts_statement(tokens, i, pairs):
        return False
    follows = tokens[i + 1].type if i + 1 < len(tokens) else "END"
    return follows in (*STARTS_EXPRESSION, "ERROR", "END", "RBRACE", "BANG", "MINUS", "FACTOR", "SHIFT")


def _ends(tokens: list[Token], i: int) -> bool:
    """Whether token `i` may end a statement; `[` does after a bound, as in `k = [0, 2[`, and `let` behind an operator does not."""
    kind = tokens[i].type
    if tokens[i].text == "let" and i and tokens[i - 1].type not in (*ENDS_EXPRESSION, "LBRACE", "RBRACE"):
        return False
    return (
        kind in ENDS_EXPRESSION
        or kind in ("ERROR", "UNIQUE")
        or (kind == "LSQB" and i > 0 and tokens[i - 1].type in ENDS_EXPRESSION)
    )


def written(tokens: list[Token]) -> list[str]:
    """The names that the statements of a body write, each once, in the order of their last statements."""
    found: dict[str, None] = {}
    for piece in split_statements(tokens):
        if piece[0].type in _NAMES and any(token.type in _ASSIGN for token in piece):
            found.pop(piece[0].text, None)
            found[piece[0].text] = None
    return list(found)


def starts_statement(tokens: list[Token], i: int, pairs: dict[int, int]) -> bool:
    """Whether a statement begins at `i`: `NAME [(...)] assign`, `NAME {[...]} assign`, `NAME {, NAME} =`, or several targets."""
    after = i + 1
    if after < len(tokens) and tokens[after].type == "LPAR":
        after = pairs.get(after, len(tokens)) + 1
        end = after
        while end + 1 < len(tokens) and tokens[end].type == "COMMA" and tokens[end + 1].type in _NAMES:
            end = pairs.get(end + 2, end + 1) + 1
        if after < end < len(tokens) and tokens[end].type == "UPDATE":
            return True
    elif after < len(tokens) and tokens[after].type == "LSQB":
        while after < len(tokens) and tokens[after].type == "LSQB":
            after = pairs.get(after, len(tokens)) + 1
    else:
        while after + 1 < len(tokens) and tokens[after].type == "COMMA" and tokens[after + 1].type in _NAMES:
            after += 2
    return after < len(tokens) and (tokens[after].type in _ASSIGN or _is_other_assignment(tokens, after))


def _is_other_assignment(tokens: list[Token], i: int) -> bool:
    """`/=`, `-=`, `||=`, `|=`, `<<=` or `:=`, which no expression has in it."""
    two = tokens[i : i + 2]
    touching = len(two) == 2 and two[0].end == two[1].start
    is_operator = touching and two[0].type in _BEFORE_ASSIGN and two[1].type == "ASSIGN"
    return is_operator or (touching and two[0].text + two[1].text in ("!+=", "!*="))


_BEFORE_ASSIGN = ("FACTOR", "MINUS", "COLON", "AND", "OR", "POWER", "BITAND", "BITOR", "XOR", "SHIFT")
