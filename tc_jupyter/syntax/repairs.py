"""Words of other languages whose meaning is certain: each is told, and what is meant stands in its place before the cell is cut.

Worked example: in `y(i) sum=! np.exp(X(i, k))` the tokens `sum`, `=`, `!` become the operator `+=!`, and `np.exp` becomes `exp`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Span, codes, nearest

from .axes import axis_of
from .computes import without_computes
from .foreign import operand_end, text_of
from .lengths import Place, count, length
from .library_names import (
    CONSTANTS,
    FUNCTION_WORDS,
    FUNCTIONS_HERE,
    FUNCTIONS_OF_TYPES,
    INSTEAD,
    LIMITS,
    MODULES,
    OF_MODULES,
    OPERATORS,
    REDUCING,
    RENAMED,
    RUNNING,
    SORTING,
    TC_TYPES,
    TYPES,
    WORD_OPERATORS,
    WORDS_OF_TYPES,
    c_type,
    is_known,
    limit,
    plain_name,
    reducing,
)
from .mended import mended
from .methods import with_limits, without_idle_methods
from .recovery import closers, extents, split_commas, starts_statement
from .threads import without_atomics, without_threads
from .tokens import (
    ENDS_EXPRESSION,
    FLOATS,
    KEYWORDS,
    MACRO,
    REDUCTIONS,
    SCALAR_TYPES,
    STARTS_EXPRESSION,
    STENCIL,
    Token,
    parameters,
)


def repaired(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """The tokens with operators that are words, names of modules and logical words replaced; a message about each."""
    tokens = _without_templates(_by_macro(_relative(tokens, diagnostics), diagnostics), diagnostics)
    tokens = _renamed_words(without_computes(tokens, diagnostics), diagnostics)
    tokens = _dotted_words(tokens, diagnostics)
    tokens = _constants_of_c(_types_of_c(tokens, diagnostics), diagnostics)
    tokens = without_threads(without_atomics(tokens, diagnostics), diagnostics)
    tokens = _limits(tokens, diagnostics)
    tokens = _casts(_without_dots(tokens, diagnostics), diagnostics)
    _logical_words(tokens, diagnostics)
    tokens = _infix_words(_negated_comparisons(tokens, diagnostics), diagnostics)
    tokens = with_limits(_sizes(without_idle_methods(tokens, diagnostics), diagnostics), diagnostics)
    tokens = _methods(_incremented(tokens, diagnostics))
    tokens = _plain_targets(_word_operators(_without_modules(tokens, diagnostics), diagnostics), diagnostics)
    tokens = _without_separators(_without_idle_bangs(tokens, diagnostics), diagnostics)
    return _last_elements(tokens, diagnostics)


def _relative(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`b[0, 0] = a[0, -1] + a[0, 1]` under `@stencil` of Numba becomes `b[i, j] = a[i, j - 1] + a[i, j + 1]`."""
    fixes = list[Fix]()
    for number, item in enumerate(diagnostics):
        if item.message != STENCIL:
            continue
        start = next((i for i, token in enumerate(tokens) if token.start >= item.span.end), len(tokens))
        own = _indexed(_def_at(tokens, start)) if start < len(tokens) and tokens[start].type == "DEF" else []
        if own:
            fix = Fix("name the indices", (Edit(item.span, ""), *own))
            diagnostics[number] = replace(item, fix=fix)
            fixes.append(Fix("", tuple(own)))
    return (mended(tokens, *fixes) or tokens) if fixes else tokens


_OF_MACROS = {"+": "+=!", "*": "*=!", "max": "max=!", "min": "min=!", "&": "all=!", "|": "any=!"}


def _by_macro(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`@tullio (max) C[i] := A[i, k]` becomes `C[i] max=! A[i, k]`: the fix about the macro keeps its operator."""
    if not any(item.message == MACRO for item in diagnostics):
        return tokens
    fixes, pairs, starts = list[Fix](), closers(tokens), [token.start for token in tokens]
    for number, item in enumerate(diagnostics):
        start = bisect_left(starts, item.span.end) if item.message == MACRO else len(tokens)
        four = tokens[start : start + 4]
        operator = _OF_MACROS.get(four[1].text) if len(four) == 4 else None
        if operator is None or [token.type for token in (four[0], *four[2:])] != ["LPAR", "RPAR", "NAME"]:
            continue
        end = start + 4
        if end < len(tokens) and tokens[end].type == "LSQB":
            end = pairs.get(end, end) + 1
        sign = [token.text for token in tokens[end : end + 2]]
        last = end + 1 if sign == [":", "="] else end
        if last >= len(tokens) or tokens[last].type != "ASSIGN":
            continue
        own = Edit(Span(tokens[end].start, tokens[last].end), operator)
        before = Span(item.span.start, four[3].start)
        diagnostics[number] = replace(item, fix=Fix(f"combine with `{operator}`", (Edit(before, ""), own)))
        fixes.append(Fix("", (Edit(Span(four[0].start, four[3].start), ""), own)))
    return (mended(tokens, *fixes) or tokens) if fixes else tokens


def _def_at(tokens: list[Token], start: int) -> list[Token]:
    end = next((i for i in range(start + 1, len(tokens)) if tokens[i].type in ("DEF", "REDUCE")), len(tokens))
    return tokens[start:end]


def _indexed(tokens: list[Token]) -> list[Edit]:
    """Edits that name the positions of a def, which are numbers; none where one of them is something else."""
    body = next((i for i, token in enumerate(tokens) if token.type == "LBRACE"), len(tokens))
    taken, pairs, edits = {token.text for token in tokens}, closers(tokens), list[Edit]()
    letters = [letter for letter in "ijklmnpq" if letter not in taken]
    names = {token.text for token in tokens[:body]}
    for opening, close in pairs.items():
        if opening < body or tokens[opening - 1].text not in names or tokens[opening].type not in ("LPAR", "LSQB"):
            continue
        subscripts = split_commas(tokens[opening + 1 : close])
        shifts = [_offset(each) for each in subscripts]
        if len(shifts) > len(letters) or None in shifts:
            return []
        for letter, subscript, shift in zip(letters, subscripts, shifts, strict=False):
            text = letter if not shift else f"{letter} {'-' if shift < 0 else '+'} {abs(shift)}"
            edits.append(Edit(Span(subscript[0].start, subscript[-1].end), text))
    return edits


def _offset(subscript: list[Token]) -> int | None:
    """The number that a subscript is; `None` for something else."""
    text = "".join(token.text for token in subscript)
    kinds = [token.type for token in subscript]
    return int(text) if kinds in (["INTEGER"], ["MINUS", "INTEGER"]) and text.lstrip("-").isdigit() else None


_BEFORE_TEMPLATE = frozenset({"FACTOR", "SIGN", "MINUS", "COLON", "LPAR", "LSQB", "COMMA", "RELATION", "EQUALITY"})


def _without_templates(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`h * {sh} + kh` of a text that Python's `format` fills, as Tensor Comprehensions has: `sh` becomes a parameter."""
    places = [
        i
        for i in range(1, len(tokens) - 2)
        if tokens[i].type == "LBRACE"
        and tokens[i - 1].type in _BEFORE_TEMPLATE
        and tokens[i + 1].type in ("NAME", "INTEGER")
        and tokens[i + 2].type == "RBRACE"
    ]
    fixes = list[Fix]()
    for start in [i for i, token in enumerate(tokens) if token.type == "DEF"] if places else ():
        end = start + len(_def_at(tokens, start))
        own = [
            edit for i in places if start < i < end for edit in (Edit(tokens[i].span, ""), Edit(tokens[i + 2].span, ""))
        ]
        if not own:
            continue
        close = closers(tokens[start:end]).get(2)
        header = [] if close is None else tokens[start : start + close + 1]
        known = {token.text for token in header}
        names = dict.fromkeys(tokens[i + 1].text for i in places if start < i < end and tokens[i + 1].type == "NAME")
        missing = [f"int32 {name}" for name in names if name not in known]
        if header and missing:
            comma = ", " if len(header) > 4 else ""
            own.append(Edit(Span(header[-1].start, header[-1].start), comma + ", ".join(missing)))
        place = Span(own[0].span.start, own[1].span.end)
        message, help = (
            "braces hold the statements of a def",
            "a number, or an `int32` parameter, stands without braces",
        )
        fix = Fix("make it a parameter" if missing else "delete the braces", tuple(own))
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix))
        fixes.append(fix)
    return (mended(tokens, *fixes) or tokens) if fixes else tokens


_BEHIND_VALUES = ("IN", "WHERE", "ELSE", "EXISTS")
"""Words of the language that stand behind a value only."""


def _renamed_words(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`float(N) in` as a parameter: the word and its uses, which stand where a value begins, become `in_`, after one message."""
    if not any(token.type in _BEHIND_VALUES and tokens[i - 1].type in _TYPED for i, token in enumerate(tokens)):
        return tokens
    pairs, starts = closers(tokens), [i for i, token in enumerate(tokens) if token.type == "DEF"]
    found = [*tokens]
    for start, end in pairwise([*starts, len(tokens)]):
        header = range(start + 3, min(pairs.get(start + 2, start), end))
        declared = [i for i in header if tokens[i].type in _BEHIND_VALUES and tokens[i + 1].type in ("COMMA", "RPAR")]
        taken = {token.text for token in tokens[start:end]} if declared else set[str]()
        for word, i in {tokens[i].text: i for i in reversed(declared) if tokens[i - 1].type in _TYPED}.items():
            name = next(name for k in range(1, len(taken) + 2) if (name := word + "_" * k) not in taken)
            uses = [j for j in range(i, end) if tokens[j].text == word and (j == i or _begins_value(tokens, j))]
            fix = Fix(f"rename it to `{name}`", tuple(Edit(tokens[j].span, name) for j in uses))
            message = f"`{word}` is a word of the language and cannot be a name"
            diagnostics.append(Diagnostic(codes.RESERVED_WORD, tokens[i].span, message, fix=fix))
            for j in uses:
                found[j] = Token("NAME", name, tokens[j].start, tokens[j].end, tokens[j].first)
    return found


_TYPED = ("SCALAR", "RPAR")


def _begins_value(tokens: list[Token], i: int) -> bool:
    return tokens[i - 1].type not in ENDS_EXPRESSION


def _methods(tokens: list[Token]) -> list[Token]:
    """`X.max()` of a parameter as a call of `X.max`, a name that no def has, with `X`: its message knows what `X` is."""
    if not any(token.type == "DOT" for token in tokens):
        return tokens
    types, kept, i = dict[str, tuple[str, int]](), list[Token](), 0
    while i < len(tokens):
        if tokens[i].type == "DEF":
            types = parameters(tokens[i : i + _MOST_IN_HEADER])
        five = tokens[i : i + 5]
        called = [token.type for token in five[1:2] + five[3:]] == ["DOT", "LPAR", "RPAR"]
        word = reducing(five[2].text) if called and five[2].type in ("NAME", "MINMAX") else None
        if (word not in OPERATORS and word != "mean") or types.get(five[0].text, ("", 0))[1] == 0:
            kept.append(tokens[i])
            i += 1
            continue
        name, after, opening = five[0], five[2], five[3]
        kept.append(Token("NAME", f"{name.text}.{after.text}", name.start, after.end, name.first))
        kept += [opening, Token("NAME", name.text, opening.end, opening.end), five[4]]
        i += 5
    return kept


_NAMED_SIZES = frozenset({"width", "height", "channels"})
_NUMBERED_SIZES = frozenset({"extent", "size", "shape"})


def _sizes(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`input.width()` and `input.extent(1)` of Halide become `input.1`, where `input` is a `float(H, W)`."""
    known, fixes = dict[tuple[str, int], str](), list[Fix]()
    for i, token in enumerate(tokens if any(token.type == "DOT" for token in tokens) else ()):
        if token.type == "DEF":
            known = extents(tokens[i : i + _MOST_IN_HEADER])
        called = tokens[i + 1 : i + 3]
        if [each.type for each in called] != ["NAME", "LPAR"] or token.type != "DOT" or tokens[i - 1].type != "NAME":
            continue
        word, end = called[0].text, i + 3
        dimension = None
        if word in _NAMED_SIZES:
            own = [(k, size.lower()) for (name, k), size in known.items() if name == tokens[i - 1].text]
            fits = [k for k, size in own if size in (word, word[0])]
            dimension = str(fits[0]) if len(fits) == 1 else None
        elif word in _NUMBERED_SIZES and tokens[end : end + 1] and tokens[end].text.isdigit():
            dimension, end = tokens[end].text, end + 1
        else:
            continue
        if end >= len(tokens) or tokens[end].type != "RPAR":
            continue
        place = Span(token.start, tokens[end].end)
        fix = None if dimension is None else Fix(f"write `.{dimension}`", (Edit(place, f".{dimension}"),))
        if fix is not None:
            help = INSTEAD[word].help
            diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, f"there is no `.{word}`", help=help, fix=fix))
            fixes.append(fix)
    return (mended(tokens, *fixes) or tokens) if fixes else tokens


def _types_of_c(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`unsigned char` and other types of several words; one word may be a name, two in a row are none."""
    if not any(token.text in WORDS_OF_TYPES and token.type == "NAME" for token in tokens):
        return tokens
    pairs, kept, i, in_header = closers(tokens), list[Token](), 0, False
    while i < len(tokens):
        end = i
        in_header = tokens[i].type == "DEF" or (in_header and tokens[i].type != "LBRACE")
        while end < len(tokens) and tokens[end].text in WORDS_OF_TYPES and not starts_statement(tokens, end, pairs):
            end += 1
        words = tokens[i:end]
        if len(words) < 2 or all(word.type == "SCALAR" for word in words):
            kept += tokens[i : max(end, i + 1)]
        else:
            text, shown = c_type([word.text for word in words]), " ".join(word.text for word in words[:6])
            follows = tokens[end].type if end < len(tokens) else ""
            has_message = not in_header and follows in ("RPAR", "RELATION", "NAME")  # that of a cast or a declaration
            told = list[Diagnostic]() if has_message else diagnostics
            kept.append(_replaced(words, "SCALAR", text, f"`{shown}` is no type", told))
        i = max(end, i + 1)
    return kept


_KEPT = frozenset({"static", "constexpr", "__constant__", "__device__"})
_MOST_IN_LIST = 1000  # tokens


def _constants_of_c(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`static const float w[3] = {0.25, 0.5, 0.25};` becomes `const float(3) w = [0.25, 0.5, 0.25]`, after a message."""
    if not any(one.text == "=" and other.type == "LBRACE" for one, other in pairwise(tokens)):
        return tokens
    fixes, i, pairs = list[Fix](), 0, closers(tokens)
    written = Counter(token.text for i, token in enumerate(tokens) if starts_statement(tokens, i, pairs))
    while i < len(tokens):
        start, kind = i, i
        while kind < len(tokens) and (tokens[kind].text in _KEPT or tokens[kind].type == "CONST"):
            kind += 1
        found = (
            _list_of_c(tokens, start, kind, pairs, written) if tokens[start : kind + 1][-1].type == "SCALAR" else None
        )
        if found is not None:
            end, own, shown = found
            place = Span(tokens[start].start, tokens[end - 1].end)
            message, help = "a list of C is no constant", f"a constant is written `{shown} = [...]`, with literals only"
            fix = Fix("write a constant", tuple(own))
            diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix))
            fixes.append(fix)
        i = found[0] if found else kind + 1
    return (mended(tokens, *fixes) or tokens) if fixes else tokens


def _list_of_c(
    tokens: list[Token], start: int, kind: int, pairs: dict[int, int], written: Counter[str]
) -> tuple[int, list[Edit], str] | None:
    """The end of a list of literals whose type is at `kind`, the edits that make it a constant, and how that begins.

    Args:
        written: how often a statement begins with a name.
    """
    after = kind + 2
    while after in pairs and tokens[after].type == "LSQB":
        after = pairs[after] + 1
    head = [token.type for token in tokens[kind + 1 : kind + 3]]
    if head != ["NAME", "LSQB"] or [token.type for token in tokens[after : after + 2]] != ["ASSIGN", "LBRACE"]:
        return None
    name, last, depth = tokens[kind + 1], after + 1, 0
    while last < min(len(tokens), after + _MOST_IN_LIST) and tokens[last].type in _OF_LISTS:
        depth += (tokens[last].type == "LBRACE") - (tokens[last].type == "RBRACE")
        last += 1
        if not depth:
            break
    if depth or tokens[last - 1].type != "RBRACE":
        return None
    sizes = [each for each in tokens[kind + 2 : after] if each.type not in ("LSQB", "RSQB")]
    opened = sum(token.type == "LSQB" for token in tokens[kind + 2 : after])
    if not sizes and opened == 1:
        texts = [str(len([each for each in split_commas(tokens[after + 2 : last - 1]) if each]))]
    elif len(sizes) == opened and all(size.type == "INTEGER" for size in sizes):
        texts = [size.text for size in sizes]
    else:
        return None
    is_constant = any(token.type == "CONST" or token.text == "constexpr" for token in tokens[start:kind])
    if not is_constant and written[name.text] > 1:
        return None  # it changes
    shown = f"const {tokens[kind].text}({', '.join(texts)}) {name.text}"
    edits = [Edit(Span(tokens[start].start, tokens[after - 1].end), shown)]
    edits += [
        Edit(each.span, "[" if each.type == "LBRACE" else "]")
        for each in tokens[after + 1 : last]
        if "BRACE" in each.type
    ]
    return last, edits, shown


_OF_LISTS = ("LBRACE", "RBRACE", "COMMA", "MINUS", "NUMBER", "INTEGER")


def _replaced(
    tokens: list[Token],
    kind: str,
    text: str,
    message: str,
    diagnostics: list[Diagnostic],
    help: str | None = None,
    code: codes.Code = codes.SYNTAX_ERROR,
) -> Token:
    """The token that stands for several ones, after a message whose fix writes it."""
    place = Span(tokens[0].start, tokens[-1].end)
    fix = Fix(f"replace it by `{text}`", (Edit(place, text),))
    diagnostics.append(Diagnostic(code, place, message, help=help, fix=fix))
    return Token(kind, text, place.start, place.end, tokens[0].first)


_BEHIND_DOTS = (
    *("FACTOR", "SIGN", "MINUS", "POWER", "ASSIGN", "UPDATE", "RELATION", "EQUALITY"),
    *("AND", "OR", "BITAND", "BITOR"),
)


def _without_dots(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`A .* B` and `exp.(A)`, where a dot says that elements are meant."""
    kept: list[Token] = []
    for token, after in pairwise([*tokens, Token("END", "", -1, -1)]):
        if token.type != "DOT" or after.start != token.end:
            kept.append(token)
            continue
        help = "a statement says what one element is: its operators and functions need no dots"
        called = after.type == "LPAR" and kept and kept[-1].end == token.start and kept[-1].type in _NAMES
        if called or after.type in _BEHIND_DOTS:
            what = "function" if called else "operator"
            message = f"there is no {what} `{kept[-1].text if called else ''}.{'' if called else after.text}`"
            fix = Fix("delete `.`", (Edit(token.span, ""),))
            place = Span(token.start, token.end if called else after.end)
            diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix))
            after.first = after.first or token.first
        else:
            kept.append(token)
    return kept


def _casts(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`static_cast<float>(x)`, `uint8_t(x)` and `(uint8_t)x`; of the last one there is a message where it is refused."""
    kept: list[Token] = []
    is_other = any(token.text in TYPES for token in tokens)
    known = _named(tokens) if is_other else set[str]()
    i = 0
    while i < len(tokens):
        cast = tokens[i : i + 4]
        kind = TYPES.get(tokens[i].text) if i and tokens[i].text not in known else None
        if kind is not None and _begins_cast(tokens, i):
            message = f"`{tokens[i].text}` is no type"
            told = list[Diagnostic]() if tokens[i + 1].type == "RPAR" else diagnostics
            kept.append(_replaced(tokens[i : i + 1], "SCALAR", kind, message, told))
            i += 1
            continue
        if len(tokens) > i + 4 and tokens[i + 4].type == "LPAR" and _is_cast(*cast):
            kind = TYPES.get(cast[2].text, cast[2].text)
            message = f"a cast is written like a call, as in `{kind}(x)`"
            kept.append(_replaced(cast, "SCALAR", kind, message, diagnostics))
            i += 4
        else:
            kept.append(tokens[i])
            i += 1
    return kept


def _named(tokens: list[Token]) -> set[str]:
    """Words for types that are names of parameters, of defs, or of what statements write."""
    pairs, found = closers(tokens), set[str]()
    typed = {close for opening, close in pairs.items() if opening and tokens[opening - 1].type == "SCALAR"}
    for i, token in enumerate(tokens):
        if token.text not in TYPES or not i:
            continue
        declared = tokens[i - 1].type in ("SCALAR", "DEF", "ARROW") or i - 1 in typed
        if declared or starts_statement(tokens, i, pairs):
            found.add(token.text)
    return found


def _begins_cast(tokens: list[Token], i: int) -> bool:
    """Whether `uint8_t` stands at a place as in `uint8_t(x)` or `(uint8_t)x`."""
    before, after, follows = tokens[i - 1], tokens[i + 1 : i + 2], tokens[i + 2 : i + 3]
    if not after:
        return False
    if after[0].type == "LPAR":
        return tokens[i].text.endswith("_t") and before.type not in ENDS_EXPRESSION and before.type != "LBRACE"
    is_alone = i > 1 and before.type == "LPAR" and tokens[i - 2].type not in (*ENDS_EXPRESSION, "MINMAX", "SCALAR")
    return (
        is_alone
        and after[0].type == "RPAR"
        and bool(follows)
        and follows[0].type in ("NAME", "LPAR", "INTEGER", "NUMBER")
    )


def _is_cast(word: Token, before: Token, kind: Token, after: Token) -> bool:
    is_type = kind.type == "SCALAR" or (kind.type == "NAME" and kind.text in TYPES)
    return word.type == "NAME" and word.text.endswith(_CASTS) and is_type and before.text + after.text == "<>"


_CASTS = ("cast", "convert", "astype", "as_type", "as")
_DOTTED = {
    "and": ("AND", "&&"),
    "or": ("OR", "||"),
    "not": ("BANG", "!"),
    "eq": ("EQUALITY", "=="),
    "ne": ("EQUALITY", "!="),
    "lt": ("RELATION", "<"),
    "le": ("RELATION", "<="),
    "gt": ("RELATION", ">"),
    "ge": ("RELATION", ">="),
}


def _dotted_words(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`.and.` and `.gt.` of Fortran."""
    if not any(token.type == "DOT" for token in tokens):
        return tokens
    kept: list[Token] = []
    i = 0
    while i < len(tokens):
        three = tokens[i : i + 3]
        meant = _DOTTED.get(three[1].text) if [each.type for each in three] == ["DOT", "NAME", "DOT"] else None
        if meant is None:
            kept.append(tokens[i])
            i += 1
            continue
        kind, plain = meant
        place = Span(three[0].start, three[2].end)
        fix = Fix(f"replace it by `{plain}`", (Edit(place, plain),))
        message = f"there is no operator `.{three[1].text}.`"
        diagnostics.append(Diagnostic(codes.PYTHON_OPERATOR, place, message, fix=fix))
        kept.append(Token(kind, plain, place.start, place.end, three[0].first))
        i += 3
    return kept


def _logical_words(tokens: list[Token], diagnostics: list[Diagnostic]) -> None:
    """`and`, `or`, `not` between operands become the operators that are meant (TC107)."""
    for i, token in enumerate(tokens):
        if token.type != "NAME" or token.text not in ("and", "or", "not") or not 0 < i < len(tokens) - 1:
            continue
        follows, binary = tokens[i + 1], token.text != "not"
        if follows.type not in STARTS_EXPRESSION and follows.type not in ("BANG", "MINUS"):
            continue
        if (tokens[i - 1].type in ENDS_EXPRESSION) != binary or tokens[i - 1].type in ("DEF", "LBRACE", "DOT"):
            continue
        if follows.type == "LPAR" and binary and token.first:
            continue
        if follows.type == "NAME" and i + 2 < len(tokens) and tokens[i + 2].type == "IN":
            continue  # it stands between two clauses
        if not binary:
            token.type = "NOT"
            continue
        plain = {"and": "&&", "or": "||"}[token.text]
        fix = Fix(f"replace `{token.text}` by `{plain}`", (Edit(token.span, plain),))
        diagnostics.append(
            Diagnostic(codes.PYTHON_OPERATOR, token.span, f"there is no operator `{token.text}`", fix=fix)
        )
        token.type, token.text = {"and": "AND", "or": "OR"}[token.text], plain


def _negated_comparisons(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`not a > b` becomes `!(a > b)`: Python's word binds less than a comparison, `!` more."""
    if not any(token.type == "NOT" for token in tokens):
        return tokens
    pairs = closers(tokens)
    after: dict[int, list[Token]] = {}  # brackets to close behind a token
    kept: list[Token] = []
    for i, token in enumerate(tokens):
        if token.type == "NOT":
            last, compared = _negated(tokens, i + 1, pairs)
            edits = [Edit(Span(token.start, tokens[i + 1].start), "!(" if compared else "!")]
            kept.append(Token("BANG", "!", token.start, token.end, token.first))
            if compared:
                end = tokens[last].end
                kept.append(Token("LPAR", "(", token.end, token.end))
                after.setdefault(last, []).append(Token("RPAR", ")", end, end))
                edits.append(Edit(Span(end, end), ")"))
            fix = Fix("replace `not` by `!`", tuple(edits))
            diagnostics.append(Diagnostic(codes.PYTHON_OPERATOR, token.span, "there is no operator `not`", fix=fix))
        else:
            kept.append(token)
        kept += after.pop(i, [])
    return kept


_AFTER_NOT = frozenset({"AND", "OR", "QUESTION", "COLON", "COMMA", "RPAR", "RBRACE", "WHERE", "MATCH"})


def _negated(tokens: list[Token], start: int, pairs: dict[int, int]) -> tuple[int, bool]:
    """The place of the last token that a `not` before `start` negates, and whether there is a comparison."""
    i, compared = start, False
    while i < len(tokens) and tokens[i].type not in _AFTER_NOT:
        if i > start and tokens[i - 1].type in ENDS_EXPRESSION and starts_statement(tokens, i, pairs):
            break
        compared = compared or tokens[i].type in ("RELATION", "EQUALITY")
        i = pairs.get(i, i) + 1
    return i - 1, compared


_INFIX = {
    **{word: meant for word, meant in _DOTTED.items() if word not in ("and", "or", "not")},
    **dict.fromkeys(("mod", "rem"), ("FACTOR", "%")),
    "div": ("FACTOR", "/"),
    "shl": ("SHIFT", "<<"),
    "shr": ("SHIFT", ">>"),
    "xor": ("XOR", "^^"),
}
"""Words that are operators between two operands; those of truth values are replaced before."""
_QUOTIENT = "`/` of two integers rounds down, that of two floats is rounded down with `floor`"


def _infix_words(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`a mod b`, `a div b` and `a xor b` become `a % b`, `a / b` and `a ^^ b`, of truth values `a != b` (TC107)."""
    if not any(token.text in _INFIX and token.type == "NAME" for token in tokens):
        return tokens
    pairs = closers(tokens)
    openings, types = {close: opening for opening, close in pairs.items()}, dict[str, tuple[str, int]]()
    behind: dict[int, list[Token]] = {}  # brackets around the operands of a token
    before: dict[int, list[Token]] = {}
    for i, token in enumerate(tokens):
        if token.type == "DEF":
            types = parameters(tokens[i : i + _MOST_IN_HEADER])
        if token.type != "NAME" or token.text not in _INFIX or not _is_infix(tokens, i, pairs):
            continue
        (kind, plain), help, edits = _INFIX[token.text], None, list[Edit]()
        sides = _kind_of(tokens, i - 1, openings, types), _kind_of(tokens, i + 1, openings, types)
        if token.text == "xor":
            help = INSTEAD["xor"].help
            spans, is_chain = _compared_sides(tokens, i, pairs, openings)
            plain = "!=" if (spans or "bool" in sides) and not is_chain else plain  # comparisons do not chain
            if not is_chain and not spans and any(side in FLOATS for side in sides):
                plain = "!="
                for first, last in _numbers_beside(tokens, i, sides, pairs, openings):
                    start, end = tokens[first].start, tokens[last].end
                    before.setdefault(first, []).append(Token("LPAR", "(", start, start, tokens[first].first))
                    zero = ("EQUALITY", "!="), ("INTEGER", "0"), ("RPAR", ")")
                    behind.setdefault(last, []).extend(Token(*each, end, end) for each in zero)
                    edits += [Edit(Span(start, start), "("), Edit(Span(end, end), " != 0)")]
            for first, last in spans:
                start, end = tokens[first].start, tokens[last].end
                before.setdefault(first, []).append(Token("LPAR", "(", start, start, tokens[first].first))
                behind.setdefault(last, []).append(Token("RPAR", ")", end, end))
                edits += [Edit(Span(start, start), "("), Edit(Span(end, end), ")")]
        fix = Fix(f"replace `{token.text}` by `{plain}`", (*edits, Edit(token.span, plain)))
        if token.text in ("shl", "shr") and sides[0] in FLOATS:
            fix = None  # which the message about the shift has
        if token.text == "div":
            help, fix = _QUOTIENT, None if any(side in FLOATS for side in sides) else fix
        message = f"there is no operator `{token.text}`"
        diagnostics.append(Diagnostic(codes.PYTHON_OPERATOR, token.span, message, help=help, fix=fix))
        token.type, token.text = kind, "^^" if kind == "XOR" else plain
    return [each for i, token in enumerate(tokens) for each in (*before.get(i, []), token, *behind.get(i, []))]


_MOST_IN_HEADER = 2000


def _is_infix(tokens: list[Token], i: int, pairs: dict[int, int]) -> bool:
    """Whether a word stands between two operands, and begins no statement."""
    if not 0 < i < len(tokens) - 1 or tokens[i - 1].type not in ENDS_EXPRESSION or starts_statement(tokens, i, pairs):
        return False
    follows = tokens[i + 1].type
    return follows in (*STARTS_EXPRESSION, "BANG", "TILDE", "MINUS") and not (tokens[i].first and follows == "LPAR")


def _kind_of(tokens: list[Token], i: int, openings: dict[int, int], types: dict[str, tuple[str, int]]) -> str:
    """The type of the operand that begins or ends at `i`, where it is a parameter, one of its elements, or a literal."""
    if tokens[i].type == "RPAR":
        i = openings.get(i, 1) - 1
    if tokens[i].type == "BANG" or tokens[i].text in ("true", "false"):
        return "bool"
    return "float" if tokens[i].type == "NUMBER" else types.get(tokens[i].text, ("", 0))[0]


def _numbers_beside(
    tokens: list[Token], i: int, sides: tuple[str, str], pairs: dict[int, int], openings: dict[int, int]
) -> list[tuple[int, int]]:
    """The operands of an `xor` that are no truth values: their first and last places."""
    first, last = openings.get(i - 1, i - 1), pairs.get(i + 1, i + 1)
    first -= first > 0 and tokens[first].type == "LPAR" and tokens[first - 1].type == "NAME"
    last = pairs.get(last + 1, last) if tokens[last].type == "NAME" else last
    places = (first, i - 1), (i + 1, last)
    return [place for place, side in zip(places, sides, strict=True) if side != "bool"]


def _compared_sides(
    tokens: list[Token], i: int, pairs: dict[int, int], openings: dict[int, int]
) -> tuple[list[tuple[int, int]], bool]:
    """The sides of an `xor` that are comparisons: their first and last places; and whether a second `xor` is beside it."""
    first, end, found = i, i + 1, list[tuple[int, int]]()
    while first > 0 and tokens[first - 1].type not in _BEFORE_OPERAND:
        first = openings.get(first - 1, first - 1)
    while end < len(tokens) and tokens[end].type not in _AFTER_NOT and tokens[end].text != "xor":
        if tokens[end - 1].type in ENDS_EXPRESSION and starts_statement(tokens, end, pairs):
            break
        end = pairs.get(end, end) + 1
    behind_other = first > 0 and tokens[first - 1].type == "XOR"  # which has seen to its right side
    for start, stop in ((i, i) if behind_other else (first, i), (i + 1, end)):
        if any(tokens[k].type in ("RELATION", "EQUALITY") for k in _outside(start, stop, pairs)):
            found.append((start, stop - 1))
    return found, behind_other or (end < len(tokens) and tokens[end].text == "xor")


def _outside(start: int, end: int, pairs: dict[int, int]) -> list[int]:
    """The places of a part that stand in none of its brackets."""
    found, i = list[int](), start
    while i < end:
        found.append(i)
        i = pairs.get(i, i) + 1
    return found


_BEFORE_OPERAND = frozenset(
    {"ASSIGN", "UPDATE", "LPAR", "LSQB", "COMMA", "WHERE", "QUESTION", "COLON", "AND", "OR", "LBRACE", "XOR"}
)


def _without_modules(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`np.exp` becomes `exp`; what has a message of its own, as `np.sum` has, is left to that message."""
    if not any(token.text in MODULES for token in tokens):
        return tokens
    kept: list[Token] = []
    called = {one.text for one, other in pairwise(tokens) if other.type == "LPAR"}
    known = _known(tokens)
    named = known | {after.text for one, after in pairwise(tokens) if one.type in ("DEF", "REDUCE")}
    i = 0
    while i < len(tokens):
        token, last = tokens[i], i
        while (after := _behind_module(tokens, last)) is not None:
            last = after
        if token.text in MODULES and [each.type for each in tokens[i + 1 : i + 4]] == ["DOT", "WHERE", "LPAR"]:
            kept.append(Token("NAME", "np.where", token.start, tokens[i + 2].end, token.first))
            last = i + 2
        elif token.text in MODULES and last > i and tokens[last].text == "newaxis":
            kept.append(Token("NAME", "newaxis", token.start, tokens[last].end, token.first))  # told with the slices
        elif token.text in MODULES and [each.type for each in tokens[last + 1 : last + 4]] == ["DOT", "REDUCE", "LPAR"]:
            kept.append(_no_function(tokens[i : last + 3], diagnostics))
            last += 2
        elif token.text in MODULES and last > i and _is_nothing(tokens, last, named):
            kept.append(_no_function(tokens[i : last + 1], diagnostics))
        elif token.text in MODULES and token.text not in called and last > i:
            is_call = last + 1 < len(tokens) and tokens[last + 1].type == "LPAR"
            by_axis = token.text != "std" and _over_axis(tokens, last, diagnostics)
            of_two = (
                tokens[last].type == "MINMAX" and not by_axis and _takes_several(tokens, last + 1)
            )  # `std::max(a, b)`
            in_cast = [each.text for each in kept[-2:]] in (["astype", "("], ["to", "("], ["type", "("])
            kept += _plain_name(
                token,
                tokens[last],
                is_call and tokens[last].text not in known and not of_two,
                [] if in_cast and tokens[last].type == "SCALAR" else diagnostics,  # the message about the cast tells it
            )
        else:
            kept += tokens[i : last + 1]
        i = last + 1
    return kept


def _is_nothing(tokens: list[Token], place: int, known: set[str]) -> bool:
    """Whether a word that is called names a function that neither the language nor the cell has, under any name."""
    word, follows = tokens[place], [token.type for token in tokens[place + 1 : place + 2]]
    meant = (FUNCTIONS_HERE, KEYWORDS, SORTING, OF_MODULES, CONSTANTS, TC_TYPES, known)
    has_meaning = is_known(word.text) or any(word.text in names for names in meant)
    return follows == ["LPAR"] and not has_meaning and plain_name(word.text, FUNCTIONS_HERE) is None


_UFUNCS = {"multiply": "*=!", "maximum": "max=!", "minimum": "min=!", "logical_and": "all=!", "logical_or": "any=!"}


def _no_function(tokens: list[Token], diagnostics: list[Diagnostic]) -> Token:
    """The token that stands for `np.linalg.inv` and `np.add.reduce`, after a message."""
    name, place = "".join(token.text for token in tokens), Span(tokens[0].start, tokens[-1].end)
    help = "write what it computes as statements, or compute it in Python and pass the result"
    if tokens[-1].type == "REDUCE":
        operator = _UFUNCS.get(tokens[-3].text, "+=!")
        help = f"an operator reduces over the indices that stand only on the right, as in `Y(j) {operator} X(i, j)`"
    diagnostics.append(Diagnostic(codes.UNKNOWN_NAME, place, f"there is no `{name}` here", help=help))
    return Token("ERROR", name, place.start, place.end, tokens[0].first)


def _over_axis(tokens: list[Token], word: int, diagnostics: list[Diagnostic]) -> bool:
    """Whether the number in `np.max(X, 0)` is an axis, which it is not in `np.max(X(i), 0)`; a message about it."""
    near = tokens[word : word + 200]
    close = closers(near).get(1) if near[0].type == "MINMAX" else None
    axis = None if close is None else axis_of([replace(near[0], type="NAME"), *near[1:]], 1, close)
    called = {one.text for one, other in pairwise(near[1:close]) if (one.type, other.type) == ("NAME", "LPAR")}
    if axis is None or any(name not in FUNCTIONS_HERE and not is_known(name) for name in called):
        return False
    if not any(token.type == "ASSIGN" for token in near[:close]):
        help, place = REDUCING[near[0].text], Span(tokens[word].start, axis.place.end)
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, "an axis is no argument", help=help))
    return True


def _takes_several(tokens: list[Token], opening: int) -> bool:
    """Whether several values stand in the brackets of a call; `axis=0` is none."""
    near = tokens[opening : opening + 200]
    values = split_commas(near[1 : closers(near).get(0, 1)])
    return len(values) > 1 and all(len(value) < 2 or value[1].type != "ASSIGN" for value in values)


def _behind_module(tokens: list[Token], place: int) -> int | None:
    """The place of the word behind `np.` or `std::`."""
    kinds = [token.type for token in tokens[place + 1 : place + 3]]
    is_scope = (
        kinds == ["COLON", "COLON"]
        and tokens[place].text in MODULES
        and tokens[place + 1].end == tokens[place + 2].start
    )
    after = place + (3 if is_scope else 2)
    found = (is_scope or kinds[:1] == ["DOT"]) and after < len(tokens) and _is_word(tokens[after])
    return after if found else None


def _known(tokens: list[Token]) -> set[str]:
    """Names that a cell gives: those that stand without an argument somewhere, and those that statements write."""
    pairs = closers(tokens)
    return {
        token.text
        for i, token in enumerate(tokens)
        if token.type == "NAME"
        and (i == 0 or tokens[i - 1].type != "DOT")
        and (i + 1 == len(tokens) or tokens[i + 1].type not in ("LPAR", "DOT") or starts_statement(tokens, i, pairs))
    }


_NAMES = ("NAME", "MINMAX", "SCALAR")


_OF_C = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "byte": "uint8"}
_OF_PYTHON = {"float": "float64", "int": "int64"}


def _limits(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`std::numeric_limits<float>::max()`, `np.finfo(np.float32).max` and `typemax(Float32)` become numbers."""
    if not any(token.text in LIMITS or token.text in FUNCTIONS_OF_TYPES for token in tokens):
        return tokens
    kept, i = list[Token](), 0
    while i < len(tokens):
        found = _limit(tokens, i) if tokens[i].text in LIMITS or tokens[i].text in FUNCTIONS_OF_TYPES else None
        if found is None:
            kept.append(tokens[i])
            i += 1
            continue
        number, end = found
        first = tokens[i]
        while (count := _module_before(kept)) > 0:
            first = kept[-count]
            del kept[-count:]
        place = Span(first.start, tokens[end - 1].end)
        inside = (each for each in diagnostics if place.start <= each.span.start < place.end)
        for each in list(inside):  # about quotes
            diagnostics.remove(each)
        fix, message = Fix(f"write `{number}`", (Edit(place, number),)), "the limits of a type have no names"
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, message, help="numbers are written out", fix=fix))
        kept += _number(number, place, first.first)
        i = end
    return kept


def _module_before(tokens: list[Token]) -> int:
    """How many tokens at the end are `np.` or `std::`."""
    kinds = [token.type for token in tokens[-3:]]
    count = 2 if kinds[-2:] == ["NAME", "DOT"] else 3 if kinds == ["NAME", "COLON", "COLON"] else 0
    return count if count and tokens[-count].text in MODULES else 0


def _limit(tokens: list[Token], i: int) -> tuple[str, int] | None:
    """The number that the tokens at `i` name, and where they end."""
    opening = tokens[i + 1 : i + 2]
    if not opening or (opening[0].type != "LPAR" and opening[0].text != "<"):
        return None
    j = i + 2
    while j + 1 < len(tokens) and tokens[j].text in MODULES and tokens[j + 1].type in ("DOT", "COLON"):
        j += 3 if tokens[j + 2].type == "COLON" else 2
    if j + 1 >= len(tokens) or tokens[j + 1].text != (")" if opening[0].type == "LPAR" else ">"):
        return None
    name, kind = tokens[i].text, tokens[j].text.strip("\"'").lower()
    is_python = name in ("finfo", "iinfo")
    kind = TYPES.get(kind, kind) if not is_python else _OF_PYTHON.get(kind, kind)
    kind = _OF_C.get(kind, kind)
    j += 2
    if name in LIMITS:
        rest = tokens[j : j + 3]
        j += 1 if rest and rest[0].type == "DOT" else 2
        if not rest or rest[0].type not in ("DOT", "COLON") or j >= len(tokens):
            return None
        name = tokens[j].text
        called = [token.type for token in tokens[j + 1 : j + 3]] == ["LPAR", "RPAR"]
        if rest[0].type == "COLON" and name == "min" and kind.startswith(("float", "bfloat")):
            name = "tiny"  # as C++ has it
        j += 3 if called else 1
    number = limit(name, kind)
    return None if number is None else (number, j)


def _is_word(token: Token) -> bool:
    """Whether a token is a word, `inf` and `nan` included."""
    return token.type in _NAMES or (token.type == "NUMBER" and token.text.isalpha())


_OF_C_AND_PYTHON = ("std", "math")


def _plain_name(module: Token, name: Token, called: bool, diagnostics: list[Diagnostic]) -> list[Token]:
    """The tokens that stand for `np.name`; `called`: it is called, and the cell gives nothing that name."""
    if called and name.text == "round" and module.text not in _OF_C_AND_PYTHON:
        return [Token("NAME", "np.round", module.start, name.end, module.first)]  # halves to the even number
    if called and (reducing(name.text) is not None or name.text in INSTEAD or name.text in SORTING):
        return [Token("NAME", name.text, module.start, name.end, module.first)]
    number = name.text if name.type == "NUMBER" else CONSTANTS.get(name.text) or OF_MODULES.get(name.text)
    text = number or RENAMED.get(name.text, name.text)
    fix = Fix(f"write `{text}`", (Edit(Span(module.start, name.end), text),))
    help = "functions have their plain names"
    if number:
        help = None if number.strip("-").isalpha() else "numbers are written out"
    place = Span(module.start, name.start)
    diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, "there are no modules", help=help, fix=fix))
    if number:
        return _number(number, place | name.span, module.first)
    return [Token(KEYWORDS.get(text, "NAME"), text, module.start, name.end, module.first)]


def _number(text: str, place: Span, first: bool) -> list[Token]:
    """The tokens of a number, which may have a sign."""
    plain = text.removeprefix("-")
    sign = [Token("MINUS", "-", place.start, place.end, first)] if text[0] == "-" else []
    return [*sign, Token("INTEGER" if plain.isdigit() else "NUMBER", plain, place.start, place.end, first and not sign)]


def _word_operators(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`y(i) sum=! X(i, k)`, `y(i) or= B(i, k)` and `y(i) max =! X(i, k)`: the word with its `=` and `!` becomes one operator."""
    if not any(_is_operator_word(token) or token.type in ("BANG", "EQUALITY", *_SPACED) for token in tokens):
        return tokens
    openings = {close: opening for opening, close in closers(tokens).items()}
    kept: list[Token] = []
    closing: dict[int, list[Token]] = {}  # behind a token
    i = 0
    while i < len(tokens):
        token, end = tokens[i], _operator_end(tokens, i)
        if end > i and _is_head(tokens, i, openings):
            meant = _mean(tokens, i, end, openings) or _running(tokens, i, end, openings)
            kept += [_operator(tokens[i:end], diagnostics)] if meant is None else meant.opening
            diagnostics += [] if meant is None else [meant.said]
            closing |= {} if meant is None else {meant.last: meant.closing}
            i = end
            continue
        kept += [token, *closing.pop(i, [])]
        i += 1
    return kept


@dataclass(frozen=True, slots=True)
class _Meant:
    """What a word before `=!` stands for: an operator and what opens a cast, what closes it behind `last`, the message."""

    opening: list[Token]
    last: int
    closing: list[Token]
    said: Diagnostic


def _mean(tokens: list[Token], i: int, end: int, openings: dict[int, int]) -> _Meant | None:
    """`Y(i) mean=! X(i, j)` is a sum and a quotient by the number of points; `None` where that is not seen."""
    start = openings.get(i - 1, i) - 1
    if reducing(tokens[i].text) != "mean" or tokens[start].type != "NAME":
        return None
    last = _value_end(tokens, end, {opening: close for close, opening in openings.items()})
    own = {token.text for token in tokens[start + 1 : i]}
    lengths = _summed(tokens[end:last], own, _header(tokens, start), _known(tokens)).values()
    if not lengths or not all(lengths) or (last < len(tokens) and tokens[last].type in ("WHERE", "ALONG")):
        return None
    left = text_of(tokens[start:i])
    quotient = f"{left} = {left} / {count(lengths)}"
    place, behind = Span(tokens[i].start, tokens[end - 1].end), tokens[last - 1].end
    help = f"sum with `+=!`, and divide by the number of values in a second statement, `{quotient}`"
    edits = [Edit(place, "+=!"), Edit(Span(behind, behind), f"  {quotient}")]
    if (cast := _cast_of_mean(tokens, start, tokens[end:last])) is not None:
        help += "; quotients of integers are rounded down, those of floats are not"
        before = Span(tokens[end].start, tokens[end].start)
        edits = [edits[0], Edit(before, f"{cast}("), Edit(edits[1].span, f"){edits[1].text}")]
    fix = None if cast in SCALAR_TYPES - FLOATS else Fix("sum, and divide", tuple(edits))
    message = f"there is no operator `{text_of(tokens[i:end]).replace(' ', '')}`"
    said = Diagnostic(codes.PYTHON_OPERATOR, place, message, help=help, fix=fix)
    opening, closing = [Token("UPDATE", "+=!", place.start, place.end)], list[Token]()
    if cast is not None:
        at = tokens[end].start
        opening += [Token("SCALAR", cast, at, at), Token("LPAR", "(", at, at)]
        closing = [Token("RPAR", ")", behind, behind)]
    return _Meant(opening, last - 1, closing, said)


def _value_end(tokens: list[Token], start: int, pairs: dict[int, int]) -> int:
    """The place behind the value of a statement that begins at `start`."""
    last = start
    while last < len(tokens) and tokens[last].type not in ("RBRACE", "WHERE", "ALONG"):
        if tokens[last].type == "NAME" and last > start and _starts_any(tokens, last, pairs):
            break
        last += 1
    return last


def _running(tokens: list[Token], i: int, end: int, openings: dict[int, int]) -> _Meant | None:
    """`Y(i) cumsum=! X(i)` is a recurrence along the only index; `None` where that is not seen."""
    running, start = RUNNING.get(tokens[i].text), openings.get(i - 1, i) - 1
    last = _value_end(tokens, end, {opening: close for close, opening in openings.items()})
    value, left = tokens[end:last], [token.text for token in tokens[start + 2 : i - 1] if token.type == "NAME"]
    follows = tokens[last].type if last < len(tokens) else ""
    if running is None or len(left) != 1 or not value or follows == "ALONG":
        return None
    if _summed(value, set(left), _header(tokens, start), _known(tokens)):
        return None
    right = running.text(tokens[start].text, left, 0, text_of(value), operand_end(value, 0) != len(value))
    place, whole = Span(tokens[i].start, tokens[end - 1].end), Span(tokens[i].start, value[-1].end)
    message = f"there is no operator `{text_of(tokens[i:end]).replace(' ', '')}`"
    fix = Fix("go on from the element before", (Edit(whole, f"= {right}"),))
    said = Diagnostic(codes.PYTHON_OPERATOR, place, message, help=running.help, fix=fix)
    return _Meant([Token("ASSIGN", "=", place.start, place.end)], last - 1, [], said)


def _starts_any(tokens: list[Token], i: int, pairs: dict[int, int]) -> bool:
    """Whether a statement begins at `i`, also one whose operator is such a word."""
    after = pairs.get(i + 1, i) + 1
    return starts_statement(tokens, i, pairs) or (after < len(tokens) and _operator_end(tokens, after) > after)


def _cast_of_mean(tokens: list[Token], target: int, value: list[Token]) -> str | None:
    """The type to cast what is averaged to, that of a declared result or `double`; `None` where it is a float by itself."""
    header = _header(tokens, target)
    types = parameters(header)
    outside = _outside(0, len(value), closers(value))
    choice = next((i for i in outside if value[i].type == "QUESTION"), None)
    if choice is not None:
        value = value[choice:]
    elif any(value[i].type in ("RELATION", "EQUALITY", "AND", "OR", "BANG") for i in outside):
        value = []  # it is a truth value, whatever it is made of
    has_floats = any(kind in FLOATS for kind, _ in types.values())
    for one, after in pairwise([*value, Token("END", "", -1, -1)]):
        made = one.type == "NAME" and after.type == "LPAR" and one.text not in types
        if types.get(one.text, ("", 0))[0] in FLOATS or one.text in FLOATS or one.type == "NUMBER":
            return None
        if made and (has_floats or one.text in FUNCTION_WORDS):
            return None  # perhaps a temporary of floats
    arrow = next((i for i, token in enumerate(header) if token.type == "ARROW"), len(header))
    kind = None
    for token in header[arrow:]:
        kind = token.text if token.type == "SCALAR" else None if token.type == "COMMA" and kind is None else kind
        if token.text == tokens[target].text and kind is not None:
            return kind
    return "double"


def _header(tokens: list[Token], target: int) -> list[Token]:
    """The header of the def around a token."""
    begin = next((i for i in range(target, -1, -1) if tokens[i].type == "DEF"), 0)
    return tokens[begin : next((i for i in range(begin, target) if tokens[i].type == "LBRACE"), target)]


def _summed(value: list[Token], left: set[str], header: list[Token], known: set[str]) -> dict[str, str]:
    """The indices of a value that are not on the left, each with the number of its values where the reads say it."""
    pairs, places, sizes = closers(value), dict[str, list[Place]](), extents(header)
    given = left | {token.text for token in header}
    reads = [i for i, close in pairs.items() if i and close > i and value[i - 1].text in known]
    tensors = {value[i - 1].text for i in reads}
    for opening in reads:
        name, inner = value[opening - 1].text, {i for i in reads if opening < i < pairs[opening]}
        within = {value[k].start for i in inner for k in range(i, pairs[i])}
        for number, each in enumerate(split_commas(value[opening + 1 : pairs[opening]])):
            own = [token for token in each if token.start not in within and token.text not in tensors]
            for index in (token.text for token in own if token.type == "NAME" and token.text not in given):
                extent = f"{name}.{number}"
                place = Place(extent, sizes.get((name, number), extent), _shift(each))
                places.setdefault(index, []).append(place)
    is_guarded = any(token.type in ("QUESTION", "AND", "OR", "ELSE") for token in value)
    return {index: length(found, is_guarded) for index, found in places.items()}


def _shift(subscript: list[Token]) -> int | None:
    """1 for `j + 1`, -1 for `j - 1`, 0 for `j` alone; `None` for more."""
    kinds = [token.type for token in subscript]
    if kinds == ["NAME"]:
        return 0
    if kinds not in (["NAME", "SIGN", "INTEGER"], ["NAME", "MINUS", "INTEGER"]) or not subscript[2].text.isdigit():
        return None
    return int(subscript[2].text) if subscript[1].text == "+" else -int(subscript[2].text)


_SPACED = ("MINMAX", "SIGN", "FACTOR")


def _operator_end(tokens: list[Token], start: int) -> int:
    """Where the `=` and `!` behind a word end that is meant for an operator; `start` where none is."""
    word, first = tokens[start], _behind_index(tokens, start)
    two = tokens[first : first + 2]
    if not two or (
        word.type != "NAME" and word.text not in ("min", "max", "+", "*") and word.text not in WORD_OPERATORS
    ):
        return start
    touches, known = two[0].start == tokens[first - 1].end, word.type == "NAME" and _is_operator_word(word)
    if (known or word.type == "MINMAX") and (end := _other_operator_end(two)):
        return first + end
    marked = len(two) > 1 and two[0].end == two[1].start and {two[0].type, two[1].type} == {"ASSIGN", "BANG"}
    if two[0].type == "EQUALITY" and two[0].text == "!=":
        return first + 1 if known or (word.type == "NAME" and touches) else start
    if marked or (len(two) > 1 and known and (two[0].type, two[1].type) == ("BANG", "ASSIGN")):
        return first + 2 if known or touches or word.type != "NAME" else start
    return first + 1 if two[0].type == "ASSIGN" and (known or word.type in _SPACED) else start


def _is_operator_word(word: Token) -> bool:
    return word.text in WORD_OPERATORS or reducing(word.text) in OPERATORS


def _behind_index(tokens: list[Token], start: int) -> int:
    """The place behind a word, and behind the index in brackets that may follow one of an operator: `argmax[m]=!`."""
    first, word = start + 1, tokens[start]
    has_index = first < len(tokens) and tokens[first].type == "LSQB" and tokens[first].start == word.end
    if has_index and (word.type == "MINMAX" or _is_operator_word(word)):
        near = range(first + 1, min(len(tokens), first + 8))
        return next((i + 1 for i in near if tokens[i].type == "RSQB"), first)
    return first


def _other_operator_end(two: list[Token]) -> int:
    """How many tokens behind a word assign otherwise: `==`, `+=` and `:=`."""
    if two[0].text == "==" or two[0].type == "UPDATE":
        return 1
    return 2 if [token.text for token in two] == [":", "="] else 0


def _plain_targets(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`(V(n), P(n)) argmax=! X(n, m)`, where a statement begins at the parenthesis: an element has no elements."""
    openings, left_out = {close: opening for opening, close in closers(tokens).items()}, set[int]()
    for i, (close, assign) in enumerate(pairwise(tokens)):
        start = openings.get(i, 0)
        if close.type != "RPAR" or assign.type not in ("ASSIGN", "UPDATE") or not start:
            continue
        inside, before = tokens[start + 1 : i], tokens[start - 1].type
        if before not in ("LBRACE", "RPAR", "INTEGER", "NUMBER") or not inside or inside[0].type != "NAME":
            continue
        fix = Fix("delete them", (Edit(tokens[start].span, ""), Edit(close.span, "")))
        message = "what a statement writes stands without parentheses"
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, tokens[start].span, message, fix=fix))
        left_out |= {start, i}
    return [token for i, token in enumerate(tokens) if i not in left_out] if left_out else tokens


def _without_idle_bangs(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`y(i) =! X(i)` and `y(i) +=!! X(i)`, where the last `!` belongs to the operator; in `m =!b` it negates `b`."""
    kept: list[Token] = []
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else token
        alone = token.type == "BANG" and i + 1 < len(tokens) and tokens[i + 1].start > token.end
        if not alone or before.type not in ("ASSIGN", "UPDATE") or before.end != token.start:
            kept.append(token)
            continue
        plain, place = before.text, Span(before.start, token.end)
        if i > 1 and tokens[i - 2].end == before.start and tokens[i - 2].type not in ENDS_EXPRESSION:
            kept.append(token)  # of `||=!`, which has a message of its own
            continue
        fix = Fix(f"write `{plain}`", (Edit(place, plain),))
        help = "`=` has no form with `!`" if plain == "=" else "one `!` is enough"
        help += "; a `!` that negates touches its operand, as in `= !b(i)`"
        message = f"there is no operator `{plain}!`"
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix))
    return kept


def _without_separators(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`Y(i) = X(i), Z(i) = 2 * X(i)`, where a comma stands between two statements; in `Y(i), Z(i) = ...` it does not."""
    pairs, kept, depth = closers(tokens), list[Token](), 0
    openings = {close: opening for opening, close in pairs.items()}
    for i, token in enumerate(tokens):
        depth += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
        begins = (
            token.type == "COMMA" and not depth and [each.type for each in tokens[i + 1 : i + 3]] == ["NAME", "LPAR"]
        )
        if begins and starts_statement(tokens, i + 1, pairs) and _ends_value(tokens, i - 1, openings):
            fix = Fix("delete `,`", (Edit(token.span, ""),))
            message = "statements are not separated by `,`"
            diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, token.span, message, fix=fix))
            tokens[i + 1].first = True
        else:
            kept.append(token)
    return kept


_IN_VALUES = (
    "ASSIGN",
    "UPDATE",
    "SIGN",
    "MINUS",
    "FACTOR",
    "BANG",
    "RELATION",
    "EQUALITY",
    "COLON",
    "QUESTION",
    "AND",
    "OR",
)


def _ends_value(tokens: list[Token], last: int, openings: dict[int, int]) -> bool:
    """Whether the operand that ends here belongs to a value, and is no target."""
    start = openings.get(last, last)
    start -= start > 0 and tokens[last].type == "RPAR" and tokens[start - 1].type in ("NAME", "MINMAX", "SCALAR")
    return start > 0 and tokens[start - 1].type in _IN_VALUES


def _incremented(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`n(i)++` and `n(i)--` as a statement become `n(i) += 1` and `n(i) += -1`."""
    places = [i for i, (one, other) in enumerate(pairwise(tokens)) if one.text in "+-" and _repeats(one, other)]
    if not places:
        return tokens
    openings, kept, done = {close: opening for opening, close in closers(tokens).items()}, list[Token](), 0
    for i in places:
        follows = tokens[i + 2].type if i + 2 < len(tokens) else "RBRACE"
        if i < done or follows not in ("RBRACE", "NAME", "SCALAR") or not _is_head(tokens, i, openings):
            continue
        sign, place = tokens[i].text, Span(tokens[i].start, tokens[i + 1].end)
        written = [("UPDATE", "+="), *([("MINUS", "-")] if sign == "-" else []), ("INTEGER", "1")]
        fix = Fix("write `+=`", (Edit(place, f" += {'-' * (sign == '-')}1"),))
        diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, f"there is no operator `{sign * 2}`", fix=fix))
        kept += [*tokens[done:i], *(Token(kind, text, place.start, place.end) for kind, text in written)]
        done = i + 2
    return [*kept, *tokens[done:]]


def _last_elements(tokens: list[Token], diagnostics: list[Diagnostic]) -> list[Token]:
    """`X(end)` and `X(end - 1)` of MATLAB and Julia, in which `end` becomes the last index; a cell may have such a name."""
    known = _known(tokens) if any(token.text == "end" for token in tokens) else set[str]()
    found: dict[int, list[Token]] = {}
    for opening, close in closers(tokens).items() if known else ():
        named = opening and tokens[opening - 1].type == "NAME" and tokens[opening - 1].end == tokens[opening].start
        named = named and close + 1 < len(tokens) and tokens[close + 1].type not in ("ASSIGN", "UPDATE")
        commas = 0
        for i in range(opening + 1, close if named else 0):
            commas += tokens[i].type == "COMMA"
            begins, ends = tokens[i - 1].type in ("LPAR", "LSQB", "COMMA"), tokens[i + 1].type in _BEHIND_END
            if tokens[i].text != "end" or not begins or not ends or i in found:
                continue
            place, name = tokens[i].span, tokens[opening - 1].text
            text = f"{name}.{commas} - 1"
            fix, help = Fix(f"write `{text}`", (Edit(place, text),)), "the first element is number 0"
            diagnostics.append(Diagnostic(codes.SYNTAX_ERROR, place, "there is no `end`", help=help, fix=fix))
            kinds = (("NAME", name), ("DIMENSION", f".{commas}"), ("MINUS", "-"), ("INTEGER", "1"))
            found[i] = [Token(kind, each, place.start, place.end) for kind, each in kinds]
    return [each for i, token in enumerate(tokens) for each in found.get(i, [token])]


_BEHIND_END = ("RPAR", "RSQB", "COMMA", "MINUS", "SIGN")


def _repeats(one: Token, other: Token) -> bool:
    return other.text == one.text and other.start == one.end


def _is_head(tokens: list[Token], end: int, openings: dict[int, int]) -> bool:
    """Whether `T` or `T(i, j)`, at which a statement begins, ends before `end`: in `a = X(i) sum=!b` a second statement begins."""
    start = end - 1
    while start >= 0 and tokens[start].type in ("RPAR", "RSQB"):
        start = openings.get(start, 0) - 1
    if start < 0 or tokens[start].type not in ("NAME", "DIGIT_NAME"):
        return False
    before = tokens[start - 1].type if start else "LBRACE"
    if before == "COMMA":  # of a value and its position
        return _is_head(tokens, start - 1, openings)
    return before in ("LBRACE", "RBRACE") or before in ENDS_EXPRESSION


def _operator(tokens: list[Token], diagnostics: list[Diagnostic]) -> Token:
    word, place = tokens[0], Span(tokens[0].start, tokens[-1].end)
    text, mark = (
        word.text.replace("_", "").lower(),
        "!" * any("!" in token.text or token.text == "==" for token in tokens),
    )
    known = WORD_OPERATORS.get(word.text) or WORD_OPERATORS.get(text) or WORD_OPERATORS.get(reducing(word.text) or "")
    instead = INSTEAD[word.text].help if word.text in INSTEAD else REDUCING.get(reducing(word.text) or "")
    plain, help = known or ("", instead)
    if text in ("min", "max", "+", "*"):
        plain, help = f"{text}={mark}", None
    elif not plain and help is None and (near := nearest(text, REDUCTIONS)) is not None:
        plain = f"{near}=!"
    written = word.text + "".join(" " * (one.end < other.start) + other.text for one, other in pairwise(tokens))
    fix = Fix(f"write `{plain}`", (Edit(place, plain),)) if plain else None
    if fix is None and help is None:
        help = f"a reducer has a definition, as in `reduce {word.text}(float a, float b) = a + b from 0`, here or in a cell above"
    message = f"there is no operator `{written}`"
    diagnostics.append(Diagnostic(codes.PYTHON_OPERATOR, place, message, help=help, fix=fix))
    return Token("UPDATE", plain or "+=!", place.start, place.end)
