"""What a process of the search does: build the code of a candidate, run it once, time it beside the default schedule.

A job is pickled and sent to the processes of `workers`. Candidates are known by their number; number 0 is the default schedule.

Worked example: `job.build(3)` puts the code of candidate 3 into the cache on disk; `job.run_of(3)()` is one call of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tc_jupyter.compiler.definition import ROW_MAJOR, Definition, target_of
from tc_jupyter.runtime import cuda
from tc_jupyter.runtime.kernel import Layout
from tc_jupyter.schedule import Step


class Job(Protocol):
    """Candidates by number; whatever they do, they do it in a process of their own."""

    def build(self, number: int) -> str:
        """Make the code of a candidate; returns why it must be dropped, or nothing."""
        ...

    def run_of(self, number: int) -> Callable[[], Any]:
        """A call of a candidate without arguments; waits for the device."""
        ...

    def same(self, expected: Any, found: Any) -> bool:
        """Whether two results agree."""
        ...


@dataclass(frozen=True)
class ScheduleJob:
    """Schedules of one def on one engine.

    Attributes:
        definition_at: the def for some arguments; makes it from its text in every process.
        close: whether two results agree up to rounding.
        steps: the schedules.
        layout: constants and typical sizes that the code of such calls assumes.
    """

    definition_at: Callable[..., Definition]
    close: Callable[[Any, Any], bool]
    arrays: tuple[Any, ...]
    steps: tuple[tuple[Step, ...], ...]
    engine: str
    layout: Layout = ROW_MAJOR

    def _definition(self, number: int) -> Definition:
        found = self.definition_at(*self.arrays)
        return Definition(found.found, found.options, self.steps[number], found.special, by_class=True)

    def build(self, number: int) -> str:
        """Compile into the cache; on a GPU also look at the registers that did not suffice."""
        definition = self._definition(number)
        if self.engine != "cuda":
            definition.ready(self.engine, self.layout)
            return ""
        from tc_jupyter.compiler.gpu import resources  # noqa: PLC0415  (loads the simulator)

        made = definition.build(target_of(self.engine), self.layout)
        spilled = sum(found.spill_bytes for found in resources(made, {}))
        return f"spills {spilled} bytes of registers" if spilled and number else ""

    def run_of(self, number: int) -> Callable[[], Any]:
        """One call with the arguments of the search."""
        call = self._definition(number).dispatcher()
        if self.engine != "cuda":
            return lambda: call(*self.arrays)
        arrays = tuple(map(cuda.on_device, self.arrays))

        def run() -> Any:
            value = call(*arrays)
            cuda.synchronize()
            return value

        return run

    def same(self, expected: Any, found: Any) -> bool:
        """Equal up to rounding."""
        return self.close(expected, found)
