"""Conditions of a point move to where they are decided: they end a loop, or stand around loops that do not change them.

A reduction stores `T += c ? v : identity`: it has no point where `c` does not hold (`program/points.py`). Over the loops around
a store, each of its conditions, and of its checks, has a place: inside the innermost loop that it depends on.

| before | after |
|---|---|
| `for l in 0:L: T += l < e ? v : 0` | `for l in 0:min(L, e): T += v` |
| `for j in 0:N: T += i == j ? v : 0` | `for j in max(0, i):min(N, i + 1): T += v` |
| `for j in 0:N: T[j] += I[i] == j ? v : 0` | `if 0 <= I[i] && I[i] < N: T[I[i]] += v` |
| `for d: T[d] += c ? v : 0` | `if c: for d: T[d] += v` |
| `for d: check c: S` | `check c: for d: S` |
| `for l: for j in 0:8 (vectorize): T[j] += e < j ? v : 0` | `if e < 7: for l: for j: T[j] += e < j ? v : 0` |
| `for l: for j in 0:8 (unroll): T[j] += l < e + j ? v : 0` | `for l in 0:e: for j: T[j] += v`, then `e:e + 7` as it was |

A condition that differs between the lanes of a vector, or the iterations of an `unroll` around one vector, stays in the value; so
does one on data around an arm that costs less than a jump that is guessed wrong. What is read for a condition is read where the
point would have been: neither before a condition on indices that guards it, nor around a loop that may be empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tc_jupyter.program import (
    Binary,
    Call,
    Const,
    DType,
    Expr,
    IndexVar,
    Read,
    Select,
    Size,
    Unary,
    children,
    conjuncts,
    identity_of,
    int64,
    limits_of,
    on_data,
    points_of,
    walk,
)
from tc_jupyter.program.integers import all_of, index_names, parts_of_minimum, reads_elements
from tc_jupyter.ranges import IndexBox, SizeExpr, from_expr, interval, nonnegative, to_expr

from .ir import Allocate, Block, Check, For, If, Kernel, Stmt, Store, walk_statements
from .loop_ends import binary, ended, ends_of, is_at_least, is_position, only_iteration, sum_of
from .rewrite import with_blocks, with_body
from .simplify import simplify_expr

MOVABLE = ("serial", "vectorize", "unroll")
"""Loops that a condition may be moved out of: no tasks, no threads."""
SHORT = 8
"""Loops of up to so many iterations keep their length, by which they are written out: a condition stands inside them."""
MOST_INSIDE = 512
"""Iterations of loops inside of one that is cut where a condition begins or ceases to hold for all of them."""
CHEAP = 12
"""Reads and operations of a value up to which it is computed in all lanes, and chosen from, rather than jumped around.

Measured with AVX-512, one thread, `C(i, j) +=! A(i, k) > 0 ? ... : 0` of 256 x 256 where half of `A` is positive, over jumps: 0.18
with 1, 0.29 with 7, 0.38 with 11, 0.56 with 16. A condition that hardly ever holds would rather have the jumps."""


def with_points(kernel: Kernel, checked: bool, zeros: bool = False) -> Kernel:
    """The kernel with every condition of a reduction, and every check, where it is decided.

    Args:
        checked: its checks are in; without them nobody knows what a condition on data guards.
        zeros: a size may be 0: only elements that a condition picks are found, so that no call looks for them.
    """
    stored = (stmt.buffer for stmt in walk_statements(kernel.body) if isinstance(stmt, Allocate))
    shapes = {buffer.name: buffer.shape for buffer in (*kernel.buffers, *stored)}
    body = _Moves(checked, zeros, shapes).block(kernel.body, ())
    return replace(kernel, body=body, unguarded=checked and not kernel.checks and not zeros)


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition under which a store happens; `own`: it stands in the stored value."""

    condition: Expr
    own: bool = False


_Guard: TypeAlias = _Test | Check
"""What stands between the loops and the store; of a check, its body is not looked at."""


@dataclass(frozen=True, slots=True)
class _Nest:
    """Loops around one store and nothing else, or around stores that happen together, those of a fold of several components.

    Attributes:
        loops: outermost first; their bodies are not looked at.
        comments: of the bodies.
        guards: around the store, outermost first.
        checked: the loops hold every check that depends on data.
        zeros: a size may be 0.
        shapes: of what is read. around: the loops around all of these.
    """

    loops: tuple[For, ...]
    comments: tuple[str, ...]
    guards: tuple[_Guard, ...]
    store: Store | Block
    checked: bool
    zeros: bool
    shapes: Mapping[str, tuple[Expr, ...]]
    around: tuple[For, ...]

    @property
    def buffers(self) -> frozenset[str]:
        """What is written."""
        stores = self.store.body if isinstance(self.store, Block) else (self.store,)
        return frozenset(each.buffer for each in stores if isinstance(each, Store))

    @property
    def placed(self) -> frozenset[str]:
        """The variables of loops over dimensions whose subscripts are computed and looked at: a point has one place there, or none,
        where it is outside. They are no loops of points.
        """
        looked = [guard.values[0] for guard in self.guards if isinstance(guard, Check)]
        tests = (guard.condition for guard in self.guards if isinstance(guard, _Test))
        found: set[str] = set()
        for test in tests:
            match test:
                case (
                    Binary(op="==", left=IndexVar(name=name), right=place)
                    | Binary(op="==", left=place, right=IndexVar(name=name))
                ):
                    found |= {name} if place in looked else set()
                case _:
                    pass
        return frozenset(found)

    def may_pass(self, guard: _Guard, other: _Guard) -> bool:
        """Whether a guard may stand before one that it stands behind.

        A check is made where the guards before it hold, and whatever those behind it say. Where a condition does not hold, what is
        read behind it may not be there. If the condition is one on data there is a check in the loops that says so, unless
        what is read is there anyway.
        """
        if isinstance(guard, Check) or isinstance(other, Check):
            return False
        reads = self.reads_elsewhere(guard.condition)
        proved = self.checked and not any(isinstance(each, Check) for each in self.guards) and on_data(other.condition)
        return not reads or (proved and not any(map(reads_elements, (i for read in reads for i in read.indices))))

    def reads_elsewhere(self, condition: Expr) -> list[Read]:
        """The reads of a condition that are not proved to be there, wherever a loop that it depends on begins."""
        reads = [node for node in walk(condition) if isinstance(node, Read) and node.indices]
        names = index_names(condition)
        inmost = max((number for number, loop in enumerate(self.loops) if loop.var in names), default=0)
        begun = (*self.around, *self.loops[:inmost]) if reads else ()
        facts = [binary("-", length, int64(1)) for loop in begun for length in parts_of_minimum(loop.extent)]
        return [read for read in reads if not self.is_there(read, facts)]

    def is_there(self, read: Read, facts: Sequence[Expr] = ()) -> bool:
        """Whether an element is proved to be there at every point of the loops where some numbers are 0 or more, whatever the
        conditions say.
        """
        return is_inside(read.indices, self.shapes.get(read.tensor, ()), (*self.around, *self.loops), facts)


def is_inside(
    indices: Sequence[Expr], shape: Sequence[Expr], loops: tuple[For, ...], facts: Sequence[Expr] = ()
) -> bool:
    """Whether an element of an array is proved to be there at every point of some loops where some numbers are 0 or more."""
    if len(shape) != len(indices):
        return False
    for index, extent in zip(indices, shape, strict=True):
        last = binary("-", extent, int64(1))
        until = any(is_at_least(last, binary("+", index, fact), loops) for fact in (int64(0), *facts))
        if not until or not is_at_least(index, int64(0), loops):
            return False
    return True


# --- taking nests apart ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Moves:
    checked: bool
    zeros: bool
    shapes: Mapping[str, tuple[Expr, ...]]

    def block(self, block: Block, around: tuple[For, ...]) -> Block:
        return with_body(block, (self.statement(stmt, around) for stmt in block.body))

    def statement(self, stmt: Stmt, around: tuple[For, ...]) -> Stmt:
        if isinstance(stmt, For):
            found = self.nest(stmt, around)
            if found is not None and any(_moves(each, found) for each in found.guards):
                return _in_parts(found, around) or _moved(found, around) or stmt
            around = (*around, stmt)
        return with_blocks(stmt, lambda block: self.block(block, around))

    def nest(self, loop: For, around: tuple[For, ...]) -> _Nest | None:
        """The loops that stand around one store alone."""
        loops: list[For] = []
        comments: list[str] = []
        stmt: Stmt = loop
        while isinstance(stmt, For):
            comment, inner = _only(stmt.body)
            if inner is None:
                return None
            loops.append(stmt)
            comments.append(comment)
            stmt = inner
        opened = _opened(stmt)
        if opened is None:
            return None
        nest = _Nest(tuple(loops), tuple(comments), *opened, self.checked, self.zeros, self.shapes, around)
        return _with_places_inmost(nest) if self.zeros else nest


def _with_places_inmost(nest: _Nest) -> _Nest:
    """Loops over what a point looks at as its place stand inside of all others, so that a check may stand around them alone."""
    placed = nest.placed
    order = sorted(range(len(nest.loops)), key=lambda number: nest.loops[number].var in placed)
    loops = tuple(nest.loops[number] for number in order)
    if any(placed & (index_names(loop.min) | index_names(loop.extent)) for loop in loops):
        return nest
    return replace(nest, loops=loops, comments=tuple(nest.comments[number] for number in order))


def _moves(guard: _Guard, nest: _Nest) -> bool:
    """Whether a guard has a place of its own."""
    if nest.zeros:
        return _picks(guard.condition, nest) or (isinstance(guard, _Test) and guard.own)
    return _picks(guard.condition, nest) or isinstance(guard, Check) or guard.own


def _picks(condition: Expr, nest: _Nest) -> bool:
    """Whether a condition around a store leaves one iteration of a loop."""
    sides = (condition.left, condition.right) if isinstance(condition, Binary) and condition.op == "==" else ()
    return any(side == IndexVar(loop.var) for side in sides for loop in nest.loops)


def _only(block: Block) -> tuple[str, Stmt | None]:
    """The only statement of a block, through blocks of one, or the plain stores in it; and the comments of the blocks."""
    comments: list[str] = []
    stmt: Stmt = block
    while isinstance(stmt, Block):
        comments += [stmt.comment] if stmt.comment else []
        if len(stmt.body) != 1:
            plain = all(isinstance(each, Store) and each.reduce is None for each in stmt.body)
            return "\n".join(comments), stmt if plain and stmt.body else None
        stmt = stmt.body[0]
    return "\n".join(comments), stmt


def _opened(stmt: Stmt) -> tuple[tuple[_Guard, ...], Store | Block] | None:
    """What stands around a store, and the store; the conditions of a combined value are taken out of it."""
    match stmt:
        case Store(reduce=None) | Block():
            return (), stmt
        case Store(reduce=str(operator)):
            conditions, value = points_of(stmt.value, operator)
            return tuple(_Test(each, own=True) for each in conditions), replace(stmt, value=value)
        case If(otherwise=None) | Check():
            _, inner = _only(stmt.then if isinstance(stmt, If) else stmt.body)
            opened = None if inner is None else _opened(inner)
            if opened is None:
                return None
            guards, store = opened
            if isinstance(stmt, If):
                return (*map(_Test, conjuncts(stmt.condition)), *guards), store
            return _checked(stmt, guards), store
        case _:
            return None


def _checked(check: Check, guards: tuple[_Guard, ...]) -> tuple[_Guard, ...]:
    """A check before others; where it asks for what the store needs anyway, that comes first: `!c || inside` -> `c`, `inside`."""
    premises, inside = _implication(check.condition)
    tests = {guard.condition for guard in guards if isinstance(guard, _Test)}
    if not premises or not set(premises) <= tests:
        return (check, *guards)
    rest = tuple(each for each in guards if isinstance(each, Check) or each.condition not in premises)
    return (*map(_Test, premises), replace(check, condition=inside), *rest)


def _implication(condition: Expr) -> tuple[tuple[Expr, ...], Expr]:
    """`!a || (!b || c)` as `a`, `b` and `c`."""
    match condition:
        case Binary(op="||", left=Unary(op="!", operand=premise), right=right):
            premises, conclusion = _implication(right)
            return (*conjuncts(premise), *premises), conclusion
        case _:
            return (), condition


# --- parts of loops ----------------------------------------------------------------------------------------------------


def _in_parts(nest: _Nest, around: tuple[For, ...]) -> Stmt | None:
    """A nest with a loop in parts, each with its own conditions; `None` where there is one part."""
    parts, place = _parts(nest, around)
    if len(parts) < 2:
        return None
    outside = (*around, *nest.loops[:place])
    # a condition that does not belong to the parts may have a place further out, and takes the loops around with it
    alone = all(part.guards == () for part in parts if len(part.guards) < len(nest.guards))
    if not alone:
        return Block(tuple(_moved(part, around) or _built(part) for part in parts))
    inner = [replace(part, loops=part.loops[place:], comments=part.comments[place:], around=outside) for part in parts]
    stmt: Stmt = Block(tuple(_moved(part, outside) or _built(part) for part in inner))
    for loop, comment in zip(reversed(nest.loops[:place]), reversed(nest.comments[:place]), strict=True):
        stmt = replace(loop, body=Block((stmt,), comment))
    return stmt


def _parts(nest: _Nest, around: tuple[For, ...]) -> tuple[list[_Nest], int]:
    """The parts of a serial loop in which conditions hold at all points of short loops inside, or at some; and which loop it is.

    Worked example: `k < 8*o + i + 1` holds for all rows `i in 0:8` of a tile where `k < 8*o + 1`, for some until `k < 8*o + 8`, and
    for none behind that.
    """
    movable = (
        n for n, guard in enumerate(nest.guards) if all(nest.may_pass(guard, other) for other in nest.guards[:n])
    )
    cuts = {number: cut for number in movable if (cut := _cut(nest, nest.guards[number])) is not None}
    places = {place for place, *_ in cuts.values()}
    if nest.zeros or len(places) != 1:
        return [nest], 0
    (place,) = places
    loop, outside = nest.loops[place], (*around, *nest.loops[:place])

    def extreme(op: str, a: Expr, b: Expr) -> Expr:
        for one, other in ((a, b), (b, a)):
            if is_at_least(one, other, outside):
                return one if op == "max" else other
        return simplify_expr(binary(op, a, b))

    # where the first point is, where all are, behind the last place with all of them, behind the last point
    least = most = loop.min
    until = end = sum_of(loop.min, loop.extent)
    for _, first, last in cuts.values():
        if first is not None:
            least, most = extreme("max", least, first[0]), extreme("max", most, first[1])
        if last is not None:
            until, end = extreme("min", until, last[0]), extreme("min", end, last[1])
    begins, ends = most != least, until != end
    most = extreme("max", least, extreme("min", most, end)) if begins else least
    until = extreme("max", most, extreme("min", until, end)) if ends else end
    found: list[_Nest] = []
    for first, last, kept in ((least, most, True), (most, until, False), (until, end, True)):
        if first != last:
            guards = tuple(guard for number, guard in enumerate(nest.guards) if kept or number not in cuts)
            loops = list(nest.loops)
            loops[place] = replace(loop, min=first, extent=simplify_expr(binary("-", last, first)))
            found.append(replace(nest, loops=tuple(loops), guards=guards))
    return found, place


def _most(extent: Expr) -> int | None:
    """The most iterations of a loop over a tile, which may be less than a whole one."""
    match extent:
        case Const(value=value):
            return int(value)
        case Binary(op="min", left=left, right=right):
            return min((most for most in map(_most, (left, right)) if most is not None), default=None)
        case _:
            return None


_Spread: TypeAlias = tuple[Expr, Expr]
"""The least and the largest value of an end."""


def _cut(nest: _Nest, guard: _Guard) -> tuple[int, _Spread | None, _Spread | None] | None:
    """The serial loop that a condition would end if it were not for short loops inside, with what these make of its ends."""
    if not isinstance(guard, _Test) or any(isinstance(node, Read) for node in walk(guard.condition)):
        return None
    names = index_names(guard.condition)
    used = [number for number, loop in enumerate(nest.loops) if loop.var in names]
    serial = [number for number in used if nest.loops[number].kind == "serial" and not _is_short(nest.loops[number])]
    place = serial[-1] if serial else len(nest.loops)
    inside = [number for number in used if number > place]
    if not inside or any(nest.loops[number].kind != "serial" for number in used if number < place):
        return None
    ends = ends_of(guard.condition, nest.loops[place].var)
    if ends is None:
        return None
    box = _box_of([nest.loops[number] for number in inside])
    if box is None:
        return None
    spread = [None if end is None else _spread(end, box) for end in ends]
    if any(end is not None and found is None for end, found in zip(ends, spread, strict=True)):
        return None
    return place, spread[0], spread[1]


def _spread(end: Expr, box: IndexBox) -> _Spread | None:
    found = interval(from_expr(end), box)
    if found.lower is None or found.upper is None or (found.lower.indices | found.upper.indices) & box.keys():
        return None
    return to_expr(found.lower), to_expr(found.upper)


def _built(nest: _Nest) -> Stmt:
    """The loops with all conditions inside."""
    own = [guard.condition for guard in nest.guards if isinstance(guard, _Test) and guard.own]
    others = [guard for guard in nest.guards if not (isinstance(guard, _Test) and guard.own)]
    stmt = _guarded(others, _with_conditions(nest.store, own))
    for loop, comment in zip(reversed(nest.loops), reversed(nest.comments), strict=True):
        stmt = replace(loop, body=Block((stmt,), comment))
    return stmt


# --- places ----------------------------------------------------------------------------------------------------------


def _moved(nest: _Nest, around: tuple[For, ...]) -> Stmt | None:
    """The nest with its guards where they are decided; `None` if all are there."""
    inmost, depths = len(nest.loops), _depths(nest, around)
    loops, placed = list(nest.loops), list[list[_Guard]]([[] for _ in range(inmost + 1)])
    kept: list[Expr] = []
    changed = False
    for number, guard in enumerate(nest.guards):
        depth = depths[number]
        ended = _ended(nest, loops, number, depths, around)
        shorter = _shorter(nest, loops, guard, around) if nest.zeros and ended is None else None
        if shorter is not None:
            place, loops[place] = shorter
            changed = True
            if isinstance(guard, _Test) and not any(isinstance(node, Size) for node in walk(guard.condition)):
                continue  # the ends say the same, whatever the sizes are
        if ended is not None:
            loops[depth - 1], inside = ended
            placed[depth - 1] += map(_Test, inside)
        elif isinstance(guard, _Test) and guard.own and _stays(nest, guard, depth):
            kept.append(guard.condition)
            if (weaker := _weaker(nest, guard.condition)) is not None:
                place, test = weaker
                placed[place].append(_Test(test))
                changed = True
            continue
        else:
            tests = _nonempty(nest, depth, around) if isinstance(guard, Check) and not nest.zeros else None
            placed[depth] += [*map(_Test, tests or ()), guard]
        changed = changed or depth < inmost or ended is not None
    if not changed:
        return None
    stmt = _guarded(placed[inmost], _with_conditions(nest.store, kept))
    for number in range(inmost - 1, -1, -1):
        loop = replace(loops[number], body=Block((stmt,), nest.comments[number]))
        stmt = _guarded(placed[number], loop)
    return stmt


def _weaker(nest: _Nest, condition: Expr) -> tuple[int, Expr] | None:
    """What holds wherever a condition that stays with the lanes of a tile holds for one, and in how many loops it is decided.

    It is decided outside of a serial loop that does not change it. `None` if there is no such loop, or if it always holds.

    Worked example: where `i in 0:8` and `j in 0:32` are in a tile, `32*o + j <= 8*p + i` asks for `32*o <= 8*p + 7`.
    """
    if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">="):
        return None
    if reads_elements(condition) or not is_position(condition.left):
        return None
    names = index_names(condition)
    used = [number for number, loop in enumerate(nest.loops) if loop.var in names]
    inside = [number for number in used if nest.loops[number].kind in ("vectorize", "unroll")]
    place = max((number + 1 for number in used if number not in inside), default=0)
    if not inside or inside[0] < place or all(loop.kind != "serial" for loop in nest.loops[place : inside[0]]):
        return None
    box = _box_of([nest.loops[number] for number in inside])
    small, large = (condition.left, condition.right) if condition.op[0] == "<" else (condition.right, condition.left)
    gap = from_expr(binary("-", large, small)) - (len(condition.op) == 1)
    most = None if box is None else interval(gap, box).upper
    if box is None or most is None or most.indices & box.keys() or nonnegative(most):
        return None
    return place, Binary("<=", int64(0), to_expr(most), DType.BOOL)


def _box_of(loops: Sequence[For]) -> IndexBox | None:
    """First and last values of loops over a tile, which may be less than a whole one; `None` for longer loops."""
    box: dict[str, tuple[SizeExpr, SizeExpr]] = {}
    for loop in loops:
        most = _most(loop.extent)
        if most is None or not isinstance(loop.min, Const) or most > MOST_INSIDE:
            return None
        first = from_expr(loop.min)
        box[loop.var] = (first, first + most - 1)
    return box


def _depths(nest: _Nest, around: tuple[For, ...]) -> list[int]:
    """Inside how many of the loops each guard is decided."""
    fixed = max((number + 1 for number, loop in enumerate(nest.loops) if loop.kind not in MOVABLE), default=0)
    placed = nest.placed
    counted = (n for n, loop in enumerate(nest.loops) if loop.var not in placed)
    maybe_empty = max((n + 1 for n in counted if not _runs(nest, n, around)), default=0)
    found: list[int] = []
    inside = len(nest.loops)  # of the loops of points
    while nest.zeros and inside and nest.loops[inside - 1].var in placed:
        inside -= 1
    for number, guard in enumerate(nest.guards):
        parts = (guard.condition, *guard.values) if isinstance(guard, Check) else (guard.condition,)
        used = [n + 1 for n, loop in enumerate(nest.loops) if any(loop.var in index_names(part) for part in parts)]
        depth = max(fixed, *used, 0)
        before = list(zip(nest.guards[:number], found, strict=True))
        if nest.zeros and not _picks(guard.condition, nest):
            depth = max(depth, inside)
        alone = depth and isinstance(guard, _Test) and _alone(nest, nest.loops, guard.condition, depth, around)
        if isinstance(guard, Check) and not nest.zeros:
            depth = next(n for n in range(depth, len(nest.loops) + 1) if _nonempty(nest, n, around) is not None)
        elif nest.reads_elsewhere(guard.condition) and not alone:
            depth = max(depth, maybe_empty)
        if _reads_from(guard.condition, nest.buffers):
            depth = len(nest.loops)
        found.append(max(depth, *(place for other, place in before if not nest.may_pass(guard, other)), 0))
    return found


def _nonempty(nest: _Nest, depth: int, around: tuple[For, ...]) -> list[Expr] | None:
    """The conditions under which all loops from one on have iterations; `None` if that is not known before the first of them.

    A check may stand around loops that are perhaps empty where these conditions stand around it.
    """
    inside, tests = {loop.var for loop in nest.loops[depth:]}, list[Expr]()
    for number in range(depth, len(nest.loops)):
        extent = nest.loops[number].extent
        if _runs(nest, number, around):
            continue
        if nest.zeros or inside & index_names(extent) or reads_elements(extent):
            return None
        tests.append(Binary("<", int64(0), extent, DType.BOOL))
    return tests


def _stays(nest: _Nest, test: _Test, depth: int) -> bool:
    """Whether a condition that stands in a value is better left there."""
    inside = nest.loops[depth:]
    if depth and nest.loops[depth - 1].kind == "unroll" and len(inside) > 1 and not on_data(test.condition):
        return False  # several vectors have it in common
    if not inside or (depth and nest.loops[depth - 1].kind != "serial" and nest.loops[depth - 1].kind in MOVABLE):
        return True
    cheap = isinstance(nest.store, Store) and is_cheap(nest.store.value)
    return on_data(test.condition) and all(loop.kind != "serial" for loop in inside) and cheap


def is_cheap(value: Expr) -> bool:
    """Whether a value costs less than a jump that is guessed wrong, and may be computed where a condition on data is false."""
    cost = 0
    todo = [value]
    while todo:
        node = todo.pop()
        match node:
            case Read():
                cost += 1
                if any(map(reads_elements, node.indices)):
                    return False
            case Call():
                return False
            case Binary(op="/" | "//" | "%"):
                return False
            case Select():
                return False
            case _:
                cost += isinstance(node, Binary)
                todo += children(node)
    return cost <= CHEAP


def _guarded(guards: Sequence[_Guard], stmt: Stmt) -> Stmt:
    """A statement with guards around it, the first one outermost; neighbouring conditions are one."""
    tests: list[Expr] = []
    for guard in reversed(guards):
        if isinstance(guard, _Test):
            tests.insert(0, guard.condition)
            continue
        stmt, tests = replace(guard, body=Block((_under(tests, stmt),))), []
    return _under(tests, stmt)


def _under(tests: Sequence[Expr], stmt: Stmt) -> Stmt:
    return If(all_of(tests), Block((stmt,))) if tests else stmt


def _with_conditions(store: Store | Block, conditions: Sequence[Expr]) -> Store | Block:
    if not conditions or isinstance(store, Block) or store.reduce is None:
        return store
    value = store.value
    return replace(
        store, value=Select(all_of(conditions), value, identity_of(store.reduce, value.dtype), value.dtype, value.span)
    )


# --- ends of loops ---------------------------------------------------------------------------------------------------


def _ended(
    nest: _Nest, loops: Sequence[For], number: int, depths: Sequence[int], around: tuple[For, ...]
) -> tuple[For, tuple[Expr, ...]] | None:
    """The loop that decides a condition with that as its end, if it is one, and conditions around this loop."""
    guard, depth = nest.guards[number], depths[number]
    if not isinstance(guard, _Test) or not depth:
        return None
    loop = loops[depth - 1]
    before = zip(nest.guards[:number], depths, strict=False)
    if loop.kind != "serial" or _is_short(nest.loops[depth - 1]):
        return None
    if any(place >= depth and not nest.may_pass(guard, other) for other, place in before):
        return None
    if _reads_from(guard.condition, nest.buffers):
        return None
    alone = _alone(nest, loops, guard.condition, depth, around)
    if alone is not None or nest.zeros:
        return alone
    if nest.reads_elsewhere(guard.condition) and not _runs(nest, depth - 1, around):
        return None
    found = ended(loop, guard.condition, (*around, *nest.loops[: depth - 1]))
    return None if found is None else (found, ())


def _shorter(nest: _Nest, loops: Sequence[For], guard: _Guard, around: tuple[For, ...]) -> tuple[int, For] | None:
    """A loop that ends where elements or other loops say, though sizes may be 0, and its place."""
    has_size = isinstance(guard, _Test) and any(isinstance(node, Size) for node in walk(guard.condition))
    if not isinstance(guard, _Test) or (has_size and not reads_elements(guard.condition)):
        return None
    names = index_names(guard.condition)
    place = max((number for number, loop in enumerate(loops) if loop.var in names), default=None)
    if place is None or loops[place].kind != "serial":
        return None
    reads = [node for node in walk(guard.condition) if isinstance(node, Read) and node.indices]
    outside = (*around, *loops[:place])
    if not all(nest.is_there(read) for read in reads) or not all(map(_is_counted, outside)):
        return None
    found = ends_of(guard.condition, loops[place].var)
    if found is None:
        return None
    loop, end = loops[place], binary("+", loops[place].min, loops[place].extent)
    start = loop.min if found[0] is None else binary("max", loop.min, found[0])
    end = end if found[1] is None else binary("min", end, found[1])
    return place, replace(loop, min=start, extent=binary("-", end, start))


def _is_counted(loop: For) -> bool:
    """Whether the ends of a loop need no element."""
    return not reads_elements(loop.min) and not reads_elements(loop.extent)


def _alone(
    nest: _Nest, loops: Sequence[For], condition: Expr, depth: int, around: tuple[For, ...]
) -> tuple[For, tuple[Expr, ...]] | None:
    """The only iteration in which a loop's variable is what elements say, and the conditions under which there is one.

    They begin with those under which a point would have read these elements.
    """
    loop = loops[depth - 1]
    here = only_iteration(loop, condition, nest.zeros)
    if here is None or loop.kind != "serial" or _is_short(nest.loops[depth - 1]):
        return None
    tests: list[Expr] = []
    inside = {each.var for each in nest.loops[depth - 1 :]}
    for number in range(depth - 1, len(nest.loops)):
        is_rest = bool(inside & index_names(nest.loops[number].extent))  # of a split: the other loop says it
        # a point is looked at without a place, too
        is_rest = is_rest or (number >= depth and nest.loops[number].var in nest.placed)
        if not is_rest and not _runs(nest, number, around):
            tests.append(Binary("<", int64(0), nest.loops[number].extent, DType.BOOL))
    (low, high), end = limits_of(here), sum_of(loop.min, loop.extent)
    if not (isinstance(loop.min, Const) and loop.min.value <= low):
        tests.append(Binary("<=", loop.min, here, DType.BOOL))
    if not (isinstance(end, Const) and high < end.value):
        tests.append(Binary("<", here, end, DType.BOOL))
    return replace(loop, min=here, extent=int64(1)), tuple(tests)


def _is_short(loop: For) -> bool:
    return isinstance(loop.extent, Const) and int(loop.extent.value) <= SHORT


def _runs(nest: _Nest, number: int, around: tuple[For, ...]) -> bool:
    """Whether a loop is known to have an iteration whenever those around it have one."""
    loops = nest.loops
    return not nest.zeros and _is_positive(
        loops[number].extent, {loop.var: loop.extent for loop in (*around, *loops[:number])}
    )


def _is_positive(extent: Expr, lengths: dict[str, Expr]) -> bool:
    """Whether a length is at least 1.

    Worked examples: the size `N`; `(N + 31) // 32`; `min(N - 32*o, 32)` inside `for o in 0:(N + 31) // 32`.
    """
    match extent:
        case Const(value=value):
            return int(value) > 0
        case Size(name=name):
            return "." not in name  # of a size of 0 there is other code
        case Binary(op="min", left=left, right=right):
            return _is_positive(left, lengths) and _is_positive(right, lengths)
        case Binary(op="//", left=Binary(op="+", left=whole, right=Const(value=more)), right=Const(value=part)):
            return int(more) >= int(part) - 1 and _is_positive(whole, lengths)
        case Binary(op="-", left=whole, right=Binary(op="*", left=Const(value=part), right=IndexVar(name=outer))):
            tiles = Binary("//", sum_of(whole, int64(int(part) - 1)), int64(int(part)), DType.INT64)
            return lengths.get(outer) == tiles
        case _:
            return False


def _reads_from(expr: Expr, buffers: frozenset[str]) -> bool:
    return any(isinstance(node, Read) and node.tensor in buffers for node in walk(expr))


__all__ = ["is_cheap", "is_inside", "with_points"]
