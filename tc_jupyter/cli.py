"""The command `tc-jupyter`: check, emit, explain, bench, gpu-check, doctor, lab.

Worked example: `echo 'def f(float(N) X) -> (Y) { Y(i) = X(i) }' | tc-jupyter check -` prints the ranges of `f` and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tc_jupyter import __version__
from tc_jupyter.diagnostics import CallError, CompileError, explain

KINDS = ("loops", "cuda", "llvm", "asm", "ptx", "sass", "rewrites")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (0 good, 1 an error in what was checked, 2 an unusable call)."""
    options = _parser().parse_args(arguments)
    if options.command is None:
        _parser().print_help()
        return 2
    try:
        return COMMANDS[options.command](options)
    except (CompileError, CallError) as problem:
        print(problem, file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tc-jupyter", description="Index notation: inferred ranges, generated kernels."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    check = commands.add_parser("check", help="ranges, preconditions and every mistake of a file")
    _file(check)
    check.add_argument("--json", action="store_true", help="print the analysis as JSON")
    check.add_argument("--strict", action="store_true", help="preconditions on sizes are errors")
    check.add_argument(
        "--allow", action="append", default=[], metavar="CODE", help="do not report this warning or note"
    )

    emit = commands.add_parser("emit", help="generated text of a def")
    _file(emit)
    emit.add_argument("--kind", choices=KINDS, default="cuda", help="which text (default: cuda)")
    emit.add_argument("--def", dest="name", metavar="NAME", help="which def (default: all)")
    emit.add_argument("--size", action="append", default=[], metavar="N=1000", help="value of a size; repeat for more")

    explained = commands.add_parser("explain", help="meaning, example and cure of a code")
    explained.add_argument("code", metavar="TC301")

    bench = commands.add_parser("bench", help="measure against what else is installed")
    bench.add_argument("--suite", choices=("cpu", "gpu", "compile"), default="compile")
    bench.add_argument("--only", default=None, metavar="TEXT", help="workloads whose name contains this")
    bench.add_argument("--json", metavar="FILE", help="write the numbers to a file")

    gpu = commands.add_parser("gpu-check", help="everything that only a GPU can show (from a checkout)")
    gpu.add_argument("--seconds", type=float, default=540.0, help="time budget in seconds")
    gpu.add_argument("--json", metavar="FILE", help="write the results to a file")

    commands.add_parser("doctor", help="what is installed, which engine is used and why")
    lab = commands.add_parser("lab", help="JupyterLab on a copy of the quickstart notebook")
    lab.add_argument("--folder", metavar="DIR", help="where to put the copy (default: a new temporary folder)")
    lab.add_argument("--dry-run", action="store_true", help="make the copy, print the command, start nothing")
    return parser


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .tc or .sac file, or - for standard input")
    parser.add_argument("--language", choices=("tc", "sac"), help="default: by the file's ending, else tc")


def _read(options: argparse.Namespace) -> tuple[str, str, str]:
    """Text, name for messages, language.

    Raises:
        SystemExit: the file cannot be read.
    """
    language = options.language or ("sac" if options.file.endswith(".sac") else "tc")
    if options.file == "-":
        return sys.stdin.read(), "stdin", language
    try:
        return Path(options.file).read_text(encoding="utf-8", errors="replace"), options.file, language
    except OSError as problem:
        print(f"tc-jupyter: cannot read {options.file}: {problem.strerror}", file=sys.stderr)
        raise SystemExit(2) from None


def _check(options: argparse.Namespace) -> int:
    from tc_jupyter.compiler import analyze  # noqa: PLC0415  (each command loads what it needs)
    from tc_jupyter.compiler.text_form import text_form  # noqa: PLC0415

    text, name, language = _read(options)
    analysis = analyze(text, language=language, strict=options.strict, allow=options.allow, name=name)
    print(json.dumps(analysis.to_json(), indent=1) if options.json else text_form(analysis))
    return 0 if analysis.ok else 1


def _emit(options: argparse.Namespace) -> int:
    from tc_jupyter.function import compile  # noqa: PLC0415

    text, _, language = _read(options)
    module = compile(text, language=language)
    if options.name is not None and options.name not in module:
        print(f"tc-jupyter: no def {options.name!r}; there are {', '.join(module)}", file=sys.stderr)
        return 2
    sizes = _sizes(options.size)
    for name in [options.name] if options.name else list(module):
        print(module[name].source(options.kind, **sizes))
    return 0


def _sizes(pairs: Sequence[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not name or not value.lstrip("-").isdigit():
            print(f"tc-jupyter: --size {pair!r}: expected NAME=INTEGER", file=sys.stderr)
            raise SystemExit(2)
        sizes[name] = int(value)
    return sizes


def _explain(options: argparse.Namespace) -> int:
    try:
        print(explain(options.code))
    except KeyError as problem:
        print(f"tc-jupyter: {problem.args[0]}", file=sys.stderr)
        return 2
    return 0


def _bench(options: argparse.Namespace) -> int:
    from tc_jupyter.bench import run_suite  # noqa: PLC0415

    return run_suite(options.suite, json_file=options.json, only=options.only)


def _gpu_check(options: argparse.Namespace) -> int:
    tests = Path(__file__).parent.parent / "tests" / "gpu" / "check.py"
    if not tests.exists():
        print("tc-jupyter: gpu-check runs the tests of a checkout; this is an installed package", file=sys.stderr)
        return 2
    command = [sys.executable, str(tests), "--seconds", str(options.seconds)]
    return subprocess.run([*command, *(["--json", options.json] if options.json else [])], check=False).returncode


def _doctor(options: argparse.Namespace) -> int:
    from tc_jupyter.runtime.doctor import doctor  # noqa: PLC0415

    del options
    report = doctor()
    print(report)
    return 0 if report.healthy else 1


def _lab(options: argparse.Namespace) -> int:
    source = Path(__file__).parent.parent / "examples" / "quickstart.ipynb"
    if not source.exists():
        source = Path(__file__).parent / "suites" / "quickstart.ipynb"
    if not source.exists():
        print(
            "tc-jupyter: the quickstart notebook is part of the source checkout, not of this installation",
            file=sys.stderr,
        )
        return 2
    folder = Path(options.folder or tempfile.mkdtemp(prefix="tc_jupyter-"))
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / "quickstart.ipynb"
    if not copy.exists():
        shutil.copyfile(source, copy)
    command = [sys.executable, "-m", "jupyterlab", str(copy)]
    print(" ".join(command))
    return 0 if options.dry_run else subprocess.run(command, check=False).returncode


COMMANDS = {
    "check": _check,
    "emit": _emit,
    "explain": _explain,
    "bench": _bench,
    "gpu-check": _gpu_check,
    "doctor": _doctor,
    "lab": _lab,
}


if __name__ == "__main__":
    raise SystemExit(main())
