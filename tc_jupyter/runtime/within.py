"""Whether all elements of an array are within limits, or rise from one to the other, for tensors that are looked at before every
call: indices, and where rows begin. Floats are so without their fractions, and NaN never is.

NumPy takes 2.5 us for the smallest and as long for the largest element, however few the elements are: 10 of the 11 us of a short
list of embeddings.

Worked example: `within(DType.INT32)(address, 3, 0, 9)` is 0 if the three integers there are 4, -2 and 7.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tc_jupyter.program import DType

from .address import numpy_address
from .own_code import own_code

_TEXT = """; passes: loops
; Whether all of `count` elements, at least one, are from `least` to `most`.

define i64 @tc.within(ptr %data, i64 %count, i64 %least, i64 %most) {{
entry:
  br label %element
element:
  %k = phi i64 [ 0, %entry ], [ %next, %element ]
  %low = phi {type} [ {highest}, %entry ], [ %low.next, %element ]
  %high = phi {type} [ {lowest}, %entry ], [ %high.next, %element ]
  %at = getelementptr {type}, ptr %data, i64 %k
  %value = load {type}, ptr %at, align {bytes}
  %low.next = call {type} @llvm.{sign}min.{type}({type} %low, {type} %value)
  %high.next = call {type} @llvm.{sign}max.{type}({type} %high, {type} %value)
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %element, label %end
end:
  {wide}
  %from = icmp sge i64 %smallest, %least
  %to = icmp sle i64 %largest, %most
  %both = and i1 %from, %to
  %answer = zext i1 %both to i64
  ret i64 %answer
}}

; Whether none of them is less than the one before it, the first one is no less than `least`, and the last one no more than `most`.

define i64 @tc.rising(ptr %data, i64 %count, i64 %least, i64 %most) {{
entry:
  %before.last = sub i64 %count, 1
  %first = load {type}, ptr %data, align {bytes}
  %last.at = getelementptr {type}, ptr %data, i64 %before.last
  %last = load {type}, ptr %last.at, align {bytes}
  %some = icmp ugt i64 %count, 1
  br i1 %some, label %element, label %end
element:
  %k = phi i64 [ 0, %entry ], [ %next, %element ]
  %falls = phi {type} [ 0, %entry ], [ %falls.next, %element ]
  %at = getelementptr {type}, ptr %data, i64 %k
  %value = load {type}, ptr %at, align {bytes}
  %next = add nuw nsw i64 %k, 1
  %behind.at = getelementptr {type}, ptr %data, i64 %next
  %behind = load {type}, ptr %behind.at, align {bytes}
  %less = icmp {sign}lt {type} %behind, %value
  %fallen = zext i1 %less to {type}
  %falls.next = or {type} %falls, %fallen
  %more = icmp ult i64 %next, %before.last
  br i1 %more, label %element, label %end
end:
  %fell = phi {type} [ 0, %entry ], [ %falls.next, %element ]
  %up = icmp eq {type} %fell, 0
  {ends}
  %from = icmp sge i64 %smallest, %least
  %to = icmp sle i64 %largest, %most
  %both = and i1 %from, %to
  %all = and i1 %both, %up
  %answer = zext i1 %all to i64
  ret i64 %answer
}}

declare {type} @llvm.{sign}min.{type}({type}, {type})
declare {type} @llvm.{sign}max.{type}({type}, {type})
"""

_FLOATS = """; passes: loops
; Whether all of `count` elements without their fractions are from `least` to `most`: above what is before the one, or the integer
; before it if fractions lead away from it, and below what is behind the other.

define i64 @tc.within(ptr %data, i64 %count, i64 %least, i64 %most) {{
entry:
  %up = icmp sgt i64 %least, 0
  %before = call i64 @llvm.ssub.sat.i64(i64 %least, i64 1)
  %least.wide = sitofp i64 %least to double
  %least.bits = bitcast double %least.wide to i64
  %least.less = sub i64 %least.bits, 1
  %close.before = bitcast i64 %least.less to double
  %far.before = sitofp i64 %before to double
  %from = select i1 %up, double %close.before, double %far.before
  %down = icmp slt i64 %most, 0
  %behind = call i64 @llvm.sadd.sat.i64(i64 %most, i64 1)
  %most.wide = sitofp i64 %most to double
  %most.bits = bitcast double %most.wide to i64
  %most.less = sub i64 %most.bits, 1
  %close.behind = bitcast i64 %most.less to double
  %far.behind = sitofp i64 %behind to double
  %to = select i1 %down, double %close.behind, double %far.behind
  br label %element
element:
  %k = phi i64 [ 0, %entry ], [ %next, %element ]
  %fails = phi {word} [ 0, %entry ], [ %fails.next, %element ]
  %at = getelementptr {type}, ptr %data, i64 %k
  %value = load {type}, ptr %at, align {bytes}
  {wide}
  %above = fcmp ogt double %x, %from
  %below = fcmp olt double %x, %to
  %inside = and i1 %above, %below
  %outside = xor i1 %inside, true
  %failed = zext i1 %outside to {word}
  %fails.next = or {word} %fails, %failed
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %element, label %end
end:
  %all = icmp eq {word} %fails.next, 0
  %answer = zext i1 %all to i64
  ret i64 %answer
}}

declare i64 @llvm.ssub.sat.i64(i64, i64)
declare i64 @llvm.sadd.sat.i64(i64, i64)
"""
_EXACT = 1 << 53
"""Up to so large integers `double` has all of them."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The `count` elements of the index tensor at a place among the arguments, of type `dtype`, are from `least` to `most` only,
    and they are `rising` if asked.
    """

    place: int
    dtype: DType
    count: int
    least: int
    most: int
    rising: bool

    def fails(self, values: Sequence[Any]) -> bool:
        """Whether an element is outside."""
        look = within(self.dtype, self.rising)
        return not look(numpy_address(values[self.place]), self.count, self.least, self.most)


def comparable(dtype: DType, least: int, most: int, rising: bool = False) -> bool:
    """Whether `within` tells of a type and limits; it does not of values that are none of `int64`, nor of rising floats."""
    if not dtype.is_float:
        return dtype is not DType.UINT64
    exact = all(abs(end) < _EXACT or end in DType.INT64.limits for end in (least, most))
    return dtype in (DType.FLOAT32, DType.FLOAT64) and exact and not rising


@cache
def within(dtype: DType, rising: bool = False) -> Any:
    """The function of address, count and limits (`int64`, included), where elements are `rising` also of that; `dtype` is
    `comparable`.

    Raises:
        BackendError: LLVM does not accept the text (TC903).
    """
    word = ctypes.c_int64
    return ctypes.CFUNCTYPE(word, ctypes.c_void_p, word, word, word)(address_of(dtype, rising))


@cache
def address_of(dtype: DType, rising: bool = False) -> int:
    """Where that function is."""
    if dtype.is_float:
        kind, widen = (
            ("float", "fpext float %value to double") if dtype.bits == 32 else ("double", "fadd double %value, -0.0")
        )
        text = _FLOATS.format(type=kind, bytes=dtype.bytes, wide=f"%x = {widen}", word=f"i{dtype.bits}")
        return own_code("within", text).address("tc.within")
    sign, kind = "s" if dtype.is_signed else "u", f"i{dtype.bits}"
    widen = f"{sign.replace('u', 'z')}ext {kind} %{{}} to i64" if dtype.bits < 64 else "add i64 0, %{}"

    def widened(low: str, high: str) -> str:
        return "\n  ".join(f"%{name} = {widen.format(part)}" for name, part in (("smallest", low), ("largest", high)))

    wide, ends = widened("low.next", "high.next"), widened("first", "last")
    lowest, highest = dtype.limits
    text = _TEXT.format(type=kind, sign=sign, bytes=dtype.bytes, lowest=lowest, highest=highest, wide=wide, ends=ends)
    return own_code("within", text).address("tc.rising" if rising else "tc.within")
