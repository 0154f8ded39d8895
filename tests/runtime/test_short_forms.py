"""Each short form is two lines of LLVM IR; all else stays."""

from __future__ import annotations

from tc_jupyter.runtime.short_forms import in_full

TEXT = """more:
  %a = byte i64 %s, SHARE
  %b = word ptr %rows, %k
  %c = byte atomic i64 %s, 8 acquire
  put i64 %a to %s, 16
  put atomic i64 0 to %s, 24 release
  if ult i64 %a, %b ? more : done
done:
  ret i64 %c
"""
FULL = """more:
  %a.of = getelementptr i8, ptr %s, i64 SHARE
  %a = load i64, ptr %a.of
  %b.of = getelementptr i64, ptr %rows, i64 %k
  %b = load ptr, ptr %b.of
  %c.of = getelementptr i8, ptr %s, i64 8
  %c = load atomic i64, ptr %c.of acquire, align 8
  %put.0 = getelementptr i8, ptr %s, i64 16
  store i64 %a, ptr %put.0, align 8
  %put.1 = getelementptr i8, ptr %s, i64 24
  store atomic i64 0, ptr %put.1 release, align 8
  %if.2 = icmp ult i64 %a, %b
  br i1 %if.2, label %more, label %done
done:
  ret i64 %c
"""


def test_every_form_in_full():
    assert in_full(TEXT) == FULL
