"""Names that start with a digit, and words of the languages that code is written in, on every engine."""

from __future__ import annotations

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import nvrtc

SIZED = """def {a}(float(N) {b}, float {c}, int {d}) -> ({e}) {{
    {f}(i) = {b}(i) * {c} + {d}
    {e}(i) = {f}(i) + {b}(i + {d}) where i in 0:N - {d}
}}
def second(float(N) {b}, float {c}, int {d}) -> (Y) {{ Y = {a}({b}, {c}, {d}) }}
"""
NAMES = [
    ("2f", "3a", "3s", "4k", "4b", "5t"),
    ("2f", "_3a", "3a", "3k", "_3k", "0t"),
    ("class", "lambda", "template", "args", "errors", "first"),
    ("main", "entry", "threadIdx", "self", "double3", "int64_t"),
    ("ptr", "define", "None_", "n0", "t3a", "undef"),
]


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_every_name_of_the_language_is_a_name_of_every_engine(names):
    pytest.importorskip("llvmlite")
    a, b, c, d, e, f = names
    text = SIZED.format(a=a, b=b, c=c, d=d, e=e, f=f)
    quiet = ["TC237"]
    module, reference = (tc.compile(text, target=target, allow=quiet) for target in ("cpu", "interpreter"))
    x = np.arange(9, dtype=np.float32)
    expected = 2 * x[:6] + 3 + x[3:]
    for name in (a, "second"):
        function = module[name]
        for _ in range(3):  # the general way, then shorter ones
            np.testing.assert_array_equal(function(x, 2.0, 3), expected)
        np.testing.assert_array_equal(function(**{b: x, c: 2.0, d: 3}), expected)
        np.testing.assert_array_equal(function(x, 2.0, 3, out=np.empty(6, np.float32)), expected)
        np.testing.assert_array_equal(reference[name](x, 2.0, 3), expected)
        with pytest.raises(tc.CallError, match="-5" if name == a else ""):
            function(x, 2.0, -5)
        for kind in ("loops", "llvm", "asm", "cuda"):
            assert function.source(kind, x, 2.0, 3)
        if nvrtc.available() is None:
            assert function.source("ptx", x, 2.0, 3)
