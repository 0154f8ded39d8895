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

Known: TypeAlias = Callable[[str], tuple[Program, Sequence[Diagnostic]] | None]
"""A called def by name, with all of its messages; `None` where nobody has seen them."""


def of_earlier_cells(known: Mapping[str, Any] | None) -> Known:
    """The functions of earlier cells; of those whose ranks are open until a call, nobody has seen messages."""

    @cache
    def of(name: str) -> tuple[Program, Sequence[Diagnostic]] | None:
        value: Any = (known or {}).get(name)
        program = value.program_for(()) if hasattr(value, "program_for") else value
        return (program, analyze_program(program)[1]) if isinstance(program, Program) else None

    return of


def new_at_calls(program: Program, said: Iterable[Diagnostic], known: Known) -> list[Diagnostic]:
    """The messages without those warnings and notes about a call that its def has of the same tensors, as often or more often."""
    said = list(said)
    repeated = {id(each) for call in program.calls for each in _repeated(call, said, known)}
    return [each for each in said if id(each) not in repeated]


def _repeated(call: CallSite, said: Sequence[Diagnostic], known: Known) -> list[Diagnostic]:
    here = [each for each in said if not each.is_error and each.span == call.span]
    callee = known(call.callee) if here else None
    if callee is None:
        return []
    program, told = callee
    names = dict(zip(program.parameters, call.arguments, strict=False))
    before = Counter(_key(each, names) for each in told)
    now = Counter(_key(each, {}) for each in here)
    return [each for each in here if now[key := _key(each, {})] <= before[key]]


def _key(message: Diagnostic, names: Mapping[str, str]) -> _Key:
    first = re.search(r"`([\w.#]+)", message.message)
    name = names.get(first[1], first[1]) if first else ""
    return message.code.number, name.rpartition(".")[2]  # the copy of `Y` of `f` is `f.Y`
