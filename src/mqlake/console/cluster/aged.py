"""Values that are fetched again once they are too old.

If no server answers, pages show the last value, and say how old it is.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from mqlake.errors import MqlakeError
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

T = TypeVar("T")

NO_ANSWER: Final = (ConnectionFailedError, RequestTimeoutError)
"""How a request fails whose server does not answer."""

_MOST: Final = 2000
_OLD: Final = 60.0
_AGE: Final = 20.0
_old_values: ContextVar[dict[str, float] | None] = ContextVar("old_values", default=None)


def begin_noting_old_values() -> None:
    """Note from now on, in this request, which old values are returned."""
    _old_values.set({})


def noted_old_values() -> dict[str, float]:
    """Return why this request got old values: ages in seconds, by the reason."""
    return _old_values.get() or {}


def _note_old_value(reason: str, age: float) -> None:
    noted = _old_values.get()
    if noted is not None:
        noted[reason] = max(age, noted.get(reason, 0.0))


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
        """Return a value that is at most so old, or an older one if no server answers.

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
                try:
                    fetched = await fetch()
                except NO_ANSWER as error:
                    return cast("T", self._last(key, error))
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

    def _last(self, key: object, error: MqlakeError) -> object:
        """Return the last value of a key, and note its age; without one, raise the error."""
        known = self._values.get(key)
        if known is None or self._now() - known[0] > _OLD:
            raise error
        _note_old_value(str(error), self._now() - known[0])
        return known[1]

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


class LatestValue(NamedTuple, Generic[T]):
    """What was last fetched.

    Attributes:
        value: None before the first one.
        age: of the value, in seconds.
        problem: why the last attempt to fetch it failed; empty if it did not.
    """

    value: T | None
    age: float
    problem: str = ""


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
        self._problem = ""
        self._task: asyncio.Task[None] | None = None

    async def latest(self, patience: float) -> LatestValue[T]:
        """Return the last value.

        Args:
            patience: seconds to wait for the first value.
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
            task.result()  # An error in the program is shown as one.
        return LatestValue(self._value, self._now() - self._at, self._problem)

    def close(self) -> None:
        """Stop fetching."""
        if self._task is not None:
            self._task.cancel()

    async def _update(self) -> None:
        begun = self._now()
        try:
            self._value = await self._fetch()
            self._at, self._problem = begun, ""
        except MqlakeError as error:
            self._problem = str(error)
        self._took = self._now() - begun
