"""What a producer has sent, and how long that took."""

from __future__ import annotations

from typing import Final

from mqlake.metrics.counts import Counts, Histograms, samples_of
from mqlake.metrics.metric import Sample, counter, gauge, histogram

_OF_TOPIC = ("producer_group", "topic")
BOUNDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Seconds."""

SENT = counter(
    "mqlake_client_sent_messages_total", "Messages that a broker has acknowledged.", "", _OF_TOPIC
)
SIZE = counter(
    "mqlake_client_sent_total",
    "Bodies and properties of acknowledged messages, as sent.",
    "bytes",
    _OF_TOPIC,
)
ERRORS = counter(
    "mqlake_client_send_errors_total",
    "Sends that raised an error, by its class.",
    "",
    (*_OF_TOPIC, "error"),
)
RETRIES = counter("mqlake_client_send_retries_total", "Tries after the first one.", "", _OF_TOPIC)
TIME = histogram(
    "mqlake_client_send_time", "Time of a send, all tries together.", "seconds", _OF_TOPIC
)
IN_FLIGHT = gauge(
    "mqlake_client_sends_in_flight", "Sends that are not answered yet.", "", ("producer_group",)
)


class SendStatistics:
    """Counts of one producer, since its creation. For one thread."""

    def __init__(self) -> None:
        self._sent, self._size, self._errors = Counts(), Counts(), Counts()
        self._retries, self._times = Counts(), Histograms(BOUNDS)

    def sent(self, topic: str, count: int, size: int, seconds: float) -> None:
        """Count messages that are acknowledged."""
        labels = (topic,)
        self._sent.add(labels, count)
        self._size.add(labels, size)
        self._times.add(labels, seconds)

    def failed(self, topic: str, error: BaseException) -> None:
        """Count a send that has failed."""
        self._errors.add((topic, type(error).__name__))

    def retried(self, topic: str, tries: int) -> None:
        """Count tries after the first one."""
        self._retries.add((topic,), tries)

    def samples(self, group: str, in_flight: int) -> list[Sample]:
        """Return all samples of the producer."""
        found = samples_of(
            [
                (SENT, self._sent),
                (SIZE, self._size),
                (ERRORS, self._errors),
                (RETRIES, self._retries),
                (TIME, self._times),
            ],
            before=(group,),
        )
        return [*found, Sample(IN_FLIGHT, in_flight, (group,))]
