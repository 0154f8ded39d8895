"""Elements of few values, as pixels are: vectors of elements are read once and taken apart, and mixed when they are written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from llvm_kernels import ISAS

import tc_jupyter as tc
from tc_jupyter.bench.cpu import QUIET
from tc_jupyter.codegen.llvm.builder import Builder, Value
from tc_jupyter.codegen.llvm.transpose import alternating, every
from tc_jupyter.compiler.definition import ROW_MAJOR
from tc_jupyter.program import DType
from tc_jupyter.runtime import cpu
from tc_jupyter.runtime.arrays import numpy_dtype
from tc_jupyter.schedule import SizeClasses
from tests.running import cpu_with
from tests.strategies import drawn

pytest.importorskip("llvmlite")

GRAY = "def f(TYPE(H,W,C) X, TYPE(C) g) -> (Y) { Y(h,w) +=! X(h,w,c) * g(c) }"


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_every_so_many_neighbours_of_several_vectors(count, lanes):
    """The shuffles, done by hand."""
    builder, memory = Builder(), np.arange(count * lanes)
    known = {f"%v{k}": memory[k * lanes : (k + 1) * lanes] for k in range(count)}
    for first in range(count):
        found = every(builder, [Value(name, DType.FLOAT32, lanes) for name in known], first)
        assert shuffled(builder, known)[found.text].tolist() == list(range(first, count * lanes, count))


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_lane_of_each_of_several_vectors_in_turn(count, lanes):
    builder, elements = Builder(), np.arange(count * lanes)
    known = {f"%v{k}": elements[k::count] for k in range(count)}
    values = [Value(name, DType.FLOAT32, lanes) for name in known]
    pieces = [alternating(builder, values, number).text for number in range(count)]
    results = shuffled(builder, known)
    np.testing.assert_array_equal(np.concatenate([results[piece] for piece in pieces]), elements)


def shuffled(builder, known):
    """What the shuffles of a text make of vectors."""
    results = dict(known)
    for line in builder.lines:
        name, text = str(line).strip().split(" = ")
        picks = [int(each.split()[1]) for each in text.split("> <")[1].rstrip(">").split(", ")]
        left, right = (part.split()[0] for part in text.split("%")[1:3])
        both = np.concatenate([results["%" + left.rstrip(",")], results["%" + right.rstrip(",")]])
        results[name] = both[picks]
    return results


@pytest.mark.some(4)
@pytest.mark.parametrize("values", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["float", "double", "int32", "uint8", "float16"])
def test_rows_of_all_lengths(dtype, values):
    function = tc.compile(GRAY.replace("TYPE", dtype), target="cpu")["f"]
    rng = np.random.default_rng(2)
    kind = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    for width in (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100):
        x, g = rng.integers(0, 4, (3, width, values)).astype(kind), rng.integers(0, 4, values).astype(kind)
        np.testing.assert_array_equal(function(x, g), (x.astype(np.float64) @ g).astype(kind))


@pytest.mark.parametrize("isa", ISAS)
def test_vectors_of_pixels_are_not_gathered(isa):
    target = cpu_with(isa, 1)
    definition = tc.compile(GRAY.replace("TYPE", "float"), target="cpu")["f"].definition()
    constants, facts = SizeClasses(definition.program, definition.found.ranges)({"H": 100, "W": 100, "C": 3})
    assert constants == (("C", 3),)
    (source,) = definition.build(target, replace(ROW_MAJOR, constants=constants, facts=facts)).sources
    assert ("every" in source.text) == (target.vector_bits > 128)
    assert "gather" not in source.text or not target.free_masks  # else what is less than a vector is gathered


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("Y(w) +=! X(h,w,c) * X(h,w,c)", True),
        ("Y(h,w) max=! X(h,w,c)", True),
        ("Y(h,w) +=! X(h,w,c) * Z(w)", False),  # Z is read along the row
        ("Y(h,c) +=! X(h,w,c)", True),  # each by itself
        ("Y(w,h) +=! X(h,w,c)", False),  # across rows
    ],
)
def test_the_number_of_values_is_a_constant_where_they_are_reduced(statement, kept):
    text = f"def f(float(H,W,C) X, float(W) Z) -> (Y) {{ {statement} }}"
    function = tc.compile(text, target="cpu", allow=["TC234"])["f"]
    for values in (2, 3, 4, 5):
        sizes = {"H": 50, "W": 70, "C": values}
        constants, _ = SizeClasses(function.program, function.definition().found.ranges)(sizes)
        assert constants == ((("C", values),) if kept and values < 5 else ())


SUMS = (
    "Y(n,c) +=! (A(b,j,c) - A(b,n,c)) * rsqrt(1 + (A(b,j,0) - A(b,n,0)) * (A(b,j,0) - A(b,n,0)))",
    "Y(c) +=! A(b,j,c)",
    "Y(b,c) max=! A(b,j,c)",
    "Y(b,d,c) +=! A(b,j,d) * A(b,j,c)",
    "Y(b,c) +=! W(b,j) * A(b,j,c)",
    "Y(b,c) +=! A(b,j+1,c) * A(b,j,c)",
    "Y(b,c) +=! j <= b ? A(b,j,c) : 0",
    "Y(b,c) min=! A(b,j,c) == A(b,1,c) ? j : N",
    "Y(b,c) +=! A(b,j,c) * (c == 0 ? 0.2 : 0.5)",
    "Y(b,c) += A(b,j,c)",
)


@pytest.mark.parametrize("statement", SUMS)
@pytest.mark.parametrize("isa", ISAS)
def test_sums_of_values_have_vectors_along_the_elements(statement, isa):
    """A vector along two to four values would be mostly empty, and what they share would be computed for each of them."""
    target = cpu_with(isa, 1)
    text = f"def f(float(B,N,C) A, float(B,N) W) -> (Y) {{ {statement} }}"
    definition = tc.compile(text, target="cpu", allow=QUIET)["f"].definition()
    constants, facts = SizeClasses(definition.program, definition.found.ranges)({"B": 100, "N": 1000, "C": 3})
    assert constants == (("C", 3),)
    source = definition.build(target, replace(ROW_MAJOR, constants=constants, facts=facts)).sources[0]
    assert f"vector of {target.vector_bits // 32}" in source.text


@pytest.mark.some(30, ci=2)
@pytest.mark.parametrize("statement", SUMS)
@pytest.mark.parametrize("dtype", ["float", "double", "int32", "uint8", "float16"])
def test_sums_of_values(statement, dtype):
    text = f"def f({dtype}(B,N,C) A, {dtype}(B,N) W) -> (Y) {{ {statement} }}"
    fast, slow = (tc.compile(text, target=target, allow=QUIET)["f"] for target in ("cpu", "interpreter"))
    rng, kind = np.random.default_rng(3), {"float": "float32", "double": "float64"}.get(dtype, dtype)
    for values in (2, 3, 4, 5):
        for count in (2, 15, 16, 17, 24):
            arrays = [rng.integers(0, 4, shape).astype(kind) for shape in ((count, count, values), (count, count))]
            assert fast.judge(*arrays)(fast(*arrays), slow(*arrays))


APART = (
    "def f(float(N,2) A, float(N,2) B) -> (C) "
    "{ C(i,p) = p==0 ? A(i,0)*B(i,0)-A(i,1)*B(i,1) : A(i,0)*B(i,1)+A(i,1)*B(i,0) where p in 0:2 }",
    "def f(uint8(H,W,3) X, float(3) m) -> (Y) { Y(c,i,j) = X(i,j,c) - m(c) }",
    "def f(uint8(C,H,W) X) -> (Y) { Y(i,j,c) = X(c,i,j) }",
    "def f(uint8(H,W,4) X) -> (Y) { Y(i,j,c) = X(i,j,2-c) where c in 0:3 }",
    "def f(double(N,C) X, double(C) w) -> (Y) { Y(i,c) = X(i,c) * w(c) }",
    "def f(float(N,3) A, float(N,3) B) -> (C) { C(i,c) = A(i,(c+1)%3)*B(i,(c+2)%3) - A(i,(c+2)%3)*B(i,(c+1)%3) where c in 0:3 }",
    "def f(float(N,4) A) -> (C) { C(i,c) = A(i,min(c+1,3)) - A(i,max(c-1,0)) where c in 0:4 }",
)


@pytest.mark.parametrize("text", APART)
def test_values_of_elements_are_neither_gathered_nor_scattered(text):
    target = cpu.cpu_target()
    if not target.free_masks:
        pytest.skip("what is less than a vector is gathered")
    definition = tc.compile(text, target="cpu")["f"].definition()
    sizes = {"N": 1000, "H": 100, "W": 100, "C": 3}
    known = {name: sizes[name] for name in definition.program.sizes}
    constants, facts = SizeClasses(definition.program, definition.found.ranges)(known)
    assert constants == ((("C", 3),) if "C" in known else ())
    (source,) = definition.build(target, replace(ROW_MAJOR, constants=constants, facts=facts)).sources
    assert "gather" not in source.text
    assert "scatter" not in source.text


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("Y(i,c) = X(i,c) * 2", False),  # one long row
        ("Y(i,c) = X(i,c) * w(c)", True),
        ("Y(i,c) = X(i,c) * v(i)", True),
        ("Y(c,i) = X(i,c)", True),
        ("Y(i,c) = w(c) + w(c)", True),
    ],
)
def test_the_number_of_values_is_a_constant_where_they_are_computed_apart(statement, kept):
    function = tc.compile(
        f"def f(float(N,C) X, float(C) w, float(N) v) -> (Y) {{ {statement} where i in 0:N }}", target="cpu"
    )["f"]
    for values in (1, 2, 3, 4, 5):
        sizes = {"N": 1000, "C": values}
        constants, _ = SizeClasses(function.program, function.definition().found.ranges)(sizes)
        assert constants == ((("C", values),) if kept and values in (2, 3, 4) else ())


READS = (
    "X(i,c)",
    "X(i,K)",
    "X(i,V-1-c)",
    "P(c,i)",
    "P(K,i)",
    "P(i%V,i)",
    "v(i)",
    "w(c)",
    "w(K)",
    "v(i/2)",
    "(c==K ? X(i,0) : v(i))",
)


@drawn(30, 60, st.data())
def test_random_statements_of_values(data):
    """Any mixture of operands, either way around, at sizes around a vector; arrays that are contiguous, and others."""
    values, kind = (
        data.draw(st.integers(2, 4)),
        data.draw(st.sampled_from(["float", "double", "int32", "uint8", "int16", "half", "bfloat16"])),
    )
    numbers = st.integers(0, values - 1).map(str)
    reads = [
        data.draw(st.sampled_from(READS)).replace("K", data.draw(numbers)) for _ in range(data.draw(st.integers(1, 4)))
    ]
    left = data.draw(st.sampled_from(["Y(i,c)", "Y(c,i)", "Y(b,i,c)"]))
    limits = data.draw(st.sampled_from(["0:N", "max(0,M-3):N", "0:min(N,M)", "0:max(N-M,0)", "1:N"]))
    body = " + ".join(reads).replace("V", str(values))
    text = (
        f"def f({kind}(N,{values}) X, {kind}({values},N) P, {kind}(N) v, {kind}({values}) w, uint8(M) m) -> (Y) "
        f"{{ {left} = {body} where i in {limits}, c in 0:{values}{', b in 0:2' if 'b' in left else ''} }}"
    )
    fast, slow = (tc.compile(text, target=target, allow=QUIET)["f"] for target in ("cpu", "interpreter"))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = numpy_dtype(DType({"float": "float32", "double": "float64", "half": "float16"}.get(kind, kind)))
    for count in data.draw(
        st.lists(st.sampled_from([1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 130]), min_size=2, max_size=3)
    ):
        shapes = ((count, values), (values, count), (count,), (values,))
        arrays = [rng.integers(0, 9, shape).astype(dtype) for shape in shapes]
        arrays.append(np.zeros(data.draw(st.integers(1, min(20, count + 3))), np.uint8))
        if data.draw(st.booleans()):
            arrays[0] = np.asfortranarray(arrays[0])
        np.testing.assert_array_equal(fast(*arrays), slow(*arrays), err_msg=f"{text} {count}")


def test_values_behind_a_jump_are_written_one_by_one():
    """Where it is not known that a loop runs, its vectors stand behind a jump, and nothing after it may need them."""
    text = "def f(float(N,2) X, uint8(M) m) -> (Y) { Y(i,c) = X(i,c) + X(i,0) where i in max(0,M-3):N, c in 0:2 }"
    fast, slow = (tc.compile(text, target=target, allow=QUIET)["f"] for target in ("cpu", "interpreter"))
    x = np.arange(80, dtype=np.float32).reshape(40, 2)
    for length in (1, 5, 40, 43):
        np.testing.assert_array_equal(fast(x, np.zeros(length, np.uint8)), slow(x, np.zeros(length, np.uint8)))


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "bool"])
def test_values_that_are_stored_in_another_form(dtype):
    text = f"def f({dtype}(N,3) X) -> (Y) {{ Y(i,c) = X(i,2-c) where c in 0:3 }}"
    function = tc.compile(text, target="cpu", allow=QUIET)["f"]
    kind = numpy_dtype(DType({"half": "float16"}.get(dtype, dtype)))
    for length in (1, 7, 8, 15, 16, 17, 33, 100):
        x = np.random.default_rng(3).integers(0, 2, (length, 3)).astype(kind)
        np.testing.assert_array_equal(function(x), x[:, ::-1])
    if cpu.cpu_target().free_masks:
        assert "scatter" not in function.source("llvm")


def test_few_elements_in_a_row_are_another_class():
    function = tc.compile(
        "def f(uint8(B,N,C) X, uint8(C) w) -> (Y) { Y(b,i,c) = X(b,i,c) * w(c) }", target="cpu", allow=QUIET
    )["f"]
    ranges = function.definition().found.ranges
    classes = [SizeClasses(function.program, ranges)({"B": 9, "N": count, "C": 3}) for count in (1, 7, 8, 500)]
    assert classes[0] == classes[1] != classes[2] == classes[3]
    for count in (1, 2, 7, 8, 9, 64, 70):  # the short way must tell them apart as well
        for values in (2, 3, 5):
            x, w = np.full((5, count, values), 3, np.uint8), np.arange(values, dtype=np.uint8)
            for _ in range(3):
                np.testing.assert_array_equal(function(x, w), x * w)


BOXES = """def f(float(N, 4) A, float(M, 4) B) -> (O, S) {
    O(i, j) = min(A(i, 2), B(j, 2)) - max(A(i, 0), B(j, 0))
    S(j) +=! A(i, 1) * B(j, 3) - min(A(i, 3), B(j, 1)) * O(i, j)
}"""


def test_values_with_names_that_are_read_again_are_planes_of_one_copy():
    f = tc.compile(BOXES).f
    assert str(f.default_schedule().to_python()).count("order=(1, 0)") == 1
    random = np.random.default_rng(1)
    a, b = (random.uniform(-1, 1, (rows, 4)).astype("f") for rows in (50, 70))
    overlap = np.minimum(a[:, None, 2], b[None, :, 2]) - np.maximum(a[:, None, 0], b[None, :, 0])
    sums = (a[:, None, 1] * b[None, :, 3] - np.minimum(a[:, None, 3], b[None, :, 1]) * overlap).sum(axis=0)
    for found, expected in zip(f(a, b), (overlap, sums), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", ["B(i, 0) * B(i, 1)", "A(i) * B(i, 3)", "B(i, 0)"])
def test_values_that_are_read_once_are_not_copied(value):
    f = tc.compile(f"def f(float(N) A, float(N, 4) B) -> (O) {{ O(i) = {value} }}").f
    assert "order=" not in str(f.default_schedule().to_python())
