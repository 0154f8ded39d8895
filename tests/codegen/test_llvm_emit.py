from __future__ import annotations

import ctypes
import mmap
import platform
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from llvm_kernels import (
    F32,
    ISAS,
    add,
    compare,
    const,
    execute,
    kernel,
    least,
    loop,
    mul,
    op,
    pointwise,
    read,
    sample,
    size,
    target,
    var,
)

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.loops import Allocate, Block, Buffer, Check, If, Intrinsic, Store
from tc_jupyter.program import REAL, Binary, Call, Cast, Const, DType, Read, Select, Unary, int64
from tc_jupyter.runtime import cpu, jit
from tc_jupyter.schedule import tuning

N, M, K, S = size("N"), size("M"), size("K"), size("S")
i, j, k, v = var("i"), var("j"), var("k"), var("v")
NUMBERS = [d for d in REAL if d not in (DType.BOOL, DType.FLOAT16, DType.BFLOAT16)]
ALL = list(REAL)


def tile(name: str, total, width: int):
    return least(width, op("-", total, mul(var(name), width)))


def blocks(total, width: int):
    return op("//", add(total, width - 1), int64(width))


@pytest.mark.some(2)
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.value)
@pytest.mark.parametrize("lanes", [0, 16])
def test_arithmetic(dtype, lanes):
    arrays = {"A": sample(dtype, 83, 1), "B": sample(dtype, 83, 2)}
    for operator in ("+", "-", "*", "/", "%", "min", "max"):
        made = pointwise(lambda a, b, o=operator: op(o, a, b), {"A": dtype, "B": dtype}, dtype, lanes)
        compare(made, {**arrays, "Y": np.zeros(83, dtype.value)}, {"N": 83})


@pytest.mark.parametrize("dtype", [DType.INT32, DType.UINT8, DType.INT64, F32, DType.FLOAT64], ids=lambda d: d.value)
@pytest.mark.parametrize("lanes", [0, 8])
def test_comparisons(dtype, lanes):
    arrays = {"A": sample(dtype, 50, 1), "B": sample(dtype, 50, 2)}
    arrays["B"][::4] = arrays["A"][::4]
    for operator in ("<", "<=", ">", ">=", "==", "!="):
        made = pointwise(lambda a, b, o=operator: op(o, a, b), {"A": dtype, "B": dtype}, DType.BOOL, lanes)
        compare(made, {**arrays, "Y": np.zeros(50, bool)}, {"N": 50})


@pytest.mark.some(5)
@pytest.mark.parametrize("source", ALL, ids=lambda d: d.value)
@pytest.mark.parametrize("isa", ["avx512", "baseline"])
def test_casts(source, isa):
    values = sample(source, 61, 3)
    for result in ALL:
        storage = np.uint16 if result is DType.BFLOAT16 else result.value
        for lanes in (0, 16):
            made = pointwise(lambda a, r=result: a if a.dtype is r else Cast(a, r), {"A": source}, result, lanes)
            compare(made, {"A": values, "Y": np.zeros(61, storage)}, {"N": 61}, isa=isa, rtol=0, atol=0)


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("lanes", [0, 2, 3, 5, 16, 20, 24, 64, 1000])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 97])
def test_widths_and_tails(isa, lanes, n):
    made = pointwise(lambda a, b: op("+", op("*", a, b), const(1.0)), {"A": F32, "B": F32}, F32, lanes)
    arrays = {"A": sample(F32, n, 1), "B": sample(F32, n, 2), "Y": np.full(n, np.nan, "f")}
    compare(made, arrays, {"N": n}, isa=isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "dtype", [DType.BOOL, DType.INT8, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64], ids=lambda d: d.value
)
def test_guarded_reads_stay_inside(isa, dtype):
    # `i > 0 && i + 1 < N ? A[i-1] + ... : A[i]`, in vectors: the canaries of `compare` see writes, the edge reads see values.
    zero = Select(
        op("&&", op(">", i, int64(1)), op("<", add(i, 2), N)),
        Select(
            op(">", read("G", i, dtype=DType.INT32), const(0, DType.INT32)),
            Read("A", (add(i, 2),), dtype),
            Read("A", (add(i, -2),), dtype),
            dtype,
        ),
        Read("A", (i,), dtype),
        dtype,
    )
    for extent, kind in ((N, "serial"), (N, "vectorize")):
        made = kernel(
            [Buffer("A", dtype, (N,)), Buffer("G", DType.INT32, (N,)), Buffer("Y", dtype, (N,), role="output")],
            "N",
            loop("i", extent, Store("Y", (i,), zero), kind=kind),
        )
        for n in (1, 3, 40):
            values = sample(dtype, n, 5)
            compare(made, {"A": values, "G": sample(DType.INT32, n, 6), "Y": np.zeros_like(values)}, {"N": n}, isa=isa)


@pytest.mark.parametrize("isa", ISAS)
def test_short_circuit_never_reads_outside(isa):
    # The guarded position is far outside of any mapped memory.
    far = Read("A", (op("*", i, int64(1 << 40)),), F32)
    guard = op("&&", op("==", i, int64(0)), op(">", far, const(-1e30)))
    other = op("||", op("!=", i, int64(0)), op(">", far, const(-1e30)))
    for kind in ("serial", "vectorize"):
        made = kernel(
            [
                Buffer("A", F32, (N,)),
                Buffer("Y", DType.BOOL, (N,), role="output"),
                Buffer("Z", DType.BOOL, (N,), role="output"),
            ],
            "N",
            loop("i", N, Store("Y", (i,), guard), Store("Z", (i,), other), kind=kind),
        )
        arrays = {"A": np.ones(37, "f"), "Y": np.zeros(37, bool), "Z": np.zeros(37, bool)}
        execute(made, arrays, {"N": 37}, isa=isa)
        assert arrays["Y"].tolist() == [True] + [False] * 36
        assert arrays["Z"].all()


@pytest.mark.parametrize("kind", ["serial", "vectorize"])
@pytest.mark.parametrize("dtype", [DType.INT16, DType.FLOAT16, F32, DType.FLOAT64], ids=lambda d: d.value)
def test_reversed_strided_and_gathered(kind, dtype):
    made = kernel(
        [
            Buffer("A", dtype, (N, M), strided=True),
            Buffer("L", DType.INT32, (M,)),
            Buffer("Y", dtype, (N, M, int64(4)), role="output"),
        ],
        "NM",
        loop(
            "i",
            N,
            loop(
                "j",
                M,
                Store("Y", (i, j, int64(0)), Read("A", (i, op("-", add(M, -1), j)), dtype)),
                Store("Y", (i, j, int64(1)), Read("A", (i, op("//", mul(j, 2), int64(3))), dtype)),
                Store("Y", (i, j, int64(2)), Read("A", (i, Cast(read("L", j, dtype=DType.INT32), DType.INT64)), dtype)),
                Store("Y", (i, j, int64(3)), Read("A", (op("%", j, N), int64(0)), dtype)),
                kind=kind,
            ),
            kind="parallel",
        ),
    )
    for n, m in ((1, 1), (3, 17), (5, 40)):
        arrays = {"A": sample(dtype, (n, m), 1), "Y": np.zeros((n, m, 4), dtype.value)}
        arrays["L"] = np.random.default_rng(1).integers(0, m, m).astype(np.int32)
        compare(made, arrays, {"N": n, "M": m})


def test_every_second_element():
    made = kernel(
        [Buffer("A", F32, (mul(N, 2),)), Buffer("Y", F32, (N,), role="output")],
        "N",
        loop("i", N, Store("Y", (i,), op("max", read("A", mul(i, 2)), read("A", add(mul(i, 2), 1)))), kind="vectorize"),
    )
    for n in (1, 16, 32, 33, 100):
        compare(made, {"A": sample(F32, 2 * n, 1), "Y": np.zeros(n, "f")}, {"N": n})


def test_arguments_may_have_any_strides():
    made = kernel(
        [Buffer("A", F32, (N, M), strided=True), Buffer("Y", F32, (N, M), role="output", strided=True)],
        "NM",
        loop("i", N, loop("j", M, Store("Y", (i, j), read("A", i, j)), kind="vectorize"), kind="parallel"),
    )
    base = np.arange(24 * 30, dtype="f").reshape(24, 30)
    out = np.zeros((30, 24), "f").T
    source = base[::-2, ::3]
    execute(
        made,
        {"A": source, "Y": out[: source.shape[0], : source.shape[1]]},
        {"N": source.shape[0], "M": source.shape[1]},
    )
    np.testing.assert_array_equal(out[: source.shape[0], : source.shape[1]], source)


@pytest.mark.some(3)
@pytest.mark.parametrize("operator", ["+", "*", "min", "max"])
@pytest.mark.parametrize("dtype", [DType.INT32, DType.UINT8, DType.FLOAT16, F32, DType.FLOAT64], ids=lambda d: d.value)
@pytest.mark.parametrize("form", ["serial", "vector", "unrolled"])
def test_reductions(operator, dtype, form):
    value = read("A", i, k, dtype=dtype)
    start = const({"+": 0, "*": 1}.get(operator, 5), dtype)
    if dtype is DType.FLOAT16:
        start = Cast(const(start.value), dtype)
    if form == "serial":
        body = loop("k", K, Store("Y", (i,), value, reduce=operator))
    elif form == "vector":
        at = add(mul(var("o"), 32), v)
        store = Store("Y", (i,), read("A", i, at, dtype=dtype), reduce=operator)
        body = loop("o", blocks(K, 32), loop("v", tile("o", K, 32), store, kind="vectorize"))
    else:
        at = add(mul(var("o"), 4), v)
        store = Store("Y", (i,), read("A", i, at, dtype=dtype), reduce=operator)
        body = loop("o", blocks(K, 4), loop("v", tile("o", K, 4), store, kind="unroll"))
    made = kernel(
        [Buffer("A", dtype, (N, K)), Buffer("Y", dtype, (N,), role="output")],
        "NK",
        loop("i", N, Store("Y", (i,), start), body, kind="parallel"),
    )
    rng = np.random.default_rng(3)
    for extent in (0, 1, 31, 100):
        values = rng.integers(0, 3, (3, extent)) + 1
        values = (values / 2 if dtype.is_float else values).astype(dtype.value)
        if dtype.is_float and extent == 31:
            values[1, 17] = np.nan
        if operator == "*":
            values = np.where(rng.random(values.shape) < 0.9, 1, values).astype(dtype.value)
        compare(made, {"A": values, "Y": np.zeros(3, dtype.value)}, {"N": 3, "K": extent}, rtol=1e-5)


def gemm(rows: int, columns: int, dtype: DType = F32):
    """A register tile, as the schedules make it."""
    ii, jj = var("ii"), var("jj")
    row, column = add(mul(var("io"), rows), ii), add(mul(var("jo"), columns), jj)
    acc = Buffer("acc", dtype, (int64(rows), int64(columns)), "register")

    def nest(store):
        inner = loop("jj", tile("jo", N, columns), store, kind="vectorize")
        return loop("ii", tile("io", M, rows), inner, kind="unroll")

    product = op("*", read("A", row, k, dtype=dtype), read("B", k, column, dtype=dtype))
    body = Allocate(
        acc,
        Block(
            (
                nest(Store("acc", (ii, jj), const(0, dtype))),
                loop("k", K, nest(Store("acc", (ii, jj), product, reduce="+"))),
                nest(Store("C", (row, column), Read("acc", (ii, jj), dtype))),
            )
        ),
    )
    return kernel(
        [Buffer("A", dtype, (M, K)), Buffer("B", dtype, (K, N)), Buffer("C", dtype, (M, N), role="output")],
        "MNK",
        loop("io", blocks(M, rows), loop("jo", blocks(N, columns), body), kind="parallel"),
    )


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (12, 32, 7), (13, 33, 5), (25, 63, 9), (5, 40, 0)])
def test_register_tile(isa, shape):
    m, n, depth = shape
    arrays = {
        "A": np.random.rand(m, depth).astype("f"),
        "B": np.random.rand(depth, n).astype("f"),
        "C": np.full((m, n), np.nan, "f"),
    }
    compare(gemm(12, 32), arrays, {"M": m, "N": n, "K": depth}, isa=isa, rtol=1e-5)


def test_register_tile_of_integers():
    arrays = {
        "A": sample(DType.INT32, (9, 11), 1),
        "B": sample(DType.INT32, (11, 21), 2),
        "C": np.zeros((9, 21), np.int32),
    }
    compare(gemm(4, 16, DType.INT32), arrays, {"M": 9, "N": 21, "K": 11})


def test_accumulation_into_existing_content():
    store = Store("C", (i, j), op("*", read("A", i, k), read("B", k, j)), reduce="+")
    made = kernel(
        [Buffer("A", F32, (M, K)), Buffer("B", F32, (K, N)), Buffer("C", F32, (M, N), role="inout")],
        "MNK",
        loop("i", M, loop("k", K, loop("j", N, store, kind="vectorize")), kind="parallel"),
    )
    arrays = {"A": np.random.rand(5, 7).astype("f"), "B": np.random.rand(7, 50).astype("f"), "C": np.ones((5, 50), "f")}
    compare(made, arrays, {"M": 5, "N": 50, "K": 7}, rtol=1e-5)


@pytest.mark.parametrize("count", [3, 5000])
@pytest.mark.parametrize("kind", ["serial", "vectorize"])
def test_temporaries(count, kind):
    # Small ones live on the stack, large ones in the thread's workspace; every iteration of a parallel loop has its own.
    extent = int64(count) if count < 10 else N
    made = kernel(
        [Buffer("A", F32, (M, N)), Buffer("Y", F32, (M, N), role="output")],
        "MN",
        loop(
            "i",
            M,
            Allocate(
                Buffer("t", F32, (extent,), "local"),
                Block(
                    (
                        loop("j", extent, Store("t", (j,), op("*", read("A", i, j), const(2.0))), kind=kind),
                        loop(
                            "j",
                            extent,
                            Store("Y", (i, j), op("+", read("t", op("-", add(extent, -1), j)), const(1.0))),
                            kind=kind,
                        ),
                    )
                ),
            ),
            kind="parallel",
            chunk=1,
        ),
    )
    n = min(count, 300)
    compare(made, {"A": sample(F32, (9, n), 1), "Y": np.zeros((9, n), "f")}, {"M": 9, "N": n})


@pytest.mark.parametrize("chunk", [1, 4, 7, 1000])
@pytest.mark.parametrize("sizes", [(3, 5, 4), (1, 6, 1), (4, 1, 9), (2, 3, 0), (0, 3, 2)], ids=str)
def test_tasks_begin_and_end_inside_runs_of_the_innermost_parallel_loop(chunk, sizes):
    m, n, depth = sizes
    nest = loop("k", K, Store("Y", (i, j, k), op("+", read("A", i, j, k), const(1.0))), kind="parallel", low=1)
    nest = loop("i", M, loop("j", N, nest, kind="parallel", low=2), kind="parallel", chunk=chunk)
    shape = (M, add(N, 2), add(K, 1))
    made = kernel([Buffer("A", F32, shape), Buffer("Y", F32, shape, role="output")], "MNK", nest)
    arrays = {"A": sample(F32, (m, n + 2, depth + 1), 1), "Y": np.zeros((m, n + 2, depth + 1), "f")}
    compare(made, arrays, {"M": m, "N": n, "K": depth})


def test_temporary_inside_a_vector():
    t = Buffer("t", F32, (int64(2),), "local")
    body = Allocate(
        t,
        Block(
            (
                Store("t", (int64(0),), read("A", i)),
                Store("t", (int64(1),), op("*", read("t", int64(0)), const(3.0))),
                If(op(">", read("A", i), const(0.0)), Block((Store("t", (int64(0),), const(7.0)),))),
                Store("Y", (i,), op("+", read("t", int64(0)), read("t", int64(1)))),
            )
        ),
    )
    made = kernel(
        [Buffer("A", F32, (N,)), Buffer("Y", F32, (N,), role="output")], "N", loop("i", N, body, kind="vectorize")
    )
    compare(made, {"A": sample(F32, 45, 1), "Y": np.zeros(45, "f")}, {"N": 45})


@pytest.mark.parametrize("isa", ISAS)
def test_masked_stores(isa):
    positive = op(">", read("A", i), const(0.0))
    body = (
        If(positive, Block((Store("Y", (i,), read("A", i)),)), Block((Store("Y", (i,), const(-1.0), reduce="+"),))),
        If(op("<", i, M), Block((Store("S", (), read("A", i), reduce="max"),))),
    )
    made = kernel(
        [Buffer("A", F32, (N,)), Buffer("Y", F32, (N,), role="inout"), Buffer("S", F32, (), role="inout")],
        "NM",
        loop("i", N, *body, kind="vectorize"),
    )
    values = np.random.default_rng(0).standard_normal(75).astype("f")
    compare(made, {"A": values, "Y": np.full(75, 5, "f"), "S": np.full((), -9, "f")}, {"N": 75, "M": 60}, isa=isa)


@pytest.mark.parametrize("grain", [None, 1, 100])
def test_collapsed_parallel_loops(monkeypatch, grain):
    if grain is not None:  # many tasks for little work
        monkeypatch.setattr(tuning, "ALONE", 0)
        monkeypatch.setattr(tuning, "GRAIN", grain)
    made = kernel(
        [Buffer("A", F32, (M, N, K)), Buffer("Y", F32, (M, N, K), role="output")],
        "MNK",
        loop(
            "i",
            add(M, -1),
            loop(
                "j",
                N,
                loop("k", K, Store("Y", (i, j, k), op("+", read("A", i, j, k), const(1.0)))),
                kind="parallel",
                low=0,
            ),
            kind="parallel",
            low=1,
        ),
    )
    for shape in ((3, 4, 5), (1, 4, 5), (30, 100, 40)):
        m, n, depth = shape
        if m * n * depth < 100:
            compare(made, {"A": sample(F32, shape, 1), "Y": np.zeros(shape, "f")}, {"M": m, "N": n, "K": depth})
        else:
            arrays = {"A": np.ones(shape, "f"), "Y": np.zeros(shape, "f")}
            execute(made, arrays, {"M": m, "N": n, "K": depth})
            assert (arrays["Y"][1:] == 2).all()
            assert (arrays["Y"][0] == 0).all()


def test_checks_record_the_first_failure_and_skip_the_store():
    where = Cast(read("L", i, dtype=DType.INT32), DType.INT64)
    good = op("&&", op(">=", where, int64(0)), op("<", where, M))
    made = kernel(
        [Buffer("A", F32, (M,)), Buffer("L", DType.INT32, (N,)), Buffer("Y", F32, (N,), role="output")],
        "NM",
        loop(
            "i", N, Check(good, 3, (i, where), Block((Store("Y", (i,), Read("A", (where,), F32)),))), kind="vectorize"
        ),
        checks=4,
    )
    arrays = {"A": np.arange(5, dtype="f"), "L": np.array([1, 2, -7, 4, 9], np.int32), "Y": np.full(5, -1, "f")}
    record = execute(made, arrays, {"N": 5, "M": 5})
    assert record[0] == 4
    assert record[2:4] == [2, -7]
    assert arrays["Y"].tolist() == [1, 2, -1, 4, -1]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT64, DType.FLOAT16, F32, DType.FLOAT64], ids=lambda d: d.value)
def test_atomic_stores(dtype):
    value = Cast(const(1.0), dtype) if dtype is DType.FLOAT16 else const(1, dtype)
    made = kernel(
        [Buffer("L", DType.INT32, (N,)), Buffer("Y", dtype, (int64(4),), role="inout")],
        "N",
        loop(
            "i",
            N,
            Store("Y", (Cast(read("L", i, dtype=DType.INT32), DType.INT64),), value, reduce="+", atomic=True),
            kind="parallel",
            chunk=7,
        ),
    )
    arrays = {"L": (np.arange(400) % 4).astype(np.int32), "Y": np.zeros(4, dtype.value)}
    execute(made, arrays, {"N": 400})
    assert arrays["Y"].tolist() == [100] * 4


def test_scalars_and_sizes_as_values():
    for dtype in (DType.BOOL, DType.INT8, DType.UINT64, DType.FLOAT16, DType.BFLOAT16, F32, DType.FLOAT64):
        s = read("s", dtype=dtype)
        result = DType.FLOAT64
        made = kernel(
            [Buffer("Y", result, (N,), role="output")],
            "N",
            loop("i", N, Store("Y", (i,), op("+", Cast(s, result), op("*", Cast(i, result), Cast(N, result))))),
            scalars=(("s", dtype),),
        )
        compare(made, {"Y": np.zeros(9)}, {"N": 9}, {"s": True if dtype is DType.BOOL else 3})


@pytest.mark.parametrize("lanes", [0, 16])
def test_logic_and_choice(lanes):
    def value(a, b):
        test = op(
            "||", op("&&", op("<", a, b), Unary("!", op("==", a, const(0.0)), DType.BOOL)), op(">", b, const(2.0))
        )
        return Select(test, Unary("-", a, F32), Select(op("!=", a, a), const(4.0), b, F32), F32)

    made = pointwise(value, {"A": F32, "B": F32}, F32, lanes)
    compare(made, {"A": sample(F32, 70, 1), "B": sample(F32, 70, 2), "Y": np.zeros(70, "f")}, {"N": 70})


def test_min_and_max_of_a_kernel_name_and_odd_names():
    made = kernel(
        [Buffer("threadIdx", F32, (N,)), Buffer("größe 😀", F32, (N,), role="output")],
        "N",
        loop("for", N, Store("größe 😀", (var("for"),), read("threadIdx", var("for")), statement="größe")),
    )
    compare(made, {"threadIdx": sample(F32, 5, 1), "größe 😀": np.zeros(5, "f")}, {"N": 5})
    source = emit_llvm(made, target())
    line, statement = source.line_map[0]
    assert statement == "größe"
    assert "größe" in source.text.splitlines()[line - 1]


def test_unknown_intrinsics_are_a_bug():
    made = kernel([Buffer("Y", F32, (N,), role="output")], "N", Intrinsic("wgmma", (Read("Y", (int64(0),), F32),)))
    with pytest.raises(RuntimeError, match="wgmma"):
        emit_llvm(made, target())


def test_text_is_readable():
    source = emit_llvm(gemm(12, 32), target("avx512"))
    assert source.text.startswith("; passes: vector, addresses as written\n")
    assert "; for k in 0:K" in source.text
    assert "acc[ii, jj] += A[io * 12 + ii, k] * B[k, jo * 32 + jj]" in source.text
    assert "%A.v" in source.text
    assert [a.kind for a in source.arguments] == ["buffer"] * 3 + ["size"] * 3


def test_tasks_do_not_depend_on_threads():
    one, many = (emit_llvm(gemm(12, 32), t) for t in (target("avx512"), replace(target("avx512"), threads=64)))
    assert one.text == many.text


@pytest.mark.parametrize("isa", ISAS)
def test_little_work_is_one_task(isa):
    x = read("A", i, j)
    made = kernel(
        [Buffer("A", F32, (M, N)), Buffer("Y", F32, (M, N), role="output")],
        "MN",
        loop("i", M, loop("j", N, Store("Y", (i, j), op("*", x, x)), kind="vectorize"), kind="parallel"),
    )
    source = emit_llvm(made, target(isa))
    loaded = cpu.load(source, None, target(isa))

    def count(*sizes: int) -> int:
        return loaded.tasks((ctypes.c_int64 * 4)(0, 0, *sizes))[0]

    assert [count(m, n) for m, n in ((0, 5), (1, 1), (17, 1023), (511, 17))] == [0, 1, 1, 1]
    assert count(4096, 4096) > 64
    assert count(1, 1 << 24) > 64


def test_functions_of_libraries():
    for function in ("lgamma", "erfcx", "cbrt", "exp10"):
        for lanes in (0, 16):
            made = pointwise(lambda a, f=function: Call(f, (a,), F32), {"A": F32}, F32, lanes)
            values = (np.random.default_rng(0).random(40) * 4 + 0.1).astype("f")
            compare(made, {"A": values, "Y": np.zeros(40, "f")}, {"N": 40})


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT16, F32, DType.FLOAT64], ids=lambda d: d.value)
def test_reads_across_rows_are_turned_in_registers(isa, dtype):
    # Packing of a transposed operand: P[jo, k, jj] = B[jo*32 + jj, k].
    jo, jj = var("jo"), var("jj")
    made = kernel(
        [Buffer("B", dtype, (N, K)), Buffer("P", dtype, (blocks(N, 32), K, int64(32)), role="output")],
        "NK",
        loop(
            "jo",
            blocks(N, 32),
            loop(
                "k",
                K,
                loop(
                    "jj",
                    tile("jo", N, 32),
                    Store("P", (jo, k, jj), Read("B", (add(mul(jo, 32), jj), k), dtype)),
                    kind="vectorize",
                ),
            ),
            kind="parallel",
        ),
    )
    for n, depth in ((32, 16), (70, 37), (3, 5)):
        arrays = {"B": sample(dtype, (n, depth), 1), "P": np.zeros(((n + 31) // 32, depth, 32), dtype.value)}
        compare(made, arrays, {"N": n, "K": depth}, isa=isa)
    assert "gather" not in emit_llvm(made, target(isa)).text.split("end.k.o")[0] or isa == "baseline"


def test_deep_expressions_are_a_diagnostic():
    value = read("A", i)
    for _ in range(3000):
        value = Unary("-", value, F32)
    made = kernel(
        [Buffer("A", F32, (N,)), Buffer("Y", F32, (N,), role="output")], "N", loop("i", N, Store("Y", (i,), value))
    )
    with pytest.raises(CompileError) as caught:
        emit_llvm(made, target())
    assert caught.value.diagnostics[0].code.number == "TC503"


def innermost(made, isa: str, pattern: str) -> str:
    """The block of the assembly with most matches."""
    text = jit.assembly(emit_llvm(made, target(isa)).text, cpu.options_of(target(isa)))
    blocks = re.split(r"\n\.L\w+:", text)
    return max(blocks, key=lambda block: len(re.findall(pattern, block)))


@pytest.mark.skipif(not jit.host()[0].startswith("x86_64"), reason="reads x86 assembly")
@pytest.mark.parametrize(("isa", "rows", "columns"), [("avx512", 12, 32), ("avx512", 8, 48), ("avx2", 6, 16)])
def test_register_tiles_do_not_spill(isa, rows, columns):
    if target(isa).vector_bits < {"avx512": 512, "avx2": 256}[isa]:
        pytest.skip(f"no {isa} here")
    body = innermost(gemm(rows, columns), isa, r"vfmadd")
    vectors = rows * columns * 32 // target(isa).vector_bits
    assert len(re.findall(r"vfmadd\w+ps", body)) % vectors == 0
    assert not re.search(r"[xyz]mm\d+, -?\d*\(%rsp\)|\(%rsp\), %[xyz]mm", body)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("n", [1, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 1000])
def test_streams_overlap_and_align(isa, n):
    # Two outputs of different alignment, one of them with streaming stores that a tiny cache makes come true.
    made = kernel(
        [
            Buffer("A", F32, (add(N, 1),)),
            Buffer("Y", F32, (add(N, 3),), role="output"),
            Buffer("Z", F32, (N,), role="output"),
        ],
        "N",
        loop(
            "i",
            N,
            Store("Y", (add(i, 3),), read("A", add(i, 1)), streaming=True),
            Store("Z", (op("-", add(i, 1), int64(1)),), op("*", read("A", i), const(2.0)), streaming=True),
            kind="vectorize",
        ),
    )
    small = replace(target(isa), llc_bytes=16)
    source = emit_llvm(made, small)
    assert "vectors of" in source.text
    if small.arch.startswith("x86_64"):
        assert "!nontemporal" in source.text
        assert "sfence" in source.text
    arrays = {"A": np.arange(n + 1, dtype="f"), "Y": np.full(n + 3, -1, "f"), "Z": np.zeros(n, "f")}
    loaded = cpu.load(source, None, small)
    for shift in range(3):
        out = np.full(n + 3 + shift, -1, "f")
        slots = (ctypes.c_int64 * 4)(arrays["A"].ctypes.data, out[shift:].ctypes.data, arrays["Z"].ctypes.data, n)
        loaded.run(slots)
        assert (out[: shift + 3] == -1).all()
        np.testing.assert_array_equal(out[shift + 3 :], arrays["A"][1:])
        np.testing.assert_array_equal(arrays["Z"], arrays["A"][:-1] * 2)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="masks of AVX-512")
def test_a_short_row_takes_vectors_of_one_register():
    """A row of 7 under a mask of 32 lanes would be two registers, and one of 56 is 4 registers and not 6."""
    row = loop("i", N, Store("Y", (i,), op("*", read("A", i), const(2.0))), kind="vectorize")
    made = kernel([Buffer("A", F32, (N,)), Buffer("Y", F32, (N,), role="output")], "N", row)
    text = emit_llvm(made, target("avx512")).text
    assert "masked.store.v16f32" in text
    assert "masked.store.v32f32" not in text


def rows_of_tiles(lanes: int):
    """Columns of A, four rows of `lanes` columns at a time; the last rows may be fewer."""
    row, column = add(var("r"), mul(var("io"), 4)), add(var("l"), mul(j, lanes))
    tile, place = Buffer("t", F32, (int64(4), int64(lanes)), "register"), (var("r"), var("l"))
    start = loop("r", 4, loop("l", lanes, Store("t", place, const(2.0)), kind="vectorize"), kind="unroll")
    store = Store("Y", (row, column), op("*", read("A", row, column), read("t", *place)), streaming=True)
    here = loop("l", lanes, store, kind="vectorize")
    rows = loop("r", least(op("-", M, mul(var("io"), 4)), 4), here, kind="unroll")
    body = loop("j", op("//", N, int64(lanes)), Allocate(tile, Block((start, rows))))
    return kernel(
        [Buffer("A", F32, (M, N)), Buffer("Y", F32, (M, N), role="output")],
        "MN",
        loop("io", blocks(M, 4), body, kind="parallel"),
    )


def test_only_whole_lines_go_past_the_caches():
    """And not those of the last rows, which are fewer than four."""
    small = replace(target(), llc_bytes=16)
    if small.arch.startswith("x86_64"):
        assert emit_llvm(rows_of_tiles(16), small).text.count("!nontemporal") == 4
        assert "!nontemporal" not in emit_llvm(rows_of_tiles(8), small).text
    for lanes in (8, 16):
        arrays = {"A": sample(F32, (7, 64)), "Y": np.zeros((7, 64), "f")}
        compare(rows_of_tiles(lanes), arrays, {"M": 7, "N": 64})


@pytest.mark.parametrize("kinds", [("vectorize",), ("serial", "unroll")], ids=["lanes", "written out"])
def test_a_sum_over_a_written_out_loop_has_partial_results(kinds):
    """One local sum of a row: the lanes of the loop over it are added up at the end only."""
    outer = loop("k", K, kind="serial") if len(kinds) > 1 else None
    inner = loop(
        "l",
        4 if outer else K,
        Store("t", (int64(0),), read("A", i, add(mul(k, 4), var("l")) if outer else var("l")), "+"),
        kind=kinds[-1],
    )
    body = replace(outer, body=Block((inner,))) if outer else inner
    start, end = Store("t", (int64(0),), const(0.0)), Store("Y", (i,), read("t", int64(0)))
    tile = Allocate(Buffer("t", F32, (int64(1),), "local"), Block((start, body, end)))
    width = op("*", K, int64(4)) if outer else K
    made = kernel(
        [Buffer("A", F32, (M, width)), Buffer("Y", F32, (M,), role="output")], "KM", loop("i", M, tile, kind="parallel")
    )
    assert "t.lanes" in emit_llvm(made, target()).text
    rng = np.random.default_rng(0)
    for depth in (1, 5, 70):
        arrays = {"A": rng.random((3, depth * (4 if outer else 1)), "f"), "Y": np.zeros(3, "f")}
        compare(made, arrays, {"M": 3, "K": depth}, rtol=1e-5)


@pytest.mark.parametrize("isa", ISAS)
def test_small_sums_are_registers_from_the_start(isa):
    """No second copy of a local tile, and the sums are written back where the tile is read."""
    tile = Buffer("t", F32, (int64(4), int64(16)), "local")
    row, lane = var("r"), var("l")
    a, b = read("A", add(row, mul(i, 4)), k), read("B", k, add(lane, mul(j, 16)))
    place = (add(row, mul(i, 4)), add(lane, mul(j, 16)))

    def tiles(*body):
        return loop("r", 4, loop("l", 16, *body, kind="vectorize"), kind="unroll")

    body = Block(
        (
            tiles(Store("t", (row, lane), const(0.0))),
            loop("k", K, tiles(Store("t", (row, lane), op("*", a, b), "+"))),
            tiles(Store("Y", place, read("t", row, lane))),
        )
    )
    made = kernel(
        [Buffer("A", F32, (M, K)), Buffer("B", F32, (K, N)), Buffer("Y", F32, (M, N), role="output")],
        "KMN",
        loop("i", op("//", M, int64(4)), loop("j", op("//", N, int64(16)), Allocate(tile, body)), kind="parallel"),
    )
    text = emit_llvm(made, target(isa)).text
    assert ".acc" not in text
    assert text.count(" = alloca ") == 1
    rng = np.random.default_rng(0)
    arrays = {"A": rng.random((8, 5), "f"), "B": rng.random((5, 32), "f"), "Y": np.zeros((8, 32), "f")}
    compare(made, arrays, {"M": 8, "N": 32, "K": 5}, isa=isa)


def test_a_test_moves_into_the_branch_that_needs_it():
    """The sums are printed once for each branch, only the rows that are written are in two versions."""
    tile = Buffer("t", F32, (int64(4),), "register")
    row = var("r")
    left = least(op("-", M, mul(i, 4)), 4)
    sums = Block(
        (
            loop("r", 4, Store("t", (row,), const(0.0)), kind="unroll"),
            loop("k", K, loop("r", 4, Store("t", (row,), read("A", k, row), "+"), kind="unroll")),
            loop("r", left, Store("Y", (add(row, mul(i, 4)), j), read("t", row)), kind="unroll"),
        )
    )
    inside = Block((loop("j", N, Allocate(tile, sums)),))
    other = Block((loop("j", op("*", N, int64(2)), Allocate(tile, sums)),))
    made = kernel(
        [Buffer("A", F32, (K, int64(4))), Buffer("Y", F32, (M, op("*", N, int64(2))), role="output")],
        "KMN",
        loop("i", blocks(M, 4), If(op("<", N, int64(9)), inside, other), kind="parallel"),
    )
    text = emit_llvm(made, target()).text
    assert text.count("; for k in 0:K") == 2
    assert text.count("== 4\n") == 2
    for n in (3, 12):
        arrays = {"A": np.random.default_rng(n).random((6, 4), "f"), "Y": np.zeros((7, 2 * n), "f")}
        compare(made, arrays, {"M": 7, "N": n, "K": 6})


def test_a_vector_loop_that_the_schedule_cut_is_joined():
    source = emit_llvm(pointwise(lambda a: op("*", a, const(2.0)), {"A": F32}, F32, 16), target())
    assert "the last one overlaps" in source.text


def test_updates_in_place_do_not_overlap():
    made = kernel(
        [Buffer("Y", F32, (N,), role="inout")],
        "N",
        loop("i", N, Store("Y", (i,), op("*", read("Y", i), const(2.0))), kind="vectorize"),
    )
    assert "overlaps" not in emit_llvm(made, target()).text
    compare(made, {"Y": sample(F32, 77, 1)}, {"N": 77})


def test_plain_loops_become_vectors_only_where_that_is_safe():
    def passes(*body, sizes="N", extra=()):
        made = kernel(
            [Buffer("A", F32, (add(N, 1),)), *extra, Buffer("Y", F32, (add(N, 1),), role="inout")],
            sizes,
            loop("i", N, *body),
        )
        return emit_llvm(made, target()).text.splitlines()[0].partition(",")[0]

    more = op("+", read("Y", i), const(1.0))
    assert passes(Store("Y", (i,), read("A", i))) == "; passes: vector"
    assert passes(Store("Y", (int64(0),), read("A", i), reduce="max")) == "; passes: vector"
    # A recurrence, a scatter, two reductions into one place: in order.
    assert passes(Store("Y", (add(i, 1),), more)) == "; passes: loops"
    assert passes(Store("Y", (op("%", mul(i, 3), N),), op("*", read("A", i), const(2.0)))) == "; passes: loops"
    # What only moves elements is short: LLVM would write its loops out.
    assert passes(Store("Y", (op("%", mul(i, 3), N),), read("A", i))) == "; passes: vector"
    twice = Store("Y", (int64(0),), read("A", i), reduce="max")
    assert passes(twice, replace(twice, reduce="+")) == "; passes: loops"


@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16], ids=lambda d: d.value)
def test_tiles_of_other_types(dtype):
    made = gemm(4, 16, dtype)
    if dtype.compute is not dtype:
        jj, ii = var("jj"), var("ii")
        row, column = add(mul(var("io"), 4), ii), add(mul(var("jo"), 16), jj)
        product = op("*", read("A", row, k, dtype=dtype), read("B", k, column, dtype=dtype))
        start = Store("C", (row, column), Cast(const(0.0), dtype))
        inner = loop(
            "jj",
            tile("jo", N, 16),
            start,
            loop("k", K, Store("C", (row, column), product, reduce="+")),
            kind="vectorize",
        )
        made = kernel(
            [Buffer("A", dtype, (M, K)), Buffer("B", dtype, (K, N)), Buffer("C", dtype, (M, N), role="output")],
            "MNK",
            loop(
                "io",
                blocks(M, 4),
                loop("jo", blocks(N, 16), loop("ii", tile("io", M, 4), inner, kind="unroll")),
                kind="parallel",
            ),
        )
    m, n, depth = 7, 21, 9
    rng = np.random.default_rng(0)
    a, b = ((rng.integers(0, 4, s) / 4).astype("f") for s in ((m, depth), (depth, n)))
    store = (
        (lambda x: (x.view(np.uint32) >> 16).astype(np.uint16))
        if dtype is DType.BFLOAT16
        else (lambda x: x.astype(dtype.value))
    )
    c = np.zeros((m, n), np.uint16 if dtype is DType.BFLOAT16 else dtype.value)
    compare(made, {"A": store(a), "B": store(b), "C": c}, {"M": m, "N": n, "K": depth})


def before_a_forbidden_page(array: np.ndarray) -> np.ndarray:
    """A copy of `array` that ends where the next byte must not be read."""
    page = mmap.PAGESIZE
    whole = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, whole + page)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + whole), page, 0) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, whole - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages as Linux does")
@pytest.mark.parametrize("value", ["i <= j ? Z(i,k) : X(i,j)", "i <= j ? Z(i,k) * X(i,j) : 0"])
@pytest.mark.parametrize("rows", [17, 40])
def test_a_condition_that_holds_beyond_the_last_column_only_reads_nothing(value, rows):
    """Row `i` of `Z` exists where `i <= j` for a column `j`; the lanes behind the last column have larger numbers."""
    text = f"def f(float(M,N) X, float(N,N) Z) -> (Y) {{ Y(i,j) +=! {value} where k in 0:N, i in 0:M, j in 0:N }}"
    rng = np.random.default_rng(2)
    x, z = rng.integers(-3, 4, (rows, 17)).astype("f4"), rng.integers(-3, 4, (17, 17)).astype("f4")
    found = tc.compile(text, target="cpu").f(before_a_forbidden_page(x), before_a_forbidden_page(z))
    np.testing.assert_array_equal(found, tc.compile(text, target="interpreter").f(x, z))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages as Linux does")
@pytest.mark.parametrize("columns", [1, 15, 17, 26, 31, 33, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_products_read_nothing_beyond_the_last_row(columns, dtype):
    """Vectors of a row are read whole where the array goes on behind it."""
    kind = {"float32": "float", "float64": "double"}.get(dtype, dtype)
    text = f"def f({kind}(B,M,K) X, {kind}(B,K,N) Y) -> (Z) {{ Z(b,i,j) +=! X(b,i,k) * Y(b,k,j) }}"
    rng = np.random.default_rng(columns)
    x, y = (rng.integers(-3, 4, (2, *shape)).astype(dtype) for shape in ((20, 5), (5, columns)))
    found = tc.compile(text, target="cpu").f(before_a_forbidden_page(x), before_a_forbidden_page(y))
    np.testing.assert_array_equal(found, x @ y)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages as Linux does")
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("rows", "count"), [(1, 1), (3, 4), (2, 40)])
def test_rows_of_later_look_ups_are_fetched_and_no_index_beyond_the_last_is_read(isa, rows, count):
    lanes = 16
    position = Cast(read("I", i, k, dtype=DType.INT32), DType.INT64)
    made = kernel(
        [
            Buffer("E", F32, (N, int64(lanes))),
            Buffer("I", DType.INT32, (M, K)),
            Buffer("Y", F32, (M, int64(lanes)), role="inout"),
        ],
        "NMK",
        loop(
            "i",
            M,
            loop(
                "k",
                K,
                loop("j", int64(lanes), Store("Y", (i, j), read("E", position, j), reduce="+"), kind="vectorize"),
            ),
        ),
    )
    small = replace(target(isa), l2_bytes=16)
    source = emit_llvm(made, small)
    assert "llvm.prefetch" in source.text
    rng = np.random.default_rng(0)
    table = rng.random((50, lanes), dtype="f")
    indices = before_a_forbidden_page(rng.integers(0, 50, (rows, count)).astype("i4"))
    out = np.zeros((rows, lanes), "f")
    slots = (ctypes.c_int64 * 6)(table.ctypes.data, indices.ctypes.data, out.ctypes.data, 50, rows, count)
    cpu.load(source, None, small).run(slots)
    np.testing.assert_allclose(out, table[indices].sum(1), rtol=1e-5)


def test_only_look_ups_are_fetched_ahead():
    assert "llvm.prefetch" not in emit_llvm(pointwise(lambda a: a, {"A": F32}, F32, 16), target()).text
    assert "llvm.prefetch" not in emit_llvm(gemm(12, 32), target()).text


def products(shared: bool):
    """A batch of products in tiles of 4 rows by 16 columns; `shared`: all have the same second operand."""
    b, ii, jj = var("b"), var("ii"), var("jj")
    row, column = add(mul(var("io"), 4), ii), add(mul(var("jo"), 16), jj)
    acc = Buffer("acc", F32, (int64(4), int64(16)), "register")

    def nest(store):
        inner = loop("jj", tile("jo", N, 16), store, kind="vectorize")
        return loop("ii", tile("io", M, 4), inner, kind="unroll")

    second = read("B", k, column) if shared else read("B", b, k, column)
    product = op("*", read("A", b, row, k), second)
    add_up = loop("k", K, nest(Store("acc", (ii, jj), product, reduce="+")))
    clear, copy = nest(Store("acc", (ii, jj), const(0))), nest(Store("C", (b, row, column), Read("acc", (ii, jj), F32)))
    body = Allocate(acc, Block((clear, add_up, copy)))
    items = loop("b", S, loop("io", blocks(M, 4), loop("jo", blocks(N, 16), body)), kind="parallel")
    operands = [Buffer("A", F32, (S, M, K)), Buffer("B", F32, (K, N) if shared else (S, K, N))]
    return kernel([*operands, Buffer("C", F32, (S, M, N), role="output")], "SMNK", items)


def test_a_batch_of_products_fetches_the_operands_of_the_next_one():
    made = products(shared=False)
    # two operands, in full tiles and in others; where masks cost time there are tiles that overlap too
    features = target().features | {"avx512f", "avx512vl", "avx512bw"}
    masks = replace(target(), features=features, vector_bits=512, vector_registers=32)
    assert emit_llvm(made, masks).text.count("call void @llvm.prefetch") == 4
    assert emit_llvm(made, target()).text.count("call void @llvm.prefetch") == (4 if target().free_masks else 8)
    assert "llvm.prefetch" not in emit_llvm(products(shared=True), target()).text
    m, n, depth, items = 9, 21, 5, 3
    arrays = {
        "A": np.random.rand(items, m, depth).astype("f"),
        "B": np.random.rand(items, depth, n).astype("f"),
        "C": np.full((items, m, n), np.nan, "f"),
    }
    compare(made, arrays, {"S": items, "M": m, "N": n, "K": depth}, rtol=1e-5)


@pytest.mark.parametrize("guarded", [False, True])
def test_iterations_two_apart_with_a_loop_or_a_choice_inside(guarded):
    """What the vectorised loop reads there is not read for all of them at once."""
    value = "(w(l) > 0.5 ? X(2*j+k) : 0)" if guarded else "X(2*j+k+l)*w(l)"
    text = f"def f(float(N) X, float(L) w) -> (Y) {{ Y(j) +=! {value} where j in 0:512, k in 0:2 }}"
    f = tc.compile(text, target="cpu")["f"]
    schedule = (
        f.schedule()
        .split("Y", "j", 32)
        .reorder("Y", "j.outer", "k", "j.inner", "l")
        .unroll("Y", "k")
        .vectorize("Y", "j.inner")
    )
    x, w = np.arange(2000, dtype=np.float32), np.asarray([1, 0, 1, 0.25, 1], np.float32)
    pairs = [(k, l) for k in range(2) for l in range(5)]
    shifts = [(k, w[l] > 0.5) for k, l in pairs] if guarded else [(k + l, w[l]) for k, l in pairs]
    expected = sum(x[shift : shift + 1024 : 2] * factor for shift, factor in shifts)
    np.testing.assert_allclose(f.with_schedule(schedule)(x, w), expected, rtol=1e-5)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("operator", ["&&", "||"])
def test_both_sides_of_a_condition(isa, operator):
    """Both sides read the same place: no jump for every element."""
    types = {"A": DType.BOOL, "B": DType.BOOL}
    made = pointwise(lambda a, b: Binary(operator, a, b, DType.BOOL), types, DType.BOOL, 0)
    text = emit_llvm(made, target(isa)).text
    assert "phi i1" not in text
    assert "vector.reduce.or" not in text
    assert text.count(f"{'and' if operator == '&&' else 'or'} <") >= 1
    rng = np.random.default_rng(0)
    for n in (1, 31, 32, 33, 200):
        given = {"A": rng.random(n) > 0.5, "B": rng.random(n) > 0.5, "Y": np.zeros(n, bool)}
        compare(made, given, {"N": n}, isa=isa)


def test_the_second_side_of_a_condition_is_not_read_where_it_might_not_be():
    """`i > 0 && B[i - 1]`, other places or a division: as before, only where the first side holds."""
    first = Binary(">", i, int64(0), DType.BOOL)
    before = read("B", op("-", i, int64(1)), dtype=DType.BOOL)
    types = {"A": DType.BOOL, "B": DType.BOOL}
    made = pointwise(lambda *_: Binary("&&", first, before, DType.BOOL), types, DType.BOOL, 0)
    for n in (1, 40):
        given = {"A": np.ones(n, bool), "B": np.arange(n) % 3 > 0, "Y": np.zeros(n, bool)}
        compare(made, given, {"N": n})

    def large(x):
        safe = Binary("!=", x, Const(0, DType.INT32), DType.BOOL)
        quotient = Binary("/", Const(100, DType.INT32), x, DType.INT32)
        return Binary("&&", safe, Binary(">", quotient, Const(9, DType.INT32), DType.BOOL), DType.BOOL)

    made = pointwise(large, {"A": DType.INT32}, DType.BOOL, 0)
    compare(made, {"A": np.arange(-8, 60, dtype=np.int32), "Y": np.zeros(68, bool)}, {"N": 68})


def test_what_a_condition_read_only_sometimes_is_no_proof():
    """`g && A[k] && B[k]`: whether `B[k]` exists is known only where `A[k]` was read."""
    text = "def f(int32(N) Id, bool(V) A, bool(V) B) -> (Y) { Y(i) = Id(i) >= 0 && Id(i) < V && A(Id(i)) && B(Id(i)) }"
    f = tc.compile(text, target="cpu", allow=["TC322", "TC325", "TC326"]).f
    for n in (1, 5, 64):
        places = np.full(n, 2**31 - 1, np.int32)
        places[0] = 0
        assert f(places, np.ones(10, bool), np.ones(10, bool)).tolist() == [True] + [False] * (n - 1)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("low", [0, 3, 16])
def test_vectors_that_begin_elsewhere_are_written_past_the_caches_only_where_lines_begin(isa, low):
    store = Store("Y", (j, i), read("X", j, i), streaming=True)
    body = loop("j", M, loop("i", 32, store, kind="vectorize", low=low))
    made = kernel([Buffer("X", F32, (M, N)), Buffer("Y", F32, (M, N), role="output")], "MN", body)
    small = replace(target(isa), llc_bytes=4096)
    loaded = cpu.load(emit_llvm(made, small), None, small)
    room = np.zeros(4 * 2048 + 16, np.float32)
    first = -(room.ctypes.data // 4) % 16
    y = room[first : first + 4 * 2048].reshape(4, 2048)
    x = np.random.default_rng(0).random((4, 2048), dtype=np.float32)
    loaded.run((ctypes.c_int64 * 4)(x.ctypes.data, y.ctypes.data, 4, 2048))
    assert (y[:, low : low + 32] == x[:, low : low + 32]).all()


def test_a_length_that_is_a_scalar_is_not_known_before_the_loops():
    text = "long[*] f(long[*] a, long n) { return { v -> (a + a) | v < [n, 1, 1] }; }"
    f = tc.compile(text, language="sac", target="cpu").f
    for n in (1, 4):
        got = f(np.arange(8).reshape(2, 4), n)
        np.testing.assert_array_equal(got, np.broadcast_to(2 * np.arange(8).reshape(2, 4), (n, 1, 1, 2, 4)))


LOOK_UP = "A(i, max(min(Id(i), N - 1), 0))"
"""The same for all lanes of `j`: where a mask has no lane, a jump leads around the read and its address."""


@pytest.mark.some(2)
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(
    "value",
    [
        f"j != i ? {LOOK_UP} * 2 + A(0, max(min(Id(i), N - 1), 0)) : 1",
        f"j != i ? ({LOOK_UP} >= 2 ? A(i, i) * A(i / 2, max(min(Id(i), N - 1), 0)) : 1) : A(i, j)",
        "i != j ? A(max(0, min(j / max(Id(i), 1), N - 1)), 0) + A(max(0, min(Id(i), N - 1)), i) : 0",
        "j > 1 || i > 0 ? A(0, max(0, min((j + 1) % (Id(i) + 1), N - 1))) + Id(i) : A(i, (j + i) % N)",
    ],
    ids=["again", "nested", "rows", "wrapped"],
)
def test_what_a_jump_leads_around_is_printed_again_behind_it(value, step):
    text = f"def f(int(N, N) A, int(N) Id) -> (T) {{ T(i, j) = {value} where i in 0:N, j in 0:N }}"
    ours, reference = tc.compile(text, target="cpu").f, tc.compile(text, target="interpreter").f
    for n in (1, 4, 5, 6, 17, 33):
        rng = np.random.default_rng(n)
        a = np.repeat(rng.integers(0, 5, (n, n), np.int32), step, 1)[:, ::step]
        out, ids = np.zeros((n, step * n), np.int32)[:, ::step], rng.integers(0, n, n, np.int32)
        ours(a, ids, out=out)
        np.testing.assert_array_equal(out, reference(a, ids))


@pytest.mark.parametrize("n", [1, 5, 33])
def test_a_quotient_with_a_jump_is_not_moved_before_other_jumps(n):
    text = """def f(float(N) A, float s) -> (T) {
        T(j) = (j > 2 ? A(0) : 1) + float(j) / s + (j > 3 ? A(N - 1) * (float(j) / s) : A(j)) where j in 0:N
    }"""
    a = np.arange(n, dtype=np.float32)
    expected = tc.compile(text, target="interpreter").f(a, 4.0)
    np.testing.assert_array_equal(tc.compile(text, target="cpu").f(a, 4.0), expected)
