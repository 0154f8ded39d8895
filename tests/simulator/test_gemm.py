"""The two matrix products of the design, and what the checks say when one thing is taken out of them."""

import numpy as np
import pytest
from conftest_simulator import KERNELS, In, Out, kinds, launch

SGEMM = (KERNELS / "sgemm.cu").read_text()
HGEMM = (KERNELS / "hgemm.cu").read_text()


def run_sgemm(source, m, n, k):
    rng = np.random.default_rng(m + n + k)
    a, b, c = rng.random((m, k), np.float32), rng.random((k, n), np.float32), np.zeros((m, n), np.float32)
    grid = (-(-n // 128), -(-m // 128))
    simulation = launch(source, "sgemm", grid, 256, In("A", a), In("B", b), Out("C", c), m, n, k)
    return simulation, c, a.astype(np.float64) @ b.astype(np.float64)


def run_hgemm(source, m, n, k, stages=3, shared=None):
    rng = np.random.default_rng(m + n + k)
    a, b = rng.random((m, k)).astype(np.float16), rng.random((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    grid = (-(-n // 128), -(-m // 128))
    text = f"#define STAGES {stages}\n#line 1\n{source}"
    arguments = (In("A", a.view(np.uint16)), In("B", b.view(np.uint16)), Out("C", c), m, n, k)
    simulation = launch(text, "hgemm", grid, 128, *arguments, shared_bytes=stages * 16384 if shared is None else shared)
    return simulation, c, a.astype(np.float64) @ b.astype(np.float64)


def mutate(source, old, new):
    assert source.count(old) >= 1, old
    return source.replace(old, new)


@pytest.mark.some(2)
@pytest.mark.parametrize("shape", [(128, 128, 32), (200, 132, 36), (4, 4, 4), (64, 64, 64)])
def test_float32_product(shape):
    simulation, c, expected = run_sgemm(SGEMM, *shape)
    assert simulation.findings == ()
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_float32_product_has_no_bank_conflicts():
    simulation, _, _ = run_sgemm(SGEMM, 128, 128, 32)
    shared = [site for site in simulation.sites if site.space == "shared"]
    assert all(site.wavefronts_per_request <= site.ideal_wavefronts_per_request for site in shared)
    worse, _, _ = run_sgemm(mutate(SGEMM, "[8][132]", "[8][128]"), 128, 128, 32)
    stores = [site for site in worse.sites if site.space == "shared" and site.kind == "store" and site.width == 4]
    assert all(site.wavefronts_per_request == 2 for site in stores)


@pytest.mark.some(4)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("shape", [(128, 128, 128), (200, 136, 72), (8, 8, 8)])
def test_half_product_on_tensor_cores(shape, stages):
    simulation, c, expected = run_hgemm(HGEMM, *shape, stages)
    assert simulation.findings == ()
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_swizzle_gives_the_ideal_wavefronts():
    def waves(source):
        simulation, _, _ = run_hgemm(source, 128, 128, 64)
        return {site.wavefronts_per_request for site in simulation.sites if site.opcode.startswith("ldmatrix")}

    assert waves(HGEMM) == {4.0}
    assert waves(HGEMM.replace("c ^ ((r >> 1) & 3)", "c").replace("c ^ (r & 7)", "c")) == {16.0, 32.0}


SGEMM_MUTANTS = [
    ("no first barrier", "  __syncthreads();                                                             // barrier first", "", "race"),
    ("no barrier in the loop", "      __syncthreads();                                                         // barrier loop", "", "race"),
    ("no guard on the rows of A", "if (m0 + ar < M && ac < K)", "if (ac < K)", "out-of-bounds"),
    ("no guard on the columns of A", "if (m0 + ar < M && k0 + ac < K)", "if (m0 + ar < M)", "out-of-bounds"),
    ("no guard on the rows of B", "if (k0 + br < K && n0 + bc < N)", "if (n0 + bc < N)", "out-of-bounds"),
    ("no guard on the columns of B", "if (br < K && n0 + bc < N)", "if (br < K)", "out-of-bounds"),
    ("no guard on the rows of C", "if (r < M && c < N)", "if (c < N)", "out-of-bounds"),
    ("no guard on the columns of C", "if (r < M && c < N)", "if (r < M)", "race-between-blocks"),
    ("one row of As too few", "As[2][8][132]", "As[1][8][132]", "out-of-bounds"),
    ("one k step too many", "for (int k = 0; k < 8; k++) {", "for (int k = 0; k < 9; k++) {", "out-of-bounds"),
    ("one tile too few", "const int tiles = (K + 7) / 8;", "const int tiles = K / 8;", None),
    ("an odd pitch", "As[2][8][132]", "As[2][8][131]", "misaligned"),
    ("a stage that is not filled", "const int n = s ^ 1;", "const int n = s;", "race"),
    ("a row stride that is one larger", "&A[(m0 + ar) * K + k0 + ac]", "&A[(m0 + ar) * (K + 1) + k0 + ac]", "misaligned"),
    ("a store stride that is four larger", "C[r * N + c]", "C[r * (N + 4) + c]", "out-of-bounds"),
    ("a write to an input", "*(float4*)&C[r * N + c] =", "*(float4*)&((float*)A)[0] =", "read-only"),
    ("half of the outputs", "for (int j = 0; j < 2; j++)", "for (int j = 0; j < 1; j++)", "unwritten-output"),
    ("an output that is read first", "make_float4(acc[i][4 * j],", "make_float4(acc[i][4 * j] + C[r * N + c],", "uninitialised"),
    ("a barrier under a branch", "    if (more) {\n      const int n", "    if (more && t < 200) {\n      const int n", "divergent-barrier"),
]  # fmt: skip


@pytest.mark.some(8)
@pytest.mark.parametrize("name, old, new, kind", SGEMM_MUTANTS, ids=[mutant[0] for mutant in SGEMM_MUTANTS])
def test_mutants_of_the_float32_product(name, old, new, kind):
    """`kind` None: the mutant is found by some check or by the result."""
    found = set()
    for shape in ((200, 132, 36), (4, 4, 4)):
        simulation, c, expected = run_sgemm(mutate(SGEMM, old, new), *shape)
        found |= kinds(simulation)
        if not np.allclose(c, expected, rtol=1e-4):
            found.add(None)
    assert kind in found


HGEMM_MUTANTS = [
    ("no barrier", "    __syncthreads();", "", {"race", "missing-wait"}),
    ("no wait", '    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));         // wait', "", {"missing-wait"}),
    ("a wait for one group too few", '"n"(STAGES - 2)', '"n"(STAGES - 1)', {"missing-wait"}),
    ("no commit in the prologue", '    if (s < tiles) load(s);\n    asm volatile("cp.async.commit_group;");', "    if (s < tiles) load(s);", {"missing-wait"}),
    ("no commit in the loop", '    asm volatile("cp.async.commit_group;");                            // commit', "", {"missing-wait"}),
    ("no guard on A", "bool in = m0 + r < M && k < K;", "bool in = true;", {"out-of-bounds"}),
    ("no guard on B", "bool in = tile * 32 + r < K && n < N;", "bool in = true;", {"out-of-bounds"}),
    ("no zero fill", "in ? 16 : 0", "16", None),
    ("no guard on the low store", "if (r < M && c < N)", "if (c < N)", {"out-of-bounds"}),
    ("no guard on the columns of the store", "if (r < M && c < N)", "if (r < M)", {"race-between-blocks"}),
    ("the copy goes to the stage in use", "load(it + STAGES - 1);", "load(it + STAGES);", {"race", "missing-wait"}),
    ("a shuffled fragment", "c = kk / 8 + lane / 16;", "c = kk / 8 + (lane / 16 ^ 1);", None),
    ("an mma under a branch", "      for (int i = 0; i < 4; i++)\n#pragma unroll\n        for (int j = 0; j < 8; j++)\n          asm", "      for (int i = 0; i < 4; i++)\n#pragma unroll\n        for (int j = 0; j < 8; j++)\n          if (lane != 3) asm", {"divergent-collective"}),
]  # fmt: skip


@pytest.mark.some(8)
@pytest.mark.parametrize("name, old, new, expected_kinds", HGEMM_MUTANTS, ids=[mutant[0] for mutant in HGEMM_MUTANTS])
def test_mutants_of_the_half_product(name, old, new, expected_kinds):
    simulation, c, expected = run_hgemm(mutate(HGEMM, old, new), 200, 136, 136)
    if expected_kinds is None:
        assert kinds(simulation) or not np.allclose(c, expected, rtol=1e-4)
    else:
        assert expected_kinds & kinds(simulation), simulation.report


def test_too_little_dynamic_shared_memory():
    simulation, _, _ = run_hgemm(HGEMM, 128, 128, 128, shared=3 * 16384 - 256)
    assert "out-of-bounds" in kinds(simulation)
    assert any(finding.array == "dyn" for finding in simulation.findings)
