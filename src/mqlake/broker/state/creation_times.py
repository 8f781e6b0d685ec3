"""How long requests that create topics and consumer groups take.

Upstream: `BrokerMetricsManager.getTopicCreateExecuteTime`, `getConsumerGroupCreateExecuteTime`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from mqlake.metrics.counts import Histograms
from mqlake.protocol.naming import SYSTEM_GROUP_PREFIX

_BOUNDS: Final = (10, 100, 1000, 3000, 5000)
"""Upper bounds, in milliseconds."""


class CreationTimes:
    """Durations since the start, by whether a request succeeded, and is about a system name.

    Attributes:
        topics, groups: milliseconds. A request about several names counts once.
    """

    def __init__(self) -> None:
        self.topics, self.groups = Histograms(_BOUNDS), Histograms(_BOUNDS)

    @contextmanager
    def of_topic(self, *, is_system: bool) -> Generator[None]:
        """Measure a request about topics."""
        with _measured(self.topics, is_system=is_system):
            yield

    @contextmanager
    def of_group(self, name: str = "") -> Generator[None]:
        """Measure a request about a group, or about several."""
        with _measured(self.groups, is_system=name.startswith(SYSTEM_GROUP_PREFIX)):
            yield


@contextmanager
def _measured(times: Histograms, *, is_system: bool) -> Generator[None]:
    begin, status = perf_counter(), "failure"
    try:
        yield
        status = "success"
    finally:
        labels = status, "true" if is_system else "false"
        times.add(labels, (perf_counter() - begin) * 1000)
