"""A probe in the event loop of another process: how long the loop was held up at most.

The probe is a timer. Between two of its ticks it measures the processor time that the loop's own
thread used: other processes of a busy machine may stretch the wall time, but not that. The figures
are in a file that both processes map, so that they can be read while the loop hangs.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import time
from pathlib import Path
from typing import NamedTuple

INTERVAL = 0.005
"""Seconds between two ticks of a loop that has nothing else to do."""
_FIGURES = struct.Struct("qddd")
"""Native: each is read and written at once, not byte by byte."""
_RESET_AT = _FIGURES.size
_SIZE = mmap.PAGESIZE


class Figures(NamedTuple):
    """What a probe has found since it was last reset.

    Attributes:
        ticks: how often it has ticked since the process began.
        last: `time.monotonic()` of the last tick.
        stall: longest processor time in seconds that the loop's thread used between two ticks.
        wall: longest wall time in seconds between two ticks, which a busy machine lengthens.
    """

    ticks: int
    last: float
    stall: float
    wall: float


class Probe:
    """The figures of a probe, as both processes see them.

    Args:
        path: the file that both map; created if missing or empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists() or not path.stat().st_size:
            path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._figures = mmap.mmap(file.fileno(), _SIZE)

    @property
    def figures(self) -> Figures:
        return Figures(*_FIGURES.unpack_from(self._figures))

    def reset(self) -> None:
        """Forget the longest stalls, at the next tick."""
        self._figures[_RESET_AT] = 1

    def settle(self, seconds: float = 60.0) -> Figures:
        """Wait until the loop has ticked twice from now on; return what it found.

        Raises:
            TimeoutError: the loop still hangs after `seconds`.
        """
        begin, until = self.figures.ticks, time.monotonic() + seconds
        while (found := self.figures).ticks < begin + 2:
            if time.monotonic() > until:
                raise TimeoutError(f"the event loop has hung for {seconds:g} s")
            time.sleep(INTERVAL)
        return found

    # In the process that is looked at

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tick in an event loop until it ends."""
        self._loop = loop
        self._wall, self._cpu = time.monotonic(), time.thread_time()
        loop.call_soon(self._tick)

    def _tick(self) -> None:
        wall, cpu = time.monotonic(), time.thread_time()
        ticks, _, stall, longest = self.figures
        if self._figures[_RESET_AT]:
            self._figures[_RESET_AT] = 0
            stall = longest = 0.0
        else:
            stall, longest = max(stall, cpu - self._cpu), max(longest, wall - self._wall)
        _FIGURES.pack_into(self._figures, 0, ticks + 1, wall, stall, longest)
        self._wall, self._cpu = wall, cpu
        self._loop.call_later(INTERVAL, self._tick)
