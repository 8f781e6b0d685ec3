"""What a store does by the clock: flush, checkpoint, persist, trim, deliver.

Upstream gives each of these a thread (`FlushRealTimeService`, `FlushConsumeQueueService`,
`CleanCommitLogService` …). Here each says what falls due, and the facade runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mqlake.storage.clock import Clock

TICK = 0.001
"""Seconds after a put until it is dispatched, unless more puts bring that forward."""

LOADED_TICK = 0.004
"""The same for a store that was dispatched just before: a tick costs much the same for one message
and for a hundred."""

LOOK_INTERVAL = 0.05
"""Seconds between looks at what is due."""


class Job(Protocol):
    """Work that waits for the disk. The store goes on meanwhile."""

    def run(self) -> None:
        """Do the waiting, in any thread.

        Raises:
            DiskError: the disk failed.
        """
        ...

    def done(self) -> None:
        """Note in the store's thread that `run` succeeded."""
        ...


@dataclass
class Service:
    """One thing that is done again and again.

    Attributes:
        interval: milliseconds from one start to the next.
        start: called in the store's thread; returns what is to wait for the disk, None where there
            is nothing (more) to wait for.
    """

    interval: int
    start: Callable[[], Job | None]
    last: float = 0.0


class Services:
    """The services of one store, and which of them is due. For the store's thread."""

    def __init__(self, clock: Clock, services: list[Service]) -> None:
        self._clock = clock
        self._services = services
        now = clock.monotonic()
        for service in services:
            service.last = now

    def due(self) -> Job | None:
        """Start what is due; return the first job that has to wait for the disk.

        To be called again once that job is over, until it returns None.
        """
        now = self._clock.monotonic()
        for service in self._services:
            if (now - service.last) * 1000 >= service.interval:
                service.last = now
                if (job := service.start()) is not None:
                    return job
        return None
