"""Which messages about a call repeat what the called def, or its cell, has said already.

Comes in: a program with its messages, and those of the programs that it calls. Goes out: the messages that are new at the call.

Worked example: `f` warns that `Z(i)` stays inside `Z` only if `M <= N`. In `def g(..) { H = f(X, A) }` the same is found of
`A(i)`, and nobody has to read it twice. Where sizes at the call refute it, the message is an error, and shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.program import CallSite, Program

from .function_analysis import analyze_program

_Key: TypeAlias = tuple[str, str]
"""Code of a message, and the tensor or index that it is about, as the caller names it."""

Known: TypeAlias = Callable[[str], Sequence[tuple[Program, Sequence[Diagnostic]]]]
"""A called def by name, with all of its messages; several where it has several definitions, none where nobody has seen messages."""


def of_earlier_cells(known: Mapping[str, Any] | None) -> Known:
    """The functions of earlier cells; of definitions whose ranks are open until a call, nobody has seen messages."""

    @cache
    def of(name: str) -> Sequence[tuple[Program, Sequence[Diagnostic]]]:
        value: Any = (known or {}).get(name)
        programs: Sequence[Program] = (value,) if isinstance(value, Program) else getattr(value, "_shown_programs", ())
        return [(program, analyze_program(program)[1]) for program in programs]

    return of


def new_at_calls(program: Program, said: Iterable[Diagnostic], known: Known) -> list[Diagnostic]:
    """The messages without those about a call that its def has of the same tensors, as often or more often."""
    said = list(said)
    repeated = {id(each) for call in program.calls for each in _repeated(call, said, known)}
    return [each for each in said if id(each) not in repeated]


def _repeated(call: CallSite, said: Sequence[Diagnostic], known: Known) -> list[Diagnostic]:
    here = [each for each in said if each.span == call.span]
    before = Counter[_Key]()
    for program, told in known(call.callee) if here else ():
        names = dict(zip(_named(program, len(call.arguments)), call.arguments, strict=False))
        before |= Counter(_key(each, names) for each in told)
    now = Counter(_key(each, {}) for each in here)
    return [each for each in here if now[key := _key(each, {})] <= before[key]]


def _named(program: Program, count: int) -> Sequence[str]:
    """The parameters that a call names the arguments of: all, or, in `%%sac`, the arrays."""
    names = program.parameters
    return names if len(names) == count else [name for name in names if program.tensor(name).rank]


def _key(message: Diagnostic, names: Mapping[str, str]) -> _Key:
    first = re.search(r"`([\w.#]+)", message.message)
    name = names.get(first[1], first[1]) if first else ""
    return message.code.number, name.rpartition(".")[2]  # the copy of `Y` of `f` is `f.Y`
