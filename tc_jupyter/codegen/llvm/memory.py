"""Elements that lie side by side in memory, as vectors, and elements from anywhere.

Comes in: a pointer, or one per lane, and the lanes that may touch memory. Goes out: a `Value` in the type that is computed in, or
the stored form of one. A masked read touches no memory of an inactive lane.

Worked example: `X[2*j]` with 8 lanes is two vectors of 8 neighbours, which begin with the elements 0 and 7, and one shuffle.
"""

from __future__ import annotations

from tc_jupyter.program import DType, Read, int64, walk
from tc_jupyter.program.integers import plus

from . import arith
from .addresses import Addresses
from .builder import Builder, Value, constant, mangle, memory_type, numbers, vector_type
from .polynomial import Polynomial, add, mentions, polynomial
from .storage import Storage, element_count


class Memory(Addresses):
    """Prints reads of neighbours, and changes between stored and computed types."""

    def plain_load(self, storage: Storage, pointer: str, lanes: int) -> Value:
        """Neighbouring elements without a mask."""
        dtype = storage.buffer.dtype
        kind = vector_type(memory_type(dtype), lanes)
        stored = self.b.raw(f"load {kind}, ptr {pointer}, align {dtype.bytes}", f"{storage.buffer.name}.v")
        return self.from_memory(stored, dtype, lanes)

    def masked_load(self, kind: str, where: str, storage: Storage, mask: Value | None) -> Value:
        """`load` of neighbours or `gather`; inactive lanes are 0."""
        dtype = storage.buffer.dtype
        if self.vector is not None:
            mask = arith.broadcast(self.b, mask or constant(True, DType.BOOL), self.vector.lanes)
        assert mask is not None
        lanes = mask.lanes
        vector = vector_type(memory_type(dtype), lanes)
        function = f"llvm.masked.{kind}.{mangle(vector)}.{mangle(where.rsplit(' ', 1)[0])}"
        operands = (where, f"i32 {dtype.bytes}", mask, f"{vector} zeroinitializer")
        stored = self.b.call(function, operands, vector, f"{storage.buffer.name}.v")
        assert isinstance(stored, str)
        if self.mask is not None and dtype in (DType.FLOAT32, DType.FLOAT64):  # Note [Masked loads stay masked]
            fenced = self.b.call(f"llvm.arithmetic.fence.{mangle(vector)}", (f"{vector} {stored}",), vector, "fenced")
            assert isinstance(fenced, str)
            stored = fenced
        return self.from_memory(stored, dtype, lanes)

    def reversed_load(self, storage: Storage, pointer: str, mask: Value | None) -> Value:
        """Neighbouring elements, last one first."""
        if mask is not None:
            stored = self.masked_load("load", f"ptr {pointer}", storage, self.reverse(mask))
        else:
            assert self.vector is not None
            stored = self.plain_load(storage, pointer, self.vector.lanes)
        return self.reverse(stored)

    def reverse(self, value: Value) -> Value:
        """Lanes in the opposite order."""
        picks = numbers(reversed(range(value.lanes)))
        text = f"shufflevector {value.typed}, {value.type} poison, <{value.lanes} x i32> {picks}"
        return self.b.op(text, value.dtype, value.lanes, "reversed")

    def strided_load(self, storage: Storage, start: Polynomial, apart: int, mask: Value | None) -> Value:
        """Every second element, or third, or fourth, from overlapping vectors, the last of which ends with the last one needed.

        Measured with AVX-512 (Zen 5), one thread, every third of 1000 x 1000 elements: 99 us one by one, and 56.
        """
        assert self.vector is not None
        gain = self.vector.lanes - 1
        starts = (add(start, Polynomial((((), by),) if by else ())) for by in range(0, apart * gain, gain))
        vectors = [self.neighbours(storage, at, mask, k * gain, apart) for k, at in enumerate(starts)]
        places = ((apart * lane, min(apart * lane // gain, apart - 1)) for lane in range(gain + 1))
        return arith.picked(self.b, vectors, [(k, number - k * gain) for number, k in places], "apart")

    def neighbours(self, storage: Storage, start: Polynomial, mask: Value | None, first: int, apart: int) -> Value:
        """As many neighbours as there are lanes; the first one is element `first`, and lane `k` needs element `apart * k`."""
        assert self.vector is not None
        lanes, pointer = self.vector.lanes, self.address(storage, start)
        if mask is None:
            return self.plain_load(storage, pointer, lanes)
        if mask is self.tail and self.tail_count is not None:
            # what lies between two needed elements may be read too: comparing numbers is shorter than moving bits of masks
            beyond = lane_multiple(self.b, self.tail_count, apart)
            last = arith.binary(self.b, "-", beyond, constant(apart - 1, DType.INT32))
            return self.masked_load("load", f"ptr {pointer}", storage, below(self.b, last, first, lanes))
        mask = arith.broadcast(self.b, mask, lanes)
        picks = ", ".join(f"i32 {e // apart if e % apart == 0 else lanes}" for e in range(first, first + lanes))
        text = f"shufflevector {mask.typed}, {mask.type} zeroinitializer, <{lanes} x i32> <{picks}>"
        return self.masked_load("load", f"ptr {pointer}", storage, self.b.op(text, DType.BOOL, lanes, "needed"))

    def multiplied(self) -> frozenset[str]:
        """The inputs of which the present statement adds one vector, with other factors, to several accumulators."""
        stmt = self.adds_up
        if stmt is None:
            return frozenset()
        rows = {name for name in self.constants if any(mentions(where, name) for where in stmt.indices)}
        reads = [node for node in walk(stmt.value) if isinstance(node, Read) and node.tensor in self.inputs]
        return frozenset(read.tensor for read in reads if any(not mentions(read, row) for row in rows))

    def load_inside(self, storage: Storage, pointer: str, lanes: int, mask: Value) -> Value:
        """Neighbours of which the last ones are not needed: without a mask where they lie in the array.

        The first one is needed, so it is an element of the array. In a loop that adds products up, a mask takes the place of one
        of them. Measured with AVX-512, one thread, 500 products of 26 x 72 x 26: 650 and 580 us.
        """
        size, name = element_count(storage.buffer.shape), storage.buffer.name
        lasts, key = self.levels[0].pointers, ("last", name, lanes)
        if key not in lasts:
            with self.at(0):
                lasts[key] = self.address(storage, polynomial(plus(size, int64(-lanes))))
        within = self.b.op(f"icmp ule ptr {pointer}, {lasts[key]}", DType.BOOL, 1, "within")
        whole, ends, end = (self.b.name(f"{name}.{hint}") for hint in ("whole", "ends", "read"))
        self.b.branch_if(within, whole, ends)
        self.b.label(whole)
        first, first_block = self.plain_load(storage, pointer, lanes), self.b.block
        self.b.branch(end)
        self.b.label(ends)
        second, second_block = self.masked_load("load", f"ptr {pointer}", storage, mask), self.b.block
        self.b.branch(end)
        self.b.label(end)
        return self.b.phi(first, first_block, second, second_block, f"{name}.v")

    def from_memory(self, stored: str, dtype: DType, lanes: int) -> Value:
        """What stored bits mean."""
        if dtype is DType.BOOL:
            return self.b.op(
                f"icmp ne {vector_type('i8', lanes)} {stored}, {constant(0, DType.INT8, lanes).text}",
                dtype,
                lanes,
                "bool",
            )
        if dtype is DType.FLOAT16:
            return arith.half_from_memory(self.b, stored, lanes, self.f16c)
        if dtype is DType.BFLOAT16:
            return arith.bfloat16_from_bits(self.b, stored, lanes)
        return Value(stored, dtype, lanes)

    def to_memory(self, value: Value, dtype: DType) -> str:
        """The stored form of a value, with its type."""
        lanes = value.lanes
        kind = vector_type(memory_type(dtype), lanes)
        if dtype is DType.BOOL:
            return f"{kind} " + self.b.raw(f"zext {value.typed} to {kind}", "byte")
        if dtype in (DType.FLOAT16, DType.BFLOAT16):
            single = Value(value.text, DType.FLOAT32, lanes)
            if dtype is DType.FLOAT16:
                return f"{kind} " + arith.half_to_memory(self.b, single, self.f16c)
            return f"{kind} " + (value.stored or arith.bfloat16_bits(self.b, single))
        return f"{kind} {value.text}"


def lane_multiple(b: Builder, count: Value, factor: int) -> Value:
    """A multiple of a number of lanes, as a narrow number."""
    return arith.binary(b, "*", arith.cast(b, count, DType.INT32, False), constant(factor, DType.INT32))


def below(b: Builder, end: Value, first: int, lanes: int) -> Value:
    """Which of `lanes` neighbours from number `first` on are before number `end`."""
    places = numbers(range(first, first + lanes))
    return b.op(f"icmp sgt {arith.broadcast(b, end, lanes).typed}, {places}", DType.BOOL, lanes, "needed")


# Note [Masked loads stay masked]
#
# LLVM 22 makes `select(mask, fma(masked load, k, old), old)` one instruction that reads memory under the mask. Where it needs `k`
# again it takes that apart, with a load that has no mask: it read before the first element of an array. A fence, which is no
# instruction, keeps the load apart.
