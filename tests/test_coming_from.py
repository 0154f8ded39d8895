"""The page `coming_from.md`: every line of NumPy, einsum and PyTorch computes what its def computes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import tc_jupyter as tc
from tests.literate import DOCS, Case, read_cases

PAGE = DOCS / "coming_from.md"
CASES = read_cases(PAGE)
SIZES = {
    "N": 7,
    "M": 5,
    "D": 6,
    "K": 4,
    "B": 2,
    "C": 3,
    "O": 2,
    "H": 8,
    "W": 6,
    "KH": 3,
    "KW": 2,
    "V": 9,
    "T": 5,
    "E": 11,
}


@dataclass(frozen=True)
class Peer:
    """One cell of a table: code of a library, one expression per result of the defs above it."""

    case: Case
    library: str
    expressions: tuple[str, ...]


def peers() -> list[Peer]:
    """The rows of the table that follows each program."""
    text = PAGE.read_text(encoding="utf-8")
    found = []
    for case in CASES:
        table = text.split(case.program, 1)[1].split("\n### ", 1)[0]
        for library, cell in re.findall(r"^\| (NumPy|einsum|PyTorch) \| (.*) \|$", table, re.MULTILINE):
            found.append(Peer(case, library, tuple(re.findall(r"`([^`]+)`", cell))))
    return found


def parameters(program: str) -> dict[str, list[tuple[str, tuple[str, ...], str]]]:
    """Type, sizes and name of each parameter, by def."""
    heads = re.findall(r"def (\w+)\((.*?)\) ->", program)
    return {
        name: [
            (kind, tuple(sizes.split(", ")), called)
            for kind, sizes, called in re.findall(r"(\w+)\((.*?)\) (\w+)", head)
        ]
        for name, head in heads
    }


def drawn(program: str) -> dict[str, np.ndarray]:
    """A random array per parameter. Those of `int32` are row numbers, all different but where rows are added."""
    rng = np.random.default_rng(1)
    arrays: dict[str, np.ndarray] = {}
    for kind, sizes, name in (each for defined in parameters(program).values() for each in defined):
        shape = tuple(SIZES[size] for size in sizes)
        if kind == "float":
            arrays[name] = rng.standard_normal(shape, np.float32)
        elif kind == "uint8":
            arrays[name] = rng.integers(0, 256, shape, np.uint8)
        else:
            arrays[name] = rng.permutation(shape[0]).astype(np.int32) % (99 if "unique" in program else 4)
    return arrays


def added(into: np.ndarray, rows: np.ndarray, what: np.ndarray) -> np.ndarray:
    """`np.add.at` as an expression."""
    np.add.at(into, rows, what)
    return into


def names(library: str, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """What the expressions of a library may use."""
    if library == "PyTorch":
        torch = pytest.importorskip("torch")
        return {"torch": torch, **{name: torch.from_numpy(array) for name, array in arrays.items()}}
    scipy = pytest.importorskip("scipy")
    pytest.importorskip("scipy.special")
    windows = np.lib.stride_tricks.sliding_window_view
    return {"np": np, "scipy": scipy, "windows": windows, "added": added, **arrays}


def results(program: str, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """All results of all defs of a program, in the order of the text."""
    module = tc.compile(program, target="cpu", allow=("TC321",))
    found = []
    for name, wanted in parameters(program).items():
        answer = module[name](**{called: arrays[called] for _, _, called in wanted})
        found += answer if isinstance(answer, tuple) else [answer]
    return found


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: f"{peer.case.title}, {peer.library}")
def test_a_line_of_a_library(peer):
    arrays = drawn(peer.case.program)
    found = results(peer.case.program, arrays)
    known = names(peer.library, arrays)
    assert 0 < len(peer.expressions) <= len(found)
    for expression, result in zip(peer.expressions, found, strict=False):
        np.testing.assert_allclose(result, np.asarray(eval(expression, known)), rtol=2e-4, atol=1e-5)


def test_every_program_has_a_line_of_a_library():
    assert {peer.case.title for peer in peers()} == {case.title for case in CASES}
    assert len(CASES) == 26
    assert "Twenty-six things" in PAGE.read_text(encoding="utf-8")
