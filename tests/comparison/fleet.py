"""The workloads of a run, in several processes."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.comparison import draw
from tests.comparison.all import ALL
from tests.comparison.draw import Tally
from tests.crash.fleet import workers


def run(names: Sequence[str]) -> Iterator[Tally]:
    """Yield what came of all failures of each workload, in their order.

    Each kind of failure is a task of its own: some workloads have many times more than others.
    """
    context = multiprocessing.get_context("spawn")
    chosen = [each for each in ALL if each.name in names]
    with ProcessPoolExecutor(workers(), context, initializer=_quieten) as pool:
        parts = [
            [pool.submit(_run, workload.name, failure) for failure in workload.failures]
            for workload in chosen
        ]
        for workload, tasks in zip(chosen, parts, strict=True):
            tally = Tally(workload.name)
            for task in tasks:
                tally.add(task.result())
            yield tally


def _quieten() -> None:
    logging.disable(logging.CRITICAL)


def _run(name: str, failure: str) -> Tally:
    return draw.run_kind(next(each for each in ALL if each.name == name), failure)
