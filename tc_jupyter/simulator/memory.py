"""Device memory in NumPy with a shadow: bounds, alignment, initialisation, races, copies in flight.

Addresses are numbers with one slot per array and wide gaps between the slots, so an address beyond an array still tells which
array was meant. Every array is a `Region`; its `RaceShadow` keeps for each granule (the width of the narrowest access of the
kernel) who wrote it last and who has read it, each with a time. Two accesses of different threads, one of them a write and not
both atomic, are a race unless a barrier lies between them: a later block barrier for threads of one block, a later
`__syncwarp` for threads of one warp, a fence followed by an atomic for threads of different blocks.

Time is one integer per lane, `((barriers << 24) + warp_syncs) << 1`; bit 62 marks a granule that an asynchronous copy will write.

Example:
    >>> memory = DeviceMemory()
    >>> memory.bind(GlobalArray("y", np.zeros(4, np.float32), writable=True, initialised=False)).nbytes
    16
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tc_jupyter.simulator.arithmetic import I32, I64, U8, U64, Array
from tc_jupyter.simulator.registers import Lanes

GLOBAL_SHIFT = 36
"""Slots of global arrays are 2**36 bytes apart, each array in the middle: offsets of +-2**31 elements still name it."""
LOCAL_SHIFT = 20
"""Slots of shared and local arrays are 1 MiB apart."""

EPOCH_SHIFT = 25
IN_FLIGHT = np.int64(1 << 62)
_TIME_MASK = np.int64((1 << 62) - 1)
_NEVER_MIN = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class GlobalArray:
    """A pointer argument.

    Args:
        name: how messages call it.
        array: C-contiguous; modified in place when the kernel writes.
        writable: False for an input; a write to it is a finding.
        initialised: False for an output whose old contents mean nothing; reading an element before writing it is a finding.
    """

    name: str
    array: npt.NDArray[Any]
    writable: bool = True
    initialised: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `line` is the user's line, `thread` and `block` the first that did it.

    `kind` is one of: out-of-bounds, misaligned, uninitialised, read-only, race, race-between-blocks, missing-wait,
    divergent-barrier, divergent-collective, unwritten-output, index-overflow, trap.
    """

    kind: str
    message: str
    line: int | None
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    array: str | None


def view_rows(data: Array, element: int, count: int) -> Array:
    """View bytes as unsigned elements, with one row per vector when `count` is above 1; the tail that fills no row is cut."""
    width = element * count
    whole = data[: data.size // width * width]
    typed = whole.view(f"u{element}")
    return typed if count == 1 else typed.reshape(-1, count)


class Undefined:
    """Which bytes of an array hold a value that nobody computed: a store of a variable that was never given one.

    The compiler may leave lanes of a vector store undefined and store them again afterwards, so that the store itself is no
    mistake: reading the bytes is one, and so is a result that ends with them.
    """

    def __init__(self) -> None:
        self.marks: Array | None = None
        self.stores: list[Finding] = []

    def mark(self, flat: Array, size: int, masks: Array, nbytes: int, finding: Finding) -> None:
        """Mark the elements (`size` bytes each) of stores at `flat` where `masks`, a row per store, is true."""
        if self.marks is None:
            self.marks = np.zeros(nbytes, I32)
        if finding not in self.stores:
            self.stores.append(finding)
        rows, columns = np.nonzero(masks)
        first = flat[rows] + columns * size
        self.marks[first[:, None] + np.arange(size)] = self.stores.index(finding) + 1

    def clear(self, flat: Array, total: int) -> None:
        """Forget what was in `total` bytes at each of `flat`: something else is stored there."""
        if self.marks is not None:
            self.marks[flat[:, None] + np.arange(total)] = 0

    def read(self, flat: Array, total: int) -> Array:
        """The accesses that read such a byte."""
        if self.marks is None:
            return _NOTHING
        return np.flatnonzero(self.marks[flat[:, None] + np.arange(total)].any(axis=1))

    def left(self, item: int) -> tuple[Finding, ...]:
        """What is wrong if the array is a result: the stores whose bytes are still there, with the number of elements."""
        if self.marks is None:
            return ()
        found: list[Finding] = []
        for number in np.unique(self.marks[self.marks > 0]):
            store = self.stores[number - 1]
            elements = np.unique(np.flatnonzero(self.marks == number) // item)
            more = f" ({elements.size} elements of `{store.array}`, the first is element {int(elements[0])})"
            found.append(replace(store, message=store.message + more))
        return tuple(found)


class Allocation:
    """Bytes that live longer than a launch: data, and which bytes were ever written (None: all)."""

    def __init__(self, name: str, base: int, data: Array, init: Array | None, item: int) -> None:
        self.name, self.base, self.data, self.init, self.item = name, base, data, init, item
        self.undefined = Undefined()
        self.nbytes = int(data.size)

    def settle(self) -> None:
        """Forget the shadow when everything is initialised."""
        if self.init is not None and self.init.all():
            self.init = None


class DeviceMemory:
    """Global memory shared by several launches: addresses and initialised bytes stay from one to the next.

    An array is recognised by its memory. Pass it to every launch with the same `initialised`: what a launch wrote stays
    known, and `initialised=True` later on declares all of it written. Views that overlap without being equal are kept apart:
    their data is shared, their shadows are not.
    """

    def __init__(self) -> None:
        self.allocations: dict[tuple[int, int], Allocation] = {}
        self.modules: dict[tuple[str, str], Allocation] = {}
        self.keep: list[Array] = []
        self.outputs: list[Allocation] = []
        self.sampled = False

    def _base(self) -> int:
        slot = len(self.allocations) + len(self.modules) + 1
        return (slot << GLOBAL_SHIFT) + (1 << (GLOBAL_SHIFT - 1))

    def bind(self, argument: GlobalArray) -> Allocation:
        """Return the allocation of an array, a new one when its memory is new.

        Raises:
            ValueError: the array is not C-contiguous, or read-only in NumPy although `writable`.
        """
        array = argument.array
        if not array.flags.c_contiguous:
            raise ValueError(f"the array `{argument.name}` is not C-contiguous")
        if argument.writable and not array.flags.writeable:
            raise ValueError(f"the array `{argument.name}` is read-only, but the kernel may write to it")
        key = (array.__array_interface__["data"][0], array.nbytes)
        known = self.allocations.get(key) if array.nbytes else None
        if known is not None:
            if argument.initialised:
                known.init = None
            return known
        data = array.reshape(-1).view(U8) if array.nbytes else np.zeros(0, U8)
        init = None if argument.initialised else np.zeros(array.nbytes, U8)
        made = Allocation(argument.name, self._base(), data, init, array.dtype.itemsize)
        if array.nbytes == 0:
            key = (-len(self.allocations) - 1, 0)
        self.allocations[key] = made
        self.keep.append(array)
        if init is not None and argument.writable:
            self.outputs.append(made)
        return made

    def left_out(self, arguments: Iterable[object]) -> None:
        """Blocks of a launch with these arguments did not run: whatever it may write to counts as written from now on."""
        self.sampled = True
        for argument in arguments:
            if isinstance(argument, GlobalArray) and argument.writable:
                self.bind(argument).init = None

    def module_variable(self, module: str, name: str, data: bytes) -> Allocation:
        """Return the allocation of a `__device__` or `__constant__` variable."""
        key = (module, name)
        if key not in self.modules:
            self.modules[key] = Allocation(name, self._base(), np.frombuffer(bytearray(data), U8), None, 1)
        return self.modules[key]

    def unwritten(self) -> tuple[Finding, ...]:
        """Return a finding for each output of which some element was never written by any launch (none after sampling), and for
        each store that left an undefined value in an array.
        """
        findings = [left for each in self.allocations.values() for left in each.undefined.left(each.item)]
        for allocation in self.outputs:
            if allocation.init is None or self.sampled:
                continue
            missing = np.flatnonzero(allocation.init == 0)
            if missing.size:
                elements = np.unique(missing // allocation.item)
                findings.append(
                    Finding(
                        "unwritten-output",
                        f"{elements.size} of {allocation.nbytes // allocation.item} elements of `{allocation.name}` were "
                        f"never written, the first is element {int(elements[0])}",
                        None,
                        (0, 0, 0),
                        (0, 0, 0),
                        allocation.name,
                    )
                )
        return tuple(findings)


@dataclass(slots=True)
class Findings:
    """Collects findings: one per kind, source line and array, with the number of accesses."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    first_block: int = 0
    blocks: Array = field(default_factory=lambda: np.zeros(0, I64))
    padded: int = 32
    text_lines: dict[int, int] = field(default_factory=dict[int, int])
    found: dict[tuple[str, int, str | None], list[Any]] = field(
        default_factory=dict[tuple[str, int, str | None], list[Any]]
    )

    def place(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return thread and block of a lane."""
        thread, block = lane % self.padded, int(self.blocks[lane // self.padded])
        bx, by, _ = self.block
        gx, gy, _ = self.grid
        return (
            (thread % bx, thread // bx % by, thread // (bx * by)),
            (block % gx, block // gx % gy, block // (gx * gy)),
        )

    def add(
        self, kind: str, message: str, site: int, line: int | None, lane: int, array: str | None, count: int = 1
    ) -> None:
        """Record `count` accesses; only the first of its kind at this line keeps its message.

        Unrolled copies of one access are one finding; without a line the instruction's number `site` stands for it.
        """
        text_line = self.text_lines.get(site) if line is None else None
        key = (kind, (-site - 1 if text_line is None else -(1 << 32) - text_line) if line is None else line, array)
        if key in self.found:
            self.found[key][1] += count
            return
        self.found[key] = [self.finding(kind, message, site, line, lane, array), count]

    def finding(self, kind: str, message: str, site: int, line: int | None, lane: int, array: str | None) -> Finding:
        """One finding of a lane; without a line of the user, the line of the CUDA text is in the message."""
        thread, block = self.place(lane)
        text_line = self.text_lines.get(site) if line is None else None
        if text_line is not None:
            message = f"{message}, at line {text_line} of the CUDA text"
        return Finding(kind, message, line, thread, block, array)

    def result(self) -> tuple[Finding, ...]:
        """Return the findings in the order in which they were found."""
        results: list[Finding] = []
        for finding, count in self.found.values():
            more = f" ({count} accesses)" if count > 1 else ""
            results.append(
                Finding(
                    finding.kind, finding.message + more, finding.line, finding.thread, finding.block, finding.array
                )
            )
        return tuple(results)


@dataclass(slots=True)
class Clock:
    """Who the lanes are and what time it is for each of them."""

    uid: Array
    time: Array
    floor: Array
    padded: int
    acquired: Array | None = None

    def barrier(self, lanes: Lanes) -> None:
        """Advance the block epoch."""
        self.time[lanes] = ((self.time[lanes] >> EPOCH_SHIFT) + 1) << EPOCH_SHIFT
        self.floor[lanes] = self.time[lanes]

    def warp_sync(self, lanes: Lanes) -> None:
        """Advance the warp epoch."""
        self.time[lanes] += 2


class RaceShadow:
    """Last writer and readers of each granule of one region."""

    def __init__(self, granules: int, clock: Clock, across_blocks: bool) -> None:
        self.clock = clock
        self.across = across_blocks
        self.write_time = np.zeros(granules, I64)
        self.write_uid = np.zeros(granules, I64)
        self.read_time: Array | None = None
        self.read_low: Array = np.zeros(0, I64)
        self.read_high: Array = np.zeros(0, I64)
        self.log: list[tuple[Array, Lanes, int]] = []
        self.logged = 0

    def ordered(self, time_before: Array, uid_before: Array, lanes: Lanes) -> Array:
        """Tell for each access whether an earlier one at `time_before` by `uid_before` is known to come before it."""
        clock = self.clock
        time, uid = clock.time[lanes], clock.uid[lanes]
        before = time_before & _TIME_MASK
        same_block = uid_before // clock.padded == uid // clock.padded
        by_barrier = (before >> EPOCH_SHIFT) < (time >> EPOCH_SHIFT)
        same_warp = uid_before >> 5 == uid >> 5
        by_warp = same_warp & (before >> 1 < time >> 1)
        result = (uid_before == uid) | (same_block & (by_barrier | by_warp))
        if clock.acquired is not None and self.across:
            result |= clock.acquired[uid // clock.padded, uid_before // clock.padded]
        return result

    def read(self, granules: Array, lanes: Lanes, width: int, atomic: bool) -> tuple[Array, Array, Array]:
        """Record reads; return which granules are in flight, which race with an earlier write, which nobody has written."""
        written = self.write_time[granules]
        never = _NOTHING if self.across else np.flatnonzero(written == 0)
        if not atomic:
            # Atomic reads race only with plain writes; those are found when the read comes second.
            self.log.append((granules, lanes, width))
            self.logged += granules.size
        if self.logged > 1 << 22:
            self.flush()
        owners = lanes if width == 1 else np.repeat(lanes, width)
        hot = written != 0 if self.across else written >= self.clock.floor[owners]
        if not hot.any():
            return _NOTHING, _NOTHING, never
        return *self._against_write(granules, owners, written, hot, atomic), never

    def _against_write(
        self, granules: Array, owners: Lanes, written: Array, hot: Array, atomic: bool
    ) -> tuple[Array, Array]:
        places = np.flatnonzero(hot)
        before, lanes = written[places], owners[places]
        uid_before = self.write_uid[granules[places]]
        if self.across and not (before >= IN_FLIGHT).any() and (uid_before == self.clock.uid[lanes]).all():
            return _NOTHING, _NOTHING
        flying = before >= IN_FLIGHT
        conflict = ~self.ordered(before, uid_before, lanes) & ~flying
        if atomic:
            conflict &= (before & 1) == 0
        return places[flying], places[conflict]

    def write(self, granules: Array, lanes: Lanes, width: int, atomic: bool) -> tuple[Array, Array, Array]:
        """Check writes, do not record them yet; return masks: over in-flight data, against a write, against a read."""
        owners = lanes if width == 1 else np.repeat(lanes, width)
        written = self.write_time[granules]
        hot = written != 0 if self.across else written >= self.clock.floor[owners]
        flying, against_write = (
            self._against_write(granules, owners, written, hot, atomic) if hot.any() else (_NOTHING, _NOTHING)
        )
        if self.log:
            self.flush()
        if self.read_time is None:
            return flying, against_write, _NOTHING
        return flying, against_write, self._against_read(granules, owners)

    def _against_read(self, granules: Array, owners: Lanes) -> Array:
        assert self.read_time is not None
        clock = self.clock
        read = self.read_time[granules]
        hot = read != 0 if self.across else read >= clock.floor[owners]
        if not hot.any():
            return _NOTHING
        places = np.flatnonzero(hot)
        lanes, which = owners[places], granules[places]
        uid = clock.uid[lanes]
        low, high = self.read_low[which], self.read_high[which]
        mine = (low == uid) & (high == uid)
        if mine.all():
            return _NOTHING
        # The readers between low and high are ordered before the write when the two extremes are: same warp or same block.
        fine = self.ordered(read[places], low, lanes) & self.ordered(read[places], high, lanes)
        return places[~mine & ~fine]

    def record_write(self, granules: Array, lanes: Lanes, width: int, atomic: bool, flying: bool = False) -> None:
        """Remember who wrote."""
        owners = lanes if width == 1 else np.repeat(lanes, width)
        time = self.clock.time[owners]
        if atomic:
            time = time | 1
        if flying:
            time = time | IN_FLIGHT
        self.write_time[granules] = time
        self.write_uid[granules] = self.clock.uid[owners]

    def overwritten(self, granules: Array, lanes: Lanes, width: int) -> Array:
        """After `record_write`: the accesses whose granule another lane of the same instruction wrote as well."""
        owners = lanes if width == 1 else np.repeat(lanes, width)
        return np.flatnonzero(self.write_uid[granules] != self.clock.uid[owners])

    def forget_reads(self) -> None:
        """All lanes passed a barrier: earlier reads of a region that only one block sees can no longer race."""
        self.log.clear()
        self.logged = 0

    def flush(self) -> None:
        """Enter the logged reads into the arrays of lowest and highest reader."""
        clock = self.clock
        if self.read_time is None:
            size = self.write_time.size
            self.read_time = np.zeros(size, I64)
            self.read_low = np.full(size, _NEVER_MIN, I64)
            self.read_high = np.full(size, -1, I64)
        granules = np.concatenate([entry[0] for entry in self.log])
        owners = np.concatenate([np.repeat(lanes, width) if width > 1 else lanes for _, lanes, width in self.log])
        self.log.clear()
        self.logged = 0
        time, uid = clock.time[owners], clock.uid[owners]
        old = self.read_time[granules]
        stale = old < clock.floor[owners]
        if self.across:
            # Readers of other blocks stay: no barrier orders them before a later write.
            padded = clock.padded
            low, high = self.read_low[granules], self.read_high[granules]
            stale &= (low // padded == uid // padded) & (high // padded == uid // padded)
        if stale.any():
            which = granules[stale]
            self.read_low[which] = _NEVER_MIN
            self.read_high[which] = -1
        np.maximum.at(self.read_time, granules, time)
        np.minimum.at(self.read_low, granules, uid)
        np.maximum.at(self.read_high, granules, uid)


_NOTHING = np.zeros(0, I64)


class Region:
    """One array as a launch sees it; shared and local arrays have one copy per block or lane, `stride` bytes apart."""

    def __init__(self, name: str, space: str, base: int, nbytes: int, data: Array, granule: int) -> None:
        self.name, self.space, self.base, self.nbytes, self.data = name, space, base, nbytes, data
        self.granule_shift = granule.bit_length() - 1
        self.stride = 0
        self.writable = True
        self.init: Array | None = None
        self.shadow: RaceShadow | None = None
        self.touched: Array | None = None
        self.undefined = Undefined()
        self.views: dict[tuple[int, int], Array] = {}
        self.init_views: dict[int, Array] = {}
        self.touched_views: dict[int, Array] = {}

    def rows(self, element: int, count: int) -> Array:
        """The data as elements, or as rows of `count` elements."""
        key = (element, count)
        if key not in self.views:
            self.views[key] = view_rows(self.data, element, count)
        return self.views[key]

    def granules(self, flat: Array, total: int) -> tuple[Array, int]:
        """Return granule numbers of accesses of `total` bytes and how many granules each has."""
        first = flat >> self.granule_shift
        width = max(1, total >> self.granule_shift)
        if width == 1:
            return first, 1
        return (first[:, None] + np.arange(width, dtype=np.int64)).reshape(-1), width

    def mark(self, shadow: Array, views: dict[int, Array], flat: Array, total: int) -> None:
        """Set the bytes of the accesses in a byte shadow (`init` or `touched`)."""
        if total not in views:
            views[total] = view_rows(shadow, min(total, 8), max(1, total // 8))
        element = min(total, 8)
        views[total][flat >> (total.bit_length() - 1)] = np.dtype(f"u{element}").type(
            _ONE_BYTES & ((1 << 8 * element) - 1)
        )

    def initialised(self, flat: Array, total: int) -> Array:
        """Return the accesses that read a byte nobody has written."""
        assert self.init is not None
        if total not in self.init_views:
            self.init_views[total] = view_rows(self.init, min(total, 8), max(1, total // 8))
        element = min(total, 8)
        expected = np.dtype(f"u{element}").type(_ONE_BYTES & ((1 << 8 * element) - 1))
        bad = self.init_views[total][flat >> (total.bit_length() - 1)] != expected
        return np.flatnonzero(bad.any(axis=1) if bad.ndim == 2 else bad)


_ONE_BYTES = 0x0101010101010101


class Copy:
    """One executed `cp.async`: it lands when its threads wait for their group, as late as is legal."""

    __slots__ = ("data", "flat", "groups", "lanes", "region", "unfinished")

    def __init__(
        self,
        region: Region,
        flat: Array,
        data: Array,
        lanes: Lanes,
        groups: Array,
        unfinished: Callable[[Region, Lanes], None],
    ) -> None:
        self.region, self.flat, self.data, self.lanes, self.groups = region, flat, data, lanes, groups
        self.unfinished = unfinished

    def land(self, which: Array | None, total: int) -> None:
        """Write the data of all (None) or some accesses."""
        region = self.region
        flat, data, lanes = (
            (self.flat, self.data, self.lanes)
            if which is None
            else (self.flat[which], self.data[which], self.lanes[which])
        )
        region.rows(4, total // 4)[flat >> (total.bit_length() - 1)] = data
        region.undefined.clear(flat, total)
        assert region.shadow is not None
        granules, width = region.granules(flat, total)
        region.shadow.record_write(granules, lanes, width, False)

    def keep(self, which: Array) -> None:
        """Forget the accesses that have landed."""
        self.flat, self.data, self.lanes, self.groups = (
            self.flat[which],
            self.data[which],
            self.lanes[which],
            self.groups[which],
        )


class Space:
    """The regions of one state space, found by address."""

    def __init__(self, name: str, shift: int) -> None:
        self.name, self.shift = name, shift
        self.regions: dict[int, Region] = {}

    def add(self, region: Region) -> None:
        """Enter a region under its slot."""
        self.regions[region.base >> self.shift] = region

    def find(self, address: int) -> Region | None:
        """Return the region that an address belongs to or is nearest to."""
        return self.regions.get(address >> self.shift)

    def pieces(self, address: Array, total: int) -> Iterator[tuple[Region | None, Array, Array, Array, Array]]:
        """Split accesses by region: region, positions, offsets, positions out of bounds, positions misaligned."""
        slots = address >> self.shift
        for slot in np.unique(slots):
            positions = np.flatnonzero(slots == slot)
            region = self.regions.get(int(slot))
            if region is None:
                yield None, _NOTHING, _NOTHING, positions, _NOTHING
                continue
            offsets = address[positions] - region.base
            outside = (offsets < 0) | (offsets > region.nbytes - total)
            odd = ~outside & ((offsets & (total - 1)) != 0)
            good = ~outside & ~odd
            yield region, positions[good], offsets[good], positions[outside], positions[odd]


def as_signed(address: Array) -> Array:
    """32- or 64-bit unsigned addresses -> int64."""
    return address.view(I64) if address.dtype == U64 else address.astype(I64)


__all__ = [
    "GLOBAL_SHIFT",
    "I32",
    "LOCAL_SHIFT",
    "Allocation",
    "Clock",
    "Copy",
    "DeviceMemory",
    "Finding",
    "Findings",
    "GlobalArray",
    "RaceShadow",
    "Region",
    "Space",
    "as_signed",
]
