"""The records of a partition as columns: the positions of their parts in a buffer.

`Partition.records` gives the same records as values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mqlake.errors import FormatError
from mqlake.formats.kafka import record_batch, versions
from mqlake.formats.kafka.batch import (
    CONTROL,
    MAGIC_V2,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    Batch,
    Record,
)
from mqlake.formats.kafka.compression import CODEC_MASK, decompress
from mqlake.kafka.batches.columns import RECORD, BatchColumns, RecordColumns
from mqlake.kafka.batches.scan import Batches, BatchScan, Bytes, each
from mqlake.kafka.compiled.records import decode_body, decode_stretch, is_good_body
from mqlake.kafka.isolation import AbortedBatches, Isolation
from mqlake.kafka.log.partition import OnDamage, Partition, report_damage
from mqlake.kafka.log.segment import LogSegment

_MOST_ROWS = 1 << 18


class Records(NamedTuple):
    """Neighbouring records. The arrays are borrowed: the scan's next step overwrites them.

    Attributes:
        rows: RECORD[n], at least one.
        buffer: uint8, contains their parts.
        batches: BATCH[m], to which `rows["batch"]` refers: leader epochs, timestamp types.
    """

    rows: RecordColumns
    buffer: Bytes
    batches: BatchColumns


class RecordScan:
    """The records of a partition from offset `start` to before `end`, as a consumer would see them.

    Control records are left out unless requested. READ_COMMITTED ends at the last stable offset,
    and leaves out aborted records. Iterate over it once.

    Raises:
        FormatError: damage, if `on_damage` is None; otherwise damage is reported and left out.
    """

    def __init__(
        self,
        partition: Partition,
        start: int | None = None,
        end: int | None = None,
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        control: bool = False,
        on_damage: OnDamage | None = None,
    ) -> None:
        self._partition = partition
        self._start, self._end = partition.visible(start, end, isolation=isolation)
        self._control = control
        self._on_damage = on_damage
        is_asked = isolation is Isolation.READ_COMMITTED and self._start < self._end
        self._aborted = AbortedBatches(
            partition.aborted_transactions(self._start, self._end) if is_asked else ()
        )
        self._rows = np.empty(_MOST_ROWS, RECORD)

    def __iter__(self) -> Iterator[Records]:
        if self._start >= self._end:
            return
        walks = self._partition.walks(self._start, _scan, on_damage=self._on_damage)
        for segment, scan in walks:
            for batches in scan:
                rows = self._before_end(batches.rows)
                shown = batches._replace(rows=self._shown(rows))
                for records in self._decode(segment, shown):
                    inside = self._inside(records.rows)
                    if len(inside):
                        yield records._replace(rows=inside)
                if len(rows) < len(batches.rows):
                    return

    def _before_end(self, rows: BatchColumns) -> BatchColumns:
        """Return the batches before the first that certainly begins after the end."""
        is_known = (rows["magic"] >= MAGIC_V2) | (rows["attributes"] & CODEC_MASK == 0)
        behind = is_known & (rows["base_offset"] >= self._end)
        return rows[: int(behind.argmax())] if behind.any() else rows

    def _inside(self, rows: RecordColumns) -> RecordColumns:
        offsets = rows["offset"]
        inside = (offsets >= self._start) & (offsets < self._end)
        return rows if inside.all() else rows[inside]

    def _shown(self, rows: BatchColumns) -> BatchColumns:
        """Return the batches whose records are shown."""
        is_new = rows["magic"] >= MAGIC_V2
        shown = rows["last_offset"] >= self._start
        if not self._control:
            shown &= ~is_new | (rows["attributes"] & CONTROL == 0)
        transactional = is_new & (rows["attributes"] & TRANSACTIONAL != 0)
        for number in np.flatnonzero(transactional & (rows["producer_id"] > NO_PRODUCER_ID)):
            [batch] = each(rows[number : number + 1])
            shown[number] &= batch not in self._aborted
        return rows if shown.all() else rows[shown]

    def _decode(self, segment: LogSegment, batches: Batches) -> Iterator[Records]:
        rows, number = batches.rows, 0
        while number < len(rows):
            number, count = decode_stretch(batches.buffer, batches.base, rows, number, self._rows)
            if count:
                yield Records(self._rows[:count], batches.buffer, rows)
            if number < len(rows):
                yield from self._decode_one(segment, batches, number)
                number += 1

    def _decode_one(self, segment: LogSegment, batches: Batches, number: int) -> Iterator[Records]:
        """Decode a batch that is compressed, of an old version, or damaged."""
        row = batches.rows[number : number + 1]
        [batch] = each(row)
        at = batch.position - batches.base
        data = batches.buffer[at : at + batch.size].tobytes()
        if len(data) < batch.size:
            data = segment.log.read(batch)
        limit = segment.log.limit
        try:
            if batch.magic < MAGIC_V2:
                found = versions.decode_records(batch, data, limit)
                yield laid_out(found, row)
            else:
                yield from self._decode_new(batch, row, data, limit)
        except FormatError as error:
            report_damage(self._on_damage, segment, batch.position, batch.size, str(error))

    def _decode_new(
        self, batch: Batch, row: BatchColumns, data: bytes, limit: int
    ) -> Iterator[Records]:
        if not batch.record_count:  # Without records, any bytes may be in their place.
            return
        body = decompress(batch.compression, data[record_batch.HEADER_SIZE :], limit)
        buffer = np.frombuffer(body, np.uint8)
        if not is_good_body(buffer, row, self._rows):
            # The twin reports the reason.
            versions.decode_records(batch, data, limit)
            raise FormatError("records cannot be separated")
        at = first = 0
        while first < batch.record_count:
            at, first, count = decode_body(buffer, row, at, first, self._rows)
            yield Records(self._rows[:count], buffer, row)


def _scan(segment: LogSegment, position: int) -> BatchScan:
    return BatchScan(segment.log.file, position)


def laid_out(records: Sequence[Record], batch: BatchColumns) -> Records:
    """Return records of one batch as rows, with their parts in a buffer of their own."""
    rows = np.zeros(len(records), RECORD)
    buffer = bytearray()
    for row, record in zip(rows, records, strict=True):
        row["offset"], row["timestamp"] = record.offset, record.timestamp
        for name, part in (("key", record.key), ("value", record.value)):
            row[f"{name}_at"] = len(buffer)
            row[f"{name}_length"] = -1 if part is None else len(part)
            buffer += part or b""
        row["headers_at"] = len(buffer)
    return Records(rows, np.frombuffer(buffer, np.uint8), batch)
