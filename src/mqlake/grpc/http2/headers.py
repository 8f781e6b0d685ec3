"""Blocks of headers to fields (HPACK, RFC 7541).

A client repeats most fields in each call, so they become indexes into the dynamic table, whose
entries are texts already. What is left of a block costs little.
"""

from __future__ import annotations

import re
from typing import Final

from mqlake.grpc.http2 import huffman
from mqlake.grpc.http2.frames import ErrorCode, Http2Error

TABLE_SIZE: Final = 4096
"""Bytes of the dynamic table, as RFC 7541 counts them, unless a setting says otherwise."""
_OVERHEAD: Final = 32
"""Bytes that a field counts beyond its name and value."""
_MOST_RESIZES: Final = 2
"""How often one block may change the limit of the table."""
_MOST_DIGITS: Final = 4
"""Bytes of a number after the first one: enough for 28 bits."""

_NAMES: Final = """
    accept-charset accept-encoding:gzip,_deflate accept-language accept-ranges accept
    access-control-allow-origin age allow authorization cache-control content-disposition
    content-encoding content-language content-length content-location content-range content-type
    cookie date etag expect expires from host if-match if-modified-since if-none-match if-range
    if-unmodified-since last-modified link location max-forwards proxy-authenticate
    proxy-authorization range referer refresh retry-after server set-cookie
    strict-transport-security transfer-encoding user-agent vary via www-authenticate
"""

Field = tuple[str, str, int]
"""A name, its value, and the bytes that it counts."""


def _field(name: str, value: str) -> Field:
    return name, value, len(name) + len(value) + _OVERHEAD


MALFORMED: Final = ""
"""The name of fields that no request may have: the call is refused, not the connection."""
_PSEUDO: Final = frozenset((":authority", ":method", ":path", ":scheme"))
_NAME: Final = re.compile(rb":?[a-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(rb"[\t\x20-\x7e]*")


def _static() -> list[Field]:
    found = [("", "")]  # There is no field with index 0.
    found += [(":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/")]
    found += [(":path", "/index.html"), (":scheme", "http"), (":scheme", "https")]
    found += [(MALFORMED, "200")] * 7  # :status, which only responses have.
    for word in _NAMES.split():
        name, _, value = word.partition(":")
        found.append((name, value.replace("_", " ")))
    return [_field(name, value) for name, value in found]


STATIC: Final = _static()
_FIRST_DYNAMIC: Final = len(STATIC)
_INDEXED: Final = 0x80
_LONG_INDEX: Final = 0xFF


def integer(data: bytes, at: int, prefix: int) -> tuple[int, int]:
    """Return the number that begins in the low bits of a byte, and where it ends.

    Args:
        prefix: the largest number that these bits can have.

    Raises:
        Http2Error: it ends nowhere, or is larger than any that is allowed.
    """
    found = data[at] & prefix
    at += 1
    if found < prefix:
        return found, at
    for digit, byte in enumerate(data[at : at + _MOST_DIGITS]):
        found += (byte & 0x7F) << 7 * digit
        if byte < 0x80:
            return found, at + digit + 1
    raise Http2Error(ErrorCode.COMPRESSION_ERROR, "a number in a header is incomplete or too large")


class HeaderDecoder:
    """Decodes the blocks of one connection, in their order.

    Args:
        most: bytes that the fields of one block may have, as RFC 9113 counts them. Of a larger
            block, the rest changes the dynamic table only.

    Attributes:
        decoded: bytes that the fields of the last block have.
    """

    def __init__(self, most: int) -> None:
        self._most, self.decoded = most, 0
        self._table: list[Field] = []
        """The dynamic table; the newest entry is the last one."""
        self._size = 0
        self._limit = TABLE_SIZE

    def decode(self, block: bytes) -> dict[str, str] | None:
        """Return the fields of a block by name; None if they have more bytes than allowed.

        Values of fields with the same name are joined by commas, as gRPC requires. A field that is
        not allowed is named `MALFORMED`.

        Raises:
            Http2Error: the block cannot be decoded, or has more fields than allowed.
        """
        fields: dict[str, str] = {}
        at, end, left, table = self._resized(block), len(block), self._most, self._table
        count = 0
        while at < end:
            first = block[at]
            count += 1
            if _INDEXED < first < _LONG_INDEX:  # Most fields: no call for them.
                index = first - _INDEXED
                at += 1
                if index < _FIRST_DYNAMIC:
                    name, value, size = STATIC[index]
                elif index - _FIRST_DYNAMIC < len(table):
                    name, value, size = table[_FIRST_DYNAMIC - 1 - index]
                else:
                    raise _no_field(index)
            else:
                (name, value, size), at = self._other(block, at)
            left -= size
            if left >= 0:
                if name not in fields:
                    fields[name] = value
                elif name[:1] == ":":
                    fields[MALFORMED] = name
                else:
                    fields[name] = f"{fields[name]},{value}"
            elif count > self._most // _OVERHEAD:
                raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, f"more than {count - 1} headers")
        self.decoded = self._most - left
        return fields if left >= 0 else None

    def _resized(self, block: bytes) -> int:
        """Change the limit of the table as the beginning of a block says; return where it ends."""
        at = 0
        for _ in range(_MOST_RESIZES):
            if at >= len(block) or block[at] & 0xE0 != 0x20:
                break
            limit, at = integer(block, at, 0x1F)
            self._resize(limit)
        return at

    def _other(self, block: bytes, at: int) -> tuple[Field, int]:
        """Return a field that is not a short index, and where it ends."""
        first = block[at]
        if first >= _INDEXED:
            index, at = integer(block, at, 0x7F)
            return self._field(index), at
        if first & 0xE0 == 0x20:
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, "the table is resized between fields")
        return self._literal(block, at, 0x3F if first >= 0x40 else 0x0F)

    def _field(self, index: int) -> Field:
        if 0 < index < _FIRST_DYNAMIC:
            return STATIC[index]
        place = len(self._table) - 1 - (index - _FIRST_DYNAMIC)
        if not 0 <= place < len(self._table):
            raise _no_field(index)
        return self._table[place]

    def _literal(self, block: bytes, at: int, prefix: int) -> tuple[Field, int]:
        is_added = prefix == 0x3F
        index, at = integer(block, at, prefix)
        if index:
            name = self._field(index)[0]
        else:
            text, at = _text(block, at)
            name = text.decode("latin-1")
            if _NAME.fullmatch(text) is None or (name[0] == ":" and name not in _PSEUDO):
                name = MALFORMED
        text, at = _text(block, at)
        if _VALUE.fullmatch(text) is None:
            name = MALFORMED
        field = _field(name, text.decode("latin-1"))
        if is_added:
            self._add(field)
        return field, at

    def _add(self, field: Field) -> None:
        self._table.append(field)
        self._size += field[2]
        if self._size > self._limit:
            self._evict()

    def _resize(self, size: int) -> None:
        if size > TABLE_SIZE:
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, f"a table of {size} bytes")
        self._limit = size
        self._evict()

    def _evict(self) -> None:
        count = 0
        while self._size > self._limit:
            self._size -= self._table[count][2]
            count += 1
        del self._table[:count]


def _no_field(index: int) -> Http2Error:
    return Http2Error(ErrorCode.COMPRESSION_ERROR, f"no field has index {index}")


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(block):
        raise Http2Error(ErrorCode.COMPRESSION_ERROR, "a header ends within a field")
    is_coded = block[at] >= 0x80
    size, at = integer(block, at, 0x7F)
    end = at + size
    if end > len(block):
        raise Http2Error(ErrorCode.COMPRESSION_ERROR, "a header ends within a field")
    data = block[at:end]
    if is_coded:
        try:
            data = huffman.decode(data)
        except huffman.HuffmanError as error:
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, f"a text in a header: {error}") from None
    return data, end


def literal(name: str, value: str) -> bytes:
    """Return a field as it can be sent whatever the other side's table contains."""
    return b"\0" + _counted(name) + _counted(value)


def _counted(text: str) -> bytes:
    data = text.encode("ascii")
    if len(data) < 0x7F:
        return bytes((len(data),)) + data
    rest, digits = len(data) - 0x7F, bytearray((0x7F,))
    while rest >= 0x80:
        digits.append(rest & 0x7F | 0x80)
        rest >>= 7
    digits.append(rest)
    return bytes(digits) + data
