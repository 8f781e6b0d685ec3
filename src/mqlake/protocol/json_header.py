"""The header of a frame as JSON, in fastjson's dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

import msgspec
from msgspec import UNSET, UnsetType

from mqlake.errors import FormatError
from mqlake.formats import fastjson
from mqlake.protocol.command import Command
from mqlake.protocol.errors import FrameError
from mqlake.protocol.header import Header

MAX_LENIENT: Final = 16_384
"""Maximum bytes of a header that is not strict JSON, and is read again by the slow path."""

_BAD_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Written(msgspec.Struct, gc=False):
    """The fields of a header in upstream's order; fields that are UNSET are left out."""

    code: int
    ext_fields: dict[str, str] | UnsetType = msgspec.field(name="extFields")
    flag: int
    language: str
    opaque: int
    remark: str | UnsetType
    serialization: str = msgspec.field(name="serializeTypeCurrentRPC")
    version: int


_decode = msgspec.json.Decoder(Command, strict=False).decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes) -> Command:
    """Return the command that a header describes, without its body.

    Raises:
        FrameError: the bytes are not such a header.
    """
    try:
        return _own(_decode(data))
    except _BAD_JSON as error:
        return _lenient(data, error)


def _own(command: Command) -> Command:
    """Return a decoded command with the fields reset that do not come from its JSON."""
    command.known_fields, command.body = None, b""
    command.serialization, command.encoded = 0, b""
    return command


def decode_typed(kinds: Mapping[int, type[Header]]) -> Callable[[bytes], Command]:
    """Return a `decode` that reads the fields of some codes into their types, in one pass.

    Fields that the type does not have are read at the first access to `Command.fields`.
    """
    by_start = {b'{"code":%d' % code: _typed(kind) for code, kind in kinds.items()}

    def decode_known(data: bytes) -> Command:
        known = by_start.get(data[: data.find(b",")])
        if known is not None:
            try:
                command = known(data)
            except _BAD_JSON:
                return decode(data)  # `Command.header` reports what is wrong with it.
            # The same as `_own`; a call would take longer.
            command.known_fields, command.body = None, b""
            command.serialization, command.encoded = 0, data
            return command
        return decode(data)

    return decode_known


def encode(command: Command) -> bytes:
    """Return the header of a command."""
    return _encode(
        _Written(
            command.code,
            command.fields or UNSET,
            command.flag,
            command.language,
            command.opaque,
            UNSET if command.remark is None else command.remark,
            "JSON",
            command.version,
        )
    )


def _typed(kind: type[Header]) -> Callable[[bytes], Command]:
    fields = msgspec.field(name="extFields")
    name = f"Command{kind.__name__}"
    typed = msgspec.defstruct(name, [("raw_fields", kind, fields)], bases=(Command,), kw_only=True)
    return msgspec.json.Decoder(cast("type[Command]", typed), strict=False).decode


def _lenient(data: bytes, reason: Exception) -> Command:
    """Read what fastjson accepts but strict JSON does not; null fields count as absent."""
    if len(data) <= MAX_LENIENT:
        try:
            found = fastjson.loads(data)
            if isinstance(found, dict):
                items = cast("dict[str | int, object]", found).items()
                known = {name: value for name, value in items if value is not None}
                return _own(_decode(msgspec.json.encode(known)))
        except (*_BAD_JSON, FormatError, OverflowError) as error:
            reason = error
    raise FrameError(f"the header is not the JSON of a command: {reason}") from None
