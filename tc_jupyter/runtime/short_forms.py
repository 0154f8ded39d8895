"""Short forms of LLVM IR that is written by hand: one line for what takes two.

    %x = byte i64 %s, 16                   %x = the `i64` that stands 16 bytes behind `%s`
    %x = word ptr %rows, %k                %x = word `%k`, of 8 bytes, of what begins at `%rows`
    %x = byte atomic i64 %s, 16 acquire    likewise, as other threads see it
    put i64 %x to %s, 16                   the other way round; also `atomic`
    if ult i64 %a, %b ? more : done        a comparison, and which block follows

Comes in: a text with such lines among others. Goes out: LLVM IR.
"""

from __future__ import annotations

import re
from itertools import count

_LOAD = re.compile(r"(%\S+) = (byte|word) (atomic )?(\w+) (\S+), (\S+)( \w+)?$", re.MULTILINE)
_PUT = re.compile(r"put (atomic )?(\S+ \S+) to (\S+), (\S+)( \w+)?$", re.MULTILINE)
_IF = re.compile(r"^  if (.*) \? (\S+) : (\S+)$", re.MULTILINE)
_UNITS = {"byte": "i8", "word": "i64"}


def in_full(text: str) -> str:
    """LLVM IR without short forms."""
    number = count()

    def load(form: re.Match[str]) -> str:
        name, unit, atomic, kind, base, offset, order = form.groups("")
        place = f"{name}.of = getelementptr {_UNITS[unit]}, ptr {base}, i64 {offset}"
        return f"{place}\n  {name} = load {atomic}{kind}, ptr {name}.of{order}{', align 8' if atomic else ''}"

    def put(form: re.Match[str]) -> str:
        atomic, value, base, offset, order = form.groups("")
        place = f"%put.{next(number)}"
        stored = f"store {atomic}{value}, ptr {place}{order}, align 8"
        return f"{place} = getelementptr i8, ptr {base}, i64 {offset}\n  {stored}"

    def branch(form: re.Match[str]) -> str:
        test = f"%if.{next(number)}"
        return f"  {test} = icmp {form[1]}\n  br i1 {test}, label %{form[2]}, label %{form[3]}"

    return _IF.sub(branch, _PUT.sub(put, _LOAD.sub(load, text)))
