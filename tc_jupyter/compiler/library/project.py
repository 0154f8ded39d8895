"""The folder of an exported library: it is written here, and compiled where there is a C compiler.

Comes in: definitions. Goes out: `Exported`, which says what is where.

    NAME.h             what a program includes
    NAME.c             the functions: arguments, conditions, memory, threads
    kernels/*.o        the scheduled machine code, an object for each kernel and processor
    libNAME.a, .so     both together
    CMakeLists.txt, NAME.pc, example.c, example.cpp
    exported.sha256    what was written

Worked example: `export([definition], Path("out"), "blur")` writes these files, and `cc example.c libblur.a -lm -pthread` builds a
program that neither Python nor LLVM is needed for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from tc_jupyter.codegen.llvm import EXTERNAL
from tc_jupyter.codegen.plain import Names
from tc_jupyter.codegen.plain.c_helpers import FUNCTIONS, function_text
from tc_jupyter.compiler.definition import Definition
from tc_jupyter.compiler.text_form import function_text as described
from tc_jupyter.diagnostics import Diagnostic, codes, shown_value, warn
from tc_jupyter.program import DType, Program
from tc_jupyter.runtime import jit
from tc_jupyter.schedule import Target

from .calls import Calls, Entry
from .cuda import SUPPORT as CUDA_SUPPORT
from .cuda import CudaCalls, kernel_file, table
from .example import example
from .own_files import foreign, note
from .processor import Processor, level_text
from .signature import SUFFIXES, Signature, signature, structs
from .variants import Step, Variant, devices, processors, refuse, simplest, variants
from .wanted import Wanted
from .wheel import wheel as write_wheel
from .wheel import wheel_name

_HERE = Path(__file__).parent
_KERNELS = "kernels"
"""The folder of the objects."""
_FLAGS = ("-std=gnu11", "-O3", "-fwrapv", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wno-unused-function")


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported library.

    Attributes:
        functions: the C functions, without `_shapes` and `_error`.
        static, shared: the libraries, where they were made.
        symbols: all that the libraries define for others.
    """

    folder: Path
    name: str
    functions: tuple[str, ...]
    symbols: tuple[str, ...]
    static: Path | None = None
    shared: Path | None = None
    cuda: tuple[Path, ...] = ()
    wheel: Path | None = None

    @property
    def header(self) -> Path:
        """What a program includes."""
        return self.folder / f"{self.name}.h"


@dataclass(frozen=True, slots=True)
class _Def:
    """A def on its way into a library."""

    definition: Definition
    signature: Signature
    entries: tuple[Entry, ...]
    on_devices: tuple[Entry, ...]


def export(
    functions: Sequence[Wanted],
    folder: Path,
    name: str,
    cpus: str | Sequence[str] | None = None,
    shared: bool = True,
    cuda: str | Sequence[str] = (),
    wheel: bool = False,
    force: bool = False,
) -> Exported:
    """Write a library.

    Args:
        name: of the library.
        cpus: the processors that it has code for: levels of x86-64, and `native`.
        shared: whether a shared library is made beside the static one.
        cuda: architectures that CUDA is written for.
        wheel: whether a package for Python is made, too.
        force: whether files are overwritten that no export has left so.

    Raises:
        CallError: TC660, TC661, TC663, TC687, or a call of `like` of a function does not fit.
        ValueError: sizes by name in it are not all sizes of the def.
    """
    about = functions[0].definition.program
    if not sys.platform.startswith("linux"):
        refuse(codes.NOT_EXPORTED, f"libraries are exported on Linux; this is {sys.platform!r}", about)
    kinds, gpus = processors(cpus, about), devices(cuda, about)
    name = library_name(name)
    defs: list[_Def] = []
    taken: set[str] = set()
    for each in functions:
        found = signature(each.definition, taken, each.name)
        taken |= {found.name + suffix for suffix in SUFFIXES}
        entries = _entries(each, kinds), _entries(each, gpus) if gpus else ()
        defs.append(_Def(each.definition, found, *entries))
    try:
        made = _Files(defs, name, kinds, gpus)
        names = made.names(folder, wheel)
        found = None if force else foreign(folder, names)
        if found is not None:
            message = f"`{folder / found}` is not as an export has left it, and would be overwritten"
            help = "name another folder; `force=True`, or `--force` of the command, overwrites it"
            refuse(codes.CHANGED_FILE, message, about, help=help)
        (folder / _KERNELS).mkdir(parents=True, exist_ok=True)
        try:
            made.write(folder)
            exported = _built(made.exported(folder), shared or wheel, about)
            if wheel and exported.shared is not None:
                pairs = [(each.definition, each.signature) for each in defs]
                exported = replace(exported, wheel=write_wheel(folder, name, _version(), exported.shared, pairs))
        finally:
            note(folder, names)
        return exported
    except OSError as problem:
        refuse(codes.EXPORT_FAILED, f"cannot write {folder}: {problem.strerror}", about)


def _entries(each: Wanted, kinds: Sequence[Processor]) -> tuple[Entry, ...]:
    onto = (False, True) if each.definition.accumulates else (False,)
    return tuple(Entry("_onto" * add, variants(each.definition, kinds, each.like, add)) for add in onto)


def folder_of(to: Any, about: Program) -> Path:
    """The folder of an export.

    Raises:
        CallError: TC661, it is no path.
    """
    if not isinstance(to, str | os.PathLike) or "\0" in str(to):
        help = f'name a folder, as in `{about.name}.export("exported")`'
        refuse(codes.EXPORT_FAILED, f"{shown_value(to)} is no path of a folder", about, help=help)
    return Path(cast("str | os.PathLike[str]", to))


_HEADERS = frozenset(
    ("assert", "complex", "cpuid", "ctype", "errno", "fenv", "float", "inttypes", "limits", "locale", "math", "pthread", "sched",
     "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath", "time", "unistd", "wchar")
)  # fmt: skip
"""Headers that a file must not stand before."""


def library_name(name: str) -> str:
    """A name for files and in CMake."""
    plain = Names().of(name)
    return f"{plain}_" if plain in _HEADERS else plain


class _Files:
    """The files of a library before they are compiled, by their names in the folder."""

    def __init__(self, defs: Sequence[_Def], name: str, kinds: Sequence[Processor], gpus: Sequence[Processor]) -> None:
        kernels, objects, externals = _kernels(defs, name, kinds)
        symbols = [f"{each.signature.name}{entry.suffix}" for each in defs for entry in each.entries]
        self.name, self.functions = name, tuple(symbols)
        self.symbols = symbols + [f"{each.signature.name}{end}" for each in defs for end in ("_shapes", "_error")]
        self.objects = {f"{_KERNELS}/{symbol}.o": code for symbol, code in objects.items()}
        signatures = [each.signature for each in defs]
        self.texts = {
            f"{name}.h": _header(defs, name, kinds),
            f"{name}.c": _source(defs, name, kinds, gpus, kernels, externals),
            "CMakeLists.txt": _cmake(name, gpus),
            f"{name}.pc": _pkg_config(name),
            "example.c": example([each.definition for each in defs], signatures, name, "c"),
            "example.cpp": example([each.definition for each in defs], signatures, name, "cpp"),
        }
        on_devices = _device_kernels(defs, name, gpus)
        self.cuda = {f"{name}_{gpu}.cu": kernel_file(name, gpu, found) for gpu, found in on_devices.items()}
        self.texts |= self.cuda

    def names(self, folder: Path, wheel: bool) -> list[str]:
        """The names of all files that are written or taken away."""
        old = [f"{_KERNELS}/{path.name}" for path in sorted((folder / _KERNELS).glob("*.o"))]
        libraries = [f"lib{self.name}.a", f"lib{self.name}.so"]
        wheels = [wheel_name(self.name, _version())] if wheel else []
        return [*dict.fromkeys([*self.texts, *self.objects, *old, *libraries, *wheels])]

    def write(self, folder: Path) -> None:
        """Write the files into folders that are there, and take away objects of an earlier export, which build files would take."""
        for path in (folder / _KERNELS).glob("*.o"):
            path.unlink()
        for file, code in self.objects.items():
            (folder / file).write_bytes(code)
        for file, text in self.texts.items():
            (folder / file).write_text(text, encoding="utf-8")

    def exported(self, folder: Path) -> Exported:
        """What there is before anything is compiled."""
        cuda = tuple(folder / file for file in self.cuda)
        return Exported(folder, self.name, self.functions, tuple(sorted(self.symbols)), cuda=cuda)


# kernels -------------------------------------------------------------------------------------------------------------------------


def _kernels(
    defs: Sequence[_Def], name: str, kinds: Sequence[Processor]
) -> tuple[dict[tuple[str, str], str], dict[str, bytes], tuple[str, ...]]:
    """The C names of kernels by processor and text, their objects by that name, and functions that the C library lacks."""
    named: dict[tuple[str, str], str] = {}
    objects: dict[str, bytes] = {}
    externals: set[str] = set()
    by_name = {kind.name: kind for kind in kinds}
    for variant in _variants(defs):
        places = ["any"] if variant.empty else list(by_name)
        for kind, steps in zip(places, variant.steps, strict=True):
            for step in steps:
                key = kind, step.source.text
                if key in named:
                    continue
                named[key] = symbol = f"{name}_kernel{len(named)}_{kind}"
                target = simplest(kinds) if kind == "any" else by_name[kind].target
                text = _renamed(step.source.text, step.source.entry, symbol, name)
                externals |= {each for each in jit.externals(step.source.text) if EXTERNAL[each].library != "c"}
                options = jit.Options(features=_features(target), fixed=False)
                objects[symbol] = jit.emit_object(text, options)
    return named, objects, tuple(sorted(externals))


def _device_kernels(defs: Sequence[_Def], name: str, gpus: Sequence[Processor]) -> dict[str, list[tuple[str, Step]]]:
    """The kernels of each device in the order of its table, each text once, with the names of their functions."""
    found: dict[str, dict[str, tuple[str, Step]]] = {gpu.name: {} for gpu in gpus}
    for variant in (variant for each in defs for entry in each.on_devices for variant in entry.variants):
        for gpu, steps in zip(gpus, variant.steps, strict=True):
            own = found[gpu.name]
            for step in steps:
                own.setdefault(step.source.text, (f"{name}_kernel{len(own)}", step))
    return {gpu: list(own.values()) for gpu, own in found.items()}


def _variants(defs: Sequence[_Def]) -> list[Variant]:
    return [variant for each in defs for entry in each.entries for variant in entry.variants]


def _features(target: Target) -> str:
    """LLVM's feature string: what the target has, and nothing else that this machine has."""
    gone = [f"-{name}" for name in sorted(frozenset(jit.host()[2]) - target.features)]
    return ",".join([*(f"+{name}" for name in sorted(target.features)), *gone])


def _renamed(text: str, entry: str, symbol: str, name: str) -> str:
    """The text with a name that no other library has, hidden from programs; functions of libraries by the names that C has."""
    text = re.sub(rf"@{re.escape(entry)}(\.task)?\(", rf"@{symbol}\1(", text)
    text = text.replace(f"define void @{symbol}(", f"define hidden void @{symbol}(")

    def other(match: re.Match[str]) -> str:
        external = EXTERNAL.get(match[1])
        if external is None:
            return match[0]
        return f"@{external.name}(" if external.library == "c" else f"@{_external(name, match[1])}("

    return re.sub(r"@(tc\.\w+)\(", other, text)


def _external(name: str, symbol: str) -> str:
    """The C name of a function that the C library lacks."""
    return f"{name}_{symbol.removeprefix('tc.')}"


# texts ---------------------------------------------------------------------------------------------------------------------------


_ABOUT = """\
   Arrays: `sizes` of the struct are the extents; `strides` count elements, and NULL means row order (the last index moves fastest).
   An input with other strides is copied into row order for the call; a result has to be in row order. Results are arrays of the
   caller that share no memory with others; NAME_shapes writes their sizes for given inputs, of which it reads no element.
   Inputs are only read. Numbers are passed by value, complex ones by address.

   A call returns TC_OK, or what is wrong; then NAME_error(code) is the text with the numbers of the last call of this thread that
   failed so, and nothing was computed, unless the code is that of a check on data (TC604).
   Functions may be called by several threads at the same time; one of them has the library's threads, others compute alone.
   Sizes are free. A call allocates nothing but temporaries and copies, all by `options->allocate`. */"""


def _header(defs: Sequence[_Def], name: str, kinds: Sequence[Processor]) -> str:
    guard = f"{name.upper()}_H"
    shown, arch = ", ".join(kind.shown for kind in kinds), kinds[0].target.arch.split("-")[0]
    lines = [
        f"/* {name}: exported by tc_jupyter. Functions for C99 and C++, on Linux ({arch}: {shown}).",
        "",
        *_ABOUT.splitlines(),
        f"#ifndef {guard}",
        f"#define {guard}",
        f'#define {name.upper()}_VERSION "{_version()}"',
        "",
        (_HERE / "types.h").read_text(encoding="utf-8").strip(),
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        *structs([each.signature for each in defs]),
        "",
    ]
    for each in defs:
        lines += [*_comment(each), f"{each.signature.call()};"]
        if len(each.entries) > 1:
            lines += ["/* The same, combined onto what the results hold. */", f"{each.signature.call('_onto')};"]
        if each.on_devices:
            where = "/* The same in a stream of CUDA (`cudaStream_t`), on arrays of the current device, in row order. It returns"
            lines += [
                where,
                "   before the results are there, unless data is checked. `options->allocate` gives device memory. */",
            ]
            suffixes = ("", "_onto")[: len(each.on_devices)]
            heads = [each.signature.call(f"_cuda{suffix}")[:-1] + ", void *stream);" for suffix in suffixes]
            lines += [f"#ifdef {name.upper()}_WITH_CUDA", *heads, "#endif"]
        lines += [f"{each.signature.shapes()};", f"{each.signature.error()};", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


@cache
def _version() -> str:
    """The version of this package, as its file says it: importing it from here would turn the arrow around."""
    text = (_HERE.parents[1] / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.*)"', text, flags=re.MULTILINE)[0]


def _comment(each: _Def) -> list[str]:
    """What is known of a def, in a comment that no text of it ends."""
    text = described(each.definition.found).replace("*/", "* /").replace("/*", "/ *")
    return ["/* " + "\n   ".join(line.rstrip() for line in text.strip().splitlines()) + " */"]


def _source(
    defs: Sequence[_Def],
    name: str,
    kinds: Sequence[Processor],
    gpus: Sequence[Processor],
    kernels: Mapping[tuple[str, str], str],
    externals: Sequence[str],
) -> str:
    printers = [Calls(each.definition, each.signature, kinds, kernels) for each in defs]
    bodies = [printer.printed(each.entries) for printer, each in zip(printers, defs, strict=True)]
    helpers = dict.fromkeys(helper for printer in printers for helper in printer.helpers)
    outside: dict[str, None] = {}
    wrappers: list[str] = []
    for symbol in externals:
        function = symbol.removeprefix("tc.")
        outside |= dict.fromkeys(function_text(function, DType.FLOAT64))
        given = ", ".join(f"double {each}" for each in FUNCTIONS[function].parameters)
        passed = ", ".join(FUNCTIONS[function].parameters)
        head = f'__attribute__((visibility("hidden"))) double {_external(name, symbol)}({given}, int checked)'
        wrappers.append(f"{head} {{ (void)checked; return {function}_d({passed}); }}")
    headers = ["errno.h", "math.h", "pthread.h", "sched.h", "stdarg.h", "stdio.h", "stdlib.h", "string.h"]
    return "\n".join(
        [
            "#ifndef _GNU_SOURCE",
            "#define _GNU_SOURCE 1",
            "#endif",
            f'#include "{name}.h"',
            *(f"#include <{header}>" for header in headers),
            "",
            '#define TC_PUBLIC __attribute__((visibility("default")))',
            "",
            (_HERE / "support.c").read_text(encoding="utf-8"),
            level_text(kinds),
            *(f'extern __attribute__((visibility("hidden"))) tc_kernel {symbol};' for symbol in kernels.values()),
            "",
            *(dict.fromkeys([*outside, *helpers])),
            *wrappers,
            "",
            *(line for body in bodies for line in body),
            *_on_devices(defs, printers, name, gpus),
        ]
    )


def _on_devices(defs: Sequence[_Def], printers: Sequence[Calls], name: str, gpus: Sequence[Processor]) -> list[str]:
    """The part of the C file that launches CUDA."""
    if not gpus:
        return []
    kernels = _device_kernels(defs, name, gpus)
    places = {(gpu, step.source.text): k for gpu, own in kernels.items() for k, (_, step) in enumerate(own)}
    tables = [
        f'extern __attribute__((visibility("hidden"))) const void *const {table(name, gpu)}[];' for gpu in kernels
    ]
    lines = [f"#ifdef {name.upper()}_WITH_CUDA", CUDA_SUPPORT, *tables, ""]
    for each, calls in zip(defs, printers, strict=True):
        lines += CudaCalls(calls, name, gpus, places).printed(each.on_devices)
    return [*lines, "#endif", ""]


def _cmake(name: str, gpus: Sequence[Processor] = ()) -> str:
    cuda = ""
    if gpus:
        files = " ".join(f"{name}_{gpu.name}.cu" for gpu in gpus)
        archs = "".join(
            f"  set_source_files_properties({name}_{gpu.name}.cu PROPERTIES COMPILE_OPTIONS "
            f'"-diag-suppress=177;-gencode;arch=compute_{gpu.name[3:]},code=[sm_{gpu.name[3:]},compute_{gpu.name[3:]}]")\n'
            for gpu in gpus
        )
        cuda = f"""
option({name}_cuda "kernels for GPUs, by the CUDA toolkit" OFF)
if({name}_cuda)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
{archs}  target_sources({name} PRIVATE {files})
  set_target_properties({name} PROPERTIES CUDA_STANDARD 17 CUDA_ARCHITECTURES OFF)
  target_compile_definitions({name} PUBLIC {name.upper()}_WITH_CUDA)
  target_link_libraries({name} PUBLIC CUDA::cudart)
endif()
"""
    return f"""cmake_minimum_required(VERSION 3.18)
project({name} C)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
file(GLOB kernels ${{CMAKE_CURRENT_SOURCE_DIR}}/kernels/*.o)
set_source_files_properties(${{kernels}} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

add_library({name} {name}.c ${{kernels}})
set_target_properties({name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden C_STANDARD 11)
target_compile_options({name} PRIVATE -O3 -fwrapv)
target_include_directories({name} PUBLIC $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}> $<INSTALL_INTERFACE:include>)
target_link_libraries({name} PUBLIC Threads::Threads m)
{cuda}install(TARGETS {name} EXPORT {name}-config)
install(FILES {name}.h DESTINATION include)

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  add_executable({name}_example example.c)
  target_link_libraries({name}_example PRIVATE {name})
endif()
"""


def _pkg_config(name: str) -> str:
    return f"""prefix=${{pcfiledir}}

Name: {name}
Description: kernels exported by tc_jupyter
Version: {_version()}
Cflags: -I${{prefix}}
Libs: -L${{prefix}} -l{name} -lm -pthread
"""


# compiling -----------------------------------------------------------------------------------------------------------------------


def compiler() -> str | None:
    """The C compiler: that of `CC`, else `cc`, `gcc` or `clang`."""
    own = os.environ.get("CC", "")
    return (shutil.which(own) if own else None) or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def _built(exported: Exported, shared: bool, about: Program) -> Exported:
    """The libraries of a folder."""
    cc, folder, name = compiler(), exported.folder, exported.name
    if cc is None:
        message = "no C compiler was found: there are objects and build files, and no library"
        help = "install gcc or clang, or build the folder with CMake where there is one"
        warn((Diagnostic(codes.EXPORT_WITHOUT_COMPILER, about.span, message, help=help),), about.source)
        return exported
    kernels = sorted(str(path) for path in (folder / _KERNELS).glob("*.o"))
    static, library = folder / f"lib{name}.a", folder / f"lib{name}.so"
    with tempfile.TemporaryDirectory() as scratch:
        own = Path(scratch) / f"{name}.o"
        _run(about, [cc, *_FLAGS, "-c", str(folder / f"{name}.c"), "-o", str(own)])
        objects = _joined(about, cc, [str(own), *kernels], Path(scratch) / f"{name}_all.o")
        archiver = shutil.which("ar") or shutil.which("llvm-ar")
        static.unlink(missing_ok=True)
        if archiver is not None:
            _run(about, [archiver, "rcs", str(static), *objects])
        library.unlink(missing_ok=True)
        if shared:
            links = ["-shared", "-pthread", f"-Wl,-soname,lib{name}.so", "-Wl,-z,nodelete", "-Wl,--as-needed"]
            _run(about, [cc, *links, str(own), *kernels, "-o", str(library), "-lm"])
    return replace(exported, static=static if archiver else None, shared=library if shared else None)


def _joined(about: Program, cc: str, objects: Sequence[str], whole: Path) -> Sequence[str]:
    """One object in which only the documented symbols are left for others, where the tools for it are there."""
    copier = shutil.which("objcopy") or shutil.which("llvm-objcopy")
    if copier is None:
        return objects
    answer = subprocess.run(
        [cc, "-r", "-nostdlib", *objects, "-o", str(whole)], capture_output=True, text=True, check=False
    )
    if answer.returncode:
        return objects
    _run(about, [copier, "--localize-hidden", str(whole)])
    return [str(whole)]


def _run(about: Program, command: Sequence[str]) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        shown = next((line for line in said if "error" in line), said[0] if said else "")
        refuse(
            codes.EXPORT_FAILED,
            f"`{Path(command[0]).name}` failed: {shown}",
            about,
            help="this is a bug of tc_jupyter; please report it",
        )
