"""Reductions over the few values of a pixel: vectors of pixels are read once and taken apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from llvm_kernels import ISAS

import tc_jupyter as tc
from tc_jupyter.codegen.llvm.builder import Builder, Value
from tc_jupyter.codegen.llvm.transpose import every
from tc_jupyter.compiler.definition import ROW_MAJOR
from tc_jupyter.program import DType
from tc_jupyter.runtime import cpu
from tc_jupyter.schedule import size_class

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
        results = dict(known)
        for line in builder.lines:
            name, text = str(line).strip().split(" = ")
            picks = [int(each.split()[1]) for each in text.split("> <")[1].rstrip(">").split(", ")]
            left, right = (part.split()[0] for part in text.split("%")[1:3])
            both = np.concatenate([results["%" + left.rstrip(",")], results["%" + right.rstrip(",")]])
            results[name] = both[picks]
        assert results[found.text].tolist() == list(range(first, count * lanes, count))


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
    target = cpu.cpu_target(1, isa)
    definition = tc.compile(GRAY.replace("TYPE", "float"), target="cpu")["f"].definition()
    constants, hints = size_class(definition.program, definition.found.ranges, {"H": 100, "W": 100, "C": 3})
    assert constants == (("C", 3),)
    (source,) = definition.build(target, replace(ROW_MAJOR, constants=constants, hints=hints)).sources
    assert ("every" in source.text) == (target.vector_bits > 128)
    assert "gather" not in source.text or not target.free_masks  # else what is less than a vector is gathered


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("Y(w) +=! X(h,w,c) * X(h,w,c)", True),
        ("Y(h,w) max=! X(h,w,c)", True),
        ("Y(h,w) +=! X(h,w,c) * Z(w)", False),  # Z is read along the row
        ("Y(h,c) +=! X(h,w,c)", False),  # the values stay
        ("Y(w,h) +=! X(h,w,c)", False),  # across rows
    ],
)
def test_the_number_of_values_is_a_constant_where_they_are_reduced(statement, kept):
    text = f"def f(float(H,W,C) X, float(W) Z) -> (Y) {{ {statement} }}"
    function = tc.compile(text, target="cpu", allow=["TC234"])["f"]
    for values in (2, 3, 4, 5):
        sizes = {"H": 50, "W": 70, "C": values}
        constants, _ = size_class(function.program, function.definition().found.ranges, sizes)
        assert constants == ((("C", values),) if kept and values < 5 else ())
