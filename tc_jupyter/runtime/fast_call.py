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
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, cast

import numpy as np

from tc_jupyter.codegen import Argument
from tc_jupyter.program import DType

from . import native_call
from .arguments import Parameter
from .arrays import numpy_address, numpy_dtype, storage_dtype
from .launch import CpuRunner, bfloat16_bits, python_text, slots
from .memory import aligned_empty, empty
from .native_call import MOST_BYTES, NativeCall, PlannedKernel
from .recent import RecentCalls

CONTIGUOUS, ALIGNED = 0x1, 0x100
LOW, HIGH = "{low}", "{high}"
"""Stand in the text of a scan for the smallest and the largest element."""
_MOST_VARIANTS = 256

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FastPlan:
    """What the text of the short way needs to know of a def; every text is Python over size and scalar names.

    Attributes:
        extents: name of a computed extent (`T.0`) -> text.
        results: name, type and shape texts of every result, in order.
        conditions: texts that must be true; if one is not, the general path explains.
        by_shape: the code depends on the class of the sizes.
        recent: is told the sizes of every call.
        scans: index tensors, each with texts over `LOW` and `HIGH`, its smallest and largest element, that must be true.
    """

    parameters: tuple[Parameter, ...]
    extents: Mapping[str, str]
    results: tuple[tuple[str, DType, tuple[str, ...]], ...]
    conditions: tuple[str, ...]
    roots: Mapping[str, str]
    by_shape: bool = False
    recent: RecentCalls | None = None
    scans: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(slots=True)
class FastCall:
    """The dispatcher of one def: layout class of the arguments -> generated function.

    Attributes:
        general: all arguments as a tuple -> results; always right.
        prepare: names of strided arguments, arguments -> the runners of that layout class, or `None` if it has no short way.
        native: the native entry point, if there is one; it is told the sizes that came twice in a row.
    """

    plan: FastPlan
    general: Callable[[tuple[Any, ...]], Any]
    prepare: Callable[[frozenset[str], tuple[Any, ...]], Sequence[CpuRunner] | None]
    variants: dict[tuple[Any, ...], Call] = field(default_factory=dict[tuple[Any, ...], Call])
    compiled: dict[tuple[int, ...], Call] = field(default_factory=dict[tuple[int, ...], Call])
    native: NativeCall | None = None
    latest: tuple[Any, ...] | None = None
    unplanned: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])

    def dispatcher(self) -> Call:
        """A function of the positional arguments that takes the shortest way that it can."""
        call = self.python_path()
        arrays = all(parameter.rank for parameter in self.plan.parameters)
        if not arrays or not self.plan.parameters or self.plan.scans or not native_call.available():
            return call

        @wraps(call)
        def watched(*args: Any) -> Any:
            result = call(*args)
            self.watch(args)
            return result

        self.native = NativeCall(watched, "call")
        return self.native.function

    def watch(self, args: tuple[Any, ...]) -> None:
        """After a call of the Python path: plan the native one if the sizes are those of the call before."""
        shapes = tuple(getattr(array, "shape", None) for array in args)
        if shapes != self.latest:
            self.latest = shapes
        elif shapes not in self.unplanned and not self._planned(args) and len(self.unplanned) < _MOST_VARIANTS:
            self.unplanned.add(shapes)

    def _planned(self, args: tuple[Any, ...]) -> bool:
        """Whether calls like this one are planned now."""
        types = [numpy_dtype(parameter.dtype) for parameter in self.plan.parameters]
        plain = all(type(each) is np.ndarray and each.dtype is dtype for each, dtype in zip(args, types, strict=True))
        small = plain and sum(each.nbytes for each in args) <= MOST_BYTES
        runners = self.prepare(frozenset(), args) if small else None
        if runners is None or self.native is None:
            return False
        scope: dict[str, Any] = {}
        variant = _Variant(self.plan, runners, self.general, scope, trace=True)
        exec(variant.text(), scope)
        found = scope["run"](*args)
        if not isinstance(found, dict):
            return False
        local = cast("dict[str, Any]", found)
        results = [local[variant.n(f"r{k}")] for k in range(len(self.plan.results))]
        order = [variant.n(f"{letter}{k}") for letter, many in (("a", args), ("r", results)) for k in range(len(many))]
        kernels: list[PlannedKernel] = []
        for number, runner in enumerate(runners):
            block = local[variant.n(f"d{number}")]
            if runner.code.tasks(ctypes.addressof(block)) != 1:
                return False
            names = {
                slot: variant.arrays[argument.name]
                for slot, argument in enumerate(runner.source.arguments)
                if argument.kind == "buffer"
            }
            sources = {slot: order.index(name) for slot, name in names.items() if name in order}
            kernels.append(PlannedKernel(runner.code.address, block, sources))
        temporary = [value for name, value in local.items() if name not in order and isinstance(value, np.ndarray)]
        return self.native.record(args, results, kernels, temporary)

    def python_path(self) -> Call:
        """The dispatcher as generated Python."""
        count = len(self.plan.parameters)
        arrays = [k for k, parameter in enumerate(self.plan.parameters) if parameter.rank]
        names = "".join(f"a{k}, " for k in range(count))
        tests = [test for k, parameter in enumerate(self.plan.parameters) for test in _tests(k, parameter)]
        shapes = "".join(f"a{k}.shape, " for k in arrays) if self.plan.by_shape else ""
        key = "(" + "".join(f"a{k}.flags.num, " for k in arrays) + shapes + ")"
        text = [
            "def call(*args):",
            f"    if len(args) == {count}:",
            f"        ({names}) = args" if count else "        pass",
            f"        if {' and '.join(tests) or 'True'}:",
            f"            key = {key}",
            "            found = variants.get(key)",
            "            return found(*args) if found is not None else missing(key, args)",
            "    return general(args)",
        ]
        scope: dict[str, Any] = {
            "ndarray": np.ndarray,
            "variants": self.variants,
            "missing": self.missing,
            "general": self.general,
        }
        scope |= {f"t{k}": numpy_dtype(self.plan.parameters[k].dtype) for k in arrays}
        exec("\n".join(text), scope)
        return scope["call"]

    def missing(self, key: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        """Take the general way, and write the short one for the next call."""
        result = self.general(args)
        arrays = [parameter.name for parameter in self.plan.parameters if parameter.rank]
        flags = key[: len(arrays)]
        if len(self.variants) < _MOST_VARIANTS and all(each & ALIGNED for each in flags):
            strided = frozenset(name for name, each in zip(arrays, flags, strict=True) if not each & CONTIGUOUS)
            runners = self.prepare(strided, args)
            self.variants[key] = self.general_call if runners is None else self._compiled(runners)
        return result

    def _compiled(self, runners: Sequence[CpuRunner]) -> Call:
        """The short way for these runners; shapes of one class share it."""
        same = tuple(id(runner) for runner in runners)
        if same not in self.compiled:
            self.compiled[same] = compile_variant(self.plan, runners, self.general)
        return self.compiled[same]

    def general_call(self, *args: Any) -> Any:
        """The general way with the arguments spread."""
        return self.general(args)


def _tests(k: int, parameter: Parameter) -> list[str]:
    """Whether argument `k` is of the expected kind."""
    if parameter.rank:
        return [f"a{k}.__class__ is ndarray", f"a{k}.dtype is t{k}", f"a{k}.ndim == {parameter.rank}"]
    dtype = parameter.dtype
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


def compile_variant(plan: FastPlan, runners: Sequence[CpuRunner], general: Callable[[tuple[Any, ...]], Any]) -> Call:
    """Write and compile the function of one layout class."""
    scope: dict[str, Any] = {}
    text = _Variant(plan, runners, general, scope).text()
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
        trace: bool = False,
    ) -> None:
        self.plan, self.runners, self.scope, self.trace = plan, runners, scope, trace
        sizes = {dim for parameter in plan.parameters for dim in parameter.dims if isinstance(dim, str)}
        scalars = {parameter.name for parameter in plan.parameters if not parameter.rank}
        self.n = _Names(sizes | scalars)
        self.sizes: dict[str, str] = {}
        self.arrays: dict[str, str] = {}
        self.lines: list[str] = []
        self.workspace = ""
        self.give(
            general=general, empty=empty, scratch=aligned_empty, address=numpy_address, addressof=ctypes.addressof
        )
        self.give(bfloat16=bfloat16_bits, min=min, max=max, int=int)

    def give(self, **values: Any) -> None:
        self.scope |= {name if name in ("min", "max", "int") else self.n(name): value for name, value in values.items()}

    def text(self) -> str:
        n = self.n
        arguments = ", ".join(n(f"a{k}") for k in range(len(self.plan.parameters)))
        self.back = f"return {n('general')}(({arguments}{',' if arguments else ''}))"
        self.read_sizes()
        self.test()
        self.allocate()
        for number, runner in enumerate(self.runners):
            self.launch(number, runner)
        if self.trace:
            return "\n".join([f"def run({arguments}):", *(f"    {line}" for line in self.lines), "    return locals()"])
        self.tell()
        results = ", ".join(n(f"r{k}") for k in range(len(self.plan.results)))
        self.lines.append(f"return {results}")
        return "\n".join([f"def run({arguments}):", *(f"    {line}" for line in self.lines)])

    def read_sizes(self) -> None:
        """Extents into variables; a size that occurs again, or a constant, is compared."""
        tests: list[str] = []
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
                else:
                    tests.append(f"{shape}[{axis}] != {dim}")
        if tests:
            self.lines += [f"if {' or '.join(tests)}:", f"    {self.back}"]

    def test(self) -> None:
        """The conditions on sizes and index values, then the extents of computed tensors."""
        for condition in self.plan.conditions:
            self.lines += [f"if not ({condition}):", f"    {self.back}"]
        for k, (tensor, conditions) in enumerate(self.plan.scans):
            own, low, high = self.arrays[tensor], self.n(f"low{k}"), self.n(f"high{k}")
            self.lines.append(f"{low}, {high} = int({own}.min()), int({own}.max())")
            text = " and ".join(conditions).replace(LOW, low).replace(HIGH, high)
            self.lines += [f"if not ({text}):", f"    {self.back}"]
        used = {name for runner in self.runners for name in runner.kernel.sizes}
        for k, (name, text) in enumerate(self.plan.extents.items()):
            if name not in used:
                continue
            self.sizes[name] = self.n(f"x{k}")
            self.lines.append(f"{self.sizes[name]} = {text}")

    def allocate(self) -> None:
        """Results and temporaries; without memory the general path says how much was needed, for a negative length what to do."""
        makers: list[str] = []
        for k, (name, dtype, shape) in enumerate(self.plan.results):
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
        n, arguments = self.n, runner.source.arguments
        block, pack, code, data = (n(f"{name}{number}") for name in ("block", "pack", "code", "d"))
        self.give(
            **{
                f"block{number}": ctypes.c_int64 * len(arguments),
                f"pack{number}": slots(arguments).pack_into,
                f"code{number}": runner.code.run,
                f"threads{number}": runner.thread_count,
            }
        )
        if runner.source.workspace:
            workspace = runner.source.workspace[0]
            nbytes = python_text(workspace.shape[0], self.sizes)
            self.give(byte=np.dtype(np.uint8))
            self.workspace = n(f"w{number}")
            count = n(f"threads{number}")
            made = f"{self.workspace} = {n('scratch')}((({nbytes}) * {count}(),), {n('byte')}, {workspace.align})"
            self.lines += ["try:", f"    {made}", "except MemoryError:", f"    {self.back}"]
        values = "".join(f", {self.slot(argument)}" for argument in arguments)
        self.lines += [f"{data} = {block}()", f"{pack}({data}, 0{values})"]
        if not self.trace:
            self.lines.append(f"{code}({data})")

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
                dtype = next(p.dtype for p in self.plan.parameters if p.name == argument.name)
                return f"{self.arrays[argument.name]}.strides[{argument.dimension}] // {dtype.bytes}"
            case "size":
                return self.sizes[argument.name]
            case "scalar":
                own = self.arrays[argument.name]
                return f"{n('bfloat16')}({own})" if argument.dtype is DType.BFLOAT16 else own
            case _:
                return f"{n('address')}({self.workspace})"
