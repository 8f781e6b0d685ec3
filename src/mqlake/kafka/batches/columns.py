"""What the compiled walk fills: NumPy record types, one row a batch, one row a record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BATCH = np.dtype(
    [
        ("position", "i8"),
        ("size", "i8"),
        ("magic", "i1"),
        ("base_offset", "i8"),
        ("last_offset", "i8"),
        ("leader_epoch", "i4"),
        ("crc", "u4"),
        ("attributes", "i2"),
        ("base_timestamp", "i8"),
        ("max_timestamp", "i8"),
        ("producer_id", "i8"),
        ("producer_epoch", "i2"),
        ("base_sequence", "i4"),
        ("record_count", "i4"),
    ],
    align=True,
)
"""The fields of `mqlake.formats.kafka.batch.Batch`, in its order."""

RECORD = np.dtype(
    [
        ("offset", "i8"),
        ("timestamp", "i8"),  # milliseconds
        ("key_at", "i8"),
        ("value_at", "i8"),
        ("headers_at", "i8"),  # of the first header's length
        ("key_length", "i4"),  # -1: null
        ("value_length", "i4"),  # -1: null
        ("headers_length", "i4"),  # bytes of all headers
        ("header_count", "i4"),
        ("batch", "i4"),  # row of BATCH
    ],
    align=True,
)
"""Where the parts of a record are. Positions (`*_at`) and lengths are bytes in a buffer."""

BatchColumns = npt.NDArray[np.void]
"""An array of BATCH."""

RecordColumns = npt.NDArray[np.void]
"""An array of RECORD."""
