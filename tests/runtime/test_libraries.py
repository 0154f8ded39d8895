"""Which kernels other libraries run, and what the environment does to them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tc_jupyter.runtime import libraries


@pytest.fixture(autouse=True)
def _libraries_choose(monkeypatch):
    for name in libraries.SLOWING:
        monkeypatch.delenv(name, raising=False)


def test_what_slows_is_named_and_left_out(monkeypatch):
    assert (libraries.slowed(), libraries.slowed_note()) == ((), ())
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "524288")
    monkeypatch.setenv("UNTOUCHED", "1")
    assert libraries.slowed() == ("OPENBLAS_L2_SIZE=524288",)
    (note,) = libraries.slowed_note()
    assert note.startswith("OPENBLAS_L2_SIZE=524288 is set: NumPy")
    kept = libraries.unslowed()
    assert "OPENBLAS_L2_SIZE" not in kept
    assert kept["UNTOUCHED"] == "1"
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert libraries.slowed_note()[0].startswith("OPENBLAS_CORETYPE=Haswell and OPENBLAS_L2_SIZE=524288 are set: ")


def test_the_kernels_of_a_library_are_those_that_it_chose():
    pytest.importorskip("threadpoolctl")
    code = "import numpy; from tc_jupyter.runtime import libraries; print('; '.join(libraries.kernels()))"

    def said(**more):
        environment = {**libraries.unslowed(), **more}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)

    own = said().stdout
    if "openblas" not in own or "numpy: " not in own:
        pytest.skip(f"NumPy's products come from another library here: {own}")
    assert "Nehalem" in said(OPENBLAS_CORETYPE="Nehalem").stdout or os.uname().machine != "x86_64"


@pytest.mark.parametrize(
    "file, owner",
    [
        ("/usr/lib/python3/site-packages/numpy.libs/libscipy_openblas64_-1.so", "numpy"),
        ("/venv/site-packages/torch/lib/libmkl.so", "torch"),
        ("/usr/lib/libopenblas.so.0", "libopenblas.so.0"),
    ],
)
def test_a_library_is_named_after_its_package(file, owner):
    assert libraries._kernel({"filepath": file, "internal_api": "openblas", "version": "1", "architecture": "Zen"}) == (
        f"{owner}: openblas 1 Zen"
    )


def test_without_threadpoolctl_a_table_says_that_it_does_not_know(monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    assert libraries.kernels()[0] == "NumPy and SciPy: not known without threadpoolctl"
