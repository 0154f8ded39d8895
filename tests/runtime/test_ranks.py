"""What is offered for an array of another number of dimensions has the shape that is said, and fits."""

import re
from itertools import product

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.runtime.ranks import rank_help

_OFFERS = re.compile(r"`(x[^`]*)`, of shape (\([^)]*\))")


def _offers(help: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(text, eval(shape)) for text, shape in _OFFERS.findall(help)]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (6,), (2, 1), (2, 3), (1, 0), (1, 3, 1), (2, 3, 4), (0, 3, 2, 2)])
def test_every_offer_has_the_shape_that_is_said_and_fits(shape):
    given = {"x": np.zeros(shape)}
    for rank in range(1, 5):
        for dims, sizes in product(product(("N", "M", 3, None), repeat=rank), ({}, {"N": 1}, {"N": 3, "M": 2})):
            if rank == len(shape):
                continue
            for text, said in _offers(rank_help(dims, sizes, shape)):
                assert eval(text, given).shape == said
                found = dict(sizes)
                for dim, extent in zip(dims, said, strict=True):
                    expected = found.setdefault(dim, extent) if isinstance(dim, str) else dim
                    assert expected in (None, extent), (dims, sizes, shape, text)


@pytest.mark.parametrize(
    ("dims", "sizes", "shape", "offered"),
    [
        (("T", "P"), {}, (100,), ["x[None]", "x[:, None]"]),
        (("T", "P"), {"P": 100}, (100,), ["x[None]"]),
        (("T", "P"), {"P": 1}, (100,), ["x[:, None]"]),
        (("T", "P"), {"P": 10}, (100,), ["x.reshape(-1, 10)"]),
        (("T", "P"), {"P": 7}, (100,), []),
        (("N", "N"), {}, (100,), []),
        (("N",), {}, (100, 1), ["x[:, 0]"]),
        (("N",), {}, (100, 3), ["x[0]", "x[:, 0]", "x.reshape(-1)"]),
        (("N",), {"N": 100}, (100, 3), ["x[:, 0]"]),
        (("B", "C", "H", "W"), {}, (3, 8, 8), ["x[None]", "x[:, None]", "x[..., None]"]),
    ],
)
def test_what_is_offered(dims, sizes, shape, offered):
    assert [text for text, _ in _offers(rank_help(dims, sizes, shape))] == offered


def test_other_arguments_choose():
    f = tc.compile("def f(float(T, P) X, float(P) w) -> (o) { o(t) +=! X(t, p) * w(p) }").f
    with pytest.raises(tc.CallError) as caught:
        f(np.ones(100, np.float32), np.ones(1, np.float32))
    assert "pass `x[:, None]`, of shape (100, 1), or" in (caught.value.diagnostic.help or "")
    assert "`P` is 1 elsewhere" in (caught.value.diagnostic.help or "")


def test_numbers_for_arrays_and_arrays_for_numbers():
    f = tc.compile("def f(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }").f
    with pytest.raises(
        tc.CallError, match=r"np\.full\(shape, x, dtype=np\.float32\)`, or declare a number, `float32 X`"
    ):
        f(3, 2)
    with pytest.raises(tc.CallError, match=r"or declare an array, `float32\(N\) a`"):
        f(np.ones(2, np.float32), np.ones(2, np.float32))


def test_arrays_of_many_dimensions_are_answered_at_once():
    """All choices of 8 of 64 dimensions would take longer than anybody waits."""
    assert rank_help(["A", "B", "C", "D", "E", "F", "G", "H"], {}, (1,) * 64).startswith(
        "pass `x.reshape(-1, 1, 1, 1, 1, 1, 1, 1)`"
    )
