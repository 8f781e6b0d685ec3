"""Read and write the body of a batch as clients send it (docs/formats/message_batch.md).

Upstream: `MessageDecoder.encodeMessages`, `MessageExtEncoder.encode(MessageExtBatch, …)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.properties import MAX_LENGTH

HEAD = Struct(
    ">"
    "i"  # total size
    "i"  # magic
    "i"  # body CRC
    "i"  # flag
    "i"  # body length
)
LENGTH = Struct(">H")
LEAST_SIZE = HEAD.size + LENGTH.size
"""Bytes of a message besides its body and its properties."""
FLAG_AT = 12
BODY_LENGTH_AT = FLAG_AT + 4


class BatchPart(NamedTuple):
    """One message of a batch: its flag, and where its parts are in the batch's body."""

    flag: int
    body_at: int
    body_length: int
    properties_at: int
    properties_length: int


def decode_batch(data: bytes | memoryview) -> Iterator[BatchPart]:
    """Yield the messages; as in RocketMQ their sizes, magics and CRCs are not looked at.

    Raises:
        FormatError: a length that does not fit.
    """
    at, end = 0, len(data)
    while at < end:
        if end - at < HEAD.size + LENGTH.size:
            raise FormatError(f"the batch ends within a message, at byte {at}")
        _size, _magic, _crc, flag, body_length = HEAD.unpack_from(data, at)
        body_at = at + HEAD.size
        if not 0 <= body_length <= end - body_at - LENGTH.size:
            raise FormatError(f"a body of {body_length} bytes does not fit, at byte {at}")
        (properties_length,) = LENGTH.unpack_from(data, body_at + body_length)
        properties_at = body_at + body_length + LENGTH.size
        if properties_length > min(MAX_LENGTH, end - properties_at):
            raise FormatError(f"properties of {properties_length} bytes do not fit, at byte {at}")
        yield BatchPart(flag, body_at, body_length, properties_at, properties_length)
        at = properties_at + properties_length


def encode_batch(messages: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """Return the body of a batch of (flag, body, encoded properties)."""
    parts: list[bytes] = []
    same, head, length = (-1, -1, -1), b"", b""
    for flag, body, properties in messages:
        # Neighbours often have the same lengths.
        if same != (numbers := (flag, len(body), len(properties))):
            same = numbers
            head = HEAD.pack(LEAST_SIZE + len(body) + len(properties), 0, 0, flag, len(body))
            length = LENGTH.pack(len(properties))
        parts += head, body, length, properties
    return b"".join(parts)
