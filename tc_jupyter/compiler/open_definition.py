"""A `%%sac` function whose ranks, types and sometimes values are known only at the call.

Comes in: the checked definitions of one name and the arguments of a call. Goes out: a `Definition` for those ranks and types, kept
for later calls. After that nothing knows which language it was.

Worked example: `float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }` called with two matrices one after the other makes one
`Definition`; a call with a vector makes a second one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tc_jupyter.diagnostics import CallError, CompileError, Diagnostic, SourceText, Span, codes
from tc_jupyter.program import ArgumentType, CheckedFunction, DType, Program, Signature, Specialized, bind_call
from tc_jupyter.program.integers import sizes_of
from tc_jupyter.program.sac_rewrites import Rewrites, rewrites
from tc_jupyter.program.sac_signature import select_overload
from tc_jupyter.program.specialize import specialize
from tc_jupyter.runtime.arguments import (
    Parameter,
    call_error,
    fail,
    misfit,
    positional,
    read_array_of_any_type,
    read_scalar,
)
from tc_jupyter.runtime.arrays import ArrayView, host_values, library_of, numpy_dtype
from tc_jupyter.runtime.forks import MAKING
from tc_jupyter.syntax.sac_parser import BASES
from tc_jupyter.syntax.sac_tree import SacType

from .definition import Definition, Options, Specialization
from .function_analysis import FunctionAnalysis, analyze_program

_EXTENT = 3
"""Of every axis of an array that only tells a rank."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A specialisation and the calls that it serves."""

    signature: Signature
    definition: Definition


_Known: TypeAlias = dict[tuple[Any, ...], tuple[Definition, Callable[..., Any]]]
"""Types and ranks of arguments -> their specialisation, and what a call runs."""


def _types(args: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([(each.dtype, each.ndim) if type(each) is np.ndarray else type(each) for each in args])


class OpenDefinition:
    """All definitions of one name, specialised call by call.

    Attributes:
        latest: the specialisation of the last call; `None` before the first one.
    """

    def __init__(self, functions: Sequence[CheckedFunction], options: Options, source: SourceText) -> None:
        self.functions = tuple(functions)
        self.options = options
        self.source = source
        self.latest: Definition | None = None
        self._entries: dict[tuple[tuple[DType, int], ...], list[_Entry]] = {}
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        """Where all ranks are declared, the program is there before any call."""
        if len(self.functions) == 1:
            self.latest = self._declared(self.functions[0])

    def _declared(self, function: CheckedFunction) -> Definition | None:
        """What a function is for the ranks that it declares; `None` where one is open, or numbers are needed."""
        types, found = function.declared, function.specialized
        if types is None or found is None or found.program is None:
            return None
        analysis, _ = analyze_program(found.program)
        return _definition(Signature(types), found, analysis, self.options) if analysis.ok else None

    @property
    def name(self) -> str:
        """The name as written; it may be an operator."""
        return self.functions[0].name

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names of the first definition."""
        return tuple(param.name.name for param in self.functions[0].function.params)

    @property
    def span(self) -> Span:
        """The name of the first definition."""
        return self.functions[0].function.name.span

    @property
    def text(self) -> str:
        """The signatures of all definitions."""
        return "; ".join(function.signature for function in self.functions)

    def positional(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the first definition that has all the names.

        Raises:
            CallError: TC606.
        """
        lists = [tuple(param.name.name for param in function.function.params) for function in self.functions]
        fitting = [names for names in lists if len(names) == len(args) + len(named) and set(named) <= set(names)]
        names = (fitting or lists)[0]
        return positional(names, args, named, self.text, self.name, self.source, self.span)

    def call(self, values: Sequence[object], out: object) -> Any:
        """One call.

        Raises:
            CallError: the arguments do not fit, or the function has an error for these ranks.
        """
        return self.at(values).call(values, out)

    def general(self, *args: Any) -> Any:
        """A call with positional arguments only."""
        return self.call(args, None)

    def dispatcher(self) -> Callable[..., Any]:
        """The function of positional arguments that a call runs: for types and ranks that came before, that of theirs."""
        known: _Known = {}

        def run(*args: Any) -> Any:
            key = _types(args)
            found = known.get(key)
            if found is None:
                result = self.general(*args)
                if self._tells_the_code(args):
                    definition, short = self._short(args)
                    known[key] = definition, definition.dispatcher(self.general) if short else self.general
                return result
            self.latest, call = found
            return call(*args)

        return run

    def writer(self) -> Callable[..., Any]:
        """As `dispatcher`, for calls with `out=`: a function of the positional arguments and that object, which it returns."""
        known: _Known = {}

        def write(args: Sequence[Any], out: object) -> Any:
            key = _types(args)
            found = known.get(key)
            if found is None:
                self.call(args, out)
                if self._tells_the_code(args):
                    definition, short = self._short(args)
                    known[key] = definition, definition.writer(self.call) if short else self.call
                return out
            self.latest, call = found
            return call(args, out)

        return write

    def _tells_the_code(self, args: Sequence[Any]) -> bool:
        """Whether the types and ranks of NumPy arguments decide which code runs; other libraries have types of their own."""
        scalars = (bool, int, float, np.generic) if len(self.functions) == 1 else ()
        return all((type(each) is np.ndarray and each.ndim) or isinstance(each, scalars) for each in args)

    def _short(self, args: Sequence[Any]) -> tuple[Definition, bool]:
        """The specialisation for a call that was made, and whether calls of the same types and ranks may take its way."""
        entry = self._entry(args)
        bare = not entry.signature.values and all(each.extents is None for each in entry.signature.arguments)
        return entry.definition, bare

    def at(self, values: Sequence[object]) -> Definition:
        """The definition for the ranks, types and demanded values of these arguments.

        Raises:
            CallError: TC606, TC607, TC609, TC651, or an error that only these ranks show.
        """
        self.latest = self._entry(self.positional(values, {})).definition
        return self.latest

    def _entry(self, values: Sequence[object]) -> _Entry:
        read = [self._read(position, value) for position, value in enumerate(values)]
        arguments = [_argument_type(item) for item in read]
        key = tuple((argument.dtype, argument.rank) for argument in arguments)
        entries = self._entries.setdefault(key, [])

        def serving() -> _Entry | None:
            return next((entry for entry in entries if _serves(entry.signature, arguments, read)), None)

        found = serving()
        if found is not None:
            return found
        with MAKING, self._lock:
            entry = serving()
            if entry is None:
                entry = self._specialize(arguments, read)
                entries.append(entry)
            return entry

    def declared(self) -> list[Definition]:
        """What the definitions are whose ranks are all declared."""
        return [found for each in self.functions if (found := self._declared(each)) is not None]

    @property
    def leaves_ranks_open(self) -> bool:
        """Whether a definition takes arrays of every rank."""
        return any(function.rank_is_open for function in self.functions)

    def at_rank(self, rank: int) -> Definition:
        """The definition for small arrays, of this rank where a declaration leaves it open; as if they had been an argument.

        Raises:
            CallError: no definition takes this rank; the reason of the first one.
        """
        refused: list[CallError] = []
        for function in self.functions:
            try:
                return self.at([_example(param.type, rank) for param in function.function.params])
            except CallError as problem:
                refused.append(problem)
        raise refused[0]

    def rewrites(self, values: Sequence[object] = ()) -> tuple[Rewrites, ...]:
        """The three rewrites of every definition; with arguments, with the numbers of that call."""
        signature = None
        if values:
            types = [_argument_type(self._read(position, value)) for position, value in enumerate(values)]
            signature = Signature(tuple(types))
        return tuple(rewrites(each.cell, each.function, signature) for each in self.functions)

    def program_for(self, arguments: Sequence[ArgumentType]) -> Program | tuple[Diagnostic, ...]:
        """The program for arguments of these types, sizes as symbols; for callers in other cells."""
        chosen = select_overload([each.function for each in self.functions], arguments)
        function = next((each for each in self.functions if each.function is chosen), self.functions[0])
        return function.program_for(arguments)

    def _read(self, position: int, value: object) -> ArrayView | tuple[DType, Any]:
        """The memory of an array, or type and value of a number."""
        wanted = [_declared(function, position) for function in self.functions]
        name = self.names[position] if position < len(self.names) else f"argument {position}"
        span = self.span
        if not isinstance(value, np.generic) and library_of(value) is not None:
            return read_array_of_any_type(name, value, self.source, span)
        dtypes = [dtype for dtype in wanted if dtype is not None]
        number = value.item() if isinstance(value, np.generic) else value
        if isinstance(number, (bool, int, float)):
            exact = [
                dtype for dtype in dtypes if not misfit(dtype, number) and dtype.is_float == isinstance(number, float)
            ]
            fitting = exact or [dtype for dtype in dtypes if not misfit(dtype, number)]
            if fitting:
                return fitting[0], float(number) if fitting[0].is_float else number
        if not isinstance(value, (bool, int, float, np.generic)):
            return read_array_of_any_type(name, value, self.source, span)
        dtype = dtypes[0] if dtypes else DType.FLOAT64
        return dtype, read_scalar(Parameter(name, dtype, (), span), value, self.source)

    def _specialize(self, arguments: Sequence[ArgumentType], read: Sequence[Any]) -> _Entry:
        for fixed, scalars in ((False, False), (True, False), (True, True)):
            found = bind_call(self.functions, arguments, lambda at: _elements(read[at]), fixed=fixed, scalars=scalars)
            specialized = found.specialized
            if specialized is None or specialized.program is None:
                self._refuse(found.diagnostics)
            analysis, said = analyze_program(specialized.program)
            if analysis.ok:
                definition = _definition(found.signature, specialized, analysis, self.options)
                return _Entry(found.signature, definition)
            # a proof that fails for symbols may hold for the numbers of this call
            if scalars:
                self._refuse(said)
        raise AssertionError("unreachable")

    def _refuse(self, diagnostics: Sequence[Diagnostic]) -> NoReturn:
        errors = [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
        if errors:
            raise call_error(errors[0], self.source)
        fail(codes.INTERNAL, f"`{self.name}` could not be specialised for this call", self.source, self.span)


def _example(type_: SacType | None, rank: int) -> Any:
    """A small argument of a declared type: integer vectors get an element per axis, since most of them are shapes or indices."""
    dtype = (type_ and numpy_dtype(_dtype(type_))) or np.dtype(np.float32)
    if type_ is None or isinstance(type_.shape, str):
        return np.ones((_EXTENT,) * rank, dtype)
    other = rank if dtype.kind == "i" and type_.rank == 1 else _EXTENT
    return np.ones([other if extent is None else extent for extent in type_.shape], dtype)


def _declared(function: CheckedFunction, position: int) -> DType | None:
    params = function.function.params
    if position >= len(params):
        return None
    type_ = params[position].type
    return None if type_ is None else _dtype(type_)


def _dtype(type_: SacType) -> DType:
    return DType(BASES[type_.base])


def _argument_type(item: ArrayView | tuple[DType, Any]) -> ArgumentType:
    if isinstance(item, ArrayView):
        assert item.dtype is not None
        return ArgumentType(item.dtype, len(item.shape), item.shape)
    return ArgumentType(item[0], 0, ())


def _elements(item: ArrayView | tuple[DType, Any]) -> tuple[int | float | bool, ...]:
    """The elements of an argument in row-major order."""
    if isinstance(item, ArrayView):
        return tuple(host_values(item).ravel().tolist())
    return (item[1],)


def _serves(signature: Signature, arguments: Sequence[ArgumentType], read: Sequence[Any]) -> bool:
    """Whether a specialisation holds for a call: extents and values count where they are part of its signature."""
    empty = any(0 in (argument.extents or ()) for argument in arguments)
    for own, argument in zip(signature.arguments, arguments, strict=True):
        if (empty and own.extents is None) or (own.extents is not None and own.extents != argument.extents):
            return False
    return all(_elements(read[at]) == values for at, values in signature.values)


def _definition(
    signature: Signature, specialized: Specialized, analysis: FunctionAnalysis, options: Options
) -> Definition:
    """What a function is for a signature; extents that only range inference knows are named for its conditions."""
    used = set[str]().union(*(sizes_of(check.condition) for check in specialized.checks))
    used |= set[str]().union(*(sizes_of(expr) for check in specialized.checks for _, expr in check.shown))
    extents = {name: expr for name, expr in analysis.ranges.sizes.items() if name in used and "." in name}
    return Definition(analysis, options, None, Specialization(signature, specialized, extents))


def definition_of(functions: Sequence[CheckedFunction], signature: Signature, options: Options) -> Definition:
    """The definition for a signature that was found before, in another process too.

    Raises:
        CompileError: the function has an error for it.
    """
    chosen = select_overload([each.function for each in functions], signature.arguments)
    (function,) = (each for each in functions if each.function is chosen)
    found = specialize(function.cell, function.function, signature)
    said = found.diagnostics
    if found.program is not None:
        analysis, said = analyze_program(found.program)
        if analysis.ok:
            return _definition(signature, found, analysis, options)
    raise CompileError(said, function.cell.source, "\n".join(each.message for each in said if each.is_error))
