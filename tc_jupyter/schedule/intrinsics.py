"""Named operations that can take the place of inner loops (`tensorize`), and when they fit.

An intrinsic stands for the loops over a tile: `mma_m16n8k16_f16` is `for i < 16, j < 8, k < 16: C(i,j) += A(i,k) * B(k,j)` on
16-bit floats with `float32` sums. A warp holds the three tiles of an `mma_...` in its registers; a `fma_...` (an outer product, one
step of the reduction) and a `dot_...` (four steps of it in 32 bits) work on the vector registers of a CPU. Every engine runs all of
them: one without the instruction runs the loops that it stands for (`loops/expand.py`).

Worked example: after `split("C", "i", 16)`, `split("C", "j", 8)`, `split("C", "k", 16)` and a `reorder` that puts the three inner
loops innermost, `tensorize("C", ("i.inner", "j.inner", "k.inner"), "mma_m16n8k16_f16")`.

Source: TVM, `tensorize` and TensorComputeOp; PTX ISA, `mma.sync` shapes; Goto and van de Geijn, "Anatomy of high-performance matrix
multiplication", TOMS 2008 (the outer product on registers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tc_jupyter.program import DType, Read, factors_of
from tc_jupyter.ranges import SizeExpr, constant, from_expr, index

from .inline import inject_inline
from .stage import Split, Stage, StageGraph, children_of, constant_extent

AXES = ("row", "column", "reduction")


@dataclass(frozen=True, slots=True)
class MatrixStep:
    """`C(m,n) += A(m,k) * B(k,n)` over a tile of `extents = (m, n, k)`.

    Attributes:
        left, right: element types of A and B.
        total: type of the sum.
        unit: `warp` (the 32 threads of a warp hold the tiles in registers) or `vector` (the tiles lie in memory or in the vector
            registers of one thread).
        along_depth: A and B must be stored with the reduction innermost.
        feature: of a CPU that has it as an instruction or two; empty if none has.
    """

    name: str
    extents: tuple[int, int, int]
    left: DType
    right: DType
    total: DType
    unit: str
    along_depth: bool = False
    feature: str = ""

    @property
    def axes(self) -> tuple[str, ...]:
        """The loops that it stands for, outermost first; a single row, or step of the reduction, is no loop."""
        return tuple(axis for axis, extent in zip(AXES, self.extents, strict=True) if extent > 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Iterations of the loops that it stands for."""
        return tuple(extent for extent in self.extents if extent > 1)


_F16, _BF16, _F32, _F64 = DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64
STEPS = {
    step.name: step
    for step in (
        MatrixStep("mma_m16n8k16_f16", (16, 8, 16), _F16, _F16, _F32, "warp"),
        MatrixStep("mma_m16n8k16_bf16", (16, 8, 16), _BF16, _BF16, _F32, "warp"),
        MatrixStep("mma_m16n8k8_tf32", (16, 8, 8), _F32, _F32, _F32, "warp"),
        MatrixStep("mma_m16n8k32_s8", (16, 8, 32), DType.INT8, DType.INT8, DType.INT32, "warp"),
        MatrixStep("fma_6x16_f32", (6, 16, 1), _F32, _F32, _F32, "vector"),
        MatrixStep("fma_14x32_f32", (14, 32, 1), _F32, _F32, _F32, "vector"),
        MatrixStep("fma_6x8_f64", (6, 8, 1), _F64, _F64, _F64, "vector"),
        MatrixStep("fma_14x16_f64", (14, 16, 1), _F64, _F64, _F64, "vector"),
        *(
            MatrixStep(name, extents, left, right, total, "vector", along_depth=True, feature=feature)
            for name, extents, left, right, total, feature in (
                ("dot_4x16x4_u8s8", (4, 16, 4), DType.UINT8, DType.INT8, DType.INT32, "avx512vnni"),
                ("dot_1x16x4_u8s8", (1, 16, 4), DType.UINT8, DType.INT8, DType.INT32, "avx512vnni"),
                ("dot_1x16x4_s8u8", (1, 16, 4), DType.INT8, DType.UINT8, DType.INT32, "avx512vnni"),
                ("dot_1x16x2_s16", (1, 16, 2), DType.INT16, DType.INT16, DType.INT32, "avx512bw"),
                ("dot_1x8x2_s16", (1, 8, 2), DType.INT16, DType.INT16, DType.INT32, "avx2"),
                ("dot_1x16x2_bf16", (1, 16, 2), _BF16, _BF16, _F32, "avx512bf16"),
            )
        ),
    )
}
"""Intrinsics by name. A `fma` of 6 rows fits 16 registers, one of 14 rows 32 registers, of two vectors a row."""


@dataclass(frozen=True, slots=True)
class Tile:
    """An operand of a matrix step.

    Attributes:
        read: the read in the statement.
        dimensions: the dimension of its storage along which each axis of the step moves it by one element.
    """

    read: Read
    dimensions: Mapping[str, int]


def match_intrinsic(graph: StageGraph, stage: Stage, axes: tuple[str, ...], name: str) -> str | None:
    """Why the loops `axes` of `stage` are not the intrinsic `name`; `None` if they are."""
    step = STEPS.get(str(name))
    if step is None:
        return f"no such intrinsic; known are {', '.join(STEPS)}"
    return next(_problems(graph, stage, axes, step), None)


def _problems(graph: StageGraph, stage: Stage, axes: tuple[str, ...], step: MatrixStep) -> Iterator[str]:
    if len(axes) != len(step.axes):
        yield f"it has {len(step.axes)} axes: {', '.join(step.axes)}"
        return
    if stage.leaves[len(stage.leaves) - len(axes) :] != axes:
        yield "the axes are not the innermost loops in this order"
    extents = tuple(constant_extent(stage, axis) for axis in axes)
    if extents != step.sizes:
        shown = " x ".join("?" if extent is None else str(extent) for extent in extents)
        yield f"the extents are {shown}, not {' x '.join(map(str, step.sizes))}"
    kinds = tuple(stage.kind(axis) for axis in axes)
    if kinds != tuple("reduction" if axis == "reduction" else "output" for axis in step.axes):
        wanted = "two output axes" if "row" in step.axes else "an output axis"
        yield f"the axes are {', '.join(kinds)}, not {wanted} and then a reduction axis"
        return
    if stage.statement.operator != "+" or stage.statement.combine is not None:
        yield f"the operator is `{stage.statement.operator}`, not `+`"
    if not stage.statement.reduction_indices:
        yield "the statement sums nothing"
    total = graph.program.tensor(stage.target).dtype
    if total.compute is not step.total:
        yield f"the sum has type {total.value}, not {step.total.value}"
    busy = next((axis for axis in axes if stage.annotation(axis) is not None), None)
    if busy is not None:
        yield f"`{busy}` is `{stage.annotation(busy)}` already"
    inside = next((each for each in graph.attached(stage.name) if each.attach.axis in axes), None)
    if inside is not None:
        yield f"`{inside.name}` is attached inside it"
    if stage.attach.kind == "with" and graph.stage(stage.attach.stage).leaves.index(stage.attach.axis) >= len(
        stage.leaves
    ) - len(axes):
        yield f"some of the loops are those of `{stage.attach.stage}`"
    yield from _loops_problems(stage, axes, step)
    yield from _operand_problems(graph, stage, axes, step)
    yield from _warp_problem(graph, stage, step)


def _loops_problems(stage: Stage, axes: tuple[str, ...], step: MatrixStep) -> Iterator[str]:
    """What the loops around a step must be: split, not fused; those that repeat it over registers of constant length."""
    for axis in axes:
        root = root_of(stage, axis)
        if root is None:
            yield f"`{axis}` comes from a fused loop"
        elif not _is_innermost_part(stage, axis):
            yield f"`{axis}` does not run over neighbours: take the inner part of a split"
    if step.unit == "warp":
        parts = {root_of(stage, axis) for axis in axes[:2]}
        for leaf in stage.leaves[first_reduction(stage) : len(stage.leaves) - len(axes)]:
            if stage.kind(leaf) == "output" and (
                constant_extent(stage, leaf) is None or root_of(stage, leaf) not in parts
            ):
                yield f"`{leaf}` inside the reduction is no part of constant length of a row or column of the step"


def first_reduction(stage: Stage) -> int:
    """Position of the outermost reduction leaf; the number of leaves if there is none."""
    return next((n for n, leaf in enumerate(stage.leaves) if stage.kind(leaf) == "reduction"), len(stage.leaves))


def _operand_problems(graph: StageGraph, stage: Stage, axes: tuple[str, ...], step: MatrixStep) -> Iterator[str]:
    factors = factors_of(stage.statement.value, step.total)
    if len(factors) != 2:
        yield "the value is not a product of two reads"
        return
    if any(graph.storage_name(read.tensor) == graph.storage_name(stage.target) for read in factors):
        yield f"it reads `{stage.target}` itself"
    found = operands(graph, stage, axes, step)
    if isinstance(found, str):
        yield found
        return
    for tile, dtype in zip(found, (step.left, step.right), strict=True):
        name = tile.read.tensor
        if tile.read.dtype is not dtype:
            yield f"`{name}` has elements of type {tile.read.dtype.value}, not {dtype.value}"
        if step.along_depth and not _is_along_depth(graph, tile):
            yield f"`{name}` is not stored with the reduction innermost; `cache_read` it, with a layout"
    if step.unit == "vector" and total_dimensions(graph, stage, axes, step) is None:
        yield f"`{stage.target}` does not move by single elements along the axes of the step"


def _is_along_depth(graph: StageGraph, tile: Tile) -> bool:
    """Whether the elements that one step sums are neighbours, and the columns, if any, follow each other."""
    last = len(_storage_dimensions(graph, tile.read.tensor)) - 1
    return tile.dimensions["reduction"] == last and tile.dimensions.get("column", last - 1) == last - 1


def operands(graph: StageGraph, stage: Stage, axes: tuple[str, ...], step: MatrixStep) -> tuple[Tile, Tile] | str:
    """Left and right operand of a step that stands for `axes`, or why there are none."""
    roots = {root_of(stage, axis) or "": kind for axis, kind in zip(axes, step.axes, strict=True)}
    lengths = dict(zip(roots, step.sizes, strict=True))
    found: dict[str, Tile] = {}
    for read in factors_of(stage.statement.value, step.total):
        dimensions = _dimensions(graph, read.tensor, [from_expr(each) for each in read.indices], roots, lengths)
        if dimensions is None:
            name = read.tensor
            return (
                f"`{name}` does not move by single elements along the axes of the step; `cache_read` it, with a layout"
            )
        side = "right" if "column" in dimensions else "left"
        needed = {"row" if side == "left" else "column", "reduction"} & set(step.axes)
        if set(dimensions) != needed or side in found:
            return "one factor must be read at (row, reduction), the other at (reduction, column)"
        if step.unit == "warp" and set(dimensions.values()) != {len(read.indices) - 2, len(read.indices) - 1}:
            return f"the tile of `{read.tensor}` does not lie in its last two dimensions"
        found[side] = Tile(read, dimensions)
    return found["left"], found["right"]


def total_dimensions(
    graph: StageGraph, stage: Stage, axes: tuple[str, ...], step: MatrixStep
) -> Mapping[str, int] | None:
    """As `Tile.dimensions`, for what the stage writes."""
    roots = {root_of(stage, axis) or "": kind for axis, kind in zip(axes, step.axes, strict=True)}
    lengths = dict(zip(roots, step.sizes, strict=True))
    outputs = [index(root.name) for root in stage.roots if root.kind == "output"]
    return _dimensions(graph, stage.target, outputs, roots, lengths)


def _dimensions(
    graph: StageGraph, tensor: str, subscripts: list[SizeExpr], roots: Mapping[str, str], lengths: Mapping[str, int]
) -> dict[str, int] | None:
    """Along which dimension of a tensor's storage each axis moves by one element; `None` if one does not."""
    found: dict[str, int] = {}
    layout = _storage_dimensions(graph, tensor)
    for place, (dimension, tile) in enumerate(layout):
        here = [name for name in roots if name in subscripts[dimension].indices]
        split = next((t for d, t in layout if d == dimension and t), 0)
        if not here:
            continue
        (name,) = here if len(here) == 1 else ("",)
        if not name or not _is_unit(subscripts[dimension], name) or (split and split % lengths[name]):
            return None
        if tile == split:
            if roots[name] in found:
                return None
            found[roots[name]] = place
    return found


def _is_unit(subscript: SizeExpr, name: str) -> bool:
    """Whether a subscript is an index plus something without it."""
    here = subscript.substitute({name: constant(0)})
    return name not in here.indices and subscript.substitute({name: constant(1)}) - here == constant(1)


def _storage_dimensions(graph: StageGraph, tensor: str) -> tuple[tuple[int, int], ...]:
    """Dimension and tile of every dimension of a tensor in memory, outermost first."""
    layout = None
    writers = graph.stages_on(tensor)
    if writers:
        layout = writers[0].storage.layout
    return layout or tuple((dimension, 0) for dimension in range(graph.program.tensor(tensor).rank))


def root_of(stage: Stage, axis: str) -> str | None:
    """The root that an axis is a part of; `None` if it comes from several."""
    for relation in stage.relations:
        if isinstance(relation, Split) and axis in (relation.outer, relation.inner):
            return root_of(stage, relation.parent)
        if axis in children_of(relation):
            return None
    return axis


def _is_innermost_part(stage: Stage, axis: str) -> bool:
    """Whether neighbouring iterations of a leaf are neighbouring values of its root."""
    for relation in stage.relations:
        if isinstance(relation, Split) and axis in (relation.outer, relation.inner):
            return axis == relation.inner and (
                relation.parent == root_of(stage, axis) or _is_innermost_part(stage, relation.parent)
            )
    return True


# --- all steps of a schedule -----------------------------------------------------------------------------------------


def step_problem(graph: StageGraph) -> tuple[str, str] | None:
    """A stage whose loops are no longer the step that they were, and why; `None` if all still are."""
    if all(stage.tensorize is None for stage in graph.stages):
        return None
    plain = inject_inline(graph)
    for stage in plain.stages:
        if stage.tensorize is None:
            continue
        name = stage.tensorize.intrinsic
        problem = match_intrinsic(plain, stage, stage.tensorize.axes, name)
        if problem is not None:
            return stage.name, f"its loops would not be `{name}` any more: {problem}"
    return None


def _warp_problem(graph: StageGraph, stage: Stage, step: MatrixStep) -> Iterator[str]:
    """Why the 32 threads of a warp cannot do the step together: each of them holds only a part of the result."""
    if step.unit != "warp":
        return
    around = [(stage.name, leaf) for leaf in stage.leaves] + list(graph.attach_path(stage.name))
    for owner, leaf in around:
        if graph.stage(owner).annotation(leaf) == "threadIdx.x":
            yield f"`{owner}[{leaf}]` around it is `threadIdx.x`, which are the 32 threads of the warp that does the step"
    root = graph.runs_in(stage.name)
    for other in graph.stages:
        for leaf, kind in other.annotations:
            if kind == "threadIdx.x" and graph.runs_in(other.name) == root and constant_extent(other, leaf) != 32:
                yield f"`{other.name}[{leaf}]` is `threadIdx.x` with another length than the 32 threads of a warp"
    if graph.scope(stage) not in ("shared", "global"):
        yield f"each thread would hold only a part of `{stage.target}`: `storage` it as `shared`, or compute it at root"
    for read in factors_of(stage.statement.value, step.total):
        if any(graph.scope(each) == "threads" for each in graph.stages_on(read.tensor)):
            yield f"`{read.tensor}` is spread over threads"


__all__ = [
    "STEPS",
    "MatrixStep",
    "Tile",
    "first_reduction",
    "match_intrinsic",
    "operands",
    "root_of",
    "step_problem",
    "total_dimensions",
]
