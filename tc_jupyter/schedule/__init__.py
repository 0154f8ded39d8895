"""Ranges -> schedule and bounds: in which loops a program runs, and what every loop and stage must cover."""

from .target import INTERPRETER, Target

__all__ = ["INTERPRETER", "Target"]
