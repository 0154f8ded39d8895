"""Slices of array libraries: `X(i, :)`, `X(i, *)`, `X[1:] - X[:-1]`, `X[:, None]`, `X(i, ...)`.

Worked example: `Y(i) = X[i, :]` is told once, and the fix writes `Y(i, j) = X(i, j)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

from tc_jupyter.diagnostics import Diagnostic, Edit, Fix, SourceText, Span, codes

from .axes import Axis, axis_of, combines
from .library_names import FUNCTION_WORDS, OPERATORS, REDUCED, reducing
from .recovery import MAX_BRACKETS, closers, enclosed, split_commas
from .sums import Sum, divided, less, summed, text
from .tokens import Token, tokenize

_OPENING, _CLOSING = ("LPAR", "LSQB"), ("RPAR", "RSQB")
LETTERS = "ijklmnopqrstuvw"
"""Names for new indices."""
_NO_EXTENTS: Mapping[tuple[str, int], str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Read:
    """`X(a, b:c)`: the places of its brackets, and the tokens of each subscript.

    Several that stand at one place are those that `...` stands for; at a place without width, those that NumPy adds to `X[i]`.

    Attributes:
        chosen: the subscript that is an array of places, as in `X[:, J]`, which is an axis as a slice is.
        is_unclear: arrays of places stand in it whose axes are not known.
    """

    opening: int
    closing: int
    subscripts: tuple[tuple[Token, ...], ...]
    chosen: int | None = None
    is_unclear: bool = False

    @property
    def slices(self) -> list[tuple[Token, ...]]:
        """The subscripts that are slices."""
        return [each for each in self.subscripts if is_slice(each)]

    @property
    def axes(self) -> list[tuple[Token, ...]]:
        """The slices, an array of places, and each `None`, which makes an axis of extent 1."""
        return [self.subscripts[k] for k in self.places]

    @property
    def places(self) -> list[int]:
        """Which of the subscripts are `axes`."""
        return [k for k, each in enumerate(self.subscripts) if is_slice(each) or _is_new_axis(each) or k == self.chosen]

    @property
    def has_axes(self) -> bool:
        """Whether there are slices or an array of places."""
        return bool(self.slices) or self.chosen is not None

    def dimension(self, place: int) -> int:
        """The dimension of the tensor that a subscript is of."""
        return sum(not _is_new_axis(each) for each in self.subscripts[:place])


def sliced(
    piece: list[Token], known: AbstractSet[str] = frozenset(), extents: Mapping[tuple[str, int], str] = _NO_EXTENTS
) -> Diagnostic | None:
    """The message about the slices of a statement; `None` if it has none, or another mistake was told already.

    Args:
        known: words among which are the names of tensors and sizes.
        extents: of parameters, by name and dimension.
    """
    maybe = any(token.type in ("COLON", "DOTS", "LSQB") or token.text in NEW_AXES for token in piece)
    maybe = maybe or any(one.text == "*" and other.type in ("COMMA", *_CLOSING) for one, other in pairwise(piece))
    if not maybe or any(token.type == "ERROR" for token in piece):
        return None
    reads = [read for read in reads_of(piece, extents) if read.slices or (read.axes and _is_element(piece, read))]
    if not reads:
        return None
    if (comma := next((found for read in reads if (found := _beside_nothing(piece, read))), None)) is not None:
        message, help = "something is missing beside `,`", "write `:` or an index"
        return Diagnostic(codes.SYNTAX_ERROR, comma.span, message, help=help)
    first = next(
        (each for read in reads for each in read.axes if read.chosen is None or is_slice(each)), reads[0].axes[0]
    )
    place = Span(first[0].start, first[-1].end)
    if any(read.chosen is not None or read.is_unclear for read in reads):
        place = Span(piece[reads[0].opening - 1].start, piece[reads[0].closing].end)
        message, help = (
            "all indices of a tensor are written",
            "places are read by an index of their own, as in `X(i, J(j))`",
        )
        edits = _edits(piece, reads, known, extents)
        fix = Fix("write indices", tuple(edits)) if edits else None
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)
    if all(each[0].start == each[0].end for read in reads for each in read.axes):
        read = reads[0]
        place, message = (
            Span(piece[read.opening - 1].start, piece[read.closing].end),
            "all indices of a tensor are written",
        )
        given = sum(each[0].start < each[0].end for each in read.subscripts)
        help = (
            f"`{piece[read.opening - 1].text}` has {len(read.subscripts)} dimensions, and {given} of them an index here"
        )
        edits = _edits(piece, reads, known, extents)
        fix = Fix("write indices", tuple(edits)) if edits else None
        return Diagnostic(codes.SYNTAX_ERROR, place, message, help=help, fix=fix)
    if any(each[0].text == "lambda" for read in reads for each in read.slices):
        help = "say what one element is, as in `Y(i) = 2 * X(i)`; a function with a name is a def"
        return Diagnostic(codes.SYNTAX_ERROR, place, "there are no functions without a name", help=help)
    if any(token.type == "DOTS" for read in reads for each in read.slices for token in each):
        help = "write one index per dimension, as in `X(i, j)`"
        return Diagnostic(codes.SYNTAX_ERROR, place, "`...` stands for no indices", help=help)
    help = f"an index runs over everything it can index: write one for `{first[0].text}`, as in `X(i, j)`"
    if any(len(each) > 1 for read in reads for each in read.slices):
        help = "shift the index, as in `X(i + 1)`; where it runs over less, give its range: `where i in a:b`"
    if any([token.type for token in each].count("COLON") == 2 for read in reads for each in read.slices):
        help = "a step multiplies the index, as in `X(2*i)`; backwards it is `X(N - 1 - i)`"
    if any(_is_new_axis(each) for read in reads for each in read.axes):
        help = "each tensor has only its own indices, as in `T(i, j) = A(i) * B(j)`: it is repeated over the others"
    if any(_sliced_name(piece, read) is None for read in reads):
        help = "tensors have indices, and values have none: write `exp(X(i + 1))`; what a def gives has a name first, `T = f(X)`"
        if all(piece[read.opening - 1].type != "RPAR" for read in reads):
            help = (
                "an element has no elements: all indices of a tensor stand in one pair of brackets, as in `X(i, j + 1)`"
            )
    edits = _edits(piece, reads, known, extents)
    fix = Fix("write indices", tuple(edits)) if edits else None
    return Diagnostic(codes.SYNTAX_ERROR, place, "there are no slices", help=help, fix=fix)


def _beside_nothing(piece: list[Token], read: Read) -> Token | None:
    """The comma beside an empty subscript, as in `X[, 1:]`."""
    for token, after in pairwise(piece[read.opening : read.closing + 1]):
        if token.type == "COMMA" and after.type in ("COMMA", *_CLOSING):
            return token
        if token.type in _OPENING and after.type == "COMMA":
            return after
    return None


NEW_AXES = frozenset({"None", "newaxis"})
"""Subscripts of NumPy that name no axis of an array: each makes a new one."""


def _is_new_axis(subscript: tuple[Token, ...]) -> bool:
    return len(subscript) == 1 and subscript[0].text in NEW_AXES


def _is_element(piece: list[Token], read: Read) -> bool:
    """Whether brackets with a new axis are those of a tensor; round ones may be those of a function, as in `sum(X, None)`."""
    single = all(len(each) == 1 for each in read.subscripts)
    is_function = piece[read.opening - 1].text in REDUCED or len(read.subscripts) == len(read.axes)
    return piece[read.opening].type == "LSQB" or (single and not is_function)


def is_slice(subscript: tuple[Token, ...]) -> bool:
    """Whether a subscript is `a:b`, `:`, `...` or `*`."""
    kinds = [token.type for token in subscript]
    return (
        kinds == ["DOTS"]
        or _is_star(subscript)
        or ("COLON" in kinds and "QUESTION" not in kinds and not set(kinds) & {*_OPENING, *_CLOSING})
    )


def _is_star(subscript: tuple[Token, ...]) -> bool:
    """Whether a subscript is the `*` of Fortran, SQL and formulas."""
    return len(subscript) == 1 and subscript[0].text == "*"


def reads_of(piece: list[Token], extents: Mapping[tuple[str, int], str] = _NO_EXTENTS) -> list[Read]:
    """All brackets behind names and values; those of tensors of known rank have a slice for each dimension that is left out."""
    found: list[Read] = []
    around: list[int] = []  # the closing brackets of those that a place is in
    for opening, closing in sorted(closers(piece).items()):
        while around and around[-1] < opening:
            around.pop()
        around.append(closing)
        if len(around) > MAX_BRACKETS:  # refused, and each read holds all that it encloses
            continue
        if opening == 0 or piece[opening - 1].type not in ("NAME", "RPAR", "RSQB"):
            continue
        subscripts: list[tuple[Token, ...]] = []
        current: list[Token] = []
        depth = 0
        for token in piece[opening + 1 : closing]:
            depth += (token.type in _OPENING) - (token.type in _CLOSING)
            if token.type == "COMMA" and not depth:
                subscripts.append(tuple(current))
                current = []
            else:
                current.append(token)
        found.append(Read(opening, closing, (*subscripts, tuple(current))))
    return _completed(piece, found, extents)


def _completed(piece: list[Token], found: list[Read], extents: Mapping[tuple[str, int], str]) -> list[Read]:
    """Reads with a slice for each dimension that `...` stands for, or that square brackets leave out as in NumPy."""
    place = next((i for i, token in enumerate(piece) if token.type in ("ASSIGN", "UPDATE")), len(piece))
    ranks, before = ranks_of(piece, extents), [read for read in found if read.opening < place]
    written = [_whole(piece, read, ranks.get(piece[read.opening - 1].text), ranks) for read in before]
    called = enclosed(
        {
            start: end
            for start, end in closers(piece).items()
            if piece[start - 1].type == "NAME" and not _takes_elements(piece[start - 1].text, ranks)
        }
    )
    is_sum = place < len(piece) and piece[place].type == "UPDATE" and not any(read.slices for read in written)
    behind: list[Read] = []
    for read in (each for each in found if each.opening > place):
        is_inside = is_sum or read.opening in called
        rank = None if is_inside and not _has_dots(read) else ranks.get(piece[read.opening - 1].text)
        behind.append(_with_places(piece, _whole(piece, read, rank, ranks), ranks))
    axes = max((len(read.axes) for read in behind), default=0)
    axes = max((axes, *(rank for _, rank in whole_arrays(piece, place, extents))))
    rest = (_whole(piece, read, len(_given(read)) + axes if _has_dots(read) else None, ranks) for read in written)
    return [*rest, *behind]


def _with_places(piece: list[Token], read: Read, ranks: Mapping[str, int]) -> Read:
    """A read that says which of its subscripts is an array of places; NumPy leaves the axis of a single one where it stands."""
    by_data = [k for k, each in enumerate(read.subscripts) if _arrays_in(each, ranks)]
    is_element = piece[read.opening].type == "LSQB" or (read.slices and piece[read.opening - 1].text in ranks)
    is_mask = any(_is_mask(read.subscripts[k]) for k in by_data)
    if not by_data or not is_element or (is_mask and not read.slices):
        return read
    is_plain = len(by_data) == 1 and not any(token.type in _OPENING for token in read.subscripts[by_data[0]])
    is_plain = is_plain and all(ranks[token.text] == 1 for token in _arrays_in(read.subscripts[by_data[0]], ranks))
    fixed = [k for k, each in enumerate(read.subscripts) if not is_slice(each) and not _is_new_axis(each)]
    is_together = not read.axes or fixed[-1] - fixed[0] < len(fixed)
    if is_mask or not is_plain or not is_together:
        return replace(read, is_unclear=True)
    return replace(read, chosen=by_data[0])


def _is_mask(subscript: tuple[Token, ...]) -> bool:
    """Whether a subscript is made of truth values, as in `X[X > 0]`."""
    return any(token.type in ("RELATION", "EQUALITY", "AND", "OR", "BANG", "TILDE") for token in subscript)


def _arrays_in(subscript: tuple[Token, ...], ranks: Mapping[str, int]) -> list[Token]:
    """The arrays without indices in a subscript."""
    pairs = [] if is_slice(subscript) else pairwise([*subscript, None])
    return [
        one
        for one, after in pairs
        if one and one.text in ranks and (after is None or after.type not in (*_OPENING, "DIMENSION"))
    ]


def _takes_elements(name: str, ranks: Mapping[str, int]) -> bool:
    """Whether what a name has brackets for stays right when what stands in them gets more indices."""
    return name in ranks or name in FUNCTION_WORDS or reducing(name) in OPERATORS


def ranks_of(piece: list[Token], extents: Mapping[tuple[str, int], str]) -> dict[str, int]:
    """The ranks of those tensors of a piece that have known extents."""
    found: dict[str, int] = {}
    for name in {token.text for token in piece if (token.text, 0) in extents}:
        found[name] = next(k for k in range(1, len(extents) + 1) if (name, k) not in extents)
    return found


def _has_dots(read: Read) -> bool:
    return any(len(each) == 1 and each[0].type == "DOTS" for each in read.subscripts)


def _given(read: Read) -> list[tuple[Token, ...]]:
    """The subscripts that are one dimension each."""
    return [each for each in read.subscripts if not _is_new_axis(each) and [token.type for token in each] != ["DOTS"]]


def _whole(piece: list[Token], read: Read, rank: int | None, ranks: Mapping[str, int]) -> Read:
    """A read with the slices that are missing to a rank."""
    missing = (rank or 0) - len(_given(read))
    behind = piece[read.closing + 1].type if read.closing + 1 < len(piece) else ""
    if missing <= 0 or () in read.subscripts:
        return read
    if sum(map(_has_dots, (replace(read, subscripts=(each,)) for each in read.subscripts))) == 1:
        parts = [_colons(each[0].span, missing) if each[0].type == "DOTS" else [each] for each in read.subscripts]
        return replace(read, subscripts=tuple(itertools.chain(*parts)))
    by_data = [each for each in read.subscripts if _arrays_in(each, ranks)]
    is_chosen = len(by_data) > 1 or any(map(_is_mask, by_data))
    if piece[read.opening].type != "LSQB" or behind in (*_OPENING, "DOT") or _has_dots(read) or is_chosen:
        return read
    end = piece[read.closing - 1].end
    return replace(read, subscripts=(*read.subscripts, *_colons(Span(end, end), missing)))


def _colons(place: Span, count: int) -> list[tuple[Token, ...]]:
    """Slices of whole dimensions, all at one place."""
    return [(Token("COLON", ":", place.start, place.end),) for _ in range(count)]


def _edits(
    piece: list[Token], reads: list[Read], known: AbstractSet[str], extents: Mapping[tuple[str, int], str]
) -> list[Edit] | None:
    """Indices in place of the slices; `None` where that does not say what was meant."""
    place = next((i for i, token in enumerate(piece[:-1]) if token.type in ("ASSIGN", "UPDATE")), None)
    count = max(len(read.axes) if read.has_axes else 0 for read in reads)
    if place is None or piece[0].type != "NAME":
        return None
    axis = _axis(piece, place)
    if axis is not None:  # the other indices are those of the target
        if place > 1 or any(read.opening < place for read in reads):
            return None
        piece = [token for token in piece if not axis.place.start <= token.start < axis.place.end]
    by_data = [read for read in reads if read.chosen is not None]
    is_nested = any(one.opening < other.opening < one.closing for one in reads for other in reads)
    is_unclear = is_nested or any(read.is_unclear for read in reads_of(piece, extents))
    is_elsewhere = by_data and (place != 1 or piece[place].type != "ASSIGN")
    if is_unclear or is_elsewhere or _has_more_arguments(piece, place):
        return None
    is_left = any(read.opening < place and read.slices for read in reads)
    arrays = whole_arrays(piece, place, extents) if is_left or _is_of_elements(piece, place, extents) else []
    sliced_names = [_sliced_name(piece, read) for read in reads]
    places = [token for read in by_data for token in read.subscripts[read.chosen or 0]]
    arrays = [each for each in arrays if each[0] not in sliced_names and each[0] not in places]
    count = count if is_left else max((count, *(rank for _, rank in arrays)))
    used = {token.text for token in piece}
    names = [letter for letter in LETTERS if letter not in used][:count]
    there = _those_there(piece, place, reads, known, extents)
    unread = _unread(piece, place, known) if there == {} and not _combined(piece, place, reads) else []
    if there is None or (count and unread and len(unread) != count):
        return None
    names = unread if len(unread) == count else names
    is_open = _is_repeated_whole(piece, place, reads, arrays)
    if len(names) < count or any(token.type == "DOT" for token in piece) or is_open:
        return None
    edits: list[Edit] = []
    if is_left and not _fits_left(piece, place, reads, arrays, extents):
        return None
    whole: dict[str, Sum] = {}  # what runs over all of a dimension of what is read
    for token, rank in arrays:
        edits.append(Edit(Span(token.end, token.end), f"({', '.join(names[count - rank :])})"))
        whole |= {name: {f"{token.text}.{k}": 1} for k, name in enumerate(names[count - rank :])}
    wide = {*whole, *_wide(piece, reads, names[:count], there)}
    ends: dict[str, str | None] = {}  # how many values an index takes, as a slice says it
    begun, ended = set(whole), set(whole)  # those of which what is read says the first value, and the last one
    read_at = set(whole)
    for read in sorted(reads, key=lambda read: read.opening < place):  # the target's may be the only extent of others
        tensor = _sliced_name(piece, read)
        if tensor is None:
            return None
        subscripts = read.places if read.has_axes else []
        edits += _without_new_axes(read)
        texts: dict[int, str] = {}  # what stands in place of each slice
        for name, k in zip(names[count - len(subscripts) :], subscripts, strict=True):
            each = read.subscripts[k]
            if _is_new_axis(each):
                continue
            if k == read.chosen:
                edits += [Edit(Span(e.end, e.end), f"({name})") for e in _arrays_in(each, ranks_of(piece, extents))]
                begun, ended, read_at = begun | {name}, ended | {name}, read_at | {name}
                continue
            name = there.get((read.opening, k), name)
            read_at.add(name)
            dimension = read.dimension(k)
            extent: Sum | None = {f"{tensor.text}.{dimension}": 1}
            if read.opening < place:
                extent = extent_of(extents.get((tensor.text, dimension))) or whole.get(name)
            chosen = selected(each, extent)
            if chosen is None:
                return None
            if read.opening < place and not _takes(chosen, whole.get(name), extents):
                return None
            if chosen.count == "1" and name in wide and read.opening > place:
                texts[k] = text(chosen.first)  # which NumPy repeats
                continue
            texts[k] = chosen.subscript(name)
            ends.setdefault(name, chosen.count)
            if read.opening > place:
                begun |= {name} if chosen.is_begun else set()
                ended |= {name} if chosen.is_ended else set()
                whole |= {name: extent} if extent and chosen.is_begun and chosen.is_ended and not chosen.first else {}
        if piece[read.opening - 1] is tensor:
            edits += [*_in_place(read, texts), *_round(piece, read)]
        else:
            at = ", ".join(
                texts.get(k, " ".join(token.text for token in each)) for k, each in enumerate(read.subscripts)
            )
            edits.append(Edit(Span(tensor.end, tensor.end), f"({at})"))
            edits.append(Edit(Span(piece[read.opening].start, piece[read.closing].end), ""))
    for read in reads_of(piece, extents):
        edits += [] if read in reads else _round(piece, read)
    if not there and not read_at >= set(names[:count]):
        if place != 1 or piece[place].type != "ASSIGN":
            return None
        names = [name if name in read_at else "0" for name in names[:count]]  # an axis of extent 1 is left
    given = {name: end for name, end in ends.items() if name not in begun or name not in ended}
    if given and any(token.type == "WHERE" for token in piece):
        return None
    if given:
        found = [f"{name} in 0:{end}" for name, end in given.items() if end is not None]
        if len(found) < len(given):
            return None  # the target, which this statement makes, has no extents before
        edits.append(Edit(Span(piece[-1].end, piece[-1].end), f" where {', '.join(found)}"))
    left = [] if names is unread or (there and not _is_sum(piece, place)) else _left(piece, place, reads, names)
    kept = _without_axis(names[:count], axis) if axis is not None else []
    if left is None or kept is None:
        return None
    if axis is not None:
        edits.append(Edit(axis.place, ""))
        edits += [Edit(Span(piece[0].end, piece[0].end), f"({', '.join(kept)})")] if kept else []
    return [*edits, *left]


def _axis(piece: list[Token], place: int) -> Axis | None:
    """The axis of the call that is the whole value of a statement."""
    end = len(piece) - 1
    return axis_of(piece, place + 2, end) if closers(piece).get(place + 2) == end else None


def _has_more_arguments(piece: list[Token], place: int) -> bool:
    """Whether a call behind `=` combines elements, and is given more than what it combines."""
    return any(
        combines(piece, start, end) and len(split_commas(piece[start + 1 : end])) > 1
        for start, end in closers(piece).items()
        if start > place
    )


def _without_axis(names: list[str], axis: Axis) -> list[str] | None:
    """The indices of the target of a combination over an axis; `None` where there is no such axis."""
    if not -len(names) <= axis.number < len(names):
        return None
    return [name for k, name in enumerate(names) if k != axis.number % len(names)]


def _wide(
    piece: list[Token], reads: list[Read], names: list[str], there: Mapping[tuple[int, int], str]
) -> Iterator[str]:
    """The indices of slices that select more than one element, over which NumPy repeats those that select one."""
    for read in (each for each in reads if each.has_axes and _sliced_name(piece, each) is not None):
        for name, k in zip(names[len(names) - len(read.places) :], read.places, strict=True):
            extent = {f"{piece[read.opening - 1].text}.{read.dimension(k)}": 1}
            if k == read.chosen:
                yield there.get((read.opening, k), name)
                continue
            chosen = None if _is_new_axis(read.subscripts[k]) else selected(read.subscripts[k], extent)
            if chosen is not None and chosen.count != "1":
                yield there.get((read.opening, k), name)


def _is_of_elements(piece: list[Token], place: int, extents: Mapping[tuple[str, int], str]) -> bool:
    """Whether a statement on whole arrays is meant element by element, as `Y = X / X[0]` is."""
    ranks = ranks_of(piece, extents)
    called = (piece[start - 1] for start in closers(piece) if start > place and piece[start - 1].type == "NAME")
    return (
        place == 1
        and piece[place].type == "ASSIGN"
        and all(each.text in ranks or each.text in FUNCTION_WORDS for each in called)
    )


def _those_there(
    piece: list[Token],
    place: int,
    reads: list[Read],
    known: AbstractSet[str],
    extents: Mapping[tuple[str, int], str],
) -> dict[tuple[int, int], str] | None:
    """The index of the statement that each slice stands for, by the bracket before it and its number behind that.

    In `Y(i, j) = A(i, :) + b(j)` it is `j`. None where each slice has an index of its own, as in `Y(i) = X(i, :)`; `None` where
    this is not certain.
    """
    left = [token.text for token in piece[1:place] if token.type == "NAME"]
    has_axes = any(read.opening < place for read in reads) or any(len(read.axes) > len(read.slices) for read in reads)
    sums = piece[place].type == "UPDATE" or _is_sum(piece, place)
    if has_axes or not (left or sums):
        return {}
    alone = _alone(piece, place, extents)
    others = [name for name in _indices(piece, place, known) if name not in left]
    if not sums and (combined := _combined(piece, place, reads)):
        return {} if combined == len(reads) and not others else None
    pools = [_free(read, left) for read in reads]
    if sums or not all(pools):
        if not others:
            return {}
        pools = [_free(read, others) for read in reads]
        sums = True
    found: dict[tuple[int, int], str] = {}
    for read, pool in zip(reads, pools, strict=True):
        is_whole = not sums and len(pool) == len(left)
        chosen = _chosen(read, piece[read.opening - 1].text, pool, is_whole, alone, extents)
        if chosen is None:
            return None
        found |= chosen
    written = {*found.values(), *_indices(piece, place, known)}
    return found if set(left) <= written else None


def _free(read: Read, names: list[str]) -> list[str]:
    """Those names that no subscript of a read has."""
    own = {token.text for each in read.subscripts for token in each}
    return [name for name in names if name not in own]


def _indices(piece: list[Token], place: int, known: AbstractSet[str]) -> list[str]:
    """The indices behind `=`."""
    inside = sorted({i for read in reads_of(piece) if read.opening > place for i in range(read.opening, read.closing)})
    names = (piece[i].text for i in inside if piece[i].type == "NAME" and piece[i + 1].type not in _OPENING)
    return list(dict.fromkeys(name for name in names if name not in known))


@dataclass(frozen=True, slots=True)
class _Alone:
    """Where indices stand alone in subscripts: in which dimensions of which tensors, and over which extents they run there."""

    places: frozenset[tuple[str, int, str]]
    extents: Mapping[str, frozenset[str]]


def _alone(piece: list[Token], place: int, extents: Mapping[tuple[str, int], str]) -> _Alone:
    places, found = set[tuple[str, int, str]](), dict[str, frozenset[str]]()
    for read in reads_of(piece):
        tensor = piece[read.opening - 1].text
        for k, each in enumerate(read.subscripts if read.opening > place else ()):
            if [token.type for token in each] == ["NAME"]:
                name = each[0].text
                places.add((tensor, k, name))
                own = extents.get((tensor, k))
                found[name] = found.get(name, frozenset()) | (frozenset() if own is None else {own})
    return _Alone(frozenset(places), found)


def _chosen(
    read: Read,
    tensor: str,
    pool: list[str],
    is_whole: bool,
    alone: _Alone,
    extents: Mapping[tuple[str, int], str],
) -> dict[tuple[int, int], str] | None:
    """The index for each slice of a read, as `_those_there` has it, from a pool; `None` where this is not certain.

    As in NumPy, slices are the last axes. Beside other indices of the left side, the index is preferred that stands in that
    dimension elsewhere, or runs over its extent.

    Args:
        is_whole: no index of the left side is in the read.
    """
    count, found = len(read.slices), dict[tuple[int, int], str]()
    for k, last in zip([k for k in read.places if is_slice(read.subscripts[k])], pool[-count:], strict=False):
        each, dimension = read.subscripts[k], k
        extent = extents.get((tensor, dimension)) if len(each) == 1 else None
        own = [name for name in pool if (tensor, dimension, name) in alone.places]
        fitting = [name for name in pool if extent is None or alone.extents.get(name, frozenset()) <= {extent}]
        if is_whole or len(pool) == count:
            choice = [last] if last in fitting and set(own) <= {last} else []
        else:
            choice = own or fitting
        if len(choice) != 1:
            return None
        found[read.opening, k] = choice[0]
    return found if len(set(found.values())) == count else None


def _in_place(read: Read, texts: Mapping[int, str]) -> list[Edit]:
    """Texts in place of some subscripts; those at one place are one text."""
    found = dict[Span, list[str]]()
    for k, written in texts.items():
        each = read.subscripts[k]
        found.setdefault(Span(each[0].start, each[-1].end), []).append(written)
    added = {place: ", " * (place.start == place.end) for place in found}
    return [Edit(place, added[place] + ", ".join(written)) for place, written in found.items()]


def _sliced_name(piece: list[Token], read: Read) -> Token | None:
    """The tensor that a slice is of: the name before the brackets, or the only one in a value before them, as in `(X * 2)[1:]`."""
    before = piece[read.opening - 1]
    if before.type == "NAME":
        return before
    start = next((opening for opening, closing in closers(piece).items() if closing == read.opening - 1), 0)
    inside = piece[start + 1 : read.opening - 1]
    names = [token for token in inside if token.type == "NAME"]
    is_value = piece[start].type == "LPAR" and piece[start - 1].type not in ("NAME", *_CLOSING)
    brackets = any(token.type in _OPENING for token in inside)
    return names[0] if is_value and len(names) == 1 and not brackets else None


def _is_repeated_whole(piece: list[Token], place: int, reads: list[Read], arrays: list[tuple[Token, int]]) -> bool:
    """Whether axes are new, and a tensor of unknown rank may be beside them, as in `A[:, None] - T`, or all are: `A[None]`."""
    if not any(_is_new_axis(each) for read in reads for each in read.axes):
        return False
    inside = {i for read in reads_of(piece) for i in range(read.opening - 1, read.closing)}
    known = [token for token, _ in arrays]
    alone = (piece[i] for i in range(place, len(piece)) if piece[i].type == "NAME" and i not in inside)
    return any(token not in known and token.text not in FUNCTION_WORDS for token in alone) or any(
        len(read.axes) == len(read.subscripts) > len(read.slices) == 0 for read in reads
    )


def _without_new_axes(read: Read) -> list[Edit]:
    """Leave out each `None` with a comma beside it."""
    edits: list[Edit] = []
    kept = False  # a subscript before it stays
    for k, each in enumerate(read.subscripts):
        if not _is_new_axis(each):
            kept = True
        elif kept:
            edits.append(Edit(Span(read.subscripts[k - 1][-1].end, each[0].end), ""))
        elif k + 1 < len(read.subscripts):
            edits.append(Edit(Span(each[0].start, read.subscripts[k + 1][0].start), ""))
    return edits


def _unread(piece: list[Token], place: int, known: AbstractSet[str]) -> list[str]:
    """The indices of the target that nothing else in the statement names: `Y(i) = X(:)` has `i`."""
    right = {token.text for token in piece[place:]}
    left = [token.text for token in piece[1:place] if token.type == "NAME"]
    return [name for name in left if name not in right and name not in known]


@dataclass(frozen=True, slots=True)
class Selected:
    """The elements that a slice selects: the first one, a step of which the next one follows, and how many there are.

    Attributes:
        is_begun: a smaller index than 0 would be outside.
        is_ended: the slice goes on to the end of its dimension.
    """

    first: Sum
    step: int
    count: str | None
    is_begun: bool
    is_ended: bool

    def subscript(self, name: str) -> str:
        """The subscript of the element with that number: `2*i + 1`, `X.0 - 1 - i`."""
        scaled = name if abs(self.step) == 1 else f"{abs(self.step)}*{name}"
        if self.step < 0:
            return f"{text(self.first)} - {scaled}"
        if not self.first:
            return scaled
        first = text(self.first)
        return f"{scaled} - {first[1:]}" if first.startswith("-") else f"{scaled} + {first}"


def selected(subscript: tuple[Token, ...], extent: Sum | None) -> Selected | None:
    """What a slice of a dimension selects; `None` where that is not known, as for one with a step that is no number."""
    parts: list[list[Token]] = [[]]
    for token in () if _is_star(subscript) else subscript:
        parts = [*parts, []] if token.type == "COLON" else [*parts[:-1], [*parts[-1], token]]
    first, last, stride = (*parts, [], [])[:3]
    step = summed(stride) if stride else {"": 1}
    if step is None or set(step) != {""} or not step[""] or len(parts) > 3:
        return None
    begin, end = _end(first, extent, {}), _end(last, extent, extent)
    if step[""] < 0:
        if first or last or extent is None:
            return None
        return Selected(less(extent, {"": 1}), step[""], divided(extent, -step[""]), True, True)
    if begin is None or (last and summed(last) is None):
        return None
    count = None if end is None else divided(less(end, begin), step[""])
    is_begun = not begin or (set(begin) == {""} and begin[""] < step[""])
    return Selected(begin, step[""], count, is_begun, not last)


def _end(tokens: list[Token], extent: Sum | None, otherwise: Sum | None) -> Sum | None:
    """An end of a slice; one that is negative is counted from the end of the dimension."""
    if not tokens:
        return otherwise
    found = summed(tokens)
    if found is None or tokens[0].type != "MINUS":
        return found and less(found, {})
    return None if extent is None or set(found) != {""} else less(extent, less({}, found))


def extent_of(written: str | None) -> Sum | None:
    """A stated extent as a sum."""
    return None if written is None else summed(tokenize(SourceText(written)).tokens) or {f"({written})": 1}


def _takes(chosen: Selected, whole: Sum | None, extents: Mapping[tuple[str, int], str]) -> bool:
    """Whether a slice with an end has as many elements as a whole dimension, if there is one."""
    if whole is None or chosen.is_ended or chosen.count is None:
        return True
    tensor, _, dimension = next(iter(whole)).partition(".")
    stated = extent_of(extents.get((tensor, int(dimension or 0))))
    return chosen.count == text(whole) or (stated is not None and chosen.count == text(stated))


def whole_arrays(piece: list[Token], place: int, extents: Mapping[tuple[str, int], str]) -> list[tuple[Token, int]]:
    """The tensors behind `=` without indices, outside of brackets of other tensors, and their ranks."""
    ranks = ranks_of(piece, extents)
    alone = (
        token for token, after in pairwise([*piece[place:], piece[0]]) if after.type not in (*_OPENING, "DIMENSION")
    )
    return [(token, ranks[token.text]) for token in alone if token.type == "NAME" and token.text in ranks]


def _fits_left(
    piece: list[Token],
    place: int,
    reads: list[Read],
    arrays: list[tuple[Token, int]],
    extents: Mapping[tuple[str, int], str],
) -> bool:
    """Whether slices of the target are as many axes as what is read has, and every read has all its indices."""
    axes = max(len(read.axes) for read in reads if read.opening < place)
    behind = [read for read in reads if read.opening > place]
    full = all((piece[read.opening - 1].text, len(read.subscripts)) not in extents for read in reads_of(piece, extents))
    more = any(len(read.axes) > axes for read in behind) or any(rank > axes for _, rank in arrays)
    calls = closers(piece).items()
    combined = arrays and any(combines(piece, start, end) for start, end in calls if start > place)
    return full and not combined and not (more and piece[place].type == "ASSIGN")


def _round(piece: list[Token], read: Read) -> list[Edit]:
    if piece[read.opening].type == "LPAR":
        return []
    return [Edit(piece[read.opening].span, "("), Edit(piece[read.closing].span, ")")]


def _combined(piece: list[Token], place: int, reads: list[Read]) -> int:
    """How many reads with slices stand inside of a function that combines elements, as in `X(i, j) / sum(X(i, :))`."""
    calls = ((start, end) for start, end in closers(piece).items() if start > place)
    combining = [(start, end) for start, end in calls if combines(piece, start, end)]
    return sum(any(start < read.opening < end for start, end in combining) for read in reads if read.slices)


def _is_sum(piece: list[Token], place: int) -> bool:
    """Whether the value is `sum(...)`, or another function that is an operator."""
    end = len(piece) - 1
    return closers(piece).get(place + 2) == end and combines(piece, place + 2, end)


def _left(piece: list[Token], place: int, reads: list[Read], names: list[str]) -> list[Edit] | None:
    """What makes the new indices those of the target: an operator in place of `sum(...)`, or indices on the left.

    Nothing where they are those of a function that combines elements, in an expression; `None` where only some of them are.
    """
    if piece[place].type == "UPDATE" or any(read.opening < place for read in reads):
        return []
    value = place + 1
    word = reducing(piece[value].text) if value + 1 < len(piece) else None
    if word is not None and _is_sum(piece, place):
        inner = Edit(Span(piece[value].start, piece[value + 1].end), "")
        return [Edit(piece[place].span, OPERATORS[word]), inner, Edit(piece[-1].span, "")]
    whole = value + 1 < len(piece) and closers(piece).get(value + 1) == len(piece) - 1
    is_choice = word in OPERATORS and not combines(piece, value + 1, len(piece) - 1)
    if whole and not is_choice and (word is not None or piece[value].text in REDUCED):
        return []  # about which there is a message of its own
    if combined := _combined(piece, place, reads):
        return [] if combined == sum(bool(read.slices) for read in reads) else None
    if piece[place - 1].type in _CLOSING:
        comma = ", " if piece[place - 2].type not in _OPENING else ""
        return [Edit(Span(piece[place - 2].end, piece[place - 2].end), comma + ", ".join(names))]
    return [Edit(Span(piece[place - 1].end, piece[place - 1].end), f"({', '.join(names)})")]
