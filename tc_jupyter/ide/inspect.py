"""The state of the defs of a notebook, generated text, loop nests with bounds.

Nothing is bound and no kernel is loaded: text is made without a device.

Worked example: `inspect("code", "def f(float(N) X) -> (Y) { Y(i) = X(i) }", name="f", form="loops")["text"]` begins with
`kernel f_0_Y(X[N], out Y[N])`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from tc_jupyter.compiler import FunctionAnalysis
from tc_jupyter.compiler.analysis_json import diagnostic_json
from tc_jupyter.compiler.call_numbers import CallNumbers
from tc_jupyter.compiler.definition import Options, engine_of, target_of
from tc_jupyter.diagnostics import CallError, CompileError, Diagnostic, Severity, shown_line
from tc_jupyter.function import SOURCE_KINDS, Function, OpenRanks, module_of
from tc_jupyter.program.check_tc import python_name
from tc_jupyter.runtime import doctor, nvrtc
from tc_jupyter.runtime.cubin import find_nvdisasm
from tc_jupyter.schedule import Bounds, Range, Schedule, default_schedule, required_sizes, schedule_of
from tc_jupyter.schedule.bounds import shown
from tc_jupyter.schedule.store import PRIMITIVES
from tc_jupyter.syntax import sac_to_text, sac_tree, tree
from tc_jupyter.syntax.printer import def_text

from .cell import Cell, Json, analysed, cell_of
from .hover import shape_of, signature_line
from .made_lines import Lines, lines_of, lines_of_locations
from .pieces import focus

LONGEST = 200_000
"""Code points of generated text that are returned."""

FORMS = SOURCE_KINDS

_SIZES = (64, 5, 3, 16, 2, 1, 8, 100)
"""Numbers to try for sizes that nobody gave."""
_MOST_TRIES = 400
_LARGEST_SIZE = 2**31 - 1


class UnknownForm(LookupError):
    """There is no such view, or no such form of generated text."""


def inspect(what: str, text: str = "", language: str = "tc", **request: Any) -> Json:
    """Answer one view.

    Args:
        what: `cells`, `code` or `schedule`.
        request: the arguments of `cells_view`, `code_view` or `schedule_view`.

    Raises:
        UnknownForm: there is no such view, or no such form.
    """
    match what:
        case "cells":
            return cells_view(**request)
        case "code":
            return code_view(text, language, **request)
        case "schedule":
            return schedule_view(text, language, **request)
        case _:
            raise UnknownForm(f"there is no view `{what[:40]}`; there are `cells`, `code` and `schedule`")


def defines(text: str, language: str = "tc") -> tuple[str, ...]:
    """The names of the defs of a text."""
    return tuple(item.name.name for item in cell_of(text, language).items)


def exports(text: str, language: str = "tc", known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the cells below may call of a text that was not run: programs by name; defs with mistakes are left out."""
    analysis = cell_of(text, language, known).analysis
    found: dict[str, Any] = {name: each.program for name, each in analysis.functions.items() if each.ok}
    opened = {name: group[0] for name, group in analysis.open_functions.items() if len(group) == 1}
    return (opened if analysis.ok else {}) | found


# cells ---------------------------------------------------------------------------------------------------------------------------


def cells_view(cells: Iterable[Mapping[str, Any]] = (), functions: Mapping[str, Any] | None = None) -> Json:
    """The state of every def of a notebook.

    Args:
        cells: per cell `cell`, `version`, `source`, `language`, and optionally `strict`, `allow`, `target` and `known`.
        functions: the functions of the namespace by name.
    """
    bound = {name: value for name, value in (functions or {}).items() if isinstance(value, Function)}
    rows: list[Json] = []
    named: set[str] = set()
    for given in cells:
        defs = _defs(given, bound)
        named |= {python_name(str(row["name"])) for row in defs}
        rows.append({"cell": given["cell"], "version": given["version"], "defs": defs})
    own = {name: value for name, value in bound.items() if name not in named and not name.startswith("_")}
    return {"what": "cells", "engine": engine(), "cells": rows, "others": [_other(*pair) for pair in own.items()]}


@cache
def engine() -> Json:
    """The engine of `target=None`: `{"target", "device", "note"}`. Looks for a driver once and starts no device."""
    line = doctor.engine(None)
    target, _, rest = line.partition(" (")
    device, _, note = rest.partition(")")
    return {"target": target, "device": device or target, "note": note.lstrip("; ") or None}


def _other(name: str, function: Function) -> Json:
    state = "compiled" if _engines(function) else "bound"
    return {
        "name": name,
        "language": function.options.language,
        "state": state,
        "target": _target(function),
        "signature": function.signature,
    }


def _target(function: Function) -> str:
    """The engine of a function: the one it has code for, else the one its next call would use."""
    return next(iter(_engines(function)), None) or function.options.target or str(engine()["target"])


def _engines(function: Function) -> tuple[str, ...]:
    """The engines that a function has machine code for."""
    definition: Any = function._definition  # pyright: ignore[reportPrivateUsage]  (a look, not a use)
    entries: dict[Any, Any] = dict(getattr(definition, "_entries", {}))  # of a function whose ranks are open
    known: list[Any] = [entry.definition for group in entries.values() for entry in list(group)] or [definition]
    engines = [key[0] for each in known for key in list(getattr(each, "_ready", ()))]
    return tuple(dict.fromkeys(engines))


def _calls(function: Function) -> tuple[str, ...]:
    """The sizes of the latest calls, as text."""
    definition: Any = function._definition  # pyright: ignore[reportPrivateUsage]  (a look, not a use)
    recent = getattr(definition if hasattr(definition, "recent") else definition.latest, "recent", None)
    return recent.texts() if recent is not None else ()


def _defs(given: Mapping[str, Any], bound: Mapping[str, Function]) -> list[Json]:
    text, language = str(given["source"]), str(given.get("language", "tc"))
    cell = cell_of(text, language, given.get("known"))
    strict, allow = bool(given.get("strict")), tuple(given.get("allow", ()))
    messages = analysed(text, language, strict, allow, cell.known).diagnostics
    rows: list[Json] = []
    for number, item in enumerate(cell.items):
        if not item.name.name or any(row["name"] == item.name.name for row in rows):
            continue
        told = [message for message in messages if item.span.start <= message.span.start < max(item.span.end, 1)]
        errors = sum(message.is_error for message in told)
        function = bound.get(python_name(item.name.name))
        state = "failing" if errors or item.broken else _state(cell, number, function, given, bound)
        rows.append({
            "name": item.name.name,
            "span": cell.span(item.name.span),
            "state": state,
            "target": None if function is None else _target(function),
            "errors": errors,
            "warnings": sum(message.severity is Severity.WARNING for message in told),
            "signature": signature_line(cell, number).removeprefix("def "),
            "shapes": _shapes(cell, number),
            "calls": [] if function is None or state in ("failing", "stale") else list(_calls(function)),
        })  # fmt: skip
    return rows


def _shapes(cell: Cell, owner: int) -> list[str]:
    """`A (N - K + 1)` per result."""
    found = cell.found(owner)
    if found is None:
        return []
    shapes = ((name, shape_of(found.program.tensor(name), found)) for name in found.program.results)
    return [f"{name} ({', '.join(shape)})" for name, shape in shapes if shape is not None]


def _state(
    cell: Cell, owner: int, function: Function | None, given: Mapping[str, Any], bound: Mapping[str, Function]
) -> str:
    if function is None:
        return "analysed"
    if not is_from(function, cell, owner) or not _same_options(function, given) or _calls_old(function, bound):
        return "stale"
    return "compiled" if _engines(function) else "bound"


def _same_options(function: Function, given: Mapping[str, Any]) -> bool:
    options = function.options
    strict = "strict" not in given or bool(given["strict"]) == options.strict
    allow = "allow" not in given or set(given["allow"]) == set(options.allow)
    return strict and allow and ("target" not in given or given["target"] == options.target)


def _calls_old(function: Function, bound: Mapping[str, Function]) -> bool:
    """Whether a function was made with one that the notebook has replaced since."""
    text = function.options.text
    own = set(defines(text, function.options.language))
    used = {name: value for name, value in (function.options.known or {}).items() if name not in own}
    now = {value.written_name: value for value in bound.values()} | dict(bound)
    words = set(re.findall(r"[^\W\d]\w*", text))
    return any(name in words and name in now and now[name] is not value for name, value in used.items())


def is_from(function: Function, cell: Cell, owner: int) -> bool:
    """Whether a function was made from this def: the same canonical text, also of the defs of the cell that it calls."""
    options = function.options
    if options.language != cell.language:
        return False
    if options.text == cell.text:
        return True
    other = cell_of(options.text, options.language)
    numbers = [n for n, item in enumerate(other.items) if item.name.name == function.written_name]
    if not numbers or function.written_name != cell.items[owner].name.name:
        return False
    return canonical(cell, owner) == canonical(other, numbers[0])


def canonical(cell: Cell, owner: int) -> frozenset[str]:
    """The canonical text of a def and of all defs of the cell that it calls."""
    numbers: dict[str, list[int]] = {}
    for number, item in enumerate(cell.items):
        numbers.setdefault(item.name.name, []).append(number)
    calls: dict[int, set[str]] = {}
    for place in cell.names.places:
        if place.kind == "def":
            calls.setdefault(place.owner, set()).add(place.name)
    todo, seen = list(numbers[cell.items[owner].name.name]), set[int]()
    while todo:
        number = todo.pop()
        if number not in seen:
            seen.add(number)
            todo += [callee for name in calls.get(number, ()) for callee in numbers.get(name, ())]
    return frozenset(_printed(cell.items[number]) for number in seen)


def _printed(item: tree.Def | sac_tree.SacFunction) -> str:
    return def_text(item) if isinstance(item, tree.Def) else sac_to_text(item)


# code ----------------------------------------------------------------------------------------------------------------------------


def code_view(
    text: str,
    language: str = "tc",
    name: str = "",
    form: str = "loops",
    sizes: Mapping[str, int] | None = None,
    functions: Mapping[str, Any] | None = None,
    known: Mapping[str, Any] | None = None,
) -> Json:
    """Generated text of a def.

    Args:
        form: one of `FORMS`.
        sizes: sizes by name, for forms that depend on them.
        functions: the functions of the namespace; one that was made from the same text is used, with its schedule.

    Raises:
        UnknownForm: there is no such form.
    """
    if form not in FORMS:
        raise UnknownForm(f"there is no form `{form[:40]}`; there are {', '.join(f'`{each}`' for each in FORMS)}")
    answer: Json = {"what": "code", "name": name, "form": form, "forms": _forms(language), "text": None, "lines": None}
    cell = cell_of(text, language, known)
    function = _function(cell, name, functions or {})
    if isinstance(function, str):
        return {**answer, "note": function}
    try:
        made = function.source(form, **dict(sizes or {}))
    except (OpenRanks, ValueError, RuntimeError, CompileError, KeyError) as problem:
        return {**answer, "note": _one_line(problem)}
    note = None
    if len(made) > LONGEST:
        made, note = made[:LONGEST], f"the text is cut after {LONGEST} of {len(made)} characters"
    lines = _lines_of(made, form, cell, name) if function.options.text == text else None
    return {**answer, "text": made, "lines": lines, "note": note}


def _forms(language: str) -> list[str]:
    """What can be made on this machine."""
    absent: set[str] = set() if language == "sac" else {"rewrites"}
    if nvrtc.available() is not None:
        absent |= {"ptx", "sass"}
    if find_nvdisasm() is None:
        absent.add("sass")
    return [form for form in FORMS if form not in absent]


def _one_line(problem: BaseException) -> str:
    if isinstance(problem, CallError):
        return problem.diagnostic.message
    if isinstance(problem, CompileError):
        return next((item.message for item in problem.diagnostics if item.is_error), str(problem))
    return (str(problem.args[0]) if problem.args else str(problem)).strip().split("\n")[0]


def _function(cell: Cell, name: str, functions: Mapping[str, Any]) -> Function | str:
    """The function that the namespace has from this text, else one made from the text; or why there is none."""
    owner = next((number for number, item in enumerate(cell.items) if item.name.name == name), None)
    if owner is None:
        return f"the text has no def `{name[:80]}`"
    bound = functions.get(python_name(name))
    if isinstance(bound, Function) and is_from(bound, cell, owner):
        return bound
    alone = _alone(cell, owner)
    if not alone.analysis.ok:
        errors = [message for message in alone.analysis.diagnostics if message.is_error]
        return f"`{name}` has a mistake: {errors[0].message}"
    options = Options(alone.text, alone.language, known=dict(alone.known.functions))
    return module_of(alone.analysis, options)[name]


def _alone(cell: Cell, owner: int) -> Cell:
    """The cell, or, if other defs have mistakes, the def with those it calls; offsets stay."""
    if cell.analysis.ok:
        return cell
    line = cell.source.position(cell.items[owner].span.start)[0]
    return cell_of(focus(cell.text, cell.language, line), cell.language, cell.known.functions)


def _lines_of(made: str, form: str, cell: Cell, name: str) -> Lines | None:
    """Per line of generated text the line of the cell, where that is known."""
    if form in ("ptx", "sass"):
        return lines_of_locations(made, cell.source.name)
    owner = next(number for number, item in enumerate(cell.items) if item.name.name == name)
    found = cell.found(owner)
    quoted: dict[str, int] = {}
    for statement in found.program.statements if found is not None else ():
        quoted[shown_line(statement.text)] = cell.source.position(statement.span.start)[0]
    lines = lines_of(made, quoted)
    return lines if any(line is not None for line in lines) else None


# schedules -----------------------------------------------------------------------------------------------------------------------


def schedule_view(
    text: str,
    language: str = "tc",
    name: str = "",
    sizes: Mapping[str, int] | None = None,
    schedule: Sequence[Mapping[str, Any]] | None = None,
    functions: Mapping[str, Any] | None = None,
    known: Mapping[str, Any] | None = None,
) -> Json:
    """The loop nest of a def with its bounds.

    Args:
        sizes: sizes by name; missing ones are chosen so that the conditions of the def hold.
        schedule: primitives to apply to the untransformed schedule; `None`: the schedule that a call would use.
    """
    answer: Json = {"what": "schedule", "name": name, "sizes": {}, "primitives": [], "loops": "", "stages": []}
    answer |= {"diagnostics": [], "note": None}
    cell = cell_of(text, language, known)
    function = _function(cell, name, functions or {})
    if isinstance(function, str):
        return {**answer, "note": function}
    found = _analysis(function, cell, name)
    if found is None:
        return {**answer, "note": f"the ranks of `{name}` are known at the call: call it first"}
    numbers = chosen_sizes(found, sizes or {})
    if isinstance(numbers, str):
        return {**answer, "note": numbers}
    made, told = _schedule(function, found, schedule)
    answer |= {"sizes": numbers, "primitives": [step.to_python()[1:] for step in made.steps]}
    answer["diagnostics"] = [diagnostic_json(message, cell.source) for message in told]
    try:
        # as for the conditions, integer scalars are 1
        bounds = made.bounds(**{name: numbers.get(name, 1) for name in required_sizes(made.graph)})
        return {**answer, "loops": bounds.loops(), "stages": _stages(bounds)}
    except CompileError as problem:
        answer["diagnostics"] += [diagnostic_json(message, cell.source) for message in problem.diagnostics]
        return answer


def _analysis(function: Function, cell: Cell, name: str) -> FunctionAnalysis | None:
    """What is known of a function; of one with open ranks, as it was last called, else for its declared ranks."""
    try:
        return function.analysis
    except OpenRanks:
        return cell.analysis.functions.get(name)


def _schedule(
    function: Function, found: FunctionAnalysis, wanted: Sequence[Mapping[str, Any]] | None
) -> tuple[Schedule, tuple[Diagnostic, ...]]:
    """The schedule to show, and what is wrong with the primitives that were asked for."""
    if wanted is None:
        steps = _own_steps(function)
        if steps is not None:
            return steps, ()
        target = target_of(engine_of(function.options.target, "cpu"))
        return default_schedule(found.program, found.ranges, target), ()
    made = schedule_of(found.program, found.ranges)
    for step in wanted:
        primitive = str(step.get("primitive"))
        if primitive not in PRIMITIVES:
            raise UnknownForm(f"there is no primitive `{primitive[:40]}`")
        try:
            arguments = [tuple(each) if isinstance(each, list) else each for each in step.get("arguments", ())]
            made = getattr(made, primitive)(*arguments, **dict(step.get("options") or {}))
        except CompileError as problem:
            return made, problem.diagnostics
    return made, ()


def _own_steps(function: Function) -> Schedule | None:
    """The schedule that `with_schedule` gave."""
    try:
        own = function.schedule()
    except OpenRanks:
        return None
    return own if own.steps else None


def chosen_sizes(found: FunctionAnalysis, given: Mapping[str, int]) -> dict[str, int] | str:
    """All sizes: the given ones, and numbers for the others with which the conditions hold; or why there are none."""
    program = found.program
    unknown = [name for name in given if name not in program.sizes]
    if unknown:
        return f"`{program.name}` has no size `{unknown[0][:80]}`"
    bad = [name for name, value in given.items() if not 0 <= value <= _LARGEST_SIZE]
    if bad:
        return f"size `{bad[0]}` is not between 0 and {_LARGEST_SIZE}"
    numbers = CallNumbers(found)
    scalars = {name: 1 for name in numbers.numbers.names if name not in program.sizes}
    missing = [name for name in program.sizes if name not in given]
    first: dict[str, int] | None = None
    for count, values in enumerate(product(_SIZES, repeat=len(missing))):
        if count >= _MOST_TRIES:
            break
        sizes = dict(given) | dict(zip(missing, values, strict=True))
        sizes = {name: sizes[name] for name in program.sizes}
        first = first or sizes
        if not isinstance(numbers.bind(sizes | scalars, True), Diagnostic):
            return sizes
    return first or {}


def _stages(bounds: Bounds) -> list[Json]:
    """Per stage the loops, outermost first, and how often its place is reached where that is a number."""
    rows: list[Json] = []
    extents: dict[tuple[str, str], Any] = {}
    for stage in bounds.symbolic.graph.stages:
        ranges = bounds[stage.name]
        extents |= {(stage.name, leaf): ranges[leaf].extent for leaf in stage.leaves}
        loops = [_loop(leaf, ranges[leaf], stage.annotation(leaf)) for leaf in stage.leaves]
        rows.append({"stage": stage.name, "attached": _attached(stage.attach), "visits": None, "loops": loops})
    for row in rows:
        visits = 1
        for loop in bounds.symbolic.graph.attach_path(row["stage"]):
            extent = extents.get((loop[0], loop[1]))
            visits = visits * extent if visits is not None and isinstance(extent, int) else None
        row["visits"] = visits
    return rows


def _loop(name: str, span: Range, annotation: str | None) -> Json:
    return {"name": name, "min": shown(span.min), "extent": shown(span.extent), "annotation": annotation}


def _attached(attach: Any) -> str | None:
    return None if attach.kind == "root" else f"{attach.stage}[{attach.axis}]"
