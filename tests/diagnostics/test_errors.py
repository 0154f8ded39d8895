"""The two exceptions that users meet."""

from __future__ import annotations

import pickle

import pytest

import tc_jupyter as tc


def test_a_compile_error_travels_between_processes():
    with pytest.raises(tc.CompileError) as caught:
        tc.compile("def f(float(N, K) A) -> (B) { B(i) = A(i, k) }")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is tc.CompileError
    assert str(again) == str(caught.value)
    assert again.diagnostics == caught.value.diagnostics
    assert again.source == caught.value.source


def test_a_call_error_travels_between_processes():
    function = tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) }").f
    with pytest.raises(tc.CallError) as caught:
        function(3)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is tc.CallError
    assert isinstance(again, ValueError)
    assert (str(again), again.diagnostic) == (str(caught.value), caught.value.diagnostic)
