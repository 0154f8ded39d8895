"""Functions of `%%sac` with arguments: the programs that calls of the cases, the page and the suite make, in double precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tc_jupyter as tc
from tc_jupyter.bench import sac
from tc_jupyter.compiler import analyze_program
from tc_jupyter.program import Program
from tc_jupyter.ranges import Ranges
from tests.gradient.defs import has_gradient
from tests.sac_call import bind
from tests.test_sac_cases import HELPERS, cases

SINGLE = re.compile(r"(?<=\d)f\b|\bfloat\b")
QUIET = [f"TC{number}" for number in (231, 234, *range(321, 331), 355)]
DRAWN = re.compile(r"rng\.random\(\(?([\d_, ]+)")


@dataclass(frozen=True)
class Called:
    """The program that a call makes, as `Given` is a def; and the function and arguments of the call."""

    title: str
    text: str
    program: Program
    ranges: Ranges
    forward: Callable[..., Any]
    arguments: tuple[Any, ...]
    engine: str = "interpreter"

    def __str__(self) -> str:
        return f"{self.title}: {self.program.name}"


def calls() -> Iterator[tuple[str, str, str]]:
    """Title, text and a call of every function, each program once."""
    seen = set[tuple[str, str]]()
    for case in cases():
        text, line = case.values
        call, _, wanted = line.rpartition(" -> ")
        name = call.partition("(")[0]
        if re.fullmatch(r"TC\d+", wanted) or (text, name) in seen or not is_called(text, call):
            continue
        seen.add((text, name))
        yield str(case.id), text, call
    for example in sac.examples():
        shapes = [DRAWN.search(data) for data in example.data.values()]
        if all(shapes) and "astype" not in "".join(example.data.values()):
            sizes = (tuple(min(int(n), 5) for n in found[1].split(",") if n.strip()) for found in shapes if found)
            yield f"suite sac: {example.name}", example.sac, f"f({', '.join(f'D(np.ones({each}))' for each in sizes)})"


def is_called(text: str, call: str) -> bool:
    """Whether the program of a call has a gradient."""
    name, values = arguments_of(call)
    specialized = bind(text, *values, name=name)[0].specialized
    return specialized is not None and specialized.program is not None and has_gradient(specialized.program)


def arguments_of(call: str) -> tuple[str, tuple[Any, ...]]:
    """The name of the function, and what is written between the parentheses."""
    name, _, written = call.partition("(")
    return name, eval(f"({written[:-1]},)" if written != ")" else "()", dict(HELPERS))


def called_in_doubles(title: str, text: str, call: str) -> Called:
    """The program of a call in double precision; its floats are drawn, so that nothing is equal, and no array is empty."""
    text = SINGLE.sub(lambda found: "double" if found[0] == "float" else "", text)
    random = np.random.default_rng(0)
    name, values = arguments_of(call.replace("F(", "D("))
    values = tuple(each if np.size(each) else np.resize(each, [n or 2 for n in each.shape]) for each in values)
    drawn = tuple(random.uniform(0.3, 0.9, np.shape(each)) if is_float(each) else each for each in values)
    program = bind(text, *values, name=name)[0].specialized.program
    ranges = analyze_program(program)[0].ranges
    forward = tc.compile(text, language="sac", target="interpreter", allow=QUIET)[name]
    return Called(title, text, program, ranges, forward, tuple(np.asarray(each)[()] for each in drawn))


def is_float(value: Any) -> bool:
    """Whether an argument is of floats."""
    return np.asarray(value).dtype.kind == "f"
