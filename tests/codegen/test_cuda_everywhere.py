"""Every program of the cases, the pages, the suites and the example notebooks compiles for every architecture."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cuda_kernels import ARCHITECTURES

import tc_jupyter as tc
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.loops import lower, simplify, verify
from tc_jupyter.runtime import nvrtc
from tc_jupyter.runtime.cuda import cuda_target
from tc_jupyter.schedule import default_schedule, infer_symbolic
from tc_jupyter.schedule.inline import inject_inline
from tests.literate import all_cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available())),
]

ROOT = Path(__file__).parents[2]


def cells_of(notebook: Path) -> list[str]:
    """The bodies of its `%%tc` cells."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [found.group(1) for source in sources if (found := re.match(r"(?:%%\w+.*\n)*%%tc.*\n((?:.|\n)*)", source))]


def texts() -> list[str]:
    """Every program once."""
    notebooks = [text for path in sorted((ROOT / "examples").glob("*.ipynb")) for text in cells_of(path)]
    suites = [
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "tc_jupyter" / "bench" / "suites").glob("*.tc"))
    ]
    cases = [case.program for case in all_cases() if case.language == "tc"]
    return list(dict.fromkeys([*notebooks, *suites, *cases]))


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("number, arch", list(enumerate(ARCHITECTURES)))
def test_every_kernel_compiles(number, arch, half):
    """Every program for one of the architectures."""
    target, kernels = cuda_target(arch), 0
    for text in texts()[number + half * len(ARCHITECTURES) :: 2 * len(ARCHITECTURES)]:
        for found in tc.analyze(text).functions.values():
            if not found.ok:
                continue
            schedule = default_schedule(found.program, found.ranges, target)
            for kernel in lower(infer_symbolic(inject_inline(schedule.graph))):
                source = emit_cuda(verify(simplify(kernel)), target, 32).text
                assert nvrtc.compile_cuda(source, arch).cubin, text
                kernels += 1
    assert kernels > 50
