"""Bodies of messages as a person reads them. A body may contain anything."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mqlake.console.page_error import PageError
from mqlake.errors import MqlakeError
from mqlake.formats.record import Record
from mqlake.protocol.messages.body_compression import compression, decompress

_SHOWN: Final = 64 << 10
"""Bytes of a body that a page shows."""
_LINE: Final = 16
_FIRST: Final = 160
_MOST_JSON: Final = 256 << 10
_ZLIB_OR_GZIP: Final = 32 + zlib.MAX_WBITS


class BodyView(NamedTuple):
    """A body.

    Attributes:
        size: bytes, after decompression.
        text: as UTF-8, with escapes for what cannot be shown.
        is_text: whether the body is valid UTF-8 without control characters.
        json: with indents; empty if the body is no JSON.
        hex: as a hexadecimal dump.
        cut: whether only the first part is shown.
        problem: why the body is shown as stored; empty if it is not.
    """

    size: int
    text: str
    is_text: bool
    json: str
    hex: str
    cut: bool
    problem: str


def plain_body(record: Record) -> tuple[bytes, str]:
    """Return a body without compression, and why it is still compressed, empty if it is not."""
    try:
        return decompress(record.body, record.sys_flag), ""
    except MqlakeError as error:
        return record.body, f"The body is shown as stored: {error}"


def body_view(record: Record) -> BodyView:
    """Return the body of a message in each form."""
    body, problem = plain_body(record)
    shown = body[:_SHOWN]
    text, is_text = shown_text(shown)
    return BodyView(
        size=len(body),
        text=text,
        is_text=is_text,
        json=_json(body),
        hex=hex_dump(shown),
        cut=len(body) > _SHOWN,
        problem=problem,
    )


def body_start(record: Record) -> str:
    """Return the begin of a body, whose end may be missing, without decompressing all of it."""
    body = record.body
    match compression(record.sys_flag):
        case None:
            start = body
        case "zlib":
            try:
                start = zlib.decompressobj(_ZLIB_OR_GZIP).decompress(body, _FIRST)
            except zlib.error:
                start = body
        case other:
            return f"({other})"
    return shown_text(start[:_FIRST])[0]


def shown_text(data: bytes) -> tuple[str, bool]:
    """Return bytes as text, and whether they are text."""
    decoded = data.decode("utf-8", "backslashreplace")
    shown = "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in decoded
    )
    return shown, shown == data.decode("utf-8", "replace")


def _json(body: bytes) -> str:
    """Return a JSON text with indents; empty for other bodies, and for large ones."""
    if len(body) > _SHOWN or (not body[:1].isspace() and body[:1] not in (b"{", b"[")):
        return ""
    try:
        return _indented(json.loads(body))
    except (ValueError, RecursionError):
        return ""


def _indented(value: Any) -> str:
    parts: list[str] = []
    size = 0
    for part in json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value):
        parts.append(part)
        size += len(part)
        if size > _MOST_JSON:  # Very deep values need much more room than the body has.
            parts.append("\n… the rest is not shown")
            break
    return shown_text("".join(parts).encode("utf-8", "backslashreplace"))[0]


def hex_dump(data: bytes) -> str:
    """Return lines of an offset, 16 bytes in hexadecimal, and these bytes as ASCII."""
    lines: list[str] = []
    for at in range(0, min(len(data), _SHOWN // 8), _LINE):
        part = data[at : at + _LINE]
        ascii_text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<47}  {ascii_text}")
    return "\n".join(lines)


def decoded(body: bytes, form: str, schema: str, message: str, *, framed: bool) -> str:
    """Return a typed body as JSON.

    Args:
        form: "avro" or "protobuf".
        schema: an Avro schema (JSON), or a descriptor file (Base64).
        message: the full name of a Protobuf message.
        framed: whether bodies have the prefix of a schema registry.

    Raises:
        PageError: the schema is wrong, or the body is not what it says.
    """
    try:
        return _indented(_decoder(form, schema, message, framed=framed)(body))
    except (MqlakeError, ValueError, ModuleNotFoundError, RecursionError) as error:
        raise PageError(f"The body cannot be read as {form[:20]}: {error}") from None


def _decoder(
    form: str, schema: str, message: str, *, framed: bool
) -> Callable[[bytes], dict[str, Any] | None]:
    if form == "avro":
        from mqlake.query.bodies.avro import AvroBodies

        return AvroBodies(schema, None, None, framed).decoder()
    if form == "protobuf":
        from mqlake.query.bodies.protobuf import ProtobufBodies

        return ProtobufBodies(base64.b64decode(schema), message, framed).decoder()
    raise PageError("choose Avro or Protobuf")
