"""Calls with arrays of Dask: the plan as a graph of tasks, and lazy arrays in front of it.

Every task is given whole chunks of the arrays that it reads. It takes what it needs of them, puts it together, and calls the
kernel; so there is one task per chunk of a result. Names follow from the text, the sizes and the names of the arrays: the same
call has the same names.

Worked example: `f(X)` for a `dask.array` of 64 chunks is one of 64 chunks, whose graph has 64 tasks beside those of `X`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import getitem
from typing import Any, TypeAlias

import numpy as np

from tc_jupyter.compiler.definition import Definition, Options
from tc_jupyter.diagnostics import codes
from tc_jupyter.program import DType
from tc_jupyter.runtime.arguments import fail
from tc_jupyter.runtime.arrays import lent, numpy_dtype

from .combine import combined
from .kernel import ChunkKernel
from .parts import FAN_IN, Chunk, Layer
from .plan import Piece, Plan, plan_of
from .regions import Region

Key: TypeAlias = Any


def is_lazy(value: object) -> bool:
    """Whether a value is an array of Dask."""
    return type(value).__module__.startswith("dask.array") and hasattr(value, "dask")


def planned(definition: Definition, options: Options, values: Sequence[Any]) -> Plan:
    """The plan of a call.

    Raises:
        CallError: TC601 to TC609 as a call, TC616, TC670, TC671.
    """
    values = _in_memory(values)
    known = [_known(definition, name, value) for name, value in zip(definition.names, values, strict=False)]
    chunks = {
        name: tuple(map(tuple, value.chunks))
        for name, value in zip(definition.names, values, strict=False)
        if is_lazy(value) and value.ndim
    }
    return plan_of(definition, options, known, chunks)


def lazy(plan: Plan, values: Sequence[Any]) -> Any:
    """The results of a planned call, as lazy arrays."""
    return _Graph(plan, _in_memory(values)).results()


def _in_memory(values: Sequence[Any]) -> list[Any]:
    """The arguments of a call with PyTorch's tensors and JAX's arrays on the CPU as NumPy's arrays."""
    return [value if (own := lent(value, written=False)) is None else own for value in values]


def _known(definition: Definition, name: str, value: Any) -> Any:
    """A value of which the plan needs the shape alone; a lazy number that is no integer is any number."""
    if not is_lazy(value):
        return value
    program = definition.program
    tensor = program.tensor(name)
    if any(math.isnan(extent) for extent in value.shape):
        message = f"the extents of the chunks of `{name}` are not known"
        help = f"call `{name}.compute_chunk_sizes()` before, which computes what `{name}` is made of"
        fail(codes.UNKNOWN_CHUNKS, message, program.source, tensor.span, help=help)
    if value.ndim or tensor.written_rank:
        return value
    if tensor.dtype.is_integer:
        message = f"`{name}` takes part in sizes and ranges, and is not computed yet"
        fail(codes.CHUNKED_CALL, message, program.source, tensor.span, help=f"pass `int({name}.compute())`")
    if np.dtype(value.dtype) != _numpy(tensor.element) and not np.can_cast(
        value.dtype, _numpy(tensor.element), "same_kind"
    ):
        return np.zeros((), value.dtype)  # which a call refuses
    return False if tensor.dtype is DType.BOOL else 0.0


def _numpy(dtype: DType) -> np.dtype[Any]:
    return np.dtype(numpy_dtype(dtype))


def one_chunk(value: Any) -> Any:
    """An array as an array of Dask of one chunk."""
    import dask.array as da  # noqa: PLC0415

    array = np.asarray(value)
    return da.from_array(array, chunks=array.shape, asarray=False)  # pyright: ignore[reportArgumentType]


class _Graph:
    """The graph of a plan."""

    def __init__(self, plan: Plan, values: Sequence[Any]) -> None:
        from dask.base import tokenize  # noqa: PLC0415

        self.plan = plan
        self.tasks: dict[Key, Any] = {}
        names = plan.definition.names
        given = dict(zip(names, values, strict=True))
        program = plan.definition.program
        self.arrays: dict[str, Any] = {}
        for name, value in given.items():
            if program.tensor(name).written_rank:
                whole = value if is_lazy(value) else one_chunk(value)
                self.arrays[name] = whole
        self.scalars = [given[name] for name in names if not program.tensor(name).written_rank]
        self.kernels = {id(layer): plan.kernel(layer) for layer in plan.layers}
        sources = [(name, each.name) for name, each in self.arrays.items()]
        lazy_numbers = [each.name if is_lazy(each) else each for each in self.scalars]
        keys = [each.key for each in self.kernels.values()]
        self.token = tokenize(program.name, keys, dict(plan.sizes), sources, lazy_numbers, plan.grids)
        self.chunk_numbers = {
            name: [[n for n, extent in enumerate(along) if extent] or [0] for along in each.chunks]
            for name, each in self.arrays.items()
        }
        self.made: dict[str, str] = {}
        for layer in plan.layers:
            self.add(layer)

    def name_of(self, tensor: str) -> str:
        """The name of the chunks of a tensor in the graph."""
        return f"{self.plan.name}-{tensor}-{self.token}"

    def chunk(self, tensor: str, place: tuple[int, ...]) -> Key:
        """The key of a chunk."""
        if tensor in self.made:
            return (self.made[tensor], *place)
        numbers = self.chunk_numbers[tensor]
        return (self.arrays[tensor].name, *(along[n] for along, n in zip(numbers, place, strict=True)))

    def add(self, layer: Layer) -> None:
        """The tasks of a layer."""
        from dask._task_spec import Task, TaskRef  # noqa: PLC0415

        plan, part, kernel = self.plan, layer.part, self.kernels[id(layer)]
        shared = {each: self.put_together(number, layer, *each) for number, each in enumerate(plan.shared(layer))}
        joined = "+".join(part.results)
        name = self.name_of(joined)
        own = name if not layer.cut and len(part.results) == 1 else f"{self.plan.name}-parts of {joined}-{self.token}"
        numbers = [TaskRef((each.name,)) if is_lazy(each) else each for each in self.scalars]
        for chunk in layer.chunks:
            refs: list[Any] = []
            recipes: list[Recipe] = []
            for source in part.sources:
                region = chunk.regions[source]
                if (source, region) in shared:
                    refs.append(TaskRef(shared[source, region]))
                    recipes.append(None)
                    continue
                pieces = plan.pieces(source, region)
                refs += [TaskRef(self.chunk(source, piece.chunk)) for piece in pieces]
                recipes.append(recipe_of(plan, source, region, pieces))
            key = (own, *self.place(layer, chunk))
            told = plan.numbers(chunk)
            single = len(part.results) == 1
            self.tasks[key] = Task(key, run_chunk, kernel, told, tuple(recipes), single, len(refs), *refs, *numbers)
        if layer.cut:
            self.combine(layer, own, name)
        elif len(part.results) > 1:
            for number, tensor in enumerate(part.results):
                for chunk in layer.chunks:
                    place = self.place(layer, chunk)
                    rank = self.plan.flat.program.tensor(tensor).written_rank
                    key = (self.name_of(tensor), *(place if not part.entire else (0,) * rank))
                    self.tasks[key] = Task(key, getitem, TaskRef((own, *place)), number)
        for tensor in part.results:
            self.made[tensor] = self.name_of(tensor)

    def place(self, layer: Layer, chunk: Chunk) -> tuple[int, ...]:
        """The numbers of a chunk, without that of the dimension of the parts of complex numbers."""
        rank = self.plan.flat.program.tensor(layer.part.results[0]).written_rank
        return chunk.place[:rank] + chunk.place[len(layer.grid) :]

    def put_together(self, number: int, layer: Layer, source: str, region: Region) -> Key:
        """A task that makes a region that several tasks need."""
        from dask._task_spec import Task, TaskRef  # noqa: PLC0415

        plan = self.plan
        pieces = plan.pieces(source, region)
        name = f"{self.plan.name}-{source} for {'+'.join(layer.part.results)}-{self.token}"
        key = (name, number)
        refs = [TaskRef(self.chunk(source, piece.chunk)) for piece in pieces]
        self.tasks[key] = Task(key, put_together, recipe_of(plan, source, region, pieces), *refs)
        return key

    def combine(self, layer: Layer, own: str, name: str) -> None:
        """The tree of tasks that make results of their parts."""
        from dask._task_spec import Task, TaskRef  # noqa: PLC0415

        (tensor,) = layer.part.results
        dtype = self.plan.dtype(tensor)
        rank = self.plan.flat.program.tensor(tensor).written_rank
        parts: dict[tuple[int, ...], list[Key]] = {}
        for chunk in layer.chunks:
            place = self.place(layer, chunk)
            parts.setdefault(place[:rank], []).append((own, *place))
        for place, keys in parts.items():
            level = 0
            while len(keys) > 1 or not level:
                level += 1
                groups = [keys[n : n + FAN_IN] for n in range(0, len(keys), FAN_IN)]
                last = len(groups) == 1
                keys = [(name, *place) if last else (f"{own} {level}", *place, n) for n in range(len(groups))]
                for key, group in zip(keys, groups, strict=True):
                    refs = [TaskRef(each) for each in group]
                    self.tasks[key] = Task(key, combined, layer.operator, dtype if last else None, *refs)

    def results(self) -> Any:
        """Lazy arrays in the order of the results."""
        import dask.array as da  # noqa: PLC0415
        from dask.highlevelgraph import HighLevelGraph  # noqa: PLC0415

        plan = self.plan
        lazy_numbers = [each for each in self.scalars if is_lazy(each)]
        layers: dict[str, dict[Key, Any]] = {}
        needed: dict[str, set[str]] = {}
        for key, task in self.tasks.items():
            layers.setdefault(key[0], {})[key] = task
            needed.setdefault(key[0], set()).update(each[0] for each in task.dependencies if each[0] != key[0])
        before = [each.__dask_graph__() for each in (*self.arrays.values(), *lazy_numbers)]
        graph = HighLevelGraph.merge(*before, HighLevelGraph(layers, needed))
        found: list[Any] = []
        for tensor in plan.tensors:
            rank = plan.flat.program.tensor(tensor).written_rank
            chunks = plan.extents(tensor)[:rank]
            meta = np.empty((0,) * rank, plan.dtype(tensor))
            make: Any = da.Array
            found.append(make(graph, name=self.made[tensor], chunks=chunks, meta=meta))
        return found[0] if len(found) == 1 else tuple(found)


Recipe = tuple[tuple[int, ...], np.dtype[Any], tuple[tuple[tuple[slice, ...], tuple[slice, ...]], ...]] | None
"""Shape and type of a region, and for each piece what is taken of its chunk and where it goes; `None`: the chunk as it is."""


def recipe_of(plan: Plan, source: str, region: Region, pieces: Sequence[Piece]) -> Recipe:
    """How a region is put together from its pieces."""
    written = plan.written(source, region)
    shape = tuple(high - low for low, high in written)
    if len(pieces) == 1:
        (piece,) = pieces
        whole = all(
            (edges[n + 1] - edges[n]) == extent
            for edges, n, extent in zip(plan.grids[source], piece.chunk, shape, strict=False)
        )
        if whole:
            return None
    return shape, plan.dtype(source), tuple((piece.inside, piece.place) for piece in pieces)


def put_together(recipe: Recipe, *chunks: Any) -> Any:
    """A region, of its chunks."""
    if recipe is None:
        (chunk,) = chunks
        return chunk
    shape, dtype, pieces = recipe
    if len(pieces) == 1:
        (inside, _), (chunk,) = pieces[0], chunks
        return np.ascontiguousarray(np.asarray(chunk)[inside])
    made = np.empty(shape, dtype)
    for (inside, place), chunk in zip(pieces, chunks, strict=True):
        made[place] = chunk[inside]
    return made


def run_chunk(
    kernel: ChunkKernel, numbers: Mapping[str, int], recipes: Sequence[Recipe], single: bool, count: int, *given: Any
) -> Any:
    """One task: put together what a chunk needs, and compute it."""
    chunks, scalars = given[:count], given[count:]
    sources: list[Any] = []
    taken = 0
    for recipe in recipes:
        pieces = 1 if recipe is None else len(recipe[2])
        sources.append(put_together(recipe, *chunks[taken : taken + pieces]))
        taken += pieces
    made = kernel(numbers, sources, scalars)
    return made[0] if single else made
