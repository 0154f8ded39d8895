"""Real processes: IPython in a terminal, a Jupyter kernel that is interrupted, Python without Jupyter packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 120
"""Seconds after which a process counts as hanging; none needs a tenth of it."""


@pytest.fixture
def environment(tmp_path):
    return {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path / "ipython"), "TERM": "dumb"}


def test_the_terminal(environment):
    pytest.importorskip("IPython")
    cells = [
        "%load_ext tc_jupyter",
        "%%tc\ndef conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }\n\n",
        "import numpy as np",
        "conv(np.arange(4, dtype='f4'), np.ones(2, 'f4')).sum()",
        "%%tc\ndef f(float(N, K) A) -> (B) { B(i) = A(i, k) }\n\n",
        "%tc list",
    ]
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"]
    answer = subprocess.run(
        command,
        input="\n".join(cells) + "\n",
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    said = answer.stdout + answer.stderr
    assert "0 <= i < N - K + 1" in said
    assert "9.0" in said
    assert "error[TC204] reduction-missing" in said
    assert "Traceback" not in said
    assert "conv(float32(N) B, float32(K) W)" in said


def test_a_running_call_can_be_interrupted(environment):
    """The call would take hours; Ctrl-C ends it and the kernel goes on."""
    jupyter_client = pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3", env=environment)
    try:
        ready = [
            "%load_ext tc_jupyter",
            "%%tc\ndef f(float(N) A) -> (C) { C(i, j, l, m) = exp(A(i) * A(j) + A(l) * A(m)) + 0 * A(k) }".replace(
                " = ", " +=! "
            ),
            "import numpy as np\nf(np.ones(3, 'f4')).shape",
        ]
        for cell in ready:
            reply = client.execute_interactive(cell, timeout=LONGEST, output_hook=lambda message: None)
            assert reply["content"]["status"] == "ok", reply["content"]
        started = client.execute("print('now')\nf(np.ones(90, 'f4'))\n" * 1000, stop_on_error=False)
        while True:
            message = client.get_iopub_msg(timeout=LONGEST)
            if message["msg_type"] == "stream":
                break
        manager.interrupt_kernel()
        while True:
            reply = client.get_shell_msg(timeout=LONGEST)
            if reply["parent_header"].get("msg_id") == started:
                break
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        after = client.execute_interactive("f(np.ones(3, 'f4'))", timeout=LONGEST, output_hook=lambda message: None)
        assert after["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_python_without_jupyter_packages(environment):
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("IPython", "ipywidgets", "anywidget", "jupyterlab", "traitlets", "comm", "pygments"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
import numpy as np, tc_jupyter as tc
from tc_jupyter.cli import main
f = tc.compile("def f(float(N) X) -> (Y) { Y(i) = 2 * X(i) }").f
print(f(np.arange(3, dtype="f4")), main(["explain", "TC204"]))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert answer.stderr == ""
    assert "[0. 2. 4.] 0" in answer.stdout


def test_loading_the_extension_does_not_load_what_only_some_need(environment):
    code = """
import sys
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_line_magic("load_ext", "tc_jupyter")
print([name for name in ("sympy", "islpy", "cupy", "torch", "ipywidgets", "anywidget", "jupyterlab") if name in sys.modules])
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert answer.stdout.strip() == "[]"
    assert answer.stderr == ""
