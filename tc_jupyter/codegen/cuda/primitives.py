"""Intrinsics: the operations of the hardware that C++ cannot say, as inline PTX. All inline PTX but conversions lives
here.

Conventions (the meaning that `loops/intrinsics.py` gives them, one execution per group of threads that takes part):

* An operand is the position of a tile's first element. A statement that stands inside loops over `threadIdx` is done
by those
  threads; an intrinsic of a warp stands outside the loop over its 32 lanes (`threadIdx.x`), one of a block outside
  all of them.
* A buffer of scope `threads` has `Buffer.threads` leading dimensions that run over threads: in an access each of
these indices is the
  variable of the thread's own loop, and the thread holds the rest in registers.
* A buffer of scope `fragment` is a matrix that a warp holds in registers, in the layout of `mma`: the last two
dimensions are its
  rows and columns, the leading `Buffer.threads` ones run over warps. Its role (accumulator, left or right operand)
  follows from the `mma_...` that use it. Elements of an accumulator are read and written in a loop of kind
  `fragment.row` over 16 rows directly around one of kind `fragment.column` over 8 columns, at `(16*i + row, 8*j +
  column)`.

| name | operands | attributes | meaning |
|---|---|---|---|
| `mma_m16n8k16_f16`, `..._bf16` | C, A, B | | `C[i, j] += sum_k A[i, k] * B[k, j]`, 16 x 8 x 16, sums in float32 |
| `mma_m16n8k8_tf32` | C, A, B | | the same, 16 x 8 x 8, operands rounded to TF32 |
| `mma_m16n8k32_s8` | C, A, B | | the same, 16 x 8 x 32, int8 with int32 sums |
| `ldmatrix` | F, S | `rows`, `columns` | `F[r, c] = S[r, c]` |
| `ldmatrix_trans` | F, S | `rows`, `columns` | `F[r, c] = S[c, r]` |
| `cp_async` | S, G | `bytes` | `S[c + e] = G[c + e]` along the last dimension, 4, 8 or 16 aligned bytes |
| `cp_async_zero` | S | `bytes` | the same with zeros |
| `cp_async_commit` | | | close the group of copies of each thread (also an empty one) |
| `cp_async_wait` | | `pending` | all but the latest `pending` groups of each thread have landed |
| `reduce_threads` | R, X | `op`, `threads`, `axis` | `R = X[0] op ... op X[threads - 1]` along dimension `axis` |

`ldmatrix` loads 16 x k of a left operand, k x 8 or k x 16 (two tiles) of a right one, with the k of its matrix step,
from any memory. Copies land at the wait; `cp_async_zero` as the `otherwise` of a condition around `cp_async` is one
instruction with it. All threads of a reduction get R. `reduce_threads` takes `+ * min max`, a power of two up to 32
threads or a multiple of 32, along `threadIdx.x`.

Source: PTX ISA, sections "Matrix fragments for mma", "ldmatrix", "cp.async", "shfl.sync".
"""

from __future__ import annotations

from tc_jupyter.loops import Intrinsic
from tc_jupyter.program import Binary, Const, DType, Expr, IndexVar, Read, int64

from .expressions import Place, Scope, Text, arithmetic, cast, divisor, element, extremum, index, padded, quotient
from .literals import C_TYPES, value_type

LANE = "lane of the warp"
"""Name of the variable of the lane in a `Scope`; no loop can have it."""


STEPS = {
    "mma_m16n8k16_f16": (16, 8, 16),
    "mma_m16n8k16_bf16": (16, 8, 16),
    "mma_m16n8k8_tf32": (16, 8, 8),
    "mma_m16n8k32_s8": (16, 8, 32),
}
"""Rows, columns and depth of each matrix step."""

MATRIX_STEPS = frozenset(STEPS)
COLLECTIVE = MATRIX_STEPS | {"ldmatrix", "ldmatrix_trans", "reduce_threads", "cp_async_commit", "cp_async_wait"}
"""Intrinsics in which all threads of a warp or block take part, or that every thread has to count alike."""

OF_WARP = MATRIX_STEPS | {"ldmatrix", "ldmatrix_trans"}
"""Intrinsics of the 32 threads of a warp."""

FULL_WARP = 32


def is_of_lanes(stmt: Intrinsic) -> bool:
    """Whether an intrinsic is one of neighbouring lanes of a warp, which differ along x only."""
    return stmt.name == "reduce_threads" and int(dict(stmt.attributes)["threads"]) <= FULL_WARP


KNOWN = COLLECTIVE | {"cp_async", "cp_async_zero"}
"""All intrinsics that are written here; others are loops (`loops/expand.py`)."""

_MMA = """
// {comment}
INLINE void {name}({total} (&c)[4], const unsigned int (&a)[4], const unsigned int (&b)[2]) {{
#if __CUDA_ARCH__ >= 800
    asm volatile("{instruction} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                 : "+{letter}"(c[0]), "+{letter}"(c[1]), "+{letter}"(c[2]), "+{letter}"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
{older}#endif
}}
"""

_OLDER_F16 = """#elif __CUDA_ARCH__ >= 750
    for (int half = 0; half < 2; half++) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
    }
"""

_NEVER = """#else
    __trap();  // the schedule must not choose this instruction for such a device
"""


def _mma(name: str, operand: str, total: str, older: str = _NEVER) -> str:
    shape = name.split("_")[1]
    kind = "s32" if total == "int" else "f32"
    instruction = f"mma.sync.aligned.{shape}.row.col.{kind}.{operand}.{operand}.{kind}"
    comment = f"c += a * b for a tile {shape}, one warp."
    letter = "r" if total == "int" else "f"
    return _MMA.format(
        name=f"tc_{name}", total=total, instruction=instruction, comment=comment, letter=letter, older=older
    )


PRIMITIVES: dict[str, str] = {
    "tc_mma_m16n8k16_f16": _mma("mma_m16n8k16_f16", "f16", "float", _OLDER_F16),
    "tc_mma_m16n8k16_bf16": _mma("mma_m16n8k16_bf16", "bf16", "float"),
    "tc_mma_m16n8k8_tf32": _mma("mma_m16n8k8_tf32", "tf32", "float"),
    "tc_mma_m16n8k32_s8": _mma("mma_m16n8k32_s8", "s8", "int"),
    "tc_shared": """
// The address of shared memory as PTX instructions take it.
INLINE unsigned int tc_shared_address(const void* address) {
    return (unsigned int)__cvta_generic_to_shared(address);
}
""",
    "tc_ldmatrix": """
// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
INLINE void tc_ldmatrix(unsigned int& r0, unsigned int& r1, unsigned int& r2, unsigned int& r3, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(tc_shared_address(row)) : "memory");
}
""",
    "tc_ldmatrix_trans": """
INLINE void tc_ldmatrix_trans(unsigned int& r0, unsigned int& r1, unsigned int& r2, unsigned int& r3, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(tc_shared_address(row)) : "memory");
}
""",
    "tc_ldmatrix_two": """
// Two 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8 for l < 16.
INLINE void tc_ldmatrix_two(unsigned int& r0, unsigned int& r1, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r0), "=r"(r1) : "r"(tc_shared_address(row)) : "memory");
}
""",
    "tc_ldmatrix_trans_two": """
INLINE void tc_ldmatrix_trans_two(unsigned int& r0, unsigned int& r1, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r0), "=r"(r1) : "r"(tc_shared_address(row)) : "memory");
}
""",
    "tc_to_tf32": """
INLINE unsigned int tc_to_tf32(unsigned int bits) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(__uint_as_float(bits)));
#endif
    return bits;
}
""",
    "tc_cp_async": """
// Copy BYTES to shared memory without a register; where `inside` is false, zeros, and nothing is read. Lands at the wait.
template <int BYTES> INLINE void tc_cp_async(void* target, const void* source, bool inside = true) {
#if __CUDA_ARCH__ >= 800
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(tc_shared_address(target)), "l"(source), "r"(inside ? 16 : 0) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :: "r"(tc_shared_address(target)), "l"(source), "n"(BYTES), "r"(inside ? BYTES : 0) : "memory");
    }
#else
    tc_vector<unsigned int, BYTES / 4> value = {};
    if (inside) value = *reinterpret_cast<const tc_vector<unsigned int, BYTES / 4>*>(source);
    *reinterpret_cast<tc_vector<unsigned int, BYTES / 4>*>(target) = value;
#endif
}
""",
    "tc_zero": """
template <int BYTES> INLINE void tc_zero(void* target) {
    *reinterpret_cast<tc_vector<unsigned int, BYTES / 4>*>(target) = {};
}
""",
    "tc_cp_async_commit": """
INLINE void tc_cp_async_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
""",
    "tc_cp_async_wait": """
// Wait until all but the latest PENDING groups have landed.
template <int PENDING> INLINE void tc_cp_async_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
#endif
}
""",
    "tc_lane": """
// The lane of this thread in its warp.
INLINE unsigned int tc_lane() {
    return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % 32;
}
""",
    "tc_warp_reduce": """
// Combine the values of THREADS neighbouring lanes; all of them get the result.
template <int THREADS, typename T, typename COMBINE> INLINE T tc_warp_reduce(T value, COMBINE combine, unsigned int lanes) {
#pragma unroll
    for (int distance = THREADS / 2; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(lanes, value, distance));
    }
    return value;
}
""",
    "tc_block_reduce": """
// The same for THREADS threads along x; `scratch` has one element per warp of these threads.
template <int THREADS, typename T, typename COMBINE> INLINE T tc_block_reduce(T value, COMBINE combine, T* scratch) {
    value = tc_warp_reduce<32>(value, combine, 0xffffffffu);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int warp = 1; warp < THREADS / 32; warp++) value = combine(value, scratch[warp]);
    return value;
}
""",
}
"""Device functions by name, like `helpers.HELPERS`."""


def emit_intrinsic(stmt: Intrinsic, scope: Scope) -> list[str]:
    """The lines of an intrinsic.

    Raises:
        ValueError: the name is not known, or the operands do not follow the conventions.
    """
    attributes = dict(stmt.attributes)
    match stmt.name:
        case "ldmatrix" | "ldmatrix_trans":
            return _load_fragment(stmt, scope)
        case "cp_async":
            return [copy_line(stmt, scope)]
        case "cp_async_zero":
            scope.helpers |= {"tc_vector", "tc_zero"}
            return [f"tc_zero<{attributes['bytes']}>({_address(stmt.operands[0], scope)});"]
        case "cp_async_commit":
            return [f"{scope.use('tc_cp_async_commit')}();"]
        case "cp_async_wait":
            return [f"{scope.use('tc_cp_async_wait')}<{attributes['pending']}>();"]
        case "reduce_threads":
            return _reduce(stmt, scope)
        case _ if stmt.name in MATRIX_STEPS:
            return _matrix_step(stmt, scope)
        case _:
            raise ValueError(f"unknown intrinsic: {stmt.name}")


def copy_line(stmt: Intrinsic, scope: Scope, inside: str = "") -> str:
    """One asynchronous copy; with `inside`, zeros where that is false."""
    scope.helpers |= {"tc_vector", "tc_shared", "tc_cp_async"}
    target, source = stmt.operands
    address = _address(source, scope) + (f", {inside}" if inside else "")
    return f"tc_cp_async<{dict(stmt.attributes)['bytes']}>({_address(target, scope)}, {address});"


def _address(read: Read, scope: Scope) -> str:
    return "&" + element(scope.places[read.tensor], read.indices, scope)


def fragment_depth(dtype: DType) -> int:
    """The reduction length of a matrix step: 32 bytes of operands."""
    return 32 // dtype.bytes


def fragment_type(place: Place) -> tuple[str, tuple[int, ...]]:
    """C++ type and extents of the registers of a fragment: tiles of rows, tiles of columns, registers per lane."""
    rows, columns = (int(extent.value) for extent in place.buffer.shape[-2:] if isinstance(extent, Const))
    depth = fragment_depth(place.buffer.dtype)
    match place.fragment:
        case "accumulator":
            return C_TYPES[place.buffer.dtype], (rows // 16, columns // 8, 4)
        case "left":
            return "unsigned int", (rows // 16, columns // depth, 4)
        case _:
            return "unsigned int", (rows // depth, columns // 8, 2)


def _registers(read: Read, rows: int, columns: int, scope: Scope) -> str:
    """The registers of the tile at a position of a fragment."""
    place = scope.places[read.tensor]
    row, column = read.indices[-2:]
    return f"{place.name}[{index(quotient(row, rows), scope).text}][{index(quotient(column, columns), scope).text}]"


def _matrix_step(stmt: Intrinsic, scope: Scope) -> list[str]:
    rows, columns, depth = STEPS[stmt.name]
    total, left, right = stmt.operands
    parts = (
        _registers(total, rows, columns, scope),
        _registers(left, rows, depth, scope),
        _registers(right, depth, columns, scope),
    )
    return [f"{scope.use(f'tc_{stmt.name}')}({', '.join(parts)});"]


def _load_fragment(stmt: Intrinsic, scope: Scope) -> list[str]:
    """Lane addresses and registers of a tile; where the hardware's load does not fit, each lane reads its own elements.

    That is so outside of shared memory, where rows do not begin at multiples of 16 bytes, and for elements of 8 or 32 bits that
    would have to be transposed.
    """
    fragment, source = stmt.operands
    place = scope.places[fragment.tensor]
    depth = fragment_depth(place.buffer.dtype)
    left = place.fragment == "left"
    rows, columns = (16, depth) if left else (depth, 8)
    tiles = [_registers(fragment, rows, columns, scope)]
    if not left and dict(stmt.attributes)["columns"] == 16:
        *outer, last = fragment.indices
        beside = Read(fragment.tensor, (*outer, Binary("+", last, int64(8), DType.INT64)), fragment.dtype)
        tiles.append(_registers(beside, rows, columns, scope))
    registers = [f"{tile}[{k}]" for tile in tiles for k in range(4 if left else 2)]
    # a left operand lies along k in memory unless it is stored transposed, a right one only if it is
    along_depth = (stmt.name == "ldmatrix") == left
    if (not along_depth and place.buffer.dtype.bytes != 2) or not _has_aligned_rows(source, scope):
        return _load_singly(source, registers, left, along_depth, scope)
    row, column = _lane_offsets(left, along_depth, depth // 2, len(registers))
    where = _shifted(source, row, column)
    helper = ("tc_ldmatrix" if along_depth else "tc_ldmatrix_trans") + ("" if len(registers) == 4 else "_two")
    scope.helpers |= {"tc_shared", helper}
    lines = [f"{helper}({', '.join(registers)}, {_address(where, scope)});"]
    return lines + _rounded(registers, place, scope)


def _has_aligned_rows(source: Read, scope: Scope) -> bool:
    """Whether every row of a tile begins in shared memory at a multiple of 16 bytes."""
    buffer = scope.places[source.tensor].buffer
    chunk = 16 // buffer.dtype.bytes
    pitch = divisor(padded(buffer.shape[-1], buffer.pad), scope)
    return buffer.scope == "shared" and pitch % chunk == 0 and divisor(source.indices[-1], scope) % chunk == 0


def _lane_offsets(left: bool, along_depth: bool, chunk: int, registers: int = 4) -> tuple[Expr, Expr]:
    """Row and column, relative to the tile in memory, of the 16 bytes whose address a lane gives.

    Of two matrices only the first 16 lanes' addresses count; the others repeat them.
    """
    lane: Expr = IndexVar(LANE)
    if registers == 2:
        lane = Binary("%", lane, int64(16), DType.INT64)

    def of(op: str, by: int) -> Expr:
        return Binary(op, lane, int64(by), DType.INT64)

    def times(value: Expr, by: int) -> Expr:
        return Binary("*", value, int64(by), DType.INT64)

    if left == along_depth:  # the second matrix is below the first
        return of("%", 16), times(of("//", 16), chunk)
    second = Binary("%", of("//", 8), int64(2), DType.INT64)
    return Binary("+", of("%", 8), times(of("//", 16), 8), DType.INT64), times(second, chunk)


def _shifted(source: Read, row: Expr, column: Expr) -> Read:
    *outer, first, last = source.indices
    moved = (Binary("+", first, row, DType.INT64), Binary("+", last, column, DType.INT64))
    return Read(source.tensor, (*outer, *moved), source.dtype)


def _rounded(registers: list[str], place: Place, scope: Scope) -> list[str]:
    if place.buffer.dtype is not DType.FLOAT32:
        return []
    return [f"{register} = {scope.use('tc_to_tf32')}({register});" for register in registers]


def _load_singly(source: Read, registers: list[str], left: bool, along_depth: bool, scope: Scope) -> list[str]:
    """Each lane reads its own elements, from wherever they are."""
    place = scope.places[source.tensor]
    dtype = place.buffer.dtype
    per_register = 4 // dtype.bytes
    lane = IndexVar(LANE)
    group, quad = (Binary(op, lane, int64(4), DType.INT64) for op in ("//", "%"))
    lines: list[str] = []
    for number, register in enumerate(registers):
        across = number % 2 * 8 if left else number // 2 * 8
        along = (number // 2 if left else number % 2) * 4 * per_register
        parts: list[str] = []
        for k in range(per_register):
            depth = Binary("+", Binary("*", quad, int64(per_register), DType.INT64), int64(along + k), DType.INT64)
            width = Binary("+", group, int64(across), DType.INT64)
            row, column = (width, depth) if along_depth else (depth, width)
            text = element(place, _shifted(source, row, column).indices, scope)
            if dtype is DType.FLOAT32:
                parts.append(f"__float_as_uint({text})")
            else:
                unsigned = "(unsigned char)" if dtype.bytes == 1 else ""
                parts.append(f"(unsigned int){unsigned}{text}" + (f" << {8 * dtype.bytes * k}" if k else ""))
        lines.append(f"{register} = {' | '.join(parts)};")
    return lines + _rounded(registers, place, scope)


def _lanes(threads: int, scope: Scope) -> str:
    """The mask of the lanes that combine their values: only those that are sure to be here together."""
    if threads == FULL_WARP:
        return "0xffffffffu"
    group = f"0x{(1 << threads) - 1:x}u"
    if scope.block_threads == threads:
        return group
    scope.use("tc_lane")
    return f"{group} << (tc_lane() & {FULL_WARP - threads})"


def _reduce(stmt: Intrinsic, scope: Scope) -> list[str]:
    """Shuffles inside a warp; beyond it one element per warp in shared memory."""
    attributes = dict(stmt.attributes)
    op, threads = str(attributes["op"]), int(attributes["threads"])
    if threads % 32 if threads > 32 else threads & (threads - 1):
        raise ValueError(f"reduce_threads over {threads} threads")
    result, terms = stmt.operands
    dtype = scope.places[terms.tensor].buffer.dtype
    compute = dtype.compute if dtype.bits >= 32 or dtype.is_float else DType.INT32
    kind = value_type(compute)
    a, b = Text("a"), Text("b")
    combined = extremum(op, compute, a, b, scope) if op in ("min", "max") else arithmetic(op, compute, a, b, scope)
    combine = f"[]({kind} a, {kind} b) {{ return {combined.text}; }}"
    term = cast(Text(element(scope.places[terms.tensor], terms.indices, scope)), dtype, compute, scope).text
    scope.use("tc_warp_reduce")
    target = scope.places[result.tensor]
    goal = element(target, result.indices, scope)

    def stored(text: str) -> str:
        return f"{goal} = {cast(Text(text), compute, target.buffer.dtype, scope).text};"

    if kind != value_type(dtype.compute):
        term = f"({kind})({term})"
    if is_of_lanes(stmt):
        return [stored(f"tc_warp_reduce<{threads}>({term}, {combine}, {_lanes(threads, scope)})")]
    scope.use("tc_block_reduce")
    groups = scope.block_threads // threads
    scratch = f"__shared__ {kind} scratch[{groups}][{threads // 32}];"
    row = "scratch[0]" if groups == 1 else "scratch[threadIdx.z * blockDim.y + threadIdx.y]"
    return [
        "{",
        f"    {scratch}",
        "    " + stored(f"tc_block_reduce<{threads}>({term}, {combine}, {row})"),
        *(["    __syncthreads();  // the next round writes to it again"] if scope.repeated else []),
        "}",
    ]
