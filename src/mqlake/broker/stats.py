"""What went through a broker: in all, a second, within the last minute, hour and day.

Upstream: `BrokerStatsManager`, `StoreStatsService`, `BrokerStats`. What is put is not counted but
read off the ends of the queues; only what consumers get is counted.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from mqlake.broker.times import Times
from mqlake.protocol.bodies.stats import BrokerStats, StatsItem
from mqlake.remoting.slices import Job

TOPIC_PUT: Final = "TOPIC_PUT_NUMS"
GROUP_GET: Final = "GROUP_GET_NUMS"

_MINUTE, _HOUR, _DAY = (7, 1), (7, 60), (25, 360)
"""How many samples say what happened within a time, and each of how many looks is one of them."""

LOOK: Final = 10.0
"""Seconds between two looks at the counts."""

MOST_PAIRS: Final = 100_000
"""Groups with one topic each that are counted by themselves."""


class _Sample(NamedTuple):
    milliseconds: int
    total: int


class Series:
    """One count as it grows."""

    def __init__(self, at: int, count: int = 0) -> None:
        first = _Sample(at, count)
        self._samples = {every: deque([first], most) for most, every in (_MINUTE, _HOUR, _DAY)}
        self._looks = 0

    def look(self, at: int, count: int) -> None:
        """Note the count at a time in milliseconds; to be called every `LOOK` seconds."""
        self._looks += 1
        for every, samples in self._samples.items():
            if self._looks % every == 0:
                samples.append(_Sample(at, count))

    def within(self, every: int, at: int, count: int) -> StatsItem:
        """Return what came since the oldest sample, the count being what it is now."""
        first = self._samples[every][0]
        grown, elapsed = count - first.total, at - first.milliseconds
        return StatsItem(grown, grown * 1000 / elapsed if elapsed > 0 else 0.0, 0.0)


class Stats:
    """Counts of one broker.

    Attributes:
        got_total: messages that consumers were given since the start.
        missed: pulls that found no message.
        pulls: pulls that found some.
        put_times, get_times: how long puts took until they were answered, and reads of queues.
    """

    def __init__(
        self,
        ends: Callable[[], Mapping[tuple[str, int], int]],
        puts: Callable[[], int],
        milliseconds: Callable[[], int],
        queues: Callable[[str], int],
    ) -> None:
        """Begin to count.

        Args:
            ends: returns the end of each queue.
            puts: returns how many messages were put since the start.
            milliseconds: the clock.
            queues: returns how many queues a topic has.
        """
        self._ends, self._puts, self._now = ends, puts, milliseconds
        self._queues = queues
        self._got: Counter[tuple[str, str]] = Counter()
        self.missed = self.pulls = self.got_total = 0
        self.put_times, self.get_times = Times(), Times()
        self._at_start = Counter[str]()
        for (topic, _), end in ends().items():
            self._at_start[topic] += end
        now = self._looked = milliseconds()
        self._series: dict[tuple[str, str], Series] = {}
        self._whole = {name: Series(now) for name in ("put", "got", "missed", "pulls")}
        self._today: tuple[int, int] = _day(now)
        self._morning = self._yesterday = (0, 0)

    def got(self, group: str, topic: str, messages: int) -> None:
        """Count messages that a consumer of a group was given, 0 if there were none for it."""
        if messages:
            self.got_total += messages
            self.pulls += 1
            if (group, topic) in self._got or len(self._got) < MOST_PAIRS:
                self._got[group, topic] += messages
        else:
            self.missed += 1

    # Totals

    @property
    def put_total(self) -> int:
        """How many messages were put since the start."""
        return self._puts()

    @property
    def this_morning(self) -> tuple[int, int]:
        """What was put and got before today."""
        return self._morning

    @property
    def yesterday_morning(self) -> tuple[int, int]:
        """What was put and got before yesterday."""
        return self._yesterday

    # Rates

    def look(self) -> Job[None]:
        """Note all counts; to be done every `LOOK` seconds."""
        now = self._now()
        put = Counter[str]()
        for (topic, _), end in list(self._ends().items()):
            put[topic] += end
            yield
        for topic, count in put.items():
            # What nobody uses has no series.
            if (grown := count - self._at_start[topic]) or (TOPIC_PUT, topic) in self._series:
                self._of((TOPIC_PUT, topic)).look(now, grown)
            yield
        for (group, topic), count in list(self._got.items()):
            self._of((GROUP_GET, f"{topic}@{group}")).look(now, count)
            yield
        for name, count in self._wholes().items():
            self._whole[name].look(now, count)
        self._looked = now
        today = _day(now)
        if today != self._today:
            self._today, self._yesterday = today, self._morning
            self._morning = (self.put_total, self.got_total)

    def find(self, name: str, key: str) -> BrokerStats | None:
        """Return a statistic: TOPIC_PUT_NUMS of a topic, GROUP_GET_NUMS of "topic@group"."""
        count = self._count(name, key)
        if count is None:
            return None
        now = self._now()
        series = self._series.get((name, key)) or Series(self._looked)
        return BrokerStats(
            *(series.within(every, now, count) for _, every in (_MINUTE, _HOUR, _DAY))
        )

    def _count(self, name: str, key: str) -> int | None:
        """Return a count as it is now, None where there is none."""
        if name == GROUP_GET:
            topic, _, group = key.rpartition("@")
            return self._got.get((group, topic))
        ends = self._ends()
        found = [ends[key, each] for each in range(self._queues(key)) if (key, each) in ends]
        if name != TOPIC_PUT or not found:
            return None
        return sum(found) - self._at_start[key]

    def put_tps(self, topic: str) -> float:
        """Return how many messages a second were put to a topic in the last minute."""
        found = self.find(TOPIC_PUT, topic)
        return found.stats_minute.tps if found else 0.0

    def got_tps(self, group: str, topic: str) -> float:
        """Return how many messages of a topic a second a group was given in the last minute."""
        found = self.find(GROUP_GET, f"{topic}@{group}")
        return found.stats_minute.tps if found else 0.0

    def whole_tps(self, name: str) -> float:
        """Return the rate of "put", "got", "missed" or "pulls" in the last minute."""
        return self._whole[name].within(_MINUTE[1], self._now(), self._wholes()[name]).tps

    def _of(self, key: tuple[str, str]) -> Series:
        """Return a series; what is new has come since the last look."""
        if key not in self._series:
            self._series[key] = Series(self._looked)
        return self._series[key]

    def _wholes(self) -> dict[str, int]:
        return {
            "put": self.put_total,
            "got": self.got_total,
            "missed": self.missed,
            "pulls": self.pulls,
        }


def _day(milliseconds: int) -> tuple[int, int]:
    at = time.localtime(milliseconds / 1000)
    return at.tm_year, at.tm_yday
