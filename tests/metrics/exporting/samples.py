"""Samples of each kind, and a program that has them."""

from __future__ import annotations

from collections.abc import Mapping

from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import Sample, counter, gauge, histogram

SIZE = gauge("demo_size", "A size.", "bytes")
SENT = counter("demo_sent_total", "What was sent.", labels=("topic",))
TIME = histogram("demo_time", "How long it took.", "milliseconds", ("topic",))


class Program:
    """A program whose totals grow."""

    labels: Mapping[str, str] = {"node_id": "a"}

    def __init__(self) -> None:
        self.size, self.sent = 7.5, 0
        self.times = Histogram((1.0, 10.0))
        self.is_broken = False

    def not_ready(self) -> str | None:
        return None

    async def samples(self) -> list[Sample]:
        if self.is_broken:
            raise RuntimeError("no samples")
        return [
            Sample(SIZE, self.size),
            Sample(SENT, self.sent, ("T",)),
            Sample(TIME, self.times.copy(), ("T",)),
        ]
