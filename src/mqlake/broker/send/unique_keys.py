"""Unique keys for messages of producers that give them none.

Upstream: `MessageClientIDSetter.createUniqID`.
"""

from __future__ import annotations

import os
import secrets
from datetime import datetime
from itertools import count

from mqlake.formats.host import encode_host
from mqlake.formats.message_id import UniqueKey
from mqlake.storage.clock import Clock

_PORT_SIZE = 4


class UniqueKeys:
    """Makes unique keys."""

    def __init__(self, address: str, clock: Clock) -> None:
        self._ip = encode_host(address)[:-_PORT_SIZE]
        self._pid = os.getpid() & 0xFFFF
        # Upstream has the hash code of a class loader here, which differs by process as this does.
        self._process = secrets.randbits(32)
        self._clock = clock
        self._counter = count()

    def next(self) -> str:
        """Return a key that no other message has."""
        now = self._clock.milliseconds()
        today = datetime.fromtimestamp(now / 1000).astimezone()
        month = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        since = now - int(month.timestamp() * 1000)
        number = next(self._counter) & 0xFFFF
        return UniqueKey(self._ip, self._pid, self._process, since, number).text()
