"""Find out whether a queue file is one of a topic that was deleted and created again."""

from __future__ import annotations

from itertools import starmap
from zlib import crc32

import msgspec

from mqlake.formats import consume_queue
from mqlake.formats.archive_manifest import HEAD_BYTES, ArchivedFile
from mqlake.formats.consume_queue import ENTRY_SIZE, QueueEntry
from mqlake.storage.protocol import Directory, ReadableFile
from mqlake.store.queues import queue_files

_COMPARED = HEAD_BYTES // ENTRY_SIZE * ENTRY_SIZE


def is_queue_file(path: str) -> bool:
    """Return whether a path of a store is that of a consume queue file."""
    return path.startswith(f"{queue_files.DIRECTORY}/")


def without_change(
    file: ReadableFile, before: ArchivedFile, archive: Directory
) -> ArchivedFile | None:
    """Return the archived queue file, None if the store has one of another incarnation.

    Entries that one of them lacks prove nothing: a rebuild writes blank entries for messages that
    retention removed.

    Raises:
        StoreError: the file, or its object, cannot be read.
    """
    head = file.read(0, _COMPARED)
    checksum = crc32(head)
    if before.entries_crc32 == checksum:
        return before
    opened = archive.open(before.object)
    try:
        archived = opened.read(0, _COMPARED)
    finally:
        opened.close()
    if any(starmap(_differ, zip(_entries(head), _entries(archived), strict=False))):
        return None
    if before.entries_crc32 is msgspec.UNSET:
        return msgspec.structs.replace(before, entries_crc32=checksum)
    return before


def head_checksum(file: ReadableFile) -> int:
    """Return the checksum by which `without_change` recognizes a file."""
    return crc32(file.read(0, _COMPARED))


def _entries(data: bytes) -> list[QueueEntry]:
    whole = data.ljust(-(-len(data) // ENTRY_SIZE) * ENTRY_SIZE, b"\0")
    return [
        consume_queue.decode(whole[at : at + ENTRY_SIZE]) for at in range(0, len(whole), ENTRY_SIZE)
    ]


def _differ(here: QueueEntry, archived: QueueEntry) -> bool:
    are_written = all(
        entry.size > 0 and entry != consume_queue.BLANK_ENTRY for entry in (here, archived)
    )
    return are_written and here.physical_offset != archived.physical_offset
