"""Which kernels other libraries run, and what the environment does to them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tc_jupyter.runtime import libraries


@pytest.fixture(autouse=True)
def _libraries_choose(monkeypatch):
    for name in (*libraries.SLOWING, *libraries.THREADS):
        monkeypatch.delenv(name, raising=False)


def test_what_slows_is_named_and_left_out(monkeypatch):
    assert (libraries.slowed(), libraries.slowed_note(64)) == ((), ())
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "524288")
    monkeypatch.setenv("UNTOUCHED", "1")
    assert libraries.slowed() == ("OPENBLAS_L2_SIZE=524288",)
    (note,) = libraries.slowed_note(2)
    assert note.startswith("OPENBLAS_L2_SIZE=524288 is set: NumPy")
    kept = libraries.unslowed()
    assert "OPENBLAS_L2_SIZE" not in kept
    assert kept["UNTOUCHED"] == "1"
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    numpy, torch = libraries.slowed_note(2)
    assert numpy.startswith("OPENBLAS_CORETYPE=Haswell and OPENBLAS_L2_SIZE=524288 are set: NumPy")
    assert torch.startswith("MKL_CBWR=COMPATIBLE is set: PyTorch")


@pytest.mark.parametrize("value, threads, told", [
    ("1", 2, True), ("1", 1, False), ("2", 2, False), ("3,1", 4, True), (" 1", 2, True), ("0", 2, False), ("", 2, False), ("all", 2, False),
])  # fmt: skip
def test_fewer_threads_of_others_are_told(monkeypatch, value, threads, told):
    # a product of NumPy took twice as long with OMP_NUM_THREADS=1, and the table said nothing
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    count = value.strip().partition(",")[0]
    note = f"OMP_NUM_THREADS={count} is set: other libraries may compute on fewer threads than this function, which has {threads}"
    assert libraries.slowed_note(threads) == ((note,) if told else ())


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
