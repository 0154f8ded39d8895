"""Loops with a counter: their blocks, and the pointers that move with the counter.

Comes in: the variable, the first and the last value of a loop. Goes out: the blocks around a body that the caller prints, and a
level, so that its code finds the variable. Pointers that an innermost loop moves by the same distance in every iteration
(`Addresses.gain`) are sums that the loop carries; those whose distances are equal, or small multiples of
the shortest, share one offset.

Worked example: `for k in 0:K` with `A + 12*k` and `B + 24*k` in bytes carries the offset `12*k`; the second pointer is `B` plus
twice of it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tc_jupyter.loops import Block, For
from tc_jupyter.program import DType, Expr, int64
from tc_jupyter.program.integers import has_read, plus
from tc_jupyter.schedule.target import SCALES

from . import arith
from .builder import Lines, Value, index
from .limits import largest
from .polynomial import constant_value
from .state import Counted, Level, Moved, State


class Counters(State):
    """Prints loops that count, and makes their variables known."""

    @contextmanager
    def counted(
        self,
        var: str,
        low: Value,
        end: Value,
        low_expr: Expr,
        extent: Expr,
        guard: bool,
        innermost: bool = False,
    ) -> Generator[None]:
        """The blocks of `for var in low : end`; the caller prints the body."""
        body, done = self.b.name(f"for.{var}"), self.b.name(f"end.{var}")
        loop = Counted(var) if innermost else None
        before: Lines = []
        self.b.lines.append(before)
        if guard:
            some = self.b.op(f"icmp slt i64 {low.text}, {end.text}", DType.BOOL, 1, "some")
            self.b.branch_if(some, body, done)
        else:
            self.b.branch(body)
        entered = self.b.block
        self.b.label(body)
        counter = Value("%" + self.b.name(var), DType.INT64)
        phis: Lines = []
        place: Lines = []
        self.b.lines += [phis, place]
        self.enter(var, counter, low_expr, extent, place)
        self.levels[-1].counted = loop
        with self.scope():
            yield
        self.leave(var)
        after = self.b.op(f"add nsw i64 {counter.text}, 1", DType.INT64, 1, f"{var}.next")
        values = [(counter.text, "i64", low.text, after.text)]
        for together in _alike(loop.moved if loop else []):
            values.append(self.sum_of(together, low, var, before))
        more = self.b.op(f"icmp slt i64 {after.text}, {end.text}", DType.BOOL, 1, "more")
        for now, kind, first, then in values:
            phis.append(f"  {now} = phi {kind} [ {first}, %{entered} ], [ {then}, %{self.b.block} ]")
        self.b.branch_if(more, body, done)
        self.b.label(done)

    def sum_of(self, moved: list[Moved], low: Value, var: str, before: Lines) -> tuple[str, str, str, str]:
        """Name, type, first and next value of what a loop adds up: a pointer, or an offset that several of them share.

        Args:
            low: the first value of the counter.
            before: the place before the loop.
        """
        first, *others = moved
        in_bytes = bool(others and first.bytes)
        gain = index(first.bytes) if in_bytes else first.gain
        with self.printing(before):
            start = arith.binary(self.b, "*", low, gain)
        if not others:
            step = f"getelementptr {first.element}, ptr"
            with self.printing(before):
                begin = first.start if start.integer == 0 else self.b.raw(f"{step} {first.start}, {start.typed}")
            return first.name, "ptr", begin, self.b.raw(f"{step} {first.name}, {gain.typed}", f"{first.name[1:]}.next")
        offset = Value("%" + self.b.name(f"{var}.offset"), DType.INT64)
        for each in moved:
            with self.printing(each.place):
                factor = each.bytes // first.bytes if in_bytes else 1
                by = offset if factor == 1 else arith.binary(self.b, "*", offset, index(factor))
                element = "i8" if in_bytes else each.element
                self.b.line(f"{each.name} = getelementptr {element}, ptr {each.start}, {by.typed}")
        return offset.text, "i64", start.text, arith.binary(self.b, "+", offset, gain).text

    def enter(self, var: str, counter: Value, low: Expr, extent: Expr, place: Lines) -> None:
        """Make a loop variable known."""
        self.level_of[var] = len(self.levels)
        self.levels.append(Level(place))
        self.values[var] = counter
        self.ranges[var] = self.bounds_of(low, extent)
        self.around[var] = For(var, low, extent, Block(()))
        if constant_value(low) == 0:
            self.extents[var] = extent

    def bounds_of(self, low: Expr, extent: Expr) -> tuple[Expr, Expr]:
        """First and last value of a loop variable over the sizes, for the bounds of temporary storage."""
        if has_read(low) or has_read(extent):
            return low, plus(low, extent)
        last = plus(plus(low, extent), int64(-1))
        return largest(low, self.ranges, upper=False), largest(last, self.ranges)

    def leave(self, var: str) -> None:
        """Forget a loop variable."""
        self.levels.pop()
        del self.level_of[var], self.values[var], self.ranges[var], self.around[var]
        self.extents.pop(var, None)


def _alike(moved: list[Moved]) -> list[list[Moved]]:
    """Pointers that one offset moves: by as many elements, or by a multiple of as many bytes that addresses can multiply with."""
    groups: list[list[Moved]] = []
    for each in sorted(moved, key=lambda each: each.bytes):
        for group in groups:
            first = group[0]
            if (each.bytes == first.bytes == 0 and each.gain == first.gain) or (
                first.bytes > 0 and each.bytes % first.bytes == 0 and each.bytes // first.bytes in SCALES
            ):
                group.append(each)
                break
        else:
            groups.append([each])
    return groups
