from __future__ import annotations

from struct import pack_into

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.kafka import record_batch, versions
from mqlake.formats.kafka.batch import Batch, Record, TimestampType
from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.record_batch import HEADER_SIZE, NewRecord

DATA = st.none() | st.binary(max_size=300)
RECORDS = st.lists(
    st.builds(
        NewRecord,
        st.integers(-1, (1 << 63) - 1),
        DATA,
        DATA,
        st.lists(st.tuples(st.text(max_size=20), DATA), max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def read(data: bytes) -> tuple[Batch, list[Record]]:
    batch = versions.read_header(data, 0, 0, len(data))
    assert batch is not None
    versions.check(batch, data)
    return batch, versions.decode_records(batch, data)


@example([NewRecord(-1, None, None), NewRecord((1 << 63) - 1, None, None)], Compression.NONE, 0)
@given(RECORDS, st.sampled_from(Compression), st.integers(0, 1 << 40))
def test_what_is_written_is_read(
    records: list[NewRecord], codec: Compression, base_offset: int
) -> None:
    data = record_batch.encode(base_offset, records, compression=codec, leader_epoch=3)
    batch, found = read(data)
    assert len(data) == batch.size
    assert codec is batch.compression
    assert len(records) == batch.record_count
    assert base_offset + len(records) - 1 == batch.last_offset
    assert max(record.timestamp for record in records) == batch.max_timestamp
    expected = [
        Record(
            base_offset + number,
            record.timestamp,
            TimestampType.CREATE_TIME,
            3,
            record.key,
            record.value,
            tuple(record.headers),
        )
        for number, record in enumerate(records)
    ]
    assert expected == found


def test_fields_of_an_idempotent_batch() -> None:
    data = record_batch.encode(
        7,
        [NewRecord(5), NewRecord(4)],
        producer_id=1 << 40,
        producer_epoch=9,
        base_sequence=(1 << 31) - 1,
        is_transactional=True,
    )
    batch, _ = read(data)
    assert (batch.producer_id, batch.producer_epoch) == (1 << 40, 9)
    assert batch.has_producer_id
    assert batch.is_transactional
    assert not batch.is_control
    # Sequence numbers wrap.
    assert batch.last_sequence == 0


def test_log_append_time_is_every_records_time() -> None:
    data = record_batch.encode(
        0,
        [NewRecord(1), NewRecord(2)],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        append_time=99,
    )
    batch, records = read(data)
    assert batch.max_timestamp == 99
    assert [record.timestamp for record in records] == [99, 99]
    assert TimestampType.LOG_APPEND_TIME is records[0].timestamp_type


def test_timestamps_wrap_at_64_bits_as_in_java() -> None:
    largest = (1 << 63) - 1
    batch, _ = read(data := record_batch.encode(0, [NewRecord(0), NewRecord(1)]))
    [_, second] = record_batch.decode_records(batch._replace(base_timestamp=largest), data)
    assert -largest - 1 == second.timestamp


def test_the_check_sum_covers_all_but_offset_length_epoch() -> None:
    data = bytearray(record_batch.encode(5, [NewRecord(1, b"k", b"v")]))
    for at in range(len(data)):
        data[at] ^= 0x40
        seen = versions.read_header(bytes(data[:HEADER_SIZE]), 0, 0, 1 << 30) if at > 11 else None
        if at >= 17:
            assert seen is not None
            with pytest.raises(FormatError, match="checksum"):
                versions.check(seen, bytes(data))
        elif seen is not None and seen.magic == 2:
            versions.check(seen, bytes(data))
        data[at] ^= 0x40


def test_no_records_no_batch() -> None:
    with pytest.raises(FormatError, match="needs a record"):
        record_batch.encode(0, [])


@pytest.mark.parametrize("count", [-1, 2, 1 << 30])
def test_a_wrong_count_is_seen_before_anything_is_made(count: int) -> None:
    data = record_batch.encode(0, [NewRecord(1, b"k", b"v")])
    batch, _ = read(data)
    with pytest.raises(FormatError):
        record_batch.decode_records(batch._replace(record_count=count), data)


def test_an_empty_batch_of_the_cleaner_has_no_records() -> None:
    batch, _ = read(data := record_batch.encode(0, [NewRecord(1)]))
    assert record_batch.decode_records(batch._replace(record_count=0), data) == []


def test_many_headers_said_few_there() -> None:
    # length, attributes, two deltas, null key, null value, 2^28 headers
    body = bytes([22, 0, 0, 0, 1, 1]) + bytes.fromhex("8080808002") + b"\0"
    batch, _ = read(record_batch.encode(0, [NewRecord(1)]))
    with pytest.raises(FormatError, match="headers in"):
        record_batch.decode_records(batch, bytes(HEADER_SIZE) + body)


def test_bytes_after_the_last_record() -> None:
    data = record_batch.encode(0, [NewRecord(1, b"key", b"value")])
    batch, _ = read(data)
    with pytest.raises(FormatError, match="left after the last record"):
        record_batch.decode_records(batch, data + b"\0")


def test_every_cut_is_seen() -> None:
    data = record_batch.encode(0, [NewRecord(1, b"key", b"value", [("h", b"x" * 100)])] * 2)
    batch, _ = read(data)
    for end in range(HEADER_SIZE, len(data)):
        with pytest.raises(FormatError):
            record_batch.decode_records(batch, data[:end])


@pytest.mark.parametrize(("length", "reason"), [(13, "less than any"), (48, "of its fields")])
def test_lengths_that_no_batch_has(length: int, reason: str) -> None:
    data = bytearray(record_batch.encode(0, [NewRecord(1)]))
    pack_into(">i", data, 8, length)
    with pytest.raises(FormatError, match=reason):
        versions.read_header(bytes(data), 0, 0, len(data))


@pytest.mark.parametrize("end", [0, 16, 17, 30, 60, 67])
def test_a_torn_tail_is_the_end(end: int) -> None:
    data = record_batch.encode(0, [NewRecord(1)])
    assert len(data) == 68
    assert versions.read_header(data[:end], 0, 0, end) is None
