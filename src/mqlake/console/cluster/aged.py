"""Values that are fetched again once they are too old."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")

_MOST: Final = 2000
_OLD: Final = 60.0
_AGE: Final = 20.0


class AgedValues:
    """Keeps what was fetched, by key, for a few seconds.

    Many visitors, and pages that refresh themselves, cost a broker one request in that time.

    Args:
        now: returns seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._values: OrderedDict[object, tuple[float, Any]] = OrderedDict()
        self._fetching: dict[object, tuple[asyncio.Lock, int]] = {}

    async def get(self, key: object, age: float, fetch: Callable[[], Awaitable[T]]) -> T:
        """Return a value that is at most so old.

        Args:
            age: seconds.
            fetch: called if there is no such value; its errors are not kept.
        """
        known = self._values.get(key)
        if known is not None and self._now() - known[0] <= age:
            return cast("T", known[1])
        lock, waiting = self._fetching.get(key, (asyncio.Lock(), 0))
        self._fetching[key] = (lock, waiting + 1)
        try:
            async with lock:
                known = self._values.get(key)
                if known is not None and self._now() - known[0] <= age:
                    return cast("T", known[1])
                fetched = await fetch()
                self._values[key] = (self._now(), fetched)
                self._values.move_to_end(key)
                while len(self._values) > _MOST:
                    self._values.popitem(last=False)
                return fetched
        finally:
            lock, waiting = self._fetching[key]
            if waiting == 1:
                del self._fetching[key]
            else:
                self._fetching[key] = (lock, waiting - 1)

    def sweep(self) -> None:
        """Forget what is too old for every page."""
        while self._values:
            key = next(iter(self._values))
            if self._now() - self._values[key][0] <= _OLD:
                return
            del self._values[key]

    def forget(self) -> None:
        """Forget all values: something was changed."""
        self._values.clear()


class BackgroundValue(Generic[T]):
    """A value that takes long to fetch: pages show the last one, and how old it is.

    It is fetched while pages ask for it, and takes at most a tenth of the time.

    Args:
        now: returns seconds.
        fetch: returns the value.
    """

    def __init__(self, now: Callable[[], float], fetch: Callable[[], Awaitable[T]]) -> None:
        self._now, self._fetch = now, fetch
        self._value: T | None = None
        self._at = self._begun = self._took = 0.0
        self._task: asyncio.Task[None] | None = None

    async def latest(self, patience: float) -> tuple[T | None, float]:
        """Return the last value, and its age in seconds; None if the first one is not there yet.

        Args:
            patience: seconds to wait for the first value.

        Raises:
            MqlakeError: the value cannot be fetched.
        """
        is_old = self._now() - self._begun > max(_AGE, 10 * self._took)
        if self._task is None and (self._value is None or is_old):
            self._begun = self._now()
            self._task = asyncio.create_task(self._update())
        task = self._task
        if self._value is None and task is not None:
            await asyncio.wait({task}, timeout=patience)
        if task is not None and task.done():
            self._task = None
            task.result()
        return self._value, self._now() - self._at

    def close(self) -> None:
        """Stop fetching."""
        if self._task is not None:
            self._task.cancel()

    async def _update(self) -> None:
        begun = self._now()
        self._value = await self._fetch()
        self._at, self._took = begun, self._now() - begun
