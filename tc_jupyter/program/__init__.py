"""Tree -> checked program; the two languages meet here.

Comes in: a syntax tree. Goes out: `Program` values with resolved names and explicit types, and diagnostics.
Ranges are not known here.
"""

from . import bits, random_numbers
from .check_sac import CheckedFunction, CheckedSac, SacCall, Signature, Specialized, bind_call, check_sac
from .check_tc import Callee, Checked, check_tc, python_name
from .conditions import conjuncts, identity_of, negated, on_data, points_of
from .expr import (
    COMPARISONS,
    LARGEST_ARRAY,
    LOGICAL,
    REAL,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    array_bytes,
    children,
    int64,
    rebuild,
    rewrite,
    variables,
    walk,
)
from .extents import solutions
from .factoring import Factored, product_of, summed_first
from .functions import FUNCTIONS, TC_FUNCTIONS, Function
from .left_sides import condition_of, decided_by_data, folded_where, keeps, places, with_condition
from .literals import lost_literals
from .neighbours import SHORTEST_ROW, is_along_rows
from .orders import order_clause
from .positions import LARGEST_POSITION, NO_POSITION, in_32_bits, positions
from .products import factors_of, keeps_values, without_factors
from .program import (
    FOLD_LEFT,
    FOLD_RIGHT,
    ArgumentType,
    CallSite,
    Equality,
    Index,
    Partition,
    Program,
    Reducer,
    Statement,
    Tensor,
    as_size,
    turns,
)
from .recurrences import Recurrence, nothing, recurrence_of
from .reducers import at_part, component_of, lifted, with_operands
from .specialize import specialize
from .typing import Leaves, intervals, limits_of, may_wrap

__all__ = [
    "SHORTEST_ROW",
    "Factored",
    "Leaves",
    "Recurrence",
    "nothing",
    "recurrence_of",
    "ArgumentType",
    "CheckedFunction",
    "CheckedSac",
    "SacCall",
    "Signature",
    "Specialized",
    "bind_call",
    "product_of",
    "random_numbers",
    "bits",
    "check_sac",
    "specialize",
    "FOLD_LEFT",
    "FOLD_RIGHT",
    "FUNCTIONS",
    "TC_FUNCTIONS",
    "Checked",
    "Function",
    "check_tc",
    "factors_of",
    "keeps",
    "keeps_values",
    "lost_literals",
    "python_name",
    "COMPARISONS",
    "LOGICAL",
    "Binary",
    "Call",
    "CallSite",
    "Callee",
    "Cast",
    "Const",
    "DType",
    "Equality",
    "Expr",
    "Index",
    "LARGEST_ARRAY",
    "LARGEST_POSITION",
    "NO_POSITION",
    "IndexVar",
    "Partition",
    "Program",
    "REAL",
    "Read",
    "Reducer",
    "Select",
    "Size",
    "Statement",
    "Tensor",
    "Unary",
    "as_size",
    "at_part",
    "children",
    "component_of",
    "condition_of",
    "conjuncts",
    "decided_by_data",
    "folded_where",
    "identity_of",
    "is_along_rows",
    "in_32_bits",
    "int64",
    "intervals",
    "lifted",
    "limits_of",
    "may_wrap",
    "negated",
    "on_data",
    "order_clause",
    "places",
    "points_of",
    "positions",
    "rebuild",
    "rewrite",
    "summed_first",
    "turns",
    "variables",
    "walk",
    "with_condition",
    "with_operands",
    "without_factors",
    "array_bytes",
    "solutions",
]
