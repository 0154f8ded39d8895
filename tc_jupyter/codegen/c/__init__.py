"""Loops -> plain C99: the def as a person would write it, without any schedule.

Comes in: the kernels of the schedule in which nothing is transformed. Goes out: one function that compiles alone; and the functions
of a library that look at the data of a call.
"""

from .emit import CCheck, Names, emit_c, emit_check

__all__ = ["CCheck", "Names", "emit_c", "emit_check"]
