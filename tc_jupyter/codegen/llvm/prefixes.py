"""Running operations from lane to lane of a vector: a, a+b, a+b+c, ... in steps of 1, 2, 4, ... lanes.

In each step the later half of a group gets the last lane of the earlier half. So what never falls when it is taken one by one, as a
sum of numbers that are not negative, does not fall here either, however it is rounded.

Source: Sklansky, "Conditional-sum addition logic", 1960.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tc_jupyter.program import DType

from . import arith
from .builder import Builder, Value

PREFIX, LAST = "prefix ", "last"
"""Functions of a vector: a running operation from lane to lane, and the last lane."""


@dataclass(frozen=True, slots=True)
class Across:
    """Operations across the lanes of a vector.

    Attributes:
        once: prints an instruction where a task begins, and gives its result.
    """

    b: Builder
    features: frozenset[str]
    once: Callable[[str, str], str]

    def prefix(self, op: str, value: Value, lanes: int) -> Value:
        """The running operation from lane to lane."""
        value, shift = arith.broadcast(self.b, value, lanes), 1
        while shift < lanes:
            later = [bool(k // shift % 2) for k in range(lanes)]
            places = [k // shift * shift - 1 if there else None for k, there in enumerate(later)]
            if op == "+" and shift == 1 and value.dtype.bits == 32:  # a shift is one instruction
                pairs = f"<{lanes // 2} x i64>"
                bits = self.b.raw(f"bitcast {value.typed} to {pairs}", "bits")
                shifted = self.b.raw(f"shl {pairs} {bits}, splat (i64 32)", "before")
                before = self.b.op(f"bitcast {pairs} {shifted} to {value.type}", value.dtype, lanes, "before")
                value = arith.binary(self.b, op, before, value, reassociate=True)
            elif op == "+" and (2 * shift < lanes or "avx512vl" in self.features):  # so is a shuffle with zeros
                value = arith.binary(self.b, op, self.moved(value, places), value, reassociate=True)
            else:
                last = [places[-1] if place is None else place for place in places]
                added = arith.binary(self.b, op, self.moved(value, last), value, reassociate=True)
                flags = ", ".join(f"i1 {str(there).lower()}" for there in later)
                value = arith.select(self.b, Value(f"<{flags}>", DType.BOOL, lanes), added, value)
            shift *= 2
        return value

    def last(self, value: Value) -> Value:
        """The last lane, in all of them."""
        return value if value.lanes == 1 else self.moved(value, [value.lanes - 1] * value.lanes)

    def moved(self, value: Value, places: Sequence[int | None]) -> Value:
        """Lanes of other lanes; `None`: 0."""
        lanes = value.lanes
        numbers = ", ".join(f"i32 {lanes if place is None else place}" for place in places)
        zeros = f"{value.type} zeroinitializer"
        name = self.permutation(value, places)
        if not name:
            text = f"shufflevector {value.typed}, {zeros}, <{lanes} x i32> <{numbers}>"
            return self.b.op(text, value.dtype, lanes, "moved")
        known = self.once(f'call <8 x i32> asm "", "=x,0"(<8 x i32> <{numbers}>) nounwind memory(none)', "places")
        operands = (value, f"<8 x i32> {known}", *((zeros,) if None in places else ()))
        found = self.b.call(name, operands, Value("", value.dtype, lanes), "moved")
        assert isinstance(found, Value)
        return found

    def permutation(self, value: Value, places: Sequence[int | None]) -> str:
        """The instruction of x86 for lanes of the other half of a register: LLVM takes two if it knows the places."""
        crosses = any(place is not None and place // 4 != k // 4 for k, place in enumerate(places))
        if value.dtype.bits != 32 or value.lanes != 8 or not crosses:
            return ""
        if None in places:
            kind = "ps" if value.dtype.is_float else "d"
            return f"llvm.x86.avx512.vpermi2var.{kind}.256" if "avx512vl" in self.features else ""
        return f"llvm.x86.avx2.perm{'ps' if value.dtype.is_float else 'd'}" if "avx2" in self.features else ""


__all__ = ["LAST", "PREFIX", "Across"]
