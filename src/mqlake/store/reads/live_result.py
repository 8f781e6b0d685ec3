"""The result of a read from a live store: messages in the requested form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mqlake.dispatch.decode import decode
from mqlake.dispatch.kernel import Kernel
from mqlake.formats.record import Record
from mqlake.store.reads.columns_ahead import ColumnsAhead, to_arrow
from mqlake.store.results import QueueRange, Status

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs


_FEW = 16
"""Fewer scattered records than this are viewed one by one, which costs less than a copy."""


class Skipped(NamedTuple):
    """An entry of the queue without its message, and why: damage that a person should check."""

    queue_offset: int
    physical_offset: int
    reason: str


class SegmentMessages(NamedTuple):
    """Messages within one segment."""

    view: memoryview
    buffer: Bytes
    at: Longs
    """Their positions."""
    sizes: Longs
    are_adjacent: bool = False
    """Whether each is known to begin where the one before it ends."""
    columns: ColumnsAhead | None = None
    """Of these and the following ones, if known."""
    first: int = 0
    """The number of the first one in `columns`."""

    def pieces(self, kernel: Kernel) -> list[memoryview]:
        """Return the records' bytes, copied where many records are scattered."""
        if self.are_adjacent:
            return [self.view[int(self.at[0]) : int(self.at[-1] + self.sizes[-1])]]
        if len(self.at) < _FEW:
            return self.views()
        copied = np.empty(int(self.sizes.sum()), np.uint8)
        kernel.copy_records(copied, self.buffer, self.at, self.sizes)
        return [copied.data]

    def views(self) -> list[memoryview]:
        """Return the records' bytes."""
        view, spans = self.view, zip(self.at.tolist(), self.sizes.tolist(), strict=True)
        return [view[start : start + size] for start, size in spans]


class LiveGetResult:
    """Messages of one queue, ascending, in the requested form; and where to continue.

    They stay valid when the log's file is deleted. Each form is created on first access.

    Attributes:
        status: as RocketMQ's.
        next_offset: the queue offset to read from next.
        min_offset, max_offset: of the queue.
        skipped: entries that were skipped because of damage.
    """

    __slots__ = (
        "__dict__",
        "_kernel",
        "_runs",
        "max_offset",
        "min_offset",
        "next_offset",
        "skipped",
        "status",
    )

    def __init__(
        self,
        status: Status,
        next_offset: int,
        queue: QueueRange,
        kernel: Kernel | None = None,
        runs: Sequence[SegmentMessages] = (),
        skipped: Sequence[Skipped] = (),
    ) -> None:
        self.status, self.next_offset = status, next_offset
        self.min_offset, self.max_offset = queue
        self._kernel, self._runs, self.skipped = kernel, runs, skipped

    def __len__(self) -> int:
        runs = self._runs
        return len(runs[0].at) if len(runs) == 1 else sum(len(run.at) for run in runs)

    @property
    def size(self) -> int:
        """Bytes of all records."""
        return sum(int(run.sizes.sum()) for run in self._runs)

    @cached_property
    def raw(self) -> list[memoryview]:
        """The records as they are in the log, not copied."""
        return [record for run in self._runs for record in run.views()]

    @property
    def pieces(self) -> list[memoryview]:
        """The bytes of all records, consecutively, in few pieces."""
        kernel = self._kernel
        return [piece for run in self._runs for piece in run.pieces(kernel)] if kernel else []

    @cached_property
    def records(self) -> list[Record]:
        """The records, decoded."""
        return decode(*self._spans(), self._kernel) if self._runs else []

    def to_arrow(self) -> Any:  # pyarrow has no types
        """Return a `pyarrow.RecordBatch` with the columns of `mqlake.dispatch.arrow.SCHEMA`."""
        if len(self._runs) == 1 and (columns := (run := self._runs[0]).columns):
            return columns.rows(run.buffer, run.first, run.first + len(run.at))
        return to_arrow()(*self._spans(), self._kernel)

    def _spans(self) -> tuple[Bytes, Longs, Longs]:
        """Return a buffer, and the positions of the records in it."""
        if len(self._runs) == 1:
            run = self._runs[0]
            return run.buffer, run.at, run.sizes
        buffer = np.frombuffer(b"".join(self.pieces), np.uint8)
        sizes = np.concatenate([np.empty(0, np.int64), *(run.sizes for run in self._runs)])
        return buffer, np.cumsum(sizes) - sizes, sizes
