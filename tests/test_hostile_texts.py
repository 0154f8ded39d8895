"""Any text is answered in bounded time and memory: chosen constructs always, a sample of all and of mutants as a `slow` test."""

from __future__ import annotations

import cProfile
import random
import sys

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter import analyze
from tests.hostile_texts import Mutants, constructs, measure, questions, sac_constructs, warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of a process as Linux has them")

SECONDS = 20.0
"""Of a processor, for all questions about one text: several times what they take on a slow one."""

KNOWN = [
    "many min arguments in min of a subscript",
    "125 sizes in min of an end",
    "60 sizes in subscript",
    "60 sizes in exists",
    "125 quotients in min of an end",
    "condition 30 deep in condition",
    "square 60 deep in first of two",
    "abs 60 deep in first of two",
    "60 products of indices in subscript beside i",
    "min of minus 60 deep in end",
    "squared extents of 10000000",
    "growing extents of 10000000",
    "halving defs",
    "chained stencils",
    "calls of a long def",
    "300 dimensions",
    "products of 10000000",
    "doubled minimum lets as A(@) of 600",
    "foreign '[i]' in read",
    "foreign '[i]' in target",
    "foreign 'f(A)(i) + ' in clause",
    "foreign slices in value",
    "foreign square reads in value",
    "foreign square reads in text",
    "sliced of 10000000",
]


KNOWN_SAC = [
    "25 doubled concatenation variables",
    "10000000 doubled concatenation variables",
    "10000000 doubled call variables",
    "doubling comprehensions",
    "doubling functions",
    "chain of deep functions",
    "short chain of deep functions",
    "comprehension in bound 48 deep",
    "comprehension in bound 95 deep",
    "with in bound 48 deep",
    "every operator 95 deep",
    "partitions of products",
    "nested blocks if (s > 0) { s = s + 1; ",
    "nested blocks for (i = 0; i < s; i++) { s = s + i; ",
    "nested blocks if (s > 0) { s = 2; } else { ",
    "results of one call",
]


LANGUAGES = {"tc": constructs(), "sac": sac_constructs()}


@pytest.mark.some(20)
@pytest.mark.parametrize(
    ("language", "name"), [*(("tc", name) for name in KNOWN), *(("sac", name) for name in KNOWN_SAC)]
)
def test_what_grows_faster_than_its_text_is_bounded(language, name):
    warm()
    outcome = measure(LANGUAGES[language][name](10_000), language, SECONDS)
    assert not outcome.problem, f"{name}: {outcome}"


def test_a_function_that_would_be_too_much_work_is_left_out_and_the_next_is_not():
    text = sac_constructs()["doubling functions"](1_000) + " float[.] last(float[.] a) { return a + a; }"
    first, second = (analyze(text, "sac") for _ in range(2))
    assert first.diagnostics == second.diagnostics
    assert "TC508" in {each.code.number for each in first.diagnostics}
    assert first.functions["last"].ok


def test_the_same_text_is_refused_every_time():
    text = constructs()["squared extents of 10000000"](3_000)
    first, second = (analyze(text).diagnostics for _ in range(2))
    assert first == second
    assert "TC508" in {each.code.number for each in first}


STENCIL = "def f{n}(float(N) X) -> (Y) {{ A = f{m}(X) Y(i) = A(i) + A(i + 1) }}"


def chain(defs):
    calls = " ".join(STENCIL.format(n=n, m=n - 1) for n in range(1, defs))
    return f"def f0(float(N) X) -> (Y) {{ Y(i) = X(i) + X(i + 2) }} {calls}"


@pytest.mark.some(2)
@pytest.mark.parametrize(("partitions", "value"), [(3, "1"), (5, "a[i + {n}, j]")])
def test_bounds_that_are_products_are_no_more_work_than_others(partitions, value):
    cut = (
        f"[i, j] -> {value} | [n/{{k}}, m] <= [i, j] < [n + {{n}}, m*{{n}}]; ".format(n=n, k=n + 1)
        for n in range(partitions)
    )
    text = f"int[.,.] f(int n, int m, int[.,.] a) {{ return {{ {''.join(cut)}[i, j] -> 0 | [i, j] < [n*n, m*m] }}; }}"
    calls, found = spent(text, language="sac")
    assert not found.diagnostics
    assert calls < 5_000_000


def spent(text, **given):
    """What a text's analysis takes, in calls of Python functions: as much on every machine."""
    profile = cProfile.Profile()
    found = profile.runcall(analyze, text, **given)
    return sum(each.callcount for each in profile.getstats()), found


def many(count, statement):
    return " ".join(map(statement, range(count)))


BLOCKS = {
    "what many temporaries read of the last step": many(110, lambda n: f"a{n}(i) = (h(t-1,i) else X(i)) + {n}")
    + " h(t,i) = a0(i)",
    "a chain of temporaries": "a0(i) = (h(t-1,i) else X(i)) "
    + many(110, lambda n: f"a{n + 1}(i) = a{n}(i) + 0.5")
    + " h(t,i) = a110(i)",
    "a chain in the other order": "h(t,i) = a0(t,i) "
    + many(110, lambda n: f"a{n}(t,i) = a{n + 1}(t,i) + X(i)")
    + " a110(t,i) = (h(t-1,i) else X(i))",
    "many statements of one target": many(110, lambda n: f"h(t,i) += X(i)*(h(t-1,i) else 0)*{n}"),
    "variables of a loop": many(110, lambda n: f"a{n}(i) = a{n}(i) + a{(n + 1) % 110}(i)") + " h(t,i) = a0(i)",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_looked_at_once_for_each_statement(name):
    """The names of a statement do not depend on the others: more statements are no more work for each."""
    warm()
    calls, _ = spent(f"def f(float(N) X) -> (h) {{ along t in 0:N {{ {BLOCKS[name]} }} }}")
    assert calls < 2_700_000


@pytest.mark.parametrize(("condition", "most"), [("X(i) > {}", 3_400_000), ("i != {}", 1_500_000)])
def test_a_condition_is_made_once_for_those_behind_it(condition, most):
    conditions = ", ".join(map(condition.format, range(300)))
    warm()
    calls, found = spent(f"def f(float(N) X) -> (Y) {{ Y +=! X(i) where i in 0:N, {conditions} }}")
    assert "TC508" not in {each.code.number for each in found.diagnostics}
    assert calls < most


@pytest.mark.slow
def test_calls_of_calls_are_counted_for_the_whole_text():
    found = analyze(chain(40))
    assert found.ok
    assert found.functions["f39"].ranges.range("Y", "i").text == "0 <= i < N - 41"
    calls, found = spent(chain(150))
    assert {each.code.number for each in found.diagnostics} == {"TC508"}
    assert "those of this cell are too many" in found.diagnostics[0].message
    assert found.functions["f40"].ok
    assert calls < 9_000_000


@pytest.mark.parametrize("foreign", ["'[i]' in read", "'[i]' in target", "square reads in value"])
def test_a_fix_with_many_edits_is_no_more_work_than_its_text_is_long(foreign):
    text = LANGUAGES["tc"][f"foreign {foreign}"]
    spent(text(100))  # imports what a message needs
    calls, _ = spent(text(1_500))
    assert calls < 900_000


@pytest.mark.some(2)
@pytest.mark.parametrize("language", ["tc", "sac"])
def test_calls_of_long_functions_of_earlier_cells_are_counted(language):
    long = "".join(f"A{n}(i) = X(i) * {n} " for n in range(120))
    known = analyze(f"def g(float(N) X) -> (Y) {{ {long} Y(i) = A0(i) }}", allow=("TC231",)).functions["g"].program
    each = (
        "def f{n}(float(N) X) -> (Y) {{ Y = g(X) }}"
        if language == "tc"
        else "float[.] f{n}(float[.] x) {{ return g(x); }}"
    )
    calls, found = spent(" ".join(each.format(n=n) for n in range(230)), language=language, known={"g": known})
    assert {each.code.number for each in found.diagnostics if each.is_error} <= {"TC508", "TC503"}
    assert calls < 9_000_000


def test_one_def_leaves_enough_for_the_others():
    text = constructs()["halving defs"](4_000) + "\ndef last(float(N) X) -> (Y) { Y(i) = X(i) + X(i + 1) }"
    found = analyze(text)
    assert "TC508" in {each.code.number for each in found.diagnostics}
    assert found.functions["last"].ok
    assert found.functions["last"].ranges.range("Y", "i").text == "0 <= i < N - 1"


def within(calls, function):
    """A function called below that many others, as a notebook or a test does."""
    return within(calls - 1, function) if calls else function()


DEEP_EXTENTS = [
    "(T.0 + M) / 2",
    "(T.0 + M) % (N * 3 + 7) + 1",
    "min(T.0 + M, 2 * N + M * M)",
    "max(T.0 - M, min(T.0 + M, N - M))",
]


@pytest.mark.some(12)
@pytest.mark.parametrize("levels", [60, 127, 150])
@pytest.mark.parametrize("extent", DEEP_EXTENTS)
def test_deep_extents_are_computed_or_refused(extent, levels):
    """What is refused has a message; what is not runs."""
    chain = [f"T{n}(i) = A(0) where i in 0:{extent.replace('T.', f'T{n - 1}.')}" for n in range(1, levels)]
    text = f"def f(float(N) A, float(M) B) -> (Y) {{ T0(i) = A(0) {' '.join(chain)} Y(i) = A(0) where i in 0:T{levels - 1}.0 }}"
    text = text.replace("T0(i) = A(0)", "T0(i) = A(i)").replace("T.", "T0.")
    found = within(100, lambda: analyze(text))
    assert {each.code.number for each in found.diagnostics if each.is_error} <= {"TC508"}
    if found.ok:
        compiled = tc.compile(text, target="interpreter", allow=("TC234",)).f
        assert compiled(np.ones(5, np.float32), np.ones(3, np.float32)).ndim == 1


@pytest.mark.parametrize("levels", [100, 127, 149])
def test_deep_quotients_are_shown_or_refused(levels):
    text = f"def f(float(N) A, int32 s) -> (Y) {{ Y(i) = A(i + {' / '.join(['s'] * levels)}) }}"
    for _, question in questions(text, "tc"):
        within(100, question)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_sample_of_hostile_texts_is_answered_in_bounded_time(seed):
    warm()
    texts = [(name, language, made[name]) for language, made in LANGUAGES.items() for name in sorted(made)]
    chosen = [(name, language, make(10_000)) for name, language, make in random.Random(seed).sample(texts, 24)]
    mutants = Mutants(seed)
    chosen += [(f"mutant {number}", *mutants.draw(10_000)) for number in range(24)]
    wrong = {name: outcome for name, language, text in chosen if (outcome := measure(text, language, SECONDS)).problem}
    assert not wrong
