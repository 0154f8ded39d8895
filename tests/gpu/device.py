"""Calls on a real GPU: arguments go there, results come back as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tc_jupyter.function import Function
from tc_jupyter.program import DType

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def on_gpu(functions: Mapping[str, Function], arrays: Mapping[str, Any]) -> list[np.ndarray]:
    """What the only function gives for these arguments."""
    (function,) = functions.values()
    return called_on_gpu(function, list(arrays.values()))


def called_on_gpu(function: Function, arrays: list[Any]) -> list[np.ndarray]:
    """The results of the third of three calls, which follows the recipe of the second (see `runtime.call_recipe`).

    CuPy has no `bfloat16`; a def with such a tensor is called with tensors of PyTorch.
    """
    dtypes = [tensor.dtype for tensor in function.program.tensors]
    to, back = (_torch, _from_torch) if DType.BFLOAT16 in dtypes else (_cupy, _from_cupy)
    for _ in range(3):
        found = function(*(to(each) if isinstance(each, np.ndarray) and each.ndim else each for each in arrays))
    return [back(each) for each in (found if isinstance(found, tuple) else (found,))]


def _cupy(array: np.ndarray) -> Any:
    import cupy

    return cupy.asarray(array)


def _from_cupy(array: Any) -> np.ndarray:
    import cupy

    return cupy.asnumpy(array)


def _torch(array: np.ndarray) -> Any:
    import torch

    plain = np.ascontiguousarray(array)
    if plain.dtype == BFLOAT16:
        return torch.from_numpy(plain.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(plain).cuda()


def _from_torch(array: Any) -> np.ndarray:
    import torch

    if array.dtype == torch.bfloat16:
        return array.cpu().view(torch.int16).numpy().view(BFLOAT16)
    return array.cpu().numpy()
