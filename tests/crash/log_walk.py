"""Read a store's files byte by byte, with nothing of the live store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mqlake.formats import (
    batch_consume_queue,
    consume_queue,
    index_file,
    java_string,
    record,
    sys_flag,
)
from mqlake.formats.batch_consume_queue import BatchQueueUnit
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import parse_segment_name
from mqlake.formats.record import Fault, Record
from mqlake.storage.protocol import Directory
from tests.crash.expectation import require

Queue = tuple[str, int]

_MAGIC = re.compile(
    b"|".join(re.escape(magic.to_bytes(4, "big")) for magic in (record.V1_MAGIC, record.V2_MAGIC))
)


class LogRecord(NamedTuple):
    """A record of the log, and its bytes."""

    record: Record
    data: bytes

    @property
    def queue(self) -> Queue:
        return self.record.topic, self.record.queue_id

    @property
    def entry(self) -> QueueEntry:
        """The queue entry that it must have."""
        return QueueEntry(self.record.physical_offset, self.record.size, self.record.tags_code)

    @property
    def unit(self) -> BatchQueueUnit:
        """The unit that it must have in a batch consume queue."""
        found = self.record
        batch = batch_consume_queue.inner_batch(found.properties, found.queue_offset)
        return BatchQueueUnit(*self.entry, found.store_timestamp, *batch, -1)


class Log(NamedTuple):
    """The records of a log in their order, its first byte, and its end."""

    records: list[LogRecord]
    start: int
    end: int


def read_bytes(disk: Directory, path: str) -> bytes:
    """Return a file's bytes, none where there is no file."""
    if not disk.exists(path):
        return b""
    file = disk.open(path)
    try:
        return file.read(0, file.size)
    finally:
        file.close()


def walk(disk: Directory) -> Log:
    """Return the log up to the first bytes that are no record.

    Raises:
        ViolationError: files that do not adjoin, or something other than zeros behind the end.
    """
    bases = [
        base for name in disk.names("commitlog") if (base := parse_segment_name(name)) is not None
    ]
    records: list[LogRecord] = []
    at = end = bases[0] if bases else 0
    for base in bases:
        data = read_bytes(disk, f"commitlog/{base:020d}")
        if at != base:
            require(not data.strip(b"\0"), f"file {base} has data, the log ends at {at}")
            continue
        while (checked := record.check(data, at - base, len(data), at))[0] is Fault.GOOD:
            assert checked[1] is not None
            size = checked[1].size
            found = record.decode(data, at - base)
            records.append(LogRecord(found, data[at - base : at - base + size]))
            at += size
        end = at
        rest = data[at - base :]
        if checked[0] is Fault.BLANK or 0 <= len(rest) < record.FRAME_SIZE:
            require(not rest[record.FRAME_SIZE :].strip(b"\0"), f"data behind the blank at {at}")
            end = at = base + len(data)
        else:
            require(not rest.strip(b"\0"), f"data behind the end {at}: {checked[0].name}")
    return Log(records, bases[0] if bases else 0, end)


def good_records(disk: Directory) -> dict[int, bytes]:
    """Return what RocketMQ's check takes for a record, by physical offset, wherever it is."""
    found: dict[int, bytes] = {}
    for name in disk.names("commitlog"):
        base, data = int(name), read_bytes(disk, f"commitlog/{name}")
        for match in _MAGIC.finditer(data):
            at = match.start() - record.MAGIC_AT
            fault, layout = record.check(data, at, len(data), base + at)
            if fault is Fault.GOOD and layout is not None:
                found[base + at] = data[at : at + layout.size]
    return found


def kept_bytes(disk: Directory) -> Iterator[tuple[int, bytes]]:
    """Yield physical offset and bytes of each file of the log, and of what was cut off it."""
    for folder in ("commitlog", "commitlog-cut"):
        for name in disk.names(folder):
            yield int(name.partition("-")[0]), read_bytes(disk, f"{folder}/{name}")


def index_entries(disk: Directory, slots: int, capacity: int) -> Iterator[tuple[int, int]]:
    """Yield (key hash, physical offset) of all entries that the slots lead to.

    Raises:
        ViolationError: entries that the header counts and no slot leads to, or the reverse.
    """
    for name in disk.names("index"):
        data = read_bytes(disk, f"index/{name}")
        header = index_file.decode_header(data)
        reached: set[int] = set()
        for slot in range(slots):
            at = index_file.HEADER_SIZE + slot * index_file.SLOT_SIZE
            (number,) = index_file.SLOT.unpack_from(data, at)
            last = capacity
            while 0 < number < last:
                entry = index_file.decode_entry(data, slots, number)
                require(
                    entry.key_hash % slots == slot, f"index/{name}: entry {number} in slot {slot}"
                )
                reached.add(number)
                last, number = number, entry.previous
        counted = set(range(1, header.index_count))
        require(reached == counted, f"index/{name}: counts {counted}, slots lead to {reached}")
        for number in sorted(reached):
            entry = index_file.decode_entry(data, slots, number)
            yield entry.key_hash, entry.physical_offset


def index_hashes(found: Record, dialect: Dialect) -> list[int]:
    """Return the key hashes that a record has in the index, in their order."""
    if not sys_flag.is_indexed(found.sys_flag):
        return []
    keys = index_file.index_keys(found.topic, found.properties, dialect)
    return [java_string.index_key_hash(key) for key in keys]


def queue_entries(disk: Directory, queue: Queue) -> dict[int, QueueEntry]:
    """Return queue offset → entry, of those that were written and are no filling."""
    topic, queue_id = queue
    folder = f"consumequeue/{topic}/{queue_id}"
    entries: dict[int, QueueEntry] = {}
    for name in disk.names(folder):
        data = read_bytes(disk, f"{folder}/{name}")
        start = int(name) // consume_queue.ENTRY_SIZE
        for number in range(len(data) // consume_queue.ENTRY_SIZE):
            entry = consume_queue.decode(data, number * consume_queue.ENTRY_SIZE)
            if consume_queue.is_written(entry) and not consume_queue.is_blank(entry):
                entries[start + number] = entry
    return entries


def batch_units(disk: Directory, queue: Queue) -> list[BatchQueueUnit]:
    """Return the units of a batch consume queue that were written, in their order."""
    topic, queue_id = queue
    folder = f"batchconsumequeue/{topic}/{queue_id}"
    units: list[BatchQueueUnit] = []
    for name in sorted(disk.names(folder)):
        data = read_bytes(disk, f"{folder}/{name}")
        for at in range(0, len(data), batch_consume_queue.UNIT_SIZE):
            unit = batch_consume_queue.decode(data, at)
            if batch_consume_queue.is_written(unit):
                units.append(unit)
    return units


def queues_on_disk(disk: Directory) -> list[Queue]:
    """Return the queues that have a directory."""
    return [
        (topic, int(queue_id))
        for topic in disk.names("consumequeue")
        for queue_id in disk.names(f"consumequeue/{topic}")
    ]
