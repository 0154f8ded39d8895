"""The text of a def's derivatives: which parameters, which saved tensors, under which name.

Worked example: for `def f(float(N) X) -> (Y) { Y(i) = sin(X(i)) }` it is
`def f_vjp(float(N) X, float(N) dY) -> (float(N) dX) { dX(i) = dY(i) * cos(X(i)) }`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tc_jupyter.diagnostics import codes, nearest, shown_value
from tc_jupyter.diagnostics.values import one_or_more
from tc_jupyter.diagnostics.work import TooMuchWork, allowed
from tc_jupyter.gradient import (
    Derived,
    Steps,
    Ties,
    batched,
    jvp,
    reads,
    refuse,
    remembered,
    root,
    steps_of,
    takes,
    text_of,
    vjp,
)
from tc_jupyter.program import Program, Tensor
from tc_jupyter.ranges import Ranges, SizeExpr, from_expr, maximum
from tc_jupyter.runtime.arguments import fail
from tc_jupyter.runtime.arrays import numpy_dtype
from tc_jupyter.schedule import infer_symbolic, stage_graph

Kind = Literal["vjp", "jvp", "tangent", "batch"]
STEPS = 1_000_000
"""Of one derivation: some seconds."""
LONGEST = 200_000
"""Characters of a derived text: that of a derivative of a derivative may be four times as long, and so on."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """The text of a derived def.

    Attributes:
        takes: the parameters of the def it is about that it takes.
        reads: those of which it reads elements.
        saved: results of that def, which it takes behind them.
    """

    text: str
    takes: tuple[str, ...]
    reads: frozenset[str]
    saved: tuple[str, ...] = ()


def derived_text(
    program: Program, ranges: Ranges, kind: Kind, wrt: Iterable[str] | None = None, save: Iterable[str] = ()
) -> str:
    """The def of the derivatives backwards (`vjp`) or forwards (`jvp`), as `derivation` says.

    Raises:
        CallError: TC606, a name is none of such a parameter or tensor.
    """
    return derivation(program, ranges, kind, *checked(program, wrt, save)).text


def derivation(
    program: Program,
    ranges: Ranges,
    kind: Kind,
    wrt: Iterable[str] | None = None,
    save: Iterable[str] = (),
    lean: bool = False,
    ties: Ties = "first",
) -> Derivation:
    """The def of the derivatives backwards (`vjp`) or forwards (`jvp`, without the results `tangent`), or of many calls (`batch`).

    Args:
        wrt: names of parameters that are floats, as `checked` gives them; by default all of them. Of `batch`, the parameters that
            there are many of.
        save: results and temporaries that are taken as parameters and not computed again, as `checked` gives them.
        lean: leave parameters out that nothing reads.
        ties: which of the points that attain an extreme value get its derivative.

    Raises:
        CompileError: TC250, there is nothing to derive, or a function without a derivative.
    """
    chosen = tuple(wrt or ()) if wrt is not None or kind == "batch" else differentiable(program)
    if not chosen:
        raise refuse(program, "no parameter is a float" if wrt is None else "`wrt` names no parameter")
    if kind != "batch" and not any(program.tensor(name).dtype.is_float for name in program.results):
        raise refuse(program, "no result is a float")
    with _limited(program):
        steps = steps_about(program, ranges, save)
        made = replace(_made(steps, kind, f"{program.name}_{kind}", chosen, tuple(save), ties), lean=lean)
        return _printed(made)


def remembering(program: Program, ranges: Ranges, wrt: Sequence[str]) -> tuple[Derivation, Derivation] | None:
    """The def with what its derivatives need beside as results, and these derivatives; `None` where they need no more.

    Raises:
        CompileError: TC250, a function without a derivative.
    """
    with _limited(program):
        whole = vjp(steps_about(program, ranges), f"{program.name}_vjp", wrt)
        found = remembered(whole, f"{program.name}_kept")
        return None if found is None else (_printed(found[0]), _printed(found[1]))


def steps_about(program: Program, ranges: Ranges, save: Iterable[str] = ()) -> Steps:
    """The steps of a def, without elements whose points would be looked at though no call of the def computes them.

    Raises:
        CompileError: TC250, a type, a range or an order of which derivatives are not known.
    """
    checked = {each.target for each in program.statements if each.name in ranges.at_points}
    some = checked - {*program.results, *save}
    return steps_of(program, ranges, _needed(program, ranges, some) if some else None)


def _needed(
    program: Program, ranges: Ranges, names: Iterable[str]
) -> Mapping[str, tuple[tuple[SizeExpr, SizeExpr], ...]]:
    """The boxes of what calls compute of some tensors, where that is not all."""
    graph = stage_graph(program, ranges)
    bounds, boxes = infer_symbolic(graph), dict[str, tuple[tuple[SizeExpr, SizeExpr], ...]]()
    for name in names:
        if program.tensor(name).view_of is not None or not (stages := graph.stages_on(name)):
            continue
        box = tuple((low, low + extent) for low, extent in bounds[stages[0].name].box)
        if box != ranges.boxes[name].bounds:
            boxes[name] = tuple((low, maximum(low, high)) for low, high in box)
    return boxes


@contextmanager
def _limited(program: Program) -> Generator[None]:
    """See to it that a derivation ends.

    Raises:
        CompileError: TC250, it takes too long.
    """
    try:
        with allowed(STEPS):
            yield
    except (TooMuchWork, RecursionError):
        raise refuse(program, "it would take too long to find") from None


def _printed(made: Derived) -> Derivation:
    """The text of a def that was derived.

    Raises:
        CompileError: TC250, it is too long.
    """
    program, text = made.about.program, text_of(made)
    if len(text) > LONGEST:
        raise refuse(program, f"it would be longer than {LONGEST} characters")
    return Derivation(text, takes(made), reads(made), tuple(name for name in made.saved if name in program.results))


def _made(steps: Steps, kind: Kind, name: str, chosen: Sequence[str], saved: Sequence[str], ties: Ties) -> Derived:
    match kind:
        case "vjp":
            return vjp(steps, name, chosen, saved, ties)
        case "jvp" | "tangent":
            return jvp(steps, name, chosen, saved, kind == "tangent", ties)
        case "batch":
            return batched(steps, name, chosen)


def worth_saving(program: Program, ranges: Ranges, wrt: Sequence[str]) -> tuple[str, ...]:
    """The results that the derivatives by some parameters need, so that they are not computed again."""
    steps = steps_about(program, ranges)
    again = {root(step.target) for step in vjp(steps, program.name, wrt).forward}
    return tuple(name for name in program.results if steps.results[name][0] == name and name in again)


def check_rule(program: Program, rule: Program) -> None:
    """See whether a def has the signature of the derivatives of another one.

    Raises:
        ValueError: it has not.
    """
    floats = [name for name in program.results if program.tensor(name).dtype.is_float]
    wanted = [_kind(program, name) for name in (*program.parameters, *floats)]
    given = [_kind(rule, name) for name in rule.parameters]
    wanted_back = [_kind(program, name) for name in differentiable(program)]
    given_back = [_kind(rule, name) for name in rule.results]
    if wanted != given or wanted_back != given_back:
        raise ValueError(
            f"with_vjp: `{rule.name}` takes ({', '.join(given)}) and gives ({', '.join(given_back)}); "
            f"the derivatives of `{program.name}` take ({', '.join(wanted)}) and give ({', '.join(wanted_back)})"
        )


def _kind(program: Program, name: str) -> str:
    tensor = program.tensor(name)
    return f"{tensor.dtype.value}, rank {tensor.rank}"


def samples(program: Program) -> Iterator[list[Any]]:
    """Arguments of a def at small sizes, some of which a call may refuse."""
    for base in (3, 4, 7):
        for turn in range(3):
            random = np.random.default_rng([base, turn])
            known = {name: base + turn * (place % 2) for place, name in enumerate(program.sizes)}
            known |= dict.fromkeys(program.integer_scalars, 1)
            yield [_sample(program.tensor(name), known, random) for name in program.parameters]


def _sample(tensor: Tensor, known: Mapping[str, int], random: np.random.Generator) -> Any:
    if tensor.name in known and not tensor.rank:
        return known[tensor.name]
    shape = tuple(max(0, from_expr(dim).evaluate(known)) for dim in tensor.dims or ())
    values = random.uniform(0.3, 0.9, shape) if tensor.dtype.is_float else random.integers(0, 2, shape)
    if tensor.pairs:
        return values[..., 0] + 1j * values[..., 1]
    return (
        np.asarray(values).astype(numpy_dtype(tensor.dtype))
        if shape
        else values.item()
        if hasattr(values, "item")
        else values
    )


def differentiable(program: Program) -> tuple[str, ...]:
    """The parameters that are floats."""
    return tuple(name for name in program.parameters if program.tensor(name).dtype.is_float)


def checked(
    program: Program, wrt: str | Iterable[str] | None, save: str | Iterable[str] = ()
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Names of parameters that are floats, and of results and temporaries, each once.

    Raises:
        CallError: TC606, a name is none of those.
    """
    kept = [tensor.name for tensor in program.tensors if tensor.kind != "input" and tensor.view_of is None]
    saved = _known(program, "save", save, kept, "result or temporary")
    if wrt is None:
        return None, saved
    return _known(program, "wrt", wrt, differentiable(program), "parameter of floats"), saved


def _known(program: Program, option: str, given: object, known: Sequence[str], what: str) -> tuple[str, ...]:
    """The names of an option, which all have to be known.

    Raises:
        CallError: TC606.
    """
    names = one_or_more(given)
    for name in names:
        if name not in known:
            close = nearest(name, known) if isinstance(name, str) else None
            message = f"{option}: {shown_value(name)} is no {what}; there are {', '.join(known) or 'none'}"
            help = f"did you mean `{close}`?" if close else None
            fail(codes.CALL_ARGUMENTS, message, program.source, program.span, help=help)
    return names
