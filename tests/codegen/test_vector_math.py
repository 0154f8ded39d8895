from __future__ import annotations

import mpmath
import numpy as np
import pytest
from llvm_kernels import F32, ISAS, execute, pointwise

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import coefficients, emit_llvm
from tc_jupyter.codegen.llvm.known import KNOWN
from tc_jupyter.program import Call, Const, DType, Unary
from tc_jupyter.schedule import Target

F64 = DType.FLOAT64
ONE = [
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "erf",
    "erfc",
    "normcdf",
    "erfinv",
    "cbrt",
    "sqrt",
    "rsqrt",
]
MP = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "exp10": lambda x: mpmath.mpf(10) ** x,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "expm1": lambda x: mpmath.expm1(x),
    "normcdf": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "pow": lambda x, y: x**y,
    "hypot": lambda x, y: mpmath.sqrt(x * x + y * y),
}
NUMPY = {
    "exp10": lambda x: np.power(10.0, x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "pow": np.power,
}
SCIPY = {"erf": "erf", "erfc": "erfc", "normcdf": "ndtr", "erfinv": "erfinv"}
LARGEST = {"sin": 1e6, "cos": 1e6, "tan": 1e6, "exp10": 300, "asin": 1, "acos": 1, "atanh": 1, "erfinv": 1}
DOMAIN = {"log": 0, "log2": 0, "log10": 0, "sqrt": 0, "rsqrt": 0, "log1p": -1, "acosh": 1}
UNIT = ("asin", "acos", "atanh", "erfinv")
TWO = ["pow", "hypot", "atan2", "fmod"]


def run(function: str, *inputs: np.ndarray, lanes: int = 16, isa: str | None = None) -> np.ndarray:
    dtype = F32 if inputs[0].dtype == np.float32 else F64
    names = ["A", "B"][: len(inputs)]
    made = pointwise(lambda *a: Call(function, a, dtype), dict.fromkeys(names, dtype), dtype, lanes)
    out = np.empty_like(inputs[0])
    execute(made, {**dict(zip(names, inputs, strict=True)), "Y": out}, {"N": len(out)}, isa=isa)
    return out


def reference(function: str, *values: np.ndarray) -> np.ndarray:
    """In `double`, for `float` inputs; a few functions by formulas that are exact enough."""
    with np.errstate(all="ignore"):
        wide = [each.astype(np.float64) for each in values]
        if function in SCIPY:
            found = getattr(pytest.importorskip("scipy.special"), SCIPY[function])(*wide)
            # the sign of a zero, which SciPy loses
            return np.copysign(found, wide[0]) if function == "erfinv" else found
        return NUMPY.get(function, getattr(np, function, None))(*wide)


def worst(function: str, got: np.ndarray, *inputs: np.ndarray) -> float:
    """The largest error in units of the last place, by 50 digits; results beyond the largest number are infinite."""
    exact = MP.get(function, getattr(mpmath, function, None))
    kind = np.finfo(got.dtype)
    largest = mpmath.mpf(float(kind.max))
    errors = [0.0]
    with mpmath.workdps(50):
        for y, *arguments in zip(got, *inputs, strict=True):
            want = exact(*(mpmath.mpf(float(x)) for x in arguments))
            exponent = int(mpmath.frexp(want)[1]) - 1 if want else kind.minexp
            unit = mpmath.mpf(2) ** (max(exponent, kind.minexp) - kind.nmant)
            if abs(want) > largest + unit / 2:
                errors.append(0.0 if np.isinf(y) and (y > 0) == (want > 0) else np.inf)
            else:
                errors.append(float(abs(mpmath.mpf(float(y)) - want) / unit))
    return float(np.max(errors))


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units in the last place of the result type; 0 where both are the same infinity or NaN."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        error = np.abs(got.astype(np.float64) - want) / np.spacing(np.abs(rounded)).astype(np.float64)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, np.where(np.isfinite(error), error, 0), np.where(np.isnan(error), np.inf, error))


@pytest.mark.some(3)
@pytest.mark.parametrize("function", ONE)
def test_float32_over_every_exponent(function):
    rng = np.random.default_rng(1)
    every = (np.arange(512, dtype=np.uint64) << 23)[:, None] + rng.integers(0, 1 << 23, (512, 64), dtype=np.uint64)
    dense = rng.standard_normal(60000) * np.repeat([0.1, 1.0, 30.0], 20000)
    values = np.concatenate([every.astype(np.uint32).reshape(-1).view(np.float32), dense.astype(np.float32)])
    assert ulps(run(function, values), reference(function, values)).max() <= 2


@pytest.mark.some(4)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("function", ONE)
def test_float64_against_mpmath(function, isa):
    rng = np.random.default_rng(2)
    wide = rng.integers(0, 1 << 64, 200, dtype=np.uint64).view(np.float64)
    values = np.concatenate(
        [
            wide,
            rng.standard_normal(600) * np.repeat([1e-5, 0.2, 1.0, 8.0, 100.0, 400.0], 100),
            1 + rng.standard_normal(200) * 1e-3,
            rng.uniform(-1, 1, 200),
        ]
    )
    values = values[np.isfinite(values) & (np.abs(values) < LARGEST.get(function, 700))]
    values = values[values > DOMAIN.get(function, -np.inf)]
    assert worst(function, run(function, values, isa=isa), values) <= (4 if isa == "baseline" else 2)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]


@pytest.mark.some(4)
@pytest.mark.parametrize("function", [*ONE, "floor", "ceil", "trunc", "fabs"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lanes", [0, 16])
def test_special_values(function, dtype, lanes):
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.array([*SPECIAL, tiny, -tiny, np.finfo(dtype).max, -np.finfo(dtype).max], dtype)
    if function in ("tan", "sin", "cos"):
        values = values[:-2]
    got = run(function, values, lanes=lanes)
    want = reference(function, values)
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
    assert ulps(got, want).max() <= 2
    zeros = (rounded == 0) & (got == 0)
    if function not in ("exp", "exp2", "exp10", "sigmoid", "erfc", "normcdf"):
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(rounded[zeros]))


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("function", ONE)
def test_every_instruction_set(isa, function):
    values = (np.linspace(0.01, 20, 333) / (20 if function in UNIT else 1)).astype(np.float32)
    assert ulps(run(function, values, isa=isa), reference(function, values)).max() <= (4 if isa == "baseline" else 2)


@pytest.mark.some(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", sorted(KNOWN))
def test_any_number_of_lanes(function, dtype):
    values = np.linspace(0.1, 0.9, 40).astype(dtype) + (function == "acosh")
    inputs = (values, values[::-1].copy()) if function in TWO else (values,)
    want = run(function, *inputs)
    for lanes in (0, 3, 7):
        np.testing.assert_allclose(run(function, *inputs, lanes=lanes), want, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("function", ["sin", "cos", "tan"])
def test_large_angles(function):
    values = np.array([1e5, 1e6, 12345678.0, 1e10, 1e22, 3e38, 2.0], np.float32)
    assert ulps(run(function, values), reference(function, values)).max() <= 2
    wide = np.array([1e8, 1e9, 1e10, 1e22, 1e300, 2.0])
    assert ulps(run(function, wide), getattr(np, function)(wide)).max() <= 2


@pytest.mark.parametrize("function", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_next_to_whole_quarters(function, dtype):
    """Where almost nothing is left of the argument, all digits of the rest count."""
    rng = np.random.default_rng(6)
    whole = np.concatenate([rng.integers(1, top, 300) for top in (100, 10000, 6e4 if dtype is np.float32 else 6e8)])
    with mpmath.workdps(60):
        values = np.array([float(mpmath.pi / 2 * int(n)) for n in whole], dtype)
    assert worst(function, run(function, values), values) <= 2


def test_small_tails():
    """Results that lose bits since they are small keep all others."""
    values = np.concatenate([np.linspace(26, 28, 200), np.linspace(8.9, 10.2, 200)])
    assert worst("erfc", run("erfc", values), values) <= 2
    assert worst("normcdf", run("normcdf", -1.5 * values), -1.5 * values) <= 2
    single = values[200:].astype(np.float32)
    assert worst("erfc", run("erfc", single), single) <= 2
    assert worst("normcdf", run("normcdf", -1.5 * single), -1.5 * single) <= 2


def test_steep_functions_next_to_the_largest_number():
    for dtype, edge in ((np.float32, 89.4159), (np.float64, 710.4758)):
        values = np.linspace(edge - 0.8, edge + 0.1, 200).astype(dtype)
        assert worst("sinh", run("sinh", values), values) <= 2
        assert worst("cosh", run("cosh", -values), values) <= 2


def pairs(function: str, dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Operands of all sizes, of like sizes, and such that a power is within the range."""
    rng = np.random.default_rng(3)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    wide = rng.integers(0, np.iinfo(bits).max, (2, count), dtype=bits, endpoint=True).view(dtype)
    like = (rng.standard_normal((2, 3 * count)) * np.repeat([0.1, 1.0, 30.0], count)).astype(dtype)
    x, y = np.concatenate([wide, like], axis=1)
    with np.errstate(all="ignore"):
        if function == "pow":
            x = np.concatenate([np.abs(x), np.abs(wide[0]), (1 + like[0] * 1e-4).astype(dtype)])
            reach = 1100 if dtype is np.float64 else 155
            far = rng.uniform(-reach, reach, 4 * count) / np.log2(x[4 * count :].astype(np.float64))
            y = np.concatenate([y, far.astype(dtype)])
        fine = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
        if function == "pow":
            fine &= np.abs(y * np.log2(x.astype(np.float64))) < 2000
    return x[fine], y[fine]


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", TWO)
def test_functions_of_two_arguments(function, dtype, isa):
    x, y = pairs(function, dtype, 200)
    got = run(function, x, y, isa=isa)
    if function == "fmod":
        np.testing.assert_array_equal(got, np.fmod(x, y))
    else:
        assert worst(function, got, x, y) <= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("function", TWO)
def test_special_values_of_two_arguments(function, lanes, dtype):
    kind = np.finfo(dtype)
    half = [
        0.0,
        1.0,
        2.0,
        0.5,
        3.0,
        2.5,
        1 - kind.eps,
        1 + kind.eps,
        np.inf,
        kind.max,
        kind.tiny,
        kind.smallest_subnormal,
    ]
    # odd up to here: the last number with a unit of 1, the next ones are even
    half += [2.0 ** (kind.nmant + 1) - 1, 2.0 ** (kind.nmant + 1), 2.0**kind.nmant + 1, 1e9]
    edge = np.array([*half, *(-x for x in half), np.nan], dtype)
    x, y = np.repeat(edge, len(edge)), np.tile(edge, len(edge))
    got = run(function, x, y, lanes=lanes)
    with np.errstate(all="ignore"):
        want = reference(function, x, y)
        assert ulps(got, want).max() <= 2
        zeros = (got == 0) & (want.astype(dtype) == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize(
    "function",
    ["sinpi", "cospi", "normcdf", "rcbrt", "lgamma", "tgamma", "erfc", "erfcx", "erfinv", "cyl_bessel_i0", "j0"],
)
def test_rarer_functions(function):
    special = pytest.importorskip("scipy.special")
    values = np.linspace(0.05, 0.95, 41)
    exact = {
        "sinpi": lambda x: np.sin(np.pi * x),
        "cospi": lambda x: np.cos(np.pi * x),
        "normcdf": special.ndtr,
        "rcbrt": lambda x: 1 / np.cbrt(x),
        "lgamma": special.gammaln,
        "tgamma": special.gamma,
        "cyl_bessel_i0": special.i0,
    }
    want = exact.get(function, getattr(special, function, None))(values)
    np.testing.assert_allclose(run(function, values), want, rtol=1e-14, atol=1e-15)


def test_whole_numbers_of_half_turns_are_exact():
    values = np.array([0.0, -0.0, 1.0, 2.0, 1e9, 0.5, 1.5, -0.5, np.inf], np.float32)
    np.testing.assert_array_equal(run("sinpi", values), [0, -0.0, 0, 0, 0, 1, -1, -1, np.nan])
    np.testing.assert_array_equal(run("cospi", values), [1, 1, -1, 1, 1, 0, 0, 0, np.nan])


def test_coefficients_are_those_of_the_script():
    fit = pytest.importorskip("fit_coefficients")
    _, function, low, high, single, double = fit.TABLES["TANH"]
    assert tuple(fit.fit(function, low, high, single, True)) == coefficients.TANH_32
    assert tuple(fit.fit(function, low, high, double, False)) == coefficients.TANH_64
    assert tuple(fit.minimax(*fit.WEIGHTED["EXP2_WIDE"][1:])) == coefficients.EXP2_WIDE


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("function", ["exp", "tanh", "sigmoid"])
def test_registers_of_avx512_are_scaled_by_one_step(function, dtype):
    """The exponent is not put together from bits there."""
    made = pointwise(lambda x: Call(function, (x,), dtype), {"A": dtype}, dtype, 16)
    for features in ({"avx512f"}, set()):
        text = emit_llvm(
            made, Target("cpu", vector_bits=512, fma=True, features=frozenset(features), arch="x86_64")
        ).text
        assert (" = shl <" in text, " = call <8 x double> @llvm.x86.avx512.mask.scalef.pd.512(" in text) == (
            not features,
            bool(features) and dtype is F64,
        )


def literal(value, dtype):
    """A number as the language has it: what is negative is the opposite of one."""
    return Unary("-", Const(-value, dtype), dtype) if value < 0 else Const(value, dtype)


@pytest.mark.parametrize(
    "exponent",
    [
        0.0,
        0.5,
        1.5,
        2.5,
        3.5,
        5.0,
        7.0,
        7.5,
        -0.5,
        -1.0,
        -1.5,
        -2.0,
        -2.5,
        -3.0,
        -7.5,
        8.5,
        12.0,
        16.0,
        -6.0,
        -12.0,
        0.75,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_halves(exponent, dtype):
    kind, finite = np.finfo(dtype), np.random.default_rng(5).lognormal(0, 40 if dtype is np.float32 else 250, 400)
    ends = [kind.smallest_subnormal, 3 * kind.tiny, kind.max, 0.7 * kind.max, -2.0, -kind.tiny]
    values = np.concatenate([finite, -finite[:40], ends, SPECIAL])
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    made = pointwise(
        lambda a: Call("pow", (a, literal(exponent, a.dtype)), a.dtype),
        {"A": DType(dtype.__name__)},
        DType(dtype.__name__),
        16,
    )
    out = np.empty_like(values)
    execute(made, {"A": values, "Y": out}, {"N": len(out)})
    with np.errstate(all="ignore"):
        want = np.power(np.abs(values.astype(np.longdouble)), np.longdouble(exponent))
        if exponent % 1 == 0:
            want = np.where((exponent % 2 == 1) & np.signbit(values), -want, want)
        else:
            want = np.where((values < 0) & np.isfinite(values), np.nan, want)
        assert ulps(out, want).max() <= 2
    zeros = (out == 0) & np.isfinite(want)
    np.testing.assert_array_equal(np.signbit(out[zeros]), np.signbit(want[zeros]))


def test_powers_of_a_sum_that_is_written_out_are_products():
    """`Y(i) +=! C(k) * pow(X(i), float(k))`, a polynomial of five terms, took 16 times as long as its loops in C."""
    text = "def f(float(N) X, float({terms}) C) -> (Y) {{ Y(i) +=! C(k) * pow(X(i), float(k)) }}"
    polynomial, any_length = (tc.compile(text.format(terms=terms), target="cpu").f for terms in ("5", "K"))
    assert "fcmp" in any_length.source("llvm")  # special values of a power
    assert "fcmp" not in polynomial.source("llvm")
    x, c = np.linspace(-2, 2, 70, dtype=np.float32), np.array([1, -2, 0.5, 3, -1], np.float32)
    np.testing.assert_allclose(polynomial(x, c), np.polynomial.polynomial.polyval(x, c), rtol=1e-5, atol=1e-5)
