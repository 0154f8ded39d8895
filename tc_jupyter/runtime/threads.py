"""The thread pool: runs the tasks of a kernel on all processors with the GIL released.

Workers are Python daemon threads inside a compiled loop. A worker spins on the job number for a while, then marks itself asleep,
looks once more, returns to Python and blocks on its own lock. Every thread has a share of the tasks, neighbours of each other, and
claims some at a time from its front; who has none left claims from the end of another's. So what a thread wrote is read by the same
one in the next kernel, or the next call, as long as kernels go through memory in the same order: between two processors that share
no cache a line takes 150 ns. A share is one word, with the number of threads that take part; a successful claim pins the job, since
a job cannot end before its tasks have. A second caller (another Python thread, or a call from inside a callback) finds the pool
taken and runs its tasks itself.

The caller returns to Python every 20 ms, or after every task that takes longer, so that an interrupt is seen; then no task is begun
any more, not even those that were claimed. Calls of two minutes, in 490 tasks, ended 0.1 to 0.2 s after Ctrl-C, and 2.3 s after it
when sixteen tasks were done between two looks.

A worker that starts, or slept, where the caller now computes is sent to the other processors before it is woken; one that ran a job
on the caller's processor, or has not seen one when the caller has done all of it (several times; the first worker is looked at),
after it. Left to itself, Linux runs both on one processor for a long time if there are few: one process in eight began so, and
thirty jobs of 3 ms took twice as long. Measured on two processors of an AMD EPYC, in turns with PyTorch and NumPy: a product of 512
on two threads took 3.1 ms in the middle, as on one, now 1.6, the shortest of both.

Shares were measured on the same machine, whose two virtual processors have a common cache at some times (a word goes there and back
in 60 ns) and none at others (310 ns), for seconds each. With tasks in one row for all threads, the convolution of the suite, which
copies its images first, took 0.97 ms at the former and 1.38 at the latter, as its copy was written by one and read by the other;
with shares 0.92 and 1.03. A blur of 512 x 512 in two stages 0.85 of the time, a depthwise convolution 0.92; no workload takes
longer.

Worked example: `pool().run(address, slots, 100)` calls `void f(ptr slots, i64 task, i64 thread, i64 100)` for the tasks 0 to 99.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tc_jupyter.diagnostics import shown_value

from . import cpus, jit
from .cpus import available_cpus
from .forks import MAKING
from .own_code import own_code
from .short_forms import in_full

MOST_THREADS = 1024
SPIN_SECONDS = 5e-4
"""How long a worker looks for a job before it sleeps: a few times the 0.03 to 0.1 ms that waking it takes."""
PAUSES = 2000
"""Pauses of a caller that has nothing left to do before it yields its processor, and of workers that outnumber the processors."""
_LATE_JOBS = 8
"""See `Pool._make_room`."""
_DONE, _UNSEEN, _ALONE, _TOGETHER = -1, -2, -3, -4
"""A job is done; it is, and the first worker has not seen it; it is, as were some before, by the caller alone; it is, and the first
worker ran on the caller's processor: see `tc.run`."""
_ROW = 8
"""Brief jobs that the caller does alone before it is looked whether they make a loop: then sleeping threads are woken."""
CHANGES = ctypes.c_int64()
"""How often the number of threads, or the pool, has changed: plans of native callers end with it."""
_SLICE = 16
"""The most tasks that one claim takes."""
_LOOK_SECONDS = 0.02
"""How long the caller computes, or one task of its longer ones, before it looks whether Python was interrupted."""
_SHARES = 4
"""A claim takes one in so many of what is left of a share."""
_LINE = 128
_SLEEPERS = 40
_PROCESSOR = 48
_STOP = 56
_LOOK = 64
_GRAIN = 72
_JOB = 3 * _LINE
_WORKERS = 4 * _LINE
_SHARE = 24


def _seen(worker: int) -> int:
    """Where the last job that a worker has seen stands."""
    return _WORKERS + worker * _LINE + 8


def _ran_on(worker: int) -> int:
    """Where the processor stands on which a worker began its last job, one more than its number; 0: not known."""
    return _WORKERS + worker * _LINE + 16


# State, one cache line each: 0 function, args, total, yield, brief jobs done alone, threads to wake, what tells the processor,
# whether the rest is dropped, ticks between two looks, tasks of a unit; 2 tasks done; 3 job number; from 4 on one line
# per thread, of which the first is the caller: asleep flag, last job seen, processor (plus 1), share. A share: the first unit that
# nobody has claimed (bits 0-25), the one after the last (26-51), threads that take part (52-63).
_TEXT = """; passes: vector
; The loop of the thread pool.

define internal { i64, i64 } @claim(ptr %s, i64 %id, i64 %most) {
; returns the first unit that was claimed, and how many, at most %most: from the front of the own share, or the end of another
; the own share says how many threads there are: none, or an earlier number, if this one takes no part; then what it finds is empty,
; or says itself that this thread takes no part
entry:
  %own.at = call ptr @share(ptr %s, i64 %id)
  %own = load atomic i64, ptr %own.at acquire, align 8
  %threads = lshr i64 %own, 52
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  if ult i64 %k, %threads ? of : none
of:
  %after = add i64 %id, %k
  %too.far = icmp uge i64 %after, %threads
  %turned = sub i64 %after, %threads
  %whose = select i1 %too.far, i64 %turned, i64 %after
  %word.at = call ptr @share(ptr %s, i64 %whose)
  %first = load atomic i64, ptr %word.at acquire, align 8
  br label %try
try:
  %word = phi i64 [ %first, %of ], [ %found, %swap ]
  %begin = and i64 %word, MASK
  %end.high = lshr i64 %word, 26
  %end = and i64 %end.high, MASK
  %left = sub i64 %end, %begin
  %limit = lshr i64 %word, 52
  %is.empty = icmp eq i64 %left, 0
  %is.other = icmp uge i64 %id, %limit
  %not.here = or i1 %is.empty, %is.other
  br i1 %not.here, label %next, label %swap
swap:
  %share = udiv i64 %left, SHARES
  %one.least = call i64 @llvm.umax.i64(i64 %share, i64 1)
  %few = call i64 @llvm.umin.i64(i64 %one.least, i64 SLICE)
  %count = call i64 @llvm.umin.i64(i64 %few, i64 %most)
  %from.front = add i64 %word, %count
  %high.count = shl i64 %count, 26
  %from.end = sub i64 %word, %high.count
  %is.own = icmp eq i64 %k, 0
  %less = select i1 %is.own, i64 %from.front, i64 %from.end
  %pair = cmpxchg ptr %word.at, i64 %word, i64 %less acq_rel acquire
  %found = extractvalue { i64, i1 } %pair, 0
  %ok = extractvalue { i64, i1 } %pair, 1
  br i1 %ok, label %yes, label %try
yes:
  %last.ones = sub i64 %end, %count
  %unit = select i1 %is.own, i64 %begin, i64 %last.ones
  %one = insertvalue { i64, i64 } poison, i64 %unit, 0
  %two = insertvalue { i64, i64 } %one, i64 %count, 1
  ret { i64, i64 } %two
next:
  %k.next = add i64 %k, 1
  br label %look
none:
  ret { i64, i64 } zeroinitializer
}

define internal ptr @line(ptr %s, i64 %id) {
; of a thread
entry:
  %number = add i64 %id, 4
  %byte = mul i64 %number, 128
  %at = getelementptr i8, ptr %s, i64 %byte
  ret ptr %at
}

define internal ptr @share(ptr %s, i64 %id) {
; where the units of a thread stand that nobody has claimed
entry:
  %line = call ptr @line(ptr %s, i64 %id)
  %word.at = getelementptr i8, ptr %line, i64 SHARE
  ret ptr %word.at
}

define internal i64 @task(ptr %s, i64 %unit) {
; the first task of a unit
entry:
  %total = byte i64 %s, 16
  %grain = byte i64 %s, GRAIN
  %task = mul i64 %unit, %grain
  %in.job = call i64 @llvm.umin.i64(i64 %task, i64 %total)
  ret i64 %in.job
}
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)

define internal i64 @here(ptr %s) {
; the number of this processor, plus 1; 0 where the system does not say
entry:
  %f = byte ptr %s, PROCESSOR
  if eq ptr %f, null ? no : ask
ask:
  %number = call i32 %f()
  %wide = sext i32 %number to i64
  %more = add i64 %wide, 1
  ret i64 %more
no:
  ret i64 0
}

define internal { i64, i64 } @work(ptr %s, i64 %id, i64 %ticks) {
; runs tasks, for as long as %ticks, of which -1 is for ever; returns how many, and 1 if there may be more
entry:
  %began = call i64 @tc.ticks()
  %ever = icmp eq i64 %ticks, -1
  %few = select i1 %ever, i64 SLICE, i64 1
  %short = lshr i64 %ticks, 4
  %stop.at = getelementptr i8, ptr %s, i64 STOP
  br label %next
next:
; the caller looks at the clock after every claim: the first one is of one task, and so are those of long tasks
  %count = phi i64 [ 0, %entry ], [ %count.next, %finish ]
  %most = phi i64 [ %few, %entry ], [ %most.next, %finish ]
  %before = phi i64 [ %began, %entry ], [ %now, %finish ]
  %claimed = call { i64, i64 } @claim(ptr %s, i64 %id, i64 %most)
  %unit = extractvalue { i64, i64 } %claimed, 0
  %units = extractvalue { i64, i64 } %claimed, 1
  if eq i64 %units, 0 ? end : begin
begin:
  %f = load ptr, ptr %s, align 8
  %args = byte ptr %s, 8
  %total = byte i64 %s, 16
  %first = call i64 @task(ptr %s, i64 %unit)
  %unit.last = add i64 %unit, %units
  %last = call i64 @task(ptr %s, i64 %unit.last)
  %tasks = sub i64 %last, %first
  br label %look
look:
  %index = phi i64 [ %first, %begin ], [ %index.next, %run ]
  %stop = load atomic i64, ptr %stop.at monotonic, align 8
  if eq i64 %stop, 0 ? run : finish
run:
  call void %f(ptr %args, i64 %index, i64 %id, i64 %total)
  %index.next = add i64 %index, 1
  if ult i64 %index.next, %last ? look : finish
finish:
  %done.at = getelementptr i8, ptr %s, i64 256
  %done.before = atomicrmw add ptr %done.at, i64 %tasks acq_rel
  %count.next = add i64 %count, %tasks
  %now = call i64 @tc.ticks()
  %took = sub i64 %now, %before
  %all.short = mul i64 %short, %units
  %quick = icmp ule i64 %took, %all.short
  %most.next = select i1 %quick, i64 SLICE, i64 1
  %so.far = sub i64 %now, %began
  if ult i64 %so.far, %ticks ? next : late
late:
  %stopped = insertvalue { i64, i64 } poison, i64 %count.next, 0
  %and.more = insertvalue { i64, i64 } %stopped, i64 1, 1
  ret { i64, i64 } %and.more
end:
  %all = insertvalue { i64, i64 } poison, i64 %count, 0
  %no.more = insertvalue { i64, i64 } %all, i64 0, 1
  ret { i64, i64 } %no.more
}

define i64 @tc.work(ptr %s, i64 %id, i64 %ticks) {
; as @work; returns whether there may be more
entry:
  %ran = call { i64, i64 } @work(ptr %s, i64 %id, i64 %ticks)
  %more = extractvalue { i64, i64 } %ran, 1
  ret i64 %more
}

define void @tc.worker(ptr %s, i64 %id, i64 %spins) {
; runs jobs until there was none for a while; then the asleep flag is up
entry:
  %own = call ptr @line(ptr %s, i64 %id)
  %seen.at = getelementptr i8, ptr %own, i64 8
  %job.at = getelementptr i8, ptr %s, i64 384
  br label %watch
watch:
  %spin = phi i64 [ 0, %entry ], [ %spin.next, %idle ], [ 0, %job ]
  %number = load atomic i64, ptr %job.at acquire, align 8
  %seen = load i64, ptr %seen.at, align 8
  if ne i64 %number, %seen ? job : idle
idle:
  PAUSE
  %spin.next = add i64 %spin, 1
  if ult i64 %spin.next, %spins ? watch : park
job:
  %job.number = phi i64 [ %number, %watch ], [ %number.again, %awake ]
  store i64 %job.number, ptr %seen.at, align 8
  %here = call i64 @here(ptr %s)
  put atomic i64 %here to %own, 16 monotonic
  %ran = call { i64, i64 } @work(ptr %s, i64 %id, i64 -1)
  br label %watch
park:
  store atomic i64 1, ptr %own seq_cst, align 8
  fence seq_cst
  %number.again = load atomic i64, ptr %job.at seq_cst, align 8
  if ne i64 %number.again, %seen ? claim.flag : sleep
claim.flag:
  %flag = atomicrmw xchg ptr %own, i64 0 seq_cst
  if eq i64 %flag, 1 ? awake : sleep
awake:
  br label %job
sleep:
  ret void
}

define void @tc.pause(i64 %count) {
; that many pauses, to see how long they take
entry:
  br label %wait
wait:
  %done = phi i64 [ 0, %entry ], [ %next, %wait ]
  PAUSE
  %next = add i64 %done, 1
  if ult i64 %next, %count ? wait : end
end:
  ret void
}

define i64 @tc.post(ptr %s, ptr %f, ptr %args, i64 %total, i64 %threads, ptr %wake) {
; starts a job; the workers that have to be woken are written to %wake, their number is returned
entry:
  store ptr %f, ptr %s, align 8
  put ptr %args to %s, 8
  put i64 %total to %s, 16
  put atomic i64 0 to %s, 256 monotonic
  put atomic i64 0 to %s, STOP monotonic
; more tasks than a share can count go in units of some
  %grain.less = lshr i64 %total, 25
  %grain = add i64 %grain.less, 1
  put i64 %grain to %s, GRAIN
  %up = add i64 %total, %grain.less
  %units = udiv i64 %up, %grain
  %limit = shl i64 %threads, 52
  %spare = sub i64 %threads, 1
  br label %part
part:
; unit u is of the share u * threads / units: neighbours in memory go to the thread that has them already
  %who = phi i64 [ 0, %entry ], [ %who.next, %part ]
  %begin = phi i64 [ 0, %entry ], [ %stop, %part ]
  %who.next = add i64 %who, 1
  %scaled = mul i64 %units, %who.next
  %scaled.up = add i64 %scaled, %spare
  %stop = udiv i64 %scaled.up, %threads
  %end.high = shl i64 %stop, 26
  %range = or i64 %end.high, %begin
  %word = or i64 %limit, %range
  %word.at = call ptr @share(ptr %s, i64 %who)
  store atomic i64 %word, ptr %word.at release, align 8
  if ult i64 %who.next, %threads ? part : posted
posted:
  %job.at = getelementptr i8, ptr %s, i64 384
  %number = atomicrmw add ptr %job.at, i64 1 seq_cst
  fence seq_cst
  br label %check
check:
  %id = phi i64 [ 1, %posted ], [ %id.next, %next ]
  %count = phi i64 [ 0, %posted ], [ %count.next, %next ]
  if ult i64 %id, %threads ? look : end
look:
  %flag.at = call ptr @line(ptr %s, i64 %id)
  %flag = atomicrmw xchg ptr %flag.at, i64 0 seq_cst
  %asleep = icmp eq i64 %flag, 1
  br i1 %asleep, label %note, label %next
note:
  %slot = getelementptr i64, ptr %wake, i64 %count
  store i64 %id, ptr %slot, align 8
  br label %next
next:
  %plus = zext i1 %asleep to i64
  %count.next = add i64 %count, %plus
  %id.next = add i64 %id, 1
  br label %check
end:
  ret i64 %count
}

define i64 @tc.wait(ptr %s, i64 %spins) {
; waits until all tasks of the last job are done; 0 if that takes longer than %spins pauses and as many yields
entry:
  %total = byte i64 %s, 16
  %done.at = getelementptr i8, ptr %s, i64 256
  %yield = byte ptr %s, 24
  %twice = shl i64 %spins, 1
  br label %look
look:
  %spin = phi i64 [ 0, %entry ], [ %spin.next, %again ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  if uge i64 %done, %total ? finished : idle
idle:
  %spin.next = add i64 %spin, 1
  if ult i64 %spin, %spins ? pause : long
pause:
  PAUSE
  br label %again
long:
  %y = call i32 %yield()
  br label %again
again:
  if ult i64 %spin.next, %twice ? look : late
finished:
  ret i64 1
late:
  ret i64 0
}

define i64 @tc.run(ptr %s, ptr %f, ptr %args, i64 %total, i64 %threads, i64 %brief, i64 %spins, ptr %wake) {
; a whole job if no worker sleeps and it is short: returns -1 when all is done, -2 if the first worker has not seen it
; even then, -4 if it ran on this processor, else the number of workers to wake; a brief job is done here if a worker
; sleeps, and -3 says when that was so ROW times
entry:
  if ne i64 %brief, 0 ? check : post
check:
  %id = phi i64 [ 1, %entry ], [ %id.next, %look ]
  if ult i64 %id, %threads ? look : post
look:
  %flag.at = call ptr @line(ptr %s, i64 %id)
  %flag = load atomic i64, ptr %flag.at monotonic, align 8
  %asleep = icmp eq i64 %flag, 1
  %id.next = add i64 %id, 1
  br i1 %asleep, label %by.itself, label %check
by.itself:
  %by.one = call i64 @tc.alone(ptr %f, ptr %args, i64 0, i64 %total, i64 -1)
  put atomic i64 %total to %s, 256 monotonic
  put i64 %total to %s, 16
  %alone.at = getelementptr i8, ptr %s, i64 32
  %before = load i64, ptr %alone.at, align 8
  %so.far = add i64 %before, 1
  store i64 %so.far, ptr %alone.at, align 8
  %in.row = urem i64 %so.far, ROW
  %told = icmp eq i64 %in.row, 0
  %said = select i1 %told, i64 -3, i64 -1
  ret i64 %said
post:
  %sleepers = call i64 @tc.post(ptr %s, ptr %f, ptr %args, i64 %total, i64 %threads, ptr %wake)
  put i64 %sleepers to %s, SLEEPERS
  if eq i64 %sleepers, 0 ? work : hand.over
work:
  %interval = byte i64 %s, LOOK
  %worked = call { i64, i64 } @work(ptr %s, i64 0, i64 %interval)
  %ran = extractvalue { i64, i64 } %worked, 0
  %rest = extractvalue { i64, i64 } %worked, 1
  if eq i64 %rest, 0 ? finish : hand.over
finish:
  %ok = call i64 @tc.wait(ptr %s, i64 %spins)
  if eq i64 %ok, 1 ? helped : hand.over
hand.over:
  ret i64 %sleepers
helped:
  if eq i64 %ran, %total ? compare : where
where:
  %this = byte atomic i64 %s, 384 monotonic
  %last = byte atomic i64 %s, SEEN monotonic
  if eq i64 %this, %last ? ask : end
ask:
  %here = call i64 @here(ptr %s)
  %there = byte atomic i64 %s, RAN_ON monotonic
  %known = icmp ne i64 %here, 0
  %same = icmp eq i64 %here, %there
  %both = and i1 %known, %same
  %answer = select i1 %both, i64 -4, i64 -1
  ret i64 %answer
compare:
  %number = byte atomic i64 %s, 384 monotonic
  %seen = byte atomic i64 %s, SEEN monotonic
  if ne i64 %number, %seen ? unseen : end
unseen:
  ret i64 -2
end:
  ret i64 -1
}

define i64 @tc.cancel(ptr %s) {
; drops the tasks that nobody has begun, which then count as done; returns how many no claim held
entry:
  put atomic i64 1 to %s, STOP monotonic
  %all.at = call ptr @share(ptr %s, i64 0)
  %all = load atomic i64, ptr %all.at acquire, align 8
  %threads = lshr i64 %all, 52
  br label %check
check:
  %id = phi i64 [ 0, %entry ], [ %id.next, %take ]
  %left = phi i64 [ 0, %entry ], [ %left.more, %take ]
  if ult i64 %id, %threads ? take : end
take:
; what says how many threads take part stays
  %word.at = call ptr @share(ptr %s, i64 %id)
  %word = atomicrmw and ptr %word.at, i64 LIMIT acq_rel
  %begin = and i64 %word, MASK
  %end.high = lshr i64 %word, 26
  %last = and i64 %end.high, MASK
  %from = call i64 @task(ptr %s, i64 %begin)
  %to = call i64 @task(ptr %s, i64 %last)
  %own = sub i64 %to, %from
  %left.more = add i64 %left, %own
  %id.next = add i64 %id, 1
  br label %check
end:
  %done.at = getelementptr i8, ptr %s, i64 256
  %done = atomicrmw add ptr %done.at, i64 %left acq_rel
  ret i64 %left
}

define i64 @tc.alone(ptr %f, ptr %args, i64 %first, i64 %total, i64 %ticks) {
; the tasks from %first on in order on this thread, for as long as %ticks; returns the first one that is left
entry:
  %began = call i64 @tc.ticks()
  if ult i64 %first, %total ? run : end
run:
  %index = phi i64 [ %first, %entry ], [ %next, %run ]
  call void %f(ptr %args, i64 %index, i64 0, i64 %total)
  %next = add i64 %index, 1
  %now = call i64 @tc.ticks()
  %so.far = sub i64 %now, %began
  %in.time = icmp ult i64 %so.far, %ticks
  %more = icmp ult i64 %next, %total
  %go.on = and i1 %in.time, %more
  br i1 %go.on, label %run, label %end
end:
  %left = phi i64 [ %first, %entry ], [ %next, %run ]
  ret i64 %left
}

define void @tc.of.round(ptr %round, i64 %index, i64 %thread, i64 %tasks) {
; a task of a round, which says the function, its arguments, the first task of the round, and how many tasks all rounds have
entry:
  %f = load ptr, ptr %round, align 8
  %args = byte ptr %round, 8
  %first = byte i64 %round, 16
  %total = byte i64 %round, 24
  %number = add i64 %first, %index
  call void %f(ptr %args, i64 %number, i64 %thread, i64 %total)
  ret void
}

define i64 @tc.ticks() {
; of a clock of the processor; 0 where there is none that programs may read
entry:
  TICKS
}
"""


def _ticks(triple: str) -> tuple[str, str]:
    """How the clock is read, and its declaration."""
    if triple.startswith(("x86_64", "i686", "i386")):
        return "%now = call i64 @llvm.readcyclecounter()\n  ret i64 %now", "declare i64 @llvm.readcyclecounter()"
    if triple.startswith(("aarch64", "arm64")):
        declares = 'declare i64 @llvm.read_volatile_register.i64(metadata)\n!0 = !{!"cntvct_el0"}'
        return "%now = call i64 @llvm.read_volatile_register.i64(metadata !0)\n  ret i64 %now", declares
    return "ret i64 0", ""


def _pause(triple: str) -> tuple[str, str]:
    """The instruction for waiting loops, and its declaration."""
    if triple.startswith(("x86_64", "i686", "i386")):
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    return "fence acquire", ""


def pool_text() -> str:
    """The LLVM IR of the pool for this machine."""
    triple = jit.host()[0]
    (pause, declares_pause), (ticks, declares_ticks) = _pause(triple), _ticks(triple)
    words = {
        **{
            "PAUSE": pause,
            "TICKS": ticks,
            "LOOK": _LOOK,
            "STOP": _STOP,
            "GRAIN": _GRAIN,
            "SLICE": _SLICE,
            "SHARES": _SHARES,
        },
        **{"SHARE": _SHARE, "LIMIT": -1 << 52, "MASK": (1 << 26) - 1, "SEEN": _seen(1), "RAN_ON": _ran_on(1)},
        **{"PROCESSOR": _PROCESSOR, "ROW": _ROW, "SLEEPERS": _SLEEPERS},
    }
    text = re.sub(rf"\b({'|'.join(words)})\b", lambda word: str(words[word[0]]), _TEXT)
    return in_full(text) + f"\n{declares_pause}\n{declares_ticks}\n"


_P, _I = ctypes.c_void_p, ctypes.c_int64
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "work": (_I, _P, _I, _I),
    "worker": (None, _P, _I, _I),
    "run": (_I, _P, _P, _P, _I, _I, _I, _I, _P),
    "wait": (_I, _P, _I),
    "cancel": (_I, _P),
    "alone": (_I, _P, _P, _I, _I, _I),
    "pause": (None, _I),
    "ticks": (_I,),
}
"""What the functions of the text return and take; they release the GIL."""


@lru_cache(maxsize=1)
def _code() -> SimpleNamespace:
    """Those functions by name, and the address of `of_round`."""
    loaded = own_code("pool", pool_text())
    made = {name: ctypes.CFUNCTYPE(*kinds)(loaded.address(f"tc.{name}")) for name, kinds in _FUNCTIONS.items()}
    return SimpleNamespace(**made, of_round=loaded.address("tc.of.round"))


def _yield_function() -> Any:
    """What gives the processor to another thread."""
    if sys.platform == "win32":
        return ctypes.CDLL("kernel32").SwitchToThread
    return ctypes.CDLL(None).sched_yield


@dataclass(slots=True)
class _Worker:
    """A thread of the pool.

    Attributes:
        lock: what wakes it.
        thread: its number for the system.
        slept_on: the processor that ran it before it slept.
        left: the processor that it was sent away from.
    """

    lock: Any
    thread: int | None = None
    slept_on: int | None = None
    left: int | None = None

    def leave(self, cpu: int | None) -> None:
        """Run on the other processors from now on."""
        if cpu is not None and cpus.send_away(self.thread, cpu, self.left):
            self.left = cpu


class Pool:
    """Workers and their shared state. There is one per process; see `pool`.

    Attributes:
        busy: held while a job runs.
        state, entry, wake: for native callers, which run a job as `run` does: what `tc.run` of the text above works on, where it
            is, and where it writes which threads have to be woken.
        workers: all threads but that of the caller.
    """

    def __init__(self) -> None:
        self.code = _code()
        size = _WORKERS + (MOST_THREADS + 1) * _LINE
        self._memory = ctypes.create_string_buffer(size + _LINE)
        self.state = (ctypes.addressof(self._memory) + _LINE - 1) // _LINE * _LINE
        self._wake = (ctypes.c_int64 * MOST_THREADS)()
        self.entry = ctypes.cast(self.code.run, ctypes.c_void_p).value or 0
        self.wake = ctypes.addressof(self._wake)
        self._yield = _yield_function()
        ctypes.c_void_p.from_address(self.state + 24).value = ctypes.cast(self._yield, ctypes.c_void_p).value
        ctypes.c_void_p.from_address(self.state + _PROCESSOR).value = cpus.reader_address()
        self.busy = threading.Lock()
        self.workers: list[_Worker] = []
        self._spins = PAUSES
        pause_seconds, tick_seconds = self._paces()
        self._longest = max(PAUSES, int(SPIN_SECONDS / max(pause_seconds, 1e-10)))
        self._look = int(_LOOK_SECONDS / tick_seconds) if tick_seconds else 0
        self._word(_LOOK).value = self._look
        self._late = 0
        self._brief_at = 0.0

    def _paces(self) -> tuple[float, float]:
        """How long one pause of a waiting loop takes, if no other thread of Python runs, 35 to 140 cycles, and one tick, or 0."""
        pauses: list[float] = []
        ticks: list[float] = []
        for _ in range(3):
            start, first = time.perf_counter(), self.code.ticks()
            self.code.pause(PAUSES)
            seconds, count = time.perf_counter() - start, self.code.ticks() - first
            pauses.append(seconds / PAUSES)
            ticks.append(seconds / count if count > 0 else 0.0)
        return min(pauses), sorted(ticks)[1]

    def run(self, function: int, args: int, tasks: int, thread_count: int | None = None, brief: bool = False) -> None:
        """Call `void function(ptr args, i64 task, i64 thread, i64 tasks)` for all tasks; returns when all are done.

        Args:
            thread_count: at most this many threads; `None`: `get_threads()`. Thread numbers are below it.
            brief: no thread is woken for it.

        Raises:
            KeyboardInterrupt: pressed meanwhile; tasks that were not begun are dropped.
        """
        count = min(thread_count or get_threads(), tasks, MOST_THREADS)
        if count <= 1 or tasks >= 1 << 32 or self.busy.locked():
            self._alone(function, args, tasks)
            return
        with self.busy:  # `acquire` and `try` would leave a gap for an interrupt, after which nobody frees it
            self._start_workers(count)
            self._together(function, args, tasks, count, brief)

    def run_rounds(self, function: int, args: int, tasks: int, width: int, thread_count: int | None = None) -> None:
        """As `run`, `width` tasks at a time: those of a round begin when all tasks of earlier rounds are done."""
        if min(thread_count or get_threads(), width) <= 1:
            self._alone(function, args, tasks)
            return
        this = (ctypes.c_int64 * 4)(function, args, 0, tasks)
        for first in range(0, tasks, width):
            this[2] = first
            self.run(self.code.of_round, ctypes.addressof(this), min(width, tasks - first), thread_count)

    def _alone(self, function: int, args: int, tasks: int) -> None:
        first = 0
        while first < tasks:
            first = self.code.alone(function, args, first, tasks, self._look)

    def ready(self, count: int) -> bool:
        """Whether native callers find workers for `count` threads from now on; not while a job runs."""
        if self.busy.locked():
            return False
        with self.busy:
            self._start_workers(count)
        return True

    def _together(self, function: int, args: int, tasks: int, count: int, brief: bool) -> None:
        try:
            answer = self.code.run(self.state, function, args, tasks, count, brief, PAUSES, self._wake)
            if answer != _DONE:
                self._rest(answer, count)
        except BaseException:
            self.abandon()
            raise

    def finish(self, answer: int, count: int) -> None:
        """Do the rest of a job of `count` threads; `answer` is what `tc.run` said. The pool is held by the caller.

        Raises:
            KeyboardInterrupt: pressed meanwhile; tasks that were not begun are dropped.
        """
        try:
            self._rest(answer, count)
        except BaseException:
            self.abandon()
            raise

    def _rest(self, answer: int, count: int) -> None:
        if answer == _UNSEEN and count > 1:
            self._make_room(count)
        if answer == _TOGETHER:
            self._keep_apart(count)
        if answer == _ALONE and self._follows():
            # what comes next finds them awake; a job without tasks tells who sleeps
            answer = self.code.run(self.state, None, None, 0, count, False, PAUSES, self._wake)
        if answer < 0:
            return
        self._wake_sleepers()
        self._help()
        while not self.code.wait(self.state, PAUSES):
            pass
        self._keep_apart(count)
        if not answer:
            self._make_room(count)

    def _wake_sleepers(self) -> None:
        """Wake the threads that the job wants and that sleep; send those away first that slept where the caller runs."""
        left = self._word(_SLEEPERS)
        waiting = [self.workers[self._wake[k] - 1] for k in range(left.value)]
        here = cpus.current_cpu() if waiting else None
        for worker in waiting:
            if worker.slept_on == here:
                worker.leave(here)
        self._release_sleepers()

    def _release_sleepers(self) -> None:
        left = self._word(_SLEEPERS)
        while left.value:
            with suppress(RuntimeError):  # an interrupt came between these two lines: it is released already
                self.workers[self._wake[left.value - 1] - 1].lock.release()
            left.value -= 1

    def abandon(self) -> None:
        """Drop the tasks of a job that nobody has begun; its arguments must live until the others have ended, whatever comes."""
        while True:
            with suppress(BaseException):
                self._release_sleepers()  # their flags are down: nobody else would wake them
                self.code.cancel(self.state)
                while not self.code.wait(self.state, PAUSES):
                    pass
                return

    def _follows(self) -> bool:
        """After some brief jobs: whether they came so close to each other that woken threads would see the next one."""
        now = time.perf_counter()
        before, self._brief_at = self._brief_at, now
        return now - before < _ROW * SPIN_SECONDS

    def _help(self) -> None:
        """Run tasks of the job until none is left to begin."""
        while self.code.work(self.state, 0, self._look):
            pass

    def _make_room(self, count: int) -> None:
        """Send away those of `count` threads that have not seen this job, of which all is done: they may wait for this processor.

        One of `_LATE_JOBS` such jobs is looked at: a short one is also over before a worker elsewhere sees it.
        """
        self._late = (self._late + 1) % _LATE_JOBS
        if self._late:
            return
        job, here = self._word(_JOB).value, cpus.current_cpu()
        for number, worker in enumerate(self.workers[: count - 1], 1):
            if self._word(_seen(number)).value != job:
                worker.leave(here)

    def _keep_apart(self, count: int) -> None:
        """Send away those of `count` threads that began this job, of which all is done, on the processor of the caller."""
        here = cpus.current_cpu()
        if here is None:
            return
        job = self._word(_JOB).value
        for number, worker in enumerate(self.workers[: count - 1], 1):
            if self._word(_ran_on(number)).value == here + 1 and self._word(_seen(number)).value == job:
                worker.leave(here)

    def _word(self, offset: int) -> ctypes.c_int64:
        """A word of the shared state."""
        return ctypes.c_int64.from_address(self.state + offset)

    def _start_workers(self, count: int) -> None:
        for number in range(len(self.workers) + 1, count):
            worker = _Worker(threading.Lock())
            worker.lock.acquire()
            self.workers.append(worker)
            # A new worker has seen every job so far.
            self._word(_seen(number)).value = self._word(_JOB).value
            name = f"tc_jupyter-{number}"
            thread = threading.Thread(target=self._work, args=(number, worker), name=name, daemon=True)
            thread.start()
            worker.thread = thread.native_id
            if number < available_cpus():
                worker.leave(cpus.current_cpu())
            self._spins = self._longest if number < available_cpus() else PAUSES

    def _work(self, number: int, worker: _Worker) -> None:
        while True:
            self.code.worker(self.state, number, self._spins)
            worker.slept_on = cpus.current_cpu()
            worker.lock.acquire()


class _Shared:
    """The pool of this process and the wanted number of threads."""

    pool: Pool | None = None
    threads: int | None = None
    lock = threading.Lock()


def pool() -> Pool:
    """The pool of this process, made at first use; a forked child makes its own."""
    found = _Shared.pool
    if found is not None:
        return found
    with MAKING, _Shared.lock:
        if _Shared.pool is None:
            _Shared.pool = Pool()
        return _Shared.pool


def set_threads(count: int | None) -> None:
    """Use `count` threads for calls on the CPU; `None`: what affinity and the container allow.

    Raises:
        TypeError: `count` is no integer.
        ValueError: `count` is not between 1 and 1024.
    """
    if count is not None and not hasattr(count, "__index__"):
        raise TypeError(f"the number of threads is an integer, not `{type(count).__name__}`")
    if count is not None and not 1 <= count <= MOST_THREADS:
        raise ValueError(f"the number of threads must be between 1 and {MOST_THREADS}, not {shown_value(count)}")
    _Shared.threads = count
    CHANGES.value += 1


class _Local(threading.local):
    """What holds for calls of one thread of Python."""

    alone = False


_LOCAL = _Local()


@contextmanager
def one_thread() -> Generator[None]:
    """Let calls of this thread of Python use no other thread: whoever makes them runs several at a time."""
    before, _LOCAL.alone = _LOCAL.alone, True
    try:
        yield
    finally:
        _LOCAL.alone = before


def get_threads() -> int:
    """Threads that a call on the CPU may use."""
    if _LOCAL.alone:
        return 1
    if _Shared.threads is None:
        _Shared.threads = min(available_cpus(), MOST_THREADS)
    return _Shared.threads


def others_run() -> bool:
    """Whether a thread of this process that is neither this one nor of the pool runs, or could; `False` where nobody says."""
    own = {str(threading.get_native_id())}
    if _Shared.pool is not None:
        own |= {str(worker.thread) for worker in _Shared.pool.workers}
    try:
        return any(_state(task) == "R" for task in Path("/proc/self/task").iterdir() if task.name not in own)
    except OSError:
        return False


def _state(task: Path) -> str:
    """What a thread does, as Linux says it; empty if it has ended."""
    try:
        return task.joinpath("stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


def _after_fork() -> None:
    _Shared.pool = None
    _Shared.lock = threading.Lock()
    CHANGES.value += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
