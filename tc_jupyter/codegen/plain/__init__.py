"""Loops -> text that a person would write: the def in plain C99, or in Python for Numba, without any schedule.

Comes in: the kernels of the schedule in which nothing is transformed. Goes out: one function that compiles alone; and the functions
of a C library that look at the data of a call.
"""

from .c import CCheck, Names, emit_c, emit_check
from .numba import NoForm, emit_numba
from .printer import PlainFunction

__all__ = ["CCheck", "Names", "NoForm", "PlainFunction", "emit_c", "emit_check", "emit_numba"]
