from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.codegen.llvm import emit_llvm
from tc_jupyter.loops import Block, Buffer, For, Kernel, Store
from tc_jupyter.program import Binary, Call, Const, DType, IndexVar, Read, Size, int64
from tc_jupyter.runtime import cpu, jit, threads
from tc_jupyter.runtime.cache import DiskCache
from tc_jupyter.runtime.launch import LoadedKernel
from tc_jupyter.runtime.nvrtc import BackendError
from tc_jupyter.schedule import Target
from tests.running import cpu_with

F32 = DType.FLOAT32
i, N = IndexVar("i"), Size("N")


def scale(value=None) -> Kernel:
    value = value or Binary("*", Read("A", (i,), F32), Const(2.0, F32), F32)
    store = For("i", int64(0), N, Block((Store("Y", (i,), value),)), "parallel")
    buffers = (Buffer("A", F32, (N,)), Buffer("Y", F32, (N,), role="output"))
    return Kernel("scale", buffers, ("N",), (), Block((store,)), ("Y",))


def run(loaded: LoadedKernel, values: list[float]) -> list[float]:
    a = (ctypes.c_float * len(values))(*values)
    y = (ctypes.c_float * len(values))()
    slots = (ctypes.c_int64 * 3)(ctypes.addressof(a), ctypes.addressof(y), len(values))
    loaded.run(slots)
    return list(y)


def test_the_target_is_chosen_by_features():
    target = cpu.cpu_target()
    assert target.kind == "cpu"
    assert target.features == frozenset(jit.host()[2])
    assert target.arch == jit.host()[0]
    assert cpu_with("baseline").vector_bits == 128
    assert cpu_with("avx2").vector_bits <= 256
    assert cpu.cpu_target().threads == threads.get_threads()


def test_an_object_is_kept_and_a_broken_one_is_rebuilt(tmp_path, monkeypatch):
    cache = DiskCache(tmp_path / "c")
    source = emit_llvm(scale(), cpu.cpu_target())
    assert run(cpu.load(source, cache), [1, 2]) == [2, 4]
    (entry,) = cache.folder.glob("*.tcx")
    entry.write_bytes(b"broken")
    assert run(cpu.load(source, cache), [3, 4]) == [6, 8]

    def forbidden(*_):
        raise AssertionError("compiled although the object is in the cache")

    monkeypatch.setattr(jit, "emit_object", forbidden)
    assert run(cpu.load(source, cache), [5, 6]) == [10, 12]


def test_a_second_process_loads_instead_of_compiling(tmp_path):
    script = """
import sys
sys.path[:0] = [{tests!r}]
import test_cpu as t
from tc_jupyter.runtime import jit
if {forbidden}:
    jit.emit_object = None
loaded = t.cpu.load(t.emit_llvm(t.scale(t.Call("lgamma", (t.Read("A", (t.i,), t.F32),), t.F32)), t.cpu.cpu_target()), t.DiskCache(t.Path({folder!r})))
print(t.run(loaded, [3.0, 1.0]))
"""
    for forbidden in (False, True):
        text = script.format(tests=os.path.dirname(__file__), forbidden=forbidden, folder=str(tmp_path / "c"))
        text = text.replace("t.Path(", "__import__('pathlib').Path(")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TC_JUPYTER_CACHE": str(tmp_path / "c")}
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, timeout=600, env=environment
        )
        assert done.stdout.strip() == "[0.6931471824645996, 0.0]", done.stderr


def test_refused_text_is_a_diagnostic():
    with pytest.raises(BackendError) as caught:
        jit.emit_object("define nonsense")
    assert caught.value.diagnostic.code.number == "TC903"


def test_a_function_without_library_names_the_extra(monkeypatch):
    source = emit_llvm(scale(Call("erfcinv", (Read("A", (i,), F32),), F32)), cpu.cpu_target())
    monkeypatch.setattr(jit, "_scipy_address", lambda name: 0)
    jit._resolve.cache_clear()
    with pytest.raises(BackendError) as caught:
        cpu.load(source)
    assert caught.value.diagnostic.code.number == "TC503"
    assert "scipy" in caught.value.diagnostic.help


def test_assembly_of_the_text():
    text = jit.assembly(emit_llvm(scale(), cpu.cpu_target()).text)
    assert "scale.task:" in text


def test_many_tasks_for_any_number_of_threads():
    source = emit_llvm(scale(), cpu.cpu_target())
    loaded = cpu.load(source)
    slots = (ctypes.c_int64 * 3)(0, 0, 1 << 24)
    assert 100 < loaded.tasks(slots)[0] <= 512
    slots[2] = 100
    assert loaded.tasks(slots)[0] == 1
    assert emit_llvm(scale(), replace(cpu.cpu_target(), threads=99)).text == source.text


@pytest.mark.parametrize("known", [jit.LAST_KNOWN, 0], ids=["known", "unknown"])
def test_llvm_takes_addresses_as_they_are_where_it_can_be_told(known, monkeypatch):
    (f,) = tc.compile("def f(float(N,M) X) -> (Y) { Y(j,i) = X(i,j) }", target="cpu").values()
    turned = f.source("llvm")
    assert turned.splitlines()[0] == "; passes: vector, addresses as written"
    told: list[str] = []
    monkeypatch.setattr(jit, "LAST_KNOWN", known)
    monkeypatch.setattr(jit.binding(), "set_option", lambda _, option: told.append(option))
    assert jit._wishes(turned)[0] == "vector"
    assert jit.emit_object(turned)
    switches = {"disable-lsr": ("true", "false")}
    if jit.host()[0].startswith("x86_64"):
        switches |= {
            "enable-misched": ("false", "true"),
            "x86-experimental-pref-innermost-loop-alignment": ("6", "4"),
        }
    changes = [f"-{name}={values[n]}" for n in (0, 1) for name, values in switches.items()]
    assert told == (changes if known else [])


@pytest.mark.skipif(not jit.host()[0].startswith("x86_64"), reason="a switch of x86")
def test_innermost_loops_begin_at_a_line():
    (f,) = tc.compile("def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }", target="cpu").values()
    assert ".p2align\t6" in f.source("asm")


PROGRAMS = {
    "product": "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "convolution": """def f(float(B,IP,H,W) X, float(OP,IP,KH,KW) F) -> (Y) {
    Y(b,op,h,w) +=! X(b,ip,h+kh,w+kw) * F(op,ip,kh,kw)
}""",
    "transpose": "def f(float(N,M) X) -> (Y) { Y(j,i) = X(i,j) }",
    "row sums": "def f(float(N,M) X) -> (S) { S(i) +=! X(i,j) }",
}


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_addresses_of_inner_loops_are_sums(name, arch):
    """No product with the counter but what an address can multiply; where it cannot do that, LLVM looks for better ones."""
    features = frozenset({"avx2", "fma", "f16c"}) if arch == "x86_64" else frozenset()
    bits = 256 if arch == "x86_64" else 128
    target = Target("cpu", arch, features, vector_bits=bits, vector_registers=16, fma=True, arch=arch)
    definition = tc.compile(PROGRAMS[name], target="cpu")["f"].definition()
    shapes = {"product": ((64, 64), (64, 64)), "convolution": ((8, 32, 28, 28), (64, 32, 3, 3))}.get(name, ((64, 64),))
    inputs = definition.inputs([np.zeros(shape, np.float32) for shape in shapes])
    layout = definition.layout(inputs, {}, definition.numbers_at(inputs.sizes), "cpu")
    loops = 0
    for source in definition.build(target, layout).sources:
        as_written = source.text.startswith("; passes: vector, addresses as written\n")
        assert as_written or arch == "aarch64"
        loop = re.compile(r"^(for\S+):\n  (%\S+) = phi i64 .*\n(.*?)^  br i1 %more\S*, label %\1,", re.M | re.S)
        for _, counter, body in loop.findall(source.text):
            if "\nfor" not in body:  # nothing but this loop
                loops += 1
                products = re.findall(rf"= mul i64 (?:(\d+), {counter}\b|{counter}, (\S+))", body)
                assert {left or right for left, right in products} <= {"2", "4", "8"}, body
    assert loops
