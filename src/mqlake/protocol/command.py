"""A request or a response.

Upstream: `RemotingCommand`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import fastjson
from mqlake.protocol.binary_fields import fields_of
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import HeaderError
from mqlake.protocol.header import H, Header, Int32, from_fields, from_json, to_fields

VERSION: Final = 513
"""The version that commands made here carry: that of RocketMQ 5.5.0 (`MQVersion`)."""
VERSION_NAME: Final = "V5_5_0"

LANGUAGE: Final = "PYTHON"

RESPONSE: Final = 1
"""Bit of `flag`: a response."""
ONEWAY: Final = 2
"""Bit of `flag`: a request without a response."""

_NO_FIELDS: Final = msgspec.Raw()


class _AllFields(msgspec.Struct, gc=False):
    """The fields of a header in JSON."""

    raw_fields: msgspec.Raw = msgspec.field(name="extFields", default=_NO_FIELDS)


_decode_all = msgspec.json.Decoder(_AllFields).decode
_decode_fields = msgspec.json.Decoder(dict[str, str]).decode

if TYPE_CHECKING:
    Body = bytes | bytearray | memoryview
    """Types of a body: anything that can be joined with bytes."""
else:
    Body = Any  # msgspec does not support a union of bytes types.


class Serialization(IntEnum):
    """The format of a frame's header (upstream: `SerializeType`)."""

    JSON = 0
    ROCKETMQ = 1


class Command(msgspec.Struct, gc=False):
    """A request or a response.

    Attributes:
        code: of `RequestCode` or `ResponseCode`, or a code that is unknown here.
        opaque: number that matches a response to its request on one connection.
        remark: one line for a person, mostly in responses.
        language, version: what the other side reports about itself.
        body: the bytes after the header; may be empty.
        serialization: the format in which the header is, or was, written.
        encoded: the header as received, if its fields were decoded to a type that may lack some of
            them; b"" if no field is lacking.
    """

    code: Int32
    opaque: Int32 = 0
    flag: Int32 = 0
    remark: str | None = None
    language: str = "JAVA"
    version: Int32 = 0
    raw_fields: msgspec.Raw = msgspec.field(name="extFields", default=_NO_FIELDS)
    known_fields: dict[str, str] | None = msgspec.field(name=" fields", default=None)
    body: Body = msgspec.field(name=" body", default=b"")
    serialization: int = msgspec.field(name=" serialization", default=0)
    encoded: bytes = msgspec.field(name=" encoded", default=b"")

    @property
    def is_response(self) -> bool:
        """Return whether this answers a request."""
        return self.flag & RESPONSE != 0

    @property
    def is_oneway(self) -> bool:
        """Return whether this request expects no response."""
        return self.flag & ONEWAY != 0

    @property
    def fields(self) -> dict[str, str]:
        """All received header fields (`extFields`), as strings.

        Raises:
            HeaderError: they are not a JSON object of plain values.
        """
        if self.known_fields is None:
            if self.encoded and self.serialization == Serialization.ROCKETMQ:
                self.known_fields = fields_of(self.encoded)
                return self.known_fields
            raw = _decode_all(self.encoded).raw_fields if self.encoded else self.raw_fields
            self.known_fields = _read_fields(raw)
        return self.known_fields

    def bare(self) -> Command:
        """Return only the part of this request that is needed to answer it."""
        return Command(self.code, self.opaque, self.flag, serialization=self.serialization)

    def header(self, kind: type[H]) -> H:
        """Return the header fields as `kind`.

        Raises:
            HeaderError: a field is missing or has the wrong type.
        """
        fields = cast("object", self.raw_fields)
        if type(fields) is kind:
            return fields
        if isinstance(fields, msgspec.Raw) and fields is not _NO_FIELDS:
            try:
                return from_json(kind, fields)
            except HeaderError:
                pass  # The slow path accepts what fastjson accepts, or reports what is wrong.
        return from_fields(kind, self.fields)


def request(code: int, header: Header | dict[str, str] | None = None, body: Body = b"") -> Command:
    """Return a request; the connection sets its opaque."""
    return Command(
        int(code), language=LANGUAGE, version=VERSION, known_fields=_fields(header), body=body
    )


def oneway(code: int, header: Header | dict[str, str] | None = None, body: Body = b"") -> Command:
    """Return a request that expects no response."""
    return Command(
        int(code),
        flag=ONEWAY,
        language=LANGUAGE,
        version=VERSION,
        known_fields=_fields(header),
        body=body,
    )


def response(
    request: Command,
    code: int = ResponseCode.SUCCESS,
    header: Header | dict[str, str] | None = None,
    body: Body = b"",
    remark: str | None = None,
) -> Command:
    """Return the response to a request."""
    return Command(
        int(code),
        request.opaque,
        RESPONSE,
        remark,
        LANGUAGE,
        VERSION,
        known_fields=_fields(header),
        body=body,
        serialization=request.serialization,
    )


def _fields(header: Header | dict[str, str] | None) -> dict[str, str]:
    if header is None:
        return {}
    return to_fields(header) if isinstance(header, Header) else header


def _read_fields(raw: object) -> dict[str, str]:
    if isinstance(raw, Header):
        return to_fields(raw)
    data = bytes(cast("msgspec.Raw", raw))
    if not data:
        return {}
    try:
        return _decode_fields(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # The slow path accepts what fastjson accepts, or reports what is wrong.
    try:
        found = fastjson.loads(data)
    except FormatError as error:
        raise HeaderError(f"extFields: {error}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise HeaderError("extFields is not an object")
    items = cast("dict[str | int, object]", found).items()
    return {str(name): _plain(name, value) for name, value in items if value is not None}


def _plain(name: str | int, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise HeaderError(f"extFields: {name} is not a plain value")
