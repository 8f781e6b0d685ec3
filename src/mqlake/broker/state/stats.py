"""Throughput of a broker: totals, and rates per second, minute, hour and day.

Upstream: `BrokerStatsManager`, `StoreStatsService`, `BrokerStats`. Messages that are put are not
counted: their numbers are the ends of the queues, and their sizes are in the queues' entries.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from mqlake.broker.state.times import Durations
from mqlake.errors import StoreError
from mqlake.metrics.histogram import Histogram
from mqlake.protocol.bodies.stats import BrokerStats, StatsItem
from mqlake.remoting.slices import Job

TOPIC_PUT: Final = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE: Final = "TOPIC_PUT_SIZE"
GROUP_GET: Final = "GROUP_GET_NUMS"
GROUP_GET_SIZE: Final = "GROUP_GET_SIZE"
SEND_BACK: Final = "SNDBCK_PUT_NUMS"
DEAD_LETTERS: Final = "SNDBCK2DLQ_TIMES"
BROKER_PUT: Final = "BROKER_PUT_NUMS"
BROKER_GET: Final = "BROKER_GET_NUMS"

_MINUTE, _HOUR, _DAY = (7, 1), (7, 60), (25, 360)
"""The number of samples for each period, and the number of checks between two samples."""

LOOK: Final = 10.0
"""Seconds between two samples of the counts."""

MOST_PAIRS: Final = 100_000
"""Maximum number of groups with one topic each that are counted separately."""

MOST_ENTRIES: Final = 65_536
"""Queue entries whose sizes are added up in one call."""

SIZES: Final = (1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
"""Upper bounds of the sizes of messages, in bytes, for metrics."""


class _CountSample(NamedTuple):
    milliseconds: int
    total: int


class Series:
    """One growing count."""

    def __init__(self, at: int, count: int = 0) -> None:
        first = _CountSample(at, count)
        self._samples = {every: deque([first], most) for most, every in (_MINUTE, _HOUR, _DAY)}
        self._looks = 0

    def look(self, at: int, count: int) -> None:
        """Note the count at a time in milliseconds; to be called every `LOOK` seconds."""
        self._looks += 1
        for every, samples in self._samples.items():
            if self._looks % every == 0:
                samples.append(_CountSample(at, count))

    def within(self, every: int, at: int, count: int) -> StatsItem:
        """Return the increase since the oldest sample, given the current count."""
        first = self._samples[every][0]
        grown, elapsed = count - first.total, at - first.milliseconds
        return StatsItem(grown, grown * 1000 / elapsed if elapsed > 0 else 0.0, 0.0)


class Stats:
    """Counts of one broker.

    Attributes:
        got_total: messages that consumers received since the start.
        missed: pulls that found no message.
        pulls: pulls that found messages.
        put_times, get_times: durations of puts until their answer, and of reads of queues.
        sizes: how large messages were that were put to a topic since the start, until the last
            sample.
    """

    def __init__(
        self,
        ends: Callable[[], Mapping[tuple[str, int], int]],
        puts: Callable[[], int],
        milliseconds: Callable[[], int],
        queues: Callable[[str], int],
        sizes: Callable[[str, int, int, int, Histogram], int],
    ) -> None:
        """Start to count.

        Args:
            ends: returns the end of each queue.
            puts: returns how many messages were put since the start.
            milliseconds: the clock.
            queues: returns how many queues a topic has.
            sizes: returns the bytes of the records between two offsets of a topic's queue, and
                adds each size to a histogram.
        """
        self._ends, self._puts, self._now = ends, puts, milliseconds
        self._queues, self._stored_bytes = queues, sizes
        self.sizes: dict[str, Histogram] = {}
        self._counts = {
            name: Counter[str]()
            for name in (GROUP_GET, GROUP_GET_SIZE, SEND_BACK, DEAD_LETTERS, TOPIC_PUT_SIZE)
        }
        self._measured = dict(ends())
        self.missed = self.pulls = self.got_total = 0
        self.put_times, self.get_times = Durations(), Durations()
        self._at_start = Counter[str]()
        for (topic, _), end in ends().items():
            self._at_start[topic] += end
        now = self._looked = milliseconds()
        self._series: dict[tuple[str, str], Series] = {}
        self._whole = {name: Series(now) for name in ("put", "got", "missed", "pulls")}
        self._today: tuple[int, int] = _day(now)
        self._morning = self._yesterday = (0, 0)

    def got(self, group: str, topic: str, messages: int, size: int, pulls: int = 1) -> None:
        """Count messages that a consumer of a group received, 0 if there were none for it.

        Args:
            size: the bytes of their records.
            pulls: how many pulls they answer.
        """
        if messages:
            self.got_total += messages
            self.pulls += pulls
            key = f"{topic}@{group}"
            self._add(GROUP_GET, key, messages)
            self._add(GROUP_GET_SIZE, key, size)
        else:
            self.missed += 1

    def sent_back(self, group: str, topic: str) -> None:
        """Count a message of a topic that a consumer of a group could not process."""
        self._add(SEND_BACK, f"{topic}@{group}", 1)

    def dead_letter(self, group: str, topic: str) -> None:
        """Count a message of a topic that was put to the dead-letter topic of a group."""
        self._add(DEAD_LETTERS, f"{topic}@{group}", 1)

    def _add(self, name: str, key: str, count: int) -> None:
        counts = self._counts[name]
        if key in counts or len(counts) < MOST_PAIRS:
            counts[key] += count

    # Ends

    def topic_ended(self, topic: str) -> Job[None]:
        """Forget what was counted for a topic; if it is created again, its counts begin at 0."""
        self._at_start.pop(topic, None)
        self.sizes.pop(topic, None)
        suffix = f"{topic}@"
        yield from self._drop(lambda key: key == topic or key.startswith(suffix))

    def group_ended(self, group: str) -> Job[None]:
        """Forget what was counted for a group."""
        suffix = f"@{group}"
        yield from self._drop(lambda key: key.endswith(suffix))

    def forget_groups(self, exists: Callable[[str], bool]) -> Job[None]:
        """Forget what was counted for groups that do not exist."""
        yield from self._drop(lambda key: "@" in key and not exists(key.rpartition("@")[2]))

    def _drop(self, is_over: Callable[[str], bool]) -> Job[None]:
        for counts in self._counts.values():
            for key in list(counts):
                if is_over(key):
                    del counts[key]
                yield
        for name, key in list(self._series):
            if is_over(key):
                self._series.pop((name, key), None)
            yield

    # Totals

    @property
    def put_total(self) -> int:
        """The number of messages that were put since the start."""
        return self._puts()

    @property
    def this_morning(self) -> tuple[int, int]:
        """The numbers of messages put and received before today."""
        return self._morning

    @property
    def yesterday_morning(self) -> tuple[int, int]:
        """The numbers of messages put and received before yesterday."""
        return self._yesterday

    # Rates

    def puts(self) -> Job[dict[str, int]]:
        """Return how many messages were put since the start, by topic."""
        put = Counter[str]()
        for (topic, _), end in list(self._ends().items()):
            put[topic] += end
            yield
        for topic in put:
            put[topic] -= self._at_start[topic]
            yield
        return put

    def counted(self, name: str) -> Mapping[str, int]:
        """Return a count since the start by its keys: see `find`. Sizes are from the last sample.

        Args:
            name: TOPIC_PUT_SIZE, GROUP_GET, GROUP_GET_SIZE, SEND_BACK or DEAD_LETTERS.
        """
        return self._counts[name]

    def look(self) -> Job[None]:
        """Note all counts; to be done every `LOOK` seconds."""
        now = self._now()
        for topic, grown in (yield from self.puts()).items():
            # Unused counts have no series.
            if grown or (TOPIC_PUT, topic) in self._series:
                self._of((TOPIC_PUT, topic)).look(now, grown)
            yield
        yield from self._measure()
        for name, counts in self._counts.items():
            for key, count in list(counts.items()):
                self._of((name, key)).look(now, count)
                yield
        for name, count in self._wholes().items():
            self._whole[name].look(now, count)
        self._looked = now
        today = _day(now)
        if today != self._today:
            self._today, self._yesterday = today, self._morning
            self._morning = (self.put_total, self.got_total)

    def _measure(self) -> Job[None]:
        """Add up the sizes of what was put since the last sample."""
        measured: dict[tuple[str, int], int] = {}
        for (topic, queue_id), end in list(self._ends().items()):
            at = self._measured.get((topic, queue_id), 0)
            at = at if at <= end else 0  # The topic was deleted and created again.
            while at < end:
                until = min(at + MOST_ENTRIES, end)
                with suppress(
                    StoreError
                ):  # The entries cannot be read, which is reported elsewhere.
                    self._add(
                        TOPIC_PUT_SIZE, topic, self._bytes_between(topic, queue_id, at, until)
                    )
                at = until
                yield
            measured[topic, queue_id] = end
            yield
        self._measured = measured

    def _bytes_between(self, topic: str, queue_id: int, start: int, end: int) -> int:
        sizes = self.sizes.get(topic)
        if sizes is None:
            sizes = Histogram(SIZES)
            if len(self.sizes) < MOST_PAIRS:
                self.sizes[topic] = sizes
        return self._stored_bytes(topic, queue_id, start, end, sizes)

    def find(self, name: str, key: str) -> BrokerStats | None:
        """Return a statistic, None if nothing of that kind was counted.

        Args:
            name: such as TOPIC_PUT_NUMS.
            key: a topic, "topic@group", or the name of the cluster for those of the broker. Sizes
                of a topic are from the last sample.
        """
        now = self._now()
        if name in (BROKER_PUT, BROKER_GET):
            whole = "put" if name == BROKER_PUT else "got"
            return self._answer(self._whole[whole], now, self._wholes()[whole])
        count = self._count(name, key)
        if count is None:
            return None
        return self._answer(self._series.get((name, key)) or Series(self._looked), now, count)

    @staticmethod
    def _answer(series: Series, now: int, count: int) -> BrokerStats:
        return BrokerStats(
            *(series.within(every, now, count) for _, every in (_MINUTE, _HOUR, _DAY))
        )

    def _count(self, name: str, key: str) -> int | None:
        """Return the current value of a count, None if it does not exist."""
        if name in self._counts:
            return self._counts[name].get(key)
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
        """Return how many messages of a topic per second a group received in the last minute."""
        found = self.find(GROUP_GET, f"{topic}@{group}")
        return found.stats_minute.tps if found else 0.0

    def whole_tps(self, name: str) -> float:
        """Return the rate of "put", "got", "missed" or "pulls" in the last minute."""
        return self._whole[name].within(_MINUTE[1], self._now(), self._wholes()[name]).tps

    def _of(self, key: tuple[str, str]) -> Series:
        """Return a series; a new one begins at the last sample."""
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
