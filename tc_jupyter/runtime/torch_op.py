"""Calls inside `torch.compile` and `torch.export`: one operator of PyTorch, which is told the def by a key.

It is imported by the first call that PyTorch traces, and is no part of a call that PyTorch does not.

The derivative of a def is told by the key of the def and the places of the parameters by which it derives: PyTorch keeps graphs on
disk, and a process that takes one from there has compiled the def, but has not derived it.

Worked example: with `g = torch.compile(lambda x: f(x).sin(), fullgraph=True)`, `g(x)` calls
`torch.ops.tc_jupyter.call([x], "1f0c:t", [], [])`, where `1f0c` is the key of `f`. Backwards, `"1f0c>0:tt"` is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .autograd import KNOWN
from .traceable import Traceable


def traced(about: Traceable, args: Sequence[Any]) -> Any:
    """The operator for a call that PyTorch traces."""
    found = _call(about.key, args)
    return found[0] if len(found) == 1 else tuple(found)


def _call(key: str, args: Sequence[Any]) -> list[Any]:
    kinds = "".join(
        ["t" if isinstance(each, torch.Tensor) else "f" if isinstance(each, float) else "i" for each in args]
    )
    tensors = [each for each, kind in zip(args, kinds, strict=True) if kind == "t"]
    integers = [int(each) for each, kind in zip(args, kinds, strict=True) if kind == "i"]
    floats = [each for each, kind in zip(args, kinds, strict=True) if kind == "f"]
    return torch.ops.tc_jupyter.call(tensors, f"{key}:{kinds}", integers, floats)


def _arguments(tensors: Sequence[Any], key: str, integers: Sequence[int], floats: Sequence[float]) -> list[Any]:
    """The arguments of the def in their order."""
    sources = {"t": iter(tensors), "i": iter(integers), "f": iter(floats)}
    return [next(sources[kind]) for kind in key.partition(":")[2]]


def _known(key: str) -> Traceable:
    base, *derived = _named(key).split(">")
    about: Traceable | None = KNOWN.get(base)
    if about is None:
        raise RuntimeError(
            "a graph of PyTorch calls a def that is not compiled here: run its cell or `tc.compile` first"
        )
    for places in derived:
        about = about.backward_of(tuple(map(int, places.split(","))))[0].about
    return about


def _named(key: str) -> str:
    """What names the def, without the kinds of the arguments."""
    return key.partition(":")[0]


@torch.library.custom_op("tc_jupyter::call", mutates_args=())
def call(tensors: list[torch.Tensor], key: str, integers: list[int], floats: list[float]) -> list[torch.Tensor]:
    """A call of the def with a key."""
    about = _known(key)
    return [torch.as_tensor(each) for each in about.run(_arguments(tensors, key, integers, floats))]


@call.register_fake
def _outlined(tensors: list[torch.Tensor], key: str, integers: list[int], floats: list[float]) -> list[torch.Tensor]:
    outlines = _known(key).outlines(_arguments(tensors, key, integers, floats))
    device = tensors[0].device if tensors else "cpu"
    return [torch.empty(shape, dtype=getattr(torch, dtype), device=device) for shape, dtype in outlines]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    tensors, ctx.key, ctx.integers, ctx.floats = inputs
    ctx.count = len(tensors)
    about = _known(ctx.key)
    other = [value for value, is_float in zip(output, about.float_results, strict=True) if not is_float]
    ctx.mark_non_differentiable(*other)
    ctx.save_for_backward(*tensors, *output)


def _backwards(ctx: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
    about, saved = _known(ctx.key), list(ctx.saved_tensors)
    tensors, results = saved[: ctx.count], saved[ctx.count :]
    at = [place for place, kind in enumerate(ctx.key.partition(":")[2]) if kind == "t"]
    wanted = [number for number, needed in enumerate(ctx.needs_input_grad[0]) if needed]
    by = tuple(at[number] for number in wanted)
    back, places = about.backward_of(by)
    arguments = _arguments(tensors, ctx.key, ctx.integers, ctx.floats)
    cotangents = [
        torch.zeros_like(result) if grad is None else grad
        for grad, result, is_float in zip(grads, results, about.float_results, strict=True)
        if is_float
    ]
    kept = [*(arguments[place] for place in back.takes), *(results[place] for place in back.saved)]
    found = _call(f"{_named(ctx.key)}>{','.join(map(str, by))}", [*kept, *cotangents])
    answer: list[Any] = [None] * ctx.count
    for place, value in zip(places, found, strict=True):
        if place in at and at.index(place) in wanted:
            answer[at.index(place)] = value
    return answer, None, None if ctx.integers else [], None if ctx.floats else []


call.register_autograd(_backwards, setup_context=_keep)
