"""Where recovery goes by the checksums of whole records, and where it must not."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from mqlake.formats import checkpoint, record, record_crc
from mqlake.formats.checkpoint import STILL_OPEN, Checksummed
from mqlake.formats.record import Fault
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.verify import verify
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.recovery.abort_mark import mark_open
from mqlake.store.settings import StoreSettings
from tests.jobs.model import read_log
from tests.odd_messages import STALE_CRC
from tests.store.live_parts import LiveParts
from tests.store.odd_logs import (
    PROPERTIES,
    SEGMENT,
    SETTINGS,
    SIZES,
    open_store,
    rocketmq_log,
    stored_properties,
)

OFF = StoreSettings(**SIZES, enabled_append_prop_crc=False)
FORCED = StoreSettings(**SIZES, force_verify_prop_crc=True)


def part_of(store: Path) -> Checksummed | None:
    return checkpoint.decode_checksummed((store / "checkpoint").read_bytes())


def put_and_stop(store: Path, count: int, settings: StoreSettings = SETTINGS) -> int:
    """Put messages, stop cleanly, and return the log's end."""
    with BlockingMessageStore.open(store, settings) as live:
        for number in range(count):
            live.put(Message("T", b"%d" % number, encoded_properties=b"A\1b\2"))
        return live.core.log.end


def put_and_die(store: Path, properties: bytes = b"A\1b\2") -> tuple[int, int]:
    """Put three messages and end the process; return where the last one is."""
    parts = LiveParts(store, SETTINGS)
    mark_open(parts.directory)
    parts.put_many([Message("T", b"body", encoded_properties=properties) for _ in range(3)])
    last = list(read_log(store))[-1]
    return last.physical_offset, last.size


def change(store: Path, at: int, data: bytes) -> None:
    path = store / "commitlog" / f"{at // SEGMENT * SEGMENT:020d}"
    with path.open("r+b") as file:
        file.seek(at % SEGMENT)
        file.write(data)


# Which part it is


def test_the_part_with_checksums_lasts_as_long_as_nobody_else_writes(tmp_path: Path) -> None:
    for _ in range(3):
        end = put_and_stop(tmp_path, 5)
        assert part_of(tmp_path) == Checksummed(0, end)
    open_store(tmp_path)
    assert part_of(tmp_path) == Checksummed(0, STILL_OPEN)
    open_store(tmp_path)
    assert part_of(tmp_path) == Checksummed(0, STILL_OPEN)


def test_the_checksummed_part_begins_again_after_records_without_checksums(tmp_path: Path) -> None:
    put_and_stop(tmp_path, 5)
    end = put_and_stop(tmp_path, 5, OFF)
    assert part_of(tmp_path) is None
    put_and_stop(tmp_path, 5)
    part = part_of(tmp_path)
    assert part is not None
    assert part.start == end < part.end


def test_a_store_of_rocketmq_has_none_before_its_end(tmp_path: Path) -> None:
    end = rocketmq_log(tmp_path, PROPERTIES)
    open_store(tmp_path)
    assert part_of(tmp_path) == Checksummed(end, STILL_OPEN)


def test_the_checksummed_part_ends_where_rocketmq_has_written_since(tmp_path: Path) -> None:
    end = put_and_stop(tmp_path, 5)
    data = bytearray((tmp_path / "checkpoint").read_bytes())
    data[7] ^= 1
    (tmp_path / "checkpoint").write_bytes(data)
    assert part_of(tmp_path) is None
    end = rocketmq_log(tmp_path, [STALE_CRC, bytes(30)], end, 5)
    mark_open(LocalOwnedDirectory(tmp_path))

    found = open_store(tmp_path)

    assert found.report.log_end == end
    assert part_of(tmp_path) == Checksummed(end, STILL_OPEN)


# Torn records


@pytest.mark.parametrize("properties", [b"", b"A\1b\2", b"A\1" + bytes(600) + b"\2"])
@pytest.mark.parametrize("lost", [1, 7, 12, 19, 20, 21, 24, 300])
def test_a_record_that_lacks_bytes_of_its_properties_is_cut_off(
    lost: int, properties: bytes, tmp_path: Path
) -> None:
    at, size = put_and_die(tmp_path, properties)
    tail = min(lost, len(properties) + record_crc.SIZE)
    change(tmp_path, at + size - tail, bytes(tail))

    found = open_store(tmp_path)

    assert (found.report.log_end, found.report.fault) == (at, Fault.TORN)
    assert [each.records for each in found.report.cut_off] == [1]
    assert len(list(read_log(tmp_path))) == 2
    assert part_of(tmp_path) == Checksummed(0, STILL_OPEN)
    again = open_store(tmp_path)
    assert (again.report.log_end, again.report.cut_off) == (at, ())


def test_a_checksum_that_is_whole_tells_what_is_lost_before_it(tmp_path: Path) -> None:
    at, size = put_and_die(tmp_path, b"A\1" + b"b" * 600 + b"\2")
    end = at + size - record_crc.SIZE
    change(tmp_path, end - 50, bytes(50))

    assert open_store(tmp_path).report.fault is Fault.TORN


def test_verify_reports_a_torn_record(tmp_path: Path) -> None:
    put_and_stop(tmp_path, 5)
    one = list(read_log(tmp_path))[2]
    assert verify(tmp_path, LocalEngine(1)).ok
    change(tmp_path, one.physical_offset + one.size - record_crc.SIZE - 2, b"c")

    found = verify(tmp_path, LocalEngine(1))

    assert (found.ok, found.torn_records, found.damaged_bodies) == (False, 1, 0)
    assert [(each.offset, each.length) for each in found.damage] == [
        (one.physical_offset, one.size)
    ]
    assert "checksum of the whole record" in found.damage[0].reason


# Records of others


def test_what_rocketmq_wrote_before_its_first_checkpoint_is_kept(tmp_path: Path) -> None:
    """It was started after a clean stop, and killed at once."""
    end = put_and_stop(tmp_path, 5)
    end = rocketmq_log(tmp_path, PROPERTIES, end, 5)
    mark_open(LocalOwnedDirectory(tmp_path))

    found = open_store(tmp_path)

    assert (found.report.log_end, found.report.records) == (end, len(PROPERTIES))
    assert stored_properties(tmp_path)[5:] == list(PROPERTIES)
    assert part_of(tmp_path) == Checksummed(end, STILL_OPEN)


def test_what_rocketmq_wrote_after_a_kill_is_kept(tmp_path: Path) -> None:
    """RocketMQ was killed before its first checkpoint, too."""
    at, size = put_and_die(tmp_path)
    others = [b"", b"A\1b", b"A\1" + bytes(600) + b"\2B\1" + b"c" * 20, b"\0" * 19]
    end = rocketmq_log(tmp_path, others, at + size, 3)

    found = open_store(tmp_path)

    assert (found.report.log_end, found.report.cut_off) == (end, ())
    assert stored_properties(tmp_path)[3:] == others


# forceVerifyPropCRC


def _with_checksum(properties: bytes, at: int, number: int) -> bytes:
    """Return a record that ends with its checksum, whatever is before it."""
    fields = {"topic": "T", "body": b"b", "queue_offset": number, "physical_offset": at}
    data = record.encode(properties=properties + bytes(record_crc.SIZE), **fields)
    data = data[: -record_crc.SIZE]
    return data + record_crc.encode(zlib.crc32(data))


@pytest.mark.parametrize(
    ("properties", "is_kept"),
    [(b"A\1b\2", True), (STALE_CRC, True), (b"A\1b", False), (bytes(30) + b"\2", True)],
)
def test_forced_verification_equals_that_of_rocketmq(
    properties: bytes, is_kept: bool, tmp_path: Path
) -> None:
    """The checksum must be a property of its own; where RocketMQ finds none, the log ends."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(SEGMENT))
    first = _with_checksum(b"", 0, 0)
    second = _with_checksum(properties, len(first), 1)
    change(tmp_path, 0, first + second)
    mark_open(LocalOwnedDirectory(tmp_path))

    found = open_store(tmp_path, FORCED)

    assert found.report.records == 1 + is_kept
    assert found.report.log_end == len(first) + is_kept * len(second)
    assert [each.records for each in found.report.cut_off] == [1] * (not is_kept)


def test_forced_verification_cuts_off_records_without_checksums(tmp_path: Path) -> None:
    end = rocketmq_log(tmp_path, [b"A\1b\2"] * 3)
    mark_open(LocalOwnedDirectory(tmp_path))

    found = open_store(tmp_path, FORCED)

    assert (found.report.log_end, found.report.fault) == (0, Fault.TORN)
    assert [(each.offset, each.length, each.records) for each in found.report.cut_off] == [
        (0, end, 3)
    ]
