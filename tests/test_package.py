"""The package root: names that load when they are used, and what importing must not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tc_jupyter

SLOW = ("numpy", "sympy", "islpy", "cupy", "llvmlite", "IPython", "lark", "torch", "jax", "ipywidgets", "scipy")


def test_importing_the_package_loads_nothing_slow():
    code = f"import sys, tc_jupyter; print([name for name in {SLOW!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_public_names_are_listed_and_load():
    assert set(tc_jupyter._HOMES) == set(tc_jupyter.__all__)
    assert {name for name in dir(tc_jupyter) if not name.startswith("__")} == set(tc_jupyter.__all__)
    for name in tc_jupyter.__all__:
        assert getattr(tc_jupyter, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        tc_jupyter.nonsense
