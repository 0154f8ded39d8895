"""Products, convolutions and other contractions on a CPU: a register tile of rows and vectors over packed operands.

The tile is `rows x columns` of the output, kept in vector registers while all reduction loops run. The column operand is packed in
panels (`cache_read` with a layout: one panel is contiguous, its rows are whole vectors). Where it is read through a window
(`X(h+kh, w+kw)`) it is read where it lies, under masks or in tiles that overlap, or copied with rows long enough for the last
vector. The row operand is packed into micro-panels. All are padded to whole tiles: the inner loops have constant lengths and
only the copy out of the registers knows where the result ends. That copy is the statement itself, or the pointwise statement
that uses the result (bias, activation). Small products are not packed (`_as_it_lies`).

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008; Van Zee and van de Geijn, BLIS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Expr, IndexVar, Read, children, points_of, walk
from tc_jupyter.program.integers import has_read, index_names, reads_elements
from tc_jupyter.ranges import MANY, Box, Fact, Facts, constant, exactly, fact_of, from_expr, step_of
from tc_jupyter.schedule import tuning
from tc_jupyter.schedule.schedule import Schedule
from tc_jupyter.schedule.stage import Stage, constant_extent
from tc_jupyter.schedule.subscripts import is_inside
from tc_jupyter.schedule.target import Target

from . import dots, windows
from .form import Form, formed
from .packing import dimension_of, pack_columns, pack_rows, pad_rows
from .ragged import ends_loops
from .reduction import has_parts, is_across, is_to_few, partial_results
from .register_tiles import Tile, lies_in_rows, small_tile, tile_of
from .self_products import told_apart
from .stages import added, copied_out
from .streaming import is_plain, is_streaming, lanes_of

PIXEL = range(2, 5)
"""Numbers of values of a pixel (`X(i, j, c)`): vectors of a row of them are taken apart. Measured with AVX-512 (Zen 4), one thread,
sums of three: 3.1 ns each with vectors of three values, 0.2 so; of five 1.5, four rows at a time, and 0.6, but of eight 1.5 and
1.7, with 910 lines of code."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What the indices of a contraction do.

    Attributes:
        row: output index whose operand is broadcast, or `None`.
        column: last output index, along vectors.
        row_reads: tensors read along rows only.
        panels: tensors read along columns at plain indices.
        windows: tensors read along columns in even steps of the last subscript, shifted by other indices.
        step: of the windows; more than 1 only where every element is read by itself.
    """

    row: str | None
    column: str
    row_reads: tuple[str, ...]
    panels: tuple[str, ...]
    windows: tuple[str, ...]
    step: int = 1


def roles_of(stage: Stage, boxes: Mapping[str, Box], full: bool = False) -> Roles | None:
    """The roles of the indices, or `None` if this is no contraction; an index with one value has none.

    Args:
        full: no vector of columns is partial, so that a tile may read what lies as its results do, where it lies.
    """
    statement, single = stage.statement, _single(stage)
    outputs = [index.name for index in statement.output_indices if index.name not in single]
    reads = [read for read in statement.reads() if read.indices]
    if not outputs or not statement.reduction_indices or not reads or statement.combine is not None:
        return None
    column = outputs[-1]
    if all(index.name in single for index in statement.reduction_indices):
        return _vector_roles(reads, column)
    if not _depends_on_data(reads):
        for row in reversed(outputs[:-1]):
            if _uses_index_values(stage, boxes, row):
                continue
            others = [read for read in reads if not (full and _lies_as_results(stage, read))]
            found = _roles(others, row, column)
            if found is not None:
                return found
    return _vector_roles(reads, column) or _strided_roles(stage, reads, outputs, boxes)


def _lies_as_results(stage: Stage, read: Read) -> bool:
    """Whether what is read follows from the place of the result alone, one element for each: `A(i, k)` of a sum over `j`."""
    outputs = [IndexVar(index.name) for index in stage.statement.output_indices]
    return set(read.indices) == set(outputs) and len(read.indices) == len(outputs) and read.indices[-1] == outputs[-1]


def _single(stage: Stage) -> set[str]:
    """Indices with one value."""
    return {root.name for root in stage.roots if root.extent == constant(1)}


def _strided_roles(stage: Stage, reads: list[Read], outputs: list[str], boxes: Mapping[str, Box]) -> Roles | None:
    """A window in wider steps along the columns, and an operand along a row index."""
    if _depends_on_data(reads):
        return None
    steps = {step_of(from_expr(read.indices[-1]), outputs[-1]) or 0 for read in reads} - {0}
    if len(steps) != 1 or min(steps) < 2:
        return None
    (width,) = steps
    for row in reversed(outputs[:-1]):
        found = None if _uses_index_values(stage, boxes, row) else _roles(reads, row, outputs[-1], width)
        if found is not None and found.windows and not found.panels:
            return replace(found, step=width)
    return None


def _halving_roles(schedule: Schedule, stage: Stage, target: Target, facts: Facts) -> Roles | None:
    """A tile of one row from every second element (`X(2*i+k, 2*j+l)`): two vectors are read for one; or from pixels."""
    reads = [read for read in stage.statement.reads() if read.indices]
    outputs = [index.name for index in stage.statement.output_indices]
    if len(outputs) < 2 or not stage.statement.reduction_indices or stage.statement.combine is not None:
        return None
    bits = schedule.graph.program.tensor(stage.target).dtype.compute.bits
    in_place = lies_in_rows(target, bits, extent_of(stage, outputs[-1], facts))
    if not in_place or _depends_on_data(reads):
        return None
    return _vector_roles(reads, outputs[-1], 2) or _pixel_roles(stage, reads, outputs[-1])


def _pixel_roles(stage: Stage, reads: list[Read], column: str) -> Roles | None:
    """A tile of one row from all of the few values that each of its elements has (`X(i, j, c)`)."""
    pixels: list[str] = []
    for read in reads:
        moves = [step_of(from_expr(index), column) for index in read.indices]
        if any(move != 0 for move in moves):
            *_, value = read.indices
            few = isinstance(value, IndexVar) and constant_extent(stage, value.name) in PIXEL
            if len(moves) < 2 or not few or moves[-2:] != [1, 0] or any(moves[:-2]):
                return None
            pixels.append(read.tensor)
    return Roles(None, column, (), (), tuple(dict.fromkeys(pixels))) if pixels else None


def _vector_roles(reads: list[Read], column: str, width: int = 1) -> Roles | None:
    """A tile of one row: everything is read in even steps along the columns, or not along them at all."""
    windows: list[str] = []
    for read in reads:
        moves = [step_of(from_expr(index), column) for index in read.indices]
        if moves[-1] not in (0, width) or any(moves[:-1]):
            return None
        if moves[-1] == width:
            windows.append(read.tensor)
    return Roles(None, column, (), (), tuple(dict.fromkeys(windows))) if windows else None


def _depends_on_data(reads: list[Read]) -> bool:
    return any(has_read(index) for read in reads for index in read.indices)


def _uses_index_values(stage: Stage, boxes: Mapping[str, Box], row: str | None = None) -> bool:
    """Whether the value depends on an index outside subscripts; padding would then compute with indices that do not exist.

    Conditions that say which points there are may do so where they are the same in all rows: they say which lanes have one. So may
    those that end a reduction where what is read is there: in a row that nobody needs it ends in another place.
    """
    conditions, value = _points(stage)
    reads = stage.statement.reads()
    if ends_loops(stage.statement) and all(r.tensor in boxes and is_inside(boxes, stage, r) for r in reads):
        conditions = ()
    summed = {index.name for index in stage.statement.reduction_indices}
    return bool(_positions(value)) or any({row} < _positions(c) & {row, *summed} for c in conditions)


def _points(stage: Stage) -> tuple[tuple[Expr, ...], Expr]:
    """The conditions under which a point takes part in a reduction, and the value there."""
    statement = stage.statement
    return ((), statement.value) if statement.operator == "fold" else points_of(statement.value, statement.operator)


def _summed(stage: Stage) -> list[str]:
    """The reduction indices, outermost first: a condition changes in few of the loops if they are outside of the others."""
    asked = frozenset[str]().union(*map(_positions, _points(stage)[0]))
    return sorted((index.name for index in stage.statement.reduction_indices), key=lambda name: name not in asked)


def _positions(expr: Expr) -> frozenset[str]:
    """The indices that an expression depends on outside of subscripts."""
    if isinstance(expr, Read):
        return frozenset()
    own = frozenset((expr.name,)) if isinstance(expr, IndexVar) else frozenset[str]()
    return own.union(*map(_positions, children(expr)))


def _roles(reads: list[Read], row: str | None, column: str, width: int = 1) -> Roles | None:
    rows: list[str] = []
    panels: list[str] = []
    windows: list[str] = []
    for read in reads:
        moves = [step_of(from_expr(index), column) for index in read.indices]
        across = [row is not None and row in from_expr(index).indices for index in read.indices]
        if any(move != 0 for move in moves):
            if any(across):
                return None
            kind = (
                panels
                if is_plain(read, numbers=True)
                else windows
                if moves[-1] == width and not any(moves[:-1])
                else None
            )
            if kind is None:
                return None
            kind.append(read.tensor)
        elif any(across):
            if sum(across) != 1 or not isinstance(read.indices[across.index(True)], IndexVar):
                return None
            rows.append(read.tensor)
    if (
        not (panels or windows)
        or (row is not None and not rows)
        or set(windows) & {*panels, *rows}
        or set(panels) & set(rows)
    ):
        return None
    return Roles(row, column, tuple(dict.fromkeys(rows)), tuple(dict.fromkeys(panels)), tuple(dict.fromkeys(windows)))


def default(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """The schedule of a contraction, or `None` if the stage is none.

    Args:
        facts: of the sizes of a call, to choose the tile.
    """
    stage = schedule.graph.stage(name)
    roles = roles_of(stage, schedule.graph.boxes)
    if stage.statement.combine is None and is_to_few(stage, facts) and (roles is None or roles.row is None):
        return _of_parts(schedule, name, target, facts) if is_across(stage) else None
    if roles is not None and roles.row is None and _is_cut_by_columns(stage, roles.column):
        return None
    return _tiled(_told_apart(schedule, name, target, facts), name, target, facts)


def _is_cut_by_columns(stage: Stage, column: str) -> bool:
    """Whether each column has other points of a reduction along which all is read in order: `R(j) +=! k > j ? X(k) : 0`.

    Lanes of columns would visit the points that any of them has, and ask each; a loop along the reduction has bounds. A window
    (`X(j + k)`) is the same few steps for nearly all columns, and a number of steps is few.
    """
    conditions, _ = points_of(stage.statement.value, stage.statement.operator)
    subscripts = [from_expr(where).indices for read in stage.statement.reads() for where in read.indices]
    for condition in conditions:
        on_data = reads_elements(condition)
        names = {node.name for node in walk(condition) if isinstance(node, IndexVar)}
        if column in names and not on_data:
            along = [index.name for index in stage.statement.reduction_indices if index.name in names]
            windows = {each for each in along if any({column, each} <= used for used in subscripts)}
            long = [each for each in along if each not in windows and constant_extent(stage, each) is None]
            if any(is_streaming(stage, each) for each in long):
                return True
    return False


def _told_apart(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule:
    """A product of a tensor with itself by two names; not where its rows are shorter than a vector: they are no tiles.

    Measured with AVX-512, one thread, 500 products of 4 x 8 by their transposes: 1.6 of the time of one name.
    """

    def row_of(stage: Stage) -> str | None:
        roles = roles_of(stage, schedule.graph.boxes)
        if roles is None or roles.row is None:
            return None
        rows = extent_of(stage, roles.row, facts)
        return None if rows is not None and rows.typical < lanes_of(schedule, stage, target) else roles.row

    return told_apart(schedule, name, row_of)


def _tiled(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    stage = schedule.graph.stage(name)
    roles = _roles_in(schedule, stage, target, facts) or _halving_roles(schedule, stage, target, facts)
    if roles is None or stage.attach.kind != "root" or any(True for _ in schedule.graph.attached(name)):
        return None
    user = epilogue_of(schedule, name)
    if _reads_once(stage, roles) and not _is_small(extent_of(stage, roles.column, facts)):
        return _lines(schedule, name, user, roles, target)
    found = _dotted(schedule, name, user, roles, target, facts) or _channels(schedule, name, user, roles, target, facts)
    if found is not None or roles.step != 1:
        return found
    try:
        made = schedule.together(lambda each: _scheduled(each, name, user, roles, target, facts))
    except CompileError:
        if user is None:
            return None
        made, user = schedule.together(lambda each: _scheduled(each, name, None, roles, target, facts)), None
    for tensor in (*roles.row_reads, *roles.panels):
        made = _with_factor(made, stage, user or name, tensor, roles, target, facts)
    return made


def _roles_in(schedule: Schedule, stage: Stage, target: Target, facts: Facts) -> Roles | None:
    """The roles of the indices, where it is known whether columns fill their vectors.

    Measured with AVX-512, one thread, `dB(j, k) +=! dD(i, j) * (A(i, k) - B(j, k))`, the derivative of distances between 2048 and
    2048 points of 128 numbers: 219 ms by rows, 26 in tiles, products alone 12.
    """
    outputs = stage.statement.output_indices
    columns = extent_of(stage, outputs[-1].name, facts) if outputs else None
    width = tuning.ABREAST * lanes_of(schedule, stage, target)
    return roles_of(stage, schedule.graph.boxes, columns is not None and columns.multiple % width == 0)


def _dotted(
    schedule: Schedule, name: str, user: str | None, roles: Roles, target: Target, facts: Facts
) -> Schedule | None:
    """Products of small elements (`dots`)."""
    stage, row = schedule.graph.stage(name), roles.row
    extents = _extents(stage, facts)
    dot = None if row is None else dots.dot_of(schedule, stage, row, roles.column, target, extents)
    if dot is None or row is None:
        return None
    for copy in dict.fromkeys((user, None)):
        try:
            return dots.scheduled(schedule, name, copy, row, roles.column, dot)
        except CompileError:
            continue
    return None


def _with_factor(
    schedule: Schedule, stage: Stage, copy: str, tensor: str, roles: Roles, target: Target, facts: Facts
) -> Schedule:
    """Compute an operand that is itself a small batched contraction inside the batch loops, where it stays in a cache: in the first
    one, or, where the items alone are work for all threads, in a quarter of the second one.

    Measured with AVX-512, over the time with the operand in memory: the third factor of a Kronecker product, 32 x 32 x 32 in the
    second cache, 0.80 on one thread and on two; 16 or 100 chains of three matrices of 100 to 200 rows 0.78 to 0.99; a single chain
    on two threads would take 1.8 times as long.
    """
    graph = schedule.graph
    makers, users = graph.stages_on(tensor), [each for each in graph.stages if tensor in graph.reads(each)]
    if len(makers) != 1 or len(users) != 1 or makers[0].attach.kind != "root" or makers[0].name in graph.outputs:
        return schedule
    maker = makers[0]
    if not any(each.attach.stage == maker.name and each.statement.reduction_indices for each in graph.stages):
        return schedule
    reads = [read for read in stage.statement.reads() if read.tensor == tensor]
    names = [index.name for index in stage.statement.output_indices]
    theirs = dict(zip(names, (i.name for i in graph.stage(copy).statement.output_indices), strict=True))
    batch = [index for index in names if index not in (roles.row, roles.column)]
    shared = 0
    while shared < len(batch) and all(
        isinstance(subscript := read.indices[shared], IndexVar) and subscript.name == batch[shared] for read in reads
    ):
        shared += 1
    found = _extents(maker, facts)
    extents = [found[root.name] for root in maker.roots if root.kind == "output"]
    nbytes = graph.program.tensor(tensor).dtype.bytes * prod(e.typical if e else 1 << 40 for e in extents[shared:])
    many = prod(e.typical if e else 1 for e in extents[:shared]) >= max(tuning.ONCE_IN, target.threads)
    if not shared or batch[:shared] != names[:shared] or nbytes > (target.l2_bytes // 4 if many else target.l1_bytes):
        return schedule
    try:
        return schedule.compute_at(maker.name, copy, theirs[batch[shared - 1]])
    except CompileError:
        return schedule


def _of_parts(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule | None:
    """Few results, which are one task, of parts of the sum, which are many, each a contraction by itself.

    Measured with AVX-512 on two threads, 4,000,000 elements in rows of 2 to 13: sums 0.49 to 0.53 of the time.
    """
    if not has_parts(schedule, name):
        return None
    parts, partial = partial_results(schedule, name)
    return _tiled(parts, partial, target, facts)


def epilogue_of(schedule: Schedule, name: str) -> str | None:
    """The pointwise statement that alone uses the result, at exactly its indices; it becomes the copy out of the registers."""
    graph = schedule.graph
    stage = graph.stage(name)
    users = graph.consumers(name)
    if name in graph.outputs or len(users) != 1 or len(graph.stages_on(stage.target)) != 1:
        return None
    user = users[0]
    outputs = tuple(index.name for index in user.statement.output_indices)
    reads = [read for read in user.statement.reads() if graph.storage_name(read.tensor) == stage.target]
    same = all(
        read.tensor == stage.target
        and tuple(i.name if isinstance(i, IndexVar) else "" for i in read.indices) == outputs
        for read in reads
    )
    ranges = [root.dom for root in stage.roots if root.kind == "output"]
    fits = user.statement.operator == "=" and not user.relations and user.attach.kind == "root"
    return user.name if same and fits and ranges == [root.dom for root in user.roots] else None


def _scheduled(schedule: Schedule, name: str, user: str | None, roles: Roles, target: Target, facts: Facts) -> Schedule:
    stage = schedule.graph.stage(name)
    names = [index.name for index in stage.statement.output_indices]
    inner = _summed(stage)
    dtype = schedule.graph.program.tensor(stage.target).dtype.compute
    extents = _extents(stage, facts)
    row_extent = extents[roles.row] if roles.row is not None else exactly(1)
    most_rows = MANY if row_extent is None else row_extent.typical
    in_place = lies_in_rows(target, dtype.bits, extents[roles.column])
    overlaps = in_place and bool(roles.windows) and not target.free_masks
    tile = tile_of(target, dtype.bits, row_extent, extents[roles.column], roles.row is not None, overlaps)
    few = most_rows <= tuning.TOLD_APART
    if few:
        tile = replace(tile, block=-(-most_rows // tile.rows) * tile.rows)
    alone = few and (len(names) > 1 + (roles.row is not None) or _is_small(extents[roles.column]))
    in_rows = all(
        dimension_of(stage, tensor, roles.column) == schedule.graph.program.tensor(tensor).rank - 1
        for tensor in roles.panels
    )
    direct = few and not alone and in_rows and roles.row is not None and most_rows <= tuning.FEW
    some = most_rows <= tuning.FEW_ROWS and not (alone or direct)
    across = some and roles.row is not None and len(names) == 2 and bool(roles.panels) and not roles.windows
    masked = in_place and roles.row is None and len(names) > 1
    if masked:
        tile = replace(tile, vectors=min(tile.vectors, tuning.ABREAST))
    few_passes = target.free_masks or len(names) > 2 or most_rows <= tuning.ROWS_IN_FLAT_TILES
    lies = in_place and few_passes and _is_short(extents[roles.column]) and _lies_well(schedule, stage, roles)
    items = [extents[name] for name in names if name not in (roles.row, roles.column)]
    some_rows = most_rows <= tuning.FEW_ROWS and (bool(items) or target.free_masks)
    separate = in_rows or any(extent != exactly(1) for extent in items)  # one item that is packed would be one task
    if lies and (few or (some_rows and separate)):
        return _as_it_lies(schedule, name, user, roles, target, extents)

    schedule, copy, cache, theirs = copied_out(schedule, name, user)
    column = theirs[roles.column]
    outer = [theirs[index] for index in names if index not in (roles.row, roles.column)]
    splits, vector = {column: tile.columns}, f"{column}.inner"
    if roles.row is None:
        place, block = f"{column}.outer", ""
        form = Form(splits, outer or [place], (*outer, place), vector=vector)
    else:
        row = theirs[roles.row]
        splits |= {row: tile.block, f"{row}.inner": tile.rows}
        tiles = (f"{column}.outer", f"{row}.outer") if direct or across else (f"{row}.outer", f"{column}.outer")
        place, block = f"{row}.inner.outer", f"{row}.outer"
        tasks = (*outer, *(tiles if direct else tiles[:1]))
        form = Form(splits, tasks, (*outer, *tiles, place, f"{row}.inner.inner"), vector=vector)
    schedule = formed(schedule, copy, form).compute_at(cache, copy, place)
    padded = roles.row is not None or (
        not masked and not _is_long(extents[roles.column], tile) and _can_pad(stage, schedule.graph.boxes)
    )

    for tensor in () if direct else roles.panels:
        once = any(index not in _indices_of(stage, tensor) for index in names if theirs[index] in outer)
        here = (copy, f"{column}.outer") if across else (copy, block) if alone and not once else None
        schedule = pack_columns(schedule, tensor, cache, roles.column, tile, here)
    masks = padded and in_place
    for tensor in roles.windows if padded and not masks else ():
        schedule = pad_rows(schedule, tensor, cache, tile)
    for tensor in roles.row_reads:
        assert roles.row is not None
        again = (
            direct
            or across
            or any(index not in _indices_of(stage, tensor) for index in names if theirs[index] in outer)
        )
        schedule = pack_rows(schedule, tensor, cache, roles.row, tile, None if again else (copy, block))

    rest = [index for index in names if index not in (roles.row, roles.column)]
    rows = [roles.row] if roles.row is not None else []
    schedule = schedule.reorder(cache, *rest, *inner, *rows, roles.column)
    schedule = schedule.storage(cache, "local" if masked else "register", padded=padded, masked=masks)
    schedule = _unroll_windows(schedule, cache, inner, tile)
    if roles.row is None and _is_long(extents[roles.column], tile):
        for tensor in roles.windows if all(windows.is_of_each_tile(stage, each) for each in roles.windows) else ():
            schedule = _copied_by_tile(schedule, tensor, copy, place)
    if roles.row is None and not masked:
        schedule = _slide(schedule, cache, inner[-1], roles, tile)
    return formed(schedule, cache, replace(_sums([], [], roles.row, roles.column, tile), order=()))


def _copied_by_tile(schedule: Schedule, tensor: str, copy: str, place: str) -> Schedule:
    """A copy of an operand that has borders, made by every tile for itself: those that meet no border do without it
    (`codegen.llvm.split_tiles_at_borders`).
    """
    graph = schedule.graph
    makers = [
        each for each in graph.stages_on(tensor) if each.attach.kind == "root" and not each.statement.reduction_indices
    ]
    if len(makers) != 1 or makers[0].name in graph.outputs or not windows.is_plain_inside(makers[0]):
        return schedule
    if any(True for _ in graph.attached(makers[0].name)):
        return schedule  # what it copies is a sum, which every tile would compute again
    try:
        return schedule.compute_at(makers[0].name, copy, place)
    except CompileError:
        return schedule


def _lies_well(schedule: Schedule, stage: Stage, roles: Roles) -> bool:
    """Whether rows may be read without a copy: all operands are of the type of the sum."""
    program = schedule.graph.program
    dtype = program.tensor(stage.target).dtype.compute
    same = all(program.tensor(read.tensor).dtype is dtype for read in stage.statement.reads() if read.indices)
    plain = roles.row is not None and not roles.windows
    return plain and same and not _depends_on_data(list(stage.statement.reads()))


def _rows_lie_apart(stage: Stage, tensor: str, inner: list[str]) -> bool:
    """Whether other rows lie between two neighbours of a column operand: a power of two apart they share few sets of a cache."""
    reads = [read for read in stage.statement.reads() if read.tensor == tensor]
    before = [read.indices[-2] for read in reads if len(read.indices) > 1]
    return any(not (isinstance(index, IndexVar) and index.name in inner) for index in before)


def _as_it_lies(
    schedule: Schedule, name: str, user: str | None, roles: Roles, target: Target, extents: Mapping[str, Fact | None]
) -> Schedule:
    """A product of small matrices, each read where it lies: lanes beyond the last column are masked, the last row is read again.

    Packing takes longer than it saves. Measured with AVX-512, one thread, over the best peer's time: 500 products of 26 x 72 x 26
    1.18 (packed 2.0), 64 products of 64 x 64 x 64 1.08 (packed 1.44); over the time of packed operands 4 products of 77 x 77 x 40
    0.57, 8 of 200 x 200 x 64 0.78, of 100 x 100 x 100 0.82, of 200 x 200 x 200 0.88, with AVX2 0.80, 0.94, 0.87 and 0.99; one of
    100 x 1000 x 33 0.60, of 200 x 200 x 200 0.88.
    """
    stage = schedule.graph.stage(name)
    assert roles.row is not None
    names = [index.name for index in stage.statement.output_indices]
    inner = _summed(stage)
    bits = schedule.graph.program.tensor(stage.target).dtype.compute.bits
    rows, columns = extents[roles.row], extents[roles.column]
    tile = small_tile(target, bits, rows or exactly(tuning.TOLD_APART), columns or exactly(tuning.TOLD_APART))
    schedule, copy, cache, theirs = copied_out(schedule, name, user)
    row, column = theirs[roles.row], theirs[roles.column]
    outer = [theirs[index] for index in names if index not in (roles.row, roles.column)]
    program = schedule.graph.program
    turned = [each for each in roles.panels if dimension_of(stage, each, roles.column) != program.tensor(each).rank - 1]
    apart = [
        each
        for each in roles.panels
        if each not in turned and not target.free_masks and _rows_lie_apart(stage, each, inner)
    ]
    first, second = (row, column) if outer or (not turned and _is_small(columns)) else (column, row)
    parts = [f"{first}.outer"] if turned or outer else [f"{first}.outer", f"{second}.outer"]
    if outer and (turned or apart or rows is None or rows.typical <= tuning.TOLD_APART):
        parts = []  # one task packs an operand, or is short
    splits, order = {row: tile.rows, column: tile.columns}, (*outer, f"{first}.outer", f"{second}.outer")
    form = Form(splits, (*outer, *parts), order, (f"{row}.inner",), f"{column}.inner")
    schedule = formed(schedule, copy, form).compute_at(cache, copy, f"{second}.outer")
    for tensor in (*turned, *apart):
        once = any(index not in _indices_of(stage, tensor) for index in names if theirs[index] in outer)
        here = None if once else (copy, outer[-1] if outer else f"{first}.outer")
        schedule = pack_columns(schedule, tensor, cache, roles.column, tile, here)
    return _clamped(schedule, cache, roles.row, roles.column, tile)


def _clamped(schedule: Schedule, cache: str, row: str, column: str, tile: Tile) -> Schedule:
    """The sums of a tile, whose rows are read where they lie: a row that is missing is the last one again."""
    statement = schedule.graph.stage(cache).statement
    inner = _summed(schedule.graph.stage(cache))
    rest = [index.name for index in statement.output_indices if index.name not in (row, column)]
    schedule = schedule.storage(cache, "local", padded=True, clamped=(row,))
    return formed(_unroll_windows(schedule, cache, inner, tile), cache, _sums(rest, inner, row, column, tile))


def _sums(rest: list[str], inner: list[str], row: str | None, column: str, tile: Tile) -> Form:
    """The loops of a register tile: all reductions around it, then its rows, one after the other, in vectors."""
    splits = {} if row is None else {row: tile.rows}
    rows = [] if row is None else [f"{row}.outer", f"{row}.inner"]
    order = (*rest, *inner, *rows, f"{column}.outer")
    return Form({**splits, column: tile.columns}, (), order, rows[1:], f"{column}.inner")


def in_steps(schedule: Schedule, name: str, target: Target, facts: Facts) -> Schedule:
    """A product in the steps of a block: a column operand that no step changes is packed once, before all of them.

    Rows around the steps are split for all statements of the block: a tile of rows goes through the steps by itself. The schedule
    as it is, if this is no product of a row operand and such a column operand.
    """
    graph = schedule.graph
    stage = graph.stage(name)
    roles = roles_in_steps(stage)
    if roles is None or roles.row is None:
        return schedule
    row, column = roles.row, roles.column
    steps = {step for step, _ in stage.statement.steps}
    made = {each.target for each in graph.stages if each.statement.block == stage.statement.block}
    if any(tensor in made or _indices_of(stage, tensor) & steps for tensor in roles.panels):
        return schedule
    bits = graph.program.tensor(stage.target).dtype.compute.bits
    rows, columns = (extent_of(stage, index, facts) for index in (row, column))
    tile = small_tile(target, bits, rows or exactly(tuning.TOLD_APART), columns or exactly(tuning.TOLD_APART))
    schedule = _rows_around(schedule, name, row, tile)
    schedule, copy, cache, _ = copied_out(schedule, name, None)
    leaves = schedule.graph.stage(copy).leaves
    if row in leaves:
        schedule = schedule.split(copy, row, tile.rows)
    schedule = schedule.split(copy, column, tile.columns)
    leaves = schedule.graph.stage(copy).leaves
    last = max(place for place, leaf in enumerate(leaves) if leaf in steps)
    tiles = [f"{column}.outer", *(leaf for leaf in leaves[last + 1 :] if leaf == f"{row}.outer")]
    inside = [f"{row}.inner", f"{column}.inner"]
    outer = [leaf for leaf in leaves[last + 1 :] if leaf not in (*tiles, *inside)]
    form = Form({}, (), (*outer, *tiles), inside[:1], inside[1])
    schedule = formed(schedule, copy, form).compute_at(cache, copy, tiles[-1])
    for tensor in roles.panels:
        schedule = pack_columns(schedule, tensor, cache, column, tile, None)
    return _clamped(schedule, cache, row, column, tile)


def _rows_around(schedule: Schedule, name: str, row: str, tile: Tile) -> Schedule:
    """Tiles of rows that are around the steps of a block, if the rows are."""
    stage = schedule.graph.stage(name)
    steps = [leaf for leaf in stage.leaves if leaf in {step for step, _ in stage.statement.steps}]
    if row not in stage.leaves or stage.leaves.index(row) > stage.leaves.index(steps[0]):
        return schedule
    first = schedule.graph.runs_in(name)
    schedule = schedule.split(first, row, tile.rows)
    leaves = schedule.graph.stage(first).leaves
    inner = f"{row}.inner"
    moved = [leaf for leaf in leaves[leaves.index(inner) : leaves.index(steps[-1]) + 1] if leaf != inner]
    return schedule.reorder(first, *moved, inner)


def roles_in_steps(stage: Stage) -> Roles | None:
    """The roles in a product whose value may ask for the step, since nothing is read where there is none."""
    statement = stage.statement
    outputs = [index.name for index in statement.output_indices]
    reads = [read for read in statement.reads() if read.indices]
    if not statement.reduction_indices or statement.combine is not None or statement.left or _depends_on_data(reads):
        return None
    steps = {step for step, _ in statement.order}
    rows = [index for index in outputs[:-1] if index not in steps] if outputs[-1] not in steps else []
    found = (_roles(reads, row, outputs[-1]) for row in reversed(rows))
    return next((each for each in found if each is not None and each.panels and not each.windows), None)


def _reads_once(stage: Stage, roles: Roles) -> bool:
    """Whether this is a sum over the rows of a matrix, each times a number: nothing of the matrix is read twice."""
    single = _single(stage)
    names = [index.name for index in stage.statement.reduction_indices if index.name not in single]
    outputs = [index.name for index in stage.statement.output_indices if index.name not in single]
    reads = [read for read in stage.statement.reads() if read.tensor in roles.windows]
    plain = all(is_plain(read) and {*names, roles.column} <= _indices_of(stage, read.tensor) for read in reads)
    return roles.row is None and outputs == [roles.column] and len(names) == 1 and plain


def extent_of(stage: Stage, index: str, facts: Facts) -> Fact | None:
    """What is known of the length of an index."""
    return next(fact_of(root.extent, facts) for root in stage.roots if root.name == index)


def _extents(stage: Stage, facts: Facts) -> dict[str, Fact | None]:
    return {root.name: fact_of(root.extent, facts) for root in stage.roots}


def _lines(schedule: Schedule, name: str, user: str | None, roles: Roles, target: Target) -> Schedule:
    """A product with a vector, or sums of columns: parts of the matrix in parallel, then their sums.

    A part is some whole rows, so memory is read in order, and there is work for all threads in narrow matrices too.
    """
    stage = schedule.graph.stage(name)
    line = next(i.name for i in stage.statement.reduction_indices if constant_extent(stage, i.name) != 1)
    lines = schedule.split(name, line, tuning.LINES_OF_TASK)
    parts, partial = added(lines, lines.rfactor(name, f"{line}.outer"))
    stage = parts.graph.stage(name)
    if all(constant_extent(stage, index.name) == 1 for index in stage.statement.reduction_indices):
        return _sum_of_lines(schedule, name, user, roles.column, tuning.LONG, target)  # one part
    parts = _sum_of_lines(parts, partial, None, roles.column, tuning.LINE_COLUMNS, target)
    return _sum_of_lines(parts, name, user, roles.column, tuning.LONG, target)


def _sum_of_lines(
    schedule: Schedule, name: str, user: str | None, column: str, columns: int, target: Target
) -> Schedule:
    """Sums of columns: a part of the result in the first cache, four rows at a time.

    Measured with AVX-512, one thread, a vector times 4096 x 4096: 14 ms with sums of 64 columns in registers, 4.5 ms so.
    """
    schedule, copy, cache, theirs = copied_out(schedule, name, user)
    stage, names = schedule.graph.stage(cache), [*theirs]
    place, inner = theirs[column], [index.name for index in stage.statement.reduction_indices]
    rest = [theirs[index] for index in names if index != column]
    line = next(i for i in inner if constant_extent(stage, i) != 1)
    schedule = formed(schedule, copy, Form({place: columns}, (*rest, f"{place}.outer"), vector=f"{place}.inner"))
    schedule = schedule.compute_at(cache, copy, f"{place}.outer").storage(cache, "local")
    splits = {line: tuning.ABREAST, column: tuning.ABREAST * lanes_of(schedule, stage, target)}
    order = [*(i for i in (*names, *inner) if i not in (column, line)), f"{line}.outer", f"{column}.outer"]
    return formed(schedule, cache, Form(splits, (), order, (f"{line}.inner",), f"{column}.inner"))


def _channels(
    schedule: Schedule, name: str, user: str | None, roles: Roles, target: Target, facts: Facts
) -> Schedule | None:
    """A convolution with vectors along the channels of the result, where short rows would leave lanes without work.

    The register tile is some positions of a row by some vectors of channels; the window is read element by element, so a row needs
    no more lanes than it has. A row of the result is collected in the first cache and turned around when it is written.
    """
    stage = schedule.graph.stage(name)
    names = [index.name for index in stage.statement.output_indices]
    dtype = schedule.graph.program.tensor(stage.target).dtype.compute
    extents = _extents(stage, facts)
    if roles.row is None or not roles.windows or roles.panels or len(roles.row_reads) != 1:
        return None
    channel, place = roles.row, roles.column
    channels, places = extents[channel], extents[place]
    tile = tile_of(target, dtype.bits, places, channels)
    tested = any(place in _positions(condition) for condition in _points(stage)[0])
    if roles.step == 1:
        if tested or channels is None or places is None or places.typical > tuning.TOLD_APART:
            return None
        along = tile_of(target, dtype.bits, channels, places)
        if _cycles(tile, places.typical, channels.typical) * tuning.TURNING >= _cycles(
            along, channels.typical, places.typical
        ):
            return None
    schedule, copy, row, theirs = copied_out(schedule, name, user)
    schedule, row, cache, _ = copied_out(schedule, row, None)
    rest = [index for index in names if index not in (channel, place)]
    own, across = theirs[channel], theirs[place]
    *outer, line = [theirs[index] for index in rest] or [""]
    tasks = (*outer, f"{own}.outer", *([line] if line else []))
    schedule, lines = schedule.split(copy, own, tile.columns), [f"{across}.outer"]
    piece = across
    if places is None or places.typical > tuning.PIECE:
        schedule, piece = schedule.split(copy, across, tuning.PIECE), f"{across}.inner"
        lines.append(f"{piece}.outer")
    form = Form({piece: tile.lanes}, tasks, (*lines, f"{own}.inner"), vector=f"{piece}.inner")
    schedule = formed(schedule, copy, form).compute_at(row, copy, lines[0] if len(lines) > 1 else tasks[-1])
    order = [*(number for number, index in enumerate(names) if index in rest), names.index(place), names.index(channel)]
    schedule = schedule.storage(row, "local", layout=tuple((number, 0) for number in order), padded=True)
    splits, outer = {place: tile.rows, channel: tile.columns}, [*rest, f"{channel}.outer", f"{place}.outer"]
    schedule = formed(schedule, row, Form(splits, (), outer, (f"{place}.inner",), f"{channel}.inner"))
    schedule = schedule.compute_at(cache, row, f"{place}.outer")
    schedule = pack_columns(schedule, roles.row_reads[0], cache, channel, tile, None)
    # the last tile of a row then begins earlier (`codegen.llvm.overlap`); under masks every element would need a test
    overlaps = not target.free_masks and roles.step == 1 and (places is None or tile.rows <= places.least)
    for tensor in () if overlaps or tested else roles.windows:
        schedule = pad_rows(schedule, tensor, cache, replace(tile, vectors=-(-tile.rows * roles.step // tile.lanes)))
    inner = _summed(stage)
    layout = tuple((number, 0) for number in order)
    schedule = schedule.storage(cache, "register", layout=layout, padded=True, masked=overlaps)
    return formed(schedule, cache, _sums(rest, inner, place, channel, tile))


def _cycles(tile: Tile, rows: int, columns: int) -> float:
    """Cycles of multiply-adds per step of the reduction, over all tiles."""
    steps = -(-rows // tile.rows) * -(-columns // tile.columns)
    return steps * max(tile.rows * tile.vectors / 2, 4.0)


def _unroll_windows(schedule: Schedule, cache: str, inner: list[str], tile: Tile) -> Schedule:
    """Unroll the innermost reduction loops of constant length, as long as the code stays small."""
    steps = 1
    for index in reversed(inner):
        length = constant_extent(schedule.graph.stage(cache), index)
        if length is None or steps * length * tile.rows * tile.vectors > tuning.MOST_STEPS:
            break
        steps *= length
        schedule = schedule.unroll(cache, index)
    return schedule


def _slide(schedule: Schedule, cache: str, index: str, roles: Roles, tile: Tile) -> Schedule:
    """Take steps of a window together that are whole vectors apart: what one of them loads, another one needs one vector later.

    Measured with AVX-512, a signal of 10^6 and a window of 64, one thread: 4.1 ms with one load per multiply-add, 1.65 ms with the
    loads of four steps shared.
    """
    stage = schedule.graph.stage(cache)
    slides = any(
        read.tensor in roles.windows and step_of(from_expr(read.indices[-1]), index) == 1
        for read in stage.statement.reads()
        if read.indices
    )
    if not slides or stage.annotation(index) is not None:
        return schedule
    schedule = schedule.split(cache, index, tuning.ABREAST * tile.lanes).split(cache, f"{index}.inner", tile.lanes)
    together = f"{index}.inner.outer"
    return schedule.reorder(cache, f"{index}.outer", f"{index}.inner.inner", together, roles.column).unroll(
        cache, together
    )


def _is_small(columns: Fact | None) -> bool:
    return columns is not None and columns.typical <= tuning.TOLD_APART


def _is_short(columns: Fact | None) -> bool:
    return columns is not None and columns.typical < tuning.FEW_ROWS


def _is_long(columns: Fact | None, tile: Tile) -> bool:
    """Whether so many tiles are full that a slow last one does not matter."""
    most = MANY if columns is None else columns.typical
    return columns is None or most % tile.columns == 0 or most >= tuning.ONCE_IN * tile.columns


def _can_pad(stage: Stage, boxes: Mapping[str, Box]) -> bool:
    reads = [read for read in stage.statement.reads() if read.indices]
    return not _depends_on_data(reads) and not _uses_index_values(stage, boxes)


def _indices_of(stage: Stage, tensor: str) -> set[str]:
    """The indices that a tensor is read at."""
    reads = [read for read in stage.statement.reads() if read.tensor == tensor]
    return {name for read in reads for index in read.indices for name in index_names(index)}


# Notes
#
# Measured with AVX-512, 2 MiB of second cache, one thread, float32, candidates in turns, shortest times:
#
# * Blocks of the reduction need nothing new: `split` of `k`, `rfactor` of `k.outer`, partial sums in registers at the row tiles.
#   The sums then pass through memory once per block. At 2048, blocks of 512 and 1024 took 204 to 206 ms; without them tasks of 64
#   rows (8 in a tile) took 199 ms, tasks of 192 rows (12 in a tile) 170 ms, NumPy 164 ms, PyTorch 142 ms: they are not cut.
#   Tasks of 192 rows gain nothing at 1024 and leave one task for 128 rows; the class of a call's sizes tells them not apart.
# * The innermost loop has no spills. With 12 rows, 512 runs at 122 GFLOP/s, of 138 to 150 in registers; what is lost beside it is
#   packing: 0.13 ms of 2.5 ms for the column operand (0.21 ms panel by panel), 0.1 to 0.18 ms for the rows.
# * Every tile of rows fetches its part of the next panel into the second cache (`codegen.llvm.prefetch`): the first tile of a block
#   waited for it otherwise, at 2048 a third of the time. Tiles of 12 or 14 rows, of three vectors, and tasks of 16 or 24 tiles gain
#   nothing beside it (2048: 0.91 to 0.99 of PyTorch's time, 1024: 0.94 to 1.02). Blocks of the reduction with large blocks of rows
#   (384 x 384) lose: every sum then waits for its tile of the result (a fifth of the time at 2048). With it 128 x 1024 x 1024 with
#   bias takes 0.87 of the time on two threads (1.41 to 1.22 of PyTorch's), and no convolution changes.
# * 128 x 1024 x 1024 with transposed weights: turning the weights into panels is 0.63 to 0.67 ms of 3.2 ms, for 128 rows only.
# * Rows packed once for all tasks, with tasks over rows and columns, made that product slower (1.36 of PyTorch's time, else 1.20)
#   and 1024 not faster: rows are packed by the task that uses them.
# * Small products (`_as_it_lies`): one of 26 x 72 x 26 took 3 us in a batch of 500 with packed operands, more than half of it
#   before the first tile. Read where they lie, with tiles of 9 rows by 2 vectors, 1.28 us in a batch of 4 (0.91 of multiply-adds),
#   1.37 in one of 32, 1.77 in one of 500, which comes from the third cache; PyTorch 1.24 (of 32) and 1.45. A step of `k` takes
#   what its multiply-adds take. Tiles of 13 rows, which 26 is a multiple of, took 0.93 of that in batches of 4, 0.98 to 1.02 in
#   larger ones; 6, 7 and 8 rows 1.08, 0.97 and 1.13 (batch of 500). In a batch of 64 x 64 x 64: 8 x 2 1.20 of NumPy's time,
#   4 x 4 1.07, 6 x 4 1.12.
# * 17 x 1023 by 31 columns, transposed: turning the second operand in pieces of 128 bits takes half as long as in pieces of 256,
#   and its last panel is not filled up with zeros where lanes are masked: 15 us, 35 before both; NumPy takes 19.
# * 17 x 1023 x 127 took 75 to 97 us with a packed column operand; read where it lies 47 (PyTorch 45), with tiles of 6 x 4 vectors;
#   9 x 2 took 49, of three vectors 100. 64 x 1023 x 127: 191 packed, 151 as it lies, PyTorch 135; 64 x 1024 x 256: 574, 448, 409.
#   But 64 x 256 x 256 takes 74 packed and 101 as it lies, 32 x 512 x 128 51 and 64, 17 x 1024 x 1024 1154 and 1210.
# * A group convolution, 8 images, 32 groups of 4, 56 x 56: copying the input into rows that are a tile longer took 4.2 of 8.8 ms
#   (2.4 of 5.0 with two threads), what memory takes for it; read where it lies, with masks at the ends of rows, 5.0 and 2.6 ms.
# * Maxima of 2 x 2 windows, 8 x 64 x 112 x 112: rows of 56 take LLVM's own loop three vectors and a rest one by one, 3.5 ms; with
#   one masked tile of four vectors 2.5 ms, Numba's loop 2.1. Then 0.92 of that (two threads: 0.70) without a branch in the last
#   tile, with a maximum that keeps NaN in three instructions (Numba's takes one), and with the indices of a point divided out once
#   per run of a thread. Fetching 1 to 8 kB ahead gains nothing.
# * The convolution 8 x 32 x 28 x 28 copies its input for 0.2 of 3.4 ms and packs its weights for 0.03. Its third kernel, 416 tasks,
#   took 2.8 and 1.6 ms on one and two threads while neighbouring rows went to different threads, 2.9 and 1.3 since a claim takes
#   several. Its rows are not read under masks: they are read element by element, and every element would need a test.
# * 128 rows were two tasks of rows: with two threads nothing was left to even out between them, and turning the weights of
#   `A @ B.T` into panels, 0.51 and 0.35 ms, gained little from the second thread, as each line was taken from the processor that
#   read it last. With up to 256 rows a task is a panel of columns, which it packs itself, and rows are packed once for all:
#   0.75 to 0.9 of the time on two threads, 0.92 to 0.97 on one (1.0 to 1.17 of PyTorch's), and 0.6 for 128 x 1024 x 1024 as it
#   lies. 8 to 64 rows were one task: 8 x 1024 x 1024 0.75 and 0.55 (read as it lies; in panels 0.94 and 0.66), 32 x 1024 x 1024
#   0.87 and 0.55, 64 x 1024 x 1024 0.78 and 0.52, with transposed weights 16 rows 0.77 and 0.56. While a panel is used, fetching
#   the rows of the next one takes twice as long where they lie 4 kB apart (they share few sets of the second cache), and gains 5 to
#   14 % on one thread, nothing on two, where a panel lies in one piece. Panels of four vectors, several panels per task (5 times
#   slower: the tile leaves the registers) and rows read where they lie do not help.
# * Buffers were shared mappings once, which have no huge pages: a packed operand of 4 MB was then read from 1024 small pages,
#   and 1024 took 1.5 to 2 times as long whenever neighbours used the core (1.05 of PyTorch's time since). With neighbours,
#   medians of 20 to 40 turns, 512 takes 1.2 of PyTorch's time, 1024 1.05 to 1.08; in free moments 1.02 and 0.97. Of what is
#   beside the innermost loop at 512, packing is 0.2 of 2.3 ms. No gain there: rows read where they lie (1.07; 1000 x 777 x 900
#   0.98), blocks of 256 or 384 of the reduction, which fit the first cache (0.97 to 1.05), tiles of 12 and 14 rows (1.0 to 1.1),
#   6 x 4 vectors (1.0). Tiles of 8 x 3 vectors take 0.95 on one thread and 0.95 to 1.06 on two.
#   512 in panels of columns, as up to 256 rows are: 1.15 on one thread, 0.95 to 0.98 on two.
#
# Measured with AVX2 (an AMD EPYC, 512 KiB of second cache, 16 registers), one thread, float32, shortest times:
#
# * Loads and stores under a mask take longer than others. 8 x 64 x 56 x 56 depthwise: input copied into longer rows 1.28 ms,
#   masks at the ends of rows 1.06, the last tile inside the one before it 0.84 (PyTorch 1.16). A group convolution of 32 groups
#   of 4: 4.3, 5.2 and 3.5 ms. Maxima of 2 x 2 windows: LLVM's own loop 1.6, masks 2.0, so 1.2 to 1.6 ms.
# * Products of 26 x 72 x 26, 500 of them: packed 1.17, as it lies under masks 1.44, as it lies with overlapping tiles 0.93 ms;
#   of 64 x 64 x 64, 64 of them: 0.42, 0.57 and 0.39. Tiles of three vectors leave the registers: three to five times as long.
# * Rows of 32 that lie 4 kB apart (the last product of three Kronecker factors of 32) fall into one set of the first cache,
#   which has 8 ways: copied for every task 26, as it lies 28 ms; packed rows as well, as before, 24.
