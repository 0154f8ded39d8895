"""Weakened copies of the CUDA text of every template, and what notices each of them.

    python -m tests.gpu.mutants [--table tests/gpu/mutants.md] [template ...]

prints every copy: its kind, its line, and what caught it (a finding of the simulator, the compiler, or a wrong result). A copy lacks one
barrier, wait, commit, one part of a guard, the start value of a sum, or has a loop that ends one iteration early or an index stride that
is one larger. With `--table` the counts of the templates at hand are written into that table, with the date.

What `HARMLESS` names is printed too: conditions that spare work, so that nothing is wrong without them.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.loops import Kernel
from tc_jupyter.program import Program
from tc_jupyter.runtime.cuda import fit
from tc_jupyter.runtime.nvrtc import BackendError
from tc_jupyter.schedule import tuning
from tc_jupyter.simulator import SimulationError
from tests.gpu.cases import CASES, row_major, scheduled
from tests.gpu.simulated import differs, inputs, simulated, wanted

Sizes = dict[str, int]

SHORT_PARTS = 512
"""Elements of a part of a total: the second kernel reads more parts than it has threads above 131,072 elements, not two million."""


@dataclass(frozen=True)
class Mutant:
    """A text with one change: what kind of thing is weaker, in which line, how the line reads now."""

    kind: str
    line: int
    now: str
    text: str


# --- changes ---------------------------------------------------------------------------------------------------------


HARMLESS = (
    (r"^\s*if \(threadIdx\.\w == 0\) \{", "all threads hold the value that one of them stores"),
    (r".*_mine = .* \? ", "sums of rows that do not exist are not stored"),
    (r"^\s*if \(\w+ == 0 \|\| \w+ >= \d+\) \{", "a window is filled again with the elements that it has kept"),
    (
        r"^\s*if \(.*\) \{\n(\s*#pragma unroll\n\s*for .*\n)?\s*\w+(\[\w+\])+ = -?[0-9.]+f?;",
        "a register that nothing reads is given a start value",
    ),
    (
        r"\s*for \(int d1_inner = 0; d1_inner < 4; (.*\n){1,4}.*\(2 \* h \+ 2 \* \(R / 2\) - r\)",
        "a window that moves by two leaves out every second column of the copy",
    ),
    # without this condition the compiler loads so much ahead that registers are spilled on sm_90
    (
        r"^\s*if \(k_inner < K - 16 \* k_outer\) \{",
        "beyond the end both tiles hold zeros, and the distance of zeros is zero",
    ),
)
"""Lines, with the ones after them, whose conditions or ends may be weaker without harm, and why."""


def harmless(mutant: Mutant, original: str) -> str:
    """Why nothing has to notice a copy; empty if something must."""
    lines = "\n".join(original.split("\n")[mutant.line - 1 : mutant.line + 4])
    reasons = (reason for pattern, reason in HARMLESS if re.match(pattern, lines))
    return next(reasons, "") if mutant.kind in ("guard", "end") else ""


def mutants(text: str) -> Iterator[Mutant]:
    """Every single change; barriers also in the device functions above the kernel."""
    lines = text.split("\n")
    entry = next(number for number, line in enumerate(lines) if line.startswith('extern "C"'))
    for number, line in enumerate(lines):
        code, slashes, note = line.partition("//")
        changes = _lost_calls(code)
        if number > entry and code.strip():
            changes = [*changes, *_guards(code), *_ends(code), *_strides(code), *_starts(code)]
        for kind, new in changes:
            changed = [*lines[:number], new + slashes + note, *lines[number + 1 :]]
            yield Mutant(kind, number + 1, new.strip(), "\n".join(changed))


def _lost_calls(code: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for kind, pattern in (("barrier", r"__sync(threads|warp)\(\);"), ("commit", r"\btc_cp_async_commit\(\);")):
        found += [(kind, code[: m.start()] + code[m.end() :]) for m in re.finditer(pattern, code)]
    for match in re.finditer(r"\btc_cp_async_wait<(\d+)>\(\);", code):
        before, after = code[: match.start()], code[match.end() :]
        found.append(("wait", before + after))
        found.append(("wait for one group less", f"{before}tc_cp_async_wait<{int(match[1]) + 1}>();{after}"))
    return found


def _guards(code: str) -> list[tuple[str, str]]:
    """Conditions without one of their parts."""
    spans: list[tuple[int, int]] = []
    for match in re.finditer(r"\bif \((.*)\) \{|const bool \w+ = (.*);", code):
        group = 1 if match[1] is not None else 2
        spans.append(match.span(group))
    spans += [(_start(code, mark.start()), mark.start()) for mark in re.finditer(r" \? ", code)]
    found: list[tuple[str, str]] = []
    for start, end in spans:
        parts = _split(code[start:end])
        for number in range(len(parts)):
            rest = " && ".join(part for other, part in enumerate(parts) if other != number) or "true"
            found.append(("guard", code[:start] + rest + code[end:]))
    return found


def _start(code: str, end: int) -> int:
    """Where the condition of a `?` begins."""
    depth = 0
    for place in range(end - 1, -1, -1):
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(code[place], 0)
        if depth < 0 or (depth == 0 and (code[place] == "," or code[place - 1 : place + 1] == "= ")):
            return place + 1
    return 0


def _split(condition: str) -> list[str]:
    """The parts of a conjunction."""
    parts, depth, last = [], 0, 0
    for place, char in enumerate(condition):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        if depth == 0 and condition.startswith(" && ", place):
            parts.append(condition[last:place])
            last = place + 4
    return [*parts, condition[last:]]


def _ends(code: str) -> list[tuple[str, str]]:
    """Loops that end one iteration early."""
    return [
        ("end", f"{code[: match.start(2)]}({match[2]}) - 1{code[match.end(2) :]}")
        for match in re.finditer(r"\bfor \(\w[\w ]* (\w+) = .*?; \1 < (.*); ", code)
    ]


def _strides(code: str) -> list[tuple[str, str]]:
    """Factors in subscripts that are one larger."""
    found: list[tuple[str, str]] = []
    for start, end in _subscripts(code):
        inside = code[start:end]
        for match in re.finditer(r"(?<![\w.])(?<![/%] )(\d+) \* |\* (\d+|[A-Z]\w*)\b(?![\[(])", inside):
            group = 1 if match[1] is not None else 2
            low, high = match.span(group)
            new = f"{inside[:low]}({match[group]} + 1){inside[high:]}"
            found.append(("stride", code[:start] + new + code[end:]))
    return found


def _subscripts(code: str) -> list[tuple[int, int]]:
    """The outermost brackets of a line, but not those of a declaration."""
    if re.match(r"\s*(__shared__ |float |double |int |unsigned |long |signed |tc_vector<)", code) and "=" not in code:
        return []
    found, depth, start = [], 0, 0
    for place, char in enumerate(code):
        if char == "[":
            start = place + 1 if depth == 0 else start
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                found.append((start, place))
    return found


def _starts(code: str) -> list[tuple[str, str]]:
    """Sums without their start value."""
    constant = r"(?:0\.0f?|0|1\.0f?|1|__int_as_float\(0x\w+\)|__longlong_as_double\(0x\w+\))"
    match = re.match(rf"(\s*)\w+(?:\[[^=]*\])? = {constant};$", code.rstrip())
    return [("start value", match[1] + ";")] if match else []


# --- what notices them -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """The texts of all kernels of a template, and the sizes that have these texts."""

    name: str
    program: Program
    kernels: tuple[Kernel, ...]
    sources: tuple[KernelSource, ...]
    sizes: tuple[Sizes, ...]

    def mutants(self) -> list[tuple[int, Mutant]]:
        """Number of the kernel and change, for all kernels."""
        return [(place, each) for place, source in enumerate(self.sources) for each in mutants(source.text)]

    def caught(self, place: int, text: str) -> str:
        """What notices that a kernel has another text; empty if nothing does at any of the sizes."""
        sources = list(zip(self.kernels, self.sources, strict=True))
        sources[place] = (self.kernels[place], replace(self.sources[place], text=text))
        for sizes in self.sizes:
            arrays, expected = _run(self.name, tuple(sizes.items()))
            try:
                held, findings = simulated(sources, arrays, sizes)
            except BackendError:
                return "compiler"
            except SimulationError as error:
                return f"simulator: {error}".split(",")[0][:60]
            if findings:
                return f"finding: {findings[0]}"
            if differs(self.program, held, expected):
                return "wrong result"
        return ""


@cache
def _run(name: str, sizes: tuple[tuple[str, int], ...]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Arguments of a template at some sizes, and what it should compute."""
    program, _ = scheduled(CASES[name], CASES[name].small)
    arrays = inputs(program, 1, dict(sizes))
    return arrays, wanted(CASES[name], arrays, dict(sizes))


def variants(name: str, only: tuple[Sizes, ...] = ()) -> list[Variant]:
    """The texts of a template at its sizes, or at some of them."""
    case = CASES[name]
    with patch.object(tuning, "PART", SHORT_PARTS):
        program, schedule = scheduled(case, case.small)
    found: dict[tuple[str, ...], Variant] = {}
    general = row_major(schedule)
    for sizes in only or (*case.sizes, *case.edges):
        made = tuple(fit(each, True, sizes) for each in general)
        sources = tuple(emit_cuda(each, case.target) for each in made)
        texts = tuple(source.text for source in sources)
        known = found.get(texts, Variant(name, program, made, sources, ()))
        found[texts] = replace(known, sizes=(*known.sizes, sizes))
    return list(found.values())


# --- the command -----------------------------------------------------------------------------------------------------

COLUMNS = ("template", "date", "copies", "finding", "wrong result", "compiler", "harmless", "unnoticed")


def examined(name: str) -> Counter[str]:
    """Print every copy of a template and what caught it; how many of each."""
    count: Counter[str] = Counter()
    for number, variant in enumerate(variants(name)):
        for place, mutant in variant.mutants():
            by = variant.caught(place, mutant.text)
            reason = "" if by else harmless(mutant, variant.sources[place].text)
            shown = by or (f"harmless: {reason}" if reason else "NOTHING")
            print(
                f"{name} | {number}.{place} | line {mutant.line} | {mutant.kind} | {shown} | {mutant.now}", flush=True
            )
            count["copies"] += 1
            count["harmless" if reason else by.partition(":")[0].replace("simulator", "finding") or "unnoticed"] += 1
    return count


def written(table: Path, name: str, count: Counter[str]) -> None:
    """Put the row of a template into the table, in the place of an older one."""
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("|")}
    cells = [name, f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}", *(str(count[each]) for each in COLUMNS[2:])]
    rows[name] = f"| {' | '.join(cells)} |"
    head = [
        "What `python -m tests.gpu.mutants --table tests/gpu/mutants.md` has counted: weakened copies of the CUDA kernels, and by what",
        "each was caught. A harmless one computes the same, for a reason that the command prints.",
        "",
    ]
    head += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    table.write_text("\n".join([*head, *(rows[each] for each in CASES if each in rows)]) + "\n", encoding="utf-8")


def main() -> int:
    """The command line; 1 if a copy goes unnoticed."""
    parser = argparse.ArgumentParser(description="weakened copies of the CUDA kernels, and what notices them")
    parser.add_argument("templates", nargs="*", metavar="template", help="all by default")
    parser.add_argument("--table", type=Path, help="write how many copies of each template were caught by what")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for name in options.templates or CASES:
        count = examined(name)
        total += count
        if options.table is not None:
            written(options.table, name, count)
    print(f"{total['copies']} weakened copies, {total['harmless']} harmless, {total['unnoticed']} unnoticed")
    return int(total["unnoticed"] > 0)


if __name__ == "__main__":
    sys.exit(main())

# Notes
#
# * All templates together are some three thousand copies, half a second each on an idle machine. Convolutions take longest.
# * `Case.edges` holds the sizes at which every condition and stride matters: sums of four tiles of which the last is not whole, sums of
#   one short tile, sums of nothing, results of two tiles in each direction, with aligned rows and without.
# * A copy that goes unnoticed was so far one of three things: sizes at which the line does not run or does not matter; a condition, a
#   loop or a barrier that nothing needs, which the generator should not write; a change that computes the same (`HARMLESS`).
