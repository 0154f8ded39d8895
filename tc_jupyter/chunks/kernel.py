"""The compiled def of a part. It travels as the text of the def, and every process compiles it once.

Worked example: sixty-four tasks of one layer hold one `ChunkKernel`. A worker that gets the first of them makes the code, or
finds it on its disk, and runs all of them with it.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tc_jupyter.compiler.analysis import Analysis, analyze
from tc_jupyter.compiler.definition import Definition, Options, engine_of
from tc_jupyter.compiler.function_analysis import analyze_program
from tc_jupyter.diagnostics import CallError, CompileError, Diagnostic
from tc_jupyter.program import Signature
from tc_jupyter.ranges.sets import operation_limit
from tc_jupyter.runtime import nvrtc
from tc_jupyter.runtime.arguments import call_error
from tc_jupyter.runtime.forks import MAKING
from tc_jupyter.runtime.kernel import read_inputs
from tc_jupyter.runtime.threads import one_thread

from .flat import Flat, flat
from .part import Part, part_program

_LOCK = threading.RLock()
_COMPILED: dict[str, Definition] = {}
_FOUND: dict[tuple[bytes, str, Signature | None], tuple[Definition, Flat]] = {}
OPERATIONS = 2000
"""Of the set library, for each proof about a part, which has three sizes for each of the def. What is not proved is looked at by
the task. A border in 3 dimensions took 6.0 s at 100,000, the limit elsewhere, and 0.4 s so, with 39 of 44 bounds proved."""
_MOST = 512
"""Kernels that a process keeps; it forgets all when there are more."""


@dataclass(frozen=True)
class ChunkKernel:
    """A part of a def that can be sent.

    Attributes:
        key: the same in every process; what differs in anything has another one.
        text: the pickled options of the def, its text among them.
        name: of the def.
        signature: for which calls it is what it is, of a `%%sac` function.
    """

    key: str
    text: bytes
    name: str
    part: Part
    signature: Signature | None

    def __call__(self, numbers: Mapping[str, int], arrays: Sequence[Any], scalars: Sequence[Any]) -> tuple[Any, ...]:
        """The results of the part.

        Args:
            numbers: sizes of the whole def, and where every array begins.
            arrays: the sources, in their order.
            scalars: the numbers of the signature.

        Raises:
            CallError: an array does not hold what is read; a check on data failed.
        """
        definition = self.definition()
        values: Sequence[Any] = (*arrays, *scalars)
        if self.part.entire:  # in the order of the signature
            rest, given = iter(scalars), dict(zip(self.part.sources, arrays, strict=True))
            values = [given[name] if name in given else next(rest) for name in definition.program.parameters]
        with one_thread():
            try:
                return _run(definition, values, numbers)
            except CallError as error:
                if self.part.entire:
                    raise
                raise call_error(self._of_a_chunk(error.diagnostic), error.source) from None

    def _of_a_chunk(self, said: Diagnostic) -> Diagnostic:
        """A message about the def that was written: without sizes of chunks, and where it counts within a chunk it says so."""
        counts = [name for axis in self.part.axes for name in (axis.first, axis.count)]
        labels = tuple(each for each in said.labels if not any(name in each.text for name in counts))
        first, semicolon, cure = (said.help or "").partition(";")
        inside = first.startswith("first at ")
        return replace(said, labels=labels, help=f"{first} of a chunk{semicolon}{cure}" if inside else said.help)

    def definition(self) -> Definition:
        """The compiled def, made at most once in a process."""
        found = _COMPILED.get(self.key)
        if found is None:
            with MAKING, _LOCK:
                found = _COMPILED.get(self.key)
                if found is None:
                    if len(_COMPILED) >= _MOST:
                        _COMPILED.clear()
                    options: Options = pickle.loads(self.text)
                    found = _COMPILED[self.key] = self._made(options)
        return found

    def _made(self, options: Options) -> Definition:
        key = self.text, self.name, self.signature
        if key not in _FOUND:
            if len(_FOUND) >= _MOST:
                _FOUND.clear()
            analysis = analyze(options.text, options.language, known=options.known)
            if not analysis.ok:
                raise CompileError(analysis.diagnostics, analysis.source, analysis.render())
            found = _whole(analysis, self.name, self.signature, options)
            _FOUND[key] = found, flat(found.program, found.found.ranges)
        found, about = _FOUND[key]
        if self.part.entire:
            return Definition(found.found, options, special=found.special)
        return _definition(about, self.part, options)


def _whole(analysis: Analysis, name: str, signature: Signature | None, options: Options) -> Definition:
    if signature is None:
        return Definition(analysis.functions[name], options)
    from tc_jupyter.compiler.open_definition import definition_of  # noqa: PLC0415  (only for that language)

    return definition_of(analysis.open_functions[name], signature, options)


def kernel_of(about: Flat, part: Part, options: Options, definition: Definition) -> ChunkKernel:
    """What computes a part of a def.

    Args:
        options: how the def was compiled; its text has no other def.
    """
    name, signature = definition.name, definition.special and definition.special.signature
    text = pickle.dumps(options, protocol=5)
    content = (
        about.program.statements,
        about.program.tensors,
        about.program.sizes,
        part,
        options.target,
        options.check,
    )
    key = hashlib.sha256(repr((name, *content, options.tf32)).encode()).hexdigest()[:32]
    return ChunkKernel(key, text, name, part, signature)


def _definition(about: Flat, part: Part, options: Options) -> Definition:
    program = part_program(about, part)
    with operation_limit(OPERATIONS):
        found, said = analyze_program(program)
    if not found.ok:
        errors = tuple(each for each in said if each.is_error)
        raise CompileError(errors, program.source, "\n".join(each.message for each in errors))
    return Definition(found, options)


def _run(definition: Definition, values: Sequence[Any], known: Mapping[str, int]) -> tuple[Any, ...]:
    inputs = read_inputs(definition.program, definition.written, values, known)
    numbers = definition.numbers_at(inputs.sizes)
    engine = engine_of(definition.options.target, inputs.device)
    layout = definition.layout(inputs, {}, numbers, engine)
    definition.verify(inputs)
    try:
        views, _ = definition.ready(engine, layout).run(inputs, numbers, {}, definition.options.check)
    except nvrtc.BackendError as error:
        raise call_error(error.diagnostic, definition.program.source) from error
    return tuple(inputs.library.finish(view) for view in views)
