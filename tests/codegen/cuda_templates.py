"""Fast kernels written by hand in the loop IR: what the schedules' templates lower to."""

from __future__ import annotations

from cuda_kernels import (
    BF16,
    F16,
    F32,
    I32,
    add,
    as_expr,
    buffer,
    ceil_div,
    const,
    f32,
    kernel,
    local,
    loop,
    mul,
    op,
    read,
    size,
    store,
    var,
    when,
)

from tc_jupyter.loops import Allocate, Barrier, Block, Intrinsic, Kernel, Stmt
from tc_jupyter.program import Call, DType, Expr, Read, Select
from tc_jupyter.ranges import Fact


def both(*conditions: Expr) -> Expr:
    total = conditions[0]
    for each in conditions[1:]:
        total = op("&&", total, each)
    return total


def intrinsic(name: str, *operands: Read, **attributes: int | str) -> Intrinsic:
    return Intrinsic(name, operands, tuple(attributes.items()))


def lanes(count: int, *body: Stmt, name: str = "v") -> Stmt:
    return loop(name, count, *body, kind="vectorize")


def unrolled(name: str, count: int, *body: Stmt) -> Stmt:
    return loop(name, count, *body, kind="unroll")


def allocate(buffers: list, *body: Stmt) -> Stmt:
    inner: Stmt = Block(body)
    for each in reversed(buffers):
        inner = Allocate(each, inner if isinstance(inner, Block) else Block((inner,)))
    return inner


# --- rows ------------------------------------------------------------------------------------------------------------


def softmax(threads: int, per_thread: int, rows_per_block: int = 1) -> Kernel:
    """`O[i, j] = exp(A[i, j] - max) / sum` with one read: a row in the registers of `threads` threads; up to their elements."""
    row = add(mul(var("b"), rows_per_block), var("r"))

    def column(e: Expr) -> Expr:
        return add(mul(e, threads), var("t"))

    def each(*body: Stmt) -> Stmt:
        return loop("t", threads, unrolled("e", per_thread, *body), kind="threadIdx.x")

    inside = both(op("<", row, size("M")), op("<", column(var("e")), size("N")))
    x = read("X", var("t"), var("e"))
    first = loop("t", threads, store("P", (var("t"),), read("X", var("t"), 0)), kind="threadIdx.x")
    largest = each(store("P", (var("t"),), x, "max"))
    zero = loop("t", threads, store("P", (var("t"),), const(0.0)), kind="threadIdx.x")
    body = allocate(
        [
            local("X", threads, per_thread, scope="threads", threads=1),
            local("P", threads, scope="threads", threads=1),
            local("m"),
            local("s"),
        ],
        each(
            store(
                "X", (var("t"), var("e")), Select(inside, read("A", row, column(var("e"))), const(float("-inf")), F32)
            )
        ),
        first,
        largest,
        intrinsic("reduce_threads", read("m"), read("P", 0), op="max", threads=threads, axis=0),
        each(store("X", (var("t"), var("e")), Call("exp", (f32("-", x, read("m")),), F32))),
        zero,
        each(store("P", (var("t"),), x, "+")),
        intrinsic("reduce_threads", read("s"), read("P", 0), op="+", threads=threads, axis=0),
        each(when(inside, store("O", (row, column(var("e"))), f32("/", x, read("s"))))),
    )
    rows = loop("r", rows_per_block, body, kind="threadIdx.y")
    blocks = loop("b", ceil_div(size("M"), rows_per_block), rows, kind="blockIdx.x")
    return kernel("softmax", (buffer("A", "M", "N"), buffer("O", "M", "N", role="output")), ("M", "N"), blocks)


# --- products --------------------------------------------------------------------------------------------------------


def simt_matmul(depth: int = 8, min_blocks: int = 2) -> Kernel:
    """`C = A * B` in float32: 128 x 128 per block, 8 x 8 per thread in four quadrants, two stages; K and N multiples of 4.

    Source: the SIMT template of the design of the CUDA back end.
    """
    t = var("t")
    m0, n0 = mul(var("by"), 128), mul(var("bx"), 128)
    tiles = ceil_div(size("K"), depth)
    per_row = depth // 4  # threads per row of the tile of A
    warp, lane = op("//", t, 32), op("%", t, 32)
    cy = add(mul(op("//", warp, 2), 4), op("//", lane, 8))
    cx = add(mul(op("%", warp, 2), 8), op("%", lane, 8))

    def threads(*body: Stmt) -> Stmt:
        return loop("t", 256, *body, kind="threadIdx.x")

    def pieces(*body: Stmt) -> Stmt:
        return unrolled("p", depth // 8, *body)

    e = add(t, mul(256, var("p")))  # number of a float4 of a tile
    a_row, a_col = op("//", e, per_row), mul(4, op("%", e, per_row))
    b_row, b_col = op("//", e, 32), mul(4, op("%", e, 32))

    def fetch(tile: Expr) -> Stmt:
        k0 = mul(tile, depth)
        row, col = add(m0, a_row), add(k0, a_col)
        krow, ncol = add(k0, b_row), add(n0, b_col)
        return threads(
            pieces(
                when(
                    both(op("<", row, size("M")), op("<", col, size("K"))),
                    lanes(4, store("rA", (t, var("p"), var("v")), read("A", row, add(col, var("v"))))),
                    otherwise=Block((lanes(4, store("rA", (t, var("p"), var("v")), const(0.0))),)),
                ),
                when(
                    both(op("<", krow, size("K")), op("<", ncol, size("N"))),
                    lanes(4, store("rB", (t, var("p"), var("v")), read("B", krow, add(ncol, var("v"))))),
                    otherwise=Block((lanes(4, store("rB", (t, var("p"), var("v")), const(0.0))),)),
                ),
            )
        )

    def put(stage: Expr) -> Stmt:
        return threads(
            pieces(
                unrolled("v", 4, store("As", (stage, add(a_col, var("v")), a_row), read("rA", t, var("p"), var("v")))),
                lanes(4, store("Bs", (stage, b_row, add(b_col, var("v"))), read("rB", t, var("p"), var("v")))),
            )
        )

    def compute(stage: Expr) -> Stmt:
        def half(name: str, source: str, at: Expr) -> Stmt:
            return unrolled(
                "h", 2, lanes(4, store(name, (add(mul(4, var("h")), var("v")),), read(source, stage, var("k"), add(mul(64, var("h")), mul(4, at), var("v")))))
            )  # fmt: skip

        product = f32("*", read("a", var("i")), read("b", var("j")))
        body = allocate(
            [local("a", 8, scope="register"), local("b", 8, scope="register")],
            half("a", "As", cy),
            half("b", "Bs", cx),
            unrolled("i", 8, unrolled("j", 8, store("acc", (t, var("i"), var("j")), product, "+"))),
        )
        return threads(unrolled("k", depth, body))

    row = add(m0, op("*", op("//", var("i"), 4), 64), mul(4, cy), op("%", var("i"), 4))
    col = add(n0, mul(64, var("h")), mul(4, cx))
    out = threads(
        unrolled("i", 8, unrolled("h", 2, when(
            both(op("<", row, size("M")), op("<", col, size("N"))),
            lanes(4, store("C", (row, add(col, var("v"))), read("acc", t, var("i"), add(mul(4, var("h")), var("v"))))),
        )))
    )  # fmt: skip
    more = op("<", add(var("kt"), 1), tiles)
    zero = threads(unrolled("i", 8, unrolled("j", 8, store("acc", (t, var("i"), var("j")), const(0.0)))))
    pad = 4 if depth == 8 else 8
    body = allocate(
        [
            local("As", 2, depth, 128, scope="shared", pad=pad),
            local("Bs", 2, depth, 128, scope="shared"),
            local("acc", 256, 8, 8, scope="threads", threads=1),
            local("rA", 256, depth // 8, 4, scope="threads", threads=1),
            local("rB", 256, depth // 8, 4, scope="threads", threads=1),
        ],
        zero,
        fetch(as_expr(0)),
        put(as_expr(0)),
        Barrier(),
        loop(
            "kt",
            tiles,
            when(more, fetch(add(var("kt"), 1))),
            compute(op("%", var("kt"), 2)),
            when(more, put(op("%", add(var("kt"), 1), 2)), Barrier()),
        ),
        out,
    )
    grid = loop(
        "by", ceil_div(size("M"), 128), loop("bx", ceil_div(size("N"), 128), body, kind="blockIdx.x"), kind="blockIdx.y"
    )
    buffers = (
        buffer("A", "M", "K", align=16),
        buffer("B", "K", "N", align=16),
        buffer("C", "M", "N", role="output", align=16),
    )
    return kernel(
        "matmul",
        buffers,
        ("M", "N", "K"),
        grid,
        facts=(("K", Fact(multiple=4)), ("N", Fact(multiple=4))),
        min_blocks=min_blocks,
    )


STEP_OF = {F16: "mma_m16n8k16_f16", BF16: "mma_m16n8k16_bf16", F32: "mma_m16n8k8_tf32", DType.INT8: "mma_m16n8k32_s8"}


def tensor_matmul(
    dtype: DType = F16, stages: int = 3, warps: tuple[int, int] = (2, 2), columns_first: bool = False
) -> Kernel:
    """`C = A * B` on tensor cores: 128 x 128 per block, 64 bytes of depth, copies ahead, swizzled shared memory.

    Args:
        warps: along rows and columns.
        columns_first: B is given as `[N, K]`.

    Source: the `mma.sync` template of the design of the CUDA back end.
    """
    chunk = 16 // dtype.bytes
    depth = 4 * chunk  # elements along K per tile: 64 bytes, as 4 chunks
    step = 2 * chunk  # depth of one matrix step
    count = warps[0] * warps[1]
    wm_size, wn_size = 128 // warps[0], 128 // warps[1]
    total = I32 if dtype is DType.INT8 else F32
    m0, n0 = mul(var("by"), 128), mul(var("bx"), 128)
    tiles = ceil_div(size("K"), depth)
    thread = add(mul(var("w"), 32), var("l"))
    wm, wn = mul(op("//", var("w"), warps[1]), wm_size), mul(op("%", var("w"), warps[1]), wn_size)

    def guarded(condition: Expr, target: Read, source: Read) -> Stmt:
        zero = Block((intrinsic("cp_async_zero", target, bytes=16),))
        return when(condition, intrinsic("cp_async", target, source, bytes=16), otherwise=zero)

    def copies(name: str, shared: str, stage: Expr, tile: Expr, rows: int, width: int, along_k: bool) -> Stmt:
        """A tile of `rows` x `width` elements, 16 bytes per copy."""
        per_row = width // chunk
        e = add(thread, mul(32 * count, var("c")))
        row, col = op("//", e, per_row), mul(chunk, op("%", e, per_row))
        k0 = mul(tile, depth)
        first, second = (add(m0 if name == "A" else n0, row), add(k0, col)) if along_k else (add(k0, row), add(n0, col))
        limits = (size("M" if name == "A" else "N"), size("K")) if along_k else (size("K"), size("N"))
        condition = both(op("<", first, limits[0]), op("<", second, limits[1]))
        copy = guarded(condition, read(shared, stage, row, col, dtype=dtype), read(name, first, second, dtype=dtype))
        return unrolled("c", rows * per_row // (32 * count), copy)

    def copy(stage: Expr, tile: Expr) -> Stmt:
        a = copies("A", "As", stage, tile, 128, depth, True)
        b = (
            copies("B", "Bs", stage, tile, 128, depth, True)
            if columns_first
            else copies("B", "Bs", stage, tile, depth, 128, False)
        )
        return loop("w", count, loop("l", 32, a, b, kind="threadIdx.x"), kind="threadIdx.y")

    def compute(stage: Expr) -> Stmt:
        k = mul(step, var("kk"))
        b_name = "ldmatrix_trans" if columns_first else "ldmatrix"
        b_at = (add(wn, mul(16, var("j"))), k) if columns_first else (k, add(wn, mul(16, var("j"))))
        body = allocate(
            [local("Af", wm_size, step, dtype=dtype, scope="fragment"), local("Bf", step, wn_size, dtype=dtype, scope="fragment")],
            unrolled("i", wm_size // 16, intrinsic("ldmatrix", read("Af", mul(16, var("i")), 0, dtype=dtype), read("As", stage, add(wm, mul(16, var("i"))), k, dtype=dtype), rows=16, columns=step)),
            unrolled("j", wn_size // 16, intrinsic(b_name, read("Bf", 0, mul(16, var("j")), dtype=dtype), read("Bs", stage, *b_at, dtype=dtype), rows=step, columns=16)),
            unrolled("i", wm_size // 16, unrolled("j", wn_size // 8, intrinsic(
                STEP_OF[dtype],
                read("acc", var("w"), mul(16, var("i")), mul(8, var("j")), dtype=total),
                read("Af", mul(16, var("i")), 0, dtype=dtype),
                read("Bf", 0, mul(8, var("j")), dtype=dtype),
            ))),
        )  # fmt: skip
        return loop("w", count, unrolled("kk", depth // step, body), kind="threadIdx.y")

    def elements(*body: Stmt) -> Stmt:
        tile = loop("r", 16, loop("q", 8, *body, kind="fragment.column"), kind="fragment.row")
        return loop("w", count, unrolled("i", wm_size // 16, unrolled("j", wn_size // 8, tile)), kind="threadIdx.y")

    at = (var("w"), add(mul(16, var("i")), var("r")), add(mul(8, var("j")), var("q")))
    row, col = add(m0, wm, at[1]), add(n0, wn, at[2])
    out_type = dtype if dtype in (F16, BF16) else total
    out = elements(
        when(
            both(op("<", row, size("M")), op("<", col, size("N"))),
            store("C", (row, col), read("acc", *at, dtype=total)),
        )
    )
    prologue: list[Stmt] = []
    for s in range(stages - 1):
        prologue += [when(op("<", s, tiles), copy(as_expr(s), as_expr(s))), intrinsic("cp_async_commit")]
    ahead = add(var("it"), stages - 1)
    a_swizzle = (1, 3)
    b_swizzle = (1, 3) if columns_first else (0, 7)
    body = allocate(
        [
            local("As", stages, 128, depth, dtype=dtype, scope="shared", swizzle=a_swizzle),
            local(
                "Bs",
                stages,
                *((128, depth) if columns_first else (depth, 128)),
                dtype=dtype,
                scope="shared",
                swizzle=b_swizzle,
            ),
            local("acc", count, wm_size, wn_size, dtype=total, scope="fragment", threads=1),
        ],
        elements(store("acc", at, const(0, total))),
        *prologue,
        loop(
            "it",
            tiles,
            intrinsic("cp_async_wait", pending=stages - 2),
            Barrier(),
            when(op("<", ahead, tiles), copy(op("%", ahead, stages), ahead)),
            intrinsic("cp_async_commit"),
            compute(op("%", var("it"), stages)),
        ),
        out,
    )
    grid = loop(
        "by", ceil_div(size("M"), 128), loop("bx", ceil_div(size("N"), 128), body, kind="blockIdx.x"), kind="blockIdx.y"
    )
    b_shape = ("N", "K") if columns_first else ("K", "N")
    buffers = (
        buffer("A", "M", "K", dtype=dtype, align=16),
        buffer("B", *b_shape, dtype=dtype, align=16),
        buffer("C", "M", "N", dtype=out_type, role="output", align=16),
    )
    return kernel("matmul", buffers, ("M", "N", "K"), grid)


def transpose() -> Kernel:
    """`O[j, i] = A[i, j]` through a padded 32 x 32 tile, 32 x 8 threads."""
    i0, j0 = mul(var("by"), 32), mul(var("bx"), 32)

    def threads(*body: Stmt) -> Stmt:
        return loop("y", 8, loop("x", 32, unrolled("p", 4, *body), kind="threadIdx.x"), kind="threadIdx.y")

    line = add(var("y"), mul(8, var("p")))
    i, j = add(i0, line), add(j0, var("x"))
    take = threads(
        when(both(op("<", i, size("M")), op("<", j, size("N"))), store("T", (line, var("x")), read("A", i, j)))
    )
    i, j = add(i0, var("x")), add(j0, line)
    give = threads(
        when(both(op("<", i, size("M")), op("<", j, size("N"))), store("O", (j, i), read("T", var("x"), line)))
    )
    body = allocate([local("T", 32, 32, scope="shared", pad=1)], take, Barrier(), give)
    grid = loop(
        "by", ceil_div(size("M"), 32), loop("bx", ceil_div(size("N"), 32), body, kind="blockIdx.x"), kind="blockIdx.y"
    )
    return kernel("transpose", (buffer("A", "M", "N"), buffer("O", "N", "M", role="output")), ("M", "N"), grid)


def axpy(unroll: int = 2) -> Kernel:
    """`O[i] = s * X[i] + Y[i]`: `unroll` vectors of four per thread, with a tail."""
    base = add(mul(var("b"), 1024 * unroll), mul(1024, var("u")), mul(4, var("t")))
    at = add(base, var("v"))
    value = f32("+", f32("*", read("s"), read("X", at)), read("Y", at))
    inner = loop("v", op("min", 4, op("-", size("N"), base)), store("O", (at,), value), kind="vectorize")
    nest = loop("t", 256, unrolled("u", unroll, inner), kind="threadIdx.x")
    grid = loop("b", ceil_div(size("N"), 1024 * unroll), nest, kind="blockIdx.x")
    buffers = (buffer("X", "N", align=16), buffer("Y", "N", align=16), buffer("O", "N", role="output", align=16))
    return kernel("axpy", buffers, ("N",), grid, scalars=(("s", F32),))
