"""Program -> ranges, shapes, origins, preconditions, regions.

Comes in: a checked `Program`. Goes out: `Ranges` with a range for every index and a box for every tensor, the preconditions
under which all accesses stay inside, and why. No number of a call is known here but in `at_call`.
"""

from .accesses import Access, Bound, Guard
from .at_call import Bind, BoundNumbers, at_sizes, make_bind
from .convert import Scope, from_expr, to_condition, to_expr
from .data import DataCheck, PointCheck, check_data, data_checks, failure
from .display import condition_text, range_text, to_prose, to_python
from .explain import Explanation, Step, explain, summary
from .inference import IndexRange, Ranges, Round, Shaped, infer_ranges
from .interval import Box, Interval, Limit, interval, solve
from .latex import FormulaUnavailable, range_latex, to_latex, to_sympy
from .preconditions import EqualityCheck, Precondition, Preconditions, preconditions
from .regions import Region, hull, input_region, region
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
    "Bind",
    "Bound",
    "BoundNumbers",
    "Box",
    "Choice",
    "Condition",
    "DataCheck",
    "Datum",
    "EqualityCheck",
    "Explanation",
    "Extremum",
    "FloorDiv",
    "FormulaUnavailable",
    "Guard",
    "IndexRange",
    "IntegerMap",
    "IntegerSet",
    "Interval",
    "Limit",
    "Mod",
    "Name",
    "Opaque",
    "PointCheck",
    "Precondition",
    "Preconditions",
    "Product",
    "Ranges",
    "Region",
    "Round",
    "Scope",
    "Shaped",
    "SizeExpr",
    "Step",
    "Unknown",
    "at_sizes",
    "check_data",
    "choose",
    "condition_text",
    "constant",
    "data_checks",
    "explain",
    "extreme",
    "failure",
    "floor_div",
    "from_expr",
    "hull",
    "index",
    "infer_ranges",
    "input_region",
    "interval",
    "make_bind",
    "maximum",
    "minimum",
    "mod",
    "nonnegative",
    "of_atom",
    "preconditions",
    "prove",
    "range_latex",
    "range_text",
    "region",
    "scalar",
    "scan",
    "size",
    "solve",
    "summary",
    "to_condition",
    "to_expr",
    "to_latex",
    "to_prose",
    "to_python",
    "to_sympy",
]
