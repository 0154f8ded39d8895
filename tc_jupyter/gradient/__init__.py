"""Program and ranges -> the text of a def that computes derivatives.

`vjp` takes the derivatives of the results to those of the parameters (backwards), `jvp` those of the parameters to those of the
results (forwards); `batched` makes many calls one. What they make is an ordinary def.
"""

from __future__ import annotations

from .batch import batched
from .draft import Derived
from .extremes import Ties
from .forward import jvp
from .remembered import remembered
from .reverse import vjp
from .steps import Steps, refuse, root
from .text import reads, takes, text_of
from .unfolding import steps_of

__all__ = [
    "Derived",
    "Steps",
    "Ties",
    "batched",
    "jvp",
    "reads",
    "refuse",
    "remembered",
    "root",
    "steps_of",
    "takes",
    "text_of",
    "vjp",
]
