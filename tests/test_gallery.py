"""The gallery: every program runs as it stands on the page, and every picture is there and small."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.literate import DOCS

SCRIPT = DOCS.parents[1] / "examples" / "make_gallery.py"


def script():
    spec = importlib.util.spec_from_file_location("make_gallery", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_picture_is_there_and_small():
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    names = [name for name, _, _ in script().sections(page)]
    assert len(names) == len(set(names)) >= 12
    assert {path.name for path in Path(DOCS / "gallery").iterdir()} == set(names)
    assert all((DOCS / "gallery" / name).stat().st_size < 15_000 for name in names)


@pytest.mark.slow
def test_every_program_draws_a_picture():
    made = script()
    for name, program, python in made.sections((DOCS / "gallery.md").read_text(encoding="utf-8")):
        values = made.drawn(program, python)
        assert values.ndim == 2, name
        assert np.isfinite(values).all(), name
        assert values.min() < values.max(), name
        assert made.png(values).startswith(b"\x89PNG"), name
