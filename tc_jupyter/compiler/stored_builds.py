"""What the disk keeps of a build for the CPU: all that calls need, so that schedule, loops and text are not made again.

Comes in: the kernels and texts of a build. Goes out: a `KernelPlan` for each, which names its object in the same cache and holds
what a launch must know. Plans are found by the hash of all that a build depends on: the program, the class of the call, the
processor, the schedule, and this package. They are JSON of a few frozen types; nothing is unpickled. A plan that cannot be read,
or whose object is gone, counts as absent.

Worked example: `stored_runners(plans, store)`, with plans that another process has kept, makes the code of a matrix product
callable in one millisecond; from the program it takes more than ten.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from tc_jupyter.codegen import Argument
from tc_jupyter.diagnostics import Span
from tc_jupyter.loops import Buffer
from tc_jupyter.program import Binary, Cast, Const, DType, Program, Read, Select, Size, Unary
from tc_jupyter.runtime import cpu, jit
from tc_jupyter.runtime.ahead import Ahead
from tc_jupyter.runtime.cache import DiskCache, key_of
from tc_jupyter.runtime.kernel import Layout
from tc_jupyter.runtime.launch import (
    CpuRunner,
    EntryPoint,
    LaunchInfo,
    LoadedKernel,
    cpu_runner,
    entry_point,
    follow,
    launch_info,
)
from tc_jupyter.schedule import Step, Target, steps_to_data

from .build import Build, schedule_store, tuning_key

_FOLDERS = ("program", "ranges", "gradient", "schedule", "loops", "codegen", "compiler", "runtime")
"""Of the package: what code depends on beside the program."""


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """One kernel of a build.

    Attributes:
        scans: numbers of the checks on data that run before it.
        code: the key of its object in the cache, which several kernels of a build may have in common.
    """

    info: LaunchInfo
    entry: EntryPoint
    scans: tuple[int, ...]
    code: str


_NODES = (Const, Size, Read, Cast, Unary, Select, Binary)
_TYPES = {each.__name__: each for each in (KernelPlan, LaunchInfo, EntryPoint, Buffer, Argument, Span, *_NODES)}
_DTYPE = "DType"


def plans_of(made: Build) -> tuple[KernelPlan, ...]:
    """The plans of a build for the CPU."""
    options = cpu.options_of(made.target)
    return tuple(
        KernelPlan(launch_info(kernel), entry_point(source), scans, cpu.object_key(source, options))
        for kernel, source, scans in zip(made.kernels, made.sources, made.scans, strict=True)
    )


def made_runners(
    made: Build, plans: Sequence[KernelPlan], store: DiskCache, ahead: Ahead | None = None
) -> tuple[CpuRunner, ...]:
    """Runners of a build, which the cache then keeps.

    Args:
        ahead: what may have compiled some of its kernels already.

    Raises:
        BackendError: a library is missing.
    """
    codes: dict[str, LoadedKernel] = {}  # kernels that are equal but for names have one text
    for source in made.sources:
        if source.text not in codes:
            codes[source.text] = cpu.load(source, store, made.target, ahead)
    return tuple(
        cpu_runner(plan.info, plan.entry, codes[source.text]) for plan, source in zip(plans, made.sources, strict=True)
    )


def stored_runners(plans: Sequence[KernelPlan], store: DiskCache) -> tuple[CpuRunner, ...] | None:
    """Runners of code that is in the cache; `None` if an object is not.

    Raises:
        BackendError: a library is missing.
    """
    codes: dict[str, LoadedKernel] = {}
    for plan in plans:
        if plan.code not in codes:
            code = cpu.stored(plan.code, plan.entry, store)
            if code is None:
                return None
            codes[plan.code] = code
    try:
        for plan in plans:
            follow(plan.entry.tasks, [1] * len(codes[plan.code].positions))
        return tuple(cpu_runner(plan.info, plan.entry, codes[plan.code]) for plan in plans)
    except (LookupError, TypeError, ValueError):  # a plan that says what no launch means
        return None


# on disk -------------------------------------------------------------------------------------------------------------------------


def plan_key(program: Program, layout: Layout, target: Target, steps: tuple[Step, ...] | None, checked: bool) -> str:
    """What the plans of a build are found by; empty where that is not known.

    Args:
        steps: of a schedule that was asked for; `None`: the default schedule, or the one that `Function.tune` has stored.
        checked: whether data is checked.
    """
    if not _PACKAGE:
        return ""
    kind = "default" if steps is None else "given"
    if steps is None:
        tuned = schedule_store().best(tuning_key(program, target, layout))
        kind, steps = (kind, ()) if tuned is None else ("tuned", tuned.steps)
    try:
        schedule = json.dumps([kind, steps_to_data(steps)], default=operator.index)
    except TypeError:
        return ""
    values = [_text(program), _text(layout), _text(target), schedule, str(checked)]
    return key_of("plan", *values, jit.version(), jit.host_feature_string(), _PACKAGE)


def _text(value: Any) -> str:
    """All fields of a frozen value; the same in every process."""
    content = [getattr(value, each.name) for each in fields(value)]
    return repr([sorted(each) if isinstance(each, frozenset) else each for each in content])


def _package() -> str:
    """The file with the version of this package, and size and time of the others: they change while it is developed.

    Empty if they are no files.
    """
    root = Path(__file__).parent.parent
    try:
        version = (root / "__init__.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    files = sorted(path for folder in _FOLDERS for path in (root / folder).rglob("*.py"))
    found = [(str(path.relative_to(root)), path.stat()) for path in files]
    return repr([version, *((name, stat.st_size, stat.st_mtime_ns) for name, stat in found)])


_PACKAGE = _package()
"""Looked at when the package is imported: what is edited later is not what runs."""


def identity(program: Program, *others: str) -> str:
    """What a call and its derivatives depend on beside the arguments: the def, the other texts, and this package.

    PyTorch keeps compiled graphs on disk, which another process takes for equal defs alone.
    """
    return key_of("def", _text(program), *others, _PACKAGE)


def keep(key: str, plans: Sequence[KernelPlan], store: DiskCache) -> None:
    """Put plans into the cache."""
    store.put(key, json.dumps(to_data(tuple(plans)), default=operator.index).encode(), {"kind": "plan"})


def kept(key: str, store: DiskCache) -> tuple[KernelPlan, ...] | None:
    """Plans from the cache, or `None`."""
    entry = store.get(key)
    if entry is None:
        return None
    try:
        plans = from_data(json.loads(entry.data))
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return plans if _is(plans, tuple[KernelPlan, ...]) and plans else None


def to_data(value: Any) -> Any:
    """A value of the types above as JSON: objects are lists of their name and their fields, tuples have no name."""
    if isinstance(value, tuple):
        return [None, *map(to_data, value)]
    if isinstance(value, DType):
        return [_DTYPE, value.value]
    if type(value).__name__ in _TYPES:
        return [type(value).__name__, *[to_data(getattr(value, name)) for name in _names(type(value))]]
    return value


@lru_cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a type: `dataclasses.fields` looks at all of them again."""
    return tuple(each.name for each in fields(kind))


def from_data(data: Any) -> Any:
    """The value of `to_data`.

    Raises:
        LookupError, TypeError, ValueError: it is not one.
    """
    if not isinstance(data, list):
        return data
    name, *parts = data
    if name == _DTYPE:
        return DType(parts[0])
    values = tuple(map(from_data, parts))
    if name is None:
        return values
    kind = _TYPES[name]
    if len(values) != len(_names(kind)) or not all(map(_is, values, _hints(kind))):
        raise TypeError(f"not the fields of {name}")
    return kind(*values)


@lru_cache
def _hints(kind: Any) -> tuple[Any, ...]:
    """The types of the fields of a type."""
    hints = get_type_hints(kind)
    return tuple(hints[name] for name in _names(kind))


def _is(value: Any, hint: Any) -> bool:
    """Whether a value is of a type as fields have them: unions and tuples of plain types and frozen ones."""
    inner = get_args(hint)
    if get_origin(hint) is not tuple:
        return any(_is(value, each) for each in inner) if inner else type(value) is hint
    if not isinstance(value, tuple):
        return False
    if inner[1:] == (...,):
        return all(_is(each, inner[0]) for each in cast("tuple[Any, ...]", value))
    return len(cast("tuple[Any, ...]", value)) == len(inner) and all(map(_is, cast("tuple[Any, ...]", value), inner))
