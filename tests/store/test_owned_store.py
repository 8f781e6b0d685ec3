"""The core of the live store: what is readable when, what the clock brings about, a clean stop."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mqlake.errors import DiskError, StoreError, SyncError
from mqlake.formats import checkpoint
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutStatus
from mqlake.store.core import durability
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.trace import MakeFile, Sync

SMALL = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=200,
    max_hash_slot_num=16,
    max_index_num=32,
)
SYNC = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=200,
    max_hash_slot_num=16,
    max_index_num=32,
    flush_disk_type=FlushDiskType.SYNC_FLUSH,
)

WIDE = StoreSettings(mapped_file_size_commit_log=1 << 20, max_hash_slot_num=16, max_index_num=32)


def message(number: int, topic: str = "Topic", queue_id: int = 0) -> Message:
    return Message(topic, b"body %d" % number, keys=f"key{number}", queue_id=queue_id)


def run_services(store: OwnedStore) -> int:
    count = 0
    while (job := store.services.due()) is not None:
        job.run()
        job.done()
        count += 1
    return count


def bodies(store: OwnedStore, topic: str = "Topic", queue_id: int = 0) -> list[bytes]:
    found: list[bytes] = []
    offset = store.reads.queue(topic, queue_id).min_offset
    while records := store.reads.get(topic, queue_id, offset).records:
        found += [record.body for record in records]
        offset += len(records)
    return found


def test_what_was_put_is_read_after_a_tick_and_after_opening_again() -> None:
    disk, clock = RecordedDisk(), ManualClock()
    store = OwnedStore.open(disk, SMALL, clock)
    results = [store.puts.put(message(number, queue_id=number % 2)) for number in range(100)]
    assert all(result.is_ok for result in results)
    assert [result.queue_offset for result in results[::2]] == list(range(50))
    store.tick()
    assert bodies(store) == [b"body %d" % number for number in range(0, 100, 2)]
    store.close()
    assert not disk.exists("abort")

    again = OwnedStore.open(disk, SMALL, clock)
    assert again.recovered.is_clean
    assert again.recovered.records == 0
    assert bodies(again, queue_id=1) == [b"body %d" % number for number in range(1, 100, 2)]
    assert [r.body for r in again.reads.by_key("Topic", "key7").records] == [b"body 7"]
    assert again.puts.put(message(100)).queue_offset == 50
    again.close()


def test_under_load_a_put_dispatches_by_itself() -> None:
    clock = ManualClock()
    store = OwnedStore.open(RecordedDisk(clock=clock), SMALL, clock)
    store.puts.put(message(0))
    assert bodies(store) == []
    clock.forward(5)
    store.puts.put(message(1))
    assert bodies(store) == [b"body 0", b"body 1"]
    clock.forward(5)
    store.puts.put_many([message(2), message(3)])
    assert len(bodies(store)) == 4
    store.close()


def test_under_sync_flush_nothing_is_read_that_is_not_on_the_disk() -> None:
    clock = ManualClock()
    store = OwnedStore.open(RecordedDisk(clock=clock), SYNC, clock)
    result = store.puts.put(message(0))
    store.tick()
    assert bodies(store) == []
    assert store.reads.record_at(result.physical_offset) is None
    assert store.reads.by_key("Topic", "key0").records == []
    store.durability.sync_log()
    assert bodies(store) == [b"body 0"]
    assert store.reads.record_at(result.physical_offset) is not None
    store.close()


def test_the_log_is_flushed_and_the_checkpoint_moves_by_the_clock() -> None:
    clock = ManualClock()
    disk = RecordedDisk(clock=clock)
    store = OwnedStore.open(disk, SMALL, clock)
    store.puts.put(message(0))
    store.tick()
    clock.forward(600)
    run_services(store)
    assert store.log.flushed < store.log.end  # less than the least pages, and not for long
    clock.forward(10_000)
    run_services(store)
    assert store.log.flushed == store.log.end
    stored = store.puts.put(message(1)).store_timestamp
    store.tick()
    clock.forward(60_000)
    run_services(store)
    data = disk.open("checkpoint").read(0, 4096)
    assert checkpoint.decode(data).logics_msg_timestamp <= stored
    assert checkpoint.decode(data).physic_msg_timestamp == stored
    assert run_services(store) == 0
    store.close()


def checkpoints(store: OwnedStore, clock: ManualClock, seconds: int) -> int:
    """Return how many checkpoints the services write while the clock goes on."""
    written = 0
    clock.forward(seconds * 1000)
    while (job := store.services.due()) is not None:
        written += job.service.name == "checkpoint"
        job.run()
        job.done()
    return written


def test_a_checkpoint_is_due_when_each_changed_queue_has_two_pages_on_average() -> None:
    disk, clock = RecordedDisk(), ManualClock()
    store = OwnedStore.open(disk, WIDE, clock)
    per_page = 4096 // ENTRY_SIZE

    def put(queues: int, each: int) -> None:
        for number in range(queues * each):
            store.puts.put(message(number, queue_id=number % queues))
        store.tick()

    put(1, 2 * per_page)
    assert checkpoints(store, clock, 1) == 0
    put(1, 10)
    assert checkpoints(store, clock, 1) == 1
    put(4, per_page)
    assert checkpoints(store, clock, 1) == 0
    put(4, per_page + 10)
    assert checkpoints(store, clock, 1) == 1
    assert checkpoints(store, clock, 1) == 0
    put(1, 1)
    assert checkpoints(store, clock, 57) == 0
    assert checkpoints(store, clock, 3) == 1
    store.close()


def test_a_checkpoint_is_due_when_a_recovery_would_read_64_mib(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(durability, "_MOST_TO_READ", 20_000)
    disk, clock = RecordedDisk(), ManualClock()
    store = OwnedStore.open(disk, WIDE, clock)
    for number in range(100):
        store.puts.put(message(number, queue_id=number))
    store.tick()
    assert store.log.end < 20_000
    assert checkpoints(store, clock, 1) == 0
    for number in range(100):
        store.puts.put(message(number, queue_id=number))
    store.tick()
    assert store.log.end >= 20_000
    assert checkpoints(store, clock, 1) == 1
    assert checkpoints(store, clock, 1) == 0
    store.close()


def test_a_checkpoint_is_written_only_after_all_else_is_on_the_disk() -> None:
    clock = ManualClock()
    disk = RecordedDisk(clock=clock)
    store = OwnedStore.open(disk, SMALL, clock)
    for number in range(60):
        store.puts.put(message(number, queue_id=number % 3))
    store.tick()
    before = len(disk.trace)
    store.durability.checkpoint()
    synced = [step for step in disk.trace[before:] if isinstance(step, Sync)]
    assert len(synced) > 5
    names = {step.node: step.name for step in disk.trace if isinstance(step, MakeFile)}
    assert [names[step.node] for step in synced].index("checkpoint") == len(synced) - 1
    store.close()


def test_a_failed_sync_ends_all_puts_and_no_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    store = OwnedStore.open(RecordedDisk(clock=clock), SYNC, clock)
    store.puts.put(message(0))
    store.durability.sync_log()
    store.puts.put(message(1))
    pending = store.log.unsynced()

    def broken() -> None:
        raise SyncError("commitlog: Input/output error", 5)

    for file in pending.files:
        monkeypatch.setattr(type(file), "sync", lambda _: broken())
    with pytest.raises(DiskError, match="Input/output"):
        store.durability.sync_log()
    monkeypatch.undo()
    refused = store.puts.put(message(2))
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "Input/output error" in refused.reason
    store.tick()
    assert bodies(store) == [b"body 0"]
    for tried_again in (store.durability.sync_log, store.durability.checkpoint, store.close):
        with pytest.raises(DiskError, match="Input/output"):
            tried_again()


def test_dispatch_that_the_disk_refuses_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    disk = RecordedDisk(clock=clock)
    store = OwnedStore.open(disk, SMALL, clock)
    store.puts.put(message(0))

    def full(*_: object) -> None:
        raise DiskError("consumequeue: No space left on device", 28)

    monkeypatch.setattr(store.queues.files, "write", full)
    store.tick()
    refused = store.puts.put(message(1))
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "No space left" in refused.reason
    monkeypatch.undo()
    store.tick()
    assert store.puts.put(message(1)).queue_offset == 1
    store.tick()
    assert bodies(store) == [b"body 0", b"body 1"]
    assert [r.body for r in store.reads.by_key("Topic", "key0").records] == [b"body 0"]
    store.close()


def test_a_store_has_one_owner(tmp_path: Path) -> None:
    directory = LocalOwnedDirectory.make(tmp_path / "a" / "store")
    store = OwnedStore.open(directory, SMALL)
    with pytest.raises(StoreError, match="owns this store"):
        OwnedStore.open(directory, SMALL)
    store.close()
    OwnedStore.open(directory, SMALL).close()


def test_after_a_stop_nothing_is_taken() -> None:
    clock = ManualClock()
    store = OwnedStore.open(RecordedDisk(clock=clock), SMALL, clock)
    store.close()
    assert store.puts.put(message(0)).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_a_delayed_message_comes_when_it_is_due() -> None:
    clock = ManualClock()
    store = OwnedStore.open(RecordedDisk(clock=clock), SMALL, clock)
    delayed = Message("Topic", b"late", queue_id=1, delay_level=2)
    assert store.puts.put(delayed).is_ok
    assert all(result.is_ok for result in store.puts.put_many([message(0), delayed]))
    store.tick()
    assert bodies(store) == [b"body 0"]
    clock.forward(4_000)
    run_services(store)
    store.tick()
    assert bodies(store, queue_id=1) == []
    clock.forward(1_100)
    run_services(store)
    store.tick()
    assert bodies(store, queue_id=1) == [b"late", b"late"]
    store.close()


def test_an_offline_reader_sees_the_same(tmp_path: Path) -> None:
    store = OwnedStore.open(LocalOwnedDirectory.make(tmp_path), SMALL)
    for number in range(200):
        store.puts.put(message(number))
    store.tick()
    with StoreReader.open(tmp_path) as reader:
        assert [r.body for r in reader.get("Topic", 0, 190, 64).records] == [
            b"body %d" % number for number in range(190, 200)
        ]
        assert reader.by_key("Topic", "key150").records[0].queue_offset == 150
    store.close()


@pytest.mark.parametrize("when", ["before", "between"])
def test_messages_on_their_way_to_a_topic_that_is_removed_cost_none_that_come_later(
    when: str,
) -> None:
    """One that is put before belongs to the dead incarnation, one between to the next."""
    store = OwnedStore.open(RecordedDisk(), SYNC, ManualClock())
    for number in range(3):
        store.puts.put(message(number))
    store.durability.sync_log()
    removal = store.removal.steps("Topic")
    if when == "between":
        next(removal)
    store.puts.put(message(3))  # it waits for the disk, and is not dispatched before
    for job in removal:
        if job is not None:
            job.run()
            job.done()
    store.durability.sync_log()

    results = [store.puts.put(message(number)) for number in range(4, 12)]
    store.durability.sync_log()

    lives = 3 if when == "between" else 4
    assert [result.queue_offset for result in results] == list(range(4 - lives, 12 - lives))
    assert bodies(store) == [b"body %d" % number for number in range(lives, 12)]
    store.close()
    assert store.health.failure is None


def test_a_removed_queue_starts_at_0_again() -> None:
    store = OwnedStore.open(RecordedDisk(), SMALL, ManualClock())
    for number in range(15):
        store.puts.put(message(number))
    store.tick()
    store.removal.remove("Topic")
    assert store.puts.put(message(20)).queue_offset == 0
    store.tick()
    assert bodies(store) == [b"body 20"]


def test_a_demotion_that_the_disk_refuses_changes_nothing() -> None:
    disk = FaultyDisk(Fault.NO_DESCRIPTOR, at=-1)
    store = OwnedStore.open(disk, SMALL)
    store.puts.put(message(0))
    store.tick()
    store.durability.checkpoint()
    store.puts.put(message(1))
    store.tick()
    checksummed = store.durability._checkpoint.checksummed
    assert checksummed is not None
    disk.fail_next(Fault.NO_DESCRIPTOR)

    def follow() -> None:
        with closing(store.role.following()) as steps:
            for job in steps:
                job.run()
                job.done()

    with pytest.raises(DiskError):
        follow()
    assert store.durability._checkpoint.checksummed == checksummed
    assert not store.dispatcher.expects_restarts
