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
"""Behind `PREFIX`, of a value and its factor: see `Across.sums`; `min` and `max` of a value and its shift: `Across.extremes`."""
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
            return self.sound(values[0], back) if len(values) == 1 else self.small(*values)
        if len(values) == 1:
            return self.prefix(op, values[0], back)
        return (self.extremes if op in ("min", "max") else self.sums)(op, values[0], values[1], back)

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
        new = arith.binary(self.b, op, self.moved(value, _filled(places)), value, reassociate=True)
        return self.chosen(places, new, value)

    def chosen(self, places: Sequence[int | None], new: Value, old: Value) -> Value:
        """The new value in lanes that have a place."""
        flags = ", ".join(f"i1 {str(place is not None).lower()}" for place in places)
        return arith.select(self.b, Value(f"<{flags}>", DType.BOOL, new.lanes), new, old)

    def sums(self, kind: str, value: Value, factor: Value, back: bool) -> Value:
        """`x` of each lane and the sum before it times its factor; with `ANEW` a factor of 0 leaves that sum out, NaN or not."""
        zero = constant(0, value.dtype, value.lanes)
        nothing = constant(-0.0, value.dtype, value.lanes) if value.dtype.is_float else zero
        for _, places in _steps(value.lanes, back):
            if kind == ANEW:
                moved = self.moved(value, places, nothing)
                taken = arith.select(self.b, arith.compare(self.b, "==", factor, zero), nothing, moved)
            else:
                taken = arith.binary(self.b, "*", factor, self.moved(value, places), reassociate=True)
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
        return self.all_of(*inside)

    def extremes(self, op: str, value: Value, shift: Value, back: bool) -> Value:
        """`x` of each lane, or the extreme before it plus its shift, whichever is the more extreme one."""
        for _, places in _steps(value.lanes, back):
            moved = self.moved(value, _filled(places))
            other = arith.binary(self.b, "+", moved, shift, reassociate=True)
            value = self.chosen(places, arith.binary(self.b, op, other, value), value)
            shift = self.later("+", shift, places)
        return value

    def small(self, shift: Value, value: Value, carry: Value) -> Value:
        """Whether sums of integers do not come around; of floats, whether shifts are finite and values no NaN."""
        if shift.dtype.is_float:
            size, infinite = arith.intrinsic(self.b, "fabs", shift), constant(float("inf"), shift.dtype, shift.lanes)
            return self.all_of(arith.compare(self.b, "<", size, infinite), arith.compare(self.b, "==", value, value))
        bits = shift.dtype.bits
        limits = ((shift, 1 << (bits - 8)), (value, 1 << (bits - 2)), (carry, 1 << (bits - 2)))
        least = -1 if shift.dtype.is_signed else 0
        return self.all_of(
            *(
                arith.compare(self.b, op, each, constant(by, each.dtype, each.lanes))
                for each, limit in limits
                for op, by in (("<=", limit), (">=", least * limit))
            )
        )

    def all_of(self, first: Value, *tests: Value) -> Value:
        """Whether all hold, in all lanes."""
        for test in tests:
            first = arith.logical(self.b, "and", first, test)
        found = self.b.call(f"llvm.vector.reduce.and.v{first.lanes}i1", (first,), Value("", DType.BOOL), "sound")
        assert isinstance(found, Value)
        return found

    def moved(self, value: Value, places: Sequence[int | None], nothing: Value | None = None) -> Value:
        """Lanes of other lanes; `None`: 0, or those of `nothing`."""
        lanes = value.lanes
        numbers = ", ".join(f"i32 {lanes if place is None else place}" for place in places)
        others = f"{value.type} zeroinitializer" if nothing is None else nothing.typed
        name = self.permutation(value, places)
        if not name:
            text = f"shufflevector {value.typed}, {others}, <{lanes} x i32> <{numbers}>"
            return self.b.op(text, value.dtype, lanes, "moved")
        known = self.once(f'call <8 x i32> asm "", "=x,0"(<8 x i32> <{numbers}>) nounwind memory(none)', "places")
        operands = (value, f"<8 x i32> {known}", *((others,) if None in places else ()))
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


def _filled(places: Sequence[int | None]) -> list[int | None]:
    """With any place where there is none."""
    some = next(place for place in places if place is not None)
    return [some if place is None else place for place in places]


def _steps(lanes: int, back: bool) -> Iterator[tuple[int, list[int | None]]]:
    """By how many lanes each step moves values, and from where each lane gets one."""
    shift = 1
    while shift < lanes:
        numbers = [lanes - 1 - k if back else k for k in range(lanes)]
        found = [k // shift * shift - 1 if k // shift % 2 else None for k in numbers]
        yield shift, [None if k is None else lanes - 1 - k if back else k for k in found]
        shift *= 2


__all__ = ["ANEW", "BACK", "LAST", "LINEAR", "PREFIX", "SMALLEST", "SOUND", "Across"]
