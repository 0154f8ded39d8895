"""Calls that JAX traces: one primitive, whose derivatives and batches are calls of defs that follow from the def.

It is imported by the first call with a tracer, and is no part of other calls. On a CPU, XLA calls the function by `jax.ffi`;
elsewhere by `jax.pure_callback`.

Worked example: `jax.grad(lambda x: f(x).sum())(x)` calls `f`, then the def of its tangents, which is transposed: `f.vjp()` with
what `f` gave.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import jax
import numpy as np
from jax import core
from jax import numpy as jnp
from jax.extend.core import Primitive, concrete_or_error
from jax.interpreters import ad, batching, mlir

from tc_jupyter.diagnostics import CallError, CompileError, codes

from .arguments import Parameter, call_error, lacking_in_jax
from .traceable import Traceable
from .xla_call import empty_like, handler


@dataclass(frozen=True, slots=True)
class Fixed:
    """An argument that is a number of Python."""

    value: Any


@dataclass(frozen=True, slots=True)
class Linear:
    """Where a call of tangents comes from.

    Attributes:
        about: the def that they are tangents of.
        sources: its arguments among the operands, as in `Site`; `None` for one that the derivatives do not need.
        results: operands that are results of its call.
        places: of the parameters that the tangents belong to, which are the last operands.
    """

    about: Traceable
    sources: tuple[int | Fixed | None, ...]
    results: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Site:
    """A call: its def, and for each parameter the number of an operand, or what is fixed."""

    about: Traceable
    sources: tuple[int | Fixed, ...]
    linear: Linear | None = None

    def places(self, wanted: Callable[[int, int], bool]) -> tuple[int, ...]:
        """Places of the parameters that are operands, of which this holds: the place, and the number of the operand."""
        pairs = enumerate(self.sources)
        return tuple([place for place, each in pairs if not isinstance(each, Fixed) and wanted(place, each)])

    def arguments(self, operands: Sequence[Any]) -> list[Any]:
        """The arguments of the def; arrays without dimensions are numbers of Python."""
        values = [each.value if isinstance(each, Fixed) else operands[each] for each in self.sources]
        return [
            value.item() if not parameter.rank and hasattr(value, "item") else value
            for parameter, value in zip(self.about.written, values, strict=True)
        ]


def traced(about: Traceable, args: Sequence[Any]) -> Any:
    """A call with tracers among its arguments."""
    if len(args) != len(about.written):
        return about.run(args)  # says what is missing
    operands, sources = list[Any](), list[int | Fixed]()
    for place, (parameter, value) in enumerate(zip(about.written, args, strict=True)):
        if place in about.shaping:
            value = concrete_or_error(int, value, f"`{parameter.name}` of `{about.name}` says how large a result is.")
        if isinstance(value, bool | int | float | complex | np.generic) and not parameter.rank:
            sources.append(Fixed(value))
            continue
        array = jnp.asarray(value)
        if not parameter.rank and parameter.dtype.is_float and array.ndim == 0:
            array = array.astype(parameter.dtype.value)
        sources.append(len(operands))
        operands.append(array)
    found = call_p.bind(*operands, site=Site(about, tuple(sources)))
    return found[0] if len(found) == 1 else tuple(found)


call_p = Primitive("tc_call")
call_p.multiple_results = True


@call_p.def_impl
def _run(*operands: Any, site: Site) -> list[Any]:
    return [jnp.asarray(each) for each in site.about.run(site.arguments(operands))]


@call_p.def_abstract_eval
def _outlined(*operands: Any, site: Site) -> list[Any]:
    arguments = [
        value.value if isinstance(value, Fixed) else _outline(operands[value], parameter)
        for value, parameter in zip(site.sources, site.about.written, strict=True)
    ]
    try:
        outlines = site.about.shapes_for(arguments)
    except CallError as problem:
        pairs = zip(site.sources, site.about.written, strict=True)
        arrays = [(operands[at], each) for at, each in pairs if each.rank and not isinstance(at, Fixed)]
        other = next((each for operand, each in arrays if str(operand.dtype) != each.dtype.value), None)
        help = lacking_in_jax(other.dtype) if other and problem.diagnostic.code is codes.ARGUMENT_TYPE else ""
        if not help:
            raise
        raise call_error(replace(problem.diagnostic, help=help), problem.source) from None
    return [core.ShapedArray(shape, jax.dtypes.canonicalize_dtype(dtype)) for shape, dtype in outlines]


def _outline(operand: Any, parameter: Parameter) -> Any:
    """An argument of which shape and type are known."""
    if not parameter.rank and not operand.shape:
        return 0.0 if parameter.dtype.is_float else None
    known = all(isinstance(extent, int) for extent in operand.shape)  # others are symbols of `jax.export`
    return empty_like(operand.shape, operand.dtype) if known else operand


# derivatives ---------------------------------------------------------------------------------------------------------------------


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, site: Site) -> tuple[list[Any], list[Any]]:
    about = site.about
    results = call_p.bind(*primals, site=site)

    def moves(place: int, operand: int) -> bool:
        dtype = about.written[place].dtype
        return (dtype.is_float or dtype.is_complex) and not isinstance(tangents[operand], ad.Zero)

    places = site.places(moves)
    if not places or not any(about.float_results):
        return results, [_zero(each) for each in results]
    directions = [tangents[source] for place in places if not isinstance(source := site.sources[place], Fixed)]
    found = iter(_tangents(site, primals, results, places, directions))
    return results, [
        next(found) if is_float else _zero(each) for each, is_float in zip(results, about.float_results, strict=True)
    ]


def _conjugate(value: Any) -> Any:
    """The derivative by a complex number as JAX has it, or back: the conjugate of the derivatives by both parts."""
    return jnp.conj(value) if jnp.iscomplexobj(value) else value


def _zero(value: Any) -> Any:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def _tangents(
    site: Site, primals: Sequence[Any], results: Sequence[Any], places: tuple[int, ...], directions: Sequence[Any]
) -> list[Any]:
    """The tangents of the results, by a call that is linear in the directions and keeps what its transpose needs."""
    about = site.about
    ahead, (back, _) = about.tangent_of(places), about.backward_of(places)
    operands, known = list[Any](), dict[int, int]()
    sources: list[int | Fixed | None] = [each if isinstance(each, Fixed) else None for each in site.sources]
    for place in sorted({*ahead.takes, *back.takes}):
        source = site.sources[place]
        if not isinstance(source, Fixed):
            if source not in known:
                known[source] = len(operands)
                operands.append(primals[source])
            sources[place] = known[source]
    kept = {place: len(operands) + number for number, place in enumerate(sorted({*ahead.saved, *back.saved}))}
    operands += [results[place] for place in kept]
    linear = Linear(about, tuple(sources), tuple(kept[place] for place in back.saved), places)
    taken = [source for place in ahead.takes if (source := sources[place]) is not None]
    last = range(len(operands), len(operands) + len(places))
    own = (*taken, *(kept[place] for place in ahead.saved), *last)
    return call_p.bind(*operands, *directions, site=Site(ahead.about, own, linear))


def _transpose(cotangents: Sequence[Any], *operands: Any, site: Site) -> list[Any]:
    about = site.about
    places = site.places(lambda _, operand: ad.is_undefined_primal(operands[operand]))
    given = [
        ad.instantiate_zeros(each) for each, is_float in zip(cotangents, about.float_results, strict=True) if is_float
    ]
    linear = site.linear
    wanted = [number for number, each in enumerate(operands) if ad.is_undefined_primal(each)]
    if linear is not None and wanted == list(range(len(operands) - len(linear.places), len(operands))):
        return _backwards(linear, operands, given, wanted)
    back, _ = about.backward_of(places)
    if back.reads & set(places):
        raise TypeError(f"`{about.name}` is not linear in the arguments by which it is to be transposed")
    known = [jnp.zeros(each.aval.shape, each.aval.dtype) if ad.is_undefined_primal(each) else each for each in operands]
    results = call_p.bind(*known, site=Site(about, site.sources)) if back.saved else []
    plain = Linear(about, site.sources, tuple(range(len(known), len(known) + len(back.saved))), places)
    return _backwards(plain, [*known, *(results[place] for place in back.saved)], given, None, len(operands))


def _backwards(
    linear: Linear, operands: Sequence[Any], cotangents: Sequence[Any], wanted: Sequence[int] | None, count: int = 0
) -> list[Any]:
    """The cotangents of the operands that a call is linear in; `wanted` are those that directions stand for."""
    back, by = linear.about.backward_of(linear.places)
    values, sources = list[Any](), list[int | Fixed]()
    for place in back.takes:
        source = linear.sources[place]
        assert source is not None
        if isinstance(source, Fixed):
            sources.append(source)
        else:
            sources.append(len(values))
            values.append(operands[source])
    values += [operands[number] for number in linear.results]
    values += map(_conjugate, cotangents)
    sources += range(len(values) - len(linear.results) - len(cotangents), len(values))
    made = call_p.bind(*values, site=Site(back.about, tuple(sources)))
    found = dict(zip(by, map(_conjugate, made), strict=True))
    answer: list[Any] = [None] * (count or len(operands))
    for number, place in enumerate(linear.places):
        source = linear.sources[place] if wanted is None else wanted[number]
        assert isinstance(source, int)
        answer[source] = found[place] if answer[source] is None else answer[source] + found[place]
    return answer


ad.primitive_jvps[call_p] = _jvp
ad.primitive_transposes[call_p] = _transpose


# many calls ----------------------------------------------------------------------------------------------------------------------


def _batch(operands: Sequence[Any], axes: Sequence[Any], *, site: Site) -> tuple[list[Any], list[Any]]:
    moved = [each if axis is None else jnp.moveaxis(each, axis, 0) for each, axis in zip(operands, axes, strict=True)]
    places = site.places(lambda _, operand: axes[operand] is not None)
    if not places:
        return call_p.bind(*moved, site=site), [None] * len(site.about.float_results)
    try:
        about, many = site.about.batched(places)
    except CompileError:
        return _one_by_one(moved, axes, site)
    found = call_p.bind(*moved, site=Site(about, site.sources))
    return found, [0 if each else None for each in many]


def _one_by_one(operands: Sequence[Any], axes: Sequence[Any], site: Site) -> tuple[list[Any], list[Any]]:
    """One call after the other, where sizes differ from call to call or the def has no batches."""
    varying = [each for each, axis in zip(operands, axes, strict=True) if axis is not None]

    def one(some: Sequence[Any]) -> list[Any]:
        parts = iter(some)
        given = [each if axis is None else next(parts) for each, axis in zip(operands, axes, strict=True)]
        return call_p.bind(*given, site=site)

    found = jax.lax.map(one, varying)
    return found, [0] * len(found)


batching.primitive_batchers[call_p] = _batch


# code ----------------------------------------------------------------------------------------------------------------------------

TARGET = "tc_jupyter_call"
_SITES: WeakValueDictionary[int, Site] = WeakValueDictionary()


def _run_in_xla(number: int, operands: list[Any], results: list[Any]) -> None:
    """A call from compiled code."""
    site = _SITES[number]
    site.about.run_into(site.arguments(operands), results)


_HANDLER = handler(_run_in_xla)
jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_HANDLER), platform="cpu", api_version=1)


def _number_of(site: Site) -> int:
    """What names a call in compiled code: it follows from the text, so that code can be kept on disk."""
    text = f"{site.about.key} {site.sources}"
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])
    while _SITES.get(number, site) != site:
        number += 1
    return number


def _lowered(context: Any, *operands: Any, site: Site) -> Any:
    number = _number_of(site)
    known = _SITES.setdefault(number, site)
    context.module_context.add_keepalive(known)  # as long as the code lives
    return jax.ffi.ffi_lowering(TARGET)(context, *operands, site=mlir.ir_attribute(np.int64(number)))


def _called_back(*operands: Any, site: Site) -> Any:
    outlines = _outlined(*[jax.typeof(each) for each in operands], site=site)

    def run(*values: Any) -> list[Any]:
        results = [np.empty(each.shape, each.dtype) for each in outlines]
        site.about.run_into(site.arguments([np.asarray(each) for each in values]), results)
        return results

    return jax.pure_callback(run, [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in outlines], *operands)


mlir.register_lowering(call_p, mlir.lower_fun(_called_back, multiple_results=True))
mlir.register_lowering(call_p, _lowered, platform="cpu")
