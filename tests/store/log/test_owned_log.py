"""The owned log: rolling, syncing, recovering, trimming; nothing changes where the disk refuses."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from mqlake.errors import DiskError, StoreError
from mqlake.formats import record
from mqlake.formats.file_name import segment_name
from mqlake.formats.record import FRAME_SIZE
from mqlake.storage.local_owned import LocalOwnedDirectory, LocalOwnedFile
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.log.owned_log import NextFileError, OwnedCommitLog, open_owned_log
from tests.crash.disk import RecordedDisk
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.trace import MakeFile, Remove, Resize, Write

SIZE = 1000


def open_log(directory: OwnedDirectory, end: int = 0, size: int = SIZE) -> OwnedCommitLog:
    log = open_owned_log(directory, size)
    log.recover_to(end)
    return log


def filled(directory: OwnedDirectory, *sizes: int) -> OwnedCommitLog:
    log = open_log(directory)
    for number, size in enumerate(sizes, 1):
        log.append(bytes([number]) * size)
    return log


def path(base: int) -> str:
    return f"commitlog/{segment_name(base)}"


def content(directory: OwnedDirectory, base: int) -> bytes:
    return directory.open(path(base)).read(0, directory.size(path(base)))


def open_files(root: Path) -> int:
    """Count the files below a directory: those of other tests come and go."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found += descriptor.readlink().is_relative_to(root)
    return found


@pytest.fixture
def disk() -> RecordedDisk:
    return RecordedDisk()


def test_an_empty_log_makes_its_first_file_when_something_comes(disk: RecordedDisk) -> None:
    log = open_log(disk)
    assert (log.end, log.flushed, log.min_offset, log.segments) == (0, 0, 0, [])
    assert log.offset_for(10) == 0
    log.append(b"0123456789")
    assert (log.end, log.flushed) == (10, 0)
    assert content(disk, 0) == b"0123456789".ljust(SIZE, b"\0")
    assert log.segments == [(segment_name(0), 0, SIZE)]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_record_stays_where_a_blank_record_fits_behind_it(disk: RecordedDisk, left: int) -> None:
    log = filled(disk, 600)
    size = SIZE - 600 - FRAME_SIZE - left
    assert log.offset_for(size) == 600
    log.append(b"x" * size)
    assert log.end == SIZE - FRAME_SIZE - left
    assert len(log.segments) == 1


def test_a_record_one_byte_longer_begins_the_next_file(disk: RecordedDisk) -> None:
    log = filled(disk, 600)
    size = SIZE - 600 - FRAME_SIZE + 1
    assert log.offset_for(size) == SIZE
    log.append(b"x" * size)
    assert log.end == SIZE + size
    first = content(disk, 0)
    assert first[600:] == record.encode_blank(400)
    assert content(disk, SIZE)[:size] == b"x" * size
    assert log.segments[1] == (segment_name(SIZE), SIZE, 2 * SIZE)


def test_the_blank_record_may_have_just_eight_bytes(disk: RecordedDisk) -> None:
    log = filled(disk, log_size := SIZE - FRAME_SIZE, 1)
    assert log.largest_record == log_size
    assert content(disk, 0)[log_size:] == record.encode_blank(FRAME_SIZE)
    assert log.end == SIZE + 1


def test_the_next_file_is_made_ahead_once_half_of_this_one_is_used(disk: RecordedDisk) -> None:
    log = filled(disk, SIZE // 2)
    log.prepare_next()
    assert not disk.exists(path(SIZE))
    log.append(b"x")
    log.prepare_next()
    log.prepare_next()
    assert disk.exists(path(SIZE))
    assert len(log.segments) == 1
    made = [step for step in disk.trace if isinstance(step, MakeFile)]
    log.append(b"y" * 600)
    assert made == [step for step in disk.trace if isinstance(step, MakeFile)]
    assert log.read(SIZE, 600) == b"y" * 600


def test_closing_removes_the_file_that_was_made_ahead(disk: RecordedDisk) -> None:
    log = filled(disk, 600)
    log.prepare_next()
    log.unsynced().complete()
    log.close()
    assert disk.names("commitlog") == [segment_name(0)]


def test_a_failed_preparation_is_reported_by_the_roll() -> None:
    disk = FaultyDisk(Fault.FULL_FOR_EVER, at=-1)
    log = filled(disk, 600)
    disk._at = 1
    log.prepare_next()
    with pytest.raises(NextFileError, match="No space left"):
        log.append(b"y" * 600)
    assert log.end == 600
    disk.mend()
    log.append(b"y" * 600)
    assert log.end == SIZE + 600


@pytest.mark.parametrize(
    "fault", [Fault.FULL_FOR_EVER, Fault.INPUT_OUTPUT_FOR_EVER, Fault.NO_DESCRIPTOR_FOR_EVER]
)
def test_whatever_fails_an_append_changes_nothing(fault: Fault) -> None:
    """Each operation of an append that rolls fails, and all later ones."""
    counted = FaultyDisk(fault, at=-1)
    log = filled(counted, 600)
    before = counted.operations
    log.append(b"y" * 500)
    assert counted.operations > before
    for at in range(before + 1, counted.operations + 1):
        disk = FaultyDisk(fault, at=-1)
        log = filled(disk, 600)
        written, disk._at = content(disk, 0), at
        with pytest.raises(NextFileError):
            log.append(b"y" * 500)
        assert (log.end, log.offset_for(1), len(log.segments)) == (600, 600, 1)
        disk.mend()
        assert content(disk, 0) == written
        log.append(b"z" * 300)
        assert log.end == 900
        log.append(b"y" * 500)
        assert log.read(SIZE, 500) == b"y" * 500


@pytest.mark.parametrize("appends", ["append", "append_by_call"])
@pytest.mark.parametrize("fault", [Fault.SHORT_WRITE, Fault.INPUT_OUTPUT])
def test_bytes_of_a_write_that_failed_are_not_found_after_a_later_record(
    fault: Fault, appends: str
) -> None:
    """Each write call of a long append fails, and has written a part of it."""
    size, remains = 1 << 20, b"remains"
    for at in (1, 2):
        disk = FaultyDisk(Fault.INPUT_OUTPUT, at=-1)
        log = open_log(disk, size=size)
        log.append(b"x" * 10)
        log.make_room(size // 2)
        disk.fail_next(fault)
        disk._at += at - 1
        with pytest.raises(DiskError):
            getattr(log, appends)(memoryview(remains * (size // 2 // len(remains))))
        assert log.end == 10
        assert (remains in content(disk, 0)) == (at == 2 or fault is Fault.SHORT_WRITE)
        disk.mend()
        log.append(b"y" * 20)
        assert log.end == 30
        assert not content(disk, 0)[30:].strip(b"\0")


def test_bytes_of_a_write_that_failed_go_before_anything_else_is_appended() -> None:
    disk = FaultyDisk(Fault.INPUT_OUTPUT, at=-1)
    log = open_log(disk, size=1 << 20)
    log.append(b"x" * 10)
    log.make_room(1 << 19)
    disk.fail_next(Fault.SHORT_WRITE)
    with pytest.raises(DiskError):
        log.append(b"remains" * (1 << 16))
    disk.fail_next(Fault.INPUT_OUTPUT)
    with pytest.raises(DiskError):
        log.append(b"y" * 20)
    assert log.end == 10
    disk.mend()
    assert log.room_for(20) == 20
    assert not content(disk, 0)[10:].strip(b"\0")


def test_a_disk_without_room_to_spare_gives_what_is_needed() -> None:
    disk = FaultyDisk(Fault.FULL, at=-1)
    log = open_log(disk, size=8 << 20)
    log.append(b"x" * 10)
    disk._at = disk.operations + 1  # room is asked for ahead of need
    log.append(b"y" * (2 << 20))
    assert disk.has_failed
    assert log.end == 10 + (2 << 20)


def test_room_for_is_what_is_left_beside_a_blank_record(disk: RecordedDisk) -> None:
    log = open_log(disk)
    assert log.room_for(5) == 0
    log.append(b"x" * 900)
    assert log.room_for(10) == 10
    assert log.room_for(10**9) == SIZE - 900 - FRAME_SIZE
    log.append(b"x" * (SIZE - 900 - FRAME_SIZE))
    assert log.room_for(1) == 0


# Sync


def test_flushed_follows_the_sync(disk: RecordedDisk) -> None:
    log = filled(disk, 100)
    pending = log.unsynced()
    log.append(b"later")
    pending.run()
    assert log.flushed == 0
    pending.done()
    assert log.flushed == 100
    log.unsynced().complete()
    assert log.flushed == log.end == 105
    assert not log.unsynced().files


def test_a_sync_over_a_roll_takes_both_files_and_their_names(disk: RecordedDisk) -> None:
    log = filled(disk, 600)
    first = log.unsynced()
    assert first.directories == ["commitlog", ""]
    log.append(b"y" * 600)
    both = log.unsynced()
    assert (len(first.files), len(both.files)) == (1, 2)
    both.complete()
    assert log.flushed == SIZE + 600
    first.complete()
    assert log.flushed == SIZE + 600
    log.append(b"z")
    last = log.unsynced()
    assert len(last.files) == 1
    assert not last.directories


def test_a_name_that_came_during_a_sync_is_left_for_the_next(disk: RecordedDisk) -> None:
    log = filled(disk, 600)
    pending = log.unsynced()
    log.append(b"y" * 600)
    pending.complete()
    assert log.flushed == 600
    assert log.unsynced().directories == ["commitlog"]


def test_a_sync_that_fails_leaves_flushed_alone() -> None:
    disk = FaultyDisk(Fault.SYNC_ONCE, at=-1)
    log = filled(disk, 600, 600)
    disk._at = disk.operations + 2
    with pytest.raises(DiskError):
        log.unsynced().complete()
    assert log.flushed == 0


# Read


def test_reading_copies_nothing_and_outlives_deletion(tmp_path: Path) -> None:
    log = filled(LocalOwnedDirectory(tmp_path), 600, 600)
    log.unsynced().complete()
    view = log.read(10, 20)
    assert view.readonly
    assert log.remove_first() == (segment_name(0), 0, SIZE)
    assert not (tmp_path / path(0)).exists()
    assert view == b"\1" * 20
    assert log.min_offset == SIZE
    with pytest.raises(StoreError, match=r"the log has \[1000, 1600\): no 20 bytes at .* 10"):
        log.read(10, 20)


@pytest.mark.parametrize(
    "offset_and_size", [(590, 20), (0, 601), (-1, 1), (0, -1), (SIZE - 10, 20)]
)
def test_reads_outside_of_the_log_are_an_error(
    disk: RecordedDisk, offset_and_size: tuple[int, int]
) -> None:
    log = filled(disk, 600)
    with pytest.raises(
        StoreError, match=r"the log has \[0, 600\): no -?\d+ bytes at physical offset"
    ):
        log.read(*offset_and_size)
    assert log.read(0, 600) == b"\1" * 600


def test_the_last_file_is_never_removed(disk: RecordedDisk) -> None:
    log = filled(disk, 600)
    assert log.remove_first() is None
    assert open_log(RecordedDisk()).remove_first() is None


# Recover


def test_recovery_ends_the_log_and_clears_what_follows(disk: RecordedDisk) -> None:
    filled(disk, 900, 900, 900).unsynced().complete()
    log = open_log(disk, SIZE + 500)
    assert disk.names("commitlog") == [segment_name(0), segment_name(SIZE)]
    assert content(disk, SIZE) == (b"\2" * 500).ljust(SIZE, b"\0")
    assert (log.end, log.flushed) == (SIZE + 500, SIZE + 500)
    log.append(b"new")
    assert log.read(SIZE + 490, 13) == b"\2" * 10 + b"new"


@pytest.mark.parametrize("end", [0, 500, 900, SIZE, SIZE + 1, 2 * SIZE, 2 * SIZE + 900])
def test_recovering_twice_changes_nothing_more(disk: RecordedDisk, end: int) -> None:
    filled(disk, 900, 900, 900).unsynced().complete()
    open_log(disk, end)
    before = len(disk.trace)
    log = open_log(disk, end)
    changes = MakeFile, Remove, Resize, Write
    assert not [step for step in disk.trace[before:] if isinstance(step, changes)]
    assert log.end == end


def test_a_log_that_ends_with_its_file_goes_on_in_the_next(disk: RecordedDisk) -> None:
    log = filled(disk, 900, 900)
    log.unsynced().complete()
    disk.remove(path(SIZE))
    log = open_log(disk, SIZE)
    assert (log.end, log.offset_for(10)) == (SIZE, SIZE)
    log.append(b"x" * 10)
    assert log.read(SIZE, 10) == b"x" * 10
    assert content(disk, 0)[900:] == record.encode_blank(100)


def test_files_that_a_crash_left_empty_or_short(disk: RecordedDisk) -> None:
    filled(disk, 900, 900).unsynced().complete()
    disk.truncate(path(SIZE), 500)
    disk.create(path(2 * SIZE), 0).close()
    disk.create(path(3 * SIZE), 0).close()
    log = open_log(disk, SIZE + 400)
    assert disk.names("commitlog") == [segment_name(0), segment_name(SIZE)]
    assert disk.size(path(SIZE)) == SIZE
    assert log.segments[-1].end == 2 * SIZE
    log.append(b"x" * 500)
    assert log.read(SIZE + 400, 500) == b"x" * 500


def test_a_store_keeps_the_size_of_its_files(disk: RecordedDisk) -> None:
    filled(disk, 900, 900).unsynced().complete()
    log = open_log(disk, SIZE + 900, size=5000)
    log.append(b"x" * 900)
    assert log.segments[-1] == (segment_name(2 * SIZE), 2 * SIZE, 3 * SIZE)


def test_recovery_syncs_every_file_that_may_be_dirty(disk: RecordedDisk) -> None:
    filled(disk, 900, 900, 900)
    before = len(disk.trace)
    open_log(disk, 2 * SIZE + 900)
    whole = [type(step).__name__ for step in disk.trace[before:]]
    assert whole == ["Sync", "Sync", "Sync", "SyncNames", "SyncNames"]
    before = len(disk.trace)
    log = open_owned_log(disk, SIZE)
    log.recover_to(2 * SIZE + 900, dirty_from=SIZE + 10)
    whole = [type(step).__name__ for step in disk.trace[before:]]
    assert whole == ["Sync", "Sync", "SyncNames", "SyncNames"]


def test_many_rolls_keep_few_files_open(tmp_path: Path) -> None:
    log = filled(LocalOwnedDirectory(tmp_path), 900)
    log.unsynced().complete()
    before = open_files(tmp_path)
    for number in range(150):
        log.append(b"x" * 900)
        log.prepare_next()
        if number % 10 == 9:
            log.unsynced().complete()
        log.read(number * SIZE, 10)
        if number > 50:
            log.remove_first()
    # Each open file has two descriptors, and up to 64 are kept for reading.
    assert open_files(tmp_path) - before <= 2 * (64 + 12)
    log.close()
    assert open_files(tmp_path) <= before


def test_a_log_begins_elsewhere_without_a_file_that_was_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(LocalOwnedDirectory(tmp_path), size=4096)

    def full(*_: object) -> None:
        raise DiskError("full", 28)

    with monkeypatch.context() as patch:
        patch.setattr(LocalOwnedFile, "reserve", full)
        with pytest.raises(DiskError):
            log.append(b"x" * 100)
    log.begin_at(4096)
    log.append(b"x" * 100)
    names = [file.name for file in (tmp_path / "commitlog").iterdir()]
    assert names == [segment_name(4096)]
    assert content(LocalOwnedDirectory(tmp_path), 4096)[:100] == b"x" * 100


def test_a_log_that_could_not_begin_elsewhere_can_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = LocalOwnedDirectory(tmp_path)
    log = open_log(directory, size=4096)
    log.append(b"x" * 100)

    def broken(_: str) -> None:
        raise DiskError("broken", 5)

    with monkeypatch.context() as patch:
        patch.setattr(directory, "sync_directory", broken)
        with pytest.raises(DiskError):
            log.begin_at(4096)
    log.begin_at(4096)
    log.append(b"y" * 100)
    assert [segment.base for segment in log.segments] == [4096]
    assert content(directory, 4096)[:100] == b"y" * 100
