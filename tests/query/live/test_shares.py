"""Share the queues of a query among its tasks."""

from __future__ import annotations

import os

import pytest

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.shares import LARGE, SMALL, share
from mqlake.query.live.task import OffsetRange
from tests.query.live.rows import options_of

CORES = len(os.sched_getaffinity(0))


def ranges(*lengths: int) -> list[OffsetRange]:
    return [
        OffsetRange(MessageQueue("T", "broker-a", number), 10, 10 + length)
        for number, length in enumerate(lengths)
    ]


def lengths(*asked: int, **options: int) -> list[list[int]]:
    shares = share(ranges(*asked), options_of("localhost:9876", **options))
    return [[one.end - one.start for one in share] for share in shares]


@pytest.mark.parametrize(
    ("asked", "tasks"),
    [
        ([], 0),
        ([1] * 40, 1),
        ([SMALL] * 40, min(40, CORES)),
        ([LARGE // 4] * 40, max(10, min(40, CORES))),
        ([LARGE * 9] * 3, 3),
    ],
)
def test_the_number_of_tasks(asked: list[int], tasks: int) -> None:
    found = lengths(*asked)
    assert len(found) == tasks
    assert sum(map(sum, found)) == sum(asked)


def test_tasks_are_of_similar_size() -> None:
    found = lengths(70, 10, 20, 40, 30, 50, minPartitions=3)
    assert sorted(map(sum, found)) == [70, 70, 80]


def test_each_queue_once_and_in_order() -> None:
    asked = ranges(*range(1, 41))
    shares = share(asked, options_of("localhost:9876", minPartitions=7))
    assert len(shares) == 7
    found = [one for share in shares for one in share]
    assert sorted(found, key=lambda one: one.queue.queue_id) == asked
    for one in shares:
        assert list(one) == sorted(one, key=lambda each: each.queue.queue_id)


def test_limited_tasks_are_not_joined() -> None:
    assert lengths(3, 5, maxRecordsPerPartition=4) == [[3], [2], [3]]
