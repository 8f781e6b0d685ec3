"""Walk over the batches of a log in compiled kernels, a window of rows at a time.

The results are those of its twin in plain Python, `BatchWalk`. If the kernels find no valid batch,
the twin determines the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.formats.kafka.batch import Batch
from mqlake.kafka.batches.columns import BATCH, BatchColumns
from mqlake.kafka.batches.walk import SCAN_WINDOW, BatchWalk
from mqlake.kafka.compiled.batches import walk
from mqlake.storage.protocol import ReadableFile

Bytes = npt.NDArray[np.uint8]

_MOST_ROWS = 8192


class Batches(NamedTuple):
    """Neighbouring batches. The arrays are borrowed: the scan's next step overwrites them.

    Attributes:
        rows: BATCH[n], at least one.
        buffer: uint8, contains their bytes, except those of a batch too large for a window.
        base: position in the log of the buffer's first byte.
    """

    rows: BatchColumns
    buffer: Bytes
    base: int


class BatchScan:
    """The batches from a position of a log on, until its end or a fault; never raises.

    A file is read, not mapped: Kafka cuts logs, and a mapping would not survive that.

    Attributes:
        position: where the next batch starts; after the scan, where the valid part of the log ends.
        fault: why the scan ended before the log did; None for a log that is merely torn.
    """

    def __init__(
        self,
        file: ReadableFile,
        start: int = 0,
        end: int | None = None,
        *,
        check: bool = True,
        window: int = SCAN_WINDOW,
    ) -> None:
        """Scan up to position `end` of the log; `check` computes checksums."""
        self._file = file
        self._end = file.size if end is None else min(end, file.size)
        self._check = check
        self._buffer = np.empty(window, np.uint8)
        self._rows = np.empty(_MOST_ROWS, BATCH)
        self._base = self._filled = 0
        self.position = start
        self.fault: str | None = None

    def __iter__(self) -> Iterator[Batches]:
        while self.fault is None and 0 <= self.position < self._end:
            at = self.position - self._base
            if 0 <= at < self._filled and (count := self._walk(at)):
                yield Batches(self._rows[:count], self._buffer[: self._filled], self._base)
            elif at or not self._filled:
                self._base = self.position
                self._filled = self._file.read_into(self._buffer.data, self._base)
                if not self._filled:
                    # Another process has truncated the file.
                    return
            elif (batch := self._step()) is not None:
                yield Batches(np.array([batch], BATCH), self._buffer[:0], batch.position)
            else:
                return

    def _walk(self, at: int) -> int:
        limit = self._end - self._base
        at, count = walk(self._buffer, at, self._filled, self._base, limit, self._check, self._rows)
        self.position = self._base + at
        return count

    def _step(self) -> Batch | None:
        """Read a batch larger than a window; if no batch follows, note the reason in `fault`."""
        step = BatchWalk(self._file, self.position, self._end, check=self._check)
        batch = next(step, None)
        self.position, self.fault = step.position, step.fault
        return batch


def each(rows: BatchColumns) -> list[Batch]:
    """Return rows as values."""
    return [Batch(*row) for row in rows.tolist()]
