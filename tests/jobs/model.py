"""What a rebuild has to write, in plain Python: one record after the other, as RocketMQ does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from mqlake.formats import consume_queue, index_file, record, sys_flag
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY_SIZE, QueueEntry
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import segment_name
from mqlake.formats.index_file import IndexEntry, IndexHeader
from mqlake.formats.java_string import index_key_hash
from mqlake.formats.record import Fault, Record

Files = dict[str, bytes]


def read_log(store: Path, end: int | None = None) -> Iterator[Record]:
    """Yield the records of a log without damage, up to physical offset `end`."""
    for path in sorted((store / "commitlog").iterdir()):
        data, base, at = path.read_bytes(), int(path.name), 0
        while end is None or base + at < end:
            fault, layout = record.check(data, at, len(data), base + at, crc=False)
            if fault is not Fault.GOOD or layout is None:
                break
            yield record.decode(data, at, at + layout.size, crc=False)
            at += layout.size


def queue_files(records: list[Record], file_size: int) -> Files:
    """Return the consume-queue files, by path relative to `consumequeue/`."""
    queues: dict[str, dict[int, QueueEntry]] = {}
    for each in records:
        if sys_flag.is_queued(each.sys_flag):
            queue = queues.setdefault(f"{each.topic}/{each.queue_id}", {})
            entry = QueueEntry(each.physical_offset, each.size, each.tags_code)
            queue.setdefault(each.queue_offset, entry)
    per_file = file_size // ENTRY_SIZE
    files: Files = {}
    for path, entries in queues.items():
        first = min(entries) // per_file * per_file
        for start in range(first, max(entries) + 1, per_file):
            stop = min(start + per_file, max(entries) + 1)
            data = b"".join(
                consume_queue.encode(entries.get(place, BLANK_ENTRY))
                for place in range(start, stop)
            )
            files[f"{path}/{segment_name(start * ENTRY_SIZE)}"] = data.ljust(file_size, b"\0")
    return files


def index_files(
    records: list[Record], slots: int, max_entries: int, dialect: Dialect
) -> list[bytes]:
    """Return the index files, in order."""
    files = [_IndexFile(slots, max_entries)] if records else []
    for each in records:
        if not sys_flag.is_indexed(each.sys_flag):
            keys: list[str] = []
        else:
            keys = index_file.index_keys(each.topic, each.properties, dialect)
        if files[-1].is_full:
            files.append(_IndexFile(slots, max_entries, files[-1].header))
        for key in keys:
            if files[-1].is_full:
                files.append(_IndexFile(slots, max_entries, files[-1].header))
            files[-1].put(index_key_hash(key), each)
    return [file.bytes() for file in files]


class _IndexFile:
    def __init__(self, slots: int, max_entries: int, before: IndexHeader | None = None) -> None:
        end, offset = (before.end_timestamp, before.end_physical_offset) if before else (0, 0)
        self.header = IndexHeader(end, end, offset, offset, 0, 1)
        self._slots, self._max_entries = slots, max_entries
        self._data = bytearray(index_file.file_size(slots, max_entries))

    @property
    def is_full(self) -> bool:
        return self.header.index_count >= self._max_entries

    def put(self, key_hash: int, each: Record) -> None:
        header, number = self.header, self.header.index_count
        slot = index_file.slot_at(self._slots, key_hash)
        (previous,) = index_file.SLOT.unpack_from(self._data, slot)
        seconds = index_file.seconds_since(header.begin_timestamp, each.store_timestamp)
        entry = IndexEntry(key_hash, each.physical_offset, seconds, previous)
        at = index_file.entry_at(self._slots, number)
        self._data[at : at + index_file.ENTRY_SIZE] = index_file.encode_entry(entry)
        index_file.SLOT.pack_into(self._data, slot, number)
        if number == 1:
            header = header._replace(
                begin_timestamp=each.store_timestamp, begin_physical_offset=each.physical_offset
            )
        self.header = header._replace(
            end_timestamp=each.store_timestamp,
            end_physical_offset=each.physical_offset,
            slot_count=header.slot_count + (previous == 0),
            index_count=number + 1,
        )

    def bytes(self) -> bytes:
        self._data[: index_file.HEADER_SIZE] = index_file.encode_header(self.header)
        return bytes(self._data)


def read_queue_files(directory: Path) -> Files:
    """Return the consume-queue files below a directory that holds `consumequeue/`."""
    root = directory / "consumequeue"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("*/*/*")}


def read_index_files(directory: Path) -> list[bytes]:
    """Return the index files of a directory that holds `index/`, in the order of their names."""
    paths = sorted((directory / "index").iterdir())
    assert all(a.name < b.name for a, b in pairwise(paths))
    return [path.read_bytes() for path in paths]
