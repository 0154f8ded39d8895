"""The short way of a call: NumPy arguments of a known layout on the CPU engine, as generated Python.

One function is written per layout class. It reads extents, tests conditions, allocates, packs the slots and runs; whenever
something is not as expected (another library, an empty array, a false condition, no memory), it hands the arguments to the general
path, which decides and explains. So nothing is ever accepted here that the general path would refuse.

Worked example: for `o(i) +=! A(i,j) * B(j)` the function of two contiguous arguments is

    def run(a0, a1):
        R, C = a0.shape
        if a1.shape[0] != C or R < 1 or C < 1: return general((a0, a1))
        r0 = empty((R,), t0)
        d = block0(); pack0(d, 0, address(a0), address(a1), address(r0), R, C); code0(d)
        return r0

With `out=` the arrays to write into are arguments after the others: `run(a0, a1, a2)` tests the shape of `a2`, and that it shares
no memory with `a0` and `a1`, where the other one allocates.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from tc_jupyter.codegen import Argument
from tc_jupyter.diagnostics import CallError
from tc_jupyter.program import DType
from tc_jupyter.ranges import python_code, to_python

from . import native_call, threads
from .address import numpy_address
from .arguments import Formula, Parameter, Solved
from .arrays import (
    adopted,
    apart,
    lent,
    lent_number,
    numpy_dtype,
    share_elements,
    steps_meet,
    storage_dtype,
)
from .launch import CpuRunner, bfloat16_bits, python_text, slots
from .memory import aligned_empty, empty
from .native_call import MOST_BYTES, MOST_KEPT_BYTES, MOST_TASKS, NativeCall, PlannedKernel, PlannedScan
from .recent import RecentCalls
from .within import within

CONTIGUOUS, ALIGNED, WRITABLE = 0x1, 0x100, 0x400
_FLAGS = CONTIGUOUS | ALIGNED
LOW, HIGH = "{low}", "{high}"
"""Stand in the text of a scan for the smallest and the largest element."""
_MOST_VARIANTS = 256
_QUICK_PLANS, _MOST_REPEATS = 8, 1 << 8

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """An argument of the short way: a parameter, or a result that `out=` gives.

    Attributes:
        rank: `None` for a number.
        written: it is a result.
    """

    name: str
    dtype: DType
    rank: int | None
    written: bool = False


@dataclass(frozen=True, slots=True)
class FastScan:
    """What must hold of the elements of an index tensor; all texts are Python over size and scalar names.

    Attributes:
        conditions: texts that must be true, over `LOW` and `HIGH` too, its smallest and largest element.
        limits: lower limits, and upper ones, of all elements, if these are all that the conditions say.
    """

    tensor: str
    conditions: tuple[str, ...]
    limits: tuple[tuple[str, ...], tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class FastPlan:
    """What the text of the short way needs to know of a def; every text is Python over size and scalar names.

    Attributes:
        extents: name of a computed extent (`T.0`) -> text.
        results: name, type and shape texts of every result, in order.
        conditions: texts that must be true; if one is not, the general path explains.
        by_shape: the code depends on the class of the sizes.
        few: where only small sizes have a class of their own: number of a parameter and of its dimension, and the largest of them.
        recent: is told the sizes of every call.
        in_place: pairs of a parameter and a result that may be the same array.
        solved: sizes that are no dimension.
    """

    parameters: tuple[Parameter, ...]
    extents: Mapping[str, str]
    results: tuple[tuple[str, DType, tuple[str, ...]], ...]
    conditions: tuple[str, ...]
    roots: Mapping[str, str]
    by_shape: bool = False
    few: tuple[tuple[int, int, int], ...] = ()
    recent: RecentCalls | None = None
    scans: tuple[FastScan, ...] = ()
    in_place: frozenset[tuple[str, str]] = frozenset()
    solved: tuple[Solved, ...] = ()

    def slots(self, into: bool) -> tuple[Slot, ...]:
        """The arguments of a call; `into`: with those of `out=`."""
        own = [Slot(parameter.name, parameter.dtype, parameter.rank or None) for parameter in self.parameters]
        given = [Slot(self.roots[name], dtype, len(shape), True) for name, dtype, shape in self.results]
        return (*own, *given) if into else tuple(own)


@dataclass(slots=True)
class FastCall:
    """The dispatcher of one def: layout class of the arguments -> generated function.

    Attributes:
        general: all arguments as a tuple -> results; always right.
        prepare: names of strided arrays, arguments -> the runners of that layout class, or `None` if it has no short way.
        into: the arrays of `out=` come after the other arguments, and nothing is returned.
        slots: the arguments.
        lends: NumPy and PyTorch know the element types of all results.
        function: what `dispatcher` gave.
        native: the native entry point, if there is one; it is told the sizes that came twice in a row. That takes as long as some
            fifty calls, so after `_QUICK_PLANS` of them sizes have to come four, eight, ... times: they may alternate.
        latest: the sizes of the latest call that took the Python path, `repeats` times in a row.
    """

    plan: FastPlan
    general: Callable[[tuple[Any, ...]], Any]
    prepare: Callable[[frozenset[str], tuple[Any, ...]], Sequence[CpuRunner] | None]
    into: bool = False
    slots: tuple[Slot, ...] = field(init=False)
    lends: bool = field(init=False)
    function: Call = field(init=False)
    variants: dict[tuple[Any, ...], Call] = field(default_factory=dict[tuple[Any, ...], Call])
    compiled: dict[tuple[int, ...], Call] = field(default_factory=dict[tuple[int, ...], Call])
    native: NativeCall | None = None
    latest: tuple[Any, ...] | None = None
    repeats: int = 0
    plans: int = 0
    unplanned: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])

    def __post_init__(self) -> None:
        """Make the dispatcher."""
        self.slots = self.plan.slots(self.into)
        self.lends = all(dtype is not DType.BFLOAT16 for _, dtype, _ in self.plan.results)
        self.function = self.dispatcher()

    def dispatcher(self) -> Call:
        """A function of the positional arguments that takes the shortest way that it can."""
        arrays = all(slot.rank is not None for slot in self.slots)
        known = all(scan.limits for scan in self.plan.scans)
        if not arrays or not self.plan.parameters or not known or not native_call.available():
            return self.python_path(watched=False)
        self.native = NativeCall(self.python_path(watched=True), "call")
        return self.native.function

    def foreign(self, args: tuple[Any, ...]) -> Any:
        """Take the short way with PyTorch's tensors on the CPU as NumPy's arrays, and NumPy's numbers as Python's.

        What is not so, or wrong, takes the general way, which says it in the words of the library.
        """
        if len(args) == len(self.slots) and self.lends:
            pairs = zip(self.slots, args, strict=True)
            plain = [lent_number(value) if slot.rank is None else lent(value, slot.written) for slot, value in pairs]
            changed = [
                slot for slot, mine, value in zip(self.slots, plain, args, strict=True) if type(mine) is not type(value)
            ]
            if changed and all(mine is not None for mine in plain):
                tensors = not self.into and any(slot.rank is not None for slot in changed)
                with suppress(CallError):
                    found = self.function(*plain)
                    return adopted(found) if tensors else found
        return self.general(args)

    def watch(self, args: tuple[Any, ...]) -> None:
        """After a call of the Python path with plain arrays: plan the native one if the sizes have come some times in a row."""
        shapes = tuple([array.shape for array in args])
        self.repeats = self.repeats + 1 if shapes == self.latest else 1
        self.latest = shapes
        wanted = min(2 << max(0, self.plans - _QUICK_PLANS), _MOST_REPEATS)
        if self.repeats >= wanted and shapes not in self.unplanned and self._are_apart(args):
            planned = self._planned(args)
            self.plans += planned is True
            if planned is False and len(self.unplanned) < _MOST_VARIANTS:
                self.unplanned.add(shapes)

    def _are_apart(self, args: tuple[Any, ...]) -> bool:
        """Whether what is written into shares no memory with anything."""
        written = range(len(self.plan.parameters), len(args))
        return not any(share_elements(args[k], other) for k in written for other in args[:k])

    def _planned(self, args: tuple[Any, ...]) -> bool | None:
        """Whether calls like this one are planned now; `None` where that may be so later."""
        changes, count = threads.CHANGES.value, threads.get_threads()
        if self.native is None or self.native.taken:
            return None
        small = sum(each.nbytes for each in args) <= MOST_BYTES
        runners = self.prepare(frozenset(), args) if small else None
        if runners is None:
            return False
        scope: dict[str, Any] = {}
        variant = _Variant(self.plan, runners, self.general, scope, self.into, trace=True)
        exec(variant.text(), scope)
        found = scope["run"](*args)
        if not isinstance(found, dict):
            return False
        local = cast("dict[str, Any]", found)
        results = [] if self.into else [local[variant.n(f"r{k}")] for k in range(len(self.plan.results))]
        order = [variant.n(f"{letter}{k}") for letter, many in (("a", args), ("r", results)) for k in range(len(many))]
        kernels: list[PlannedKernel] = []
        for number, runner in enumerate(runners):
            block = local[variant.n(f"d{number}")]
            tasks, brief = runner.code.tasks(block), runner.code.is_brief(block)
            if not 0 < tasks < MOST_TASKS:
                return False
            names = {
                slot: variant.arrays[argument.name]
                for slot, argument in enumerate(runner.entry.arguments)
                if argument.kind == "buffer"
            }
            sources = {slot: order.index(name) for slot, name in names.items() if name in order}
            kernels.append(PlannedKernel(runner.code.address, block, sources, tasks, min(tasks, count), brief))
        temporary = [value for name, value in local.items() if name not in order and isinstance(value, np.ndarray)]
        if sum(each.nbytes for each in temporary) > MOST_KEPT_BYTES:
            return False
        read = len(self.plan.parameters)
        if any(variant.n(f"least{k}") not in local for k in range(len(self.plan.scans))):
            return False  # NumPy looks at the elements
        scans = [
            PlannedScan(
                order.index(variant.arrays[scan.tensor]), local[variant.n(f"least{k}")], local[variant.n(f"most{k}")]
            )
            for k, scan in enumerate(self.plan.scans)
        ]
        return self.native.record(args[:read], results, kernels, temporary, args[read:], changes, scans)

    def python_path(self, watched: bool) -> Call:
        """The dispatcher as generated Python; `watched`: calls with plain arrays are told to `watch`."""
        count = len(self.slots)
        arrays = [k for k, slot in enumerate(self.slots) if slot.rank is not None]
        names = "".join(f"a{k}, " for k in range(count))
        tests = [test for k, slot in enumerate(self.slots) for test in _tests(k, slot)]
        inputs = [k for k in arrays if not self.slots[k].written]
        small = "".join(f"min(a{k}.shape[{axis}], {most + 1}), " for k, axis, most in self.plan.few)
        shapes = "".join(f"a{k}.shape, " for k in inputs) if self.plan.by_shape else small
        masks = [_FLAGS | WRITABLE if self.slots[k].written else _FLAGS for k in arrays]
        flags = "".join(f"a{k}.flags.num & {mask}, " for k, mask in zip(arrays, masks, strict=True))
        key = f"({flags}{shapes})"
        text = [
            "def call(*args):",
            f"    if len(args) == {count}:",
            f"        ({names}) = args" if count else "        pass",
            f"        if {' and '.join(tests) or 'True'}:",
            f"            key = {key}",
            "            found = variants.get(key)",
            "            result = found(*args) if found is not None else missing(key, args)",
            f"            if key[:{count}] == {tuple(masks)}: watch(args)" if watched else "            pass",
            "            return result",
            "    return foreign(args)",
        ]
        scope: dict[str, Any] = {
            "ndarray": np.ndarray,
            "variants": self.variants,
            "missing": self.missing,
            "foreign": self.foreign,
            "watch": self.watch,
        }
        scope |= {f"t{k}": numpy_dtype(self.slots[k].dtype) for k in arrays}
        exec("\n".join(text), scope)
        return scope["call"]

    def missing(self, key: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        """Take the general way, and write the short one for the next call."""
        result = self.general(args)
        arrays = [slot for slot in self.slots if slot.rank is not None]
        pairs = list(zip(arrays, key[: len(arrays)], strict=True))
        usable = all(each & ALIGNED and (each & WRITABLE or not slot.written) for slot, each in pairs)
        if len(self.variants) < _MOST_VARIANTS and usable:
            strided = frozenset(slot.name for slot, each in pairs if not each & CONTIGUOUS)
            runners = self.prepare(strided, args)
            self.variants[key] = self.general_call if runners is None else self._compiled(runners)
        return result

    def _compiled(self, runners: Sequence[CpuRunner]) -> Call:
        """The short way for these runners; shapes of one class share it."""
        same = tuple(id(runner) for runner in runners)
        if same not in self.compiled:
            self.compiled[same] = compile_variant(self.plan, runners, self.general, self.into)
        return self.compiled[same]

    def general_call(self, *args: Any) -> Any:
        """The general way with the arguments spread."""
        return self.general(args)


def _tests(k: int, slot: Slot) -> list[str]:
    """Whether argument `k` is of the expected kind."""
    if slot.rank is not None:
        return [f"a{k}.__class__ is ndarray", f"a{k}.dtype is t{k}", f"a{k}.ndim == {slot.rank}"]
    dtype = slot.dtype
    if dtype is DType.BOOL:
        return [f"a{k}.__class__ is bool"]
    if dtype.is_integer:
        low, high = dtype.limits
        return [f"a{k}.__class__ is int", f"{low} <= a{k} <= {high}"]
    largest = {DType.FLOAT16: "65504.0", DType.FLOAT64: "1.7e308"}.get(dtype, "3.38e38")
    return [f"(a{k}.__class__ is float or a{k}.__class__ is int)", f"-{largest} <= a{k} <= {largest}"]


class _Names:
    """Names of the generated function that no size or scalar of the user bears."""

    def __init__(self, taken: set[str]) -> None:
        self.prefix = "_"
        while any(name.startswith(self.prefix) for name in taken):
            self.prefix += "_"

    def __call__(self, name: str) -> str:
        return self.prefix + name


def compile_variant(
    plan: FastPlan, runners: Sequence[CpuRunner], general: Callable[[tuple[Any, ...]], Any], into: bool = False
) -> Call:
    """Write and compile the function of one layout class."""
    scope: dict[str, Any] = {}
    text = _Variant(plan, runners, general, scope, into).text()
    exec(text, scope)
    return scope["run"]


class _Variant:
    """Prints one function; what it needs goes into `scope`. A trace fills the slots, runs nothing and returns all variables."""

    def __init__(
        self,
        plan: FastPlan,
        runners: Sequence[CpuRunner],
        general: Callable[[tuple[Any, ...]], Any],
        scope: dict[str, Any],
        into: bool,
        trace: bool = False,
    ) -> None:
        self.plan, self.runners, self.scope, self.into, self.trace = plan, runners, scope, into, trace
        self.slots = plan.slots(into)
        sizes = {dim for parameter in plan.parameters for dim in parameter.dims if isinstance(dim, str)}
        sizes |= {each.name for each in plan.solved}
        scalars = {parameter.name for parameter in plan.parameters if not parameter.rank}
        self.n = _Names(sizes | scalars)
        self.sizes: dict[str, str] = {}
        self.arrays: dict[str, str] = {}
        self.lines: list[str] = []
        self.workspace = ""
        self.give(
            general=general, empty=empty, scratch=aligned_empty, address=numpy_address, addressof=ctypes.addressof
        )
        self.give(share=share_elements, apart=apart, meet=steps_meet)
        self.give(bfloat16=bfloat16_bits, min=min, max=max, int=int)

    def give(self, **values: Any) -> None:
        self.scope |= {name if name in ("min", "max", "int") else self.n(name): value for name, value in values.items()}

    def text(self) -> str:
        n = self.n
        arguments = ", ".join(n(f"a{k}") for k in range(len(self.slots)))
        self.back = (
            f"return {n('general')}(({arguments}{',' if arguments else ''}))" if not self.trace else "return None"
        )
        self.read_sizes()
        self.test()
        if self.into:
            self.test_given()
        self.allocate()
        for number, runner in enumerate(self.runners):
            self.launch(number, runner)
        if self.trace:
            return self.function(arguments, "return locals()")
        self.tell()
        if not self.into:
            results = ", ".join(n(f"r{k}") for k in range(len(self.plan.results)))
            return self.function(arguments, f"return {results}")
        return self.function(arguments)

    def function(self, arguments: str, *last: str) -> str:
        """The lines as a function; names of the user may start with a digit."""
        return python_code("\n".join([f"def run({arguments}):", *(f"    {line}" for line in (*self.lines, *last))]))

    def read_sizes(self) -> None:
        """Extents into variables; a size that occurs again, or a constant, is compared."""
        tests: list[str] = []
        formulas: list[str] = []
        for k, parameter in enumerate(self.plan.parameters):
            own = self.n(f"a{k}")
            self.arrays[parameter.name] = own
            if not parameter.rank:
                if parameter.dtype.is_integer:
                    self.lines.append(f"{parameter.name} = {own}")
                    self.sizes[parameter.name] = parameter.name
                continue
            shape = self.n(f"e{k}")
            self.lines.append(f"{shape} = {own}.shape")
            for axis, dim in enumerate(parameter.dims):
                if isinstance(dim, str) and dim not in self.sizes:
                    self.sizes[dim] = dim
                    self.lines.append(f"{dim} = {shape}[{axis}]")
                    tests.append(f"{dim} < 1")
                elif dim is None:
                    tests.append(f"{shape}[{axis}] < 1")
                elif isinstance(dim, Formula):
                    formulas.append(f"{shape}[{axis}] != {dim}")
                else:
                    tests.append(f"{shape}[{axis}] != {dim}")
        if tests:
            self.lines += [f"if {' or '.join(tests)}:", f"    {self.back}"]
        self.solve()
        if formulas:
            self.lines += [f"if {' or '.join(formulas)}:", f"    {self.back}"]

    def solve(self) -> None:
        """Sizes that are no dimension; whether the division leaves a remainder shows when extents are compared."""
        numbers = {parameter.name: k for k, parameter in enumerate(self.plan.parameters)}
        for each in self.plan.solved:
            factor = to_python(each.factor)
            if not each.factor.is_constant:
                self.lines += [f"if not ({factor}):", f"    {self.back}"]
            extent = f"{self.n(f'e{numbers[each.argument]}')}[{each.axis}]"
            self.lines.append(f"{each.name} = ({extent} - ({to_python(each.rest)})) // ({factor})")
            self.lines += [f"if {each.name} < 1:", f"    {self.back}"]
            self.sizes[each.name] = each.name

    def test(self) -> None:
        """The conditions on sizes and index values, then the extents of computed tensors."""
        for condition in self.plan.conditions:
            self.lines += [f"if not ({condition}):", f"    {self.back}"]
        for k, scan in enumerate(self.plan.scans):
            self.scan(k, scan)
        used = {name for runner in self.runners for name in runner.kernel.sizes}
        for k, (name, text) in enumerate(self.plan.extents.items()):
            if name not in used:
                continue
            self.sizes[name] = self.n(f"x{k}")
            self.lines.append(f"{self.sizes[name]} = {text}")

    def scan(self, k: int, scan: FastScan) -> None:
        """The conditions on the elements of an array that is not empty."""
        own = self.arrays[scan.tensor]
        read = [b.strided for runner in self.runners for b in runner.kernel.buffers if b.name == scan.tensor]
        if scan.limits is None or not read or any(read):
            low, high = self.n(f"low{k}"), self.n(f"high{k}")
            self.lines.append(f"{low}, {high} = int({own}.min()), int({own}.max())")
            text = " and ".join(scan.conditions).replace(LOW, low).replace(HIGH, high)
        else:
            dtype = next(parameter.dtype for parameter in self.plan.parameters if parameter.name == scan.tensor)
            self.give(**{f"within{k}": within(dtype)})
            least, most = self.n(f"least{k}"), self.n(f"most{k}")
            (low, high), (lower, upper) = DType.INT64.limits, scan.limits
            self.lines += [
                f"{least} = max({', '.join((*lower, str(low), str(low)))})",
                f"{most} = min({', '.join((*upper, str(high), str(high)))})",
            ]
            elements = f"{self.n('address')}({own}), {own}.size"
            text = f"{least} <= {high} and {most} >= {low} and {self.n(f'within{k}')}({elements}, {least}, {most})"
        self.lines += [f"if not ({text}):", f"    {self.back}"]

    def test_given(self) -> None:
        """What `out=` gave has the shapes of the results, and shares memory only where a result may be computed in place."""
        tests: list[str] = []
        inputs = [slot.name for slot in self.slots if slot.rank is not None and not slot.written]
        strided = {buffer.name for runner in self.runners for buffer in runner.kernel.buffers if buffer.strided}
        others = [self.arrays[name] for name in inputs]
        for k, (name, dtype, shape) in enumerate(self.plan.results, len(self.plan.parameters)):
            own, root = self.n(f"a{k}"), self.plan.roots[name]
            self.arrays[root] = own
            tests.append(f"{own}.shape != ({''.join(f'{extent}, ' for extent in shape)})")
            if root in strided:
                tests.append(f"{self.n('meet')}({own}.shape, {own}.strides, {dtype.bytes})")
            free = {self.arrays[other] for other, result in self.plan.in_place if result == name}
            tests += [f"{self.n('share')}({other}, {own})" for other in others if other not in free]
            others.append(own)
        self.lines += [f"if {' or '.join(tests)}:", f"    {self.back}"]
        if not self.trace:  # which is of arrays without common memory
            for other, result in sorted(self.plan.in_place):
                self.copy_apart(other, self.arrays[self.plan.roots[result]])

    def copy_apart(self, name: str, target: str) -> None:
        """An argument that is the array `target` is read from a copy: code may compute an element twice."""
        own, copy = self.arrays[name], self.n(f"c{len(self.lines)}")
        self.arrays[name] = copy
        self.lines += [
            "try:",
            f"    {copy} = {self.n('apart')}({own}, {target})",
            "except MemoryError:",
            f"    {self.back}",
            f"if {copy} is None:",
            f"    {self.back}",
        ]

    def allocate(self) -> None:
        """Results and temporaries; without memory the general path says how much was needed, for a negative length what to do."""
        makers: list[str] = []
        for k, (name, dtype, shape) in enumerate(() if self.into else self.plan.results):
            self.give(**{f"t{k}": numpy_dtype(dtype)})
            self.arrays[self.plan.roots[name]] = self.n(f"r{k}")
            extents = "".join(f"{extent}, " for extent in shape)
            makers.append(f"{self.n(f'r{k}')} = {self.n('empty')}(({extents}), {self.n(f't{k}')})")
        for runner in self.runners:
            for buffer in runner.kernel.buffers:
                if buffer.scope == "global" and buffer.name not in self.arrays:
                    variable = self.n(f"m{len(self.arrays)}")
                    self.arrays[buffer.name] = variable
                    self.give(**{f"k{variable}": storage_dtype(buffer.dtype)})
                    extents = [python_text(extent, self.sizes) for extent in buffer.shape]
                    if extents and buffer.pad:
                        extents[-1] += f" + {buffer.pad}"
                    shape = "".join(f"{extent}, " for extent in extents)
                    kind = self.n(f"k{variable}")
                    makers.append(f"{variable} = {self.n('scratch')}(({shape}), {kind}, {buffer.align})")
        if makers:
            self.lines += [
                "try:",
                *(f"    {maker}" for maker in makers),
                "except (MemoryError, ValueError):",
                f"    {self.back}",
            ]

    def launch(self, number: int, runner: CpuRunner) -> None:
        n, arguments = self.n, runner.entry.arguments
        block, pack, code, data = (n(f"{name}{number}") for name in ("block", "pack", "code", "d"))
        self.give(
            **{
                f"block{number}": ctypes.c_int64 * len(arguments),
                f"pack{number}": slots(arguments).pack_into,
                f"code{number}": runner.code.run,
                f"threads{number}": runner.thread_count,
            }
        )
        workspace, limit = runner.entry.workspace, ""
        if workspace is not None:
            nbytes = python_text(workspace.shape[0], self.sizes)
            self.give(byte=np.dtype(np.uint8))
            self.workspace = n(f"w{number}")
            count = n(f"count{number}")
            limit = f", {count}"
            made = f"{self.workspace} = {n('scratch')}((({nbytes}) * {count},), {n('byte')}, {workspace.align})"
            # another thread of Python may change the number before the kernel runs
            self.lines += [f"{count} = {n(f'threads{number}')}()"]
            self.lines += ["try:", f"    {made}", "except MemoryError:", f"    {self.back}"]
        values = "".join(f", {self.slot(argument)}" for argument in arguments)
        self.lines += [f"{data} = {block}()", f"{pack}({data}, 0{values})"]
        if not self.trace:
            self.lines.append(f"{code}({data}{limit})")

    def tell(self) -> None:
        """The sizes of this call; usually those of the call before."""
        recent = self.plan.recent
        if recent is not None and recent.names:
            self.give(recent=recent)
            values = "".join(f"{name}, " for name in recent.names)
            self.lines.append(f"if {self.n('recent')}.last != ({values}): {self.n('recent')}.note(({values}))")

    def slot(self, argument: Argument) -> str:
        n = self.n
        match argument.kind:
            case "buffer":
                return f"{n('address')}({self.arrays[argument.name]})"
            case "stride":
                dtype = next(slot.dtype for slot in self.slots if slot.name == argument.name)
                return f"{self.arrays[argument.name]}.strides[{argument.dimension}] // {dtype.bytes}"
            case "size":
                return self.sizes[argument.name]
            case "scalar":
                own = self.arrays[argument.name]
                return f"{n('bfloat16')}({own})" if argument.dtype is DType.BFLOAT16 else own
            case _:
                return f"{n('address')}({self.workspace})"
