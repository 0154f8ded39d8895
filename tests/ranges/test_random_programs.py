"""Inference and preconditions against the oracle that works on numbers, for random programs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_programs import random_program
from range_programs import define

from tc_jupyter.diagnostics import Diagnostic
from tc_jupyter.ranges import check_data, infer_ranges, make_bind, preconditions
from tests.ranges.against_oracle import discharged_in, same_preconditions, same_ranges
from tests.ranges.oracle import Oracle, Unresolved, Vacuous, value

SAMPLES = 6


def compile_(seed, data=False):
    rng = random.Random(seed)
    signature, body = random_program(rng, data)
    results = "A, O" if "O(" in body else "A"
    program = define(signature, body, results)
    return rng, signature, body, program


def sample(rng, program):
    return {name: rng.choice([1, 1, 2, 3, 4, 5, 6]) for name in program.sizes}


def check(seed, samples=SAMPLES):
    rng, signature, body, program = compile_(seed)
    ranges = infer_ranges(program)
    text = f"{signature} | {body}"
    errors = [d for d in ranges.diagnostics if d.is_error]
    if any(d.code.number == "TC309" for d in errors):
        return "inexact"
    found = preconditions(program, ranges)
    complete = all(ranges.is_complete(s.name) for s in program.statements)
    bind = make_bind(program, ranges, found) if complete else None
    for _ in range(samples):
        sizes = sample(rng, program)
        try:
            oracle = Oracle(program, sizes, discharged_in(ranges))
        except Unresolved:
            assert not complete, text
            return "open"
        except Vacuous:
            continue
        assert complete, f"{text}: resolved by the oracle only: {[d.message for d in errors]}"
        same_ranges(program, ranges, oracle, sizes, text)
        same_preconditions(program, found, bind, oracle, sizes, text)
    return "ok"


def test_random_programs():
    outcomes = [check(seed) for seed in range(120)]
    assert outcomes.count("ok") > 40


@pytest.mark.slow
def test_many_random_programs():
    outcomes = [check(seed, 25) for seed in range(1000, 1600)]
    assert outcomes.count("ok") > 200


def check_with_data(seed):
    rng, signature, body, program = compile_(seed, data=True)
    ranges = infer_ranges(program)
    if any(d.is_error for d in ranges.diagnostics):
        return "open"
    found = preconditions(program, ranges)
    bind = make_bind(program, ranges, found)
    done = "rejected"
    for _ in range(3):
        sizes = sample(rng, program)
        numbers = bind(sizes)
        if isinstance(numbers, Diagnostic):
            continue
        arrays = {}
        for t in program.tensors:
            if t.dims is not None:
                shape = tuple(d.value if not hasattr(d, "name") else sizes[d.name] for d in t.dims)
                dtype = np.int32 if t.name == "P" else np.float32
                arrays[t.name] = np.array(
                    [rng.choice([-1, 0, 0, 0, 1, 1, 2, 3]) for _ in range(int(np.prod(shape)))], dtype
                ).reshape(shape)
        oracle = OracleAt(program, sizes, numbers)
        for s in program.statements:
            bad = oracle.violations(s, arrays)
            expected = any(any(v) for key, v in bad.items())
            got = [check_data(item, arrays, sizes) for item in bind.checks(s.name)]
            assert any(g is not None for g in got) == expected, (
                f"{signature} | {body} at {sizes} P={arrays.get('P')}: {[p.text for p in found.items if p.kind != 'PROVED']}"
            )
            done = "ok"
    return done


class OracleAt(Oracle):
    """The oracle with ranges that are given."""

    def __init__(self, program, sizes, numbers):
        self.program, self.env, self.boxes = program, dict(sizes), {}
        self.ranges = {name: list(r) for name, r in numbers.ranges.items()}
        for t in program.tensors:
            if t.dims is not None:
                self.set_box(t.name, [(0, value(d, self.env)) for d in t.dims])
            else:
                self.set_box(
                    t.name, [(o, o + n) for o, n in zip(numbers.origins[t.name], numbers.shapes[t.name], strict=False)]
                )


def test_random_programs_with_data():
    outcomes = [check_with_data(seed) for seed in range(5000, 5120)]
    assert outcomes.count("ok") > 24


def test_sizes_of_zero_never_leave_a_tensor():
    """Whatever `bind` accepts with sizes of 0 reads nothing outside."""
    assert accepted_with_zeros(range(7000, 7250)) > 50


@pytest.mark.slow
def test_many_sizes_of_zero():
    assert accepted_with_zeros(range(20000, 20750)) > 125


def accepted_with_zeros(seeds):
    accepted = 0
    for seed in seeds:
        rng, signature, body, program = compile_(seed)
        ranges = infer_ranges(program)
        if any(d.is_error for d in ranges.diagnostics):
            continue
        bind = make_bind(program, ranges, preconditions(program, ranges))
        for _ in range(4):
            sizes = {name: rng.choice([0, 0, 1, 2, 4]) for name in program.sizes}
            if 0 not in sizes.values():
                continue
            numbers = bind(sizes)
            oracle = None if isinstance(numbers, Diagnostic) else OracleAt(program, sizes, numbers)
            if oracle is None:
                if numbers.code.number == "TC601":
                    assert numbers.message
                continue
            accepted += 1
            for s in program.statements:
                bad = oracle.violations(s)
                assert not any(any(v) for v in bad.values()), f"{signature} | {body} at {sizes}: {numbers.ranges}"
    return accepted


@pytest.mark.slow
def test_many_random_programs_with_data():
    outcomes = [check_with_data(seed) for seed in range(10000, 10750)]
    assert outcomes.count("ok") > 150
