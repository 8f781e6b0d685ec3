"""The units of batch consume queues, from records of the log.

Upstream: `CommitLog.setBatchSizeIfNeeded`, `BatchConsumeQueue.putMessagePositionInfoWrapper`.
"""

from __future__ import annotations

from collections.abc import Iterable

from mqlake.formats import record
from mqlake.formats.batch_consume_queue import (
    NO_COMPACTED_OFFSET,
    BatchQueueUnit,
    inner_batch,
)
from mqlake.formats.properties import INNER_NUM, decode_properties
from mqlake.store.log.segments import CommitLog

_INNER_NUM = INNER_NUM.encode()


def properties_at(log: CommitLog, physical_offset: int) -> bytes:
    """Return the properties of the record at a physical offset; empty without a record there."""
    place = log.place(physical_offset)
    if place is None:
        return b""
    _, layout = record.check(place.view, place.at, place.end, physical_offset, crc=False)
    if layout is None:
        return b""
    at = layout.properties_at
    return bytes(place.view[at : at + layout.properties_length])


def batch_unit(
    entry: tuple[int, int, int], store_timestamp: int, queue_offset: int, properties: bytes
) -> BatchQueueUnit:
    """Return the unit of a record.

    Args:
        entry: physical offset, size and tags code, as in a simple queue.
        store_timestamp: milliseconds.
        queue_offset: the queue offset in the record.
        properties: the record's encoded properties.
    """
    # Decoding costs more than the rest, and most records of single messages need no properties.
    pairs = decode_properties(properties) if _INNER_NUM in properties else {}
    base, size = inner_batch(pairs, queue_offset)
    return BatchQueueUnit(*entry, store_timestamp, base, size, NO_COMPACTED_OFFSET)


def batch_units(
    log: CommitLog, rows: Iterable[tuple[int, int, int, int, int]]
) -> list[BatchQueueUnit]:
    """Return the units of records of a log.

    Args:
        rows: physical offset, size, tags code, store timestamp and queue offset of each.
    """
    return [batch_unit(row[:3], row[3], row[4], properties_at(log, row[0])) for row in rows]
