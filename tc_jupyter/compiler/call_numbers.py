"""The numbers of a call, from what `ranges` knows of a def (interim: sizes and shapes only)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tc_jupyter.runtime.kernel import Numbers

from .analysis import FunctionAnalysis


class _Numbers:
    def __init__(self, found: FunctionAnalysis) -> None:
        self.r = found.ranges

    def bind(self, sizes: Mapping[str, int], check_sizes: bool) -> Any:
        v = {n: e.evaluate(sizes) for n, e in self.r.sizes.items()}
        sh = {t: tuple(e.evaluate(sizes) for e in b.shape) for t, b in self.r.boxes.items()}
        og = {t: tuple(e.evaluate(sizes) for e in b.origin) for t, b in self.r.boxes.items()}
        return Numbers({**sizes, **v}, sh, og)

    def scan(self, *a: Any) -> None: ...
    def scanned(self, n: str) -> tuple[str, ...]:
        return ()

    def point(self, k: Any, f: Any) -> Any: ...


def call_numbers(found: FunctionAnalysis) -> Any:
    return _Numbers(found)


def point_checks(found: FunctionAnalysis) -> tuple[Any, ...]:
    return ()
