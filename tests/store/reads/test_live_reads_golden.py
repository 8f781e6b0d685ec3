"""Every question that was put to RocketMQ's own store, put to a live store on the same files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.formats.message_json import to_json
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads.live_reads import LiveReads
from tests.crash.clock import ManualClock
from tests.golden import NAMES, GoldenStore, store
from tests.store.brute_force import messages_of
from tests.store.golden_queries import FIELDS, Keys


class Golden:
    """A copy of a golden store, taken over, beside what RocketMQ said about it."""

    def __init__(self, golden: GoldenStore, opened: OwnedStore) -> None:
        self.reads: LiveReads = opened.reads
        self.queries = golden.queries()
        self.messages = messages_of(golden.name)
        self.matching = Keys(self.messages).matching
        self.at = {message["physicalOffset"]: message for message in self.messages}


@pytest.fixture(scope="module", params=NAMES)
def golden(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Golden]:
    found = store(request.param)
    path = found.copy(tmp_path_factory.mktemp("golden") / "store")
    opened = OwnedStore.open(LocalOwnedDirectory(path), clock=ManualClock())
    yield Golden(found, opened)
    opened.close()


def test_log_offsets_and_queues(golden: Golden) -> None:
    expected = golden.queries["commitLog"]
    reads = golden.reads
    assert reads.min_offset == expected["commitLogMinOffset"]
    assert reads.max_offset == expected["commitLogMaxOffset"]
    found = [
        (topic, queue_id, *reads.queue(topic, queue_id))
        for topic in reads.topics()
        for queue_id in reads.queues(topic)
    ]
    assert sorted(found) == sorted(
        (queue["topic"], queue["queueId"], queue["minOffset"], queue["maxOffset"])
        for queue in golden.queries["queues"]
    )


def test_get(golden: Golden) -> None:
    for query in golden.queries["getMessage"]:
        result = golden.reads.get(
            query["topic"], query["queueId"], query["offset"], min(query["maxMsgNums"], 32)
        )
        assert result.status == query["status"]
        assert (result.min_offset, result.max_offset) == (query["minOffset"], query["maxOffset"])
        assert [one.physical_offset for one in result.records] == query["messageOffsets"]
        assert result.size == query.get("bufferTotalSize", 0)
        assert result.next_offset == query["nextBeginOffset"]
        assert not result.skipped


def test_every_message_of_every_queue_in_every_form(golden: Golden) -> None:
    found: list[int] = []
    for queue in golden.queries["queues"]:
        topic, queue_id, offset = queue["topic"], queue["queueId"], queue["minOffset"]
        while offset < queue["maxOffset"]:
            result = golden.reads.get(topic, queue_id, offset, 64, max_bytes=1 << 20)
            assert result.status == "FOUND"
            batch = result.to_arrow()
            batch.validate(full=True)
            for record, raw, row in zip(result.records, result.raw, batch.to_pylist(), strict=True):
                assert len(raw) == record.size
                assert golden.reads.record_at(record.physical_offset) == record
                assert row["body"] == record.body
                assert row["msgId"] == record.message_id
                assert dict(row["properties"]) == record.properties
                found.append(record.physical_offset)
            assert result.next_offset == offset + len(result)
            offset = result.next_offset
    queued = [m["physicalOffset"] for m in golden.messages if m["sysFlag"] & 12 in (0, 8)]
    assert sorted(found) == queued


def test_every_message_by_offset_and_by_id(golden: Golden) -> None:
    for message in golden.messages[::7]:
        record = golden.reads.record_at(message["physicalOffset"])
        assert record is not None
        found = to_json(record)
        assert {name: found[name] for name in FIELDS} == {name: message[name] for name in FIELDS}
        assert golden.reads.by_message_id(message["offsetMsgId"]) == record
    for query in golden.queries["lookMessageByOffset"]:
        assert (golden.reads.record_at(query["offset"]) is not None) == query["found"]
    assert golden.reads.by_message_id("7F" * 16) is None


def test_offset_by_time(golden: Golden) -> None:
    for query in golden.queries["getOffsetInQueueByTime"]:
        ask = (query["topic"], query["queueId"], query["timestamp"])
        if "LOWER" in query:
            assert golden.reads.offset_by_time(*ask) == query["LOWER"]
            assert golden.reads.offset_by_time(*ask, "upper") == query["UPPER"]
        else:
            assert golden.reads.offset_by_time(*ask, "nearest") == query["offset"]


def test_by_key(golden: Golden) -> None:
    for query in golden.queries["queryMessage"]:
        kind = query.get("indexType")
        result = golden.reads.by_key(
            query["topic"], query["key"], query["begin"], query["end"], 1000, kind
        )
        found = [record.physical_offset for record in result.records]
        matching = golden.matching(query)
        begin, end = query["begin"], query["end"]
        times = {offset: golden.at[offset]["storeTimestamp"] for offset in matching}
        in_time = {offset for offset in matching if begin <= times[offset] <= end}
        rightly = {offset for offset in query["offsets"] if offset in times}
        assert found == sorted(set(found) & set(matching))
        assert set(found) >= in_time | rightly
        assert all(offset in rightly or begin <= times[offset] < end + 1000 for offset in found)


def test_unique_keys(golden: Golden) -> None:
    for message in golden.messages[::97]:
        key = message["properties"].get("UNIQ_KEY")
        if key and message["sysFlag"] & 12 != 12:
            record = golden.reads.by_unique_key(message["topic"], key)
            assert record is not None
            assert record.unique_key == key
            assert record.physical_offset >= message["physicalOffset"]


@pytest.mark.parametrize("tag", ["TagA", "TagA || TagB", " Aa|| ", "*", "no-such-tag"])
def test_tags(golden: Golden, tag: str) -> None:
    """Those whose tags only hash alike, such as Aa and BB, are told apart."""
    wanted = {one.strip() for one in tag.split("||")}
    for topic in ("TopicA", "TopicTags"):
        expected = [
            m["physicalOffset"]
            for m in golden.messages
            if m["topic"] == topic and (tag == "*" or m["properties"].get("TAGS") in wanted)
        ]
        found: list[int] = []
        for queue_id in golden.reads.queues(topic):
            low, high = golden.reads.queue(topic, queue_id)
            while low < high:
                result = golden.reads.get(topic, queue_id, low, tags=tag)
                assert (result.status == "FOUND") == bool(result.records)
                assert result.next_offset > low
                found += [record.physical_offset for record in result.records]
                low = result.next_offset
        assert sorted(found) == expected


def test_time_range(golden: Golden) -> None:
    times = sorted({m["storeTimestamp"] for m in golden.messages})
    ranges = [
        (0, times[-1]),
        (times[len(times) // 3], times[2 * len(times) // 3]),
        (times[-1], times[-1] + 1),
        (times[5], times[4]),
    ]
    in_order = sorted(golden.messages, key=lambda m: (m["storeTimestamp"], m["physicalOffset"]))
    for topic in ("TopicA", "SCHEDULE_TOPIC_XXXX", "NoSuchTopic"):
        for begin, end in ranges:
            expected = [
                m["physicalOffset"]
                for m in in_order
                if m["topic"] == topic and begin <= m["storeTimestamp"] <= end
            ]
            for limit in (7, 1 << 20):
                result = golden.reads.by_time_range(topic, begin, end, limit)
                found = [record.physical_offset for record in result.records]
                assert found == expected[:limit]
                assert result.truncated == (len(expected) > limit)
