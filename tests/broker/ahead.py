"""A clock that goes on as this machine's does, and that a test puts forward."""

from __future__ import annotations

from mqlake.storage.clock import SystemClock


class AheadClock(SystemClock):
    """Lets a test wait for times that no pause of the test itself reaches."""

    _ahead = 0

    def milliseconds(self) -> int:
        return super().milliseconds() + self._ahead

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead / 1000

    def forward(self, milliseconds: int) -> None:
        """Let so much time be over."""
        self._ahead += milliseconds
