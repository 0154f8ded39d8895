"""Program and ranges -> the text of a def that computes derivatives.

`vjp` takes the derivatives of the results to those of the parameters (backwards), `jvp` those of the parameters to those of the
results (forwards). What they make is an ordinary def.
"""

from __future__ import annotations

from .forward import jvp
from .reverse import vjp
from .steps import refuse, root, steps_of
from .text import text_of

__all__ = ["jvp", "refuse", "root", "steps_of", "text_of", "vjp"]
