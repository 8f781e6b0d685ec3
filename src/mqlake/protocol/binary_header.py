"""The header of a frame in RocketMQ's binary form (upstream: `RocketMQSerializable`)."""

from __future__ import annotations

import struct
from typing import Final

from mqlake.protocol.binary_fields import START, START_SIZE, layouts, pair, read_fields, read_remark
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.errors import FrameError

LANGUAGES: Final[tuple[str, ...]] = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY",
    "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
)  # fmt: skip
"""Names by their number on the wire (upstream: `LanguageCode`)."""

_CODES: Final = range(-(2**15), 2**15)
_KIND: Final = Serialization.ROCKETMQ
_SIZE: Final = struct.Struct(">i")


def decode(data: bytes) -> Command:
    """Return the command that a header describes, without its body.

    Raises:
        FrameError: a length in it leads outside of it.
    """
    if len(data) < START_SIZE:
        raise FrameError(f"a binary header of {len(data)} bytes")
    code, language, version, opaque, flag, length = START.unpack_from(data)
    remark, fields = None, None if length else layouts.read(data)
    if fields is None:
        remark = read_remark(data, START_SIZE, length)
        fields = read_fields(data, START_SIZE + length)
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
    start = START.pack(
        command.code, language, command.version, command.opaque, command.flag, len(remark)
    )
    return b"".join((start, remark, _SIZE.pack(size)))


def _language(number: int) -> str:
    return LANGUAGES[number] if number < len(LANGUAGES) else "OTHER"
