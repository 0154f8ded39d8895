"""Completion by the kernel: in the cell, on the magic line, and of the subcommands of `%tc`.

Works wherever IPython's completer does: JupyterLab, Notebook, the terminal, consoles of editors.

Worked example: in a cell `%%tc` with `def mv(float(R,C) Mat`, completing `Ma` offers `Mat`; `%%tc --st` offers `--strict`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tc_jupyter.diagnostics.codes import ALL
from tc_jupyter.function import SOURCE_KINDS, TARGETS, Function
from tc_jupyter.program import FUNCTIONS
from tc_jupyter.syntax import KEYWORDS, SCALAR_TYPES
from tc_jupyter.syntax.sac_parser import RESERVED

from .options import OPTIONS, SUBCOMMANDS

IDENTIFIER = "tc_jupyter"

_CELL_LINE = re.compile(r"\s*%%(tc|sac)(?:\s|$)")
_OTHER_MAGIC = re.compile(r"\s*(%%(time|timeit|capture|prun)\b.*)?$")
_LINE_MAGIC = re.compile(r"\s*%tc\s+(.*)$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_FRAGMENT = re.compile(r"\w*\Z")
_OPTION_CHARACTERS = "-_" + string.ascii_letters + string.digits
_SAC_TYPES = frozenset({"auto", *SCALAR_TYPES}) - {"byte", "half", "complex64", "complex128"}

Offers = Iterable[tuple[str, str]]
"""Words with their types (`keyword`, `function`, `variable`, ...)."""


# IPython's own annotation of the decorator names the older kind of matcher
@context_matcher(identifier=IDENTIFIER)  # pyright: ignore[reportArgumentType, reportUntypedFunctionDecorator]
def matcher(context: CompletionContext) -> SimpleMatcherResult:
    """Offer what may stand at the cursor; in a cell of ours nothing of Python is offered beside it."""
    lines = context.full_text.split("\n")
    before = context.text_until_cursor
    line = _LINE_MAGIC.match(before)
    if line is not None:
        return _result(_line_offers(line.group(1)), before)
    number = magic_line(lines)
    if number is None or context.cursor_line < number:
        return SimpleMatcherResult(completions=[], suppress=False)
    found = _CELL_LINE.match(lines[number])
    assert found is not None
    if context.cursor_line == number:
        return _result(_option_offers(before), before) if found.end() <= len(before) else _nothing()
    # the word being typed is no offer, unless it stands in another place as well
    here = context.cursor_line
    typed = len(before) - len(_fragment(before))
    lines[here] = before[:typed] + " " + lines[here][len(before) :]
    body = "\n".join(lines[number + 1 :])
    return _result(_cell_offers(found.group(1), body, _namespace()), before, within=True)


def magic_line(lines: list[str]) -> int | None:
    """The number of the line `%%tc` or `%%sac`; blank lines and `%%time`, `%%timeit`, `%%capture`, `%%prun` may stand above it."""
    for number, line in enumerate(lines):
        if _CELL_LINE.match(line):
            return number
        if not _OTHER_MAGIC.match(line):
            return None
    return None


def _nothing() -> SimpleMatcherResult:
    return SimpleMatcherResult(completions=[], suppress=False)


def _result(offers: Offers, before: str, within: bool = False) -> SimpleMatcherResult:
    fragment = _fragment(before) if within else before[len(before.rstrip(_OPTION_CHARACTERS)) :]
    chosen = [SimpleCompletion(text=text, type=kind) for text, kind in offers if text.startswith(fragment)]
    return SimpleMatcherResult(completions=chosen, matched_fragment=fragment, suppress=True)


def _fragment(before: str) -> str:
    """The part of a word that ends at the cursor."""
    found = _FRAGMENT.search(before)
    return found.group() if found else ""


def _namespace() -> Mapping[str, Any]:
    from IPython.core.getipython import get_ipython  # noqa: PLC0415  (a shell exists only in a session)

    shell = get_ipython()
    return {} if shell is None else shell.user_ns


# --- what may stand where --------------------------------------------------------------------------------------------------------


def _option_offers(before: str) -> Iterator[tuple[str, str]]:
    words = before.split()
    last = words[-1] if before.endswith(" ") else words[-2] if len(words) > 1 else ""
    if last == "--target":
        yield from ((target, "value") for target in TARGETS if target)
    elif last == "--allow":
        yield from ((code, "value") for code in ALL)
    else:
        yield from ((option, "option") for option in OPTIONS)


def _line_offers(typed: str) -> Iterator[tuple[str, str]]:
    words = typed.split()
    done = words if typed.endswith(" ") or not words else words[:-1]
    functions = [(name, "function") for name, value in _namespace().items() if isinstance(value, Function)]
    match done:
        case []:
            yield from ((name, "keyword") for name in SUBCOMMANDS)
        case ["inspect" | "source" | "bench"]:
            yield from functions
        case ["source", _]:
            yield from ((kind, "value") for kind in SOURCE_KINDS)
        case ["cache"]:
            yield "--clear", "option"
        case ["explain"]:
            yield from ((code, "value") for code in ALL)
        case _:
            return


def _cell_offers(language: str, body: str, namespace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The words of the cell first, then functions of the notebook, mathematical functions, types and keywords."""
    types = SCALAR_TYPES if language == "tc" else _SAC_TYPES
    keywords = set(KEYWORDS) - SCALAR_TYPES if language == "tc" else set(RESERVED) - _SAC_TYPES
    offers = [(word, "variable") for word in _words(body)]
    offers += [(name, "function") for name, value in namespace.items() if _offered(name, value)]
    offers += [(name, "function") for name in FUNCTIONS]
    offers += [(name, "class") for name in sorted(types)]
    offers += [(name, "keyword") for name in sorted(keywords)]
    seen: set[str] = set()
    for text, kind in offers:
        if text not in seen:
            seen.add(text)
            yield text, _kind_of(text, kind, types, keywords)


def _offered(name: str, value: Any) -> bool:
    return isinstance(value, Function) and not name.startswith("_")


def _kind_of(text: str, kind: str, types: Iterable[str], keywords: set[str]) -> str:
    """A word of the cell that is a keyword, a type or a function keeps that kind."""
    if text in keywords and text not in FUNCTIONS:
        return "keyword"
    if text in types:
        return "class"
    return "function" if text in FUNCTIONS else kind


def _words(body: str) -> Iterator[str]:
    """Words of the code; comments and the word being typed are left to the caller's prefix test."""
    for line in body.split("\n"):
        yield from _WORD.findall(line.partition("#")[0])
