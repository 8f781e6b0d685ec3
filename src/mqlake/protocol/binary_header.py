"""The header of a frame in RocketMQ's binary form (upstream: `RocketMQSerializable`)."""

from __future__ import annotations

import struct
from typing import Final

from mqlake.protocol.binary_layouts import Layouts
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.errors import FrameError

LANGUAGES: Final[tuple[str, ...]] = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY",
    "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
)  # fmt: skip
"""Names by their number on the wire (upstream: `LanguageCode`)."""

_START: Final = struct.Struct(">hBhiii")
_INT: Final = struct.Struct(">i")
_SHORT: Final = struct.Struct(">h")
_CODES: Final = range(-(2**15), 2**15)
_MAX_NAME: Final = 2**15 - 1
_KIND: Final = Serialization.ROCKETMQ

START_SIZE: Final = _START.size
"""Bytes in front of the remark, or of the fields and their length."""

_layouts: Final = Layouts(START_SIZE)
_names: Final[dict[str, bytes]] = {}
_MAX_NAMES: Final = 1024
_SHORT_NAME: Final = 64
"""Names of fields are kept as they are written: so many, each below so many bytes."""


def decode(data: bytes) -> Command:
    """Return the command that a header describes, without its body.

    Raises:
        FrameError: a length in it leads outside of it.
    """
    if len(data) < _START.size:
        raise FrameError(f"a binary header of {len(data)} bytes")
    code, language, version, opaque, flag, length = _START.unpack_from(data)
    remark, fields = None, None if length else _layouts.read(data)
    if fields is None:
        remark = _remark(data, _START.size, length)
        fields = _fields(data, _START.size + length)
    return Command(
        code,
        opaque,
        flag,
        remark,
        _language(language),
        version,
        known_fields=fields,
        serialization=_KIND,
    )


def encode(command: Command) -> bytes:
    """Return the header of a command.

    Raises:
        FrameError: its code, or the name of a field, does not fit into this form.
    """
    if command.code not in _CODES:
        raise FrameError(f"code {command.code} does not fit into a binary header")
    remark = (command.remark or "").encode("utf-8", "replace")
    fields = b"".join([pair(name, value) for name, value in command.fields.items()])
    return start_of(command, remark, len(fields)) + fields


def start_of(command: Command, remark: bytes, size: int) -> bytes:
    """Return what a header begins with, up to its fields of `size` bytes."""
    language = LANGUAGES.index(command.language) if command.language in LANGUAGES else 7
    start = _START.pack(
        command.code, language, command.version, command.opaque, command.flag, len(remark)
    )
    return b"".join((start, remark, _INT.pack(size)))


def _language(number: int) -> str:
    return LANGUAGES[number] if number < len(LANGUAGES) else "OTHER"


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


def _fields(data: bytes, at: int) -> dict[str, str]:
    """Return the fields behind their length."""
    fields: dict[str, str] = {}
    spans: list[slice] = []
    has_remark = at > _START.size
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
        raise FrameError(f"{len(data) - end} bytes behind the fields of a binary header")
    if not has_remark:
        _layouts.learn(data, fields, spans)
    return fields


def _remark(data: bytes, at: int, length: int) -> str | None:
    if not 0 <= length <= len(data) - at:
        raise FrameError(f"a remark of {length} bytes in a binary header of {len(data)}")
    return data[at : at + length].decode("utf-8", "replace") or None
