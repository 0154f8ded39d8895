"""Parts of a reduction, put together.

Worked example: the sums over two halves of a dimension, added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

COMBINE = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}
"""The reductions whose parts are combined, and how."""


def combined(operator: str, dtype: np.dtype[Any] | None, *parts: Any) -> Any:
    """Parts of a reduction together; at last in the type of the result."""
    function = COMBINE[operator]
    total = parts[0]
    with np.errstate(all="ignore"):  # integers wrap, and floats do what they do
        for part in parts[1:]:
            total = function(total, part)
    return np.asarray(total if dtype is None else np.asarray(total).astype(dtype, copy=False))
