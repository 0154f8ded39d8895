"""The fast way to an array's elements finds what NumPy's own interface says."""

from __future__ import annotations

import numpy as np
import pytest

from tc_jupyter.runtime.address import numpy_address


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3),
        np.zeros(3)[1:],
        np.zeros((4, 5), np.float32)[::-1, 2:],
        np.zeros((4, 5)).T,
        np.zeros((0, 7), np.int8),
        np.array(1.0),
        np.zeros(6, np.float16).reshape(2, 3)[:, None],
    ],
)
def test_the_fast_address_is_the_slow_one(array):
    assert numpy_address(array) == array.__array_interface__["data"][0]
