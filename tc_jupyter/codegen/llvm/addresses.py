"""Positions of elements -> pointers.

Comes in: a storage and the subscripts of an element. Goes out: its position as a polynomial, or a pointer to it, of which every
part is added in the outermost loop that knows it. In an innermost loop that counts, a pointer is a sum that the loop carries,
unless addresses of the processor can multiply the counter.

Worked example: `A[i, k]` in `for i: for k` is `A + K*i`, a pointer of the outer loop, and `k` elements behind it.
"""

from __future__ import annotations

from tc_jupyter.program import Expr, Read
from tc_jupyter.schedule.target import SCALES

from . import arith
from .builder import Lines, Value, memory_type, vector_type
from .polynomial import Polynomial, Term, add, as_expr, coefficient, constant_value, multiply, polynomial, without
from .state import Moved
from .storage import Storage
from .values import Values


class Addresses(Values):
    """Prints pointers, and says which lanes may use them."""

    def offset(self, storage: Storage, indices: tuple[Expr, ...]) -> Polynomial:
        """The position of an element, in elements from element 0."""
        total = Polynomial(())
        for where, stride in zip(indices, storage.strides, strict=True):
            total = add(total, multiply(polynomial(where), stride))
        return total

    def pointer(self, read: Read) -> str:
        """The address of an element."""
        storage = self.storages[read.tensor]
        return self.address(storage, self.offset(storage, tuple(map(self.resolve, read.indices))))

    def address(self, storage: Storage, offset: Polynomial) -> str:
        """A pointer to an element; what outer loops know is added there.

        A partial sum may point outside of the buffer (`t[2 - j]` begins with `t - j`), so nothing here is `inbounds`.
        """
        element = vector_type(memory_type(storage.buffer.dtype), storage.lanes)
        by_level: dict[int, list[Term]] = {}
        here: list[Term] = []
        for product, value in offset.terms:
            if not product:
                continue
            needed = [self.needs(factor) for factor in product]
            if all(names is not None for names in needed):
                level = max(storage.level, *(self.depth(names) for names in needed if names is not None))
                by_level.setdefault(level, []).append((product, value))
            else:
                here.append((product, value))
        pointer = storage.pointer
        for level, terms in _rows_last(by_level):
            pointer = self.advance(storage, pointer, element, terms, level)
        if here:
            moved = self.value(as_expr(Polynomial(tuple(here))))
            pointer = self.b.raw(f"getelementptr {element}, ptr {pointer}, {moved.typed}", f"{storage.buffer.name}.at")
        if offset.constant:
            step, name = f"getelementptr {element}, ptr {pointer}, i64 {offset.constant}", f"{storage.buffer.name}.at"
            if pointer in self.slots:  # an accumulator: it is set, added to and copied out at this place
                return self.once(step, name)
            return self.b.raw(step, name)
        return pointer

    def advance(self, storage: Storage, pointer: str, element: str, terms: list[Term], level: int) -> str:
        """`pointer` plus terms that are known in a level."""
        pointers = self.levels[level].pointers
        key = (pointer, element, frozenset(terms))
        if key not in pointers:
            offset, name = Polynomial(tuple(terms)), f"{storage.buffer.name}.at"
            loop = self.levels[level].counted if storage.level < level else None
            gain = None if loop is None else self.gain(offset, loop.var, storage)
            if loop is not None and gain is not None:
                place: Lines = []
                size = storage.buffer.dtype.bytes * storage.lanes * (gain.integer or 0)
                moved = Moved("%" + self.b.name(name), pointer, gain, size, element, place)
                loop.moved.append(moved)
                self.levels[level].place.append(place)
                pointers[key] = moved.name
                return moved.name
            value = self.value(as_expr(offset))
            with self.at(level):
                pointers[key] = self.b.raw(f"getelementptr {element}, ptr {pointer}, {value.typed}", name)
        return pointers[key]

    def gain(self, offset: Polynomial, var: str, storage: Storage) -> Value | None:
        """By how much every iteration of an innermost loop moves a position, if a sum is better than a product.

        It is not where addresses of the processor can multiply the counter. LLVM's own search for such sums (loop strength
        reduction) took a quarter of its time and is off (`Module.header`).
        """
        found = coefficient(offset, var)
        if found is None or without(offset, var) != Polynomial(()):
            return None
        number = constant_value(as_expr(found))
        scaled = number is not None and number * storage.buffer.dtype.bytes * storage.lanes in SCALES
        return None if scaled else self.value(as_expr(found))

    def lane_pointers(self, storage: Storage, offset: Polynomial) -> str:
        """`<n x ptr> %p`, one address per lane."""
        assert self.vector is not None
        where = arith.broadcast(self.b, self.value(as_expr(offset)), self.vector.lanes)
        element = memory_type(storage.buffer.dtype)
        text = f"getelementptr {element}, ptr {storage.pointer}, {where.typed}"
        return f"<{self.vector.lanes} x ptr> " + self.b.raw(text, f"{storage.buffer.name}.at")

    def whole_vectors(self, storage: Storage, offset: Polynomial) -> bool:
        """Whether private storage has room for all lanes, so that lanes beyond the end of the loop may be touched."""
        if not storage.private or self.vector is None or not storage.buffer.shape:
            return False
        width = constant_value(self.resolve(storage.buffer.shape[-1]))
        lanes = self.vector.lanes
        return (
            width is not None and width % lanes == 0 and all(s % lanes == 0 for _, s in self.first_lane(offset).terms)
        )

    def active(self, storage: Storage, offset: Polynomial) -> Value | None:
        """The lanes that may touch memory."""
        if self.whole_vectors(storage, offset):
            return None
        if self.tail is None or self.mask is None:
            return self.mask or self.tail
        return arith.logical(self.b, "and", *arith.same_lanes(self.b, self.tail, self.mask))


def _rows_last(by_level: dict[int, list[Term]]) -> list[tuple[int, list[Term]]]:
    """The terms of an address by loop depth; what depends on sizes alone goes with the last but one of two loops or more.

    Written-out rows differ in that, so they share the pointers of the loops further out.

    Worked example: `X[n, x + 1, z]` is `X + C + B*C*n + C*x + z`, in this order by depth; it becomes `X + B*C*n + C*x + C + z`.
    """
    levels = sorted(by_level)
    if levels[:1] != [0] or len(levels) < 3:
        return [(level, by_level[level]) for level in levels]
    *outer, last = levels[1:]
    steps = [(level, by_level[level]) for level in outer]
    return [*steps, (outer[-1], by_level[0]), (last, by_level[last])]
