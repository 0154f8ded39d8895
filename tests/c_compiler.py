"""Compiles what `f.source("c")` gives with the C compiler that is found, and calls it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tc_jupyter.codegen.plain import PlainFunction
from tc_jupyter.program import DType

CC = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
FLAGS = (
    "-std=gnu99",
    "-O1",
    "-fwrapv",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-pragmas",
    "-Wno-unused-parameter",
    "-Werror",
    "-shared",
    "-fPIC",
)
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler on the path")


def compiled(function: PlainFunction, flags: tuple[str, ...] = FLAGS):
    """The function, as ctypes has it."""
    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder) / "plain.c", Path(folder) / "plain.so"
        text.write_text(function.text, encoding="utf-8")
        answer = subprocess.run(
            [CC, *flags, str(text), "-o", str(library), "-lm"], capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, f"{answer.stderr}\n{function.text}"
        return getattr(ctypes.CDLL(str(library)), function.name)


def call(function: PlainFunction, entry, sizes: dict[str, int], values: dict[str, np.ndarray]) -> None:
    """Call with row-major arrays; results are among the values."""
    passed = []
    for argument in function.parameters:
        value = sizes[argument.name] if argument.kind == "size" else values[argument.name]
        if argument.kind == "buffer":
            assert value.flags.c_contiguous
            passed.append(ctypes.c_void_p(value.ctypes.data))
        elif argument.kind == "size":
            passed.append(ctypes.c_int64(value))
        else:
            passed.append(np.ctypeslib.as_ctypes_type(numpy_type(argument.dtype))(np.asarray(value).item()))
    assert entry(*passed) == 0


def numpy_type(dtype: DType) -> np.dtype:
    """Of `bfloat16` NumPy has the bits alone."""
    return np.dtype("uint16" if dtype is DType.BFLOAT16 else dtype.value)
