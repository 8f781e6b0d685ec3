"""Positions that may be stored only once the log is durable up to a physical offset.

A position that says "this was put" must not outlive what was put, or else a power loss loses a
message permanently. (RocketMQ stores it at once, whatever the log's state is.)
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

P = TypeVar("P")


class AfterFlush(Generic[P]):
    """Positions in the order of the physical offsets that they wait for."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, P]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, physical_offset: int, position: P) -> None:
        """Let a position wait until the log is durable before a physical offset."""
        self._waiting.append((physical_offset, position))

    def take(self, flushed: int) -> P | None:
        """Return the newest position that `flushed` releases, or None without one."""
        newest: P | None = None
        while self._waiting and self._waiting[0][0] <= flushed:
            newest = self._waiting.popleft()[1]
        return newest
