"""What C99 lacks: floor division, NaN-keeping extrema, saturating conversions and the rarer functions, as C text.

Each helper is printed above the function that uses it, once. A row of `FUNCTIONS` is a body with `{T}` for the type and `{f}` for
the suffix of its functions; `needs` names other helpers.

Worked example: `rsqrt` of `float` becomes

    static inline float rsqrt_f(float x) { return 1 / sqrtf(x); }
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.program import DType

C_TYPES = {
    DType.BOOL: "bool",
    **{dtype: f"{dtype.value}_t" for dtype in DType if dtype.is_integer},
    DType.FLOAT16: "_Float16",
    DType.BFLOAT16: "uint16_t",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
}
"""The type of an element. Of `bfloat16` only the bits have a type in C; `_Float16` is known to GCC 12 and Clang 15."""

_LIBRARY = """
acos acosh asin asinh atan atanh cos cosh sin sinh tan tanh exp exp2 expm1 log log2 log10 log1p logb sqrt cbrt erf erfc
lgamma tgamma fabs ceil floor round trunc atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder fma
"""
LIBRARY = frozenset(_LIBRARY.split())
"""Functions of the language that `math.h` has under the same name."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of the language that C99 lacks: its parameters, its body, and the helpers that the body calls."""

    parameters: tuple[str, ...]
    body: str
    needs: tuple[str, ...] = ()


_X = ("x",)
FUNCTIONS: dict[str, Helper] = {
    "rsqrt": Helper(_X, "return 1 / sqrt{f}(x);"),
    "rcbrt": Helper(_X, "return 1 / cbrt{f}(x);"),
    "exp10": Helper(_X, "return pow{f}(10, x);"),
    "sigmoid": Helper(_X, "return 1 / (1 + exp{f}(-x));"),
    "relu": Helper(_X, "return x < 0 ? 0 : x;"),
    "abs": Helper(_X, "return fabs{f}(x);"),
    "rounded": Helper(_X, "volatile {T} y = x;\nreturn y;"),
    "sign": Helper(_X, "return x != x ? x : ({T})((x > 0) - (x < 0));"),
    "sinpi": Helper(
        _X,
        "{T} r = x - 2 * floor{f}(x / 2 + ({T})0.5);\n"
        "if (fabs{f}(r) > ({T})0.5) r = copysign{f}(1, r) - r;\n"
        "return sin{f}(({T})3.14159265358979323846 * r);",
    ),
    "cospi": Helper(_X, "{T} r = fabs{f}(x - 2 * round{f}(x / 2));\nreturn sinpi_{s}(({T})0.5 - r);", ("sinpi",)),
    "fdivide": Helper(("a", "b"), "return a / b;"),
    "rhypot": Helper(("a", "b"), "return 1 / hypot{f}(a, b);"),
    "norm3d": Helper(("a", "b", "c"), "return hypot{f}(hypot{f}(a, b), c);"),
    "rnorm3d": Helper(("a", "b", "c"), "return 1 / hypot{f}(hypot{f}(a, b), c);"),
    "norm4d": Helper(("a", "b", "c", "d"), "return hypot{f}(hypot{f}(a, b), hypot{f}(c, d));"),
    "rnorm4d": Helper(("a", "b", "c", "d"), "return 1 / hypot{f}(hypot{f}(a, b), hypot{f}(c, d));"),
    "normcdf": Helper(_X, "return erfc{f}(x * ({T})-0.70710678118654752440) / 2;"),
    "erfcx": Helper(
        _X,
        "double y = x, q = 1 / (2 * y * y);\n"
        "if (y < 25) return ({T})(exp(y * y) * erfc(y));\n"
        "return ({T})((1 - q * (1 - 3 * q * (1 - 5 * q * (1 - 7 * q * (1 - 9 * q))))) / (y * 1.77245385090551602730));",
    ),
    # Newton on log(erfc(y)), which is concave, from an elementary estimate (Winitzki 2008).
    "erfcinv": Helper(
        _X,
        "double z = x;\n"
        "if (z > 1) return -erfcinv_{s}(({T})(2 - z));\n"
        "if (z <= 0) return z < 0 ? NAN : INFINITY;\n"
        "double w = log(z * (2 - z)), t = 4.33074675078736 + w / 2, y = sqrt(sqrt(t * t - w / 0.147) - t);\n"
        "for (int k = 0; k < 4; k++) {{\n"
        "    double e = erfc(y);\n"
        "    y += log(e / z) * e / (1.12837916709551257390 * exp(-y * y));\n"
        "}}\n"
        "return ({T})y;",
    ),
    "erfinv": Helper(
        _X,
        "double a = fabs(x), y = a;\n"
        "if (a > 0.5) return copysign{f}(({T})erfcinv_d(1 - a), x);\n"
        "for (int k = 0; k < 5; k++) y -= (erf(y) - a) / (1.12837916709551257390 * exp(-y * y));\n"
        "return copysign{f}(({T})y, x);",
        ("erfcinv:float64",),
    ),
    "normcdfinv": Helper(_X, "return ({T})(-1.41421356237309504880 * erfcinv_d(2 * (double)x));", ("erfcinv:float64",)),
    "j0": Helper(_X, "return ({T})j0(x);"),
    "j1": Helper(_X, "return ({T})j1(x);"),
    "y0": Helper(_X, "return ({T})y0(x);"),
    "y1": Helper(_X, "return ({T})y1(x);"),
    # As the helper of CUDA, which says where it is from.
    "digamma": Helper(
        _X,
        "double z = x, sum = 0;\n"
        "if (z == 0) return ({T})copysign(INFINITY, -z);\n"
        "if (z < 0) {{\n"
        "    double part = z - trunc(z);\n"
        "    if (!(part != 0)) return NAN;\n"
        "    sum = -3.14159265358979323846 / tan(3.14159265358979323846 * part);\n"
        "    z = 1 - z;\n"
        "}}\n"
        "if (z < 1) {{\n"
        "    sum -= 1 / z;\n"
        "    z += 1;\n"
        "}} else if (z < 10) {{\n"
        "    for (; z > 2; sum += 1 / z) z -= 1;\n"
        "}}\n"
        "if (z <= 2) {{\n"
        "    double g = z - 1569415565.0 / 1073741824.0 - 381566830.0 / 1073741824.0 / 1073741824.0, t = z - 1;\n"
        "g -= 0.9016312093258695918615325266959189453125e-19;\n"
        "    double p = -0.0020713321167745952, q = -0.55789841321675513e-6;\n"
        "    p = (((p * t - 0.045251321448739056) * t - 0.28919126444774784) * t - 0.65031853770896507) * t;\n"
        "    p = (p - 0.32555031186804491) * t + 0.25479851061131551;\n"
        "    q = ((q * t + 0.0021284987017821144) * t + 0.054151797245674225) * t + 0.43593529692665969;\n"
        "    q = ((q * t + 1.4606242909763515) * t + 2.0767117023730469) * t + 1;\n"
        "    return ({T})(sum + (g * 0.99558162689208984 + g * (p / q)));\n"
        "}}\n"
        "double t = 1 / (z * z), y = 8.33333333333333333333e-2;\n"
        "y = ((y * t - 2.10927960927960927961e-2) * t + 7.57575757575757575758e-3) * t - 4.16666666666666666667e-3;\n"
        "y = ((y * t + 3.96825396825396825397e-3) * t - 8.33333333333333333333e-3) * t + 8.33333333333333333333e-2;\n"
        "return ({T})(sum + (log(z) - 0.5 / z - t * y));",
    ),
    "hurwitz": Helper(
        ("s", "q"),
        "const double by[12] = {{12, -720, 30240, -1209600, 47900160, -1892437580.3183791606, 74724249600,\n"
        "    -2950130727918.164224, 116467828143500.67249, -4597978722407472.6105, 181521054019435467.73,\n"
        "    -7166165256175667011.3}};\n"
        "double sum = 0, rising = 1;\n"
        "for (int k = 0; k < 10; k++, q += 1) sum += pow(q, -s);\n"
        "double power = pow(q, -s);\n"
        "sum += pow(q, 1 - s) / (s - 1) + power / 2;\n"
        "for (int k = 0; k < 12; k++) {{\n"
        "    rising *= s + 2 * k;\n"
        "    power /= q;\n"
        "    sum += rising * power / by[k];\n"
        "    rising *= s + 2 * k + 1;\n"
        "    power /= q;\n"
        "}}\n"
        "return sum;",
    ),
    "polygamma": Helper(
        ("n", "x"),
        "if (n == 0) return ({T})digamma_d(x);\n"
        "if (!(n > 0 && n == floor{f}(n))) return NAN;\n"
        "double s = (double)n + 1, z = x, sign = s == 2 * floor(s / 2) ? 1 : -1, y = z - floor(z), zeta;\n"
        "if (z > 0) zeta = hurwitz_d(s, z);\n"
        "else if (y == 0) zeta = INFINITY;\n"
        "else zeta = hurwitz_d(s, y) + sign * (hurwitz_d(s, ceil(z) - z) - hurwitz_d(s, 1 - z));\n"
        "return ({T})(sign * tgamma(s) * zeta);",
        ("digamma:float64", "hurwitz:float64"),
    ),
    "cyl_bessel_i0": Helper(
        _X,
        "double q = (double)x * x / 4, term = 1, sum = 1;\n"
        "for (int k = 1; term > 1e-17 * sum && k < 2000; k++) sum += term *= q / ((double)k * k);\n"
        "return ({T})sum;",
    ),
    "cyl_bessel_i1": Helper(
        _X,
        "double q = (double)x * x / 4, term = (double)x / 2, sum = term;\n"
        "for (int k = 1; fabs(term) > 1e-17 * fabs(sum) && k < 2000; k++) sum += term *= q / ((double)k * (k + 1));\n"
        "return ({T})sum;",
    ),
}
"""Functions of the language that `math.h` lacks (the Bessel functions of the first two kinds are POSIX)."""


def function_text(name: str, dtype: DType) -> list[str]:
    """The definitions of a function of `FUNCTIONS` for one floating type, those it needs first."""
    helper, needed = FUNCTIONS[name], list[str]()
    for need in helper.needs:
        other, _, kind = need.partition(":")
        needed += function_text(other, DType(kind) if kind else dtype)
    kind, suffix = C_TYPES[dtype], suffix_of(dtype)
    body = helper.body.format(T=kind, f="" if dtype is DType.FLOAT64 else "f", s=suffix)
    return [*needed, defined(kind, f"{name}_{suffix}", [(kind, each) for each in helper.parameters], body)]


def defined(kind: str, name: str, parameters: list[tuple[str, str]], body: str) -> str:
    """The definition of a helper: on one line if its body is one statement."""
    head = f"static inline {kind} {name}({', '.join(f'{of} {each}' for of, each in parameters)})"
    lines = body.split("\n")
    return (
        f"{head} {{ {body} }}" if len(lines) == 1 else "\n".join([head, "{", *(f"    {line}" for line in lines), "}"])
    )


def suffix_of(dtype: DType) -> str:
    """`f` and `d` for the floats, the name of the type for others: what tells helpers of one name apart."""
    return {DType.FLOAT32: "f", DType.FLOAT64: "d"}.get(dtype, dtype.value)


def _two(name: str, dtype: DType, body: str) -> str:
    kind = C_TYPES[dtype]
    return defined(kind, f"{name}_{suffix_of(dtype)}", [(kind, "a"), (kind, "b")], body)


def floor_division(dtype: DType) -> str:
    """Rounds down; by zero it gives 0, and the one quotient that does not fit wraps around."""
    if not dtype.is_signed:
        return _two("floor_div", dtype, "return b == 0 ? 0 : a / b;")
    kind = C_TYPES[dtype]
    return _two(
        "floor_div",
        dtype,
        f"if (b == 0 || b == -1) return ({kind})(b * (u{kind})a);\n"
        f"{kind} q = ({kind})(a / b);\n"
        f"return q * b != a && (a < 0) != (b < 0) ? ({kind})(q - 1) : q;",
    )


def floor_remainder(dtype: DType) -> str:
    """What `floor_div` leaves: it has the sign of `b`. An integer leaves 0 by zero."""
    kind = C_TYPES[dtype]
    if dtype.is_float:
        remainder = f"{kind} r = fmod{'' if dtype is DType.FLOAT64 else 'f'}(a, b);"
    elif dtype.is_signed:
        remainder = f"if (b == 0 || b == -1) return 0;\n{kind} r = ({kind})(a % b);"
    else:
        return _two("floor_mod", dtype, "return b == 0 ? 0 : a % b;")
    return _two("floor_mod", dtype, f"{remainder}\nreturn r != 0 && (r < 0) != (b < 0) ? ({kind})(r + b) : r;")


def shift(op: str, dtype: DType) -> str:
    """By the width or more, or by a negative number, everything is shifted out; the sign stays to the right."""
    kind, negative = C_TYPES[dtype], "b < 0 || " if dtype.is_signed else ""
    if op == "<<":
        body = f"return {negative}b >= {dtype.bits} ? 0 : ({kind})((uint64_t)a << b);"
        return _two("shift_left", dtype, body)
    rest = "(a < 0 ? -1 : 0)" if dtype.is_signed else "0"
    return _two("shift_right", dtype, f"return {negative}b >= {dtype.bits} ? {rest} : ({kind})(a >> b);")


PHILOX = defined(
    "uint32_t",
    "philox",
    [("int", "word"), *(("uint32_t", name) for name in ("k0", "k1", "c0", "c1", "c2", "c3"))],
    "for (int round = 0; round < 10; round++) {\n"
    "    uint64_t p = (uint64_t)0xD2511F53u * c0, q = (uint64_t)0xCD9E8D57u * c2;\n"
    "    c0 = (uint32_t)(q >> 32) ^ c1 ^ k0;\n"
    "    c2 = (uint32_t)(p >> 32) ^ c3 ^ k1;\n"
    "    c1 = (uint32_t)q;\n"
    "    c3 = (uint32_t)p;\n"
    "    k0 += 0x9E3779B9u;\n"
    "    k1 += 0xBB67AE85u;\n"
    "}\n"
    "return word == 0 ? c0 : c1;",
)
"""A word of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011)."""


def extremum(op: str, dtype: DType) -> str:
    """`min` or `max`; of floats NaN if an operand is NaN."""
    keeps = " || a != a" if dtype.is_float else ""
    return _two(op, dtype, f"return a {'<' if op == 'min' else '>'} b{keeps} ? a : b;")


def saturating(dtype: DType) -> str:
    """From `double` to an integer type: cuts off the fraction, keeps to the ends of the type, NaN gives 0."""
    kind, (low, high) = C_TYPES[dtype], dtype.limits
    body = (
        f"if (x != x) return 0;\n"
        f"if (x <= {float(low)!r}) return {literal(low, dtype)};\n"
        f"return x >= {float(high)!r} ? {literal(high, dtype)} : ({kind})x;"
    )
    return defined(kind, f"to_{suffix_of(dtype)}", [("double", "x")], body)


BFLOAT16 = [
    defined(
        "float",
        "from_bfloat16",
        [("uint16_t", "bits")],
        "uint32_t wide = (uint32_t)bits << 16;\nfloat x;\nmemcpy(&x, &wide, 4);\nreturn x;",
    ),
    defined(
        "uint16_t",
        "to_bfloat16",
        [("float", "x")],
        "uint32_t bits;\nmemcpy(&bits, &x, 4);\nif (x != x) return (uint16_t)(bits >> 16 | 0x40);\n"
        "return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);",
    ),
]
"""A `bfloat16` is the upper half of a `float`, rounded to nearest even."""


def literal(value: int, dtype: DType) -> str:
    """An integer as C writes it; the most negative ones have no literal of their own."""
    if dtype in (DType.UINT32, DType.UINT64):
        return f"{value}u" if value < 1 << 32 else f"UINT64_C({value})"
    if value in (-(1 << 31), -(1 << 63)):
        return f"INT{32 if value == -(1 << 31) else 64}_MIN"
    return f"{value}" if abs(value) < 1 << 31 else f"INT64_C({value})"
