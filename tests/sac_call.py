"""Calls a `%%sac` function the way `Function` does, on the test-only program runner."""

import numpy as np

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.program.check_sac import ArgumentType, bind_call, check_sac
from tc_jupyter.program.expr import DType
from tc_jupyter.syntax.sac_parser import parse_sac
from tests.run_program import OutOfBounds, run_program


class Refused(Exception):
    def __init__(self, diagnostics):
        super().__init__("\n".join(f"{d.code.number} {d.message}" for d in diagnostics))
        self.codes = [d.code.number for d in diagnostics]
        self.diagnostics = diagnostics


def check(text, known=None):
    source = SourceText(text)
    parsed = parse_sac(source)
    checked = check_sac(parsed.unit, source, known)
    return checked, tuple(sorted(parsed.diagnostics + checked.diagnostics, key=lambda d: d.span))


def codes(text, known=None):
    return [d.code.number for d in check(text, known)[1]]


def bind(text, *arguments, name=None, known=None, fixed=False):
    checked, diagnostics = check(text, known)
    errors = [d for d in diagnostics if d.is_error]
    if errors:
        raise Refused(errors)
    arrays = [np.asarray(a) for a in arguments]
    name = name or list(checked.functions)[-1]
    types = [ArgumentType(DType(a.dtype.name), a.ndim, a.shape) for a in arrays]
    call = bind_call(checked.functions[name], types, lambda at: tuple(arrays[at].ravel().tolist()), fixed=fixed)
    if call.specialized is None or call.specialized.program is None:
        raise Refused(call.diagnostics)
    return call, arrays


def call_sac(text, *arguments, name=None, known=None, fixed=False):
    """Results as NumPy arrays; one alone without a tuple. Raises `Refused` for every message at definition or at the call."""
    call, arrays = bind(text, *arguments, name=name, known=known, fixed=fixed)
    program = call.specialized.program
    sizes, scalars = {}, {}
    for parameter, array in zip(program.parameters, arrays, strict=True):
        for dim, extent in zip(program.tensor(parameter).dims, array.shape, strict=True):
            if hasattr(dim, "name"):
                sizes[dim.name] = extent
        if array.ndim == 0:
            scalars[parameter] = array.item()
    broken = call.specialized.verify(sizes, scalars)
    if broken is not None:
        raise Refused([broken])
    results = run_program(program, arrays)
    for info, result in zip(call.specialized.results, results, strict=True):
        assert result.ndim == info.rank
        assert result.dtype.name == info.dtype.value
    return results[0] if len(results) == 1 else tuple(results)


__all__ = ["OutOfBounds", "Refused", "bind", "call_sac", "check", "codes"]
