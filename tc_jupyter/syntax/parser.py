"""Text -> tree, with every mistake in one go. The only file that knows lark.

A cell is cut into parameters, results and statements (`recovery.py`), each of which is parsed by itself with the LALR tables of
`tc.lark`. What the grammar refuses becomes a `Broken` statement and a message; everything else is still checked.

Worked example: `parse_tc(SourceText("def f(float(N) X) -> (Y) { Y(i) = X(i) }")).unit.defs[0].name.name` is `"f"`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, Label, SourceText, Span, codes

from .build import CHAIN, BadRange, Build
from .control import without_control
from .foreign import chained, commanded, declared, domain, ended, lets, paired, subscripted, where_range
from .imperative.message import of_other_languages
from .macros import without_macros
from .made import made
from .mended import in_place, mended, writes_over
from .mistakes import (
    annotated,
    is_free,
    meant,
    pointer,
    refused,
    size_alone,
    sized_result,
    split_types,
    suggested_sizes,
    typed_constant,
    unnamed,
    untyped,
    without_default,
)
from .nested_defs import before_others
from .order_ranges import order_with_range
from .recovery import (
    MAX_BRACKETS,
    BlockTokens,
    DefTokens,
    ReducerTokens,
    bracket_depth,
    closers,
    enclosed,
    extents,
    is_constant,
    split_body,
    split_commas,
    split_constants,
    split_defs,
    split_statements,
    starts_statement,
    without_elements,
    written,
)
from .repairs import repaired
from .slices import NEW_AXES, sliced
from .tokens import KEYWORDS, SEMICOLON, Token, is_own, tokenize
from .tree import (
    JOINING,
    Apply,
    Binary,
    Block,
    Broken,
    CallStatement,
    Clause,
    Comprehension,
    Constant,
    Def,
    DimensionBox,
    Expression,
    Filter,
    Name,
    Number,
    Param,
    Parsed,
    Reducer,
    Result,
    TcStatement,
    TypeName,
    Unit,
    Where,
    depth,
    ends,
    is_open,
    mapped,
    mapped_clause,
    names_in,
    walk,
)
from .tree import parts as parts_of
from .uses import INSTEAD, ONLY_USES, cut

MAX_DEPTH = 150
"""Levels of operators of one expression: a sum of 100 terms has 100, what its terms are made of comes on top."""
MAX_TOKENS = 20_000
"""Tokens of one statement."""
MOST_MESSAGES = 1000
"""Messages about one cell."""

_MOST_MENDED = 20
"""Messages of the grammar about one statement."""
_MENDED = (codes.SYNTAX_ERROR, codes.PYTHON_OPERATOR, codes.RANGE_BRACKETS, codes.UNKNOWN_CHARACTER, codes.BAD_NUMBER)
"""What a fix mends at its place; that of a reserved word, for one, renames only one of its uses."""

_NEAR = 20
"""Statements after a declaration in which its use is looked for."""

_SAC = 'a function of SaC stands in a `%%sac` cell or a file `.sac`; from Python: `tc.compile(text, language="sac")`'
_PATH = re.compile(r"\s*([^\s\"`]+\.(?:tc|sac))\s*")
_FUNCTION_OF_SAC = re.compile(
    r"(?:inline\s+)?[a-z]\w*(?:\[[^\[\]{}();]*\])?\s+\w+\s*\((?:[^(){}*]|\[\*\])*\)\s*\{[^{}]*\breturn\b"
)
_CONSTANT = "a constant is written `const float(3) C = [1, 2, 1]`, with literals only"
MOST_NESTED = 8
"""Blocks inside of each other."""
_BLOCK = "the statements of a block are done step by step, as in `along t in 1:T { h(t, b) = tanh(h(t-1, b)) }`"
_EXAMPLE = "a cell holds defs, as in `def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }`"


_REDUCER = "a reducer combines two numbers, as in `reduce total(float a, float b) = a + b from 0`"


def parse_tc(source: SourceText, reducers: Iterable[str] = ()) -> Parsed:
    """Parse a `%%tc` cell. Never raises, whatever the text is.

    Args:
        reducers: names of reducers of other cells.

    Returns:
        The defs that could be told apart and all diagnostics, in source order.
    """
    uses, source = cut(source, "tc")
    rest, others = of_other_languages(source.text)
    source = SourceText(rest, source.name) if others else source
    scanned = tokenize(source, reducers)
    parser = _CellParser(source, scanned.diagnostics)
    tokens = without_macros(scanned.tokens, scanned.comments, source, parser.diagnostics)
    tokens = before_others(repaired(tokens, parser.diagnostics), parser.diagnostics, source)
    before, pieces = split_defs(without_control(tokens, parser.diagnostics, source))
    if not pieces:
        parser.diagnostics.clear()  # what is wrong with a text of another language is not told word by word
    outside, listed = split_constants(before)
    if pieces or (not outside and all(map(is_constant, listed))):
        before = outside
    else:
        listed = []  # `const` of another language
    constants = [parser.constant(tokens) for tokens in listed]
    if before or not (pieces or others):
        parser.stray(before, has_defs=bool(pieces or others), uses=bool(uses))
    scanned_errors = sorted(item.span.start for item in parser.diagnostics if item.is_error)
    _join_semicolons(parser.diagnostics)
    parsed = (parser.definition(each) if isinstance(each, DefTokens) else parser.reducer(each) for each in pieces)
    defs = tuple(_with_errors(item, scanned_errors) for item in parsed)
    constants = tuple(each for each in (*constants, *parser.constants) if each is not None)
    unit = Unit(defs, Span(0, len(source.text)), constants, uses)
    return Parsed(
        unit, in_order((*others, *parser.diagnostics)), _allowed(scanned.allow, defs, source), scanned.comments
    )


def _join_semicolons(diagnostics: list[Diagnostic]) -> None:
    """Tell all `;` of a cell in one message."""
    found = [item for item in diagnostics if item.message == SEMICOLON]
    if len(found) < 2:
        return
    edits = tuple(edit for item in found if item.fix for edit in item.fix.edits)
    diagnostics[:] = [item for item in diagnostics if item.message != SEMICOLON]
    diagnostics.append(replace(found[0], fix=Fix("delete every `;`", edits)))


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics in source order, repeated ones once; after `MOST_MESSAGES` a last one says that there are more."""
    seen = dict.fromkeys(sorted(map(_with_sound_fix, diagnostics), key=lambda item: (item.span.start, item.span.end)))
    found = tuple(seen)
    if len(found) <= MOST_MESSAGES:
        return found
    more = f"{len(found) - MOST_MESSAGES} more messages are not listed"
    return (*found[:MOST_MESSAGES], Diagnostic(codes.SYNTAX_ERROR, found[MOST_MESSAGES].span, more))


def _with_sound_fix(item: Diagnostic) -> Diagnostic:
    """The message without a fix that writes two texts over one place, as of tokens which stand where another fix wrote them."""
    spans = sorted(edit.span for edit in item.fix.edits) if item.fix else []
    overlaps = any(one.end > other.start and other.end > other.start for one, other in pairwise(spans))
    return replace(item, fix=None) if overlaps else item


def _with_errors(item: Def, starts: list[int]) -> Def:
    """A def is broken, too, when a character or number in it is wrong, even where the repair was certain."""
    inside = bisect_left(starts, item.span.end) > bisect_left(starts, item.span.start)
    return replace(item, broken=True) if inside else item


@cache
def _lark() -> Any:
    from lark import Lark  # noqa: PLC0415  (slow: imported on the first parse)

    grammar = Path(__file__).with_name("tc.lark").read_text(encoding="utf-8")
    starts = ["param", "result", "statement", "head", "expr"]
    transformer: Any = Build()
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start=starts,
        keep_all_tokens=True,
        maybe_placeholders=True,
        transformer=transformer,
    )


def _parse(
    piece: list[Token],
    start: str,
    tensors: AbstractSet[str] = frozenset(),
    extents: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> tuple[Any, Diagnostic | None]:
    """The node of a piece, or `None` and what is wrong; both are `None` where a message was given already.

    Args:
        tensors: words among which are the names of tensors.
        extents: of those that have known ones, by name and dimension.
    """
    from lark import UnexpectedInput  # noqa: PLC0415

    machine: Any = _lark().parse_interactive(start=start)
    position = 0
    try:
        for position, token in enumerate(piece):  # noqa: B007  (the position of the refused token)
            machine.feed_token(token)
        position = len(piece)
        return machine.feed_eof(), None
    except UnexpectedInput:
        accepted = {"END" if kind == "$END" else kind for kind in machine.accepts()}
        what = {"param": "parameter", "expr": "value"}.get(start, start)
        return None, refused(piece, position, accepted, what, tensors, extents)


class _CellParser:
    """Collects the diagnostics of one cell."""

    def __init__(self, source: SourceText, diagnostics: list[Diagnostic]) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.told = {item.span.start: item for item in diagnostics}  # about characters, words and numbers
        self.written: list[str] = []  # by the statements of the def
        self.sizes: dict[str, list[str]] = {}  # of names that are read with brackets, where they have no type
        self.arrays = set[str]()  # names that are used as whole arrays
        self.declared = set[str]()  # the words in the header of the def
        self.given = set[str]()  # those before `->`
        self.tensors = set[str]()  # words among which are the names of tensors
        self.extents: dict[tuple[str, int], str] = {}  # of parameters, by name and dimension
        self.all_extents: dict[tuple[str, int], str] = {}  # of results, too
        self.bracketed = set[str]()  # names that are read or written with brackets
        self.filled = dict[str, Fix]()  # of statements `Y = 0` before slices of `Y`
        self.unwritten = set[str]()  # words among which are the results that no statement writes
        self.returns = False  # the def has a `return`
        self.told_before = 0  # messages before the present `reduce`
        self.after_params: Span | None = None  # where `->` and the results are missing
        self.constants: list[Constant | None] = []  # behind defs

    def report(
        self,
        code: codes.Code,
        span: Span,
        message: str,
        label: str = "",
        labels: tuple[Label, ...] = (),
        help: str | None = None,
        fix: Fix | None = None,
    ) -> None:
        self.diagnostics.append(Diagnostic(code, span, message, label, labels, help, fix))

    def stray(self, tokens: list[Token], has_defs: bool, uses: bool = False) -> None:
        """Tokens outside every def."""
        if not tokens:
            self.report(codes.NO_DEF, Span(0, 0), "the cell has no def", help=ONLY_USES if uses else _EXAMPLE)
        elif all(token.type == "ERROR" for token in tokens) and has_defs:
            return
        elif tokens[0].type == "RBRACE":
            fix = Fix("delete `}`", (Edit(tokens[0].span, ""),))
            self.report(codes.SYNTAX_ERROR, tokens[0].span, "`}` closes nothing", fix=fix)
        else:
            span = Span(tokens[0].start, tokens[-1].end)
            self.forget(span)
            message = "text outside a def" if has_defs else "the cell has no def"
            kinds = [token.type for token in tokens]
            is_def = not has_defs and kinds[:2] == ["NAME", "LPAR"] and "ARROW" in kinds
            place = Span(tokens[0].start, tokens[0].start)
            fix = Fix("write `def` before it", (Edit(place, "def "),)) if is_def else None
            help = _SAC if _FUNCTION_OF_SAC.match(self.source.text, span.start) else _EXAMPLE
            if path := _PATH.fullmatch(self.source.text):
                help = f'`tc.load("{path[1]}")` compiles a file'
            if tokens[0].text in ("use", "import", "include", "from"):
                in_python = "Python stands in a cell of its own; " if tokens[0].text in ("import", "from") else ""
                help = in_python + INSTEAD
            self.report(codes.NO_DEF, span, message, "only defs and comments may stand here", help=help, fix=fix)

    def definition(self, piece: DefTokens) -> Def:
        """One def, whatever is wrong with it."""
        count = len(self.diagnostics)
        piece = self.with_braces(piece)
        self.written = written(piece.body)
        self.declared = {token.text for token in piece.header}
        arrow = next((i for i, token in enumerate(piece.header) if token.type == "ARROW"), len(piece.header))
        self.given = {token.text for token in piece.header[:arrow]}
        self.tensors = self.declared | set(self.written)
        self.unwritten = self.declared - self.given - set(self.written)
        self.extents = extents(piece.header)
        self.all_extents = extents(piece.header[arrow + 1 :]) | self.extents
        self.bracketed = {one.text for one, other in pairwise(piece.body) if other.type in ("LPAR", "LSQB")}
        self.sizes = suggested_sizes(piece.body, self.declared)
        self.arrays = without_elements(piece.body)
        self.after_params = None
        self.returns = any(tokens[0].text == "return" for tokens in split_statements(piece.body))
        name, params, results = self.header(piece)
        if piece.opening is None and len(self.diagnostics) == count:
            place = piece.body[0].span if piece.body else _last(piece).span
            self.report(
                codes.SYNTAX_ERROR, place, "`{` is missing: the statements of a def stand in braces", help=_EXAMPLE
            )
        elif piece.opening is not None and piece.closing is None:
            labels = (Label(piece.opening.span, "opened here"),)
            last = (piece.body or [piece.opening])[-1]
            fix = Fix("insert `}`", (Edit(Span(last.end, last.end), " }"),))
            self.report(codes.SYNTAX_ERROR, last.span, "`}` is missing", "after this", labels, fix=fix)
        body, told = lets(split_body(piece.body), frozenset(self.extents.values()), self.declared)
        self.diagnostics += told
        pieces = self.with_indices(self.in_blocks(body))
        statements = tuple(
            self.within(self.statement(tokens, [later for later, _ in pieces[place + 1 : place + _NEAR]]), blocks)
            for place, (tokens, blocks) in enumerate(pieces)
        )
        rest, listed = split_constants(piece.rest)
        self.constants += [self.constant(tokens) for tokens in listed]
        if rest:
            self.stray(rest, has_defs=True)
        wrong = any(item.is_error for item in self.diagnostics[count:]) or any(
            isinstance(item, Broken) for item in statements
        )
        end = (piece.closing or _last(piece)).end
        header_end = piece.opening.end if piece.opening else (piece.header[-1] if piece.header else piece.word).end
        return Def(
            name, params, results, statements, wrong, Span(piece.word.start, end), Span(piece.word.start, header_end)
        )

    def with_indices(
        self, pieces: list[tuple[list[Token], tuple[Block, ...]]]
    ) -> list[tuple[list[Token], tuple[Block, ...]]]:
        """The statements of a body, with what slices of their targets need before them, which is in the fix of their message."""
        words = frozenset(token.text for tokens, _ in pieces for token in tokens) | self.declared
        alone = [[] if blocks else tokens for tokens, blocks in pieces]
        found = made(alone, self.all_extents, words)
        self.all_extents |= found.extents
        self.filled = {name: fix for name, (_, fix) in found.filled.items()}
        fixes = dict(found.filled.values())
        return [
            (part, blocks)
            for k, (tokens, blocks) in enumerate(pieces)
            for part in (split_statements(mended(tokens, fixes[k]) or tokens) if k in fixes else [tokens])
        ]

    def in_blocks(self, body: list[list[Token] | BlockTokens]) -> list[tuple[list[Token], tuple[Block, ...]]]:
        """The statements of a body, each with the blocks around it."""
        found: list[tuple[list[Token], tuple[Block, ...]]] = []
        waiting: list[tuple[list[Token] | BlockTokens, tuple[Block, ...]]] = [(each, ()) for each in reversed(body)]
        count, too_deep = 0, f"blocks are nested more than {MOST_NESTED} deep"
        while waiting:
            each, around = waiting.pop()
            if not isinstance(each, BlockTokens):
                found.append((each, around))
                continue
            alone = waiting[0][0] if len(waiting) == 1 else None
            only = alone if isinstance(alone, list) and each.opening is None and waiting[0][1] == around else None
            head = self.head(each, only)
            if (
                head is not None
                and len(around) == MOST_NESTED
                and all(item.message != too_deep for item in self.diagnostics)
            ):
                self.report(codes.DEVICE_LIMIT, head.span, too_deep, help="write the inner ones as other defs")
            elif head is not None and len(around) < MOST_NESTED:
                around = (*around, replace(head, number=count))
                count += 1
                waiting = waiting if only is None else [(only, around)]
            waiting += [(inner, around) for inner in reversed(each.body)]
        return found

    def head(self, piece: BlockTokens, only: list[Token] | None) -> Block | None:
        """The head of a block; `None` after a message. `only`: what stands behind it without braces, if that is one statement."""
        place, node = piece.head[0].span, None
        if self.fits(piece.head):
            node, problem = _parse(piece.head, "head")
            if problem is not None:
                self.diagnostics.append(replace(problem, fix=None))
        if node is not None and piece.opening is None:
            end = piece.head[-1].end
            fix = Fix("insert `{`", (Edit(Span(end, end), " {"),))
            if only is not None:
                closing = Edit(Span(only[-1].end, only[-1].end), " }")
                fix = Fix("insert `{` and `}`", (*fix.edits, closing))
            self.report(codes.SYNTAX_ERROR, place, "`{` is missing behind the head of a block", help=_BLOCK, fix=fix)
        elif node is not None and piece.closing is None and piece.opening is not None:
            labels = (Label(piece.opening.span, "opened here"),)
            self.report(codes.SYNTAX_ERROR, place, "the `}` of a block is missing", "", labels, help=_BLOCK)
        elif node is not None and not piece.body:
            self.report(codes.SYNTAX_ERROR, place, "the block has no statement", help=_BLOCK)
        return node

    def within(self, statement: TcStatement, blocks: tuple[Block, ...]) -> TcStatement:
        """A statement inside of blocks."""
        if not blocks or isinstance(statement, Broken | Constant):
            return statement
        if isinstance(statement, Comprehension):
            return replace(statement, blocks=blocks)
        if statement.count is None:
            *before, target = statement.targets
            call: Apply[Expression] = Apply(statement.callee, statement.arguments, statement.span)
            others = tuple((each, None) for each in before)
            return Comprehension(target, None, "=", call, span=statement.span, before=others, blocks=blocks)
        help = "write the statements of the def inside of the block"
        message = "a power of a def inside of a block is not part of this version"
        self.report(codes.UNSUPPORTED, statement.span, message, help=help)
        targets = tuple(name.name for name in statement.targets)
        names = names_in(statement.read) | set(targets)
        return Broken(targets, names, self.source.slice(statement.span), statement.span)

    def reducer(self, piece: ReducerTokens) -> Def:
        """One `reduce`, whatever is wrong with it, as the def of a function of numbers."""
        count = len(self.diagnostics)
        self.told_before = count
        tokens, place = piece.header, piece.word.span
        name = Name("", place)
        if tokens and tokens[0].type in ("NAME", "DIGIT_NAME"):
            name = Name(tokens[0].text, tokens[0].span)
        elif tokens and tokens[0].text in KEYWORDS:
            message = f"`{tokens[0].text}` is a word of the language and cannot be a name"
            self.report(codes.RESERVED_WORD, tokens[0].span, message, help=_REDUCER)
        else:
            self.report(codes.SYNTAX_ERROR, place, "the reducer has no name", "after this", help=_REDUCER)
        params = self.params_of_reducer(tokens, place)
        values = self.values_of(piece.value, "`=` and the combined value are missing", piece)
        identity = self.values_of(piece.identity, "`from` and the identity are missing", piece)
        given, lifted = self.given_names(piece), ()
        if piece.given or piece.lifted:
            lifted = self.values_of(piece.lifted, "`->` and the values behind it are missing", piece)
        half = len(params) // 2
        self.components_fit(piece, params, (values, "combined values"), (identity, "identities"), (lifted, "values"))
        wrong = any(item.is_error for item in self.diagnostics[count:])
        self.constants += [self.constant(each) for each in split_constants(piece.rest)[1]]
        results = tuple(_result_of(param, params) for param in params[:half])
        equals = piece.value[0].span if piece.value else place
        statements = tuple(
            Comprehension(result.name, None, "=", value, span=value.span, operator_span=equals)
            for result, value in zip(results, values, strict=False)
        )
        head = (tokens[-1] if tokens else piece.word).end
        spans = Span(piece.word.start, piece.end), Span(piece.word.start, head)
        return Def(name, params, results, statements, wrong, *spans, Reducer(identity, given, lifted))

    def params_of_reducer(self, tokens: list[Token], place: Span) -> tuple[Param, ...]:
        """The parameters, which are numbers: the components of the left operand, then those of the right one."""
        close = closers(tokens).get(1) if len(tokens) > 1 and tokens[1].type == "LPAR" else None
        if close is None:
            if tokens:
                self.report(codes.SYNTAX_ERROR, tokens[-1].span, "the parameters are missing", help=_REDUCER)
            return ()
        if close + 1 < len(tokens):
            after = tokens[close + 1]
            self.report(codes.SYNTAX_ERROR, after.span, f"unexpected `{after.text}`", help="expected `=`")
        params = self.params(tokens[2:close])
        for param in params:
            if param.type is not None and param.type.dimensions:
                help = "the operands of a reducer are numbers, as in `float a`"
                self.report(codes.BAD_REDUCER, param.span, f"`{param.name.name}` has dimensions", help=help)
        half = len(params) // 2
        if len(params) % 2 or not params:
            message = f"a reducer has as many parameters on the right as on the left, and here are {len(params)}"
            self.report(codes.BAD_REDUCER, place, message, help=_REDUCER)
        for left, right in zip(params[:half], params[half:], strict=False):
            if left.type is not None and right.type is not None and left.type.scalar != right.type.scalar:
                message = f"`{left.name.name}` and `{right.name.name}` are one component, and have different types"
                self.report(codes.BAD_REDUCER, right.span, message, labels=(Label(left.span, "the left operand"),))
        return params

    def values_of(self, tokens: list[Token], missing: str, piece: ReducerTokens) -> tuple[Expression, ...]:
        """The values behind `=`, `from` or `->`: one, or several in brackets; nothing after a message."""
        inner = tokens[1:]
        if not inner:
            whole = next(
                (part for part in (piece.given, piece.identity, piece.value, piece.header) if part), [piece.word]
            )
            if len(self.diagnostics) == self.told_before:
                self.report(codes.SYNTAX_ERROR, (tokens or whole)[-1].span, missing, "after this", help=_REDUCER)
            return ()
        if inner[0].type == "LPAR" and closers(inner).get(0) == len(inner) - 1:
            parts = split_commas(inner[1:-1])
            inner_parts = parts if len(parts) > 1 else [inner]
        else:
            inner_parts = [inner]
        found = [self.value_of(part, inner[0]) for part in inner_parts]
        return tuple(each for each in found if each is not None) if None not in found else ()

    def value_of(self, tokens: list[Token], around: Token) -> Expression | None:
        """One value; `None` after a message."""
        if not tokens:
            self.report(codes.SYNTAX_ERROR, around.span, "a value is missing beside a comma")
            return None
        if not self.fits(tokens):
            return None
        node, problem = _parse(tokens, "expr")
        if problem is not None:
            self.diagnostics.append(problem)
        if node is None:
            return None
        if (levels := depth(node)) > MAX_DEPTH:
            self.too_long(Span(node.span.start, node.span.start + 1), levels)
            return None
        return self.unchain(node) if has_chain(node) else node

    def given_names(self, piece: ReducerTokens) -> tuple[Name, ...]:
        """The names between `with` and `->`."""
        inner = piece.given[1:]
        if inner and inner[0].type == "LPAR" and closers(inner).get(0) == len(inner) - 1:
            inner = inner[1:-1]
        parts = split_commas(inner)
        if piece.given and not (parts and all(len(part) == 1 and part[0].type == "NAME" for part in parts)):
            help = "a value has a name there, as in `with x -> (x, 0, 1)`"
            self.report(
                codes.SYNTAX_ERROR, (inner or piece.given)[0].span, "names are expected after `with`", help=help
            )
            return ()
        return tuple(Name(part[0].text, part[0].span) for part in parts)

    def components_fit(
        self, piece: ReducerTokens, params: tuple[Param, ...], *found: tuple[tuple[Expression, ...], str]
    ) -> None:
        """TC248: as many values as components."""
        count = len(params) // 2
        for values, what in found:
            if values and params and len(values) != count:
                span = values[0].span | values[-1].span
                message = f"the reducer has {count} component{'s' * (count != 1)}, but {len(values)} {what}"
                self.report(codes.BAD_REDUCER, span, message, help=_REDUCER)

    def with_braces(self, piece: DefTokens) -> DefTokens:
        """`def f(...) -> (Y):` or `... end` and the statements between, as other languages have them, in braces after a message."""
        if piece.closing is not None or not piece.body:
            return piece
        found, colon, last = ended(piece.body), piece.body[0], piece.body[-1]
        has_colon = piece.opening is None and colon.type == "COLON"
        if found is None and not has_colon:
            return piece
        body, start = (found[0] if found else piece.body)[has_colon:], (piece.header or [piece.word])[-1].end
        after = Edit(Span(last.end, last.end), "\n}" if body and body[0].first else " }")
        edits = [found[1] if found else after]
        message, place, label = "`}` is missing", edits[0].span, ""
        if piece.opening is None:
            opens = Edit(colon.span if has_colon else Span(start, start), " {")
            edits, place, label = [opens, *edits], colon.span, "in place of `:`" if has_colon else ""
            message = "`{` is missing: the statements of a def stand in braces"
        fix = Fix("put them in braces" if piece.opening is None else "write `}`", tuple(edits))
        self.report(codes.SYNTAX_ERROR, place, message, label, fix=fix)
        opening = piece.opening or Token("LBRACE", "{", colon.start, colon.end if has_colon else colon.start)
        return replace(piece, opening=opening, body=body, closing=Token("RBRACE", "}", last.end, last.end))

    def header(self, piece: DefTokens) -> tuple[Name, tuple[Param, ...], tuple[Result, ...]]:
        """Name, parameters and results; what cannot be read is left out or has no type."""
        tokens = piece.header
        if tokens and tokens[0].type in ("NAME", "DIGIT_NAME"):
            name = Name(tokens[0].text, tokens[0].span)
        else:
            self.bad_def_name(piece)
            name = Name("", piece.word.span)
        arrow = next((i for i, token in enumerate(tokens) if token.type == "ARROW"), len(tokens))
        opening = next((i for i, token in enumerate(tokens[:2]) if token.type == "LPAR"), None)
        if opening is None:
            if name.name:
                self.report(
                    codes.SYNTAX_ERROR,
                    name.span,
                    f"the parameters of `{name.name}` are missing",
                    "after this",
                    help=_EXAMPLE,
                )
            names = [token for token in tokens[1:arrow] if token.type in ("NAME", "DIGIT_NAME")]
            params = tuple(Param(None, Name(token.text, token.span), token.span) for token in names)
            return name, params, self.results(tokens[arrow:]) if arrow < len(tokens) else ()
        close = closers(tokens).get(opening)
        if close is None or close > arrow:
            labels = (Label(tokens[opening].span, "opened here"),)
            self.report(codes.SYNTAX_ERROR, tokens[arrow - 1].span, "`)` is missing", "after this", labels)
            params = self.params(tokens[opening + 1 : arrow])
            return name, params, self.results(tokens[arrow:]) if arrow < len(tokens) else ()
        params, rest = self.params(tokens[opening + 1 : close]), tokens[close + 1 :]
        if not rest:
            return name, params, self.no_results(tokens[close], [param.name.name for param in params])
        return name, params, self.results(rest)

    def no_results(self, last: Token, params: list[str]) -> tuple[Result, ...]:
        """`def f(float(N) X) { Y(i) = X(i) }`: what the last statement writes is probably the result."""
        self.after_params = Span(last.end, last.end)
        found = [name for name in self.written if name not in params][-1:] or self.written[-1:]
        results = tuple(Result(Name(name, last.span), None, last.span) for name in found)
        if self.returns:
            return results  # about which there is a message
        fix = Fix(f"name the result `{found[0]}`", (Edit(self.after_params, f" -> ({found[0]})"),)) if found else None
        message = "`->` and the results are missing"
        self.report(codes.SYNTAX_ERROR, last.span, message, "after this", help=None if fix else _EXAMPLE, fix=fix)
        return results

    def bad_def_name(self, piece: DefTokens) -> None:
        token = piece.header[0] if piece.header else piece.word
        if token.type == "LPAR" or token is piece.word:
            token = piece.word
            self.report(codes.SYNTAX_ERROR, token.span, "the def has no name", "after this", help=_EXAMPLE)
        elif token.text.isidentifier():
            fix = Fix(f"rename it to `{token.text}_`", (Edit(token.span, token.text + "_"),))
            self.report(
                codes.RESERVED_WORD,
                token.span,
                f"`{token.text}` is a word of the language and cannot be a name",
                fix=fix,
            )
        elif token.type != "ERROR":
            self.report(
                codes.SYNTAX_ERROR, token.span, f"unexpected `{token.text}`", help="expected the name of the def"
            )

    def params(self, tokens: list[Token]) -> tuple[Param, ...]:
        pieces: list[list[Token]] = []
        for piece in split_commas(tokens):
            parts, told = split_types(piece)
            pieces += parts
            self.diagnostics += told
        found, before = list[Param](), list[Token]()
        for piece in pieces:
            param = self.param(piece, tokens, before)
            found += [] if param is None else [param]
            if len(piece) > 1:
                kinds = [token.type for token in (piece[0], piece[1], piece[-2], piece[-1])]
                is_plain = len(piece) == 2 or kinds[1:3] == ["LPAR", "RPAR"]
                before = piece if is_plain and (kinds[0], kinds[3]) == ("SCALAR", "NAME") else []
        return tuple(found)

    def param(self, piece: list[Token], around: list[Token], before: list[Token]) -> Param | None:
        """One parameter; `before` is the last one that has a type, if that is plain."""
        if not piece:
            comma = next((token for token in around if token.type == "COMMA"), around[0])
            last = around[-1].type == "COMMA"
            fix = Fix("delete `,`", (Edit(around[-1].span, ""),)) if last else None
            place = around[-1].span if last else comma.span
            self.report(codes.SYNTAX_ERROR, place, "a parameter is missing beside this comma", fix=fix)
            return None
        if not self.fits(piece):
            return None
        piece, default = without_default(piece)
        self.diagnostics += [] if default is None else [default]
        node, problem = _parse(piece, "param")
        if node is not None:
            return replace(node, type=self.whole_type(node.type))
        if (other := meant(piece)) is not None and (node := _parse(other[0], "param")[0]) is not None:
            self.diagnostics.append(other[1])
            return replace(node, type=self.whole_type(node.type))
        span = Span(piece[0].start, piece[-1].end)
        name = next((token for token in reversed(piece) if token.type in ("NAME", "DIGIT_NAME")), None)
        if (annotation := annotated(piece, self.sizes.get(piece[0].text, []))) is not None:
            self.forget(span)
            name, problem = piece[0], annotation
        elif (found := pointer(piece, self.sizes)) is not None:
            self.forget(span)  # `**` is no power there
            problem = found
        elif len(piece) == 1 and piece[0].type == "NAME" and piece[0].text in _sizes(around):
            self.diagnostics.append(size_alone(piece[0], around))
            return None
        elif len(piece) == 1 and piece[0].type == "NAME" and problem is not None and is_free(piece[0].text):
            problem = untyped(piece[0], self.sizes.get(piece[0].text, []), before, self.bracketed)
            if piece[0].text in self.arrays and piece[0].text not in self.sizes and not before:
                problem = replace(problem, help=_OF_DIMENSIONS.format(piece[0].text), fix=None)
        if problem is not None:
            self.diagnostics.append(problem)
            after = mended(piece, problem.fix) if problem.fix is not None else None
            if after is not None and (node := _parse(after, "param")[0]) is not None:
                return replace(node, type=self.whole_type(node.type))
        return Param(None, Name(name.text, name.span), span) if name else None

    def whole_type(self, type_: TypeName | None) -> TypeName | None:
        """A type whose dimensions can be walked, without chains of comparisons; `None` after a message."""
        if type_ is None:
            return None
        every = [end for each in type_.dimensions for end in ends(each)]
        if (deep := next((end for end in every if depth(end) > MAX_DEPTH), None)) is not None:
            self.too_long(Span(deep.span.start, deep.span.start + 1), depth(deep))
            return None
        if not any(has_chain(end) for end in every):
            return type_
        dimensions = (
            replace(each, lower=self.unchain(each.lower), upper=self.unchain(each.upper))
            if isinstance(each, DimensionBox)
            else self.unchain(each)
            for each in type_.dimensions
        )
        return replace(type_, dimensions=tuple(dimensions))

    def forget(self, span: Span) -> None:
        """Leave out what was told of a place, about which there is a better message."""
        self.diagnostics[:] = [each for each in self.diagnostics if not span.start <= each.span.start < span.end]

    def results(self, tokens: list[Token]) -> tuple[Result, ...]:
        if tokens[0].type != "ARROW":
            if not any(token.type == "ERROR" for token in tokens):
                self.report(
                    codes.SYNTAX_ERROR,
                    tokens[0].span,
                    f"unexpected `{tokens[0].text}`",
                    help="expected `->` and the results",
                )
            return ()
        inner = tokens[1:]
        if not inner:
            self.report(codes.SYNTAX_ERROR, tokens[0].span, "no result stands after `->`", help=_EXAMPLE)
            return ()
        if inner[0].type == "LPAR":
            inner = self.bracketed_results(inner)
        elif len(split_commas(inner)) > 1:
            span = Span(inner[0].start, inner[-1].end)
            fix = Fix(
                "put the results in parentheses",
                (Edit(Span(span.start, span.start), "("), Edit(Span(span.end, span.end), ")")),
            )
            self.report(codes.RESULT_PARENTHESES, span, "several results need parentheses", fix=fix)
        return tuple(result for piece in split_commas(inner) if (result := self.result(piece, tokens)) is not None)

    def bracketed_results(self, tokens: list[Token]) -> list[Token]:
        close = closers(tokens).get(0)
        if close is None:
            self.report(
                codes.SYNTAX_ERROR,
                tokens[-1].span,
                "`)` is missing",
                "after this",
                (Label(tokens[0].span, "opened here"),),
            )
            return tokens[1:]
        if close + 1 < len(tokens):
            after = tokens[close + 1]
            fix = (
                Fix("delete it", (Edit(after.span, ""),))
                if after.type == "COLON" and len(tokens) == close + 2
                else None
            )
            message = f"unexpected `{after.text}`"
            self.report(codes.SYNTAX_ERROR, after.span, message, help="expected `{` after the results", fix=fix)
        return tokens[1:close]

    def result(self, piece: list[Token], around: list[Token]) -> Result | None:
        if not piece:
            self.report(codes.SYNTAX_ERROR, around[0].span, "a result is missing beside a comma")
            return None
        if not self.fits(piece):
            return None
        node, problem = _parse(piece, "result")
        name = piece[-1].text
        if name not in self.written and (other := unnamed(piece, next(reversed(self.written), None))) is not None:
            self.forget(other[1].span)
            node = _parse(other[0], "result")[0] if other[0] else None
            problem = other[1]
        elif problem is not None and (other := meant(piece) or sized_result(piece)) is not None:
            node, _ = _parse(other[0], "result")
            problem = problem if node is None else other[1]
        if problem is not None:
            self.diagnostics.append(problem)
        return node if node is None else replace(node, type=self.whole_type(node.type))

    def constant(self, tokens: list[Token]) -> Constant | None:
        """`const float(3) C = [1, 2, 1]`; `None` after a message."""
        if not self.fits(tokens) or any(token.type == "ERROR" for token in tokens):
            return None
        if (other := typed_constant(tokens)) is not None:
            self.diagnostics.append(replace(other[1], help=_CONSTANT))
            tokens = other[0]
        node, problem = _parse(tokens, "statement")
        if problem is not None:
            self.diagnostics.append(replace(problem, help=_CONSTANT))
        return node if isinstance(node, Constant) else None

    def statement(self, tokens: list[Token], later: list[list[Token]]) -> TcStatement:
        if not self.fits(tokens):
            return self.broken(tokens)
        if tokens[0].type == "CONST" and is_constant(tokens):
            return self.constant(tokens) or self.broken(tokens)
        if (problem := domain(tokens, later)) is not None:
            self.diagnostics.append(problem)
            return self.broken(tokens)
        if (problem := commanded(tokens)) is not None:
            if any(token.type == "ERROR" for token in tokens):
                self.forget(problem.span)
            self.diagnostics.append(problem)
            return self.broken([tokens[0]])
        if tokens[0].text == "return" and (len(tokens) == 1 or tokens[1].type not in ("ASSIGN", "UPDATE")):
            self.returned(tokens)
            return self.broken(tokens)
        if len(tokens) == 1 and tokens[0].text in ("pass", "...", "end"):
            help = "a statement is `T(i, j) = expression`"
            self.report(codes.SYNTAX_ERROR, tokens[0].span, f"`{tokens[0].text}` is no statement", help=help)
            return self.broken(tokens)
        if (found := chained(tokens, self.given) or paired(tokens)) is not None:
            self.diagnostics.append(found[1])
            return replace(self.broken(tokens), targets=found[0])
        if (problem := subscripted(tokens, self.unwritten, self.declared)) is not None:
            self.diagnostics.append(problem)
            tokens = (problem.fix and mended(tokens, problem.fix)) or tokens
        if (other := declared(tokens)) is not None:
            self.diagnostics.append(other[1])
            if not other[0]:
                assigned = (
                    one.text for one, after in pairwise(tokens) if one.type == "NAME" and after.type == "ASSIGN"
                )
                return _declaration(replace(self.broken(tokens), targets=tuple(assigned)))
            tokens = other[0]
        brace = next((number for number, token in enumerate(tokens) if token.type == "LBRACE"), None)
        if brace is not None and tokens[0].text == "along" and tokens[0].type == "NAME":
            head = Span(tokens[0].start, tokens[brace].end)
            self.report(codes.SYNTAX_ERROR, head, "this is no head of a block: `along t in a:b {` is one", help=_BLOCK)
            names = (token.text for token in tokens[brace:] if token.type == "NAME")
            return replace(self.broken(tokens), targets=tuple(names))
        node, tokens = self.read(tokens)
        if node is None:
            return self.broken(tokens)
        if any(token.type == "ERROR" for token in tokens):
            return self.broken(tokens)
        return self.of_call(node, tokens) if isinstance(node, CallStatement) else self.finish(node, tokens)

    def read(self, tokens: list[Token]) -> tuple[Any, list[Token]]:
        """The node of a statement, and its tokens; after a message whose fix is known, those that the fix makes of them."""
        given, written, regions = tokens, tuple[Edit, ...](), list[Edit]()
        for _ in range(_MOST_MENDED):
            if (problem := self.of_character(tokens)) is None:
                node, problem = None, order_with_range(tokens) or sliced(tokens, self.tensors, self.all_extents)
                if problem is None:
                    node, problem = _parse(tokens, "statement", self.tensors, self.all_extents)
                if problem is None and any(token.stood for token in tokens):
                    return _parse(in_place(tokens), "statement", self.tensors, self.all_extents)[0], tokens
                if problem is None:
                    return node, tokens
                if tokens is not given and len(split_statements(tokens)) > 1:
                    break  # the fix makes several statements, which are not those of the text
                if any(edit.span == problem.span for edit in written):  # of what a fix has written
                    self.diagnostics[-1] = replace(self.diagnostics[-1], fix=None)
                    break
                if problem.fix is not None and writes_over(problem.fix, regions):
                    problem = replace(problem, fix=None)  # there is one after the other fix
                self.diagnostics.append(self.with_filled(problem, tokens[0].text))
            after = mended(tokens, problem.fix) if problem.fix is not None and problem.code in _MENDED else None
            if after is None:
                break
            tokens, written = after, problem.fix.edits if problem.fix else ()
            regions += written
        return None, tokens

    def with_filled(self, problem: Diagnostic, target: str) -> Diagnostic:
        """The message about slices of a target, with the indices that `Y = 0` before them needs."""
        if target not in self.filled or problem.fix is None:
            return problem
        fix = self.filled.pop(target)
        return replace(problem, fix=replace(problem.fix, edits=(*fix.edits, *problem.fix.edits)))

    def of_character(self, tokens: list[Token]) -> Diagnostic | None:
        """The message about the first character of a statement that stands for nothing, if it has a fix."""
        first = next((token for token in tokens if token.type == "ERROR"), None)
        found = None if first is None else self.told.get(first.start)
        return found if found is not None and found.fix is not None else None

    def returned(self, tokens: list[Token]) -> None:
        """`return Y` and `return X(i) * 2`."""
        edits: list[Edit] = []
        names = [token.text for token in tokens[1:] if token.type in ("NAME", "DIGIT_NAME")]
        only_names = all(token.type in ("NAME", "DIGIT_NAME", "COMMA", "LPAR", "RPAR") for token in tokens[1:])
        nothing = [token.type for token in tokens[1:]] in ([], ["INTEGER"])
        if nothing or (names and only_names and set(names) <= set(self.written)):
            edits = [Edit(Span(tokens[0].start, tokens[-1].end), "")]
        elif (left := _left_side(tokens[1:], self.given)) is not None and not self.written:
            result = next(name for name in ("Y", "Z", "result", "result_") if name not in self.declared)
            names, edits = [result], [Edit(tokens[0].span, f"{result}{left} =")]
        if edits and names and self.after_params is not None:
            edits.append(Edit(self.after_params, f" -> ({', '.join(names)})"))
        title = "leave it out" if self.after_params is None else "name the result after `->`"
        fix = Fix(title, tuple(edits)) if edits and (nothing or only_names or self.after_params) else None
        help = "a result is named after `->`, and a statement writes it, as in `-> (Y) { Y(i) = X(i) }`"
        self.report(codes.SYNTAX_ERROR, tokens[0].span, "there is no `return`", help=help, fix=fix)

    def fits(self, tokens: list[Token]) -> bool:
        """Whether a piece is small enough to be parsed and walked."""
        if bracket_depth(tokens) > MAX_BRACKETS:
            help = (
                f"the limit is {MAX_BRACKETS} brackets; split the expression with lets (`where v = ...`) or temporaries"
            )
            span = Span(tokens[0].start, tokens[0].end)
            self.report(codes.SYNTAX_ERROR, span, "the expression is nested too deeply", help=help)
            return False
        if len(tokens) > MAX_TOKENS:
            message = f"the statement has {len(tokens)} words and symbols; the limit is {MAX_TOKENS}"
            self.report(codes.DEVICE_LIMIT, tokens[0].span, message, help="split it into several statements")
            return False
        return True

    def too_long(self, span: Span, levels: int) -> None:
        """More operators in a row than later stages can walk: `a + b + c` is a sum inside a sum."""
        message = f"the expression has {levels} levels of operators; the limit is {MAX_DEPTH}"
        help = (
            "in `a + b + c` every operator is a level: write a part as a temporary, "
            "or what repeats as a reduction, as in `Y(i) +=! X(i + k) where k in 0:200`"
        )
        self.report(codes.DEVICE_LIMIT, span, message, help=help)

    def broken(self, tokens: list[Token]) -> Broken:
        targets: list[str] = []
        pairs = closers(tokens)
        assigned = any(token.type in ("ASSIGN", "UPDATE", "ERROR") for token in tokens) or starts_statement(
            tokens, 0, pairs
        )
        for i, token in enumerate(tokens if assigned else []):
            if token.type in ("ASSIGN", "UPDATE", "LPAR", "LSQB"):
                break
            if token.type in ("NAME", "DIGIT_NAME") and (i == 0 or tokens[i - 1].type == "COMMA"):
                targets.append(token.text)
        names = frozenset(token.text for token in tokens if token.type in ("NAME", "DIGIT_NAME"))
        span = Span(tokens[0].start, tokens[-1].end)
        return Broken(tuple(targets), names, self.source.slice(span), span)

    def finish(self, node: Comprehension, tokens: list[Token]) -> TcStatement:
        """Tell what the grammar accepts only to give a better message, and put what was meant in its place."""
        clauses: list[Clause] = []
        for clause in node.clauses:
            if isinstance(clause, BadRange):
                self.bad_range(clause)
                clause = clause.where
            elif isinstance(clause, Filter):
                clause = self.chained_range(clause, tokens) or clause
            clauses.append(clause)
        node = replace(node, clauses=tuple(clauses))
        if node.rest and not is_own(node.operator):
            message = f"`{node.operator}` takes one value"
            help = "write one statement for each; a reducer (`reduce`) may combine several values together"
            self.report(codes.SYNTAX_ERROR, node.rest[0].span, message, help=help)
            node = replace(node, rest=())
        parts = _expressions(node)
        if self.too_deep(parts):
            return self.broken(tokens)
        if any(map(has_chain, parts)):
            return self.broken_chain(node)
        return node

    def of_call(self, node: CallStatement, tokens: list[Token]) -> TcStatement:
        """What `finish` does, for a call with several targets."""
        if self.too_deep(node.arguments):
            return self.broken(tokens)
        return replace(
            node, arguments=tuple(self.unchain(each) if has_chain(each) else each for each in node.arguments)
        )

    def too_deep(self, parts: Iterable[Expression]) -> bool:
        """Whether one of the expressions has too many levels, which a message says."""
        part, levels = next(((part, levels) for part in parts if (levels := depth(part)) > MAX_DEPTH), (None, 0))
        if part is not None:
            self.too_long(Span(part.span.start, part.span.start + 1), levels)
        return part is not None

    def bad_range(self, bad: BadRange) -> None:
        where = bad.where
        upper = self.source.slice(where.upper.span) + ("+1" if bad.inclusive else "")
        text = f"{where.index.name} in {self.source.slice(where.lower.span)}:{upper}"
        help = "a range includes its lower and excludes its upper end" if bad.inclusive or bad.dotted else None
        fix = Fix(f"write `{text}`", (Edit(where.span, text),))
        self.report(
            codes.RANGE_BRACKETS, where.span, "a range is written `k in a:b` or `k = [a, b[`", help=help, fix=fix
        )

    def chained_range(self, clause: Filter, tokens: list[Token]) -> Where | None:
        """`0 <= k < 3` as the range that is meant, after a message about it; `None` if this is something else."""
        chain = clause.condition
        if not isinstance(chain, Binary) or not chain.op.startswith(CHAIN) or not isinstance(chain.left, Binary):
            return None
        index, first = chain.left.right, chain.left
        if not isinstance(index, Name) or {first.op, chain.op.removeprefix(CHAIN)} - {"<", "<="}:
            return None
        place = next(number for number, token in enumerate(tokens) if token.start >= index.span.start)
        found = where_range(tokens, place)
        if found is None:
            return None
        self.diagnostics.append(found)
        one = Number("1", 1)
        lower = first.left if first.op == "<=" else Binary("+", first.left, one, first.left.span)
        upper = chain.right if chain.op.endswith("<") else Binary("+", chain.right, one, chain.right.span)
        return Where(index, lower, upper, clause.span)

    def broken_chain(self, node: Comprehension) -> Comprehension:
        """Report every chain and read `a < b < c` as `a < b && b < c`."""
        fixed = (mapped_clause(clause, self.unchain) for clause in node.clauses)
        indices = None if node.indices is None else tuple(map(self.unchain, node.indices))
        at = None if node.at is None else self.unchain(node.at)
        return replace(node, value=self.unchain(node.value), indices=indices, clauses=tuple(fixed), at=at)

    def unchain(self, node: Expression) -> Expression:
        match node:
            case Binary() if node.op.startswith(CHAIN):
                left = node.left
                while isinstance(left, Binary) and left.op.startswith(CHAIN):
                    left = left.left
                assert isinstance(left, Binary)
                if (conditions := _conditions(node)) is not None:
                    return self.tighter(node, conditions)
                text = " && ".join(self.links(node))
                fix = Fix(f"write `{text}`", (Edit(node.span, text),)) if len(text) < 200 else None
                self.report(
                    codes.CHAINED_COMPARISON,
                    node.span,
                    "comparisons do not chain",
                    help="combine two of them with `&&`",
                    fix=fix,
                )
                return self.joined(node)
            case _:
                return mapped(node, self.unchain)

    def tighter(self, node: Binary[Expression], conditions: list[Binary[Expression]]) -> Expression:
        """Report `a > 0 & b > 0`, and read it as `a > 0 && b > 0`."""
        op = conditions[0].op
        text, start = "", node.span.start
        for each in conditions:
            text += self.source.slice(Span(start, each.op_span.start)) + JOINING[each.op]
            start = each.op_span.end
        text += self.source.slice(Span(start, node.span.end))
        fix = Fix(f"write `{text}`", tuple(Edit(each.op_span, JOINING[each.op]) for each in conditions))
        message = f"comparisons do not chain, and `{op}` binds tighter than they do"
        help = f"conditions are joined with `{JOINING[op]}`"
        self.report(codes.CHAINED_COMPARISON, node.span, message, help=help, fix=fix)
        first, *others = _comparisons(node)
        groups = [first]
        for each, joining in zip(others, conditions, strict=True):
            if joining.op == "&":
                groups[-1] = Binary("&&", groups[-1], each, groups[-1].span | each.span, joining.op_span)
            else:
                groups.append(each)
        whole = groups[0]
        for each in groups[1:]:
            whole = Binary("||", whole, each, whole.span | each.span, each.op_span)
        return self.unchain(whole)

    def links(self, node: Binary[Expression]) -> list[str]:
        """The comparisons of a chain, as texts."""
        op = node.op.removeprefix(CHAIN)
        right = self.source.slice(node.right.span)
        if not node.op.startswith(CHAIN):
            return [f"{self.source.slice(node.left.span)} {op} {right}"]
        assert isinstance(node.left, Binary)
        return [*self.links(node.left), f"{self.source.slice(node.left.right.span)} {op} {right}"]

    def joined(self, node: Binary[Expression]) -> Expression:
        if not node.op.startswith(CHAIN):
            return mapped(node, self.unchain)
        assert isinstance(node.left, Binary)
        middle, right = self.unchain(node.left.right), self.unchain(node.right)
        last = Binary(node.op.removeprefix(CHAIN), middle, right, middle.span | right.span, node.op_span)
        return Binary("&&", self.joined(node.left), last, node.span, node.op_span)


def _declaration(node: Broken) -> Broken:
    """A declaration: one without a value, as `float t`, reads nothing."""
    return node if node.targets else replace(node, names=frozenset())


def has_chain(node: Expression) -> bool:
    """Whether there is `a < b < c` in an expression."""
    return any(isinstance(item, Binary) and item.op.startswith(CHAIN) for item in walk(node))


def _result_of(param: Param, params: tuple[Param, ...]) -> Result:
    """The result for a component of a reducer: `a_` for `a`."""
    taken = {each.name.name for each in params}
    name = param.name.name + "_"
    while name in taken:
        name += "_"
    return Result(Name(name, param.name.span), param.type, param.span)


def _conditions(node: Binary[Expression]) -> list[Binary[Expression]] | None:
    """The `0 & b` between the comparisons of the chain `a > 0 & b > 0`; `None` if other things stand there."""
    found: list[Binary[Expression]] = []
    while node.op.startswith(CHAIN):
        assert isinstance(node.left, Binary)
        node = node.left
        middle = node.right
        if not isinstance(middle, Binary) or middle.op not in JOINING or not is_open(middle):
            return None
        found.append(middle)
    return found[::-1]


def _comparisons(node: Binary[Expression]) -> list[Binary[Expression]]:
    """`a > 0` and `b > 0` of the chain `a > 0 & b > 0`."""
    op = node.op.removeprefix(CHAIN)
    if not node.op.startswith(CHAIN):
        return [node]
    assert isinstance(node.left, Binary)
    *before, last = _comparisons(node.left)
    middle = last.right
    assert isinstance(middle, Binary)
    last = replace(last, right=middle.left, span=last.left.span | middle.left.span)
    return [*before, last, Binary(op, middle.right, node.right, middle.right.span | node.right.span, node.op_span)]


def _last(piece: DefTokens) -> Token:
    """The last token of a def, or of its header when the body is empty."""
    return (piece.body or piece.header or [piece.word])[-1]


def _sizes(tokens: list[Token]) -> set[str]:
    """The names in the brackets behind types."""
    pairs = closers(tokens)
    opened = [i for i in pairs if i and tokens[i - 1].type == "SCALAR"]
    return {token.text for i in opened for token in tokens[i : pairs[i]] if token.type == "NAME"}


_OF_DIMENSIONS = "a parameter has a type with a size for each of its dimensions, as in `float(N, M) {}`"


def _left_side(value: list[Token], given: set[str]) -> str | None:
    """The indices of the result whose elements have this value: none, or the one that it has; `None` if that is not certain.

    Args:
        given: words among which are the parameters, which are no indices.
    """
    inside_brackets = enclosed(closers(value))
    if any(value[i].type == "COLON" or value[i].text in NEW_AXES for i in inside_brackets):
        return None  # the result has axes that no index names
    inside = [
        token.text
        for i, token in enumerate(value)
        if token.type == "NAME" and i in inside_brackets and not (i + 1 < len(value) and value[i + 1].type == "LPAR")
    ]
    found = [name for name in dict.fromkeys(inside) if name not in given]
    if len(found) > 1 or not value:
        return None
    return f"({found[0]})" if found else ""


def _expressions(node: Comprehension) -> list[Expression]:
    parts: list[Expression] = [node.value, *node.rest, *(node.indices or ())]
    parts += [] if node.at is None else [node.at]
    parts += [index for _, indices in node.before for index in indices or ()]
    if node.matched is not None:
        parts += node.matched.arguments
    return [*parts, *(part for clause in node.clauses for part in parts_of(clause))]


def _allowed(
    comments: tuple[tuple[str, int], ...], defs: tuple[Def, ...], source: SourceText
) -> tuple[tuple[str, Span], ...]:
    """The statement or def on whose line each comment stands."""
    if not comments:
        return ()
    places: dict[int, Span] = {}
    for item in defs:
        for statement in item.statements:
            first, last = source.position(statement.span.start)[0], source.position(statement.span.end)[0]
            places |= {line: statement.span for line in range(first, last + 1)}
        first, last = source.position(item.signature_span.start)[0], source.position(item.signature_span.end)[0]
        places |= {line: item.span for line in range(first, last + 1)}
    found = ((code, places.get(source.position(offset)[0])) for code, offset in comments)
    return tuple((code, span) for code, span in found if span is not None)
