"""An exported library as a package for Python, which needs NumPy alone: a wheel, written without any build tool.

Comes in: a shared library and its functions. Goes out: `NAME-VERSION-py3-none-linux_x86_64.whl`, which holds the library,
`caller.py` and a module with the functions.

Worked example: after `pip install blur-0.1.0-py3-none-linux_x86_64.whl`, `import blur; blur.blur(image)`.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tc_jupyter.compiler.definition import Definition
from tc_jupyter.program.check_tc import python_name

from .signature import Parameter, Signature

_MODULE = '''"""Functions exported by tc_jupyter; they take and give NumPy arrays."""

from pathlib import Path as _Path

from ._caller import Function as _Function
from ._caller import load as _load

_LIBRARY = _load(str(_Path(__file__).with_name("lib{name}.so")))
{functions}
__all__ = [{names}]
'''


def wheel_name(name: str, version: str) -> str:
    """The name of the file of a wheel."""
    return f"{name.lower()}-{version}-{_tag()}.whl"


def _tag() -> str:
    return f"py3-none-linux_{platform.machine()}"


def wheel(folder: Path, name: str, version: str, library: Path, defs: Sequence[tuple[Definition, Signature]]) -> Path:
    """Write the wheel into a folder."""
    functions = "".join(_function(*each) for each in defs)
    names = ", ".join(f'"{python_name(signature.written)}"' for _, signature in defs)
    package = name.lower()
    files: dict[str, bytes] = {
        f"{package}/__init__.py": _MODULE.format(name=name, functions=functions, names=names).encode(),
        f"{package}/_caller.py": (Path(__file__).parent / "caller.py").read_bytes(),
        f"{package}/lib{name}.so": library.read_bytes(),
    }
    info = f"{package}-{version}.dist-info"
    about = (
        f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Dist: numpy\nRequires-Python: >=3.11\n"
    )
    files[f"{info}/METADATA"] = about.encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tc_jupyter\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode()
    )
    rows = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    files[f"{info}/RECORD"] = ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
    made = folder / wheel_name(name, version)
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return made


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _function(definition: Definition, signature: Signature) -> str:
    inputs, results = (tuple(map(_kind, each)) for each in (signature.inputs, signature.results))
    rest = f"{inputs!r}, {results!r}, {definition.accumulates}, {definition.text!r}"
    name = python_name(signature.written)
    return f"{name} = _Function(_LIBRARY, {name!r}, {signature.name!r}, {rest})\n"


def _kind(each: Parameter) -> tuple[str, str, int]:
    return each.name, each.dtype.value, each.rank
