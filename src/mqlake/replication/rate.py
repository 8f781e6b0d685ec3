"""How many bytes a connection transfers per second, and how many it may.

Upstream: `FlowMonitor`.
"""

from __future__ import annotations


class TransferRate:
    """Counts bytes by the second of the event loop's time.

    Args:
        most: maximum bytes per second; None for no limit.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._second: int = 0
        self._now = self._before = 0

    def add(self, count: int, now: float) -> None:
        """Count bytes transferred at a time, in seconds."""
        self._turn(now)
        self._now += count

    def pause(self, now: float) -> float:
        """Return the seconds after which more may be transferred; 0 if that is now."""
        self._turn(now)
        if self._most is None or self._now < self._most:
            return 0
        return self._second + 1 - now

    def of_last_second(self, now: float) -> int:
        """Return the bytes of the last whole second."""
        self._turn(now)
        return self._before

    def _turn(self, now: float) -> None:
        second = int(now)
        if second != self._second:
            self._before = self._now if second == self._second + 1 else 0
            self._second, self._now = second, 0
