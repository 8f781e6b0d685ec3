"""Shares of all workloads."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.workloads import ALL

SHARDS = 10
"""Parts that all workloads are divided into; their numbers of steps are about the same."""


DRAWN = 4000
"""Images of a drawn workload."""
AGAIN = 10
"""In a long run, one image in so many is crashed again during its recovery."""


def quieten() -> None:
    """Let this process not warn of every crash."""
    logging.disable(logging.WARNING)


def workers() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def shards(names: Sequence[str] = tuple(ALL)) -> list[list[str]]:
    """Divide workloads."""
    return [list(names[at::SHARDS]) for at in range(min(SHARDS, len(names)))]


def simulate(
    names: Sequence[str], images: int, seed: int, again: int = 50, share: float = 1.0
) -> list[Outcome]:
    """Crash workloads until there were so many distinct images of all of them together.

    The first round tries that share of all moments of each. What then lacks, all of them make up
    for that can leave more.
    """
    simulators = [Simulator(ALL[name], Plan(seed, again=again, share=share)) for name in names]
    going, more = simulators, 1
    while going:
        for simulator in going:
            simulator.advance(simulator.outcome.distinct + more)
        missing = images - sum(each.outcome.distinct for each in simulators)
        if missing <= 0:
            break
        going = [each for each in going if not each.is_exhausted]
        more = -(-missing // max(1, len(going)))
    return [simulator.outcome for simulator in simulators]
