"""Compiled functions as users hold them: calls, options, what they tell about themselves."""

from __future__ import annotations

import inspect
import pickle
import re
import threading
import traceback
import warnings
from functools import partial
from pathlib import PurePosixPath

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.emit import PASSES
from tc_jupyter.compiler.agreement import close
from tc_jupyter.function import Options
from tc_jupyter.runtime import nvrtc
from tc_jupyter.runtime.cpu import cpu_target
from tc_jupyter.runtime.launch import entry_point

CELL = """
def mv(float(R,C) A, float(C) B) -> (o) { o(i) +=! A(i,j) * B(j) }
def matmul(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }
def softmax(float(N,M) X) -> (Y) {
    m(i) max=! X(i,j)
    e(i,j) = exp(X(i,j) - m(i))
    s(i) +=! e(i,j)
    Y(i,j) = e(i,j) / s(i)
}
def shift(float(N) X, float a) -> (Y) { Y(i) = a*X(i-1) + X(i+1) }
def layer(float(N,M) X, float(O,M) W) -> (H) { H(n,o) += X(n,m) * W(o,m) }
def total(float(N,M) X) -> (Y) { Y(i) += X(i,j) }
def both(float(N) X) -> (P, Q) { P(i) = X(i) + 1  Q(i) = P(i) * X(i) }
def whole(float(N) X) -> (s) { s +=! X(i) }
def scale(float(N) X, int k) -> (Y) { Y(i) = X(i) * k where i in 0:N }
def part(float(N) X, int32 k) -> (Y) { Y(i) = X(i) where i in 0:k }
def square(half(N) X) -> (Y) { Y(i) = X(i) * X(i) }
def brain(bfloat16(N) X) -> (Y) { Y(i) = X(i) * 2 }
"""

TARGETS = ["interpreter", "cpu"]


@pytest.fixture(scope="module", params=TARGETS)
def module(request):
    if request.param == "cpu":
        pytest.importorskip("llvmlite")
    return tc.compile(CELL, target=request.param, allow=["TC232", "TC321"])


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(found, expected):
    np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=2e-5, atol=2e-5)


# calls ---------------------------------------------------------------------------------------------------------------------------


def test_what_a_range_says_is_what_is_printed():
    text = "def f(float(N, M) X) -> (Y) { Y(i) +=! X(i, k) where k in 0:i + 1, i in 0:N }"
    found = next(each for each in tc.compile(text, allow=["TC322"]).f.ranges if each.index == "k")
    assert (found.lower, found.upper, str(found)) == ("0", "i + 1", "Y: 0 <= k < i + 1")
    assert str(found.sympy[1]) == found.upper
    assert found.upper in found.latex


def test_a_docstring_controls_no_terminal():
    f = tc.compile("def f(float(N) X) -> (Y) { # \x1b[2J\n Y(i) = X(i) }").f
    assert "# \ufffd[2J\n Y(i) = X(i)" in f.__doc__


def test_a_matrix_product_of_every_layout(module):
    a, b = floats(9, 7), floats(7, 17, seed=1)
    layouts = [
        lambda x: x,
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
        lambda x: x.astype(">f4"),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.float32, x.size, 1).reshape(x.shape),
    ]
    for first in layouts:
        for second in layouts:
            for _ in range(2):  # the second call takes the short way
                same(module.matmul(first(a), second(b)), a.astype(float) @ b)


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (2, 3, 1), (1, 16, 17), (31, 33, 32), (0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)]
)
def test_new_sizes_run_the_same_code(module, sizes):
    m, k, n = sizes
    a, b = floats(m, k), floats(k, n, seed=1)
    other = 1 if k == 1 else 5  # the same class: what K is plays no part, except that one term is no sum
    module.matmul(floats(max(m, 1), other), floats(other, max(n, 1)))
    if 0 in sizes:
        module.matmul(floats(0, 1), floats(1, 1))  # one version serves all calls with a size of 0
    before = len(module.matmul._definition._ready)
    found = module.matmul(a, b)
    assert found.shape == (m, n)
    same(found, a.astype(float) @ b)
    assert len(module.matmul._definition._ready) == before


@pytest.mark.parametrize("ask", ["simulate", "resources", "benchmark", "tune", "source"])
def test_missing_arguments_are_named_everywhere(ask):
    matmul = tc.compile(CELL, allow=["TC232", "TC321"]).matmul
    given = ("cuda", floats(2, 3)) if ask == "source" else (floats(2, 3),)
    with pytest.raises(tc.CallError, match="`B` is missing"):
        getattr(matmul, ask)(*given)


def test_sizes_have_few_classes(module):
    before = len(module.matmul._definition._ready)
    for m in range(1, 40):
        same(module.matmul(floats(m, 3), floats(3, 2, seed=1)), floats(m, 3).astype(float) @ floats(3, 2, seed=1))
    assert len(module.matmul._definition._ready) <= before + 9  # 1, up to 4 and 8, 16, 32, 24, others to 16, 32, 64


def test_statements_temporaries_and_reductions(module):
    x = floats(6, 11)
    e = np.exp(x - x.max(1, keepdims=True))
    for _ in range(2):
        same(module.softmax(x), e / e.sum(1, keepdims=True))


def test_moved_origins_and_scalars(module):
    x = floats(12)
    arrays = np.array(2.5, np.float32), np.array(2.5), np.array(2)  # a value counts, not the type that holds it
    for a in (2.5, 2, np.float32(2.5), np.float64(2), *arrays):
        same(module["shift"](x, a), float(a) * x[:-2] + x[2:])
    same(module.part(x, 5), x[:5])
    same(module.scale(x, k=-3), -3 * x)
    same(module.scale(x, np.array(-3)), -3 * x)
    with pytest.raises(tc.CallError, match=r"TC607.*2\.5 is no integer"):
        module.scale(x, np.array(2.5))
    with pytest.raises(tc.CallError, match=r"(?s)TC608.* is a number .*int32; .*shape \(1,\) came.* `int32 k`"):
        module.scale(x, np.array([3]))


def test_several_results_and_rank_zero(module):
    x = floats(5)
    p, q = module.both(x)
    same(p, x + 1)
    same(q, (x + 1) * x)
    s = module.whole(x)
    assert isinstance(s, np.ndarray)
    assert s.shape == ()
    same(s, x.sum())


def test_results_are_fresh_and_inputs_untouched(module):
    a, b = floats(3, 3), floats(3, 3, seed=1)
    kept = a.copy(), b.copy()
    first, second = module.matmul(a, b), module.matmul(a, b)
    assert not np.shares_memory(first, second)
    first[...] = 0
    same(second, kept[0].astype(float) @ kept[1])
    assert (a == kept[0]).all()
    assert (b == kept[1]).all()


def test_out_is_returned_and_accumulated_into(module):
    x = floats(4, 6)
    out = np.ones(4, np.float32)
    assert module.total(x, out=out) is out
    same(out, 1 + x.sum(1))
    same(module.total(x), x.sum(1))
    strided = np.ones(8, np.float32)[::2]
    module.total(x, out=strided)
    same(strided, 1 + x.sum(1))
    p, q = np.empty(5, np.float32), np.empty(5, np.float32)
    v = floats(5)
    first, second = module.both(v, out=(p, q))
    assert first is p
    assert second is q
    same(p, v + 1)
    same(q, (v + 1) * v)


def test_a_temporary_whose_length_is_a_scalar():
    """The number of tasks is one of sizes only."""
    f = tc.compile(
        """def f(float(N) A, int64 s) -> (Y) {
          T(i,j) = A(i)*A(j) where i in 0:s, j in 0:N
          Y(i) +=! T(j,i) where j in 0:s
        }""",
        target="cpu",
    ).f
    a = np.arange(5, dtype="f")
    np.testing.assert_allclose(f(a, 3), a * 3)


def test_a_strided_out_whose_rows_have_a_sum_of_sizes():
    """The distance of rows is that of the array, not the length `N + 1` that rows have."""
    f = tc.compile("def f(float(N) X) -> (Y) { Y(i,j) = X(i)*j where i in 0:N, j in 0:N+1 }", target="cpu").f
    x, wide = np.random.default_rng(0).random(9, "f"), np.full((9, 27), -7, "f")
    f(x, out=wide[:, :10])
    np.testing.assert_allclose(wide[:, :10], x[:, None] * np.arange(10, dtype="f"), rtol=1e-6)
    assert (wide[:, 10:] == -7).all()


def test_out_for_the_result_of_an_inner_def(module):
    """It is the storage of that result, at whatever strides."""
    text = "def g(float(N) X) -> (Y) { Y(i) = X(i) * 3 }  def f(float(N) X) -> (Z) { Z = g(X) }"
    f = tc.compile(text, target=module.mv.options.target).f
    x = floats(6)
    memory = np.zeros(12, np.float32)
    for _ in range(2):
        f(x, out=memory[::2])
        same(memory[::2], 3 * x)
        x = x + 1
    same(memory[1::2], np.zeros(6))


def test_accumulation_without_out_starts_from_nothing(module):
    """The product keeps its sums in a buffer of its own before they reach memory that held something else."""
    x, w = floats(9, 6), floats(5, 6, seed=1)
    for _ in range(3):
        same(module.layer(x, w), x @ w.T)
    same(module.layer(x, w, out=np.ones((9, 5), np.float32)), x @ w.T + 1)


def test_out_with_overlap(module):
    x = floats(10)
    with pytest.raises(tc.CallError, match="TC611"):
        module["shift"](x, 1.0, out=x[:8])
    p = np.empty(6, np.float32)
    with pytest.raises(tc.CallError, match="TC611"):
        module.both(floats(6), out=(p, p))
    y = floats(10)
    expected = y * 2
    module.scale(y, 2, out=y)
    same(y, expected)


def test_small_floats(module):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = floats(9).astype(np.float16)
    y = module.square(x)
    assert y.dtype == np.float16
    same(y, x * x)
    x = floats(9).astype(ml_dtypes.bfloat16)
    y = module.brain(x)
    assert y.dtype == ml_dtypes.bfloat16
    same(y.astype(np.float32), 2 * x.astype(np.float32))


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "value",
    [
        "X(" * 41 + "i" + ")" * 41,
        "X(" * 64 + "i" + ")" * 64,
        "X(" * 45 + "i" + "/2)" * 45,
        "X(I(i) + " * 20 + "i" + ")" * 20,
        "(X(i) < 1 ? X(i) + " * 40 + "X(i)" + " : 7)" * 40,
    ],
)
def test_deep_expressions_run_on_every_engine(value):
    text = f"def f(int(N) X, int(N) I) -> (Y) {{ Y(i) = {value} where i in 0:N }}"
    zeros = np.zeros(3, np.int32)
    for target in ("interpreter", "cpu"):
        assert tc.compile(text, target=target).f(zeros, zeros).tolist() == [0, 0, 0]


def test_functions_are_attributes_unless_a_module_has_one_of_that_name():
    names = ("add", "keys", "analysis")
    text = " ".join(f"def {name}(float(N) X) -> (Y) {{ Y(i) = X(i) + {k} }}" for k, name in enumerate(names))
    module = tc.compile(text, target="cpu")
    assert module.add is module["add"]
    assert tuple(module.keys()) == tuple(module) == names
    assert set(module.analysis.functions) == set(names)
    with pytest.raises(AttributeError, match="no function 'subtract'; it has add, keys, analysis"):
        module.subtract


def test_compile_warns_at_the_line_of_its_caller():
    text = "def f(float(N) X) -> (Y) { Y(i) = X(i) - X(i - 1) }"
    with pytest.warns(tc.DiagnosticWarning, match=r"^warning\[TC321\] moved-origin: .*") as told:
        module = tc.compile(text)
    assert [item.filename for item in told] == [__file__]
    assert [item.message.diagnostic for item in told] == [*module.analysis.diagnostics]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.compile(text, allow=("TC321",))
        pickle.loads(pickle.dumps(module.f))
        tc.compile("def g(float(N) X, int32(M) I) -> (Y) { Y(i) = X(I(i)) }")  # a note: TC323


def test_torch_in_torch_out(module):
    torch = pytest.importorskip("torch")
    a, b = torch.randn(5, 6, requires_grad=True), torch.randn(7, 6)
    with pytest.warns(tc.DiagnosticWarning, match=r"(?s)TC613.*`A` requires a gradient.*no_grad") as told:
        module.matmul(a, b.T, out=torch.zeros(5, 7))
    assert [item.filename for item in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module.matmul(a, b.T).requires_grad
        with torch.no_grad():
            assert not module.matmul(a, b.T).requires_grad
        a = a.detach()
        c = module.matmul(a, b.T)
    assert isinstance(c, torch.Tensor)
    same(c, (a @ b.T).detach())
    x = torch.randn(8).to(torch.bfloat16)
    y = module.brain(x)
    assert y.dtype == torch.bfloat16
    same(y.float(), 2 * x.float())
    out = torch.zeros(5, 7)
    assert module.matmul(a, b.T, out=out) is out
    same(out, c)


def test_jax_in_jax_out(module):
    jax = pytest.importorskip("jax")
    a = jax.numpy.asarray(floats(4, 4))
    c = module.matmul(a, a)
    assert isinstance(c, jax.Array)
    same(c, a @ a)


def test_a_registered_class(module):
    from tests.runtime.test_arrays import Toy, register_toy

    register_toy()
    x = Toy((4,))
    x.numpy()[...] = [1, 2, 3, 4]
    y = module.scale(x, 3)
    assert isinstance(y, Toy)
    assert y.numpy().tolist() == [3, 6, 9, 12]


# what does not fit ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "named", "code"),
    [
        ("matmul", (floats(2, 2),), {}, "TC606"),
        ("matmul", (floats(2, 2),) * 3, {}, "TC606"),
        ("matmul", (floats(2, 2),), {"X": floats(2, 2)}, "TC606"),
        ("matmul", (floats(2, 3), floats(2, 2)), {}, "TC605"),
        ("matmul", (floats(2, 2), floats(2, 2).astype(float)), {}, "TC607"),
        ("matmul", (floats(2, 2), floats(2, 2).astype(complex)), {}, "TC607"),
        ("matmul", (floats(2, 2), np.full((2, 2), None)), {}, "TC607"),
        ("matmul", (floats(2, 2), floats(2)), {}, "TC608"),
        ("matmul", (floats(2, 2), None), {}, "TC607"),
        ("scale", (floats(2), 1.5), {}, "TC607"),
        ("scale", (floats(2), 1 << 40), {}, "TC607"),
        ("mv", (floats(2, 2), floats(2)), {"out": floats(3)}, "TC610"),
        ("mv", (floats(2, 2), floats(2)), {"out": (floats(2), floats(2))}, "TC606"),
    ],
)
def test_calls_that_do_not_fit(module, name, args, named, code):
    for _ in range(2):
        with pytest.raises(tc.CallError, match=code) as caught:
            module[name](*args, **named)
        assert isinstance(caught.value, ValueError)
        assert caught.value.diagnostic.code.number == code


def test_a_call_error_shows_the_cell(module):
    with pytest.raises(tc.CallError) as caught:
        module.mv(floats(2, 3), floats(4))
    text = str(caught.value)
    assert "size `C` is 3 in `A` (dimension 1) and 4 in `B` (dimension 0)" in text
    assert "def mv(float(R,C) A" in text


# compile ---------------------------------------------------------------------------------------------------------------------------


def test_every_mistake_is_in_the_compile_error():
    with pytest.raises(tc.CompileError) as caught:
        tc.compile("def f(float(N) X) -> (Y) { Y(i) = Z(i) }\ndef g(float(N) X) -> (Y) { Y(i) = X(i, i) }")
    assert {diagnostic.code.number for diagnostic in caught.value.diagnostics} >= {"TC201", "TC202"}
    assert "TC201" in str(caught.value)


@pytest.mark.parametrize("options", [{"check": "some"}, {"target": "tpu"}, {"language": "fortran"}])
def test_unknown_options(options):
    with pytest.raises(ValueError):
        tc.compile(CELL, **options)


def bench(f, **options):
    return f.benchmark(floats(3, 4), floats(4), **options)


def doubled(A, B):
    A *= 2
    return A @ B


@pytest.mark.parametrize(
    ("use", "error", "said"),
    [
        (lambda f: tc.compile(3), TypeError, "the text of a cell is a string, not `int`"),
        (
            lambda f: tc.compile(PurePosixPath("a")),
            TypeError,
            "the text of a cell is a string, not `PurePosixPath`; `tc.load` co",
        ),
        (lambda f: tc.analyze(b".."), TypeError, "the text of a cell is a string, not `bytes`"),
        (lambda f: tc.compile(CELL, allow=3), TypeError, "allow=3: expected codes such as 'TC322'"),
        (lambda f: tc.compile(CELL, allow=[3]), TypeError, "allow=3: a code is a string such as 'TC322'"),
        (lambda f: tc.compile(CELL, allow="TC999"), ValueError, "allow: there is no message 'TC999'"),
        (lambda f: tc.explain(301), TypeError, "a code is a string such as 'TC301', not `int`"),
        (lambda f: tc.set_threads("a"), TypeError, "the number of threads is an integer, not `str`"),
        (lambda f: f.with_schedule(3), TypeError, "with_schedule takes what `schedule()` gives, not `int`"),
        (lambda f: f.shapes(R="a", C=4), TypeError, "R='a': a size is an integer"),
        (lambda f: f.shapes(R=True, C=4), TypeError, "R=True: a size is an integer"),
        (lambda f: f.shapes(R=3, C=-4), ValueError, "C=-4: a size is not negative"),
        (lambda f: f.shapes(R=3, C=1 << 63), ValueError, "C=9223372036854775808: a size has at most 64 bits"),
        (lambda f: f.cost(R=3, C=10**5000), ValueError, "C=an integer of 16610 bits: a size has at most 64 bits"),
        (lambda f: f.schedule().bounds(R=3, C=10**5000), tc.CompileError, "error[TC411]"),
        (lambda f: f.schedule().split("o", "i", 10**5000), tc.CompileError, "error[TC405]"),
        (lambda f: f.schedule().storage("o", pad=10**5000), tc.CompileError, "error[TC410]"),
        (lambda f: f.schedule().storage("o", layout=((10**5000, 0),)), tc.CompileError, "error[TC410]"),
        (lambda f: tc.set_threads(10**5000), ValueError, "the number of threads must be between 1 and 1024"),
        (lambda f: f.shapes(R=3, C=4, M=5), ValueError, "`mv` has no size 'M'; there are R, C"),
        (lambda f: f.source("cuda", Q=5), ValueError, "`mv` has no size 'Q'; there are R, C"),
        (lambda f: f.kernels(R=3, C=4, Q=5), ValueError, "`mv` has no size 'Q'; there are R, C"),
        (lambda f: f.cost(R=3, C=4, D=3), ValueError, "`mv` has no size 'D'; there are R, C"),
        (lambda f: tc.view(f, "foo"), ValueError, "there is no view 'foo'; there are ranges, "),
        (lambda f: tc.view(f, "ranges", R="x"), TypeError, "R='x': a size is an integer"),
        (lambda f: tc.view(f, "iteration_space", R=-1), ValueError, "R=-1: a size is not negative"),
        (lambda f: f.benchmark(R=64), TypeError, "`R` is a size: `benchmark` takes the arrays of a call, as in `mv."),
        (lambda f: f.tune(R=64), TypeError, "`R` is a size: `tune` takes the arrays of a call, as in `mv.tune(A, B)`"),
        (lambda f: bench(f, against={"mv": len}), ValueError, "against: 'mv' is the function itself: give the peer an"),
        (
            lambda f: bench(f, against={"a": doubled}),
            ValueError,
            "against: 'a' changes its arguments, which all candidates sh",
        ),
        (lambda f: bench(f, against="A @ B"), TypeError, "against='A @ B': peers have names, as in `against={"),
        (lambda f: bench(f, against=["A @ B"]), TypeError, "against=['A @ B']: peers have names, as in `against={"),
        (lambda f: bench(f, against=len), TypeError, "against=<built-in function len>: peers have names, as in `"),
        (
            lambda f: bench(f, against={"a": 3}),
            TypeError,
            "against: 'a' is neither a function nor an expression, but 3",
        ),
        (
            lambda f: bench(f, against={"a": "A @ B"}),
            ValueError,
            "the name of a peer that is an expression begins with",
        ),
        (lambda f: bench(f, against={"np": "A @"}), ValueError, "against: 'np' is no expression of Python: 'A @'"),
        (lambda f: bench(f, seconds=-1), ValueError, "seconds=-1: a time is not negative"),
        (lambda f: f.tune(floats(3, 4), floats(4), seconds=-1), ValueError, "seconds=-1: a time is not negative"),
        (lambda f: bench(f, seconds="1"), TypeError, "seconds='1': expected a number of seconds"),
        (lambda f: tc.view(f, "benchmark", seconds=-1), ValueError, "seconds=-1: a time is not negative"),
        (lambda f: tc.view(f, "tuning", seconds=-1), ValueError, "seconds=-1: a time is not negative"),
        (
            lambda f: tc.view(f, "benchmark", against="A @ B"),
            TypeError,
            "against='A @ B': peers have names, as in `aga",
        ),
        (
            lambda f: tc.view(f, "benchmark", against={"mv": len}),
            ValueError,
            "against: 'mv' is measured already: give the",
        ),
        (lambda f: tc.view(f, "ranges", R=3, Q=5), ValueError, "`mv` has no size 'Q'; there are R, C"),
        (lambda f: tc.view(f, "ranges", sizes={"R": 3}), ValueError, "`mv` has no size 'sizes'; there are R, C"),
    ],
)
def test_wrong_values_are_told_in_a_sentence(module, use, error, said):
    with pytest.raises(error) as caught:
        use(module.mv)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("take", [
    "cost", "shapes", "kernels", "resources", "default_schedule", "bounds", "loops", "c", "numba", "llvm", "cuda", "like",
])  # fmt: skip
@pytest.mark.parametrize("given", [{"C": 3}, {"s": 1, "C": 3}, {"R": 2, "C": 3}])
def test_a_size_that_is_missing_is_told_with_those_there_are(take, given, tmp_path):
    """Whatever takes sizes by name takes all of them, integer scalars among them, or none."""
    f = tc.compile("def f(float(R, C) A, int32 s) -> (o) { o(i) +=! A(i, j) where j in 0:s }", allow="TC322").f
    takes = {
        "bounds": f.schedule().bounds,
        "like": lambda **sizes: f.export(tmp_path / "x", like=[sizes]),
        **{kind: partial(f.source, kind) for kind in ("loops", "c", "numba", "llvm", "cuda")},
    }
    missing = next(name for name in ("R", "C", "s") if name not in given)
    with pytest.raises((tc.CallError, tc.CompileError), match=rf"TC614.*`{missing}` is not given") as caught:
        (takes.get(take) or getattr(f, take))(**given)
    assert "the sizes are `R`, `C`, `s`" in str(caught.value)


def test_the_cost_of_a_call(module):
    A, B = floats(3, 4), floats(4)
    assert module.mv.cost(A, B) == module.mv.cost(R=3, C=4)
    assert module.mv.cost(A, B).flops == 24
    with pytest.raises(tc.CallError, match="TC606"):
        module.mv.cost(A)


def test_arguments_by_name_are_measured(module):
    found = module.mv.benchmark(B=floats(4), A=floats(3, 4), seconds=0.01)
    assert [row.name for row in found.rows] == ["mv"]
    with pytest.raises(tc.CallError, match=r"TC606.*no parameter `D`"):
        module.mv.benchmark(A=floats(3, 4), D=1)


WINDOW = "def f(float(N) X, int16 len, uint8 s) -> (Y) { Y(i) = X(i*s) where i in 0:len }"


@pytest.mark.parametrize(("name", "value", "said"), [
    ("len", 300000, "len=300000: `int16` holds -32768 to 32767"), ("len", -32769, "len=-32769: `int16` holds"),
    ("s", -1, "s=-1: `uint8` holds 0 to 255"), ("s", 256, "s=256: `uint8` holds 0 to 255"),
])  # fmt: skip
def test_a_scalar_by_name_is_of_its_type(name, value, said, tmp_path):
    """Whatever takes sizes by name refuses a number that no call can pass; the ends of the type are numbers of it."""
    f = tc.compile(WINDOW, allow="TC322").f
    given = {"N": 10, "len": 3, "s": 1, name: value}
    takers = [getattr(f, each) for each in ("cost", "shapes", "kernels", "resources", "default_schedule")]
    takers += [partial(f.source, kind) for kind in ("loops", "c", "llvm", "cuda")]
    takers += [partial(tc.view, f, "ranges"), partial(tc.view, f, "benchmark")]
    takers.append(lambda **sizes: f.export(tmp_path / "x", like=[sizes]))
    takers.append(lambda **sizes: tc.view(f, "benchmark", sweep={name: [sizes[name]]}))
    for take in takers:
        with pytest.raises(ValueError, match=re.escape(said)):
            take(**given)
    with pytest.raises(tc.CompileError, match="TC411") as caught:
        f.schedule().bounds(**given)
    assert said in str(caught.value)
    assert f.shapes(N=32767, len=32767, s=1) == {"Y": (32767,)}
    assert f.shapes(N=10**6, len=3, s=255) == {"Y": (3,)}


def test_the_cost_of_a_call_that_is_refused_is_none():
    with pytest.raises(tc.CallError, match="TC602"):
        tc.compile(WINDOW, allow="TC322").f.cost(N=10, len=-3, s=1)


def test_a_parameter_may_be_called_out():
    """By name it is that argument; what is written into is `out=` only where the parameter has its argument already."""
    f = tc.compile("def f(float(N) X, float(N) out) -> (Y) { Y(i) = 2 * out(i) + X(i) }").f
    x, y = floats(3), floats(3) + 1
    for call in (lambda: f(x, y), lambda: f(x, out=y), lambda: f(X=x, out=y)):
        np.testing.assert_array_equal(call(), 2 * y + x)
    written = np.zeros(3, np.float32)
    assert f(x, y, out=written) is written
    np.testing.assert_array_equal(written, 2 * y + x)
    assert [*inspect.signature(f).parameters] == ["X", "out"]
    with pytest.raises(tc.CallError, match=r"TC606.*`X` is missing"):
        f(out=y)


def test_a_size_is_not_fixed_to_a_negative_number():
    with pytest.raises(ValueError, match="specialize: N=-4: a size is not negative"):
        tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) }", specialize={"N": -4})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("language", ["tc", "sac"])
def test_a_comment_may_hold_half_a_character(language, target):
    text = {
        "tc": "def f(float(N) X) -> (Y) { Y(i) = X(i) # \ud800\n * 2 }",
        "sac": "float[*] f(float[*] X) { return X // \ud800\n * 2; }",
    }
    f = tc.compile(text[language], language=language, target=target).f
    x = np.full(3, 3, np.float32)
    same(f(x), 2 * x)
    assert f.source("cuda", x).isascii()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["half", "float", "double"])
def test_powers_of_special_values_are_those_of_c(dtype, target):
    f = tc.compile(f"def f({dtype}(N) X, {dtype}(M) P) -> (Y) {{ Y(i,j) = pow(X(i), P(j)) }}", target=target).f
    type_ = {"half": np.float16, "float": np.float32, "double": np.float64}[dtype]
    found = f(np.array([-np.inf, -0.0, -2], type_), np.array([0.5, 1.5, 2.5, 3, -0.5, -3, 2], type_))
    expected = [
        [np.inf, np.inf, np.inf, -np.inf, 0.0, -0.0, np.inf],
        [0.0, 0.0, 0.0, -0.0, np.inf, -np.inf, 0.0],
        [np.nan, np.nan, np.nan, -8, np.nan, -0.125, 4],
    ]
    np.testing.assert_array_equal(found, np.array(expected, type_))
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(np.array(expected, type_)[:2]))


def test_sizes_are_integers_of_any_kind_and_scalars_may_be_negative():
    text = "def g(float(N) X, int k) -> (o) { o(i) = X(i + k) where i in 0:N - k }"
    g = tc.compile(text, allow="tc322").g
    assert not g.analysis.program.sizes[1:]
    assert g.shapes(N=np.int64(5), k=2) == {"o": (3,)}
    with pytest.raises(tc.CallError, match=r"i \+ k"):
        g.shapes(N=5, k=-2)


def test_the_error_of_a_call_stands_alone(module):
    """A traceback shows no exception of ours that was caught on the way."""
    with pytest.raises(tc.CallError) as caught:
        module.mv([1, 2], floats(2))
    assert caught.value.__suppress_context__
    assert "During handling" not in "".join(traceback.format_exception(caught.value))


def test_a_module_is_a_mapping_and_has_attributes():
    module = tc.compile(CELL)
    assert len(module) == 12
    assert "mv" in module
    assert "vm" not in module
    assert list(module)[:2] == ["mv", "matmul"]
    assert module["mv"] is module.mv
    assert "softmax" in dir(module)
    with pytest.raises(AttributeError, match="vm"):
        module.vm
    with pytest.raises(KeyError):
        module["vm"]


def test_names_that_python_cannot_spell():
    module = tc.compile("def 2fc(float(N) X) -> (Y) { Y(i) = X(i) }\ndef lambda(float(N) in_) -> (Y) { Y(i) = in_(i) }")
    assert list(module) == ["_2fc", "lambda_"]
    assert module["2fc"] is module._2fc
    same(module.lambda_(floats(3)), floats(3))


def test_functions_of_earlier_cells_can_be_called():
    first = tc.compile("def twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }")
    second = tc.compile(
        "def four(float(N) X) -> (Z) { T = twice(X)  Z = twice(T) }",
        known={"twice": first.twice},
        target="interpreter",
    )
    same(second.four(floats(5)), 4 * floats(5))


# what a function tells ----------------------------------------------------------------------------------------------------------------


def test_signature_shapes_and_documentation(module):
    f = module.matmul
    assert f.__name__ == "matmul"
    assert f.signature == "matmul(float32(M, K) A, float32(K, N) B) -> (float32(M, N) C)"
    assert list(inspect.signature(f).parameters) == ["A", "B", "out"]
    assert f.signature in f.__doc__
    assert f.shapes(M=3, K=4, N=5) == {"C": (3, 5)}
    assert f.shapes(floats(3, 4), floats(4, 5)) == {"C": (3, 5)}
    assert module["shift"].shapes(N=12) == {"Y": (10,)}


def test_ranges_of_every_index(module):
    first = module["shift"].ranges[0]
    assert (first.statement, first.index, first.lower, first.upper) == ("Y", "i", "1", "N - 1")
    assert (first.kind, first.source, first.round) == ("output", "inferred", 1)
    assert first.because
    assert str(first) == "Y: 1 <= i < N - 1"
    assert [item.index for item in module.matmul.ranges] == ["i", "j", "k"]


def test_every_range_says_why():
    f = tc.compile(
        """
        def f(float(N) X, float(K) W) -> (float(N + 1) Y, Z) {
            Y(i) = 0
            Y(j) += X(j) where j in 0:N
            Z(i) +=! X(i + k) * W(k)
        }
    """,
        allow="TC325",
    ).f
    why = {(item.statement, item.index): item.because for item in f.ranges}
    assert why["Y", "i"] == ("given by the extent of `Y`",)
    assert why["Y#2", "j"] == ("given by `where`",)
    assert why["Z", "i"] == ("0 <= i + k < N  (X)",)
    assert all(why.values())
    f = tc.compile("def f(float(N) X, int32 T) -> (float(T, N) Y) { along t in 0:T { Y(t, i) = X(i) } }").f
    assert [item.because for item in f.ranges] == [("given by `along`",), ("0 <= i < N  (X)",)]


def test_bounds_as_formulas(module):
    pytest.importorskip("sympy")
    first = module["shift"].ranges[0]
    lower, upper = first.sympy
    assert lower == 1
    assert upper.subs({symbol: 7 for symbol in upper.free_symbols}) == 6
    assert "N" in first.latex
    assert "i" in first.latex
    flops = module.matmul.cost().flops
    assert flops.subs({symbol: 2 for symbol in flops.free_symbols}) == 16


def test_costs(module):
    cost = module.matmul.cost(M=2, K=3, N=4)
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (48, 4 * (6 + 12), 32)
    assert cost.bytes == 104
    assert module.softmax.cost(N=2, M=3).bytes == 48


@pytest.mark.parametrize("kind", ["loops", "passes", "c", "llvm", "asm", "cuda"])
def test_sources(module, kind):
    if kind in ("llvm", "asm"):
        pytest.importorskip("llvmlite")
    text = module.mv.source(kind)
    assert "mv" in text
    strided = module.mv.source(kind, floats(4, 4).T, floats(4))
    assert strided != text or kind in ("loops", "passes", "c")


def test_passes_have_names_and_reasons(module):
    names = [name for name, _, _ in PASSES]
    assert len(set(names)) == len(names)
    lines = module.matmul.source("passes").splitlines()
    headings = [line for line in lines if line.startswith("-- ")]
    assert headings[0] == "-- lowered"
    known = {f"-- {name}: {why}" for name, why, _ in PASSES}
    assert set(headings[1:]) - {"-- lowered"} <= known
    assert any(line.startswith("-- tasks: ") for line in headings)


def test_sources_with_arrays_are_what_a_call_with_them_runs(module):
    pytest.importorskip("llvmlite")
    f = module.matmul.on("cpu")
    a, b = floats(40, 40), floats(40, 40)
    f(a, b)
    known = f._known((a, b))
    (layout,) = [layout for engine, layout in known._ready if engine == "cpu"]
    sources = known.build(cpu_target(), layout).sources
    assert f.source("llvm", a, b) == "\n\n".join(source.text for source in sources)
    assert [step.run.entry for step in known._ready["cpu", layout].steps] == [entry_point(source) for source in sources]
    assert f.source("llvm", a, b) != f.source("llvm")
    empty = f.source("loops", floats(0, 40), b)
    assert empty != f.source("loops", a, b)


def test_sources_of_fixed_sizes(module):
    f = tc.compile("def scaled(float(N) x) -> (y) { y(i) = x(i) * N }", specialize=True).scaled
    assert "1013" in f.source("loops", floats(1013))
    assert "1013" not in f.source("loops")


def test_unknown_source_kinds(module):
    for kind in ("fortran", "rewrites"):
        with pytest.raises(ValueError):
            module.mv.source(kind)


def test_pickled_functions_compute_the_same(module):
    f = pickle.loads(pickle.dumps(module.mv))
    a, b = floats(3, 4), floats(4)
    same(f(a, b), module.mv(a, b))
    assert f.signature == module.mv.signature


def test_threads_share_a_function():
    module = tc.compile(CELL)
    a = floats(40, 30)
    b = floats(30, 20, seed=1)
    failures = []

    def work():
        for _ in range(20):
            if not np.allclose(module.matmul(a, b), a @ b, atol=1e-4) or not np.allclose(
                module.total(a), a.sum(1), atol=1e-4
            ):
                failures.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_benchmark_compares_results(module):
    a, b = floats(8, 8), floats(8, 8, seed=1)
    table = module.matmul.benchmark(a, b, against={"numpy": np.matmul, "wrong": lambda x, y: x}, seconds=0.01)
    assert [row.name for row in table.rows] == ["matmul", "numpy", "wrong"]
    assert [row.agrees for row in table.rows] == [None, True, False]
    assert table.rows[0].gflops > 0
    assert "DIFFERS" in str(table)


def test_a_peer_may_be_an_expression_of_a_library(module):
    peers = {"np": "A @ B", "numpy twice": "2 * np.matmul(A, B)"}
    table = module.matmul.benchmark(floats(8, 8), floats(8, 8, seed=1), against=peers, seconds=0.01)
    assert [row.agrees for row in table.rows] == [None, True, False]


def test_benchmark_against_an_expression_with_several_values():
    f = tc.compile("def f(float(N, M) X) -> (V, P) { V(n), P(n) argmax=! X(n, m) }", target="cpu").f
    peers = {"numpy": "X.max(1), X.argmax(1)  # both", "np of others": "X.max(1), X.argmin(1)"}
    table = f.benchmark(floats(8, 8), against=peers, seconds=0.01)
    assert [row.agrees for row in table.rows[1:]] == [True, False]


def test_what_is_no_function_of_ours_is_told_where_it_is_called():
    with pytest.raises(tc.CompileError, match="`g` is a Python function here, and a def calls defs only"):
        tc.compile("def f(float(N) X) -> (Y) { Y = g(X) }", known={"g": len})


def test_close_results():
    assert close((floats(3), floats(2)), (floats(3), floats(2)))
    assert not close((floats(3), floats(2)), floats(3))
    assert not close(floats(3), floats(4))
    assert not close(floats(3), "text")
    assert close(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))


def test_schedules_compute_the_same(module):
    f = module.matmul
    s = f.schedule().split("C", "i", factor=4)
    g = f.with_schedule(s)
    a, b = floats(9, 5), floats(5, 6, seed=1)
    same(g(a, b), f(a, b))
    assert g.schedule().steps == s.steps
    with pytest.raises(tc.CompileError, match=r"TC411.*`mv`, not of `matmul`"):
        f.with_schedule(module.mv.schedule())


class OnDevice:
    """Looks like an array of a GPU; nothing may touch its memory."""

    dtype = np.dtype(np.float32)
    __cuda_array_interface__ = {"version": 3, "shape": (4,), "typestr": "<f4", "data": (0xDEAD000, False)}  # noqa: RUF012


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_of_a_gpu_are_not_touched_by_other_engines(target):
    f = tc.compile(CELL, target=target, allow=["TC232"]).whole
    with pytest.raises(tc.CallError, match=r"TC609.*cuda:0"):
        f(OnDevice())


def test_an_engine_that_is_not_there_is_a_call_error(monkeypatch):
    from tc_jupyter.runtime import cuda

    if cuda.detect() is None:
        f = tc.compile(CELL, target="cuda").whole
        with pytest.raises(tc.CallError, match=r"TC903|TC609"):
            f(floats(3))
    pytest.importorskip("llvmlite")
    from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, codes
    from tc_jupyter.runtime import cpu
    from tc_jupyter.runtime.nvrtc import BackendError

    def refuse(*_):
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, "LLVM refused"))

    monkeypatch.setattr(cpu, "load", refuse)
    monkeypatch.setattr(cpu, "stored", refuse)
    with pytest.raises(tc.CallError, match="LLVM refused"):
        tc.compile(CELL, target="cpu").whole(floats(3))


def sac_function(target="interpreter"):
    from tc_jupyter.compiler.open_definition import OpenDefinition
    from tc_jupyter.diagnostics import SourceText
    from tc_jupyter.function import Function
    from tc_jupyter.program import check_sac
    from tc_jupyter.syntax import parse_sac

    text = "float[*] increment(float[*] A) { return { iv -> A[iv] + 1 }; }"
    source = SourceText(text)
    checked = check_sac(parse_sac(source).unit, source)
    options = Options(text, "sac", target)
    return Function(OpenDefinition(checked.functions["increment"], options, source), options, source)


def test_a_function_with_open_ranks_learns_them_at_the_call():
    from tc_jupyter.program import ArgumentType, DType, Program

    f = sac_function()
    assert f.__name__ == "increment"
    assert "float[*]" in f.signature
    assert list(inspect.signature(f).parameters) == ["A", "out"]
    assert not hasattr(f, "program")
    assert not hasattr(f, "ranges")
    assert isinstance(f.program_for([ArgumentType(DType.FLOAT32, 2)]), Program)
    same(f(floats(2, 3)), floats(2, 3) + 1)
    same(f(A=floats(4)), floats(4) + 1)
    assert len(f.ranges) == 1
    assert len(f.source("rewrites")) > len(f.source_text.text)
    assert f.shapes(floats(5, 6)) == {f.program.results[0]: (5, 6)}
    assert "for" in f.source("loops", floats(2, 2))
    with pytest.raises(tc.CallError, match="TC606"):
        f(floats(2), floats(2))
    with pytest.raises(tc.CallError, match="TC606"):
        f(B=floats(2))


def test_options_are_plain_data():
    assert Options("x") == Options("x")
    assert pickle.loads(pickle.dumps(Options("x", specialize={"N": 3}))).specialize == {"N": 3}


def test_sizes_can_be_fixed_on_purpose():
    cell = "def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) + K }"
    x, w = floats(9), floats(3, seed=1)
    expected = [(x[i : i + 3].astype(float) * w).sum() + 9 for i in range(7)]
    for target in TARGETS:
        fixed = tc.compile(cell, specialize={"K": 3}, target=target).conv
        same(fixed(x, w), expected)
        with pytest.raises(tc.CallError, match=r"TC605.*`K` is fixed to 3.*4 came"):
            fixed(x, floats(4))
        every = tc.compile(cell, specialize=True, target=target).conv
        same(every(x, w), expected)
        same(every(x[:8], w), expected[:6])
        assert len(every._definition._ready) == 2
    loops = fixed.source("loops")
    assert "K" in loops
    with pytest.raises(ValueError, match="Z"):
        tc.compile(cell, specialize={"Z": 3})


def test_a_call_beyond_the_promise_of_a_schedule_is_refused():
    """`at_most` holds for every call, on the short way too."""
    f = tc.compile("def f(float(N) X) -> (O) { O(i) = 2 * X(i) }", target="cpu").f
    small = f.with_schedule(f.schedule().at_most("N", 4))
    np.testing.assert_array_equal(small(np.ones(4, np.float32)), np.full(4, 2, np.float32))
    for _ in range(2):
        with pytest.raises(tc.CallError, match="at most 4"):
            small(np.ones(5, np.float32))


def test_a_simulated_call_keeps_short_rows_in_registers():
    """The kernel of a call is that of its class of rows, also for rows of odd lengths and for no rows at all."""
    if nvrtc.available() is not None:
        pytest.skip(str(nvrtc.available()))
    f = tc.compile("def f(float(M,N) A) -> (O) { s(i) +=! A(i,j)\n O(i,j) = A(i,j) - s(i) }").f
    for rows, columns in ((3, 40), (2, 33), (0, 5)):
        a = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        done = f.simulate(a)
        assert done.findings == ()
        np.testing.assert_allclose(done.outputs[0], a - a.sum(1, keepdims=True), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("x", "y", "shape", "window"),
    [
        ("x + 2*u", "y + 2*v", (4, 32, 32, 3), (3, 3)),
        ("x + u", "2*y + v", (4, 32, 32, 3), (3, 3)),
        ("1*x + 1*u", "1*y + 1*v", (3, 8, 24, 4), (3, 3)),
        ("2*x + u", "y + 3*v", (2, 17, 30, 5), (3, 2)),
    ],
)
def test_convolutions_with_gaps_and_strides(x, y, shape, window):
    """Sets that the set library does not count within its limit."""
    f = tc.compile(
        f"def op(float(B,H,W,C) I, float(KH,KW,C,O) F) -> (Y) {{ Y(b,x,y,o) +=! I(b, {x}, {y}, c) * F(u,v,c,o) }}"
    ).op
    image, kernel = floats(*shape), floats(*window, shape[-1], 4, seed=1)
    found = f(image, kernel)
    rows, columns = found.shape[1:3]
    expected = np.zeros(found.shape)
    for u, v in np.ndindex(window):
        at = {"u": u, "v": v}
        taken = image[:, [eval(x, {"x": i, **at}) for i in range(rows)]]
        taken = taken[:, :, [eval(y, {"y": j, **at}) for j in range(columns)]]
        expected += taken @ kernel[u, v].astype(float)
    same(found, expected)
    assert eval(x, {"x": rows, "u": window[0] - 1}) >= shape[1], "all rows there are"
    assert eval(y, {"y": columns, "v": window[1] - 1}) >= shape[2], "all columns there are"


def test_a_remainder_by_a_size_takes_the_short_way():
    """That the size is not 0 is tested there with the other sizes."""
    pytest.importorskip("llvmlite")
    text = "def f(float(M) X, float(N) Z) -> (Y) { Y(i) = X(i % N) where i in 0:5 }"
    f = tc.compile(text, target="cpu", allow=["TC322"]).f
    x = floats(9)
    for n in (3, 9, 10, 3):
        same(f(x, floats(n)), x[np.arange(5) % n])
    assert not hasattr(f._definition.dispatcher(), "__func__")  # no method: compiled, without the general path
    with pytest.raises(tc.CallError, match="TC603"):
        f(x, floats(0))


def test_a_file_is_loaded_and_named_in_messages(tmp_path):
    path = tmp_path / "kernels.tc"
    path.write_bytes(b"\xef\xbb\xbfdef twice(float(N) X) -> (Y) {\r\n    Y(i) = 2 * X(i)\r\n}\r\n")
    assert tc.load(path, target="cpu").twice(np.ones(2, np.float32)).tolist() == [2, 2]
    path.write_text("def f(float(N, K) X) -> (Y) {\n    Y(i) = X(i, k)\n}\n")
    with pytest.raises(tc.CompileError, match=rf"{re.escape(str(path))}:2:10"):
        tc.load(str(path))
    sac = tmp_path / "kernels.sac"
    sac.write_text("double[*] twice(double[*] a) { return { iv -> 2.0 * a[iv] }; }\n")
    assert tc.load(sac, target="cpu").twice(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(FileNotFoundError):
        tc.load(tmp_path / "none.tc")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        tc.load(path)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda f: tc.compile("", specialize=3), "specialize=3: expected sizes"),
        (lambda f: tc.compile("", known=[f]), "known=.*: expected functions by name"),
        (lambda f: tc.compile("", file=3), "file=3: expected the path of a file"),
        (lambda f: tc.load(None), "path=None: expected the path of a file"),
        (lambda f: tc.export(3, "x", "n"), "writes a function of a %%tc or %%sac cell, not a int"),
        (lambda f: tc.export({"f": f}, "x", "n"), r"pass its `.values\(\)`"),
        (lambda f: tc.export(f, "x", ""), "name='': the name of a library is a string"),
        (lambda f: tc.zarr(f, ONES, out="x", threads="2"), "threads='2': expected a positive integer"),
        (lambda f: f.tune(ONES, on_trial=3), "on_trial=3: expected a function"),
        (lambda f: f.simulate(ONES, seconds="x"), "seconds='x': expected a number of seconds"),
        (lambda f: tc.view(f, "schedule", schedule=3), "takes what `schedule\\(\\)` gives, not `int`"),
        (lambda f: tc.view(f, "benchmark", sweep=3), "sweep=3: expected sizes"),
        (lambda f: tc.view(f, "benchmark", sweep={"N": ["x"]}), "N='x': a size is an integer"),
    ],
)
def test_options_that_are_none_say_what_is_expected(call, said):
    with pytest.raises(TypeError, match=said):
        call(tc.compile("def f(float(N) X) -> (Y) { Y(i) = 2 * X(i) }").f)


ONES = np.ones(4, np.float32)
