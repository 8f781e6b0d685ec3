"""The counters of many runs of groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.group.run import Outcome, command, run

_SUMS = ("rounds", "sent", "acknowledged", "elections", "emptied", "events", "seconds", "cpu")


@dataclass
class Total:
    """What some seeds came to.

    Attributes:
        violations: lines, each with the command that runs its seed again.
        settled: the longest simulated time from the end of a fault until all logs were the same.
        seconds: simulated seconds of all runs.
        cpu: seconds of a processor.
    """

    runs: int = 0
    violations: list[str] = field(default_factory=list[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    rounds: int = 0
    sent: int = 0
    acknowledged: int = 0
    elections: int = 0
    emptied: int = 0
    events: int = 0
    settled: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.violations += [f"{command(outcome.seed)}: {each}" for each in outcome.violations]
        self._count(outcome)

    def merge(self, other: Total) -> None:
        """Count the runs of another one."""
        self.runs += other.runs
        self.violations += other.violations
        self._count(other)

    def _count(self, other: Outcome | Total) -> None:
        self.faults.update(other.faults)
        self.settled = max(self.settled, other.settled)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def run_all(seeds: range) -> Total:
    """Run seeds one after the other, up to the first violation."""
    total = Total()
    for seed in seeds:
        total.add(run(seed))
        if total.violations:
            break
    return total
