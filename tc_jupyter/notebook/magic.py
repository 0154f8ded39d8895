"""`%%tc`, `%%sac` and `%tc`.

A cell that has a mistake raises, so that Run All stops; the traceback is the rendered messages. A cell without one binds each def
under its own name and has a `Report` as its value.

Worked example: after a cell `%%tc` with `def scale(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }`, `scale(x, 2.0)` computes.
"""

from __future__ import annotations

import builtins
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from traitlets import Bool, Enum
from traitlets.config import Configurable

from tc_jupyter.compiler import Analysis, allowed_codes, analyze, called_names, with_meanings
from tc_jupyter.compiler.definition import Options
from tc_jupyter.diagnostics import CompileError, Diagnostic, Span, codes, explain
from tc_jupyter.diagnostics.values import integers
from tc_jupyter.function import SOURCE_KINDS, Function, OpenRanks, cycle, module_of, redefine, with_files
from tc_jupyter.runtime import doctor
from tc_jupyter.runtime.nvrtc import BackendError

from .errors import CellError, colored, on_red
from .names import known_functions
from .options import SUBCOMMANDS, TARGETS, line_help, parser
from .report import Report, report_of


def _none_attached() -> str:
    return "none attached"


@magics_class
class TcMagics(Magics, Configurable):
    """The magics and their settings (`%config TcMagics`)."""

    target = Enum(("", *TARGETS), "", help="engine of new functions: cpu, cuda, interpreter; empty: chosen").tag(
        config=True
    )
    strict = Bool(False, help="a condition on sizes that is not proved is an error").tag(config=True)
    predict = Bool(False, help="live cards ask for ranges and output shapes before they show them").tag(config=True)
    short_errors = Bool(True, help="show messages instead of a Python traceback").tag(config=True)

    def __init__(self, shell: Any, front_end: Callable[[], str] = _none_attached) -> None:
        """Make the magics of a shell; `front_end` says in words which front end is attached."""
        self._front_end = front_end
        self._made: WeakSet[Function] = WeakSet()
        self.cells: dict[str, int] = {}  # the number of the cell that defined a name last
        Configurable.__init__(self, parent=shell)
        Magics.__init__(self, shell=shell)
        if shell is not None and self not in shell.configurables:
            shell.configurables.append(self)

    @no_var_expand
    @output_can_be_silenced
    @line_cell_magic
    def tc(self, line: str, cell: str | None = None) -> Any:
        """Define functions in index notation (`%%tc`), or ask about them (`%tc`)."""
        return self._line(line) if cell is None else self._cell("tc", line, cell)

    @no_var_expand
    @output_can_be_silenced
    @cell_magic
    def sac(self, line: str, cell: str) -> Any:
        """Define functions in SaC with tensor comprehensions (`%%sac`)."""
        return self._cell("sac", line, cell)

    # --- cells -------------------------------------------------------------------------------------------------------------------

    def _cell(self, language: str, line: str, cell: str) -> Report | None:
        given = _given(language, line)
        if given.help:
            print(parser(f"%%{language}").format_help())
            return None
        known = known_functions(self._namespace())
        target = given.target or self.target or None
        strict = given.strict or self.strict
        allow = _allowed(language, given.allow)
        used, options = with_files(Options(cell, language, target, strict, allow, known=known, follows=True))
        analysis = analyze(cell, language=language, strict=strict, allow=allow, known=known, used=used)
        if not analysis.ok:
            said = with_meanings(analysis.diagnostics, analysis.source, self._namespace(), self.cells)
            raise self._error(replace(analysis, diagnostics=said)) from None
        own = {*analysis.functions, *analysis.open_functions}
        known = options.known or {}
        called = {name: known[name] for name in called_names(cell, language, known) if name not in own}
        options = replace(options, known=called)
        if given.check:
            return Report(analysis, options, "not asked: --check defines nothing", {})
        module = module_of(analysis, options)
        self._refuse_cycles(analysis, module)
        if given.save is not None:
            self._save(given, cell, language, analysis)
        self._say_replaced(module)
        earlier = {name: value for name, value in self._namespace().items() if isinstance(value, Function)}
        self._bind(module)
        self._say_rebuilt(redefine(earlier, module, tuple(self._made)), module)
        self._made.update(module.values())
        if not given.quiet:
            return Report(analysis, options, doctor.engine(target), module, self.predict)
        if analysis.diagnostics:
            print(analysis.render())
        return None

    def _save(self, given: Any, cell: str, language: str, analysis: Analysis) -> None:
        from .save import save  # noqa: PLC0415  (few cells are saved)

        try:
            path = save(given.save, cell, language, analysis, given.force)
        except CompileError as problem:
            found = replace(analysis, diagnostics=problem.diagnostics, source=problem.source)
            raise self._error(found) from None
        if not given.quiet:
            print(f"saved {path}")

    def _error(self, analysis: Analysis) -> CompileError:
        if not self.short_errors:
            return CompileError(analysis.diagnostics, analysis.source, analysis.render())
        shown = (colored(self.shell), on_red(self.shell))
        return CellError(analysis.diagnostics, analysis.source, analysis.render(), *shown)

    def _namespace(self) -> dict[str, Any]:
        return {} if self.shell is None else self.shell.user_ns

    def _say_replaced(self, functions: Mapping[str, Function]) -> None:
        """Say which names meant something that is not a function of ours."""
        namespace = self._namespace()
        for name in functions:
            if name in namespace and not isinstance(namespace[name], Function):
                kind = type(namespace[name]).__name__
                print(f"`{name}` was a value of type `{kind}` in this notebook; it is now the function of this cell")
            elif name not in namespace and hasattr(builtins, name):
                print(f"`{name}` is now the function of this cell; after `del {name}` it is that of Python again")

    def _refuse_cycles(self, analysis: Analysis, functions: Mapping[str, Function]) -> None:
        """Look at what functions of earlier cells call.

        Raises:
            CompileError: a def that is defined again calls itself through functions of earlier cells.
        """
        for name, function in functions.items():
            path = cycle(function, name)
            if len(path) > 2:
                message = "defs would call each other: " + " -> ".join(f"`{each}`" for each in path)
                found = analysis.functions.get(function.written_name)
                span = found.program.span if found is not None else Span(0, 0)
                raise self._error(replace(analysis, diagnostics=(Diagnostic(codes.RECURSIVE_CALL, span, message),)))

    def _say_rebuilt(self, callers: Sequence[Function], new: Mapping[str, Function]) -> None:
        """Say which functions of earlier cells call the new ones, and which do not fit any more."""
        fitting = [f"`{each.written_name}`" for each in callers if each.stale is None and each not in new.values()]
        if fitting:  # several functions may have had one name
            print(f"{', '.join(dict.fromkeys(fitting))} of earlier cells: the next call uses what is defined here")
            if "tc_jupyter.runtime.jax_op" in sys.modules:  # JAX has traced calls
                print("what JAX has compiled uses what was defined before, until `jax.clear_caches()`")
        for message in dict.fromkeys(each.stale.message for each in callers if each.stale is not None):
            print(f"{message} (TC615)")

    def _bind(self, functions: Mapping[str, Function]) -> None:
        if self.shell is not None:
            self.shell.push(dict(functions))
            # what stands beside the cell; `execution_count` may be that of the next one
            number = int(self.shell.displayhook.prompt_count)  # pyright: ignore[reportOptionalMemberAccess]
            self.cells.update(dict.fromkeys(functions, number))

    # --- %tc ---------------------------------------------------------------------------------------------------------------------

    def _line(self, line: str) -> Any:
        words = line.split()
        if not words:
            return print(self._status())
        command, arguments = words[0], words[1:]
        if command in ("-h", "--help", "help"):
            return print(TcMagics.tc.__doc__)
        if command not in SUBCOMMANDS:
            raise UsageError(f"%tc has no subcommand {command!r}; it has {', '.join(SUBCOMMANDS)}")
        commands: dict[str, Callable[[list[str]], Any]] = {
            "list": self._list,
            "inspect": self._inspect,
            "source": self._source,
            "bench": self._bench,
            "cache": self._cache,
            "explain": self._explain,
        }
        return commands[command](arguments)

    def _status(self) -> str:
        rows = [
            ("engine", doctor.engine(self.target or None)),
            ("front end", self._front_end()),
            ("functions", ", ".join(self._functions()) or "none yet: run a %%tc cell"),
            ("cache", _cache_line()),
        ]
        return "\n".join(
            [*(f"{name + ':':<11}{text}" for name, text in rows), "", line_help(), "", "all of it: tc.doctor()"]
        )

    def _functions(self) -> dict[str, Function]:
        """The functions of the notebook; names that IPython made (`_`, `_5`) are left out."""
        return {
            name: value
            for name, value in self._namespace().items()
            if isinstance(value, Function) and (not name.startswith("_") or name == value.__name__)
        }

    def _list(self, arguments: list[str]) -> None:
        del arguments
        lines = [
            (f"{name} = " if name != function.__name__ else "")
            + (function.signature if function.stale is None else f"stale: {function.stale.message} (TC615)")
            for name, function in self._functions().items()
        ]
        print("\n".join(lines) or "no functions yet: run a %%tc cell")

    def _function(self, arguments: list[str], command: str) -> Function:
        functions = self._functions()
        names = ", ".join(functions) or "none yet"
        if not arguments:
            raise UsageError(f"%tc {command} needs the name of a function; there are: {names}")
        if arguments[0] not in functions:
            raise UsageError(f"{arguments[0]!r} is no function of a %%tc cell; there are: {names}")
        return functions[arguments[0]]

    def _inspect(self, arguments: list[str]) -> Report:
        return report_of(self._function(arguments, "inspect"))

    def _source(self, arguments: list[str]) -> None:
        function = self._function(arguments, "source")
        kinds = [word for word in arguments[1:] if "=" not in word] or ["cuda"]
        if kinds[0] not in SOURCE_KINDS:
            raise UsageError(f"%tc source: no kind {kinds[0]!r}; there are {', '.join(SOURCE_KINDS)}")
        try:
            print(function.source(kinds[0], **integers(word for word in arguments[1:] if "=" in word)))
        except (ValueError, OpenRanks, RuntimeError, BackendError) as problem:
            raise UsageError(f"%tc source: {problem}") from None

    def _bench(self, arguments: list[str]) -> Any:
        function = self._function(arguments, "bench")
        if self.shell is None:
            raise UsageError("%tc bench needs a notebook")
        return function.benchmark(*(self._value(text) for text in arguments[1:]))

    def _value(self, text: str) -> Any:
        assert self.shell is not None
        try:
            return self.shell.ev(text)
        except (NameError, SyntaxError) as problem:
            raise UsageError(f"%tc bench: {text!r}: {problem}") from None

    def _cache(self, arguments: list[str]) -> None:
        from tc_jupyter.runtime.cache import DiskCache  # noqa: PLC0415

        if any(word != "--clear" for word in arguments):
            raise UsageError("%tc cache takes nothing but --clear")
        if arguments:
            cache = DiskCache.default()
            print(f"{cache.clear()} files removed from {cache.folder}")
        else:
            print(_cache_line())

    def _explain(self, arguments: list[str]) -> None:
        if len(arguments) != 1:
            raise UsageError("%tc explain needs one code, as in %tc explain TC301")
        try:
            print(explain(arguments[0]))
        except KeyError:
            raise UsageError(f"%tc explain: there is no message {arguments[0]!r}") from None


def _given(language: str, line: str) -> Any:
    """The options of a magic line.

    Raises:
        UsageError: an unknown option, or quotes that do not close.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError as problem:
        raise UsageError(f"%%{language}: {problem}") from None
    return parser(f"%%{language}").parse_args(words)


def _allowed(language: str, allow: list[str]) -> tuple[str, ...]:
    """The codes of `--allow`.

    Raises:
        UsageError: there is no such code.
    """
    try:
        return allowed_codes(allow)
    except ValueError as problem:
        raise UsageError(f"%%{language}: --{problem}") from None


def _cache_line() -> str:
    from tc_jupyter.runtime.cache import DiskCache  # noqa: PLC0415

    cache = DiskCache.default()
    if cache.folder is None:
        return "off"
    count, size = cache.size()
    return f"{count} files, {size / 1e6:.1f} MB in {cache.folder}"


# `%tc?` and `%%tc?` show the docstring: all options and subcommands
TcMagics.tc.__doc__ = f"{TcMagics.tc.__doc__}\n\n{parser('%%tc').format_help()}\nIn one line:\n\n{line_help()}\n"
TcMagics.sac.__doc__ = f"{TcMagics.sac.__doc__}\n\n{parser('%%sac').format_help()}\n"
