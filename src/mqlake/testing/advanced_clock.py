"""A clock that tests advance."""

from __future__ import annotations

from mqlake.storage.clock import SystemClock


class AdvancedClock:
    """This machine's clock, plus the time by which it was advanced."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self._milliseconds = 0

    def milliseconds(self) -> int:
        """Return milliseconds since 1970."""
        return self._system.milliseconds() + self._milliseconds

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._system.monotonic() + self._milliseconds / 1000

    def advance(self, seconds: float) -> None:
        """Advance the clock.

        Raises:
            ValueError: the time is negative.
        """
        if not seconds >= 0:
            raise ValueError(f"a clock cannot go back: {seconds} seconds is negative")
        self._milliseconds += round(1000 * seconds)
