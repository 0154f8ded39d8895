"""`time_tile`: several steps of a block tile by tile, against steps one by one."""

import itertools
import random

import numpy as np
import pytest

import tc_jupyter as tc


def _subscript(rng: random.Random, name: str, border: str) -> str:
    by = rng.choice((-2, -1, 0, 0, 1, 2))
    inner = f"{name}{by:+d}" if by else name
    return inner if not by or border == "else" else f"{border}({inner})"


def _read(rng: random.Random, tensor: str, names: str, borders: dict[str, str]) -> str:
    """An element of a state a few elements away, with borders that differ between the dimensions."""
    at = [_subscript(rng, name, borders[name] if rng.random() < 0.9 else "clamp") for name in names]
    return f"({tensor}({', '.join(at)}) else {rng.choice(('1', '-1'))})"


def drawn_steps(seed: int, kind: str) -> tuple[str, int, int]:
    """A def of one or two states of one or two dimensions, applied n times; how many states and dimensions.

    Its floats are multiplied by numbers other than integers, on which a CPU may round products and sums together or not.
    """
    rng = random.Random(seed)
    few, half = ("0.2", "0.5") if kind == "float" else ("3", "2")
    names = "ij"[: rng.choice((1, 2))]
    states = ("U", "P")[: rng.choice((1, 1, 2))]
    borders = {name: rng.choice(("else", "wrap", "clamp")) for name in names}
    sizes = ", ".join("NM"[: len(names)])
    where = ", ".join(f"{name} in 0:{size}" for name, size in zip(names, "NM", strict=False))
    left, lines = f"({', '.join(names)})", []
    if rng.random() < 0.4:  # a tensor of one step
        lines.append(f"    T{left} = {half}*{_read(rng, rng.choice(states), names, borders)} + X{left} where {where}")
    readable = [*states, *(["T"] if lines else [])]
    for result in ("V", "W")[: len(states)]:
        terms = [f"{few}*{_read(rng, rng.choice(readable), names, borders)}" for _ in range(rng.choice((1, 2, 3)))]
        terms += [f"{half}*X{left}", f"{few}*{rng.choice(readable)}{left}"]
        lines.append(f"    {result}{left} = {' + '.join(terms)} where {where}")
        readable.append(result)
    body = "\n".join(lines)
    given = "".join(f"{kind}({sizes}) {name}, " for name in states) + f"{kind}({sizes}) X"
    made = ", ".join(("V", "W")[: len(states)])
    passed = ", ".join((*states, "X"))
    return (
        (
            f"def one({given}) -> ({made}) {{\n{body}\n}}\n"
            f"def many({given}, int32 n) -> ({made}) {{ {made} = one^n({passed}) }}"
        ),
        len(states),
        len(names),
    )


def tiled_schedule(f, rng, steps=None):
    """The schedule of a power with tiles along the loops inside of its steps, and the first stage that is kept."""
    schedule = f.schedule()
    leaves = schedule.leaves("one.V")
    tile = tuple(rng.choice((0, 1, 2, 4)) for _ in leaves[leaves.index("step") + 1 :])
    return schedule.time_tile("one.V", steps or rng.choice((1, 2, 3, 4)), tile)


SHAPES = {1: [(0,), (1,), (2,), (3,), (9,), (16,)], 2: [(0, 3), (1, 1), (2, 1), (3, 5), (8, 9)]}


@pytest.mark.some(7, ci=2)
@pytest.mark.parametrize("seed", range(14))
@pytest.mark.parametrize(("target", "kind"), [("cpu", "int32"), ("cpu", "float"), ("interpreter", "float")])
def test_values_are_those_of_steps_one_by_one(seed, target, kind):
    text, states, rank = drawn_steps(seed, kind)
    plain = tc.compile(text, target=target, allow=["TC321", "TC322"]).many
    rng = random.Random(seed)
    schedule = tiled_schedule(plain, rng)
    outer = [leaf for leaf in schedule.leaves("one.V") if leaf.endswith(".outer")]
    if outer and target == "cpu":
        schedule = schedule.parallel("one.V", outer[0])
    tiled, untiled = plain.with_schedule(schedule), plain.with_schedule(plain.schedule())
    numbers, dtype = np.random.default_rng(seed), np.int32 if kind == "int32" else np.float32
    few = (SHAPES[rank], range(7)) if target == "cpu" else (SHAPES[rank][1:4], (0, 3, 4))
    for shape, n in itertools.product(*few):
        given = [(9 * numbers.random(shape)).astype(dtype) for _ in range(states + 1)]
        mine, theirs = tiled(*given, n), untiled(*given, n)
        for a, b in zip(mine if states > 1 else [mine], theirs if states > 1 else [theirs], strict=True):
            message = f"{text}\n{schedule.to_python()}\n{shape}, {n} steps"
            if (target, kind) == ("cpu", "float"):
                np.testing.assert_allclose(a, b, rtol=1e-4, err_msg=message)
            else:
                np.testing.assert_array_equal(a, b, err_msg=message)


BLOCKS = {
    "the step is the second index": """def f(float(N) X, float(T, N) F) -> (Y) {
    along t in 0:T { S(i, t) = 0.5*(S(wrap(i - 1), t - 1) else X(i)) + F(t, i) where i in 0:N }
    Y(i) = S(i, T - 1)
}""",
    "steps go down": """def f(float(N) X, float(T, N) F) -> (Y) {
    along -t in 0:T { S(t, i) = 0.5*(S(t + 1, clamp(i - 1)) else X(i)) + F(t, i) where i in 0:N }
    Y(i) = S(0, i)
}""",
    "steps begin later": """def f(float(N) X, float(T, N) F) -> (Y) {
    along t in 1:T { S(t, i) = (t > 1 ? S(t - 1, clamp(i + 1)) : X(i)) + F(t, i) where i in 0:N }
    Y(i) = S(T - 1, i)
}""",
    "a sum in each step": """def f(float(N) X, float(T, N) F) -> (Y) {
    along t in 0:T { Z(i) +=! F(t, i) * (S(t - 1, clamp(i + k)) else X(i)) where k in 0:3, i in 0:N   S(t, i) = Z(i) / 4 }
    Y(i) = S(T - 1, i)
}""",
    "a range that ends at the step": """def f(float(N) X, float(T, N) F) -> (Y) {
    along t in 0:T { Z(i) +=! (S(t - 1, i) else X(i)) * F(k, i) where i in 0:N, k in 0:t
                     S(t, i) = Z(i) / 4 + F(t, i) where i in 0:N }
    Y(i) = S(T - 1, i)
}""",
    "a condition in each step": """def f(float(N) X, float(T, N) F) -> (Y) {
    along t in 0:T { Z(i) max=! F(t, k) where i in 0:N, k in 0:i + 1, X(k) > 0.1
                     S(t, i) = (S(t - 1, wrap(i + 1)) else X(i)) / 2 + (Z(i) > 0.9 ? 1 : 0) where i in 0:N }
    Y(i) = S(T - 1, i)
}""",
}


@pytest.mark.some(3)
@pytest.mark.parametrize("text", BLOCKS.values(), ids=BLOCKS)
def test_steps_of_blocks(text):
    for target in ("interpreter", "cpu"):
        f = tc.compile(text, target=target, allow=["TC321", "TC322"]).f
        stage = next(name for name in f.schedule().stages if name == "S")
        inside = f.schedule().leaves(stage)[1:]
        tiled = f.with_schedule(f.schedule().time_tile(stage, 3, (4,) * len(inside)))
        numbers = np.random.default_rng(0)
        for size, steps in itertools.product((1, 2, 9), range(2, 9)):
            given = numbers.random(size, np.float32), numbers.random((steps, size), np.float32)
            np.testing.assert_allclose(tiled(*given), f.with_schedule(f.schedule())(*given), rtol=1e-5)


def test_steps_stay_around_their_tiles():
    """What is computed in the loops of a tile reads what the steps before have made."""
    f = tc.compile("""def g(int32(M) U) -> (V) { V(i) = (U(clamp(i - 1)) + U(i)) % 1001 where i in 0:M }
        def f(int32(M) U) -> (W) { W = g^5(U) }""").f
    tiled = f.schedule().time_tile("g.V", 2, 4)
    given = np.arange(17, dtype=np.int32)
    for order in itertools.permutations(tiled.leaves("g.V")):
        if order[0] == "step":
            np.testing.assert_array_equal(f.with_schedule(tiled.reorder("g.V", *order))(given), f(given))
        else:
            with pytest.raises(tc.CompileError, match="TC407"):
                tiled.reorder("g.V", *order)


def test_a_state_that_its_block_reads_is_not_copied_afterwards():
    f = tc.compile("""def f(int32(M,N) X) -> (h) { along t in 0:M {
        R(o) = (h(t-1, wrap(o+1)) else 0) + X(t, o) where o in 0:N  h(t, o) = R(o) % 17 } }""").f
    with pytest.raises(tc.CompileError, match="TC407"):
        f.schedule().cache_write("h")
