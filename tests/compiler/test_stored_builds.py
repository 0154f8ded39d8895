from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.compiler import stored_builds
from tc_jupyter.compiler.definition import Definition
from tc_jupyter.diagnostics import CallError
from tc_jupyter.ranges import exactly
from tc_jupyter.runtime import cpu
from tc_jupyter.runtime.cache import DiskCache
from tc_jupyter.runtime.kernel import Layout
from tc_jupyter.schedule import Target

CELLS = {
    "product": "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
    "temporaries": """def f(float(M,N) A, float(M,N) B) -> (C) {
        S(i) +=! A(i,j)
        C(i,j) = A(i,j) * S(i) + B(j,i) where i in 0:min(M,N), j in 0:min(M,N)
    }""",
    "check inside": "def f(float(N) A, int32(N) I, int32(N) J) -> (B) { B(i) = A(I(i) + J(i)) }",
    "check before": "def f(float(N) A, int32(M) I) -> (B) { B(i) = A(I(i)) }",
    "scalars": "def f(float(N) A, float s, int32 k) -> (B) { B(i) = A(i) * s + k }",
    "library": "def f(double(N) A) -> (B) { B(i) = lgamma(A(i)) }",
}


@pytest.fixture
def built(tmp_path, monkeypatch):
    """The cache in an empty folder; the list of defs that were built.

    What all defs of a process share, as the thread pool, is in another folder: its objects are stored when they are first needed.
    """
    text = CELLS["product"].replace("float(", "double(")
    tc.compile(text, target="cpu").f(*(each.astype(np.float64) for each in arguments("product")))
    folder = tmp_path / "cache"
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(folder))
    calls: list[str] = []
    original = Definition.build

    def build(self, *given):
        calls.append(self.name)
        return original(self, *given)

    monkeypatch.setattr(Definition, "build", build)
    return calls


def arguments(name):
    random = np.random.default_rng(0)
    floats = lambda *shape: random.standard_normal(shape).astype(np.float32)  # noqa: E731
    ints = lambda n: random.integers(0, 4, n).astype(np.int32)  # noqa: E731
    return {
        "product": (floats(17, 5), floats(5, 33)),
        "temporaries": (floats(9, 9), floats(9, 9)),
        "check inside": (floats(9), ints(9), ints(9)),
        "check before": (floats(9), ints(30)),
        "scalars": (floats(40), 1.5, 3),
        "library": (np.linspace(0.5, 9, 7),),
    }[name]


@pytest.mark.parametrize("name", CELLS)
def test_a_second_start_builds_nothing_and_computes_the_same(built, name):
    values = arguments(name)
    first = tc.compile(CELLS[name], target="cpu").f
    expected = first(*values)
    assert built == ["f"]
    second = tc.compile(CELLS[name], target="cpu").f
    for _ in range(4):  # the general way, the short one, the native one
        np.testing.assert_array_equal(second(*values), expected)
    assert built == ["f"]


def test_checks_of_kept_code_fail_with_the_same_message(built):
    values = arguments("check inside")
    values[1][3] = 100
    said = []
    for _ in range(2):
        with pytest.raises(CallError) as raised:
            tc.compile(CELLS["check inside"], target="cpu").f(*values)
        said.append(str(raised.value))
    assert built == ["f"]
    assert said[0] == said[1]
    assert "index 103 in dimension 0, but it has 0 to 8" in said[0]


def test_other_options_types_layouts_and_schedules_have_plans_of_their_own(built):
    a, b = arguments("product")
    text = CELLS["product"]
    tc.compile(text, target="cpu").f(a, b)
    for other, values in (
        (tc.compile(text, target="cpu").f, (np.asfortranarray(a), b)),
        (tc.compile(text.replace("float", "double"), target="cpu").f, (a.astype(float), b.astype(float))),
        (tc.compile(text, target="cpu", specialize=True).f, (a, b)),
        (tc.compile(text.replace("A(i,k) * B", "A(i,k) + B"), target="cpu").f, (a, b)),
    ):
        before = len(built)
        other(*values)
        assert len(built) == before + 1
    f = tc.compile(text, target="cpu").f
    for factor, more in ((4, 1), (8, 1), (4, 0)):
        before = len(built)
        split = f.with_schedule(f.schedule().split("C", "i", factor))
        np.testing.assert_allclose(split(a, b), a @ b, rtol=1e-5)
        assert len(built) == before + more


def test_a_plan_without_its_object_or_with_strange_content_is_made_again(built):
    a, b = arguments("product")
    store = DiskCache.default()
    tc.compile(CELLS["product"], target="cpu").f(a, b)
    kinds = {path: store.get(path.stem).meta.get("kind") for path in store.folder.glob("*.tcx")}
    (plan,) = (path for path, kind in kinds.items() if kind == "plan")
    (code,) = (path for path, kind in kinds.items() if kind != "plan")
    code.unlink()
    np.testing.assert_allclose(tc.compile(CELLS["product"], target="cpu").f(a, b), a @ b, rtol=1e-5)
    assert len(built) == 2
    strange = [b"", b"{}", b"3", b'["Kernel"]', b'["KernelPlan", 1]', b'[null, ["DType", "float3"]]', b"[null, 1]"]
    for count, content in enumerate(strange, 3):
        store.put(plan.stem, content, {"kind": "plan"})
        np.testing.assert_allclose(tc.compile(CELLS["product"], target="cpu").f(a, b), a @ b, rtol=1e-5)
        assert len(built) == count


WRONG_PLANS = (
    lambda plan: [None],
    lambda plan: [None, plan[1][:-1]],
    lambda plan: [None, [*plan[1][:-1], 7]],
    lambda plan: [None, [*plan[1][:3], [None, "x"], plan[1][4]]],
    lambda plan: [None, [plan[1][0], ["EntryPoint", *plan[1][2][1:]], *plan[1][2:]]],
    lambda plan: [None, [plan[1][0], plan[1][2], plan[1][1], *plan[1][3:]]],
    lambda plan: [None, [*plan[1][:2], [*plan[1][2][:-1], [None, [None, "no operation", 1, 2]]], *plan[1][3:]]],
    lambda plan: [None, [*plan[1][:2], [plan[1][2][0], "no function", *plan[1][2][2:]], *plan[1][3:]]],
    lambda plan: [[]],
)


@pytest.mark.some(3)
@pytest.mark.parametrize("number", range(len(WRONG_PLANS)))
def test_a_plan_of_the_wrong_types_is_made_again(built, number):
    a, b = arguments("product")
    store = DiskCache.default()
    tc.compile(CELLS["product"], target="cpu").f(a, b)
    (key,) = (path.stem for path in store.folder.glob("*.tcx") if store.get(path.stem).meta.get("kind") == "plan")
    content = WRONG_PLANS[number](json.loads(store.get(key).data))
    store.put(key, json.dumps(content).encode(), {"kind": "plan"})
    np.testing.assert_allclose(tc.compile(CELLS["product"], target="cpu").f(a, b), a @ b, rtol=1e-5)
    assert len(built) == 2


def test_a_deeply_nested_plan_is_made_again(built):
    a, b = arguments("product")
    store = DiskCache.default()
    tc.compile(CELLS["product"], target="cpu").f(a, b)
    (key,) = (path.stem for path in store.folder.glob("*.tcx") if store.get(path.stem).meta.get("kind") == "plan")
    store.put(key, b"[" * 100_000 + b"]" * 100_000, {"kind": "plan"})
    np.testing.assert_allclose(tc.compile(CELLS["product"], target="cpu").f(a, b), a @ b, rtol=1e-5)
    assert len(built) == 2


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("data", "meta"),
    [
        (b"no object", None),
        (None, {}),
        (None, {"symbols": 3, "entry": "f"}),
        (None, {"symbols": ["no symbol"]}),
        (None, {"symbols": [[]]}),
        (None, {"symbols": []}),
    ],
)
def test_an_object_with_wrong_content_is_made_again(built, data, meta):
    a, b = arguments("product")
    store = DiskCache.default()
    tc.compile(CELLS["product"], target="cpu").f(a, b)
    (key,) = (path.stem for path in store.folder.glob("*.tcx") if store.get(path.stem).meta.get("kind") != "plan")
    entry = store.get(key)
    for wrong in (data,) if data is not None else (entry.data, entry.data[: len(entry.data) // 2]):
        store.put(key, wrong, entry.meta if meta is None else meta)
        np.testing.assert_allclose(tc.compile(CELLS["product"], target="cpu").f(a, b), a @ b, rtol=1e-5)
        assert store.get(key) == entry


def test_every_value_of_a_plan_comes_back_from_json(built):
    for name, text in CELLS.items():
        f = tc.compile(text, target="cpu").f
        made = f.definition().build(cpu.cpu_target(), Layout(frozenset(), 64))
        found = stored_builds.plans_of(made)
        assert stored_builds.from_data(json.loads(json.dumps(stored_builds.to_data(found)))) == found, name


def test_keys_are_the_same_in_every_process_and_differ_where_code_may():
    code = """
import tc_jupyter as tc
from tc_jupyter.compiler.stored_builds import plan_key
from tc_jupyter.runtime.kernel import Layout
from tc_jupyter.schedule import Target
f = tc.compile("def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }", target="cpu").f
print(plan_key(f.program, Layout(frozenset("ABC"), 64), Target("cpu", features=frozenset(("x", "y", "z"))), None, True))
"""

    def run(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment).stdout

    assert run("1") == run("2")
    program = tc.compile(CELLS["product"], target="cpu").f.program
    target, layout = Target("cpu"), Layout(frozenset(), 64)
    keys = [
        stored_builds.plan_key(program, layout, target, None, True),
        stored_builds.plan_key(program, layout, target, None, False),
        stored_builds.plan_key(program, layout, target, (), True),
        stored_builds.plan_key(program, layout, replace(target, threads=7), None, True),
        stored_builds.plan_key(program, replace(layout, facts=(("M", exactly(4)),)), target, None, True),
        stored_builds.plan_key(replace(program, name="g"), layout, target, None, True),
    ]
    assert len(set(keys)) == len(keys)
    assert stored_builds.plan_key(program, layout, target, None, True) == keys[0]


def test_numbers_of_numpy_are_numbers(built):
    a, b = arguments("product")
    f = tc.compile(CELLS["product"], target="cpu", specialize={"M": np.int64(17)}).f
    np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-5)
    split = f.with_schedule(f.schedule().split("C", "i", np.int64(4)))
    np.testing.assert_allclose(split(a, b), a @ b, rtol=1e-5)


def test_a_changed_file_of_the_package_makes_other_keys(tmp_path, monkeypatch):
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "loops").mkdir()
    (tmp_path / "loops" / "ir.py").write_text("a = 1")
    (tmp_path / "compiler").mkdir()
    monkeypatch.setattr(stored_builds, "__file__", str(tmp_path / "compiler" / "stored_builds.py"))
    found = [stored_builds._package()]
    (tmp_path / "loops" / "ir.py").write_text("a = 10")
    found.append(stored_builds._package())
    assert found[0] != found[1]
    (tmp_path / "__init__.py").unlink()
    assert stored_builds._package() == ""


def test_nothing_is_kept_where_the_package_has_no_files(built, monkeypatch):
    monkeypatch.setattr(stored_builds, "_PACKAGE", "")
    a, b = arguments("product")
    for _ in range(2):
        np.testing.assert_allclose(tc.compile(CELLS["product"], target="cpu").f(a, b), a @ b, rtol=1e-5)
    assert built == ["f", "f"]
