"""The judge of derivatives: <dY, jvp u> is <vjp dY, u>, and both are central differences, in double precision."""

from __future__ import annotations

import itertools
import warnings
from functools import lru_cache

import numpy as np

import tc_jupyter as tc
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.derivatives import steps_about
from tc_jupyter.function import module_of
from tc_jupyter.gradient import jvp, text_of, vjp
from tc_jupyter.ranges import from_expr
from tests.gradient.defs import looked_at

ENGINE = "interpreter"
STEP = 1e-6


@lru_cache(maxsize=8)
def compiled(text, target=ENGINE):
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
    return text, next(iter(compiled(text).values()))


def draws(program, seed):
    """Sizes and arguments to try, of several kinds; small ones first, since the interpreter takes its time, and at last sizes that are one."""
    scalars = program.integer_scalars
    for number, base in itertools.product(range(5), (3, 5, 13, 1)):
        random = np.random.default_rng([seed, number, base])
        known = {name: base + (place + number) % 3 * (number < 4) for place, name in enumerate(program.sizes)}
        known |= {name: int(random.integers(0, 3)) + (number == 1) for name in scalars}
        low, high = [(0.3, 0.9), (1.1, 2.5), (-2.0, 2.0), (0.1, 3.0), (0.3, 0.9)][number]
        yield known, [argument(program.tensor(name), known, random, low, high) for name in program.parameters]


def argument(tensor, known, random, low, high):
    if tensor.name in known and not tensor.rank:
        return known[tensor.name]
    shape = tuple(max(0, from_expr(dim).evaluate(known)) for dim in tensor.dims or ())
    if tensor.dtype.is_float:
        values = random.uniform(low, high, shape)
    elif tensor.dtype.is_integer:
        size = int(np.prod(shape))
        few = random.integers(0, 3, shape) if size % 3 else random.permutation(size).reshape(shape)
        values = few
    else:
        values = random.integers(0, 2, shape)
    return values.astype(tensor.dtype.value) if shape else values.item() if hasattr(values, "item") else values


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def called(function, arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [np.asarray(each, np.float64) for each in as_tuple(function(*arguments))]


def judge(given, seed=0, tries=20):
    """Check a def; says whether there were arguments that it takes."""
    program = given.program
    forward = compiled(given.text)[given.name]
    wrt = floats_of(program, program.parameters)
    at = [program.parameters.index(name) for name in wrt]
    floats = [k for k, name in enumerate(program.results) if program.tensor(name).dtype.is_float]
    judged = False
    for known, arguments in itertools.islice(draws(program, seed), tries):
        random = np.random.default_rng(seed)
        try:
            results = called(forward, arguments)
        except tc.CallError:
            continue
        if not all(np.isfinite(results[k]).all() for k in floats) or not sum(results[k].size for k in floats):
            continue
        back_text, back = derived(given, vjp)  # what no call takes need not have one
        ahead_text, ahead = derived(given, jvp)
        shown = f"\n{given.text}\n{back_text}\n{ahead_text}\n{known} {arguments}"
        types = [program.tensor(program.results[k]).dtype.value for k in floats]
        exact = all(program.tensor(each).dtype.value != "float32" for each in (*program.results, *wrt))
        cotangents = [random.uniform(-1, 1, results[k].shape).astype(t) for k, t in zip(floats, types, strict=True)]
        kinds = [program.tensor(name).dtype.value for name in wrt]
        tangents = [random.uniform(-1, 1, np.shape(arguments[k])) for k in at]
        tangents = [np.asarray(each, kind)[()] for each, kind in zip(tangents, kinds, strict=True)]
        backwards = called(back, [*arguments, *cotangents])
        both = called(ahead, [*arguments, *tangents])
        forwards = both_results(both, program, floats)
        for place, dtype in enumerate(wrt):
            assert backwards[place].shape == np.shape(arguments[at[place]]), f"shape of d{dtype}{shown}"
        one = sum(np.vdot(a, b) for a, b in zip(backwards, tangents, strict=True))
        other = sum(np.vdot(a, b) for a, b in zip(cotangents, forwards, strict=True))
        scale = sum(np.abs(a * b).sum() for a, b in zip(backwards, tangents, strict=True)) + 1e-3
        assert np.isfinite(one) or not np.isfinite(other), f"{one} {other}{shown}"
        if np.isfinite(one):
            # 0 times an infinite slope, as of `sqrt(abs(T))` at 0, which a condition keeps out backwards
            steep = np.isnan(other) and has_steep(ahead, arguments, tangents, program, floats)
            assert steep or abs(one - other) <= (1e-12 if exact else 1e-4) * scale, (
                f"<dY, jvp u> = {other}, <vjp dY, u> = {one}{shown}"
            )
            if not exact:
                return True
            check_differences(forward, arguments, at, tangents, cotangents, floats, one, scale, shown)
            judged = True
            break
    return judged


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
                moved[place] = float(moved[place])
        results = called(forward, moved)
        sides.append(sum(np.vdot(c, results[k]) for c, k in zip(cotangents, floats, strict=True)))
    difference = (sides[0] - sides[1]) / (2 * STEP)
    rounding = 1e-15 / STEP * sum(np.abs(c * results[k]).sum() for c, k in zip(cotangents, floats, strict=True))
    assert abs(difference - found) <= 2e-5 * max(scale, abs(difference)) + rounding, (
        f"{found}, differences {difference}{shown}"
    )
