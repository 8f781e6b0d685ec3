"""Decode a few records, wherever they lie, at once (docs/dispatch.md).

Python makes an object of a record's fields in some microseconds, msgspec from MessagePack in half
of one. So a kernel writes the records as MessagePack, which differs little from how they lie in
the log.
"""

from __future__ import annotations

import msgspec

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.kernel import Kernel, load
from mqlake.formats import record
from mqlake.formats.record import Record

_DECODER = msgspec.msgpack.Decoder(list[Record])


def decode(buffer: Bytes, at: Longs, sizes: Longs, kernel: Kernel | None = None) -> list[Record]:
    """Return the records at positions of a buffer, where they were found good.

    As `mqlake.formats.record.decode`, but for the CRC, which is not looked at.
    """
    data = (kernel or load()).packed(buffer, at, sizes)
    if len(data):
        return _DECODER.decode(data.data)
    # Text that is not UTF-8 is replaced as in Java: only the slow way knows how.
    spans = zip(at.tolist(), sizes.tolist(), strict=True)
    return [
        record.decode(buffer[start : start + size].tobytes(), crc=False) for start, size in spans
    ]
