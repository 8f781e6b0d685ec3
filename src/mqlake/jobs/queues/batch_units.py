"""The units of batch consume queues that the records of a scan should have."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mqlake.dispatch.batch import Batch
from mqlake.formats.batch_consume_queue import BatchQueueUnit
from mqlake.jobs.queues.runs import QueueName
from mqlake.store.dispatch.batch_units import batch_unit

_COLUMNS = [
    "physical_offset",
    "size",
    "tags_code",
    "store_timestamp",
    "queue_offset",
    "properties_at",
    "properties_length",
]


def units_of(
    batch: Batch, topics: Collection[str]
) -> Iterator[tuple[QueueName, Iterator[BatchQueueUnit]]]:
    """Yield the units of each queue of some topics, in the order of the log.

    Args:
        topics: those with batch consume queues.
    """
    for number in range(len(batch.table) if topics else 0):
        name, queue_id = batch.table[number]
        if (topic := name.decode()) in topics:
            rows = batch.records[batch.records["queue"] == number][_COLUMNS].tolist()
            if rows:
                yield QueueName(topic, queue_id), (_unit(batch, row) for row in rows)


def _unit(batch: Batch, row: tuple[int, ...]) -> BatchQueueUnit:
    """Return the unit of a record, given its `_COLUMNS`."""
    *entry, store_timestamp, queue_offset, properties_at, properties_length = row
    properties = batch.buffer[properties_at : properties_at + properties_length].tobytes()
    physical_offset, size, tags_code = entry
    return batch_unit((physical_offset, size, tags_code), store_timestamp, queue_offset, properties)
