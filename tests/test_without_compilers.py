"""Analysis, cards, views and the interpreter need neither llvmlite nor islpy; with them, llvmlite waits for a kernel of the CPU."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

BLOCKED = """
import sys
sys.modules["llvmlite"] = sys.modules["islpy"] = None      # an import of them raises ImportError
"""
SCRIPT = """
import json, sys
import numpy as np
import tc_jupyter as tc
from tc_jupyter import ide
from tc_jupyter.notebook.widgets.views import VIEWS

text = "def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }"
told = {}
told["check"] = ide.check(text)["diagnostics"]
told["hover"] = ide.hover(text, {"line": 0, "character": 44})["title"]
waiting = [tc.compile(text), tc.compile(text, target="cpu"), tc.compile("def g(float(N) X) -> (Y) { Y(i) = X(i) }").g.vjp()]
module = tc.compile(text, target="interpreter")
told["card"] = tc.card(module).bundle()["text/html"]
f, x, w = module.conv, np.arange(5, dtype=np.float32), np.ones(2, np.float32)
told["value"] = f(x, w).tolist()
told["derivative"] = [each.tolist() for each in f.vjp()(x, w, np.ones(4, np.float32))]
for kind in ("loops", "c", "cuda"):
    told[kind] = f.source(kind)
sac = tc.compile("double[*] inc(double[*] a) { return { iv -> a[iv] + 1.0 }; }", "sac", target="interpreter").inc
told["sac"] = sac(np.ones((2, 2))).tolist()
for name in sorted(VIEWS, key="benchmark".__eq__):  # which makes functions for the CPU, is last
    told["loaded"] = [name for name in ("llvmlite", "islpy") if sys.modules.get(name) is not None]
    told[name] = tc.view(sac if name == "partitions" else f, name).bundle()["text/html"]
told["bounds"] = str(f.schedule().split("Y", "i", 4).bounds())
"""
MISSING = """
free = tc.compile(text).conv
told["default"] = free(x, w).tolist()
try:
    free.source("asm")
except Exception as problem:
    told["asm"] = [type(problem).__name__, str(problem)]
stencil = tc.compile("def st(float(N) X) -> (O) { T(i) = X(i)  O(i) = T(i) + T(i + 1) }").st
try:
    stencil.schedule().compute_with("O", "T", "i")
except tc.CompileError as problem:
    told["order"] = str(problem)
told["proof"] = tc.analyze(
    "def f(float(N) X, float(M) Z) -> (A) { A(i) = i < M ? X(i) : Z(i) where i in 0:N }"
).render()
told["doctor"] = str(tc.doctor())
"""
END = "print(json.dumps(told))"


def run(script: str):
    import json

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def looks_right(told) -> None:
    assert told["check"] == []
    assert told["hover"] == "0 <= i < N - K + 1"
    assert "N - K + 1" in told["card"]
    assert told["value"] == [1, 3, 5, 7]
    assert told["derivative"] == [[1, 2, 2, 2, 1], [6, 10]]
    assert told["sac"] == [[2, 2], [2, 2]]
    assert all("<" in told[view] for view in ("ranges", "iteration_space", "schedule", "code", "benchmark", "tuning"))
    assert "for" in told["loops"]
    assert "__global__" in told["cuda"]
    assert "i.outer" in told["bounds"] or "visits" in told["bounds"]


def test_everything_but_kernels_of_the_cpu_works_without_both():
    told = run(BLOCKED + SCRIPT + MISSING + END)
    looks_right(told)
    assert told["loaded"] == []
    assert told["default"] == [1, 3, 5, 7]  # by the interpreter
    assert told["asm"] == ["BackendError", "the compiler for the CPU is not installed: pip install llvmlite"]
    # what needs exact sets says so, and claims nothing
    assert "it cannot be excluded" in told["order"]
    assert "the set library is not installed" in told["order"]
    assert "TC506" in told["proof"]


def test_the_compiler_is_loaded_for_a_kernel_of_the_cpu_alone():
    told = run(SCRIPT + "told['then'] = tc.compile(text, target='cpu').conv(x, w).tolist()\n" + END)
    looks_right(told)
    assert "llvmlite" not in told["loaded"]
    assert told["then"] == [1, 3, 5, 7]


def test_no_module_imports_them_when_it_is_imported():
    for path in sorted((ROOT / "tc_jupyter").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:  # not inside of functions
            names = [each.name for each in getattr(node, "names", ())] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] in ("llvmlite", "islpy", "sympy", "cupy")], path
