"""Calls one after the other in one native loop: each reads what the one before has made, and writes over what was before that.

Only a call without work for several threads is repeated so: what Python does between others takes little of their time, and threads
that wait for the next job are awake.

Worked example: `V = jacobi(U, out=V); U = jacobi(V, out=U); ...` of 64 x 64 elements is a loop over steps that calls the machine
code of `jacobi` with the addresses `U, V` in even steps and `V, U` in odd ones.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import threads
from .launch import CpuLaunch
from .own_code import own_code

_TEXT = """
; The kernels of one step: ptr arguments, i64 step, i64 thread, i64 steps. The arguments are how many kernels there are, 1 if the
; first step is an odd one, and a row for each kernel: the function, its slots in even steps and in odd ones, how many tasks it has.

define void @tc.step(ptr %arguments, i64 %step, i64 %thread, i64 %steps) {
entry:
  %count = load i64, ptr %arguments, align 8
  %first.at = getelementptr i64, ptr %arguments, i64 1
  %first = load i64, ptr %first.at, align 8
  %rows = getelementptr i64, ptr %arguments, i64 2
  %turn = add i64 %step, %first
  %odd = and i64 %turn, 1
  %which = add i64 %odd, 1
  br label %kernel
kernel:
  %k = phi i64 [ 0, %entry ], [ %k.next, %done ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %begin, label %ended
begin:
  %row = getelementptr [4 x i64], ptr %rows, i64 %k
  %code = load ptr, ptr %row, align 8
  %slots.at = getelementptr ptr, ptr %row, i64 %which
  %slots = load ptr, ptr %slots.at, align 8
  %tasks.at = getelementptr i64, ptr %row, i64 3
  %tasks = load i64, ptr %tasks.at, align 8
  br label %task
task:
  %t = phi i64 [ 0, %begin ], [ %t.next, %run ]
  %left = icmp ult i64 %t, %tasks
  br i1 %left, label %run, label %done
run:
  call void %code(ptr %slots, i64 %t, i64 0, i64 %tasks)
  %t.next = add i64 %t, 1
  br label %task
done:
  %k.next = add i64 %k, 1
  br label %kernel
ended:
  ret void
}
"""


@dataclass(frozen=True, slots=True)
class Alternating:
    """A loop over steps, from an even one or an odd one on.

    Attributes:
        table: the words of the native function.
        alive: what the addresses in it point to.
    """

    table: Any
    alive: tuple[Any, ...]

    def run(self, steps: int, odd: bool) -> None:
        """Take so many steps; whether the first one is an odd one.

        Raises:
            KeyboardInterrupt: pressed meanwhile.
        """
        self.table[1] = odd
        threads.pool().run(_entry(), ctypes.addressof(self.table), steps, 1)


def alternating(launches: Sequence[CpuLaunch], even: Sequence[Any], odd: Sequence[Any]) -> Alternating | None:
    """The loop of calls that are these launches, for what is given in even and in odd steps; `None` if threads share a step."""
    words, alive = [len(launches), 0], list[Any]()
    for launch in launches:
        scratch = launch.scratch()
        blocks = [launch.slots(given, scratch) for given in (even, odd)]
        code = launch.pattern.runner.code
        tasks, _, brief = code.tasks(blocks[0])
        if tasks > 1 and not brief:
            return None
        words += [code.address, *map(ctypes.addressof, blocks), tasks]
        alive += [scratch, launch, *blocks]
    return Alternating((ctypes.c_int64 * len(words))(*words), (*alive, *even, *odd))


@lru_cache(maxsize=1)
def _entry() -> int:
    return own_code("steps", _TEXT).address("tc.step")
