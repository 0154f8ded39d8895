"""Random programs, arguments and schedules for the property tests (hypothesis strategies).

Programs are text, so that a failure is a cell that a person can read and paste. Most are legal; a test discards the others.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tc_jupyter.diagnostics import CompileError

SIZES = ("N", "M", "K")
FLOATS = ("float", "double", "half")
INTEGERS = ("int32", "int64", "uint8", "int16", "uint32", "int8")
NUMPY = {
    "float": "float32", "double": "float64", "half": "float16", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "int16": "int16", "uint32": "uint32", "int8": "int8", "bool": "bool",
}  # fmt: skip


@dataclass
class Tensor:
    """A tensor in scope: name, element type, number of dimensions."""

    name: str
    dtype: str
    rank: int


@dataclass
class Sketch:
    """A program while it is drawn."""

    inputs: list[Tensor] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    made: list[Tensor] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    guards: bool = True
    sizes: tuple[str, ...] = SIZES


def drawn(few: int, many: int, *strategies):
    """A property of `few` drawn examples in plain `pytest`, and of `many` in the slow run."""

    def decorate(check):
        @pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])
        def test(count):
            limited = settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
            limited(given(*strategies)(check))()

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


@st.composite
def programs(draw, max_statements: int = 3, dtypes: tuple[str, ...] = (*FLOATS, *INTEGERS), chain: bool = False) -> str:
    """The text of one def called `f`; a `chain` has no guards and its last statement reads a temporary."""
    dtype = draw(st.sampled_from(dtypes))
    sketch = Sketch(guards=not chain)
    params = []
    for number in range(draw(st.integers(1, 3))):
        rank = draw(st.sampled_from((1, 1, 2, 2, 3)))
        dims = [draw(st.sampled_from((*SIZES, *SIZES, "7"))) for _ in range(rank)]
        name = "ABC"[number]
        kind = dtype if draw(st.booleans()) else draw(st.sampled_from(dtypes))
        sketch.inputs.append(Tensor(name, kind, rank))
        params.append(f"{kind}({','.join(dims)}) {name}")
    declared = " ".join(params)
    sketch.sizes = tuple(name for name in SIZES if name in re.findall(r"\w+", declared)) or ("5",)
    if chain:
        rank = draw(st.integers(1, 2))
        left = ",".join("ij"[:rank])
        sketch.lines.append(
            f"S({left}) = {' + '.join(draw(_read(sketch.inputs[0], list('ij'[:rank]))) for _ in range(2))}"
        )
        for k, index in enumerate("ij"[:rank]):
            if index not in _used(sketch.lines[-1].split("=")[1]):
                sketch.lines[-1] += (
                    f"{' where' if ' where' not in sketch.lines[-1] else ','} {index} in 0:{sketch.sizes[k % len(sketch.sizes)]}"
                )
        sketch.made.append(Tensor("S", "?", rank))
        subscripts = [draw(st.sampled_from((index, f"{index}+1", f"2*{index}", f"{index}/2"))) for index in "ij"[:rank]]
        sketch.lines.append(f"R({left}) = S({', '.join(subscripts)}) + S({left})")
        return f"def f({', '.join(params)}) -> (R) {{\n    " + "\n    ".join(sketch.lines) + "\n}"
    for number in range(draw(st.integers(1, max_statements))):
        draw(_statement(sketch, number))
    # temporaries are what a later statement reads and nobody returns
    results = [t.name for t in sketch.made if draw(st.booleans())] or [sketch.made[-1].name]
    if sketch.made[-1].name not in results:
        results.append(sketch.made[-1].name)
    body = "\n".join(f"    {line}" for line in sketch.lines)
    return f"def f({', '.join(params)}) -> ({', '.join(results)}) {{\n{body}\n}}"


@st.composite
def _statement(draw, sketch: Sketch, number: int) -> None:
    names = ("i", "j", "k", "l")
    if sketch.made and draw(st.integers(0, 5)) == 0:
        draw(_update(sketch))
        return
    rank = draw(st.sampled_from((0, 1, 1, 2, 2, 3)))
    left = names[:rank]
    reduction = rank == 0 or draw(st.booleans())
    inner = names[rank : rank + draw(st.integers(1, 2))] if reduction else ()
    indices = [*left, *inner]
    operator = draw(st.sampled_from(("+=!", "+=!", "max=!", "min=!", "*=!", "+=", "max="))) if inner else "="
    terms = [draw(_term(sketch, indices)) for _ in range(draw(st.integers(1, 3)))]
    value = terms[0]
    for term in terms[1:]:
        value = f"{value} {draw(st.sampled_from(('+', '-', '*')))} {term}"
    if draw(st.integers(0, 4)) == 0:
        value = f"max({value}, {draw(_term(sketch, indices))})"
    clauses = []
    for index in [*left, *(name for name in inner if name in _used(value))]:
        if index not in _used(value) or draw(st.integers(0, 5)) == 0:
            low = draw(st.integers(0, 2))
            half = f"{low}+{sketch.sizes[0]}/2"
            high = draw(st.sampled_from((*sketch.sizes, "5", half, f"{low}+3")))
            clauses.append(f"{index} in {low if high in ('5', half, f'{low}+3') else 0}:{high}")
    if draw(st.integers(0, 6)) == 0 and clauses:
        value = f"v * {value}"
        clauses.append(f"v = {draw(_term(sketch, indices))}")
    where = f" where {', '.join(clauses)}" if clauses else ""
    name = f"T{number}"
    target = f"{name}({','.join(left)})" if left else name
    sketch.lines.append(f"{target} {operator} {value}{where}")
    sketch.made.append(Tensor(name, "?", rank))


@st.composite
def _update(draw, sketch: Sketch) -> None:
    """A later statement on a tensor that exists."""
    tensor = draw(st.sampled_from(sketch.made))
    left = ("i", "j", "k")[: tensor.rank]
    target = f"{tensor.name}({','.join(left)})" if left else tensor.name
    own = target
    if draw(st.booleans()) and left:
        sketch.lines.append(f"{target} = {own} * 2 + {draw(st.integers(0, 3))}")
    else:
        operator = draw(st.sampled_from(("+=", "max=", "min=")))
        sketch.lines.append(f"{target} {operator} {draw(st.integers(0, 4))}")


@st.composite
def _term(draw, sketch: Sketch, indices: list[str]) -> str:
    tensors = [*sketch.inputs, *sketch.made]
    kind = draw(st.integers(0, 9))
    if kind == 0 or not indices:
        return str(draw(st.integers(0, 3)))
    if kind == 1 and sketch.guards:
        return f"({draw(_read(draw(st.sampled_from(tensors)), indices))} > 1 ? {draw(_read(draw(st.sampled_from(tensors)), indices))} : 2)"
    if kind == 2 and sketch.guards:
        index = "+".join(dict.fromkeys(draw(st.lists(st.sampled_from(indices), min_size=1, max_size=2))))
        shifted = draw(_read(draw(st.sampled_from(tensors)), indices))
        return f"({index} > 0 && {index} < 4 ? {shifted} : 1)"
    return draw(_read(draw(st.sampled_from(tensors)), indices))


@st.composite
def _read(draw, tensor: Tensor, indices: list[str]) -> str:
    if tensor.rank == 0:
        return tensor.name
    return f"{tensor.name}({', '.join(draw(_subscript(indices)) for _ in range(tensor.rank))})"


@st.composite
def _subscript(draw, indices: list[str]) -> str:
    index = draw(st.sampled_from(indices))
    other = draw(st.sampled_from(indices))
    shift = draw(st.integers(1, 2))
    forms = (
        index, index, index, index, f"{index}+{shift}", f"{index}-{shift}", f"2*{index}", f"2*{index}+{shift}", f"6-{index}",
        f"{index}/2", f"{index}%3", f"{index}+{other}" if other != index else index, f"max(min({index}, 3), 0)", "0",
        f"({index}+{shift})%7", f"({index}-{other})%7", f"({index}+{other})%5", f"max(min({index}+{other}-1, 6), 0)",
    )  # fmt: skip
    return draw(st.sampled_from(forms))


def _used(value: str) -> set[str]:
    return set(re.findall(r"\b[ijkl]\b", value))


def arguments(program, seed: int, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Random input arrays of a program for given sizes; small values, so that integer and floating results stay comparable."""
    from tc_jupyter.ranges import from_expr

    random = np.random.default_rng(seed)
    arrays = {}
    for name in program.parameters:
        tensor = program.tensor(name)
        shape = tuple(from_expr(dim).evaluate(sizes) for dim in tensor.dims)
        values = random.integers(0, 4, shape)
        arrays[name] = values.astype(tensor.dtype.value)
    return arrays


def sizes() -> st.SearchStrategy[dict[str, int]]:
    """Values of all size names, 0 and 1 among them."""
    return st.fixed_dictionaries({name: st.sampled_from((0, 1, 2, 3, 5, 7, 8, 9, 11)) for name in SIZES})


def random_schedule(data: st.DataObject, schedule, steps: int = 6):
    """Apply random primitives; refused ones leave the schedule as it is."""
    for _ in range(data.draw(st.integers(0, steps))):
        stage = data.draw(st.sampled_from(schedule.stages))
        leaves = schedule.leaves(stage)
        try:
            schedule = _primitive(data, schedule, stage, leaves)
        except CompileError:
            continue
    return schedule


def _primitive(data: st.DataObject, schedule, stage: str, leaves: tuple[str, ...]):
    kind = data.draw(st.sampled_from(
        ("split", "split", "fuse", "reorder", "compute_at", "compute_at", "compute_inline", "cache_read", "cache_write", "rfactor",
         "annotate", "compute_with", "layout", "scope", "bind")
    ))  # fmt: skip
    stages = schedule.stages
    if kind == "compute_inline":
        return schedule.compute_inline(stage)
    if kind == "cache_write":
        return schedule.cache_write(stage)
    if kind == "cache_read":
        tensor = data.draw(st.sampled_from(tuple(t.name for t in schedule.graph.program.tensors)))
        option = data.draw(st.sampled_from(({}, {"reindex": True}, {"value": True}, {"only": 0}, {"only": 1})))
        return schedule.cache_read(tensor, stage, **option)
    if not leaves:
        return schedule
    leaf = data.draw(st.sampled_from(leaves))
    if kind == "split":
        factor = data.draw(st.sampled_from((1, 2, 3, 4, 16)))
        if data.draw(st.integers(0, 4)) == 0:
            return schedule.split(stage, leaf, nparts=factor)
        return schedule.split(stage, leaf, factor=factor)
    if kind == "fuse":
        number = leaves.index(leaf)
        return schedule.fuse(stage, leaf, leaves[min(number + 1, len(leaves) - 1)])
    if kind == "reorder":
        return schedule.reorder(stage, *data.draw(st.permutations(leaves)))
    if kind in ("compute_at", "compute_with"):
        other = data.draw(st.sampled_from(stages))
        if not schedule.leaves(other):
            return schedule
        placed = getattr(schedule, kind)(stage, other, data.draw(st.sampled_from(schedule.leaves(other))))
        if kind == "compute_at" and data.draw(st.booleans()):
            with suppress(CompileError):
                return placed.storage(stage, rolling=True)
        return placed
    if kind == "rfactor":
        return schedule.rfactor(stage, leaf)
    if kind == "scope":
        return schedule.storage(stage, data.draw(st.sampled_from(("global", "local", "shared", "register", "auto"))))
    if kind == "bind":
        return schedule.bind(
            stage, leaf, data.draw(st.sampled_from(("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")))
        )
    if kind == "layout":
        rank = schedule.graph.program.tensor(schedule.graph.stage(stage).target).rank
        if rank == 0:
            return schedule
        order = data.draw(st.permutations(range(rank)))
        tiled = ((order[-1], data.draw(st.sampled_from((2, 3)))),) if data.draw(st.booleans()) else ()
        return schedule.storage(stage, layout=(*((dimension, 0) for dimension in order), *tiled))
    return getattr(schedule, data.draw(st.sampled_from(("parallel", "vectorize", "unroll"))))(stage, leaf)
