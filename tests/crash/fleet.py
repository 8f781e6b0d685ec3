"""Workloads side by side, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.workloads import WORKLOADS

SHARDS = 10
"""Parts that all workloads are divided into; their numbers of steps are about the same."""


def workers() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def shards(names: Sequence[str] = tuple(WORKLOADS)) -> list[list[str]]:
    """Divide workloads."""
    return [list(names[at::SHARDS]) for at in range(min(SHARDS, len(names)))]


def simulate(names: Sequence[str], images: int, seed: int) -> list[Outcome]:
    """Crash workloads until there were so many distinct images of all of them together.

    What one of them lacks, as it cannot leave so many, the others make up for.
    """
    simulators = [Simulator(WORKLOADS[name], Plan(seed)) for name in names]
    going, level = simulators, 0
    while going and (missing := images - sum(each.outcome.distinct for each in simulators)) > 0:
        level += -(-missing // len(going))
        for simulator in going:
            simulator.advance(level)
        going = [each for each in going if not each.is_exhausted]
    return [simulator.outcome for simulator in simulators]


def run(
    names: Sequence[str],
    images: int,
    seed: int,
    progress: Callable[[Sequence[Outcome]], None] = lambda _: None,
) -> list[Outcome]:
    """Crash workloads side by side; return what came of each, in their order."""
    context = multiprocessing.get_context("spawn")
    parts = shards(names)
    outcomes: dict[str, Outcome] = {}
    with ProcessPoolExecutor(workers(), context) as pool:
        each = -(-images // len(parts))
        tasks = [pool.submit(simulate, part, each, seed) for part in parts]
        for task in as_completed(tasks):
            outcomes.update({outcome.name: outcome for outcome in task.result()})
            progress(task.result())
    return [outcomes[name] for name in names]
