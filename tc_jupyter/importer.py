"""Files of defs as Python modules: after `import tc_jupyter.importer`, `import kernels` finds `kernels.tc` or `kernels.sac`.

The folders are those of Python (`sys.path`, or the folder of a package); a module of Python with the name comes first. What a file
defines are the attributes of its module, and `importlib.reload` reads it again.

Worked example: with `def scale(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }` in `kernels.tc`, `kernels.scale(x, 2)` computes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from tc_jupyter.compiler.uses import ENDINGS
from tc_jupyter.files import read_text
from tc_jupyter.function import load


class Finder(MetaPathFinder):
    """Finds files of defs in the folders in which Python looks for modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of a name; `path` has the folders of the package that it is in."""
        del target
        name = fullname.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for ending in ENDINGS:
                file = Path(folder or ".", name + ending)
                if os.path.isfile(file):  # not `file.is_file`, which fails where a folder may not be read
                    return spec_from_file_location(fullname, file, loader=Loader(file))
        return None


class Loader(InspectLoader):
    """Makes the module of one file."""

    def __init__(self, file: Path) -> None:
        self.file = file.absolute()

    def exec_module(self, module: ModuleType) -> None:
        """Compile the file.

        Raises:
            CompileError: it has mistakes; all of them.
            ImportError: it cannot be read.
        """
        try:
            found = load(self.file)
        except (OSError, UnicodeDecodeError) as problem:
            raise ImportError(
                f"{self.file} cannot be read: {problem}", name=module.__name__, path=str(self.file)
            ) from None
        names = vars(module)
        for name in names.get("__all__", ()):  # of a module that is loaded again
            names.pop(name, None)
        functions = {name: each for name, each in found.items() if not name.startswith("__")}
        names.update(functions, __all__=list(functions), __doc__=f"The functions of {self.file.name}.")

    def get_code(self, fullname: str) -> CodeType:
        """No code of Python; what it stands for is `exec_module`."""
        del fullname
        return compile("", str(self.file), "exec")

    def get_source(self, fullname: str) -> str:
        """The text of the file."""
        del fullname
        return read_text(self.file)

    def is_package(self, fullname: str) -> bool:
        """A file has no modules inside."""
        del fullname
        return False


if not any(isinstance(each, Finder) for each in sys.meta_path):
    sys.meta_path.append(Finder())
