"""What the CUDA text computes, in the PTX simulator, against the loop interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cuda_kernels import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    I64,
    SM80,
    add,
    buffer,
    ceil_div,
    const,
    element,
    f32,
    kernel,
    local,
    loop,
    mul,
    op,
    pointwise,
    read,
    size,
    store,
    var,
    when,
)
from cuda_simulation import compare, run_simulated

from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.loops import Allocate, Barrier, Block, Check
from tc_jupyter.program import REAL, Binary, Call, Cast, Const, DType, Select, Unary, int64
from tc_jupyter.runtime import nvrtc

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

INTEGERS = [dtype for dtype in DType if dtype.is_integer]
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.75,
    1e-30,
    1e30,
    127.0,
    128.0,
    255.5,
    -129.0,
    65504.0,
    65520.0,
    7e4,
]
SPECIAL += [
    2.0**31,
    2.0**32,
    -(2.0**31) - 256,
    2.0**63,
    2.0**64,
    1e20,
    float("inf"),
    float("-inf"),
    float("nan"),
    1.0009765625,
    1.00390625,
]


def storage(dtype: DType) -> type:
    return np.uint16 if dtype in (F16, BF16) else np.dtype(dtype.value).type


def samples(dtype: DType) -> np.ndarray:
    """Values at which types differ."""
    if dtype is BOOL:
        return np.array([True, False, True, True])
    if dtype.is_integer:
        low, high = dtype.limits
        near = [low, low + 1, high, high - 1, 0, 1, 2, 3, 5, 7, 100, high // 2, high // 3]
        near += [-1, -2, -3, -7, -100] if dtype.is_signed else []
        return np.array(near, dtype.value)
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL, np.float64).astype(np.float32 if dtype is not F64 else np.float64)
    if dtype is F16:
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    if dtype is BF16:
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    some = samples(dtype)
    return np.repeat(some, some.size), np.tile(some, some.size)


@pytest.mark.some(5)
@pytest.mark.parametrize("target", REAL)
@pytest.mark.parametrize("source", REAL)
def test_casts(source, target):
    values = samples(source)
    made = pointwise(
        "cast",
        (buffer("A", "N", dtype=source), buffer("O", "N", dtype=target, role="output")),
        Cast(read("A", element(), dtype=source), target),
    )
    compare(made, {"A": values, "O": np.zeros(values.size, storage(target))}, {"N": values.size})


@pytest.mark.some(3)
@pytest.mark.parametrize("sign", ["+", "-", "*", "//", "%", "min", "max"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operators(dtype, sign):
    a, b = pairs(dtype)
    buffers = (
        buffer("A", "N", dtype=dtype),
        buffer("B", "N", dtype=dtype),
        buffer("O", "N", dtype=dtype, role="output"),
    )
    made = pointwise(
        "f", buffers, Binary(sign, read("A", element(), dtype=dtype), read("B", element(), dtype=dtype), dtype)
    )
    compare(made, {"A": a, "B": b, "O": np.zeros_like(a)}, {"N": a.size})


@pytest.mark.some(3)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_constants(dtype):
    a = samples(dtype)
    for divisor in (1, 2, 3, 7, 16) + ((-1, -3) if dtype.is_signed else ()):
        for sign in ("//", "%"):
            made = pointwise(
                "f",
                (buffer("A", "N", dtype=dtype), buffer("O", "N", dtype=dtype, role="output")),
                Binary(sign, read("A", element(), dtype=dtype), Const(divisor, dtype), dtype),
            )
            compare(made, {"A": a, "O": np.zeros_like(a)}, {"N": a.size})


@pytest.mark.parametrize("function", ["abs", "sign", "-"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_functions(dtype, function):
    a = samples(dtype)
    at = read("A", element(), dtype=dtype)
    value = Unary("-", at, dtype) if function == "-" else Call(function, (at,), dtype)
    compare(
        pointwise("f", (buffer("A", "N", dtype=dtype), buffer("O", "N", dtype=dtype, role="output")), value),
        {"A": a, "O": np.zeros_like(a)},
        {"N": a.size},
    )


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "min", "max"])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_floating_operators(dtype, sign):
    a, b = pairs(dtype)
    buffers = (
        buffer("A", "N", dtype=dtype),
        buffer("B", "N", dtype=dtype),
        buffer("O", "N", dtype=dtype, role="output"),
    )
    made = pointwise(
        "f", buffers, Binary(sign, read("A", element(), dtype=dtype), read("B", element(), dtype=dtype), dtype)
    )
    compare(made, {"A": a, "B": b, "O": np.zeros_like(a)}, {"N": a.size})


@pytest.mark.parametrize("dtype", [F32, F64])
def test_floating_remainder(dtype):
    a = np.repeat(np.array([7.0, -7.0, 5.5, 0.0], dtype.value), 4)
    b = np.tile(np.array([2.0, -2.0, 3.0, 0.5], dtype.value), 4)
    buffers = (
        buffer("A", "N", dtype=dtype),
        buffer("B", "N", dtype=dtype),
        buffer("O", "N", dtype=dtype, role="output"),
    )
    made = pointwise(
        "f", buffers, Binary("%", read("A", element(), dtype=dtype), read("B", element(), dtype=dtype), dtype)
    )
    compare(made, {"A": a, "B": b, "O": np.zeros_like(a)}, {"N": a.size}, tolerance=1e-6)


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("dtype", [F32, I64, DType.UINT64, DType.INT8])
def test_comparisons(dtype, sign):
    a, b = pairs(dtype)
    buffers = (
        buffer("A", "N", dtype=dtype),
        buffer("B", "N", dtype=dtype),
        buffer("O", "N", dtype=BOOL, role="output"),
    )
    made = pointwise("f", buffers, op(sign, read("A", element(), dtype=dtype), read("B", element(), dtype=dtype)))
    compare(made, {"A": a, "B": b, "O": np.zeros(a.size, bool)}, {"N": a.size})


@pytest.mark.some(5)
@pytest.mark.parametrize("reduce", ["+", "*", "min", "max"])
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("atomic", [False, True])
def test_reductions_into_memory(dtype, reduce, atomic):
    """Many threads combine into few elements with atomics; without them each into its own."""
    if dtype is BOOL and reduce in ("+", "*"):
        pytest.skip("bool acts as int32 in arithmetic")
    count, bins = 96, 4 if atomic else 96
    rng = np.random.default_rng(1)
    if dtype is BOOL:
        a, o = rng.random(count) < 0.5, np.array([True, False, True, False])
    elif dtype.is_integer:
        a, o = rng.integers(1, 4, count).astype(dtype.value), np.arange(bins).astype(dtype.value)
    else:
        a = rng.choice([0.5, 1.0, 2.0, -1.0], count).astype(np.float32)
        o = np.ones(bins, np.float32)
    if dtype is F64:
        a, o = a.astype(np.float64), o.astype(np.float64)
    elif dtype is F16:
        a, o = a.astype(np.float16).view(np.uint16), o.astype(np.float16).view(np.uint16)
    elif dtype is BF16:
        a, o = ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, o))
    o = np.resize(o, bins)
    where = op("%", element(), bins)
    value = read("A", element(), dtype=dtype)
    value = Cast(value, F32) if dtype in (F16, BF16) else value
    body = when(op("<", element(), size("N")), store("O", (where,), value, reduce, atomic=atomic))
    nest = loop("b", ceil_div(size("N"), 128), loop("t", 128, body, kind="threadIdx.x"), kind="blockIdx.x")
    made = kernel("f", (buffer("A", "N", dtype=dtype), buffer("O", bins, dtype=dtype, role="inout")), ("N",), nest)
    compare(made, {"A": a, "O": o}, {"N": count}, tolerance=1e-2 if dtype in (F16, BF16) else 1e-6)


def test_nan_is_kept_by_atomic_extrema():
    body = loop("t", 4, store("O", (0,), read("A", var("t")), "max", atomic=True), kind="threadIdx.x")
    made = kernel("f", (buffer("A", 4), buffer("O", 1, role="inout")), (), body)
    compare(made, {"A": np.array([1, np.nan, 3, 2], np.float32), "O": np.zeros(1, np.float32)}, {})


FUNCTIONS = """acos acosh asin asinh atan atanh cos cosh cospi sin sinh sinpi tan tanh exp exp2 exp10 expm1 log log2 log10 log1p logb
sqrt rsqrt cbrt rcbrt erf erfc erfcx normcdf lgamma tgamma j0 j1 y0 y1 fabs ceil floor round trunc sigmoid relu abs sign""".split()  # noqa: SIM905


@pytest.mark.some(3)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function):
    a = np.array([0.1, 0.25, 0.5, 0.9, 1.0, 1.3, 2.5, 5.0], np.float32)
    made = pointwise(
        "f", (buffer("A", "N"), buffer("O", "N", role="output")), Call(function, (read("A", element()),), F32)
    )
    compare(made, {"A": a, "O": np.zeros_like(a)}, {"N": a.size}, tolerance=2e-5)


@pytest.mark.parametrize(
    "function", ["ceil", "floor", "round", "trunc", "relu", "abs", "sign", "isnan", "isinf", "isfinite"]
)
def test_functions_at_special_values(function):
    a = samples(F32)
    kind = BOOL if function.startswith("is") else F32
    made = pointwise(
        "f",
        (buffer("A", "N"), buffer("O", "N", dtype=kind, role="output")),
        Call(function, (read("A", element()),), kind),
    )
    compare(made, {"A": a, "O": np.zeros(a.size, storage(kind))}, {"N": a.size})


@pytest.mark.parametrize(
    "function",
    [
        "atan2",
        "copysign",
        "fdim",
        "fdivide",
        "fmax",
        "fmin",
        "fmod",
        "hypot",
        "nextafter",
        "pow",
        "remainder",
        "rhypot",
    ],
)
def test_functions_of_two(function):
    some = np.array([0.5, -1.5, 2.0, 3.25, -0.75], np.float32)
    a, b = np.repeat(some, some.size), np.tile(some, some.size)
    value = Call(function, (read("A", element()), read("B", element())), F32)
    made = pointwise("f", (buffer("A", "N"), buffer("B", "N"), buffer("O", "N", role="output")), value)
    compare(made, {"A": a, "B": b, "O": np.zeros_like(a)}, {"N": a.size}, tolerance=2e-5)


def test_only_the_chosen_branch_reads():
    """A guard keeps a read inside its array; the simulator would report it."""
    where = op("-", element(), 1)
    value = Select(op(">=", where, 0), read("A", where), const(-1.0), F32)
    made = pointwise("f", (buffer("A", "N"), buffer("O", "N", role="output")), value)
    compare(made, {"A": np.arange(5, dtype=np.float32), "O": np.zeros(5, np.float32)}, {"N": 5})
    both = Select(
        op("&&", op("<", where, size("N")), op("&&", op(">=", where, 0), op(">", read("A", where), const(1.0)))),
        const(1.0),
        const(0.0),
        F32,
    )
    compare(
        pointwise("f", made.buffers, both),
        {"A": np.arange(5, dtype=np.float32), "O": np.zeros(5, np.float32)},
        {"N": 5},
    )


def test_index_values_and_floor_division_of_indices():
    value = add(mul(op("//", op("-", element(), 5), 3), 100), op("%", op("-", element(), 5), 3))
    made = pointwise("f", (buffer("O", "N", dtype=I64, role="output"),), value)
    for bits in (32, 64):
        compare(made, {"O": np.zeros(20, np.int64)}, {"N": 20}, bits=bits)


def test_a_hash_of_the_index_wraps():
    value = op("+", mul(element(), Const(6364136223846793005, I64)), Const(1442695040888963407, I64))
    made = pointwise("f", (buffer("O", "N", dtype=I64, role="output"),), value)
    for bits in (32, 64):
        compare(made, {"O": np.zeros(20, np.int64)}, {"N": 20}, bits=bits)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("n", [1, 3, 4, 511, 512, 513, 600])
def test_vectors_and_tails(n, bits):
    at = add(mul(4, element()), var("v"))
    inner = loop(
        "v",
        op("min", 4, op("-", size("N"), mul(4, element()))),
        store("O", (at,), f32("*", const(2.0), read("A", at))),
        kind="vectorize",
    )
    nest = loop("b", ceil_div(size("N"), 512), loop("t", 128, inner, kind="threadIdx.x"), kind="blockIdx.x")
    made = kernel("v", (buffer("A", "N", align=16), buffer("O", "N", role="output", align=16)), ("N",), nest)
    compare(made, {"A": np.arange(n, dtype=np.float32), "O": np.zeros(n, np.float32)}, {"N": n}, bits=bits)


@pytest.mark.parametrize("dtype", REAL)
def test_vectors_of_every_type(dtype):
    lanes = 16 // dtype.bytes if dtype.bytes < 16 else 1
    at = add(mul(lanes, var("t")), var("v"))
    inner = loop(
        "v",
        lanes,
        store("O", (at,), read("A", at, dtype=dtype)),
        store("P", (at,), read("A", at, dtype=dtype), "max"),
        kind="vectorize",
    )
    if dtype in (F16, BF16):
        inner = loop(
            "v",
            lanes,
            store("O", (at,), read("A", at, dtype=dtype)),
            store("P", (at,), Cast(read("A", at, dtype=dtype), F32), "max"),
            kind="vectorize",
        )
    made = kernel(
        "v",
        (
            buffer("A", 32 * lanes, dtype=dtype, align=16),
            buffer("O", 32 * lanes, dtype=dtype, role="output", align=16),
            buffer("P", 32 * lanes, dtype=dtype, role="inout", align=16),
        ),
        (),
        loop("t", 32, inner, kind="threadIdx.x"),
    )
    a = np.resize(samples(dtype), 32 * lanes)
    compare(made, {"A": a, "O": np.zeros_like(a), "P": np.zeros_like(a)}, {})
    assert "tc_load" in emit_cuda(made, SM80).text


def test_shared_memory_with_padding_and_swizzle():
    for more in ({}, {"pad": 4}, {"swizzle": (1, 3)}, {"swizzle": (0, 7)}):
        fill = loop(
            "t", 32, loop("r", 16, store("S", (var("r"), var("t")), read("A", var("r"), var("t")))), kind="threadIdx.x"
        )
        take = loop(
            "u", 16, loop("c", 32, store("O", (var("c"), var("u")), read("S", var("u"), var("c")))), kind="threadIdx.x"
        )
        made = kernel(
            "t",
            (buffer("A", 16, 32), buffer("O", 32, 16, role="output")),
            (),
            Allocate(local("S", 16, 32, scope="shared", **more), Block((fill, Barrier(), take))),
        )
        compare(made, {"A": np.arange(512, dtype=np.float32).reshape(16, 32), "O": np.zeros((32, 16), np.float32)}, {})


def test_a_missing_barrier_is_found():
    fill = loop("t", 64, store("S", (var("t"),), read("A", var("t"))), kind="threadIdx.x")
    take = loop("u", 64, store("O", (var("u"),), read("S", op("-", 63, var("u")))), kind="threadIdx.x")
    made = kernel(
        "t",
        (buffer("A", 64), buffer("O", 64, role="output")),
        (),
        Allocate(local("S", 64, scope="shared"), Block((fill, take))),
    )
    arrays = {"A": np.zeros(64, np.float32), "O": np.zeros(64, np.float32)}
    result, _ = run_simulated(emit_cuda(made, SM80), made, arrays, {}, {})
    assert {finding.kind for finding in result.findings} == {"race"}


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_tails_with_barriers(n):
    at = add(mul(64, var("b")), var("t"))
    extent = op("min", 64, op("-", size("N"), mul(64, var("b"))))
    last = op("-", op("-", extent, 1), var("t"))
    fill = loop("t", extent, store("S", (var("t"),), read("A", at)), kind="threadIdx.x")
    take = loop("t", extent, store("O", (at,), read("S", last)), kind="threadIdx.x")
    inside = Allocate(local("S", 64, scope="shared"), Block((fill, Barrier(), take, Barrier())))
    made = kernel(
        "k",
        (buffer("A", "N"), buffer("O", "N", role="output")),
        ("N",),
        loop("b", ceil_div(size("N"), 64), inside, kind="blockIdx.x"),
    )
    for bits in (32, 64):
        compare(made, {"A": np.arange(n, dtype=np.float32), "O": np.zeros(n, np.float32)}, {"N": n}, bits=bits)


def test_the_first_failed_check_is_recorded():
    where = Cast(read("I", element(), dtype=I32), I64)
    checked = Check(
        op("&&", op("<=", 0, where), op("<", where, size("E"))),
        2,
        (where, element()),
        Block((store("O", (element(),), read("L", where)),)),
    )
    nest = loop(
        "b",
        ceil_div(size("N"), 128),
        loop("t", 128, when(op("<", element(), size("N")), checked), kind="threadIdx.x"),
        kind="blockIdx.x",
    )
    made = kernel(
        "k", (buffer("L", "E"), buffer("I", "N", dtype=I32), buffer("O", "N", role="inout")), ("N", "E"), nest, checks=1
    )
    arrays = {
        "L": np.arange(4, dtype=np.float32),
        "I": np.array([0, 3, 9, 1], np.int32),
        "O": np.full(4, -1, np.float32),
    }
    result, record = run_simulated(emit_cuda(made, SM80), made, arrays, {"N": 4, "E": 4}, {})
    assert result.findings == ()
    assert record[:3].tolist() == [3, 9, 2]
    assert arrays["O"].tolist() == [0.0, 3.0, -1.0, 1.0]


def test_private_workspace_is_one_per_thread():
    tile = local("T", size("M"))
    inner = Allocate(tile, Block((
        loop("j", size("M"), store("T", (var("j"),), read("A", element(), var("j")))),
        store("O", (element(),), const(0.0)),
        loop("j", size("M"), store("O", (element(),), f32("*", read("T", var("j")), read("T", op("-", op("-", size("M"), 1), var("j")))), "+")),
    )))  # fmt: skip
    nest = loop(
        "b",
        ceil_div(size("N"), 128),
        loop("t", 128, when(op("<", element(), size("N")), inner), kind="threadIdx.x"),
        kind="blockIdx.x",
    )
    made = kernel("k", (buffer("A", "N", "M"), buffer("O", "N", role="output")), ("N", "M"), nest)
    compare(
        made,
        {"A": np.random.default_rng(0).random((150, 7), np.float32), "O": np.zeros(150, np.float32)},
        {"N": 150, "M": 7},
        tolerance=1e-5,
        findings=("unwritten-output",),  # of the threads beyond the last element
    )


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_fewer_blocks_than_iterations(blocks, bits):
    """A striding kernel gives the same with any number of blocks; shared memory is not overwritten too early."""
    at = add(mul(64, var("b")), var("t"))
    fill = loop("t", 64, store("S", (var("t"),), read("A", at)), kind="threadIdx.x")
    take = loop("t", 64, store("O", (at,), read("S", op("-", 63, var("t")))), kind="threadIdx.x")
    inside = Allocate(local("S", 64, scope="shared"), Block((fill, Barrier(), take)))
    made = kernel(
        "k",
        (buffer("A", 320), buffer("O", 320, role="output")),
        ("N",),
        loop("b", size("N"), inside, kind="blockIdx.x"),
    )
    source = emit_cuda(made, SM80, bits, large_grid=True)
    fewer = replace(source, launch=replace(source.launch, grid=(int64(blocks), int64(1), int64(1))))
    arrays = {"A": np.arange(320, dtype=np.float32), "O": np.zeros(320, np.float32)}
    result, _ = run_simulated(fewer, made, arrays, {"N": 5}, {})
    assert result.findings == ()
    assert np.array_equal(arrays["O"], arrays["A"].reshape(5, 64)[:, ::-1].ravel())
