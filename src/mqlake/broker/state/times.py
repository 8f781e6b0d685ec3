"""Durations: the longest, and a histogram."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

_LIMITS: Final = (
    *(0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1000, 2000, 3000, 4000, 5000, 10_000),
)
"""Upper bounds of the histogram in milliseconds; the last one has no limit."""

_SHOWN: Final = (
    ("<=0ms", 1),
    ("0~10ms", 10),
    ("10~50ms", 50),
    ("50~100ms", 100),
    ("100~200ms", 200),
    ("200~500ms", 500),
    ("500ms~1s", 1000),
    ("1~2s", 2000),
    ("2~3s", 3000),
    ("3~4s", 4000),
    ("4~5s", 5000),
    ("5~10s", 10_000),
    ("10s~", float("inf")),
)
"""The bounds that RocketMQ shows (`StoreStatsService`); it rounds milliseconds down."""


class Durations:
    """Durations since the start of a broker.

    Attributes:
        longest: seconds.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._counts = [0] * (len(_LIMITS) + 1)

    def add(self, seconds: float, count: int = 1) -> None:
        """Count operations that took so long."""
        self._counts[bisect_left(_LIMITS, seconds * 1000)] += count
        if seconds > self.longest:
            self.longest = seconds

    def within(self, share: float) -> float:
        """Return milliseconds within which this share of all operations was done, 0.0 if there were
        none.
        """
        wanted, seen = share * sum(self._counts), 0
        for limit, count in zip((*_LIMITS, self.longest * 1000), self._counts, strict=True):
            seen += count
            if count and seen >= wanted:
                return min(limit, self.longest * 1000)
        return 0.0

    def spread(self) -> str:
        """Return the histogram as RocketMQ shows it."""
        parts: list[str] = []
        start = 0
        for name, limit in _SHOWN:
            end = bisect_left(_LIMITS, limit) + 1
            parts.append(f"[{name}]:{sum(self._counts[start:end])}")
            start = end
        return " ".join(parts) + " "
