"""The lists of templates: each template has a statement that it takes, and that none before it in its list does."""

from __future__ import annotations

import pytest

from tc_jupyter.schedule import Target, schedule_of, space
from tests.running import program_of

PRODUCT = "f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }"
ORDERED = "f(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }"
SCATTERED = "f(uint8(N) X) -> (H) { H(X(i)) +=! 1 }"
FOLD = "f(float(N,M) X) -> (L) { L r=! X(n,m) } reduce r(float a, float b) = hypot(a, b) from 0 with x -> abs(x)"
SUM = "f(float(N) X) -> (s) { s +=! X(i) }"
TURNED = "f(float(N,M) X) -> (Y) { Y(j,i) = X(i,j) }"
COPY = "f(float(N) X) -> (Y) { Y(i) = X(i) }"
ON_CPU = {
    "DATA_AND_PRODUCTS": {
        "scatter": SCATTERED,
        "ragged": "f(int32(R) P, float(Z) V) -> (Y) { Y(i) +=! V(k) where k in P(i):P(i+1), i in 0:R }",
        "sums of values": "f(uint8(H,W,3) X) -> (S) { S(c) +=! float(X(h,w,c)) }",
        "contraction": PRODUCT,
    },
    "ON_CPU": {
        "ordered": ORDERED,
        "around others": "f(float(N,M) X) -> (Y) { T(i,j) = X(i,j) Y(i,j) = T(i,j) }",
        "folds": FOLD,
        "reduction": SUM,
        "pixels": "f(uint8(H,W,3) X, float(3) m) -> (Y) { Y(c,i,j) = X(i,j,c) - m(c) }",
        "few values": "f(half(N,4) X, half(N,M) Z) -> (Y) { Y(i,c) = X(i,3-c) * Z(i,1) where c in 0:3 }",
        "transposing": TURNED,
        "residues": "f(float(N) X) -> (Y) { Y(i) = X(i) + X(i/2) }",
        "streaming": COPY,
        "general": "f(float(N) X) -> (Y) { Y(i) += X(i) }",
    },
}
ON_GPU = {
    "ORDERED": {"ordered": ORDERED},
    "SCATTERED": {"scatter": SCATTERED},
    "PRODUCTS": {
        "tensor cores": PRODUCT.replace("float", "half"),
        "thin": "f(float(4096,4096) A, float(4096,2) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        "product": PRODUCT,
    },
    "ROWS": {"rows": "f(float(M,N) A) -> (O) { s(i) +=! A(i,j) O(i,j) = A(i,j) - s(i) }"},
    "ON_GPU": {
        "folds": FOLD,
        "stencils": "f(float(M,N) X) -> (Y) { Y(i,j) = X(i,j) + X(i+1,j) + X(i+2,j+1) }",
        "reduction": SUM,
        "transposing": TURNED,
        "pointwise": COPY,
        "general": "f() -> (Y) { Y = 1 }",
    },
}
AVX512 = frozenset({"avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"})
TARGETS = {
    "cpu": Target("cpu", features=AVX512, vector_bits=512, vector_registers=32, fma=True),
    "cuda": Target("cuda", features=frozenset({"cp.async", "mma"}), arch="sm_80"),
}


@pytest.mark.parametrize(
    ("kind", "templates", "name"),
    [
        (kind, templates, name)
        for kind, lists in (("cpu", ON_CPU), ("cuda", ON_GPU))
        for templates, examples in lists.items()
        for name in examples
    ],
)
def test_a_template_is_the_first_that_takes_its_example(kind: str, templates: str, name: str):
    found = program_of("def " + (ON_CPU | ON_GPU)[templates][name])
    assert found is not None
    schedule = schedule_of(*found)
    if name == "around others":
        schedule = schedule.compute_at("T", "Y", "i")
    known = {} if kind == "cpu" else space.Sizes({}, {})
    stage = schedule.stages[-1]
    taken = (each for each, _, template in getattr(space, templates) if template(schedule, stage, TARGETS[kind], known))
    assert next(taken) == name


@pytest.mark.parametrize("lists", [ON_CPU, ON_GPU], ids=["cpu", "cuda"])
def test_every_template_has_an_example(lists: dict[str, dict[str, str]]):
    for templates, examples in lists.items():
        assert [name for name, _, _ in getattr(space, templates)] == list(examples)
