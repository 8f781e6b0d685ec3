"""Unique keys for messages of producers that give them none.

Upstream: `MessageClientIDSetter.createUniqID`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import count, islice

from mqlake.formats.host import encode_host
from mqlake.formats.message_id import UniqueKey
from mqlake.storage.clock import Clock

_PORT_SIZE = 4
_DIGITS_THAT_CHANGE = 8 + 4
_OF_ONE_MOMENT = 256
"""Keys that are made for one reading of the clock."""
_BYTES = [b"%02X" % number for number in range(256)]
_LONGEST_MONTH = 31
"""Days."""


class UniqueKeys:
    """Makes unique keys."""

    def __init__(self, address: str, clock: Clock) -> None:
        ip, pid = encode_host(address)[:-_PORT_SIZE], os.getpid() & 0xFFFF
        # Upstream has the hash code of a class loader here, which differs by process as this does.
        process = int.from_bytes(os.urandom(4))
        # All keys of a process start alike: only the milliseconds and the counter are formatted.
        self._start = UniqueKey(ip, pid, process, 0, 0).text()[:-_DIGITS_THAT_CHANGE]
        self._clock = clock
        self._counter = count()
        self._month = self._next_month = 0

    def next(self) -> str:
        """Return a key that no other message has."""
        return f"{self._moment()}{next(self._counter) & 0xFFFF:04X}"

    def encoded(self, before: bytes, after: bytes) -> Iterator[bytes]:
        """Yield keys that no other messages have, as bytes between others; to be used at once."""
        counter, ends = self._counter, _ends(after)
        while True:
            start = before + self._moment().encode()
            for number in islice(counter, _OF_ONE_MOMENT):
                yield start + _BYTES[number >> 8 & 0xFF] + ends[number & 0xFF]

    def _moment(self) -> str:
        """Return how keys start that are made now."""
        now = self._clock.milliseconds()
        if not self._month <= now < self._next_month:
            self._month, self._next_month = _month_of(now)
        return f"{self._start}{now - self._month:08X}"


@lru_cache(16)
def _ends(after: bytes) -> list[bytes]:
    """Return the ends of keys, by the low byte of their counter."""
    return [text + after for text in _BYTES]


def _month_of(now: int) -> tuple[int, int]:
    """Return when the month of a time began, and when the next one does, here."""
    today = datetime.fromtimestamp(now / 1000)  # noqa: DTZ006 (as producers do: in local time)
    month = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (month + timedelta(days=_LONGEST_MONTH)).replace(day=1)
    return int(month.timestamp() * 1000), int(following.timestamp() * 1000)
