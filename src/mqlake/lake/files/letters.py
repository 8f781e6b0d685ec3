"""Dead letters as rows: convert rows of the source to them, and back."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from typing import Any

import pyarrow as pa

from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.errors import StoreError
from mqlake.jobs.bodies.inner_batches import split
from mqlake.jobs.bodies.plain_bodies import StoredBodies
from mqlake.query.reading.conditions import AnyNumber
from mqlake.query.store.columns import to_batches
from mqlake.query.store.place import open_store
from mqlake.query.store.row_filter import RowFilter
from mqlake.storage.memory import MemoryFile
from mqlake.store.log.segments import CommitLog

COLUMNS = (
    "topic",
    "queueId",
    "queueOffset",
    "storeTimestamp",
    "physicalOffset",
    "length",
    "kind",
    "reason",
    "raw",
)
EXTRA = {
    "length": pa.int64(),
    "kind": pa.string(),
    "reason": pa.string(),
    "raw": pa.binary(),
}
"""Columns that no message has: bytes of the log, what is wrong, and the raw bytes, if any."""

FILLED = ("topic", "storeTimestamp", "physicalOffset", "length", "kind", "reason")
"""Columns that are never null."""

DAMAGE, DELETED, REFUSED = "damage", "deleted", "refused"
"""Kinds: bytes that are not a valid record, deleted bytes, rows that the table refuses."""

NO_TOPIC = "(damaged)"
"""Topic of a stretch without a known topic; no real topic can have this name."""


def from_rows(batch: Any, *, store: str, reason: str, schema: Any) -> Any:
    """Return rows of the source as dead letters, with their records' bytes."""
    offsets = batch.column("physicalOffset").to_pylist()
    sizes = batch.column("size").to_pylist()
    with open_store(store) as opened:
        raw = [
            _record_bytes(opened.log, *place, store) for place in zip(offsets, sizes, strict=True)
        ]
    count = batch.num_rows
    own = {
        "length": pa.array(sizes, pa.int64()),
        "kind": pa.array([REFUSED] * count, pa.string()),
        "reason": pa.array([reason] * count, pa.string()),
        "raw": pa.array(raw, pa.binary()),
    }
    columns = [
        own[field.name] if field.name in own else batch.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _record_bytes(log: CommitLog, offset: int, size: int, store: str) -> bytes:
    place = log.place(offset)
    if place is None or place.at + size > place.end:
        raise StoreError(f"{store}: the log lacks the record at physical offset {offset}")
    return bytes(place.view[place.at : place.at + size])


def without_record(schema: Any, rows: list[dict[str, Any]]) -> Any:
    """Return dead letters of stretches without a record.

    Args:
        rows: `physicalOffset`, `length`, `kind`, `reason`, `raw` and `found` (ms since 1970).
    """
    made = [
        {**row, "topic": NO_TOPIC, "storeTimestamp": row["found"] * 1000, "queueId": None}
        for row in rows
    ]
    columns = [pa.array([row.get(field.name) for row in made], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def messages(
    raw: bytes, physical_offset: int, schema: Any, *, decompress: bool, queue_offset: int | None
) -> Any:
    """Return the valid records in the bytes of a dead letter as rows of the source.

    Args:
        decompress: whether bodies are decompressed, and inner batches split.
        queue_offset: of the refused message, because an inner batch has several; None for damage.
    """
    end = physical_offset + len(raw)
    scan = SegmentScan(
        MemoryFile(raw), physical_offset, physical_offset, end, exact=False, want=Want.EXPORT
    )
    refused = () if queue_offset is None else (AnyNumber("queueOffset", (queue_offset,)),)
    accept = RowFilter(refused if decompress else ())
    stored = StoredBodies() if decompress else None
    made = [
        rows
        for batch in scan
        for part in (split(batch) if decompress else (batch,))
        for rows in to_batches(accept.choose(part), schema, None, stored)
    ]
    return pa.Table.from_batches([one for one in made if one.num_rows], schema=schema)
