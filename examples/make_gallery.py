"""Draw the pictures of the gallery: each program of `tc_jupyter/docs/gallery.md` is run, and what it calls `picture` is written.

python examples/make_gallery.py                   # writes tc_jupyter/docs/gallery/*.png
"""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import tc_jupyter as tc
from tc_jupyter.notebook.widgets.colours import palette

PAGE = Path(__file__).resolve().parents[1] / "tc_jupyter" / "docs" / "gallery.md"
SHADES = 96
LEAST = 256
"""Pixels of the width at least: a smaller picture is drawn with larger points."""


def sections(page: str) -> list[tuple[str, str, str]]:
    """Of each part of the page: the file of its picture, its program, its Python."""
    found: list[tuple[str, str, str]] = []
    for part in page.split("\n## ")[1:]:
        (name,) = re.findall(r"!\[[^\]]+\]\(gallery/(\w+\.png)\)", part)
        (program,) = re.findall(r"^```tc\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
        (python,) = re.findall(r"^```python\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
        found.append((name, program, python))
    return found


def photo() -> np.ndarray[Any, Any]:
    """A drawing of a hill, a house and a sun, in shades from 0 to 1."""
    y, x = np.meshgrid(np.arange(128.0), np.arange(128.0), indexing="ij")
    shown = 0.55 + 0.25 * y / 128
    shown[np.hypot(y - 30, x - 95) < 16] = 1.0
    shown[y > 85 + 12 * np.sin(x / 20)] = 0.35
    house = (y > 62) & (y < 100) & (x > 30) & (x < 72)
    shown[house] = 0.15
    shown[(y > 40) & (y <= 62) & (np.abs(x - 51) < (y - 38))] = 0.05
    shown[(y > 72) & (y < 84) & (np.abs(x - 41) < 6) | (y > 76) & (y < 100) & (np.abs(x - 60) < 5)] = 0.9
    return shown.astype(np.float32)


def drawn(program: str, python: str) -> np.ndarray[Any, Any]:
    """What a part of the page calls `picture`."""
    names: dict[str, Any] = {"np": np, "photo": photo(), "random": np.random.default_rng(7), **tc.compile(program)}
    exec(compile(python, "gallery.md", "exec"), names)
    return np.asarray(names["picture"])


def png(values: np.ndarray[Any, Any]) -> bytes:
    """A picture whose points have one of the colours of views, from blue for the smallest to yellow for the largest value."""
    low, high = float(values.min()), float(values.max())
    shades = ((values - low) / max(high - low, 1e-30) * (SHADES - 1)).round().astype(np.uint8)
    scale = -(-LEAST // shades.shape[1])
    rows = shades.repeat(scale, 0).repeat(scale, 1)
    colours = bytes.fromhex("".join(each[1:] for each in palette(1, SHADES)))
    lines = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 3, 0, 0, 0)
    parts = (
        chunk(b"IHDR", head),
        chunk(b"PLTE", colours),
        chunk(b"IDAT", zlib.compress(lines, 9)),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def main() -> None:
    folder = PAGE.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, program, python in sections(PAGE.read_text(encoding="utf-8")):
        made = png(drawn(program, python))
        folder.joinpath(name).write_bytes(made)
        print(f"{name}: {len(made) // 1000} kB")


if __name__ == "__main__":
    main()
