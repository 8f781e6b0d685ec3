"""Walk over the batches of a log (docs/formats/kafka/log_file.md, "Reading").

`mqlake.kafka.batches.scan` does the same in compiled kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from mqlake.errors import FormatError
from mqlake.formats.kafka import message_set, record_batch, versions
from mqlake.formats.kafka.batch import MAGIC_V2, Batch
from mqlake.formats.kafka.crc32c import crc32c, extend
from mqlake.storage.protocol import ReadableFile

# Bytes of one read: few to find a batch, many to read all of them.
SEARCH_WINDOW = 4 << 10
SCAN_WINDOW = 1 << 20


class BatchWalk(Iterator[Batch]):
    """The batches from a position of a log on, until its end or a fault; never raises.

    With `check`, checksums are computed and every byte is read. Without it, only the bytes that
    lead from batch to batch are read.

    Attributes:
        position: where the next batch starts; after the walk, where the valid part of the log ends.
        fault: why the walk ended before the log did; None for a log that is merely torn.
    """

    def __init__(
        self,
        file: ReadableFile,
        start: int = 0,
        end: int | None = None,
        *,
        check: bool = False,
        window: int = SEARCH_WINDOW,
    ) -> None:
        self._file = file
        self._end = file.size if end is None else min(end, file.size)
        self._check = check
        self._buffer = bytearray(max(window, versions.HEADER_SIZE))
        self._view = memoryview(self._buffer)
        self._base = self._filled = 0
        self.position = start
        self.fault: str | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if self.fault is not None or not 0 <= self.position < self._end:
            raise StopIteration
        try:
            batch = self._next()
        except FormatError as error:
            self.fault = str(error)
            raise StopIteration from None
        if batch is None:
            raise StopIteration
        self.position += batch.size
        return batch

    def content(self, batch: Batch) -> bytes:
        """Return all bytes of a batch, without reading those again that are in the buffer."""
        at = batch.position - self._base
        if 0 <= at <= self._filled - batch.size:
            return bytes(self._view[at : at + batch.size])
        return self._file.read(batch.position, batch.size)

    def _next(self) -> Batch | None:
        at = self._have(min(versions.HEADER_SIZE, self._end - self.position))
        if at is None:
            return None
        batch = versions.read_header(self._buffer, at, self.position, self._end)
        if batch is not None and self._check:
            computed = self._computed_crc(batch)
            if computed != batch.crc:
                raise FormatError(
                    f"checksum {batch.crc:08x} in the batch, {computed:08x} of its bytes"
                )
        return batch

    def _computed_crc(self, batch: Batch) -> int:
        if batch.magic < MAGIC_V2:
            return message_set.computed_crc(self._file.read(batch.position, batch.size))
        at = self._have(batch.size) if batch.size <= len(self._buffer) else None
        if at is not None:
            return crc32c(bytes(self._view[at + record_batch.CHECKED_AT : at + batch.size]))
        crc = 0
        for start in range(batch.position + record_batch.CHECKED_AT, batch.end, SCAN_WINDOW):
            crc = extend(crc, self._file.read(start, min(SCAN_WINDOW, batch.end - start)))
        return crc

    def _have(self, length: int) -> int | None:
        """Return the index of `position` in the buffer, or None without `length` bytes there."""
        at = self.position - self._base
        if not 0 <= at <= self._filled - length:
            self._base, at = self.position, 0
            self._filled = self._file.read_into(self._buffer, self._base)
            if self._filled < length:
                # Another process has truncated the file.
                return None
        return at
