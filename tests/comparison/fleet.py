"""The parts of a run, in several processes."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from tests.comparison import draw
from tests.comparison.all import ALL, MODULES
from tests.comparison.done import Compared, Part
from tests.crash.fleet import workers
from tests.proved_code import code_of


def run(parts: Sequence[Part], seconds: float) -> Iterator[Compared]:
    """Yield what came of each part as it ends; begin none after so many seconds."""
    context = multiprocessing.get_context("spawn")
    left, end = iter(parts), time.monotonic() + seconds
    with ProcessPoolExecutor(workers(), context, initializer=_quieten) as pool:
        running: set[Future[Compared]] = set()
        while True:
            while len(running) < workers() and time.monotonic() < end:
                if (part := next(left, None)) is None:
                    break
                running.add(pool.submit(_run, part))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (task.result() for task in done)


def _quieten() -> None:
    logging.disable(logging.CRITICAL)


def _run(part: Part) -> Compared:
    start, code = time.monotonic(), code_of(MODULES[part.workload])
    workload = next(each for each in ALL if each.name == part.workload)
    tally = draw.run_kind(workload, part.failure)
    return Compared.now(part, tally, code, time.monotonic() - start)
