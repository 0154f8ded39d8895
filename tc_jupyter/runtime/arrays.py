"""Arguments and results of any array library, seen as address, extents and strides.

Comes in: arrays of NumPy, CuPy, PyTorch, JAX, of any library that speaks DLPack, `__cuda_array_interface__` or
`__array_interface__`, or of a class registered with `register_arrays`. Goes out: `ArrayView`. Nothing is copied here except where
a library hands out its memory only as a copy; what an engine cannot use in place (`prepared`) is copied once.

Worked example: `view_of(np.zeros((3, 4), np.float32).T)` has shape `(4, 3)`, strides `(4, 16)` in bytes and address of element 0.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from operator import attrgetter, index, methodcaller
from types import ModuleType
from typing import Any, cast

import numpy as np

from tc_jupyter.diagnostics.values import shown_value
from tc_jupyter.program import DType

from .address import numpy_address
from .forks import MAKING
from .memory import empty

NDArray = np.ndarray[Any, Any]

ITEMSIZE: dict[DType, int] = {dtype: dtype.bytes for dtype in DType}
"""Bytes of one element; a look-up, since every call asks several times."""


class ArgumentProblem(Exception):
    """A value cannot be used as an array; the caller adds the name of the argument.

    Attributes:
        kind: `type` (TC607), `rank` (TC608) or `device` (TC609).
        came: what was given, as a noun phrase.
        help: what to do, or empty.
    """

    def __init__(self, kind: str, came: str, help: str = "") -> None:
        super().__init__(came)
        self.kind = kind
        self.came = came
        self.help = help


@dataclass(frozen=True, slots=True)
class ArrayView:
    """Where the elements of an array are.

    Attributes:
        address: of the element with index 0 in every dimension.
        strides: in bytes; may be negative, zero, or no multiple of the element size.
        dtype_name: the type as the library names it, for messages; `dtype` is `None` when the language has no such type.
        device: `cpu` or `cuda:<number>`.
        native: the bytes of an element are in the order of this machine.
        owner: keeps the memory alive; an array of `library`.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType | None
    dtype_name: str
    device: str
    writable: bool
    owner: object
    library: Library
    native: bool = True

    def moved(self, address: int, owner: object) -> ArrayView:
        """The view of another array that is like this one but for its address."""
        return ArrayView(
            address,
            self.shape,
            self.strides,
            self.dtype,
            self.dtype_name,
            self.device,
            self.writable,
            owner,
            self.library,
            self.native,
        )

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps; dimensions of extent 1 do not matter."""
        return self.dtype is not None and is_contiguous(self.shape, self.strides, ITEMSIZE[self.dtype])

    @property
    def usable(self) -> bool:
        """Whether an engine can work in place: native order, aligned elements, strides of whole elements."""
        if self.dtype is None or not self.native:
            return False
        size = ITEMSIZE[self.dtype]
        return self.address % size == 0 and all(
            stride % size == 0 for extent, stride in zip(self.shape, self.strides, strict=True) if extent > 1
        )

    @property
    def span(self) -> tuple[int, int]:
        """First byte and one past the last byte that an element occupies; equal ends when there is no element."""
        if 0 in self.shape:
            return self.address, self.address
        low = high = self.address
        for extent, stride in zip(self.shape, self.strides, strict=True):
            low += min(0, (extent - 1) * stride)
            high += max(0, (extent - 1) * stride)
        return low, high + (ITEMSIZE[self.dtype] if self.dtype else 1)


@dataclass(frozen=True, slots=True)
class Library:
    """How the arrays of one library are read and made.

    Attributes:
        view: array -> `ArrayView`; raises `ArgumentProblem`.
        allocate: (shape, dtype, device) -> view of a fresh row-major array.
        finish: what was allocated and filled -> the array that the caller of a function gets.
        stream: device -> handle of the CUDA stream that the library works on, 0 for the default stream.
        fresh: (shape, dtype, device) -> a fresh row-major array on a GPU, which is the current device.
        address: an array that is like one whose view is known -> its address.
    """

    name: str
    view: Callable[[Any], ArrayView]
    allocate: Callable[[tuple[int, ...], DType, str], ArrayView]
    finish: Callable[[ArrayView], Any] = lambda view: view.owner
    stream: Callable[[str], int] = lambda device: 0
    fresh: Callable[[tuple[int, ...], DType, str], Any] | None = None
    address: Callable[[Any], int] | None = None


_DEVICE_MEMORY: list[ModuleType] = []
"""`cuda.py`, which knows CuPy, and this file: it cannot be imported here."""


def use_device_memory(cuda: ModuleType) -> None:
    """Make arrays on a GPU usable; called once, by the file that knows CuPy."""
    _DEVICE_MEMORY[:] = [cuda]


def device_memory() -> ModuleType:
    """The file with the operations on memory of the GPU.

    Raises:
        ArgumentProblem: nothing that knows a GPU was loaded.
    """
    if not _DEVICE_MEMORY:
        raise ArgumentProblem("device", "an array on a GPU", "calls on a GPU need CuPy")
    return _DEVICE_MEMORY[0]


def row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a contiguous array."""
    strides = [itemsize] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether the strides (bytes) are those of a row-major array, where they matter."""
    if 0 in shape:
        return True
    expected = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


# NumPy -----------------------------------------------------------------------------------------------------------------------

_BY_NAME: dict[str, DType] = {dtype.value: dtype for dtype in DType}
_BY_NUMPY: dict[np.dtype[Any], DType] = {np.dtype(dtype.value): dtype for dtype in DType if dtype is not DType.BFLOAT16}


def dtype_named(name: str) -> DType | None:
    """The element type called `name` by NumPy, PyTorch (`torch.float32`) or JAX; `None` if the language has none."""
    return _BY_NAME.get(name.rpartition(".")[2])


def dtype_of(dtype: np.dtype[Any]) -> DType | None:
    """The element type of a NumPy dtype of any byte order; `None` if the language has none."""
    found = _BY_NUMPY.get(dtype)
    if found is None and not dtype.isnative:
        found = _BY_NUMPY.get(dtype.newbyteorder("="))
    if found is None and dtype.name == "bfloat16" and dtype.itemsize == 2:
        found = DType.BFLOAT16
    return found


_NUMPY: dict[DType, np.dtype[Any]] = {dtype: numpy_dtype for numpy_dtype, dtype in _BY_NUMPY.items()}


def numpy_dtype(dtype: DType) -> np.dtype[Any] | None:
    """NumPy's dtype; for `bfloat16` that of `ml_dtypes`, or `None` where it is not installed (TC504)."""
    found = _NUMPY.get(dtype)
    if found is None:
        try:
            with MAKING:
                import ml_dtypes  # noqa: PLC0415  optional
        except ImportError:
            return None
        found = _NUMPY.setdefault(dtype, np.dtype(ml_dtypes.bfloat16))
    return found


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """A NumPy dtype of the same width that always exists: `uint16` for `bfloat16`."""
    return numpy_dtype(dtype) or np.dtype(np.uint16)


def _numpy_view(array: NDArray) -> ArrayView:
    if type(array) is not np.ndarray and _is_masked(array):
        raise ArgumentProblem("device", "a masked array", "pass `.filled(value)`: masks are not known here")
    dtype, name, native = _described(array.dtype)
    return ArrayView(
        numpy_address(array),
        array.shape,
        array.strides,
        dtype,
        name,
        "cpu",
        array.flags.writeable,
        array,
        NUMPY,
        native,
    )


def _is_masked(array: NDArray) -> bool:
    """Whether this is an array of `numpy.ma`, which NumPy loads when it is named, and who has such an array has loaded."""
    return isinstance(array, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))


@lru_cache(maxsize=256)
def _described(dtype: np.dtype[Any]) -> tuple[DType | None, str, bool]:
    """Element type, name and byte order: NumPy takes longer to spell a name than a small kernel runs."""
    return dtype_of(dtype), str(dtype), dtype.isnative


def _numpy_allocate(shape: tuple[int, ...], dtype: DType, device: str) -> ArrayView:
    found = numpy_dtype(dtype)
    if found is None:
        raise ArgumentProblem(
            "bfloat16", "NumPy has no bfloat16", "install `ml_dtypes`, or pass arrays of PyTorch or JAX"
        )
    return _numpy_view(empty(shape, found))


NUMPY = Library("numpy", _numpy_view, _numpy_allocate, address=numpy_address)


def as_numpy(view: ArrayView) -> NDArray:
    """The same memory as a NumPy array (CPU only); `bfloat16` without `ml_dtypes` comes as `uint16`."""
    if isinstance(view.owner, np.ndarray) and view.library is NUMPY:
        return cast(NDArray, view.owner)
    assert view.dtype is not None
    return _at_address(view, storage_dtype(view.dtype))


def host_array(value: object) -> NDArray:
    """The values of an array of any library as a NumPy array, copied from a GPU if they are there; numbers are 0-dimensional.

    Raises:
        ArgumentProblem: it is no array.
    """
    return np.asarray(value) if library_of(value) is None else host_values(view_of(value))


def host_values(view: ArrayView) -> NDArray:
    """The values as a NumPy array; `bfloat16` without `ml_dtypes` comes as `float32`."""
    array = as_numpy(view) if view.device == "cpu" else cast(NDArray, cast(Any, copied(view).owner).get())
    if view.dtype is DType.BFLOAT16 and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


class _Memory:
    """An exporter of memory that `keep` owns."""

    def __init__(self, interface: dict[str, object], keep: object) -> None:
        self.__array_interface__ = interface
        self.keep = keep


def _at_address(view: ArrayView, dtype: np.dtype[Any]) -> NDArray:
    kind = dtype if dtype.kind != "V" else np.dtype(np.uint16)  # an extension type has no code of its own
    stored = kind if view.native else kind.newbyteorder()
    interface: dict[str, object] = {
        "version": 3,
        "shape": view.shape,
        "strides": view.strides,
        "typestr": stored.str,
        # NumPy refuses a null address even where no element is read
        "data": (view.address or 64, not view.writable),
    }
    array = np.asarray(_Memory(interface, view.owner))
    return array if kind is dtype else array.view(dtype)


# PyTorch ---------------------------------------------------------------------------------------------------------------------


def _torch_view(tensor: Any) -> ArrayView:
    """A `torch.Tensor`; the values of a tensor that requires a gradient are read, the graph is not followed."""
    layout = str(tensor.layout)
    if layout != "torch.strided" or tensor.is_quantized or getattr(tensor, "is_nested", False):
        kind = "nested" if getattr(tensor, "is_nested", False) else "quantized" if tensor.is_quantized else layout
        dense = {"nested": ".to_padded_tensor(0)", "quantized": ".dequantize()"}.get(kind, ".to_dense()")
        raise ArgumentProblem("device", f"a PyTorch tensor of layout `{kind}`", f"pass `{dense}`")
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        help = "pass one with values: those on `meta` have none" if device.type == "meta" else "pass `.cpu()`"
        raise ArgumentProblem("device", f"a PyTorch tensor on `{device}`", help)
    grad = bool(tensor.requires_grad)
    owner = tensor.detach()
    if owner.is_conj() or owner.is_neg():  # views whose sign is applied only when read
        owner = owner.resolve_conj().resolve_neg()
        grad = True
    try:
        address = owner.data_ptr()
    except RuntimeError as error:
        raise ArgumentProblem("device", f"a PyTorch `{type(tensor).__name__}` without memory", "") from error
    dtype = dtype_named(str(owner.dtype))
    size = owner.element_size()
    return ArrayView(
        address,
        tuple(owner.shape),
        tuple(stride * size for stride in owner.stride()),
        dtype,
        str(owner.dtype),
        "cpu" if device.type == "cpu" else f"cuda:{device.index or 0}",
        not grad,
        owner,
        TORCH,
    )


def _torch_fresh(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(shape, dtype=getattr(torch, dtype.value), device=device)


def _torch_allocate(shape: tuple[int, ...], dtype: DType, device: str) -> ArrayView:
    try:
        return _torch_view(_torch_fresh(shape, dtype, device))
    except RuntimeError as error:  # PyTorch reports both kinds of memory by RuntimeError
        raise MemoryError(str(error)) from error


def _torch_stream(device: str) -> int:
    torch = sys.modules["torch"]
    return int(torch.cuda.current_stream(device).cuda_stream) if device != "cpu" else 0


TORCH = Library(
    "torch", _torch_view, _torch_allocate, stream=_torch_stream, fresh=_torch_fresh, address=methodcaller("data_ptr")
)


def lent(value: Any, written: bool) -> NDArray | None:
    """A NumPy array itself, or one of the same elements as a plain PyTorch tensor or JAX array on the CPU; else `None`.

    Args:
        written: it will be written into.
    """
    kind = type(value)
    if kind is np.ndarray:
        return value
    if kind.__module__.startswith("jax"):
        return None if written or not _is_on_host(value) else np.asarray(value)
    torch = sys.modules.get("torch")
    if torch is None or kind not in (torch.Tensor, torch.nn.Parameter) or not value.is_cpu:
        return None
    if written and value.requires_grad:
        return None
    try:
        if value.dtype is torch.bfloat16:  # of which NumPy gets the bits
            bfloat16 = numpy_dtype(DType.BFLOAT16)
            return None if value.requires_grad or bfloat16 is None else value.view(torch.int16).numpy().view(bfloat16)
        return value.numpy()
    except (
        TypeError,
        RuntimeError,
        ValueError,
    ):  # a gradient would be lost, no strides, a type or size that NumPy has not
        return None


def _is_on_host(array: Any) -> bool:
    """Whether this is a JAX array with values, all of them in the memory of the CPU."""
    jax = sys.modules.get("jax")  # a module whose name begins so may be another one
    if jax is None or not isinstance(array, jax.Array) or isinstance(array, jax.core.Tracer) or array.is_deleted():
        return False
    devices = array.devices()
    return len(devices) == 1 and next(iter(devices)).platform == "cpu"


def plain_number(value: Any, floating: bool) -> Any:
    """A number of NumPy, or an array that holds nothing but one, as a number of Python; anything else as it is.

    Args:
        floating: an integer is wanted as a `float`.
    """
    number: Any = value[()] if type(value) is np.ndarray and not value.shape else value
    if isinstance(number, np.generic) and number.dtype.kind in "biufc":
        kind: Any = complex if number.dtype.kind == "c" else float
        number = number.item()  # of `longdouble` it is that again
        if isinstance(number, np.generic):
            found = kind(number)
            if not np.isfinite(found) and np.isfinite(number):
                return value  # it is too large, which the general path says
            number = found
    elif number is not value:  # an element of another class
        return value
    # larger integers may be too large for a float, which the general path says
    fits = type(number) is int and number.bit_length() <= 64
    return float(number) if floating and fits else number


def adopted(arrays: NDArray | tuple[NDArray, ...], like: Any) -> Any:
    """PyTorch tensors, or JAX arrays, of the same elements: whatever an argument is."""
    is_of_jax = type(like).__module__.startswith("jax")
    convert = sys.modules["jax"].numpy.asarray if is_of_jax else _torch_tensor
    return tuple(map(convert, arrays)) if isinstance(arrays, tuple) else convert(arrays)


def _torch_tensor(array: NDArray) -> Any:
    torch = sys.modules["torch"]
    if dtype_of(array.dtype) is not DType.BFLOAT16:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


# CuPy and everything with __cuda_array_interface__ ------------------------------------------------------------------------------


def _cuda_interface_view(array: Any, library: Library) -> ArrayView:
    interface = array.__cuda_array_interface__
    try:
        dtype = np.dtype(interface["typestr"])
        address, read_only = interface["data"]
        shape = tuple(map(index, interface["shape"]))
        strides = tuple(map(index, interface.get("strides") or row_major(shape, dtype.itemsize)))
        masked, start = interface.get("mask") is not None, int(address or 0)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise _unreadable(array, "its `__cuda_array_interface__` is none", error) from error
    if len(strides) != len(shape) or any(not 0 <= extent < 1 << 63 for extent in shape):
        raise _unreadable(array, "its `__cuda_array_interface__` is none", f"the shape {shown_value(shape)}")
    if not dtype.isnative:
        raise ArgumentProblem(
            "device", "an array on a GPU whose bytes are in the order of other machines", "convert it"
        )
    if masked:
        raise ArgumentProblem("device", "a masked array", "masks are not known here")
    name = str(getattr(array, "dtype", dtype))
    device = getattr(getattr(array, "device", None), "id", 0)
    return ArrayView(
        start,
        shape,
        strides,
        dtype_named(name) if dtype.kind == "V" else dtype_of(dtype),
        name,
        f"cuda:{device}",
        not read_only,
        array,
        library,
    )


def _unreadable(array: object, why: str, error: object) -> ArgumentProblem:
    """What is wrong with an object that says that it is an array."""
    kind, said = type(array).__name__[:60], str(error)[:200]
    return ArgumentProblem("device", f"a `{kind}` that cannot be read: {why} ({said})", "pass a NumPy array")


def _cupy_allocate(shape: tuple[int, ...], dtype: DType, device: str) -> ArrayView:
    if dtype is DType.BFLOAT16:
        raise ArgumentProblem("bfloat16", "CuPy has no bfloat16", "pass arrays of PyTorch or JAX")
    return CUPY.view(device_memory().device_empty(shape, dtype, device))


def _cupy_stream(device: str) -> int:
    cupy = sys.modules.get("cupy")
    return int(cupy.cuda.get_current_stream().ptr) if cupy is not None else 0


def _cupy_fresh(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    del device  # CuPy makes arrays on the current one
    return sys.modules["cupy"].empty(shape, storage_dtype(dtype))


CUPY = Library(
    "cupy",
    lambda array: _cuda_interface_view(array, CUPY),
    _cupy_allocate,
    stream=_cupy_stream,
    fresh=_cupy_fresh,
    address=attrgetter("data.ptr"),
)


# JAX -------------------------------------------------------------------------------------------------------------------------


def _jax_view(array: Any) -> ArrayView:
    """A concrete `jax.Array` on one device; it is never written to, since JAX relies on that."""
    try:
        platform = next(iter(array.devices())).platform
        count = len(array.devices())
    except Exception as error:  # a tracer inside `jax.jit` has no device and no values
        raise ArgumentProblem("device", "a traced JAX array", "call the function outside `jax.jit`") from error
    if count != 1:
        raise ArgumentProblem("device", f"a JAX array sharded over {count} devices", "pass one shard")
    if platform == "cpu":
        return replace(_numpy_view(np.asarray(array)), library=JAX, writable=False)
    if platform in ("gpu", "cuda"):
        return replace(_cuda_interface_view(array, JAX), writable=False)
    raise ArgumentProblem("device", f"a JAX array on `{platform}`", "pass `np.asarray(x)`")


def _jax_allocate(shape: tuple[int, ...], dtype: DType, device: str) -> ArrayView:
    if device == "cpu":
        return replace(_numpy_allocate(shape, dtype, device), library=JAX)
    return replace(_cupy_allocate(shape, dtype, device), library=JAX)


def _jax_finish(view: ArrayView) -> Any:
    jax = sys.modules["jax"]
    if view.device != "cpu":
        return jax.dlpack.from_dlpack(view.owner)
    # copies 64-bit types to 32 bits unless `jax_enable_x64` is set, as every array that enters JAX
    return jax.numpy.asarray(view.owner)


def jax_has_64_bits() -> bool:
    """Whether JAX makes arrays of 64 bits; it is asked where one of its arrays came."""
    return bool(sys.modules["jax"].config.jax_enable_x64)


JAX = Library("jax", _jax_view, _jax_allocate, _jax_finish)


# DLPack and __array_interface__ -------------------------------------------------------------------------------------------------


def _standard_view(array: Any) -> ArrayView:
    """Any class of the Python array API standard, DLPack or NumPy's array interface."""
    if hasattr(array, "__cuda_array_interface__"):
        return _cuda_interface_view(array, CUPY)
    return replace(_numpy_view(_foreign_numpy(array)), library=_standard_library(type(array)))


def _foreign_numpy(array: Any) -> NDArray:
    try:
        if hasattr(array, "__array_interface__"):
            return np.asarray(array)
        return np.from_dlpack(array)
    except (BufferError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise _unreadable(array, "NumPy does not take it", error) from error


def _standard_library(kind: type) -> Library:
    def finish(view: ArrayView) -> Any:
        namespace = getattr(kind, "__array_namespace__", None)
        module = sys.modules.get(kind.__module__.partition(".")[0])
        convert = getattr(module, "from_dlpack", None)
        return view.owner if namespace is None or convert is None else convert(view.owner)

    return Library(kind.__module__.partition(".")[0], _standard_view, _numpy_allocate, finish)


# Registered classes -----------------------------------------------------------------------------------------------------------


def register_arrays(
    type: type,
    *,
    shape: Callable[[Any], tuple[int, ...]],
    dtype: Callable[[Any], object],
    pointer: Callable[[Any], int],
    allocate: Callable[[tuple[int, ...], str, str], Any],
    strides: Callable[[Any], tuple[int, ...] | None] | None = None,
    device: Callable[[Any], str] | None = None,
) -> None:
    """Make arrays of a class known as arguments, `out=` and results of compiled functions.

    Args:
        type: the class; subclasses take part as well.
        shape: extents, in elements.
        dtype: something whose text ends in the name of the type: `"float32"`, `np.float32`, `torch.float32`.
        pointer: address of the element with index 0 in every dimension.
        allocate: `(shape, dtype name, device)` -> a fresh row-major array of the class.
        strides: in elements; left out or `None`: row-major.
        device: `"cpu"` (the default) or `"cuda:0"`.
    """

    def view(array: Any) -> ArrayView:
        extents = tuple(int(extent) for extent in shape(array))
        name = _dtype_text(dtype(array))
        element = dtype_named(name)
        steps = None if strides is None else strides(array)
        size = element.bytes if element else 1
        in_bytes = row_major(extents, size) if steps is None else tuple(int(step) * size for step in steps)
        place = "cpu" if device is None else device(array)
        place = "cuda:0" if place == "cuda" else place
        return ArrayView(int(pointer(array)), extents, in_bytes, element, name, place, True, array, library)

    def make(extents: tuple[int, ...], element: DType, place: str) -> ArrayView:
        return view(allocate(extents, element.value, place))

    library = Library(type.__name__, view, make)
    _REGISTERED[type] = library
    _LIBRARIES.clear()
    _LIBRARIES[np.ndarray] = NUMPY


def _dtype_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    return str(value)


_REGISTERED: dict[type, Library] = {}
_LIBRARIES: dict[type, Library | None] = {np.ndarray: NUMPY}
_BY_MODULE = {"torch": TORCH, "cupy": CUPY, "jax": JAX, "jaxlib": JAX}
_SPARSE = ("scipy.sparse", "sparse", "cupyx.scipy.sparse")


def library_of(value: object) -> Library | None:
    """The library that an array belongs to; `None` if `value` is no array."""
    kind = type(value)
    try:
        return _LIBRARIES[kind]
    except KeyError:
        return _LIBRARIES.setdefault(kind, _find_library(kind))


def _find_library(kind: type) -> Library | None:
    for ancestor in kind.__mro__:
        if ancestor in _REGISTERED:
            return _REGISTERED[ancestor]
    if issubclass(kind, np.generic) or kind.__module__.startswith(_SPARSE):
        return None
    if issubclass(kind, np.ndarray):
        return NUMPY
    for ancestor in kind.__mro__:
        root = ancestor.__module__.partition(".")[0]
        if root in _BY_MODULE and (root != "torch" or hasattr(ancestor, "data_ptr")):
            return _BY_MODULE[root] if hasattr(kind, "shape") else None
    protocols = ("__cuda_array_interface__", "__dlpack__", "__array_interface__")
    if any(hasattr(kind, protocol) for protocol in protocols):
        return Library(kind.__name__, _standard_view, _numpy_allocate, _standard_library(kind).finish)
    return None


def view_of(value: object) -> ArrayView:
    """Where the elements of `value` are.

    Raises:
        ArgumentProblem: it is no array, or one whose elements cannot be reached.
    """
    library = library_of(value)
    has_interface = hasattr(value, "__array_interface__") and not isinstance(value, (np.generic, type))
    if library is None and has_interface:
        return _standard_view(value)  # an interface that only the instance has
    if library is None:
        raise _not_an_array(value)
    return library.view(value)


def _not_an_array(value: object) -> ArgumentProblem:
    kind = type(value)
    if isinstance(value, type):  # which has the attributes of its instances
        return ArgumentProblem("type", f"the class `{value.__name__}`", "pass an array")
    if kind.__module__.startswith(_SPARSE):
        return ArgumentProblem("device", f"a sparse `{kind.__name__}`", "pass `.toarray()`")
    if isinstance(value, (list, tuple)):
        return ArgumentProblem(
            "type", f"a Python {kind.__name__}", "pass `np.array(x)` with a type, as in `dtype=np.float32`"
        )
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return ArgumentProblem("rank", f"the number {value!r}", "pass an array")
    if kind.__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
        return ArgumentProblem(
            "device", f"a `{kind.__module__.partition('.')[0]}.{kind.__name__}`", "pass `.to_numpy()`"
        )
    if kind.__module__.startswith("xarray.") and hasattr(value, "data_vars"):
        names = [repr(name) for name in islice(cast("Any", value).data_vars, 3)]
        shown = " or ".join(f"`ds[{name}]`" for name in names)
        return ArgumentProblem("device", f"a `{kind.__name__}`", f"pass one of its arrays: {shown}" if names else "")
    if hasattr(value, "__array__"):
        return ArgumentProblem("device", f"a `{kind.__name__}`", "pass `np.asarray(x)`")
    help = "pass `np.asarray(x)`" if _has_buffer(value) else "pass an array"
    return ArgumentProblem("type", "None" if value is None else f"a `{kind.__name__}`", help)


def _has_buffer(value: object) -> bool:
    """Whether this is a `memoryview`, an `array.array` or the like, of which NumPy makes an array."""
    try:
        return memoryview(value).ndim > 0 and not isinstance(value, (bytes, bytearray))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, BufferError):
        return False


def prepared(view: ArrayView) -> ArrayView:
    """`view` itself if an engine can read it in place, else a native, aligned, row-major copy."""
    if view.usable:
        return view
    return copied(view)


def copied(view: ArrayView) -> ArrayView:
    """A native, aligned, row-major copy on the same device.

    Raises:
        MemoryError: the copy does not fit.
    """
    assert view.dtype is not None
    if view.device != "cpu":
        place = (view.address, view.shape, view.strides, view.dtype, view.device, view.owner)
        copy = CUPY.view(device_memory().device_copy(*place))
        return replace(copy, dtype=view.dtype, dtype_name=view.dtype_name)
    target = empty(view.shape, storage_dtype(view.dtype))
    source = as_numpy(view)
    np.copyto(target, source if source.dtype.newbyteorder("=") == target.dtype else source.view(target.dtype))
    return replace(_numpy_view(target), dtype=view.dtype, dtype_name=view.dtype_name)


def copy_into(target: ArrayView, source: ArrayView) -> None:
    """Copy all elements between arrays of one type, shape and device, whatever their strides and byte orders."""
    if target.device == "cpu":
        np.copyto(as_numpy(target), as_numpy(source), casting="unsafe")
        return
    device_memory().device_copy_into(target, source)


def share_memory(first: ArrayView, second: ArrayView) -> bool:
    """Whether some byte belongs to both; when the exact question is too hard, whether their spans meet."""
    if first.device != second.device:
        return False
    (low, high), (other_low, other_high) = first.span, second.span
    if low == high or other_low == other_high or high <= other_low or other_high <= low:
        return False
    return share_elements(_shape_at(first), _shape_at(second))


def share_elements(first: NDArray, second: NDArray) -> bool:
    """`share_memory` of NumPy arrays."""
    try:
        return bool(np.shares_memory(first, second, cast(Any, 100_000)))
    except np.exceptions.TooHardError:
        return True


def apart(array: NDArray, target: NDArray) -> NDArray | None:
    """`array` if it shares no memory with `target`, a copy if it is the same elements, `None` if it is others.

    Raises:
        MemoryError: the copy does not fit.
    """
    if not share_elements(array, target):
        return array
    same = numpy_address(array) == numpy_address(target)
    if not same or (array.shape, array.strides) != (target.shape, target.strides):
        return None
    copy = empty(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy


def overlaps_itself(view: ArrayView) -> bool:
    """Whether two index tuples name the same element, as in a broadcast array."""
    steps = zip(view.shape, view.strides, strict=True)
    dims = sorted((abs(stride), extent) for extent, stride in steps if extent > 1)
    reach = ITEMSIZE[view.dtype] if view.dtype else 1
    if 0 in view.shape:
        return False
    for stride, extent in dims:
        if stride < reach:
            return True
        reach += (extent - 1) * stride
    return False


def _shape_at(view: ArrayView) -> NDArray:
    """A NumPy array of that place and shape, to compute with its addresses only; on a GPU its elements must not be touched."""
    size = ITEMSIZE[view.dtype] if view.dtype else 1
    return _at_address(view, np.dtype(f"V{size}") if size not in (1, 2, 4, 8) else np.dtype(f"u{size}"))


def index_bits(view: ArrayView) -> int:
    """32 if every byte offset from element 0 and the number of elements fit a signed 32-bit integer; else 64."""
    size = ITEMSIZE[view.dtype] if view.dtype else 1
    steps = zip(view.shape, view.strides, strict=True)
    reach = sum(abs(stride) * (extent - 1) for extent, stride in steps if extent > 1) + size
    return 32 if reach <= 0x7FFF_FFFF and view.elements <= 0x7FFF_FFFF else 64
