"""Distinguish the log that a query has read from another log at the same path.

A store may be deleted and created again, or its log cut by a power loss and written again. Both may
reach the position of a checkpoint. What distinguishes them is what lies before it: the start of the
segment, which holds the store timestamp of its first record, and the last bytes that were read.
"""

from __future__ import annotations

from zlib import crc32

from mqlake.store.log.segments import CommitLog

_HEAD = 256
"""Bytes of the segment's start that are included."""

_TAIL = 4096
"""Bytes before a position that are included."""


def fingerprint(log: CommitLog, position: int) -> int | None:
    """Return a checksum over bytes before a physical offset, which no later append changes.

    Args:
        position: a physical offset at or before the end of the log.

    Returns:
        None if the log does not contain the byte before `position`.
    """
    segment = log.segment_at(position - 1) if position > 0 else None
    file = log.file(segment) if segment else None
    if segment is None or file is None:
        return None
    length = position - segment.base
    tail = max(0, length - _TAIL)
    head = file.read(0, min(_HEAD, length))
    return crc32(file.read(tail, length - tail), crc32(head))
