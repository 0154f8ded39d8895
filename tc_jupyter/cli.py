"""The command `tc-jupyter`: check, new, emit, export, format, explain, bench, gpu-check, doctor, lsp, lab.

Worked example: `echo 'def f(float(N) X) -> (Y) { Y(i) = X(i) }' | tc-jupyter check -` prints the ranges of `f` and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from tc_jupyter.diagnostics import CallError, CompileError, explain, nearest
from tc_jupyter.diagnostics.codes import ALL
from tc_jupyter.diagnostics.values import integers
from tc_jupyter.files import LARGEST_TEXT, decoded, read_text

if TYPE_CHECKING:
    from tc_jupyter.compiler.uses import Used
    from tc_jupyter.function import Function, Module, Options
    from tc_jupyter.program import Program

KINDS = ("loops", "passes", "c", "numba", "cuda", "llvm", "asm", "ptx", "sass", "rewrites")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (0 good, 1 an error in what was checked, 2 an unusable call)."""
    options = _parser().parse_args(arguments)
    if options.command is None:
        _parser().print_help()
        return 2
    try:
        status = COMMANDS[options.command](options)
        if not sys.stdout.closed:  # the language server closes it
            sys.stdout.flush()
    except (CompileError, CallError) as problem:
        print(problem, file=sys.stderr)
        return 1
    except BrokenPipeError:
        # the reader went away (`| head`); the interpreter would complain once more when it closes the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tc-jupyter", description="Index notation: inferred ranges, generated kernels."
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    check = commands.add_parser("check", help="ranges, preconditions and every mistake of a file")
    _file(check)
    check.add_argument("--json", action="store_true", help="print the analysis as JSON")
    check.add_argument("--strict", action="store_true", help="preconditions on sizes are errors")
    check.add_argument(
        "--allow", action="append", default=[], metavar="CODE", help="do not report this warning or note"
    )

    new = commands.add_parser("new", help="make a file with a first def")
    new.add_argument("file", metavar="FILE", help="a .tc or .sac file that is not there yet")

    emit = commands.add_parser("emit", help="generated text of a def")
    _file(emit)
    emit.add_argument("--kind", choices=KINDS, default="cuda", help="which text (default: cuda)")
    emit.add_argument(
        "--stop-after", metavar="PASS", help="of the loops for a CPU those up to this rewrite, by its name"
    )
    emit.add_argument("--def", dest="name", metavar="NAME", help="which def (default: all)")
    emit.add_argument("--size", action="append", default=[], metavar="N=1000", help="value of a size; repeat for more")

    exported = commands.add_parser("export", help="a library for C, C++ and CUDA, or a package for Python")
    _file(exported)
    exported.add_argument("--to", required=True, metavar="DIR", help="the folder that the files go to")
    exported.add_argument("--def", dest="name", metavar="NAME", help="which def (default: all)")
    exported.add_argument("--name", dest="library", metavar="NAME", help="of the library (default: that of the file)")
    exported.add_argument("--cpu", action="append", metavar="CPU", help="as x86-64-v3; repeat for more")
    exported.add_argument("--cuda", action="append", default=[], metavar="ARCH", help="as sm_80; repeat for more")
    exported.add_argument(
        "--like", action="append", default=[], metavar="N=64,K=3", help="sizes of calls that get code of their own"
    )
    exported.add_argument(
        "--rank",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="of arrays whose ranks %%%%sac functions leave open",
    )
    exported.add_argument("--force", action="store_true", help="overwrite files that no export has left so")
    exported.add_argument("--wheel", action="store_true", help="also a package for Python that needs NumPy only")

    formatted = commands.add_parser("format", help="lay a file out as cells are laid out")
    _file(formatted)
    formatted.add_argument("--check", action="store_true", help="change nothing; fail where something would change")

    explained = commands.add_parser("explain", help="meaning, example and cure of a code")
    explained.add_argument("code", metavar="TC301")

    bench = commands.add_parser("bench", help="measure against what else is installed")
    bench.add_argument(
        "--suite",
        choices=("cpu", "borders", "operands", "scatter", "plain", "gradient", "gpu", "compile", "sac", "tuning"),
        default="compile",
    )
    bench.add_argument("--only", default=None, metavar="TEXT", help="workloads whose name contains this")
    bench.add_argument("--json", metavar="FILE", help="write the numbers to a file")
    bench.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="suites cpu, borders, operands, scatter, plain and gradient: only with N threads",
    )
    bench.add_argument(
        "--compiled",
        action="store_true",
        help="suites cpu, borders, operands, scatter and gpu: measure torch.compile too",
    )

    gpu = commands.add_parser("gpu-check", help="everything that only a GPU can show (from a checkout)")
    gpu.add_argument("--seconds", type=float, default=540.0, help="time budget in seconds")
    gpu.add_argument("--json", metavar="FILE", help="write the results to a file, and go on from what it holds")
    gpu.add_argument(
        "--dry-run",
        action="store_true",
        help="only what needs no GPU: registers, spills and occupancy of the templates",
    )

    commands.add_parser("doctor", help="what is installed, which engine is used and why")
    commands.add_parser("lsp", help="language server for .tc and .sac files, on standard input and output")
    lab = commands.add_parser("lab", help="JupyterLab on a copy of the quickstart notebook")
    lab.add_argument("--folder", metavar="DIR", help="where to put the copy (default: a new temporary folder)")
    lab.add_argument("--dry-run", action="store_true", help="make the copy, print the command, start nothing")
    return parser


def _version() -> str:
    try:
        return version("tc_jupyter")
    except PackageNotFoundError:
        return "from a checkout that is not installed"


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .tc or .sac file, or - for standard input")
    parser.add_argument("--language", choices=("tc", "sac"), help="default: by the file's ending, else tc")


def _read(options: argparse.Namespace) -> tuple[str, str, str]:
    """Text, name for messages, language.

    Raises:
        SystemExit: the file cannot be read, is no text, is a notebook, or does not end.
    """
    language = options.language or ("sac" if options.file.endswith(".sac") else "tc")
    name = "stdin" if options.file == "-" else options.file
    if name.endswith(".ipynb"):
        raise SystemExit(
            _refuse(f"{name} is a notebook: editors check its cells; the text of one cell is a `.tc` or `.sac` file")
        )
    try:
        if options.file != "-":
            return read_text(Path(options.file)), name, language
        read = sys.stdin.buffer.read(LARGEST_TEXT + 1)
        if len(read) > LARGEST_TEXT:
            raise SystemExit(_refuse(f"cannot read {name}: it has more than {LARGEST_TEXT:,} bytes"))
        return decoded(read), name, language
    except OSError as problem:
        raise SystemExit(_refuse(f"cannot read {name}: {problem.strerror}")) from None
    except UnicodeDecodeError as problem:
        raise SystemExit(_refuse(f"cannot read {name}: it is no text in UTF-8 (byte {problem.start})")) from None


def _check(options: argparse.Namespace) -> int:
    from tc_jupyter.compiler import allowed_codes, analyze  # noqa: PLC0415  (each command loads what it needs)
    from tc_jupyter.compiler.text_form import text_form  # noqa: PLC0415

    try:
        allow = allowed_codes(options.allow)
    except ValueError as problem:
        return _refuse(f"--{problem}")
    text, name, language = _read(options)
    used, _ = _used(options.file, text, language, name)
    analysis = analyze(text, language=language, strict=options.strict, allow=allow, name=name, used=used)
    print(json.dumps(analysis.to_json(), indent=1) if options.json else text_form(analysis))
    return 0 if analysis.ok else 1


def _used(file: str, text: str, language: str, name: str) -> tuple[Used, Options]:
    """What the files have that a text uses, and how it is compiled."""
    from tc_jupyter.function import Options, with_files  # noqa: PLC0415

    options = Options(text, language, name=name, file="" if file == "-" else str(Path(file).absolute()))
    return with_files(options)


def _module(options: argparse.Namespace, target: str | None = None) -> Module:
    """The functions of a file."""
    from tc_jupyter.compiler import analyze  # noqa: PLC0415
    from tc_jupyter.function import module_of  # noqa: PLC0415

    text, name, language = _read(options)
    used, made = _used(options.file, text, language, name)
    return module_of(analyze(text, language=language, name=name, used=used), replace(made, target=target))


_FIRST = {
    "tc": """# `tc-jupyter check {name}` says what is inferred; in Python: import tc_jupyter as tc; tc.load("{name}")
def smooth(float(N) X) -> (Y) {{
    Y(i) = (X(i) + X(i + 1) + X(i + 2)) / 3
}}
""",
    "sac": """// `tc-jupyter check {name}` says what is inferred; in Python: import tc_jupyter as tc; tc.load("{name}")
double[*] twice(double[*] a) {{
    return {{ iv -> 2.0 * a[iv] }};
}}
""",
}


def _new(options: argparse.Namespace) -> int:
    path = Path(options.file)
    text = _FIRST.get(path.suffix[1:])
    if text is None:
        return _refuse(f"{options.file} ends neither in .tc nor in .sac")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.format(name=path.name))
    except FileExistsError:
        return _refuse(f"{options.file} is there already")
    except OSError as problem:
        return _refuse(f"cannot write {options.file}: {problem.strerror}")
    print(f"made {options.file}; tc-jupyter check {options.file}")
    return 0


def _rewrites() -> list[str]:
    """What the loops for a CPU go through, by name, in order."""
    from tc_jupyter.codegen.llvm import PASSES  # noqa: PLC0415

    return ["lowered", *(name for name, _, _ in PASSES)]


def _up_to(last: str, shown: str) -> str:
    """The part of `f.source("passes")` that is no later than a rewrite; what changes nothing is not in it."""
    names, parts = _rewrites(), re.split(r"(?m)^(?=-- )", shown)
    kept = [each for each in parts if each and names.index(re.split(r"[:\n]", each[3:])[0]) <= names.index(last)]
    return "".join(kept).rstrip()


def _emit(options: argparse.Namespace) -> int:
    from tc_jupyter.function import OpenRanks  # noqa: PLC0415
    from tc_jupyter.runtime.nvrtc import BackendError  # noqa: PLC0415

    sizes = _sizes(options.size)
    module = _module(options)
    if options.name is not None and options.name not in module:
        return _refuse(f"no def {options.name!r}; there are {', '.join(module)}")
    if options.stop_after is not None and options.stop_after not in _rewrites():
        return _refuse(f"--stop-after: no rewrite {options.stop_after!r}; there are {', '.join(_rewrites())}")
    known = {size for found in module.analysis.functions.values() for size in _names(found.program)}
    unknown = [size for size in sizes if size not in known]
    if unknown and not module.analysis.open_functions:
        return _refuse(f"--size: no def has a size {unknown[0]!r}; there are {', '.join(sorted(known)) or 'none'}")
    names = [options.name] if options.name else list(module)
    try:
        own = {name: _own(module[name], sizes) for name in names}
    except ValueError as problem:
        return _refuse(f"--size: {problem}")
    for name in names:
        try:
            shown = module[name].source("passes" if options.stop_after else options.kind, **own[name])
        except OpenRanks:
            message = f"the text of `{name}` depends on the ranks of its arguments"
            help = "write them in its types, as in `double[.] a` or `double[.,.] a`"
            print(f"tc-jupyter: {message}: {help}", file=sys.stderr)
            return 1
        except (ValueError, RuntimeError, BackendError) as problem:
            print(f"tc-jupyter: {problem}", file=sys.stderr)
            return 1
        print(shown if options.stop_after is None else _up_to(options.stop_after, shown))
    return 0


def _names(program: Program) -> tuple[str, ...]:
    return (*program.sizes, *program.integer_scalars)


def _own(function: Function, sizes: Mapping[str, int]) -> dict[str, int]:
    """Those of the sizes that a function has.

    Raises:
        ValueError: one of them cannot have the value.
    """
    if function.is_open:
        return dict(sizes)
    return function.program.numbers({name: sizes[name] for name in sizes if name in _names(function.program)})


def _export(options: argparse.Namespace) -> int:
    from tc_jupyter.function import MOST_RANK, export  # noqa: PLC0415

    calls = [_sizes(each.split(","), "--like") for each in options.like]
    wrong = [each for each in options.rank if not 0 <= each <= MOST_RANK]
    if wrong:
        return _refuse(f"--rank {wrong[0]}: a rank is a whole number from 0 to {MOST_RANK}")
    module = _module(options, target="cpu")
    if options.name is not None and options.name not in module:
        return _refuse(f"no def {options.name!r}; there are {', '.join(module)}")
    functions = [module[options.name]] if options.name else [*module.values()]
    if not functions:
        return _refuse(f"{module.analysis.source.name} has no def")
    library = options.library or ("exported" if options.file == "-" else Path(options.file).stem)
    like = {each.written_name: _all_sizes(each, calls, options.rank) for each in functions}
    unused = [each for each in calls if not any(each in found for found in like.values())]
    if unused:
        return _refuse(f"--like {options.like[calls.index(unused[0])]!r}: these are not all sizes of any def")
    found = export(
        functions,
        options.to,
        library,
        options.cpu,
        cuda=options.cuda,
        like=like,
        wheel=options.wheel,
        force=options.force,
        ranks=options.rank,
    )
    for path in (found.header, found.static, found.shared, *found.cuda, found.wheel):
        if path is not None:
            print(path)
    return 0


def _all_sizes(function: Function, calls: Sequence[Mapping[str, int]], ranks: Sequence[int]) -> list[Mapping[str, int]]:
    """The calls that give values for all sizes of a def of the function, and no others."""
    from tc_jupyter.function import exported  # noqa: PLC0415

    found: list[Mapping[str, int]] = []
    programs = [each.definition.program for each in exported(function, ranks, ())] if calls else []
    for call in calls:
        own = [program for program in programs if {*call} == {*_names(program)}]
        try:
            found += [own[0].numbers(call)] if own else []
        except ValueError as problem:
            raise SystemExit(_refuse(f"--like: {problem}")) from None
    return found


def _format(options: argparse.Namespace) -> int:
    from tc_jupyter.ide import format_text  # noqa: PLC0415

    text, name, language = _read(options)
    found = format_text(text, language)
    if found["refused"]:
        return _refuse(f"{name} stays as it is: {found['refused']}")
    if options.check:
        return int(found["text"] != text)
    if options.file == "-":
        print(found["text"], end="")
    elif found["text"] != text:
        try:
            Path(options.file).write_text(found["text"], encoding="utf-8")
        except OSError as problem:
            return _refuse(f"cannot write {name}: {problem.strerror}")
    return 0


def _lsp(options: argparse.Namespace) -> int:
    del options
    try:
        from tc_jupyter.lsp import main as serve  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        return _refuse(f'the server needs {missing.name}: pip install "tc_jupyter[lsp]"')
    refused = serve()
    return _refuse(f"the server ends: {refused}") if refused else 0


def _refuse(message: str) -> int:
    """Say why a call cannot be used; returns its exit status."""
    print(f"tc-jupyter: {message}", file=sys.stderr)
    return 2


def _sizes(pairs: Sequence[str], option: str = "--size") -> dict[str, int]:
    try:
        return integers(pairs)
    except ValueError as problem:
        raise SystemExit(_refuse(f"{option} {problem}")) from None


def _explain(options: argparse.Namespace) -> int:
    try:
        print(explain(options.code))
    except KeyError:
        close = nearest(options.code.upper(), tuple(ALL))
        return _refuse(f"there is no message {options.code!r}" + (f"; did you mean {close}?" if close else ""))
    return 0


def _bench(options: argparse.Namespace) -> int:
    from tc_jupyter.bench.runner import run_suite  # noqa: PLC0415
    from tc_jupyter.runtime.threads import MOST_THREADS  # noqa: PLC0415

    if options.threads is not None and not 1 <= options.threads <= MOST_THREADS:
        return _refuse(f"--threads {options.threads}: expected a number from 1 to {MOST_THREADS}")
    if options.json is not None:
        try:
            Path(options.json).open("ab").close()  # before an hour of measurements
        except OSError as problem:
            return _refuse(f"--json {options.json}: it cannot be written: {problem.strerror}")
    return run_suite(options.suite, options.json, options.only, options.threads, options.compiled)


def _gpu_check(options: argparse.Namespace) -> int:
    tests = Path(__file__).parent.parent / "tests" / "gpu" / "check.py"
    if not tests.exists():
        return _refuse("gpu-check runs the tests of a checkout; this is an installed package")
    command = [sys.executable, str(tests), "--seconds", str(options.seconds)]
    command += ["--json", options.json] if options.json else []
    command += ["--dry-run"] if options.dry_run else []
    return subprocess.run(command, check=False).returncode


def _doctor(options: argparse.Namespace) -> int:
    from tc_jupyter.runtime.doctor import doctor  # noqa: PLC0415

    del options
    report = doctor()
    print(report)
    return 0 if report.healthy else 1


def _lab(options: argparse.Namespace) -> int:
    places = (Path(__file__).parent.parent / "examples", Path(sysconfig.get_path("data")) / "share" / "tc_jupyter")
    source = next((found for place in places if (found := place / "quickstart.ipynb").exists()), None)
    if source is None:
        return _refuse("the quickstart notebook is missing from this installation")
    folder = Path(options.folder or tempfile.mkdtemp(prefix="tc_jupyter-"))
    copy = folder / "quickstart.ipynb"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not copy.exists():
            shutil.copyfile(source, copy)
    except OSError as problem:
        return _refuse(f"--folder {folder}: no copy can be made there: {problem.strerror}")
    command = [sys.executable, "-m", "jupyterlab", str(copy)]
    print(" ".join(command))
    return 0 if options.dry_run else subprocess.run(command, check=False).returncode


COMMANDS = {
    "check": _check,
    "new": _new,
    "emit": _emit,
    "export": _export,
    "format": _format,
    "explain": _explain,
    "bench": _bench,
    "gpu-check": _gpu_check,
    "doctor": _doctor,
    "lab": _lab,
    "lsp": _lsp,
}


if __name__ == "__main__":
    raise SystemExit(main())
