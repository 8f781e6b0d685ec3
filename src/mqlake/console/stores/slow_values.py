"""Values that take long to find out: found in threads, and waited for only so long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

PATIENCE: Final = 1.0
"""Seconds for which a page waits."""
_MOST: Final = 200
_THREADS: Final = 2


class FoundValue(NamedTuple):
    """A value, and how many seconds ago it was found."""

    value: Any
    age: float


class SlowValues:
    """Finds values in two threads, so that neither the event loop nor other pages wait.

    A value that is asked for again while it is being found is found once.

    Args:
        now: returns seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._threads = ThreadPoolExecutor(_THREADS, "mqlake-console-files")
        self._found: dict[Hashable, tuple[float, Any]] = {}
        self._finding: dict[Hashable, asyncio.Future[Any]] = {}

    def close(self) -> None:
        """Find nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def get(
        self, key: Hashable, seconds: float, find: Callable[[], T], patience: float = PATIENCE
    ) -> FoundValue | None:
        """Return a value; None if it is still being found.

        An old value is returned while a new one is being found.

        Args:
            seconds: age from which it is found again.
            find: returns the value; called in a thread. Its errors are raised here, and not kept.
        """
        known = self._found.get(key)
        if known is not None and self._now() - known[0] < seconds:
            return FoundValue(known[1], self._now() - known[0])
        finding = self._finding.get(key)
        if finding is None:
            loop = asyncio.get_running_loop()
            finding = self._finding[key] = loop.run_in_executor(self._threads, find)
        await asyncio.wait([finding], timeout=patience)
        if not finding.done():
            return None if known is None else FoundValue(known[1], self._now() - known[0])
        self._finding.pop(key, None)
        value = finding.result()
        self._found.pop(key, None)
        self._found[key] = (self._now(), value)
        while len(self._found) > _MOST:
            self._found.pop(next(iter(self._found)))
        return FoundValue(value, 0.0)

    def forget(self, key: Hashable) -> None:
        """Find a value again when it is asked for."""
        self._found.pop(key, None)
