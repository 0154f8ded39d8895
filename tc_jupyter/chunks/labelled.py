"""Calls with labelled arrays of xarray: dimensions keep their names, coordinates and attributes.

A dimension of a result has the name of the dimension that its index runs over, with the coordinates that belong to the index: a
window that drops elements at both ends drops their coordinates.

Worked example: for `Y(i) = X(i - 1) + X(i) + X(i + 1)` and `X` with the coordinate `time` of 10 numbers, `Y` has `time` from the
second to the last but one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from tc_jupyter.compiler.definition import Definition
from tc_jupyter.diagnostics import codes, shown_value
from tc_jupyter.ranges import SizeExpr
from tc_jupyter.ranges import index as index_of
from tc_jupyter.runtime.arguments import fail
from tc_jupyter.runtime.kernel import read_inputs

from .flat import flat
from .plan import outline
from .regions import Regions


def is_labelled(value: object) -> bool:
    """Whether a value is an array of xarray."""
    kinds = type(value).__mro__
    return any(each.__name__ == "DataArray" and each.__module__.startswith("xarray.") for each in kinds)


def unwrapped(values: Sequence[Any]) -> tuple[Any, ...]:
    """The arrays behind labelled ones."""
    return tuple(each.data if is_labelled(each) else each for each in values)


@dataclass(frozen=True, slots=True)
class _Label:
    """The name of a dimension, and how far an index is from the place of its coordinate; `None` where there is none."""

    name: str
    shift: int | None


def call(
    definition: Definition,
    values: Sequence[Any],
    dims: Any,
    function: Callable[..., Any],
) -> Any:
    """The results of a call, labelled.

    Args:
        dims: names of dimensions, by index, or `None`.
        function: computes the call without labels.

    Raises:
        CallError: as a call; TC672, names or coordinates do not fit.
    """
    return _Labels(definition, values, {} if dims is None else dims).call(function)


class _Labels:
    def __init__(self, definition: Definition, values: Sequence[Any], dims: Any) -> None:
        self.definition, self.program = definition, definition.program
        if not isinstance(dims, Mapping):
            message = f"`dims=` is {shown_value(dims)}"
            self.refuse(message, 'it has a name for each index, as in `dims={"i": "x"}`')
        self.dims = cast("Mapping[str, str]", dims)
        self.about = flat(definition.program, definition.found.ranges)
        self._check_names()
        self.given = {name for each in values if is_labelled(each) for name in each.dims}
        self.values = [self._in_order(name, each) for name, each in zip(definition.names, values, strict=True)]
        inputs = read_inputs(definition.program, definition.written, [outline(each) for each in unwrapped(self.values)])
        definition.verify(inputs)
        definition.numbers_at(inputs.sizes)
        self.numbers = Regions(self.about, inputs.sizes)
        self.labels: dict[tuple[str, int], _Label] = {}

    def refuse(self, message: str, help: str) -> NoReturn:
        """The error TC672."""
        fail(codes.LABELS, message, self.program.source, self.program.span, help=help)

    def _check_names(self) -> None:
        known = dict.fromkeys(index.name for each in self.about.program.statements for index in each.indices)
        for index, name in self.dims.items():
            if index not in known:
                self.refuse(f"no statement has an index `{index}`", f"the indices are {', '.join(known)}")
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
                self.refuse(f"the dimension of `{index}` is called `{name!r}`", "a name is a string")

    def _in_order(self, parameter: str, value: Any) -> Any:
        """The argument with its dimensions in the order of the def, if `dims=` says how its dimensions are called.

        A name that no argument has is a new one, for results.
        """
        if not is_labelled(value) or not self.dims:
            return value
        wanted: list[str | None] = [None] * value.ndim
        for statement in self.about.program.statements:
            for read in statement.reads():
                for place, at in enumerate(read.indices[: value.ndim] if read.tensor == parameter else ()):
                    name = self.dims.get(getattr(at, "name", ""))
                    name = name if name in self.given else None
                    wanted[place] = wanted[place] or name
        names = [each for each in wanted if each is not None]
        missing = [each for each in names if each not in value.dims]
        if missing:
            shown = ", ".join(f"`{each}`" for each in value.dims)
            self.refuse(f"`{parameter}` has no dimension `{missing[0]}`", f"its dimensions are {shown}")
        rest = iter([each for each in value.dims if each not in names])
        return value.transpose(*(each if each is not None else next(rest) for each in wanted))

    def call(self, function: Callable[..., Any]) -> Any:
        """The results with labels."""
        coords = self._coordinates()
        self._name_dimensions()
        made = function(*unwrapped(self.values))
        arrays = made if isinstance(made, tuple) else (made,)
        found = tuple(
            self._wrapped(name, tensor, array, coords)
            for name, tensor, array in zip(self.program.results, self.about.program.results, arrays, strict=True)
        )
        return found if isinstance(made, tuple) else found[0]

    def _coordinates(self) -> dict[str, Any]:
        """The coordinates of all arguments; those of dimensions have to be the same wherever they are."""
        found: dict[str, Any] = {}
        dropped: set[str] = set()
        for parameter, value in zip(self.definition.names, self.values, strict=True):
            for name, coordinate in value.coords.items() if is_labelled(value) else ():
                if name not in found:
                    found[name] = coordinate
                elif coordinate.dims != found[name].dims or not _same(coordinate, found[name]):
                    if name in value.dims:
                        message = f"the coordinates of `{name}` in `{parameter}` are not those of an argument before"
                        self.refuse(message, "take what both have by `xarray.align`, or drop one by `drop_vars`")
                    dropped.add(name)
        return {name: each for name, each in found.items() if name not in dropped}

    def _name_dimensions(self) -> None:
        """A label for every dimension of every tensor, in the order in which they are made."""
        for parameter, value in zip(self.definition.names, self.values, strict=True):
            for place, name in enumerate(value.dims if is_labelled(value) else ()):
                low = self.numbers.boxes[parameter][place][0]
                self.labels[parameter, place] = _Label(str(name), -low)
        for statement in self.about.program.statements:
            for place, index in enumerate(statement.output_indices):
                key = statement.target, place
                if key not in self.labels and place < self.program_rank(statement.target):
                    self.labels[key] = self._label(statement.name, index.name)

    def program_rank(self, tensor: str) -> int:
        """The dimensions that the text has."""
        return self.about.program.tensor(tensor).written_rank

    def _label(self, statement: str, index: str) -> _Label:
        """The label of what an index runs over: that of a dimension that it reads alone, or with a number added."""
        found: dict[str, dict[int, _Label]] = {}
        for access in self.numbers.accesses(statement):
            for place, subscript in enumerate(access.subscripts):
                label = self.labels.get((access.tensor, place))
                away = _distance(subscript, index)
                if label is not None and away is not None:
                    found.setdefault(label.name, {})[away] = label
        chosen = self.dims.get(index)
        if chosen is None and len(found) > 1:
            names = ", ".join(f"`{each}`" for each in found)
            self.refuse(f"`{index}` runs over {names}", f'say which name it has: `dims={{"{index}": ...}}`')
        name = chosen or next(iter(found), index)
        places = found.get(name, {})
        if not places:
            return _Label(name, None)
        away = 0 if 0 in places else min(places, key=abs)
        shift = places[away].shift
        return _Label(name, None if shift is None else shift + (away if len(places) == 1 else 0))

    def _wrapped(self, name: str, tensor: str, array: Any, coords: Mapping[str, Any]) -> Any:
        import xarray  # noqa: PLC0415  (only calls with such arrays)

        labels = [self.labels[tensor, place] for place in range(self.program_rank(tensor))]
        dims = [each.name for each in labels]
        if len(set(dims)) < len(dims):
            twice = next(each for each in dims if dims.count(each) > 1)
            self.refuse(
                f"two dimensions of `{name}` would be called `{twice}`", 'name them: `dims={"i": ..., "j": ...}`'
            )
        pieces: dict[str, slice | None] = {}
        for label, (low, high) in zip(labels, self.numbers.boxes[tensor], strict=False):
            pieces[label.name] = None if label.shift is None else slice(low + label.shift, high + label.shift)
        kept: dict[str, Any] = {}
        for each, coordinate in coords.items():
            taken = _piece(coordinate, pieces)
            if taken is not None:
                kept[each] = taken
        first = next(each for each in self.values if is_labelled(each))
        return xarray.DataArray(array, coords=kept, dims=dims, name=name, attrs=first.attrs)


def _piece(coordinate: Any, pieces: Mapping[str, slice | None]) -> Any:
    """The part of a coordinate that belongs to a result; `None` where that is not all there."""
    taken: dict[str, slice] = {}
    for name, extent in zip(coordinate.dims, coordinate.shape, strict=True):
        piece = pieces.get(name)
        if piece is None or piece.start < 0 or piece.stop > extent:
            return None
        taken[name] = piece
    return coordinate.isel(taken).variable


def _distance(subscript: SizeExpr, index: str) -> int | None:
    """The number that is added to an index in a subscript of this index alone, others at 0; `None` where it is something else."""
    rest = subscript - index_of(index)
    known = rest.substitute({name: rest * 0 for name in rest.indices - {index}})
    return known.offset if known.is_constant else None


def _same(one: Any, other: Any) -> bool:
    """Whether two coordinates have the same numbers, NaN among them."""
    return bool(one.variable.equals(other.variable))
