"""The numbers that were chosen: each with its unit, what it is for and what was measured.

The schedules (`templates`, `space`) and the code for CPUs (`codegen.llvm`) take them from here, and have none of their own. What a
device *is* (a cache line, a warp) stands in `target`. Where two places need a number for the same reason, they share it.

Worked example: a product is cut into tasks of `ROWS_TOGETHER` tiles; a row of up to `TOLD_APART` elements is a class of its own.
"""

from __future__ import annotations

from .target import GPU_LINE_BYTES, VECTOR_BYTES, WARP

# --- what counts as few, some, many -----------------------------------------------------------------------------------

FEW = 8
"""Iterations, rows or elements. So many are written out, are constants of the code (windows), or are part of a tile. So few rows
of a product do not pay for a packed operand, leave most of a tile of a GPU idle, or are none for a matrix step, whose operands
are to be used so often. Rows of fewer do not pay for vectors of them: AVX-512, two threads, `X(b,i,c) * w(c)` of `float` rows of
1 1.2 to 2.5 of the time, of 2 1.3 to 1.7, of 4 0.5 to 1.1; of `uint8` rows of 4 3.6, of 8 0.4. Fewer steps of a thread of a GPU
are not worth a second kernel."""
EXPONENT = 16
"""Factors of a power that is products, at most. Measured with AVX-512 (Zen 5), one thread, 100,000 `float`: `pow` 54 us, x^2.5 so
6, x^7.5 17."""
ONCE_IN = 16
"""Iterations. What is done once for so many of them costs little beside them: a slow last tile of a row, turning an operand
around, combining the parts of a scatter for each of its points, rows that two chunks read, a part of a row with tests, items of a
batch that are work for all threads, the rows that a task packs."""
TOLD_APART = 64
"""Elements, rows. Up to here sizes are told apart; above, whether they are multiples of it is what matters for a tile. Rows of up
to so many are short: they are not split at their borders, and products of so few rows are one task, which packs its own operands.
Measured with AVX-512, one thread, a stencil split at its borders over one loop with tests: rows of 7 elements 2.9, of 30 1.0, of
56 1.2, of 100 0.9, of 1000 and more 0.6."""
FEW_ROWS = 256
"""Rows, elements. Up to so many rows of a product a task is some columns of all of them, and packs them for itself: in the second
cache they need not go to memory and back. Rows of fewer elements are read from there as fast as from a copy, but for multiples of
64, which are read from few sets of it."""
PIECE = 256
"""Elements of a row that one task makes, where nothing else cuts it, or collects before they are turned around. Measured with
AVX-512, one thread, lengths of 40,000 points: 57 us with tasks of one element each, 10 so."""
LONG = 512
"""Elements. Rows up to here stay in one piece: where a window goes along them in wider steps (AVX-512, one thread, over oneDNN: 3
x 3 in steps of 2, 64 channels of 112 x 112 to 64 1.66 and 1.02, 3 channels of 113 x 113 to 20 6.7 and 0.63); where an extreme and
its place are found one after the other (over the maximum alone, so and in one pass: rows of 256 2.2 and 3.3, of 500 2.2 and 2.4,
of 1000 2.2 and 2.0, of 32768 2.2 and 0.9); columns of a task that adds the sums of others."""
BLOCK = 1 << 10
"""Elements of a block of a row: where the place of an extreme is looked for, and where a search stops. So large that a reduction
of blocks takes about as long as one without; a reduction of fewer is not worth a second kernel."""
PART = 1 << 13
"""Elements of a part of a long reduction or scatter: it stays in the first cache of a CPU, and is 32 loads of each thread of a
GPU's block."""
PART_LINES = 64
"""Rows of such a part where there are other indices; elements that are looked at before the next test whether a place is
found."""
UNKNOWN_SIZE = 1 << 22
"""Elements. Stands for a size that is not known: what counts is how many indices one statement has more than another."""
FEW_RESULTS = UNKNOWN_SIZE // 2
"""Elements. So many results of a sum, in tiles or alone, fill every GPU, and no sum is shared."""
LONGEST_ROW = 1 << 15
"""Elements of a row that may stay in the registers of a block."""

# --- CPU: registers ---------------------------------------------------------------------------------------------------

ABREAST = 4
"""Rows, vectors or sums that go through a loop together: two units with a latency of four cycles are busy, and the registers are
enough. Measured with AVX2, one thread: sums with sums of squares, and a maximum with its position, 0.8 of the time of two rows; a
vector by a matrix of 1023 x 1023, rows x vectors: 4 x 4 77 us, 8 x 2 94, 4 x 2 89, 4 x 8 102, 2 x 4 82. With AVX-512, a signal of
10^6 and a window of 64: 4.1 ms one step at a time, 1.65 four. A chain of 20 statements on single elements in pieces of 1, 2, 4, 8
and 32 vectors: 0.28, 0.25, 0.22, 0.35 and 0.41 ms."""
IN_FLIGHT = 2
"""Vectors that are read before the first is used."""
VECTOR_REGISTERS = 8
"""Registers of a loop that is printed as one vector, at most; lines of an operand that is turned around in registers. Longer
loops are cut."""
MOST_POINTERS = 9
"""Rows of a product that are read where they lie at a time: more pointers than general registers hold are fetched from the
stack."""
REGISTER_FILE = 4 << 10
"""Bytes of accumulators that are kept in registers, as many of them as there are."""
SCAN_BITS = 256
"""Bits of the vectors of a running operation: the steps of wider ones are more, and halves of them are done side by side
anyway."""
OVERLAPPING = 2
"""Vectors from which on those of a row overlap where masks cost nothing. Measured with AVX-512, one thread, choices at the
borders: rows of 40 to 60 elements take 0.5 to 0.8 of the time of vectors that overlap, rows of 64 and more 0.9 to 1.1."""

# --- CPU: tiles and copies --------------------------------------------------------------------------------------------

EDGE = 64
"""Rows and columns of a tile that is turned around, or on an anti-diagonal. Measured with AVX-512, 1024 x 1024 `double`, a root
per element, over the loops as they are written, one thread and two: 64 x 64 0.71 and 0.39, 32 x 256 0.98 and 0.52, 64 x 256 0.96
and 0.52."""
ROWS_TOGETHER = 8
"""Rows of a tile of a stencil (see `TILE_BYTES`); tiles of rows of a product in one task, if there are enough tasks."""
TILE_BYTES = 512
"""Bytes of a row of such a tile. Measured with AVX-512 (Zen 4), 5 points, 4096 x 4096, one and two threads: row by row 7.6 and
3.9 ms, tiles of 4 rows by 256 bytes 5.6 and 3.0, of 8 by 512 5.3 and 3.1, of 6 by 1024 5.8 and 3.2; up to the edge 8.6 and 4.2,
6.1 and 3.1, 5.5 and 3.0, 7.0 and 3.4. A program in C takes 4.5 and 2.6, a copy past the caches 3.4 and 2.6."""
PLANES = 3
"""Planes of a stencil in three dimensions at a time. Measured with AVX-512 (Zen 4), one thread, 7 points, over the time of rows
one by one: 256 x 256 x 256 with 2, 3 and 4 planes 0.79, 0.70 and 0.74; 128 x 512 x 512 0.97, 0.88 and 1.02; 64 x 1024 x 1024,
whose planes are 4 MB apart, 1.02, 1.01 and 1.26; 27 points of 256 x 256 x 256 0.63, 0.56 and 0.58. With AVX2 code 3 planes take
0.66 and 0.75 (500 x 100 x 100). Two vectors of each gain nothing."""
LINE_COLUMNS = 4096
"""Columns of one task of a product with a vector: so much of every row of the matrix is read at a time, and half of a first cache
holds their sums. Measured with AVX2, 4096 x 4096, one thread: 4.6 ms with 512 columns, 3.1 with 1024, 2.4 with 4096."""
LINES_OF_TASK = 128
"""Rows of such a task."""
ROW_VECTORS = 512
"""Vectors of a row of running values that one task takes, where values are little work: of `float` 32 kB. Measured with AVX-512,
one thread, running sums over columns, over the time of a copy: 1024 x 1024 by 64 columns 3.2, by 256 1.8, by 1024 and more 1.3;
4096 x 8192 by 64 2.8, by 1024 1.6, by 4096 1.4, by 8192 0.87. What is read next lies in another page of memory in all but the
last."""
ROWS_IN_FLAT_TILES = 31
"""Rows. Up to so many a single product is read where it lies without free masks. Measured with AVX2, over packed operands: 17 x
1023 x 127 0.97, 3 x 1000 x 40 0.5, but 64 x 1023 x 127 1.25 and 64 x 1024 x 255 1.4, as the column operand is read for every 4
rows."""
TURNING = 1.1
"""Factor: what turning a row of the result around costs."""
LEAST_PRODUCTS = 1 << 17
"""Products of matrix steps: fewer are over in a few microseconds, which two more kernels take as well."""
CACHED = 1 << 17
"""Elements of a part of a scatter: more do not stay in a cache."""
MOST_COPIED = 1 << 12
"""Elements of all copies of the target of a scatter: more would not stay in the first cache, and combining them would take as
long as the points do."""
COPIES = 8
"""Copies of that target, for neighbouring points. Measured with AVX-512, one thread, 10^6 points, 256 bins: with nine of ten
points in one bin 1.5 ms without copies and 0.35 with them; with all bins alike 0.32 and 0.32."""
FACTOR_REUSE = 4
"""Points of a product of matrices that take as long as one of a plain sum: 2048 distances by a matrix of 32 x 32 took 7 times as
long as in two statements."""
USES = 8
"""Times that a value of little work (half as often: a function) has to be used to be computed once before a product. Measured
with AVX-512 on two threads: matrices of 512 x 512, each element divided, times 2 or 4 vectors take twice as long with a copy."""

# --- CPU: memory ------------------------------------------------------------------------------------------------------

AHEAD = 6 << 10
"""Bytes that are under way: a fraction of the first cache, and enough to cover the way to memory."""
AHEAD_OF_ROW = 2 << 10
"""Bytes ahead of a reduction over long rows: across the ends of pages, where the processor's own guesses stop, and across those
of rows, whose first elements come while the rest of a statement (a softmax) still computes. Measured with AVX-512, one thread, on
an Intel processor: sums of 64 MB 9.8 GB/s without, 10.0 at 512 bytes, 11.7 at 4 kB, 11.9 at 8 kB; on one of AMD, sums and sums of
squares of four rows at a time, over the time with one row fetched 4 kB ahead: all four rows 1 kB ahead 0.95, 2 kB 0.90, 4 kB
0.99, 8 kB 1.07, and softmax on two threads 1.0, 1.0, 1.0 and 1.6."""
AHEAD_OF_WORK = 512
"""Bytes ahead of what a statement reads whose elements take long to compute."""
FETCHES = 8
"""Lines of a vector, or rows, that an iteration fetches at most."""
STACK_BYTES = 16 << 10
"""Bytes of the largest temporary on the stack; all together take four times this: other threads have small stacks."""

# --- CPU: tasks -------------------------------------------------------------------------------------------------------
# An operation is one of a vector: about a third of a nanosecond.

GRAIN = 30_000
"""Operations of a task, below which handing it out costs more than it saves (about 10 microseconds)."""
ALONE = 45_000
"""Operations below which a launch is one task: handing a part of it to another thread takes longer than the work."""
BRIEF = 180_000
"""Operations below which no thread is woken for a launch, which takes longer than the work; threads that are awake help."""
ROUND = 4 * GRAIN
"""Operations of the smallest round of a serial loop that threads share, 40 microseconds of one thread; to begin one takes about
5."""
INTERRUPTED = 4_000_000
"""Operations of a part of a serial loop, after which it is looked whether Python was interrupted: 2 to 20 milliseconds."""
OVERHEAD = 8
"""Operations that starting and leaving a loop costs, or writing a line to memory that all tasks see, on its way to the second
cache."""
MOVED = 16
"""Bytes that come from the outer caches while one operation is done: a matrix of 4 MB times a vector takes 180 us."""
UNKNOWN_LENGTH = 16
"""Iterations of a loop, or elements of a dimension, where sizes do not say it."""
MOST_TASKS = 512
"""Tasks of one launch: 8 for each of 64 threads. It does not depend on the threads, so results are reproducible."""
TASKS_PER_THREAD = 4
"""Tasks of a product for each thread, so that they end together."""
SHARES = 32
"""Tasks of a round, and so chunks at most, which do not depend on the threads: of the smallest round, more than a microsecond
each."""
PARTS = 16
"""Results that are so few that a long sum is done in parts; parts where the number of elements is known at the call only."""
JOINED = 2
"""Threads that do not find an extreme and its place sooner in parts of a row, which both have to read, than one does in one
pass."""
STEPS_TOGETHER = 16
"""Steps that are done at a time, at most. Not swept: 100 of 4096 x 4096 `float` took 0.5 of the time of calls, on two threads."""

# --- how much code is made, and how long is looked for it -------------------------------------------------------------

MOST_STEPS = 40
"""Multiply-adds of vectors in an unrolled loop body. Measured with AVX2: a convolution of 32 groups, whose body has 72 or 24 of
them, takes 0.99 of the time with 72, but 1.45 times as long to compile."""
MOST_UNROLLED = 128
"""Iterations of `unroll` loops that are written out."""
VERSIONS = 4
"""Parts of a row, or versions of a loop, that are printed apart: more conditions stay tests. Ends of loops that are tried."""
TERMS = 16
"""Terms of an expression that is compared or multiplied out; ends of a loop that are looked for."""
NODES = 256
"""Nodes of an expression that others are written into: a statement that squares the one before it doubles them. Stages of a def
whose temporaries are looked at: every step looks at all of them, and 200 take a second."""

# --- GPU: blocks ------------------------------------------------------------------------------------------------------

THREADS = 256
"""Threads of a block: enough to hide latency, a multiple of the warp. Elements of a row that a warp reduces alone, or that one
thread goes through in order."""
WARPS = THREADS // WARP
"""Warps of such a block, each of which may have a row of its own."""
BLOCKS = (WARP, THREADS, 2 * THREADS, 4 * THREADS)
"""Threads that may share a row."""
ORDERED_THREADS = 2 * WARP
"""Threads of a block, each of which goes through the steps of a row of its own."""
LINE_THREADS = GPU_LINE_BYTES // VECTOR_BYTES
"""Threads along columns that read whole lines of memory, of vectors."""
STAGES = 3
"""Tiles in shared memory at once: one is read while copies of two are under way; of 64-bit elements there are two tiles. A part
of a product has more tiles than these, or it does not fill the pipeline."""
KEPT_BYTES = 128
"""Bytes of registers that a thread may spend on its part of a row."""
STENCIL_REGISTERS = 48
"""Elements of 32 bits that a thread of a stencil may keep: with the rest of a kernel they stay below 64 registers, four blocks at
once."""
STENCIL_BLOCKS = 512
"""Blocks that keep a large device busy; smaller tiles are used until there are so many."""
STENCIL_PAYS = 2
"""Factor of sectors that a tile in shared memory must save: it costs a barrier, and every element is written and read once
more."""
STENCIL_POINTS = 1024
"""Points of a stencil that is looked at."""

# --- GPU: cycles of a kernel, for `gpu.shared_sums` -----------------------------------------------------------------------

START = 3000
"""Cycles until the first values have come from memory."""
LAUNCH = 9000
"""Cycles that a further kernel takes beside its work, on the device and before it: 5 us."""
UNHIDDEN = 1.15
"""Factor of work where no other block hides the waits of a block. Measured on an H200: 128 x 16384 x 4096 in 32 tiles of 128 x
128 reached 0.57 of the multiply-adds that these 32 multiprocessors can do, 4096 x 4096 x 4096 0.66 of those of all."""
EVEN = 4
"""Blocks per multiprocessor, from which on it does not matter that some get one more."""
STEP = 100
"""Cycles of a barrier and of the copies into the next tile, which a block does not hide by itself."""
WAIT = 175
"""Cycles per load of a thread: it waits for several at a time."""
BYTES_PER_CYCLE = 20
"""Bytes per cycle and multiprocessor that come from memory."""
COMBINING = 300
"""Cycles in which the threads of a block combine what they have: barriers, and a few loads."""
PER_PART = 30
"""Cycles for each value that one thread reads of the others."""
