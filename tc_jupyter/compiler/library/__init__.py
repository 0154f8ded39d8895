"""Defs as a library for C, C++ and CUDA, which needs neither Python nor this package when it runs.

Comes in: definitions, processors, calls for which code is to be made beside that for all sizes. Goes out: a folder with a header,
the machine code, what calls it, and what builds and uses it.
"""

from .project import Exported, export, folder_of
from .wanted import Wanted, wanted

__all__ = ["Exported", "Wanted", "export", "folder_of", "wanted"]
