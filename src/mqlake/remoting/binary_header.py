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
    remark = _text(data, at, length) or None
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
    length, at = _length(data, at, _INT)
    end = at + length
    if end > len(data):
        raise FrameError(f"fields of {length} bytes end behind the binary header")
    fields = _well_formed(data, at, end)
    return (_checked(data, at, end) if fields is None else fields), end


def _well_formed(data: bytes, at: int, end: int) -> dict[str, str] | None:
    """Return the fields in data[at:end] if nothing is wrong with them, else None."""
    fields: dict[str, str] = {}
    length_at = _INT.unpack_from
    try:
        while at < end:
            name_end = at + 2 + (data[at] << 8 | data[at + 1])
            value_at = name_end + 4
            name, at = data[at + 2 : name_end], value_at + length_at(data, name_end)[0]
            if not value_at <= at <= end or len(name) > _MAX_NAME:
                return None
            fields[name.decode()] = data[value_at:at].decode()
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return fields


def _checked(data: bytes, at: int, end: int) -> dict[str, str]:
    """Return the fields in data[at:end], malformed texts replaced.

    Raises:
        FrameError: a length leads outside of the header, or of the fields.
    """
    fields: dict[str, str] = {}
    while at < end:
        length, at = _length(data, at, _SHORT)
        name = _text(data, at, length)
        length, at = _length(data, at + length, _INT)
        fields[name] = _text(data, at, length)
        at += length
    if at != end:
        raise FrameError("the last field of a binary header ends behind the fields")
    return fields


def _length(data: bytes, at: int, form: struct.Struct) -> tuple[int, int]:
    if at + form.size > len(data):
        raise FrameError("a binary header ends within a length")
    return form.unpack_from(data, at)[0], at + form.size


def _text(data: bytes, at: int, length: int) -> str:
    if not 0 <= length <= len(data) - at:
        raise FrameError(f"a text of {length} bytes in a binary header of {len(data)}")
    return data[at : at + length].decode("utf-8", "replace")
