"""The time, injected, so that tests may set it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where a store gets the time from."""

    def milliseconds(self) -> int:
        """Return milliseconds since 1970, as records and files are stamped with them."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for intervals."""
        ...


class SystemClock:
    """This machine's clock."""

    def milliseconds(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
