"""The rates of a cluster since the console looks at it."""

from __future__ import annotations

from collections import deque
from typing import Final

_POINTS: Final = 720
"""An hour, if a page refreshes itself."""


class ClusterRates:
    """Points for a plot; the oldest go first."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float, float]] = deque(maxlen=_POINTS)

    def add(self, at: int, into: float, out: float) -> None:
        """Add a point.

        Args:
            at: milliseconds.
            into, out: messages a second.
        """
        self._points.append((at // 1000, round(into, 2), round(out, 2)))

    @property
    def columns(self) -> list[list[float]]:
        """Times in seconds, and the rates in and out; empty for fewer than two points."""
        if len(self._points) < 2:
            return []
        return [list(column) for column in zip(*self._points, strict=True)]
