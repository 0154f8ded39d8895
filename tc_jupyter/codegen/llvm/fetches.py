"""Prints the prefetches that `prefetch.py` finds: rows of later look-ups, panels, items and rows that come next.

Comes in: what is being read, and the loops around it. Goes out: requests for cache lines, which change no result.

Worked example: of `E[I[b, l], 0:64]` in a loop over `l`, the row of a later index is asked for, if `E` is larger than the nearer
caches.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.program import Binary, DType, Expr, Read, int64, rewrite
from tc_jupyter.program.integers import has_read, minimum, plus
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.target import LINE_BYTES

from .builder import index
from .memory import Memory
from .polynomial import Polynomial, as_expr, polynomial, step
from .prefetch import (
    FIRST,
    SECOND,
    distance,
    look_up,
    next_item,
    next_panel,
)
from .storage import Storage, element_count, row_major


class Fetches(Memory):
    """Prints requests for what is read later."""

    def prefetch(self, storage: Storage, offset: Polynomial, lanes: int) -> None:
        """Fetch the row of a later look-up, if the innermost loop looks rows up in a table larger than the nearer caches."""
        inner = [name for name, level in self.level_of.items() if level == len(self.levels) - 2]
        read = look_up(offset, inner[0]) if inner and self.mask is None else None
        if read is None or storage.private:
            return
        table = self.storages[read.tensor]
        where = self.offset(table, read.indices)
        if table.private or table.buffer.strided or step(where, inner[0]) != (1, True) or _reads(where):
            return
        size, count = storage.buffer.dtype.bytes, element_count(storage.buffer.shape)
        large = self.value(Binary(">", count, int64(self.target.l2_bytes // size), DType.BOOL))
        fetch, end = self.b.name("fetch"), self.b.name("fetched")
        self.b.branch_if(large, fetch, end)
        with self.beside(fetch):
            last = plus(element_count(table.buffer.shape), int64(-1))
            place = minimum(plus(as_expr(where), int64(distance(lanes * size))), last)
            ahead = self.later(table, place, read)
            moved = rewrite(as_expr(offset), lambda node: ahead if node == read else None)
            pointer = self.address(storage, polynomial(moved))
            for line in range(min(tuning.FETCHES, -(-lanes * size // LINE_BYTES))):
                self.fetch(pointer, line * LINE_BYTES)
        self.b.branch(end)
        self.b.label(end)

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
        self.fetch_later(pointer, lanes * storage.buffer.dtype.bytes)

    def fetch_later(self, pointer: str, nbytes: int) -> None:
        """Fetch what comes some lines behind elements that were read."""
        for line in range(0, nbytes, LINE_BYTES):
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

    def later(self, table: Storage, place: Expr, read: Read) -> Read:
        """The read of one element of a contiguous buffer by its position."""
        name = f"{read.tensor}.flat"
        count = element_count(table.buffer.shape)
        flat = replace(table.buffer, name=name, shape=(count,))
        self.storages[name] = Storage(flat, table.pointer, row_major([count]))
        return replace(read, tensor=name, indices=(place,))


def _reads(offset: Polynomial) -> bool:
    """Whether a position depends on data."""
    return any(has_read(factor) for product, _ in offset.terms for factor in product)
