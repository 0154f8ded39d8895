"""Kernels that are equal but for names and places share a text, and no others do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from llvm_kernels import F32, add, const, execute, kernel, least, loop, mul, op, read, size, target, var

import tc_jupyter as tc
from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.llvm import AlikePrinter, alike, emit_as_twin, emit_llvm
from tc_jupyter.codegen.llvm.alike import Outline, outline
from tc_jupyter.compiler.definition import Definition
from tc_jupyter.loops import SPARE, Allocate, Barrier, Block, Buffer, Check, For, If, Intrinsic, Kernel, Store, simplify
from tc_jupyter.program import Binary, Cast, Const, DType, Expr, Read, int64
from tc_jupyter.ranges import Fact
from tc_jupyter.runtime import cpu, jit, threads
from tc_jupyter.runtime.cache import DiskCache
from tc_jupyter.runtime.launch import entry_point
from tc_jupyter.schedule import Target


def emit_alike(kernels: Sequence[Kernel], on: Target) -> list[KernelSource]:
    """The texts of kernels, printed in that order."""
    return list(map(AlikePrinter(on).source, kernels))


def layer(
    x: str = "X",
    w: str = "W",
    y: str = "Y",
    sizes: tuple[str, str, str] = ("M", "K", "N"),
    loops: tuple[str, str, str, str] = ("i", "j.outer", "j", "k"),
    name: str = "k",
    dtype: DType = F32,
    turned: bool = False,
    role: str = "output",
    scope: str = "argument",
    floor: float = 0.0,
) -> Kernel:
    """`y = max(x @ w, 0)`; `turned`: sums of positions stand in the other order."""
    (m, k, n), (i, jo, j, l) = map(size, sizes), map(var, loops)
    at = add(j, mul(jo, 16)) if turned else add(mul(jo, 16), j)
    product = op("*", read(x, i, l, dtype=dtype), read(w, l, at, dtype=dtype))
    clear, total = Store(y, (i, at), const(0.0, dtype)), Store(y, (i, at), product, "+", statement=y)
    last = Store(y, (i, at), op("max", read(y, i, at, dtype=dtype), const(floor, dtype)))

    def lanes(*body):
        return loop(loops[2], least(op("-", n, mul(jo, 16)), 16), *body, kind="vectorize")

    row = loop(
        loops[1], op("//", add(n, 15), int64(16)), lanes(clear), loop(loops[3], k, lanes(total)), Block((lanes(last),))
    )
    body = loop(loops[0], m, row, kind="parallel")
    shapes = {x: (m, k), w: (k, n)}
    buffers = [Buffer(each, dtype, shape) for each, shape in shapes.items()]
    buffers.append(Buffer(y, dtype, (m, n), scope, role))
    return replace(kernel(buffers, "", body), name=name, sizes=sizes)


HOSTILE = [
    layer("smax", "entry", "mul", ("N", "M", "K"), ("thread", "first", "args", "last"), "ret"),
    layer("X1", "X10", "X_1", ("X", "Y", "W"), ("k", "i", "j.outer", "j"), "X1"),
    layer("W", "Y", "X", ("K", "N", "M"), ("j", "k", "i", "j.outer"), "phi"),
    layer("Y.at", "for.k", "t.1", ("t", "t.2", "then"), ("end", "else", "run", "loop"), "k.task"),
    layer("ä", "a b", "%x", ("\N{GREEK SMALL LETTER ALPHA}", "b", "c"), ("1", "2", "3", "4"), "é"),
    layer(loops=("z", "y", "x", "w"), turned=True, name="turned"),
]


@pytest.mark.parametrize("other", HOSTILE, ids=lambda each: each.name)
def test_whatever_names_are_they_change_nothing(other):
    first = layer()
    assert outline(other) == replace(outline(first), statements=outline(other).statements)
    made, twin = emit_alike([first, other], target())
    plain = emit_llvm(other, target())
    assert made == emit_llvm(first, target())
    assert (made.twin_of, twin.twin_of) == ("", "k")
    assert (twin.text, twin.entry) == (made.text, made.entry)
    assert (twin.arguments, twin.launch, twin.buffers, twin.workspace) == (
        plain.arguments,
        plain.launch,
        plain.buffers,
        plain.workspace,
    )
    assert {name for _, name in twin.line_map} == {name for _, name in plain.line_map}
    assert entry_point(twin).tasks == entry_point(made).tasks


def test_the_code_of_the_first_computes_the_second(monkeypatch):
    other = layer("W", "smax", "X", ("N", "M", "K"), ("k", "i", "for", "j"), "other")
    twin = emit_alike([layer(), other], target())[1]
    monkeypatch.setattr("llvm_kernels.emit_llvm", lambda *_: twin)
    random = np.random.default_rng(0)
    for m, k, n in ((3, 5, 7), (1, 1, 16), (4, 0, 33)):
        x, w = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
        y = np.full((m, n), np.nan, np.float32)
        execute(other, {"W": x, "smax": w, "X": y}, {"N": m, "M": k, "K": n})
        np.testing.assert_allclose(y, np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)


DIFFERENT = {
    "type": layer(dtype=DType.FLOAT64),
    "a size that is two": layer(sizes=("M", "K", "K")),
    "role": layer(role="inout"),
    "sign of zero": layer(floor=-0.0),
    "constant": layer(floor=1.0),
    "strided": replace(layer(), buffers=tuple(replace(each, strided=True) for each in layer().buffers)),
    "order of buffers": replace(layer(), buffers=layer().buffers[::-1]),
    "order of sizes": replace(layer(), sizes=("N", "K", "M")),
    "order of names": replace(layer(), body=layer("W", "X").body),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_not_a_name_counts(name):
    assert outline(DIFFERENT[name]).text != outline(layer()).text
    made = emit_alike([layer(), replace(DIFFERENT[name], name="other")], target())
    assert [source.twin_of for source in made] == ["", ""]


def copied(value: Expr | None = None, comment: str = "", chunk: int = 0, kind: str = "serial", **how: object) -> Kernel:
    """`Y[i] = A[i]`, and what may be different."""
    n, i = size("N"), var("i")
    store = Store("Y", (i,), read("A", i) if value is None else value, **how)
    body = For("i", int64(0), n, Block((store,), comment), kind, chunk=chunk)
    buffers = [Buffer("A", F32, (n,)), Buffer("Y", F32, (n,), role="output")]
    return kernel(buffers, "N", body, scalars=[("s", F32), ("t", F32)])


I = var("i")
COPIES = [
    copied(),
    copied(comment=SPARE),
    copied(kind="parallel"),
    copied(kind="parallel", chunk=4),
    copied(reduce="+"),
    copied(reduce="max"),
    copied(streaming=True),
    copied(const(0.0)),
    copied(const(float("nan"))),
    copied(Const(1, DType.FLOAT32)),
    copied(Cast(Const(1, DType.INT32), F32)),
    copied(Cast(Const(True, DType.BOOL), F32)),
    copied(read("s")),
    copied(read("t")),
    copied(op("-", read("s"), read("t"))),
    copied(op("-", read("t"), read("s"))),
    copied(op("+", read("s"), read("t"))),
    copied(op("+", read("t"), read("s"))),
    copied(Cast(add(I, 1), F32)),
    copied(Cast(op("-", I, int64(1)), F32)),
    copied(Cast(op("-", int64(1), I), F32)),
    copied(Cast(op("-", op("-", I, size("N")), int64(1)), F32)),
    copied(Cast(op("-", I, op("-", size("N"), int64(1))), F32)),
    copied(Cast(mul(add(I, 1), 2), F32)),
    copied(Cast(add(mul(I, 2), 1), F32)),
    copied(Cast(least(add(I, 2), 1), F32)),
    copied(Cast(op("//", I, int64(2)), F32)),
    copied(Cast(op("//", int64(2), I), F32)),
]


def test_every_difference_of_values_counts():
    assert len({outline(each) for each in COPIES}) == len(COPIES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (add(add(I, size("N")), 1), add(I, add(int64(1), size("N")))),
        (op("-", op("-", I, size("N")), mul(I, 2)), op("-", op("-", I, mul(int64(2), I)), size("N"))),
        (op("-", I, op("-", size("N"), I)), op("-", add(I, I), size("N"))),
        (least(least(I, 2), size("N")), least(size("N"), least(int64(2), I))),
    ],
)
def test_names_may_order_integers(one, other):
    assert outline(copied(Cast(one, F32))) == outline(copied(Cast(other, F32)))


def in_temporary(kernel: Kernel, *buffers: str) -> Kernel:
    """A kernel with some of its arrays in temporaries."""
    moved = [replace(b, scope="global", align=64) if b.name in buffers else b for b in kernel.buffers]
    return replace(kernel, buffers=tuple(moved), name=f"{kernel.name}_{'_'.join(buffers)}")


def twins(*kernels: Kernel) -> list[str]:
    """Whose code they run."""
    return [source.twin_of for source in emit_alike(kernels, target())]


def test_code_for_an_argument_serves_a_temporary():
    """Of what is computed: the result; of what is copied: where it comes from."""
    result, temporary = layer(), in_temporary(layer("A", "B", "C"), "C")
    assert twins(result, temporary) == ["", "k"]
    assert twins(temporary, result, temporary) == ["", "", "k_C"]
    assert twins(temporary, in_temporary(layer(), "Y")) == ["", "k_C"]
    made, twin = emit_alike([result, temporary], target())
    assert made.text == twin.text == emit_llvm(result, target()).text
    assert [(b.name, b.scope, b.align) for b in twin.buffers][2] == ("C", "global", 64)
    assert twins(copied(), in_temporary(copied(), "A")) == ["", "k"]


def test_code_for_an_argument_serves_no_other_temporary():
    """Copies into temporaries write whole tiles, panels of temporaries are fetched ahead, and others continue results."""
    for one, name in ((layer(), "X"), (layer(), "W"), (layer(role="inout"), "Y"), (copied(), "Y")):
        assert twins(replace(one, name="other"), in_temporary(one, name)) == ["", ""]
        assert twins(in_temporary(one, name), replace(one, name="other")) == ["", ""]
    copy, zeros = (in_temporary(copied(value), "Y") for value in (None, const(0.0)))
    assert twins(copy, replace(copy, name="other")) == ["", "k_Y"]
    assert outline(copy, frozenset("Y")) != outline(copy) != outline(zeros)


def test_what_is_written_past_the_caches_serves_what_is_not():
    past, kept = (copied(op("+", read("A", I), const(1.0)), streaming=each) for each in (True, False))
    assert twins(past, in_temporary(kept, "Y")) == ["", "k"]
    assert twins(kept, in_temporary(past, "Y")) == ["", ""]


def test_what_is_shown_is_what_runs_with_names_of_its_own():
    plus_one = op("+", read("A", I), const(1.0))
    result, temporary = copied(plus_one, streaming=True), in_temporary(copied(plus_one), "Y")
    shown = emit_as_twin(temporary, result, target(), frozenset())
    assert shown.text.replace("@k_Y", "@k") == emit_llvm(result, target()).text
    assert shown.text != emit_llvm(temporary, target()).text


def test_a_loop_variable_is_the_loop_that_binds_it():
    n = size("N")
    buffers = [Buffer("Y", F32, (n, n), role="output")]

    def nest(outer: str, inner: str, *where: str) -> Kernel:
        store = Store("Y", tuple(map(var, where)), const(1.0))
        again = loop(outer, n, loop(inner, n, Store("Y", (var(inner), var(outer)), const(2.0))))
        return kernel(buffers, "N", loop(outer, n, loop(inner, n, store)), again)

    assert outline(nest("i", "j", "i", "j")) == outline(nest("j", "i", "j", "i"))
    assert outline(nest("i", "j", "i", "j")) != outline(nest("i", "j", "j", "i"))
    one, other = (kernel(buffers, "N", *nest(name, "i", "i", "i").body.body[:1]) for name in "ij")
    assert outline(one) == outline(other)


def test_allocations_checks_statements_and_scalars_count():
    n, i = size("N"), var("i")
    buffers = [Buffer("Y", F32, (n,), role="output")]

    def local(scope: str = "local", length: int = 4, exclusive: frozenset[str] = frozenset()) -> Outline:
        body = loop("i", n, Store("T", (int64(0),), const(0.0)), Store("Y", (i,), read("T", int64(0))))
        return outline(
            kernel(buffers, "N", Allocate(Buffer("T", F32, (int64(length),), scope), Block((body,)))), exclusive
        )

    assert len({local(), local("register"), local(length=5), local(exclusive=frozenset("Y"))}) == 4

    def checked(number: int, *values: Expr) -> str:
        check = Check(op("<", i, n), number, values, Block((Store("Y", (i,), const(0.0)),)))
        return outline(kernel(buffers, "N", loop("i", n, check), checks=1)).text

    assert len({checked(0, i), checked(1, i), checked(0), checked(0, n)}) == 4

    def two(first: str, second: str) -> str:
        stores = [Store("Y", (i,), const(0.0), statement=name) for name in (first, second)]
        return outline(kernel(buffers, "N", loop("i", n, *stores))).text

    assert two("a", "b") == two("b", "a") != two("a", "a")

    def scalar(names: str, *scalars: str) -> str:
        given = [(name, DType.INT64) for name in scalars]
        return outline(replace(kernel(buffers, "N", scalars=given), sizes=tuple(names))).text

    assert scalar("Nk", "k", "m") == scalar("Nm", "m", "k") != scalar("Nk", "m", "k")
    assert scalar("N", "k") == scalar("N", "m")


def test_comments_are_for_people_if_they_mean_nothing():
    assert outline(copied(comment="Y(i) = A(i)")) == outline(copied(comment="P(n) = Q(n)"))
    assert {SPARE} < alike.MEANT


def test_multiples_count_where_they_change_loops():
    n64, k64 = (("N", Fact(multiple=64)),), (("K", Fact(multiple=64)),)
    kernels = [
        replace(simplify(layer()), facts=many, name=f"k{number}")
        for number, many in enumerate([(), n64, k64, n64 + k64])
    ]
    made = emit_alike(kernels, target())
    assert [source.twin_of for source in made] == ["", "", "k0", "k1"]
    for each, source in zip(kernels, made, strict=True):
        assert source.text.replace(source.entry, each.name) == emit_llvm(each, target()).text


def test_limits_of_own_sizes_count():
    some, fewer = Fact(33, 63), Fact(17, 31)
    limits = [(), (("N", some),), (("N", fewer),), (("K", some),), (("K", some), ("N", some))]
    texts = [outline(replace(layer(), facts=each)).text for each in limits]
    assert len(set(texts)) == len(texts)
    assert outline(replace(layer(), facts=(("N", some), ("K", some)))).text == texts[-1]
    for others in ((("other", some),), (("N", Fact(257)),)):
        assert outline(replace(layer(), facts=others)).text == texts[0]


def test_outlines_know_every_field():
    """Who adds a field says in `alike` whether kernels that differ in it may share code."""
    left_out = {
        Kernel: {"name", "statements", "comment", "most"},
        For: {"axis"},
        Store: {"span"},
        Intrinsic: {"span"},
        Read: {"span", "border"},
        Binary: {"span"},
    }
    written = {
        Kernel: {
            *("buffers", "sizes", "scalars", "body", "checks"),
            *("facts", "min_blocks", "unguarded", "ordered"),
        },
        Buffer: {
            *("name", "dtype", "shape", "scope", "role", "strided"),
            *("align", "pad", "swizzle", "threads", "stages"),
        },
        For: {"var", "min", "extent", "body", "kind", "chunk", "tail"},
        If: {"condition", "then", "otherwise"},
        Store: {"buffer", "indices", "value", "reduce", "atomic", "streaming", "statement"},
        Allocate: {"buffer", "body"},
        Barrier: {"scope"},
        Check: {"condition", "number", "values", "body"},
        Intrinsic: {"name", "operands", "attributes", "statement"},
        Block: {"body", "comment"},
        Read: {"tensor", "indices", "dtype"},
        Binary: {"op", "left", "right", "dtype"},
    }
    for kind, names in written.items():
        assert {each.name for each in fields(kind)} == names | left_out.get(kind, set()), kind


def test_a_value_that_is_nested_too_deeply_is_said_to_be():
    value = read("A", I)
    for _ in range(3000):
        value = op("+", value, const(1.0))
    with pytest.raises(tc.CompileError, match="nested too deeply"):
        emit_alike([copied(value)], target())


# --- defs ----------------------------------------------------------------------------------------------------------------


def chain(layers: int, names: str = "t", weights: str = "W", size_names: str = "D") -> str:
    """A def of so many equal layers."""
    given = ", ".join(f"float({size_names}{k + 1},{size_names}{k}) {weights}{k + 1}" for k in range(layers))
    lines = [
        f"{names}{k + 1}(n,o) +=! {names}{k}(n,i) * {weights}{k + 1}(o,i)\n"
        f"{names}{k + 1}r(n,o) = max({names}{k + 1}(n,o), 0.0)".replace(f"{names}{k}(", f"{names}{k}r(" if k else "X(")
        for k in range(layers)
    ]
    return f"def f(float(B,{size_names}0) X, {given}) -> ({names}{layers}r) {{\n" + "\n".join(lines) + "\n}"


def reference(x, *weights):
    for w in weights:
        x = np.maximum(x @ w.T, 0)
    return x


def arrays(batch: int, *widths: int):
    random = np.random.default_rng(sum(widths))
    normal = lambda *shape: random.standard_normal(shape).astype(np.float32) / 4  # noqa: E731
    pairs = zip(widths[1:], widths[:-1], strict=True)
    return normal(batch, widths[0]), *(normal(*pair) for pair in pairs)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The cache in an empty folder; what was compiled and loaded, but for the code of the pool, which a process needs once."""
    threads.pool()
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path / "cache"))
    found: dict[str, list[object]] = {"objects": [], "loaded": [], "built": []}

    def watch(owner, name, key):
        original = getattr(owner, name)

        def call(*given, **more):
            found[key].append(given)
            return original(*given, **more)

        monkeypatch.setattr(owner, name, call)

    watch(jit, "emit_object", "objects")
    watch(jit, "emit_object_inside", "objects")
    watch(jit, "load_object", "loaded")
    watch(Definition, "build", "built")
    return found


NAMES = [
    ("t", "W", "D"),
    ("smax", "mul", "entry"),
    ("X_cache", "X", "X1"),
    ("for", "i64_", "float_"),
    ("first", "k", "task"),
]


@pytest.mark.some(3)
@pytest.mark.parametrize("names", NAMES, ids=lambda each: each[0])
def test_equal_layers_compute_what_numpy_does(made, names):
    text = chain(4, *names)
    for _ in range(2):  # from an empty cache, then from disk
        f = tc.compile(text, target="cpu").f
        for batch, *widths in (
            (64, 64, 64, 64, 64, 64),
            (3, 5, 17, 1, 33, 2),
            (70, 40, 20, 90, 64, 16),
            (2, 3, 1, 5, 3, 1),
        ):
            given = arrays(batch, *widths)
            for _ in range(4):
                np.testing.assert_allclose(f(*given), reference(*given), rtol=1e-4, atol=1e-5)


def test_every_kind_is_compiled_once_and_loaded_once(made):
    text, given = chain(5), arrays(128, 256, 256, 256, 256, 256, 256)
    f = tc.compile(text, target="cpu").f
    expected = f(*given)
    (((_, layout),),) = (tuple(f._known(given)._ready),)
    build = f._known(given).build(cpu.cpu_target(), layout)
    kinds = {source.text for source in build.sources}
    assert len(kinds) < len(build.kernels) - 2
    assert len(made["objects"]) == len(made["loaded"]) == len(kinds)
    store = DiskCache.default()
    entries = [store.get(path.stem).meta for path in store.folder.glob("*.tcx")]
    assert sum("entry" in meta for meta in entries) == len(kinds)
    built = len(made["built"])
    again = tc.compile(text, target="cpu").f
    np.testing.assert_array_equal(again(*given), expected)
    assert len(made["built"]) == built
    assert len(made["objects"]) == len(kinds)
    assert len(made["loaded"]) == 2 * len(kinds)


def test_layers_before_the_last_one_run_its_code():
    """It is printed when the copy of its operand is; the kernels stand in order of execution."""
    told: list[str] = []
    f = tc.compile(chain(4), target="cpu").f
    f(*arrays(128, 256, 256, 256, 256, 256))
    ((_, layout),) = tuple(f.definition()._ready)
    build = f.definition().build(cpu.cpu_target(), layout, told.append)
    names = [kernel.name for kernel in build.kernels]
    assert [int(name.split("_")[1]) for name in names] == list(range(len(names)))
    copies = [k for k, name in enumerate(names) if name.endswith("_cache")]
    layers = [k for k in range(len(names)) if k not in copies]
    assert [build.sources[k].twin_of for k in copies] == ["", *[names[0]] * (len(copies) - 1)]
    assert [build.sources[k].twin_of for k in layers] == [*[names[-1]] * (len(layers) - 1), ""]
    assert told == [build.sources[0].text, build.sources[-1].text]


def test_sources_show_every_kernel_with_its_own_names():
    f = tc.compile(chain(4), target="cpu").f
    given = arrays(128, 256, 256, 256, 256, 256)
    (text, assembly) = (f.source(kind, *given) for kind in ("llvm", "asm"))
    known = f._known(given)
    build = known.build(
        cpu.cpu_target(), known.layout(known.inputs(given), {}, known.numbers_at(known.inputs(given).sizes), "cpu")
    )
    twins = [source.twin_of for source in build.sources]
    assert any(twins)
    shown = build.shown()
    assert text == "\n\n".join(source.text for source in shown)
    for name, source, own in zip((each.name for each in build.kernels), build.sources, shown, strict=True):
        assert own.entry == name
        assert f"@{name}(" in text
        assert name in assembly
        assert own.text.startswith("; passes: ")
        note = f"; what runs is the code of `{source.twin_of}`, which is equal but for names"
        assert (note in own.text.splitlines()) == bool(source.twin_of)
        lines = own.text.splitlines()
        assert all(lines[line].strip() for line, _ in own.line_map)
        assert (own is source) == (not source.twin_of)
        assert (own.launch, own.arguments) == (source.launch, source.arguments)
        marked = {each for _, each in own.line_map}
        assert marked == {each for _, each in source.line_map}
        assert marked
