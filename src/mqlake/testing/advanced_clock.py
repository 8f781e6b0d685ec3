"""A clock that tests put forward."""

from __future__ import annotations

from mqlake.storage.clock import SystemClock


class AdvancedClock:
    """This machine's clock, and as much more as it was put forward."""

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
        """Put it forward.

        Raises:
            ValueError: by less than nothing.
        """
        if not seconds >= 0:
            raise ValueError(f"a clock goes forward, not by {seconds} seconds")
        self._milliseconds += round(1000 * seconds)
