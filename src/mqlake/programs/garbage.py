"""Decide when a server collects cyclic garbage of the oldest generation: when it is mostly idle."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_NEVER: Final = 2**31 - 1
_LOOK: Final = 5.0
"""Seconds between checks whether the thread is mostly idle."""
_LITTLE: Final = 0.1
"""The share of time for which an idle thread works."""
_LONGEST: Final = 3600.0
"""Seconds after which garbage is collected even if the thread is never idle."""


@contextmanager
def quiet_collection() -> Generator[None]:
    """Collect the oldest generation only while the running loop's thread is mostly idle.

    Such a collection traverses every container of the process, which takes a fifth of a second with
    the offsets of half a million queues, and blocks all requests. The younger generations hold
    nearly all cyclic garbage, and are collected as usual. Objects that exist at the start are never
    traversed.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*thresholds[:2], _NEVER)
    gc.enable()
    looks = _Looks(asyncio.get_running_loop(), thresholds[2])
    try:
        yield
    finally:
        looks.stop()
        gc.set_threshold(*thresholds)


class _Looks:
    """Checks at intervals whether to collect the oldest generation.

    Args:
        due: collections of the middle generation after which the oldest is due.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, due: int) -> None:
        self._loop, self._due = loop, due
        self._collected = loop.time()
        self._wait()

    def stop(self) -> None:
        self._timer.cancel()

    def _wait(self) -> None:
        self._wall, self._worked = self._loop.time(), time.thread_time()
        self._timer = self._loop.call_later(_LOOK, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        is_quiet = time.thread_time() - self._worked < (now - self._wall) * _LITTLE
        is_due = gc.get_count()[2] > self._due
        if is_due and (is_quiet or now - self._collected > _LONGEST):
            gc.collect()
            self._collected = now
        self._wait()
