"""How often a client may do what costs the server more than the client."""

from __future__ import annotations

from typing import Final

from mqlake.grpc.http2.frames import ErrorCode, Http2Error

PERIOD: Final = 10.0
"""Seconds."""


class Frequency:
    """Counts the events of one kind on one connection.

    Args:
        most: how many are allowed within a period.
        what: their name.
    """

    __slots__ = ("_begin", "_count", "_most", "_what")

    def __init__(self, most: int, what: str) -> None:
        self._most, self._what = most, what
        self._begin, self._count = 0.0, 0

    def allow(self, count: int) -> None:
        """Allow more events in this period: they belong to something that is useful."""
        self._count -= count

    def note(self, now: float) -> None:
        """Count an event.

        Raises:
            Http2Error: there are too many.
        """
        self._count += 1
        if now - self._begin >= PERIOD:
            self._begin, self._count = now, 1
        elif self._count > self._most:
            raise Http2Error(
                ErrorCode.ENHANCE_YOUR_CALM,
                f"more than {self._most} {self._what} within {PERIOD:g} s",
            )
