# ruff: noqa: E501  (an element of a picture is one line)
"""The def beside what is generated from it, line by line: loops, CUDA, LLVM IR, assembly, PTX, machine code, `%%sac` rewrites.

Worked example: in `Code(f)` the first line of `for i ...` in the loops and the statement of the def carry the same number; resting
the pointer on one, or moving the focus to it, outlines the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from tc_jupyter.diagnostics import CompileError
from tc_jupyter.function import SOURCE_KINDS, Function, OpenRanks
from tc_jupyter.runtime.nvrtc import BackendError

from .picture import BAD, CODE, MUTED, Content, Control, Picture, code, folded, one_line, table, words

_TITLES = {
    "loops": "loops", "cuda": "CUDA C++", "ptx": "PTX", "sass": "machine code (SASS)", "llvm": "LLVM IR", "asm": "assembly",
    "rewrites": "rewrites of SaC",
}  # fmt: skip
_SAVED = 24_000
_SHOWN = 200_000
_HUES = (205, 30, 130, 280, 60, 340, 170, 0)


class Code(Picture):
    """One form of generated text at a time."""

    name = "code"
    title = "generated code"

    def __init__(self, function: Function, kind: str = "loops") -> None:
        """Raise `ValueError` for a kind that there is not."""
        super().__init__(function)
        if kind not in SOURCE_KINDS:
            raise ValueError(f"source kind {kind!r}: expected one of {', '.join(map(repr, SOURCE_KINDS))}")
        self.kind = kind
        self._made: dict[str, str | None] = {}

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """`kind`: the form to show."""
        del dragging
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
            body += self._resources()
        return Content(body, controls, {"text": made}, text=made[:4000])

    def lines(self, made: str) -> list[int | None]:
        """Per line of generated text the line of the cell that it computes, where that is known."""
        try:
            statements = self.function.program.statements
        except OpenRanks:
            statements = ()
        source = self.function.source_text
        quoted = {" ".join(s.text.split()): source.position(s.span.start)[0] for s in statements if s.span.end}
        return lines_of(made, quoted, source.name)

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


_DIRECTIVE = re.compile(r'#line (\d+) "(.*)"')
_COMMENT = re.compile(r"\s*(?:#|//|;)\s?(.*)")
_KERNEL = re.compile(r'(?:kernel |extern "C"|[{}]|define )')


def lines_of(made: str, quoted: Mapping[str, int], name: str) -> list[int | None]:
    """Lines of the cell by `#line` directives, and by the comments that quote statements."""
    lines: list[int | None] = []
    open_parts: list[_Part] = []  # statements whose code is around the present line, outermost first
    for line in made.split("\n"):
        directive, comment = _DIRECTIVE.match(line), _COMMENT.match(line)
        depth = len(line) - len(line.lstrip())
        said = quoted.get(" ".join(comment.group(1).split())) if comment is not None else None
        if directive is not None:
            open_parts = [_Part(-1, int(directive.group(1)) - 1)] if directive.group(2) == name else []
            lines.append(None)
            continue
        if said is not None:
            open_parts = [*(part for part in open_parts if part.depth < depth), _Part(depth, said)]
        elif not line.strip() or _KERNEL.match(line):
            open_parts = []
        elif line.strip() not in ("}", "{"):
            # a producer inside a loop of its consumer ends with its own loop; what follows belongs to the consumer again
            while len(open_parts) > 1 and (
                depth < open_parts[-1].depth or (depth == open_parts[-1].depth and open_parts[-1].begun)
            ):
                open_parts.pop()
            if open_parts and depth == open_parts[-1].depth:
                open_parts[-1].begun = True
        lines.append(open_parts[-1].line if open_parts else None)
    return lines


@dataclass(slots=True)
class _Part:
    """The code of a statement: how far its comment is indented, its line in the cell, whether its loop has begun."""

    depth: int
    line: int
    begun: bool = False


def _numbers(lines: list[int | None]) -> list[int]:
    return [line for line in lines if line is not None]


def _listing(texts: list[str], lines: Any, side: str, linked: set[int], live: bool) -> str:
    """Lines with the number of the cell's line they belong to, and a stripe in its colour."""
    parts: list[str] = []
    for text, line in zip(texts, lines, strict=True):
        if line is None or line not in linked:
            parts.append(f'<span style="padding-left:3.6em">{escape(text) or " "}</span>')
            continue
        hue = _HUES[sorted(linked).index(line) % len(_HUES)]
        focus = ' tabindex="0"' if live else ""
        parts.append(
            f'<span data-line="{line}"{focus} style="border-left:4px solid hsl({hue},70%,50%)">'
            f'<span style="{MUTED};display:inline-block;width:3em;text-align:right;margin-right:.4em">{line + 1}</span>{escape(text)}</span>'
        )
    style = CODE.replace("pre-wrap", "pre")
    return f'<pre data-listing="{side}" style="{style};margin:4px 0;overflow:auto;max-height:32em;line-height:1.35">{chr(10).join(parts)}</pre>'
