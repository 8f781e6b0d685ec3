"""Who is connected to a server, and what it serves. Upstream: `RemotingMetricsManager`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from mqlake.metrics.metric import Sample, counter, gauge, histogram
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.remoting.connection import Peer
from mqlake.remoting.latencies import Latencies, name_of

REMOTING = "remoting"
_TOO_MANY = "TOO_MANY_IN_FLIGHT"

LATENCY = histogram(
    "rocketmq_rpc_latency",
    "Time from the start of a request until its answer.",
    "milliseconds",
    ("protocol_type", "request_code", "response_code", "is_long_polling", "result"),
)
REQUESTS = counter(
    "mqlake_requests_total",
    "Requests that were served, without those that a check refused.",
    labels=("request_code",),
)
REFUSED = counter(
    "mqlake_refused_requests_total",
    "Valid requests that were turned away.",
    labels=("reason",),
)
SLOW = counter(
    "mqlake_slow_requests_total",
    "Requests that took at least `slowRequestMillis`.",
    labels=("request_code",),
)
CONNECTIONS = gauge("mqlake_connections", "Open connections.")


class MeasuredServer(Protocol):
    """What a server says about its connections and requests."""

    @property
    def peers(self) -> Collection[Peer]: ...

    @property
    def served(self) -> Mapping[int, int]: ...

    @property
    def refused(self) -> int: ...

    @property
    def latencies(self) -> Latencies | None: ...


def samples(server: MeasuredServer) -> list[Sample]:
    """Return what every server counts, since its start."""
    found = [
        Sample(CONNECTIONS, len(server.peers)),
        *(
            Sample(REQUESTS, count, (name_of(RequestCode, code),))
            for code, count in server.served.items()
            if count
        ),
    ]
    if server.refused:
        found.append(Sample(REFUSED, server.refused, (_TOO_MANY,)))
    if server.latencies is not None:
        found += _of_requests(server.latencies)
    return found


def _of_requests(latencies: Latencies) -> list[Sample]:
    found, slow = list[Sample](), latencies.slow_requests
    times_of = latencies.all()
    for code in sorted({kind.request_code for kind in times_of}):
        found.append(Sample(SLOW, slow[code], (name_of(RequestCode, code),)))
    for kind, times in times_of.items():
        labels = (
            REMOTING,
            name_of(RequestCode, kind.request_code),
            name_of(ResponseCode, kind.response_code),
            str(kind.was_suspended).lower(),
            kind.result,
        )
        found.append(Sample(LATENCY, times, labels))
    return found
