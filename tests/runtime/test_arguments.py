"""What a call may hand over, and what is said when it does not fit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tc_jupyter.diagnostics import NO_SPAN, CallError, SourceText
from tc_jupyter.program import Const, DType, Program, Size, Tensor
from tc_jupyter.runtime.arguments import (
    Parameter,
    one_device,
    parameters_of,
    positional,
    read_array,
    read_outputs,
    read_scalar,
    signature_text,
    unify,
)
from tc_jupyter.runtime.arrays import view_of

F32 = DType.FLOAT32
WHO = ("", "matmul", SourceText("def matmul(float(M,K) A, float(K,N) B) -> (C) {}"), NO_SPAN)


def tensor(name, *dims, dtype=F32, kind="input"):
    return Tensor(
        name, dtype, len(dims), kind, tuple(Size(d) if isinstance(d, str) else Const(d, DType.INT64) for d in dims)
    )


PROGRAM = Program(
    "matmul",
    "tc",
    ("M", "K", "N"),
    ("A", "B"),
    ("C",),
    (tensor("A", "M", "K"), tensor("B", "K", "N")),
    (),
    source=SourceText("def matmul(float(M,K) A, float(K,N) B) -> (C) {}"),
)
A, B = parameters_of(PROGRAM)


def refused(code: str, *words: str):
    return pytest.raises(CallError, match=r"(?s)" + code + "".join(f".*{word}" for word in words))


def test_the_signature_is_one_line():
    assert signature_text(PROGRAM) == "matmul(float32(M, K) A, float32(K, N) B) -> (C)"


def test_arguments_by_position_and_by_name():
    assert positional(("A", "B"), (1, 2), {}, *WHO) == (1, 2)
    assert positional(("A", "B"), (1,), {"B": 2}, *WHO) == (1, 2)
    assert positional(("A", "B"), (), {"B": 2, "A": 1}, *WHO) == (1, 2)


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        ((1, 2, 3), {}, "takes 2 arguments, 3 came"),
        ((1,), {}, "`B` is missing"),
        ((), {}, "`A`, `B` are missing"),
        ((1, 2), {"A": 3}, "`A` twice"),
        ((1,), {"b": 3}, "no parameter `b`; did you mean `B`"),
        ((1,), {"weights": 3}, "no parameter `weights`"),
    ],
)
def test_wrong_count_and_names(args, named, words):
    with refused("TC606", words.replace("?", "."), "matmul.float32"):
        positional(("A", "B"), args, named, signature_text(PROGRAM), *WHO[1:])


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        (np.zeros((2, 2)), "TC607", "`A` has elements of type float32; an array of float64 came.*astype"),
        (np.zeros((2, 2), np.complex64), "TC607", "complex64 came.*real"),
        (np.zeros((2, 2), object), "TC607", "object came"),
        (
            np.zeros(2, np.float32),
            "TC608",
            r"`A` has 2 dimensions; an array of shape \(2,\) came.*help: pass `x\[None\]`, of shape \(1, 2\), or",
        ),
        (np.zeros((2, 2, 2, 2), np.float32), "TC608", r"help: pass `x\[0, 0\]`, of shape \(2, 2\), or"),
        ([[1.0]], "TC607", "a Python list came"),
        (None, "TC607", "None came"),
        (1.5, "TC608", "1.5 came"),
        (np.ma.zeros((2, 2)), "TC609", "masked array came"),
    ],
)
def test_arrays_that_do_not_fit_are_named(value, code, words):
    with refused(code, words):
        read_array(A, value, PROGRAM.source)


SCALARS = {
    "int32": (DType.INT32, [3, True, np.int8(3), np.uint64(7), np.array(5, np.int32), -(1 << 31)]),
    "float32": (F32, [3, 0.1, np.float64(2.5), np.int32(4), float("inf"), float("nan"), Fraction(1, 3), 10**30]),
    "bool": (DType.BOOL, [True, np.bool_(False), np.array(True)]),
    "uint64": (DType.UINT64, [(1 << 64) - 1, np.uint64((1 << 64) - 1)]),
    "float16": (DType.FLOAT16, [65504, -65504.0]),
}


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, (_, values) in SCALARS.items() for number in values]
)
def test_numbers_are_accepted(name, number):
    dtype = SCALARS[name][0]
    value = read_scalar(Parameter("s", dtype, (), PROGRAM.span), number, PROGRAM.source)
    assert isinstance(value, (bool, int, float))
    expected = float(number) if dtype.is_float else int(number)
    assert value == expected or expected != expected


@pytest.mark.parametrize(
    ("dtype", "number", "words"),
    [
        (DType.INT32, 2.0, "is no integer"),
        (DType.INT32, 1 << 31, "is not between"),
        (DType.UINT8, -1, "is not between 0 and 255"),
        (DType.BOOL, 1, "is no truth value"),
        (F32, 1e39, "is too large"),
        (DType.FLOAT16, 65520, "is too large"),
        (DType.FLOAT64, 10**400, "an integer of 1329 bits is too large"),
        pytest.param(F32, -(10**5000), "an integer of 16610 bits is too large", id="a large float"),
        pytest.param(DType.INT64, 10**5000, "an integer of 16610 bits is not between", id="a large integer"),
        (F32, 1 + 2j, "came"),
        (F32, "1", "`str` came"),
        (F32, None, "came"),
        (F32, [1.0], "list.* came"),
        (F32, np.datetime64("2020"), "came"),
    ],
)
def test_numbers_that_do_not_fit(dtype, number, words):
    with refused("TC607", "`s`", words):
        read_scalar(Parameter("s", dtype, (), PROGRAM.span), number, PROGRAM.source)


def test_a_vector_is_no_number():
    with refused("TC608", r"`s` is a number of type float32; an array of shape \(3,\) came"):
        read_scalar(Parameter("s", F32, (), PROGRAM.span), np.zeros(3, np.float32), PROGRAM.source)
    with refused("TC608", r"help: pass its element, `x.item\(\)`"):
        read_scalar(Parameter("s", F32, (), PROGRAM.span), np.zeros(1, np.float32), PROGRAM.source)


def test_torch_numbers():
    torch = pytest.importorskip("torch")
    parameter = Parameter("s", DType.BFLOAT16, (), PROGRAM.span)
    assert read_scalar(parameter, torch.tensor(1.5, dtype=torch.bfloat16), PROGRAM.source) == 1.5


def test_sizes_are_unified():
    assert unify((A, B), ((2, 3), (3, 4)), PROGRAM) == {"M": 2, "K": 3, "N": 4}
    with refused("TC605", r"size `K` is 3 in `A` \(dimension 1\) and 5 in `B` \(dimension 0\)"):
        unify((A, B), ((2, 3), (5, 4)), PROGRAM)
    fixed = Parameter("Q", F32, ("N", 4), PROGRAM.span)
    with refused("TC605", r"dimension 1 of `Q` is 4; an array of shape \(9, 5\) came"):
        unify((fixed,), ((9, 5),), PROGRAM)


RESULT = Parameter("C", F32, ("M",), PROGRAM.span)


@pytest.mark.parametrize(
    ("out", "code", "words"),
    [
        (np.zeros(4, np.float32), "TC610", r"shape \(4,\) came"),
        (np.zeros(3), "TC610", "float64 came"),
        (np.broadcast_to(np.zeros(3, np.float32), (3,)), "TC610", "read-only"),
        ((np.zeros(3, np.float32),) * 2, "TC606", "1 result; `out=` has 2"),
        ([], "TC606", "has 0"),
        (7, "TC610", "7 came"),
        (np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (3,), (0,)), "TC611", "share memory"),
    ],
)
def test_out_that_does_not_fit(out, code, words):
    with refused(code, words):
        read_outputs(out, (RESULT,), ((3,),), "cpu", PROGRAM)


def test_out_on_another_device():
    with refused("TC609", "cuda:0"):
        read_outputs(np.zeros(3, np.float32), (RESULT,), ((3,),), "cuda:0", PROGRAM)


def test_out_of_torch_and_jax():
    torch = pytest.importorskip("torch")
    (view,) = read_outputs(torch.zeros(3), (RESULT,), ((3,),), "cpu", PROGRAM)
    assert view.shape == (3,)
    with refused("TC610", "gradient"):
        read_outputs(torch.zeros(3, requires_grad=True), (RESULT,), ((3,),), "cpu", PROGRAM)
    with refused("TC610", "signs"):
        read_outputs(torch.zeros(3, dtype=torch.complex64).conj().imag, (RESULT,), ((3,),), "cpu", PROGRAM)
    jax = pytest.importorskip("jax")
    with refused("TC610", "JAX"):
        read_outputs(jax.numpy.zeros(3), (RESULT,), ((3,),), "cpu", PROGRAM)


def test_arrays_on_two_devices():
    from dataclasses import replace

    view = view_of(np.zeros((2, 2), np.float32))
    assert one_device((A, B), (view, view), PROGRAM) == "cpu"
    assert one_device((), (), PROGRAM) == "cpu"
    with refused("TC609", "`A` is on `cpu`, `B` on `cuda:0`"):
        one_device((A, B), (view, replace(view, device="cuda:0")), PROGRAM)
