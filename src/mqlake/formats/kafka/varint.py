"""Read and write zig-zag variable-length integers (docs/formats/kafka/record_batch.md).

Upstream: `ByteUtils.readVarint`, `readVarlong`, `writeVarint`, `writeVarlong`.
"""

from __future__ import annotations

from mqlake.errors import FormatError

_INT_BYTES = 5
_LONG_BYTES = 10
_INT = 0xFFFFFFFF
_LONG = 0xFFFFFFFFFFFFFFFF


def decode_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the signed 32-bit number at a position, and the position after it.

    Bits beyond the 32nd are dropped, as in Kafka.

    Raises:
        FormatError: cut off, or longer than 5 bytes.
    """
    raw, at = _decode(data, at, _INT_BYTES)
    raw &= _INT
    return raw >> 1 ^ -(raw & 1), at


def decode_varlong(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the signed 64-bit number at a position, and the position after it.

    Raises:
        FormatError: cut off, or longer than 10 bytes.
    """
    raw, at = _decode(data, at, _LONG_BYTES)
    raw &= _LONG
    return raw >> 1 ^ -(raw & 1), at


def encode_varint(value: int) -> bytes:
    """Return the bytes of a signed number of 32 or 64 bits."""
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return _ONE_BYTE[raw]
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _decode(data: bytes | memoryview, at: int, limit: int) -> tuple[int, int]:
    raw = shift = 0
    try:
        while shift < 7 * limit:
            byte = data[at]
            at += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                return raw, at
            shift += 7
    except IndexError:
        raise FormatError("a variable-length number is cut off") from None
    raise FormatError(f"a variable-length number has more than {limit} bytes")


_ONE_BYTE = [bytes([raw]) for raw in range(0x80)]
