"""What happened to pops and their check points since the start, and how many wait.

Upstream: `PopMetricsManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mqlake.metrics.counts import Counts, Labels
from mqlake.metrics.histogram import Histogram

_BOUNDS: Final = (1.0, 10.0, 100.0, 1000.0, 2000.0, 3000.0)
"""Upper bounds of RocketMQ's histogram, milliseconds."""
CHECK_POINT, ACK = "CK", "ACK"


class ReviveBehind(NamedTuple):
    """How far a queue of a revive topic is behind.

    Attributes:
        messages: check points and acknowledgements that are not finished.
        oldest: store time of the first of them, milliseconds; 0 without one.
    """

    queue_id: int
    messages: int
    oldest: int


class CountsOfExisting(Counts):
    """Totals by group, topic and more, of groups and topics that exist.

    A revive topic has check points of groups and topics that were deleted since. Otherwise those
    would be counted again after their totals were dropped, and would use up the number of samples.

    Args:
        exists: returns whether a group and a topic exist.
    """

    def __init__(self, exists: Callable[[str, str], bool]) -> None:
        super().__init__()
        self._exists = exists

    def add(self, labels: Labels, count: int = 1) -> None:
        """Count things that have these labels, if their group and topic exist."""
        if self._exists(labels[0], labels[1]):
            super().add(labels, count)


class PopCounts:
    """The numbers of one broker.

    Args:
        exists: returns whether a group and a topic exist; others are not counted.

    Attributes:
        put: check points and acknowledgements that were put to the revive topic, by group, topic,
            CHECK_POINT or ACK, and the status of the put.
        read: those that were read there, by group, topic, CHECK_POINT or ACK, and queue id.
        retried: messages that were put to retry topics, by group, topic and the status of the put.
        look_times: milliseconds of each look at the pops in memory.
        in_memory: returns how many pops have unsettled messages, and how many wait for the offsets
            of their groups.
        behind: returns how far each queue of the broker's revive topic is behind.
    """

    def __init__(self, exists: Callable[[str, str], bool]) -> None:
        self.put = CountsOfExisting(exists)
        self.read = CountsOfExisting(exists)
        self.retried = CountsOfExisting(exists)
        self.look_times = Histogram(_BOUNDS)
        self.in_memory: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.behind: Callable[[], Sequence[ReviveBehind]] = lambda: ()

    def count_with(
        self, in_memory: Callable[[], tuple[int, int]], behind: Callable[[], Sequence[ReviveBehind]]
    ) -> None:
        """Count what waits by these functions; until then, nothing does."""
        self.in_memory, self.behind = in_memory, behind
