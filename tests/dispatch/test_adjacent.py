"""Records one behind the other are found as `record.check` finds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.dispatch.adjacent import (
    AT,
    FAULT,
    QUEUE_OFFSET,
    SIZE,
    SYS_FLAG,
    TAGS_AT,
    TAGS_LENGTH,
    find_records,
)
from mqlake.dispatch.kernel import load
from mqlake.formats import record
from mqlake.formats.properties import decode_properties
from mqlake.formats.record import Fault
from tests.formats.test_plain_record import damaged, records

DATA = st.lists(records() | damaged(), max_size=4).map(b"".join)


@pytest.mark.parametrize("name", ["compiled", "reference"])
@given(data=DATA)
def test_records_are_found_as_check_finds_them(name: str, data: bytes) -> None:
    rows, end = find_records(data, load(name))
    at = 0
    for row in rows.T.tolist():
        fault, layout = record.check(data, at, len(data))
        assert layout is not None
        assert (row[AT], row[SIZE], row[FAULT]) == (at, layout.size, fault)
        known = record.decode(data, at, crc=False)
        assert (row[QUEUE_OFFSET], row[SYS_FLAG]) == (known.queue_offset, known.sys_flag)
        tags = data[row[TAGS_AT] : row[TAGS_AT] + row[TAGS_LENGTH]]
        properties = data[layout.properties_at : layout.properties_at + layout.properties_length]
        assert tags.decode("utf-8", "replace") == decode_properties(properties).get("TAGS", "")
        at += layout.size
    assert record.check(data, at, len(data))[0] == end
    assert end not in (Fault.GOOD, Fault.CRC)


@pytest.mark.parametrize("name", ["compiled", "reference"])
def test_tags_are_found(name: str) -> None:
    data = record.encode(topic="T", properties={"a": "b", "TAGS": "red"}, queue_offset=-3) * 3
    rows, end = find_records(data, load(name))
    assert [data[at : at + 3] for at in rows[TAGS_AT].tolist()] == [b"red"] * 3
    assert rows[QUEUE_OFFSET].tolist() == [-3] * 3
    assert end is Fault.SHORT
