"""A def whose ranks and element types are known, and its code: what every call goes through.

Comes in: the analysis of a def, options, arguments. Goes out: results. Code is made at the first call of a layout class of the
arguments on an engine, and serves all sizes after that.

Worked example: two calls of a matrix product with contiguous arrays of any sizes make one `BoundKernel`; a call with a transposed
argument makes a second one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from tc_jupyter.codegen import KernelSource
from tc_jupyter.diagnostics import CallError, CompileError, Diagnostic, codes
from tc_jupyter.gradient import Ties
from tc_jupyter.program import Expr, Program, Signature, Size, Specialized, int64, rewrite
from tc_jupyter.ranges import Name, Ranges, SizeExpr, from_expr, of_atom, to_python
from tc_jupyter.ranges.at_call import at_sizes
from tc_jupyter.ranges.size_expr import Opaque
from tc_jupyter.runtime import autograd, cpu, cuda, jit, nvrtc
from tc_jupyter.runtime.alternating import Alternating
from tc_jupyter.runtime.arguments import (
    Parameter,
    call_error,
    fail,
    parameters_of,
    positional,
    read_outputs,
    signature_text,
    solved_sizes,
)
from tc_jupyter.runtime.arrays import ArrayView
from tc_jupyter.runtime.cache import DiskCache
from tc_jupyter.runtime.call_recipe import Found, Likeness, Recipe, likeness, recipe
from tc_jupyter.runtime.cubin import sass
from tc_jupyter.runtime.dispatch import Dispatcher
from tc_jupyter.runtime.family import Family, SizeClass, SizeFacts
from tc_jupyter.runtime.forks import MAKING
from tc_jupyter.runtime.kernel import (
    BoundKernel,
    Inputs,
    Layout,
    Numbers,
    bind_kernel,
    layout_of,
    needs_wide_indices,
    read_inputs,
    resolve_overlap,
    root_of,
    why_elsewhere,
)
from tc_jupyter.runtime.launch import CpuRunner, Runner, interpreter_runner, launch_info
from tc_jupyter.runtime.pairs import Pairs, in_pairs
from tc_jupyter.runtime.recent_sizes import RecentCalls
from tc_jupyter.runtime.traceable import Lean, Outlines
from tc_jupyter.schedule import (
    INTERPRETER,
    Schedule,
    SizeClasses,
    Step,
    Target,
    row_class,
    schedule_of,
)

from .analysis import analyze
from .build import Build, build
from .call_numbers import CallNumbers
from .derivatives import Derivation, Kind, checked, derivation, differentiable, remembering, worth_saving
from .function_analysis import FunctionAnalysis
from .stored_builds import KernelPlan, identity, keep, kept, made_runners, plan_key, plans_of, stored_runners


@dataclass(frozen=True, slots=True)
class Specialization:
    """For which calls a `%%sac` function is the def, and what they must fulfil.

    Attributes:
        signature: ranks and types of the arguments; extents and elements where these decide what is computed.
        found: the program with the conditions on sizes and scalars.
        extents: sizes in these that only range inference knows, of what a `%%tc` def computes.
    """

    signature: Signature
    found: Specialized
    extents: Mapping[str, SizeExpr]

    def wrong(self, sizes: Mapping[str, int], scalars: Mapping[str, int | float | bool]) -> Diagnostic | None:
        """The first condition that a call breaks."""
        return self.found.verify({**sizes, **{k: e.evaluate(sizes) for k, e in self.extents.items()}}, scalars)


_MOST_RECIPES = 256
"""Calls that a function remembers; it forgets all when there are more."""

ROW_MAJOR = Layout(frozenset(), 32)
"""Contiguous arrays, small enough for 32-bit indices."""


@dataclass(frozen=True, slots=True)
class Derivative:
    """Of which function another one is the derivative, and which: its text is made anew when that function is compiled again.

    Attributes:
        signature: for which calls of a `%%sac` function.
        kind, wrt, save, ties: as those of `Definition.derived`.
    """

    function: Any
    signature: Signature | None
    kind: Kind
    wrt: tuple[str, ...] | None
    save: tuple[str, ...]
    ties: Ties


@dataclass(frozen=True, slots=True)
class Options:
    """How a text is compiled; with the text it is all that pickling keeps.

    Attributes:
        specialize: sizes that are fixed on purpose, or `True` for all of them, per call.
        tf32: matrix products of `float32` may round their operands to TF32 on a GPU.
        rule: the function that computes the derivatives, instead of the derived one.
        follows: a function of `known` that is defined again is called anew, as Python does (cells of a notebook).
        fixed: those of `known` that are not: they are of files that the text uses.
        file: the path of the file that the text is of.
        derivative: what the text was derived from, which it follows.
    """

    text: str
    language: str = "tc"
    target: str | None = None
    strict: bool = False
    allow: tuple[str, ...] = ()
    check: str = "all"
    specialize: Mapping[str, int] | bool | None = None
    known: Mapping[str, Any] | None = None
    name: str = "cell"
    tf32: bool = False
    follows: bool = False
    rule: Any = None
    fixed: frozenset[str] = frozenset()
    file: str = ""
    derivative: Derivative | None = None


class Definition:
    """A def whose ranks and element types are known: reads arguments, finds or makes the code, runs it."""

    def __init__(
        self,
        found: FunctionAnalysis,
        options: Options,
        steps: tuple[Step, ...] | None = None,
        special: Specialization | None = None,
        by_class: bool = False,
    ) -> None:
        """`special`: of which calls of a `%%sac` function. `by_class`: code for `steps` assumes what sizes of a call tell, too."""
        self.found = found
        self.program = found.program
        self.options = options
        self.steps = steps
        self.by_class = by_class or steps is None
        self.written = parameters_of(self.program)
        self.parameters = tuple(parameter.stored for parameter in self.written)
        self.names = tuple(parameter.name for parameter in self.parameters)
        self.pairs = _pairs(self.program, self.written)
        self.text = signature_text(self.program)
        self.numbers = CallNumbers(found)
        self.special = special
        self.checks = () if special is None else special.found.checks
        self.accumulates = any(statement.accumulate and statement.initialize for statement in self.program.statements)
        sizes = [dim for parameter in self.parameters for dim in parameter.dims if isinstance(dim, str)]
        self.solved = solved_sizes(self.program)
        self.recent = RecentCalls(tuple(dict.fromkeys([*sizes, *(each.name for each in self.solved)])))
        self._ready: dict[tuple[str, Layout], BoundKernel] = {}
        self._classes: dict[str, SizeClasses] = {}
        self._floats = frozenset(k for k, each in enumerate(self.parameters) if not each.rank and each.dtype.is_float)
        self._recipes: tuple[dict[Likeness, Recipe | None], dict[Likeness, Recipe | None]] = ({}, {})
        self._families: dict[bool, Family | None] = {}
        self._derived: dict[
            tuple[Kind, tuple[str, ...] | None, tuple[str, ...], bool, Ties], tuple[Definition, Derivation]
        ] = {}
        self._backwards: dict[tuple[tuple[int, ...], bool], autograd.Backward] = {}
        self.rule: Definition | None = None if options.rule is None else options.rule.definition()
        self._lock = threading.Lock()
        chosen = f"{options.target} {options.check} {options.specialize} {options.tf32}"
        self.key = autograd.known(self, identity(self.program, chosen, "" if self.rule is None else self.rule.key))

    @property
    def name(self) -> str:
        """The name of the def as written."""
        return self.program.name

    def positional(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the signature.

        Raises:
            CallError: TC606.
        """
        program = self.program
        return positional(self.names, args, named, self.text, program.name, program.source, program.span)

    def inputs(self, values: Sequence[object]) -> Inputs:
        """All arguments, checked and read.

        Raises:
            CallError: TC605 to TC609.
        """
        return read_inputs(self.program, self.written, self.positional(values, {}))

    def sizes_by_name(self, given: Mapping[str, object]) -> dict[str, int]:
        """The values of all sizes and integer scalars, which are given by name.

        Raises:
            CallError: TC614, one is not given.
            TypeError, ValueError: a value is no size, or there is no such size.
        """
        program = self.program
        found = program.numbers(given)
        for name in self.numbers.numbers.names:
            if name not in found:
                known = ", ".join(f"`{each}`" for each in (*program.sizes, *program.integer_scalars))
                help = f"the sizes are {known}: give all of them, or the arrays of a call"
                fail(codes.SIZE_MISSING, f"`{name}` is not given", program.source, program.span, help=help)
        return found

    def verify(self, inputs: Inputs) -> None:
        """Look at what is asked of calls beside the conditions of the def.

        Raises:
            CallError: it does not hold.
        """
        wrong = self.special.wrong(inputs.sizes, inputs.scalars) if self.special is not None and self.checks else None
        if wrong is not None:
            raise call_error(wrong, self.program.source)

    def call(self, values: Sequence[object], out: object) -> Any:
        """One call by the general path: any array library, any layout. Its recipe serves calls like it.

        Raises:
            CallError: the arguments do not fit.
        """
        inputs = read_inputs(self.program, self.written, values)
        self.verify(inputs)
        numbers = self.numbers_at(inputs.sizes)
        outputs: dict[str, ArrayView] = {}
        if out is not None:
            outputs = self._outputs(out, inputs, numbers)
            inputs = resolve_overlap(self.program, inputs, outputs, numbers.origins)
        engine = self._engine(inputs.device)
        layout = self.layout(inputs, outputs, numbers, engine)
        try:
            bound = self.ready(engine, layout)
            views, storage = bound.run(inputs, numbers, outputs, self.options.check)
        except nvrtc.BackendError as error:
            raise call_error(error.diagnostic, self.program.source) from error
        noted = tuple([inputs.sizes[name] for name in self.recent.names])
        if noted != self.recent.last:
            self.recent.note(noted)
        given: Sequence[Any] = out if isinstance(out, (tuple, list)) else () if out is None else (out,)
        every: Sequence[Any] | None = (*values, *given)
        every = every if self.pairs is None else self.pairs.split(every)
        if every is not None:
            self._keep(every, out is not None, Found(bound, inputs, numbers, storage, noted))
        if out is not None:
            return out
        results = tuple(inputs.library.finish(view) for view in views)
        return results[0] if len(results) == 1 else results

    def layout(self, inputs: Inputs, outputs: Mapping[str, ArrayView], numbers: Numbers, engine: str) -> Layout:
        """The layout class of a call: all that its code depends on beside the def.

        Raises:
            CallError: TC605, a size differs from the one that `specialize=` fixed.
        """
        # index arithmetic of the other engines is always 64 bits wide
        layout = layout_of(inputs, outputs, numbers.shapes, self.program, None if engine == "cuda" else True)
        accumulate = bool(outputs) and self.accumulates
        return self.sized(layout.strided, layout.index_bits, inputs.sizes, engine, accumulate, inputs)

    def layout_at(self, sizes: Mapping[str, int], numbers: Numbers, engine: str) -> Layout:
        """The layout class of a call with row-major arrays of these sizes.

        Raises:
            CallError: TC605, a size differs from the one that `specialize=` fixed.
        """
        shapes = {**self._input_shapes(sizes), **numbers.shapes}
        wide = engine != "cuda" or needs_wide_indices(shapes, sizes, self.program)
        return self.sized(frozenset(), 64 if wide else 32, sizes, engine)

    def _input_shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        return {
            name: tuple(from_expr(dim).evaluate(sizes) for dim in self.program.tensor(name).dims or ())
            for name in self.names
        }

    def sized(
        self,
        strided: frozenset[str],
        bits: int,
        sizes: Mapping[str, int],
        engine: str,
        accumulate: bool = False,
        inputs: Inputs | None = None,
    ) -> Layout:
        """The layout class of a call with these sizes, and index tensors if they are at hand.

        Raises:
            CallError: TC605, a size differs from the one that `specialize=` fixed.
        """
        constants, facts, passed = self.size_class(sizes, engine, inputs)
        if self._is_empty(sizes):
            # other code relies on sizes of 1 and more: a range may be longer without
            gone = tuple((name, 0) for name in sorted(self.shortening) if sizes.get(name) == 0)
            return Layout(strided, bits, accumulate, constants=gone, empty=True)
        return Layout(strided, bits, accumulate, constants, facts, most=self.most(sizes, engine), passed=passed)

    @cached_property
    def shortening(self) -> frozenset[str]:
        """Sizes that make a range shorter: `K` of `0 <= i < N - K + 1`."""
        return frozenset(
            name
            for extent in self._extents()
            for product, weight in extent.ordered()
            if weight < 0 or not all(isinstance(atom, Name) for atom in product)
            for atom in product
            for name in of_atom(atom).names
        )

    @cached_property
    def lengths(self) -> tuple[SizeExpr, ...]:
        """The lengths of loops, where sizes alone decide: if one is 0, the loops around it are not begun.

        Those that are positive wherever sizes are have been left out.
        """
        known = {
            *self.program.sizes,
            *(each.name for each in self.parameters if not each.rank and each.dtype.is_integer),
        }
        whole = [each for each in dict.fromkeys(self._extents()) if not self._follows_sizes(each)]
        lengths = [each for each in whole if each.names and each.names <= known]
        return tuple(each for each in lengths if not any(isinstance(atom, Opaque) for atom in each.atoms()))

    def _extents(self) -> list[SizeExpr]:
        """How long the range of each index is, where that is known."""
        indices = (index for found in self.found.ranges.indices.values() for index in found)
        return [index.extent for index in indices if index.lower is not None and index.upper is not None]

    def _follows_sizes(self, extent: SizeExpr) -> bool:
        """Whether a length is a sum of sizes, and of a number that is not negative."""
        sizes = self.program.sizes
        plain = all(
            weight > 0 and all(isinstance(atom, Name) and atom.name in sizes for atom in product)
            for product, weight in extent.ordered()
        )
        return plain and extent.offset >= 0

    def _engine(self, device: str) -> str:
        """The engine for arrays on a device.

        Raises:
            CallError: TC609, the engine that was asked for cannot reach them.
        """
        engine = engine_of(self.options.target, device)
        if engine != "cuda" and device != "cpu":
            message = f"the arrays are on `{device}`, and `target={engine!r}` works in the memory of the host"
            help = "copy them to the host, or compile with `target=None`"
            fail(codes.ARGUMENT_DEVICE, message, self.program.source, self.program.span, help=help)
        return engine

    def numbers_at(self, sizes: Mapping[str, int]) -> Numbers:
        """Shapes and extents at the sizes of a call.

        Raises:
            CallError: TC601 to TC603, TC605.
        """
        numbers = self.numbers.bind(sizes, self.options.check != "none")
        if isinstance(numbers, Diagnostic):
            raise call_error(numbers, self.program.source)
        return numbers

    def size_class(self, sizes: Mapping[str, int], engine: str, inputs: Inputs | None = None) -> SizeClass:
        """What the code of this call assumes of its sizes: constants, facts of others, and the checks that pass."""
        checked = self.options.check == "all" and engine != "interpreter"
        return (*self.facts(sizes, engine), self.numbers.passed(sizes, inputs) if checked else ())

    def facts(self, sizes: Mapping[str, int], engine: str) -> SizeFacts:
        """The sizes for which the code of this call is made, and what it relies on of others."""
        if self.options.specialize:
            return self._constants(sizes), ()
        if not self.by_class or engine == "interpreter":
            return (), ()
        classes = self._classes.get(engine)
        if classes is None:
            classes = self._classes[engine] = SizeClasses(self.program, self.found.ranges, engine)
        return classes(sizes)

    def most(self, sizes: Mapping[str, int], engine: str) -> tuple[tuple[str, int], ...]:
        """Sizes that no call of the class of this one exceeds; only code for a GPU depends on them."""
        if engine != "cuda" or self.options.specialize or not self.by_class:
            return ()
        return row_class(self.program, self.found.ranges, sizes)

    def _constants(self, sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """The sizes that the code of this call is made for.

        Raises:
            CallError: TC605, a size differs from the one that `specialize=` fixed.
        """
        wanted = self.options.specialize
        if not wanted:
            return ()
        if wanted is True:
            return tuple((name, sizes[name]) for name in self.program.sizes if name in sizes)
        for name, value in wanted.items():
            if sizes.get(name, value) != value:
                message = f"size `{name}` is fixed to {value} by `specialize=`; {sizes[name]} came"
                fail(codes.SIZE_CONFLICT, message, self.program.source, self.program.span)
        return tuple(sorted((name, value) for name, value in wanted.items() if name in self.program.sizes))

    def _outputs(self, out: object, inputs: Inputs, numbers: Numbers) -> dict[str, ArrayView]:
        names = self.program.results
        shapes = [numbers.shapes[name][: self.program.tensor(name).written_rank] for name in names]
        results = [_result(self.program, name, shape) for name, shape in zip(names, shapes, strict=True)]
        views = read_outputs(out, results, shapes, inputs.device, self.program)
        return {name: in_pairs(view) for name, view in zip(names, views, strict=True)}

    def ready(self, engine: str, layout: Layout) -> BoundKernel:
        """The code for a layout class, made at most once.

        Raises:
            CompileError, CallError: the engine cannot run this def.
        """
        found = self._ready.get((engine, layout))
        if found is not None:
            return found
        with MAKING, self._lock:
            found = self._ready.get((engine, layout))
            if found is None:
                found = self._make(engine, layout)
                self._ready[engine, layout] = found
            return found

    def _make(self, engine: str, layout: Layout) -> BoundKernel:
        target = target_of(engine)
        if engine == "cpu":
            plans, runners = self._cpu_code(target, layout)
            infos, scans = [plan.info for plan in plans], [plan.scans for plan in plans]
        else:
            made = self.build(target, layout)
            infos, scans = list(map(launch_info, made.kernels)), made.scans
            runners = load_runners(engine, made)
        return bind_kernel(self.program, self.numbers, infos, runners, layout, engine, scans)

    def _cpu_code(self, target: Target, layout: Layout) -> tuple[Sequence[KernelPlan], Sequence[CpuRunner]]:
        """Code for the CPU: from the cache where it is there whole, else from a build, which the cache then keeps."""
        store = DiskCache.default()
        key = plan_key(self.program, layout, target, self.steps, self.options.check == "all") if store.usable() else ""
        plans = kept(key, store) if key else None
        runners = None if plans is None else stored_runners(plans, store)
        if plans is not None and runners is not None:
            return plans, runners
        with cpu.ahead(target) as ahead:
            made = self.build(target, layout, ahead.begin)
            plans = plans_of(made)
            runners = made_runners(made, plans, store, ahead)
        if key:
            keep(key, plans, store)
        return plans, runners

    def dispatcher(self, general: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The function of positional arguments that a call runs; `general` is always right."""
        always = general or self.general
        return self._dispatched(lambda values: always(*values), False, self.recorded).function

    def general(self, *args: Any) -> Any:
        """A call with positional arguments only, by the general path."""
        return self.call(self.positional(args, {}), None)

    def writer(self, general: Callable[[Sequence[Any], object], Any] | None = None) -> Callable[..., Any]:
        """As `dispatcher`, for calls with `out=`: a function of the positional arguments and that object, which it returns."""
        always = general or self.general_into
        read, written = len(self.parameters), len(self.program.results)
        short = self._dispatched(lambda values: always(values[:read], values[read:]), True, None).function

        def write(args: Sequence[Any], out: Any) -> Any:
            if isinstance(out, (tuple, list)):
                given: Sequence[Any] = out
                if len(args) != read or len(given) != written:
                    return always(args, out)
                short(*args, *given)
            elif len(args) == read and written == 1:
                short(*args, out)
            else:
                return always(args, out)
            return out

        return write

    def general_into(self, args: Sequence[Any], out: object) -> Any:
        """A call with positional arguments and `out=`, by the general path."""
        return self.call(self.positional(args, {}), out)

    @cached_property
    def _unrecorded(self) -> Dispatcher:
        """Calls that nobody records."""
        return self._dispatched(lambda args: self.general(*args), False, None)

    def _dispatched(
        self, general: Callable[[tuple[Any, ...]], Any], into: bool, record: Callable[[tuple[Any, ...]], Any] | None
    ) -> Dispatcher:
        results = tuple(self.program.tensor(name).dtype for name in self.program.results)
        on_cpu = not self.checks and self.options.target in (None, "cpu")
        known = self._recipes[into]
        recipes = known, partial(self._resized, into)
        calls = self.recent, self._floats, on_cpu, into, record, self.pairs
        return Dispatcher(self.parameters, results, *recipes, general, *calls)

    # derivatives -----------------------------------------------------------------------------------------------------------------

    def derived(
        self,
        kind: Kind,
        wrt: str | Iterable[str] | None = None,
        save: str | Iterable[str] = (),
        ties: Ties = "first",
    ) -> Definition:
        """The def of derivatives; the same one each time.

        Raises:
            CompileError: TC250, there is none.
            CallError: TC606, a name is none of a parameter of floats, of a result or of a temporary.
        """
        wrt, save = checked(self.program, wrt, save)
        if self.rule is not None and kind == "vjp" and not save and wrt in (None, differentiable(self.program)):
            return self.rule
        return self._derivation(kind, wrt, save, lean=False, ties=ties)[0]

    def _derivation(
        self, kind: Kind, wrt: Sequence[str] | None, save: Sequence[str], lean: bool, ties: Ties = "first"
    ) -> tuple[Definition, Derivation]:
        """A def that is derived from this one, and what it takes; the same one each time."""
        key = kind, None if wrt is None else tuple(wrt), tuple(save), lean, ties
        found = self._derived.get(key)
        if found is None:
            with MAKING:
                made = derivation(self.program, self.found.ranges, kind, wrt, save, lean, ties)
                found = self._derived[key] = self._about(made), made
        return found

    def _about(self, made: Derivation) -> Definition:
        """The def of a text that was derived."""
        options = replace(
            self.options,
            text=made.text,
            language="tc",
            known=None,
            specialize=None,
            strict=False,
            follows=False,
            rule=None,
            derivative=None,
        )
        analysis = analyze(made.text)
        if not analysis.ok:  # a limit of the analysis, as TC508: the text is longer than that of this def
            raise CompileError(analysis.diagnostics, analysis.source, analysis.render())
        (known,) = analysis.functions.values()
        return Definition(known, options)

    def lean(self, kind: Kind, wrt: Sequence[str], save: Sequence[str] = ()) -> Lean:
        """A derived def without parameters that nothing reads."""
        found, made = self._derivation(kind, wrt, save, lean=True)
        program = self.program
        reads = frozenset(map(program.parameters.index, made.reads & set(program.parameters)))
        return Lean(
            found, tuple(map(program.parameters.index, made.takes)), tuple(map(program.results.index, save)), reads
        )

    def recorded(self, args: tuple[Any, ...]) -> Any:
        """A call that PyTorch records or JAX traces; `None` where there is nothing to record, or no derivative."""
        if autograd.is_traced_by_jax(args):
            from tc_jupyter.runtime import jax_op  # noqa: PLC0415  (loads JAX)

            return jax_op.traced(self, args)
        about = self._recordable
        if about is None or len(args) != len(self.parameters):
            return None
        return autograd.record(about, args)

    @cached_property
    def _recordable(self) -> autograd.Recordable | None:
        """How PyTorch records a call; `None` without a derivative."""
        program = self.program
        names = differentiable(program)
        results = self.float_results
        if not names or not any(results):
            return None
        try:
            self.derived("vjp")
        except CompileError:
            return None
        floats = tuple(program.parameters.index(name) for name in names)
        return autograd.Recordable(self._lent, self._outlines_at, self._backward, self._forward, floats, results)

    def _lent(self, *args: Any) -> Any:
        """A call that nobody records, whose results are no NumPy arrays."""
        return self._unrecorded.lent(args)

    def _backward(self, places: tuple[int, ...], remembers: bool) -> autograd.Backward:
        """How the derivatives by some parameters are computed; `remembers`: by a call that keeps more than its results."""
        found = self._backwards.get((places, remembers))
        if found is None:
            found = self._remembering(places) if remembers else None
            if found is None:
                back, by = self.backward_of(places)
                found = autograd.Backward(back.about.dispatcher(), back.takes, back.saved, by)
            self._backwards[places, remembers] = found
        return found

    def _remembering(self, places: tuple[int, ...]) -> autograd.Backward | None:
        """The same by a call of a def with more results; `None` where there is nothing more to keep, or the loops are given."""
        program = self.program
        if self.rule is not None or self.steps is not None or self.checks:
            return None
        try:
            with MAKING:
                found = remembering(program, self.found.ranges, tuple(program.parameters[place] for place in places))
                if found is None:
                    return None
                call, back = map(self._about, found)
        except CompileError:  # a limit that the def alone is within
            return None
        takes, saved = map(program.parameters.index, found[1].takes), map(program.results.index, found[1].saved)
        again = self._backward(places, False)

        def forward(*args: Any) -> Any:
            try:
                return call._lent(*args)
            except CallError:
                self._lent(*args)  # says the same of the def as it was written
                raise

        return autograd.Backward(back.dispatcher(), tuple(takes), tuple(saved), places, forward, again)

    # inside `torch.compile` and what JAX traces

    def run(self, args: Sequence[Any]) -> Sequence[Any]:
        """The results of a call that nobody records."""
        found = self._unrecorded.function(*args)
        return found if isinstance(found, tuple) else (found,)

    def run_into(self, args: Sequence[Any], results: Sequence[Any]) -> None:
        """The same into arrays, whose old elements do not matter; those of other types get values that are cast."""
        wanted = [self.program.tensor(name).element.value for name in self.program.results]
        if not self.accumulates and all(array.dtype.name == name for array, name in zip(results, wanted, strict=True)):
            self._writer(args, tuple(results))
            return
        for own, found in zip(results, self.run(args), strict=True):
            own[...] = found

    @cached_property
    def _writer(self) -> Callable[..., Any]:
        return self.writer()

    @property
    def float_results(self) -> tuple[bool, ...]:
        """Whether each result is a float."""
        return tuple(self.program.tensor(name).dtype.is_float for name in self.program.results)

    def backward_of(self, places: tuple[int, ...]) -> tuple[Lean, tuple[int, ...]]:
        """The def of the derivatives, and the places of the parameters by which it derives.

        A rule of the user derives by all parameters.
        """
        program = self.program
        if self.rule is not None:
            every = tuple(range(len(program.parameters)))
            by = tuple(map(program.parameters.index, differentiable(program)))
            return Lean(self.rule, every, (), frozenset(every)), by
        names = tuple(program.parameters[place] for place in places)
        return self.lean("vjp", names, worth_saving(program, self.found.ranges, names)), places

    def outlines(self, args: Sequence[Any]) -> Outlines:
        """Shape and type of each result, for arguments of which shapes and numbers alone are known."""
        program, values = self.program, dict[str, Any]()
        extents: dict[str, Any] = {}
        for name, value in zip(program.parameters, args, strict=True):
            dims = program.tensor(name).dims or ()
            extents[name] = getattr(value, "shape", ())
            values |= {dim.name: value.shape[k] for k, dim in enumerate(dims) if isinstance(dim, Size)}
            if name in program.integer_scalars:
                values[name] = value
        for each in self.solved:
            extent = extents[each.argument][each.axis]
            values[each.name] = (extent - each.rest.evaluate(values)) // each.factor.evaluate(values)
        shapes = {name: self.found.ranges.boxes[name].shape for name in program.results}
        tensors = map(program.tensor, program.results)
        return [
            (tuple(extent.evaluate(values) for extent in shapes[each.name][: each.written_rank]), each.element.value)
            for each in tensors
        ]

    def shapes_for(self, args: Sequence[Any]) -> Outlines:
        """Shape and type of each result, of arguments whose elements do not matter; checked, where all numbers are known.

        Raises:
            CallError: the arguments do not fit.
        """
        if not all(isinstance(value, np.ndarray | bool | int | float | complex) for value in args):
            return self.outlines(args)
        return self._outlines_at(args)

    def _outlines_at(self, args: Sequence[Any]) -> Outlines:
        """Shape and type of each result of a call, of which the sizes are checked and no element is looked at."""
        shapes = self.numbers_at(self.inputs(tuple(args)).sizes).shapes
        tensors = map(self.program.tensor, self.program.results)
        return [(tuple(shapes[each.name][: each.written_rank]), each.element.value) for each in tensors]

    @property
    def shaping(self) -> frozenset[int]:
        """Places of the numbers on which shapes depend."""
        program = self.program
        shapes = [self.found.ranges.boxes[name].shape for name in (*program.parameters, *program.results)]
        names = {name for shape in shapes for extent in shape for name in extent.names}
        return frozenset(map(program.parameters.index, names & set(program.integer_scalars)))

    def tangent_of(self, places: tuple[int, ...]) -> Lean:
        """The def of the derivatives of the results along some parameters."""
        names = tuple(self.program.parameters[place] for place in places)
        return self.lean("tangent", names, worth_saving(self.program, self.found.ranges, names))

    def batched(self, places: tuple[int, ...]) -> tuple[Definition, tuple[bool, ...]]:
        """The def for many calls, between which some arguments differ, and which results do.

        Raises:
            CallError: there is none.
        """
        many = tuple(self.program.parameters[place] for place in places)
        found, _ = self._derivation("batch", many, (), lean=False)
        pairs = zip(found.program.results, self.program.results, strict=True)
        return found, tuple(found.program.tensor(a).rank > self.program.tensor(b).rank for a, b in pairs)

    def _forward(self, places: tuple[int, ...]) -> Callable[..., Any]:
        """How the derivatives along some parameters are computed."""
        return self.derived("jvp", tuple(self.program.parameters[place] for place in places)).dispatcher()

    def _resized(self, into: bool, like: Likeness, values: Sequence[Any]) -> Recipe | None:
        """A recipe for a call that differs from others in sizes only."""
        if not self._ready:
            return None
        family = self._families[into] if into in self._families else self._new_family(into)
        if family is None:
            return None
        found = family.at(like, values)
        if found is not None:
            self._remember(like, into, found)
        return found

    def _new_family(self, into: bool) -> Family | None:
        family: Family | None = None
        if not self.checks and self._engine("cpu") == "cpu":
            own = [(place, each.name) for place, each in enumerate(self.parameters) if each.rank]
            same = self._same_places if into else frozenset[tuple[str, str]]()
            places = [frozenset(k for k, name in own if (name, result) in same) for result in self.program.results]
            family = Family(self, self.recent.names, places if into else None, self.options.check)
        self._families[into] = family
        return family

    def shapes_of(self, sizes: Mapping[str, int]) -> Sequence[tuple[int, ...]] | None:
        """The shapes of the results at the sizes of a call; `None` if something is wrong with them."""
        found = self.numbers.shapes(sizes, self.options.check != "none")
        return [found[0][place] for place in self._result_places] if isinstance(found, tuple) else None

    @cached_property
    def _result_places(self) -> tuple[int, ...]:
        return tuple(map(self.numbers.numbers.tensors.index, self.program.results))

    def extents_of(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Every size and extent by name."""
        return self.numbers.extents(sizes)

    def class_on_cpu(self, sizes: Mapping[str, int]) -> SizeClass | None:
        """The class of a call whose loops all have iterations; `None` for others."""
        return None if self._is_empty(sizes) else self.size_class(sizes, "cpu")

    def code_on_cpu(self, found: SizeClass, into: bool) -> BoundKernel | None:
        """The code for row-major arrays of a class, if it was made."""
        constants, facts, passed = found
        layout = Layout(frozenset(), 64, into and self.accumulates, constants, facts, passed=passed)
        return self._ready.get(("cpu", layout))

    def _is_empty(self, sizes: Mapping[str, int]) -> bool:
        """Whether a size is 0, or a loop has no iterations; an integer that is no size may be 0 like any other number."""
        none = any(sizes.get(name) == 0 for name in self.program.sizes)
        return none or any(extent.evaluate(sizes) <= 0 for extent in self.lengths)

    def _keep(self, values: Sequence[object], into: bool, found: Found) -> None:
        """Remember what a call found, from the second one of its kind on."""
        like, known = likeness(values, self._floats), self._recipes[into]
        if like is None or self.checks:
            return
        if like in known:
            same = self._same_places if into else frozenset[tuple[str, str]]()
            self._remember(like, into, recipe(found, self.parameters, values, same, self.options.check))
        else:
            self._remember(like, into, None)

    def _remember(self, like: Likeness, into: bool, found: Recipe | None) -> None:
        known = self._recipes[into]
        if len(known) >= _MOST_RECIPES and like not in known:
            known.clear()
        known[like] = found

    def alternating(self, even: Sequence[Any], odd: Sequence[Any]) -> Alternating | None:
        """The native loop of a call into arrays that was made before, with arguments and arrays of two calls in turns.

        `None` where there is none, or calls have to be looked at one by one.
        """
        like = likeness(even, self._floats)
        if like is None or like != likeness(odd, self._floats) or self.pairs is not None:
            return None
        found = self._recipes[True].get(like)
        return None if found is None else found.again(even, odd)

    @cached_property
    def _same_places(self) -> frozenset[tuple[str, str]]:
        """Pairs of a parameter and a result that may be the same array."""
        program, boxes = self.program, self.found.ranges.boxes
        return frozenset(
            (parameter.name, name)
            for parameter in self.parameters
            for name in program.results
            if parameter.rank
            and why_elsewhere(program, parameter.name, root_of(program, name)) is None
            and not any(to_python(start) != "0" for start in boxes[name].origin)
        )

    def build(self, target: Target, layout: Layout = ROW_MAJOR, ahead: Callable[[str], object] | None = None) -> Build:
        """Every stage of the back half for a target, without loading anything; `ahead` as in `build`."""
        program, ranges = self.with_constants(layout.constants)
        program = accumulating(program) if layout.accumulate else program
        target = replace(target, tf32=self.options.tf32)
        schedule = None if self.steps is None else self._replayed(program, ranges)
        checks = self.numbers if self.options.check == "all" else None
        return build(program, ranges, layout, target, schedule, checks, ahead)

    def with_constants(self, constants: Sequence[tuple[str, int]]) -> tuple[Program, Ranges]:
        """The program and its ranges with numbers in place of some sizes."""
        known = dict(constants)
        return with_constants(self.program, known), at_sizes(self.found.ranges, known)

    def schedule(self) -> Schedule:
        """The schedule of this def: its own steps on the default stages."""
        return self._replayed(self.program, self.found.ranges)

    def _replayed(self, program: Program, ranges: Ranges) -> Schedule:
        start = schedule_of(program, ranges)
        for step in self.steps or ():
            start = getattr(start, step.name)(*step.arguments, **dict(step.keywords))
        return start


def with_constants(program: Program, constants: Mapping[str, int]) -> Program:
    """The program with numbers in place of some sizes in its values and conditions; ranges stay as they were inferred."""
    if not constants:
        return program

    def rule(expr: Expr) -> Expr | None:
        return int64(constants[expr.name]) if isinstance(expr, Size) and expr.name in constants else None

    return replace(program, statements=tuple(s.mapped(lambda expr: rewrite(expr, rule)) for s in program.statements))


def accumulating(program: Program) -> Program:
    """The program whose non-`!` first statements combine onto the arrays of `out=`."""
    statements = tuple(
        replace(statement, initialize=False) if statement.accumulate else statement for statement in program.statements
    )
    return replace(program, statements=statements)


def _result(program: Program, name: str, shape: tuple[int, ...]) -> Parameter:
    tensor = program.tensor(name)
    return Parameter(name, tensor.element, tuple(shape), tensor.span)


def _pairs(program: Program, parameters: Sequence[Parameter]) -> Pairs | None:
    """The complex numbers of a def; `None` where there are none."""
    results = [program.tensor(name) for name in program.results]
    kinds = [(each.dtype, each.rank > 0) for each in parameters] + [(each.element, True) for each in results]
    found = Pairs(tuple(kinds), tuple(each.element for each in results))
    return found if any(dtype.is_complex for dtype, _ in kinds) else None


# engines -------------------------------------------------------------------------------------------------------------------------


def engine_of(target: str | None, device: str) -> str:
    """The engine of a call: what was asked for, else the GPU when there is one, else the CPU, else the interpreter."""
    if target in ("cuda", "interpreter"):
        return target
    if target is None and (device != "cpu" or gpu_available()):
        return "cuda"
    return "cpu" if jit.available() else "interpreter"


@cache
def gpu_available() -> bool:
    """Whether calls can run on a GPU: a driver, a device, CuPy and NVRTC."""
    return cuda.detect() is not None


def target_of(engine: str) -> Target:
    """The device of an engine as plain data."""
    if engine == "interpreter":
        return INTERPRETER
    return cpu.cpu_target() if engine == "cpu" else cuda.cuda_target()


def load_runners(engine: str, made: Build) -> tuple[Runner, ...]:
    """What runs the kernels of a build by the interpreter or on a GPU."""
    if engine == "interpreter":
        return tuple(interpreter_runner(kernel) for kernel in made.kernels)
    pairs = zip(made.kernels, made.sources, strict=True)
    return tuple(cuda.CudaRunner(kernel, source, made.target) for kernel, source in pairs)


def for_call(made: Build, sizes: Mapping[str, int], arrays: Mapping[str, ArrayView] | None = None) -> Build:
    """The build with the texts that a call at these sizes runs: a kernel for a GPU has variants."""
    if made.target.kind != "cuda":
        return made
    views = arrays or {}
    aligned = all(view.address % 16 == 0 for view in views.values())
    strides = {
        f"{buffer.name}.stride.{k}": stride // buffer.dtype.bytes
        for kernel in made.kernels
        for buffer in kernel.buffers
        if buffer.strided and buffer.name in views
        for k, stride in enumerate(views[buffer.name].strides)
    }
    numbers, cell = {**sizes, **strides}, made.program.source
    pairs = zip(made.kernels, made.sources, strict=True)
    return replace(made, sources=tuple(cuda.variant(*pair, made.target, numbers, aligned, cell) for pair in pairs))


def cpu_text(source: KernelSource, kind: str, target: Target) -> str:
    """LLVM IR, or the assembly that LLVM makes of it."""
    if kind == "llvm":
        return source.text
    return jit.assembly(source.text, cpu.options_of(target))


def cuda_text(source: KernelSource, kind: str, target: Target) -> str:
    """CUDA C++ as a person reads it, without directives that name lines of the cell; PTX or machine code of one kernel."""
    if kind == "cuda":
        return re.sub(r'^#line \d+ ".*"\n', "", source.text, flags=re.MULTILINE)
    compiled = cuda.compile_source(source, target)
    return compiled.ptx if kind == "ptx" else sass(compiled.cubin)
