"""Topics with batch consume queues: what is put, read, kept and recovered."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from mqlake.formats import batch_consume_queue, sys_flag
from mqlake.formats.batch_consume_queue import UNIT_SIZE, BatchQueueUnit
from mqlake.formats.config.topics import BATCH_QUEUES, QUEUE_TYPE, Topic
from mqlake.formats.file_name import segment_name
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.properties import INNER_BASE, INNER_NUM, UNIQ_KEY
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutStatus
from mqlake.store.owned_store import OwnedStore
from mqlake.store.queues.time_search import Boundary
from mqlake.store.results import Status
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.formats.java_answers import content

SMALL = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=200,
    mapper_file_size_batch_consume_queue=4 * UNIT_SIZE,
    max_hash_slot_num=16,
    max_index_num=32,
)
SIZES = [1, 3, 2, 5, 1, 4, 2]


def opened(path: Path, clock: ManualClock | None = None) -> OwnedStore:
    store = OwnedStore.open(LocalOwnedDirectory(path), SMALL, clock or ManualClock())
    store.config.topics.put(Topic("Batches", attributes={QUEUE_TYPE: BATCH_QUEUES}))
    store.config.topics.put(Topic("Plain"))
    return store


def batch(
    size: int, topic: str = "Batches", queue_id: int = 0, tag: str = "", **more: object
) -> MessageBatch:
    body = encode_batch((number, b"body %d" % number, b"a\x01b\x02") for number in range(size))
    properties = f"{UNIQ_KEY}\x01KEY{size}\x02" + (f"TAGS\x01{tag}\x02" if tag else "")
    made = MessageBatch(topic, body, queue_id, encoded_properties=properties.encode())
    made.is_inner = True
    for name, value in more.items():
        setattr(made, name, value)
    return made


def fill(store: OwnedStore, sizes: list[int] = SIZES) -> None:
    for size in sizes:
        result = store.puts.put_batch(batch(size))
        assert (result.status, result.count, result.offsets) == (PutStatus.PUT_OK, size, ())


def units(path: Path, topic: str = "Batches", queue_id: int = 0) -> list[BatchQueueUnit]:
    found: list[BatchQueueUnit] = []
    for file in sorted((path / "batchconsumequeue" / topic / str(queue_id)).iterdir()):
        data = file.read_bytes()
        assert len(data) == 4 * UNIT_SIZE
        every = (batch_consume_queue.decode(data, at) for at in range(0, len(data), UNIT_SIZE))
        found += [unit for unit in every if batch_consume_queue.is_written(unit)]
    return found


def batches(store: OwnedStore, start: int = 0, limit: int = 32) -> list[tuple[int, int]]:
    """Return (queue offset, messages) of all records from an offset on, read in small steps."""
    found: list[tuple[int, int]] = []
    while True:
        got = store.reads.get("Batches", 0, start, limit)
        assert not got.skipped
        if got.status is not Status.FOUND:
            return found
        assert got.next_offset > start
        start = got.next_offset
        found += [
            (record.queue_offset, int(record.properties.get(INNER_NUM, 1)))
            for record in got.records
        ]


def bases(sizes: list[int]) -> list[int]:
    return [sum(sizes[:number]) for number in range(len(sizes))]


def test_a_batch_is_one_record_and_its_messages_have_queue_offsets(tmp_path: Path) -> None:
    store = opened(tmp_path)
    fill(store)
    store.tick()
    assert store.reads.queue("Batches", 0) == (0, sum(SIZES))
    record = store.reads.get("Batches", 0, 1, 1).records[0]
    assert record.sys_flag == sys_flag.INNER_BATCH | sys_flag.NEED_UNWRAP
    assert (record.properties[INNER_NUM], record.properties[INNER_BASE]) == ("3", "1")
    assert record.body == batch(3).body
    store.close()
    found = units(tmp_path)
    assert [(unit.base_offset, unit.batch_size) for unit in found] == list(
        zip(bases(SIZES), SIZES, strict=True)
    )
    assert all(unit.compacted_offset == -1 for unit in found)


@pytest.mark.parametrize("limit", [1, 3, 32])
def test_reading_from_within_a_batch_begins_with_that_batch(tmp_path: Path, limit: int) -> None:
    store = opened(tmp_path)
    fill(store)
    store.tick()
    every = list(zip(bases(SIZES), SIZES, strict=True))
    for start in range(sum(SIZES)):
        wanted = [(base, size) for base, size in every if base + size > start]
        assert batches(store, start, limit) == wanted
    store.close()


def test_an_answer_has_no_more_messages_than_asked_for_but_a_whole_first_batch(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    fill(store, [20] * 4)
    store.tick()
    for most, records in ((1, 1), (39, 1), (40, 2), (60, 3)):
        got = store.reads.get("Batches", 0, 5, most)
        assert (len(got), got.next_offset) == (records, 20 * records)
    got = store.reads.get("Batches", 0, 0, 80, max_bytes=1)
    assert (len(got), got.next_offset) == (1, 20)
    store.close()


def test_offsets_out_of_range_are_answered_as_of_any_queue(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.reads.get("Batches", 0, 0).status is Status.NO_MESSAGE_IN_QUEUE
    fill(store)
    store.tick()
    high = sum(SIZES)
    assert store.reads.get("Batches", 0, high).status is Status.OFFSET_OVERFLOW_ONE
    assert store.reads.get("Batches", 0, high + 1).status is Status.OFFSET_OVERFLOW_BADLY
    store.close()


def test_single_messages_and_batches_without_a_key_are_batches_of_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.puts.put(Message("Batches", b"one"))
    fill(store, [4])
    assert store.puts.put_batch(batch(3, is_inner=False)).count == 3
    store.puts.put_many([Message("Batches", b"%d" % number) for number in range(10)])
    store.tick()
    wanted = [(0, 1), (1, 4), *((offset, 1) for offset in range(5, 18))]
    assert batches(store) == wanted
    store.close()
    assert [(unit.base_offset, unit.batch_size) for unit in units(tmp_path)] == wanted


def test_tags_of_the_whole_batch_choose(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for size, tag in ((2, "A"), (3, "B"), (4, "A")):
        store.puts.put_batch(batch(size, tag=tag))
    store.tick()
    got = store.reads.get("Batches", 0, 0, 100, tags="B")
    assert [record.queue_offset for record in got.records] == [2]
    assert got.next_offset == 9
    got = store.reads.get("Batches", 0, 0, 100, tags="C")
    assert (got.status, got.next_offset) == (Status.NO_MATCHED_MESSAGE, 9)
    store.close()


def test_offsets_by_time_are_where_batches_begin(tmp_path: Path) -> None:
    clock = ManualClock()
    store, times = opened(tmp_path, clock), list[int]()
    for size in SIZES:
        times.append(store.puts.put_batch(batch(size)).store_timestamp)
        clock.forward(1000)
    for base, time in zip(bases(SIZES), times, strict=True):
        for boundary in Boundary:
            assert store.reads.offset_by_time("Batches", 0, time, boundary) == base
        assert store.reads.offset_by_time("Batches", 0, time - 1) == base
    assert store.reads.offset_by_time("Batches", 0, times[-1] + 1) == sum(SIZES)
    head = store.reads.head_from("Batches", 0, 8)
    assert head is not None
    assert head.queue_offset == 6
    store.close()


def test_the_batch_is_found_by_its_key(tmp_path: Path) -> None:
    store = opened(tmp_path)
    fill(store)
    record = store.reads.by_unique_key("Batches", "KEY5")
    assert record is not None
    assert record.queue_offset == 6
    store.close()


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (batch(2, "Plain"), "has no batch consume queues"),
        (batch(2, sys_flag=sys_flag.TRANSACTION_PREPARED), "part of a transaction"),
        (batch(2, encoded_properties=b"DELAY\x013\x02"), "cannot be delayed"),
        (batch(2, body=b"x"), "ends within a message"),
        (batch(2, body=b""), "has 1 to 32767 messages, not 0"),
        (batch(2, body=encode_batch([(0, b"", b"")] * 32768)), "not 32768"),
        (batch(2, longest_properties=3), "exceed 3 bytes"),
    ],
)
def test_what_cannot_be_an_inner_batch_is_refused(
    tmp_path: Path, refused: MessageBatch, reason: str
) -> None:
    store = opened(tmp_path)
    result = store.puts.put_batch(refused)
    assert result.is_permanent
    assert reason in result.reason
    assert result.count == 0
    fill(store, [2])
    assert store.reads.queue("Batches", 0).max_offset in (0, 2)
    store.close()


@pytest.mark.parametrize("ends", ["close", "abandon"])
def test_a_store_goes_on_where_it_was(tmp_path: Path, ends: str) -> None:
    store = opened(tmp_path)
    fill(store)
    store.config.persist()
    getattr(store, ends)()
    store = opened(tmp_path)
    assert not store.recovered.is_rebuilt
    assert batches(store) == list(zip(bases(SIZES), SIZES, strict=True))
    assert store.puts.put_batch(batch(2)).queue_offset == sum(SIZES)
    store.close()
    assert len(units(tmp_path)) == len(SIZES) + 1


@pytest.mark.parametrize("lost", [0, 1, None])
def test_lost_files_are_derived_again(tmp_path: Path, lost: int | None) -> None:
    store = opened(tmp_path)
    fill(store)
    store.close()
    before = units(tmp_path)
    files = sorted((tmp_path / "batchconsumequeue/Batches/0").iterdir())
    for file in files if lost is None else [files[lost]]:
        file.unlink()
    store = opened(tmp_path)
    assert store.recovered.is_rebuilt
    assert batches(store) == list(zip(bases(SIZES), SIZES, strict=True))
    store.close()
    assert units(tmp_path) == before


def test_units_behind_the_log_go(tmp_path: Path) -> None:
    store = opened(tmp_path)
    fill(store)
    end = store.log.end
    store.tick()
    store.durability.checkpoint()
    store.abandon()
    file = max((tmp_path / "batchconsumequeue/Batches/0").iterdir())
    wrong = BatchQueueUnit(end + 100, 77, 0, 0, sum(SIZES), 9, -1)
    data = bytearray(file.read_bytes())
    at = len(SIZES) % 4 * UNIT_SIZE
    data[at : at + UNIT_SIZE] = batch_consume_queue.encode(wrong)
    file.write_bytes(data)
    store = opened(tmp_path)
    assert store.reads.queue("Batches", 0).max_offset == sum(SIZES)
    fill(store, [3])
    store.tick()
    assert batches(store, sum(SIZES)) == [(sum(SIZES), 3)]
    store.close()
    assert len(units(tmp_path)) == len(SIZES) + 1


def test_files_go_with_the_log_and_the_queue_goes_on(tmp_path: Path) -> None:
    store = opened(tmp_path)
    sizes = SIZES * 20
    fill(store, sizes)
    store.tick()
    first = store.log.segments[2].base
    while store.log.min_offset < first:
        store.log.remove_first()
    store.queues.trim(store.log.min_offset)
    low = store.reads.queue("Batches", 0).min_offset
    assert low in bases(sizes)
    assert store.reads.get("Batches", 0, 0).next_offset == low
    wanted = [(base, size) for base, size in zip(bases(sizes), sizes, strict=True) if base >= low]
    assert batches(store, low) == wanted
    assert len(units(tmp_path)) < len(sizes)
    store.close()
    store = opened(tmp_path)
    assert store.reads.queue("Batches", 0) == (low, sum(sizes))
    assert batches(store, low) == wanted
    store.close()


def test_a_removed_topic_may_come_back_with_queues_of_another_kind(tmp_path: Path) -> None:
    store = opened(tmp_path)
    fill(store)
    store.tick()
    store.removal.remove("Batches")
    store.config.topics.remove("Batches")
    assert not (tmp_path / "batchconsumequeue/Batches").exists()
    store.config.topics.put(Topic("Batches"))
    assert not store.puts.put_batch(batch(2)).count
    assert store.puts.put(Message("Batches", b"x")).queue_offset == 0
    store.tick()
    assert [record.body for record in store.reads.get("Batches", 0, 0).records] == [b"x"]
    assert (tmp_path / "consumequeue/Batches/0").is_dir()
    store.close()


def test_rocketmqs_log_gets_rocketmqs_units(tmp_path: Path) -> None:
    """A log that RocketMQ 5.5.0 wrote, and the queue that it wrote for it."""
    log, queue = content("inner_batches.log"), content("batch_consume_queue.bin")
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / segment_name(0)).write_bytes(log)
    config = tmp_path / "config"
    config.mkdir()
    table = {"Batches": {"topicName": "Batches", "attributes": {QUEUE_TYPE: BATCH_QUEUES}}}
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    with closing(OwnedStore.open(LocalOwnedDirectory(tmp_path), SMALL, ManualClock())) as store:
        assert store.recovered.queue_entries > 0
    found = b"".join(
        file.read_bytes() for file in sorted((tmp_path / "batchconsumequeue/Batches/0").iterdir())
    )
    assert queue.rstrip(b"\0")
    assert found.rstrip(b"\0") == queue.rstrip(b"\0")
