"""Workloads side by side, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.crash.simulator import Outcome, Plan, Simulator

HEADROOM = 1.15
"""Some workloads have fewer images than their share."""


def workers() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def simulate(name: str, plan: Plan) -> Outcome:
    """Crash one workload of the live store."""
    from tests.crash.workloads import WORKLOADS

    return Simulator(WORKLOADS[name], plan).run()


def run(
    names: Sequence[str],
    images: int,
    seed: int,
    progress: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Crash all workloads until there were so many distinct images; return what came of each."""
    wanted = int(images / len(names) * HEADROOM)
    context = multiprocessing.get_context("spawn")
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(workers(), context, max_tasks_per_child=1) as pool:
        tasks = [pool.submit(simulate, name, Plan(seed, wanted)) for name in names]
        for task in as_completed(tasks):
            outcomes.append(task.result())
            progress(outcomes[-1])
    return sorted(outcomes, key=lambda outcome: outcome.name)
