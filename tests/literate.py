"""Markdown files as tests: a program in a `tc` or `sac` fence, and fences with what follows from it.

    ```tc strict                    words after the language are options of the analysis: `strict`
    def ...
    ```
    ```ranges                       one fence per kind; kinds and what they hold are in FENCES
    round 1   0 <= i < N
    ```

A kind of fence is one function `(Case, options) -> text`; other tests add theirs with `FENCES["kind"] = function`. Words after the
kind are its options, as in `loops M=4 N=4`. Fences of other kinds (`python`, `text`) are prose.

A `schedule` fence schedules the program above it, one primitive per line; what follows is about the scheduled program:

    ```schedule
    .split("D", "j", 8)
    .compute_at("C", "D", "j.outer")
    ```
    ```bounds
    stage  visits ...
    ```
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tc_jupyter.compiler import Analysis, analyze
from tc_jupyter.compiler.definition import Options
from tc_jupyter.compiler.derivatives import derived_text
from tc_jupyter.diagnostics import CallError, CompileError, Diagnostic, Edit, Fix
from tc_jupyter.function import module_of
from tc_jupyter.schedule import Bounds, Schedule, phases, schedule_of

CASES = Path(__file__).with_name("cases")
DOCS = Path(__file__).parents[1] / "tc_jupyter" / "docs"
LANGUAGES = ("tc", "sac")
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass
class Expectation:
    """A fence that says what follows; `start` and `end` are offsets of its content in the file."""

    kind: str
    options: tuple[str, ...]
    text: str
    start: int
    end: int


@dataclass
class Case:
    """A program of a file, with the fences after it."""

    path: Path
    title: str
    language: str
    options: tuple[str, ...]
    program: str
    expectations: list[Expectation] = field(default_factory=list)
    steps: str | None = None

    @property
    def name(self) -> str:
        """For test ids: file and heading."""
        return f"{self.path.parent.name}/{self.path.stem}: {self.title}"

    @cached_property
    def analysis(self) -> Analysis:
        """The analysis of the program."""
        return analyze(self.program, self.language, strict="strict" in self.options)

    @cached_property
    def json(self) -> dict:
        """The public form of the analysis."""
        return self.analysis.to_json()

    @cached_property
    def scheduled(self) -> tuple[Schedule | None, tuple[Diagnostic, ...]]:
        """The scheduled program, or why the schedule is refused."""
        (function,) = self.analysis.functions.values()
        schedule = schedule_of(function.program, function.ranges)
        try:
            for step in (self.steps or "").splitlines():
                schedule = eval(f"schedule{step.strip()}", {"schedule": schedule})
        except CompileError as refused:
            return None, refused.diagnostics
        return schedule, ()

    def bounds(self, options: tuple[str, ...]) -> Bounds:
        """Bounds of the scheduled program at the sizes that the options give."""
        schedule, refused = self.scheduled
        assert schedule is not None, refused
        sizes = dict(option.split("=") for option in options if "=" in option)
        return schedule.bounds(**{name: int(value) for name, value in sizes.items()})


def read_cases(path: Path, kinds: frozenset[str] | None = None) -> list[Case]:
    """The cases of a file; fences whose kind is not in `kinds` (by default: in FENCES) are prose."""
    text = path.read_text(encoding="utf-8")
    headings = [(match.start(), match.group(1).strip()) for match in re.finditer(r"^#+ (.*)$", text, re.MULTILINE)]
    cases: list[Case] = []
    counts: dict[str, int] = {}
    for match in _FENCE.finditer(text):
        kind, *options = match.group(1).split() or [""]
        if kind in LANGUAGES:
            title = next((title for start, title in reversed(headings) if start < match.start()), path.stem)
            counts[title] = counts.get(title, 0) + 1
            unique = title if counts[title] == 1 else f"{title} ({counts[title]})"
            cases.append(Case(path, unique, kind, tuple(options), match.group(2)))
        elif kind == "schedule" and cases:
            above = cases[-1]
            if above.steps is not None or above.expectations:
                title = next((title for start, title in reversed(headings) if start < match.start()), path.stem)
                counts[title] = counts.get(title, 0) + 1
                unique = title if counts[title] == 1 else f"{title} ({counts[title]})"
                cases.append(Case(path, unique, above.language, above.options, above.program))
            cases[-1].steps = match.group(2)
        elif kind in (FENCES if kinds is None else kinds) and cases:
            cases[-1].expectations.append(
                Expectation(kind, tuple(options), match.group(2), match.start(2), match.end(2))
            )
    return cases


def all_cases() -> list[Case]:
    """The cases of the reference pages and of all files under `tests/cases`.

    `test_sac_cases.py` reads those of `sac`, `test_coming_from.py` and `test_gallery.py` the pages of their names.
    """
    pages = (page for page in DOCS.glob("*.md") if page.stem not in ("sac", "coming_from", "gallery"))
    paths = sorted([*pages, *(path for path in CASES.glob("*/*.md") if path.parent.name != "sac")])
    return [case for path in paths for case in read_cases(path)]


def actual(case: Case, expectation: Expectation) -> str:
    """What a fence should hold."""
    text = FENCES[expectation.kind](case, expectation.options).strip("\n")
    return text + "\n" if text else ""


def update(path: Path) -> None:
    """Rewrite the fences of a file with what holds now."""
    text = path.read_text(encoding="utf-8")
    edits = [(item.start, item.end, actual(case, item)) for case in read_cases(path) for item in case.expectations]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    path.write_text(text, encoding="utf-8")


def ranges(case: Case, options: tuple[str, ...]) -> str:
    """One line per index: how it was found, and its range; the statement is named when there are several."""
    rows: list[tuple[str, str, str]] = []
    for function in case.json["functions"]:
        counts: dict[str, int] = {}
        for statement in function["statements"]:
            if statement["operator"] == "call":
                continue
            target = statement["target"]
            counts[target] = counts.get(target, 0) + 1
            name = target if counts[target] == 1 else f"{target}#{counts[target]}"
            for item in statement["indices"]:
                found = f"round {item['round']}" if item["source"] == "inferred" else item["source"]
                rows.append((f"{function['name']}.{name}", found, item["text"]))
    several = len({row[0] for row in rows}) > 1
    return "\n".join(f"{row[0] + '  ' if several else ''}{row[1]:<9} {row[2]}" for row in rows)


def shapes(case: Case, options: tuple[str, ...]) -> str:
    """One line per computed tensor: element type, shape, origin if it is not 0."""
    lines = []
    for function in case.json["functions"]:
        for item in (*function["outputs"], *function["temporaries"]):
            shape = ", ".join(text if text is not None else "?" for text in item["shape"] or ())
            line = f"{item['dtype']}({shape}) {item['name']}"
            if any(text not in ("0", None) for text in item["origin"] or ()):
                line += f" from ({', '.join(text or '?' for text in item['origin'])})"
            lines.append(line)
    return "\n".join(lines)


def preconditions(case: Case, options: tuple[str, ...]) -> str:
    """One line per condition that is not proved; `all proved` if there is none."""
    found = [item for function in case.json["functions"] for item in function["preconditions"]]
    rows = [(item["text"], item["status"].replace("_", " ")) for item in found if item["status"] != "proved"]
    return "\n".join(f"{text}   {status}" for text, status in dict.fromkeys(rows)) or "all proved"


def diagnostics(case: Case, options: tuple[str, ...]) -> str:
    """One line per message: line and column counted from 1, severity, code, name, text; `none` if there is none."""
    if case.steps is not None:
        return "\n".join(_refusal(item) for item in case.scheduled[1]) or "none"
    lines = []
    for item in case.json["diagnostics"]:
        start = item["span"]["start"]
        place = f"{start['line'] + 1}:{start['character'] + 1}"
        lines.append(f"{place} {item['severity']}[{item['code']}] {item['name']}: {item['message']}")
    return "\n".join(lines) or "none"


def helps(case: Case, options: tuple[str, ...]) -> str:
    """One line per message that has a cure in words: where it points, and the cure."""
    places = ((case.analysis.source.position(item.span.start), item.help) for item in case.analysis.diagnostics)
    return "\n".join(f"{line + 1}:{character + 1} {text}" for (line, character), text in places if text)


def fixed(case: Case, options: tuple[str, ...]) -> str:
    """The program after all fixes, and what is still said about it."""
    after = _with_fixes(case)
    left = diagnostics(after, ())
    return after.program if left == "none" else f"{after.program}\n{left}"


def _with_fixes(case: Case) -> Case:
    fixes: list[tuple[Edit, ...]] = []
    for item in case.analysis.diagnostics:
        more = item.fix.edits if item.fix else ()
        if more and not any(_overlap(one, other) for one in more for fix in fixes for other in fix):
            fixes.append(more)  # else it is for afterwards
    # what a fix closes is closed before a fix that begins further in front adds something there
    # and of two that begin at one place, the longer one is around the other
    fixes.sort(key=lambda fix: (min(edit.span for edit in fix), max(edit.span.end for edit in fix)), reverse=True)
    edits = [edit for fix in fixes for edit in fix]
    return Case(case.path, case.title, case.language, case.options, Fix("", tuple(edits)).applied(case.program))


def _overlap(one: Edit, other: Edit) -> bool:
    return max(one.span.start, other.span.start) < min(one.span.end, other.span.end)


def _refusal(item: Diagnostic) -> str:
    head = f"{item.code.severity.name.lower()}[{item.code.number}] {item.code.name}: {item.message}"
    return f"{head}\nhelp: {item.help}" if item.help else head


def bounds(case: Case, options: tuple[str, ...]) -> str:
    """What every stage computes: the table of `Bounds`, and its notes."""
    found = case.bounds(options)
    return "\n".join([found.table(), *(_refusal(note) for note in found.diagnostics)])


def loops(case: Case, options: tuple[str, ...]) -> str:
    """The loop nest with its bounds; `all` keeps loops of one iteration."""
    return case.bounds(options).loops(keep_trivial="all" in options)


def steps(case: Case, options: tuple[str, ...]) -> str:
    """The phases of InferBound for the stage that the first option names."""
    stage, *sizes = options
    return phases(case.bounds(tuple(sizes)), stage).text()


def rendering(case: Case, options: tuple[str, ...]) -> str:
    """The messages as the terminal shows them."""
    return case.analysis.render()


def canonical(case: Case, options: tuple[str, ...]) -> str:
    """The canonical text of the program."""
    from tc_jupyter.syntax import to_text

    assert case.analysis.parsed is not None
    return to_text(case.analysis.parsed.unit)


def vjp(case: Case, options: tuple[str, ...]) -> str:
    """The derivatives of the last def; options are the parameters."""
    return _derived(case, "vjp", options)


def jvp(case: Case, options: tuple[str, ...]) -> str:
    """The derivatives of the last def, forwards."""
    return _derived(case, "jvp", options)


def _derived(case: Case, kind: str, options: tuple[str, ...]) -> str:
    found = list(case.analysis.functions.values())[-1]
    return derived_text(found.program, found.ranges, kind, options or None)


def values(case: Case, options: tuple[str, ...]) -> str:
    """What a call gives, one line per result: `values f([1, 2], 3)`; the interpreter and the CPU engine agree about it."""
    call = ast.parse(" ".join(options), mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    given = [eval(ast.unparse(argument), {"inf": math.inf, "nan": math.nan}) for argument in call.args]
    found = (_called(case, target, call.func.id, given) for target in ("interpreter", "cpu"))
    return "\n".join(dict.fromkeys(found))


def fixed_values(case: Case, options: tuple[str, ...]) -> str:
    """What a call of the program after all fixes gives, as `values` has it."""
    return values(_with_fixes(case), options)


def _called(case: Case, target: str, name: str, given: list[Any]) -> str:
    function = module_of(case.analysis, Options(case.program, target=target))[name]
    program = function.analysis.program
    types = [program.tensor(each).element.value for each in program.parameters]
    arguments = [np.array(each, dtype) for each, dtype in zip(given, types, strict=True)]
    try:
        results = function(*(each if each.ndim else each.item() for each in arguments))
    except CallError as refused:
        return f"error[{refused.diagnostic.code.number}] {refused.diagnostic.message}"
    pairs = zip(program.results, results if isinstance(results, tuple) else (results,), strict=True)
    return "\n".join(f"{result} = {np.array2string(x, 110, 5, separator=', ')}" for result, x in pairs)


FENCES: dict[str, Callable[[Case, tuple[str, ...]], str]] = {
    "ranges": ranges,
    "shapes": shapes,
    "preconditions": preconditions,
    "diagnostics": diagnostics,
    "helps": helps,
    "fixed": fixed,
    "bounds": bounds,
    "loops": loops,
    "phases": steps,
    "rendering": rendering,
    "canonical": canonical,
    "values": values,
    "fixed_values": fixed_values,
    "vjp": vjp,
    "jvp": jvp,
}
