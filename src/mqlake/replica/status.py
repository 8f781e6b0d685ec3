"""How far a replica is."""

from __future__ import annotations

from statistics import median

import msgspec

from mqlake.metrics.histogram import Histogram


class ReplicaStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How far a replica is at a time.

    Attributes:
        time: milliseconds since 1970.
        master, address: its name, and the "host:port" at which it serves clients; None before it
            was found.
        min_offset, max_offset: physical offsets between which the copy is.
        master_max_offset: where the master's log ended when it was asked last; None before.
        lag_bytes: what the copy lacked of that.
        lag_ms: the median time from storing a message at the master to its arrival here, of what
            has come since the last status; without any, 0 if the copy lacks nothing. By the clocks
            of both machines. None if it is not known.
        bytes_per_second: received in the last second.
        received: bytes since the start.
        problem: why nothing is copied now; None if the master is followed.
    """

    time: int
    master: str | None
    address: str | None
    store: str
    min_offset: int
    max_offset: int
    master_max_offset: int | None
    lag_bytes: int | None
    lag_ms: int | None
    bytes_per_second: int
    received: int
    problem: str | None


_BOUNDS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 60_000.0, 600_000.0)
"""Milliseconds."""


class Lag:
    """The time that messages take from the master to here.

    Attributes:
        times: all times since the start, in milliseconds.
    """

    _MOST = 100_000

    def __init__(self) -> None:
        self._seen: list[int] = []
        self._last_stored = 0
        self.times = Histogram(_BOUNDS)

    def add(self, now: int, last_stored: int) -> None:
        """Note that a message stored at a time arrived at another (ms)."""
        self._last_stored = last_stored
        if last_stored:
            self.times.add(max(now - last_stored, 0))
        if last_stored and len(self._seen) < self._MOST:
            self._seen.append(max(now - last_stored, 0))

    def take(self, now: int, *, lacks: bool) -> int | None:
        """Return the median since the last call, in ms; None if it is not known."""
        seen, self._seen = self._seen, []
        if seen:
            return round(median(seen))
        if not lacks:
            return 0
        return max(now - self._last_stored, 0) if self._last_stored else None
