"""Many random programs by hand: `python -m tests.campaign --programs 50000 --log FILE`.

Every program is one that hypothesis draws from `tests.strategies.programs`, told apart by its text. Of each it is checked that

* the inferred ranges are those that a search on numbers finds, and the preconditions hold exactly where no access leaves its tensor;
* the CPU engine computes what the loop interpreter computes (which checks every subscript), or both refuse with the same code;
* the elements around every argument, and the arguments, are as they were.

With `--cells` the programs are those of `tests.tc_programs`, of every kind that the language page allows (or of the kinds that are named:
`--cells points orders`), and both engines are compared with `tests.tc_evaluator`; with `--simulate` as well, so is what a call launches
on a GPU. With `--gpu` the program's CUDA kernels are compiled for five architectures and simulated instead. With
`--simulate` alone programs of more kinds, of all element types and of sizes up to 70, are called through `f.simulate` and by the loop interpreter.
With `--gradients` derivatives of cells of these kinds are judged: backwards against forwards, and against differences.
With `--speed` programs of `float` are timed, on one thread, against their own loops in C; the log gets the slowest ones.

A failure is written to the log with the program, its sizes and the seed of its data, and the campaign goes on; what it found
is fixed and becomes an entry of FOUND in `tests/test_properties.py`. One seed gives 500 draws, so a campaign can be split and resumed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from tc_jupyter.runtime import threads
from tests.gradient.test_gradients import judged
from tests.simulator.test_programs import PROGRAMS, simulated, through_the_simulator
from tests.simulator.test_programs import SIZES as FEW_POINTS
from tests.speed import Speeds
from tests.strategies import programs, sizes
from tests.tc_programs import drawn, drawn_complex, drawn_left_sides, drawn_orders, drawn_points, judge
from tests.test_properties import compare

DRAWS = 500
"""Examples that hypothesis draws for one seed."""

CELLS = {
    "plain": drawn,
    "left": drawn_left_sides,
    "orders": drawn_orders,
    "complex": drawn_complex,
    "points": drawn_points,
}
"""Kinds of cells, and what draws one for a number."""

Check = Callable[[str, dict[str, int], int], str]
"""Checks one program at some sizes with data of a seed; says in a few words how far it came."""


class Campaign:
    """What was run so far; `log` gets one block per failure."""

    def __init__(
        self,
        log: Path,
        check: Check = compare,
        texts: st.SearchStrategy[str] | None = None,
        numbers: st.SearchStrategy[dict[str, int]] | None = None,
    ) -> None:
        self.log = log
        self.check = check
        self.texts = programs() if texts is None else texts
        self.numbers = sizes() if numbers is None else numbers
        self.seen: set[str] = set()
        self.count: Counter[str] = Counter()

    def one(self, text: str, numbers: dict[str, int], number: int) -> None:
        """Check a program that was not seen before."""
        if text in self.seen:
            return
        self.seen.add(text)
        try:
            outcome = self.check(text, numbers, number)
        except UnsatisfiedAssumption:
            self.count["refused when compiled"] += 1
            return
        except Exception:
            outcome = "FAILED"
            self.say(f"FAILED\n({text!r}, {numbers}, {number})\n{traceback.format_exc()}")
        self.count[outcome] += 1

    def compared(self) -> int:
        """Programs so far that were called and compared."""
        left_out = ("refused when compiled", "unclear")
        return sum(number for outcome, number in self.count.items() if not outcome.startswith(left_out))

    def say(self, line: str) -> None:
        """Write to the log."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def draw(self, number: int) -> None:
        """The programs of one seed."""

        @seed(number)
        @settings(
            max_examples=DRAWS,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
        )
        @given(self.texts, self.numbers, st.integers(0, 1000))
        def each(text: str, numbers: dict[str, int], data: int) -> None:
            self.one(text, numbers, data)

        each()

    def gradients(self, number: int) -> None:
        """Derivatives of the cells of one seed."""
        for place in range(number * DRAWS, (number + 1) * DRAWS):
            self.one(str(place), {}, place)

    def cells(self, number: int, kinds: Sequence[str]) -> None:
        """The cells of one seed, of each kind in turn."""
        for place in range(number * DRAWS, (number + 1) * DRAWS):
            self.one(*CELLS[kinds[place % len(kinds)]](place))


def _gradients(text: str, numbers: dict[str, int], number: int) -> str:
    """The check of the derivatives of the cell of a number."""
    del text, numbers
    return "judged" if judged((number,)) else "unclear"


def _on_five_architectures() -> Check:
    """The check of CUDA kernels: they compile for all architectures, and the simulator agrees with the loop interpreter."""
    sys.path.append(str(Path(__file__).parent / "codegen"))
    from tests.codegen.test_cuda_programs import on_five_architectures

    return on_five_architectures


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="many random programs: ranges, preconditions, both engines")
    parser.add_argument("--programs", type=int, default=50_000, help="how many different legal programs")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; it is counted up")
    parser.add_argument("--log", type=Path, default=Path("campaign.log"))
    parser.add_argument("--gpu", action="store_true", help="CUDA kernels: five architectures, and the simulator")
    parser.add_argument(
        "--cells", nargs="*", choices=[*CELLS], help="cells (of some kinds), compared with the evaluator"
    )
    parser.add_argument(
        "--gradients", action="store_true", help="derivatives of cells: backwards, forwards, differences"
    )
    parser.add_argument(
        "--simulate", action="store_true", help="what a call launches: the simulator and the interpreter"
    )
    parser.add_argument(
        "--speed", action="store_true", help="times over those of the loops of a C compiler, one thread"
    )
    options = parser.parse_args()
    speeds = Speeds()
    if options.speed:
        os.environ["OMP_NUM_THREADS"] = "1"
        threads.set_threads(1)
        campaign = Campaign(options.log, speeds.check, programs(dtypes=("float",)))
    elif options.gradients:
        campaign = Campaign(options.log, _gradients)
    elif options.cells is not None:
        campaign = Campaign(options.log, partial(judge, on_gpu=simulated) if options.simulate else judge)
    elif options.simulate:
        campaign = Campaign(options.log, through_the_simulator, PROGRAMS, FEW_POINTS)
    else:
        campaign = Campaign(options.log, _on_five_architectures() if options.gpu else compare)
    start, number = time.monotonic(), options.seed
    draw = campaign.draw if options.cells is None else partial(campaign.cells, kinds=options.cells or [*CELLS])
    draw = campaign.gradients if options.gradients else draw
    while campaign.compared() < options.programs:
        draw(number)
        number += 1
        campaign.say(
            f"seed {number - 1}: {campaign.compared()} programs {dict(campaign.count)} {time.monotonic() - start:.0f} s"
        )
        if options.speed:
            campaign.say(speeds.worst())


if __name__ == "__main__":
    main()
