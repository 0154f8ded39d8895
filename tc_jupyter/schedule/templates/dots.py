"""Products of small integers and of `bfloat16` with sums of 32 bits on a CPU: several steps of the reduction at a time.

A multiply-add of 32-bit integers takes as long as one of floats; steps on pairs of 16-bit numbers (`dot_1x16x2_s16`) multiply twice
as many in that time, those on unsigned by signed bytes (`dot_1x16x4_u8s8`) four times as many. So do steps on pairs of `bfloat16`
(`dot_1x16x2_bf16`) beside multiply-adds of floats; they take numbers that are not normal as 0. Both operands are packed so that the
elements of one step are neighbours, converted to 16 bits for pairs, and filled up with zeros to whole steps, so the sum has no
tail. Where both operands have the same sign, the right one is read with the other one (`rebias`).

Worked example: `C(i,j) +=! int32(A(i,k)) * int32(B(k,j))` of two `int16`: `A` is copied in rows of whole pairs, `B` in panels of 64
columns `[j // 64][k // 2][j % 64][k % 2]`, and tiles of 6 rows by 64 columns stay in registers while pairs of `k` are added.

Measured with AVX-512 (Zen 4), two threads, 512 x 512 x 512: `int8` 1.62 ms as numbers of 32 bits, 0.62 as pairs, 0.32 as bytes
(`torch._int_mm` 0.31); `int16` 0.64. With AVX2 1.58 and 0.83 ms. `bfloat16` on one thread 2.69 ms converted to floats, 1.39 as
pairs (PyTorch 1.35).

Source: `codegen/llvm/steps.py`. The exact sum of two products of 16 bits fits 32 bits but for two squares of -32768, which wraps
around to what 32-bit additions give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tc_jupyter.program import DType, IndexVar, Read, factors_of, keeps_values
from tc_jupyter.ranges import MANY, Fact
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.intrinsics import STEPS, MatrixStep
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage
from tc_jupyter.schedule.target import Target

from .form import Form, formed
from .stages import added, copied_out
from .streaming import is_plain

SIGNS = {DType.UINT8: "dot_1x16x4_u8s8", DType.INT8: "dot_1x16x4_s8u8"}
"""Steps on bytes by the type of the left operand; the right one has the other sign, or is given it (`rebias`)."""
TILES = {16: ((6, 4), (12, 2), (14, 1)), 8: ((4, 2), (6, 1))}
"""Rows and vectors of the register tile by lanes of a vector. Measured with AVX-512 (Zen 4), 512 x 512 x 512, two threads: 12 x 2
takes 1.04 of the time of 6 x 4."""


@dataclass(frozen=True, slots=True)
class Dot:
    """How a product is added up.

    Attributes:
        step: the matrix step.
        inner: the reduction index that it takes several steps of.
        left, right: the access along rows, and the one along columns.
        rows, vectors: of the register tile.
        flips: the bytes of `right` are read with the other sign.
    """

    step: MatrixStep
    inner: str
    left: Read
    right: Read
    rows: int
    vectors: int
    flips: bool

    @property
    def lanes(self) -> int:
        """Columns of one step."""
        return self.step.extents[1]

    @property
    def depth(self) -> int:
        """Steps of the reduction in one step."""
        return self.step.extents[2]

    @property
    def columns(self) -> int:
        """Of the register tile."""
        return self.vectors * self.lanes


def dot_of(
    schedule: Schedule, stage: Stage, row: str, column: str, target: Target, extents: Mapping[str, Fact | None]
) -> Dot | None:
    """The step and the tile for a stage, or `None` where no step is for its types, or it is a small product.

    Args:
        row, column: output indices, each along one operand.
        extents: of all indices of the stage, as far as they are known.
    """
    statement, program = stage.statement, schedule.graph.program
    if (
        statement.operator != "+"
        or statement.combine is not None
        or (total := program.tensor(stage.target).dtype.compute) not in (DType.INT32, DType.FLOAT32)
    ):
        return None
    reads = factors_of(statement.value, total)
    left = [read for read in reads if IndexVar(row) in read.indices]
    right = [read for read in reads if IndexVar(column) in read.indices]
    if len(reads) != 2 or len(left) != 1 or len(right) != 1 or left == right or left[0].tensor == right[0].tensor:
        return None
    step = _step_for(left[0].dtype, right[0].dtype, target)
    inner = [
        index.name
        for index in statement.reduction_indices
        if all(IndexVar(index.name) in read.indices for read in reads)
    ]
    if step is None or not inner or not all(is_plain(read) for read in reads):
        return None
    turned = right[0].indices[-1] != IndexVar(column)
    few = tuning.FEW + 1  # of fewer rows, columns or steps packing is most of the work, or lanes are empty
    least = {row: tuning.ONCE_IN if turned else few, column: few, inner[-1]: tuning.FEW}
    lengths = {name: MANY if fact is None else fact.typical for name, fact in extents.items()}
    if any(lengths[name] < number for name, number in least.items()):
        return None
    high, wide = lengths[row], lengths[column]
    if high * wide < tuning.FEW * (high + wide) or prod(lengths.values()) < tuning.LEAST_PRODUCTS:
        return None
    rows, vectors = _tile(step.extents[1], high, wide)
    flips = step.left is left[0].dtype and step.right is not right[0].dtype and step.extents[2] == 4
    return Dot(step, inner[-1], left[0], right[0], rows, vectors, flips)


def _step_for(left: DType, right: DType, target: Target) -> MatrixStep | None:
    """The step with the most products in an instruction of the processor."""
    names = [SIGNS[left]] if left in SIGNS and right in SIGNS else []
    if left is right is DType.BFLOAT16:
        names = ["dot_1x16x2_bf16"]
    if keeps_values(DType.INT16, left) and keeps_values(DType.INT16, right):
        names += ["dot_1x16x2_s16", "dot_1x8x2_s16"]
    return next((STEPS[name] for name in names if STEPS[name].feature in target.features), None)


def _tile(lanes: int, rows: int, columns: int) -> tuple[int, int]:
    """The tile with the fewest steps over the whole result; of those with as many the first."""

    def steps(tile: tuple[int, int]) -> int:
        height, vectors = tile
        return -(-rows // height) * -(-columns // (vectors * lanes)) * height * vectors

    return min(TILES[lanes], key=steps)


def scheduled(schedule: Schedule, name: str, user: str | None, row: str, column: str, dot: Dot) -> Schedule:
    """The product `name`, whose result is copied out of the registers by itself or by the pointwise statement `user`.

    Raises:
        CompileError: a rule of schedules forbids it.
    """
    stage = schedule.graph.stage(name)
    names = [index.name for index in stage.statement.output_indices]
    schedule, copy, cache, theirs = copied_out(schedule, name, user)
    flipped = None
    if dot.flips:
        before, schedule = schedule, schedule.rebias(cache, dot.right.tensor)
        flipped, sums = (stage for stage in schedule.stages if stage not in before.stages)
        schedule = _in_tasks(schedule, sums)
    own, across = theirs[row], theirs[column]
    outer = [theirs[index] for index in names if index not in (row, column)]
    splits = {across: dot.columns, own: tuning.ROWS_TOGETHER * dot.rows, f"{own}.inner": dot.rows}
    tasks, place = (*outer, f"{own}.outer", f"{across}.outer"), f"{own}.inner.outer"
    schedule = formed(schedule, copy, Form(splits, tasks, (place,), (f"{own}.inner.inner",), f"{across}.inner"))
    schedule = schedule.compute_at(cache, copy, place)
    schedule = _packed_rows(schedule, cache, row, dot)
    schedule = _packed_columns(schedule, cache, column, dot, flipped)
    return _summed(schedule, cache, row, column, dot)


def _in_tasks(schedule: Schedule, sums: str) -> Schedule:
    """The sums of rows, each in one task."""
    for index in schedule.graph.stage(sums).statement.output_indices:
        schedule = schedule.parallel(sums, index.name)
    return schedule


def _copied(schedule: Schedule, read: Read, cache: str, dot: Dot) -> tuple[Schedule, str]:
    """A copy of an operand in the type of the step."""
    wide = dot.step.left if dot.depth == 2 and read.dtype is not dot.step.left else None
    return added(schedule, schedule.cache_read(read.tensor, cache, widen=wide.value if wide else False))


def _packed_rows(schedule: Schedule, cache: str, row: str, dot: Dot) -> Schedule:
    """Rows as they lie, but for whole steps and whole tiles: `[row][k // depth][k % depth]`."""
    at, along = (dot.left.indices.index(IndexVar(index)) for index in (row, dot.inner))
    schedule, copy = _copied(schedule, dot.left, cache, dot)
    indices = [index.name for index in schedule.graph.stage(copy).statement.output_indices]
    rest = [number for number in range(len(indices)) if number not in (at, along)]
    layout = (*((number, 0) for number in rest), (at, 0), (at, dot.rows), (along, 0), (along, dot.depth))
    own, inner = indices[at], indices[along]
    splits, tasks = {own: dot.rows, inner: dot.depth}, [*(indices[number] for number in rest), f"{own}.outer"]
    form = Form(splits, tasks, (f"{own}.inner", f"{inner}.outer"), vector=f"{inner}.inner")
    return formed(schedule, copy, form).storage(copy, layout=layout)


def _packed_columns(schedule: Schedule, cache: str, column: str, dot: Dot, copy: str | None) -> Schedule:
    """Panels `[column // columns][k // depth][column % columns][k % depth]`, of a new copy or of `copy`."""
    at, along = (dot.right.indices.index(IndexVar(index)) for index in (column, dot.inner))
    if copy is None:
        schedule, copy = _copied(schedule, dot.right, cache, dot)
    indices = [index.name for index in schedule.graph.stage(copy).statement.output_indices]
    rest = [number for number in range(len(indices)) if number not in (at, along)]
    layout = (*((number, 0) for number in rest), (at, 0), (along, 0), (at, dot.columns), (along, dot.depth))
    across, inner = indices[at], indices[along]
    splits, tasks = {across: dot.columns, inner: dot.depth}, [*(indices[each] for each in rest), f"{across}.outer"]
    form = Form(splits, tasks, (f"{inner}.outer",), (f"{inner}.inner",), f"{across}.inner")
    return formed(schedule, copy, form).storage(copy, layout=layout)


def _summed(schedule: Schedule, cache: str, row: str, column: str, dot: Dot) -> Schedule:
    """The sums in registers."""
    statement = schedule.graph.stage(cache).statement
    batch = [index.name for index in statement.output_indices if index.name not in (row, column)]
    sums = [index.name for index in statement.reduction_indices if index.name != dot.inner]
    splits = {row: dot.rows, column: dot.columns, f"{column}.inner": dot.lanes, dot.inner: dot.depth}
    axes = (f"{column}.inner.inner", f"{dot.inner}.inner")
    tile = (f"{row}.outer", f"{row}.inner", f"{column}.outer", f"{column}.inner.outer")
    order = (*batch, *sums, f"{dot.inner}.outer", *tile, *axes)
    schedule = formed(schedule, cache, Form(splits, (), order, (f"{row}.inner", f"{column}.inner.outer")))
    schedule = schedule.storage(cache, "register", padded=True, whole=True)
    return schedule.tensorize(cache, axes, dot.step.name)
