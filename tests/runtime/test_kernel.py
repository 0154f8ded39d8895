"""Calls of bound kernels: layouts, copies, `out=`, overlap, memory. Kernels are written by hand and run on the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import NO_SPAN, CallError, Diagnostic, SourceText, codes
from tc_jupyter.loops import Block, Buffer, Check, For, Kernel, Store
from tc_jupyter.program import (
    REAL,
    Binary,
    Const,
    DType,
    Index,
    IndexVar,
    Program,
    Read,
    Size,
    Statement,
    Tensor,
    int64,
)
from tc_jupyter.runtime.arguments import parameters_of, read_outputs
from tc_jupyter.runtime.kernel import (
    Layout,
    Numbers,
    bind_kernel,
    layout_of,
    read_inputs,
    resolve_overlap,
    why_elsewhere,
)
from tc_jupyter.runtime.launch import bfloat16_bits, integers, interpreter_runner, launch_info, slots

F32 = DType.FLOAT32


def sizes(*names):
    return tuple(Size(name) for name in names)


def variables(*names):
    return tuple(IndexVar(name) for name in names)


def loop(var, extent, *body, **more):
    return For(var, int64(0), Size(extent), Block(body), **more)


def read(name, *indices, dtype=F32):
    return Read(name, variables(*indices), dtype)


def statement(target, indices, reductions, operator, value, accumulate=False):
    every = tuple(Index(n, "output") for n in indices) + tuple(Index(n, "reduction") for n in reductions)
    return Statement(target, target, every, operator, operator != "=" and not accumulate, accumulate, value)


def program(inputs, result, statements, dtype=F32, others=()):
    tensors = [Tensor(name, dtype, len(dims), "input", sizes(*dims)) for name, dims in inputs.items()]
    tensors += [Tensor(name, dtype, rank, "temporary") for name, rank in others]
    tensors.append(Tensor(result[0], dtype, result[1], "output"))
    names = tuple(dict.fromkeys(dim for dims in inputs.values() for dim in dims))
    return Program(
        "f", "tc", names, tuple(inputs), (result[0],), tuple(tensors), statements, source=SourceText("def f")
    )


@dataclass
class Fixed:
    """Call numbers of a def whose result shapes are size names."""

    shapes: dict[str, tuple[str, ...]]
    origins: dict[str, tuple[int, ...]] = field(default_factory=dict)
    scans: tuple[str, ...] = ()
    problem: Diagnostic | None = None
    scanned_values: list[float] = field(default_factory=list)

    def bind(self, values, check_sizes):
        shapes = {name: tuple(values[dim] for dim in dims) for name, dims in self.shapes.items()}
        origins = {name: self.origins.get(name, (0,) * len(dims)) for name, dims in self.shapes.items()}
        return Numbers(values, shapes, origins)

    def scan(self, number, numbers, tensors, scalars):
        self.scanned_values.append(float(tensors[self.scans[number]].owner.sum()))
        return self.problem

    def point(self, failure):
        return Diagnostic(codes.INDEX_OUT_OF_RANGE, NO_SPAN, f"check {failure}")


def call(prog, numbers, kernels, *values, out=None, check="all", engine_layout=None):
    """What a Function does, with the interpreter."""
    inputs = read_inputs(prog, parameters_of(prog), values)
    bound = numbers.bind(inputs.sizes, True)
    outputs = {}
    if out is not None:
        results = [replace_dims(prog, name, bound.shapes[name]) for name in prog.results]
        views = read_outputs(out, results, [bound.shapes[name] for name in prog.results], inputs.device, prog)
        outputs = dict(zip(prog.results, views, strict=True))
        inputs = resolve_overlap(prog, inputs, outputs, bound.origins)
    layout = engine_layout or layout_of(inputs, outputs, bound.shapes, prog)
    fit = [replace(k, buffers=tuple(replace(b, strided=b.name in layout.strided) for b in k.buffers)) for k in kernels]
    kernel = bind_kernel(
        prog,
        numbers,
        [launch_info(k) for k in fit],
        [interpreter_runner(k) for k in fit],
        layout,
        "interpreter",
        [tuple(range(len(numbers.scans)))] * len(fit),
    )
    views, _ = kernel.run(inputs, bound, outputs, check)
    return tuple(inputs.library.finish(view) for view in views)


def replace_dims(prog, name, shape):
    from tc_jupyter.runtime.arguments import Parameter

    return Parameter(name, prog.tensor(name).dtype, (None,) * len(shape), NO_SPAN)


MATMUL = program(
    {"A": ("M", "K"), "B": ("K", "N")},
    ("C", 2),
    (statement("C", "ij", "k", "+", Binary("*", read("A", *"ik"), read("B", *"kj"), F32)),),
)
MATMUL_NUMBERS = Fixed({"C": ("M", "N")})


def matmul_kernel(accumulate=False):
    product = Binary("*", read("A", *"ik"), read("B", *"kj"), F32)
    add = loop("k", "K", Store("C", variables("i", "j"), product, "+"))
    start = () if accumulate else (Store("C", variables("i", "j"), Const(0.0, F32)),)
    buffers = (
        Buffer("A", F32, sizes("M", "K")),
        Buffer("B", F32, sizes("K", "N")),
        Buffer("C", F32, sizes("M", "N"), role="inout" if accumulate else "output"),
    )
    return Kernel("f", buffers, ("M", "K", "N"), (), Block((loop("i", "M", loop("j", "N", *start, add)),)), ("C",))


def floats(*shape):
    return (np.arange(np.prod(shape, dtype=int), dtype=np.float32) % 7 - 3).reshape(shape)


A, B = floats(3, 4), floats(4, 5)

LAYOUTS = {
    "contiguous": lambda a: a,
    "fortran": lambda a: np.asfortranarray(a),
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "non-native": lambda a: a.astype(">f4"),
    "misaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), np.float32, a.size, 1).reshape(a.shape),
}


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_inputs_of_any_layout(first, second):
    a, b = LAYOUTS[first](A), LAYOUTS[second](B)
    kept = a.tobytes(), b.tobytes()
    (c,) = call(MATMUL, MATMUL_NUMBERS, [matmul_kernel()], a, b)
    np.testing.assert_array_equal(c, A @ B)
    assert (a.tobytes(), b.tobytes()) == kept


def test_broadcast_and_zero_size_inputs():
    row = np.broadcast_to(A[0], (6, 4))
    (c,) = call(MATMUL, MATMUL_NUMBERS, [matmul_kernel()], row, B)
    np.testing.assert_array_equal(c, row @ B)
    (c,) = call(MATMUL, MATMUL_NUMBERS, [matmul_kernel()], floats(3, 0), floats(0, 5))
    np.testing.assert_array_equal(c, np.zeros((3, 5)))
    (c,) = call(MATMUL, MATMUL_NUMBERS, [matmul_kernel()], floats(0, 4), B)
    assert c.shape == (0, 5)


def test_torch_inputs_give_torch_results():
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(A).requires_grad_(), torch.from_numpy(np.asfortranarray(B))
    (c,) = call(MATMUL, MATMUL_NUMBERS, [matmul_kernel()], a, b)
    assert isinstance(c, torch.Tensor)
    assert not c.requires_grad
    np.testing.assert_array_equal(c.numpy(), A @ B)
    (c,) = call(MATMUL, MATMUL_NUMBERS, [matmul_kernel()], A, b)
    assert isinstance(c, torch.Tensor)


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "reversed", "strided", "non-native", "misaligned"])
def test_out_of_any_layout(layout):
    makers = {
        "strided": lambda a: np.zeros((6, 15), np.float32)[::2, ::3],
        "misaligned": lambda a: np.frombuffer(bytearray(61), np.float32, 15, 1).reshape(3, 5),
    }
    out = makers.get(layout, LAYOUTS[layout])(np.full((3, 5), np.nan, np.float32))
    (c,) = call(MATMUL, MATMUL_NUMBERS, [matmul_kernel()], A, B, out=out)
    assert c is out
    np.testing.assert_array_equal(out, A @ B)


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "non-native"])
def test_accumulating_into_out(layout):
    out = LAYOUTS[layout](np.ones((3, 5), np.float32))
    inputs = Layout(frozenset({"C"} if layout == "fortran" else ()), 32, True)
    call(MATMUL, MATMUL_NUMBERS, [matmul_kernel(True)], A, B, out=out, engine_layout=inputs)
    np.testing.assert_array_equal(out, A @ B + 1)


def scale(dtype=F32):
    value = Binary("*", read("X", "i", dtype=dtype), Const(2, dtype), dtype)
    prog = program({"X": ("N",)}, ("Y", 1), (statement("Y", "i", "", "=", value),), dtype)
    buffers = (Buffer("X", dtype, sizes("N")), Buffer("Y", dtype, sizes("N"), role="output"))
    body = Block((loop("i", "N", Store("Y", variables("i"), value)),))
    return prog, Fixed({"Y": ("N",)}), [Kernel("f", buffers, ("N",), (), body, ("Y",))]


def test_in_place_is_allowed_where_every_read_is_at_the_written_position():
    x = floats(10)
    expected = 2 * x
    call(*scale(), x, out=x)
    np.testing.assert_array_equal(x, expected)
    z = floats(20)
    expected = 2 * z[::2]
    call(*scale(), z[::2], out=z[::2])
    np.testing.assert_array_equal(z[::2], expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [(slice(0, 9), slice(1, 10)), (slice(None, None, -1), slice(None)), (slice(0, 5), slice(0, 9, 2))],
)
def test_other_overlap_is_refused(source, target):
    x = floats(10)
    kept = x.copy()
    with pytest.raises(CallError, match=r"TC611.*`Y` shares memory with `X`"):
        call(*scale(), x[source], out=x[target])
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("Y(i) = X(i)  Y(i) += 1", "and 2 statements write `Y`: in place, only one may"),
        ("Y(i) = X(N - 1 - i) where i in 0:N", "which is read elsewhere than at the written position"),
        ("Y(N - 1 - i) = X(i) where i in 0:N", "which is read elsewhere than at the written position"),
        ("T(i) = 2 * X(i)  Y(i) = T(i)", "which the statement on `T` reads"),
        ("Y(i) +=! X(i) * X(k)", "which is read several times for an element of `Y`"),
    ],
)
def test_what_is_in_the_way_is_said(body, why):
    f = tc.compile(f"def f(float(N) X) -> (Y) {{ {body} }}", target="interpreter").f
    x = floats(10)
    with pytest.raises(CallError) as caught:
        f(x, out=x)
    assert caught.value.diagnostic.message == f"`out=` for `Y` shares memory with `X`, {why}"
    with pytest.raises(CallError, match="of which it is another part"):
        f(x[1:], out=x[:-1])


def test_interleaved_arrays_do_not_overlap():
    x = floats(10)
    expected = 2 * x[::2]
    call(*scale(), x[::2], out=x[1::2])
    np.testing.assert_array_equal(x[1::2], expected)


def test_a_moved_result_is_not_at_the_same_position():
    prog, numbers, kernels = scale()
    x = floats(10)
    with pytest.raises(CallError, match="TC611"):
        call(prog, replace(numbers, origins={"Y": (1,)}), kernels, x, out=x)


def test_a_reduction_is_not_at_the_same_position():
    assert why_elsewhere(MATMUL, "A", "C")
    assert why_elsewhere(scale()[0], "X", "Y") is None
    twice = program(
        {"X": ("N",)},
        ("Y", 1),
        (statement("T", "i", "", "=", read("X", "i")), statement("Y", "i", "", "=", read("T", "i"))),
        others=(("T", 1),),
    )
    assert why_elsewhere(twice, "X", "Y")


def test_temporaries_are_allocated_aligned_and_padded():
    seen = {}

    def spy(storage, sizes, scalars):
        seen.update(storage)

    temporary = Buffer("T", DType.BFLOAT16, sizes("N", "N"), "global", align=64, pad=3)
    prog, numbers, (kernel,) = scale()
    kernel = replace(kernel, buffers=(*kernel.buffers, temporary))
    bound = numbers.bind({"N": 5}, True)
    inputs = read_inputs(prog, parameters_of(prog), (floats(5),))
    bind_kernel(prog, numbers, [launch_info(kernel)], [spy], Layout(frozenset(), 32), "cpu").run(
        inputs, bound, {}, "all"
    )
    assert seen["T"].shape == (5, 5)
    assert seen["T"].strides == (16, 2)
    assert seen["T"].address % 64 == 0


def test_index_tensors_are_scanned_before_the_kernel_unless_told_otherwise():
    prog, numbers, kernels = scale()
    numbers.scans = ("X",)
    call(prog, numbers, kernels, np.ones(4, np.float32))
    assert numbers.scanned_values == [4.0]
    call(prog, numbers, kernels, np.ones(4, np.float32), check="sizes")
    assert len(numbers.scanned_values) == 1
    numbers.problem = Diagnostic(codes.INDEX_OUT_OF_RANGE, NO_SPAN, "`X` is too large")
    with pytest.raises(CallError, match="too large"):
        call(prog, numbers, kernels, np.ones(4, np.float32))


def test_a_failed_check_inside_the_loops_is_reported():
    prog, numbers, (kernel,) = scale()
    condition = Binary("<", IndexVar("i"), int64(2), DType.BOOL)
    store = Store("Y", variables("i"), Const(1.0, F32))
    body = Block((loop("i", "N", Check(condition, 7, variables("i"), Block((store,)))),))
    kernels = [replace(kernel, body=body, checks=1)]
    with pytest.raises(CallError, match=r"check \(7, 2\)"):
        call(prog, numbers, kernels, floats(4))
    (y,) = call(prog, numbers, kernels, floats(2))
    assert y.tolist() == [1, 1]


@pytest.mark.parametrize(("extent", "code"), [(1 << 45, "TC612"), (1 << 62, "TC502")])
def test_results_that_do_not_fit_are_refused(extent, code):
    prog, numbers, kernels = scale()
    x = np.broadcast_to(np.float32(1), (extent,)) if extent < 1 << 46 else None
    if x is None:
        numbers = replace(numbers, shapes={"Y": ("N", "N")})
        x = np.broadcast_to(np.float32(1), (1 << 40,))
    with pytest.raises(CallError, match=f"{code}.*`Y` of shape"):
        call(prog, numbers, kernels, x)


def test_wide_arrays_need_wide_indices():
    prog, numbers, _ = scale()
    for extent, bits in [(1 << 20, 32), (1 << 29, 64), (1 << 33, 64)]:
        x = np.broadcast_to(np.float32(1), (extent,))
        inputs = read_inputs(prog, parameters_of(prog), (x,))
        assert layout_of(inputs, {}, numbers.bind(inputs.sizes, True).shapes, prog).index_bits == bits


def test_bfloat16_results_of_numpy_need_ml_dtypes(monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    prog, numbers, kernels = scale(DType.BFLOAT16)
    x = floats(4).astype(ml_dtypes.bfloat16)
    spied = bind_kernel(
        prog, numbers, list(map(launch_info, kernels)), [lambda *_: None], Layout(frozenset(), 32), "cpu"
    )
    inputs = read_inputs(prog, parameters_of(prog), (x,))
    (y,), _ = spied.run(inputs, numbers.bind(inputs.sizes, True), {}, "all")
    assert y.owner.dtype == ml_dtypes.bfloat16
    monkeypatch.setattr("tc_jupyter.runtime.arrays.numpy_dtype", lambda dtype: None)
    with pytest.raises(CallError, match=r"TC504.*bfloat16"):
        spied.run(inputs, numbers.bind(inputs.sizes, True), {}, "all")


def test_launch_numbers():
    kernel = Kernel("f", (), ("N", "T.0"), (("n", DType.INT32),), Block(()), ())
    rounded = Binary("//", Binary("+", Size("N"), int64(7), DType.INT64), int64(8), DType.INT64)
    shape = integers((rounded, Size("T.0"), Read("n", (), DType.INT32)), kernel)
    assert shape({"N": 9, "T.0": 4, "n": np.int32(5)}) == (2, 4, 5)
    smaller = integers((Binary("min", Size("N"), int64(3), DType.INT64),), kernel)
    assert smaller({"N": 9}) == (3,)


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.0, 1.0078125, 1.00390625, 3.3895e38, 3.4e38, float("inf"), float("nan"), 1e-40, 1 / 3]
)
def test_bfloat16_rounding_agrees_with_ml_dtypes(value):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with np.errstate(over="ignore"):
        expected = int(np.asarray(np.float32(value)).astype(ml_dtypes.bfloat16).view(np.uint16))
    assert bfloat16_bits(value) == expected


def test_slots_have_eight_bytes_each():
    from tc_jupyter.codegen.source import Argument

    arguments = [Argument("buffer", "A"), Argument("stride", "A"), Argument("size", "N")]
    real = list(REAL)  # complex numbers are passed as arrays
    arguments += [Argument("scalar", dtype.value, dtype) for dtype in real]
    packer = slots(arguments)
    assert packer.size == 8 * len(arguments)
    packed = packer.pack(1 << 63, -8, 5, *[1] * len(real))
    assert np.frombuffer(packed, np.int64)[1:3].tolist() == [-8, 5]
    assert np.frombuffer(packed, np.float32)[2 * (3 + real.index(F32))] == 1
