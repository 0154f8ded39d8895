"""A def bound to an engine: reads the arguments of a call, checks, allocates, launches, hands back.

Comes in: a checked program with its call-time numbers (`CallNumbers`) and one runner per kernel. Goes out: `BoundKernel`, which
runs any arrays of the layout class it was built for.

Worked example: for `C(i,j) +=! A(i,k) * B(k,j)` the call reads `A` and `B`, finds `M, K, N`, asks `numbers` for the shape of `C`,
allocates it in the library of `A`, runs the kernels in order and returns `C`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from tc_jupyter.diagnostics import CallError, Diagnostic, codes
from tc_jupyter.diagnostics.values import shown_tensor
from tc_jupyter.loops import Buffer
from tc_jupyter.program import DType, Expr, IndexVar, Program, Read, Statement, walk
from tc_jupyter.ranges import Fact

from .arguments import (
    Number,
    Parameter,
    call_error,
    exchanged,
    fail,
    one_device,
    read_array,
    read_complex,
    read_scalar,
    refuse_too_large,
    sizes_told,
    unify,
)
from .arrays import (
    CUPY,
    NUMPY,
    ArgumentProblem,
    ArrayView,
    Library,
    as_numpy,
    copied,
    copy_into,
    device_memory,
    index_bits,
    share_memory,
    storage_dtype,
    view_of,
)
from .launch import Failure, LaunchInfo, Runner, integers
from .memory import aligned_empty
from .pairs import in_numbers, in_pairs, pair

Made = TypeVar("Made")


@dataclass(slots=True)
class Numbers:
    """What the sizes of one call make of a def.

    Attributes:
        sizes: every size, integer scalar and extent (`T.0`) by name.
        shapes: extents of every computed tensor.
        origins: logical index of element 0 of every computed tensor.
    """

    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    origins: Mapping[str, tuple[int, ...]]


class CallNumbers(Protocol):
    """The generated numbers of a def and its checks on data; they raise nothing and return what failed."""

    def bind(self, sizes: Mapping[str, int], check_sizes: bool) -> Numbers | Diagnostic:
        """Ranges, shapes and size preconditions as numbers."""
        ...

    def scan(
        self, number: int, numbers: Numbers, tensors: Mapping[str, ArrayView], scalars: Mapping[str, Number]
    ) -> Diagnostic | None:
        """Look at the values of the index tensors of one check before the statement that uses them runs."""
        ...

    def limits(
        self, number: int, numbers: Numbers, tensors: Mapping[str, ArrayView]
    ) -> tuple[tuple[str, int, int, bool], ...] | None:
        """Index tensors whose elements are to be within limits, and to rise if asked, if a check asks that at these sizes."""
        ...

    def point(self, failure: Failure) -> Diagnostic:
        """The message of a check inside the loops."""
        ...


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arguments of one call.

    Attributes:
        arrays: rank 1 and more, by name.
        scalars: rank 0, by name.
        sizes: values of the size names of the signature and of integer scalars.
        device: of all arrays.
        library: makes the results: the first library that is not NumPy.
    """

    arrays: Mapping[str, ArrayView]
    scalars: Mapping[str, Number]
    sizes: Mapping[str, int]
    device: str
    library: Library


def read_inputs(
    program: Program,
    parameters: Sequence[Parameter],
    values: Sequence[object],
    known: Mapping[str, int] | None = None,
) -> Inputs:
    """Check and read every argument.

    Args:
        known: sizes that no argument has to tell.

    Raises:
        CallError: TC605, TC607, TC608, TC609.
    """
    try:
        return _inputs(program, parameters, values, known)
    except CallError as error:
        said = error.diagnostic
        wrong = next((number for number, each in enumerate(parameters) if each.span == said.span), None)
        if said.code is not codes.ARGUMENT_RANK or wrong is None or not (help := exchanged(parameters, values, wrong)):
            raise
        raise call_error(replace(said, help=help), program.source) from None


def _inputs(
    program: Program, parameters: Sequence[Parameter], values: Sequence[object], known: Mapping[str, int] | None
) -> Inputs:
    arrays: dict[str, ArrayView] = {}
    scalars: dict[str, Number] = {}
    given: list[Parameter] = []
    pairs: dict[str, ArrayView] = {}
    library = NUMPY

    def told() -> Mapping[str, int]:
        return {**sizes_told(parameters, values), **(known or {})}

    for parameter, value in zip(parameters, values, strict=True):
        if parameter.rank == 0 and parameter.dtype.is_complex:
            number = read_complex(parameter, value, program.source)
            pairs[parameter.name] = view_of(pair(number, parameter.dtype))
            continue
        if parameter.rank == 0:
            scalars[parameter.name] = read_scalar(parameter, value, program.source)
            continue
        view = read_array(parameter, value, program.source, told)
        arrays[parameter.name] = view
        given.append(parameter)
        if library is NUMPY:
            library = view.library
    views = [arrays[parameter.name] for parameter in given]
    sizes = unify(given, [view.shape for view in views], program, scalars, known)
    for name, value in scalars.items():
        if isinstance(value, int):
            sizes[name] = int(value)
    device = one_device(given, views, program)
    pairs = {name: in_pairs(arrays[name]) if name in arrays else _on(device, pairs[name]) for name in (*arrays, *pairs)}
    return Inputs(pairs, scalars, sizes, device, library)


def _on(device: str, view: ArrayView) -> ArrayView:
    """A small array of the host on a device."""
    return view if device == "cpu" else view_of(device_memory().device_array(as_numpy(view), device))


@dataclass(frozen=True, slots=True)
class Step:
    """One launch.

    Attributes:
        scans: numbers of the checks on data that run before it.
        temporaries: the buffers of scope `global` that the kernel uses, and their extents from sizes and scalars.
    """

    kernel: LaunchInfo
    run: Runner
    scans: tuple[int, ...]
    temporaries: tuple[tuple[Buffer, Callable[[Mapping[str, Number]], tuple[int, ...]]], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout class of a call: which buffers have general strides, how wide index arithmetic is, what `out=` means.

    Attributes:
        strided: names of arguments, and of the storage of results, that are not row-major.
        index_bits: 32 or 64.
        accumulate: results are combined onto the content of `out=`.
        constants: sizes that the code is made for.
        empty: a size is 0, or a loop has no iterations. What a stage must compute is known for sizes of 1 and more, so such a call
            runs every statement whole.
        facts: what holds of other sizes of all calls of the class: tiles are chosen by them, and the code may rely on them.
        most: sizes that no call of the class exceeds: the code may be for such calls only.
        passed: numbers of the checks at points that pass with the sizes of all calls of the class, whatever the data.
    """

    strided: frozenset[str]
    index_bits: int
    accumulate: bool = False
    constants: tuple[tuple[str, int], ...] = ()
    facts: tuple[tuple[str, Fact], ...] = ()
    empty: bool = False
    most: tuple[tuple[str, int], ...] = ()
    passed: tuple[int, ...] = ()


def layout_of(
    inputs: Inputs,
    outputs: Mapping[str, ArrayView],
    shapes: Mapping[str, tuple[int, ...]],
    program: Program,
    wide: bool | None = None,
) -> Layout:
    """The layout class of the arrays of a call; arrays that must be copied anyway count as row-major.

    Args:
        wide: whether indices are 64 bits wide; `None` finds out whether they must be.
    """
    arrays = (*inputs.arrays.items(), *outputs.items())
    strided = frozenset(root_of(program, name) for name, view in arrays if not view.contiguous and view.usable)
    if wide is None:
        far = any(index_bits(view) == 64 for _, view in arrays)
        wide = far or needs_wide_indices(shapes, inputs.sizes, program)
    return Layout(strided, 64 if wide else 32)


def needs_wide_indices(shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int], program: Program) -> bool:
    """Whether row-major arrays of these shapes, or sizes themselves, are beyond 32 bits."""
    return any(
        math.prod(shape) * program.tensor(name).dtype.bytes > 0x7FFF_FFFF for name, shape in shapes.items()
    ) or any(not -0x8000_0000 <= size <= 0x7FFF_FFFF for size in sizes.values())


# overlap -------------------------------------------------------------------------------------------------------------------------


def root_of(program: Program, name: str) -> str:
    """The tensor whose storage `name` is."""
    tensor = program.tensor(name)
    while tensor.view_of is not None:
        tensor = program.tensor(tensor.view_of)
    return tensor.name


def why_elsewhere(program: Program, source: str, target: str) -> str | None:
    """Why `target` cannot be written over `source`, as a clause about `source`.

    `None` where it can: every read of `source` is at the element that its statement writes to `target`, and happens before that.
    """
    if program.tensor(source).box is not None:
        return "which begins at another index"  # its element 0 is not that of index 0
    pairs = program.tensor(source).pairs  # an engine gets a copy of what it reads: both parts are those of before
    for statement in program.statements:
        reads = [read for read in _reads(statement) if root_of(program, read.tensor) == source]
        if not reads:
            continue
        if root_of(program, statement.target) != target:
            return f"which the statement on `{statement.target}` reads"
        if statement.reduction_indices and not statement.computed:  # else these are all of its indices
            return f"which is read several times for an element of `{target}`"
        own = tuple(index.name for index in statement.output_indices)
        own = own[:-1] if pairs and program.tensor(target).pairs else own
        if statement.computed or any(_plain_names(read.indices[: len(read.indices) - pairs]) != own for read in reads):
            return "which is read elsewhere than at the written position"
    writers = [s for s in program.statements if root_of(program, s.target) == target]
    return None if len(writers) == 1 else f"and {len(writers)} statements write `{target}`: in place, only one may"


def _reads(statement: Statement) -> tuple[Read, ...]:
    return tuple(node for node in walk(statement.value) if isinstance(node, Read))


def _plain_names(indices: Sequence[Expr]) -> tuple[str, ...] | None:
    names = [index.name for index in indices if isinstance(index, IndexVar)]
    return tuple(names) if len(names) == len(indices) else None


def resolve_overlap(
    program: Program, inputs: Inputs, outputs: Mapping[str, ArrayView], origins: Mapping[str, tuple[int, ...]]
) -> Inputs:
    """Refuse `out=` that shares memory in a way that changes results; copy an input that may be overwritten in place.

    Raises:
        CallError: TC611.
    """
    names = list(outputs)
    for position, name in enumerate(names):
        for other in names[:position]:
            if share_memory(outputs[name], outputs[other]):
                span = program.tensor(name).span
                fail(
                    codes.OVERLAP,
                    f"`out=` for `{other}` and `{name}` share memory",
                    program.source,
                    span,
                    help="pass a copy",
                )
    arrays = dict(inputs.arrays)
    for name, view in inputs.arrays.items():
        for result, target in outputs.items():
            if not share_memory(view, target):
                continue
            same = (view.address, view.shape, view.strides) == (target.address, target.shape, target.strides)
            why = why_elsewhere(program, name, root_of(program, result)) if same else "of which it is another part"
            if why is None and any(origins[result]):
                why = f"and `{result}` begins at another index"
            if why is not None:
                message = f"`out=` for `{result}` shares memory with `{name}`, {why}"
                fail(
                    codes.OVERLAP, message, program.source, program.tensor(result).span, help=f"pass a copy of `{name}`"
                )
            # an engine may compute elements twice (overlapping vectors): the values must not change meanwhile
            arrays[name] = replace(copied(view), library=view.library)
    return replace(inputs, arrays=arrays)


# the call ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A def on an engine, for one layout class; called with any sizes.

    Attributes:
        engine: `interpreter`, `cpu` or `cuda`.
    """

    program: Program
    numbers: CallNumbers
    steps: tuple[Step, ...]
    layout: Layout
    engine: str

    def run(
        self, inputs: Inputs, numbers: Numbers, outputs: Mapping[str, ArrayView], check: str
    ) -> tuple[tuple[ArrayView, ...], Mapping[str, ArrayView]]:
        """Allocate, launch, and return the results in order, and where every buffer was.

        Args:
            outputs: the arrays of `out=` by result, or nothing.
            check: `all`, `sizes` or `none`.

        Raises:
            CallError: TC502, TC504, TC604, TC605, TC612.
        """
        program = self.program
        for step in self.steps:
            refuse_larger(step.kernel.most, numbers.sizes, program)
        storage = {name: self._prepared(name, view) for name, view in inputs.arrays.items()}
        results = self._results(inputs, numbers, outputs)
        storage.update({root_of(program, name): view for name, view in results.items()})
        self._temporaries(storage, {**numbers.sizes, **inputs.scalars}, inputs.device)
        for step in self.steps:
            self.start(step, step.run, numbers, storage, inputs.scalars, check)
        return tuple(self._finished(name, results, outputs) for name in program.results), storage

    def start(
        self,
        step: Step,
        run: Runner,
        numbers: Numbers,
        storage: Mapping[str, ArrayView],
        scalars: Mapping[str, Number],
        check: str,
    ) -> None:
        """Look at the data that a step relies on, and launch it.

        Args:
            run: of the step, or one that has its launch at these sizes ready.
            check: `all`, `sizes` or `none`.

        Raises:
            CallError: TC502, TC604.
        """
        if check == "all":
            self._scan(step, numbers, storage, scalars)
        try:
            failure = run(storage, numbers.sizes, scalars)
        except MemoryError:
            message = f"`{step.kernel.name}` needs working memory of the threads, which this device does not have"
            fail(codes.OUT_OF_MEMORY, message, self.program.source, self.program.span)
        if failure is not None and check == "all":
            raise call_error(self.numbers.point(failure), self.program.source)

    def _prepared(self, name: str, view: ArrayView) -> ArrayView:
        if view.usable and (view.contiguous or name in self.layout.strided):
            return view
        return self._memory(lambda: copied(view), name, self.program.tensor(name).dtype, view.shape)

    def _results(self, inputs: Inputs, numbers: Numbers, outputs: Mapping[str, ArrayView]) -> dict[str, ArrayView]:
        results: dict[str, ArrayView] = {}
        for name in self.program.results:
            given = outputs.get(name)
            if given is not None and given.usable:
                results[name] = given
            elif given is not None and self.layout.accumulate:
                results[name] = self._memory(
                    lambda view=given: copied(view), name, self.program.tensor(name).dtype, given.shape
                )
            else:
                results[name] = self._allocate(inputs.library, name, numbers.shapes[name], inputs.device)
        return results

    def _temporaries(self, storage: dict[str, ArrayView], numbers: Mapping[str, Number], device: str) -> None:
        for step in self.steps:
            for buffer, extents in step.temporaries:
                if buffer.name not in storage:
                    shape = tuple(max(0, extent) for extent in extents(numbers))  # a size of 0 may give less
                    make = _scratch(buffer, shape, device)
                    storage[buffer.name] = self._memory(make, buffer.name, buffer.dtype, shape)

    def _allocate(self, library: Library, name: str, shape: tuple[int, ...], device: str) -> ArrayView:
        tensor = self.program.tensor(name)
        dtype, shape = tensor.element, shape[:-1] if tensor.pairs else shape
        try:
            return in_pairs(self._memory(lambda: library.allocate(shape, dtype, device), name, dtype, shape))
        except ArgumentProblem as problem:
            message = f"`{name}` has elements of type {dtype.value}; {problem.came}"
            fail(codes.DEVICE_TYPE, message, self.program.source, self.program.tensor(name).span, help=problem.help)

    def _memory(self, make: Callable[[], ArrayView], name: str, dtype: DType, shape: tuple[int, ...]) -> ArrayView:
        return in_memory(make, self.program, name, dtype, shape)

    def _scan(
        self, step: Step, numbers: Numbers, storage: Mapping[str, ArrayView], scalars: Mapping[str, Number]
    ) -> None:
        if not step.scans:
            return
        tensors = dict(storage)
        for tensor in self.program.tensors:
            root = root_of(self.program, tensor.name)
            if root in storage:
                tensors[tensor.name] = storage[root]
        for number in step.scans:
            problem = self.numbers.scan(number, numbers, tensors, scalars)
            if problem is not None:
                raise call_error(problem, self.program.source)

    def _finished(self, name: str, results: Mapping[str, ArrayView], outputs: Mapping[str, ArrayView]) -> ArrayView:
        given = outputs.get(name)
        if given is not None and results[name] is not given:
            copy_into(given, results[name])
        found = results[name] if given is None else given
        return in_numbers(found) if self.program.tensor(name).pairs else found


def in_memory(make: Callable[[], Made], program: Program, name: str, dtype: DType, shape: tuple[int, ...]) -> Made:
    """What `make` gives: an array of that shape for a tensor of a program.

    Raises:
        CallError: TC502, no array is so large; TC612, this device has not so much memory.
    """
    span = next((tensor.span for tensor in program.tensors if tensor.name == name), program.span)
    refuse_too_large(name, shape, dtype, program.source, span)
    try:
        return make()
    except MemoryError:
        pass
    nbytes = math.prod(shape) * dtype.bytes
    shown = shown_tensor(name, program.source, span)
    message = f"{shown} of shape {shape} needs {nbytes:,} bytes, which this device does not have"
    fail(codes.OUT_OF_MEMORY, message, program.source, span)


def refuse_larger(limits: Sequence[tuple[str, int]], sizes: Mapping[str, int], program: Program) -> None:
    """Refuse a call with a size that the schedule of a kernel has promised not to meet: its `most`.

    Raises:
        CallError: TC605.
    """
    for name, most in limits:
        if sizes.get(name, 0) > most:
            message = f"the schedule is for `{name}` of at most {most} (`at_most`); {sizes[name]} came"
            fail(codes.SIZE_CONFLICT, message, program.source, program.span, help="use a schedule without this limit")


def pitched(shape: tuple[int, ...], pad: int) -> tuple[int, ...]:
    """The shape with so many more elements in every row."""
    return (*shape[:-1], shape[-1] + pad) if shape else shape


def _scratch(buffer: Buffer, shape: tuple[int, ...], device: str) -> Callable[[], ArrayView]:
    """Makes the memory of a temporary; rows have the pitch that `buffer.pad` asks for."""
    whole = pitched(shape, buffer.pad)

    def make() -> ArrayView:
        plain = DType.UINT16 if buffer.dtype is DType.BFLOAT16 else buffer.dtype
        if device != "cpu":
            view = CUPY.allocate(whole, plain, device)
        else:
            view = view_of(aligned_empty(whole, storage_dtype(buffer.dtype), buffer.align))
        like = whole == shape and plain is buffer.dtype
        return view if like else replace(view, dtype=buffer.dtype, shape=shape)

    return make


def bind_kernel(
    program: Program,
    numbers: CallNumbers,
    kernels: Sequence[LaunchInfo],
    runners: Sequence[Runner],
    layout: Layout,
    engine: str,
    scans: Sequence[tuple[int, ...]] = (),
) -> BoundKernel:
    """A callable def from its kernels in order, one runner for each, and the checks on data to run before each."""
    scans = scans or [()] * len(kernels)
    steps = tuple(_step(*each) for each in zip(kernels, runners, scans, strict=True))
    return BoundKernel(program, numbers, steps, layout, engine)


def _step(kernel: LaunchInfo, run: Runner, scans: tuple[int, ...]) -> Step:
    owned = [buffer for buffer in kernel.buffers if buffer.scope == "global"]
    return Step(kernel, run, scans, tuple((buffer, integers(buffer.shape, kernel)) for buffer in owned))
