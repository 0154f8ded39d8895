"""Conditions at the call: sizes, index values, positions; with every engine and every level of checking."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc_jupyter as tc

CELL = """
def window(float(I) B, float(J) C, float(K) D) -> (A) { A(i) +=! B(i) * C(i + j) * D(j) }
def look(float(J) B, int32(I) C) -> (A) { A(i) = B(C(i)) }
def clamped(float(J) B, int32(I) C) -> (A) { A(i) = B(max(min(C(i), J-1), 0)) }
def mixed(float(J) B, int32(I) C, int32(I) D) -> (A) { A(i) = B(C(i) + D(i)) }
def guarded(float(J) B, int32(I) C, int32(I) D) -> (A) { A(i) = C(i) >= 0 ? B(C(i) + D(i)) : -1.0 }
def inner(float(J) B, int32(I) C) -> (A) { T(i) = C(i) + 1  A(i) = B(T(i)) }
def nested(float(J) B, int32(K) C, int32(I) D, int32(I) E) -> (A) { A(i) = B(C(D(i) + E(i))) }
def floating(float(J) B, float(I) C) -> (A) { A(i) = B(C(i)) }
def embed(float(V,D) W, int32(N,L) T) -> (E) { E(n,d) +=! W(T(n,l), d) }
def narrow(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i+k) * W(k) }
def picked(float(N,M) X, int32(K) I) -> (Y) { Y = X(I(0), I(1)) }
def partly(float(N,M) X, int32 n) -> (y) { T(i) +=! X(i,j) where i in 0:n  y +=! T(i) * T(i) }
def divide(float(N) X, int32 s) -> (Y) { Y(i) = X(i*s) where i in 0:N/s }
"""
ALLOW = [f"TC3{n}" for n in range(21, 31)] + ["TC231", "TC234"]


@pytest.fixture(scope="module", params=["interpreter", "cpu"])
def module(request):
    if request.param == "cpu":
        pytest.importorskip("llvmlite")
    return tc.compile(CELL, target=request.param, allow=ALLOW)


def floats(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def integers(*values):
    return np.array(values, np.int32)


def refused(code, words=""):
    return pytest.raises(tc.CallError, match=rf"(?s){code}.*{words}")


def test_a_condition_on_sizes_is_checked_with_numbers(module):
    for _ in range(2):
        b, c, d = floats(4), floats(6), floats(3)
        expected = [sum(b[i] * c[i + j] * d[j] for j in range(3)) for i in range(4)]
        np.testing.assert_allclose(module.window(b, c, d), expected, rtol=1e-4, atol=1e-5)
        with refused("TC601", "4 \\+ 3 <= 5 \\+ 1"):
            module.window(b, floats(5), d)


def test_a_range_that_ends_before_it_starts(module):
    assert module.narrow(floats(2), floats(3)).shape == (0,)
    for _ in range(2):
        with refused("TC602"):
            module.narrow(floats(2), floats(5))


def test_a_divisor_of_zero(module):
    np.testing.assert_array_equal(module.divide(np.arange(6, dtype=np.float32), 2), [0, 2, 4])
    with refused("TC603"):
        module.divide(floats(6), 0)


@pytest.mark.parametrize(("divisor", "number"), [("n", 0), ("n - 3", 3)])
def test_the_divisor_of_a_quotient_that_is_cut_off_is_named(divisor, number):
    f = tc.compile(f"int f(int[4] a, int n) {{ return a[[5 / ({divisor})]]; }}", "sac", allow=["TC322"]).f
    with refused("TC603", f"`{divisor}` is 0"):
        f(np.arange(4, dtype=np.int32), number)


@pytest.mark.parametrize("bad", [-1, 5, 1 << 30, -(1 << 31)])
def test_index_values_are_scanned_before_anything_runs(module, bad):
    b = floats(5)
    np.testing.assert_array_equal(module.look(b, integers(4, 0, 2)), b[[4, 0, 2]])
    with refused("TC604", f"index {bad} in dimension 0.*first at i = 1"):
        module.look(b, integers(0, bad, 2))
    out = np.full(3, 7, np.float32)
    with refused("TC604"):
        module.look(b, integers(0, bad, 2), out=out)
    assert (out == 7).all()


def test_a_clamp_needs_no_check(module):
    b = floats(5)
    np.testing.assert_array_equal(module.clamped(b, integers(-9, 3, 99)), b[[0, 3, 4]])


def test_index_values_at_fixed_places(module):
    x = floats(3, 4)
    assert module.picked(x, integers(1, 3)) == x[1, 3]
    assert module.picked(x, integers(0, 2, 99)) == x[0, 2]  # what is not read is not checked
    for bad in ([3, 0], [0, 4], [-1, 0], [0, -1]):
        with refused("TC604", "dimension"):
            module.picked(x, integers(*bad))


def test_temporaries_as_long_as_a_scalar_says(module):
    x = floats(70, 5)
    for n in (3, 70, 0, 1, 64):
        expected = (x[:n].sum(1, dtype=np.float64) ** 2).sum()
        np.testing.assert_allclose(module.partly(x, n), expected, rtol=1e-5)
    with refused("TC6", "n <= N"):
        module.partly(x, 71)
    with refused("TC6"):
        module.partly(x, -1)


def test_arrays_of_many_axes(module):
    x = floats(*[1] * 29, 3)
    add = tc.compile(
        "float[*] add(float[*] a) { return { iv -> a[iv] + a[iv] }; }",
        language="sac",
        target=module.picked.options.target,
    )
    np.testing.assert_array_equal(add.add(x), x + x)


def test_index_arrays_of_any_layout(module):
    b, index = floats(5), integers(4, 0, 2, 1)
    for other in (index[::-1], np.repeat(index, 2)[::2], index.astype(">i4")):
        np.testing.assert_array_equal(module.look(b, other), b[other])
    bad = integers(0, 9, 1, 9)[::2]  # the elements between are not read
    np.testing.assert_array_equal(module.look(b, bad), b[[0, 1]])


def test_mixed_subscripts_are_checked_at_each_point(module):
    b = floats(5)
    np.testing.assert_array_equal(module.mixed(b, integers(9, -3), integers(-5, 5)), b[[4, 2]])
    with refused("TC604", "index 6 in dimension 0.*0 to 4.*first at i = 1"):
        module.mixed(b, integers(1, 3), integers(1, 3))


def test_a_guard_excuses_what_it_excludes(module):
    b = floats(5)
    found = module.guarded(b, integers(-7, 2), integers(0, 1))
    np.testing.assert_array_equal(found, [-1, b[3]])
    with refused("TC604"):
        module.guarded(b, integers(3, 2), integers(3, 1))


def one(module, text, *allow):
    """A def of its own for the engine of the module."""
    (f,) = tc.compile(f"def f{text}", target=module.look.options.target, allow=[*ALLOW, *allow]).values()
    return f


def test_the_same_read_in_both_branches_is_guarded_in_one_of_them(module):
    f = one(module, "(float(N) X, float(M) Z) -> (Y) { Y(i) = (i < N ? X(i) : X(i)) where i in 0:M }")
    np.testing.assert_array_equal(f(floats(5), floats(4)), floats(5)[:4])
    with refused("TC601", "10 <= 3"):
        f(floats(3), floats(10))


def test_scalars_in_subscripts_of_a_temporary_and_in_its_guard(module):
    text = (
        "(uint8(M) B, int32 s) -> (Y) { T(i,j) = B(j) where i in 0:5\n"
        "Y(i) +=! (k+s > -1 && k+s < M ? T(i, k+s) : 0) where i in 0:5, k in 0:17 }"
    )
    f = one(module, text, "TC203")
    for s in (1, 0, -3):
        b = np.arange(18, dtype=np.uint8)
        np.testing.assert_array_equal(f(b, s), [sum(int(b[k + s]) for k in range(17) if 0 <= k + s < 18)] * 5)


def test_a_range_that_is_longer_without_elements(module):
    text = "(uint8(K) B) -> (T) { T(i) max=! 2 * (2*k+i < K ? B(2*k+i) : 0) where k in 0:K, i in 0:2-K }"
    f = one(module, text)
    for k, expected in ((1, [2]), (0, [0, 0]), (1, [2])):
        np.testing.assert_array_equal(f(np.ones(k, np.uint8)), expected)


def test_index_tensors_computed_in_the_def(module):
    b = floats(5)
    np.testing.assert_array_equal(module.inner(b, integers(3, -1)), b[[4, 0]])
    with refused("TC604", "index 5"):
        module.inner(b, integers(3, 4))


def test_nested_index_tensors_are_checked_from_the_inside(module):
    b, c = floats(5), integers(4, 3, 9)
    np.testing.assert_array_equal(module.nested(b, c, integers(0, 1), integers(1, -1)), b[[3, 4]])
    with refused("TC604", "index 3 in dimension 0"):
        module.nested(b, c, integers(0, 2), integers(0, 1))
    with refused("TC604", "index 9 in dimension 0"):
        module.nested(b, c, integers(0, 2), integers(0, 0))


def test_floating_indices_truncate_and_nan_is_refused(module):
    b = floats(5)
    np.testing.assert_array_equal(module.floating(b, np.array([0.9, 4.2, -0.5], np.float32)), b[[0, 4, 0]])
    for bad in (np.nan, np.inf, -1.0, 5.0):
        with refused("TC604"):
            module.floating(b, np.array([0, bad], np.float32))


def test_an_embedding_sum(module):
    w, t = floats(10, 3), np.random.default_rng(0).integers(0, 10, (6, 4)).astype(np.int32)
    np.testing.assert_allclose(module.embed(w, t), w[t].sum(1), rtol=1e-5, atol=1e-5)
    t[3, 2] = 10
    with refused("TC604", "n = 3, l = 2"):
        module.embed(w, t)


def test_empty_index_arrays(module):
    assert module.look(floats(0), integers()).shape == (0,)
    with refused("TC60"):
        module.look(floats(0), integers(0))


def test_torch_index_tensors(module):
    torch = pytest.importorskip("torch")
    b = torch.randn(5)
    assert torch.equal(module.look(b, torch.tensor([1, 2], dtype=torch.int32)), b[[1, 2]])
    with refused("TC604"):
        module.look(b, torch.tensor([1, 5], dtype=torch.int32))


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_levels_of_checking(target):
    sizes = tc.compile(CELL, target=target, check="sizes", allow=ALLOW)
    with refused("TC601"):
        sizes.window(floats(4), floats(5), floats(3))
    b = floats(5)
    np.testing.assert_array_equal(sizes.look(b, integers(1, 2)), b[[1, 2]])
    none = tc.compile(CELL, target=target, check="none", allow=ALLOW)
    assert none.window(floats(4), floats(9), floats(3)).shape == (4,)
    with refused("TC605"):
        none.mixed(b, integers(1), integers(1, 2))
    with refused("TC602"):
        none.narrow(floats(2), floats(5))


def test_strict_mode_is_refused_at_definition():
    with pytest.raises(tc.CompileError, match="TC322"):
        tc.compile(CELL.split("def look")[0], strict=True)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_an_index_that_int64_does_not_hold_is_outside(target):
    """`int64(Id(i)) < D` compares what may be -1, so the condition does not prove that `Id(i)` is inside."""
    text = "def f(uint64(M) Id, float(D) Q) -> (C) { C(i) = (Id(i) >= 0 && CAST(Id(i)) < D ? Q(Id(i)) : 0) }"
    cast, plain = (tc.compile(text.replace("CAST", name), target=target)["f"] for name in ("int64", ""))
    q = np.arange(3, dtype="float32")
    for f in (cast, plain):
        assert f(np.array([2, 5, 1], np.uint64), q).tolist() == [2, 0, 1]
    far = np.array([2, 2**64 - 1, 1], np.uint64)
    with pytest.raises(tc.CallError, match="TC604"):
        cast(far, q)
    assert plain(far, q).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("kind", "spelled"),
    [("float", "np.float32"), ("int8", "np.int8"), ("bool", "bool"), ("bfloat16", "ml_dtypes.bfloat16")],
)
def test_a_list_is_told_how_to_become_an_array(kind, spelled):
    f = tc.compile(f"def f({kind}(N) X) -> (Y) {{ Y(i) = X(i) }}", target="interpreter").f
    with pytest.raises(tc.CallError) as problem:
        f([1, 0])
    assert problem.value.diagnostic.help == f"pass `np.array(x, dtype={spelled})`"


@pytest.mark.parametrize("word", ["outputs", "output", "result", "dst"])
def test_other_names_of_out(word):
    f = tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) }", target="interpreter").f
    x = np.ones(3, np.float32)
    with pytest.raises(tc.CallError, match=f"`f` has no parameter `{word}`; did you mean `out=`"):
        f(x, **{word: x})


@pytest.mark.parametrize("value", ["2", [2], None])
def test_no_number_for_a_number(value):
    f = tc.compile("def f(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }", target="interpreter").f
    with pytest.raises(tc.CallError) as problem:
        f(np.ones(3, np.float32), value)
    assert problem.value.diagnostic.help == "pass a number"


def test_torch_arrays_are_arguments():
    torch = pytest.importorskip("torch")
    text = """def f(float(N) X, float(N) Z) -> (Y) { Y(i) = X(i) + Z(i) }
    def g(bfloat16(N) X) -> (Y) { Y(i) = 2 * X(i) }"""
    module = tc.compile(text, target="cpu")
    x = torch.arange(3.0)
    assert module.f(x, x).tolist() == [0, 2, 4]
    assert module.f(x, x.numpy()).tolist() == [0, 2, 4]
    assert module.g(x.bfloat16()).dtype == torch.bfloat16
    with pytest.raises(tc.CallError, match=r"TC607.*(?s:.*)\.to\(torch\.float32\)"):
        module.f(x.double(), x)


def repeated(*shape):
    """An array of one byte: its elements are all the same one."""
    return np.broadcast_to(np.int8(5), shape)


TOO_LARGE = {
    "an element times a size": ("I(j)*N/N >= 0 && I(j)*N/N < L ? T(I(j)*N/N) : 9", (1 << 40, 1), "`N\\*I\\(j\\)`.*`N` is 1099511627776"),
    "a product of sizes in a condition": ("N*M > 3 ? 1 : T(j)", (1 << 40, 1 << 40), "`N\\*M`.*`N` is.*`M` is"),
    "a product of sizes in a value": ("1.0/(N*N*N)", (1 << 22, 1), "`N\\*N\\*N`"),
    "a subscript": ("j + N*N*N < 8 ? T(j + N*N*N) : 9", (1 << 22, 1), "`N\\*N\\*N`"),
    "a cast of a size": ("int32(N) < 0 ? T(j + N) : 9", (1 << 31, 1), "`N` may.*32 bits"),
    "a sum of sizes": ("T(j + (N + M)/N - 2)", (1 << 62, 1 << 62), "`N \\+ M`"),
}  # fmt: skip


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", TOO_LARGE)
def test_sizes_whose_arithmetic_would_wrap_are_refused(name, target):
    text, sizes, words = TOO_LARGE[name]
    f = tc.compile(
        f"def f(int8(N) X, int8(M) Z, int32(K) I, int32(L) T) -> (Y) {{ Y(j) = {text} where j in 0:K }}",
        target=target,
        allow=ALLOW,
    ).f
    i, t = integers(0, 1 << 24, -(1 << 24), 1), np.arange(8, dtype=np.int32)
    small = f(repeated(3), repeated(3), integers(0, 1, 2, 3), t)
    assert small.shape == (4,)
    with refused("TC502", words):
        f(repeated(sizes[0]), repeated(sizes[1]), i, t)


def test_sizes_that_are_large_alone_are_not_refused():
    module = tc.compile(
        """
def at_the_end(int8(N) X) -> (Y) { Y(j) = X(j + N - 5) where j in 0:2 }
def rows(int8(N, M) X) -> (Y) { Y(i) +=! X(i, j) where i in N-4:N }
def hashed(int8(N) X, int32(L) T) -> (Y) { Y(j) = T((j * 6364136223846793005) % L) where j in 0:8 }
def flat(int8(N) X, int32(K) I) -> (Y) { Y(j) = X(I(j) * 4 + N - 40) }
""",
        allow=ALLOW,
    )
    assert module.at_the_end(repeated(1 << 62)).tolist() == [5, 5]
    assert module.rows(np.broadcast_to(np.int8([[1, 2, 3]]), (1 << 60, 3))).tolist() == [6] * 4
    assert module.hashed(repeated(1 << 61), np.arange(8, dtype=np.int32)).tolist() == [0, 5, 2, 7, 4, 1, 6, 3]
    assert module.flat(repeated(1 << 40), integers(0, 9)).tolist() == [5, 5]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m, x: m.f(np.float32), "`X` is an array `float32(N) X`; the class `float32` came"),
        (lambda m, x: m.f(np.ndarray), "`X` is an array `float32(N) X`; the class `ndarray` came"),
        (lambda m, x: m.g(x, float), "`s` is a number of type float32; the class `float` came"),
        (lambda m, x: m.f(x, out=[x, x]), "help: pass an array, `out=Y`"),
        (lambda m, x: m.g(x, 2, out=x), r"help: pass a tuple of arrays, `out=(Y, Z)`"),
    ],
)
def test_a_class_and_a_wrong_count_of_outputs_are_told(call, said):
    module = tc.compile(
        "def f(float(N) X) -> (Y) { Y(i) = X(i) } def g(float(N) X, float s) -> (Y, Z) { Y(i) = X(i)*s Z(i) = X(i) }"
    )
    with pytest.raises(tc.CallError, match=re.escape(said)):
        call(module, np.zeros(3, np.float32))


def test_all_ranges_that_end_before_they_start_are_told():
    text = "def f(float(H, W) X, float(K) F) -> (Y) { R(y, x) +=! X(y, x + k) * F(k)  Y(y, x) +=! R(y + k, x) * F(k) }"
    f = tc.compile(text).f
    needs = r"it needs `K <= W \+ 1` and `K <= H \+ 1`; here H = 3, K = 9, W = 4"
    with pytest.raises(tc.CallError, match=needs):
        f(np.ones((3, 4), np.float32), np.ones(9, np.float32))
    with pytest.raises(tc.CallError, match=r"it needs `K <= H \+ 1`; here H = 3, K = 5"):
        f(np.ones((3, 4), np.float32), np.ones(5, np.float32))
