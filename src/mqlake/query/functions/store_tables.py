"""The contents of a store directory as tables: names and columns are those of `mqadmin`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlake.query.reading.directory import open_location
from mqlake.store.reader import StoreReader

if TYPE_CHECKING:
    from mqlake.store.report import StoreReport

Row = tuple[Any, ...]


class StoreTable(NamedTuple):
    """A table about one store.

    Attributes:
        columns: as DDL.
        rows: computes the rows from a report.
        meaning: one line for the page, which says where the rows come from.
    """

    columns: str
    rows: Callable[[StoreReport], Iterator[Row]]
    meaning: str


def rows_of(table: StoreTable, path: str) -> Iterator[Row]:
    """Yield the rows of a table about the store at a path or URL.

    Raises:
        StoreError: the path is not a store.
    """
    with StoreReader.open(open_location(path)) as reader:
        yield from table.rows(reader.inspect())


def _topics(report: StoreReport) -> Iterator[Row]:
    for topic in report.topics:
        messages = sum(queue.max_offset - queue.min_offset for queue in topic.queues)
        yield topic.topic, topic.read_queue_nums, topic.write_queue_nums, messages


def _queues(report: StoreReport) -> Iterator[Row]:
    for topic in report.topics:
        for queue in topic.queues:
            yield topic.topic, queue.queue_id, queue.min_offset, queue.max_offset


def _groups(report: StoreReport) -> Iterator[Row]:
    broker_offsets = {
        (topic.topic, queue.queue_id): queue.max_offset
        for topic in report.topics
        for queue in topic.queues
    }
    for group in report.config.consumer_groups:
        if not group.offsets:
            yield group.group, None, None, None, None, None
        for topic, offsets in sorted(group.offsets.items()):
            for queue_id, consumer_offset in sorted(offsets.items()):
                broker_offset = broker_offsets.get((topic, queue_id), 0)
                diff = broker_offset - consumer_offset
                yield group.group, topic, queue_id, broker_offset, consumer_offset, diff


def _segments(report: StoreReport) -> Iterator[Row]:
    for file in report.commit_log.files:
        yield f"commitlog/{file.name}", file.offset, file.length


def _damage(report: StoreReport) -> Iterator[Row]:
    for one in (*report.commit_log.damage, *report.damage):
        yield one.file, one.offset, one.length, one.reason


STORE_TABLES: Mapping[str, StoreTable] = {
    "rocketmq_topics": StoreTable(
        "topic string, readQueueNums int, writeQueueNums int, messages bigint",
        _topics,
        "The topics that have messages. The numbers of queues are null if `config/topics.json` "
        "lacks the topic; `messages` is the number of messages that the queues still have.",
    ),
    "rocketmq_queues": StoreTable(
        "topic string, queueId int, minOffset bigint, maxOffset bigint",
        _queues,
        "The queues, as `mqadmin topicStatus` shows them: offsets [minOffset, maxOffset).",
    ),
    "rocketmq_groups": StoreTable(
        "`group` string, topic string, queueId int, brokerOffset bigint, consumerOffset bigint, "
        "diff bigint",
        _groups,
        "The consumer groups, as `mqadmin consumerProgress` shows them: `diff` is the lag. A group "
        "without offsets has one row, with nulls in all other columns.",
    ),
    "rocketmq_segments": StoreTable(
        "file string, physicalOffset bigint, bytes bigint",
        _segments,
        "The files of the commit log.",
    ),
    "rocketmq_damage": StoreTable(
        "file string, offset bigint, bytes bigint, reason string",
        _damage,
        "What is wrong at the end of the log, in the headers of index files, and with the "
        "sizes of queue files. `mqlake verify` checks each record and entry.",
    ),
}
"""By the names of the functions."""
