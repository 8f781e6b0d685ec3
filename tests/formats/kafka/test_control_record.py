from __future__ import annotations

import pytest

from mqlake.errors import FormatError
from mqlake.formats.kafka import versions
from mqlake.formats.kafka.batch import Record, TimestampType
from mqlake.formats.kafka.control_record import (
    ControlType,
    EndMarker,
    control_type,
    encode_end_marker,
    end_marker,
)


def record(key: bytes | None, value: bytes | None = None) -> Record:
    return Record(0, 0, TimestampType.CREATE_TIME, 0, key, value, is_control=True)


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_both_ways(kind: ControlType) -> None:
    data = encode_end_marker(
        9, 1234, EndMarker(kind, 7), producer_id=5, producer_epoch=2, leader_epoch=1
    )
    batch = versions.read_header(data, 0, 0, len(data))
    assert batch is not None
    assert batch.is_control
    assert batch.is_transactional
    [found] = versions.decode_records(batch, data)
    assert (found.offset, found.timestamp, found.is_control) == (9, 1234, True)
    assert EndMarker(kind, 7) == end_marker(found)


def test_types_of_a_later_kafka_are_unknown() -> None:
    assert ControlType.UNKNOWN is control_type(record(bytes.fromhex("00000077")))
    assert ControlType.KRAFT_VOTERS is control_type(record(bytes.fromhex("0003000600")))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        ("0000", None),
        ("ffff0000", "000000000000"),
        ("00000002", "000000000000"),
        ("00000001", None),
        ("00000001", "0000000000"),
        ("00000001", "ffff00000000"),
    ],
)
def test_no_end_marker(key: str | None, value: str | None) -> None:
    with pytest.raises(FormatError):
        end_marker(
            record(*(None if text is None else bytes.fromhex(text) for text in (key, value)))
        )
