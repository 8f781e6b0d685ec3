"""Sixteen bugs that RocketMQ's store had, or has: none of them is here.

Each test tells the issue, and what went wrong there.
"""

from __future__ import annotations

import pytest

from mqlake.errors import DiskError
from mqlake.formats import fastjson, index_file
from mqlake.formats.consume_queue import ENTRY_SIZE, QueueEntry
from mqlake.formats.consume_queue import encode as encode_entry
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutStatus
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.images import PowerCuts
from tests.crash.log_walk import read_bytes, walk
from tests.crash.pending import PendingDisk
from tests.crash.simulator import EMPTY
from tests.crash.snapshot import Snapshot
from tests.crash.trace import Rename, Sync, SyncNames, Write

SIZES = {
    "mapped_file_size_commit_log": 4096,
    "mapped_file_size_consume_queue": 100,
    "max_hash_slot_num": 2,
    "max_index_num": 64,
}
ASYNC = StoreSettings(**SIZES)
SYNC = StoreSettings(**SIZES, flush_disk_type=FlushDiskType.SYNC_FLUSH)


def _open(disk: RecordedDisk, settings: StoreSettings = ASYNC) -> OwnedStore:
    return OwnedStore.open(disk, settings, disk.clock)


def _put(store: OwnedStore, *bodies: str, size: int = 0, queue_id: int = 0) -> None:
    for body in bodies:
        data = body.encode().ljust(size, b".")
        assert store.puts.put(Message("T", data, keys=f"key-{body}", queue_id=queue_id)).is_ok


def _bodies(store: OwnedStore, queue_id: int = 0) -> list[str]:
    first = store.reads.queue("T", queue_id).min_offset
    found = store.reads.get("T", queue_id, first, 100)
    return [record.body.decode().rstrip(".") for record in found.records]


def _keys(store: OwnedStore, *bodies: str) -> list[bool]:
    return [bool(store.reads.by_key("T", f"key-{body}").records) for body in bodies]


def _killed(disk: RecordedDisk, settings: StoreSettings = ASYNC) -> OwnedStore:
    """Open the store again after the process that had it was killed."""
    disk.abandon()
    return _open(disk, settings)


def _only_synced(disk: RecordedDisk) -> RecordedDisk:
    """Return what a power cut leaves that takes all it can."""
    pending = PendingDisk(EMPTY)
    for step in disk.trace:
        pending.apply(step)
    cuts = PowerCuts(pending)
    content: Snapshot = cuts.build(dict.fromkeys(cuts.points, 0))
    return RecordedDisk(content, disk.clock)


def _failing_sync(disk: FaultyDisk) -> None:
    """Let the next sync fail, and none after it."""
    disk.fail_next(Fault.SYNC_ONCE)


def test_2706_a_failed_flush_fails_the_put() -> None:
    """apache/rocketmq#2706: an error of `force` was logged only; the producer was told SEND_OK."""
    disk = FaultyDisk(Fault.SYNC_ONCE, at=-1)
    store = _open(disk, SYNC)
    _put(store, "a")
    store.durability.sync_log()
    _failing_sync(disk)
    _put(store, "b")
    with pytest.raises(DiskError):
        store.durability.sync_log()
    assert isinstance(store.health.failure, DiskError)
    assert store.puts.put(Message("T", b"c")).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert _bodies(store) == ["a"]


def test_5235_a_failed_flush_moves_no_pointer() -> None:
    """apache/rocketmq#5235: `flushedPosition` became the write position though `force` failed."""
    disk = FaultyDisk(Fault.SYNC_ONCE, at=-1)
    store = _open(disk, SYNC)
    _put(store, "a")
    store.durability.sync_log()
    flushed = store.log.flushed
    _put(store, "b")
    _failing_sync(disk)
    for _ in range(2):  # not even when it is asked again, and the disk says yes
        with pytest.raises(DiskError):
            store.durability.sync_log()
        assert store.log.flushed == flushed < store.log.end


def test_8239_what_is_not_flushed_is_not_served() -> None:
    """apache/rocketmq#8239: under SYNC_FLUSH consumers got messages that a crash then took back."""
    store = _open(RecordedDisk(), SYNC)
    _put(store, "a")
    store.tick()
    assert _bodies(store) == []
    store.durability.sync_log()
    assert _bodies(store) == ["a"]


def test_1434_recovery_dispatches_the_end_of_the_file_before() -> None:
    """apache/rocketmq#1434: after a crash only the last log file was dispatched again.

    What stood at the end of the file before, and was not in the queues yet, was never found.
    """
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, "a")
    store.tick()
    store.durability.checkpoint()
    _put(store, "b", "c", "d", "e", size=1500)
    assert len(store.log.segments) > 1
    store = _killed(disk)
    assert _bodies(store) == list("abcde")
    assert _keys(store, *"abcde") == [True] * 5


def test_678_the_checkpoint_follows_what_it_vouches_for() -> None:
    """apache/rocketmq#678: flushing an index file wrote the queues' time to the checkpoint too,

    though the queues were not on the disk: after a power cut their entries were not made again.
    """
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, "a", "b")
    store.tick()
    before = len(disk.trace)
    store.durability.checkpoint()
    kinds = [type(step) for step in disk.trace[before:]]
    write = kinds.index(Write)
    assert {Sync, SyncNames} <= {*kinds[:write]}
    assert kinds[write:] == [Write, Sync]
    store = _open(_only_synced(disk))
    assert _bodies(store) == ["a", "b"]
    assert _keys(store, "a", "b") == [True, True]


def test_8007_the_last_index_file_is_kept() -> None:
    """apache/rocketmq#8007: a start after a crash deleted the last index file.

    Keys of log files before the one that was dispatched again could not be found any more.
    """
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, *"abcdefgh", size=1500)
    store.tick()
    store.durability.checkpoint()
    _put(store, "i")
    store.tick()
    names = disk.names("index")
    store = _killed(disk)
    assert disk.names("index") == names
    assert _keys(store, *"abcdefghi") == [True] * 9


def test_4463_a_stop_flushes_the_index() -> None:
    """apache/rocketmq#4463: an index file was flushed when it was full, and not at a clean stop."""
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, "a", "b")
    store.close()
    assert len(PowerCuts(_replayed(disk)).points) == 0
    store = _open(_only_synced(disk))
    assert store.recovered.is_clean
    assert _keys(store, "a", "b") == [True, True]


def _replayed(disk: RecordedDisk) -> PendingDisk:
    pending = PendingDisk(EMPTY)
    for step in disk.trace:
        pending.apply(step)
    return pending


def test_8018_a_chain_in_a_circle_ends() -> None:
    """apache/rocketmq#8018: an index file damaged by a crash could hold a query in a loop."""
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, *"abcdef")
    store.tick()
    (name,) = disk.names("index")
    file = disk.open_writable(f"index/{name}")
    for number in range(1, 7):  # each entry leads to itself
        at = index_file.entry_at(2, number)
        entry = index_file.decode_entry(file.view(), 2, number)
        file.write(at, index_file.encode_entry(entry._replace(previous=number)))
    file.close()
    assert _keys(store, "f", "none") == [True, False]
    store = _killed(disk)
    assert _keys(store, *"abcdef", "none") == [True] * 6 + [False]


def test_9328_9705_a_config_file_is_replaced_whole() -> None:
    """apache/rocketmq#9328, #9705: a shorter JSON text left the end of the longer one behind it,

    and the rename of a new file was not synced to its directory: a power cut lost both.
    """
    disk = RecordedDisk()
    store = _open(disk)
    offsets = store.config.consumer_offsets
    for topic in ("T", "another-topic-with-a-long-name"):
        offsets.commit("group", topic, 0, 5)
    store.config.persist()
    offsets.remove("group", "another-topic-with-a-long-name")
    before = len(disk.trace)
    store.config.persist()
    steps = [step for step in disk.trace[before:] if isinstance(step, Rename | Sync | SyncNames)]
    assert [type(step) for step in steps[-2:]] == [Rename, SyncNames]
    for left in (disk, _only_synced(disk)):
        data = fastjson.loads(read_bytes(left, "config/consumerOffset.json"))
        assert isinstance(data, dict)
        assert list(data["offsetTable"]) == ["T@group"]
    assert b"another" in read_bytes(disk, "config/consumerOffset.json.bak")


def test_6618_no_queue_goes_beyond_the_log() -> None:
    """apache/rocketmq#6618: after a restart queues had entries of records behind the log's end."""
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, "a")
    store.tick()
    store.durability.checkpoint()
    end = store.log.end
    path = "consumequeue/T/0/" + "0" * 20
    file = disk.open_writable(path)
    for number in (1, 2):
        entry = QueueEntry(end + 500 * number, 100, 0)
        file.write(ENTRY_SIZE * number, encode_entry(entry))
    file.close()
    store = _killed(disk)
    assert store.reads.queue("T", 0).max_offset == store.offsets.next("T", 0) == 1
    _put(store, "b")
    store.tick()
    assert _bodies(store) == ["a", "b"]
    assert not read_bytes(disk, path)[2 * ENTRY_SIZE :].strip(b"\0")


@pytest.mark.parametrize("size", [0, 7, 50, 130])
def test_10108_queue_files_of_odd_sizes_open(size: int) -> None:
    """apache/rocketmq#10108: a queue file cut off by a crash, or empty, kept the broker down."""
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, *"abcdefg")
    store.tick()
    disk.abandon()
    disk.truncate("consumequeue/T/0/00000000000000000100", size)
    store = _open(disk)
    assert _bodies(store) == list("abcdefg")
    assert store.offsets.next("T", 0) == 7


def test_1400_deleting_files_does_not_keep_the_disk_from_being_watched() -> None:
    """apache/rocketmq#1400: while expired files were deleted, nobody saw that the disk got full."""
    disk = RecordedDisk(clock=ManualClock())
    disk.total = 200_000
    store = _open(disk)
    _put(store, *"abcdefgh", size=1500)
    store.tick()
    store.durability.checkpoint()
    disk.others = 120_000
    store.retention.check()  # files are to go, one at a time
    store.tick()
    assert store.puts.put(Message("T", b"x")).is_ok
    disk.others = 199_000
    store.retention.check()
    store.tick()
    assert store.puts.put(Message("T", b"x")).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_331_a_disk_with_room_again_is_written_again() -> None:
    """alibaba/rocketmq#331: a broker that a full disk had made read-only stayed so for good."""
    disk = RecordedDisk(clock=ManualClock())
    store = _open(disk)
    disk.total, disk.others = 1 << 20, 1 << 20
    store.retention.check()
    store.tick()
    refused = store.puts.put(Message("T", b"x"))
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert refused.reason
    disk.others = 0
    store.retention.check()
    store.tick()
    _put(store, "a")
    store.tick()
    assert _bodies(store) == ["a"]


def test_2661_5752_4890_offsets_by_time_at_the_edges() -> None:
    """apache/rocketmq#2661, #5752, #4890: the offset of a time after the last message was that

    of the last but one, or of the last; of equal times any could be taken.
    """
    clock = ManualClock(1_000_000)
    store = _open(RecordedDisk(clock=clock))
    for body in "abcd":
        _put(store, body)
        clock.forward(0 if body == "b" else 1000)
    store.tick()
    times = {"a": 1_000_000, "b": 1_001_000, "c": 1_001_000, "d": 1_002_000}
    assert store.reads.offset_by_time("T", 0, times["a"] - 1) == 0
    assert store.reads.offset_by_time("T", 0, times["a"]) == 0
    assert store.reads.offset_by_time("T", 0, times["b"] - 1) == 1
    assert store.reads.offset_by_time("T", 0, times["b"]) == 1
    assert store.reads.offset_by_time("T", 0, times["d"]) == 3
    assert store.reads.offset_by_time("T", 0, times["d"] + 1) == 4


def test_7477_keys_survive_a_restart() -> None:
    """apache/rocketmq#7477: after a restart messages were found by their offset, not by their key.

    There the index was not completed by a start that found it behind the log.
    """
    disk = RecordedDisk()
    store = _open(disk)
    _put(store, "a", "b")
    store.durability.sync_log()  # the log is on the disk, what follows from it is not
    store = _open(_only_synced(disk))
    assert _bodies(store) == ["a", "b"]
    assert _keys(store, "a", "b") == [True, True]


def test_164_no_queue_begins_before_the_log() -> None:
    """alibaba/rocketmq#164: after files were deleted, queues still named records before the log."""
    disk = RecordedDisk(clock=ManualClock())
    store = _open(disk)
    _put(store, "a", queue_id=1)
    _put(store, *"bcdefgh", size=1500)
    store.tick()
    store.durability.checkpoint()
    disk.clock.forward(73 * 3_600_000)
    store.retention.clean()
    store.retention.check()
    for _ in range(9):
        if (job := store.retention.remove_next()) is not None:
            job.complete()
    assert store.log.min_offset > 0
    for left in (store, _killed(disk)):
        queue = left.reads.queue("T", 0)
        first = queue.min_offset
        assert 0 < first < queue.max_offset == 7
        entry = QueueEntry(*_first_entry(left, first))
        assert entry.physical_offset >= left.log.min_offset
        empty = left.reads.queue("T", 1)
        assert empty.min_offset == empty.max_offset == 1
        assert len(_bodies(left)) == 7 - first == len(walk(disk).records)


def _first_entry(store: OwnedStore, offset: int) -> tuple[int, int, int]:
    data = bytes(store.queues.entries("T", 0, offset, 1))
    return (
        int.from_bytes(data[:8], "big"),
        int.from_bytes(data[8:12], "big"),
        int.from_bytes(data[12:20], "big"),
    )
