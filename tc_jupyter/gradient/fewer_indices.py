"""What a statement computes without some of its indices has a name: a sum of products stays one in the derivative.

Worked example: `Y(t, d) +=! g(t, h) * sigmoid(g(t, h)) * U(d, h)` is `V(t, h) = g(t, h) * sigmoid(g(t, h))` and
`Y(t, d) +=! V(t, h) * U(d, h)`. So `dV` is a product of matrices, and `dg` follows from it element by element; else each of the
points `(t, d, h)` would have a slope of `sigmoid`. Factors are put together for that, wherever they stand in a product.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from tc_jupyter.program import Binary, Call, Const, Expr, Read, children, rebuild, walk
from tc_jupyter.program.integers import index_names

from .arithmetic import guarded, over, times
from .partials import depends
from .sharing import Guards, guards, is_plain, may_have_a_name, temporary, told_by, with_temporaries
from .steps import Array, Step, Steps, root


def with_fewer_indices(about: Steps, active: Container[str]) -> Steps:
    """The steps with temporaries for what does not depend on all indices of a statement, and gets a derivative.

    Args:
        active: the tensors that get derivatives.
    """

    def rewritten(step: Step, arrays: Mapping[str, Array]) -> Iterator[Step]:
        return _Naming(step, arrays, active).steps() if is_plain(step) else iter((step,))

    return with_temporaries(about, rewritten)


class _Naming:
    def __init__(self, step: Step, arrays: Mapping[str, Array], active: Container[str]) -> None:
        self.step, self.arrays, self.active = step, arrays, active
        self.names = frozenset(point.name for point in step.points)
        self.guards = guards(step.value)
        self.made: list[Step] = []

    def steps(self) -> Iterator[Step]:
        value = self.named_in(self.step.value)
        yield from self.made
        yield replace(self.step, value=value)

    def named_in(self, node: Expr) -> Expr:
        """The value with names for the largest parts that have fewer indices."""
        if self.is_worth(node) and (tests := told_by(node, self.guards[node])) is not None:
            return self.named(node, tests)
        above, below = _factors(node)
        for name in sorted(self.names) if len(above) > 1 else ():
            inside, rest = _parted(above, name)
            under, others = _parted(below, name)
            if not inside or not rest or not self.is_worth(found := _quotient(inside, under)):
                continue
            if (tests := told_by(found, self.guards[node])) is not None:
                return _quotient([self.named(found, tests), *map(self.named_in, rest)], others)
        parts = children(node)
        return rebuild(node, tuple(map(self.named_in, parts))) if parts else node

    def is_worth(self, node: Expr) -> bool:
        """Whether a part has fewer indices, and a derivative that takes more than a product with a number."""
        if not index_names(node) < self.names or not may_have_a_name(node, self.step, self.arrays):
            return False
        reads = {each for each in walk(node) if isinstance(each, Read) and root(each.tensor) in self.active}
        slow = any(map(_is_slow, walk(node)))
        return (slow or len(reads) > 1) and depends(node, lambda read: root(read.tensor) in self.active)

    def named(self, node: Expr, tests: Guards) -> Expr:
        """The name of a part, which has such parts itself, behind conditions."""
        taken = {*self.arrays, *(root(each.target) for each in self.made)}
        step, read = temporary(self.step, guarded(tests, node), taken)
        self.made += _Naming(step, self.arrays, self.active).steps()
        return read


def _is_slow(node: Expr) -> bool:
    return isinstance(node, Call) or (isinstance(node, Binary) and node.op == "/" and not isinstance(node.right, Const))


def _factors(value: Expr) -> tuple[list[Expr], list[Expr]]:
    """What a product of one type is made of, and what it is divided by."""
    if not isinstance(value, Binary) or value.op not in ("*", "/") or not value.dtype.is_float:
        return [value], []
    (above, below), (over, under) = _factors(value.left), _factors(value.right)
    return ([*above, *over], [*below, *under]) if value.op == "*" else ([*above, *under], [*below, *over])


def _parted(factors: Sequence[Expr], name: str) -> tuple[list[Expr], list[Expr]]:
    """The factors without an index, and the others."""
    return [each for each in factors if name not in index_names(each)], [
        each for each in factors if name in index_names(each)
    ]


def _quotient(above: Sequence[Expr], below: Sequence[Expr]) -> Expr:
    return reduce(over, below, reduce(times, above))
