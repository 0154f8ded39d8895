"""The words that the editor completes and colours without a kernel are those of the Python tables."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tc_jupyter.program import FUNCTIONS, TC_FUNCTIONS
from tc_jupyter.syntax import KEYWORDS, SCALAR_TYPES

WORDS = Path(__file__).resolve().parents[2] / "labextension" / "test" / "build" / "test" / "words.js"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not WORDS.exists(), reason="no node, or the tests of the front end are not compiled (`jlpm test`)"
)


def editor() -> dict[str, dict[str, list[str]]]:
    return json.loads(
        subprocess.run([str(NODE), str(WORDS)], capture_output=True, text=True, check=True, timeout=600).stdout
    )


def test_words_of_tc() -> None:
    words = editor()["tc"]
    assert {w for kind in ("keywords", "constants", "types", "reductions") for w in words[kind]} == set(KEYWORDS)
    assert set(words["types"]) == SCALAR_TYPES
    assert set(words["functions"]) | set(words["reductions"]) == set(TC_FUNCTIONS) | set(words["reductions"])


def test_words_of_sac_include_the_mathematical_functions() -> None:
    words = editor()["sac"]
    assert set(FUNCTIONS) <= {*words["functions"], *words["reductions"]}
    assert "byte" not in words["types"]
