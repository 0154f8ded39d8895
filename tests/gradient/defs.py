"""Every def of the cases, the pages and the suites, in double precision, and arguments for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tc_jupyter.bench.workloads import workloads
from tc_jupyter.compiler import Analysis, analyze
from tests.literate import all_cases

FLOATS = re.compile(r"\b(float|half|float16|bfloat16|float32)\b")


@dataclass(frozen=True)
class Given:
    """One def of a text."""

    title: str
    name: str
    text: str
    analysis: Analysis

    @property
    def program(self):
        return self.analysis.functions[self.name].program

    @property
    def ranges(self):
        return self.analysis.functions[self.name].ranges

    def __str__(self) -> str:
        return f"{self.title}: {self.name}"


@lru_cache(maxsize=8)
def looked_at(text: str) -> Analysis:
    """The analysis of a text, once for all defs and all checks of it."""
    return analyze(text)


def in_doubles(text: str) -> str:
    """The text with `double` for every type of floats."""
    return FLOATS.sub("double", text)


def has_gradient(program) -> bool:
    """Whether a parameter and a result are floats. Complex ones have tests of their own."""
    if any(program.tensor(name).pairs for name in (*program.parameters, *program.results)):
        return False
    dtypes = [[program.tensor(name).dtype for name in names] for names in (program.parameters, program.results)]
    return all(any(dtype.is_float for dtype in each) for each in dtypes)


def texts():
    for case in all_cases():
        if case.language == "tc" and case.steps is None:
            yield case.name, case.program
    for work in workloads("cpu"):
        yield f"suite cpu: {work.name}", work.text


def programs() -> list[tuple[str, str]]:
    """Title and text of every program, each text once."""
    by_text = {text: title for title, text in reversed(list(texts()))}
    return [(title, text) for text, title in reversed(by_text.items())]


def defs_of(title: str, text: str) -> list[Given]:
    """The defs of a program that have a gradient; none if it has mistakes."""
    analysis = looked_at(text)
    found = analysis.functions.items() if analysis.ok else ()
    return [Given(title, name, text, analysis) for name, each in found if has_gradient(each.program)]
