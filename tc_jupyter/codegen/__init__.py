"""Loop IR -> source text, without any device library.

Comes in: `Kernel` and `Target`. Goes out: `KernelSource`. Nothing here compiles or loads.
"""

from .source import Argument, KernelSource, Launch

__all__ = ["Argument", "KernelSource", "Launch"]
