"""Decode and hash text as Java's String does (docs/formats/java_string.md)."""

from __future__ import annotations

import re

_REPLACEMENT = "\ufffd".encode()
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def decode(data: bytes | bytearray | memoryview) -> str:
    """Return the text of UTF-8 bytes as Java's `new String(bytes, UTF_8)` does; never raises.

    Java and Python replace malformed bytes by the same number of U+FFFD, with one exception:
    an encoded surrogate (ED A0..BF, and a continuation byte where there is one) is one U+FFFD
    in Java, and two or three in Python.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return str(_ENCODED_SURROGATE.sub(_REPLACEMENT, bytes(data)), "utf-8", "replace")


def hash_code(text: str, start: int = 0) -> int:
    """Return `String.hashCode`, signed 32 bits over UTF-16 units, going on from hash `start`."""
    value = start
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H").tolist():
            value = (31 * value + unit) & 0xFFFFFFFF
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def index_key_hash(key: str) -> int:
    """Return the hash that the index file keeps: `Math.abs(hashCode)`.

    0 for the one value that Java's abs leaves negative. Upstream: `IndexFile.indexKeyHashMethod`.
    """
    value = abs(hash_code(key))
    return value if value <= 0x7FFFFFFF else 0
