"""Loop IR -> LLVM IR: vectors along vectorised loops, tasks along parallel ones, plain loops for everything else.

Comes in: `Kernel` and a CPU `Target`. Goes out: `KernelSource` with LLVM text. Nothing here imports LLVM.
"""

from .alike import AlikePrinter, emit_as_twin
from .emit import PASSES, emit_llvm, show_passes
from .vector_math import EXTERNAL, External

__all__ = ["EXTERNAL", "PASSES", "AlikePrinter", "External", "emit_as_twin", "emit_llvm", "show_passes"]
