"""The entry of the simulator: PTX text, launch shape and arrays -> results in the arrays, findings and a report.

Example:
    >>> ptx = '''.version 8.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry fill(.param .u64 fill_param_0) {
    ...   .reg .b32 %r<2>; .reg .b64 %rd<4>;
    ...   ld.param.u64 %rd1, [fill_param_0];
    ...   mov.u32 %r1, %tid.x;
    ...   mul.wide.u32 %rd2, %r1, 4;
    ...   add.s64 %rd3, %rd1, %rd2;
    ...   st.global.u32 [%rd3], %r1;
    ...   ret; }'''
    >>> y = np.zeros(4, np.int32)
    >>> simulate(ptx, "fill", (1, 1, 1), (4, 1, 1), [GlobalArray("y", y, True, False)]).findings
    ()
    >>> y.tolist()
    [0, 1, 2, 3]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tc_jupyter.simulator.arithmetic import I64, Array
from tc_jupyter.simulator.machine import Launch, Limits, Machine
from tc_jupyter.simulator.memory import DeviceMemory, Finding, GlobalArray
from tc_jupyter.simulator.ptx import SimulationError, parse
from tc_jupyter.simulator.state import GROUP_LANES, Triple
from tc_jupyter.simulator.traffic import AccessSite

LIMIT = 10_000_000
"""Accesses to memory by single threads after which a launch goes on with a sample of its blocks."""

NOT_MODELLED = (
    "not modelled: time, caches, ptxas (it may merge or reorder accesses and reports its own errors), memory ordering beyond "
    "barriers, `__syncwarp` and, between blocks, a fence followed by an atomic; wgmma, TMA, mbarrier, clusters, textures, "
    "recursion, calls through pointers, threads that spin until another makes progress, output of printf; the local arrays "
    "of one function are bounds-checked as one; copies of cp.async land only at their wait; approximate functions (ex2, "
    "lg2, sin, cos, rcp, rsqrt, tanh) are more exact than the hardware"
)


@dataclass(frozen=True, slots=True)
class Simulation:
    """What one launch did.

    Attributes:
        findings: what is wrong, in the order in which it happened; empty when nothing was found.
        sites: one per memory instruction, with requests, sectors and wavefronts.
        mix: threads that executed each opcode.
        report: the text for people.
        sampled_blocks: (blocks that ran, blocks of the grid); equal unless the launch was too large to run whole.
    """

    findings: tuple[Finding, ...]
    sites: tuple[AccessSite, ...]
    mix: Mapping[str, int]
    report: str
    sampled_blocks: tuple[int, int]


def simulate(
    ptx: str,
    kernel: str,
    grid: Triple,
    block: Triple,
    arguments: Sequence[GlobalArray | int | float | np.generic[Any] | np.ndarray[Any, Any] | bytes],
    shared_bytes: int = 0,
    limit: int = LIMIT,
    sample: bool = True,
    memory: DeviceMemory | None = None,
    ends: bool = False,
) -> Simulation:
    """Run one launch of a kernel.

    Args:
        ptx: as NVRTC emits it, for compute_80 (other targets run as long as they use no newer instructions).
        grid: blocks along x, y, z.
        block: threads along x, y, z.
        arguments: one per parameter; numbers are converted to the width of the parameter, a structure is given as `bytes`.
        shared_bytes: dynamic shared memory.
        limit: memory accesses by single threads; a larger launch runs a sample of its blocks, or is refused.
        sample: False to refuse.
        memory: shared by several launches on the same arrays; then `memory.unwritten()` tells at the end which outputs were
            never written. Without it this launch stands alone and its findings include them.
        ends: whether the kernel is known to end; else one that does far too much work is stopped.

    Raises:
        SimulationError: PTX that the simulator does not know (it names opcode and line), arguments that do not fit, an
            impossible launch, or a launch beyond `limit`.

    Source: CUDA C++ Programming Guide (execution and memory model), PTX ISA.
    """
    module = parse(ptx)
    if kernel not in module.kernels:
        raise SimulationError(
            f"the PTX text has no kernel `{kernel}`, it has: {', '.join(sorted(module.kernels)) or 'none'}"
        )
    _check_launch(grid, block, shared_bytes)
    device = DeviceMemory() if memory is None else memory
    limits = Limits.none() if ends else Limits(limit)
    launch = Launch(module, module.kernels[kernel], grid, block, shared_bytes, tuple(arguments), limits)
    machine = Machine(launch, device)
    ran = _run(machine, limit, sample)
    total = machine.total_blocks
    if ran < total:
        device.left_out(arguments)
    findings = machine.findings.result()
    if memory is None:
        findings += device.unwritten()
    sites = tuple(site for site in machine.sites if site.executions)
    mix = machine.instruction_mix()
    report = _report(machine, findings, sites, mix, (ran, total))
    return Simulation(findings, sites, mix, report, (ran, total))


def group_lanes(grid: Triple, block: Triple) -> int:
    """Lanes that execute together: the padded threads of the blocks of a group."""
    padded = -(-math.prod(block) // 32) * 32
    return padded * max(1, min(math.prod(grid), GROUP_LANES // padded))


def group_count(grid: Triple, block: Triple, accesses: float, limit: int = LIMIT) -> int:
    """About how many groups of blocks a launch runs, one after the other, given the accesses of one thread."""
    lanes = group_lanes(grid, block)
    groups = -(-math.prod(grid) * math.prod(block) // lanes)
    sampled = 1 + math.ceil(max(0.0, limit - accesses * lanes) / max(1.0, accesses * lanes))
    return max(1, min(groups, sampled))


def _check_launch(grid: Triple, block: Triple, shared_bytes: int) -> None:
    """Refuse what no device can launch."""
    if min(grid) < 1 or min(block) < 1:
        raise SimulationError(f"grid {grid} and block {block} must be at least 1 along every axis")
    threads = block[0] * block[1] * block[2]
    if threads > 1024 or block[2] > 64:
        raise SimulationError(f"a block of {block} has {threads} threads; the limits are 1024 and 64 along z")
    if grid[0] >= 1 << 31 or grid[1] > 65535 or grid[2] > 65535:
        raise SimulationError(f"the grid {grid} is beyond the limits (2147483647, 65535, 65535)")
    if not 0 <= shared_bytes <= 227 * 1024:
        raise SimulationError(f"{shared_bytes} bytes of dynamic shared memory are beyond the limit of 232448")


def _run(machine: Machine, limit: int, sample: bool) -> int:
    """Run all groups of blocks, or a sample once the accesses of the first group show that all are too many."""
    total, slots = machine.total_blocks, machine.slots
    first = np.arange(min(slots, total), dtype=np.int64)
    machine.run(first)
    done = int(first.size)
    if done == total:
        return done
    per_block = max(1, machine.accesses // done)
    wanted = total - done
    allowed = max(0, (limit - machine.accesses) // per_block)
    rest: Array
    if wanted <= allowed:
        rest = np.arange(done, total, dtype=np.int64)
    elif not sample:
        raise SimulationError(
            f"the launch has about {per_block * total} memory accesses, the limit is {limit}; use smaller arrays or sample"
        )
    else:
        # The last block is always among them: it is where the ragged edges are.
        rest = np.unique(np.linspace(done, total - 1, max(1, allowed)).astype(I64)[::-1])
    for start in range(0, rest.size, slots):
        machine.run(rest[start : start + slots])
    return done + int(rest.size)


# --- the report


def _report(
    machine: Machine,
    findings: tuple[Finding, ...],
    sites: tuple[AccessSite, ...],
    mix: Mapping[str, int],
    sampled: tuple[int, int],
) -> str:
    launch = machine.launch
    ran, total = sampled
    lines = [
        f"{launch.kernel.name}: grid {launch.grid}, block {launch.block}, simulated, not timed",
        f"blocks simulated: {ran} of {total}" + ("" if ran == total else " (a sample: outputs are incomplete)"),
    ]
    lines += _finding_lines(findings)
    lines += _global_lines(sites)
    lines += _shared_lines(sites)
    lines += _byte_lines(machine)
    lines += _mix_lines(mix)
    lines.append(NOT_MODELLED)
    return "\n".join(lines)


def _finding_lines(findings: tuple[Finding, ...]) -> list[str]:
    if not findings:
        return ["findings: none"]
    lines = [f"findings: {len(findings)}"]
    for finding in findings:
        place = "" if finding.line is None else f"line {finding.line}, thread {finding.thread}, block {finding.block}: "
        lines.append(f"  {finding.kind}: {place}{finding.message}")
    return lines


def _line(site: AccessSite) -> str:
    """The user's line, or in parentheses that of the CUDA text."""
    if site.line is not None:
        return str(site.line)
    return "?" if site.text_line is None else f"({site.text_line})"


def _merged(sites: tuple[AccessSite, ...], shared: bool) -> list[AccessSite]:
    """Join the instructions of one source line that do the same, such as the copies of an unrolled loop."""
    rows: dict[tuple[int | None, int | None, str, str, str], AccessSite] = {}
    for site in sites:
        if (site.space == "shared") != shared:
            continue
        key = (site.line, site.text_line, site.opcode, site.space, site.kind)
        row = rows.setdefault(
            key, AccessSite(site.line, site.opcode, site.space, site.kind, site.width, site.text_line)
        )
        for name in ("requests", "lanes", "executions", "measured", "measured_lanes", "sectors", "wavefronts"):
            setattr(row, name, getattr(row, name) + getattr(site, name))
    return list(rows.values())


def _global_lines(sites: tuple[AccessSite, ...]) -> list[str]:
    chosen = _merged(sites, shared=False)
    if not chosen:
        return []
    lines = ["global and local memory (sectors of 32 bytes per request of a warp):"]
    lines.append(f"  {'line':>6} {'access':28} {'requests':>9} {'sectors':>8} {'ideal':>6} {'bytes':>12}")
    for site in chosen:
        lines.append(
            f"  {_line(site):>6} {site.opcode:28} {site.requests:9d} {site.sectors_per_request:8.2f} "
            f"{site.ideal_sectors_per_request:6.2f} {site.bytes:12d}"
        )
    return lines


def _shared_lines(sites: tuple[AccessSite, ...]) -> list[str]:
    chosen = _merged(sites, shared=True)
    if not chosen:
        return []
    lines = ["shared memory (wavefronts per request of a warp; above the ideal are bank conflicts):"]
    lines.append(f"  {'line':>6} {'access':28} {'requests':>9} {'waves':>8} {'ideal':>6} {'bytes':>12}")
    for site in chosen:
        lines.append(
            f"  {_line(site):>6} {site.opcode:28} {site.requests:9d} {site.wavefronts_per_request:8.2f} "
            f"{site.ideal_wavefronts_per_request:6.2f} {site.bytes:12d}"
        )
    return lines


def _byte_lines(machine: Machine) -> list[str]:
    chosen = [site for site in machine.sites if site.space == "global" and site.executions]
    asked = sum(site.bytes for site in chosen)
    moved = sum(round(32 * site.sectors_per_request * site.requests) for site in chosen)
    regions = list(machine.spaces["global"].regions.values())
    unique = {region.name: int(np.count_nonzero(region.touched)) for region in regions if region.touched is not None}
    if not asked:
        return []
    lines = [f"global bytes: {asked} asked for, {moved} moved in sectors, {sum(unique.values())} unique"]
    for region in regions:
        if unique.get(region.name):
            lines.append(f"  {region.name}: {unique[region.name]} of {region.nbytes} bytes touched")
    return lines


def _mix_lines(mix: Mapping[str, int]) -> list[str]:
    total = sum(mix.values())
    if not total:
        return []
    common = sorted(mix.items(), key=lambda item: (-item[1], item[0]))[:12]
    shares = ", ".join(f"{opcode} {100 * count / total:.1f}%" for opcode, count in common)
    return [f"instructions: {total} by single threads; {shares}"]
