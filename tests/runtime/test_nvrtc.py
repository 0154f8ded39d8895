from __future__ import annotations

import pytest

from tc_jupyter.diagnostics import SourceText, Span
from tc_jupyter.runtime import nvrtc

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

SCALE = 'extern "C" __global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2.0f; }\n'


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100"])
def test_a_real_architecture_gives_ptx_and_machine_code(arch):
    compiled = nvrtc.compile_cuda(SCALE, arch)
    assert f".target {arch}" in compiled.ptx
    assert ".entry scale(" in compiled.ptx
    assert compiled.cubin[:4] == b"\x7fELF"
    assert "registers" in compiled.log


def test_a_virtual_architecture_gives_ptx_only():
    compiled = nvrtc.compile_cuda(SCALE, "compute_80")
    assert ".target sm_80" in compiled.ptx
    assert compiled.cubin == b""


def test_equal_texts_give_equal_results():
    assert nvrtc.compile_cuda(SCALE, "sm_80") == nvrtc.compile_cuda(SCALE, "sm_80")


def test_subnormals_are_kept_and_division_is_precise():
    text = 'extern "C" __global__ void f(float* x) { x[0] = x[1] / x[2] + sqrtf(x[3]); }'
    ptx = nvrtc.compile_cuda(text, "sm_80").ptx
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx
    assert ".ftz" not in ptx


def test_fast_math_is_a_choice():
    text = 'extern "C" __global__ void f(float* x) { x[0] = x[1] / x[2]; }'
    assert "div.rn" not in nvrtc.compile_cuda(text, "sm_80", options=nvrtc.FAST_MATH).ptx


def test_a_mistake_on_a_line_of_the_cell_is_labelled_there():
    cell = SourceText("def f() {\n  A(i) = B(i)\n  C(i) = D(i)\n}\n")
    text = 'extern "C" __global__ void f(float* x) {\n#line 3 "cell"\n  x[0] = y;\n}\n'
    with pytest.raises(nvrtc.BackendError) as caught:
        nvrtc.compile_cuda(text, text=cell)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code.number == "TC903"
    assert cell.slice(diagnostic.span) == "  C(i) = D(i)"
    assert "identifier" in diagnostic.message


def test_a_mistake_elsewhere_has_no_span():
    with pytest.raises(nvrtc.BackendError) as caught:
        nvrtc.compile_cuda("void f(", text=SourceText("a\nb\nc\n"))
    assert caught.value.diagnostic.span == Span(0, 0)


def test_inline_ptx_is_refused_by_the_cubin_step():
    with pytest.raises(nvrtc.BackendError, match="Not a name of any known instruction") as caught:
        nvrtc.compile_cuda('extern "C" __global__ void f() { asm volatile("foo.bar;"); }')
    assert "ptxas" in caught.value.log


def test_an_unknown_architecture_lists_the_known_ones():
    with pytest.raises(nvrtc.BackendError) as caught:
        nvrtc.compile_cuda(SCALE, "sm_20")
    assert "sm_20" in caught.value.diagnostic.message
    assert "sm_90" in (caught.value.diagnostic.help or "")


def test_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setattr(nvrtc, "find_spec", lambda name: None)
    nvrtc._load.cache_clear()
    try:
        assert "tc_jupyter[check]" in str(nvrtc.available())
        with pytest.raises(nvrtc.BackendError, match="tc_jupyter"):
            nvrtc.compile_cuda(SCALE)
    finally:
        monkeypatch.undo()
        nvrtc._load.cache_clear()
