"""Program -> ranges, shapes, origins, preconditions, regions.

Comes in: a checked `Program`. Goes out: `Ranges` with a range for every index and a box for every tensor, the preconditions
under which all accesses stay inside, and why. No number of a call is known here but in `at_call`.
"""

from .accesses import Access, Bound, Guard
from .convert import Scope, from_expr, to_condition, to_expr
from .display import condition_text, range_text, to_prose, to_python
from .inference import IndexRange, Ranges, Round, Shaped, infer_ranges
from .interval import Box, Interval, Limit, interval, solve
from .preconditions import EqualityCheck, Precondition, Preconditions, preconditions
from .sets import Answer, IntegerMap, IntegerSet, Unknown, prove, scan
from .size_expr import (
    Choice,
    Condition,
    Datum,
    Extremum,
    FloorDiv,
    Mod,
    Name,
    Opaque,
    Product,
    SizeExpr,
    choose,
    constant,
    extreme,
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
    "Answer",
    "Bound",
    "Box",
    "Choice",
    "Condition",
    "Datum",
    "EqualityCheck",
    "Extremum",
    "FloorDiv",
    "Guard",
    "IndexRange",
    "IntegerMap",
    "IntegerSet",
    "Interval",
    "Limit",
    "Mod",
    "Name",
    "Opaque",
    "Precondition",
    "Preconditions",
    "Product",
    "Ranges",
    "Round",
    "Scope",
    "Shaped",
    "SizeExpr",
    "Unknown",
    "choose",
    "condition_text",
    "constant",
    "extreme",
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
    "preconditions",
    "prove",
    "range_text",
    "scalar",
    "scan",
    "size",
    "solve",
    "to_condition",
    "to_expr",
    "to_prose",
    "to_python",
]
