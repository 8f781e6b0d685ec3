"""Unique keys for messages of producers that give them none.

Upstream: `MessageClientIDSetter.createUniqID`.
"""

from __future__ import annotations

import os
import secrets
from datetime import datetime, timedelta
from itertools import count

from mqlake.formats.host import encode_host
from mqlake.formats.message_id import UniqueKey
from mqlake.storage.clock import Clock

_PORT_SIZE = 4
_LONGEST_MONTH = 31
"""Days."""


class UniqueKeys:
    """Makes unique keys."""

    def __init__(self, address: str, clock: Clock) -> None:
        self._ip = encode_host(address)[:-_PORT_SIZE]
        self._pid = os.getpid() & 0xFFFF
        # Upstream has the hash code of a class loader here, which differs by process as this does.
        self._process = secrets.randbits(32)
        self._clock = clock
        self._counter = count()
        self._month = self._next_month = 0

    def next(self) -> str:
        """Return a key that no other message has."""
        now = self._clock.milliseconds()
        if not self._month <= now < self._next_month:
            self._month, self._next_month = _month_of(now)
        number = next(self._counter) & 0xFFFF
        return UniqueKey(self._ip, self._pid, self._process, now - self._month, number).text()


def _month_of(now: int) -> tuple[int, int]:
    """Return when the month of a time began, and when the next one does, here."""
    today = datetime.fromtimestamp(now / 1000)  # noqa: DTZ006 (as producers do: in local time)
    month = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (month + timedelta(days=_LONGEST_MONTH)).replace(day=1)
    return int(month.timestamp() * 1000), int(following.timestamp() * 1000)
