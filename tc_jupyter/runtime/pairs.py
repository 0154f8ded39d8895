"""Arrays of complex numbers as arrays of pairs of floats over the same memory, and back: kernels know floats only.

Comes in: arguments and results of a def with complex numbers, as arrays or as views of their memory. Goes out: the same with one
dimension of two elements more, or less. The general path works with views, and has words for what is wrong; `Pairs` turns
arrays of NumPy, PyTorch and CuPy around for calls that are repeated.

Worked example: `in_pairs` of a view of 3 `complex64`, 16 bytes apart, has shape `(3, 2)`, strides `(16, 4)` and elements `float32`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tc_jupyter.program import DType

from .arrays import ArrayView, numpy_dtype


def in_pairs(view: ArrayView) -> ArrayView:
    """A view of complex numbers as one of pairs; another one as it is."""
    dtype = view.dtype
    if dtype is None or not dtype.is_complex:
        return view
    part = dtype.part
    owner = split(view.owner, part) if isinstance(view.owner, np.ndarray) else view.owner
    shape, strides = (*view.shape, 2), (*view.strides, part.bytes)
    return replace(view, shape=shape, strides=strides, dtype=part, dtype_name=part.value, owner=owner)


def in_numbers(view: ArrayView) -> ArrayView:
    """A view of pairs as one of complex numbers."""
    assert view.dtype is not None
    dtype = view.dtype.of_pairs
    owner = joined(view.owner) if isinstance(view.owner, np.ndarray) else view.owner
    shape, strides = view.shape[:-1], view.strides[:-1]
    return replace(view, shape=shape, strides=strides, dtype=dtype, dtype_name=dtype.value, owner=owner)


def split(array: np.ndarray[Any, Any], part: DType) -> np.ndarray[Any, Any]:
    """Pairs over the memory of complex numbers, in their byte order."""
    kind = numpy_dtype(part)
    assert kind is not None
    return array[..., np.newaxis].view(kind if array.dtype.isnative else kind.newbyteorder())


def joined(array: Any) -> Any:
    """Complex numbers over the memory of pairs: of an array of NumPy, CuPy or PyTorch; complex numbers as they are."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return array if array.is_complex() else torch.view_as_complex(array)
    if array.dtype.kind == "c":
        return array
    return array.view(np.dtype(f"{array.dtype.byteorder}c{2 * array.dtype.itemsize}"))[..., 0]


def in_floats(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of the host with pairs in place of complex numbers; another one as it is."""
    return array if array.dtype.kind != "c" else split(array, DType(array.dtype.name).part)


def pair(number: complex, dtype: DType) -> np.ndarray[Any, Any]:
    """A complex number as an array of its two parts."""
    return np.array((number.real, number.imag), numpy_dtype(dtype.part))


@dataclass(frozen=True, slots=True)
class Pairs:
    """The complex numbers among the arguments of a def, which those of `out=` follow.

    Attributes:
        kinds: the type of each argument, and whether it has dimensions.
        results: the types of the results.
    """

    kinds: tuple[tuple[DType, bool], ...]
    results: tuple[DType, ...]

    def split(self, values: Sequence[Any]) -> tuple[Any, ...] | None:
        """The arguments with pairs in place of complex numbers; `None` if the general path has to look at one."""
        if len(values) > len(self.kinds):
            return None
        found: list[Any] = []
        for value, (dtype, is_array) in zip(values, self.kinds, strict=False):
            found.append(_split(value, dtype, is_array) if dtype.is_complex else value)
            if found[-1] is None:
                return None
        return tuple(found)

    def joined(self, values: Sequence[Any]) -> list[Any]:
        """The arrays that `split` took apart."""
        pairs = zip(values, self.kinds, strict=False)
        return [joined(value) if dtype.is_complex else value for value, (dtype, _) in pairs]

    @property
    def are_arrays(self) -> bool:
        """Whether all complex arguments have dimensions."""
        return all(is_array for dtype, is_array in self.kinds if dtype.is_complex)

    def number(self, place: int, result: Any) -> Any:
        """A result of a call with complex numbers in place of pairs."""
        return joined(result) if self.results[place].is_complex else result

    def numbers(self, results: Any) -> Any:
        """The results of a call with complex numbers in place of pairs."""
        if len(self.results) == 1:
            return self.number(0, results)
        return tuple([self.number(k, each) for k, each in enumerate(results)])


def _split(value: Any, dtype: DType, is_array: bool) -> Any:
    kind = type(value)
    if not is_array:
        return pair(value, dtype) if kind in (complex, float, int) and _fits(value, dtype) else None
    if kind is np.ndarray:
        return split(value, dtype.part) if value.dtype == numpy_dtype(dtype) else None
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor:
        plain = value.dtype is getattr(torch, dtype.value) and value.layout is torch.strided
        return torch.view_as_real(value) if plain and not value.requires_grad and not value.is_conj() else None
    if cupy is not None and kind is cupy.ndarray and value.dtype == numpy_dtype(dtype):
        strides = (*value.strides, dtype.part.bytes)
        return cupy.ndarray((*value.shape, 2), numpy_dtype(dtype.part), value.data, strides)
    return None


def _fits(number: complex, dtype: DType) -> bool:
    """Whether a number can be told apart from infinity after it is rounded; `misfit` says of others what they are."""
    most = 3.4e38 if dtype.part is DType.FLOAT32 else 1.7e308
    return -most < number.real < most and -most < number.imag < most
