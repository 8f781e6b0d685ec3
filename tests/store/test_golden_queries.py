"""Every question that was put to RocketMQ's own store, put to ours, on the stores it was put to.

The crashed stores were recovered by RocketMQ before it answered; here they are read as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.formats.java_string import index_key_hash
from mqlake.formats.message_json import to_json
from mqlake.store.reader import StoreReader
from tests.golden import NAMES, GoldenStore, store
from tests.store.brute_force import messages_of
from tests.store.golden_queries import FIELDS, Keys

_MOST_BY_INDEX = 64
"""RocketMQ returns no more messages of a key, whatever it is asked for."""


class Golden:
    """A golden store, opened, beside what RocketMQ said about it."""

    def __init__(self, golden: GoldenStore) -> None:
        self.path = golden.path
        self.queries = golden.queries()
        self.messages = messages_of(golden.name)
        self.at = {message["physicalOffset"]: message for message in self.messages}
        self.matching = Keys(self.messages).matching
        self.reader = StoreReader.open(golden.path)

        # rmq5-killed.recovered-vs-killed.txt
        self.lost_entries = range(4155810, 4194304) if golden.name == "rmq5-killed" else range(0)


@pytest.fixture(scope="module", params=NAMES)
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    opened = Golden(store(request.param))
    yield opened
    opened.reader.close()


def test_log_offsets(golden: Golden) -> None:
    expected = golden.queries["commitLog"]
    assert golden.reader.min_offset == expected["commitLogMinOffset"]
    assert golden.reader.max_offset == expected["commitLogMaxOffset"]


def test_queues(golden: Golden) -> None:
    reader = golden.reader
    found = [
        (topic, queue_id, *reader.queue(topic, queue_id))
        for topic in reader.topics()
        for queue_id in reader.queues(topic)
    ]
    expected = [
        (queue["topic"], queue["queueId"], queue["minOffset"], queue["maxOffset"])
        for queue in golden.queries["queues"]
    ]
    assert sorted(found) == sorted(expected)


def test_first_and_last_record_of_each_queue(golden: Golden) -> None:
    for queue in golden.queries["queues"]:
        if queue["totalInQueue"]:
            topic, queue_id = queue["topic"], queue["queueId"]
            ends = (
                golden.reader.get(topic, queue_id, queue["minOffset"], 1),
                golden.reader.get(topic, queue_id, queue["maxOffset"] - 1, 1),
            )
            assert [end.records[0].physical_offset for end in ends] == [
                queue["firstPhyOffset"],
                queue["lastPhyOffset"],
            ]
            assert ends[0].records[0].store_timestamp == queue["earliestMessageTime"]


def test_every_message_of_every_queue(golden: Golden) -> None:
    found: list[int] = []
    for queue in golden.queries["queues"]:
        result = golden.reader.get(queue["topic"], queue["queueId"], queue["minOffset"], 1 << 20)
        found += [record.physical_offset for record in result.records]
    queued = [m["physicalOffset"] for m in golden.messages if m["sysFlag"] & 12 in (0, 8)]
    assert sorted(found) == queued


def test_every_message_by_offset_and_by_id(golden: Golden) -> None:
    for message in golden.messages:
        record = golden.reader.record_at(message["physicalOffset"])
        assert record is not None
        found = to_json(record)
        assert {name: found[name] for name in FIELDS} == {name: message[name] for name in FIELDS}
        assert found["msgId"] == message["offsetMsgId"]
        assert golden.reader.by_message_id(message["offsetMsgId"]) == record
    assert golden.reader.by_message_id("7F" * 16) is None


def test_by_offset(golden: Golden) -> None:
    for query in golden.queries["lookMessageByOffset"]:
        record = golden.reader.record_at(query["offset"])
        assert (record is not None) == query["found"]
        if record is not None:
            found = (record.message_id, record.topic, record.queue_id, record.queue_offset)
            assert found == tuple(query[k] for k in ("msgId", "topic", "queueId", "queueOffset"))
            assert record.size == query["storeSize"]


def test_get(golden: Golden) -> None:
    for query in golden.queries["getMessage"]:
        result = golden.reader.get(
            query["topic"], query["queueId"], query["offset"], min(query["maxMsgNums"], 32)
        )
        found = [record.physical_offset for record in result.records]
        assert result.status == query["status"]
        assert (result.min_offset, result.max_offset) == (query["minOffset"], query["maxOffset"])
        # RocketMQ stops at 256 KiB.
        assert found[: len(query["messageOffsets"])] == query["messageOffsets"]
        if query["bufferTotalSize"] < 200_000 if "bufferTotalSize" in query else True:
            assert found == query["messageOffsets"]
            assert result.next_offset == query["nextBeginOffset"]


def test_offset_by_time(golden: Golden) -> None:
    for query in golden.queries["getOffsetInQueueByTime"]:
        ask = (query["topic"], query["queueId"], query["timestamp"])
        assert golden.reader.offset_by_time(*ask) == query["offset"]
        if "LOWER" in query:
            assert golden.reader.offset_by_time(*ask, "lower") == query["LOWER"]
            assert golden.reader.offset_by_time(*ask, "upper") == query["UPPER"]


def test_by_key(golden: Golden) -> None:
    for query in golden.queries["queryMessage"]:
        result = golden.reader.by_key(
            query["topic"],
            query["key"],
            query["begin"],
            query["end"],
            query["maxNum"],
            query.get("indexType"),
        )
        found = [record.physical_offset for record in result.records]
        matching = golden.matching(query)
        times = {offset: golden.at[offset]["storeTimestamp"] for offset in matching}
        begin, end = query["begin"], query["end"]
        in_time = {offset for offset in matching if begin <= times[offset] <= end}
        # Where RocketMQ's list has other messages, their keys only hash alike.
        rightly = {offset for offset in query["offsets"] if offset in times}

        assert found == sorted(set(found) & set(matching))
        assert len(found) <= query["maxNum"]
        assert result.truncated or set(found) >= in_time | rightly
        if result.truncated:
            assert len(found) == query["maxNum"]
            assert set(found) >= {offset for offset in in_time | rightly if offset >= found[0]}
        # An index entry's time has whole seconds: RocketMQ may take a message to be earlier.
        assert all(offset in rightly or begin <= times[offset] < end + 1000 for offset in found)
        assert len(query["offsets"]) < _MOST_BY_INDEX or len(found) >= len(rightly)


def test_index_alone(golden: Golden) -> None:
    """What RocketMQ's index service returned, in its order; the whole log is no time range."""
    for query in golden.queries["indexQueryOffset"]:
        result = golden.reader.by_key(query["topic"], query["key"], max=1000)
        found = [record.physical_offset for record in result.records]
        matching = golden.matching(query)
        assert found == matching
        rightly = [offset for offset in query["phyOffsets"] if offset in set(matching)]
        # RocketMQ's recovery has lost what an index file of the killed store held of the segment
        # before the one it recovered from: here these are found.
        assert list(dict.fromkeys(rightly)) == [at for at in found[::-1] if at in set(rightly)]
        if len(query["phyOffsets"]) < _MOST_BY_INDEX:
            assert set(found) - set(rightly) <= set(golden.lost_entries)


def test_colliding_keys_are_told_apart(golden: Golden) -> None:
    assert index_key_hash("TopicTags#Aa") == index_key_hash("TopicTags#BB")
    keys = {m["properties"]["KEYS"] for m in golden.messages if m["topic"] == "TopicTags"} - {""}
    for key in keys:
        for one in key.split():
            found = golden.reader.by_key("TopicTags", one, max=1000).records
            assert found
            assert all(one in record.keys for record in found)


def test_every_unique_key(golden: Golden) -> None:
    for message in golden.messages[::31]:
        key = message["properties"].get("UNIQ_KEY")
        if key and message["sysFlag"] & 12 != 12:
            query = {"topic": message["topic"], "key": key}
            record = golden.reader.by_unique_key(message["topic"], key)
            assert record is not None
            unique = [
                offset
                for offset in golden.matching(query)
                if golden.at[offset]["properties"].get("UNIQ_KEY") == key
            ]
            assert record.physical_offset == unique[-1]


@pytest.mark.parametrize("tag", ["TagA", "TagA || TagB", " Aa|| ", "*", "no-such-tag"])
def test_tags(golden: Golden, tag: str) -> None:
    wanted = {one.strip() for one in tag.split("||")}
    for topic in ("TopicA", "TopicTags"):
        expected = [
            m["physicalOffset"]
            for m in golden.messages
            if m["topic"] == topic and (tag == "*" or m["properties"].get("TAGS") in wanted)
        ]
        found: list[int] = []
        for queue_id in golden.reader.queues(topic):
            result = golden.reader.get(topic, queue_id, 0, 1 << 20, tag)
            assert (result.status == "FOUND") == bool(result.records)
            found += [record.physical_offset for record in result.records]
        assert sorted(found) == expected


def test_time_range(golden: Golden) -> None:
    times = sorted({m["storeTimestamp"] for m in golden.messages})
    ranges = [
        (0, times[-1]),
        (times[len(times) // 3], times[len(times) // 3]),
        (times[len(times) // 3], times[2 * len(times) // 3]),
        (times[-1], times[-1] + 1),
        (times[-1] + 1, times[-1] + 2),
        (times[5], times[4]),
    ]
    for topic in ("TopicA", "TopicTx", "SCHEDULE_TOPIC_XXXX", "NoSuchTopic"):
        for begin, end in ranges:
            expected = [
                m["physicalOffset"]
                for m in sorted(
                    golden.messages, key=lambda m: (m["storeTimestamp"], m["physicalOffset"])
                )
                if m["topic"] == topic and begin <= m["storeTimestamp"] <= end
            ]
            for limit in (1, 7, 1 << 20):
                result = golden.reader.by_time_range(topic, begin, end, limit)
                found = [record.physical_offset for record in result.records]
                assert found == expected[:limit]
                assert result.truncated == (len(expected) > limit)
