"""Expressions as keys: equal ones have equal hashes, whatever happened to them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from tc_jupyter.diagnostics import Span
from tc_jupyter.program import Binary, Call, Cast, Const, DType, IndexVar, Read, Select, Size, Unary, int64, rewrite

i, F32 = IndexVar("i"), DType.FLOAT32
A = Read("A", (i, Binary("+", Size("N"), int64(3), DType.INT64)), F32)
NODES = [
    Const(2.0, F32),
    A,
    Unary("-", A, F32),
    Binary("*", A, A, F32),
    Select(Binary("<", i, int64(4), DType.BOOL), A, Const(0.0, F32), F32),
    Call("exp", (A,), F32),
    Cast(A, DType.FLOAT64),
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_equal_expressions_have_equal_hashes(node):
    number = hash(node)
    copies = (
        pickle.loads(pickle.dumps(node)),
        copy.deepcopy(node),
        replace(node, span=Span(3, 5)),
        rewrite(node, lambda _: None),
    )
    assert all(each == node and hash(each) == number for each in copies)
    other = replace(node, dtype=DType.INT32)
    assert other != node
    assert hash(other) != number
