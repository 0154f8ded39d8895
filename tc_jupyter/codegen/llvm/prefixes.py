"""Running operations from lane to lane of a vector: a, a+b, a+b+c, ... in steps of 1, 2, 4, ... lanes.

In each step the later half of a group gets the last lane of the earlier half. So what never falls when it is taken one by one, as a
sum of numbers that are not negative, does not fall here either, however it is rounded.

Source: Sklansky, "Conditional-sum addition logic", 1960.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tc_jupyter.program import DType

from . import arith
from .builder import Builder, Value, constant

PREFIX, LAST, SOUND = "prefix ", "last ", "sound "
"""Functions of a vector: a running operation from lane to lane, the last lane, and whether its products keep their precision."""
LINEAR, ANEW = "linear ", "anew "
"""Behind `PREFIX`, of a value and its factor: see `Across.sums`."""
SMALLEST = {32: 2.0**-126, 64: 2.0**-1022}
"""The smallest number of floats with all digits, by their bits."""
BACK = "back "
"""Behind all of them: from the last lane to the first one."""


@dataclass(frozen=True, slots=True)
class Across:
    """Operations across the lanes of a vector.

    Attributes:
        once: prints an instruction where a task begins, and gives its result.
    """

    b: Builder
    features: frozenset[str]
    once: Callable[[str, str], str]

    def call(self, name: str, operands: Sequence[Value], lanes: int) -> Value:
        """One of the functions."""
        back = name.endswith(BACK)
        if name.startswith(LAST):
            value = operands[0]
            return value if value.lanes == 1 else self.moved(value, [0 if back else lanes - 1] * lanes)
        op = name.removeprefix(PREFIX).removesuffix(BACK)
        values = [arith.broadcast(self.b, value, lanes) for value in operands]
        if name.startswith(SOUND):
            return self.sound(values[0], back)
        return self.sums(op, values[0], values[1], back) if len(values) > 1 else self.prefix(op, values[0], back)

    def prefix(self, op: str, value: Value, back: bool) -> Value:
        """The running operation from lane to lane."""
        lanes = value.lanes
        for shift, places in _steps(lanes, back):
            if op == "+" and shift == 1 and value.dtype.bits == 32:  # a shift is one instruction
                pairs, name = f"<{lanes // 2} x i64>", "lshr" if back else "shl"
                bits = self.b.raw(f"bitcast {value.typed} to {pairs}", "bits")
                shifted = self.b.raw(f"{name} {pairs} {bits}, splat (i64 32)", "before")
                before = self.b.op(f"bitcast {pairs} {shifted} to {value.type}", value.dtype, lanes, "before")
                value = arith.binary(self.b, op, before, value, reassociate=True)
            elif op == "+" and (2 * shift < lanes or "avx512vl" in self.features):  # so is a shuffle with zeros
                value = arith.binary(self.b, op, self.moved(value, places), value, reassociate=True)
            else:
                value = self.later(op, value, places)
        return value

    def later(self, op: str, value: Value, places: Sequence[int | None]) -> Value:
        """A step of any operation: lanes without a place stay."""
        some = next(place for place in places if place is not None)
        moved = self.moved(value, [some if place is None else place for place in places])
        flags = ", ".join(f"i1 {str(place is not None).lower()}" for place in places)
        new = arith.binary(self.b, op, moved, value, reassociate=True)
        return arith.select(self.b, Value(f"<{flags}>", DType.BOOL, value.lanes), new, value)

    def sums(self, kind: str, value: Value, factor: Value, back: bool) -> Value:
        """`x` of each lane and the sum before it times its factor; with `ANEW` a factor of 0 leaves that sum out, NaN or not."""
        zero = constant(0, value.dtype, value.lanes)
        for _, places in _steps(value.lanes, back):
            moved = self.moved(value, places)
            if kind == ANEW:
                taken = arith.select(self.b, arith.compare(self.b, "==", factor, zero), zero, moved)
            else:
                taken = arith.binary(self.b, "*", factor, moved, reassociate=True)
            value = arith.binary(self.b, "+", taken, value, reassociate=True)
            factor = self.later("*", factor, places)
        return value

    def sound(self, factor: Value, back: bool) -> Value:
        """Whether no product of neighbours is infinite, or so small that digits are lost; 0 counts as such a one."""
        least = size = arith.intrinsic(self.b, "fabs", factor)
        for _, places in _steps(factor.lanes, back):
            factor = self.later("*", factor, places)
            size = arith.intrinsic(self.b, "fabs", factor)
            least = arith.select(self.b, arith.compare(self.b, "<", size, least), size, least)
        limits = (SMALLEST[factor.dtype.bits], float("inf"))
        small, large = (constant(limit, factor.dtype, factor.lanes) for limit in limits)
        inside = (arith.compare(self.b, ">=", least, small), arith.compare(self.b, "<", size, large))
        both = arith.logical(self.b, "and", *inside)
        found = self.b.call(f"llvm.vector.reduce.and.v{both.lanes}i1", (both,), Value("", DType.BOOL), "sound")
        assert isinstance(found, Value)
        return found

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


def _steps(lanes: int, back: bool) -> Iterator[tuple[int, list[int | None]]]:
    """By how many lanes each step moves values, and from where each lane gets one."""
    shift = 1
    while shift < lanes:
        numbers = [lanes - 1 - k if back else k for k in range(lanes)]
        found = [k // shift * shift - 1 if k // shift % 2 else None for k in numbers]
        yield shift, [None if k is None else lanes - 1 - k if back else k for k in found]
        shift *= 2


__all__ = ["ANEW", "BACK", "LAST", "LINEAR", "PREFIX", "SMALLEST", "SOUND", "Across"]
