"""The columns that a scan fills, as NumPy record types: one row a record, one row a key.

Positions (`*_at`) and lengths are bytes in the batch's buffer. A length of 0 says that there is no
such property: RocketMQ drops empty ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RECORD = np.dtype(
    [
        ("physical_offset", "i8"),
        ("queue_offset", "i8"),
        ("store_timestamp", "i8"),  # milliseconds
        ("tags_code", "i8"),  # as in the consume queue: a delivery time for scheduled messages
        ("size", "i4"),
        ("queue", "i4"),  # number in the scan's QueueTable; -1: in no queue (PREPARED, ROLLBACK)
        ("body_at", "i4"),
        ("body_length", "i4"),
        ("topic_at", "i4"),
        ("topic_length", "i4"),
        ("properties_at", "i4"),
        ("properties_length", "i4"),
        ("keys_at", "i4"),
        ("keys_length", "i4"),
        ("tags_at", "i4"),
        ("tags_length", "i4"),
        ("unique_key_at", "i4"),
        ("unique_key_length", "i4"),
        ("queue_id", "i4"),
        ("sys_flag", "i4"),
        ("key_start", "i4"),  # the record's rows of KEY: key_start … key_start + key_count
        ("key_count", "i4"),
        ("fault", "i4"),  # Fault.GOOD, or Fault.CRC
    ],
    align=True,
)

KEY = np.dtype(
    [
        ("hash", "i4"),  # as in the index file, 0 … 2^31 - 1
        ("record", "i4"),  # row of RECORD
    ],
    align=True,
)

QUEUE_ENTRY = np.dtype([("physical_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
"""The entries of a consume queue, as they are in its files (docs/formats/consume_queue.md)."""

QUEUE = np.dtype(
    [
        ("topic_at", "i8"),  # position in the table's arena
        ("topic_length", "i4"),
        ("queue_id", "i4"),
        ("key_prefix", "u4"),  # Java hash of "topic#"
        ("scheduled", "i4"),  # 1 for the topic of scheduled messages
    ],
    align=True,
)

RecordColumns = npt.NDArray[np.void]
"""An array of RECORD."""

KeyColumns = npt.NDArray[np.void]
"""An array of KEY."""
