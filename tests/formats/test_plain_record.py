"""`plain_at` and `record.check` agree on what a good record is, and where its parts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.plain_record import any_at, plain_at
from mqlake.formats.properties import decode_properties
from mqlake.formats.record import Fault

HOSTS = st.sampled_from(("127.0.0.1:10911", "[2001:db8:0:0:0:0:0:1]:10911"))
LONG = "t" * 100
TOPICS = st.sampled_from(("T", "Ä", "a/b", "", LONG, 2 * LONG))


@st.composite
def records(draw: st.DrawFn) -> bytes:
    return record.encode(
        topic=draw(TOPICS),
        body=draw(st.binary(max_size=40)),
        properties=draw(st.binary(max_size=20)),
        born_host=draw(HOSTS),
        store_host=draw(HOSTS),
        sys_flag=draw(st.sampled_from((0, 1))),
    )


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A record, maybe with a byte changed, maybe cut, maybe with others around it."""
    data = bytearray(draw(records()))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data) - 1))
        data[at] = draw(st.integers(0, 255))
    end = draw(st.sampled_from((len(data), len(data) - 1, len(data) // 2)))
    return bytes(data[:end]) + draw(st.binary(max_size=30))


@given(damaged(), st.binary(max_size=9))
def test_only_good_records_are_plain(data: bytes, before: bytes) -> None:
    data, at = before + data, len(before)
    plain = plain_at(data, at, len(data))
    fault, layout = record.check(data, at, len(data))
    if plain is None:
        is_short = len(data) - at < record.HEAD_SIZES[-1] + 3
        assert fault or layout is None or layout.version == 2 or is_short
        return
    assert fault is Fault.GOOD
    assert layout is not None
    head, body, topic, properties_at = plain
    assert (layout.size, layout.properties_at) == (head[0], properties_at)
    assert data[layout.body_at : layout.body_at + layout.body_length] == body
    assert data[layout.topic_at : layout.topic_at + layout.topic_length] == topic
    known = record.decode(data, at)
    assert (known.queue_id, known.flag, known.queue_offset) == (head[3], head[4], head[5])
    assert (known.physical_offset, known.sys_flag) == (head[6], head[7])


@given(damaged(), st.binary(max_size=9))
def test_any_record_is_found_as_check_finds_it(data: bytes, before: bytes) -> None:
    data, at = before + data, len(before)
    fault, layout = record.check(data, at, len(data))
    if layout is None or fault not in (Fault.GOOD, Fault.CRC):
        with pytest.raises(FormatError, match=f"byte {at}: "):
            any_at(data, at, len(data))
        return
    found, reason = any_at(data, at, len(data))
    assert (reason is None) == (fault is Fault.GOOD)
    if fault is Fault.GOOD:
        assert found == (plain_at(data, at, len(data)) or found)
        known = record.decode(data, at)
        head, body, topic, properties_at = found
        assert topic.decode() == known.topic
        assert body == known.body
        assert decode_properties(data[properties_at : at + head[0]]) == known.properties


@given(records())
def test_a_record_is_plain_if_its_topic_is_short(data: bytes) -> None:
    fault, layout = record.check(data, 0, len(data))
    if fault is Fault.GOOD and layout is not None and layout.version == 1 and len(data) >= 120:
        assert plain_at(data, 0, len(data)) is not None
