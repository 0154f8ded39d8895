"""Exported libraries: the same results as the notebook's function, in C, without Python; and an error for whatever does not fit."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.cli import main
from tc_jupyter.compiler.library import caller, project, signature
from tc_jupyter.diagnostics import CallError, DiagnosticWarning
from tc_jupyter.function import exported as exported_defs
from tc_jupyter.runtime import nvrtc

CC = project.compiler()
pytestmark = [
    pytest.mark.xdist_group("library"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libraries are exported on Linux"),
]
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler on the path")
NM = shutil.which("nm") or shutil.which("llvm-nm")
OBJCOPY = shutil.which("objcopy") or shutil.which("llvm-objcopy")
needs_objcopy = pytest.mark.skipif(OBJCOPY is None, reason="without it hidden symbols stay in the static library")

TEXT = """
def blur(float(H, W) X) -> (Y) {
    T(i, j) = (X(i, j) + X(i, j + 1) + X(i, j + 2)) / 3
    Y(i, j) = (T(i, j) + T(i + 1, j) + T(i + 2, j)) / 3
}
def conv(float(N, C, H, W) X, float(O, C, KH, KW) K) -> (Y) { Y(n, o, h, w) +=! X(n, c, h + kh, w + kw) * K(o, c, kh, kw) }
def softmax(float(N, D) X) -> (Y) {
    M(n) max=! X(n, d)
    E(n, d) = exp(X(n, d) - M(n))
    S(n) +=! E(n, d)
    Y(n, d) = E(n, d) / S(n)
}
def histogram(uint8(N) X) -> (H) { H(X(i)) +=! 1 }
def decay(float(N) X, float a) -> (Y) { Y(i) = (a * Y(i - 1) else 0) + X(i) along i }
def best(float(N, K) X) -> (V, P) { V(n), P(n) argmax=! X(n, k) }
"""
NUMBERS = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return NUMBERS.standard_normal(shape).astype(np.float32)


CALLS = {
    "blur": (floats(70, 90),),
    "conv": (floats(2, 3, 20, 21), floats(5, 3, 3, 3)),
    "softmax": (floats(9, 40),),
    "histogram": (NUMBERS.integers(0, 256, 2_000_000).astype(np.uint8),),
    "decay": (floats(100), 0.5),
    "best": (floats(5, 19),),
}


@pytest.fixture(scope="module")
def module():
    return tc.compile(TEXT, target="cpu", allow=("TC323",))


@pytest.fixture(scope="module")
def exported(module, tmp_path_factory):
    """The library with the code that calls of this module run."""
    like = {name: [arguments] for name, arguments in CALLS.items()}
    return tc.export(module.values(), tmp_path_factory.mktemp("library"), "kernels", "native", like=like)


def functions(module, exported) -> dict[str, caller.Function]:
    library = caller.load(str(exported.shared))
    found = {}
    for name, function in module.items():
        found[name] = of_library(
            library, signature.signature(function.definition(), ()), function.definition().accumulates
        )
    return found


def of_library(library, own, accumulates=False) -> caller.Function:
    kinds = [[(each.name, each.dtype.value, each.rank) for each in part] for part in (own.inputs, own.results)]
    return caller.Function(library, own.written, own.name, *kinds, accumulates)


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def assert_same(found, wanted):
    for one, two in zip(as_tuple(found), as_tuple(wanted), strict=True):
        assert (one.shape, one.dtype, one.tobytes()) == (two.shape, two.dtype, two.tobytes())


# the library ---------------------------------------------------------------------------------------------------------------------


@needs_compiler
def test_results_have_the_bits_of_the_notebook(module, exported):
    own = functions(module, exported)
    for name, arguments in CALLS.items():
        assert_same(own[name](*arguments), module[name](*arguments))
    X = floats(40, 30)
    assert_same(own["blur"](X.T), module.blur(np.ascontiguousarray(X.T)))
    assert_same(own["blur"](X[::-1, ::2]), module.blur(np.ascontiguousarray(X[::-1, ::2])))


@needs_compiler
@pytest.mark.skipif(NM is None, reason="no binutils")
@pytest.mark.parametrize("kind", [pytest.param("static", marks=needs_objcopy), "shared"])
def test_only_documented_symbols_are_defined(exported, kind):
    options = ["-D"] if kind == "shared" else ["-g"]
    said = subprocess.run([NM, *options, "--defined-only", getattr(exported, kind)], capture_output=True, text=True)
    assert tuple(sorted(re.findall(r"^[0-9a-f]+ \w (\w+)$", said.stdout, re.MULTILINE))) == exported.symbols


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "kernels.h"

static int64_t asked, given_back, tasks_run;
static void *take(void *user, size_t bytes, size_t align) { void *m; asked++; (void)user; return posix_memalign(&m, align, bytes) ? 0 : m; }
static void give(void *user, void *memory) { (void)user; given_back++; free(memory); }
static void serial(void *user, int64_t tasks, void (*task)(void *, int64_t, int64_t), void *data)
{
    (void)user;
    for (int64_t k = tasks - 1; k >= 0; k--, tasks_run++) task(data, k, k % 3);
}
static void *input(FILE *file, size_t bytes)
{
    void *memory = malloc(bytes);
    return fread(memory, 1, bytes, file) == bytes ? memory : NULL;
}
#define SAID(f, call) do { int code = call; if (code) { fprintf(stderr, "%s\\n", f##_error(code)); return 1; } } while (0)
int main(int count, char **names)
{
    FILE *in = fopen(names[1], "rb"), *out = fopen(names[2], "wb");
    const tc_options own = {NULL, take, give, serial, 3}, *options = count > 3 ? &own : NULL;
    float *Y = malloc(1 << 20); int64_t *P = malloc(1 << 10); int32_t *H = malloc(1 << 10);
    tc_float32_2d X = {input(in, 4 * 70 * 90), {70, 90}, NULL}, Z = {Y, {0}, NULL};
    SAID(blur, blur_shapes(&X, &Z));
    SAID(blur, blur(&X, &Z, options));
    fwrite(Y, 4, (size_t)(Z.sizes[0] * Z.sizes[1]), out);
    tc_float32_4d I = {input(in, 4 * 2 * 3 * 20 * 21), {2, 3, 20, 21}, NULL}, K = {input(in, 4 * 135), {5, 3, 3, 3}, NULL};
    tc_float32_4d O = {Y, {2, 5, 18, 19}, NULL};
    SAID(conv, conv(&I, &K, &O, options));
    fwrite(Y, 4, 2 * 5 * 18 * 19, out);
    tc_float32_2d R = {input(in, 4 * 360), {9, 40}, NULL}, S = {Y, {9, 40}, NULL};
    SAID(softmax, softmax(&R, &S, options));
    fwrite(Y, 4, 360, out);
    tc_uint8_1d B = {input(in, 2000000), {2000000}, NULL};
    tc_int32_1d C = {H, {256}, NULL};
    SAID(histogram, histogram(&B, &C, options));
    fwrite(H, 4, 256, out);
    tc_float32_1d V = {input(in, 400), {100}, NULL}, W = {Y, {100}, NULL};
    SAID(decay, decay(&V, 0.5f, &W, options));
    fwrite(Y, 4, 100, out);
    tc_float32_2d Q = {input(in, 4 * 95), {5, 19}, NULL};
    tc_float32_1d most = {Y, {5}, NULL};
    tc_int64_1d place = {P, {5}, NULL};
    SAID(best, best(&Q, &most, &place, options));
    fwrite(Y, 4, 5, out);
    fwrite(P, 8, 5, out);
    fclose(out);
    if (options && (!tasks_run || !asked || asked != given_back)) return 2;
    Z.sizes[0]--;
    if (blur(&X, &Z, NULL) != TC_SIZE) return 3;
    printf("%s\\n", blur_error(TC_SIZE));
    Z.sizes[0]++;
    Z.data = X.data;
    if (blur(&X, &Z, NULL) != TC_OVERLAP || blur(NULL, &Z, NULL) != TC_NULL) return 4;
    return 0;
}
"""


@needs_compiler
def test_a_c_program_runs_without_python(module, exported, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    command = [
        CC,
        "-std=c99",
        "-D_POSIX_C_SOURCE=200809L",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        exported.folder,
        "program.c",
    ]
    subprocess.run([*command, exported.static, "-lm", "-pthread", "-o", "program"], cwd=tmp_path, check=True)
    names = ("blur", "conv", "softmax", "histogram", "decay", "best")
    data = b"".join(each.tobytes() for name in names for each in CALLS[name] if isinstance(each, np.ndarray))
    (tmp_path / "in").write_bytes(data)
    wanted = b"".join(each.tobytes() for name in names for each in as_tuple(module[name](*CALLS[name])))
    for more in ((), ("own",)):
        command = ["./program", "in", "out", *more]
        answer = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert (tmp_path / "out").read_bytes() == wanted
        assert answer.stdout == "dimension 0 of `Y` is 67; it has to be 68\n"


@needs_compiler
@pytest.mark.slow
def test_examples_and_build_files(exported, tmp_path):
    for file, compiler in (("example.c", CC), ("example.cpp", shutil.which("g++") or shutil.which("clang++"))):
        if compiler is not None:
            command = [
                compiler,
                "-Wall",
                "-Wextra",
                "-Werror",
                "-I",
                exported.folder,
                exported.folder / file,
                exported.static,
            ]
            subprocess.run([*command, "-lm", "-pthread", "-o", tmp_path / "example"], check=True)
            answer = subprocess.run([tmp_path / "example"], env={}, capture_output=True, text=True, check=True)
            assert answer.stdout.count("\n") == len(CALLS)
    if shutil.which("cmake"):
        subprocess.run(["cmake", "-S", exported.folder, "-B", tmp_path / "build"], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
        subprocess.run([tmp_path / "build" / "kernels_example"], check=True, capture_output=True)
    if shutil.which("pkg-config"):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(exported.folder)}
        said = subprocess.run(["pkg-config", "--libs", "kernels"], env=environment, capture_output=True, text=True)
        assert "-lkernels" in said.stdout


# what does not fit ---------------------------------------------------------------------------------------------------------------


@needs_compiler
def test_what_does_not_fit_has_a_code_and_numbers(module, exported):
    own = functions(module, exported)
    X = floats(8, 8)
    refused = [
        (
            lambda: own["conv"](floats(1, 2, 8, 8), floats(1, 3, 3, 3)),
            "size `C` is 2 in `X` (dimension 1) and 3 in `K`",
        ),
        (lambda: own["conv"](floats(1, 2, 2, 8), floats(1, 2, 5, 3)), "0 <= h < H - KH + 1`; H = 2, KH = 5"),
        (lambda: own["blur"](X, out=X[:6, :6].copy("F")), "`Y` does not lie in row order"),
        (lambda: own["softmax"](X, out=X), "`Y` shares memory with `X`"),
        (lambda: own["softmax"](X, out=np.empty((8, 7), np.float32)), "dimension 1 of `Y` is 7; it has to be 8"),
        (lambda: own["best"](floats(3, 0)), "TC601"),
    ]
    for call, text in refused:
        with pytest.raises(ValueError, match=re.escape(text)):
            call()
    assert own["conv"]._error(100).decode().startswith("TC6")
    assert own["conv"]._error(12345) == b"unknown code"
    assert own["softmax"](floats(0, 5)).shape == (0, 5)


@needs_compiler
def test_results_without_points_are_inside(tmp_path):
    text = "def f(float(N) X, float(M) Z, int32(K) Id) -> (T) { T(i) = X(i)  T(j) +=! Z(j)*Id(k) where k in 3:K, j in 0:M }"
    made = tc.compile(text, target="cpu", allow=("TC309",))
    own = functions(made, tc.export(made.values(), tmp_path, "begun", "native"))
    few = np.zeros(3, np.int32)
    np.testing.assert_array_equal(own["f"](floats(5) * 0 + 1, floats(4), few), [0, 0, 0, 0, 1])
    for shapes in ((5, 9), (0, 2)):
        with pytest.raises(ValueError, match="TC601"):
            own["f"](*map(floats, shapes), few)


NUMBERS_BEHIND = """
def new(int32(N) K, float(N) X, int32 G) -> (int64(G) P) { P(K(i)) argmax=! X(i) }
def Function(float(N) X, int32 G) -> (int64(G) P) { P(i % G) argmax=! X(i) }
def zz(float(N) delete) -> (Y) { Y(i) = 2 * delete(i) }
"""


@needs_compiler
def test_extents_that_later_arguments_say_and_words_of_other_languages(tmp_path):
    functions = tc.compile(NUMBERS_BEHIND, target="cpu", allow=("TC322",))
    tc.export(list(functions.values()), tmp_path, name="kk", wheel=True)
    assert " new_(" in (tmp_path / "kk.h").read_text()  # which is a keyword of C++
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as made:
        assert "zz = _Function(" in made.read("kk/__init__.py").decode()


@needs_compiler
def test_arguments_that_c_cannot_take_are_refused(tmp_path):
    text = "def moved(float(N) X, int32 s, int8 t) -> (Y) { Y(i) = X(i + s) * t where i in 0:N - 4 }"
    module = tc.compile(text, target="cpu")
    moved = functions(module, tc.export(module.values(), tmp_path, "numbers", "native"))["moved"]
    X = floats(8)
    assert_same(moved(X, 1, np.int64(2)), module.moved(X, 1, 2))
    for s, t in ((1 << 32, 1), (1, 300), (1, np.int16(-129)), (0.0, 1), (True, 1)):
        with pytest.raises(TypeError, match="is a number of type int"):
            moved(X, s, t)
    records = np.zeros(4, [("value", np.float32), ("other", np.int16)])
    with pytest.raises(ValueError, match="`Y` does not lie in row order"):
        moved(X, 1, 1, out=records["value"])
    assert not records["other"].any()
    X = np.zeros(8, [("value", np.float32), ("other", np.int16)])["value"]
    X[:] = range(8)
    assert_same(moved(X, 1, 2), np.arange(2, 10, 2, dtype=np.float32))


@needs_compiler
def test_what_a_permutation_breaks_has_the_code_of_the_notebook(tmp_path):
    """An element that nothing writes had the code of one that is written twice."""
    module = tc.compile(
        "def perm(float(N) X, int32(N) P) -> (float(5) Y) { Y(P(i)) = X(i) where unique }", target="cpu"
    )
    perm, X = functions(module, tc.export(module.perm, tmp_path, "places", "native"))["perm"], floats(5)
    for places, code in (([0, 1, 2, 3, 4], ""), ([0, 3, 1, 3, 4], "TC617.* number 3"), ([0, 3, 1], "TC222.* number 2")):
        given = X[: len(places)], np.array(places, np.int32)
        if not code:
            assert_same(perm(*given), module.perm(*given))
            continue
        with pytest.raises(ValueError, match=code):
            perm(*given)
        with pytest.raises(CallError, match=code[:5]):
            module.perm(*given)


@needs_compiler
def test_a_negative_number_of_steps_has_the_code_of_the_notebook(tmp_path):
    """It was told as a range of the def that is applied."""
    text = "def step(float(N) x) -> (y) { y(i) = x(i) * 2 } def g(float(N) x, int32 n) -> (y) { y = step^n(x) }"
    module = tc.compile(text, target="cpu")
    own, X = functions(module, tc.export(module.values(), tmp_path, "steps", "native"))["g"], floats(5)
    assert_same(own(X, 3), module.g(X, 3))
    for called, raised in ((own, ValueError), (module.g, CallError)):
        with pytest.raises(raised, match=r"TC618.*`step` cannot be applied"):
            called(X, -3)


SAC = """
double[*] smooth(double[*] a) { return { [i, ...] -> (a[i] + a[i + 1]) / 2.0 | [i] < [shape(a)[0] - 1] }; }
double[.] tail(double[.] a, int n) { return { [i] -> a[i + n] | [i] < [shape(a)[0] - n] }; }
double[*] add(double[*] a, double[*] b) { return a + b; }
double[.] first(int[.] n, double[.] a) { return take(n, a); }
"""


@needs_compiler
def test_functions_whose_ranks_are_told(tmp_path):
    module = tc.compile(SAC, language="sac", target="cpu", allow=("TC322",))
    wanted = [module.smooth, module.tail, module.add]
    made = tc.export(wanted, tmp_path, "sac", "native", like={"smooth": [(np.ones((8, 8)),)]}, ranks=(1, 2))
    assert made.functions == ("smooth_1d", "smooth_2d", "tail", "add_1d", "add_2d")
    library, own = caller.load(str(made.shared)), {}
    for each in (each for function in wanted for each in exported_defs(function, (1, 2), ())):
        own[each.name] = of_library(library, signature.signature(each.definition, (), each.name))
    row, field = NUMBERS.random(9), NUMBERS.random((5, 6))
    for name, arguments in (
        ("smooth_1d", (row,)),
        ("smooth_2d", (field,)),
        ("tail", (row, 9)),
        ("add_1d", (row, row)),
        ("add_2d", (field, field)),
    ):
        assert_same(own[name](*arguments), module[name.removesuffix("_1d").removesuffix("_2d")](*arguments))
    for name, arguments, message in (
        ("add_2d", (field, field[:3]), "TC654: the operands differ in the extent of axis 0: one is 5, the other is 3"),
        ("tail", (row, 10), "TC655: axis 0 of the result would have a negative extent: extent 0 is -1"),
        ("tail", (row, -1), "TC601.*n = -1"),
        ("add_1d", (row[:0], row[:0]), "`a` has no elements"),
    ):
        with pytest.raises(ValueError, match=message):
            own[name](*arguments)
    with pytest.raises(CallError, match=r"TC663.*depends on elements"):
        module.first.export(tmp_path / "none")


def test_defs_of_one_function_have_names_and_sizes(tmp_path):
    """Defs of one rank had one name, of which a wheel kept the last; sizes of none of several were left out without a word."""
    text = "double[*] f(double[*] a) { return a + a; } float[*] f(float[*] a) { return a + a; }"
    f, x = tc.compile(text, language="sac").f, NUMBERS.random(3)
    assert [each.name for each in exported_defs(f, (), [(x,), x.astype(np.float32)])] == [
        "f_1d_float64",
        "f_1d_float32",
    ]
    assert [each.name for each in exported_defs(f, 2, ())] == ["f"]
    with pytest.raises(ValueError, match="not all sizes of any def; the sizes are of `f_1d` a_0; of `f_2d` a_0, a_1"):
        f.export(tmp_path, ranks=(1, 2), like=[(x,), {"b_0": 3}])
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    with pytest.raises(CallError, match=r"TC661.*File exists"):
        f.export(tmp_path / "nowhere", ranks=1)


def test_the_command_tells_ranks(tmp_path, capsys):
    (file := tmp_path / "k.sac").write_text(SAC)
    command = ["export", str(file), "--to", str(tmp_path), "--def", "smooth", "--cpu", "native"]
    assert main(command) == 1
    assert "`ranks=(1, 2)` tells them" in capsys.readouterr().err
    assert main([*command, "--rank", "99"]) == 2
    assert main([*command, "--rank", "1", "--like", "a_0=64"]) == 0
    assert "int smooth(const tc_float64_1d *a" in (tmp_path / "k.h").read_text()


def test_names_that_cannot_be_exported(module, tmp_path):
    for options, number in (({"cpus": "x86-64-v9"}, "TC660"), ({"cuda": ("80",)}, "TC660")):
        with pytest.raises(CallError, match=number):
            module.decay.export(tmp_path / "none", **options)
    with pytest.raises(CallError, match="TC663"):
        tc.compile("double[*] f(double[*] a) { return a + 1.0; }", language="sac").f.export(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").touch()
    with pytest.raises(CallError, match="TC661"):
        module.decay.export(tmp_path / "file")


def test_without_a_compiler_there_are_objects_and_build_files(module, tmp_path, monkeypatch):
    monkeypatch.setattr(project, "compiler", lambda: None)
    with pytest.warns(DiagnosticWarning, match="TC662"):
        made = module.decay.export(tmp_path, cpus="native", wheel=True)
    assert (made.static, made.shared, made.wheel) == (None, None, None)
    assert {path.name for path in tmp_path.iterdir()} >= {
        "decay.c",
        "decay.h",
        "decay.pc",
        "CMakeLists.txt",
        "example.c",
    }
    assert any((tmp_path / "kernels").iterdir())


def test_names_of_c_are_no_names_of_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(project, "compiler", lambda: None)
    text = "def read(float(new) signed) -> (register) { register(i) = signed(i) }\n"
    text += "def read__error(float(N) X) -> (Y) { Y(i) = X(i) }\ndef tc_add(float(N) X) -> (Y) { Y(i) = X(i) }"
    (tmp_path / "math.tc").write_text(text, encoding="utf-8")
    with pytest.warns(DiagnosticWarning):
        assert main(["export", str(tmp_path / "math.tc"), "--to", str(tmp_path / "out"), "--cpu", "native"]) == 0
    header = (tmp_path / "out" / "math_.h").read_text(encoding="utf-8")
    assert (
        "int read_(const tc_float32_1d *signed_, const tc_float32_1d *register_, const tc_options *options);" in header
    )
    assert "int read__error_(" in header
    assert "int f_tc_add(" in header
    assert main(["export", str(tmp_path / "math.tc"), "--to", str(tmp_path / "out"), "--like", "M=3"]) == 2


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="only code for x86-64 looks for instructions")
@pytest.mark.slow
def test_a_processor_without_the_instructions_is_refused(exported, tmp_path):
    text = '#include "kernels.c"\nint main(void) { float x[9] = {0}, y[1]; tc_float32_2d X = {x, {3, 3}, NULL}, Y = {y, {1, 1}, NULL};\n'
    text += "int code = blur(&X, &Y, NULL); puts(blur_error(code)); return code; }"
    (tmp_path / "old.c").write_text(text, encoding="utf-8")
    kernels = sorted((exported.folder / "kernels").glob("*.o"))
    command = [CC, "-w", "-DTC_FEATURES=0", "-I", exported.folder, tmp_path / "old.c", *kernels, "-lm", "-pthread"]
    subprocess.run([*command, "-o", tmp_path / "old"], check=True)
    answer = subprocess.run([tmp_path / "old"], capture_output=True, text=True, check=False)
    assert answer.returncode == 7
    assert "lacks instructions: the library needs" in answer.stdout


# packages and CUDA ---------------------------------------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.slow
def test_a_wheel_needs_numpy_only(module, tmp_path):
    made = module.decay.export(tmp_path, cpus="native", wheel=True)
    with zipfile.ZipFile(made.wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = f"""
import sys
sys.path = [each for each in sys.path if {str(Path(tc.__file__).parents[1])!r} not in each]
sys.path.insert(0, {str(tmp_path / "site")!r})
import numpy, decay
assert "tc_jupyter" not in sys.modules and "llvmlite" not in sys.modules
print(decay.decay(numpy.ones(3, numpy.float32), a=0.5))
try:
    decay.decay(numpy.ones(3), 0.5)
except TypeError as error:
    print(error)
"""
    answer = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.stdout == "[1.   1.5  1.75]\ndecay: X has 1 dimensions of float32; 1 dimensions of float64 came\n", (
        answer.stderr
    )


@pytest.mark.slow
def test_cuda_is_what_its_compiler_takes(module, tmp_path, monkeypatch):
    monkeypatch.setattr(project, "compiler", lambda: None)
    others = tc.compile(MORE, target="cpu", allow=("TC323", "TC321"))
    functions = [module.softmax, module.best, others.look, others.onto, others.mixed, others.turned]
    with pytest.warns(DiagnosticWarning):
        made = tc.export(functions, tmp_path, "kernels", "native", cuda=("sm_90", "sm_80"))
    assert [path.name for path in made.cuda] == ["kernels_sm_80.cu", "kernels_sm_90.cu"]
    assert "int onto_cuda_onto(" in made.header.read_text(encoding="utf-8")
    names = [re.findall(r"^namespace (\w+) ", path.read_text(encoding="utf-8"), re.MULTILINE) for path in made.cuda]
    assert names[0]
    assert not {*names[0]} & {*names[1]}  # one program has both
    if nvrtc.available() is None:
        for path, arch in zip(made.cuda, ("sm_80", "sm_90"), strict=True):
            assert nvrtc.compile_cuda(path.read_text(encoding="utf-8"), arch).ptx
    if CC is not None:
        (tmp_path / "cuda_runtime_api.h").write_text(CUDA_STUB, encoding="utf-8")
        command = [CC, "-std=gnu11", "-Wall", "-Wno-unused-function", "-Werror", "-fsyntax-only", "-DKERNELS_WITH_CUDA"]
        subprocess.run([*command, "-I", tmp_path, tmp_path / "kernels.c"], check=True)


CUDA_STUB = """
typedef int cudaError_t; typedef struct CUstream_st *cudaStream_t; typedef struct { unsigned x, y, z; } dim3;
enum { cudaSuccess, cudaErrorUnknown, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaFuncAttributeMaxDynamicSharedMemorySize,
       cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor };
const char *cudaGetErrorString(cudaError_t); int cudaGetDevice(int *); int cudaDeviceGetAttribute(int *, int, int);
int cudaMallocAsync(void **, size_t, cudaStream_t); int cudaFreeAsync(void *, cudaStream_t);
int cudaMemcpyAsync(void *, const void *, size_t, int, cudaStream_t); int cudaMemsetAsync(void *, int, size_t, cudaStream_t);
int cudaStreamSynchronize(cudaStream_t); int cudaFuncSetAttribute(const void *, int, int);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
"""


# other programs ------------------------------------------------------------------------------------------------------------------

MORE = """
def look(float(V, D) Table, int32(T) Id) -> (Out) { Out(t, d) = Table(Id(t), d) }
def onto(float(M, K) A, float(K, N) B) -> (C) { C(i, j) += A(i, k) * B(k, j) }
def rows(double(Z) V, int32(Z) Col, int32(R1) Ptr, double(C) X) -> (Y) {
    Y(i) +=! V(k) * X(Col(k)) where i in 0:R1 - 1, k in Ptr(i):Ptr(i + 1)
}
def perm(float(N) X, int32(N) P) -> (float(N) Y) { Y(P(i)) = X(i) where unique }
def mixed(float(N) X, int32(M) I, int32(M) J) -> (Y) { Y(m) = X(I(m) + J(m)) }
def nested(float(N) X, int32(M) A, int32(K) B) -> (Y) { Y(k) = X(A(B(k))) }
def halves(float16(N) X, float16 a) -> (Y) { Y(i) = X(i) * a + X(i) }
def turned(complex64(N) Z, complex64 w) -> (Y) { Y(i) = Z(i) * w + conj(Z(i)) }
def truth(bool(N) A, float(N) X, bool b) -> (Y) { Y(i) = A(i) && b ? X(i) : 0 }
def split(float(2*D) X) -> (Y) { Y(i) = X(i) + X(D + i) where i in 0:D }
def moved(float(N) X, int32 s) -> (Y) { Y(i) = X(i + s) where i in 0:N - 4 }
def dot(double(N) A, double(N) B) -> (s) { s +=! A(i) * B(i) }
def rare(double(N) X) -> (Y) { Y(i) = erfinv(X(i)) + lgamma(X(i)) }
def bytes8(int8(M, K) A, int8(K, N) B) -> (C) { C(i, j) +=! int32(A(i, k)) * int32(B(k, j)) }
def windows(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(2*i + k) * W(k) }
"""


@needs_compiler
@pytest.mark.slow
def test_drawn_calls_give_what_the_notebook_gives_or_fail_as_it_does(tmp_path):
    module = tc.compile(MORE, target="cpu", allow=("TC323", "TC321"))
    own = functions(module, tc.export(module.values(), tmp_path, "more", "native"))
    with pytest.raises(ValueError, match="index 8 is not from 0 up to below 8; first at t = 1"):
        own["look"](floats(8, 8), np.array([1, 8], np.int32))
    A, B, C, D = floats(20, 17), floats(17, 33), np.ones((20, 33), np.float32), np.ones((20, 33), np.float32)
    np.testing.assert_allclose(own["onto"](A, B, out=C), module.onto(A, B, out=D), rtol=1e-5)
    draw = np.random.default_rng(5)
    for name, function in module.items():
        for _ in range(30):
            arguments = drawn(function, draw)
            try:
                wanted = function(*arguments)
            except CallError:
                with pytest.raises(ValueError):
                    own[name](*arguments)
                continue
            for one, two in zip(as_tuple(own[name](*arguments)), as_tuple(wanted), strict=True):
                assert one.dtype == two.dtype
                np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6, equal_nan=True)


def drawn(function, draw) -> list:
    program = function.program
    sizes = {name: int(draw.choice([0, 1, 2, 3, 5, 8, 33])) for name in program.sizes}
    if draw.random() < 0.5:
        sizes = dict.fromkeys(sizes, int(draw.choice([0, 1, 4, 16])))
    found = []
    for parameter in function.definition().written:
        kind = np.dtype(parameter.dtype.value)
        if not parameter.rank:
            found.append(int(draw.integers(-1, 4)) if kind.kind == "i" else kind.type(1.5))
            continue
        shape = tuple(
            dim if isinstance(dim, int) else sizes[dim] if isinstance(dim, str) else 2 * sizes["D"]
            for dim in parameter.dims
        )
        array = (
            draw.standard_normal(shape) if kind.kind in "fc" else draw.integers(0, draw.choice([1, 2, 5, 40]), shape)
        )
        if kind.kind == "i" and len(shape) == 1 and draw.random() < 0.6:
            array = draw.permutation(shape[0]) if draw.random() < 0.5 else np.sort(array)
        found.append(array.astype(kind))
    return found


def test_options_that_are_none_are_refused(module, tmp_path):
    decay = module.decay
    for to in (None, 3, "a\0b"):
        with pytest.raises(CallError, match=r"TC661.*is no path of a folder"):
            decay.export(to)
    with pytest.raises(CallError, match=r"TC660(.*\n)*help: write `cuda=\"sm_80\"`"):
        decay.export(tmp_path, cuda=80)
    with pytest.raises(CallError, match=r"TC660.*no processor 3"):
        decay.export(tmp_path, cpus=[3])
    with pytest.raises(TypeError, match="the name of a library is a string"):
        decay.export(tmp_path, name=3)
    with pytest.raises(CallError, match=r"TC60[67]"):
        decay.export(tmp_path, like="X")


def test_only_files_of_an_export_are_overwritten(module, tmp_path, monkeypatch):
    monkeypatch.setattr(project, "compiler", lambda: None)
    monkeypatch.setattr(project, "warn", lambda *_: None)
    (tmp_path / "example.c").write_text("mine")
    (tmp_path / "kernels").mkdir()

    def refused(name):
        with pytest.raises(CallError, match=f"TC687.*{name}` is not as an export has left it"):
            module.decay.export(tmp_path, cpus="native")

    refused("example.c")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["example.c"]
    module.decay.export(tmp_path, cpus="native", force=True)
    module.decay.export(tmp_path, cpus="native", like={"N": 8})
    module.blur.export(tmp_path, cpus="native")
    (tmp_path / "kernels" / "mine.o").touch()
    refused("mine.o")
    (tmp_path / "kernels" / "mine.o").unlink()
    (tmp_path / "decay.h").write_text("changed")
    refused("decay.h")


def test_calls_that_are_no_calls_are_refused(module, tmp_path):
    blur = module.blur
    with pytest.raises(tc.CallError, match=r"TC614.*`W` is not given"):
        blur.export(tmp_path, like=[{"H": 4}])
    with pytest.raises(ValueError, match="`blur` has no size 'K'; there are H, W"):
        blur.export(tmp_path, like=[{"H": 4, "W": 4, "K": 4}])
    with pytest.raises(TypeError, match="like: name the def of each list of calls"):
        tc.export([blur], tmp_path, "k", like=[{"H": 4, "W": 4}])
    with pytest.raises(ValueError, match="like: there is no def 'blurr'; there are blur"):
        tc.export(blur, tmp_path, "k", like={"blurr": [{"H": 4, "W": 4}]})
    with pytest.raises(TypeError, match=r"tc\.export writes functions, .* pass its `\.values\(\)`"):
        tc.export(module, tmp_path, "k")
    with pytest.raises(TypeError, match="with_vjp takes a function"):
        blur.with_vjp(3)
    with pytest.raises(TypeError, match=r"tc\.zarr calls a function"):
        tc.zarr("blur", out="y.zarr")
