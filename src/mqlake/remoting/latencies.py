"""How long requests take until their answers, and a log line for each slow one.

Upstream: `RemotingMetricsManager` (`rocketmq_rpc_latency`).
"""

from __future__ import annotations

import logging
from collections import Counter
from time import perf_counter
from typing import Final, NamedTuple

from mqlake.metrics.histogram import Histogram
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command

BOUNDS: Final = (1.0, 3.0, 5.0, 7.0, 10.0, 100.0, 1000.0, 2000.0, 3000.0)
"""Upper bounds of RocketMQ's histogram, milliseconds."""
SUCCESS: Final = "success"
ONEWAY: Final = "oneway"
UNWRITTEN: Final = "write_channel_failed"

_WINDOW: Final = 10.0
"""Seconds."""
_MOST: Final = 20
"""Maximum log lines in a window; further slow requests are only counted."""

_log: Final = logging.getLogger("mqlake.remoting")


class RequestKind(NamedTuple):
    """What one histogram is about.

    Attributes:
        request_code, response_code: of `RequestCode` and `ResponseCode`, or other numbers.
        was_suspended: whether the requests waited for messages.
        result: SUCCESS, ONEWAY, or UNWRITTEN.
    """

    request_code: int
    response_code: int = ResponseCode.SUCCESS
    was_suspended: bool = False
    result: str = SUCCESS


class Started(dict[int, float]):
    """The requests of one connection that are not answered yet, by their opaques: since when, as
    `perf_counter` has it; negative for those that wait for messages.
    """

    def suspend(self, opaque: int) -> None:
        """Note that a request waits for messages."""
        if opaque in self:
            self[opaque] = -abs(self[opaque])


class Latencies:
    """The durations of one server's requests, from their start until their answer is written.

    Args:
        slow: milliseconds from which a request is logged; 0 for never. A request that waited for
            messages is not slow.

    Attributes:
        slow: milliseconds from which a request is logged.
        slow_requests: how many requests of each code took that long.
    """

    def __init__(self, slow: float = 0) -> None:
        self.slow = slow or float("inf")
        self._found: dict[tuple[int, int, bool, str], Histogram] = {}
        self._window, self._lines = 0.0, 0
        self.slow_requests = Counter[int]()

    def of(self, kind: RequestKind) -> Histogram:
        """Return the histogram of requests of one kind, in milliseconds."""
        found = self._found.get(kind)
        if found is None:
            found = self._found[kind] = Histogram(BOUNDS)
        return found

    def all(self) -> dict[RequestKind, Histogram]:
        """Return copies of the histograms of all kinds of which there were requests."""
        return {
            RequestKind(*kind): found.copy() for kind, found in self._found.items() if found.count
        }

    def add(self, kind: RequestKind, seconds: float, count: int, address: str) -> None:
        """Note requests that were served together.

        Args:
            address: of the client.
        """
        self.add_to(self.of(kind), kind, seconds, count, address)

    def add_to(
        self, times: Histogram, kind: RequestKind, seconds: float, count: int, address: str
    ) -> None:
        """Note requests that were served together, in the histogram of their kind (`of`)."""
        took = seconds * 1000
        times.add(took, count)
        if took >= self.slow and not kind.was_suspended:
            self.tell(kind, took, count, address)

    def answered(
        self, request: Command, response_code: int, result: str, started: Started, address: str
    ) -> None:
        """Note a request that is answered now.

        Args:
            started: of its connection.
        """
        begun = started.pop(request.opaque, None)
        if begun is None:
            return  # Another request with this number was answered before.
        was_suspended = begun < 0
        took = (perf_counter() - abs(begun)) * 1000
        # A tuple is equal to the `RequestKind` with these values, and made in a third of the time.
        found = self._found.get((request.code, response_code, was_suspended, result))
        if found is None:
            found = self.of(RequestKind(request.code, response_code, was_suspended, result))
        found.add(took)
        if took >= self.slow and not was_suspended:
            kind = RequestKind(request.code, response_code, was_suspended, result)
            self.tell(kind, took, 1, address, _about(request))

    def tell(
        self, kind: RequestKind, took: float, count: int, address: str, about: str = ""
    ) -> None:
        """Log slow requests, unless there were too many.

        Args:
            took: milliseconds.
        """
        self.slow_requests[kind.request_code] += count
        now = perf_counter()
        if now - self._window >= _WINDOW:
            if self._lines > _MOST:
                _log.warning("%d more requests were slow", self._lines - _MOST)
            self._window, self._lines = now, 0
        self._lines += count
        if self._lines - count < _MOST:
            _log.warning(
                "slow: %s %s: %d ms until %s%s%s",
                address,
                name_of(RequestCode, kind.request_code),
                round(took),
                name_of(ResponseCode, kind.response_code),
                f", {count} requests together" if count > 1 else "",
                about,
            )


def name_of(codes: type[RequestCode | ResponseCode], code: int) -> str:
    """Return the name of a code in lower case, as RocketMQ's labels have it; else its number."""
    try:
        return codes(code).name.lower()
    except ValueError:
        return str(code)


def _about(request: Command) -> str:
    """Return what a request names, if that is known without another look at its header."""
    fields: object = request.raw_fields
    names = ("topic", "consumer_group", "producer_group")
    found = [(name, getattr(fields, name, None)) for name in names]
    return "".join(f", {name} {value}" for name, value in found if isinstance(value, str))
