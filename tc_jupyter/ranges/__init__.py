"""Program -> ranges, shapes, origins, preconditions, regions.

Comes in: a checked `Program`. Goes out: `Ranges` with a range for every index and a box for every tensor, the preconditions under which
all accesses stay inside, and why. No number of a call is known here but in `at_call`.
"""

from .accesses import Access, Bound
from .convert import Scope, from_expr, to_expr
from .display import to_python
from .inference import IndexRange, Ranges, Round, infer_ranges
from .interval import Box, Interval, interval, solve
from .size_expr import (
    Choice,
    Condition,
    Datum,
    Extremum,
    FloorDiv,
    Name,
    Opaque,
    SizeExpr,
    choose,
    constant,
    floor_div,
    index,
    maximum,
    minimum,
    mod,
    nonnegative,
    of_atom,
    scalar,
    size,
)

__all__ = [
    "Access",
    "Bound",
    "Box",
    "Choice",
    "Condition",
    "Datum",
    "Extremum",
    "FloorDiv",
    "IndexRange",
    "Interval",
    "Name",
    "Opaque",
    "Ranges",
    "Round",
    "Scope",
    "SizeExpr",
    "choose",
    "constant",
    "floor_div",
    "from_expr",
    "index",
    "infer_ranges",
    "interval",
    "maximum",
    "minimum",
    "mod",
    "nonnegative",
    "of_atom",
    "scalar",
    "size",
    "solve",
    "to_expr",
    "to_python",
]
