"""Arrays on disk that no memory holds: `tc.zarr(f, "in.zarr", out="out.zarr")` reads, computes and writes chunk by chunk.

Chunks of results are those in which they are stored, so that no two tasks write one chunk. A chunk of an input that is decoded
is kept as long as there is room and a later task needs it; of the others, thin strips that later tasks need are kept.

Worked example: for a window of three rows and an input in bands of rows, every band is decoded once: when band 5 is computed,
band 6 is decoded for its first row, and is there when it is computed itself.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import prod
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tc_jupyter.compiler.definition import Definition, Options
from tc_jupyter.diagnostics import SourceText, Span, codes
from tc_jupyter.runtime.arguments import fail
from tc_jupyter.runtime.threads import get_threads

from .combine import combined
from .parts import Chunk, Layer
from .plan import Chunks, Piece, Plan, plan_of
from .regions import Region

SPARE = 1
"""Chunks, as large as all that a task holds, that are kept beside those of the tasks that run.

One task more than there are threads reads or writes while the others compute, so there are at most two chunks beside those.
"""
THIN = 4
"""A strip is kept apart from its chunk if it has at most the chunk's elements divided by this."""

Place = tuple[int, ...]
Use = tuple[int, Place]
"""The number of a task, and where in its region the piece of a chunk begins: it may need two pieces of one."""


def compute(
    definition: Definition, options: Options, values: Sequence[Any], out: Any, threads: int | None = None
) -> Any:
    """The results of a call, written to stores.

    Args:
        values: the arguments; arrays of zarr are read chunk by chunk.
        out: a path, or a tuple of paths in the order of the results; or arrays of zarr.
        threads: how many chunks are computed at a time; by default as many as calls use threads.

    Returns:
        The arrays of zarr with the results, one or a tuple.

    Raises:
        CallError: TC601 to TC609 as a call, TC671, TC673.
    """
    program = definition.program
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(outs) != len(program.results):
        _refuse(
            definition, f"`out=` has {len(outs)} stores for {len(program.results)} results", "give one for each result"
        )
    chunks = {name: _chunks(each) for name, each in zip(definition.names, values, strict=True) if is_store(each)}
    free = plan_of(definition, options, values, chunks)
    targets = [_Target(definition, free, name, each, values) for name, each in zip(program.results, outs, strict=True)]
    wanted = {name: target.chunks for name, target in zip(program.results, targets, strict=True)}
    same = all(free.chunks[name] == extents for name, extents in wanted.items())
    plan = free if same else plan_of(definition, options, values, chunks, wanted)
    arrays = dict(zip(definition.names, values, strict=True))
    try:
        _Run(plan, arrays, targets, threads or get_threads()).run()
    except BaseException:
        for target in targets:
            target.drop()
        raise
    found = tuple(target.array for target in targets)
    return found[0] if len(found) == 1 else found


def _refuse(definition: Definition, message: str, help: str) -> NoReturn:
    program = definition.program
    fail(codes.STORE, message, program.source, program.span, help=help)


def is_store(value: object) -> bool:
    """Whether a value is an array of zarr."""
    return type(value).__module__.startswith("zarr.") and hasattr(value, "chunks")


def opened(name: str, value: Any, about: SourceText, span: Span) -> Any:
    """The array of a store that is named by a path; other values as they are.

    Raises:
        CallError: TC673.
    """
    if not isinstance(value, (str, PathLike)):
        return value
    import zarr  # noqa: PLC0415  (only calls with stores)

    path = fspath(value)
    try:
        return zarr.open_array(path, mode="r")
    except Exception as problem:  # whatever the store is made of
        help = "give the path of an array, as in `group.zarr/temperature`"
        message = f"`{name}`: there is no array of zarr at `{path}` ({type(problem).__name__})"
        fail(codes.STORE, message, about, span, help=help)


def _chunks(array: Any) -> Chunks:
    """The extents of the chunks of an array of zarr."""
    pairs = zip(array.shape, array.chunks, strict=True)
    return tuple(tuple(min(step, extent - first) for first in range(0, extent, step)) or (0,) for extent, step in pairs)


class _Target:
    """Where one result is written."""

    def __init__(self, definition: Definition, plan: Plan, name: str, out: Any, given: Sequence[Any]) -> None:
        import zarr  # noqa: PLC0415

        self.made = ""
        tensor = dict(zip(plan.results, plan.tensors, strict=True))[name]
        self.tensor = tensor
        extents = plan.extents(tensor)[: plan.flat.program.tensor(tensor).written_rank]
        shape, dtype = tuple(map(sum, extents)), plan.dtype(tensor)
        if isinstance(out, (str, PathLike)):
            path = fspath(out)
            if any(is_store(each) and _same_place(each, path) for each in given):
                _refuse(definition, f"`{path}` is read and written", "give the result another path")
            fresh = not Path(path).exists()
            try:
                step = tuple(max(1, max(each)) for each in extents)
                self.array = (
                    zarr.create_array(path, shape=shape, dtype=dtype, chunks=step if shape else "auto")
                    if fresh
                    else zarr.open_array(path, mode="r+")
                )
            except Exception as problem:
                _refuse(
                    definition,
                    f"`{name}` cannot be written to `{path}`: {problem}",
                    "give the path of an array, or a new one",
                )
            self.made = path if fresh else ""
        else:
            self.array = out
        if not is_store(self.array):
            _refuse(definition, f"`out=` for `{name}` is a `{type(out).__name__}`", "give a path, or an array of zarr")
        found: tuple[tuple[int, ...], Any] = (tuple(self.array.shape), np.dtype(self.array.dtype))
        if found != (shape, dtype):
            shown = f"{found[1]} with shape {found[0]}, and `{name}` is {dtype} with shape {shape}"
            _refuse(definition, f"the store of `{name}` is {shown}", "give another path, or remove what is there")
        self.chunks = _chunks(self.array)

    def drop(self) -> None:
        """Remove a store that was made for this call."""
        if self.made:
            shutil.rmtree(self.made, ignore_errors=True)


def _same_place(array: Any, path: str) -> bool:
    with suppress(OSError, ValueError, TypeError, AttributeError):
        return Path(str(array.store_path).removeprefix("file://")).resolve() == Path(path).resolve()
    return False


# --- the run -------------------------------------------------------------------------------------------------------------


class _Source:
    """The chunks of one tensor that tasks read.

    Attributes:
        decode: reads a chunk.
        uses: of each chunk, the tasks that need it, and what they need.
        room: how many decoded chunks are kept.
        decoded: how many chunks were read.
    """

    def __init__(self, decode: Callable[[Place], Any], uses: Mapping[Place, Mapping[Use, Piece]], room: int) -> None:
        self.decode, self.uses, self.room = decode, uses, room
        self.decoded = 0
        self._whole: dict[Place, Future[Any]] = {}
        self._strips: dict[Use, Any] = {}
        self._waiting = {chunk: set(tasks) for chunk, tasks in uses.items()}  # for the whole chunk
        self._lock = threading.Lock()

    @property
    def kept(self) -> int:
        """How many chunks and strips are held."""
        return len(self._whole) + len(self._strips)

    def piece(self, task: int, piece: Piece) -> Any:
        """What a task needs of a chunk."""
        chunk, use = piece.chunk, use_of(task, piece)
        with self._lock:
            strip = self._strips.pop(use, None)
            if strip is not None:
                return strip
            found = self._whole.get(chunk)
            mine = found is None
            if found is None:
                found = self._whole[chunk] = Future()
        if mine:
            self._decode(use, chunk, found)
        values = found.result()[piece.inside]
        with self._lock:
            self._waiting[chunk].discard(use)
            self._strips.pop(use, None)  # made while this task waited for the chunk
        self._trim()
        return values

    def _decode(self, use: Use, chunk: Place, into: Future[Any]) -> None:
        try:
            values = self.decode(chunk)
        except BaseException as problem:
            with self._lock:
                del self._whole[chunk]
            into.set_exception(problem)
            raise
        into.set_result(values)
        with self._lock:
            self.decoded += 1
            for later in sorted(self._waiting[chunk] - {use}):
                inside = self.uses[chunk][later].inside
                if prod(each.stop - each.start for each in inside) * THIN <= values.size:
                    self._strips[later] = np.array(values[inside], order="C")  # no view, which would keep the chunk
                    self._waiting[chunk].discard(later)

    def _trim(self) -> None:
        """Forget chunks that no task waits for, and beyond the room those that are needed last."""
        with self._lock:
            ready = [chunk for chunk, each in self._whole.items() if each.done()]
            ready.sort(key=lambda chunk: min(self._waiting[chunk], default=(-1, ())))
            needed = [chunk for chunk in ready if self._waiting[chunk]]
            for chunk in ({*ready} - {*needed}) | {*needed[self.room :]}:
                del self._whole[chunk]


def use_of(task: int, piece: Piece) -> Use:
    """What tells a piece of a task from all others."""
    return task, tuple(each.start for each in piece.place)


class _Run:
    def __init__(self, plan: Plan, arrays: Mapping[str, Any], targets: Sequence[_Target], threads: int) -> None:
        self.plan, self.arrays, self.threads = plan, dict(arrays), max(1, threads)
        self.targets = {target.tensor: target.array for target in targets}
        program = plan.flat.program
        self.scalars = [self.arrays[name] for name in program.parameters if not program.tensor(name).written_rank]

    def run(self) -> None:
        """All layers, one after the other."""
        for layer in self.plan.layers:
            self.layer(layer)

    def layer(self, layer: Layer) -> None:
        plan, part = self.plan, layer.part
        layer = replace(layer, chunks=self.in_columns(layer))
        kernel = plan.kernel(layer)
        sources = {name: self.source(layer, name) for name in part.sources}
        parts: dict[Place, list[Any]] = {}
        lock, failed, computing = threading.Lock(), threading.Event(), threading.Semaphore(self.threads)
        for name in part.results:
            if name not in self.targets:  # made on the way
                shape = tuple(sum(each) for each in plan.extents(name)[: plan.flat.program.tensor(name).written_rank])
                self.arrays[name] = np.empty(shape, plan.dtype(name))
        rank = len(layer.grid)
        count = prod(len(edges) - 1 for edges in layer.cut)

        def task(number: int, chunk: Chunk) -> None:
            if failed.is_set():
                return
            try:
                given = [self.region(sources[name], number, name, chunk.regions[name]) for name in part.sources]
                with computing:
                    made = kernel(plan.numbers(chunk), given, self.scalars)
                if layer.cut:
                    with lock:
                        waiting = parts.setdefault(chunk.place[:rank], [])
                        waiting.append((chunk.place, made[0]))
                        if len(waiting) < count:
                            return
                    # in the order of the parts, whichever came first
                    found = [value for _, value in sorted(parts.pop(chunk.place[:rank]), key=lambda each: each[0])]
                    made = (combined(layer.operator, plan.dtype(part.results[0]), *found),)
                for name, values in zip(part.results, made, strict=True):
                    self.write(name, chunk.regions[name], values)
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(self.threads + 1) as pool:
            waiting = [pool.submit(task, number, chunk) for number, chunk in enumerate(layer.chunks)]
            wait(waiting, return_when=FIRST_EXCEPTION)
            for each in waiting if failed.is_set() else ():
                each.cancel()
        for each in waiting:
            if not each.cancelled():
                each.result()
        for name in part.results:
            if name in self.targets:
                self.arrays[name] = self.targets[name]

    def in_columns(self, layer: Layer) -> tuple[Chunk, ...]:
        """The chunks of a layer in columns as wide as chunks are kept, from top to bottom in each.

        Then what is decoded for a border below is there for its own task; only at the sides of a column it is decoded again. In
        rows over the whole width, almost all would be decoded twice.
        """
        others = len(layer.grid) - 1
        if layer.cut or others < 1:
            return tuple(layer.chunks)
        room = min(self.room(name) for name in layer.part.sources) if layer.part.sources else 1
        width = max(1, int(room ** (1 / others) + 1e-9))
        return tuple(sorted(layer.chunks, key=lambda each: ([n // width for n in each.place[1:]], each.place)))

    def room(self, name: str) -> int:
        """How many chunks of a tensor are kept."""
        grid = self.plan.grids[name]
        widest = tuple(max(pairwise(edges), key=lambda each: each[1] - each[0]) for edges in grid)
        return max(1, SPARE * self.plan.largest // max(1, self.plan.bytes_of(name, widest)))

    def source(self, layer: Layer, name: str) -> _Source:
        """What is read of a tensor, by all tasks of a layer."""
        plan = self.plan
        uses: dict[Place, dict[Use, Piece]] = {}
        for number, chunk in enumerate(layer.chunks):
            for piece in plan.pieces(name, chunk.regions[name]):
                uses.setdefault(piece.chunk, {})[use_of(number, piece)] = piece
        array, grid = self.arrays[name], plan.grids[name]
        rank = plan.flat.program.tensor(name).written_rank

        def decode(chunk: Place) -> Any:
            place = tuple(
                slice(edges[n] - edges[0], edges[n + 1] - edges[0]) for edges, n in zip(grid[:rank], chunk, strict=True)
            )
            return np.asarray(array[place])

        return _Source(decode, uses, self.room(name))

    def region(self, source: _Source, task: int, name: str, region: Region) -> Any:
        plan = self.plan
        pieces = plan.pieces(name, region)
        shape = tuple(high - low for low, high in plan.written(name, region))
        if len(pieces) == 1:
            return np.asarray(source.piece(task, pieces[0]), order="C")
        made = np.empty(shape, plan.dtype(name))
        for piece in pieces:
            made[piece.place] = source.piece(task, piece)
        return made

    def write(self, name: str, region: Region, values: Any) -> None:
        box = self.plan.written(name, region)
        begin = [edges[0] for edges in self.plan.grids[name]]
        place = tuple(slice(low - first, high - first) for (low, high), first in zip(box, begin, strict=False))
        target = self.targets.get(name)
        (self.arrays[name] if target is None else target)[place] = values
