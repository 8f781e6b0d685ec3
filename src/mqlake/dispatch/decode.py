"""Decode a few records at any positions in one call (docs/dispatch.md).

Python takes several microseconds to make an object from a record's fields; msgspec takes half a
microsecond from MessagePack. So a kernel writes the records as MessagePack, which differs little
from their form in the log.
"""

from __future__ import annotations

import msgspec

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.kernel import Kernel, load
from mqlake.formats import record
from mqlake.formats.record import Record

_DECODER = msgspec.msgpack.Decoder(list[Record])


def decode(buffer: Bytes, at: Longs, sizes: Longs, kernel: Kernel | None = None) -> list[Record]:
    """Return the valid records at the given positions of a buffer.

    Does what `mqlake.formats.record.decode` does, except that it does not check the CRC.
    """
    data = (kernel or load()).packed(buffer, at, sizes)
    if len(data):
        return _DECODER.decode(data.data)
    # Text that is not UTF-8 is replaced as in Java: only the slow path does that.
    spans = zip(at.tolist(), sizes.tolist(), strict=True)
    return [
        record.decode(buffer[start : start + size].tobytes(), crc=False) for start, size in spans
    ]
