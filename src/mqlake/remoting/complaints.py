"""Log lines about closed connections: no more than a person can read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

_log: Final = logging.getLogger("mqlake.remoting")

WINDOW: Final = 10.0
"""Seconds."""
MOST: Final = 20
"""Maximum lines in a window; further ones are only counted."""


class Complaints:
    """Logs why connections were closed; if there are too many at a time, only how many.

    Args:
        now: returns seconds that never go back.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begin = now()
        self._count = 0

    def say(self, address: str, reason: str) -> None:
        """Log a line, unless there were too many."""
        now = self._now()
        if now - self._begin >= WINDOW:
            if self._count > MOST:
                _log.warning("%d more connections were closed", self._count - MOST)
            self._begin, self._count = now, 0
        self._count += 1
        if self._count <= MOST:
            _log.warning("%s: closed: %s", address, reason)
