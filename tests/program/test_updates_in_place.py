"""`Z ^= Y`, `Z[1:] //= 2` and the like of other languages: after all fixes, drawn programs compute what NumPy does."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tc_jupyter as tc
from tests.syntax.test_made import after_all_fixes

INTEGERS = ["^", "|", "&", "<<", ">>", "//", "%", "+", "-", "*"]
FLOATS = ["//", "%", "**", "/", "+", "-", "*"]
X = np.array([1, 6, 3, 7, 2, 5, 4, 2])
Y = np.array([3, 2, 5, 1, 4, 2, 6, 1])


def drawn(rng, operators, values):
    target = rng.choice(["Z", "Z", "Z[1:]", "Z[::2]", "Z[2]"])
    value = rng.choice(values).replace("Y", target.replace("Z", "Y"))
    return f"{target} {rng.choice(operators)}= {value}"


@pytest.mark.parametrize("seed", range(40))
def test_drawn_programs(seed):
    rng = Random(seed)
    is_integer, is_parameter = rng.random() < 0.6, rng.random() < 0.4
    kind, dtype = ("int", np.int32) if is_integer else ("float", np.float32)
    x, y = X.astype(dtype), (Y if is_integer else Y / 4 + 1).astype(dtype)
    operators = INTEGERS if is_integer else FLOATS
    values = ["Y", "3", "n", "Y + 1", "(Y - 1)"] if is_integer else ["Y", "2", "0.5", "n", "Y + 1"]
    lines = [
        *([] if is_parameter else ["Z = X.copy()"]),
        *(drawn(rng, operators, values) for _ in range(rng.randint(1, 2))),
    ]
    names = {"X": x, "Y": y, "n": 2, "Z": x.copy()}
    with np.errstate(all="ignore"):
        exec("\n".join(lines), names)  # a program of NumPy, drawn above
    first = "Z" if is_parameter else "X"
    text = after_all_fixes(f"def f({kind}(N) {first}, {kind}(N) Y, int n) -> (Z) {{ {'  '.join(lines)} }}")
    allowed = ["TC234", "TC322", "TC325"]
    with np.errstate(all="ignore"):
        found = tc.compile(text, target="interpreter", allow=allowed).f(x, y, 2)
    np.testing.assert_allclose(found, names["Z"], rtol=1e-5, err_msg=f"{lines}\n{text}")


@pytest.mark.parametrize("operator", ["^", "|", "&", "<<", ">>", "**", "//", "%", "/"])
@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("params", ["{0}(N) Z, {0}(N) Y", "{0}(N) Y"])
def test_one_mistake_has_one_message(operator, kind, params):
    """Also where the target is a parameter, and where nothing has written it."""
    text = f"def f({params.format(kind)}) -> (Z) {{ Z(i) {operator}= Y(i) }}"
    found = [item for item in tc.analyze(text).diagnostics if item.is_error]
    assert [item.message for item in found] == [f"there is no operator `{operator}=`"]


def test_powers_of_integers_are_rounded_ones():
    """What `**=` with exponents that are no literals becomes, against integers of NumPy, where a `double` holds them."""
    module = tc.compile("def f(int64(N) Z, int64(N) Y) -> (W) { W(i) = int64(round(pow(double(Z(i)), Y(i)))) }")
    base, exponent = (each.ravel() for each in np.meshgrid(np.arange(-40, 41), np.arange(10)))
    wanted = base.astype(np.int64) ** exponent
    held = np.abs(wanted.astype(float)) < 2.0**53
    np.testing.assert_array_equal(module.f(base, exponent)[held], wanted[held])
    assert "int64(round(pow(double(Z(i)), Y(i))))" in after_all_fixes(
        "def f(int64(N) X, int64(N) Y) -> (Z) { Z(i) = X(i)  Z(i) **= Y(i) }"
    )
