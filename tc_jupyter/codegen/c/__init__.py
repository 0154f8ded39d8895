"""Loops -> plain C99: the def as a person would write it, without any schedule.

Comes in: the kernels of the schedule in which nothing is transformed. Goes out: one function that compiles alone.
"""

from .emit import CFunction, emit_c

__all__ = ["CFunction", "emit_c"]
