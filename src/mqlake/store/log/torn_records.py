"""Tell a record of which a crash has lost a part from a whole one.

RocketMQ checks a record's lengths and its body. But a disk writes blocks, and loses some: what was
in a lost block of a new file is zero. And a block may be written while the record is being copied
into it: then its last bytes are zero. A block that lacks a record's start, its lengths or bytes of
its body shows in that check, one that lacks bytes of the topic in the topic. One that lacks nothing
but bytes of properties does not, and the message would come back with other properties than it had.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Window
from mqlake.dispatch.columns import RecordColumns

_Positions = npt.NDArray[np.int64]

_BLOCK = 512
"""Bytes that a disk writes as a whole, at least."""

_SIZE = 4
"""Bytes of the size that a record begins with."""

_LEAST = 8
"""Zeros at the end of a block's share of the properties that are no property's value."""


def first_torn(window: Window, records: RecordColumns) -> int | None:
    """Return the first of the records that has lost bytes of its properties, None for none.

    So it has where the bytes that some block has of the properties end in zeros, eight of them or
    all that there are; properties are text, and do not look like that. Where nothing follows, one
    zero at the record's end will do.
    """
    if not len(records):
        return None
    starts = records["properties_at"].astype(np.int64)
    ends = starts + records["properties_length"]
    # The last byte that a block has of a record's properties: the block's, or the properties'.
    block_ends = np.arange(_BLOCK - 1 - window.base % _BLOCK, int(ends[-1]), _BLOCK)
    lasts = np.concatenate((block_ends[window.buffer[block_ends] == 0], _zero_lasts(window, ends)))
    if not len(lasts):
        return None
    lasts.sort()
    rows = np.searchsorted(ends, lasts, "right")
    inside = starts[rows] <= lasts
    for row, last in zip(rows[inside].tolist(), lasts[inside].tolist(), strict=True):
        block = last - (window.base + last) % _BLOCK
        start = max(block, int(starts[row]), last + 1 - _LEAST)
        if not window.buffer[start : last + 1].any() or _is_end(window, last + 1, int(ends[row])):
            return row
    return None


def _is_end(window: Window, at: int, end: int) -> bool:
    """Say whether a record ends at a position, and there is nothing behind it.

    What mqlake writes never ends in a zero.
    """
    behind = window.buffer[at : min(at + _SIZE, window.length)]
    return at == end and len(behind) == _SIZE and not behind.any()


def _zero_lasts(window: Window, ends: _Positions) -> _Positions:
    """Return the positions of those properties' last bytes that are zero."""
    lasts = ends - 1
    return lasts[window.buffer[lasts] == 0]
