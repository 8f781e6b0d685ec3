"""Parse bytes to messages, without more memory or time than a client may use.

Protocol Buffers needs far more memory for a message of many small fields than it has bytes. So the
fields of a large one are counted before it is parsed: a body is one field, however long it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from mqlake.grpc.status import GrpcError, GrpcStatus

LARGE: Final = 16_384
"""Bytes of a message that is parsed at once, unless it has many fields."""
_MANY: Final = 1_024
"""Fields that are counted, and parsed, within a millisecond."""
_SMALL: Final = 2_048
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
_SIZES: Final = {1: 8, 5: 4}
"""The bytes of numbers of fixed sizes. There are no groups: no message of the service has any, and
what is in an unknown one is not parsed as it would be elsewhere.
"""
_LONGEST_VARINT: Final = 10
_MORE: Final = 0x80
"""The bit of a byte of a number that others follow."""

_PACKED: Final = "packed"
Shape = dict[int, Any]
"""For the tags of fields with bytes: the shape of the messages in it, or `_PACKED`."""
_SHAPES: Final[dict[str, Shape]] = {}


def parse(kind: type[Message], data: bytes) -> Message:
    """Return a message.

    Raises:
        GrpcError: the bytes are not a message.
    """
    with _naming(kind):
        return kind.FromString(data)


@contextmanager
def _naming(kind: type[Message]) -> Generator[None]:
    """Add to an error of Protocol Buffers what the bytes should have been."""
    try:
        yield
    except DecodeError as error:
        text = f"a request is no {kind.DESCRIPTOR.name}: {error}"
        raise GrpcError(GrpcStatus.INTERNAL, text) from None


def parse_at_once(kind: type[Message], data: bytes) -> tuple[Message, int] | None:
    """Return a message, and the bytes that it takes at most; None if that may take long.

    Raises:
        GrpcError: the bytes are not a message.
    """
    size, fields = len(data), 0
    if size <= _SMALL:
        return parse(kind, data), size * _OF_SMALL
    if size > LARGE:
        return None
    with _naming(kind):
        for count in _count_fields(data, _shape_of(cast("Descriptor", kind.DESCRIPTOR))):
            if count > _MANY:
                return None
            fields = count
    return parse(kind, data), size + _OF_FIELD * fields


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
            with _naming(kind):
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
                found[field.number << 3 | _DELIMITED] = _shape_of(field.message_type)
            elif field.is_repeated and field.type not in _TEXTS:
                found[field.number << 3 | _DELIMITED] = _PACKED
    return found


_TEXTS: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def _count_fields(data: bytes, shape: Shape) -> Generator[int]:
    """Count the fields of a message; yield the number now and then, and at the end.

    Raises:
        DecodeError: the bytes are not a message.
        GrpcError: it has too many fields.
    """
    at = count = 0
    outer: list[tuple[int, Shape]] = []
    end = last = len(data)
    while True:
        if count > MOST_FIELDS:
            raise GrpcError(
                GrpcStatus.RESOURCE_EXHAUSTED, f"a request has more than {MOST_FIELDS} fields"
            )
        while at >= end:
            if at > end:
                raise DecodeError("it is truncated")
            if not outer:
                yield count
                return
            end, shape = outer.pop()
        count += 1
        if not count % _UNTIMED:
            yield count
        # Most tags and lengths have one byte, which is read here: a call takes several times as
        # long.
        tag, at = (data[at], at + 1) if data[at] < _MORE else _varint(data, at)
        if tag & 7 != _DELIMITED:
            at = _after(tag & 7, data, at)
            continue
        is_short = at < last and data[at] < _MORE
        size, at = (data[at], at + 1) if is_short else _varint(data, at)
        inner = shape.get(tag)
        if size > end - at:
            raise DecodeError("it is truncated")
        if inner is None:
            at += size
        elif inner is _PACKED:
            at += size
            count += size
        else:
            outer.append((end, shape))
            end, shape = at + size, inner


def _after(kind: int, data: bytes, at: int) -> int:
    """Return where a field that is a number ends.

    Raises:
        DecodeError: it does not end, or is no number.
    """
    if kind == _VARINT:
        return _varint(data, at)[1]
    size = _SIZES.get(kind)
    if size is None:
        raise DecodeError(f"it has fields of kind {kind}")
    return at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends.

    Raises:
        DecodeError: it does not end.
    """
    found = 0
    for digit, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        found |= (byte & 0x7F) << 7 * digit
        if byte < _MORE:
            return found, at + digit + 1
    raise DecodeError("it is truncated")
