"""Named operations that can take the place of inner loops (`tensorize`), and when they fit.

An intrinsic stands for the loops over a tile: `mma_m16n8k16` is `for i < 16, j < 8, k < 16: C(i,j) += A(i,k) * B(k,j)` on 16-bit
floats with `float32` sums. The names are those that the code generators and the interpreter know.

Source: TVM, `tensorize` and TensorComputeOp; PTX ISA, `mma.sync` shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tc_jupyter.program import Binary, Cast, DType, Expr, IndexVar, Read

from .stage import Split, Stage, StageGraph, constant_extent


@dataclass(frozen=True, slots=True)
class MatrixStep:
    """`C(m,n) += A(m,k) * B(k,n)` over a tile of `extents = (m, n, k)`; operand and sum types."""

    name: str
    extents: tuple[int, int, int]
    operand: DType
    total: DType


INTRINSICS = {
    step.name: step
    for step in (
        MatrixStep("mma_m16n8k16_f16", (16, 8, 16), DType.FLOAT16, DType.FLOAT32),
        MatrixStep("mma_m16n8k16_bf16", (16, 8, 16), DType.BFLOAT16, DType.FLOAT32),
        MatrixStep("mma_m16n8k8_tf32", (16, 8, 8), DType.FLOAT32, DType.FLOAT32),
        MatrixStep("mma_m16n8k32_s8", (16, 8, 32), DType.INT8, DType.INT32),
    )
}


def match_intrinsic(graph: StageGraph, stage: Stage, axes: tuple[str, ...], name: str) -> str | None:
    """Why the loops `axes` of `stage` are not the intrinsic `name`; `None` if they are."""
    step = INTRINSICS.get(name)
    if step is None:
        return f"no such intrinsic; known are {', '.join(INTRINSICS)}"
    if stage.leaves[len(stage.leaves) - len(axes) :] != axes:
        return "the axes are not the innermost loops in this order"
    if len(axes) != 3:
        return "it has three axes: rows, columns, reduction"
    extents = tuple(constant_extent(stage, axis) for axis in axes)
    if extents != step.extents:
        return f"the extents are {extents}, not {step.extents}"
    kinds = tuple(stage.kind(axis) for axis in axes)
    if kinds != ("output", "output", "reduction"):
        return f"the axes are {kinds}, not two output axes and a reduction axis"
    if stage.statement.operator != "+":
        return f"the operator is `{stage.statement.operator}`, not `+`"
    if graph.program.tensor(stage.target).dtype.compute is not step.total:
        return f"the sum has type {graph.program.tensor(stage.target).dtype.value}, not {step.total.value}"
    return _operands_problem(stage, axes, step)


def _operands_problem(stage: Stage, axes: tuple[str, ...], step: MatrixStep) -> str | None:
    factors = _factors(stage.statement.value)
    if len(factors) != 2:
        return "the value is not a product of two reads"
    rows, columns, inner = (_root_of(stage, axis) for axis in axes)
    for read in factors:
        if read.dtype is not step.operand:
            return f"`{read.tensor}` has elements of type {read.dtype.value}, not {step.operand.value}"
    used = [{index.name for index in read.indices if isinstance(index, IndexVar)} for read in factors]
    if not any({rows, inner} <= a and {columns, inner} <= b for a, b in (used, reversed(used))):
        return "one factor must be read at (row, reduction), the other at (reduction, column)"
    return None


def _factors(value: Expr) -> list[Read]:
    """The two reads of a product, through casts."""
    while isinstance(value, Cast):
        value = value.operand
    if isinstance(value, Read):
        return [value]
    if isinstance(value, Binary) and value.op == "*":
        return _factors(value.left) + _factors(value.right)
    return []


def _root_of(stage: Stage, axis: str) -> str:
    for relation in stage.relations:
        if isinstance(relation, Split) and axis in (relation.outer, relation.inner):
            return _root_of(stage, relation.parent)
    return axis
