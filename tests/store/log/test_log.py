"""The commit log's files, where it ends, and what lies behind its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.formats import checkpoint
from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.dialect import Dialect
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.log.end import find_end, recovery_start
from mqlake.store.log.segments import open_log
from mqlake.store.reader import StoreReader
from tests.golden import CRASHED, NAMES, TORN_VARIANTS, store
from tests.store.brute_force import messages_of
from tests.store.make_store import START, StoreMaker


def full(count: int = 60, **keywords: int) -> StoreMaker:
    maker = StoreMaker(**keywords)
    for number in range(count):
        maker.append(queue_id=number % 3, time=START + 10 * number, KEYS=f"k{number}")
    return maker


@pytest.mark.parametrize("name", dict.fromkeys((*NAMES, *TORN_VARIANTS)))
def test_inspect_finds_the_end_that_rocketmq_finds(name: str) -> None:
    golden = store(name)
    expected = (
        golden.recovery()["afterDispatch"]
        if name in CRASHED + TORN_VARIANTS
        else golden.queries()["commitLog"]
    )
    with StoreReader.open(golden.path) as reader:
        report = reader.inspect()
        assert reader.max_offset == report.commit_log.max_offset
    assert report.commit_log.min_offset == expected["commitLogMinOffset"]
    assert report.commit_log.max_offset == expected["commitLogMaxOffset"]
    assert report.last_stop_was_clean == (name not in CRASHED + TORN_VARIANTS)


def test_torn_record_is_reported() -> None:
    with StoreReader.open(store("rmq5-torn").path) as reader:
        log = reader.inspect().commit_log
    assert [(d.file, d.offset, d.length) for d in log.damage] == [
        ("commitlog/00000000000005242880", 5359386 - 5242880, 384)
    ]
    assert log.beyond_end.records == 0
    assert log.end_reason == log.damage[0].reason


def test_good_records_behind_the_end_are_reported() -> None:
    """One byte of a body is wrong; RocketMQ cuts off the four good records behind it as well."""
    golden = store("rmq5-torn.variant-flip5")
    whole = messages_of("rmq5-killed")
    with StoreReader.open(golden.path) as reader:
        log = reader.inspect().commit_log
    behind = [m for m in whole if m["physicalOffset"] > log.max_offset]
    bad = next(m for m in whole if m["physicalOffset"] == log.max_offset)
    assert log.beyond_end.records == len(behind) == 4
    assert [(run.offset, run.length, run.records) for run in log.beyond_end.ranges] == [
        (behind[0]["physicalOffset"], sum(m["size"] for m in behind), 4)
    ]
    assert [(d.length, d.reason) for d in log.damage] == [
        (bad["size"], "the body's checksum is wrong")
    ]


def test_log_that_starts_late() -> None:
    """After retention the first file's offset is not 0, and old queue entries point before it."""
    maker = full(start=3 * 4096)
    assert maker.messages[0].physical_offset == 3 * 4096
    with StoreReader.open(MemoryDirectory(maker.files())) as reader:
        assert (reader.min_offset, reader.max_offset) == (3 * 4096, maker.end)
        assert len(reader.get("T", 1, 0, 100).records) == 20
        assert reader.record_at(0) is None
        assert reader.record_at(3 * 4096) is not None


def test_retention_moves_the_min_offset() -> None:
    maker = full(200)
    files = maker.files()
    gone = [path for path in sorted(files) if path.startswith("commitlog/")][:2]
    for path in gone:
        del files[path]
    left = [m for m in maker.messages if m.physical_offset >= 2 * 4096]
    with StoreReader.open(MemoryDirectory(files)) as reader:
        assert reader.min_offset == 2 * 4096
        for queue_id in range(3):
            expected = [m.queue_offset for m in left if m.queue_id == queue_id]
            assert reader.queue("T", queue_id) == (expected[0], expected[-1] + 1)
            assert reader.get("T", queue_id, 0).status == "OFFSET_TOO_SMALL"
            assert reader.get("T", queue_id, 0).next_offset == expected[0]
            found = reader.get("T", queue_id, expected[0], 1000).records
            assert [record.queue_offset for record in found] == expected
        for message in maker.messages:
            found = reader.by_key("T", message.properties["KEYS"]).records
            assert [r.physical_offset for r in found] == [message.physical_offset] * (
                message in left
            )


def test_blank_entries_are_no_messages() -> None:
    maker = StoreMaker()
    maker.next_offsets["T", 0] = 7
    for _ in range(5):
        maker.append()
    with StoreReader.open(MemoryDirectory(maker.files())) as reader:
        assert reader.queue("T", 0) == (7, 12)
        assert reader.get("T", 0, 0).status == "OFFSET_TOO_SMALL"


def test_sizes_and_gaps_of_segments_are_reported() -> None:
    maker = full(200)
    files = maker.log_files()
    paths = sorted(files)
    files[paths[1]] = files[paths[1]][:1000]
    del files[paths[3]]
    log = open_log(MemoryDirectory(files))
    assert [(damage.file, damage.offset, damage.length) for damage in log.damage] == [
        (paths[1], 1000, 3096),
        (paths[4], 0, 0),
    ]
    with StoreReader.open(MemoryDirectory({**maker.files(), **files, paths[3]: b""})) as reader:
        expected = {
            m.physical_offset
            for m in maker.messages
            if not 4096 + 1000 - m.size < m.physical_offset < 2 * 4096
            and not 3 * 4096 <= m.physical_offset < 4 * 4096
        }
        found = {m.physical_offset for m in maker.messages if reader.record_at(m.physical_offset)}
        assert found == expected


def test_recovery_starts_where_rocketmq_starts() -> None:
    maker = full(200)
    log = open_log(MemoryDirectory(maker.log_files()))
    firsts = [next(m for m in maker.messages if m.physical_offset == s.base) for s in log.segments]
    times = [first.time for first in firsts]
    old, new = Dialect.V4_9, Dialect.V5_5
    late = times[-1] + 10_000
    assert recovery_start(log, Checkpoint(late, late), old) == firsts[-1].physical_offset
    assert recovery_start(log, Checkpoint(late, times[2] + 3000), old) == 2 * 4096
    assert recovery_start(log, Checkpoint(times[2] + 2999, late), old) == 4096
    assert recovery_start(log, Checkpoint(), old) == 0
    assert recovery_start(log, Checkpoint(0, times[2]), new) == 2 * 4096
    assert recovery_start(log, Checkpoint(0, 0, 0, 0, 0, 3 * 4096 - 1), new) == 2 * 4096
    assert recovery_start(log, Checkpoint(0, 0, 0, 0, 0, 3 * 4096), new) == 3 * 4096
    many = open_log(MemoryDirectory(full(800).log_files()))
    assert len(many.segments) > 10
    assert recovery_start(many, Checkpoint(), new) == many.segments[-10].base


def test_crash_rules_hold_only_without_an_owner() -> None:
    maker = full()
    files = {**maker.files(), "abort": b"4711", "lock": b"lock"}
    with StoreReader.open(MemoryDirectory(files)) as reader:
        report = reader.inspect()
        assert (report.last_stop_was_clean, report.owner) == (False, None)
        assert report.abort_process == 4711
    with StoreReader.open(MemoryDirectory(files, lock_holder=4711)) as reader:
        report = reader.inspect()
        assert (report.last_stop_was_clean, report.owner) == (None, 4711)


def test_end_of_a_log_without_blank_record() -> None:
    """The last file ends with the last record: nothing was written behind it."""
    maker = full(10)
    files = maker.log_files()
    files["commitlog/00000000000000000000"] = files["commitlog/00000000000000000000"][: maker.end]
    log = open_log(MemoryDirectory(files))
    assert find_end(log, 0).offset == maker.end == log.limit


def test_empty_stores() -> None:
    for files in (
        {"commitlog/readme": b""},
        {"commitlog/00000000000000000000": b""},
        {"commitlog/00000000000000000000": bytes(4096)},
        {"commitlog/00000000000000000000": bytes(4096), "checkpoint": b"short", "abort": b""},
        {
            "commitlog/00000000000000000000": b"\xff" * 4096,
            "index/1": b"",
            "config/topics.json": b"{",
        },
    ):
        with StoreReader.open(MemoryDirectory(files)) as reader:
            assert (reader.min_offset, reader.max_offset) == (0, 0)
            assert reader.topics() == []
            assert reader.get("T", 0, 0).status == "NO_MESSAGE_IN_QUEUE"
            assert reader.by_key("T", "k").records == []
            assert reader.by_time_range("T", 0, 1 << 62).records == []
            assert reader.offset_by_time("T", 0, 0) == 0
            assert reader.inspect().commit_log.max_offset == 0


def test_a_directory_that_is_not_a_store_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name, reason in {
        "missing": "the directory does not exist",
        "file": "this is a file; a store is a directory",
        "empty": "no commitlog/ in it",
    }.items():
        with pytest.raises(StoreError, match=reason) as caught:
            StoreReader.open(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_checkpoint_is_reported() -> None:
    golden = store("rmq5-killed")
    with StoreReader.open(golden.path) as reader:
        report = reader.inspect()
    raw = checkpoint.decode((golden.path / "checkpoint").read_bytes())
    assert report.checkpoint is not None
    assert report.checkpoint.logics_physical_offset == raw.logics_physical_offset == 4856324
