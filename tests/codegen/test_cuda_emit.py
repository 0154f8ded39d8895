from __future__ import annotations

import re
from dataclasses import replace

import pytest
from cuda_kernels import (
    ARCHITECTURES,
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

from tc_jupyter.codegen.cuda import emit_cuda, fits_int32
from tc_jupyter.codegen.cuda.names import RESERVED
from tc_jupyter.diagnostics import CompileError, SourceText, Span
from tc_jupyter.loops import Allocate, Barrier, Block, Check, Kernel, Store
from tc_jupyter.program import REAL, Binary, Call, Cast, Const, DType, Select, Unary, int64
from tc_jupyter.ranges import Fact
from tc_jupyter.runtime import nvrtc

needs_nvrtc = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

FUNCTIONS_1 = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "cospi",
    "sin",
    "sinh",
    "sinpi",
    "tan",
    "tanh",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "logb",
    "sqrt",
    "rsqrt",
    "cbrt",
    "rcbrt",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "erfcinv",
    "normcdf",
    "normcdfinv",
    "lgamma",
    "tgamma",
    "j0",
    "j1",
    "y0",
    "y1",
    "cyl_bessel_i0",
    "cyl_bessel_i1",
    "fabs",
    "ceil",
    "floor",
    "round",
    "trunc",
    "sigmoid",
    "relu",
    "abs",
    "sign",
]
FUNCTIONS_2 = [
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
    "min",
    "max",
]
FUNCTIONS_N = {"fma": 3, "norm3d": 3, "rnorm3d": 3, "norm4d": 4, "rnorm4d": 4, "min": 5}


def text_of(made: Kernel, bits: int = 32, **options) -> str:
    return emit_cuda(made, SM80, bits, **options).text


def compiled(made: Kernel, bits: int = 32, archs: tuple[str, ...] = ("sm_75", "sm_90")) -> str:
    text = text_of(made, bits)
    for arch in archs:
        assert nvrtc.compile_cuda(text, arch).cubin
    return text


def matrix_vector() -> Kernel:
    body = when(
        op("<", element(), size("R")),
        store("o", (element(),), const(0.0)),
        loop(
            "k", size("C"), store("o", (element(),), f32("*", read("A", element(), var("k")), read("B", var("k"))), "+")
        ),
    )
    blocks = loop("b", ceil_div(size("R"), 128), loop("t", 128, body, kind="threadIdx.x"), kind="blockIdx.x")
    buffers = (buffer("A", "R", "C"), buffer("B", "C"), buffer("o", "R", role="output"))
    return kernel("mv_o", buffers, ("R", "C"), blocks, statements=("o",), comment=("def mv(...)", "  i in 0 : R"))


def test_text_of_a_reduction():
    source = emit_cuda(matrix_vector(), SM80)
    assert (
        source.text
        == """// mv_o: o
// def mv(...)
//   i in 0 : R
// launch: grid ((R + 127) // 128, 1, 1), block (128, 1, 1)
// indices: int

extern "C" __global__ void __launch_bounds__(128) mv_o(
    const float* __restrict__ A,  // A: float32 (R, C), input
    const float* __restrict__ B,  // B: float32 (C), input
    float* __restrict__ o,        // o: float32 (R), output
    int R,                        // size R
    int C                         // size C
)
{
    const int b = blockIdx.x;  // b in 0 : (R + 127) // 128
    const int t = threadIdx.x;  // t in 0 : 128
    if (b * 128 + t < R) {
        // o
        o[b * 128 + t] = 0.0f;
        float o_accumulator;  // o.accumulator: float32 (), one per thread
        o_accumulator = o[b * 128 + t];
        for (int k = 0; k < C; k++) {  // k in 0 : C
            o_accumulator += A[(b * 128 + t) * C + k] * B[k];
        }
        o[b * 128 + t] = o_accumulator;
    }
}
"""
    )
    assert source.entry == "mv_o"
    assert [(argument.kind, argument.name) for argument in source.arguments] == [
        ("buffer", "A"), ("buffer", "B"), ("buffer", "o"), ("size", "R"), ("size", "C"),
    ]  # fmt: skip
    assert source.launch.grid == (ceil_div(size("R"), 128), int64(1), int64(1))
    assert source.launch.block == (int64(128), int64(1), int64(1))
    lines = source.text.split("\n")
    assert {name for _, name in source.line_map} == {"o"}
    assert next(lines[number].strip() for number, _ in source.line_map) == "o[b * 128 + t] = 0.0f;"
    assert len(source.line_map) == 4


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("bits", [32, 64])
def test_both_index_variants_compile(arch, bits):
    text = text_of(matrix_vector(), bits)
    assert nvrtc.compile_cuda(text, arch).cubin
    assert ("long long R" in text) == (bits == 64)


def test_a_large_grid_strides():
    assert "gridDim" not in text_of(matrix_vector(), 64)
    for bits, word in ((32, "int"), (64, "long long")):
        source = emit_cuda(matrix_vector(), SM80, bits, large_grid=True)
        assert f"for ({word} b = blockIdx.x; b < (R + 127) / 128; b += gridDim.x)" in source.text
        assert source.launch.grid[0] == op("min", ceil_div(size("R"), 128), (1 << 31) - 1)


@needs_nvrtc
def test_small_indices_stay_narrow_in_the_wide_variant():
    text = compiled(matrix_vector(), 64)
    assert "const long long b = blockIdx.x;" in text
    assert "const int t = threadIdx.x;" in text
    made = pointwise(
        "w", (buffer("A", "N"), buffer("O", "N", role="output")), read("A", op("min", var("t"), op("-", size("N"), 1)))
    )
    assert "A[min((long long)t, N - 1)]" in compiled(made, 64)
    square = kernel(
        "k",
        (buffer("O", 50000, 50000, role="output"),),
        (),
        loop("i", 50000, loop("j", 50000, store("O", (var("i"), var("j")), const(1.0)))),
    )
    assert "O[(long long)i * 50000 + j]" in compiled(square, 64)


def test_without_restrict_pointers_may_overlap():
    assert "__restrict__" not in text_of(matrix_vector(), restrict=False)


@needs_nvrtc
def test_no_header_is_included_and_nothing_warns():
    text = text_of(matrix_vector())
    assert "#include" not in text
    assert "warning" not in nvrtc.compile_cuda(text, "sm_80").log


# --- names -----------------------------------------------------------------------------------------------------------


@needs_nvrtc
def test_reserved_words_as_names_compile():
    words = [*sorted(RESERVED), "__global__", "_Reserved", "tc_load", "2fc", "a.b", "größe", "🙂", "INT_MAX", "M_PI"]
    for start in range(0, len(words), 60):
        part = words[start : start + 60]
        buffers = (*(buffer(word, "N") for word in part), buffer("O", "N", role="output"))
        total = read(part[0], element())
        for word in part[1:]:
            total = f32("+", total, read(word, element()))
        compiled(pointwise(part[0], buffers, total), archs=("sm_80",))


@pytest.mark.some(3)
@needs_nvrtc
@pytest.mark.parametrize(
    "word", ["threadIdx", "blockIdx", "int", "asm", "float4", "min", "expf", "tanh", "while", "printf"]
)
def test_a_word_of_cuda_as_tensor_size_index_scalar_and_kernel_name(word):
    body = store("O", (var("i"),), f32("*", read(word, var("i")), Call("exp", (read("s"),), F32)))
    made = kernel(
        word,
        (buffer(word, word), buffer("O", word, role="output")),
        (word,),
        loop("i", size(word), body),
        scalars=(("s", F32),),
    )
    text = compiled(made, archs=("sm_80",))
    assert f"{word}_" in text
    inner = store("O", (var(word),), read("A", var(word)))
    compiled(
        kernel("k", (buffer("A", "N"), buffer("O", "N", role="output")), ("N",), loop(word, size("N"), inner)),
        archs=("sm_80",),
    )


def test_names_that_differ_in_case_or_clash_after_renaming_stay_apart():
    buffers = (buffer("a.b", "N"), buffer("a_b", "N"), buffer("A_b", "N"), buffer("O", "N", role="output"))
    value = f32("+", f32("+", read("a.b", var("i")), read("a_b", var("i"))), read("A_b", var("i")))
    text = text_of(kernel("k", buffers, ("N",), loop("i", size("N"), store("O", (var("i"),), value))))
    assert "O[i] = a_b[i] + a_b_2[i] + A_b[i];" in text


def test_an_index_named_like_a_tensor_is_renamed():
    text = text_of(
        kernel(
            "k",
            (buffer("i", "N"), buffer("O", "N", role="output")),
            ("N",),
            loop("i", size("N"), store("O", (var("i"),), read("i", var("i")))),
        )
    )
    assert "O[i_2] = i[i_2];" in text


@needs_nvrtc
def test_comments_cannot_be_escaped_from():
    nasty = 'a\\\nint x; */ /* "\\'
    made = replace(matrix_vector(), comment=(nasty,), statements=("o\n}",))
    compiled(made, archs=("sm_80",))


# --- scalar semantics (their values are checked by the simulator) --------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize("dtype", [F32, F64])
def test_every_function_compiles(dtype):
    buffers = (buffer("A", "N", dtype=dtype), buffer("O", "N", dtype=dtype, role="output"))
    at = read("A", element(), dtype=dtype)
    calls = [Call(name, (at,), dtype) for name in FUNCTIONS_1]
    calls += [Call(name, (at, at), dtype) for name in FUNCTIONS_2]
    calls += [Call(name, (at,) * count, dtype) for name, count in FUNCTIONS_N.items()]
    calls += [Cast(Call(name, (at,), BOOL), dtype) for name in ("isnan", "isinf", "isfinite")]
    body = [store("O", (element(),), call, "+") for call in calls]
    guarded = when(op("<", element(), size("N")), *body)
    blocks = loop("b", ceil_div(size("N"), 128), loop("t", 128, guarded, kind="threadIdx.x"), kind="blockIdx.x")
    compiled(kernel("f", buffers, ("N",), blocks), archs=("sm_80",))


@pytest.mark.some(3)
@needs_nvrtc
@pytest.mark.parametrize("source", REAL)
def test_every_cast_compiles(source):
    outputs = [buffer(f"O{target.value}", "N", dtype=target, role="output") for target in REAL]
    at = element()
    stores = [store(f"O{target.value}", (at,), Cast(read("A", at, dtype=source), target)) for target in REAL]
    guarded = when(op("<", at, size("N")), *stores)
    blocks = loop("b", ceil_div(size("N"), 128), loop("t", 128, guarded, kind="threadIdx.x"), kind="blockIdx.x")
    compiled(kernel("f", (buffer("A", "N", dtype=source), *outputs), ("N",), blocks))


@pytest.mark.some(3)
@needs_nvrtc
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dtype", [dtype for dtype in REAL if dtype not in (F16, BF16)])
def test_every_operator_compiles(dtype, bits):
    a, b = read("A", element(), dtype=dtype), read("B", element(), dtype=dtype)
    values = [Binary("min", a, b, dtype), Binary("max", a, b, dtype)]
    if dtype is not BOOL:
        values += [Binary(sign, a, b, dtype) for sign in ("+", "-", "*", "//" if dtype.is_integer else "/", "%")]
        values += [
            Unary("-", a, dtype),
            Call("abs", (a,), dtype),
            Call("sign", (a,), dtype),
            Binary("+", a, Const(3, dtype), dtype),
        ]
    values += [Cast(Binary(sign, a, b, BOOL), dtype) for sign in ("<", "<=", ">", ">=", "==", "!=")]
    both = Binary("&&", Cast(a, BOOL), Binary("||", Cast(b, BOOL), Unary("!", Cast(a, BOOL), BOOL), BOOL), BOOL)
    values += [Select(both, a, b, dtype)]
    stores = [store("O", (element(),), value) for value in values]
    for reduce in ("+", "*", "min", "max"):
        if dtype is not BOOL or reduce in ("min", "max"):
            stores += [store("O", (element(),), a, reduce), store("O", (element(),), a, reduce, atomic=True)]
    guarded = when(op("<", element(), size("N")), *stores)
    blocks = loop("b", ceil_div(size("N"), 128), loop("t", 128, guarded, kind="threadIdx.x"), kind="blockIdx.x")
    buffers = (
        buffer("A", "N", dtype=dtype),
        buffer("B", "N", dtype=dtype),
        buffer("O", "N", dtype=dtype, role="inout"),
    )
    compiled(kernel("f", buffers, ("N",), blocks), bits)


@needs_nvrtc
@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("reduce", ["+", "*", "min", "max"])
def test_short_floats_are_combined_in_float32(dtype, reduce):
    term = Cast(read("A", element(), dtype=dtype), F32)
    body = when(
        op("<", element(), size("N")),
        store("O", (element(),), term, reduce),
        store("O", (element(),), term, reduce, atomic=True),
        store("O", (element(),), read("A", element(), dtype=dtype)),
    )
    blocks = loop("b", ceil_div(size("N"), 128), loop("t", 128, body, kind="threadIdx.x"), kind="blockIdx.x")
    compiled(kernel("f", (buffer("A", "N", dtype=dtype), buffer("O", "N", dtype=dtype, role="inout")), ("N",), blocks))


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (0.1, F32, "0.1f"),
        (1.0, F32, "1.0f"),
        (1e30, F32, "1e+30f"),
        (16777216.0, F32, "16777216.0f"),
        (0.1, F64, "0.1"),
        (float("inf"), F32, "__int_as_float(0x7f800000)"),
        (float("-inf"), F64, "__longlong_as_double(0xfff0000000000000ll)"),
        (float("nan"), F32, "__int_as_float(0x7fc00000)"),
        (1e300, F32, "__int_as_float(0x7f800000)"),
        (-(2**31), I32, "(-2147483647 - 1)"),
        (2**63, DType.UINT64, "9223372036854775808ull"),
        (1.5, F16, "(unsigned short)0x3e00"),
        (1e6, F16, "(unsigned short)0x7c00"),
        (1.0, BF16, "(unsigned short)0x3f80"),
        (True, BOOL, "true"),
    ],
)
def test_constants(value, dtype, expected):
    made = pointwise("c", (buffer("O", "N", dtype=dtype, role="output"),), Const(value, dtype))
    assert f" = {expected};" in text_of(made)


def test_integers_wrap_and_divide_by_rounding_down():
    a = read("A", element(), dtype=I32)
    buffers = (buffer("A", "N", dtype=I32), buffer("O", "N", dtype=I32, role="output"))
    assert "tc_add(A[" in text_of(pointwise("w", buffers, Binary("+", a, a, I32)))
    assert "tc_floor_div(A[" in text_of(pointwise("w", buffers, Binary("//", a, Const(3, I32), I32)))
    assert "] >> 1;" in text_of(pointwise("w", buffers, Binary("//", a, Const(2, I32), I32)))
    assert "] & 7;" in text_of(pointwise("w", buffers, Binary("%", a, Const(8, I32), I32)))


def test_index_values_keep_their_width():
    """The value of an index is int64: narrow where it is an index, wide where it is stored."""
    made = pointwise("w", (buffer("O", "N", dtype=I64, role="output"),), mul(element(), element()))
    assert "O[b * 128 + t] = (long long)((b * 128 + t) * (b * 128 + t));" in text_of(made)
    assert "O[b * 128 + t] = tc_mul(tc_add(tc_mul(b, 128ll), (long long)t), " in text_of(made, 64)


def test_positions_from_data_are_wide():
    made = pointwise(
        "gather",
        (buffer("L", "E", "D"), buffer("I", "N", dtype=I32), buffer("O", "N", role="output")),
        read("L", Cast(read("I", element(), dtype=I32), I64), 3),
    )
    assert "L[(long long)I[b * 128 + t] * D + 3]" in text_of(replace(made, sizes=("N", "E", "D")))


# --- storage -------------------------------------------------------------------------------------------------------------


def test_strided_arguments_take_their_strides():
    buffers = (buffer("A", "N", "M", strided=True), buffer("O", "N", "M", role="output"))
    nest = loop("i", size("N"), loop("j", size("M"), store("O", (var("i"), var("j")), read("A", var("i"), var("j")))))
    source = emit_cuda(kernel("k", buffers, ("N", "M"), nest), SM80)
    assert "O[i * M + j] = A[i * A_stride_0 + j * A_stride_1];" in source.text
    assert [(a.kind, a.name, a.dimension) for a in source.arguments[2:4]] == [("stride", "A", 0), ("stride", "A", 1)]


def reversed_in_shared(extent: int = 128, **more: object) -> Kernel:
    """Every block reverses its elements in shared memory; loads and stores are loops over threads of their own."""
    base = mul(var("b"), extent)
    load = loop(
        "t",
        extent,
        when(op("<", add(base, var("t")), size("N")), store("S", (var("t"),), read("A", add(base, var("t"))))),
        kind="threadIdx.x",
    )
    back = loop(
        "u", extent,
        when(op("<", add(base, var("u")), size("N")), store("O", (add(base, var("u")),), read("S", op("-", extent - 1, var("u"))))),
        kind="threadIdx.x",
    )  # fmt: skip
    inside = Allocate(local("S", extent, scope="shared", **more), Block((load, Barrier(), back)))
    return kernel(
        "rev",
        (buffer("A", "N"), buffer("O", "N", role="output")),
        ("N",),
        loop("b", ceil_div(size("N"), extent), inside, kind="blockIdx.x"),
    )


@needs_nvrtc
def test_shared_memory_and_loops_side_by_side():
    text = compiled(reversed_in_shared())
    assert "__shared__ __align__(16) float S[128];" in text
    assert text.count("const int t = threadIdx.x;") == 1
    assert text.count("const int u = threadIdx.x;") == 1
    assert text.count("__syncthreads();") == 1


@needs_nvrtc
def test_large_shared_memory_is_dynamic():
    made = kernel(
        "big", (buffer("O", 128, role="output"),), (),
        Allocate(local("S", 2, 64, 128, scope="shared", pad=4), Block((
            loop("t", 128, store("S", (1, 63, var("t")), const(1.0)), store("O", (var("t"),), read("S", 1, 63, var("t"))), kind="threadIdx.x"),
        ))),
    )  # fmt: skip
    source = emit_cuda(made, SM80)
    assert source.launch.shared == 2 * 64 * 132 * 4
    assert "float (*const S)[64][132] = reinterpret_cast<float (*)[64][132]>(tc_shared + 0);" in source.text
    compiled(made, archs=("sm_80",))


def test_too_much_shared_memory_is_a_diagnostic():
    made = kernel(
        "big",
        (buffer("O", 1, role="output"),),
        (),
        Allocate(local("S", 1 << 16, scope="shared"), Block((store("O", (0,), read("S", 0)),))),
    )
    with pytest.raises(CompileError) as caught:
        emit_cuda(made, SM80)
    assert caught.value.diagnostics[0].code.number == "TC503"
    assert "262144" in str(caught.value)


def test_shared_memory_without_a_constant_size_is_a_diagnostic():
    made = kernel(
        "big",
        (buffer("O", "N", role="output"),),
        ("N",),
        Allocate(local("S", size("N"), scope="shared"), Block((store("O", (0,), read("S", 0)),))),
    )
    with pytest.raises(CompileError, match="no constant size"):
        emit_cuda(made, SM80)


def test_swizzled_rows():
    made = kernel(
        "swizzle", (buffer("O", 128, role="output"),), (),
        Allocate(local("S", 8, 32, scope="shared", swizzle=(1, 3)), Block((store("O", (0,), read("S", 5, 9)),))),
    )  # fmt: skip
    assert "S[5 * 32 + (9 ^ (((5 >> 1) & 3) * 4))]" in text_of(made)


def test_private_arrays_take_the_largest_extent():
    tile = local("T", op("min", 8, op("-", size("N"), mul(8, var("b")))))
    body = loop(
        "b",
        ceil_div(size("N"), 8),
        Allocate(tile, Block((store("T", (0,), const(1.0)), store("O", (var("b"),), read("T", 0))))),
        kind="blockIdx.x",
    )
    assert "float T[8];" in text_of(kernel("k", (buffer("O", "N", role="output"),), ("N",), body))


@needs_nvrtc
def test_private_storage_without_a_constant_size_is_workspace():
    tile = local("T", size("M"))
    inner = Allocate(
        tile, Block((loop("j", size("M"), store("T", (var("j"),), const(1.0))), store("O", (element(),), read("T", 0))))
    )
    nest = loop(
        "b",
        ceil_div(size("N"), 128),
        loop("t", 128, when(op("<", element(), size("N")), inner), kind="threadIdx.x"),
        kind="blockIdx.x",
    )
    made = kernel("k", (buffer("O", "N", role="output"),), ("N", "M"), nest)
    source = emit_cuda(made, SM80)
    assert [argument.kind for argument in source.arguments] == ["buffer", "size", "size", "workspace"]
    assert source.workspace[0].shape == (mul(128, ceil_div(size("N"), 128)), size("M"))
    compiled(made, archs=("sm_80",))


def test_temporary_of_the_whole_kernel_is_workspace():
    made = kernel(
        "k",
        (buffer("O", "N", role="output"),),
        ("N",),
        Allocate(
            local("T", size("N"), scope="global"), Block((store("T", (0,), const(1.0)), store("O", (0,), read("T", 0))))
        ),
    )
    source = emit_cuda(made, SM80)
    assert source.workspace[0].name == "T"
    assert "O[0] = T[0];" in source.text


# --- launch ----------------------------------------------------------------------------------------------------------


def test_without_gpu_loops_one_thread_does_everything():
    source = emit_cuda(
        kernel(
            "k",
            (buffer("O", "N", role="output"),),
            ("N",),
            loop("i", size("N"), store("O", (var("i"),), const(1.0)), kind="parallel"),
        ),
        SM80,
    )
    assert (source.launch.grid, source.launch.block) == ((int64(1),) * 3, (int64(1),) * 3)


def test_what_stands_outside_the_threads_is_done_by_one():
    inner = loop(
        "b",
        size("N"),
        store("O", (var("b"),), const(0.0)),
        loop("t", 32, store("P", (var("b"), var("t")), const(1.0)), kind="threadIdx.x"),
        kind="blockIdx.x",
    )
    text = text_of(kernel("k", (buffer("O", "N", role="output"), buffer("P", "N", 32, role="output")), ("N",), inner))
    assert re.search(r"if \(threadIdx.x == 0\) \{\s+O\[b\] = 0.0f;", text)


def test_sibling_grids_share_the_larger_launch():
    first = loop("b", size("N"), store("O", (var("b"),), const(0.0)), kind="blockIdx.x")
    second = loop("c", size("M"), store("P", (var("c"),), const(0.0)), kind="blockIdx.x")
    source = emit_cuda(
        kernel("k", (buffer("O", "N", role="output"), buffer("P", "M", role="output")), ("N", "M"), first, second), SM80
    )
    assert source.launch.grid[0] == op("max", size("N"), size("M"))
    assert "if (b < N)" in source.text
    assert "if (c < M)" in source.text


@pytest.mark.parametrize("most, blocks, strides", [(10, 10, False), (1 << 40, 864, True)])
def test_a_grid_inside_another_loop_has_as_many_blocks_as_may_work(most, blocks, strides):
    """Its iterations are not known before the launch: their bound, or as many blocks as fill the device."""
    inner = loop("b", op("min", var("a"), most), store("O", (var("b"),), const(0.0)), kind="blockIdx.x")
    source = emit_cuda(kernel("k", (buffer("O", "N", role="output"),), ("N",), loop("a", size("N"), inner)), SM80)
    assert source.launch.grid[0] == int64(blocks)
    assert ("b += gridDim.x" in source.text) == strides


def test_a_store_outside_the_grid_needs_a_block():
    made = kernel(
        "k",
        (buffer("O", 1, role="output"), buffer("P", "N", role="output")),
        ("N",),
        store("O", (0,), const(1.0)),
        loop("b", size("N"), store("P", (var("b"),), const(0.0)), kind="blockIdx.x"),
    )
    source = emit_cuda(made, SM80)
    assert source.launch.grid[0] == op("max", size("N"), 1)
    assert "if (blockIdx.x == 0)" in source.text
    assert "if (b < N)" in source.text


@pytest.mark.parametrize("extent, threads", [(32, 32), (1024, 1024), (3000, 1024)])
def test_threads_are_limited_by_the_device(extent, threads):
    source = emit_cuda(
        kernel(
            "k",
            (buffer("O", extent, role="output"),),
            (),
            loop("t", extent, store("O", (var("t"),), const(1.0)), kind="threadIdx.x"),
        ),
        SM80,
    )
    assert source.launch.block[0] == int64(threads)
    assert ("t += blockDim.x" in source.text) == (extent > threads)


def test_a_product_of_threads_is_limited_too():
    nest = loop(
        "u", 64, loop("t", 64, store("O", (var("u"), var("t")), const(1.0)), kind="threadIdx.x"), kind="threadIdx.y"
    )
    source = emit_cuda(kernel("k", (buffer("O", 64, 64, role="output"),), (), nest), SM80)
    x, y = (int(extent.value) for extent in source.launch.block[:2])
    assert x * y <= 1024
    assert "blockDim" in source.text


def test_threads_over_a_size_stride():
    source = emit_cuda(
        kernel(
            "k",
            (buffer("O", "N", role="output"),),
            ("N",),
            loop("t", size("N"), store("O", (var("t"),), const(1.0)), kind="threadIdx.x"),
        ),
        SM80,
    )
    assert source.launch.block[0] == int64(256)
    assert "t < N; t += blockDim.x" in source.text


def tail_with_barrier() -> Kernel:
    """The last block has fewer iterations of a loop over threads that contains a barrier."""
    extent = op("min", 64, op("-", size("N"), mul(64, var("b"))))
    at = add(mul(64, var("b")), var("t"))
    body = loop(
        "t",
        extent,
        store("S", (var("t"),), read("A", at)),
        Barrier(),
        store("O", (at,), read("S", 0)),
        kind="threadIdx.x",
    )
    inside = Allocate(local("S", 64, scope="shared"), Block((body,)))
    return kernel(
        "k",
        (buffer("A", "N"), buffer("O", "N", role="output")),
        ("N",),
        loop("b", ceil_div(size("N"), 64), inside, kind="blockIdx.x"),
    )


@needs_nvrtc
def test_a_barrier_is_never_under_a_condition_on_threads():
    text = compiled(tail_with_barrier())
    body = text[text.index("const int t") :]
    assert re.search(
        r"if \(t < min\(64, N - 64 \* b\)\) \{.*?\}\s+__syncthreads\(\);\s+if \(t < min\(64, N - 64 \* b\)\) \{",
        body,
        re.DOTALL,
    )


@needs_nvrtc
def test_a_barrier_under_an_ordinary_condition_is_split_off():
    nest = loop(
        "t",
        64,
        when(
            op("<", var("t"), 32), store("S", (var("t"),), const(1.0)), Barrier(), store("O", (var("t"),), read("S", 0))
        ),
        kind="threadIdx.x",
    )
    text = compiled(
        kernel("k", (buffer("O", 64, role="output"),), (), Allocate(local("S", 64, scope="shared"), Block((nest,))))
    )
    assert "const bool active = t < 32;" in text
    assert text.count("if (active)") == 2
    assert "\n    __syncthreads();" in text


def test_a_barrier_under_a_uniform_condition_stays_there():
    nest = loop(
        "t", 64, when(op("<", size("N"), 32), Barrier()), store("O", (var("t"),), const(1.0)), kind="threadIdx.x"
    )
    text = text_of(kernel("k", (buffer("O", 64, role="output"),), ("N",), nest))
    assert re.search(r"if \(N < 32\) \{\s+__syncthreads\(\);", text)


# --- vectors ---------------------------------------------------------------------------------------------------------


def scaled(dtype: DType = F32, lanes: int = 4, align: int = 16, tail: bool = True, **more: object) -> Kernel:
    """`O[i] = 2 * A[i]`, `lanes` elements per thread."""
    base = mul(element(), lanes)
    at = add(base, var("v"))
    extent = op("min", lanes, op("-", size("N"), base)) if tail else int64(lanes)
    value = f32("*", const(2.0), Cast(read("A", at, dtype=dtype), F32) if dtype is not F32 else read("A", at))
    inner = loop("v", extent, store("O", (at,), value), kind="vectorize")
    nest = loop("b", ceil_div(size("N"), 128 * lanes), loop("t", 128, inner, kind="threadIdx.x"), kind="blockIdx.x")
    return kernel(
        "scale",
        (buffer("A", "N", dtype=dtype, align=align), buffer("O", "N", dtype=dtype, role="output", align=align)),
        ("N",),
        nest,
        **more,
    )


@needs_nvrtc
@pytest.mark.parametrize(
    "dtype, lanes, loads",
    [
        (F32, 4, "ld.global.nc.v4.b32"),
        (F32, 2, "ld.global.nc.v2.b32"),
        (F16, 8, "ld.global.nc.v4.b32"),
        (BF16, 8, "ld.global.nc.v4.b32"),
    ],
)
def test_vectorised_loops_access_16_bytes(dtype, lanes, loads):
    text = compiled(scaled(dtype, lanes), archs=("sm_75",))
    ptx = nvrtc.compile_cuda(text, "compute_80").ptx
    assert loads in ptx.replace("v4.f32", "v4.b32").replace("v4.u32", "v4.b32").replace("v2.f32", "v2.b32")
    assert "else {  // the rest" in text


@needs_nvrtc
def test_longer_vectors_are_cut_into_pieces():
    text = compiled(scaled(F32, 8))
    assert "A_vector[2] = {tc_load<4>(&A[(b * 128 + t) * 8]), tc_load<4>(&A[(b * 128 + t) * 8 + 4])}" in text


@pytest.mark.parametrize("made", [scaled(align=0), scaled(align=4), scaled(lanes=3)])
def test_no_vectors_without_alignment(made):
    assert "tc_load" not in text_of(made)


def rows(facts: bool) -> Kernel:
    at = (var("i"), add(mul(4, var("j")), var("v")))
    inner = loop("j", op("//", size("N"), 4), loop("v", 4, store("O", at, read("A", *at)), kind="vectorize"))
    body = when(op("==", op("%", size("N"), 4), 0), inner) if facts else inner
    return kernel(
        "rows",
        (buffer("A", "M", "N", align=16), buffer("O", "M", "N", role="output", align=16)),
        ("M", "N"),
        loop("i", size("M"), body),
    )


def test_a_pitch_must_be_known_to_be_a_multiple():
    assert "tc_load" not in text_of(rows(facts=False))
    assert "tc_load<4>(&A[i * N + 4 * j])" in text_of(rows(facts=True))
    assert "tc_load<4>" in text_of(replace(rows(facts=False), facts=(("N", Fact(multiple=4)),)))


def test_guarded_reads_stay_single():
    at = add(mul(4, element()), var("v"))
    value = Select(op("<", at, size("M")), read("A", at), const(0.0), F32)
    nest = loop(
        "b",
        ceil_div(size("N"), 512),
        loop("t", 128, loop("v", 4, store("O", (at,), value), kind="vectorize"), kind="threadIdx.x"),
        kind="blockIdx.x",
    )
    text = text_of(
        kernel("k", (buffer("A", "M", align=16), buffer("O", "N", role="output", align=16)), ("N", "M"), nest)
    )
    assert "tc_load<4>(&A" not in text
    assert "tc_store<4>(&O" in text


# --- checks and mapping ----------------------------------------------------------------------------------------------


@needs_nvrtc
def test_a_failed_check_is_recorded_once():
    where = Cast(read("I", element(), dtype=I32), I64)
    inside = op("&&", op("<=", 0, where), op("<", where, size("E")))
    checked = Check(inside, 3, (where, element()), Block((store("O", (element(),), read("L", where)),)))
    body = when(op("<", element(), size("N")), checked)
    nest = loop("b", ceil_div(size("N"), 128), loop("t", 128, body, kind="threadIdx.x"), kind="blockIdx.x")
    made = kernel(
        "k",
        (buffer("L", "E"), buffer("I", "N", dtype=I32), buffer("O", "N", role="output")),
        ("N", "E"),
        nest,
        checks=1,
    )
    source = emit_cuda(made, SM80)
    assert source.arguments[-1].kind == "errors"
    assert "} else if (tc_record(errors, 3)) {" in source.text
    assert "errors[2] = (long long)(b * 128 + t);" in source.text
    compiled(made)


def test_statements_map_to_lines_of_the_cell():
    cell = SourceText("def f(float(N) A) -> (O, P) {\n  O(i) = A(i)\n  P(i) = 2 * A(i)\n}\n")
    first, second = (Span(cell.text.index(word), cell.text.index(word) + 4) for word in ("O(i)", "P(i)"))
    body = (
        Store("O", (var("i"),), read("A", var("i")), statement="O", span=first),
        Store("P", (var("i"),), f32("*", const(2.0), read("A", var("i"))), statement="P", span=second),
    )
    made = kernel(
        "f_O",
        (buffer("A", "N"), buffer("O", "N", role="output"), buffer("P", "N", role="output")),
        ("N",),
        loop("i", size("N"), *body),
    )
    source = emit_cuda(made, SM80, source=cell)
    assert re.search(r'// O: O\(i\) = A\(i\)\n#line 2 "cell"\n        O\[i\] = A\[i\];', source.text)
    assert re.search(r'#line 3 "cell"\n        P\[i\] = 2.0f \* A\[i\];', source.text)
    lines = source.text.split("\n")
    assert {name: lines[number].strip() for number, name in source.line_map} == {
        "O": "O[i] = A[i];",
        "P": "P[i] = 2.0f * A[i];",
    }
    if nvrtc.available() is None:
        ptx = nvrtc.compile_cuda(source.text, "compute_80").ptx
        files = dict(re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', ptx))
        cell_file = next(number for number, name in files.items() if name.endswith("cell"))
        assert {line for file, line in re.findall(r"\.loc\s+(\d+)\s+(\d+)", ptx) if file == cell_file} == {"2", "3"}


def test_lines_after_a_statement_do_not_count_as_the_cell():
    cell = SourceText("O(i) = A(i)\n")
    nest = loop("i", size("N"), Store("O", (var("i"),), const(1.0), statement="O", span=Span(0, 4)))
    made = kernel(
        "f", (buffer("O", "N", role="output"),), ("N",), nest, loop("j", size("N"), store("O", (var("j"),), const(2.0)))
    )
    lines = emit_cuda(made, SM80, source=cell).text.split("\n")
    number = next(k for k, line in enumerate(lines) if line.startswith("#line") and "f.cu" in line)
    assert lines[number] == f'#line {number + 2} "f.cu"'


# --- index width -----------------------------------------------------------------------------------------------------


def test_small_arrays_use_int():
    assert fits_int32(matrix_vector(), {"R": 1000, "C": 1000})
    assert not fits_int32(matrix_vector(), {"R": 50_000, "C": 50_000})  # byte offsets up to 10^10
    assert not fits_int32(matrix_vector(), {"R": 1, "C": 1 << 31})


def test_strides_count():
    buffers = (buffer("A", "N", strided=True), buffer("O", "N", role="output"))
    made = kernel("k", buffers, ("N",), loop("i", size("N"), store("O", (var("i"),), read("A", var("i")))))
    assert fits_int32(made, {"N": 1000, "A.stride.0": 1000})
    assert fits_int32(made, {"N": 1000, "A.stride.0": -1000})
    assert not fits_int32(made, {"N": 1000, "A.stride.0": 1 << 20})


def test_intermediate_products_count():
    value = Cast(mul(mul(var("i"), 50_000), size("N")), F32)
    made = kernel("k", (buffer("O", "N", role="output"),), ("N",), loop("i", size("N"), store("O", (var("i"),), value)))
    assert fits_int32(made, {"N": 100})
    assert not fits_int32(made, {"N": 1000})


def test_loops_over_data_take_the_wide_variant():
    made = kernel(
        "k",
        (buffer("I", 1, dtype=I32), buffer("O", "N", role="output")),
        ("N",),
        loop("i", Cast(read("I", 0, dtype=I32), I64), store("O", (var("i"),), const(1.0))),
    )
    assert not fits_int32(made, {"N": 10})


def test_an_unknown_function_is_a_bug():
    with pytest.raises(ValueError, match="unknown function"):
        text_of(
            pointwise(
                "k",
                (buffer("A", "N"), buffer("O", "N", role="output")),
                Call("frobnicate", (read("A", element()),), F32),
            )
        )


@needs_nvrtc
def test_a_large_private_array_is_workspace():
    inner = Allocate(
        local("T", 100_000), Block((store("T", (var("t"),), const(1.0)), store("O", (var("t"),), read("T", var("t")))))
    )
    made = kernel("k", (buffer("O", 64, role="output"),), (), loop("t", 64, inner, kind="threadIdx.x"))
    source = emit_cuda(made, SM80)
    assert source.workspace[0].shape == (int64(64), int64(100_000))
    compiled(made, archs=("sm_80",))


def test_a_long_loop_is_not_unrolled():
    made = kernel(
        "k",
        (buffer("O", 4096, role="output"),),
        (),
        loop("i", 4096, store("O", (var("i"),), const(1.0)), kind="unroll"),
    )
    assert "#pragma unroll" not in text_of(made)


def test_too_many_parameters_are_a_diagnostic():
    names = [f"A{number}" for number in range(4100)]
    made = kernel(
        "k",
        tuple(buffer(name, "N", role="output") for name in names),
        ("N",),
        *(store(name, (0,), const(1.0)) for name in names),
    )
    with pytest.raises(CompileError, match="4101 parameters"):
        emit_cuda(made, SM80)
