"""What the gRPC service of a broker or a proxy serves, beside the requests of remoting."""

from __future__ import annotations

from collections.abc import Mapping

from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import Sample, counter, gauge
from mqlake.remoting.metrics.requests import LATENCY

_GRPC = "grpc"

CALLS = counter(
    "mqlake_grpc_calls_total",
    "Ended gRPC calls, by method and by the code of the answer; or by the name of the gRPC status,"
    " without an answer.",
    labels=("method", "code"),
)
CONNECTIONS = gauge("mqlake_grpc_connections", "Open connections of gRPC clients.")
CLIENTS = gauge("mqlake_grpc_clients", "gRPC clients that have sent their settings.")
SLOW_CALLS = counter(
    "mqlake_grpc_slow_calls_total",
    "gRPC calls that took at least `slowRequestMillis`.",
)


def samples(
    calls: Mapping[tuple[str, str], int], times: Mapping[tuple[str, int], Histogram], slow: int
) -> list[Sample]:
    """Return what a service counts, since its start.

    Args:
        calls: how many have ended, by method and code.
        times: how long those took that never wait for messages, in milliseconds.
        slow: how many were slow.
    """
    found = [Sample(SLOW_CALLS, slow)]
    found += [Sample(CALLS, count, (name, code)) for (name, code), count in calls.items()]
    for (name, code), histogram in times.items():
        found.append(Sample(LATENCY, histogram, (_GRPC, name, str(code), "false", "success")))
    return found
