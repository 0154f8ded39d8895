"""Where the elements of a NumPy array are.

Worked example: `numpy_address(np.zeros(3)[1:])` is 8 more than the address of the array that it is a part of.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_HEADER = object.__basicsize__
_pointer_at = ctypes.c_size_t.from_address


def _slow_address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _find_address() -> Callable[[np.ndarray[Any, Any]], int]:
    """The fastest way to the address of element 0.

    The data pointer is the first field of NumPy's array object, which is part of its C interface; reading it takes a tenth of
    `__array_interface__`. Where `id` is no address or the field is elsewhere, the probe notices.
    """
    probe = np.empty(3, np.int32)[1:]
    if sys.implementation.name == "cpython" and _pointer_at(id(probe) + _HEADER).value == _slow_address(probe):
        return lambda array: _pointer_at(id(array) + _HEADER).value
    return _slow_address


numpy_address: Callable[[np.ndarray[Any, Any]], int] = _find_address()
