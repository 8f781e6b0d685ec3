"""When a server looks for cyclic garbage among all that it keeps: when it has little else to do."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_NEVER: Final = 2**31 - 1
_LOOK: Final = 5.0
"""Seconds between looks whether there is little to do."""
_LITTLE: Final = 0.1
"""Share of its time that a thread with little to do works."""
_LONGEST: Final = 3600.0
"""Seconds after which a thread that always works looks for garbage all the same."""


@contextmanager
def quiet_collection() -> Generator[None]:
    """Collect the oldest generation only while the running loop's thread has little to do.

    Such a collection looks through every container of the process, a fifth of a second for the
    offsets of half a million queues, and nobody is served meanwhile. The younger generations hold
    nearly all cyclic garbage; they are collected as ever. What the process keeps already is never
    looked through.
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
    """Looks now and then whether to collect the oldest generation.

    Args:
        due: collections of the middle generation after which one of the oldest is due.
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
