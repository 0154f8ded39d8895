"""Kernels by hand, run by the CPU engine and by the interpreter."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.loops import Block, Buffer, For, Kernel, Stmt, Store, verify
from tc_jupyter.loops.interpret import interpret
from tc_jupyter.program import Binary, Cast, Const, DType, Expr, IndexVar, Read, Size, int64
from tc_jupyter.runtime import cpu
from tc_jupyter.runtime.launch import integers, scalar_value, slots
from tc_jupyter.schedule import Target
from tests.running import cpu_with

F32 = DType.FLOAT32
ISAS = ("avx512", "avx2", "baseline") if platform.machine() in ("x86_64", "AMD64") else ("baseline",)
"""Instruction sets that code is made for; elsewhere all three names say the same."""


AVX512 = Target(
    "cpu",
    features=frozenset({"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma", "f16c"}),
    vector_bits=512,
    vector_registers=32,
    fma=True,
    arch="x86_64-unknown-linux-gnu",
)
"""Whatever machine the tests run on: for what is decided, and not run."""


@lru_cache(maxsize=4)
def target(isa: str | None = None):
    return cpu_with(isa)


def var(name: str) -> IndexVar:
    return IndexVar(name)


def size(name: str) -> Size:
    return Size(name)


def op(operator: str, left: Expr, right: Expr) -> Expr:
    dtype = DType.BOOL if operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||") else left.dtype
    return Binary(operator, left, right, dtype)


def add(left: Expr, right: Expr | int) -> Expr:
    return op("+", left, int64(right) if isinstance(right, int) else right)


def mul(left: Expr, right: Expr | int) -> Expr:
    return op("*", left, int64(right) if isinstance(right, int) else right)


def least(left: Expr | int, right: Expr | int) -> Expr:
    left = int64(left) if isinstance(left, int) else left
    return op("min", left, int64(right) if isinstance(right, int) else right)


def read(name: str, *indices: Expr, dtype: DType = F32) -> Expr:
    found = Read(name, indices, dtype)
    return Cast(found, DType.FLOAT32) if dtype in (DType.FLOAT16, DType.BFLOAT16) else found


def loop(name: str, extent: Expr | int, *body: Stmt, kind: str = "serial", low: Expr | int = 0, chunk: int = 0) -> For:
    low = int64(low) if isinstance(low, int) else low
    extent = int64(extent) if isinstance(extent, int) else extent
    return For(name, low, extent, Block(body), kind, chunk=chunk)


def const(value: float, dtype: DType = F32) -> Const:
    return Const(value, dtype)


def kernel(buffers: list[Buffer], sizes: str, *body: Stmt, scalars=(), checks: int = 0) -> Kernel:
    return Kernel("k", tuple(buffers), tuple(sizes), tuple(scalars), Block(body), ("k",), checks)


def numpy_dtype(dtype: DType) -> np.dtype:
    return np.dtype("uint16" if dtype is DType.BFLOAT16 else dtype.value)


@lru_cache(maxsize=8)
def _compiled(k: Kernel, machine: Target):
    """Source and machine code of a verified kernel."""
    verify(k)
    source = emit_llvm(k, machine)
    return source, cpu.load(source, None, machine)


def execute(
    k: Kernel,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    scalars: Mapping[str, float] | None = None,
    isa: str | None = None,
    threads: int = 2,
):
    """Run the compiled kernel in place; returns the error record."""
    source, loaded = _compiled(k, target(isa))
    record = (ctypes.c_int64 * 16)()
    values: list[float] = []
    scratch = np.zeros(0, np.uint8)
    for argument in source.arguments:
        match argument.kind:
            case "buffer":
                values.append(arrays[argument.name].ctypes.data)
            case "stride":
                array = arrays[argument.name]
                values.append(array.strides[argument.dimension] // array.itemsize)
            case "size":
                values.append(sizes[argument.name])
            case "scalar":
                assert argument.dtype is not None
                values.append(scalar_value(argument.dtype, (scalars or {})[argument.name]))
            case "errors":
                values.append(ctypes.addressof(record))
            case _:
                values.append(0)
    packer = slots(source.arguments)
    data = (ctypes.c_int64 * len(values))()
    packer.pack_into(data, 0, *values)
    if source.workspace:
        scratch = np.zeros(integers(source.workspace[0].shape, k)(sizes)[0] * threads + 64, np.uint8)
        address = (scratch.ctypes.data + 63) // 64 * 64
        values[[a.kind for a in source.arguments].index("workspace")] = address
        packer.pack_into(data, 0, *values)
    loaded.run(data, threads)
    return list(record)


GUARD = 64


def guarded(shape, dtype: DType, fill: np.ndarray | None = None):
    """An array between canaries; returns it and a function that says whether the canaries live."""
    plain = numpy_dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    store = np.full(count * plain.itemsize + 2 * GUARD, 0xAB, np.uint8)
    inner = store[GUARD : GUARD + count * plain.itemsize].view(plain).reshape(shape)
    if fill is not None:
        inner[...] = fill
    return inner, lambda: bool(
        (store[:GUARD] == 0xAB).all() and (store[GUARD + count * plain.itemsize :] == 0xAB).all()
    )


def compare(k: Kernel, arrays: Mapping[str, np.ndarray], sizes, scalars=None, isa=None, rtol=2e-6, atol=1e-6) -> None:
    """The engine and the interpreter write the same values, and the engine nothing else."""
    expected = {name: array.copy() for name, array in arrays.items()}
    with np.errstate(all="ignore"):
        failed = interpret(k, expected, sizes, scalars)
    mine, alive = {}, []
    for buffer in k.buffers:
        mine[buffer.name], check = guarded(arrays[buffer.name].shape, buffer.dtype, arrays[buffer.name])
        alive.append(check)
    record = execute(k, mine, sizes, scalars, isa)
    assert all(check() for check in alive), "wrote outside of a buffer"
    assert (record[0] != 0) == (failed is not None)
    for buffer in k.buffers:
        same(mine[buffer.name], expected[buffer.name], buffer.dtype, rtol, atol, buffer.name)


def same(got: np.ndarray, want: np.ndarray, dtype: DType, rtol: float, atol: float, name: str = "") -> None:
    if dtype is DType.BFLOAT16:
        got, want = ((a.astype(np.uint32) << 16).view(np.float32) for a in (got, want))
        rtol = max(rtol, 2**-7)
    if dtype is DType.FLOAT16:
        rtol = max(rtol, 2**-10)
    if dtype.is_float:
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, equal_nan=True, err_msg=name)
    else:
        np.testing.assert_array_equal(got, want, err_msg=name)


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3e38,
    -3e38,
    1e-40,
    np.inf,
    -np.inf,
    np.nan,
    65504.0,
    65520.0,
    1e-7,
    300.0,
    -129.0,
]


def sample(dtype: DType, shape, seed: int = 0) -> np.ndarray:
    """Values with all the awkward ones among them."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=np.int64))
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        low, high = dtype.limits
        values = rng.integers(low, high, count, dtype=dtype.value, endpoint=True)
        values[::3] = rng.integers(max(low, -5), 6, len(values[::3]), dtype=dtype.value)
        edges = [low, high, 0, 1, low + 1, high - 1]
        values[: min(6, count)] = edges[: min(6, count)]
        return rng.permutation(values).reshape(shape)
    values = rng.standard_normal(count) * 10.0 ** rng.integers(-3, 4, count)
    values[: min(count, len(SPECIAL))] = SPECIAL[: min(count, len(SPECIAL))]
    values = rng.permutation(values).reshape(shape)
    with np.errstate(all="ignore"):
        if dtype is DType.BFLOAT16:
            return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return values.astype(dtype.value)


def pointwise(value, inputs: Mapping[str, DType], result: DType, lanes: int) -> Kernel:
    """`Y[i] = value(A[i], ...)`, scalar (`lanes` 0) or in vectors."""
    n = size("N")
    buffers = [Buffer(name, dtype, (n,)) for name, dtype in inputs.items()]
    buffers.append(Buffer("Y", result, (n,), role="output"))
    if lanes == 0:
        store = Store("Y", (var("i"),), value(*(read(name, var("i"), dtype=dtype) for name, dtype in inputs.items())))
        return kernel(buffers, "N", loop("i", n, store))
    at = add(mul(var("o"), lanes), var("v"))
    store = Store("Y", (at,), value(*(read(name, at, dtype=dtype) for name, dtype in inputs.items())))
    rest = op("-", n, mul(var("o"), lanes))
    count = op("//", add(n, lanes - 1), int64(lanes))
    return kernel(buffers, "N", loop("o", count, loop("v", least(lanes, rest), store, kind="vectorize")))
