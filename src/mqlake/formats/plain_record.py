"""Read the parts of a plain record quickly (docs/formats/record.md).

Nearly all records are plain: their topic has at most 127 bytes (version 1), and `record.check`
finds them good. All others are left to `record.check`.
"""

from __future__ import annotations

import zlib

from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.file_name import is_safe_topic

_MIN_SIZE = record.HEAD_SIZES[-1] + 3
"""Bytes from which on every head can be read."""

Head = tuple[
    int, int, int, int, int, int, int, int, int, bytes, int, bytes, int, int, int
]  # fmt: skip
"""The fields of `record.HEADS`, in their order."""

Plain = tuple[Head, bytes, bytes, int]
"""The head, the body, the topic, and where the properties begin."""


def plain_at(data: bytes, at: int, end: int) -> Plain | None:
    """Return the parts of the record at `at`; None if it is not plain.

    Args:
        end: where the last record may end, at most the length of the data.
    """
    if end - at < _MIN_SIZE:
        return None
    v6 = data[at + record.SYS_FLAG_AT + 3] >> 4 & 3
    head: Head = record.HEADS[v6].unpack_from(data, at)
    size, body_length = head[0], head[14]
    body_at = at + record.HEAD_SIZES[v6]
    body_end, record_end = body_at + body_length, at + size
    if head[1] != record.V1_MAGIC or body_length < 0 or not body_end + 3 <= record_end <= end:
        return None
    topic_end = body_end + 1 + data[body_end]
    properties_at = topic_end + 2
    if properties_at > record_end or data[body_end] > record.MAX_TOPIC_V1:
        return None
    properties_length = data[topic_end] << 8 | data[topic_end + 1]
    if properties_at + properties_length != record_end:
        return None
    if properties_length > record.MAX_PROPERTIES:
        return None
    topic = data[body_end + 1 : topic_end]
    if not is_safe_topic(topic):
        return None
    body = data[body_at:body_end]
    if body_length and head[2] != zlib.crc32(body) & record.CRC_MASK:
        return None
    return head, body, topic, properties_at


def any_at(data: bytes, at: int, end: int) -> tuple[Plain, str | None]:
    """Return the parts of the record at `at`, and what is wrong with its body, if it is.

    Args:
        end: where the last record may end, at most the length of the data.

    Raises:
        FormatError: more is wrong with it than the checksum of its body.
    """
    fault, layout = record.check(data, at, end)
    reason = f"byte {at}: {record.FAULT_REASONS[fault]}"
    if layout is None or fault not in (record.Fault.GOOD, record.Fault.CRC):
        raise FormatError(reason)
    head: Head = record.HEADS[data[at + record.SYS_FLAG_AT + 3] >> 4 & 3].unpack_from(data, at)
    topic = data[layout.topic_at : layout.topic_at + layout.topic_length]
    body = data[layout.body_at : layout.body_at + layout.body_length]
    found = head, body, topic, layout.properties_at
    return found, reason if fault else None
