"""The runtime's own machine code, which is compiled once per system and kept in the disk cache."""

from __future__ import annotations

from . import jit
from .cache import DiskCache, key_of


def own_code(kind: str, text: str) -> jit.Loaded:
    """The code of an LLVM text in memory; `kind` is what the cache calls it.

    Raises:
        BackendError: LLVM does not accept the text (TC903).
    """
    cache = DiskCache.default()
    key = key_of(kind, text, jit.host()[0], jit.host_feature_string(), jit.version())
    found = cache.get(key)
    if found is not None and found.meta.get("kind") == kind and jit.is_object(found.data):
        return jit.load_object(found.data)
    code = jit.emit_object(text)
    cache.put(key, code, {"kind": kind})
    return jit.load_object(code)
