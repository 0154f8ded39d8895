"""Checks of what a call hands over: count and names, kind, element type, rank, sizes, `out=`.

Comes in: the parameters of a checked def and Python values. Goes out: one `ArrayView` or number per parameter and a value for
every size, or a `CallError` that names the argument, says what was expected and what came.

Worked example: `matmul(a, b)` with `a` of shape `(3, 4)` and `b` of shape `(5, 6)` fails with TC605: ``size `K` is 4 in `A`
(dimension 1) and 5 in `B` (dimension 0)``.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from tc_jupyter.diagnostics import (
    NO_SPAN,
    CallError,
    Code,
    Diagnostic,
    SourceText,
    Span,
    codes,
    nearest,
    render,
    shown_value,
    warn,
)
from tc_jupyter.diagnostics.values import shown_tensor
from tc_jupyter.program import (
    LARGEST_ARRAY,
    Const,
    DType,
    Expr,
    Program,
    Size,
    Tensor,
    array_bytes,
    int64,
    solutions,
)
from tc_jupyter.ranges import SizeExpr, from_expr, to_python

from .arrays import (
    ArgumentProblem,
    ArrayView,
    as_numpy,
    device_memory,
    jax_has_64_bits,
    library_of,
    overlaps_itself,
    view_of,
)
from .ranks import Dims, rank_help

Number: TypeAlias = int | float | bool
Scalar: TypeAlias = Number | complex


def fail(
    code: Code, message: str, source: SourceText, span: Span = NO_SPAN, label: str = "", help: str | None = None
) -> NoReturn:
    """Raise the error of a call; what it was found by is not shown with it."""
    raise call_error(Diagnostic(code, span, message, label, help=help), source) from None


def call_error(diagnostic: Diagnostic, source: SourceText) -> CallError:
    """A `CallError` whose text is the rendering."""
    return CallError(diagnostic, source, render((diagnostic,), source))


@dataclass(frozen=True, slots=True)
class Formula:
    """An extent that is computed from sizes and integer scalars; its text is Python.

    Attributes:
        shown: as in the signature, `2*D` or `1:N`.
    """

    value: SizeExpr
    shown: str

    def __str__(self) -> str:
        return to_python(self.value)


@dataclass(frozen=True, slots=True)
class Solved:
    """A size that stands in formulas alone: `(extent - rest) / factor`, by the extent of one dimension of an argument."""

    name: str
    argument: str
    axis: int
    factor: SizeExpr
    rest: SizeExpr


def solved_sizes(program: Program) -> tuple[Solved, ...]:
    """The sizes of a def that are no dimension of a parameter, in the order in which they are found."""
    found = solutions([program.tensor(name) for name in program.parameters])[0]
    return tuple(
        Solved(each.name, each.tensor, each.dimension, from_expr(each.factor), from_expr(each.rest)) for each in found
    )


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input of a def whose rank and element type are known.

    Attributes:
        dims: a size name, a number or a formula per dimension; `None` for a dimension that is given by none.
    """

    name: str
    dtype: DType
    dims: tuple[str | int | Formula | None, ...]
    span: Span

    @property
    def rank(self) -> int:
        """Number of dimensions; 0 for scalars."""
        return len(self.dims)

    @property
    def stored(self) -> Parameter:
        """As kernels see it: complex numbers are pairs along one more dimension."""
        if not self.dtype.is_complex:
            return self
        return replace(self, dtype=self.dtype.part, dims=(*self.dims, 2))

    @property
    def text(self) -> str:
        """As in the signature: `float32(M, K) A`."""
        dims = ", ".join(
            "." if dim is None else dim.shown if isinstance(dim, Formula) else str(dim) for dim in self.dims
        )
        return f"{self.dtype.value}({dims}) {self.name}" if self.dims else f"{self.dtype.value} {self.name}"


def parameters_of(program: Program) -> tuple[Parameter, ...]:
    """The inputs in the order of the signature."""
    return tuple(_parameter(program.tensor(name), program.source) for name in program.parameters)


def _parameter(tensor: Tensor, source: SourceText) -> Parameter:
    dims = tensor.dims if tensor.dims is not None else (None,) * tensor.rank
    boxes = tensor.box or (None,) * tensor.rank
    found = tuple(_dim(dim, box, source) for dim, box in zip(dims, boxes, strict=True))
    return Parameter(tensor.name, tensor.element, found[: tensor.written_rank], tensor.span)


def _dim(dim: Expr | None, box: tuple[Expr, Expr] | None, source: SourceText) -> str | int | Formula | None:
    moved = box is not None and box[0] != int64(0)
    match dim:
        case None:
            return None
        case Size() if not moved:
            return dim.name
        case Const() if not moved:
            return int(dim.value)
        case _:
            return Formula(from_expr(dim), " ".join(source.slice(dim.span).split()))


def signature_text(program: Program) -> str:
    """The def in one line: `matmul(float32(M, K) A, float32(K, N) B) -> (C)`."""
    inputs = ", ".join(parameter.text for parameter in parameters_of(program))
    return f"{program.name}({inputs}) -> ({', '.join(program.results)})"


# names and count ---------------------------------------------------------------------------------------------------------------


def positional(
    names: Sequence[str],
    args: Sequence[object],
    named: Mapping[str, object],
    what: str,
    name: str,
    source: SourceText,
    span: Span,
) -> tuple[object, ...]:
    """The arguments in the order of the signature.

    Args:
        what: the signature as text, for the help.
        name: of the def.

    Raises:
        CallError: TC606.
    """
    if len(args) + len(named) == len(names):
        rest = [each for each in names[len(args) :] if each in named]
        if len(rest) == len(named):
            return (*args, *[named[each] for each in rest])

    def wrong(message: str) -> NoReturn:
        fail(codes.CALL_ARGUMENTS, message, source, span, help=f"the signature is `{what}`")

    if len(args) > len(names):
        more = args[len(names) :]
        means = "; sizes follow from the arrays" if all(isinstance(each, int) for each in more) else ""
        if all(library_of(each) is not None for each in more):
            means = "; an array to write into is given by name, as `out=`"
        wrong(f"`{name}` takes {_count(len(names), 'argument')}, {len(args)} came{means}")
    values = dict(zip(names, args, strict=False))
    for key, value in named.items():
        if key not in names:
            guess = "out=" if key.lower() in _OUT else nearest(key, names)
            wrong(f"`{name}` has no parameter `{key}`" + (f"; did you mean `{guess}`?" if guess else ""))
        if key in values:
            wrong(f"`{name}` got `{key}` twice")
        values[key] = value
    missing = [each for each in names if each not in values]
    if missing:
        listed = ", ".join(f"`{each}`" for each in missing)
        wrong(
            f"`{name}` takes {_count(len(names), 'argument')}, {listed} {'is' if len(missing) == 1 else 'are'} missing"
        )
    return tuple(values[each] for each in names)


_OUT = frozenset({"out", "outs", "outputs", "output", "out_", "result", "results", "res", "dst", "dest"})
"""What `out=` is called elsewhere."""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# size of an array ---------------------------------------------------------------------------------------------------------------


def refuse_too_large(name: str, shape: tuple[int, ...], dtype: DType, source: SourceText, span: Span) -> None:
    """Refuse an array that no library can make, also one without elements.

    Raises:
        CallError: TC502.
    """
    if array_bytes(shape, dtype.bytes) <= LARGEST_ARRAY:
        return
    counted = " (an extent of 0 counts as 1)" if 0 in shape else ""
    message = f"{shown_tensor(name, source, span)} of shape {shape} has more than 2^63 - 1 bytes{counted}"
    fail(codes.TOO_LARGE, message, source, span, help="its extents follow from the arguments: call with smaller ones")


# one argument ------------------------------------------------------------------------------------------------------------------

_PROBLEM_CODES = {"type": codes.ARGUMENT_TYPE, "rank": codes.ARGUMENT_RANK, "device": codes.ARGUMENT_DEVICE}


def read_array(
    parameter: Parameter, value: object, source: SourceText, told: Callable[[], Mapping[str, int]] = dict
) -> ArrayView:
    """The memory of an argument.

    Args:
        told: the sizes that other arguments tell, for the help.

    Raises:
        CallError: TC502, TC607, TC608, TC609.
    """
    try:
        view = view_of(value)
    except ArgumentProblem as problem:
        code = _PROBLEM_CODES[problem.kind]
        message = f"`{parameter.name}` is an array `{parameter.text}`; {problem.came} came"
        fail(code, message, source, parameter.span, help=_array_help(parameter, value) or problem.help or None)
    check_type(parameter, view, source)
    if len(view.shape) != parameter.rank:
        message = f"`{parameter.name}` has {_count(parameter.rank, 'dimension')}; an array of shape {view.shape} came"
        sizes = told()
        help = rank_help(_known_dims(parameter, sizes), sizes, view.shape)
        fail(codes.ARGUMENT_RANK, message, source, parameter.span, f"`{parameter.text}`", help=help)
    refuse_too_large(parameter.name, view.shape, parameter.dtype, source, parameter.span)
    _say_gradient(parameter.name, value, view, source, parameter.span)
    return view


def _array_help(parameter: Parameter, value: object) -> str:
    """How to make an array of numbers, lists and tables; nothing for what has a help of its own."""
    dtype = _numpy_type(parameter.dtype)
    if isinstance(value, tuple) and any(library_of(each) is not None for each in value):
        return "pass one of its arrays: a def with several results gives a tuple, as in `y, z = f(x)`"
    if isinstance(value, (list, tuple)):
        return f"pass `np.array(x, dtype={dtype})`"
    if isinstance(value, (bool, int, float, complex, np.number, np.bool)):
        declared = f"`{parameter.dtype.value} {parameter.name}`"
        return f"pass an array, as in `np.full(shape, x, dtype={dtype})`, or declare a number, {declared}"
    if type(value).__module__.partition(".")[0] == "pandas" and parameter.dtype is not DType.BFLOAT16:
        return f"pass `.to_numpy(dtype={dtype})`"
    if isinstance(value, (range, Iterator)):
        return f"pass `np.array(list(x), dtype={dtype})`"
    return ""


def exchanged(parameters: Sequence[Parameter], values: Sequence[object], number: int) -> str:
    """Says that an argument of the wrong rank fits in the place of another one of the wrong rank, which fits here; or nothing."""
    ranks = [_rank_of(value) for value in values]
    for other, parameter in enumerate(parameters):
        wanted = parameters[number].rank, parameter.rank
        if ranks[other] != parameter.rank and (ranks[other], ranks[number]) == wanted:
            return f"`{parameters[number].name}` and `{parameter.name}` fit if they are exchanged"
    return ""


def _rank_of(value: object) -> int | None:
    """The number of dimensions; `None` for what is no array and no number."""
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return 0
    try:
        return len(view_of(value).shape)
    except ArgumentProblem:
        return None


def sizes_told(parameters: Sequence[Parameter], values: Sequence[object]) -> dict[str, int]:
    """The sizes that arguments tell which are arrays of the rank of their parameters, whatever is wrong with the others."""
    sizes: dict[str, int] = {}
    for parameter, value in zip(parameters, values, strict=True):
        try:
            shape = view_of(value).shape if parameter.rank else ()
        except ArgumentProblem:
            continue
        if len(shape) == parameter.rank:
            named = ((dim, extent) for dim, extent in zip(parameter.dims, shape, strict=True) if isinstance(dim, str))
            sizes = {**dict(named), **sizes}
    return sizes


def _known_dims(parameter: Parameter, sizes: Mapping[str, int]) -> Dims:
    """The dimensions of a parameter, with the numbers of formulas all of whose sizes are known."""
    return [
        dim if not isinstance(dim, Formula) else _value(dim.value, sizes) if dim.value.names <= sizes.keys() else None
        for dim in parameter.dims
    ]


def _numpy_type(dtype: DType) -> str:
    """An element type as an argument of `np.array`."""
    if dtype is DType.BFLOAT16:
        return "ml_dtypes.bfloat16"
    return "bool" if dtype is DType.BOOL else f"np.{dtype.value}"


def read_array_of_any_type(name: str, value: object, source: SourceText, span: Span) -> ArrayView:
    """The memory of an argument of any rank and of any element type of the language.

    Raises:
        CallError: TC502, TC607, TC608, TC609.
    """
    try:
        view = view_of(value)
    except ArgumentProblem as problem:
        code = _PROBLEM_CODES[problem.kind]
        fail(code, f"`{name}` is an array; {problem.came} came", source, span, help=problem.help or None)
    if view.dtype is None or view.dtype.is_complex:
        fail(
            codes.ARGUMENT_TYPE,
            f"`{name}` has elements of type {view.dtype_name}, which the language has not",
            source,
            span,
        )
    refuse_too_large(name, view.shape, view.dtype, source, span)
    _say_gradient(name, value, view, source, span)
    return view


def _say_gradient(name: str, value: object, view: ArrayView, source: SourceText, span: Span) -> None:
    """TC613 for a PyTorch tensor that requires a gradient, unless gradients are switched off."""
    if view.library.name != "torch" or not getattr(value, "requires_grad", False):
        return
    if sys.modules["torch"].is_grad_enabled():
        message = f"`{name}` requires a gradient, and the results of this call carry none"
        help = "call without `out=`; where no gradient is wanted, inside `torch.no_grad()`, or pass `.detach()`"
        warn((Diagnostic(codes.GRADIENT_DROPPED, span, message, help=help),), source)


def check_type(parameter: Parameter, view: ArrayView, source: SourceText) -> None:
    """Raise TC607 if the element type differs."""
    if view.dtype is parameter.dtype:
        return
    expected = parameter.dtype.value
    message = f"`{parameter.name}` has elements of type {expected}; an array of {view.dtype_name} came"
    fail(codes.ARGUMENT_TYPE, message, source, parameter.span, help=_conversion(view, parameter.dtype))


_NARROWER = {DType.INT64: "int32", DType.UINT64: "uint32", DType.FLOAT64: "float", DType.COMPLEX128: "complex64"}
"""Types that JAX has only where it is told so, and what it makes of them."""


def lacking_in_jax(dtype: DType) -> str:
    """What to do where JAX makes no arrays of this type; nothing where it does."""
    if dtype not in _NARROWER or jax_has_64_bits():
        return ""
    wide = '`jax.config.update("jax_enable_x64", True)`'
    return f"JAX has no `{dtype.value}` unless {wide} comes first; else declare `{_NARROWER[dtype]}`"


def _conversion(view: ArrayView, dtype: DType) -> str:
    if view.dtype is not None and view.dtype.is_complex and not dtype.is_complex:
        return f"pass its real part, or declare `{view.dtype.value}`"
    if view.library.name == "jax" and (lacking := lacking_in_jax(dtype)):
        return lacking
    if view.library.name == "torch":
        return f"pass `.to(torch.{dtype.value})`{_declared(view, dtype)}"
    if view.dtype_name.startswith("["):
        return "pass one of its fields, as in `x['name']`"
    cure = f'pass `.astype("{dtype.value}")`{_declared(view, dtype)}'
    if dtype is DType.INT32 and view.dtype is DType.INT64:
        cure += "; a def whose result is made of indices gives `int64`, with `int32(...)` around its value `int32`"
    return cure


def _declared(view: ArrayView, dtype: DType) -> str:
    """The other cure where an array of one of the usual floats came for the other one: NumPy makes `float64`, PyTorch `float32`."""
    names = {DType.FLOAT32: "float", DType.FLOAT64: "double"}
    came, expected = names.get(view.dtype) if view.dtype is not None else None, names.get(dtype)
    return f", or declare `{came}` in the place of `{expected}`" if came and expected else ""


def read_complex(parameter: Parameter, value: object, source: SourceText) -> complex:
    """The value of a complex rank-0 argument: whatever `read_scalar` takes for its parts, or a complex number.

    Raises:
        CallError: TC607, TC608, TC609.
    """
    number: Any = value
    if isinstance(value, np.ndarray) or (not isinstance(value, np.generic) and library_of(value) is not None):
        number = _element(_scalar_view(parameter, value, source))
    if isinstance(number, np.complexfloating):
        number = complex(number)
    part = replace(parameter, dtype=parameter.dtype.part)
    if not isinstance(number, complex):
        return complex(read_scalar(part, number, source, parameter.dtype))
    re, im = (read_scalar(part, each, source, parameter.dtype) for each in (number.real, number.imag))
    return complex(re, im)


def read_scalar(parameter: Parameter, value: object, source: SourceText, shown: DType | None = None) -> Number:
    """The value of a rank-0 argument: a Python or NumPy number, or a 0-dimensional array of any type that holds one.

    Args:
        shown: the type that messages name, where it is another one.

    Raises:
        CallError: TC607, TC608, TC609.
    """
    if isinstance(value, (np.ndarray,)) or (not isinstance(value, np.generic) and library_of(value) is not None):
        value = _element(_scalar_view(parameter, value, source))
    number: Any = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, (bool, int, float)) or isinstance(value, (np.datetime64, np.timedelta64)):
        number = _as_number(value)
    expected = (shown or parameter.dtype).value
    if number is None:
        came = f"the class `{value.__name__}`" if isinstance(value, type) else f"a `{type(value).__name__}`"
        came = shown_value(value) if isinstance(value, complex | np.complexfloating) else came
        message = f"`{parameter.name}` is a number of type {expected}; {came} came"
        fail(codes.ARGUMENT_TYPE, message, source, parameter.span, help="pass a number")
    problem = misfit(parameter.dtype, number)
    if problem:
        message = f"`{parameter.name}` is a number of type {expected}; {shown_value(value)} {problem}"
        whole = not parameter.dtype.is_float and isinstance(number, float) and math.isfinite(number)
        help = "pass `bool(x)`" if parameter.dtype is DType.BOOL else "pass `int(x)`" if whole else None
        fail(codes.ARGUMENT_TYPE, message, source, parameter.span, help=help)
    return float(number) if parameter.dtype.is_float else number


def _scalar_view(parameter: Parameter, value: object, source: SourceText) -> ArrayView:
    """The memory of a 0-dimensional array, whose element type may be another one: its value counts, as that of a number does."""
    try:
        own = view_of(value)
    except ArgumentProblem:
        return read_array(parameter, value, source)  # which says what is wrong
    if own.shape:
        message = f"`{parameter.name}` is a number of type {parameter.dtype.value}; an array of shape {own.shape} came"
        one = "pass its element, `x.item()`" if math.prod(own.shape) == 1 else "pass one of its elements"
        dims = ", ".join("NMKL"[: len(own.shape)] if len(own.shape) < 5 else "...")
        one += f", or declare an array, `{parameter.dtype.value}({dims}) {parameter.name}`"
        fail(codes.ARGUMENT_RANK, message, source, parameter.span, f"`{parameter.text}`", one)
    return read_array(parameter if own.dtype is None else replace(parameter, dtype=own.dtype), value, source)


def _as_number(value: object) -> Number | None:
    """Numbers of other classes: `ml_dtypes` scalars, `fractions.Fraction`, anything with `__index__` or `__float__`."""
    if isinstance(value, (complex, np.complexfloating, str, bytes, np.datetime64, np.timedelta64)):
        return None
    for method in ("__index__", "__float__"):
        convert = getattr(value, method, None)
        if convert is not None:
            try:
                found = convert()
            except OverflowError:
                return _TOO_LARGE
            except (TypeError, ValueError):
                return None
            became = (
                isinstance(found, float)
                and math.isinf(found)
                and isinstance(value, numbers.Number)
                and cast("Any", value) != found
            )
            return _TOO_LARGE if became else found if isinstance(found, int | float) else None
    return None


_TOO_LARGE = 1 << 1100
"""Stands for a number that no float holds."""


def _element(view: ArrayView) -> Scalar:
    """The one element of a 0-dimensional array, wherever it is."""
    if view.device != "cpu":
        return device_memory().read_element(view)
    array = as_numpy(view)
    if view.dtype is DType.BFLOAT16 and array.dtype == np.uint16:
        return float((array.astype(np.uint32) << 16).view(np.float32).item())
    value = array.item()
    return float(value) if view.dtype is not None and view.dtype.is_float else value


LARGEST = {
    DType.FLOAT16: 65504.0,
    DType.BFLOAT16: 3.3895313892515355e38,
    DType.FLOAT32: 3.4028234663852886e38,
    DType.FLOAT64: sys.float_info.max,
}


def misfit(dtype: DType, number: Number) -> str:
    """Why a number cannot be of that type, or an empty text; rounding is no reason."""
    if dtype is DType.BOOL:
        return "" if isinstance(number, bool) else "is no truth value"
    if dtype.is_float:
        finite = isinstance(number, int) or not math.isinf(number)
        return "is too large" if finite and abs(number) > LARGEST[dtype] else ""
    if isinstance(number, float):
        return "is no integer"
    low, high = dtype.limits
    return "" if low <= number <= high else f"is not between {low} and {high}"


# sizes -------------------------------------------------------------------------------------------------------------------------


def unify(
    parameters: Sequence[Parameter],
    shapes: Sequence[tuple[int, ...]],
    program: Program,
    scalars: Mapping[str, Number] | None = None,
    known: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The value of every size name of the signature.

    Args:
        known: sizes that no argument has to tell.

    Raises:
        CallError: TC605 if one name has two values, a constant dimension differs, or no size fits what a dimension says.
    """
    sizes: dict[str, int] = {}
    first: dict[str, tuple[Parameter, int]] = {}
    told = known or {}
    for parameter, shape in zip(parameters, shapes, strict=True):
        for axis, (dim, extent) in enumerate(zip(parameter.dims, shape, strict=True)):
            if isinstance(dim, str) and dim in told:
                if told[dim] != extent:
                    _misfit(parameter, axis, shape, f", but `{dim}` is {told[dim]}", program)
            elif isinstance(dim, str):
                if sizes.setdefault(dim, extent) != extent:
                    help = _transposed(parameters, shapes, told)
                    _conflict(dim, sizes[dim], first[dim], extent, (parameter, axis), program, help)
                first.setdefault(dim, (parameter, axis))
            elif isinstance(dim, int) and dim != extent:
                message = f"dimension {axis} of `{parameter.name}` is {dim}; an array of shape {shape} came"
                fail(codes.SIZE_CONFLICT, message, program.source, parameter.span, f"`{parameter.text}`")
    if any(isinstance(dim, Formula) for parameter in parameters for dim in parameter.dims):
        sizes = {**told, **sizes}
        _formulas(parameters, shapes, program, sizes, scalars or {})
    return {**told, **sizes}


def _formulas(
    parameters: Sequence[Parameter],
    shapes: Sequence[tuple[int, ...]],
    program: Program,
    sizes: dict[str, int],
    scalars: Mapping[str, Number],
) -> None:
    """Add the sizes that formulas give, and compare the extents with them."""
    values = dict(sizes) | {name: int(value) for name, value in scalars.items() if isinstance(value, int)}
    places = {parameter.name: (parameter, shape) for parameter, shape in zip(parameters, shapes, strict=True)}
    for each in solved_sizes(program):
        parameter, shape = places[each.argument]
        sizes[each.name] = values[each.name] = _solved(each, parameter, shape, values, program)
    for parameter, shape in places.values():
        for axis, (dim, extent) in enumerate(zip(parameter.dims, shape, strict=True)):
            if not isinstance(dim, Formula) or (wanted := _value(dim.value, values)) == extent:
                continue
            given = " and ".join(f"`{name}` is {values[name]}" for name in sorted(dim.value.names))
            is_box = " has extent" if ":" in dim.shown else " is"
            why = f"`{dim.shown}`{is_box} {wanted}, where {given}"
            if wanted is None:
                why = f"a divisor in `{dim.shown}` is 0: {given}"
            _misfit(parameter, axis, shape, f", but {why}", program)


def _solved(
    each: Solved, parameter: Parameter, shape: tuple[int, ...], values: Mapping[str, int], program: Program
) -> int:
    """The value of a size, rounded down."""
    dim = parameter.dims[each.axis]
    shown = dim.shown if isinstance(dim, Formula) else str(dim)
    factor, rest = _value(each.factor, values), _value(each.rest, values)
    if not factor or rest is None:
        names = sorted(each.factor.names | each.rest.names)
        given = " and ".join(f"`{name}` is {values[name]}" for name in names)
        why = f", which does not tell `{each.name}` of `{shown}`: {given}"
        _misfit(parameter, each.axis, shape, why, program)
    found = (shape[each.axis] - rest) // factor
    if found < 0:
        _misfit(parameter, each.axis, shape, f", and `{shown}` needs `{each.name}` to be {found}", program)
    return found


def _value(e: SizeExpr, values: Mapping[str, int]) -> int | None:
    """The value at a call; `None` where a divisor is 0."""
    try:
        return e.evaluate(values)
    except ZeroDivisionError:
        return None


def _misfit(parameter: Parameter, axis: int, shape: tuple[int, ...], why: str, program: Program) -> NoReturn:
    """TC605 for a dimension that is not what its formula says."""
    message = f"dimension {axis} of `{parameter.name}` is {shape[axis]}{why}"
    fail(codes.SIZE_CONFLICT, message, program.source, parameter.span, f"`{parameter.text}`")


def _conflict(
    name: str,
    value: int,
    place: tuple[Parameter, int],
    other: int,
    place2: tuple[Parameter, int],
    program: Program,
    help: str | None,
) -> NoReturn:
    (first, axis), (second, axis2) = place, place2
    where = f"{value} in `{first.name}` (dimension {axis}) and {other} in `{second.name}` (dimension {axis2})"
    fail(codes.SIZE_CONFLICT, f"size `{name}` is {where}", program.source, second.span, f"`{second.text}`", help)


def _transposed(
    parameters: Sequence[Parameter], shapes: Sequence[tuple[int, ...]], known: Mapping[str, int]
) -> str | None:
    """Which matrix makes all sizes fit if rows and columns change places."""
    for number, parameter in enumerate(parameters):
        turned = [shape[::-1] if at == number else shape for at, shape in enumerate(shapes)]
        if parameter.rank == 2 and _agree(parameters, turned, known):
            return f"the sizes fit if `{parameter.name}` is transposed: pass its `.T`"
    return None


def _agree(parameters: Sequence[Parameter], shapes: Sequence[tuple[int, ...]], known: Mapping[str, int]) -> bool:
    """Whether every size has one value, as far as dimensions that are a name or a number tell."""
    sizes = dict(known)
    pairs = [
        pair for each, shape in zip(parameters, shapes, strict=True) for pair in zip(each.dims, shape, strict=True)
    ]
    return all(
        (sizes.setdefault(dim, extent) if isinstance(dim, str) else dim) == extent
        for dim, extent in pairs
        if isinstance(dim, (str, int))
    )


# out= --------------------------------------------------------------------------------------------------------------------------


def read_outputs(
    out: object, results: Sequence[Parameter], shapes: Sequence[tuple[int, ...]], device: str, program: Program
) -> tuple[ArrayView, ...]:
    """The arrays of `out=`, one per result.

    Raises:
        CallError: TC502, TC606 for a wrong count, TC609, TC610, and TC611 for an array whose elements share memory.
    """
    given: tuple[object, ...] = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if len(given) != len(results):
        message = f"`{program.name}` has {_count(len(results), 'result')}; `out=` has {len(given)}"
        names = ", ".join(result.name for result in results)
        help = f"pass an array, `out={names}`" if len(results) == 1 else f"pass a tuple of arrays, `out=({names})`"
        fail(codes.CALL_ARGUMENTS, message, program.source, program.span, help=help)
    return tuple(
        _read_output(value, result, shape, device, program)
        for value, result, shape in zip(given, results, shapes, strict=True)
    )


def _read_output(value: object, result: Parameter, shape: tuple[int, ...], device: str, program: Program) -> ArrayView:
    expected = f"`out=` for `{result.name}` is a writable array of {result.dtype.value} with shape {shape}"

    fresh = f"pass `np.empty({shape}, dtype={_numpy_type(result.dtype)})`, or leave `out=` away"
    is_numpy = library_of(value) is None or isinstance(value, np.ndarray)

    def wrong(came: str, help: str = fresh if is_numpy else "leave `out=` away") -> NoReturn:
        fail(codes.OUT_MISMATCH, f"{expected}; {came} came", program.source, result.span, help=help)

    try:
        view = view_of(value)
    except ArgumentProblem as problem:
        wrong(problem.came)
    if view.dtype is not result.dtype:
        wrong(f"an array of {view.dtype_name}")
    if view.shape != shape:
        wrong(f"shape {view.shape}")
    refuse_too_large(result.name, shape, result.dtype, program.source, result.span)
    if view.device != device:
        fail(codes.ARGUMENT_DEVICE, f"`out=` for `{result.name}` is on `{view.device}`, the inputs on `{device}`",
             program.source, result.span)  # fmt: skip
    if not view.writable:
        requires = getattr(value, "requires_grad", False)
        torch = "a tensor that requires a gradient" if requires else "a tensor whose signs change when it is read"
        kind = {"jax": "a JAX array, which never changes,", "torch": torch}
        wrong(kind.get(view.library.name, "a read-only array"), "leave `out=` away")
    if overlaps_itself(view):
        message = f"elements of `out=` for `{result.name}` share memory"
        fail(codes.OVERLAP, message, program.source, result.span, help="pass a copy")
    return view


def one_device(parameters: Sequence[Parameter], views: Sequence[ArrayView], program: Program) -> str:
    """The device that all arrays are on; `cpu` if there is none.

    Raises:
        CallError: TC609.
    """
    device = views[0].device if views else "cpu"
    for parameter, view in zip(parameters, views, strict=True):
        if view.device != device:
            where = f"`{parameters[0].name}` is on `{device}`, `{parameter.name}` on `{view.device}`"
            fail(
                codes.ARGUMENT_DEVICE,
                where,
                program.source,
                parameter.span,
                help="copy one of them to the other device",
            )
    return device
