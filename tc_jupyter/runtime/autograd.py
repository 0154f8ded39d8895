"""PyTorch records a call as it does its own: gradients flow through it, also through gradients.

Comes in: a def with its derivative, and arguments of which one requires a gradient. Goes out: results that remember.

Worked example: after `y = f(x)` with `x.requires_grad`, `y.sum().backward()` calls `f.vjp()` with `x` and a tensor of ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from .traceable import Outlines


@dataclass(frozen=True, slots=True)
class Backward:
    """How derivatives are computed.

    Attributes:
        call: of some arguments, some results and the derivatives of the results that are floats.
        takes: places of those arguments; what the derivatives do not need is not kept.
        saved: places of those results.
        places: of the parameters whose derivatives come back.
        forward: of the arguments: the results, and behind them others that only `call` takes; `None` where there are none.
        again: the same without such others, which can be derived itself.
    """

    call: Callable[..., Any]
    takes: tuple[int, ...]
    saved: tuple[int, ...]
    places: tuple[int, ...]
    forward: Callable[..., Any] | None = None
    again: Backward | None = None


@dataclass(frozen=True, slots=True)
class Recordable:
    """A def that can be recorded.

    Attributes:
        call: of the arguments.
        outlines: shape and type of each result of such a call.
        backward: for the places of the parameters whose derivatives are wanted; with `forward` if the second argument is true.
        forward: of the arguments and a direction for each parameter of floats: each result, behind floats its derivative.
        floats: places of the parameters that are floats.
        results: whether each result is a float.
    """

    call: Callable[..., Any]
    outlines: Callable[[Sequence[Any]], Outlines]
    backward: Callable[[tuple[int, ...], bool], Backward]
    forward: Callable[[tuple[int, ...]], Callable[..., Any]]
    floats: tuple[int, ...]
    results: tuple[bool, ...]


KNOWN: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Defs by what names them inside `torch.compile`."""


def known(about: object, identity: str) -> str:
    """A key for a def, which follows from all that it depends on as long as there is one such def."""
    key, number = identity[:16], 1
    while key in KNOWN:
        number += 1
        key = f"{identity[:16]}_{number}"
    KNOWN[key] = about
    return key


def is_traced() -> bool:
    """Whether PyTorch, which is loaded, traces this call for `torch.compile` or `torch.export`."""
    return sys.modules["torch"].compiler.is_compiling()


def is_recorded(args: Sequence[Any]) -> bool:
    """Whether PyTorch follows the arguments of a call: one requires a gradient, has a direction, or stands for many."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any([value.requires_grad for value in tensors]):
        return True
    directed = sys.modules["torch.autograd.forward_ad"]._current_level >= 0
    return bool(tensors) and (directed or torch._C._functorch.peek_interpreter_stack() is not None)


def is_traced_by_jax(args: Sequence[Any]) -> bool:
    """Whether JAX follows an argument of a call."""
    core = getattr(sys.modules.get("jax"), "core", None)
    return core is not None and any([isinstance(value, core.Tracer) for value in args])


def record(about: Recordable, args: Sequence[Any]) -> Any:
    """Call a def so that PyTorch remembers it."""
    torch = sys.modules["torch"]
    quick, general = _recorders()
    return (quick if torch._C._functorch.peek_interpreter_stack() is None else general).apply(about, *args)


def written(arrays: Sequence[Any]) -> None:
    """Tell PyTorch that tensors have changed: a gradient that needs the old elements is an error then."""
    torch = sys.modules.get("torch")
    if torch is not None:
        for array in arrays:
            if isinstance(array, torch.Tensor) and not array.is_inference():
                torch.autograd.graph.increment_version(array)


def _compute(ctx: Any, about: Recordable, args: Sequence[Any]) -> Any:
    """The results of a call, of which PyTorch has said what it needs."""
    wanted = _wanted(ctx, about)
    back = about.backward(wanted, True) if wanted else None
    if back is None or back.forward is None:
        output = about.call(*args)
        _keep(ctx, about, args, output, back)
        return output
    count = len(about.results)
    found = back.forward(*args)
    output = found[:count] if count > 1 else found[0]
    _keep(ctx, about, args, output, back, found[count:])
    return output


def _wanted(ctx: Any, about: Recordable) -> tuple[int, ...]:
    """The places of the parameters whose derivatives are wanted."""
    needed = ctx.needs_input_grad
    return tuple([place for place in about.floats if needed[place + 1]])


def _keep(
    ctx: Any, about: Recordable, args: Sequence[Any], output: Any, back: Backward | None, others: Sequence[Any] = ()
) -> None:
    """Keep what the derivatives need."""
    ctx.about = about
    results = output if isinstance(output, tuple) else (output,)
    if not all(about.results):
        ctx.mark_non_differentiable(
            *[each for each, is_float in zip(results, about.results, strict=True) if not is_float]
        )
    if back is not None:
        ctx.back, ctx.others = back, len(others)
        values = [*others, *_needed(back, args, results)]
        if back.again is not None:
            values += _needed(back.again, args, results)
        tensors, ctx.numbers = _apart(values)
        ctx.save_for_backward(*tensors)
    if sys.modules["torch.autograd.forward_ad"]._current_level >= 0:
        tensors, ctx.numbers_ahead = _apart(args)
        ctx.save_for_forward(*tensors)


def _needed(back: Backward, args: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """What derivatives take of arguments and results."""
    values = [args[place] for place in back.takes]
    values += [results[place] for place in back.saved]
    return values


Numbers: TypeAlias = Sequence[tuple[int, Any]]
"""Numbers by their places."""


def _apart(values: Sequence[Any]) -> tuple[Sequence[Any], Numbers]:
    """The values that PyTorch keeps, and the numbers among them, which are kept beside: each direction has its own."""
    tensor = sys.modules["torch"].Tensor
    numbers = [(place, value) for place, value in enumerate(values) if not isinstance(value, tensor)]
    return [value if isinstance(value, tensor) else None for value in values] if numbers else values, numbers


def _values(ctx: Any, numbers: Numbers) -> list[Any]:
    """What was kept for a direction."""
    values: list[Any] = list(ctx.saved_tensors)
    for place, value in numbers:
        values[place] = value
    return values


def _backwards(ctx: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
    """The derivatives of the parameters, from those of the results."""
    about, back, needed = ctx.about, ctx.back, ctx.needs_input_grad
    whole = zip(grads, about.results, strict=True)
    dense = [grad if grad.is_contiguous() else grad.contiguous() for grad, is_float in whole if is_float]
    values, count = _values(ctx, ctx.numbers), ctx.others
    own = count + len(back.takes) + len(back.saved)
    if back.again is None:
        found = back.call(*values, *dense)
    elif sys.modules["torch"].is_grad_enabled():  # what PyTorch has not seen has no derivative
        found = back.again.call(*values[own:], *dense)
    else:
        found = back.call(*values[count:own], *values[:count], *dense)
    found = found if isinstance(found, tuple) else (found,)
    answer: list[Any] = [None] * len(needed)
    for place, value in zip(back.places, found, strict=True):
        if needed[place + 1]:
            answer[place + 1] = value
    return tuple(answer)


def _forwards(ctx: Any, tangents: Sequence[Any]) -> Any:
    """The derivatives of the results along directions."""
    about = ctx.about
    moved = tuple(place for place in about.floats if tangents[place] is not None)
    found = about.forward(moved)(*_values(ctx, ctx.numbers_ahead), *[tangents[place].contiguous() for place in moved])
    parts = iter(found)
    answer = [(next(parts), next(parts))[1] if is_float else (next(parts), None)[1] for is_float in about.results]
    return tuple(answer) if len(answer) > 1 else answer[0]


def _no_calls(about: Recordable, args: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, ...]:
    """The results of no calls, which depend on the arguments as those of some do."""
    torch = sys.modules["torch"]
    tensors = [value for value in args if isinstance(value, torch.Tensor)]

    def of_one(value: Any, axis: int | None) -> Any:
        """What stands for the argument of one call; those of a tensor that stands for many cannot be read."""
        if axis is None and not (isinstance(value, torch.Tensor) and value.ndim):
            return value
        shape = [extent for place, extent in enumerate(value.shape) if place != axis]
        return torch.zeros(shape, dtype=value.dtype, device=value.device)

    each = [of_one(value, axis) for value, axis in zip(args, axes, strict=True)]
    nothing = sum(value.sum() for value in tensors if value.is_floating_point() or value.is_complex())
    return tuple(
        torch.zeros((0, *shape), dtype=getattr(torch, dtype), device=tensors[0].device)
        + (nothing * 0 if is_float else 0)
        for (shape, dtype), is_float in zip(about.outlines(each), about.results, strict=True)
    )


@cache
def _recorders() -> tuple[Any, Any]:
    """The classes that PyTorch wants, for plain calls and for those inside `torch.func`; made when they are first needed."""
    import torch  # noqa: PLC0415  (whoever passes tensors has it)

    class Derived(torch.autograd.Function):
        """What both say of derivatives."""

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            """The derivatives of the parameters."""
            return _backwards(ctx, grads)

        @staticmethod
        def jvp(ctx: Any, *directions: Any) -> Any:
            """The derivatives of the results."""
            return _forwards(ctx, directions[1:])

    class Recorded(Derived):
        """A call of a def. With `setup_context`, PyTorch would look at the signature in every call."""

        @staticmethod
        def forward(ctx: Any, about: Recordable, *args: Any) -> Any:
            """Compute the results; nothing is recorded in here."""
            return _compute(ctx, about, args)

    class Transformed(Derived):
        """A call of a def inside `torch.func.grad`, `torch.vmap` and the like."""

        @staticmethod
        def forward(about: Recordable, *args: Any) -> Any:
            """Compute the results."""
            return about.call(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            """Keep what the derivatives need."""
            about, wanted = inputs[0], _wanted(ctx, inputs[0])
            _keep(ctx, about, inputs[1:], output, about.backward(wanted, False) if wanted else None)

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> Any:
            """One call after the other."""
            about, *args = given
            found: list[tuple[Any, ...]] = []
            for number in range(info.batch_size):
                pairs = zip(args, in_dims[1:], strict=True)
                one = record(about, [value if axis is None else value.select(axis, number) for value, axis in pairs])
                found.append(one if isinstance(one, tuple) else (one,))
            whole = tuple(torch.stack(parts) for parts in zip(*found, strict=True)) or _no_calls(
                about, args, in_dims[1:]
            )
            return (whole, (0,) * len(whole)) if len(about.results) > 1 else (whole[0], 0)

    return Recorded, Transformed
