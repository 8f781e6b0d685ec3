"""A clock that stands still unless it is told to go on."""

from __future__ import annotations


class ManualClock:
    """The time that a test gives; `mqlake.storage.clock.Clock`."""

    def __init__(self, milliseconds: int = 1_700_000_000_000) -> None:
        self._start = self._now = milliseconds

    def milliseconds(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start) / 1000

    def forward(self, milliseconds: int) -> None:
        """Let time pass."""
        assert milliseconds >= 0
        self._now += milliseconds
