"""What memory accesses cost, counted and not timed: sectors of global memory, wavefronts of shared memory, bytes.

A request is one warp executing one access. Global memory moves sectors of 32 bytes: the ideal is the requested bytes over 32.
Shared memory has 32 banks of 4 bytes: 16-byte accesses are served in four quarter-warp phases, 8-byte ones in two, and a phase
takes one wavefront per distinct word in its busiest bank.

Example:
    >>> sectors(np.arange(32) * 4, np.arange(32), 4)
    4
    >>> wavefronts(np.arange(32) * 128, np.arange(32), 4)
    32

Source: CUDA C++ Programming Guide, "Global memory" and "Shared memory" of compute capability 5.x and newer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tc_jupyter.simulator.arithmetic import I64, Array

SECTOR = 32
BANKS = 32


@dataclass(slots=True)
class AccessSite:
    """One memory instruction.

    `line` is the user's (else `text_line` that of the CUDA text), `space` global, shared or local, `kind` load, store,
    atomic or copy. `requests` counts warps and `lanes` threads over the whole run; `sectors` and `wavefronts` were
    measured on `measured` requests only (all of the first executions, then a sample).
    """

    line: int | None
    opcode: str
    space: str
    kind: str
    width: int
    text_line: int | None = None
    requests: int = 0
    lanes: int = 0
    executions: int = 0
    measured: int = 0
    measured_lanes: int = 0
    sectors: int = 0
    wavefronts: int = 0

    @property
    def bytes(self) -> int:
        """Bytes that the threads asked for."""
        return self.lanes * self.width

    @property
    def sectors_per_request(self) -> float:
        """Measured mean of sectors for one warp."""
        return self.sectors / self.measured if self.measured else 0.0

    @property
    def ideal_sectors_per_request(self) -> float:
        """Requested bytes over 32, for one warp; loads of one address by all threads can be below it."""
        return self.measured_lanes * self.width / SECTOR / self.measured if self.measured else 0.0

    @property
    def wavefronts_per_request(self) -> float:
        """Measured mean of shared-memory wavefronts for one warp."""
        return self.wavefronts / self.measured if self.measured else 0.0

    @property
    def ideal_wavefronts_per_request(self) -> float:
        """Phases of one full warp: 1 up to 4 bytes per thread, 2 for 8, 4 for 16."""
        return max(1.0, self.measured_lanes * self.width / (4 * BANKS) / self.measured) if self.measured else 0.0


def _distinct(key: Array) -> Array:
    """Return the distinct values of a key that is often sorted already."""
    change = key[1:] != key[:-1]
    if not (key[1:] >= key[:-1]).all():
        key = np.sort(key)
        change = key[1:] != key[:-1]
    return key[np.concatenate((np.ones(1, np.bool_), change))]


def sectors(address: Array, lanes: Array, width: int) -> int:
    """Count the sectors that the warps of `lanes` touch; an access of at most 32 aligned bytes lies in one sector."""
    if address.size == 0:
        return 0
    key = ((lanes >> 5) << 44) + ((address >> 5) & ((1 << 44) - 1))
    return int(_distinct(key).size)


def wavefronts(address: Array, lanes: Array, width: int) -> int:
    """Count the wavefronts of a shared-memory access."""
    if address.size == 0:
        return 0
    unit = max(4, min(width, 16))
    per_phase = 4 * BANKS // unit
    phase, word = lanes // per_phase, address // unit
    key = _distinct((phase << 32) + word)
    bank = (key >> 32) * per_phase + key % (1 << 32) % per_phase
    counts = np.bincount(bank - int(phase.min()) * per_phase)
    padded = np.zeros(-(-counts.size // per_phase) * per_phase, I64)
    padded[: counts.size] = counts
    return int(padded.reshape(-1, per_phase).max(axis=1).sum())


def count(site: AccessSite, address: Array, lanes: Array) -> None:
    """Add one execution by `lanes` to a site."""
    site.executions += 1
    site.lanes += lanes.size
    warps = lanes >> 5
    requests = 1 + int(np.count_nonzero(warps[1:] != warps[:-1])) if lanes.size else 0
    site.requests += requests
    if site.executions > 16 and site.executions % 32:
        return
    site.measured += requests
    site.measured_lanes += lanes.size
    if site.space == "shared":
        site.wavefronts += wavefronts(address, lanes, site.width)
    else:
        site.sectors += sectors(address, lanes, site.width)
