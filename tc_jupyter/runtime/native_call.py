"""The native entry point of a call: a C function that Python calls without building a tuple, for NumPy arrays that are not large.

The function is compiled once and driven by a plan per def: the sizes that the latest calls had, and the filled argument slots of
the kernels at these sizes. It tests that every argument is a plain array of the planned element type, shape, order and alignment,
and that those to write into (`out=`) are writable and share no memory with others; it allocates the other results, puts the
addresses into the slots and runs the kernels: of one task, with little data, while it holds the GIL, others on the threads of the
pool without it. The plan is taken meanwhile, since its slots and temporaries are, and Python finishes a job that takes longer or
that sleeping threads must be woken for. Whatever differs goes to the Python path, which decides, explains, and makes a new plan
once the same sizes come twice. So every condition on sizes was checked by Python for exactly these sizes.

It reads the fields of arrays where NumPy's binary interface has them. `available` compares them with an array that it knows; other
interpreters, and those without a GIL, use the Python path.

Worked example: the second call `f(x, y)` with two arrays of 16 floats is planned as "two `ndarray` of `float32`, shapes (16,) and
(16,), in row order; one result (16,); kernel at address a, slots x, y, result, 16", and the third one takes 0.4 microseconds.
"""

from __future__ import annotations

import ctypes
import platform
import sysconfig
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from tc_jupyter.program import DType

from . import jit, threads
from .kept import kept
from .memory import SMALL_BYTES, empty
from .within import address_of

MOST_ARGUMENTS, MOST_RESULTS, MOST_KERNELS = 16, 8, 8
MOST_TASKS = 1 << 32
HELD_BYTES = 512 << 10
"""Arguments and results of a planned call of one task that keeps the GIL."""
MOST_BYTES = 16 << 20
"""Arguments and results of a planned call: more takes milliseconds anyway."""
MOST_KEPT_BYTES = 4 << 20
"""Temporaries of a planned call, which are kept for the next one."""

_DATA, _RANK, _DIMS, _TYPE_OF_ELEMENT, _FLAGS = 16, 24, 32, 56, 64
"""Where the fields of an array are, in bytes: the binary interface of NumPy 1 and 2."""
PLAIN, _WRITABLE = 0x101, 0x400
"""Flags of an array in row order with aligned elements, and of one that may be written into."""

# A plan, 8 bytes per field: 0 arguments (-1: none planned), 1 generation, 2 the Python path, 3 PyObject_Vectorcall, 4 Py_DecRef,
# 5 PyTuple_New, 6 PyTuple_SetItem, 7 the type `ndarray`, 8 arguments (element type, rank, address of the extents, flags, bytes),
# 9 results, 10 (shape, element type) per result, 11 `numpy.empty` or that of the pool of buffers, 12 kernels, 13 (function, slots,
# patches, address of patches, tasks, threads, brief) per kernel, 14 arguments that are only read; those after them are written
# into, and share memory with no other. For kernels of several tasks: 15 whether there are any, 16 whether the plan is taken, 17 the
# place of the number of changes of the threads, 18 that number then, 19 PyEval_SaveThread, 20 PyEval_RestoreThread, 21 takes the
# pool, 22 (False), 23 True, 24 frees it, 25 its state, 26 its `run`, 27 the threads that it has to wake, 28 finishes a job in
# Python, 29 what `run` answered, 30 the kernel, 31 whether the job is to be dropped, 32 PyErr_Fetch, 33 PyErr_Clear, 34
# PyErr_Restore, 35 index tensors, 36 (argument, function of `within`, elements, least, most) per index tensor.
# A patch: slot, and the number of the argument or, after those, of the result whose data address goes there.
_TEXT = """; passes: vector
; The native entry point: ptr self, ptr arguments, i64 count -> object.

define ptr @tc.native(ptr %self, ptr %arguments, i64 %count) {
entry:
  %results = alloca [8 x ptr], align 8
  %errors = alloca [3 x ptr], align 8
  %plan.at = getelementptr i8, ptr %self, i64 16
  %plan = load ptr, ptr %plan.at, align 8
  %planned = load i64, ptr %plan, align 8
  %generation.at = getelementptr i64, ptr %plan, i64 1
  %generation = load i64, ptr %generation.at, align 8
  %call.at = getelementptr i64, ptr %plan, i64 3
  %call = load ptr, ptr %call.at, align 8
  %drop.at = getelementptr i64, ptr %plan, i64 4
  %drop = load ptr, ptr %drop.at, align 8
  %same.count = icmp eq i64 %count, %planned
  br i1 %same.count, label %look, label %python
look:
  %ndarray.at = getelementptr i64, ptr %plan, i64 7
  %ndarray = load ptr, ptr %ndarray.at, align 8
  %records.at = getelementptr i64, ptr %plan, i64 8
  %records = load ptr, ptr %records.at, align 8
  br label %argument
argument:
  %k = phi i64 [ 0, %look ], [ %k.next, %argument.good ]
  %object.at = getelementptr ptr, ptr %arguments, i64 %k
  %object = load ptr, ptr %object.at, align 8
  %class.at = getelementptr i8, ptr %object, i64 8
  %class = load ptr, ptr %class.at, align 8
  %is.array = icmp eq ptr %class, %ndarray
  br i1 %is.array, label %element, label %python
element:
  %record.number = mul i64 %k, 5
  %record = getelementptr i64, ptr %records, i64 %record.number
  %dtype.wanted = load ptr, ptr %record, align 8
  %dtype.at = getelementptr i8, ptr %object, i64 56
  %dtype = load ptr, ptr %dtype.at, align 8
  %same.dtype = icmp eq ptr %dtype, %dtype.wanted
  %rank.wanted.at = getelementptr i64, ptr %record, i64 1
  %rank.wanted = load i64, ptr %rank.wanted.at, align 8
  %rank.at = getelementptr i8, ptr %object, i64 24
  %rank.short = load i32, ptr %rank.at, align 4
  %rank = zext i32 %rank.short to i64
  %same.rank = icmp eq i64 %rank, %rank.wanted
  %flags.at = getelementptr i8, ptr %object, i64 64
  %flags = load i32, ptr %flags.at, align 4
  %mask.at = getelementptr i64, ptr %record, i64 3
  %mask.long = load i64, ptr %mask.at, align 8
  %mask = trunc i64 %mask.long to i32
  %own.flags = and i32 %flags, %mask
  %plain = icmp eq i32 %own.flags, %mask
  %kind.good = and i1 %same.dtype, %same.rank
  %good = and i1 %kind.good, %plain
  br i1 %good, label %extents, label %python
extents:
  %wanted.at = getelementptr i64, ptr %record, i64 2
  %wanted = load ptr, ptr %wanted.at, align 8
  %dims.at = getelementptr i8, ptr %object, i64 32
  %dims = load ptr, ptr %dims.at, align 8
  br label %extent
extent:
  %d = phi i64 [ 0, %extents ], [ %d.next, %extent.good ]
  %all.dims = icmp uge i64 %d, %rank
  br i1 %all.dims, label %argument.good, label %compare
compare:
  %here.at = getelementptr i64, ptr %dims, i64 %d
  %here = load i64, ptr %here.at, align 8
  %there.at = getelementptr i64, ptr %wanted, i64 %d
  %there = load i64, ptr %there.at, align 8
  %same.extent = icmp eq i64 %here, %there
  br i1 %same.extent, label %extent.good, label %python
extent.good:
  %d.next = add i64 %d, 1
  br label %extent
argument.good:
  %k.next = add i64 %k, 1
  %more.arguments = icmp ult i64 %k.next, %count
  br i1 %more.arguments, label %argument, label %written
written:
  %read.at = getelementptr i64, ptr %plan, i64 14
  %read = load i64, ptr %read.at, align 8
  br label %target
target:
  %w = phi i64 [ %read, %written ], [ %w.next, %target.good ]
  %all.targets = icmp uge i64 %w, %count
  br i1 %all.targets, label %scans, label %bounds
bounds:
  %w.object.at = getelementptr ptr, ptr %arguments, i64 %w
  %w.object = load ptr, ptr %w.object.at, align 8
  %w.data.at = getelementptr i8, ptr %w.object, i64 16
  %w.data = load i64, ptr %w.data.at, align 8
  %w.number = mul i64 %w, 5
  %w.bytes.number = add i64 %w.number, 4
  %w.bytes.at = getelementptr i64, ptr %records, i64 %w.bytes.number
  %w.bytes = load i64, ptr %w.bytes.at, align 8
  %w.end = add i64 %w.data, %w.bytes
  br label %other
other:
  %o = phi i64 [ 0, %bounds ], [ %o.next, %apart ]
  %all.others = icmp uge i64 %o, %w
  br i1 %all.others, label %target.good, label %meet
meet:
  %o.object.at = getelementptr ptr, ptr %arguments, i64 %o
  %o.object = load ptr, ptr %o.object.at, align 8
  %o.data.at = getelementptr i8, ptr %o.object, i64 16
  %o.data = load i64, ptr %o.data.at, align 8
  %o.number = mul i64 %o, 5
  %o.bytes.number = add i64 %o.number, 4
  %o.bytes.at = getelementptr i64, ptr %records, i64 %o.bytes.number
  %o.bytes = load i64, ptr %o.bytes.at, align 8
  %o.end = add i64 %o.data, %o.bytes
  %starts.before = icmp ult i64 %w.data, %o.end
  %ends.after = icmp ult i64 %o.data, %w.end
  %shared = and i1 %starts.before, %ends.after
  br i1 %shared, label %python, label %apart
apart:
  %o.next = add i64 %o, 1
  br label %other
target.good:
  %w.next = add i64 %w, 1
  br label %target
scans:
  %scan.count.at = getelementptr i64, ptr %plan, i64 35
  %scan.count = load i64, ptr %scan.count.at, align 8
  %scans.at = getelementptr i64, ptr %plan, i64 36
  %scans.first = load ptr, ptr %scans.at, align 8
  br label %scan
scan:
  %s = phi i64 [ 0, %scans ], [ %s.next, %scan.good ]
  %all.scans = icmp uge i64 %s, %scan.count
  br i1 %all.scans, label %allocate, label %elements
elements:
  %s.number = mul i64 %s, 5
  %s.record = getelementptr i64, ptr %scans.first, i64 %s.number
  %s.argument = load i64, ptr %s.record, align 8
  %s.object.at = getelementptr ptr, ptr %arguments, i64 %s.argument
  %s.object = load ptr, ptr %s.object.at, align 8
  %s.data.at = getelementptr i8, ptr %s.object, i64 16
  %s.data = load ptr, ptr %s.data.at, align 8
  %s.within.at = getelementptr i64, ptr %s.record, i64 1
  %s.within = load ptr, ptr %s.within.at, align 8
  %s.elements.at = getelementptr i64, ptr %s.record, i64 2
  %s.elements = load i64, ptr %s.elements.at, align 8
  %s.least.at = getelementptr i64, ptr %s.record, i64 3
  %s.least = load i64, ptr %s.least.at, align 8
  %s.most.at = getelementptr i64, ptr %s.record, i64 4
  %s.most = load i64, ptr %s.most.at, align 8
  %s.answer = call i64 %s.within(ptr %s.data, i64 %s.elements, i64 %s.least, i64 %s.most)
  %s.good = icmp ne i64 %s.answer, 0
  br i1 %s.good, label %scan.good, label %python
scan.good:
  %s.next = add i64 %s, 1
  br label %scan
allocate:
  %result.count.at = getelementptr i64, ptr %plan, i64 9
  %result.count = load i64, ptr %result.count.at, align 8
  %shapes.at = getelementptr i64, ptr %plan, i64 10
  %shapes = load ptr, ptr %shapes.at, align 8
  %empty.at = getelementptr i64, ptr %plan, i64 11
  %empty = load ptr, ptr %empty.at, align 8
  %no.results = icmp eq i64 %result.count, 0
  br i1 %no.results, label %kernels, label %result
result:
  %r = phi i64 [ 0, %allocate ], [ %r.next, %still ]
  %shape.number = shl i64 %r, 1
  %shape = getelementptr ptr, ptr %shapes, i64 %shape.number
  %made = call ptr %call(ptr %empty, ptr %shape, i64 2, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %give.up, label %result.good
result.good:
  %kept.at = getelementptr ptr, ptr %results, i64 %r
  store ptr %made, ptr %kept.at, align 8
  %r.next = add i64 %r, 1
; making an array may run a finaliser, and that may call this function with other sizes
  %generation.now = load i64, ptr %generation.at, align 8
  %same.plan = icmp eq i64 %generation, %generation.now
  br i1 %same.plan, label %still, label %give.up
still:
  %more.results = icmp ult i64 %r.next, %result.count
  br i1 %more.results, label %result, label %kernels
give.back:
  br label %give.up
stop:
  br label %give.up
give.up:
  %made.count = phi i64 [ %r, %result ], [ %r.next, %result.good ], [ %result.count, %give.back ], [ %result.count, %stop ]
  %ends = phi i1 [ true, %result ], [ false, %result.good ], [ false, %give.back ], [ true, %stop ]
  br label %given
given:
  %g = phi i64 [ 0, %give.up ], [ %g.next, %give ]
  %all.given = icmp uge i64 %g, %made.count
  br i1 %all.given, label %gone, label %give
give:
  %given.at = getelementptr ptr, ptr %results, i64 %g
  %given.object = load ptr, ptr %given.at, align 8
  call void %drop(ptr %given.object)
  %g.next = add i64 %g, 1
  br label %given
gone:
  br i1 %ends, label %nothing, label %python
nothing:
  ret ptr null
kernels:
  %shared.at = getelementptr i64, ptr %plan, i64 15
  %shared.word = load i64, ptr %shared.at, align 8
  %is.shared = icmp ne i64 %shared.word, 0
  %taken.place = getelementptr i64, ptr %plan, i64 16
  br i1 %is.shared, label %threads.same, label %begin
threads.same:
  %taken = load i64, ptr %taken.place, align 8
  %changes.at = getelementptr i64, ptr %plan, i64 17
  %changes.place = load ptr, ptr %changes.at, align 8
  %changes = load i64, ptr %changes.place, align 8
  %changes.then.at = getelementptr i64, ptr %plan, i64 18
  %changes.then = load i64, ptr %changes.then.at, align 8
  %same.threads = icmp eq i64 %changes, %changes.then
  %free = icmp eq i64 %taken, 0
  %ready = and i1 %same.threads, %free
  br i1 %ready, label %take.pool, label %give.back
take.pool:
  %acquire.at = getelementptr i64, ptr %plan, i64 21
  %acquire = load ptr, ptr %acquire.at, align 8
  %false.at = getelementptr i64, ptr %plan, i64 22
  %true.at = getelementptr i64, ptr %plan, i64 23
  %true = load ptr, ptr %true.at, align 8
  %got = call ptr %call(ptr %acquire, ptr %false.at, i64 1, ptr null)
  %no.answer = icmp eq ptr %got, null
  br i1 %no.answer, label %stop, label %answer
answer:
  call void %drop(ptr %got)
  %is.taken = icmp eq ptr %got, %true
  br i1 %is.taken, label %look.again, label %give.back
look.again:
; taking the pool may run a finaliser too
  %generation.then = load i64, ptr %generation.at, align 8
  %same.still = icmp eq i64 %generation, %generation.then
  br i1 %same.still, label %taken.now, label %free.unused
free.unused:
  %unused.at = getelementptr i64, ptr %plan, i64 24
  %unused = load ptr, ptr %unused.at, align 8
  %freed = call ptr %call(ptr %unused, ptr null, i64 0, ptr null)
  call void %drop(ptr %freed)
  br label %give.back
taken.now:
  store i64 1, ptr %taken.place, align 8
  br label %begin
begin:
  %kernel.count.at = getelementptr i64, ptr %plan, i64 12
  %kernel.count = load i64, ptr %kernel.count.at, align 8
  %kernels.at = getelementptr i64, ptr %plan, i64 13
  %kernel.records = load ptr, ptr %kernels.at, align 8
  br label %kernel
kernel:
  %n = phi i64 [ 0, %begin ], [ %n.next, %next ]
  %kernel.number = mul i64 %n, 7
  %kernel.record = getelementptr i64, ptr %kernel.records, i64 %kernel.number
  %code = load ptr, ptr %kernel.record, align 8
  %slots.at = getelementptr i64, ptr %kernel.record, i64 1
  %slots = load ptr, ptr %slots.at, align 8
  %patch.count.at = getelementptr i64, ptr %kernel.record, i64 2
  %patch.count = load i64, ptr %patch.count.at, align 8
  %patches.at = getelementptr i64, ptr %kernel.record, i64 3
  %patches = load ptr, ptr %patches.at, align 8
  br label %patch
patch:
  %p = phi i64 [ 0, %kernel ], [ %p.next, %write ]
  %all.patches = icmp uge i64 %p, %patch.count
  br i1 %all.patches, label %run, label %source
source:
  %patch.number = shl i64 %p, 1
  %patch.at = getelementptr i64, ptr %patches, i64 %patch.number
  %slot = load i64, ptr %patch.at, align 8
  %source.at = getelementptr i64, ptr %patch.at, i64 1
  %source.number = load i64, ptr %source.at, align 8
  %is.result = icmp uge i64 %source.number, %count
  %result.number = sub i64 %source.number, %count
  %from.argument = getelementptr ptr, ptr %arguments, i64 %source.number
  %from.result = getelementptr ptr, ptr %results, i64 %result.number
  %from = select i1 %is.result, ptr %from.result, ptr %from.argument
  br label %write
write:
  %array = load ptr, ptr %from, align 8
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load i64, ptr %data.at, align 8
  %slot.at = getelementptr i64, ptr %slots, i64 %slot
  store i64 %data, ptr %slot.at, align 8
  %p.next = add i64 %p, 1
  br label %patch
run:
  br i1 %is.shared, label %together, label %alone
alone:
  call void %code(ptr %slots, i64 0, i64 0, i64 1)
  br label %next
together:
  %tasks.at = getelementptr i64, ptr %kernel.record, i64 4
  %tasks = load i64, ptr %tasks.at, align 8
  %threads.at = getelementptr i64, ptr %kernel.record, i64 5
  %threads = load i64, ptr %threads.at, align 8
  %brief.at = getelementptr i64, ptr %kernel.record, i64 6
  %brief = load i64, ptr %brief.at, align 8
  %state.at = getelementptr i64, ptr %plan, i64 25
  %state = load ptr, ptr %state.at, align 8
  %run.at = getelementptr i64, ptr %plan, i64 26
  %run.pool = load ptr, ptr %run.at, align 8
  %wake.at = getelementptr i64, ptr %plan, i64 27
  %wake = load ptr, ptr %wake.at, align 8
  %save.at = getelementptr i64, ptr %plan, i64 19
  %save = load ptr, ptr %save.at, align 8
  %restore.at = getelementptr i64, ptr %plan, i64 20
  %restore = load ptr, ptr %restore.at, align 8
  %own.state = call ptr %save()
  %left = call i64 %run.pool(ptr %state, ptr %code, ptr %slots, i64 %tasks, i64 %threads, i64 %brief, i64 PAUSES, ptr %wake)
  call void %restore(ptr %own.state)
  %all.done = icmp eq i64 %left, -1
  br i1 %all.done, label %next, label %in.python
in.python:
  %left.at = getelementptr i64, ptr %plan, i64 29
  store i64 %left, ptr %left.at, align 8
  %number.at = getelementptr i64, ptr %plan, i64 30
  store i64 %n, ptr %number.at, align 8
  %rest.at = getelementptr i64, ptr %plan, i64 28
  %rest = load ptr, ptr %rest.at, align 8
  %none = call ptr %call(ptr %rest, ptr null, i64 0, ptr null)
  %stopped = icmp eq ptr %none, null
  br i1 %stopped, label %stopped.how, label %go.on
stopped.how:
; an interrupt may come before the first line of what Python runs: then nobody has given the plan and the pool back
  %still.taken = load i64, ptr %taken.place, align 8
  %is.still.taken = icmp ne i64 %still.taken, 0
  br i1 %is.still.taken, label %cancel, label %stop
cancel:
  %error.value = getelementptr ptr, ptr %errors, i64 1
  %error.trace = getelementptr ptr, ptr %errors, i64 2
  %fetch.at = getelementptr i64, ptr %plan, i64 32
  %fetch = load ptr, ptr %fetch.at, align 8
  call void %fetch(ptr %errors, ptr %error.value, ptr %error.trace)
  %cancelled.at = getelementptr i64, ptr %plan, i64 31
  store i64 1, ptr %cancelled.at, align 8
  br label %cancel.job
cancel.job:
  %cancelled = call ptr %call(ptr %rest, ptr null, i64 0, ptr null)
  call void %drop(ptr %cancelled)
  %taken.after = load i64, ptr %taken.place, align 8
  %is.taken.after = icmp ne i64 %taken.after, 0
  br i1 %is.taken.after, label %cancel.again, label %cancel.done
cancel.again:
  %clear.at = getelementptr i64, ptr %plan, i64 33
  %clear = load ptr, ptr %clear.at, align 8
  call void %clear()
  br label %cancel.job
cancel.done:
  store i64 0, ptr %cancelled.at, align 8
  %put.at = getelementptr i64, ptr %plan, i64 34
  %put = load ptr, ptr %put.at, align 8
  %kept.type = load ptr, ptr %errors, align 8
  %kept.value = load ptr, ptr %error.value, align 8
  %kept.trace = load ptr, ptr %error.trace, align 8
  call void %put(ptr %kept.type, ptr %kept.value, ptr %kept.trace)
  br label %stop
go.on:
  call void %drop(ptr %none)
  br label %next
next:
  %n.next = add i64 %n, 1
  %more.kernels = icmp ult i64 %n.next, %kernel.count
  br i1 %more.kernels, label %kernel, label %ran
ran:
  br i1 %is.shared, label %free.pool, label %finish
free.pool:
  store i64 0, ptr %taken.place, align 8
  %release.at = getelementptr i64, ptr %plan, i64 24
  %release = load ptr, ptr %release.at, align 8
  %released = call ptr %call(ptr %release, ptr null, i64 0, ptr null)
  call void %drop(ptr %released)
  br label %finish
finish:
  %one = icmp eq i64 %result.count, 1
  %first = load ptr, ptr %results, align 8
  br i1 %one, label %return.one, label %several
return.one:
  ret ptr %first
several:
  %new.at = getelementptr i64, ptr %plan, i64 5
  %new = load ptr, ptr %new.at, align 8
  %set.at = getelementptr i64, ptr %plan, i64 6
  %set = load ptr, ptr %set.at, align 8
  %tuple = call ptr %new(i64 %result.count)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %stop, label %items
items:
  br i1 %no.results, label %return.tuple, label %item
item:
  %t = phi i64 [ 0, %items ], [ %t.next, %item ]
  %item.at = getelementptr ptr, ptr %results, i64 %t
  %item.object = load ptr, ptr %item.at, align 8
  %done = call i32 %set(ptr %tuple, i64 %t, ptr %item.object)
  %t.next = add i64 %t, 1
  %more.items = icmp ult i64 %t.next, %result.count
  br i1 %more.items, label %item, label %return.tuple
return.tuple:
  ret ptr %tuple
python:
  %path.at = getelementptr i64, ptr %plan, i64 2
  %path = load ptr, ptr %path.at, align 8
  %returned = call ptr %call(ptr %path, ptr %arguments, i64 %count, ptr null)
  ret ptr %returned
}
""".replace("PAUSES", str(threads.PAUSES))


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether this interpreter has a GIL and its arrays look as the native entry point expects."""
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or not jit.available():
        return False
    array, block = np.zeros((3, 5), np.float32), (ctypes.c_int64 * 2)()

    def word(place: int, kind: Any = ctypes.c_int64) -> int:
        return kind.from_address(place).value

    dims = word(id(array) + _DIMS)
    return (
        word(id(array) + 8) == id(np.ndarray)
        and word(id(array) + _DATA) == array.ctypes.data
        and word(id(array) + _RANK, ctypes.c_int32) == 2
        and (word(dims), word(dims + 8)) == (3, 5)
        and word(id(array) + _TYPE_OF_ELEMENT) == id(array.dtype)
        and word(id(array) + _FLAGS, ctypes.c_int32) == array.flags.num
        and array.flags.num & PLAIN == PLAIN
        and word(id(block) + 16) == ctypes.addressof(block)
    )


class _MethodDef(ctypes.Structure):
    """`PyMethodDef`: name, function, flags, docstring."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("document", ctypes.c_char_p),
    )


_METH_FASTCALL = 0x80


@dataclass(frozen=True, slots=True)
class _Job:
    """Who runs the kernels without the GIL; `acquire` and `release` take the pool and free it."""

    pool: threads.Pool
    place: threads.Place
    kernels: Sequence[PlannedKernel]
    acquire: Any
    release: Any


class _Plan(ctypes.c_int64 * 37):
    """The fields of a plan; what they point to is kept in `kept` and `fixed`."""

    kept: tuple[Any, ...] = ()
    fixed: tuple[Any, ...] = ()
    job: _Job | None = None


_SHARED, _TAKEN, _ANSWER, _KERNEL, _DROP = 15, 16, 29, 30, 31


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """One kernel at the planned sizes.

    Attributes:
        address: of the entry point.
        slots: a filled ctypes array of its arguments.
        sources: slot -> number of the argument or, after those, of the result whose data goes there.
        threads: at most so many run it.
        brief: no thread is woken for it.
    """

    address: int
    slots: Any
    sources: Mapping[int, int]
    tasks: int = 1
    threads: int = 1
    brief: bool = False


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """The argument of that number has elements from `least` to `most` only, or the Python path says what is wrong."""

    argument: int
    least: int
    most: int


class NativeCall:
    """The native entry point of one def.

    Attributes:
        function: the callable; without a plan every call takes the Python path.
    """

    def __init__(self, python: Callable[..., Any], name: str) -> None:
        """Make the callable around the Python path."""
        self._lock = threading.Lock()
        self._plan = plan = _Plan()
        finish = partial(_finish, weakref.ref(plan))
        api = ctypes.pythonapi
        addresses = [
            ctypes.cast(each, ctypes.c_void_p).value or 0
            for each in (
                *(api.PyObject_Vectorcall, api.Py_DecRef, api.PyTuple_New, api.PyTuple_SetItem),
                *(api.PyEval_SaveThread, api.PyEval_RestoreThread),
                *(api.PyErr_Fetch, api.PyErr_Clear, api.PyErr_Restore),
            )
        ]
        plan[0] = -1
        plan[2], plan[3:7], plan[7], plan[11] = id(python), addresses[:4], id(np.ndarray), id(np.empty)
        plan[19:21], plan[22], plan[23], plan[28] = addresses[4:6], id(False), id(True), id(finish)
        plan[32:35] = addresses[6:]
        plan.fixed = (python, np.ndarray, np.empty, empty, finish)
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        self.function: Callable[..., Any] = make(("PyCFunction_NewEx", api))(
            ctypes.addressof(_method(name)), plan, None
        )

    @property
    def taken(self) -> bool:
        """Whether a call runs kernels of several tasks; `record` refuses meanwhile."""
        return bool(self._plan[_TAKEN])

    def forget(self) -> None:
        """Send every call to the Python path."""
        self._plan[0] = -1
        self._plan[1] += 1

    def record(
        self,
        arguments: Sequence[np.ndarray[Any, Any]],
        results: Sequence[np.ndarray[Any, Any]],
        kernels: Sequence[PlannedKernel],
        alive: object = None,
        written: Sequence[np.ndarray[Any, Any]] = (),
        changes: int | None = None,
        scans: Sequence[PlannedScan] = (),
    ) -> bool | None:
        """Plan calls with arguments like these; returns whether they can be planned, `None` where that may be so later.

        Args:
            changes: `threads.CHANGES` when the slots were filled, if they depend on the number of threads.
            results: like those that a call makes and returns; without any it returns an empty tuple.
            alive: what the addresses in the slots point to.
            written: further arguments, into which the kernels write.
            scans: index tensors, of integer types that are `comparable`.
        """
        every = (*arguments, *written)
        if not 1 <= len(every) <= MOST_ARGUMENTS or not (results or written) or len(results) > MOST_RESULTS:
            return False
        nbytes = sum(array.nbytes for array in (*every, *results))
        if not 1 <= len(kernels) <= MOST_KERNELS or nbytes > MOST_BYTES:
            return False
        masks = [PLAIN] * len(arguments) + [PLAIN | _WRITABLE] * len(written)
        pairs = list(zip(every, masks, strict=True))
        if any(type(array) is not np.ndarray or array.flags.num & mask != mask for array, mask in pairs):
            return False
        dims = [_words(array.shape) for array in every]
        records = _words(
            word
            for (array, mask), extents in zip(pairs, dims, strict=True)
            for word in (id(array.dtype), array.ndim, ctypes.addressof(extents), mask, array.nbytes)
        )
        makers = [(array.shape, array.dtype) for array in results]
        shapes = _words(id(part) for maker in makers for part in maker)
        patches = [_words(word for pair in kernel.sources.items() for word in pair) for kernel in kernels]
        codes = _words(
            word
            for kernel, patch in zip(kernels, patches, strict=True)
            for word in (
                *(kernel.address, ctypes.addressof(kernel.slots), len(kernel.sources), ctypes.addressof(patch)),
                *(kernel.tasks, kernel.threads, kernel.brief),
            )
        )
        looks = _words(
            word
            for scan in scans
            for array in (every[scan.argument],)
            for word in (scan.argument, address_of(DType(array.dtype.name)), array.size, scan.least, scan.most)
        )
        types = [array.dtype for array in every]
        kept = (dims, records, makers, shapes, patches, codes, looks, types, tuple(kernels), alive)
        job = None
        if nbytes > HELD_BYTES or any(kernel.tasks != 1 for kernel in kernels):
            job = _job(kernels)
            if job is None:
                return None
        if not self._lock.acquire(blocking=False):  # another thread plans, or this one below a signal handler
            return None
        try:
            plan = self._plan
            if plan[_TAKEN] or (changes is not None and threads.CHANGES.value != changes):
                return None
            self.forget()
            plan[_SHARED] = job is not None
            if job is not None:
                plan[17], plan[18] = ctypes.addressof(threads.CHANGES), threads.CHANGES.value
                plan[21], plan[24] = id(job.acquire), id(job.release)
                plan[25:28] = [job.place.state, job.place.run, job.place.wake]
            plan[8], plan[9], plan[10] = ctypes.addressof(records), len(results), ctypes.addressof(shapes)
            plan[11] = id(empty if any(array.nbytes >= SMALL_BYTES for array in results) else np.empty)
            plan[12], plan[13], plan[14] = len(kernels), ctypes.addressof(codes), len(arguments)
            plan[35], plan[36] = len(scans), ctypes.addressof(looks)
            last = plan.kept, plan.job
            plan.kept, plan.job = kept, job
            plan[0] = len(every)
        finally:
            self._lock.release()
        del last  # after the lock: what ends here may call this function
        return True


def _job(kernels: Sequence[PlannedKernel]) -> _Job | None:
    """The pool with workers for these kernels; `None` while it runs something."""
    pool = threads.pool()
    place = pool.ready(max(kernel.threads for kernel in kernels))
    return None if place is None else _Job(pool, place, tuple(kernels), pool.busy.acquire, pool.busy.release)


def _finish(reference: weakref.ref[_Plan]) -> None:
    """Do what the native `run` of the pool left to do, or drop it; after that, or where it fails, plan and pool are given back."""
    plan = reference()
    assert plan is not None
    assert plan.job is not None
    pool, kernel = plan.job.pool, plan.job.kernels[plan[_KERNEL]]
    drop = plan[_DROP]
    try:
        if drop:
            pool.abandon()
        else:
            pool.finish(plan[_ANSWER], kernel.threads)
    except BaseException:
        _give_back(plan)
        raise
    if drop:
        _give_back(plan)


def _give_back(plan: _Plan) -> None:
    assert plan.job is not None
    plan[_TAKEN] = 0
    plan.job.release()


def _words(values: Any) -> Any:
    """A ctypes array of 64-bit words, at least one."""
    found = tuple(values)
    return (ctypes.c_int64 * max(1, len(found)))(*found)


@cache
def _method(name: str) -> _MethodDef:
    """What Python knows of the functions of that name, never freed.

    It is read once more when one of them is freed; in the garbage of a cycle that may be after all that the function refers to, and
    at the end of the process after this module.
    """
    method = _MethodDef(name.encode(), _entry(), _METH_FASTCALL, b"A function of arrays.")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    return method


@lru_cache(maxsize=1)
def _entry() -> int:
    """The address of the compiled function."""
    return kept("native", _TEXT).address("tc.native")
