"""What a cubin needs of the device: registers, shared memory, spills, occupancy; its disassembly. No GPU and no driver.

A cubin is an ELF file. `.nv.info` holds per-kernel attributes (format byte, attribute byte, 16-bit size or value),
the size of `.nv.shared.<kernel>` is the static shared memory. Spills stand only in the log of ptxas
(`--ptxas-options=-v`).

Worked example: 256 threads of 80 registers on `sm_90` need 8 warps x 2560 registers per block, so 3 blocks (24 of 64
warps) fit into a multiprocessor: `occupancy(...)` is 0.375.

Source: attribute numbers and the occupancy rules of NVIDIA's cuda_occupancy.h; both compared with ptxas and that
header.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, codes

from .nvrtc import BackendError


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, per thread or block.

    Attributes:
        name: entry point.
        registers: 32-bit registers per thread.
        shared_bytes: static shared memory per block in bytes, without what the driver reserves.
        spill_bytes: bytes of spill stores and loads in the code; 0 if there is no log.
        stack_bytes: local memory frame per thread in bytes (spills and arrays indexed at run time).
        max_threads: largest block that the kernel was compiled for; 0 = not stated.
        parameter_bytes: size of the parameters in bytes.
        code_bytes: size of the machine code.
    """

    name: str
    registers: int
    shared_bytes: int
    spill_bytes: int = 0
    stack_bytes: int = 0
    max_threads: int = 0
    parameter_bytes: int = 0
    code_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks of a kernel run on one multiprocessor at once, and what limits them.

    Attributes:
        blocks: resident blocks per multiprocessor; 0 = a block does not fit.
        warps: resident warps.
        fraction: resident warps / most warps of the multiprocessor.
        limit: `registers`, `shared memory`, `blocks`, `threads`.
    """

    blocks: int
    warps: int
    fraction: float
    limit: str


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """Limits of one multiprocessor: warps, blocks, shared memory in bytes, and the most shared memory of a block in
    bytes.
    """

    warps: int
    blocks: int
    shared: int
    shared_per_block: int


_K = 1 << 10
MULTIPROCESSORS = {
    50: Multiprocessor(64, 32, 64 * _K, 48 * _K),
    60: Multiprocessor(64, 32, 64 * _K, 48 * _K),
    70: Multiprocessor(64, 32, 96 * _K, 96 * _K),
    75: Multiprocessor(32, 16, 64 * _K, 64 * _K),
    80: Multiprocessor(64, 32, 164 * _K, 163 * _K),
    86: Multiprocessor(48, 16, 100 * _K, 99 * _K),
    87: Multiprocessor(48, 16, 164 * _K, 163 * _K),
    89: Multiprocessor(48, 24, 100 * _K, 99 * _K),
    90: Multiprocessor(64, 32, 228 * _K, 227 * _K),
    100: Multiprocessor(64, 32, 228 * _K, 227 * _K),
    103: Multiprocessor(64, 32, 228 * _K, 227 * _K),
    110: Multiprocessor(64, 32, 228 * _K, 227 * _K),
    120: Multiprocessor(48, 24, 100 * _K, 99 * _K),
}
"""Limits by compute capability (90 = 9.0); a capability between two entries has the limits of the lower one."""


def multiprocessor(arch: str) -> Multiprocessor:
    """Limits of `sm_90`, `sm_90a`, `compute_80`, ...

    Raises:
        ValueError: `arch` is not of this form.
    """
    number = _number(arch)
    return MULTIPROCESSORS[max((known for known in MULTIPROCESSORS if known <= number), default=50)]


def read_resources(cubin: bytes, log: str = "") -> tuple[Resources, ...]:
    """What the kernels of a cubin take, in the order of the file.

    Args:
        log: what ptxas said; without it `spill_bytes` is 0.

    Raises:
        ValueError: `cubin` is not a 64-bit ELF file for CUDA.
    """
    sections = _sections(cubin)
    names = _symbols(sections)
    registers: dict[str, int] = {}
    stacks: dict[str, int] = {}
    for attribute, payload in _attributes(sections.get(".nv.info", b"")):
        if attribute in (0x2F, 0x11) and len(payload) >= 8:
            symbol, value = struct.unpack_from("<II", payload)
            (registers if attribute == 0x2F else stacks)[names.get(symbol, "")] = value
    spills = {name: int(stores) + int(loads) for name, stores, loads in _PROPERTIES.findall(log)}
    reserved = _K if _architecture(cubin) >= 90 else 0
    found: list[Resources] = []
    for section, code in sections.items():
        if not section.startswith(".text."):
            continue
        name = section.removeprefix(".text.")
        if f".nv.info.{name}" not in sections:
            continue
        own = dict(_attributes(sections[f".nv.info.{name}"]))
        found.append(
            Resources(
                name,
                registers.get(name, 0),
                max(0, len(sections.get(f".nv.shared.{name}", b"")) - reserved),
                spills.get(name, 0),
                stacks.get(name, 0),
                prod(struct.unpack("<III", own[0x05])) if len(own.get(0x05, b"")) == 12 else 0,
                struct.unpack_from("<HH", own[0x0A], 4)[1] if len(own.get(0x0A, b"")) == 8 else 0,
                len(code),
            )
        )
    return tuple(found)


_PROPERTIES = re.compile(r"Function properties for (\S+)\s*\n[^\n]*?(\d+) bytes spill stores, (\d+) bytes spill loads")
"""Bytes of spill stores and loads of a function, in the log of ptxas."""


def occupancy(resources: Resources, threads: int, arch: str, dynamic_shared: int = 0) -> Occupancy:
    """Resident blocks and warps of one multiprocessor.

    Args:
        threads: threads per block.
        dynamic_shared: bytes of dynamic shared memory per block.

    Registers are given out per warp in units of 256 (warps rounded to 4), shared memory in units of 128 bytes (256 on
    sm_75) plus 1 KiB per block from sm_80 on.
    """
    device, number = multiprocessor(arch), _number(arch)
    warps = max(1, -(-threads // 32))
    per_warp = _round_up(max(resources.registers, 1) * 32, 256)
    by_registers = 65536 // per_warp // 4 * 4 // warps if resources.registers <= 255 else 0
    used = resources.shared_bytes + dynamic_shared
    granule = 256 if number < 80 else 128
    shared = _round_up(used + (_K if number >= 80 else 0), granule)
    by_shared = 0 if used > device.shared_per_block else device.shared // shared if shared else device.blocks
    limits = {"threads": 0 if threads > 1024 else device.warps // warps, "registers": by_registers}
    limits |= {"shared memory": by_shared, "blocks": device.blocks}
    limit = min(limits, key=lambda key: limits[key])
    blocks = limits[limit]
    return Occupancy(blocks, blocks * warps, blocks * warps / device.warps, limit)


def sass(cubin: bytes) -> str:
    """The machine code of a cubin as text, with source lines, by `nvdisasm`.

    Raises:
        BackendError: the disassembler (extra `sass`) is not installed or refused the file.
    """
    tool = find_nvdisasm()
    if tool is None:
        message = "the disassembler `nvdisasm` is not installed; `pip install 'tc_jupyter[sass]'`"
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, message))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([tool, "-c", "-g", str(path)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, "`nvdisasm` refused the cubin"), done.stderr)
    return done.stdout


def find_nvdisasm() -> str | None:
    """Path of the disassembler: from the wheel of the extra `sass`, else from the PATH."""
    name = "nvdisasm.exe" if sys.platform == "win32" else "nvdisasm"
    for entry in sys.path:
        for found in sorted(Path(entry or ".").glob(f"nvidia/cu*/bin/{name}")) + sorted(
            Path(entry or ".").glob(f"nvidia/*/bin/{name}")
        ):
            return str(found)
    return shutil.which(name)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _number(arch: str) -> int:
    """90 of `sm_90a`."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if match is None:
        raise ValueError(f"not a CUDA architecture: {arch!r}")
    return int(match[1])


def _architecture(cubin: bytes) -> int:
    """The architecture in the ELF flags: bits 8 to 15 in ABI 8 (CUDA 13), the low byte in ABI 7 (CUDA 12)."""
    (flags,) = struct.unpack_from("<I", cubin, 48)
    return (flags >> 8) & 0xFF if cubin[8] >= 8 else flags & 0xFF


def _sections(cubin: bytes) -> dict[str, bytes]:
    """Section name -> contents; a section without contents in the file (NOBITS) is given as that many zero bytes."""
    if len(cubin) < 64 or cubin[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", cubin, 18)[0] != 190:
        raise ValueError("not a cubin: no 64-bit ELF file for CUDA")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    try:
        headers = [struct.unpack_from("<IIQQQQ", cubin, table + size * index) for index in range(count)]
        text = cubin[headers[names][4] : headers[names][4] + headers[names][5]]
        found: dict[str, bytes] = {}
        for name, kind, _, _, offset, length in headers:
            title = text[name : text.index(b"\0", name)].decode()
            found[title] = bytes(min(length, 1 << 24)) if kind == 8 else cubin[offset : offset + length]
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError("not a cubin: damaged section table") from error
    return found


def _symbols(sections: dict[str, bytes]) -> dict[int, str]:
    """Symbol number -> name."""
    table, text = sections.get(".symtab", b""), sections.get(".strtab", b"")
    names: dict[int, str] = {}
    for index in range(len(table) // 24):
        (offset,) = struct.unpack_from("<I", table, index * 24)
        names[index] = text[offset : text.find(b"\0", offset)].decode(errors="replace")
    return names


def _attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes of an info section: format 4 has a 16-bit size and a payload, the others a 16-bit value."""
    position = 0
    while position + 4 <= len(info):
        kind, attribute, value = struct.unpack_from("<BBH", info, position)
        position += 4
        length = value if kind == 4 else 0
        yield attribute, info[position : position + length] if kind == 4 else struct.pack("<H", value)
        position += length
