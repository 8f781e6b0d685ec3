"""Dispatch writes what RocketMQ writes, however it is cut into ticks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlake.dispatch.digest import MOST_RECORDS, Digest, Digester
from mqlake.dispatch.kernel import is_compiled
from mqlake.errors import DiskError, StoreError
from mqlake.formats import sys_flag
from mqlake.formats.consume_queue import ENTRY, QueueEntry, tags_code
from mqlake.formats.dialect import Dialect
from mqlake.store.append.message import Message
from mqlake.store.queues.owned_queue import OwnedQueue
from mqlake.store.settings import StoreSettings
from tests.crash.disk import RecordedDisk
from tests.jobs.model import (
    index_files,
    queue_files,
    read_index_files,
    read_log,
    read_queue_files,
)
from tests.store.live_parts import NOW, LiveParts

SETTINGS = StoreSettings(
    mapped_file_size_commit_log=1 << 14,
    mapped_file_size_consume_queue=200,
    max_hash_slot_num=7,
    max_index_num=40,
)


def messages(count: int) -> list[Message]:
    return [
        Message(
            f"Topic{number % 3}",
            b"x" * (number * 37 % 300),
            tags="red" if number % 2 else None,
            keys=[f"key{number}", "all"][: number % 3],
            queue_id=number % 2,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("each", [1, 7, 400])
def test_ticks_of_any_size_write_the_same_files(each: int, tmp_path: Path) -> None:
    store = LiveParts(tmp_path, SETTINGS)
    sent = messages(400)

    for start in range(0, len(sent), each):
        store.put_many(sent[start : start + each])

    records = list(read_log(tmp_path))
    assert len(sent) == len(records) == store.dispatcher.count
    assert queue_files(records, 200) == read_queue_files(tmp_path)
    assert index_files(records, 7, 40, Dialect.V5_5) == read_index_files(tmp_path)


@pytest.mark.skipif(not is_compiled(), reason="only compiled kernels do so")
def test_a_tick_of_few_messages_is_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LiveParts(tmp_path, SETTINGS)
    taken: list[int] = []
    digest = Digester.digest

    def noted(digester: Digester, *what: Any) -> Digest | None:
        found = digest(digester, *what)
        taken.append(found.rows if found else 0)
        return found

    monkeypatch.setattr(Digester, "digest", noted)
    for count in (1, 2, MOST_RECORDS, MOST_RECORDS + 1):
        sent = [Message("T", b"", keys="k", queue_id=number % 3) for number in range(count)]
        store.put_many(sent)  # At most 110 bytes each: a file has room for 148 of them.
    # The last ones lie in two files: they are read in windows.
    assert [rows for rows in taken if rows][:2] == [1, 2]
    records = list(read_log(tmp_path))
    assert queue_files(records, 200) == read_queue_files(tmp_path)
    assert index_files(records, 7, 40, Dialect.V5_5) == read_index_files(tmp_path)


@pytest.mark.parametrize("queues", [1, 600])
def test_a_tick_whose_time_is_up_leaves_the_rest_to_the_next(queues: int, tmp_path: Path) -> None:
    """Each does something, however short it is, and what it has begun is not done twice."""
    store = LiveParts(tmp_path, SETTINGS)
    sent = [Message("Wide", b"x", keys=["key"], queue_id=number % queues) for number in range(1200)]
    store.appender.put_many(sent)

    calls, done = 0, (0, 0)
    while store.dispatcher.position < store.log.end:
        store.dispatcher.run(store.log.end, until=0.0)
        calls += 1
        before, done = done, (store.dispatcher.position, store.dispatcher.entries)
        assert done > before

    assert calls >= queues
    records = list(read_log(tmp_path))
    assert len(sent) == len(records) == store.dispatcher.count == store.dispatcher.entries
    assert queue_files(records, 200) == read_queue_files(tmp_path)
    assert index_files(records, 7, 40, Dialect.V5_5) == read_index_files(tmp_path)


def test_half_and_rollback_records_have_no_queue_entry(tmp_path: Path) -> None:
    store = LiveParts(tmp_path)
    kinds = (
        0,
        sys_flag.TRANSACTION_PREPARED,
        sys_flag.TRANSACTION_COMMIT,
        sys_flag.TRANSACTION_ROLLBACK,
    )

    store.put_many([Message("T", b"", keys="k", sys_flag=kind) for kind in kinds])

    assert store.queues.max_offset("T", 0) == 2
    assert store.dispatcher.count == 4
    assert store.index.state().header.index_count == 1 + 3


def test_a_scheduled_messages_tags_code_is_its_delivery_time(tmp_path: Path) -> None:
    settings = StoreSettings(message_delay_level="1s 7s", max_hash_slot_num=9, max_index_num=9)
    store = LiveParts(tmp_path, settings)

    waiting = Message("SCHEDULE_TOPIC_XXXX", b"", tags="red", properties={"DELAY": "2"})
    store.put_many([waiting, Message("Other", b"", tags="red", properties={"DELAY": "2"})])

    scheduled = store.queues.queue("SCHEDULE_TOPIC_XXXX", 0).entry(0)
    other = store.queues.queue("Other", 0).entry(0)
    assert scheduled
    assert other
    assert scheduled.tags_code == NOW + 7000
    assert tags_code("red") == other.tags_code


class NotedParts(LiveParts):
    """Parts that note what the dispatcher reports."""

    def __init__(self, path: Path, settings: StoreSettings | None = None) -> None:
        self.told, self.begun = list[tuple[str, int, int]](), list[str]()
        super().__init__(path, settings)

    def arrived(self, topic: str, queue_id: int, end: int) -> None:
        self.told.append((topic, queue_id, end))

    def restarted(self, topic: str, before: int) -> None:
        self.begun.append(topic)


def test_arrivals_are_told_by_queue(tmp_path: Path) -> None:
    store = NotedParts(tmp_path)

    store.put_many([Message("A", b""), Message("B", b"", queue_id=3), Message("A", b"")])
    store.put(Message("A", b""))

    assert store.told == [("A", 0, 2), ("B", 3, 1), ("A", 0, 3)]


def test_nothing_behind_the_limit_is_dispatched(tmp_path: Path) -> None:
    store = LiveParts(tmp_path)
    first, second = store.appender.put_many([Message("A", b"1"), Message("A", b"2")])

    assert store.dispatcher.run(first.physical_offset + first.size) == 1
    assert store.queues.max_offset("A", 0) == 1
    assert store.dispatcher.run(second.physical_offset + second.size) == 1
    assert store.dispatcher.run(store.log.end) == 0
    assert store.queues.max_offset("A", 0) == 2


def test_a_slave_reads_no_queue_again_when_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a step with thousands of queues never ends."""
    store, looks = NotedParts(tmp_path, SETTINGS), 0
    entry = OwnedQueue.entry

    def counted(queue: OwnedQueue, offset: int) -> QueueEntry | None:
        nonlocal looks
        looks += 1
        return entry(queue, offset)

    monkeypatch.setattr(OwnedQueue, "entry", counted)
    store.dispatcher.set_restarts_expected(are_expected=True)
    store.appender.put_many([Message("Wide", b"x", queue_id=number) for number in range(600)])
    while store.dispatcher.position < store.log.end:
        store.dispatcher.run(store.log.end, until=0.0)
    assert (store.dispatcher.entries, store.begun, looks) == (600, [], 0)


def test_a_full_disk_stops_dispatch_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LiveParts(tmp_path, SETTINGS)
    store.put_many(messages(30))
    write, left = type(store.queues.files).write, [3]

    def full(self: object, *what: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise DiskError("no room")
        write(self, *what)

    store.appender.put_many(messages(60))
    monkeypatch.setattr(type(store.queues.files), "write", full)
    for _ in range(3):
        with pytest.raises(DiskError, match="no room"):
            store.tick()
    monkeypatch.undo()
    store.tick()

    records = list(read_log(tmp_path))
    assert 90 == len(records) == store.dispatcher.count
    assert queue_files(records, 200) == read_queue_files(tmp_path)
    assert index_files(records, 7, 40, Dialect.V5_5) == read_index_files(tmp_path)


def test_bytes_that_are_no_record_are_refused(tmp_path: Path) -> None:
    store = LiveParts(tmp_path)
    store.appender.put_many([Message("A", b"body")])
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(4)
        file.write(b"?")

    with pytest.raises(StoreError, match="physical offset 0: no record starts here"):
        store.tick()


def test_without_the_index_there_is_none(tmp_path: Path) -> None:
    store = LiveParts(tmp_path, StoreSettings(message_index_enable=False))

    store.put(Message("A", b"", keys="k"))

    assert store.queues.max_offset("A", 0) == 1
    assert not (tmp_path / "index").exists()


def test_dispatch_of_what_is_there_already_changes_nothing() -> None:
    disk = RecordedDisk()
    store = LiveParts(disk, SETTINGS)
    store.put_many(messages(50))
    queue = store.queues.queue("Topic0", 0)
    before, steps = bytes(queue.read(0, queue.end)), len(disk.trace)

    assert queue.append(0, before[: 2 * ENTRY.size]) == 0

    assert before == bytes(queue.read(0, queue.end))
    assert steps == len(disk.trace)
