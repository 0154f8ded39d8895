"""Source text -> machine code -> bound callable; timing; what is installed.

Comes in: `KernelSource` and arrays. Goes out: callables, measurements and reports. Nothing here decides how a program
is scheduled.
"""
