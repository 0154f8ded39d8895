"""What the processor can do at most: multiply-adds in registers, copies and sums of arrays, on all threads of the pool.

Worked example: with AVX-512 and two units at 3 GHz one thread reaches about 2 * 2 * 16 * 3e9 = 192 GFLOP/s.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np

from . import jit, threads
from .cpu import cpu_target
from .memory import aligned_empty
from .short_forms import in_full

CHAINS, MORE_CHAINS = 12, 16
"""Independent accumulators, of which two units with a latency of four cycles need eight, and four units (Apple, Neoverse V) 16.

More than 12 are taken where there are 32 registers.
"""
STEPS = 200_000
"""Rounds of one measurement, about a millisecond: on a busy machine a short one is more likely to meet nobody."""
PROBE_STEPS = 8_000
"""Rounds of a probe: some twenty microseconds."""
SLOWER = 1.3
"""A probe that takes this many times its shortest time met somebody else on the processor."""
STREAM_BYTES = 64 << 20
"""Bytes of one array of the copies: larger than the caches, as streaming kernels are."""
_PIECES = 64
TURNS = 200
"""How often a word goes there and back in one measurement."""
_PATIENCE = 200_000
"""Looks at a word after which the other thread counts as absent."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes per second, read and written, of `y = x` and `z = x + a*y`; with ordinary stores and past the caches."""

    copy: float
    copy_past: float
    triad: float
    triad_past: float

    @property
    def best(self) -> float:
        """The best copy."""
        return max(self.copy, self.copy_past)


def fma_rate(thread_count: int | None = None) -> float | None:
    """Floating operations per second of `float32` vectors in registers, a multiply-add counted as two; `None` without LLVM."""
    return _fma_rate(thread_count or threads.get_threads()) if jit.available() else None


def bandwidth(thread_count: int | None = None) -> Bandwidth | None:
    """Measured on arrays of 64 MB; `None` without LLVM."""
    return _bandwidth(thread_count or threads.get_threads()) if jit.available() else None


def round_trip() -> float | None:
    """Seconds that a word takes from one thread to another one and back; `None` without LLVM, with one thread, or a busy one.

    A hypervisor may move processors: of those of the same machine two have a common cache at one time and none a second later.
    Measured on an AMD EPYC (Zen 4): 60 ns and 310 ns.
    """
    if not jit.available() or threads.get_threads() < 2:
        return None
    word = aligned_empty((16,), np.dtype(np.int64), 64)
    run = _job("turns", (word.ctypes.data, TURNS, _PATIENCE), 2, 2)
    found: list[float] = []
    for _ in range(20):
        word[0] = 0
        seconds = _seconds(run)
        if word[0] == 2 * TURNS:
            found.append(seconds / TURNS)
    return min(found, default=None)


@cache
def _fma_rate(thread_count: int) -> float:
    run = _job("probe", (STEPS,), thread_count, thread_count)
    best = min(_seconds(run) for _ in range(30))
    return 2.0 * _lanes() * _chains() * STEPS * thread_count / best


@cache
def _bandwidth(thread_count: int) -> Bandwidth:
    count = STREAM_BYTES // 4
    x, y, z = (aligned_empty((count,), np.dtype(np.float32), 64) for _ in range(3))
    for array in (x, y, z):
        array.fill(1.0)
    piece = count // _PIECES
    rates: list[float] = []
    for name, moved in (("copy", 2), ("copy.past", 2), ("triad", 3), ("triad.past", 3)):
        run = _job(name, (x.ctypes.data, y.ctypes.data, z.ctypes.data, piece), _PIECES, thread_count)
        rates.append(moved * STREAM_BYTES / min(_seconds(run) for _ in range(11)))
    return Bandwidth(*rates)


@dataclass(slots=True)
class Probe:
    """Whether nobody else uses the processors: no other thread of this process, and nobody who makes a short run take longer.

    The run is multiply-adds on every thread of the pool, shorter than what the system gives a thread at a time; so it is looked for
    threads of this process too. Those of OpenBLAS spin for 110 ms after a product, and a product of 1024 on two threads then takes
    16 instead of 12 ms.
    """

    run: Callable[[], None]
    shortest: float = field(default=float("inf"))

    def __call__(self) -> bool:
        """Whether the processors are free now; a first run wakes the threads."""
        self.run()
        now = _seconds(self.run)
        self.shortest = min(self.shortest, now)
        return now <= SLOWER * self.shortest and not threads.others_run()


@cache
def quiet(thread_count: int | None = None) -> Probe | None:
    """The probe for that many threads, warmed up; `None` without LLVM."""
    if not jit.available():
        return None
    count = thread_count or threads.get_threads()
    probe = Probe(_job("probe", (PROBE_STEPS,), count, count))
    for _ in range(200):
        probe()
    return probe


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _job(name: str, slots: tuple[int, ...], tasks: int, thread_count: int) -> Callable[[], None]:
    """A call that runs one of the functions below as `tasks` tasks."""
    values = (ctypes.c_int64 * len(slots))(*slots)
    address, pool = _code().address(name), threads.pool()
    return lambda: pool.run(address, ctypes.addressof(values), tasks, thread_count)


def _lanes() -> int:
    return cpu_target().vector_bits // 32


def _chains() -> int:
    return MORE_CHAINS if cpu_target().vector_registers >= 32 else CHAINS


@lru_cache(maxsize=1)
def _code() -> jit.Loaded:
    lanes = _lanes()
    parts = [
        _probe_text(lanes, _chains()),
        in_full(_TURNS_TEXT),
        *(_stream_text(lanes, triad, past) for triad in (False, True) for past in (False, True)),
    ]
    return jit.compile("; passes: vector\n" + "\n".join(parts) + f"\n{_fma(lanes)[0]}\n!0 = !{{i32 1}}\n")


def _fma(lanes: int) -> tuple[str, str]:
    """Declaration and name of the multiply-add of vectors."""
    vector, name = f"<{lanes} x float>", f"@llvm.fma.v{lanes}f32"
    return f"declare {vector} {name}({vector}, {vector}, {vector})", name


def _probe_text(lanes: int, chains: int) -> str:
    """`probe`: slot 0 rounds of multiply-adds; the sum goes to a stack slot, so that nothing is left out.

    The chain is what is added to, since the multiply-add of ARM overwrites that operand: another one would be copied each time. The
    factor comes from memory, so that LLVM does not multiply it by itself.
    """
    vector, (_, fma) = f"<{lanes} x float>", _fma(lanes)
    first = "\n".join(
        f"  %a{k} = phi {vector} [ splat (float {k}.0), %entry ], [ %b{k}, %loop ]" for k in range(chains)
    )
    steps = "\n".join(
        f"  %b{k} = call {vector} {fma}({vector} %half, {vector} %half, {vector} %a{k})" for k in range(chains)
    )
    sums = "\n".join(f"  %s{k} = fadd {vector} %s{k - 1}, %b{k}" for k in range(1, chains))
    return f"""define void @probe(ptr %args, i64 %index, i64 %thread, i64 %tasks) nounwind "prefer-vector-width"="512" {{
entry:
  %kept = alloca {vector}, align 64
  store volatile {vector} splat (float 0.5), ptr %kept, align 64
  %half = load volatile {vector}, ptr %kept, align 64
  %n = load i64, ptr %args, align 8
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
  store volatile {vector} %s{chains - 1}, ptr %kept, align 64
  ret void
}}
"""


_TURNS_TEXT = """define void @turns(ptr %args, i64 %index, i64 %thread, i64 %tasks) nounwind {
; two tasks count a word up in turns: slots are its address, how often, and how many looks at it to wait for the other one
entry:
  %word = load ptr, ptr %args, align 8
  %turns = word i64 %args, 1
  %patience = word i64 %args, 2
  %end = shl i64 %turns, 1
  br label %turn
turn:
  %mine = phi i64 [ %index, %entry ], [ %mine.next, %count ]
  if slt i64 %mine, %end ? look : done
look:
  %looks = phi i64 [ 0, %turn ], [ %looks.next, %again ]
  %found = load atomic i64, ptr %word acquire, align 8
  if eq i64 %found, %mine ? count : again
again:
  %looks.next = add i64 %looks, 1
  if slt i64 %looks.next, %patience ? look : done
count:
  %next = add i64 %mine, 1
  store atomic i64 %next, ptr %word release, align 8
  %mine.next = add i64 %mine, 2
  br label %turn
done:
  ret void
}
"""


def _stream_text(lanes: int, triad: bool, past: bool) -> str:
    """`copy` (`y = x`) or `triad` (`z = x + a*y`) of one piece; slots: x, y, z, elements of a piece."""
    name = ("triad" if triad else "copy") + (".past" if past else "")
    vector, (_, fma) = f"<{lanes} x float>", _fma(lanes)
    hint, fence = (", !nontemporal !0", "  fence seq_cst\n") if past else ("", "")
    value = f"""  %v = load {vector}, ptr %x.at, align {lanes * 4}
"""
    if triad:
        value += f"""  %y.at = getelementptr float, ptr %y, i64 %i
  %w = load {vector}, ptr %y.at, align {lanes * 4}
  %r = call {vector} {fma}({vector} %w, {vector} splat (float 0.5), {vector} %v)
"""
    result, target = ("%r", "%z") if triad else ("%v", "%y")
    loads = "\n".join(
        f"  %{letter}.slot = getelementptr i64, ptr %args, i64 {k}\n  %{letter} = load ptr, ptr %{letter}.slot, align 8"
        for k, letter in enumerate("xyz")
    )
    return f"""define void @{name}(ptr %args, i64 %index, i64 %thread, i64 %tasks) nounwind "prefer-vector-width"="512" {{
entry:
{loads}
  %piece.slot = getelementptr i64, ptr %args, i64 3
  %piece = load i64, ptr %piece.slot, align 8
  %first = mul i64 %index, %piece
  %last = add i64 %first, %piece
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %x.at = getelementptr float, ptr %x, i64 %i
{value}  %out = getelementptr float, ptr {target}, i64 %i
  store {vector} {result}, ptr %out, align {lanes * 4}{hint}
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %end
end:
{fence}  ret void
}}
"""
