"""What a scan returns: windows of the log, and batches of records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.columns import KeyColumns, RecordColumns
from mqlake.dispatch.queue_table import QueueTable

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Window(NamedTuple):
    """A stretch of a commit-log segment in memory, for the kernels.

    Positions are relative to the buffer. At least SLACK bytes follow the first `length`.
    """

    buffer: Bytes
    base: int
    """Physical offset of the buffer's first byte."""
    length: int
    """Valid bytes."""
    data_end: int
    """Where the log's data end; may be beyond the window."""
    segment_end: int
    """Where the segment file ends: a blank record reaches exactly to it."""


class Batch(NamedTuple):
    """The records of one window.

    The arrays are borrowed: the scan's next step overwrites them, and so may another scan once this
    one is over. Copy what must stay.
    """

    buffer: Bytes
    base: int
    """Physical offset of the buffer's first byte."""
    records: RecordColumns
    """RECORD[n]; which columns are filled depends on the scan's `Want`."""
    keys: KeyColumns
    """KEY[m], in the order of the records, and in RocketMQ's order within one."""
    table: QueueTable
