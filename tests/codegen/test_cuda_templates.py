"""Fast kernels: they compile without spills, compute what NumPy computes, and the simulator notices every weakened copy."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from cuda_kernels import (
    ARCHITECTURES,
    BF16,
    F16,
    F32,
    I32,
    SM80,
    add,
    buffer,
    const,
    kernel,
    local,
    loop,
    mul,
    op,
    read,
    store,
    var,
)
from cuda_simulation import as_float, compare, number, run_simulated
from cuda_templates import allocate, axpy, intrinsic, simt_matmul, softmax, tensor_matmul, transpose

from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.loops import Barrier, Block, Kernel
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import DType, Expr, Read
from tc_jupyter.runtime import cubin, nvrtc
from tc_jupyter.simulator import SimulationError

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

TEMPLATES = {
    "axpy": axpy(),
    "transpose": transpose(),
    "softmax of a warp": softmax(32, 8, 4),
    "softmax of a block": softmax(256, 4),
    "simt": simt_matmul(),
    **{
        # bytes of a tile of 64 x 64 per warp, loaded one by one, take nearly all registers
        f"mma {dtype.value}{' columns first' if t else ''}": tensor_matmul(
            dtype, warps=(2, 4) if dtype is DType.INT8 and not t else (2, 2), columns_first=t
        )
        for dtype in (F16, BF16, F32, DType.INT8)
        for t in (False, True)
    },
    "mma of 8 warps": tensor_matmul(F16, warps=(2, 4)),
}
REGISTERS = {
    "axpy": 40,
    "transpose": 40,
    "softmax of a warp": 40,
    "softmax of a block": 32,
    "simt": 128,
    "mma of 8 warps": 128,
}


@pytest.mark.some(27)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", TEMPLATES)
def test_resources(name, arch, bits):
    """Everything compiles everywhere without a warning; nothing spills on sm_80 and sm_90."""
    source = emit_cuda(TEMPLATES[name], SM80, bits)
    compiled = nvrtc.compile_cuda(source.text, arch)
    (found,) = cubin.read_resources(compiled.cubin, compiled.log)
    assert "warning" not in compiled.log
    if arch in ("sm_80", "sm_90"):
        threads = np.prod([number(extent, {}) for extent in source.launch.block])
        assert (found.spill_bytes, found.stack_bytes) == (0, 0)
        assert found.registers <= REGISTERS.get(name, 255)
        assert cubin.occupancy(found, int(threads), arch, source.launch.shared).blocks >= (
            1 if "mma int8" in name else 2
        )


def uniform(shape: tuple[int, ...], dtype: DType = F32, seed: int = 0) -> np.ndarray:
    """Random elements; 16-bit floats as their bits."""
    rng = np.random.default_rng(seed)
    if dtype is DType.INT8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    values = rng.standard_normal(shape).astype(np.float32)
    if dtype is F16:
        return values.astype(np.float16).view(np.uint16)
    return (values.view(np.uint32) >> 16).astype(np.uint16) if dtype is BF16 else values


def product_error(
    made: Kernel,
    m: int,
    n: int,
    k: int,
    dtype: DType = F32,
    columns_first: bool = False,
    source: KernelSource | None = None,
) -> tuple[float, list[str]]:
    """Largest error relative to the largest element, and the kinds of findings."""
    a, b = uniform((m, k), dtype), uniform((k, n), dtype, 1)
    out = {F16: np.uint16, BF16: np.uint16, DType.INT8: np.int32}.get(dtype, np.float32)
    given = {"A": a, "B": np.ascontiguousarray(b.T) if columns_first else b, "C": np.zeros((m, n), out)}
    result, _ = run_simulated(source or emit_cuda(made, SM80), made, given, {"M": m, "N": n, "K": k}, {})
    reference = as_float(a, dtype).astype(np.float64) @ as_float(b, dtype).astype(np.float64)
    c = as_float(given["C"], I32 if dtype is DType.INT8 else dtype).astype(np.float64)
    return float(np.abs(c - reference).max() / np.abs(reference).max()), [finding.kind for finding in result.findings]


@pytest.mark.some(3)
@pytest.mark.parametrize("m, n, k", [(128, 128, 32), (200, 132, 36), (1, 4, 4), (130, 128, 8)])
@pytest.mark.parametrize("depth", [8, 16])
def test_product_on_ordinary_cores(depth, m, n, k):
    error, findings = product_error(simt_matmul(depth), m, n, k)
    assert findings == []
    assert error < 1e-6


TOLERANCE = {F16: 1e-3, BF16: 1e-2, F32: 1e-3, DType.INT8: 0.0}


@pytest.mark.some(5)
@pytest.mark.parametrize("shape", [(128, 128, 64), (200, 144, 80), (16, 16, 16)])
@pytest.mark.parametrize("columns_first", [False, True])
@pytest.mark.parametrize("dtype", [F16, BF16, F32, DType.INT8])
def test_product_on_tensor_cores(dtype, columns_first, shape):
    error, findings = product_error(tensor_matmul(dtype, columns_first=columns_first), *shape, dtype, columns_first)
    assert findings == []
    assert error <= TOLERANCE[dtype]


@pytest.mark.some(4)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("warps", [(2, 2), (2, 4)])
def test_stages_and_warps(stages, warps):
    error, findings = product_error(tensor_matmul(F16, stages, warps), 136, 128, 136, F16)
    assert findings == []
    assert error < 1e-3


def test_matrix_operands_are_read_without_bank_conflicts():
    made = tensor_matmul(F16)
    arrays = {"A": uniform((128, 64), F16), "B": uniform((64, 128), F16), "C": np.zeros((128, 128), np.uint16)}
    result, _ = run_simulated(emit_cuda(made, SM80), made, arrays, {"M": 128, "N": 128, "K": 64}, {})
    loads = [site for site in result.sites if "ldmatrix" in site.opcode]
    assert loads
    assert all(site.wavefronts == 4 * site.requests for site in loads)


@pytest.mark.some(5)
@pytest.mark.parametrize("threads, per_thread, rows", [(32, 8, 4), (256, 1, 1), (8, 4, 16), (64, 2, 2)])
@pytest.mark.parametrize("m, n", [(5, 30), (16, 32), (1, 1)])
def test_softmax_reads_once(threads, per_thread, rows, m, n):
    made = softmax(threads, per_thread, rows)
    a = uniform((m, n))
    result = compare(made, {"A": a, "O": np.zeros_like(a)}, {"M": m, "N": n}, tolerance=1e-5)
    loads = [site for site in result.sites if site.opcode.startswith("ld.global")]
    assert sum(site.bytes for site in loads) == a.nbytes


def test_transpose():
    a = uniform((70, 45))
    compare(transpose(), {"A": a, "O": np.zeros((45, 70), np.float32)}, {"M": 70, "N": 45})


@pytest.mark.parametrize("n", [1, 5, 2047, 2048, 2050])
def test_axpy(n):
    compare(
        axpy(),
        {"X": uniform((n,)), "Y": uniform((n,), seed=1), "O": np.zeros(n, np.float32)},
        {"N": n},
        {"s": np.float32(2.0)},
        tolerance=1e-6,
    )


# --- the interpreter's meaning of intrinsics -------------------------------------------------------------------------


def small_product(step: str, dtype: DType, depth: int, transposed: bool) -> Kernel:
    """One 16 x 16 product of one warp, operands staged in shared memory."""
    total = I32 if dtype is DType.INT8 else F32

    def at(name: str, *indices: Expr | int, kind: DType = dtype) -> Read:
        return read(name, *indices, dtype=kind)

    shape_a, shape_b = ((depth, 16), (16, depth)) if transposed else ((16, depth), (depth, 16))
    chunk = 16 // dtype.bytes
    copies = [
        loop(
            "l",
            32,
            loop(
                "c",
                -(-rows * columns // chunk // 32),
                Block((intrinsic("cp_async", at(into, *where(columns)), at(name, *where(columns)), bytes=16),)),
            ),
            kind="threadIdx.x",
        )
        for name, into, (rows, columns) in (("A", "As", shape_a), ("B", "Bs", shape_b))
        for where in [lambda columns: _place(chunk, columns)]
    ]
    name = "ldmatrix_trans" if transposed else "ldmatrix"
    tile = [
        loop("j", 2, loop("r", 16, loop("q", 8, stmt, kind="fragment.column"), kind="fragment.row"), kind="unroll")
        for stmt in (
            store(
                "acc",
                (var("r"), add(mul(8, var("j")), var("q"))),
                const(0, total),
            ),
            store(
                "C",
                (var("r"), add(mul(8, var("j")), var("q"))),
                read("acc", var("r"), add(mul(8, var("j")), var("q")), dtype=total),
            ),
        )
    ]
    body = allocate(
        [
            local("As", *shape_a, dtype=dtype, scope="shared"),
            local("Bs", *shape_b, dtype=dtype, scope="shared"),
            local("acc", 16, 16, dtype=total, scope="fragment"),
            local("Af", 16, depth, dtype=dtype, scope="fragment"),
            local("Bf", depth, 16, dtype=dtype, scope="fragment"),
        ],
        tile[0],
        *copies,
        intrinsic("cp_async_commit"),
        intrinsic("cp_async_wait", pending=0),
        Barrier(),
        intrinsic(name, at("Af", 0, 0), at("As", 0, 0), rows=16, columns=depth),
        intrinsic(name, at("Bf", 0, 0), at("Bs", 0, 0), rows=depth, columns=16),
        loop(
            "j",
            2,
            intrinsic(
                step, read("acc", 0, mul(8, var("j")), dtype=total), at("Af", 0, 0), at("Bf", 0, mul(8, var("j")))
            ),
            kind="unroll",
        ),
        tile[1],
    )
    buffers = (
        buffer("A", *shape_a, dtype=dtype, align=16),
        buffer("B", *shape_b, dtype=dtype, align=16),
        buffer("C", 16, 16, dtype=total, role="output"),
    )
    return kernel("tile", buffers, (), body)


def _place(chunk: int, columns: int) -> tuple[Expr, Expr]:
    """Row and column of the 16 bytes that a lane copies."""
    e = add(var("l"), mul(32, var("c")))
    return op("//", e, columns // chunk), mul(chunk, op("%", e, columns // chunk))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "step, dtype, depth",
    [
        ("mma_m16n8k16_f16", F16, 16),
        ("mma_m16n8k16_bf16", BF16, 16),
        ("mma_m16n8k8_tf32", F32, 8),
        ("mma_m16n8k32_s8", DType.INT8, 32),
    ],
)
def test_a_tile_means_the_same_in_the_interpreter(step, dtype, depth, transposed):
    made = small_product(step, dtype, depth, transposed)
    shape_a, shape_b = ((depth, 16), (16, depth)) if transposed else ((16, depth), (depth, 16))
    arrays = {
        "A": uniform(shape_a, dtype),
        "B": uniform(shape_b, dtype, 1),
        "C": np.zeros((16, 16), np.int32 if dtype is DType.INT8 else np.float32),
    }
    compare(made, arrays, {}, tolerance=1e-5)
    views = {
        name: array.copy().view(np.float16) if dtype is F16 and name != "C" else array.copy()
        for name, array in arrays.items()
    }
    interpret(made, views, {})
    a, b = (as_float(arrays[name], dtype).astype(np.float64) for name in ("A", "B"))
    reference = a.T @ b.T if transposed else a @ b
    assert np.abs(views["C"] - reference).max() <= 2e-3 * np.abs(reference).max()


@pytest.mark.slow
def test_reductions_over_threads_in_every_type():
    for dtype in (F32, DType.FLOAT64, I32, DType.INT64, DType.INT8, DType.UINT8, F16):
        for op_name in ("+", "min", "max"):
            for threads in (16, 32, 128):
                kind = dtype.compute
                value = read("A", var("t"), dtype=dtype)
                body = allocate(
                    [local("X", threads, dtype=dtype, scope="threads", threads=1), local("s", dtype=kind)],
                    loop("t", threads, store("X", (var("t"),), value), kind="threadIdx.x"),
                    intrinsic(
                        "reduce_threads",
                        read("s", dtype=kind),
                        read("X", 0, dtype=dtype),
                        op=op_name,
                        threads=threads,
                        axis=0,
                    ),
                    loop("t", threads, store("O", (var("t"),), read("s", dtype=kind)), kind="threadIdx.x"),
                )
                made = kernel(
                    "r", (buffer("A", threads, dtype=dtype), buffer("O", threads, dtype=kind, role="output")), (), body
                )
                rng = np.random.default_rng(3)
                a = rng.integers(0, 3, threads)
                a = a.astype(np.float16).view(np.uint16) if dtype is F16 else a.astype(dtype.value)
                arrays = {"A": a, "O": np.zeros(threads, kind.value)}
                if dtype in (F16, DType.INT8, DType.UINT8):
                    result, _ = run_simulated(emit_cuda(made, SM80), made, arrays, {}, {})
                    assert result.findings == ()
                    plain = as_float(a, dtype)
                    expected = {"+": plain.sum(dtype=kind.value), "min": plain.min(), "max": plain.max()}[op_name]
                    assert np.all(arrays["O"] == expected)
                else:
                    compare(made, arrays, {})


# --- weakened copies -------------------------------------------------------------------------------------------------


def without(text: str, pattern: str, number: int, by: str = "") -> str | None:
    """The text with the n-th match replaced, inside the kernel; `None` if there are fewer."""
    start = text.index('extern "C"')
    matches = list(re.finditer(pattern, text[start:]))
    if number >= len(matches):
        return None
    match = matches[number]
    return text[: start + match.start()] + match.expand(by) + text[start + match.end() :]


def mutants(text: str, changes: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Every single change, with a name."""
    found: list[tuple[str, str]] = []
    for pattern, by in changes:
        number_of = 0
        while (changed := without(text, pattern, number_of, by)) is not None:
            found.append((f"{pattern} #{number_of}", changed))
            number_of += 1
    return found


def caught(made: Kernel, source: KernelSource, text: str, shapes: list[tuple[int, int, int]], dtype: DType) -> bool:
    """Whether the gate notices at some size: it does not compile, a finding, or a wrong result."""
    for shape in shapes:
        try:
            error, findings = product_error(made, *shape, dtype, source=replace(source, text=text))
        except (nvrtc.BackendError, SimulationError):
            return True
        if findings or not error < 5e-3:
            return True
    return False


@pytest.mark.slow
def test_every_weakened_copy_of_the_ordinary_product_is_caught():
    made = simt_matmul()
    source = emit_cuda(made, SM80)
    changes = [
        (r"__syncthreads\(\);", ""),
        (r"if \(by \* 128[^\n]*\) \{", "if (true) {"),
        (r"if \(\(t \+ 256 \* p\) / 32 < K[^\n]*\) \{", "if (true) {"),
        (r"acc\[i\]\[j\] = 0.0f;", ""),
        (r"\* K \+", "* (K + 1) +"),
        (r"\* N \+", "* (N + 1) +"),
        (r"As\[2\]\[8\]\[132\];", "As[1][8][132];"),
    ]
    made_mutants = mutants(source.text, changes)
    assert len(made_mutants) > 10
    survivors = [name for name, text in made_mutants if not caught(made, source, text, [(4, 4, 4), (6, 8, 36)], F32)]
    assert survivors == []


@pytest.mark.slow
def test_every_weakened_copy_of_the_tensor_product_is_caught():
    made = tensor_matmul(F16)
    source = emit_cuda(made, SM80)
    changes = [
        (r"__syncthreads\(\);", ""),
        (r"tc_cp_async_wait<1>\(\);", ""),
        (r"tc_cp_async_wait<1>\(\);", "tc_cp_async_wait<2>();"),
        (r"tc_cp_async_commit\(\);", ""),
        (r"const bool inside = [^\n]*;", "const bool inside = true;"),
        (r"if \(by \* 128[^\n]*\) \{", "if (true) {"),
        (r"acc\[i\]\[j\]\[e\] = 0.0f;", ""),
        (r"\* K \+", "* (K + 8) +"),
        (r"\* N \+", "* (N + 8) +"),
        (r"% 3\b", "% 2"),
    ]
    made_mutants = mutants(source.text, changes)
    assert len(made_mutants) > 15
    survivors = [
        name
        for name, text in made_mutants
        if not caught(made, source, text, [(16, 8, 8), (16, 136, 40), (16, 8, 168)], F16)
    ]
    assert survivors == []


# --- machine code ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(cubin.find_nvdisasm() is None, reason="nvdisasm is not installed (extra sass)")
@pytest.mark.parametrize(
    "name, expected",
    [
        ("axpy", ["LDG.E.128", "STG.E.128"]),
        ("simt", ["LDG.E.128", "LDS.128", "STS.128", "STG.E.128", "FFMA"]),
        ("mma float16", ["LDGSTS", "LDSM", "HMMA.16816"]),
        ("mma float32", ["LDGSTS", "LDSM", "HMMA.1688"]),
        ("mma int8 columns first", ["LDGSTS", "LDSM", "IMMA.16832"]),
        ("softmax of a warp", ["SHFL"]),
    ],
)
def test_the_machine_code_has_wide_accesses_and_no_spills(name, expected):
    text = cubin.sass(nvrtc.compile_cuda(emit_cuda(TEMPLATES[name], SM80).text, "sm_80").cubin)
    assert [word for word in expected if word not in text] == []
    assert not re.search(r"\b(LDL|STL)\b", text)
