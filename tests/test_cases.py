"""The language reference: every fence of every file under `tests/cases` says what holds. `--update-golden` rewrites them."""

from __future__ import annotations

import pytest

from tests.literate import CASES, actual, all_cases, read_cases, update

ALL = all_cases()


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_case(case, update_golden):
    if update_golden:
        update(case.path)
        return
    assert case.expectations, "a program without a fence that says what follows"
    for expectation in case.expectations:
        assert actual(case, expectation) == expectation.text, f"the fence `{expectation.kind}` of {case.name}"


def test_a_wrong_fence_is_found(tmp_path):
    path = tmp_path / "wrong.md"
    path.write_text(
        "# Title\n```tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) }\n```\n```ranges\nround 1   0 <= i < M\n```\n"
    )
    (case,) = read_cases(path)
    assert actual(case, case.expectations[0]) == "round 1   0 <= i < N\n" != case.expectations[0].text
    update(path)
    assert "0 <= i < N\n" in path.read_text()


def test_every_section_has_cases():
    assert {path.parent.name for path in CASES.glob("*/*.md")} >= {"tc"}
