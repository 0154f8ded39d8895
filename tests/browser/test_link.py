"""The connection to the kernel: missing, foreign, busy, restarted, of another version; several notebooks; answers that are nonsense."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from browser_app import START, App

GOOD = "%%tc\ndef f(float(N) X) -> (Y) {\n    Y(i) = X(i + 1)\n}"
RANGE = "0 <= i < N - 1"

# `tcAsked` says whether a question about a position has gone to the kernel since
ASKED = """() => {
    const { send } = WebSocket.prototype;
    window.tcAsked = false;
    WebSocket.prototype.send = function (data) {
        const text = typeof data === 'string' ? data : new TextDecoder().decode(data);
        if (text.includes('"hover"')) {
            WebSocket.prototype.send = send;
            window.tcAsked = true;
        }
        send.call(this, data);
    };
}"""


def test_an_answer_that_is_lost_is_asked_for_again(lab: App) -> None:
    lab.ready("lost.ipynb", GOOD + "\n# lost")
    lab.focus(1)
    lab.panel().get_by_text(RANGE).first.wait_for()


def kernel(app: App, name: str, argv: list[str], language: str = "python") -> dict[str, Any]:
    """Install a kernel; the metadata of a notebook that uses it."""
    spec = app.server.folder.parent / "data" / "kernels" / name
    spec.mkdir(parents=True, exist_ok=True)
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": name, "language": language}))
    app.leave()
    return {"kernelspec": {"name": name, "display_name": name, "language": language}}


def test_without_the_package_the_button_says_what_to_do(app: App) -> None:
    hidden = (
        "import sys\nclass Hidden:\n    def find_spec(self, name, *more):\n        if name == 'tc_jupyter':\n"
        "            raise ModuleNotFoundError(name)\nsys.meta_path.insert(0, Hidden())\n"
        "from ipykernel import kernelapp; kernelapp.launch_new_instance()"
    )
    metadata = kernel(app, "bare", [sys.executable, "-c", hidden, "-f", "{connection_file}"])
    app.open(app.server.notebook("bare.ipynb", [GOOD, "x = 1"], metadata))
    app.idle()
    app.focus(0)
    panel = app.panel()
    panel.locator("[data-tc-state=not-loaded]").wait_for()
    assert "%load_ext tc_jupyter" in panel.inner_text()
    panel.locator("[data-tc-load]").click()
    panel.get_by_text("install it there (`%pip install tc_jupyter`)").wait_for()
    app.editor(0).locator(".tok-keyword").first.wait_for()
    app.run_and_wait(1)
    assert app.cell(1).locator(".jp-OutputArea-output").count() == 0


@pytest.mark.always
def test_kernel_side_is_loaded_by_the_button(app: App) -> None:
    app.open(app.server.notebook("button.ipynb", [GOOD.replace("i + 1", "i")]))
    app.idle()
    app.focus(0)
    panel = app.panel()
    panel.locator("[data-tc-state=not-loaded] [data-tc-load]").click()
    panel.locator("[data-tc-state=ready]").wait_for()
    panel.get_by_text("0 <= i < N").first.wait_for()
    assert app.cell(0).locator(".jp-OutputArea-output").count() == 0


def test_kernel_of_another_language(app: App) -> None:
    (app.server.folder / "other_kernel.py").write_text(
        "from ipykernel.kernelapp import IPKernelApp\nfrom ipykernel.kernelbase import Kernel\nclass Other(Kernel):\n"
        "    implementation = 'other'\n    implementation_version = '1'\n    banner = ''\n"
        "    language_info = {'name': 'other', 'mimetype': 'text/plain', 'file_extension': '.x'}\n"
        "    async def do_execute(self, code, silent, *args, **more):\n        return {'status': 'ok', 'execution_count': 1, 'payload': [], 'user_expressions': {}}\n"
        "IPKernelApp.launch_instance(kernel_class=Other)\n"
    )
    argv = [sys.executable, str(app.server.folder / "other_kernel.py"), "-f", "{connection_file}"]
    metadata = kernel(app, "other", argv, "other")
    app.open(app.server.notebook("other.ipynb", [GOOD, GOOD.replace("X(i + 1)", "X(i +")], metadata))
    app.focus(0)
    panel = app.panel()
    panel.locator("[data-tc-state=other-language]").wait_for()
    assert "not a Python kernel" in panel.inner_text()
    app.editor(0).locator(".tok-keyword").first.wait_for()
    app.editor(1).locator(".cm-lintRange-error").first.wait_for()


VERSIONS = {
    (2, "9.0.0"): ("wrong-version", "update tc_jupyter where JupyterLab runs"),
    (0, "0.0.1"): ("wrong-version", "update tc_jupyter where the kernel runs"),
    (1, "0.0.1"): ("ready", "the kernel has tc_jupyter 0.0.1"),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_another_version_is_said(lab: App, version: tuple[int, str]) -> None:
    state, words = VERSIONS[version]
    name = f"stand_v{version[0]}"
    (lab.server.folder / f"{name}.py").write_text(
        f"import stand_in\nstand_in.VERSION, stand_in.PACKAGE = {version!r}\nload_ipython_extension = stand_in.load_ipython_extension\n"
    )
    lab.open(lab.server.notebook("version.ipynb", [f"%load_ext {name}", GOOD]))
    lab.idle()
    lab.run_and_wait(0)
    lab.focus(1)
    panel = lab.panel()
    panel.locator(f"[data-tc-state={state}]").wait_for()
    panel.get_by_text(words).first.wait_for()
    lab.editor(1).locator(".tok-keyword").first.wait_for()


MESSAGES = """import stand_in
for data in ({}, [], 'x', 7, None, {'id': 3}, {'id': 'x', 'v': 'y'}, {'kind': []}, {'v': 1, 'kind': 'check', 'id': None, 'analysis': {}}):
    stand_in._state['comm'].send(data)"""


def test_malformed_messages_are_ignored(app: App) -> None:
    app.ready("malformed.ipynb", GOOD, MESSAGES)
    app.run_and_wait(2)
    app.focus(1)
    app.panel().get_by_text(RANGE).first.wait_for()


def test_malformed_answers_are_said_and_the_next_is_read(app: App) -> None:
    app.ready("junk.ipynb", GOOD + "\n# junk")
    app.editor(1).locator(".cm-lintRange-info").first.wait_for()
    app.hover(1, "%%tc", "the check failed: ")
    app.caret(1, "# junk")
    for _ in range(len("# junk")):
        app.page.keyboard.press("Backspace")
    app.editor(1).locator(".cm-lintRange-info").first.wait_for(state="detached")
    app.panel().get_by_text(RANGE).first.wait_for()


def test_answers_come_while_the_kernel_runs_a_cell(app: App) -> None:
    app.ready("busy.ipynb", app.blocking("busy"), GOOD)
    app.editor(2).locator(".tok-keyword").first.wait_for()
    app.run(1)
    app.caret(2, "X(i", after=False)
    app.type_("Q(i) + ")
    app.editor(2).locator(".cm-lintRange-error", has_text="Q").wait_for()
    assert app.cell(1).locator(".jp-InputPrompt").inner_text() == "[*]:"
    app.release("busy")


def test_busy_kernel_without_subshells_is_said(app: App) -> None:
    plain = (
        "from ipykernel.ipkernel import IPythonKernel\nIPythonKernel._supports_kernel_subshells = property(lambda self: False)\n"
        "from ipykernel import kernelapp; kernelapp.launch_new_instance()"
    )
    metadata = kernel(app, "plain", [sys.executable, "-c", plain, "-f", "{connection_file}"])
    app.open(app.server.notebook("busy-plain.ipynb", [START, app.blocking("plain"), GOOD], metadata))
    app.idle()
    app.run_and_wait(0)
    app.focus(2)
    panel = app.panel()
    panel.get_by_text(RANGE).first.wait_for()
    app.run(1)
    app.caret(2, "X(i", after=False)
    app.type_("Q(i) + ")
    panel.locator("[data-tc-state=busy]").wait_for()
    assert "Kernel busy" in panel.inner_text()
    assert RANGE in panel.inner_text()
    assert app.editor(2).locator(".cm-lintRange-error").count() == 0
    app.caret(2, "Q(i) + ")
    for _ in range(len("Q(i) + ")):
        app.page.keyboard.press("Backspace")
    app.hover(2, "i) = X", "does not answer now")
    app.away()
    app.page.evaluate(ASKED)
    # of this only the kernel knows something
    app.again(
        lambda: app.point(2, "float"), lambda: app.page.evaluate("() => window.tcAsked"), "a question to the kernel"
    )
    app.release("plain")
    app.page.locator(".cm-tooltip-hover", has_text="told so").wait_for()
    app.away()
    app.hover(2, "i) = X", "told so")
    app.caret(2, "X(i", after=False)
    app.type_("Q(i) + ")
    app.editor(2).locator(".cm-lintRange-error", has_text="Q").wait_for()
    panel.locator("[data-tc-state=ready]").wait_for()


def test_restart_and_reload(app: App) -> None:
    app.ready("restart.ipynb", GOOD)
    app.focus(1)
    panel = app.panel()
    panel.get_by_text(RANGE).first.wait_for()
    app.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    app.page.reload()
    app.shown()
    app.idle()
    panel = app.panel()
    panel.locator("[data-tc-state=ready]").wait_for()
    app.focus(1)  # not earlier: a notebook that is being restored makes its first cell the active one
    panel.get_by_text(RANGE).first.wait_for()
    app.page.evaluate("() => { window.jupyterapp.shell.currentWidget.sessionContext.restartKernel() }")
    panel.locator("[data-tc-state=not-loaded]").wait_for()
    app.editor(1).locator(".tok-keyword").first.wait_for()
    app.run_and_wait(0)
    panel.locator("[data-tc-state=ready]").wait_for()
    app.focus(1)
    app.caret(1, "X(i", after=False)
    app.type_("Q(i) + ")
    app.editor(1).locator(".cm-lintRange-error", has_text="Q").wait_for()


def second(app: App, name: str) -> App:
    """A second notebook beside the first: another tab of JupyterLab, another page of Notebook."""
    if app.kind == "lab":
        app.page.evaluate(
            "name => window.jupyterapp.commands.execute('docmanager:open', { path: name }).then(() => null)", name
        )
        app.page.wait_for_function("name => window.jupyterapp.shell.currentWidget?.title.label === name", arg=name)
        return app
    other = App(app.kind, app.server, app.page.context.new_page(), app.errors, app.requests)
    other.open(name)
    return other


def test_two_notebooks_and_two_kernels(app: App) -> None:
    app.ready("one.ipynb", GOOD)
    app.focus(1)
    app.panel().get_by_text(RANGE).first.wait_for()
    app.server.notebook("two.ipynb", [START, "%%tc\ndef second(float(N) X) -> (Y) { Y(i) = Q(i) }"])
    other = second(app, "two.ipynb")
    other.idle()
    other.focus(1)
    panel = other.panel()
    panel.locator("[data-tc-state=not-loaded]").wait_for()
    other.run_and_wait(0)
    other.editor(1).locator(".cm-lintRange-error", has_text="Q").wait_for()
    other.focus(1)
    panel.locator(".tc-title b", has_text="second").wait_for()
    other.command("tc-jupyter:show-inspector")
    tree = other.page.locator("[data-tc-inspector]")
    tree.locator("[data-tc-def=second][data-tc-state=failing]").wait_for()
    assert tree.locator("[data-tc-def]").count() == 1
    # each speaks with its own kernel: the first is told nothing when the kernel of the second goes
    other.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    if other is app:
        app.page.evaluate(
            "() => window.jupyterapp.commands.execute('docmanager:open', { path: 'one.ipynb' }).then(() => null)"
        )
        app.page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.title.label === 'one.ipynb'")
    app.page.bring_to_front()
    app.caret(1, "X(i", after=False)
    app.type_("Q(i) + ")
    app.editor(1).locator(".cm-lintRange-error", has_text="Q").wait_for()
    app.panel().locator("[data-tc-state=ready]").wait_for()
    if other is not app:
        other.page.close()
