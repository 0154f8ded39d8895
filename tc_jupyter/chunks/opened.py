"""A `%%sac` function called with arrays in chunks: what it is for their ranks and types, which are known before any element is.

Worked example: `double[*] smooth(double[*] a)` and an array of Dask with two dimensions give the def that a call
with a matrix runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tc_jupyter.compiler.definition import Definition
from tc_jupyter.compiler.open_definition import OpenDefinition
from tc_jupyter.diagnostics import codes
from tc_jupyter.program import Read, walk
from tc_jupyter.runtime.arguments import fail

from .plan import outline


def definition_for(function: OpenDefinition, values: Sequence[Any]) -> Definition:
    """The def for the arguments of a call, in their order.

    Raises:
        CallError: as a call; TC670, elements that are not computed yet decide what it is.
    """
    shown = [_outline(each) for each in values]
    definition = function.at(shown)
    special = definition.special
    assert special is not None
    decides = {definition.names[at] for at, _ in special.signature.values}
    decides |= {
        node.tensor for check in special.found.checks for node in walk(check.condition) if isinstance(node, Read)
    }
    for name, value, other in zip(definition.names, values, shown, strict=True):
        if name in decides and value is not other:
            message = f"`{name}` decides what `{function.name}` computes, and is not computed yet"
            fail(
                codes.CHUNKED_CALL,
                message,
                function.source,
                function.span,
                help="pass it as an array in memory, or a number",
            )
    return definition


def _outline(value: Any) -> Any:
    """An array in memory, or a number, with the type and the shape of a value; extents that are not known are told later."""
    shape = getattr(value, "shape", ())
    if shape and any(map(math.isnan, shape)):
        return np.zeros((1,) * len(shape), value.dtype)
    if not shape and hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic)):
        return np.zeros((), value.dtype)[()]
    return outline(value)
