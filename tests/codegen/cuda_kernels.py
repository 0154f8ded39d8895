"""Kernels built by hand, for the tests of the CUDA back end."""

from __future__ import annotations

from tc_jupyter.loops import Block, Buffer, For, If, Kernel, Stmt, Store
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, Size, int64
from tc_jupyter.schedule import Target

F16, BF16, F32, F64 = DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64
I32, I64, BOOL = DType.INT32, DType.INT64, DType.BOOL
SM80 = Target("cuda", "test device", arch="sm_80", shared_optin_bytes=163 << 10)
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


def var(name: str) -> Expr:
    return IndexVar(name)


def size(name: str) -> Expr:
    return Size(name)


def as_expr(value: Expr | int) -> Expr:
    return int64(value) if isinstance(value, int) else value


def op(operator: str, left: Expr | int, right: Expr | int, dtype: DType = I64) -> Expr:
    """An operator on index expressions; comparisons get type `bool`."""
    dtype = BOOL if operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||") else dtype
    return Binary(operator, as_expr(left), as_expr(right), dtype)


def add(*terms: Expr | int) -> Expr:
    total = as_expr(terms[0])
    for term in terms[1:]:
        total = op("+", total, term)
    return total


def mul(left: Expr | int, right: Expr | int) -> Expr:
    return op("*", left, right)


def ceil_div(value: Expr, by: int) -> Expr:
    return op("//", add(value, by - 1), by)


def f32(operator: str, left: Expr, right: Expr) -> Expr:
    return Binary(operator, left, right, F32)


def const(value: float, dtype: DType = F32) -> Expr:
    return Const(value, dtype)


def read(name: str, *indices: Expr | int, dtype: DType = F32) -> Read:
    return Read(name, tuple(map(as_expr, indices)), dtype)


def block(*stmts: Stmt) -> Block:
    return Block(stmts)


def loop(name: str, extent: Expr | int, *body: Stmt, kind: str = "serial", start: Expr | int = 0) -> For:
    return For(name, as_expr(start), as_expr(extent), block(*body), kind)


def store(name: str, indices: tuple[Expr | int, ...], value: Expr, reduce: str | None = None, **more: object) -> Store:
    return Store(name, tuple(map(as_expr, indices)), value, reduce, statement=name, **more)  # type: ignore[arg-type]


def when(condition: Expr, *body: Stmt, otherwise: Block | None = None) -> If:
    return If(condition, block(*body), otherwise)


def buffer(name: str, *shape: Expr | int | str, dtype: DType = F32, role: str = "input", **more: object) -> Buffer:
    extents = tuple(Size(extent) if isinstance(extent, str) else as_expr(extent) for extent in shape)
    return Buffer(name, dtype, extents, role=role, **more)  # type: ignore[arg-type]


def local(name: str, *shape: Expr | int, dtype: DType = F32, scope: str = "local", **more: object) -> Buffer:
    return Buffer(name, dtype, tuple(map(as_expr, shape)), scope, **more)  # type: ignore[arg-type]


def kernel(name: str, buffers: tuple[Buffer, ...], sizes: tuple[str, ...], *body: Stmt, **more: object) -> Kernel:
    return Kernel(name, buffers, sizes, more.pop("scalars", ()), block(*body), **more)  # type: ignore[arg-type]


def pointwise(name: str, buffers: tuple[Buffer, ...], value: Expr, output: str = "O", **more: object) -> Kernel:
    """`O[i] = value` for `i = b*128 + t` over `0 : N`, one thread per element; `value` uses `i` as `element()`."""
    body = when(op("<", element(), size("N")), store(output, (element(),), value))
    blocks = loop("b", ceil_div(size("N"), 128), loop("t", 128, body, kind="threadIdx.x"), kind="blockIdx.x")
    return kernel(name, buffers, ("N",), blocks, **more)


def element() -> Expr:
    """The element of a thread of `pointwise`."""
    return add(mul(var("b"), 128), var("t"))
