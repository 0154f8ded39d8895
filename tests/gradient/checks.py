"""The judge of derivatives: <dY, jvp u> is <vjp dY, u>, and both are central differences, in double precision."""

from __future__ import annotations

import itertools
import warnings
from functools import lru_cache
from types import MappingProxyType

import numpy as np

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.derivatives import steps_about
from tc_jupyter.function import module_of
from tc_jupyter.gradient import jvp, text_of, vjp
from tc_jupyter.ranges import from_expr
from tests.gradient.defs import looked_at

STEP = 1e-6


@lru_cache(maxsize=8)
def compiled(text, target="interpreter"):
    """The functions of a text without what is said about it."""
    analysis = looked_at(text)
    assert analysis.ok, f"{analysis.render()}\n{text}"
    return module_of(analysis, Options(text, "tc", target, False, (), "all", None, None))


def floats_of(program, names):
    return [name for name in names if program.tensor(name).dtype.is_float]


def derived(given, make):
    """The text of a derived def, and its function."""
    program = given.program
    text = text_of(
        make(steps_about(program, given.ranges), f"{program.name}_d", floats_of(program, program.parameters))
    )
    return text, next(iter(compiled(text, given.engine).values()))


def draws(program, seed, given=MappingProxyType({})):
    """Sizes and arguments to try, of several kinds; small ones first, since the interpreter takes its time, and at last sizes that are one.

    Integers of the last kind grow, as those that say where rows begin.
    """
    scalars = program.integer_scalars
    for number, base in itertools.product(range(5), (3, 5, 13, 1)):
        random = np.random.default_rng([seed, number, base])
        known = {name: base + (place + number) % 3 * (number < 4) for place, name in enumerate(program.sizes)}
        known |= given
        known |= {name: int(random.integers(0, 3)) + (number == 1) for name in scalars}
        low, high = [(0.3, 0.9), (1.1, 2.5), (-2.0, 2.0), (0.1, 3.0), (0.3, 0.9)][number]
        yield (
            known,
            [argument(program.tensor(name), known, random, low, high, number == 4) for name in program.parameters],
        )


def argument(tensor, known, random, low, high, grow=False):
    if tensor.name in known and not tensor.rank:
        return known[tensor.name]
    shape = tuple(max(0, from_expr(dim).evaluate(known)) for dim in tensor.dims or ())
    shape = shape[:-1] if tensor.pairs else shape
    if tensor.dtype.is_float:
        values = drawn(random, low, high, shape, tensor.element)
    elif tensor.dtype.is_integer:
        size = int(np.prod(shape))
        few = random.integers(0, 3, shape) if size % 3 else random.permutation(size).reshape(shape)
        values = np.sort(few) if grow and few.ndim else few
    else:
        values = random.integers(0, 2, shape)
    return values.astype(tensor.element.value) if shape else values.item() if hasattr(values, "item") else values


def drawn(random, low, high, shape, dtype):
    """Numbers of a type; of complex ones both parts."""
    parts = [random.uniform(low, high, shape) for _ in range(1 + dtype.is_complex)]
    return parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]


def inner(a, b):
    """The inner product; that of complex numbers is the one of their parts."""
    return np.vdot(a, b).real


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def wide(value):
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def called(function, arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [wide(np.asarray(each)) for each in as_tuple(function(*arguments))]


def judge(given, seed=0, tries=20):
    """Check a def; says whether there were arguments that it takes."""
    program = given.program
    forward = compiled(given.text, given.engine)[given.name]
    for _, arguments in itertools.islice(draws(program, seed, given.sizes), tries):
        try:
            results = called(forward, arguments)
        except tc.CallError:
            continue
        if agrees(given, forward, arguments, results, seed):
            return True
    return False


def agrees(given, forward, arguments, results, seed=0):
    """Check a call of a def; says whether it has derivatives that are numbers."""
    program = given.program
    wrt = floats_of(program, program.parameters)
    at = [program.parameters.index(name) for name in wrt]
    floats = [k for k, name in enumerate(program.results) if program.tensor(name).dtype.is_float]
    if not all(np.isfinite(results[k]).all() for k in floats) or not sum(results[k].size for k in floats):
        return False
    random = np.random.default_rng(seed)
    back_text, back = derived(given, vjp)  # what no call takes need not have one
    ahead_text, ahead = derived(given, jvp)
    shown = f"\n{given.text}\n{back_text}\n{ahead_text}\n{arguments}"
    kinds = {name: program.tensor(name).element for name in (*program.results, *wrt)}
    exact = all(kind.value not in ("float32", "complex64") for kind in kinds.values())

    def direction(shape, name):
        return drawn(random, -1, 1, shape, kinds[name])

    cotangents = [np.asarray(direction(results[k].shape, program.results[k])) for k in floats]
    cotangents = [each.astype(kinds[program.results[k]].value) for k, each in zip(floats, cotangents, strict=True)]
    tangents = [direction(np.shape(arguments[k]), name) for k, name in zip(at, wrt, strict=True)]
    tangents = [np.asarray(each, kinds[name].value)[()] for each, name in zip(tangents, wrt, strict=True)]
    backwards = called(back, [*arguments, *cotangents])
    both = called(ahead, [*arguments, *tangents])
    forwards = both_results(both, program, floats)
    for place, name in enumerate(wrt):
        assert backwards[place].shape == np.shape(arguments[at[place]]), f"shape of d{name}{shown}"
    one = sum(inner(a, b) for a, b in zip(backwards, tangents, strict=True))
    other = sum(inner(a, b) for a, b in zip(cotangents, forwards, strict=True))
    scale = sum(np.abs(a * b).sum() for a, b in zip(backwards, tangents, strict=True)) + 1e-3
    assert np.isfinite(one) or not np.isfinite(other), f"{one} {other}{shown}"
    if not np.isfinite(one):
        return False
    # 0 times an infinite slope, as of `sqrt(abs(T))` at 0, which a condition keeps out backwards
    steep = np.isnan(other) and has_steep(ahead, arguments, tangents, program, floats)
    assert steep or abs(one - other) <= (1e-12 if exact else 1e-4) * scale, (
        f"<dY, jvp u> = {other}, <vjp dY, u> = {one}{shown}"
    )
    if exact:
        check_differences(forward, arguments, at, tangents, cotangents, floats, one, scale, shown)
    return True


def has_steep(ahead, arguments, tangents, program, floats):
    """Whether the tangent of no motion at all is not a number: some slope is infinite there."""
    still = both_results(called(ahead, [*arguments, *(np.zeros_like(each) for each in tangents)]), program, floats)
    return any(np.isnan(each).any() for each in still)


def both_results(both, program, floats):
    """The tangents among the results of a `jvp`."""
    places, found = 0, []
    for k, _ in enumerate(program.results):
        places += 1
        if k in floats:
            found.append(both[places])
            places += 1
    return found


def check_differences(forward, arguments, at, tangents, cotangents, floats, found, scale, shown):
    sides = []
    for step in (STEP, -STEP):
        moved = list(arguments)
        for place, tangent in zip(at, tangents, strict=True):
            moved[place] = np.asarray(arguments[place]) + step * tangent
            if not np.ndim(moved[place]):
                moved[place] = moved[place].item()
        results = called(forward, moved)
        sides.append(sum(inner(c, results[k]) for c, k in zip(cotangents, floats, strict=True)))
    difference = (sides[0] - sides[1]) / (2 * STEP)
    rounding = 1e-15 / STEP * sum(np.abs(c * results[k]).sum() for c, k in zip(cotangents, floats, strict=True))
    assert abs(difference - found) <= 2e-5 * max(scale, abs(difference)) + rounding, (
        f"{found}, differences {difference}{shown}"
    )
