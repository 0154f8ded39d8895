"""How many floating operations a second the processor can do at most: multiply-adds in registers, on all threads.

Worked example: with AVX-512 and two units at 3 GHz one thread reaches about 2 * 2 * 16 * 3e9 = 192 GFLOP/s.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from functools import cache

from . import jit
from .cpu import cpu_target

CHAINS = 12
"""Independent accumulators: two units with a latency of four cycles need eight."""
STEPS = 2_000_000
"""Rounds of one measurement, a few milliseconds."""


@cache
def fma_rate() -> float | None:
    """Floating operations per second of `float32` vectors in registers, a multiply-add counted as two; `None` without LLVM."""
    if not jit.available():
        return None
    target = cpu_target()
    lanes = target.vector_bits // 32
    loaded = jit.compile(_text(lanes))
    probe = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(loaded.address("probe"))
    best = min(_seconds(probe, target.threads) for _ in range(5))
    return 2.0 * lanes * CHAINS * STEPS * target.threads / best


def _seconds(probe: Callable[[int], float], threads: int) -> float:
    """One run on every thread at once; `ctypes` releases the lock of the interpreter."""
    workers = [threading.Thread(target=probe, args=(STEPS,)) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def _text(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    first = "\n".join(
        f"  %a{k} = phi {vector} [ splat (float {k}.0), %entry ], [ %b{k}, %loop ]" for k in range(CHAINS)
    )
    steps = "\n".join(
        f"  %b{k} = call {vector} @llvm.fma.v{lanes}f32({vector} %a{k}, {vector} splat (float 0.5), {vector} splat (float 1.0))"
        for k in range(CHAINS)
    )
    sums = "\n".join(f"  %s{k} = fadd {vector} %s{k - 1}, %b{k}" for k in range(1, CHAINS))
    return f"""; passes: vector
define float @probe(i64 %n) nounwind "prefer-vector-width"="512" {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{first}
{steps}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %s0 = fadd {vector} %b0, zeroinitializer
{sums}
  %r = extractelement {vector} %s{CHAINS - 1}, i64 0
  ret float %r
}}
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
"""
