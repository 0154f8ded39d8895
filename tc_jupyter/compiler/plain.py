"""A def as plain C99, without a schedule: what `f.source("c")` shows.

Worked example: `def mv(float(R, C) A, float(C) B) -> (o) { o(i) +=! A(i, j) * B(j) }` becomes the function in `codegen/c/emit.py`.
"""

from __future__ import annotations

from tc_jupyter.codegen.c import emit_c
from tc_jupyter.codegen.plain import PlainFunction
from tc_jupyter.loops import Buffer, lower, simplify, with_points
from tc_jupyter.ranges import to_expr, to_python
from tc_jupyter.runtime.kernel import root_of
from tc_jupyter.schedule import infer_symbolic, schedule_of

from .function_analysis import FunctionAnalysis
from .text_form import signature


def plain_c(found: FunctionAnalysis) -> PlainFunction:
    """The loops of the def in the order of its text, every stage whole.

    Its caller has to make sure of the conditions that the comment lists; the function checks nothing.
    """
    program = found.program
    arguments = [_argument(found, name, "input") for name in program.parameters]
    arguments += [_argument(found, name, "output") for name in program.results]
    bounds = infer_symbolic(schedule_of(program, found.ranges, zeros=True).graph, whole=True)
    kernels = tuple(simplify(with_points(simplify(kernel), checked=True, zeros=True)) for kernel in lower(bounds))
    stored = {root_of(program, name): name for name in program.results}
    return emit_c(program.name, kernels, program.sizes, arguments, stored, _comment(found))


def _argument(found: FunctionAnalysis, name: str, role: str) -> Buffer:
    tensor = found.program.tensor(name)
    shape = tuple(to_expr(high - low) for low, high in found.ranges.boxes[name].bounds)
    return Buffer(name, tensor.dtype, shape, role=role)


def _comment(found: FunctionAnalysis) -> list[str]:
    needed = [each.text for each in found.preconditions if each.status not in ("proved", "refuted")]
    needed += [f"{to_python(each.left)} == {to_python(each.right)}" for each in found.conditions.equalities]
    lines = [signature(found), "Arrays are row-major. Compile it with `cc -O3`, for all processors with `-fopenmp`."]
    lines += [f"The caller makes sure that {text}" for text in dict.fromkeys(needed)]
    integers = {tensor.dtype for tensor in found.program.tensors if tensor.dtype.is_signed}
    return [*lines, *(["Integers wrap around: compile it with `-fwrapv`."] if integers else [])]
