"""A kernel as text for readers: the notation of the language, one loop or store per line.

Worked example: the kernel of `o(i) +=! A(i,j) * B(j)` prints as

    kernel mv_0_o(A[R, C], B[C], out o[R])
      for i in 0:R  # parallel
        o[i] = 0.0
        for j in 0:C
          o[i] += A[i, j] * B[j]
"""

from __future__ import annotations

from typing import assert_never

from tc_jupyter.program import Binary, Call, Cast, Const, DType, Expr, IndexVar, Read, Select, Size, Unary, bits

from .ir import Allocate, Barrier, Block, Buffer, Check, For, If, Intrinsic, Kernel, Stmt, Store

_LEVELS = ({"||"}, {"&&"}, {"==", "!="}, {"<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "//", "%"})
_LEVEL = {op: level for level, ops in enumerate(_LEVELS, 1) for op in ops}
_TIGHTEST = len(_LEVELS) + 1


def show_expr(expr: Expr, level: int = 0) -> str:
    """An expression; conversions between widths are left out, those between kinds are shown."""
    match expr:
        case Const():
            return str(expr.value).lower() if expr.dtype is DType.BOOL else str(expr.value)
        case Size() | IndexVar():
            return expr.name
        case Read():
            return expr.tensor + (f"[{', '.join(map(show_expr, expr.indices))}]" if expr.indices else "")
        case Unary():
            return f"{expr.op}{show_expr(expr.operand, _TIGHTEST)}"
        case Cast() if expr.dtype.is_float == expr.operand.dtype.is_float:
            return show_expr(expr.operand, level)
        case Cast():
            return f"{expr.dtype.value}({show_expr(expr.operand)})"
        case Call(function=function, arguments=(left, right)) if function in bits.OPERATORS:
            return f"({show_expr(left, _TIGHTEST)} {bits.OPERATORS[function]} {show_expr(right, _TIGHTEST)})"
        case Call():
            return f"{expr.function}({', '.join(map(show_expr, expr.arguments))})"
        case Select():
            parts = (show_expr(expr.condition, 1), show_expr(expr.then, 1), show_expr(expr.otherwise))
            text = f"{parts[0]} ? {parts[1]} : {parts[2]}"
            return f"({text})" if level else text
        case Binary(op="min" | "max"):
            return f"{expr.op}({show_expr(expr.left)}, {show_expr(expr.right)})"
        case Binary():
            own = _LEVEL[expr.op]
            text = f"{show_expr(expr.left, own)} {expr.op} {show_expr(expr.right, own + 1)}"
            return f"({text})" if own < level else text
    assert_never(expr)


def show_kernel(kernel: Kernel) -> str:
    """The whole kernel: its arguments, then its loops."""
    arguments = [_argument(buffer) for buffer in kernel.buffers]
    arguments += [f"{dtype.value} {name}" for name, dtype in kernel.scalars]
    head = [*(f"# {line}" for line in kernel.comment), f"kernel {kernel.name}({', '.join(arguments)})"]
    return "\n".join([*head, *_block(kernel.body, 1)])


def _argument(buffer: Buffer) -> str:
    role = {"input": "", "output": "out ", "inout": "inout "}[buffer.role]
    kind = "temporary " if buffer.scope == "global" else ""
    return f"{kind}{role}{buffer.name}{_shape(buffer)}{' strided' if buffer.strided else ''}"


def _shape(buffer: Buffer) -> str:
    return f"[{', '.join(map(show_expr, buffer.shape))}]"


def _block(block: Block, depth: int) -> list[str]:
    lines = [f"{'  ' * depth}# {line}" for line in block.comment.splitlines()]
    for stmt in block.body:
        lines += _statement(stmt, depth)
    return lines


def _statement(stmt: Stmt, depth: int) -> list[str]:
    pad = "  " * depth
    match stmt:
        case For():
            notes = ["" if stmt.kind == "serial" else stmt.kind, stmt.tail and f"tail {stmt.tail}"]
            note = ", ".join(filter(None, notes))
            return [f"{pad}{heading(stmt)}{note and f'  # {note}'}", *_block(stmt.body, depth + 1)]
        case If():
            lines = [f"{pad}if {show_expr(stmt.condition)}", *_block(stmt.then, depth + 1)]
            if stmt.otherwise is not None:
                lines += [f"{pad}else", *_block(stmt.otherwise, depth + 1)]
            return lines
        case Store():
            return [pad + show_store(stmt)]
        case Allocate():
            buffer = stmt.buffer
            head = f"{pad}allocate {buffer.scope} {buffer.dtype.value} {buffer.name}{_shape(buffer)}"
            return [head, *_block(stmt.body, depth)]
        case Check():
            return [f"{pad}check {show_expr(stmt.condition)}", *_block(stmt.body, depth + 1)]
        case Intrinsic():
            return [f"{pad}{stmt.name}({', '.join(map(show_expr, stmt.operands))})"]
        case Barrier():
            return [f"{pad}barrier {stmt.scope}"]
        case Block():
            return _block(stmt, depth)
    assert_never(stmt)


def heading(loop: For) -> str:
    """`for i in 0:N`."""
    low, extent = show_expr(loop.min), show_expr(loop.extent)
    return f"for {loop.var} in " + (f"0:{extent}" if low == "0" else f"{low}:{low} + {extent}")


def show_store(store: Store) -> str:
    """`C[i, j] += A[i, k] * B[k, j]`."""
    target = f"{store.buffer}[{', '.join(map(show_expr, store.indices))}]"
    value = show_expr(store.value)
    if store.reduce in ("min", "max"):
        return f"{target} = {store.reduce}({target}, {value})"
    if store.reduce not in (None, "+", "*"):
        return f"{target} = {store.reduce}({target}, {value})"
    return f"{target} {store.reduce or ''}= {value}"
