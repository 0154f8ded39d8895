"""Products of small elements that are added up several steps at a time."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tc_jupyter as tc
from tc_jupyter.loops import Intrinsic, walk_statements
from tc_jupyter.runtime import cpu, jit
from tc_jupyter.schedule import default_schedule
from tests.codegen import llvm_kernels
from tests.running import _poisoned, cpu_with, default, kernels_of, number, program_of, run

pytest.importorskip("llvmlite")

PRODUCT = "def f({}(M,K) A, {}(K,N) B) -> (C) {{ C(i,j) +=! int32(A(i,k)) * int32(B(k,j)) }}"
TYPES = [
    ("int8", "int8", 4),
    ("uint8", "uint8", 4),
    ("uint8", "int8", 4),
    ("int8", "uint8", 4),
    ("int16", "int16", 2),
    ("int16", "uint8", 2),
]
ISAS = ["avx512", "avx512 without vnni", "avx2"]


def target_of(isa):
    name, _, without = isa.partition(" without ")
    found = cpu_with(name)
    return replace(found, features=frozenset(each for each in found.features if not (without and without in each)))


@lru_cache(maxsize=64)
def schedule_for(text, isa="avx512"):
    """The schedule for large sizes."""
    found = program_of(text)
    assert found is not None, text
    return default_schedule(*found, target_of(isa))


def steps_in(schedule):
    return {s.name for k in kernels_of(schedule) for s in walk_statements(k.body) if isinstance(s, Intrinsic)}


@lru_cache(maxsize=64)
def kernels_for(text, isa, is_empty=False):
    """The kernels for arrays in row order."""
    schedule = schedule_for(text, isa)
    sizes = dict.fromkeys(schedule.graph.program.sizes, 0 if is_empty else 1)
    made = kernels_of(schedule, sizes)
    return [replace(each, buffers=tuple(replace(b, strided=False) for b in each.buffers)) for each in made]


def on_cpu(text, arrays, numbers, isa, monkeypatch):
    """The result of the engine on poisoned memory."""
    monkeypatch.setattr(llvm_kernels, "target", lambda _=None: target_of(isa))
    held = {name: array.copy() for name, array in arrays.items()}
    outputs = schedule_for(text, isa).graph.program.results
    for kernel in kernels_for(text, isa, 0 in numbers.values()):
        for buffer in kernel.buffers:
            if buffer.name not in held:
                shape = tuple(max(0, number(extent, numbers)) for extent in buffer.shape)
                held[buffer.name] = _poisoned(shape, buffer.dtype.value)
        llvm_kernels.execute(kernel, held, numbers)
    return {name: held[name] for name in outputs}


def any_numbers(dtype, shape, seed=0):
    limits = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    values = random.integers(limits.min, limits.max + 1, shape, dtype=dtype)
    return np.where(random.random(shape) < 0.2, limits.min, values).astype(dtype)


def wrapped(values):
    """As `int32`, of which additions keep the lowest bits."""
    return (values & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def has(isa):
    features = cpu_with().features
    return {"avx512": "avx512vnni", "avx2": "avx2"}.get(isa, "avx512bw") in features


@pytest.mark.some(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("left", "right", "depth"), TYPES)
def test_products_around_the_edges_of_tiles(left, right, depth, isa, monkeypatch):
    if not has(isa):
        pytest.skip(f"this processor has no {isa}")
    text = PRODUCT.format(left, right)
    (step,) = steps_in(schedule_for(text, isa))
    assert step.startswith("dot_")
    assert step.partition("_")[2].split("x")[2][0] == str(depth if isa == "avx512" else 2)
    for rows, columns, inner in [
        *((rows, 65, 9) for rows in (1, 3, 4, 5, 6, 7, 48, 49)),
        *((7, columns, 13) for columns in (1, 7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 66, 128)),
        *((5, 33, inner) for inner in (1, 2, 3, 4, 5, 8, 31)),
    ]:
        arrays = {"A": any_numbers(left, (rows, inner)), "B": any_numbers(right, (inner, columns), 1)}
        found = on_cpu(text, arrays, {"M": rows, "K": inner, "N": columns}, isa, monkeypatch)["C"]
        expected = wrapped(arrays["A"].astype(np.int64) @ arrays["B"].astype(np.int64))
        np.testing.assert_array_equal(found, expected, err_msg=f"{rows} x {inner} x {columns}")


HALVES = """def f(bfloat16(M,K) A, bfloat16(N,K) B, float(N) b) -> (C, Y) {
    C(i,j) +=! A(i,k) * B(j,k)
    D(i,j) +=! float(A(i,k)) * B(j,k)
    Y(i,j) = D(i,j) + b(j) }"""


@pytest.mark.skipif("avx512bf16" not in cpu_with().features, reason="this processor multiplies no pairs")
def test_pairs_of_bfloat16_have_sums_of_32_bits(monkeypatch):
    schedule, random = schedule_for(HALVES), np.random.default_rng(4)
    assert steps_in(schedule) == {"dot_1x16x2_bf16"}
    for m, n, k in [(1, 1, 1), (6, 64, 2), (7, 65, 3), (49, 70, 31), (13, 15, 256)]:
        a, b = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k)))
        arrays = {"A": a.view(np.uint16), "B": b.view(np.uint16), "b": np.arange(n, dtype=np.float32)}
        sizes = {"M": m, "N": n, "K": k}
        found, again = on_cpu(HALVES, arrays, sizes, "avx512", monkeypatch), run(schedule, arrays, sizes)
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        for each in (found, again):
            np.testing.assert_allclose(each["Y"], exact + arrays["b"], rtol=1e-6, atol=1e-5)
            np.testing.assert_allclose(each["C"].view(ml_dtypes.bfloat16).astype(float), exact, rtol=2**-8, atol=1e-4)


def test_copies_of_bfloat16_keep_all_bits():
    f = tc.compile("def f(bfloat16(N) X) -> (Y) { Y(i) = X(i) }", target="cpu").f
    every = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(f(every.view(ml_dtypes.bfloat16)).view(np.uint16), every)


FORMS = {
    "both turned": "def f(int8(K,M) A, int8(N,K) B) -> (C) { C(i,j) +=! int32(A(k,i)) * int32(B(j,k)) }",
    "batched": "def f(int8(Q,M,K) A, uint8(Q,K,N) B) -> (C) { C(q,i,j) +=! int32(A(q,i,k)) * B(q,k,j) }",
    "one operand for a batch": "def f(uint8(Q,M,K) A, uint8(K,N) B) -> (C) { C(q,i,j) +=! int32(A(q,i,k)) * B(k,j) }",
    "two sums": "def f(int8(M,L,K) A, int8(L,K,N) B) -> (C) { C(i,j) +=! int32(A(i,l,k)) * B(l,k,j) }",
    "sum in another place": "def f(int16(M,K,L) A, int8(K,N,L) B) -> (C) { C(i,j) +=! int32(A(i,k,l)) * B(k,j,l) }",
    "bias and relu": """def f(int8(M,K) A, int8(K,N) B, int32(N) b) -> (Y) {
        C(i,j) +=! int32(A(i,k)) * B(k,j)
        Y(i,j) = max(C(i,j) + b(j), 0) }""",
    "scales": """def f(uint8(M,K) A, uint8(K,N) B, float(N) s) -> (Y) {
        C(i,j) +=! int32(A(i,k)) * B(k,j)
        Y(i,j) = float(C(i,j)) * s(j) }""",
    "onto what is there": """def f(int8(M,K) A, int8(K,N) B, int32(M,N) D) -> (C) {
        C(i,j) = D(i,j)
        C(i,j) += int32(A(i,k)) * B(k,j) }""",
    "with itself": "def f(int8(M,K) A) -> (C) { C(i,j) +=! int32(A(i,k)) * A(j,k) }",
    "read twice": """def f(int8(M,K) A, int8(K,N) B) -> (Y, Z) {
        C(i,j) +=! int32(A(i,k)) * B(k,j)
        Y(i,j) = C(i,j) * 2
        Z(j) +=! C(i,j) }""",
}


def numbers_for(schedule, sizes):
    graph = schedule.graph
    arrays = {}
    for seed, name in enumerate(graph.program.parameters):
        tensor = graph.program.tensor(name)
        shape = tuple(sizes[dim.name] for dim in tensor.dims)
        dtype = {"float": "float32"}.get(tensor.dtype.value, tensor.dtype.value)
        arrays[name] = np.ones(shape, dtype) if dtype == "float32" else any_numbers(dtype, shape, seed)
    return arrays


@pytest.mark.some(4)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("form", FORMS)
def test_forms_agree_with_the_interpreter_of_the_plain_program(form, isa, monkeypatch):
    if not has(isa):
        pytest.skip(f"this processor has no {isa}")
    schedule = schedule_for(FORMS[form], isa)
    assert len(steps_in(schedule)) == 1, form
    plain = default(FORMS[form])
    for numbers in ((7, 19, 5, 2, 3), (4, 16, 4, 1, 1), (1, 1, 1, 1, 2)):
        every = dict(zip("MNKQL", numbers, strict=True))
        sizes = {name: every[name] for name in schedule.graph.program.sizes}
        arrays = numbers_for(schedule, sizes)
        expected = run(plain, arrays, sizes)
        found = on_cpu(FORMS[form], arrays, sizes, isa, monkeypatch)
        again = run(schedule, arrays, sizes)
        for name in found:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=f"{form} {sizes}")
            np.testing.assert_array_equal(again[name], expected[name], err_msg=f"{form} {sizes}, interpreted")


@pytest.mark.some(3)
@pytest.mark.parametrize("none", ["M", "N", "K"])
def test_nothing_to_add(none, monkeypatch):
    text = PRODUCT.format("int8", "int8")
    sizes = {"M": 7, "N": 9, "K": 5, none: 0}
    arrays = {"A": any_numbers("int8", (sizes["M"], sizes["K"])), "B": any_numbers("int8", (sizes["K"], sizes["N"]))}
    found = on_cpu(text, arrays, sizes, "avx512", monkeypatch)["C"]
    np.testing.assert_array_equal(found, np.zeros((sizes["M"], sizes["N"]), np.int32))


@pytest.mark.parametrize(
    "text",
    [
        "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! int32(A(i,k) * B(k,j)) }",
        "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! int64(A(i,k)) * B(k,j) }",
        "def f(int32(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        "def f(uint16(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! int32(A(i,k)) * B(k,j) }",
        "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(i,j) max=! int32(A(i,k)) * B(k,j) }",
        "def f(int8(M,K) A, int8(K,N) B, int8(K) w) -> (C) { C(i,j) +=! int32(A(i,k)) * B(k,j) * w(k) }",
        "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! abs(int32(A(i,k)) - B(k,j)) }",
        "def f(int8(M,K) A, int8(L,N) B, int32(K) I) -> (C) { C(i,j) +=! int32(A(i,k)) * B(I(k),j) }",
    ],
)
def test_other_sums_take_no_steps(text):
    assert steps_in(schedule_for(text)) == set()


def test_a_sum_of_a_part_takes_no_steps_beyond_it(monkeypatch):
    """What stands beyond the range of the sum is no zero."""
    text = "def f(int8(M,K) A, int8(K,N) B) -> (C) { C(i,j) +=! int32(A(i,k)) * B(k,j) where k in 0:7 }"
    sizes = {"M": 9, "N": 20, "K": 11}
    arrays = numbers_for(schedule_for(text), sizes)
    expected = wrapped(arrays["A"][:, :7].astype(np.int64) @ arrays["B"][:7].astype(np.int64))
    np.testing.assert_array_equal(on_cpu(text, arrays, sizes, "avx512", monkeypatch)["C"], expected)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(TYPES),
    st.sampled_from([isa for isa in ISAS if has(isa)] or ["avx512"]),  # elsewhere the code is the same for all names
    st.integers(1, 60),
    st.integers(1, 140),
    st.integers(1, 40),
    st.integers(0, 1000),
)
def test_random_sizes(types, isa, rows, columns, inner, seed):
    left, right, _ = types
    text = PRODUCT.format(left, right)
    arrays = {"A": any_numbers(left, (rows, inner), seed), "B": any_numbers(right, (inner, columns), seed + 1)}
    with pytest.MonkeyPatch.context() as patch:
        found = on_cpu(text, arrays, {"M": rows, "K": inner, "N": columns}, isa, patch)["C"]
    np.testing.assert_array_equal(found, wrapped(arrays["A"].astype(np.int64) @ arrays["B"].astype(np.int64)))


@pytest.mark.skipif(not jit.host()[0].startswith("x86_64"), reason="reads x86 assembly")
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("left", "right"), [("int8", "int8"), ("int16", "int16")])
def test_the_innermost_loop_does_not_spill(left, right, isa):
    if not has(isa):
        pytest.skip(f"this processor has no {isa}")
    target = target_of(isa)
    kernel = kernels_for(PRODUCT.format(left, right), isa)[-1]
    assembly = jit.assembly(llvm_kernels.emit_llvm(kernel, target).text, cpu.options_of(target))
    steps = r"vpdpbusd|vpdpwssd|vpmaddwd"
    hot = max(re.split(r"\n\.?L?\w+:", assembly), key=lambda block: len(re.findall(steps, block)))
    assert len(re.findall(steps, hot)) == (8 if isa == "avx2" else 24)
    assert not re.search(r"[xyz]mm\d+, -?\d*\(%rsp\)|\(%rsp\), %[xyz]mm", hot)


TWO = """def f(int8(M,K) A, int8(K,N) B) -> (C, D) {{
    C(i,j) +=! int32(A(i,k)) * int32(B(k,j)) where {}
    D(i,j) +=! int32(A(i,k)) * int32(B(k,j)) }}"""


@pytest.mark.some(6)
@pytest.mark.parametrize("start", [1, 4, 5])
@pytest.mark.parametrize("index", ["k in {}:K", "i in {}:M"])
def test_sums_that_share_copies_and_begin_elsewhere(start, index):
    """A step would read across two tiles of the copy that is made for both."""
    f = tc.compile(TWO.format(index.format(start)), target="cpu").f
    a, b = any_numbers("int8", (133, 133)), any_numbers("int8", (133, 133), 1)
    whole = a.astype(np.int64) @ b.astype(np.int64)
    part = a[:, start:].astype(np.int64) @ b[start:].astype(np.int64) if index[0] == "k" else whole[start:]
    c, d = f(a, b)
    np.testing.assert_array_equal(d, wrapped(whole))
    np.testing.assert_array_equal(c, wrapped(part))


def test_one_copy_for_sums_that_begin_elsewhere_interpreted():
    text = TWO.format("k in 1:K")
    schedule = default(text).cache_write("C").cache_write("D")
    for operand, layout in (("A", ((0, 0), (1, 0), (1, 4))), ("B", ((1, 0), (0, 0), (0, 4)))):
        schedule = schedule.cache_read(operand, "C.cache", "D.cache", widen=operand == "A" and "int16")
        schedule = schedule.storage(f"{operand}.cache", layout=layout)
    for cache in ("C.cache", "D.cache"):
        schedule = schedule.split(cache, "j", 16).split(cache, "k", 2)
        schedule = schedule.reorder(cache, "i", "j.outer", "k.outer", "j.inner", "k.inner")
    sizes = {"M": 3, "K": 9, "N": 17}
    arrays = numbers_for(schedule, sizes)
    expected = run(default(text), arrays, sizes)
    for name, found in run(schedule, arrays, sizes).items():
        np.testing.assert_array_equal(found, expected[name])


def test_a_product_that_is_an_index_is_checked_as_it_is():
    f = tc.compile(
        """def f(int8(M,K) A, int8(K,N) B, int32(T) t) -> (Y) {
        C(i,j) +=! int32(A(i,k)) * int32(B(k,j))
        Y(i,j) = t(C(i,j)) }""",
        target="cpu",
    ).f
    random = np.random.default_rng(3)
    a, b = (random.integers(0, 8, (133, 133)).astype(np.int8) for _ in range(2))
    product = a.astype(np.int64) @ b
    table = np.arange(product.max() + 1, dtype=np.int32)
    np.testing.assert_array_equal(f(a, b, table), product)
    with pytest.raises(tc.CallError, match=f"index {(-product)[product != 0].max()}|index -"):
        f(a, -b, np.arange(300000, dtype=np.int32))


@pytest.mark.parametrize(
    "text",
    [
        "def f(int8(M,K) A, int8(K,N) B, int32(T) t) -> (Y) { C(i,j) +=! int32(A(i,k)) * B(k,j)  Y(i,j) = t(C(i,j)) }",
        """def g(int32(M,N) C) -> (Y) { Y(i,j) = C(i,j) + 1 }
        def f(int8(M,K) A, int8(K,N) B) -> (Y) { C(i,j) +=! int32(A(i,k)) * B(k,j)   Y = g(C) }""",
        "def f(int8(M,K) A, int8(K,N) B, int8(K) w) -> (Y) { C(i,j) +=! int32(A(i,k)) * B(k,j) * w(k)  Y(i,j) = C(i,j) }",
        "def f(int16(M,K) A, int16(K,N) B) -> (Y) { C(i,j) +=! int32(A(i,k)) * B(k,j)  Y(i,j) = C(i,j) }",
        "def f(int8(M) A, int8(K,N) B) -> (Y) { C(i,j) +=! int32(A(i)) * B(k,j)  Y(i,j) = C(i,j) }",
    ],
)
def test_sums_that_nobody_could_put_right_keep_their_bytes(text):
    last = list(tc.compile(text, target="cpu", allow=["TC234"]).values())[-1]
    with pytest.raises(tc.CompileError, match="TC401"):
        last.schedule().rebias("C", "B")


@pytest.mark.parametrize("layout", [((0, 0), (1, 0), (1, 4), (1, 4)), ((0, 0), (1, 0)), ((0, 0), (1, 0), (1, 8))])
def test_only_tiles_of_the_sum_s_own_length_are_filled_up(layout):
    schedule = (
        default(PRODUCT.format("int8", "int8")).cache_write("C").cache_read("A", "C.cache").cache_read("B", "C.cache")
    )
    schedule = schedule.storage("A.cache", layout=layout).split("A.cache", "k", 4).split("C.cache", "k", 4)
    with pytest.raises(tc.CompileError, match="TC410"):
        schedule.storage("C.cache", padded=True, whole=True)


def test_a_copy_that_is_changed_later_is_no_longer_read_beyond_its_end():
    schedule = default(PRODUCT.format("int8", "int8")).cache_write("C").compute_at("C.cache", "C", "i")
    schedule = schedule.cache_read("A", "C.cache").cache_read("B", "C.cache")
    schedule = schedule.storage("A.cache", layout=((0, 0), (1, 0), (1, 4))).split("A.cache", "k", 4)
    schedule = schedule.storage("B.cache", layout=((1, 0), (0, 0), (0, 4))).split("B.cache", "k", 4)
    schedule = schedule.split("C.cache", "k", 4).storage("C.cache", padded=True, whole=True)
    changed = schedule.storage("A.cache", layout=((1, 0), (0, 0))).storage("B.cache", layout=((0, 0), (1, 0)))
    sizes = {"M": 5, "K": 7, "N": 3}
    arrays = numbers_for(schedule, sizes)
    expected = run(default(PRODUCT.format("int8", "int8")), arrays, sizes)["C"]
    for each in (schedule, changed):
        np.testing.assert_array_equal(run(each, arrays, sizes)["C"], expected)
