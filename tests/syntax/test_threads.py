"""Additions at places, as other libraries write them."""

from __future__ import annotations

import pytest

import tc_jupyter as tc


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cuda.atomic.add(H, I(i), X(i))", "H(I(i)) += X(i)"),
        ("cuda.atomic.max(H, I(i), X(i))", "H(I(i)) max= X(i)"),
        ("H.at[I].add(X)", "H(I(i)) += X(i)"),
        ("H = H.at[I].add(X)", "H(I(i)) += X(i)"),
        ("H.at[I(i)].min(X(i))", "H(I(i)) min= X(i)"),
        ("H.index_add_(0, I, X)", "H(I(i)) += X(i)"),
        ("H.scatter_add_(0, I, 1)", "H(I(i)) += 1"),
        ("np.add.at(H, I, X)", "H(I(i)) += X(i)"),
        ("H.index_add_(0, I, R)", "H(I(i), j) += R(i, j)"),
        ("H.at[I].max(R)", "H(I(i), j) max= R(i, j)"),
    ],
)
def test_additions_at_places_become_statements(written, meant):
    sizes, rows = ("10, M", ", float(N, M) R") if "R" in written else ("10", "")
    text = f"def f(float(N) X, int32(N) I{rows}) -> (float({sizes}) H) {{ {written} }}"
    (error,) = [each for each in tc.analyze(text).diagnostics if each.is_error]
    fixed = text
    for edit in sorted(error.fix.edits, key=lambda edit: edit.span.start, reverse=True):
        fixed = fixed[: edit.span.start] + edit.text + fixed[edit.span.end :]
    assert fixed == text.replace(written, meant)
    assert not [each for each in tc.analyze(fixed).diagnostics if each.is_error]
