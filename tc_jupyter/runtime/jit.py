"""LLVM IR text -> machine code -> addresses. The only file that knows llvmlite and which of LLVM's JITs is used.

The first line of a text names its passes: `; passes: vector` (the code is vectors already: a short list) or `; passes: loops`
(plain loops: LLVM's full pipeline with its vectoriser). With `, addresses as written` LLVM does not search for better ones when it
makes machine code (loop strength reduction): that took a quarter of its time, of a transpose two thirds, and is done already
(`gain` in `codegen.llvm.addresses`). The list for vectors is two passes, which put accumulators into registers and join blocks: a
third one that simplifies instructions (`instcombine`) took a seventh of LLVM's time and found nothing that the text could not do
without.

On x86 innermost loops begin at a line of 64 bytes. Where they began at any multiple of 16, a product of 64 x 64 x 64 took 373 or
442 us, as the code before it happened to be long. Vectors are computed in the order of the text: without a scheduler LLVM takes
0.92 of the time, and the code of 33 workloads 0.99, with AVX-512 and with AVX2 (without sinking of instructions, which would save
another 0.04, a stencil of bytes took 1.08).

Worked example: `load_object(emit_object(text), symbols).address("mv")` is the address of the function `mv`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

from tc_jupyter.codegen.llvm import EXTERNAL
from tc_jupyter.diagnostics import NO_SPAN, Diagnostic
from tc_jupyter.diagnostics.codes import BACKEND_FAILED, DEVICE_LIMIT

from .forks import MAKING
from .nvrtc import BackendError

_LOCK = Lock()
LAST_KNOWN = 22
"""LLVM up to this version is known to have the switches of `_SWITCHES`; one that does not know a switch may end the process."""
_RECIPE = "sroa, simplifycfg, loops aligned to 64, order of the text"
"""What becomes of a text, beside what its first line says: another recipe is other code in the cache."""
_LSR, _ALIGNED, _SCHEDULED = "disable-lsr", "x86-experimental-pref-innermost-loop-alignment", "enable-misched"
_SWITCHES = {_LSR: ("true", "false"), _ALIGNED: ("6", "4"), _SCHEDULED: ("false", "true")}
"""LLVM's switches that are changed: their values meanwhile and before."""
_LOADED: list[Any] = []
"""Engines of loaded code: never freed, since a thread of the pool may be inside."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the code is for.

    Attributes:
        features: LLVM's feature string; empty: the host's.
        triple: target triple; empty: the host's.
        fixed: the code runs where it is put; else a linker may put it anywhere, as into a shared library.
    """

    features: str = ""
    triple: str = ""
    fixed: bool = True


@dataclass(frozen=True, slots=True)
class Loaded:
    """Code in memory."""

    engine: Any = field(repr=False)

    def address(self, name: str) -> int:
        """The address of a function.

        Raises:
            KeyError: there is no such function.
        """
        address = self.engine.get_function_address(name)
        if not address:
            raise KeyError(name)
        return address


def is_installed() -> bool:
    """Whether llvmlite is there; nothing is loaded."""
    try:
        return find_spec("llvmlite") is not None
    except ValueError:  # somebody has put something else in its place
        return False


def available() -> bool:
    """Whether llvmlite can be used; it is loaded."""
    try:
        binding()
    except ImportError:
        return False
    return True


@lru_cache(maxsize=1)
def binding() -> Any:
    """Llvmlite's binding, initialised."""
    with MAKING:
        import llvmlite.binding as llvm  # noqa: PLC0415  (slow: at the first compilation only)

    for step in (llvm.initialize, llvm.initialize_native_target, llvm.initialize_native_asmprinter):
        try:
            step()
        except RuntimeError:  # newer versions do the first step themselves and say so
            continue
    return llvm


def _library_lock() -> Any:
    """Llvmlite's lock around every call of its library, which others use too; `None` where it is not loaded."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    return getattr(getattr(library, "_lock", None), "_lock", None)


MAKING.others.append(_library_lock)


def version() -> str:
    """Versions of llvmlite and LLVM, and what is asked of them, for cache keys."""
    import llvmlite  # noqa: PLC0415

    return f"llvmlite {llvmlite.__version__} llvm {'.'.join(map(str, binding().llvm_version_info))} {_RECIPE}"


@lru_cache(maxsize=1)
def host() -> tuple[str, str, tuple[str, ...]]:
    """Triple, processor name and features of this machine; the name can be masked by a hypervisor, the features are not."""
    llvm = binding()
    features = tuple(sorted(name for name, on in _host_features().items() if on))
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _host_features() -> dict[str, bool]:
    """What LLVM finds; nothing on a processor that it does not know, which then runs code of the oldest kind."""
    try:
        return dict(binding().get_host_cpu_features())
    except RuntimeError:
        return {}


@lru_cache(maxsize=1)
def host_feature_string() -> str:
    """Every feature of the host switched on or off by name."""
    return ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(_host_features().items()))


@lru_cache(maxsize=16)
def _machine(options: Options) -> Any:
    llvm = binding()
    features = options.features or host_feature_string()
    place = {"codemodel": "jitdefault", "jit": True} if options.fixed else {"codemodel": "default", "reloc": "pic"}
    return llvm.Target.from_triple(_triple(options)).create_target_machine(features=features, opt=2, **place)


def _triple(options: Options) -> str:
    return options.triple or host()[0]


@lru_cache(maxsize=16)
def _target_lines(options: Options) -> str:
    """What a module for a machine begins with."""
    return f'target datalayout = "{_machine(options).target_data}"\ntarget triple = "{_triple(options)}"\n'


@lru_cache(maxsize=16)
def _vector_passes(options: Options) -> tuple[Any, Any]:
    """The short list of passes and what runs it, which keep nothing of the modules that they have seen."""
    llvm = binding()
    manager = llvm.create_new_module_pass_manager()
    manager.add_sroa_pass()
    manager.add_simplify_cfg_pass()
    return manager, llvm.create_pass_builder(_machine(options), llvm.create_pipeline_tuning_options(speed_level=3))


def _loop_passes(options: Options) -> tuple[Any, Any]:
    """LLVM's full pipeline and what runs it."""
    llvm = binding()
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.loop_interleaving = True
    tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(_machine(options), tuning)
    return builder.getModulePassManager(), builder


def _parse(text: str, options: Options) -> Any:
    try:
        module = binding().parse_assembly(_target_lines(options) + text)
        module.verify()
    except RuntimeError as error:
        message = f"LLVM refused generated code: {str(error).splitlines()[0]}"
        raise BackendError(
            Diagnostic(BACKEND_FAILED, NO_SPAN, message, help="this is a bug of tc_jupyter; please report it")
        ) from error
    return module


def _run_passes(module: Any, options: Options, passes: str) -> None:
    manager, builder = _loop_passes(options) if passes == "loops" else _vector_passes(options)
    manager.run(module, builder)


def _wishes(text: str) -> list[str]:
    """What the first line asks for: the passes, then others."""
    first = text.split("\n", 1)[0]
    return first.removeprefix("; passes: ").strip().split(", ") if first.startswith("; passes: ") else ["loops"]


class _Switches:
    """LLVM's switches, as texts need them; `_LOCK` is held.

    They belong to the process: code that another library makes meanwhile may be made with them too. So whoever makes code puts them
    back at the end.
    """

    def __init__(self) -> None:
        self._on: frozenset[str] = frozenset()

    def become(self, wanted: frozenset[str]) -> None:
        """Let just these be other than LLVM has them by itself."""
        for name in sorted(wanted ^ self._on):
            on, off = _SWITCHES[name]
            self._on |= {name}  # an interrupt may come between the call and the note: then it is switched off twice
            binding().set_option("tc_jupyter", f"-{name}={on if name in wanted else off}")
            if name not in wanted:
                self._on -= {name}


_SWITCHED = _Switches()


def _switches_of(text: str) -> frozenset[str]:
    """What a text needs; nothing of an LLVM that may not know it."""
    passes, *others = _wishes(text)
    if binding().llvm_version_info[0] > LAST_KNOWN:
        return frozenset()
    wanted = {_LSR} if "addresses as written" in others else set[str]()
    if host()[0].startswith("x86_64"):
        wanted |= {_ALIGNED, _SCHEDULED} if passes == "vector" else {_ALIGNED}
    return frozenset(wanted)


def put_back() -> None:
    """Leave LLVM's switches as they were; for who has called `emit_object_inside`."""
    with _LOCK:
        _SWITCHED.become(frozenset())


def _prepared(text: str, options: Options) -> Any:
    """The module of a text after its passes, with the switches set for what comes then; `_LOCK` is held."""
    module = _parse(text, options)
    _run_passes(module, options, _wishes(text)[0])
    _SWITCHED.become(_switches_of(text))
    return module


def emit_object(text: str, options: Options = Options()) -> bytes:
    """Compile a module to a relocatable object.

    Raises:
        BackendError: LLVM does not accept the text (TC903).
    """
    with MAKING:
        try:
            return emit_object_inside(text, options)
        finally:
            put_back()


def emit_object_inside(text: str, options: Options = Options()) -> bytes:
    """As `emit_object`, for a thread that works for one that is inside `MAKING`, waits for it there, and calls `put_back` then.

    Raises:
        BackendError: LLVM does not accept the text (TC903).
    """
    with _LOCK:
        return _machine(options).emit_object(_prepared(text, options))


def assembly(text: str, options: Options = Options()) -> str:
    """The assembly text of a module."""
    with MAKING:
        try:
            with _LOCK:
                return _machine(options).emit_assembly(_prepared(text, options))
        finally:
            put_back()


def externals(text: str) -> tuple[str, ...]:
    """Symbols of libraries that a module mentions."""
    return tuple(sorted(EXTERNAL.keys() & re.findall(r"@(tc\.\w+)\(", text)))


def is_object(code: bytes) -> bool:
    """Whether bytes are a whole object file, as far as that is seen without reading code; the linker trusts what it is given.

    Of an ELF file the header and the places of all sections are looked at, of other formats the first bytes.
    """
    if code[:4] != b"\x7fELF":
        starts = (b"\xcf\xfa\xed\xfe", b"\x64\x86", b"\x64\xaa")  # Mach-O; COFF for x86-64 and ARM
        return sys.platform in ("darwin", "win32") and code.startswith(starts)
    if len(code) < 64 or code[4:6] != b"\x02\x01" or sys.platform in ("darwin", "win32"):
        return False
    (kind,) = struct.unpack_from("<H", code, 16)
    (table,) = struct.unpack_from("<Q", code, 40)
    size, count, names = struct.unpack_from("<HHH", code, 58)
    if kind != _RELOCATABLE or size != 64 or not names < count or table + size * count > len(code):
        return False
    for number in range(count):
        (what,) = struct.unpack_from("<I", code, table + size * number + 4)
        start, length = struct.unpack_from("<QQ", code, table + size * number + 24)
        if what != _NO_BITS and start + length > len(code):
            return False
    return True


_RELOCATABLE, _NO_BITS = 1, 8
"""ELF's kind of an object file, and of a section that takes no room in it."""


def load_object(code: bytes, symbols: Iterable[str] = ()) -> Loaded:
    """Put an object into memory for good.

    Args:
        symbols: names of `EXTERNAL` functions that it uses.

    Raises:
        BackendError: a library that has one of them is not installed (TC503).
    """
    with MAKING:
        for symbol in symbols:
            _resolve(symbol)
        return _load(code)


def _load(code: bytes) -> Loaded:
    llvm = binding()
    with _LOCK:
        machine = _machine.__wrapped__(Options())  # an engine owns its machine
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _LOADED.append(engine)
    return Loaded(engine)


def compile(text: str, options: Options = Options()) -> Loaded:
    """Text to loaded code in one step."""
    return load_object(emit_object(text, options), externals(text))


# --- functions of other libraries ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _resolve(symbol: str) -> None:
    external = EXTERNAL[symbol]
    address = _c_address(external.name) if external.library == "c" else _scipy_address(external.name)
    if not address:
        function = symbol.removeprefix("tc.")
        message = f"`{function}` is not available on this machine's CPU engine"
        help_text = "install SciPy: `pip install scipy`" if external.library == "scipy" else "the C library lacks it"
        raise BackendError(Diagnostic(DEVICE_LIMIT, NO_SPAN, message, help=help_text))
    binding().add_symbol(symbol, address)


@lru_cache(maxsize=1)
def _c_library() -> Any:
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    return ctypes.CDLL(ctypes.util.find_library("m"))


def _c_address(name: str) -> int:
    spelled = f"_{name}" if sys.platform == "win32" and name in ("j0", "j1", "y0", "y1") else name
    function = getattr(_c_library(), spelled, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _scipy_address(name: str) -> int:
    try:
        from scipy.special import cython_special  # noqa: PLC0415  (optional: only rare functions need it)
    except ImportError:
        return 0
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for spelled in (
        name,
        f"__pyx_fuse_0{name}",
        f"__pyx_fuse_1{name}",
    ):  # fused types are numbered differently by function
        capsule = cython_special.__pyx_capi__.get(spelled)
        if capsule is not None and get_name(capsule).startswith(b"double (double, int"):
            return get_pointer(capsule, get_name(capsule)) or 0
    return 0
