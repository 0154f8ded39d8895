"""Regions of tiles, explanations, formulas."""

from __future__ import annotations

import itertools
import random

import pytest
from oracle import guarded_reads, value
from random_programs import random_program
from range_programs import define

from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.ranges import (
    Box,
    constant,
    explain,
    infer_ranges,
    input_region,
    make_bind,
    preconditions,
    region,
    symbol,
    to_latex,
    to_python,
    to_sympy,
)


def tile(*pairs):
    return Box(tuple((symbol(a), symbol(b)) for a, b in pairs))


def texts(found):
    return [(to_python(a), to_python(b)) for a, b in found.box.bounds]


def regions(signature, body, box):
    program = define(signature, body)
    return input_region(program, infer_ranges(program), "A", box)


def test_strided_convolution():
    found = regions(
        "float(H,W) X, float(KH,KW) K", "A(h,w) +=! X(2*h+kh, w+3*kw)*K(kh,kw)", tile(("h0", "h1"), ("w0", "w1"))
    )
    assert texts(found["X"]) == [("2*h0", "KH + 2*h1 - 2"), ("w0", "3*KW + w1 - 3")]
    assert texts(found["K"]) == [("0", "KH"), ("0", "KW")]


def test_chain():
    found = regions("float(N) B", "T(i) = B(i-1)+B(i)+B(i+1) A(i) = T(i)+T(i+2)", tile(("a", "b")))
    assert texts(found["T"]) == [("a", "b + 2")]
    assert texts(found["B"]) == [("a - 1", "b + 3")]


def test_matrix_product():
    found = regions("float(M,K) B, float(K,N) C", "A(m,n) +=! B(m,k)*C(k,n)", tile(("m0", "m1"), ("n0", "n1")))
    assert texts(found["B"]) == [("m0", "m1"), ("0", "K")]
    assert texts(found["C"]) == [("0", "K"), ("n0", "n1")]
    assert found["B"].exact


def test_division():
    found = regions("float(I) B", "A(i) = B(i/2)", tile(("a", "b")))
    assert texts(found["B"]) == [("a//2", "(b + 1)//2")]


def test_data_needs_the_whole_axis():
    found = regions("float(J) B, int(I) C", "A(i) = B(C(i))", tile(("a", "b")))
    assert texts(found["B"]) == [("0", "J")]
    assert texts(found["C"]) == [("a", "b")]
    assert not found["B"].exact


def test_a_guarded_access_is_cut():
    found = regions("float(N) X", "A(i) = i > 0 ? X(i-1) : 0 where i in 0:N", tile(("a", "b")))
    low, high = found["X"].box.bounds[0]
    assert low.evaluate({"a": 0, "b": 3, "N": 9}) == 0
    assert high.evaluate({"a": 0, "b": 3, "N": 9}) == 2


def test_later_statement_covers_a_part():
    found = regions("float(N) X, float(M) Z", "A(i) = X(i) A(i) += Z(i)", tile(("a", "b")))
    assert found["Z"].box.bounds[0][1].evaluate({"a": 0, "b": 9, "N": 10, "M": 4}) == 4
    assert texts(found["X"]) == [("a", "b")]


def test_region_of_an_unread_tensor():
    program = define("float(N) X, float(N) Y", "A(i) = X(i) where exists Y(i)")
    ranges = infer_ranges(program)
    with pytest.raises(KeyError):
        region(ranges, program.statements[0], "Q", ranges.statement_box("A"))


def test_regions_contain_all_reads_and_exact_ones_nothing_else():
    checked = 0
    for seed in range(400):
        rng = random.Random(seed)
        signature, body = random_program(rng)
        program = define(signature, body, "A, O" if "O(" in body else "A")
        ranges = infer_ranges(program)
        if not program.statements or any(d.is_error for d in ranges.diagnostics):
            continue
        sizes = {name: rng.randint(1, 6) for name in program.sizes}
        numbers = make_bind(program, ranges, preconditions(program, ranges))(sizes)
        if isinstance(numbers, Diagnostic) or any(b <= a for r in numbers.ranges.values() for a, b in r):
            continue
        statement = program.statements[0]
        part = []
        for low, high in numbers.ranges[statement.name]:
            a = rng.randint(low, high - 1)
            part.append((a, rng.randint(a + 1, high)))
        box = Box(tuple((constant(a), constant(b)) for a, b in part))
        reads = {}
        for read, guards in guarded_reads(statement.value):
            for point in itertools.product(*[range(a, b) for a, b in part]):
                env = {**sizes, **dict(zip([i.name for i in statement.indices], point, strict=False))}
                if all(bool(value(c, env)) == p for c, p in guards):
                    reads.setdefault(read.tensor, set()).add(tuple(value(e, env) for e in read.indices))
        for tensor, elements in reads.items():
            found = region(ranges, statement, tensor, box)
            bounds = [(a.evaluate(sizes), b.evaluate(sizes)) for a, b in found.box.bounds]
            inside = set(itertools.product(*[range(a, b) for a, b in bounds]))
            assert elements <= inside, f"{signature} | {body} {sizes} {part} {tensor}"
            if found.exact:
                assert elements == inside, f"{signature} | {body} {sizes} {part} {tensor}"
            checked += 1
    assert checked > 100


def test_explanation():
    ranges = infer_ranges(define("float(N) B, float(M) K", "A(i) +=! B(i+k)*K(k)"))
    found = explain(ranges, "A", "i")
    assert found.summary == "0 <= i + k < N  ->  0 <= i < N - M + 1 (round 2)"
    assert "round 2: `i + k < N` in `B(i + k)`, for all `k`, gives `i < N - M + 1`" in found.text
    assert [step.round for step in found.steps] == [1, 1, 1, 2, 2, 2]
    with pytest.raises(KeyError):
        explain(ranges, "A", "q")


def test_explanation_of_two_bounds():
    ranges = infer_ranges(define("float(I) B", "A(i) = B(2*i) + B(2*i+1)"))
    assert explain(ranges, "A", "i").summary == "0 <= 2*i < I and 0 <= 2*i + 1 < I  ->  0 <= i < I//2 (round 1)"


def test_explanation_of_the_fallback():
    ranges = infer_ranges(define("float(N) X", "A(i) = i > 0 ? X(i-1) : 0"))
    assert "nothing else bounds `i`" in explain(ranges, "A", "i").text


def test_explanation_of_given_and_open():
    ranges = infer_ranges(define("float(N,N) X", "A(i,j) = X(i+j, i-j) where i in 0:2"))
    assert explain(ranges, "A", "i").steps[0].text == "`where` gives `0 <= i < 2`"
    ranges = infer_ranges(define("float(N,N) X", "A(i,j) = X(i+j, i-j)"))
    assert explain(ranges, "A", "j").summary == "j is open"


def test_formulas():
    pytest.importorskip("sympy")
    ranges = infer_ranges(define("float(N) B, float(M) C", "A(i) = B(2*i) + C(i-2)"))
    upper = ranges.range("A", "i").upper
    assert to_latex(upper) == r"\min\left(M + 2, \left\lfloor{\frac{N}{2} + \frac{1}{2}}\right\rfloor\right)"
    formula = to_sympy(upper)
    for n in range(4):
        for m in range(4):
            numbers = {"N": n, "M": m}
            assert formula.subs({s: numbers[s.name] for s in formula.free_symbols}) == upper.evaluate(numbers)
