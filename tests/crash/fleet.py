"""Workloads side by side, in processes of their own."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, as_completed, wait

from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.workloads import ALL, PREFIX, find

SHARDS = 10
"""Parts that all workloads are divided into; their numbers of steps are about the same."""


DRAWN = 4000
"""Images of a drawn workload."""
_DRAWN_OF_A_SEED = 100_000
"""Numbers of drawn workloads that belong to one seed."""
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


def simulate_drawn(number: int, images: int, seed: int) -> Outcome:
    """Crash the script of a number."""
    simulator = Simulator(find(f"{PREFIX}{number}"), Plan(seed, images, AGAIN))
    return simulator.run()


def run(
    images: int, seeds: Sequence[int], progress: Callable[[Outcome, int], None] = lambda *_: None
) -> list[Outcome]:
    """Crash all workloads with each seed, then drawn ones until there were so many images.

    A violation ends its workload, not the run: one run shows what is wrong everywhere.

    Returns:
        The outcome of each workload, over all seeds.
    """
    outcomes: dict[str, Outcome] = {}
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers(), context, initializer=quieten, max_tasks_per_child=1)

    def keep(outcome: Outcome) -> None:
        outcomes.setdefault(outcome.name, Outcome(outcome.name)).add(outcome)
        progress(outcome, sum(each.distinct for each in outcomes.values()))

    try:
        each = images // len(ALL) // len(seeds)
        todo = [pool.submit(simulate, [name], each, seed, AGAIN) for seed in seeds for name in ALL]
        for task in as_completed(todo):
            for outcome in task.result():
                keep(outcome)
        todo = set()
        drawn = ((seed, seed * _DRAWN_OF_A_SEED + at) for at in itertools.count() for seed in seeds)
        while sum(outcome.distinct for outcome in outcomes.values()) < images:
            while len(todo) < 2 * workers():
                seed, number = next(drawn)
                todo.add(pool.submit(simulate_drawn, number, DRAWN, seed))
            done, todo = wait(todo, return_when=FIRST_COMPLETED)
            for task in done:
                keep(task.result())
    finally:
        pool.shutdown(cancel_futures=True)
    return list(outcomes.values())
