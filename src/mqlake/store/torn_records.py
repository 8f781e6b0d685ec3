"""Tell a record of which a power cut has lost blocks from a whole one.

RocketMQ checks a record's lengths and its body. But a disk writes blocks, and loses some: what was
in a lost block of a new file is zero. A lost block that has a record's start, its lengths or bytes
of its body shows in that check, one with bytes of the topic in the topic. One with nothing but
bytes of properties does not, and the message would come back with other properties than it had.
"""

from __future__ import annotations

import numpy as np

from mqlake.dispatch.batch import Window
from mqlake.dispatch.columns import RecordColumns

_BLOCK = 512
"""Bytes that a disk writes as a whole, at least."""

_LENGTH_SIZE = 2
"""The length of the properties stands before them; half of it may be in the block before."""


def first_torn(window: Window, records: RecordColumns) -> int | None:
    """Return the first of the records that has lost a block of its properties, None for none.

    A block counts as lost where all bytes that it has of the properties are zero; properties are
    text, and do not look like that.
    """
    if not len(records):
        return None
    last = records[-1]
    first_block = -window.base % _BLOCK
    end = int(last["properties_at"]) + int(last["properties_length"])
    suspects = first_block + _BLOCK * np.flatnonzero(window.buffer[first_block:end:_BLOCK] == 0)
    if not len(suspects):
        return None
    starts = records["properties_at"].astype(np.int64)
    ends = starts + records["properties_length"]
    # The first record whose properties end behind the suspect.
    rows = np.searchsorted(ends, suspects, "right")
    inside = starts[rows] - _LENGTH_SIZE < suspects
    for row, at in zip(rows[inside].tolist(), suspects[inside].tolist(), strict=True):
        lost = window.buffer[max(at, int(starts[row])) : min(at + _BLOCK, int(ends[row]))]
        if len(lost) and not lost.any():
            return row
    return None
