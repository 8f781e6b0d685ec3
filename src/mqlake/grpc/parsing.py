"""Bytes to messages, without more memory or time than a client should have.

Protocol Buffers needs far more memory for a message of many small fields than it has bytes. So the
fields of a large one are counted before it is parsed: a body is one field, however long it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from time import perf_counter
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from mqlake.grpc.status import GrpcError, GrpcStatus

LARGE: Final = 2_048
"""Bytes of a message that is parsed without a look at its fields."""
MOST_FIELDS: Final = 32_768
"""Fields of one request, those of its messages included."""
_UNTIMED: Final = 64
"""Fields that are counted before the time is checked."""
_TURN: Final = 0.001
"""Seconds of one round of the loop in which fields are counted."""
_OF_FIELD: Final = 48
"""Bytes that a field takes once it is parsed, besides its own."""
_OF_SMALL: Final = 6
"""How many times its bytes a small message takes at most once it is parsed."""
_VARINT, _DELIMITED = 0, 2
_SIZES: Final = {1: 8, 3: 0, 4: 0, 5: 4}
"""The bytes of fields of the other kinds: numbers of 8 and 4 bytes, and the marks of groups."""
_LONGEST_VARINT: Final = 10

_PACKED: Final = "packed"
Shape = dict[int, Any]
"""For the numbers of fields: the shape of the messages in it, or `_PACKED`."""
_SHAPES: Final[dict[str, Shape]] = {}


def parse(kind: type[Message], data: bytes) -> Message:
    """Return a message.

    Raises:
        GrpcError: the bytes are not a message.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        name = kind.DESCRIPTOR.name
        raise GrpcError(GrpcStatus.INTERNAL, f"a request is no {name}: {error}") from None


def cost_of_small(size: int) -> int:
    """Return the bytes that a message with so many bytes takes at most, if it is not large."""
    return size * _OF_SMALL


class LargeMessages:
    """Parses large messages, one at a time, and others have their turns meanwhile."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def parse(self, kind: type[Message], data: bytes) -> tuple[Message, int]:
        """Return a message of any size, and the bytes that its fields take besides its own.

        Raises:
            GrpcError: the bytes are not a message, or one of too many fields.
        """
        async with self._lock:
            counting, fields = (
                _count_fields(data, _shape_of(cast("Descriptor", kind.DESCRIPTOR))),
                0,
            )
            until = perf_counter() + _TURN
            for count in counting:
                fields = count
                if perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = perf_counter() + _TURN
            return parse(kind, data), _OF_FIELD * fields


def _shape_of(descriptor: Descriptor) -> Shape:
    found = _SHAPES.get(descriptor.full_name)
    if found is None:
        found = _SHAPES[descriptor.full_name] = {}
        for field in descriptor.fields:
            if field.message_type is not None:
                found[field.number] = _shape_of(field.message_type)
            elif field.is_repeated and field.type not in _TEXTS:
                found[field.number] = _PACKED
    return found


_TEXTS: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def _count_fields(data: bytes, shape: Shape) -> Generator[int]:
    """Count the fields of a message; yield the number now and then, and at the end.

    Bytes that are no message end it early.
    """
    at, count = 0, 0
    outer: list[tuple[int, Shape]] = []
    end = len(data)
    while True:
        if count > MOST_FIELDS:
            raise GrpcError(
                GrpcStatus.RESOURCE_EXHAUSTED, f"a request has more than {MOST_FIELDS} fields"
            )
        while at >= end:
            if not outer:
                yield count
                return
            end, shape = outer.pop()
        count += 1
        if not count % _UNTIMED:
            yield count
        tag, at = _varint(data, at)
        if tag & 7 != _DELIMITED:
            at = _after(tag & 7, data, at)
            continue
        size, at = _varint(data, at)
        inner = shape.get(tag >> 3)
        if size > end - at:
            return
        if isinstance(inner, dict):
            outer.append((end, shape))
            end, shape = at + size, cast("Shape", inner)
            continue
        at += size
        if inner is _PACKED:
            count += size


def _after(kind: int, data: bytes, at: int) -> int:
    """Return where a field of a fixed kind ends; the end of the data if there is no such kind."""
    if kind == _VARINT:
        return _varint(data, at)[1]
    return at + _SIZES.get(kind, len(data))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; if it does not end, the end of the data."""
    found = 0
    for digit, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        found |= (byte & 0x7F) << 7 * digit
        if byte < 0x80:
            return found, at + digit + 1
    return 0, len(data)
