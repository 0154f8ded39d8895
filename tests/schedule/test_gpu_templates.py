"""The default schedules on a GPU: what they look like, what they compute in the simulator, and that the gate notices weakened copies."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.loops import Kernel
from tc_jupyter.program import DType, Program
from tc_jupyter.runtime import cubin, nvrtc
from tc_jupyter.schedule import default_schedule, schedule_of
from tc_jupyter.simulator import GlobalArray, SimulationError, simulate
from tests.gpu.cases import ARCHITECTURES, CASES, TARGET, kernels, scheduled
from tests.running import number, program_of, run
from tests.strategies import arguments

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


def stored(array: np.ndarray) -> np.ndarray:
    return (array.view(np.uint16) if array.dtype == np.float16 else array).copy()


def simulated(
    sources: list[tuple[Kernel, KernelSource]], arrays: dict[str, np.ndarray], sizes: dict[str, int]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """All arrays after all kernels, and the kinds of findings. Memory that nobody has written holds a marker."""
    held = {name: stored(array) for name, array in arrays.items()}
    findings: list[str] = []
    for kernel, source in sources:
        for buffer in kernel.buffers:
            if buffer.name not in held:
                kind = np.uint16 if buffer.dtype in (DType.FLOAT16, DType.BFLOAT16) else buffer.dtype.value
                held[buffer.name] = np.full([max(0, number(e, sizes)) for e in buffer.shape], 77, kind)
        roles = {buffer.name: buffer.role for buffer in kernel.buffers}
        passed: list[object] = []
        for argument in source.arguments:
            if argument.kind == "buffer":
                role = roles[argument.name]
                passed.append(GlobalArray(argument.name, held[argument.name], role != "input", role != "output"))
            elif argument.kind == "size":
                passed.append(sizes[argument.name])
            else:
                assert argument.kind == "scalar"
                passed.append(held[argument.name].item())
        grid, block = (tuple(number(e, sizes) for e in each) for each in (source.launch.grid, source.launch.block))
        ptx = nvrtc.compile_cuda(source.text, "compute_80").ptx
        result = simulate(ptx, source.entry, grid, block, passed, source.launch.shared)  # type: ignore[arg-type]
        findings += [finding.kind for finding in result.findings]
    return held, findings


def differs(program: Program, held: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> list[str]:
    """Results that are not what the plain loops compute."""
    wrong: list[str] = []
    for name in program.results:
        want = expected[name]
        got = held[name].view(np.float16) if want.dtype == np.float16 else held[name]
        tolerance = 1e-2 if want.dtype == np.float16 else 2e-5
        if not np.allclose(got, want, rtol=tolerance, atol=tolerance):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", CASES)
def test_values_without_findings(name, bits):
    """The simulator computes what the unscheduled program computes on the interpreter, and finds nothing wrong."""
    case = CASES[name]
    program, schedule = scheduled(case.text)
    found = program_of(case.text)
    assert found is not None
    for sizes in case.sizes[: None if bits == 32 else 1]:
        arrays = arguments(program, 1, sizes)
        expected = run(schedule_of(*found), dict(arrays), sizes)
        sources = [(each, emit_cuda(each, TARGET, bits)) for each in kernels(schedule, sizes)]
        held, findings = simulated(sources, arrays, sizes)
        assert findings == []
        assert differs(program, held, expected) == []


@pytest.mark.parametrize("name", CASES)
def test_every_template_is_used(name):
    """The text has what its template stands for: vectors, tiles in shared memory, reductions over threads."""
    case = CASES[name]
    _, schedule = scheduled(case.text)
    text = "\n".join(emit_cuda(each, TARGET).text for each in kernels(schedule, dict.fromkeys("BCDEHKMNRSW", 64)))
    assert [word for word in case.words if word not in text] == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_resources(name, arch):
    """Every kernel compiles everywhere; nothing spills and the registers stay inside the template's budget on sm_80 and sm_90."""
    _, schedule = scheduled(CASES[name].text)
    for each in kernels(schedule, dict.fromkeys("BCDEHKMNRSW", 64)):
        compiled = nvrtc.compile_cuda(emit_cuda(each, TARGET).text, arch)
        (found,) = cubin.read_resources(compiled.cubin, compiled.log)
        assert compiled.cubin
        if arch in ("sm_80", "sm_90"):
            assert (found.spill_bytes, found.stack_bytes) == (0, 0)
            assert found.registers <= CASES[name].registers


def test_short_rows_belong_to_warps():
    """Where rows are known to be short, a block has eight of them and shuffles combine."""
    _, schedule = scheduled(CASES["softmax"].text, {"M": 4096, "N": 64})
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


# --- weakened copies -------------------------------------------------------------------------------------------------

WEAKER = (
    (r"__syncthreads\(\);", ""),
    (r"if \([^\n{]* < [^\n{]*\) \{", "if (true) {"),
    (r" = [^\n;?]* < [^\n;?]* \? ([^;:]*) : 0\.0f;", r" = \1;"),
    (r"^( +)(\w+(?:\[\w+\])*) = (?:0\.0f|__int_as_float\(0xff800000\));", r"\1;"),
    (r"\* N \+", "* (N + 1) +"),
    (r"\* K \+", "* (K + 1) +"),
    (r"\* M \+", "* (M + 1) +"),
    (r"\[33\]", "[31]"),
    (r"min\(([^,()]*), ([2-9]\d*)\)", r"\2"),
)
SMALL = {
    "product": [{"M": 4, "N": 6, "K": 12}, {"M": 129, "N": 5, "K": 8}],
    "transpose": [{"M": 40, "N": 37}],
    "softmax": [{"M": 3, "N": 301}],
    "total": [{"N": 9000}],
    "axpy": [{"N": 2053}],
    "fused": [{"M": 21, "N": 39}],
}


def mutants(text: str) -> list[tuple[str, str]]:
    """Every single change inside the kernel, with a name."""
    start = text.index('extern "C"')
    found: list[tuple[str, str]] = []
    for pattern, by in WEAKER:
        for count, match in enumerate(re.finditer(pattern, text[start:], re.MULTILINE)):
            if "//" in text[text.rindex("\n", 0, start + match.start()) : start + match.start()]:
                continue
            changed = text[: start + match.start()] + match.expand(by) + text[start + match.end() :]
            found.append((f"{pattern} #{count}", changed))
    return found


@pytest.mark.parametrize("name", SMALL)
def test_every_weakened_copy_is_caught(name):
    """One barrier, guard, start value or stride less: the gate finds something, or the result is wrong."""
    program, schedule = scheduled(CASES[name].text)
    found = program_of(CASES[name].text)
    assert found is not None
    survivors: list[str] = []
    total = 0
    runs = []
    for sizes in SMALL[name]:
        arrays = arguments(program, 1, sizes)
        runs.append((sizes, arrays, run(schedule_of(*found), dict(arrays), sizes)))
    for place in range(len(kernels(schedule, SMALL[name][0]))):
        text = emit_cuda(kernels(schedule, SMALL[name][0])[place], TARGET).text
        for label, _ in mutants(text):
            total += 1
            if not any(_caught(program, schedule, place, label, *one) for one in runs):
                survivors.append(f"{place}: {label}")
    assert total > 0
    assert survivors == []


def _caught(program, schedule, place, label, sizes, arrays, expected) -> bool:
    sources = [(each, emit_cuda(each, TARGET)) for each in kernels(schedule, sizes)]
    changed = dict(mutants(sources[place][1].text)).get(label)
    if changed is None:
        return False
    sources[place] = (sources[place][0], replace(sources[place][1], text=changed))
    try:
        held, findings = simulated(sources, arrays, sizes)
    except (nvrtc.BackendError, SimulationError):
        return True
    return bool(findings) or bool(differs(program, held, expected))
