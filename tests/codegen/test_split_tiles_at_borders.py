"""Rows and tiles away from the borders of what they read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("llvmlite")

MODES = {"else": "constant", "clamp": "edge", "wrap": "wrap", "reflect": "reflect", "symmetric": "symmetric"}
SHAPES = [(1, 1), (1, 2), (2, 3), (5, 4), (3, 17), (2, 63), (9, 64), (3, 66), (17, 131), (3, 1100), (2, 1500)]
WHERE = "where i in 0:H, j in 0:W"
PROGRAMS = {
    "stencil": f"float(H, W) X) -> (Y) {{ Y(i, j) = X[i-1, j] + 2*X[i+1, j] + 3*X[i, j-1] + 5*X[i, j+2] {WHERE} }}",
    "filter": f"float(H, W) X, float(3, 3) K) -> (Y) {{ Y(i, j) +=! X[i+u-1, j+v-1] * K(u, v) {WHERE} }}",
    "wide": f"float(H, W) X, float(A, B) K) -> (Y) {{ Y(i, j) +=! X[i+u-2, j+v-3] * K(u, v) {WHERE} }}",
    "steps": "float(H, W) X, float(3, 3) K) -> (Y) { Y(i, j) +=! X[2*i+u-1, 2*j+v-1] * K(u, v) where i in 0:(H+1)/2, j in 0:(W+1)/2 }",
    "temporary": f"float(H, W) X) -> (Y) {{ T(i, j) = X[i, j-1] + X[i, j+1] {WHERE} Y(i, j) = T[i-1, j] + T[i+1, j] {WHERE} }}",
    "maximum": f"int8(H, W) X) -> (Y) {{ Y(i, j) max=! X[i+u-1, j+v-1] {WHERE}, u in 0:3, v in 0:3 }}",
}


def text(name: str, mode: str) -> str:
    """The program, where `X[a, b]` stands for a read that may be beyond the ends."""
    parts: list[str] = []
    for part in PROGRAMS[name].split("["):
        if parts and mode == "else":
            inside, rest = part.split("]", 1)
            parts[-1] = f"{parts[-1][:-1]}({parts[-1][-1]}"
            parts.append(f"({inside}) else 0){rest}")
        elif parts:
            inside, rest = part.split("]", 1)
            parts.append(f"({', '.join(f'{mode}({each})' for each in inside.split(','))}){rest}")
        else:
            parts.append(part)
    return "def f(" + "".join(parts)


def padded(x: Any, mode: str) -> Any:
    for axis, length in enumerate(x.shape):
        alone = mode == "reflect" and length == 1
        kind: Any = "edge" if alone else MODES[mode]
        x = np.pad(x, [(4, 4) if axis == each else (0, 0) for each in range(2)], kind)
    return x


def wanted(name: str, x: Any, k: Any, mode: str) -> Any:
    (h, w), p = x.shape, padded(x, mode)

    def at(i: int, j: int) -> Any:
        return p[4 + i : 4 + i + h, 4 + j : 4 + j + w]

    match name:
        case "stencil":
            return at(-1, 0) + 2 * at(1, 0) + 3 * at(0, -1) + 5 * at(0, 2)
        case "temporary":
            t = padded(at(0, -1) + at(0, 1), mode)
            return t[3 : 3 + h, 4 : 4 + w] + t[5 : 5 + h, 4 : 4 + w]
        case "maximum":
            return np.max([at(u - 1, v - 1) for u in range(3) for v in range(3)], axis=0)
        case _:
            top, left = (2, 3) if name == "wide" else (1, 1)
            total: Any = sum(k[u, v] * at(u - top, v - left) for u in range(k.shape[0]) for v in range(k.shape[1]))
            return total[::2, ::2] if name == "steps" else total


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(11)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", MODES)
def test_values_are_those_of_padded_arrays(name: str, mode: str) -> None:
    """At sizes below, at and above those of vectors and tiles."""
    f, rng = tc.compile(text(name, mode), target="cpu").f, np.random.default_rng(1)
    for shape in SHAPES:
        x = rng.integers(-9, 10, shape).astype(np.int8 if name == "maximum" else np.float32)
        k = rng.integers(-3, 4, (5, 7) if name == "wide" else (3, 3)).astype(np.float32)
        kernel = [k] if name in ("filter", "wide", "steps") else []
        np.testing.assert_array_equal(f(x, *kernel), wanted(name, x, k, mode), err_msg=str(shape))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_a_tile_away_from_the_border_has_plain_reads(mode: str) -> None:
    """It has no copy either."""
    passes = tc.compile(text("filter", mode), target="cpu").f.source("passes")
    tile = passes.split("-- tile borders")[1].split("else\n")[0]
    assert "X[u + i - 1, Y.cache.j.inner + v + 64 * j.outer - 1] * K[u, v]" in tile
    assert "X.cache[" not in tile.split("if min")[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_a_row_is_plain_but_for_its_ends(mode: str) -> None:
    """The longest of the three parts of a row has neither tests nor remainders."""
    passes = tc.compile(text("stencil", mode), target="cpu").f.source("passes")
    lines = passes.rsplit("\n-- ", 1)[1].splitlines()
    rows = [row for loop, row in pairwise(lines) if "0:W - 3" in loop]
    assert any(all(each not in row for each in ("%", "?", "max(j", "min(j")) for row in rows)


@pytest.mark.filterwarnings("ignore")
def test_a_limit_of_rows_alone_makes_no_versions() -> None:
    """It is found once for each row."""
    passes = tc.compile(
        "def f(float(H, W) X) -> (Y) { Y(i, j) = X(clamp(i - 1), j) where i in 0:H }", target="cpu"
    ).f.source("passes")
    assert "-- tile borders" not in passes


def test_parts_of_a_row_of_known_length_keep_their_own_borders():
    """The first and the last column are loops with one variable: what is inside in one of them is not in the other."""
    text = """def f(float(200, 200) U) -> (V) {
        V(y, x) = U(max(y - 1, 0), x) + U(min(y + 1, 199), x) + U(y, max(x - 1, 0)) + U(y, min(x + 1, 199)) where y in 0:200, x in 0:200
    }"""
    u = np.arange(40000, dtype="f").reshape(200, 200) % 17
    wide = np.pad(u, 1, mode="edge")
    expected = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    np.testing.assert_array_equal(tc.compile(text, target="cpu").f(u), expected)
