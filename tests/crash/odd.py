"""Messages whose records look damaged, and are not."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.formats import record, record_crc

STALE = record_crc.encode(1234567890)


def _properties() -> Iterator[bytes]:
    """Yield properties of which no byte is lost, though it seems so."""
    for count in (1, 8, 20, 600):
        zeros = bytes(count)
        yield b"note\1" + zeros + b"\2"
        yield b"note\1x" + zeros
        yield b"note\1x" + zeros + b"y\2more\1z\2"
        yield zeros
        yield zeros + b"KEYS\1k\2"
    yield b""
    yield b"KEYS\1a\0b \0 c\2TAGS\1\0\2"
    yield b"KEYS\1\xff\xfe \xc3\2\x80\1\xed\xa0\x80\2"
    yield b"\1\1\2\2\1\2"
    yield STALE
    yield b"note\1x\2" + STALE
    yield STALE + b"note\1x"
    yield b"note\1x" + STALE


PROPERTIES = tuple(_properties())


def bodies(at: int) -> Iterator[bytes]:
    """Yield bodies, some of which imitate records.

    Args:
        at: the physical offset that the body will have.
    """
    yield b""
    yield bytes(40)
    yield bytes(700)
    fields = {"topic": "orders", "body": b"imitated", "physical_offset": at}
    yield record.encode(**fields)
    yield record.encode(**fields, properties=bytes(30), append_crc=True)
    yield record.encode_blank_head(100) + b"x" * 30
    yield b"body"
