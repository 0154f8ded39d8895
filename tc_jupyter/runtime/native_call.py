"""The native entry point of a call: a C function that Python calls without building a tuple, for NumPy arrays that are not large.

The function is compiled once and driven by a plan per def: the latest recipe, with the argument slots of the kernels filled. It
tests that every argument is a plain array of the planned element type, shape, order and alignment, a `float`, or the same object as
before, and that those to write into (`out=`) are writable and share no memory with others; it allocates the other results, puts the
addresses into the slots and runs the kernels: of one task, with little data, while it holds the GIL, others on the threads of the
pool without it. The plan is taken meanwhile, since its slots and temporaries are, and Python finishes a job that takes longer or
that sleeping threads must be woken for. Whatever differs goes to the Python path, which decides, explains, and makes a new plan.

It reads the fields of arrays where NumPy's binary interface has them, and the value of a `float` where its class has it.
`available` compares them with ones that it knows; other interpreters, and those without a GIL, use the Python path.

Worked example: the second call `f(x, y)` with two arrays of 16 floats is planned as "two `ndarray` of `float32`, shapes (16,) and
(16,), in row order; one result (16,); kernel at address a, slots x, y, result, 16", and the third one takes 0.4 microseconds.
"""

from __future__ import annotations

import ctypes
import platform
import re
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from . import jit, threads
from .memory import SMALL_BYTES, empty
from .own_code import own_code
from .short_forms import in_full
from .within import Scan, address_of

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
_ARRAY, _FLOAT, _SAME = 0, 1, 2
"""Kinds of arguments: an array, a `float` that may differ, an object that may not."""
PLAIN, WRITABLE = 0x101, 0x400
"""Flags of an array in row order with aligned elements, and of one that may be written into."""

_FIELDS = re.findall(
    r"\w+",
    """
    count generation path call drop new put_item
    arguments pairs pair_records scans scan_records results shapes empty kernels kernel_records
    shared taken changes changes_then save restore acquire no yes release state run wake
    finish answer kernel dropped fetch clear put
    """,
)
"""The fields of a plan, of 8 bytes each.

`count` is -1 where no call is planned, and `generation` changes with every plan. Then come functions of Python, the rows of the
tables below, and how many there are. From `shared` on, for kernels that run on the pool: whether there are any, whether the plan is
taken, the place of `threads.CHANGES` and what it was, how to leave the GIL, take the pool and run; and what finishes a job in
Python, which is told the answer of the pool, the kernel, and whether the job is to be dropped.

Rows: arguments (kind, class or object, element type or largest number, rank, flags, extents); pairs that share no memory (argument,
bytes, argument, bytes); scans (argument, function of `within`, elements, least, most); shapes (shape, element type); kernels
(function, slots, patches, their rows, tasks, threads, brief); patches (slot, argument or result, whether as a `float32`).
"""

_FORMS = (
    (r"(%\S+) = place (\w+)", lambda m: f"{m[1]} = getelementptr i64, ptr %plan, i64 {_FIELDS.index(m[2])}"),
    (r"(%\S+) = plan (\w+) (\w+)", lambda m: f"{m[1]} = word {m[2]} %plan, {_FIELDS.index(m[3])}"),
    (r"(%\S+) = row (\d+) (\S+), (\S+)", lambda m: f"{m[1]} = getelementptr [{m[2]} x i64], ptr {m[3]}, i64 {m[4]}"),
)
"""Forms of the text below beside those of `short_forms`: a field of the plan or its place, a row of so many words."""


def native_text() -> str:
    """The LLVM IR of the entry point."""
    text = _SHORT_TEXT.replace("PAUSES", str(threads.PAUSES))
    for pattern, long in _FORMS:
        text = re.sub(pattern, long, text)
    return in_full(text)


_SHORT_TEXT = """; passes: vector
; The native entry point: ptr self, ptr arguments, i64 count -> object.

define ptr @tc.native(ptr %self, ptr %arguments, i64 %count) {
entry:
  %results = alloca [8 x ptr], align 8
  %errors = alloca [3 x ptr], align 8
  %plan = byte ptr %self, 16
  %planned = plan i64 count
  %generation = plan i64 generation
  %call = plan ptr call
  %drop = plan ptr drop
  %taken.at = place taken
  if eq i64 %count, %planned ? look : python
look:
  %records = plan ptr arguments
  br label %argument
argument:
  %k = phi i64 [ 0, %look ], [ %k.next, %argument.good ]
  %object = word ptr %arguments, %k
  %record = row 6 %records, %k
  %kind = word i64 %record, 0
  %wanted = word ptr %record, 1
  switch i64 %kind, label %constant [ i64 0, label %array i64 1, label %number ]
constant:
  if eq ptr %object, %wanted ? argument.good : python
number:
  %number.class = byte ptr %object, 8
  if eq ptr %number.class, %wanted ? small : python
small:
  %value = byte double %object, 16
  %size = call double @llvm.fabs.f64(double %value)
  %largest = word double %record, 2
  %is.large = fcmp ogt double %size, %largest
  br i1 %is.large, label %python, label %argument.good
array:
  %class = byte ptr %object, 8
  if eq ptr %class, %wanted ? element : python
element:
  %dtype.wanted = word ptr %record, 2
  %dtype = byte ptr %object, 56
  %same.dtype = icmp eq ptr %dtype, %dtype.wanted
  %rank.wanted = word i64 %record, 3
  %rank.short = byte i32 %object, 24
  %rank = zext i32 %rank.short to i64
  %same.rank = icmp eq i64 %rank, %rank.wanted
  %mask = word i32 %record, 4
  %flags = byte i32 %object, 64
  %own.flags = and i32 %flags, %mask
  %plain = icmp eq i32 %own.flags, %mask
  %kind.same = and i1 %same.dtype, %same.rank
  %good = and i1 %kind.same, %plain
  br i1 %good, label %extents, label %python
extents:
  %dims.wanted = word ptr %record, 5
  %dims = byte ptr %object, 32
  br label %extent
extent:
  %d = phi i64 [ 0, %extents ], [ %d.next, %extent.good ]
  if uge i64 %d, %rank ? argument.good : compare
compare:
  %here = word i64 %dims, %d
  %there = word i64 %dims.wanted, %d
  if eq i64 %here, %there ? extent.good : python
extent.good:
  %d.next = add i64 %d, 1
  br label %extent
argument.good:
  %k.next = add i64 %k, 1
  if ult i64 %k.next, %count ? argument : pairs
pairs:
  %pair.count = plan i64 pairs
  %pairs.first = plan ptr pair_records
  br label %pair
pair:
; what is written into shares no memory with anything
  %w = phi i64 [ 0, %pairs ], [ %w.next, %apart ]
  if uge i64 %w, %pair.count ? scans : meet
meet:
  %w.record = row 4 %pairs.first, %w
  %w.one = word i64 %w.record, 0
  %w.other = word i64 %w.record, 2
  %w.one.object = word ptr %arguments, %w.one
  %w.other.object = word ptr %arguments, %w.other
  %w.one.data = byte i64 %w.one.object, 16
  %w.other.data = byte i64 %w.other.object, 16
  %w.one.bytes = word i64 %w.record, 1
  %w.other.bytes = word i64 %w.record, 3
  %w.one.end = add i64 %w.one.data, %w.one.bytes
  %w.other.end = add i64 %w.other.data, %w.other.bytes
  %starts.before = icmp ult i64 %w.one.data, %w.other.end
  %ends.after = icmp ult i64 %w.other.data, %w.one.end
  %shared = and i1 %starts.before, %ends.after
  br i1 %shared, label %python, label %apart
apart:
  %w.next = add i64 %w, 1
  br label %pair
scans:
  %scan.count = plan i64 scans
  %scans.first = plan ptr scan_records
  br label %scan
scan:
  %s = phi i64 [ 0, %scans ], [ %s.next, %scan.good ]
  if uge i64 %s, %scan.count ? allocate : elements
elements:
  %s.record = row 5 %scans.first, %s
  %s.argument = word i64 %s.record, 0
  %s.object = word ptr %arguments, %s.argument
  %s.data = byte ptr %s.object, 16
  %s.within = word ptr %s.record, 1
  %s.elements = word i64 %s.record, 2
  %s.least = word i64 %s.record, 3
  %s.most = word i64 %s.record, 4
  %s.answer = call i64 %s.within(ptr %s.data, i64 %s.elements, i64 %s.least, i64 %s.most)
  if ne i64 %s.answer, 0 ? scan.good : python
scan.good:
  %s.next = add i64 %s, 1
  br label %scan
allocate:
  %result.count = plan i64 results
  %shapes = plan ptr shapes
  %empty = plan ptr empty
  %no.results = icmp eq i64 %result.count, 0
  br i1 %no.results, label %kernels, label %result
result:
  %r = phi i64 [ 0, %allocate ], [ %r.next, %still ]
  %shape = row 2 %shapes, %r
  %made = call ptr %call(ptr %empty, ptr %shape, i64 2, ptr null)
  if eq ptr %made, null ? give.up : result.good
result.good:
  %kept.at = getelementptr ptr, ptr %results, i64 %r
  store ptr %made, ptr %kept.at, align 8
  %r.next = add i64 %r, 1
; making an array may run a finaliser, and that may call this function with other sizes
  %generation.now = plan i64 generation
  if eq i64 %generation, %generation.now ? still : give.up
still:
  if ult i64 %r.next, %result.count ? result : kernels
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
  if uge i64 %g, %made.count ? gone : give
give:
  %given.object = word ptr %results, %g
  call void %drop(ptr %given.object)
  %g.next = add i64 %g, 1
  br label %given
gone:
  br i1 %ends, label %nothing, label %python
nothing:
  ret ptr null
kernels:
  %shared.word = plan i64 shared
  %is.shared = icmp ne i64 %shared.word, 0
  br i1 %is.shared, label %threads.same, label %begin
threads.same:
  %taken = plan i64 taken
  %changes.place = plan ptr changes
  %changes = word i64 %changes.place, 0
  %changes.then = plan i64 changes_then
  %same.threads = icmp eq i64 %changes, %changes.then
  %free = icmp eq i64 %taken, 0
  %ready = and i1 %same.threads, %free
  br i1 %ready, label %take.pool, label %give.back
take.pool:
  %acquire = plan ptr acquire
  %false.at = place no
  %true = plan ptr yes
  %got = call ptr %call(ptr %acquire, ptr %false.at, i64 1, ptr null)
  if eq ptr %got, null ? stop : answer
answer:
  call void %drop(ptr %got)
  if eq ptr %got, %true ? look.again : give.back
look.again:
; taking the pool may run a finaliser too
  %generation.then = plan i64 generation
  if eq i64 %generation, %generation.then ? taken.now : free.unused
free.unused:
  %unused = plan ptr release
  %freed = call ptr %call(ptr %unused, ptr null, i64 0, ptr null)
  call void %drop(ptr %freed)
  br label %give.back
taken.now:
  store i64 1, ptr %taken.at, align 8
  br label %begin
begin:
  %kernel.count = plan i64 kernels
  %kernel.records = plan ptr kernel_records
  br label %kernel
kernel:
  %n = phi i64 [ 0, %begin ], [ %n.next, %next ]
  %kernel.record = row 7 %kernel.records, %n
  %code = word ptr %kernel.record, 0
  %slots = word ptr %kernel.record, 1
  %patch.count = word i64 %kernel.record, 2
  %patches = word ptr %kernel.record, 3
  br label %patch
patch:
  %p = phi i64 [ 0, %kernel ], [ %p.next, %write ]
  if uge i64 %p, %patch.count ? run : source
source:
  %patch.record = row 3 %patches, %p
  %slot = word i64 %patch.record, 0
  %source.number = word i64 %patch.record, 1
  %single = word i1 %patch.record, 2
  %is.result = icmp uge i64 %source.number, %count
  %result.number = sub i64 %source.number, %count
  %from.argument = getelementptr ptr, ptr %arguments, i64 %source.number
  %from.result = getelementptr ptr, ptr %results, i64 %result.number
  %from = select i1 %is.result, ptr %from.result, ptr %from.argument
  br label %write
write:
; the address of the elements of an array and the value of a number are at the same place
  %from.object = word ptr %from, 0
  %data = byte i64 %from.object, 16
  %double = bitcast i64 %data to double
  %float = fptrunc double %double to float
  %float.bits = bitcast float %float to i32
  %single.data = zext i32 %float.bits to i64
  %word = select i1 %single, i64 %single.data, i64 %data
  %slot.at = getelementptr i64, ptr %slots, i64 %slot
  store i64 %word, ptr %slot.at, align 8
  %p.next = add i64 %p, 1
  br label %patch
run:
  br i1 %is.shared, label %together, label %alone
alone:
  call void %code(ptr %slots, i64 0, i64 0, i64 1)
  br label %next
together:
  %tasks = word i64 %kernel.record, 4
  %threads = word i64 %kernel.record, 5
  %brief = word i64 %kernel.record, 6
  %state = plan ptr state
  %run.pool = plan ptr run
  %wake = plan ptr wake
  %save = plan ptr save
  %restore = plan ptr restore
  %own.state = call ptr %save()
  %left = call i64 %run.pool(ptr %state, ptr %code, ptr %slots, i64 %tasks, i64 %threads, i64 %brief, i64 PAUSES, ptr %wake)
  call void %restore(ptr %own.state)
  if eq i64 %left, -1 ? next : in.python
in.python:
  %left.at = place answer
  store i64 %left, ptr %left.at, align 8
  %number.at = place kernel
  store i64 %n, ptr %number.at, align 8
  %rest = plan ptr finish
  %none = call ptr %call(ptr %rest, ptr null, i64 0, ptr null)
  if eq ptr %none, null ? stopped.how : go.on
stopped.how:
; an interrupt may come before the first line of what Python runs: then nobody has given the plan and the pool back
  %still.taken = plan i64 taken
  if ne i64 %still.taken, 0 ? cancel : stop
cancel:
  %error.value = getelementptr ptr, ptr %errors, i64 1
  %error.trace = getelementptr ptr, ptr %errors, i64 2
  %fetch = plan ptr fetch
  call void %fetch(ptr %errors, ptr %error.value, ptr %error.trace)
  %cancelled.at = place dropped
  store i64 1, ptr %cancelled.at, align 8
  br label %cancel.job
cancel.job:
  %cancelled = call ptr %call(ptr %rest, ptr null, i64 0, ptr null)
  call void %drop(ptr %cancelled)
  %taken.after = plan i64 taken
  if ne i64 %taken.after, 0 ? cancel.again : cancel.done
cancel.again:
  %clear = plan ptr clear
  call void %clear()
  br label %cancel.job
cancel.done:
  store i64 0, ptr %cancelled.at, align 8
  %put = plan ptr put
  %kept.type = word ptr %errors, 0
  %kept.value = word ptr %error.value, 0
  %kept.trace = word ptr %error.trace, 0
  call void %put(ptr %kept.type, ptr %kept.value, ptr %kept.trace)
  br label %stop
go.on:
  call void %drop(ptr %none)
  br label %next
next:
  %n.next = add i64 %n, 1
  if ult i64 %n.next, %kernel.count ? kernel : ran
ran:
  br i1 %is.shared, label %free.pool, label %finish
free.pool:
  store i64 0, ptr %taken.at, align 8
  %release = plan ptr release
  %released = call ptr %call(ptr %release, ptr null, i64 0, ptr null)
  call void %drop(ptr %released)
  br label %finish
finish:
  %one = icmp eq i64 %result.count, 1
  %first = word ptr %results, 0
  br i1 %one, label %return.one, label %several
return.one:
  ret ptr %first
several:
  %new = plan ptr new
  %set = plan ptr put_item
  %tuple = call ptr %new(i64 %result.count)
  if eq ptr %tuple, null ? stop : items
items:
  br i1 %no.results, label %return.tuple, label %item
item:
  %t = phi i64 [ 0, %items ], [ %t.next, %item ]
  %item.object = word ptr %results, %t
  %done = call i32 %set(ptr %tuple, i64 %t, ptr %item.object)
  %t.next = add i64 %t, 1
  if ult i64 %t.next, %result.count ? item : return.tuple
return.tuple:
  ret ptr %tuple
python:
  %path = plan ptr path
  %returned = call ptr %call(ptr %path, ptr %arguments, i64 %count, ptr null)
  ret ptr %returned
}

declare double @llvm.fabs.f64(double)
"""


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether this interpreter has a GIL and its arrays look as the native entry point expects."""
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or not jit.available():
        return False
    array, block, number = np.zeros((3, 5), np.float32), (ctypes.c_int64 * 2)(), float("0.1")

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
        and word(id(number) + _DATA, ctypes.c_double) == number
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
    kernels: Sequence[PlannedKernel]
    acquire: Any
    release: Any


class _Plan(ctypes.Structure):
    """The fields of a plan; what they point to is kept in `kept` and `fixed`."""

    _fields_ = tuple((name, ctypes.c_int64) for name in _FIELDS)
    kept: tuple[Any, ...] = ()
    fixed: tuple[Any, ...] = ()
    job: _Job | None = None


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """One kernel at the planned sizes.

    Attributes:
        address: of the entry point.
        slots: a filled ctypes array of its arguments.
        sources: slot, the number of the argument or, after those, of the result that goes there, whether as a `float32`.
        threads: at most so many run it.
        brief: no thread is woken for it.
    """

    address: int
    slots: Any
    sources: Sequence[tuple[int, int, bool]]
    tasks: int = 1
    threads: int = 1
    brief: bool = False


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
        functions = {
            **{"call": api.PyObject_Vectorcall, "drop": api.Py_DecRef, "new": api.PyTuple_New},
            **{"put_item": api.PyTuple_SetItem, "save": api.PyEval_SaveThread, "restore": api.PyEval_RestoreThread},
            **{"fetch": api.PyErr_Fetch, "clear": api.PyErr_Clear, "put": api.PyErr_Restore},
        }
        for field, function in functions.items():
            setattr(plan, field, ctypes.cast(function, ctypes.c_void_p).value or 0)
        plan.count, plan.path, plan.finish = -1, id(python), id(finish)
        plan.no, plan.yes = id(False), id(True)
        plan.fixed = (python, np.empty, empty, finish)
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        self.function: Callable[..., Any] = make(("PyCFunction_NewEx", api))(
            ctypes.addressof(_method(name)), plan, None
        )

    @property
    def taken(self) -> bool:
        """Whether a call runs kernels of several tasks; `record` refuses meanwhile."""
        return bool(self._plan.taken)

    def forget(self) -> None:
        """Send every call to the Python path."""
        self._plan.count = -1
        self._plan.generation += 1

    def record(
        self,
        arguments: Sequence[object],
        results: Sequence[np.ndarray[Any, Any]],
        kernels: Sequence[PlannedKernel],
        alive: object = None,
        written: Sequence[np.ndarray[Any, Any]] = (),
        changes: int | None = None,
        scans: Sequence[Scan] = (),
        largest: Mapping[int, float] | None = None,
    ) -> bool | None:
        """Plan calls with arguments like these; returns whether they can be planned, `None` where that may be so later.

        Args:
            arguments: arrays and numbers; a number must be the same object again, unless it is in `largest`.
            changes: `threads.CHANGES` when the slots were filled, if they depend on the number of threads.
            results: like those that a call makes and returns; without any it returns an empty tuple.
            alive: what the addresses in the slots point to.
            written: further arguments, into which the kernels write.
            scans: where one fails, the Python path says what is wrong.
            largest: place of a `float` that may differ -> its largest value.
        """
        every = (*arguments, *written)
        if not 1 <= len(every) <= MOST_ARGUMENTS or not (results or written) or len(results) > MOST_RESULTS:
            return False
        arrays = {place: value for place, value in enumerate(every) if isinstance(value, np.ndarray)}
        nbytes = sum(array.nbytes for array in (*arrays.values(), *results))
        if not 1 <= len(kernels) <= MOST_KERNELS or nbytes > MOST_BYTES:
            return False
        targets = range(len(arguments), len(every))
        masks = {place: PLAIN | WRITABLE if place in targets else PLAIN for place in arrays}
        if any(type(each) is not np.ndarray or each.flags.num & masks[k] != masks[k] for k, each in arrays.items()):
            return False
        dims = {place: _words(array.shape) for place, array in arrays.items()}
        rows: list[tuple[int, ...]] = []
        for place, value in enumerate(every):
            if isinstance(value, np.ndarray):
                kind = (_ARRAY, id(np.ndarray), id(value.dtype), value.ndim)
                rows.append((*kind, masks[place], ctypes.addressof(dims[place])))
            elif largest and place in largest:
                rows.append((_FLOAT, id(float), _bits(largest[place]), 0, 0, 0))
            else:
                rows.append((_SAME, id(value), 0, 0, 0, 0))
        pairs = [(k, arrays[k].nbytes, j, arrays[j].nbytes) for k in targets for j in range(k) if j in arrays]
        makers = [(array.shape, array.dtype) for array in results]
        patches = [_rows(kernel.sources) for kernel in kernels]
        codes = [
            (
                *(kernel.address, ctypes.addressof(kernel.slots), len(kernel.sources), ctypes.addressof(patch)),
                *(kernel.tasks, kernel.threads, kernel.brief),
            )
            for kernel, patch in zip(kernels, patches, strict=True)
        ]
        looks = [(scan.place, address_of(scan.dtype, scan.rising), scan.count, scan.least, scan.most) for scan in scans]
        shapes = [(id(shape), id(dtype)) for shape, dtype in makers]
        tables = {
            **{"arguments": rows, "shapes": shapes, "kernel_records": codes},
            **{"pair_records": pairs, "scan_records": looks},
        }
        words = {name: _rows(table) for name, table in tables.items()}
        same = [value.dtype if isinstance(value, np.ndarray) else value for value in every]
        kept = (dims, same, makers, patches, words, tuple(kernels), alive)
        job = None
        if nbytes > HELD_BYTES or any(kernel.tasks != 1 for kernel in kernels):
            job = _job(kernels)
            if job is None:
                return None
        if not self._lock.acquire(blocking=False):  # another thread plans, or this one below a signal handler
            return None
        try:
            plan = self._plan
            if plan.taken or (changes is not None and threads.CHANGES.value != changes):
                return None
            self.forget()
            plan.shared = job is not None
            if job is not None:
                plan.changes, plan.changes_then = ctypes.addressof(threads.CHANGES), threads.CHANGES.value
                plan.acquire, plan.release = id(job.acquire), id(job.release)
                plan.state, plan.run, plan.wake = job.pool.state, job.pool.entry, job.pool.wake
            for name, table in words.items():
                setattr(plan, name, ctypes.addressof(table))
            plan.empty = id(empty if any(array.nbytes >= SMALL_BYTES for array in results) else np.empty)
            plan.results, plan.kernels, plan.pairs, plan.scans = len(results), len(kernels), len(pairs), len(looks)
            last = plan.kept, plan.job
            plan.kept, plan.job = kept, job
            plan.count = len(every)
        finally:
            self._lock.release()
        del last  # after the lock: what ends here may call this function
        return True


def _job(kernels: Sequence[PlannedKernel]) -> _Job | None:
    """The pool with workers for these kernels; `None` while it runs something."""
    pool = threads.pool()
    if not pool.ready(max(kernel.threads for kernel in kernels)):
        return None
    return _Job(pool, tuple(kernels), pool.busy.acquire, pool.busy.release)


def _finish(reference: weakref.ref[_Plan]) -> None:
    """Do what the native `run` of the pool left to do, or drop it; after that, or where it fails, plan and pool are given back."""
    plan = reference()
    assert plan is not None
    assert plan.job is not None
    pool, kernel = plan.job.pool, plan.job.kernels[plan.kernel]
    drop = plan.dropped
    try:
        if drop:
            pool.abandon()
        else:
            pool.finish(plan.answer, kernel.threads)
    except BaseException:
        _give_back(plan)
        raise
    if drop:
        _give_back(plan)


def _give_back(plan: _Plan) -> None:
    assert plan.job is not None
    plan.taken = 0
    plan.job.release()


def _words(values: Iterable[int]) -> Any:
    """A ctypes array of 64-bit words, at least one."""
    found = tuple(values)
    return (ctypes.c_int64 * max(1, len(found)))(*found)


def _rows(table: Sequence[Sequence[int]]) -> Any:
    """The words of a table, row by row."""
    return _words(word for row in table for word in row)


def _bits(value: float) -> int:
    return ctypes.c_int64.from_buffer(ctypes.c_double(value)).value


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
    return own_code("native", native_text()).address("tc.native")
