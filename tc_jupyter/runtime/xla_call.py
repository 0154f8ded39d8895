"""A function of Python as XLA calls foreign functions: the C structures of its interface, without a C compiler.

Comes in: a function of a number and of the arrays of operands and results, as NumPy arrays of XLA's own memory. Goes out: the
address of a handler for `jax.ffi.pycapsule`. An exception becomes the error that XLA reports.

The structures are those of `xla/ffi/api/c_api.h`, major version 0. Fields are only ever added behind those that are read here.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np

from tc_jupyter.program import DType

from .arrays import storage_dtype

METADATA = 1
"""The extension by which XLA asks for the version that a handler was made for."""
EXECUTE = 3
INTERNAL = 13

_TYPES: dict[int, DType] = {
    **dict(enumerate((DType.BOOL, DType.INT8, DType.INT16, DType.INT32, DType.INT64), 1)),
    **dict(enumerate((DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64), 6)),
    **dict(enumerate((DType.FLOAT16, DType.FLOAT32, DType.FLOAT64), 10)),
    **{15: DType.COMPLEX64, 16: DType.BFLOAT16, 18: DType.COMPLEX128},
}
"""The types by the numbers that XLA has for them."""


class _Head(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p)]


class _Extension(Structure):
    _fields_ = [("size", c_size_t), ("type", c_int32), ("next", c_void_p), ("metadata", c_void_p)]


class _Version(Structure):
    _fields_ = [*_Head._fields_, ("major", c_int32), ("minor", c_int32)]


class _Metadata(Structure):
    _fields_ = [("size", c_size_t), ("version", _Version), ("traits", c_int32)]


class _ErrorArguments(Structure):
    _fields_ = [*_Head._fields_, ("message", c_char_p), ("code", c_int32)]


_CREATE_ERROR = ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))


class _Api(Structure):
    _fields_ = [*_Head._fields_, ("version", _Version), ("internal", c_void_p), ("create_error", _CREATE_ERROR)]


class _Buffer(Structure):
    _fields_ = [*_Head._fields_, ("dtype", c_int32), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))]


class _Buffers(Structure):
    _fields_ = [*_Head._fields_, ("count", c_int64), ("types", c_void_p), ("all", POINTER(POINTER(_Buffer)))]


class _Scalar(Structure):
    _fields_ = [("dtype", c_int32), ("value", POINTER(c_int64))]


class _Attributes(Structure):
    _fields_ = [
        *_Head._fields_, ("count", c_int64), ("types", c_void_p), ("names", c_void_p), ("all", POINTER(POINTER(_Scalar))),
    ]  # fmt: skip


class _Frame(Structure):
    _fields_ = [
        *_Head._fields_, ("api", POINTER(_Api)), ("context", c_void_p), ("stage", c_int32),
        ("operands", _Buffers), ("results", _Buffers), ("attributes", _Attributes),
    ]  # fmt: skip


_HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))


def handler(run: Callable[[int, list[Any], list[Any]], None]) -> Any:
    """The handler that runs a function with the one attribute of a call, a number, its operands and its results."""

    def handle(pointer: Any) -> int | None:
        frame = pointer.contents
        try:
            if frame.extension:
                return _tell_version(frame)
            if frame.stage == EXECUTE:
                run(frame.attributes.all[0].contents.value[0], _arrays(frame.operands), _arrays(frame.results))
        except BaseException as error:  # nothing may pass through the frames of XLA
            return _error(frame, f"{error}")
        return None

    return _HANDLER(handle)


def _tell_version(frame: Any) -> None:
    """Answer that the handler speaks the version of the interface that is there, whose major number is 0."""
    extension = _Extension.from_address(frame.extension)
    if extension.type == METADATA:
        version, own = frame.api.contents.version, _Metadata.from_address(extension.metadata)
        own.version.major, own.version.minor, own.traits = 0, version.minor if version.major == 0 else 0, 0


def _arrays(buffers: Any) -> list[Any]:
    return [_array(buffers.all[number].contents) for number in range(buffers.count)]


def _array(buffer: Any) -> Any:
    """The array of a buffer, where it lies."""
    shape, dtype = tuple(buffer.dims[: buffer.rank]), storage_dtype(_TYPES[buffer.dtype])
    size = math.prod(shape) * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(buffer.data) if size else None
    return np.ndarray(shape, dtype, memory)


def _error(frame: Any, text: str) -> int:
    arguments = _ErrorArguments()
    arguments.size, arguments.message, arguments.code = ctypes.sizeof(arguments), text.encode(), INTERNAL
    return frame.api.contents.create_error(ctypes.byref(arguments))


def empty_like(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array with this shape and type, and next to no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)
