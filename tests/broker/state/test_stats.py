from __future__ import annotations

from mqlake.broker.state.stats import (
    BROKER_GET,
    BROKER_PUT,
    GROUP_GET,
    GROUP_GET_SIZE,
    LOOK,
    MOST_ENTRIES,
    SEND_BACK,
    TOPIC_PUT,
    TOPIC_PUT_SIZE,
    Stats,
)
from mqlake.metrics.histogram import Histogram
from mqlake.protocol.bodies.stats import BrokerStats
from mqlake.remoting.slices import run_at_once

DAY = 24 * 3600
NOON = 1_795_132_800_000


def _sizes(_topic: str, _queue: int, start: int, end: int, sizes: Histogram) -> int:
    """Return the size of messages of 100 bytes."""
    sizes.add(100, end - start)
    return 100 * (end - start)


class Counted:
    """Stats of a broker whose clock and queues are set by hand."""

    def __init__(self) -> None:
        self.ends: dict[tuple[str, int], int] = {("Old", 0): 100}
        self.now = NOON
        self.stats = Stats(
            lambda: self.ends,
            lambda: sum(self.ends.values()) - 100,
            lambda: self.now,
            lambda _: 2,
            _sizes,
        )

    def wait(self, seconds: int) -> None:
        """Let time go by, with the looks that are due."""
        for _ in range(int(seconds / LOOK)):
            self.now += int(LOOK * 1000)
            run_at_once(self.stats.look())

    def found(self, name: str, key: str) -> BrokerStats:
        stats = self.stats.find(name, key)
        assert stats is not None
        return stats


def test_only_what_came_since_the_start_counts() -> None:
    counted = Counted()
    counted.ends["Old", 0] += 7
    counted.ends["New", 0] = 4
    counted.ends["New", 1] = 5
    assert counted.found(TOPIC_PUT, "Old").stats_day.sum == 7
    counted.wait(10)
    counted.ends["New", 1] = 25
    counted.wait(10)
    minute = counted.found(TOPIC_PUT, "New").stats_minute
    assert (minute.sum, minute.tps) == (29, 29 / 20)
    assert counted.stats.put_tps("New") == 29 / 20
    assert counted.stats.find(TOPIC_PUT, "Nothing") is None
    assert counted.stats.put_tps("Nothing") == 0.0


def test_a_minute_an_hour_and_a_day_go_by() -> None:
    counted = Counted()
    counted.ends["Old", 0] += 60
    counted.wait(60)
    assert counted.found(TOPIC_PUT, "Old").stats_minute.tps > 0
    counted.wait(60)
    found = counted.found(TOPIC_PUT, "Old")
    assert (found.stats_minute.sum, found.stats_hour.sum, found.stats_day.sum) == (0, 60, 60)
    counted.wait(2 * 3600)
    found = counted.found(TOPIC_PUT, "Old")
    assert (found.stats_hour.sum, found.stats_day.sum) == (0, 60)
    counted.wait(2 * DAY)
    assert counted.found(TOPIC_PUT, "Old").stats_day.sum == 0


def test_what_consumers_get_is_counted_by_group() -> None:
    counted = Counted()
    counted.stats.got("G", "T", 32, 3200)
    counted.stats.got("G", "T", 0, 0)
    counted.wait(10)
    counted.stats.got("G", "T", 10, 1000)
    counted.wait(10)
    assert counted.found(GROUP_GET, "T@G").stats_minute.sum == 42
    assert counted.stats.got_tps("G", "T") == 42 / 20
    assert counted.stats.got_tps("G", "Other") == 0.0
    assert (counted.stats.got_total, counted.stats.pulls, counted.stats.missed) == (42, 2, 1)
    assert counted.stats.whole_tps("got") == 42 / 20


def test_totals_of_each_morning() -> None:
    counted = Counted()
    counted.ends["Old", 0] += 3
    counted.stats.got("G", "T", 2, 200)
    counted.wait(DAY)
    assert counted.stats.this_morning == (3, 2)
    counted.ends["Old", 0] += 3
    counted.wait(DAY)
    assert (counted.stats.yesterday_morning, counted.stats.this_morning) == ((3, 2), (6, 2))


def test_sizes_and_returns_are_counted() -> None:
    counted = Counted()
    counted.ends["Old", 0] += 3
    counted.ends["New", 1] = 2 * MOST_ENTRIES + 1
    counted.stats.got("G", "New", 5, 512)
    counted.stats.sent_back("G", "New")
    counted.wait(10)
    assert counted.found(TOPIC_PUT_SIZE, "Old").stats_minute.sum == 300
    assert counted.found(TOPIC_PUT_SIZE, "New").stats_minute.sum == 100 * (2 * MOST_ENTRIES + 1)
    assert counted.found(GROUP_GET_SIZE, "New@G").stats_minute.sum == 512
    assert counted.found(SEND_BACK, "New@G").stats_minute.sum == 1
    assert counted.stats.find(SEND_BACK, "Old@G") is None
    counted.wait(60)
    assert counted.found(TOPIC_PUT_SIZE, "Old").stats_minute.sum == 0


def test_a_topic_that_is_created_again_counts_from_its_first_message() -> None:
    counted = Counted()
    counted.ends["Old", 0] = 5
    counted.wait(10)
    assert counted.found(TOPIC_PUT_SIZE, "Old").stats_minute.sum == 500


def test_the_whole_broker_is_counted() -> None:
    counted = Counted()
    counted.ends["Old", 0] += 60
    counted.stats.got("G", "Old", 30, 3000)
    counted.wait(10)
    assert counted.found(BROKER_PUT, "DefaultCluster").stats_minute.tps == 6
    assert counted.found(BROKER_GET, "DefaultCluster").stats_minute.sum == 30
