"""PTX and arrays -> results and findings, in NumPy, without a GPU.

What comes in is the PTX text that NVRTC makes of a CUDA source, a launch shape and NumPy arrays. What goes out are the results
in the arrays, every access that was wrong (`Finding`), and counts of memory traffic (`AccessSite`). Nothing here measures time,
and nothing checks what ptxas makes of the PTX.

Example:
    >>> from tc_jupyter.simulator import DeviceMemory, GlobalArray, simulate
    >>> memory = DeviceMemory()  # shared by the launches of one program
"""

from tc_jupyter.simulator.memory import DeviceMemory, Finding, GlobalArray
from tc_jupyter.simulator.ptx import PtxKernel, PtxModule, SimulationError, parse
from tc_jupyter.simulator.simulate import Simulation, group_count, group_lanes, simulate
from tc_jupyter.simulator.traffic import AccessSite

__all__ = [
    "AccessSite",
    "DeviceMemory",
    "Finding",
    "GlobalArray",
    "PtxKernel",
    "PtxModule",
    "Simulation",
    "SimulationError",
    "group_count",
    "group_lanes",
    "parse",
    "simulate",
]
