"""Every def of the cases, the pages and the suites, in double precision, and arguments for it."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from tc_jupyter.bench import plain, sac
from tc_jupyter.bench.workloads import workloads
from tc_jupyter.compiler import Analysis, analyze
from tc_jupyter.program import Program
from tests.literate import DOCS, all_cases, read_cases

WIDE = {"complex64": "complex128"}
NARROW = re.compile(r"\b(float|half|float16|bfloat16|float32|complex64)\b")
PAGES = (*sorted(DOCS.glob("*.md")), DOCS.parents[1] / "README.md", DOCS.parent / "diagnostics" / "index.md")
SIZES = {
    "suite gpu: gated dilated convolution, dilation 32: wavenet": {"T": 35},
    "suite plain: autocorrelation: plain": {"N": 70},
    "suite plain: moving average: reduction": {"N": 19},
    "suite plain: moving average: in_two": {"N": 19},
    "suite plain: dilated filter: plain": {"N": 35},
    "suite plain: dilated filter: from_the_end": {"N": 35},
}
"""Sizes of defs with numbers that small ones are below."""
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


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

    @property
    def engine(self) -> str:
        """What runs it: programs of the suites are for large sizes, some of which are numbers."""
        return "cpu" if self.title.startswith("suite") else "interpreter"

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that have to be as they are here."""
        return SIZES.get(str(self), {})

    def __str__(self) -> str:
        return f"{self.title}: {self.name}"


@lru_cache(maxsize=8)
def looked_at(text: str) -> Analysis:
    """The analysis of a text, once for all defs and all checks of it."""
    return analyze(text)


def in_doubles(text: str) -> str:
    """The text with `double` for every type of floats, and complex numbers of two of them."""
    text = text.replace("0.6931472", repr(math.log(2)))  # a law of a reducer holds up to rounding
    return NARROW.sub(lambda found: WIDE.get(found[0], "double"), text)


def has_gradient(program: Program) -> bool:
    """Whether a parameter and a result are floats; complex numbers are two of them."""
    sides = (program.parameters, program.results)
    return all(any(program.tensor(name).dtype.is_float for name in names) for names in sides)


def texts() -> Iterator[tuple[str, str]]:
    """Title and text of every program of the cases, the pages (strings of their Python, too) and the suites."""
    cases = [*all_cases(), *(case for page in PAGES for case in read_cases(page))]
    yield from ((case.name, case.program) for case in cases if case.language == "tc")
    for page in PAGES:
        yield from ((f"python of {page.stem}", text) for text in strings_of(page.read_text(encoding="utf-8")))
    for suite, some in (("cpu", workloads("cpu")), ("gpu", workloads("gpu")), ("plain", plain.programs())):
        yield from ((f"suite {suite}: {work.name}", work.text) for work in some)
    yield from ((f"suite sac: {each.name}", each.tc) for each in sac.examples())


def strings_of(page: str) -> Iterator[str]:
    """What may be programs among the strings in the Python of a page."""
    for block in PYTHON.findall(page):
        with suppress(SyntaxError):  # a part of a cell
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "def " in node.value:
                    yield node.value


def programs() -> list[tuple[str, str]]:
    """Title and text of every program, each text once."""
    by_text = {text: title for title, text in reversed(list(texts()))}
    return [(title, text) for text, title in reversed(by_text.items())]


def defs_of(title: str, text: str) -> list[Given]:
    """The defs of a program that have a gradient; none if it has mistakes."""
    analysis = looked_at(text)
    found = analysis.functions.items() if analysis.ok else ()
    return [Given(title, name, text, analysis) for name, each in found if has_gradient(each.program)]
