"""The default schedules on a GPU: what they look like, what they compute in the simulator, and that the gate notices weakened copies."""

from __future__ import annotations

import numpy as np
import pytest

from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.program import Program
from tc_jupyter.runtime import cubin, nvrtc
from tc_jupyter.schedule import Schedule, default_schedule, schedule_of
from tests.gpu.cases import ARCHITECTURES, CASES, TARGET, Case, kernels, scheduled
from tests.gpu.simulated import differs, inputs, simulated, wanted
from tests.running import number, program_of

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", CASES)
def test_values_without_findings(name, bits):
    """The simulator computes what the unscheduled program computes on the interpreter, and finds nothing wrong."""
    case = CASES[name]
    program, schedule = scheduled(case, case.small)
    for sizes in case.sizes[: None if bits == 32 else 1]:
        check_values(case, program, schedule, sizes, bits)


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


@pytest.mark.parametrize("name", CASES)
def test_every_template_is_used(name):
    """The text has what its template stands for: vectors, tiles in shared memory, reductions over threads."""
    case = CASES[name]
    _, schedule = scheduled(case)
    text = "\n".join(emit_cuda(each, case.target).text for each in kernels(schedule, dict.fromkeys("BCDEHKMNRSW", 64)))
    assert [word for word in case.words if word not in text] == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_resources(name, arch):
    """Every kernel compiles everywhere; nothing spills and the registers stay inside the template's budget on sm_80 and sm_90."""
    case = CASES[name]
    _, schedule = scheduled(case)
    for each in kernels(schedule, dict.fromkeys("BCDEHKMNRSW", 64)):
        compiled = nvrtc.compile_cuda(emit_cuda(each, case.target).text, arch)
        (found,) = cubin.read_resources(compiled.cubin, compiled.log)
        assert compiled.cubin
        if arch in ("sm_80", "sm_90"):
            assert (found.spill_bytes, found.stack_bytes) == (0, 0)
            assert found.registers <= case.registers


def test_short_rows_belong_to_warps():
    """Where rows are known to be short, a block has eight of them and shuffles combine."""
    _, schedule = scheduled(CASES["softmax"], {"M": 4096, "N": 64})
    (source,) = [emit_cuda(each, TARGET) for each in kernels(schedule, {"M": 4096, "N": 64})]
    assert [number(extent, {}) for extent in source.launch.block] == [32, 8, 1]
    assert "tc_warp_reduce<32>" in source.text


@pytest.mark.parametrize("name", ["product", "softmax", "transpose", "total"])
def test_schedules_are_code(name):
    """A default schedule can be printed and applied again."""
    found = program_of(CASES[name].text)
    assert found is not None
    schedule = default_schedule(*found, TARGET)
    again = schedule.replay(schedule_of(*found).graph)
    assert again.graph == schedule.graph
