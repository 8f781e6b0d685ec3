"""Limits attempts to log in, so that passwords cannot be guessed fast."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from mqlake.console.page_error import PageError

_ALLOWED: Final = 10
"""Failed attempts of an address in a period."""
_PERIOD: Final = 60.0
_AT_ONCE: Final = 8
"""Attempts that are checked at the same time: each asks brokers."""
_MOST_ADDRESSES: Final = 10_000


class LoginAttempts:
    """Counts attempts by address, from their begin: a success takes its own count back.

    Args:
        now: returns seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._running = now, 0
        self._tried: OrderedDict[str, tuple[float, int]] = OrderedDict()

    @contextmanager
    def attempt(self, address: str) -> Generator[None]:
        """Count an attempt while the block runs, and after it if it raises an error.

        Raises:
            PageError: this address has failed too often, or too many attempts run now.
        """
        now = self._now()
        begun, count = self._tried.pop(address, (now, 0))
        if now - begun >= _PERIOD:
            begun, count = now, 0
        is_refused = count >= _ALLOWED or self._running >= _AT_ONCE
        self._tried[address] = (begun, count if is_refused else count + 1)
        while len(self._tried) > _MOST_ADDRESSES:
            self._tried.popitem(last=False)
        if is_refused:
            raise PageError("Too many failed logins", "Wait a minute, then try again.", 429)
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
        begun, count = self._tried.get(address, (now, 1))
        self._tried[address] = (begun, max(0, count - 1))
