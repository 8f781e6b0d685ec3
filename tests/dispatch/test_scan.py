"""A scan of good logs: what it yields, whatever the windows, the kernels and the splits are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mqlake.dispatch.derived import queue_entries
from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.formats import consume_queue, index_file, java_string, record, sys_flag
from mqlake.formats.dialect import Dialect
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryFile
from tests.dispatch.logs import V6_HOST, assert_covered, encode, log, random_log, scan
from tests.golden import CLEAN, CRASHED, store

DIALECTS = {"rmq49-clean": Dialect.V4_9, "rmq533-clean": Dialect.V5_3}


@pytest.mark.parametrize("name", CLEAN + CRASHED[:1])
def test_golden_log(name: str, kernel: Kernel) -> None:
    """Each record that Java decoded is found, with its columns and the hashes of its keys."""
    golden = store(name)
    dialect = DIALECTS.get(name, Dialect.V5_5)
    directory = LocalDirectory(golden.path)
    messages = iter(golden.messages())
    for segment in directory.names("commitlog"):
        file, base = directory.open(f"commitlog/{segment}"), int(segment)
        steps = SegmentScan(
            file, base, base, base + file.size, exact=True, dialect=dialect, kernel=kernel
        )
        for batch in steps:
            for row in batch.records:
                message = next(messages)
                keys = batch.keys[row["key_start"] : row["key_start"] + row["key_count"]]
                assert row["physical_offset"] == message["physicalOffset"]
                assert row["size"] == message["size"]
                assert row["queue_offset"] == message["queueOffset"]
                assert row["store_timestamp"] == message["storeTimestamp"]
                assert row["tags_code"] == message["tagsCode"]
                assert row["sys_flag"] == message["sysFlag"]
                assert row["fault"] == 0
                if sys_flag.is_queued(message["sysFlag"]):
                    queue = batch.table[row["queue"]]
                    assert queue == (message["topic"].encode(), message["queueId"])
                else:
                    assert row["queue"] == -1
                assert keys["hash"].tolist() == expected_hashes(message, dialect)
        assert all(gap.all_zero for gap in steps.gaps)
    assert next(messages, None) is None


def expected_hashes(message: dict[str, Any], dialect: Dialect) -> list[int]:
    if not sys_flag.is_indexed(message["sysFlag"]):
        return []
    keys = index_file.index_keys(message["topic"], message["properties"] or {}, dialect)
    return [java_string.index_key_hash(key) for key in keys]


@pytest.mark.parametrize("seed", range(6))
def test_fields_are_those_of_the_record(seed: int, kernel: Kernel) -> None:
    data = random_log(seed, 60)
    seen = scan(data, kernel)
    assert len(seen.records) == 60
    assert not seen.gaps
    assert_covered(seen)
    for row, keys in zip(seen.records, seen.keys, strict=True):
        decoded = record.decode(data, row["physical_offset"])
        assert row["size"] == decoded.size
        assert row["queue_id"] == decoded.queue_id
        assert row["queue_offset"] == decoded.queue_offset
        assert row["store_timestamp"] == decoded.store_timestamp
        assert row["body"] == decoded.body
        assert row["topic"] == decoded.topic.encode()
        assert row["tags"] == (decoded.tags or "").encode()
        assert row["keys"] == decoded.properties.get("KEYS", "").encode()
        assert row["unique_key"] == (decoded.unique_key or "").encode()
        assert row["tags_code"] == consume_queue.entry_tags_code(
            decoded.topic, decoded.properties, decoded.store_timestamp
        )
        if sys_flag.is_queued(decoded.sys_flag):
            assert seen.queues[row["queue"]] == (decoded.topic.encode(), decoded.queue_id)
        else:
            assert row["queue"] == -1
        texts = index_file.index_keys(decoded.topic, decoded.properties, Dialect.V5_5)
        if not sys_flag.is_indexed(decoded.sys_flag):
            texts = []
        assert keys == [java_string.index_key_hash(text) for text in texts]


@pytest.mark.parametrize("window", [91, 200, 1000, 1 << 20])
def test_windows_change_nothing(window: int, kernel: Kernel) -> None:
    data = random_log(7, 50, base=1 << 33)
    expected = scan(data, kernel, base=1 << 33)
    assert len(expected.records) == 50
    assert expected == scan(data, kernel, base=1 << 33, window=window)


def test_record_larger_than_the_window(kernel: Kernel) -> None:
    data = log([{}, {"body": bytes(3_000_000)}, {"body": b""}, {"body": b"x" * 70_000}, {}])
    seen = scan(data, kernel)
    assert len(seen.records) == 5
    assert [row["body"] for row in seen.records][1] == bytes(3_000_000)
    assert not seen.gaps


@pytest.mark.parametrize("want", Want)
def test_wanted_columns(want: Want, kernel: Kernel) -> None:
    data = log({"properties": {"TAGS": "a", "KEYS": "k"}, "queue_id": n} for n in range(3))
    seen = scan(data, kernel, want=want)
    assert len(seen.offsets) == 3
    assert len(seen.queues) == (0 if want is Want.LOCATE else 3)
    assert not any(seen.keys) or want is Want.DISPATCH
    if want is Want.EXPORT:
        assert [row["tags"] for row in seen.records] == [b"a"] * 3
        assert {row["tags_code"] for row in seen.records} == {ord("a")}


@pytest.mark.parametrize("dialect", Dialect)
def test_tags_are_indexed_from_5_5_on(dialect: Dialect, kernel: Kernel) -> None:
    data = log([{"properties": {"TAGS": "a", "KEYS": "k", "UNIQ_KEY": "u"}}])
    keys = ["Topic#u", "Topic#k"] + ["Topic#T#a"] * (dialect is Dialect.V5_5)
    assert scan(data, kernel, dialect=dialect).keys == [
        [java_string.index_key_hash(key) for key in keys]
    ]


@pytest.mark.parametrize(
    "properties",
    [
        b"TAGS\x01a\x02TAGS\x01b",
        b"TAGS\x01a\x02TAGS\x01\x02",
        b"\x01TAGS\x01a\x02",
        b"TAGS\x01\x01a\x02",
        b"TAGS\x02\x01a",
        b"TAGS",
        b"TAGS\x01",
        b"\x02\x02\x02TAGS\x01a\x02\x02",
        b"TAGSX\x01a\x02XTAGS\x01b\x02tags\x01c",
        b"KEYS\x01" + b"a " * 100,
        b"UNIQ_KEY\x01u\x02UNIQ_KEZ\x01v",
        b"x\x01" + b"y" * 57 + b"\x02TAGS\x01" + b"z" * 64,
        b"TAGS\x01\xff\xfe\x80\x02KEYS\x01\xed\xa0\x80 \xf0\x90",
        b"x" * 32767,
    ],
)
def test_odd_properties(properties: bytes, kernel: Kernel) -> None:
    data = log([{"properties": properties}])
    (row,), (keys,) = (seen := scan(data, kernel)).records, seen.keys
    decoded = record.decode(data)
    assert java_string.decode(row["tags"]) == decoded.properties.get("TAGS", "")
    assert row["tags_code"] == consume_queue.tags_code(decoded.tags)
    texts = index_file.index_keys("Topic", decoded.properties, Dialect.V5_5)
    assert keys == [java_string.index_key_hash(text) for text in texts]


@pytest.mark.parametrize(
    ("delay", "level"),
    [("1", 1), ("+3", 3), ("18", 18), ("19", 18), ("2147483647", 18), ("007", 7)],
)
def test_delivery_time_of_scheduled_messages(delay: str, level: int, kernel: Kernel) -> None:
    data = log([{"topic": "SCHEDULE_TOPIC_XXXX", "properties": {"DELAY": delay, "TAGS": "a"}}])
    due = 1_700_000_000_001 + consume_queue.DEFAULT_DELAY_LEVELS[level - 1]
    assert scan(data, kernel).records[0]["tags_code"] == due


@pytest.mark.parametrize("delay", ["0", "-1", "x", "1x", "", "+", "2147483648", "99999999999"])
def test_bad_delay_level_counts_as_none(delay: str, kernel: Kernel) -> None:
    properties = f"DELAY\x01{delay}\x02TAGS\x01a".encode()
    data = log([{"topic": "SCHEDULE_TOPIC_XXXX", "properties": properties}])
    assert scan(data, kernel).records[0]["tags_code"] == ord("a")


def test_delay_counts_in_the_schedule_topic_only(kernel: Kernel) -> None:
    data = log([{"topic": "SCHEDULE_TOPIC_XXXY", "properties": {"DELAY": "3", "TAGS": "a"}}])
    assert scan(data, kernel).records[0]["tags_code"] == ord("a")


def test_transactions(kernel: Kernel) -> None:
    """PREPARED is indexed but not queued, ROLLBACK neither; COMMIT is like no transaction."""
    flags = [0, sys_flag.TRANSACTION_PREPARED, sys_flag.TRANSACTION_COMMIT]
    flags.append(sys_flag.TRANSACTION_ROLLBACK)
    properties = {"KEYS": "k", "TAGS": "a", "DELAY": "1"}
    fields = {"topic": "SCHEDULE_TOPIC_XXXX", "properties": properties}
    seen = scan(log(fields | {"sys_flag": flag} for flag in flags), kernel)
    assert [row["queue"] for row in seen.records] == [0, -1, 0, -1]
    assert [len(keys) for keys in seen.keys] == [2, 2, 2, 0]
    assert len({row["tags_code"] for row in seen.records}) == 1


def test_many_queues(kernel: Kernel) -> None:
    """Numbers are given in order of appearance, and survive the table's growth."""
    chance = random.Random(3)
    queues = [(f"T{chance.randrange(400)}", chance.randrange(-2, 5)) for _ in range(2000)]
    seen = scan(log({"topic": t, "queue_id": q, "body": b""} for t, q in queues), kernel)
    assert seen.queues == [(t.encode(), q) for t, q in dict.fromkeys(queues)]
    assert [seen.queues[row["queue"]] for row in seen.records] == [
        (t.encode(), q) for t, q in queues
    ]


def test_versions_and_hosts(kernel: Kernel) -> None:
    hosts = ["127.0.0.1:1", V6_HOST]
    fields = [
        {"topic": topic, "born_host": born, "store_host": stored, "body": body}
        for topic in ("T", "t" * 127, "t" * 128, "t" * 255)
        for born in hosts
        for stored in hosts
        for body in (b"", b"b")
    ]
    seen = scan(log(fields), kernel)
    assert [row["topic"].decode() for row in seen.records] == [each["topic"] for each in fields]
    assert [row["body"] for row in seen.records] == [each["body"] for each in fields]


def test_splits_meet(kernel: Kernel) -> None:
    """Wherever a log is split, each half finds its records, and both meet at one position."""
    base = 1 << 30
    data = random_log(11, 12, base)
    whole = scan(data, kernel, base=base)
    for cut in range(base, base + len(data) + 1):
        left = scan(data, kernel, end=cut, base=base, want=Want.LOCATE)
        right = scan(data, kernel, start=cut, base=base, exact=False, want=Want.LOCATE)
        assert left.offsets + right.offsets == whole.offsets
        assert left.offsets == [offset for offset in whole.offsets if offset < cut]
        assert left.stop == right.start or (left.stop == base + len(data) and not right.offsets)
        assert not left.gaps
        assert not right.gaps


def test_limit_is_the_end_of_the_log(kernel: Kernel) -> None:
    data = log({} for _ in range(4)) + bytes(500)
    second = scan(data, kernel).offsets[1]
    seen = scan(data, kernel, limit=second)
    assert seen.offsets == [0]
    assert seen.stop == second
    assert not seen.gaps


def test_empty_segment(kernel: Kernel) -> None:
    assert scan(b"", kernel) == ([], [], [], [], 0, 0)


def test_a_batch_knows_its_place(kernel: Kernel) -> None:
    data = log([{}, {}], base=500)
    steps = SegmentScan(MemoryFile(data), 500, 500, 500 + len(data), exact=True, kernel=kernel)
    (batch,) = list(steps)
    for row in batch.records:
        at = int(row["physical_offset"]) - batch.base
        assert record.decode(batch.buffer.data, at).physical_offset == row["physical_offset"]


def test_scans_may_run_at_the_same_time(kernel: Kernel) -> None:
    data, other = log({"body": b"a"} for _ in range(20)), log({"body": b"b"} for _ in range(20))
    scans = [
        iter(SegmentScan(MemoryFile(each), 0, 0, len(each), exact=True, window=150, kernel=kernel))
        for each in (data, other)
    ]
    for first, second in zip(*scans, strict=True):
        for batch, body in ((first, b"a"), (second, b"b")):
            at = int(batch.records["body_at"][0])
            assert batch.buffer[at : at + 1].tobytes() == body


def test_encoding_helper_makes_what_it_says() -> None:
    assert record.decode(encode(77, topic="X", body=b"1")).physical_offset == 77


def test_located_records_have_no_queue(kernel: Kernel) -> None:
    """The buffers are used again: what an earlier scan filled in must not be believed."""
    data = random_log(5, 40)
    for want in (Want.DISPATCH, Want.LOCATE):
        steps = SegmentScan(MemoryFile(data), 0, 0, len(data), exact=True, want=want, kernel=kernel)
        for batch in steps:
            entries, _, _ = queue_entries.group(batch, kernel)
            assert (len(entries) == 0) == (want is Want.LOCATE)
