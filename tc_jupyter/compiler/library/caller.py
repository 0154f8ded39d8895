"""Calls the functions of an exported library with NumPy arrays; a wheel holds a copy of this file, which needs NumPy alone.

Comes in: the path of a shared library, and what its functions take. Goes out: functions that check as the library does, and raise
`ValueError` with its text.

Worked example: `Function(library, "mv", "mv", (("A", "float32", 2), ("B", "float32", 1)), (("o", "float32", 1),))(A, B)` is `o`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

_BITS = {"bfloat16": "uint16"}
Kind = tuple[str, str, int]
"""Name, type and rank of an argument or a result."""


def load(path: str) -> ctypes.CDLL:
    """The library at a path."""
    return ctypes.CDLL(path)


class Function:
    """A function of a library; `f(X, Y)` gives an array, or a tuple of several, and `f(X, Y, out=Z)` writes into one."""

    def __init__(
        self,
        library: ctypes.CDLL,
        name: str,
        symbol: str,
        inputs: Sequence[Kind],
        results: Sequence[Kind],
        onto: bool = False,
        text: str = "",
    ) -> None:
        """`symbol`: the name in C; `onto`: the library has a function that combines onto the content of `out`."""
        self.__name__, self.__doc__ = name, text
        self._inputs, self._results = tuple(inputs), tuple(results)
        self._call = getattr(library, symbol)
        self._onto = getattr(library, f"{symbol}_onto") if onto else self._call
        self._shapes = getattr(library, f"{symbol}_shapes")
        self._error = getattr(library, f"{symbol}_error")
        self._error.restype = ctypes.c_char_p

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Compute the results.

        Raises:
            TypeError: an argument is missing, unknown, or of another type or rank.
            ValueError: the arguments do not fit each other, or `out` does not.
        """
        inputs, kept = self._passed(self._positional(args, named))
        given = out if isinstance(out, (tuple, list)) else () if out is None else (out,)
        if out is not None and len(given) != len(self._results):
            raise TypeError(f"{self.__name__} has {len(self._results)} results; out= has {len(given)}")
        shapes = self._shapes_of(inputs)
        pairs = zip(self._results, shapes, strict=True)
        arrays = [self._out(kind, each) for kind, each in zip(self._results, given, strict=True)] if given else []
        arrays = arrays or [np.empty(shape, _numpy(dtype)) for (_, dtype, _), shape in pairs]
        written = [_array(each, rank) for (_, _, rank), each in zip(self._results, arrays, strict=True)]
        self._check((self._onto if given else self._call)(*inputs, *written, None))
        del kept
        if out is not None:
            return out
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _positional(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        names = [name for name, _, _ in self._inputs]
        unknown = [name for name in named if name not in names[len(args) :]]
        if unknown or len(args) + len(named) != len(names):
            raise TypeError(f"{self.__name__} takes {', '.join(names)}" + (f"; {unknown[0]!r} came" if unknown else ""))
        return [*args, *[named[name] for name in names[len(args) :]]]

    def _passed(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The arguments as C has them, and what has to live meanwhile."""
        found: list[Any] = []
        kept: list[Any] = []
        for (name, dtype, rank), value in zip(self._inputs, values, strict=True):
            kind = _numpy(dtype)
            if rank:
                array = np.asarray(value)
                if array.dtype != kind or array.ndim != rank:
                    came = f"{array.ndim} dimensions of {array.dtype}"
                    raise TypeError(f"{self.__name__}: {name} has {rank} dimensions of {kind}; {came} came")
                array = array if _in_elements(array) and array.flags.aligned else np.ascontiguousarray(array)
                kept.append(array)
                found.append(_array(array, rank))
            elif kind.kind == "c":
                kept.append(np.array(value, kind))
                found.append(ctypes.c_void_p(kept[-1].ctypes.data))
            else:
                found.append(self._number(name, dtype, value))
        return found, kept

    def _number(self, name: str, dtype: str, value: Any) -> Any:
        kind = np.dtype("float32") if dtype == "bfloat16" else _numpy(dtype)
        number = np.asarray(value)
        if number.ndim or not _fits(number, kind):
            raise TypeError(f"{self.__name__}: {name} is a number of type {dtype}")
        if dtype == "float16":
            return ctypes.c_uint16(int(number.astype(kind).view(np.uint16)))
        if dtype == "bfloat16":
            return ctypes.c_uint16(_bfloat16(float(number)))
        return np.ctypeslib.as_ctypes_type(kind)(number.item())

    def _shapes_of(self, inputs: Sequence[Any]) -> list[tuple[int, ...]]:
        shaped = [_struct(rank)() for _, _, rank in self._results if rank]
        self._check(self._shapes(*inputs, *map(ctypes.byref, shaped)))
        found = iter(shaped)
        return [tuple(next(found).sizes) if rank else () for _, _, rank in self._results]

    def _out(self, kind: Kind, value: Any) -> Any:
        name, dtype, rank = kind
        good = isinstance(value, np.ndarray) and value.dtype == _numpy(dtype) and value.ndim == rank
        if not good or not value.flags.writeable:
            raise TypeError(
                f"{self.__name__}: out= for {name} is a writable array with {rank} dimensions of {_numpy(dtype)}"
            )
        if not _in_elements(value):
            raise ValueError(f"{self.__name__}: `{name}` does not lie in row order")
        return value

    def _check(self, code: int) -> None:
        if code:
            raise ValueError(f"{self.__name__}: {self._error(code).decode()}")


def _numpy(dtype: str) -> np.dtype[Any]:
    return np.dtype(_BITS.get(dtype, dtype))


def _in_elements(array: np.ndarray[Any, Any]) -> bool:
    """Whether the strides are multiples of an element, as C has them: those of a field of records may not be."""
    return all(stride % array.itemsize == 0 for stride in array.strides)


def _fits(number: np.ndarray[Any, Any], kind: np.dtype[Any]) -> bool:
    """Whether a number is one of this type; floats are rounded."""
    if kind.kind not in "iu":
        return kind.kind == "f" or number.dtype.kind == kind.kind
    if number.dtype.kind not in "iu":
        return False
    info = np.iinfo(kind)
    return int(info.min) <= int(number) <= int(info.max)


def _bfloat16(value: float) -> int:
    bits = int(np.float32(value).view(np.uint32))
    return 0x7FC0 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


_STRUCTS: dict[int, Any] = {}


def _struct(rank: int) -> Any:
    """The struct of an array: address, extents, strides in elements."""
    if rank not in _STRUCTS:
        fields = [
            ("data", ctypes.c_void_p), ("sizes", ctypes.c_int64 * rank), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ]  # fmt: skip
        _STRUCTS[rank] = type(f"Array{rank}", (ctypes.Structure,), {"_fields_": fields})
    return _STRUCTS[rank]


def _array(array: np.ndarray[Any, Any], rank: int) -> Any:
    """An array as an argument."""
    if not rank:
        return ctypes.c_void_p(array.ctypes.data)
    steps = (ctypes.c_int64 * rank)(*[stride // array.itemsize for stride in array.strides])
    made = _struct(rank)(array.ctypes.data, tuple(array.shape), ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)))
    made.kept = steps
    return ctypes.byref(made)
