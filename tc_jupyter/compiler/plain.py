"""A def as plain loops, without a schedule: what `f.source("c")` and `f.source("numba")` show.

Worked example: `def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }` becomes the functions in `codegen/plain/c.py`
and `codegen/plain/numba.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from tc_jupyter.codegen.plain import NoForm, PlainFunction, emit_c, emit_numba
from tc_jupyter.diagnostics import codes
from tc_jupyter.loops import Buffer, lower, simplify, with_points
from tc_jupyter.ranges import to_expr, to_python
from tc_jupyter.runtime.arguments import fail
from tc_jupyter.runtime.kernel import root_of
from tc_jupyter.schedule import infer_symbolic, schedule_of

from .function_analysis import FunctionAnalysis
from .text_form import signature


def plain_c(found: FunctionAnalysis) -> PlainFunction:
    """The loops of the def in the order of its text, every stage whole.

    Its caller has to make sure of the conditions that the comment lists; the function checks nothing.
    """
    said = ["Arrays are row-major. Compile it with `cc -O3`, for all processors with `-fopenmp`."]
    integers = any(tensor.dtype.is_signed for tensor in found.program.tensors)
    return _printed(emit_c, found, said, ["Integers wrap around: compile it with `-fwrapv`."] if integers else [])


def plain_numba(found: FunctionAnalysis) -> PlainFunction:
    """The same loops in Python; the last arguments are the results.

    Raises:
        CallError: TC501 and TC504, Numba lacks a function or a type.
    """
    program = found.program
    pairs = any(program.tensor(name).pairs for name in (*program.parameters, *program.results))
    single = any(not program.tensor(name).rank for name in program.results)
    said = ["A complex `X` is passed as `X.view(X.real.dtype).reshape(*X.shape, 2)`."] if pairs else []
    said += ["A result without dimensions is an array of one element."] if single else []
    try:
        return _printed(emit_numba, found, said)
    except NoForm as problem:
        spans = (tensor.span for tensor in program.tensors if tensor.dtype is problem.dtype)
        span = problem.span if problem.span.end else next(spans, problem.span)
        code, help = codes.UNSUPPORTED, '`source("c")` prints it'
        if problem.dtype is not None:
            code, help = codes.DEVICE_TYPE, "declare it as `float`, or cast to `float`"
        fail(code, str(problem), program.source, span, help=help)


def _printed(
    emit: Callable[..., PlainFunction], found: FunctionAnalysis, said: list[str], more: list[str] | None = None
) -> PlainFunction:
    program = found.program
    arguments = [_argument(found, name, "input") for name in program.parameters]
    arguments += [_argument(found, name, "output") for name in program.results]
    bounds = infer_symbolic(schedule_of(program, found.ranges, zeros=True).graph, whole=True)
    kernels = tuple(simplify(with_points(simplify(kernel), checked=True, zeros=True)) for kernel in lower(bounds))
    stored = {root_of(program, name): name for name in program.results}
    comment = [signature(found), *said, *_conditions(found), *(more or ())]
    return emit(program.name, kernels, program.sizes, arguments, stored, comment)


def _argument(found: FunctionAnalysis, name: str, role: str) -> Buffer:
    tensor = found.program.tensor(name)
    shape = tuple(to_expr(high - low) for low, high in found.ranges.boxes[name].bounds)
    return Buffer(name, tensor.dtype, shape, role=role)


def _conditions(found: FunctionAnalysis) -> list[str]:
    needed = [each.text for each in found.preconditions if each.status not in ("proved", "refuted")]
    needed += [f"{to_python(each.left)} == {to_python(each.right)}" for each in found.conditions.equalities]
    return [f"The caller makes sure that {text}" for text in dict.fromkeys(needed)]
