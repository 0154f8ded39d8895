"""JupyterLab and Notebook in a real Chromium, with private configuration and the front end as it is built in this checkout.

Without Chromium, or something else that they need, the tests skip; with `TC_BROWSER=needed` that is an error.
With `TC_BROWSER_PYTHON=/path/to/python` the servers run in another environment, for instance one where a wheel is installed, and its
own copy of the front end and of the package is tested.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_app import LIMIT, App, Server

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "tc_jupyter" / "labextension"
CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome", "chrome") if (p := shutil.which(n))), None
)
PYTHON = os.environ.get("TC_BROWSER_PYTHON", sys.executable)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def _missing() -> str | None:
    if CHROMIUM is None:
        return "no Chromium on this machine"
    for name in ("playwright", "jupyterlab", "notebook"):
        try:
            __import__(name)
        except ImportError:
            return f"{name} is not installed"
    if sys.executable == PYTHON and not (ASSETS / "package.json").exists():
        return "the front end is not built: run `jlpm build` in labextension/"
    return None


OWN = sys.executable == PYTHON
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One test in a browser at a time, whatever process runs it: waits have limits."""
    with open(tmp_path_factory.getbasetemp().parent / "browser.lock", "w") as lock:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _missing()
    if reason is not None and os.environ.get("TC_BROWSER") == "needed":
        raise pytest.UsageError(f"the browser tests cannot run: {reason}")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if item.get_closest_marker("always") is None:
                item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group("browsers"))  # two at a time are late for what they wait for
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _serve(
    tmp: Path, app: str, extension: bool = True, options: tuple[str, ...] = ()
) -> tuple[subprocess.Popen[bytes], Server]:
    for name in ("config", "data", "home", "runtime", "ipython", "work"):
        (tmp / name).mkdir()
    quiet = tmp / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    extensions = tmp / "data" / "labextensions"
    extensions.mkdir()
    if OWN:
        (extensions / "tc-jupyter").symlink_to(ASSETS)
    if not extension:
        (tmp / "config" / "labconfig").mkdir()
        (tmp / "config" / "labconfig" / "page_config.json").write_text('{"disabledExtensions": {"tc-jupyter": true}}')
    shutil.copy(HERE / "stand_in.py", tmp / "work" / "stand_in.py")
    env = {
        **os.environ, "HOME": str(tmp / "home"), "JUPYTER_CONFIG_DIR": str(tmp / "config"), "JUPYTER_DATA_DIR": str(tmp / "data"),
        "JUPYTER_RUNTIME_DIR": str(tmp / "runtime"), "IPYTHONDIR": str(tmp / "ipython"),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}" if OWN else str(HERE),
    }  # fmt: skip
    if OWN:
        env["JUPYTER_PREFER_ENV_PATH"] = "0"  # not a front end that is installed in the environment
    port = _free_port()
    command = [
        PYTHON, "-m", "jupyterlab" if app == "lab" else "notebook", "--no-browser", "--allow-root", f"--port={port}",
        "--ServerApp.token=", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={tmp / 'work'}", "--LabApp.news_url=",
        f"--{'LabApp' if app == 'lab' else 'JupyterNotebookApp'}.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", f"--LabApp.workspaces_dir={tmp / 'ws'}", *options,
    ]  # fmt: skip
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp / "work")
    ready, log = threading.Event(), tmp / "server.log"
    threading.Thread(target=_read, args=(process, log, ready), daemon=True).start()
    if ready.wait(LIMIT) and process.poll() is None:
        return process, Server(f"http://127.0.0.1:{port}", tmp / "work")
    _stop(process)
    raise RuntimeError(f"{app} did not say within {LIMIT} s that it is running, but:\n{log.read_text()[-2000:]}")


def _read(process: subprocess.Popen[bytes], log: Path, ready: threading.Event) -> None:
    """Keep what the server says; it listens when it names its address. At its end nobody waits for it any more."""
    assert process.stdout is not None
    with log.open("wb", buffering=0) as file:
        for line in process.stdout:
            file.write(line)
            if b"is running at" in line:
                ready.set()
    ready.set()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(15)


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    process, server = _serve(tmp_path_factory.mktemp("lab"), "lab")
    yield server
    _stop(process)


@pytest.fixture(scope="session")
def notebook_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    process, server = _serve(tmp_path_factory.mktemp("notebook"), "notebook")
    yield server
    _stop(process)


@pytest.fixture(scope="session")
def bare_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab with the front end switched off."""
    process, server = _serve(tmp_path_factory.mktemp("bare"), "lab", extension=False)
    yield server
    _stop(process)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True, timeout=1000 * LIMIT)
        yield browser
        browser.close()


def _new_app(kind: str, server: Server, chromium: Any) -> App:
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(1000 * LIMIT)
    page = context.new_page()
    app = App(kind, server, page)
    page.on("console", lambda m: app.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: app.errors.append(str(e)))
    page.on("request", lambda r: app.requests.append(r.url))
    page.on("websocket", lambda w: app.requests.append(w.url))
    return app


def _used(app: App) -> Iterator[App]:
    """The page for one test, which must leave no message of an error behind and ask no other host for anything."""
    app.errors.clear()
    app.requests.clear()
    yield app
    if not app.soiled:
        assert app.own_errors() == []
        assert app.external() == []


def _closed(app: App) -> None:
    app.page.context.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, App) and not value.soiled:
                value.soiled = True
                report.sections.append((f"what {value.kind} showed", value.seen()))
    return report


_labs: list[App] = []


@pytest.fixture
def lab(lab_server: Server, chromium: Any) -> Iterator[App]:
    """JupyterLab. Tests share the page, since loading it takes seconds; after a test that failed, the next one gets a new page."""
    if _labs and _labs[0].soiled:
        _closed(_labs.pop())
    if not _labs:
        _labs.append(_new_app("lab", lab_server, chromium))
    yield from _used(_labs[0])


@pytest.fixture
def notebook(notebook_server: Server, chromium: Any) -> Iterator[App]:
    app = _new_app("notebook", notebook_server, chromium)
    try:
        yield from _used(app)
    finally:
        _closed(app)


@pytest.fixture(params=["lab", pytest.param("notebook", marks=pytest.mark.slow)])
def plain(request: pytest.FixtureRequest, tmp_path: Path, chromium: Any) -> Iterator[App]:
    """An application as it is, with the front end switched off."""
    process, server = _serve(tmp_path, request.param, extension=False)
    app = _new_app(request.param, server, chromium)
    try:
        yield from _used(app)
    finally:
        _closed(app)
        _stop(process)


@pytest.fixture
def bare(bare_server: Server, chromium: Any) -> Iterator[App]:
    app = _new_app("lab", bare_server, chromium)
    try:
        yield from _used(app)
    finally:
        _closed(app)


@pytest.fixture(params=["lab", pytest.param("notebook", marks=pytest.mark.slow)])
def app(request: pytest.FixtureRequest) -> App:
    return request.getfixturevalue(request.param)
