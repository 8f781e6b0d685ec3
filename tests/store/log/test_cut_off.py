"""What recovery cuts off the log is kept aside, and reported."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest

from mqlake.errors import DiskError
from mqlake.formats import record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.live_settings import current
from mqlake.store.log import cut_off
from mqlake.store.log.owned_segment_files import OwnedSegmentFiles
from mqlake.store.reader import StoreReader
from mqlake.store.recovery import recovery
from mqlake.store.recovery.abort_mark import mark_open
from mqlake.store.recovery.recovery import Recovered, recover
from mqlake.store.report import CutOffReport
from mqlake.store.retention.retention import Retention
from tests.crash.clock import ManualClock
from tests.jobs.model import read_log
from tests.store.live_parts import LiveParts
from tests.store.odd_logs import SEGMENT, SETTINGS

LATER = 1_800_000_100_000
HOUR = 3_600_000


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a killed store over several files, one of whose bodies has a flipped bit."""
    (tmp_path / "store").mkdir()
    parts = LiveParts(tmp_path / "store", SETTINGS)
    mark_open(parts.directory)
    for number in range(200):
        parts.put(Message("T", b"%d" % number * 400, tags="t"))
    assert len(parts.log.segments) > 3
    odd = bad_record(tmp_path / "store")
    path = tmp_path / "store" / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[odd + 100] ^= 1
    path.write_bytes(data)
    return tmp_path / "store"


def bad_record(store: Path) -> int:
    """Return where the twentieth record is."""
    return list(read_log(store))[20].physical_offset


def open_store(path: Path, now: int = LATER) -> Recovered:
    return recover(LocalOwnedDirectory(path), SETTINGS, ManualClock(now))


def log_bytes(store: Path) -> bytes:
    files = sorted((store / "commitlog").iterdir())
    return b"".join(file.read_bytes() for file in files)


def files(store: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (store / "commitlog-cut").iterdir()}


def require_kept(store: Path, log: bytes, reports: tuple[CutOffReport, ...]) -> None:
    """Check that all records beyond the bad one are kept, as they were."""
    kept = files(store)
    assert sorted(f"commitlog-cut/{name}" for name in kept) == [each.path for each in reports]
    count = 0
    for each in reports:
        data = kept[each.path.rpartition("/")[2]]
        assert len(data) == each.length
        assert data == log[each.offset : each.offset + each.length]
        at = each.offset
        while at < each.offset + each.length:
            fault, layout = record.check(log, at, len(log), at)
            assert layout is not None
            count += fault is record.Fault.GOOD
            at += layout.size
    assert count == sum(each.records for each in reports) == 179


def test_good_records_beyond_a_bad_one_are_kept_aside(
    damaged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_bytes(damaged)

    with caplog.at_level(logging.WARNING):
        found = open_store(damaged)

    bad = found.report.log_end
    assert len(list(read_log(damaged))) == 20
    require_kept(damaged, log, found.report.cut_off)
    assert [each.offset for each in found.report.cut_off] == [
        bad,
        *range(SEGMENT, len(log), SEGMENT),
    ]
    assert f"cut off at physical offset {bad}: the body's checksum is wrong" in caplog.text
    assert all(each.path in caplog.text for each in found.report.cut_off)
    before = files(damaged)
    assert open_store(damaged, LATER + 1).report.cut_off == ()
    assert files(damaged) == before


def test_inspect_reports_what_was_cut_off(damaged: Path) -> None:
    found = open_store(damaged)

    with StoreReader.open(damaged) as reader:
        report = reader.inspect().commit_log

    assert tuple(report.cut_off) == found.report.cut_off
    assert report.beyond_end.records == 0
    built = msgspec.to_builtins(report.cut_off[0])
    assert built.keys() == {"path", "offset", "bytes", "records"}


def test_a_live_store_reports_what_was_cut_off(damaged: Path) -> None:
    with BlockingMessageStore.open(damaged, SETTINGS) as store:
        assert sum(each.records for each in store.core.recovered.cut_off) == 179
        assert store.put(Message("T", b"next")).is_ok


@pytest.mark.parametrize("step", ["remove_after", "cut"])
def test_a_recovery_that_dies_while_cutting_keeps_one_copy(
    step: str, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_bytes(damaged)

    def die(*_: object) -> None:
        raise DiskError("died")

    with monkeypatch.context() as patch:
        patch.setattr(OwnedSegmentFiles, step, die)
        with pytest.raises(DiskError):
            open_store(damaged)
    before = files(damaged)
    assert len(before) > 3
    found = open_store(damaged, LATER + 5)

    assert files(damaged) == before
    if step == "remove_after":
        require_kept(damaged, log, found.report.cut_off)
    else:
        # The files after the first one were gone already.
        assert [each.path.endswith(f"-{LATER}") for each in found.report.cut_off] == [True]


def test_a_copy_that_was_not_finished_is_made_again(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_bytes(damaged)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalOwnedDirectory, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            open_store(damaged)
    assert [name.endswith(".tmp") for name in files(damaged)] == [True]
    assert log_bytes(damaged) == log

    found = open_store(damaged, LATER + 5)

    require_kept(damaged, log, found.report.cut_off)


def test_a_full_disk_leaves_the_log_uncut(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_bytes(damaged)

    def refuse(*_: object) -> None:
        raise DiskError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(LocalOwnedDirectory, "create", refuse)
        with pytest.raises(DiskError):
            open_store(damaged)
    assert log_bytes(damaged) == log
    require_kept(damaged, log, open_store(damaged).report.cut_off)


def test_good_records_after_a_missing_file_of_the_log_are_kept_aside(tmp_path: Path) -> None:
    """What lies beyond it was never durable, and is kept all the same."""
    parts = LiveParts(tmp_path, SETTINGS)
    mark_open(parts.directory)
    parts.put_many([Message("T", bytes(900)) for _ in range(200)])
    log = log_bytes(tmp_path)
    (tmp_path / "commitlog" / f"{0:020d}").unlink()

    found = open_store(tmp_path)

    assert found.report.log_end == 0
    assert [each.offset for each in found.report.cut_off] == list(range(SEGMENT, len(log), SEGMENT))
    for each in found.report.cut_off:
        assert (tmp_path / each.path).read_bytes() == log[each.offset :][: each.length]


def test_no_copy_is_made_if_no_good_record_is_cut_off(tmp_path: Path) -> None:
    parts = LiveParts(tmp_path, SETTINGS)
    mark_open(parts.directory)
    last = parts.put_many([Message("T", b"body")] * 3)[-1]
    path = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[last.physical_offset + 10] ^= 1
    data[last.physical_offset + 100 :] = bytes(len(data) - last.physical_offset - 100)
    path.write_bytes(data)

    found = open_store(tmp_path)

    assert (found.report.log_end, found.report.cut_off) == (last.physical_offset, ())
    assert not (tmp_path / "commitlog-cut").exists()


def test_retention_removes_old_copies(damaged: Path) -> None:
    found = open_store(damaged)
    reserved = SETTINGS.file_reserved_time * HOUR
    (damaged / "commitlog-cut" / "notes.txt").write_text("mine")
    directory = LocalOwnedDirectory(damaged)
    clock = ManualClock(LATER + reserved)
    retention = Retention(
        directory=directory,
        log=found.log,
        queues=found.queues,
        index=found.index,
        checkpoint=found.checkpoint,
        settings=current(SETTINGS),
        clock=clock,
    )

    retention.check()
    assert len(cut_off.cut_off_files(directory)) == len(found.report.cut_off)
    clock.forward(1)
    retention.check()

    assert list(files(damaged)) == ["notes.txt"]
    assert retention.warnings == []


def test_a_long_stretch_is_counted_by_the_compiled_scan(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlake.store.log.scan.SMALL", 1)
    monkeypatch.setattr(recovery, "_LONG", 1)
    log = log_bytes(damaged)
    require_kept(damaged, log, open_store(damaged).report.cut_off)
