"""Candidates -> timings -> store: which schedule of a def is fastest here.

Comes in: schedules, and a function that makes one callable. Goes out: a `TuningLog`; the best one is on disk once it is known.
Nothing is compiled here and no array is made here; `function.Function.tune` brings both.
"""

from .cost import estimate
from .search import Trial, TuningLog, search

__all__ = ["Trial", "TuningLog", "estimate", "search"]
