"""The arrow itself: `analyze` is its front half (text -> ranges and preconditions), `build` its back half (call -> source).

Every stage is kept in the result (`Analysis`, `Build`), so nobody computes one twice.
"""

from .analysis import (
    Analysis,
    allowed_codes,
    analyze,
    callable_values,
    called_beside,
    called_names,
    reducers_in,
    text_of_def,
)
from .function_analysis import FunctionAnalysis, analyze_program
from .meanings import with_meanings

__all__ = [
    "Analysis",
    "FunctionAnalysis",
    "allowed_codes",
    "analyze",
    "analyze_program",
    "callable_values",
    "called_beside",
    "called_names",
    "reducers_in",
    "text_of_def",
    "with_meanings",
]
