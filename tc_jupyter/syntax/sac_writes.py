"""Elements that a text of C, MATLAB or Julia writes one by one, in `%%sac`, whose arrays are given at once.

Worked example: of `for (i = 0; i < n; i++) { b[i] = 2 * a[i]; }` the fix writes `b = { [i] -> 2 * a[i] | [i] < [n] };`. Where
nothing more is known, `a[0] = 1` is the array again, with one other element: `a = with { ([0] <= iv <= [0]) : 1; } : modarray(a)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

_SUMS = {"+": "sum", "*": "prod"}
_FREE = ("iv", "jv", "kv")


@dataclass(frozen=True, slots=True)
class ElementWrite:
    """One statement that writes elements, with the loops around it.

    Attributes:
        subscripts: the texts of all subscripts, those of `b[i][j]` too.
        operator: `=`, or `+` for `+=` and so on.
        value: the text behind the operator; `operand` is the same, in brackets where the operator needs them.
        vector: whether the only subscript is a vector of indices; `None` where that is not known.
        ranges: what loops count, the outermost first: index, the first number, and the one behind the last.
        first: what an element is before the loops combine with it, if the statement before has just written it.
    """

    name: str
    subscripts: tuple[str, ...]
    operator: str
    value: str
    operand: str
    vector: bool | None
    ranges: tuple[tuple[str, str, str], ...] = ()
    first: str | None = None

    @property
    def element(self) -> str:
        """The element as it is read: `b[i, j]`."""
        return f"{self.name}[{', '.join(self.subscripts)}]"


def one_by_one(write: ElementWrite, known: Collection[str]) -> str | None:
    """The assignment that changes one element; `None` where the array has no value yet, or the subscript may be a vector or not."""
    if write.vector is None or write.name not in known:
        return None
    value = _new(write)
    used = _words(value, *write.subscripts)
    index = next((name for name in _FREE if name not in used), None)
    place = write.subscripts[0] if write.vector else f"[{', '.join(write.subscripts)}]"
    text = f"with {{ ({place} <= {index} <= {place}) : {value}; }} : modarray({write.name})"
    return None if index is None else f"{write.name} = {text}"


def of_each(write: ElementWrite, free: Sequence[str]) -> str | None:
    """What `c[i, j] = a[i, k] * b[k, j]` gives without a loop, as Julia has it; nothing gives the indices `free` a value."""
    summed = [index for index in free if index not in write.subscripts]
    if not set(write.subscripts) <= set(free) or len(set(write.subscripts)) < len(write.subscripts):
        return None
    value = f"sum({{ [{', '.join(summed)}] -> {write.value} }})" if summed else write.value
    if write.operator != "=":
        value = f"{write.element} {write.operator} {value if summed else write.operand}"
    return f"{write.name} = {{ [{', '.join(write.subscripts)}] -> {value} }}"


def at_once(writes: Sequence[ElementWrite], known: Collection[str]) -> str | None:
    """The assignments that give whole arrays for what loops write; `None` where they would mean something else."""
    texts = [_comprehension(write, known) for write in writes if _is_independent(write, writes, known)]
    targets = {write.name for write in writes}
    whole = len(targets) == len(writes) == len(texts) and all(texts)
    return " ".join(f"{text};" for text in texts) if whole else None


def joined(writes: Sequence[ElementWrite]) -> list[ElementWrite]:
    """The writes, where `c[i] = 0` and a loop around `c[i] += e` behind it are one."""
    found: list[ElementWrite] = []
    for write in writes:
        before = found[-1] if found else None
        same = (
            before is not None
            and before.element == write.element
            and before.ranges == write.ranges[: len(before.ranges)]
        )
        if before is not None and same and before.operator == "=" and write.operator in _SUMS and before.first is None:
            found[-1] = replace(write, first=before.value)
        else:
            found.append(write)
    return found


def chosen(condition: str, then: ElementWrite, otherwise: ElementWrite | None) -> ElementWrite | None:
    """What `if (c) a[i] = x; else a[i] = y;` writes; `None` where it writes different elements."""
    if then.ranges or (otherwise is not None and (otherwise.ranges or otherwise.element != then.element)):
        return None
    value = f"{condition} ? {_new(then)} : {then.element if otherwise is None else _new(otherwise)}"
    return replace(then, operator="=", value=value, operand=value)


def _new(write: ElementWrite) -> str:
    """What an element becomes."""
    return write.value if write.operator == "=" else f"{write.element} {write.operator} {write.operand}"


def within(write: ElementWrite, ranges: Sequence[tuple[str, str, str]]) -> ElementWrite:
    """The write inside of one more loop."""
    return replace(write, ranges=(*ranges, *write.ranges))


def _is_independent(write: ElementWrite, writes: Sequence[ElementWrite], known: Collection[str]) -> bool:
    """Whether each element is written once, of indices alone, and written arrays are read at the same subscripts only."""
    indices, text = [index for index, _, _ in write.ranges], f"{write.value} {write.first or ''}"
    ends, written = " ".join(end for _, *two in write.ranges for end in two), {each.name for each in writes}
    summed = set(indices) - set(write.subscripts)
    plain = len(set(indices)) == len(indices) and len(set(write.subscripts)) == len(write.subscripts)
    if not plain or not set(write.subscripts) <= set(indices) or _words(ends) & set(indices):
        return False
    if summed and (write.operator not in _SUMS or write.name in _words(text) or summed & _words(write.first or "")):
        return False
    if _words(_SHAPE.sub("", ends)) & written or _words(ends) & (written - set(known)):
        return False
    return all(other.name not in _words(_without_reads(other, write, text)) for other in writes)


_SHAPE = re.compile(r"\bshape\(\s*\w+\s*\)")
"""Which no write changes."""


def _without_reads(other: ElementWrite, write: ElementWrite, text: str) -> str:
    """A text without the reads of what another write writes, where both have the same subscripts."""
    if other.subscripts != write.subscripts:
        return text
    each = [re.escape(subscript) for subscript in other.subscripts]
    chained, listed = "".join(rf"\[\s*{one}\s*\]" for one in each), r"\[\s*" + r"\s*,\s*".join(each) + r"\s*\]"
    return re.sub(rf"\b{re.escape(other.name)}(?:{chained}|{listed})", "", _SHAPE.sub("", text))


def _comprehension(write: ElementWrite, known: Collection[str]) -> str | None:
    """`b = { [i, j] -> e | [0, 1] <= [i, j] < [n, m]; iv -> b[iv] }`."""
    ranges = {index: (low, high) for index, low, high in write.ranges}
    summed = [index for index, _, _ in write.ranges if index not in write.subscripts]
    value, base = write.value, write.element if write.first is None else write.first
    is_known = write.name in known
    if summed:
        inner = f"{{ [{', '.join(summed)}] -> {value} | {_generator(summed, ranges)} }}"
        value = f"{_SUMS[write.operator]}({inner})"
    if write.operator != "=" and not (summed and write.first is not None and _is_neutral(write.first, write.operator)):
        if write.first is None and not is_known:
            return None
        base = f"({base})" if write.first is not None and not re.fullmatch(r"[\w.]+", base) else base
        value = f"{base} {write.operator} {value if summed else write.operand}"
    if write.name in _words(value) and not is_known:
        return None
    pattern = list(write.subscripts)
    whole = all(ranges[index] == ("0", f"shape({write.name})[{k}]") for k, index in enumerate(pattern))
    used = _words(value, *(end for two in ranges.values() for end in two))
    free = next((name for name in _FREE if name not in used), None)
    rest = "" if whole or not is_known else f"; {free} -> {write.name}[{free}]"
    return (
        f"{write.name} = {{ [{', '.join(pattern)}] -> {value} | {_generator(pattern, ranges)}{rest} }}"
        if free
        else None
    )


def _generator(indices: Sequence[str], ranges: dict[str, tuple[str, str]]) -> str:
    lows, highs = ([ranges[index][side] for index in indices] for side in (0, 1))
    below = "" if set(lows) == {"0"} else f"[{', '.join(lows)}] <= "
    return f"{below}[{', '.join(indices)}] < [{', '.join(highs)}]"


def _is_neutral(text: str, operator: str) -> bool:
    """Whether combining with a number changes nothing: `0.0` for sums."""
    number = re.fullmatch(r"(\d+\.?\d*)[A-Za-z]*", text)
    return number is not None and float(number.group(1)) == (0 if operator == "+" else 1)


def _words(*texts: str) -> set[str]:
    return {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
