"""Random primitives on random small programs: what a schedule may do wrong, looked for in one place.

A schedule is either refused with a diagnostic or computes what the untransformed program computes. Its bounds are diagnostics or
tables, at sizes and without; what the loops cover at every visit holds what is read there, by both, and both need the same elements.

Worked example: `python -m tests.schedule.schedules --count 2000 --seed 1 --log FILE` looks at so many programs and logs what fails.
"""

from __future__ import annotations

import argparse
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Program
from tc_jupyter.ranges import Ranges
from tc_jupyter.schedule import Schedule, schedule_of
from tc_jupyter.schedule.bounds import Bounds
from tc_jupyter.schedule.infer_bound import variable
from tc_jupyter.schedule.stage import TAILS
from tc_jupyter.schedule.visits import Enumeration, TooManyPoints
from tests.running import in_bounds, program_of, run
from tests.strategies import arguments

SIZES = (1, 2, 3, 5, 7, 8, 9, 13)
FACTORS = (1, 2, 3, 4, 8)
SCOPES = ("auto", "local", "register", "shared", "global")
AXES = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")
MOST_STEPS = 14


def program(random: Random) -> str:
    """A chain of two to four statements over one or two indices: stencils, sums, reads backwards, an integer scalar as a size."""
    rank = random.choice((1, 1, 2))
    names = "ij"[:rank]
    scalar = random.random() < 0.2
    lines: list[str] = []
    made: list[str] = ["X"]
    for number in range(random.randint(2, 4)):
        sources = [made[-1]] if random.random() < 0.7 else random.sample(made, min(2, len(made)))
        reads = [_read(random, source, names) for source in sources for _ in range(random.randint(1, 2))]
        total = random.random() < 0.3
        if total:
            reads.append(f"{random.choice(sources)}({'i+k, k' if rank == 2 else 'k'})")
        value = f" {random.choice('+-')} ".join(reads)
        if random.random() < 0.2:
            value = f"(i > 1 ? {value} : 1)"
        shrink = 4 * number + 4
        ends = ["m" if scalar and number == 0 and name == "i" else f"max(N-{shrink}, 0)" for name in names]
        where = [f"{name} in 0:{end}" for name, end in zip(names, ends, strict=True)]
        where += [f"k in 0:{random.choice((2, 3, 5))}"] if total else []
        lines.append(f"T{number}({', '.join(names)}) {'+=!' if total else '='} {value} where {', '.join(where)}")
        made.append(f"T{number}")
    results = sorted({made[-1], *(name for name in made[1:-1] if random.random() < 0.15)})
    parameters = f"int32({','.join('N' * rank)}) X{', int32 m' if scalar else ''}"
    return f"def f({parameters}) -> ({', '.join(results)}) {{\n    " + "\n    ".join(lines) + "\n}"


def _read(random: Random, tensor: str, names: str) -> str:
    places = [random.choice((name, name, f"{name}+1", f"{name}+2", f"{name}/2", f"3-{name}%4")) for name in names]
    return f"{tensor}({', '.join(places)})"


def scheduled(random: Random, schedule: Schedule) -> Schedule:
    """Random primitives; a refused one leaves the schedule as it is. Anything but a diagnostic is raised."""
    for _ in range(random.randint(1, MOST_STEPS)):
        try:
            schedule = step(random, schedule)
        except CompileError:
            continue
    return schedule


def with_tails(random: Random, schedule: Schedule) -> Schedule:
    """The same steps, with something said of the partial tiles of some splits where that is not refused."""
    steps = [*schedule.steps]
    for number, each in enumerate(steps):
        if each.name not in ("split", "tile") or random.random() < 0.2:
            continue
        said = replace(each, keywords=(*each.keywords, ("tail", random.choice(TAILS))))
        with suppress(CompileError):
            schedule = replace(schedule, steps=(*steps[:number], said, *steps[number + 1 :])).replay(schedule.start())
            steps = [*schedule.steps]
    return schedule


def step(random: Random, schedule: Schedule) -> Schedule:
    """One random primitive."""
    stage, other = random.choice(schedule.stages), random.choice(schedule.stages)
    leaves, others = schedule.leaves(stage), schedule.leaves(other)
    if not leaves or not others:
        return schedule
    leaf, place = random.choice(leaves), random.choice(others)
    match random.choice(STEPS):
        case "split":
            return schedule.split(stage, leaf, random.choice(FACTORS))
        case "nparts":
            return schedule.split(stage, leaf, nparts=random.choice(FACTORS))
        case "fuse":
            return schedule.fuse(stage, leaf, random.choice(leaves))
        case "skew":
            at = min(leaves.index(leaf), len(leaves) - 2)
            return schedule.skew(stage, *leaves[at : at + 2], random.choice((1, 1, 2, 3))) if at >= 0 else schedule
        case "reorder":
            return schedule.reorder(stage, *random.sample(leaves, len(leaves)))
        case "tile":
            return schedule.tile(stage, leaf, random.choice(leaves), random.choice(FACTORS), random.choice(FACTORS))
        case "bind":
            return schedule.bind(stage, leaf, random.choice(AXES))
        case "annotate":
            return getattr(schedule, random.choice(("parallel", "vectorize", "unroll")))(stage, leaf)
        case "at":
            return at_a_reader(random, schedule, stage)
        case "with":
            return schedule.compute_with(stage, other, place)
        case "inline":
            return schedule.compute_inline(stage)
        case "root":
            return schedule.compute_root(stage)
        case "scope":
            return schedule.storage(stage, random.choice(SCOPES))
        case "pad":
            return schedule.storage(stage, pad=random.choice((1, 2, 5)))
        case "rolling":
            return schedule.storage(stage, rolling=True)
        case "layout":
            rank = schedule.graph.program.tensor(schedule.graph.stage(stage).target).rank
            order = random.sample(range(rank), rank)
            tile = [(random.choice(order), random.choice((2, 4)))] if random.random() < 0.5 else []
            return schedule.storage(stage, layout=(*((dimension, 0) for dimension in order), *tile))
        case "rfactor":
            kinds = schedule.graph.stage(stage)
            return schedule.rfactor(
                stage, random.choice([each for each in leaves if kinds.kind(each) == "reduction"] or [leaf])
            )
        case "cache_write":
            return schedule.cache_write(stage)
        case "separate":
            return schedule.separate(stage)
        case _:
            return schedule.cache_read(random.choice(list(schedule.graph.stage(stage).statement.reads())).tensor, stage)


def at_a_reader(random: Random, schedule: Schedule, stage: str) -> Schedule:
    """A stage at a loop of one of its readers or around it, sometimes with a scope or as a window."""
    users = [user.name for user in schedule.graph.consumers(stage)] or [stage]
    around = [loop for user in users for loop in schedule.graph.attach_path(user)]
    places = [*((user, leaf) for user in users for leaf in schedule.leaves(user)), *around] or [(stage, "none")]
    schedule = schedule.compute_at(stage, *random.choice(places))
    with suppress(CompileError):
        schedule = schedule.storage(stage, random.choice(SCOPES))
    with suppress(CompileError):
        schedule = schedule.storage(stage, rolling=True) if random.random() < 0.5 else schedule
    return schedule


STEPS = (
    "split", "split", "split", "nparts", "fuse", "skew", "reorder", "tile", "bind", "bind", "annotate", "at", "at", "at", "at", "with",
    "inline", "root", "scope", "scope", "pad", "rolling", "rolling", "layout", "rfactor", "cache_write", "separate", "cache_read",
)  # fmt: skip


def check(seed: int) -> str:
    """Look at one program and schedule; says in a word how far it came."""
    random = Random(seed)
    text = program(random)
    found = program_of(text)
    if found is None:
        return "no program"
    schedule = with_tails(Random(f"tails {seed}"), scheduled(random, schedule_of(*found)))
    if not schedule.steps:
        return "no schedule"
    check_schedule(text, found, schedule, random.choice(SIZES) + 4 * random.choice((1, 2, 4)), random.randint(0, 9))
    return "compared"


def check_schedule(text: str, found: tuple[Program, Ranges], schedule: Schedule, n: int, m: int) -> None:
    """Values and bounds of a schedule of the def in `text` at `N = n`, `m = m`."""
    checked, ranges = found
    said = f"{text}\n{schedule.to_python()}\nN = {n}, m = {m}"
    sizes = {"N": n} | ({"m": m} if "m" in checked.parameters else {})
    symbolic = schedule.bounds()
    assert symbolic.table(), said
    assert str(symbolic.to_json()), said
    numeric = schedule.bounds(**sizes)
    assert numeric.table(), said
    assert str(numeric.to_json()), said
    check_boxes(numeric, sizes, said)
    if not in_bounds(checked, ranges, sizes):
        return
    arrays = arguments(checked, n, sizes)
    if "m" in sizes:
        arrays["m"] = np.array(m, "int32")
    expected, got = run(schedule_of(checked, ranges), arrays, sizes), run(schedule, arrays, sizes)
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=said)


def check_boxes(numeric: Bounds, sizes: dict[str, int], said: str) -> None:
    """At every visit the boxes at these sizes, and the symbolic ones, hold every element that is read there.

    Loops count from the beginning of a box, which numbers may move, so each of the two has visits of its own.
    """
    distinct = [Enumeration(bounds, sizes) for bounds in (numeric.sized, numeric.symbolic)]
    for bounds, engine in zip((numeric.sized, numeric.symbolic), distinct, strict=True):
        for name in numeric:
            try:
                need = engine.need(name)
            except TooManyPoints:
                continue
            loops = {variable(*loop): need.visits[:, column][need.visit_of] for column, loop in enumerate(need.path)}
            for column, (low, extent) in enumerate(bounds[name].box):
                first = engine.number(low, loops, len(need.elements))
                last = first + engine.number(extent, loops, len(need.elements))
                inside = (first <= need.elements[:, column]) & (need.elements[:, column] < last)
                assert inside.all(), (said, name, column)
    for name in numeric:
        try:
            with_numbers, without = (np.unique(engine.need(name).elements, axis=0) for engine in distinct)
        except TooManyPoints:
            continue
        np.testing.assert_array_equal(with_numbers, without, err_msg=f"{said} {name}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="many random schedules: values and bounds")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, default=Path("schedules.log"))
    options = parser.parse_args()
    outcomes: dict[str, int] = {}
    start = time.monotonic()
    for seed in range(options.seed, options.seed + options.count):
        try:
            outcome = check(seed)
        except Exception:
            outcome = "FAILED"
            with options.log.open("a", encoding="utf-8") as file:
                file.write(f"FAILED seed {seed}\n{traceback.format_exc()}\n")
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if seed % 100 == 99:
            with options.log.open("a", encoding="utf-8") as file:
                file.write(f"seed {seed}: {outcomes} {time.monotonic() - start:.0f} s\n")
    print(outcomes)


if __name__ == "__main__":
    main()
