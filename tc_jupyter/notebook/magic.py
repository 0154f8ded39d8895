"""`%%tc`, `%%sac` and `%tc`.

A cell that has a mistake raises, so that Run All stops; the traceback is the rendered messages. A cell without one binds each def
under its own name and has a `Report` as its value.
"""

from __future__ import annotations

import shlex
from typing import Any, ClassVar

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import MagicArgumentParser
from traitlets import Bool, Unicode
from traitlets.config import Configurable

from tc_jupyter.compiler import analyze
from tc_jupyter.diagnostics import CompileError, explain
from tc_jupyter.function import Function, Options, module_of

from .report import Report

SUBCOMMANDS = ("list", "inspect", "source", "bench", "cache", "explain")


class CellError(CompileError):
    """A cell with mistakes; shown as its messages, without a Python traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def _cell_parser(name: str) -> MagicArgumentParser:
    parser = MagicArgumentParser(
        name, description=f"Make the defs of a {name} cell functions of the notebook.", add_help=False
    )
    parser.add_argument(
        "--target", choices=("cpu", "cuda", "interpreter"), help="engine; default: the GPU if there is one"
    )
    parser.add_argument("--strict", action="store_true", help="preconditions on sizes are errors")
    parser.add_argument("--check", action="store_true", help="analyse only, bind nothing")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="CODE", help="do not report this warning or note"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show only warnings and errors")
    parser.add_argument("-h", "--help", action="store_true", help="this text")
    return parser


@magics_class
class TcMagics(Magics, Configurable):
    """The magics and their settings (`%config TcMagics`)."""

    target = Unicode("", help="engine of new functions: cpu, cuda, interpreter; empty: chosen").tag(config=True)
    strict = Bool(False, help="preconditions on sizes are errors").tag(config=True)
    short_errors = Bool(True, help="show messages instead of a Python traceback").tag(config=True)

    parsers: ClassVar[dict[str, MagicArgumentParser]] = {name: _cell_parser(f"%%{name}") for name in ("tc", "sac")}

    def __init__(self, shell: Any) -> None:
        Configurable.__init__(self, parent=shell)
        Magics.__init__(self, shell=shell)
        if shell is not None:
            shell.configurables.append(self)

    @no_var_expand
    @output_can_be_silenced
    @line_cell_magic
    def tc(self, line: str, cell: str | None = None) -> Any:
        """`%%tc [options]`: a cell in index notation. `%tc [subcommand]`: status and tools.

        Options of the cell: --target cpu|cuda|interpreter, --strict, --check, --allow CODE, -q, --help.
        Subcommands: list, inspect NAME, source NAME [KIND], bench NAME ARGS..., cache [--clear], explain CODE; none: status.
        """
        return self._line(line) if cell is None else self._cell("tc", line, cell)

    @no_var_expand
    @output_can_be_silenced
    @cell_magic
    def sac(self, line: str, cell: str) -> Any:
        """`%%sac [options]`: a cell in SaC with tensor comprehensions. Options as for `%%tc`."""
        return self._cell("sac", line, cell)

    # --- cells -------------------------------------------------------------------------------------------------------

    def _cell(self, language: str, line: str, cell: str) -> Report | None:
        options = self._options(language, line)
        if options.help:
            print(self.parsers[language].format_help())
            return None
        settings: dict[str, Any] = {
            "language": language,
            "target": options.target or self.target or None,
            "strict": options.strict or self.strict,
            "allow": tuple(options.allow),
        }
        known = {name: value for name, value in self._namespace().items() if isinstance(value, Function)}
        analysis = analyze(cell, language=language, strict=settings["strict"], allow=settings["allow"], known=known)
        if not analysis.ok:
            raise self._error(analysis.diagnostics, analysis) from None
        if options.check:
            return Report(analysis, {}, "not bound (--check)", settings)
        module = module_of(analysis, Options(cell, known=known, **settings))
        replaced = [
            name for name in module if name in self._namespace() and not isinstance(self._namespace()[name], Function)
        ]
        for name in replaced:
            print(f"`{name}` was something else in this notebook; it is now the function of this cell")
        self._bind(module)
        report = Report(analysis, module, engine_name(settings["target"]), settings)
        if not options.quiet:
            return report
        if analysis.diagnostics:
            print(analysis.render())
        return None

    def _options(self, language: str, line: str) -> Any:
        try:
            words = shlex.split(line, comments=False)
        except ValueError as problem:
            raise UsageError(f"%%{language}: {problem}") from None
        return self.parsers[language].parse_args(words)

    def _error(self, diagnostics: Any, analysis: Any) -> CompileError:
        kind = CellError if self.short_errors else CompileError
        return kind(diagnostics, analysis.source, analysis.render())

    def _namespace(self) -> dict[str, Any]:
        shell = self.shell
        return {} if shell is None else shell.user_ns

    def _bind(self, functions: Any) -> None:
        if self.shell is not None:
            self.shell.push(dict(functions))

    # --- %tc ---------------------------------------------------------------------------------------------------------

    def _line(self, line: str) -> Any:
        words = line.split()
        if not words:
            return _print(self._status())
        command, arguments = words[0], words[1:]
        if command in ("-h", "--help", "help"):
            return _print(f"{(TcMagics.tc.__doc__ or '').strip()}\n\n{self.parsers['tc'].format_help()}")
        if command not in SUBCOMMANDS:
            raise UsageError(f"%tc has no subcommand {command!r}; it has {', '.join(SUBCOMMANDS)}")
        return getattr(self, f"_{command}")(arguments)

    def _status(self) -> str:
        from tc_jupyter.runtime import doctor  # noqa: PLC0415  (looks at everything that is installed)

        from .comm import front_end  # noqa: PLC0415

        lines = [str(doctor.doctor()), f"front end: {front_end()}"]
        return "\n".join(
            [
                *lines,
                f"functions: {', '.join(self._functions()) or 'none yet'}",
                "subcommands: " + ", ".join(SUBCOMMANDS),
            ]
        )

    def _functions(self) -> dict[str, Function]:
        return {
            name: value
            for name, value in self._namespace().items()
            if isinstance(value, Function) and not name.startswith("_")
        }

    def _list(self, arguments: list[str]) -> None:
        del arguments
        lines = [f"{name}: {function.signature}" for name, function in self._functions().items()]
        _print("\n".join(lines) or "no functions yet: run a %%tc cell")

    def _function(self, arguments: list[str], command: str) -> Function:
        if not arguments:
            raise UsageError(
                f"%tc {command} needs the name of a function: {', '.join(self._functions()) or 'none exist yet'}"
            )
        found = self._functions().get(arguments[0])
        if found is None:
            raise UsageError(
                f"{arguments[0]!r} is no function of a %%tc cell; there are: {', '.join(self._functions()) or 'none'}"
            )
        return found

    def _inspect(self, arguments: list[str]) -> Report:
        function = self._function(arguments, "inspect")
        return report_of(function)

    def _source(self, arguments: list[str]) -> None:
        function = self._function(arguments, "source")
        kind = arguments[1] if len(arguments) > 1 else "cuda"
        _print(function.source(kind))

    def _bench(self, arguments: list[str]) -> Any:
        function = self._function(arguments, "bench")
        values = [self._evaluate(text) for text in arguments[1:]]
        return function.benchmark(*values)

    def _evaluate(self, text: str) -> Any:
        if self.shell is None:
            raise UsageError("%tc bench needs a notebook")
        return self.shell.ev(text)

    def _cache(self, arguments: list[str]) -> None:
        from tc_jupyter.runtime.cache import DiskCache  # noqa: PLC0415

        cache = DiskCache()
        if "--clear" in arguments:
            _print(f"{cache.clear()} entries removed from {cache.folder}")
        else:
            _print(f"{cache.folder}: {cache.describe()}")

    def _explain(self, arguments: list[str]) -> None:
        if not arguments:
            raise UsageError("%tc explain needs a code, such as TC301")
        try:
            _print(explain(arguments[0]))
        except KeyError as problem:
            raise UsageError(str(problem.args[0])) from None


def _print(text: str) -> None:
    print(text)


def engine_name(target: str | None) -> str:
    """The engine that calls will use, with the reason."""
    from tc_jupyter.runtime import doctor  # noqa: PLC0415

    return doctor.engine(target)


def report_of(function: Function) -> Report:
    """The card of one function alone."""
    return Report(function.analysis, {function.__name__: function}, engine_name(function.options.target), {})
