"""Read and write the body of a batch as clients send it (docs/formats/message_batch.md).

Upstream: `MessageDecoder.encodeMessages`, `MessageExtEncoder.encode(MessageExtBatch, …)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
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
    columns = tuple(zip(*messages, strict=True))
    return encode_columns(*columns) if columns else b""


def encode_columns(
    flags: Sequence[int], bodies: Sequence[bytes], properties: Sequence[bytes]
) -> bytes:
    """Return the body of a batch of as many flags, bodies and encoded properties, at least one."""
    count, lengths = len(bodies), [*map(len, properties)]
    sizes = [*zip(flags, map(len, bodies), lengths, strict=True)]
    parts = [b""] * (4 * count)
    parts[1::4], parts[3::4] = bodies, properties
    if sizes.count(sizes[0]) == count:
        # Without a step of the interpreter for each message.
        parts[0::4] = [_head(*sizes[0])] * count
        parts[2::4] = [LENGTH.pack(lengths[0])] * count
    else:
        parts[0::4] = starmap(_head, sizes)
        parts[2::4] = map(LENGTH.pack, lengths)
    return b"".join(parts)


def _head(flag: int, body: int, properties: int) -> bytes:
    return HEAD.pack(LEAST_SIZE + body + properties, 0, 0, flag, body)
