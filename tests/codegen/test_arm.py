"""Code for 64-bit ARM, made on any machine and read; what it computes is tested by all the other tests on such a processor."""

from __future__ import annotations

import re

import pytest

import tc_jupyter as tc
from tc_jupyter.runtime import cpu, jit, native_call, own_code, peak, threads
from tc_jupyter.schedule import Target
from tc_jupyter.schedule.templates.register_tiles import tile_of

pytest.importorskip("llvmlite")

FEATURES = ("fp-armv8", "neon")
TRIPLES = ("aarch64-unknown-linux-gnu", "arm64-apple-macosx14.0.0")
TEMPLATES = {
    "product": "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "transposed": "def f(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }",
    "convolution": "def f(float(B,C,H,W) X, float(O,C,3,3) F) -> (Y) { Y(b,o,h,w) +=! X(b,c,h+p,w+q) * F(o,c,p,q) }",
    "in half": "def f(half(M,K) A, half(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "in bfloat16": "def f(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "pointwise": "def f(half(N) X) -> (Y) { Y(i) = exp(X(i)) + tanh(X(i)) + sigmoid(X(i)) }",
    "largest of rows": "def f(float(M,N) X) -> (Y) { Y(i) max=! X(i,j) }",
}
PRODUCTS = ("product", "transposed", "in half", "in bfloat16")


@pytest.fixture(autouse=True)
def every_target():
    llvm = jit.binding()
    try:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        llvm.Target.from_triple(TRIPLES[0])
    except RuntimeError:
        pytest.skip("this LLVM makes no code for ARM")


def arm(triple: str = TRIPLES[0]) -> Target:
    bits, registers, fma = cpu._vectors(triple, frozenset(FEATURES))
    return Target(
        "cpu", "arm", frozenset(FEATURES), vector_bits=bits, vector_registers=registers, fma=fma, threads=2, arch=triple
    )


def assembly(text: str, triple: str = TRIPLES[0]) -> str:
    return jit.assembly(text, jit.Options(",".join(f"+{name}" for name in FEATURES), triple))


def hottest(text: str, pattern: str = r"\tfmla") -> str:
    """The block with most multiply-adds."""
    return max(re.split(r"\n\.?L?\w+:", text), key=lambda block: len(re.findall(pattern, block)))


@pytest.mark.some(3)
@pytest.mark.parametrize("triple", TRIPLES)
@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_keep_sums_in_registers_and_call_nobody(name, triple):
    target = arm(triple)
    built = tc.compile(TEMPLATES[name], target="cpu")["f"].definition().build(target)
    for source in built.sources:
        text = assembly(source.text, triple)
        called = set(re.findall(r"\tblr?\t_?(\S+)", text))
        assert all(each.endswith((".task", ".count")) for each in called), called
    if name in PRODUCTS:
        tile, hot = tile_of(target, 32, None, None), hottest(text)
        assert (tile.rows, tile.vectors) == (8, 2)
        assert len(re.findall(r"\tfmla", hot)) == tile.rows * tile.vectors
        assert not re.search(r"\t(?:ldr|str|ldp|stp)\tq\d+.*\[sp", hot)


def test_the_probe_is_multiply_adds_alone():
    # 12 chains of a*x + 1 took 36 instructions: the multiply-add of ARM overwrites what it adds to.
    lanes = arm().vector_bits // 32
    hot = hottest(assembly("; passes: vector\n" + peak._probe_text(lanes, peak.MORE_CHAINS) + peak._fma(lanes)[0]))
    assert len(re.findall(r"\tfmla\t", hot)) == peak.MORE_CHAINS
    assert not re.search(r"\tf?mov\tv", hot)
    assert not re.search(r"\[sp", hot.partition("b.lt")[0])


@pytest.mark.parametrize("triple", TRIPLES)
def test_waiting_loops_yield(triple, monkeypatch):
    monkeypatch.setattr(jit, "host", lambda: (triple, "", ()))
    text = assembly(threads.pool_text(), triple)
    assert text.count("\tyield") == 3
    assert "cntvct_el0" in text.lower()  # the clock that programs may read
    assert "tc.native" in assembly(native_call.native_text(), triple)


def test_systems_that_share_a_cache_keep_their_own_code(monkeypatch):
    # a Mac and a container on it share a home, and the text is the same
    class Found(Exception):
        pass

    def key(*parts):
        raise Found(parts)

    monkeypatch.setattr(own_code, "key_of", key)
    monkeypatch.setattr(jit, "host_feature_string", str)
    found = set()
    for triple in TRIPLES:
        monkeypatch.setattr(jit, "host", lambda triple=triple: (triple, "", ()))
        with pytest.raises(Found) as caught:
            own_code.own_code("native", native_call.native_text())
        found.add(caught.value.args)
    assert len(found) == 2
