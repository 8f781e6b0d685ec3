"""The command line of a simulation: seeds in several processes, up to the first violation."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Protocol, Self, TypeVar

from tests.seeds import first_seed
from tests.simulation import logs

_TOLD_EVERY = 1000
"""Runs after which it says how many there were."""


class Counters(Protocol):
    """What is counted of many runs.

    Attributes:
        runs: how many there were.
        faults: how many there were of each kind.
        violations: lines, each with the command that runs its seed again.
    """

    runs: int
    faults: Counter[str]
    violations: list[str]

    def merge(self, other: Self) -> None:
        """Count the runs of another one."""
        ...


Total = TypeVar("Total", bound=Counters)


@dataclass(frozen=True)
class Simulation(Generic[Total]):
    """What can be run from the command line.

    Attributes:
        program: how it is started: "python -m ...".
        nightly: runs without `--runs`, in the nightly run.
        at_once: seeds that a process runs before it tells of them.
        count: returns counters of nothing.
        run_all: runs seeds, up to the first violation.
        show: runs one seed, prints what it does, and returns the violations.
        write: writes a section of docs/reliability.md, given the first seed and the minutes.
    """

    program: str
    nightly: int
    at_once: int
    count: Callable[[], Total]
    run_all: Callable[[range], Total]
    show: Callable[[int], list[str]] = field(repr=False)
    write: Callable[[Total, int, float], None] = field(repr=False)

    def main(self) -> int:
        """Return 0 if everything held, else 1."""
        arguments = self._parser().parse_args()
        first = first_seed(arguments.seed)
        if arguments.log:
            logs.show()
            return 1 if self.show(first) else 0
        runs, begun = arguments.runs or (self.nightly if arguments.nightly else 1), time.monotonic()
        total = self._run(first, runs, arguments.jobs)
        if arguments.nightly:
            self.write(total, first, (time.monotonic() - begun) / 60)
        print(
            f"{total.runs:,} runs from seed {first}, {total.faults.total():,} faults,"
            f" {len(total.violations)} violations"
        )
        return 1 if total.violations else 0

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog=self.program)
        parser.add_argument(
            "--nightly",
            action="store_true",
            help=f"{self.nightly} runs; writes docs/reliability.md",
        )
        parser.add_argument("--runs", type=int, help="number of seeds, from the first one on")
        parser.add_argument("--seed", type=int, help="the first seed; by default the day's")
        parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
        parser.add_argument("--log", action="store_true", help="one run, with its plan and its log")
        return parser

    def _run(self, first: int, runs: int, jobs: int) -> Total:
        total, end, step = self.count(), first + runs, self.at_once
        parts = [range(at, min(end, at + step)) for at in range(first, end, step)]
        with ProcessPoolExecutor(min(jobs, len(parts))) as pool:
            for part in pool.map(self.run_all, parts):
                total.merge(part)
                if total.violations:
                    print("\n".join(total.violations), file=sys.stderr, flush=True)
                    pool.shutdown(cancel_futures=True)
                    break
                if total.runs % _TOLD_EVERY == 0:
                    print(f"{total.runs:,} runs, 0 violations", flush=True)
        return total
