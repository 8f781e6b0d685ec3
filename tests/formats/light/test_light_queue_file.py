"""Files of light queues: headers and entries, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.light import light_queue_file
from mqlake.formats.light.light_queue_file import LightEntry, LightHeader

SLOTS = light_queue_file.slots_of(1 << 14)
SIZE = light_queue_file.file_size(1 << 14)


def test_returns_what_was_encoded() -> None:
    header = LightHeader(base=1 << 30, seed=(1 << 64) - 1, slots=SLOTS, following=9, queues=3)
    entry = LightEntry((1 << 64) - 1, 7, 5, 100, 1, 2, 3)
    data = bytearray(SIZE)
    data[:40] = light_queue_file.encode_header(header)
    at = light_queue_file.entry_at(SLOTS, 4)
    data[at : at + 40] = light_queue_file.encode_entry(entry)
    assert light_queue_file.decode_header(bytes(data)) == header
    assert light_queue_file.decode_entry(bytes(data), SLOTS, 4) == entry


@given(st.binary(max_size=400))
def test_any_bytes_are_a_header_or_refused(data: bytes) -> None:
    for each in (data, light_queue_file.MAGIC + data):
        try:
            header = light_queue_file.decode_header(each)
        except FormatError:
            continue
        assert light_queue_file.entry_at(header.slots, header.following) <= len(each)


def test_refuses_entries_outside_of_the_file() -> None:
    for number in (-1, 0, 10_000):
        with pytest.raises(FormatError):
            light_queue_file.decode_entry(bytes(SIZE), SLOTS, number)
