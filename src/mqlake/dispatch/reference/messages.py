"""All columns of a few records in one call (twin of `compiled.messages`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from mqlake.dispatch.answers import MessageColumns
from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.record import Record

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_ALIGNMENT = 8


def message_columns(
    buffer: Bytes, at: Longs, sizes: Longs, head: Bytes, spans_at: int
) -> MessageColumns:
    import numpy as np

    records = decode_text(buffer, at, sizes)
    if records is None:
        return MessageColumns(np.empty(0, np.uint8), 0, 0, 0, 0)
    pairs = [list(one.properties.items()) for one in records]
    keys = [one.keys for one in records]
    parts = [
        *_strings([one.topic.encode() for one in records]),
        *_fixed("i4", [one.queue_id for one in records]),
        *_fixed("i8", [one.queue_offset for one in records]),
        *_fixed("i8", [one.physical_offset for one in records]),
        *_fixed("i4", [one.size for one in records]),
        *_fixed("i4", [one.body_crc for one in records]),
        *_fixed("i4", [one.sys_flag for one in records]),
        *_fixed("i4", [one.flag for one in records]),
        *_fixed("i8", [one.born_timestamp for one in records]),
        *_fixed("i8", [one.store_timestamp for one in records]),
        *_strings([one.born_host.encode() for one in records]),
        *_strings([one.store_host.encode() for one in records]),
        *_fixed("i4", [one.reconsume_times for one in records]),
        *_fixed("i8", [one.prepared_transaction_offset for one in records]),
        *_lists(pairs),
        b"",
        *_strings([name.encode() for each in pairs for name, _ in each]),
        *_strings([value.encode() for each in pairs for _, value in each]),
        *_strings([(one.tags or "").encode() for one in records], _bitmap(records)),
        *_lists(keys),
        *_strings([key.encode() for each in keys for key in each]),
        *_strings([one.body for one in records]),
        *_strings([one.message_id.encode() for one in records]),
    ]
    data, spans = bytearray(head.tobytes()), list[int]()
    for part in parts:
        spans += (len(data) - len(head), len(part))
        data += part + bytes(-len(part) % _ALIGNMENT)
    struct.pack_into(f"={len(spans)}q", data, spans_at, *spans)
    return MessageColumns(
        np.frombuffer(data, np.uint8),
        len(records),
        sum(one.tags is None for one in records),
        sum(map(len, pairs)),
        sum(map(len, keys)),
    )


def decode_text(buffer: Bytes, at: Longs, sizes: Longs) -> list[Record] | None:
    """Return the records, or None if one is invalid or has text that is not UTF-8."""
    records: list[Record] = []
    for start, size in zip(at.tolist(), sizes.tolist(), strict=True):
        data = buffer[start : start + size].tobytes()
        _, layout = record.check(data, 0, len(data), crc=False)
        if layout is None or layout.size != len(data):
            return None
        end = layout.properties_at + layout.properties_length
        try:
            data[layout.properties_at : end].decode()
            records.append(record.decode(data, crc=False))
        except (UnicodeDecodeError, FormatError):
            return None
    return records


def _fixed(kind: str, values: Sequence[int]) -> list[bytes]:
    import numpy as np

    return [b"", np.array(values, kind).tobytes()]


def _lists(values: Sequence[Sequence[object]]) -> list[bytes]:
    return _fixed("i4", list(accumulate(map(len, values), initial=0)))


def _strings(values: Sequence[bytes], present: bytes = b"") -> list[bytes]:
    return [present, _lists(values)[1], b"".join(values)]


def _bitmap(records: Sequence[Record]) -> bytes:
    import numpy as np

    present = np.array([one.tags is not None for one in records], np.bool_)
    return np.packbits(present, bitorder="little").tobytes()
