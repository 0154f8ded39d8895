"""Loop IR -> self-contained CUDA C++.

Comes in: a `Kernel` whose loops are bound to blocks and threads. Goes out: `KernelSource` with the text, the launch
shape and the order of arguments; whether a call may use `int` indices. Nothing here compiles or needs CUDA.
"""

from .emit import emit_cuda
from .index_width import fits_int32

__all__ = ["emit_cuda", "fits_int32"]
