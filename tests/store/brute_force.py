"""Answers from the list of all messages, without any index: what a reader must say."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from mqlake.store.reader import StoreReader
from tests.golden import store

Message = dict[str, Any]

QUEUED = (0, 8)
ROLLBACK = 12


@cache
def messages_of(name: str) -> list[Message]:
    """Return the messages of a golden store; not to be changed."""
    return store(name).messages()


def queues(messages: list[Message]) -> dict[tuple[str, int], list[Message]]:
    """Return the messages of each queue, by queue offset."""
    found: dict[tuple[str, int], list[Message]] = defaultdict(list)
    for message in messages:
        if message["sysFlag"] & 12 in QUEUED:
            found[message["topic"], message["queueId"]].append(message)
    return found


def keys(message: Message) -> set[str]:
    """Return what a message can be found by."""
    properties = message["properties"]
    found = {key for key in properties.get("KEYS", "").split(" ") if key}
    return found | ({properties["UNIQ_KEY"]} if "UNIQ_KEY" in properties else set())


def assert_answers(path: Path, messages: list[Message], *, topics: bool = True) -> None:
    """Assert that a store answers as if all its derived files were whole.

    Without `topics`, the lists of topics and queues are not compared: those of a store that has
    other queue files do not scan for queues whose files are missing.
    """
    with StoreReader.open(path) as reader:
        last = messages[-1]
        assert reader.max_offset == last["physicalOffset"] + last["size"]
        by_queue = queues(messages)
        if topics:
            found = {(topic, queue) for topic in reader.topics() for queue in reader.queues(topic)}
            assert found == set(by_queue)
        for queue, expected in by_queue.items():
            _assert_queue(reader, queue, expected)
        _assert_keys(reader, messages)
        _assert_times(reader, messages)


def _assert_queue(reader: StoreReader, queue: tuple[str, int], expected: list[Message]) -> None:
    ends = (expected[0]["queueOffset"], expected[-1]["queueOffset"] + 1)
    assert reader.queue(*queue) == ends, queue
    result = reader.get(*queue, ends[0], len(expected) + 1)
    found = [record.physical_offset for record in result.records]
    assert found == [message["physicalOffset"] for message in expected], queue
    assert (result.status, result.next_offset) == ("FOUND", ends[1])


def _assert_keys(reader: StoreReader, messages: list[Message]) -> None:
    wanted: dict[tuple[str, str], list[int]] = defaultdict(list)
    for message in messages:
        if message["sysFlag"] & 12 != ROLLBACK:
            for key in keys(message):
                wanted[message["topic"], key].append(message["physicalOffset"])
    few = sorted(wanted)[:: len(wanted) // 20]
    for topic, key in few:
        found = reader.by_key(topic, key, max=1 << 20)
        assert [record.physical_offset for record in found.records] == wanted[topic, key]
        assert not found.truncated
        newest = reader.by_key(topic, key, max=1)
        assert [record.physical_offset for record in newest.records] == wanted[topic, key][-1:]
        assert newest.truncated == (len(wanted[topic, key]) > 1)


def _assert_times(reader: StoreReader, messages: list[Message]) -> None:
    times = sorted({message["storeTimestamp"] for message in messages})
    begin, end = times[len(times) // 4], times[-len(times) // 4]
    for topic in ("TopicA", "TopicBatch", "TopicOne"):
        expected = sorted(
            (message["storeTimestamp"], message["physicalOffset"])
            for message in messages
            if message["topic"] == topic and begin <= message["storeTimestamp"] <= end
        )
        found = reader.by_time_range(topic, begin, end, 1 << 20).records
        assert [(one.store_timestamp, one.physical_offset) for one in found] == expected
