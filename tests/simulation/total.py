"""The counters of many runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.run import Outcome, command, run


@dataclass
class Total:
    """What some seeds came to.

    Attributes:
        violations: lines, each with the command that runs its seed again.
        drained: the longest time until everything was consumed, simulated seconds.
        seconds: simulated seconds of all runs.
        cpu: seconds of a processor.
    """

    runs: int = 0
    violations: list[str] = field(default_factory=list[str])
    sends: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    acknowledged: int = 0
    deliveries: int = 0
    observations: int = 0
    events: int = 0
    drained: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.violations += [
            f"{command(outcome.seed)}: {violation}" for violation in outcome.violations
        ]
        self.sends.update(outcome.sends)
        self.faults.update(outcome.faults)
        self.acknowledged += outcome.acknowledged
        self.deliveries += outcome.deliveries
        self.observations += outcome.observations
        self.events += outcome.events
        self.drained = max(self.drained, outcome.drained)
        self.seconds += outcome.seconds
        self.cpu += outcome.cpu

    def merge(self, other: Total) -> None:
        """Count the runs of another one."""
        self.runs += other.runs
        self.violations += other.violations
        self.sends.update(other.sends)
        self.faults.update(other.faults)
        self.acknowledged += other.acknowledged
        self.deliveries += other.deliveries
        self.observations += other.observations
        self.events += other.events
        self.drained = max(self.drained, other.drained)
        self.seconds += other.seconds
        self.cpu += other.cpu


def run_all(seeds: range) -> Total:
    """Run seeds one after the other, up to the first violation."""
    total = Total()
    for seed in seeds:
        total.add(run(seed))
        if total.violations:
            break
    return total
