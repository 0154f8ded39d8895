"""What the instructions of a launch act on: registers, memories, clocks and findings of a group of blocks.

The builders of instructions know this class only; `machine.py` fills it and decides who runs.
"""

from __future__ import annotations

import numpy as np

from tc_jupyter.simulator.arithmetic import BOOL, I64, Array
from tc_jupyter.simulator.memory import (
    EPOCH_SHIFT,
    GLOBAL_SHIFT,
    LOCAL_SHIFT,
    Clock,
    Copy,
    Findings,
    Region,
    Space,
)
from tc_jupyter.simulator.program import Program
from tc_jupyter.simulator.ptx import SimulationError, Symbol
from tc_jupyter.simulator.registers import Lanes, RegisterFile
from tc_jupyter.simulator.traffic import AccessSite

Triple = tuple[int, int, int]

GROUP_LANES = 4096
"""Blocks are run together up to about this many threads: enough to hide Python's overhead, few enough for the caches."""

LOCAL_WINDOW = 1 << 57
SHARED_WINDOW = 1 << 58
"""Generic addresses of local and shared memory; global arrays lie far below."""


_ORDERING = frozenset({"acquire", "release", "acq_rel"})


class State:
    """The state of one launch. `lanes` is the number of lanes of a group: `slots` blocks of `padded` threads."""

    def __init__(self, program: Program, grid: Triple, block: Triple) -> None:
        self.grid, self.block = grid, block
        threads = block[0] * block[1] * block[2]
        self.threads = threads
        self.padded = -(-threads // 32) * 32
        self.total_blocks = grid[0] * grid[1] * grid[2]
        self.slots = max(1, min(self.total_blocks, GROUP_LANES // self.padded))
        self.lanes = self.slots * self.padded
        self.program = program
        self.registers = RegisterFile(self.lanes)
        self.registers.resolve = lambda symbol: self.symbol_address(symbol)
        self.findings = Findings(block, grid, padded=self.padded)
        lanes = np.arange(self.lanes, dtype=np.int64)
        self.block_slot = lanes // self.padded
        self.clock = Clock(
            lanes.copy(), np.full(self.lanes, 1 << EPOCH_SHIFT, I64), np.zeros(self.lanes, I64), self.padded
        )
        self.spaces = {
            "global": Space("global", GLOBAL_SHIFT),
            "shared": Space("shared", LOCAL_SHIFT),
            "local": Space("local", LOCAL_SHIFT),
        }
        self.sites: list[AccessSite] = []
        self.accesses = 0
        self.operations = 0
        self.copies: list[tuple[Copy, int]] = []
        self.groups = np.zeros(self.lanes, I64)
        self.never_given: Array | None = None
        """Of the store that runs: which of its elements, a row per lane, were never given a value."""
        self.buffers: dict[str, Array] = {}
        self.addresses: dict[str, int] = {}
        self.fenced = np.zeros(self.slots, BOOL)
        self.released: dict[int, Array] = {}
        self.has_fence = any(
            (instruction.parts[0] in ("membar", "fence") or _ORDERING & set(instruction.parts))
            and "cta" not in instruction.parts
            for instruction in self.program.instructions
        )

    def symbol_address(self, symbol: Symbol) -> int:
        """Return the address of a variable in its own space.

        Raises:
            SimulationError: the symbol is not a variable.
        """
        if symbol.name not in self.addresses:
            raise SimulationError(f"the symbol `{symbol.name}` is not a variable that the simulator knows")
        return self.addresses[symbol.name] + symbol.offset

    # --- fences and atomics between blocks

    def unfence(self, region: Region, lanes: Lanes) -> None:
        """A block that writes global memory must fence again before its atomics release the data."""
        if region.space == "global" and region.shadow is not None and self.fenced.any():
            self.fenced[self.block_slot[lanes]] = False

    def synchronise(self, region: Region, flat: Array, lanes: Lanes, parts: tuple[str, ...]) -> None:
        """An atomic after a fence releases what its block wrote; an atomic on the same word acquires it.

        `.release` and `.acq_rel` accesses need no fence before them.
        """
        if region.space != "global" or not self.has_fence or self.total_blocks > 4096:
            return
        if self.clock.acquired is None:
            self.clock.acquired = np.zeros((self.total_blocks, self.total_blocks), BOOL)
        acquired = self.clock.acquired
        if "release" in parts or "acq_rel" in parts:
            self.fenced[self.block_slot[lanes]] = True
        for lane, word in zip(lanes.tolist(), (flat + region.base).tolist(), strict=True):
            block = int(self.findings.blocks[lane // self.padded])
            known = self.released.setdefault(word, np.zeros(self.total_blocks, BOOL))
            if self.fenced[lane // self.padded]:
                known |= acquired[block]
                known[block] = True
            acquired[block] |= known

    def describe(self, uid: int) -> str:
        """Return "thread (x, y, z) of block (x, y, z)" of a global thread number."""
        thread, block = uid % self.padded, uid // self.padded
        bx, by, _ = self.block
        gx, gy, _ = self.grid
        return (
            f"thread ({thread % bx}, {thread // bx % by}, {thread // (bx * by)}) of block "
            f"({block % gx}, {block // gx % gy}, {block // (gx * gy)})"
        )
