"""The peer Halide: a program of a header, once with its schedule by hand and once with that of an autoscheduler.

A program is a generator over the parameters, as buffers whose first dimension is the last one of the array. It yields the `Func`
of the result, or several; what stands below is the schedule by hand.

Worked example of the lines of a header:

    # halide: def scaled(X):
    # halide:     Y, (i, j) = hl.Func(), map(hl.Var, "ij")
    # halide:     Y[j, i] = 2 * X[j, i]
    # halide:     yield Y
    # halide:     Y.parallel(i).vectorize(j, min(16, M))

No `Var` of a program is to be called `s`: beside the names that Halide makes of stages, such a one gave wrong bounds (Halide 21).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

PIPELINE = "halide"
"""The key of the header, and the package."""
AUTOSCHEDULER = "Adams2019"
"""Source: Adams et al., "Learning to optimize Halide with tree search and random programs", 2019."""
_GREEDY = {"beam_size": 1}
"""The search keeps one schedule, not 32: on a Zen 5 those of nine programs took 0.85 to 1.08 times as long, and the search for a
convolution 0.2 instead of 29 seconds."""
_ENDINGS = (".so", ".dylib", ".dll")


def pipeline_calls(
    text: str, arrays: Mapping[str, Any], sizes: Mapping[str, int], expected: Any, thread_count: int
) -> dict[str, Callable[[], Any]]:
    """A program with both schedules, compiled for these arguments and this processor; the calls write into arrays of their own.

    The threads of Halide are those of `HL_NUM_THREADS` when its first program runs.

    Args:
        sizes: those of the def, names of the program.
        expected: a result, or several; theirs have such shapes.
        thread_count: how many threads the autoscheduler counts on.
    """
    results = expected if isinstance(expected, tuple) else (expected,)
    calls = {"Halide": _call(_by_hand(_program(text, arrays, sizes), results), results)}
    automatic = _automatic(_program(text, arrays, sizes), results, thread_count)
    if automatic is not None and _runs(call := _call(automatic, results)):
        calls["Halide (auto)"] = call
    return calls


def _program(text: str, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """The generator of a text, on these arguments."""
    hl: Any = import_module(PIPELINE)
    scope: dict[str, Any] = {"hl": hl, **sizes}
    exec(text, scope)
    name = text.removeprefix("def ").partition("(")[0]
    return scope[name](*(_input(each) if isinstance(each, np.ndarray) else each for each in arrays.values()))


def _input(array: Any) -> Any:
    """An array whose sizes and strides are numbers of the program, as they are for others that compile for a call."""
    hl: Any = import_module(PIPELINE)
    buffer = hl.Buffer(array)
    param = hl.ImageParam(buffer.type(), buffer.dimensions())
    _fix(param, array)
    param.set(buffer)
    return param


def _fix(param: Any, array: Any) -> None:
    """Tell the compiler sizes and strides, in elements: a buffer begins with the last dimension of the array."""
    for number, (extent, stride) in enumerate(zip(array.shape[::-1], array.strides[::-1], strict=True)):
        param.dim(number).set_bounds(0, extent).set_stride(stride // array.itemsize).set_estimate(0, extent)


def _by_hand(program: Any, results: Sequence[Any]) -> Any:
    """The compiled pipeline with the schedule of the text."""
    hl: Any = import_module(PIPELINE)
    pipeline = hl.Pipeline(_outputs(next(program), results))
    next(program, None)
    pipeline.compile_jit(hl.get_host_target())
    return pipeline


def _automatic(program: Any, results: Sequence[Any], thread_count: int) -> Any:
    """The compiled pipeline with the schedule of the autoscheduler; `None` where the package comes without it."""
    hl: Any = import_module(PIPELINE)
    found = Path(hl.install_dir()).glob(f"*/*autoschedule_{AUTOSCHEDULER.lower()}.*")
    plugin = next((each for each in found if each.suffix in _ENDINGS), None)
    if plugin is None:
        return None
    hl.load_plugin(str(plugin))
    target, pipeline = hl.get_host_target(), hl.Pipeline(_outputs(next(program), results))
    pipeline.apply_autoscheduler(
        target, hl.AutoschedulerParams(AUTOSCHEDULER, {"parallelism": thread_count, **_GREEDY})
    )
    pipeline.compile_jit(target)
    return pipeline


def _runs(call: Callable[[], Any]) -> bool:
    """Whether a pipeline stays within its buffers; one that was found for a convolution of 19 channels began before the weights."""
    try:
        call()
    except import_module(PIPELINE).HalideError:
        return False
    return True


def _outputs(yielded: Any, results: Sequence[Any]) -> list[Any]:
    """The `Func`s of the results, of known sizes; one may have several values, each of which is a result."""
    functions = list(yielded) if isinstance(yielded, tuple) else [yielded]
    left = list(results)
    for function in functions:
        buffers = function.output_buffers()
        _fix(buffers[0], left[0])  # the others are as large
        del left[: len(buffers)]
    return functions


def _call(pipeline: Any, results: Sequence[Any]) -> Callable[[], Any]:
    hl: Any = import_module(PIPELINE)
    written = [np.empty_like(result) for result in results]
    buffers = list(map(hl.Buffer, written))
    value = tuple(written) if len(written) > 1 else written[0]

    def call() -> Any:
        pipeline.realize(buffers)
        return value

    return call
