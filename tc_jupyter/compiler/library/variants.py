"""Which code a library has of a def: one build for each processor and each class of sizes, and when it is the right one.

Comes in: a definition, processors, calls for which code of their own is wanted. Goes out: `Variant`s, each with its kernels as
`plans` knows them and the LLVM text of each.

Worked example: a convolution with `like=[(X, W)]`, where `W` is 3 x 3, has the variants `KH == 3 && KW == 3`, all sizes, and those
of calls in which a size is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, NoReturn, cast

from tc_jupyter.codegen import KernelSource
from tc_jupyter.codegen.cuda import emit_cuda
from tc_jupyter.compiler.build import Build
from tc_jupyter.compiler.definition import Definition
from tc_jupyter.diagnostics import codes, shown_value
from tc_jupyter.diagnostics.values import one_or_more
from tc_jupyter.loops import Buffer
from tc_jupyter.program import Program
from tc_jupyter.ranges import Fact
from tc_jupyter.runtime import cpu, jit
from tc_jupyter.runtime.arguments import fail
from tc_jupyter.runtime.cuda import cuda_target
from tc_jupyter.runtime.kernel import Layout
from tc_jupyter.runtime.launch import EntryPoint, LaunchInfo, entry_point, launch_info
from tc_jupyter.schedule import Target

from .processor import KNOWN, Processor

OLDEST = 70
"""The oldest architecture of a GPU."""
MOST_VANISHING = 4
"""Sizes that may be 0 in any combination; of more, one at a time."""


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel: what a launch must know, and its text.

    Attributes:
        entry: of code for a CPU.
        scans: numbers of the checks on data before it.
        temporaries: the buffers that calls allocate for it.
    """

    info: LaunchInfo
    entry: EntryPoint | None
    source: KernelSource
    scans: tuple[int, ...]
    temporaries: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """Code of a def for a class of sizes.

    Attributes:
        name: in C.
        equal, facts, most: what sizes have to be.
        empty: for calls in which a size is 0, or a loop has no iterations; the sizes of `equal` are 0, `positive` are not.
        steps: the kernels for each processor, in their order.
    """

    name: str
    equal: tuple[tuple[str, int], ...]
    facts: tuple[tuple[str, Fact], ...]
    most: tuple[tuple[str, int], ...]
    empty: bool
    positive: tuple[str, ...]
    steps: tuple[tuple[Step, ...], ...]


def processors(names: str | Sequence[str] | None, about: Program) -> tuple[Processor, ...]:
    """Processors by name, the ones with fewer features first: levels of x86-64, and `native`, which is this one.

    Raises:
        CallError: TC660, one is unknown, or of another family than this machine.
    """
    host, own = cpu.cpu_target(), jit.host()[0].startswith("x86_64")
    chosen = one_or_more(names or (("x86-64-v3", "x86-64-v4") if own else ("native",)))
    found = (_processor(name, host, own, about) for name in chosen)
    return tuple(sorted(found, key=lambda each: len(each.checked)))


def devices(archs: str | Sequence[str], about: Program) -> tuple[Processor, ...]:
    """GPUs by their architecture, older ones first.

    Raises:
        CallError: TC660, one is no architecture.
    """
    names = one_or_more(archs)
    for name in names:
        if not (isinstance(name, str) and re.fullmatch(r"sm_[1-9]\d+", name)) or int(name[3:]) < OLDEST:
            message = f"there is no device {shown_value(name)} to export for, as sm_80 or sm_90"
            digits = re.sub(r"\D", "", str(name))
            help = f'write `cuda="sm_{digits}"`' if re.fullmatch(r"[7-9]\d|1\d\d", digits) else None
            refuse(codes.EXPORT_TARGET, message, about, help=help)
    ordered = sorted(names, key=lambda name: int(name[3:]))
    return tuple(Processor(name, name, replace(cuda_target(name), arch=name), ()) for name in ordered)


def _processor(name: str, host: Target, is_x86: bool, about: Program) -> Processor:
    if name == "native":
        kept = host.features & (cpu.LEVELS["x86-64"] | frozenset(KNOWN)) if is_x86 else host.features
        target = cpu.other_target(host, kept)
    elif is_x86 and name in cpu.LEVELS:
        target = cpu.other_target(host, cpu.LEVELS[name])
    else:
        known = ", ".join([*(cpu.LEVELS if is_x86 else ()), "native"])
        message = f"there is no processor {shown_value(name)} to export for; there are {known}"
        refuse(codes.EXPORT_TARGET, message, about)
    checked = tuple(each for each in KNOWN if each in target.features) if is_x86 else ()
    return Processor(name.removeprefix("x86-64-").replace("-", "_"), name, target, checked)


def refuse(code: codes.Code, message: str, about: Program, help: str | None = None) -> NoReturn:
    """Raise what is wrong with an export.

    Raises:
        CallError: always.
    """
    fail(code, message, about.source, about.span, help=help)


def variants(
    definition: Definition, kinds: Sequence[Processor], like: Iterable[Any], accumulate: bool
) -> tuple[Variant, ...]:
    """The code of a def, in the order in which it is looked for.

    Args:
        like: calls, each the arrays of one, or sizes by name.
        accumulate: results are combined onto what the arrays hold.

    Raises:
        CallError: a call does not fit the def.
        ValueError: sizes by name are not all sizes of the def.
    """
    engine = kinds[0].target.kind
    wanted = [layout for call in like if not (layout := _layout(definition, call, engine)).empty]
    every = dict.fromkeys(replace(layout, accumulate=accumulate) for layout in (*wanted, _general(definition)))
    found = [_variant(definition, f"variant{number}", layout, kinds) for number, layout in enumerate(every)]
    fixed = _general(definition).constants
    lowest = kinds if engine == "cuda" else (replace(kinds[0], target=simplest(kinds)),)
    for number, gone in enumerate(_vanishing(definition)):
        constants = tuple((name, 0) for name in gone)
        layout = Layout(frozenset(), 64, accumulate, constants=constants, empty=True)
        positive = tuple(name for name in shortening(definition) if name not in gone)
        made = _variant(definition, f"empty{number}", layout, lowest)
        found.append(replace(made, equal=(*made.equal, *fixed), positive=positive))
    return tuple(found)


def simplest(kinds: Sequence[Processor]) -> Target:
    """A target that all processors are of."""
    target = kinds[0].target
    return cpu.other_target(target, cpu.LEVELS["x86-64"]) if target.arch.startswith("x86_64") else target


def _layout(definition: Definition, call: Any, engine: str) -> Layout:
    """The class of a call with arrays in row order; indices have 64 bits.

    Raises:
        CallError: the call does not fit the def, or TC614, a size is missing.
        TypeError, ValueError: a value is no size, or there is no such size.
    """
    if isinstance(call, Mapping):
        sizes = definition.sizes_by_name(cast("Mapping[str, object]", call))
    else:
        sizes = definition.inputs(call if isinstance(call, (tuple, list)) else (call,)).sizes
    layout = definition.layout_at(sizes, definition.numbers_at(sizes), engine)
    return replace(layout, index_bits=64)


def _general(definition: Definition) -> Layout:
    """The layout of all sizes, but for those that `specialize=` fixed."""
    fixed = definition.options.specialize
    constants = tuple(sorted(fixed.items())) if isinstance(fixed, Mapping) else ()
    own = tuple((name, value) for name, value in constants if name in definition.program.sizes)
    return Layout(frozenset(), 64, constants=own)


def shortening(definition: Definition) -> tuple[str, ...]:
    """The sizes that make a range shorter, for which code is told that they are 0."""
    return tuple(sorted(definition.shortening & {*definition.program.sizes}))


def _vanishing(definition: Definition) -> list[tuple[str, ...]]:
    names = shortening(definition)
    most = len(names) if len(names) <= MOST_VANISHING else 1
    most = 0 if definition.special is not None else most  # whose arrays have elements
    return list(chain.from_iterable(combinations(names, count) for count in range(most + 1)))


def _variant(definition: Definition, name: str, layout: Layout, kinds: Sequence[Processor]) -> Variant:
    steps = tuple(_steps(definition.build(kind.target, layout)) for kind in kinds)
    return Variant(name, layout.constants, layout.facts, layout.most, layout.empty, (), steps)


def _steps(made: Build) -> tuple[Step, ...]:
    found: list[Step] = []
    for kernel, source, scans in zip(made.kernels, made.sources, made.scans, strict=True):
        entry = None
        if made.target.kind == "cuda":  # one text for all sizes: wide indices, and blocks that take several turns
            source = emit_cuda(kernel, made.target, 64, large_grid=True)
        else:
            entry = entry_point(source)
        temporaries = tuple(buffer for buffer in kernel.buffers if buffer.scope == "global")
        found.append(Step(launch_info(kernel), entry, source, scans, temporaries))
    return tuple(found)
