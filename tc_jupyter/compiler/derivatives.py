"""The text of a def's derivatives: which parameters, which saved tensors, under which name.

Worked example: for `def f(float(N) X) -> (Y) { Y(i) = sin(X(i)) }` it is
`def f_vjp(float(N) X, float(N) dY) -> (float(N) dX) { dX(i) = dY(i) * cos(X(i)) }`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from tc_jupyter.gradient import jvp, refuse, root, steps_of, text_of, vjp
from tc_jupyter.program import Program
from tc_jupyter.ranges import Ranges

Kind = Literal["vjp", "jvp"]


def derived_text(
    program: Program, ranges: Ranges, kind: Kind, wrt: Iterable[str] | None = None, save: Iterable[str] = ()
) -> str:
    """The def of the derivatives backwards (`vjp`) or forwards (`jvp`).

    Args:
        wrt: names of parameters that are floats; by default all of them.
        save: results and temporaries that are taken as parameters and not computed again (`vjp`).

    Raises:
        CompileError: TC250, there is nothing to derive, or a function without a derivative.
        ValueError: a name is none of such a parameter or tensor.
    """
    chosen = differentiable(program) if wrt is None else checked(program, wrt)
    if not chosen:
        raise refuse(program, "no parameter is a float")
    if not any(program.tensor(name).dtype.is_float for name in program.results):
        raise refuse(program, "no result is a float")
    steps = steps_of(program, ranges)
    if kind == "jvp":
        return text_of(jvp(steps, f"{program.name}_jvp", chosen))
    return text_of(vjp(steps, f"{program.name}_vjp", chosen, _saved(program, save)))


def worth_saving(program: Program, ranges: Ranges, wrt: Sequence[str]) -> tuple[str, ...]:
    """The results that the derivatives by some parameters need, so that they are not computed again."""
    steps = steps_of(program, ranges)
    again = {root(step.target) for step in vjp(steps, program.name, wrt).forward}
    return tuple(name for name in program.results if steps.results[name][0] == name and name in again)


def differentiable(program: Program) -> tuple[str, ...]:
    """The parameters that are floats."""
    return tuple(name for name in program.parameters if program.tensor(name).dtype.is_float)


def checked(program: Program, names: Iterable[str]) -> tuple[str, ...]:
    """Names of parameters that are floats, each once.

    Raises:
        ValueError: a name is none of those.
    """
    known = differentiable(program)
    given = tuple(dict.fromkeys((names,) if isinstance(names, str) else names))
    for name in given:
        if name not in known:
            raise ValueError(f"wrt: {name!r} is no parameter of floats; there are {_listed(known)}")
    return given


def _saved(program: Program, names: Iterable[str]) -> tuple[str, ...]:
    known = [tensor.name for tensor in program.tensors if tensor.kind != "input" and tensor.view_of is None]
    given = tuple(dict.fromkeys((names,) if isinstance(names, str) else names))
    for name in given:
        if name not in known:
            raise ValueError(f"save: {name!r} is no result or temporary; there are {_listed(known)}")
    return given


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
