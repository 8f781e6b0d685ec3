"""Limits attempts to log in, so that passwords cannot be guessed fast."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_ALLOWED: Final = 10
_PERIOD: Final = 60.0
_MOST_ADDRESSES: Final = 10_000


class LoginAttempts:
    """Counts failed attempts by address.

    Args:
        now: returns seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._failed: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def may_try(self, address: str) -> bool:
        """Return whether an address may try now."""
        begun, count = self._failed.get(address, (0.0, 0))
        return count < _ALLOWED or self._now() - begun >= _PERIOD

    def failed(self, address: str) -> None:
        """Count a failed attempt."""
        now = self._now()
        begun, count = self._failed.pop(address, (now, 0))
        if now - begun >= _PERIOD:
            begun, count = now, 0
        self._failed[address] = (begun, count + 1)
        while len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)
