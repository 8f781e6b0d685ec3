"""The fields of a header in RocketMQ's binary form: a length before each name and each value."""

from __future__ import annotations

import struct
from typing import Final

from mqlake.protocol.binary_layouts import Layouts
from mqlake.protocol.errors import FrameError

START: Final = struct.Struct(">hBhiii")
"""Code, language, version, opaque, flag, and the length of the remark."""
START_SIZE: Final = START.size
"""Bytes in front of the remark, or of the fields and their length."""

_INT: Final = struct.Struct(">i")
_SHORT: Final = struct.Struct(">h")
_MAX_NAME: Final = 2**15 - 1

layouts: Final = Layouts(START_SIZE)
"""The layouts of headers without a remark that were read last."""
_names: Final[dict[str, bytes]] = {}
_MAX_NAMES: Final = 1024
_SHORT_NAME: Final = 64
"""Names of fields are kept as they are written: so many, each below so many bytes."""


def fields_of(data: bytes) -> dict[str, str]:
    """Return the fields of a header.

    Raises:
        FrameError: a length in it leads outside of it.
    """
    if len(data) < START_SIZE:
        raise FrameError(f"a binary header of {len(data)} bytes")
    (length,) = _INT.unpack_from(data, START_SIZE - _INT.size)
    known = None if length else layouts.read(data)
    if known is not None:
        return known
    read_remark(data, START_SIZE, length)
    return read_fields(data, START_SIZE + length)


def read_remark(data: bytes, at: int, length: int) -> str | None:
    """Return the remark at a position; None if it is empty.

    Raises:
        FrameError: it ends after the header.
    """
    if not 0 <= length <= len(data) - at:
        raise FrameError(f"a remark of {length} bytes in a binary header of {len(data)}")
    return data[at : at + length].decode("utf-8", "replace") or None


def read_fields(data: bytes, at: int) -> dict[str, str]:
    """Return the fields after their length, which is at a position.

    Raises:
        FrameError: a length leads outside of the header, or the fields do not end with it.
    """
    fields: dict[str, str] = {}
    spans: list[slice] = []
    has_remark = at > START_SIZE
    try:
        end = at + _INT.size + _INT.unpack_from(data, at)[0]
        if end > len(data):
            raise FrameError("the fields of a binary header end after it")
        at += _INT.size
        while at < end:
            name_at = at + _SHORT.size
            value_at = name_at + _SHORT.unpack_from(data, at)[0] + _INT.size
            at = value_at + _INT.unpack_from(data, value_at - _INT.size)[0]
            if not name_at <= value_at - _INT.size <= value_at <= at <= end:
                raise FrameError("a field of a binary header ends after the fields")
            name = data[name_at : value_at - _INT.size].decode("utf-8", "replace")
            fields[name] = data[value_at:at].decode("utf-8", "replace")
            spans.append(slice(value_at, at))
    except struct.error:
        raise FrameError("a binary header ends within a length") from None
    if end != len(data):
        raise FrameError(f"{len(data) - end} bytes after the fields of a binary header")
    if not has_remark:
        layouts.learn(data, fields, spans)
    return fields


def pair(name: str, value: str) -> bytes:
    """Return a field.

    Raises:
        FrameError: its name does not fit into this form.
    """
    value_bytes = value.encode("utf-8", "replace")
    return pair_start(name, len(value_bytes)) + value_bytes


def pair_start(name: str, size: int) -> bytes:
    """Return a field up to its value of `size` bytes.

    Raises:
        FrameError: its name does not fit into this form.
    """
    return (_names.get(name) or _name(name)) + _INT.pack(size)


def _name(name: str) -> bytes:
    name_bytes = name.encode("utf-8", "replace")
    if len(name_bytes) > _MAX_NAME:
        raise FrameError(f"a field's name of {len(name_bytes)} bytes is too long")
    written = _SHORT.pack(len(name_bytes)) + name_bytes
    if len(_names) < _MAX_NAMES and len(name_bytes) < _SHORT_NAME:
        _names[name] = written
    return written
