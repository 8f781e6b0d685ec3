"""Opening a store, however the last process ended, and whoever it was."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.errors import DiskError
from mqlake.formats import checkpoint
from mqlake.formats.dialect import Dialect
from mqlake.storage.local_owned import LocalOwnedDirectory, LocalOwnedFile
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.index.owned_index import OwnedIndex
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.owned_queue_files import OwnedQueueFiles
from mqlake.store.recovery import recovery
from mqlake.store.recovery.abort_mark import mark_closed, mark_open
from mqlake.store.recovery.checkpoint_file import CheckpointFile, reached
from mqlake.store.recovery.recovery import recover
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.trace import MakeFile, Remove, Rename, Resize, Write
from tests.golden import CLEAN, TORN_VARIANTS, store
from tests.jobs.model import (
    index_files,
    queue_files,
    read_index_files,
    read_log,
    read_queue_files,
)
from tests.store.live_parts import LiveParts
from tests.store.record_crcs import without_crc
from tests.store.recovering import (
    FIRST,
    SMALL,
    contents,
    leave_killed,
    messages,
    open_store,
    require_whole,
)

# Stores of RocketMQ


@pytest.mark.parametrize("name", CLEAN)
def test_a_store_that_rocketmq_closed_keeps_every_byte(name: str, tmp_path: Path) -> None:
    golden = store(name)
    path = golden.copy(tmp_path / "store")
    before = contents(path)

    found = open_store(path)

    after = contents(path)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed - {"checkpoint", "abort", "config/incarnations.json"} == set()
    assert found.report.is_clean
    assert found.report.log_end == golden.walk()["endOffset"]
    assert found.report.records <= 2


@pytest.mark.parametrize("name", ["rmq5-killed", *TORN_VARIANTS])
def test_a_crashed_store_ends_where_rocketmq_ends_it(name: str, tmp_path: Path) -> None:
    golden = store(name)
    path = golden.copy(tmp_path / "store")

    found = open_store(path)

    recovered = golden.recovery()
    assert found.report.log_end == recovered["afterLoad"]["commitLogMaxOffset"]
    assert not found.report.is_clean
    for queue in recovered["queues"]:
        topic, queue_id = queue["topic"], queue["queueId"]
        assert queue["maxOffset"] == found.queues.max_offset(topic, queue_id)
        assert queue["maxOffset"] == found.offsets.next(topic, queue_id)
        assert queue["minOffset"] == found.queues.min_offset(topic, queue_id)


@pytest.mark.parametrize("name", ["rmq5-killed", *TORN_VARIANTS])
def test_a_crashed_store_gets_all_that_follows_from_its_log(name: str, tmp_path: Path) -> None:
    path = store(name).copy(tmp_path / "store")

    open_store(path)

    records = list(read_log(path))
    written = {name: data for name, data in read_queue_files(path).items() if data.strip(b"\0")}
    assert queue_files(records, 20000) == written
    assert index_files(records, 1000, 4000, Dialect.V5_5) == read_index_files(path)


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq49-clean", "rmq5-killed", "rmq5-torn"])
def test_without_derived_files_they_are_made_from_the_log(name: str, tmp_path: Path) -> None:
    golden = store(name)
    path = golden.copy(tmp_path / "store")
    dialect = open_store(golden.copy(tmp_path / "other")).report.dialect
    for derived in ("consumequeue", "index"):
        shutil.rmtree(path / derived)

    found = open_store(path)

    assert found.report.dialect is dialect
    records = list(read_log(path))
    assert queue_files(records, 6_000_000) == read_queue_files(path)
    assert index_files(records, 1000, 4000, dialect) == read_index_files(path)


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq5-killed", "rmq5-torn"])
def test_the_second_start_writes_nothing(name: str, tmp_path: Path) -> None:
    path = store(name).copy(tmp_path / "store")
    open_store(path)
    before, times = contents(path), {file: file.stat().st_mtime_ns for file in path.rglob("*")}

    again = open_store(path)

    assert contents(path) == before
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == times
    assert again.report.records == 0


def test_queue_files_keep_the_size_that_they_have(tmp_path: Path) -> None:
    path = store("rmq5-clean").copy(tmp_path / "store")
    found = open_store(path)
    found.queues.append("TopicNew", 0, 0, bytes(8) + b"\0\0\0\1" + bytes(8))

    assert (path / "consumequeue/TopicNew/0" / f"{0:020d}").stat().st_size == 20000


# mqlake's own


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store with a checkpoint, records behind it, and a process that died."""
    leave_killed(tmp_path)
    return tmp_path


def test_only_the_log_after_the_checkpoint_is_read(killed: Path) -> None:
    before = contents(killed)

    found = open_store(killed, SMALL)

    assert (found.report.records, found.report.is_rebuilt) == (100, False)
    assert require_whole(killed, SMALL) == 300
    after = contents(killed)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert {name.partition("/")[0] for name in changed} <= {"checkpoint", "index", "commitlog"}


def test_messages_go_on_where_they_ended(killed: Path) -> None:
    parts = LiveParts(killed, SMALL)
    parts.put_many(messages(100, seed=2))

    assert require_whole(killed, SMALL) == 400


def test_a_queue_whose_file_was_never_made_begins_at_0(killed: Path) -> None:
    """Only its directory is there: power was lost before it got its first entry."""
    (killed / "consumequeue" / "new" / "0").mkdir(parents=True)

    with BlockingMessageStore.open(killed, SMALL) as store:
        result = store.put(Message("new", b"first"))

    assert result.queue_offset == 0
    assert require_whole(killed, SMALL) == 301


def _drop(path: Path, name: str) -> None:
    shutil.rmtree(path / name) if (path / name).is_dir() else (path / name).unlink()


def _files(place: Path) -> list[Path]:
    return [file for file in (place, *place.rglob("*")) if file.is_file()]


def _cut(path: Path, name: str) -> None:
    for file in _files(path / name):
        os.truncate(file, 0)


def _zero(path: Path, name: str) -> None:
    for file in _files(path / name):
        file.write_bytes(bytes(file.stat().st_size))


def _scribble(path: Path, name: str) -> None:
    dice = random.Random(name)
    for file in _files(path / name):
        file.write_bytes(dice.randbytes(file.stat().st_size))


@pytest.mark.parametrize("harm", [_drop, _cut, _zero, _scribble])
@pytest.mark.parametrize("name", ["consumequeue", "index", "consumequeue/Topic1/2"])
def test_damaged_derived_files_are_repaired_from_the_log(
    harm: Callable[[Path, str], None], name: str, killed: Path
) -> None:
    harm(killed, name)

    open_store(killed, SMALL)

    assert require_whole(killed, SMALL) == 300


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A store of a process that stopped cleanly: nothing is behind the checkpoint."""
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        store.put_many(messages(300))
    return tmp_path


LOST = [
    "consumequeue",
    "index",
    "consumequeue/Topic1/2",
    f"consumequeue/Topic0/1/{400:020d}",
]


@pytest.mark.parametrize(
    ("harm", "name"),
    [*((harm, name) for harm in (_drop, _cut, _zero, _scribble) for name in LOST), (_drop, FIRST)],
)
def test_damage_of_derived_files_is_noticed_without_newer_messages(
    harm: Callable[[Path, str], None], name: str, stopped: Path
) -> None:
    assert (stopped / name).exists()
    harm(stopped, name)

    found = open_store(stopped, SMALL)

    assert require_whole(stopped, SMALL) == 300
    found.queues.files.close()
    assert not open_store(stopped, SMALL).report.is_rebuilt


def test_a_queue_file_that_was_lost_between_others(stopped: Path) -> None:
    with BlockingMessageStore.open(stopped, SMALL) as store:
        store.put_many(messages(600, seed=1))
    (stopped / f"consumequeue/Topic0/1/{400:020d}").unlink()

    assert open_store(stopped, SMALL).report.is_rebuilt

    assert require_whole(stopped, SMALL) == 900


def test_a_queue_file_that_was_lost_between_others_after_rocketmq_stopped(stopped: Path) -> None:
    with BlockingMessageStore.open(stopped, SMALL) as store:
        store.put_many(messages(600, seed=1))
    _let_rocketmq_write_the_checkpoint(stopped)
    (stopped / f"consumequeue/Topic0/1/{400:020d}").unlink()

    found = open_store(stopped, SMALL)

    assert (found.report.is_clean, found.report.is_rebuilt) == (True, True)
    assert require_whole(stopped, SMALL) == 900


def test_a_queue_file_that_was_lost_between_others_after_a_crash(stopped: Path) -> None:
    with BlockingMessageStore.open(stopped, SMALL) as store:
        store.put_many(messages(600, seed=1))
    open_store(stopped, SMALL).queues.files.close()
    (stopped / f"consumequeue/Topic0/1/{400:020d}").unlink()

    found = open_store(stopped, SMALL)

    assert (found.report.is_clean, found.report.is_rebuilt) == (False, True)
    assert require_whole(stopped, SMALL) == 900


_QUEUE = "consumequeue/Topic0/1"


def _let_rocketmq_write_the_checkpoint(path: Path) -> None:
    """Change a field behind which there is a resume point: that does not hold any more."""
    data = bytearray((path / "checkpoint").read_bytes())
    data[7] ^= 1
    (path / "checkpoint").write_bytes(data)


LOST_QUEUE_FILES = (
    (slice(0, 1), (), True, True),  # after a crash, retention may have removed it
    (slice(0, 2), (), True, True),
    (slice(1, 2), (), True, True),
    (slice(1, 2), (), False, True),
    (slice(1, 2), (), True, False),
    (slice(0, None), (-1,), True, True),  # a power cut takes the removal of the last one back
)


@pytest.mark.parametrize(
    ("steps", "lost", "returning", "is_clean", "has_point"),
    [
        # Every other step of each; the steps between are for the night.
        pytest.param(steps, *case, marks=[pytest.mark.nightly] if (steps + number) % 2 else [])
        for steps in range(8)
        for number, case in enumerate(LOST_QUEUE_FILES)
    ],
)
def test_queue_files_that_were_lost_before_a_start_that_is_killed_soon(
    steps: int,
    lost: slice,
    returning: tuple[int, ...],
    is_clean: bool,
    has_point: bool,
    stopped: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with BlockingMessageStore.open(stopped, SMALL) as store:
        store.put_many(messages(600, seed=1))
    if not is_clean:
        open_store(stopped, SMALL).queues.files.close()
    if not has_point:
        _let_rocketmq_write_the_checkpoint(stopped)
    gone = [(file, file.read_bytes()) for file in sorted((stopped / _QUEUE).iterdir())[lost]]
    for file, _ in gone:
        file.unlink()
    left = steps

    def count(change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise DiskError("killed")
            return change(*arguments)

        return counted

    with monkeypatch.context() as patched:
        for kind, names in (
            (LocalOwnedDirectory, ("create", "replace", "remove", "truncate")),
            (LocalOwnedFile, ("write",)),
        ):
            for name in names:
                patched.setattr(kind, name, count(getattr(kind, name)))
        with pytest.raises(DiskError, match="killed"):
            open_store(stopped, SMALL)
    for place in returning:
        file, content = gone[place]
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)

    open_store(stopped, SMALL)

    assert require_whole(stopped, SMALL) == 900


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("lost", [0, 2, -2, -1, slice(0, 2), slice(0, -1)])
def test_index_files_that_were_lost_are_made_again(
    lost: int | slice, is_clean: bool, stopped: Path
) -> None:
    names = sorted((stopped / "index").iterdir())
    assert len(names) > 5
    if not is_clean:
        open_store(stopped, SMALL).queues.files.close()
    for name in names[lost] if isinstance(lost, slice) else [names[lost]]:
        name.unlink()

    assert open_store(stopped, SMALL).report.is_clean == is_clean

    assert require_whole(stopped, SMALL) == 300


@pytest.mark.parametrize("is_rocketmqs", [False, True])
def test_an_unfinished_rebuilt_index_is_derived_again(
    is_rocketmqs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: OwnedIndex) -> None:
        raise DiskError("power cut")

    # In RocketMQ's proportion: such a file's sizes are known, whatever is in it.
    settings = msgspec.structs.replace(SMALL, max_hash_slot_num=10, max_index_num=40)
    with BlockingMessageStore.open(tmp_path, settings) as store:
        store.put_many(messages(100))
    shutil.rmtree(tmp_path / "index")
    if is_rocketmqs:
        place = tmp_path / "checkpoint"
        place.write_bytes(checkpoint.encode(checkpoint.decode(place.read_bytes())))
    with monkeypatch.context() as patched:
        patched.setattr(OwnedIndex, "sync", fail)
        with pytest.raises(DiskError):
            open_store(tmp_path, settings)
    first = min((tmp_path / "index").iterdir())
    data = first.read_bytes()
    first.write_bytes(data[:400] + bytes(100) + data[500:])  # entries that did not reach the disk

    open_store(tmp_path, settings)

    assert require_whole(tmp_path, settings) == 100


@pytest.mark.parametrize("count", range(14, 21))
def test_keys_of_the_last_record_that_two_index_files_share_are_not_inserted_again(
    count: int, tmp_path: Path
) -> None:
    settings = msgspec.structs.replace(SMALL, max_index_num=50)
    with BlockingMessageStore.open(tmp_path, settings) as store:
        for number in range(count):
            store.put(Message("Topic", b"", keys=[f"{number}-{key}" for key in range(3)]))
    place = tmp_path / "checkpoint"
    place.write_bytes(checkpoint.encode(checkpoint.decode(place.read_bytes())))  # RocketMQ's

    assert open_store(tmp_path, settings).report.is_clean

    assert require_whole(tmp_path, settings) == count


def test_index_files_that_retention_removed_are_not_missed(tmp_path: Path) -> None:
    parts = LiveParts(tmp_path, SMALL)
    parts.put_many(messages(300))
    parts.log.unsynced().complete()
    for part in (parts.queues.files, parts.index):
        part.sync()
    CheckpointFile.open(parts.directory).write(
        reached(parts.dispatcher.done, parts.queues, parts.index)
    )
    mark_open(parts.directory)
    parts.log.remove_first()
    assert parts.index.trim(parts.log.min_offset) > 1
    kept = {file.name: file.stat().st_ino for file in (tmp_path / "index").iterdir()}

    assert not open_store(tmp_path, SMALL).report.is_clean

    found = {file.name: file.stat().st_ino for file in (tmp_path / "index").iterdir()}
    assert found == kept


def test_unfinished_rebuilt_queues_are_derived_again(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: OwnedQueueFiles) -> None:
        raise DiskError("power cut")

    shutil.rmtree(stopped / "consumequeue")
    with monkeypatch.context() as patched:
        patched.setattr(OwnedQueueFiles, "sync", fail)
        with pytest.raises(DiskError):
            open_store(stopped, SMALL)
    file = stopped / FIRST
    data = file.read_bytes()
    file.write_bytes(data[:40] + bytes(100) + data[140:])  # a page that did not reach the disk

    assert open_store(stopped, SMALL).report.is_rebuilt

    assert require_whole(stopped, SMALL) == 300
    assert not open_store(stopped, SMALL).report.is_rebuilt


def test_offsets_go_on_where_queues_were_lost(stopped: Path) -> None:
    with BlockingMessageStore.open(stopped, SMALL) as store:
        ends = {queue: store.queue("Topic0", queue).max_offset for queue in store.queues("Topic0")}
    shutil.rmtree(stopped / "consumequeue")

    with BlockingMessageStore.open(stopped, SMALL) as store:
        for queue, end in ends.items():
            result = store.put(Message("Topic0", b"next", queue_id=queue))
            assert result.queue_offset == end > 0


@pytest.mark.parametrize("harm", [b"", bytes(4096), b"?" * 4096])
def test_without_a_good_checkpoint_all_of_the_log_is_read(harm: bytes, killed: Path) -> None:
    (killed / "checkpoint").write_bytes(harm)

    found = open_store(killed, SMALL)

    assert found.report.records >= 300 or harm.startswith(b"?")
    assert require_whole(killed, SMALL) == 300


def test_a_checkpoint_that_rocketmq_wrote_since_is_no_resume_point(killed: Path) -> None:
    data = bytearray((killed / "checkpoint").read_bytes())
    assert checkpoint.decode_resume(data)
    data[7] ^= 1
    (killed / "checkpoint").write_bytes(data)

    assert checkpoint.decode_resume(data) is None
    open_store(killed, SMALL)
    assert require_whole(killed, SMALL) == 300


@pytest.mark.parametrize("lost", [8, 200, 5000])
def test_a_lost_tail_takes_its_entries_with_it(lost: int, killed: Path) -> None:
    end = list(read_log(killed))[-1]
    end_offset = end.physical_offset + end.size
    for file in sorted((killed / "commitlog").iterdir()):
        base = int(file.name)
        data = file.read_bytes()
        keep = max(0, min(len(data), end_offset - lost - base))
        file.write_bytes(data[:keep].ljust(len(data), b"\0"))

    found = open_store(killed, SMALL)

    assert found.log.end == found.report.log_end <= end_offset - lost
    written = {name: data for name, data in read_queue_files(killed).items() if data.strip(b"\0")}
    records = list(read_log(killed))
    assert queue_files(records, 400) == written
    assert index_files(records, 11, 50, Dialect.V5_5) == read_index_files(killed)
    LiveParts(killed, SMALL).put_many(messages(100, seed=3))
    assert len(list(read_log(killed))) == len(records) + 100


def test_a_file_lost_behind_the_checkpoint_costs_none_before_it(tmp_path: Path) -> None:
    parts = LiveParts(tmp_path, SMALL)
    parts.put_many([Message("T", b"%d" % number) for number in range(50)])
    parts.log.unsynced().complete()
    parts.queues.files.sync()
    parts.index.sync()
    CheckpointFile.open(parts.directory).write(
        reached(parts.dispatcher.done, parts.queues, parts.index)
    )
    parts.put_many([Message("T", b"%d" % number) for number in range(50, 150)])
    queue = tmp_path / "consumequeue/T/0"
    before = {file.name: file.stat().st_ino for file in queue.iterdir()}
    assert len(before) == 8
    (queue / f"{1200:020d}").unlink()

    found = open_store(tmp_path, SMALL)

    # What is removed and made again could be lost in the next crash: the checkpoint covers it.
    assert not found.report.is_rebuilt
    after = {file.name: file.stat().st_ino for file in queue.iterdir()}
    assert sorted(after) == sorted(before)
    kept = [name for name in sorted(before) if int(name) < 1200]
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert require_whole(tmp_path, SMALL) == 150


@pytest.mark.parametrize("lost", [1, 7, 8, 12])
def test_a_record_that_lacks_its_last_bytes_is_torn(lost: int, killed: Path) -> None:
    parts = LiveParts(killed, SMALL)
    last = parts.put(Message("T", b"body", encoded_properties=b"KEYS\x01all of it\x02"))
    file = killed / "commitlog" / f"{parts.log.segments[-1].base:020d}"
    end = last.physical_offset + last.size - int(file.name)
    data = bytearray(file.read_bytes())
    data[end - lost : end] = bytes(lost)
    file.write_bytes(data)

    assert open_store(killed, SMALL).log.end == last.physical_offset
    assert len(list(read_log(killed))) == 300


@pytest.mark.parametrize("count", [1, 20])
def test_properties_that_end_in_a_zero_are_not_torn(count: int, tmp_path: Path) -> None:
    parts = LiveParts(tmp_path, SMALL)
    message = Message("T", b"body", encoded_properties=b"A\x01b\x00")
    assert all(result.is_ok for result in parts.put_many([message] * count))

    assert open_store(tmp_path, SMALL).report.records == count
    found = list(read_log(tmp_path))
    assert [without_crc(one.properties) for one in found] == [{"A": "b\x00"}] * count


def test_after_a_clean_stop_nothing_is_read(killed: Path) -> None:
    found = open_store(killed, SMALL)
    found.checkpoint.write(reached(found.dispatched, found.queues, found.index), is_clean_stop=True)
    mark_closed(LocalOwnedDirectory(killed))

    again = open_store(killed, SMALL)

    assert (again.report.is_clean, again.report.records) == (True, 0)
    assert (killed / "abort").exists()
    assert require_whole(killed, SMALL) == 300


def test_what_rocketmq_goes_by_lets_it_index_every_key_again(killed: Path) -> None:
    found = open_store(killed, SMALL)

    running = checkpoint.decode((killed / "checkpoint").read_bytes())
    header = found.index.state().header
    full = found.index.files().files[-2].header
    assert running.logics_physical_offset == header.begin_physical_offset
    assert running.index_msg_timestamp == full.end_timestamp
    found.checkpoint.write(reached(found.dispatched, found.queues, found.index), is_clean_stop=True)
    closed = checkpoint.decode((killed / "checkpoint").read_bytes())
    assert closed.logics_physical_offset == found.dispatched.last_queued.physical_offset
    assert closed.confirm_physical_offset == found.dispatched.last_record.physical_offset


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_new_store_keeps_its_dialect(dialect: Dialect, tmp_path: Path) -> None:
    settings = StoreSettings(index_dialect=dialect, max_hash_slot_num=11, max_index_num=50, **SIZES)
    LiveParts(tmp_path, settings).put_many(messages(60))

    assert open_store(tmp_path, SMALL).report.dialect is dialect
    assert require_whole(tmp_path, SMALL, dialect) == 60


SIZES: dict[str, Any] = {
    "mapped_file_size_commit_log": 1 << 14,
    "mapped_file_size_consume_queue": 400,
}


def test_an_index_that_was_switched_off_is_completed(tmp_path: Path) -> None:
    off = StoreSettings(message_index_enable=False, **SIZES)
    LiveParts(tmp_path, SMALL).put_many(messages(60))
    LiveParts(tmp_path, off).put_many(messages(60, seed=1))
    open_store(tmp_path, off)

    open_store(tmp_path, SMALL)

    assert require_whole(tmp_path, SMALL) == 120


def test_progress_is_reported(killed: Path) -> None:
    told: list[tuple[int, int]] = []
    recover(LocalOwnedDirectory(killed), SMALL, ManualClock(), lambda *how: told.append(how))

    assert told
    assert told == sorted(told)
    assert all(done <= total for done, total in told)


def test_the_second_start_does_nothing_to_the_disk_but_sync() -> None:
    disk = RecordedDisk()
    LiveParts(disk, SMALL).put_many(messages(100))
    disk.abandon()
    LiveParts(disk, SMALL)
    disk.abandon()
    steps = len(disk.trace)

    LiveParts(disk, SMALL)

    changes = Write | Resize | Remove | Rename | MakeFile
    assert [step for step in disk.trace[steps:] if isinstance(step, changes)] == []


@pytest.mark.parametrize("count", [2_500, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_very_many_queues(count: int, tmp_path: Path) -> None:
    settings = StoreSettings(max_hash_slot_num=100, max_index_num=1000)
    parts = LiveParts(tmp_path, settings)
    parts.put_many(
        [Message(f"T{number % 100}", b"", queue_id=number // 100) for number in range(count)]
    )
    CheckpointFile.open(parts.directory).write(
        reached(parts.dispatcher.done, parts.queues, parts.index)
    )

    found = open_store(tmp_path, settings)

    assert (found.report.queues, found.report.records) == (count, 0)
    assert all(end == 1 for end in found.offsets.values())
    assert len(found.offsets) == count


def test_a_long_log_is_read_ahead(tmp_path: Path) -> None:
    settings = StoreSettings(
        mapped_file_size_commit_log=5 << 20, max_hash_slot_num=1000, max_index_num=9000
    )
    parts = LiveParts(tmp_path, settings)
    bodies = random.Random(1).randbytes(4 << 20)
    sent = [
        Message(f"T{number % 5}", bodies[: number % 3000], keys=f"k{number}", queue_id=number % 2)
        for number in range(10_000)
    ]
    parts.put_many([*sent, Message("T0", bodies[: 3 << 20], keys="longer than a window"), *sent])

    found = open_store(tmp_path, settings)

    assert found.report.records == 20_001
    assert require_whole(tmp_path, settings) == 20_001


def test_a_long_log_that_cannot_be_synced_is_not_opened(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (killed / "checkpoint").unlink()
    synced: list[str] = []

    def sync(file: LocalOwnedFile) -> None:
        synced.append(str(file))
        raise DiskError("no")

    monkeypatch.setattr(recovery, "_LONG", 0)
    monkeypatch.setattr(LocalOwnedFile, "sync", sync)
    # Were it tried again, it might succeed without the bytes that the disk has lost.
    monkeypatch.setattr(OwnedCommitLog, "recover_to", lambda *_: synced.append("again"))
    with pytest.raises(DiskError):
        open_store(killed, SMALL)
    assert len(synced) == 1
