"""The extents of the tensors that statements make, as far as texts of other libraries say them before ranges are inferred.

Worked example: behind `Y = 0`, which alone is a number, `Y[1:] = X[:-1]` says that `Y` has `1 + (X.0 - 1)` elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tc_jupyter.diagnostics import Edit, Fix, SourceText, Span

from .library_names import FUNCTION_WORDS
from .recovery import closers, split_commas
from .slices import LETTERS, Read, extent_of, is_slice, ranks_of, reads_of, selected, whole_arrays
from .sums import Sum, less, summed, text
from .tokens import Token, tokenize


@dataclass(slots=True)
class Made:
    """What is known of the tensors of a def.

    Attributes:
        extents: by name and dimension, as those of parameters are written.
        filled: of tensors that are written by slices, a statement and a fix of it: `Y = 0` before the slices gets indices, and
            before a first statement `Y[:-1] = X`, which leaves the last elements out, a statement writes all of them.
    """

    extents: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    filled: dict[str, tuple[int, Fix]] = field(default_factory=dict[str, tuple[int, Fix]])


def made(statements: Sequence[list[Token]], given: Mapping[tuple[str, int], str], used: frozenset[str]) -> Made:
    """What the first statement on each tensor says; one that writes a literal leaves it to the next one.

    Args:
        given: the extents of parameters, and those that the result list states.
        used: words that are no names for new indices.
    """
    found, numbers, decided = Made(), dict[str, int](), {name for name, _ in given}
    known = dict(given)
    last = {tokens[0].text: number for number, tokens in enumerate(statements) if tokens}
    for number, tokens in enumerate(statements):
        place = next((i for i, token in enumerate(tokens) if token.type in ("ASSIGN", "UPDATE")), 0)
        if not place or tokens[0].type != "NAME" or (name := tokens[0].text) in decided:
            continue
        if _is_literal(tokens[place + 1 :]) and (place == 1 or _is_whole(tokens, place)):
            numbers |= {name: number} if place == 1 else {}
            continue
        decided.add(name)
        if (allocation := allocated(tokens, known)) is not None:
            own = {(name, k): extent for k, extent in enumerate(allocation[0])}
            found.extents |= own
            known |= own
            continue
        where = next((i for i, token in enumerate(tokens) if token.type == "WHERE"), None)
        extents = _extents(tokens, place, known) if where is None else _stated(tokens, place, where)
        if extents is not None:
            own = {(name, k): extent for k, extent in enumerate(extents)}
            found.extents |= own
            known |= own
        if extents is not None and name in numbers and _has_slices(tokens, place):
            found.filled[name] = numbers[name], _filled(statements[numbers[name]], extents, used)
        elif extents is not None and _is_part(tokens, place, last[name] > number):
            found.filled[name] = number, _begun(tokens, extents, used)
    return found


ALLOCATING = {"zeros": "0.0", "ones": "1.0", "empty": "0.0", "full": None}
"""Functions that make arrays of given sizes, and what they hold; `full` is told."""


def filled(sizes: Sequence[str], names: Sequence[str], value: str) -> tuple[str, str]:
    """`(i, j)` and `0.0 where i in 0:N, j in 0:M`, which give all elements of an array a value."""
    ranges = ", ".join(f"{name} in 0:{size}" for name, size in zip(names, sizes, strict=False))
    return f"({', '.join(names[: len(sizes)])})", f"{value} where {ranges}"


def allocated(tokens: list[Token], known: Mapping[tuple[str, int], str]) -> tuple[list[str], str] | None:
    """The sizes in `Y = zeros((N, M))`, `Y = full(N, 0.5)` or `Y = zeros_like(X)`, and the value; `None` for something else."""
    if [token.type for token in tokens[:4]] != ["NAME", "ASSIGN", "NAME", "LPAR"] or closers(tokens).get(3) != len(
        tokens
    ) - 1:
        return None
    word, arguments = tokens[2].text, split_commas(tokens[4:-1])
    value = ALLOCATING.get(word.removesuffix("_like"))
    if word.removesuffix("_like") == "full" and len(arguments) == 2:
        value, arguments = _text(arguments[1]), arguments[:1]
    if word.removesuffix("_like") not in ALLOCATING or not value or not all(arguments):
        return None
    if word.endswith("_like"):
        source = arguments[0][0].text
        rank = ranks_of(arguments[0], known).get(source, 0)
        sizes = [f"{source}.{k}" for k in range(rank)] if len(arguments) == len(arguments[0]) == 1 else []
    else:
        inner = arguments[0]
        is_tuple = len(arguments) == 1 and inner[0].type in ("LPAR", "LSQB") and closers(inner).get(0) == len(inner) - 1
        parts = split_commas(inner[1:-1]) if is_tuple else arguments
        are_sizes = all(part and not {token.type for token in part} - _OF_SIZES for part in parts)
        sizes = [_text(part) for part in parts] if are_sizes else []
    return (sizes, value) if sizes and len(sizes) < len(LETTERS) else None


_OF_SIZES = frozenset({"NAME", "INTEGER", "DIMENSION", "SIGN", "MINUS", "FACTOR"})


def _text(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens).replace(" .", ".")


def _is_literal(tokens: list[Token]) -> bool:
    return [token.type for token in tokens if token.type != "MINUS"] in (["INTEGER"], ["NUMBER"])


def _is_whole(tokens: list[Token], place: int) -> bool:
    """Whether the target stands with slices alone, all of which are whole."""
    return closers(tokens).get(1) == place - 1 and all(
        token.type in ("COLON", "DOTS", "COMMA") for token in tokens[2 : place - 1]
    )


def _has_slices(tokens: list[Token], place: int) -> bool:
    return any(read.slices for read in reads_of(tokens) if read.opening < place)


def _is_part(tokens: list[Token], place: int, has_more: bool) -> bool:
    """Whether a slice of the target leaves elements out: at the end, as `Y[:-1]`, or before it, where more is written later."""
    slices = [each for read in reads_of(tokens) if read.opening < place for each in read.slices]
    ends_early = any([token.type for token in each[:2]] == ["COLON", "MINUS"] for each in slices)
    return ends_early or (has_more and any(each[0].type not in ("COLON", "DOTS") for each in slices))


def _stated(tokens: list[Token], place: int, where: int) -> list[str] | None:
    """The extents of a target whose indices have ranges from 0."""
    if tokens[place].type != "ASSIGN" or closers(tokens).get(1) != place - 1:
        return None
    ends = dict[str, str]()
    for clause in split_commas(tokens[where + 1 :]):
        if [token.type for token in clause[:4]] == ["NAME", "IN", "INTEGER", "COLON"] and clause[2].text == "0":
            ends[clause[0].text] = _text(clause[4:])
    names = [part[0].text if len(part) == 1 else "" for part in split_commas(tokens[2 : place - 1])]
    return [ends[name] for name in names] if names and ends.keys() >= {*names} else None


def _filled(tokens: list[Token], extents: list[str], used: frozenset[str]) -> Fix:
    """`Y = 0` with an index for each dimension, over all of it."""
    indices, ranges = _over(extents, used)
    first, last = tokens[0].end, tokens[-1].end
    return Fix("write indices", (Edit(Span(first, first), indices), Edit(Span(last, last), ranges)))


def _begun(tokens: list[Token], extents: list[str], used: frozenset[str]) -> Fix:
    """A statement before the first one that gives all elements a value."""
    indices, ranges = _over(extents, used)
    start = tokens[0].start
    return Fix("write all elements", (Edit(Span(start, start), f"{tokens[0].text}{indices} = 0{ranges}  "),))


def _over(extents: list[str], used: frozenset[str]) -> tuple[str, str]:
    names = [letter for letter in LETTERS if letter not in used][: len(extents)]
    ranges = ", ".join(f"{name} in 0:{extent}" for name, extent in zip(names, extents, strict=False))
    return f"({', '.join(names)})", f" where {ranges}"


def _extents(tokens: list[Token], place: int, known: Mapping[tuple[str, int], str]) -> list[str] | None:
    """The extents of the target; `None` where one of them is not seen."""
    if tokens[place].type != "ASSIGN" and not _has_slices(tokens, place):
        return None
    called = (tokens[i - 1] for i in closers(tokens) if i > place and tokens[i - 1].type == "NAME")
    ranks, reads = ranks_of(tokens, known), reads_of(tokens, known)
    if any(each.text not in ranks and each.text not in FUNCTION_WORDS for each in called):
        return None
    counts = _counts(tokens, place, reads, known)
    if place == 1:
        rank = max(counts, default=0)
        found = [counts.get(rank - k) for k in range(rank)]
    elif closers(tokens).get(1) == place - 1:
        target = next(read for read in reads if read.opening == 1)
        found = [_extent(target, k, counts, reads, (tokens, known)) for k in range(len(target.subscripts))]
    else:
        return None
    texts = [text(each) for each in found if each is not None]
    return texts if texts and len(texts) == len(found) else None


def _counts(
    tokens: list[Token], place: int, reads: list[Read], known: Mapping[tuple[str, int], str]
) -> dict[int, Sum | None]:
    """How many values stand along each axis behind `=`, counted from the last one, which is 1."""
    found = dict[int, Sum | None]()
    for token, rank in whole_arrays(tokens, place, known):
        found |= {rank - k: extent_of(known.get((token.text, k))) for k in range(rank)}
    for read in reads:
        for number, k in enumerate(reversed(read.places if read.opening > place else []), start=1):
            extent = {f"{tokens[read.opening - 1].text}.{read.dimension(k)}": 1}
            chosen = selected(read.subscripts[k], extent)
            count = None if chosen is None or chosen.count is None else summed(_tokens(chosen.count))
            found.setdefault(number, count)
    return found


def _tokens(written: str) -> list[Token]:
    return tokenize(SourceText(written)).tokens


def _extent(
    target: Read,
    place: int,
    counts: Mapping[int, Sum | None],
    reads: list[Read],
    known: tuple[list[Token], Mapping[tuple[str, int], str]],
) -> Sum | None:
    """The extent of a dimension of the target."""
    subscript = target.subscripts[place]
    if is_slice(subscript):
        count = counts.get(sum(each >= place for each in target.places))
        return None if count is None else _reached(subscript, count)
    if [token.type for token in subscript] != ["NAME"]:
        return None
    name, (tokens, extents) = subscript[0].text, known
    places = [(read, k, each) for read in reads if read is not target for k, each in enumerate(read.subscripts)]
    with_it = [(read, k, each) for read, k, each in places if any(token.text == name for token in each)]
    own = {extents.get((tokens[read.opening - 1].text, k)) for read, k, _ in with_it}
    is_alone = all(len(each) == 1 for _, _, each in with_it)
    return extent_of(next(iter(own))) if len(own) == 1 and is_alone and None not in own else None


def _reached(subscript: tuple[Token, ...], count: Sum) -> Sum | None:
    """The extent of a dimension of which a slice, `a:` or `a:-b`, has so many elements; `None` where it does not say it."""
    parts: list[list[Token]] = [[]]
    for token in subscript:
        parts = [*parts, []] if token.type == "COLON" else [*parts[:-1], [*parts[-1], token]]
    first, last, stride = (*parts, [], [])[:3]
    if [token.text for token in stride] == ["-", "1"] and not first and not last:
        return count
    begin = summed(first) if first else {}
    behind = summed(last[1:]) if last else {}
    if stride or begin is None or behind is None or (last and last[0].type != "MINUS"):
        return None
    if any(token.type == "MINUS" for token in first[:1]):
        return None
    return less(count, less({}, less(begin, less({}, behind))))
