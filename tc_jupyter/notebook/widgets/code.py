# ruff: noqa: E501  (an element of a picture is one line)
"""The def beside what is generated from it, line by line: loops, CUDA, LLVM IR, assembly, PTX, machine code, `%%sac` rewrites.

Worked example: in `Code(f)` the first line of `for i ...` in the loops and the statement of the def carry the same number; resting
the pointer on one, or moving the focus to it, outlines the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from typing import Any

from tc_jupyter.diagnostics import CompileError, shown_line
from tc_jupyter.function import SOURCE_KINDS, Function, OpenRanks
from tc_jupyter.ide.made_lines import Lines, lines_of, lines_of_locations, with_assignments
from tc_jupyter.runtime import cpu, cuda, jit
from tc_jupyter.runtime.nvrtc import BackendError
from tc_jupyter.schedule import required_sizes
from tc_jupyter.schedule.visits import TooManyPoints

from .code_lines import located, without_debug
from .execution import execution, execution_html, points_of
from .picture import BAD, LISTING, MUTED, Content, Control, Picture, code, folded, one_line, table, words
from .sizes import SizeNames, example_sizes, read_sizes, size_names

_TITLES = {
    "loops": "loops", "passes": "passes", "c": "C99", "numba": "Python for Numba", "cuda": "CUDA C++", "ptx": "PTX", "sass": "machine code (SASS)", "llvm": "LLVM IR", "asm": "assembly",
    "rewrites": "rewrites of SaC",
}  # fmt: skip
_SAVED = 24_000
_SHOWN = 200_000
_MOST_MAPPED = 40_000
"""Points of a stage whose blocks and threads are drawn."""
_HUES = (205, 30, 130, 280, 60, 340, 170, 0)


class Code(Picture):
    """One form of generated text at a time."""

    name = "code"
    title = "generated code"

    def __init__(self, function: Function, kind: str = "loops", **sizes: int) -> None:
        """`sizes`: where blocks and threads are drawn. Raise `ValueError` for a kind that there is not."""
        super().__init__(function)
        if kind not in SOURCE_KINDS:
            raise ValueError(f"source kind {kind!r}: expected one of {', '.join(map(repr, SOURCE_KINDS))}")
        self.kind = kind
        self.wrong = ""
        self._made: dict[str, str | None] = {}
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = {}
        with suppress(OpenRanks):
            self.known = size_names(function.analysis)
            self.sizes = _mapped_sizes(self.known, sizes)

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """`kind`: the form to show; sizes of the picture of blocks and threads."""
        del dragging
        self.wrong = ""
        if self.known is not None:
            self.sizes, self.wrong = read_sizes(self.known, self.sizes, values)
        if values.get("kind") in SOURCE_KINDS:
            self.kind = str(values["kind"])

    def text(self) -> str | None:
        """The generated text; `None` with `problem` set where it cannot be made here."""
        if self.kind not in self._made:
            self.problem = ""
            try:
                self._made[self.kind] = self.function.source(self.kind)
            except (OpenRanks, ValueError, RuntimeError, CompileError, BackendError) as problem:
                self.problem = one_line(problem)
                return None
        return self._made[self.kind]

    def content(self, live: bool = False) -> Content:
        """Def, generated text, resources of CUDA kernels."""
        made = self.text()
        kinds = tuple(
            (kind, _TITLES[kind])
            for kind in SOURCE_KINDS
            if kind != "rewrites" or self.function.options.language == "sac"
        )
        controls = (Control("kind", "choice", "show", self.kind, kinds),)
        if made is None:
            said = f"{_TITLES[self.kind]} cannot be shown here: {self.problem}"
            return Content(words(said, "✗", BAD), controls, text=said)
        limit = _SHOWN if live else _SAVED
        shown = made if len(made) <= limit else made[:limit].rpartition("\n")[0]
        lines = self.lines(shown)
        source = self.function.source_text.text
        left = _listing(source.split("\n"), range(len(source.split("\n"))), "source", set(_numbers(lines)), live)
        right = _listing(shown.split("\n"), lines, "made", set(_numbers(lines)), live)
        copy = '<button type="button" data-copy="made">copy</button>' if live else ""
        style = "display:flex;flex-wrap:wrap;gap:8px 24px;align-items:flex-start"
        body = (
            f'<div style="{style}"><div><b>the cell</b>{left}</div><div style="min-width:0;max-width:100%">'
            f"<b>{escape(_TITLES[self.kind])}</b> {copy}{right}</div></div>"
        )
        if shown is not made:
            body += words(f"{len(made) - len(shown):,} more characters: `f.source({self.kind!r})` gives all")
        if self.kind in ("cuda", "ptx", "sass"):
            body += self._resources() + self._mapping()
            controls += () if self.known is None else self.known.controls(self.sizes)
        return Content(body, controls, {"text": made}, text=made[:4000])

    def lines(self, made: str) -> Lines:
        """Per line of generated text the line of the cell that it computes, where that is known."""
        try:
            statements = self.function.program.statements
        except OpenRanks:
            statements = ()
        source = self.function.source_text
        quoted = {shown_line(s.text): source.position(s.span.start)[0] for s in statements if s.span.end}
        if self.kind in ("ptx", "sass"):
            return lines_of_locations(made, source.name)
        if self.kind in ("llvm", "asm"):
            quoted = with_assignments(quoted, self.function.source("loops"))
        if self.kind != "asm":
            return lines_of(made, quoted)
        found = self._assembled(quoted)
        count = made.count("\n") + 1
        return found[:count] if found is not None and len(found) >= count else [None] * count

    def _assembled(self, quoted: Mapping[str, int]) -> Lines | None:
        """Lines of the assembly text, by way of line numbers in the module; `None` where that does not work."""
        name = self.function.source_text.name
        found: Lines = []
        try:
            made = self.function.definition().build(cpu.cpu_target())
            options = cpu.options_of(made.target)
            for n, source in enumerate(made.shown()):
                twin = jit.assembly(located(source.text, lines_of(source.text, quoted), name), options)
                lines = without_debug(twin, jit.assembly(source.text, options), name)
                if lines is None:
                    return None
                found += ([None] if n else []) + lines
        except (RuntimeError, ValueError):  # LLVM does not take the module with line numbers
            return None
        return found

    def _mapping(self) -> str:
        """Which block and thread runs which point, stage by stage, at the sizes of the controls."""
        if self.known is None:
            return ""
        parts = [words(self.wrong, "✗", BAD)] if self.wrong else []
        try:
            made = self.function.definition().build(cuda.cuda_target())
            needed = required_sizes(made.schedule.graph)
            bounds = made.schedule.bounds(**{name: self.sizes[name] for name in needed if name in self.sizes})
            for stage in bounds.symbolic.graph.stages:
                if points_of(bounds, stage.name) > _MOST_MAPPED:
                    parts.append(
                        words(f"`{stage.name}` has too many points at these sizes to draw its blocks and threads")
                    )
                    continue
                found = execution(bounds, stage.name)
                if found.mapped:
                    parts.append(f"<div><b>{code(stage.name)}</b></div>{execution_html(found, 0)}")
        except (CompileError, TooManyPoints, BackendError, KeyError, ValueError, RuntimeError) as problem:
            parts.append(words(f"blocks and threads are not drawn: {one_line(problem)}"))
        at = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        return folded(f"blocks and threads on the iteration space at {at}", "".join(parts), True)

    def _resources(self) -> str:
        try:
            rows = [
                [code(r.name), str(r.registers), str(r.shared_bytes), str(r.spill_bytes), f"{r.occupancy:.0%}"]
                for r in self.function.resources()
            ]
        except (ValueError, RuntimeError, CompileError, BackendError, KeyError) as problem:
            return f'<div style="{MUTED}">resources are not known: {escape(one_line(problem))}</div>'
        head = ["kernel", "registers", "shared bytes", "spilled bytes", "occupancy"]
        return folded("resources", table(head, rows, "resources of the kernels"), True)


def _mapped_sizes(known: SizeNames, given: Mapping[str, int]) -> dict[str, int]:
    """Sizes that fill more than one block of usual tiles and can still be drawn: large for results, small for sums."""
    shaped = {name for name in known.names if _lengthens(known, name)}
    for large in (96, 64, 32, 16):
        sizes = {name: given.get(name, large if name in shaped else 3) for name in known.names}
        if known.problem(sizes) is None and math.prod(sizes.values()) <= 4 * _MOST_MAPPED:
            return sizes
    return example_sizes(known, given)


def _lengthens(known: SizeNames, name: str) -> bool:
    """Whether a result is longer where a size is larger."""
    base = {each: 8 for each in known.names}
    try:
        before, after = known.all_numbers(base), known.all_numbers({**base, name: 9})
        ranges = [r for found in known.found.ranges.indices.values() for r in found if r.kind == "output"]
        ends = [(r.lower, r.upper) for r in ranges if r.lower is not None and r.upper is not None]
        return any((high - low).evaluate(after) > (high - low).evaluate(before) for low, high in ends)
    except (KeyError, ValueError, ArithmeticError):
        return False


def _numbers(lines: Lines) -> list[int]:
    return [line for line in lines if line is not None]


def _listing(texts: list[str], lines: Any, side: str, linked: set[int], live: bool) -> str:
    """Lines with the number of the cell's line they belong to, and a stripe in its colour."""
    parts: list[str] = []
    for text, line in zip(texts, lines, strict=True):
        if line is None or line not in linked:
            parts.append(escape(text))
            continue
        hue = _HUES[sorted(linked).index(line) % len(_HUES)]
        focus = ' tabindex="0"' if live else ""
        parts.append(
            f'<span data-line="{line}"{focus} style="margin-left:calc(-6ch - 4px);border-left:4px solid hsl({hue},70%,50%)">'
            f'<span style="{MUTED}">{line + 1:5} </span>{escape(text)}</span>'
        )
    style = LISTING + ";padding-left:calc(6ch + 4px)"  # room for numbers and stripes, to the left of every line
    return f'<pre data-listing="{side}" style="{style};margin:4px 0;overflow:auto;max-height:32em;line-height:1.35">{chr(10).join(parts)}</pre>'
