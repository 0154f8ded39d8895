"""Kernels as text for readers."""

from __future__ import annotations

from tc_jupyter.loops import Allocate, Barrier, Block, Buffer, Check, For, If, Intrinsic, Kernel, Store
from tc_jupyter.loops.show import show_expr, show_kernel
from tc_jupyter.program import Binary, Call, Cast, Const, DType, IndexVar, Read, Select, Size, Unary, int64

F32, I64, BOOL = DType.FLOAT32, DType.INT64, DType.BOOL
i, j, n = IndexVar("i"), IndexVar("j"), Size("N")


def binary(op, left, right, dtype=I64):
    return Binary(op, left, right, dtype)


def test_parentheses_only_where_they_matter():
    total = binary("+", i, binary("*", j, n))
    assert show_expr(total) == "i + j * N"
    assert show_expr(binary("*", total, n)) == "(i + j * N) * N"
    assert show_expr(binary("-", i, binary("-", j, n))) == "i - (j - N)"
    assert show_expr(binary("//", binary("//", i, j), n)) == "i // j // N"
    assert show_expr(Unary("-", binary("+", i, j), I64)) == "-(i + j)"


def test_every_kind_of_expression():
    read = Read("A", (i, j), F32)
    assert show_expr(read) == "A[i, j]"
    assert show_expr(Read("s", (), F32)) == "s"
    assert show_expr(Call("exp", (read,), F32)) == "exp(A[i, j])"
    assert show_expr(Cast(i, DType.INT32)) == "i"
    assert show_expr(Cast(i, F32)) == "float32(i)"
    assert show_expr(Const(True, BOOL)) == "true"
    assert show_expr(binary("min", i, j)) == "min(i, j)"
    choice = Select(binary("<", i, n, BOOL), read, Const(0.0, F32), F32)
    assert show_expr(choice) == "i < N ? A[i, j] : 0.0"
    assert show_expr(binary("*", choice, read, F32)) == "(i < N ? A[i, j] : 0.0) * A[i, j]"


def test_a_kernel_with_every_kind_of_statement():
    tile = Buffer("T", F32, (int64(4),), "local")
    store = Store("T", (i,), Const(1.0, F32))
    inner = Block(
        (
            store,
            Store("C", (i,), Read("T", (i,), F32), "+"),
            Store("C", (i,), Read("T", (i,), F32), "max"),
            If(binary("<", i, n, BOOL), Block((store,)), Block((store,))),
            Check(binary("<", i, n, BOOL), 0, (i,), Block((store,))),
            Barrier(),
            Intrinsic("mma", (Read("T", (int64(0),), F32),)),
        ),
        "C(i) += 1",
    )
    body = Block((For("i", int64(0), n, Block((Allocate(tile, inner),)), "parallel"),))
    buffers = (Buffer("C", F32, (n,), role="inout", strided=True),)
    assert show_kernel(Kernel("f", buffers, ("N",), (("a", F32),), body)) == "\n".join(
        [
            "kernel f(inout C[N] strided, float32 a)",
            "  for i in 0:N  # parallel",
            "    allocate local float32 T[4]",
            "    # C(i) += 1",
            "    T[i] = 1.0",
            "    C[i] += T[i]",
            "    C[i] = max(C[i], T[i])",
            "    if i < N",
            "      T[i] = 1.0",
            "    else",
            "      T[i] = 1.0",
            "    check i < N",
            "      T[i] = 1.0",
            "    barrier block",
            "    mma(T[0])",
        ]
    )
