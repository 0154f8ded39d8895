"""Large temporaries that are computed for a block of rows in the task that uses them: which are, and that values stay."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.ranges import Fact
from tc_jupyter.schedule import default_schedule
from tests.running import cpu_with, program_of, run

pytest.importorskip("llvmlite")

SCORES = (
    "def f(float(H,N,D) Q, float(H,N,D) K, float(H,N,D) V{}) -> (Y) {{ S(h,i,j) +=! Q(h,i,d) * K(h,j,d) * 0.5 {} }}"
)
UP_TO_HERE = "where j in 0:i + 1"
CHAINS = {
    "attention": SCORES.format(
        "",
        """M(h,i) max=! S(h,i,j)  E(h,i,j) = exp(S(h,i,j) - M(h,i))  Z(h,i) +=! E(h,i,j)
        O(h,i,d) +=! E(h,i,j) * V(h,j,d)  Y(h,i,d) = O(h,i,d) / Z(h,i)""",
    ),
    "positions before": SCORES.format(
        "",
        f"""M(h,i) max=! S(h,i,j) {UP_TO_HERE} E(h,i,j) = exp(S(h,i,j) - M(h,i))  Z(h,i) +=! E(h,i,j) {UP_TO_HERE}
        O(h,i,d) +=! E(h,i,j) * V(h,j,d) {UP_TO_HERE} Y(h,i,d) = O(h,i,d) / Z(h,i)""",
    ),
    "a choice": SCORES.format(
        "",
        """T(h,i,j) = j <= i ? S(h,i,j) : -inf  M(h,i) max=! T(h,i,j)  E(h,i,j) = exp(T(h,i,j) - M(h,i))
        Z(h,i) +=! E(h,i,j)  O(h,i,d) +=! E(h,i,j) * V(h,j,d)  Y(h,i,d) = O(h,i,d) / Z(h,i)""",
    ),
    "a bias and weights": SCORES.format(
        ", float(N,N) B",
        """T(h,i,j) = S(h,i,j) + B(i,j)  M(h,i) max=! T(h,i,j)  E(h,i,j) = exp(T(h,i,j) - M(h,i))
        Z(h,i) +=! E(h,i,j)  P(h,i,j) = E(h,i,j) / Z(h,i)  Y(h,i,d) +=! P(h,i,j) * V(h,j,d)""",
    ),
    "two layers": "def f(float(N,D) X, float(M,D) W, float(M,D) U) -> (Y) { G(i,m) +=! X(i,d) * W(m,d)  Y(i,d) +=! max(G(i,m), 0) * U(m,d) }",
}
LARGE = Fact(320, multiple=64)


@cache
def schedule_for(text: str):
    found = program_of(text)
    assert found is not None
    return default_schedule(*found, cpu_with(), {"H": 8, "N": LARGE, "M": LARGE, "D": 64})


def arrays_for(text: str, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    found = program_of(text)
    assert found is not None
    random = np.random.default_rng(5)
    shapes = {name: [sizes[dim.name] for dim in found[0].tensor(name).dims] for name in found[0].parameters}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("chain", CHAINS)
def test_what_is_as_large_as_the_scores_belongs_to_a_task(chain):
    graph = schedule_for(CHAINS[chain]).graph
    own = [each for each in graph.stages if each.attach.kind == "root" and each.name not in graph.outputs]
    rows = {"i"} & {root.name for each in own for root in each.roots}
    assert not rows
    assert own  # operands that all tasks read are packed once


def reference(chain: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The same with all scores at once."""
    if chain == "two layers":
        return np.maximum(arrays["X"] @ arrays["W"].T, 0) @ arrays["U"]
    scores = arrays["Q"] @ arrays["K"].transpose(0, 2, 1) * 0.5 + arrays.get("B", np.zeros((), np.float32))
    scores = (
        np.where(np.tri(scores.shape[-1]) > 0, scores, -np.inf) if chain in ("positions before", "a choice") else scores
    )
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ arrays["V"]


@pytest.mark.some(2)
@pytest.mark.parametrize("chain", CHAINS)
def test_the_values_stay(chain):
    """On sizes that no block divides, by the interpreter and by the engine."""
    text = CHAINS[chain]
    few, many = {"H": 1, "N": 67, "M": 35, "D": 2}, {"H": 2, "N": 333, "M": 290, "D": 24}
    arrays = arrays_for(text, few)
    found = run(schedule_for(text), arrays, {name: few[name] for name in schedule_for(text).graph.program.sizes})["Y"]
    np.testing.assert_allclose(found, reference(chain, arrays), rtol=1e-4, atol=1e-5)
    arrays = arrays_for(text, many)
    found = tc.compile(text, target="cpu").f(*arrays.values())
    np.testing.assert_allclose(found, reference(chain, arrays), rtol=1e-4, atol=1e-5)


def test_few_rows_are_not_one_task():
    """What is large in columns alone is computed by all threads."""
    found = program_of(CHAINS["two layers"])
    assert found is not None
    graph = default_schedule(*found, cpu_with(), {"N": 64, "M": LARGE, "D": 64}).graph
    assert any(each.attach.kind == "root" and each.target.startswith("G") for each in graph.stages)
