"""Consume-queue entries, queue by queue (twin of `compiled.queue_entries`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.formats.consume_queue import QueueEntry, encode

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs
    from mqlake.dispatch.columns import RecordColumns


def group(records: RecordColumns, queues: int) -> tuple[Bytes, Longs, Longs]:
    import numpy as np

    entries, offsets, starts = bytearray(), list[int](), [0]
    for queue in range(queues):
        for row in records[records["queue"] == queue]:
            entry = QueueEntry(int(row["physical_offset"]), int(row["size"]), int(row["tags_code"]))
            entries += encode(entry)
            offsets.append(int(row["queue_offset"]))
        starts.append(len(offsets))
    return (
        np.frombuffer(entries, np.uint8),
        np.array(starts, np.int64),
        np.array(offsets, np.int64),
    )
