"""Unique keys for messages of producers that give them none.

Upstream: `MessageClientIDSetter.createUniqID`.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from functools import lru_cache
from threading import Lock

from mqlake.formats.host import encode_host
from mqlake.formats.message_id import UniqueKey
from mqlake.storage.clock import Clock

_PORT_SIZE = 4
_DIGITS_THAT_CHANGE = 8 + 4
_BYTES = [b"%02X" % number for number in range(256)]
_LONGEST_MONTH = 31
"""Days."""


class UniqueKeys:
    """Makes unique keys, for any threads.

    Attributes:
        length: the digits of each.
    """

    def __init__(self, address: str, clock: Clock) -> None:
        ip, pid = encode_host(address)[:-_PORT_SIZE], os.getpid() & 0xFFFF
        # Upstream has the hash code of a class loader here, which differs by process as this does.
        process = int.from_bytes(os.urandom(4))
        # All keys of a process start alike: only the milliseconds and the counter are formatted.
        self._start = UniqueKey(ip, pid, process, 0, 0).text()[:-_DIGITS_THAT_CHANGE]
        self.length = len(self._start) + _DIGITS_THAT_CHANGE
        self._clock = clock
        self._made, self._lock = 0, Lock()
        self._month = self._next_month = 0

    def next(self) -> str:
        """Return a key that no other message has."""
        return f"{self._moment()}{self._take(1) & 0xFFFF:04X}"

    def encoded(self, many: int, before: bytes, after: bytes) -> list[bytes]:
        """Return so many keys that no other messages have, each as bytes between others."""
        found: list[bytes] = []
        number, endings = self._take(many), _endings(after)
        while len(found) < many:
            # Without a step of the interpreter for each key.
            start = before + self._moment().encode() + _BYTES[number >> 8 & 0xFF]
            low = number & 0xFF
            some = endings[low : low + many - len(found)]
            found += map(start.__add__, some)
            number += len(some)
        return found

    def _take(self, many: int) -> int:
        with self._lock:
            first = self._made
            self._made += many
            return first

    def _moment(self) -> str:
        """Return how keys start that are made now."""
        now = self._clock.milliseconds()
        if not self._month <= now < self._next_month:
            self._month, self._next_month = _month_of(now)
        return f"{self._start}{now - self._month:08X}"


@lru_cache(16)
def _endings(after: bytes) -> list[bytes]:
    """Return the ends of keys, by the low byte of their counter."""
    return [text + after for text in _BYTES]


def _month_of(now: int) -> tuple[int, int]:
    """Return when the month of a time began, and when the next one does, here."""
    today = datetime.fromtimestamp(now / 1000)  # noqa: DTZ006 (as producers do: in local time)
    month = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (month + timedelta(days=_LONGEST_MONTH)).replace(day=1)
    return int(month.timestamp() * 1000), int(following.timestamp() * 1000)
