"""JupyterLab and Notebook in a real Chromium, with private configuration and the front end as it is built in this checkout."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_app import App, Server

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "tc_jupyter" / "labextension"
CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome", "chrome") if (p := shutil.which(n))), None
)
# another environment, with the wheel installed: its own copy of the front end is tested then
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
    if not (ASSETS / "package.json").exists():
        return "the front end is not built: run `jlpm build` in labextension/"
    return None


HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _missing()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))  # one Chromium and its servers at a time
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _serve(tmp: Path, app: str, extension: bool = True) -> tuple[subprocess.Popen[bytes], Server]:
    for name in ("config", "data", "home", "runtime", "ipython", "work"):
        (tmp / name).mkdir()
    quiet = tmp / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    extensions = tmp / "data" / "labextensions"
    extensions.mkdir()
    if extension and sys.executable == PYTHON:
        (extensions / "tc-jupyter").symlink_to(ASSETS)
    shutil.copy(HERE / "stand_in.py", tmp / "work" / "stand_in.py")
    env = {
        **os.environ, "HOME": str(tmp / "home"), "JUPYTER_CONFIG_DIR": str(tmp / "config"), "JUPYTER_DATA_DIR": str(tmp / "data"),
        "JUPYTER_RUNTIME_DIR": str(tmp / "runtime"), "IPYTHONDIR": str(tmp / "ipython"), "PYTHONPATH": str(HERE) if sys.executable != PYTHON else f"{ROOT}{os.pathsep}{HERE}",
    }  # fmt: skip
    port = _free_port()
    command = [
        PYTHON, "-m", "jupyterlab" if app == "lab" else "notebook", "--no-browser", "--allow-root", f"--port={port}",
        "--ServerApp.token=", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={tmp / 'work'}", "--LabApp.news_url=", f"--{'LabApp' if app == 'lab' else 'JupyterNotebookApp'}.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", f"--LabApp.workspaces_dir={tmp / 'ws'}",
    ]  # fmt: skip
    log = (tmp / "server.log").open("wb")
    process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=tmp / "work")
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{url}/api", timeout=2).read()
            return process, Server(url, tmp / "work")
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.2)
    process.terminate()
    raise RuntimeError((tmp / "server.log").read_text()[-2000:])


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
    """JupyterLab without the front end."""
    process, server = _serve(tmp_path_factory.mktemp("bare"), "lab", extension=False)
    yield server
    _stop(process)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        yield browser
        browser.close()


def _app(kind: str, server: Server, chromium: Any, **options: Any) -> Iterator[App]:
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, **options)
    page = context.new_page()
    app = App(kind, server, page)
    page.on("console", lambda m: app.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: app.errors.append(str(e)))
    page.on("request", lambda r: app.requests.append(r.url))
    yield app
    if os.environ.get("TC_SHOTS"):
        page.screenshot(path=os.path.join(os.environ["TC_SHOTS"], f"{kind}-{int(time.time())}.png"))
    context.close()


@pytest.fixture
def lab(lab_server: Server, chromium: Any) -> Iterator[App]:
    yield from _app("lab", lab_server, chromium)


@pytest.fixture
def bare(bare_server: Server, chromium: Any) -> Iterator[App]:
    yield from _app("lab", bare_server, chromium)


@pytest.fixture(params=["lab", "notebook"])
def app(request: pytest.FixtureRequest, chromium: Any) -> Iterator[App]:
    server = request.getfixturevalue(f"{request.param}_server")
    yield from _app(request.param, server, chromium)
