"""What replicas say about themselves."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence

from mqlake.metrics.metric import Sample, counter, gauge, histogram
from mqlake.metrics.observed import labels_of
from mqlake.replica.replica import Replica
from mqlake.replica.status import ReplicaStatus

_LABELS = ("master",)

FOLLOWS = gauge(
    "mqlake_replica_follows", "1 while the master's log is copied, else 0.", "", _LABELS
)
LAG = gauge(
    "mqlake_replica_lag", "Bytes by which the copy lags the master's log.", "bytes", _LABELS
)
END = gauge("mqlake_replica_end_offset", "Physical offset at which the copy ends.", "", _LABELS)
START = gauge(
    "mqlake_replica_start_offset", "Physical offset at which the copy begins.", "", _LABELS
)
RECEIVED = counter(
    "mqlake_replica_received_total", "What was received from the master.", "bytes", _LABELS
)
ARRIVAL = histogram(
    "mqlake_replica_arrival_latency",
    "Time from the store time of a message to its arrival, of the last message of each part.",
    "milliseconds",
    _LABELS,
)


def samples_of(status: ReplicaStatus) -> list[Sample]:
    """Return what a status says."""
    labels = (status.master or status.address or "",)
    found = [
        Sample(FOLLOWS, int(status.problem is None), labels),
        Sample(START, status.min_offset, labels),
        Sample(END, status.max_offset, labels),
        Sample(RECEIVED, status.received, labels),
    ]
    if status.lag_bytes is not None:
        found.append(Sample(LAG, status.lag_bytes, labels))
    return found


def samples(replicas: Iterable[Replica]) -> list[Sample]:
    """Return the samples of replicas; to be called on their event loop."""
    found: list[Sample] = []
    for each in replicas:
        status = each.progress()
        found += samples_of(status)
        found.append(Sample(ARRIVAL, each.arrivals, (status.master or status.address or "",)))
    return found


class ObservedReplica:
    """One replica, as it is monitored."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.labels: Mapping[str, str] = labels_of("replica", socket.gethostname(), "")

    def not_ready(self) -> str | None:
        """Return why nothing is copied now; None if the master is followed."""
        return self._replica.progress().problem

    async def samples(self) -> Sequence[Sample]:
        """Return all samples."""
        return samples([self._replica])
