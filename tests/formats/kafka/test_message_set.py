from __future__ import annotations

import zlib
from struct import pack

import pytest

from mqlake.errors import FormatError
from mqlake.formats.kafka import message_set, versions
from mqlake.formats.kafka.batch import Record
from mqlake.formats.kafka.compression import Compression, compress


def message(
    offset: int,
    value: bytes | None,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
    key: bytes | None = None,
) -> bytes:
    body = pack(">bb", magic, attributes)
    body += pack(">q", timestamp) if magic else b""
    for field in (key, value):
        body += pack(">i", -1) if field is None else pack(">i", len(field)) + field
    return pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, *inner: bytes, codec: int = Compression.GZIP, magic: int = 1) -> bytes:
    value = compress(Compression(codec), b"".join(inner))
    return message(offset, value, attributes=codec, magic=magic)


def read(data: bytes) -> list[Record]:
    batch = versions.read_header(data, 0, 0, len(data))
    assert batch is not None
    versions.check(batch, data)
    return versions.decode_records(batch, data)


def test_a_wrapper_at_offset_0_holds_absolute_offsets() -> None:
    records = read(wrapper(0, message(70, b"a"), message(71, b"b")))
    assert [record.offset for record in records] == [70, 71]


def test_relative_offsets_count_back_from_the_wrapper() -> None:
    data = wrapper(20, message(0, b"a"), message(3, b"b"))
    assert [record.offset for record in read(data)] == [17, 20]
    batch = versions.read_header(data, 0, 0, len(data))
    assert batch is not None
    assert not versions.knows_first_offset(batch)
    assert message_set.first_offset(batch, data) == 17


def test_version_0_offsets_are_absolute() -> None:
    data = wrapper(8, message(7, b"a", magic=0), message(8, None, magic=0), magic=0)
    assert [(record.offset, record.value, record.timestamp) for record in read(data)] == [
        (7, b"a", -1),
        (8, None, -1),
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (wrapper(2, message(0, b"a"), message(5, b"b")), "up to offset 5"),
        (wrapper(2), "without messages"),
        (wrapper(2, wrapper(0, message(0, b"a"))), "inside of a compressed"),
        (wrapper(2, message(0, b"a"), codec=Compression.ZSTD), "zstd"),
        (message(2, None, attributes=1), "without a value"),
        (message(2, b"x" * 30, attributes=2), "snappy data is damaged"),
        (message(2, b"x", attributes=6), "unknown compression"),
    ],
)
def test_what_kafka_refuses(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        read(data)


def test_every_cut_is_seen() -> None:
    data = message(3, b"value", key=b"key")
    batch = versions.read_header(data, 0, 0, len(data))
    assert batch is not None
    for end in range(len(data)):
        with pytest.raises(FormatError):
            versions.decode_records(batch, data[:end])


def test_a_negative_version_is_no_batch() -> None:
    data = bytearray(message(3, b"value"))
    data[16] = 0x80
    with pytest.raises(FormatError, match="version -128"):
        versions.read_header(data, 0, 0, len(data))
