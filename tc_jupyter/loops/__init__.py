"""Program + schedule + bounds -> loop IR, built from boxes.

Goes out: `Kernel` values, the last form that both back ends share. `interpret` runs them: the meaning of every program.
"""

from .empty_rounds import without_empty_rounds
from .expand import expand
from .ir import (
    SPARE,
    Allocate,
    Barrier,
    Block,
    Buffer,
    Check,
    For,
    If,
    Intrinsic,
    Kernel,
    Stmt,
    Store,
    expressions,
    sub_blocks,
    walk_statements,
)
from .lower import PointCheck, lower, lower_later
from .points import is_cheap, is_inside, with_points
from .rewrite import block_with_expressions, with_blocks, with_expressions
from .simplify import simplify, simplify_expr
from .verify import IllegalKernel, verify

__all__ = [
    "SPARE",
    "Allocate",
    "Barrier",
    "Block",
    "Buffer",
    "Check",
    "For",
    "If",
    "IllegalKernel",
    "Intrinsic",
    "Kernel",
    "PointCheck",
    "Stmt",
    "Store",
    "block_with_expressions",
    "expand",
    "expressions",
    "is_cheap",
    "is_inside",
    "lower",
    "lower_later",
    "simplify",
    "simplify_expr",
    "sub_blocks",
    "verify",
    "walk_statements",
    "with_blocks",
    "with_expressions",
    "with_points",
    "without_empty_rounds",
]
