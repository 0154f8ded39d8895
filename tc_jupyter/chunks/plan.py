"""What `f.chunked(X, W)` gives: which tasks compute the results of a call, found before anything is computed.

Worked example: for `def blur(float(N) X) -> (Y) { Y(i) = X(i) + X(i + 1) + X(i + 2) }` and four chunks of 1000 elements the
plan has four tasks, and every one but the last reads two elements of the next chunk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tc_jupyter.compiler.definition import Definition, Options
from tc_jupyter.diagnostics import Diagnostic, codes
from tc_jupyter.diagnostics.work import allowed
from tc_jupyter.runtime.arguments import call_error
from tc_jupyter.runtime.arrays import numpy_dtype
from tc_jupyter.runtime.kernel import read_inputs

from .flat import Flat, flat
from .kernel import ChunkKernel, kernel_of
from .parts import Chunk, Grid, Layer, layers_of, spans_of
from .regions import Region, Regions

LARGEST = 1 << 30
"""Bytes that one task may put together from several chunks; larger is only what has at most four times the largest chunk."""

Chunks = tuple[tuple[int, ...], ...]
"""Extents of the chunks, per dimension."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a chunk of a source, and where it stands in the region that is put together."""

    chunk: tuple[int, ...]
    inside: tuple[slice, ...]
    place: tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Halo:
    """What the chunks of a result read of an input beyond the chunk of it that they read most of.

    Attributes:
        before, after: per dimension, the most elements; `None`: all chunks of the dimension.
    """

    name: str
    before: tuple[int | None, ...]
    after: tuple[int | None, ...]

    @property
    def text(self) -> str:
        """`1+1, 0`: elements before and after, per dimension."""
        shown = (
            "all" if a is None else f"{a}+{b}" if a or b else "0" for a, b in zip(self.before, self.after, strict=True)
        )
        return ", ".join(shown)


@dataclass(frozen=True, repr=False)
class Plan:
    """How the results of one call are computed chunk by chunk.

    Attributes:
        name: of the def.
        results: names, in order; `tensors` are those that hold them.
        sizes: of the call.
        inputs: the arrays of the call by name, with their extents of chunks.
        grids: where the chunks of every tensor begin, that is an input or is made.
        layers: what is made, in order.
        redundant: how much is computed more than once, as a fraction of the whole.
    """

    name: str
    results: tuple[str, ...]
    tensors: tuple[str, ...]
    sizes: Mapping[str, int]
    inputs: Mapping[str, Chunks]
    grids: Mapping[str, Grid]
    layers: tuple[Layer, ...]
    redundant: float
    flat: Flat = field(compare=False)
    definition: Definition = field(compare=False)
    options: Options = field(compare=False)

    @cached_property
    def tasks(self) -> int:
        """How many tasks compute the results, beside those that make the inputs."""
        return sum(layer.tasks + len(self.shared(layer)) for layer in self.layers)

    @property
    def chunks(self) -> dict[str, Chunks]:
        """The extents of the chunks of every result."""
        return {name: extents_of(self.grids[tensor]) for name, tensor in zip(self.results, self.tensors, strict=True)}

    @cached_property
    def halo(self) -> dict[str, Halo]:
        """What chunks read beyond the own chunk of each source, by its name."""
        found: dict[str, Halo] = {}
        for layer in self.layers:
            for name in layer.part.sources:
                own = self._halo(name, layer)
                found[name] = own if name not in found else _wider(found[name], own)
        return found

    @cached_property
    def bytes(self) -> int:
        """The bytes that all tasks together read and write."""
        total = 0
        for layer in self.layers:
            for chunk in layer.chunks:
                total += sum(self.bytes_of(name, region) for name, region in chunk.regions.items())
        return total

    @cached_property
    def largest(self) -> int:
        """The most bytes that one task holds: what it reads, with halo, and what it writes."""
        sums = [
            sum(self.bytes_of(*each) for each in chunk.regions.items())
            for layer in self.layers
            for chunk in layer.chunks
        ]
        return max(sums, default=0)

    @property
    def why(self) -> tuple[str, ...]:
        """One line for each layer: what it makes, and why it is one."""
        return tuple(f"{', '.join(layer.part.results)}: {layer.why}" for layer in self.layers)

    def bytes_of(self, tensor: str, region: Region) -> int:
        """The size of a part of a tensor."""
        return self.flat.program.tensor(tensor).dtype.bytes * prod(high - low for low, high in region)

    def dtype(self, tensor: str) -> np.dtype[Any]:
        """The type of a tensor as NumPy has it."""
        return np.dtype(numpy_dtype(self.flat.program.tensor(tensor).element))

    def written(self, tensor: str, region: Region) -> Region:
        """A region as Python sees it, without the dimension of the parts of complex numbers."""
        return region[: self.flat.program.tensor(tensor).written_rank]

    def extents(self, tensor: str) -> Chunks:
        """The extents of the chunks of a tensor."""
        return extents_of(self.grids[tensor])

    def pieces(self, tensor: str, region: Region) -> tuple[Piece, ...]:
        """From which chunks of a tensor a region is put together."""
        pairs = zip(self.grids[tensor], self.written(tensor, region), strict=False)
        found = [list(_along(edges, span)) for edges, span in pairs]
        return tuple(
            Piece(tuple(n for n, _, _ in each), tuple(a for _, a, _ in each), tuple(b for _, _, b in each))
            for each in product(*found)
        )

    def shared(self, layer: Layer) -> tuple[tuple[str, Region], ...]:
        """Regions of several chunks that more than one task of a layer needs: they are put together once."""
        count: dict[tuple[str, Region], int] = {}
        for chunk in layer.chunks:
            for name in layer.part.sources:
                key = name, chunk.regions[name]
                count[key] = count.get(key, 0) + 1
        return tuple(key for key, times in count.items() if times > 1 and len(self.pieces(*key)) > 1)

    def kernel(self, layer: Layer) -> ChunkKernel:
        """What computes the chunks of a layer."""
        return kernel_of(self.flat, layer.part, self.options, self.definition)

    def numbers(self, chunk: Chunk) -> dict[str, int]:
        """All numbers that the kernel of a chunk is told."""
        return {**self.sizes, **chunk.numbers}

    def _halo(self, name: str, layer: Layer) -> Halo:
        rank = self.flat.program.tensor(name).written_rank
        before: list[int | None] = [0] * rank
        after: list[int | None] = [0] * rank
        for region in {chunk.regions[name] for chunk in layer.chunks}:
            for dimension, (edges, (low, high)) in enumerate(
                zip(self.grids[name], self.written(name, region), strict=False)
            ):
                if len(edges) > 2 and (low, high) == (edges[0], edges[-1]):
                    before[dimension] = after[dimension] = None
                if before[dimension] is None:
                    continue
                begin, end = max(spans_of(edges), key=lambda each: min(each[1], high) - max(each[0], low))
                before[dimension] = max(before[dimension] or 0, begin - low)
                after[dimension] = max(after[dimension] or 0, high - end)
        return Halo(name, tuple(before), tuple(after))

    def __repr__(self) -> str:
        moved, most = _bytes(self.bytes), _bytes(self.largest)
        lines = [
            f"<plan of {self.name}: {_counted(self.tasks, 'task')}, {moved} read and written, at most {most} at a time>"
        ]
        for name, chunks in self.inputs.items():
            halo = f", halo {self.halo[name].text}" if name in self.halo else ""
            lines.append(f"  {name}: {_shown(chunks)}{halo}")
        for layer in self.layers:
            made, tasks = ", ".join(layer.part.results), _counted(layer.tasks, "task")
            lines.append(f"  {made}: {_shown(extents_of(layer.grid))}, {tasks}: {layer.why}")
        if self.redundant > 0.0005:
            lines.append(f"  computed more than once: {self.redundant:.1%}")
        return "\n".join(lines)


def plan_of(
    definition: Definition,
    options: Options,
    values: Sequence[Any],
    chunks: Mapping[str, Chunks],
    wanted: Mapping[str, Chunks] | None = None,
) -> Plan:
    """The plan of a call.

    Args:
        options: how the def was compiled, with its own text alone, which travels with the tasks.
        values: numbers as they are, and anything with `shape` and `dtype` in place of an array.
        chunks: of the arrays, by name; arrays that are not named are one chunk.
        wanted: of results, by name; other results have chunks that follow those of the arrays.

    Raises:
        CallError: TC601 to TC609 as a call, TC671.
    """
    program = definition.program
    inputs = read_inputs(program, definition.written, [outline(each) for each in values])
    definition.verify(inputs)
    definition.numbers_at(inputs.sizes)
    about = flat(program, definition.found.ranges)
    numbers = Regions(about, inputs.sizes)
    grids: dict[str, Grid] = {}
    cut: dict[str, Chunks] = {}
    for parameter, value in zip(definition.written, values, strict=True):
        if not parameter.rank:
            continue
        extents = chunks.get(parameter.name) or tuple((extent,) for extent in value.shape)
        cut[parameter.name] = extents
        box = numbers.boxes[parameter.name]
        edges = [_edges(low, found) for (low, _), found in zip(box, extents, strict=False)]
        edges += [span for span in box[len(extents) :]]
        grids[parameter.name] = tuple(edges)
    made = grids.copy()
    roots = dict(zip(program.results, about.program.results, strict=True))
    for name, extents in (wanted or {}).items():
        box = numbers.boxes[roots[name]]
        edges = [_edges(low, found) for (low, _), found in zip(box, extents, strict=False)]
        made[roots[name]] = (*edges, *box[len(extents) :])
    with allowed(100_000_000):
        layers, redundant = layers_of(numbers, made, numbers.is_empty or any(each.block for each in program.statements))
    plan = Plan(
        program.name,
        program.results,
        about.program.results,
        {name: inputs.sizes[name] for name in (*program.sizes, *program.integer_scalars) if name in inputs.sizes},
        cut,
        made,
        layers,
        redundant,
        about,
        definition,
        options,
    )
    _refuse_large(plan)
    return plan


def _refuse_large(plan: Plan) -> None:
    """TC671, where a task would put together too much from many chunks."""
    for layer in plan.layers:
        for name in layer.part.sources:
            chunk = max(
                (plan.bytes_of(name, tuple(each)) for each in product(*map(spans_of, plan.grids[name]))), default=0
            )
            for region in {each.regions[name] for each in layer.chunks}:
                size = plan.bytes_of(name, region)
                if size <= max(LARGEST, 4 * chunk) or len(plan.pieces(name, region)) == 1:
                    continue
                program = plan.definition.program
                made = ", ".join(f"`{each}`" for each in layer.part.results)
                message = (
                    f"one chunk of {made} needs {_bytes(size)} of `{name}`, from chunks of at most {_bytes(chunk)}"
                )
                help = "cut the result finer, or give it in one chunk, or write the statement so that it reads less at a time"
                span = program.statement(layer.part.statements[-1]).span
                raise call_error(Diagnostic(codes.CHUNK_TOO_LARGE, span, message, help=help), program.source)


def outline(value: Any) -> Any:
    """An array without elements of its own that has the shape and the type of a value."""
    if isinstance(value, np.ndarray) or not hasattr(value, "shape") or not hasattr(value, "dtype") or not value.shape:
        return value
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)


def _along(edges: Sequence[int], span: tuple[int, int]) -> Iterator[tuple[int, slice, slice]]:
    """The chunks of one dimension that a span touches: number, what is taken of it, and where it goes.

    A span may begin before the dimension, or end behind it: it then goes on at the other end.
    """
    low, high = span
    length = edges[-1] - edges[0]
    at = low
    while at < high:
        turn = (at - edges[0]) // length * length  # 0 inside
        number = bisect_right(edges, at - turn) - 1
        end = min(high, edges[number + 1] + turn)
        start = edges[number] + turn
        yield number, slice(at - start, end - start), slice(at - low, end - low)
        at = end


def _edges(low: int, extents: Sequence[int]) -> tuple[int, ...]:
    """Where chunks begin; empty ones are left out."""
    edges = [low]
    for extent in extents:
        if extent:
            edges.append(edges[-1] + extent)
    return tuple(edges) if len(edges) > 1 else (low, low)


def extents_of(grid: Grid) -> Chunks:
    """The extents of chunks."""
    return tuple(tuple(high - low for low, high in spans_of(edges)) for edges in grid)


def _wider(one: Halo, other: Halo) -> Halo:
    def most(a: tuple[int | None, ...], b: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return tuple(None if x is None or y is None else max(x, y) for x, y in zip(a, b, strict=True))

    return Halo(one.name, most(one.before, other.before), most(one.after, other.after))


def _shown(chunks: Chunks) -> str:
    """`64 chunks (512, 512)`, or with the extents where they differ."""
    count = _counted(prod(map(len, chunks)), "chunk")
    extents = ", ".join(
        str(each[0]) if len(set(each[:-1])) <= 1 and each[-1] <= each[0] else f"{min(each)} to {max(each)}"
        for each in chunks
        if each
    )
    return f"{count} ({extents})"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _bytes(count: int) -> str:
    for unit, word in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {word}"
    return f"{count} bytes"
