"""How many calls were answered with which code, how long they took, and log lines of slow ones."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from time import perf_counter
from typing import Final

from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import Sample
from mqlake.remoting.latencies import BOUNDS
from mqlake.remoting.metrics import calls

_WINDOW: Final = 10.0
"""Seconds."""
_MOST: Final = 20
"""Maximum log lines in a window; further slow calls are only counted."""

_log: Final = logging.getLogger("mqlake.proxy")


class CallCounts:
    """Counts the calls of one service.

    Args:
        slow: milliseconds from which a call is logged; 0 for never.

    Attributes:
        slow_calls: how many calls took that long.
    """

    def __init__(self, slow: float = 0) -> None:
        self._slow = slow / 1000 or float("inf")
        self._calls: Counter[tuple[str, str]] = Counter()
        self._times: dict[tuple[str, int], Histogram] = {}
        self._window, self._lines = 0.0, 0
        self.slow_calls = 0

    @property
    def calls(self) -> Mapping[tuple[str, str], int]:
        """The number of calls that have ended, by method and code, or name of the gRPC status."""
        return self._calls

    def samples(self) -> list[Sample]:
        """Return what was counted, as metrics."""
        times = {kind: found.copy() for kind, found in self._times.items()}
        return calls.samples(self._calls, times, self.slow_calls)

    def add(self, method: str, code: int, seconds: float | None, address: str) -> None:
        """Count a call that is answered.

        Args:
            code: of its status.
            seconds: how long it took; None if it may have waited for messages.
            address: of the client.
        """
        self._calls[method, str(code)] += 1
        if seconds is None:
            return
        found = self._times.get((method, code))
        if found is None:
            found = self._times[method, code] = Histogram(BOUNDS)
        found.add(seconds * 1000)
        if seconds >= self._slow:
            self._tell(method, code, seconds, address)

    def add_unanswered(self, method: str, status: str) -> None:
        """Count a call that ended without an answer.

        Args:
            status: the name of its gRPC status.
        """
        self._calls[method, status] += 1

    def _tell(self, method: str, code: int, seconds: float, address: str) -> None:
        self.slow_calls += 1
        now = perf_counter()
        if now - self._window >= _WINDOW:
            self._window, self._lines = now, 0
        self._lines += 1
        if self._lines <= _MOST:
            _log.warning(
                "slow: %s %s: %d ms until %d", address, method, round(seconds * 1000), code
            )
