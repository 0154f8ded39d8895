"""Random programs, arguments and schedules for the property tests (hypothesis strategies).

Programs are text, so that a failure is a cell that a person can read and paste. Most are legal; a test discards the others.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule.stage import TAILS

SIZES = ("N", "M", "K")
FLOATS = ("float", "double", "half")
INTEGERS = ("int32", "int64", "uint8", "int16", "uint32", "int8")
NUMPY = {
    "float": "float32", "double": "float64", "half": "float16", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "int16": "int16", "uint32": "uint32", "int8": "int8", "bool": "bool", "uint16": "uint16", "uint64": "uint64",
}  # fmt: skip

EVERY_TYPE = (*FLOATS, "bfloat16", *INTEGERS, "uint16", "uint64", "bool")


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


@st.composite
def kernels_of_templates(draw) -> str:
    """The text of one def `f` whose statements have the form that a template for a GPU takes: products, transposes, windows, sums of
    rows, gathers; of all element types, with permuted and inlined temporaries, guards and quotients."""
    form = draw(st.sampled_from((_product, _permuted, _window, _rows, _gathered)))
    return draw(form())


def _params(tensors: dict[str, tuple[str, str]]) -> str:
    return ", ".join(f"{kind}({dims}) {name}" for name, (kind, dims) in tensors.items())


@st.composite
def _permutation(draw, indices: str) -> str:
    return ", ".join(draw(st.permutations(list(indices))))


@st.composite
def _factor(draw, tensor: str, indices: list[str], kind: str) -> str:
    """A read, as it is or through a function of its element."""
    read = f"{tensor}({', '.join(indices)})"
    forms = (
        read,
        read,
        read,
        f"({read} + 1)",
        f"int32({read})",
        f"float({read})",
        f"max({read}, 1)",
        f"({read} > 1 ? {read} : 2)",
    )
    return draw(st.sampled_from(forms))


@st.composite
def _product(draw) -> str:
    """`C(i, j) op A(i, k) * B(k, j)`, in any order of dimensions, over one or two reductions, with a temporary around it."""
    kinds = [draw(st.sampled_from(EVERY_TYPE)) for _ in range(3)]
    if draw(st.booleans()):
        kinds[1] = kinds[0]
    batch = draw(st.sampled_from(("", "", "b")))
    second = draw(st.sampled_from(("", "", "", "l")))
    left, right = (draw(st.permutations(list(batch + own + "k" + second))) for own in "ij")
    size = {"b": "3", "i": "N", "j": "M", "k": "K", "l": "2"}
    tensors = {"A": (kinds[0], ",".join(size[n] for n in left)), "B": (kinds[1], ",".join(size[n] for n in right))}
    lines, operand = [], "A"
    if draw(st.integers(0, 2)) == 0:
        order = draw(st.permutations(left))
        lines.append(f"T({', '.join(order)}) = {draw(_factor('A', left, kinds[0]))}")
        left, operand = order, "T"
    back = draw(st.sampled_from((False, False, False, True)))
    reads = [
        [f"(K-1)-{n}" if back and n == "k" and side else n for n in names] for side, names in enumerate((left, right))
    ]
    value = f"{draw(_factor(operand, reads[0], kinds[0]))} * {draw(_factor('B', reads[1], kinds[1]))}"
    if draw(st.integers(0, 3)) == 0:
        tensors["D"] = (kinds[2], "M, K")
        value += f" * {draw(_factor('D', ['j', 'k'], kinds[2]))}"
    out = draw(st.permutations([n for n in (batch, "i", "j") if n]))
    operator = draw(st.sampled_from(("+=!", "+=!", "+=!", "+=", "max=!", "min=!", "*=!")))
    where = " where k in 0:K" if back else ""
    lines.append(f"C({', '.join(out)}) {operator} {value}{where}")
    result = "C"
    if draw(st.booleans()):
        tensors["Bi"] = (draw(st.sampled_from(EVERY_TYPE)), "M")
        lines.append(f"E({draw(_permutation(''.join(out)))}) = {draw(_factor('C', out, ''))} + Bi(j)")
        result = draw(st.sampled_from(("E", "C, E")))
    return f"def f({_params(tensors)}) -> ({result}) {{ " + "\n ".join(lines) + " }"


@st.composite
def _permuted(draw) -> str:
    """A chain of statements that turn dimensions around."""
    indices = "ijkl"[: draw(st.sampled_from((2, 2, 3, 3, 4)))]
    size = dict(zip("ijkl", ("N", "M", "K", "3"), strict=True))
    tensors = {"A": (draw(st.sampled_from(EVERY_TYPE)), ",".join(size[n] for n in indices))}
    lines, before, order = [], "A", list(indices)
    for number in range(draw(st.integers(1, 3))):
        value = draw(_factor(before, order, ""))
        if draw(st.booleans()):
            name = f"B{number}"
            some = draw(st.permutations(indices))[: draw(st.integers(1, len(indices)))]
            tensors[name] = (draw(st.sampled_from(EVERY_TYPE)), ",".join(size[n] for n in some))
            other = draw(_factor(name, list(some), ""))
            value = draw(st.sampled_from((f"{value} + {other}", f"{value} * {other}", f"min({value}, {other})")))
        guard = draw(st.sampled_from(("", "", "", "i > 0 && i < 4", f"{indices[-1]} % 2 == 0", "i <= j")))
        order = draw(st.permutations(indices))
        lines.append(f"T{number}({', '.join(order)}) = {f'{guard} ? {value} : 1' if guard else value}")
        before = f"T{number}"
    return f"def f({_params(tensors)}) -> ({before}) {{ " + "\n ".join(lines) + " }"


@st.composite
def _window(draw) -> str:
    """Sums over neighbours, which may wrap around, stop at the ends or read a zero there; a temporary before or after."""
    rank = draw(st.sampled_from((1, 1, 2)))
    kind, weight = (draw(st.sampled_from(EVERY_TYPE)) for _ in range(2))
    names, sizes = "ij"[:rank], ("N", "M")[:rank]
    tensors = {"X": (kind, ",".join(sizes))}
    lines, source = [], "X"
    if draw(st.integers(0, 2)) == 0:
        lines.append(f"S({', '.join(names)}) = {draw(_factor('X', list(names), kind))}")
        source = "S"
    step = draw(st.sampled_from(("k", "k", "2*k", "-k")))
    beyond = draw(st.sampled_from(("inside", "wrap", "clamp", "zero", "half")))
    place = {
        "inside": f"i + {step}", "wrap": f"(i + {step}) % N", "clamp": f"max(min(i + {step}, N-1), 0)", "zero": f"i + {step}",
        "half": "(i + k) / 2",
    }[beyond]  # fmt: skip
    value = f"{source}({', '.join([place, *names[1:]])})"
    if beyond == "zero":
        value = f"(0 <= i + {step} && i + {step} < N ? {value} : 0)"
    if draw(st.booleans()):
        tensors["W"] = (weight, "K")
        value = f"{value} * W(k)"
    clauses = [] if beyond == "inside" and "W" in tensors else [f"k in 0:{draw(st.sampled_from(('K', '3', '5')))}"]
    clauses += [] if beyond == "inside" else ["i in 0:N"]
    where = f" where {', '.join(clauses)}" if clauses else ""
    lines.append(
        f"Y({', '.join(names)}) {draw(st.sampled_from(('+=!', '+=!', 'max=!', 'min=!', '*=!')))} {value}{where}"
    )
    result = "Y"
    if draw(st.booleans()):
        after = draw(st.sampled_from((f"Y({', '.join(names)}) / 5", f"max(Y({', '.join(names)}), 1)")))
        lines.append(f"Z({', '.join(reversed(names))}) = {after}")
        result = draw(st.sampled_from(("Z", "Y, Z")))
    return f"def f({_params(tensors)}) -> ({result}) {{ " + "\n ".join(lines) + " }"


@st.composite
def _rows(draw) -> str:
    """Rows that are reduced, and their elements combined with the result."""
    size = draw(st.sampled_from(("M", "M", "5", "2", "33")))
    tensors = {"X": (draw(st.sampled_from(EVERY_TYPE)), f"N,{size}")}
    read = draw(_factor("X", ["i", "j"], ""))
    lines = [f"m(i) {draw(st.sampled_from(('+=!', 'max=!', 'min=!', '*=!')))} {read}"]
    forms = ("X(i, j) - m(i)", "m(i) * X(i, j)", "max(X(i, j), m(i))", "X(i, j) / (m(i) + 1.5)")
    lines.append(f"e(i, j) = {draw(st.sampled_from(forms))}")
    result = draw(st.sampled_from(("e", "m, e")))
    if draw(st.booleans()):
        lines.append(f"s(i) {draw(st.sampled_from(('+=!', 'max=!')))} e(i, j)")
        lines.append(f"O({draw(_permutation('ij'))}) = e(i, j) + s(i)")
        result = "O"
    return f"def f({_params(tensors)}) -> ({result}) {{ " + "\n ".join(lines) + " }"


@st.composite
def _gathered(draw) -> str:
    """Rows that data choose, inside the table as it is or by limits; summed in bags, or through a temporary."""
    index = draw(st.sampled_from(("int32", "int64", "uint8", "int8", "uint16")))
    kind = draw(st.sampled_from(EVERY_TYPE))
    bag = draw(st.sampled_from(("K", "5", "3")))
    tensors = {"L": (kind, "7, M"), "I": (index, f"N, {bag}")}
    place = draw(st.sampled_from(("I(i, k)", "max(min(I(i, k), 6), 0)", "I(i, k) % 7", "I(i, k) / 2", "6 - I(i, k)")))
    lines, table = [], "L"
    if draw(st.integers(0, 2)) == 0:
        lines.append(f"T(j, r) = {draw(_factor('L', ['r', 'j'], kind))}")
        table = "T"
    order = [place, "j"] if table == "L" else ["j", place]
    operator = draw(st.sampled_from(("+=!", "+=!", "max=!", "min=!")))
    if draw(st.booleans()):
        lines.append(f"O(i, j) {operator} {table}({', '.join(order)})")
    else:
        lines.append(f"O({draw(_permutation('ijk'))}) = {table}({', '.join(order)})")
    return f"def f({_params(tensors)}) -> (O) {{ " + "\n ".join(lines) + " }"


def few_points(most: int = 4000) -> st.SearchStrategy[dict[str, int]]:
    """Values of all size names from 0 to 70, at tiles and beside them, of which the product is not too large."""
    one = st.one_of(
        st.sampled_from((0, 1, 2, 3, 4, 5, 7, 8, 9)),
        st.sampled_from((15, 16, 17, 31, 32, 33, 64, 65)),
        st.integers(0, 70),
    )
    every = st.fixed_dictionaries({name: one for name in SIZES})
    return every.filter(lambda numbers: math.prod(max(1, number) for number in numbers.values()) <= most)


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
        ("split", "split", "fuse", "skew", "reorder", "compute_at", "compute_at", "compute_inline", "cache_read", "cache_write", "separate",
         "rfactor", "annotate", "compute_with", "layout", "scope", "bind")
    ))  # fmt: skip
    stages = schedule.stages
    if kind == "compute_inline":
        return schedule.compute_inline(stage)
    if kind in ("cache_write", "separate"):
        return getattr(schedule, kind)(stage)
    if kind == "cache_read":
        tensor = data.draw(st.sampled_from(tuple(t.name for t in schedule.graph.program.tensors)))
        option = data.draw(st.sampled_from(({}, {"reindex": True}, {"value": True}, {"only": 0}, {"only": 1})))
        return schedule.cache_read(tensor, stage, **option)
    if not leaves:
        return schedule
    leaf = data.draw(st.sampled_from(leaves))
    if kind == "split":
        factor = data.draw(st.sampled_from((1, 2, 3, 4, 16)))
        tail = data.draw(st.sampled_from((None, None, *TAILS)))
        if data.draw(st.integers(0, 4)) == 0:
            return schedule.split(stage, leaf, nparts=factor, tail=tail)
        return schedule.split(stage, leaf, factor=factor, tail=tail)
    if kind in ("fuse", "skew"):
        number = leaves.index(leaf)
        return getattr(schedule, kind)(stage, leaf, leaves[min(number + 1, len(leaves) - 1)])
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
