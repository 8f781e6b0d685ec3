"""The header of a frame in RocketMQ's binary form (upstream: `RocketMQSerializable`)."""

from __future__ import annotations

import struct
from typing import Final

from mqlake.remoting.command import Command, Serialization
from mqlake.remoting.errors import FrameError

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


def decode(data: bytes) -> Command:
    """Return the command that a header describes, without its body.

    Raises:
        FrameError: a length in it leads outside of it.
    """
    if len(data) < _START.size:
        raise FrameError(f"a binary header of {len(data)} bytes")
    code, language, version, opaque, flag, length = _START.unpack_from(data)
    at = _START.size
    remark = _remark(data, at, length)
    at += length
    fields, end = _fields(data, at)
    if end != len(data):
        raise FrameError(f"{len(data) - end} bytes behind the fields of a binary header")
    return Command(
        code,
        opaque,
        flag,
        remark,
        _language(language),
        version,
        known_fields=fields,
        serialization=Serialization.ROCKETMQ,
    )


def encode(command: Command) -> bytes:
    """Return the header of a command.

    Raises:
        FrameError: its code, or the name of a field, does not fit into this form.
    """
    if command.code not in _CODES:
        raise FrameError(f"code {command.code} does not fit into a binary header")
    remark = (command.remark or "").encode("utf-8", "replace")
    fields = b"".join(_pair(name, value) for name, value in command.fields.items())
    language = LANGUAGES.index(command.language) if command.language in LANGUAGES else 7
    start = _START.pack(
        command.code, language, command.version, command.opaque, command.flag, len(remark)
    )
    return b"".join((start, remark, _INT.pack(len(fields)), fields))


def _language(number: int) -> str:
    return LANGUAGES[number] if number < len(LANGUAGES) else "OTHER"


def _pair(name: str, value: str) -> bytes:
    name_bytes, value_bytes = name.encode("utf-8", "replace"), value.encode("utf-8", "replace")
    if len(name_bytes) > _MAX_NAME:
        raise FrameError(f"a field's name of {len(name_bytes)} bytes is too long")
    return b"".join(
        (_SHORT.pack(len(name_bytes)), name_bytes, _INT.pack(len(value_bytes)), value_bytes)
    )


def _fields(data: bytes, at: int) -> tuple[dict[str, str], int]:
    """Return the fields behind their length, and where they end."""
    fields: dict[str, str] = {}
    try:
        end = at + _INT.size + _INT.unpack_from(data, at)[0]
        if end > len(data):
            raise FrameError("the fields of a binary header end behind it")
        at += _INT.size
        while at < end:
            name_at = at + _SHORT.size
            value_at = name_at + _SHORT.unpack_from(data, at)[0] + _INT.size
            at = value_at + _INT.unpack_from(data, value_at - _INT.size)[0]
            if not name_at <= value_at - _INT.size <= value_at <= at <= end:
                raise FrameError("a field of a binary header ends behind the fields")
            name = data[name_at : value_at - _INT.size].decode("utf-8", "replace")
            fields[name] = data[value_at:at].decode("utf-8", "replace")
    except struct.error:
        raise FrameError("a binary header ends within a length") from None
    return fields, end


def _remark(data: bytes, at: int, length: int) -> str | None:
    if not 0 <= length <= len(data) - at:
        raise FrameError(f"a remark of {length} bytes in a binary header of {len(data)}")
    return data[at : at + length].decode("utf-8", "replace") or None
