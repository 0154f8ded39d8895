"""The default schedules on a GPU: what they look like, what they compute in the simulator, and that the gate notices weakened copies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.diagnostics import CompileError
from tc_jupyter.program import Program
from tc_jupyter.runtime import cubin, nvrtc
from tc_jupyter.schedule import Schedule, default_schedule, schedule_of
from tc_jupyter.schedule.templates.gpu import pointwise
from tests.gpu.cases import ARCHITECTURES, CASES, TARGET, Case, kernels, scheduled
from tests.gpu.simulated import differs, executed, inputs, simulated, wanted
from tests.running import number, program_of

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


@pytest.mark.some(24, ci=2)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", CASES)
def test_values_without_findings(name, bits):
    """The simulator computes what the unscheduled program computes on the interpreter, and finds nothing wrong."""
    case = CASES[name]
    program, schedule = scheduled(case, case.small)
    for sizes in case.sizes[: None if bits == 32 else 1]:
        check_values(case, program, schedule, sizes, bits)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["product", "half product"])
def test_values_of_large_tiles(name):
    """The tiles for matrices of unknown size."""
    program, schedule = scheduled(CASES[name])
    sizes = {"M": 130, "N": 136, "K": 72}
    arrays = inputs(program, 1, sizes)
    expected = arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32)
    check_values(CASES[name], program, schedule, sizes, 32, arrays, {"C": expected})


def check_values(
    case: Case,
    program: Program,
    schedule: Schedule,
    sizes: dict[str, int],
    bits: int,
    arrays: dict[str, np.ndarray] | None = None,
    expected: dict[str, np.ndarray] | None = None,
) -> None:
    arrays = inputs(program, 1, sizes) if arrays is None else arrays
    sources = [(each, emit_cuda(each, case.target, bits)) for each in kernels(schedule, sizes)]
    held, findings = simulated(sources, arrays, sizes)
    assert findings == []
    assert differs(program, held, wanted(case, arrays, sizes) if expected is None else expected) == []


@pytest.mark.some(3)
@pytest.mark.parametrize("name", CASES)
def test_every_template_is_used(name):
    """The text has what its template stands for: vectors, tiles in shared memory, reductions over threads."""
    case = CASES[name]
    _, schedule = scheduled(case)
    text = "\n".join(emit_cuda(each, case.target).text for each in kernels(schedule, dict.fromkeys("BCDEHKMNRSW", 64)))
    assert [word for word in case.words if word not in text] == []


BUDGETED = ("sm_80", "sm_90")
"""Where nothing may spill."""


@pytest.mark.some(5, ci=2)
@pytest.mark.parametrize(
    "arch", [arch if arch in BUDGETED else pytest.param(arch, marks=pytest.mark.slow) for arch in ARCHITECTURES]
)
@pytest.mark.parametrize("name", CASES)
def test_resources(name, arch):
    """Every kernel compiles everywhere; nothing spills and the registers stay inside the template's budget on some."""
    case = CASES[name]
    _, schedule = scheduled(case)
    for each in kernels(schedule, dict.fromkeys("BCDEHKMNRSW", 64)):
        compiled = nvrtc.compile_cuda(emit_cuda(each, case.target).text, arch)
        (found,) = cubin.read_resources(compiled.cubin, compiled.log)
        assert compiled.cubin
        if arch in BUDGETED:
            assert (found.spill_bytes, found.stack_bytes) == (0, 0)
            assert found.registers <= case.registers


def test_short_rows_belong_to_warps():
    """Where rows are known to be short, a block has eight of them and shuffles combine."""
    _, schedule = scheduled(CASES["softmax"], {"M": 4096, "N": 64})
    (source,) = [emit_cuda(each, TARGET) for each in kernels(schedule, {"M": 4096, "N": 64})]
    assert [number(extent, {}) for extent in source.launch.block] == [32, 8, 1]
    assert "tc_warp_reduce<32>" in source.text


STENCILS = {
    "stencil": ({"H": 68, "W": 131}, 4.0),
    "stencil in three dimensions": ({"D": 37, "H": 35, "W": 66}, 3.5),
    "box filter": ({"H": 68, "W": 131}, 2.5),
    "stencil with an edge": ({"H": 66, "W": 130}, 3.0),
}
"""Sizes of two large tiles and more, and how many times fewer sectors of global memory their kernels read than plain ones."""


@pytest.mark.some(3)
@pytest.mark.parametrize("name", STENCILS)
def test_stencils_read_global_memory_once(name):
    """Large tiles are right, ask for fewer sectors than the plain kernel, and have hardly any bank conflicts."""
    case, (sizes, factor) = CASES[name], STENCILS[name]
    program, schedule = scheduled(case)
    check_values(case, program, schedule, sizes, 32)
    found = program_of(case.text)
    assert found is not None
    plain = pointwise.default(schedule_of(*found), "Y", case.target, {})
    assert plain is not None
    sectors, fewest, waves = traffic(program, schedule, sizes)
    assert traffic(program, plain, sizes)[0] > factor * sectors
    assert waves < 1.05 * fewest


def traffic(program: Program, schedule: Schedule, sizes: dict[str, int]) -> tuple[float, float, float]:
    """Sectors of global memory that are read; wavefronts of shared memory without bank conflicts, and those that there are."""
    sources = [(each, emit_cuda(each, TARGET)) for each in kernels(schedule, sizes)]
    sites = [site for launch in executed(sources, inputs(program, 1, sizes), sizes)[1] for site in launch.sites]
    loads = [site for site in sites if (site.space, site.kind) == ("global", "load")]
    shared = [site for site in sites if site.space == "shared"]
    return (
        sum(site.sectors_per_request * site.requests for site in loads),
        sum(site.ideal_wavefronts_per_request * site.requests for site in shared),
        sum(site.wavefronts_per_request * site.requests for site in shared),
    )


@pytest.mark.parametrize("text", [
    "def f(float(N) X) -> (Y) { Y(i) = X(i-1) + X(i) + X(i+1) }",
    "def f(float(H,W) X) -> (Y) { Y(i,j) = X(i,j-1) + X(i,j) + X(i,j+1) }",
    "def f(float(H,W) X) -> (Y) { Y(i,j) = X(i+1,j) - X(i,j) }",
    "def f(float(H,W) X, int32(W) I) -> (Y) { Y(i,j) = X(i-1,I(j)) + X(i,I(j)) + X(i+1,I(j)) + X(i+2,I(j)) }",
    "def f(float(H,W) X) -> (Y) { Y(i,j) = X(j,i-1) + X(j,i) + X(j,i+1) }",
    "def f(float(H,W) X) -> (Y) { Y(i,j) = X(max(i-1,0),j) + X(i,j) + X(min(i+1,H-1),j) where i in 0:H, j in 0:W }",
])  # fmt: skip
def test_stencils_that_stay_plain(text):
    """Neighbours in a row, two rows, places by data, rows that are columns, distances that differ."""
    found = program_of(text)
    assert found is not None
    schedule = default_schedule(*found, TARGET)
    assert all(stage.storage.scope != "shared" for stage in schedule.graph.stages if not stage.storage.pad)


@pytest.mark.some(3)
@pytest.mark.parametrize("text", [
    "def f(float(B,C,H,W) X, float(C,3,3) K) -> (Y) { Y(b,c,i,j) +=! X(b,c,i+u,j+v)*K(c,u,v) }",
    "def f(float(B,D,H,W) X) -> (Y) { Y(b,i,j,k) = X(b,i-1,j,k)+X(b,i+1,j,k)+X(b,i,j-1,k)+X(b,i,j+1,k)+X(b,i,j,k-1) }",
    "def f(float(D,H,W) X) -> (Y) { Y(i,j,k) +=! X(i+a,j+b,k+c) where a in 0:3, b in 0:3, c in 0:3 }",
    "def f(double(D,H,W) X) -> (Y) { Y(i,j,k) = X(i-2,j,k)+X(i+2,j,k)+X(i,j-2,k)+X(i,j+2,k)+X(i,j,k-2)+X(i,j,k+2) }",
    "def f(float(H,W) X, float(H,W) K) -> (Y) { Y(i,j) = K(i-1,j)*X(i-1,j) + K(i+1,j)*X(i+1,j) + K(i,j)*X(i,j-1) + X(i,j+1) }",
    "def f(float(H,W) X, float c) -> (Y) { T(a,b) = X(a-1,b)+X(a+1,b)+X(a,b-1)+X(a,b+1)-4.0*X(a,b)\n Y(i,j) = X(i,j) + c*T(i,j) }",
    "def f(float(H,W) X) -> (Y) { T(a,b) = X(a-1,b)+X(a+1,b)\n U(i,j) = T(i-1,j)+T(i+1,j)+T(i,j)\n"
    " Y(i,j) = U(i-1,j)+U(i+1,j)+U(i,j) }",
    "def f(float(H,W) X) -> (Y) { Y(i,j) = 2.0*X(i,j)\n Y(i,j) += X(i-1,j) + X(i+1,j) + X(i,j) where i in 1:H-1, j in 0:W }",
])  # fmt: skip
def test_other_stencils(text):
    """Batches, boxes in three dimensions, wide steps, several inputs, several statements, a result that is added to."""
    case = Case(text, ())
    for known in (None, case.small):
        program, schedule = scheduled(case, known)
        assert any(stage.storage.scope == "shared" for stage in schedule.graph.stages)
        check_values(case, program, schedule, {"B": 2, "C": 2, "D": 11, "H": 12, "W": 37}, 32)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name, small", [("softmax of warps", 0), ("softmax of blocks", 0), ("half softmax of warps", 0), ("norm of two", 1)]
)
def test_rows_are_read_once(name, small):
    """Every element of a row is loaded from global memory once, in whole sectors, and shared memory has no bank conflict.

    `small` tensors of one row are read again for each row.
    """
    case = CASES[name]
    program, schedule = scheduled(case)
    sizes = case.sizes[0]
    arrays = inputs(program, 1, sizes)
    _, launches = executed([(k, emit_cuda(k, case.target)) for k in kernels(schedule, sizes)], arrays, sizes)
    assert [finding for launch in launches for finding in launch.findings] == []
    sites = [site for launch in launches for site in launch.sites]
    rows = math.prod(value for key, value in sizes.items() if key != "N")
    whole = [array.nbytes if array.ndim > 1 else rows * array.nbytes for array in arrays.values()]
    loads = [site for site in sites if (site.space, site.kind) == ("global", "load")]
    assert sum(array.ndim == 1 for array in arrays.values()) == small
    assert sum(site.bytes for site in loads) == sum(whole)
    if sizes["N"] % 32 == 0:
        assert all(site.sectors_per_request == site.ideal_sectors_per_request for site in loads)
    shared = [site for site in sites if site.space == "shared"]
    assert all(site.wavefronts_per_request == site.ideal_wavefronts_per_request for site in shared)


@pytest.mark.some(3)
@pytest.mark.parametrize("most, threads", [(31, 32), (1024, 32), (1023, 32), (2048, 256), (16384, 512), (32768, 1024)])
def test_threads_of_a_row_follow_from_its_longest(most, threads):
    """A warp up to 1024 elements of 32 bits, then blocks; nothing spills, and the registers hold the row."""
    case = replace(CASES["softmax"], most={"N": most})
    _, schedule = scheduled(case)
    (kernel,) = kernels(schedule, {"M": 64, "N": most})
    source = emit_cuda(kernel, TARGET)
    assert number(source.launch.block[0], {}) == threads
    assert "A_cache" in source.text
    for arch in ("sm_80", "sm_90"):
        compiled = nvrtc.compile_cuda(source.text, arch)
        (found,) = cubin.read_resources(compiled.cubin, compiled.log)
        assert (found.spill_bytes, found.stack_bytes) == (0, 0)


def test_a_block_of_one_row_needs_no_barrier_for_a_next_one():
    """Only those of the two reductions, inside the function that they call."""
    made = kernels(scheduled(CASES["softmax of blocks"])[1], {"M": 2, "N": 2048})
    body = emit_cuda(made[0], TARGET).text.partition('extern "C"')[2]
    assert "__syncthreads" not in body
    assert body.count("tc_block_reduce<256>(") == 2


def test_a_padded_copy_tests_what_its_loops_leave_open():
    """Batch and row are parts of one fused loop and always exist; channels and columns come in tiles."""
    sizes = dict.fromkeys("BMCHWK", 32) | {"R": 3, "S": 3}
    (made,) = kernels(scheduled(CASES["group convolution"])[1], sizes)
    tests = [line for line in emit_cuda(made, TARGET).text.split("\n") if "const bool inside" in line]
    assert [line.count("&&") for line in tests] == [1, 1, 1, 1]
    assert [word for line in tests for word in ("< B", "< H", "floor") if word in line] == []


@pytest.mark.slow
def test_a_window_beyond_the_border_is_copied_for_tiles():
    """The condition is in the kernel of the copy; the convolution has its tiles in shared memory."""
    text = (
        "def f(float(B,C,H,W) X, float(O,C,3,3) K) -> (Y) { Y(b,o,h,w) +=! (h+p>0 && h+p<=H && w+q>0 && w+q<=W ? "
        "X(b,c,h+p-1,w+q-1) : 0) * K(o,c,p,q) where h in 0:H, w in 0:W, p in 0:3, q in 0:3 }"
    )
    case = replace(CASES["convolution"], text=text)
    program, schedule = scheduled(case)
    assert schedule.stages[0] == "X.cache"
    sizes = {"B": 2, "C": 3, "H": 9, "W": 11, "O": 5}
    check_values(case, program, schedule, sizes, 32)
    copy, tiles = (emit_cuda(each, case.target).text for each in kernels(schedule, sizes))
    assert "? X[" in copy
    assert "__shared__" in tiles
    assert "? X_cache[" not in tiles


@pytest.mark.parametrize("end", ["(M < 3 ? M : 3)", "(s < 3 ? s : 3)", "(2 < s ? 3 : s)", "min(M, 3)"])
def test_a_fold_whose_length_is_known_to_be_small(end):
    """`min(8, E)` is `E` where that is proved, and has to stay as small: the parts of a block are in shared memory."""
    product = "reduce times(float a, float b, float c, float d) = (a*c - b*d, a*d + b*c) from (1, 0) with x -> (x, 1)\n"
    head = "def f(float(M) X, float(N, M) A, int32 s) -> (P, Q, R, S) "
    body = f"{{ P, Q times=! X(i) where i in 0:{end} R(n), S(n) times=! A(n, i) where n in 0:{end}, i in 0:{end} }}"
    f = tc.compile(product + head + body, target="cuda", allow=["TC322", "TC234"]).f
    found = f.simulate(np.float32([2, 3, 4, 5]), np.ones((4, 4), np.float32), 3)
    assert found.findings == ()
    p, q, r, s = found.outputs
    assert complex(p, q) == (2 + 1j) * (3 + 1j) * (4 + 1j)
    assert [complex(*each) for each in zip(r, s, strict=True)] == [(1 + 1j) ** 3] * 3


def test_longer_rows_are_read_again():
    """Beyond what registers hold nothing is kept, and no size is limited."""
    _, schedule = scheduled(replace(CASES["softmax"], most={"N": 1 << 16}))
    assert schedule.graph.most == ()
    assert "A.cache" not in schedule.stages


def test_an_element_of_another_thread_is_refused():
    """What a thread keeps, no other thread can read."""
    found = program_of("def f(float(N) X) -> (O) { O(i) = X(i) + X(63 - i) where i in 0:64 }")
    assert found is not None
    schedule = schedule_of(*found).split("O", "i", 32).bind("O", "i.outer", "blockIdx.x").cache_read("X", "O")
    schedule = schedule.compute_at("X.cache", "O", "i.outer").storage("X.cache", "threads", layout=((0, 32), (0, 0)))
    schedule = schedule.split("X.cache", "i", 32).bind("X.cache", "i.inner", "threadIdx.x")
    schedule = schedule.bind("O", "i.inner", "threadIdx.x")
    (kernel,) = kernels(schedule, {"N": 64})
    with pytest.raises(CompileError, match="another thread holds"):
        emit_cuda(kernel, TARGET)


@pytest.mark.parametrize(
    "name", ["product", "softmax", "softmax of warps", "transpose", "total", "stencil in three dimensions"]
)
def test_schedules_are_code(name):
    """A default schedule can be printed and applied again."""
    found = program_of(CASES[name].text)
    assert found is not None
    schedule = default_schedule(*found, TARGET, None, CASES[name].most)
    again = schedule.replay(schedule_of(*found).graph)
    assert again.graph == schedule.graph
