"""CUDA text -> PTX and cubin through NVRTC, without a GPU and without a driver.

The binding is a few C calls through `ctypes`; `cuda.pathfinder` finds the library of the wheel or the toolkit.
Compiling to a real architecture makes both the PTX and the cubin, and only the latter step (ptxas) validates inline
PTX and knows registers and spills.

Worked example: `compile_cuda('extern "C" __global__ void f(float* x) { x[0] = 1; }', "sm_90").cubin` is an ELF file
that `read_resources` can read and the driver can load.

Source: NVRTC documentation, https://docs.nvidia.com/cuda/nvrtc/.
"""

from __future__ import annotations

import ctypes
import re
import threading
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, Label, SourceText, Span, codes

from .forks import MAKING

BASE_OPTIONS = (
    "-std=c++17",
    "-lineinfo",
    "-ftz=false",
    "-fmad=true",
    "-prec-div=true",
    "-prec-sqrt=true",
    "--ptxas-options=-v",
)
"""The numerical policy of all kernels (precise division and roots, subnormals kept, contraction allowed) and what
reports need.
"""

FAST_MATH = ("-ftz=true", "-prec-div=false", "-prec-sqrt=false", "-use_fast_math")
"""Options that a target with `fast_math` adds at the user's request."""

MISSING = "NVRTC is not installed; `pip install 'tc_jupyter[check]'` compiles and checks CUDA kernels without a GPU"


@dataclass(frozen=True, slots=True)
class Compiled:
    """What NVRTC made of one compilation unit.

    Attributes:
        ptx: PTX text of the architecture's virtual counterpart.
        cubin: machine code (ELF); empty for a virtual architecture (`compute_80`).
        log: messages of NVRTC and, for a real architecture, of ptxas (`-v`: registers, spills).
        arch: the architecture that was asked for.
    """

    ptx: str
    cubin: bytes
    log: str
    arch: str = ""


class BackendError(Exception):
    """A compiler, for CUDA or for the CPU, is absent, refused a text, or lacks a library.

    Attributes:
        diagnostic: TC903, with the lines of the cell where the log names them; TC503 for a library.
        log: everything that the compiler said.
    """

    def __init__(self, diagnostic: Diagnostic, log: str = "") -> None:
        super().__init__(diagnostic.message if not log else f"{diagnostic.message}\n{log}")
        self.diagnostic = diagnostic
        self.log = log


def available() -> str | None:
    """Why NVRTC cannot be used, with the remedy; `None` if it can."""
    try:
        _library()
    except BackendError as error:
        return error.diagnostic.message
    return None


def version() -> tuple[int, int]:
    """Version of the NVRTC library, for instance `(13, 0)`.

    Raises:
        BackendError: NVRTC is not installed.
    """
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


@cache
def supported_archs() -> tuple[str, ...]:
    """Architectures that this NVRTC compiles for, ascending: `('sm_75', 'sm_80', ...)`.

    Raises:
        BackendError: NVRTC is not installed.
    """
    library, count = _library(), ctypes.c_int()
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(numbers)
    return tuple(f"sm_{number}" for number in sorted(numbers))


def compile_cuda(
    source: str,
    arch: str = "sm_80",
    *,
    name: str = "kernel.cu",
    options: tuple[str, ...] = (),
    text: SourceText | None = None,
) -> Compiled:
    """Compile a self-contained CUDA text.

    Args:
        arch: `sm_XY` (PTX and cubin) or `compute_XY` (PTX only).
        name: file name of the text in messages; lines after a `#line` directive name the directive's file instead.
        options: further NVRTC options, after `BASE_OPTIONS`.
        text: the cell; with it, messages about its lines (`#line N "cell"`) become labelled spans.

    Raises:
        BackendError: NVRTC is absent, does not know the architecture, or refused the text.
    """
    library = _library()
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    try:
        flags = [f"-arch={arch}", *BASE_OPTIONS, *options]
        words = (ctypes.c_char_p * len(flags))(*map(str.encode, flags))
        with MAKING:
            status = library.nvrtcCompileProgram(program, len(flags), words)
        lines = _fetch(program, "ProgramLog").rstrip(b"\0").decode(errors="replace").splitlines()
        log = "\n".join(line for line in lines if "Compile time" not in line)  # equal compilations have equal logs
        if status != 0:
            raise BackendError(_refusal(status, arch, log, text), log)
        ptx = _fetch(program, "PTX").rstrip(b"\0").decode()
        cubin = _fetch(program, "CUBIN") if arch.startswith("sm_") else b""
        return Compiled(ptx, cubin, log, arch)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


_lock = threading.Lock()


def _library() -> ctypes.CDLL:
    """The loaded library; the first call loads it (NVRTC's own builtins library is found by `cuda.pathfinder`)."""
    with MAKING, _lock:
        return _load()


@cache
def _load() -> ctypes.CDLL:
    """Load through `cuda.pathfinder`, which loads dependencies first; a bare path would fail at the first
    compilation.
    """
    if find_spec("cuda") is None or find_spec("cuda.pathfinder") is None:
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, MISSING))
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib  # noqa: PLC0415

    try:
        path = load_nvidia_dynamic_lib("nvrtc").abs_path
    except (DynamicLibNotFoundError, RuntimeError, OSError) as error:
        raise BackendError(Diagnostic(codes.BACKEND_FAILED, NO_SPAN, MISSING), str(error)) from error
    assert path is not None
    library = ctypes.CDLL(path)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _check(status: int) -> None:
    """A failing call other than a compilation is a bug here."""
    if status != 0:
        raise RuntimeError(f"NVRTC: {_library().nvrtcGetErrorString(status).decode()}")


def _fetch(program: ctypes.c_void_p, what: str) -> bytes:
    """`nvrtcGet<what>` with its size query."""
    library, size = _library(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    if size.value:
        _check(getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


_MESSAGE = re.compile(
    r"^(?P<file>[^\n(]*)\((?P<line>\d+)\): (?P<kind>(?:catastrophic )?error|warning)[^:]*: (?P<text>.*)$", re.MULTILINE
)


def _refusal(status: int, arch: str, log: str, text: SourceText | None) -> Diagnostic:
    """The diagnostic of a refused text: first error in the message, all errors on lines of the cell as labels."""
    if status == 5 and "arch" in log:  # NVRTC_ERROR_INVALID_OPTION
        known = ", ".join(supported_archs())
        return Diagnostic(
            codes.BACKEND_FAILED,
            NO_SPAN,
            f"NVRTC {version()[0]} does not compile for `{arch}`",
            help=f"it knows {known}",
        )
    errors = [match for match in _MESSAGE.finditer(log) if "error" in match["kind"]]
    if not errors:
        first = next(
            (line for line in log.splitlines() if line.strip()), _library().nvrtcGetErrorString(status).decode()
        )
        return Diagnostic(
            codes.BACKEND_FAILED, NO_SPAN, f"the CUDA compiler refused the generated text: {first.strip()}"
        )
    labels = tuple(Label(span, match["text"]) for match in errors if (span := _span(match, text)) != NO_SPAN)
    first = errors[0]
    message = f"the CUDA compiler refused the generated text at {first['file']}:{first['line']}: {first['text']}"
    span = labels[0].span if labels else NO_SPAN
    help_text = "this is a fault of tc_jupyter; please report the text of the cell and this message"
    return Diagnostic(
        codes.BACKEND_FAILED, span, message, label=labels[0].text if labels else "", labels=labels[1:], help=help_text
    )


def _span(match: re.Match[str], text: SourceText | None) -> Span:
    """The whole line of the cell that an NVRTC message names, or `NO_SPAN` if it names another file."""
    if text is None or match["file"].replace("\\", "/").rsplit("/", 1)[-1] != text.name:
        return NO_SPAN
    line = int(match["line"]) - 1
    if not 0 <= line < len(text.line_starts):
        return NO_SPAN
    start = text.line_starts[line]
    return Span(start, start + len(text.line(line)))
