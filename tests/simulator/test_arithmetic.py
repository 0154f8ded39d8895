"""Every arithmetic opcode against Python integers, exact fractions and NumPy, on random and on edge values. No NVRTC needed."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tc_jupyter.simulator import GlobalArray, SimulationError, simulate

NUMPY = {
    "s8": np.int8, "u8": np.uint8, "b8": np.uint8, "s16": np.int16, "u16": np.uint16, "b16": np.uint16, "s32": np.int32,
    "u32": np.uint32, "b32": np.uint32, "s64": np.int64, "u64": np.uint64, "b64": np.uint64, "f16": np.float16,
    "bf16": np.uint16, "f16x2": np.uint32, "bf16x2": np.uint32, "f32": np.float32, "f64": np.float64, "pred": np.uint32, "tf32": np.uint32,
}  # fmt: skip
BITS = {name: 8 * np.dtype(dtype).itemsize for name, dtype in NUMPY.items()}


def register_type(type):
    return f"b{max(16, BITS[type])}" if type != "pred" else "pred"


def run_op(opcode, out, types, inputs, tail=""):
    """Run `opcode d, a, b, ...` with one lane per element; immediates are given as strings in `types`."""
    n = len(next(value for value in inputs if not isinstance(value, str)))
    n_pad = -(-n // 32) * 32
    declare, load, operands, arguments, parameters = [], [], [], [], []
    for i, (type, value) in enumerate(zip(types, inputs, strict=True)):
        if isinstance(value, str):
            operands.append(value)
            continue
        width = BITS[type]
        declare.append(f".reg .{register_type(type)} %x{i}; .reg .b32 %w{i};")
        parameters.append(f".param .u64 p{i}")
        move = f"ld.global.b{width} %x{i}, [%q];"
        if type == "pred":
            move = f"ld.global.b32 %w{i}, [%q]; setp.ne.u32 %x{i}, %w{i}, 0;"
        load.append(f"ld.param.u64 %base, [p{i}]; mad.wide.u32 %q, %t, {width // 8}, %base; {move}")
        operands.append(f"%x{i}")
        array = np.zeros(n_pad, NUMPY[type])
        array[:n] = value
        arguments.append(GlobalArray(f"a{i}", array, False, True))
    width = BITS[out]
    store = f"st.global.b{width} [%q], %d;"
    if out == "pred":
        store = "selp.u32 %w, 1, 0, %d; st.global.b32 [%q], %w;"
    ptx = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k({", ".join([*parameters, ".param .u64 out"])}) {{
  .reg .b32 %t; .reg .b32 %w; .reg .b64 %base; .reg .b64 %q; .reg .{register_type(out)} %d; {" ".join(declare)}
  mov.u32 %t, %tid.x;
  mov.u32 %w, %ctaid.x;
  mad.lo.s32 %t, %w, 32, %t;
  {" ".join(load)}
  {opcode} %d, {", ".join(operands)}{tail};
  ld.param.u64 %base, [out]; mad.wide.u32 %q, %t, {width // 8}, %base; {store}
  ret;
}}"""
    result = np.zeros(n_pad, NUMPY[out])
    simulation = simulate(
        ptx, "k", (n_pad // 32, 1, 1), (32, 1, 1), [*arguments, GlobalArray("d", result, True, False)]
    )
    assert simulation.findings == ()
    return result[:n]


def integers(type, rng, n=300):
    info = np.iinfo(NUMPY[type])
    edges = [
        info.min,
        info.min + 1,
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        63,
        64,
        info.max - 1,
        info.max,
        info.max // 2,
        info.min // 2,
    ]
    if info.min < 0:
        edges += [-1, -2, -31]
    values = rng.integers(info.min, info.max, n, NUMPY[type], endpoint=True)
    picked = np.array([value & ((1 << info.bits) - 1) for value in edges], f"u{info.bits // 8}").view(NUMPY[type])
    return rng.permutation(np.concatenate((values, np.repeat(picked, 10), rng.integers(0, 70, 60).astype(NUMPY[type]))))


def wrap(value, type):
    bits = BITS[type]
    value &= (1 << bits) - 1
    return value - (1 << bits) if NUMPY[type](0).dtype.kind == "i" and value >> (bits - 1) else value


def truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def bfe(a, p, n, type):
    bits = BITS[type]
    p, n = p & 255, n & 255
    raw = a & ((1 << bits) - 1)
    sign = 0 if type[0] == "u" or n == 0 else raw >> min(p + n - 1, bits - 1) & 1
    return sum((raw >> (p + i) & 1 if i < n and p + i < bits else sign) << i for i in range(bits))


def bfi(a, b, p, n, bits):
    p, n = p & 255, n & 255
    for i in range(n):
        if p + i < bits:
            b = b & ~(1 << (p + i)) | (a >> i & 1) << (p + i)
    return b


def prmt(a, b, c):
    bytes8 = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    result = 0
    for i in range(4):
        control = c >> 4 * i & 15
        byte = bytes8[control & 7]
        result |= (255 if byte & 128 else 0 if control & 8 else byte) << 8 * i if control & 8 else byte << 8 * i
    return result


def lop3(a, b, c):
    return sum((0xCA >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


def shl(a, n, bits):
    return 0 if n >= bits else a << n


def shr(a, n, bits):
    return a >> min(n, bits)


INTEGER_CASES = [
    *[(f"add.{t}", t, (t, t), lambda a, b: a + b) for t in ("u16", "s32", "u32", "s64", "u64")],
    *[(f"sub.{t}", t, (t, t), lambda a, b: a - b) for t in ("s16", "s32", "u64")],
    *[(f"mul.lo.{t}", t, (t, t), lambda a, b: a * b) for t in ("s16", "s32", "u32", "s64")],
    *[(f"mul.hi.{t}", t, (t, t), lambda a, b, t=t: (a * b) >> BITS[t]) for t in ("s16", "u16", "s32", "u32", "s64", "u64")],
    *[(f"mul.wide.{t}", w, (t, t), lambda a, b: a * b) for t, w in (("s16", "s32"), ("u16", "u32"), ("s32", "s64"), ("u32", "u64"))],
    *[(f"mad.lo.{t}", t, (t, t, t), lambda a, b, c: a * b + c) for t in ("s16", "s32", "u32", "s64", "u64")],
    *[(f"mad.hi.{t}", t, (t, t, t), lambda a, b, c, t=t: (a * b >> BITS[t]) + c) for t in ("s32", "u32", "s64", "u64")],
    *[(f"mad.wide.{t}", w, (t, t, w), lambda a, b, c: a * b + c) for t, w in (("s16", "s32"), ("s32", "s64"), ("u32", "u64"))],
    *[(f"min.{t}", t, (t, t), min) for t in ("s16", "u16", "s32", "u32", "s64", "u64")],
    *[(f"max.{t}", t, (t, t), max) for t in ("s16", "s32", "u32", "s64", "u64")],
    *[(f"div.{t}", t, (t, t), lambda a, b, t=t: truncated(a, b) if b else None) for t in ("s16", "u16", "s32", "u32", "s64", "u64")],
    *[(f"rem.{t}", t, (t, t), lambda a, b: a - truncated(a, b) * b if b else None) for t in ("s16", "s32", "u32", "s64", "u64")],
    *[(f"neg.{t}", t, (t,), lambda a: -a) for t in ("s16", "s32", "s64")],
    *[(f"abs.{t}", t, (t,), abs) for t in ("s16", "s32", "s64")],
    *[(f"and.{t}", t, (t, t), lambda a, b: a & b) for t in ("b16", "b32", "b64")],
    ("or.b32", "b32", ("b32", "b32"), lambda a, b: a | b),
    ("xor.b64", "b64", ("b64", "b64"), lambda a, b: a ^ b),
    ("not.b32", "b32", ("b32",), lambda a: ~a),
    ("cnot.b32", "b32", ("b32",), lambda a: int(a == 0)),
    *[(f"shl.{t}", t, (t, "u32"), lambda a, n, t=t: shl(a, n, BITS[t])) for t in ("b16", "b32", "b64")],
    *[(f"shr.{t}", t, (t, "u32"), lambda a, n, t=t: shr(a, n, BITS[t])) for t in ("u16", "s16", "u32", "s32", "b32", "u64", "s64")],
    *[(f"popc.{t}", "u32", (t,), lambda a: a.bit_count()) for t in ("b32", "b64")],
    *[(f"clz.{t}", "u32", (t,), lambda a, t=t: BITS[t] - a.bit_length()) for t in ("b32", "b64")],
    *[(f"brev.{t}", t, (t,), lambda a, t=t: int(format(a, f"0{BITS[t]}b")[::-1], 2)) for t in ("b32", "b64")],
    *[(f"bfind.{t}", "u32", (t,), lambda a: max(a, ~a).bit_length() - 1 if a not in (0, -1) else -1) for t in ("u32", "u64", "s32", "s64")],
    *[(f"bfe.{t}", t, (t, "u32", "u32"), lambda a, p, n, t=t: bfe(a, p, n, t)) for t in ("u32", "s32", "u64", "s64")],
    *[(f"bfi.{t}", t, (t, t, "u32", "u32"), lambda a, b, p, n, t=t: bfi(a, b, p, n, BITS[t])) for t in ("b32", "b64")],
    ("prmt.b32", "b32", ("b32", "b32", "b32"), prmt),
    ("shf.l.wrap.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: (b << 32 | a) << (n & 31) >> 32),
    ("shf.r.wrap.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: (b << 32 | a) >> (n & 31)),
    ("shf.l.clamp.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32),
    ("shf.r.clamp.b32", "b32", ("b32", "b32", "u32"), lambda a, b, n: (b << 32 | a) >> min(n, 32)),
    ("sad.u32", "u32", ("u32", "u32", "u32"), lambda a, b, c: abs(a - b) + c),
    ("mul24.lo.u32", "u32", ("u32", "u32"), lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    ("mul24.hi.u32", "u32", ("u32", "u32"), lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
    ("add.sat.s32", "s32", ("s32", "s32"), lambda a, b: max(-(2**31), min(2**31 - 1, a + b))),
    ("sub.sat.s32", "s32", ("s32", "s32"), lambda a, b: max(-(2**31), min(2**31 - 1, a - b))),
]  # fmt: skip


@pytest.mark.some(3)
@pytest.mark.parametrize("opcode, out, types, reference", INTEGER_CASES, ids=[case[0] for case in INTEGER_CASES])
def test_integer_opcodes_agree_with_python_integers(opcode, out, types, reference):
    rng = np.random.default_rng(len(opcode) * 7 + sum(map(ord, opcode)))
    inputs = [integers(type, rng) for type in types]
    n = min(map(len, inputs))
    inputs = [value[:n] for value in inputs]
    result = run_op(opcode, out, types, inputs)
    for lane in range(n):
        values = [int(value[lane]) for value in inputs]
        expected = reference(*values)
        if expected is not None:
            assert int(result[lane]) == wrap(expected, out), (opcode, values)


def test_lop3_follows_its_truth_table():
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(0, 2**32, 64, np.uint32) for _ in range(3))
    result = run_op("lop3.b32", "b32", ("b32", "b32", "b32"), (a, b, c), tail=", 0xCA")
    assert result.tolist() == [lop3(int(x), int(y), int(z)) for x, y, z in zip(a, b, c, strict=True)]


def test_dot_products_of_bytes():
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 2**32, 64, np.uint32) for _ in range(2))
    c = rng.integers(-1000, 1000, 64, np.int32)
    result = run_op("dp4a.s32.u32", "s32", ("u32", "u32", "s32"), (a, b, c))
    x, y = a.view(np.int8).reshape(-1, 4).astype(int), b.view(np.uint8).reshape(-1, 4).astype(int)
    assert (result == (x * y).sum(1) + c).all()
    result = run_op("dp2a.hi.s32.s32", "s32", ("u32", "u32", "s32"), (a, b, c))
    assert (
        result == (a.view(np.int16).reshape(-1, 2).astype(int) * b.view(np.int8).reshape(-1, 4)[:, 2:]).sum(1) + c
    ).all()


# --- floats


def floats(dtype, rng, n=400):
    info = np.finfo(dtype)
    edges = np.array(
        [
            0.0,
            -0.0,
            1,
            -1,
            np.inf,
            -np.inf,
            np.nan,
            info.max,
            -info.max,
            info.tiny,
            info.smallest_subnormal,
            1 + info.eps,
            0.5,
            1.5,
            2.5,
            -2.5,
            1e3,
        ],
        dtype,
    )
    bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), n, np.uint64).astype(f"u{np.dtype(dtype).itemsize}")
    ordinary = (rng.standard_normal(n) * np.exp(rng.standard_normal(n) * 3)).astype(dtype)
    return rng.permutation(np.concatenate((bits.view(dtype), ordinary, np.repeat(edges, 6))))


def same(a, b):
    """Equal bits, or both NaN."""
    a, b = np.asarray(a), np.asarray(b)
    raw = f"u{a.dtype.itemsize}"
    return np.asarray((a.view(raw) == b.view(raw)) | (np.isnan(a) & np.isnan(b)))


def exactly(value, dtype, mode):
    """Round a fraction to a float type with the given rounding, by comparing neighbours."""
    kind = np.dtype(dtype).type
    if value == 0:
        return kind(0)
    with np.errstate(over="ignore"):
        near = kind(float(value)) if abs(value) < Fraction(10) ** 300 else kind(np.inf if value > 0 else -np.inf)
    candidates = [near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))]
    finite = sorted({float(c) for c in candidates if np.isfinite(c)})
    below = [c for c in finite if Fraction(c) <= value]
    above = [c for c in finite if Fraction(c) >= value]
    low = kind(max(below)) if below else kind(-np.inf)
    high = kind(min(above)) if above else kind(np.inf)
    if mode == "rm" or (mode == "rz" and value > 0):
        return low
    return high


DIRECTED = [
    (f"{name}.{mode}.{type}", type, function)
    for type in ("f32", "f64")
    for mode in ("rz", "rm", "rp")
    for name, function in (
        ("add", lambda a, b: a + b),
        ("mul", lambda a, b: a * b),
        ("div", lambda a, b: a / b if b else None),
    )
]


@pytest.mark.parametrize("opcode, type, function", DIRECTED, ids=[case[0] for case in DIRECTED])
def test_directed_rounding_is_exact(opcode, type, function):
    rng = np.random.default_rng(5)
    a = (rng.standard_normal(300) * 2.0 ** rng.integers(-30, 30, 300)).astype(NUMPY[type])
    b = (rng.standard_normal(300) * 2.0 ** rng.integers(-30, 30, 300)).astype(NUMPY[type])
    result = run_op(opcode, type, (type, type), (a, b))
    mode = opcode.split(".")[1]
    for x, y, got in zip(a, b, result, strict=True):
        assert got == exactly(function(Fraction(float(x)), Fraction(float(y))), NUMPY[type], mode), (opcode, x, y)


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_fma_rounds_once(type, mode):
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(300).astype(NUMPY[type]) for _ in range(2))
    c = (-a * b).astype(NUMPY[type])
    c[::3] = rng.standard_normal(100)
    result = run_op(f"fma.{mode}.{type}", type, (type,) * 3, (a, b, c))
    for x, y, z, got in zip(a, b, c, result, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if mode == "rn":
            assert got == NUMPY[type](float(exact))
        else:
            assert got == exactly(exact, NUMPY[type], mode)


@pytest.mark.parametrize(
    "opcode, reference",
    [
        ("add.rn.f32", np.add), ("sub.f32", np.subtract), ("mul.f32", np.multiply), ("div.rn.f32", np.divide),
        ("add.f64", np.add), ("mul.rn.f64", np.multiply), ("div.rn.f64", np.divide), ("copysign.f32", lambda a, b: np.copysign(b, a)),
    ],
)  # fmt: skip
def test_rounding_to_nearest_is_ieee(opcode, reference):
    type = opcode.rpartition(".")[2]
    rng = np.random.default_rng(7)
    a, b = floats(NUMPY[type], rng), floats(NUMPY[type], rng)
    with np.errstate(all="ignore"):
        assert same(run_op(opcode, type, (type, type), (a, b)), reference(a, b)).all()


@pytest.mark.parametrize(
    "opcode, reference, tolerance",
    [
        ("sqrt.rn.f32", np.sqrt, 0), ("rcp.rn.f32", lambda a: 1 / a, 0), ("sqrt.rn.f64", np.sqrt, 0), ("rcp.rn.f64", lambda a: 1 / a, 0),
        ("ex2.approx.f32", np.exp2, 1e-6), ("lg2.approx.f32", np.log2, 1e-6), ("sin.approx.f32", np.sin, 1e-6), ("cos.approx.f32", np.cos, 1e-6),
        ("tanh.approx.f32", np.tanh, 1e-6), ("rsqrt.approx.f32", lambda a: 1 / np.sqrt(a), 1e-6), ("rcp.approx.ftz.f64", lambda a: 1 / a, 1e-12),
        ("abs.f32", np.abs, 0), ("neg.f64", np.negative, 0),
    ],
)  # fmt: skip
def test_unary_floats(opcode, reference, tolerance):
    type = opcode.rpartition(".")[2]
    x = np.abs(np.random.default_rng(8).standard_normal(200)).astype(NUMPY[type]) + NUMPY[type](0.01)
    np.testing.assert_allclose(
        run_op(opcode, type, (type,), (x,)),
        reference(x.astype(np.float64)),
        rtol=max(tolerance, 6e-8 if type == "f32" else 2.3e-16),
    )


def test_minimum_and_maximum_of_nan_and_zeros():
    nan = np.float32(np.nan)
    a = np.array([nan, 1, nan, -0.0, 0.0, 3], np.float32)
    b = np.array([1, nan, nan, 0.0, -0.0, 2], np.float32)
    low = run_op("min.f32", "f32", ("f32", "f32"), (a, b))
    assert low.tolist()[:2] == [1, 1]
    assert math.isnan(low[2])
    assert np.signbit(low[3:5]).all()
    assert low[5] == 2
    high = run_op("max.f32", "f32", ("f32", "f32"), (a, b))
    assert not np.signbit(high[3:5]).any()
    assert np.isnan(run_op("min.NaN.f32", "f32", ("f32", "f32"), (a, b))[:3]).all()


def test_flush_and_saturation():
    x = np.array([1e-40, -1e-40, 2.0, -3.0, 0.25, np.nan], np.float32)
    zero = np.zeros(6, np.float32)
    flushed = run_op("add.ftz.f32", "f32", ("f32", "f32"), (x, zero))
    assert flushed[:2].tolist() == [0, 0]
    assert run_op("add.sat.f32", "f32", ("f32", "f32"), (x, zero)).tolist()[2:] == [1, 0, 0.25, 0]


@pytest.mark.some(3)
@pytest.mark.parametrize("to", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("origin", ["f32", "f64", "f16"])
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_float_to_integer_rounds_and_clamps(to, origin, mode):
    x = floats(NUMPY[origin], np.random.default_rng(9), 150)
    out = to if BITS[to] >= 16 else "s32" if to[0] == "s" else "u32"
    result = run_op(f"cvt.{mode}.{to}.{origin}", out, (origin,), (x,))
    info = np.iinfo(NUMPY[to])
    function = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
    for value, got in zip(x, result, strict=True):
        value = float(value)
        if math.isnan(value):
            expected = 0 if origin != "f64" and BITS[to] < 64 else info.min if info.min < 0 else 1 << (info.bits - 1)
        elif math.isinf(value):
            expected = info.max if value > 0 else info.min
        else:
            expected = min(info.max, max(info.min, function(value)))
        assert int(got) == expected, (value, mode, to)


@pytest.mark.parametrize(
    "to, origin",
    [("f32", "s32"), ("f32", "u32"), ("f32", "s64"), ("f32", "u64"), ("f64", "s64"), ("f64", "u64"), ("f64", "u32")],
)
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_integer_to_float(to, origin, mode):
    x = integers(origin, np.random.default_rng(10), 150)
    result = run_op(f"cvt.{mode}.{to}.{origin}", to, (origin,), (x,))
    for value, got in zip(x, result, strict=True):
        value = int(value)
        if mode == "rn":
            near = np.array([value], NUMPY[origin]).astype(NUMPY[to])[0]
            assert got == near
        else:
            assert got == exactly(Fraction(value), NUMPY[to], mode), (value, mode)


def test_integer_conversions_truncate_extend_and_saturate():
    rng = np.random.default_rng(11)
    x = integers("s32", rng, 100)
    assert (run_op("cvt.s64.s32", "s64", ("s32",), (x,)) == x.astype(np.int64)).all()
    assert (run_op("cvt.u64.u32", "u64", ("u32",), (x.view(np.uint32),)) == x.view(np.uint32).astype(np.uint64)).all()
    assert (run_op("cvt.u16.u32", "u16", ("u32",), (x.view(np.uint32),)) == x.view(np.uint32).astype(np.uint16)).all()
    assert (run_op("cvt.s32.s8", "s32", ("s32",), (x,)) == x.astype(np.int8)).all()
    assert (run_op("cvt.sat.s16.s32", "s16", ("s32",), (x,)) == np.clip(x, -32768, 32767)).all()
    assert (run_op("cvt.sat.u32.s32", "u32", ("s32",), (x,)) == np.clip(x, 0, None)).all()


def test_narrowing_floats():
    x = floats(np.float32, np.random.default_rng(12))
    with np.errstate(all="ignore"):
        half = x.astype(np.float16)
    assert same(run_op("cvt.rn.f16.f32", "f16", ("f32",), (x,)), half).all()
    wide = floats(np.float64, np.random.default_rng(13))
    with np.errstate(all="ignore"):
        assert same(run_op("cvt.rn.f32.f64", "f32", ("f64",), (wide,)), wide.astype(np.float32)).all()
    normal = np.abs(wide[np.isfinite(wide) & (np.abs(wide) < 1e30) & (np.abs(wide) > 1e-30)])
    down = run_op("cvt.rz.f32.f64", "f32", ("f64",), (normal,))
    assert (down <= normal).all()
    assert (np.nextafter(down, np.float32(np.inf)) > normal).all()
    assert (run_op("cvt.f64.f32", "f64", ("f32",), (np.nan_to_num(x),)) == np.nan_to_num(x)).all()


def test_bfloat16_conversions():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = floats(np.float32, np.random.default_rng(14))
    with np.errstate(all="ignore"):
        expected = x.astype(ml_dtypes.bfloat16)
    got = run_op("cvt.rn.bf16.f32", "bf16", ("f32",), (x,)).view(ml_dtypes.bfloat16)
    number = ~np.isnan(x)
    assert (got.view(np.uint16)[number] == expected.view(np.uint16)[number]).all()
    assert np.isnan(got[~number].astype(np.float32)).all()
    pair = run_op("cvt.rn.bf16x2.f32", "b32", ("f32", "f32"), (x, x[::-1].copy()))
    low = (pair & 0xFFFF).astype(np.uint16)
    assert (low[number[::-1]] == expected.view(np.uint16)[::-1][number[::-1]]).all()
    back = run_op("cvt.f32.bf16", "f32", ("bf16",), (expected.view(np.uint16),))
    assert same(back[number], expected.astype(np.float32)[number]).all()


def test_tf32_keeps_ten_bits():
    x = np.array([1.0, 1 + 2**-11, 1 + 2**-10, 1 + 3 * 2**-12, -3.14159], np.float32)
    got = run_op("cvt.rna.tf32.f32", "b32", ("f32",), (x,)).view(np.float32)
    assert got.tolist() == pytest.approx([1.0, 1 + 2**-10, 1 + 2**-10, 1 + 2**-10, -3.1406250])


@pytest.mark.parametrize("type, rtol", [("f16", 0), ("bf16", 0)])
def test_sixteen_bit_arithmetic_rounds_to_the_type(type, rtol):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    real = np.float16 if type == "f16" else ml_dtypes.bfloat16
    rng = np.random.default_rng(15)
    a, b, c = (rng.standard_normal(200).astype(real) for _ in range(3))
    store = NUMPY[type]
    inputs = [value.view(np.uint16).view(store) for value in (a, b, c)]
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    result = run_op(f"fma.rn.{type}", type, (type,) * 3, inputs).view(np.uint16).view(real)
    assert (result == exact.astype(np.float32).astype(real)).mean() > 0.99
    result = run_op(f"add.{type}", type, (type,) * 2, inputs[:2]).view(np.uint16).view(real)
    assert (result == (a.astype(np.float32) + b.astype(np.float32)).astype(real)).all()
    packed = [value.view(np.uint32) for value in (a, b)]
    result = run_op(f"mul.{type}x2", "b32", ("b32", "b32"), packed).view(real)
    assert (result == (a.astype(np.float32) * b.astype(np.float32)).astype(real)).all()


COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b), "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "equ": lambda a, b: (a == b) | np.isnan(a) | np.isnan(b), "neu": np.not_equal, "ltu": lambda a, b: ~(a >= b), "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b), "geu": lambda a, b: ~(a < b), "num": lambda a, b: ~np.isnan(a) & ~np.isnan(b), "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("type", ["f32", "f64", "f16"])
def test_float_comparisons_with_nan(name, type):
    rng = np.random.default_rng(16)
    a, b = floats(NUMPY[type], rng), floats(NUMPY[type], rng)
    b[::4] = a[::4]
    assert (run_op(f"setp.{name}.{type}", "pred", (type, type), (a, b)).astype(bool) == COMPARISONS[name](a, b)).all()


def test_integer_comparisons_and_boolean_operators():
    rng = np.random.default_rng(17)
    a, b = integers("s32", rng), integers("s32", rng)
    p = rng.integers(0, 2, len(a)).astype(np.uint32)
    assert (run_op("setp.lt.s32", "pred", ("s32", "s32"), (a, b)).astype(bool) == (a < b)).all()
    unsigned = a.view(np.uint32), b.view(np.uint32)
    assert (run_op("setp.hi.u32", "pred", ("u32", "u32"), unsigned).astype(bool) == (unsigned[0] > unsigned[1])).all()
    for name, function in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
        result = run_op(f"setp.ge.{name}.s32", "pred", ("s32", "s32", "pred"), (a, b, p)).astype(bool)
        assert (result == function(a >= b, p.astype(bool))).all()
    assert (run_op("selp.b32", "s32", ("s32", "s32", "pred"), (a, b, p)) == np.where(p, a, b)).all()
    assert (run_op("slct.s32.s32", "s32", ("s32", "s32", "s32"), (a, b, a)) == np.where(a >= 0, a, b)).all()
    assert (run_op("set.lt.u32.s32", "u32", ("s32", "s32"), (a, b)) == np.where(a < b, 2**32 - 1, 0)).all()
    assert (run_op("set.lt.f32.s32", "f32", ("s32", "s32"), (a, b)) == (a < b)).all()


def test_properties_of_floats():
    x = np.array([1, 0, np.inf, np.nan, 1e-40], np.float32)
    expected = {
        "finite": [1, 1, 0, 0, 1], "infinite": [0, 0, 1, 0, 0], "number": [1, 1, 1, 0, 1], "notanumber": [0, 0, 0, 1, 0],
        "normal": [1, 0, 0, 0, 0], "subnormal": [0, 0, 0, 0, 1],
    }  # fmt: skip
    for name, values in expected.items():
        assert run_op(f"testp.{name}.f32", "pred", ("f32",), (x,)).tolist() == values


def test_rounding_to_integral_floats():
    x = floats(np.float32, np.random.default_rng(18))
    for mode, function in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
        with np.errstate(invalid="ignore"):
            expected = function(x)
        assert same(run_op(f"cvt.{mode}.f32.f32", "f32", ("f32",), (x,)), expected).all()


def test_carry_chain_adds_128_bits():
    rng = np.random.default_rng(19)
    values = [rng.integers(0, 2**64, 64, np.uint64) for _ in range(4)]
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) {
 .reg .b32 %t; .reg .b64 %p<3>; .reg .b64 %x<6>;
 mov.u32 %t, %tid.x; ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c];
 mad.wide.u32 %p0, %t, 16, %p0; mad.wide.u32 %p1, %t, 16, %p1; mad.wide.u32 %p2, %t, 16, %p2;
 ld.global.v2.u64 {%x0, %x1}, [%p0]; ld.global.v2.u64 {%x2, %x3}, [%p1];
 add.cc.u64 %x4, %x0, %x2; addc.u64 %x5, %x1, %x3;
 st.global.v2.u64 [%p2], {%x4, %x5}; ret; }"""
    a, b = np.stack(values[:2], 1), np.stack(values[2:], 1)
    c = np.zeros((64, 2), np.uint64)
    arrays = [GlobalArray("a", a, False), GlobalArray("b", b, False), GlobalArray("c", c, True, False)]
    assert simulate(ptx, "k", (1, 1, 1), (64, 1, 1), arrays).findings == ()
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        assert (x[0] + (x[1] << 64) + y[0] + (y[1] << 64)) % 2**128 == z[0] + (z[1] << 64)


def test_an_unknown_opcode_is_an_error_that_names_it():
    x = np.zeros(4, np.float32)
    with pytest.raises(SimulationError, match=r"frobnicate\.f32"):
        run_op("frobnicate.f32", "f32", ("f32",), (x,))
    with pytest.raises(SimulationError, match=r"setp\.weird\.f32"):
        run_op("setp.weird.f32", "pred", ("f32", "f32"), (x, x))
