"""How fast a consumer reads and handles messages (upstream: `ConsumerStatsManager`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass
from typing import Final

from mqlake.metrics.metric import MetricFamily, Sample, counter
from mqlake.protocol.bodies.running_info import ConsumeStatus

_OF_TOPIC = ("consumer_group", "topic")
PULLS = counter(
    "mqlake_client_pulls_total", "Answers to pulls and pops that had messages.", "", _OF_TOPIC
)
RECEIVED = counter("mqlake_client_received_messages_total", "Received messages.", "", _OF_TOPIC)
FINISHED = counter(
    "mqlake_client_acknowledged_messages_total", "Acknowledged messages.", "", _OF_TOPIC
)
HANDLING = counter(
    "mqlake_client_handling_total",
    "Time from receiving messages to acknowledging them, summed.",
    "seconds",
    _OF_TOPIC,
)
FAILED = counter(
    "mqlake_client_failed_messages_total", "Messages to be redelivered.", "", _OF_TOPIC
)
READ: Final = (PULLS, RECEIVED)
"""What a `PullConsumer` counts."""
POPPED: Final = (*READ, FINISHED, HANDLING)
"""What a `SimpleConsumer` counts: whether a message is to be redelivered, only its caller knows."""

_MINUTE = 60.0
_HOUR = 3600.0


@dataclass
class _TopicTotals:
    pulls: int = 0
    pull_seconds: float = 0.0
    pulled: int = 0
    finished: int = 0
    handling_seconds: float = 0.0
    failed: int = 0


class Statistics:
    """Counts of each topic, and rates over the last minute or two.

    Args:
        now: a clock in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._totals: dict[str, _TopicTotals] = {}
        # One snapshot a minute, for an hour; the first one is of the start.
        self._snapshots: deque[tuple[float, dict[str, _TopicTotals]]] = deque([(now(), {})])

    def pulled(self, topic: str, count: int, seconds: float) -> None:
        """Count a pull that took some seconds, and its messages; nothing without any."""
        if not count:
            return
        totals = self._of(topic)
        totals.pulls += 1
        totals.pull_seconds += seconds
        totals.pulled += count

    def finished(self, topic: str, seconds: float, count: int = 1) -> None:
        """Count messages that were acknowledged after some seconds."""
        totals = self._of(topic)
        totals.finished += count
        totals.handling_seconds += count * seconds

    def failed(self, topic: str, count: int = 1) -> None:
        """Count messages that have to be redelivered."""
        self._of(topic).failed += count

    def sample(self) -> None:
        """Save the counts of each minute; it must be called more often than that."""
        now = self._now()
        if now < self._snapshots[-1][0] + _MINUTE:
            return
        self._snapshots.append((now, {topic: copy(each) for topic, each in self._totals.items()}))
        while self._snapshots[1][0] <= now - _HOUR:
            self._snapshots.popleft()

    def samples(
        self, group: str, wanted: Collection[MetricFamily] = (*POPPED, FAILED)
    ) -> list[Sample]:
        """Return the counts of all topics, since the start."""
        return [
            Sample(metric, value, (group, topic))
            for topic, totals in list(self._totals.items())
            for metric, value in (
                (PULLS, totals.pulls),
                (RECEIVED, totals.pulled),
                (FINISHED, totals.finished),
                (HANDLING, totals.handling_seconds),
                (FAILED, totals.failed),
            )
            if metric in wanted
        ]

    def status(self, topic: str) -> ConsumeStatus:
        """Return the rates of a topic."""
        totals, nothing, now = self._of(topic), _TopicTotals(), self._now()
        recent = next(
            (each for each in reversed(self._snapshots) if each[0] <= now - _MINUTE),
            self._snapshots[0],
        )
        before, seconds = recent[1].get(topic, nothing), max(now - recent[0], 0.001)
        handling_seconds = totals.handling_seconds - before.handling_seconds
        pulls, finished = totals.pulls - before.pulls, totals.finished - before.finished
        return ConsumeStatus(
            pull_rt=1000 * (totals.pull_seconds - before.pull_seconds) / max(pulls, 1),
            pull_tps=(totals.pulled - before.pulled) / seconds,
            consume_rt=1000 * handling_seconds / max(finished, 1),
            consume_ok_tps=finished / seconds,
            consume_failed_tps=(totals.failed - before.failed) / seconds,
            consume_failed_msgs=totals.failed - self._snapshots[0][1].get(topic, nothing).failed,
        )

    def _of(self, topic: str) -> _TopicTotals:
        found = self._totals.get(topic)
        if found is None:
            found = self._totals[topic] = _TopicTotals()
        return found
