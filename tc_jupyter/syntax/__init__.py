"""Text -> tree: two grammars, one family of nodes, canonical text.

Comes in: the text of a cell. Goes out: a tree with a span on every node, and diagnostics. Names and types have no meaning here.
"""

from . import library_names
from .made import ALLOCATING, filled
from .parser import in_order, parse_tc
from .printer import block_text, expression_text, reducer_text, statement_text, to_text
from .sac_parser import parse_sac
from .sac_printer import sac_to_text
from .sac_tree import SacParsed, SacUnit
from .slices import LETTERS
from .tokens import KEYWORDS, REDUCTIONS, SCALAR_TYPES, is_own, own_operators
from .tree import JOINING, Parsed, Unit, is_open

__all__ = [
    "ALLOCATING",
    "LETTERS",
    "JOINING",
    "KEYWORDS",
    "REDUCTIONS",
    "SCALAR_TYPES",
    "Parsed",
    "SacParsed",
    "SacUnit",
    "Unit",
    "block_text",
    "library_names",
    "expression_text",
    "filled",
    "in_order",
    "is_open",
    "is_own",
    "own_operators",
    "parse_sac",
    "parse_tc",
    "reducer_text",
    "sac_to_text",
    "statement_text",
    "to_text",
]
