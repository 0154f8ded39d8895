"""What a library has of a function: one def, or, of a `%%sac` function, one for all ranks and types
that are asked for.

Worked example: `double[*] smooth(double[*] a)` with `ranks=(1, 2)` is `smooth_1d` and `smooth_2d`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        ValueError: sizes by name are not all sizes of any of several defs.
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
    lost = [call for call in named if len(found) > 1 and all({*call} != each.sizes for each in found.values())]
    names = _names([*found.values()])
    for (key, each), name in zip(found.items(), names, strict=True):
        _refuse_special(each.definition)
        own = [call for call in named if len(found) == 1 or {*call} == each.sizes]
        found[key] = replace(each, name=name, like=(*each.like, *own))
    if lost:
        known = "; ".join(f"of `{each.name}` {', '.join(sorted(each.sizes)) or 'none'}" for each in found.values())
        raise ValueError(f"like={dict(lost[0])!r}: these are not all sizes of any def; the sizes are {known}")
    return [*found.values()]


_ALIKE = "the calls of a library run one code: make it sizes of arrays, or numbers that a `%%tc` def takes"


def _key(definition: Definition) -> object:
    return definition.special and definition.special.signature


def _names(defs: Sequence[Wanted]) -> list[str]:
    """A name for each def of a function: with its ranks where there are several, and with its types where that is not enough."""
    if len(defs) == 1:
        return [defs[0].name]
    ranks = [_joined(f"{p.rank}d" for p in each.definition.written if p.rank) or "0d" for each in defs]
    types = [_joined(p.dtype.value for p in each.definition.written) for each in defs]
    return [
        f"{each.name}_{rank}_{dtype}" if ranks.count(rank) > 1 else f"{each.name}_{rank}"
        for each, rank, dtype in zip(defs, ranks, types, strict=True)
    ]


def _joined(words: Iterable[str]) -> str:
    """The words with lines between them; of equal ones the first."""
    all_words = [*words]
    return "_".join(all_words[:1] if len({*all_words}) == 1 else all_words)


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
