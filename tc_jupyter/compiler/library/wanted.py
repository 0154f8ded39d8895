"""What a library has of a function: one def, or, of a `%%sac` function, one for all ranks and types
that are asked for.

Worked example: `double[*] smooth(double[*] a)` with `ranks=(1, 2)` is `smooth_1d` and `smooth_2d`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from tc_jupyter.compiler.definition import Definition
from tc_jupyter.diagnostics import NO_SPAN, Diagnostic, SourceText, codes
from tc_jupyter.runtime.arguments import call_error

if TYPE_CHECKING:  # libraries of `%%tc` defs do not pay for the other language
    from tc_jupyter.compiler.open_definition import OpenDefinition


@dataclass(frozen=True, slots=True)
class Wanted:
    """A def of a library.

    Attributes:
        name: that the C function has, as far as C has such names.
        like: calls for which there is code beside that for all sizes.
    """

    definition: Definition
    name: str
    like: tuple[Any, ...] = ()

    @property
    def sizes(self) -> set[str]:
        """All numbers that a call by sizes gives."""
        return {*self.definition.program.sizes, *self.definition.program.integer_scalars}


def wanted(function: Definition | OpenDefinition, ranks: Sequence[int], like: Sequence[Any]) -> list[Wanted]:
    """The defs of a function.

    Args:
        ranks: of arrays where the text leaves them open.
        like: calls, each the arrays of one, or sizes by name; arrays tell ranks, too.

    Raises:
        CallError: TC663, nothing tells the ranks, or more than ranks and types decides what is computed; the arguments do not fit.
    """
    if isinstance(function, Definition):
        _refuse_special(function)
        return [Wanted(function, function.name, tuple(like))]
    found = {_key(each): Wanted(each, function.name) for each in function.declared()}
    if function.leaves_ranks_open:
        for definition in map(function.at_rank, ranks):
            found.setdefault(_key(definition), Wanted(definition, function.name))
    for call in like:
        if not isinstance(call, Mapping):
            definition = function.at(call if isinstance(call, (tuple, list)) else (call,))
            own = found.get(_key(definition), Wanted(definition, function.name))
            found[_key(definition)] = replace(own, like=(*own.like, call))
    if not found:
        if not function.leaves_ranks_open:
            _refuse(f"what `{function.name}` computes depends on elements of its arguments", _ALIKE, function.source)
        message = f"nothing tells the ranks of the arrays that `{function.name}` takes"
        _refuse(message, "`ranks=(1, 2)` tells them, or the arrays of `like=[(a,)]`", function.source)
    named = [call for call in like if isinstance(call, Mapping)]
    several = len(found) > 1
    for key, each in found.items():
        _refuse_special(each.definition)
        name = f"{each.name}_{_ranks(each.definition)}" if several else each.name
        own = [call for call in named if not several or {*call} == each.sizes]
        found[key] = replace(each, name=name, like=(*each.like, *own))
    return [*found.values()]


_ALIKE = "the calls of a library run one code: make it sizes of arrays, or numbers that a `%%tc` def takes"


def _key(definition: Definition) -> object:
    return definition.special and definition.special.signature


def _ranks(definition: Definition) -> str:
    ranks = [each.rank for each in definition.written if each.rank]
    return "_".join(f"{rank}d" for rank in (ranks[:1] if len({*ranks}) == 1 else ranks)) or "0d"


def _refuse_special(definition: Definition) -> None:
    """TC663, where more than ranks and types decides what is computed."""
    signature = definition.special and definition.special.signature
    if not signature:
        return
    names = [definition.names[at] for at, _ in signature.values]
    if names:
        message = f"what `{definition.name}` computes depends on the elements of `{names[0]}`"
    elif any(each.extents is not None for each in signature.arguments):
        message = f"what `{definition.name}` computes depends on the sizes of its arguments in more than its ranges"
    else:
        return
    _refuse(message, _ALIKE, definition.program.source)


def _refuse(message: str, help: str, source: SourceText) -> NoReturn:
    """Raise TC663.

    Raises:
        CallError: always.
    """
    raise call_error(Diagnostic(codes.NOT_EXPORTED, NO_SPAN, message, help=help), source)
