"""Prints the prefetches that `prefetch.py` finds: panels and items that come next, and rows that are reduced.

Comes in: what is being read, and the loops around it. Goes out: requests for cache lines, which change no result.

Worked example: of a sum along a row of `X`, every vector asks for the lines that come `AHEAD_OF_ROW` bytes later.
"""

from __future__ import annotations

from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.target import LINE_BYTES

from .builder import index
from .memory import Memory
from .polynomial import Polynomial
from .prefetch import (
    FIRST,
    SECOND,
    next_item,
    next_panel,
)
from .storage import Storage


class Fetches(Memory):
    """Prints requests for what is read later."""

    def fetch_ahead(self, storage: Storage, pointer: str, lanes: int) -> None:
        """Fetch what a long computation reads soon, or a reduction over rows of an input, of all its rows, in the first loop that
        reads the input.
        """
        if storage.buffer.name not in self.inputs:
            return
        if self.takes_long:
            for line in range(0, lanes * storage.buffer.dtype.bytes, LINE_BYTES):
                self.fetch(pointer, tuning.AHEAD_OF_WORK + line)
        if not self.partial or self.target.reads_ahead:
            return
        loop = max(self.level_of, key=self.level_of.__getitem__, default="")
        if self.fetched.setdefault(storage.buffer.name, loop) != loop:
            return
        for line in range(0, lanes * storage.buffer.dtype.bytes, LINE_BYTES):
            self.fetch(pointer, tuning.AHEAD_OF_ROW + line)

    def fetch_panel(self, storage: Storage, offset: Polynomial) -> None:
        """Fetch a piece of the next panel of a temporary, once per iteration of the loop over the rows of this one."""
        assert self.vector is not None
        loops = sorted(self.level_of.keys() - {self.vector.var}, key=self.level_of.__getitem__)
        if storage.private or storage.buffer.scope != "global" or not loops:
            return
        memo, key = self.levels[self.level_of[loops[-1]]].memo, ("panel", storage.buffer.name)
        found = next_panel(offset, loops, self.extents)
        if found is None or key in memo:
            return
        piece, elements = found
        memo[key] = index(elements)
        pointer = self.address(storage, piece)
        for line in range(-(-elements * storage.buffer.dtype.bytes // LINE_BYTES)):
            self.fetch(pointer, line * LINE_BYTES, SECOND)

    def fetch_item(self, storage: Storage, offset: Polynomial) -> None:
        """Fetch a piece of the next item of a batch, once per iteration of the reduction of this one."""
        if storage.buffer.role != "input" or self.item not in self.level_of:
            return
        own, vector = self.level_of[self.item], None if self.vector is None else self.vector.var
        inside = (name for name, level in self.level_of.items() if level > own and name != vector)
        loops = sorted(inside, key=self.level_of.__getitem__)
        if not loops:
            return
        memo, key = self.levels[self.level_of[loops[-1]]].memo, ("item", storage.buffer.name)
        if key in memo:
            return
        memo[key] = index(1)
        first = offset if vector is None else self.first_lane(offset)
        place = next_item(
            first, self.item, loops, self.extents, self.target.l1_bytes // 2 // storage.buffer.dtype.bytes
        )
        if place is not None:
            self.fetch(self.address(storage, place), 0)

    def fetch(self, pointer: str, nbytes: int, cache: int = FIRST) -> None:
        """Ask for the cache line that many bytes after a pointer; no address is wrong."""
        at = self.b.raw(f"getelementptr i8, ptr {pointer}, i64 {nbytes}", "line") if nbytes else pointer
        self.b.call("llvm.prefetch.p0", (f"ptr {at}", "i32 0", f"i32 {cache}", "i32 1"), "void")
