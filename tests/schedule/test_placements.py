"""Random places for producers: what is refused has a witness that enumeration confirms, and nothing that is refused was legal.

The share of refused places that were in fact legal is measured, and printed with `-s`: 0 of 338 (seeds 0 to 399), 1 of 1706 (seeds
1000 to 2999; a stage outside the loop reads the producer in its text, but at no point that somebody needs). About half of the refused
ones are no places at all (`structure`: a stage that does not read, a cycle); of the others every one has its witness. Accepted places
run, and give what the program gives.
"""

from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import replace
from random import Random

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.schedule import Attach, schedule_of
from tc_jupyter.schedule.inline import inject_inline
from tc_jupyter.schedule.placement import attach_problem, attached_family, graph_problem
from tests.running import in_bounds, program_of, run
from tests.schedule.test_legality import SHIFTS, accesses, points
from tests.strategies import arguments

SIZES = range(1, 6)


def chain(random):
    """Up to five statements: producers, readers at shifted places, updates of what was read before, one or several results."""
    rank = random.choice((1, 1, 2))
    names, left = "ij"[:rank], ",".join("ij"[:rank])
    where = ", ".join(f"{index} in 0:N" for index in names)
    made, lines = ["X"], []

    def read(tensors):
        forms = [random.choice(SHIFTS) for _ in names]
        subscripts = [form.replace("i", name).replace("mjn", "min") for form, name in zip(forms, names, strict=True)]
        return f"{random.choice(tensors)}({', '.join(subscripts)})"

    for number in range(random.randint(2, 4)):
        if len(made) > 2 and random.random() < 0.6:
            part = random.choice(("", " where i in 0:1", " where i in 1:N", f" where {where}"))
            lines.append(f"{random.choice(made[1:-1])}({left}) += 1{part}")
        value = " + ".join(read(made[-2:]) for _ in range(random.randint(1, 2)))
        if random.random() < 0.2:
            value = f"(i > 0 ? {value} : 0)"
        if random.random() < 0.2:
            lines.append(f"T{number}({left}) +=! {value} * Z(k) where {where}, k in 0:N")
        else:
            lines.append(f"T{number}({left}) = {value} where {where}")
        made.append(f"T{number}")
    results = dict.fromkeys([*(name for name in made[1:-1] if random.random() < 0.2), made[-1]])
    body = "\n    ".join(lines)
    return f"def f(int32({','.join('N' * rank)}) X, int32(N) Z) -> ({', '.join(results)}) {{\n    {body}\n}}"


def touched_by(graph, sizes):
    """Per stage the elements (tensor, position) that it reads and that it writes, at the points that somebody needs."""
    needed, found = set(), {}
    for stage in reversed(graph.stages):
        reads, writes = set(), set()
        everything = graph.computes_all(stage.name) or not graph.consumers(graph.stages_on(stage.target)[0].name)
        for _, roots in points(stage, sizes):
            all_of_it = list(accesses(graph, stage, roots, sizes))
            mine = {(tensor, element) for tensor, element, is_write in all_of_it if is_write}
            if everything or mine & needed:
                writes |= mine
                reads |= {(tensor, element) for tensor, element, is_write in all_of_it if not is_write}
        needed |= reads
        found[stage.name] = (reads, writes)
    return found


def meets(graph, reader, writer):
    """Whether a stage reads an element that another writes, at any of the sizes."""
    return any(found[reader.name][0] & found[writer.name][1] for n in SIZES for found in (touched_by(graph, {"N": n}),))


def plain_of(graph, producer):
    """The stages that run, with the expressions of inlined ones in the place of their reads; the producer is not inlined."""
    return inject_inline(
        graph.replace_stage(replace(producer, attach=Attach())) if producer.attach.kind == "inline" else graph
    )


def wrong(graph, producer, consumer, axis):
    """By enumeration, why a producer cannot run at a place; `None` if it can. `structure`: there is no such place."""
    graph = plain_of(graph, producer)
    family = graph.stages_on(producer.target)
    names = {stage.name for stage in family}
    if producer.name in graph.outputs:
        return "result"
    users = graph.consumers(family[0].name)
    if not users or consumer.attach.kind == "inline" or consumer.name in names:
        return "structure"
    if any(owner in names for owner, _ in graph.attach_path(consumer.name)):
        return "structure"
    moved = attached_family(graph, producer, Attach("at", consumer.name, axis))
    inside = {s.name for s in graph.stages if (consumer.name, axis) in graph.attach_path(s.name)} | {consumer.name}
    if any(meets(graph, user, member) for user in users if user.name not in inside for member in family):
        return "outside"
    if not any(user.name in inside for user in users):
        return "structure"
    for stage in moved.stages:
        if stage.attach.kind == "root":
            continue
        for member in moved.stages_on(stage.target):
            for reader in moved.consumers(stage.name):
                if moved.position(reader.name) < moved.position(member.name) and meets(graph, reader, member):
                    return "overwritten"
        between = moved.stages[moved.position(stage.name) + 1 : moved.position(moved.runs_in(stage.name))]
        if any(other.target != stage.target and meets(graph, stage, other) for other in between):
            return "too late"
    return None


def confirmed(whole, producer, witness):
    """Whether the two points of a witness touch its element, at its sizes, one of them writing; inlined stages are points too."""
    graph = plain_of(whole, producer)
    element = (witness.tensor, witness.element)
    if witness.second == "the caller":
        return element in touched_by(graph, witness.sizes)[witness.first][1]
    touched = []
    for name, point in ((witness.first, witness.here), (witness.second, witness.there)):
        if not point and witness.kind == "outside":
            members = graph.stages_on(graph.stage(name).target)
            made = touched_by(graph, witness.sizes)
            touched += [(True, any(element in made[each.name][1] for each in members))]
            continue
        graph = graph if any(each.name == name for each in graph.stages) else whole
        stage = graph.stage(name)
        roots = {root.name: value for root, value in zip(stage.roots, point, strict=True)}
        mine = {(t, e): w for t, e, w in accesses(graph, stage, roots, witness.sizes) if (t, e) == element}
        touched += [(any(mine.values()), bool(mine))]
    return all(found for _, found in touched) and any(writes for writes, _ in touched)


def started(random, schedule):
    """A few legal steps first: places depend on what is attached already."""
    for _ in range(random.randint(0, 3)):
        stage = random.choice(schedule.stages)
        leaves = schedule.leaves(stage)
        with suppress(CompileError):
            match random.choice(("split", "inline", "at", "at", "reorder")):
                case "split":
                    schedule = schedule.split(stage, leaves[0], 2)
                case "inline":
                    schedule = schedule.compute_inline(stage)
                case "at":
                    other = random.choice(schedule.stages)
                    schedule = schedule.compute_at(stage, other, random.choice(schedule.leaves(other)))
                case _:
                    schedule = schedule.reorder(stage, *reversed(leaves))
    return schedule


def problem_of(graph, producer, consumer, axis):
    """What the library says against a place."""
    found = attach_problem(graph, producer, consumer, axis)
    if found is not None:
        return found
    placed = graph_problem(attached_family(graph, producer, Attach("at", consumer.name, axis)))
    return None if placed is None else placed[1]


def check(seed, measured):
    """One random program, one random place: what the library says, and what enumeration finds."""
    random = Random(seed)
    text = chain(random)
    found = program_of(text)
    if found is None or not all(in_bounds(*found, {"N": n}) for n in SIZES):
        return
    program, ranges = found
    schedule = started(random, schedule_of(program, ranges))
    graph = schedule.graph
    temporaries = [stage for stage in graph.stages if stage.name not in graph.outputs]
    producer = random.choice(temporaries if temporaries and random.random() < 0.9 else graph.stages)
    consumer = random.choice(graph.stages[graph.position(producer.name) :])
    axis = random.choice(consumer.leaves)
    said, truth = problem_of(graph, producer, consumer, axis), wrong(graph, producer, consumer, axis)
    about = f"seed {seed}\n{text}\n{schedule.to_python()}\n{producer.name} at {consumer.name}[{axis}]: {said and said.message}; {truth}"
    if said is None:
        measured["accepted"] += 1
        assert truth is None, about
        placed = schedule.compute_at(producer.name, consumer.name, axis)
        for n in (1, 2, 5):
            arrays = arguments(program, n, {"N": n})
            expected = run(schedule_of(program, ranges), arrays, {"N": n})
            for name, values in run(placed, arrays, {"N": n}).items():
                np.testing.assert_array_equal(values, expected[name], err_msg=about)
        return
    if truth not in (None, "structure"):
        assert said.witness is not None, about
    if said.witness is not None:
        assert confirmed(graph, producer, said.witness), about
        truth = truth or "larger sizes"
    measured[f"refused: {truth}"] += 1
    if truth is None:
        print(about)


def measure(seeds):
    measured = Counter()
    for seed in seeds:
        check(seed, measured)
    refused = sum(count for reason, count in measured.items() if reason.startswith("refused"))
    print(
        f"\n{refused} places refused; " + ", ".join(f"{reason} {count}" for reason, count in sorted(measured.items()))
    )
    return measured


@pytest.mark.slow
def test_refused_places_were_illegal():
    measured = measure(range(150))
    assert measured["refused: None"] == 0, measured
    assert measured["accepted"] >= 10, measured
    reasons = ("result", "outside", "overwritten", "too late")
    assert min(measured[f"refused: {reason}"] for reason in reasons) >= 1, measured


def test_an_inlined_stage_that_nobody_reads_keeps_no_producer_out_of_a_loop():
    check(3079, Counter())


@pytest.mark.slow
def test_refused_places_were_illegal_many():
    measured = measure(range(1000, 1300))
    assert measured["refused: None"] <= 1, measured


NORMALISED = "def f(int(N, D) X) -> (Y) { Y(n, d) = X(n, d)  S(n) +=! Y(n, d)  Y(n, d) = Y(n, d) * 100 - S(n) }"
CENTRED = "def f(int(N) X) -> (O) { O(i) = X(i)  S +=! O(i)  T(i) = O(i) - S  O(i) = O(i) * T(i) }"
TWICE = """def f(int(N) X) -> (O) {
    O(i) = X(i)  U(i) = O(i) + O((N - 1) - i) where i in 0:N
    V(i) = U(i) * 2  O(i) += V(i)
}"""
HALVES = """def f(int(N) X) -> (O) {
    O(i) = X(i)  S +=! O(i) where i in N / 2:N  T(i) = O(i + N / 2) + S where i in 0:N / 2
    O(i) = O(i) * T(i) where i in 0:N / 2
}"""

MIRRORED = """def f(int(N, D) X) -> (Y) {
    Y(n, d) = X(n, d)  S(n) +=! Y(N - 1 - n, d) where n in 0:N  Y(n, d) = Y(n, d) * 100 - S((N - 1) - n) where n in 0:N
}"""
SHIFTED = """def f(int(N, D) X) -> (Y) {
    Y(n, d) = X(n, d)  S(n) +=! Y(n + 1, d) where n in 0:N - 1  Y(n, d) = Y(n, d) * 100 - S(n - 1) where n in 1:N
}"""
NEXT = "def f(int(N) X) -> (O) { O(i) = X(i)  T(i) = O(2 * i + 2) where i in 0:N/2-1  O(i) = O(i) + T(i/2 - 1) where i in 2:N }"
SAME_NAME = """def f(int(N, D) X) -> (Y) {
    Y(n, d) = X(n, d)  S(d) +=! Y(n, d) where d in 0:D, n in 0:N  Y(n, d) = Y(n, d) * 100 - S(d) where n in 0:N, d in 0:D
}"""


@pytest.mark.parametrize(
    ("text", "moves", "legal"),
    [
        (MIRRORED, [("compute_at", "S", "Y#2", "n")], True),
        (MIRRORED, [("split", "Y#2", "n", 2), ("compute_at", "S", "Y#2", "n.outer")], True),
        (MIRRORED.replace("(N - 1) - n", "n"), [("compute_at", "S", "Y#2", "n")], False),
        (SHIFTED, [("compute_at", "S", "Y#2", "n")], True),
        (SHIFTED.replace("S(n - 1)", "S(n - 1 + 0 * n)"), [("compute_at", "S", "Y#2", "n")], True),
        (SHIFTED.replace("n + 1, d", "n, d"), [("compute_at", "S", "Y#2", "n")], False),
        (NEXT, [("compute_inline", "T")], False),
        (SAME_NAME, [("compute_at", "S", "Y#2", "n")], False),
        (HALVES, [("compute_at", "T", "O#2", "i"), ("compute_at", "S", "T", "i")], True),
        (HALVES, [("compute_inline", "T"), ("compute_at", "S", "O#2", "i")], True),
        (HALVES.replace("N / 2:N", "N / 2 - 1:N"), [("compute_inline", "T"), ("compute_at", "S", "O#2", "i")], False),
        (NORMALISED, [("compute_at", "S", "Y#2", "n")], True),
        (NORMALISED, [("compute_at", "S", "Y#2", "d")], False),
        (NORMALISED, [("split", "Y#2", "n", 2), ("compute_at", "S", "Y#2", "n.outer")], True),
        (NORMALISED, [("reorder", "Y#2", "d", "n"), ("compute_at", "S", "Y#2", "d")], False),
        (CENTRED, [("compute_inline", "T")], True),
        (CENTRED, [("compute_at", "T", "O#2", "i")], True),
        (CENTRED, [("compute_at", "T", "O#2", "i"), ("compute_at", "S", "T", "i")], False),
        (CENTRED, [("compute_inline", "T"), ("compute_at", "S", "O#2", "i")], False),
        (TWICE, [("compute_inline", "V")], True),
        (TWICE, [("compute_inline", "U"), ("compute_inline", "V")], False),
        (TWICE, [("compute_at", "V", "O#2", "i"), ("compute_at", "U", "V", "i")], False),
    ],
)
def test_what_a_loop_overwrites_is_not_read_again_in_it(text, moves, legal):
    """What is made in every visit must not read what earlier visits have written."""
    f = tc.compile(text, target="cpu").f
    with nullcontext() if legal else pytest.raises(CompileError, match=r"TC40[17]"):
        schedule = f.schedule()
        for name, *arguments in moves:
            schedule = getattr(schedule, name)(*arguments)
        x = np.arange(12, dtype=np.int32)[::-1].reshape((3, 4) if "int(N, D)" in text else 12).copy()
        np.testing.assert_array_equal(f.with_schedule(schedule)(x), f(x))
