"""Values that take long to find out: found in threads, and waited for only so long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

from mqlake.console.page_error import PageError

T = TypeVar("T")

PATIENCE: Final = 1.0
"""Seconds for which a page waits."""
_MOST: Final = 50
_MOST_FINDING: Final = 8
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
        self._finding: dict[Hashable, asyncio.Task[None]] = {}

    def close(self) -> None:
        """Stop finding values."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def get(
        self, key: Hashable, seconds: float, find: Callable[[], T], patience: float = PATIENCE
    ) -> FoundValue | None:
        """Return a value; None if it is still being found.

        An old value is returned while a new one is being found.

        Args:
            seconds: age from which it is found again.
            find: returns the value; called in a thread. Its errors are raised here, and kept only
                until the next call.

        Raises:
            PageError: too many other values are being found.
        """
        known = self._known(key)
        if known is not None and known.age < seconds:
            return known
        finding = self._finding.get(key)
        if finding is None:
            if len(self._finding) >= _MOST_FINDING:
                raise PageError("The console is busy", "Try again in a moment.", 503)
            finding = self._finding[key] = asyncio.create_task(self._find(key, find))
        await asyncio.wait([finding], timeout=patience)
        if finding.done():
            finding.result()
        return self._known(key)

    def forget(self, key: Hashable) -> None:
        """Find a value again when it is asked for."""
        self._found.pop(key, None)

    def _known(self, key: Hashable) -> FoundValue | None:
        known = self._found.get(key)
        return None if known is None else FoundValue(known[1], self._now() - known[0])

    async def _find(self, key: Hashable, find: Callable[[], Any]) -> None:
        begun = self._now()
        try:
            value = await asyncio.get_running_loop().run_in_executor(self._threads, find)
        finally:
            self._finding.pop(key, None)
        self._found.pop(key, None)
        self._found[key] = (begun, value)
        while len(self._found) > _MOST:
            self._found.pop(next(iter(self._found)))
