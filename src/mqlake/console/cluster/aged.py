"""Values that are fetched again once they are too old."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

_MOST: Final = 2000


class AgedValues:
    """Keeps what was fetched, by key, for a few seconds.

    Many visitors, and pages that refresh themselves, cost a broker one request in that time.

    Args:
        now: returns seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._values: OrderedDict[object, tuple[float, Any]] = OrderedDict()
        self._fetching: dict[object, asyncio.Lock] = {}

    async def get(self, key: object, age: float, fetch: Callable[[], Awaitable[T]]) -> T:
        """Return a value that is at most so old.

        Args:
            age: seconds.
            fetch: called if there is no such value; its errors are not kept.
        """
        lock = self._fetching.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                at, value = self._values.get(key, (0.0, None))
                if key in self._values and self._now() - at <= age:
                    return cast("T", value)
                fetched = await fetch()
                self._values[key] = (self._now(), fetched)
                self._values.move_to_end(key)
                while len(self._values) > _MOST:
                    self._values.popitem(last=False)
                return fetched
        finally:
            if not lock.locked():
                self._fetching.pop(key, None)

    def forget(self) -> None:
        """Forget all values: something was changed."""
        self._values.clear()
