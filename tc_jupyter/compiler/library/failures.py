"""What a call of a library may fail with: a code for each condition of a def, its text, and the numbers that the text names.

Worked example: of `correlate` the code 100 is "TC602: the range of `i` ends before it starts: `0 <= i < N - K + 1`", and a call
with `N = 2` and `K = 5` adds "; K = 5, N = 2".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tc_jupyter.compiler.call_numbers import points_of
from tc_jupyter.diagnostics import codes
from tc_jupyter.ranges import Bind, Precondition, divided_by, range_text, to_python
from tc_jupyter.ranges.at_call import Failure, applied_by
from tc_jupyter.ranges.data import DataCheck, EndCheck, PointCheck, UniqueCheck
from tc_jupyter.ranges.preconditions import needed


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a def.

    Attributes:
        text: what is wrong where it does not hold.
        names: sizes and integer scalars whose values are told.
        record: more of the text, with formats of `printf` for the words of the record of a check from the third one on.
        words: how many words `record` has, by their places from 0.
    """

    text: str
    names: tuple[str, ...] = ()
    record: str = ""
    words: tuple[int, ...] = ()


def of_failure(bind: Bind, failure: Failure) -> Condition:
    """One way in which sizes are wrong."""
    if failure.divisor is not None:
        divisor = divided_by(failure.divisor)
        text = f"`{to_python(divisor)}` is 0 and stands as a divisor in an index or a range"
        return _sized(bind, codes.ZERO_DIVISOR, text, divisor.names)
    if failure.border is not None:
        access, number = failure.border.access, failure.border.dimension
        text = f"`{access.text}` reads an array without elements: dimension {number} of `{access.tensor}` is 0"
        return _sized(bind, codes.ZERO_DIVISOR, text, failure.border.extent.names)
    if failure.range is not None and failure.range.lower is not None and failure.range.upper is not None:
        low, high = failure.range.lower, failure.range.upper
        if (applied := applied_by(bind, failure.range)) is not None:
            return _sized(
                bind, codes.NEGATIVE_STEPS, f"`{applied}` cannot be applied `{to_python(high)}` times", high.names
            )
        text = f"the range of `{failure.range.index}` ends before it starts: `{range_text(failure.range.index, low, high)}`"
        return _sized(bind, codes.NEGATIVE_RANGE_AT_CALL, text, low.names | high.names)
    if failure.equality is not None:
        left, right = failure.equality.left, failure.equality.right
        if failure.equality.equality.kind == "number":
            text = f"{failure.equality.equality.reason}: `{to_python(right)}` is outside"
            return _sized(bind, codes.ARGUMENT_TYPE, text, right.names)
        text = f"{failure.equality.equality.reason}: `{to_python(left)}` is not `{to_python(right)}`"
        return _sized(bind, codes.SIZE_CONFLICT, text, left.names | right.names)
    if failure.item is not None:
        return of_item(bind, failure.item)
    return Condition(f"{codes.NEGATIVE_SHAPE.number}: `{failure.tensor}` would have a negative extent")


def of_item(bind: Bind, item: Precondition) -> Condition:
    """A precondition on sizes."""
    names = {name for condition in item.conditions for name in condition.names}
    if item.bound is None:
        return _sized(bind, codes.PRECONDITION_FAILED, f"`{item.text}` is false", names)
    access = item.bound.access
    lower, upper = bind.ranges.boxes[access.tensor].bounds[item.bound.dimension]
    names |= access.index[item.bound.dimension].names | lower.names | upper.names
    text = f"`{access.text}` leaves `{access.tensor}`: needs {needed(item.bound, None)}"
    if item.conditions and item.text not in text:
        text += f", so `{item.text}`"
    return _sized(bind, codes.PRECONDITION_FAILED, text, names)


def of_places(item: UniqueCheck) -> list[Condition]:
    """What may be wrong with the elements that a statement writes; of two, the record of the check tells which."""
    twice = f"{codes.NOT_UNIQUE.number}: an element of `{item.points.tensor}` is written twice"
    none = f"{codes.UNWRITTEN_ELEMENT.number}: no statement writes an element of `{item.points.tensor}`"
    said = [*([twice] if item.unique else ()), *([none] if item.covers else ())]
    return [Condition(text, (), ": number %lld in row order", (0,)) for text in said]


def of_check(item: DataCheck | PointCheck | EndCheck) -> Condition:
    """A condition on data."""
    points = points_of(item)
    at = "".join(f", {r.index} = %lld" for r in points.ranges)
    first = f"; first at {at[2:]}" if at else ""
    places = tuple(range(3, 3 + len(points.ranges)))
    number = codes.INDEX_OUT_OF_RANGE.number
    if points.kind == "position":
        return Condition(
            f"{number}: there is no position in `{points.tensor}`: an element has no points", (), first, places
        )
    if points.kind == "end":
        text = f"{number}: the range of `{points.tensor}` has no such end"
        return Condition(text, (), f": %lld is not from %lld up to below %lld{first}", (0, 1, 2, *places))
    text = f"{number}: `{points.text}` leaves `{points.tensor}` in dimension {points.dimension}"
    return Condition(text, (), f": index %lld is not from %lld up to below %lld{first}", (0, 1, 2, *places))


def _sized(bind: Bind, code: codes.Code, text: str, names: Iterable[str]) -> Condition:
    return Condition(f"{code.number}: {text}", tuple(sorted({*names} & {*bind.names})))


def c_string(text: str, is_format: bool = False) -> str:
    """A text as C writes it; in ASCII, since nobody knows how a terminal shows other letters."""
    found: list[str] = []
    for char in text:
        if char in '"\\':
            found.append("\\" + char)
        elif char == "?":
            found.append("\\?")  # two of them begin a trigraph
        elif " " <= char <= "~":
            found.append("%%" if is_format and char == "%" else char)
        else:
            found.extend(f"\\{byte:03o}" for byte in char.encode("utf-8"))
    return '"' + "".join(found) + '"'
