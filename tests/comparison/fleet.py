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
    """Yield what came of all failures of each workload, in their order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers(), context, initializer=_quieten) as pool:
        yield from pool.map(_run, names)


def _quieten() -> None:
    logging.disable(logging.CRITICAL)


def _run(name: str) -> Tally:
    return draw.run(next(each for each in ALL if each.name == name))
