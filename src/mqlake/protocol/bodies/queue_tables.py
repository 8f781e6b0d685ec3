"""Maps whose keys are queues: fastjson writes the key as an object, which is no JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import fastjson
from mqlake.formats.config import convert
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.body import encode_body
from mqlake.protocol.command import Body
from mqlake.protocol.errors import BodyError

T = TypeVar("T")


def encode_queue(queue: MessageQueue, item: object) -> bytes:
    """Return one entry of such a map."""
    return encode_body(queue) + b":" + encode_body(item)


def join_queues(entries: Iterable[bytes]) -> msgspec.Raw:
    """Return the map that has these entries."""
    return msgspec.Raw(b"".join((b"{", b",".join(entries), b"}")))


def encode_array(items: Iterable[bytes]) -> msgspec.Raw:
    """Return the array of these texts."""
    return msgspec.Raw(b"".join((b"[", b",".join(items), b"]")))


def encode_with_table(fields: Mapping[str, object]) -> bytes:
    """Return a JSON object some of whose values may come from `join_queues`."""
    parts: list[bytes | memoryview] = []
    for name, value in fields.items():
        # A long table is copied only once.
        text = memoryview(value) if isinstance(value, msgspec.Raw) else encode_body(value)
        parts += b"," if parts else b"{", encode_body(name), b":", text
    return b"".join((*(parts or (b"{",)), b"}"))


def read_queue_table(value: object, kind: type[T]) -> dict[MessageQueue, T]:
    """Return the map in what `fastjson.loads` returned.

    Raises:
        BodyError: it is no such map.
    """
    try:
        table = cast("dict[str, object]", convert(value, dict[str, Any]))
        return {
            convert(fastjson.loads(key.encode()), MessageQueue): convert(item, kind)
            for key, item in table.items()
        }
    except FormatError as error:
        raise BodyError(f"the body has no table of queues: {error}") from None


def read_object(data: Body) -> dict[str, object]:
    """Return the members of a body in fastjson's dialect.

    Raises:
        BodyError: it is no object.
    """
    try:
        return convert(fastjson.loads(bytes(data)), dict[str, Any])
    except FormatError as error:
        raise BodyError(f"the body is not an object: {error}") from None
