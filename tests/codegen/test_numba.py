"""Plain loops in Python: without Numba they compute what the interpreter computes, with it the same, and they read as one writes them."""

from __future__ import annotations

import ast
import math
import sys
import warnings
from types import ModuleType

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.bench import plain
from tc_jupyter.bench.workloads import make_data
from tc_jupyter.compiler.plain import plain_numba
from tc_jupyter.function import Options, module_of
from tests.literate import all_cases

STAND_IN = ModuleType("numba")
STAND_IN.njit = lambda **options: lambda function: function
STAND_IN.prange = range


@pytest.fixture
def without_numba(monkeypatch):
    """The text runs as plain Python."""
    monkeypatch.setitem(sys.modules, "numba", STAND_IN)


def compared(function, arguments):
    """Call the loops and the interpreter; `None` where the call is refused, or Numba has no such thing."""
    if function.analysis.program.statements[0].accumulate:
        return None  # what it adds to is in `out=`
    values = tuple(arguments.values())
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        try:
            results = function(*values)
            results = results if isinstance(results, tuple) else (results,)
            sizes = function.definition(*values).inputs(values).sizes
            loops, written = plain.numba_call(function, arguments, results, sizes)
        except tc.CallError:
            return None
        loops()
    assert function.judge(*values)(results, tuple(written)), plain_numba(function.analysis).text
    return written


def interpreted(text, language="tc"):
    analysis = tc.analyze(text, language)
    assert analysis.ok, text
    return module_of(analysis, Options(text, language, target="interpreter"))


def run(text, **arguments):
    return compared(interpreted(text)["f"], arguments)


def test_a_product_as_a_person_would_write_it():
    module = tc.compile("def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }")
    assert (
        module.mv.source("numba")
        == """\
import numba
import numpy as np

FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}  # infinity and NaN stay


# mv(float32(R, C) A, float32(C) B) -> (float32 o(R))
@numba.njit(parallel=True, fastmath=FASTMATH, error_model="numpy")
def mv(A, B, o):
    R, C = A.shape
    # o(i) +=! A(i, j) * B(j)
    for i in numba.prange(R):
        o[i] = 0.0
        for j in range(C):
            o[i] += A[i, j] * B[j]
"""
    )


def called_cases():
    """Defs of the cases that are called, with the arguments of the call."""
    for case in all_cases():
        for fence in case.expectations:
            if fence.kind == "values":
                call = ast.parse(" ".join(fence.options), mode="eval").body
                given = [eval(ast.unparse(each), {"inf": math.inf, "nan": math.nan}) for each in call.args]
                yield case, call.func.id, given


def test_cases_that_are_called(without_numba):
    found = 0
    for case, name, given in called_cases():
        function = module_of(case.analysis, Options(case.program, case.language, target="interpreter"))[name]
        program = function.analysis.program
        arrays = [
            np.array(each, program.tensor(own).element.value)
            for own, each in zip(program.parameters, given, strict=True)
        ]
        values = [each if each.ndim else each.item() for each in arrays]
        found += compared(function, dict(zip(program.parameters, values, strict=True))) is not None
    assert found > 30


def test_programs_of_the_suite(without_numba):
    """Every third one, at a few elements; one whose text has large sizes is left out."""
    programs = [program for program in plain.programs() if "known size" not in program.name][::3]
    assert sum(map(small_program, programs)) > len(programs)


def small_program(program):
    """How many of its spellings were compared."""
    sizes = {name: min(number, 4 + place) for place, (name, number) in enumerate(program.sizes[0].items())}
    module = dict(interpreted(program.text).items())
    arguments = make_data(program, next(iter(module.values())), sizes)
    return sum(compared(function, arguments) is not None for function in module.values())


INTEGERS = """def f(int8(N) A, uint16(N) B, double(N) X, int64(N) L, uint64(N) U, int32 s) -> (C, D, I, J, K, M, E, F, G, H, Q, R, S, T) {
    C(i) = A(i) * A(i) + A(i)  D(i) = -B(i)  I(i) = int8(X(i))  J(i) = uint32(X(i))  K(i) = int64(X(i))
    M(i) = int16(L(i))  E(i) = X(i) != 0 && bool(A(i))  F(i) = L(i) / A(i)  G(i) = L(i) % A(i)  H(i) = A(i) / int8(-3)
    Q(i) = X(i) % -2.5  R(i) = U(i) / 3 + (U(i) >> A(i))  S(i) = (A(i) << B(i)) ^^ A(i)  T(i) = abs(A(i)) + s * sign(A(i))
}"""


def integers():
    numbers = [0, -1.9, 300, 1e300, -np.inf, np.nan, 2.0**63, 4e9]
    return {
        "A": np.array([100, -128, 127, 3, 0, 5, -1, 64], np.int8),
        "B": np.arange(8).astype(np.uint16) * 9000,
        "X": np.array(numbers),
        "L": np.array([2**63 - 1, -(2**63), 70000, 5, -32769, 0, -(2**63), 2], np.int64),
        "U": np.array([2**64 - 1, 2**63, 0, 1, 2, 3, 4, 5], np.uint64),
        "s": 2**31 - 1,
    }


def test_integers_wrap_divisions_round_down_and_floats_saturate(without_numba):
    assert run(INTEGERS, **integers()) is not None


def test_functions(without_numba):
    names = [
        "rsqrt",
        "rcbrt",
        "exp10",
        "sigmoid",
        "relu",
        "round",
        "sinpi",
        "cospi",
        "acosh",
        "erf",
        "lgamma",
        "tgamma",
        "normcdf",
        "sign",
        "abs",
        "trunc",
        "isnan",
        "rounded",
    ]
    lines = [f"R{n}(i) = {name}(X(i))" for n, name in enumerate(names)]
    lines += [f"S{n}(i) = {name}(X(i), Y(i))" for n, name in enumerate(["pow", "fdim", "rhypot", "atan2", "fmod"])]
    lines += ["F(i) = fma(X(i), Y(i), X(i))  G(i) = norm4d(X(i), Y(i), X(i), Y(i))"]
    results = ", ".join(line.partition("(")[0] for line in lines) + ", G"
    text = f"def f(float(N) X, float(N) Y) -> ({results}) {{ {' '.join(lines)} }}"
    x = np.array([0.3, 1.5, 0.01, 3.0, 2.25, 0.5, 25.5], np.float32)
    assert run(text, X=x, Y=x[::-1].copy()) is not None


def test_numbers_without_dimensions_and_complex_ones(without_numba):
    text = "def f(complex64(N) X, complex64 a, double b) -> (Y, s, z) { Y(i) = X(i) * a  s max=! re(X(i)) * b  z +=! Y(i) }"
    assert run(text, X=np.array([1 + 2j, -3j, 4], np.complex64), a=2 - 1j, b=0.1) is not None


def test_names_of_python_and_of_the_module(without_numba):
    text = """def lambda(float(len, np) pass, float(np) 2x) -> (numba, FASTMATH) {
        class(i) +=! pass(i, del) * 2x(del)  numba(i) = class(i) + 1  FASTMATH(i) = numba(i) * rsqrt(class(i))
    }"""
    values = {"pass": np.ones((3, 4), np.float32), "2x": np.arange(4, dtype=np.float32)}
    assert compared(interpreted(text)["lambda"], values) is not None


def test_sizes_that_no_shape_shows_come_first(without_numba):
    text = "def f(float(2*D) X) -> (Y) { Y(d) = X(d) - X(d + D) where d in 0:D }"
    assert "def f(D, X, Y):" in tc.compile(text).f.source("numba")
    assert run(text, X=np.arange(6, dtype=np.float32)) is not None


@pytest.mark.parametrize(
    ("text", "parallel"),
    [
        ("def f(float(N) X) -> (Y) { Y(i) = (Y(i - 1) else 0) + X(i) along i }", False),
        ("def f(float(N) X) -> (Y) { Y(i) = X(N - 1 - i)  Y(i) = 2 * Y(i) }", True),
        ("def f(uint8(N) X) -> (H) { H(X(i)) +=! 1 }", False),
        ("def f(float(N, M) X) -> (Y) { Y(n) max=! X(n, m) }", True),
    ],
)
def test_a_loop_that_reads_what_another_round_writes_is_not_parallel(text, parallel):
    f = tc.compile(text).f
    assert ("numba.prange(N)" in f.source("numba")) == parallel
    assert f.source("numba").count("numba.prange") == f.source("c").count("omp parallel for")
    assert ("parallel=True" in f.source("numba")) == ("prange" in f.source("numba"))


@pytest.mark.parametrize(
    ("value", "flags"),
    [
        ("rounded(X(i) * X(i)) + 1", '"nsz", "arcp", "afn"'),
        ("pow(X(i), float(int32(i)))", '"nsz", "arcp", "contract", "reassoc"'),
    ],
)
def test_functions_beside_which_less_may_be_done(value, flags):
    """A process in which LLVM may approximate `pow(x, float(n))` ends."""
    text = tc.compile(f"def f(float(N) X) -> (Y) {{ Y(i) = {value} }}").f.source("numba")
    assert f"FASTMATH = {{{flags}}}" in text


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("def f(half(N) X) -> (Y) { Y(i) = X(i) }", "TC504", "`X` is of type float16"),
        ("def f(float(N) X) -> (Y) { Y(i) = float(bfloat16(X(i))) }", "TC504", "of type bfloat16"),
        ("def f(float(N) X) -> (Y) { Y(i) = erfinv(X(i)) }", "TC501", "`erfinv`"),
    ],
)
def test_what_numba_lacks_is_told(text, code, place):
    with pytest.raises(tc.CallError, match=place) as refused:
        tc.compile(text).f.source("numba")
    assert refused.value.diagnostic.code.number == code
    assert refused.value.diagnostic.span.end > 0


BITS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def bits_of(dtype):
    """Some integers, ends of the type among them, how many bits are 1 in each, and in the exclusive or of two."""
    ends = np.iinfo(dtype)
    values = np.array([ends.min, ends.max, ends.max - 1, ends.max // 3, 0, 1, 77, ends.min + 2], dtype)
    pairs = values[:, None] ^ values
    counts, distances = np.bitwise_count(values), np.bitwise_count(pairs)
    if dtype.startswith("i"):  # of negative numbers NumPy counts those of the absolute value
        counts, distances = (np.bitwise_count(each.view(f"u{dtype}")) for each in (values, pairs))
    return values, counts, distances.sum(1)


def check_popcount(dtype):
    values, counts, distances = bits_of(dtype)
    text = f"""def f({dtype}(N) X) -> (Y, D) {{
        Y(i) = popcount(X(i))
        D(i) +=! popcount(X(i) ^^ X(j))
    }}"""
    found = run(text, X=values)
    assert found is not None
    np.testing.assert_array_equal(found[0], counts)
    np.testing.assert_array_equal(found[1], distances)


@pytest.mark.parametrize("dtype", BITS)
def test_bits_are_counted(without_numba, dtype):
    check_popcount(dtype)


def test_numba_computes_the_same():
    pytest.importorskip("numba")
    for dtype in BITS:
        check_popcount(dtype)
    assert run(INTEGERS, **integers()) is not None
    text = """def f(float(N) X, int32(M) I) -> (Y, s) {
        T(m) = exp(X(I(m)) + X(max(m, 1) - 1))  Y(m) = T(m) + pow(uniform(7, m), I(m))  s +=! T(m)
    }"""
    assert run(text, X=np.arange(5, dtype=np.float32), I=np.array([4, 0, 2], np.int32)) is not None


@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
def test_the_sign_of_an_unsigned_integer(dtype):
    """The `np.sign` of Numba 0.68 gives the integer itself."""
    source = tc.compile(f"def f({dtype}(N) A) -> (Y) {{ Y(i) = sign(A(i)) }}").f.source("numba")
    assert f"np.{dtype}(A[i] > 0)" in source
