"""Consume-queue entries of a batch, queue by queue (docs/formats/consume_queue.md)."""

from __future__ import annotations

from mqlake.dispatch.batch import Batch, Bytes, Longs
from mqlake.dispatch.kernel import Kernel, load


def group(batch: Batch, kernel: Kernel | None = None) -> tuple[Bytes, Longs, Longs]:
    """Return (entries, starts, queue offsets) of a batch that was scanned with `Want.DISPATCH`.

    entries: u8[20 * n], the entries as RocketMQ writes them, grouped by queue number, those of
        one queue in the log's order. Records that belong into no queue have none.
    starts: i8[len(table) + 1]; queue q has the entries starts[q] … starts[q + 1].
    queue offsets: i8[n], the place of each entry in its queue, as its record states it.
    """
    return (kernel or load()).group(batch.records, len(batch.table))
