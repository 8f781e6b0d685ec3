"""What brokers have answered, for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, NamedTuple, TypeVar

from mqlake.errors import MqlakeError
from mqlake.protocol.errors import RemotingError

_KEPT: Final = 20.0
"""Seconds for which a value is used before it is requested again."""
_UNKNOWN: Final = 1.0
"""Seconds for which what does not exist is not requested again."""
_MOST: Final = 20_000

V = TypeVar("V")


class _Requested(NamedTuple, Generic[V]):
    requested: float
    value: V


class RecentValues(Generic[V]):
    """Values by name, which are requested again after a while; None for what does not exist.

    Args:
        request: returns the value of a name. It raises RemotingError if the brokers refuse to
            answer, another MqlakeError if they do not.
    """

    def __init__(self, request: Callable[[str], Awaitable[V]]) -> None:
        self._request, self._now = request, asyncio.get_running_loop().time
        self._known: dict[str, _Requested[V]] = {}

    def known(self, name: str) -> V | None:
        """Return the value that was requested last, however old it is; None without one."""
        known = self._known.get(name)
        return None if known is None else known.value

    async def get(self, name: str, *, is_doubted: bool = False) -> V:
        """Return a value; the last known one if brokers do not answer.

        Args:
            is_doubted: whether the known value seems to be outdated: then it is requested again if
                that was not done within the last second.
        """
        known = self._known.get(name)
        if known is not None:
            kept = _UNKNOWN if is_doubted or known.value is None else _KEPT
            if self._now() < known.requested + kept:
                return known.value
        requested = self._now()
        try:
            found = await self._request(name)
        except RemotingError:
            raise
        except MqlakeError:
            if known is None:
                raise
            found = known.value
        self._known.pop(name, None)
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[name] = _Requested(requested, found)
        return found
