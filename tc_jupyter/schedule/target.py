"""What a schedule and a code generator must know of a device, as plain data. `runtime` makes the value and passes it down."""

from __future__ import annotations

from dataclasses import dataclass

# what all CPUs have in common
LINE_BYTES = 64
"""A line of cache."""
PAGE_BYTES = 4 << 10
"""A page of memory, the smallest."""
LEAST_VECTOR_BITS = 128
"""A vector that every processor has; shuffles inside so many bits take one instruction of the shortest latency."""
SCALES = (1, 2, 4, 8)
"""What addresses multiply a register with."""

# what all GPUs have in common
WARP = 32
"""Threads that run together."""
VECTOR_BYTES = 16
"""What a thread loads or stores at once."""
SECTOR_BYTES = 32
"""What comes from memory at least."""
GPU_LINE_BYTES = 128
"""A line of cache."""
REGISTER_BYTES = 4
"""A register, and the smallest element that is copied into shared memory without one."""
MULTIPROCESSOR_THREADS = 2048
"""Threads that a multiprocessor holds at once."""
STATIC_SHARED_BYTES = 48 << 10
"""Shared memory of a block without opting in, which may be declared statically."""


@dataclass(frozen=True, slots=True)
class Target:
    """A device.

    Attributes:
        kind: `cpu`, `cuda` or `interpreter`.
        name: processor or GPU, for display.
        features: CPU features by LLVM's names (`avx512f`), or GPU features (`cp.async`, `mma`, `wgmma`).
        vector_bits: width of a vector register in bits (CPU).
        vector_registers: number of vector registers (CPU).
        fma: the device has fused multiply-add.
        threads: worker threads (CPU).
        l1_bytes, l2_bytes, llc_bytes: data caches in bytes, as far as known.
        arch: `sm_80` and the like (GPU); the LLVM triple (CPU).
        multiprocessors, warp, max_threads, shared_bytes, shared_optin_bytes, registers: limits of a GPU; bytes per block,
            registers per multiprocessor.
        fast_math, tf32: approximations that the user asked for.
    """

    kind: str
    name: str = ""
    features: frozenset[str] = frozenset()
    vector_bits: int = 128
    vector_registers: int = 16
    fma: bool = False
    threads: int = 1
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    llc_bytes: int = 24 << 20
    arch: str = ""
    multiprocessors: int = 108
    warp: int = WARP
    max_threads: int = 1024
    shared_bytes: int = STATIC_SHARED_BYTES
    shared_optin_bytes: int = 99 << 10
    registers: int = 65536
    fast_math: bool = False
    tf32: bool = False

    @property
    def free_masks(self) -> bool:
        """Whether loads and stores under a mask cost as much as others (AVX-512)."""
        return {"avx512vl", "avx512bw"} <= self.features

    @property
    def halves_vectors(self) -> bool:
        """Whether vectors of 512 bits are computed in two halves, so that what stands beside multiply-adds costs nothing.

        So are those of AMD with AVX-512 (`sse4a` is theirs alone) that have no AVX-VNNI yet (Zen 4).
        """
        return {"avx512f", "sse4a"} <= self.features and "avxvnni" not in self.features

    @property
    def reads_ahead(self) -> bool:
        """Whether the processor itself keeps the way to memory full, so that code which fetches or mixes rows only slows it down.

        So do those that halve vectors. Measured on one (Zen 4), one thread, 4096 x 4096 floats: sums and sums of squares 2.0 ms row
        by row, 2.4 with what comes fetched 4 kB ahead, 2.8 four rows at a time and 3.4 so fetched.
        """
        return self.halves_vectors

    def has_masks(self, bits: int) -> bool:
        """Whether there are loads and stores under a mask, of elements of so many bits; with AVX2 they cost many times as much."""
        return self.free_masks or ("avx2" in self.features and bits >= 32)


INTERPRETER = Target("interpreter", "loop interpreter")
"""The loop IR run directly on NumPy arrays."""
