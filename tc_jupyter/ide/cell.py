"""A text with what is known of it, made once and kept for the next question about the same text.

An editor asks several questions about each state of a cell (messages, hover, completion); all of them read one `Cell`.

Worked example: `cell_of("def f(float(N) X) -> (Y) { Y(i) = X(i) }", "tc").names.at(4).kind` is `"def"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

from tc_jupyter.compiler import Analysis, FunctionAnalysis, analyze, callable_values, reducers_in
from tc_jupyter.compiler.analysis_json import span_json
from tc_jupyter.diagnostics import SourceText, Span
from tc_jupyter.syntax import parse_sac, parse_tc, sac_tree, tree

from .names import Names, sac_names, tc_names
from .pieces import focus

Json: TypeAlias = dict[str, Any]

KEPT = 200_000
"""Longest text, in code points, that is kept for the next question."""
WHOLE = 2_000
"""Above this many code points only the defs that a question is about are read."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Functions of other cells, compared by identity: comparing what they hold would cost more than analysing the text again."""

    functions: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @staticmethod
    def of(text: str, known: Mapping[str, Any] | None) -> Known:
        """Those that a text mentions."""
        return Known({name: value for name, value in (known or {}).items() if name in text})

    @property
    def _key(self) -> tuple[tuple[str, int], ...]:
        return tuple((name, id(value)) for name, value in self.functions.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True)
class Cell:
    """A text and, made when first asked for, its tree, its names and its analysis."""

    text: str
    language: str
    known: Known = field(default_factory=Known)

    @cached_property
    def source(self) -> SourceText:
        """The text with its lines."""
        return SourceText(self.text)

    @cached_property
    def parsed(self) -> tree.Parsed | sac_tree.SacParsed:
        """The tree of this language."""
        if self.language == "sac":
            return parse_sac(self.source)
        return parse_tc(self.source, reducers_in(self.text, callable_values(self.known.functions)))

    @cached_property
    def names(self) -> Names:
        """Every name."""
        parsed = self.parsed
        if isinstance(parsed, tree.Parsed):
            return tc_names(parsed, self.source, tuple(self.known.functions))
        return sac_names(parsed, self.source, tuple(self.known.functions))

    @property
    def analysis(self) -> Analysis:
        """Ranges, shapes and messages."""
        return analysed(self.text, self.language, False, (), self.known)

    @property
    def items(self) -> tuple[tree.Def, ...] | tuple[sac_tree.SacFunction, ...]:
        """The defs, in text order."""
        parsed = self.parsed
        return parsed.unit.defs if isinstance(parsed, tree.Parsed) else parsed.unit.functions

    def found(self, owner: int) -> FunctionAnalysis | None:
        """What is known of a def, by its number."""
        return self.analysis.functions.get(self.items[owner].name.name)

    def span(self, span: Span) -> Json:
        """A span as positions."""
        return span_json(span, self.source)

    def offset(self, position: Mapping[str, int]) -> int:
        """The offset of a position; one beyond a line or the text is moved to its end."""
        source = self.source
        line = position["line"]
        if line < 0:
            return 0
        if line >= len(source.line_starts):
            return len(self.text)
        return min(source.line_starts[line] + max(0, position["character"]), self.end_of_line(line))

    def end_of_line(self, line: int) -> int:
        """The offset of the line end."""
        starts = self.source.line_starts
        return starts[line + 1] - 1 if line + 1 < len(starts) else len(self.text)


def cell_of(
    text: str, language: str = "tc", known: Mapping[str, Any] | None = None, position: Mapping[str, int] | None = None
) -> Cell:
    """The cell of a text.

    Args:
        known: functions of other cells, by name; those that the text does not mention are left out.
        position: what the question is about; in a long text, defs that have nothing to do with it are left out.
    """
    if position is not None and len(text) > WHOLE:
        text = focus(text, language, position["line"])
    mentioned = Known.of(text, known)
    return _kept(text, language, mentioned) if len(text) <= KEPT else Cell(text, language, mentioned)


@lru_cache(maxsize=512)
def _kept(text: str, language: str, known: Known) -> Cell:
    return Cell(text, language, known)


def analysed(text: str, language: str, strict: bool, allow: tuple[str, ...], known: Known) -> Analysis:
    """The analysis of a text, kept for the next question."""
    make = _analyse if len(text) <= KEPT else _analyse.__wrapped__
    return make(text, language, strict, allow, known)


@lru_cache(maxsize=512)  # one for each def of a long file (`pieces`)
def _analyse(text: str, language: str, strict: bool, allow: tuple[str, ...], known: Known) -> Analysis:
    return analyze(text, language=language, strict=strict, allow=allow, known=known.functions)
