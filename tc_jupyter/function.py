"""What the user holds and calls: modules of compiled defs, one bound kernel per layout class of the arguments.

Comes in: text. Goes out: `Module` and `Function`. A function knows its ranges and conditions from the start; code is made at the
first call of a layout class and serves all sizes after that.

Worked example:

    module = compile("def mv(float(R,C) A, float(C) B) -> (o) { o(i) +=! A(i,j) * B(j) }")
    o = module.mv(A, B)          # o has the kind and the device of A
    module.mv(A, B, out=o)
    print(module.mv.ranges[0])   # o: 0 <= i < R
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from tc_jupyter.compiler import (
    Analysis,
    FunctionAnalysis,
    allowed_codes,
    analyze,
    called_beside,
    called_names,
    text_of_def,
)
from tc_jupyter.compiler.agreement import Judge
from tc_jupyter.compiler.build import Build
from tc_jupyter.compiler.cost import Counts, cost_of
from tc_jupyter.compiler.definition import (
    ROW_MAJOR,
    Definition,
    Derivative,
    Options,
    cpu_text,
    cuda_text,
    engine_of,
    for_call,
    gpu_available,
    target_of,
)
from tc_jupyter.compiler.iteration import Rule, iteration, negative_steps, rule_of
from tc_jupyter.compiler.peers import Peer, checked_peers, checked_seconds, library_of, moved, peer_call
from tc_jupyter.compiler.plain import plain_c, plain_numba
from tc_jupyter.compiler.text_form import because
from tc_jupyter.compiler.uses import NOTHING, Library, Reading, Used
from tc_jupyter.diagnostics import (
    CallError,
    CompileError,
    Diagnostic,
    SourceText,
    codes,
    render,
    shown_text,
    shown_value,
    warn,
)
from tc_jupyter.diagnostics.values import one_or_more
from tc_jupyter.files import as_path, read_text
from tc_jupyter.loops.show import show_kernel
from tc_jupyter.program import ArgumentType, Program, Signature, as_size
from tc_jupyter.program.check_tc import python_name
from tc_jupyter.ranges import IndexRange as InferredRange
from tc_jupyter.ranges import Precondition, Ranges, SizeExpr, to_python
from tc_jupyter.ranges.latex import range_latex, to_sympy
from tc_jupyter.runtime import autograd, cpu, cuda, libraries, peak
from tc_jupyter.runtime.alternating import Alternating
from tc_jupyter.runtime.arguments import call_error, fail, parameters_of
from tc_jupyter.runtime.arrays import host_array
from tc_jupyter.runtime.forks import MAKING
from tc_jupyter.runtime.threads import get_threads
from tc_jupyter.runtime.timing import MOMENT, Benchmark, benchmark, cpu_limits, rows_of
from tc_jupyter.schedule import Schedule, Step, Target, candidates, default_schedule
from tc_jupyter.syntax import own_operators

if TYPE_CHECKING:  # a cell in `%%tc` pays neither for the other language nor for the simulator
    from tc_jupyter.autotune import TuningLog
    from tc_jupyter.chunks.plan import Plan
    from tc_jupyter.compiler.derivatives import Kind
    from tc_jupyter.compiler.gpu import KernelLaunch, KernelResources, Simulation
    from tc_jupyter.compiler.library import Exported, Wanted
    from tc_jupyter.compiler.open_definition import OpenDefinition
    from tc_jupyter.gradient import Ties
    from tc_jupyter.program.sac_rewrites import Rewrites

CHECKS = ("all", "sizes", "none")
SOURCE_KINDS = ("loops", "passes", "c", "numba", "cuda", "ptx", "sass", "llvm", "asm", "rewrites")
TARGETS = (None, "cpu", "cuda", "interpreter")


def compile(
    text: str,
    language: str = "tc",
    target: str | None = None,
    strict: bool = False,
    allow: str | Sequence[str] = (),
    check: str = "all",
    specialize: Mapping[str, int] | bool | None = None,
    known: Mapping[str, Function] | None = None,
    tf32: bool = False,
    name: str = "cell",
    file: str | PathLike[str] | None = None,
) -> Module:
    """Check a cell and make its defs callable.

    Args:
        language: `tc` or `sac`.
        target: `None` (the GPU when there is one, else the CPU), `cpu`, `cuda` or `interpreter`.
        strict: size preconditions of accesses are errors.
        allow: codes of warnings and notes that are not reported.
        check: `all`; `sizes`: index values are not looked at; `none`: nothing is, and a call that does not fit reads or writes
            outside of its arrays, which may end the process.
        specialize: sizes to fix, `True` for all; code is then made for every new combination.
        known: functions that the text may call.
        tf32: products of `float32` matrices may use tensor cores on a GPU, with operands rounded to 10 bits of mantissa; errors are
            about 3e-4 of the result.
        name: what messages call the text.
        file: the file that the text is of: `use` looks beside it, else in the present folder.

    Warns:
        DiagnosticWarning: one per warning of the text; notes are in `module.analysis.diagnostics`.

    Raises:
        CompileError: the text has mistakes; all of them.
        TypeError: the text is no string, or a size is no integer.
        ValueError: an option has no such value.
    """
    if not isinstance(specialize, Mapping | bool | None):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
        raise TypeError(f"specialize={shown_value(specialize)}: expected sizes, as in `{{'N': 64}}`, or True")
    if isinstance(specialize, Mapping):
        specialize = {name: as_size(f"specialize: {name}", size) for name, size in specialize.items()}
    if check not in CHECKS:
        raise ValueError(f"check={check!r}: expected one of {', '.join(map(repr, CHECKS))}")
    if target not in TARGETS:
        raise ValueError(f"target={target!r}: expected one of {', '.join(map(repr, TARGETS))}")
    options = Options(
        text, language, target, strict, allowed_codes(allow), check, specialize, known, tf32=tf32, name=name
    )
    if file is not None:
        options = replace(options, file=str(as_path("file", file).absolute()))
    with MAKING:
        used, options = with_files(options)
        analysis = _analysis(options, used)
        module = module_of(analysis, options)
    warn(analysis.diagnostics, analysis.source)
    return module


def load(path: str | PathLike[str], language: str | None = None, **options: Any) -> Module:
    """Compile a file: the defs of `kernels.tc`, or the functions of `kernels.sac`.

    Args:
        language: `tc` or `sac`; by default what the name of the file ends in, else `tc`.
        options: those of `compile`. Messages name the file.

    Raises:
        OSError: the file cannot be read, or has more than `files.LARGEST` bytes.
        UnicodeDecodeError: it is no text in UTF-8.
        CompileError, TypeError, ValueError: as `compile`.
    """
    name = fspath(as_path("path", path))
    language = language or ("sac" if name.endswith(".sac") else "tc")
    return compile(read_text(Path(name)), language, name=name, file=name, **options)


def zarr(f: Function, *arrays: Any, out: Any, threads: int | None = None, **named: Any) -> Any:
    """Call a function with arrays of zarr that no memory needs to hold: chunks are read, computed and written one after the other.

    At most `threads` chunks are computed at a time, and two more are kept, with what surrounds them.

    Args:
        arrays: the arguments of a call, in their order; a path, or an array of zarr, is read chunk by chunk.
        out: the path of the result, or an array of zarr, whose chunks are then those of the result; a tuple for several results.
        threads: by default as many as calls use.
        named: arguments by name.

    Returns:
        The array of zarr with the result, or a tuple of them.

    Raises:
        CallError: the arguments do not fit; TC671, a chunk needs too much; TC673, a store is not there or does not fit.
        TypeError: `f` is no function of a cell, or `threads` is no positive integer.
    """
    from tc_jupyter.chunks.stores import compute  # noqa: PLC0415  (only calls with stores)

    checked_function(f, "tc.zarr calls")
    if threads is not None and (isinstance(threads, bool) or not hasattr(threads, "__index__") or threads < 1):
        raise TypeError(f"threads={shown_value(threads)}: expected a positive integer")
    values, definition, options = f._opened(arrays, named)  # pyright: ignore[reportPrivateUsage]
    return compute(definition, options, values, out, threads)


def _analysis(options: Options, used: Used = NOTHING) -> Analysis:
    return analyze(
        options.text,
        language=options.language,
        strict=options.strict,
        allow=options.allow,
        known=options.known,
        name=options.name,
        used=used,
    )


def with_files(options: Options, reading: Reading | None = None) -> tuple[Used, Options]:
    """What the files have that a text uses, and options in which their functions are known.

    Args:
        reading: who reads; by default a person who runs the text.
    """
    if not isinstance(options.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return NOTHING, options  # the analysis says what a text is
    file = Path(options.file) if options.file else None
    reading = reading or Reading(Path.cwd() if file is None else file.parent)
    used = LIBRARY.used(SourceText(options.text, options.name), options.language, reading, file)
    if not used.files:
        return used, options
    known = {**(options.known or {}), **used.functions}
    return used, replace(options, known=known, fixed=frozenset(used.functions))


def _functions_of(
    source: SourceText, language: str, path: Path, used: Used
) -> tuple[dict[str, Function], tuple[Diagnostic, ...]]:
    """What a file that is used defines, or its mistakes."""
    known, fixed = dict(used.functions), frozenset(used.functions)
    # they are called by other defs alone, which copy them, so that nothing is prepared for calls
    options = Options(source.text, language, "interpreter", known=known, name=source.name, fixed=fixed, file=str(path))
    analysis = _analysis(options, used)
    if not analysis.ok:
        return {}, tuple(each for each in analysis.diagnostics if each.is_error)
    return {each.written_name: each for each in module_of(analysis, options).values()}, ()


LIBRARY = Library(_functions_of)
"""The files that texts of this process use."""


def module_of(analysis: Analysis, options: Options) -> Module:
    """The functions of a text that is already analysed.

    Raises:
        CompileError: the analysis has errors.
    """
    if not analysis.ok:
        diagnostics = tuple(analysis.diagnostics)
        raise CompileError(diagnostics, analysis.source, render(diagnostics, analysis.source))
    _check_specialize(analysis, options)
    functions = {
        python_name(name): Function(Definition(found, options), options, analysis.source)
        for name, found in analysis.functions.items()
        if name not in analysis.open_functions
    }
    return Module(functions | _open_functions(analysis, options), analysis)


def _open_functions(analysis: Analysis, options: Options) -> dict[str, Function]:
    """The functions of a `%%sac` cell, which are specialised call by call."""
    if not analysis.open_functions:
        return {}
    from tc_jupyter.compiler.open_definition import OpenDefinition  # noqa: PLC0415  (only for that language)

    opened = {name: OpenDefinition(each, options, analysis.source) for name, each in analysis.open_functions.items()}
    return {python_name(name): Function(each, options, analysis.source) for name, each in opened.items()}


def _check_specialize(analysis: Analysis, options: Options) -> None:
    wanted = options.specialize if isinstance(options.specialize, Mapping) else {}
    sizes = {name for found in analysis.functions.values() for name in found.program.sizes}
    unknown = [name for name in wanted if name not in sizes]
    if unknown and not analysis.open_functions:
        raise ValueError(f"specialize: no def has a size {unknown[0]!r}; there are {', '.join(sorted(sizes))}")


class Module(Mapping[str, "Function"]):
    """The functions of one text, by name; also as attributes.

    Attributes:
        analysis: what is known of the text.
    """

    def __init__(self, functions: Mapping[str, Function], analysis: Analysis) -> None:
        # plain attributes: `__getattr__` takes longer than the call of a small function
        vars(self).update({name: each for name, each in functions.items() if not hasattr(Module, name)})
        self._functions = dict(functions)
        self.analysis = analysis

    def __getitem__(self, name: str) -> Function:
        found = self._functions.get(name) or self._functions.get(python_name(name) if isinstance(name, str) else "")  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
        if found is None:
            raise KeyError(f"this module has no function {name!r}; it has {', '.join(self._functions)}")
        return found

    def __getattr__(self, name: str) -> Function:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"this module has no function {name!r}; it has {', '.join(functions)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]

    def __repr__(self) -> str:
        return f"<tc module: {', '.join(self._functions)}>"

    def _display_(self) -> Any:
        """What marimo shows: the card."""
        return _card(self)


# functions -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexRange:
    """The range of one index, as users see it: `lower <= index < upper`.

    Attributes:
        lower, upper: Python expressions over the sizes, and over other indices and elements where the range differs from point to
            point; `upper` is not included.
        kind: `output` or `reduction`.
        round: in which it was found; 0 for `where` and `target`.
        source: `where`, `inferred` or `target`.
        because: why, one line each: the bounds that shaped it, or what else gives it.
        text: the range at each point, `0 <= k < i + 1`.
    """

    statement: str
    index: str
    lower: str
    upper: str
    kind: str
    round: int
    source: str
    because: tuple[str, ...]
    ends: tuple[SizeExpr, SizeExpr] = field(repr=False, compare=False)
    text: str = field(default="", repr=False, compare=False)

    @property
    def sympy(self) -> tuple[Any, Any]:
        """Both bounds as SymPy expressions."""
        lower, upper = self.ends
        return to_sympy(lower), to_sympy(upper)

    @property
    def latex(self) -> str:
        """The range as a formula."""
        lower, upper = self.ends
        return range_latex(self.index, lower, upper)

    def __str__(self) -> str:
        return f"{self.statement}: {self.text or f'{self.lower} <= {self.index} < {self.upper}'}"


MOST_RANK = 8
"""Of the arguments that `at_rank` makes up, which have all their elements."""


class OpenRanks(AttributeError):
    """What was asked for is known only when a call tells the ranks (`%%sac`)."""


class Function:
    """A compiled def: call it with arrays, or look at what was inferred."""

    def __init__(self, definition: Definition | OpenDefinition, options: Options, source: SourceText) -> None:
        self._definition = definition
        self._takes_out = "out" in definition.names
        self._options = options
        self._source = source
        self._call: Callable[..., Any] = self._call_first
        self._write: Callable[..., Any] | None = None
        self._stale: Diagnostic | None = None
        self._outdated = ""
        self._callers: WeakKeyDictionary[Function, None] = WeakKeyDictionary()
        self._derivatives: WeakKeyDictionary[Definition, Function] = WeakKeyDictionary()
        self._follow()
        name = definition.name
        self.__name__ = self.__qualname__ = python_name(name)
        self.__doc__ = document(definition.found) if isinstance(definition, Definition) else definition.text

    # callees that are defined again ----------------------------------------------------------------------------------------------

    @property
    def stale(self) -> Diagnostic | None:
        """Why this cannot be called: a def that it calls was defined again, and does not fit any more (TC615)."""
        return self._stale

    @property
    def _followed(self) -> dict[str, Function]:
        """The functions of earlier cells that the text may call and that it follows when they are defined again."""
        known, fixed = self._options.known or {} if self._options.follows else {}, self._options.fixed
        return {name: each for name, each in known.items() if isinstance(each, Function) and name not in fixed}

    @property
    def _beside(self) -> dict[str, Function]:
        """What this one is derived from, and what computes its derivatives: it follows them, though its text does not call them."""
        options = self._options
        about = (options.derivative and options.derivative.function, options.rule) if options.follows else ()
        return {each.written_name: each for each in about if each is not None}

    @property
    def callees(self) -> dict[str, Function]:
        """The functions of earlier cells that the def calls, by the names that the text uses, and what it is the derivative of."""
        definition = self._definition
        alone = _alone(self._options, definition.name)
        known = alone.known or {}
        used = {name: each for name, each in known.items() if isinstance(each, Function)}
        if isinstance(definition, Definition):
            called = {site.callee.partition(".")[0] for site in definition.program.calls}
            called |= {*own_operators(alone.text), *called_beside(alone.text, alone.language, self.written_name, known)}
            used = {name: each for name, each in used.items() if each.written_name in called}
        return used | self._beside

    def _follow(self) -> None:
        """Be told when a function is compiled again that this one calls, or is derived from."""
        for callee in (*self._followed.values(), *self._beside.values()):
            callee._callers[self] = None

    def _relink(self, successors: Mapping[Function, Function]) -> None:
        """Know other functions from now on."""
        known = dict(self._options.known or {})
        for name, each in known.items():
            now = successors.get(each)
            known[name] = now if now is not None and name in (now.__name__, now.written_name) else each
        self._options = replace(self._options, known=known)
        self._follow()

    def _rebuild(self, redefined: str) -> None:
        """Make the function again of what is known now; where that is not possible, every call says why."""
        try:
            fresh = self._made_again()
        except CompileError as problem:
            return self._mark_stale(redefined, next(each for each in problem.diagnostics if each.is_error))
        except CallError as problem:  # of a function that this one is derived from
            return self._mark_stale(redefined, problem.diagnostic)
        self.__doc__, self._write, self._stale = fresh.__doc__, None, None
        self._definition, self._call = fresh._definition, self._call_first
        self._takes_out = fresh._takes_out
        if self._options.derivative is not None:  # its text is another one
            self._options, self._source = fresh._options, fresh._source
        for callee in fresh.callees.values():
            callee._callers.pop(fresh, None)

    def _made_again(self) -> Function:
        """The function of the same text, or the same derivative, with the callees of now.

        Raises:
            CompileError: it has an error, also for the ranks and types that the schedule is for.
            CallError: it is derived from a function that does not fit any more, or that has other parameters now.
        """
        about = self._options.derivative
        if about is None:
            options = _alone(self._options, self.written_name)
            analysis = _analysis(options)
            if not analysis.ok:
                raise CompileError(analysis.diagnostics, analysis.source, analysis.render())
            fresh = module_of(analysis, options)[self.written_name]
            return fresh._with_steps(*self._scheduled(), self._options)
        known = about.function._specialized(about.signature)
        definition = known.derived(about.kind, about.wrt, about.save, about.ties)
        options = replace(self._options, text=definition.options.text)
        made = Definition(definition.found, options, self._scheduled()[0])
        return Function(made, options, definition.program.source)

    def _mark_stale(self, redefined: str, error: Diagnostic) -> None:
        """Let every call say what is wrong."""
        between = next((each for each in self.callees.values() if each.stale is not None), None)
        self._stale = self._refusal(redefined, error) if between is None else self._refusal_of(between, error)
        if self._options.derivative is not None:  # the error is about another text
            assert isinstance(self._definition, Definition)
            self._stale = replace(self._stale, span=self._definition.program.span, label="", labels=())
        self._call = self._write = self._refuse

    def _refusal(self, redefined: str, error: Diagnostic) -> Diagnostic:
        """Why a call of this function fails: its own call of what was defined again does not fit."""
        name = self.written_name
        message = f"`{name}` calls `{redefined}`, which was defined again: {error.message}"
        help = f"run the cell of `{name}` again with a call that fits, or define `{redefined}` as before"
        if redefined in self._beside:
            message = f"`{name}` belongs to `{redefined}`, which calls what was defined again: {error.message}"
            help = f"derive it from `{redefined}` again, or define what `{redefined}` calls as before"
        return Diagnostic(codes.STALE_CALLER, error.span, message, error.label, error.labels, help)

    def _refusal_of(self, callee: Function, error: Diagnostic) -> Diagnostic:
        """The same where a function that it calls, or is derived from, is the one that does not fit."""
        assert callee.stale is not None
        own = f"`{callee.written_name}`"
        verb = "belongs to" if callee.written_name in self._beside else "calls"
        message = f"`{self.written_name}` {verb} {own}, which{callee.stale.message.removeprefix(own)}"
        return replace(callee.stale, span=error.span, label=error.label, labels=error.labels, message=message)

    def _outdate(self, redefined: str) -> None:
        """Compile the text again when it is asked for; nobody may ever do that."""
        self._outdated = redefined
        self._call, self._write = self._call_renewed, self._write_renewed

    def _renew(self) -> None:
        """Do what `_outdate` put off. Threads that come at the same time each do it, and the results are alike."""
        if redefined := self._outdated:
            with MAKING:
                self._rebuild(redefined)
            self._outdated = ""

    def _call_first(self, *args: Any) -> Any:
        """The first call: only now is the compiler for the CPU loaded, which takes as long as to analyse a cell."""
        made = self._definition.dispatcher()
        if self._call == self._call_first:
            self._call = made
        return made(*args)

    def _call_renewed(self, *args: Any) -> Any:
        self._renew()
        return self._call(*args)

    def _write_renewed(self, args: tuple[Any, ...], out: Any) -> Any:
        self._renew()
        return (self._write or self._writer())(args, out)

    def _refuse(self, *args: Any) -> NoReturn:
        """What a call does while a callee does not fit."""
        del args
        assert self._stale is not None
        raise call_error(self._stale, self._source)

    # the call --------------------------------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Compute the results.

        Args:
            args: arrays and numbers in the order of the signature; or by name.
            out: an array, or a tuple in the order of the results, to write into; first statements without `!` accumulate. It is
                an argument where a parameter has this name and none comes for it otherwise.
            named: arguments by name; with arrays of xarray also `dims=`, the names of dimensions by index.

        Returns:
            One array, or a tuple in the order of the results, of the kind of the inputs and on their device; with `out=`
            that object.

        Raises:
            CallError: the arguments do not fit; names the argument, what was expected and what came.
        """
        if self._takes_out and self._means_parameter(args, out):
            named, out = {**named, "out": out}, None
        loaded = sys.modules
        if out is None and "torch" in loaded and autograd.is_traced():
            return self._traced(self._definition.positional(args, named) if named else args)
        if "xarray" in loaded and (found := self._labelled(args, named, out)) is not None:
            return found
        if named:
            args = self._definition.positional(args, named)
        if "dask.array" in loaded and _is_chunked(args):
            return self._lazy(args, out)
        return self._call(*args) if out is None else (self._write or self._writer())(args, out)

    def _means_parameter(self, args: tuple[Any, ...], out: Any) -> bool:
        """Whether `out=` is an argument of a parameter called so, which these do not reach."""
        return out is not None and len(args) <= self._definition.names.index("out")

    def _traced(self, args: tuple[Any, ...]) -> Any:
        """A call inside `torch.compile`. The import is done once and not traced."""
        from tc_jupyter.runtime import torch_op  # noqa: PLC0415

        definition = self._definition
        return torch_op.traced(definition, args) if isinstance(definition, Definition) else self._call(*args)

    def _labelled(self, args: tuple[Any, ...], named: Mapping[str, Any], out: Any) -> Any:
        """A call with arrays of xarray; `None` where there is none."""
        if not any(type(each).__module__.startswith("xarray.") for each in (*args, *named.values())):
            return None
        from tc_jupyter.chunks.labelled import call, is_labelled, unwrapped  # noqa: PLC0415  (only calls with such arrays)

        current, given = self._current(), dict(named)
        dims = given.pop("dims", None) if "dims" not in current.names else None
        values = current.positional(args, given)
        if not any(map(is_labelled, values)):
            return None
        definition, _ = self._apart(unwrapped(values))
        return call(definition, values, dims, lambda *arrays: self(*arrays, out=out))

    def _lazy(self, args: tuple[Any, ...], out: Any) -> Any:
        """A call with arrays of Dask."""
        from tc_jupyter.chunks.graph import lazy  # noqa: PLC0415  (only calls with such arrays)

        if out is not None:
            message = f"`{self.written_name}` cannot write into `out=`: arrays of Dask are made when they are computed"
            help = "leave `out=` away; `dask.array.store` writes what is computed"
            fail(codes.CHUNKED_CALL, message, self._source, help=help)
        return lazy(self.chunked(*args), args)

    def _opened(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], Definition, Options]:
        """The arguments of a call with stores, paths as arrays of zarr; and `_apart`."""
        from tc_jupyter.chunks.stores import opened  # noqa: PLC0415  (only calls with stores)

        current = self._current()
        span = current.program.span if isinstance(current, Definition) else current.span
        given = zip(current.names, current.positional(arrays, named), strict=True)
        values = tuple(opened(name, each, self._source, span) for name, each in given)
        return values, *self._apart(values)

    def _apart(self, values: Sequence[Any]) -> tuple[Definition, Options]:
        """The def for arguments in their order, with what travels to other processes: its own text alone.

        Raises:
            CallError: of a `%%sac` function, the arguments do not fit.
        """
        definition = self._current()
        if not isinstance(definition, Definition):
            from tc_jupyter.chunks.opened import definition_for  # noqa: PLC0415  (only for that language)

            definition = definition_for(definition, values)
        options = replace(_alone(self._options, definition.name), rule=None, follows=False, derivative=None)
        # every chunk begins somewhere else: code for each would be made anew
        return definition, replace(options, specialize=None) if options.specialize is True else options

    def chunked(self, *arrays: Any, **named: Any) -> Plan:
        """How a call with arrays of Dask is computed, chunk by chunk; nothing is computed.

        Args:
            arrays: the arguments of a call, in their order.
            named: arguments by name.

        Returns:
            The plan: which chunks of the results there are, and what each task reads.

        Raises:
            CallError: the arguments do not fit; TC616, extents of chunks are not known; TC670, something else is known only when it
                is computed; TC671, a task would have to put together too much.
        """
        from tc_jupyter.chunks.graph import planned  # noqa: PLC0415  (only calls with such arrays)

        arrays = self._arguments("chunked", arrays, named)
        if "xarray" in sys.modules:
            from tc_jupyter.chunks.labelled import unwrapped  # noqa: PLC0415

            arrays = unwrapped(arrays)
        values = self._current().positional(arrays, {})
        return planned(*self._apart(values), values)

    def _writer(self) -> Callable[..., Any]:
        """What runs a call with `out=`, made for the first one; few functions are called so.

        Not a `cached_property`: those of Python 3.11 have a lock, which a forked child could find taken.
        """
        if self._write is None:
            self._write = self._definition.writer()
        return self._write

    def __repr__(self) -> str:
        return f"<tc function {self._definition.text}>"

    def _display_(self) -> Any:
        """What marimo shows: the card."""
        return _card(self)

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: object) -> Function:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        definition = self._current()
        # without its neighbours in the text: what they call may call this function in turn
        options = replace(_alone(self._options, definition.name), derivative=None)
        return _restore, (options, definition.name, *self._scheduled())

    def _scheduled(self) -> tuple[tuple[Step, ...] | None, Signature | None]:
        """The steps of a schedule, and for what calls of a `%%sac` function they are."""
        definition = self._definition
        if not isinstance(definition, Definition):
            return None, None
        return definition.steps, definition.special and definition.special.signature

    @property
    def given_schedule(self) -> Schedule | None:
        """What `with_schedule` gave; `None`: calls run the default schedule."""
        definition = self._definition
        return definition.schedule() if isinstance(definition, Definition) and definition.steps is not None else None

    @property
    def is_open(self) -> bool:
        """Whether ranks, element types or values that are known only at a call take part in what is computed."""
        return not isinstance(self._definition, Definition)

    @property
    def leaves_ranks_open(self) -> bool:
        """Whether arrays of every rank are taken (`float[*]` in a `%%sac` function)."""
        definition = self._definition
        return not isinstance(definition, Definition) and definition.leaves_ranks_open

    def at_rank(self, rank: int) -> Definition:
        """The def for arguments of a rank, where the text leaves it open; what is inferred is then that of this rank.

        Raises:
            CallError: the function takes no arguments of this rank.
            ValueError: the text declares all ranks, or this is no rank.
        """
        checked_rank(self, rank)
        assert not isinstance(self._definition, Definition)
        return self._definition.at_rank(rank)

    def definition(self, *arrays: Any) -> Definition:
        """What other parts of the package work with: the def with known ranks.

        Raises:
            OpenRanks: nothing tells the ranks.
        """
        return self._known(arrays)

    def _current(self) -> Definition | OpenDefinition:
        """The def, or all that it may be, as its callees are now."""
        self._renew()
        if self._stale is not None:
            self._refuse()
        return self._definition

    def _specialized(self, signature: Signature | None) -> Definition:
        """The def; of a `%%sac` function that for a signature."""
        current = self._current()
        if isinstance(current, Definition) or signature is None:
            return self._known()
        from tc_jupyter.compiler.open_definition import definition_of  # noqa: PLC0415  (only for that language)

        return definition_of(current.functions, signature, self._options)

    def _with_steps(self, steps: tuple[Step, ...] | None, signature: Signature | None, options: Options) -> Function:
        """The function with what `_scheduled` tells of another one; itself where that is nothing.

        Raises:
            CompileError: the function has an error for the signature.
        """
        if steps is None:
            return self
        known = self._specialized(signature)
        return Function(Definition(known.found, options, steps, known.special), options, self._source)

    def _known(self, arrays: Sequence[Any] = ()) -> Definition:
        """The def with known ranks: for these arguments, or as it was last called.

        Raises:
            OpenRanks: nothing tells the ranks.
        """
        definition = self._current()
        if isinstance(definition, Definition):
            return definition
        if arrays:
            return definition.at(arrays)
        if definition.latest is None:
            raise OpenRanks(f"the ranks of `{definition.name}` are known at the call: call it first, or pass arrays")
        return definition.latest

    # what was inferred -----------------------------------------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """The text and how it is compiled."""
        if self._options.derivative is not None:
            self._renew()  # the text
        return self._options

    @property
    def written_name(self) -> str:
        """The name as written in the text; `__name__` is one that Python can spell."""
        return self._definition.name

    @property
    def program(self) -> Program:
        """The checked program."""
        return self._known().program

    @property
    def _shown_programs(self) -> tuple[Program, ...]:
        """The programs whose messages its cell has shown: in `%%sac` those of the definitions that declare their ranks."""
        self._renew()
        definition = self._definition
        if isinstance(definition, Definition):
            return (definition.program,)
        return tuple(each.program for each in definition.functions if each.program is not None)

    def program_for(self, arguments: Sequence[ArgumentType]) -> Program | tuple[Diagnostic, ...]:
        """The program for arguments of these types, or why there is none: how functions of other cells call this one."""
        self._renew()
        definition = self._definition
        if self._stale is not None:
            return (self._stale,)
        return definition.program if isinstance(definition, Definition) else definition.program_for(arguments)

    @property
    def analysis(self) -> FunctionAnalysis:
        """Everything that inference found."""
        return self._known().found

    @property
    def source_text(self) -> SourceText:
        """The cell."""
        if self._options.derivative is not None:
            self._renew()
        return self._source

    @property
    def text(self) -> str:
        """The def as it is written."""
        span = self.program.span  # which is of the source behind it
        return self._source.slice(span).strip()

    @property
    def ranges(self) -> tuple[IndexRange, ...]:
        """The range of every index of every statement, with its reasons."""
        found = self.analysis.ranges
        return tuple(_index_range(item, found) for name in found.indices for item in found.indices[name])

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        """What must hold for every access to stay inside its tensor."""
        return self.analysis.preconditions

    @property
    def signature(self) -> str:
        """The def in one line, with inferred shapes of the results."""
        if not isinstance(self._definition, Definition):
            return self._definition.text
        return described_signature(self.analysis)

    @property
    def __signature__(self) -> inspect.Signature:
        kinds = inspect.Parameter
        names = [python_name(name) for name in self._definition.names]
        parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in names]
        parameters += [] if "out" in names else [kinds("out", kinds.KEYWORD_ONLY, default=None)]
        return inspect.Signature(parameters)

    # derivatives -----------------------------------------------------------------------------------------------------------------

    def vjp(
        self, wrt: str | Iterable[str] | None = None, save: str | Iterable[str] = (), ties: Ties = "first"
    ) -> Function:
        """The function of the parameters and the derivatives of the results, whose results are the derivatives by parameters.

        Args:
            wrt: the parameters; by default all floats.
            save: results and temporaries that it takes behind the parameters, and does not compute again.
            ties: of the points that attain a `max=!` or `min=!`, the `first` one gets the derivative; or `split`, all of them the
                same share.

        Raises:
            CompileError: TC250, there is no derivative.
            CallError: TC606, a name is none of a parameter of floats, of a result or of a temporary.
            ValueError: `ties` is another word.
        """
        return self._derived("vjp", wrt, save, ties)

    def jvp(self, wrt: str | Iterable[str] | None = None, ties: Ties = "first") -> Function:
        """The function of the parameters and a direction for each of `wrt`: the results, each with its derivative behind it.

        Args:
            wrt: the parameters; by default all floats.
            ties: as those of `vjp`; `split` gives the mean of the derivatives at these points.

        Raises:
            CompileError: TC250, there is no derivative.
            CallError: TC606, a name is none of a parameter of floats.
            ValueError: `ties` is another word.
        """
        return self._derived("jvp", wrt, (), ties)

    def with_vjp(self, rule: Function, check: bool = True) -> Function:
        """The same function with a derivative of your own, as `f.vjp()` would be, which PyTorch and cells then use.

        Args:
            rule: takes the parameters and the derivatives of the results, and gives those of all parameters that are floats.
            check: compare it with `f.vjp()` at some arguments.

        Raises:
            ValueError: it has other parameters or results, or it gives other values.
            TypeError: it is no function of a cell.
        """
        from tc_jupyter.compiler.derivatives import check_rule  # noqa: PLC0415  (few functions have one)

        checked_function(rule, "with_vjp takes")
        definition = self._known()
        check_rule(definition.program, rule.program)
        if check:
            self._compare_rule(rule)
        options = replace(self._options, rule=rule)
        made = Definition(definition.found, options, definition.steps, definition.special)
        return Function(made, options, self._source)

    def _compare_rule(self, rule: Function) -> None:
        """See whether a derivative is that of this function, at the first arguments that are accepted.

        Raises:
            ValueError: it is not.
        """
        from tc_jupyter.compiler.derivatives import samples  # noqa: PLC0415

        program, own = self.program, self.vjp()
        for arguments in samples(program):
            try:
                results = _as_tuple(self(*arguments))
            except CallError:
                continue
            floats = [
                each for name, each in zip(program.results, results, strict=True) if program.tensor(name).dtype.is_float
            ]
            cotangents = [np.cos(np.arange(each.size)).reshape(each.shape).astype(each.dtype) for each in floats]
            wanted, found = (_as_tuple(each(*arguments, *cotangents)) for each in (own, rule))
            for name, one, two in zip(own.program.results, wanted, found, strict=True):
                close = 1e-6 if one.dtype == np.float64 else 1e-3 if one.dtype == np.float32 else 0.05
                if not np.allclose(one.astype(np.complex128), two.astype(np.complex128), rtol=close, atol=close):
                    raise ValueError(
                        f"with_vjp: `{rule.written_name}` gives another `{name}` than the derivative of `{program.name}`; "
                        "pass check=False if that is meant"
                    )
            return

    def _derived(self, kind: Kind, wrt: str | Iterable[str] | None, save: str | Iterable[str], ties: Ties) -> Function:
        """The function of a derived def; the same one as long as the def is the same."""
        if ties not in ("first", "split"):
            raise ValueError(f'{kind}: ties is "first" or "split", not {shown_value(ties)}')
        chosen, saved, known = None if wrt is None else one_or_more(wrt), one_or_more(save), self._known()
        definition = known.derived(kind, chosen, saved, ties)
        found = self._derivatives.get(definition)
        if found is None:
            options = definition.options
            if self._options.follows and definition is not known.rule:
                signature = known.special and known.special.signature
                about = Derivative(self, signature, kind, chosen, saved, ties)
                options = replace(options, follows=True, derivative=about)
            found = self._derivatives[definition] = Function(definition, options, definition.program.source)
        return found

    def shapes(self, /, *arrays: Any, **sizes: int) -> dict[str, tuple[int, ...]]:
        """The shape of every result at given sizes, or for example arrays.

        Raises:
            CallError: a condition on sizes is false, or TC614, a size is missing.
            TypeError, ValueError: a value is no size, or there is no such size.
        """
        definition = self._known(arrays)
        numbers = definition.numbers_at(self._sizes(arrays, sizes))
        tensors = (definition.program.tensor(name) for name in definition.program.results)
        return {each.name: tuple(numbers.shapes[each.name][: each.written_rank]) for each in tensors}

    def cost(self, /, *arrays: Any, **sizes: int) -> Counts:
        """Operations and bytes: SymPy expressions over the sizes, or numbers for all sizes or the arrays of a call.

        Raises:
            CallError: the arrays do not fit, a condition on sizes is false, or TC614, some but not all sizes are given.
            TypeError, ValueError: a value is no size, or there is no such size.
        """
        definition = self._known(arrays)
        cost = cost_of(definition.program, definition.found.ranges)
        if arrays or sizes:
            return cost.at(self._numbers(arrays, sizes))
        parts = (to_sympy(part) for part in (cost.operations, cost.read, cost.written))
        return Counts(*parts)

    # what is generated -----------------------------------------------------------------------------------------------------------

    def source(self, kind: str, /, *arrays: Any, **sizes: int) -> str:
        """Generated text.

        Args:
            kind: `loops`, `passes` (the loops after each rewrite for a CPU), `c` (plain C99, without any schedule), `numba` (the
                same loops in Python, for Numba), `cuda`, `ptx`, `sass`, `llvm`, `asm`, or `rewrites` (`%%sac`).
            arrays: example arrays; the text is what a call with them runs. Without them it is for row-major arrays of any size.
            sizes: sizes by name, which mean row-major arrays of these sizes.

        Raises:
            CallError: TC614, some but not all sizes are given; TC501 or TC504, Numba has no such function or type.
            TypeError, ValueError: an unknown kind, no size, or there is no such size.
            RuntimeError: a tool that this kind needs is not installed; says which.
        """
        if kind not in SOURCE_KINDS:
            raise ValueError(f"source kind {kind!r}: expected one of {', '.join(map(repr, SOURCE_KINDS))}")
        if kind == "rewrites":
            if not isinstance(self._definition, Definition):
                return "\n\n".join(rewrites_text(each) for each in self._definition.rewrites(arrays))
            raise ValueError("`rewrites` are the three steps of a %%sac function; this is a %%tc def")
        if kind in ("c", "numba"):
            if sizes:
                self._sizes(arrays, sizes)
            return (plain_c if kind == "c" else plain_numba)(self._known(arrays).found).text
        if kind == "loops":
            made = self._build(target_of(engine_of(self._options.target, "cpu")), arrays, sizes)
            return "\n\n".join(show_kernel(kernel) for kernel in made.kernels)
        if kind == "passes":
            return self._build(cpu.cpu_target(), arrays, sizes).passes()
        if kind in ("llvm", "asm"):
            made = self._build(cpu.cpu_target(), arrays, sizes)
            return "\n\n".join(cpu_text(source, kind, made.target) for source in made.shown())
        made = self._build(cuda.cuda_target(), arrays, sizes)
        return "\n\n".join(cuda_text(source, kind, made.target) for source in made.sources)

    def export(
        self,
        to: str | PathLike[str],
        *,
        cpus: str | Sequence[str] | None = None,
        shared: bool = True,
        cuda: str | Sequence[str] = (),
        like: Sequence[Any] = (),
        ranks: int | Sequence[int] = (),
        name: str | None = None,
        wheel: bool = False,
        force: bool = False,
    ) -> Exported:
        """Write a library for C, C++ and CUDA with this function, which needs neither Python nor LLVM when it runs.

        Args:
            to: a folder, which is made if it is not there.
            cpus: the processors that it has code for: `x86-64-v3`, `x86-64-v4`, `native`.
            shared: make a shared library beside the static one.
            cuda: architectures that CUDA is written for, as `sm_80`.
            like: calls for which code is made beside that for all sizes: the arguments of each, or sizes by name.
            ranks: numbers of dimensions, for arrays whose ranks a `%%sac` function leaves open. Each is a C function of its own, as
                are the ranks and types of each call of `like`: `smooth_1d` and `smooth_2d`.
            name: of the library; by default that of the function.
            wheel: make a package for Python, too, which needs NumPy alone.
            force: overwrite files that no export has written, or that have changed since.

        Returns:
            Where the files are, and the names of the C functions.

        Raises:
            CallError: TC660, there is no such processor or device; TC661, the folder cannot be written, or the C compiler fails;
                TC663, this system or function has no libraries; TC687, a file would be overwritten that no export has left so; or
                the arguments of a call of `like` do not fit, or TC614, a size is missing.
            TypeError: the name is no text.
            TypeError, ValueError: `like` has no size, or one that there is not; or one of `ranks` is no rank from 0 to 8.

        Warns:
            DiagnosticWarning: TC662, there is no C compiler, so that no library is made of the files.
        """
        calls = {self.written_name: like}
        return export([self], to, name or self.__name__, cpus, shared, cuda, calls, wheel, force, ranks)

    def kernels(self, /, *arrays: Any, **sizes: int) -> tuple[KernelLaunch, ...]:
        """What a call on a GPU launches: `(cupy.RawKernel or None without a GPU, name, grid, block, shared bytes, argument order)`.

        Raises:
            CallError: TC614, a size is missing.
        """
        from tc_jupyter.compiler.gpu import launches  # noqa: PLC0415  (loads the simulator)

        numbers = self._numbers(arrays, sizes)
        made = self._build(cuda.cuda_target(), arrays, sizes)
        return launches(made, numbers, gpu_available())

    def resources(self, /, *arrays: Any, **sizes: int) -> tuple[KernelResources, ...]:
        """Registers, shared memory, spills and occupancy of every CUDA kernel; needs NVRTC, but no GPU.

        Raises:
            BackendError: NVRTC is not installed.
            CallError: TC614, some but not all sizes are given.
        """
        from tc_jupyter.compiler.gpu import resources  # noqa: PLC0415  (loads the simulator)

        given = bool(arrays or sizes) or not self._known(arrays).program.sizes
        made = self._build(cuda.cuda_target(), arrays, sizes)
        return resources(made, self._numbers(arrays, sizes) if given else {})

    def simulate(self, *arrays: Any, seconds: float | None = 60.0) -> Simulation:
        """Run the generated CUDA on the CPU with every access checked; needs NVRTC, but no GPU. For small arrays.

        Args:
            arrays: the arguments of the call; strided ones are simulated as row-major copies.
            seconds: a simulation that is estimated to take longer is refused before it begins; `None` begins it all the same.
                Interrupting the kernel (Ctrl-C) stops it; the arrays are as before.

        The PTX that NVRTC makes of the kernels that a call at these sizes launches is executed. Findings are accesses outside
        of arrays or of one of their dimensions, misaligned or uninitialised ones, races inside a block and between blocks,
        barriers and shuffles that not all threads reach, missing waits, results that nobody writes, and indices that overflow.
        The report lists per memory instruction how well it coalesces and its bank conflicts, and ends with what is not
        modelled. A launch of more than about 10 million accesses runs a sample of its blocks, the last one among them: the
        report says so, and the outputs are then incomplete.

        Example: `examples/cuda_without_a_gpu.ipynb`.

        Raises:
            CallError: the arguments do not fit; TC604, a check at a point failed; or TC507, the simulation would take longer than
                `seconds`.
            BackendError: NVRTC is not installed.
        """
        from tc_jupyter.compiler.gpu import simulate  # noqa: PLC0415  (loads the simulator)

        seconds = None if seconds is None else checked_seconds(seconds)
        definition = self._known(arrays)
        inputs = definition.inputs(arrays)
        numbers = definition.numbers_at(inputs.sizes)
        target = cuda.cuda_target("sm_80")
        made = definition.build(target, definition.layout_at(inputs.sizes, numbers, target.kind))
        return simulate(for_call(made, numbers.sizes, inputs.arrays), inputs, numbers, definition.numbers, seconds)

    def iterate(self, n: int, until: str | None = None, every: int = 1, keep: int | None = None) -> Callable[..., Any]:
        """The function applied `n` times: its results are its next first arguments, the other arguments stay.

        `jacobi.iterate(100)(U)` is `jacobi` of `jacobi` of ... of `U`. The arguments are never written to, and 0 steps give copies
        of them.

        Args:
            until: a result that is one truth value, and no argument: steps end when it is true. The number of steps comes back
                behind the states.
            every: after how many steps that is looked at.
            keep: every how many steps a state is kept, the arguments among them: along a first dimension of each state.

        Raises:
            CallError: TC226, types or shapes of the results are not those of the first parameters; TC618, `n` is negative.
            TypeError, ValueError: what is no count, or no such result.
        """
        found = self.analysis
        self._rule(until)
        made = iteration(self, self._alternating, partial(self._rule, until), n, every, keep)
        if made.steps < 0:
            raise call_error(negative_steps(found, made.steps), found.program.source)
        return made

    def _rule(self, until: str | None) -> Rule:
        """As `rule_of`, of the function as it is now."""
        return rule_of(self.analysis, until)

    def _alternating(self, even: Sequence[Any], odd: Sequence[Any]) -> Alternating | None:
        """As `Definition.alternating`; the arguments are those of a call with `out=`."""
        return self._known(even[: len(self.analysis.program.parameters)]).alternating(even, odd)

    def _numbers(self, arrays: Sequence[Any], sizes: Mapping[str, int]) -> Mapping[str, int]:
        return self._known(arrays).numbers_at(self._sizes(arrays, sizes)).sizes

    def _build(self, target: Target, arrays: Sequence[Any], sizes: Mapping[str, int]) -> Build:
        """Every stage for a call with these arrays, else for row-major ones of these sizes, else for those of any size.

        Raises:
            CallError: TC614, some but not all sizes are given.
            TypeError, ValueError: a value is no size, or there is no such size.
        """
        definition = self._known(arrays)
        if not arrays and not sizes:
            return definition.build(target)
        given = self._sizes(arrays, sizes)
        numbers = definition.numbers_at(given)
        if arrays:
            inputs = definition.inputs(arrays)
            made = definition.build(target, definition.layout(inputs, {}, numbers, target.kind))
            return for_call(made, numbers.sizes, inputs.arrays)
        made = definition.build(target, definition.layout_at(given, numbers, target.kind))
        return for_call(made, numbers.sizes)

    def _sizes(self, arrays: Sequence[Any], sizes: Mapping[str, int]) -> dict[str, int]:
        """The values of all sizes: those of a call with these arrays, and those that are given by name."""
        definition = self._known(arrays)
        if not arrays:
            return definition.sizes_by_name(sizes)
        return dict(definition.inputs(arrays).sizes) | definition.program.numbers(sizes)

    def _arguments(self, method: str, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in their order; sizes by name, which other methods take, are told."""
        definition = self._definition
        sizes = definition.program.sizes if isinstance(definition, Definition) else ()
        if size := next((name for name in named if name in sizes and name not in definition.names), None):
            call = f"{self.__name__}.{method}({', '.join(definition.names)})"
            raise TypeError(f"`{size}` is a size: `{method}` takes the arrays of a call, as in `{call}`")
        return definition.positional(arrays, named) if named else arrays

    # schedules -------------------------------------------------------------------------------------------------------------------

    def schedule(self) -> Schedule:
        """One stage per statement, nothing transformed; or the schedule that `with_schedule` gave."""
        return self._known().schedule()

    def default_schedule(self, /, *arrays: Any, **sizes: int) -> Schedule:
        """The schedule that calls run where `with_schedule` gave none, to look at or to begin with.

        Args:
            arrays: the arguments of a call, for whose sizes tiles are chosen; without them, for large ones.
            sizes: instead, all sizes by name.

        Raises:
            CallError: the arrays do not fit, or TC614, some but not all sizes are given.
            TypeError, ValueError: a value is no size, or there is no such size.
        """
        definition = self._known(arrays)
        target = target_of(engine_of(self._options.target, "cpu"))
        constants, facts = definition.facts(self._sizes(arrays, sizes), target.kind) if arrays or sizes else ((), ())
        return default_schedule(definition.program, definition.found.ranges, target, {**dict(constants), **dict(facts)})

    def on(self, target: str) -> Function:
        """The same function on another engine: `cpu`, `cuda` or `interpreter`.

        Raises:
            ValueError: there is no such engine.
        """
        if target not in TARGETS:
            raise ValueError(f"target={target!r}: expected one of {', '.join(map(repr, TARGETS))}")
        return _restore(replace(self.options, target=target), self._definition.name, *self._scheduled())

    def with_schedule(self, schedule: Schedule) -> Function:
        """A function that computes the same values in another order.

        Raises:
            CompileError: TC411, the schedule belongs to another program.
            TypeError: not a schedule.
        """
        if not isinstance(schedule, Schedule):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
            raise TypeError(f"with_schedule takes what `schedule()` gives, not `{type(schedule).__name__}`")
        schedule.check_program(self.program)
        known = self._known()
        return Function(
            Definition(known.found, self._options, schedule.steps, known.special), self._options, self._source
        )

    # measurements ----------------------------------------------------------------------------------------------------------------

    def benchmark(
        self,
        *arrays: Any,
        against: Mapping[str, Peer] | None = None,
        seconds: float = 1.0,
        **named: Any,
    ) -> Benchmark:
        """Time this function and its peers in interleaved rounds, and compare their results.

        On the CPU every sample waits, for a moment, until the threads of the candidate before it sleep; samples that met somebody
        else on the processors are counted, and the table says so where they are many.

        Args:
            arrays: the arguments of every candidate.
            against: name -> callable with the same arguments, or an expression over the parameters (`"np.matmul(A, B)"`) where the
                name begins with `numpy` (or `np`), `torch`, `jax` or `cupy`.
            seconds: about how long to measure.
            named: arguments by name.

        Raises:
            CallError: the arguments do not fit.
            TypeError: a size is given instead of arrays, or a peer is neither a function nor an expression.
            ValueError: a peer has the name of the function, changes its arguments, or its expression is none; `seconds` is
                negative.
        """
        peers, seconds = checked_peers(against), checked_seconds(seconds)
        if self.__name__ in peers:
            raise ValueError(f"against: {self.__name__!r} is the function itself: give the peer another name")
        arrays = self._arguments("benchmark", arrays, named)
        expected, judge = self(*arrays), self.judge(*arrays)
        candidates: dict[str, Callable[[], Any]] = {self.__name__: lambda: self(*arrays)}
        agrees: dict[str, bool] = {}
        given = _digest(arrays) if peers else b""
        for name, peer in peers.items():
            candidates[name] = self._peer_call(name, peer, arrays)
            agrees[name] = judge(expected, candidates[name]())
            if _digest(arrays) != given:
                raise ValueError(
                    f"against: {name!r} changes its arguments, which all candidates share: let it make new arrays"
                )
        definition = self._known(arrays)
        inputs = definition.inputs(arrays)
        on_gpu = engine_of(self._options.target, inputs.device) == "cuda"
        counts = cost_of(definition.program, definition.found.ranges).at(definition.numbers_at(inputs.sizes).sizes)
        timings = benchmark(
            candidates,
            seconds,
            synchronize=cuda.synchronize if on_gpu else lambda: None,
            quiet=None if on_gpu else peak.quiet(),
            tries=1,
            patience=MOMENT,
        )
        limits = None if on_gpu else cpu_limits()
        notes = libraries.slowed_note(1 if on_gpu else get_threads()) if peers else ()
        return Benchmark(rows_of(timings, counts.flops, counts.bytes, limits, agrees), limits, notes)

    def _peer_call(self, name: str, peer: Peer, arrays: Sequence[Any]) -> Callable[[], Any]:
        """What calls a peer with these arguments."""
        if not isinstance(peer, str):
            return lambda: peer(*arrays)
        library = library_of(name)
        return peer_call(library, peer, moved(dict(zip(self._definition.names, arrays, strict=True)), library))

    def judge(self, *arrays: Any) -> Callable[[Any, Any], bool]:
        """What says whether two results for these arguments agree: integers exactly, floats up to the roundings of the def.

        Args:
            arrays: the arguments of a call, in their order.
        """
        definition = self._known(arrays)
        inputs = definition.inputs(arrays)
        sizes, program = definition.numbers_at(inputs.sizes).sizes, definition.program
        tf32 = self._options.tf32 and engine_of(self._options.target, inputs.device) == "cuda"
        return Judge(program, definition.found.ranges, sizes, arrays, tf32)

    def tune(
        self,
        *arrays: Any,
        seconds: float = 60.0,
        on_trial: Callable[[TuningLog], None] | None = None,
        stopped: Callable[[], bool] | None = None,
        **named: Any,
    ) -> TuningLog:
        """Search for a faster schedule; the best is kept on disk and used from then on, here and by other processes.

        Candidates are compiled in parallel and run in a process of their own: one that crashes, does not end, spills registers, or
        gives a wrong result is dropped and named in the log.

        Args:
            arrays: example arguments; the schedule is kept for calls of this class of sizes.
            seconds: how long to search at most, from the call on; Ctrl-C ends it earlier and keeps the best. What is compiled
                or timed when they are over is killed; only a first call and making the list of candidates cannot be cut short.
            on_trial: called with the log after every candidate.
            stopped: asked before every candidate.
            named: arguments by name.

        Raises:
            CallError: the arguments do not fit.
            TypeError: a size is given instead of arrays.
            RuntimeError: the default schedule cannot be measured.
            ValueError: the interpreter is not tuned.
        """
        from tc_jupyter.autotune import ScheduleJob, Workers, estimate, search  # noqa: PLC0415  (only a search needs it)
        from tc_jupyter.compiler.build import schedule_store, tuning_key  # noqa: PLC0415

        begin, seconds = time.monotonic(), checked_seconds(seconds)
        for name, asked in (("on_trial", on_trial), ("stopped", stopped)):
            if asked is not None and not callable(asked):
                raise TypeError(f"{name}={shown_value(asked)}: expected a function")
        arrays = self._arguments("tune", arrays, named)
        definition = self._known(arrays)
        inputs = definition.inputs(arrays)
        engine = engine_of(self._options.target, inputs.device)
        if engine == "interpreter":
            raise ValueError("the interpreter runs loops as they stand: there is nothing to tune")
        self(*arrays)  # whatever is wrong with the arguments is told here
        target, sizes = target_of(engine), definition.numbers_at(inputs.sizes).sizes
        constants, facts, passed = definition.size_class(inputs.sizes, engine, inputs)
        most = definition.most(inputs.sizes, engine)
        layout = replace(ROW_MAJOR, constants=constants, facts=facts, most=most, passed=passed)
        key = tuning_key(definition.program, target, layout)
        found = candidates(*definition.with_constants(constants), target, dict(facts), largest=dict(most))
        steps = tuple(each.steps for each in found)
        host = tuple(host_array(each) if getattr(each, "ndim", 0) else each for each in arrays)
        plain = Function(self._definition, self._options, self._source)
        # arrays of the layout that a call makes code for: 64-bit indices on the CPU
        built = replace(layout, index_bits=ROW_MAJOR.index_bits if engine == "cuda" else 64)
        job = ScheduleJob(plain.definition, self.judge(*host), host, steps, engine, built)
        builder = job if self.is_open else replace(job, arrays=())
        costs = [(estimate(each, sizes, target), each) for each in found]
        ended = stopped or (lambda: False)
        with Workers(job, builder, stopped=ended) as workers:
            left = seconds - (time.monotonic() - begin)
            log = search(costs, workers, left, schedule_store(), key, on_trial or (lambda log: None), ended)
        if isinstance(self._definition, Definition):
            self._definition = Definition(definition.found, self._options, self._definition.steps, definition.special)
            self._call = self._definition.dispatcher()
        return log


def _card(made: Module | Function) -> Any:
    """The card as marimo shows it. It is made by a later folder, which is asked for by its public name."""
    return import_module("tc_jupyter").card(made)._display_()


def _is_chunked(args: tuple[Any, ...]) -> bool:
    """Whether an argument is an array of Dask, whose class tells which chunks there are."""
    return any(type(each).__module__.startswith("dask.array") for each in args)


def _digest(arrays: Iterable[Any]) -> bytes:
    """A hash of all elements."""
    digest = hashlib.blake2b()
    for each in arrays:
        digest.update(np.ascontiguousarray(host_array(each)).reshape(-1).view(np.uint8).data)
    return digest.digest()


def export(
    functions: Function | Iterable[Function],
    to: str | PathLike[str],
    name: str,
    cpus: str | Sequence[str] | None = None,
    shared: bool = True,
    cuda: str | Sequence[str] = (),
    like: Mapping[str, Sequence[Any]] | None = None,
    wheel: bool = False,
    force: bool = False,
    ranks: int | Sequence[int] = (),
) -> Exported:
    """Write a library with some functions; other arguments, results, errors and warnings are those of `Function.export`.

    Args:
        functions: one, or several.
        name: of the library.
        like: for functions by name, calls for which code is made beside that for all sizes.
        ranks: for all functions whose arrays have open ranks; others have no use for them.

    Raises:
        CallError: as `Function.export`.
        TypeError: something is no function, `like` does not say of which function the calls are, or the name is no text.
        ValueError: there is no function, `like` names another one or a size that it does not have, or one of `ranks` is no rank.
    """
    from tc_jupyter.compiler import library  # noqa: PLC0415  (few functions are exported)

    if isinstance(functions, Mapping):
        raise TypeError("tc.export writes functions, and this has them by names: pass its `.values()`")
    functions = one_or_more(functions)
    if not functions:
        raise ValueError("export: there is no function")
    for function in functions:
        checked_function(function, "tc.export writes")
    names = [each.written_name for each in functions]
    if not isinstance(like or {}, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not type-checked)
        raise TypeError(f"like: name the def of each list of calls, as in {{{names[0]!r}: [(X,)]}}")
    unknown = [name for name in like or {} if name not in names]
    if unknown:
        raise ValueError(f"like: there is no def {unknown[0]!r}; there are {', '.join(names)}")
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"name={shown_value(name)}: the name of a library is a string")
    calls = {each: given if isinstance(given, list | tuple) else (given,) for each, given in (like or {}).items()}
    found = [each for f in functions for each in exported(f, ranks, calls.get(f.written_name, ()))]
    folder = library.folder_of(to, found[0].definition.program)
    return library.export(found, folder, name, cpus, shared, cuda, wheel, force)


def exported(function: Function, ranks: int | Sequence[int], like: Sequence[Any]) -> list[Wanted]:
    """The defs that a library has of a function, with the names that they have there.

    Args:
        ranks: numbers of dimensions of arrays where the text leaves them open.
        like: calls, each the arrays of one, or sizes by name.

    Raises:
        CallError: TC663, nothing tells the ranks, or elements decide what is computed; or a call of `like` does not fit.
        ValueError: one of `ranks` is no rank, or sizes by name are not all sizes of any of several defs.
    """
    from tc_jupyter.compiler.library import wanted  # noqa: PLC0415  (few functions are exported)

    ranks = one_or_more(ranks)
    for rank in ranks if function.leaves_ranks_open else ():
        checked_rank(function, rank)
    return wanted(function._current(), ranks, like)  # pyright: ignore[reportPrivateUsage]


def redefine(
    old: Mapping[str, Function], new: Mapping[str, Function], made: Iterable[Function] = ()
) -> tuple[Function, ...]:
    """Let the callers of functions that are defined again call the new ones, and their callers, too.

    Args:
        old, new: functions by the names that a notebook has for them; callers among them are compiled at once, others when needed.
        made: functions that earlier cells made, whether or not they still have a name: a name may be deleted, or mean something
            else for a while, and callers follow whatever is defined under it next.

    Returns:
        The callers that were compiled, or are stale; callees first.
    """
    successors = {
        callee: new[name]
        for caller in _with_callees([*old.values(), *made])
        for name, callee in caller._followed.items()  # pyright: ignore[reportPrivateUsage]
        if name in new and new[name] is not callee
    }
    changed = {each for each, now in successors.items() if not _is_same(each, now)}
    again = set[Function]()
    present = {*{**old, **new}.values()}
    rebuilt: list[Function] = []
    with MAKING:
        for caller in _callers_first_to_last(successors):
            before = caller.callees
            caller._relink(successors)  # pyright: ignore[reportPrivateUsage]
            known = caller._options.known or {}  # pyright: ignore[reportPrivateUsage]
            # a callee that is known by another name than its successor stays what it was
            moved = {name for name, each in before.items() if each in again or known.get(name, each) is not each}
            reasons = [before[name] for name in moved if before[name] in changed]
            if not reasons:
                continue
            changed.add(caller)
            again.add(caller)
            if caller in present:
                caller._rebuild(reasons[0].written_name)  # pyright: ignore[reportPrivateUsage]
                rebuilt.append(caller)
            else:
                caller._outdate(reasons[0].written_name)  # pyright: ignore[reportPrivateUsage]
    return tuple(rebuilt)


def _is_same(one: Function, other: Function) -> bool:
    """Whether two functions compute the same by the same statements."""
    if one.is_open or other.is_open or one.stale or other.stale:
        return False
    return one.program == other.program


def _with_callees(functions: Iterable[Function]) -> dict[Function, None]:
    """Functions, and all that they follow, each once."""
    found, waiting = dict[Function, None](), list(functions)
    while waiting:
        function = waiting.pop()
        if function not in found:
            found[function] = None
            waiting += function._followed.values()  # pyright: ignore[reportPrivateUsage]
    return found


def _callers_first_to_last(functions: Iterable[Function]) -> tuple[Function, ...]:
    """Everything that calls the functions, also through others, callees first, and otherwise in the order they were made in."""
    order: dict[Function, None] = {}
    seen: set[Function] = (
        set()
    )  # also while it is looked at: defs of one cell may call, and be called by, those of another one

    def visit(function: Function) -> None:
        for caller in reversed(tuple(function._callers)):  # pyright: ignore[reportPrivateUsage]
            if caller not in seen:
                seen.add(caller)
                visit(caller)
                order[caller] = None

    for function in functions:
        visit(function)
    return tuple(reversed(order))


def cycle(function: Function, name: str) -> tuple[str, ...]:
    """How a function calls the one of that name again through functions of earlier cells; empty if it does not."""
    waiting, seen = [(function, (function.written_name,))], set[Function]()
    while waiting:
        at, path = waiting.pop()
        if path[1:] and path[-1] == name:
            return path
        if at not in seen:
            seen.add(at)
            fixed = at.options.fixed  # of files, which call no function of a notebook
            waiting += [(callee, (*path, each)) for each, callee in at.callees.items() if each not in fixed]
    return ()


def _alone(options: Options, name: str) -> Options:
    """The options with what one def needs of the text, and of the functions of earlier cells."""
    text = text_of_def(options.text, options.language, name)
    known = options.known or {}
    used = called_names(text, options.language, known)
    return replace(options, text=text, known={each: known[each] for each in known if each in used})


def _restore(
    options: Options, name: str, steps: tuple[Step, ...] | None, signature: Signature | None = None
) -> Function:
    """Unpickle: compile the text again."""
    function = module_of(_analysis(options), options)[name]
    return function._with_steps(steps, signature, options)  # pyright: ignore[reportPrivateUsage]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def checked_function(value: object, does: str) -> None:
    """See whether somebody has given a function.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, Function):
        raise TypeError(f"{does} a function of a %%tc or %%sac cell, not a {type(value).__name__}")


def checked_rank(function: Function, rank: object) -> None:
    """See whether `at_rank` may be asked.

    Raises:
        ValueError: the text declares all ranks, or this is no rank.
    """
    if not function.leaves_ranks_open:
        raise ValueError(f"rank={rank!r}: `{function.written_name}` declares all ranks")
    if not isinstance(rank, int) or isinstance(rank, bool) or not 0 <= rank <= MOST_RANK:
        raise ValueError(f"rank={rank!r}: a rank is a whole number from 0 to {MOST_RANK}")


def rewrites_text(found: Rewrites) -> str:
    """The three steps as text, each under its title."""
    return "\n\n".join(f"// {step.title}\n{step.text}" for step in found.steps)


def _index_range(item: InferredRange, found: Ranges) -> IndexRange:
    assert item.lower is not None
    assert item.upper is not None
    ends = item.ends or (item.lower, item.upper)
    lower, upper = map(to_python, ends)
    why = item.reasons or (because(item, found),)
    return IndexRange(
        item.statement, item.index, lower, upper, item.kind, item.round, item.source, why, ends, item.text
    )


def described_signature(found: FunctionAnalysis) -> str:
    """`matmul(float32(M, K) A, float32(K, N) B) -> (float32(M, N) C)`."""
    inputs = ", ".join(parameter.text for parameter in parameters_of(found.program))
    results = ", ".join(_result_text(found, name) for name in found.program.results)
    return f"{found.program.name}({inputs}) -> ({results})"


def _result_text(found: FunctionAnalysis, name: str) -> str:
    tensor = found.program.tensor(name)
    box = found.ranges.boxes.get(name)
    rank, dtype = tensor.written_rank, tensor.element.value
    shape = ", ".join(["?"] * rank if box is None else [to_python(extent) for extent in box.shape[:rank]])
    return f"{dtype}({shape}) {name}" if rank else f"{dtype} {name}"


def document(found: FunctionAnalysis) -> str:
    """The docstring of a function: signature, text, ranges, conditions."""
    program = found.program
    text = "\n".join(map(shown_text, program.source.slice(program.span).strip().splitlines()))
    lines = [described_signature(found), "", text, "", "Ranges:"]
    lines += [
        f"    {item.statement}: {item.text}" for name in found.ranges.indices for item in found.ranges.indices[name]
    ]
    checked = [item.text for item in found.preconditions if item.kind != "PROVED"]
    if checked:
        lines += ["", "Checked at the call:", *(f"    {text}" for text in dict.fromkeys(checked))]
    return "\n".join(lines)
