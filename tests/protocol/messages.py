"""Requests as clients send them, and frames made by hand."""

from __future__ import annotations

import json
import struct

SEND_FIELDS = {
    "a": "group", "b": "TopicTest", "c": "TBW102", "d": "4", "e": "3", "f": "0",
    "g": "1700000000000", "h": "0", "i": "KEYS\x01k1\x02", "j": "0", "k": "false", "m": "false",
}  # fmt: skip


def json_header(code: int = 310, **more: object) -> bytes:
    """Return a header as the Java client writes it."""
    values = {
        "code": code, "extFields": SEND_FIELDS, "flag": 0, "language": "JAVA", "opaque": 7,
        "serializeTypeCurrentRPC": "JSON", "version": 513,
    }  # fmt: skip
    return json.dumps(values | more, separators=(",", ":")).encode()


def frame(header: bytes, body: bytes = b"", kind: int = 0) -> bytes:
    """Return a frame around a header."""
    return struct.pack(">II", 4 + len(header) + len(body), kind << 24 | len(header)) + header + body


def binary_header(
    fields: bytes, code: int = 34, language: int = 9, remark: bytes = b"", end: bytes = b""
) -> bytes:
    """Return a binary header around fields, which are written already."""
    start = struct.pack(">hBhiii", code, language, 401, 7, 0, len(remark))
    return start + remark + struct.pack(">i", len(fields)) + fields + end


def pair(name: bytes, value: bytes) -> bytes:
    """Return a field of a binary header."""
    return struct.pack(">h", len(name)) + name + struct.pack(">i", len(value)) + value
