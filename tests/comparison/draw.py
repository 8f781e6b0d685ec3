"""Which failures a run of the comparison has: all of them, or a drawn part."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.comparison.run import Reference, Workload, compare, refer


class Single(NamedTuple):
    """One failure: the kind, and which of the operations of that kind fails."""

    failure: str
    at: int


@dataclass
class Tally:
    """What came of the failures of one workload."""

    name: str
    failures: Counter[str] = field(default_factory=Counter[str])
    violations: list[str] = field(default_factory=list[str])

    def add(self, other: Tally) -> None:
        """Add what came of other failures of the same workload."""
        self.failures += other.failures
        self.violations += other.violations


def singles(reference: Reference) -> Iterator[Single]:
    """Yield all failures of a workload."""
    for failure, count in reference.operations.items():
        for at in range(1, count + 1):
            yield Single(failure, at)


def drawn(
    workload: Workload, reference: Reference, count: int, seed: int, first: int
) -> list[Single]:
    """Return some failures of a workload, of each kind if there are enough.

    `first` is the number of the kind to begin with.
    """
    dice = random.Random(f"{workload.name}/{seed}")
    kinds = {failure: [*range(1, most + 1)] for failure, most in reference.operations.items()}
    order = [*kinds.items()]
    order = order[first:] + order[:first]
    chosen: list[Single] = []
    while len(chosen) < count and any(kinds.values()):
        for failure, left in order:
            if left and len(chosen) < count:
                chosen.append(Single(failure, left.pop(dice.randrange(len(left)))))
    return chosen


def run(workload: Workload, count: int | None = None, seed: int = 1, first: int = 0) -> Tally:
    """Compare a workload's runs with all failures, or with so many drawn ones: see `drawn`."""
    reference = refer(workload)
    chosen = drawn(workload, reference, count, seed, first) if count else singles(reference)
    return _run(workload, reference, chosen)


def run_kind(workload: Workload, failure: str) -> Tally:
    """Compare a workload's runs with all failures of one kind."""
    reference = refer(workload, [failure])
    return _run(workload, reference, singles(reference))


def _run(workload: Workload, reference: Reference, chosen: Iterable[Single]) -> Tally:
    tally = Tally(workload.name)
    for single in chosen:
        try:
            if not compare(workload, reference, *single):
                continue
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what we look for)
            what = f"{command(workload, single)}: {type(error).__name__}: {error}"
            tally.violations.append(what)
        tally.failures[single.failure] += 1
    return tally


def command(workload: Workload, single: Single) -> str:
    """Return the command that runs one failure again."""
    return f"python -m tests.comparison --workload {workload.name} {single.failure} {single.at}"
