"""A program that calls every function of an exported library, in C and in C++: `example.c` and `example.cpp`.

Comes in: definitions and their C functions. Goes out: the text of a program, whose calls are ones that the def accepts.

Worked example: of `mv` it has `run_mv`, which makes `A` of 6 x 6 elements and `B` of 6, asks `mv_shapes` for the size of `o`, and
calls `mv`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from tc_jupyter.compiler.definition import Definition
from tc_jupyter.diagnostics import CallError
from tc_jupyter.program import DType
from tc_jupyter.ranges import from_expr
from tc_jupyter.runtime.arrays import numpy_dtype, storage_dtype

from .signature import ELEMENTS, Parameter, Signature

_SIZES = (6, 16, 3, 1)
_FILLS = ("1", "k", "0", "k % 2")
_BITS = {DType.FLOAT16: "0x3c00", DType.BFLOAT16: "0x3f80"}
"""The bits of 1."""


def example(definitions: Sequence[Definition], signatures: Sequence[Signature], name: str, language: str) -> str:
    """The text of the program."""
    cpp = language == "cpp"
    headers = ["cstdio", "memory"] if cpp else ["stdio.h", "stdlib.h"]
    compiler = "c++" if cpp else "cc"
    lines = [
        f"// {compiler} example.{language} lib{name}.a -lm -pthread && ./a.out",
        *(f"#include <{each}>" for each in headers),
    ]
    lines += [f'#include "{name}.h"', ""]
    for definition, signature in zip(definitions, signatures, strict=True):
        lines += [*_run(definition, signature, cpp), ""]
    calls = " + ".join(f"run_{each.name}()" for each in signatures) or "0"
    return "\n".join([*lines, f"int main({'' if cpp else 'void'})", "{", f"    return {calls};", "}", ""])


def _run(definition: Definition, signature: Signature, cpp: bool) -> list[str]:
    sizes, fill = _call(definition)
    body: list[str] = []
    passed: list[str] = []
    for each, written in zip(signature.inputs, definition.written, strict=True):
        extents = _extents(definition, each.name, sizes)[: len(written.dims)]
        body += _input(each, extents, fill, cpp)
        passed.append(each.c if each.by_value else f"&{each.c}")
    for each in signature.results:
        body.append(
            f"{each.struct} {each.c}{' = {}' if cpp else ' = {NULL, {0}, NULL}'};"
            if each.rank
            else f"{ELEMENTS[each.dtype]} {each.c} = 0;"
        )
    asked = [*passed, *(f"&{each.c}" for each in signature.results if each.rank)]
    body.append(f"int code = {signature.name}_shapes({', '.join(asked)});")
    for each in signature.results:
        body += _result(each, cpp)
    passed += [f"&{each.c}" for each in signature.results]
    body += [f"if (!code) code = {signature.name}({', '.join([*passed, 'nullptr' if cpp else 'NULL'])});"]
    body += [f'if (code) fprintf(stderr, "{signature.name}: %s\\n", {signature.name}_error(code));']
    body += [f"else {_shown(signature)}"]
    arrays = [each for each in signature.parameters if each.rank]
    body += [] if cpp else [f"free({each.c}.data);" for each in arrays]
    return [
        f"static int run_{signature.name}({'' if cpp else 'void'})",
        "{",
        *(f"    {line}" for line in body),
        "    return code != 0;",
        "}",
    ]


def _input(each: Parameter, extents: Sequence[int], fill: str, cpp: bool) -> list[str]:
    element = ELEMENTS[each.dtype]
    value = _BITS.get(each.dtype, f"({element})({'float' if cpp and each.pairs else 'int'})({fill})")
    if not each.rank:
        return [f"{element} {each.c} = {_BITS.get(each.dtype, '1')};"]
    count = prod(extents)
    shape = ", ".join(map(str, extents))
    loop = f"for (int k = 0; k < {count}; k++) {each.c}.data[k] = {value};"
    if cpp:
        own = f"std::unique_ptr<{element}[]> {each.c}_data(new {element}[{count + 1}]());"
        return [own, f"{each.struct} {each.c} = {{{each.c}_data.get(), {{{shape}}}, nullptr}};", loop]
    return [f"{each.struct} {each.c} = {{calloc({count + 1}, sizeof({element})), {{{shape}}}, NULL}};", loop]


def _result(each: Parameter, cpp: bool) -> list[str]:
    if not each.rank:
        return []
    element = ELEMENTS[each.dtype]
    count = " * ".join(f"{each.c}.sizes[{axis}]" for axis in range(each.rank))
    if cpp:
        return [
            f"std::unique_ptr<{element}[]> {each.c}_data(new {element}[{count} + 1]());",
            f"{each.c}.data = {each.c}_data.get();",
        ]
    return [f"{each.c}.data = calloc((size_t)({count}) + 1, sizeof({element}));"]


def _shown(signature: Signature) -> str:
    first = signature.results[0]
    value = f"{first.c}.data[0]" if first.rank else first.c
    if first.pairs:
        return f'printf("{signature.name}: done\\n");'
    return f'printf("{signature.name}: {first.name} begins with %g\\n", (double){value});'


def _extents(definition: Definition, name: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(from_expr(dim).evaluate(sizes) for dim in definition.program.tensor(name).dims or ())


def _call(definition: Definition) -> tuple[dict[str, int], str]:
    """Sizes and contents that the def accepts; if none are found, some that it refuses."""
    names = [*definition.program.sizes]
    tried = [dict.fromkeys(names, size) for size in _SIZES]
    tried += (
        [dict(zip(names, each, strict=True)) for each in product((6, 3), repeat=len(names))] if len(names) <= 6 else []
    )
    scalars = dict.fromkeys(definition.program.integer_scalars, 1)
    for sizes in tried:
        try:
            definition.numbers_at({**sizes, **scalars})
        except (CallError, KeyError):
            continue
        for fill in _FILLS:
            try:
                definition.call(
                    [_value(definition, name, {**sizes, **scalars}, fill) for name in definition.names], None
                )
            except CallError:
                continue
            return {**sizes, **scalars}, fill
    return {**tried[0], **scalars}, _FILLS[0]


def _value(definition: Definition, name: str, sizes: dict[str, int], fill: str) -> object:
    """An argument."""
    tensor = definition.program.tensor(name)
    extents = _extents(definition, name, sizes)[: tensor.written_rank]
    if not tensor.written_rank:
        return True if tensor.element is DType.BOOL else 1
    kind = numpy_dtype(tensor.element) or storage_dtype(tensor.element)
    k = np.arange(prod(extents))
    made = {"1": k * 0 + 1, "k": k, "0": k * 0, "k % 2": k % 2}[fill]
    with np.errstate(all="ignore"):
        return made.astype(kind).reshape(extents)
