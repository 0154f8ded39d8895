"""Calls with arrays in random chunks, against the same call with whole arrays."""

from __future__ import annotations

import random as plain_random
from itertools import pairwise

import numpy as np

import tc_jupyter as tc
from tc_jupyter.ranges import from_expr
from tc_jupyter.runtime.arrays import numpy_dtype


def drawn_chunks(random, extent):
    """Extents of chunks: ones, primes, uneven ones, empty ones, one that would be larger than the array."""
    if extent == 0:
        return random.choice([(0,), (0, 0)])
    kind = random.randrange(6)
    if kind == 0:
        return (1,) * extent
    if kind == 1:
        return (extent,)
    if kind == 2:
        step = random.choice([2, 3, 5, 7, extent + 3])
        return tuple(min(step, extent - first) for first in range(0, extent, step))
    cuts = sorted(random.randint(0, extent) for _ in range(random.randint(1, 3)))
    if kind < 5:
        cuts = sorted({cut for cut in cuts if 0 < cut < extent})
    edges = [0, *cuts, extent]
    return tuple(high - low for low, high in pairwise(edges))


def arguments_for(program, sizes, seed):
    """Arrays and numbers for a def at these sizes."""
    numbers = np.random.default_rng(seed)
    known = {**sizes, **{name: 1 + seed % 2 for name in program.integer_scalars}}
    values = []
    for name in program.parameters:
        tensor = program.tensor(name)
        kind = np.dtype(numpy_dtype(tensor.element))
        if not tensor.written_rank:
            values.append(known[name] if name in known else kind.type(1) if kind.kind == "b" else kind.type(0.5).item())
            continue
        dims = (tensor.dims or ())[: tensor.written_rank]
        shape = tuple(max(0, from_expr(dim).evaluate(known)) for dim in dims)
        if kind.kind in "iu":
            made = numbers.integers(0, 3, shape)
            if name == "Ptr":
                made = np.sort(made)
        elif kind.kind == "b":
            made = numbers.integers(0, 2, shape)
        elif kind.kind == "c":
            made = numbers.random(shape) + 1j * numbers.random(shape)
        else:
            made = numbers.random(shape) * 2 - 0.5
        values.append(np.asarray(made).astype(kind))
    return values


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def chunked(values, random):
    """The arrays in chunks; behind the first one, now and then one stays as it is."""
    import dask.array as da

    found = []
    for each in values:
        cut = isinstance(each, np.ndarray) and each.ndim
        cut = cut and (random.random() < 0.9 or not any(isinstance(one, da.Array) for one in found))
        found.append(da.from_array(each, chunks=tuple(drawn_chunks(random, n) for n in each.shape)) if cut else each)
    return found


def judge(f, values, seed):
    """What became of one call in chunks: "equal", "close" where sums were cut, or why there is nothing to compare."""
    random = plain_random.Random(seed)
    try:
        wanted = as_tuple(f(*values))
    except tc.CallError as error:
        wanted = error
    given = chunked(values, random)
    if not any(hasattr(each, "dask") for each in given):
        return "nothing in chunks"
    try:
        plan = f.chunked(*given)
        found = [np.asarray(each.compute(scheduler="synchronous")) for each in as_tuple(f(*given))]
    except tc.CallError as error:
        if isinstance(wanted, tc.CallError):
            return "refused"
        raise AssertionError(f"refused in chunks only: {error}\n{shown(f, given)}") from error
    assert not isinstance(wanted, tc.CallError), f"not refused in chunks: {wanted}\n{shown(f, given)}"
    cut = any(layer.cut for layer in plan.layers)
    # in machine code, sums and products that are fused are rounded by the schedule of each size
    rounded = f.options.target == "cpu"
    for name, one, other in zip(plan.results, wanted, found, strict=True):
        note = f"{name}:\n{one}\nin chunks:\n{other}\n{shown(f, given)}\n{plan}"
        assert one.dtype == other.dtype, note
        assert one.shape == other.shape, note
        if cut or rounded:
            exact = one.dtype.kind != "f" and one.dtype.kind != "c" and one.dtype.name != "bfloat16"
            loose = 0.05 if one.dtype.itemsize == 2 else 1e-4
            same = (
                np.array_equal(one, other)
                if exact
                else np.allclose(one.astype(complex), other.astype(complex), loose, loose, equal_nan=True)
            )
        else:
            same = one.tobytes() == other.tobytes() or np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
        assert same, note
    return "close" if cut else "equal"


def shown(f, given):
    chunks = [getattr(each, "chunks", None) or np.shape(each) for each in given]
    return f"{f.text}\n{chunks}"
