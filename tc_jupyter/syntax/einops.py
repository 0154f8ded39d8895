"""`rearrange`, `reduce` and `repeat` of einops as statements.

Worked example: `Y = rearrange(X, "b (h w) c -> h b (w c)", h=4)` is
`Y(h, b, w * X.2 + c) = X(b, h * (X.1 / 4) + w, c) where h in 0:4, w in 0:X.1 / 4`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

FUNCTIONS = frozenset({"rearrange", "reduce", "repeat"})
HELP = (
    "axes are indices: a joined one is `Y(b, h * X.2 + w) = X(b, h, w)`, "
    "a split one `Y(b, h, w) = X(b, h * 4 + w) where h in 0:X.1 / 4, w in 0:4`"
)
_OPERATORS = {
    "sum": "+=!",
    "mean": "+=!",
    "max": "max=!",
    "min": "min=!",
    "prod": "*=!",
    "any": "any=!",
    "all": "all=!",
}
_AXES = re.compile(r"\(([^()]*)\)|(\w+|\.\.\.)")
_LETTERS = "ijklmnpq"


@dataclass(frozen=True, slots=True)
class Called:
    """A call.

    Attributes:
        function: one of `FUNCTIONS`.
        source: the tensor.
        rank: of the tensor, if it is known.
        is_float: whether its elements are floats.
        sizes: of axes, as `h=4` gives them.
        operation: of `reduce`.
    """

    function: str
    source: str
    pattern: str
    rank: int | None
    is_float: bool
    sizes: Mapping[str, str]
    operation: str


def statement(call: Called, target: str, taken: Collection[str]) -> str | None:
    """The statement on a target; `None` for what is no such call.

    Args:
        taken: words that cannot be names of indices.
    """
    left, arrow, right = _with_axes(call.pattern, call.rank).partition("->")
    if not arrow or (call.function == "reduce") != (call.operation in _OPERATORS):
        return None
    before, after = _groups(left), _groups(right)
    if before is None or after is None or (call.rank is not None and len(before) != call.rank):
        return None
    there, made = [axis for group in before for axis in group], [axis for group in after for axis in group]
    fits = {
        "rearrange": {*there} == {*made},
        "reduce": {*there} >= {*made},
        "repeat": {*there} <= {*made} and {*made} - {*there} <= call.sizes.keys(),
    }
    if not fits[call.function] or len({*there}) < len(there) or len({*made}) < len(made):
        return None
    extents = _extents(call, before)
    if extents is None:
        return None
    names = _names({*there, *made}, {*taken, target, call.source})
    alone = {group[0] for group in before if len(group) == 1}
    ranges = [f"{names[axis]} in 0:{extents[axis]}" for axis in dict.fromkeys((*there, *made)) if axis not in alone]
    unproved = any(len(group) > 1 for group in after) and not all(each.isdigit() for each in call.sizes.values())
    ranges += ["unique"] if unproved and call.function != "reduce" else []  # of products of numbers it is not proved
    where = f" where {', '.join(ranges)}" if ranges else ""
    goal = f"{target}({', '.join(_subscript(group, names, extents) for group in after)})" if after else target
    value = f"{call.source}({', '.join(_subscript(group, names, extents) for group in before)})"
    if call.function != "reduce":
        return f"{goal} = {value}{where}"
    if call.operation == "mean":
        count = " * ".join(_factor(extents[axis]) for axis in there if axis not in made)
        value = value if call.is_float else f"double({value})"
        value = f"{value} / ({count})" if " * " in count else f"{value} / {count}" if count else value
    return f"{goal} {_OPERATORS[call.operation]} {value}{where}"


def _with_axes(pattern: str, rank: int | None) -> str:
    """A pattern with names for `...`, where the rank says how many."""
    left, known = pattern.partition("->")[0], {*re.findall(r"\w+", pattern)}
    others = len(_AXES.findall(left)) - 1
    names = [letter for letter in _LETTERS if letter not in known][: max((rank or 0) - others, 0)]
    return pattern.replace("...", " ".join(names)) if rank is not None and left.count("...") == 1 else pattern


def _groups(side: str) -> list[list[str]] | None:
    """The axes of each dimension; `1` is a dimension without any. `None` where something else stands there."""
    if re.sub(r"[\s]", "", _AXES.sub("", side)):
        return None
    names = [match[1].split() if match[1] is not None else [match[2]] for match in _AXES.finditer(side)]
    axes = [name for group in names for name in group]
    if not all(name == "1" or (name.isidentifier() and name != "_") for name in axes):
        return None
    return [[name for name in group if name != "1"] for group in names]


def _extents(call: Called, before: Sequence[Sequence[str]]) -> dict[str, str] | None:
    """The number of values of each axis; `None` where two of one dimension are not known."""
    found = dict(call.sizes)
    for k, group in enumerate(before):
        open_axes = [axis for axis in group if axis not in found]
        if len(open_axes) > 1:
            return None
        known = " * ".join(_factor(found[axis]) for axis in group if axis in found)
        for axis in open_axes:
            dimension = f"{call.source}.{k}"
            found[axis] = f"{dimension} / {f'({known})' if ' ' in known else known}" if known else dimension
    return found


def _factor(extent: str) -> str:
    return f"({extent})" if " " in extent else extent


def _names(axes: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """A name of an index for each axis."""
    found = dict[str, str]()
    for axis in sorted(axes):
        name, number = axis, 2
        while name in taken or name in found.values() or (name != axis and name in axes):
            name, number = f"{axis}{number}", number + 1
        found[axis] = name
    return found


def _subscript(group: Sequence[str], names: Mapping[str, str], extents: Mapping[str, str]) -> str:
    """`h * X.2 + w` for the axes `(h w)`."""
    terms = list[str]()
    for k, axis in enumerate(group):
        steps = [_factor(extents[inner]) for inner in group[k + 1 :]]
        step = " * ".join(steps)
        terms.append(f"{names[axis]} * {f'({step})' if len(steps) > 1 else step}" if step else names[axis])
    return " + ".join(terms) or "0"
